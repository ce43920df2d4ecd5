//! A conversation with a program: one process for the whole conversation, or one per message.

use model::text::shortened;
use model::{Ending, Usage, UserMessage, foreign_json};
use sandbox::BoxFuture;
use serde_json::{Map, Value, json};

use super::config::Mode;
use super::launch::Launch;
use crate::answer::Reported;
use crate::lines::{Line, Notices};
use crate::process::{Output, Process};
use crate::session::Session;
use crate::step_recorder::StepRecorder;
use crate::traces::{AnswerCalls, Inbox, ProgramState};
use crate::transcript::perform;
use crate::turn::{Turn, finished, unless_stopped};

/// Maximum length of unreadable text in a message, in characters.
const SHOWN: usize = 300;
/// Maximum number of characters of a line without its end that are shown.
const SHOWN_BEGINNING: usize = 80;
/// Maximum size of stdout for one message, in bytes.
const MAX_OUTPUT_BYTES: usize = 64 << 20;
/// Maximum size of a plain text answer, in bytes.
const MAX_TEXT_BYTES: usize = 16 << 20;

/// Probable cause if a program in mode `jsonl` has not written anything when the trial times out.
const WAITING: &str = "its program has not written anything to stdout, so it may be waiting for the end of its stdin; `mode: \
                       oneshot` closes stdin after each message";

/// Advice for a program in mode `jsonl` that writes plain text.
const PLAIN_TEXT: &str = "`mode: oneshot` takes its output as plain text, and in `jsonl` an answer is a line such as \
                          `{\"message\": \"…\"}`";

/// An open conversation.
pub(super) struct SubprocessSession {
    pub(super) launch: Launch,
    pub(super) mode: Mode,
    pub(super) id: String,
    /// The spans that the program sends, if they are received.
    pub(super) inbox: Option<Inbox>,
    /// Process of a conversation in lines.
    pub(super) process: Option<Process>,
    pub(super) step_recorder: StepRecorder,
    /// Notices from stdout and from stderr.
    pub(super) notices: [Notices; 2],
    /// Number of messages sent.
    pub(super) sent: usize,
    /// True if the process of a conversation in lines has written to stdout.
    pub(super) has_written: bool,
    /// First line since the last message that is not an answer.
    pub(super) first_other_line: Option<String>,
    /// True if the end of the reply to the last message was recorded.
    pub(super) is_reported: bool,
    /// True if the conversation ended early, so that the process's output is no longer read.
    pub(super) is_over: bool,
}

impl SubprocessSession {
    async fn act(&mut self, message: &UserMessage, turn: &mut Turn) -> Result<(), Ending> {
        self.step_recorder.begin(turn, &self.id)?;
        self.sent += 1;
        self.is_reported = false;
        let traceparent = match &mut self.inbox {
            Some(inbox) => Some(inbox.begin(turn).await?),
            None => None,
        };
        let answer = match self.mode {
            Mode::Lines => self.exchange(message, traceparent, turn).await,
            Mode::Once { stdin, json } => self.run_once(message, (stdin, json), traceparent, turn).await,
        };
        let ending = match answer {
            Ok(answer) => return self.take_in(answer, turn).await,
            Err(ending) => ending,
        };
        match &mut self.inbox {
            Some(inbox) => {
                let usage = inbox.collect_failed(turn).await;
                if matches!(ending, Ending::GaveUp { .. }) {
                    self.is_reported = true;
                    let _ = turn.record(finished(true, usage, None, None));
                }
            }
            None => turn.misses_calls(),
        }
        Err(ending)
    }

