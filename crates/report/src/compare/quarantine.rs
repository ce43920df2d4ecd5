//! Cases in quarantine, which are not compared.

use std::collections::{BTreeMap, BTreeSet};

use model::{Outcome, TrialRow};

use crate::format::counted;

/// Maximum number of cases that are named.
const NAMED: usize = 5;

/// Cases by suite and id.
pub(super) type Cases<'a> = BTreeSet<(&'a str, &'a str)>;

/// Returns the cases of those trials that are in quarantine.
pub(super) fn cases<'a>(trials: impl Iterator<Item = &'a TrialRow>) -> Cases<'a> {
    trials.filter(|trial| trial.quarantined).map(key).collect()
}

/// Returns `true` if the trial belongs to one of the cases.
pub(super) fn contains(cases: &Cases<'_>, trial: &TrialRow) -> bool {
    !cases.is_empty() && cases.contains(&key(trial))
}

fn key(trial: &TrialRow) -> (&str, &str) {
    (&trial.suite, &trial.case)
}

/// Returns the names of the cases, as a comparison shows them.
pub(super) fn names(cases: &Cases<'_>) -> BTreeSet<String> {
    cases.iter().map(|(suite, case)| format!("{suite}::{case}")).collect()
}

/// Counts the cases and names the first ones: `2 cases in quarantine (a::b, a::c)`.
pub(super) fn describe(names: &BTreeSet<String>) -> String {
    let mut named: Vec<&str> = names.iter().take(NAMED).map(String::as_str).collect();
    let more = format!("{} more", names.len().saturating_sub(NAMED));
    if names.len() > NAMED {
        named.push(&more);
    }
    format!("{} in quarantine ({})", counted(names.len(), "case"), named.join(", "))
}

/// Says which cases are newly in quarantine, and what became of their trials; `None` if there are none.
pub(super) fn describe_new(names: &BTreeSet<String>, results: &BTreeMap<Outcome, usize>) -> Option<String> {
    describe_change(names, "newly in quarantine", results)
}

/// Says which cases are no longer in quarantine, and what became of their trials; `None` if there are none.
pub(super) fn describe_released(names: &BTreeSet<String>, results: &BTreeMap<Outcome, usize>) -> Option<String> {
    describe_change(names, "no longer in quarantine", results)
}

fn describe_change(names: &BTreeSet<String>, change: &str, results: &BTreeMap<Outcome, usize>) -> Option<String> {
    let cases = match (names.len(), names.first()?) {
        (1, name) => format!("case {name} is"),
        (cases, _) => format!("{} are", counted(cases, "case")),
    };
    let results = results.iter().map(|(outcome, count)| format!("{count} {}", outcome.name()));
    Some(format!("{cases} {change} ({})", results.collect::<Vec<_>>().join(", ")))
}
