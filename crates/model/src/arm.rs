//! Configuration under which a case runs, and the id of one execution.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// Variant of an arm whose agent has the skill.
pub const WITH_SKILL: &str = "with_skill";
/// Variant of an arm whose agent lacks the skill. It serves only for comparison and does not affect the run's result.
pub const WITHOUT_SKILL: &str = "without_skill";
/// Variant of an arm whose agent has only the skills of a plug-in.
pub const SKILLS_ONLY: &str = "skills_only";

/// Part of the tested skill or plug-in that is installed for the agent of an arm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Having {
    /// Nothing: the agent alone.
    None,
    /// The skill, or the skills of the plug-in.
    Skill,
    /// The whole plug-in.
    Plugin,
}

impl Having {
    /// Every value with its name on the command line.
    pub const ALL: [(&'static str, Self); 3] = [("none", Self::None), ("skill", Self::Skill), ("plugin", Self::Plugin)];
}

/// Configuration under which a case runs.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Arm {
    /// Name of the agent, such as `claude-code`.
    pub agent: String,
    /// Name of the model as the user gave it; the agent's own default if absent.
    pub model: Option<String>,
    /// Variant, such as `with_skill`; absent if there is nothing to compare.
    pub variant: Option<String>,
}

impl std::fmt::Display for Arm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.agent)?;
        if let Some(model) = &self.model {
            // The file name is enough; the script's folder does not matter.
            let model = model.strip_prefix("scripted:").unwrap_or(model);
            write!(f, ":{}", model.rsplit('/').next().unwrap_or(model))?;
        }
        if let Some(variant) = &self.variant {
            write!(f, "+{variant}")?;
        }
        Ok(())
    }
}

/// Id of one execution of a case. Prints as `suite::case@arm#2`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TrialId {
    /// Name of the suite.
    pub suite: Arc<str>,
    /// Id of the case.
    pub case: Arc<str>,
    /// Printed form of the arm, such as `codex+with_skill`.
    pub arm: Arc<str>,
    /// Number of the repetition, from 1.
    pub repetition: u64,
}

impl TrialId {
    /// Returns `true` if the trial serves only for comparison, which the variant in its arm's name shows.
    pub fn is_baseline(&self) -> bool {
        self.arm.strip_suffix(WITHOUT_SKILL).is_some_and(|front| front.ends_with('+'))
    }
}

impl From<&TrialId> for Arc<str> {
    /// Returns the printed form. It is concatenated without a formatter because every trial needs one.
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
    fn the_name_of_an_arm_identifies_a_baseline() {
        let id = |variant: Option<&str>| TrialId {
            suite: "s".into(),
            case: "c".into(),
            arm: Arm { agent: "fake".into(), model: None, variant: variant.map(str::to_owned) }.to_string().into(),
            repetition: 1,
        };
        let are_baselines = [None, Some(WITH_SKILL), Some(WITHOUT_SKILL)].map(|variant| id(variant).is_baseline());
        assert_eq!(are_baselines, [false, false, true]);
    }
}
