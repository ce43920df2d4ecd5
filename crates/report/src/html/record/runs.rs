//! The list of runs.

use super::frame::{Cell, Section, encoded, page, pages, run_link, table};
use crate::ListedRun;
use crate::format::{between, elapsed, money, timestamp};
use crate::html::text::text;
use crate::terminal::at_least;
use jiff::Timestamp;

/// The list of runs, or a part of it.
pub struct RunsPage<'a> {
    /// Runs, newest first.
    pub runs: &'a [ListedRun],
    /// Label or start of an id to which the list is limited.
    pub named: Option<&'a str>,
    /// Start time of the newest run before this part, if it is not the first.
    pub before: Option<Timestamp>,
    /// True if there are older runs.
    pub has_more: bool,
    /// The current time.
    pub now: Timestamp,
}

/// Returns the page with the list of runs.
pub fn runs_page(list: &RunsPage<'_>) -> String {
    let named = text(list.named.unwrap_or_default());
    let mut html = format!(
        "<h1>Runs</h1>\n<form class=\"bar\" action=\"/\"><label>Label or id <input type=\"search\" name=\"named\" \
         value=\"{named}\"></label><button>Show</button></form>\n\
         <form class=\"bar\" action=\"/compare\"><label>Compare <input name=\"before\" required value=\"previous\" \
         aria-label=\"Earlier run\"></label><label>with <input name=\"after\" required value=\"latest\" \
         aria-label=\"Later run\"></label><button>Compare</button></form>\n"
    );
    if list.runs.is_empty() {
        html.push_str("<p>There are no such runs.</p>\n");
    } else {
        let heads = ["run", "started", "label", "agents", "results", "cost", "time"];
        html.push_str(&table(heads, list.runs.iter().map(|run| row(run, list.now))));
    }
    let named = list.named.map_or_else(String::new, |named| format!("&named={}", encoded(named)));
    let older = list.runs.last().filter(|_| list.has_more);
    let older = older.map(|last| format!("/?before={}{named}", last.run.started_at.as_microsecond()));
    let newest = list.before.map(|_| format!("/?{}", named.trim_start_matches('&')));
    html.push_str(&pages(&[(newest, "Newest runs"), (older, "Older runs")]));
    page(Section::Runs, "Runs", &html)
}

fn row(listed: &ListedRun, now: Timestamp) -> [Cell; 7] {
    let run = &listed.run;
    let (class, sign) = match listed.word() {
        "running" => ("running", '▸'),
        "passed" => ("passed", '✓'),
        "failed" => ("failed", '✗'),
        _ => ("undecided", '?'),
    };
    let sign = format!("<span class=\"{class}\"><span class=\"sign\" aria-hidden=\"true\">{sign}</span></span>");
    let label = run
        .label
        .as_ref()
        .map_or_else(String::new, |label| format!("<a href=\"/?named={}\">{}</a>", encoded(label), text(label)));
    let time = match run.duration_ms {
        None if listed.alive => Some(between(run.started_at, now)),
        known => known,
    };
    let (summary, with_cost) = (&listed.summary, listed.summary.trials_with_cost);
    [
        Cell::html(run_link(&run.id, &run.short)),
        Cell::muted(&timestamp(run.started_at)),
        Cell::html(label),
        Cell::text(&listed.agents()),
        Cell::html(format!("<span>{sign}{}</span>", text(&listed.results()))),
        Cell::number(&summary.cost_usd.map_or_else(String::new, |cost| at_least(money(cost), summary, with_cost))),
        Cell::number(&time.map_or_else(String::new, elapsed)),
    ]
}
