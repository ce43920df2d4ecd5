//! Trials with and without a skill, reduced to what both arms can meet.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use model::statistics::{Observation, Trigger, Triggering, can_compare};
use model::{SKILLS_ONLY, TrialFigures, TrialRow, WITH_SKILL, WITHOUT_SKILL};

use crate::arms::without_variant;
use crate::format::counted;

/// Arms of a case that has a skill or a plug-in, from the one with the least of it.
pub(super) const ARMS: [&str; 3] = [WITHOUT_SKILL, SKILLS_ONLY, WITH_SKILL];

/// Explains what a comparison with and without a skill leaves out.
pub(super) const NOTE: &str = "Assertions about the use of the skill are not compared: only trials with the skill have \
                               them.";

/// Suite and id of the case, the arm and the repetition.
type Key = ((Arc<str>, Arc<str>), Arc<str>, u64);

/// Returns the trials that have a variant, with the outcome and the score by the assertions that both arms have, and the
/// names of the cases that have none.
pub(super) fn shared(trials: &[TrialRow], figures: &[TrialFigures]) -> (Vec<TrialRow>, BTreeSet<String>) {
    let key = |trial: &TrialFigures| (trial.observation.case.clone(), trial.arm.clone(), trial.repetition);
    let figures: HashMap<Key, &TrialFigures> = figures.iter().map(|trial| (key(trial), trial)).collect();
    let mut rows = Vec::new();
    let mut cases: BTreeMap<String, Vec<Observation<_>>> = BTreeMap::new();
    for trial in trials.iter().filter(|trial| trial.variant.is_some()) {
        let case = (trial.suite.as_str().into(), trial.case.as_str().into());
        let key: Key = (case, trial.arm.as_str().into(), trial.repetition);
        let found = figures.get(&key);
        let mut row = trial.clone();
        let seen = found.map(|trial| trial.observation.clone().in_both_arms());
        if let Some(seen) = &seen {
            (row.outcome, row.flaky, row.score_bounds) = (seen.first, false, seen.score);
        }
        cases.entry(format!("{}::{}", trial.suite, trial.case)).or_default().extend(seen);
        rows.push(row);
    }
    cases.retain(|_, trials| !can_compare(trials.iter()));
    rows.retain(|row| !cases.contains_key(&format!("{}::{}", row.suite, row.case)));
    (rows, cases.into_keys().collect())
}

/// Returns the number of trials of an agent and a model in which it should have used the skill, if it never did.
pub(super) fn unused(figures: &[TrialFigures], agent: &str) -> Option<u64> {
    let with_skill = figures
        .iter()
        .filter(|trial| trial.of.variant.as_deref() == Some(WITH_SKILL) && without_variant(&trial.arm) == agent);
    let triggers: Vec<Trigger> = with_skill.filter_map(|trial| trial.trigger).collect();
    Triggering::from_triggers(triggers).unused()
}

/// Counts the cases that assert only whether the skill is used; `None` if there are none.
pub(super) fn describe(cases: &BTreeSet<String>) -> Option<String> {
    let assert = if cases.len() == 1 { "asserts" } else { "assert" };
    (!cases.is_empty())
        .then(|| format!("{} that {assert} only whether the skill is used", counted(cases.len(), "case")))
}
