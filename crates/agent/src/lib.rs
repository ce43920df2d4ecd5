//! The agents under test. Each has its own file or folder and a line in [`AGENTS`]. Only this crate knows the vendors'
//! agents.
//!
//! An [`Agent`] opens a [`Session`] for each trial. The session records each step with a [`Turn`], which counts it
//! against the limits, computes its cost, and sends it to an [`EventSink`].
//!
//! ```
//! let (agent, argument) = trialrun_agent::find("recorded:answers.jsonl").expect("a known agent");
//! assert_eq!((agent.name(), argument), ("recorded", Some("answers.jsonl")));
//! assert!(!agent.description().needs_sandbox);
//!
//! // A program that embeds this library can be the agent.
//! let bot = trialrun_agent::Executor::new("bot", |message| async move { Ok(format!("You said: {message}")) });
//! assert_eq!(trialrun_agent::Agent::name(bot), "bot");
//! ```

mod acp;
mod activity;
mod address_error;
mod adversary;
mod answer;
mod apply_patch;
mod assistant;
mod call_ids;
mod chat;
mod claude_code;
mod codex;
mod command_line;
mod conversation;
mod custom;
mod description;
mod echo;
mod engine;
mod event_sink;
pub mod evidence;
mod executor;
pub mod fake;
mod field;
mod forged_reply;
mod http;
mod http_client;
mod json;
mod json_lines;
mod lines;
mod mcp;
mod model_request;
mod native_call;
mod network;
mod opencode;
mod own_tools;
mod pricing;
mod process;
mod program;
mod question;
mod recorded;
mod reference;
mod resolve;
mod server;
mod session;
mod sign_in;
mod step_recorder;
mod subprocess;
#[cfg(test)]
mod tests;
mod tool_rule;
mod traces;
mod transcript;
mod turn;
mod vendor;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use grade::KnownTools;
use model::{
    Arm, Case, Definition, Diagnostic, DiagnosticKind, Excerpt, Limits, Mocks, Node, PermissionMode, SettingSource,
    TrialId, nearest,
};
use sandbox::{BoxFuture, Breakage, Host, Sandbox};
use script::Library;

pub use crate::server::{Connection, Server};
pub use crate::session::Session;

pub use acp::{Conformance, ConformanceCheck, Tier, check_conformance};
pub use activity::Activity;
pub use address_error::AddressError;
pub use adversary::{ADVERSARIES, Adversary, Role};
pub use call_ids::CallIds;
pub use conversation::{Conversation, Origin};
pub use description::{Costs, Description};
pub use event_sink::EventSink;
pub use executor::{Call, Executor, TraceTarget};
pub use forged_reply::forged_replies;
pub use pricing::{Bill, Pricing};
pub use program::Program;
pub use reference::reference;
pub use resolve::Resolver;
pub use subprocess::{
    HELP_FOR_UNUSABLE, missing_in_shell, missing_program, named_in_argument, named_program, unusable_program,
};
pub use turn::{INTERRUPTED, Turn, WAITING_ON_PROVIDER};

/// All agents, in display order.
pub static AGENTS: &[&dyn Agent] = &[
    &claude_code::ClaudeCode,
    &codex::Codex,
    &opencode::OpenCode,
    &chat::Chat,
    &custom::Custom,
    &http::Http,
    &subprocess::Subprocess,
    &assistant::Assistant,
    &mcp::Mcp,
    &acp::Acp,
    &acp::named::GEMINI,
    &acp::named::QWEN,
    &acp::named::GOOSE,
    &acp::named::COPILOT,
    &acp::named::AUGGIE,
    &acp::named::CLINE,
    &acp::named::KILO,
    &acp::named::QODER,
    &acp::named::PI,
    &acp::named::VIBE,
    &acp::named::FAST_AGENT,
    &acp::named::CURSOR,
    &acp::named::OPENCODE,
    &acp::named::CLAUDE,
    &acp::named::CODEX,
    &recorded::Recorded,
    &echo::Echo,
    &fake::Fake,
];

/// An agent under test.
pub trait Agent: Send + Sync {
    /// Facts about the agent.
    fn description(&self) -> &Description;

