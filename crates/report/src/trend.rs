//! Results across runs: one line per run, and the flaky cases.

mod flaky;

use std::cmp::Ordering;
use std::collections::BTreeMap;

use model::statistics::Counted;
use model::{CaseResults, Outcome, OutcomeCounts, RunResults, RunRow};
use serde_json::{Value, json};

use self::flaky::flaky_table;
pub(crate) use self::flaky::{Flaky, cases_of, flaky_cases};

use crate::counts::{described, outcomes, share};
use crate::format::{elapsed, money, number, range, timestamp};
use crate::names::Names;
use crate::plain;
use crate::terminal::grid::{Cell, CellStyle, Grid};
use crate::terminal::{Paint, Style};

/// Maximum width of a label.
const LABEL: usize = 20;
/// Maximum width of the name of a case.
const NAME: usize = 48;
/// Maximum number of runs in a sparkline.
const SPARKS: usize = 40;

/// Part of each run that a trend covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrendOf {
    /// The whole run.
    Runs,
    /// A suite, or several.
    Suite,
    /// Each case on its own.
    Cases,
}

/// Formats one line per run, oldest first, and the flaky cases. `runs` are newest first.
pub fn trend(runs: &[RunResults], of: TrendOf, style: &Style) -> String {
    let paint = Paint::new(*style);
    if runs.is_empty() {
        return "no trials are recorded yet\n".into();
    }
    let names = Names::of_results(runs.iter().flat_map(|run| &run.cases));
    let mut text = String::new();
    for (name, points) in groups(runs, of, &names) {
        let gap = if text.is_empty() { "" } else { "\n" };
        text.push_str(&name.map_or_else(String::new, |name| format!("{gap}{}\n", paint.bold(&name))));
        text.push_str(&table(&points, of, &paint));
    }
    text + &flaky_table(runs, &names, &paint)
}

/// Returns the points of each line of a trend, oldest first: one line without a name, or one for each case.
fn groups<'a>(runs: &'a [RunResults], of: TrendOf, names: &Names) -> Vec<(Option<String>, Vec<Point<'a>>)> {
    if of != TrendOf::Cases {
        let whole = |run| if of == TrendOf::Runs { Point::whole(run) } else { Point::reliable(run) };
        return vec![(None, runs.iter().rev().map(whole).collect())];
    }
    let mut cases: BTreeMap<String, Vec<Point<'_>>> = BTreeMap::new();
    for run in runs.iter().rev() {
        for case in run.cases.iter().filter(|case| !case.is_baseline()) {
            let points = cases.entry(names.of_case(case)).or_default();
            match points.last_mut().filter(|point| point.run.run.id == run.run.id) {
                Some(point) => point.add(case),
                None => points.push(Point::new(run, [case])),
            }
        }
    }
    cases.into_iter().map(|(name, points)| (Some(name), points)).collect()
}

/// A run in a trend.
pub(crate) struct TrendRow<'a> {
    pub(crate) run: &'a RunRow,
    pub(crate) counts: Counted,
    /// The 95 % interval of the pass rate.
    pub(crate) interval: Option<[f64; 2]>,
    /// `Less` or `Greater` if the same cases passed less or more often than before, by more than chance explains.
    pub(crate) change: Option<Ordering>,
    /// Tokens, cost and time.
    pub(crate) spent: [String; 3],
    pub(crate) notes: String,
}

/// Returns the rows of each line of a trend, newest first: one line without a name, or one for each case.
pub(crate) fn trend_rows(runs: &[RunResults], of: TrendOf) -> Vec<(Option<String>, Vec<TrendRow<'_>>)> {
    let names = Names::of_results(runs.iter().flat_map(|run| &run.cases));
    groups(runs, of, &names).into_iter().map(|(name, points)| (name, rows(&points, of))).collect()
}

