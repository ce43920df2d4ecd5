//! The chain of hashes over a run, which reveals changes to recorded data.
//!
//! Each finished trial and each event of the run itself is a *link*. Its digest covers the stored events, and its hash
//! covers the digest and the hash of the previous link. So the hash of the last link depends on everything that was
//! recorded, and is the *hash of the run*. The chain has no secret: anyone who can write the record can compute a new
//! chain, which is noticed only if the hash was kept elsewhere.

use sha2::{Digest, Sha256};

/// SHA-256 digest.
pub(crate) type Hash = [u8; 32];

/// Result of verifying a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verification {
    /// The run has no chain, because it was recorded before there were chains.
    Unchained,
    /// Everything is as recorded.
    Intact {
        /// Hash of the run.
        hash: String,
        /// Number of finished trials.
        trials: usize,
    },
    /// The record was changed.
    Changed {
        /// Differences, in the order in which the trials finished; at least one.
        differences: Vec<Difference>,
    },
}

/// Difference between a run and its chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Id of the trial; absent if the difference concerns the run itself.
    pub trial: Option<String>,
    /// Description, such as `its events were changed`.
    pub reason: String,
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.trial {
            Some(trial) => write!(f, "{trial}: {}", self.reason),
            None => write!(f, "the run: {}", self.reason),
        }
    }
}

/// Returns the hash that precedes the first link of a run.
pub(crate) fn start(run: &str) -> Hash {
    Sha256::new().chain_update(b"trialrun run\0").chain_update(run).finalize().into()
}

/// Returns the hash of a link: for the trial `trial`, or for an event of the run itself if that is empty. `seq` is the
/// number of its last event.
pub(crate) fn link(previous: &Hash, seq: u64, trial: &str, digest: &Hash) -> Hash {
    let hash = Sha256::new().chain_update(b"trialrun link\0").chain_update(previous).chain_update(seq.to_be_bytes());
    let hash = hash.chain_update((trial.len() as u64).to_be_bytes()).chain_update(trial);
    hash.chain_update(digest).finalize().into()
}

/// Returns the digest of stored events.
pub(crate) fn digest(lines: &[u8]) -> Hash {
    Sha256::digest(lines).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_of_a_link_depends_on_each_of_its_parts() {
        let (first, digest) = (start("a"), digest(b"{}\n"));
        let hashes = [
            link(&first, 1, "a", &digest),
            link(&start("b"), 1, "a", &digest),
            link(&first, 2, "a", &digest),
            link(&first, 1, "b", &digest),
            link(&first, 1, "a", &first),
        ];
        for (at, hash) in hashes.iter().enumerate() {
            assert!(hashes[..at].iter().all(|other| other != hash), "{at}");
        }
        assert_eq!(model::text::hex(&hashes[0]).len(), 64);
    }
}
