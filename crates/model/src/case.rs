//! Suites and cases as the user wrote them, before planning.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    Canaries, CaseFault, Definition, Diagnostic, Excerpt, Fixtures, Mocks, NetworkPolicy, Node, OuterFolder, PassRate,
    RemoteMode, RunnerOptions, Skill, SkillEval, Source, Spanned, Trials,
};

/// Cases of one file or of one skill.
#[derive(Debug, Clone)]
pub struct Suite {
    /// Name of the skill, otherwise the stem of the file. First part of a trial's id.
    pub name: String,
    /// File that the cases came from.
    pub path: PathBuf,
    /// Format of the file, such as `scenario`.
    pub format: &'static str,
    /// Cases in the order in which they are written.
    pub cases: Vec<Arc<Case>>,
}

/// Trees in which commands of assertions and hooks work.
#[derive(Debug, Clone, Default)]
pub struct Graded {
    /// Globs of the files that the agent may change although they steer tools, such as tests and settings of test
    /// runners. The others are restored before commands run.
    pub taken_files: Vec<String>,
    /// True if all commands work in one tree, so that later ones find what earlier ones left. Otherwise, each has a tree
    /// of its own.
    pub is_shared: bool,
    /// True if the agent may change all files of the fixture, so that none is restored.
    pub takes_fixture: bool,
    /// Folders that only these commands see.
    pub folders: Vec<GradedFolder>,
    /// Absolute path of a folder, empty at first, into which commands write rewards.
    pub rewards: Option<String>,
    /// Solution of the case's own. If the agent fails, it shows whether a verifier can be satisfied at all.
    pub solution: Option<Arc<Solution>>,
    /// Location of the first of the folders that have absolute paths.
    pub absolute_source: Option<Excerpt>,
}

/// Folder that commands of assertions see and the agent does not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GradedFolder {
    /// Absolute path at which commands see it, without `..`.
    pub path: String,
    /// Existing directory whose contents it has; empty if absent.
    pub from: Option<PathBuf>,
}

/// Solution of a case.
#[derive(Debug, Clone)]
pub struct Solution {
    /// Folders that only the solution sees, in addition to those of the sandbox.
    pub outside: Vec<OuterFolder>,
    /// Command that does the work for each message, run in the working directory.
    pub commands: Vec<String>,
}

