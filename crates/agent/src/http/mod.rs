//! The `http` agent: any service that answers a request with a message. It is given as `http:URL` or configured in a
//! project.

mod address;
mod body;
mod exchange;
mod functions;
mod path;
mod session;
mod settings;
mod start;
mod started;
mod stream;
mod text;

use std::path::Path;
use std::sync::Arc;

use model::{Case, Diagnostic, Excerpt, Node};
use sandbox::{BoxFuture, Breakage, Host};

use self::body::{Body, MessageContext};
use self::session::HttpSession;
use self::settings::Settings;
use self::started::Launch;
use super::{Agent, CaseContext, Configured, Description, RunState, SessionContext, joined};
use crate::session::Session;
use crate::traces::exporter_variables;

pub(crate) use self::started::StartedPrograms;

/// An agent behind HTTP; see the module documentation.
pub struct Http;

/// Conversation id for checks, which have no conversation.
const NO_CONVERSATION: &str = "00000000-0000-7000-8000-000000000000";

static DESCRIPTION: Description = Description {
    efforts: Some(&[]),
    needs_sandbox: false,
    works_remotely: true,
    takes_script: true,
    takes_tools: true,
    takes_config: true,
    ..Description::new("http", "a bot behind HTTP, `http:URL`, or as the project configures it")
};

impl Agent for Http {
    fn description(&self) -> &Description {
        &DESCRIPTION
    }

    fn check_argument(&self, argument: Option<&str>, _state: &Arc<RunState>) -> Vec<Diagnostic> {
        let Some(url) = argument.filter(|url| !url.is_empty()) else {
            let problem = Diagnostic::error("`http` requires a URL");
            return vec![
                problem.help("write `http:http://127.0.0.1:8080/chat`, or configure the agent in the project"),
            ];
        };
        let problem = Settings::from_url(&written_url(url)).err();
        problem.into_iter().map(|problem| Diagnostic::error(format!("`http:{url}`: {problem}"))).collect()
    }

    fn check_config(&self, config: &Node, directory: &Path, state: &Arc<RunState>) -> Vec<Diagnostic> {
        let mut problems = Vec::new();
        let settings = Settings::read(config, &mut problems);
        if let Some(settings) = settings {
            problems.extend(functions::check(&settings, config, directory, state));
        }
        problems
    }

    fn check(&self, context: &CaseContext<'_>) -> Vec<Diagnostic> {
        // Errors in the settings themselves are reported separately, once.
        let mut known = Vec::new();
        let Some(settings) = settings(context.config, context.argument, &mut known) else { return Vec::new() };
        if known.iter().any(Diagnostic::is_error) {
            return Vec::new();
        }
        let mut problems = unreached(context, &settings.body);
        problems.extend(untold_skill(context.case));
        if let (Some(start), Some(config)) = (&settings.start, context.config) {
            problems.extend(start.missing_file(&config.directory, config.node.get("start")));
        }
        // Later messages may depend on the agent's answers.
        if let Some(message) = context.case.messages.first() {
            let message_context = MessageContext { conversation_id: NO_CONVERSATION, history: &[], message };
            let mut wrong = Vec::new();
            settings.body.make(&message_context, settings.stream, &mut wrong);
            let reason =
                |problem: Diagnostic| problem.help(format!("the body was built for the case `{}`", context.case.id));
            problems.extend(wrong.into_iter().map(reason));
        }
        problems
    }

    fn prepare<'a>(
        &'a self,
        config: Option<&'a Configured>,
        host: &'a Host,
        state: &'a RunState,
    ) -> BoxFuture<'a, Result<(), Breakage>> {
        Box::pin(async move {
            let Some(config) = config else { return Ok(()) };
            // Errors in the settings were reported before the run.
            let Some(settings) = Settings::read(&config.node, &mut Vec::new()) else { return Ok(()) };
            let variables = match settings.traces {
                Some(_) => exporter_variables(&state.receivers.receiver(settings.span_port())?.endpoint(None)),
                None => Vec::new(),
            };
            let Some(start) = &settings.start else { return Ok(()) };
            let (clients, secrets, logs) = (&state.clients, &state.secrets, state.logs.as_deref());
            let launch = Launch { config, settings: &settings, start, variables, host, clients, secrets, logs };
            state.programs.ready(&launch).await
        })
    }

    fn open<'a>(&'a self, session_context: SessionContext) -> BoxFuture<'a, Result<Box<dyn Session>, Breakage>> {
        Box::pin(async move {
            let mut problems = Vec::new();
            let settings =
                settings(session_context.config.as_deref(), session_context.argument.as_deref(), &mut problems);
            problems.retain(Diagnostic::is_error);
            let Some(settings) = settings.filter(|_| problems.is_empty()) else {
                return Err(Breakage::environment(format!("the agent is not configured: {}", joined(&problems))));
            };
            Ok(Box::new(HttpSession::open(&session_context, settings).await?) as Box<dyn Session>)
        })
    }
}

/// Returns the settings of the agent.
fn settings(config: Option<&Configured>, argument: Option<&str>, problems: &mut Vec<Diagnostic>) -> Option<Settings> {
    if let Some(config) = config {
        return Settings::read(&config.node, problems);
    }
    let settings = Settings::from_url(&written_url(argument?));
    settings.map_err(|problem| problems.push(Diagnostic::error(problem))).ok()
}

/// Restores an address: in `--agent http://HOST/PATH`, the scheme was parsed as the agent's name.
fn written_url(argument: &str) -> String {
    if argument.starts_with("//") { format!("http:{argument}") } else { argument.to_owned() }
}

/// Returns a warning about a skill under test, because the agent has no place in which it could find it. The warning
/// is the same for every case in a file.
fn untold_skill(case: &Case) -> Option<Diagnostic> {
    let skill = case.subject.installed().filter(|skill| skill.directory.is_some())?;
    let message =
        format!("the `{}` skill is not passed to an agent behind HTTP, so this tests the agent without it", skill.name);
    let problem = Diagnostic::warning(message).at(Excerpt::of_file(Arc::clone(&case.source.file)));
    Some(problem.help("run the suite with an agent that reads skills"))
}

/// Returns errors about data of the case that no request would contain.
fn unreached(context: &CaseContext<'_>, body: &Body) -> Vec<Diagnostic> {
    let messages = &context.case.messages;
    let brought = [
        ("script", messages.iter().any(|message| message.script.is_some())),
        ("tools", context.case.all_tools().next().is_some()),
    ];
    let lost = brought.into_iter().filter(|(name, is_there)| *is_there && !body.reaches(name));
    let problem = |(name, _): (&str, bool)| {
        let message = format!("the case has `{name}`, but the request does not send it");
        Diagnostic::error(message)
            .at(context.case.source.clone())
            .help(format!("write it into `body_template` as `{{{{ {name} }}}}`"))
    };
    lost.map(problem).collect()
}

#[cfg(test)]
mod tests;