/// Returns the rows of points, newest first.
fn rows<'a>(points: &[Point<'a>], of: TrendOf) -> Vec<TrendRow<'a>> {
    let row = |(point, change): (&Point<'a>, Option<Ordering>)| TrendRow {
        run: &point.run.run,
        counts: point.counts,
        interval: point.interval(),
        change,
        spent: point.shown(of),
        notes: notes(point, change).join(", "),
    };
    points.iter().zip(changes(points)).rev().map(row).collect()
}

/// Returns the trend as JSON: the runs, oldest first, with their cases, and the flaky cases. `runs` are newest first.
pub fn trend_json(runs: &[RunResults], of: TrendOf) -> Value {
    let case = |case: &CaseResults| {
        let mut value = json!(case);
        value["ungraded"] = ungraded(case.by_outcome).into();
        value
    };
    let run = |results: &RunResults| {
        let point = if of == TrendOf::Runs { Point::whole(results) } else { Point::reliable(results) };
        let run = &results.run;
        json!({
            "id": run.id,
            "label": run.label,
            "started_at": run.started_at,
            "duration_ms": run.duration_ms,
            "interrupted": run.is_interrupted(),
            "planned": run.planned,
            "passed": point.counts.passed,
            "failed": point.counts.failed,
            "unknown": point.counts.unknown,
            "undecided": point.by_outcome.undecided,
            "ungraded": ungraded(point.by_outcome),
            "pass_rate": point.counts.bounds().map(|bounds| [bounds.min, bounds.max]),
            "ci95": point.interval(),
            "tokens": point.tokens,
            "cost_usd": point.cost_usd,
            "agent_ms": point.agent_ms,
            "cases": results.cases.iter().map(case).collect::<Value>(),
        })
    };
    json!({
        "schema": "trialrun.trend/2",
        "runs": runs.iter().rev().map(run).collect::<Value>(),
        "flaky": flaky_cases(runs).iter().map(Flaky::to_json).collect::<Value>(),
    })
}

/// Returns the number of trials without a grade.
fn ungraded(by_outcome: OutcomeCounts) -> usize {
    by_outcome.sum(|outcome| !outcome.is_graded())
}

/// Results of the trials that one line summarises.
struct Point<'a> {
    run: &'a RunResults,
    counts: Counted,
    by_outcome: OutcomeCounts,
    trials_with_tokens: u64,
    trials_with_cost: u64,
    trials_with_time: u64,
    tokens: Option<u64>,
    cost_usd: Option<f64>,
    agent_ms: Option<u64>,
    /// Cases with their arms, without the baseline.
    cases: Vec<(&'a str, &'a str, &'a str)>,
}

impl<'a> Point<'a> {
    fn new(run: &'a RunResults, cases: impl IntoIterator<Item = &'a CaseResults>) -> Self {
        let mut point = Self {
            run,
            counts: Counted::default(),
            by_outcome: OutcomeCounts::default(),
            trials_with_tokens: 0,
            trials_with_cost: 0,
            trials_with_time: 0,
            tokens: None,
            cost_usd: None,
            agent_ms: None,
            cases: Vec::new(),
        };
        cases.into_iter().for_each(|case| point.add(case));
        point
    }

    /// Returns the results of all cases that are not quarantined.
    fn reliable(run: &'a RunResults) -> Self {
        Self::new(run, run.cases.iter().filter(|case| !case.quarantined))
    }

    /// Returns the results of a whole run. A long list contains cases only for its newest runs, so the figures come
    /// from the run's summary, if it has one.
    fn whole(run: &'a RunResults) -> Self {
        let mut point = Self::reliable(run);
        if let Some(summary) = &run.run.summary {
            point.counts = summary.counted();
            point.by_outcome = summary.by_outcome;
            if run.run.regrade_of.is_none() {
                point.tokens = summary.tokens.map(|tokens| tokens.total());
                point.cost_usd = summary.cost_usd;
            }
        }
        point
    }

    fn add(&mut self, case: &'a CaseResults) {
        // If a run graded recorded evidence again, its agents did not run.
        if self.run.run.regrade_of.is_none() {
            self.add_spent(case);
        }
        if case.is_baseline() {
            return;
        }
        self.counts += case.counted();
        self.by_outcome += case.by_outcome;
        self.cases.push((&case.suite, &case.case, &case.arm));
    }

