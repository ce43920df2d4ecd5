//! Counting: a fold over finished trials, and the only one.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::{Aside, Finding, Outcome, Status, Tokens, TrialRecord, statistics};

/// What a run came to.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Summary {
    /// How many trials have an outcome; those that are only there to be compared with are not among them.
    pub trials: usize,
    /// How many are only there to be compared with: the agent without the skill.
    #[serde(skip_serializing_if = "is_zero")]
    pub baseline: usize,
    /// How many passed.
    pub passed: usize,
    /// How many failed.
    pub failed: usize,
    /// How many could not be decided.
    pub undecided: usize,
    /// How many were broken by infrastructure.
    pub broken: usize,
    /// How many were skipped.
    pub skipped: usize,
    /// How many were cancelled.
    pub cancelled: usize,
    /// How many passed only after a failed attempt.
    pub flaky: usize,
    /// passed / (passed + failed); absent when neither happened.
    pub pass_rate: Option<f64>,
    /// Tokens of all trials whose tokens are known; absent when none are.
    pub tokens: Option<Tokens>,
    /// US dollars of all trials whose cost is known; absent when none is.
    pub cost_usd: Option<f64>,
    /// How many trials' cost is known.
    pub trials_with_cost: usize,
    /// What judging by models took; absent when no model was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub judge: Option<Aside>,
    /// What playing users took; absent when nobody was played.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<Aside>,
}

impl Summary {
    /// Counts one more trial. Of one that is only there to be compared with, what it took counts, and not what it came to.
    pub fn add(&mut self, trial: &TrialRecord) {
        if trial.is_baseline() {
            self.baseline += 1;
        } else {
            self.count(trial);
        }
        for attempt in &trial.attempts {
            if let Some(tokens) = attempt.usage {
                *self.tokens.get_or_insert_default() += tokens;
            }
            if let Some(cost) = attempt.cost_usd {
                *self.cost_usd.get_or_insert_default() += cost;
            }
        }
        self.trials_with_cost += usize::from(trial.cost_usd.is_some());
        if let Some(judge) = trial.judge {
            *self.judge.get_or_insert_default() += judge;
        }
        if let Some(user) = trial.user {
            *self.user.get_or_insert_default() += user;
        }
    }

    /// Counts what a trial came to.
    fn count(&mut self, trial: &TrialRecord) {
        self.trials += 1;
        match trial.outcome {
            Outcome::Passed => self.passed += 1,
            Outcome::Failed => self.failed += 1,
            Outcome::Undecided => self.undecided += 1,
            Outcome::Broken => self.broken += 1,
            Outcome::Skipped => self.skipped += 1,
            Outcome::Cancelled => self.cancelled += 1,
        }
        self.flaky += usize::from(trial.flaky);
        let decided = self.passed + self.failed;
        self.pass_rate = (decided > 0).then(|| self.passed as f64 / decided as f64);
    }

    /// The exit code of a run that came to this: 1 if something failed, 3 if something is not known, else 0.
    pub fn exit_code(&self) -> u8 {
        if self.failed > 0 {
            1
        } else if self.undecided + self.broken + self.cancelled > 0 {
            3
        } else {
            0
        }
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// A mean and how far it can be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The mean.
    pub mean: f64,
    /// The standard deviation of the sample; absent for one value.
    pub stddev: Option<f64>,
    /// The 95 % interval, where it makes sense.
    pub ci95: Option<[f64; 2]>,
}

/// One arm's trials taken together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ArmSummary {
    /// The arm, printed.
    pub arm: String,
    /// The agent.
    pub agent: String,
    /// The model.
    pub model: Option<String>,
    /// The variant.
    pub variant: Option<String>,
    /// How many trials were decided.
    pub trials: usize,
    /// Over trials, of met / (met + unmet).
    pub pass_rate: Option<Estimate>,
    /// Share of the decided trials that passed, with Wilson's interval.
    pub full_pass_rate: Option<Estimate>,
    /// Repetitions per case, for the two below.
    pub k: u64,
    /// Chance that at least one of k passes, averaged over cases.
    pub pass_at_k: Option<f64>,
    /// Chance that all of k pass, averaged over cases.
    pub pass_hat_k: Option<f64>,
    /// Seconds.
    pub duration_s: Option<Estimate>,
    /// Tokens of every kind.
    pub tokens: Option<Estimate>,
    /// US dollars.
    pub cost_usd: Option<Estimate>,
}

