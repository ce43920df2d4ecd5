//! Reads a streamed answer in any of the forms that bots use.

mod anthropic;
mod chunk;
mod data_line;
mod responses;
mod ui;

use model::foreign_json;
use serde_json::{Map, Value};

use super::settings::Parser;
use llm::event_stream::{Event, Events, Lines};

use crate::answer::Answer;
use crate::answer::document;
use crate::answer::usage::Count;

/// Marker at the end of a stream of events, sent by some servers.
const END: &str = "[DONE]";
/// Maximum length of unreadable text in an error message, in characters.
const SHOWN: usize = 120;

/// Framing of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    /// `text/event-stream`.
    Events,
    /// One JSON value per line.
    Lines,
    /// Data-stream lines, `0:"text"`, or text that is itself the answer; the first line decides.
    Open,
}

/// Reason why a stream is not an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum StreamError {
    /// The stream reports an error.
    Reported(String),
    /// The stream is not in its declared format.
    Unreadable(String),
    /// The stream ended too early.
    Cut,
}

/// Progress of a stream towards its end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum End {
    /// Nothing received so far requires an end marker.
    #[default]
    Open,
    /// A part has started that requires an end marker.
    Owed,
    /// The answer is complete; usage may follow.
    Reached,
    /// Nothing more follows.
    Over,
}

/// Content of a stream so far.
#[derive(Debug, Default)]
pub(super) struct StreamState {
    pub(super) answer: Answer,
    end: End,
    /// Usage of the agent's steps. A total at the end takes precedence over their sum.
    steps: Count,
    /// Number of Responses API texts that arrived in pieces; their full text is sent again.
    streamed: usize,
    /// True if a piece has a known form, with or without text.
    is_known: bool,
}

impl StreamState {
    /// Records that an end marker must follow.
    fn owes_an_end(&mut self) {
        if self.end == End::Open {
            self.end = End::Owed;
        }
    }
}

/// Reads a stream.
#[derive(Debug)]
pub(super) struct Reader {
    framing: Framing,
    parser: Parser,
    lines: Lines,
    events: Events,
    state: StreamState,
    /// Bytes of a stream that may be plain text.
    plain: Vec<u8>,
    /// Number of bytes searched for the end of the first line; `None` once the stream is known to be plain text.
    searched: Option<usize>,
    /// Number of whitespace bytes at its beginning.
    blank: usize,
    /// The pieces, if a function needs them later.
    pieces: Vec<Value>,
    /// Text of the first piece that is a JSON object.
    first_object: Option<String>,
}

/// A stream that has ended.
#[derive(Debug)]
pub(super) struct StreamContent {
    pub(super) answer: Answer,
    /// The pieces, if a function needs them.
    pub(super) pieces: Vec<Value>,
    /// The whole text of a stream that was plain text.
    pub(super) plain: Option<String>,
    /// Text of the first piece that is a JSON object, if there is one.
    pub(super) first_object: Option<String>,
    /// True if a piece has a known form, with or without text.
    pub(super) is_known: bool,
}

impl Reader {
    pub(super) fn new(framing: Framing, parser: Parser) -> Self {
        let answer = if matches!(parser, Parser::Usual) { Answer::default() } else { Answer::without_text() };
        Self {
            framing,
            parser,
            lines: Lines::default(),
            events: Events::default(),
            state: StreamState { answer, ..StreamState::default() },
            plain: Vec::new(),
            searched: Some(0),
            blank: 0,
            pieces: Vec::new(),
            first_object: None,
        }
    }

    /// Adds the next bytes.
    pub(super) fn take(&mut self, bytes: &[u8]) -> Result<(), StreamError> {
        if self.framing == Framing::Open {
            self.plain.extend_from_slice(bytes);
            return self.settle(false);
        }
        for line in self.lines.take(bytes) {
            self.line(&line)?;
        }
        Ok(())
    }

    /// Returns `true` if the agent's answer has started.
    pub(super) fn speaks(&mut self) -> bool {
        let answer = &self.state.answer;
        let rest = &self.plain[self.blank.min(self.plain.len())..];
        let text = rest.iter().position(|byte| !byte.is_ascii_whitespace());
        self.blank += text.unwrap_or(rest.len());
        let is_text = text.and_then(|_| self.plain.get(self.blank));
        answer.has_text()
            || answer.has_calls()
            || !self.pieces.is_empty()
            || is_text.is_some_and(|first| !matches!(first, b'{' | b'['))
    }

