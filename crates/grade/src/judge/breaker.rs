//! A judge that is not there, once for a whole run.

use std::sync::{Mutex, PoisonError};

/// How many questions in a row have to fail before no other is asked, where another might fare better.
const FAILURES: u32 = 3;
/// One of so many questions is asked all the same, because a provider may come back.
const PROBE_EVERY: u32 = 25;

/// Stops asking a judge that does not answer. Trials of a run share it: what the first ones found out, the others need
/// not find out again, which takes seconds each.
#[derive(Debug, Default)]
pub struct Breaker(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    failures: u32,
    /// How many questions were not asked.
    refused: u32,
    is_lasting: bool,
    because: String,
}

impl Breaker {
    /// Why the judge is not to be asked; `None` if it is.
    pub(super) fn refuses(&self) -> Option<String> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if state.failures < FAILURES && !state.is_lasting {
            return None;
        }
        state.refused += 1;
        let is_probe = !state.is_lasting && state.refused.is_multiple_of(PROBE_EVERY);
        (!is_probe).then(|| state.because.clone())
    }

    /// It answered, whatever it said.
    pub(super) fn answered(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = State::default();
    }

    /// It did not answer, because of `because`. `is_lasting` if no other question would fare better.
    pub fn failed(&self, because: &str, is_lasting: bool) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.failures = state.failures.saturating_add(1);
        state.is_lasting |= is_lasting;
        because.clone_into(&mut state.because);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fails_for_good_is_asked_once_and_other_trouble_three_times_in_a_row() {
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
    fn a_provider_that_comes_back_is_found_again() {
        let breaker = Breaker::default();
        (0..FAILURES).for_each(|_| breaker.failed("gone", false));
        let asked = (0..100).filter(|_| breaker.refuses().is_none()).count();
        assert_eq!(asked, 4);
        breaker.answered();
        assert_eq!(breaker.refuses(), None);
    }
}
