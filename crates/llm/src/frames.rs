//! Splitting of a byte stream into its events or lines, wherever the chunks of bytes are cut.

use crate::wire::Framing;

/// Assembles the events or lines of a stream.
#[derive(Debug)]
pub(crate) struct Frames {
    framing: Framing,
    /// Bytes since the last end of a line.
    line: Vec<u8>,
    /// Data of the current event.
    data: Vec<u8>,
    has_data: bool,
    /// True if the last byte was a carriage return, so that a line feed right after it does not end another line.
    after_return: bool,
    begun: bool,
}

impl Frames {
    pub(crate) fn new(framing: Framing) -> Self {
        Self { framing, line: Vec::new(), data: Vec::new(), has_data: false, after_return: false, begun: false }
    }

    /// Takes the next bytes; returns the data of every piece that they complete.
    pub(crate) fn take(&mut self, bytes: &[u8]) -> Vec<Vec<u8>> {
        let mut pieces = Vec::new();
        for &byte in bytes {
            match byte {
                b'\n' if std::mem::take(&mut self.after_return) => {}
                b'\n' | b'\r' => {
                    self.after_return = byte == b'\r';
                    let line = std::mem::take(&mut self.line);
                    pieces.extend(self.end_of_line(line));
                }
                _ => {
                    self.after_return = false;
                    self.line.push(byte);
                }
            }
        }
        pieces
    }

    /// Returns the remaining pieces at the end of the stream: a last line without a line end, and an event without
    /// the blank line after it.
    pub(crate) fn finish(mut self) -> Vec<Vec<u8>> {
        let line = std::mem::take(&mut self.line);
        let mut pieces: Vec<Vec<u8>> =
            if line.is_empty() { Vec::new() } else { self.end_of_line(line).into_iter().collect() };
        pieces.extend(self.end_of_event());
        pieces
    }

    fn end_of_line(&mut self, line: Vec<u8>) -> Option<Vec<u8>> {
        if self.framing == Framing::Lines {
            return Some(line).filter(|line| !line.iter().all(u8::is_ascii_whitespace));
        }
        let mut line = line.as_slice();
        if !std::mem::replace(&mut self.begun, true) {
            line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        }
        if line.is_empty() {
            return self.end_of_event();
        }
        // Event names, ids and comments contain nothing that the data does not.
        let value = line.strip_prefix(b"data:").or((line == b"data").then_some(b""))?;
        if std::mem::replace(&mut self.has_data, true) {
            self.data.push(b'\n');
        }
        self.data.extend_from_slice(value.strip_prefix(b" ").unwrap_or(value));
        None
    }

    fn end_of_event(&mut self) -> Option<Vec<u8>> {
        let has_data = std::mem::take(&mut self.has_data);
        Some(std::mem::take(&mut self.data)).filter(|data| has_data && !data.is_empty())
    }
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
    fn events_are_the_same_wherever_the_bytes_are_cut() {
        let text =
            "\u{feff}data: {\"a\":\r\ndata: \"ü€😀\"}\r\n\r\n: comment\n\nevent: x\nid: 1\ndata:b\n\ndata\n\ndata: c";
        for size in 1..text.len() {
            assert_eq!(pieces(Framing::Events, text, size), ["{\"a\":\n\"ü€😀\"}", "b", "c"], "{size}");
        }
    }

    #[test]
    fn lines_are_the_same_wherever_the_bytes_are_cut() {
        let text = "{\"a\": \"ü\"}\r\n\n  \n{\"b\": 1}\n{\"c\"";
        for size in 1..text.len() {
            assert_eq!(pieces(Framing::Lines, text, size), ["{\"a\": \"ü\"}", "{\"b\": 1}", "{\"c\""], "{size}");
        }
    }

    #[test]
    fn returns_alone_end_lines() {
        assert_eq!(pieces(Framing::Events, "data: a\r\rdata: b\r\r", 1), ["a", "b"]);
    }
}