    /// Returns `true` if nothing more will follow.
    pub(super) fn is_over(&self) -> bool {
        self.state.end == End::Over
    }

    /// Returns the content, once the stream has ended.
    pub(super) fn finish(mut self) -> Result<StreamContent, (StreamError, Box<Answer>)> {
        match self.end() {
            Ok(plain) => {
                let mut answer = self.state.answer;
                answer.settle();
                if answer.count.is_empty() {
                    answer.count = self.state.steps;
                }
                let (first_object, is_known) = (self.first_object, self.state.is_known);
                Ok(StreamContent { answer, pieces: self.pieces, plain, first_object, is_known })
            }
            Err(error) => {
                self.state.answer.settle();
                Err((error, Box::new(self.state.answer)))
            }
        }
    }

    /// Returns the content received before the stream was interrupted.
    pub(super) fn so_far(mut self) -> Answer {
        self.state.answer.settle();
        self.state.answer
    }

    fn end(&mut self) -> Result<Option<String>, StreamError> {
        self.settle(true)?;
        if self.framing == Framing::Open {
            let text = String::from_utf8(std::mem::take(&mut self.plain)).map_err(|_| not_text())?;
            return Ok(Some(text));
        }
        if self.is_over() {
            return Ok(None);
        }
        let line = self.lines.rest();
        let last = self.last(&line);
        // If the end is unreadable, the stream was cut off there.
        last.map_err(|error| if matches!(error, StreamError::Unreadable(_)) { StreamError::Cut } else { error })?;
        if self.state.end == End::Owed { Err(StreamError::Cut) } else { Ok(None) }
    }

    fn last(&mut self, line: &[u8]) -> Result<(), StreamError> {
        if !line.is_empty() {
            self.line(line)?;
        }
        if self.framing != Framing::Events {
            return Ok(());
        }
        match self.events.finish() {
            // Text without a line end may be incomplete.
            Some(event) if !line.is_empty() && !is_marked(event.data.trim()) => Err(StreamError::Cut),
            Some(event) => self.event(&event),
            None => Ok(()),
        }
    }

    /// Determines the format of an open stream from its beginning, as early as possible.
    fn settle(&mut self, is_all: bool) -> Result<(), StreamError> {
        if self.framing != Framing::Open {
            return Ok(());
        }
        let Some(searched) = self.searched else { return Ok(()) };
        let end = self.plain[searched..].iter().position(|byte| *byte == b'\n').map(|end| searched + end);
        let Some(line) = end.or_else(|| is_all.then_some(self.plain.len())).map(|end| &self.plain[..end]) else {
            self.searched = Some(self.plain.len());
            return Ok(());
        };
        self.searched = None;
        let Ok(line) = std::str::from_utf8(line) else { return Ok(()) };
        self.framing = match line {
            _ if data_line::is_one(line) => Framing::Lines,
            _ if line.starts_with("event: ") || line.starts_with("data: {") || line.starts_with("data:{") => {
                Framing::Events
            }
            _ => return Ok(()),
        };
        let bytes = std::mem::take(&mut self.plain);
        self.take(&bytes)
    }

    fn line(&mut self, line: &[u8]) -> Result<(), StreamError> {
        let line = std::str::from_utf8(line).map_err(|_| not_text())?;
        if self.framing == Framing::Events {
            return match self.events.take(line) {
                Some(event) => self.event(&event),
                None => Ok(()),
            };
        }
        if line.trim().is_empty() {
            return Ok(());
        }
        if data_line::is_one(line) {
            let (code, value) = data_line::parse(line).ok_or_else(|| unreadable(line))?;
            self.keep(|| serde_json::json!({"type": code.to_string(), "value": value}));
            return data_line::read(code, &value, &mut self.state);
        }
        let piece = foreign_json::parse_piece(line).map_err(|_| unreadable(line))?;
        self.piece(piece, "")
    }

    fn event(&mut self, event: &Event) -> Result<(), StreamError> {
        let data = event.data.trim();
        if event.data.is_empty() {
            return Ok(());
        }
        if data == END {
            self.state.end = End::Over;
            return Ok(());
        }
        match foreign_json::parse_piece(data) {
            Ok(piece @ (Value::Object(_) | Value::String(_))) => self.piece(piece, &event.name),
            _ if is_marked(data) => Err(unreadable(data)),
            _ if event.name == "error" => Err(StreamError::Reported(event.data.clone())),
            // Plain text.
            _ => {
                self.state.answer.append_default_text(&event.data);
                self.keep(|| Value::from(event.data.as_str()));
                Ok(())
            }
        }
    }