/// One test of an agent.
#[derive(Debug, Clone, Default)]
pub struct Case {
    /// Id, unique within the suite.
    pub id: String,
    /// Location of the id.
    pub source: Excerpt,
    /// Description for readers.
    pub description: Option<String>,
    /// Tags, used to select cases.
    pub tags: Vec<String>,
    /// Subject under test.
    pub subject: Subject,
    /// Kind of definition that is installed: a skill or a sub-agent.
    pub definition: Definition,
    /// Messages that the user sends, in order, in one session. There is at least one, unless the case is code or the
    /// user is simulated.
    pub messages: Vec<UserMessage>,
    /// Tools that the agent gets in addition to its own for messages that are not in the file: those from code or from
    /// a simulated user.
    pub tools: Vec<Value>,
    /// Place of the tools of the case or of its messages.
    pub tools_source: Option<Excerpt>,
    /// Function that implements the case if it is written as code. It sends the user's messages and makes the
    /// assertions.
    pub code: Option<Box<Code>>,
    /// Model that plays the user after the written messages.
    pub user: Option<Box<SimulatedUser>>,
    /// Settings from `runner` and similar blocks; missing ones are filled in when the run is planned. Cases in one
    /// file may share them.
    pub runner: Arc<RunnerOptions>,
    /// Maximum number of model turns over all messages. No cap if absent.
    pub max_turns: Option<u64>,
    /// Number of model turns above which a trial without a cap gets a warning; a default of the format.
    pub warn_turns: Option<u64>,
    /// Maximum number of tokens over all messages. Takes precedence over the skill's own budget.
    pub token_budget: Option<f64>,
    /// Wall-clock timeout of one trial, in milliseconds.
    pub timeout_ms: Option<u64>,
    /// Number of repetitions; the run's number if absent.
    pub trials: Option<Trials>,
    /// Pass rate that the case requires. It is tested only if the number of trials is decided automatically.
    pub pass_rate: Option<PassRate>,
    /// Isolation without which the case is not run: names from [`GUARANTEES`](crate::GUARANTEES).
    pub required_isolation: Vec<String>,
    /// Hosts that the processes of the trial may reach; the run's policy if absent.
    pub network: Option<NetworkPolicy>,
    /// Location of the key that sets both.
    pub isolation_source: Option<Excerpt>,
    /// Trees in which commands of assertions and hooks work.
    pub graded: Graded,
    /// Parts of the case that only an image has, with their locations. It runs only in sandboxes with such an image.
    pub needs_image: Vec<Diagnostic>,
    /// Canaries that its trials plant; the project's setting if absent.
    pub canaries: Option<Canaries>,
    /// Faults that its trials inject.
    pub faults: Vec<CaseFault>,
    /// MCP servers and mocked programs of its trials, in addition to those of the project.
    pub mocks: Arc<Mocks>,
    /// Remote that the agent pushes to, if there is a source repository; the run's setting if absent.
    pub remote: Option<RemoteMode>,
    /// Contents of the sandbox before the agent starts.
    pub fixtures: Arc<Fixtures>,
    /// Prepared answers to the agent's questions, each used once.
    pub user_responses: Vec<UserResponse>,
    /// Assertions about the result: names and arguments, not compiled yet.
    pub assertions: Vec<AssertionSpec>,
    /// True if a trial without any assertion is undecided. False if the case has its own token budget, or an arm omits
    /// the case's assertions. Other limits bound a trial but claim nothing about what the agent did.
    pub must_assert: bool,
    /// Rule that turns findings into an outcome.
    pub ruling: OutcomeRule,
    /// Reason for skipping the case.
    pub skip: Option<String>,
    /// Place of `only`, which skips the other cases of the file.
    pub only: Option<Excerpt>,
    /// Quarantine, if the case is in one.
    pub quarantine: Option<Quarantine>,
    /// Reasons why this case cannot run although others can. Its trials are broken.
    pub broken: Vec<Diagnostic>,
    /// True if a mistake in the case breaks only its own trials; otherwise a mistake prevents the whole run.
    pub fails_alone: bool,
    /// Number of times that a failed trial is run again; the run's setting if absent.
    pub reruns: Option<u32>,
    /// Value that the record reports as expected, if the format has one.
    pub expected: Option<Value>,
    /// Expected value of the whole result, if it differs from `expected`.
    pub expected_trace: Option<Value>,
    /// JSON Schema of the output, if it differs from `expected`.
    pub expected_schema: Option<Value>,
    /// Condition under which the record keeps the variables.
    pub log_vars: LogVars,
    /// Row from which the case was made, if it is in another file.
    pub table: Option<Excerpt>,
    /// Position in the file, from 0, for formats whose readers count cases.
    pub position: Option<usize>,
    /// Text to append to the agent's system prompt.
    pub system_prompt: Option<String>,
    /// Transcript of Claude Code, the conversation that the messages continue. Only agents with
    /// `Description::takes_history` can do that.
    pub history: Option<PathBuf>,
    /// Ids of assertions that show whether the subject was used. If the case also runs without its subject, they are
    /// reported only where the subject is present, and do not count, unless the case has no others.
    pub indicators: Vec<String>,
    /// True if a trial ends as soon as the agent has used the skill under test.
    pub ends_when_triggered: bool,
    /// Expectations about the skill under test, if the case checks whether the skill helps.
    pub skill_eval: Option<Box<SkillEval>>,
    /// Variants that run as arms of their own instead of this case, with their names.
    pub variants: Vec<(String, Arc<Case>)>,
}

impl Case {
    /// Returns every tool of the case; a tool may occur more than once.
    pub fn all_tools(&self) -> impl Iterator<Item = &Value> {
        self.messages.iter().flat_map(|message| &message.tools).chain(&self.tools)
    }

