//! Recording. A thread first commits events to the store, and only then do reporters receive them, each on its own
//! thread. All queues are bounded: the run waits for the record, and for a reporter that is far behind.

mod reporting;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use mask::Mask;
use model::{Envelope, Event, Lease, Outcome};
use report::{Reporter, RunHash};
use runner::{Control, Listener};
use store::{Store, StoreError};
use tokio::sync::mpsc::UnboundedSender;

use self::reporting::Reporting;

/// Maximum number of uncommitted events; beyond it, the run waits.
const WAITING: usize = 4096;
/// Maximum number of events in one commit.
const BATCH: usize = 1024;
/// Number of times that the recorder waits for more events before a commit, which takes as long as recording a hundred
/// of them.
const POLLS: usize = 5;
/// Duration of one such wait.
const LOOK: Duration = Duration::from_millis(2);
/// Maximum number of committed events that a reporter has not processed; beyond it, the run waits. It holds several
/// batches, so that reporters that wait for CPU time delay nothing, and little of them if an agent's steps are large.
const UNREPORTED: usize = 4 * 1024;
/// Time that reporters have to finish, or to process one event, after a signal.
const SHUTDOWN: Duration = Duration::from_secs(2);
/// Duration of a commit after which no further trial starts and a signal ends recording, because the record may be away
/// for longer.
const STUCK: Duration = Duration::from_secs(5);

/// Masks for the events of trials during which a secret became known, by the id of the trial.
type Learned = Arc<Mutex<HashMap<Arc<str>, Arc<Mask>>>>;

/// The recording thread and the reporter threads.
pub struct Recording {
    events: SyncSender<Envelope>,
    learned: Learned,
    shared: Arc<Shared>,
    /// Receives the error that ended the record, and the abandoned reports.
    done: Receiver<(Option<String>, Vec<Report>)>,
    reports: Vec<Reporting>,
}

/// State that the recorder shares with the senders of events and with the caller that waits for it.
struct Shared {
    reports: Mutex<Vec<Report>>,
    is_urgent: fn() -> bool,
    /// Time at which the commit in progress began.
    committing: Mutex<Option<Instant>>,
    /// `true` once the start of the run is stored.
    has_begun: AtomicBool,
    /// `true` if the start of the run could not be stored.
    is_refused: AtomicBool,
    /// `true` once no more events will be recorded.
    has_ended: AtomicBool,
    /// Number of trials with an outcome. Cancelled trials are not counted here, nor in the next number.
    finished: AtomicUsize,
    /// Number of trials whose outcome is stored.
    recorded: AtomicUsize,
}

impl Shared {
    /// Returns `true` once no more events will be recorded. After a signal, a commit that is stuck ends recording.
    fn has_ended(&self) -> bool {
        if !self.has_ended.load(Ordering::Relaxed) && (self.is_urgent)() && self.is_stuck() {
            self.has_ended.store(true, Ordering::Relaxed);
        }
        self.has_ended.load(Ordering::Relaxed)
    }

    /// Returns `true` if the commit in progress takes too long.
    fn is_stuck(&self) -> bool {
        let began = *self.committing.lock().unwrap_or_else(PoisonError::into_inner);
        began.is_some_and(|began| began.elapsed() >= STUCK)
    }

