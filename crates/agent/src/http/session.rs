//! A conversation with an agent behind HTTP.

use std::sync::Arc;

use model::{Ending, Step, Usage, UserMessage, foreign_json};
use reqwest::Client;
use sandbox::{BoxFuture, Breakage};
use script::ScriptError;
use serde_json::{Map, Value, json};

use super::super::answer::document::{self, TEXTS};
use super::super::answer::{Answer, MISSING_NAME, Piece};
use super::super::step_recorder::StepRecorder;
use super::super::transcript::as_text;
use super::body::{Body, MessageContext};
use super::exchange::{DocumentKind, Exchange, Fault, FaultKind, Received, RequestBody, ResponseContent};
use super::functions::{Functions, Role};
use super::settings::{Parser, Settings};
use super::text::{clipped, one_line};
use crate::session::Session;
use crate::traces::{AnswerCalls, Inbox, ProgramState, SpanReport};
use crate::turn::{Turn, finished, too_deep, unless_stopped};
use crate::{Configured, RunState, SessionContext};

/// Maximum size of the request and of the response in an error message, in bytes.
const MAX_PART_LEN: usize = 2000;

/// Reason why a web page is not an answer.
const WEB_PAGE: &str = "the answer is a web page, such as one to sign in on; check `url` and `headers`, or set \
                        `headers: {Accept: text/html}` if the agent answers with web pages";
/// Reason why a JSON document is not an answer.
const NO_TEXT: &str = "the answer is JSON without a text in one of the usual places; set `response_parser` to the place \
                       of the text, or to `$` for the whole document";

/// A conversation.
pub(super) struct HttpSession {
    id: String,
    settings: Arc<Settings>,
    client: Client,
    functions: Option<Functions>,
    /// The programs of the run, and the agent's configuration, if it says how to start its program.
    started: Option<(Arc<RunState>, Arc<Configured>)>,
    /// The spans of the conversation, if they are received.
    inbox: Option<Inbox>,
    step_recorder: StepRecorder,
    /// Messages from both sides so far.
    history: Vec<Value>,
}

impl HttpSession {
    pub(super) async fn open(session_context: &SessionContext, settings: Settings) -> Result<Self, Breakage> {
        let made = session_context.state.clients.client(settings.url.scheme() == "https", &session_context.host);
        let client = made.map_err(|error| Breakage::environment(format!("cannot create an HTTP client: {error}")))?;
        let functions = Functions::load(&settings, session_context).await?;
        let inbox = match settings.traces {
            Some(traces) => {
                let receiver = session_context.state.receivers.receiver(settings.span_port())?;
                Some(Inbox::of_shared(receiver, traces))
            }
            None => None,
        };
        let config = session_context.config.clone().filter(|_| settings.start.is_some());
        Ok(Self {
            id: uuid::Uuid::now_v7().to_string(),
            settings: Arc::new(settings),
            client,
            functions,
            started: config.map(|config| (Arc::clone(&session_context.state), config)),
            inbox,
            step_recorder: StepRecorder::default(),
            history: Vec::new(),
        })
    }

    async fn act(&mut self, message: &UserMessage, turn: &mut Turn) -> Result<(), Ending> {
        self.step_recorder.begin(turn, &self.id)?;
        let request_body = RequestBody::of(self.body(message, turn).await?);
        let traceparent = match &mut self.inbox {
            Some(inbox) => Some(inbox.begin(turn).await?),
            None => None,
        };
        let traceparent = traceparent.as_deref();
        turn.waiting("agent");
        let settings = Arc::clone(&self.settings);
        let received_data = Received::default();
        let exchange =
            Exchange { client: &self.client, settings: &settings, traceparent, received_data: &received_data };
        let sent = exchange.sent(&request_body);
        let Ok(received) = unless_stopped(turn.stopping(), exchange.run(&request_body, turn)).await else {
            match &mut self.inbox {
                Some(inbox) => _ = inbox.collect_failed(turn).await,
                None => turn.misses_calls(),
            }
            // After a timeout, users want to see what the agent was asked and how much it had sent.
            let _ = turn.record(exchanged(&sent, true, &received_data.describe()));
            return Err(Ending::Cancelled);
        };
        let read = match received {
            Ok(content) => {
                let read = self.read(content, turn).await;
                read.map_err(|fault| fault.of(received_data.describe()))
            }
            Err(fault) => Err(fault),
        };
        match read {
            Ok(mut answer) => self.take_in(message, &mut answer, turn).await,
            Err(fault) => Err(self.failed(fault, &sent, turn).await),
        }
    }

