//! Extending the chains of hashes of runs that are being written.

use std::collections::HashMap;

use sha2::{Digest, Sha256};

use crate::chain::{Hash, link, start};
use crate::lines::Lines;

/// What a writer knows about the chains of the runs that it writes. It does not read back what it has written, so that
/// changes during the run are also found.
#[derive(Default, Clone)]
pub(crate) struct Chains {
    /// Hash of the last link of each run; `None` for a run without a chain.
    heads: HashMap<i64, Option<Hash>>,
    /// Events so far of trials that have no outcome, by the number of the run and the id of the trial.
    open: HashMap<(i64, String), Sha256>,
    /// Runs with new links.
    changed: Vec<i64>,
}

impl Chains {
    /// Starts the chain of a new run.
    pub(crate) fn begin(&mut self, run: i64, id: &str) {
        self.heads.insert(run, Some(start(id)));
        self.changed.push(run);
    }

    /// Returns `true` if the end of the run's chain is known.
    pub(crate) fn knows(&self, run: i64) -> bool {
        self.heads.contains_key(&run)
    }

    /// Sets the hash of the last link of a run, which is stored; `None` if the run has no chain.
    pub(crate) fn set_head(&mut self, run: i64, head: Option<Hash>) {
        self.heads.insert(run, head);
    }

    /// Adds a link to the chain of a run, whose end must be known. Returns its hash, which must be stored; `None` if the
    /// run has no chain.
    pub(crate) fn add(&mut self, run: i64, seq: u64, trial: &str, digest: &Hash) -> Option<Hash> {
        let head = self.heads.get_mut(&run)?.as_mut()?;
        *head = link(head, seq, trial, digest);
        let hash = *head;
        if !self.changed.contains(&run) {
            self.changed.push(run);
        }
        Some(hash)
    }

    /// Remembers events of a trial that has no outcome yet.
    pub(crate) fn note(&mut self, run: i64, trial: &str, lines: &Lines) {
        let key = (run, trial.to_owned());
        if lines.from_the_start {
            self.open.insert(key, Sha256::new_with_prefix(lines.bytes()));
        } else if let Some(digest) = self.open.get_mut(&key) {
            digest.update(lines.bytes());
        }
    }

    /// Replaces the events of a trial that has no outcome yet, if they were `before`, by `after`.
    pub(crate) fn renote(&mut self, run: i64, trial: &str, before: &[u8], after: &[u8]) {
        let noted = self.open.get_mut(&(run, trial.to_owned()));
        if let Some(digest) = noted.filter(|digest| Sha256::clone(digest).finalize() == Sha256::digest(before)) {
            *digest = Sha256::new_with_prefix(after);
        }
    }

    /// Returns the digest of a trial that ends with `lines`. `stored` contains all its events as stored, which are
    /// used if this writer has not seen them all.
    pub(crate) fn digest(&mut self, run: i64, trial: &str, lines: &Lines, stored: &[u8]) -> Hash {
        match self.open.remove(&(run, trial.to_owned())) {
            Some(digest) if !lines.from_the_start => digest.chain_update(lines.bytes()).finalize().into(),
            _ => crate::chain::digest(stored),
        }
    }

    /// Returns the runs that have new links, each with the hash of its last link.
    pub(crate) fn take_changed(&mut self) -> Vec<(i64, Hash)> {
        let changed = std::mem::take(&mut self.changed).into_iter();
        changed.filter_map(|run| Some((run, (*self.heads.get(&run)?)?))).collect()
    }

    /// Forgets everything, because the noted events were not stored, or others were stored.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}
