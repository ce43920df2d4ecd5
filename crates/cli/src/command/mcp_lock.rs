//! `trialrun mcp-lock`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use model::{Case, Diagnostic, Envelope, Event, Excerpt, Outcome, Step, Suite, TrialRecord, UserMessage};
use runner::{Control, Listener};
use serde_json::{Value, json};
use session::{Overrides, Planned, Session};
use suite::Loaded;
use tokio::sync::mpsc::unbounded_channel;

use crate::error::CliError;
use crate::global::Global;
use crate::terminal::Terminal;
use crate::{exit, place, signals};

/// Name of the suite and of its case.
const NAME: &str = "mcp-lock";

/// Arguments of `mcp-lock`.
#[derive(Debug, clap::Args)]
pub struct McpLockArgs {
    /// Server: `mcp:COMMAND`, `mcp:URL` or an agent of the project
    #[arg(long, value_name = "AGENT")]
    agent: String,
    /// File with the contract
    #[arg(value_name = "FILE", default_value = "mcp-lock.json")]
    file: PathBuf,
    /// Compare the server with the file, and write nothing
    #[arg(long)]
    check: bool,
    /// Print the classes of changes as JSON
    #[arg(long)]
    json: bool,
}

/// Writes the contract of an MCP server to a file, or compares the server with the file.
pub fn run(global: &Global, args: &McpLockArgs, terminal: &Terminal) -> Result<ExitCode, CliError> {
    let context = place::open(global, &[])?;
    let path = context.cwd.join(&args.file);
    let is_there = path.is_file();
    if args.check && !is_there {
        return Err(CliError::usage(format!("there is no file {}", args.file.display()))
            .hint("write it with `trialrun mcp-lock`"));
    }
    let planned = planned(&args.agent, is_there.then_some(path.as_path()), &context, terminal)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.map_err(|error| CliError::environment(format!("cannot start threads: {error}")))?;
    let (reply, record) = runtime.block_on(ask(planned, &context, terminal))?;
    let Some(reply) = reply else {
        let reason = record.and_then(|record| record.reason).unwrap_or_else(|| "there is no reason".to_owned());
        return Err(CliError::environment(format!("cannot read the tools of `{}`: {reason}", args.agent)));
    };
    let rules = reply["rules"].as_array().map_or(&[][..], Vec::as_slice);
    let broken: Vec<&Value> = rules.iter().filter(|rule| rule["result"] == "broken").collect();
    if args.json {
        terminal.json(&broken);
    } else {
        terminal.out(&report::clean(&draw(&broken)));
    }
    if args.check {
        let is_broken = broken.iter().any(|rule| rule["tier"] == "mandatory");
        if broken.is_empty() && !args.json {
            terminal.out(&format!("the server matches {}\n", args.file.display()));
        }
        return Ok(ExitCode::from(if is_broken { exit::FAILED } else { exit::PASSED }));
    }
    let contract = &reply["contract"];
    let text = format!("{}\n", serde_json::to_string_pretty(contract).unwrap_or_default());
    if std::fs::read_to_string(&path).is_ok_and(|known| known == text) {
        terminal.err(&format!("{} is up to date\n", args.file.display()));
        return Ok(ExitCode::from(exit::PASSED));
    }
    std::fs::write(&path, text)
        .map_err(|error| CliError::environment(format!("cannot write {}: {error}", args.file.display())))?;
    let count = contract["tools"].as_array().map_or(0, Vec::len);
    terminal.err(&format!("wrote {} with {}\n", args.file.display(), report::counted(count, "tool")));
    Ok(ExitCode::from(exit::PASSED))
}

/// Describes the changes, one class in two lines.
fn draw(broken: &[&Value]) -> String {
    let text = |rule: &Value, key: &str| rule[key].as_str().unwrap_or_default().to_owned();
    let line = |rule: &&Value| {
        let effect = if rule["tier"] == "mandatory" { "breaking" } else { "compatible" };
        format!("{effect:10}  {}\n  {}\n", text(rule, "id"), text(rule, "seen"))
    };
    broken.iter().map(line).collect()
}

