//! A running program that is spoken to, and its three streams.

use std::collections::VecDeque;
use std::io;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::process::{ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::sync::mpsc;

use super::lines::{Line, Lines};
use sandbox::supervise::{Contained, MARK};

/// How many texts may wait for a program that does not read its stdin.
const WAITING: usize = 1024;
/// How many of the last lines of stderr are kept for explaining an end.
const LAST_WORDS: usize = 3;
/// How many lines of stderr are kept that come while an end is waited for.
const MOST_DREGS: usize = 100;
/// How long a program may take to go once its stdin is closed.
const TO_GO: Duration = Duration::from_secs(3);
/// How long it may take when told to go, before it is killed with everything below it.
const TO_STOP: Duration = Duration::from_secs(1);

/// A running program.
pub(super) struct Process {
    child: Contained,
    /// Gone once there is nothing more to say.
    mouth: Option<mpsc::Sender<String>>,
    stdout: Lines<ChildStdout>,
    stderr: Lines<ChildStderr>,
    last_words: VecDeque<String>,
    /// What it wrote to stderr while its end was waited for; the first lines of it.
    dregs: Vec<Line>,
    /// What the supervisor had to say.
    trouble: Option<String>,
    /// What it exited with, once somebody has waited for that.
    exit_code: Option<i32>,
}

/// A line of the program's output.
pub(super) enum Said {
    /// For us.
    Stdout(Line),
    /// For people.
    Stderr(Line),
    /// Nothing more for us.
    End,
}

impl Process {
    /// Starts a command that a sandbox has made.
    ///
    /// # Errors
    /// When it, or its supervisor, cannot be started.
    pub(super) fn start(mut command: Command) -> io::Result<Self> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = Contained::spawn(command)?;
        let missing = || io::Error::other("a stream of the process is missing");
        let stdin = child.take_stdin().ok_or_else(missing)?;
        let stdout = Lines::of(child.take_stdout().ok_or_else(missing)?);
        let stderr = Lines::of(child.take_stderr().ok_or_else(missing)?);
        let mouth = Some(speak(stdin));
        Ok(Self {
            child,
            mouth,
            stdout,
            stderr,
            last_words: VecDeque::new(),
            dregs: Vec::new(),
            trouble: None,
            exit_code: None,
        })
    }

    /// Gives a line that is too long as soon as it is: see [`Lines::hasty`].
    pub(super) fn hasty(mut self) -> Self {
        self.stdout = self.stdout.hasty();
        self.stderr = self.stderr.hasty();
        self
    }

    /// Sends `text`. What a program that is gone or deaf does not hear shows in what it does not say.
    pub(super) fn say(&self, text: String) {
        if let Some(mouth) = &self.mouth {
            let _ = mouth.try_send(text);
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

    /// What it has written to stderr so far and nobody has read yet: the next line of it, if it is there already.
    pub(super) async fn overheard(&mut self) -> Option<Line> {
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
                        if self.dregs.len() < MOST_DREGS {
                            self.dregs.push(line);
                        }
                    }
                }
                _ = self.stdout.next(), if !self.stdout.ended() => {}
            }
        }
        self.child.wait().await
    }

    /// Ends it, and says how it ended in one line, with the last of what it wrote to stderr.
    pub(super) async fn obituary(&mut self) -> String {
        let how = match self.end().await {
            Ok(status) => {
                self.exit_code = status.code();
                described(status)
            }
            Err(error) => error.to_string(),
        };
        let words = self.last_words.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" / ");
        if words.is_empty() { how } else { format!("{how}: {words}") }
    }

    /// What it exited with by itself, once its obituary is written.
    pub(super) fn exit_code(&self) -> Option<i32> {
        self.exit_code
    }

    /// What it wrote to stderr while its end was waited for.
    pub(super) fn take_dregs(&mut self) -> Vec<Line> {
        std::mem::take(&mut self.dregs)
    }

    /// Why it never ran, as its supervisor says.
    pub(super) fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }

    fn remember(&mut self, line: &Line) {
        if line.text.trim().is_empty() {
            return;
        }
        if let Some(trouble) = line.text.strip_prefix(MARK) {
            self.trouble.get_or_insert_with(|| trouble.to_owned());
        }
        if self.last_words.len() == LAST_WORDS {
            self.last_words.pop_front();
        }
        self.last_words.push_back(line.text.chars().take(400).collect());
    }
}

/// How a program ended, in words.
fn described(status: ExitStatus) -> String {
    match status.code() {
        Some(code) if code > 128 => format!("ended by signal {}", code - 128),
        Some(code) => format!("exit code {code}"),
        None => status.to_string(),
    }
}

/// Writes to `stdin` beside everything else: the program may be unable to read before it is read from.
fn speak(mut stdin: ChildStdin) -> mpsc::Sender<String> {
    let (mouth, mut texts) = mpsc::channel::<String>(WAITING);
    tokio::spawn(async move {
        while let Some(text) = texts.recv().await {
            if stdin.write_all(text.as_bytes()).await.is_err() || stdin.flush().await.is_err() {
                break;
            }
        }
    });
    mouth
}
