//! The harness's side: how processes are started.

use std::ffi::OsStr;
use std::io;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;

use tokio::process::Command;

use super::Lifeline;

/// Starts processes so that nothing of them is left when they end, are stopped, or the harness dies.
#[derive(Debug, Clone)]
pub struct Supervisor {
    /// The `trialrun` binary; absolute, because processes start in other directories than this one.
    pub program: PathBuf,
    /// Ends everything when the harness is gone.
    pub lifeline: Arc<Lifeline>,
    /// Do without a namespace even where the machine allows one.
    pub floor: bool,
}

/// How processes are held together on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Containment {
    /// By a pid namespace: nothing gets out.
    Namespace,
    /// By a process that adopts orphans.
    Floor {
        /// Why there is no namespace.
        because: String,
    },
}

impl Supervisor {
    /// Starts processes through `program`, which must be this binary; a relative path counts from here.
    ///
    /// # Errors
    /// When the process may open no more descriptors, or the path is empty.
    pub fn new(program: impl Into<PathBuf>) -> io::Result<Self> {
        Ok(Self { program: std::path::absolute(program.into())?, lifeline: Arc::new(Lifeline::new()?), floor: false })
    }

    /// A supervised command, to be started with [`Contained::spawn`](super::Contained::spawn) or
    /// [`run`](super::run()). Its environment is empty until the caller fills it; a `program` without a slash is looked
    /// for on the `PATH` of that environment.
    pub fn command<A: AsRef<OsStr>>(&self, program: impl AsRef<OsStr>, args: impl IntoIterator<Item = A>) -> Command {
        self.command_elsewhere(&[], program, args)
    }

    /// The same, for a program that finds at the second of each two places what is at the first. Where the machine
    /// allows a namespace nobody else sees it so; on the floor the program works at the first place, and variables that
    /// name the second one name the first.
    pub fn command_elsewhere<A: AsRef<OsStr>>(
        &self,
        places: &[(PathBuf, PathBuf)],
        program: impl AsRef<OsStr>,
        args: impl IntoIterator<Item = A>,
    ) -> Command {
        let mut command = Command::new(&self.program);
        command.arg("__supervise").args(["--lifeline", &self.lifeline.fd().to_string()]);
        if self.floor {
            command.arg("--floor");
        }
        for (from, to) in places {
            command.arg("--bind").args([from, to]);
        }
        command.arg("--").arg(program).args(args).env_clear();
        command
    }

    /// How processes are held together here. Starts a process to find out.
    ///
    /// # Errors
    /// When the binary cannot be started.
    pub async fn containment(&self) -> io::Result<Containment> {
        if self.floor {
            return Ok(Containment::Floor { because: "not wanted".into() });
        }
        let output = Command::new(&self.program)
            .arg("__supervise-probe")
            .env_clear()
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output()
            .await?;
        let said = if output.status.success() { output.stdout } else { output.stderr };
        Ok(match String::from_utf8_lossy(&said).trim() {
            "namespace" => Containment::Namespace,
            because => Containment::Floor { because: because.to_owned() },
        })
    }
}
