//! Judgements in an SQLite file of their own, next to the record: they can be deleted without losing runs, and writing
//! them does not delay the record.

use std::path::Path;

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, TransactionBehavior};

use super::migrate::{Header, header};
use super::{SAFELY, SqliteError, TIMEOUT, write_ahead};
use crate::{Judgements, StoreError};

/// Application id of judgement files (`trlj`).
const MARK: u32 = 0x7472_6c6a;

/// Name of the file.
pub(super) const FILE: &str = "judgements.db";

/// Version of the file format. A file with another version is emptied.
const FORMAT: u32 = 1;

/// Judgements in a file.
pub(super) struct SqliteJudgements {
    connection: Connection,
}

impl SqliteJudgements {
    /// Opens the file at `path`, or creates it in its folder, which must exist. Judgements that were stored before
    /// `since` are removed. A file that is not a judgement file is rejected and does not change.
    pub(super) fn open(path: &Path, since: Timestamp) -> Result<Self, StoreError> {
        let no = |error: &dyn std::fmt::Display| StoreError::Open { location: path.into(), reason: error.to_string() };
        match header(path).map_err(|error| no(&error))? {
            Header::Absent | Header::Database { mark: MARK, .. } => {}
            // Another process may be creating the file right now.
            Header::Database { mark: 0, version: 0 } => {}
            _ => return Err(StoreError::Foreign { location: path.into() }),
        }
        let mut connection = Connection::open(path).map_err(|error| no(&error))?;
        prepare(&mut connection, since).map_err(|error| no(&error))?;
        Ok(Self { connection })
    }
}

impl Judgements for SqliteJudgements {
    fn get(&self, key: &str) -> Result<Option<String>, StoreError> {
        let get = || {
            let mut statement = self.connection.prepare_cached("SELECT judgement FROM judgements WHERE key = ?1")?;
            statement.query_row([key], |row| row.get(0)).optional()
        };
        Ok(get().map_err(SqliteError::from)?)
    }

    fn put(&self, key: &str, judgement: &str, at: Timestamp) -> Result<(), StoreError> {
        let put = || {
            let mut statement =
                self.connection.prepare_cached("INSERT OR REPLACE INTO judgements VALUES (?1, ?2, ?3)")?;
            statement.execute((key, at.as_second(), judgement)).map(drop)
        };
        Ok(put().map_err(SqliteError::from)?)
    }
}

fn prepare(connection: &mut Connection, since: Timestamp) -> rusqlite::Result<()> {
    connection.busy_timeout(TIMEOUT)?;
    write_ahead(connection)?;
    connection.execute_batch(SAFELY)?;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    if super::format(&transaction)? != FORMAT {
        transaction.execute_batch(
            "DROP TABLE IF EXISTS judgements;
             CREATE TABLE judgements (
                 key       TEXT PRIMARY KEY,
                 stored_s  INTEGER NOT NULL,
                 judgement TEXT NOT NULL
             ) STRICT, WITHOUT ROWID;",
        )?;
        transaction.pragma_update(None, "application_id", MARK)?;
        transaction.pragma_update(None, "user_version", FORMAT)?;
    }
    transaction.execute("DELETE FROM judgements WHERE stored_s < ?1", [since.as_second()])?;
    transaction.commit()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_with_other_contents_is_not_changed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("judgements.db");
        std::fs::write(&path, "notes").unwrap();
        assert!(matches!(SqliteJudgements::open(&path, Timestamp::UNIX_EPOCH), Err(StoreError::Foreign { .. })));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "notes");
        let record = dir.path().join("runs.db");
        drop(super::super::SqliteStore::open(&record).unwrap());
        assert!(matches!(SqliteJudgements::open(&record, Timestamp::UNIX_EPOCH), Err(StoreError::Foreign { .. })));
    }
}
