//! Checks the results of setup commands.

use std::time::Duration;

use model::Excerpt;

use super::SandboxError;
use crate::supervise::Output;

/// Maximum length of stderr in an error message, in characters.
const QUOTED: usize = 2000;

/// Returns an error that quotes the output of a setup command if it failed.
pub(super) fn check(
    command: &str,
    output: &Output,
    timeout: Duration,
    source: Option<&Excerpt>,
) -> Result<(), SandboxError> {
    let how = if output.timed_out {
        format!("did not finish within {} s (setup_timeout)", timeout.as_secs_f64())
    } else {
        match output.status.code() {
            Some(0) => return Ok(()),
            Some(code) => format!("failed with exit code {code}"),
            None => "was killed with its supervisor".to_owned(),
        }
    };
    let message = output.stderr.text();
    let message = message.trim();
    let start = message.char_indices().rev().nth(QUOTED).map_or(0, |(at, _)| at);
    Err(SandboxError::Setup {
        command: command.to_owned(),
        how,
        exited: !output.timed_out && output.status.code().is_some(),
        stderr: if start > 0 { format!("…{}", &message[start..]) } else { message.to_owned() },
        source_line: source.cloned().map(Box::new),
    })
}