    fn add_spent(&mut self, case: &CaseResults) {
        self.trials_with_tokens += case.trials_with_tokens;
        self.trials_with_cost += case.trials_with_cost;
        self.trials_with_time += case.trials_with_time;
        for (sum, more) in [(&mut self.tokens, case.tokens), (&mut self.agent_ms, case.agent_ms)] {
            *sum = sum.map_or(more, |sum| Some(sum + more.unwrap_or(0)));
        }
        self.cost_usd = self.cost_usd.map_or(case.cost_usd, |sum| Some(sum + case.cost_usd.unwrap_or(0.0)));
    }

    /// Returns the 95 % interval of the pass rate that covers every possible result of unknown trials.
    fn interval(&self) -> Option<[f64; 2]> {
        // Intervals for a fixed number of trials would be wrong if the results decided how many ran.
        if self.run.run.sequential {
            return None;
        }
        self.counts.rate()?.ci95
    }

    /// Returns `Less` or `Greater` if the same cases passed less or more often than `before`, by more than chance
    /// would explain.
    fn change(&self, before: &Self) -> Option<Ordering> {
        let ([low, high], [low_before, high_before]) = (self.interval()?, before.interval()?);
        let is_apart = high < low_before || low > high_before;
        (is_apart && !self.cases.is_empty() && self.cases == before.cases).then(|| low.total_cmp(&low_before))
    }

    /// Returns tokens, cost and time: of the whole run, or the mean per trial.
    fn spent(&self, of: TrendOf) -> [Option<f64>; 3] {
        let tokens = self.tokens.map(|tokens| tokens as f64);
        let time = |ms: Option<u64>| ms.map(|ms| ms as f64);
        if of == TrendOf::Runs {
            return [tokens, self.cost_usd, time(self.run.run.duration_ms)];
        }
        let mean = |sum: Option<f64>, trials: u64| sum.map(|sum| sum / trials.max(1) as f64);
        [
            mean(tokens, self.trials_with_tokens),
            mean(self.cost_usd, self.trials_with_cost),
            mean(time(self.agent_ms), self.trials_with_time),
        ]
    }

    /// Returns tokens, cost and time as text; empty where they are not known.
    fn shown(&self, of: TrendOf) -> [String; 3] {
        let mut index = 0..;
        self.spent(of).map(|value| {
            let format = SPENT[index.next().unwrap_or_default()];
            value.map_or_else(String::new, format)
        })
    }
}

/// Formatters for tokens, cost and time.
const SPENT: [fn(f64) -> String; 3] =
    [|tokens| number(tokens.round() as u64), money, |ms| elapsed(ms.round().max(0.0) as u64)];

