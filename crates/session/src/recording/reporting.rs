//! A reporter on its own thread.

use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use jiff::Timestamp;
use report::Reporter;

use super::backlog::Backlog;

/// Interval at which the timeout of a waiting caller is checked.
const LOOK: Duration = Duration::from_millis(50);

/// Interval after which reporters are called even if there is no event.
const TICK: Duration = Duration::from_secs(5);

/// Reporter thread that processes its backlog.
pub(super) struct Reporting {
    backlog: Arc<Backlog>,
    done: Receiver<Vec<String>>,
}

impl Reporting {
    /// Starts the thread. It ends when its backlog is closed and empty.
    pub(super) fn start(mut reporter: Box<dyn Reporter>) -> io::Result<Self> {
        let backlog = Arc::<Backlog>::default();
        let (end, done) = channel();
        let guard = AbandonOnDrop(Arc::clone(&backlog));
        std::thread::Builder::new().name("report".into()).spawn(move || {
            let errors = show(&guard.0, reporter.as_mut());
            // Files are complete before the end is signalled.
            drop(reporter);
            let _ = end.send(errors);
        })?;
        Ok(Self { backlog, done })
    }

    /// Returns the backlog.
    pub(super) fn backlog(&self) -> Arc<Backlog> {
        Arc::clone(&self.backlog)
    }

    /// Waits until the thread ends, as long as `timeout` returns `true`, and returns its errors. The backlog must be
    /// closed first. Abandoning a reporter is not an error: the user who stopped the run was not reading its output.
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

/// Guard that empties the backlog when the reporter ends for any reason.
struct AbandonOnDrop(Arc<Backlog>);

impl Drop for AbandonOnDrop {
    fn drop(&mut self) {
        self.0.abandon();
    }
}

fn show(backlog: &Backlog, reporter: &mut dyn Reporter) -> Vec<String> {
    let mut errors: Vec<String> = Vec::new();
    // Each error is reported only once. If the reader closed the pipe, it wants no more output.
    let mut note = |error: io::Error| {
        if error.kind() != ErrorKind::BrokenPipe && !errors.contains(&error.to_string()) {
            errors.push(error.to_string());
        }
    };
    loop {
        let taken = backlog.take(TICK);
        reporter.tick(Timestamp::now()).unwrap_or_else(&mut note);
        match taken {
            Ok(None) => {}
            Ok(Some(events)) if events.is_empty() => break,
            Ok(Some(events)) => {
                events.iter().for_each(|event| reporter.event(event).unwrap_or_else(&mut note));
            }
            Err(error) => {
                note(io::Error::other(format!("events that waited for it are lost: {error}")));
                break;
            }
        }
    }
    reporter.finish().unwrap_or_else(&mut note);
    errors
}
