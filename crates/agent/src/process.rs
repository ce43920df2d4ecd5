//! A running program with its three streams.

use std::collections::VecDeque;
use std::io;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::process::{ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::sync::mpsc;

use super::lines::{Line, Lines};
use sandbox::supervise::{Contained, MESSAGE_PREFIX};

/// Maximum number of queued texts for a program that does not read its stdin.
const WAITING: usize = 1024;
/// Number of last stderr lines that are kept to explain an ending.
const LAST_LINES: usize = 3;
/// Maximum number of stderr lines that are kept while waiting for the end.
const MAX_LATE_LINES: usize = 100;
/// Time limit for a program to exit after its stdin is closed.
const TO_GO: Duration = Duration::from_secs(3);
/// Time between asking a program to end and killing it with all its descendants.
const TO_STOP: Duration = Duration::from_secs(1);

/// A running program.
pub(super) struct Process {
    child: Contained,
    /// Sender to its stdin; `None` once stdin must be closed.
    stdin: Option<mpsc::Sender<String>>,
    stdout: Lines<ChildStdout>,
    stderr: Lines<ChildStderr>,
    last_lines: VecDeque<String>,
    /// Last stderr line that names an error. What runs a program may print more lines after it.
    error_line: Option<String>,
    /// First stderr lines that were written while waiting for the end.
    late_stderr: Vec<Line>,
    /// Error message from the supervisor.
    start_error: Option<String>,
    /// Exit code, once the process has been waited for.
    exit_code: Option<i32>,
    /// True if it was still running when it was stopped, so that its exit code is not its own.
    was_stopped: bool,
}

/// Output of the program.
pub(super) enum Output {
    /// A line on stdout, for the harness.
    Stdout(Line),
    /// A line on stderr, for users.
    Stderr(Line),
    /// The end of stdout.
    End,
}

impl Process {
    /// Starts a command created by a sandbox.
    ///
    /// # Errors
    /// Returns an error if the command or its supervisor cannot be started.
    pub(super) fn start(mut command: Command) -> io::Result<Self> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = Contained::spawn(command)?;
        let missing = || io::Error::other("a stream of the process is missing");
        let stdin = child.take_stdin().ok_or_else(missing)?;
        let stdout = Lines::new(child.take_stdout().ok_or_else(missing)?);
        let stderr = Lines::new(child.take_stderr().ok_or_else(missing)?);
        let stdin = Some(writer(stdin));
        Ok(Self {
            child,
            stdin,
            stdout,
            stderr,
            last_lines: VecDeque::new(),
            error_line: None,
            late_stderr: Vec::new(),
            start_error: None,
            exit_code: None,
            was_stopped: false,
        })
    }

    /// Returns lines that are too long immediately: see [`Lines::without_waiting`].
    pub(super) fn without_waiting(mut self) -> Self {
        self.stdout = self.stdout.without_waiting();
        self.stderr = self.stderr.without_waiting();
        self
    }

    /// Sends `text`. An error is ignored: if a program has ended or does not read, its output will be missing.
    pub(super) fn write(&self, text: String) {
        if let Some(stdin) = &self.stdin {
            let _ = stdin.try_send(text);
        }
    }

    /// Closes stdin once all texts are written.
    pub(super) fn close_stdin(&mut self) {
        self.stdin = None;
    }

    /// Returns the next output. The future may be dropped before it completes.
    pub(super) async fn next_output(&mut self) -> Output {
        loop {
            tokio::select! {
                line = self.stderr.next(), if !self.stderr.ended() => {
                    if let Some(line) = line {
                        self.remember(&line);
                        return Output::Stderr(line);
                    }
                }
                line = self.stdout.next(), if !self.stdout.ended() => {
                    return line.map_or(Output::End, Output::Stdout);
                }
                else => return Output::End,
            }
        }
    }

    /// Returns the beginning of a line on stdout whose end has not arrived.
    pub(super) fn unfinished_line(&self) -> Option<String> {
        self.stdout.unfinished()
    }

    /// Returns the next stderr line that was written but not read yet, without waiting.
    pub(super) async fn ready_stderr(&mut self) -> Option<Line> {
        if self.stderr.ended() {
            return None;
        }
        let line = tokio::select! {
            biased;
            line = self.stderr.next() => line,
            () = std::future::ready(()) => None,
        }?;
        self.remember(&line);
        Some(line)
    }

    /// Returns `true` if it has ended.
    pub(super) async fn is_gone(&mut self) -> bool {
        tokio::time::timeout(Duration::ZERO, self.child.wait()).await.is_ok()
    }

    /// Waits for its end, and stops it if it does not exit on its own.
    pub(super) async fn end(&mut self) -> io::Result<ExitStatus> {
        self.close_stdin();
        match tokio::time::timeout(TO_GO, self.drain()).await {
            Ok(ended) => {
                self.exit_code = ended.as_ref().ok().and_then(ExitStatus::code);
                ended
            }
            Err(_) => self.stop().await,
        }
    }

    /// Stops it and all its descendants.
    pub(super) async fn stop(&mut self) -> io::Result<ExitStatus> {
        self.close_stdin();
        self.was_stopped |= !self.is_gone().await;
        self.child.stop(TO_STOP).await
    }

    /// Reads the remaining output, so that the program can end, and waits for its end.
    async fn drain(&mut self) -> io::Result<ExitStatus> {
        while !(self.stdout.ended() && self.stderr.ended()) {
            tokio::select! {
                line = self.stderr.next(), if !self.stderr.ended() => {
                    if let Some(line) = line {
                        self.remember(&line);
                        if self.late_stderr.len() < MAX_LATE_LINES {
                            self.late_stderr.push(line);
                        }
                    }
                }
                _ = self.stdout.next(), if !self.stdout.ended() => {}
            }
        }
        self.child.wait().await
    }

    /// Ends the program and describes its ending in one line, with its last stderr lines.
    pub(super) async fn describe_end(&mut self) -> String {
        let ended = self.end().await;
        self.description(&ended)
    }

    /// Waits until the program ends on its own, and describes its ending. The future may be dropped before it
    /// completes.
    pub(super) async fn own_end(&mut self) -> String {
        let ended = self.drain().await;
        self.description(&ended)
    }

    fn description(&self, ended: &io::Result<ExitStatus>) -> String {
        let how = match ended {
            Ok(status) => describe(*status),
            Err(error) => error.to_string(),
        };
        let is_fine = matches!(ended, Ok(status) if status.success());
        let error = self.error_line.iter().filter(|line| !is_fine && !self.last_lines.contains(line));
        let words = error.chain(&self.last_lines).map(|line| line.trim()).collect::<Vec<_>>().join(" / ");
        if words.is_empty() { how } else { format!("{how}: {words}") }
    }

    /// Returns its exit code, once [`end`](Self::end) has returned. `None` if it was stopped.
    pub(super) fn exit_code(&self) -> Option<i32> {
        self.exit_code.filter(|_| !self.was_stopped)
    }

    /// Takes the stderr lines that were written while waiting for the end.
    pub(super) fn take_late_stderr(&mut self) -> Vec<Line> {
        std::mem::take(&mut self.late_stderr)
    }

    /// Returns the supervisor's message if the program never ran.
    pub(super) fn start_error(&self) -> Option<&str> {
        self.start_error.as_deref()
    }

    fn remember(&mut self, line: &Line) {
        if line.text.trim().is_empty() {
            return;
        }
        if let Some(error) = line.text.strip_prefix(MESSAGE_PREFIX) {
            self.start_error.get_or_insert_with(|| error.to_owned());
        }
        if self.last_lines.len() == LAST_LINES {
            self.last_lines.pop_front();
        }
        let text = model::text::shortened(&line.text, 400);
        if names_error(&text) {
            self.error_line = Some(text.clone());
        }
        self.last_lines.push_back(text);
    }
}