    /// Name in files and on the command line.
    fn name(&self) -> &'static str {
        self.description().name
    }

    /// Returns the reason why the agent cannot use the model `name`, if the model is offered only at its vendor's own
    /// address. `None` if the agent can use it, or if that is unknown. `base_url` is another address set for the run.
    fn refuses_model(&self, _name: &str, _base_url: Option<&str>, _providers: &llm::Providers) -> Option<String> {
        None
    }

    /// Returns the path of the definition that `case` installs, relative to the agent's working directory.
    fn installed(&self, case: &Case) -> Option<String> {
        let (folder, skill) = (self.description().folder_of(case.definition)?, case.subject.installed()?);
        Some(match case.definition {
            Definition::SkillsOfPlugin => folder.to_owned(),
            _ => format!("{folder}/{}", skill.file_name()),
        })
    }

    /// Returns `true` if OpenRouter bills the usage. The cost that the agent reports is then not based on OpenRouter's
    /// prices.
    fn is_billed_by_openrouter(&self, _host: &Host, _base_url: Option<&str>) -> bool {
        false
    }

    /// Returns the problems with the argument after the name (`recorded:FILE`) that do not depend on the case. It is
    /// called once for each argument, so a file that is used by all cases is read here.
    fn check_argument(&self, argument: Option<&str>, _state: &Arc<RunState>) -> Vec<Diagnostic> {
        let problem =
            |argument| Diagnostic::error(format!("`{}` takes no argument, but was given `{argument}`", self.name()));
        argument.map(problem).into_iter().collect()
    }

    /// Returns the problems with a project's configuration. It is called once for each configuration. Relative paths
    /// in it are resolved against `directory`.
    fn check_config(&self, config: &Node, directory: &Path, _state: &Arc<RunState>) -> Vec<Diagnostic> {
        self.description().program.map(|_| program::check_config(config, directory, &[])).unwrap_or_default()
    }

    /// Returns the tools that the agent offers to its model in a trial of `case` with these mocks, or more. `None` if they
    /// are not known before the trial.
    fn offered_tools(&self, _case: &Case, _mocks: &Mocks) -> Option<Vec<llm::ToolSpec>> {
        None
    }

    /// Returns the tools that the agent is known to have in a trial of `case`, to find misspelt names in assertions.
    fn known_tools(&self, case: &Case) -> KnownTools<'static> {
        let description = self.description();
        // The user's own settings may add tools.
        let is_closed = case.all_tools().next().is_none() && case.runner.setting_sources.is_empty();
        if let Some(own) = description.own_tools.filter(|_| is_closed) {
            return KnownTools::Canonical(own);
        }
        match description.tools {
            Some(tools) if case.all_tools().next().is_none() => KnownTools::Only(tools),
            tools => KnownTools::AtLeast(tools.unwrap_or_default()),
        }
    }

    /// Returns the number of answers that the agent has for the case, if further repetitions would only repeat one of
    /// them.
    fn answers(&self, _context: &CaseContext<'_>) -> Option<u64> {
        None
    }

    /// Returns the problems with running such a case, which are found before anything runs.
    fn check(&self, _context: &CaseContext<'_>) -> Vec<Diagnostic> {
        Vec::new()
    }

    /// Returns the addresses of the agent's model as its program reaches it; empty if it does not call a model over
    /// HTTP.
    ///
    /// # Errors
    /// Returns the reason if the address is not known.
    fn model_addresses(&self, context: &SessionContext) -> Result<Vec<String>, AddressError> {
        match &context.endpoint {
            _ if self.description().wire.is_none() => {
                Ok(context.model_variables.iter().map(|(_, address)| address.clone()).collect())
            }
            Endpoint::Gateway { base_url, .. } | Endpoint::Vendor { base_url: Some(base_url) } => {
                Ok(vec![base_url.clone()])
            }
            Endpoint::Observed { gateway, .. } => Ok(vec![gateway.clone()]),
            Endpoint::Vendor { base_url: None } => self.vendor_addresses(context),
            Endpoint::Script { .. } | Endpoint::Provider(_) => Ok(Vec::new()),
        }
    }

    /// Returns the addresses of the vendor's model, with the machine's sign-in.
    ///
    /// # Errors
    /// Returns the reason if they are not known.
    fn vendor_addresses(&self, _context: &SessionContext) -> Result<Vec<String>, AddressError> {
        Err(AddressError::NotStated { agent: self.name() })
    }

    /// Returns the address to which the gateway forwards the requests of its program, with the path to which the
    /// program appends its own paths. `context` contains the vendor's endpoint.
    ///
    /// # Errors
    /// Returns the reason why its requests cannot go through the gateway.
    fn forwarding_address(&self, _context: &SessionContext) -> Result<String, AddressError> {
        Err(AddressError::Fixed { agent: self.name() })
    }

    /// Returns the environment variables from which the user's program reads the addresses of models, with their
    /// current values.
    fn model_variables(&self, _context: &SessionContext) -> Vec<(String, String)> {
        Vec::new()
    }

    /// Returns the variable that must hold the key for the model `name`, if the program is not signed in. If all
    /// answers are recorded, the variable is set to a dummy key.
    fn missing_key(&self, _host: &Host, _name: Option<&str>) -> Option<String> {
        None
    }

    /// Returns the ports on loopback at which trialrun receives what the agent's program reports about its work. The program
    /// can reach them whatever the network policy is.
    ///
    /// # Errors
    /// A port cannot be opened.
    fn own_ports(&self, _context: &SessionContext) -> Result<Vec<u16>, Breakage> {
        Ok(Vec::new())
    }

    /// Returns `true` if the agent's program sends reports to such a port. A sandbox on another machine cannot reach it.
    fn needs_own_ports(&self, _config: Option<&Configured>) -> bool {
        false
    }

    /// Removes the files outside the sandbox that conversations in the directory `sandbox` left behind because their
    /// run was killed.
    fn remove_leftovers(&self, _host: &Host, _sandbox: &Path) {}

    /// Returns whether the agent can run on this machine. An agent without a program always can.
    fn ready<'a>(&'a self, _host: &'a Host) -> BoxFuture<'a, Readiness> {
        Box::pin(std::future::ready(Readiness { ready: true, version: None, auth: None, hints: Vec::new() }))
    }

    /// Prepares what the trials of a run share, such as a program that serves the agent. It is called before each
    /// conversation, and does not count as the agent's time.
    fn prepare<'a>(
        &'a self,
        _config: Option<&'a Configured>,
        _host: &'a Host,
        _state: &'a RunState,
    ) -> BoxFuture<'a, Result<(), Breakage>> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// Opens a session. An error is the fault of the machine, the provider or this program; misbehaviour of the agent
    /// is recorded instead.
    fn open<'a>(&'a self, session_context: SessionContext) -> BoxFuture<'a, Result<Box<dyn Session>, Breakage>>;
}

