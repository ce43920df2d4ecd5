//! Stores every run, its trials and its events as they happen.
//!
//! Events of a running trial are rows in a journal. When a trial gets its outcome, a single transaction stores the
//! outcome, packs the trial's events together with those of other trials that finish at the same time, and removes
//! them from the journal. So a killed process loses at most the events that it had not yet passed to the store:
//! finished trials are complete, and earlier events of unfinished trials are still there.
//!
//! The store knows nothing about reports and makes no decisions: it returns events as they were written.
//!
//! ```
//! use model::Owner;
//! use trialrun_store::{Location, RunFilter, open, open_existing};
//!
//! # let folder = std::env::temp_dir().join(format!("trialrun-store-example-{}", std::process::id()));
//! # std::fs::create_dir_all(&folder)?;
//! let location = Location::File(folder.join("runs.db"));
//! assert!(open_existing(&location)?.is_none());
//! let owner =
//!     Owner { id: "3f8a".into(), host: "build-7".into(), pid: std::process::id(), process: String::new() };
//! let store = open(&location, &owner)?;
//! assert!(store.runs(&RunFilter::default())?.is_empty());
//! # std::fs::remove_dir_all(&folder)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod archive;
mod chain;
mod chain_writer;
mod columns;
mod comparison;
mod database_url;
mod lines;
mod live;
mod location;
mod merge;
mod ordered_events;
mod pack;
mod packs;
pub mod postgres;
mod record;
mod selector;
mod sqlite;
mod test_files;

use model::Owner;

pub use archive::{ArchiveError, Exported, Imported, export, import};
pub use chain::{Difference, Verification};
pub use location::{Location, LocationError};
pub use merge::{MergeError, Merged, merge};
use postgres::PostgresStore;
pub use record::{Judgements, ResultFilter, RunFilter, Store, StoreError, StoredEvent, TrialFilter};
pub use selector::{SelectError, select_run, select_trial};
use sqlite::SqliteStore;

/// Opens the record at `location` to write runs as `owner`, and creates it if it does not exist. The folder of a file
/// must exist. A file that was written by a newer version, or is not a record, is rejected and stays unchanged, byte
/// for byte.
///
/// # Errors
/// Returns an error if the location is not a record that this version can write.
pub fn open(location: &Location, owner: &Owner) -> Result<Box<dyn Store>, StoreError> {
    match location {
        Location::File(path) => {
            tracing::debug!(path = %path.display(), "record opened");
            Ok(Box::new(SqliteStore::open(path)?.owned_by(owner)?))
        }
        Location::Postgres(settings) => {
            tracing::debug!(%settings, "record opened");
            Ok(Box::new(PostgresStore::open(settings, owner)?))
        }
    }
}

/// Opens the record at `location`; `None` if it does not exist. Creates no file. If the user may only read the record, it
/// is opened read-only.
///
/// # Errors
/// Returns an error if the location is not a record that this version can read.
pub fn open_existing(location: &Location) -> Result<Option<Box<dyn Store>>, StoreError> {
    match location {
        Location::File(path) => Ok(SqliteStore::open_existing(path)?.map(|store| Box::new(store) as Box<dyn Store>)),
        Location::Postgres(settings) => {
            Ok(PostgresStore::open_existing(settings)?.map(|store| Box::new(store) as Box<dyn Store>))
        }
    }
}

#[cfg(test)]
mod tests {
    pub(crate) mod contract;
}
