//! Statistical view of a trial.

use std::collections::BTreeMap;

use crate::{Finding, Outcome, Status, TrialRecord};

/// Statistical view of a trial. `case` is any value that identifies the case.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Observation<K> {
    /// Key of the case.
    pub case: K,
    /// Outcome.
    pub outcome: Outcome,
    /// Number of findings that could not be decided.
    pub undecided: usize,
    /// True if the decided findings alone pass; `None` if no assertion was decided.
    pub decided_pass: Option<bool>,
    /// Share met / (met + unmet). Undecided findings count in neither.
    pub pass_rate: Option<f64>,
    /// Score as a share of the maximum.
    pub score: Option<f64>,
    /// Time that the agent took, in seconds.
    pub duration_s: Option<f64>,
    /// Tokens of every kind.
    pub tokens: Option<f64>,
    /// Cost in US dollars.
    pub cost_usd: Option<f64>,
}

impl<'a> Observation<(&'a str, &'a str)> {
    /// Extracts the observation from a record; its suite name and case id identify the case.
    pub fn from_record(trial: &'a TrialRecord) -> Self {
        let undecided = trial.undecided();
        // A score out of a fixed number of points lacks the points of undecided findings.
        let is_short = trial.pass_score.is_some() && undecided > 0;
        let most = trial.max_score.filter(|most| *most > 0.0 && !is_short);
        Self {
            case: (&trial.suite, &trial.case),
            outcome: trial.outcome,
            undecided,
            decided_pass: trial.decided_pass(),
            pass_rate: met_share(&trial.findings),
            score: trial.score.zip(most).map(|(score, most)| score / most),
            duration_s: trial.agent_ms.map(|ms| ms as f64 / 1000.0),
            tokens: trial.usage.map(|usage| usage.total() as f64),
            cost_usd: trial.cost_usd,
        }
    }
}

impl<K> Observation<K> {
    /// Replaces the key of the case.
    pub fn of_case<C>(self, case: C) -> Observation<C> {
        let Self { outcome, undecided, decided_pass, pass_rate, score, duration_s, tokens, cost_usd, .. } = self;
        Observation { case, outcome, undecided, decided_pass, pass_rate, score, duration_s, tokens, cost_usd }
    }

    /// Creates an observation with only an outcome; an undecided one has a single finding.
    pub fn new(case: K, outcome: Outcome) -> Self {
        let decided_pass = match outcome {
            Outcome::Passed => Some(true),
            Outcome::Failed => Some(false),
            _ => None,
        };
        Self {
            case,
            outcome,
            undecided: usize::from(outcome == Outcome::Undecided),
            decided_pass,
            pass_rate: None,
            score: None,
            duration_s: None,
            tokens: None,
            cost_usd: None,
        }
    }

    /// Returns `true` if the trial was graded, so that it says something about the agent.
    pub fn is_graded(&self) -> bool {
        self.outcome.is_graded()
    }

    /// Returns `true` if it was graded and nothing is undecided. The results of the other assertions must not
    /// determine whether a trial counts, so a failed trial with something undecided is not decided either.
    pub fn is_decided(&self) -> bool {
        self.is_graded() && self.undecided == 0
    }

    /// Returns 1 for a pass and 0 for a failure if everything in the trial was decided.
    pub(super) fn full_pass(&self) -> Option<f64> {
        self.is_decided().then(|| f64::from(u8::from(self.outcome == Outcome::Passed)))
    }

    /// Returns 1 if all decided findings pass, else 0.
    pub(super) fn decided_full_pass(&self) -> Option<f64> {
        self.decided_pass.filter(|_| self.is_graded()).map(|pass| f64::from(u8::from(pass)))
    }
}

/// Returns the graded trials of each case.
pub(super) fn by_case<K: Ord>(trials: &[Observation<K>]) -> BTreeMap<&K, Vec<&Observation<K>>> {
    let mut cases: BTreeMap<&K, Vec<&Observation<K>>> = BTreeMap::new();
    for trial in trials.iter().filter(|trial| trial.is_graded()) {
        cases.entry(&trial.case).or_default().push(trial);
    }
    cases
}

/// Returns met / (met + unmet); `None` if no assertion was decided. Implicit findings, such as an exceeded budget,
/// count only if they are unmet. Otherwise every limit that is kept would raise the share.
fn met_share(findings: &[Finding]) -> Option<f64> {
    let decided = || findings.iter().filter(|finding| finding.is_decided());
    let written = decided().filter(|finding| !finding.implicit).count();
    let met = decided().filter(|finding| finding.status == Status::Met && !finding.implicit).count() as f64;
    let unmet = decided().filter(|finding| finding.status == Status::Unmet).count() as f64;
    (written > 0).then(|| met / (met + unmet))
}
