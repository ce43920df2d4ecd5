//! The trend of whole runs, and the parts that the page of a case shares with it.

use model::RunResults;

use super::course::course;
use super::frame::{Cell, Section, case_link, page, run_link, table};
use crate::counts::{described, share};
use crate::format::{counted, number, range, timestamp};
use crate::html::text::text;
use crate::trend::{Flaky, TrendOf, TrendRow, cases_of, flaky_cases, trend_rows};

/// Maximum number of flaky cases that are listed.
const FLAKY: usize = 100;

/// Returns the page with the trend of whole runs, which are newest first.
pub fn trend_page(runs: &[RunResults]) -> String {
    let mut html = String::from("<h1>Trend</h1>\n");
    if runs.is_empty() {
        html.push_str("<p>No trials are recorded yet.</p>\n");
        return page(Section::Trend, "Trend", &html);
    }
    html.push_str(&format!("<p class=\"muted\">Pass rate of {}</p>\n", newest(runs.len())));
    for (_, rows) in trend_rows(runs, TrendOf::Runs) {
        html.push_str(&lines(&rows, ["tokens", "cost", "time"]));
    }
    let flaky = flaky_cases(runs);
    if !flaky.is_empty() {
        let what = counted(cases_of(&flaky), "flaky case");
        html.push_str(&format!("<section><h2>{what}: both outcomes under equal settings</h2>\n"));
        let heads = ["case", "arm", "passed", "after a rerun", "runs", ""];
        html.push_str(&table(heads, flaky.iter().take(FLAKY).map(flaky_row)));
        if let Some(more) = flaky.len().checked_sub(FLAKY).filter(|more| *more > 0) {
            html.push_str(&format!("<p class=\"muted\">and {more} more</p>\n"));
        }
        html.push_str("</section>\n");
    }
    page(Section::Trend, "Trend", &html)
}

/// Returns `the newest 20 runs`.
pub(super) fn newest(runs: usize) -> String {
    if runs == 1 { "the newest run".to_owned() } else { format!("the newest {}", counted(runs, "run")) }
}

/// Draws a line of a trend, with a table of its runs.
pub(super) fn lines(rows: &[TrendRow<'_>], spent: [&str; 3]) -> String {
    let row = |row: &TrendRow<'_>| {
        let [tokens, cost, time] = &row.spent;
        [
            Cell::html(run_link(&row.run.id, &row.run.short)),
            Cell::muted(&timestamp(row.run.started_at)),
            Cell::text(row.run.label.as_deref().unwrap_or_default()),
            Cell::number(&described(row.counts)),
            Cell::number(&share(row.counts)),
            Cell::number(&row.interval.map_or_else(String::new, range)),
            Cell::number(tokens),
            Cell::number(cost),
            Cell::number(time),
            Cell::html(text(&row.notes)),
        ]
    };
    let [tokens, cost, time] = spent;
    let heads = ["run", "started", "label", "passed", "rate", "95 %", tokens, cost, time, "notes"];
    course(rows) + &table(heads, rows.iter().map(row))
}

fn flaky_row(flaky: &Flaky<'_>) -> [Cell; 6] {
    [
        Cell::html(case_link(&flaky.case.suite, &flaky.case.case)),
        Cell::text(&flaky.case.arm),
        Cell::number(&described(flaky.counted())),
        Cell::number(&if flaky.rerun > 0 { number(flaky.rerun as u64) } else { String::new() }),
        Cell::number(&number(flaky.runs as u64)),
        Cell::muted(&flaky.notes()),
    ]
}
