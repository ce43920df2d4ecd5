//! A conversation with the CLI: one process for all user messages. If the process has ended, another one resumes the
//! session.

use std::sync::Arc;
use std::time::Duration;

use model::{Effect, Ending, Step, ToolCall, UserMessage};
use sandbox::{BoxFuture, Breakage, Sandbox};
use serde_json::Value;

use super::closed_tools::ClosedTools;
use super::control::{self, Ask, Request};
use super::event::{Done, Heard};
use super::launch::{Launch, SCOPE_HOOK, TURNS_HOOK};
use super::process::{Process, Said};
use super::sign_in::SignIn;
use super::transcripts::Transcripts;
use crate::Setup;
use crate::lines::Line;
use crate::resolve::Resolver;
use crate::session::{Reply, Session};
use crate::turn::{Decision, Flow, Turn, WAITING_ON_PROVIDER};

/// Timeout for an interrupted CLI to report its usage.
const TO_SETTLE: Duration = Duration::from_secs(2);
/// Maximum number of stderr lines that are recorded as notices; further lines are only kept.
const MOST_NOTICES: usize = 100;
/// Notice that the CLI prints for every scripted model, because it does not know the model's name.
const UNKNOWN_MODEL: &str = "[claude-code:unrecognized_model]";

/// An open conversation.
pub(super) struct Conversation {
    launch: Launch,
    sandbox: Arc<dyn Sandbox>,
    closed: Option<ClosedTools>,
    resolver: Resolver,
    process: Option<Process>,
    session_id: Option<String>,
    notices: usize,
    /// Transcripts, removed after the process has ended.
    transcripts: Option<Transcripts>,
    /// Exit code of the process when the conversation was closed.
    exit_code: Option<i32>,
}

/// Effect of a line on the conversation.
enum LineEffect {
    /// The agent continues.
    On,
    /// The agent must be stopped, with this ending.
    Stop(Ending),
    /// The agent has processed the message.
    Done(Ending),
}

/// Result of sending a message to the CLI.
enum Spoken {
    /// The CLI produced output.
    Heard(Ending),
    /// The CLI ended without any output.
    NotHeard(Ending),
}

impl Conversation {
    /// Starts the CLI.
    ///
    /// # Errors
    /// Returns an error if it cannot be started.
    pub(super) fn open(launch: Launch, sandbox: Arc<dyn Sandbox>, setup: &Setup) -> Result<Self, Breakage> {
        let process = Process::start(&launch, sandbox.as_ref(), None)
            .map_err(|error| Breakage::environment(format!("cannot start {}: {error}", launch.program.display())))?;
        let transcripts = launch.folder.as_deref().map(|folder| Transcripts::new(folder, sandbox.work()));
        let resolver = Resolver { work: Some(sandbox.work().to_owned()), home: Some(sandbox.home().to_owned()) };
        Ok(Self {
            launch,
            exit_code: None,
            sandbox,
            closed: setup.closed_tools.as_deref().map(ClosedTools::read),
            resolver,
            process: Some(process),
            session_id: None,
            notices: 0,
            transcripts,
        })
    }

    async fn converse(&mut self, text: &str, turn: &mut Turn) -> Ending {
        if turn.turns_left() == 0 {
            return turn.out_of_turns();
        }
        let mut process = match self.process().await {
            Ok(process) => process,
            Err(ending) => return ending,
        };
        let mut ending = self.speak(&mut process, text, turn).await;
        if matches!(ending, Spoken::NotHeard(_)) && self.session_id.is_some() {
            // The process was about to end when the message was sent.
            self.process = Some(process);
            process = match self.process().await {
                Ok(process) => process,
                Err(ending) => return ending,
            };
            ending = self.speak(&mut process, text, turn).await;
        }
        self.process = Some(process);
        match ending {
            Spoken::Heard(ending) | Spoken::NotHeard(ending) => ending,
        }
    }

    async fn speak(&mut self, process: &mut Process, text: &str, turn: &mut Turn) -> Spoken {
        process.interpreter.asked(text);
        process.say(&control::user(text));
        turn.waiting("model");
        let spoken = self.follow(process, turn).await;
        if let Some(session) = process.interpreter.session_id() {
            self.session_id = Some(session.to_owned());
            if let Some(transcripts) = &mut self.transcripts {
                transcripts.of_session(session);
            }
        }
        spoken
    }

    /// Returns the running process, or a new one that resumes its session.
    async fn process(&mut self) -> Result<Process, Ending> {
        let lost = match self.process.take() {
            Some(mut process) => {
                if !process.is_gone().await {
                    return Ok(process);
                }
                process.obituary().await
            }
            None => "it was ended".to_owned(),
        };
        let Some(session) = &self.session_id else {
            return Err(Ending::Aborted { because: format!("Claude Code ended before it was spoken to ({lost})") });
        };
        Process::start(&self.launch, self.sandbox.as_ref(), Some(session)).map_err(|error| Ending::Aborted {
            because: format!("Claude Code was gone ({lost}) and cannot be started again: {error}"),
        })
    }

