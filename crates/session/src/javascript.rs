//! Starts the user's JavaScript runtime.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use sandbox::Host;
use sandbox::supervise;
use script::{Launched, Launcher, Platform, ProcessLimits, ProjectRuntime, RuntimeChoice};

/// Moves the pipes away from the standard streams, which belong to the user's code, and sets the limits. Not every
/// system has each of them.
const START: &str = "ulimit -t \"$1\" 2>/dev/null; ulimit -d \"$2\" 2>/dev/null; shift 2; \
                     exec \"$@\" 3<&0 4>&1 </dev/null >&2";

/// Returns the runtime for the code of the project in the folder `root`.
pub(crate) fn runtime_for(host: &Arc<Host>, root: &Path, choice: RuntimeChoice) -> ProjectRuntime {
    let launcher = RuntimeLauncher { host: Arc::clone(host), directory: root.to_owned() };
    ProjectRuntime { choice, launcher: Arc::new(launcher) }
}

/// Starts a runtime in the directory of the project, with the user's whole environment: the code is the user's own.
struct RuntimeLauncher {
    host: Arc<Host>,
    directory: PathBuf,
}

impl Launcher for RuntimeLauncher {
    fn launch(&self, platform: &Platform, arguments: &[String], limits: ProcessLimits) -> io::Result<Launched> {
        let program = self.host.find_program(platform.program).ok_or(io::ErrorKind::NotFound)?;
        let limits = [limits.processor.as_secs(), limits.memory >> 10].map(|limit| limit.to_string());
        let shell = ["-c", START, "sh"].map(str::to_owned);
        let program = program.to_string_lossy().into_owned();
        let all = shell.into_iter().chain(limits).chain([program]).chain(arguments.iter().cloned());
        let mut command = self.host.supervisor.command("/bin/sh", all);
        command.envs(&self.host.env).envs(platform.variables.iter().copied()).current_dir(&self.directory);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = supervise::Process::spawn(command)?;
        let (input, output, printed) = process.take_pipes().ok_or(io::ErrorKind::BrokenPipe)?;
        Ok(Launched {
            input: Box::new(input),
            output: Box::new(output),
            printed: Box::new(printed),
            process: Box::new(RuntimeProcess(process)),
        })
    }
}

struct RuntimeProcess(supervise::Process);

impl script::Process for RuntimeProcess {
    fn wait(&mut self, timeout: Duration) -> io::Result<Option<i32>> {
        self.0.wait(timeout)
    }
}
