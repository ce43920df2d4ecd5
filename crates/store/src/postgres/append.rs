//! Writing: one transaction for each batch of events.

use std::collections::{BTreeMap, HashMap};
use std::sync::LazyLock;

use jiff::Timestamp;
use model::{Envelope, Event, Lease, Outcome, RunInfo};
use serde_json::{Map, Value};

use super::pool::{PostgresError, Session};
use super::{lease, results, run_number, verify};
use crate::chain::{Hash, digest, link, start};
use crate::chain_writer::Chains;
use crate::columns::{COLUMNS, Column, columns};
use crate::lines::{Earlier, Finished, Group, Lines};
use crate::pack::{Packer, damaged, pack_json};
use crate::test_files::TestFiles;
use crate::{StoreError, Verification};

/// Columns of a trial that say where its events are.
const PLACES: [&str; 5] = ["id", "first_seq", "pack_start", "pack_end", "settings"];

/// Statement that stores a pack and its trials, and adds the trials to the results of their cases.
static INSERT_TRIALS: LazyLock<String> = LazyLock::new(|| {
    let names: Vec<&str> = PLACES.into_iter().chain(COLUMNS).collect();
    let names = names.join(", ");
    format!(
        "WITH new_pack AS (INSERT INTO packs (run, events) VALUES ($1, $2) RETURNING packs.no AS number),
         new AS (
             INSERT INTO trials (run, pack, {names})
             SELECT $1, number, {names} FROM new_pack, json_populate_recordset(NULL::trials, $3::text::json) RETURNING *
         )
         {}",
        results::add("new")
    )
});

/// State of a writer.
pub(super) struct Writer<'a> {
    pub(super) packer: &'a mut Packer,
    pub(super) chains: &'a mut Chains,
    /// Stored form of the owner.
    pub(super) owner: Option<&'a str>,
    /// Number of this batch.
    pub(super) batch: i64,
}

/// Stores events. Returns `false` if they are already stored, because only the answer to an earlier attempt was lost.
pub(super) async fn append(
    session: &mut Session,
    writer: Writer<'_>,
    events: &[Envelope],
) -> Result<bool, PostgresError> {
    let Some(last) = events.last() else { return Ok(true) };
    let mut batch = Batch { writer, runs: Vec::new(), open: BTreeMap::new(), links: Vec::new() };
    for envelope in events {
        if batch.number(&envelope.run).is_some() {
            continue;
        }
        match batch.run(session, envelope).await? {
            Some(run) => batch.runs.push((&envelope.run, run)),
            None => return Ok(false),
        }
    }
    let mut earlier = batch.take_journal(session, events).await?;
    let mut groups: HashMap<i64, Group<'_>> = HashMap::new();
    for envelope in events {
        if let Some((run, id, record)) = batch.add(envelope)? {
            let lines = batch.open.remove(&(run, id)).unwrap_or_default();
            let group = groups.entry(run).or_default();
            let earlier = earlier.remove(&(run, id.to_owned())).unwrap_or_default();
            let stored = group.add(id, record, earlier, &lines);
            let digest = batch.writer.chains.digest(run, id, &lines, stored);
            batch.link(run, envelope.seq, id, digest);
            if group.is_full() {
                batch.write(session, run, group).await?;
            }
        }
    }
    for (run, group) in &mut groups {
        batch.write(session, *run, group).await?;
    }
    batch.close(session, events, last.at).await?;
    Ok(true)
}

/// A run of a batch.
struct Run {
    number: i64,
    test_files: TestFiles,
    /// Number of trials that finished in this batch.
    finished: usize,
}

