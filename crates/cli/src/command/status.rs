//! `trialrun status`.

use std::process::ExitCode;

use model::{Event, Gate, RunRow};
use queue::Queue;
use report::{Arms, Details, QueueView, StatusView};
use serde_json::json;
use store::{Store, StoreError, TrialFilter};

use crate::error::CliError;
use crate::global::Global;
use crate::place;
use crate::terminal::Terminal;
use crate::workers::{has_queue, queue_json, settings, view};
use crate::workspace::WorkspaceArgs;

/// Maximum number of trials for which a run is read completely. Larger ones are shown from the lists alone, unless the
/// results decided how many trials ran: the decisions are not in the lists.
const READ_WHOLE: usize = 2_000;

/// Arguments of `status`.
#[derive(Debug, clap::Args)]
pub struct StatusArgs {
    /// Run: prefix of its id, label, `latest`, `previous` or `latest~N` [default: latest]
    #[arg(value_name = "RUN")]
    run: Option<String>,
    #[command(flatten)]
    place: WorkspaceArgs,
    /// List everything, not only the first 20 lines of each kind
    #[arg(long)]
    all: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Shows the result of a run, or the state of each of its trials.
pub fn run(global: &Global, args: &StatusArgs, terminal: &Terminal) -> Result<ExitCode, CliError> {
    let (store, run) = args.place.find(global, args.run.as_deref(), "latest")?;
    let trials = store.trials(&TrialFilter::of_run(&run.id))?;
    let live = store.live(&run.id)?;
    let alive = session::is_active(&run);
    let details = details_of(&*store, &run, args.all)?;
    let queue = if alive { queue(global, &run, terminal)? } else { None };
    if args.json {
        let Arms { arms, deltas, .. } = Arms::of(&details.figures, &details.agents);
        let over_budget: Vec<_> =
            details.over_budget.iter().map(|(trial, reason)| json!({"trial": trial, "because": reason})).collect();
        terminal.json(&json!({
            "schema": "trialrun.status/1", "run": run, "alive": alive, "live": live, "trials": trials, "arms": arms,
            "deltas": deltas, "decisions": details.decisions, "over_budget": over_budget, "hooks": details.hooks,
            "side_effects": report::merged_side_effects(&details.side_effects),
            "queue": queue.as_ref().map(queue_json),
        }));
    } else {
        let now = jiff::Timestamp::now();
        let view = StatusView { run: &run, trials: &trials, live: &live, alive, now, all: args.all, details: &details };
        terminal.out(&report::status(&view, &terminal.out_style));
        terminal.out(&queue.map_or_else(String::new, |queue| report::queue_of_run(&queue, &run.id)));
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the queue if workers run trials of this run.
fn queue(global: &Global, run: &RunRow, terminal: &Terminal) -> Result<Option<QueueView>, CliError> {
    let session = place::open(global, &[])?;
    if !has_queue(&session) {
        return Ok(None);
    }
    let settings = settings(None, &session)?;
    let view = Queue::open_existing(&settings).and_then(|queue| queue.as_ref().map(view).transpose());
    match view {
        Ok(view) => Ok(view.filter(|view| view.runs.iter().any(|queued| queued.id == run.id))),
        // The state of the run is known without it.
        Err(error) => {
            terminal.err(&format!("warning: what its trials wait for is not known: {error}\n"));
            Ok(None)
        }
    }
}

/// Reads the details of a run that is small enough, or whose details are all wanted.
pub fn details_of(store: &dyn Store, run: &RunRow, all: bool) -> Result<Details, StoreError> {
    let is_whole = run.finished <= READ_WHOLE || run.sequential || all;
    if is_whole { details(store, run) } else { Ok(Details::default()) }
}

/// Reads from the run's events the details that the lists do not contain.
pub fn details(store: &dyn Store, run: &RunRow) -> Result<Details, StoreError> {
    let info = store.info(&run.id)?;
    let mut details = Details { gate: Gate::from_settings(&info.settings), agents: info.agents, ..Details::default() };
    store.replay(&run.id, &mut |envelope| match &envelope.event {
        Event::TrialFinished(record) => details.add(record),
        Event::Decided(decision) => details.decisions.push(model::DecisionRecord::clone(decision)),
        Event::HookFinished(hook) => details.hooks.push(hook.clone()),
        _ => {}
    })?;
    let cleaned = store.cleaned(&run.id)?;
    details.side_effects = details.side_effects.iter().filter_map(|left| left.without(&cleaned)).collect();
    Ok(details)
}
