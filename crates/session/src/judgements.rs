//! Stored judgements from earlier runs.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use grade::judge::JudgementStore;
use jiff::{SignedDuration, Timestamp};
use store::{Judgements, StoreError};

use crate::state;

/// Maximum age of a judgement in days. Vendors may change the model behind a name.
const MAX_AGE_DAYS: i64 = 30;

/// Judgements in the store of the project's runs. They are opened when they are first needed.
pub struct StateJudgements {
    record: state::State,
    state: Mutex<State>,
}

enum State {
    Closed,
    Open(Box<dyn Judgements>),
    /// They cannot be used. The text says why.
    Failed(String),
}

impl StateJudgements {
    /// Returns the judgements in the record of a session.
    pub fn in_record(record: &state::State) -> Self {
        Self { record: record.clone(), state: Mutex::new(State::Closed) }
    }

    fn opened(&self) -> MutexGuard<'_, State> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(*state, State::Closed) {
            let since = Timestamp::now() - SignedDuration::from_hours(24 * MAX_AGE_DAYS);
            let opened = self.record.open().and_then(|store| Ok(store.judgements(since)?));
            *state = opened.map_or_else(|error| State::Failed(error.to_string()), State::Open);
        }
        state
    }

    /// Calls `access` with the judgements. After an error, they are no longer used.
    fn with<T>(&self, access: impl FnOnce(&dyn Judgements) -> Result<T, StoreError>) -> Option<T> {
        let mut state = self.opened();
        let State::Open(judgements) = &*state else { return None };
        match access(&**judgements) {
            Ok(value) => Some(value),
            Err(error) => {
                *state = State::Failed(error.to_string());
                None
            }
        }
    }
}

impl JudgementStore for StateJudgements {
    fn get(&self, key: &str) -> Option<String> {
        self.with(|judgements| judgements.get(key)).flatten()
    }

    fn put(&self, key: &str, judgement: &str) {
        self.with(|judgements| judgements.put(key, judgement, Timestamp::now()));
    }

    fn problem(&self) -> Option<String> {
        match &*self.state.lock().unwrap_or_else(PoisonError::into_inner) {
            State::Failed(reason) => Some(format!("judgements are not cached: {reason}")),
            State::Closed | State::Open(_) => None,
        }
    }
}

impl fmt::Debug for StateJudgements {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StateJudgements").field("record", &self.record.record.to_string()).finish_non_exhaustive()
    }
}
