//! The `subprocess` agent: a user's program in the sandbox. It communicates in lines of JSON, or is run once per
//! message.
//!
//! A program that is missing or cannot be executed is an environment fault. It is the agent's failure if the program
//! exits before it has answered, exits with an error, answers in another format or prints too much.

mod config;
mod launch;
mod session;
mod shell_words;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::Arc;

use model::decode::Problems;
use model::{Case, Diagnostic, Excerpt, Node};
use sandbox::{BoxFuture, Breakage};

pub(crate) use self::config::{COMMAND_SYNONYMS, Mode, ProgramConfig, command as command_words};
pub(crate) use self::launch::Launch;
pub use self::launch::{HELP_FOR_UNUSABLE, missing_in_shell, missing_program, unusable_program};
use self::session::SubprocessSession;
pub(crate) use self::shell_words::words;
use super::step_recorder::StepRecorder;
use super::{Agent, CaseContext, Configured, Description, RunState, SessionContext, joined};
use crate::session::Session;
use crate::traces::Inbox;

/// Folder of its skills, relative to the working directory: the folder that several agents share.
const SKILLS: &str = ".agents/skills";

/// Variables from which the vendors' libraries read a model's address, and the addresses that they use by default.
pub(crate) const MODEL_VARIABLES: [(&str, &str); 3] = [
    ("ANTHROPIC_BASE_URL", "https://api.anthropic.com"),
    ("OPENAI_BASE_URL", "https://api.openai.com/v1"),
    ("GOOGLE_GEMINI_BASE_URL", "https://generativelanguage.googleapis.com"),
];

/// A user's program; see the module documentation.
pub struct Subprocess;

static DESCRIPTION: Description = Description {
    efforts: Some(&[]),
    skills_folder: Some(SKILLS),
    reads_model_variables: true,
    takes_script: true,
    takes_tools: true,
    takes_config: true,
    works_remotely: true,
    ..Description::new(
        "subprocess",
        "your program in the sandbox, `subprocess:COMMAND`, which exchanges JSON lines or is run for each message",
    )
};

impl Agent for Subprocess {
    fn description(&self) -> &Description {
        &DESCRIPTION
    }

    fn check_argument(&self, argument: Option<&str>, _state: &Arc<RunState>) -> Vec<Diagnostic> {
        ProgramConfig::from_argument(argument).err().into_iter().map(|problem| *problem).collect()
    }

    fn check_config(&self, config: &Node, _directory: &Path, _state: &Arc<RunState>) -> Vec<Diagnostic> {
        let mut problems = Problems::new();
        if ProgramConfig::read(config, &mut problems).is_some() {
            config::report_placeholders(config, &mut problems);
        }
        problems
    }

    fn check(&self, context: &CaseContext<'_>) -> Vec<Diagnostic> {
        let (config, project, command) = match context.config {
            Some(config) => {
                let read = ProgramConfig::read(&config.node, &mut Problems::new());
                (read, config.directory.as_path(), config.node.get("command"))
            }
            None => (ProgramConfig::from_argument(context.argument).ok(), Path::new("."), None),
        };
        let Some(config) = config else { return Vec::new() };
        let node = context.config.map(|configured| &configured.node);
        let folder = node.and_then(|node| missing_folder(&config, project, node, context.case));
        folder.or_else(|| missing_in_sandbox(&config, project, command, context.case)).into_iter().collect()
    }

    fn model_variables(&self, context: &SessionContext) -> Vec<(String, String)> {
        let config = context.config.as_ref();
        let config = config.and_then(|config| ProgramConfig::read(&config.node, &mut Problems::new()));
        let set = |name: &str| {
            let own = config.as_ref().and_then(|config| config.env.iter().find(|(own, _)| own == name));
            own.map(|(_, value)| value.clone()).or_else(|| context.host.var(name).map(str::to_owned))
        };
        let address =
            |(name, usual): &(&str, &str)| ((*name).to_owned(), set(name).unwrap_or_else(|| (*usual).to_owned()));
        MODEL_VARIABLES.iter().map(address).collect()
    }

    fn own_ports(&self, context: &SessionContext) -> Result<Vec<u16>, Breakage> {
        match self.needs_own_ports(context.config.as_deref()) {
            true => Ok(vec![context.state.receivers.receiver(None)?.port()]),
            false => Ok(Vec::new()),
        }
    }

    fn needs_own_ports(&self, config: Option<&Configured>) -> bool {
        let read = config.and_then(|config| ProgramConfig::read(&config.node, &mut Problems::new()));
        read.is_some_and(|config| config.traces.is_some())
    }

    fn open<'a>(&'a self, context: SessionContext) -> BoxFuture<'a, Result<Box<dyn Session>, Breakage>> {
        Box::pin(async move { Ok(Box::new(open(&context)?) as Box<dyn Session>) })
    }
}

/// Agents that run the program of a command line, which is also their argument.
const OF_COMMANDS: [&str; 3] = ["subprocess", "mcp", "acp"];

