//! Answers that are there already, for one run.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use sha2::{Digest, Sha256};

use super::answer::Answer;

/// Answers by what was asked, and of whom. It lives in memory, as long as its run.
#[derive(Debug, Default)]
pub struct Cache(Mutex<HashMap<Key, Answer>>);

/// The hash of all that an answer hangs on.
pub(super) type Key = [u8; 32];

impl Cache {
    pub(super) fn get(&self, key: &Key) -> Option<Answer> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(key).cloned()
    }

    pub(super) fn put(&self, key: Key, answer: Answer) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(key, answer);
    }
}

/// The key of what `model` is asked as the judge number `judge`. `series` keeps apart trials that are to be judged each by
/// itself.
pub(super) fn key(model: &str, content: &str, series: &str, judge: usize) -> Key {
    let mut hash = Sha256::new();
    for part in [model, content, series, &judge.to_string()] {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    hash.finalize().into()
}
