//! Lines of a process's output.

use model::{Ending, Step, foreign_json};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

use crate::turn::Turn;

/// Maximum length of a line in bytes; longer lines are cut.
const MAX_LINE_BYTES: usize = 16 * 1024 * 1024;

/// Maximum length of a notice, in characters.
const MAX_NOTICE_LEN: usize = 2000;

/// Reads line by line. Only a small buffer is read ahead, so a process that prints too much has to wait.
#[derive(Debug)]
pub(super) struct Lines<R> {
    reader: BufReader<R>,
    line: Vec<u8>,
    dropped: usize,
    longest: usize,
    /// True if a line that is too long is returned immediately, without waiting for its end.
    returns_partial_lines: bool,
    ended: bool,
}

/// A line without its line end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    /// Text of the line, with invalid UTF-8 replaced.
    pub(super) text: String,
    /// Number of bytes that were cut off.
    pub(super) dropped: usize,
}

impl Line {
    /// Records the line unchanged, as output from the agent on `stream`.
    pub(super) fn keep(&self, stream: &str, turn: &mut Turn) {
        if self.dropped == 0 {
            turn.raw(stream, &self.text);
        } else {
            let bytes = self.text.len() + self.dropped;
            turn.warn(format!("a line of the agent's {stream} was too long to be read and kept ({bytes} bytes)"));
        }
    }
}

/// Lines of one stream that are recorded as notices.
#[derive(Debug, Default)]
pub(super) struct Notices {
    count: usize,
}

impl Notices {
    /// Maximum number of notices; further lines are only kept.
    pub(super) const MAX_COUNT: usize = 100;

    /// Records `text` as a notice, unless it is empty. Long texts are shortened.
    pub(super) fn record(&mut self, from: &str, text: &str, turn: &mut Turn) -> Result<(), Ending> {
        let text = text.trim_end();
        if text.is_empty() || self.count == Self::MAX_COUNT {
            return Ok(());
        }
        self.count += 1;
        turn.record(Step::Notice { from: from.to_owned(), text: model::text::shortened(text, MAX_NOTICE_LEN) })
    }
}

/// Content of a line in a stream of JSON events.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Content {
    /// An event: a JSON object.
    Event(Value),
    /// Anything else, which other programs may print there.
    Other,
    /// An event that cannot be parsed. It may contain an action of the agent.
    Damaged,
    /// An event that is nested too deeply.
    TooDeep,
}

impl Content {
    /// Parses a line.
    pub(super) fn parse(line: &str) -> Self {
        match foreign_json::parse(line) {
            Ok(event @ Value::Object(_)) => Self::Event(event),
            Ok(_) => Self::Other,
            Err(error) if line.trim_start().starts_with('{') && foreign_json::is_too_large(&error) => Self::TooDeep,
            Err(_) if line.trim_start().starts_with('{') || line.contains("\"type\"") => Self::Damaged,
            Err(_) => Self::Other,
        }
    }
}

impl<R: AsyncRead + Unpin> Lines<R> {
    pub(super) fn new(stream: R) -> Self {
        Self {
            reader: BufReader::with_capacity(64 * 1024, stream),
            line: Vec::new(),
            dropped: 0,
            longest: MAX_LINE_BYTES,
            returns_partial_lines: false,
            ended: false,
        }
    }

    /// Returns a line that is too long immediately, and the rest of it as another line, instead of waiting for a line
    /// end that may never come.
    pub(super) fn without_waiting(mut self) -> Self {
        self.returns_partial_lines = true;
        self
    }

    /// Returns `true` if there are no more lines.
    pub(super) fn ended(&self) -> bool {
        self.ended
    }

    /// Returns the beginning of a line whose end has not arrived.
    pub(super) fn unfinished(&self) -> Option<String> {
        (!self.line.is_empty()).then(|| String::from_utf8_lossy(&self.line).into_owned())
    }