/// A batch being written.
struct Batch<'a, 'e> {
    writer: Writer<'a>,
    /// Nearly always there is only one run.
    runs: Vec<(&'e str, Run)>,
    /// Events in this batch that belong to trials without an outcome, by the run's number and the trial's id; the run's
    /// own events are under ''.
    open: BTreeMap<(i64, &'e str), Lines>,
    links: Vec<(i64, i64, &'e str, Hash, Hash)>,
}

impl<'e> Batch<'_, 'e> {
    fn number(&self, id: &str) -> Option<i64> {
        self.runs.iter().find(|(known, _)| *known == id).map(|(_, run)| run.number)
    }

    /// Locks the event's run, or creates it if the event is its start; `None` if this batch is already stored.
    async fn run(&mut self, session: &mut Session, envelope: &Envelope) -> Result<Option<Run>, PostgresError> {
        let id = &*envelope.run;
        let unknown = || StoreError::UnknownRun(id.to_owned());
        let select = "SELECT no, owner, batch, test_files, chain FROM runs WHERE id = $1 FOR UPDATE";
        let mut found = session.first(select, &[&id]).await?;
        if found.is_none() {
            let Event::RunStarted(info) = &envelope.event else { return Err(unknown().into()) };
            if let Some(number) = insert_run(session, &mut self.writer, info).await? {
                self.writer.chains.begin(number, id);
                return Ok(Some(Run { number, test_files: TestFiles::of(info), finished: 0 }));
            }
            // An attempt whose connection was lost has just created it.
            found = session.first(select, &[&id]).await?;
        }
        let row = found.ok_or_else(unknown)?;
        if row.try_get::<_, Option<i64>>(2)? == Some(self.writer.batch) {
            return Ok(None);
        }
        if row.try_get::<_, Option<&str>>(1)? != self.writer.owner {
            return Err(lease::taken(session, id).await?);
        }
        let number = row.try_get(0)?;
        if !self.writer.chains.knows(number) {
            self.writer.chains.set_head(number, row.try_get::<_, Option<&[u8]>>(4)?.map(verify::hash));
        }
        Ok(Some(Run { number, test_files: TestFiles::from_json(row.try_get(3)?), finished: 0 }))
    }

    /// Removes the events in the journal of the trials that finish in this batch, and returns them.
    async fn take_journal(
        &self,
        session: &mut Session,
        events: &'e [Envelope],
    ) -> Result<HashMap<(i64, String), Earlier>, PostgresError> {
        let mut started: Vec<&str> = Vec::new();
        let mut finished: HashMap<i64, Vec<&str>> = HashMap::new();
        for envelope in events {
            let id = trial_of(envelope);
            match &envelope.event {
                Event::TrialStarted { .. } if envelope.attempt == Some(1) => started.push(id),
                Event::TrialFinished(_) if !started.contains(&id) => {
                    if let Some(run) = self.number(&envelope.run) {
                        finished.entry(run).or_default().push(id);
                    }
                }
                _ => {}
            }
        }
        let mut earlier: HashMap<(i64, String), Earlier> = HashMap::new();
        for (run, trials) in finished {
            let delete = "WITH taken AS (
                     DELETE FROM journal WHERE run = $1 AND trial = ANY($2) RETURNING trial, seq, event
                 )
                 SELECT trial, seq, event FROM taken ORDER BY trial, seq";
            for row in session.query(delete, &[&run, &trials]).await? {
                let line: &str = row.try_get(2)?;
                let seq = row.try_get::<_, i64>(1)?.unsigned_abs();
                earlier.entry((run, row.try_get(0)?)).or_default().push(seq, line.as_bytes());
            }
        }
        Ok(earlier)
    }

    /// Adds an event. If it is the outcome of a trial, returns the number of the run, the id and the record.
    fn add(&mut self, envelope: &'e Envelope) -> Result<Option<(i64, &'e str, &'e model::TrialRecord)>, PostgresError> {
        let run = self.number(&envelope.run).ok_or_else(|| StoreError::UnknownRun(envelope.run.to_string()))?;
        let trial = trial_of(envelope);
        let lines = self.open.entry((run, trial)).or_default();
        lines.push(envelope)?;
        if trial.is_empty() {
            let digest = digest(lines.last());
            self.link(run, envelope.seq, trial, digest);
        }
        match &envelope.event {
            Event::TrialFinished(record) => Ok(Some((run, trial, record))),
            _ => Ok(None),
        }
    }

    fn link(&mut self, run: i64, seq: u64, trial: &'e str, digest: Hash) {
        if let Some(hash) = self.writer.chains.add(run, seq, trial, &digest) {
            self.links.push((run, seq as i64, trial, digest, hash));
        }
    }

    /// Stores the trials of a group, and empties it.
    async fn write(&mut self, session: &mut Session, number: i64, group: &mut Group<'_>) -> Result<(), PostgresError> {
        let run = self.runs.iter_mut().find(|(_, run)| run.number == number);
        let Some((_, run)) = run.filter(|_| !group.trials.is_empty()) else { return Ok(()) };
        let pack = self.writer.packer.bytes(&group.text)?;
        let rows: Vec<Value> =
            group.trials.iter().map(|trial| row(trial, run.test_files.fingerprint(trial.record))).collect();
        let rows = serde_json::to_string(&rows).map_err(|error| damaged(&error))?;
        session.execute(&INSERT_TRIALS, &[&number, &pack, &rows]).await?;
        run.finished += group.trials.len();
        group.text.clear();
        group.trials.clear();
        Ok(())
    }

    /// Stores everything else, and renews the leases of the runs.
    async fn close(self, session: &mut Session, events: &[Envelope], at: Timestamp) -> Result<(), PostgresError> {
        // Events of trials that did not finish in this batch go to the journal.
        let (mut runs, mut trials, mut seqs, mut lines) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for (&(run, trial), open) in &self.open {
            if !trial.is_empty() {
                self.writer.chains.note(run, trial, open);
            }
            for (seq, line) in open.iter() {
                runs.push(run);
                trials.push(trial);
                seqs.push(seq as i64);
                lines.push(line?);
            }
        }
        if !lines.is_empty() {
            let insert = "INSERT INTO journal (run, trial, seq, event)
                 SELECT * FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::text[])";
            session.execute(insert, &[&runs, &trials, &seqs, &lines]).await?;
        }
        if !self.links.is_empty() {
            let runs: Vec<i64> = self.links.iter().map(|link| link.0).collect();
            let seqs: Vec<i64> = self.links.iter().map(|link| link.1).collect();
            let trials: Vec<&str> = self.links.iter().map(|link| link.2).collect();
            let digests: Vec<&[u8]> = self.links.iter().map(|link| link.3.as_slice()).collect();
            let hashes: Vec<&[u8]> = self.links.iter().map(|link| link.4.as_slice()).collect();
            let insert = "INSERT INTO links (run, seq, trial, digest, hash)
                 SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::bytea[], $5::bytea[])";
            session.execute(insert, &[&runs, &seqs, &trials, &digests, &hashes]).await?;
        }
        let heads: HashMap<i64, Hash> = self.writer.chains.take_changed().into_iter().collect();
        for (id, run) in &self.runs {
            let update =
                "UPDATE runs SET renewed_us = $2, batch = $3, chain = coalesce($4, chain), finished = finished + $5
                 WHERE no = $1";
            let head = heads.get(&run.number).map(<[u8; 32]>::as_slice);
            let values: [super::pool::Parameter<'_>; 5] =
                [&run.number, &at.as_microsecond(), &self.writer.batch, &head, &(run.finished as i64)];
            session.execute(update, &values).await?;
            for envelope in events.iter().filter(|envelope| *envelope.run == **id) {
                if let Event::RunFinished { summary, duration_ms, signal } = &envelope.event {
                    let summary = serde_json::to_string(summary).map_err(|error| damaged(&error))?;
                    let update =
                        "UPDATE runs SET finished_us = $2, duration_ms = $3, signal = $4, summary = $5 WHERE no = $1";
                    let ended = envelope.at.as_microsecond();
                    let values: [super::pool::Parameter<'_>; 5] =
                        [&run.number, &ended, &(*duration_ms as i64), &signal, &summary];
                    session.execute(update, &values).await?;
                }
            }
        }
        Ok(())
    }
}

/// Returns the id of the trial to which an event belongs; empty for an event of the run itself.
fn trial_of(envelope: &Envelope) -> &str {
    match (&envelope.trial, &envelope.event) {
        (Some(trial), _) => trial,
        (None, Event::TrialFinished(record)) => &record.id,
        (None, _) => "",
    }
}

/// Returns the row of a trial as JSON.
fn row(trial: &Finished<'_>, settings: i64) -> Value {
    let places: [Column<'_>; PLACES.len()] = [
        trial.id.into(),
        (trial.first_seq as i64).into(),
        (trial.start as i64).into(),
        (trial.end as i64).into(),
        settings.into(),
    ];
    let values = places.into_iter().chain(columns(trial.record)).map(|value| match value {
        Column::Null => Value::Null,
        Column::Whole(number) => number.into(),
        Column::Real(number) => number.into(),
        // PostgreSQL stores no NUL in a text.
        Column::Text(text) => text.replace('\0', "\u{fffd}").into(),
    });
    let names = PLACES.into_iter().chain(COLUMNS).map(str::to_owned);
    Value::Object(names.zip(values).collect::<Map<String, Value>>())
}

/// Creates a run and returns its number; `None` if it exists.
async fn insert_run(
    session: &mut Session,
    writer: &mut Writer<'_>,
    info: &RunInfo,
) -> Result<Option<i64>, PostgresError> {
    let missing_shards = info.missing_shards.as_ref().map(serde_json::to_string);
    let insert = "INSERT INTO runs (id, label, regrade_of, started_us, owner, version, planned, agents,
             test_files, missing_shards, sequential)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) ON CONFLICT (id) DO NOTHING RETURNING no";
    let row = session
        .first(
            insert,
            &[
                &info.id,
                &info.label,
                &info.regrade_of,
                &info.started_at.as_microsecond(),
                &writer.owner,
                &info.trialrun_version,
                &(info.trials.len() as i64),
                &serde_json::to_string(&info.agents).map_err(|error| damaged(&error))?,
                &TestFiles::of(info).to_json().map_err(|error| damaged(&error))?,
                &missing_shards.transpose().map_err(|error| damaged(&error))?,
                &i64::from(info.decisions > 0),
            ],
        )
        .await?;
    let Some(number) = row.map(|row| row.try_get::<_, i64>(0)).transpose()? else { return Ok(None) };
    session.execute("INSERT INTO infos (run, info) VALUES ($1, $2)", &[&number, &pack_json(info)?]).await?;
    Ok(Some(number))
}

