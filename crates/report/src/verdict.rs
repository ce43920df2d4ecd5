//! A comparison in one sentence, for readers who know no statistics: of trials with and without a skill, or of two
//! runs.

mod decision;

use model::Outcome;
use model::statistics::{ArmStatistics, Bounds};

use crate::counts::outcomes;
use crate::format::{counted, percent};
pub(crate) use decision::{CaseSide, CaseTest, Decision, PairedCase, more_cases, tests, without_result};

/// p-value below which a difference is considered unlikely to be chance.
pub(crate) const UNLIKELY: f64 = model::statistics::SIGNIFICANCE;
/// Tolerance for rounding errors in a sum of shares.
pub(crate) const NOISE: f64 = 1e-9;
/// Difference in the share of passed trials that is not worth mentioning: five percentage points.
const NEGLIGIBLE: f64 = 0.05;
/// Interval within which a difference is called negligible: ten percentage points.
const NARROW: f64 = 0.1;
/// Smallest number of cases that differ with which the exact test can reach a p-value below [`UNLIKELY`]: 2 / 2⁶ = 0.03.
const MIN_CASES: f64 = 6.0;
/// Sum of the normal quantiles for a two-sided test at 5 % with a power of 80 %: with (2.8 · standard deviation /
/// difference)² cases, four of five repetitions of the experiment find the difference.
const QUANTILES: f64 = 1.96 + 0.84;
/// Largest number of cases that is ever suggested.
const MAX_SUGGESTED_CASES: usize = 1000;

/// Wording for a comparison of two sides.
pub(crate) struct Words<'a> {
    /// Beginning of the sentence if the second side is better.
    pub(crate) better: &'a str,
    /// Beginning of the sentence if the second side is worse.
    pub(crate) worse: &'a str,
    /// The question that stays open if there is too little evidence.
    pub(crate) question: &'a str,
    /// The second side, after `passed`.
    pub(crate) after: &'a str,
    /// The first side, after `passed`.
    pub(crate) before: &'a str,
    /// Names of the first side and the second.
    pub(crate) sides: [&'a str; 2],
    /// True to state the share of the possible improvement.
    pub(crate) has_gain: bool,
}

/// Wording for a comparison with and without a skill.
pub(crate) const SKILL: Words<'static> = Words {
    better: "The skill helps",
    worse: "The skill harms",
    question: "whether the skill helps",
    after: "with it",
    before: "without",
    sides: ["the arm without the skill", "the arm with the skill"],
    has_gain: true,
};

/// Says how many cases passed, which trials could have passed or failed, and which do not count.
pub(crate) fn passed_sentence(arm: &ArmStatistics) -> String {
    let unknown = outcomes(arm.by_outcome, Outcome::is_unknown);
    let mut sentence = match arm.full_pass_rate {
        None => "No trial counts.".to_owned(),
        Some(rate) => {
            let of = if arm.trials == arm.cases {
                counted(arm.cases, "case")
            } else {
                format!("{} of {}", counted(arm.trials, "trial"), counted(arm.cases, "case"))
            };
            let range = rate.ci95.map_or_else(String::new, |[low, high]| {
                format!(" (the true rate is probably between {} and {})", percent(low), percent(high))
            });
            let first = if arm.flaky > 0 { " at the first attempt" } else { "" };
            match rate.mean {
                Some(mean) => format!("{} of {of} passed{first}, {}{range}.", arm.by_outcome.passed, percent(mean)),
                None => {
                    let Bounds { min, max } = rate.bounds;
                    let rates = format!("Between {} and {}", percent(min), percent(max));
                    format!("{rates} of {of} passed{first}: {}{range}.", unknown.join(" and "))
                }
            }
        }
    };
    if arm.flaky > 0 {
        sentence.push_str(&format!(" Passed only after a failed attempt: {}.", arm.flaky));
    }
    let excluded = outcomes(arm.by_outcome, Outcome::is_excluded);
    if !excluded.is_empty() {
        sentence.push_str(&format!(" Excluded: {}.", excluded.join(", ")));
    }
    sentence
}

/// Says in words how unlikely it is that the difference is only chance.
pub(crate) fn chance(p_value: f64) -> &'static str {
    match p_value {
        p if p < 0.001 => "almost certainly not chance",
        p if p < 0.01 => "very unlikely to be chance",
        p if p < UNLIKELY => "unlikely to be chance",
        _ => "may be chance",
    }
}

#[cfg(test)]
mod tests {
    use model::OutcomeCounts;
    use model::statistics::BoundedEstimate;

    use super::*;

    #[test]
    fn a_sentence_about_one_arm_states_what_is_counted() {
        let arm = |passed: usize, failed: usize, undecided: usize| {
            let by_outcome = OutcomeCounts { passed, failed, undecided, ..OutcomeCounts::default() };
            let rate = by_outcome.counted(0).rate().map(|rate| BoundedEstimate { ci95: Some([0.45, 0.937]), ..rate });
            ArmStatistics {
                trials: passed + failed + undecided,
                by_outcome,
                cases: passed + failed + undecided,
                full_pass_rate: rate,
                ..ArmStatistics::default()
            }
        };
        let range = "(the true rate is probably between 45% and 94%).";
        assert_eq!(passed_sentence(&arm(7, 2, 0)), format!("7 of 9 cases passed, 78% {range}"));
        let trials = ArmStatistics { cases: 3, ..arm(7, 2, 0) };
        let by_outcome = OutcomeCounts { skipped: 2, ..trials.by_outcome };
        let trials = ArmStatistics { by_outcome, ..trials };
        let expected = format!("7 of 9 trials of 3 cases passed, 78% {range} Excluded: 2 skipped.");
        assert_eq!(passed_sentence(&trials), expected);
        let open = format!("Between 0% and 60% of 10 cases passed: 6 undecided {range}");
        assert_eq!(passed_sentence(&arm(0, 4, 6)), open);
        let flaky = ArmStatistics { flaky: 1, ..arm(7, 2, 0) };
        let expected =
            format!("7 of 9 cases passed at the first attempt, 78% {range} Passed only after a failed attempt: 1.");
        assert_eq!(passed_sentence(&flaky), expected);
        let nothing = ArmStatistics {
            by_outcome: OutcomeCounts { cancelled: 1, ..OutcomeCounts::default() },
            ..ArmStatistics::default()
        };
        assert_eq!(passed_sentence(&nothing), "No trial counts. Excluded: 1 cancelled.");
    }
}
