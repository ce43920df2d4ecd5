//! Records of trials: the objects in `trials` of the JSON report.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::bounds::Bounds;
use crate::{
    AutoTrials, CassetteUse, EgressAttempt, Ending, Fault, FaultReport, FileChange, Finding, IntegritySign, Limits,
    MockCall, ModelTraffic, Outcome, OutcomeRule, Phases, Quarantine, Scoring, SideEffects, SkillInfo, Status, Tokens,
    Usage,
};

/// Finished trial, as in the report's `trials`. Absent fields are omitted: most fields of most trials are empty, and
/// there are thousands of trials.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TrialRecord {
    /// Printed id: `suite::case@arm#1`.
    pub id: Arc<str>,
    /// Name of the suite.
    pub suite: Arc<str>,
    /// Id of the case.
    pub case: Arc<str>,
    /// Display name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Tags of the case.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Quarantine of the case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quarantine: Option<Quarantine>,
    /// Printed form of the arm.
    pub arm: Arc<str>,
    /// Name of the agent.
    pub agent: String,
    /// Name of the model as the user gave it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Variant, such as `with_skill`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
    /// Number of the repetition, from 1.
    pub repetition: u64,
    /// Rule that decides the number of repetitions; absent if the number is fixed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auto_trials: Option<AutoTrials>,
    /// File in which the case is written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<Arc<str>>,
    /// Line of the case in that file, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// Outcome.
    pub outcome: Outcome,
    /// True if it passed only after another attempt failed.
    #[serde(default)]
    pub flaky: bool,
    /// Component at fault, if the trial is broken or undecided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<Fault>,
    /// Reason in one line; absent for a pass.
    #[serde(rename = "because", default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// How the conversation ended; absent if it never started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ending: Option<Ending>,
    /// Score: Σ weight·score of the decided findings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    /// Maximum score: Σ weight of the decided findings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_score: Option<f64>,
    /// Score needed to pass, if the format has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pass_score: Option<f64>,
    /// Findings, one for each assertion; implicit ones are last.
    pub findings: Vec<Finding>,
    /// All messages from the user.
    pub input: Vec<String>,
    /// Value from which the message was rendered, if the case has one.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::present::deserialize")]
    pub input_value: Option<Value>,
    /// Agent's last answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// Agent's whole last result, if it is more than text: `output`, `messages` and any other key.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::present::deserialize")]
    pub result: Option<Value>,
    /// Expected value according to the case.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::present::deserialize")]
    pub expected: Option<Value>,
    /// Expected value of the whole result, if it differs from `expected`.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::present::deserialize")]
    pub expected_trace: Option<Value>,
    /// JSON Schema of the output, if it differs from `expected`.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::present::deserialize")]
    pub expected_schema: Option<Value>,
    /// Script that was to answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script: Option<String>,
    /// Tools passed to the agent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<Value>,
    /// Variables passed to the agent, if the case wants them in the record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vars: Option<Map<String, Value>>,
    /// True if the trial passes when its assertions do not hold.
    #[serde(default)]
    pub not: bool,
    /// Position of the case in its file, from 0, for formats whose readers count cases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<usize>,
    /// Named scores set by the case's code.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub scores: BTreeMap<String, f64>,
    /// Requests and usage of judge models.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judge: Option<AuxiliaryUsage>,
    /// True if the trial is in the sample that the judge decides; absent if the judge decides all trials, or if the
    /// trial needs no judge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judge_sampled: Option<bool>,
    /// Requests and usage of the simulated user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<AuxiliaryUsage>,
    /// Agent's reply to each message, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replies: Vec<ReplyRecord>,
    /// Number of model turns, excluding those of sub-agents.
    pub turn_count: usize,
    /// All tool calls.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<CallRecord>,
    /// True if a reply does not report which tools were called.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub calls_unreported: bool,
    /// All questions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub questions: Vec<AnsweredQuestion>,
    /// Tokens of all attempts, as far as they are known. Records of older versions have those of the last attempt; see
    /// [`TrialRecord::spent`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Tokens>,
    /// Cost of all attempts in US dollars, as far as it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// Origin of the cost: the user's prices (`pricing-config`), OpenRouter's price list (`openrouter-pricing`), an
    /// agent that is a program (`cli`, or `cli-unreconciled` if OpenRouter bills and its price list could not be
    /// fetched), or any other agent (`agent`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_source: Option<String>,
    /// Cost reported by the agent itself, if another figure takes precedence over it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd_cli: Option<f64>,
    /// True if the agent used the skill under test; absent if there is none, or if a trial that is not graded ended before
    /// it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub triggered: Option<bool>,
    /// True if the skill was expected to trigger; absent if the case does not specify it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub should_trigger: Option<bool>,
    /// Branches and review requests that the trial left on remotes, which `cleanup` removes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub side_effects: Vec<SideEffects>,
    /// Exit code of the agent's process, if there is one and it ended on its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Time from provisioning to the outcome, in milliseconds, including all attempts and all work around the agent.
    pub duration_ms: u64,
    /// Time that the agent worked, in milliseconds, including earlier attempts that count. Budgets, time limits and
    /// comparisons use it. Absent if the agent did not run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_ms: Option<u64>,
    /// Duration of each phase.
    #[serde(default)]
    pub phases: Phases,
    /// Start time.
    pub started_at: Timestamp,
    /// Session id assigned by the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// Version of the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_version: Option<String>,
    /// How the agent was signed in, without secrets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth: Option<String>,
    /// Skill under test.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skill: Option<SkillInfo>,
    /// Limits in force.
    #[serde(default)]
    pub limits: Arc<Limits>,
    /// Settings that change the agent's behaviour in this trial: permission mode, tools, setting sources. All trials
    /// of an arm share them.
    #[serde(default, skip_serializing_if = "is_empty")]
    pub settings: Arc<Map<String, Value>>,
    /// Earlier attempts and this one, which is last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attempts: Vec<AttemptRecord>,
    /// Network policy that was in force while the hosts in `egress` were recorded; absent if none were recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<String>,
    /// Traffic between the agent and its model; absent if the gateway did not observe it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_traffic: Option<Box<ModelTraffic>>,
    /// Use of the trial's cassette; absent if it has none, or if its last attempt sent no request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cassette: Option<Box<CassetteUse>>,
    /// Hosts that the processes of the sandbox tried to reach.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub egress: Vec<EgressAttempt>,
    /// Faults of the case, and what became of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub injected_faults: Vec<FaultReport>,
    /// Calls that mocks of servers and programs received.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mock_calls: Vec<MockCall>,
    /// Signs that the agent tried to influence how it is graded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub integrity: Vec<IntegritySign>,
    /// Changed files in the working directory.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files_changed: Vec<FileChange>,
    /// Path of the sandbox, if it was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<String>,
    /// Errors that are not findings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<String>,
    /// Warnings, which do not affect the outcome.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// True if the record of the last attempt has masked text that assertions may look at.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub masked: bool,
}

