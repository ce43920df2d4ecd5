//! Cost of all trials in a run so far, and the check whether more trials may be started.

use std::sync::{Mutex, OnceLock, PoisonError};

use model::{Ending, OnBudget, Status, TrialRecord};

use crate::plan::{Earlier, Settings};

/// Excess in US dollars that may be a rounding error of the sum.
const NOISE: f64 = 0.000001;

/// Cost of all trials in a run so far.
#[derive(Debug, Default)]
pub(crate) struct Spending {
    /// Sum in US dollars.
    sum: Mutex<f64>,
    ceased: OnceLock<String>,
}

impl Spending {
    /// Creates the sum for a run, part of which was already run.
    pub(crate) fn after(earlier: &Earlier) -> Self {
        Self { sum: Mutex::new(earlier.cost_usd()), ..Self::default() }
    }

    /// Adds the cost of `record`, including its judges and its simulated user.
    pub(crate) fn add(&self, record: &TrialRecord, settings: &Settings) {
        let attempts = record.attempts.iter().filter_map(|attempt| attempt.cost_usd);
        let asides = [record.judge, record.user].into_iter().flatten().filter_map(|aside| aside.cost_usd);
        let cost: f64 = attempts.chain(asides).sum();
        let sum = {
            let mut sum = self.sum.lock().unwrap_or_else(PoisonError::into_inner);
            *sum += cost;
            *sum
        };
        if let Some(most) = settings.limits.max_run_cost
            && let Some(reason) = excess(sum, most)
        {
            self.ceased.get_or_init(|| reason);
        }
        if settings.limits.on_budget == OnBudget::Stop
            && let Some(budget) = unkept(record, settings.limits.max_duration_from)
        {
            self.ceased.get_or_init(|| format!("`{}` exceeded its budget: {budget}", record.id));
        }
    }

    /// Returns the reason why nothing more is started, or `None` if trials may start.
    pub(crate) fn ceased(&self) -> Option<&str> {
        self.ceased.get().map(String::as_str)
    }
}

/// Returns the message about a sum above the limit. It has enough digits to show the difference.
fn excess(sum: f64, most: f64) -> Option<String> {
    let decimals = match sum - most {
        excess if excess > 0.0001 => 4,
        excess if excess > NOISE => 6,
        _ => return None,
    };
    Some(format!("the run cost {sum:.decimals$} USD, which is over its limit of {most} USD"))
}

/// Returns the message about a budget that the trial exceeded. The time counts only if it is set as a budget.
fn unkept<'r>(record: &'r TrialRecord, max_duration_from: &str) -> Option<&'r str> {
    let is_clock = matches!(&record.ending, Some(Ending::TimedOut { setting, .. }) if setting != max_duration_from);
    let mut unmet = record.findings.iter().filter(|finding| finding.status == Status::Unmet && finding.implicit);
    unmet
        .find(|finding| finding.is_about_budget() && !(finding.kind == "time_budget" && is_clock))
        .map(|finding| finding.reason.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_errors_of_the_sum_do_not_exceed_the_limit() {
        let sum = (0..30).fold(0.0, |sum, _| sum + 0.01);
        assert!(sum > 0.3);
        assert_eq!(excess(sum, 0.3), None);
        let reason = |cost: &str| Some(format!("the run cost {cost} USD, which is over its limit of 0.3 USD"));
        assert_eq!(excess(0.31, 0.3), reason("0.3100"));
        assert_eq!(excess(0.300012, 0.3), reason("0.300012"));
    }
}
