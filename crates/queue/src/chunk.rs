//! Chunks of events: lines of JSON, compressed.

use std::io::{BufRead, BufReader};

use model::Event;

use crate::error::QueueError;

/// Compression level. Events of one trial are similar, and the fastest level compresses them well.
const LEVEL: i32 = 1;

/// Packs events, each with the number of its attempt.
pub(crate) fn pack(events: &[(u32, Event)]) -> Result<Vec<u8>, QueueError> {
    let mut lines = Vec::new();
    for event in events {
        serde_json::to_writer(&mut lines, event).map_err(|error| damaged(&error))?;
        lines.push(b'\n');
    }
    zstd::encode_all(&lines[..], LEVEL).map_err(|error| damaged(&error))
}

/// Unpacks events.
pub(crate) fn unpack(packed: &[u8]) -> Result<Vec<(u32, Event)>, QueueError> {
    let reader = zstd::Decoder::new(packed).map_err(|error| damaged(&error))?;
    let line = |line: std::io::Result<String>| {
        serde_json::from_str(&line.map_err(|error| damaged(&error))?).map_err(|error| damaged(&error))
    };
    BufReader::new(reader).lines().map(line).collect()
}

fn damaged(error: &dyn std::fmt::Display) -> QueueError {
    QueueError::Damaged("events", error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_the_same_after_the_way_through_the_queue() {
        let events: Vec<(u32, Event)> =
            (1..4).map(|number| (number, Event::Waiting { on: "ä\n\"".repeat(number as usize) })).collect();
        assert_eq!(unpack(&pack(&events).unwrap()).unwrap(), events);
        assert!(unpack(b"no").is_err());
    }
}
