//! What the user wrote: suites and cases, before anything is planned.

use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{Definition, Diagnostic, Excerpt, Fixtures, Node, Skill, SkillEval, Spanned};

/// One file of cases, or the cases of one skill.
#[derive(Debug, Clone)]
pub struct Suite {
    /// The skill's name, else the file's stem. First part of a trial's id.
    pub name: String,
    /// The file the cases came from.
    pub path: PathBuf,
    /// The format it was read as, such as `scenario`.
    pub format: &'static str,
    /// The cases, in the order they are written.
    pub cases: Vec<Arc<Case>>,
}

/// One test of an agent.
#[derive(Debug, Clone)]
pub struct Case {
    /// Unique within its suite.
    pub id: String,
    /// Where the id is written.
    pub source: Excerpt,
    /// A human's note.
    pub description: Option<String>,
    /// For selection.
    pub tags: Vec<String>,
    /// What is under test.
    pub subject: Subject,
    /// What is installed of it: a skill, or the definition of a sub-agent.
    pub definition: Definition,
    /// What the user says, in order, in one session; at least one message, unless the case is code or the user is played.
    pub messages: Vec<UserMessage>,
    /// Tools that the agent is to have beside its own, for every message that is not written down: those of code and of a
    /// played user.
    pub tools: Vec<Value>,
    /// The function that is the case, where it is written as code. It says what the user says, and asserts.
    pub code: Option<Box<Code>>,
    /// The model that plays the user once the messages are said.
    pub user: Option<Box<SimulatedUser>>,
    /// Settings of the `runner` block and its like; unset ones are filled in when the run is planned. The cases of a file
    /// may share them.
    pub runner: Arc<RunnerOptions>,
    /// The most model turns over the whole chain. Absent: no cap.
    pub max_turns: Option<u64>,
    /// Number of model turns above which a trial without a cap gets a warning; a default of the format.
    pub warn_turns: Option<u64>,
    /// The most tokens over the whole chain; goes before the skill's own.
    pub token_budget: Option<f64>,
    /// Wall clock for one trial, in milliseconds.
    pub timeout_ms: Option<u64>,
    /// How often to repeat it; the run's number when absent.
    pub trials: Option<u64>,
    /// The sandbox before the agent starts.
    pub fixtures: Arc<Fixtures>,
    /// Answers to the agent's questions, each used once.
    pub user_responses: Vec<UserResponse>,
    /// What must hold afterwards; names and arguments, not compiled yet.
    pub assertions: Vec<AssertionSpec>,
    /// True if a trial of which nothing is asserted is undecided. It is, unless the case has a token budget of its own, or an
    /// arm leaves out what the case asserts. Other limits bound a trial and claim nothing about what the agent did.
    pub must_assert: bool,
    /// How findings become an outcome.
    pub ruling: Ruling,
    /// Why it is not to be run.
    pub skip: Option<String>,
    /// Why it cannot be run, although the rest can. Its trials are broken.
    pub broken: Vec<Diagnostic>,
    /// `true` if a mistake in how it is written breaks its own trials; otherwise nothing runs.
    pub fails_alone: bool,
    /// Number of times that a failed trial is run again; the run's setting if absent.
    pub reruns: Option<u32>,
    /// What the record calls expected, where the format has such a value.
    pub expected: Option<Value>,
    /// What is expected of the whole result, where `expected` is something else.
    pub expected_trace: Option<Value>,
    /// The JSON Schema of the output, where `expected` is something else.
    pub expected_schema: Option<Value>,
    /// When its variables are kept in the record.
    pub log_vars: LogVars,
    /// Where it stands in its file, from 0, for formats whose readers count.
    pub position: Option<usize>,
    /// What it asks of the skill under test, where it asks whether the skill is of use.
    pub skill_eval: Option<Box<SkillEval>>,
}

// What thousands of cases leave open, they share.
static NO_OPTIONS: LazyLock<Arc<RunnerOptions>> = LazyLock::new(Arc::default);
static NO_FIXTURES: LazyLock<Arc<Fixtures>> = LazyLock::new(Arc::default);

