//! Hashes JSON values.

use serde_json::Value;
use sha2::{Digest, Sha256};

/// Returns a hash of a value. It is the same on all machines.
pub fn content_hash(value: &Value) -> String {
    model::text::hex(&Sha256::digest(value.to_string().as_bytes())[..8])
}
