//! Reads what a comparison of a run with its chain of hashes needs.

use std::collections::HashMap;

use rusqlite::types::FromSql;
use rusqlite::{OptionalExtension, Row, Transaction};

use super::SqliteError;
use super::chain::{head, links, run_events};
use super::finish::read_pack;
use crate::Verification;
use crate::columns::{COLUMNS, Column};
use crate::comparison::{DOCUMENTS, RUN_COLUMNS, StoredRun, StoredTrial, compare};
use crate::packs::PackRange;

pub(super) fn verify(transaction: &Transaction<'_>, run: i64, id: &str) -> Result<Verification, SqliteError> {
    let mut late = transaction.prepare_cached(
        "SELECT DISTINCT journal.trial FROM journal JOIN trials ON trials.run = journal.run AND trials.id = journal.trial
         WHERE journal.run = ?1 ORDER BY 1",
    )?;
    let stored = StoredRun {
        links: links(transaction, run)?,
        head: head(transaction, run)?,
        trials: trials(transaction, run)?,
        events: run_events(transaction, run)?,
        late: late.query_map([run], |row| row.get(0))?.collect::<Result<_, _>>()?,
        info: transaction
            .prepare_cached("SELECT info FROM infos WHERE run = ?1")?
            .query_row([run], |row| row.get(0))
            .optional()?,
        columns: columns(transaction, run, RUN_COLUMNS)?,
        summary: columns(transaction, run, ["summary"])?.into_iter().next().flatten(),
        documents: columns(transaction, run, DOCUMENTS)?,
    };
    Ok(compare(id, stored, |pack| read_pack(transaction, pack))?)
}

/// Returns columns of a run.
fn columns<T: FromSql, const N: usize>(
    transaction: &Transaction<'_>,
    run: i64,
    names: [&str; N],
) -> rusqlite::Result<[T; N]> {
    let mut select = transaction.prepare_cached(&format!("SELECT {} FROM runs WHERE no = ?1", names.join(", ")))?;
    let values: Vec<T> = select.query_row([run], |row| (0..N).map(|at| row.get(at)).collect())?;
    values.try_into().map_err(|_| rusqlite::Error::QueryReturnedNoRows)
}

fn trials(transaction: &Transaction<'_>, run: i64) -> rusqlite::Result<HashMap<String, StoredTrial>> {
    let select = format!(
        "SELECT pack, pack_start, pack_end, id, settings, {} FROM trials WHERE run = ?1 ORDER BY no",
        COLUMNS.join(", ")
    );
    let mut select = transaction.prepare_cached(&select)?;
    let stored = |row: &Row<'_>| {
        let columns = (0..COLUMNS.len()).map(|at| row.get::<_, Column<'static>>(at + 5)).collect::<Result<_, _>>()?;
        Ok((row.get(3)?, StoredTrial { place: place(row)?, columns, settings: row.get(4)? }))
    };
    select.query_map([run], stored)?.collect()
}

/// Reads the location of a trial's events from a row that starts with `pack, pack_start, pack_end`.
pub(super) fn place(row: &Row<'_>) -> rusqlite::Result<PackRange> {
    Ok(PackRange::new(row.get(0)?, row.get(1)?, row.get(2)?))
}

#[cfg(test)]
mod tests;