fn planned(agent: &str, file: Option<&Path>, context: &Session, terminal: &Terminal) -> Result<Planned, CliError> {
    let mut args = Overrides { unjudged: Some("there is nothing to judge".to_owned()), ..Overrides::default() };
    args.arms.agent.push(agent.to_owned());
    args.arms.trials = Some(model::Trials::Fixed(1));
    args.arms.no_baseline = true;
    args.cassettes.cassette = Some(model::CassetteMode::Off);
    (args.schedule.retries, args.schedule.reruns) = (Some(0), Some(0));
    let mut message = json!({"check": "contract"});
    if let Some(file) = file {
        message["file"] = file.to_string_lossy().into();
    }
    let case = Case {
        messages: vec![UserMessage::text(message.to_string())],
        must_assert: false,
        ..Case::new(NAME, Excerpt::of_file(NAME))
    };
    let suite =
        Suite { name: NAME.to_owned(), path: context.cwd.join(NAME), format: "mcp", cases: vec![Arc::new(case)] };
    let loaded = Loaded { suites: vec![suite], ..Loaded::default() };
    let planned = context.plan_loaded(&context.resolve(&args)?, loaded)?;
    let errors: Vec<Diagnostic> = planned.diagnostics.iter().filter(|problem| problem.is_error()).cloned().collect();
    // The suite and its place are not the user's.
    let is_ours = |problem: &Diagnostic| problem.source.as_ref().is_some_and(|place| *place.file == *NAME);
    let is_none = |problem: &Diagnostic| is_ours(problem) && problem.message.ends_with("is none");
    match errors.as_slice() {
        [] => Ok(planned),
        [only] if is_none(only) => Err(CliError::usage(format!("`{agent}` is not an MCP server"))
            .hint("write `mcp:COMMAND`, `mcp:URL` or an agent of the project with `type: mcp`")),
        [only] if only.source.is_none() => {
            Err(only.help.iter().cloned().fold(CliError::usage(only.message.clone()), CliError::hint))
        }
        _ => {
            terminal.diagnostics(&errors);
            Err(CliError::usage(format!("nothing was asked of `{agent}`")))
        }
    }
}

/// Returns the server's reply and the record of the trial.
async fn ask(
    mut planned: Planned,
    context: &Session,
    terminal: &Terminal,
) -> Result<(Option<Value>, Option<TrialRecord>), CliError> {
    terminal.diagnostics(&context.check(&mut planned)?);
    let (sender, controls) = unbounded_channel::<Control>();
    signals::forward(&sender).map_err(|error| CliError::environment(format!("cannot receive signals: {error}")))?;
    let reply = Arc::new(Reply::default());
    let listener: Arc<dyn Listener> = Arc::clone(&reply) as _;
    let end = context.run_unrecorded(planned, controls, listener).await?;
    if end.stopped_by.is_some() {
        return Err(CliError::stopped("stopped before the server answered"));
    }
    let mut seen = reply.0.lock().unwrap_or_else(PoisonError::into_inner);
    let (result, record) = std::mem::take(&mut *seen);
    Ok((result.filter(|_| record.as_ref().is_some_and(|record| record.outcome == Outcome::Passed)), record))
}

/// The result of the reply, and the record of the trial.
#[derive(Default)]
struct Reply(Mutex<(Option<Value>, Option<TrialRecord>)>);

impl Listener for Reply {
    fn offer(&self, event: Envelope) -> Option<Envelope> {
        self.on_event(event);
        None
    }

    fn on_event(&self, event: Envelope) {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match event.event {
            Event::Step(Step::Finished { result, .. }) => seen.0 = result,
            Event::TrialFinished(finished) => seen.1 = Some(*finished),
            _ => {}
        }
    }
}
