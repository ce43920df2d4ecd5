//! The owner of the runs that this process writes.

use jiff::Timestamp;
use model::{Lease, Owner, RunRow};

/// Returns a new owner of runs that this process writes.
pub fn owner() -> Owner {
    Owner {
        id: uuid::Uuid::new_v4().to_string(),
        host: sandbox::host_name(),
        pid: std::process::id(),
        process: sandbox::process_mark(),
    }
}

/// Returns `true` if the run is in progress: it has no end, and its owner has neither ended nor let its lease expire.
/// On another machine, an ended process is noticed only when its lease expires.
pub fn is_active(run: &RunRow) -> bool {
    let is_held = |lease: &Lease| lease.is_valid(Timestamp::now()) && !sandbox::process_has_ended(&lease.owner.process);
    run.finished_at.is_none() && run.lease.as_ref().is_some_and(is_held)
}
