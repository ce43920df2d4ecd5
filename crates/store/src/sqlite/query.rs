//! Queries for lists, which use only columns, and for single records.

use jiff::Timestamp;
use model::{Event, Outcome, RunInfo, RunRow, Summary, Tokens, TrialRecord, TrialRow, WITHOUT_SKILL};
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, Row, params, params_from_iter};

use super::finish::read_pack;
use super::verify::place;
use super::{SqliteError, lease};
use crate::columns::{LISTED, time, trial_row, value};
use crate::pack::{damaged, event, unpack};
use crate::packs::Packs;
use crate::{RunFilter, StoreError, TrialFilter};

/// Minimum length of a shortened id.
const MIN_ID_LEN: usize = 8;

pub(super) fn runs(connection: &Connection, filter: &RunFilter) -> Result<Vec<RunRow>, SqliteError> {
    let mut statement = connection.prepare_cached(
        "SELECT * FROM runs
         WHERE started_us < ?1 AND (?2 IS NULL OR label = ?2 OR substr(id, 1, length(?2)) = ?2)
             AND (?3 OR finished_us IS NULL OR signal IS NOT NULL)
         ORDER BY started_us DESC, no DESC LIMIT ?4",
    )?;
    let before = filter.before.map_or(i64::MAX, Timestamp::as_microsecond);
    let values = (before, &filter.named, !filter.interrupted, limit(filter.last));
    let rows = statement.query_map(values, |row| run(connection, row))?;
    let mut runs: Vec<RunRow> = rows.collect::<Result<_, _>>()?;
    runs.iter_mut().try_for_each(|run| shorten(connection, run))?;
    Ok(runs)
}

/// Reads a row of the `runs` table. The short id is set by [`shorten`].
pub(super) fn run(connection: &Connection, row: &Row<'_>) -> rusqlite::Result<RunRow> {
    let id: String = row.get("id")?;
    let sequential = match row.get("sequential")? {
        Some(sequential) => sequential,
        // Recorded by an older version, and not finished.
        None => info(connection, &id).map_or(true, |info| info.decisions > 0),
    };
    Ok(RunRow {
        id,
        short: String::new(),
        label: row.get("label")?,
        regrade_of: row.get("regrade_of")?,
        started_at: time(row.get("started_us")?),
        finished_at: row.get::<_, Option<i64>>("finished_us")?.map(time),
        duration_ms: row.get::<_, Option<i64>>("duration_ms")?.map(i64::unsigned_abs),
        signal: row.get("signal")?,
        lease: lease::read(row)?,
        trialrun_version: row.get("version")?,
        agents: serde_json::from_str(&row.get::<_, String>("agents")?).unwrap_or_default(),
        planned: count(row, "planned")?,
        finished: count(row, "finished")?,
        sequential,
        missing_shards: row
            .get::<_, Option<String>>("missing_shards")?
            .and_then(|json| serde_json::from_str(&json).ok()),
        hash: row.get::<_, Option<Vec<u8>>>("chain")?.map(|hash| model::text::hex(&hash)),
        summary: row.get::<_, Option<String>>("summary")?.and_then(|json| {
            let mut summary: Summary = serde_json::from_str(&json).ok()?;
            summary.update_pass_rate();
            Some(summary)
        }),
    })
}

/// Counts the finished trials of a run, as far as the columns allow.
pub(super) fn summary(connection: &Connection, run: i64) -> Result<Summary, SqliteError> {
    let mut statement = connection.prepare_cached(
        "SELECT outcome, variant IS ?2 AS is_baseline, quarantined, count(*) AS trials, sum(flaky) AS flaky,
             sum(cost_usd) AS cost_usd, count(cost_usd) AS trials_with_cost,
             count(input) AS trials_with_tokens, sum(input) AS input, sum(cache_read) AS cache_read, sum(cache_write) AS cache_write,
             sum(output) AS output, sum(reasoning) AS reasoning
         FROM trials WHERE run = ?1 GROUP BY 1, 2, 3",
    )?;
    let mut rows = statement.query(params![run, WITHOUT_SKILL])?;
    let mut summary = Summary::default();
    while let Some(row) = rows.next()? {
        let trials = count(row, "trials")?;
        if let Some(cost) = row.get::<_, Option<f64>>("cost_usd")? {
            *summary.cost_usd.get_or_insert_default() += cost;
        }
        if let Some(tokens) = tokens(row)? {
            *summary.tokens.get_or_insert_default() += tokens;
        }
        summary.trials_with_tokens += count(row, "trials_with_tokens")?;
        summary.trials_with_cost += count(row, "trials_with_cost")?;
        if row.get("is_baseline")? {
            summary.baseline += trials;
            continue;
        }
        let outcome = value(row.get("outcome")?).unwrap_or(Outcome::Undecided);
        if row.get("quarantined")? && outcome != Outcome::Cancelled {
            *summary.quarantined.entry(outcome).or_default() += trials;
            continue;
        }
        summary.trials += trials;
        summary.flaky += count(row, "flaky")?;
        summary.by_outcome[outcome] += trials;
    }
    summary.update_pass_rate();
    Ok(summary)
}

