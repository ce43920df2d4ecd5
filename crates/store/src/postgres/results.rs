//! Results of cases, which are kept as rows.

use std::collections::HashMap;

use model::{CaseResults, Outcome, OutcomeCounts, RunResults, Summary, Tokens, WITHOUT_SKILL};
use tokio_postgres::Row;

use super::pool::{PostgresError, Session};
use super::query::{self, limit};
use crate::ResultFilter;

/// Columns of `results` that identify a row.
const KEY: &str = "run, suite, case_id, arm, variant, quarantined, settings";

/// Columns of `results` that are sums, each as an expression over trials.
fn sums() -> Vec<(String, String)> {
    let sum = |column: &str| (column.to_owned(), format!("coalesce(sum({column}), 0)::bigint"));
    let known = |name: &str, column: &str| (name.to_owned(), format!("count({column})"));
    let outcomes = Outcome::ALL.map(|outcome| {
        let name = outcome.name();
        (name.to_owned(), format!("count(*) FILTER (WHERE outcome = '{name}')"))
    });
    let passed_flaky = "coalesce(sum(flaky) FILTER (WHERE outcome = 'passed'), 0)::bigint";
    let others = [
        sum("flaky"),
        ("passed_flaky".to_owned(), passed_flaky.to_owned()),
        known("trials_with_tokens", "input"),
        sum("input"),
        sum("cache_read"),
        sum("cache_write"),
        sum("output"),
        known("trials_with_reasoning", "reasoning"),
        sum("reasoning"),
        known("trials_with_cost", "cost_usd"),
        ("cost_usd".to_owned(), "coalesce(sum(cost_usd), 0)".to_owned()),
        known("trials_with_time", "agent_ms"),
        sum("agent_ms"),
    ];
    outcomes.into_iter().chain(others).collect()
}

/// Returns the statement that adds trials, which are rows of `from`, to the results of their cases.
pub(super) fn add(from: &str) -> String {
    let (names, expressions): (Vec<String>, Vec<String>) = sums().into_iter().unzip();
    let added: Vec<String> = names.iter().map(|name| format!("{name} = results.{name} + excluded.{name}")).collect();
    format!(
        "INSERT INTO results ({KEY}, {}) SELECT run, suite, case_id, arm, coalesce(variant, ''), quarantined, settings, {}
         FROM {from} GROUP BY 1, 2, 3, 4, 5, 6, 7
         ON CONFLICT ({KEY}) DO UPDATE SET {}",
        names.join(", "),
        expressions.join(", "),
        added.join(", ")
    )
}

pub(super) async fn results(session: &mut Session, filter: &ResultFilter) -> Result<Vec<RunResults>, PostgresError> {
    let select = format!(
        "SELECT {} FROM runs WHERE EXISTS (
             SELECT FROM results WHERE results.run = runs.no
                 AND ($1::text IS NULL OR suite = $1) AND ($2::text IS NULL OR case_id = $2)
         )
         ORDER BY started_us DESC, no DESC LIMIT $3",
        query::RUN
    );
    let rows = session.query(&select, &[&filter.suite, &filter.case, &limit(filter.last)]).await?;
    let is_whole = filter.suite.is_none() && filter.case.is_none();
    let mut results = Vec::with_capacity(rows.len());
    let mut counted = Vec::new();
    for (at, row) in rows.iter().enumerate() {
        let run = query::run(row)?;
        if !is_whole || run.summary.is_none() || at < filter.with_cases {
            counted.push(row.try_get::<_, i64>("no")?);
        }
        results.push((row.try_get::<_, i64>("no")?, RunResults { run, cases: Vec::new() }));
    }
    let select = "SELECT * FROM results WHERE run = ANY($1)
             AND ($2::text IS NULL OR suite = $2) AND ($3::text IS NULL OR case_id = $3)
         ORDER BY suite, case_id, arm, variant, quarantined, settings";
    let mut cases: HashMap<i64, Vec<CaseResults>> = HashMap::new();
    for row in session.query(select, &[&counted, &filter.suite, &filter.case]).await? {
        cases.entry(row.try_get("run")?).or_default().push(case(&row)?);
    }
    for (number, run) in &mut results {
        run.cases = cases.remove(number).unwrap_or_default();
    }
    Ok(results.into_iter().map(|(_, results)| results).collect())
}

/// Returns the query for the suites and cases of a run whose results are not the sums of their trials.
pub(super) fn differences() -> String {
    let names: Vec<String> = sums().into_iter().map(|(name, _)| name).filter(|name| name != "cost_usd").collect();
    let names = names.join(", ");
    let counted: Vec<String> = sums().into_iter().map(|(name, sum)| format!("{sum} AS {name}")).collect();
    format!(
        "WITH counted AS (
             SELECT run, suite, case_id, arm, coalesce(variant, '') AS variant, quarantined, settings, {}
             FROM trials WHERE run = $1 GROUP BY 1, 2, 3, 4, 5, 6, 7
         ), stored AS (SELECT * FROM results WHERE run = $1)
         SELECT DISTINCT suite, case_id FROM counted FULL JOIN stored USING ({KEY})
         WHERE ({}) IS DISTINCT FROM ({})
             OR abs(counted.cost_usd - stored.cost_usd) > 1e-9 * greatest(abs(counted.cost_usd), 1)
         ORDER BY 1, 2",
        counted.join(", "),
        prefixed("counted", &names),
        prefixed("stored", &names)
    )
}

