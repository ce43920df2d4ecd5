//! A conversation with the CLI: one process for all user messages. If the process has ended, another one resumes the
//! session.

use std::sync::Arc;
use std::time::Duration;

use model::{Effect, Ending, Question, Step, ToolCall, UserMessage};
use sandbox::{BoxFuture, Breakage, Sandbox};
use serde_json::Value;

use super::control::{self, Request, RequestKind};
use super::event::{CliEvent, Done, Interpreter};
use super::launch::{Launch, SCOPE_HOOK, TURNS_HOOK};
use super::tool_allow_list::ToolAllowList;
use super::transcripts::Transcripts;
use crate::SessionContext;
use crate::json::text;
use crate::lines::{Line, Notices};
use crate::process::{Output, Process};
use crate::question::questions;
use crate::resolve::Resolver;
use crate::session::Session;
use crate::turn::{INTERRUPTED, Turn, unless_stopped};

/// Time limit for an interrupted CLI to report its usage.
const TO_SETTLE: Duration = Duration::from_secs(2);
/// Notice that the CLI prints for every scripted model, because it does not know the model's name.
const UNKNOWN_MODEL: &str = "[claude-code:unrecognized_model]";

/// An open conversation.
pub(super) struct ClaudeCodeSession {
    launch: Launch,
    sandbox: Arc<dyn Sandbox>,
    allow_list: Option<ToolAllowList>,
    resolver: Resolver,
    cli: Option<Cli>,
    session_id: Option<String>,
    notices: Notices,
    /// Transcripts, removed after the process has ended.
    transcripts: Option<Transcripts>,
    /// Exit code of the process when the conversation was closed.
    exit_code: Option<i32>,
}

/// A running CLI.
struct Cli {
    process: Process,
    interpreter: Interpreter,
}

impl Cli {
    /// Starts the CLI and opens the control protocol. `resume` is the id of a session to continue, or its transcript.
    fn start(launch: &Launch, sandbox: &dyn Sandbox, resume: Option<&str>) -> Result<Self, String> {
        let more = resume.map(|session| ["--resume", session]);
        let process = launch.invocation.start(sandbox, more.as_ref().map_or(&[], |more| &more[..]))?;
        let cli = Self { process, interpreter: Interpreter::new(launch.invocation.auth, launch.plugin.as_deref()) };
        cli.say(&launch.initialize);
        Ok(cli)
    }

    /// Sends a line.
    fn say(&self, message: &Value) {
        self.process.write(format!("{message}\n"));
    }
}

impl ClaudeCodeSession {
    /// Starts the CLI.
    pub(super) fn open(launch: Launch, context: &SessionContext) -> Result<Self, Breakage> {
        let sandbox = context.sandbox()?;
        let cli = Cli::start(&launch, sandbox.as_ref(), launch.history.as_deref()).map_err(Breakage::environment)?;
        let transcripts = launch.folder.as_deref().map(|folder| Transcripts::new(folder, sandbox.work()));
        let resolver = Resolver { work: Some(sandbox.work().to_owned()), home: Some(sandbox.home().to_owned()) };
        Ok(Self {
            launch,
            exit_code: None,
            sandbox,
            allow_list: super::launch::allow_list(context),
            resolver,
            cli: Some(cli),
            session_id: None,
            notices: Notices::default(),
            transcripts,
        })
    }

    async fn converse(&mut self, message: &str, turn: &mut Turn) -> Result<Ending, Ending> {
        if turn.turns_left() == 0 {
            return Err(turn.out_of_turns());
        }
        let mut cli = self.running(turn).await?;
        let (mut ending, has_output) = self.speak(&mut cli, message, turn).await;
        if !has_output && self.session_id.is_some() {
            // The process was about to end when the message was sent.
            self.cli = Some(cli);
            cli = self.running(turn).await?;
            (ending, _) = self.speak(&mut cli, message, turn).await;
        }
        self.cli = Some(cli);
        Ok(ending)
    }

    /// Sends a message. Returns its ending, and `false` if the CLI ended without any output.
    async fn speak(&mut self, cli: &mut Cli, message: &str, turn: &mut Turn) -> (Ending, bool) {
        cli.interpreter.asked(message);
        cli.say(&control::user(message));
        turn.waiting("model");
        let mut has_output = false;
        let ending = match self.follow(cli, turn, &mut has_output).await {
            Ok(ending) => ending,
            Err(ending) => {
                self.interrupt(cli, turn).await;
                has_output = true;
                ending
            }
        };
        if let Some(session) = cli.interpreter.session_id() {
            self.session_id = Some(session.to_owned());
            if let Some(transcripts) = &mut self.transcripts {
                transcripts.of_session(session);
            }
        }
        (ending, has_output)
    }

