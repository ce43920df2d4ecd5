//! Links of the chain of hashes: they are written together with the events that they cover, and later compared with
//! them.

use std::collections::{BTreeMap, HashMap};

use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};
use sha2::{Digest, Sha256};

use super::SqliteError;
use super::finish::Lines;
use crate::chain::{Hash, link, start};

/// What a writer knows about the chains of the runs that it writes. It does not read back what it has written, so that
/// changes during the run are also found.
#[derive(Default)]
pub(super) struct Chains {
    /// Hash of the last link of each run; `None` for a run without a chain.
    heads: HashMap<i64, Option<Hash>>,
    /// Events so far of trials that have no outcome, by the number of the run and the id of the trial.
    open: HashMap<(i64, String), Sha256>,
    /// Runs with new links.
    changed: Vec<i64>,
}

impl Chains {
    /// Starts the chain of a new run.
    pub(super) fn begin(&mut self, run: i64, id: &str) {
        self.heads.insert(run, Some(start(id)));
        self.changed.push(run);
    }

    /// Adds a link to the run's chain, if it has one.
    pub(super) fn add(
        &mut self,
        transaction: &Transaction<'_>,
        run: i64,
        seq: u64,
        trial: &str,
        digest: &Hash,
    ) -> Result<(), SqliteError> {
        let head = match self.heads.get(&run) {
            Some(head) => *head,
            None => *self.heads.entry(run).or_insert(head(transaction, run)?),
        };
        let Some(previous) = head else { return Ok(()) };
        let hash = link(&previous, seq, trial, digest);
        transaction
            .prepare_cached("INSERT INTO links (run, seq, trial, digest, hash) VALUES (?1, ?2, ?3, ?4, ?5)")?
            .execute(params![run, seq as i64, trial, digest, hash])?;
        self.heads.insert(run, Some(hash));
        if !self.changed.contains(&run) {
            self.changed.push(run);
        }
        Ok(())
    }

    /// Remembers events of a trial that has no outcome yet.
    pub(super) fn note(&mut self, run: i64, trial: &str, lines: &Lines) {
        let key = (run, trial.to_owned());
        if lines.from_the_start {
            self.open.insert(key, Sha256::new_with_prefix(lines.bytes()));
        } else if let Some(digest) = self.open.get_mut(&key) {
            digest.update(lines.bytes());
        }
    }

    /// Replaces the events of a trial that has no outcome yet, if they were `before`, by `after`.
    pub(super) fn renote(&mut self, run: i64, trial: &str, before: &[u8], after: &[u8]) {
        let noted = self.open.get_mut(&(run, trial.to_owned()));
        if let Some(digest) = noted.filter(|digest| Sha256::clone(digest).finalize() == Sha256::digest(before)) {
            *digest = Sha256::new_with_prefix(after);
        }
    }

    /// Returns the digest of a trial that ends with `lines`. `stored` contains all its events as stored, which are
    /// used if this writer has not seen them all.
    pub(super) fn digest(&mut self, run: i64, trial: &str, lines: &Lines, stored: &[u8]) -> Hash {
        match self.open.remove(&(run, trial.to_owned())) {
            Some(digest) if !lines.from_the_start => digest.chain_update(lines.bytes()).finalize().into(),
            _ => crate::chain::digest(stored),
        }
    }

    /// Stores the last hash of each run that has new links.
    pub(super) fn write(&mut self, transaction: &Transaction<'_>) -> Result<(), SqliteError> {
        for run in self.changed.drain(..) {
            if let Some(Some(hash)) = self.heads.get(&run) {
                set_head(transaction, run, Some(hash))?;
            }
        }
        Ok(())
    }

    /// Forgets everything, because the noted events were not stored, or others were stored.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

/// A link as stored.
pub(super) struct Link {
    pub(super) seq: u64,
    /// Id of the trial; empty for an event of the run itself.
    pub(super) trial: String,
    pub(super) digest: Vec<u8>,
    pub(super) hash: Vec<u8>,
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
