//! Requests that wait for their answer.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The requests that are unanswered now. Clones share one list.
#[derive(Debug, Clone, Default)]
pub struct Flights {
    open: Arc<Mutex<Open>>,
}

#[derive(Debug, Default)]
struct Open {
    next: u64,
    waiting: Vec<(u64, String, Instant)>,
}

/// A request that has no answer yet, or not the whole of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    /// Which request, in words.
    pub what: String,
    /// How long it has been waiting.
    pub since: Duration,
}

impl Flights {
    /// A request has arrived; it waits until the returned [`Flight`] is dropped.
    pub fn begin(&self, what: impl Into<String>) -> Flight {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.next += 1;
        let id = open.next;
        open.waiting.push((id, what.into(), Instant::now()));
        Flight { id, flights: self.clone() }
    }

    /// The requests that wait, the oldest first.
    pub fn waiting(&self) -> Vec<Waiting> {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        open.waiting
            .iter()
            .map(|(_, what, begun)| Waiting { what: what.clone(), since: now.saturating_duration_since(*begun) })
            .collect()
    }

    /// How long the oldest has been waiting; `None` if all are answered.
    pub fn longest(&self) -> Option<Duration> {
        self.waiting().first().map(|waiting| waiting.since)
    }
}

/// A request on its way. It counts as answered when this is dropped, which also happens when the one who asked leaves.
#[derive(Debug)]
pub struct Flight {
    id: u64,
    flights: Flights,
}

impl Drop for Flight {
    fn drop(&mut self) {
        let mut open = self.flights.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.waiting.retain(|(id, ..)| *id != self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_waits_until_its_flight_is_dropped() {
        let flights = Flights::default();
        assert_eq!(flights.longest(), None);
        let first = flights.begin("first");
        let second = flights.begin("second");
        let names = |flights: &Flights| flights.waiting().into_iter().map(|one| one.what).collect::<Vec<_>>();
        assert_eq!(names(&flights), ["first", "second"]);
        drop(first);
        assert_eq!(names(&flights), ["second"]);
        assert!(flights.longest().is_some());
        drop(second);
        assert_eq!(flights.longest(), None);
    }
}
