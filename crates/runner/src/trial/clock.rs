//! Watching over everything that may hang.

use std::time::{Duration, Instant};

use model::{Ending, Event, Limits};
use tokio::sync::watch;

use super::model_in_use::ModelInUse;
use super::{Halt, millis};
use crate::activity::Activity;
use crate::line::Line;

/// What became of something that was watched.
pub(super) enum Watched<T> {
    Done(T),
    Ended(Ending),
}

/// Watches over everything that may hang.
pub(super) struct Clock<'a> {
    pub(super) deadline: Instant,
    pub(super) limits: &'a Limits,
    pub(super) idle_warn: Duration,
    pub(super) grace: Duration,
    pub(super) model: &'a ModelInUse,
    pub(super) stop: &'a watch::Sender<bool>,
    pub(super) halt: watch::Receiver<Halt>,
    pub(super) activity: &'a Activity,
    pub(super) line: &'a Line,
}

impl Clock<'_> {
    /// Follows `work` to its end, to the wall clock's or to the user's. A session that is told to stop has its grace to
    /// do so; then it is dropped, and its processes end with it.
    pub(super) async fn watch<T>(&self, work: impl Future<Output = T>) -> Watched<T> {
        let mut work = std::pin::pin!(work);
        let mut halt = self.halt.clone();
        let mut warn_after = self.idle_warn;
        let ending = loop {
            let (idle, _) = self.activity.idle();
            let quiet = warn_after.saturating_sub(idle).max(Duration::from_millis(10));
            tokio::select! {
                // The clock comes first: an agent that never falls silent must not keep it from being looked at.
                biased;
                _ = tokio::time::sleep_until(self.deadline.into()) => {
                    break self.model.timed_out(self.limits, self.activity.idle().1);
                }
                _ = halt.wait_for(|halt| *halt != Halt::No) => break Ending::Cancelled,
                done = &mut work => return Watched::Done(done),
                _ = tokio::time::sleep(quiet) => {
                    let (idle, on) = self.activity.idle();
                    if idle >= warn_after {
                        self.line.tell(Event::Idle { idle_ms: millis(idle), on: on.to_owned() });
                        warn_after += self.idle_warn;
                    } else if idle < self.idle_warn {
                        warn_after = self.idle_warn;
                    }
                }
            }
        };
        self.stop.send_replace(true);
        tokio::select! {
            biased;
            _ = halt.wait_for(|halt| *halt == Halt::Kill) => {}
            _ = tokio::time::sleep(self.grace) => {}
            _ = &mut work => {}
        }
        Watched::Ended(ending)
    }
}
