//! Cases that passed and failed under equal settings.

use std::collections::{BTreeMap, HashMap, HashSet};

use model::statistics::Counted;
use model::{CaseResults, Outcome, RunResults, statistics};
use serde_json::{Value, json};

use super::{NAME, SPARKS, sparkline};
use crate::counts::described;
use crate::format::{counted, number};
use crate::names::Names;
use crate::terminal::Paint;
use crate::terminal::grid::{Cell, CellStyle, Grid};

/// Maximum number of flaky cases that are listed.
const FLAKY: usize = 10;

/// Results of a case under equal settings.
pub(crate) struct Flaky<'a> {
    pub(crate) case: &'a CaseResults,
    pub(crate) runs: usize,
    trials: usize,
    pub(crate) passed: usize,
    pub(crate) failed: usize,
    /// Number of trials that could have passed or failed.
    unknown: usize,
    /// Number of trials that passed only after another attempt failed.
    pub(crate) rerun: usize,
    rates: Vec<Option<f64>>,
    /// True if the case was quarantined in its last run.
    pub(crate) is_quarantined: bool,
    /// True if a later run had the case with other settings, or with another test.
    pub(crate) is_changed: bool,
}

impl Flaky<'_> {
    /// Returns what else is known about it, for a table.
    pub(crate) fn notes(&self) -> String {
        let notes = [(self.is_quarantined, "quarantined"), (self.is_changed, "changed since")];
        notes.into_iter().filter(|(is_so, _)| *is_so).map(|(_, note)| note).collect::<Vec<_>>().join(", ")
    }

    pub(super) fn to_json(&self) -> Value {
        json!({
            "suite": self.case.suite,
            "case": self.case.case,
            "arm": self.case.arm,
            "settings": self.case.settings,
            "runs": self.runs,
            "trials": self.trials,
            "passed": self.passed,
            "failed": self.failed,
            "unknown": self.unknown,
            "passed_after_rerun": self.rerun,
            "quarantined": self.is_quarantined,
            "changed": self.is_changed,
        })
    }

    /// Returns the trials by their last result.
    pub(crate) fn counted(&self) -> Counted {
        let [passed, failed, unknown] = [self.passed, self.failed, self.unknown].map(|count| count as u64);
        Counted { passed, failed, unknown }
    }

    /// Returns a lower bound for the share of the rarer outcome that the trials still support.
    fn rank(&self) -> f64 {
        let rarer = self.passed.min(self.failed + self.rerun);
        statistics::wilson(rarer as u64, (self.passed + self.failed) as u64)[0]
    }

    /// Returns `true` if it passed and failed by chance: within a run, in a rerun, or back and forth between runs. If
    /// it only changed once from one run to the next, something fixed it or broke it.
    fn is_flaky(&self) -> bool {
        let is_mixed = self.rates.iter().flatten().any(|rate| *rate > 0.0 && *rate < 1.0);
        let changes = self.rates.windows(2).filter(|rates| rates[0] != rates[1]).count();
        self.rerun > 0 || is_mixed || changes > 1
    }
}

/// Returns `true` if the arm reads recorded answers, so that each run grades the same ones.
fn is_recorded(case: &CaseResults) -> bool {
    case.arm == "recorded" || case.arm.starts_with("recorded:")
}

/// Returns the flaky cases, the most certain ones first. Each answer counts once: a run that grades the evidence of
/// another one again is left out, and of several runs that grade the same recorded answers, the newest counts.
pub(crate) fn flaky_cases(runs: &[RunResults]) -> Vec<Flaky<'_>> {
    type Key<'a> = (&'a str, &'a str, &'a str, &'a str);
    let mut cases: BTreeMap<Key<'_>, Flaky<'_>> = BTreeMap::new();
    let mut newest: HashMap<(&str, &str, &str), Option<&str>> = HashMap::new();
    let ids: HashSet<&str> = runs.iter().map(|run| run.run.id.as_str()).collect();
    let is_new = |run: &&RunResults| !run.run.regrade_of.as_ref().is_some_and(|of| ids.contains(of.as_str()));
    for run in runs.iter().rev().filter(is_new) {
        for case in run.cases.iter().filter(|case| !case.is_baseline()) {
            let (passed, failed) = (case.by_outcome.passed, case.by_outcome.failed);
            if passed + failed == 0 {
                continue;
            }
            // If the settings are unknown, only trials of the same run have equal ones.
            let settings = case.settings.as_deref().unwrap_or(&run.run.id);
            let none = Flaky {
                case,
                runs: 0,
                trials: 0,
                passed: 0,
                failed: 0,
                unknown: 0,
                rerun: 0,
                rates: Vec::new(),
                is_quarantined: false,
                is_changed: false,
            };
            let key = (&*case.suite, &*case.case, &*case.arm, settings);
            if is_recorded(case) {
                cases.remove(&key);
            }
            let flaky = cases.entry(key).or_insert(none);
            flaky.is_quarantined = case.quarantined;
            newest.insert((&*case.suite, &*case.case, &*case.arm), case.settings.as_deref());
            flaky.runs += 1;
            flaky.trials += case.trials();
            flaky.passed += passed;
            flaky.failed += failed;
            flaky.unknown += case.by_outcome.sum(Outcome::is_unknown);
            flaky.rerun += case.flaky;
            flaky.rates.push(Some(passed as f64 / (passed + failed) as f64));
        }
    }
    for ((suite, case, arm, _), flaky) in &mut cases {
        let newest = newest.get(&(*suite, *case, *arm)).copied().flatten();
        flaky.is_changed = flaky.case.settings.as_deref().zip(newest).is_some_and(|(own, newest)| own != newest);
    }
    let mut flaky: Vec<Flaky<'_>> = cases.into_values().filter(Flaky::is_flaky).collect();
    flaky.sort_by(|a, b| b.rank().total_cmp(&a.rank()));
    flaky
}

/// Returns the number of cases, each of which may be flaky with several settings.
pub(crate) fn cases_of(flaky: &[Flaky<'_>]) -> usize {
    let cases = flaky.iter().map(|flaky| (&flaky.case.suite, &flaky.case.case, &flaky.case.arm));
    cases.collect::<HashSet<_>>().len()
}

/// Returns the table of flaky cases.
pub(super) fn flaky_table(runs: &[RunResults], names: &Names, paint: &Paint) -> String {
    let flaky = flaky_cases(runs);
    if flaky.is_empty() {
        return String::new();
    }
    let mut grid =
        Grid::new(&[("case", 0), ("passed", 0), ("after a rerun", 2), ("runs", 1), ("by run", 3), ("", 4)]).left(1);
    for case in flaky.iter().take(FLAKY) {
        grid.row([
            paint.folded(&names.of_case(case.case), NAME).into(),
            described(case.counted()).into(),
            if case.rerun > 0 { number(case.rerun as u64) } else { String::new() }.into(),
            number(case.runs as u64).into(),
            sparkline(&case.rates[case.rates.len().saturating_sub(SPARKS)..], 1.0, paint).into(),
            Cell::new(case.notes(), CellStyle::Dim),
        ]);
    }
    let what = counted(cases_of(&flaky), "flaky case");
    let mut text =
        format!("\n{}\n{}", paint.bold(&format!("{what}: both outcomes under equal settings")), grid.draw(paint));
    if flaky.len() > FLAKY {
        text.push_str(&format!(
            "  {}\n",
            paint.dim(&format!("and {} more: trialrun trend --json", flaky.len() - FLAKY))
        ));
    }
    text
}
