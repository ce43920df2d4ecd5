//! Executes a planned run while recording it, and turns its result into messages and an exit code.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use report::{Reporter, RunHash};
use runner::{Control, Listener, RunEnd};
use sandbox::Breakage;
use store::Store;
use tokio::sync::mpsc;

use crate::error::CliError;
use crate::recording::{Recorded, Recording};
use crate::run_args::GateArgs;
use crate::terminal::Terminal;
use crate::{exit, hooks, signals};

/// Time that remaining tasks have to finish.
const SHUTDOWN: Duration = Duration::from_millis(200);

/// Runs the future that `start` returns from the controls and the listener, and records its events. At the end of the
/// run, the reporters read its hash.
pub fn execute<F: Future<Output = Result<RunEnd, Breakage>>>(
    jobs: usize,
    store: Box<dyn Store>,
    (reporters, hash): (Vec<Box<dyn Reporter>>, RunHash),
    start: impl FnOnce(mpsc::UnboundedReceiver<Control>, Arc<dyn Listener>) -> F,
) -> Result<(RunEnd, Recorded), CliError> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(jobs.clamp(1, 4))
        .enable_all()
        .build()
        .map_err(|error| CliError::environment(format!("cannot start threads: {error}")))?;
    let (sender, controls) = mpsc::unbounded_channel::<Control>();
    let recording = Recording::start(store, reporters, hash, sender.clone())
        .map_err(|error| CliError::environment(format!("cannot start recording: {error}")))?;
    let ended = runtime.block_on(async {
        signals::forward(&sender)
            .map_err(|error| CliError::environment(format!("cannot listen to signals: {error}")))?;
        start(controls, recording.listener()).await.map_err(|breakage| CliError::environment(breakage.to_string()))
    });
    runtime.shutdown_timeout(SHUTDOWN);
    let recorded = recording.finish();
    Ok((ended?, recorded))
}

/// Prints the messages at the end of a run, and returns the exit code.
pub fn conclude(
    gates: &GateArgs,
    (ended, recorded): (RunEnd, Recorded),
    terminal: &Terminal,
) -> Result<ExitCode, CliError> {
    if let Some(error) = &recorded.error {
        return Err(CliError::environment(format!("recording failed, so the run was stopped: {error}")));
    }
    for path in &ended.left_over {
        terminal.err(&format!("warning: a sandbox could not be removed: {path}\n"));
    }
    for error in &recorded.report_errors {
        terminal.error(&CliError::environment(format!("a report is incomplete: {error}")));
    }
    if let Some(reason) = ended.stopped_by {
        return Ok(exit::of_stop(&reason));
    }
    if let Some(hook) = &ended.refused {
        return Err(hooks::refused(hook));
    }
    let code = gates.gate().exit_code(&ended.summary);
    // A missing report must be visible in the exit code.
    let is_incomplete = code == exit::PASSED && !recorded.report_errors.is_empty();
    Ok(ExitCode::from(if is_incomplete { exit::INCOMPLETE } else { code }))
}
