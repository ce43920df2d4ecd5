//! Grades recorded evidence again: the records of a run are graded by the suite as it is today, as a run of its own. No
//! agent is called, and assertions look only at what was recorded.

mod kept;
mod plan;
mod recall;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use model::{Collected, Event, Fault, Outcome, RunInfo, Step, TrialRecord};
use sandbox::{Breakage, Host};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

pub use self::plan::{Regrade, RegradeRequest, plan_regrade};
use self::plan::{Task, Work};
use crate::dispatcher::{Control, RunEnd, share};
use crate::line::Line;
use crate::teller::{Listener, Teller};
use crate::trial::{self, Halt, Relived, Shared};

/// Source of recorded trials.
pub trait Archive: Send + Sync {
    /// Returns the record of the last attempt at the trial with that printed id, or the reason why it cannot be read.
    fn read(&self, trial: &str) -> Result<Testimony, String>;
}

/// Record of an attempt.
#[derive(Debug, Clone, Default)]
pub struct Testimony {
    /// The event that started the attempt.
    pub started: Option<Event>,
    /// Steps of the agent.
    pub steps: Vec<Step>,
    /// Collected state of the sandbox; `None` if it was not collected.
    pub collected: Option<Collected>,
    /// Number of events from another version, which cannot be understood.
    pub unknown: usize,
}

/// Grades the planned trials again. `listener` receives events as it does in a run.
///
/// # Errors
/// If the grading threads cannot be started.
pub async fn regrade(
    regrade: Regrade,
    host: Arc<Host>,
    info: RunInfo,
    mut controls: mpsc::UnboundedReceiver<Control>,
    listener: Arc<dyn Listener>,
    archive: Arc<dyn Archive>,
) -> Result<RunEnd, Breakage> {
    let Regrade { plan, works, .. } = regrade;
    let jobs = plan.settings.jobs.max(1);
    let shared = Arc::new(share(&plan, host).await?);
    let teller = Arc::new(Teller::new(&info.id, listener, Arc::clone(&shared.mask)));
    let (halting, halt) = watch::channel(Halt::No);
    let began = Instant::now();
    teller.tell(Event::RunStarted(Box::new(info)));
    let mut works = works.into_iter();
    let mut tasks = JoinSet::new();
    let mut running = HashMap::new();
    let mut stopped_by: Option<String> = None;
    loop {
        while stopped_by.is_none()
            && tasks.len() < jobs
            && let Some(work) = works.next()
        {
            let mask = work.mask(&shared);
            let line = Line::new(Arc::clone(&teller), work.old.id.clone(), mask);
            let old = work.old.clone();
            let again = again(work, Arc::clone(&shared), line.clone(), halt.clone(), Arc::clone(&archive));
            running.insert(tasks.spawn(again).id(), (line, old));
        }
        if tasks.is_empty() {
            break;
        }
        tokio::select! {
            biased;
            Some(Control::Stop(reason)) = controls.recv() => {
                halting.send_replace(if stopped_by.is_none() { Halt::Stop } else { Halt::Kill });
                stopped_by.get_or_insert(reason);
            }
            Some(ended) = tasks.join_next_with_id() => {
                let (id, record) = match ended {
                    Ok((id, record)) => (id, Some(record)),
                    Err(error) => (error.id(), None),
                };
                if let Some((line, old)) = running.remove(&id) {
                    teller.end(&line, record.unwrap_or_else(|| panicked(old)));
                }
            }
        }
    }
    for work in works {
        let mask = work.mask(&shared);
        let because = "the run was stopped before it was graded";
        teller.finish(&mask, kept::without_verdict(work.old, Outcome::Cancelled, because));
    }
    let (summary, duration_ms) = (teller.summary(), model::millis(began.elapsed()));
    teller.tell(Event::RunFinished { summary: summary.clone(), duration_ms, signal: stopped_by.clone() });
    teller.close();
    Ok(RunEnd { summary, stopped_by, left_over: Vec::new(), refused: None })
}

/// Processes one recorded trial.
async fn again(
    work: Work,
    shared: Arc<Shared>,
    line: Line,
    halt: watch::Receiver<Halt>,
    archive: Arc<dyn Archive>,
) -> TrialRecord {
    let Work { old, task } = work;
    let id = old.id.clone();
    let read = tokio::task::spawn_blocking(move || archive.read(&id)).await;
    let testimony = match read.map_err(|error| error.to_string()).and_then(|read| read) {
        Ok(testimony) => testimony,
        Err(because) => {
            let because = format!("what is recorded of it cannot be read: {because}");
            return TrialRecord {
                fault: Some(Fault::Environment),
                ..kept::without_verdict(old, Outcome::Broken, &because)
            };
        }
    };
    tell(&line, &testimony, &old);
    let Testimony { steps, collected, unknown, .. } = testimony;
    match task {
        Task::Keep(because) => kept::as_it_was(old, because.as_deref()),
        Task::Skip(because) => kept::without_verdict(old, Outcome::Skipped, &because),
        Task::Grade(planned) => {
            let relived = Relived { old, steps, collected: collected.unwrap_or_default(), unknown };
            trial::relive(planned, shared, line, halt, relived).await
        }
    }
}

/// Sends the recorded events, so that the new run can be shown, and graded again, like any other.
fn tell(line: &Line, testimony: &Testimony, old: &TrialRecord) {
    match &testimony.started {
        Some(started) => line.tell(started.clone()),
        None => line.tell(kept::begun(old)),
    }
    testimony.steps.iter().for_each(|step| line.tell(Event::Step(step.clone())));
    testimony.collected.iter().for_each(|collected| line.tell(Event::Collected(collected.clone())));
}

fn panicked(old: TrialRecord) -> TrialRecord {
    let because = "grading it again panicked; this is a bug in trialrun";
    TrialRecord { fault: Some(Fault::Harness), ..kept::without_verdict(old, Outcome::Broken, because) }
}

pub(crate) use self::kept::{merged, observed};
pub(crate) use self::recall::complete;
