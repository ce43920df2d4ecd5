//! What the user puts around trials: commands that run before a run, after each grading and after a run. When they run and
//! what becomes of what they say is decided here; what they are told, and how what they say is read, is whoever's who
//! implements [`Hook`].

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use mask::Mask;
use model::{Claim, Collected, Event, Finding, HookKind, HookRecord, Status, TrialRecord};
use sandbox::BoxFuture;
use tokio::sync::mpsc::UnboundedReceiver;

use crate::dispatcher::Control;
use crate::plan::PlannedTrial;
use crate::teller::Teller;
use crate::trial::Halt;

/// Why a command did not come to its end that somebody stopped.
pub(crate) const STOPPED: &str = "the run was stopped before it ended";

/// The commands around trials.
pub trait Hook: Send + Sync {
    /// What runs at that moment, in order.
    fn commands(&self, hook: HookKind) -> &[String];

    /// Whether somebody wants to have what agents changed as a patch.
    fn wants_patch(&self) -> bool;

    /// Runs the command `number`, from 1; `graded` is there after grading. Dropping the future ends the command and
    /// everything it has started.
    fn run<'a>(&'a self, hook: HookKind, number: usize, graded: Option<&'a Arc<Graded>>) -> BoxFuture<'a, Hooked>;
}

/// A trial that was graded and whose sandbox is still there.
pub struct Graded {
    /// What was planned.
    pub planned: Arc<PlannedTrial>,
    /// What it would come to without the commands. Holds no secret.
    pub record: TrialRecord,
    /// What was found in the sandbox. Holds no secret.
    pub collected: Collected,
    /// Which attempt it is, from 1.
    pub attempt: u32,
    /// Where the agent worked.
    pub work: Option<PathBuf>,
}

/// What became of a command.
pub struct Hooked {
    /// How it went.
    pub record: HookRecord,
    /// What it found.
    pub findings: Vec<Finding>,
}

impl Hooked {
    /// What is left of a command that somebody stopped: nobody can say what it would have found.
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

/// A finding of a command about `text`. It was decided while the sandbox was there, so it is kept when evidence is graded
/// again.
pub fn found(text: &str, status: Status, because: &str) -> Finding {
    let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(80).collect();
    let mut finding = Finding::undecided(&format!("hook: {line}"), "hook", 1.0, None, because);
    finding.title = Some(text.to_owned());
    finding.claim = Claim::Observed;
    finding.status = status;
    if status != Status::Undecided {
        finding.error = None;
        finding.score = Some(if status == Status::Met { 1.0 } else { 0.0 });
    }
    finding
}

/// The finding that tells how a command of its own went.
pub fn succeeded(command: &str, status: Status, because: &str) -> Finding {
    found(&format!("post-grade hook succeeded: {command}"), status, because)
}

/// What a moment's commands came to.
#[derive(Default)]
pub(crate) struct Around {
    /// The command before the run that forbids it.
    pub(crate) refused: Option<HookRecord>,
}

/// Runs the commands of a moment that belongs to no trial. The first that fails before a run is the last. A wish to stop
/// ends the command that runs; `obey` hears it, and says how far the run is asked to stop now.
pub(crate) async fn around(
    hook: &dyn Hook,
    moment: HookKind,
    teller: &Teller,
    mask: &Mask,
    controls: &mut UnboundedReceiver<Control>,
    mut obey: impl FnMut(Control) -> Halt,
) -> Around {
    for (at, command) in hook.commands(moment).iter().enumerate() {
        let began = Instant::now();
        let number = at + 1;
        teller.tell(Event::HookStarted { hook: moment, number, command: command.clone() });
        let mut halt = Halt::No;
        let mut hooked = tokio::select! {
            biased;
            Some(control) = controls.recv() => {
                halt = obey(control);
                Hooked::stopped(moment, command, began)
            }
            hooked = hook.run(moment, number, None) => hooked,
        };
        teller.tell(Event::HookFinished(hooked.record.clone()));
        let forbids = moment == HookKind::PreRun && !hooked.record.succeeded();
        if forbids && halt == Halt::No {
            // The end of the run reports it once more.
            mask.hook(&mut hooked.record);
            return Around { refused: Some(hooked.record) };
        }
        if forbids || halt == Halt::Kill {
            break;
        }
    }
    Around::default()
}
