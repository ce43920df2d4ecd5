//! Leases of runs.

use jiff::Timestamp;
use model::{Lease, Owner};
use rusqlite::{Connection, Row, params};

use super::{SqliteError, run_number};
use crate::StoreError;
use crate::columns::time;

/// Reads the lease in a row of the `runs` table.
pub(super) fn read(row: &Row<'_>) -> rusqlite::Result<Option<Lease>> {
    let (owner, renewed) = (row.get::<_, Option<String>>("owner")?, row.get::<_, Option<i64>>("renewed_us")?);
    let owner = owner.and_then(|json| serde_json::from_str(&json).ok());
    Ok(owner.zip(renewed).map(|(owner, renewed)| Lease { owner, renewed_at: time(renewed) }))
}

/// Renews the lease of the run with that number. If the run has another owner, this is an error.
pub(super) fn renew(
    connection: &Connection,
    owner: Option<&str>,
    run: i64,
    id: &str,
    at: Timestamp,
) -> Result<(), SqliteError> {
    let renewed = connection
        .prepare_cached("UPDATE runs SET renewed_us = ?3 WHERE no = ?1 AND owner IS ?2")?
        .execute(params![run, owner, at.as_microsecond()])?;
    if renewed == 0 { Err(taken(connection, id)?) } else { Ok(()) }
}

/// Rejects a run whose lease is not `expected`.
pub(super) fn compare(connection: &Connection, id: &str, expected: Option<&Lease>) -> Result<(), SqliteError> {
    let found = connection.prepare_cached("SELECT * FROM runs WHERE id = ?1")?.query_row([id], read)?;
    if found.as_ref() == expected { Ok(()) } else { Err(taken(connection, id)?) }
}

/// Returns the error that names the owner of a run.
fn taken(connection: &Connection, id: &str) -> Result<SqliteError, SqliteError> {
    if run_number(connection, id)?.is_none() {
        return Ok(StoreError::UnknownRun(id.to_owned()).into());
    }
    let lease = connection.prepare_cached("SELECT * FROM runs WHERE id = ?1")?.query_row([id], read)?;
    let owner = lease.map_or_else(|| "an unknown process".to_owned(), |lease| lease.owner.to_string());
    Ok(StoreError::Taken { run: id.to_owned(), owner }.into())
}

/// Returns the stored form of an owner.
pub(super) fn stored(owner: &Owner) -> Result<String, StoreError> {
    serde_json::to_string(owner).map_err(|error| StoreError::Backend(error.to_string()))
}
