//! A running process and everything below it, as one thing.

use std::io;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::runtime::{Handle, RuntimeFlavor};

/// How long a supervisor may take to end what it was told to kill. It gives up by itself before that.
const LAST_RESORT: Duration = Duration::from_secs(15);

/// How long a drop waits for the end it has brought about; it takes milliseconds.
const FAREWELL: Duration = Duration::from_secs(2);

/// A program under its supervisor. Dropping it kills the program and everything it started.
#[derive(Debug)]
pub struct Contained {
    child: Child,
}

impl Contained {
    /// Starts a command made by [`Supervisor::command`](super::Supervisor::command).
    ///
    /// # Errors
    /// When the supervisor cannot be started. A program that cannot is told by exit code 127 or 126 and a line on
    /// stderr that starts with [`MARK`](super::MARK).
    pub fn spawn(mut command: Command) -> io::Result<Self> {
        // Out of reach of Ctrl-C in the terminal: the harness decides what it means.
        let child = command.process_group(0).spawn()?;
        Ok(Self { child })
    }

    /// The program's stdin, if it is piped and was not taken yet.
    pub fn take_stdin(&mut self) -> Option<ChildStdin> {
        self.child.stdin.take()
    }

    /// The program's stdout, if it is piped and was not taken yet.
    pub fn take_stdout(&mut self) -> Option<ChildStdout> {
        self.child.stdout.take()
    }

    /// The program's stderr, if it is piped and was not taken yet.
    pub fn take_stderr(&mut self) -> Option<ChildStderr> {
        self.child.stderr.take()
    }

    /// The supervisor's process id while it runs.
    pub fn id(&self) -> Option<u32> {
        self.child.id()
    }

    /// Waits until the program has ended and nothing below it is left. Its own code, or 128 + the signal. May be called
    /// again, and may be dropped half-way.
    ///
    /// # Errors
    /// When the system cannot tell.
    pub async fn wait(&mut self) -> io::Result<ExitStatus> {
        self.child.wait().await
    }

    /// Asks the program and everything below it to end (SIGTERM), and kills what is left after `grace`.
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    pub async fn stop(&mut self, grace: Duration) -> io::Result<ExitStatus> {
        self.signal(Signal::SIGTERM);
        self.signal(Signal::SIGCONT);
        match tokio::time::timeout(grace, self.child.wait()).await {
            Ok(ended) => ended,
            Err(_) => self.kill().await,
        }
    }

    /// Kills the program and everything below it.
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
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
        // There is an id only while the supervisor has not been waited for, so it is nobody else's.
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
        // Whoever looks at the sandbox next, or removes it, must not meet somebody who still writes.
        let began = Instant::now();
        let mut see_off = || {
            while !self.is_over() && began.elapsed() < FAREWELL {
                std::thread::sleep(Duration::from_millis(1));
            }
        };
        // Other trials live on the same thread, and their clocks go on.
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
    async fn a_farewell_keeps_no_other_task_waiting() {
        let mut command = Command::new("sh");
        command.args(["-c", "trap '' USR1; echo ready; read line"]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = Contained::spawn(command).unwrap();
        let (mut stdin, mut stdout) = (process.take_stdin().unwrap(), process.take_stdout().unwrap());
        stdout.read_exact(&mut [0; 6]).await.unwrap();
        // The process ends when the other task lets it, and there is one thread for both.
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