impl Case {
    /// Every tool that the case brings; one may come more than once.
    pub fn all_tools(&self) -> impl Iterator<Item = &Value> {
        self.messages.iter().flat_map(|message| &message.tools).chain(&self.tools)
    }

    /// A case with an id and a place and nothing else; formats fill in what they have.
    pub fn new(id: impl Into<String>, source: Excerpt) -> Self {
        Self {
            id: id.into(),
            source,
            description: None,
            tags: Vec::new(),
            subject: Subject::Agent,
            definition: Definition::Skill,
            messages: Vec::new(),
            tools: Vec::new(),
            code: None,
            user: None,
            runner: Arc::clone(&NO_OPTIONS),
            max_turns: None,
            warn_turns: None,
            token_budget: None,
            timeout_ms: None,
            trials: None,
            fixtures: Arc::clone(&NO_FIXTURES),
            user_responses: Vec::new(),
            assertions: Vec::new(),
            must_assert: true,
            ruling: Ruling::default(),
            skip: None,
            broken: Vec::new(),
            fails_alone: false,
            reruns: None,
            expected: None,
            expected_trace: None,
            expected_schema: None,
            log_vars: LogVars::default(),
            position: None,
            skill_eval: None,
        }
    }
}

/// A case that is a function in a module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Code {
    /// The module, absolute.
    pub module: PathBuf,
    /// Which of the scenarios that the module exports, in the order of its exports, from 0.
    pub scenario: usize,
    /// What the scenario is called.
    pub name: String,
    /// What it asserts, once for each time it is written there. What it comes to shows only when it runs.
    pub claims: Vec<CodeClaim>,
}

/// An assertion in the code of a scenario.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeClaim {
    /// The name that code has for it, such as `llmJudge`.
    pub name: String,
    /// Where it is written.
    pub source: Excerpt,
}

/// A user that a model plays.
#[derive(Debug, Clone, PartialEq)]
pub struct SimulatedUser {
    /// Who the user is: `role`, `name`, `tone`, `backstory`, `context`.
    pub persona: Map<String, Value>,
    /// What the user wants.
    pub goal: String,
    /// When the user has nothing more to say.
    pub stop_when: Option<String>,
    /// The most messages the user sends.
    pub max_turns: u64,
    /// The model that plays, as `provider:model`; absent: the run's judge.
    pub model: Option<String>,
    /// Where it is written.
    pub source: Excerpt,
}

/// What a case puts to the test.
#[derive(Debug, Clone)]
pub enum Subject {
    /// A skill, installed where the agent looks for skills, and put to it as if it had been triggered.
    Skill(Arc<Skill>),
    /// A skill, or the definition of a sub-agent, that is installed only: whether the agent makes use of it is up to the agent.
    Installed(Arc<Skill>),
    /// A prompt, appended to the agent's own.
    Prompt(Arc<Skill>),
    /// The agent as it is.
    Agent,
}

impl Subject {
    /// The skill or the prompt's stand-in.
    pub fn skill(&self) -> Option<&Arc<Skill>> {
        match self {
            Self::Skill(skill) | Self::Installed(skill) | Self::Prompt(skill) => Some(skill),
            Self::Agent => None,
        }
    }

    /// The skill that is to be installed.
    pub fn installed(&self) -> Option<&Arc<Skill>> {
        match self {
            Self::Skill(skill) | Self::Installed(skill) => Some(skill),
            Self::Prompt(_) | Self::Agent => None,
        }
    }
}

/// One thing the user says, and what the agent is handed with it. Agents that take only text pass over the rest.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct UserMessage {
    /// The text, sent as it is.
    pub text: String,
    /// The value the text was made of, where the case has one.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "crate::present::deserialize")]
    pub input: Option<Value>,
    /// The prompt or script that is to answer, as the user names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub script: Option<String>,
    /// Who says it: `role`, `name`, `tone`, `backstory`, `context`, as far as the case tells.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub persona: Map<String, Value>,
    /// Tools the agent is to have beside its own: names, references to modules, or descriptions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<Value>,
    /// Named values for the script: what templates see.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub vars: Map<String, Value>,
    /// Settings handed on to the script unread.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub options: Map<String, Value>,
}

impl UserMessage {
    /// A message that is nothing but text.
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }
}

