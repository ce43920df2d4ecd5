//! Under which configuration a case runs, and the name of one execution.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// The variant of an arm whose agent has the skill.
pub const WITH_SKILL: &str = "with_skill";
/// The variant of an arm whose agent lacks it: what the other one is compared with. It decides nothing by itself.
pub const WITHOUT_SKILL: &str = "without_skill";

/// One configuration a case runs under.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Arm {
    /// The agent's name, such as `claude-code`.
    pub agent: String,
    /// The model's name as the user gave it; the agent's own default when absent.
    pub model: Option<String>,
    /// Such as `with_skill`; absent where there is nothing to compare.
    pub variant: Option<String>,
}

impl std::fmt::Display for Arm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.agent)?;
        if let Some(model) = &self.model {
            // The file's name says enough, wherever it lies.
            let model = model.strip_prefix("scripted:").unwrap_or(model);
            write!(f, ":{}", model.rsplit('/').next().unwrap_or(model))?;
        }
        if let Some(variant) = &self.variant {
            write!(f, "+{variant}")?;
        }
        Ok(())
    }
}

/// Names one execution of a case. Prints as `suite::case@arm#2`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TrialId {
    /// The suite's name.
    pub suite: Arc<str>,
    /// The case's id.
    pub case: Arc<str>,
    /// The arm, printed.
    pub arm: Arc<str>,
    /// From 1.
    pub repetition: u64,
}

impl TrialId {
    /// Whether it is only there to be compared with, as its arm's name tells.
    pub fn is_baseline(&self) -> bool {
        self.arm.strip_suffix(WITHOUT_SKILL).is_some_and(|front| front.ends_with('+'))
    }
}

impl From<&TrialId> for Arc<str> {
    /// As it prints. There are as many as there are trials, so it is put together without a formatter.
    fn from(id: &TrialId) -> Self {
        let repetition = id.repetition.to_string();
        [&id.suite, "::", &id.case, "@", &id.arm, "#", &repetition].concat().into()
    }
}

impl std::fmt::Display for TrialId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}::{}@{}#{}", self.suite, self.case, self.arm, self.repetition)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_an_arm_tells_a_baseline() {
        let id = |variant: Option<&str>| TrialId {
            suite: "s".into(),
            case: "c".into(),
            arm: Arm { agent: "fake".into(), model: None, variant: variant.map(str::to_owned) }.to_string().into(),
            repetition: 1,
        };
        let told = [None, Some(WITH_SKILL), Some(WITHOUT_SKILL)].map(|variant| id(variant).is_baseline());
        assert_eq!(told, [false, false, true]);
    }
}
