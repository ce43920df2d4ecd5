//! Record in a single SQLite file.

mod append;
mod chain;
mod finish;
mod judgements;
mod lease;
mod migrate;
mod query;
mod replay;
mod results;
mod schema;
#[cfg(test)]
mod tests;
mod verify;

use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use model::{
    Envelope, Event, Lease, LiveTrial, Owner, RunInfo, RunResults, RunRow, SideEffects, Summary, TrialRecord, TrialRow,
};
use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension, TransactionBehavior};

use self::judgements::SqliteJudgements;
use self::migrate::{Header, header, pending};
use crate::chain_writer::Chains;
use crate::pack::Packer;
use crate::{Judgements, ResultFilter, RunFilter, Store, StoreError, StoredEvent, TrialFilter, Verification};

/// Error of this backend. It keeps the library out of [`StoreError`].
#[derive(Debug, thiserror::Error)]
enum SqliteError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Library(#[from] rusqlite::Error),
}

impl From<SqliteError> for StoreError {
    fn from(error: SqliteError) -> Self {
        match error {
            SqliteError::Store(error) => error,
            SqliteError::Library(error) => Self::Backend(error.to_string()),
        }
    }
}

/// Time limit for a writer that waits for another one. A batch takes milliseconds.
const TIMEOUT: Duration = Duration::from_secs(10);
/// A commit survives the end of the process, and data that was checkpointed into the file survives a system crash.
const SAFELY: &str = "PRAGMA synchronous = NORMAL";
/// Number of unused pages from which the file is made smaller at the end of a run. They are left by large events, which
/// are compressed when their trial finishes.
const MANY_UNUSED: i64 = 1024;
/// Maximum time for which an unrecognised file is checked again before it is rejected.
const SECOND_LOOKS: Duration = Duration::from_millis(300);

/// Record in a SQLite file. Only one process writes a run; others may read it, and write other runs, at the same time.
pub struct SqliteStore {
    connection: Connection,
    packer: Packer,
    chains: Chains,
    /// Stored form of the owner of runs that are written through this store.
    owner: Option<String>,
    path: PathBuf,
    /// Identity of the file when it was opened.
    identity: Option<(u64, u64)>,
}