impl ArmSummary {
    /// Each arm of `trials`, in the order it first appears.
    pub fn of(trials: &[TrialRecord]) -> Vec<Self> {
        let mut known: HashMap<&str, usize> = HashMap::new();
        let mut arms: Vec<Vec<&TrialRecord>> = Vec::new();
        for trial in trials {
            let at = *known.entry(&trial.arm).or_insert(arms.len());
            if at == arms.len() {
                arms.push(Vec::new());
            }
            arms[at].push(trial);
        }
        arms.iter().map(|arm| Self::of_arm(arm)).collect()
    }

    fn of_arm(all: &[&TrialRecord]) -> Self {
        let decided: Vec<&TrialRecord> =
            all.iter().copied().filter(|trial| matches!(trial.outcome, Outcome::Passed | Outcome::Failed)).collect();
        let mean = |values: Vec<f64>| statistics::estimate(&values);
        let passed = decided.iter().filter(|trial| trial.outcome == Outcome::Passed).count();

        let mut known: HashMap<(&str, &str), usize> = HashMap::new();
        // Trials and passed ones, in the order in which cases first appear: a sum of fractions depends on it.
        let mut cases: Vec<(u64, u64)> = Vec::new();
        for trial in &decided {
            let at = *known.entry((&trial.suite, &trial.case)).or_insert(cases.len());
            if at == cases.len() {
                cases.push((0, 0));
            }
            cases[at].0 += 1;
            cases[at].1 += u64::from(trial.outcome == Outcome::Passed);
        }
        let k = cases.iter().map(|case| case.0).min().unwrap_or(0);
        let over_cases = |f: fn(u64, u64, u64) -> f64| {
            (!cases.is_empty()).then(|| cases.iter().map(|case| f(case.0, case.1, k)).sum::<f64>() / cases.len() as f64)
        };
        Self {
            arm: all.first().map_or_else(String::new, |trial| trial.arm.clone()),
            agent: all.first().map_or_else(String::new, |trial| trial.agent.clone()),
            model: all.first().and_then(|trial| trial.model.clone()),
            variant: all.first().and_then(|trial| trial.variant.clone()),
            trials: decided.len(),
            pass_rate: mean(decided.iter().filter_map(|trial| met_share(&trial.findings)).collect()),
            full_pass_rate: (!decided.is_empty()).then(|| Estimate {
                mean: passed as f64 / decided.len() as f64,
                stddev: None,
                ci95: Some(statistics::wilson(passed as u64, decided.len() as u64)),
            }),
            k,
            pass_at_k: over_cases(statistics::pass_at_k),
            pass_hat_k: over_cases(statistics::pass_hat_k),
            duration_s: mean(decided.iter().map(|trial| trial.duration_ms as f64 / 1000.0).collect()),
            tokens: mean(decided.iter().filter_map(|trial| trial.usage).map(|usage| usage.total() as f64).collect()),
            cost_usd: mean(decided.iter().filter_map(|trial| trial.cost_usd).collect()),
        }
    }
}

/// met / (met + unmet); `None` when nothing was decided.
fn met_share(findings: &[Finding]) -> Option<f64> {
    let count = |status| findings.iter().filter(|finding| finding.status == status).count() as f64;
    let (met, unmet) = (count(Status::Met), count(Status::Unmet));
    (met + unmet > 0.0).then(|| met / (met + unmet))
}
