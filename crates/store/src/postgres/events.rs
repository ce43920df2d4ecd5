//! Reads events in order.

use model::LiveTrial;

use super::pool::{PostgresError, Session, Snapshot};
use super::query::read_pack;
use super::run_number;
use crate::live::live as live_trial;
use crate::ordered_events::{EventRows, OrderedEvents, events};
use crate::pack::event;
use crate::packs::{PackRange, Packs};
use crate::{StoreError, StoredEvent};

/// A run's events in a snapshot of the record.
pub(super) struct Rows<'a> {
    snapshot: Snapshot<'a>,
    run: i64,
}

impl EventRows for Rows<'_> {
    fn pack(&mut self, pack: i64) -> Result<Option<Vec<u8>>, StoreError> {
        self.snapshot.run(async |session| read_pack(session, pack).await)
    }

    fn journal(&mut self, trial: &str, after: i64, most: usize) -> Result<Vec<(u64, StoredEvent)>, StoreError> {
        let run = self.run;
        self.snapshot.run(async |session| journal(session, run, trial, after, most).await)
    }
}

/// Returns all events of a run.
pub(super) fn of_run<'a>(mut snapshot: Snapshot<'a>, id: &str) -> Result<OrderedEvents<Rows<'a>>, StoreError> {
    let (run, finished, open) = snapshot.run(async |session| {
        let run = run_number(session, id).await?;
        let select = "SELECT first_seq, pack, pack_start, pack_end FROM trials WHERE run = $1";
        let mut finished = Vec::new();
        for row in session.query(select, &[&run]).await? {
            let place = PackRange::new(row.try_get(1)?, row.try_get(2)?, row.try_get(3)?);
            finished.push((row.try_get::<_, i64>(0)?.unsigned_abs(), place));
        }
        let select = "SELECT trial, min(seq) FROM journal WHERE run = $1 GROUP BY trial";
        let mut open: Vec<(String, i64)> = Vec::new();
        for row in session.query(select, &[&run]).await? {
            open.push((row.try_get(0)?, row.try_get(1)?));
        }
        Ok((run, finished, open))
    })?;
    Ok(OrderedEvents::new(Rows { snapshot, run }, finished, open))
}

async fn journal(
    session: &mut Session,
    run: i64,
    trial: &str,
    after: i64,
    most: usize,
) -> Result<Vec<(u64, StoredEvent)>, PostgresError> {
    let select = "SELECT event FROM journal WHERE run = $1 AND trial = $2 AND seq > $3 ORDER BY seq LIMIT $4";
    let rows = session.query(select, &[&run, &trial, &after, &i64::try_from(most).unwrap_or(i64::MAX)]).await?;
    rows.iter().map(|row| Ok(event(row.try_get(0)?)?)).collect()
}

/// Returns all events of one trial.
pub(super) async fn of_trial(session: &mut Session, run: i64, trial: &str) -> Result<Vec<StoredEvent>, PostgresError> {
    let select = "SELECT pack, pack_start, pack_end FROM trials WHERE run = $1 AND id = $2";
    let mut found = match session.first(select, &[&run, &trial]).await? {
        Some(row) => {
            let place = PackRange::new(row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
            let pack = read_pack(session, place.pack()).await?;
            events(Packs::default().lines(place, |_| Ok(pack))?)?
        }
        None => Vec::new(),
    };
    found.extend(journal(session, run, trial, -1, usize::MAX).await?);
    Ok(found.into_iter().map(|(_, event)| event).collect())
}

/// Returns the trials that have started and have no outcome yet.
pub(super) async fn live(session: &mut Session, run: i64) -> Result<Vec<LiveTrial>, PostgresError> {
    let select = "SELECT trial FROM journal
         WHERE run = $1 AND trial <> ''
             AND NOT EXISTS (SELECT FROM trials WHERE trials.run = $1 AND trials.id = journal.trial)
         GROUP BY trial ORDER BY min(seq)";
    let mut trials = Vec::new();
    for row in session.query(select, &[&run]).await? {
        let id: &str = row.try_get(0)?;
        let events = journal(session, run, id, -1, usize::MAX).await?;
        trials.extend(live_trial(id, events.into_iter().map(|(_, event)| event)));
    }
    Ok(trials)
}
