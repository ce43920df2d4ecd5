//! The event bus: the only output of a run. Every event is masked, numbered and passed to the listener, in that order,
//! before the call that emits it returns.
//!
//! Senders call the bus directly instead of sending to the dispatcher's task over a channel, because three things need
//! an immediate answer: grading must know whether text in its trial was masked, the time that an attempt waits for the
//! listener does not count as the agent's, and an agent that floods its output must be slowed down to the speed of
//! recording.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use mask::{KeyBlocks, Mask};
use model::{DecisionRecord, EVENT_VERSION, Envelope, Event, RunInfo, Step, Summary, TrialRecord};
use tracing::{debug, info};

/// Maximum wait that is not counted as waiting, because emitting an event always takes some time.
const SHORTEST_WAIT: Duration = Duration::from_millis(1);

/// Receiver of a run's events, one after another, in the order of their numbers.
pub trait Listener: Send + Sync {
    /// Takes an event, or returns it if there is no room for it now.
    fn offer(&self, event: Envelope) -> Option<Envelope>;

    /// Takes an event, and blocks until there is room for it.
    fn on_event(&self, event: Envelope);

    /// Returns `true` if trials may be started. Is called after the start of the run was taken. A listener that could
    /// not store it returns `false`. The default is for all others.
    fn can_begin(&self) -> bool {
        true
    }

    /// Returns `true` while events cannot be stored, so that no further trial should start. The default is for listeners
    /// that need no store.
    fn is_late(&self) -> bool {
        false
    }

    /// Is called before the outcome of a trial if a secret became known after the trial's first event. A listener that
    /// stores the trial's events must mask them again with `mask`. The default does nothing, for all others.
    fn on_learned(&self, _trial: &Arc<str>, _mask: &Arc<Mask>) {}
}

/// Masks events, numbers them and passes them to the listener. A call waits while the listener is behind.
pub(crate) struct EventBus {
    run: Arc<str>,
    /// Mask for the run's secrets.
    mask: Arc<Mask>,
    state: Mutex<State>,
    /// True while a sender is blocked by the listener, and all other senders by that sender.
    is_behind: AtomicBool,
}

struct State {
    /// `None` once the run is over; later events are dropped.
    listener: Option<Arc<dyn Listener>>,
    seq: u64,
    summary: Summary,
}

impl EventBus {
    /// Creates the bus for the run with the id `run`; `mask` hides its secrets.
    pub(crate) fn new(run: &str, listener: Arc<dyn Listener>, mask: Arc<Mask>) -> Self {
        let state = State { listener: Some(listener), seq: 0, summary: Summary::default() };
        Self { run: run.into(), mask, state: Mutex::new(state), is_behind: AtomicBool::new(false) }
    }

    /// Continues after the events of the part of the run that was already run.
    pub(crate) fn after(mut self, last_seq: u64, summary: Summary) -> Self {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        (state.seq, state.summary) = (last_seq, summary);
        self
    }

    /// Emits an event about the run itself.
    pub(crate) fn emit(&self, mut event: Event) {
        self.mask.event(&mut event);
        self.pass_on(&mut self.state(), None, event);
    }

    /// Counts decisions, and emits them as events.
    pub(crate) fn emit_decisions(&self, decisions: Vec<DecisionRecord>) {
        for decision in decisions {
            let mut event = Event::Decided(Box::new(decision));
            self.mask.event(&mut event);
            let mut state = self.state();
            if let Event::Decided(decision) = &event {
                state.summary.decide(decision);
            }
            self.pass_on(&mut state, None, event);
        }
    }

    /// Counts of the outcomes so far.
    pub(crate) fn summary(&self) -> Summary {
        self.state().summary.clone()
    }

    /// Emits the start of the run. Returns `true` if trials may be started.
    pub(crate) fn begin(&self, info: RunInfo) -> bool {
        self.emit(Event::RunStarted(Box::new(info)));
        self.state().listener.as_ref().is_none_or(|listener| listener.can_begin())
    }

    /// Drops the listener. Later events are dropped.
    pub(crate) fn close(&self) {
        self.state().listener = None;
    }

