//! Counts over finished trials. This is the only place that counts them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{AuxiliaryUsage, DecisionCounts, DecisionRecord, Outcome, Tokens, TrialRecord, Usage};

/// Summary of a run's results.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Summary {
    /// Number of trials that have an outcome, excluding those that serve only for comparison and those of quarantined
    /// cases.
    pub trials: usize,
    /// Number of trials that serve only for comparison: the agent without the skill.
    #[serde(skip_serializing_if = "is_zero")]
    pub baseline: usize,
    /// Numbers of trials of quarantined cases by outcome. They are not counted anywhere else, except for their usage.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub quarantined: BTreeMap<Outcome, usize>,
    /// Number of passed trials.
    pub passed: usize,
    /// Number of failed trials.
    pub failed: usize,
    /// Number of undecided trials.
    pub undecided: usize,
    /// Number of `undecided` trials whose decided assertions all pass, excluding those that are `not_judged`.
    pub passed_but_undecided: usize,
    /// Number of `undecided` trials that lack only judgements, because they are outside the sample that the judge
    /// decides. They do not make the run incomplete.
    #[serde(skip_serializing_if = "is_zero")]
    pub not_judged: usize,
    /// Sample of trials that the judge decides; absent if the judge decides all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub judge_sample: Option<SampledTrials>,
    /// Number of trials broken by infrastructure.
    pub broken: usize,
    /// Number of trials in which a request had no recorded answer.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub stale: usize,
    /// Number of skipped trials.
    pub skipped: usize,
    /// Number of cancelled trials.
    pub cancelled: usize,
    /// Number of trials that passed only after a failed attempt.
    pub flaky: usize,
    /// Share of the `decided` trials that passed; absent if there are none. If nothing is undecided, this is passed /
    /// (passed + failed).
    pub pass_rate: Option<f64>,
    /// Graded trials in which nothing is undecided: the basis of `pass_rate`.
    pub decided: Passes,
    /// Trials that have a decided assertion; `passed` counts those whose decided assertions all pass.
    pub by_decided: Passes,
    /// Tokens of all trials whose tokens are known, including baseline trials; absent if none are.
    pub tokens: Option<Tokens>,
    /// Part of `tokens` used by trials that serve only for comparison.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub baseline_tokens: Option<Tokens>,
    /// US dollars of all trials whose cost is known, including baseline trials; absent if none is.
    pub cost_usd: Option<f64>,
    /// Part of `cost_usd` for trials that serve only for comparison.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub baseline_cost_usd: Option<f64>,
    /// Number of trials whose cost is known, including baseline trials.
    pub trials_with_cost: usize,
    /// Counts of the decisions about the number of trials.
    #[serde(skip_serializing_if = "DecisionCounts::is_empty")]
    pub decisions: DecisionCounts,
    /// Requests and usage of judge models; absent if no model was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub judge: Option<AuxiliaryUsage>,
    /// Requests and usage of simulated users; absent if there were none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<AuxiliaryUsage>,
}

/// Trials with judged assertions, if the judge decides only a random sample.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SampledTrials {
    /// Number of trials with judged assertions.
    pub trials: usize,
    /// Number of these in the sample.
    pub judged: usize,
    /// Fully decided trials in the sample. Their pass rate estimates the rate of all trials with judged assertions.
    pub decided: Passes,
}

/// Number of trials in a group, and how many of them passed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Passes {
    /// Number of trials.
    pub trials: usize,
    /// Number of them that passed.
    pub passed: usize,
}

impl Passes {
    /// Returns the share that passed; `None` for no trials.
    pub fn rate(&self) -> Option<f64> {
        (self.trials > 0).then(|| self.passed as f64 / self.trials as f64)
    }

    fn add(&mut self, passed: bool) {
        self.trials += 1;
        self.passed += usize::from(passed);
    }
}