/// Returns the program that a configured agent runs by its name on the `PATH`, and where it is written.
pub fn named_program(configured: &Configured) -> Option<(String, Excerpt)> {
    let node = &configured.node;
    let owner = match node.get("type")?.as_str()? {
        "http" => node.get("start")?,
        kind => Some(node).filter(|_| OF_COMMANDS.contains(&kind))?,
    };
    let command = owner.get("command").unwrap_or(owner);
    let has_own_path = owner.get("env").is_some_and(|env| env.get("PATH").is_some());
    let words = command_words(command, &mut Problems::new())?;
    let program = words.into_iter().next().filter(|program| !has_own_path && !program.contains('/'))?;
    Some((program, command.excerpt()))
}

/// Returns the program in the command line `subprocess:COMMAND`, if it is given by its name.
pub fn named_in_argument(agent: &str, argument: Option<&str>) -> Option<String> {
    let argument = argument.filter(|text| OF_COMMANDS.contains(&agent) && !text.contains("://"))?;
    words(argument).ok()?.into_iter().next().filter(|program| !program.contains('/'))
}

/// Returns a warning about a file that the command of an agent in the sandbox names and that does not exist. `command` is
/// the setting with the command, if there is one.
pub(crate) fn missing_in_sandbox(
    config: &ProgramConfig,
    project: &Path,
    command: Option<&Node>,
    case: &Case,
) -> Option<Diagnostic> {
    // Fixtures and an installed skill put files into the sandbox.
    let has_own_files = !case.fixtures.is_empty() || case.subject.installed().is_some();
    if has_own_files { None } else { missing_file(config, project, command) }
}

/// Returns a warning about the working directory of the configuration `node` if nothing in `case` creates it.
fn missing_folder(config: &ProgramConfig, project: &Path, node: &Node, case: &Case) -> Option<Diagnostic> {
    let written = config.cwd.as_deref().filter(|written| Path::new(written) != Path::new("."))?;
    let has_own_files = !case.fixtures.is_empty() || case.subject.installed().is_some();
    let (owner, may_be_there) = match written.strip_prefix(config::PROJECT) {
        Some(below) => ("project", project.join(below.trim_start_matches('/')).is_dir()),
        // The sandbox may be a copy of the project. What begins with another brace is reported as a placeholder.
        None => ("sandbox", has_own_files || written.starts_with('{') || project.join(written).exists()),
    };
    let problem = Diagnostic::warning(format!("the {owner} has no folder `{written}` to run in"));
    let problem = problem.at(node.get("cwd").unwrap_or(node).excerpt());
    let help = format!("the case's fixtures can create it; a folder of the project is `{}/…`", config::PROJECT);
    (!may_be_there).then(|| if owner == "sandbox" { problem.help(help) } else { problem })
}

/// Returns a warning about a file that the command of an agent names and that does not exist in the project.
pub(crate) fn missing_file(config: &ProgramConfig, project: &Path, command: Option<&Node>) -> Option<Diagnostic> {
    let problem = match launch::missing_file(config, project) {
        Some(file) => {
            let message = format!("the project has no file `{file}`, which the agent's command names");
            Diagnostic::warning(message)
                .help("the agent cannot answer, unless a command before the run creates the file")
        }
        None => Diagnostic::warning(unusable_program(&config.words, project)?).help(HELP_FOR_UNUSABLE),
    };
    Some(match command {
        Some(command) => problem.at(command.excerpt()),
        None => problem,
    })
}

fn open(context: &SessionContext) -> Result<SubprocessSession, Breakage> {
    let mut config = match &context.config {
        Some(config) => {
            let mut problems = Problems::new();
            ProgramConfig::read(&config.node, &mut problems).ok_or_else(|| Breakage::environment(joined(&problems)))?
        }
        None => ProgramConfig::from_argument(context.argument.as_deref())
            .map_err(|problem| Breakage::environment(problem.to_string()))?,
    };
    config.env.retain(|(name, _)| !context.model_variables.iter().any(|(variable, _)| variable == name));
    config.env.extend(context.model_variables.iter().cloned());
    let inbox = match config.traces {
        Some(traces) => Some(Inbox::of_process(context.state.receivers.receiver(None)?, traces)),
        None => None,
    };
    if let Some(inbox) = &inbox {
        // The project's own variables come later and count.
        config.env = inbox.variables(&context.trial).into_iter().chain(config.env).collect();
    }
    let id = format!("trialrun-{}", uuid::Uuid::now_v7().simple());
    let here = Path::new(".").canonicalize().unwrap_or_default();
    let project = context.config.as_ref().map_or(here.as_path(), |config| config.directory.as_path());
    let launch = Launch::prepare(&config, project, context.sandbox()?, &id)?;
    let process = match config.mode {
        Mode::Lines => Some(launch.start(None).map_err(Breakage::environment)?),
        Mode::Once { .. } => None,
    };
    let mode = config.mode;
    let step_recorder = StepRecorder::default();
    let notices = Default::default();
    Ok(SubprocessSession {
        launch,
        mode,
        id,
        inbox,
        process,
        step_recorder,
        notices,
        sent: 0,
        is_reported: false,
        has_written: false,
        first_other_line: None,
        is_over: false,
    })
}
