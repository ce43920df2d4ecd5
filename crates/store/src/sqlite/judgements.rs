//! Judgements that several runs share, in a separate SQLite file. They do not belong to any run, and losing them costs
//! only requests.

use std::path::Path;

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, TransactionBehavior};

use super::migrate::{Header, header};
use super::{SAFELY, SqliteError, TIMEOUT, write_ahead};
use crate::StoreError;

/// Application id of judgement files (`trlj`).
const MARK: u32 = 0x7472_6c6a;

/// Version of the file format. A file with another version is emptied.
const FORMAT: u32 = 1;

/// Judgements by key. Several processes may use the same file.
pub struct Judgements {
    connection: Connection,
}

impl Judgements {
    /// Opens the file at `path`, or creates it in its folder, which must exist. Judgements that were stored before
    /// `since` are removed.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written, or if it is not a judgement file. Such a file does not change.
    pub fn open(path: &Path, since: Timestamp) -> Result<Self, StoreError> {
        let no = |error: &dyn std::fmt::Display| StoreError::Open { path: path.to_owned(), reason: error.to_string() };
        match header(path).map_err(|error| no(&error))? {
            Header::Absent | Header::Database { mark: MARK, .. } => {}
            // Another process may be creating the file right now.
            Header::Database { mark: 0, version: 0 } => {}
            _ => return Err(StoreError::Foreign { path: path.to_owned() }),
        }
        let mut connection = Connection::open(path).map_err(|error| no(&error))?;
        prepare(&mut connection, since).map_err(|error| no(&error))?;
        Ok(Self { connection })
    }

    /// Returns the judgement with this key.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read.
    pub fn get(&self, key: &str) -> Result<Option<String>, StoreError> {
        let get = || {
            let mut statement = self.connection.prepare_cached("SELECT judgement FROM judgements WHERE key = ?1")?;
            statement.query_row([key], |row| row.get(0)).optional()
        };
        Ok(get().map_err(SqliteError::from)?)
    }

    /// Stores a judgement, replacing any with the same key. It must not contain secrets.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub fn put(&self, key: &str, judgement: &str, at: Timestamp) -> Result<(), StoreError> {
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

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn judgements_are_kept_until_they_are_too_old() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("judgements.db");
        let first = Judgements::open(&path, at(0)).unwrap();
        let second = Judgements::open(&path, at(0)).unwrap();
        assert_eq!(first.get("k").unwrap(), None);
        first.put("k", "one", at(100)).unwrap();
        second.put("k", "two", at(200)).unwrap();
        first.put("old", "three", at(100)).unwrap();
        assert_eq!(
            (first.get("k").unwrap().as_deref(), second.get("old").unwrap().as_deref()),
            (Some("two"), Some("three"))
        );
        drop((first, second));
        let later = Judgements::open(&path, at(150)).unwrap();
        assert_eq!((later.get("k").unwrap().as_deref(), later.get("old").unwrap()), (Some("two"), None));
    }

    #[test]
    fn a_file_with_other_contents_is_not_changed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("judgements.db");
        std::fs::write(&path, "notes").unwrap();
        assert!(matches!(Judgements::open(&path, at(0)), Err(StoreError::Foreign { .. })));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "notes");
        let record = dir.path().join("runs.db");
        drop(crate::open(&record, 1).unwrap());
        assert!(matches!(Judgements::open(&record, at(0)), Err(StoreError::Foreign { .. })));
    }
}
