//! How long each part of a trial took.

use std::ops::AddAssign;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A duration in whole milliseconds.
pub fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// How long the parts of a trial took, in milliseconds, all its attempts together. What is between them is in none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Phases {
    /// Making its sandbox: clone, fixtures, setup commands.
    pub provision_ms: u64,
    /// The conversation. It includes the time of a played user and of judges that test code asks on the way, which the
    /// agent's own time leaves out.
    pub act_ms: u64,
    /// Looking at the sandbox and its remotes.
    pub collect_ms: u64,
    /// Grading, with judges and the user's checking commands.
    pub grade_ms: u64,
    /// The user's commands after grading.
    pub hooks_ms: u64,
}

impl Phases {
    /// Each phase's name and time, in order.
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
