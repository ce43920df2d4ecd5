//! Commands of assertions.

use std::time::Duration;

use model::Probed;
use sandbox::SandboxCopy;
use sandbox::supervise::{self, MESSAGE_PREFIX, SUPERVISOR_FAILED};

/// Maximum number of bytes kept of each of a command's outputs.
const MOST_OUTPUT: usize = 64 * 1024;

/// Runs a command in the grading tree `copy`.
pub(super) async fn run(copy: &SandboxCopy, line: &str, timeout: Duration) -> Probed {
    let process = copy.command(copy.shell().as_ref(), &["-c".as_ref(), line.as_ref()]);
    let output = match supervise::run(process, timeout, MOST_OUTPUT).await {
        Ok(output) => output,
        Err(error) => return Probed::Failed { reason: error.to_string() },
    };
    let stderr = output.stderr.text();
    let code = output.status.code();
    if code == Some(i32::from(SUPERVISOR_FAILED)) && stderr.contains(MESSAGE_PREFIX) {
        return Probed::Failed { reason: stderr.trim().replace('\n', " ") };
    }
    match code {
        None if !output.timed_out => Probed::Failed { reason: "it was killed with its supervisor".into() },
        _ => Probed::Ran {
            exit_code: code.filter(|_| !output.timed_out),
            stdout: output.stdout.text(),
            stderr,
            clipped: output.stdout.omitted() + output.stderr.omitted() > 0,
            restored: copy.restored().to_vec(),
            control: None,
        },
    }
}