/// Returns `true` for a line such as `Error: no file`, `TypeError [CODE]: no text` or `error: no rule`.
fn names_error(line: &str) -> bool {
    const ENDINGS: [&str; 3] = ["Error", "error", "Exception"];
    let kind = line.split_once(": ").and_then(|(kind, _)| kind.split(' ').next());
    kind.is_some_and(|kind| ENDINGS.iter().any(|ending| kind.ends_with(ending)))
}

/// Describes how a program ended.
fn describe(status: ExitStatus) -> String {
    match status.code() {
        Some(code) if code > 128 => format!("ended by signal {}", code - 128),
        Some(code) => format!("exit code {code}"),
        None => status.to_string(),
    }
}

/// Writes to `stdin` in a separate task, because the program may not read its input before its output is read.
fn writer(mut stdin: ChildStdin) -> mpsc::Sender<String> {
    let (sender, mut texts) = mpsc::channel::<String>(WAITING);
    tokio::spawn(async move {
        while let Some(text) = texts.recv().await {
            if stdin.write_all(text.as_bytes()).await.is_err() || stdin.flush().await.is_err() {
                break;
            }
        }
    });
    sender
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(program: &str, args: &[&str]) -> Process {
        let mut command = Command::new(program);
        command.args(args);
        Process::start(command).unwrap()
    }

    #[tokio::test]
    async fn the_line_that_names_the_error_is_shown_with_the_last_ones() {
        let text = "loader:1210\n  throw err;\n\nError: Cannot find module '/bot.mjs'\n    at resolve (loader:1)\n  \
                    code: 'MODULE_NOT_FOUND',\n  requireStack: []\n}\n\nNode.js v20.20.2";
        let mut failed = process("sh", &["-c", "printf '%s\\n' \"$0\" >&2; exit 1", text]);
        let how = "exit code 1: Error: Cannot find module '/bot.mjs' / requireStack: [] / } / Node.js v20.20.2";
        assert_eq!(failed.describe_end().await, how);
        let mut fine = process("sh", &["-c", "printf '%s\\n' 'Error: tried again' a b c >&2"]);
        assert_eq!(fine.describe_end().await, "exit code 0: a / b / c");
    }

    #[tokio::test]
    async fn only_a_process_that_ends_on_its_own_has_an_exit_code() {
        let mut own = process("sh", &["-c", "exit 3"]);
        own.end().await.unwrap();
        own.stop().await.unwrap();
        assert_eq!(own.exit_code(), Some(3));
        let mut stopped = process("tail", &["-f", "/dev/null"]);
        stopped.stop().await.unwrap();
        stopped.end().await.unwrap();
        assert_eq!(stopped.exit_code(), None);
    }
}
