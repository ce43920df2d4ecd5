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

/// Prefixes of lines that follow an error message of an engine.
const HINTS: [&str; 2] = ["See '", "Run '"];

/// Prefixes of variables that change how engines and their libraries behave. Only the container gets their values.
const OF_ENGINES: [&str; 10] =
    ["DOCKER_", "BUILDX_", "CONTAINER", "PODMAN_", "STORAGE_", "REGISTRY_", "_CONTAINERS_", "XDG_", "LD_", "TMPDIR"];

impl ContainerProcess {
    /// Starts the program in a container, in the working directory of this process.
    pub(super) fn start(&self, program: &[OsString]) -> Result<Child, String> {
        let here = std::env::current_dir().map_err(|error| format!("the working directory is gone: {error}"))?;
        let Some((program, args)) = program.split_first() else { return Err("no program to run".into()) };
        let mut exec = Command::new(myself()?);
        exec.arg("__supervise-exec");
        if self.network.is_some() {
            let container = serde_json::to_string(self).map_err(|error| error.to_string())?;
            exec.arg("--container").arg(container);
        }
        exec.arg("--").arg(&self.engine);
        exec.args(["run", "--interactive", "--name", &self.name]);
        if self.network.is_some() {
            exec.args(self.options_in_network());
        } else {
            exec.args(&self.options);
        }
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
        let is_started = doubtful.is_none() || self.has_started();
        let mut removed = self.remove(&self.name);
        if self.network.is_some() {
            // Podman removes a network's container only after those that use it.
            removed = removed.and(self.remove(&self.name_of_network()));
        }
        match (code, removed) {
            (Some(1..), Err(reason)) => {
                // Without its engine, the client's exit code says nothing about the program.
                say(&format!("the container engine failed: {reason}"));
                return Some(super::SUPERVISOR_FAILED);
            }
            (_, Err(reason)) => say(&reason),
            (Some(failure), Ok(())) if !is_started => {
                let what =
                    if failure == super::SUPERVISOR_FAILED { "the container" } else { "the program of the container" };
                say(&format!("{what} cannot be started"));
            }
            _ => {}
        }
        code
    }

    /// Removes a container with all its processes, if it exists.
    ///
    /// # Errors
    /// Returns the reason if the engine does not answer.
    fn remove(&self, name: &str) -> Result<(), String> {
        let Err(reason) = self.ask(&["rm", "--force", "--volumes", name]) else { return Ok(()) };
        let later = format!("{reason}; `trialrun prune` removes the container {name} later");
        // The end of a container's program can remove it too.
        let left = self.ask(&["ps", "--all", "--filter", &format!("name={name}"), "--format", "{{.Names}}"]);
        let is_left = left.map_err(|_| later.clone())?.lines().any(|other| other.trim() == name);
        if is_left {
            say(&later);
        }
        Ok(())
    }

    /// Returns `true` if the engine reports that the program was started.
    fn has_started(&self) -> bool {
        let started = self.ask(&["container", "inspect", "--format", "{{.State.StartedAt}}", &self.name]);
        started.is_ok_and(|moment| !moment.trim().starts_with(NEVER))
    }

    /// Returns the output of an engine command.
    ///
    /// # Errors
    /// Returns the error message if the command fails or takes too long.
    fn ask(&self, args: &[&str]) -> Result<String, String> {
        let mut command = Command::new(&self.engine);
        command.args(args).env_clear().envs(&self.env).current_dir("/");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let failed = |error: std::io::Error| format!("{} cannot be started: {error}", self.engine.display());
        let mut child = command.spawn().map_err(failed)?;
        let began = Instant::now();
        let mut pause = Duration::from_millis(1);
        while matches!(child.try_wait(), Ok(None)) {
            if began.elapsed() > TIMEOUT {
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("it did not answer within {} s", TIMEOUT.as_secs()));
            }
            thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(20));
        }
        // The output is so short that it fits into the pipe.
        let output = child.wait_with_output().map_err(failed)?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let message = String::from_utf8_lossy(&output.stderr);
        Err(error_message(&message).unwrap_or("it failed without an error message").to_owned())
    }

    fn is_of_engine(&self, name: &OsStr) -> bool {
        let name = name.to_string_lossy();
        self.env.contains_key(&*name) || OF_ENGINES.iter().any(|start| name.starts_with(start))
    }
}

/// Returns the error message in the output of an engine: the last line that is not a hint.
pub(crate) fn error_message(output: &str) -> Option<&str> {
    let is_message = |line: &&str| !line.is_empty() && !HINTS.iter().any(|hint| line.starts_with(hint));
    output.lines().map(str::trim).rfind(is_message)
}
