//! Engines that are made ahead. Fifty scenarios that wait for their agents leave the processors idle, and when the answers
//! come, fifty others want their engines at once. So a thread whose scenario waits makes the engine of the next scenario
//! that it will play, while no other wants the processor. Every scenario still has an engine of its own.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use script::Runtime;

/// With more at once than this, room is worth more than time: an engine takes a quarter of a megabyte.
const MOST_JOBS: usize = 64;

/// How many engines a run will still need, if they may be made ahead.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ahead(Option<Arc<AtomicUsize>>);

impl Ahead {
    /// Those of a run with so many scenarios, `jobs` at a time. Where all begin at once, nobody could have made theirs.
    pub(crate) fn of(scenarios: usize, jobs: usize) -> Self {
        let is_of_use = jobs < scenarios && jobs <= MOST_JOBS;
        Self(is_of_use.then(|| Arc::new(AtomicUsize::new(scenarios))))
    }

    /// Whether threads may have more than one engine.
    pub(super) fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Whether another one is needed.
    pub(super) fn is_wanted(&self) -> bool {
        self.0.as_ref().is_some_and(|left| left.load(Relaxed) > 0)
    }

    /// One is made, ahead or not; whether it was still needed.
    pub(super) fn count(&self) -> bool {
        let take = |left: &Arc<AtomicUsize>| left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_ok();
        self.0.as_ref().is_some_and(take)
    }

    fn is_same(&self, other: &Self) -> bool {
        matches!((&self.0, &other.0), (Some(own), Some(other)) if Arc::ptr_eq(own, other))
    }
}

/// An engine made ahead, in the run that counts by `ahead`.
struct Spare {
    ahead: Ahead,
    engine: Runtime,
}

thread_local! {
    static SPARE: RefCell<Option<Spare>> = const { RefCell::new(None) };
}

/// Whether this thread has one.
pub(super) fn is_there() -> bool {
    SPARE.with_borrow(Option::is_some)
}

/// Keeps `engine` for the next scenario that this thread plays.
pub(super) fn keep(ahead: &Ahead, engine: Runtime) {
    drop(SPARE.replace(Some(Spare { ahead: ahead.clone(), engine })));
}

/// The one that this thread has, if it is for that run: those of another have other modules.
pub(super) fn take(ahead: &Ahead) -> Option<Runtime> {
    SPARE.take().filter(|spare| spare.ahead.is_same(ahead)).map(|spare| spare.engine)
}

#[cfg(test)]
mod tests {
    use script::Options;

    use super::*;

    fn engine() -> Runtime {
        Runtime::new(Options::new("/")).unwrap()
    }

    #[test]
    fn no_more_are_made_ahead_than_there_are_scenarios_for() {
        let ahead = Ahead::of(3, 2);
        assert!(ahead.is_wanted() && ahead.count() && ahead.count() && ahead.count());
        assert!(!ahead.is_wanted() && !ahead.count());
        assert!(!Ahead::of(3, 3).is_on() && !Ahead::of(10_000, 1_000).is_wanted());
    }

    #[test]
    fn a_spare_engine_is_for_its_run_and_for_one_scenario() {
        let (run, other) = (Ahead::of(9, 1), Ahead::of(9, 1));
        keep(&run, engine());
        assert!(is_there() && take(&run).is_some());
        assert!(!is_there() && take(&run).is_none());
        keep(&run, engine());
        assert!(take(&other).is_none() && take(&run).is_none());
    }
}
