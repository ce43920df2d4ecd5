//! A reporter on its own thread.

use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use report::Reporter;

use super::backlog::Backlog;

/// How often one who waits for a reporter asks whether to go on waiting.
const LOOK: Duration = Duration::from_millis(50);

/// A reporter that shows its backlog, as fast as it is read.
pub(super) struct Reporting {
    backlog: Arc<Backlog>,
    done: Receiver<Vec<String>>,
}

impl Reporting {
    /// Starts it. It ends when its backlog is closed and empty.
    ///
    /// # Errors
    /// When there is no thread to be had.
    pub(super) fn start(mut reporter: Box<dyn Reporter>) -> io::Result<Self> {
        let backlog = Arc::<Backlog>::default();
        let (end, done) = channel();
        let emptied = Emptied(Arc::clone(&backlog));
        std::thread::Builder::new().name("report".into()).spawn(move || {
            let trouble = show(&emptied.0, reporter.as_mut());
            // Files are whole before anybody hears of it.
            drop(reporter);
            let _ = end.send(trouble);
        })?;
        Ok(Self { backlog, done })
    }

    /// What it is to show.
    pub(super) fn backlog(&self) -> Arc<Backlog> {
        Arc::clone(&self.backlog)
    }

    /// Waits for its end as long as `patience` says; what it could not do. Its backlog is to be closed before. One that
    /// is not waited for any more is no trouble: whoever stopped the run did not read it.
    pub(super) fn finish(self, patience: &mut dyn FnMut() -> bool) -> Vec<String> {
        loop {
            match self.done.recv_timeout(LOOK) {
                Ok(trouble) => return trouble,
                Err(RecvTimeoutError::Disconnected) => {
                    return vec!["its thread panicked; this is a bug in trialrun".into()];
                }
                Err(RecvTimeoutError::Timeout) if patience() => {}
                Err(RecvTimeoutError::Timeout) => return Vec::new(),
            }
        }
    }
}

/// A reporter that is gone, however it went, has no use for what comes.
struct Emptied(Arc<Backlog>);

impl Drop for Emptied {
    fn drop(&mut self) {
        self.0.abandon();
    }
}

fn show(backlog: &Backlog, reporter: &mut dyn Reporter) -> Vec<String> {
    let mut trouble: Vec<String> = Vec::new();
    // Each is told once, however often it comes. A reader that went away wanted no more.
    let mut hear_of = |error: io::Error| {
        if error.kind() != ErrorKind::BrokenPipe && !trouble.contains(&error.to_string()) {
            trouble.push(error.to_string());
        }
    };
    loop {
        match backlog.take() {
            Ok(events) if events.is_empty() => break,
            Ok(events) => {
                events.into_iter().for_each(|event| reporter.take(event).unwrap_or_else(&mut hear_of));
            }
            Err(error) => {
                hear_of(io::Error::other(format!("it fell behind, and what it had to catch up on is lost: {error}")));
                break;
            }
        }
    }
    reporter.finish().unwrap_or_else(&mut hear_of);
    trouble
}
