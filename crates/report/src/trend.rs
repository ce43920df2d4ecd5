//! Results of each case, run by run.

use std::cmp::Ordering;

use model::{TrialRow, statistics};

use crate::counts::Counts;
use crate::format::{elapsed, money, number, timestamp};
use crate::names::Names;
use crate::terminal::{Paint, Style};

/// Width of a full bar.
const BAR: usize = 10;

/// Formats one line per run for each case of `trials`, oldest first: pass rate, tokens, cost and time per trial.
pub fn trend(trials: &[TrialRow], style: &Style) -> String {
    let paint = Paint::new(*style);
    if trials.is_empty() {
        return "no trials are recorded yet\n".into();
    }
    let mut sorted: Vec<&TrialRow> = trials.iter().collect();
    sorted.sort_by(|a, b| {
        let key = |trial: &TrialRow| (trial.suite.clone(), trial.case.clone(), trial.arm.clone());
        key(a).cmp(&key(b)).then(a.started_at.cmp(&b.started_at)).then(a.run.cmp(&b.run))
    });
    let names = Names::of_rows(trials);
    let short = short_ids(&sorted);

    let mut text = String::new();
    for case in sorted.chunk_by(|a, b| a.suite == b.suite && a.case == b.case && a.arm == b.arm) {
        let several = names.has_arms(&case[0].suite, &case[0].case);
        let arm = if several { format!("@{}", case[0].arm) } else { String::new() };
        let gap = if text.is_empty() { "" } else { "\n" };
        text.push_str(&format!("{gap}{}\n", paint.bold(&format!("{}::{}{arm}", case[0].suite, case[0].case))));
        let mut runs: Vec<Vec<&TrialRow>> = Vec::new();
        for trial in case {
            match runs.iter_mut().find(|run| run[0].run == trial.run) {
                Some(run) => run.push(trial),
                None => runs.push(vec![trial]),
            }
        }
        let mut before = None;
        for run in &runs {
            let (line, counts) = point(run, before, &run[0].run[..short.min(run[0].run.len())], &paint);
            text.push_str(&line);
            before = if counts.graded() > 0 { Some(counts) } else { before };
        }
    }
    text
}

fn point(run: &[&TrialRow], before: Option<Counts>, id: &str, paint: &Paint) -> (String, Counts) {
    let symbols = paint.symbols();
    let mut counts = Counts::default();
    run.iter().for_each(|trial| counts.add(trial.outcome));

    let bar = |rate: f64| {
        let full = (rate * BAR as f64).round() as usize;
        format!("{}{}", symbols.full.repeat(full), symbols.empty.repeat(BAR - full))
    };
    let bar = match counts.bounds() {
        Some((least, _)) if least >= 1.0 => paint.green(&bar(1.0)),
        Some((least, most)) if least < most => paint.yellow(&bar(least)),
        Some((least, _)) => paint.red(&bar(least)),
        // An empty bar would be read as a rate of 0.
        None => " ".repeat(BAR),
    };
    let shown = format!("{} {:>4}", counts.describe(), counts.share());
    let tokens = average(run.iter().filter_map(|trial| trial.tokens).map(|tokens| tokens.total() as f64));
    let cost = average(run.iter().filter_map(|trial| trial.cost_usd));
    let time = average(run.iter().filter_map(|trial| trial.agent_ms).map(|ms| ms as f64));
    let mut line = format!(
        "  {}  {}  {bar}  {shown:>9}  {:>12}  {:>8}  {:>6}",
        timestamp(run[0].started_at),
        paint.dim(id),
        tokens.map_or_else(|| "n/a tok".into(), |tokens| format!("{} tok", number(tokens.round() as u64))),
        cost.map_or_else(|| "n/a".into(), money),
        time.map_or_else(|| "n/a".into(), |time| elapsed(time.round() as u64)),
    );
    let ungraded = run.len() as u64 - counts.graded();
    if ungraded > 0 {
        line.push_str(&paint.yellow(&format!("  {ungraded} without a verdict")));
    }
    match before.and_then(|before| Counts::change(&before, &counts)) {
        Some(Ordering::Less) => line.push_str(&paint.red("  worse")),
        Some(Ordering::Greater) => line.push_str(&paint.green("  better")),
        Some(Ordering::Equal) | None => {}
    }
    line.push('\n');
    (line, counts)
}

fn average(values: impl Iterator<Item = f64>) -> Option<f64> {
    statistics::estimate(&values.collect::<Vec<_>>()).map(|estimate| estimate.mean)
}

/// Returns the number of characters that make the ids of the shown runs unique; at least eight. Ids are ASCII; if one
/// is not, ids are shown in full.
fn short_ids(trials: &[&TrialRow]) -> usize {
    let mut ids: Vec<&str> = trials.iter().map(|trial| trial.run.as_str()).collect();
    ids.sort_unstable();
    ids.dedup();
    if ids.iter().any(|id| !id.is_ascii()) {
        return usize::MAX;
    }
    let shared = |pair: &[&str]| pair[0].bytes().zip(pair[1].bytes()).take_while(|(a, b)| a == b).count();
    ids.windows(2).map(shared).max().map_or(8, |longest| (longest + 1).max(8))
}
