//! Leases of runs.

use jiff::Timestamp;
use model::{Lease, Owner};
use tokio_postgres::Row;

use super::pool::{PostgresError, Session};
use crate::StoreError;
use crate::columns::time;

/// Reads the lease in a row of the `runs` table.
pub(super) fn read(row: &Row) -> Result<Option<Lease>, tokio_postgres::Error> {
    let (owner, renewed): (Option<&str>, Option<i64>) = (row.try_get("owner")?, row.try_get("renewed_us")?);
    let owner = owner.and_then(|json| serde_json::from_str(json).ok());
    Ok(owner.zip(renewed).map(|(owner, renewed)| Lease { owner, renewed_at: time(renewed) }))
}

/// Returns the lease of a run.
pub(super) async fn find(session: &mut Session, id: &str) -> Result<Option<Lease>, PostgresError> {
    let row = session.first("SELECT owner, renewed_us FROM runs WHERE id = $1", &[&id]).await?;
    Ok(row.as_ref().map(read).transpose()?.flatten())
}

/// Renews the lease of a run. If the run has another owner, this is an error.
pub(super) async fn renew(
    session: &mut Session,
    owner: Option<&str>,
    id: &str,
    at: Timestamp,
) -> Result<(), PostgresError> {
    let update = "UPDATE runs SET renewed_us = $3 WHERE id = $1 AND owner IS NOT DISTINCT FROM $2";
    match session.execute(update, &[&id, &owner, &at.as_microsecond()]).await? {
        0 => Err(taken(session, id).await?),
        _ => Ok(()),
    }
}

/// Returns the error that names the owner of a run.
pub(super) async fn taken(session: &mut Session, id: &str) -> Result<PostgresError, PostgresError> {
    super::run_number(session, id).await?;
    let lease = find(session, id).await?;
    let owner = lease.map_or_else(|| "an unknown process".to_owned(), |lease| lease.owner.to_string());
    Ok(StoreError::Taken { run: id.to_owned(), owner }.into())
}

/// Returns the stored form of an owner.
pub(super) fn stored(owner: &Owner) -> Result<String, StoreError> {
    serde_json::to_string(owner).map_err(|error| StoreError::Backend(error.to_string()))
}
