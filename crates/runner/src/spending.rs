//! What all trials of a run have cost so far, and whether any more of them may be started.

use std::sync::{Mutex, OnceLock, PoisonError};

use model::{Ending, OnBudget, Status, TrialRecord};

use crate::plan::Settings;

/// The assertions that tell of a budget that was not kept.
const BUDGETS: [&str; 3] = ["budget", "token_budget", "time_budget"];

/// What all trials of a run have cost so far.
#[derive(Debug, Default)]
pub(crate) struct Spending {
    /// US dollars.
    sum: Mutex<f64>,
    ceased: OnceLock<String>,
}

impl Spending {
    /// Counts what `record` cost, its judges and its user included.
    pub(crate) fn add(&self, record: &TrialRecord, settings: &Settings) {
        let attempts = record.attempts.iter().filter_map(|attempt| attempt.cost_usd);
        let asides = [record.judge, record.user].into_iter().flatten().filter_map(|aside| aside.cost_usd);
        let cost: f64 = attempts.chain(asides).sum();
        let sum = {
            let mut sum = self.sum.lock().unwrap_or_else(PoisonError::into_inner);
            *sum += cost;
            *sum
        };
        if let Some(most) = settings.max_run_cost
            && sum > most
        {
            self.ceased.get_or_init(|| format!("the run had cost {sum:.4} USD, of {most} USD (--max-run-cost)"));
        }
        if settings.on_budget == OnBudget::Stop
            && let Some(budget) = unkept(record)
        {
            self.ceased.get_or_init(|| format!("`{}` had not kept its budget: {budget} (--on-budget stop)", record.id));
        }
    }

    /// Why nothing more is started, if nothing is.
    pub(crate) fn ceased(&self) -> Option<&str> {
        self.ceased.get().map(String::as_str)
    }
}

/// What is said of the budget that the trial did not keep. The clock is one only if it is set as one.
fn unkept(record: &TrialRecord) -> Option<&str> {
    let is_clock = matches!(&record.ending, Some(Ending::TimedOut { setting, .. }) if setting != "--max-duration");
    let mut unmet = record.findings.iter().filter(|finding| finding.status == Status::Unmet && finding.implicit);
    unmet
        .find(|finding| BUDGETS.contains(&finding.kind.as_str()) && !(finding.kind == "time_budget" && is_clock))
        .map(|finding| finding.because.as_str())
}
