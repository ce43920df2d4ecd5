//! A supervised program for callers without an asynchronous runtime.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::process::Command;

use super::SUPERVISOR_FAILED;

/// Timeout for `drop` to wait until the killed processes have ended; normally this takes milliseconds.
const FAREWELL: Duration = Duration::from_secs(2);

/// A program under its supervisor, like [`Contained`](super::Contained). Dropping it kills the program and all processes
/// it started.
#[derive(Debug)]
pub struct Process {
    child: Child,
}

impl Process {
    /// Starts a command made by [`Supervisor::command`](super::Supervisor::command).
    ///
    /// # Errors
    /// See [`Contained::spawn`](super::Contained::spawn).
    pub fn spawn(command: Command) -> io::Result<Self> {
        let child = command.into_std().process_group(0).spawn()?;
        Ok(Self { child })
    }

    /// Takes the program's pipes, if all three are piped and were not taken yet.
    pub fn take_pipes(&mut self) -> Option<(ChildStdin, ChildStdout, ChildStderr)> {
        Some((self.child.stdin.take()?, self.child.stdout.take()?, self.child.stderr.take()?))
    }

    /// Waits until the program and all its descendants have ended, at most for `timeout`. Returns the program's exit
    /// code, or 128 + the signal; `None` if it still runs.
    ///
    /// # Errors
    /// Returns an error if the system cannot report the status.
    pub fn wait(&mut self, timeout: Duration) -> io::Result<Option<i32>> {
        let began = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(Some(status.code().unwrap_or(i32::from(SUPERVISOR_FAILED))));
            }
            if began.elapsed() >= timeout {
                return Ok(None);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if !matches!(self.child.try_wait(), Ok(None)) {
            return;
        }
        // The id belongs to the supervisor until it has been waited for.
        let id = Pid::from_raw(self.child.id().cast_signed());
        let _ = kill(id, Signal::SIGUSR1);
        // The program may have stopped its supervisor.
        let _ = kill(id, Signal::SIGCONT);
        let _ = self.wait(FAREWELL);
    }
}
