//! Finished trials: columns for lists, and their events in packs.

use std::sync::LazyLock;

use model::{Envelope, Event, TrialRecord, Usage};
use rusqlite::types::{ToSqlOutput, Value, ValueRef};
use rusqlite::{Statement, Transaction, params, params_from_iter};

use super::SqliteError;
use super::pack::{Packer, damaged};
use super::results::TestFiles;
use crate::StoreError;

/// Size in bytes at which a pack is closed. Reading one trial unpacks the whole pack.
const FULL: usize = 256 * 1024;

/// Columns of a trial that are derived from its record, in the order of [`columns`].
pub(super) const COLUMNS: [&str; 33] = [
    "suite",
    "case_id",
    "arm",
    "agent",
    "model",
    "variant",
    "repetition",
    "outcome",
    "flaky",
    "fault",
    "because",
    "score",
    "max_score",
    "started_us",
    "finished_us",
    "duration_ms",
    "turns",
    "tool_calls",
    "input",
    "cache_read",
    "cache_write",
    "output",
    "reasoning",
    "cost_usd",
    "token_budget",
    "attempts",
    "errors",
    "skill_version",
    "skill_hash",
    "agent_ms",
    "quarantined",
    "least_score",
    "most_score",
];

/// Statement that inserts a trial: its location in the packs, then [`COLUMNS`].
static INSERT_TRIAL: LazyLock<String> = LazyLock::new(|| {
    let places = ["run", "id", "first_seq", "pack", "pack_start", "pack_end", "settings"];
    let names: Vec<&str> = places.into_iter().chain(COLUMNS).collect();
    let values = vec!["?"; names.len()];
    format!("INSERT INTO trials ({}) VALUES ({})", names.join(", "), values.join(", "))
});

/// Events as lines of JSON, in order.
#[derive(Default)]
pub(super) struct Lines {
    text: Vec<u8>,
    /// Number and end offset of each event.
    ends: Vec<(u64, usize)>,
    /// True if they include the trial's first event, so that none of its events can have been written earlier.
    pub(super) from_the_start: bool,
}

impl Lines {
    pub(super) fn push(&mut self, envelope: &Envelope) -> Result<(), SqliteError> {
        self.from_the_start |= envelope.attempt == Some(1) && matches!(envelope.event, Event::TrialStarted { .. });
        serde_json::to_writer(&mut self.text, envelope).map_err(|error| damaged(&error))?;
        self.ends.push((envelope.seq, self.text.len()));
        self.text.push(b'\n');
        Ok(())
    }

    /// Returns each line with its number.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, Result<&str, StoreError>)> {
        let mut start = 0;
        self.ends.iter().map(move |&(seq, end)| {
            let line = self.text.get(start..end).unwrap_or_default();
            start = end + 1;
            (seq, std::str::from_utf8(line).map_err(|error| damaged(&error)))
        })
    }

    /// Returns all lines, each with its newline.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.text
    }

    /// Returns the last line.
    pub(super) fn last(&self) -> &[u8] {
        let start = self.ends.iter().rev().nth(1).map_or(0, |(_, end)| end + 1);
        self.text.get(start..self.text.len().saturating_sub(1)).unwrap_or_default()
    }

    fn first(&self) -> Option<u64> {
        self.ends.first().map(|(seq, _)| *seq)
    }
}

/// Trials of one run that are written into the same pack.
#[derive(Default)]
pub(super) struct Group<'e> {
    text: Vec<u8>,
    trials: Vec<Finished<'e>>,
}

/// Trial with the range of its events in the pack.
struct Finished<'e> {
    id: &'e str,
    record: &'e TrialRecord,
    first_seq: u64,
    start: usize,
    end: usize,
}

impl<'e> Group<'e> {
    /// Adds a trial: its events from the journal, which are removed there, and its last `lines`. Returns all of them.
    pub(super) fn add(
        &mut self,
        transaction: &Transaction<'_>,
        run: i64,
        id: &'e str,
        record: &'e TrialRecord,
        lines: &Lines,
    ) -> Result<&[u8], SqliteError> {
        let start = self.text.len();
        let before = if lines.from_the_start { None } else { self.take_journal(transaction, run, id)? };
        self.text.extend_from_slice(&lines.text);
        let first_seq = before.or(lines.first()).unwrap_or(0);
        self.trials.push(Finished { id, record, first_seq, start, end: self.text.len() });
        Ok(self.text.get(start..).unwrap_or_default())
    }

    /// Moves the trial's events from the journal into this group. Returns the number of the first event.
    fn take_journal(&mut self, transaction: &Transaction<'_>, run: i64, id: &str) -> Result<Option<u64>, SqliteError> {
        let mut first = None;
        let mut select =
            transaction.prepare_cached("SELECT seq, event FROM journal WHERE run = ?1 AND trial = ?2 ORDER BY seq")?;
        let mut rows = select.query(params![run, id])?;
        while let Some(row) = rows.next()? {
            first.get_or_insert(row.get::<_, i64>(0)?.unsigned_abs());
            self.text.extend_from_slice(row.get_ref(1)?.as_bytes().map_err(|error| damaged(&error))?);
            self.text.push(b'\n');
        }
        if first.is_some() {
            transaction
                .prepare_cached("DELETE FROM journal WHERE run = ?1 AND trial = ?2")?
                .execute(params![run, id])?;
        }
        Ok(first)
    }