/// Removes everything from a run except its start and its finished trials, and sets its owner and the time of its lease.
/// A run that was changed is rejected, because its new chain would hide the change.
pub(super) async fn reopen(
    session: &mut Session,
    owner: Option<&str>,
    at: Timestamp,
    id: &str,
    former: Option<&Lease>,
) -> Result<(), PostgresError> {
    session.query("SELECT no FROM runs WHERE id = $1 FOR UPDATE", &[&id]).await?;
    let run = run_number(session, id).await?;
    let found = lease::find(session, id).await?;
    // An attempt whose connection was lost may have succeeded.
    if found
        .as_ref()
        .is_some_and(|found| found.renewed_at == at && lease::stored(&found.owner).ok().as_deref() == owner)
    {
        return Ok(());
    }
    if found.as_ref() != former {
        return Err(lease::taken(session, id).await?);
    }
    if let Verification::Changed { differences } = verify::verify(session, run, id).await? {
        let reason = differences.first().map(ToString::to_string).unwrap_or_default();
        return Err(StoreError::Changed { run: id.to_owned(), reason }.into());
    }
    let cancelled = Outcome::Cancelled.name();
    session.execute("DELETE FROM trials WHERE run = $1 AND outcome = $2", &[&run, &cancelled]).await?;
    session.execute("DELETE FROM results WHERE run = $1", &[&run]).await?;
    let again = results::add("(SELECT * FROM trials WHERE run = $1) AS kept");
    session.execute(&again, &[&run]).await?;
    // The first event of a run is its start.
    let rest = "DELETE FROM journal WHERE run = $1
         AND seq > (SELECT min(seq) FROM journal WHERE run = $1 AND trial = '')";
    session.execute(rest, &[&run]).await?;
    let update = "UPDATE runs SET owner = $2, renewed_us = $3, finished_us = NULL, duration_ms = NULL, signal = NULL,
             summary = NULL, batch = NULL, finished = (SELECT count(*) FROM trials WHERE run = $1)
         WHERE no = $1";
    session.execute(update, &[&run, &owner, &at.as_microsecond()]).await?;
    relink(session, run, id).await
}

