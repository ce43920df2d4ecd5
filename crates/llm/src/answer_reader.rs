//! Reads the answers of vendors while they are forwarded to a client.

use model::foreign_json;

use crate::frames::Frames;
use crate::wire::{Assemble, BadResponse, Dialect, Progress, dialect_of};
use crate::{Reply, Request, Wire};

/// Marker at the end of an event stream, used by some vendors.
const END: &[u8] = b"[DONE]";
/// Maximum number of bytes of an answer that are read.
const LARGEST: usize = 64 * 1024 * 1024;

/// Reader of one answer. It never changes or delays the bytes. An answer that it cannot read is not an error.
pub struct AnswerReader {
    dialect: &'static dyn Dialect,
    request: Request,
    form: Form,
    size: usize,
    state: State,
}

/// Form of an answer.
enum Form {
    Document(Vec<u8>),
    Stream { frames: Frames, partial: Box<dyn Assemble> },
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Arriving,
    /// The answer is complete, whatever follows.
    Complete,
    /// The answer ends with an error.
    Reported,
    /// The rest of the answer cannot be read.
    Unreadable,
}

impl AnswerReader {
    /// Creates a reader of an answer to a request for `model`; `None` if the format has no reader.
    pub fn new(wire: &dyn Wire, model: &str, is_stream: bool) -> Option<Self> {
        let dialect = dialect_of(wire)?;
        let request = Request { model: model.to_owned(), ..Request::default() };
        let form = match is_stream {
            true => Form::Stream { frames: Frames::new(dialect.framing()), partial: dialect.assemble(&request) },
            false => Form::Document(Vec::new()),
        };
        Some(Self { dialect, request, form, size: 0, state: State::Arriving })
    }

    /// Reads the next bytes.
    pub fn take(&mut self, bytes: &[u8]) {
        if self.state != State::Arriving {
            return;
        }
        self.size += bytes.len();
        if self.size > LARGEST {
            self.state = State::Unreadable;
            return;
        }
        match &mut self.form {
            Form::Document(body) => body.extend_from_slice(bytes),
            Form::Stream { frames, partial } => {
                for piece in frames.take(bytes) {
                    self.state = read_piece(partial.as_mut(), &piece);
                    if self.state != State::Arriving {
                        break;
                    }
                }
            }
        }
    }

    /// Returns `true` if the answer is complete, whatever follows. A document is complete only at its end.
    pub fn is_complete(&self) -> bool {
        self.state == State::Complete
    }

    /// Returns `false` if part of the answer could not be read.
    pub fn is_readable(&self) -> bool {
        self.state != State::Unreadable
    }

    /// Returns `true` if the answer ends with an error.
    pub fn reports_an_error(&self) -> bool {
        self.state == State::Reported
    }

    /// Returns the part of the reply that has arrived; `None` if none of it can be read.
    pub fn so_far(&self) -> Option<Reply> {
        match &self.form {
            Form::Document(body) => {
                let document = foreign_json::parse_slice(body).ok().filter(|_| self.size <= LARGEST)?;
                self.dialect.reply(&self.request, document).ok()
            }
            Form::Stream { .. } if self.size > LARGEST => None,
            Form::Stream { partial, .. } => partial.so_far().map(Reply::settled),
        }
    }
}

fn read_piece(partial: &mut dyn Assemble, piece: &[u8]) -> State {
    if piece == END {
        return State::Complete;
    }
    let Ok(piece) = foreign_json::parse_piece_slice(piece) else { return State::Unreadable };
    match partial.take(piece) {
        Ok(Progress::More) => State::Arriving,
        Ok(Progress::Complete) => State::Complete,
        Err(BadResponse::Reported(_)) => State::Reported,
        Err(BadResponse::Unreadable(_)) => State::Unreadable,
    }
}

#[cfg(test)]
mod tests {
    use model::Tokens;
    use serde_json::json;

    use super::*;
    use crate::{Block, StopReason, WIRES};

    fn reply() -> Reply {
        Reply {
            message_id: "m1".into(),
            model: "m".into(),
            content: vec![
                Block::Text { text: "Listing ü.".into() },
                Block::ToolUse { id: "call_1".into(), name: "Bash".into(), input: json!({"command": "ls"}) },
            ],
            stop_reason: StopReason::ToolUse,
            tokens: Some(Tokens { input: 10, output: 5, cache_read: 3, ..Tokens::default() }),
            cost_usd: None,
        }
    }

    fn calls(reply: &Reply) -> Vec<&str> {
        let blocks = reply.content.iter();
        let ids = blocks.filter_map(|block| match block {
            Block::ToolUse { id, .. } => Some(id.as_str()),
            _ => None,
        });
        ids.collect()
    }

    #[test]
    fn streams_of_every_format_are_read_wherever_they_are_cut() {
        for wire in WIRES {
            let stream = wire.stream(&reply());
            let events = [stream.opening, stream.content, stream.closing].concat();
            let text: String = events.iter().map(ToString::to_string).collect();
            for size in [1, 7, text.len()] {
                let mut reader = AnswerReader::new(*wire, "m", true).unwrap();
                text.as_bytes().chunks(size).for_each(|chunk| reader.take(chunk));
                let read = reader.so_far().unwrap();
                assert!(reader.is_complete(), "{}", wire.name());
                assert_eq!((calls(&read), read.tokens.map(|tokens| tokens.total())), (vec!["call_1"], Some(18)));
            }
        }
    }

    #[test]
    fn calls_before_a_cut_are_known() {
        for wire in WIRES {
            let stream = wire.stream(&reply());
            let mut reader = AnswerReader::new(*wire, "m", true).unwrap();
            for event in stream.opening.iter().chain(&stream.content) {
                reader.take(event.to_string().as_bytes());
            }
            assert_eq!(calls(&reader.so_far().unwrap()), ["call_1"], "{}", wire.name());
        }
    }

    #[test]
    fn a_document_is_read_at_its_end() {
        for wire in WIRES {
            let mut reader = AnswerReader::new(*wire, "m", false).unwrap();
            let text = wire.whole(&reply()).to_string();
            let (first, rest) = text.as_bytes().split_at(text.len() / 2);
            reader.take(first);
            assert!(reader.so_far().is_none());
            reader.take(rest);
            assert_eq!(calls(&reader.so_far().unwrap()), ["call_1"], "{}", wire.name());
        }
    }

    #[test]
    fn an_answer_that_cannot_be_read_is_not_an_error() {
        for wire in WIRES {
            let mut reader = AnswerReader::new(*wire, "m", false).unwrap();
            reader.take(b"\x1f\x8b not JSON");
            assert!(reader.so_far().is_none() && !reader.is_complete());
            let mut reader = AnswerReader::new(*wire, "m", true).unwrap();
            reader.take(b"data: {\"broken\n\n");
            reader.take(b"data: more\n\n");
            assert!(!reader.is_complete() && !reader.is_readable());
        }
    }
}