    fn pass_on(&self, state: &mut State, about: Option<(&Arc<str>, u32)>, event: Event) -> Duration {
        let Some(listener) = &state.listener else { return Duration::ZERO };
        state.seq += 1;
        log(about.map(|(trial, _)| &**trial), &event);
        let refused = listener.offer(Envelope {
            v: EVENT_VERSION,
            seq: state.seq,
            at: Timestamp::now(),
            run: Arc::clone(&self.run),
            trial: about.map(|(trial, _)| Arc::clone(trial)),
            attempt: about.map(|(_, attempt)| attempt),
            event,
        });
        let Some(envelope) = refused else { return Duration::ZERO };
        let began = Instant::now();
        self.is_behind.store(true, Ordering::Relaxed);
        // Sessions emit synchronously; other tasks on this thread must not wait with them.
        tokio::task::block_in_place(|| listener.on_event(envelope));
        self.is_behind.store(false, Ordering::Relaxed);
        began.elapsed()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        let lock = || self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match self.state.try_lock() {
            Ok(state) => state,
            Err(TryLockError::Poisoned(state)) => state.into_inner(),
            Err(TryLockError::WouldBlock) if self.is_behind.load(Ordering::Relaxed) => {
                tokio::task::block_in_place(lock)
            }
            Err(TryLockError::WouldBlock) => lock(),
        }
    }
}

/// Writes a masked event to the log, without the texts of its trial.
fn log(trial: Option<&str>, event: &Event) {
    match event {
        Event::RunStarted(info) => {
            let settings = serde_json::Value::Object(info.settings.clone());
            info!(run = info.id, trials = info.trials.len(), jobs = info.jobs, "run started");
            debug!(%settings, "settings");
        }
        Event::Waiting { on } => debug!(on, "waiting"),
        Event::Step(Step::ToolCall(call)) => debug!(tool = call.name, "tool called"),
        Event::Step(Step::Retry { attempt, status, error, .. }) => debug!(attempt, status, error, "agent retries"),
        Event::HookStarted { hook, number, .. } => debug!(?hook, number, "hook started"),
        Event::TrialRetried { reason } => info!(trial, reason, "trial retried"),
        Event::TrialFinished(record) => {
            let (outcome, reason) = (record.outcome.name(), record.reason.as_deref());
            info!(trial, outcome, reason, duration_ms = record.duration_ms, "trial finished");
        }
        Event::RunFinished { duration_ms, signal, .. } => info!(duration_ms, signal, "run finished"),
        _ => {}
    }
}

/// Number of the running attempt once the trial has its outcome.
const OVER: u32 = 0;

/// Sends the events of one attempt at a trial.
#[derive(Clone)]
pub(crate) struct EventSender {
    bus: Arc<EventBus>,
    /// The trial's printed id.
    trial: Arc<str>,
    /// From 1.
    attempt: u32,
    /// Number of the running attempt; [`OVER`] once the trial has its outcome.
    latest: Arc<AtomicU32>,
    /// Microseconds, see [`waited`](Self::waited).
    waited: Arc<AtomicU64>,
    /// Mask for the trial's secrets.
    mask: Arc<Mask>,
    /// Number of secrets that the mask had learned before the trial.
    learned_before: usize,
    /// Private keys whose last lines have not arrived yet.
    key_blocks: Arc<KeyBlocks>,
    /// True if text that assertions look at was masked.
    has_hidden: Arc<AtomicBool>,
}

impl EventSender {
    /// Creates a sender for the first attempt at the trial with that printed id. `mask` hides its secrets. Findings
    /// show parts of the texts in earlier events, so the trial's mask remembers the private keys in these.
    pub(crate) fn new(bus: Arc<EventBus>, trial: impl Into<Arc<str>>, mask: &Mask) -> Self {
        Self {
            bus,
            trial: trial.into(),
            attempt: 1,
            latest: Arc::new(AtomicU32::new(1)),
            waited: Arc::default(),
            mask: Arc::new(mask.remembering()),
            learned_before: mask.learned(),
            key_blocks: Arc::default(),
            has_hidden: Arc::default(),
        }
    }

    /// Returns a sender for the next attempt.
    pub(crate) fn next_attempt(&self) -> Self {
        let attempt = self.attempt + 1;
        let _ = self.latest.compare_exchange(self.attempt, attempt, Ordering::Relaxed, Ordering::Relaxed);
        let (waited, key_blocks, has_hidden) = (Arc::default(), Arc::default(), Arc::default());
        Self { attempt, waited, key_blocks, has_hidden, ..self.clone() }
    }

    /// Number of the attempt, from 1.
    pub(crate) fn attempt(&self) -> u32 {
        self.attempt
    }