impl std::fmt::Debug for dyn Agent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// A case, and the configuration with which an agent runs it.
pub struct CaseContext<'a> {
    /// The case as the user wrote it.
    pub case: &'a Case,
    /// Its position among all cases that were loaded, from 0.
    pub position: usize,
    /// Number of cases that were loaded.
    pub cases: usize,
    /// Agent, model and variant.
    pub arm: &'a Arm,
    /// Argument after the agent's name (`recorded:FILE`).
    pub argument: Option<&'a str>,
    /// Folder of the suite, against which relative paths in the case are resolved.
    pub directory: &'a Path,
    /// The project's configuration of the agent.
    pub config: Option<&'a Configured>,
    /// Location at which the project sets the model of the arm; `None` if it is set elsewhere.
    pub model_source: Option<&'a Excerpt>,
    /// Value of `--base-url`.
    pub base_url: Option<&'a str>,
    /// Providers that open models.
    pub providers: &'a llm::Providers,
    /// State of the run.
    pub state: &'a Arc<RunState>,
}

/// An agent configured in a project or a suite.
#[derive(Debug, Clone)]
pub struct Configured {
    /// Name in the project.
    pub name: String,
    /// The configuration: a map with the `type` key. A function in it is a string such as
    /// `/path/module.ts#agent.bodyTemplate` with the tag `!function`. References to environment variables are already
    /// resolved.
    pub node: Node,
    /// Folder of the project, against which relative paths in the configuration are resolved.
    pub directory: PathBuf,
    /// True if all environment variables that it refers to are set.
    pub is_filled: bool,
    /// True if a suite of another tool configures it, for its own cases.
    pub is_of_suite: bool,
}

impl Configured {
    /// Returns the problems with the configuration of `agent`, which is the configured one.
    pub fn problems(&self, agent: &dyn Agent, state: &Arc<RunState>) -> Vec<Diagnostic> {
        let mut problems = agent.check_config(&self.node, &self.directory, state);
        let is_about_model = |problem: &&mut Diagnostic| match &problem.kind {
            DiagnosticKind::UnknownKey { key, .. } => key == "model",
            _ => false,
        };
        for problem in problems.iter_mut().filter(is_about_model).filter(|_| agent.description().wire.is_some()) {
            problem.help = vec!["write `model` under `defaults` or in the test".to_owned()];
        }
        problems
    }

