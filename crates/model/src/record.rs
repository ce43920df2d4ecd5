//! What is kept of a run and of a trial: the objects of the JSON report.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    Ending, Fault, FileChange, Finding, Limits, Outcome, Phases, Ruling, Scoring, SideEffects, Tokens, TrialId,
};

/// A run, as the report's `run` tells it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunInfo {
    /// Sorts by time.
    pub id: String,
    /// The user's name for it.
    pub label: Option<String>,
    /// The run whose evidence was graded again.
    #[serde(default)]
    pub regrade_of: Option<String>,
    /// When it began.
    pub started_at: Timestamp,
    /// The program's version.
    pub trialrun_version: String,
    /// The resolved settings: name → value.
    pub settings: Map<String, Value>,
    /// The agents it uses.
    pub agents: Vec<AgentInfo>,
    /// The skills it tests.
    pub skills: Vec<SkillInfo>,
    /// The trials it will run, in order.
    pub trials: Vec<TrialId>,
    /// How many run at a time.
    pub jobs: usize,
}

/// An agent of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentInfo {
    /// Such as `claude-code`.
    pub name: String,
    /// The agent's own version, if it is known.
    pub version: Option<String>,
    /// The model.
    pub model: Option<String>,
    /// As the agent understands it.
    pub reasoning_effort: Option<String>,
    /// Where its model is reached.
    pub base_url: Option<String>,
}

/// A skill of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkillInfo {
    /// Its name.
    pub name: String,
    /// Its version as written.
    pub version: Option<String>,
    /// SHA-256 over its files.
    pub content_hash: String,
}

/// A finished trial, as the report's `trials` tells it. What it does not have is not written: most of the fields of most
/// trials are empty, and there are thousands of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrialRecord {
    /// Printed: `suite::case@arm#1`.
    pub id: Arc<str>,
    /// The suite's name.
    pub suite: Arc<str>,
    /// The case's id.
    pub case: Arc<str>,
    /// What a person would call it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The arm, printed.
    pub arm: Arc<str>,
    /// The agent.
    pub agent: String,
    /// The model as the user named it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Such as `with_skill`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
    /// From 1.
    pub repetition: u64,
    /// What it came to.
    pub outcome: Outcome,
    /// Passed only after another attempt failed.
    #[serde(default)]
    pub flaky: bool,
    /// Whose trouble it was, if it is broken or undecided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<Fault>,
    /// The reason in one line; absent for a pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
    /// How acting ended; absent if it never began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ending: Option<Ending>,
    /// Σ weight·score of the decided findings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    /// Σ weight of the decided findings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_score: Option<f64>,
    /// The score it takes to pass, where the format has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pass_score: Option<f64>,
    /// One for each assertion, implicit ones last.
    pub findings: Vec<Finding>,
    /// What the user said, all messages.
    pub input: Vec<String>,
    /// The value the message was made of, where the case has one.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::present::deserialize")]
    pub input_value: Option<Value>,
    /// The agent's last answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// The whole of what the agent gave last, where that is more than text: `output`, `messages` and any other key.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::present::deserialize")]
    pub result: Option<Value>,
    /// What the case calls expected.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::present::deserialize")]
    pub expected: Option<Value>,
    /// What the case expects of the whole result, where `expected` is something else.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::present::deserialize")]
    pub expected_trace: Option<Value>,
    /// The JSON Schema of the output, where `expected` is something else.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::present::deserialize")]
    pub expected_schema: Option<Value>,
    /// The script that was to answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script: Option<String>,
    /// The tools it was handed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<Value>,
    /// The variables it was handed, where the case wants them kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vars: Option<Map<String, Value>>,
    /// Whether it passes when what it asserts does not hold.
    #[serde(default)]
    pub not: bool,
    /// Where the case stands in its file, from 0, for formats whose readers count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<usize>,
    /// Numbers that the case's code gave a name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub scores: BTreeMap<String, f64>,
    /// What judging by models took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judge: Option<Aside>,
    /// What playing the user took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<Aside>,
    /// How the agent replied to each message, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replies: Vec<ReplyRecord>,
    /// The model's turns, sub-agents' not counted.
    pub turn_count: usize,
    /// Every call.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<CallRecord>,
    /// Every question.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub questions: Vec<AnsweredQuestion>,
    /// Tokens, if they are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Tokens>,
    /// US dollars, if they are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// Who says what it cost: the user's prices (`pricing-config`), OpenRouter's list (`openrouter-pricing`), an agent that is
    /// a program (`cli`, or `cli-unreconciled` where OpenRouter bills and its list was not to be had), any other (`agent`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_source: Option<String>,
    /// What the agent itself says it cost, where another figure goes before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd_cli: Option<f64>,
    /// Whether the agent made use of the skill under test; absent where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub triggered: Option<bool>,
    /// Whether it was to, as far as the case says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub should_trigger: Option<bool>,
    /// What the trial left on remotes: what `cleanup` takes away.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub side_effects: Vec<SideEffects>,
    /// What the agent's process exited with, where there is one and it ended by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// From provisioning to the outcome, all attempts and everything around the agent included.
    pub duration_ms: u64,
    /// How long the agent took, in milliseconds, with earlier attempts that count: its own time, which `--max-duration`
    /// limits and comparisons use. Absent where it did not run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_ms: Option<u64>,
    /// How long each part of it took.
    #[serde(default)]
    pub phases: Phases,
    /// When it started.
    pub started_at: Timestamp,
    /// The agent's own session id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// The agent's own version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_version: Option<String>,
    /// How the agent was signed in, in words that hold no secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth: Option<String>,
    /// The skill under test.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skill: Option<SkillInfo>,
    /// The limits in force.
    #[serde(default)]
    pub limits: Arc<Limits>,
    /// Settings of this trial that change what the agent does: permission mode, tools, setting sources. Trials of one arm
    /// share them.
    #[serde(default, skip_serializing_if = "is_empty")]
    pub settings: Arc<Map<String, Value>>,
    /// Attempts before this one; this one is last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attempts: Vec<AttemptRecord>,
    /// Files of the working directory that are not as they were.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files_changed: Vec<FileChange>,
    /// The sandbox, where it was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<String>,
    /// What went wrong beside the findings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<String>,
    /// What looks wrong but decides nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// True if the record of the last attempt has masked text that assertions may look at.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub masked: bool,
}

