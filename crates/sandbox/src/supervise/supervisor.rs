//! Starts supervised processes from the harness.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;

use model::IsolationLayer;
use tokio::process::Command;

use super::answer::{self, SupervisorError};
use super::container::ContainerProcess;
use super::isolation::Isolation;
use super::remote::{self, RemoteProcess};
use super::{Lifeline, MESSAGE_PREFIX};

/// Starts processes in such a way that none of their descendants remain when they end or are stopped, or when the
/// harness dies.
#[derive(Debug, Clone)]
pub struct Supervisor {
    /// The program that [answers](super::answer()); absolute, because processes start in other directories.
    program: PathBuf,
    /// Ends all processes when the harness has ended.
    lifeline: Arc<Lifeline>,
    /// Do not use a namespace even if the machine allows one.
    pub floor: bool,
}

/// Containment of processes on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Containment {
    /// A PID namespace: no process can escape.
    Namespace,
    /// No PID namespace (fallback mode): a process adopts orphans.
    Floor {
        /// Reason why there is no namespace.
        reason: String,
    },
}

impl Supervisor {
    /// Starts processes through `program`: this program, or another one with the same version of this crate, such as
    /// an installed `trialrun`. A relative path is resolved against the current directory. Another program is started
    /// once, to find out if it answers.
    ///
    /// # Errors
    /// Returns an error if the program does not [answer](super::answer()), or if the process cannot open more file
    /// descriptors.
    pub fn new(program: impl Into<PathBuf>) -> Result<Self, SupervisorError> {
        let supervisor = Self::unchecked(program)?;
        answer::demand(&supervisor.program)?;
        Ok(supervisor)
    }

    /// Like [`new`](Self::new), but does not find out if the program answers. For hosts that start no process: a program
    /// that does not answer starts as usual each time that a process is wanted.
    ///
    /// # Errors
    /// Returns an error if the path is empty, or if the process cannot open more file descriptors.
    pub fn unchecked(program: impl Into<PathBuf>) -> Result<Self, SupervisorError> {
        let program = program.into();
        let absolute = std::path::absolute(&program).map_err(|source| SupervisorError::Start { program, source })?;
        let lifeline = Lifeline::new().map_err(SupervisorError::Lifeline)?;
        Ok(Self { program: absolute, lifeline: Arc::new(lifeline), floor: false })
    }

    /// Returns the program that supervises.
    pub(crate) fn program(&self) -> &Path {
        &self.program
    }

    /// Returns a supervised command, to be started with [`Contained::spawn`](super::Contained::spawn) or
    /// [`run`](super::run()). Its environment is empty until the caller fills it. A `program` without a slash is
    /// searched for on the `PATH` in that environment.
    pub fn command<A: AsRef<OsStr>>(&self, program: impl AsRef<OsStr>, args: impl IntoIterator<Item = A>) -> Command {
        self.command_elsewhere(&[], program, args)
    }

    /// Like `command`, but the program finds the first path of each pair in `places` at the second. With a namespace,
    /// only the program sees this. Without one, the program works at the first path, and variables that contain the
    /// second path are changed to the first.
    pub fn command_elsewhere<A: AsRef<OsStr>>(
        &self,
        places: &[(PathBuf, PathBuf)],
        program: impl AsRef<OsStr>,
        args: impl IntoIterator<Item = A>,
    ) -> Command {
        let mut command = self.supervisor();
        for (from, to) in places {
            command.arg("--bind").args([from, to]);
        }
        command.arg("--").arg(program).args(args).env_clear();
        command
    }

    /// Like `command`, but the program sees and uses only what `isolation` describes. It does not run if the machine
    /// refuses that.
    pub(crate) fn isolated_command<A: AsRef<OsStr>>(
        &self,
        isolation: &Isolation,
        program: impl AsRef<OsStr>,
        args: impl IntoIterator<Item = A>,
    ) -> Command {
        let mut command = self.supervisor();
        match isolation.to_argument() {
            Ok(isolation) => command.arg("--isolation").arg(isolation),
            // The supervisor rejects it, so the program does not run.
            Err(reason) => command.arg(reason),
        };
        command.arg("--").arg(program).args(args).env_clear();
        command
    }

    /// Like `command`, but the program runs in a container, which is removed when the program has ended.
    pub(crate) fn container_command<A: AsRef<OsStr>>(
        &self,
        container: &ContainerProcess,
        program: impl AsRef<OsStr>,
        args: impl IntoIterator<Item = A>,
    ) -> Command {
        let mut command = self.supervisor();
        match serde_json::to_string(container) {
            Ok(container) => command.arg("--container").arg(container),
            // The supervisor rejects this argument, so the program does not run.
            Err(error) => command.arg(error.to_string()),
        };
        command.arg("--").arg(program).args(args).env_clear();
        command
    }

    /// Like `command`, but the program runs on another machine.
    pub(crate) fn remote_command<A: AsRef<OsStr>>(
        &self,
        process: &RemoteProcess,
        program: impl AsRef<OsStr>,
        args: impl IntoIterator<Item = A>,
    ) -> Command {
        let mut command = self.supervisor();
        command.args(["--at-end", remote::END, "--"]).arg(&self.program).args([remote::RUN, "--"]);
        command.arg(program).args(args).env_clear();
        match serde_json::to_string(process) {
            // Other users of this machine can see arguments, but not the environment.
            Ok(text) => command.env(remote::VARIABLE, text),
            // Without the variable, the supervisor refuses to run the program.
            Err(_) => command.env_remove(remote::VARIABLE),
        };
        command.env("PATH", "/usr/local/bin:/usr/bin:/bin");
        command
    }

    fn supervisor(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.arg("__supervise").args(["--lifeline", &self.lifeline.fd().to_string()]);
        if self.floor {
            command.arg("--floor");
        }
        command
    }

    /// Returns the layers of `isolation`, including those that this machine refuses although the rest holds. Starts a
    /// process to find out.
    ///
    /// # Errors
    /// Returns the reason if this machine cannot isolate programs.
    pub(crate) fn layers(&self, isolation: &Isolation) -> Result<Vec<IsolationLayer>, String> {
        if self.floor {
            return Err("PID namespaces are turned off".to_owned());
        }
        let failed = |error: io::Error| format!("the program cannot start itself: {error}");
        let output = std::process::Command::new(&self.program)
            .arg("__supervise-probe")
            .arg("--isolation")
            .arg(isolation.to_argument()?)
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::null())
            .output()
            .map_err(failed)?;
        let output = if output.status.success() { output.stdout } else { output.stderr };
        let output = String::from_utf8_lossy(&output);
        let mut lines = output.lines();
        match lines.next() {
            Some("namespace") => {}
            other => {
                return Err(other.unwrap_or("the probe did not answer").trim_start_matches(MESSAGE_PREFIX).to_owned());
            }
        }
        lines.map(|line| serde_json::from_str(line).map_err(|error| format!("{line}: {error}"))).collect()
    }

    /// Returns the kind of containment that works here. Starts a process to find out.
    ///
    /// # Errors
    /// Returns an error if the binary cannot be started.
    pub async fn containment(&self) -> io::Result<Containment> {
        if self.floor {
            return Ok(Containment::Floor { reason: "not wanted".into() });
        }
        let output = Command::new(&self.program)
            .arg("__supervise-probe")
            .env_clear()
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output()
            .await?;
        let output = if output.status.success() { output.stdout } else { output.stderr };
        Ok(match String::from_utf8_lossy(&output).trim() {
            "namespace" => Containment::Namespace,
            reason => Containment::Floor { reason: reason.to_owned() },
        })
    }
}
