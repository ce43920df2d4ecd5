//! Recording comes first: a thread of its own commits events to the store, and only then do reporters hear of them.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use model::Envelope;
use report::Reporter;
use runner::Control;
use store::{SqliteStore, Store};
use tokio::sync::mpsc::UnboundedSender;

/// How many events may wait to be committed before the run waits.
const WAITING: usize = 4096;
/// How many events are committed at a time at the most.
const BATCH: usize = 1024;

/// The recording thread.
pub struct Recording {
    events: SyncSender<Envelope>,
    thread: JoinHandle<Recorded>,
}

/// What is left when a run has been recorded.
pub struct Recorded {
    /// Why the record and the reports end before the run did; it was stopped when that was noticed.
    pub trouble: Option<String>,
    /// What reporters could not do. Never changes an outcome.
    pub report_trouble: Vec<String>,
}

impl Recorded {
    /// Each trouble is told once, however often it comes. A reader that went away wanted no more.
    fn hear_of(&mut self, reported: std::io::Result<()>) {
        if let Err(error) = reported
            && error.kind() != std::io::ErrorKind::BrokenPipe
            && !self.report_trouble.contains(&error.to_string())
        {
            self.report_trouble.push(error.to_string());
        }
    }
}

impl Recording {
    /// Starts recording into `store` and reporting to `reporters`. Trouble with the store stops the run through
    /// `controls`.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn start(
        store: SqliteStore,
        reporters: Vec<Box<dyn Reporter>>,
        controls: UnboundedSender<Control>,
    ) -> std::io::Result<Self> {
        let (events, queue) = sync_channel(WAITING);
        let thread = std::thread::Builder::new()
            .name("record".into())
            .spawn(move || record(store, reporters, &queue, &controls))?;
        Ok(Self { events, thread })
    }

    /// Hands an event over; waits while the store is behind.
    pub fn tell(&self, event: Envelope) {
        // The thread ends only when this sender is dropped or it panicked, and then joining says so.
        let _ = self.events.send(event);
    }

    /// Waits until everything is committed and reported.
    pub fn finish(self) -> Recorded {
        drop(self.events);
        self.thread.join().unwrap_or_else(|_| Recorded {
            trouble: Some("the recording thread panicked; this is a bug in trialrun".into()),
            report_trouble: Vec::new(),
        })
    }
}

fn record(
    mut store: SqliteStore,
    mut reporters: Vec<Box<dyn Reporter>>,
    queue: &Receiver<Envelope>,
    controls: &UnboundedSender<Control>,
) -> Recorded {
    let mut recorded = Recorded { trouble: None, report_trouble: Vec::new() };
    let mut batch = Vec::with_capacity(BATCH);
    while let Ok(first) = queue.recv() {
        batch.push(first);
        batch.extend(queue.try_iter().take(BATCH - 1));
        if recorded.trouble.is_none()
            && let Err(error) = store.append(&batch)
        {
            recorded.trouble = Some(error.to_string());
            let _ = controls.send(Control::Stop("recording failed".into()));
        }
        if recorded.trouble.is_some() {
            // What is told is recorded. What comes now is neither.
            batch.clear();
        }
        for event in batch.drain(..) {
            for reporter in &mut reporters {
                recorded.hear_of(reporter.event(&event));
            }
        }
    }
    for reporter in &mut reporters {
        recorded.hear_of(reporter.finish());
    }
    recorded
}
