//! Finished trials in the order of the plan, regardless of the order in which they finished, and their totals.

use std::collections::HashMap;
use std::sync::Arc;

use model::{AgentInfo, AuxiliaryUsage, Outcome, RunInfo, Summary, TrialFigures, TrialRecord};

use crate::arms::Arms;
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
        Arms::of(figures.into_iter().map(|(_, figures)| figures), &self.agents)
    }

    /// Returns the number of trials in two parts: `4 of 8 planned`, and `4 without the skill to compare with`.
    pub(crate) fn counted(&self) -> (String, String) {
        let finished = self.summary.trials + self.summary.all_quarantined();
        let mut trials = number(finished as u64);
        let planned = self.planned - self.planned_baseline;
        if finished < planned {
            trials.push_str(&format!(" of {} planned", number(planned as u64)));
        }
        let (baseline, planned) = (self.summary.baseline, self.planned_baseline);
        if planned == 0 {
            return (trials, String::new());
        }
        let of = if baseline < planned { format!(" of {}", number(planned as u64)) } else { String::new() };
        (trials, format!(", and {}{of} without the skill to compare with", number(baseline as u64)))
    }

    /// Returns the verdict on the run, which finished or was stopped by `signal`.
    pub(crate) fn verdict(&self, signal: Option<&str>) -> Verdict {
        let summary = &self.summary;
        let unfinished = self.planned.saturating_sub(summary.trials + summary.baseline + summary.all_quarantined());
        let mut reason: Vec<String> = Vec::new();
        let (word, outcome) = if summary.failed > 0 {
            reason.push(format!("{} of {} failed", summary.failed, counted(summary.trials, "trial")));
            ("FAIL", Outcome::Failed)
        } else {
            for (count, what) in [
                (summary.broken, "broken"),
                (summary.stale, "stale"),
                (summary.undecided - summary.passed_but_undecided - summary.not_judged, "undecided"),
                (summary.passed_but_undecided, "passed except for undecided assertions"),
                (summary.cancelled, "cancelled"),
                (unfinished, "not finished"),
            ] {
                if count > 0 {
                    reason.push(format!("{} {what}", counted(count, "trial")));
                }
            }
            if !reason.is_empty() || signal.is_some() {
                ("INCOMPLETE", Outcome::Broken)
            } else if summary.passed == 0 && summary.skipped > 0 {
                reason.push(format!("{} skipped", counted(summary.skipped, "trial")));
                ("NOTHING TESTED", Outcome::Broken)
            } else {
                let is_all_quarantined = summary.trials == 0 && summary.all_quarantined() > 0;
                reason.extend((!is_all_quarantined).then(|| format!("{} passed", counted(summary.passed, "trial"))));
                reason.extend((summary.not_judged > 0).then(|| format!("{} not judged", summary.not_judged)));
                ("PASS", Outcome::Passed)
            }
        };
        reason.extend(quarantined(summary));
        reason.extend(signal.map(|signal| format!("stopped by {signal}")));
        Verdict { word, outcome, reason: reason.join(", ") }
    }
}