/// Removes the links for data that was removed from a run, and rebuilds the chain from the remaining links. The run
/// must have been verified before.
async fn relink(session: &mut Session, run: i64, id: &str) -> Result<(), PostgresError> {
    if verify::head(session, run).await?.is_none() {
        return Ok(());
    }
    let delete = "DELETE FROM links WHERE run = $1 AND CASE trial
         WHEN '' THEN NOT EXISTS (SELECT FROM journal WHERE run = $1 AND trial = '' AND seq = links.seq)
         ELSE NOT EXISTS (SELECT FROM trials WHERE run = $1 AND id = links.trial) END";
    session.execute(delete, &[&run]).await?;
    let mut hash = start(id);
    let (mut seqs, mut hashes) = (Vec::new(), Vec::new());
    for kept in verify::links(session, run).await? {
        hash = link(&hash, kept.seq, &kept.trial, &kept.digest.try_into().unwrap_or_default());
        seqs.push(kept.seq as i64);
        hashes.push(hash.to_vec());
    }
    let update = "UPDATE links SET hash = changed.hash FROM unnest($2::bigint[], $3::bytea[]) AS changed (seq, hash)
         WHERE links.run = $1 AND links.seq = changed.seq";
    session.execute(update, &[&run, &seqs, &hashes]).await?;
    session.execute("UPDATE runs SET chain = $2 WHERE no = $1", &[&run, &hash.as_slice()]).await?;
    Ok(())
}

