//! Hashes JSON values.

use serde_json::Value;
use sha2::{Digest, Sha256};

/// Returns a hash of a value. It is the same on all machines.
pub fn content_hash(value: &Value) -> String {
    Sha256::digest(value.to_string().as_bytes()).iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}