    fn is_committing(&self) -> bool {
        self.committing.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    fn take_reports(&self) -> Vec<Report> {
        std::mem::take(&mut self.reports.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Adds to an error what is known to be recorded.
    fn describe(&self, error: &str) -> String {
        let [finished, recorded] = [&self.finished, &self.recorded].map(|count| count.load(Ordering::Relaxed));
        match finished {
            _ if self.is_refused.load(Ordering::Relaxed) => format!("{error} (no trial was started)"),
            0 => format!("{error} (no trial had finished)"),
            _ => format!("{error} (finished trials known to be recorded: {recorded} of {finished})"),
        }
    }
}

/// Returns `true` for the outcome of a trial that was not cancelled.
fn is_finished(event: &Envelope) -> bool {
    matches!(&event.event, Event::TrialFinished(record) if record.outcome != Outcome::Cancelled)
}

/// Queue of a reporter. The reporter finishes when all its senders are dropped.
type Report = SyncSender<Arc<Envelope>>;

/// Result of recording a run.
pub struct Recorded {
    /// Reason why the record and the reports end earlier than the run, and how many trials are recorded. The run was
    /// stopped when this was noticed.
    pub error: Option<String>,
    /// Errors of reporters. They never change an outcome.
    pub report_errors: Vec<String>,
}

impl Recording {
    /// Starts recording into `store` and reporting to `reporters`. At the end of the run, its `hash` is set. An error
    /// in the store stops the run through `controls`. If it `is_urgent`, as after a signal, reporters whose output is
    /// not being read and a store that does not answer are abandoned.
    ///
    /// # Errors
    /// Returns an error if a thread cannot be started.
    pub fn start(
        mut store: Box<dyn Store>,
        reporters: Vec<Box<dyn Reporter>>,
        hash: RunHash,
        controls: UnboundedSender<Control>,
        is_urgent: fn() -> bool,
    ) -> std::io::Result<Self> {
        let mut run: Arc<str> = Arc::default();
        let learned = Learned::default();
        let masks = Arc::clone(&learned);
        let commit = move |events: &[Envelope]| {
            let Some(last) = events.last() else { return store.renew(&run, Timestamp::now()) };
            run = Arc::clone(&last.run);
            append(&mut *store, events, &masks)?;
            if let Some(end) = events.iter().find(|event| matches!(event.event, Event::RunFinished { .. })) {
                // Reports receive the event later, so they know the hash at the end.
                let _ = store.select(&end.run)?.hash.map(|found| hash.set(found));
            }
            Ok(())
        };
        Ok(Self { learned, ..Self::with(commit, reporters, controls, is_urgent)? })
    }

    fn with(
        commit: impl FnMut(&[Envelope]) -> Result<(), StoreError> + Send + 'static,
        reporters: Vec<Box<dyn Reporter>>,
        controls: UnboundedSender<Control>,
        is_urgent: fn() -> bool,
    ) -> std::io::Result<Self> {
        let started = reporters.into_iter().map(|reporter| {
            let (report, queue) = sync_channel(UNREPORTED);
            Ok((report, Reporting::start(reporter, queue)?))
        });
        let (senders, reports) = started.collect::<std::io::Result<(Vec<_>, Vec<_>)>>()?;
        let (events, queue) = sync_channel(WAITING);
        let shared = Arc::new(Shared {
            reports: Mutex::new(senders),
            is_urgent,
            committing: Mutex::default(),
            has_begun: AtomicBool::default(),
            is_refused: AtomicBool::default(),
            has_ended: AtomicBool::default(),
            finished: AtomicUsize::default(),
            recorded: AtomicUsize::default(),
        });
        let stop_on_drop = StopOnDrop { controls, shared: Arc::clone(&shared) };
        let recorder =
            Recorder { commit, shared: Arc::clone(&shared), abandoned: Vec::new(), stop_on_drop, error: None };
        let (end, done) = sync_channel(1);
        std::thread::Builder::new().name("record".into()).spawn(move || drop(end.send(recorder.record(&queue))))?;
        Ok(Self { events, learned: Learned::default(), shared, done, reports })
    }

    /// Returns the listener for the events of the run.
    pub fn listener(&self) -> Arc<dyn Listener> {
        let (learned, shared) = (Arc::clone(&self.learned), Arc::clone(&self.shared));
        Arc::new(RecorderListener { events: self.events.clone(), learned, shared })
    }

    /// Waits until everything is committed and reported, once all listeners have been dropped.
    pub fn finish(self) -> Recorded {
        drop(self.events);
        let (error, abandoned) = loop {
            match self.done.recv_timeout(LOOK) {
                Ok(done) => break done,
                Err(RecvTimeoutError::Disconnected) => {
                    break (Some("the recording thread panicked; this is a bug in trialrun".into()), Vec::new());
                }
                // An error also ends recording, and then the recorder is about to end.
                Err(RecvTimeoutError::Timeout) if self.shared.has_ended() && self.shared.is_committing() => {
                    let error = "the record did not answer when the run was interrupted";
                    break (Some(error.to_owned()), Vec::new());
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        };
        drop(self.shared.take_reports());
        // If they were dropped, their reporters would finish without the events that they did not receive.
        abandoned.into_iter().for_each(std::mem::forget);
        let mut until = None;
        let mut timeout = || {
            if until.is_none() && (self.shared.is_urgent)() {
                until = Some(Instant::now() + SHUTDOWN);
            }
            until.is_none_or(|until| Instant::now() < until)
        };
        let mut report_errors: Vec<String> = Vec::new();
        for error in self.reports.into_iter().flat_map(|report| report.finish(&mut timeout)) {
            if !report_errors.contains(&error) {
                report_errors.push(error);
            }
        }
        Recorded { error: error.map(|error| self.shared.describe(&error)), report_errors }
    }
}

/// Listener that queues events; senders wait while the store is behind.
struct RecorderListener {
    events: SyncSender<Envelope>,
    learned: Learned,
    shared: Arc<Shared>,
}

impl Listener for RecorderListener {
    fn offer(&self, event: Envelope) -> Option<Envelope> {
        // The caller waits until the start of the run is stored.
        if matches!(event.event, Event::RunStarted(_)) {
            return Some(event);
        }
        let is_finished = is_finished(&event);
        match self.events.try_send(event) {
            Err(TrySendError::Full(event)) => return Some(event),
            // The recorder can end before this sender is dropped only by a panic, and then it has already stopped the
            // run.
            Ok(()) | Err(TrySendError::Disconnected(_)) => {}
        }
        self.shared.finished.fetch_add(usize::from(is_finished), Ordering::Relaxed);
        None
    }

    fn on_event(&self, event: Envelope) {
        self.shared.finished.fetch_add(usize::from(is_finished(&event)), Ordering::Relaxed);
        let is_start = matches!(event.event, Event::RunStarted(_));
        let mut unsent = Some(event);
        while let Some(event) = unsent.take().filter(|_| !self.shared.has_ended()) {
            if let Err(TrySendError::Full(event)) = self.events.try_send(event) {
                unsent = Some(event);
                std::thread::sleep(LOOK);
            }
        }
        if is_start {
            let has_begun = || self.shared.has_begun.load(Ordering::Relaxed);
            while !has_begun() && !self.shared.has_ended() {
                std::thread::sleep(LOOK);
            }
            self.shared.is_refused.store(!has_begun(), Ordering::Relaxed);
        }
    }

    fn can_begin(&self) -> bool {
        !self.shared.is_refused.load(Ordering::Relaxed)
    }

    fn is_late(&self) -> bool {
        self.shared.is_stuck()
    }

    fn on_learned(&self, trial: &Arc<str>, mask: &Arc<Mask>) {
        self.learned.lock().unwrap_or_else(PoisonError::into_inner).insert(Arc::clone(trial), Arc::clone(mask));
    }
}

/// Stores events. Before the outcome of a trial during which a secret became known, which packs the trial's events, the
/// earlier ones are masked again.
fn append(store: &mut dyn Store, events: &[Envelope], learned: &Learned) -> Result<(), StoreError> {
    let mut stored = 0;
    for (at, envelope) in events.iter().enumerate() {
        let (Event::TrialFinished(_), Some(trial)) = (&envelope.event, &envelope.trial) else { continue };
        let mask = learned.lock().unwrap_or_else(PoisonError::into_inner).remove(trial);
        if let Some(mask) = mask {
            store.append(&events[stored..at])?;
            store.rewrite(&envelope.run, trial, &mut |event| {
                mask.event(event);
            })?;
            stored = at;
        }
    }
    store.append(&events[stored..])
}

/// Commits events and passes them on. While there are none, it commits empty batches, which renew the run's lease.
struct Recorder<C> {
    commit: C,
    shared: Arc<Shared>,
    /// Reports whose output was not read after a signal.
    abandoned: Vec<Report>,
    stop_on_drop: StopOnDrop,
    error: Option<String>,
}

impl<C: FnMut(&[Envelope]) -> Result<(), StoreError>> Recorder<C> {
    /// Records until all senders are dropped. Returns the error that ended the record, and the abandoned reports. The
    /// others finish while the store is being closed, which waits for the disk.
    fn record(mut self, queue: &Receiver<Envelope>) -> (Option<String>, Vec<Report>) {
        let mut batch = Vec::with_capacity(BATCH);
        let mut has_begun = false;
        loop {
            match queue.recv_timeout(Lease::RENEWAL) {
                Ok(first) => {
                    batch.push(first);
                    gather(queue, &mut batch);
                    has_begun = true;
                }
                Err(RecvTimeoutError::Timeout) if has_begun => {}
                Err(RecvTimeoutError::Timeout) => continue,
                Err(RecvTimeoutError::Disconnected) => break,
            }
            self.commit(&batch);
            if self.error.is_some() {
                // Only recorded events are reported. From now on, events are neither recorded nor reported.
                batch.clear();
            }
            let mut reports = self.shared.take_reports();
            for event in batch.drain(..).map(Arc::new) {
                reports.retain(|report| self.pass_on(report, &event));
            }
            *self.shared.reports.lock().unwrap_or_else(PoisonError::into_inner) = reports;
        }
        drop(self.shared.take_reports());
        (self.error, self.abandoned)
    }

    /// Commits events, unless an error has ended the record.
    fn commit(&mut self, events: &[Envelope]) {
        if self.error.is_some() {
            return;
        }
        // Events that were sent later were dropped, so the record would have a gap.
        if self.shared.has_ended() {
            self.error = Some("the run was interrupted while the record did not answer".to_owned());
            return;
        }
        self.set_committing(Some(Instant::now()));
        let committed = (self.commit)(events);
        self.set_committing(None);
        if let Err(error) = committed {
            self.error = Some(error.to_string());
            self.stop_on_drop.raise();
            return;
        }
        let finished = events.iter().filter(|event| is_finished(event)).count();
        self.shared.recorded.fetch_add(finished, Ordering::Relaxed);
        if events.iter().any(|event| matches!(event.event, Event::RunStarted(_))) {
            self.shared.has_begun.store(true, Ordering::Relaxed);
        }
    }

    fn set_committing(&self, since: Option<Instant>) {
        *self.shared.committing.lock().unwrap_or_else(PoisonError::into_inner) = since;
    }

    /// Passes a committed event on, and waits as long as the reporter is too far behind. Returns `false` if the reporter
    /// takes no more events.
    fn pass_on(&mut self, report: &Report, event: &Arc<Envelope>) -> bool {
        let mut waiting = None;
        loop {
            match report.try_send(Arc::clone(event)) {
                Ok(()) => return true,
                Err(TrySendError::Disconnected(_)) => return false,
                Err(TrySendError::Full(_)) => {}
            }
            let (since, renewed) = waiting.get_or_insert_with(|| (Instant::now(), Instant::now()));
            if (self.shared.is_urgent)() && since.elapsed() >= SHUTDOWN {
                self.abandoned.push(report.clone());
                return false;
            }
            if renewed.elapsed() >= Lease::RENEWAL {
                self.commit(&[]);
                *renewed = Instant::now();
            }
            std::thread::sleep(LOOK);
        }
    }
}

/// Moves queued events to the `batch`, and waits a moment for more unless it is full, so that senders need not wake this
/// thread.
fn gather(queue: &Receiver<Envelope>, batch: &mut Vec<Envelope>) {
    for poll in 0..=POLLS {
        batch.extend(queue.try_iter().take(BATCH - batch.len()));
        // The run waits for its start, and nothing follows its end.
        let is_alone = |event: &Envelope| matches!(event.event, Event::RunStarted(_) | Event::RunFinished { .. });
        if batch.last().is_some_and(is_alone) || batch.len() >= BATCH || poll == POLLS {
            return;
        }
        std::thread::sleep(LOOK);
    }
}

/// Stops the run when recording ends, even if the recording thread panics.
struct StopOnDrop {
    controls: UnboundedSender<Control>,
    shared: Arc<Shared>,
}

impl StopOnDrop {
    fn raise(&self) {
        let _ = self.controls.send(Control::Stop("recording failed".into()));
        self.shared.has_ended.store(true, Ordering::Relaxed);
    }
}

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.raise();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Sender, channel};

    use model::{EVENT_VERSION, TrialRecord};
    use tokio::sync::mpsc::unbounded_channel;

    use super::*;

    /// More events than may wait to be committed and to be reported.
    const MANY: u64 = 40_000;

    fn event(seq: u64) -> Envelope {
        let event = Event::Output { stream: "stdout".into(), text: format!("line {seq}\n\"quoted\"") };
        let at = jiff::Timestamp::from_second(1_700_000_000).unwrap();
        Envelope { v: EVENT_VERSION, seq, at, run: "r".into(), trial: Some("t".into()), attempt: Some(1), event }
    }

    /// Returns the first event of a run, and the outcome of its trial.
    fn start_and_outcome() -> [Envelope; 2] {
        let start = serde_json::json!({
            "id": "r", "label": null, "started_at": "2026-01-01T00:00:00Z", "trialrun_version": "1", "settings": {},
            "agents": [], "skills": [], "trials": [], "jobs": 1,
        });
        let start = Event::RunStarted(serde_json::from_value(start).unwrap());
        let outcome =
            Event::TrialFinished(Box::new(TrialRecord { outcome: Outcome::Passed, ..TrialRecord::default() }));
        [Envelope { trial: None, attempt: None, event: start, ..event(1) }, Envelope { event: outcome, ..event(2) }]
    }

    /// A reporter that blocks until it is released, and then passes on the events that it received.
    struct Screen {
        gate: Arc<Mutex<()>>,
        passed_on: Sender<Envelope>,
    }

    impl Reporter for Screen {
        fn event(&mut self, envelope: &Envelope) -> std::io::Result<()> {
            drop(self.gate.lock());
            let _ = self.passed_on.send(envelope.clone());
            Ok(())
        }

        fn finish(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn screen() -> (Arc<Mutex<()>>, Box<dyn Reporter>, Receiver<Envelope>) {
        let gate = Arc::new(Mutex::new(()));
        let (passed_on, seen) = channel();
        (Arc::clone(&gate), Box::new(Screen { gate, passed_on }), seen)
    }

    #[test]
    fn a_blocked_terminal_delays_the_run_and_loses_no_events() {
        let (gate, stalled, seen) = screen();
        let (_, other, also_seen) = screen();
        let (controls, _stops) = unbounded_channel();
        let committed = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&committed);
        let commit = move |events: &[Envelope]| {
            count.fetch_add(events.len(), Ordering::Relaxed);
            Ok(())
        };
        let recording = Recording::with(commit, vec![stalled, other], controls, || false).unwrap();
        let (held, listener) = (gate.lock().unwrap(), recording.listener());
        let sender = std::thread::spawn(move || (1..=MANY).for_each(|seq| listener.on_event(event(seq))));
        assert!(also_seen.iter().take(UNREPORTED).eq((1..=UNREPORTED as u64).map(event)), "while there is room");
        assert!(committed.load(Ordering::Relaxed) <= UNREPORTED + BATCH + 1, "the rest waits");
        drop(held);
        sender.join().unwrap();
        let recorded = recording.finish();
        assert_eq!((recorded.error, recorded.report_errors.len()), (None, 0));
        assert!(seen.iter().eq((1..=MANY).map(event)), "all events, unchanged and in order");
    }

    #[test]
    fn no_trial_starts_while_a_commit_takes_too_long() {
        let (controls, _stops) = unbounded_channel();
        let recording = Recording::with(|_| Ok(()), Vec::new(), controls, || false).unwrap();
        let (listener, shared) = (recording.listener(), Arc::clone(&recording.shared));
        let committing = |since: Option<Duration>| {
            *shared.committing.lock().unwrap() = since.and_then(|since| Instant::now().checked_sub(since));
            listener.is_late()
        };
        assert_eq!([None, Some(STUCK / 2), Some(STUCK)].map(committing), [false, false, true]);
        drop(listener);
        recording.finish();
    }

    #[test]
    fn a_blocked_terminal_is_abandoned_after_a_signal() {
        let (gate, stalled, seen) = screen();
        let (controls, _stops) = unbounded_channel();
        let recording = Recording::with(|_| Ok(()), vec![stalled], controls, || true).unwrap();
        let held = gate.lock().unwrap();
        (1..=MANY).for_each(|seq| recording.listener().on_event(event(seq)));
        let began = Instant::now();
        let recorded = recording.finish();
        assert!(began.elapsed() < SHUTDOWN * 5, "{:?}", began.elapsed());
        assert_eq!(recorded.report_errors, [""; 0], "a stalled screen is not an error of a report");
        drop(held);
        assert_eq!(seen.recv(), Ok(event(1)), "it does not finish as if it had all events");
    }

    #[test]
    fn uncommitted_events_are_not_reported_and_stop_the_run_once() {
        let (_, reporter, seen) = screen();
        let (controls, mut stops) = unbounded_channel();
        let commit = |events: &[Envelope]| match events.iter().any(|event| event.seq == 2) {
            true => Err(StoreError::UnknownRun("r".into())),
            false => Ok(()),
        };
        let recording = Recording::with(commit, vec![reporter], controls, || false).unwrap();
        recording.listener().on_event(event(1));
        assert_eq!(seen.recv().unwrap(), event(1));
        recording.listener().on_event(event(2));
        assert_eq!(stops.blocking_recv(), Some(Control::Stop("recording failed".into())));
        recording.listener().on_event(event(3));
        let recorded = recording.finish();
        assert!(recorded.error.is_some());
        assert_eq!(seen.iter().count(), 0);
        assert_eq!(stops.blocking_recv(), None, "a second request would kill");
    }

    #[test]
    fn trials_begin_after_the_start_is_stored_and_an_error_counts_those_that_are_recorded() {
        let (controls, _stops) = unbounded_channel();
        let committed = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&committed);
        let commit = move |events: &[Envelope]| match count.fetch_add(events.len(), Ordering::Relaxed) {
            0 | 1 => Ok(()),
            _ => Err(StoreError::Backend("gone".into())),
        };
        let (_, reporter, seen) = screen();
        let recording = Recording::with(commit, vec![reporter], controls, || false).unwrap();
        let (listener, [start, outcome]) = (recording.listener(), start_and_outcome());
        let start = listener.offer(start).unwrap();
        listener.on_event(start);
        assert!(listener.can_begin() && committed.load(Ordering::Relaxed) == 1);
        assert!(listener.offer(outcome.clone()).is_none());
        assert_eq!(seen.iter().take(2).count(), 2);
        assert!(listener.offer(outcome).is_none());
        drop(listener);
        let error = recording.finish().error.unwrap();
        assert!(error.ends_with("gone (finished trials known to be recorded: 1 of 2)"), "{error}");
    }

    #[test]
    fn no_trial_begins_if_the_start_is_not_stored() {
        let (controls, _stops) = unbounded_channel();
        let commit = |_: &[Envelope]| Err(StoreError::Backend("permission denied".into()));
        let recording = Recording::with(commit, Vec::new(), controls, || false).unwrap();
        let [start, _] = start_and_outcome();
        recording.listener().on_event(start);
        assert!(!recording.listener().can_begin());
        let error = recording.finish().error.unwrap();
        assert!(error.ends_with("permission denied (no trial was started)"), "{error}");
    }

    #[test]
    fn a_record_that_does_not_answer_is_abandoned_after_a_signal() {
        let (controls, _stops) = unbounded_channel();
        let (begun, committing) = channel();
        let gate = Arc::new(Mutex::new(()));
        let held = gate.lock().unwrap();
        let waiting = Arc::clone(&gate);
        let commit = move |_: &[Envelope]| {
            let _ = begun.send(());
            drop(waiting.lock());
            Ok(())
        };
        let (_, reporter, seen) = screen();
        let recording = Recording::with(commit, vec![reporter], controls, || true).unwrap();
        let (listener, [start, outcome]) = (recording.listener(), start_and_outcome());
        let sender = std::thread::spawn(move || {
            listener.on_event(start);
            listener.on_event(outcome);
            listener.can_begin()
        });
        committing.recv().unwrap();
        *recording.shared.committing.lock().unwrap() = Instant::now().checked_sub(STUCK);
        assert!(!sender.join().unwrap());
        let error = recording.finish().error.unwrap();
        assert_eq!(error, "the record did not answer when the run was interrupted (no trial was started)");
        assert_eq!(seen.iter().count(), 0, "the reporter has finished");
        drop(held);
    }

    #[test]
    fn a_panic_while_recording_stops_the_run() {
        let (controls, mut stops) = unbounded_channel();
        let recording = Recording::with(|_| panic!("as a test"), Vec::new(), controls, || false).unwrap();
        recording.listener().on_event(event(1));
        assert_eq!(stops.blocking_recv(), Some(Control::Stop("recording failed".into())));
        recording.listener().on_event(event(2));
        assert!(recording.finish().error.is_some_and(|error| error.contains("panicked")));
        assert_eq!(stops.blocking_recv(), None);
    }

    #[test]
    fn a_panic_in_a_reporter_is_reported_and_does_not_stop_the_run() {
        struct Panics;
        impl Reporter for Panics {
            fn event(&mut self, _: &Envelope) -> std::io::Result<()> {
                panic!("as a test")
            }
            fn finish(&mut self) -> std::io::Result<()> {
                Ok(())
            }
        }
        let (controls, mut stops) = unbounded_channel();
        let recording = Recording::with(|_| Ok(()), vec![Box::new(Panics)], controls, || false).unwrap();
        (1..=MANY).for_each(|seq| recording.listener().on_event(event(seq)));
        let recorded = recording.finish();
        assert!(recorded.error.is_none() && recorded.report_errors[0].contains("panicked"));
        assert_eq!(stops.blocking_recv(), None);
    }
}
