//! Ownership of a run that is being written.

use std::fmt;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

/// Process that writes runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// Random id. No two owners have the same, not even in one process.
    pub id: String,
    /// Name of the machine.
    pub host: String,
    /// Id of the process on that machine.
    pub pid: u32,
    /// Text by which other processes on the same machine recognise that the process has ended.
    pub process: String,
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {} on {}", self.pid, self.host)
    }
}

/// Right of an owner to write a run. It expires if the owner does not renew it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    /// Owner of the run.
    pub owner: Owner,
    /// Time at which the owner last wrote to the run or renewed the lease.
    pub renewed_at: Timestamp,
}

impl Lease {
    /// Age at which a lease expires.
    pub const LIFETIME: SignedDuration = SignedDuration::from_secs(60);
    /// Interval at which an owner renews its lease while there is nothing to write.
    pub const RENEWAL: Duration = Duration::from_secs(15);

    /// Returns `true` if the lease has not expired. A clock that is behind that of the owner makes it last longer.
    pub fn is_valid(&self, now: Timestamp) -> bool {
        now.duration_since(self.renewed_at) <= Self::LIFETIME
    }
}
