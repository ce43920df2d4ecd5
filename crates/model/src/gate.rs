//! Conditions that decide together with the outcomes of the trials whether a run fails.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::Summary;

/// Conditions that decide together with the outcomes of the trials whether a run fails.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Gate {
    /// Share of trials that must pass at the first attempt, and that is enough.
    pub min_pass_rate: Option<f64>,
    /// True if failed assertions do not matter at all.
    pub no_fail_on_assertions: bool,
}

/// Result of comparing the pass rate of a run with the required one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GateResult {
    /// The lowest possible pass rate is high enough.
    Met,
    /// The highest possible pass rate is too low.
    NotMet,
    /// Trials that could have passed or failed decide it.
    Unknown,
}

impl Gate {
    /// Returns the gate in the settings of a run.
    pub fn from_settings(settings: &Map<String, Value>) -> Self {
        Self {
            min_pass_rate: settings.get("min_pass_rate").and_then(Value::as_f64),
            no_fail_on_assertions: settings.get("no_fail_on_assertions").and_then(Value::as_bool).unwrap_or_default(),
        }
    }

    /// Compares the pass rate with the required one; `None` if no rate is required, or if no trial counts.
    pub fn result(&self, summary: &Summary) -> Option<GateResult> {
        let (least, bounds) = (self.min_pass_rate?, summary.counted().bounds()?);
        Some(match () {
            () if bounds.min >= least => GateResult::Met,
            () if bounds.max < least => GateResult::NotMet,
            () => GateResult::Unknown,
        })
    }

    /// Returns `true` if failed trials do not fail the run. A required pass rate of a case that is not met still does,
    /// unless failures do not matter at all.
    pub fn ignores_failures(&self, summary: &Summary) -> bool {
        let is_met = self.result(summary) == Some(GateResult::Met) && summary.decisions.not_met == 0;
        self.no_fail_on_assertions || is_met
    }

    /// Returns `true` if the required pass rate fails the run, even if no trial failed in the end, because each passed
    /// after a failed attempt: the rate is too low whatever the missing results would show, or it is not known and the
    /// run is complete, because results are missing on purpose.
    pub fn is_missed(&self, summary: &Summary) -> bool {
        match self.result(summary) {
            Some(GateResult::NotMet) => true,
            Some(GateResult::Unknown) => summary.exit_code() == 0,
            Some(GateResult::Met) | None => false,
        }
    }

    /// Returns the exit code of the run. Neither condition hides trials and decisions that are open.
    pub fn exit_code(&self, summary: &Summary) -> u8 {
        let code = if self.is_missed(summary) { 1 } else { summary.exit_code() };
        match code {
            1 if self.ignores_failures(summary) && summary.is_incomplete() => 3,
            1 if self.ignores_failures(summary) => 0,
            code => code,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::OutcomeCounts;

    #[test]
    fn a_required_pass_rate_is_compared_with_the_lowest_possible_one() {
        let summary = |passed: usize, failed: usize, broken: usize| Summary {
            trials: passed + failed + broken,
            by_outcome: OutcomeCounts { passed, failed, broken, ..OutcomeCounts::default() },
            ..Summary::default()
        };
        let gate = Gate { min_pass_rate: Some(0.75), no_fail_on_assertions: false };
        let decide = |summary: &Summary| (gate.result(summary), gate.exit_code(summary));
        assert_eq!(decide(&summary(3, 1, 0)), (Some(GateResult::Met), 0));
        assert_eq!(decide(&summary(8, 1, 1)), (Some(GateResult::Met), 3), "a broken trial stays visible");
        assert_eq!(decide(&summary(2, 1, 1)), (Some(GateResult::Unknown), 1));
        assert_eq!(decide(&summary(1, 2, 1)), (Some(GateResult::NotMet), 1));
        let flaky = Summary { flaky: 2, ..summary(3, 1, 0) };
        assert_eq!(decide(&flaky), (Some(GateResult::NotMet), 1), "first attempts count");
        let flaky = Summary { flaky: 2, ..summary(4, 0, 0) };
        assert_eq!(decide(&flaky), (Some(GateResult::NotMet), 1), "no trial failed in the end");
        let flaky = Summary { flaky: 2, ..summary(3, 0, 1) };
        assert_eq!(decide(&flaky), (Some(GateResult::NotMet), 1), "the broken trial cannot change it");
        let sampled = summary(3, 0, 0);
        let by_outcome = OutcomeCounts { undecided: 2, ..sampled.by_outcome };
        let sampled = Summary { trials: 5, by_outcome, not_judged: 2, ..sampled };
        assert_eq!((sampled.exit_code(), decide(&sampled)), (0, (Some(GateResult::Unknown), 1)));
        let ignored = Gate { no_fail_on_assertions: true, ..gate };
        assert_eq!((ignored.exit_code(&flaky), ignored.exit_code(&Summary { flaky: 2, ..summary(4, 0, 0) })), (3, 0));
        assert_eq!(decide(&Summary::default()).0, None);
        let mut rate_too_low = summary(3, 1, 0);
        rate_too_low.decisions.not_met = 1;
        assert_eq!(gate.exit_code(&rate_too_low), 1);
        let settings = serde_json::json!({ "no_fail_on_assertions": true });
        let ignoring = Gate::from_settings(settings.as_object().unwrap());
        assert_eq!((ignoring.result(&rate_too_low), ignoring.exit_code(&rate_too_low)), (None, 0));
    }
}