    pub(super) fn is_full(&self) -> bool {
        self.text.len() >= FULL
    }

    /// Writes the pack and its trials, and empties the group.
    pub(super) fn write(
        &mut self,
        transaction: &Transaction<'_>,
        packer: &mut Packer,
        run: i64,
    ) -> Result<(), SqliteError> {
        if self.trials.is_empty() {
            return Ok(());
        }
        transaction
            .prepare_cached("INSERT INTO packs (run, events) VALUES (?1, ?2)")?
            .execute(params![run, packer.bytes(&self.text)?])?;
        let pack = transaction.last_insert_rowid();
        let files = TestFiles::load(transaction, run)?;
        let mut insert = transaction.prepare_cached(&INSERT_TRIAL)?;
        for trial in &self.trials {
            trial.insert(&mut insert, run, pack, files.fingerprint(trial.record))?;
        }
        transaction
            .prepare_cached("UPDATE runs SET finished = finished + ?2 WHERE no = ?1")?
            .execute(params![run, self.trials.len() as i64])?;
        self.text.clear();
        self.trials.clear();
        Ok(())
    }
}

impl Finished<'_> {
    /// Writes the trial's row with [`INSERT_TRIAL`].
    fn insert(&self, insert: &mut Statement<'_>, run: i64, pack: i64, settings: i64) -> Result<(), SqliteError> {
        let whole = |number: i64| ToSqlOutput::Owned(Value::Integer(number));
        let places = [
            whole(run),
            text(self.id),
            whole(self.first_seq as i64),
            whole(pack),
            whole(self.start as i64),
            whole(self.end as i64),
            whole(settings),
        ];
        insert.execute(params_from_iter(places.into_iter().chain(columns(self.record))))?;
        Ok(())
    }
}

/// Returns the values of [`COLUMNS`].
pub(super) fn columns(record: &TrialRecord) -> [ToSqlOutput<'_>; COLUMNS.len()] {
    let whole = |number: i64| ToSqlOutput::Owned(Value::Integer(number));
    let known = |number: Option<u64>| ToSqlOutput::Owned(number.map(|number| number as i64).into());
    let real = |number: Option<f64>| ToSqlOutput::Owned(number.into());
    let Usage { tokens, cost_usd } = record.spent();
    let score = record.first_score();
    let started_us = record.started_at.as_microsecond();
    [
        text(&record.suite),
        text(&record.case),
        text(&record.arm),
        text(&record.agent),
        optional(record.model.as_deref()),
        optional(record.variant.as_deref()),
        whole(record.repetition as i64),
        text(record.outcome.name()),
        whole(i64::from(record.flaky)),
        record.fault.and_then(|fault| word(&fault)).map_or(NULL, |word| ToSqlOutput::Owned(Value::Text(word))),
        optional(record.reason.as_deref()),
        real(record.score),
        real(record.max_score),
        whole(started_us),
        whole(started_us.saturating_add((record.duration_ms as i64).saturating_mul(1000))),
        whole(record.duration_ms as i64),
        whole(record.turn_count as i64),
        whole(record.tool_calls.len() as i64),
        known(tokens.map(|tokens| tokens.input)),
        known(tokens.map(|tokens| tokens.cache_read)),
        known(tokens.map(|tokens| tokens.cache_write)),
        known(tokens.map(|tokens| tokens.output)),
        known(tokens.and_then(|tokens| tokens.reasoning)),
        real(cost_usd),
        real(record.limits.token_budget),
        whole(record.attempts.len().max(1) as i64),
        whole(record.errors.len() as i64),
        optional(record.skill.as_ref().and_then(|skill| skill.version.as_deref())),
        optional(record.skill.as_ref().map(|skill| skill.content_hash.as_str())),
        known(record.agent_ms),
        whole(i64::from(record.quarantine.is_some())),
        real(score.map(|score| score.min)),
        real(score.map(|score| score.max)),
    ]
}

const NULL: ToSqlOutput<'static> = ToSqlOutput::Owned(Value::Null);

fn text(text: &str) -> ToSqlOutput<'_> {
    ToSqlOutput::Borrowed(ValueRef::Text(text.as_bytes()))
}

fn optional(value: Option<&str>) -> ToSqlOutput<'_> {
    value.map_or(NULL, text)
}

/// Returns the serialised name of a fieldless enum value.
fn word(value: &impl serde::Serialize) -> Option<String> {
    serde_json::to_value(value).ok().and_then(|value| value.as_str().map(str::to_owned))
}
