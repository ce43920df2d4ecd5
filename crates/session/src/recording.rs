//! Recording. A thread first commits events to the store, and only then do reporters receive them, each on its own
//! thread. All queues are bounded: the run waits for the record, and for a reporter that is far behind.

mod reporting;

use std::collections::HashMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use mask::Mask;
use model::{Envelope, Event, Lease};
use report::{Reporter, RunHash};
use runner::{Control, Listener};
use store::{Store, StoreError};
use tokio::sync::mpsc::UnboundedSender;

use self::reporting::Reporting;

/// Maximum number of uncommitted events; beyond it, the run waits.
const WAITING: usize = 4096;
/// Maximum number of events in one commit.
const BATCH: usize = 1024;
/// Number of events that are worth a commit, because a commit takes as long as recording a hundred of them.
const WORTH_A_COMMIT: usize = 256;
/// Number of times that the recorder waits for more events if there are only a few.
const POLLS: usize = 5;
/// Duration of one such wait.
const LOOK: Duration = Duration::from_millis(2);
/// Maximum number of committed events that a reporter has not processed; beyond it, the run waits. It holds a dozen
/// batches, so that reporters that wait for CPU time delay nothing.
const UNREPORTED: usize = 16 * 1024;
/// Time that reporters have to finish, or to process one event, after a signal.
const SHUTDOWN: Duration = Duration::from_secs(2);

/// Masks for the events of trials during which a secret became known, by the id of the trial.
type Learned = Arc<Mutex<HashMap<Arc<str>, Arc<Mask>>>>;

/// The recording thread and the reporter threads.
pub struct Recording {
    events: SyncSender<Envelope>,
    learned: Learned,
    recorder: JoinHandle<(Option<String>, Vec<Report>)>,
    reports: Vec<Reporting>,
    is_urgent: fn() -> bool,
}

/// Queue of a reporter. The reporter finishes when all its senders are dropped.
type Report = SyncSender<Arc<Envelope>>;

/// Result of recording a run.
pub struct Recorded {
    /// Reason why the record and the reports end earlier than the run. The run was stopped when this was noticed.
    pub error: Option<String>,
    /// Errors of reporters. They never change an outcome.
    pub report_errors: Vec<String>,
}

impl Recording {
    /// Starts recording into `store` and reporting to `reporters`. At the end of the run, its `hash` is set. An error
    /// in the store stops the run through `controls`. If it `is_urgent`, as after a signal, reporters whose output is
    /// not being read are abandoned.
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
        let (stop_on_drop, abandoned) = (StopOnDrop(controls), Vec::new());
        let recorder = Recorder { commit, reports: senders, is_urgent, abandoned, stop_on_drop, error: None };
        let recorder = std::thread::Builder::new().name("record".into()).spawn(move || recorder.record(&queue))?;
        Ok(Self { events, learned: Learned::default(), recorder, reports, is_urgent })
    }

    /// Returns the listener for the events of the run.
    pub fn listener(&self) -> Arc<dyn Listener> {
        Arc::new(RecorderListener { events: self.events.clone(), learned: Arc::clone(&self.learned) })
    }

    /// Waits until everything is committed and reported, once all listeners have been dropped.
    pub fn finish(self) -> Recorded {
        drop(self.events);
        let panicked = |_| (Some("the recording thread panicked; this is a bug in trialrun".into()), Vec::new());
        let (error, abandoned) = self.recorder.join().unwrap_or_else(panicked);
        // If they were dropped, their reporters would finish without the events that they did not receive.
        abandoned.into_iter().for_each(std::mem::forget);
        let mut until = None;
        let mut timeout = || {
            if until.is_none() && (self.is_urgent)() {
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
        Recorded { error, report_errors }
    }
}

/// Listener that queues events; senders wait while the store is behind.
struct RecorderListener {
    events: SyncSender<Envelope>,
    learned: Learned,
}

impl Listener for RecorderListener {
    fn offer(&self, event: Envelope) -> Option<Envelope> {
        match self.events.try_send(event) {
            Err(TrySendError::Full(event)) => Some(event),
            // The recorder can end before this sender is dropped only by a panic, and then it has already stopped the
            // run.
            Ok(()) | Err(TrySendError::Disconnected(_)) => None,
        }
    }

    fn on_event(&self, event: Envelope) {
        let _ = self.events.send(event);
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
    reports: Vec<Report>,
    is_urgent: fn() -> bool,
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
            for event in batch.drain(..).map(Arc::new) {
                let mut reports = std::mem::take(&mut self.reports);
                reports.retain(|report| self.pass_on(report, &event));
                self.reports = reports;
            }
        }
        (self.error, self.abandoned)
    }

    /// Commits events, unless an error has ended the record.
    fn commit(&mut self, events: &[Envelope]) {
        if self.error.is_none()
            && let Err(error) = (self.commit)(events)
        {
            self.error = Some(error.to_string());
            self.stop_on_drop.raise();
        }
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
            if (self.is_urgent)() && since.elapsed() >= SHUTDOWN {
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

/// Moves queued events to the `batch`, and waits a moment for more if there are only a few, so that senders need not
/// wake this thread.
fn gather(queue: &Receiver<Envelope>, batch: &mut Vec<Envelope>) {
    for poll in 0..=POLLS {
        batch.extend(queue.try_iter().take(BATCH - batch.len()));
        let is_over = batch.last().is_some_and(|event| matches!(event.event, Event::RunFinished { .. }));
        if is_over || batch.len() >= WORTH_A_COMMIT || poll == POLLS {
            return;
        }
        std::thread::sleep(LOOK);
    }
}

/// Stops the run when recording ends, even if the recording thread panics.
struct StopOnDrop(UnboundedSender<Control>);

impl StopOnDrop {
    fn raise(&self) {
        let _ = self.0.send(Control::Stop("recording failed".into()));
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
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc::{Sender, channel};

    use model::EVENT_VERSION;
    use tokio::sync::mpsc::unbounded_channel;

    use super::*;

    /// More events than may wait to be committed and to be reported.
    const MANY: u64 = 40_000;

    fn event(seq: u64) -> Envelope {
        let event = Event::Output { stream: "stdout".into(), text: format!("line {seq}\n\"quoted\"") };
        let at = jiff::Timestamp::from_second(1_700_000_000).unwrap();
        Envelope { v: EVENT_VERSION, seq, at, run: "r".into(), trial: Some("t".into()), attempt: Some(1), event }
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
