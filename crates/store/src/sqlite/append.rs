//! Writing: one transaction for each batch of events.

use std::collections::HashMap;

use model::{Envelope, Event, RunInfo, Summary, Tokens, TrialRecord};
use rusqlite::{Connection, Transaction, TransactionBehavior, params};

use super::run_number;
use crate::StoreError;
use crate::pack::{Packer, damaged};

/// Lines of a trial that this batch has not written yet, by the run's number and the trial's id.
type Pending<'a> = HashMap<(i64, &'a str), Vec<(u64, String)>>;

pub(super) fn append(
    connection: &mut Connection,
    packer: &mut Packer,
    owner_pid: Option<u32>,
    events: &[Envelope],
) -> Result<(), StoreError> {
    if events.is_empty() {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let mut runs: HashMap<&str, i64> = HashMap::new();
    let mut pending = Pending::new();
    for envelope in events {
        let line = serde_json::to_string(envelope).map_err(|error| damaged(&error))?;
        let run = match runs.get(envelope.run.as_str()) {
            Some(run) => *run,
            None => {
                let run = match (run_number(&transaction, &envelope.run)?, &envelope.event) {
                    (Some(run), _) => run,
                    (None, Event::RunStarted(info)) => insert_run(&transaction, packer, owner_pid, info)?,
                    (None, _) => return Err(StoreError::UnknownRun(envelope.run.clone())),
                };
                runs.insert(&envelope.run, run);
                run
            }
        };
        let trial = match (&envelope.trial, &envelope.event) {
            (Some(trial), _) => trial.as_str(),
            (None, Event::TrialFinished(record)) => record.id.as_str(),
            (None, _) => "",
        };
        pending.entry((run, trial)).or_default().push((envelope.seq, line));
        match &envelope.event {
            Event::TrialFinished(record) => {
                let lines = pending.remove(&(run, trial)).unwrap_or_default();
                finish_trial(&transaction, packer, run, trial, record, lines)?;
            }
            Event::RunFinished { summary, duration_ms, signal } => {
                finish_run(&transaction, run, envelope, summary, *duration_ms, signal.as_deref())?;
            }
            _ => {}
        }
    }
    // What a trial did that did not finish in this batch waits in the journal.
    let mut insert =
        transaction.prepare_cached("INSERT INTO journal (run, trial, seq, event) VALUES (?1, ?2, ?3, ?4)")?;
    for ((run, trial), lines) in &pending {
        for (seq, line) in lines {
            insert.execute(params![run, trial, *seq as i64, line])?;
        }
    }
    drop(insert);
    transaction.commit()?;
    Ok(())
}

fn insert_run(
    transaction: &Transaction<'_>,
    packer: &mut Packer,
    owner_pid: Option<u32>,
    info: &RunInfo,
) -> Result<i64, StoreError> {
    let json = serde_json::to_vec(info).map_err(|error| damaged(&error))?;
    transaction
        .prepare_cached(
            "INSERT INTO runs (id, label, regrade_of, started_us, owner_pid, version, planned)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        )?
        .execute(params![
            info.id,
            info.label,
            info.regrade_of,
            info.started_at.as_microsecond(),
            owner_pid,
            info.trialrun_version,
            info.trials.len() as i64,
        ])?;
    let run = transaction.last_insert_rowid();
    transaction
        .prepare_cached("INSERT INTO infos (run, info) VALUES (?1, ?2)")?
        .execute(params![run, packer.bytes(&json)?])?;
    Ok(run)
}

fn finish_trial(
    transaction: &Transaction<'_>,
    packer: &mut Packer,
    run: i64,
    id: &str,
    record: &TrialRecord,
    lines: Vec<(u64, String)>,
) -> Result<(), StoreError> {
    let mut all: Vec<(u64, String)> = transaction
        .prepare_cached("SELECT seq, event FROM journal WHERE run = ?1 AND trial = ?2 ORDER BY seq")?
        .query_map(params![run, id], |row| Ok((row.get::<_, i64>(0)?.unsigned_abs(), row.get(1)?)))?
        .collect::<Result<_, _>>()?;
    if !all.is_empty() {
        transaction.prepare_cached("DELETE FROM journal WHERE run = ?1 AND trial = ?2")?.execute(params![run, id])?;
    }
    all.extend(lines);

    let (tokens, cost_usd) = spent(record);
    transaction
        .prepare_cached(
            "INSERT INTO trials (run, id, suite, case_id, arm, agent, model, variant, repetition, outcome, flaky, fault,
                 because, score, max_score, started_us, finished_us, duration_ms, turns, tool_calls, input, cache_read,
                 cache_write, output, reasoning, cost_usd, token_budget, attempts, errors, skill_version, skill_hash,
                 first_seq)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21,
                 ?22, ?23, ?24, ?25, ?26, ?27, ?28, ?29, ?30, ?31, ?32)",
        )?
        .execute(params![
            run,
            id,
            record.suite,
            record.case,
            record.arm,
            record.agent,
            record.model,
            record.variant,
            record.repetition as i64,
            record.outcome.name(),
            record.flaky,
            word(&record.fault),
            record.because,
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
            all.first().map_or(0, |(seq, _)| *seq as i64),
        ])?;
    let json = serde_json::to_vec(record).map_err(|error| damaged(&error))?;
    transaction.prepare_cached("INSERT INTO packs (trial, record, events) VALUES (?1, ?2, ?3)")?.execute(params![
        transaction.last_insert_rowid(),
        packer.bytes(&json)?,
        packer.lines(&all)?
    ])?;
    transaction.prepare_cached("UPDATE runs SET finished = finished + 1 WHERE no = ?1")?.execute([run])?;
    Ok(())
}

fn finish_run(
    transaction: &Transaction<'_>,
    run: i64,
    envelope: &Envelope,
    summary: &Summary,
    duration_ms: u64,
    signal: Option<&str>,
) -> Result<(), StoreError> {
    let summary = serde_json::to_string(summary).map_err(|error| damaged(&error))?;
    transaction
        .prepare_cached("UPDATE runs SET finished_us = ?2, duration_ms = ?3, signal = ?4, summary = ?5 WHERE no = ?1")?
        .execute(params![run, envelope.at.as_microsecond(), duration_ms as i64, signal, summary])?;
    Ok(())
}

/// What all attempts used together.
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

/// A plain enumeration's written name.
fn word(value: &impl serde::Serialize) -> Option<String> {
    serde_json::to_value(value).ok().and_then(|value| value.as_str().map(str::to_owned))
}