    /// Records an answer.
    async fn take_in(&mut self, answer: Reported, turn: &mut Turn) -> Result<(), Ending> {
        answer
            .warnings
            .iter()
            .for_each(|warning| turn.warn(format!("unexpected content in the agent's answer: {warning}")));
        let program = match self.mode {
            Mode::Lines => ProgramState::Running,
            Mode::Once { .. } => ProgramState::Ended,
        };
        let report = match &mut self.inbox {
            Some(inbox) => Some(inbox.collect(program, turn).await?),
            None => None,
        };
        let tools = answer.turns.iter().flat_map(|turn| &turn.calls).map(|call| call.name.as_str()).collect();
        let calls = AnswerCalls { text: answer.text.as_deref(), are_listed: answer.tells_calls, tools };
        if !calls.record(report.as_ref(), turn).await? {
            perform(&answer.turns, &mut self.step_recorder, turn).await?;
        }
        self.is_reported = true;
        let usage = answer.count.of_reply(report.as_ref(), turn)?;
        turn.record(finished(answer.error.is_some(), usage, answer.text, answer.result))?;
        answer.error.map_or(Ok(()), |reason| Err(Ending::GaveUp { reason }))
    }

    /// Sends a line and reads the process's output until it answers.
    async fn exchange(
        &mut self,
        message: &UserMessage,
        traceparent: Option<String>,
        turn: &mut Turn,
    ) -> Result<Reported, Ending> {
        let Some(mut process) = self.process.take() else {
            return Err(Ending::GaveUp { reason: "its process has ended".to_owned() });
        };
        let answer = match self.leftovers(&mut process, turn).await {
            Ok(()) => {
                process.write(format!("{}\n", self.request(message, traceparent)));
                turn.waiting("agent");
                let answer = self.follow(&mut process, turn).await;
                if answer == Err(Ending::Cancelled) {
                    if let Some(begun) = process.unfinished_line() {
                        turn.explain_timeout(format!(
                            "its program wrote `{}` without the end of the line; an answer ends with a newline",
                            shortened(&begun, SHOWN_BEGINNING)
                        ));
                    } else if !self.has_written {
                        turn.explain_timeout(WAITING);
                    } else if let Some(line) = &self.first_other_line {
                        turn.explain_timeout(format!(
                            "its program wrote `{line}`, which is not a JSON object; {PLAIN_TEXT}"
                        ));
                    }
                    let _ = process.stop().await;
                }
                self.record_stderr(&mut process, turn).await.and(answer)
            }
            Err(ending) => Err(ending),
        };
        self.process = Some(process);
        let map = answer?;
        let shown = shortened(&Value::Object(map.clone()).to_string(), SHOWN);
        Reported::read(map).ok_or_else(|| Ending::GaveUp {
            reason: format!("its answer has no `message`, `text`, `content` or `response`: {shown}"),
        })
    }

    /// Records the stderr lines that the process wrote along with its answer.
    async fn record_stderr(&mut self, process: &mut Process, turn: &mut Turn) -> Result<(), Ending> {
        for line in process.take_late_stderr() {
            self.hear_stderr(&line, turn)?;
        }
        notice_output().await;
        for _ in 0..Notices::MAX_COUNT {
            let Some(line) = process.ready_stderr().await else { break };
            self.hear_stderr(&line, turn)?;
        }
        Ok(())
    }

    /// Records output since the last answer, which does not belong to any message.
    async fn leftovers(&mut self, process: &mut Process, turn: &mut Turn) -> Result<(), Ending> {
        // Before the first message, there is no answer that the output could follow.
        if self.sent == 1 {
            return Ok(());
        }
        notice_output().await;
        for _ in 0..Notices::MAX_COUNT {
            let output = tokio::select! {
                biased;
                output = process.next_output() => output,
                () = std::future::ready(()) => return Ok(()),
            };
            match output {
                Output::Stdout(line) => {
                    self.has_written = true;
                    line.keep("stdout", turn);
                    if !line.text.trim().is_empty() {
                        turn.warn("the agent wrote to stdout after its answer; that output is ignored");
                        self.notice("agent", &line, turn)?;
                    }
                }
                Output::Stderr(line) => self.hear_stderr(&line, turn)?,
                Output::End => return Ok(()),
            }
        }
        Ok(())
    }

