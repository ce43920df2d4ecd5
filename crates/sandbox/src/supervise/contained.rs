//! A running process and all its descendants, handled as one unit.

use std::io;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::runtime::{Handle, RuntimeFlavor};

/// Timeout for a supervisor to kill its processes. It normally gives up on its own before that.
const LAST_RESORT: Duration = Duration::from_secs(15);

/// Timeout for `drop` to wait until the killed processes have ended; normally this takes milliseconds.
const FAREWELL: Duration = Duration::from_secs(2);

/// A program under its supervisor. Dropping it kills the program and all processes it started.
#[derive(Debug)]
pub struct Contained {
    child: Child,
}

impl Contained {
    /// Starts a command made by [`Supervisor::command`](super::Supervisor::command).
    ///
    /// # Errors
    /// Returns an error if the supervisor cannot be started. If the program itself cannot be started, the exit code is
    /// 127 or 126, and stderr has a line that starts with [`MESSAGE_PREFIX`](super::MESSAGE_PREFIX).
    pub fn spawn(mut command: Command) -> io::Result<Self> {
        // A separate process group keeps the terminal's Ctrl-C away: the harness decides how to handle it.
        let child = command.process_group(0).spawn()?;
        let mut args = command.as_std().get_args().skip_while(|argument| *argument != "--");
        tracing::debug!(program = ?args.nth(1).unwrap_or_default(), supervisor = child.id(), "process started");
        Ok(Self { child })
    }

    /// Takes the program's stdin, if it is piped and was not taken yet.
    pub fn take_stdin(&mut self) -> Option<ChildStdin> {
        self.child.stdin.take()
    }

    /// Takes the program's stdout, if it is piped and was not taken yet.
    pub fn take_stdout(&mut self) -> Option<ChildStdout> {
        self.child.stdout.take()
    }

    /// Takes the program's stderr, if it is piped and was not taken yet.
    pub fn take_stderr(&mut self) -> Option<ChildStderr> {
        self.child.stderr.take()
    }

    /// Returns the supervisor's process id while it runs.
    pub fn id(&self) -> Option<u32> {
        self.child.id()
    }

    /// Waits until the program and all its descendants have ended. Returns the program's exit code, or 128 + the
    /// signal. It may be called again, and its future may be dropped before it completes.
    ///
    /// # Errors
    /// Returns an error if the system cannot report the status.
    pub async fn wait(&mut self) -> io::Result<ExitStatus> {
        self.child.wait().await
    }

    /// Sends SIGTERM to the program and all its descendants, and kills the remaining ones after `grace`.
    ///
    /// # Errors
    /// See [`wait`](Self::wait).
    pub async fn stop(&mut self, grace: Duration) -> io::Result<ExitStatus> {
        self.signal(Signal::SIGTERM);
        self.signal(Signal::SIGCONT);
        match tokio::time::timeout(grace, self.child.wait()).await {
            Ok(ended) => ended,
            Err(_) => self.kill().await,
        }
    }

    /// Kills the program and all its descendants.
    ///
    /// # Errors
    /// See [`wait`](Self::wait).
    pub async fn kill(&mut self) -> io::Result<ExitStatus> {
        self.kill_now();
        match tokio::time::timeout(LAST_RESORT, self.child.wait()).await {
            Ok(ended) => ended,
            Err(_) => {
                self.signal(Signal::SIGKILL);
                self.child.wait().await
            }
        }
    }

    fn kill_now(&self) {
        self.signal(Signal::SIGUSR1);
        // The program may have stopped its supervisor.
        self.signal(Signal::SIGCONT);
    }

    fn signal(&self, signal: Signal) {
        // The id exists only until the supervisor has been waited for, so it cannot belong to another process.
        if let Some(id) = self.child.id() {
            let _ = kill(Pid::from_raw(id.cast_signed()), signal);
        }
    }
}

impl Drop for Contained {
    fn drop(&mut self) {
        self.kill_now();
        if self.is_over() {
            return;
        }
        // Code that inspects or removes the sandbox next must not run while a process still writes to it.
        let began = Instant::now();
        let mut see_off = || {
            while !self.is_over() && began.elapsed() < FAREWELL {
                std::thread::sleep(Duration::from_millis(1));
            }
        };
        // Other trials run on the same thread, and their timeouts continue.
        match Handle::try_current().map(|runtime| runtime.runtime_flavor()) {
            Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(see_off),
            _ => see_off(),
        }
    }
}

impl Contained {
    fn is_over(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }
}

#[cfg(test)]
mod tests {
    use std::process::Stdio;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn waiting_for_a_process_to_end_does_not_block_other_tasks() {
        let mut command = Command::new("sh");
        command.args(["-c", "trap '' USR1; echo ready; read line"]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = Contained::spawn(command).unwrap();
        let (mut stdin, mut stdout) = (process.take_stdin().unwrap(), process.take_stdout().unwrap());
        stdout.read_exact(&mut [0; 6]).await.unwrap();
        // The process ends only after the other task has run, and both tasks share one thread.
        let dropping = tokio::spawn(async move {
            let other = tokio::spawn(async move {
                tokio::task::yield_now().await;
                stdin.write_all(b"\n").await
            });
            let began = Instant::now();
            drop(process);
            (began.elapsed(), other.await)
        });
        let (took, written) = dropping.await.unwrap();
        assert!(took < FAREWELL / 2, "{took:?}");
        written.unwrap().unwrap();
    }
}
