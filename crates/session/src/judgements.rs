//! Stored judgements from earlier runs.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use grade::judge::JudgementStore;
use jiff::{SignedDuration, Timestamp};
use store::{Judgements, StoreError};

use crate::state::State;

/// Maximum age of a judgement in days. Vendors may change the model behind a name.
const MAX_AGE_DAYS: i64 = 30;

/// Judgements in the store of the project's runs. They are opened when they are first needed.
pub struct StateJudgements {
    place: State,
    access: Mutex<Access>,
}

/// Access to the judgements.
enum Access {
    Closed,
    Open(Box<dyn Judgements>),
    /// They cannot be used. The text says why.
    Failed(String),
}

impl StateJudgements {
    /// Returns the judgements in the record of a session.
    pub fn in_record(place: &State) -> Self {
        Self { place: place.clone(), access: Mutex::new(Access::Closed) }
    }

    fn opened(&self) -> MutexGuard<'_, Access> {
        let mut access = self.access.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(*access, Access::Closed) {
            let since = Timestamp::now() - SignedDuration::from_hours(24 * MAX_AGE_DAYS);
            let opened = self.place.open().and_then(|store| Ok(store.judgements(since)?));
            *access = opened.map_or_else(|error| Access::Failed(error.to_string()), Access::Open);
        }
        access
    }

    /// Calls `work` with the judgements. After an error, they are no longer used.
    fn with<T>(&self, work: impl FnOnce(&dyn Judgements) -> Result<T, StoreError>) -> Option<T> {
        let mut access = self.opened();
        let Access::Open(judgements) = &*access else { return None };
        match work(&**judgements) {
            Ok(value) => Some(value),
            Err(error) => {
                *access = Access::Failed(error.to_string());
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
        match &*self.access.lock().unwrap_or_else(PoisonError::into_inner) {
            Access::Failed(reason) => Some(format!("judgements are not cached: {reason}")),
            Access::Closed | Access::Open(_) => None,
        }
    }
}

impl fmt::Debug for StateJudgements {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StateJudgements").field("record", &self.place.record.to_string()).finish_non_exhaustive()
    }
}
