//! Engines that are made ahead. Fifty scenarios that wait for their agents leave the processors idle, and when the answers
//! come, fifty others want their engines at once. So a thread whose scenario waits makes the engine of the next scenario
//! that it will play, while no other wants the processor. Every scenario still has an engine of its own.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use script::Runtime;

/// With more at once than this, room is worth more than time: an engine takes a quarter of a megabyte.
const MOST_JOBS: usize = 64;

/// How many engines a run will still need, as far as they may be made ahead.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ahead(Arc<AtomicUsize>);

impl Ahead {
    /// Those of a run with so many scenarios, `jobs` at a time. Where all begin at once, nobody could have made theirs.
    pub(crate) fn of(scenarios: usize, jobs: usize) -> Self {
        let is_of_use = jobs < scenarios && jobs <= MOST_JOBS;
        Self(Arc::new(AtomicUsize::new(if is_of_use { scenarios } else { 0 })))
    }

    /// Whether another one is needed.
    pub(super) fn is_wanted(&self) -> bool {
        self.0.load(Relaxed) > 0
    }

    /// One is made, ahead or not; whether it was still needed.
    pub(super) fn count(&self) -> bool {
        self.0.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_ok()
    }
}

/// An engine for scenarios whose modules are in `directory`, made ahead in the run that counts by `ahead`.
struct Spare {
    ahead: Ahead,
    directory: PathBuf,
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
pub(super) fn keep(ahead: &Ahead, directory: &Path, engine: Runtime) {
    let spare = Spare { ahead: ahead.clone(), directory: directory.to_owned(), engine };
    drop(SPARE.replace(Some(spare)));
}

/// The one that this thread has, if it is for scenarios in `directory` of that run: those of another have other modules.
pub(super) fn take(ahead: &Ahead, directory: &Path) -> Option<Runtime> {
    let spare = SPARE.take()?;
    (Arc::ptr_eq(&spare.ahead.0, &ahead.0) && spare.directory == directory).then_some(spare.engine)
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
        assert!(!Ahead::of(3, 3).is_wanted() && !Ahead::of(10_000, 1_000).is_wanted());
    }

    #[test]
    fn a_spare_engine_is_for_its_run_and_its_directory_and_for_one_scenario() {
        let (run, other, tests) = (Ahead::of(9, 1), Ahead::of(9, 1), Path::new("/tests"));
        keep(&run, tests, engine());
        assert!(is_there() && take(&run, tests).is_some());
        assert!(!is_there() && take(&run, tests).is_none());
        keep(&run, tests, engine());
        assert!(take(&other, tests).is_none());
        keep(&run, tests, engine());
        assert!(take(&run, Path::new("/other")).is_none());
    }
}
