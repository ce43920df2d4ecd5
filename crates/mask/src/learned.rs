//! Secrets that become known while a run is on.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::Values;

/// Maximum number of secrets that are kept. The oldest ones are forgotten first: they belong to trials that ended long
/// ago.
const MAX_KEPT: usize = 1_000;

/// Secrets that became known during a run.
#[derive(Default)]
pub(crate) struct Learned {
    /// Number of secrets learned so far.
    count: AtomicUsize,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    secrets: VecDeque<String>,
    /// `None` if secrets were added since it was compiled.
    compiled: Option<Arc<Values>>,
}

impl Learned {
    /// Adds secrets that are not known yet.
    pub(crate) fn add(&self, secrets: impl IntoIterator<Item = String>) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        for secret in secrets {
            if kept.secrets.contains(&secret) {
                continue;
            }
            if kept.secrets.len() == MAX_KEPT {
                kept.secrets.pop_front();
            }
            kept.secrets.push_back(secret);
            kept.compiled = None;
            self.count.fetch_add(1, Ordering::Release);
        }
    }

    /// Returns the number of secrets learned so far.
    pub(crate) fn count(&self) -> usize {
        self.count.load(Ordering::Acquire)
    }

    /// Returns the forms of the secrets, which `compile` creates after there were new ones; `None` if there are none.
    pub(crate) fn values(&self, compile: impl FnOnce(&[String]) -> Option<Values>) -> Option<Arc<Values>> {
        if self.count() == 0 {
            return None;
        }
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.compiled.is_none() {
            kept.compiled = compile(kept.secrets.make_contiguous()).map(Arc::new);
        }
        kept.compiled.clone()
    }
}
