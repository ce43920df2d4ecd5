//! A comparison in one sentence, for readers who know no statistics: of trials with and without a skill, or of two
//! runs.

use model::ArmDelta;
use model::statistics::{ArmStatistics, Difference, Triggering};

use crate::format::{self, counted, gain, percent};

/// p-value below which a difference is considered unlikely to be chance.
pub(crate) const UNLIKELY: f64 = model::statistics::SIGNIFICANCE;
/// Difference in the share of passed trials that is not worth mentioning: five percentage points.
const NEGLIGIBLE: f64 = 0.05;
/// Interval within which a difference is called negligible: ten percentage points.
const NARROW: f64 = 0.1;
/// Smallest number of cases with which the exact test can reach a p-value below [`UNLIKELY`]: 2 / 2⁶ = 0.03.
const MIN_CASES: f64 = 6.0;
/// Sum of the normal quantiles for a two-sided test at 5 % with a power of 80 %: with (2.8 · standard deviation /
/// difference)² cases, four of five repetitions of the experiment find the difference.
const QUANTILES: f64 = 1.96 + 0.84;
/// Largest number of cases that is ever suggested.
const MAX_SUGGESTED_CASES: f64 = 1000.0;

/// Says whether the skill helps the agent, based on the trials in which everything was decided. `trigger` says how the
/// arm with the skill used it, if known.
pub(crate) fn sentence(delta: &ArmDelta, trigger: Option<&Triggering>) -> String {
    let unused = |trigger: &&Triggering| trigger.known() > 0 && trigger.triggered() == 0 && trigger.wanted() > 0;
    if let Some(trigger) = trigger.filter(unused) {
        let trials = counted(usize::try_from(trigger.wanted()).unwrap_or(usize::MAX), "trial");
        return format!("Cannot tell whether the skill helps: the agent never used it in {trials} that expected it.");
    }
    let Some(difference) = delta.delta.full_pass_rate else {
        return "Cannot tell whether the skill helps: no case was decided both with it and without it.".to_owned();
    };
    let mut sentence = compared(&SKILL, &passes(delta), &difference);
    // Near 100 %, a few points may be most of what a skill can gain.
    let helps = difference.p_value < UNLIKELY && difference.mean > 0.0;
    if let Some(gain) = delta.normalised_gain().filter(|_| helps) {
        sentence.push_str(&format!(" This is {} of the possible improvement.", percent(gain)));
    }
    sentence
}

/// Wording for a comparison of two sides.
pub(crate) struct Words<'a> {
    /// Beginning of the sentence if the first side is better.
    pub(crate) better: &'a str,
    /// Beginning of the sentence if the first side is worse.
    pub(crate) worse: &'a str,
    /// The question that stays open if there is too little evidence.
    pub(crate) question: &'a str,
    /// The first side, after `passed`.
    pub(crate) first: &'a str,
    /// The second side, after `passed`.
    pub(crate) second: &'a str,
}

/// Wording for a comparison with and without a skill.
pub(crate) const SKILL: Words<'static> = Words {
    better: "The skill helps",
    worse: "The skill harms",
    question: "whether the skill helps",
    first: "with it",
    second: "without",
};

/// Trials of the cases that both sides have.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Passes {
    /// Number of cases.
    pub(crate) cases: u64,
    /// Passed trials of the first side, and all of its trials.
    pub(crate) first: [u64; 2],
    /// Passed trials of the second side, and all of its trials.
    pub(crate) second: [u64; 2],
    /// Undecided trials of both sides. They are included in all trials and might have passed.
    pub(crate) undecided: [u64; 2],
    /// True if each side has one trial of every case.
    pub(crate) is_single: bool,
}

