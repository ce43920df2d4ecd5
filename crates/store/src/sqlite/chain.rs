//! Links of the chain of hashes: they are written together with the events that they cover, and later compared with
//! them.

use std::collections::BTreeMap;

use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};

use super::SqliteError;
use crate::chain::{Hash, link, start};
use crate::chain_writer::Chains;
use crate::comparison::Link;

/// Adds a link to the run's chain, if it has one.
pub(super) fn add(
    chains: &mut Chains,
    transaction: &Transaction<'_>,
    run: i64,
    seq: u64,
    trial: &str,
    digest: &Hash,
) -> Result<(), SqliteError> {
    if !chains.knows(run) {
        chains.set_head(run, head(transaction, run)?);
    }
    if let Some(hash) = chains.add(run, seq, trial, digest) {
        transaction
            .prepare_cached("INSERT INTO links (run, seq, trial, digest, hash) VALUES (?1, ?2, ?3, ?4, ?5)")?
            .execute(params![run, seq as i64, trial, digest, hash])?;
    }
    Ok(())
}

/// Stores the last hash of each run that has new links.
pub(super) fn write(chains: &mut Chains, transaction: &Transaction<'_>) -> Result<(), SqliteError> {
    for (run, hash) in chains.take_changed() {
        set_head(transaction, run, Some(&hash))?;
    }
    Ok(())
}

/// Returns the hash of the run's last link; `None` if it has no chain.
pub(super) fn head(connection: &Connection, run: i64) -> rusqlite::Result<Option<Hash>> {
    let mut select = connection.prepare_cached("SELECT chain FROM runs WHERE no = ?1")?;
    let stored = select.query_row([run], |row| row.get::<_, Option<Vec<u8>>>(0)).optional()?.flatten();
    // A value of any other length is not the hash of a link.
    Ok(stored.map(|hash| hash.try_into().unwrap_or_default()))
}

fn set_head(connection: &Connection, run: i64, hash: Option<&Hash>) -> rusqlite::Result<()> {
    connection.prepare_cached("UPDATE runs SET chain = ?2 WHERE no = ?1")?.execute(params![run, hash])?;
    Ok(())
}

/// Returns the links of a run in order.
pub(super) fn links(connection: &Connection, run: i64) -> rusqlite::Result<Vec<Link>> {
    let mut select =
        connection.prepare_cached("SELECT seq, trial, digest, hash FROM links WHERE run = ?1 ORDER BY seq")?;
    let link = |row: &rusqlite::Row<'_>| {
        Ok(Link {
            seq: row.get::<_, i64>(0)?.unsigned_abs(),
            trial: row.get(1)?,
            digest: row.get(2)?,
            hash: row.get(3)?,
        })
    };
    select.query_map([run], link)?.collect()
}

/// Removes the links for data that was removed from a run, and rebuilds the chain from the remaining links. The run
/// must have been verified before.
pub(super) fn relink(transaction: &Transaction<'_>, run: i64, id: &str) -> rusqlite::Result<()> {
    if head(transaction, run)?.is_none() {
        return Ok(());
    }
    transaction.execute(
        "DELETE FROM links WHERE run = ?1 AND CASE trial
             WHEN '' THEN NOT EXISTS (SELECT 1 FROM journal WHERE run = ?1 AND trial = '' AND seq = links.seq)
             ELSE NOT EXISTS (SELECT 1 FROM trials WHERE run = ?1 AND id = links.trial) END",
        [run],
    )?;
    let mut update = transaction.prepare_cached("UPDATE links SET hash = ?3 WHERE run = ?1 AND seq = ?2")?;
    let mut hash = start(id);
    for kept in links(transaction, run)? {
        hash = link(&hash, kept.seq, &kept.trial, &kept.digest.try_into().unwrap_or_default());
        update.execute(params![run, kept.seq as i64, hash])?;
    }
    set_head(transaction, run, Some(&hash))
}

/// Removes the chain of a run.
pub(super) fn remove(connection: &mut Connection, run: i64) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    transaction.execute("DELETE FROM links WHERE run = ?1", [run])?;
    set_head(&transaction, run, None)?;
    transaction.commit()
}

/// Events of the run itself, by number.
pub(super) fn run_events(connection: &Connection, run: i64) -> rusqlite::Result<BTreeMap<u64, String>> {
    let mut select = connection.prepare_cached("SELECT seq, event FROM journal WHERE run = ?1 AND trial = ''")?;
    select.query_map([run], |row| Ok((row.get::<_, i64>(0)?.unsigned_abs(), row.get(1)?)))?.collect()
}
