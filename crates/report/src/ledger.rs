//! Finished trials in the order of the plan, whenever they finished, and what they add up to.

use std::collections::HashMap;
use std::sync::Arc;

use model::{AgentInfo, Aside, Outcome, RunInfo, Summary, TrialFigures, TrialRecord};

use crate::arms::Arms;
use crate::figure::{counted, whole};

/// What reports keep of a run that goes on to tell what it came to.
pub(crate) struct Ledger {
    agents: Vec<AgentInfo>,
    /// Where each trial stands in the plan.
    places: HashMap<Arc<str>, usize>,
    planned: usize,
    /// How many of the planned trials are only there to be compared with.
    planned_baseline: usize,
    summary: Summary,
    /// What each attempt cost and whether it is of the baseline, by the place of its trial: a sum of fractions depends on
    /// their order.
    costs: Vec<(usize, f64, bool)>,
    /// What judging and playing users took, for the same reason.
    asides: Vec<(usize, [Option<Aside>; 2])>,
    figures: Vec<(usize, TrialFigures)>,
    /// Whether figures are kept of trials whose arm has no variant.
    compares: bool,
}

/// What a run came to, in a word and the reasons for it.
pub(crate) struct Verdict {
    pub(crate) word: &'static str,
    /// The outcome whose colour it has.
    pub(crate) outcome: Outcome,
    pub(crate) because: String,
}

impl Ledger {
    /// Of a run that begins. `compares` says whether it has anything to compare even where no arm has a variant.
    pub(crate) fn new(info: &RunInfo, compares: bool) -> Self {
        Self {
            agents: info.agents.clone(),
            places: info.trials.iter().enumerate().map(|(place, id)| (id.into(), place)).collect(),
            planned: info.trials.len(),
            planned_baseline: info.trials.iter().filter(|id| id.is_baseline()).count(),
            summary: Summary::default(),
            costs: Vec::new(),
            asides: Vec::new(),
            figures: Vec::new(),
            compares,
        }
    }

    /// Adds a trial; where it stands in the plan.
    pub(crate) fn add(&mut self, record: &TrialRecord) -> usize {
        let place = self.place(&record.id);
        let is_baseline = record.is_baseline();
        self.summary.add(record);
        let costs = record.attempts.iter().filter_map(|attempt| attempt.cost_usd);
        self.costs.extend(costs.map(|cost| (place, cost, is_baseline)));
        if record.judge.is_some() || record.user.is_some() {
            self.asides.push((place, [record.judge, record.user]));
        }
        if self.compares || record.variant.is_some() {
            self.figures.push((place, TrialFigures::of(record)));
        }
        place
    }

    /// Where a trial stands in the plan.
    pub(crate) fn place(&self, trial: &str) -> usize {
        self.places.get(trial).copied().unwrap_or(usize::MAX)
    }

    /// What the trials add up to.
    pub(crate) fn summary(&self) -> Summary {
        let (mut costs, mut asides) = (self.costs.clone(), self.asides.clone());
        costs.sort_by_key(|(place, ..)| *place);
        asides.sort_by_key(|(place, ..)| *place);
        let add = |one: Option<Aside>, more: Option<Aside>| match (one, more) {
            (Some(mut sum), Some(more)) => {
                sum += more;
                Some(sum)
            }
            (one, more) => one.or(more),
        };
        let fold = |which: usize| asides.iter().map(|(_, asides)| asides[which]).fold(None, add);
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

    /// The arms. None are told of a run that has nothing to compare.
    pub(crate) fn arms(&self) -> Arms {
        let mut figures: Vec<&(usize, TrialFigures)> = self.figures.iter().collect();
        figures.sort_by_key(|(place, _)| *place);
        Arms::of(figures.into_iter().map(|(_, figures)| figures), &self.agents)
    }

    /// How many trials there are: `4 of 8 planned, and 4 without the skill to compare with`, in its two parts.
    pub(crate) fn counted(&self) -> (String, String) {
        let mut trials = whole(self.summary.trials as u64);
        let planned = self.planned - self.planned_baseline;
        if self.summary.trials < planned {
            trials.push_str(&format!(" of {} planned", whole(planned as u64)));
        }
        let (baseline, planned) = (self.summary.baseline, self.planned_baseline);
        if planned == 0 {
            return (trials, String::new());
        }
        let of = if baseline < planned { format!(" of {}", whole(planned as u64)) } else { String::new() };
        (trials, format!(", and {}{of} without the skill to compare with", whole(baseline as u64)))
    }

    /// What the run came to, if it ended or was stopped by `signal`.
    pub(crate) fn verdict(&self, signal: Option<&str>) -> Verdict {
        let summary = &self.summary;
        let unfinished = self.planned.saturating_sub(summary.trials + summary.baseline);
        let mut because: Vec<String> = Vec::new();
        let (word, outcome) = if summary.failed > 0 {
            because.push(format!("{} of {} failed", summary.failed, counted(summary.trials, "trial")));
            ("FAIL", Outcome::Failed)
        } else {
            for (count, what) in [
                (summary.broken, "broken"),
                (summary.undecided - summary.passed_but_undecided, "undecided"),
                (summary.passed_but_undecided, "passed but for undecided assertions"),
                (summary.cancelled, "cancelled"),
                (unfinished, "not finished"),
            ] {
                if count > 0 {
                    because.push(format!("{} {what}", counted(count, "trial")));
                }
            }
            if because.is_empty() && signal.is_none() {
                because.push(format!("{} passed", counted(summary.passed, "trial")));
                ("PASS", Outcome::Passed)
            } else {
                ("INCOMPLETE", Outcome::Broken)
            }
        };
        because.extend(signal.map(|signal| format!("stopped by {signal}")));
        Verdict { word, outcome, because: because.join(", ") }
    }
}
