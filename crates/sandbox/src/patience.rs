//! How long looking at a tree may take: an agent may have left one that has no end.

use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long looking may take.
#[derive(Debug, Clone, Copy)]
pub(super) struct Patience {
    since: Instant,
    limit: Duration,
    setting: &'static str,
}

impl Patience {
    /// From now on, so long; the setting that says so.
    pub(super) fn new(limit: Duration, setting: &'static str) -> Self {
        Self { since: Instant::now(), limit, setting }
    }

    /// How much of it is left.
    pub(super) fn left(&self) -> Duration {
        self.limit.saturating_sub(self.since.elapsed())
    }

    /// Whether it has run out.
    pub(super) fn is_over(&self) -> bool {
        self.since.elapsed() >= self.limit
    }

    /// An error that says where somebody had come to, if it has run out.
    pub(super) fn check(&self, path: &Path) -> io::Result<()> {
        if !self.is_over() {
            return Ok(());
        }
        let (limit, setting) = (self.limit.as_secs_f64(), self.setting);
        let because = format!("it was not done after {limit} s ({setting}), and had come to {}", path.display());
        Err(io::Error::new(io::ErrorKind::TimedOut, because))
    }
}