/// Says whether the first side is better than the second.
pub(crate) fn compared(words: &Words<'_>, passes: &Passes, difference: &Difference) -> String {
    let passed = passes.describe(words);
    match *difference {
        Difference { p_value, mean, .. } if p_value < UNLIKELY && mean > 0.0 => {
            format!("{}: {passed} ({}).", words.better, chance(p_value))
        }
        Difference { p_value, mean, .. } if p_value < UNLIKELY && mean < 0.0 => {
            format!("{}: {passed} ({}).", words.worse, chance(p_value))
        }
        Difference { ci95: Some([low, high]), mean, .. }
            if mean.abs() <= NEGLIGIBLE && low >= -NARROW && high <= NARROW =>
        {
            format!("No difference worth mentioning: {passed} (between {} and {} points).", gain(low), gain(high))
        }
        _ => format!("Cannot tell yet {}: {passed}. {}", words.question, needed(difference)),
    }
}

/// Says which side is better, if the trials show it for these cases. If the cases are too few to generalise, says how
/// many would be enough.
pub(crate) fn compared_for_these_cases(
    words: &Words<'_>,
    passes: &Passes,
    difference: &Difference,
    p_value: f64,
) -> String {
    let side = if difference.mean < 0.0 { words.worse } else { words.better };
    let passed = passes.describe(words);
    let more = match enough_cases(difference) {
        cases if cases <= difference.cases as f64 => String::new(),
        cases if cases <= MAX_SUGGESTED_CASES => format!(" To generalise, test about {cases} cases."),
        _ => format!(" To generalise, test more than {MAX_SUGGESTED_CASES} cases."),
    };
    format!("{side}: {passed} (for these cases, {}: p {}).{more}", chance(p_value), format::p_value(p_value))
}

/// Says how many cases passed, based on the trials in which everything was decided, and what does not count.
pub(crate) fn passed_sentence(arm: &ArmStatistics) -> String {
    let ArmStatistics { decided, passed, cases, .. } = *arm;
    let mut sentence = match arm.full_pass_rate {
        None => "No case was decided.".to_owned(),
        Some(rate) => {
            let of = if decided == cases {
                counted(cases, "case")
            } else {
                format!("{} of {}", counted(decided, "trial"), counted(cases, "case"))
            };
            let range = rate.ci95.map_or_else(String::new, |[low, high]| {
                format!(" (the true rate is probably between {} and {})", percent(low), percent(high))
            });
            format!("{passed} of {of} passed, {}{range}.", percent(rate.mean))
        }
    };
    let excluded =
        [(arm.broken, "broken"), (arm.stale, "stale"), (arm.undecided, "undecided"), (arm.cancelled, "cancelled")];
    let excluded: Vec<String> =
        excluded.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect();
    if !excluded.is_empty() {
        sentence.push_str(&format!(" Not counted: {}.", excluded.join(", ")));
    }
    sentence
}

/// The passed cases of both arms, or the passed trials if a case has several.
fn passes(delta: &ArmDelta) -> Passes {
    let cases = || delta.cases.iter().filter(|case| case.with.decided > 0 && case.without.decided > 0);
    let sum = |of: fn(&model::CaseDelta) -> u64| cases().map(of).sum::<u64>();
    Passes {
        cases: cases().count() as u64,
        first: [sum(|case| case.with.passed), sum(|case| case.with.decided)],
        second: [sum(|case| case.without.passed), sum(|case| case.without.decided)],
        undecided: [0, 0],
        is_single: cases().all(|case| case.with.decided == 1 && case.without.decided == 1),
    }
}

impl Passes {
    /// Says how many cases passed on both sides, or how many trials if cases have several.
    fn describe(&self, words: &Words<'_>) -> String {
        let Words { first, second, .. } = words;
        let ([passed_with, of_with], [passed_without, of_without]) = (self.first, self.second);
        let with = bounds(passed_with, self.undecided[0], |passed| passed.to_string());
        let without = bounds(passed_without, self.undecided[1], |passed| passed.to_string());
        if self.is_single {
            return format!("{with} of {} passed {first}, {without} of {of_without} {second}", counted_cases(of_with));
        }
        let share_with = bounds(passed_with, self.undecided[0], |passed| percent(passed as f64 / of_with as f64));
        let share_without =
            bounds(passed_without, self.undecided[1], |passed| percent(passed as f64 / of_without as f64));
        format!(
            "in {}, {share_with} of trials passed {first} ({with} of {of_with}), {share_without} {second} ({without} of \
             {of_without})",
            counted_cases(self.cases),
        )
    }

