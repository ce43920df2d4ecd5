//! Cache for judge answers: in memory for one run, and in a store that outlives the run.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use model::JudgeCache;
use sha2::{Digest, Sha256};

use super::answer::Answer;
pub(super) use super::flight::Key;
use super::flight::{Flights, Turn};
use super::question::Question;

/// Store for judgements that outlives a run. Its errors are only reported by [`problem`](Self::problem), because the
/// judge can be asked instead.
pub trait JudgementStore: fmt::Debug + Send + Sync {
    /// Returns the judgement stored under `key`.
    fn get(&self, key: &str) -> Option<String>;

    /// Stores a judgement, replacing any with the same key.
    fn put(&self, key: &str, judgement: &str);

    /// Returns the reason why judgements could not be read or stored, if there is one.
    fn problem(&self) -> Option<String>;
}

/// Valid answers from judges, keyed by everything that influences them.
#[derive(Debug, Default)]
pub struct Cache {
    answers: Mutex<HashMap<Key, Answer>>,
    flights: Flights,
    store: Option<Arc<dyn JudgementStore>>,
    mode: JudgeCache,
}

impl Cache {
    /// Creates a cache. `mode` decides how it uses `store`.
    pub fn new(store: Option<Arc<dyn JudgementStore>>, mode: JudgeCache) -> Self {
        let store = store.filter(|_| mode != JudgeCache::Off);
        Self { answers: Mutex::default(), flights: Flights::default(), store, mode }
    }

    /// Waits until no other trial is asking the question with that key. Returns `None` if answers are not cached.
    pub(super) async fn turn(&self, key: &Key) -> Option<Turn<'_>> {
        match self.mode {
            JudgeCache::Off => None,
            _ => Some(self.flights.turn(key).await),
        }
    }

    /// Returns the answer to `question` that is stored under `key`. A stored answer that does not fit the question is
    /// ignored.
    pub(super) fn get(&self, key: &Key, question: &Question) -> Option<Answer> {
        if self.mode == JudgeCache::Off {
            return None;
        }
        let known = self.answers.lock().unwrap_or_else(PoisonError::into_inner).get(key).cloned();
        known.or_else(|| {
            let store = self.store.as_ref().filter(|_| self.mode != JudgeCache::Refresh)?;
            let answer: Answer = serde_json::from_str(&store.get(&model::text::hex(key))?).ok()?;
            answer.fits(question).then_some(answer)
        })
    }

    /// Stores a valid answer. `mask` removes secrets from its texts before they leave the process. Verdicts depend only
    /// on marks and scores, so masking does not change them.
    pub(super) fn put(&self, key: Key, answer: &Answer, mask: &dyn Fn(&str) -> String) {
        if self.mode == JudgeCache::Off {
            return;
        }
        if let Some(store) = &self.store
            && let Ok(text) = serde_json::to_string(&answer.masked(mask))
        {
            store.put(&model::text::hex(&key), &text);
        }
        self.answers.lock().unwrap_or_else(PoisonError::into_inner).insert(key, answer.clone());
    }
}

/// Returns the cache key for an answer that depends on `parts`.
pub(super) fn key<'p>(parts: impl IntoIterator<Item = &'p str>) -> Key {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    hash.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_depend_on_where_a_part_ends() {
        assert_ne!(key(["ab", "c"]), key(["a", "bc"]));
    }
}
