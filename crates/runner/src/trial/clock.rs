//! Timeouts and cancellation for work that may hang.

use std::pin::pin;
use std::task::Poll;
use std::time::{Duration, Instant};

use agent::Activity;
use model::{Ending, Event, Limits};
use sandbox::DiskWatch;
use tokio::sync::watch;

use super::model_in_use::ModelInUse;
use super::{StopLevel, poll_once};
use crate::event_bus::EventSender;

/// Result of supervised work.
pub(super) enum Watched<T> {
    Done(T),
    Ended(Ending),
}

/// Supervises everything that may hang.
pub(super) struct Clock<'a> {
    /// Deadline, extended by the time for which the attempt waits for the listener.
    pub(super) deadline: Instant,
    pub(super) limits: &'a Limits,
    pub(super) idle_warn: Duration,
    pub(super) grace: Duration,
    pub(super) model: &'a ModelInUse,
    pub(super) stop: &'a watch::Sender<bool>,
    pub(super) stop_level: watch::Receiver<StopLevel>,
    pub(super) activity: &'a Activity,
    pub(super) events: &'a EventSender,
    /// The disk on which the agent works, if the space of its files is limited.
    pub(super) disk: Option<&'a DiskWatch>,
}

impl Clock<'_> {
    /// Waits until `work` ends, the time runs out or the user stops the run. A session that is asked to stop has a
    /// grace period. After that it is dropped, which ends its processes.
    pub(super) async fn watch<T>(&self, work: impl Future<Output = T>) -> Watched<T> {
        let mut work = pin!(work);
        // Work that completes at once needs no timers, most of which are expensive.
        if *self.stop_level.borrow() == StopLevel::No
            && let Poll::Ready(done) = poll_once(work.as_mut()).await
        {
            return Watched::Done(done);
        }
        let mut stop_level = self.stop_level.clone();
        let mut warn_after = self.idle_warn;
        let mut waited = self.events.waited();
        let mut exceeded = pin!(async {
            match self.disk {
                Some(disk) => disk.exceeded().await,
                None => std::future::pending().await,
            }
        });
        let ending = loop {
            let (idle, _) = self.activity.idle();
            let quiet = warn_after.saturating_sub(idle).max(Duration::from_millis(10));
            tokio::select! {
                // The clock comes first: an agent that writes output constantly must not prevent it from being
                // checked.
                biased;
                _ = tokio::time::sleep_until(self.deadline().into()) => {
                    // The work may have waited for the record after the timer was set.
                    if Instant::now() < self.deadline() {
                        continue;
                    }
                    break self.model.timed_out(self.limits, self.activity.idle().1);
                }
                _ = stop_level.wait_for(|stop_level| *stop_level != StopLevel::No) => break Ending::Cancelled,
                done = &mut work => return Watched::Done(done),
                reason = &mut exceeded => break Ending::GaveUp { reason },
                _ = tokio::time::sleep(quiet) => {
                    // The agent's output was not read while the record was behind.
                    if waited != self.events.waited() {
                        waited = self.events.waited();
                        self.activity.touch();
                    }
                    let (idle, on) = self.activity.idle();
                    if idle >= warn_after {
                        self.events.emit(Event::Idle { idle_ms: model::millis(idle), on: on.to_owned() });
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
            _ = stop_level.wait_for(|stop_level| *stop_level == StopLevel::Kill) => {}
            _ = tokio::time::sleep(self.grace) => {}
            _ = &mut work => {}
        }
        Watched::Ended(ending)
    }

    fn deadline(&self) -> Instant {
        self.deadline + self.events.waited()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::event_bus::{EventBus, EventLog};
    use agent::Endpoint;

    /// Returns the result of `work` with a timeout of zero, extended only by the waiting time of `events`.
    async fn watched(events: &EventSender, work: impl Future<Output = ()>) -> Watched<()> {
        let endpoint = Endpoint::Vendor { base_url: None };
        let model = ModelInUse::unused(endpoint);
        let (stop, _) = watch::channel(false);
        let (_stop_level, stop_level) = watch::channel(StopLevel::No);
        let clock = Clock {
            deadline: Instant::now(),
            limits: &Limits::default(),
            idle_warn: Duration::from_secs(600),
            grace: Duration::ZERO,
            model: &model,
            stop: &stop,
            stop_level,
            activity: &Activity::default(),
            events,
            disk: None,
        };
        clock.watch(work).await
    }

    fn events() -> EventSender {
        EventSender::new(Arc::new(EventBus::new("r", EventLog::up_to(64), Arc::default())), "t", &mask::Mask::default())
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn time_spent_waiting_for_others_does_not_count() {
        let events = events();
        let work = async {
            events.pause(Duration::from_secs(600));
            for _ in 0..3 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        assert!(matches!(watched(&events, work).await, Watched::Done(())));
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn endless_work_ends_at_the_deadline() {
        let ended = watched(&events(), std::future::pending()).await;
        assert!(matches!(ended, Watched::Ended(Ending::TimedOut { .. })));
    }
}
