//! Vendors of models, determined by model name. Only names that certainly belong to one vendor are listed.

/// A vendor of models.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Vendor {
    Anthropic,
    OpenAi,
    Google,
}

/// Prefixes of model names, with their vendors.
const FRONTS: [(&str, Vendor); 8] = [
    ("claude-", Vendor::Anthropic),
    ("gpt-", Vendor::OpenAi),
    ("chatgpt-", Vendor::OpenAi),
    ("codex-", Vendor::OpenAi),
    ("o1-", Vendor::OpenAi),
    ("o3-", Vendor::OpenAi),
    ("o4-", Vendor::OpenAi),
    ("gemini-", Vendor::Google),
];
/// Full model names, with their vendors.
const NAMES: [(&str, Vendor); 5] = [
    ("sonnet", Vendor::Anthropic),
    ("opus", Vendor::Anthropic),
    ("haiku", Vendor::Anthropic),
    ("o1", Vendor::OpenAi),
    ("o3", Vendor::OpenAi),
];

/// Vendor names that can precede a model name, as in `openai/gpt-5` or `openai:gpt-5`.
const OWNERS: [(&str, Vendor); 3] =
    [("anthropic", Vendor::Anthropic), ("openai", Vendor::OpenAi), ("google", Vendor::Google)];

impl Vendor {
    /// Returns the vendor of the model `name`; `None` if the name does not determine it.
    pub(super) fn from_model_name(name: &str) -> Option<Self> {
        let name = name.to_ascii_lowercase();
        let owner = name.split_once(['/', ':']).map_or("", |(owner, _)| owner);
        if let Some((_, vendor)) = OWNERS.iter().find(|(known, _)| owner == *known) {
            return Some(*vendor);
        }
        let front = FRONTS.iter().find(|(front, _)| name.starts_with(front));
        let whole = || NAMES.iter().find(|(whole, _)| name == *whole);
        front.or_else(whole).map(|(_, vendor)| *vendor)
    }

    /// Returns the vendor's name.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Anthropic => "Anthropic",
            Self::OpenAi => "OpenAI",
            Self::Google => "Google",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vendor_is_recognised_by_unambiguous_names() {
        for (name, vendor) in [
            ("claude-sonnet-4-6", Some(Vendor::Anthropic)),
            ("Haiku", Some(Vendor::Anthropic)),
            ("gpt-5.5", Some(Vendor::OpenAi)),
            ("o3", Some(Vendor::OpenAi)),
            ("gemini-3-pro", Some(Vendor::Google)),
            ("us.anthropic.claude-sonnet-4-6-v1:0", None),
            ("anthropic/claude-sonnet-4-6", Some(Vendor::Anthropic)),
            ("openai/gpt-5", Some(Vendor::OpenAi)),
            ("OpenAI:gpt-5", Some(Vendor::OpenAi)),
            ("google/gemini-2.5-pro", Some(Vendor::Google)),
            ("openrouter/openai/gpt-5", None),
            ("mine/gpt-5", None),
            ("o3ther", None),
            ("my-model", None),
        ] {
            assert_eq!(Vendor::from_model_name(name), vendor, "{name}");
        }
    }
}
