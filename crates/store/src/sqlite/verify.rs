//! Compares a run with its chain of hashes, and the columns for lists with the events from which they were derived.

use std::collections::{BTreeMap, HashMap};

use model::{Envelope, Event, RunInfo, TrialRecord};
use rusqlite::types::{ToSqlOutput, Value, ValueRef};
use rusqlite::{OptionalExtension, Transaction};

use super::SqliteError;
use super::chain::{Link, head, links, run_events};
use super::finish::{COLUMNS, columns};
use super::pack::{event, unpack};
use super::packed::{PackRange, Packs};
use super::results::TestFiles;
use crate::chain::{Hash, digest, link, start};
use crate::{Difference, Verification};

pub(super) fn verify(transaction: &Transaction<'_>, run: i64, id: &str) -> Result<Verification, SqliteError> {
    let links = links(transaction, run)?;
    let head = head(transaction, run)?;
    let Some(head) = head else {
        if links.is_empty() {
            return Ok(Verification::Unchained);
        }
        let reason = "its hash was removed".to_owned();
        return Ok(Verification::Changed { differences: vec![Difference { trial: None, reason }] });
    };
    let mut found = Comparison {
        transaction,
        run,
        packs: Packs::default(),
        trials: trials(transaction, run)?,
        events: run_events(transaction, run)?,
        finished: 0,
        last: Vec::new(),
        differences: Vec::new(),
    };
    let mut previous = start(id);
    for link in &links {
        previous = found.link(&previous, link)?;
    }
    found.rest()?;
    if previous != head {
        found.differ(None, "its hash does not follow from its trials and events; the last of them were removed");
    }
    found.lists()?;
    Ok(match found.differences {
        differences if differences.is_empty() => {
            Verification::Intact { hash: model::text::hex(&head), trials: found.finished }
        }
        differences => Verification::Changed { differences },
    })
}

/// A stored trial: its row, the location of its events, and the values of [`COLUMNS`].
struct Stored {
    place: PackRange,
    columns: Vec<Value>,
}

/// Comparison of a run with its chain.
struct Comparison<'a> {
    transaction: &'a Transaction<'a>,
    run: i64,
    packs: Packs,
    /// Trials that no link has covered yet, by id.
    trials: HashMap<String, Stored>,
    /// Events of the run that no link has covered yet, by number.
    events: BTreeMap<u64, String>,
    /// Number of trials covered by links.
    finished: usize,
    /// First and last event of the run itself.
    last: Vec<String>,
    differences: Vec<Difference>,
}