    /// Says how many cases passed on both sides, if the numbers are the same.
    pub(crate) fn describe_same(&self) -> String {
        let [passed, of] = self.first;
        if self.is_single {
            return format!("{passed} of {} passed in both", counted_cases(of));
        }
        format!(
            "in {}, {} of trials passed in both",
            counted_cases(self.cases),
            percent(passed as f64 / of.max(1) as f64)
        )
    }
}

/// Formats the number of passed trials, as a range if some are undecided.
fn bounds(passed: u64, undecided: u64, format: impl Fn(u64) -> String) -> String {
    if undecided == 0 { format(passed) } else { format!("{} to {}", format(passed), format(passed + undecided)) }
}

pub(crate) fn counted_cases(count: u64) -> String {
    counted(usize::try_from(count).unwrap_or(usize::MAX), "case")
}

/// Says in words how unlikely it is that the difference is only chance.
pub(crate) fn chance(p_value: f64) -> &'static str {
    match p_value {
        p if p < 0.001 => "almost certainly not chance",
        p if p < 0.01 => "very unlikely to be chance",
        _ => "unlikely to be chance",
    }
}

/// Says how many cases would be enough, if the difference stays as it is.
fn needed(difference: &Difference) -> String {
    if difference.mean == 0.0 {
        return match difference.ci95 {
            Some([low, high]) => {
                format!("The true difference is probably between {} and {} points.", gain(low), gain(high))
            }
            None => "One case is too few.".to_owned(),
        };
    }
    more_cases(difference)
}

/// Says how many cases would be enough, if a difference other than 0 stays as it is.
pub(crate) fn more_cases(difference: &Difference) -> String {
    match cases_needed(difference) {
        Some(cases) => {
            format!("At this difference, about {cases} cases instead of {} would be enough.", difference.cases)
        }
        None => format!("At this difference, more than {MAX_SUGGESTED_CASES} cases would be needed."),
    }
}

/// Returns how many cases are enough to show the difference.
fn enough_cases(difference: &Difference) -> f64 {
    let spread = difference.stddev.unwrap_or(0.0) / difference.mean;
    (QUANTILES * spread).powi(2).ceil().max(MIN_CASES)
}

/// Returns how many cases would be enough; `None` if more than [`MAX_SUGGESTED_CASES`].
fn cases_needed(difference: &Difference) -> Option<f64> {
    let cases = enough_cases(difference);
    // More cases than there are, even if chance gave the few cases a small spread.
    (cases <= MAX_SUGGESTED_CASES).then(|| cases.max(difference.cases as f64 + 1.0))
}

#[cfg(test)]
mod tests {
    use model::{CaseDelta, CaseEffect, CaseFigures, statistics::Delta};

    use super::*;

    /// A comparison of cases. Each has the number of passed trials with and without the skill, out of `trials`.
    fn compared(cases: &[(u64, u64)], trials: u64) -> ArmDelta {
        let figures = |passed| CaseFigures { trials, decided: trials, passed, pass_rate: None };
        let shares = cases.iter().map(|(with, without)| (*with as f64 - *without as f64) / trials as f64);
        let differences: Vec<f64> = shares.collect();
        let case = |(index, (with, without)): (usize, &(u64, u64))| CaseDelta {
            suite: "s".into(),
            case: index.to_string(),
            with: figures(*with),
            without: figures(*without),
            effect: CaseEffect::Undecided,
        };
        ArmDelta {
            agent: "a".into(),
            model: None,
            with: "a+with_skill".into(),
            without: "a+without_skill".into(),
            delta: Delta { full_pass_rate: Difference::of(&differences), ..Delta::default() },
            suites: Vec::new(),
            cases: cases.iter().enumerate().map(case).collect(),
        }
    }

