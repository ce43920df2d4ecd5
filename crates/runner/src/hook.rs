//! Hooks: the user's commands that run before a run, after each grading and after a run. This module decides when they
//! run and how their results count. An implementation of [`Hook`] provides their input and parses their output.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use mask::Mask;
use model::{Claim, Collected, Event, Finding, HookKind, HookRecord, Status, TrialRecord};
use sandbox::BoxFuture;
use tokio::sync::mpsc::UnboundedReceiver;

use crate::control::{Control, StopLevel};
use crate::event_bus::EventBus;
use crate::plan::PlannedTrial;

/// Error in the record of a command that was interrupted.
pub(crate) const STOPPED: &str = "the run was stopped before it ended";

/// The commands around trials.
pub trait Hook: Send + Sync {
    /// Returns the commands of `hook`, in order.
    fn commands(&self, hook: HookKind) -> &[String];

    /// Returns `true` if the commands need the agent's changes as a patch.
    fn wants_patch(&self) -> bool;

    /// Runs command `number`, from 1; `graded` is set after grading. Dropping the future kills the command and
    /// everything that it has started.
    fn run<'a>(
        &'a self,
        hook: HookKind,
        number: usize,
        graded: Option<&'a Arc<GradedTrial>>,
    ) -> BoxFuture<'a, HookResult>;
}

/// Trial that has been graded and whose sandbox still exists.
#[derive(Clone)]
pub struct GradedTrial {
    /// The planned trial.
    pub planned: PlannedTrial,
    /// Record of the trial as it would be without the commands. Contains no secrets.
    pub record: TrialRecord,
    /// Collected state of the sandbox. Contains no secrets.
    pub collected: Collected,
    /// Number of the attempt, from 1.
    pub attempt: u32,
    /// Copy of the agent's working directory that exists while the command runs.
    pub work: Option<PathBuf>,
    /// Environment of the commands: the user's, in which git reaches the trial's own remote if it has one.
    pub env: BTreeMap<String, String>,
    /// Copy of the trial's own remote, if the source repository is a folder.
    pub remote: Option<PathBuf>,
}

/// Result of a command.
pub struct HookResult {
    /// Record of the command.
    pub record: HookRecord,
    /// Findings of the command.
    pub findings: Vec<Finding>,
}

impl HookResult {
    /// Returns the result of a command that was stopped. Its findings are unknown.
    pub(crate) fn stopped(hook: HookKind, command: &str, began: Instant) -> Self {
        let record = HookRecord {
            hook,
            command: command.to_owned(),
            exit_code: None,
            timed_out: false,
            error: Some(STOPPED.to_owned()),
            stdout: String::new(),
            stderr: String::new(),
            duration_ms: model::millis(began.elapsed()),
        };
        Self { findings: vec![succeeded(command, Status::Undecided, STOPPED)], record }
    }
}

/// Returns a command's finding about `text`. It was decided while the sandbox existed, so it is kept when the evidence
/// is graded again.
pub fn found(text: &str, status: Status, reason: &str) -> Finding {
    let line = model::text::one_line(text, 80);
    let mut finding = Finding::undecided(&format!("hook: {line}"), "hook", 1.0, None, reason);
    finding.title = Some(text.to_owned());
    finding.claim = Claim::Observed;
    finding.status = status;
    if status != Status::Undecided {
        finding.error = None;
        finding.score = Some(if status == Status::Met { 1.0 } else { 0.0 });
    }
    finding
}

/// Returns the finding about the success of `command` itself.
pub fn succeeded(command: &str, status: Status, reason: &str) -> Finding {
    found(&format!("post-grade hook succeeded: {command}"), status, reason)
}

/// Runs the commands of a hook that is not about a trial. If a command fails before a run, the later ones are skipped,
/// the run is prevented, and the command is returned. A request to stop ends the running command; `apply` passes the
/// request on and returns how far the run is asked to stop.
pub(crate) async fn around(
    hook: &dyn Hook,
    moment: HookKind,
    bus: &EventBus,
    mask: &Mask,
    controls: &mut UnboundedReceiver<Control>,
    mut apply: impl FnMut(Control) -> StopLevel,
) -> Option<HookRecord> {
    for (at, command) in hook.commands(moment).iter().enumerate() {
        let began = Instant::now();
        let number = at + 1;
        bus.emit(Event::HookStarted { hook: moment, number, command: command.clone() });
        let mut stop_level = StopLevel::No;
        let mut hooked = tokio::select! {
            biased;
            Some(control) = controls.recv() => {
                stop_level = apply(control);
                HookResult::stopped(moment, command, began)
            }
            hooked = hook.run(moment, number, None) => hooked,
        };
        bus.emit(Event::HookFinished(hooked.record.clone()));
        let forbids = moment == HookKind::PreRun && !hooked.record.succeeded();
        if forbids && stop_level == StopLevel::No {
            // The end of the run reports it again.
            mask.hook(&mut hooked.record);
            return Some(hooked.record);
        }
        if forbids || stop_level == StopLevel::Kill {
            break;
        }
    }
    None
}
