//! Access to the machine for runs: the only module that reads the environment.

use std::collections::BTreeMap;
use std::path::PathBuf;

use model::RunRow;
use nix::sys::signal;
use nix::unistd::Pid;
use sandbox::Host;
use sandbox::supervise::Supervisor;

use crate::error::CliError;

/// Variable that turns off PID namespaces for trials, for systems on which they cause problems.
const NO_NAMESPACE: &str = "TRIALRUN_NO_NAMESPACE";

/// Returns the description of this machine.
pub fn host() -> Result<Host, CliError> {
    let env = environment();
    let program = std::env::current_exe()
        .map_err(|error| CliError::environment(format!("cannot find the program's own file: {error}")))?;
    let mut supervisor =
        Supervisor::new(program).map_err(|error| CliError::environment(error.to_string()))?;
    supervisor.floor = env.get(NO_NAMESPACE).is_some_and(|value| !value.is_empty() && value != "0");
    let home = env.get("HOME").filter(|home| !home.is_empty()).map(PathBuf::from);
    // An empty variable counts as not set.
    let temp = Some(std::env::temp_dir()).filter(|temp| !temp.as_os_str().is_empty());
    let temp = temp.unwrap_or_else(|| PathBuf::from("/tmp"));
    Ok(Host { env, home, temp, supervisor })
}

/// Returns the environment variables that are valid UTF-8.
pub fn environment() -> BTreeMap<String, String> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect()
}

/// Returns the arguments of this process after the name of the program; `None` if one is not valid UTF-8.
pub fn arguments() -> Option<Vec<String>> {
    std::env::args_os().skip(1).map(|argument| argument.into_string().ok()).collect()
}

/// Returns `true` if the run is in progress: it has no end, and its process exists.
pub fn is_active(run: &RunRow) -> bool {
    run.finished_at.is_none() && run.owner_pid.is_some_and(is_alive)
}

/// Returns `true` if another process with this id exists. The process's own id does not count: in a container, it is
/// often the same as that of a killed process.
fn is_alive(pid: u32) -> bool {
    // Signal 0 only checks. If sending it is not permitted, the process exists.
    pid != std::process::id()
        && i32::try_from(pid)
            .is_ok_and(|pid| !matches!(signal::kill(Pid::from_raw(pid), None), Err(nix::errno::Errno::ESRCH)))
}
