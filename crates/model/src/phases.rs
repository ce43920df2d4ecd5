//! Duration of each phase of a trial.

use std::ops::AddAssign;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Returns a duration in whole milliseconds.
pub fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Durations of a trial's phases, in milliseconds, over all its attempts. Time between phases is not included.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Phases {
    /// Provisioning of the sandbox: clone, fixtures, setup commands.
    pub provision_ms: u64,
    /// Conversation. This includes the time of a simulated user and of judges called by test code meanwhile, which the
    /// agent's own time excludes.
    pub act_ms: u64,
    /// Collection of the state of the sandbox and its remotes.
    pub collect_ms: u64,
    /// Grading, including judges and the user's check commands.
    pub grade_ms: u64,
    /// User's hook commands after grading.
    pub hooks_ms: u64,
}

impl Phases {
    /// Returns each phase's name and duration, in order.
    pub fn named(self) -> [(&'static str, u64); 5] {
        [
            ("provision", self.provision_ms),
            ("act", self.act_ms),
            ("collect", self.collect_ms),
            ("grade", self.grade_ms),
            ("hooks", self.hooks_ms),
        ]
    }
}

impl AddAssign for Phases {
    fn add_assign(&mut self, more: Self) {
        self.provision_ms += more.provision_ms;
        self.act_ms += more.act_ms;
        self.collect_ms += more.collect_ms;
        self.grade_ms += more.grade_ms;
        self.hooks_ms += more.hooks_ms;
    }
}
