//! When work must end, in time of the processor: a machine that is busy with something else stops nobody.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};

/// When the work under way on this thread must end, and whether it was told so.
#[derive(Default)]
pub(crate) struct Deadline {
    at: Cell<Option<Duration>>,
    passed: Cell<bool>,
    /// Set by whoever wants the work to end before its time is over.
    stop: Option<Arc<AtomicBool>>,
}

impl Deadline {
    /// One that has passed as soon as `stop` is set, too.
    pub fn stopped_by(stop: Option<Arc<AtomicBool>>) -> Self {
        Self { stop, ..Self::default() }
    }

    /// Work begins that may use `budget`.
    pub fn begin(&self, budget: Duration) {
        self.begin_at(used(), budget);
    }

    /// The same, where this thread has [`used`] so much now: to ask takes a call of the system.
    pub fn begin_at(&self, used: Duration, budget: Duration) {
        self.passed.set(false);
        self.at.set(used.checked_add(budget));
    }

    /// The work is over.
    pub fn end(&self) {
        self.at.set(None);
    }

    /// Whether the work must end now.
    pub fn has_passed(&self) -> bool {
        let is_told = || self.stop.as_ref().is_some_and(|stop| stop.load(Ordering::Relaxed));
        let passed = self.at.get().is_some_and(|at| is_told() || used() >= at);
        if passed {
            self.passed.set(true);
        }
        passed
    }

    /// Whether the last work was told to end.
    pub fn was_told(&self) -> bool {
        self.passed.get()
    }
}

thread_local! {
    static STARTED: Instant = Instant::now();
}

/// What this thread has used of the processor so far; the time that has passed where a system does not count it.
pub(crate) fn used() -> Duration {
    match clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID) {
        Ok(time) => Duration::from(time),
        Err(_) => STARTED.with(Instant::elapsed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_uses_nothing() {
        let deadline = Deadline::default();
        deadline.begin(Duration::from_millis(20));
        let (_keep, nothing) = std::sync::mpsc::channel::<()>();
        let _ = nothing.recv_timeout(Duration::from_millis(40));
        assert!(!deadline.has_passed());
        while !deadline.has_passed() {}
        assert!(deadline.was_told());
        deadline.begin(Duration::from_secs(60));
        assert!(!deadline.was_told());
    }
}
