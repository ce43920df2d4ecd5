//! The arms of a run and the effect of the skill on them, in the order in which the run lists its agents.

use std::collections::BTreeMap;

use model::statistics::{Delta, Difference, Observation, Triggering, can_compare};
use model::{
    AgentInfo, ArmDelta, ArmSummary, CaseEffect, DecisionRecord, Estimate, TrialFigures, WITH_SKILL, WITHOUT_SKILL,
};

use crate::decisions;
use crate::verdict::{self, CaseSide, Decision, PairedCase, SKILL};

/// Source of all figures about arms.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Arms {
    /// All arms; for each agent and model, the one with the skill comes first.
    pub arms: Vec<ArmSummary>,
    /// Differences for the agents and models that ran both with and without the skill.
    pub deltas: Vec<ArmDelta>,
    /// Result of each of these comparisons in words.
    headlines: Vec<String>,
    /// Number of trials whose result is different without assertions about the use of the skill, which only one arm has.
    pub(crate) different_in_both_arms: usize,
    /// True if the results decided how many trials ran. There are no intervals and p-values then, because those for a
    /// fixed number of trials would be wrong.
    pub(crate) is_sequential: bool,
    /// Decisions about the number of trials.
    pub(crate) decisions: Vec<DecisionRecord>,
}

impl Arms {
    /// Computes the arms of finished trials, given in any order. The trials are planned in random order, which does
    /// not influence the result.
    pub fn of<'a>(trials: impl IntoIterator<Item = &'a TrialFigures> + Clone, agents: &[AgentInfo]) -> Self {
        let position = |agent: &str, model: Option<&str>| {
            let known = agents.iter().position(|known| known.name == agent && known.model.as_deref() == model);
            (known.unwrap_or(usize::MAX), agent.to_owned(), model.map(str::to_owned))
        };
        let is_sequential = trials.clone().into_iter().any(|trial| trial.is_sequential);
        let mut arms = ArmSummary::of(trials.clone());
        arms.sort_by_cached_key(|arm| {
            (position(&arm.agent, arm.model.as_deref()), arm.variant.clone(), arm.arm.clone())
        });
        let mut deltas = ArmDelta::of(trials.clone());
        deltas.sort_by_cached_key(|delta| position(&delta.agent, delta.model.as_deref()));
        let headlines = match is_sequential {
            true => Vec::new(),
            false => deltas.iter().map(|delta| headline(delta, trials.clone(), &arms)).collect(),
        };
        let is_different = |trial: &&TrialFigures| {
            let shared = trial.observation.shared.map(|(first, _)| first);
            trial.of.variant.is_some() && shared.is_some_and(|first| first != trial.observation.first)
        };
        let different_in_both_arms = trials.into_iter().filter(is_different).count();
        if is_sequential {
            arms.iter_mut().for_each(without_intervals);
            deltas.iter_mut().for_each(without_tests);
        }
        Self { arms, deltas, headlines, different_in_both_arms, is_sequential, decisions: Vec::new() }
    }

    /// Adds the decisions about the number of trials.
    pub(crate) fn with_decisions(self, decisions: &[DecisionRecord]) -> Self {
        Self { decisions: decisions.to_vec(), ..self }
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
        let is_alone = self.deltas.len() == 1;
        let fixed = self.deltas.iter().zip(&self.headlines).map(move |(delta, headline)| {
            if is_alone { headline.clone() } else { format!("{}: {headline}", without_variant(&delta.with)) }
        });
        fixed.chain(decisions::sentences(&self.decisions))
    }

    /// Returns the arms for which it is known whether the skill was triggered.
    pub(crate) fn triggering(&self) -> impl Iterator<Item = (&ArmSummary, &Triggering)> {
        self.arms.iter().filter_map(|arm| Some((arm, arm.trigger.as_ref()?)))
    }
}