    /// Returns the next line; `None` at the end. The future may be dropped before it completes without losing data.
    pub(super) async fn next(&mut self) -> Option<Line> {
        while !self.ended {
            let Ok(bytes) = self.reader.fill_buf().await else {
                self.ended = true;
                break;
            };
            if bytes.is_empty() {
                self.ended = true;
                break;
            }
            let end = bytes.iter().position(|byte| *byte == b'\n');
            let part = &bytes[..end.unwrap_or(bytes.len())];
            let kept = part.len().min(self.longest - self.line.len());
            self.line.extend_from_slice(&part[..kept]);
            self.dropped += part.len() - kept;
            let used = part.len() + usize::from(end.is_some());
            self.reader.consume(used);
            if end.is_some() || (self.returns_partial_lines && self.dropped > 0) {
                return Some(self.take());
            }
        }
        (!self.line.is_empty()).then(|| self.take())
    }

    fn take(&mut self) -> Line {
        let bytes = std::mem::take(&mut self.line);
        let bytes = bytes.strip_suffix(b"\r").unwrap_or(&bytes);
        Line { text: String::from_utf8_lossy(bytes).into_owned(), dropped: std::mem::take(&mut self.dropped) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn all(bytes: &[u8], longest: usize) -> Vec<(String, usize)> {
        let mut lines = Lines { longest, ..Lines::new(bytes) };
        let mut all = Vec::new();
        while let Some(line) = lines.next().await {
            all.push((line.text, line.dropped));
        }
        assert!(lines.ended());
        all
    }

    #[tokio::test]
    async fn lines_end_at_newlines_and_at_the_end_of_input() {
        assert_eq!(all(b"a\r\n\nb", 10).await, [("a".into(), 0), (String::new(), 0), ("b".into(), 0)]);
        assert_eq!(all(b"", 10).await, []);
    }

    #[tokio::test]
    async fn a_line_that_is_too_long_is_cut_and_the_next_one_is_complete() {
        let mut bytes = vec![b'x'; 200_000];
        bytes.extend_from_slice(b"\nnext\n");
        let lines = all(&bytes, 1000).await;
        assert_eq!((lines[0].0.len(), lines[0].1), (1000, 199_000));
        assert_eq!(lines[1], ("next".into(), 0));
    }

    #[tokio::test]
    async fn an_endless_line_is_returned_as_soon_as_it_is_too_long() {
        let mut lines = Lines { longest: 1000, ..Lines::new(tokio::io::repeat(b'x')) }.without_waiting();
        let line = lines.next().await.unwrap();
        assert_eq!(line.text.len(), 1000);
        assert!(line.dropped > 0 && !lines.ended());
    }

    #[test]
    fn an_invalid_event_is_distinguished_from_other_output() {
        assert!(matches!(Content::parse("{\"type\":\"x\"}"), Content::Event(_)));
        for other in ["", "  ", "Reading from stdin...", "[1]", "null", "4"] {
            assert_eq!(Content::parse(other), Content::Other, "{other}");
        }
        for damaged in ["{", "{\"type\":\"assist", "noise{\"type\":\"result\"}", "stant\",\"type\":\"x\"}", "{type: 1}"]
        {
            assert_eq!(Content::parse(damaged), Content::Damaged, "{damaged}");
        }
    }

    #[test]
    fn an_event_with_too_many_levels_is_distinguished_from_an_invalid_one() {
        let nested = |levels: usize| format!("{{\"type\":{}{}}}", "[".repeat(levels), "]".repeat(levels));
        assert!(matches!(Content::parse(&nested(105)), Content::Event(_)));
        for levels in [130, 100_000] {
            assert_eq!(Content::parse(&nested(levels)), Content::TooDeep, "{levels}");
        }
        assert_eq!(Content::parse(&"[".repeat(200)), Content::Other);
    }

    #[tokio::test]
    async fn invalid_utf_8_is_replaced() {
        assert_eq!(all(b"a\xffb\n", 10).await, [("a\u{fffd}b".into(), 0)]);
    }
}
