//! A reporter on its own thread.

use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use jiff::Timestamp;
use model::Envelope;
use report::Reporter;

/// Interval at which the timeout of a waiting caller is checked.
const LOOK: Duration = Duration::from_millis(50);

/// Interval after which reporters are called even if there is no event.
const TICK: Duration = Duration::from_secs(5);

/// Maximum number of further events between two such calls.
const TAKEN: usize = 255;

/// Reporter thread that processes a queue of events.
pub(super) struct Reporting {
    done: Receiver<Vec<String>>,
}

impl Reporting {
    /// Starts the thread. It ends when the queue is empty and its senders are dropped.
    pub(super) fn start(mut reporter: Box<dyn Reporter>, queue: Receiver<Arc<Envelope>>) -> io::Result<Self> {
        let (end, done) = channel();
        std::thread::Builder::new().name("report".into()).spawn(move || {
            let errors = show(&queue, reporter.as_mut());
            // Files are complete before the end is signalled.
            drop(reporter);
            let _ = end.send(errors);
        })?;
        Ok(Self { done })
    }

    /// Waits until the thread ends, as long as `timeout` returns `true`, and returns its errors. Abandoning a reporter is
    /// not an error: the user who stopped the run was not reading its output.
    pub(super) fn finish(self, timeout: &mut dyn FnMut() -> bool) -> Vec<String> {
        loop {
            match self.done.recv_timeout(LOOK) {
                Ok(errors) => return errors,
                Err(RecvTimeoutError::Disconnected) => {
                    return vec!["its thread panicked; this is a bug in trialrun".into()];
                }
                Err(RecvTimeoutError::Timeout) if timeout() => {}
                Err(RecvTimeoutError::Timeout) => return Vec::new(),
            }
        }
    }
}

fn show(queue: &Receiver<Arc<Envelope>>, reporter: &mut dyn Reporter) -> Vec<String> {
    let mut errors: Vec<String> = Vec::new();
    // Each error is reported only once. If the reader closed the pipe, it wants no more output.
    let mut note = |error: io::Error| {
        if error.kind() != ErrorKind::BrokenPipe && !errors.contains(&error.to_string()) {
            errors.push(error.to_string());
        }
    };
    loop {
        let first = queue.recv_timeout(TICK);
        reporter.tick(Timestamp::now()).unwrap_or_else(&mut note);
        match first {
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
            Ok(first) => {
                let events = std::iter::once(first).chain(queue.try_iter().take(TAKEN));
                events.for_each(|event| reporter.event(&event).unwrap_or_else(&mut note));
            }
        }
    }
    reporter.finish().unwrap_or_else(&mut note);
    errors
}
