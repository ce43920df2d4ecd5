//! The event bus: every event of a run passes through here. It numbers the events and passes them to the listener in
//! that order.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use mask::Mask;
use model::{EVENT_VERSION, Envelope, Event, Summary, TrialRecord};

use crate::line::Line;

/// Minimum wait that is measured. A shorter one is the normal cost of sending.
const WORTH_TELLING: Duration = Duration::from_millis(1);

/// Receiver of the events of a run, one after the other, in the order of their numbers.
pub trait Listener: Send + Sync {
    /// Takes an event, or returns it if there is no room for it now.
    fn offer(&self, event: Envelope) -> Option<Envelope>;

    /// Takes an event, and blocks until there is room for it.
    fn hear(&self, event: Envelope);
}

/// Masks events, numbers them and passes them on. Senders wait while the listener is behind: an agent that floods its
/// output is slowed down to the speed of recording instead of filling memory.
pub(crate) struct Teller {
    run: Arc<str>,
    /// Mask for the secrets of the run.
    mask: Arc<Mask>,
    state: Mutex<State>,
    /// `true` while a sender is blocked on the listener, and all others on that sender.
    is_behind: AtomicBool,
}

struct State {
    /// `None` once the run is over; later events are dropped.
    listener: Option<Arc<dyn Listener>>,
    seq: u64,
    summary: Summary,
}

impl Teller {
    /// Creates the bus of the run with the id `run`, whose secrets `mask` hides.
    pub(crate) fn new(run: &str, listener: Arc<dyn Listener>, mask: Arc<Mask>) -> Self {
        let state = State { listener: Some(listener), seq: 0, summary: Summary::default() };
        Self { run: run.into(), mask, state: Mutex::new(state), is_behind: AtomicBool::new(false) }
    }

    /// Sends an event about the run itself.
    pub(crate) fn tell(&self, mut event: Event) {
        self.mask.event(&mut event);
        self.pass_on(&mut self.state(), None, event);
    }

    /// Sends an event about the attempt of `line`, unless its trial has its outcome already. Returns the time that the
    /// listener was waited for.
    pub(crate) fn tell_of(&self, line: &Line, event: Event) -> Duration {
        let event = line.masked(event);
        let free = self.state.try_lock().ok();
        let began = free.is_none().then(Instant::now);
        let mut state = free.unwrap_or_else(|| self.state());
        if line.is_over() {
            return Duration::ZERO;
        }
        let waited = self.pass_on(&mut state, Some((line.trial(), line.attempt())), event);
        let waited = began.map_or(waited, |began| began.elapsed());
        if waited < WORTH_TELLING { Duration::ZERO } else { waited }
    }

    /// Counts and sends the outcome of the trial of `line`, unless it has one already.
    pub(crate) fn end(&self, line: &Line, mut record: TrialRecord) {
        line.mask().record(&mut record);
        let mut state = self.state();
        if let Some(attempt) = line.end() {
            self.finish_in(&mut state, record, attempt);
        }
    }

    /// Counts and sends the outcome of a trial that never started, whose secrets `mask` hides.
    pub(crate) fn finish(&self, mask: &Mask, mut record: TrialRecord) {
        mask.record(&mut record);
        self.finish_in(&mut self.state(), record, 1);
    }

    fn finish_in(&self, state: &mut State, record: TrialRecord, attempt: u32) {
        state.summary.add(&record);
        let id = Arc::clone(&record.id);
        self.pass_on(state, Some((&id, attempt)), Event::TrialFinished(Box::new(record)));
    }

    /// Returns the summary of the outcomes so far.
    pub(crate) fn summary(&self) -> Summary {
        self.state().summary.clone()
    }

    /// Drops all later events.
    pub(crate) fn close(&self) {
        self.state().listener = None;
    }

