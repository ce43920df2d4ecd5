//! Lines and events of streams (`text/event-stream`), from bytes that may be split anywhere.

/// Assembles lines, which end with a line feed, a carriage return or both.
#[derive(Debug, Default)]
pub struct Lines {
    line: Vec<u8>,
    /// True if the last byte was a carriage return, so that a line feed after it does not end another line.
    after_return: bool,
}

impl Lines {
    /// Adds the next bytes and returns the lines that they complete.
    pub fn take(&mut self, bytes: &[u8]) -> Vec<Vec<u8>> {
        let mut lines = Vec::new();
        let mut rest = bytes;
        if self.after_return && !rest.is_empty() {
            rest = rest.strip_prefix(b"\n").unwrap_or(rest);
            self.after_return = false;
        }
        while let Some(end) = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            self.line.extend_from_slice(&rest[..end]);
            lines.push(std::mem::take(&mut self.line));
            let is_return = rest[end] == b'\r';
            rest = &rest[end + 1..];
            if is_return {
                self.after_return = rest.is_empty();
                rest = rest.strip_prefix(b"\n").unwrap_or(rest);
            }
        }
        self.line.extend_from_slice(rest);
        lines
    }

    /// Returns the last line at the end of the stream, if it has no line end.
    pub fn rest(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.line)
    }
}

/// An event of `text/event-stream`.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Event {
    /// Name of the event; empty if it has none.
    pub name: String,
    /// The data, its lines joined.
    pub data: String,
}

/// Assembles events.
#[derive(Debug, Default)]
pub struct Events {
    event: Event,
    has_data: bool,
    has_begun: bool,
}

impl Events {
    /// Adds a line and returns the event that it completes.
    pub fn take(&mut self, line: &str) -> Option<Event> {
        let is_first = !std::mem::replace(&mut self.has_begun, true);
        let line = if is_first { line.strip_prefix('\u{feff}').unwrap_or(line) } else { line };
        if line.is_empty() {
            return self.finish();
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut self.event.name),
            "data" => {
                if std::mem::replace(&mut self.has_data, true) {
                    self.event.data.push('\n');
                }
                self.event.data.push_str(value);
            }
            // Comments, ids and retry times are ignored.
            _ => {}
        }
        None
    }

    /// Returns the event in progress at the end of the stream, if the empty line after it is missing.
    pub fn finish(&mut self) -> Option<Event> {
        let event = std::mem::take(&mut self.event);
        std::mem::take(&mut self.has_data).then_some(event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(text: &str, size: usize) -> Vec<(String, String)> {
        let (mut lines, mut events, mut found) = (Lines::default(), Events::default(), Vec::new());
        let mut complete: Vec<Vec<u8>> = text.as_bytes().chunks(size).flat_map(|chunk| lines.take(chunk)).collect();
        complete.push(lines.rest());
        for line in complete {
            found.extend(events.take(std::str::from_utf8(&line).unwrap()));
        }
        found.extend(events.finish());
        found.into_iter().map(|event| (event.name, event.data)).collect()
    }

    #[test]
    fn events_do_not_depend_on_chunk_boundaries() {
        let text =
            "\u{feff}data: {\"a\":\r\ndata: \"ü€😀\"}\r\n\r\n: comment\n\nevent: x\nid: 1\ndata:b\n\ndata\r\rdata:  c";
        let expected = [("", "{\"a\":\n\"ü€😀\"}"), ("x", "b"), ("", ""), ("", " c")];
        let expected = expected.map(|(name, data)| (name.to_owned(), data.to_owned()));
        for size in 1..=text.len() {
            assert_eq!(events(text, size), expected, "{size}");
        }
    }
}
