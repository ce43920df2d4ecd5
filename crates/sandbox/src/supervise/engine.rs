//! Programs in containers, which an engine such as Docker starts.
//!
//! The engine's own processes do not belong to the supervisor: a container goes on when the program that started it
//! ends. The supervisor therefore names each container and removes it by this name when the program has ended, on
//! request, or when the harness has ended.

use std::ffi::{OsStr, OsString};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::arguments::myself;
use super::container::ContainerProcess;
use super::say;

/// Time limit of the engine for removing a container, and for describing one.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Exit codes of engines if a container did not start. Programs may exit with them, too.
const DOUBTFUL: std::ops::RangeInclusive<u8> = 125..=127;

/// Start of the time that engines report for a container that was never started.
const NEVER: &str = "0001-01-01";

/// Beginnings of variables that change what engines and their libraries do. Their values go to the container only.
const OF_ENGINES: [&str; 10] =
    ["DOCKER_", "BUILDX_", "CONTAINER", "PODMAN_", "STORAGE_", "REGISTRY_", "_CONTAINERS_", "XDG_", "LD_", "TMPDIR"];

impl ContainerProcess {
    /// Starts the engine with the program, in the working directory of this process.
    pub(super) fn start(&self, program: &[OsString]) -> Result<Child, String> {
        let here = std::env::current_dir().map_err(|error| format!("the working directory is gone: {error}"))?;
        let Some((program, args)) = program.split_first() else { return Err("no program to run".into()) };
        let mut exec = Command::new(myself()?);
        exec.arg("__supervise-exec").arg("--").arg(&self.engine);
        exec.args(["run", "--interactive", "--name", &self.name]).args(&self.options);
        exec.arg("--workdir").arg(here).env_clear();
        for (name, value) in std::env::vars_os() {
            if self.is_of_engine(&name) {
                let mut both = name;
                both.push("=");
                both.push(value);
                exec.arg("--env").arg(both);
            } else {
                // The engine takes the value from its own environment, because every user sees its arguments.
                exec.arg("--env").arg(&name).env(&name, value);
            }
        }
        exec.arg("--entrypoint").arg(program).arg(&self.image).args(args).envs(&self.env);
        exec.spawn().map_err(|error| format!("cannot start a process: {error}"))
    }

    /// Removes the container with all its processes. Returns the exit code of the supervisor, if the program's is `code`.
    pub(super) fn end(&self, code: Option<u8>) -> Option<u8> {
        let doubtful = code.filter(|code| DOUBTFUL.contains(code));
        let code = match doubtful {
            Some(failure) if !self.has_started() => {
                let what =
                    if failure == super::SUPERVISOR_FAILED { "the container" } else { "the program of the container" };
                say(&format!("{what} cannot be started"));
                Some(failure)
            }
            _ => code,
        };
        if self.ask(&["rm", "--force", "--volumes", &self.name]).is_none() {
            say(&format!("the container {} cannot be removed; `trialrun prune` removes it later", self.name));
        }
        code
    }

    /// Returns `true` unless the engine says that the program never ran.
    fn has_started(&self) -> bool {
        let started = self.ask(&["container", "inspect", "--format", "{{.State.StartedAt}}", &self.name]);
        started.is_some_and(|moment| !moment.trim().starts_with(NEVER))
    }

    /// Returns the output of the engine, unless it fails or takes too long.
    fn ask(&self, args: &[&str]) -> Option<String> {
        let mut command = Command::new(&self.engine);
        command.args(args).env_clear().envs(&self.env).current_dir("/");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().ok()?;
        let began = Instant::now();
        let mut pause = Duration::from_millis(1);
        while matches!(child.try_wait(), Ok(None)) {
            if began.elapsed() > TIMEOUT {
                let _ = child.kill();
            }
            thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(20));
        }
        // The answer is short, so it fits into the pipe.
        let output = child.wait_with_output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
    }

    fn is_of_engine(&self, name: &OsStr) -> bool {
        let name = name.to_string_lossy();
        self.env.contains_key(&*name) || OF_ENGINES.iter().any(|start| name.starts_with(start))
    }
}
