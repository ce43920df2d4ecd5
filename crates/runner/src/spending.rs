//! Cost and tokens of all trials in a run so far, and the check whether more trials may be started.

use std::sync::{Mutex, OnceLock, PoisonError};

use agent::Costs;
use model::{AttemptRecord, AuxiliaryUsage, Ending, OnBudget, Outcome, Status, TrialRecord, Usage};

use crate::place::ChangedBudget;
use crate::plan::{Earlier, Judging, ModelChoice, PlannedTrial, Settings};

/// Excess in US dollars that may be a rounding error of the sum.
const NOISE: f64 = 0.000001;

/// Cost and tokens of all trials in a run so far.
#[derive(Debug, Default)]
pub(crate) struct Spending {
    sum: Mutex<Sum>,
    ceased: OnceLock<String>,
    changed: Mutex<ChangedBudget>,
}

/// Totals over agents, judges and simulated users.
#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    cost_usd: f64,
    tokens: u64,
}

impl Sum {
    fn add(&mut self, usage: Usage) {
        self.cost_usd += usage.cost_usd.unwrap_or_default();
        self.tokens += usage.tokens.map_or(0, |tokens| tokens.total());
    }
}

impl Spending {
    /// Creates the sum for a run, part of which was already run.
    pub(crate) fn after(earlier: &Earlier) -> Self {
        let mut sum = Sum { cost_usd: earlier.cost_usd(), ..Sum::default() };
        let asides = [earlier.summary.judge, earlier.summary.user].into_iter().flatten().map(|aside| aside.tokens);
        for tokens in asides.chain([earlier.summary.tokens]) {
            sum.add(Usage { tokens, cost_usd: None });
        }
        Self { sum: Mutex::new(sum), ..Self::default() }
    }

    /// Adds the usage of a trial, including its judges and its simulated user.
    pub(crate) fn add(&self, record: &TrialRecord, planned: &PlannedTrial, settings: &Settings, judging: &Judging) {
        let asides = [
            (record.judge, judging.asks_network(planned)),
            (record.user, planned.players().any(|model| judging.player_is_on_network(model))),
        ];
        let attempts = record.attempts.iter().map(used);
        let sum = {
            let mut sum = self.sum.lock().unwrap_or_else(PoisonError::into_inner);
            attempts
                .chain(asides.iter().filter_map(|(aside, _)| Some((*aside)?.usage())))
                .for_each(|usage| sum.add(usage));
            *sum
        };
        let limits = &settings.limits;
        let changed = *self.changed.lock().unwrap_or_else(PoisonError::into_inner);
        let (max_run_cost, max_run_tokens) =
            (changed.max_run_cost.or(limits.max_run_cost), changed.max_run_tokens.or(limits.max_run_tokens));
        if let Some(reason) = max_run_cost.and_then(|most| excess(sum.cost_usd, most)) {
            self.cease(reason);
        }
        if let Some(most) = max_run_tokens.filter(|most| sum.tokens as f64 > *most) {
            self.cease(format!("the run used {} tokens, which is over its limit of {most}", sum.tokens));
        }
        let caps = [
            ("cost", limits.names.run_cost, max_run_cost.is_some()),
            ("number of tokens", limits.names.run_tokens, max_run_tokens.is_some()),
        ];
        for (figure, limit, _) in caps.into_iter().filter(|(.., is_set)| *is_set) {
            let lacks = |usage: Usage| match figure {
                "cost" => usage.cost_usd.is_none(),
                _ => usage.tokens.is_none(),
            };
            let is_agents =
                is_paid(planned, record) && record.attempts.iter().any(|attempt| ran(attempt) && lacks(used(attempt)));
            let is_asides = |(aside, is_on_network): &(Option<AuxiliaryUsage>, bool)| {
                aside.is_some_and(|aside| *is_on_network && aside.requests > 0 && lacks(aside.usage()))
            };
            if is_agents || asides.iter().any(is_asides) {
                let reason = format!("the {figure} of `{}` is not known, so `{limit}` cannot be kept", record.id);
                self.cease(reason);
            }
        }
        if limits.on_budget == OnBudget::Stop
            && let Some(budget) = unkept(record, limits.max_duration_from)
        {
            self.cease(format!("`{}` exceeded its budget: {budget}", record.id));
        }
    }

    /// Changes limits of the run. A run that has used up its budget stays over.
    pub(crate) fn change(&self, budget: ChangedBudget) {
        *self.changed.lock().unwrap_or_else(PoisonError::into_inner) = budget;
    }

    /// Sets the reason why nothing more is started, unless there is one already.
    fn cease(&self, reason: String) {
        self.ceased.get_or_init(|| reason);
    }

    /// Returns the reason why nothing more is started, or `None` if trials may start.
    pub(crate) fn ceased(&self) -> Option<&str> {
        self.ceased.get().map(String::as_str)
    }
}

/// Returns `true` if the agent may have sent requests to a model that costs something.
fn is_paid(planned: &PlannedTrial, record: &TrialRecord) -> bool {
    let is_replayed = record.cassette.as_ref().is_some_and(|cassette| cassette.live == 0);
    let is_script = matches!(planned.model, ModelChoice::Scripted(_));
    !is_script && !is_replayed && planned.agent.description().costs != Costs::Nothing
}

/// Returns `true` if the agent ran in the attempt. Most broken attempts end before the model answers.
fn ran(attempt: &AttemptRecord) -> bool {
    matches!(attempt.outcome, Outcome::Passed | Outcome::Failed | Outcome::Undecided)
}

fn used(attempt: &AttemptRecord) -> Usage {
    Usage { tokens: attempt.usage, cost_usd: attempt.cost_usd }
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