    /// Mask for the trial's secrets.
    pub(crate) fn mask(&self) -> &Arc<Mask> {
        &self.mask
    }

    /// `event` without secrets.
    fn masked(&self, mut event: Event) -> Event {
        match &mut event {
            Event::Output { stream, text } => self.key_blocks.mask(stream, text, &self.mask),
            Event::Step(Step::Notice { from, text }) => {
                self.key_blocks.mask(&format!("notice {from}"), text, &self.mask);
            }
            _ => {}
        }
        if self.mask.event(&mut event) && matches!(event, Event::Step(_) | Event::Collected(_)) {
            self.has_hidden.store(true, Ordering::Relaxed);
        }
        event
    }

    /// Returns `true` if the events of this attempt have masked text that assertions look at, or may have some once they
    /// are masked again.
    pub(crate) fn has_hidden(&self) -> bool {
        self.has_hidden.load(Ordering::Relaxed) || self.has_learned()
    }

    /// Returns `true` if a secret became known after the trial's first event.
    fn has_learned(&self) -> bool {
        self.mask.learned() > self.learned_before
    }

    /// Emits an event, unless the trial already has its outcome. Waits while the listener is behind; after the run,
    /// the event is dropped.
    pub(crate) fn emit(&self, event: Event) {
        let event = self.masked(event);
        let free = self.bus.state.try_lock().ok();
        let began = free.is_none().then(Instant::now);
        let mut state = free.unwrap_or_else(|| self.bus.state());
        if self.latest.load(Ordering::Relaxed) == OVER {
            return;
        }
        let waited = self.bus.pass_on(&mut state, Some((&self.trial, self.attempt)), event);
        let waited = began.map_or(waited, |began| began.elapsed());
        if waited >= SHORTEST_WAIT {
            self.pause(waited);
        }
    }

    /// Counts and emits the outcome of the trial, unless it already has one.
    pub(crate) fn finish(&self, mut record: TrialRecord) {
        self.mask.record(&mut record);
        let mut state = self.bus.state();
        let last = self.latest.swap(OVER, Ordering::Relaxed);
        if last != OVER {
            if let Some(listener) = state.listener.as_ref().filter(|_| self.has_learned()) {
                listener.on_learned(&self.trial, &self.mask);
            }
            state.summary.add(&record);
            self.bus.pass_on(&mut state, Some((&self.trial, last)), Event::TrialFinished(Box::new(record)));
        }
    }