impl Comparison<'_> {
    fn differ(&mut self, trial: Option<&str>, reason: impl Into<String>) {
        self.differences.push(Difference { trial: trial.map(str::to_owned), reason: reason.into() });
    }

    /// Compares a link with the previous one and with the data that it covers. Returns its hash.
    fn link(&mut self, previous: &Hash, stored: &Link) -> Result<Hash, SqliteError> {
        let expected: Hash = stored.digest.clone().try_into().unwrap_or_default();
        let hash = link(previous, stored.seq, &stored.trial, &expected);
        if stored.trial.is_empty() {
            self.run_event(stored, &expected);
        } else {
            self.trial(stored, &expected)?;
        }
        if stored.hash != hash {
            let trial = Some(stored.trial.as_str()).filter(|trial| !trial.is_empty());
            self.differ(trial, "its hash does not follow from the one before; links were changed, removed or added");
        }
        // The following links are compared with the stored hash, so that each difference is reported only once.
        Ok(stored.hash.clone().try_into().unwrap_or_default())
    }

    fn run_event(&mut self, stored: &Link, expected: &Hash) {
        match self.events.remove(&stored.seq) {
            None => self.differ(None, format!("its event {} was removed", stored.seq)),
            Some(line) if digest(line.as_bytes()) != *expected => {
                self.differ(None, format!("its event {} was changed", stored.seq));
            }
            Some(line) => {
                self.last.truncate(1);
                self.last.push(line);
            }
        }
    }

    fn trial(&mut self, stored: &Link, expected: &Hash) -> Result<(), SqliteError> {
        let id = stored.trial.as_str();
        let Some(trial) = self.trials.remove(id) else {
            self.differ(Some(id), "it was removed");
            return Ok(());
        };
        self.finished += 1;
        // A pack that was changed may not even be readable.
        let lines = self.packs.lines(self.transaction, trial.place).unwrap_or_default();
        if digest(lines.as_bytes()) != *expected {
            self.differ(Some(id), "its events were changed");
            return Ok(());
        }
        let last = lines.lines().next_back().and_then(|line| event(line).ok());
        let record = last.and_then(|(_, event)| event.known()).map(|envelope| envelope.event);
        if let Some(Event::TrialFinished(record)) = record {
            self.columns(id, &record, &trial.columns);
        }
        Ok(())
    }

    /// Compares the columns that lists show for a trial with its record.
    fn columns(&mut self, id: &str, record: &TrialRecord, stored: &[Value]) {
        for ((name, expected), found) in COLUMNS.iter().zip(columns(record)).zip(stored) {
            // Older trials do not have these, and readers of a trial without them take its events.
            let is_old = ["least_score", "most_score"].contains(name) && *found == Value::Null;
            if !is_old && !is_same(&expected, found) {
                let [expected, found] = [text_of(&expected), text_of(&ToSqlOutput::Owned(found.clone()))];
                self.differ(
                    Some(id),
                    format!("`{name}` is {found} in the list of trials, and {expected} in its events"),
                );
            }
        }
    }

    /// Reports everything that no link has covered.
    fn rest(&mut self) -> Result<(), SqliteError> {
        let mut added: Vec<String> = std::mem::take(&mut self.trials).into_keys().collect();
        added.sort();
        for id in &added {
            self.differ(Some(id), "it was added");
        }
        for number in std::mem::take(&mut self.events).into_keys() {
            self.differ(None, format!("its event {number} was added"));
        }
        let mut select = self.transaction.prepare_cached(
            "SELECT DISTINCT journal.trial FROM journal JOIN trials ON trials.run = journal.run AND trials.id = journal.trial
             WHERE journal.run = ?1 ORDER BY 1",
        )?;
        let late: Vec<String> = select.query_map([self.run], |row| row.get(0))?.collect::<Result<_, _>>()?;
        for id in &late {
            self.differ(Some(id), "events were added to it");
        }
        Ok(())
    }

    /// Compares the columns that lists show for the run with its first and its last event.
    fn lists(&mut self) -> Result<(), SqliteError> {
        let events = self.last.iter().filter_map(|line| event(line).ok()?.1.known()).collect::<Vec<Envelope>>();
        let Some(Event::RunStarted(info)) = events.first().map(|envelope| &envelope.event) else { return Ok(()) };
        let packed: Option<Vec<u8>> = self
            .transaction
            .prepare_cached("SELECT info FROM infos WHERE run = ?1")?
            .query_row([self.run], |row| row.get(0))
            .optional()?;
        let stored = packed.and_then(|packed| serde_json::from_slice::<RunInfo>(&unpack(&packed).ok()?).ok());
        if stored.as_ref() != Some(info) {
            self.differ(None, "its plan was changed");
        }
        let end = events.last().and_then(|envelope| match &envelope.event {
            Event::RunFinished { summary, duration_ms, signal } => Some((envelope.at, summary, *duration_ms, signal)),
            _ => None,
        });
        let expected: [(&str, Value); 10] = [
            ("version", info.trialrun_version.clone().into()),
            ("label", info.label.clone().into()),
            ("regrade_of", info.regrade_of.clone().into()),
            ("started_us", info.started_at.as_microsecond().into()),
            ("planned", (info.trials.len() as i64).into()),
            ("finished", (self.finished as i64).into()),
            ("finished_us", end.map(|(at, ..)| at.as_microsecond()).into()),
            ("duration_ms", end.map(|(_, _, duration_ms, _)| duration_ms as i64).into()),
            ("signal", end.and_then(|(.., signal)| signal.clone()).into()),
            ("sequential", (info.decisions > 0).into()),
        ];
        let names: Vec<&str> = expected.iter().map(|(name, _)| *name).collect();
        let select = format!("SELECT {} FROM runs WHERE no = ?1", names.join(", "));
        let stored: Vec<Value> = self
            .transaction
            .prepare_cached(&select)?
            .query_row([self.run], |row| (0..names.len()).map(|at| row.get(at)).collect())?;
        let summary: Option<String> = self
            .transaction
            .prepare_cached("SELECT summary FROM runs WHERE no = ?1")?
            .query_row([self.run], |row| row.get(0))?;
        if summary.and_then(|summary| serde_json::from_str(&summary).ok()).as_ref()
            != end.map(|(_, summary, ..)| summary)
        {
            self.differ(None, "its totals were changed");
        }
        for ((name, expected), stored) in expected.into_iter().zip(stored) {
            // Older versions did not set it; the list then takes it from the plan.
            let is_unset = name == "sequential" && stored == Value::Null;
            if !is_unset && !is_same(&ToSqlOutput::Owned(expected), &stored) {
                self.differ(None, format!("`{name}` in the list of runs does not match its events"));
            }
        }
        self.documents(info)
    }

    /// Compares the columns of the run that contain JSON with its first event.
    fn documents(&mut self, info: &RunInfo) -> Result<(), SqliteError> {
        let expected = [
            ("agents", serde_json::to_value(&info.agents)),
            ("test_files", TestFiles::of(info).to_json().and_then(|json| serde_json::from_str(&json))),
            ("missing_shards", serde_json::to_value(&info.missing_shards)),
        ];
        let stored: [Option<String>; 3] = self
            .transaction
            .prepare_cached("SELECT agents, test_files, missing_shards FROM runs WHERE no = ?1")?
            .query_row([self.run], |row| Ok([row.get(0)?, row.get(1)?, row.get(2)?]))?;
        for ((name, expected), stored) in expected.into_iter().zip(stored) {
            let stored = stored.map_or(Some(serde_json::Value::Null), |json| serde_json::from_str(&json).ok());
            if stored != expected.ok() {
                self.differ(None, format!("`{name}` in the list of runs does not match its events"));
            }
        }
        Ok(())
    }
}