    /// Builds the request for a message.
    async fn body(&mut self, message: &UserMessage, turn: &mut Turn) -> Result<Value, Ending> {
        let context = MessageContext { conversation_id: &self.id, history: &self.history, message };
        let unmade = |reason: String| Ending::InvalidTest { reason };
        if let (Body::Function(name), Some(functions)) = (&self.settings.body, &mut self.functions) {
            let mut variables = context.variables();
            variables.insert("conversationId".to_owned(), json!(self.id));
            let arguments = vec![json!(message.text), Value::Object(variables)];
            let called = functions.call(Role::Body, arguments, turn).await?;
            return match called {
                Ok(Value::Null) => Err(unmade(format!("the body's function `{name}` returned nothing"))),
                Ok(body) => Ok(body),
                Err(error) => Err(unmade(format!("the body's function `{name}`: {}", with_location(&error)))),
            };
        }
        let mut problems = Vec::new();
        let body = self.settings.body.make(&context, self.settings.stream, &mut problems);
        match problems.first() {
            Some(problem) => Err(unmade(format!("`body_template`: {problem}"))),
            None => Ok(body),
        }
    }

    /// Reads a response, which must contain text or a call.
    async fn read(&mut self, content: ResponseContent, turn: &mut Turn) -> Result<Answer, Fault> {
        let answer = self.read_content(content, turn).await?;
        let is_empty = answer.text().is_none_or(|text| model::text::is_blank(&text)) && !answer.has_calls();
        if is_empty {
            let reason = match &self.settings.parser {
                Parser::Function(name) => format!("the answer is empty: `response_parser`, `{name}`, returned no text"),
                Parser::Path(path) => {
                    format!("the answer is empty: `response_parser`, `{path}`, finds an empty string")
                }
                Parser::Usual => "the answer is empty: nothing of its text is visible".to_owned(),
            };
            return Err(Fault::new(FaultKind::Spoilt, reason).after(answer));
        }
        Ok(answer)
    }

    async fn read_content(&mut self, content: ResponseContent, turn: &mut Turn) -> Result<Answer, Fault> {
        let settings = Arc::clone(&self.settings);
        // First JSON object of a stream whose form is not known.
        let mut strange = None;
        let (given, mut answer) = match content {
            ResponseContent::Document(text, kind) => {
                let value = parsed(&text, kind)?;
                if value.is_none() && is_web_page(&text, kind) && !self.settings.wants_web_pages() {
                    return Err(Fault::new(FaultKind::Test, WEB_PAGE));
                }
                if matches!(settings.parser, Parser::Usual) {
                    return usual(&text, value);
                }
                let mut answer = Answer::without_text();
                if let Some(value) = &value {
                    document::read(value, &mut answer);
                }
                answer.raw.clone_from(&value);
                (value.unwrap_or(Value::String(text)), answer)
            }
            ResponseContent::Stream(read) => {
                let is_usual = matches!(settings.parser, Parser::Usual);
                strange = read.first_object.filter(|_| !(is_usual && read.is_known));
                (Value::Array(read.pieces), read.answer)
            }
        };
        let is_wanting = match &settings.parser {
            Parser::Usual => strange.is_some(),
            Parser::Path(_) => strange.is_some() || !(given.is_string() || given == json!([])),
            Parser::Function(_) => false,
        };
        match &settings.parser {
            Parser::Usual | Parser::Path(_) if given.as_array().is_some_and(Vec::is_empty) => {}
            Parser::Usual => {}
            Parser::Path(path) => append_found(&path.find(&given), &mut answer),
            Parser::Function(name) => {
                let parsed = self.parse(name, given, turn).await?;
                returned(parsed, &mut answer);
            }
        }
        if answer.has_text() || (answer.has_calls() && matches!(settings.parser, Parser::Usual)) {
            return Ok(answer);
        }
        let reason = match &settings.parser {
            Parser::Path(path) => format!("the answer is unreadable: `response_parser`, `{path}`, finds nothing in it"),
            Parser::Usual if let Some(piece) = &strange => format!("{NO_TEXT}: {}", one_line(piece)),
            _ => "the stream ended without an answer".to_owned(),
        };
        // If nothing is found in valid JSON, the user's test is wrong.
        Err(Fault::new(if is_wanting { FaultKind::Test } else { FaultKind::Spoilt }, reason).after(answer))
    }

