//! A trial's line to the dispatcher.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use model::Event;
use tokio::sync::mpsc;

/// How many events may wait for the dispatcher before trials wait too: an agent that floods its output is slowed down
/// to the speed of recording instead of filling memory.
const WAITING_EVENTS: usize = 4096;

/// Something a trial tells the dispatcher.
#[derive(Debug)]
pub(crate) struct Told {
    /// Index into the plan's trials.
    pub(crate) index: usize,
    /// From 1.
    pub(crate) attempt: u32,
    /// When it happened.
    pub(crate) at: Timestamp,
    /// What happened.
    pub(crate) event: Event,
}

/// The dispatcher's end.
pub(crate) fn inbox() -> (mpsc::Sender<Told>, mpsc::Receiver<Told>) {
    mpsc::channel(WAITING_EVENTS)
}

/// One attempt's line to the dispatcher.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    inbox: Arc<mpsc::Sender<Told>>,
    index: usize,
    attempt: u32,
    /// Microseconds, see [`waited`](Self::waited).
    waited: Arc<AtomicU64>,
}

impl Line {
    /// A line for the first attempt at the plan's trial number `index`.
    pub(crate) fn new(inbox: Arc<mpsc::Sender<Told>>, index: usize) -> Self {
        Self { inbox, index, attempt: 1, waited: Arc::default() }
    }

    /// A line for the attempt after this one.
    pub(crate) fn next_attempt(&self) -> Self {
        Self { inbox: Arc::clone(&self.inbox), index: self.index, attempt: self.attempt + 1, waited: Arc::default() }
    }

    /// Tells the dispatcher; waits when it is behind. After the dispatcher is gone nobody listens, and that is fine.
    pub(crate) fn tell(&self, event: Event) {
        let told = Told { index: self.index, attempt: self.attempt, at: Timestamp::now(), event };
        if let Err(mpsc::error::TrySendError::Full(told)) = self.inbox.try_send(told) {
            // Sessions record synchronously; the dispatcher runs on another thread, so waiting here only slows the agent.
            let began = Instant::now();
            tokio::task::block_in_place(|| {
                let _ = tokio::runtime::Handle::current().block_on(self.inbox.send(told));
            });
            let waited = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
            self.waited.fetch_add(waited, Ordering::Relaxed);
        }
    }

    /// How long this attempt has waited for the dispatcher so far. That is the harness's time and not the agent's.
    pub(crate) fn waited(&self) -> Duration {
        Duration::from_micros(self.waited.load(Ordering::Relaxed))
    }
}