fn table(points: &[Point<'_>], of: TrendOf, paint: &Paint) -> String {
    let heads =
        if of == TrendOf::Runs { ["tokens", "cost", "time"] } else { ["tokens/trial", "cost/trial", "time/trial"] };
    let symbols = paint.symbols();
    let mut grid = Grid::new(&[
        ("run", 0),
        ("started", 6),
        ("label", 1),
        ("passed", 0),
        ("rate", 0),
        ("95 %", 2),
        (heads[0], 4),
        (heads[1], 3),
        (heads[2], 5),
        ("notes", 0),
    ])
    .left(3);
    for (point, change) in points.iter().zip(changes(points)) {
        let run = &point.run.run;
        let style = match (point.counts.bounds(), change) {
            (_, Some(Ordering::Less)) => CellStyle::Red,
            (Some(bounds), _) if bounds.min >= 1.0 => CellStyle::Green,
            _ => CellStyle::Plain,
        };
        let [tokens, cost, time] = point.shown(of);
        grid.row([
            Cell::new(&run.short, CellStyle::Bold),
            Cell::new(timestamp(run.started_at), CellStyle::Dim),
            plain::folded(run.label.as_deref().unwrap_or_default(), LABEL, symbols.ellipsis).into(),
            described(point.counts).into(),
            Cell::new(share(point.counts), style),
            point.interval().map_or_else(String::new, range).into(),
            tokens.into(),
            cost.into(),
            time.into(),
            notes(point, change).join(", ").into(),
        ]);
    }
    grid.draw(paint) + &sparklines(points, of, heads, paint)
}

/// Returns for each point how it differs from the one before it that has trials.
fn changes(points: &[Point<'_>]) -> Vec<Option<Ordering>> {
    let mut before: Option<&Point<'_>> = None;
    let mut all = Vec::with_capacity(points.len());
    for point in points {
        all.push(before.and_then(|before| point.change(before)));
        before = if point.counts.trials() > 0 { Some(point) } else { before };
    }
    all
}

fn notes(point: &Point<'_>, change: Option<Ordering>) -> Vec<String> {
    let run = &point.run.run;
    let mut notes = Vec::new();
    match change {
        Some(Ordering::Less) => notes.push("worse".to_owned()),
        Some(Ordering::Greater) => notes.push("better".to_owned()),
        _ => {}
    }
    let planned = run.needed();
    if run.is_interrupted() || run.finished < planned {
        let cancelled: usize = point.run.cases.iter().map(|case| case.by_outcome.cancelled).sum();
        let finished = run.finished.saturating_sub(cancelled);
        notes.push(format!("{}/{} finished", number(finished as u64), number(planned as u64)));
    }
    notes.extend(run.regrade_of.is_some().then(|| "regraded".to_owned()));
    notes.extend(outcomes(point.by_outcome, |outcome| !matches!(outcome, Outcome::Passed | Outcome::Failed)));
    // Only the trend of a case itself counts these trials.
    let quarantined = point.run.cases.iter().filter(|case| case.quarantined && !case.is_baseline());
    let quarantined: usize = quarantined.map(CaseResults::trials).sum();
    notes.extend((quarantined > 0).then(|| format!("{} quarantined", number(quarantined as u64))));
    notes
}

/// Returns a line for each figure with its course across runs, and its first and last value. A pass rate that is not known
/// exactly is not drawn.
fn sparklines(points: &[Point<'_>], of: TrendOf, heads: [&str; 3], paint: &Paint) -> String {
    let points = &points[points.len().saturating_sub(SPARKS)..];
    if points.len() < 2 {
        return String::new();
    }
    let mut text = String::from("\n");
    let mut line = |name: &str, values: &[Option<f64>], most: f64, shown: &[Option<String>]| {
        let (Some(first), Some(last)) = (shown.iter().flatten().next(), shown.last()) else { return };
        let last = last.as_deref().unwrap_or("n/a");
        let (name, drawn) = (paint.dim(&format!("{name:<12}")), sparkline(values, most, paint));
        text.push_str(&format!("  {name}  {drawn}  {first} {} {last}\n", paint.symbols().arrow));
    };
    let rates = points.iter().map(|point| point.counts.bounds()?.value()).collect::<Vec<_>>();
    let shown = points.iter().map(|point| (point.counts.trials() > 0).then(|| share(point.counts)));
    line("pass rate", &rates, 1.0, &shown.collect::<Vec<_>>());
    for (index, head) in heads.into_iter().enumerate() {
        let values: Vec<Option<f64>> = points.iter().map(|point| point.spent(of)[index]).collect();
        let most = values.iter().flatten().copied().fold(0.0, f64::max);
        let shown = values.iter().map(|value| value.map(SPENT[index]));
        line(head, &values, most, &shown.collect::<Vec<_>>());
    }
    text
}

/// Draws each value as a character whose height is the value's share of `most`; an unknown value is a space.
fn sparkline(values: &[Option<f64>], most: f64, paint: &Paint) -> String {
    let heights = paint.symbols().heights;
    let height = |value: f64| {
        let share = if most > 0.0 { value / most } else { 0.0 };
        heights[((share * (heights.len() - 1) as f64).round().max(0.0) as usize).min(heights.len() - 1)]
    };
    values.iter().map(|value| value.map_or(" ", height)).collect()
}
