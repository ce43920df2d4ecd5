//! Sends the events of one attempt to the bus.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use mask::{KeyBlocks, Mask};
use model::{Event, Step, TrialRecord};

use crate::event_bus::EventBus;

/// Number of the running attempt once the trial has its outcome.
const OVER: u32 = 0;

/// Sends the events of one attempt at a trial.
#[derive(Clone)]
pub(crate) struct EventSender {
    bus: Arc<EventBus>,
    /// The trial's printed id.
    trial: Arc<str>,
    /// Number of the attempt, from 1.
    attempt: u32,
    /// Number of the running attempt; [`OVER`] once the trial has its outcome.
    latest: Arc<AtomicU32>,
    /// Time in microseconds, see [`waited`](Self::waited).
    waited: Arc<AtomicU64>,
    /// Mask for the secrets of the trial.
    mask: Arc<Mask>,
    /// Private keys whose last lines have not come yet.
    key_blocks: Arc<KeyBlocks>,
    /// `true` if text that assertions look at was masked.
    has_hidden: Arc<AtomicBool>,
}

impl EventSender {
    /// A sender for the first attempt at the trial with that printed id, whose secrets `mask` hides.
    pub(crate) fn new(bus: Arc<EventBus>, trial: impl Into<Arc<str>>, mask: Arc<Mask>) -> Self {
        Self {
            bus,
            trial: trial.into(),
            attempt: 1,
            latest: Arc::new(AtomicU32::new(1)),
            waited: Arc::default(),
            mask,
            key_blocks: Arc::default(),
            has_hidden: Arc::default(),
        }
    }

    /// A sender for the attempt after this one.
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

    /// True if the trial has its outcome. Only the bus reads and changes that, under its lock.
    pub(crate) fn is_over(&self) -> bool {
        self.latest.load(Ordering::Relaxed) == OVER
    }

    /// Marks the trial as finished. Returns the number of its last attempt, unless it was finished already.
    pub(crate) fn end(&self) -> Option<u32> {
        Some(self.latest.swap(OVER, Ordering::Relaxed)).filter(|attempt| *attempt != OVER)
    }

    /// Emits an event. Waits while the listener is behind; after the run the event is dropped.
    pub(crate) fn emit(&self, event: Event) {
        let waited = self.bus.emit_from(self, event);
        if !waited.is_zero() {
            self.pause(waited);
        }
    }

    /// Counts and emits the outcome of the trial, unless it has one already.
    pub(crate) fn finish(&self, record: TrialRecord) {
        self.bus.finish_from(self, record);
    }

    /// Adds time that is not the agent's: of the listener, of a judge or of a simulated user.
    pub(crate) fn pause(&self, time: Duration) {
        self.waited.fetch_add(u64::try_from(time.as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Time in this attempt so far that is not the agent's.
    pub(crate) fn waited(&self) -> Duration {
        Duration::from_micros(self.waited.load(Ordering::Relaxed))
    }
}

impl agent::EventSink for EventSender {
    fn send(&self, event: Event) {
        self.emit(event);
    }
}