    /// Calls the parser's function with `given`.
    async fn parse(&mut self, name: &str, given: Value, turn: &mut Turn) -> Result<Value, Fault> {
        let at = format!("`response_parser`, `{name}`");
        let Some(functions) = &mut self.functions else {
            return Err(Fault::new(FaultKind::Spoilt, format!("the answer is unreadable: {at}: it is not loaded")));
        };
        let reason = match functions.call(Role::Parser, vec![given], turn).await? {
            Ok(value @ (Value::String(_) | Value::Object(_) | Value::Array(_))) => return Ok(value),
            Ok(Value::Null) => format!("{at}, returned nothing; return the text or an object"),
            Ok(other) => format!("{at}, returned `{other}`; return the text or an object"),
            Err(error) => format!("{at}: {}", with_location(&error)),
        };
        Err(Fault::new(FaultKind::Test, reason))
    }

    /// Records an answer.
    async fn take_in(&mut self, message: &UserMessage, answer: &mut Answer, turn: &mut Turn) -> Result<(), Ending> {
        let report = match &mut self.inbox {
            Some(inbox) => Some(inbox.collect(ProgramState::Running, turn).await?),
            None => None,
        };
        self.perform(answer, report.as_ref(), turn).await?;
        let text = answer.text();
        self.history.push(json!({"role": "user", "content": message.text}));
        self.history.push(json!({"role": "assistant", "content": text.as_deref().unwrap_or_default()}));
        let result = extra_result(answer, text.as_deref());
        let usage = answer.count.of_reply(report.as_ref(), turn)?;
        turn.record(finished(false, usage, text, result))
    }

    /// Records the turns and calls of an answer.
    async fn perform(&mut self, answer: &Answer, report: Option<&SpanReport>, turn: &mut Turn) -> Result<(), Ending> {
        for warning in &answer.warnings {
            turn.warn(format!("unexpected content in the agent's answer: {warning}"));
        }
        let listed = answer.pieces().iter().filter_map(|piece| match piece {
            Piece::Call(call) => Some(call.name.as_str()),
            Piece::Text(_) | Piece::Turn => None,
        });
        let text = answer.text();
        let calls = AnswerCalls { text: text.as_deref(), are_listed: answer.knows_calls(), tools: listed.collect() };
        if calls.record(report, turn).await? {
            return Ok(());
        }
        self.step_recorder.next_turn();
        for piece in answer.pieces() {
            match piece {
                Piece::Turn => self.step_recorder.next_turn(),
                Piece::Text(text) => self.step_recorder.say(turn, text)?,
                Piece::Call(call) if call.name.is_empty() => {
                    turn.warn(format!("unexpected content in the agent's answer: {MISSING_NAME}"));
                }
                Piece::Call(call) => call.perform(&mut self.step_recorder, turn).await?,
            }
        }
        Ok(())
    }

