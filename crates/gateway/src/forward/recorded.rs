//! Replays recorded answers, and records new ones.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use cassette::{Answer, Asked, Chunk, Found, Sender, Slot, Tape};
use futures_util::stream;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::http::response::Parts;
use hyper::{Method, Response, StatusCode};
use serde_json::Value;

use super::traffic::Kind;

/// Maximum size of a recorded answer, in bytes.
const MAX_BYTES: usize = 64 << 20;

/// Finds the answer to a request on the tape.
pub(super) fn ask(tape: &Tape, kind: Kind, method: &Method, path: &str, body: Value) -> Found {
    let sender = match kind {
        Kind::Main => Sender::Agent,
        Kind::SubAgent => Sender::SubAgent,
        Kind::Side => Sender::Side,
        Kind::Other => Sender::Other,
    };
    let path = if method == Method::POST { path.to_owned() } else { format!("{method} {path}") };
    tape.ask(Asked { sender, path: &path, body })
}

/// Returns a recorded answer in the form in which the provider sent it.
pub(super) fn response(answer: Answer, honours_delays: bool) -> Response<reqwest::Body> {
    let Answer { status, content_type, chunks, is_cut } = answer;
    let end = is_cut.then(|| Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the recorded answer was cut here")));
    let parts = chunks.into_iter().map(|Chunk { after_ms, text }| Ok((after_ms, Bytes::from(text)))).chain(end);
    let body = stream::unfold(parts, move |mut parts| async move {
        let part = parts.next()?;
        let part = match part {
            Ok((after_ms, bytes)) => {
                if honours_delays && after_ms > 0 {
                    tokio::time::sleep(Duration::from_millis(after_ms)).await;
                }
                Ok(bytes)
            }
            Err(error) => Err(error),
        };
        Some((part, parts))
    });
    let mut response = Response::new(reqwest::Body::wrap_stream(body));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_GATEWAY);
    if let Ok(content_type) = HeaderValue::try_from(content_type)
        && !content_type.is_empty()
    {
        response.headers_mut().insert(CONTENT_TYPE, content_type);
    }
    response
}

/// Copy of an arriving answer, for the cassette.
pub(super) struct KeptAnswer {
    tape: Arc<Tape>,
    slot: Slot,
    answer: Answer,
    last: Instant,
    size: usize,
    /// Bytes of a character that has not arrived completely.
    partial: Vec<u8>,
}

impl KeptAnswer {
    pub(super) fn new(tape: Arc<Tape>, slot: Slot) -> Self {
        Self { tape, slot, answer: Answer::default(), last: Instant::now(), size: 0, partial: Vec::new() }
    }

    /// Stores the status and the content type.
    pub(super) fn answered(&mut self, head: &Parts) {
        self.answer.status = head.status.as_u16();
        let content_type = head.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        self.answer.content_type = content_type.unwrap_or_default().to_owned();
    }

    /// Adds bytes to the copy.
    pub(super) fn arrived(&mut self, bytes: &[u8]) {
        self.size += bytes.len();
        if self.size > MAX_BYTES {
            self.tape.refuse("an answer is too large");
            self.answer.chunks.clear();
            return;
        }
        self.partial.extend_from_slice(bytes);
        let valid = match std::str::from_utf8(&self.partial) {
            Ok(text) => text.len(),
            Err(error) => error.valid_up_to(),
        };
        let rest = self.partial.split_off(valid);
        if let Ok(text) = String::from_utf8(std::mem::replace(&mut self.partial, rest))
            && !text.is_empty()
        {
            let after_ms = model::millis(self.last.elapsed());
            self.last = Instant::now();
            self.answer.chunks.push(Chunk { after_ms, text });
        }
    }

    /// Passes the copy to the tape.
    pub(super) fn ended(mut self, is_cut: bool) {
        self.answer.is_cut = is_cut;
        if self.partial.is_empty() || is_cut {
            self.tape.keep(&self.slot, self.answer);
        } else {
            self.tape.refuse("an answer is not UTF-8 text");
        }
    }
}