    fn piece(&mut self, piece: Value, name: &str) -> Result<(), StreamError> {
        match &piece {
            Value::Object(map) => self.object(map, name)?,
            Value::String(text) => self.state.answer.append_default_text(text),
            _ => {}
        }
        self.keep(|| piece);
        Ok(())
    }

    fn object(&mut self, map: &Map<String, Value>, name: &str) -> Result<(), StreamError> {
        if self.first_object.is_none() {
            self.first_object = Some(Value::Object(map.clone()).to_string());
        }
        let state = &mut self.state;
        let kind = map.get("type").and_then(Value::as_str).unwrap_or_default();
        if let Some(error) = reported(map, kind, name) {
            return Err(StreamError::Reported(error));
        }
        match kind {
            _ if map.contains_key("choices") => chunk::read(map, state),
            _ if kind.starts_with("response.") => responses::read(kind, map, state),
            _ if anthropic::is_one(kind) => anthropic::read(kind, map, state),
            _ if ui::is_one(kind) => ui::read(kind, map, state),
            _ => {
                state.is_known |= other(map, state);
                return Ok(());
            }
        }
        state.is_known = true;
        Ok(())
    }

    /// Keeps a piece if a function needs it, or extracts its text.
    fn keep(&mut self, piece: impl FnOnce() -> Value) {
        match &self.parser {
            Parser::Usual => {}
            Parser::Function(_) => {
                let mut piece = piece();
                foreign_json::settle_value(&mut piece);
                self.pieces.push(piece);
            }
            Parser::Path(path) => {
                let piece = piece();
                for found in path.find(&piece) {
                    self.state.answer.append_text(&super::super::transcript::as_text(found));
                }
            }
        }
    }
}

/// Returns `true` if the first letter of `data` shows that it is not plain text.
fn is_marked(data: &str) -> bool {
    data.starts_with(['{', '[', '"'])
}

/// Returns the error that a piece reports.
fn reported(map: &Map<String, Value>, kind: &str, name: &str) -> Option<String> {
    let text = |key: &str| map.get(key).and_then(Value::as_str).map(str::to_owned);
    let error = document::error(map);
    match kind {
        "response.failed" | "response.incomplete" => {
            let response = map.get("response").and_then(Value::as_object);
            let reason = || Some(response?.get("incomplete_details")?.get("reason")?.as_str()?.to_owned());
            Some(response.and_then(document::error).or_else(reason).unwrap_or_else(|| kind.to_owned()))
        }
        "abort" => Some("it was aborted".to_owned()),
        _ if kind == "error" || name == "error" => Some(
            error
                .or_else(|| text("errorText"))
                .or_else(|| text("message"))
                .unwrap_or_else(|| Value::Object(map.clone()).to_string()),
        ),
        _ => error,
    }
}

/// Reads a piece in an unknown format. Returns `true` if it has text in a usual field, or lists calls.
fn other(map: &Map<String, Value>, state: &mut StreamState) -> bool {
    const MORE: [&str; 3] = ["delta", "token", "chunk"];
    let text = document::TEXTS.iter().chain(&MORE).find_map(|key| map.get(*key)?.as_str());
    let is_read = if let Some(text) = text {
        state.answer.append_default_text(text);
        state.answer.count.read_from(map);
        if let Some(calls) = map.get("tool_calls").filter(|calls| !calls.is_null()) {
            state.answer.add_calls(calls, "tool_calls");
        }
        true
    } else {
        document::read(&Value::Object(map.clone()), &mut state.answer)
    };
    match map.get("done").and_then(Value::as_bool) {
        Some(true) => state.end = End::Over,
        Some(false) => state.owes_an_end(),
        None => {}
    }
    is_read || state.answer.tells_calls
}

fn not_text() -> StreamError {
    StreamError::Unreadable("it is not UTF-8".to_owned())
}

fn unreadable(what: &str) -> StreamError {
    let shown = model::text::shortened(what, SHOWN);
    StreamError::Unreadable(format!("a piece of the stream is not valid JSON: {shown}"))
}
