//! Reads events in order.

use model::LiveTrial;
use rusqlite::{Connection, OptionalExtension, Transaction, params};

use super::finish::read_pack;
use super::verify::place;
use super::{SqliteError, run_number};
use crate::live::live as live_trial;
use crate::ordered_events::{EventRows, OrderedEvents, events};
use crate::pack::{damaged, event};
use crate::packs::Packs;
use crate::{StoreError, StoredEvent};

/// A run's events in a transaction, which keeps a consistent view of the run while it is read.
pub(super) struct Rows<'a> {
    transaction: Transaction<'a>,
    run: i64,
}

impl EventRows for Rows<'_> {
    fn pack(&mut self, pack: i64) -> Result<Option<Vec<u8>>, StoreError> {
        read_pack(&self.transaction, pack)
    }

    fn journal(&mut self, trial: &str, after: i64, most: usize) -> Result<Vec<(u64, StoredEvent)>, StoreError> {
        Ok(journal(&self.transaction, self.run, trial, after, most)?)
    }
}

/// Returns all events of a run.
pub(super) fn of_run<'a>(connection: &'a Connection, run: &str) -> Result<OrderedEvents<Rows<'a>>, SqliteError> {
    let transaction = connection.unchecked_transaction()?;
    let run = run_number(&transaction, run)?.ok_or_else(|| StoreError::UnknownRun(run.to_owned()))?;
    let finished = transaction
        .prepare_cached("SELECT pack, pack_start, pack_end, first_seq FROM trials WHERE run = ?1")?
        .query_map([run], |row| Ok((row.get::<_, i64>(3)?.unsigned_abs(), place(row)?)))?
        .collect::<Result<_, _>>()?;
    let open = transaction
        .prepare_cached("SELECT trial, min(seq) FROM journal WHERE run = ?1 GROUP BY trial")?
        .query_map([run], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<Result<_, _>>()?;
    Ok(OrderedEvents::new(Rows { transaction, run }, finished, open))
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
        .query_row(params![run, trial], place)
        .optional()?;
    let mut events = match finished {
        Some(place) => events(Packs::default().lines(place, |pack| read_pack(connection, pack))?)?,
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
        let events = journal(connection, run, &id, -1, usize::MAX)?;
        trials.extend(live_trial(&id, events.into_iter().map(|(_, event)| event)));
    }
    Ok(trials)
}
