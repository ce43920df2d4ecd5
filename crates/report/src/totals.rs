//! Finished trials in the order of the plan, regardless of the order in which they finished, and their totals.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use model::{AgentInfo, AuxiliaryUsage, DecisionRecord, Gate, Outcome, RunInfo, Summary, TrialFigures, TrialRecord};

use crate::arms::Arms;
use crate::cassettes::CassetteTotals;
use crate::format::{counted, number, percent};
use crate::{counts, decisions};

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
    /// Reasons why trials were skipped, each once.
    skipped: BTreeSet<String>,
    gate: Gate,
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
            gate: Gate::from_settings(&info.settings),
            ..Self::default()
        }
    }

    /// Returns the conditions under which failed trials do not fail the run.
    pub(crate) fn gate(&self) -> Gate {
        self.gate
    }

    /// Adds a trial and returns its position in the plan.
    pub(crate) fn add(&mut self, record: &TrialRecord) -> usize {
        let place = self.place(&record.id);
        let is_baseline = record.is_baseline();
        self.summary.add(record);
        if record.outcome == Outcome::Cancelled && record.ending.is_none() && self.not_started.is_none() {
            self.not_started = record.reason.clone();
        }
        if record.outcome == Outcome::Skipped {
            self.skipped.extend(record.reason.clone());
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

    /// Returns the number of trials in two parts: `4 of 8 planned`, and `4 without the skill to compare with`. Trials of
    /// quarantined cases are counted separately, as in all formats.
    pub(crate) fn counted(&self) -> (String, String) {
        let quarantined = self.summary.all_quarantined();
        let finished = self.summary.trials;
        let mut trials = number(finished as u64);
        let spared = &self.summary.decisions;
        let spared_tested = spared.spared.saturating_sub(spared.spared_baseline);
        let planned = (self.planned - self.planned_baseline).saturating_sub(spared_tested + quarantined);
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
        Verdict::of(&EndedRun {
            summary: &self.summary,
            planned: self.planned,
            decisions: &self.decisions,
            not_started: self.not_started.as_deref(),
            skipped: self.skipped.first().map(String::as_str).filter(|_| self.skipped.len() == 1),
            gate: self.gate,
            signal,
        })
    }
}

/// Results of a run that finished or was stopped, for its verdict.
pub(crate) struct EndedRun<'a> {
    pub(crate) summary: &'a Summary,
    /// Number of planned trials.
    pub(crate) planned: usize,
    pub(crate) decisions: &'a [DecisionRecord],
    /// Reason why trials were not started.
    pub(crate) not_started: Option<&'a str>,
    /// Reason why trials were skipped, if it is the same for all.
    pub(crate) skipped: Option<&'a str>,
    pub(crate) gate: Gate,
    /// Signal that stopped the run.
    pub(crate) signal: Option<&'a str>,
}

/// Describes the pass rate and the required one: `pass rate 83% (5 of 6), at least 80% required`.
pub(crate) fn required(summary: &Summary, gate: Gate) -> Option<String> {
    Some(format!("pass rate {}, at least {} required", rate(summary)?, percent(gate.min_pass_rate?)))
}

/// Describes the pass rate of the first attempts: `67% (4 of 6)`, or `between 0% and 60%: 6 undecided of 10 trials`.
pub(crate) fn rate(summary: &Summary) -> Option<String> {
    let unknown = [(summary.undecided, "undecided"), (summary.broken, "broken"), (summary.stale, "stale")];
    let rate = counts::rate(summary.counted(), &unknown)?;
    Some(if summary.flaky > 0 { format!("{rate} at the first attempt") } else { rate })
}

