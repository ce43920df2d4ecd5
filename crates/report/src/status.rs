//! One run on one screen: what happened, or what is happening.

use jiff::Timestamp;
use model::{LiveTrial, Outcome, RunRow, TrialRow};

use crate::figure::{between, counted, elapsed, minute, money, span, whole};
use crate::terminal::{Paint, Style, doing};
use crate::{plain, score};

/// How many lines of one kind are shown.
const MOST: usize = 20;

/// What `status` looks at.
pub struct StatusView<'a> {
    /// The run.
    pub run: &'a RunRow,
    /// Its finished trials.
    pub trials: &'a [TrialRow],
    /// Its trials that have begun and have no outcome.
    pub live: &'a [LiveTrial],
    /// Whether the process that owns the run is still there. Of no meaning for a run that is over.
    pub alive: bool,
    /// The present moment.
    pub now: Timestamp,
}

/// The run as it stands.
pub fn status(view: &StatusView<'_>, style: &Style) -> String {
    let paint = Paint::new(*style);
    let signs = paint.signs();
    let mut trials: Vec<&TrialRow> = view.trials.iter().collect();
    trials.sort_by(|a, b| a.id.cmp(&b.id));

    let run = view.run;
    let label = run.label.as_ref().map_or_else(String::new, |label| format!(" ({label})"));
    let mut text = format!("run {}{label}\n", paint.bold(&run.id));
    text.push_str(&format!("  {}\n", state(view, &paint)));
    text.push_str(&format!("  {}\n", paint.join(&counts(view, &paint))));

    if !view.live.is_empty() {
        let (heading, now) = if view.alive { ("running", view.now) } else { ("cut off before an outcome", last(view)) };
        text.push_str(&format!("\n{}\n", paint.bold(heading)));
        for trial in view.live.iter().take(MOST) {
            let line = waits(trial, now, view.alive, &paint);
            text.push_str(&format!("  {:>6}  {}  {line}\n", elapsed(between(trial.since, now)), trial.id));
        }
        text.push_str(&more(view.live.len(), &paint));
    }

    let noted: Vec<&&TrialRow> = trials
        .iter()
        .filter(|trial| matches!(trial.outcome, Outcome::Failed | Outcome::Broken | Outcome::Undecided))
        .collect();
    if !noted.is_empty() {
        text.push_str(&format!("\n{}\n", paint.bold("did not pass")));
        for trial in noted.iter().take(MOST) {
            let because = trial.because.as_deref().map_or_else(String::new, |because| {
                format!("\n      {}", paint.dim(&plain::folded(because, 160, signs.ellipsis)))
            });
            let mark =
                paint.as_outcome(trial.outcome, &format!("{} {:<9}", paint.mark(trial.outcome), trial.outcome.name()));
            let score = score::partial(trial.outcome, trial.score, trial.max_score);
            let score = score.map_or_else(String::new, |score| paint.dim(&format!("  score {score}")));
            text.push_str(&format!("  {mark} {}{score}{because}\n", trial.id));
        }
        text.push_str(&more(noted.len(), &paint));
    }
    text
}

fn state(view: &StatusView<'_>, paint: &Paint) -> String {
    let run = view.run;
    match (run.finished_at, view.alive) {
        (Some(_), _) => {
            let length = run.duration_ms.map_or_else(String::new, |ms| format!(" after {}", elapsed(ms)));
            match &run.signal {
                Some(signal) => paint.yellow(&format!("stopped by {signal}{length}, began {}", minute(run.started_at))),
                None => format!("finished{length}, began {}", minute(run.started_at)),
            }
        }
        (None, true) => {
            let pid = run.owner_pid.map_or_else(String::new, |pid| format!(" in process {pid}"));
            paint.cyan(&format!("running for {}{pid}", elapsed(between(run.started_at, view.now))))
        }
        (None, false) => {
            let pid = run.owner_pid.map_or_else(String::new, |pid| format!(": process {pid} is gone"));
            paint.yellow(&format!("interrupted{pid}, began {}", minute(run.started_at)))
        }
    }
}

fn counts(view: &StatusView<'_>, paint: &Paint) -> Vec<String> {
    let run = view.run;
    let mut parts = vec![format!("{} of {} finished", whole(run.finished as u64), counted(run.planned, "trial"))];
    for outcome in
        [Outcome::Passed, Outcome::Failed, Outcome::Undecided, Outcome::Broken, Outcome::Skipped, Outcome::Cancelled]
    {
        let count = view.trials.iter().filter(|trial| trial.outcome == outcome).count();
        if count > 0 {
            parts.push(paint.as_outcome(outcome, &format!("{count} {}", outcome.name())));
        }
    }
    let tokens: Vec<u64> = view.trials.iter().filter_map(|trial| trial.tokens).map(|tokens| tokens.total()).collect();
    if !tokens.is_empty() {
        parts.push(format!("{} tokens", whole(tokens.iter().sum())));
    }
    let costs: Vec<f64> = view.trials.iter().filter_map(|trial| trial.cost_usd).collect();
    if !costs.is_empty() {
        parts.push(money(costs.iter().sum()));
    }
    parts
}

fn waits(trial: &LiveTrial, now: Timestamp, alive: bool, paint: &Paint) -> String {
    let verb = if alive { "waits for" } else { "waited for" };
    let mut parts = Vec::new();
    match (&trial.waiting_on, trial.waiting_since) {
        (Some(on), since) => {
            let since = since.map_or_else(String::new, |since| format!(" ({})", span(between(since, now))));
            parts.push(format!("{verb} {on}{since}"));
        }
        (None, _) => parts.push("began".into()),
    }
    if let Some(what) = trial.last_step.as_ref().and_then(|step| doing(step, paint)) {
        let ago = trial.last_step_at.map_or_else(String::new, |at| format!(" {} ago", span(between(at, now))));
        parts.push(format!("{what}{ago}"));
    }
    if trial.attempt > 1 {
        parts.push(format!("attempt {}", trial.attempt));
    }
    paint.dim(&paint.join(&parts))
}

/// The last that was heard of a run that was cut off.
fn last(view: &StatusView<'_>) -> Timestamp {
    let heard =
        view.live.iter().flat_map(|trial| [Some(trial.since), trial.waiting_since, trial.last_step_at]).flatten();
    heard.chain(view.trials.iter().map(TrialRow::finished_at)).max().unwrap_or(view.run.started_at)
}

fn more(count: usize, paint: &Paint) -> String {
    if count <= MOST {
        return String::new();
    }
    format!("  {}\n", paint.dim(&format!("and {} more", count - MOST)))
}
