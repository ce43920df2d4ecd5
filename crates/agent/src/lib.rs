//! The agents under test: one file or folder each, one line in [`AGENTS`]. Only this crate knows vendors' agents.
//!
//! An [`Agent`] opens a [`Session`] for each trial. The session tells each step to a [`Turn`], which counts it against the
//! limits, prices it, and sends it to an [`EventSink`].

mod activity;
mod answer;
mod assistant;
mod chat;
mod claude_code;
mod codex;
#[cfg(test)]
mod contract;
mod custom;
mod description;
mod engine;
mod event_sink;
pub mod fake;
mod field;
mod http;
mod lines;
#[cfg(test)]
mod loopback;
mod network;
mod opencode;
mod own_tools;
mod performer;
mod pricing;
mod process;
mod program;
mod recorded;
#[cfg(test)]
mod rehearsal;
mod resolve;
mod session;
mod subprocess;
mod transcript;
mod turn;
#[cfg(test)]
mod vectors;
mod vendor;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use model::{Arm, Case, Diagnostic, Limits, Node, PermissionMode, SettingSource, TrialId, nearest};
use sandbox::{BoxFuture, Breakage, Host, Sandbox};

pub use crate::session::Session;

pub use activity::Activity;
pub use description::Description;
pub use event_sink::EventSink;
pub use pricing::{Bill, Pricing};
pub use program::Program;
pub use resolve::Resolver;
pub use session::Reply;
pub use turn::{Decision, Flow, Turn, WAITING_ON_PROVIDER};

/// Every agent, in the order users see them.
pub static AGENTS: &[&dyn Agent] = &[
    &claude_code::ClaudeCode,
    &codex::Codex,
    &opencode::OpenCode,
    &chat::Chat,
    &custom::Custom,
    &http::Http,
    &subprocess::Subprocess,
    &assistant::Assistant,
    &recorded::RECORDED,
    &fake::Fake,
];

/// An agent under test.
pub trait Agent: Send + Sync {
    /// Facts about it.
    fn description(&self) -> &Description;

    /// Name in files and on the command line.
    fn name(&self) -> &'static str {
        self.description().name
    }

    /// Why it cannot have the model `name`, for models that no address but its vendor's own has; `None` if it can, or if
    /// nobody can say. `base_url` is another address that the run names.
    fn refuses_model(&self, _name: &str, _base_url: Option<&str>, _providers: &llm::Providers) -> Option<String> {
        None
    }

    /// Where it finds what `case` installs, relative to its working directory.
    fn installed(&self, case: &Case) -> Option<String> {
        Some(format!("{}/{}", self.description().folder_of(case.definition)?, case.subject.installed()?.file_name()))
    }

    /// Whether OpenRouter bills what it uses, so that what it says it cost is by another list than OpenRouter's.
    fn is_billed_by_openrouter(&self, _host: &Host, _base_url: Option<&str>) -> bool {
        false
    }

    /// What is wrong with what follows the name (`recorded:FILE`), whatever the case. Asked once for each argument, so
    /// this is where a file is read that serves every case.
    fn check_argument(&self, argument: Option<&str>) -> Vec<Diagnostic> {
        let problem =
            |argument| Diagnostic::error(format!("`{}` takes no argument, but was given `{argument}`", self.name()));
        argument.map(problem).into_iter().collect()
    }

    /// What is wrong with how the project configures it. Asked once for each configuration; files that it names start at
    /// `directory`.
    fn check_config(&self, _config: &Node, _directory: &Path) -> Vec<Diagnostic> {
        Vec::new()
    }

    /// What is wrong with running a case like this, found before anything runs.
    fn check(&self, part: &Part<'_>) -> Vec<Diagnostic>;

    /// Whether it can run on this machine. An agent without a program always can.
    fn ready<'a>(&'a self, _host: &'a Host) -> BoxFuture<'a, Readiness> {
        Box::pin(std::future::ready(Readiness { ready: true, version: None, auth: None, hints: Vec::new() }))
    }

    /// Opens a session. Errors are the machine's, the provider's or ours; an agent that behaves badly is recorded.
    fn open<'a>(&'a self, scene: Scene) -> BoxFuture<'a, Result<Box<dyn Session>, Breakage>>;
}