impl SqliteStore {
    /// Opens the record at `path`, and creates it if it does not exist. The folder must exist. A file that was written
    /// by a newer version, or is not a record, is rejected and stays unchanged, byte for byte.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let no =
            |reason: &dyn std::fmt::Display| StoreError::Open { location: path.into(), reason: reason.to_string() };
        refuse_strangers(path)?;
        let connection = Connection::open(path).map_err(|error| no(&error))?;
        let mut store = Self::with(connection, path)?;
        store.prepare(path).map_err(|error| match error {
            SqliteError::Library(error) => no(&error),
            error => error.into(),
        })?;
        // Before it is prepared, the file may not exist.
        store.identity = Some(identity(path).map_err(|error| no(&error))?);
        Ok(store)
    }

    /// Opens the record at `path`; `None` if it does not exist. Creates no file. If the user may only read the record,
    /// it is opened read-only.
    pub fn open_existing(path: &Path) -> Result<Option<Self>, StoreError> {
        match header(path) {
            Ok(Header::Absent) => Ok(None),
            _ => Self::open(path).or_else(|error| Self::open_read_only(path).map_err(|_| error)).map(Some),
        }
    }

    /// Opens the record at `path`, whose file or folder cannot be written to.
    fn open_read_only(path: &Path) -> Result<Self, StoreError> {
        judge(path)?;
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
        let byte = |byte: &u8| match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'/' | b'-' | b'.' | b'_' => char::from(*byte).to_string(),
            _ => format!("%{byte:02X}"),
        };
        let name: String = path.as_os_str().as_bytes().iter().map(byte).collect();
        let open = |query: &str| {
            let connection = Connection::open_with_flags(format!("file:{name}{query}"), flags)?;
            connection.busy_timeout(TIMEOUT)?;
            let found = format(&connection)?;
            Ok::<_, rusqlite::Error>((connection, found))
        };
        // If the index of the log cannot be created, no process can write, so the file is immutable. If there is a
        // log, this is an error, because the events in the log would be missing.
        let (connection, found) = open("")
            .or_else(|error| match has_log(path) {
                true => Err(error),
                false => open("?immutable=1"),
            })
            .map_err(SqliteError::from)?;
        if found != schema::STEPS.len() as u32 {
            let reason = "its format is older, and to bring it up to date it must be written".to_owned();
            return Err(StoreError::Open { location: path.into(), reason });
        }
        Self::with(connection, path)
    }

    fn with(connection: Connection, path: &Path) -> Result<Self, StoreError> {
        let (packer, path) = (Packer::new()?, path.to_owned());
        Ok(Self { connection, packer, chains: Chains::default(), owner: None, path, identity: None })
    }

    /// Sets the owner of runs recorded through this store from now on.
    pub fn owned_by(mut self, owner: &Owner) -> Result<Self, StoreError> {
        self.owner = Some(lease::stored(owner)?);
        Ok(self)
    }

    fn prepare(&mut self, path: &Path) -> Result<(), SqliteError> {
        let connection = &mut self.connection;
        connection.busy_timeout(TIMEOUT)?;
        connection.set_prepared_statement_cache_capacity(32);
        // A file that is being created has no data to lose, so nothing is synced to disk until its tables exist.
        // Otherwise, there would be half a dozen syncs before the first run could start.
        let is_new = format(connection)? == 0;
        connection.execute_batch(if is_new { "PRAGMA synchronous = OFF" } else { SAFELY })?;
        connection.execute_batch("PRAGMA foreign_keys = ON")?;
        write_ahead(connection)?;

        // Usually there is nothing to do, and then a reader should not wait for a writer.
        if format(connection)? == schema::STEPS.len() as u32 {
            return Ok(connection.execute_batch(SAFELY)?);
        }
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let found = format(&transaction)?;
        let steps = pending(found, schema::STEPS).ok_or_else(|| newer(path, found))?;
        for step in steps {
            transaction.execute_batch(step)?;
        }
        transaction.pragma_update(None, "application_id", schema::MARK)?;
        transaction.pragma_update(None, "user_version", schema::STEPS.len() as u32)?;
        transaction.commit()?;
        Ok(connection.execute_batch(SAFELY)?)
    }

    fn run_number(&self, run: &str) -> Result<i64, SqliteError> {
        Ok(run_number(&self.connection, run)?.ok_or_else(|| StoreError::UnknownRun(run.to_owned()))?)
    }
}

impl Store for SqliteStore {
    fn append(&mut self, events: &[Envelope]) -> Result<(), StoreError> {
        let (packer, chains) = (&mut self.packer, &mut self.chains);
        if let Err(error) = append::append(&mut self.connection, packer, chains, self.owner.as_deref(), events) {
            self.chains.clear();
            return Err(error.into());
        }
        if events.iter().any(|envelope| matches!(envelope.event, Event::RunFinished { .. })) {
            // Without it, later runs use the space.
            let _ = free_unused(&self.connection, MANY_UNUSED);
        }
        // SQLite would continue to write to a file that was unlinked.
        match identity(&self.path) {
            Ok(found) if Some(found) == self.identity => Ok(()),
            _ => Err(StoreError::Gone { location: self.path.as_path().into() }),
        }
    }

    fn renew(&mut self, run: &str, at: Timestamp) -> Result<(), StoreError> {
        Ok(lease::renew(&self.connection, self.owner.as_deref(), self.run_number(run)?, run, at)?)
    }

    fn runs(&self, filter: &RunFilter) -> Result<Vec<RunRow>, StoreError> {
        Ok(query::runs(&self.connection, filter)?)
    }

    fn info(&self, run: &str) -> Result<RunInfo, StoreError> {
        Ok(query::info(&self.connection, run)?)
    }

    fn summary(&self, run: &str) -> Result<Summary, StoreError> {
        Ok(query::summary(&self.connection, self.run_number(run)?)?)
    }

    fn results(&self, filter: &ResultFilter) -> Result<Vec<RunResults>, StoreError> {
        Ok(results::results(&self.connection, filter)?)
    }

    fn cases(&self) -> Result<Vec<(String, String)>, StoreError> {
        Ok(results::cases(&self.connection).map_err(SqliteError::from)?)
    }

    fn each_trial(&self, filter: &TrialFilter, take: &mut dyn FnMut(TrialRow) -> bool) -> Result<(), StoreError> {
        Ok(query::each_trial(&self.connection, filter, take)?)
    }

    fn records(&self, run: &str, trials: &[&str]) -> Result<Vec<TrialRecord>, StoreError> {
        Ok(query::records(&self.connection, run, trials)?)
    }

