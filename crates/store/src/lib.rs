//! RECORD: stores every run, its trials and its events while they happen.
//!
//! Events of a running trial are rows of a journal. When a trial gets its outcome, one transaction stores the
//! outcome, packs the trial's events together with those of other trials that finish at that time, and removes them
//! from the journal. A process that is killed therefore loses at most the events it had not yet passed to the store:
//! finished trials are complete, and the earlier events of an unfinished trial are still there.
//!
//! The store does not know reports and decides nothing: it returns the events as they were written.

mod migrate;
mod pack;
mod record;
mod selector;
mod sqlite;

pub use record::{BlobInfo, RunFilter, Store, StoreError, StoredEvent, TrialFilter};
pub use selector::{SelectError, Selectable, select_run, select_trial};
pub use sqlite::SqliteStore;
