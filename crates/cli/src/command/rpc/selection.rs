//! What a request is about: a directory, targets, options, agents of the client, and suites that it sends.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use agent::Agent;
use model::Diagnostic;
use report::Style;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use session::{Overrides, Planned, Session, create_state_folder, without_secrets};
use sha2::{Digest, Sha256};

use super::Server;
use super::callback::{self, AgentSettings, ClientFunctions, FunctionSettings};
use super::message::{INVALID_TESTS, RpcError};
use super::options;
use crate::error::CliError;
use crate::place;

/// Folder in the state folder for suites that clients send.
const INLINE: &str = "inline";

/// Parameters of requests about tests.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Selection {
    directory: Option<PathBuf>,
    targets: Vec<String>,
    options: Map<String, Value>,
    agents: BTreeMap<String, AgentSettings>,
    assertions: BTreeMap<String, FunctionSettings>,
    operators: BTreeMap<String, FunctionSettings>,
    suites: Vec<InlineSuite>,
}

/// A suite that the client sends.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct InlineSuite {
    name: String,
    suite: Value,
}

impl Selection {
    /// Reads the parameters of a request.
    ///
    /// # Errors
    /// Returns an error that names the parameter.
    pub fn read(params: Value) -> Result<Self, RpcError> {
        serde_json::from_value(params).map_err(|error| RpcError::params(error.to_string()))
    }

    /// Opens the project and plans the trials. `request` is the id of the request, with which callbacks name it.
    ///
    /// # Errors
    /// Returns an error if the request cannot be carried out.
    pub fn plan(self, server: &Server, request: &Value) -> Result<(Session, Planned), RpcError> {
        let directory = server.directory(self.directory.as_deref())?;
        let mut agents: Vec<&'static dyn Agent> = Vec::new();
        for (name, settings) in &self.agents {
            agents.push(callback::agent(&server.connection, request, name, *settings)?);
        }
        let functions = ClientFunctions::of(&server.connection, request, &self.assertions, &self.operators)?;
        let here = place::open_for(&server.global, directory.clone(), agents, server.host.clone())?;
        let mut targets = self.targets;
        for suite in &self.suites {
            targets.push(suite.write(&here.state.folder)?);
        }
        let overrides: Overrides = options::read(targets, &self.options)?;
        let mut session = place::open_from(&here, &directory, &overrides.places(&directory)?);
        if let Some(name) = self.agents.keys().find(|name| session.project.agents.iter().any(|own| own.name == **name))
        {
            let message = format!("the project configures an agent called `{name}`; use another name for yours");
            return Err(RpcError::params(message));
        }
        session.functions = functions;
        let planned = session.plan(&session.resolve(&overrides)?)?;
        Ok((session, planned))
    }
}

impl InlineSuite {
    /// Writes the suite to a file named after its content, and returns the path. The file remains, so that the run can
    /// be graded again.
    fn write(&self, state: &Path) -> Result<String, RpcError> {
        let is_name = |name: &str| name.chars().all(|letter| letter.is_alphanumeric() || "-_.".contains(letter));
        if self.name.is_empty() || self.name.starts_with(['.', '_']) || !is_name(&self.name) {
            let message = format!(
                "`{}` is not a name of a suite: it must start with a letter or a digit, and consist of these, `-`, `_` \
                 and `.`",
                self.name
            );
            return Err(RpcError::params(message));
        }
        let text = format!("{:#}\n", self.suite);
        let hash: String = Sha256::digest(&text).iter().take(6).map(|byte| format!("{byte:02x}")).collect();
        let folder = state.join(INLINE).join(hash);
        let file = folder.join(format!("{}.yaml", self.name));
        let written = create_state_folder(state).and_then(|()| std::fs::create_dir_all(&folder)).and_then(|()| {
            // Other processes may be reading the same file.
            if std::fs::read_to_string(&file).is_ok_and(|known| known == text) {
                return Ok(());
            }
            let part = folder.join(format!(".{}-{}", self.name, std::process::id()));
            std::fs::write(&part, &text)?;
            std::fs::rename(&part, &file)
        });
        written.map_err(|error| CliError::environment(format!("cannot write {}: {error}", file.display())))?;
        Ok(file.display().to_string())
    }
}

/// Returns the problems of a plan, including those that break only single cases, without secrets.
pub fn problems(session: &Session, planned: &Planned) -> Vec<Diagnostic> {
    let unloaded = planned.plan.trials.iter().flat_map(|trial| &trial.case.broken);
    let mut all: Vec<Diagnostic> = Vec::new();
    for problem in planned.diagnostics.iter().chain(unloaded) {
        if !all.contains(problem) {
            all.push(problem.clone());
        }
    }
    let mask = session.mask();
    all.iter_mut().for_each(|problem| without_secrets(problem, &mask));
    all
}

/// Returns problems as text.
pub fn text_of(problems: &[Diagnostic]) -> String {
    report::diagnostics(problems, &Style::plain())
}

/// Returns the error for tests with problems.
pub fn invalid(problems: &[Diagnostic]) -> RpcError {
    let first = problems.iter().find(|problem| problem.is_error()).or(problems.first());
    let message = first.map_or_else(|| "the tests have problems".to_owned(), ToString::to_string);
    let data = json!({ "exit_code": crate::exit::INVALID, "problems": problems, "text": text_of(problems) });
    RpcError { code: INVALID_TESTS, message, data }
}
