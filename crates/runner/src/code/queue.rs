//! Who has a processor: scenarios that were answered go on at once, others begin when there is room for one more, and what
//! has time waits until nobody else wants one. Fifty that begin at once have all sent their message at the end only; one after
//! the other, the first has sent its own when the second begins, and its agent answers while the others do.

use std::sync::{Condvar, LazyLock, Mutex, MutexGuard, PoisonError};
use std::thread::available_parallelism;
use std::time::Duration;

/// How long one that begins waits for others. Code of the user's may take as long as it likes, and holds up nobody for longer.
const PATIENCE: Duration = Duration::from_millis(100);

/// Those of the machine.
static PROCESSORS: LazyLock<Processors> = LazyLock::new(|| {
    let count = available_parallelism().ok().and_then(|count| count.get().try_into().ok());
    Processors::of(count.unwrap_or(1))
});

/// Processors that are given away and come back.
struct Processors {
    /// How many have nothing to do; less than none where more are wanted than there are.
    free: Mutex<isize>,
    /// Tells one of those who wait that there is room.
    room: Condvar,
}

impl Processors {
    fn of(count: isize) -> Self {
        Self { free: Mutex::new(count), room: Condvar::new() }
    }

    /// A number is whole, whoever panics.
    fn free(&self) -> MutexGuard<'_, isize> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait(&self) -> Place<'_> {
        let waited = self.room.wait_timeout_while(self.free(), PATIENCE, |free| *free <= 0);
        *waited.unwrap_or_else(PoisonError::into_inner).0 -= 1;
        Place(self)
    }

    fn now(&self) -> Place<'_> {
        *self.free() -= 1;
        Place(self)
    }

    fn idle(&self) -> Option<Place<'_>> {
        let mut free = self.free();
        (*free > 0).then(|| {
            *free -= 1;
            Place(self)
        })
    }
}

/// A processor to work with. It is given back when this is dropped.
pub(super) struct Place<'a>(&'a Processors);

impl Place<'static> {
    /// Waits for one, to begin with.
    pub(super) fn wait() -> Self {
        PROCESSORS.wait()
    }

    /// One to go on with, whoever has it.
    pub(super) fn now() -> Self {
        PROCESSORS.now()
    }

    /// One that nobody wants.
    pub(super) fn idle() -> Option<Self> {
        PROCESSORS.idle()
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        *self.0.free() += 1;
        self.0.room.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
    use std::sync::mpsc::channel;
    use std::thread::scope;

    use super::*;

    #[test]
    fn who_goes_on_has_a_processor_at_once_and_what_has_time_only_where_nobody_wants_it() {
        let processors = Processors::of(2);
        let first = processors.wait();
        let spare = processors.idle();
        assert!(spare.is_some() && processors.idle().is_none());
        let more = [processors.now(), processors.now()];
        drop((first, spare));
        assert!(processors.idle().is_none(), "two are at work");
        drop(more);
        assert!(processors.idle().is_some());
    }

    #[test]
    fn who_begins_does_so_when_there_is_room_or_has_waited_long_enough() {
        let processors = Processors::of(1);
        let held = processors.now();
        let (tell, told) = channel();
        scope(|threads| {
            threads.spawn(|| {
                let _place = processors.wait();
                tell.send(()).unwrap();
            });
            drop(held);
            told.recv().unwrap();
        });
        let _held = processors.now();
        drop(processors.wait());
    }

    #[test]
    fn whoever_panics_gives_it_back() {
        let processors = Processors::of(1);
        let work = AssertUnwindSafe(|| {
            let _place = processors.now();
            resume_unwind(Box::new(()))
        });
        assert!(catch_unwind::<_, ()>(work).is_err());
        assert!(processors.idle().is_some());
    }
}