/// What an agent is to play: one case under one configuration.
pub struct Part<'a> {
    /// What the user wrote.
    pub case: &'a Case,
    /// The configuration.
    pub arm: &'a Arm,
    /// What follows the agent's name (`recorded:FILE`).
    pub argument: Option<&'a str>,
    /// The folder of the suite; the files that a case names start there.
    pub directory: &'a Path,
    /// How the project configures it.
    pub config: Option<&'a Configured>,
    /// `--base-url`.
    pub base_url: Option<&'a str>,
    /// Where models are opened from.
    pub providers: &'a llm::Providers,
}

/// An agent as a project configures it.
#[derive(Debug, Clone)]
pub struct Configured {
    /// What the project calls it.
    pub name: String,
    /// What is written: a map, with `type` among its keys. A function in it is text like `/path/module.ts#agent.bodyTemplate`
    /// with the tag `!function`; references to the environment are filled in already.
    pub node: Node,
    /// The folder of the project; the files that the configuration names start there.
    pub directory: PathBuf,
    /// Whether every variable of the environment that it refers to is set.
    pub is_filled: bool,
}

impl Configured {
    /// The agent that it configures.
    ///
    /// # Errors
    /// With its place, a `type` that is missing or names none that can be configured.
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
        let problem = kind.error(format!("`{}` has no `type` that can be configured", self.name));
        let near = kind.as_str().and_then(|kind| nearest(kind, takes.iter().copied()));
        Err(Box::new(problem.suggest(near).help(format!("agents that are configured: {}", takes.join(", ")))))
    }
}

/// Whether an agent can run on this machine, and what to do where it cannot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Readiness {
    /// It can run.
    pub ready: bool,
    /// Its own version, if it has one.
    pub version: Option<String>,
    /// How it is signed in, without any secret.
    pub auth: Option<String>,
    /// What is missing and what to do, a line each.
    pub hints: Vec<String>,
}

/// Everything a session needs.
#[derive(Clone)]
pub struct Scene {
    /// Which trial.
    pub trial: TrialId,
    /// What a scenario calls the conversation, if it is not its first one.
    pub conversation: Option<String>,
    /// What the user wrote.
    pub case: Arc<Case>,
    /// The configuration.
    pub arm: Arc<Arm>,
    /// What follows the agent's name (`recorded:FILE`).
    pub argument: Option<Arc<str>>,
    /// How the project configures it.
    pub config: Option<Arc<Configured>>,
    /// The folder of the suite; the files that the case names start there.
    pub directory: Arc<Path>,
    /// Which case of the plan it is, from 0.
    pub position: usize,
    /// Where the agent works; absent only for agents that do not need one.
    pub sandbox: Option<Arc<dyn Sandbox>>,
    /// The machine.
    pub host: Arc<Host>,
    /// How the agent is to be set up.
    pub setup: Arc<Setup>,
    /// The limits in force: some agents have to be asked to tell what they use on the way.
    pub limits: Arc<Limits>,
    /// What the sandbox's repository is a clone of.
    pub source_repo: Option<String>,
    /// Where the agent's model is.
    pub endpoint: Endpoint,
    /// Where models are opened from.
    pub providers: llm::Providers,
}

impl Scene {
    /// The id of a session that the program names itself.
    pub(crate) fn session_id(&self, agent: &str) -> String {
        let more = self.conversation.as_ref().map(|name| format!("/{name}")).unwrap_or_default();
        format!("{agent}-{}{more}", self.trial)
    }
}

