//! Questions that a judge is answering. An equal question waits for the answer instead of being sent again.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::lock::OwnedMutexGuard;

/// Hash of everything that an answer depends on.
pub(super) type Key = [u8; 32];

/// Questions in flight, by the key of their answer in the cache.
#[derive(Debug, Default)]
pub(super) struct Flights(Mutex<HashMap<Key, Arc<Flight>>>);

/// A question that one trial is asking, while other trials may wait for the answer.
#[derive(Debug, Default)]
struct Flight {
    turn: Arc<futures_util::lock::Mutex<()>>,
    /// True if the judge gave no answer. The waiting trials then ask at the same time instead of one after another.
    has_failed: AtomicBool,
}

/// Permission to ask a question. Dropping it, also on cancellation, lets the next waiting trial ask.
#[derive(Debug)]
pub(super) struct Turn<'f> {
    flights: &'f Flights,
    key: Key,
    flight: Arc<Flight>,
    guard: Option<OwnedMutexGuard<()>>,
}

impl Flights {
    /// Waits until no other trial is asking the question. The answer may then be in the cache. If the judge gave no
    /// answer, all waiting trials may ask at the same time.
    pub(super) async fn turn(&self, key: &Key) -> Turn<'_> {
        let flight = {
            let mut flights = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(flights.entry(*key).or_default())
        };
        // Created before waiting, so that it also cleans up if the waiting question is cancelled.
        let mut turn = Turn { flights: self, key: *key, flight, guard: None };
        let guard = Arc::clone(&turn.flight.turn).lock_owned().await;
        if !turn.flight.has_failed.load(Ordering::Acquire) {
            turn.guard = Some(guard);
        }
        turn
    }
}

impl Turn<'_> {
    /// Notes that the judge gave no answer.
    pub(super) fn failed(&self) {
        self.flight.has_failed.store(true, Ordering::Release);
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut flights = self.flights.0.lock().unwrap_or_else(PoisonError::into_inner);
        // The map and this turn hold the flight; any other holder waits for it.
        if let Entry::Occupied(entry) = flights.entry(self.key)
            && Arc::ptr_eq(entry.get(), &self.flight)
            && Arc::strong_count(&self.flight) == 2
        {
            entry.remove();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    fn poll<F: Future>(future: std::pin::Pin<&mut F>) -> Poll<F::Output> {
        future.poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn a_cancelled_question_is_followed_by_one_other_and_a_failed_one_by_all() {
        let (flights, key) = (Flights::default(), [1; 32]);
        let Poll::Ready(leader) = poll(pin!(flights.turn(&key))) else { panic!("nobody else asks") };
        let (mut second, mut third) = (pin!(flights.turn(&key)), pin!(flights.turn(&key)));
        assert!(poll(second.as_mut()).is_pending() && poll(third.as_mut()).is_pending());
        assert!(poll(pin!(flights.turn(&[2; 32]))).is_ready(), "another question does not wait");
        drop(leader);
        let Poll::Ready(second) = poll(second.as_mut()) else { panic!("the leader is gone") };
        assert!(poll(third.as_mut()).is_pending());
        let mut fourth = pin!(flights.turn(&key));
        assert!(poll(fourth.as_mut()).is_pending());
        second.failed();
        drop(second);
        let (Poll::Ready(third), Poll::Ready(fourth)) = (poll(third.as_mut()), poll(fourth.as_mut())) else {
            panic!("all are let through")
        };
        drop((third, fourth));
        assert!(flights.0.lock().unwrap().is_empty());
    }

    #[test]
    fn a_waiting_question_that_is_cancelled_leaves_nothing_behind() {
        let (flights, key) = (Flights::default(), [1; 32]);
        let Poll::Ready(leader) = poll(pin!(flights.turn(&key))) else { panic!("nobody else asks") };
        {
            let mut waiting = Box::pin(flights.turn(&key));
            assert!(poll(waiting.as_mut()).is_pending());
        }
        drop(leader);
        assert!(flights.0.lock().unwrap().is_empty());
    }
}
