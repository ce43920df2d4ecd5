//! Connections to the server under test. Each one to a program starts it again.

use std::collections::VecDeque;
use std::path::Path;
use std::process::Stdio as Pipe;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use mcp::{Connector, Http, Stdio, Transport};
use sandbox::supervise::{Contained, MESSAGE_PREFIX};
use sandbox::{BoxFuture, Breakage};
use tokio::process::ChildStderr;
use tokio::task::JoinHandle;

use super::config::{self, Config};
use crate::SessionContext;
use crate::lines::Lines;
use crate::subprocess::Launch;

/// Time between asking a program to end and killing it with all its descendants.
const TO_STOP: Duration = Duration::from_secs(1);
/// Time limit for a program to exit after its stdin is closed.
const TO_GO: Duration = Duration::from_secs(3);
/// Number of last stderr lines that are kept.
const LAST_LINES: usize = 20;
/// Maximum length of such a line, in characters.
const MAX_LINE: usize = 400;

/// Opens connections to one server.
pub(super) struct Connections {
    place: Place,
    running: Option<Running>,
    stderr: Arc<Mutex<VecDeque<String>>>,
}

enum Place {
    Program(Launch),
    Address { client: reqwest::Client, url: String, headers: Vec<(String, String)> },
}

struct Running {
    child: Contained,
    reader: Option<JoinHandle<()>>,
}

impl Connections {
    /// Finds the program of the server, or prepares a client for its address.
    pub(super) fn prepare(config: Config, context: &SessionContext) -> Result<Self, Breakage> {
        let place = match config.place {
            config::Place::Program(program) => {
                let here = Path::new(".").canonicalize().unwrap_or_default();
                let project = context.config.as_ref().map_or(here.as_path(), |config| config.directory.as_path());
                let launch = Launch::prepare(&program, project, context.sandbox()?, &context.session_id("mcp"))?;
                Place::Program(launch)
            }
            config::Place::Address { url, headers } => {
                let is_secure = url.to_ascii_lowercase().starts_with("https:");
                let client = context.state.clients.client(is_secure, &context.host);
                let client =
                    client.map_err(|error| Breakage::environment(format!("cannot create an HTTP client: {error}")))?;
                Place::Address { client, url, headers }
            }
        };
        Ok(Self { place, running: None, stderr: Arc::default() })
    }

    /// Returns `true` if the server is a program that trialrun starts.
    pub(super) fn is_program(&self) -> bool {
        matches!(self.place, Place::Program(_))
    }

    /// Returns the reason why the program could not run: that of its supervisor, or that a file does not exist.
    pub(super) fn environment_fault(&self) -> Option<String> {
        let lines = self.stderr.lock().unwrap_or_else(PoisonError::into_inner);
        let refused = lines.iter().find_map(|line| line.strip_prefix(MESSAGE_PREFIX)).map(str::to_owned);
        let Place::Program(launch) = &self.place else { return refused };
        let missing = launch.missing_script();
        refused.or_else(|| missing.map(|script| format!("there is no file named `{script}`, which the command names")))
    }

    /// Describes how the program ended, with its last stderr lines; `None` if it is running or is not a program.
    pub(super) async fn describe_end(&mut self) -> Option<String> {
        let running = self.running.as_mut()?;
        let status = tokio::time::timeout(TO_STOP, running.child.wait()).await.ok()?;
        if let Some(reader) = running.reader.take() {
            let _ = tokio::time::timeout(TO_STOP, reader).await;
        }
        let how = match status {
            Ok(status) => match status.code() {
                Some(code) if code > 128 => format!("signal {}", code - 128),
                Some(code) => format!("exit code {code}"),
                None => status.to_string(),
            },
            Err(error) => error.to_string(),
        };
        let lines = self.stderr.lock().unwrap_or_else(PoisonError::into_inner);
        let last: Vec<&str> = lines.iter().rev().take(3).rev().map(|line| line.trim()).collect();
        Some(if last.is_empty() { how } else { format!("{how}: {}", last.join(" / ")) })
    }

    /// Takes the last stderr lines.
    pub(super) fn take_stderr(&self) -> Vec<String> {
        self.stderr.lock().unwrap_or_else(PoisonError::into_inner).drain(..).collect()
    }

    /// Stops the program and all its descendants.
    pub(super) async fn stop(&mut self) {
        if let Some(mut running) = self.running.take() {
            let _ = running.child.stop(TO_STOP).await;
        }
    }

    async fn open(&mut self) -> Result<Transport, String> {
        self.stop().await;
        let launch = match &self.place {
            Place::Program(launch) => launch,
            Place::Address { client, url, headers } => {
                return Http::new(client.clone(), url, headers).map(Transport::from);
            }
        };
        // What an earlier start wrote does not explain the end of this one.
        self.take_stderr();
        let mut command = launch.command(None);
        command.stdin(Pipe::piped()).stdout(Pipe::piped()).stderr(Pipe::piped());
        let failed = |error: std::io::Error| format!("cannot start {}: {error}", launch.program());
        let mut child = Contained::spawn(command).map_err(failed)?;
        let streams = child.take_stdin().zip(child.take_stdout());
        let Some((stdin, stdout)) = streams else { return Err("a stream of the process is missing".to_owned()) };
        let reader = child.take_stderr().map(|stderr| tokio::spawn(keep(stderr, Arc::clone(&self.stderr))));
        self.running = Some(Running { child, reader });
        Ok(Stdio::new(stdin, stdout).into())
    }
}

/// Keeps the last lines.
async fn keep(stderr: ChildStderr, kept: Arc<Mutex<VecDeque<String>>>) {
    let mut lines = Lines::new(stderr).without_waiting();
    while let Some(line) = lines.next().await {
        if line.text.trim().is_empty() {
            continue;
        }
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        // The supervisor's message is not pushed out by what follows.
        if kept.len() >= LAST_LINES && !kept.front().is_some_and(|line| line.starts_with(MESSAGE_PREFIX)) {
            kept.pop_front();
        } else if kept.len() >= LAST_LINES {
            kept.remove(1);
        }
        kept.push_back(model::text::shortened(&line.text, MAX_LINE));
    }
}

impl Connector for Connections {
    fn connect(&mut self) -> BoxFuture<'_, Result<Transport, String>> {
        Box::pin(self.open())
    }

    fn ends(&mut self) -> BoxFuture<'_, Option<bool>> {
        Box::pin(async {
            let running = self.running.as_mut()?;
            Some(tokio::time::timeout(TO_GO, running.child.wait()).await.is_ok())
        })
    }
}
