//! How strings and bytes are stored: events as lines of JSON, compressed.

use model::Envelope;
use serde_json::Value;

use crate::{StoreError, StoredEvent};

/// Compression level. Trials of a suite are similar, and the fastest level compresses them as well as slower ones.
const LEVEL: i32 = 1;

/// Compressor that keeps its tables, because creating them costs more than packing a small trial.
pub(super) struct Packer(zstd::bulk::Compressor<'static>);

impl Packer {
    pub(super) fn new() -> Result<Self, StoreError> {
        zstd::bulk::Compressor::new(LEVEL).map(Self).map_err(|error| damaged(&error))
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) -> Result<Vec<u8>, StoreError> {
        self.0.compress(bytes).map_err(|error| damaged(&error))
    }
}

pub(super) fn unpack(packed: &[u8]) -> Result<Vec<u8>, StoreError> {
    zstd::stream::decode_all(packed).map_err(|error| damaged(&error))
}

pub(super) fn unpack_text(packed: &[u8]) -> Result<String, StoreError> {
    String::from_utf8(unpack(packed)?).map_err(|error| damaged(&error))
}

/// Parses an event and its number. An event that this version does not know is kept unchanged, provided that it names
/// its run and trial.
pub(super) fn event(line: &str) -> Result<(u64, StoredEvent), StoreError> {
    match serde_json::from_str::<Envelope>(line) {
        Ok(envelope) => Ok((envelope.seq, StoredEvent::Known(Box::new(envelope)))),
        Err(_) => {
            let value: Value = serde_json::from_str(line).map_err(|error| damaged(&error))?;
            let seq = value.get("seq").and_then(Value::as_u64);
            seq.map(|seq| (seq, StoredEvent::Unknown(value)))
                .ok_or_else(|| StoreError::Damaged("an event has no number".into()))
        }
    }
}

pub(super) fn damaged(error: &dyn std::fmt::Display) -> StoreError {
    StoreError::Damaged(error.to_string())
}
