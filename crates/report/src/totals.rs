//! Finished trials in the order of the plan, regardless of the order in which they finished, and their totals.

use std::collections::HashMap;
use std::sync::Arc;

use model::{AgentInfo, AuxiliaryUsage, DecisionRecord, Outcome, RunInfo, Summary, TrialFigures, TrialRecord};

use crate::arms::Arms;
use crate::cassettes::CassetteTotals;
use crate::decisions;
use crate::format::{counted, number};

/// State that reports keep about a run in progress to summarise it.
#[derive(Default)]
pub(crate) struct RunTotals {
    agents: Vec<AgentInfo>,
    /// Position of each trial in the plan.
    places: HashMap<Arc<str>, usize>,
    planned: usize,
    /// Number of planned baseline trials.
    planned_baseline: usize,
    summary: Summary,
    /// Cost of each attempt, with the position of its trial and `true` for the baseline. Costs are added in the order
    /// of the plan, because a sum of floating-point numbers depends on the order.
    costs: Vec<(usize, f64, bool)>,
    /// Usage of judges and simulated users, kept by position for the same reason.
    auxiliary_usages: Vec<(usize, [Option<AuxiliaryUsage>; 2])>,
    figures: Vec<(usize, TrialFigures)>,
    cassettes: CassetteTotals,
    /// Decisions in the order in which they were made.
    decisions: Vec<DecisionRecord>,
    /// Reason why trials were not started.
    not_started: Option<String>,
    /// `true` to keep figures even for trials whose arm has no variant.
    compares: bool,
}

/// Verdict on a run: one word and the reasons.
pub(crate) struct Verdict {
    pub(crate) word: &'static str,
    /// Outcome that determines the colour.
    pub(crate) outcome: Outcome,
    pub(crate) reason: String,
}

/// Describes the results of quarantined cases: `2 quarantined: 1 failed`. `None` if there are none.
pub(crate) fn quarantined(summary: &Summary) -> Option<String> {
    let all = summary.all_quarantined();
    let noted = summary.quarantined.iter().filter(|(outcome, _)| **outcome != Outcome::Passed);
    let noted: Vec<String> = noted.map(|(outcome, count)| format!("{count} {}", outcome.name())).collect();
    let noted = if noted.is_empty() { "all passed".to_owned() } else { noted.join(", ") };
    (all > 0).then(|| format!("{} quarantined: {noted}", number(all as u64)))
}

impl RunTotals {
    /// Creates the totals of a run that starts. `compares` is `true` if the run has something to compare even if no
    /// arm has a variant.
    pub(crate) fn new(info: &RunInfo, compares: bool) -> Self {
        Self {
            agents: info.agents.clone(),
            places: info.trials.iter().enumerate().map(|(place, id)| (id.into(), place)).collect(),
            planned: info.trials.len(),
            planned_baseline: info.trials.iter().filter(|id| id.is_baseline()).count(),
            compares,
            ..Self::default()
        }
    }

    /// Adds a trial and returns its position in the plan.
    pub(crate) fn add(&mut self, record: &TrialRecord) -> usize {
        let place = self.place(&record.id);
        let is_baseline = record.is_baseline();
        self.summary.add(record);
        if record.outcome == Outcome::Cancelled && record.ending.is_none() && self.not_started.is_none() {
            self.not_started = record.reason.clone();
        }
        if let Some(used) = &record.cassette {
            self.cassettes.add(used);
        }
        let costs = record.attempts.iter().filter_map(|attempt| attempt.cost_usd);
        self.costs.extend(costs.map(|cost| (place, cost, is_baseline)));
        if record.judge.is_some() || record.user.is_some() {
            self.auxiliary_usages.push((place, [record.judge, record.user]));
        }
        if record.quarantine.is_none() && (self.compares || record.variant.is_some()) {
            self.figures.push((place, TrialFigures::from_record(record)));
        }
        place
    }

    /// Describes the use of cassettes; `None` if nothing was recorded or replayed.
    pub(crate) fn cassettes(&self) -> Option<String> {
        self.cassettes.describe()
    }

