//! Recorded trials, run by run: a line for each trial, and a line of totals.

use model::{Outcome, OutcomeCounts, TrialRow};
use serde_json::{Value, json};

use crate::format::{counted, elapsed, in_parentheses, money, number, timestamp};
use crate::names::{Names, is_baseline};
use crate::terminal::{Paint, Style};
use crate::{columns, score};

/// Maximum width of a trial's name.
const NAME: usize = 44;

/// Formats `trials`, which are in the order of their runs, with a heading for each run.
pub fn history(trials: &[TrialRow], style: &Style) -> String {
    let paint = Paint::new(*style);
    if trials.is_empty() {
        return "no trials are recorded yet\n".into();
    }
    let names = Names::from_rows(trials);
    let names: Vec<String> = trials.iter().map(|trial| paint.folded(&names.of_row(trial), NAME)).collect();
    let width = columns::widest(&names);
    let unknown = if style.unicode { "—" } else { "-" };
    let turns = trials.iter().map(|trial| trial.turns.to_string().len()).max().unwrap_or(1);
    let tokens: Vec<String> = trials.iter().map(|trial| tokens(trial, unknown)).collect();
    let token_width = columns::widest(&tokens);

    let mut text = String::new();
    let mut run = "";
    for ((trial, name), tokens) in trials.iter().zip(&names).zip(&tokens) {
        if trial.run != run {
            let label = in_parentheses(trial.label.as_deref());
            let gap = if run.is_empty() { "" } else { "\n" };
            text.push_str(&format!("{gap}{}\n", paint.dim(&format!("run {}{label}", trial.run))));
            run = &trial.run;
        }
        let mark = match is_baseline(trial) {
            true => paint.dim(paint.symbols().dot),
            false => paint.as_outcome(trial.outcome, paint.mark(trial.outcome)),
        };
        let cost = trial.cost_usd.map_or_else(|| unknown.to_owned(), money);
        text.push_str(&format!(
            "  {mark} {}  {}  {:>6}  {:>turns$}t  {tokens:>token_width$}  {cost:>8}",
            timestamp(trial.finished_at()),
            columns::padded(name, width),
            elapsed(trial.duration_ms),
            trial.turns,
        ));
        if let Some(score) = score::partial(trial.outcome, trial.score, trial.max_score) {
            text.push_str(&paint.dim(&format!("  score {score}")));
        }
        if is_baseline(trial) {
            text.push_str(&paint.dim(&format!("  baseline, {}", trial.outcome.name())));
        }
        if trial.flaky {
            text.push_str("  flaky");
        }
        if trial.quarantined {
            text.push_str(&paint.dim("  quarantined"));
        }
        if trial.over_budget() {
            text.push_str(&paint.red("  over-budget"));
        }
        text.push('\n');
        if trial.errors > 0 {
            let errors = counted(trial.errors, "error");
            text.push_str(&format!("    {}\n", paint.dim(&format!("{errors}: trialrun show {}", reference(trial)))));
        }
    }
    text.push_str(&sums(trials, &paint));
    text
}

fn sums(trials: &[TrialRow], paint: &Paint) -> String {
    let sign = if paint.style.unicode { "Σ" } else { "sum" };
    let mut parts = Vec::new();
    let is_counted = |trial: &&TrialRow| !is_baseline(trial) && !trial.quarantined;
    let counts = OutcomeCounts::of(trials.iter().filter(is_counted).map(|trial| trial.outcome));
    for outcome in Outcome::ALL {
        let count = counts[outcome];
        if count > 0 || matches!(outcome, Outcome::Passed | Outcome::Failed) {
            parts.push(format!("{count} {}", outcome.name()));
        }
    }
    let flaky = trials.iter().filter(is_counted).filter(|trial| trial.flaky).count();
    parts.extend((flaky > 0).then(|| format!("{flaky} flaky")));
    let baseline = trials.iter().filter(|trial| is_baseline(trial)).count();
    parts.extend((baseline > 0).then(|| format!("{baseline} without the skill")));
    let quarantined = trials.iter().filter(|trial| trial.quarantined && !is_baseline(trial)).count();
    parts.extend((quarantined > 0).then(|| format!("{quarantined} quarantined")));
    let counted: Vec<u64> = trials.iter().filter_map(|trial| trial.tokens).map(|tokens| tokens.total()).collect();
    parts.push(match counted.len() {
        0 => "tokens n/a".into(),
        n if n < trials.len() => {
            format!("at least {} tok ({n} of {} known)", number(counted.iter().sum()), trials.len())
        }
        _ => format!("{} tok", number(counted.iter().sum())),
    });
    let costs: Vec<f64> = trials.iter().filter_map(|trial| trial.cost_usd).collect();
    parts.push(match costs.len() {
        0 => "cost n/a".into(),
        n if n < trials.len() => format!("at least {} ({n} of {} known)", money(costs.iter().sum()), trials.len()),
        _ => money(costs.iter().sum()),
    });
    format!("\n{sign} {}\n", paint.join(&parts))
}

fn tokens(trial: &TrialRow, unknown: &str) -> String {
    let used = trial.tokens.map_or_else(|| unknown.to_owned(), |tokens| number(tokens.total()));
    match trial.token_budget {
        Some(budget) => format!("{used}/{} tok", number(budget as u64)),
        None => format!("{used} tok"),
    }
}

/// Returns a reference to this trial in this run, quoted for a shell.
pub(crate) fn reference(trial: &TrialRow) -> String {
    format!("'{}/{}'", trial.run, trial.id)
}

/// Returns a recorded trial as an entry of the JSON array.
pub fn history_json(trial: &TrialRow) -> Value {
    json!({
        "runId": trial.run,
        "filePath": null,
        "skill": trial.suite,
        "scenario": trial.case,
        "finishedAt": trial.finished_at(),
        "overallPass": trial.outcome == Outcome::Passed,
        "durationMs": trial.duration_ms,
        "turnsUsed": trial.turns,
        "tokensTotal": trial.tokens.map(|tokens| tokens.total()),
        "tokens": trial.tokens.map(|tokens| json!({
            "input": tokens.input,
            "output": tokens.output,
            "cacheCreation": tokens.cache_write,
            "cacheRead": tokens.cache_read,
        })),
        "usdEstimate": trial.cost_usd,
        "tokenBudget": trial.token_budget,
        "budgetExceeded": trial.over_budget(),
        "errorCount": trial.errors,
        "run": trial.run,
        "label": trial.label,
        "trial": trial.id,
        "suite": trial.suite,
        "case": trial.case,
        "arm": trial.arm,
        "agent": trial.agent,
        "model": trial.model,
        "variant": trial.variant,
        "repetition": trial.repetition,
        "outcome": trial.outcome,
        "flaky": trial.flaky,
        "quarantined": trial.quarantined,
        "fault": trial.fault,
        "because": trial.reason,
        "score": trial.score,
        "max_score": trial.max_score,
        "started_at": trial.started_at,
        "tool_calls": trial.tool_calls,
        "attempts": trial.attempts,
        "skill_version": trial.skill_version,
        "skill_hash": trial.skill_hash,
    })
}