impl TrialRecord {
    /// Returns `true` if the pass rate of its case decides the run's result, instead of the outcome of this trial.
    pub fn is_sample(&self) -> bool {
        self.auto_trials.is_some_and(|auto| auto.pass_rate.is_some())
    }

    /// Returns `true` if the trial serves only for comparison because its agent lacks the skill. It does not affect
    /// the run's result.
    pub fn is_baseline(&self) -> bool {
        self.variant.as_deref() == Some(crate::WITHOUT_SKILL)
    }

    /// Returns `true` if a trial with this outcome is flaky: it passed only after one of its `attempts` failed.
    pub fn is_flaky(outcome: Outcome, attempts: &[AttemptRecord]) -> bool {
        outcome == Outcome::Passed && attempts.iter().any(|attempt| attempt.outcome == Outcome::Failed)
    }

    /// Returns the outcome that rates count: that of the first attempt that is not broken. Rerunning a failed trial
    /// until it passes does not change how often the agent passes.
    pub fn first_outcome(&self) -> Outcome {
        if self.flaky { Outcome::Failed } else { self.outcome }
    }

    /// Returns the first attempt that is not broken, if the trial has several attempts.
    pub fn first_attempt(&self) -> Option<&AttemptRecord> {
        self.attempts.iter().find(|attempt| attempt.outcome.is_graded()).filter(|_| self.attempts.len() > 1)
    }