    async fn follow(&mut self, process: &mut Process, turn: &mut Turn) -> Result<Map<String, Value>, Ending> {
        let mut written = 0;
        self.first_other_line = None;
        loop {
            match unless_stopped(turn.stopping(), process.next_output()).await? {
                Output::Stderr(line) => self.hear_stderr(&line, turn)?,
                Output::Stdout(line) => {
                    self.has_written = true;
                    written += line.text.len();
                    line.keep("stdout", turn);
                    within_bounds(&line, written, MAX_OUTPUT_BYTES)?;
                    let is_object = line.text.trim_start().starts_with('{');
                    match foreign_json::parse(&line.text) {
                        Ok(Value::Object(map)) => return Ok(map),
                        Err(error) if is_object && foreign_json::is_too_large(&error) => return Err(turn.too_deep()),
                        Err(error) if is_object => turn.warn(format!(
                            "a line on stdout begins like an answer and is not valid JSON ({error}): {}",
                            shortened(&line.text, SHOWN)
                        )),
                        _ => {}
                    }
                    if self.first_other_line.is_none() && !line.text.trim().is_empty() {
                        self.first_other_line = Some(shortened(&line.text, SHOWN_BEGINNING));
                    }
                    self.notice("agent", &line, turn)?;
                }
                Output::End => {
                    let how = unless_stopped(turn.stopping(), process.describe_end()).await?;
                    return Err(self.gone(process, &how));
                }
            }
        }
    }

    /// Returns the ending for a process that ended before it answered.
    fn gone(&self, process: &Process, how: &str) -> Ending {
        if let Some(error) = process.start_error() {
            return Ending::Unreachable { reason: error.to_owned() };
        }
        if let Some(ending) = self.with_missing_part(process, how) {
            return ending;
        }
        let hint = match &self.first_other_line {
            Some(line) if how == "exit code 0" => {
                format!("; it wrote `{line}`, which is not a JSON object: {PLAIN_TEXT}")
            }
            _ if self.has_written && how == "exit code 0" => {
                "; a program that ends with each answer needs `mode: oneshot`".to_owned()
            }
            _ => String::new(),
        };
        Ending::GaveUp { reason: format!("its process ended before it answered ({how}){hint}") }
    }

    /// Returns the ending for a program that failed on its first message because something that `command` names does not
    /// exist.
    fn with_missing_part(&self, process: &Process, how: &str) -> Option<Ending> {
        let missing = self.launch.missing(process.exit_code(), how).filter(|_| self.sent == 1)?;
        Some(Ending::Unreachable { reason: format!("{missing} ({how})") })
    }

    /// Runs the program for one message.
    async fn run_once(
        &mut self,
        message: &UserMessage,
        (stdin, json): (bool, bool),
        traceparent: Option<String>,
        turn: &mut Turn,
    ) -> Result<Reported, Ending> {
        let mut process =
            self.launch.start_in(traceparent, message).map_err(|reason| Ending::Unreachable { reason })?;
        if stdin {
            process.write(message.text.clone());
        }
        process.close_stdin();
        turn.waiting("agent");
        let output = match self.output(&mut process, turn).await {
            Ok(output) => output,
            Err(ending) => {
                let _ = process.stop().await;
                return Err(ending);
            }
        };
        let Ok(ended) = unless_stopped(turn.stopping(), process.end()).await else {
            let _ = process.stop().await;
            return Err(Ending::Cancelled);
        };
        turn.exited(process.exit_code());
        self.record_stderr(&mut process, turn).await?;
        if ended.is_ok_and(|status| status.success()) {
            return if json { of_json(&output, turn) } else { Ok(Reported::from_text(output)) };
        }
        let how = process.describe_end().await;
        if let Some(error) = process.start_error() {
            return Err(Ending::Unreachable { reason: error.to_owned() });
        }
        if let Some(ending) = self.with_missing_part(&process, &how) {
            return Err(ending);
        }
        if !output.is_empty() {
            // Its output may explain the failure.
            self.step_recorder.next_turn();
            self.step_recorder.say(turn, &output)?;
        }
        Err(Ending::GaveUp { reason: format!("it failed ({how})") })
    }