/// How an agent is to be set up, with every default applied.
#[derive(Debug, Clone, PartialEq)]
pub struct Setup {
    /// The model's name; `None` leaves the choice to the agent. A scripted model has the name of its file.
    pub model: Option<String>,
    /// Added to the agent's own system prompt: the skill's body and where it is installed, or the prompt.
    pub system_prompt: Option<String>,
    /// How it treats permissions.
    pub permission_mode: PermissionMode,
    /// The only tools it may have, as written (`Bash(git *)`); `None` leaves its own.
    pub closed_tools: Option<Vec<String>>,
    /// Tools that need no permission, as written.
    pub approved_tools: Vec<String>,
    /// Which of the machine's own settings it may read.
    pub setting_sources: Vec<SettingSource>,
    /// As the agent understands it.
    pub reasoning_effort: Option<String>,
    /// The most model turns of the whole chain; `None` for no limit.
    pub max_turns: Option<u64>,
    /// The trial's wall clock in milliseconds.
    pub timeout_ms: u64,
}

/// Where an agent's model is.
#[derive(Clone)]
pub enum Endpoint {
    /// Where the vendor has it, with the user's own sign-in; another base address if the user gave one.
    Vendor {
        /// `--base-url`.
        base_url: Option<String>,
    },
    /// The gateway on loopback, with the trial's own token for a key.
    Gateway {
        /// `http://127.0.0.1:PORT`.
        base_url: String,
        /// The key; opens nothing but this trial's script.
        token: String,
    },
    /// A scripted model in this process.
    Script(Arc<llm::Playback>),
    /// A model that this process asks by itself, or why it cannot.
    Provider(Result<Arc<dyn llm::Model>, llm::OpenError>),
}

/// Splits `name[:argument]` and finds the agent; aliases count.
pub fn find(written: &str) -> Option<(&'static dyn Agent, Option<&str>)> {
    let (name, argument) = match written.split_once(':') {
        Some((name, argument)) => (name, Some(argument)),
        None => (written, None),
    };
    let agent = AGENTS.iter().find(|agent| agent.name() == name || agent.description().aliases.contains(&name))?;
    Some((*agent, argument))
}

pub use self::assistant::reference as assistant_reference;
pub use self::chat::reference as chat_reference;
pub use self::claude_code::reference as claude_code_reference;
pub use self::codex::reference as codex_reference;
pub use self::custom::reference as custom_reference;
pub use self::engine::{library, use_modules};
pub use self::http::reference as http_reference;
pub use self::opencode::reference as opencode_reference;
pub use self::subprocess::reference as subprocess_reference;

/// The page about the directives of the `fake` agent.
pub fn fake_reference() -> String {
    let mut page = String::from(
        "# The `fake` agent\n\n<!-- Generated by `trialrun reference --write`; do not edit. -->\n\nIt echoes the user's \
         message, and follows directives: lines that begin with `!`. It has no model, starts no process, and needs a \
         sandbox only for a case with fixtures or with a skill to install. Good for trying things out, and for testing what stands around an \
         agent.\n\n| directive | what it does |\n| --- | --- |\n",
    );
    for directive in fake::DIRECTIVES {
        let form = directive.form.replace('|', "\\|");
        page.push_str(&format!("| `{}` | {} |\n", format!("!{} {form}", directive.name).trim_end(), directive.summary));
    }
    page
}

/// The page about the files of the `recorded` agent: what the module that reads them says about itself.
pub fn recorded_reference() -> String {
    let source = include_str!("recorded/answers.rs");
    let about = source.lines().map_while(|line| line.strip_prefix("//!")).map(str::trim);
    let mut page = String::from(
        "# Recorded answers\n\n<!-- Generated by `trialrun reference --write`; do not edit. -->\n\nThe agent \
         `recorded:FILE` answers from a file, so answers that are there already can be judged without any agent.\n\n",
    );
    about.for_each(|line| {
        page.push_str(line);
        page.push('\n');
    });
    page
}
