//! The `mcp` agent: a server that speaks the Model Context Protocol, as the subject of a test. It is given as
//! `mcp:COMMAND` or `mcp:URL`, or configured in a project.
//!
//! There is no model. A message is a call or a check as JSON, and the reply says what the server did. A server that ends,
//! does not answer or answers in another form has failed. A program or an address that does not exist is a fault of the
//! environment.

mod config;
mod connection;
mod request;
mod session;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::Arc;

use model::decode::Problems;
use model::{Diagnostic, Node};
use sandbox::{BoxFuture, Breakage};

use self::config::{Config, Place};
use self::connection::Connections;
use self::request::Request;
use self::session::{McpSession, read_contract_file};
use super::{Agent, CaseContext, Costs, Description, RunState, SessionContext, joined};
use crate::session::Session;
use crate::step_recorder::StepRecorder;
use crate::subprocess::missing_in_sandbox;

/// A server under test; see the module documentation.
pub struct Mcp;

static DESCRIPTION: Description = Description {
    efforts: Some(&[]),
    tools: Some(&[]),
    costs: Costs::Nothing,
    takes_config: true,
    works_remotely: true,
    ..Description::new("mcp", "an MCP server as the subject of a test, `mcp:COMMAND` or `mcp:URL`")
};

impl Agent for Mcp {
    fn description(&self) -> &Description {
        &DESCRIPTION
    }

    fn check_argument(&self, argument: Option<&str>, _state: &Arc<RunState>) -> Vec<Diagnostic> {
        Config::from_argument(argument).err().into_iter().map(|problem| *problem).collect()
    }

    fn check_config(&self, config: &Node, _directory: &Path, _state: &Arc<RunState>) -> Vec<Diagnostic> {
        let mut problems = Problems::new();
        Config::read(config, &mut problems);
        problems
    }

    fn check(&self, context: &CaseContext<'_>) -> Vec<Diagnostic> {
        let place = || context.case.source.clone();
        let mut problems = Vec::new();
        for message in &context.case.messages {
            match Request::read(&message.text) {
                Err(problem) => problems.push(
                    Diagnostic::error(problem)
                        .at(place())
                        .help("write the tests of an MCP server in a `suite: mcp` file"),
                ),
                Ok(Request::Contract { file: Some(file) }) if !context.directory.join(&file).is_file() => {
                    let problem = Diagnostic::error(format!("there is no contract `{file}`")).at(place());
                    problems.push(problem.help("write it with `trialrun mcp-lock`"));
                }
                Ok(Request::Contract { file: Some(file) }) => {
                    let wrong = read_contract_file(&context.directory.join(&file)).err();
                    let problem = |reason| Diagnostic::error(format!("the contract `{file}`: {reason}")).at(place());
                    problems.extend(wrong.map(|reason| problem(reason).help("write it with `trialrun mcp-lock`")));
                }
                Ok(_) => {}
            }
        }
        let (config, project, command) = match context.config {
            Some(config) => {
                let read = Config::read(&config.node, &mut Problems::new());
                (read, config.directory.as_path(), config.node.get("command"))
            }
            None => (Config::from_argument(context.argument).ok(), Path::new("."), None),
        };
        if let Some(Config { place: Place::Program(program), .. }) = config {
            problems.extend(missing_in_sandbox(&program, project, command, context.case));
        }
        problems
    }

    fn open<'a>(&'a self, context: SessionContext) -> BoxFuture<'a, Result<Box<dyn Session>, Breakage>> {
        Box::pin(async move { Ok(Box::new(open(&context)?) as Box<dyn Session>) })
    }
}

fn open(context: &SessionContext) -> Result<McpSession, Breakage> {
    let config = match &context.config {
        Some(configured) => {
            let mut problems = Problems::new();
            Config::read(&configured.node, &mut problems).ok_or_else(|| Breakage::environment(joined(&problems)))?
        }
        None => Config::from_argument(context.argument.as_deref())
            .map_err(|problem| Breakage::environment(problem.to_string()))?,
    };
    let era = config.era;
    Ok(McpSession {
        connections: Connections::prepare(config, context)?,
        era,
        id: context.session_id("mcp"),
        directory: Arc::clone(&context.directory),
        client: None,
        tools: Vec::new(),
        step_recorder: StepRecorder::default(),
    })
}