impl Summary {
    /// Counts one more trial. A trial that serves only for comparison counts with its usage, but not with its outcome.
    pub fn add(&mut self, trial: &TrialRecord) {
        let mut took = Usage::default();
        for attempt in &trial.attempts {
            took += Usage { tokens: attempt.usage, cost_usd: attempt.cost_usd };
        }
        add(&mut self.tokens, &mut self.cost_usd, took);
        if trial.is_baseline() {
            self.baseline += 1;
            add(&mut self.baseline_tokens, &mut self.baseline_cost_usd, took);
        } else if trial.quarantine.is_some() && trial.outcome != Outcome::Cancelled {
            *self.quarantined.entry(trial.outcome).or_default() += 1;
        } else {
            self.count_outcome(trial);
        }
        self.trials_with_cost += usize::from(trial.cost_usd.is_some());
        if let Some(judge) = trial.judge {
            *self.judge.get_or_insert_default() += judge;
        }
        if let Some(user) = trial.user {
            *self.user.get_or_insert_default() += user;
        }
    }

    /// Counts a decision.
    pub fn decide(&mut self, decision: &DecisionRecord) {
        self.decisions.add(decision);
    }

    /// Summarises `trials`.
    pub fn of<'a>(trials: impl IntoIterator<Item = &'a TrialRecord>) -> Self {
        let mut summary = Self::default();
        trials.into_iter().for_each(|trial| summary.add(trial));
        summary
    }

    /// Counts the outcome of a trial.
    fn count_outcome(&mut self, trial: &TrialRecord) {
        self.trials += 1;
        match trial.outcome {
            Outcome::Passed => self.passed += 1,
            Outcome::Failed => self.failed += 1,
            Outcome::Undecided => self.undecided += 1,
            Outcome::Broken => self.broken += 1,
            Outcome::Stale => self.stale += 1,
            Outcome::Skipped => self.skipped += 1,
            Outcome::Cancelled => self.cancelled += 1,
        }
        self.flaky += usize::from(trial.flaky);
        let is_not_judged = trial.is_not_judged();
        self.not_judged += usize::from(is_not_judged);
        self.passed_but_undecided += usize::from(trial.passed_but_for().is_some() && !is_not_judged);
        let is_decided = trial.outcome.is_graded() && trial.undecided() == 0;
        if is_decided {
            self.decided.add(trial.outcome == Outcome::Passed);
        }
        if let Some(is_sampled) = trial.judge_sampled {
            let sample = self.judge_sample.get_or_insert_default();
            sample.trials += 1;
            sample.judged += usize::from(is_sampled);
            if is_sampled && is_decided {
                sample.decided.add(trial.outcome == Outcome::Passed);
            }
        }
        if let Some(passed) = trial.decided_pass() {
            self.by_decided.add(passed);
        }
        self.pass_rate = self.decided.rate();
        if trial.is_sample() {
            self.count_sample(trial);
        }
    }

    /// Counts a trial whose case is decided by its pass rate.
    fn count_sample(&mut self, trial: &TrialRecord) {
        let decisions = &mut self.decisions;
        match trial.outcome {
            Outcome::Failed => decisions.failed_trials += 1,
            Outcome::Undecided | Outcome::Broken => decisions.open_trials += usize::from(!trial.is_not_judged()),
            Outcome::Stale => decisions.stale_trials += 1,
            Outcome::Passed | Outcome::Skipped | Outcome::Cancelled => {}
        }
        decisions.partial_trials += usize::from(trial.outcome.is_graded() && trial.undecided() > 0);
    }

    /// Returns `true` if the run's result depends on a trial or decision that is still open.
    pub fn is_incomplete(&self) -> bool {
        let partial = (self.passed + self.failed).saturating_sub(self.decided.trials);
        let partial = partial > self.decisions.partial_trials;
        partial || self.open() > 0 || self.decisions.undecided > 0
    }

    /// Returns the number of failed trials that make the run fail.
    pub fn failures(&self) -> usize {
        self.failed.saturating_sub(self.decisions.failed_trials)
    }

    /// Returns the number of trials that leave the run incomplete, because they have no result although one was wanted.
    pub fn open(&self) -> usize {
        let undecided = self.undecided.saturating_sub(self.not_judged);
        let open = undecided + self.broken + self.stale + self.cancelled;
        open.saturating_sub(self.decisions.open_trials + self.decisions.stale_trials)
    }

    /// Returns the number of stale trials that leave the run incomplete.
    pub fn open_stale(&self) -> usize {
        self.stale.saturating_sub(self.decisions.stale_trials)
    }

    /// Returns the number of trials with that outcome, without the baseline.
    pub fn count(&self, outcome: Outcome) -> usize {
        match outcome {
            Outcome::Passed => self.passed,
            Outcome::Failed => self.failed,
            Outcome::Undecided => self.undecided,
            Outcome::Broken => self.broken,
            Outcome::Stale => self.stale,
            Outcome::Skipped => self.skipped,
            Outcome::Cancelled => self.cancelled,
        }
    }

    /// Returns the number of trials of quarantined cases.
    pub fn all_quarantined(&self) -> usize {
        self.quarantined.values().sum()
    }

    /// Returns the exit code of the run: 1 if a trial failed or a pass rate is too low, 3 if a result is missing
    /// although it was wanted, 4 if every trial was skipped, otherwise 0.
    pub fn exit_code(&self) -> u8 {
        if self.failures() > 0 || self.decisions.not_met > 0 {
            1
        } else if self.open() > 0 || self.decisions.undecided > 0 {
            3
        } else if self.passed == 0 && self.skipped > 0 {
            4
        } else {
            0
        }
    }
}

