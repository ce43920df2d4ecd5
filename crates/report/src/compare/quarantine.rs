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

/// Cases whose quarantine began or ended between two runs.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Moved {
    pub(super) names: BTreeSet<String>,
    /// Outcomes of their trials on each side, with their numbers.
    results: [BTreeMap<Outcome, usize>; 2],
}

impl Moved {
    /// Collects those of `cases` that have trials on the second of two `sides`, whose trials are under test.
    pub(super) fn of(cases: &Cases<'_>, sides: [&[&TrialRow]; 2]) -> Self {
        let found: Cases<'_> = sides[1].iter().map(|trial| key(trial)).filter(|key| cases.contains(key)).collect();
        let results = sides.map(|trials| {
            let mut results = BTreeMap::new();
            for trial in trials.iter().filter(|trial| contains(&found, trial)) {
                *results.entry(trial.outcome).or_default() += 1;
            }
            results
        });
        Self { names: names(&found), results }
    }

    /// Says which cases these are, that they are `newly in quarantine` or another `change`, and what became of their
    /// trials; `None` if there are none.
    pub(super) fn describe(&self, change: &str) -> Option<String> {
        let cases = match (self.names.len(), self.names.first()?) {
            (1, name) => format!("case {name} is"),
            (cases, _) => format!("{} are", counted(cases, "case")),
        };
        let [before, after] = self.results.each_ref().map(|results| {
            let results = results.iter().map(|(outcome, count)| format!("{count} {}", outcome.name()));
            results.collect::<Vec<_>>().join(", ")
        });
        let results = if before.is_empty() { after } else { format!("{after}; before: {before}") };
        Some(format!("{cases} {change} ({results})"))
    }
}
