//! Timeout for reading a tree, because an agent may have left one that never ends.

use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

/// Timeout for reading a tree.
#[derive(Debug, Clone, Copy)]
pub(super) struct Deadline {
    since: Instant,
    limit: Duration,
    setting: &'static str,
}

impl Deadline {
    /// Starts the timeout `limit` now. `setting` is the name of the setting that configures it.
    pub(super) fn new(limit: Duration, setting: &'static str) -> Self {
        Self { since: Instant::now(), limit, setting }
    }

    /// Returns the whole time.
    pub(super) fn limit(&self) -> Duration {
        self.limit
    }

    /// Returns the remaining time.
    pub(super) fn left(&self) -> Duration {
        self.limit.saturating_sub(self.since.elapsed())
    }

    /// Returns `true` if the time has run out.
    pub(super) fn is_over(&self) -> bool {
        self.since.elapsed() >= self.limit
    }

    /// Returns an error that includes `path`, the last path examined, if the time has run out.
    pub(super) fn check(&self, path: &Path) -> io::Result<()> {
        if !self.is_over() {
            return Ok(());
        }
        let (limit, setting) = (self.limit.as_secs_f64(), self.setting);
        let reason = format!("it did not finish within {limit} s ({setting}); it stopped at {}", path.display());
        Err(io::Error::new(io::ErrorKind::TimedOut, reason))
    }
}