    /// Returns the place of the tools, or that of the case.
    pub fn tools_place(&self) -> &Excerpt {
        self.tools_source.as_ref().unwrap_or(&self.source)
    }

    /// Returns the folders of this machine whose files its sandboxes have.
    pub fn source_folders(&self) -> impl Iterator<Item = &Path> {
        let solution = self.graded.solution.iter().flat_map(|solution| &solution.outside);
        let outer = self.fixtures.outside.iter().chain(solution).flat_map(|folder| &folder.trees);
        let trees = self.fixtures.copy_trees.iter().chain(outer).map(|tree| tree.from.as_path());
        trees.chain(self.graded.folders.iter().filter_map(|folder| folder.from.as_deref()))
    }

    /// Creates a case with only an id and a location; the formats fill in the rest.
    pub fn new(id: impl Into<String>, source: Excerpt) -> Self {
        Self { id: id.into(), source, must_assert: true, ..Self::default() }
    }
}

/// Quarantine of a case that is known to be unreliable: its trials run and are reported, but do not decide the result
/// of the run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quarantine {
    /// Reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Day on which it began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<jiff::civil::Date>,
}

impl Quarantine {
    /// Describes it in one line: `quarantined since 2026-11-01: the service is slow`.
    pub fn describe(&self) -> String {
        let since = self.since.map_or_else(String::new, |since| format!(" since {since}"));
        let reason = self.reason.as_ref().map_or_else(String::new, |reason| format!(": {reason}"));
        format!("quarantined{since}{reason}")
    }
}

/// Case that is a function in a module.
#[derive(Debug, Clone)]
pub struct Code {
    /// Absolute path of the module.
    pub module: PathBuf,
    /// Index of the scenario among those that the module exports, in export order, from 0.
    pub scenario: usize,
    /// Name of the scenario.
    pub name: String,
    /// Assertions in the code, one for each location where one is written. Their results are known only after the code
    /// has run.
    pub claims: Vec<CodeClaim>,
}

/// Tag of a value in a [`CodeClaim`] that is known only at run time.
pub const UNKNOWN_TAG: &str = "!unknown";

/// Assertion in the code of a scenario.
#[derive(Debug, Clone)]
pub struct CodeClaim {
    /// Name of the assertion in code, such as `llmJudge`, and where it is called.
    pub name: Spanned<String>,
    /// Arguments. `None` if the value is known only at run time, and [`UNKNOWN_TAG`] for such values in a map.
    pub arguments: Vec<Option<Node>>,
    /// True if the first argument may be a reply, which is not an argument of the assertion.
    pub may_have_reply: bool,
    /// File that contains it.
    pub source: Arc<Source>,
}

/// User played by a model.
#[derive(Debug, Clone, PartialEq)]
pub struct SimulatedUser {
    /// Persona of the user: `role`, `name`, `tone`, `backstory`, `context`.
    pub persona: Map<String, Value>,
    /// Goal of the user.
    pub goal: String,
    /// Condition under which the user stops.
    pub stop_when: Option<String>,
    /// Maximum number of messages that the user sends.
    pub max_turns: u64,
    /// Model that plays the user, as `provider:model`; the run's judge if absent.
    pub model: Option<String>,
    /// Location in the file.
    pub source: Excerpt,
}

/// Subject that a case tests.
#[derive(Debug, Clone, Default)]
pub enum Subject {
    /// Skill that is installed where the agent looks for skills and presented to it as if it had been triggered.
    Skill(Arc<Skill>),
    /// Skill or sub-agent definition that is only installed; the agent decides whether to use it.
    Installed(Arc<Skill>),
    /// Prompt appended to the agent's own.
    Prompt(Arc<Skill>),
    /// Agent without a skill or a prompt.
    #[default]
    Agent,
}

impl Subject {
    /// Returns the skill, or the stand-in for the prompt.
    pub fn skill(&self) -> Option<&Arc<Skill>> {
        match self {
            Self::Skill(skill) | Self::Installed(skill) | Self::Prompt(skill) => Some(skill),
            Self::Agent => None,
        }
    }