    /// Reads the CLI's output until it has processed the message.
    async fn follow(&mut self, process: &mut Process, turn: &mut Turn) -> Spoken {
        let mut stopping = Box::pin(turn.stopping());
        let mut heard = false;
        loop {
            let said = tokio::select! {
                biased;
                () = &mut stopping => {
                    self.interrupt(process, turn).await;
                    return Spoken::Heard(Ending::Cancelled);
                }
                said = process.listen() => said,
            };
            match said {
                Said::Stderr(line) => self.notice(&line, turn),
                Said::Stdout(line) => {
                    heard = true;
                    match self.hear(process, &line, turn) {
                        LineEffect::On => {}
                        LineEffect::Done(ending) => return Spoken::Heard(ending),
                        LineEffect::Stop(ending) => {
                            self.interrupt(process, turn).await;
                            return Spoken::Heard(ending);
                        }
                    }
                }
                Said::End => {
                    let how = tokio::select! {
                        how = process.obituary() => how,
                        () = &mut stopping => {
                            let _ = process.stop().await;
                            return Spoken::Heard(Ending::Cancelled);
                        }
                    };
                    turn.exited(process.exit_code());
                    let ending =
                        Ending::Aborted { because: format!("Claude Code ended without finishing its answer ({how})") };
                    return if heard { Spoken::Heard(ending) } else { Spoken::NotHeard(ending) };
                }
            }
        }
    }

    fn hear(&self, process: &mut Process, line: &Line, turn: &mut Turn) -> LineEffect {
        keep("stdout", line, turn);
        if line.dropped > 0
            && let Flow::Stop(ending) = turn.unreadable("Claude Code printed a line that is too long")
        {
            return LineEffect::Stop(ending);
        }
        let mut stop = None;
        for heard in process.interpreter.read(&line.text) {
            match heard {
                Heard::Step(step) => {
                    match &step {
                        Step::ToolCall(_) => turn.waiting("tool"),
                        Step::ToolResult(_) | Step::Text { .. } | Step::Thinking { .. } => turn.waiting("model"),
                        Step::Retry { .. } => turn.waiting(WAITING_ON_PROVIDER),
                        _ => {}
                    }
                    if let Flow::Stop(ending) = turn.record(step) {
                        stop.get_or_insert(ending);
                    }
                }
                Heard::Asked(request) => {
                    let answer = self.answer(process, &request, turn);
                    process.say(&answer);
                }
                Heard::Refused { request, because } if request == "initialize" => {
                    return LineEffect::Stop(Ending::Aborted {
                        because: format!("Claude Code refused to be set up: {because}"),
                    });
                }
                Heard::Refused { .. } => {}
                // The calls of this answer are still processed; the hook after them ends the agent's turn.
                Heard::Used(tokens) => {
                    let _ = turn.uses(tokens);
                }
                Heard::Warning(warning) => turn.warn(warning),
                Heard::Unreadable(what) => {
                    let what = format!("Claude Code printed {what}");
                    if let Flow::Stop(ending) = turn.unreadable(&what) {
                        stop.get_or_insert(ending);
                    }
                }
                Heard::Done(done) => return LineEffect::Done(ending(done, stop, turn)),
            }
        }
        stop.map_or(LineEffect::On, LineEffect::Stop)
    }

    fn answer(&self, process: &mut Process, request: &Request, turn: &mut Turn) -> Value {
        match &request.ask {
            Ask::Tool { name, input, call_id } if model::tool::effect(name) == Effect::Ask => {
                let answers = control::questions(input)
                    .into_iter()
                    .map(|asked| {
                        let answer = turn.ask(call_id.as_deref(), &asked.question, &asked.options, asked.multi_select);
                        (asked.question, answer)
                    })
                    .collect();
                request.allow(&control::answered(input.clone(), answers))
            }
            Ask::Tool { name, input, call_id } => {
                let id = call_id.clone().unwrap_or_default();
                match turn.permit(&ToolCall::new(&id, name, input.clone(), "")) {
                    Decision::Allow => request.allow(input),
                    Decision::Deny(message) => {
                        process.interpreter.refused(&id);
                        request.deny(&message)
                    }
                }
            }
            Ask::Hook { callback, input } if callback == SCOPE_HOOK => {
                let text = |key: &str| input.get(key).and_then(Value::as_str).unwrap_or_default();
                let call = input.get("tool_input").unwrap_or(&Value::Null);
                let objection =
                    self.closed.as_ref().and_then(|closed| closed.objection(text("tool_name"), call, &self.resolver));
                let Some(message) = objection else { return request.pass() };
                let id = text("tool_use_id");
                process.interpreter.refused(id);
                let _ = turn.record(Step::PermissionDenied {
                    tool: text("tool_name").to_owned(),
                    call_id: (!id.is_empty()).then(|| id.to_owned()),
                    message: message.clone(),
                });
                request.forbid(&message)
            }
            Ask::Hook { callback, input } if callback == TURNS_HOOK => {
                // A sub-agent has its own turns.
                if input.get("agent_id").is_some_and(|id| !id.is_null()) {
                    return request.pass();
                }
                if turn.is_over() {
                    return request.end_turn("what this conversation may use is used up");
                }
                if turn.turns_left() > 0 {
                    return request.pass();
                }
                let _ = turn.out_of_turns();
                request.end_turn("the turns of this conversation are used up")
            }
            Ask::Hook { .. } => request.pass(),
            Ask::Unknown { subtype } => request.fail(&format!("`{subtype}` is not supported here")),
        }
    }