    /// Returns the process's whole stdout, without the line end of its last line.
    async fn output(&mut self, process: &mut Process, turn: &mut Turn) -> Result<String, Ending> {
        let mut output: Option<String> = None;
        loop {
            match unless_stopped(turn.stopping(), process.next_output()).await? {
                Output::Stderr(line) => self.hear_stderr(&line, turn)?,
                Output::Stdout(line) => {
                    line.keep("stdout", turn);
                    match &mut output {
                        Some(output) => {
                            output.push('\n');
                            output.push_str(&line.text);
                        }
                        none => *none = Some(line.text.clone()),
                    }
                    within_bounds(&line, output.as_ref().map_or(0, String::len), MAX_TEXT_BYTES)?;
                }
                Output::End => return Ok(output.unwrap_or_default()),
            }
        }
    }

    /// Returns the line that sends a message.
    fn request(&self, message: &UserMessage, traceparent: Option<String>) -> Value {
        let mut request = Map::new();
        request.insert("message".to_owned(), json!(message.text));
        request.insert("conversation_id".to_owned(), json!(self.id));
        request.extend(traceparent.map(|traceparent| ("traceparent".to_owned(), json!(traceparent))));
        request.extend(message.script.as_ref().map(|script| ("script".to_owned(), json!(script))));
        let mut add = |key: &str, value: Value, is_there: bool| {
            if is_there {
                request.insert(key.to_owned(), value);
            }
        };
        add("tools", json!(message.tools), !message.tools.is_empty());
        add("vars", json!(message.vars), !message.vars.is_empty());
        add("persona", json!(message.persona), !message.persona.is_empty());
        add("options", json!(message.options), !message.options.is_empty());
        Value::Object(request)
    }

    fn hear_stderr(&mut self, line: &Line, turn: &mut Turn) -> Result<(), Ending> {
        line.keep("stderr", turn);
        self.notice("stderr", line, turn)
    }

    /// Records a line that is not an answer as a notice.
    fn notice(&mut self, from: &str, line: &Line, turn: &mut Turn) -> Result<(), Ending> {
        let [stdout, stderr] = &mut self.notices;
        if from == "stderr" { stderr } else { stdout }.record(from, &line.text, turn)
    }
}

/// Parses an answer that is one JSON document.
fn of_json(output: &str, turn: &mut Turn) -> Result<Reported, Ending> {
    let answer = match foreign_json::parse(output) {
        Ok(Value::Object(map)) => Reported::read(map),
        Ok(Value::String(text)) => Some(Reported::from_text(text)),
        Err(error) if foreign_json::is_too_large(&error) => return Err(turn.too_deep()),
        _ => None,
    };
    answer.ok_or_else(|| Ending::GaveUp {
        reason: format!(
            "its answer is not JSON with a `message`, `text`, `content` or `response`: {}",
            shortened(output, SHOWN)
        ),
    })
}

/// Lets the runtime find out which pipes have output. Without it, what was written a moment ago cannot be read without
/// waiting.
async fn notice_output() {
    tokio::task::yield_now().await;
}

/// Checks the limits for a line and for all output so far.
fn within_bounds(line: &Line, written: usize, most: usize) -> Result<(), Ending> {
    let reason = match () {
        () if line.dropped > 0 => format!("it wrote a line of more than {} MiB", line.text.len() >> 20),
        () if written > most => format!("it wrote more than {} MiB for one message", most >> 20),
        () => return Ok(()),
    };
    Err(Ending::GaveUp { reason })
}

impl Session for SubprocessSession {
    fn send<'a>(&'a mut self, message: &'a UserMessage, turn: &'a mut Turn) -> BoxFuture<'a, Ending> {
        Box::pin(async move {
            let ending = self.act(message, turn).await.err().unwrap_or(Ending::Finished);
            self.is_over = ending != Ending::Finished;
            if matches!(ending, Ending::GaveUp { .. }) && !self.is_reported {
                let _ = turn.record(finished(true, Usage::default(), None, None));
            }
            ending
        })
    }

    fn close<'a>(&'a mut self) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let Some(mut process) = self.process.take() else { return };
            let _ = if self.is_over { process.stop().await } else { process.end().await };
        })
    }
}