    /// Records the request and the response of a failed message and returns its ending.
    async fn failed(&mut self, fault: Fault, sent: &str, turn: &mut Turn) -> Ending {
        let Fault { kind, reason, received, answer, .. } = fault;
        let mut usage = Usage::default();
        if answer.is_none() && kind != FaultKind::Unreachable {
            match &mut self.inbox {
                Some(inbox) => usage = inbox.collect_failed(turn).await,
                None => turn.misses_calls(),
            }
        }
        if let FaultKind::Stopped(ending) = kind {
            return ending;
        }
        let notice = exchanged(sent, kind != FaultKind::Unreachable, &received);
        if let Some(answer) = answer {
            usage = answer.count.usage();
            if let Err(ending) = self.perform(&answer, None, turn).await {
                return ending;
            }
        }
        if let Err(ending) = turn.record(notice).and_then(|()| turn.record(finished(true, usage, None, None))) {
            return ending;
        }
        let end = match &self.started {
            Some((state, config)) if kind == FaultKind::Closed && received.is_empty() => {
                state.programs.shared_end(&config.name).await
            }
            _ => None,
        };
        if let Some(end) = end {
            let end = format!("its program has ended ({end}), and it served other conversations too");
            return Ending::Unreachable { reason: format!("{reason}: {end}") };
        }
        match kind {
            FaultKind::Unreachable => Ending::Unreachable { reason },
            FaultKind::Test => Ending::InvalidTest { reason },
            FaultKind::Status(status) => match configured_by(status) {
                Some(help) => Ending::InvalidTest { reason: format!("{reason}; {help}") },
                None if self.settings.server_errors_break && (status == 429 || status >= 500) => {
                    Ending::Aborted { reason }
                }
                None => Ending::GaveUp { reason },
            },
            FaultKind::Closed | FaultKind::Spoilt | FaultKind::Stopped(_) => Ending::GaveUp { reason },
        }
    }
}

/// Returns the settings that cause `status` regardless of the user's message: a missing key, a wrong address, or a
/// request format that the agent rejects. `None` if the agent is at fault.
fn configured_by(status: u16) -> Option<&'static str> {
    match status {
        401 | 403 => Some("`headers` says what key is sent"),
        404 => Some("`url` says where the request is sent"),
        405 | 415 | 422 => Some("`method`, `headers`, `request_format` and `body_template` define the request"),
        _ => None,
    }
}

/// Returns a step with the request and the response, for a message without an answer.
fn exchanged(request: &str, is_sent: bool, received: &str) -> Step {
    let sent = if is_sent { "sent:" } else { "sent: nothing, because there was no connection; the request was" };
    let received = match received {
        "" => "received: nothing".to_owned(),
        received => format!("received:\n{}", clipped(received, MAX_PART_LEN)),
    };
    let text = format!("{sent}\n{}\n\n{received}", clipped(request, MAX_PART_LEN));
    Step::Notice { from: "harness".to_owned(), text }
}

/// Formats an error of a user's function with its location.
fn with_location(error: &ScriptError) -> String {
    match error.place() {
        Some(place) => format!("{place}: {error}"),
        None => error.to_string(),
    }
}

impl Session for HttpSession {
    fn send<'a>(&'a mut self, message: &'a UserMessage, turn: &'a mut Turn) -> BoxFuture<'a, Ending> {
        Box::pin(async move { self.act(message, turn).await.err().unwrap_or(Ending::Finished) })
    }
}