fn prefixed(table: &str, names: &str) -> String {
    names.split(", ").map(|name| format!("{table}.{name}")).collect::<Vec<_>>().join(", ")
}

/// Returns the suites and cases of all trials. Each step finds the next name in the index, so that rows with the same name
/// are not read.
pub(super) async fn cases(session: &mut Session) -> Result<Vec<(String, String)>, PostgresError> {
    let select = "WITH RECURSIVE names AS (
             (SELECT suite, case_id FROM results ORDER BY suite, case_id LIMIT 1)
             UNION ALL
             SELECT next.suite, next.case_id FROM names CROSS JOIN LATERAL (
                 SELECT suite, case_id FROM results WHERE (suite, case_id) > (names.suite, names.case_id)
                 ORDER BY suite, case_id LIMIT 1
             ) AS next
         )
         SELECT suite, case_id FROM names";
    let rows = session.query(select, &[]).await?;
    rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).collect()
}

/// Counts the finished trials of a run, as far as the columns allow.
pub(super) async fn summary(session: &mut Session, run: i64) -> Result<Summary, PostgresError> {
    let mut summary = Summary::default();
    for row in session.query("SELECT * FROM results WHERE run = $1 ORDER BY suite, case_id, arm", &[&run]).await? {
        let case = case(&row)?;
        let trials = case.by_outcome.sum(|_| true);
        if let Some(cost) = case.cost_usd {
            *summary.cost_usd.get_or_insert_default() += cost;
        }
        if let Some(tokens) = tokens(&row)? {
            *summary.tokens.get_or_insert_default() += tokens;
        }
        summary.trials_with_tokens += usize::try_from(case.trials_with_tokens).unwrap_or(0);
        summary.trials_with_cost += usize::try_from(case.trials_with_cost).unwrap_or(0);
        if case.variant.as_deref() == Some(WITHOUT_SKILL) {
            summary.baseline += trials;
            continue;
        }
        for outcome in Outcome::ALL {
            let count = case.by_outcome[outcome];
            if case.quarantined && outcome != Outcome::Cancelled {
                if count > 0 {
                    *summary.quarantined.entry(outcome).or_default() += count;
                }
                continue;
            }
            summary.trials += count;
            summary.by_outcome[outcome] += count;
        }
        if !case.quarantined {
            summary.flaky += usize::try_from(row.try_get::<_, i64>("flaky")?).unwrap_or(0);
        }
    }
    summary.update_pass_rate();
    Ok(summary)
}

fn tokens(row: &Row) -> Result<Option<Tokens>, tokio_postgres::Error> {
    let sum = |name: &str| row.try_get::<_, i64>(name).map(i64::unsigned_abs);
    if sum("trials_with_tokens")? == 0 {
        return Ok(None);
    }
    Ok(Some(Tokens {
        input: sum("input")?,
        cache_read: sum("cache_read")?,
        cache_write: sum("cache_write")?,
        output: sum("output")?,
        reasoning: (sum("trials_with_reasoning")? > 0).then(|| sum("reasoning")).transpose()?,
    }))
}

fn case(row: &Row) -> Result<CaseResults, tokio_postgres::Error> {
    let sum = |name: &str| row.try_get::<_, i64>(name).map(i64::unsigned_abs);
    let mut by_outcome = OutcomeCounts::default();
    for outcome in Outcome::ALL {
        by_outcome[outcome] = query::count(row, outcome.name())?;
    }
    let tokens = tokens(row)?;
    let [trials_with_cost, trials_with_time] = [sum("trials_with_cost")?, sum("trials_with_time")?];
    Ok(CaseResults {
        suite: row.try_get("suite")?,
        case: row.try_get("case_id")?,
        arm: row.try_get("arm")?,
        variant: Some(row.try_get("variant")?).filter(|variant: &String| !variant.is_empty()),
        quarantined: row.try_get::<_, i64>("quarantined")? != 0,
        settings: Some(format!("{:016x}", row.try_get::<_, i64>("settings")?)),
        by_outcome,
        flaky: query::count(row, "passed_flaky")?,
        tokens: tokens.map(|tokens| tokens.total()),
        trials_with_tokens: sum("trials_with_tokens")?,
        cost_usd: (trials_with_cost > 0).then(|| row.try_get("cost_usd")).transpose()?,
        trials_with_cost,
        agent_ms: (trials_with_time > 0).then(|| sum("agent_ms")).transpose()?,
        trials_with_time,
    })
}
