//! What is in progress: runs with their trials, workers, and trials that wait for workers.

use jiff::Timestamp;
use model::LiveTrial;

use super::frame::{Cell, Section, page, run_link, table, trial_link};
use crate::counts::outcomes;
use crate::format::{between, counted, elapsed, number, span, timestamp};
use crate::html::text::{marked, text};
use crate::queue::{QueueView, QueuedRunView, WorkerView};
use crate::terminal::{Paint, Style, doing};
use crate::{ListedRun, plain};

/// Maximum number of trials of a run that are listed.
const TRIALS: usize = 200;

/// What is in progress.
pub struct ProgressPage<'a> {
    /// Runs in progress, newest first.
    pub runs: &'a [LiveRun],
    /// The queue; absent if the record has none.
    pub queue: Option<&'a QueueView>,
    /// The current time.
    pub now: Timestamp,
}

/// A run in progress.
pub struct LiveRun {
    /// The run.
    pub listed: ListedRun,
    /// Its trials that have started and have no outcome yet.
    pub trials: Vec<LiveTrial>,
}

/// Returns the page with what is in progress.
pub fn progress_page(progress: &ProgressPage<'_>) -> String {
    let mut html = String::from("<h1>In progress</h1>\n");
    let is_idle = progress.runs.is_empty() && progress.queue.is_none_or(|queue| queue.runs.is_empty());
    if is_idle {
        html.push_str("<p>No run is in progress.</p>\n");
    }
    for run in progress.runs {
        html.push_str(&live_run(run, progress));
    }
    let is_shown = |queued: &&QueuedRunView| !progress.runs.iter().any(|run| run.listed.run.id == queued.id);
    for queued in progress.queue.iter().flat_map(|queue| &queue.runs).filter(is_shown) {
        let name = queued.label.as_deref().unwrap_or(&queued.id);
        html.push_str(&format!("<section><h2>{}</h2>\n{}</section>\n", text(name), in_queue(queued)));
    }
    if let Some(queue) = progress.queue {
        html.push_str(&workers(queue));
    }
    html.push_str(&format!(
        "<p class=\"muted\">As of {}. The page is loaded again every five seconds.</p>\n",
        time(progress.now)
    ));
    page(Section::Progress, "In progress", &html)
}

/// Returns a time with its seconds.
fn time(now: Timestamp) -> String {
    now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

fn live_run(run: &LiveRun, progress: &ProgressPage<'_>) -> String {
    let row = &run.listed.run;
    let name = row.label.as_ref().map_or_else(|| row.short.clone(), |label| format!("{label} ({})", row.short));
    let queued = progress.queue.and_then(|queue| queue.runs.iter().find(|queued| queued.id == row.id));
    let mut html = format!(
        "<section><h2>{}</h2>\n<p class=\"facts\"><span>{} of {} finished</span> <span>{}</span> \
         <span class=\"muted\">started {}</span></p>\n",
        run_link(&row.id, &name),
        number(row.finished as u64),
        counted(row.needed(), "trial"),
        text(&outcomes(run.listed.summary.by_outcome, |_| true).join(", ")),
        timestamp(row.started_at),
    );
    html.push_str(&queued.map_or_else(String::new, in_queue));
    if !run.trials.is_empty() {
        let host = |trial: &LiveTrial| {
            let held = queued.and_then(|queued| queued.running.iter().find(|(id, _)| *id == trial.id));
            held.map_or("", |(_, host)| host.as_str())
        };
        let rows = run.trials.iter().take(TRIALS).map(|trial| live_trial(&row.id, trial, host(trial), progress.now));
        html.push_str(&table(["trial", "for", "on", "waits for", "last step"], rows));
        if let Some(more) = run.trials.len().checked_sub(TRIALS).filter(|more| *more > 0) {
            html.push_str(&format!("<p class=\"muted\">and {} more</p>\n", number(more as u64)));
        }
    }
    html + "</section>\n"
}

/// Returns the state of a run in the queue, and what its trials wait for.
fn in_queue(queued: &QueuedRunView) -> String {
    let waiting = queued.waiting.iter().map(|waiting| format!("<p>{}</p>\n", marked(&waiting.line())));
    format!("<p>Queue: {}</p>\n{}", text(&queued.line()), waiting.collect::<String>())
}

fn live_trial(run: &str, trial: &LiveTrial, host: &str, now: Timestamp) -> [Cell; 5] {
    let ago = |since: Option<Timestamp>| since.map_or_else(String::new, |since| span(between(since, now)));
    let waits = trial.waiting_on.as_ref().map_or_else(String::new, |on| format!("{on} ({})", ago(trial.waiting_since)));
    let step = trial.last_step.as_ref().and_then(|step| doing(step, &Paint::new(Style::plain())));
    let step = step.map_or_else(String::new, |step| format!("{step} {} ago", ago(trial.last_step_at)));
    let attempt = if trial.attempt > 1 { format!(", attempt {}", trial.attempt) } else { String::new() };
    [
        Cell::html(trial_link(run, &trial.id, &trial.id)),
        Cell::number(&format!("{}{attempt}", elapsed(between(trial.since, now)))),
        Cell::text(host),
        Cell::text(&waits),
        Cell::html(format!("<span class=\"doing\">{}</span>", text(&plain::folded(&step, 160, "…")))),
    ]
}

fn workers(queue: &QueueView) -> String {
    let mut html = format!("<section><h2>{}</h2>\n", queue.size());
    if queue.workers.is_empty() {
        html.push_str("<p>No worker answers. <code>trialrun work</code> starts one.</p>\n");
    } else {
        let heads = ["machine", "process", "version", "busy", "agents", "sandboxes", "labels", "runs"];
        html.push_str(&table(heads, queue.workers.iter().map(worker)));
    }
    html + "</section>\n"
}

fn worker(worker: &WorkerView) -> [Cell; 8] {
    let trials = worker.running.iter().map(|(run, trial)| format!("<div>{}</div>", trial_link(run, trial, trial)));
    [
        Cell::text(&worker.host),
        Cell::number(&worker.pid.to_string()),
        Cell::text(&worker.version),
        Cell::number(&format!("{} of {}", worker.running.len(), worker.slots)),
        Cell::text(&worker.of("agent:")),
        Cell::text(&worker.of("sandbox:")),
        Cell::text(&worker.of("label:")),
        Cell::html(format!("<div>{}</div>", trials.collect::<String>())),
    ]
}
