//! A running CLI.

use std::ffi::OsStr;
use std::io;
use std::ops::{Deref, DerefMut};

use sandbox::Sandbox;
use serde_json::Value;

use super::event::Interpreter;
use super::launch::Launch;
use crate::process;
pub(super) use crate::process::Said;

/// A running CLI process with its interpreter.
pub(super) struct Process {
    process: process::Process,
    /// Interprets its output.
    pub(super) interpreter: Interpreter,
}

impl Process {
    /// Starts the CLI and opens the control protocol. `resume` is the id of a session to continue.
    pub(super) fn start(launch: &Launch, sandbox: &dyn Sandbox, resume: Option<&str>) -> io::Result<Self> {
        let mut args: Vec<&OsStr> = launch.args.iter().map(OsStr::new).collect();
        if let Some(session) = resume {
            args.extend([OsStr::new("--resume"), OsStr::new(session)]);
        }
        let command = sandbox.command(launch.program.as_os_str(), &args, &launch.env);
        let process = process::Process::start(command)?;
        let process = Self { process, interpreter: Interpreter::new(launch.auth, launch.plugin.as_deref()) };
        process.say(&launch.initialize);
        Ok(process)
    }

    /// Sends a line.
    pub(super) fn say(&self, message: &Value) {
        self.process.say(format!("{message}\n"));
    }
}

impl Deref for Process {
    type Target = process::Process;

    fn deref(&self) -> &process::Process {
        &self.process
    }
}

impl DerefMut for Process {
    fn deref_mut(&mut self) -> &mut process::Process {
        &mut self.process
    }
}