/// Changes the events in the journal of a trial that has no outcome. If they are not those that this writer has written,
/// its digest of them stays, so that the difference is found later. Returns the lines before and after.
pub(super) async fn rewrite(
    session: &mut Session,
    run: i64,
    trial: &str,
    change: &mut dyn FnMut(&mut Event),
) -> Result<(Vec<u8>, Vec<u8>), PostgresError> {
    let (mut before, mut after) = (Vec::new(), Vec::new());
    let select = "SELECT seq, event FROM journal WHERE run = $1 AND trial = $2 ORDER BY seq FOR UPDATE";
    for row in session.query(select, &[&run, &trial]).await? {
        let line: String = row.try_get(1)?;
        let mut envelope: Envelope = serde_json::from_str(&line).map_err(|error| damaged(&error))?;
        change(&mut envelope.event);
        let changed = serde_json::to_string(&envelope).map_err(|error| damaged(&error))?;
        if changed != line {
            let update = "UPDATE journal SET event = $4 WHERE run = $1 AND trial = $2 AND seq = $3";
            session.execute(update, &[&run, &trial, &row.try_get::<_, i64>(0)?, &changed]).await?;
        }
        for (lines, line) in [(&mut before, line), (&mut after, changed)] {
            lines.extend_from_slice(line.as_bytes());
            lines.push(b'\n');
        }
    }
    Ok((before, after))
}
