//! Finished trials: columns for lists, and their events in packs.

use model::{Envelope, Event, Tokens, TrialRecord};
use rusqlite::{Statement, Transaction, params};

use super::SqliteError;
use super::pack::{Packer, damaged};
use super::results::TestFiles;
use crate::StoreError;

/// Size in bytes at which a pack is closed. Reading one trial unpacks the whole pack.
const FULL: usize = 256 * 1024;

const INSERT_TRIAL: &str = "INSERT INTO trials (run, id, suite, case_id, arm, agent, model, variant, repetition, outcome, flaky, \
     fault, because, score, max_score, started_us, finished_us, duration_ms, turns, tool_calls, input, \
     cache_read, cache_write, output, reasoning, cost_usd, token_budget, attempts, errors, \
     skill_version, skill_hash, first_seq, pack, pack_start, pack_end, agent_ms, settings, quarantined) \
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, \
     ?21, ?22, ?23, ?24, ?25, ?26, ?27, ?28, ?29, ?30, ?31, ?32, ?33, ?34, ?35, ?36, ?37, ?38)";

/// Events as lines of JSON, in order.
#[derive(Default)]
pub(super) struct Lines {
    text: Vec<u8>,
    /// Number and end offset of each event.
    ends: Vec<(u64, usize)>,
    /// True if they include the trial's very first event, so that none of its events can have been written before.
    from_the_start: bool,
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

    fn first(&self) -> Option<u64> {
        self.ends.first().map(|(seq, _)| *seq)
    }
}

/// Trials of one run that are written into one pack.
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
    /// Adds a trial: its events from the journal, which are removed from it, and its last `lines`.
    pub(super) fn add(
        &mut self,
        transaction: &Transaction<'_>,
        run: i64,
        id: &'e str,
        record: &'e TrialRecord,
        lines: &Lines,
    ) -> Result<(), SqliteError> {
        let start = self.text.len();
        let before = if lines.from_the_start { None } else { self.take_journal(transaction, run, id)? };
        self.text.extend_from_slice(&lines.text);
        let first_seq = before.or(lines.first()).unwrap_or(0);
        self.trials.push(Finished { id, record, first_seq, start, end: self.text.len() });
        Ok(())
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
        let mut insert = transaction.prepare_cached(INSERT_TRIAL)?;
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
        let record = self.record;
        let (tokens, cost_usd) = spent(record);
        insert.execute(params![
            run,
            self.id,
            record.suite,
            record.case,
            record.arm,
            record.agent,
            record.model,
            record.variant,
            record.repetition as i64,
            record.outcome.name(),
            record.flaky,
            record.fault.and_then(|fault| word(&fault)),
            record.reason,
            record.score,
            record.max_score,
            record.started_at.as_microsecond(),
            record.started_at.as_microsecond().saturating_add((record.duration_ms as i64).saturating_mul(1000)),
            record.duration_ms as i64,
            record.turn_count as i64,
            record.tool_calls.len() as i64,
            tokens.map(|tokens| tokens.input as i64),
            tokens.map(|tokens| tokens.cache_read as i64),
            tokens.map(|tokens| tokens.cache_write as i64),
            tokens.map(|tokens| tokens.output as i64),
            tokens.and_then(|tokens| tokens.reasoning).map(|reasoning| reasoning as i64),
            cost_usd,
            record.limits.token_budget,
            record.attempts.len().max(1) as i64,
            record.errors.len() as i64,
            record.skill.as_ref().and_then(|skill| skill.version.as_deref()),
            record.skill.as_ref().map(|skill| skill.content_hash.as_str()),
            self.first_seq as i64,
            pack,
            self.start as i64,
            self.end as i64,
            record.agent_ms.map(|ms| ms as i64),
            settings,
            record.quarantine.is_some(),
        ])?;
        Ok(())
    }
}

/// Returns the usage of all attempts together.
fn spent(record: &TrialRecord) -> (Option<Tokens>, Option<f64>) {
    if record.attempts.is_empty() {
        return (record.usage, record.cost_usd);
    }
    let mut tokens: Option<Tokens> = None;
    let mut cost: Option<f64> = None;
    for attempt in &record.attempts {
        if let Some(used) = attempt.usage {
            *tokens.get_or_insert_default() += used;
        }
        if let Some(used) = attempt.cost_usd {
            *cost.get_or_insert_default() += used;
        }
    }
    (tokens, cost)
}

/// Returns the serialised name of a fieldless enum value.
fn word(value: &impl serde::Serialize) -> Option<String> {
    serde_json::to_value(value).ok().and_then(|value| value.as_str().map(str::to_owned))
}
