//! Commands of assertions.

use std::ffi::OsStr;
use std::time::Duration;

use model::{Need, Probed};
use sandbox::supervise::{self, MESSAGE_PREFIX, SUPERVISOR_FAILED};
use sandbox::{Sandbox, SandboxCopy};

use super::inspection;

/// Maximum number of bytes kept of each of a command's outputs.
const MOST_OUTPUT: usize = 64 * 1024;

/// Exit code of a shell that did not find a program.
const NOT_FOUND: i32 = 127;

/// Runs commands of assertions in the grading tree `copy` of `sandbox`. Each has a copy of that tree, so that what it
/// runs of the agent's work cannot change the others, unless the case makes them share one. `$1` in a command is
/// `answer`, the agent's last answer.
pub(super) async fn run(
    sandbox: &dyn Sandbox,
    copy: &SandboxCopy,
    commands: &[Need],
    is_shared: bool,
    answer: Option<&str>,
) -> Vec<Probed> {
    let mut results = Vec::with_capacity(commands.len());
    for (at, need) in commands.iter().enumerate() {
        let Need::Command { run, timeout_ms } = need else { continue };
        let timeout = Duration::from_millis(*timeout_ms);
        let is_last = at + 1 == commands.len();
        let read = read_files(copy, run);
        results.push(match (is_last && read.is_empty()) || is_shared {
            true => run_in(copy, run, timeout, answer).await,
            false => match sandbox.fork(copy).await {
                Ok(own) => {
                    let found = match own.take(sandbox.work().to_owned(), read.clone()).await {
                        Ok(()) => without_restored(run_in(&own, run, timeout, answer).await, &read),
                        Err(error) => Probed::Failed { reason: error.to_string() },
                    };
                    // Parts that cannot be removed now are removed with the run's sandboxes.
                    let _ = own.close().await;
                    found
                }
                Err(error) => Probed::Failed { reason: format!("cannot copy the tree to run it in: {error}") },
            },
        });
    }
    results
}

/// Returns the files that were restored, but that the command `run` reads without running anything: it is about what
/// the agent left there.
fn read_files(copy: &SandboxCopy, run: &str) -> Vec<String> {
    let read = inspection::read_by(run).unwrap_or_default();
    copy.restored().iter().filter(|path| read.contains(path)).cloned().collect()
}

/// Returns a result without the note that `files` were restored.
fn without_restored(mut found: Probed, files: &[String]) -> Probed {
    if let Probed::Ran { restored, .. } = &mut found {
        restored.retain(|path| !files.contains(path));
    }
    found
}

/// Runs a command in the grading tree `copy`.
async fn run_in(copy: &SandboxCopy, line: &str, timeout: Duration, answer: Option<&str>) -> Probed {
    if let Err(error) = copy.prepare().await {
        return Probed::Failed { reason: format!("cannot prepare the tree to run it in: {error}") };
    }
    // The agent's work can change what tests it while it is tested.
    let stamps = copy.stamps(grade::scripts_of(line).run).await;
    let mut words: Vec<&OsStr> = vec!["-c".as_ref(), line.as_ref()];
    // Other commands are started as before, whatever the agent answered: a long answer is too long for an argument.
    if let Some(answer) = answer.filter(|answer| line.contains("\"$1\"") && !answer.contains('\0')) {
        words.extend([OsStr::new("sh"), OsStr::new(answer)]);
    }
    let process = copy.command(copy.shell().as_ref(), &words);
    let output = match supervise::run(process, timeout, MOST_OUTPUT).await {
        Ok(output) => output,
        Err(error) => return Probed::Failed { reason: error.to_string() },
    };
    let stderr = output.stderr.text();
    let code = output.status.code();
    if code == Some(i32::from(SUPERVISOR_FAILED)) && stderr.contains(MESSAGE_PREFIX) {
        return Probed::Failed { reason: stderr.trim().replace('\n', " ") };
    }
    let missing_program = match code {
        Some(NOT_FOUND) if !output.timed_out => missing_program(copy, line, timeout).await,
        _ => None,
    };
    match code {
        None if !output.timed_out => Probed::Failed { reason: "it was killed with its supervisor".into() },
        _ => Probed::Ran {
            exit_code: code.filter(|_| !output.timed_out),
            stdout: output.stdout.text(),
            stderr,
            clipped: output.stdout.omitted() + output.stderr.omitted() > 0,
            restored: copy.restored().to_vec(),
            edited: copy.changed_since(stamps).await,
            control: None,
            scripts: None,
            new_tests: None,
            failing_test: None,
            rewards: copy.rewards().await,
            solution: None,
            missing_program,
        },
    }
}

/// Returns the name of the program with which `line` begins, if the shell of the grading tree `copy` does not find it on the
/// `PATH`. The shell is asked, because the agent's work can print any message. A path may name a file that the agent was to
/// make, so it is not one of these names.
async fn missing_program(copy: &SandboxCopy, line: &str, timeout: Duration) -> Option<String> {
    let name = line.split_whitespace().next()?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '+');
    if !name.starts_with(|c: char| c.is_ascii_alphanumeric()) || !name.chars().all(is_plain) {
        return None;
    }
    let words = ["-c", "command -v \"$1\"", "sh", name].map(OsStr::new);
    let output = supervise::run(copy.command(copy.shell().as_ref(), &words), timeout, 0).await.ok()?;
    let is_missing = !output.timed_out && matches!(output.status.code(), Some(1 | NOT_FOUND));
    is_missing.then(|| name.to_owned())
}
