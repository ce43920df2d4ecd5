//! Reads events in order: those of finished trials from their packs, all others from the journal.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use model::{Event, LiveTrial};
use rusqlite::{Connection, OptionalExtension, Transaction, params};

use super::pack::{damaged, event};
use super::packed::{PackRange, Packs};
use super::{SqliteError, run_number};
use crate::{StoreError, StoredEvent};

/// Number of journal rows read at a time.
const PAGE: usize = 256;

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
pub(super) struct Events<'a> {
    /// Keeps a consistent view of the run while it is read.
    transaction: Transaction<'a>,
    run: i64,
    packs: Packs,
    sources: Vec<Source>,
    /// Number of the next event in each source that has one.
    next: BinaryHeap<Reverse<(u64, usize)>>,
}

impl<'a> Events<'a> {
    pub(super) fn open(connection: &'a Connection, run: &str) -> Result<Self, SqliteError> {
        let transaction = connection.unchecked_transaction()?;
        let number = run_number(&transaction, run)?.ok_or_else(|| StoreError::UnknownRun(run.to_owned()))?;
        let mut sources = Vec::new();
        let mut next = BinaryHeap::new();
        {
            let mut packed = transaction
                .prepare_cached("SELECT pack, pack_start, pack_end, first_seq FROM trials WHERE run = ?1")?;
            let mut rows = packed.query([number])?;
            while let Some(row) = rows.next()? {
                next.push(Reverse((row.get::<_, i64>(3)?.unsigned_abs(), sources.len())));
                sources.push(Source::Packed(PackRange::from_row(row)?));
            }
            let mut open =
                transaction.prepare_cached("SELECT trial, min(seq) FROM journal WHERE run = ?1 GROUP BY trial")?;
            let mut rows = open.query([number])?;
            while let Some(row) = rows.next()? {
                let first: i64 = row.get(1)?;
                next.push(Reverse((first.unsigned_abs(), sources.len())));
                sources.push(Source::Journal { trial: row.get(0)?, page: VecDeque::new(), after: first - 1 });
            }
        }
        Ok(Self { transaction, run: number, packs: Packs::default(), sources, next })
    }

    fn take(&mut self, index: usize) -> Result<Option<StoredEvent>, SqliteError> {
        let Some(source) = self.sources.get_mut(index) else { return Ok(None) };
        if let Source::Packed(place) = *source {
            *source = Source::Lines(events(self.packs.lines(&self.transaction, place)?)?.into());
        }
        fill(&self.transaction, self.run, source)?;
        let (taken, following) = match source {
            Source::Packed(_) => (None, None),
            Source::Lines(lines) => (lines.pop_front(), lines.front().map(|(seq, _)| *seq)),
            Source::Journal { page, .. } => {
                let taken = page.pop_front();
                fill(&self.transaction, self.run, source)?;
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

impl Iterator for Events<'_> {
    type Item = Result<StoredEvent, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        while let Some(Reverse((_, at))) = self.next.pop() {
            match self.take(at) {
                Ok(Some(event)) => return Some(Ok(event)),
                Ok(None) => {}
                Err(error) => {
                    self.next.clear();
                    return Some(Err(error.into()));
                }
            }
        }
        None
    }
}

/// Reads the next rows of a journal source that has none left in memory.
fn fill(connection: &Connection, run: i64, source: &mut Source) -> Result<(), SqliteError> {
    if let Source::Journal { trial, page, after } = source
        && page.is_empty()
    {
        *page = journal(connection, run, trial, *after, PAGE)?.into();
        if let Some((seq, _)) = page.back() {
            *after = *seq as i64;
        }
    }
    Ok(())
}

fn events(lines: &str) -> Result<Vec<(u64, StoredEvent)>, StoreError> {
    lines.lines().map(event).collect()
}

fn journal(
    connection: &Connection,
    run: i64,
    trial: &str,
    after: i64,
    most: usize,
) -> Result<Vec<(u64, StoredEvent)>, SqliteError> {
    let mut statement = connection
        .prepare_cached("SELECT event FROM journal WHERE run = ?1 AND trial = ?2 AND seq > ?3 ORDER BY seq LIMIT ?4")?;
    let mut rows = statement.query(params![run, trial, after, i64::try_from(most).unwrap_or(-1)])?;
    let mut events = Vec::new();
    while let Some(row) = rows.next()? {
        events.push(event(row.get_ref(0)?.as_str().map_err(|error| damaged(&error))?)?);
    }
    Ok(events)
}

/// Returns all events of one trial.
pub(super) fn of_trial(connection: &Connection, run: i64, trial: &str) -> Result<Vec<StoredEvent>, SqliteError> {
    let finished = connection
        .prepare_cached("SELECT pack, pack_start, pack_end FROM trials WHERE run = ?1 AND id = ?2")?
        .query_row(params![run, trial], PackRange::from_row)
        .optional()?;
    let mut events = match finished {
        Some(place) => events(Packs::default().lines(connection, place)?)?,
        None => Vec::new(),
    };
    events.extend(journal(connection, run, trial, -1, usize::MAX)?);
    Ok(events.into_iter().map(|(_, event)| event).collect())
}

/// Returns the trials that have started and have no outcome yet.
pub(super) fn live(connection: &Connection, run: i64) -> Result<Vec<LiveTrial>, SqliteError> {
    let mut statement = connection.prepare_cached(
        "SELECT trial FROM journal
         WHERE run = ?1 AND trial <> '' AND trial NOT IN (SELECT id FROM trials WHERE run = ?1)
         GROUP BY trial ORDER BY min(seq)",
    )?;
    let ids: Vec<String> = statement.query_map([run], |row| row.get(0))?.collect::<Result<_, _>>()?;
    let mut trials = Vec::new();
    for id in ids {
        let mut live: Option<LiveTrial> = None;
        for (_, event) in journal(connection, run, &id, -1, usize::MAX)? {
            let StoredEvent::Known(envelope) = event else { continue };
            let began = matches!(envelope.event, Event::TrialStarted { .. });
            let trial = live.get_or_insert_with(|| begun(&id, &envelope));
            if began {
                *trial = begun(&id, &envelope);
            }
            match envelope.event {
                Event::Waiting { on } => {
                    trial.waiting_on = Some(on);
                    trial.waiting_since = Some(envelope.at);
                }
                Event::SandboxReady { .. } => {
                    trial.waiting_on = Some("agent".to_owned());
                    trial.waiting_since = Some(envelope.at);
                }
                Event::Step(step) => {
                    trial.last_step = Some(step);
                    trial.last_step_at = Some(envelope.at);
                }
                _ => {}
            }
        }
        trials.extend(live);
    }
    Ok(trials)
}

fn begun(id: &str, envelope: &model::Envelope) -> LiveTrial {
    LiveTrial {
        id: id.to_owned(),
        attempt: envelope.attempt.unwrap_or(1),
        since: envelope.at,
        waiting_on: None,
        waiting_since: None,
        last_step: None,
        last_step_at: None,
    }
}