/// Says whether the skill helps an agent, as `compare --by variant` does.
fn headline<'a>(delta: &ArmDelta, trials: impl IntoIterator<Item = &'a TrialFigures>, arms: &[ArmSummary]) -> String {
    let mut cases: BTreeMap<String, ([CaseSide; 2], Vec<Observation<_>>)> = BTreeMap::new();
    for trial in trials.into_iter().filter(|trial| trial.of.agent == delta.agent && trial.of.model == delta.model) {
        let side = match trial.of.variant.as_deref() {
            Some(WITHOUT_SKILL) => 0,
            Some(WITH_SKILL) => 1,
            _ => continue,
        };
        let (suite, case) = &trial.observation.case;
        let seen = trial.observation.clone().in_both_arms();
        let (sides, all) = cases.entry(format!("{suite}::{case}")).or_default();
        sides[side].add(seen.first, seen.first, seen.score);
        all.push(seen);
    }
    cases.retain(|_, (_, trials)| can_compare(trials.iter()));
    let mut paired: Vec<PairedCase<'_>> =
        cases.iter().map(|(name, ([before, after], _))| PairedCase { name, before, after, test: None }).collect();
    let tests = verdict::tests(&paired);
    paired.iter_mut().zip(tests).for_each(|(case, test)| case.test = test);
    let with_skill = arms.iter().find(|arm| arm.arm == delta.with);
    let unused = with_skill.and_then(|arm| arm.trigger.as_ref()?.unused());
    Decision::of(&paired).sentence(&SKILL, &paired, &[], unused)
}

/// Removes figures that are valid only for a fixed number of trials.
pub(crate) fn without_intervals(arm: &mut ArmSummary) {
    let statistics = &mut arm.statistics;
    // `pass@k` assumes that the number of trials of a case does not depend on their results.
    statistics.k = statistics.k.min(1);
    statistics.pass_at_k.clear();
    statistics.pass_hat_k.clear();
    let figures: [&mut Option<Estimate>; 4] =
        [&mut statistics.pass_rate, &mut statistics.duration_s, &mut statistics.tokens, &mut statistics.cost_usd];
    figures.into_iter().flatten().for_each(|figure| figure.ci95 = None);
    let bounded = [&mut statistics.full_pass_rate, &mut statistics.score];
    bounded.into_iter().flatten().for_each(|figure| figure.ci95 = None);
    if let Some(trigger) = &mut arm.trigger {
        without_trigger_intervals(trigger);
    }
}

fn without_trigger_intervals(trigger: &mut Triggering) {
    let figures = [&mut trigger.precision, &mut trigger.recall, &mut trigger.never];
    figures.into_iter().flatten().for_each(|figure| figure.ci95 = None);
}

/// Removes intervals and tests for a fixed number of trials. Without a test, a difference may be due to chance.
fn without_tests(delta: &mut ArmDelta) {
    without_test(&mut delta.delta);
    for suite in &mut delta.suites {
        without_test(&mut suite.delta);
        suite.trigger.iter_mut().for_each(without_trigger_intervals);
    }
    for case in &mut delta.cases {
        case.effect = match case.effect {
            CaseEffect::Helps => CaseEffect::MorePassed,
            CaseEffect::Harms => CaseEffect::FewerPassed,
            effect => effect,
        };
    }
}

pub(crate) fn without_test(delta: &mut Delta) {
    let figures: [&mut Option<Difference>; 4] =
        [&mut delta.pass_rate, &mut delta.duration_s, &mut delta.tokens, &mut delta.cost_usd];
    figures.into_iter().flatten().for_each(|figure| (figure.ci95, figure.p_value) = (None, 1.0));
    let bounded = [&mut delta.full_pass_rate, &mut delta.score];
    bounded.into_iter().flatten().for_each(|figure| (figure.ci95, figure.p_value) = (None, 1.0));
}

/// Returns an arm's name without its variant, such as `claude-code:haiku`.
pub(crate) fn without_variant(arm: &str) -> &str {
    let cut = |variant: &str| arm.strip_suffix(variant).and_then(|front| front.strip_suffix('+'));
    [model::WITH_SKILL, model::WITHOUT_SKILL, model::SKILLS_ONLY].into_iter().find_map(cut).unwrap_or(arm)
}