    /// Returns the tokens and the cost of all attempts together, as far as they are known.
    pub fn spent(&self) -> Usage {
        let mut spent = Usage::default();
        for attempt in &self.attempts {
            spent += Usage { tokens: attempt.usage, cost_usd: attempt.cost_usd };
        }
        Usage { tokens: spent.tokens.or(self.usage), cost_usd: spent.cost_usd.or(self.cost_usd) }
    }

    /// Returns the lowest and the highest possible score as a share of the maximum, over the results that the undecided
    /// findings may have. Implicit findings do not count: otherwise every limit that is kept would raise the score. `None`
    /// if there is no score.
    pub fn score_bounds(&self) -> Option<Bounds> {
        let (score, max_score) = self.score.zip(self.max_score).filter(|(_, most)| *most > 0.0)?;
        let recorded = Bounds::exact(score / max_score);
        match self.pass_score {
            Some(_) if self.undecided() == 0 => Some(recorded),
            Some(pass_score) => {
                let tally = Scoring { max_score, pass_score }.tally(&self.findings);
                Some(Bounds { min: tally.least / max_score, max: tally.most / max_score })
            }
            None => score_bounds_of(&self.written()).or(Some(recorded)),
        }
    }

    /// Returns the findings that are not implicit.
    fn written(&self) -> impl Iterator<Item = &Finding> + Clone {
        self.findings.iter().filter(|finding| !finding.implicit)
    }

    /// Returns `true` if the case has an assertion that both the arm with the skill and the one without can meet.
    pub fn asserts_in_both_arms(&self) -> bool {
        self.written().any(|finding| !finding.is_about_skill_use())
    }

    /// Returns the outcome and the score bounds of the first attempt by the findings that both the arm with the skill
    /// and the one without can have. An assertion about the use of the skill would otherwise count as a difference
    /// between the arms.
    pub fn shared_result(&self) -> (Outcome, Option<Bounds>) {
        let (first, score) = (self.first_outcome(), self.first_score());
        if !self.outcome.is_graded() || !self.findings.iter().any(Finding::is_about_skill_use) {
            return (first, score);
        }
        if self.first_attempt().is_some() {
            // The findings of earlier attempts are not recorded.
            return (Outcome::Undecided, score.map(|_| Bounds::UNKNOWN_SHARE));
        }
        let (left_out, findings): (Vec<Finding>, Vec<Finding>) =
            self.findings.iter().cloned().partition(Finding::is_about_skill_use);
        let scoring = self.pass_score.zip(self.max_score).map(|(pass_score, max_score)| {
            // The same share of what is left, as `threshold` requires it of the whole.
            let weight: f64 = left_out.iter().filter(|finding| !finding.implicit).map(|finding| finding.weight).sum();
            Scoring::with_share((max_score - weight).max(0.0), Scoring { max_score, pass_score }.share())
        });
        let rule = OutcomeRule { scoring, not: self.not };
        let outcome = self.ending.as_ref().map_or(first, |ending| Outcome::of(&findings, ending, &rule));
        let scored = findings.iter().filter(|finding| !finding.implicit);
        (outcome, score.and_then(|_| score_bounds_of(&scored)))
    }

    /// Returns the score bounds of the first attempt. The score of an attempt that an older version recorded is not
    /// known.
    pub fn first_score(&self) -> Option<Bounds> {
        match self.first_attempt() {
            Some(attempt) => self.score_bounds().map(|_| attempt.score.unwrap_or(Bounds::UNKNOWN_SHARE)),
            None => self.score_bounds(),
        }
    }

