//! How strings and bytes are stored: events as lines of JSON, compressed.

use std::io::{self, BufWriter};

use model::Envelope;
use serde::Serialize;
use serde_json::Value;

use crate::{StoreError, StoredEvent};

/// Compression level. Trials of a suite are similar, and the fastest level compresses them as well as slower ones.
const LEVEL: i32 = 1;

/// Size in bytes from which a repetition is found wherever it is. A large answer is in several events of its trial.
const LARGE: usize = 1 << 20;

/// Largest distance of such a repetition, as a power of two. Readers accept no larger one.
const DISTANCE: u32 = 27;

/// Compressor that keeps its tables, because creating them costs more than packing a small trial.
pub(crate) struct Packer(zstd::bulk::Compressor<'static>);

impl Packer {
    pub(crate) fn new() -> Result<Self, StoreError> {
        zstd::bulk::Compressor::new(LEVEL).map(Self).map_err(|error| damaged(&error))
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> Result<Vec<u8>, StoreError> {
        let packed = if bytes.len() < LARGE { self.0.compress(bytes) } else { large(bytes) };
        packed.map_err(|error| damaged(&error))
    }
}

/// Packs a value as JSON. The JSON is never in memory as a whole, because that of a large plan takes 100 MB.
pub(crate) fn pack_json(value: &impl Serialize) -> Result<Vec<u8>, StoreError> {
    let packed = || {
        let mut json = BufWriter::new(zstd::Encoder::new(Vec::new(), LEVEL)?);
        serde_json::to_writer(&mut json, value)?;
        json.into_inner()?.finish()
    };
    packed().map_err(|error: io::Error| damaged(&error))
}

fn large(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut compressor = zstd::bulk::Compressor::new(LEVEL)?;
    compressor.window_log(DISTANCE)?;
    compressor.long_distance_matching(true)?;
    compressor.compress(bytes)
}

pub(crate) fn unpack(packed: &[u8]) -> Result<Vec<u8>, StoreError> {
    zstd::stream::decode_all(packed).map_err(|error| damaged(&error))
}

pub(crate) fn unpack_text(packed: &[u8]) -> Result<String, StoreError> {
    String::from_utf8(unpack(packed)?).map_err(|error| damaged(&error))
}

/// Parses an event and its number. An event that this version does not know is kept unchanged, provided that it names
/// its run and trial.
pub(crate) fn event(line: &str) -> Result<(u64, StoredEvent), StoreError> {
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

pub(crate) fn damaged(error: &dyn std::fmt::Display) -> StoreError {
    StoreError::Damaged(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_text_that_is_repeated_is_stored_once() {
        // Digits of a simple generator: each is half a byte.
        let mut state = 1_u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            b"0123456789abcdef"[(state >> 60) as usize]
        };
        let text: Vec<u8> = (0..LARGE).map(|_| next()).collect();
        let three = [&text[..], b"\n", &text, b"\n", &text].concat();
        let packed = Packer::new().unwrap().bytes(&three).unwrap();
        assert!(packed.len() < LARGE * 3 / 5, "{}", packed.len());
        assert_eq!(unpack(&packed).unwrap(), three);
    }
}