    fn trial_events(&self, run: &str, trial: &str) -> Result<Vec<StoredEvent>, StoreError> {
        Ok(replay::of_trial(&self.connection, self.run_number(run)?, trial)?)
    }

    fn events<'a>(
        &'a self,
        run: &str,
    ) -> Result<Box<dyn Iterator<Item = Result<StoredEvent, StoreError>> + 'a>, StoreError> {
        Ok(Box::new(replay::of_run(&self.connection, run)?))
    }

    fn live(&self, run: &str) -> Result<Vec<LiveTrial>, StoreError> {
        Ok(replay::live(&self.connection, self.run_number(run)?)?)
    }

    fn reopen(&mut self, run: &str, lease: Option<&Lease>, at: Timestamp) -> Result<(), StoreError> {
        let number = self.run_number(run)?;
        self.chains.clear();
        Ok(append::reopen(&mut self.connection, (self.owner.as_deref(), at), number, run, lease)?)
    }

    fn rewrite(&mut self, run: &str, trial: &str, change: &mut dyn FnMut(&mut Event)) -> Result<(), StoreError> {
        let number = self.run_number(run)?;
        Ok(append::rewrite(&mut self.connection, &mut self.chains, number, trial, change)?)
    }

    fn verify(&self, run: &str) -> Result<Verification, StoreError> {
        let transaction = self.connection.unchecked_transaction().map_err(SqliteError::from)?;
        Ok(verify::verify(&transaction, self.run_number(run)?, run)?)
    }

    fn remove_chain(&mut self, run: &str) -> Result<(), StoreError> {
        let number = self.run_number(run)?;
        self.chains.clear();
        Ok(chain::remove(&mut self.connection, number).map_err(SqliteError::from)?)
    }

    fn record_cleanup(&mut self, run: &str, removed: &[SideEffects]) -> Result<(), StoreError> {
        let number = self.run_number(run)?;
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate);
        let transaction = transaction.map_err(SqliteError::from)?;
        let mut all = cleaned(&transaction, number)?;
        all.extend(removed.iter().cloned());
        let text = serde_json::to_string(&all).map_err(|error| StoreError::Backend(error.to_string()))?;
        transaction
            .execute("INSERT OR REPLACE INTO cleanups (run, removed) VALUES (?1, ?2)", (number, text))
            .and_then(|_| transaction.commit())
            .map_err(|error| SqliteError::from(error).into())
    }

    fn cleaned(&self, run: &str) -> Result<Vec<SideEffects>, StoreError> {
        Ok(cleaned(&self.connection, self.run_number(run)?)?)
    }

    fn remove(&mut self, run: &str) -> Result<(), StoreError> {
        let number = self.run_number(run)?;
        // The number may be given to another run.
        self.chains.clear();
        Ok(remove(&self.connection, number).map_err(SqliteError::from)?)
    }

    fn judgements(&self, since: Timestamp) -> Result<Box<dyn Judgements>, StoreError> {
        Ok(Box::new(SqliteJudgements::open(&self.path.with_file_name(judgements::FILE), since)?))
    }
}

/// Rejects files that are not records, or are newer. While another process is creating a file, it looks unknown for
/// some milliseconds, so an unknown file is checked repeatedly before it is rejected.
fn refuse_strangers(path: &Path) -> Result<(), StoreError> {
    let start = Instant::now();
    loop {
        match judge(path) {
            Err(StoreError::Foreign { .. }) if start.elapsed() < SECOND_LOOKS => {
                std::thread::sleep(Duration::from_millis(5));
            }
            verdict => return verdict,
        }
    }
}

/// Checks the file without letting SQLite write to it.
fn judge(path: &Path) -> Result<(), StoreError> {
    let no = |reason: &dyn std::fmt::Display| StoreError::Open { location: path.into(), reason: reason.to_string() };
    let (version, mark) = match header(path).map_err(|error| no(&error))? {
        Header::Absent => return Ok(()),
        Header::Foreign => return Err(StoreError::Foreign { location: path.into() }),
        Header::Database { version, mark } => (version, mark),
    };
    if mark == schema::MARK && version > schema::STEPS.len() as u32 {
        return Err(newer(path, version));
    }
    // The last commits may still be in the write-ahead log.
    let (version, mark) = if has_log(path) {
        let reader = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY).map_err(|error| no(&error))?;
        reader.busy_timeout(TIMEOUT).map_err(|error| no(&error))?;
        // Reads both values in one transaction, in case another process is writing.
        reader.execute_batch("BEGIN").map_err(|error| no(&error))?;
        let mark = reader.pragma_query_value(None, "application_id", |row| row.get(0)).map_err(|error| no(&error))?;
        (format(&reader).map_err(|error| no(&error))?, mark)
    } else {
        (version, mark)
    };
    if mark == schema::MARK {
        if version > schema::STEPS.len() as u32 { Err(newer(path, version)) } else { Ok(()) }
    } else if mark == 0 && version == 0 && is_empty(path).map_err(|error| no(&error))? {
        Ok(())
    } else {
        Err(StoreError::Foreign { location: path.into() })
    }
}

