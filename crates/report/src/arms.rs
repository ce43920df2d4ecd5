//! The arms of a run and the effect of the skill on them, in the order in which the run lists its agents.

use model::statistics::Triggering;
use model::{AgentInfo, ArmDelta, ArmSummary, TrialFigures};

use crate::verdict;

/// Source of all figures about arms.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Arms {
    /// All arms; for each agent and model, the one with the skill comes first.
    pub arms: Vec<ArmSummary>,
    /// Differences for the agents and models that ran both with and without the skill.
    pub deltas: Vec<ArmDelta>,
}

impl Arms {
    /// Computes the arms of finished trials, given in any order. The trials are planned in random order, which does
    /// not influence the result.
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

    /// Returns the arm with that name.
    pub(crate) fn named(&self, arm: &str) -> Option<&ArmSummary> {
        self.arms.iter().find(|known| known.arm == arm)
    }

    /// Returns `true` if skills of several suites are compared.
    pub(crate) fn has_suites(&self) -> bool {
        self.deltas.iter().any(|delta| delta.suites.len() > 1)
    }

    /// Returns a sentence for each agent that ran with and without the skill, saying whether the skill helps it.
    pub(crate) fn verdicts(&self) -> impl Iterator<Item = String> {
        self.deltas.iter().map(|delta| {
            let trigger = self.named(&delta.with).and_then(|arm| arm.trigger.as_ref());
            let sentence = verdict::sentence(delta, trigger);
            let is_alone = self.deltas.len() == 1;
            if is_alone { sentence } else { format!("{}: {sentence}", without_variant(&delta.with)) }
        })
    }

    /// Returns the arms for which it is known whether the skill was triggered.
    pub(crate) fn triggering(&self) -> impl Iterator<Item = (&ArmSummary, &Triggering)> {
        self.arms.iter().filter_map(|arm| Some((arm, arm.trigger.as_ref()?)))
    }
}

/// Returns an arm's name without its variant, such as `claude-code:haiku`.
pub(crate) fn without_variant(arm: &str) -> &str {
    let cut = |variant: &str| arm.strip_suffix(variant).and_then(|front| front.strip_suffix('+'));
    cut(model::WITH_SKILL).or_else(|| cut(model::WITHOUT_SKILL)).unwrap_or(arm)
}