    /// Returns met / (met + unmet) of the assertions; `None` if no assertion was decided. Implicit findings, such as an
    /// exceeded budget, count only if they are unmet. Otherwise every limit that is kept would raise the share.
    /// Assertions about the use of the skill do not count, because only the arm with the skill has them, nor do those
    /// without weight.
    pub fn met_share(&self) -> Option<f64> {
        let counts = |finding: &&Finding| finding.is_decided() && !finding.is_about_skill_use();
        let decided = || Finding::decisive(&self.findings).filter(counts);
        let written = decided().filter(|finding| !finding.implicit).count();
        let met = decided().filter(|finding| finding.status == Status::Met && !finding.implicit).count() as f64;
        let unmet = decided().filter(|finding| finding.status == Status::Unmet).count() as f64;
        (written > 0).then(|| met / (met + unmet))
    }

    /// Returns the number of findings that could not be decided, or only in part. Those without weight do not count.
    pub fn undecided(&self) -> usize {
        Finding::decisive(&self.findings).filter(|finding| !finding.is_decided()).count()
    }

    /// Returns `Some(true)` if the decided findings pass; `None` if the trial was not graded, or no assertion was
    /// decided.
    pub fn decided_pass(&self) -> Option<bool> {
        let scoring = self.pass_score.zip(self.max_score);
        let scoring = scoring.map(|(pass_score, max_score)| Scoring { max_score, pass_score });
        let ruling = OutcomeRule { scoring, not: self.not };
        Outcome::of_decided(&self.findings, &ruling).filter(|_| self.outcome.is_graded())
    }

    /// Sets whether the trial is in the sample that the judge decides. A trial outside the sample lacks judgements on
    /// purpose, so nobody is at fault.
    pub fn set_sampled(&mut self, is_sampled: Option<bool>) {
        self.judge_sampled = is_sampled;
        if self.is_not_judged() {
            self.fault = None;
        }
    }

    /// Returns `true` if only judgements are missing, because the trial is not in the sample that the judge decides.
    pub fn is_not_judged(&self) -> bool {
        let lacks_only_judgements =
            || Finding::decisive(&self.findings).all(|finding| finding.is_decided() || finding.judged);
        self.judge_sampled == Some(false)
            && self.outcome == Outcome::Undecided
            && self.decided_pass() != Some(false)
            && lacks_only_judgements()
    }

    /// Returns the number of undecided findings of a trial whose decided findings pass; `None` for any other trial.
    pub fn passed_but_for(&self) -> Option<usize> {
        let is_open = self.outcome == Outcome::Undecided && self.decided_pass() == Some(true);
        is_open.then(|| self.undecided())
    }
}

/// Returns the bounds of the mean score of findings, by weight; `None` if they have no weight.
fn score_bounds_of<'a>(findings: &(impl Iterator<Item = &'a Finding> + Clone)) -> Option<Bounds> {
    let weights: f64 = findings.clone().map(|one| one.weight).sum();
    let sum = |end: fn(&Finding) -> f64| findings.clone().map(|one| one.weight * end(one)).sum::<f64>() / weights;
    let bounds = Bounds { min: sum(|one| one.score_bounds().min), max: sum(|one| one.score_bounds().max) };
    (weights > 0.0).then_some(bounds)
}

fn is_empty(settings: &Arc<Map<String, Value>>) -> bool {
    settings.is_empty()
}

/// Requests to models other than the agent's own. They never count as the agent's usage.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AuxiliaryUsage {
    /// Number of answers given by a model.
    pub requests: u64,
    /// Number of answers from the cache.
    pub cached: u64,
    /// Tokens used; absent if any of them did not report its amount.
    pub tokens: Option<Tokens>,
    /// Cost in US dollars; absent if any of them is unknown.
    pub cost_usd: Option<f64>,
}

impl std::ops::AddAssign for AuxiliaryUsage {
    fn add_assign(&mut self, other: Self) {
        let plus = |mut sum: Tokens, more: Tokens| {
            sum += more;
            sum
        };
        self.tokens = self.with(other, |one| one.tokens, plus);
        self.cost_usd = self.with(other, |one| one.cost_usd, |sum, more| sum + more);
        self.requests += other.requests;
        self.cached += other.cached;
    }
}