    /// Returns the skill to install.
    pub fn installed(&self) -> Option<&Arc<Skill>> {
        match self {
            Self::Skill(skill) | Self::Installed(skill) => Some(skill),
            Self::Prompt(_) | Self::Agent => None,
        }
    }
}

/// One message from the user and the data that goes with it. Agents that accept only text ignore the rest.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct UserMessage {
    /// Text, sent unchanged.
    pub text: String,
    /// Value from which the text was rendered, if the case has one.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "crate::present::deserialize")]
    pub input: Option<Value>,
    /// Prompt or script that answers, as the user names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub script: Option<String>,
    /// Persona of the sender: `role`, `name`, `tone`, `backstory`, `context`, as far as the case specifies them.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub persona: Map<String, Value>,
    /// Tools that the agent gets in addition to its own: names, references to modules, or descriptions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<Value>,
    /// Named values for the script, available to templates.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub vars: Map<String, Value>,
    /// Settings passed to the script without interpretation.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub options: Map<String, Value>,
}

impl UserMessage {
    /// Creates a message that has only text.
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }
}

/// Rule that turns findings into an outcome, for cases that do not simply require all of them to be met.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct OutcomeRule {
    /// Scores that decide whether the trial passes; without them, the findings decide.
    pub scoring: Option<Scoring>,
    /// True if the trial passes when its assertions do not hold. Broken and undecided trials do not become passes.
    pub not: bool,
}

/// Score that a trial needs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Scoring {
    /// Score of a full match.
    pub max_score: f64,
    /// Minimum score that passes, provided that nothing critical failed.
    pub pass_score: f64,
}

impl Scoring {
    /// Returns the scoring with which a trial passes with a share of the full score, from 0 to 1.
    pub fn with_share(max_score: f64, share: f64) -> Self {
        Self { max_score, pass_score: share * max_score }
    }

    /// Returns the share of the full score with which a trial passes.
    pub fn share(&self) -> f64 {
        if self.max_score > 0.0 { self.pass_score / self.max_score } else { 1.0 }
    }
}

/// Condition under which the record keeps a trial's variables.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogVars {
    /// Never keep them.
    #[default]
    Never,
    /// Keep them if the trial did not pass.
    OnFailure,
    /// Always keep them.
    Always,
}

/// Prepared answer to a question from the agent.
#[derive(Debug, Clone)]
pub struct UserResponse {
    /// Regular expression matched against the text of the question.
    pub match_question: Spanned<String>,
    /// Label to choose, or free text.
    pub choose: String,
    /// Location of the pattern.
    pub source: Excerpt,
}

/// Assertion as written: a type, arguments and a location. Only grading knows the types.
#[derive(Debug, Clone)]
pub struct AssertionSpec {
    /// Whole entry, including `id`, `type` and `weight`.
    pub node: Node,
    /// Form in which its arguments are written.
    pub arguments: Arguments,
    /// Part of the trial that it is about.
    pub about: AssertionScope,
    /// Id, unique within the case.
    pub id: String,
    /// Type, such as `tool_called`.
    pub kind: Spanned<String>,
    /// Share of the score; 1 by default.
    pub weight: f64,
}

/// Form in which the arguments of an assertion are written.
#[derive(Debug, Clone, Default)]
pub enum Arguments {
    /// Fields of the entry, next to `type`: `{type: contains, text: hello}`.
    #[default]
    Fields,
    /// Value of a single key, which is the type: `contains: hello`.
    Brief(Node),
    /// Positional arguments in code: `assert.contains(reply, "hello")`, without the reply.
    Listed(Vec<Node>),
}

/// Part of a trial that an assertion is about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AssertionScope {
    /// Everything that the agent did and left behind.
    #[default]
    Trial,
    /// Reply to one message from the user, numbered from 1, and the work done for it.
    Reply(usize),
    /// Last reply.
    LastReply,
}
