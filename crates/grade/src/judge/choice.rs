//! Default judge for a run that does not set one.

/// Judge that is used if its key is available and the run does not set another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DefaultJudge {
    /// Environment variable with the key.
    pub key: &'static str,
    /// The model, as `provider:model`.
    pub model: &'static str,
}

/// Default judges for runs that do not set one: the first whose key is available is used. Each is cheap and fast, and
/// supports schemas. A key is sent only to its own vendor.
pub const DEFAULT_JUDGES: &[DefaultJudge] = &[
    DefaultJudge { key: "OPENROUTER_API_KEY", model: "openrouter:deepseek/deepseek-v4-flash" },
    DefaultJudge { key: "OPENAI_API_KEY", model: "openai:gpt-4.1-mini" },
    DefaultJudge { key: "ANTHROPIC_API_KEY", model: "anthropic:claude-haiku-4-5" },
];

/// Returns the first of [`DEFAULT_JUDGES`] whose key is available.
pub fn default_judge(providers: &llm::Providers) -> Option<&'static str> {
    DEFAULT_JUDGES.iter().find(|judge| providers.holds(judge.key)).map(|judge| judge.model)
}

/// Resolves the name of a judge. A model without a provider is assigned to the first provider that knows such names and
/// whose key is available: a vendor's model (`deepseek/deepseek-v4-flash`) to OpenRouter or OpenAI, and any model
/// (`gpt-4o-mini`) if `base_url` or `OPENAI_BASE_URL` says where it is. Other names are returned unchanged.
pub fn named_judge(written: &str, base_url: Option<&str>, providers: &llm::Providers) -> String {
    const OPENROUTER: (&str, &str) = ("OPENROUTER_API_KEY", "openrouter");
    const OPENAI: (&str, &str) = ("OPENAI_API_KEY", "openai");
    const COMPATIBLE: (&str, &str) = ("COMPATIBLE_API_KEY", "compatible");
    let names_provider = written.split_once(':').is_some_and(|(provider, _)| !provider.contains('/'));
    let of_vendor = written.contains('/');
    // The last provider is chosen without any key. Except for `compatible`, it reports which key is missing.
    let know: &[(&str, &str)] = match base_url {
        _ if names_provider => return written.to_owned(),
        Some(_) if of_vendor => &[OPENROUTER, OPENAI, COMPATIBLE],
        Some(_) => &[OPENAI, OPENROUTER, COMPATIBLE],
        None if of_vendor => &[OPENROUTER, OPENAI, OPENROUTER],
        None if providers.holds("OPENAI_BASE_URL") => &[OPENAI],
        None => return written.to_owned(),
    };
    let provider = know.iter().find(|(key, _)| providers.holds(key)).or(know.last());
    provider.map_or_else(|| written.to_owned(), |(_, provider)| format!("{provider}:{written}"))
}

#[cfg(test)]
mod tests {
    use llm::{Credentials, OpenError, Policy, Prices, Providers};

    use super::*;

    #[test]
    fn the_first_available_key_selects_the_judge() {
        let mut credentials = Credentials::default();
        let chosen = |credentials: &Credentials| {
            let providers = Providers::new(credentials.clone(), Prices::default(), Policy::default());
            default_judge(&providers)
                .map(|model| (model, providers.open(model, None, &|_| Err(Vec::new())).map(|_| ())))
        };
        assert_eq!(chosen(&credentials), None);
        for judge in DEFAULT_JUDGES.iter().rev() {
            credentials = credentials.with(judge.key, "canary");
            assert_eq!(chosen(&credentials), Some((judge.model, Ok(()))));
        }
        let alone =
            Providers::new(Credentials::default().with("OPENAI_API_KEY", "k"), Prices::default(), Policy::default());
        let other = alone.open(DEFAULT_JUDGES[0].model, None, &|_| Err(Vec::new())).unwrap_err();
        assert!(matches!(other, OpenError::NoKey { provider: "openrouter", .. }), "one vendor's key is not another's");
    }

    #[test]
    fn a_model_without_a_provider_uses_the_provider_whose_key_is_set() {
        let named_at = |written: &str, base_url: Option<&str>, keys: &[&str]| {
            let credentials = keys.iter().fold(Credentials::default(), |all, key| all.with(*key, "canary"));
            named_judge(written, base_url, &Providers::new(credentials, Prices::default(), Policy::default()))
        };
        let named = |written: &str, keys: &[&str]| named_at(written, None, keys);
        let model = "deepseek/deepseek-r1:free";
        assert_eq!(named(model, &["OPENAI_API_KEY", "OPENROUTER_API_KEY"]), format!("openrouter:{model}"));
        assert_eq!(named(model, &["OPENAI_API_KEY"]), format!("openai:{model}"));
        assert_eq!(named(model, &["ANTHROPIC_API_KEY"]), format!("openrouter:{model}"));
        for written in ["openai:gpt-5", "openrouter:a/b", "scripted:dir/judge.yaml", "gpt-5", "opnai:a/b"] {
            assert_eq!(named(written, &["OPENROUTER_API_KEY"]), written);
        }
        let at = |written: &str, keys: &[&str]| named_at(written, Some("http://127.0.0.1:1/v1"), keys);
        let both = ["OPENROUTER_API_KEY", "OPENAI_API_KEY"];
        assert_eq!([at("gpt-5", &both), at("a/b", &both)], ["openai:gpt-5", "openrouter:a/b"]);
        assert_eq!([at("gpt-5", &[]), at("anthropic:x", &[])], ["compatible:gpt-5", "anthropic:x"]);
        assert_eq!(named("gpt-5", &["OPENAI_API_KEY", "OPENAI_BASE_URL"]), "openai:gpt-5");
    }
}