impl AuxiliaryUsage {
    /// Returns the usage of one answer.
    pub const fn from_answer(tokens: Option<Tokens>, cost_usd: Option<f64>) -> Self {
        Self { requests: 1, cached: 0, tokens, cost_usd }
    }

    /// Returns the sum as the usage of an agent.
    pub const fn usage(self) -> Usage {
        Usage { tokens: self.tokens, cost_usd: self.cost_usd }
    }

    /// Combines an amount from both: known only if it is known for each that made requests.
    fn with<T>(self, other: Self, of: fn(&Self) -> Option<T>, plus: impl FnOnce(T, T) -> T) -> Option<T> {
        match (self.requests, other.requests) {
            (0, 0) => of(&self).or_else(|| of(&other)),
            (_, 0) => of(&self),
            (0, _) => of(&other),
            _ => Some(plus(of(&self)?, of(&other)?)),
        }
    }
}

/// Reply to one message from the user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplyRecord {
    /// Answer. Absent if there is none, or if this is the only reply, whose answer is the trial's answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// Time from the message to the end of the reply, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_ms: Option<u64>,
    /// Time from the message to the first token of the reply, in milliseconds, if it was streamed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_token_ms: Option<u64>,
}

/// Tool call, as in the report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CallRecord {
    /// Canonical name of the tool.
    pub name: String,
    /// Agent's own name for the tool.
    pub raw_name: String,
    /// Arguments.
    pub input: Value,
    /// Result.
    pub result: Option<String>,
    /// True if the result is an error.
    pub is_error: bool,
    /// Index of the turn, from 0.
    pub turn: usize,
    /// Id of the call that started the sub-agent, if a sub-agent made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
}

/// Question and its answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnsweredQuestion {
    /// Question of the agent.
    pub question: String,
    /// Answer; absent if no prepared answer matched.
    pub answer: Option<String>,
}

/// One attempt at a trial.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct AttemptRecord {
    /// Outcome.
    pub outcome: Outcome,
    /// Reason.
    #[serde(rename = "because", default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Agent's last answer in this attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// Share of its decided assertions that are met; see [`TrialRecord::met_share`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub met_share: Option<f64>,
    /// Lowest and highest possible score as a share of the maximum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<Bounds>,
    /// True if the agent used the skill under test; absent if there is none, or if a trial that is not graded ended before
    /// it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub triggered: Option<bool>,
    /// Tokens used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Tokens>,
    /// Cost in US dollars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// Duration in milliseconds, including all work around the agent.
    pub duration_ms: u64,
}

/// Point at which one of the user's hook commands runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HookKind {
    /// Before the first trial.
    PreRun,
    /// After a trial was graded, while its sandbox exists.
    PostGrade,
    /// After the last trial.
    PostRun,
}

impl HookKind {
    /// Returns the name: `pre-run`, `post-grade`, `post-run`.
    pub fn name(self) -> &'static str {
        match self {
            Self::PreRun => "pre-run",
            Self::PostGrade => "post-grade",
            Self::PostRun => "post-run",
        }
    }
}

/// Result of one of the user's hook commands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookRecord {
    /// Point at which it ran.
    pub hook: HookKind,
    /// Command line.
    pub command: String,
    /// Exit code; absent if it did not exit on its own.
    pub exit_code: Option<i32>,
    /// True if it timed out.
    #[serde(default)]
    pub timed_out: bool,
    /// Error that prevented it from running to its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Stdout; the middle is omitted if it is too long.
    #[serde(default)]
    pub stdout: String,
    /// Stderr; the middle is omitted if it is too long.
    #[serde(default)]
    pub stderr: String,
    /// Duration in milliseconds.
    pub duration_ms: u64,
}

impl HookRecord {
    /// Returns `true` if it exited with code 0.
    pub fn succeeded(&self) -> bool {
        self.error.is_none() && !self.timed_out && self.exit_code == Some(0)
    }

    /// Returns a description of the result in words.
    pub fn describe(&self) -> String {
        match (&self.error, self.timed_out, self.exit_code) {
            (Some(error), ..) => error.clone(),
            (None, true, _) => format!("had not ended after {} s", self.duration_ms / 1000),
            (None, false, Some(code)) => format!("exit code {code}"),
            (None, false, None) => "ended by a signal".to_owned(),
        }
    }

