//! Methods that do not run anything.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use agent::Costs;
use expect::{Data, Expectation, Host, Pass, Rules, Strict};
use model::decode::Problems;
use model::{CassetteMode, Diagnostic, Node, Source};
use report::Style;
use runner::{ModelChoice, PlannedTrial};
use serde::Deserialize;
use serde_json::{Value, json};

use super::Server;
use super::callback::{ClientFunctions, FunctionSettings};
use super::message::RpcError;
use super::selection::{Selection, invalid, problems, text_of};
use crate::command::{check, compare, list, plan, show};
use crate::place;

/// Checks tests without running anything.
pub fn check(server: &Server, params: Value, id: &Value) -> Result<Value, RpcError> {
    let (session, planned) = Selection::read(params)?.plan(server, id)?;
    let mut document = check::document(&planned, planned.spec.overrides().gates.strict);
    document["text"] = text_of(&problems(&session, &planned)).into();
    Ok(document)
}

/// Lists the planned trials.
pub fn list(server: &Server, params: Value, id: &Value) -> Result<Value, RpcError> {
    let (session, planned) = Selection::read(params)?.plan(server, id)?;
    let problems = problems(&session, &planned);
    if planned.diagnostics.iter().any(Diagnostic::is_error) {
        return Err(invalid(&problems));
    }
    let is_replayed = planned.plan.settings.cassettes.mode == CassetteMode::Replay;
    let row = |trial: &PlannedTrial| {
        let mut row = list::row(trial);
        row["file"] = json!(trial.case.source.file);
        row["line"] = json!(trial.case.source.line);
        row["skip"] = json!(trial.case.skip);
        row["quarantined"] = trial.case.quarantine.is_some().into();
        row["may_cost"] = (!is_replayed && may_cost(trial)).into();
        row
    };
    let trials: Vec<Value> = planned.plan.trials.iter().map(row).collect();
    let text = text_of(&problems);
    Ok(json!({ "trials": trials, "problems": problems, "text": text }))
}

/// Returns `true` if the trial may cost money: its agent may ask a real model, or a judge or a simulated user is asked.
fn may_cost(trial: &PlannedTrial) -> bool {
    let is_run = trial.case.skip.is_none() && trial.case.broken.is_empty();
    let agent = trial.agent.description().costs != Costs::Nothing && matches!(trial.model, ModelChoice::Vendor(_));
    is_run && (agent || trial.case.user.is_some() || trial.checks.iter().any(grade::Check::asks_judge))
}

/// Estimates what a run can show, how long it takes and what it costs.
pub fn plan(server: &Server, params: Value, id: &Value) -> Result<Value, RpcError> {
    let (session, planned) = Selection::read(params)?.plan(server, id)?;
    let problems = problems(&session, &planned);
    if problems.iter().any(Diagnostic::is_error) {
        return Err(invalid(&problems));
    }
    if planned.plan.trials.is_empty() {
        return Err(planned.nothing_selected().into());
    }
    let (text, mut document) = plan::forecast(&session, &planned.plan)?;
    document["text"] = text.into();
    Ok(document)
}

/// Parameters of `show`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Show {
    trial: String,
    directory: Option<PathBuf>,
}

/// Shows a recorded trial.
pub fn show(server: &Server, params: Value) -> Result<Value, RpcError> {
    let Show { trial, directory } = read(params)?;
    let session =
        place::open_for(&server.global, server.directory(directory.as_deref())?, Vec::new(), server.host.clone())?;
    let (text, trial) = show::trial(&*session.read_store()?, &trial)?;
    Ok(json!({ "text": text, "trial": trial }))
}

/// Parameters of `compare`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Compare {
    before: Option<String>,
    after: Option<String>,
    directory: Option<PathBuf>,
}

/// Compares two recorded runs.
pub fn compare(server: &Server, params: Value) -> Result<Value, RpcError> {
    let Compare { before, after, directory } = read(params)?;
    let session =
        place::open_for(&server.global, server.directory(directory.as_deref())?, Vec::new(), server.host.clone())?;
    let (before, after) = (before.as_deref().unwrap_or("previous"), after.as_deref().unwrap_or("latest"));
    let (text, comparison, exit_code) = compare::runs(&session, before, after)?;
    Ok(json!({ "text": text, "comparison": comparison, "exit_code": exit_code }))
}

/// Parameters of `expect`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Expect {
    actual: Value,
    expected: Value,
    #[serde(default)]
    strict: Value,
    #[serde(default)]
    diff: Value,
    #[serde(default)]
    operators: BTreeMap<String, FunctionSettings>,
}

/// Matches a value with the `$operator` engine.
pub fn expect(server: &Server, params: Value, id: &Value) -> Result<Value, RpcError> {
    let Expect { actual, expected, strict, diff, operators } = read(params)?;
    let functions = ClientFunctions::of(&server.connection, id, &BTreeMap::new(), &operators)?;
    let scripts = grade::Scripts::new(&server.directory).with_functions(functions);
    let node = |name: &str, value: &Value| Node::from_json(value, &Source::new(name, ""));
    let mut found = Problems::new();
    let operators = scripts.operators();
    let mut rules = Rules { directory: server.directory.clone(), operators, ..Rules::default() };
    if !strict.is_null() {
        rules.strict = Strict::read(&node("strict", &strict), &mut found);
    }
    let host: Arc<dyn Host> = Arc::new(scripts);
    let diff = Some(node("diff", &diff)).filter(|_| !diff.is_null());
    let expectation = Expectation::from_value(&node("expectation", &expected), rules, &host, diff.as_ref(), &mut found);
    let mut problems: Vec<Diagnostic> = found.into_iter().collect();
    // They are not in a file.
    problems.iter_mut().for_each(|problem| problem.source = None);
    if problems.iter().any(Diagnostic::is_error) {
        return Err(invalid(&problems));
    }
    let found = expectation.judge(Some(&actual), &Data::default());
    let passed = match found.pass {
        Pass::Yes => Some(true),
        Pass::No => Some(false),
        Pass::Unknown => None,
    };
    let failures: Vec<model::Failure> = found.flaws.into_iter().map(expect::Flaw::into_failure).collect();
    let text = report::mismatches(&failures, &Style::plain());
    Ok(json!({
        "passed": passed, "score": found.score, "failures": failures, "text": text, "problems": problems,
    }))
}

/// Reads parameters.
pub fn read<T: serde::de::DeserializeOwned>(params: Value) -> Result<T, RpcError> {
    serde_json::from_value(params).map_err(|error| RpcError::params(error.to_string()))
}
