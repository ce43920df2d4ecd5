//! Splits a byte stream into its events or lines, wherever the chunks of bytes are cut.

use crate::event_stream::{Event, Events, Lines};
use crate::wire::Framing;

/// Assembles the events or lines of a stream.
#[derive(Debug)]
pub(crate) struct Frames {
    framing: Framing,
    lines: Lines,
    events: Events,
}

impl Frames {
    pub(crate) fn new(framing: Framing) -> Self {
        Self { framing, lines: Lines::default(), events: Events::default() }
    }

    /// Adds the next bytes and returns the data of every piece that they complete.
    pub(crate) fn take(&mut self, bytes: &[u8]) -> Vec<Vec<u8>> {
        let lines = self.lines.take(bytes);
        lines.into_iter().filter_map(|line| self.piece(line)).collect()
    }

    /// Returns the remaining pieces at the end of the stream: a last line without a line end, and an event without
    /// the blank line after it.
    pub(crate) fn finish(mut self) -> Vec<Vec<u8>> {
        let line = self.lines.rest();
        let last = if line.is_empty() { None } else { self.piece(line) };
        last.into_iter().chain(self.events.finish().and_then(data)).collect()
    }

    /// Returns the piece that `line` completes. A line that is not UTF-8 becomes an unreadable piece.
    fn piece(&mut self, line: Vec<u8>) -> Option<Vec<u8>> {
        match std::str::from_utf8(&line) {
            Ok(line) if self.framing == Framing::Events => self.events.take(line).and_then(data),
            _ => Some(line).filter(|line| !line.iter().all(u8::is_ascii_whitespace)),
        }
    }
}

/// Returns the data of an event. Its name adds no information.
fn data(event: Event) -> Option<Vec<u8>> {
    Some(event.data.into_bytes()).filter(|data| !data.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(framing: Framing, text: &str, size: usize) -> Vec<String> {
        let mut frames = Frames::new(framing);
        let mut pieces = Vec::new();
        for chunk in text.as_bytes().chunks(size) {
            pieces.extend(frames.take(chunk));
        }
        pieces.extend(frames.finish());
        pieces.into_iter().map(|piece| String::from_utf8(piece).unwrap()).collect()
    }

    #[test]
    fn events_do_not_depend_on_chunk_boundaries() {
        let text =
            "\u{feff}data: {\"a\":\r\ndata: \"ü€😀\"}\r\n\r\n: comment\n\nevent: x\nid: 1\ndata:b\n\ndata\n\ndata: c";
        for size in 1..text.len() {
            assert_eq!(pieces(Framing::Events, text, size), ["{\"a\":\n\"ü€😀\"}", "b", "c"], "{size}");
        }
    }

    #[test]
    fn lines_do_not_depend_on_chunk_boundaries() {
        let text = "{\"a\": \"ü\"}\r\n\n  \n{\"b\": 1}\n{\"c\"";
        for size in 1..text.len() {
            assert_eq!(pieces(Framing::Lines, text, size), ["{\"a\": \"ü\"}", "{\"b\": 1}", "{\"c\""], "{size}");
        }
    }

    #[test]
    fn lone_carriage_returns_end_lines() {
        assert_eq!(pieces(Framing::Events, "data: a\r\rdata: b\r\r", 1), ["a", "b"]);
    }
}