    /// Returns the configured agent.
    ///
    /// # Errors
    /// Returns an error with its location if `type` is missing or does not name a configurable agent.
    pub fn agent(&self) -> Result<&'static dyn Agent, Box<Diagnostic>> {
        let kind = self.node.get("type").unwrap_or(&self.node);
        let found = kind
            .as_str()
            .and_then(find)
            .filter(|(agent, argument)| agent.description().takes_config && argument.is_none());
        if let Some((agent, _)) = found {
            return Ok(agent);
        }
        let takes: Vec<&str> =
            AGENTS.iter().filter(|agent| agent.description().takes_config).map(|agent| agent.name()).collect();
        let written = kind.as_str();
        if let Some((known, (agent, _))) = written.and_then(|written| Some((written, find(written)?))) {
            let problem = kind.error(format!("`{known}` cannot be configured under a name of its own"));
            let help = match agent.description().is_replay {
                true => "use it by its name, with the file of the answers: `agent: recorded:FILE`".to_owned(),
                false => {
                    format!("use it by its name, `agent: {known}`, with its `model` under `defaults` or in the test")
                }
            };
            return Err(Box::new(problem.help(help)));
        }
        let problem = kind.error(format!("`{}` has no `type` that can be configured", self.name));
        let near = written.and_then(|kind| nearest(kind, takes.iter().copied()));
        Err(Box::new(problem.suggest(near).help(format!("configured agents: {}", takes.join(", ")))))
    }
}

/// Readiness of an agent on this machine, with advice if it cannot run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Readiness {
    /// True if it can run.
    pub ready: bool,
    /// Version of the agent, if it has one.
    pub version: Option<String>,
    /// Name of the sign-in, without secrets.
    pub auth: Option<String>,
    /// Missing requirements and advice, one line each.
    pub hints: Vec<String>,
}

/// State of a run that its agents share. Two runs in one process have two of them, and do not see each other's modules,
/// engines, connections, recorded answers and versions of programs.
pub struct RunState {
    /// Module sources that were read for the plan. All trials of a run use the same version of a module, even if its
    /// file changes.
    pub modules: Library,
    /// Engine for the code in expectations.
    pub scripts: grade::Scripts,
    /// The user's working directory, at which relative paths on the command line start. Messages about code show paths
    /// relative to it.
    pub cwd: PathBuf,
    /// Secrets of the run. They learn those that agents use only at run time.
    pub secrets: mask::Secrets,
    engines: custom::EnginePool,
    clients: http_client::HttpClients,
    answers: recorded::AnswerFiles,
    versions: program::ProgramVersions,
    programs: http::StartedPrograms,
    receivers: traces::Receivers,
    logs: Option<PathBuf>,
}

impl RunState {
    /// Creates the state of a run that was started in the directory `cwd`.
    pub fn new(modules: Library, cwd: &Path, secrets: mask::Secrets) -> Self {
        Self {
            modules,
            secrets,
            scripts: grade::Scripts::new(cwd),
            cwd: cwd.to_owned(),
            engines: custom::EnginePool::default(),
            clients: http_client::HttpClients::default(),
            answers: recorded::AnswerFiles::default(),
            versions: program::ProgramVersions::default(),
            programs: http::StartedPrograms::default(),
            receivers: traces::Receivers::default(),
            logs: None,
        }
    }

    /// Adds assertions and operators that are functions of the program that runs it.
    pub fn with_functions(self, functions: Option<Arc<dyn grade::Functions>>) -> Self {
        Self { scripts: self.scripts.with_functions(functions), ..self }
    }

    /// Keeps what programs print that the run starts for its agents, in files in the folder `logs`.
    pub fn with_logs(self, logs: Option<PathBuf>) -> Self {
        Self { logs, ..self }
    }

    /// Stops the programs that the run has started for its agents, and waits for their end.
    pub async fn close(&self) {
        self.programs.stop().await;
    }
}

impl std::fmt::Debug for RunState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunState").field("cwd", &self.cwd).finish_non_exhaustive()
    }
}

