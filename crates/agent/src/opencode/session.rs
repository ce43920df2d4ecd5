//! A conversation with OpenCode: one process per user message, which continues the session of the previous one.

use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use model::{Ending, Step, UserMessage};
use sandbox::{BoxFuture, Sandbox, supervise};

use super::event::{Interpreter, OpenCodeEvent, SessionInfo, SubAgent};
use super::launch::Launch;
use super::log::LogLine;
use crate::lines::{Line, Notices};
use crate::process::{Output, Process};
use crate::program::Invocation;
use crate::session::Session;
use crate::turn::{Turn, unless_stopped};

/// Time limit for OpenCode to exit after it has answered.
const TO_LEAVE: Duration = Duration::from_secs(30);
/// Time limit for exporting the session of a sub-agent.
const TO_EXPORT: Duration = Duration::from_secs(120);
/// Warning if that session could not be read.
const UNREAD: &str = "the session of an OpenCode sub-agent could not be read: its calls and tokens are missing";
/// Error of a tool that needs ripgrep, if OpenCode neither finds nor can download it.
const NO_RIPGREP: &str = "ripgrep execution failed";
/// Error of such a tool if ripgrep has failed, before its exit code.
const RIPGREP_FAILED: &str = "ripgrep failed with code ";
/// Exit code of ripgrep for a request with a mistake, such as an invalid pattern.
const BAD_REQUEST: &str = "2";
/// Reason for the ending after such an error.
const INSTALL_RIPGREP: &str =
    "OpenCode could not run ripgrep, which its tools for skills and for searches need; install `rg`";
/// Maximum size of a sub-agent's session, in bytes.
const MAX_EXPORT_BYTES: usize = 32 << 20;

/// An open conversation.
pub(super) struct OpenCodeSession {
    launch: Launch,
    sandbox: Arc<dyn Sandbox>,
    info: SessionInfo,
    session_id: Option<String>,
    notices: Notices,
    /// Number of consecutive failed requests.
    failures: u64,
    /// True if a tool failed because OpenCode could not run ripgrep.
    lacks_ripgrep: bool,
}

impl OpenCodeSession {
    /// Creates a conversation without starting a process.
    pub(super) fn new(launch: Launch, sandbox: Arc<dyn Sandbox>, version: Option<String>) -> Self {
        let info = SessionInfo { model: launch.model.clone(), version, auth: launch.invocation.auth.to_owned() };
        Self { launch, sandbox, info, session_id: None, notices: Notices::default(), failures: 0, lacks_ripgrep: false }
    }

    async fn converse(&mut self, text: &str, turn: &mut Turn) -> Ending {
        if turn.turns_left() == 0 {
            return turn.out_of_turns();
        }
        let mut process = match self.start() {
            Ok(process) => process,
            Err(reason) => {
                let ending = Ending::Unreachable { reason };
                turn.excuse(ending.clone());
                return ending;
            }
        };
        process.write(text.to_owned());
        process.close_stdin();
        turn.waiting("model");
        self.failures = 0;
        let mut interpreter = Interpreter::new(self.info.clone(), self.session_id.take());
        let followed = self.follow(&mut process, &mut interpreter, turn).await;
        self.session_id = interpreter.session_id().map(str::to_owned);
        let ended = match followed {
            Ok(ended) => {
                self.visit_sub_agents(&mut interpreter, turn).await;
                Ok(ended)
            }
            Err(ending) => {
                let _ = process.stop().await;
                if !interpreter.take_sub_agents().is_empty() {
                    miss_sub_agent(turn);
                }
                Err(ending)
            }
        };
        let (steps, done) = interpreter.end();
        let mut recorded = Ok(());
        for step in steps {
            recorded = recorded.and(turn.record(step));
        }
        turn.exited(process.exit_code());
        match ended {
            Err(ending) => ending,
            Ok(ended) => match self.ending(done, ended, &mut process).await {
                // Whatever the agent did afterwards, it could not find its skills and files.
                _ if self.lacks_ripgrep => {
                    let ending = Ending::Aborted { reason: INSTALL_RIPGREP.to_owned() };
                    turn.excuse(ending.clone());
                    ending
                }
                // A provider failure takes precedence over a limit that was reached at the same time.
                ending @ (Ending::ProviderFailed { .. } | Ending::Unreachable { .. }) => ending,
                ending => recorded.err().unwrap_or(ending),
            },
        }
    }

    fn start(&self) -> Result<Process, String> {
        let resumed = self.session_id.as_deref().map(|session| ["--session", session]);
        self.launch.invocation.start(self.sandbox.as_ref(), resumed.as_ref().map_or(&[], |more| &more[..]))
    }

