//! Deadline for a piece of work in CPU time, so that nothing is stopped just because the machine is busy with
//! something else.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};

/// Deadline for the current work on this thread, and whether it has been reported as passed.
#[derive(Default)]
pub(crate) struct Deadline {
    at: Cell<Option<Duration>>,
    passed: Cell<bool>,
    /// Set by another thread to stop the work before its deadline.
    stop: Option<Arc<AtomicBool>>,
}

impl Deadline {
    /// Creates a deadline that also counts as passed when `stop` is set.
    pub fn stopped_by(stop: Option<Arc<AtomicBool>>) -> Self {
        Self { stop, ..Self::default() }
    }

    /// Starts work with the time limit `budget`.
    pub fn begin(&self, budget: Duration) {
        self.begin_at(used(), budget);
    }

    /// Like `begin`, with the current value of [`used`], which saves a system call.
    pub fn begin_at(&self, used: Duration, budget: Duration) {
        self.passed.set(false);
        self.at.set(used.checked_add(budget));
    }

    /// Ends the work.
    pub fn end(&self) {
        self.at.set(None);
    }

    /// Returns `true` if the work must stop now.
    pub fn has_passed(&self) -> bool {
        let is_stopped = || self.stop.as_ref().is_some_and(|stop| stop.load(Ordering::Relaxed));
        let passed = self.at.get().is_some_and(|at| is_stopped() || used() >= at);
        if passed {
            self.passed.set(true);
        }
        passed
    }

    /// Returns `true` if the deadline of the last work was reported as passed.
    pub fn was_reported(&self) -> bool {
        self.passed.get()
    }
}

thread_local! {
    static STARTED: Instant = Instant::now();
}

/// Returns the CPU time that this thread has used, or elapsed time on systems that do not measure CPU time.
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
    fn waiting_consumes_no_cpu_time() {
        let deadline = Deadline::default();
        deadline.begin(Duration::from_millis(20));
        // The wait takes at least as long as the CPU time of the other thread.
        let other = std::thread::spawn(|| {
            let began = used();
            while used() - began < Duration::from_millis(40) {}
        });
        other.join().unwrap();
        assert!(!deadline.has_passed());
        while !deadline.has_passed() {}
        assert!(deadline.was_reported());
        deadline.begin(Duration::from_secs(60));
        assert!(!deadline.was_reported());
    }
}
