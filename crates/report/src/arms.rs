//! The arms of a run and what the skill is worth to them, in the order in which the run names its agents.

use model::statistics::Triggering;
use model::{AgentInfo, ArmDelta, ArmSummary, TrialFigures};

/// What all figures about arms are drawn from.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Arms {
    /// Each arm; of an agent and a model, the one with the skill first.
    pub arms: Vec<ArmSummary>,
    /// Each agent and model that ran with the skill and without it.
    pub deltas: Vec<ArmDelta>,
}

impl Arms {
    /// Of finished trials, in any order. In which order the trials were planned does not show: that is for chance to say.
    pub fn of<'a>(trials: impl IntoIterator<Item = &'a TrialFigures> + Clone, agents: &[AgentInfo]) -> Self {
        let place = |agent: &str, model: Option<&str>| {
            let known = agents.iter().position(|known| known.name == agent && known.model.as_deref() == model);
            (known.unwrap_or(usize::MAX), agent.to_owned(), model.map(str::to_owned))
        };
        let mut arms = ArmSummary::of(trials.clone());
        arms.sort_by_cached_key(|arm| (place(&arm.agent, arm.model.as_deref()), arm.variant.clone(), arm.arm.clone()));
        let mut deltas = ArmDelta::of(trials);
        deltas.sort_by_cached_key(|delta| place(&delta.agent, delta.model.as_deref()));
        Self { arms, deltas }
    }

    /// The arm of that name.
    pub(crate) fn named(&self, arm: &str) -> Option<&ArmSummary> {
        self.arms.iter().find(|known| known.arm == arm)
    }

    /// Whether the skills of several suites are compared.
    pub(crate) fn has_suites(&self) -> bool {
        self.deltas.iter().any(|delta| delta.suites.len() > 1)
    }

    /// The arms of which it is known how the skill triggers.
    pub(crate) fn triggering(&self) -> impl Iterator<Item = (&ArmSummary, &Triggering)> {
        self.arms.iter().filter_map(|arm| Some((arm, arm.trigger.as_ref()?)))
    }
}

/// `claude-code:haiku`, of an arm with the skill or without it.
pub(crate) fn without_variant(arm: &str) -> &str {
    let cut = |variant: &str| arm.strip_suffix(variant).and_then(|front| front.strip_suffix('+'));
    cut(model::WITH_SKILL).or_else(|| cut(model::WITHOUT_SKILL)).unwrap_or(arm)
}