/// Inputs of a session.
#[derive(Clone)]
pub struct SessionContext {
    /// Id of the trial.
    pub trial: TrialId,
    /// Name of the conversation in a scenario, unless it is the first one.
    pub conversation: Option<String>,
    /// The case as the user wrote it.
    pub case: Arc<Case>,
    /// Agent, model and variant.
    pub arm: Arc<Arm>,
    /// Argument after the agent's name (`recorded:FILE`).
    pub argument: Option<Arc<str>>,
    /// The project's configuration of the agent.
    pub config: Option<Arc<Configured>>,
    /// Folder of the suite, against which relative paths in the case are resolved.
    pub directory: Arc<Path>,
    /// Position of the case in the plan, starting at 0.
    pub position: usize,
    /// Sandbox of the agent; `None` only for agents that do not need one.
    pub sandbox: Option<Arc<dyn Sandbox>>,
    /// The machine.
    pub host: Arc<Host>,
    /// Setup of the agent.
    pub setup: Arc<Setup>,
    /// Limits of the trial. Some agents report their usage during a turn only if asked to.
    pub limits: Arc<Limits>,
    /// Address from which the sandbox's repository was cloned.
    pub source_repo: Option<String>,
    /// Location of the agent's model.
    pub endpoint: Endpoint,
    /// Variables that give the user's program the gateway addresses of its models.
    pub model_variables: Vec<(String, String)>,
    /// MCP servers that the agent can use.
    pub servers: Arc<[Server]>,
    /// Providers that open models.
    pub providers: llm::Providers,
    /// State of the run.
    pub state: Arc<RunState>,
}

impl SessionContext {
    /// Returns the sandbox for an agent that needs one.
    pub(crate) fn sandbox(&self) -> Result<Arc<dyn Sandbox>, Breakage> {
        let missing = || Breakage::harness(format!("the `{}` agent was given no sandbox to work in", self.arm.agent));
        self.sandbox.clone().ok_or_else(missing)
    }

    /// Returns a session id, for agents whose sessions are named by this program.
    pub(crate) fn session_id(&self, agent: &str) -> String {
        let more = self.conversation.as_ref().map(|name| format!("/{name}")).unwrap_or_default();
        format!("{agent}-{}{more}", self.trial)
    }
}

/// Setup of an agent, with all defaults applied.
#[derive(Debug, Clone, PartialEq)]
pub struct Setup {
    /// Name of the model; `None` leaves the choice to the agent. A scripted model is named after its file.
    pub model: Option<String>,
    /// Addition to the agent's own system prompt: the skill's text and location, or the prompt.
    pub system_prompt: Option<String>,
    /// Permission mode of the agent.
    pub permission_mode: PermissionMode,
    /// The only tools that the agent may have, as written (`Bash(git *)`); `None` if it keeps its own tools.
    pub closed_tools: Option<Vec<String>>,
    /// Tools that need no approval, as written.
    pub approved_tools: Vec<String>,
    /// Sources of the machine's own settings that the agent may read.
    pub setting_sources: Vec<SettingSource>,
    /// Reasoning effort, passed to the agent unchanged.
    pub reasoning_effort: Option<String>,
    /// Maximum number of model turns in the whole conversation; `None` for no limit.
    pub max_turns: Option<u64>,
    /// Wall clock limit of the trial, in milliseconds.
    pub timeout_ms: u64,
}

/// Location of an agent's model.
#[derive(Clone)]
pub enum Endpoint {
    /// The vendor's address, or another base address set by the user, with the user's own sign-in.
    Vendor {
        /// Value of `--base-url`.
        base_url: Option<String>,
    },
    /// The gateway on loopback, which forwards requests to the vendor with the user's own sign-in.
    Observed {
        /// Address of the gateway for this trial: `http://127.0.0.1:PORT/TOKEN`.
        gateway: String,
        /// Value of `--base-url`.
        base_url: Option<String>,
    },
    /// The gateway on loopback, with the trial's own token as the key.
    Gateway {
        /// Address of the gateway: `http://127.0.0.1:PORT`.
        base_url: String,
        /// The key, which gives access only to this trial's script.
        token: String,
    },
    /// A scripted model in this process.
    Script {
        /// The model.
        model: Arc<dyn llm::Model>,
        /// Name of its script.
        name: String,
    },
    /// A model that this process opened itself, or the error that opening it returned.
    Provider(Result<Arc<dyn llm::Model>, llm::OpenError>),
}

/// Returns several problems as one line.
pub(crate) fn joined(problems: &[Diagnostic]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// Splits `name[:argument]` and finds the agent by its name or an alias.
pub fn find(written: &str) -> Option<(&'static dyn Agent, Option<&str>)> {
    let (name, argument) = match written.split_once(':') {
        Some((name, argument)) => (name, Some(argument)),
        None => (written, None),
    };
    let agent = AGENTS.iter().find(|agent| agent.name() == name || agent.description().aliases.contains(&name))?;
    Some((*agent, argument))
}