impl TrialRecord {
    /// Whether it is only there to be compared with: its agent lacks the skill. It decides nothing by itself.
    pub fn is_baseline(&self) -> bool {
        self.variant.as_deref() == Some(crate::WITHOUT_SKILL)
    }

    /// Number of findings that could not be decided, or only in part.
    pub fn undecided(&self) -> usize {
        self.findings.iter().filter(|finding| !finding.is_decided()).count()
    }

    /// `Some(true)` if what could be decided passes; `None` if the trial was not graded, or no assertion was decided.
    pub fn decided_pass(&self) -> Option<bool> {
        let scoring = self.pass_score.zip(self.max_score);
        let scoring = scoring.map(|(pass_score, max_score)| Scoring { max_score, pass_score });
        let ruling = Ruling { scoring, not: self.not };
        Outcome::of_decided(&self.findings, &ruling).filter(|_| self.outcome.is_graded())
    }

    /// Number of undecided findings of a trial that passed but for them; `None` for any other trial.
    pub fn passed_but_for(&self) -> Option<usize> {
        let is_open = self.outcome == Outcome::Undecided && self.decided_pass() == Some(true);
        is_open.then(|| self.undecided())
    }
}

fn is_empty(settings: &Arc<Map<String, Value>>) -> bool {
    settings.is_empty()
}

/// What was asked of models other than the agent's own; it never counts as the agent's.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Aside {
    /// How many answers came from a model.
    pub requests: u64,
    /// How many answers were there already.
    pub cached: u64,
    /// What it used; an amount that one of them did not tell is absent.
    pub tokens: Option<Tokens>,
    /// What it cost in US dollars; absent if it is not known of one of them.
    pub cost_usd: Option<f64>,
}