    /// Reads the process's output to its end. Returns an ending only if the process was stopped earlier.
    async fn follow(
        &mut self,
        process: &mut Process,
        interpreter: &mut Interpreter,
        turn: &mut Turn,
    ) -> Result<Option<ExitStatus>, Ending> {
        let mut has_answered = false;
        loop {
            let output = tokio::select! {
                biased;
                () = turn.stopping() => return Err(Ending::Cancelled),
                output = process.next_output() => output,
                // It has answered but does not exit on its own.
                () = tokio::time::sleep(TO_LEAVE), if has_answered => {
                    let _ = process.stop().await;
                    return Ok(None);
                }
            };
            match output {
                Output::Stderr(line) => self.hear_stderr(&line, turn)?,
                Output::Stdout(line) => {
                    line.keep("stdout", turn);
                    if line.dropped > 0 {
                        turn.unreadable("OpenCode printed a line that is too long")?;
                    }
                    for event in interpreter.read(&line.text) {
                        has_answered = matches!(event, OpenCodeEvent::Complete { goes_on: false, .. });
                        self.handle_event(event, turn)?;
                    }
                }
                Output::End => {
                    let ended = unless_stopped(turn.stopping(), process.end()).await?;
                    for line in process.take_late_stderr() {
                        self.hear_stderr(&line, turn)?;
                    }
                    return Ok(ended.ok());
                }
            }
        }
    }

    fn handle_event(&mut self, event: OpenCodeEvent, turn: &mut Turn) -> Result<(), Ending> {
        match event {
            OpenCodeEvent::Step(step) => {
                if let Step::ToolResult(result) = &step {
                    self.lacks_ripgrep |= result.is_error && lacks_ripgrep(&result.content);
                }
                turn.record(step)
            }
            OpenCodeEvent::Unreadable(what) => turn.unreadable(&format!("OpenCode printed {what}")),
            OpenCodeEvent::TooDeep => Err(turn.too_deep()),
            OpenCodeEvent::Started => {
                self.failures = 0;
                turn.waiting("model");
                if turn.turns_left() == 0 { Err(turn.out_of_turns()) } else { Ok(()) }
            }
            OpenCodeEvent::Complete { goes_on, tokens } => {
                turn.uses(tokens)?;
                // Otherwise it would send the next request to its model immediately.
                if goes_on && turn.turns_left() == 0 { Err(turn.out_of_turns()) } else { Ok(()) }
            }
        }
    }

    fn hear_stderr(&mut self, line: &Line, turn: &mut Turn) -> Result<(), Ending> {
        line.keep("stderr", turn);
        match LogLine::read(&line.text) {
            LogLine::Failed(error) => {
                self.failures += 1;
                turn.follow(Step::Retry { attempt: self.failures, status: None, error, delay_ms: None })
            }
            LogLine::Plain(text) => self.notices.record("stderr", &text, turn),
            LogLine::Log => Ok(()),
        }
    }

    /// Records the steps of sub-agents. The events do not contain them, so their sessions are exported.
    async fn visit_sub_agents(&self, interpreter: &mut Interpreter, turn: &mut Turn) {
        let mut agents = interpreter.take_sub_agents();
        while let Some(agent) = agents.pop() {
            let steps = match self.export(&agent, turn).await {
                Some(export) => interpreter.read_sub_agent(&agent, &export),
                None => None,
            };
            let Some(steps) = steps else {
                miss_sub_agent(turn);
                continue;
            };
            for step in steps {
                let _ = turn.record(step);
            }
            agents.extend(interpreter.take_sub_agents());
        }
    }

    async fn export(&self, agent: &SubAgent, turn: &Turn) -> Option<String> {
        let export = Invocation { args: vec!["export".to_owned()], ..self.launch.invocation.clone() };
        let command = export.command(self.sandbox.as_ref(), &[&agent.session]);
        let exporting = supervise::run(command, TO_EXPORT, MAX_EXPORT_BYTES);
        let output = unless_stopped(turn.stopping(), exporting).await.ok()?.ok()?;
        output.status.success().then(|| output.stdout.text())
    }

    async fn ending(&self, done: Ending, ended: Option<ExitStatus>, process: &mut Process) -> Ending {
        let has_failed = ended.is_some_and(|status| !status.success());
        match done {
            Ending::Finished if has_failed => {
                Ending::GaveUp { reason: format!("it answered and then failed ({})", process.describe_end().await) }
            }
            Ending::Aborted { reason } => {
                let how = process.describe_end().await;
                match process.start_error() {
                    Some(trouble) => Ending::Unreachable { reason: trouble.to_owned() },
                    None => Ending::Aborted {
                        reason: format!("OpenCode ended without finishing its answer: {reason} ({how})"),
                    },
                }
            }
            ending => ending,
        }
    }
}

/// Returns `true` if a tool failed with `error` because OpenCode could not run ripgrep.
fn lacks_ripgrep(error: &str) -> bool {
    let code = error.split_once(RIPGREP_FAILED).and_then(|(_, rest)| rest.split_whitespace().next());
    error.contains(NO_RIPGREP) || code.is_some_and(|code| code != BAD_REQUEST)
}

/// Records that the calls of a sub-agent are not known.
fn miss_sub_agent(turn: &mut Turn) {
    turn.warn(UNREAD);
    turn.misses_calls();
}

impl Session for OpenCodeSession {
    fn send<'a>(&'a mut self, message: &'a UserMessage, turn: &'a mut Turn) -> BoxFuture<'a, Ending> {
        Box::pin(async move { self.converse(&message.text, turn).await })
    }
}
