//! Access to the machine for runs: the only module that reads the environment.

use std::collections::BTreeMap;
use std::path::PathBuf;

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
    let mut supervisor = Supervisor::new(program).map_err(|error| CliError::environment(error.to_string()))?;
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
