//! Stored judgements from earlier runs.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use grade::judge::JudgementStore;
use jiff::{SignedDuration, Timestamp};
use store::{Judgements, StoreError};

use crate::owner::owner;
use crate::session::create_state_folder;

/// Maximum age of a judgement in days. Vendors may change the model behind a name.
const MAX_AGE_DAYS: i64 = 30;

/// Judgements in the store of the project's runs. They are opened when they are first needed.
pub struct StateJudgements {
    database: PathBuf,
    state: Mutex<State>,
}

enum State {
    Closed,
    Open(Box<dyn Judgements>),
    /// They cannot be used. The text says why.
    Failed(String),
}

impl StateJudgements {
    /// Returns the judgements in the record at `database`.
    pub fn in_record(database: &Path) -> Self {
        Self { database: database.to_owned(), state: Mutex::new(State::Closed) }
    }

    fn opened(&self) -> MutexGuard<'_, State> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(*state, State::Closed) {
            let since = Timestamp::now() - SignedDuration::from_hours(24 * MAX_AGE_DAYS);
            let folder = self.database.parent().unwrap_or(Path::new(""));
            let opened = created(folder).map_err(|error| error.to_string()).and_then(|()| {
                let store = store::open(&self.database.as_path().into(), &owner());
                store.and_then(|store| store.judgements(since)).map_err(|error| error.to_string())
            });
            *state = opened.map_or_else(State::Failed, State::Open);
        }
        state
    }

    /// Calls `access` with the file. After an error, the file is no longer used.
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

/// Creates the folder if it does not exist. An existing one may contain more than the record.
fn created(folder: &Path) -> std::io::Result<()> {
    if folder.is_dir() { Ok(()) } else { create_state_folder(folder) }
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
        f.debug_struct("StateJudgements").field("database", &self.database).finish_non_exhaustive()
    }
}