    #[test]
    fn the_sentence_matches_the_figures() {
        let many = |with: usize, without: usize, of: usize| -> Vec<(u64, u64)> {
            (0..of).map(|index| (u64::from(index < with), u64::from(index < without))).collect()
        };
        for (cases, trials, expected) in [
            (
                many(10, 1, 10),
                1,
                "The skill helps: 10 of 10 cases passed with it, 1 of 10 without (very unlikely to be chance). This is \
                 100% of the possible improvement.",
            ),
            (
                many(19, 10, 20),
                1,
                "The skill helps: 19 of 20 cases passed with it, 10 of 20 without (very unlikely to be chance). This is \
                 90% of the possible improvement.",
            ),
            (
                many(12, 0, 12),
                1,
                "The skill helps: 12 of 12 cases passed with it, 0 of 12 without (almost certainly not chance). This is \
                 100% of the possible improvement.",
            ),
            (many(0, 6, 8), 1, "The skill harms: 0 of 8 cases passed with it, 6 of 8 without (unlikely to be chance)."),
            (
                many(2, 1, 3),
                1,
                "Cannot tell yet whether the skill helps: 2 of 3 cases passed with it, 1 of 3 without. At this \
                 difference, about 24 cases instead of 3 would be enough.",
            ),
            (
                many(1, 0, 1),
                1,
                "Cannot tell yet whether the skill helps: 1 of 1 case passed with it, 0 of 1 without. At this \
                 difference, about 6 cases instead of 1 would be enough.",
            ),
            (
                vec![(0, 0)],
                1,
                "Cannot tell yet whether the skill helps: 0 of 1 case passed with it, 0 of 1 without. One case is too few.",
            ),
            (
                vec![(3, 1), (2, 2)],
                3,
                "Cannot tell yet whether the skill helps: in 2 cases, 83% of trials passed with it (5 of 6), 50% without \
                 (3 of 6). At this difference, about 16 cases instead of 2 would be enough.",
            ),
            (
                vec![(50, 50), (51, 50), (50, 51), (50, 50), (50, 50), (50, 50)],
                100,
                "No difference worth mentioning: in 6 cases, 50% of trials passed with it (301 of 600), 50% without (301 \
                 of 600) (between -0.7 and +0.7 points).",
            ),
        ] {
            assert_eq!(sentence(&compared(&cases, trials), None), expected);
        }
    }

    #[test]
    fn more_cases_are_suggested_only_if_there_are_too_few() {
        let sentence = |cases: u64| {
            let passes = Passes { cases, first: [0, cases], second: [cases; 2], is_single: true, ..Passes::default() };
            let worse = Difference::of(&vec![-1.0; cases as usize]).unwrap();
            compared_for_these_cases(&SKILL, &passes, &worse, 0.0001)
        };
        assert_eq!(
            sentence(40),
            "The skill harms: 0 of 40 cases passed with it, 40 of 40 without (for these cases, almost certainly not \
             chance: p <0.001)."
        );
        assert!(sentence(3).ends_with(" To generalise, test about 6 cases."), "{}", sentence(3));
    }

    #[test]
    fn a_sentence_about_one_arm_states_what_is_counted() {
        let rate = model::Estimate { mean: 7.0 / 9.0, stddev: None, ci95: Some([0.45, 0.937]) };
        let cases = ArmStatistics {
            decided: 9,
            passed: 7,
            cases: 9,
            full_pass_rate: Some(rate),
            broken: 2,
            ..ArmStatistics::default()
        };
        let range = "78% (the true rate is probably between 45% and 94%). Not counted: 2 broken.";
        assert_eq!(passed_sentence(&cases), format!("7 of 9 cases passed, {range}"));
        let trials = ArmStatistics { cases: 3, ..cases };
        assert_eq!(passed_sentence(&trials), format!("7 of 9 trials of 3 cases passed, {range}"));
        let nothing = ArmStatistics { undecided: 1, ..ArmStatistics::default() };
        assert_eq!(passed_sentence(&nothing), "No case was decided. Not counted: 1 undecided.");
    }

    #[test]
    fn without_evidence_the_sentence_does_not_judge_the_skill() {
        let nothing = ArmDelta { delta: Delta::default(), ..compared(&[], 1) };
        assert!(sentence(&nothing, None).ends_with("no case was decided both with it and without it."));
        let unused = Triggering { misses: 3, ..Triggering::default() };
        assert!(sentence(&compared(&[(1, 0); 9], 1), Some(&unused)).contains("the agent never used it in "));
    }
}
