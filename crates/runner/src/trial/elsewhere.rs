//! A trial that runs elsewhere, from the view of the dispatcher's process.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use model::{AttemptRecord, Event, TrialRecord};
use sandbox::Breakage;
use tokio::sync::watch;

use super::Shared;
use super::record::{attempt_of, broken, cancelled, stopped};
use crate::control::StopLevel;
use crate::event_bus::EventSender;
use crate::place::{Place, Progress};
use crate::plan::PlannedTrial;

/// Number of times that a trial may lose the process that runs it. A trial that ends its worker does so each time.
const MAX_LOSSES: usize = 3;

/// Time that a killed trial has to report its end.
const KILL_TIME: Duration = Duration::from_secs(10);

/// The place where trials run, and what is known of its agents.
pub(crate) struct Elsewhere {
    pub(crate) place: Arc<dyn Place>,
    /// Version of the agent of each arm, in the first trial that had one.
    versions: Mutex<HashMap<Arc<str>, String>>,
}

impl Elsewhere {
    pub(crate) fn new(place: Arc<dyn Place>) -> Self {
        Self { place, versions: Mutex::default() }
    }

    /// Warns in the record if its agent has another version than that of an earlier trial of the arm.
    fn compare_version(&self, record: &mut TrialRecord) {
        let Some(version) = &record.agent_version else { return };
        let mut versions = self.versions.lock().unwrap_or_else(PoisonError::into_inner);
        let first = versions.entry(Arc::clone(&record.arm)).or_insert_with(|| version.clone());
        if first != version {
            let (agent, arm) = (&record.agent, &record.arm);
            let warning = format!("{agent} has the version {version}, and {first} in other trials of the arm `{arm}`");
            record.warnings.push(warning);
        }
    }
}

/// Runs a trial elsewhere, to its outcome. Its start is emitted when it starts there. An attempt that is lost counts as
/// broken, and is repeated.
pub(crate) async fn run(
    planned: PlannedTrial,
    shared: Arc<Shared>,
    elsewhere: Arc<Elsewhere>,
    mut events: EventSender,
    mut stop_level: watch::Receiver<StopLevel>,
) -> TrialRecord {
    let mut lost: Vec<AttemptRecord> = Vec::new();
    let mut losses = 0;
    loop {
        let mut progress = elsewhere.place.submit(&planned, &lost);
        let mut has_started = false;
        let reason = loop {
            let next = tokio::select! {
                biased;
                next = progress.recv() => next,
                () = killed(&mut stop_level) => return stopped(&planned),
            };
            match next {
                Some(Progress::Events(list)) => {
                    has_started = true;
                    if let Some(mut record) = pass_on(list, &mut events) {
                        elsewhere.compare_version(&mut record);
                        shared.spending.add(&record, &planned, &shared.settings, &shared.judging);
                        return record;
                    }
                }
                Some(Progress::Lost(reason)) => break reason,
                Some(Progress::Withdrawn(reason)) => {
                    let reason = reason.as_deref().or_else(|| shared.spending.ceased());
                    return cancelled(&planned, reason.unwrap_or("the run was stopped"));
                }
                Some(Progress::Refused(breakage)) => return refused(&planned, &breakage, lost),
                None => {
                    let breakage = Breakage::environment("the connection to the workers is closed");
                    return refused(&planned, &breakage, lost);
                }
            }
        };
        losses += 1;
        let breakage = Breakage::environment(reason);
        let mut record = broken(&planned, &breakage);
        // What the process reported about its own attempts is incomplete.
        while lost.len() < events.attempt() as usize {
            lost.push(attempt_of(&record));
        }
        if *stop_level.borrow() != StopLevel::No {
            return stopped(&planned);
        }
        if losses >= MAX_LOSSES {
            record.attempts = lost;
            return record;
        }
        if has_started {
            events.emit(Event::TrialRetried { reason: breakage.reason });
        }
        events = events.next_attempt();
    }
}

/// Returns the record of a trial that cannot be run, after attempts that were lost.
fn refused(planned: &PlannedTrial, breakage: &Breakage, mut attempts: Vec<AttemptRecord>) -> TrialRecord {
    let mut record = broken(planned, breakage);
    attempts.push(attempt_of(&record));
    record.attempts = attempts;
    record
}

/// Emits events of a trial. Returns its outcome, if they contain it.
fn pass_on(list: Vec<(u32, Event)>, events: &mut EventSender) -> Option<TrialRecord> {
    for (attempt, event) in list {
        while events.attempt() < attempt {
            *events = events.next_attempt();
        }
        match event {
            Event::TrialFinished(record) => return Some(*record),
            event => events.emit(event),
        }
    }
    None
}

/// Waits until the trial is killed and has not reported its end in time.
async fn killed(stop_level: &mut watch::Receiver<StopLevel>) {
    // Fails if the dispatcher has ended, which ends this task too.
    let _ = stop_level.wait_for(|level| *level == StopLevel::Kill).await;
    tokio::time::sleep(KILL_TIME).await;
}
