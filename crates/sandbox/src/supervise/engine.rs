//! Runs programs in containers, with an engine such as Docker.
//!
//! Container processes may not be children of the supervisor: a container goes on running when the client that started
//! it ends. The supervisor therefore names each container, and removes it by that name when the program ends, when it
//! is asked to, or when the harness ends.

use std::ffi::{OsStr, OsString};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::arguments::myself;
use super::container::ContainerProcess;
use super::say;

/// Time limit for removing or inspecting a container.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Exit codes of engines that could not start a container. Programs may also exit with them.
const DOUBTFUL: std::ops::RangeInclusive<u8> = 125..=127;

/// Beginning of the start time that engines report for a container that never started.
const NEVER: &str = "0001-01-01";

/// Prefixes of variables that change how engines and their libraries behave. Only the container gets their values.
const OF_ENGINES: [&str; 10] =
    ["DOCKER_", "BUILDX_", "CONTAINER", "PODMAN_", "STORAGE_", "REGISTRY_", "_CONTAINERS_", "XDG_", "LD_", "TMPDIR"];

impl ContainerProcess {
    /// Starts the program in a container, in the working directory of this process.
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
                // Every user can see arguments, so the value is passed in the engine's environment.
                exec.arg("--env").arg(&name).env(&name, value);
            }
        }
        exec.arg("--entrypoint").arg(program).arg(&self.image).args(args).envs(&self.env);
        exec.spawn().map_err(|error| format!("cannot start a process: {error}"))
    }

    /// Removes the container with all its processes. `code` is the exit code of the program; returns that of the
    /// supervisor.
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

    /// Returns `true` if the engine reports that the program was started.
    fn has_started(&self) -> bool {
        let started = self.ask(&["container", "inspect", "--format", "{{.State.StartedAt}}", &self.name]);
        started.is_some_and(|moment| !moment.trim().starts_with(NEVER))
    }

    /// Returns the output of an engine command, or `None` if it fails or takes too long.
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
        // The output is so short that it fits into the pipe.
        let output = child.wait_with_output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
    }

    fn is_of_engine(&self, name: &OsStr) -> bool {
        let name = name.to_string_lossy();
        self.env.contains_key(&*name) || OF_ENGINES.iter().any(|start| name.starts_with(start))
    }
}