impl std::ops::AddAssign for Aside {
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

impl Aside {
    /// An amount of both together: known if it is known of each that asked a model at all.
    fn with<T>(self, other: Self, of: fn(&Self) -> Option<T>, plus: impl FnOnce(T, T) -> T) -> Option<T> {
        match (self.requests, other.requests) {
            (_, 0) => of(&self),
            (0, _) => of(&other),
            _ => Some(plus(of(&self)?, of(&other)?)),
        }
    }
}

/// A reply to one message of the user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplyRecord {
    /// The answer. Absent if there is none, or if it is the only reply: then it is the trial's answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// From the message to the end of the reply, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_ms: Option<u64>,
    /// From the message to the first word of the reply, in milliseconds, if it came in pieces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_token_ms: Option<u64>,
}

/// A call, as the report tells it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CallRecord {
    /// The canonical name.
    pub name: String,
    /// The agent's own name.
    pub raw_name: String,
    /// The arguments.
    pub input: Value,
    /// The answer.
    pub result: Option<String>,
    /// Whether the answer is an error.
    pub is_error: bool,
    /// Index of the turn, from 0.
    pub turn: usize,
    /// The call whose sub-agent made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
}

/// A question and what was answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnsweredQuestion {
    /// What the agent asked.
    pub question: String,
    /// What it was told; absent when nothing matched.
    pub answer: Option<String>,
}

/// One attempt at a trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AttemptRecord {
    /// What it came to.
    pub outcome: Outcome,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
    /// The agent's last answer in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// What it used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Tokens>,
    /// What it cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// How long it took, everything around the agent included.
    pub duration_ms: u64,
}

/// When a command runs that the user puts around trials.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HookKind {
    /// Before any trial.
    PreRun,
    /// After a trial was graded, while its sandbox is there.
    PostGrade,
    /// After the last trial.
    PostRun,
}

impl HookKind {
    /// In words: `pre-run`, `post-grade`, `post-run`.
    pub fn name(self) -> &'static str {
        match self {
            Self::PreRun => "pre-run",
            Self::PostGrade => "post-grade",
            Self::PostRun => "post-run",
        }
    }
}

/// What became of a command that the user puts around trials.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookRecord {
    /// When it ran.
    pub hook: HookKind,
    /// The command.
    pub command: String,
    /// Its exit code; absent where it did not come to its end by itself.
    pub exit_code: Option<i32>,
    /// Whether its time was over.
    #[serde(default)]
    pub timed_out: bool,
    /// What kept it from being run to its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What it wrote to its standard output; of too much the middle is left out.
    #[serde(default)]
    pub stdout: String,
    /// The same of its error output.
    #[serde(default)]
    pub stderr: String,
    /// How long it took.
    pub duration_ms: u64,
}

impl HookRecord {
    /// Whether it came to its end and is content.
    pub fn succeeded(&self) -> bool {
        self.error.is_none() && !self.timed_out && self.exit_code == Some(0)
    }

    /// How it went, in words.
    pub fn describe(&self) -> String {
        match (&self.error, self.timed_out, self.exit_code) {
            (Some(error), ..) => error.clone(),
            (None, true, _) => format!("had not ended after {} s", self.duration_ms / 1000),
            (None, false, Some(code)) => format!("exit code {code}"),
            (None, false, None) => "ended by a signal".to_owned(),
        }
    }

    /// The last lines it wrote, those of its error output if there are any; at most `most`.
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
    fn what_one_of_them_does_not_tell_is_not_known_of_all() {
        let told = Aside {
            requests: 2,
            cached: 0,
            tokens: Some(Tokens { input: 5, ..Tokens::default() }),
            cost_usd: Some(0.5),
        };
        let cached = Aside { cached: 3, ..Aside::default() };
        let mut sum = Aside::default();
        for more in [told, cached, told] {
            sum += more;
        }
        assert_eq!((sum.requests, sum.cached, sum.cost_usd), (4, 3, Some(1.0)));
        assert_eq!(sum.tokens.map(|tokens| tokens.total()), Some(10));
        sum += Aside { requests: 1, tokens: told.tokens, ..Aside::default() };
        assert_eq!((sum.requests, sum.cost_usd), (5, None));
        assert_eq!(sum.tokens.map(|tokens| tokens.total()), Some(15));
        sum += told;
        assert_eq!(sum.cost_usd, None);
    }
}