    /// Returns the running CLI, or a new one that resumes its session.
    async fn running(&mut self, turn: &mut Turn) -> Result<Cli, Ending> {
        let lost = match self.cli.take() {
            Some(mut cli) => {
                if !cli.process.is_gone().await {
                    return Ok(cli);
                }
                cli.process.describe_end().await
            }
            None => "it was ended".to_owned(),
        };
        let started = match &self.session_id {
            Some(session) => Cli::start(&self.launch, self.sandbox.as_ref(), Some(session)),
            None => Err("there is no session to resume".to_owned()),
        };
        started.map_err(|error| {
            let ending = Ending::Aborted { reason: format!("Claude Code had ended ({lost}): {error}") };
            turn.excuse(ending.clone());
            ending
        })
    }

    /// Reads the CLI's output until it has processed the message.
    async fn follow(&mut self, cli: &mut Cli, turn: &mut Turn, has_output: &mut bool) -> Result<Ending, Ending> {
        loop {
            match unless_stopped(turn.stopping(), cli.process.next_output()).await? {
                Output::Stderr(line) => self.notice(&line, turn),
                Output::Stdout(line) => {
                    *has_output = true;
                    if let Some(ending) = self.handle_line(cli, &line, turn)? {
                        return Ok(ending);
                    }
                }
                Output::End => {
                    let how = unless_stopped(turn.stopping(), cli.process.describe_end()).await;
                    let Ok(how) = how else {
                        *has_output = true;
                        let _ = cli.process.stop().await;
                        return Ok(Ending::Cancelled);
                    };
                    turn.exited(cli.process.exit_code());
                    let reason = format!("Claude Code ended without finishing its answer ({how})");
                    return Ok(Ending::Aborted { reason });
                }
            }
        }
    }

    /// Reads a line of stdout. Returns the ending if the CLI has processed the message.
    fn handle_line(&self, cli: &mut Cli, line: &Line, turn: &mut Turn) -> Result<Option<Ending>, Ending> {
        record_line("stdout", line, turn);
        if line.dropped > 0 {
            turn.unreadable("Claude Code printed a line that is too long")?;
        }
        let mut flow = Ok(());
        for event in cli.interpreter.read(&line.text) {
            match event {
                CliEvent::Step(step) => flow = flow.and(turn.follow(step)),
                CliEvent::Request(request) => {
                    let answer = self.answer(cli, &request, turn);
                    cli.say(&answer);
                }
                CliEvent::Refused { request, reason } if request == "initialize" => {
                    return Err(Ending::Aborted { reason: format!("Claude Code refused to be set up: {reason}") });
                }
                CliEvent::Refused { .. } => {}
                // The calls in this response are still processed; the hook after them ends the agent's turn.
                CliEvent::Used(tokens) => {
                    let _ = turn.uses(tokens);
                }
                CliEvent::Warning(warning) => turn.warn(warning),
                CliEvent::Unreadable(what) => {
                    flow = flow.and(turn.unreadable(&format!("Claude Code printed {what}")));
                }
                CliEvent::TooDeep => flow = flow.and(Err(turn.too_deep())),
                CliEvent::Done(done) => return Ok(Some(ending(done, flow.err(), turn))),
            }
        }
        flow.map(|()| None)
    }

    fn answer(&self, cli: &mut Cli, request: &Request, turn: &mut Turn) -> Value {
        match &request.kind {
            RequestKind::Tool { name, input, call_id } if model::tool::effect(name) == Effect::Ask => {
                let answers = questions(input)
                    .into_iter()
                    .map(|asked| {
                        let question = asked.question.clone();
                        (question, turn.ask(Question { call_id: call_id.clone(), ..asked }))
                    })
                    .collect();
                request.allow(&control::answered(input.clone(), answers))
            }
            RequestKind::Tool { name, input, call_id } => {
                let id = call_id.clone().unwrap_or_default();
                let message = turn.deny(&ToolCall::new(&id, name, input.clone(), ""));
                cli.interpreter.refused(&id);
                request.deny(&message)
            }
            RequestKind::Hook { callback, input } if callback == SCOPE_HOOK => {
                let text = |key: &str| text(input, key).unwrap_or_default();
                let call = input.get("tool_input").unwrap_or(&Value::Null);
                let objection = self
                    .allow_list
                    .as_ref()
                    .and_then(|allow_list| allow_list.objection(text("tool_name"), call, &self.resolver));
                let Some(message) = objection else { return request.pass() };
                let id = text("tool_use_id");
                cli.interpreter.refused(id);
                let _ = turn.record(Step::PermissionDenied {
                    tool: text("tool_name").to_owned(),
                    call_id: (!id.is_empty()).then(|| id.to_owned()),
                    message: message.clone(),
                });
                request.forbid(&message)
            }
            RequestKind::Hook { callback, input } if callback == TURNS_HOOK => {
                // A sub-agent has its own turns.
                if input.get("agent_id").is_some_and(|id| !id.is_null()) {
                    return request.pass();
                }
                if turn.is_over() {
                    return request.end_turn("the budget of this conversation is used up");
                }
                if turn.turns_left() > 0 {
                    return request.pass();
                }
                let _ = turn.out_of_turns();
                request.end_turn("the turns of this conversation are used up")
            }
            RequestKind::Hook { .. } => request.pass(),
            RequestKind::Unknown { subtype } => request.fail(&format!("`{subtype}` is not supported here")),
        }
    }