    /// Returns at most `most` of its last lines: those of stderr, or of stdout if stderr is empty.
    pub fn last_lines(&self, most: usize) -> Vec<&str> {
        let text = if self.stderr.trim().is_empty() { &self.stdout } else { &self.stderr };
        let lines: Vec<&str> = text.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
        lines[lines.len().saturating_sub(most)..].to_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_both_arms_can_meet_needs_the_same_share_of_its_own_score() {
        let finding = |kind: &str, status: &str, implicit: bool| {
            serde_json::json!({ "id": kind, "type": kind, "status": status, "weight": 1, "because": "",
                "implicit": implicit, "score": (status != "undecided").then_some(u8::from(status == "met")) })
        };
        let shared = |threshold: f64, used: &str, others: &[&str], budget: &str| {
            let mut findings = vec![finding("skill_used", used, false), finding("tokens_at_most", budget, true)];
            findings.extend(others.iter().map(|status| finding("contains", status, false)));
            let most = 1.0 + others.len() as f64;
            let record: TrialRecord = serde_json::from_value(serde_json::json!({
                "id": "", "suite": "s", "case": "c", "arm": "a", "agent": "a", "repetition": 1, "outcome": "failed",
                "ending": { "kind": "finished" }, "findings": findings, "input": [], "turn_count": 0, "duration_ms": 0,
                "started_at": "2026-11-21T21:48:00Z", "score": 1, "max_score": most, "pass_score": threshold * most,
            }))
            .unwrap();
            record.shared_result()
        };
        for used in ["met", "unmet", "undecided"] {
            let score = |share: f64| Some(Bounds::exact(share));
            assert_eq!(shared(0.6, used, &["met"], "met"), (Outcome::Passed, score(1.0)), "{used}");
            assert_eq!(shared(0.6, used, &["unmet"], "met"), (Outcome::Failed, score(0.0)), "{used}");
            assert_eq!(shared(0.5, used, &["met", "unmet"], "met"), (Outcome::Passed, score(0.5)), "{used}");
            assert_eq!(shared(0.6, used, &["met", "unmet"], "met"), (Outcome::Failed, score(0.5)), "{used}");
            assert_eq!(shared(0.6, used, &["met"], "undecided"), (Outcome::Undecided, score(1.0)), "{used}");
            assert_eq!(shared(0.6, used, &["met"], "unmet"), (Outcome::Failed, score(1.0)), "{used}");
        }
    }

    #[test]
    fn a_sum_with_an_unknown_amount_is_unknown() {
        let usage = AuxiliaryUsage {
            requests: 2,
            cached: 0,
            tokens: Some(Tokens { input: 5, ..Tokens::default() }),
            cost_usd: Some(0.5),
        };
        let cached = AuxiliaryUsage { cached: 3, ..AuxiliaryUsage::default() };
        let mut sum = AuxiliaryUsage::default();
        for more in [usage, cached, usage] {
            sum += more;
        }
        assert_eq!((sum.requests, sum.cached, sum.cost_usd), (4, 3, Some(1.0)));
        assert_eq!(sum.tokens.map(|tokens| tokens.total()), Some(10));
        sum += AuxiliaryUsage { requests: 1, tokens: usage.tokens, ..AuxiliaryUsage::default() };
        assert_eq!((sum.requests, sum.cost_usd), (5, None));
        assert_eq!(sum.tokens.map(|tokens| tokens.total()), Some(15));
        sum += usage;
        assert_eq!(sum.cost_usd, None);
        let free = AuxiliaryUsage { cost_usd: Some(0.0), ..cached };
        let mut sum = AuxiliaryUsage::default();
        sum += free;
        sum += free;
        assert_eq!((sum.cached, sum.cost_usd), (6, Some(0.0)), "answers from the cache cost nothing");
        sum += usage;
        assert_eq!(sum.cost_usd, Some(0.5));
    }
}
