//! Events of a run in order: those of finished trials are in packs, all others in the journal.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use crate::pack::event;
use crate::packs::{PackRange, Packs};
use crate::{StoreError, StoredEvent};

/// Number of journal rows read at a time.
const PAGE: usize = 256;

/// A run's events as they are stored.
pub(crate) trait EventRows {
    /// Returns the pack with that number, if there is one.
    fn pack(&mut self, pack: i64) -> Result<Option<Vec<u8>>, StoreError>;

    /// Returns at most `most` events of a trial, or the run's own under '', after the number `after`.
    fn journal(&mut self, trial: &str, after: i64, most: usize) -> Result<Vec<(u64, StoredEvent)>, StoreError>;
}

/// Events of one trial, or the run's own events, in order.
enum Source {
    /// Finished trial that has not been read yet.
    Packed(PackRange),
    /// Events of a finished trial.
    Lines(VecDeque<(u64, StoredEvent)>),
    /// Journal rows after a number.
    Journal { trial: String, page: VecDeque<(u64, StoredEvent)>, after: i64 },
}

/// Iterator over a run's events in order. Trials that did not overlap in time are not in memory at the same time,
/// except in a few packs.
pub(crate) struct OrderedEvents<R> {
    rows: R,
    packs: Packs,
    sources: Vec<Source>,
    /// Number of the next event in each source that has one.
    next: BinaryHeap<Reverse<(u64, usize)>>,
}

impl<R: EventRows> OrderedEvents<R> {
    /// Returns all events in `rows`. Finished trials have the number of their first event and their place, and trials in
    /// the journal their id and the number of their first event.
    pub(crate) fn new(rows: R, finished: Vec<(u64, PackRange)>, open: Vec<(String, i64)>) -> Self {
        let mut events = Self { rows, packs: Packs::default(), sources: Vec::new(), next: BinaryHeap::new() };
        for (first, place) in finished {
            events.add(first, Source::Packed(place));
        }
        for (trial, first) in open {
            let source = Source::Journal { trial, page: VecDeque::new(), after: first.saturating_sub(1) };
            events.add(first.unsigned_abs(), source);
        }
        events
    }

    fn add(&mut self, first: u64, source: Source) {
        self.next.push(Reverse((first, self.sources.len())));
        self.sources.push(source);
    }

    fn take(&mut self, index: usize) -> Result<Option<StoredEvent>, StoreError> {
        let Some(source) = self.sources.get_mut(index) else { return Ok(None) };
        if let Source::Packed(place) = *source {
            let rows = &mut self.rows;
            *source = Source::Lines(events(self.packs.lines(place, |pack| rows.pack(pack))?)?.into());
        }
        fill(&mut self.rows, source)?;
        let (taken, following) = match source {
            Source::Packed(_) => (None, None),
            Source::Lines(lines) => (lines.pop_front(), lines.front().map(|(seq, _)| *seq)),
            Source::Journal { page, .. } => {
                let taken = page.pop_front();
                fill(&mut self.rows, source)?;
                let Source::Journal { page, .. } = source else { return Ok(None) };
                (taken, page.front().map(|(seq, _)| *seq))
            }
        };
        match following {
            Some(seq) => self.next.push(Reverse((seq, index))),
            None => *source = Source::Lines(VecDeque::new()),
        }
        Ok(taken.map(|(_, event)| event))
    }
}

impl<R: EventRows> Iterator for OrderedEvents<R> {
    type Item = Result<StoredEvent, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        while let Some(Reverse((_, at))) = self.next.pop() {
            match self.take(at) {
                Ok(Some(event)) => return Some(Ok(event)),
                Ok(None) => {}
                Err(error) => {
                    self.next.clear();
                    return Some(Err(error));
                }
            }
        }
        None
    }
}

/// Reads the next rows of a journal source that has none left in memory.
fn fill(rows: &mut impl EventRows, source: &mut Source) -> Result<(), StoreError> {
    if let Source::Journal { trial, page, after } = source
        && page.is_empty()
    {
        *page = rows.journal(trial, *after, PAGE)?.into();
        if let Some((seq, _)) = page.back() {
            *after = *seq as i64;
        }
    }
    Ok(())
}

/// Parses the events in a trial's lines.
pub(crate) fn events(lines: &str) -> Result<Vec<(u64, StoredEvent)>, StoreError> {
    lines.lines().map(event).collect()
}