    /// Adds a decision about the number of trials.
    pub(crate) fn decide(&mut self, decision: &DecisionRecord) {
        self.summary.decide(decision);
        self.decisions.push(decision.clone());
    }

    /// Returns `true` if there is already a decision about the same question.
    pub(crate) fn has(&self, decision: &DecisionRecord) -> bool {
        let key =
            |it: &DecisionRecord| (it.question, it.suite.clone(), it.case.clone(), it.arm.clone(), it.versus.clone());
        self.decisions.iter().any(|known| key(known) == key(decision))
    }

    /// Returns the decisions in plan order.
    pub(crate) fn decisions(&self) -> Vec<DecisionRecord> {
        let first = |decision: &DecisionRecord| {
            let trial = |repetition: u64| {
                let case = format!("{}::{}", decision.suite.as_deref()?, decision.case.as_deref()?);
                self.places.get(format!("{case}@{}#{repetition}", decision.arm).as_str()).copied()
            };
            trial(1).unwrap_or(usize::MAX)
        };
        let mut decisions = self.decisions.clone();
        decisions.sort_by_cached_key(first);
        decisions
    }

    /// Returns the position of a trial in the plan.
    pub(crate) fn place(&self, trial: &str) -> usize {
        self.places.get(trial).copied().unwrap_or(usize::MAX)
    }

    /// Returns the totals of the trials.
    pub(crate) fn summary(&self) -> Summary {
        let (mut costs, mut auxiliary_usages) = (self.costs.clone(), self.auxiliary_usages.clone());
        costs.sort_by_key(|(place, ..)| *place);
        auxiliary_usages.sort_by_key(|(place, ..)| *place);
        let add = |one: Option<AuxiliaryUsage>, more: Option<AuxiliaryUsage>| match (one, more) {
            (Some(mut sum), Some(more)) => {
                sum += more;
                Some(sum)
            }
            (one, more) => one.or(more),
        };
        let fold =
            |which: usize| auxiliary_usages.iter().map(|(_, auxiliary_usages)| auxiliary_usages[which]).fold(None, add);
        let sum = |wanted: fn(bool) -> bool| {
            let costs = costs.iter().filter(|(.., is_baseline)| wanted(*is_baseline));
            costs.map(|(_, cost, _)| *cost).reduce(|sum, cost| sum + cost)
        };
        Summary {
            cost_usd: sum(|_| true),
            baseline_cost_usd: sum(|is_baseline| is_baseline),
            judge: fold(0),
            user: fold(1),
            ..self.summary.clone()
        }
    }

    /// Returns the arms; none if the run has nothing to compare.
    pub(crate) fn arms(&self) -> Arms {
        let mut figures: Vec<&(usize, TrialFigures)> = self.figures.iter().collect();
        figures.sort_by_key(|(place, _)| *place);
        Arms::of(figures.into_iter().map(|(_, figures)| figures), &self.agents).with_decisions(&self.decisions())
    }

    /// Returns the number of trials in two parts: `4 of 8 planned`, and `4 without the skill to compare with`.
    pub(crate) fn counted(&self) -> (String, String) {
        let finished = self.summary.trials + self.summary.all_quarantined();
        let mut trials = number(finished as u64);
        let spared = &self.summary.decisions;
        let spared_tested = spared.spared.saturating_sub(spared.spared_baseline);
        let planned = (self.planned - self.planned_baseline).saturating_sub(spared_tested);
        if finished < planned {
            trials.push_str(&format!(" of {} planned", number(planned as u64)));
        }
        if spared_tested > 0 {
            let most = (self.planned - self.planned_baseline) as u64;
            trials.push_str(&format!(" (at most {}; {} not needed)", number(most), number(spared_tested as u64)));
        }
        let (baseline, planned) = (self.summary.baseline, self.planned_baseline.saturating_sub(spared.spared_baseline));
        if self.planned_baseline == 0 {
            return (trials, String::new());
        }
        let of = if baseline < planned { format!(" of {}", number(planned as u64)) } else { String::new() };
        (trials, format!(", and {}{of} without the skill to compare with", number(baseline as u64)))
    }

