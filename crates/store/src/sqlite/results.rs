//! Results of cases, counted and summed by SQL, because a trend reads thousands of trials and shows one line per run.

use model::{CaseResults, Outcome, OutcomeCounts, RunResults, RunRow};
use rusqlite::{Connection, OptionalExtension, Row, named_params};

use super::SqliteError;
use super::query::{count, limit, run, shorten};
use crate::ResultFilter;
use crate::pack::damaged;

pub(super) fn results(connection: &Connection, filter: &ResultFilter) -> Result<Vec<RunResults>, SqliteError> {
    let prefixes = serde_json::to_string(&prefixes(connection, filter)?).map_err(|error| damaged(&error))?;
    // The index of trials by run and id finds the trials of a case in each run without reading others.
    let trials = "json_each(:prefixes) AS prefix CROSS JOIN trials
             ON trials.id >= prefix.value AND trials.id < prefix.value || char(1114111)
             AND (:suite IS NULL OR suite = :suite) AND (:case IS NULL OR case_id = :case)";
    let mut runs = connection.prepare_cached(&format!(
        "SELECT * FROM runs WHERE EXISTS (SELECT 1 FROM {trials} WHERE trials.run = runs.no)
         ORDER BY started_us DESC, no DESC LIMIT :last"
    ))?;
    let counts = Outcome::ALL.map(|outcome| format!("count(*) FILTER (WHERE outcome = '{0}') AS {0}", outcome.name()));
    let counts = counts.join(", ");
    let mut cases = connection.prepare_cached(&format!(
        "SELECT suite, case_id, arm, variant, quarantined, settings,
             {counts}, count(*) FILTER (WHERE outcome = 'passed' AND flaky) AS flaky,
             sum(input + ifnull(cache_read, 0) + ifnull(cache_write, 0) + ifnull(output, 0)) AS tokens,
             count(input) AS trials_with_tokens, sum(cost_usd) AS cost_usd, count(cost_usd) AS trials_with_cost,
             sum(agent_ms) AS agent_ms, count(agent_ms) AS trials_with_time
         FROM {trials} WHERE trials.run = :run GROUP BY suite, case_id, arm, variant, quarantined, settings"
    ))?;
    let found = runs.query_map(
        named_params! {
            ":prefixes": prefixes, ":suite": filter.suite, ":case": filter.case, ":last": limit(filter.last),
        },
        |row| Ok((row.get::<_, i64>("no")?, run(connection, row)?)),
    )?;
    let mut results = Vec::new();
    for found in found {
        let (number, mut run): (i64, RunRow) = found?;
        shorten(connection, &mut run)?;
        let is_whole = filter.suite.is_none() && filter.case.is_none();
        if is_whole && run.summary.is_some() && results.len() >= filter.with_cases {
            results.push(RunResults { run, cases: Vec::new() });
            continue;
        }
        let of_run = named_params! {
            ":prefixes": prefixes, ":suite": filter.suite, ":case": filter.case, ":run": number,
        };
        let cases = cases.query_map(of_run, case)?.collect::<Result<_, _>>()?;
        results.push(RunResults { run, cases });
    }
    Ok(results)
}

/// Returns the prefixes of the ids of all trials that match `filter`.
fn prefixes(connection: &Connection, filter: &ResultFilter) -> rusqlite::Result<Vec<String>> {
    Ok(match (&filter.suite, &filter.case) {
        (None, None) => vec![String::new()],
        (Some(suite), None) => vec![format!("{suite}::")],
        (Some(suite), Some(case)) => vec![format!("{suite}::{case}@")],
        (None, Some(wanted)) => {
            let named = cases(connection)?.into_iter().filter(|(_, case)| case == wanted);
            named.map(|(suite, case)| format!("{suite}::{case}@")).collect()
        }
    })
}

/// Returns the suites and cases of all trials. Each step finds the next name in the index, so the trials with the same
/// name are not read.
pub(super) fn cases(connection: &Connection) -> rusqlite::Result<Vec<(String, String)>> {
    // If both columns were compared at once, only the first would be looked up in the index.
    let mut next_case = connection.prepare_cached(
        "SELECT suite, case_id FROM trials WHERE suite = ?1 AND case_id > ?2 ORDER BY case_id LIMIT 1",
    )?;
    let mut next_suite = connection
        .prepare_cached("SELECT suite, case_id FROM trials WHERE suite > ?1 ORDER BY suite, case_id LIMIT 1")?;
    let name = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
    let mut names: Vec<(String, String)> = Vec::new();
    loop {
        let (suite, case) = names.last().map_or(("", ""), |(suite, case)| (suite, case));
        let next = match next_case.query_row([suite, case], name).optional()? {
            None => next_suite.query_row([suite], name).optional()?,
            next => next,
        };
        match next {
            Some(name) => names.push(name),
            None => return Ok(names),
        }
    }
}

fn case(row: &Row<'_>) -> rusqlite::Result<CaseResults> {
    let trials = |name: &str| row.get::<_, i64>(name).map(i64::unsigned_abs);
    let sum = |name: &str| row.get::<_, Option<i64>>(name).map(|sum| sum.map(i64::unsigned_abs));
    let mut by_outcome = OutcomeCounts::default();
    for outcome in Outcome::ALL {
        by_outcome[outcome] = count(row, outcome.name())?;
    }
    Ok(CaseResults {
        suite: row.get("suite")?,
        case: row.get("case_id")?,
        arm: row.get("arm")?,
        variant: row.get("variant")?,
        quarantined: row.get("quarantined")?,
        settings: row.get::<_, Option<i64>>("settings")?.map(|settings| format!("{settings:016x}")),
        by_outcome,
        flaky: count(row, "flaky")?,
        tokens: sum("tokens")?,
        trials_with_tokens: trials("trials_with_tokens")?,
        cost_usd: row.get("cost_usd")?,
        trials_with_cost: trials("trials_with_cost")?,
        agent_ms: sum("agent_ms")?,
        trials_with_time: trials("trials_with_time")?,
    })
}
