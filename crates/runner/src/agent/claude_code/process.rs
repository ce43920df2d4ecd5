//! A running CLI and its three streams.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::io;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use serde_json::Value;
use tokio::io::AsyncWriteExt;
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use tokio::sync::mpsc;

use super::event::Interpreter;
use super::launch::Launch;
use super::lines::{Line, Lines};
use crate::sandbox::Sandbox;
use crate::supervise::Contained;

/// How many lines may wait for a CLI that does not read its stdin.
const WAITING_LINES: usize = 1024;
/// How many of the last lines of stderr are kept for explaining an end.
const LAST_WORDS: usize = 3;
/// How long the CLI may take to go once its stdin is closed.
const TO_GO: Duration = Duration::from_secs(3);
/// How long it may take when told to go, before it is killed with everything below it.
const TO_STOP: Duration = Duration::from_secs(1);

/// A running CLI.
pub(super) struct Process {
    child: Contained,
    /// Gone once there is nothing more to say.
    mouth: Option<mpsc::Sender<String>>,
    stdout: Lines<ChildStdout>,
    stderr: Lines<ChildStderr>,
    last_words: VecDeque<String>,
    /// Understands what it says.
    pub(super) interpreter: Interpreter,
}

/// A line of the CLI's output.
pub(super) enum Said {
    /// An event.
    Stdout(Line),
    /// For people.
    Stderr(Line),
    /// No further event.
    End,
}

impl Process {
    /// Starts the CLI and opens the control protocol; `resume` is a session to go on with.
    pub(super) fn start(launch: &Launch, sandbox: &dyn Sandbox, resume: Option<&str>) -> io::Result<Self> {
        let mut args: Vec<&OsStr> = launch.args.iter().map(OsStr::new).collect();
        if let Some(session) = resume {
            args.extend([OsStr::new("--resume"), OsStr::new(session)]);
        }
        let mut command = sandbox.command(launch.program.as_os_str(), &args, &launch.env);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = Contained::spawn(command)?;
        let missing = || io::Error::other("a stream of the process is missing");
        let stdin = child.take_stdin().ok_or_else(missing)?;
        let stdout = Lines::of(child.take_stdout().ok_or_else(missing)?);
        let stderr = Lines::of(child.take_stderr().ok_or_else(missing)?);
        let process = Self {
            child,
            mouth: Some(speak(stdin)),
            stdout,
            stderr,
            last_words: VecDeque::new(),
            interpreter: Interpreter::new(launch.auth),
        };
        process.say(&launch.initialize);
        Ok(process)
    }

    /// Sends a line. What a CLI that is gone or deaf does not hear shows in what it does not say.
    pub(super) fn say(&self, message: &Value) {
        if let Some(mouth) = &self.mouth {
            let _ = mouth.try_send(format!("{message}\n"));
        }
    }

    /// Says nothing more: closes stdin once everything is said.
    pub(super) fn hush(&mut self) {
        self.mouth = None;
    }

    /// What it says next. May be dropped half-way.
    pub(super) async fn listen(&mut self) -> Said {
        loop {
            tokio::select! {
                line = self.stderr.next(), if !self.stderr.ended() => {
                    if let Some(line) = line {
                        self.remember(&line);
                        return Said::Stderr(line);
                    }
                }
                line = self.stdout.next(), if !self.stdout.ended() => {
                    return line.map_or(Said::End, Said::Stdout);
                }
                else => return Said::End,
            }
        }
    }

    /// Whether it has ended.
    pub(super) async fn is_gone(&mut self) -> bool {
        tokio::time::timeout(Duration::ZERO, self.child.wait()).await.is_ok()
    }

    /// Waits for its end, and brings it about if it does not come by itself.
    pub(super) async fn end(&mut self) -> io::Result<ExitStatus> {
        self.hush();
        match tokio::time::timeout(TO_GO, self.drain()).await {
            Ok(ended) => ended,
            Err(_) => self.stop().await,
        }
    }

    /// Ends it and everything below it.
    pub(super) async fn stop(&mut self) -> io::Result<ExitStatus> {
        self.hush();
        self.child.stop(TO_STOP).await
    }

    /// Reads what is left, so that it can end, and waits for that.
    async fn drain(&mut self) -> io::Result<ExitStatus> {
        while !(self.stdout.ended() && self.stderr.ended()) {
            tokio::select! {
                line = self.stderr.next(), if !self.stderr.ended() => {
                    if let Some(line) = line {
                        self.remember(&line);
                    }
                }
                _ = self.stdout.next(), if !self.stdout.ended() => {}
            }
        }
        self.child.wait().await
    }

    /// How it ended, in one line, with the last of what it wrote to stderr.
    pub(super) async fn obituary(&mut self) -> String {
        let how = match self.end().await {
            Ok(status) => match status.code() {
                Some(code) if code > 128 => format!("ended by signal {}", code - 128),
                Some(code) => format!("exit code {code}"),
                None => status.to_string(),
            },
            Err(error) => error.to_string(),
        };
        let words = self.last_words.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" / ");
        if words.is_empty() { how } else { format!("{how}: {words}") }
    }

    fn remember(&mut self, line: &Line) {
        if line.text.trim().is_empty() {
            return;
        }
        if self.last_words.len() == LAST_WORDS {
            self.last_words.pop_front();
        }
        self.last_words.push_back(line.text.chars().take(400).collect());
    }
}

/// Writes lines to `stdin` beside everything else: the CLI may be unable to read before it is read from.
fn speak(mut stdin: ChildStdin) -> mpsc::Sender<String> {
    let (mouth, mut lines) = mpsc::channel::<String>(WAITING_LINES);
    tokio::spawn(async move {
        while let Some(line) = lines.recv().await {
            if stdin.write_all(line.as_bytes()).await.is_err() || stdin.flush().await.is_err() {
                break;
            }
        }
    });
    mouth
}
