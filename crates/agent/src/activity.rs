//! When an agent was last heard of, and what it waits for. Shared with the clock that watches over it.

use std::sync::Mutex;
use std::time::{Duration, Instant};

/// When an agent was last heard of, and what it waits for.
#[derive(Debug)]
pub struct Activity {
    state: Mutex<(Instant, &'static str)>,
}

impl Default for Activity {
    /// Heard of now, waiting for its first word.
    fn default() -> Self {
        Self { state: Mutex::new((Instant::now(), "agent")) }
    }
}

impl Activity {
    /// Something was heard.
    pub fn heard(&self) {
        self.with(|state| state.0 = Instant::now());
    }

    /// Sets what is waited for; whether that is news.
    pub fn waits_for(&self, on: &'static str) -> bool {
        self.with(|state| std::mem::replace(&mut state.1, on) != on)
    }

    /// For how long nothing was heard, and what is waited for.
    pub fn idle(&self) -> (Duration, &'static str) {
        self.with(|state| (state.0.elapsed(), state.1))
    }

    fn with<T>(&self, change: impl FnOnce(&mut (Instant, &'static str)) -> T) -> T {
        let mut state = self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        change(&mut state)
    }
}
