//! Who has a processor: scenarios that were answered go on at once, others begin when there is room for one more, and what
//! has time waits until nobody else wants one. Fifty that begin at once have all sent their message at the end only; one after
//! the other, the first has sent its own when the second begins, and its agent answers while the others do.

use std::sync::{Condvar, LazyLock, Mutex, MutexGuard, PoisonError};
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

/// For how long whoever has a processor counts, and how long one that begins waits. Code of the user's may take as long as it
/// likes, and holds up nobody for longer.
const PATIENCE: Duration = Duration::from_millis(100);

/// So many more begin at once than there are processors: while one is handed on, it would have nothing to do.
const IN_HAND: usize = 1;

/// Those of the machine.
static PROCESSORS: LazyLock<Processors> =
    LazyLock::new(|| Processors::of(available_parallelism().map_or(1, usize::from), PATIENCE));

/// Processors that are given away and come back.
struct Processors {
    count: usize,
    patience: Duration,
    held: Mutex<Held>,
    /// Tells one of those who wait that there is room.
    room: Condvar,
}

/// Who has a processor, and since when. More may be wanted than there are.
#[derive(Default)]
struct Held {
    places: Vec<(u64, Instant)>,
    next: u64,
}

impl Processors {
    fn of(count: usize, patience: Duration) -> Self {
        Self { count, patience, held: Mutex::default(), room: Condvar::new() }
    }

    /// Entries come and go whole, whoever panics.
    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Since when those are at work that count.
    fn at_work(&self, held: &Held, now: Instant) -> impl Iterator<Item = Instant> {
        let since = held.places.iter().map(|(_, since)| *since);
        since.filter(move |since| now.saturating_duration_since(*since) < self.patience)
    }

    fn give<'a>(&'a self, held: &mut Held) -> Place<'a> {
        let number = held.next;
        held.next += 1;
        held.places.push((number, Instant::now()));
        Place { number, of: self }
    }

    fn wait(&self) -> Place<'_> {
        let mut held = self.held();
        let mut now = Instant::now();
        let until = now + self.patience;
        while now < until && self.at_work(&held, now).count() >= self.count + IN_HAND {
            let oldest = self.at_work(&held, now).min().map_or(until, |since| since + self.patience);
            let moment = oldest.min(until).saturating_duration_since(now);
            held = self.room.wait_timeout(held, moment).unwrap_or_else(PoisonError::into_inner).0;
            now = Instant::now();
        }
        self.give(&mut held)
    }

    fn now(&self) -> Place<'_> {
        self.give(&mut self.held())
    }

    fn idle(&self) -> Option<Place<'_>> {
        let mut held = self.held();
        (self.at_work(&held, Instant::now()).count() < self.count).then(|| self.give(&mut held))
    }
}

/// A processor to work with. It is given back when this is dropped.
pub(super) struct Place<'a> {
    number: u64,
    of: &'a Processors,
}

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
        let mut held = self.of.held();
        if let Some(at) = held.places.iter().position(|(number, _)| *number == self.number) {
            held.places.swap_remove(at);
        }
        self.of.room.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
    use std::sync::mpsc::channel;
    use std::thread::scope;

    use super::*;

    const FOR_EVER: Duration = Duration::from_secs(3_600);

    #[test]
    fn who_goes_on_has_a_processor_at_once_and_what_has_time_only_where_nobody_wants_it() {
        let processors = Processors::of(2, FOR_EVER);
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
    fn who_begins_does_so_when_there_is_room() {
        let processors = Processors::of(1, FOR_EVER);
        let held = [processors.now(), processors.now()];
        let (tell, told) = channel();
        scope(|threads| {
            threads.spawn(|| {
                let _place = processors.wait();
                tell.send(()).unwrap();
            });
            drop(held);
            told.recv().unwrap();
        });
    }

    #[test]
    fn who_has_a_processor_for_long_holds_up_nobody() {
        let processors = Processors::of(1, Duration::from_millis(1));
        let _held = [processors.now(), processors.now()];
        drop((processors.wait(), processors.wait()));
    }

    #[test]
    fn whoever_panics_gives_it_back() {
        let processors = Processors::of(1, FOR_EVER);
        let work = AssertUnwindSafe(|| {
            let _place = processors.now();
            resume_unwind(Box::new(()))
        });
        assert!(catch_unwind::<_, ()>(work).is_err());
        assert!(processors.idle().is_some());
    }
}
