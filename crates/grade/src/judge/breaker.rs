//! Stops asking an unavailable judge for the rest of the run.

use std::sync::{Mutex, PoisonError};

/// Number of consecutive failures after which no further question is asked, if other questions might have succeeded.
const FAILURES: u32 = 3;
/// One in this number of questions is still asked, because a provider may recover.
const PROBE_EVERY: u32 = 25;

/// Circuit breaker for a judge that does not answer. All trials in a run share it, so that they do not each wait
/// several seconds to find out the same.
#[derive(Debug, Default)]
pub struct Breaker(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    failures: u32,
    /// Number of questions that were not asked.
    refused: u32,
    is_lasting: bool,
    reason: String,
}

impl Breaker {
    /// Returns the reason why the judge must not be asked, or `None` if it may be.
    pub(super) fn refuses(&self) -> Option<String> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if state.failures < FAILURES && !state.is_lasting {
            return None;
        }
        state.refused += 1;
        let is_probe = !state.is_lasting && state.refused.is_multiple_of(PROBE_EVERY);
        (!is_probe).then(|| state.reason.clone())
    }

    /// Records that the judge answered, regardless of the answer.
    pub(super) fn answered(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = State::default();
    }

    /// Records that the judge did not answer, with the reason. `is_lasting` is true if any other question would fail
    /// too.
    pub fn failed(&self, reason: &str, is_lasting: bool) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.failures = state.failures.saturating_add(1);
        state.is_lasting |= is_lasting;
        reason.clone_into(&mut state.reason);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_breaker_opens_after_one_permanent_failure_or_three_temporary_ones() {
        let breaker = Breaker::default();
        breaker.failed("busy", false);
        breaker.failed("busy", false);
        breaker.answered();
        breaker.failed("busy", false);
        breaker.failed("busy", false);
        assert_eq!(breaker.refuses(), None, "an answer came in between");
        breaker.failed("gone", false);
        assert_eq!(breaker.refuses().as_deref(), Some("gone"));

        let breaker = Breaker::default();
        breaker.failed("no such key", true);
        assert!((0..100).all(|_| breaker.refuses().as_deref() == Some("no such key")));
    }

    #[test]
    fn a_provider_that_recovers_is_used_again() {
        let breaker = Breaker::default();
        (0..FAILURES).for_each(|_| breaker.failed("gone", false));
        let asked = (0..100).filter(|_| breaker.refuses().is_none()).count();
        assert_eq!(asked, 4);
        breaker.answered();
        assert_eq!(breaker.refuses(), None);
    }
}
