//! A git repository, cloned into a temporary folder.

use std::time::Duration;

use sandbox::supervise::run;
use tempfile::TempDir;

use crate::error::CliError;
use crate::machine;

/// Timeout of a clone.
const TIMEOUT: Duration = Duration::from_secs(300);

/// Maximum size of git output that is kept, in bytes.
const MOST_OUTPUT: usize = 64 * 1024;

/// Clones the newest commit of a repository. The folder is removed when the result is dropped. No hooks run, and git
/// does not ask for a password.
///
/// # Errors
/// Returns an error if the repository cannot be cloned.
pub async fn clone(url: &str) -> Result<TempDir, CliError> {
    if url.starts_with('-') || url.contains("::") {
        return Err(CliError::usage(format!("`{url}` is not the address of a repository")));
    }
    let cannot = |error: std::io::Error| CliError::environment(format!("cannot clone `{url}`: {error}"));
    let folder = tempfile::Builder::new().prefix("trialrun-discover-").tempdir().map_err(cannot)?;
    let host = machine::host()?;
    let options = ["-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "protocol.ext.allow=never"];
    let clone = ["clone", "-q", "--depth", "1", "--no-tags", "--", url, "."];
    let mut command = host.supervisor.command("git", options.iter().chain(&clone));
    command.current_dir(folder.path()).env("GIT_TERMINAL_PROMPT", "0").env("GIT_LFS_SKIP_SMUDGE", "1");
    let output = run(command, TIMEOUT, MOST_OUTPUT).await.map_err(cannot)?;
    if output.timed_out {
        return Err(CliError::environment(format!(
            "cloning `{url}` did not finish within {} seconds",
            TIMEOUT.as_secs()
        )));
    }
    match output.status.success() {
        true => Ok(folder),
        false => Err(CliError::usage(format!("cannot clone `{url}`: {}", output.stderr.text().trim()))),
    }
}
