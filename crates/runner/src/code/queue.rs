//! Where engines wait to be made: as many are made at once as there are processors. Fifty that are made at once are all
//! ready at the end only; one after the other, the first has sent its message when the second is made, and its agent answers
//! while the others are.

use std::sync::{Condvar, LazyLock, Mutex, MutexGuard, PoisonError};
use std::thread::available_parallelism;

/// How many may be at work.
static FREE: LazyLock<Mutex<usize>> = LazyLock::new(|| Mutex::new(available_parallelism().map_or(1, usize::from)));

/// Tells one of those who wait that there is room.
static ROOM: Condvar = Condvar::new();

/// Does `work`, which must end by itself, when there is a processor for it.
pub(super) fn in_turn<T>(work: impl FnOnce() -> T) -> T {
    let _place = Place::take();
    work()
}

/// One of the places, given back when it is dropped.
struct Place;

impl Place {
    fn take() -> Self {
        let mut free = ROOM.wait_while(free(), |free| *free == 0).unwrap_or_else(PoisonError::into_inner);
        *free -= 1;
        Self
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        *free() += 1;
        ROOM.notify_one();
    }
}

/// A number is whole, whoever panics.
fn free() -> MutexGuard<'static, usize> {
    FREE.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread::{scope, yield_now};

    use super::*;

    fn processors() -> usize {
        available_parallelism().map_or(1, usize::from)
    }

    #[test]
    fn no_more_are_at_work_than_there_are_processors() {
        let (now, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let work = || {
            most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            yield_now();
            now.fetch_sub(1, Ordering::SeqCst);
        };
        scope(|threads| {
            for _ in 0..processors() * 8 {
                threads.spawn(|| in_turn(work));
            }
        });
        assert!((1..=processors()).contains(&most.into_inner()));
    }

    #[test]
    fn whoever_panics_gives_its_place_back() {
        for _ in 0..=processors() {
            let work = AssertUnwindSafe(|| in_turn(|| resume_unwind(Box::new(()))));
            assert!(catch_unwind::<_, ()>(work).is_err());
        }
        assert_eq!(in_turn(|| "done"), "done");
    }
}