    /// Adds time that is not the agent's: that of the listener, a judge or a simulated user.
    pub(crate) fn pause(&self, time: Duration) {
        self.waited.fetch_add(u64::try_from(time.as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Returns the time in this attempt so far that does not count as the agent's.
    pub(crate) fn waited(&self) -> Duration {
        Duration::from_micros(self.waited.load(Ordering::Relaxed))
    }
}

impl agent::EventSink for EventSender {
    fn send(&self, event: Event) {
        self.emit(event);
    }

    fn pause(&self, time: Duration) {
        Self::pause(self, time);
    }
}

/// A listener that keeps up to a number of events. Senders of further events wait.
#[cfg(test)]
pub(crate) struct EventLog {
    events: Mutex<Vec<Envelope>>,
    room: std::sync::Condvar,
    most: usize,
}

#[cfg(test)]
impl EventLog {
    pub(crate) fn up_to(most: usize) -> Arc<Self> {
        Arc::new(Self { events: Mutex::new(Vec::new()), room: std::sync::Condvar::new(), most })
    }

    /// Takes the events out, so that there is room again.
    pub(crate) fn take(&self) -> Vec<Envelope> {
        let events = std::mem::take(&mut *self.events.lock().unwrap());
        self.room.notify_all();
        events
    }
}

#[cfg(test)]
impl Listener for EventLog {
    fn offer(&self, event: Envelope) -> Option<Envelope> {
        let mut events = self.events.lock().unwrap();
        if events.len() >= self.most {
            return Some(event);
        }
        events.push(event);
        None
    }

    fn on_event(&self, event: Envelope) {
        let events = self.events.lock().unwrap();
        self.room.wait_while(events, |events| events.len() >= self.most).unwrap().push(event);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(text: &str) -> Event {
        Event::Waiting { on: text.to_owned() }
    }

    fn bus(log: &Arc<EventLog>) -> Arc<EventBus> {
        Arc::new(EventBus::new("r", log.clone(), Arc::default()))
    }

    #[test]
    fn events_of_all_senders_are_numbered_in_the_order_in_which_they_arrive() {
        let log = EventLog::up_to(usize::MAX);
        let bus = bus(&log);
        let senders = ["a", "b", "c", "d"].map(|trial| EventSender::new(Arc::clone(&bus), trial, &Mask::default()));
        std::thread::scope(|scope| {
            for sender in &senders {
                scope.spawn(move || (0..500).for_each(|n| sender.emit(event(&n.to_string()))));
            }
        });
        let events = log.take();
        assert!(events.iter().map(|event| event.seq).eq(1..=2000));
        for sender in &senders {
            let own = events.iter().filter(|event| event.trial.as_deref() == Some(&sender.trial));
            assert!(
                own.map(|entry| entry.event.clone()).eq((0..500).map(|n| event(&n.to_string()))),
                "{}",
                &sender.trial
            );
        }
    }

    #[test]
    fn a_sender_waits_while_the_listener_is_behind() {
        let log = EventLog::up_to(1);
        let bus = bus(&log);
        let senders = ["a", "b", "c"].map(|trial| EventSender::new(Arc::clone(&bus), trial, &Mask::default()));
        senders[0].emit(event("1"));
        assert_eq!(senders[0].waited(), Duration::ZERO);
        std::thread::scope(|scope| {
            for sender in &senders[1..] {
                scope.spawn(move || sender.emit(event("2")));
            }
            let mut seen = 0;
            while seen < 3 {
                seen += log.take().len();
                std::thread::yield_now();
            }
        });
        assert_eq!(log.take().len(), 0);
    }

    #[test]
    fn a_trial_has_one_outcome_and_no_event_after_it() {
        let log = EventLog::up_to(usize::MAX);
        let bus = bus(&log);
        let sender = EventSender::new(Arc::clone(&bus), "a", &Mask::default());
        let next = sender.next_attempt();
        next.emit(event("1"));
        sender.finish(record("a"));
        next.emit(event("2"));
        next.finish(record("a"));
        let events = log.take();
        let attempts: Vec<_> = events.iter().map(|entry| (entry.attempt, entry.event == event("1"))).collect();
        assert_eq!(attempts, [(Some(2), true), (Some(2), false)]);
        assert_eq!(bus.summary().trials, 1);
    }

    fn record(id: &str) -> TrialRecord {
        let written = serde_json::json!({
            "id": id, "suite": "s", "case": "c", "arm": "x", "agent": "x", "repetition": 1, "outcome": "passed",
            "findings": [], "input": [], "turn_count": 0, "tool_calls": [], "questions": [], "duration_ms": 0,
            "started_at": "2026-01-01T00:00:00Z", "attempts": [], "files_changed": [], "errors": [],
        });
        serde_json::from_value(written).unwrap()
    }

    #[test]
    fn the_listener_hears_of_secrets_that_became_known_during_a_trial() {
        struct Learners(Mutex<Vec<(String, String)>>);
        impl Listener for Learners {
            fn offer(&self, _: Envelope) -> Option<Envelope> {
                None
            }
            fn on_event(&self, _: Envelope) {}
            fn on_learned(&self, trial: &Arc<str>, mask: &Arc<Mask>) {
                self.0.lock().unwrap().push((trial.to_string(), mask.text("plain-words-only").into_owned()));
            }
        }
        let (listener, secrets) = (Arc::new(Learners(Mutex::default())), mask::Secrets::default());
        let mask = Mask::default().with_secrets(&secrets);
        let bus = Arc::new(EventBus::new("r", listener.clone(), Arc::new(mask.clone())));
        let [before, during] = ["a", "b"].map(|trial| EventSender::new(Arc::clone(&bus), trial, &mask));
        before.finish(record("a"));
        assert!(!during.has_hidden());
        secrets.learn_header("Authorization", "Bearer plain-words-only");
        assert!(during.has_hidden(), "its earlier events are masked later");
        during.finish(record("b"));
        EventSender::new(bus, "c", &mask).finish(record("c"));
        assert_eq!(*listener.0.lock().unwrap(), [("b".to_owned(), "[masked]".to_owned())]);
    }

    #[test]
    fn events_after_the_run_are_dropped() {
        let log = EventLog::up_to(1);
        let bus = bus(&log);
        bus.close();
        bus.emit(event("1"));
        bus.emit(event("2"));
        assert_eq!(log.take().len(), 0);
        assert_eq!(Arc::strong_count(&log), 1);
    }
}