fn trials(transaction: &Transaction<'_>, run: i64) -> rusqlite::Result<HashMap<String, Stored>> {
    let select =
        format!("SELECT pack, pack_start, pack_end, id, {} FROM trials WHERE run = ?1 ORDER BY no", COLUMNS.join(", "));
    let mut select = transaction.prepare_cached(&select)?;
    let stored = |row: &rusqlite::Row<'_>| {
        let columns = (0..COLUMNS.len()).map(|at| row.get(at + 4)).collect::<Result<_, _>>()?;
        Ok((row.get(3)?, Stored { place: PackRange::from_row(row)?, columns }))
    };
    select.query_map([run], stored)?.collect()
}

/// Returns `true` if a column has the expected value. Fractions may differ in their last digit, because they were
/// stored as text in between.
fn is_same(expected: &ToSqlOutput<'_>, found: &Value) -> bool {
    match (value(expected), found) {
        (ValueRef::Real(one), Value::Real(other)) => (one - other).abs() <= one.abs() * 1e-12,
        (one, other) => one == ValueRef::from(other),
    }
}

fn value<'v>(output: &'v ToSqlOutput<'_>) -> ValueRef<'v> {
    match output {
        ToSqlOutput::Borrowed(value) => *value,
        ToSqlOutput::Owned(value) => ValueRef::from(value),
        _ => ValueRef::Null,
    }
}

fn text_of(output: &ToSqlOutput<'_>) -> String {
    match value(output) {
        ValueRef::Null | ValueRef::Blob(_) => "nothing".to_owned(),
        ValueRef::Integer(number) => number.to_string(),
        ValueRef::Real(number) => number.to_string(),
        ValueRef::Text(text) => format!("`{}`", String::from_utf8_lossy(text)),
    }
}

#[cfg(test)]
mod tests;
