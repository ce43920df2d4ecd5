//! Cache for judge answers, for one run.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use sha2::{Digest, Sha256};

use super::answer::Answer;

/// Answers by model and question. The cache is in memory and lasts as long as its run.
#[derive(Debug, Default)]
pub struct Cache(Mutex<HashMap<Key, Answer>>);

/// Hash of everything that an answer depends on.
pub(super) type Key = [u8; 32];

impl Cache {
    pub(super) fn get(&self, key: &Key) -> Option<Answer> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(key).cloned()
    }

    pub(super) fn put(&self, key: Key, answer: Answer) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(key, answer);
    }
}

/// Returns the key of the question `content` to `model` as judge number `judge`. `series` separates trials that must
/// be judged independently.
pub(super) fn key(model: &str, content: &str, series: &str, judge: usize) -> Key {
    let mut hash = Sha256::new();
    for part in [model, content, series, &judge.to_string()] {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    hash.finalize().into()
}
