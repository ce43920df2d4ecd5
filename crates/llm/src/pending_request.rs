//! Requests that are waiting for their response.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Requests that currently have no response. Clones share one list.
#[derive(Debug, Clone, Default)]
pub struct PendingRequests {
    open: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    next: u64,
    waiting: Vec<(u64, String, Instant)>,
}

/// A request that has no response yet, or only part of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    /// Description of the request.
    pub what: String,
    /// How long it has been waiting.
    pub since: Duration,
}

impl PendingRequests {
    /// Registers a request; it waits until the returned [`PendingRequest`] is dropped.
    pub fn begin(&self, what: impl Into<String>) -> PendingRequest {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.next += 1;
        let id = open.next;
        open.waiting.push((id, what.into(), Instant::now()));
        PendingRequest { id, pending: self.clone() }
    }

    /// Returns the waiting requests, oldest first.
    pub fn waiting(&self) -> Vec<Waiting> {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        open.waiting
            .iter()
            .map(|(_, what, begun)| Waiting { what: what.clone(), since: now.saturating_duration_since(*begun) })
            .collect()
    }

    /// Returns how long the oldest request has been waiting; `None` if there is none.
    pub fn longest(&self) -> Option<Duration> {
        self.waiting().first().map(|waiting| waiting.since)
    }
}

/// A request in progress. It counts as answered when this value is dropped, which also happens if the caller
/// disconnects.
#[derive(Debug)]
pub struct PendingRequest {
    id: u64,
    pending: PendingRequests,
}

impl Drop for PendingRequest {
    fn drop(&mut self) {
        let mut open = self.pending.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.waiting.retain(|(id, ..)| *id != self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_pending_until_its_guard_is_dropped() {
        let pending = PendingRequests::default();
        assert_eq!(pending.longest(), None);
        let first = pending.begin("first");
        let second = pending.begin("second");
        let names = |pending: &PendingRequests| pending.waiting().into_iter().map(|one| one.what).collect::<Vec<_>>();
        assert_eq!(names(&pending), ["first", "second"]);
        drop(first);
        assert_eq!(names(&pending), ["second"]);
        assert!(pending.longest().is_some());
        drop(second);
        assert_eq!(pending.longest(), None);
    }
}
