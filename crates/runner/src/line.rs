//! Sender of the events of one trial.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use mask::{KeyBlocks, Mask};
use model::{Event, Step};

use crate::teller::Teller;

/// Attempt number of a trial that has ended.
const OVER: u32 = 0;

/// Sender of the events of one attempt.
#[derive(Clone)]
pub(crate) struct Line {
    teller: Arc<Teller>,
    /// Printed id of the trial.
    trial: Arc<str>,
    /// Number of the attempt, from 1.
    attempt: u32,
    /// Number of the current attempt; [`OVER`] once the trial has its outcome.
    latest: Arc<AtomicU32>,
    /// Time in microseconds, see [`waited`](Self::waited).
    waited: Arc<AtomicU64>,
    /// Mask for the secrets of the trial.
    mask: Arc<Mask>,
    /// State of private keys that span several lines of output.
    key_blocks: Arc<KeyBlocks>,
    /// `true` if text that assertions look at was masked.
    has_hidden: Arc<AtomicBool>,
}

impl Line {
    /// Creates a sender for the first attempt at the trial with that printed id, whose secrets `mask` hides.
    pub(crate) fn new(teller: Arc<Teller>, trial: impl Into<Arc<str>>, mask: Arc<Mask>) -> Self {
        Self {
            teller,
            trial: trial.into(),
            attempt: 1,
            latest: Arc::new(AtomicU32::new(1)),
            waited: Arc::default(),
            mask,
            key_blocks: Arc::default(),
            has_hidden: Arc::default(),
        }
    }

    /// Creates a sender for the next attempt.
    pub(crate) fn next_attempt(&self) -> Self {
        let attempt = self.attempt + 1;
        let _ = self.latest.compare_exchange(self.attempt, attempt, Ordering::Relaxed, Ordering::Relaxed);
        let (waited, key_blocks, has_hidden) = (Arc::default(), Arc::default(), Arc::default());
        Self { attempt, waited, key_blocks, has_hidden, ..self.clone() }
    }

    /// Printed id of the trial.
    pub(crate) fn trial(&self) -> &Arc<str> {
        &self.trial
    }

    /// Number of the attempt, from 1.
    pub(crate) fn attempt(&self) -> u32 {
        self.attempt
    }

    /// Mask for the secrets of the trial.
    pub(crate) fn mask(&self) -> &Arc<Mask> {
        &self.mask
    }

    /// Returns `event` without secrets.
    pub(crate) fn masked(&self, mut event: Event) -> Event {
        match &mut event {
            Event::Output { stream, text } => self.key_blocks.mask(stream, text),
            Event::Step(Step::Notice { from, text }) => self.key_blocks.mask(&format!("notice {from}"), text),
            _ => {}
        }
        if self.mask.event(&mut event) && matches!(event, Event::Step(_) | Event::Collected(_)) {
            self.has_hidden.store(true, Ordering::Relaxed);
        }
        event
    }

    /// Returns `true` if masking has changed text that assertions look at, in an event of this attempt.
    pub(crate) fn has_hidden(&self) -> bool {
        self.has_hidden.load(Ordering::Relaxed)
    }

    /// Returns `true` if the trial has its outcome. Only the event bus reads and changes this, one caller at a time.
    pub(crate) fn is_over(&self) -> bool {
        self.latest.load(Ordering::Relaxed) == OVER
    }

    /// Marks the trial as ended. Returns the number of its last attempt, or `None` if it had ended already.
    pub(crate) fn end(&self) -> Option<u32> {
        Some(self.latest.swap(OVER, Ordering::Relaxed)).filter(|attempt| *attempt != OVER)
    }

    /// Sends `event`; waits while the listener is behind. After the run there is no listener, which is fine.
    pub(crate) fn tell(&self, event: Event) {
        let waited = self.teller.tell_of(self, event);
        if !waited.is_zero() {
            self.waited.fetch_add(u64::try_from(waited.as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
        }
    }

    /// Adds time that was not the agent's: for a judge, or for a played user.
    pub(crate) fn pause(&self, time: Duration) {
        self.waited.fetch_add(u64::try_from(time.as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Returns the time that this attempt has waited for the listener so far. It counts as the harness's, not the
    /// agent's.
    pub(crate) fn waited(&self) -> Duration {
        Duration::from_micros(self.waited.load(Ordering::Relaxed))
    }
}

impl agent::EventSink for Line {
    fn send(&self, event: Event) {
        self.tell(event);
    }
}
