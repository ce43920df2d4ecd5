//! Counts over finished trials. This is the only place that counts them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::statistics::Counted;
use crate::{
    AuxiliaryUsage, Bounds, DecisionCounts, DecisionRecord, Outcome, OutcomeCounts, Tokens, TrialRecord, Usage,
};

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
    /// These trials by outcome.
    #[serde(flatten)]
    pub by_outcome: OutcomeCounts,
    /// Number of passed trials that have signs of tampering.
    #[serde(skip_serializing_if = "is_zero")]
    pub passed_with_signs: usize,
    /// Number of `undecided` trials whose decided assertions all pass, excluding those that are `not_judged`.
    pub passed_but_undecided: usize,
    /// Number of `undecided` trials that lack only judgements, because they are outside the sample that the judge
    /// decides. They do not make the run incomplete.
    #[serde(skip_serializing_if = "is_zero")]
    pub not_judged: usize,
    /// Sample of trials that the judge decides; absent if the judge decides all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub judge_sample: Option<SampledTrials>,
    /// Number of trials that passed only after a failed attempt.
    pub flaky: usize,
    /// Share of trials that passed at the first attempt; absent if it is not known. See [`Summary::counted`]. In the
    /// summaries of older versions, which lack the two bounds, it leaves out trials without a result.
    pub pass_rate: Option<f64>,
    /// Lowest possible value of this share, for which every trial without a result counts as failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pass_rate_min: Option<f64>,
    /// Highest possible value of this share, for which every trial without a result counts as passed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pass_rate_max: Option<f64>,
    /// Tokens of all trials whose tokens are known, including baseline trials; absent if none are.
    pub tokens: Option<Tokens>,
    /// Number of trials whose tokens are known, including baseline trials. Older versions did not count them.
    pub trials_with_tokens: usize,
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
#[serde(default)]
pub struct SampledTrials {
    /// Number of trials with judged assertions.
    pub trials: usize,
    /// Number of these in the sample. Their pass rate estimates the rate of all trials with judged assertions.
    pub judged: usize,
    /// Number of trials in the sample that passed at the first attempt.
    pub passed: usize,
    /// Number of trials in the sample that failed at the first attempt.
    pub failed: usize,
}

impl SampledTrials {
    /// Returns the trials in the sample by result.
    pub fn counted(&self) -> Counted {
        let [passed, failed] = [self.passed as u64, self.failed as u64];
        Counted { passed, failed, unknown: (self.judged as u64).saturating_sub(passed + failed) }
    }
}

impl Summary {
    /// Counts one more trial. A trial that serves only for comparison counts with its usage, but not with its outcome.
    pub fn add(&mut self, trial: &TrialRecord) {
        let took = trial.spent();
        add(&mut self.tokens, &mut self.cost_usd, took);
        if trial.is_baseline() {
            self.baseline += 1;
            add(&mut self.baseline_tokens, &mut self.baseline_cost_usd, took);
        } else if trial.quarantine.is_some() && trial.outcome != Outcome::Cancelled {
            *self.quarantined.entry(trial.outcome).or_default() += 1;
        } else {
            self.count_outcome(trial);
        }
        self.trials_with_tokens += usize::from(took.tokens.is_some());
        self.trials_with_cost += usize::from(took.cost_usd.is_some());
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
        let is_marked = trial.outcome == Outcome::Passed && !trial.integrity.is_empty();
        self.passed_with_signs += usize::from(is_marked);
        self.by_outcome[trial.outcome] += 1;
        self.flaky += usize::from(trial.flaky);
        let is_not_judged = trial.is_not_judged();
        self.not_judged += usize::from(is_not_judged);
        self.passed_but_undecided += usize::from(trial.passed_but_for().is_some() && !is_not_judged);
        if let Some(is_sampled) = trial.judge_sampled {
            let sample = self.judge_sample.get_or_insert_default();
            sample.trials += 1;
            sample.judged += usize::from(is_sampled);
            if is_sampled {
                sample.passed += usize::from(trial.first_outcome() == Outcome::Passed);
                sample.failed += usize::from(trial.first_outcome() == Outcome::Failed);
            }
        }
        self.update_pass_rate();
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
    }

    /// Returns the trials by the result that rates count. Trials that passed only after a failed attempt failed at the
    /// first one. Undecided, broken and stale trials could have passed or failed.
    pub fn counted(&self) -> Counted {
        self.by_outcome.counted(self.flaky)
    }

