//! Writing: one transaction for each batch of events.

use std::collections::HashMap;

use jiff::Timestamp;
use model::{Envelope, Event, Lease, RunInfo, Summary};
use rusqlite::{Connection, Transaction, TransactionBehavior, params};

use super::{SqliteError, chain, finish, lease, run_number, verify};
use crate::chain::digest;
use crate::chain_writer::Chains;
use crate::lines::{Earlier, Group, Lines};
use crate::pack::{Packer, damaged, pack_json};
use crate::test_files::TestFiles;
use crate::{StoreError, Verification};

pub(super) fn append(
    connection: &mut Connection,
    packer: &mut Packer,
    chains: &mut Chains,
    owner: Option<&str>,
    events: &[Envelope],
) -> Result<(), SqliteError> {
    let Some(last) = events.last() else { return Ok(()) };
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let mut batch = Batch {
        transaction: &transaction,
        packer,
        chains,
        owner,
        runs: Vec::new(),
        open: HashMap::new(),
        groups: HashMap::new(),
    };
    for envelope in events {
        batch.add(envelope)?;
    }
    batch.renew(last.at)?;
    batch.close()?;
    transaction.commit()?;
    Ok(())
}

/// A batch being written.
struct Batch<'a, 'e> {
    transaction: &'a Transaction<'a>,
    packer: &'a mut Packer,
    chains: &'a mut Chains,
    owner: Option<&'a str>,
    /// Ids and numbers of the runs. Nearly always there is only one run.
    runs: Vec<(&'e str, i64)>,
    /// Events in this batch that belong to trials without an outcome, by the run's number and the trial's id; the
    /// run's own events are under ''.
    open: HashMap<(i64, &'e str), Lines>,
    /// Trials that got their outcome in this batch and are not yet written, by the run's number.
    groups: HashMap<i64, Group<'e>>,
}

impl<'e> Batch<'_, 'e> {
    fn add(&mut self, envelope: &'e Envelope) -> Result<(), SqliteError> {
        let run = self.run(envelope)?;
        let trial = match (&envelope.trial, &envelope.event) {
            (Some(trial), _) => &**trial,
            (None, Event::TrialFinished(record)) => &*record.id,
            (None, _) => "",
        };
        let lines = self.open.entry((run, trial)).or_default();
        lines.push(envelope)?;
        if trial.is_empty() {
            chain::add(self.chains, self.transaction, run, envelope.seq, trial, &digest(lines.last()))?;
        }
        match &envelope.event {
            Event::TrialFinished(record) => {
                let lines = self.open.remove(&(run, trial)).unwrap_or_default();
                let earlier = match lines.from_the_start {
                    true => Earlier::default(),
                    false => finish::take_journal(self.transaction, run, trial)?,
                };
                let group = self.groups.entry(run).or_default();
                let stored = group.add(trial, record, earlier, &lines);
                let digest = self.chains.digest(run, trial, &lines, stored);
                chain::add(self.chains, self.transaction, run, envelope.seq, trial, &digest)?;
                if group.is_full() {
                    finish::write(group, self.transaction, self.packer, run)?;
                }
            }
            Event::RunFinished { summary, duration_ms, signal } => {
                finish_run(self.transaction, run, envelope, summary, *duration_ms, signal.as_deref())?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Returns the number of the event's run. The first event of a run creates it.
    fn run(&mut self, envelope: &'e Envelope) -> Result<i64, SqliteError> {
        if let Some((_, run)) = self.runs.iter().find(|(id, _)| **id == *envelope.run) {
            return Ok(*run);
        }
        let run = match (run_number(self.transaction, &envelope.run)?, &envelope.event) {
            (Some(run), _) => run,
            (None, Event::RunStarted(info)) => {
                let run = insert_run(self.transaction, self.owner, info)?;
                self.chains.begin(run, &info.id);
                run
            }
            (None, _) => return Err(StoreError::UnknownRun(envelope.run.to_string()).into()),
        };
        self.runs.push((&envelope.run, run));
        Ok(run)
    }

    /// Renews the leases of the runs in this batch. If another owner has one of them, nothing of the batch is stored.
    fn renew(&self, at: Timestamp) -> Result<(), SqliteError> {
        self.runs.iter().try_for_each(|(id, run)| lease::renew(self.transaction, self.owner, *run, id, at))
    }

    fn close(mut self) -> Result<(), SqliteError> {
        for (run, group) in &mut self.groups {
            finish::write(group, self.transaction, self.packer, *run)?;
        }
        // Events of trials that did not finish in this batch go to the journal.
        let mut insert =
            self.transaction.prepare_cached("INSERT INTO journal (run, trial, seq, event) VALUES (?1, ?2, ?3, ?4)")?;
        for ((run, trial), lines) in &self.open {
            if !trial.is_empty() {
                self.chains.note(*run, trial, lines);
            }
            for (seq, line) in lines.iter() {
                insert.execute(params![run, trial, seq as i64, line?])?;
            }
        }
        chain::write(self.chains, self.transaction)
    }
}

fn insert_run(transaction: &Transaction<'_>, owner: Option<&str>, info: &RunInfo) -> Result<i64, SqliteError> {
    let missing_shards = info.missing_shards.as_ref().map(serde_json::to_string);
    transaction
        .prepare_cached(
            "INSERT INTO runs (id, label, regrade_of, started_us, owner, version, planned, agents,
                 test_files, missing_shards, sequential)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
        )?
        .execute(params![
            info.id,
            info.label,
            info.regrade_of,
            info.started_at.as_microsecond(),
            owner,
            info.trialrun_version,
            info.trials.len() as i64,
            serde_json::to_string(&info.agents).map_err(|error| damaged(&error))?,
            TestFiles::of(info).to_json().map_err(|error| damaged(&error))?,
            missing_shards.transpose().map_err(|error| damaged(&error))?,
            info.decisions > 0,
        ])?;
    let run = transaction.last_insert_rowid();
    transaction
        .prepare_cached("INSERT INTO infos (run, info) VALUES (?1, ?2)")?
        .execute(params![run, pack_json(info)?])?;
    Ok(run)
}

fn finish_run(
    transaction: &Transaction<'_>,
    run: i64,
    envelope: &Envelope,
    summary: &Summary,
    duration_ms: u64,
    signal: Option<&str>,
) -> Result<(), SqliteError> {
    let summary = serde_json::to_string(summary).map_err(|error| damaged(&error))?;
    transaction
        .prepare_cached("UPDATE runs SET finished_us = ?2, duration_ms = ?3, signal = ?4, summary = ?5 WHERE no = ?1")?
        .execute(params![run, envelope.at.as_microsecond(), duration_ms as i64, signal, summary])?;
    Ok(())
}

/// Removes everything from a run except its start and its finished trials, and sets its owner and the time of its lease.
/// A run that was changed is rejected, because its new chain would hide the change.
pub(super) fn reopen(
    connection: &mut Connection,
    (owner, at): (Option<&str>, Timestamp),
    run: i64,
    id: &str,
    former: Option<&Lease>,
) -> Result<(), SqliteError> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    lease::compare(&transaction, id, former)?;
    if let Verification::Changed { differences } = verify::verify(&transaction, run, id)? {
        let reason = differences.first().map(ToString::to_string).unwrap_or_default();
        return Err(StoreError::Changed { run: id.to_owned(), reason }.into());
    }
    transaction.execute("DELETE FROM trials WHERE run = ?1 AND outcome = 'cancelled'", [run])?;
    // The first event of a run is its start.
    transaction.execute(
        "DELETE FROM journal WHERE run = ?1
             AND seq > (SELECT min(seq) FROM journal WHERE run = ?1 AND trial = '')",
        [run],
    )?;
    transaction.execute(
        "UPDATE runs SET owner = ?2, renewed_us = ?3, finished_us = NULL, duration_ms = NULL, signal = NULL, summary = NULL,
             finished = (SELECT count(*) FROM trials WHERE run = ?1)
         WHERE no = ?1",
        params![run, owner, at.as_microsecond()],
    )?;
    chain::relink(&transaction, run, id)?;
    Ok(transaction.commit()?)
}

/// Changes the events in the journal of a trial that has no outcome. If they are not those that this writer has written,
/// its digest of them stays, so that the difference is found later.
pub(super) fn rewrite(
    connection: &mut Connection,
    chains: &mut Chains,
    run: i64,
    trial: &str,
    change: &mut dyn FnMut(&mut Event),
) -> Result<(), SqliteError> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let (mut before, mut after) = (Vec::new(), Vec::new());
    {
        let mut select =
            transaction.prepare_cached("SELECT seq, event FROM journal WHERE run = ?1 AND trial = ?2 ORDER BY seq")?;
        let mut update =
            transaction.prepare_cached("UPDATE journal SET event = ?4 WHERE run = ?1 AND trial = ?2 AND seq = ?3")?;
        let stored = select.query_map(params![run, trial], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let stored: Vec<(i64, String)> = stored.collect::<Result<_, _>>()?;
        for (seq, line) in stored {
            let mut envelope: Envelope = serde_json::from_str(&line).map_err(|error| damaged(&error))?;
            change(&mut envelope.event);
            let changed = serde_json::to_string(&envelope).map_err(|error| damaged(&error))?;
            if changed != line {
                update.execute(params![run, trial, seq, changed])?;
            }
            for (lines, line) in [(&mut before, line), (&mut after, changed)] {
                lines.extend_from_slice(line.as_bytes());
                lines.push(b'\n');
            }
        }
    }
    transaction.commit()?;
    chains.renote(run, trial, &before, &after);
    Ok(())
}