/// Adds the known amounts of `more`.
fn add(tokens: &mut Option<Tokens>, cost_usd: &mut Option<f64>, more: Usage) {
    let mut sum = Usage { tokens: *tokens, cost_usd: *cost_usd };
    sum += more;
    (*tokens, *cost_usd) = (sum.tokens, sum.cost_usd);
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// Mean with its uncertainty.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// Mean.
    pub mean: f64,
    /// Standard deviation of the sample; absent for one value.
    pub stddev: Option<f64>,
    /// 95 % interval, if it is defined.
    pub ci95: Option<[f64; 2]>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TrialFigures;
    use crate::statistics::Trigger;
    use serde_json::{Value, json};

    fn trial(changes: &Value) -> TrialRecord {
        let mut record = json!({
            "id": "", "suite": "s", "case": "c", "arm": "a", "agent": "a", "repetition": 1, "outcome": "passed",
            "findings": [], "input": [], "turn_count": 0, "duration_ms": 0, "started_at": "2026-11-21T21:48:00Z",
            "attempts": [{ "outcome": "passed", "usage": { "input": 10 }, "cost_usd": 0.5, "duration_ms": 0 }],
            "cost_usd": 0.5,
        });
        record.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
        serde_json::from_value(record).unwrap()
    }

    #[test]
    fn baseline_outcomes_are_not_counted_and_baseline_usage_is_separate() {
        let trials = [
            trial(&json!({ "variant": "with_skill" })),
            trial(&json!({ "variant": "without_skill", "outcome": "failed" })),
        ];
        let summary = Summary::of(&trials);
        assert_eq!((summary.trials, summary.baseline, summary.failed, summary.exit_code()), (1, 1, 0, 0));
        assert_eq!((summary.cost_usd, summary.baseline_cost_usd, summary.trials_with_cost), (Some(1.0), Some(0.5), 2));
        let total = |tokens: Option<Tokens>| tokens.map(|tokens| tokens.total());
        assert_eq!((total(summary.tokens), total(summary.baseline_tokens)), (Some(20), Some(10)));
        let alone = Summary::of(&trials[..1]);
        assert_eq!((alone.baseline_cost_usd, alone.baseline_tokens), (None, None));
        assert!(serde_json::to_value(alone).unwrap().get("baseline_cost_usd").is_none(), "as before");
    }

    #[test]
    fn trials_of_a_case_with_a_required_pass_rate_do_not_decide_the_result_but_its_decision_does() {
        let auto = json!({ "most": 20, "pass_rate": { "at_least": 0.9, "tolerance": 0.1 } });
        let sample = |outcome: &str| trial(&json!({ "outcome": outcome, "auto_trials": auto }));
        let decision = |answer: &str, quarantined: bool| -> DecisionRecord {
            serde_json::from_value(json!({
                "question": { "type": "pass_rate", "at_least": 0.9, "tolerance": 0.1 }, "arm": "a", "answer": answer,
                "stopped_by": "decided", "trials": 2, "max_trials": 20, "cases": 1, "passed": 1, "failed": 1,
                "undecided": 0, "estimate": 0.5, "confidence_sequence": [0.1, 0.9], "confidence": 0.95, "spared": 18,
                "quarantined": quarantined,
            }))
            .unwrap()
        };
        let summary = |answer: &str| {
            let mut summary = Summary::of(&["passed", "failed", "broken", "stale"].map(sample));
            summary.decide(&decision(answer, false));
            summary
        };
        assert_eq!((summary("met").exit_code(), summary("met").is_incomplete()), (0, false));
        assert_eq!((summary("not_met").exit_code(), summary("undecided").exit_code()), (1, 3));
        assert_eq!((summary("met").failed, summary("met").failures(), summary("met").decisions.spared), (1, 0, 18));
        let mut quarantined = Summary::default();
        quarantined.decide(&decision("not_met", true));
        assert_eq!((quarantined.exit_code(), quarantined.decisions.spared), (0, 18));
        // If a trial has no required pass rate, its own outcome counts as usual.
        let plain = trial(&json!({ "outcome": "failed", "auto_trials": { "most": 20 } }));
        assert_eq!(Summary::of(&[sample("passed"), plain]).exit_code(), 1);
        let plain = trial(&json!({ "outcome": "stale", "auto_trials": { "most": 20 } }));
        let stale = Summary::of(&[sample("stale"), plain]);
        assert_eq!((stale.exit_code(), stale.open_stale()), (3, 1));
    }

    #[test]
    fn quarantined_trials_do_not_decide_the_result_of_the_run() {
        let quarantined =
            |outcome: &str| trial(&json!({ "outcome": outcome, "quarantine": { "since": "2026-11-01" } }));
        let all = ["failed", "broken", "undecided", "passed", "failed"].map(quarantined);
        let summary = Summary::of(&all);
        assert_eq!((summary.trials, summary.exit_code(), summary.is_incomplete()), (0, 0, false));
        assert_eq!((summary.all_quarantined(), summary.quarantined[&Outcome::Failed]), (5, 2));
        assert_eq!(summary.pass_rate, None);
        let mixed = Summary::of(&[quarantined("failed"), trial(&json!({ "outcome": "broken" }))]);
        assert_eq!((mixed.exit_code(), mixed.trials), (3, 1), "others decide it as before");
        assert_eq!(Summary::of(&[quarantined("cancelled")]).exit_code(), 3, "it did not finish");
        assert!(serde_json::to_value(Summary::default()).unwrap().get("quarantined").is_none(), "as before");
        let read: Summary = serde_json::from_value(serde_json::to_value(&summary).unwrap()).unwrap();
        assert_eq!(read, summary);
        assert_eq!(all[0].quarantine.as_ref().unwrap().describe(), "quarantined since 2026-11-01");
    }

    #[test]
    fn trials_outside_of_the_sample_of_the_judge_do_not_make_a_run_incomplete() {
        let of = |is_sampled: bool, outcome: &str, statuses: &[&str], judged: bool| {
            let finding = |status: &&str| {
                let is_judged = judged && *status == "undecided";
                json!({ "id": "f", "type": "t", "status": status, "weight": 1, "because": "", "judged": is_judged })
            };
            let findings: Vec<Value> = statuses.iter().map(finding).collect();
            let mut trial = trial(&json!({ "outcome": outcome, "findings": findings, "fault": "judge" }));
            trial.set_sampled(Some(is_sampled));
            trial
        };
        let judged = [of(true, "passed", &["met"], true), of(true, "passed", &["met"], true)];
        let omitted =
            [of(false, "undecided", &["met", "undecided"], true), of(false, "undecided", &["undecided"], true)];
        assert!(omitted.iter().all(|trial| trial.fault.is_none()));
        let summary = Summary::of(judged.iter().chain(&omitted));
        assert_eq!((summary.exit_code(), summary.is_incomplete(), summary.passed), (0, false, 2));
        assert_eq!((summary.undecided, summary.not_judged, summary.passed_but_undecided), (2, 2, 0));
        let sample = summary.judge_sample.unwrap();
        assert_eq!((sample.trials, sample.judged, sample.decided.rate()), (4, 2, Some(1.0)));
        for open in [of(true, "undecided", &["undecided"], true), of(false, "undecided", &["undecided"], false)] {
            assert_eq!(Summary::of(judged.iter().chain([&open])).exit_code(), 3, "{open:#?}");
        }
        assert_eq!(Summary::of(&[of(false, "failed", &["unmet", "undecided"], true)]).exit_code(), 1);
    }

    #[test]
    fn undecided_assertions_are_excluded_from_rates_regardless_of_other_verdicts() {
        let finding = |status: &str| json!({ "id": "f", "type": "t", "status": status, "weight": 1, "because": "" });
        let of = |outcome: &str, statuses: &[&str]| {
            let findings: Vec<Value> = statuses.iter().map(|status| finding(status)).collect();
            trial(&json!({ "outcome": outcome, "findings": findings }))
        };
        let judged = |met: bool| match met {
            true => of("undecided", &["met", "undecided"]),
            false => of("failed", &["unmet", "undecided"]),
        };
        let summary = Summary::of(&(0..10).map(|index| judged(index > 0)).collect::<Vec<_>>());
        assert_eq!((summary.failed, summary.undecided, summary.passed_but_undecided), (1, 9, 9));
        assert_eq!((summary.pass_rate, summary.by_decided.rate()), (None, Some(0.9)));
        assert_eq!((summary.exit_code(), summary.is_incomplete()), (1, true));

        let trials = [of("passed", &["met"]), of("failed", &["unmet"]), of("undecided", &["undecided"])];
        let summary = Summary::of(&trials);
        assert_eq!(
            (summary.pass_rate, summary.by_decided.rate(), summary.passed_but_undecided),
            (Some(0.5), Some(0.5), 0)
        );
        assert_eq!(Summary::of(&trials[..2]).exit_code(), 1);
        assert_eq!(Summary::of(&[of("undecided", &["met", "undecided"])]).exit_code(), 3);
        assert_eq!(Summary::of(&[of("skipped", &[]), of("skipped", &[])]).exit_code(), 4);
        assert_eq!(Summary::of(&[of("skipped", &[]), of("passed", &["met"])]).exit_code(), 0);
        // One unmet part decides a claim, but the claim is not counted while another part is undecided.
        let mut half = of("failed", &["unmet", "met"]);
        half.findings[0].error = Some("another part is undecided".into());
        assert_eq!(TrialFigures::from_record(&half).observation.pass_rate, Some(1.0));
        assert_eq!((half.undecided(), half.decided_pass()), (1, Some(true)));
    }

    #[test]
    fn implicit_findings_count_only_if_unmet() {
        let rate = |findings: &[(&str, bool)]| {
            let finding = |(status, implicit): &(&str, bool)| json!({ "id": "f", "type": "t", "status": status, "weight": 1, "because": "", "implicit": implicit });
            let findings: Vec<Value> = findings.iter().map(finding).collect();
            TrialFigures::from_record(&trial(&json!({ "findings": findings }))).observation.pass_rate
        };
        assert_eq!(rate(&[("met", false), ("unmet", false), ("met", true), ("undecided", false)]), Some(0.5));
        assert_eq!(rate(&[("met", false), ("unmet", true)]), Some(0.5));
        assert_eq!(rate(&[("met", true)]), None);
    }

    #[test]
    fn only_complete_trials_with_the_skill_report_triggering() {
        let trigger = |changes: &Value| Trigger::from_record(&trial(changes));
        let describe = |happened| Some(Trigger { expected: true, happened });
        let asked = json!({ "should_trigger": true, "triggered": true, "variant": "with_skill" });
        let with = |key: &str, value: &str| {
            let mut changes = asked.clone();
            changes[key] = value.into();
            changes
        };
        assert_eq!(trigger(&asked), describe(Some(true)));
        assert_eq!(trigger(&with("outcome", "undecided")), describe(Some(true)));
        assert_eq!(trigger(&with("outcome", "broken")), describe(None));
        assert_eq!(trigger(&with("variant", "without_skill")), None);
        assert_eq!(trigger(&json!({ "triggered": true })), None);
    }
}