    /// Computes the pass rate from the counts. Older versions recorded a rate that left out trials.
    pub fn update_pass_rate(&mut self) {
        let bounds = self.counted().bounds();
        self.pass_rate = bounds.and_then(Bounds::value);
        self.pass_rate_min = bounds.map(|bounds| bounds.min);
        self.pass_rate_max = bounds.map(|bounds| bounds.max);
    }

    /// Returns for how many of the trials that ran, baseline trials included, a sum is known, if it is not for all:
    /// `(3, 4)`. `known` is [`Summary::trials_with_tokens`] or [`Summary::trials_with_cost`].
    pub fn partly_known(&self, known: usize) -> Option<(usize, usize)> {
        let quarantined = self.quarantined.iter().filter(|(outcome, _)| !outcome.is_excluded());
        let quarantined: usize = quarantined.map(|(_, count)| count).sum();
        let ran = self.trials.saturating_sub(self.by_outcome.sum(Outcome::is_excluded));
        let ran = ran.saturating_add(self.baseline).saturating_add(quarantined);
        (1..ran).contains(&known).then_some((known, ran))
    }

    /// Returns `true` if the run's result depends on a trial or decision that is still open.
    pub fn is_incomplete(&self) -> bool {
        self.open() > 0 || self.decisions.undecided > 0
    }

    /// Returns the number of failed trials that make the run fail.
    pub fn failures(&self) -> usize {
        self.by_outcome.failed.saturating_sub(self.decisions.failed_trials)
    }

    /// Returns the number of trials that leave the run incomplete, because they have no result although one was wanted.
    pub fn open(&self) -> usize {
        let is_open = |outcome: Outcome| outcome.is_unknown() || outcome == Outcome::Cancelled;
        let open = self.by_outcome.sum(is_open).saturating_sub(self.not_judged);
        open.saturating_sub(self.decisions.open_trials + self.decisions.stale_trials)
    }

    /// Returns the number of stale trials that leave the run incomplete.
    pub fn open_stale(&self) -> usize {
        self.by_outcome.stale.saturating_sub(self.decisions.stale_trials)
    }

    /// Returns the number of trials of quarantined cases.
    pub fn all_quarantined(&self) -> usize {
        self.quarantined.values().sum()
    }

    /// Returns `true` if no result counts: no trial passed or failed, and no pass rate or comparison decides. Trials
    /// that are skipped, quarantined, not judged or only there for comparison do not show that anything works.
    pub fn is_nothing(&self) -> bool {
        self.by_outcome.passed + self.by_outcome.failed + self.decisions.all == 0
    }

