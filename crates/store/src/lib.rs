//! RECORD: every run, its trials and its events, written as they happen.
//!
//! Events of a running trial are rows of a journal. When a trial gets its outcome, the same transaction that keeps the
//! outcome packs that trial's events, with those of others that finish then, and empties its part of the journal. So a
//! process that is killed loses at most the events it had not handed over yet: finished trials are whole, and what an
//! unfinished one did until then is still there.
//!
//! The store knows no report and decides nothing: it gives back the events as they came.

mod migrate;
mod pack;
mod record;
mod selector;
mod sqlite;

pub use record::{BlobInfo, RunFilter, Store, StoreError, StoredEvent, TrialFilter};
pub use selector::{SelectError, Selectable, select_run, select_trial};
pub use sqlite::SqliteStore;