    /// Returns the verdict on the run, which finished or was stopped by `signal`.
    pub(crate) fn verdict(&self, signal: Option<&str>) -> Verdict {
        Verdict::of(&self.summary, self.planned, &self.decisions, self.not_started.as_deref(), signal)
    }
}

impl Verdict {
    /// Returns the verdict on a run with `planned` trials, which finished or was stopped by `signal`. `not_started` is
    /// the reason why trials were not started.
    pub(crate) fn of(
        summary: &Summary,
        planned: usize,
        decisions: &[DecisionRecord],
        not_started: Option<&str>,
        signal: Option<&str>,
    ) -> Self {
        let finished = summary.trials + summary.baseline + summary.all_quarantined();
        let unfinished = planned.saturating_sub(finished + summary.decisions.spared);
        let mut reason: Vec<String> = Vec::new();
        let [not_met, open] = decisions::verdict(summary, decisions);
        let cancelled = (summary.cancelled > 0).then(|| {
            let reason = not_started.map_or_else(String::new, |reason| format!(" ({reason})"));
            format!("{} cancelled{reason}", counted(summary.cancelled, "trial"))
        });
        let (word, outcome) = if summary.failures() > 0 || !not_met.is_empty() {
            if summary.failures() > 0 {
                reason.push(format!("{} of {} failed", summary.failures(), counted(summary.trials, "trial")));
            }
            reason.extend(not_met);
            reason.extend(cancelled.filter(|_| not_started.is_some()));
            ("FAIL", Outcome::Failed)
        } else {
            // Trials that a required pass rate covers are already part of its decision.
            let (broken, undecided) = if summary.decisions.open_trials > 0 {
                (
                    0,
                    summary.open().saturating_sub(summary.cancelled + summary.open_stale())
                        + summary.passed_but_undecided,
                )
            } else {
                (summary.broken, summary.undecided.saturating_sub(summary.not_judged))
            };
            for (count, what) in [
                (broken, "broken"),
                (summary.open_stale(), "stale"),
                (undecided.saturating_sub(summary.passed_but_undecided), "undecided"),
                (summary.passed_but_undecided.min(undecided), "passed except for undecided assertions"),
                (unfinished, "not finished"),
            ] {
                if count > 0 {
                    reason.push(format!("{} {what}", counted(count, "trial")));
                }
            }
            reason.extend(cancelled);
            reason.extend(open);
            if !reason.is_empty() || signal.is_some() {
                ("INCOMPLETE", Outcome::Broken)
            } else if summary.passed == 0 && summary.skipped > 0 {
                reason.push(format!("{} skipped", counted(summary.skipped, "trial")));
                ("NOTHING TESTED", Outcome::Broken)
            } else {
                let is_all_quarantined = summary.trials == 0 && summary.all_quarantined() > 0;
                let passed = || format!("{} passed", counted(summary.passed, "trial"));
                let passed = decisions::met(decisions).unwrap_or_else(passed);
                reason.extend((!is_all_quarantined).then_some(passed));
                reason.extend((summary.not_judged > 0).then(|| format!("{} not judged", summary.not_judged)));
                ("PASS", Outcome::Passed)
            }
        };
        reason.extend(quarantined(summary));
        reason.extend(signal.map(|signal| format!("stopped by {signal}")));
        Self { word, outcome, reason: reason.join(", ") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_verdict_says_why_trials_were_not_started() {
        let reason = |failed: usize| {
            let summary = Summary { trials: 80, passed: 6 - failed, failed, cancelled: 74, ..Summary::default() };
            let verdict = Verdict::of(&summary, 80, &[], Some("over its limit of 0.05 USD"), None);
            format!("{} {}", verdict.word, verdict.reason)
        };
        assert_eq!(reason(0), "INCOMPLETE 74 trials cancelled (over its limit of 0.05 USD)");
        assert_eq!(reason(1), "FAIL 1 of 80 trials failed, 74 trials cancelled (over its limit of 0.05 USD)");
    }
}