/// Sets the run's short id: the shortest prefix that no other run's id has. It only needs to be compared with its
/// neighbours in sort order, because no other id shares a longer prefix.
pub(super) fn shorten(connection: &Connection, run: &mut RunRow) -> rusqlite::Result<()> {
    let shared = |query: &str| {
        let other: Option<String> = connection.prepare_cached(query)?.query_row([&run.id], |row| row.get(0))?;
        let shared = |other: String| run.id.chars().zip(other.chars()).take_while(|(a, b)| a == b).count();
        Ok::<_, rusqlite::Error>(other.map_or(0, shared))
    };
    let before = shared("SELECT max(id) FROM runs WHERE id < ?1")?;
    let after = shared("SELECT min(id) FROM runs WHERE id > ?1")?;
    run.short = run.id.chars().take((before.max(after) + 1).max(MIN_ID_LEN)).collect();
    Ok(())
}

pub(super) fn each_trial(
    connection: &Connection,
    filter: &TrialFilter,
    take: &mut dyn FnMut(TrialRow) -> bool,
) -> Result<(), SqliteError> {
    let mut conditions = String::new();
    let mut values: Vec<Value> = Vec::new();
    let mut require = |condition: &str, value: &Option<String>| {
        if let Some(value) = value {
            conditions.push_str(if values.is_empty() { " WHERE " } else { " AND " });
            values.push(value.clone().into());
            conditions.push_str(&condition.replace('?', &format!("?{}", values.len())));
        }
    };
    require("runs.id = ?", &filter.run);
    require("trials.suite = ?", &filter.suite);
    require("trials.case_id = ?", &filter.case);
    require("instr(trials.id, ?) > 0", &filter.text);
    // An empty name is a prefix of everything.
    let named = filter.named.clone().filter(|name| !name.is_empty());
    require(
        "(substr(trials.id, 1, length(?)) = ? OR substr(trials.case_id, 1, length(?)) = ?
             OR trials.suite || '::' || trials.case_id || '#' || trials.repetition = ?)",
        &named,
    );
    // If no index can answer a condition, the newest runs are read first, and only as many as needed.
    let is_indexed = filter.run.is_some() || filter.suite.is_some() || filter.case.is_some();
    let tables = if is_indexed { "runs JOIN trials" } else { "runs CROSS JOIN trials" };
    values.push(limit(filter.last).into());
    let mut statement = connection.prepare_cached(&format!(
        "SELECT {LISTED} FROM {tables} ON runs.no = trials.run{conditions}
         ORDER BY runs.started_us DESC, runs.no DESC, trials.finished_us DESC, trials.no DESC LIMIT ?"
    ))?;
    let mut rows = statement.query(params_from_iter(values))?;
    while let Some(row) = rows.next()? {
        let mut columns = 0_usize..;
        let next = || Ok::<_, SqliteError>(row.get(columns.next().unwrap_or_default())?);
        if !take(trial_row(next)?) {
            break;
        }
    }
    Ok(())
}

pub(super) fn info(connection: &Connection, run: &str) -> Result<RunInfo, SqliteError> {
    let packed: Option<Vec<u8>> = connection
        .prepare_cached("SELECT info FROM infos JOIN runs ON runs.no = infos.run WHERE runs.id = ?1")?
        .query_row([run], |row| row.get(0))
        .optional()?;
    let packed = packed.ok_or_else(|| StoreError::UnknownRun(run.to_owned()))?;
    Ok(serde_json::from_slice(&unpack(&packed)?).map_err(|error| damaged(&error))?)
}

/// Returns the records of trials in the given order. A record is in the last event of its trial. Records are read in
/// the order of their packs, so that each pack is unpacked only once.
pub(super) fn records(connection: &Connection, run: &str, trials: &[&str]) -> Result<Vec<TrialRecord>, SqliteError> {
    let mut statement = connection.prepare_cached(
        "SELECT pack, pack_start, pack_end FROM trials JOIN runs ON runs.no = trials.run
         WHERE runs.id = ?1 AND trials.id = ?2",
    )?;
    let mut places = Vec::with_capacity(trials.len());
    for (index, trial) in trials.iter().enumerate() {
        let place = statement.query_row([run, trial], place).optional()?;
        let unknown = || StoreError::UnknownTrial { run: run.to_owned(), trial: (*trial).to_owned() };
        places.push((place.ok_or_else(unknown)?, index));
    }
    places.sort_unstable();
    let mut packs = Packs::default();
    let mut records = Vec::with_capacity(trials.len());
    for (place, at) in places {
        let last = packs.lines(place, |pack| read_pack(connection, pack))?.lines().next_back().unwrap_or_default();
        let (_, last) = event(last)?;
        let Some(Event::TrialFinished(record)) = last.known().map(|envelope| envelope.event) else {
            return Err(StoreError::Damaged(format!("the last event of `{}` is not its outcome", trials[at])).into());
        };
        records.push((at, *record));
    }
    records.sort_unstable_by_key(|(at, _)| *at);
    Ok(records.into_iter().map(|(_, record)| record).collect())
}

fn tokens(row: &Row<'_>) -> rusqlite::Result<Option<Tokens>> {
    let number = |name: &str| Ok::<_, rusqlite::Error>(row.get::<_, Option<i64>>(name)?.map(i64::unsigned_abs));
    let Some(input) = number("input")? else { return Ok(None) };
    Ok(Some(Tokens {
        input,
        cache_read: number("cache_read")?.unwrap_or(0),
        cache_write: number("cache_write")?.unwrap_or(0),
        output: number("output")?.unwrap_or(0),
        reasoning: number("reasoning")?,
    }))
}

pub(super) fn count(row: &Row<'_>, name: &str) -> rusqlite::Result<usize> {
    Ok(usize::try_from(row.get::<_, i64>(name)?).unwrap_or(0))
}

pub(super) fn limit(last: Option<usize>) -> i64 {
    last.and_then(|last| i64::try_from(last).ok()).unwrap_or(-1)
}
