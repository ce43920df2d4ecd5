//! The lines of a `text/event-stream`.

/// Maximum size of an event in bytes.
const MAX_EVENT_BYTES: usize = 64 << 20;

/// Parser of a stream of events that arrives in pieces.
#[derive(Debug, Default)]
pub(crate) struct EventStream {
    line: Vec<u8>,
    data: Option<String>,
    /// Last id of an event.
    pub(crate) last_id: Option<String>,
    /// Time to wait before the stream is opened again, in milliseconds.
    pub(crate) retry_ms: Option<u64>,
    after_return: bool,
}

impl EventStream {
    /// Takes a piece of the stream, and returns the data of the events that it completes. Events without data are left
    /// out.
    pub(crate) fn feed(&mut self, piece: &[u8]) -> Vec<String> {
        let mut events = Vec::new();
        for byte in piece {
            let is_end = matches!(byte, b'\n' | b'\r');
            let is_second_half = *byte == b'\n' && self.after_return;
            self.after_return = *byte == b'\r';
            if is_second_half {
                continue;
            }
            if is_end {
                let line = std::mem::take(&mut self.line);
                events.extend(self.take(&String::from_utf8_lossy(&line)));
            } else if self.line.len() < MAX_EVENT_BYTES {
                self.line.push(*byte);
            }
        }
        events
    }

    fn take(&mut self, line: &str) -> Option<String> {
        if line.is_empty() {
            return self.data.take().filter(|data| !data.is_empty());
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => match &mut self.data {
                Some(data) if data.len() + value.len() < MAX_EVENT_BYTES => {
                    data.push('\n');
                    data.push_str(value);
                }
                Some(_) => {}
                none => *none = Some(value.to_owned()),
            },
            "id" => self.last_id = Some(value.to_owned()),
            "retry" => self.retry_ms = value.parse().ok().or(self.retry_ms),
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::EventStream;

    #[test]
    fn events_are_joined_from_pieces_and_lines() {
        let text =
            b": hi\r\nid: 7\r\nretry: 20\r\ndata: {\"a\":\r\ndata:1}\r\n\r\ndata:\n\nevent: x\ndata: two\n\ndata: cut";
        for size in [1, 3, text.len()] {
            let mut stream = EventStream::default();
            let events: Vec<String> = text.chunks(size).flat_map(|piece| stream.feed(piece)).collect();
            assert_eq!(events, ["{\"a\":\n1}", "two"], "{size}");
            assert_eq!((stream.last_id.as_deref(), stream.retry_ms), (Some("7"), Some(20)));
        }
    }
}
