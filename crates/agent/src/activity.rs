//! Time of an agent's last output, and what the agent is waiting for. Shared with the timeout that watches the agent.

use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Time of an agent's last output, and what the agent is waiting for.
#[derive(Debug)]
pub struct Activity {
    state: Mutex<(Instant, &'static str)>,
}

impl Default for Activity {
    /// Starts with the current time, waiting for the agent's first output.
    fn default() -> Self {
        Self { state: Mutex::new((Instant::now(), "agent")) }
    }
}

impl Activity {
    /// Records that output arrived now.
    pub fn touch(&self) {
        self.with(|state| state.0 = Instant::now());
    }

    /// Sets what the agent is waiting for. Returns `true` if that changed.
    pub fn waits_for(&self, on: &'static str) -> bool {
        self.with(|state| std::mem::replace(&mut state.1, on) != on)
    }

    /// Returns the time since the last output, and what the agent is waiting for.
    pub fn idle(&self) -> (Duration, &'static str) {
        self.with(|state| (state.0.elapsed(), state.1))
    }

    fn with<T>(&self, change: impl FnOnce(&mut (Instant, &'static str)) -> T) -> T {
        let mut state = self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        change(&mut state)
    }
}