impl Verdict {
    /// Returns the verdict on a run. It agrees with the exit code.
    pub(crate) fn of(run: &EndedRun<'_>) -> Self {
        let EndedRun { summary, planned, decisions, not_started, skipped, gate, signal } = *run;
        let finished = summary.trials + summary.baseline + summary.all_quarantined();
        let unfinished = planned.saturating_sub(finished + summary.decisions.spared);
        let mut reason: Vec<String> = Vec::new();
        let [not_met, open] = decisions::verdict(summary, decisions);
        let cancelled = (summary.cancelled > 0).then(|| {
            let reason = not_started.map_or_else(String::new, |reason| format!(" ({reason})"));
            format!("{} cancelled{reason}", counted(summary.cancelled, "trial"))
        });
        // Failed trials are ignored if enough trials passed. If no failure matters, the trials have still failed.
        let is_excused = gate.ignores_failures(summary) && !gate.no_fail_on_assertions;
        let (word, outcome) = if (summary.failures() > 0 || !not_met.is_empty()) && !is_excused {
            if summary.failures() > 0 {
                reason.push(format!("{} of {} failed", summary.failures(), counted(summary.trials, "trial")));
            }
            reason.extend(not_met);
            reason.extend(cancelled.filter(|_| not_started.is_some()));
            reason.extend(required(summary, gate));
            let ignored = "ignored by the exit code (--no-fail-on-assertions)";
            reason.extend(gate.no_fail_on_assertions.then(|| ignored.to_owned()));
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
            let skipped = (summary.skipped > 0).then(|| {
                let reason = skipped.map_or_else(String::new, |reason| format!(" ({reason})"));
                format!("{} skipped{reason}", counted(summary.skipped, "trial"))
            });
            if !reason.is_empty() || signal.is_some() {
                reason.extend(required(summary, gate));
                ("INCOMPLETE", Outcome::Broken)
            } else if summary.is_nothing() {
                reason.push(skipped.unwrap_or_else(|| "no trials".to_owned()));
                ("NOTHING TESTED", Outcome::Broken)
            } else {
                let is_all_quarantined = summary.trials == 0 && summary.all_quarantined() > 0;
                let passed = || match summary.failures() {
                    0 => format!("{} passed", counted(summary.passed, "trial")),
                    _ => format!("{} of {} passed", summary.passed, counted(summary.trials, "trial")),
                };
                let passed = decisions::met(decisions).unwrap_or_else(passed);
                reason.extend((!is_all_quarantined).then_some(passed));
                let flaky = || format!("{} of them only after a failed attempt", number(summary.flaky as u64));
                reason.extend((summary.flaky > 0).then(flaky));
                let marked = || format!("{} of them with signs of tampering", number(summary.passed_with_signs as u64));
                reason.extend((summary.passed_with_signs > 0).then(marked));
                reason.extend((summary.not_judged > 0).then(|| format!("{} not judged", summary.not_judged)));
                reason.extend(skipped);
                reason.extend(required(summary, gate));
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

    fn run(summary: &Summary) -> EndedRun<'_> {
        EndedRun {
            summary,
            planned: summary.trials,
            decisions: &[],
            not_started: None,
            skipped: None,
            gate: Gate::default(),
            signal: None,
        }
    }

    #[test]
    fn the_verdict_shows_the_required_pass_rate_and_agrees_with_the_exit_code() {
        let counts = |passed: usize, failed: usize, broken: usize| Summary {
            trials: passed + failed + broken,
            passed,
            failed,
            broken,
            ..Summary::default()
        };
        let describe = |summary: &Summary, gate: Gate| {
            let verdict = Verdict::of(&EndedRun { gate, ..run(summary) });
            let word = match gate.exit_code(summary) {
                0 => "PASS",
                1 => "FAIL",
                3 => "INCOMPLETE",
                _ => "NOTHING TESTED",
            };
            assert!(word == verdict.word || gate.no_fail_on_assertions, "{word} {}", verdict.reason);
            format!("{} {}", verdict.word, verdict.reason)
        };
        let least = Gate { min_pass_rate: Some(0.8), no_fail_on_assertions: false };
        let met = "PASS 5 of 6 trials passed, pass rate 83% (5 of 6), at least 80% required";
        assert_eq!(describe(&counts(5, 1, 0), least), met);
        let not_met = "FAIL 2 of 6 trials failed, pass rate 67% (4 of 6), at least 80% required";
        assert_eq!(describe(&counts(4, 2, 0), least), not_met);
        let open =
            "INCOMPLETE 1 trial broken, pass rate between 80% and 90%: 1 broken of 10 trials, at least 80% required";
        assert_eq!(describe(&counts(8, 1, 1), least), open);
        let unknown =
            "FAIL 2 of 10 trials failed, pass rate between 70% and 80%: 1 broken of 10 trials, at least 80% required";
        assert_eq!(describe(&counts(7, 2, 1), least), unknown);
        let ignoring = Gate { no_fail_on_assertions: true, ..Gate::default() };
        let ignored = "FAIL 1 of 6 trials failed, ignored by the exit code (--no-fail-on-assertions)";
        assert_eq!(describe(&counts(5, 1, 0), ignoring), ignored);
        let flaky = Summary { flaky: 2, skipped: 3, trials: 9, ..counts(6, 0, 0) };
        let passed = "PASS 6 trials passed, 2 of them only after a failed attempt, 3 trials skipped";
        assert_eq!(describe(&flaky, Gate::default()), passed);
        assert_eq!(describe(&Summary::default(), Gate::default()), "NOTHING TESTED no trials");
    }

    #[test]
    fn the_verdict_says_why_trials_were_not_started() {
        let reason = |failed: usize| {
            let summary = Summary { trials: 80, passed: 6 - failed, failed, cancelled: 74, ..Summary::default() };
            let not_started = Some("over its limit of 0.05 USD");
            let verdict = Verdict::of(&EndedRun { planned: 80, not_started, ..run(&summary) });
            format!("{} {}", verdict.word, verdict.reason)
        };
        assert_eq!(reason(0), "INCOMPLETE 74 trials cancelled (over its limit of 0.05 USD)");
        assert_eq!(reason(1), "FAIL 1 of 80 trials failed, 74 trials cancelled (over its limit of 0.05 USD)");
    }
}