/// How findings become an outcome, where it is not simply that all of them must be met.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Ruling {
    /// The trial passes by its score; without it, by its findings.
    pub scoring: Option<Scoring>,
    /// The trial passes if what it asserts does not hold. Trouble is not turned into a pass.
    pub not: bool,
}

/// What a trial must score.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Scoring {
    /// What a full match scores.
    pub max_score: f64,
    /// The least score that passes, if nothing critical failed.
    pub pass_score: f64,
}

/// When a trial's variables are kept in the record.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogVars {
    /// Never.
    #[default]
    Never,
    /// When the trial did not pass.
    OnFailure,
    /// Always.
    Always,
}

/// A prepared answer.
#[derive(Debug, Clone)]
pub struct UserResponse {
    /// A regular expression over the question's text.
    pub match_question: Spanned<String>,
    /// The label to choose, or free text.
    pub choose: String,
    /// Where the pattern is written.
    pub source: Excerpt,
}

/// An assertion as written: a type, arguments and a place. Only grading knows what the types are.
#[derive(Debug, Clone)]
pub struct AssertionSpec {
    /// The whole entry, `id`, `type` and `weight` included.
    pub node: Node,
    /// How its arguments are written.
    pub arguments: Arguments,
    /// What it is about.
    pub about: About,
    /// Unique within the case.
    pub id: String,
    /// Such as `tool_called`.
    pub kind: Spanned<String>,
    /// Share of the score; 1 unless written.
    pub weight: f64,
}

/// How the arguments of an assertion are written.
#[derive(Debug, Clone, Default)]
pub enum Arguments {
    /// As fields of the entry, beside `type`: `{type: contains, text: hello}`.
    #[default]
    Fields,
    /// As the value of a single key, which is the type: `contains: hello`.
    Brief(Node),
    /// One after the other, as code gives them: `assert.contains(reply, "hello")`, the reply left out.
    Listed(Vec<Node>),
}

/// What an assertion is about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum About {
    /// All that the agent did and left behind.
    #[default]
    Trial,
    /// The reply to one message of the user, from 1, and what was done for it.
    Reply(usize),
    /// The last reply.
    LastReply,
}

/// Settings a case may carry.
#[derive(Debug, Clone, Default)]
pub struct RunnerOptions {
    /// Which agent; the original name `claude` is already `claude-code` here.
    pub agent: Option<(String, Excerpt)>,
    /// Which model, or `scripted:FILE` with FILE resolved against the suite.
    pub model: Option<String>,
    /// Where the model is written.
    pub model_source: Option<Excerpt>,
    /// How the agent treats permissions.
    pub permission_mode: Option<PermissionMode>,
    /// The only tools the agent is to have. Replaces the skill's `allowed-tools`.
    pub allowed_tools_override: Option<Vec<String>>,
    /// Which of the machine's own settings the agent may read; none unless written.
    pub setting_sources: Vec<SettingSource>,
    /// `low`, `medium`, `high`, as the agent understands it.
    pub reasoning_effort: Option<String>,
}

/// How the agent treats permissions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum PermissionMode {
    /// Ask for what is not allowed; nobody is there to say yes.
    Default,
    /// Allow edits below the working directory.
    AcceptEdits,
    /// Look, do not touch.
    Plan,
    /// Allow everything.
    BypassPermissions,
}

impl PermissionMode {
    /// Every mode by its written name.
    pub const ALL: [(&'static str, Self); 4] = [
        ("default", Self::Default),
        ("acceptEdits", Self::AcceptEdits),
        ("plan", Self::Plan),
        ("bypassPermissions", Self::BypassPermissions),
    ];

    /// As written.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, mode)| *mode == self).map_or("default", |(name, _)| name)
    }
}

/// One layer of the agent's own settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SettingSource {
    /// The user's configuration folder.
    User,
    /// The repository's configuration.
    Project,
    /// The repository's private configuration.
    Local,
}

impl SettingSource {
    /// Every source by its written name.
    pub const ALL: [(&'static str, Self); 3] =
        [("user", Self::User), ("project", Self::Project), ("local", Self::Local)];

    /// As written.
    pub fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Project => "project",
            Self::Local => "local",
        }
    }
}
