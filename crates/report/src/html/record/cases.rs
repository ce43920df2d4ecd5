//! The list of cases, and the page of one case.

use std::collections::HashMap;

use model::statistics::Counted;
use model::{Outcome, RunResults, TrialRow};

use super::frame::{Cell, Section, case_link, encoded, page, pages, run_link, table, trial_link};
use super::trend::{lines, newest};
use crate::counts::{described, share};
use crate::format::{elapsed, money, number, timestamp};
use crate::html::text::{marked, text};
use crate::names::is_baseline;
use crate::plain;
use crate::trend::{TrendOf, trend_rows};

/// Maximum number of characters of a reason.
const REASON: usize = 400;

/// The list of cases, or a part of it.
pub struct CasesPage<'a> {
    /// Suites and cases of this part.
    pub cases: &'a [(String, String)],
    /// The newest runs, newest first.
    pub runs: &'a [RunResults],
    /// Text to which the list is limited.
    pub text: Option<&'a str>,
    /// Number of the part, from 1.
    pub number: usize,
    /// Number of parts.
    pub parts: usize,
}

/// Results of a case in the newest runs, newest first: the run, and its counts.
type Course<'a> = Vec<(&'a RunResults, Counted)>;

/// Returns the page with the list of cases.
pub fn cases_page(list: &CasesPage<'_>) -> String {
    let searched = list.text.unwrap_or_default();
    let mut html = format!(
        "<h1>Cases</h1>\n<form class=\"bar\" action=\"/cases\"><label>Text in the suite or the case <input \
         type=\"search\" name=\"text\" value=\"{}\"></label><button>Show</button></form>\n",
        text(searched)
    );
    if list.cases.is_empty() {
        html.push_str("<p>There are no such cases.</p>\n");
        return page(Section::Cases, "Cases", &html);
    }
    let mut courses: HashMap<(&str, &str), Course<'_>> = HashMap::new();
    for run in list.runs {
        for case in run.cases.iter().filter(|case| !case.is_baseline()) {
            let course = courses.entry((&case.suite, &case.case)).or_default();
            match course.last_mut().filter(|(last, _)| last.run.id == run.run.id) {
                Some((_, counts)) => *counts += case.counted(),
                None => course.push((run, case.counted())),
            }
        }
    }
    let row = |(suite, case): &(String, String)| {
        let course = courses.get(&(suite.as_str(), case.as_str())).map_or(&[][..], Vec::as_slice);
        let mut sum = Counted::default();
        course.iter().for_each(|(_, counts)| sum += *counts);
        let [passed, rate, last] = match course.first() {
            None => [String::new(), String::new(), "not in these runs".to_owned()],
            Some((last, counts)) => {
                [described(sum), share(sum), format!("{} {}", described(*counts), timestamp(last.run.started_at))]
            }
        };
        [
            Cell::html(case_link(suite, case)),
            Cell::html(format!("<span class=\"marks\">{}</span>", course.iter().rev().map(mark).collect::<String>())),
            Cell::number(&passed),
            Cell::number(&rate),
            Cell::muted(&last),
        ]
    };
    html.push_str(&format!("<p class=\"muted\">Results in {}, oldest first</p>\n", newest(list.runs.len())));
    html.push_str(&table(["case", "runs", "passed", "rate", "last"], list.cases.iter().map(row)));
    let address = |number: usize| {
        let more = if searched.is_empty() { String::new() } else { format!("&text={}", encoded(searched)) };
        format!("/cases?page={number}{more}")
    };
    let before = list.number.checked_sub(1).filter(|number| *number > 0).map(address);
    let after = (list.number < list.parts).then(|| address(list.number + 1));
    html.push_str(&pages(&[(before, "Previous cases"), (after, "Next cases")]));
    page(Section::Cases, "Cases", &html)
}

/// Draws the result of a case in one run as a small bar that links to it.
fn mark((results, counts): &(&RunResults, Counted)) -> String {
    let run = &results.run;
    let class = match counts.bounds() {
        Some(bounds) if bounds.min >= 1.0 => "passed",
        Some(bounds) if bounds.max <= 0.0 => "failed",
        Some(_) => "some",
        None => "none",
    };
    let name = run.label.as_deref().unwrap_or(&run.short);
    let title = text(&format!("{name}, {}: {} passed", timestamp(run.started_at), described(*counts)));
    let address = encoded(&run.id);
    format!("<a class=\"{class}\" href=\"/runs/{address}/\" title=\"{title}\" aria-label=\"{title}\"></a>")
}

/// A case, its results and its newest trials.
pub struct CasePage<'a> {
    /// Name of the suite.
    pub suite: &'a str,
    /// Id of the case.
    pub case: &'a str,
    /// The newest runs with results of only this case, newest first.
    pub runs: &'a [RunResults],
    /// Its newest trials, newest first.
    pub trials: &'a [TrialRow],
}

/// Returns the page of a case.
pub fn case_page(case: &CasePage<'_>) -> String {
    let name = format!("{}::{}", case.suite, case.case);
    let mut html = format!("<h1>{}</h1>\n", text(&name));
    html.push_str(&format!("<p class=\"muted\">Pass rate in {}</p>\n", newest(case.runs.len())));
    let lines_of_case = trend_rows(case.runs, TrendOf::Cases);
    let is_alone = lines_of_case.len() == 1;
    for (name, rows) in &lines_of_case {
        if let Some(name) = name.as_ref().filter(|_| !is_alone) {
            html.push_str(&format!("<h2>{}</h2>\n", text(name)));
        }
        html.push_str(&lines(rows, ["tokens/trial", "cost/trial", "time/trial"]));
    }
    html.push_str("<section><h2>Newest trials</h2>\n");
    html.push_str(&table(
        ["trial", "run", "outcome", "reason", "tokens", "cost", "time"],
        case.trials.iter().map(trial),
    ));
    html.push_str("</section>\n");
    page(Section::Other, &name, &html)
}

fn trial(trial: &TrialRow) -> [Cell; 7] {
    let name = format!("{} #{}", trial.arm, trial.repetition);
    let reason = plain::folded(trial.reason.as_deref().unwrap_or_default(), REASON, "…");
    let class = if is_baseline(trial) || trial.quarantined { "baseline" } else { trial.outcome.name() };
    let sign = match trial.outcome {
        Outcome::Passed => '✓',
        Outcome::Failed => '✗',
        Outcome::Broken => '!',
        Outcome::Stale => '~',
        Outcome::Undecided => '?',
        Outcome::Skipped => '–',
        Outcome::Cancelled => '■',
    };
    let notes = [(trial.flaky, ", flaky"), (trial.quarantined, ", quarantined"), (is_baseline(trial), ", baseline")];
    let notes: String = notes.iter().filter(|(holds, _)| *holds).map(|(_, note)| *note).collect();
    let run = trial.label.clone().unwrap_or_else(|| trial.run.chars().take(8).collect());
    [
        Cell::html(trial_link(&trial.run, &trial.id, &name)),
        Cell::html(run_link(&trial.run, &run)),
        Cell::html(format!(
            "<span class=\"{class}\"><span class=\"sign\" aria-hidden=\"true\">{sign}</span>{}{notes}</span>",
            trial.outcome.name()
        )),
        Cell::html(format!("<span class=\"reason\">{}</span>", marked(&reason))),
        Cell::number(&trial.tokens.map_or_else(String::new, |tokens| number(tokens.total()))),
        Cell::number(&trial.cost_usd.map_or_else(String::new, money)),
        Cell::number(&elapsed(trial.duration_ms)),
    ]
}