/// Parses the document if it is JSON.
fn parsed(text: &str, kind: DocumentKind) -> Result<Option<Value>, Fault> {
    let trimmed = text.trim_start_matches('\u{feff}').trim();
    if trimmed.is_empty() {
        return Err(Fault::new(FaultKind::Spoilt, "the answer is empty"));
    }
    match foreign_json::parse(trimmed) {
        Ok(Value::Null) if kind == DocumentKind::Json => {
            Err(Fault::new(FaultKind::Spoilt, "the answer is empty: it is `null`"))
        }
        Ok(value) => Ok(Some(value)),
        Err(error) if foreign_json::is_too_large(&error) => Err(Fault::new(FaultKind::Spoilt, too_deep())),
        Err(error) if kind == DocumentKind::Json && trimmed.starts_with(['{', '[']) => {
            let reason = format!("the answer is unreadable: it is not valid JSON ({error}): {}", one_line(trimmed));
            Err(Fault::new(FaultKind::Spoilt, reason))
        }
        Err(_) => Ok(None),
    }
}

/// Returns `true` if a document is a web page, by its content type or its beginning.
fn is_web_page(text: &str, kind: DocumentKind) -> bool {
    let start = text.trim_start_matches('\u{feff}').trim_start();
    let begins = |with: &str| start.get(..with.len()).is_some_and(|start| start.eq_ignore_ascii_case(with));
    kind == DocumentKind::Html || begins("<!doctype html") || begins("<html")
}

/// Reads a document without a configured parser.
fn usual(text: &str, value: Option<Value>) -> Result<Answer, Fault> {
    let mut answer = Answer::default();
    match value {
        None => answer.append_text(text),
        Some(Value::String(content)) => answer.append_text(&content),
        // A word or a number is text that happens to be JSON.
        Some(value) if !value.is_object() && !value.is_array() => answer.append_text(text.trim()),
        Some(value) => {
            if !document::read(&value, &mut answer) && !answer.has_calls() {
                if let Some(error) = value.as_object().and_then(document::error) {
                    return Err(Fault::new(FaultKind::Spoilt, format!("the answer is an error: {}", one_line(&error))));
                }
                let reason = format!("{NO_TEXT}: {}", one_line(text));
                return Err(Fault::new(FaultKind::Test, reason));
            }
            answer.raw = Some(value);
        }
    }
    Ok(answer)
}

/// Reads the values that a path found in a document.
fn append_found(found: &[&Value], answer: &mut Answer) {
    let is_text = found.iter().all(|value| value.is_string());
    match found {
        [] => {}
        texts if is_text => texts.iter().filter_map(|text| text.as_str()).for_each(|text| answer.append_text(text)),
        [one] => {
            answer.append_text(&one.to_string());
            answer.output = Some((*one).clone());
        }
        several => {
            let all: Value = several.iter().map(|value| (*value).clone()).collect();
            answer.append_text(&all.to_string());
            answer.output = Some(all);
        }
    }
}

/// Reads the return value of a parser function: text, an answer in a usual form, or another value.
fn returned(value: Value, answer: &mut Answer) {
    let is_answer = |map: &Map<String, Value>| {
        TEXTS.iter().any(|key| map.get(*key).is_some_and(Value::is_string))
            || map.contains_key("tool_calls")
            || map.contains_key("toolCalls")
    };
    if value.as_object().is_some_and(is_answer) {
        let (raw, count) = (answer.raw.take(), answer.count);
        *answer = Answer::default();
        (answer.raw, answer.count) = (raw, count);
        document::read(&value, answer);
        if !answer.has_text() {
            answer.append_text("");
        }
        return;
    }
    answer.append_text(&as_text(&value));
    answer.output = Some(value).filter(|value| !value.is_string());
}

/// Returns the whole answer as a value, if it is more than text.
fn extra_result(answer: &mut Answer, text: Option<&str>) -> Option<Value> {
    let (output, raw) = (answer.output.take(), answer.raw.take());
    let raw = raw.filter(|raw| !raw.is_string());
    if output.is_none() && raw.is_none() {
        return None;
    }
    let mut whole = Map::new();
    whole.extend(output.or_else(|| text.map(Value::from)).map(|output| ("output".to_owned(), output)));
    whole.extend(raw.map(|raw| ("raw".to_owned(), raw)));
    Some(Value::Object(whole))
}