/// Returns `true` if the write-ahead log is not empty.
fn has_log(path: &Path) -> bool {
    let log = path.with_file_name(format!("{}-wal", path.file_name().unwrap_or_default().to_string_lossy()));
    log.metadata().is_ok_and(|log| log.len() > 0)
}

/// Returns the identity of the file at `path`: its device and inode numbers.
fn identity(path: &Path) -> std::io::Result<(u64, u64)> {
    let found = std::fs::metadata(path)?;
    Ok((found.dev(), found.ino()))
}

/// Returns `true` if a database has no tables, for example while another process is creating it.
fn is_empty(path: &Path) -> rusqlite::Result<bool> {
    let reader = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    reader.busy_timeout(TIMEOUT)?;
    let marked: u32 = reader.pragma_query_value(None, "application_id", |row| row.get(0))?;
    let tables: i64 = reader.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    Ok(tables == 0 || marked == schema::MARK)
}

/// Turns on the write-ahead log. Two processes that create the same file may do this at the same time, and SQLite does
/// not wait for this lock on its own.
fn write_ahead(connection: &Connection) -> rusqlite::Result<()> {
    let start = Instant::now();
    loop {
        let mode: String = connection.pragma_query_value(None, "journal_mode", |row| row.get(0))?;
        if mode == "wal" {
            return Ok(());
        }
        // Only a file without tables accepts the first setting. Its journal can be in memory, because the file is
        // empty; a journal file would be synced to disk eight times before the first run could start.
        let turned = connection
            .execute_batch("PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = MEMORY")
            .and_then(|()| connection.pragma_update(None, "journal_mode", "wal"));
        match turned {
            Ok(()) => return Ok(()),
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) && start.elapsed() < TIMEOUT => {
                std::thread::sleep(Duration::from_millis(5));
            }
            Err(error) => return Err(error),
        }
    }
}

fn format(connection: &Connection) -> rusqlite::Result<u32> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

fn newer(path: &Path, found: u32) -> StoreError {
    StoreError::Newer { location: path.into(), found, known: schema::STEPS.len() as u32 }
}

fn remove(connection: &Connection, run: i64) -> rusqlite::Result<()> {
    connection.execute("DELETE FROM runs WHERE no = ?1", [run])?;
    free_unused(connection, 1)
}

/// Makes the file smaller if it has at least `many` unused pages.
fn free_unused(connection: &Connection, many: i64) -> rusqlite::Result<()> {
    let unused: i64 = connection.pragma_query_value(None, "freelist_count", |row| row.get(0))?;
    if unused < many {
        return Ok(());
    }
    // Each step frees one page, so the statement is stepped to its end.
    let mut freeing = connection.prepare("PRAGMA incremental_vacuum")?;
    let mut pages = freeing.query([])?;
    while pages.next()?.is_some() {}
    Ok(())
}

/// Returns the side effects that were removed after a run.
fn cleaned(connection: &Connection, run: i64) -> Result<Vec<SideEffects>, SqliteError> {
    let mut statement = connection.prepare_cached("SELECT removed FROM cleanups WHERE run = ?1")?;
    let text: Option<String> = statement.query_row([run], |row| row.get(0)).optional()?;
    let read = |text: String| serde_json::from_str(&text).map_err(|error| StoreError::Backend(error.to_string()));
    Ok(text.map(read).transpose()?.unwrap_or_default())
}

fn run_number(connection: &Connection, run: &str) -> rusqlite::Result<Option<i64>> {
    let mut statement = connection.prepare_cached("SELECT no FROM runs WHERE id = ?1")?;
    statement.query_row([run], |row| row.get(0)).optional()
}