    /// Returns the exit code of the run: 1 if a trial failed or a pass rate is too low, 3 if a result is missing
    /// although it was wanted, 4 if no result counts, otherwise 0.
    pub fn exit_code(&self) -> u8 {
        if self.failures() > 0 || self.decisions.not_met > 0 {
            1
        } else if self.open() > 0 || self.decisions.undecided > 0 {
            3
        } else if self.is_nothing() {
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
        assert_eq!((summary.trials, summary.baseline, summary.by_outcome.failed, summary.exit_code()), (1, 1, 0, 0));
        assert_eq!((summary.cost_usd, summary.baseline_cost_usd, summary.trials_with_cost), (Some(1.0), Some(0.5), 2));
        assert_eq!(summary.partly_known(summary.trials_with_tokens), None);
        let total = |tokens: Option<Tokens>| tokens.map(|tokens| tokens.total());
        assert_eq!((total(summary.tokens), total(summary.baseline_tokens)), (Some(20), Some(10)));
        let alone = Summary::of(&trials[..1]);
        assert_eq!((alone.baseline_cost_usd, alone.baseline_tokens), (None, None));
        assert!(serde_json::to_value(alone).unwrap().get("baseline_cost_usd").is_none(), "as before");
    }

    #[test]
    fn a_sum_is_partly_known_if_a_trial_that_ran_lacks_it() {
        let unknown = json!({ "attempts": [{ "outcome": "passed", "duration_ms": 0 }] });
        let skipped = json!({ "outcome": "skipped", "attempts": [] });
        let summary = Summary::of(&[trial(&json!({})), trial(&unknown), trial(&skipped)]);
        assert_eq!(summary.partly_known(summary.trials_with_tokens), Some((1, 2)));
        assert_eq!(summary.partly_known(0), None, "older versions did not count them");
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
        assert_eq!(
            (summary("met").by_outcome.failed, summary("met").failures(), summary("met").decisions.spared),
            (1, 0, 18)
        );
        let mut quarantined = Summary { quarantined: [(Outcome::Failed, 2)].into(), ..Summary::default() };
        quarantined.decide(&decision("not_met", true));
        assert_eq!((quarantined.exit_code(), quarantined.decisions.spared), (4, 18));
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
        assert_eq!((summary.trials, summary.exit_code(), summary.is_incomplete()), (0, 4, false));
        assert_eq!((summary.all_quarantined(), summary.quarantined[&Outcome::Failed]), (5, 2));
        assert_eq!(summary.pass_rate, None);
        let mixed = Summary::of(&[quarantined("failed"), trial(&json!({ "outcome": "broken" }))]);
        assert_eq!((mixed.exit_code(), mixed.trials), (3, 1), "others decide it as before");
        let mixed = |outcome: &str| Summary::of(&[quarantined("failed"), trial(&json!({ "outcome": outcome }))]);
        assert_eq!(["passed", "failed", "skipped"].map(|outcome| mixed(outcome).exit_code()), [0, 1, 4]);
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
        assert_eq!((summary.exit_code(), summary.is_incomplete(), summary.by_outcome.passed), (0, false, 2));
        assert_eq!((summary.by_outcome.undecided, summary.not_judged, summary.passed_but_undecided), (2, 2, 0));
        let sample = summary.judge_sample.unwrap();
        assert_eq!((sample.trials, sample.judged, sample.counted().bounds()), (4, 2, Some(Bounds::exact(1.0))));
        assert_eq!((summary.pass_rate_min, summary.pass_rate, summary.pass_rate_max), (Some(0.5), None, Some(1.0)));
        for open in [of(true, "undecided", &["undecided"], true), of(false, "undecided", &["undecided"], false)] {
            assert_eq!(Summary::of(judged.iter().chain([&open])).exit_code(), 3, "{open:#?}");
        }
        assert_eq!(Summary::of(&[of(false, "failed", &["unmet", "undecided"], true)]).exit_code(), 1);
    }

    #[test]
    fn a_trial_that_could_have_passed_or_failed_widens_the_pass_rate() {
        let finding = |status: &str| json!({ "id": "f", "type": "t", "status": status, "weight": 1, "because": "" });
        let of = |outcome: &str, statuses: &[&str]| {
            let findings: Vec<Value> = statuses.iter().map(|status| finding(status)).collect();
            trial(&json!({ "outcome": outcome, "findings": findings }))
        };
        let rates = |summary: &Summary| (summary.pass_rate_min, summary.pass_rate, summary.pass_rate_max);
        // A judge that never answers, and another assertion that nine of ten trials meet.
        let judged = |met: bool| match met {
            true => of("undecided", &["met", "undecided"]),
            false => of("failed", &["unmet", "undecided"]),
        };
        let summary = Summary::of(&(0..10).map(|index| judged(index > 0)).collect::<Vec<_>>());
        assert_eq!((summary.by_outcome.failed, summary.by_outcome.undecided, summary.passed_but_undecided), (1, 9, 9));
        assert_eq!(rates(&summary), (Some(0.0), None, Some(0.9)));
        assert_eq!((summary.exit_code(), summary.is_incomplete()), (1, true));
        let failed = Summary::of(&[judged(false), judged(false), of("passed", &["met"])]);
        assert_eq!((rates(&failed).1, failed.is_incomplete()), (Some(1.0 / 3.0), false), "failures are facts");

        let trials = [of("passed", &["met"]), of("failed", &["unmet"]), of("broken", &[]), of("skipped", &[])];
        assert_eq!(rates(&Summary::of(&trials)), (Some(1.0 / 3.0), None, Some(2.0 / 3.0)));
        let summary = Summary::of(&trials);
        let read: Summary = serde_json::from_value(serde_json::to_value(&summary).unwrap()).unwrap();
        assert_eq!(read, summary, "exported runs are compared with their hash");
        assert_eq!(Summary::of(&trials[..2]).exit_code(), 1);
        assert_eq!(Summary::of(&[of("undecided", &["met", "undecided"])]).exit_code(), 3);
        assert_eq!(Summary::of(&[of("skipped", &[]), of("skipped", &[])]).exit_code(), 4);
        assert_eq!(Summary::default().exit_code(), 4, "an empty shard");
        assert_eq!(Summary::of(&[of("skipped", &[]), of("passed", &["met"])]).exit_code(), 0);
        // One unmet part decides a claim, so the trial has failed. The share of met checks leaves the claim out.
        let mut half = of("failed", &["unmet", "met"]);
        half.findings[0].error = Some("another part is undecided".into());
        assert_eq!(TrialFigures::from_record(&half).observation.pass_rate, Some(1.0));
        assert_eq!(Summary::of(&[half]).pass_rate, Some(0.0));
    }

    #[test]
    fn rates_count_first_attempts_and_usage_counts_all() {
        let attempt = |outcome: &str| {
            json!({ "outcome": outcome, "usage": { "input": 10 }, "cost_usd": 0.5, "duration_ms": 0, "met_share": 0.25,
                    "score": { "min": 0.5, "max": 0.5 } })
        };
        let flaky = trial(&json!({
            "flaky": true, "attempts": [attempt("broken"), attempt("failed"), attempt("passed")], "score": 1, "max_score": 1,
            "findings": [{ "id": "f", "type": "t", "status": "met", "weight": 1, "because": "" }],
        }));
        let summary = Summary::of(&[flaky.clone(), trial(&json!({}))]);
        assert_eq!((summary.by_outcome.passed, summary.pass_rate, summary.exit_code()), (2, Some(0.5), 0));
        assert_eq!((summary.cost_usd, summary.tokens.map(|tokens| tokens.total())), (Some(2.0), Some(40)));
        let figures = TrialFigures::from_record(&flaky).observation;
        assert_eq!((figures.first, figures.pass_rate), (Outcome::Failed, Some(0.25)));
        assert_eq!(
            (figures.score, figures.tokens, figures.cost_usd),
            (Some(Bounds::exact(0.5)), Some(30.0), Some(1.5))
        );
    }

    #[test]
    fn the_score_of_a_trial_has_the_bounds_that_undecided_findings_leave() {
        let finding = |status: &str, score: Option<f64>, weight: f64| json!({ "id": "f", "type": "t", "status": status, "weight": weight, "because": "", "score": score });
        let of = |fields: Value| {
            let mut fields = fields;
            fields["findings"] = json!([finding("met", Some(1.0), 1.0), finding("undecided", None, 3.0)]);
            trial(&fields).score_bounds()
        };
        let bounds = Some(Bounds { min: 0.25, max: 1.0 });
        assert_eq!(of(json!({ "outcome": "undecided", "score": 1, "max_score": 1 })), bounds);
        assert_eq!(of(json!({ "outcome": "failed", "score": 1, "max_score": 4, "pass_score": 3 })), bounds);
        assert_eq!(trial(&json!({ "score": 1, "max_score": 2 })).score_bounds(), Some(Bounds::exact(0.5)));
        let mut limit = finding("met", Some(1.0), 1.0);
        limit["implicit"] = true.into();
        let findings = json!([finding("unmet", Some(0.0), 1.0), finding("met", Some(1.0), 1.0), limit]);
        let limited = json!({ "score": 2, "max_score": 3, "findings": findings });
        assert_eq!(trial(&limited).score_bounds(), Some(Bounds::exact(0.5)), "a kept limit does not count");
        assert_eq!(trial(&json!({})).score_bounds(), None);
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
        let triggered = |happened| Some(Trigger { expected: true, happened });
        let asked = json!({ "should_trigger": true, "triggered": true, "variant": "with_skill" });
        let with = |key: &str, value: &str| {
            let mut changes = asked.clone();
            changes[key] = value.into();
            changes
        };
        assert_eq!(trigger(&asked), triggered(Some(true)));
        assert_eq!(trigger(&with("outcome", "undecided")), triggered(Some(true)));
        assert_eq!(trigger(&with("outcome", "broken")), triggered(None));
        assert_eq!(trigger(&with("variant", "without_skill")), None);
        assert_eq!(trigger(&json!({ "triggered": true })), None);
        assert_eq!(trigger(&with("outcome", "skipped")), None);
        let mut rerun = asked.clone();
        let attempt = |triggered: bool| json!({ "outcome": "failed", "duration_ms": 0, "triggered": triggered });
        rerun["attempts"] = json!([attempt(false), attempt(true)]);
        assert_eq!(trigger(&rerun), triggered(Some(false)), "the first attempt counts");
    }
}