    /// Interrupts the CLI and waits for it to report its usage.
    async fn interrupt(&mut self, cli: &mut Cli, turn: &mut Turn) {
        cli.say(&control::interrupt());
        cli.process.close_stdin();
        let settle = async {
            loop {
                match cli.process.next_output().await {
                    Output::Stdout(line) => {
                        record_line("stdout", &line, turn);
                        for event in cli.interpreter.read(&line.text) {
                            match event {
                                CliEvent::Step(step @ (Step::ToolResult(_) | Step::Finished { .. })) => {
                                    let _ = turn.record(step);
                                }
                                CliEvent::Done(_) => return,
                                _ => {}
                            }
                        }
                    }
                    Output::Stderr(line) => record_line("stderr", &line, turn),
                    Output::End => return,
                }
            }
        };
        let _ = tokio::time::timeout(TO_SETTLE, settle).await;
        let _ = cli.process.stop().await;
    }

    fn notice(&mut self, line: &Line, turn: &mut Turn) {
        record_line("stderr", line, turn);
        let is_scripted = matches!(self.launch.invocation.auth, "scripted");
        if !(is_scripted && line.text.starts_with(UNKNOWN_MODEL)) {
            let _ = self.notices.record("stderr", &line.text, turn);
        }
    }
}

impl Session for ClaudeCodeSession {
    fn send<'a>(&'a mut self, message: &'a UserMessage, turn: &'a mut Turn) -> BoxFuture<'a, Ending> {
        Box::pin(async move { self.converse(&message.text, turn).await.unwrap_or_else(|ending| ending) })
    }

    fn close<'a>(&'a mut self) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            if let Some(mut cli) = self.cli.take() {
                let _ = cli.process.end().await;
                self.exit_code = cli.process.exit_code();
            }
        })
    }

    fn exit_code(&self) -> Option<i32> {
        self.exit_code
    }
}

/// Keeps a line unchanged, except for responses in the control protocol, which contain data about the user's account,
/// and for partial model responses, which are also reported as a whole.
fn record_line(stream: &str, line: &Line, turn: &mut Turn) {
    if line.dropped > 0 || !line.text.contains("\"control_response\"") && !line.text.contains("\"stream_event\"") {
        line.keep(stream, turn);
    }
}

/// Returns the ending. A provider failure takes precedence over a limit that was reached at the same time.
fn ending(done: Done, stop: Option<Ending>, turn: &mut Turn) -> Ending {
    match done {
        Done::ProviderFailed(reason) => Ending::ProviderFailed { reason },
        Done::OutOfTurns if turn.has_turn_limit() => turn.out_of_turns(),
        done => stop.unwrap_or_else(|| match done {
            Done::GaveUp(reason) => Ending::GaveUp { reason },
            Done::Interrupted(reason) => Ending::Aborted { reason: format!("{INTERRUPTED}{reason}") },
            Done::Broken(reason) => Ending::Aborted { reason: format!("Claude Code ended with an error: {reason}") },
            // This is not one of trialrun's limits, so the agent has not exceeded one.
            Done::OutOfMoney => Ending::Aborted {
                reason: "Claude Code reached the cost limit in its own settings (`error_max_budget_usd`)".to_owned(),
            },
            Done::OutOfTurns => Ending::Aborted {
                reason: "Claude Code reached the turn limit in its own settings (`error_max_turns`)".to_owned(),
            },
            Done::Answered | Done::ProviderFailed(_) => Ending::Finished,
        }),
    }
}
