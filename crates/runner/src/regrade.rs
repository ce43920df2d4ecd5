//! Grading recorded evidence again: the current suite grades the evidence of an earlier run, as a new run. No agent is
//! started, and only recorded data is used.

mod kept;
mod plan;
mod recall;

use std::sync::Arc;

use model::{Event, Fault, Outcome, TrialRecord};
use tokio::sync::watch;

use self::plan::Action;
pub(crate) use self::plan::RecordedTrial;
pub use self::plan::{Regrade, RegradeRequest, plan_regrade};
use crate::control::StopLevel;
use crate::event_bus::EventSender;
pub use crate::trial::RecordedEvidence;
use crate::trial::{self, Shared};

/// Reads recorded trials.
pub trait Archive: Send + Sync {
    /// Returns the recorded evidence of the last attempt at the trial with that printed id, or the reason why it
    /// cannot be read.
    fn read(&self, trial: &str) -> Result<RecordedEvidence, String>;
}

/// Grades a recorded trial again, with the evidence in `archive`.
pub(crate) async fn grade_again(
    recorded: &RecordedTrial,
    archive: Arc<dyn Archive>,
    shared: &Arc<Shared>,
    events: &EventSender,
    stop_level: watch::Receiver<StopLevel>,
) -> TrialRecord {
    let old = recorded.old.clone();
    let id = Arc::clone(&old.id);
    let read = tokio::task::spawn_blocking(move || archive.read(&id)).await;
    let mut evidence = match read.map_err(|error| error.to_string()).and_then(|read| read) {
        Ok(evidence) => evidence,
        Err(reason) => {
            let reason = format!("its record cannot be read: {reason}");
            return kept::broken(old, Fault::Environment, &reason);
        }
    };
    replay(events, &evidence, &old);
    match &recorded.action {
        Action::Keep(reason) => kept::as_it_was(old, reason.as_deref()),
        Action::Skip(reason) => kept::without_verdict(old, Outcome::Skipped, reason),
        Action::Grade(planned) => {
            recall::complete(evidence.collected.get_or_insert_default(), &planned.checks);
            let new = trial::regrade(planned, shared, events, stop_level, &old, evidence).await;
            kept::merged(old, new)
        }
    }
}

/// Emits the recorded events again, so that the new run can be shown and graded again like any other run.
fn replay(events: &EventSender, evidence: &RecordedEvidence, old: &TrialRecord) {
    events.emit(evidence.started.clone().unwrap_or_else(|| kept::begun(old)));
    evidence.steps.iter().for_each(|step| events.emit(Event::Step(step.clone())));
    evidence.collected.iter().for_each(|collected| events.emit(Event::Collected(collected.clone())));
}