    fn pass_on(&self, state: &mut State, about: Option<(&Arc<str>, u32)>, event: Event) -> Duration {
        let Some(listener) = &state.listener else { return Duration::ZERO };
        state.seq += 1;
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
        // Sessions send events synchronously; other tasks of this thread must not wait with them.
        tokio::task::block_in_place(|| listener.hear(envelope));
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

/// Listener for tests that keeps events up to a maximum number; further senders wait.
#[cfg(test)]
pub(crate) struct Heard {
    events: Mutex<Vec<Envelope>>,
    room: std::sync::Condvar,
    most: usize,
}

#[cfg(test)]
impl Heard {
    pub(crate) fn up_to(most: usize) -> Arc<Self> {
        Arc::new(Self { events: Mutex::new(Vec::new()), room: std::sync::Condvar::new(), most })
    }

    /// Takes the events, which makes room again.
    pub(crate) fn take(&self) -> Vec<Envelope> {
        let events = std::mem::take(&mut *self.events.lock().unwrap());
        self.room.notify_all();
        events
    }
}

#[cfg(test)]
impl Listener for Heard {
    fn offer(&self, event: Envelope) -> Option<Envelope> {
        let mut events = self.events.lock().unwrap();
        if events.len() >= self.most {
            return Some(event);
        }
        events.push(event);
        None
    }

    fn hear(&self, event: Envelope) {
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

    fn teller(heard: &Arc<Heard>) -> Arc<Teller> {
        Arc::new(Teller::new("r", heard.clone(), Arc::default()))
    }

    #[test]
    fn events_are_numbered_as_they_are_heard_whoever_tells_them() {
        let heard = Heard::up_to(usize::MAX);
        let teller = teller(&heard);
        let lines = ["a", "b", "c", "d"].map(|trial| Line::new(Arc::clone(&teller), trial, Arc::default()));
        std::thread::scope(|scope| {
            for line in &lines {
                scope.spawn(move || (0..500).for_each(|n| line.tell(event(&n.to_string()))));
            }
        });
        let events = heard.take();
        assert!(events.iter().map(|event| event.seq).eq(1..=2000));
        for line in &lines {
            let own = events.iter().filter(|event| event.trial.as_deref() == Some(line.trial()));
            assert!(own.map(|told| told.event.clone()).eq((0..500).map(|n| event(&n.to_string()))), "{}", line.trial());
        }
    }

    #[test]
    fn whoever_tells_something_waits_while_the_listener_is_behind() {
        let heard = Heard::up_to(1);
        let teller = teller(&heard);
        let lines = ["a", "b", "c"].map(|trial| Line::new(Arc::clone(&teller), trial, Arc::default()));
        lines[0].tell(event("1"));
        assert_eq!(lines[0].waited(), Duration::ZERO);
        std::thread::scope(|scope| {
            for line in &lines[1..] {
                scope.spawn(move || line.tell(event("2")));
            }
            let mut seen = 0;
            while seen < 3 {
                seen += heard.take().len();
                std::thread::yield_now();
            }
        });
        assert_eq!(heard.take().len(), 0);
    }

    #[test]
    fn an_outcome_is_the_last_that_is_told_of_a_trial_and_there_is_one() {
        let heard = Heard::up_to(usize::MAX);
        let teller = teller(&heard);
        let line = Line::new(Arc::clone(&teller), "a", Arc::default());
        let next = line.next_attempt();
        next.tell(event("1"));
        teller.end(&line, record("a"));
        next.tell(event("2"));
        teller.end(&next, record("a"));
        let events = heard.take();
        let told: Vec<_> = events.iter().map(|told| (told.attempt, told.event == event("1"))).collect();
        assert_eq!(told, [(Some(2), true), (Some(2), false)]);
        assert_eq!(teller.summary().trials, 1);
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
    fn after_the_run_nobody_hears_anything() {
        let heard = Heard::up_to(1);
        let teller = teller(&heard);
        teller.close();
        teller.tell(event("1"));
        teller.tell(event("2"));
        assert_eq!(heard.take().len(), 0);
        assert_eq!(Arc::strong_count(&heard), 1);
    }
}