    /// Interrupts the CLI and waits for it to report its usage.
    async fn interrupt(&mut self, process: &mut Process, turn: &mut Turn) {
        process.say(&control::interrupt());
        process.hush();
        let settle = async {
            loop {
                match process.listen().await {
                    Said::Stdout(line) => {
                        keep("stdout", &line, turn);
                        for heard in process.interpreter.read(&line.text) {
                            match heard {
                                Heard::Step(step @ (Step::ToolResult(_) | Step::Finished { .. })) => {
                                    let _ = turn.record(step);
                                }
                                Heard::Done(_) => return,
                                _ => {}
                            }
                        }
                    }
                    Said::Stderr(line) => keep("stderr", &line, turn),
                    Said::End => return,
                }
            }
        };
        let _ = tokio::time::timeout(TO_SETTLE, settle).await;
        let _ = process.stop().await;
    }

    fn notice(&mut self, line: &Line, turn: &mut Turn) {
        keep("stderr", line, turn);
        let text = line.text.trim_end();
        let about_the_script = self.launch.auth == SignIn::Scripted.name() && text.starts_with(UNKNOWN_MODEL);
        if text.is_empty() || about_the_script || self.notices == MOST_NOTICES {
            return;
        }
        self.notices += 1;
        let text = model::text::shortened(text, 2000);
        let _ = turn.record(Step::Notice { from: "stderr".into(), text });
    }
}

impl Session for Conversation {
    fn send<'a>(&'a mut self, message: &'a UserMessage, turn: &'a mut Turn) -> BoxFuture<'a, Reply> {
        Box::pin(async move { Reply::ended(self.converse(&message.text, turn).await) })
    }

    fn close<'a>(&'a mut self) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            if let Some(mut process) = self.process.take() {
                self.exit_code = process.end().await.ok().and_then(|status| status.code());
            }
        })
    }

    fn exit_code(&self) -> Option<i32> {
        self.exit_code
    }
}

/// Keeps a line unchanged, except for control protocol answers, which contain data of the user's account, and for
/// partial model answers, which are also reported as a whole.
fn keep(stream: &str, line: &Line, turn: &mut Turn) {
    if line.dropped > 0 {
        turn.warn(format!(
            "a line of the agent's {stream} was too long to be understood and was not kept ({} bytes)",
            line.text.len() + line.dropped
        ));
    } else if !line.text.contains("\"control_response\"") && !line.text.contains("\"stream_event\"") {
        turn.raw(stream, &line.text);
    }
}

/// Returns the ending. A provider failure takes precedence over a limit that was reached at the same time.
fn ending(done: Done, stop: Option<Ending>, turn: &mut Turn) -> Ending {
    match done {
        Done::ProviderFailed(because) => Ending::ProviderFailed { because },
        Done::OutOfTurns if turn.has_turn_limit() => turn.out_of_turns(),
        done => stop.unwrap_or_else(|| match done {
            Done::GaveUp(because) => Ending::GaveUp { because },
            Done::Interrupted(because) => Ending::Aborted { because: format!("somebody interrupted it: {because}") },
            Done::Broken(because) => Ending::Aborted { because: format!("Claude Code ended with an error: {because}") },
            // Not a limit of trialrun, so the agent has not exceeded one.
            Done::OutOfMoney => Ending::Aborted {
                because: "Claude Code stopped at a limit of money that its own settings have (`error_max_budget_usd`)"
                    .to_owned(),
            },
            Done::OutOfTurns => Ending::Aborted {
                because: "Claude Code stopped at a limit of turns that its own settings have (`error_max_turns`)"
                    .to_owned(),
            },
            Done::Answered | Done::ProviderFailed(_) => Ending::Finished,
        }),
    }
}
