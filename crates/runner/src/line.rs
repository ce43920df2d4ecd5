//! A trial's line to those who listen.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use mask::{KeyBlocks, Mask};
use model::{Event, Step};

use crate::teller::Teller;

/// No attempt goes on.
const OVER: u32 = 0;

/// One attempt's line to those who listen.
#[derive(Clone)]
pub(crate) struct Line {
    teller: Arc<Teller>,
    /// The trial's printed id.
    trial: Arc<str>,
    /// From 1.
    attempt: u32,
    /// The attempt that goes on; [`OVER`] once the trial has its outcome.
    latest: Arc<AtomicU32>,
    /// Microseconds, see [`waited`](Self::waited).
    waited: Arc<AtomicU64>,
    /// Mask for the secrets of the trial.
    mask: Arc<Mask>,
    /// The private keys of which lines are still to come.
    key_blocks: Arc<KeyBlocks>,
    /// True if text that assertions look at was masked.
    has_hidden: Arc<AtomicBool>,
}

impl Line {
    /// A line for the first attempt at the trial with that printed id, whose secrets `mask` hides.
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

    /// A line for the attempt after this one.
    pub(crate) fn next_attempt(&self) -> Self {
        let attempt = self.attempt + 1;
        let _ = self.latest.compare_exchange(self.attempt, attempt, Ordering::Relaxed, Ordering::Relaxed);
        let (waited, key_blocks, has_hidden) = (Arc::default(), Arc::default(), Arc::default());
        Self { attempt, waited, key_blocks, has_hidden, ..self.clone() }
    }

    /// The trial's printed id.
    pub(crate) fn trial(&self) -> &Arc<str> {
        &self.trial
    }

    /// Which attempt it is, from 1.
    pub(crate) fn attempt(&self) -> u32 {
        self.attempt
    }

    /// Mask for the secrets of the trial.
    pub(crate) fn mask(&self) -> &Arc<Mask> {
        &self.mask
    }

    /// `event` without secrets.
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

    /// True if the events of this attempt have masked text that assertions look at.
    pub(crate) fn has_hidden(&self) -> bool {
        self.has_hidden.load(Ordering::Relaxed)
    }

    /// Whether the trial has its outcome. Asked and changed by the teller only, one at a time.
    pub(crate) fn is_over(&self) -> bool {
        self.latest.load(Ordering::Relaxed) == OVER
    }

    /// The trial has its outcome now: the number of its last attempt, unless it had one already.
    pub(crate) fn end(&self) -> Option<u32> {
        Some(self.latest.swap(OVER, Ordering::Relaxed)).filter(|attempt| *attempt != OVER)
    }

    /// Tells it; waits while the listener is behind. After the run nobody listens, and that is fine.
    pub(crate) fn tell(&self, event: Event) {
        let waited = self.teller.tell_of(self, event);
        if !waited.is_zero() {
            self.waited.fetch_add(u64::try_from(waited.as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
        }
    }

    /// Adds time that went to something else than the agent: a judge, or a user that is played.
    pub(crate) fn pause(&self, time: Duration) {
        self.waited.fetch_add(u64::try_from(time.as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// How long this attempt has waited for the listener so far. That is the harness's time and not the agent's.
    pub(crate) fn waited(&self) -> Duration {
        Duration::from_micros(self.waited.load(Ordering::Relaxed))
    }
}

impl agent::EventSink for Line {
    fn send(&self, event: Event) {
        self.tell(event);
    }
}
