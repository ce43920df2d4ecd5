//! Which judge a run has that names none.

/// A judge for whoever has the key and names no other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DefaultJudge {
    /// The variable of the key.
    pub key: &'static str,
    /// The model, as `provider:model`.
    pub model: &'static str,
}

/// The judges of runs that name none: the first whose key is there. Each is cheap, quick and able to keep to a schema;
/// its key goes to its own vendor alone.
pub const DEFAULT_JUDGES: &[DefaultJudge] = &[
    DefaultJudge { key: "OPENROUTER_API_KEY", model: "openrouter:deepseek/deepseek-v4-flash" },
    DefaultJudge { key: "OPENAI_API_KEY", model: "openai:gpt-4.1-mini" },
    DefaultJudge { key: "ANTHROPIC_API_KEY", model: "anthropic:claude-haiku-4-5" },
];

/// The first of [`DEFAULT_JUDGES`] whose key is there.
pub fn default_judge(providers: &llm::Providers) -> Option<&'static str> {
    DEFAULT_JUDGES.iter().find(|judge| providers.holds(judge.key)).map(|judge| judge.model)
}

#[cfg(test)]
mod tests {
    use llm::{Credentials, OpenError, Policy, Prices, Providers};

    use super::*;

    #[test]
    fn the_first_key_that_is_there_chooses_the_judge_and_opens_it() {
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
}
