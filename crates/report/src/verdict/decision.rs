//! Decides whether one side of a comparison is better, and says so. `run`, `status`, `compare` and every report use it,
//! so that they cannot contradict each other. Three tests are used: one for each case on its own, one for all trials of
//! these cases together, and one that treats the cases as a sample of others like them.

use std::cmp::Ordering;

use model::statistics::{
    BoundedDifference, Bounds, Counted, DiscreteTest, estimate, fisher_of_tables, holm_of_tests, normalised_gain,
    sign_flip,
};
use model::{Outcome, OutcomeCounts};

use super::{MAX_SUGGESTED_CASES, MIN_CASES, NARROW, NEGLIGIBLE, NOISE, QUANTILES, UNLIKELY, Words, chance};
use crate::counts::outcomes;
use crate::format::{self, counted, gain, gains, percent};

/// Trials of a case on one side.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct CaseSide {
    /// Results of the first attempts. A trial without a result may have passed.
    pub(crate) counts: Counted,
    /// Trials by their final outcome.
    pub(crate) by_outcome: OutcomeCounts,
    /// Scores of the graded trials, each as a share of its maximum.
    scores: Vec<Bounds>,
}

impl CaseSide {
    /// Adds a trial with the outcome of its first attempt, its final outcome and its score.
    pub(crate) fn add(&mut self, first: Outcome, outcome: Outcome, score: Option<Bounds>) {
        self.counts.add(first);
        self.by_outcome[outcome] += 1;
        self.scores.extend(score);
    }

    /// Returns the number of trials.
    pub(crate) fn trials(&self) -> u64 {
        self.by_outcome.sum(|_| true) as u64
    }

    /// Returns the number of trials with a result.
    pub(crate) fn decided(&self) -> u64 {
        self.counts.passed + self.counts.failed
    }

    /// Returns the bounds of the mean score; `None` if no trial has one. A trial without a score may have any.
    pub(crate) fn score(&self) -> Option<Bounds> {
        let missing = self.counts.trials().saturating_sub(self.scores.len() as u64);
        let missing = std::iter::repeat_n(Bounds::UNKNOWN_SHARE, usize::try_from(missing).unwrap_or(0));
        if self.scores.is_empty() { None } else { Bounds::mean(self.scores.iter().copied().chain(missing)) }
    }

    /// Returns `true` if a trial passed after its first attempt.
    fn has_passed_later(&self) -> bool {
        self.by_outcome[Outcome::Passed] as u64 > self.counts.passed
    }

    /// Returns `true` if a trial has no result, or a score is not known exactly.
    pub(crate) fn is_open(&self) -> bool {
        self.counts.unknown > 0 || self.scores.iter().any(|score| score.value().is_none())
    }

    /// Returns the side if every trial without a result had failed, and every score were the lowest possible one.
    pub(crate) fn at_worst(&self) -> Self {
        let Counted { passed, failed, unknown } = self.counts;
        let missing = self.counts.trials().saturating_sub(self.scores.len() as u64);
        let missing = if self.scores.is_empty() { 0 } else { usize::try_from(missing).unwrap_or(0) };
        let lowest = self.scores.iter().map(|score| Bounds::exact(score.min));
        Self {
            counts: Counted { passed, failed: failed + unknown, unknown: 0 },
            by_outcome: self.by_outcome,
            scores: lowest.chain(std::iter::repeat_n(Bounds::exact(0.0), missing)).collect(),
        }
    }

    /// Returns `true` if a score is neither 0 nor 1, so that it says more than the outcome.
    fn is_partial(&self) -> bool {
        self.scores.iter().any(|score| score.value().is_none_or(|share| share > 0.0 && share < 1.0))
    }
}

/// A case on both sides.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PairedCase<'a> {
    pub(crate) name: &'a str,
    pub(crate) before: &'a CaseSide,
    pub(crate) after: &'a CaseSide,
    pub(crate) test: Option<CaseTest>,
}

/// Result of the test of a case by its own trials.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct CaseTest {
    /// p-value of Fisher's exact test of the passed trials. Trials without a result are counted in the way that makes
    /// the change smaller.
    pub(crate) p_value: f64,
    /// The p-value, adjusted for the number of cases that are tested at once.
    pub(crate) adjusted_p_value: f64,
}

impl CaseTest {
    /// Returns `true` if the change of the case is more than chance.
    pub(crate) fn is_certain(&self) -> bool {
        self.adjusted_p_value < UNLIKELY
    }
}

impl PairedCase<'_> {
    /// Returns `true` if both sides have a trial that counts.
    fn is_paired(&self) -> bool {
        self.before.counts.trials() > 0 && self.after.counts.trials() > 0
    }

    /// Returns the change of the pass rate; `None` if it depends on trials without a result.
    pub(crate) fn change(&self) -> Option<Ordering> {
        Counted::change(self.before.counts, self.after.counts)
    }

    /// Returns the difference in the share of passed trials.
    fn difference(&self) -> Option<Bounds> {
        Some(self.after.counts.bounds()? - self.before.counts.bounds()?)
    }

    /// Returns the passed trials and all trials of both sides. Trials without a result are counted in the way that
    /// makes a difference in this direction smaller.
    pub(crate) fn table_towards(&self, direction: Ordering) -> ([u64; 2], [u64; 2]) {
        let (before, after) = (self.before.counts, self.after.counts);
        let passed = match direction {
            Ordering::Less => [before.passed, after.passed + after.unknown],
            Ordering::Greater => [before.passed + before.unknown, after.passed],
            Ordering::Equal => [before.passed, after.passed],
        };
        (passed, [before.trials(), after.trials()])
    }

    /// Returns the mean scores of both sides; `None` if neither has one although all trials have a result. A side without
    /// one, such as when all its trials are broken, may have any.
    fn scores(&self) -> Option<[Bounds; 2]> {
        let (before, after) = (self.before.score(), self.after.score());
        let known = before.or(after).is_some() || self.before.counts.unknown + self.after.counts.unknown > 0;
        known.then(|| [before, after].map(|score| score.unwrap_or(Bounds::UNKNOWN_SHARE)))
    }

    fn discrete_test(&self) -> Option<DiscreteTest> {
        self.is_paired().then(|| DiscreteTest::of_counted([self.before.counts, self.after.counts]))
    }

    /// Returns `true` if the case went from passed to failed with a single trial on each side.
    fn failed_once(&self) -> bool {
        self.changed_once(Ordering::Less)
    }

    /// Returns `true` if the case went from failed to passed with a single trial on each side.
    fn passed_once(&self) -> bool {
        self.changed_once(Ordering::Greater)
    }

    fn changed_once(&self, direction: Ordering) -> bool {
        let only = |counts: Counted| counts.trials() == 1;
        self.change() == Some(direction) && only(self.before.counts) && only(self.after.counts)
    }

    /// Returns `true` if only the first side has a result.
    pub(crate) fn lost_its_result(&self) -> bool {
        self.before.decided() > 0 && self.after.decided() == 0 && self.after.trials() > 0
    }
}

/// Tests each case by its own trials, with the correction for testing all of them at once.
pub(crate) fn tests(cases: &[PairedCase<'_>]) -> Vec<Option<CaseTest>> {
    let tests: Vec<Option<DiscreteTest>> = cases.iter().map(PairedCase::discrete_test).collect();
    let mut adjusted = holm_of_tests(&tests.iter().flatten().copied().collect::<Vec<_>>()).into_iter();
    let with_adjusted = |test: Option<DiscreteTest>| {
        let p_value = test?.p_value;
        Some(CaseTest { p_value, adjusted_p_value: adjusted.next()? })
    };
    tests.into_iter().map(with_adjusted).collect()
}

/// Result of a comparison over all cases.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Decision {
    /// Number of cases with trials on both sides.
    cases: u64,
    /// Results of these cases: the second side, then the first.
    counts: [Counted; 2],
    /// True if a trial passed after its first attempt, so that the results are those of first attempts.
    is_repeated: bool,
    /// True if each side has one trial of every case.
    is_single: bool,
    /// Differences of the cases in the share of passed trials.
    differences: Vec<Bounds>,
    /// Mean of these differences, and the test for other cases like these.
    pub(crate) passed: Option<BoundedDifference>,
    /// p-value for exactly these cases.
    pub(crate) same_cases_p_value: Option<f64>,
    /// Difference in the mean score, if a score says more than the outcome.
    pub(crate) score: Option<BoundedDifference>,
    /// Mean scores of the first side and of the second.
    pub(crate) scores: Option<[Bounds; 2]>,
    /// True if the results decided how many trials ran, so that only [`Self::same_cases_p_value`] is valid.
    pub(crate) is_sequential: bool,
    /// True if both sides grade the same evidence, so that no difference is chance.
    is_exact: bool,
}

/// Conclusion from the trials.
enum Conclusion<'a> {
    /// The second side is better or worse over all cases. It is the opposite in the listed ones.
    Over(Ordering, Vec<&'a PairedCase<'a>>),
    /// The second side is worse or better in single cases.
    In([Vec<&'a PairedCase<'a>>; 2]),
    /// The mean score is lower or higher.
    Score(Ordering),
    /// Every case has the same results on both sides.
    Same,
    /// Every case passes equally often on both sides, but the scores may differ.
    SamePasses,
    /// There is no difference worth mentioning; the true difference is in this interval.
    Negligible([f64; 2]),
    Open,
}

/// Returns `true` if a case has a result on both sides.
fn compares(cases: &[PairedCase<'_>]) -> bool {
    cases.iter().any(|case| case.before.decided() > 0 && case.after.decided() > 0)
}

/// Says why nothing was compared.
fn nothing(cases: &[PairedCase<'_>]) -> String {
    let is_common = |case: &PairedCase<'_>| case.before.trials() > 0 && case.after.trials() > 0;
    let reason = if cases.is_empty() {
        "there is no case to compare"
    } else if cases.iter().any(is_common) {
        "no case has a result on both sides"
    } else {
        "the two sides have no case in common"
    };
    format!("Nothing was compared: {reason}")
}

/// Returns the direction of a difference; equal if it may be 0.
fn direction(difference: &BoundedDifference) -> Ordering {
    if difference.bounds.max < -NOISE {
        Ordering::Less
    } else if difference.bounds.min > NOISE {
        Ordering::Greater
    } else {
        Ordering::Equal
    }
}

impl Decision {
    pub(crate) fn of(cases: &[PairedCase<'_>]) -> Self {
        let paired: Vec<&PairedCase<'_>> = cases.iter().filter(|case| case.is_paired()).collect();
        let mut counts = [Counted::default(); 2];
        for case in &paired {
            counts[0] += case.after.counts;
            counts[1] += case.before.counts;
        }
        let differences: Vec<Bounds> = paired.iter().filter_map(|case| case.difference()).collect();
        let passed = BoundedDifference::of_shares(&differences);
        let of_tables = |passed: BoundedDifference| match direction(&passed) {
            Ordering::Equal => 1.0,
            direction => fisher_of_tables(&paired.iter().map(|case| case.table_towards(direction)).collect::<Vec<_>>()),
        };
        let scores: Vec<[Bounds; 2]> = paired.iter().filter_map(|case| case.scores()).collect();
        let score_differences: Vec<Bounds> = scores.iter().map(|[before, after]| *after - *before).collect();
        let is_partial = paired.iter().any(|case| case.before.is_partial() || case.after.is_partial());
        let mean_score = |side: usize| Bounds::mean(scores.iter().map(|scores| scores[side]));
        Self {
            cases: paired.len() as u64,
            counts,
            is_repeated: paired.iter().any(|case| case.before.has_passed_later() || case.after.has_passed_later()),
            is_single: paired.iter().all(|case| case.before.counts.trials() == 1 && case.after.counts.trials() == 1),
            differences,
            passed,
            same_cases_p_value: passed.map(of_tables),
            // The test of the scores is slow.
            score: if is_partial { BoundedDifference::of_shares(&score_differences) } else { None },
            scores: mean_score(0).zip(mean_score(1)).map(<[Bounds; 2]>::from),
            is_sequential: false,
            is_exact: false,
        }
    }

    /// Returns the result for two sides that grade the same evidence.
    pub(crate) fn exact(self) -> Self {
        Self { is_exact: true, ..self }
    }

    /// Returns `true` if both sides grade the same evidence.
    pub(crate) fn is_exact(&self) -> bool {
        self.is_exact
    }

    /// Returns the result without tests that are valid only for a fixed number of trials.
    pub(crate) fn sequential(self, same_cases_p_value: Option<f64>) -> Self {
        let without_test = |difference: BoundedDifference| BoundedDifference { ci95: None, p_value: 1.0, ..difference };
        Self {
            passed: self.passed.map(without_test),
            same_cases_p_value,
            score: self.score.map(without_test),
            is_sequential: true,
            ..self
        }
    }

    /// Returns `true` if the share of passed trials or the mean score of the second side is significantly lower, and
    /// by more than `by`, whatever the trials without a result would show.
    pub(crate) fn is_lower_by(&self, by: f64) -> bool {
        let is_lower = |difference: &BoundedDifference, p_value: f64| {
            (self.is_exact || p_value < UNLIKELY) && difference.bounds.max < -by - NOISE
        };
        self.passed.is_some_and(|passed| is_lower(&passed, self.least_p_value(&passed)))
            || self.score.is_some_and(|score| is_lower(&score, score.p_value))
    }

    fn least_p_value(&self, passed: &BoundedDifference) -> f64 {
        self.same_cases_p_value.map_or(passed.p_value, |p_value| passed.p_value.min(p_value))
    }

    fn conclusion<'a>(&self, cases: &'a [PairedCase<'a>]) -> Conclusion<'a> {
        let Some(passed) = self.passed else { return Conclusion::Open };
        let certain = |direction: Ordering| -> Vec<&'a PairedCase<'a>> {
            let is_certain = |case: &&PairedCase<'_>| self.is_exact || case.test.is_some_and(|test| test.is_certain());
            cases.iter().filter(is_certain).filter(|case| case.change() == Some(direction)).collect()
        };
        let direction = direction(&passed);
        if direction != Ordering::Equal && (self.is_exact || self.least_p_value(&passed) < UNLIKELY) {
            return Conclusion::Over(direction, certain(direction.reverse()));
        }
        let (worse, better) = (certain(Ordering::Less), certain(Ordering::Greater));
        if !worse.is_empty() || !better.is_empty() {
            return Conclusion::In([worse, better]);
        }
        if let Some(score) = self.score.filter(|score| score.p_value < UNLIKELY) {
            return Conclusion::Score(self::direction(&score));
        }
        let scores_equally = |case: &PairedCase<'_>| {
            let scores = case.before.score().zip(case.after.score());
            let score = scores.map_or(Bounds::exact(0.0), |(before, after)| after - before);
            score.max <= NEGLIGIBLE && score.min >= -NEGLIGIBLE
        };
        let paired = || cases.iter().filter(|case| case.is_paired());
        if paired().all(|case| case.change() == Some(Ordering::Equal)) {
            return if paired().all(scores_equally) { Conclusion::Same } else { Conclusion::SamePasses };
        }
        let is_small = passed.bounds.min >= -NEGLIGIBLE && passed.bounds.max <= NEGLIGIBLE;
        match passed.ci95 {
            Some([low, high]) if is_small && low >= -NARROW && high <= NARROW => Conclusion::Negligible([low, high]),
            _ => Conclusion::Open,
        }
    }

    /// Says in a sentence how the second side differs from the first and what happened to the cases that do not show
    /// it, then how certain this is. `left_out` describes cases that are not in `cases`. `unused` is the number of
    /// trials in which the agent should have used the skill, if it never did.
    pub(crate) fn sentence(
        &self,
        words: &Words<'_>,
        cases: &[PairedCase<'_>],
        left_out: &[String],
        unused: Option<u64>,
    ) -> String {
        let compares = compares(cases);
        let conclusion = self.conclusion(cases);
        let mut clauses = vec![match unused {
            _ if !compares => nothing(cases),
            Some(trials) => {
                let trials = counted(usize::try_from(trials).unwrap_or(usize::MAX), "trial");
                format!("Cannot tell {}: the agent never used it in {trials} that expected it", words.question)
            }
            None => {
                let all = left_out.is_empty() && cases.iter().all(PairedCase::is_paired);
                self.describe(words, &conclusion, if all { "case" } else { "compared case" })
            }
        }];
        let is_worse = matches!(conclusion, Conclusion::Over(Ordering::Less, _));
        clauses.extend(events(words, cases, is_worse));
        clauses.extend_from_slice(left_out);
        let mut sentence = format!("{}.", clauses.join("; "));
        if !compares || unused.is_some() {
            return sentence;
        }
        if let Conclusion::Over(Ordering::Greater, _) = conclusion
            && let Some(gain) = self.normalised_gain(cases).filter(|_| words.has_gain)
        {
            sentence.push_str(&format!(" This is {} of the possible improvement.", percent(gain)));
        }
        let questions = match conclusion {
            _ if self.is_exact => Some("Both grade the same evidence, so no difference is chance.".to_owned()),
            Conclusion::Same | Conclusion::SamePasses | Conclusion::Negligible(_) => None,
            // The answers about passed trials would contradict the result, which is about the scores.
            Conclusion::Score(_) => self.score.map(|score| {
                let (chance, p_value) = (chance(score.p_value), format::p_value(score.p_value));
                format!("This change of the score is {chance} (p {p_value}); the passed trials alone do not show it.")
            }),
            Conclusion::Over(..) | Conclusion::In(_) | Conclusion::Open => self.questions(),
        };
        sentence.extend(questions.map(|questions| format!(" {questions}")));
        sentence
    }

    /// Returns the result in a word or two.
    pub(crate) fn word(&self, cases: &[PairedCase<'_>]) -> &'static str {
        if !compares(cases) {
            return "NOTHING COMPARED";
        }
        let of = |direction: Ordering| if direction == Ordering::Less { "WORSE" } else { "BETTER" };
        match self.conclusion(cases) {
            Conclusion::Over(direction, _) | Conclusion::Score(direction) => of(direction),
            Conclusion::In([worse, _]) => of(if worse.is_empty() { Ordering::Greater } else { Ordering::Less }),
            Conclusion::Same | Conclusion::Negligible(_) => "NO DIFFERENCE",
            Conclusion::SamePasses | Conclusion::Open => "CANNOT TELL",
        }
    }

    /// `case` is the word for one of the cases that are compared.
    fn describe(&self, words: &Words<'_>, conclusion: &Conclusion<'_>, case: &str) -> String {
        let passed = self.passes(words);
        let side = |direction: Ordering| if direction == Ordering::Less { words.worse } else { words.better };
        match conclusion {
            Conclusion::Over(direction, others) => {
                let mut text = format!("{}: {passed}", side(*direction));
                if !others.is_empty() {
                    let than = if *direction == Ordering::Less { "better" } else { "worse" };
                    text.push_str(&format!(", but it is {than} in {}", describe_cases(words, others)));
                }
                text
            }
            Conclusion::In([worse, better]) => match (&worse[..], &better[..]) {
                (worse, []) => format!("{} in {}", words.worse, describe_cases(words, worse)),
                ([], better) => format!("{} in {}", words.better, describe_cases(words, better)),
                (worse, better) => format!(
                    "{} in {}, but better in {}",
                    words.worse,
                    describe_cases(words, worse),
                    describe_cases(words, better)
                ),
            },
            Conclusion::Score(direction) => {
                let scores = self.scores.map(|scores| scores.map(share));
                let scores = scores.map_or_else(String::new, |[before, after]| {
                    format!("the mean score changed from {before} to {after}, and ")
                });
                format!("{}: {scores}{passed}", side(*direction))
            }
            Conclusion::Same => format!("No {case} changed: {}", self.passes_of_both()),
            Conclusion::SamePasses => {
                let is_known = self.score.is_some_and(|score| score.mean.is_some());
                let why = if is_known { "which may be chance" } else { "because assertions are undecided" };
                let scores = self.scores.map(|scores| scores.map(share)).map_or_else(String::new, |[before, after]| {
                    format!("; the mean score is {after} {}, {before} {}, {why}", words.after, words.before)
                });
                format!("No {case} passes more or less often: {}{scores}", self.passes_of_both())
            }
            Conclusion::Negligible(ends) => {
                format!(
                    "No difference worth mentioning: {passed} (the true difference is probably {} points)",
                    gains(*ends)
                )
            }
            Conclusion::Open => match self.possible_direction() {
                Some(direction) => {
                    let change = side(direction);
                    let change =
                        change.strip_prefix("The ").map_or_else(|| change.into(), |rest| format!("the {rest}"));
                    format!("Cannot tell yet whether {change}: {passed}")
                }
                None => format!("Cannot tell yet {}: {passed}", words.question),
            },
        }
    }

    /// Returns the only direction in which the cases can differ, if trials without a result leave open whether they do.
    fn possible_direction(&self) -> Option<Ordering> {
        let Bounds { min, max } = self.passed?.bounds;
        match (min < -NOISE, max > NOISE) {
            (true, false) if max >= -NOISE => Some(Ordering::Less),
            (false, true) if min <= NOISE => Some(Ordering::Greater),
            _ => None,
        }
    }

    /// Says how many cases passed on both sides, or how many trials if cases have several.
    fn passes(&self, words: &Words<'_>) -> String {
        let [after, before] = self.counts;
        let Words { after: is, before: was, .. } = words;
        let first = if self.is_repeated { " at the first attempt" } else { "" };
        if self.is_single {
            return format!(
                "{} of {} passed{first} {is}, {} of {} {was}",
                possible(after),
                counted_cases(after.trials()),
                possible(before),
                before.trials()
            );
        }
        let share = |counts: Counted| counts.bounds().map_or_else(|| "n/a".to_owned(), share);
        format!(
            "in {}, {} of trials passed{first} {is} ({} of {}), {} {was} ({} of {})",
            counted_cases(self.cases),
            share(after),
            possible(after),
            after.trials(),
            share(before),
            possible(before),
            before.trials()
        )
    }

    /// Says how many cases passed on both sides, if the numbers are the same.
    fn passes_of_both(&self) -> String {
        let [after, before] = self.counts;
        let first = if self.is_repeated { " at the first attempt" } else { "" };
        if self.is_single {
            return format!("{} of {} passed{first} in both", after.passed, counted_cases(after.trials()));
        }
        let share = before.bounds().map_or_else(|| "n/a".to_owned(), share);
        format!("in {}, {share} of trials passed{first} in both", counted_cases(self.cases))
    }

    /// Answers two questions: is the difference in these cases chance, and would other cases like them show it?
    fn questions(&self) -> Option<String> {
        let passed = self.passed?;
        let direction = direction(&passed);
        if direction == Ordering::Equal {
            let unknown: u64 = self.counts.iter().map(|counts| counts.unknown).sum();
            if unknown > 0 {
                let trials = counted(usize::try_from(unknown).unwrap_or(usize::MAX), "trial");
                let have = if unknown == 1 { "has" } else { "have" };
                return Some(format!(
                    "{trials} {have} no result, so the difference in these cases is somewhere between {} and {} points.",
                    gain(passed.bounds.min),
                    gain(passed.bounds.max)
                ));
            }
            return Some(match passed.ci95 {
                Some([low, high]) => format!(
                    "Other cases like these: the true difference is probably between {} and {} points.",
                    gain(low),
                    gain(high)
                ),
                None if self.is_sequential => return None,
                None => "Other cases like this one: one case is too few to tell.".to_owned(),
            });
        }
        let answer = |p_value: f64| format!("{} (p {})", chance(p_value), format::p_value(p_value));
        let these = self.same_cases_p_value.map(|p_value| format!("These cases: {}.", answer(p_value)));
        let others = (!self.is_sequential).then(|| {
            let more =
                (passed.p_value >= UNLIKELY).then(|| format!("; to tell, {}", more_cases(&self.nearest(direction))));
            format!("Other cases like them: {}{}.", answer(passed.p_value), more.unwrap_or_default())
        });
        let answers: Vec<String> = [these, others].into_iter().flatten().collect();
        (!answers.is_empty()).then(|| answers.join(" "))
    }

    /// Returns the difference of each case that is nearest to none, for a difference in this direction.
    fn nearest(&self, direction: Ordering) -> Vec<f64> {
        let end = |bounds: &Bounds| if direction == Ordering::Less { bounds.max } else { bounds.min };
        self.differences.iter().map(end).collect()
    }

    /// Returns the share of the possible improvement that the second side achieved, computed from the means over the
    /// cases; `None` if a trial has no result, or all trials pass on both sides.
    fn normalised_gain(&self, cases: &[PairedCase<'_>]) -> Option<f64> {
        let mean = |side: fn(&PairedCase<'_>) -> Counted| {
            let rates = cases.iter().filter(|case| case.is_paired()).filter_map(|case| side(case).bounds());
            Bounds::mean(rates)?.value()
        };
        normalised_gain(mean(|case| case.before.counts)?, mean(|case| case.after.counts)?)
    }
}

/// Says what happened to cases that the result does not show: a pass that became a failure, unless the result is that
/// the second side is worse; cases without a result on one side; trials without a result; cases that only one side has.
fn events(words: &Words<'_>, cases: &[PairedCase<'_>], is_worse: bool) -> Vec<String> {
    let [first, second] = words.sides;
    // One case is named.
    let named = |cases: &[&PairedCase<'_>], one: &str, many: &str| match cases {
        [case] => format!("case {} {one}", case.name),
        cases => format!("{} {many}", counted(cases.len(), "case")),
    };
    let mut events = Vec::new();
    let failed = select(cases, PairedCase::failed_once);
    if !failed.is_empty() && !is_worse {
        let failed = named(&failed, "failed", "failed");
        events.push(format!("{failed} in {second} and passed in {first}, with one trial each"));
        // Failures alone would suggest that the second side is worse.
        let fixed = select(cases, PairedCase::passed_once);
        if !fixed.is_empty() {
            events.push(format!("{} in {second} and failed in {first}", named(&fixed, "passed", "passed")));
        }
    }
    let lost = select(cases, PairedCase::lost_its_result);
    let gained =
        select(cases, |case| case.before.trials() > 0 && case.before.decided() == 0 && case.after.decided() > 0);
    for (cases, side, name, other, other_name) in
        [(&lost, AFTER, second, BEFORE, first), (&gained, BEFORE, first, AFTER, second)]
    {
        if !cases.is_empty() {
            let outcomes = without_result(&sides(cases, side));
            let failed =
                failed_trials(&sides(cases, other)).map_or_else(String::new, |f| format!("; {f} in {other_name}"));
            events.push(format!("{} no result in {name} ({outcomes}{failed})", named(cases, "has", "have")));
        }
    }
    let never = select(cases, |case| case.is_paired() && case.before.decided() + case.after.decided() == 0);
    if !never.is_empty() {
        let outcomes = without_result(&never.iter().flat_map(|case| [case.before, case.after]).collect::<Vec<_>>());
        events.push(format!("{} no result on either side ({outcomes})", named(&never, "has", "have")));
    }
    for (side, name) in [(AFTER, second), (BEFORE, first)] {
        let paired = cases.iter().filter(|case| case.is_paired()).map(|case| side(case));
        let sides: Vec<&CaseSide> = paired.filter(|side| side.decided() > 0).collect();
        let unknown: u64 = sides.iter().map(|side| side.counts.unknown).sum();
        if unknown > 0 {
            let all: u64 = sides.iter().map(|side| side.counts.trials()).sum();
            let have = if unknown == 1 { "has" } else { "have" };
            let outcomes = without_result(&sides);
            events.push(format!("{unknown} of {all} trials of {name} {have} no result ({outcomes})"));
        }
    }
    let missing = select(cases, |case| case.after.trials() == 0);
    let added = select(cases, |case| case.before.trials() == 0);
    for (cases, side, name) in [(&missing, BEFORE, first), (&added, AFTER, second)] {
        if !cases.is_empty() {
            let failed = failed_trials(&sides(cases, side)).map_or_else(String::new, |failed| format!(" ({failed})"));
            events.push(format!("{} only in {name}{failed}", named(cases, "is", "are")));
        }
    }
    events
}

fn select<'c, 'a>(cases: &'c [PairedCase<'a>], is_meant: impl Fn(&PairedCase<'a>) -> bool) -> Vec<&'c PairedCase<'a>> {
    cases.iter().filter(|case| is_meant(case)).collect()
}

type SideOf = for<'a> fn(&PairedCase<'a>) -> &'a CaseSide;
const BEFORE: SideOf = |case| case.before;
const AFTER: SideOf = |case| case.after;

/// Returns one side of the cases.
fn sides<'a>(cases: &[&PairedCase<'a>], side: SideOf) -> Vec<&'a CaseSide> {
    cases.iter().map(|case| side(case)).collect()
}

/// Counts failed trials: `3 failed`. `None` if there are none.
fn failed_trials(sides: &[&CaseSide]) -> Option<String> {
    let failed: usize = sides.iter().map(|side| side.by_outcome[Outcome::Failed]).sum();
    (failed > 0).then(|| format!("{failed} {}", Outcome::Failed.name()))
}

/// Counts outcomes that are not a result: `2 broken, 1 undecided`.
pub(crate) fn without_result(sides: &[&CaseSide]) -> String {
    let mut all = OutcomeCounts::default();
    sides.iter().for_each(|side| all += side.by_outcome);
    outcomes(all, |outcome| !matches!(outcome, Outcome::Passed | Outcome::Failed)).join(", ")
}

/// Names a single case with its trials, or gives the number of cases.
fn describe_cases(words: &Words<'_>, cases: &[&PairedCase<'_>]) -> String {
    match cases {
        [case] => {
            let passed = |counts: Counted| format!("{} of {}", possible(counts), counts.trials());
            let chance = case.test.map_or_else(String::new, |test| format!(" ({})", chance(test.adjusted_p_value)));
            format!(
                "case {}: {} trials passed {}, {} {}{chance}",
                case.name,
                passed(case.after.counts),
                words.after,
                passed(case.before.counts),
                words.before,
            )
        }
        cases => counted(cases.len(), "case"),
    }
}

/// Formats the number of passed trials, as a range if some have no result.
fn possible(counts: Counted) -> String {
    match counts.unknown {
        0 => counts.passed.to_string(),
        unknown => format!("{} to {}", counts.passed, counts.passed + unknown),
    }
}

/// Formats a share, or the range of shares that trials without a result allow.
fn share(bounds: Bounds) -> String {
    bounds.value().map_or_else(|| format!("{} to {}", percent(bounds.min), percent(bounds.max)), percent)
}

fn counted_cases(count: u64) -> String {
    counted(usize::try_from(count).unwrap_or(usize::MAX), "case")
}

/// Says how many cases that differ would be enough to show the difference for other cases like these.
pub(crate) fn more_cases(differences: &[f64]) -> String {
    let differing: Vec<f64> = differences.iter().copied().filter(|difference| difference.abs() > NOISE).collect();
    match cases_needed(&differing) {
        Some(cases) => {
            format!("about {cases} cases that differ like these would be enough, instead of {}", differing.len())
        }
        None => format!("more than {MAX_SUGGESTED_CASES} cases that differ like these would be needed"),
    }
}

/// Returns how many cases that differ like these are enough to show the difference in four of five repetitions; `None`
/// if more than [`MAX_SUGGESTED_CASES`].
fn cases_needed(differing: &[f64]) -> Option<usize> {
    let model::Estimate { mean, stddev, .. } = estimate(differing)?;
    let spread = stddev.unwrap_or(0.0) / mean;
    let enough = (QUANTILES * spread).powi(2).ceil().max(MIN_CASES);
    if enough > MAX_SUGGESTED_CASES as f64 {
        return None;
    }
    // More cases than there are, even if chance gave the few cases a small spread.
    let mut cases = (enough as usize).max(differing.len() + 1);
    let p_value = |cases: usize| {
        let repeated: Vec<f64> = differing.iter().copied().cycle().take(cases).collect();
        sign_flip(&repeated).unwrap_or(1.0)
    };
    while cases <= MAX_SUGGESTED_CASES {
        if p_value(cases) < UNLIKELY {
            return Some(cases);
        }
        cases += 1 + cases / 10;
    }
    None
}

#[cfg(test)]
mod tests {
    use model::statistics::Chance;

    use super::super::SKILL;
    use super::*;
    use Outcome::{Broken, Failed, Passed, Skipped, Undecided};

    /// Outcomes of the trials of a case without the skill and with it.
    type Case = (Vec<Outcome>, Vec<Outcome>);

    fn sentence(cases: &[Case]) -> String {
        with_cases(cases, |decision, paired| decision.sentence(&SKILL, paired, &[], None))
    }

    fn with_cases<T>(cases: &[Case], of: impl Fn(&Decision, &[PairedCase<'_>]) -> T) -> T {
        let side = |outcomes: &[Outcome]| {
            let mut side = CaseSide::default();
            outcomes.iter().for_each(|outcome| side.add(*outcome, *outcome, None));
            side
        };
        let cases: Vec<(String, CaseSide, CaseSide)> = (1..)
            .zip(cases)
            .map(|(number, (before, after))| (format!("s::c{number}"), side(before), side(after)))
            .collect();
        let mut paired: Vec<PairedCase<'_>> =
            cases.iter().map(|(name, before, after)| PairedCase { name, before, after, test: None }).collect();
        let tests = super::tests(&paired);
        paired.iter_mut().zip(tests).for_each(|(case, test)| case.test = test);
        of(&Decision::of(&paired), &paired)
    }

    /// Returns the sentence about cases with these numbers of passed trials with the skill and without, out of `trials`.
    fn counted_sentence(cases: &[(usize, usize)], trials: usize) -> String {
        let outcomes = |passed: usize| [vec![Passed; passed], vec![Failed; trials - passed]].concat();
        let case = |(with, without): &(usize, usize)| (outcomes(*without), outcomes(*with));
        sentence(&cases.iter().map(case).collect::<Vec<_>>())
    }

    #[test]
    fn the_sentence_answers_both_questions_with_one_p_each() {
        let many = |with: usize, without: usize, of: usize| -> Vec<(usize, usize)> {
            (0..of).map(|index| (usize::from(index < with), usize::from(index < without))).collect()
        };
        let both = |answer: &str| format!("These cases: {answer}. Other cases like them: {answer}.");
        let six = "to tell, about 6 cases that differ like these would be enough, instead of 1.";
        let sure = both("very unlikely to be chance (p 0.004)");
        let likely = both("unlikely to be chance (p 0.031)");
        let open = "Cannot tell yet whether the skill helps";
        for (cases, trials, expected) in [
            (
                many(19, 10, 20),
                1,
                format!(
                    "The skill helps: 19 of 20 cases passed with it, 10 of 20 without. This is 90% of the possible \
                     improvement. {sure}"
                ),
            ),
            (many(0, 6, 8), 1, format!("The skill harms: 0 of 8 cases passed with it, 6 of 8 without. {likely}")),
            (
                many(2, 1, 3),
                1,
                format!(
                    "{open}: 2 of 3 cases passed with it, 1 of 3 without. These cases: may be chance (p 1). Other cases \
                     like them: may be chance (p 1); {six}"
                ),
            ),
            (vec![(0, 0)], 1, "No case changed: 0 of 1 case passed in both.".to_owned()),
            (
                vec![(3, 1), (2, 2)],
                3,
                format!(
                    "{open}: in 2 cases, 83% of trials passed with it (5 of 6), 50% without (3 of 6). These cases: may be \
                     chance (p 0.56). Other cases like them: may be chance (p 1); {six}"
                ),
            ),
            (
                vec![(50, 50), (51, 50), (50, 51), (50, 50), (50, 50), (50, 50)],
                100,
                "No difference worth mentioning: in 6 cases, 50% of trials passed with it (301 of 600), 50% without (301 \
                 of 600) (the true difference is probably -0.7 to +0.7 points)."
                    .to_owned(),
            ),
        ] {
            assert_eq!(counted_sentence(&cases, trials), expected);
        }
    }

    #[test]
    fn a_result_that_only_the_scores_show_has_their_p_and_no_other() {
        let side = |score: f64| {
            let mut side = CaseSide::default();
            side.add(Failed, Failed, Some(Bounds::exact(score)));
            side
        };
        let cases: Vec<(String, CaseSide, CaseSide)> =
            (1..7).map(|number| (format!("s::c{number}"), side(0.25), side(0.5))).collect();
        let paired: Vec<PairedCase<'_>> =
            cases.iter().map(|(name, before, after)| PairedCase { name, before, after, test: None }).collect();
        assert_eq!(
            Decision::of(&paired).sentence(&SKILL, &paired, &[], None),
            "The skill helps: the mean score changed from 25% to 50%, and 0 of 6 cases passed with it, 0 of 6 without. \
             This change of the score is unlikely to be chance (p 0.031); the passed trials alone do not show it."
        );
    }

    #[test]
    fn the_first_sentence_tells_what_happened_to_every_case() {
        let first = |cases: &[Case]| {
            let sentence = sentence(cases);
            sentence.split_inclusive(". ").next().unwrap_or_default().trim_end().to_owned()
        };
        let [with, without] = ["the arm with the skill", "the arm without the skill"];
        let same = || (vec![Passed], vec![Passed]);
        assert_eq!(
            first(&[same(), (vec![Passed], vec![Failed])]),
            format!(
                "Cannot tell yet whether the skill helps: 1 of 2 cases passed with it, 2 of 2 without; case s::c2 failed in \
                 {with} and passed in {without}, with one trial each."
            )
        );
        assert_eq!(
            first(&[(vec![Passed; 2], vec![Broken; 2])]),
            format!(
                "Nothing was compared: no case has a result on both sides; case s::c1 has no result in {with} (2 broken)."
            )
        );
        assert_eq!(
            first(&[same(), (vec![Passed], vec![Skipped]), (vec![Passed], vec![]), (vec![], vec![Passed])]),
            format!(
                "No compared case changed: 1 of 1 case passed in both; case s::c2 has no result in {with} (1 skipped); case \
                 s::c3 is only in {without}; case s::c4 is only in {with}."
            )
        );
        assert_eq!(
            first(&[(vec![Passed; 4], vec![Passed, Passed, Broken, Undecided])]),
            format!(
                "Cannot tell yet whether the skill harms: in 1 case, 50% to 100% of trials passed with it (2 to 4 of 4), \
                 100% without (4 of 4); 2 of 4 trials of {with} have no result (1 undecided, 1 broken)."
            )
        );
        assert_eq!(
            first(&[(vec![Undecided], vec![Broken])]),
            "Nothing was compared: no case has a result on both sides; case s::c1 has no result on either side (1 \
             undecided, 1 broken)."
        );
        assert_eq!(
            first(&[same(), (vec![Undecided], vec![Failed]), (vec![Failed; 2], vec![])]),
            format!(
                "Cannot tell yet whether the skill harms: 1 of 2 cases passed with it, 1 to 2 of 2 without; case s::c2 has no \
                 result in {without} (1 undecided; 1 failed in {with}); case s::c3 is only in {without} (2 failed)."
            )
        );
        assert_eq!(
            first(&[(vec![Passed], vec![])]),
            format!("Nothing was compared: the two sides have no case in common; case s::c1 is only in {without}.")
        );
    }

    #[test]
    fn results_of_first_attempts_are_named_if_a_later_one_passed() {
        let side = |first: Outcome| {
            let mut side = CaseSide::default();
            side.add(first, Passed, None);
            side
        };
        let (before, after) = (side(Passed), side(Failed));
        let paired = [PairedCase { name: "s::c", before: &before, after: &after, test: None }];
        let sentence = Decision::of(&paired).sentence(&SKILL, &paired, &[], None);
        assert!(sentence.contains("0 of 1 case passed at the first attempt with it, 1 of 1 without"), "{sentence}");
    }

    #[test]
    fn the_suggested_number_of_cases_is_enough_and_ties_do_not_count() {
        for differing in [&[1.0][..], &[1.0, 1.0, -1.0], &[0.5, 0.3], &[1.0, 1.0, 1.0, 1.0, -0.1], &[0.2, -0.1, 0.4]] {
            let cases = cases_needed(differing).unwrap();
            let repeated: Vec<f64> = differing.iter().copied().cycle().take(cases).collect();
            assert!(sign_flip(&repeated).unwrap() < UNLIKELY && cases > differing.len(), "{differing:?}: {cases}");
        }
        assert_eq!(
            more_cases(&[1.0, 0.0, 0.0, 0.0]),
            "about 6 cases that differ like these would be enough, instead of 1"
        );
        assert_eq!(more_cases(&[1.0, -0.99]), "more than 1000 cases that differ like these would be needed");
    }

    #[test]
    fn missing_evidence_only_widens_bounds_and_never_makes_a_side_better_or_worse() {
        let mut chance = Chance::new(7);
        for round in 0..1500 {
            let (cases, trials) = (1 + chance.below(6) as usize, 1 + chance.below(5) as usize);
            // Often a large difference, so that there is something to lose.
            let rates = [chance.unit().sqrt(), chance.unit().powi(2)];
            let mut side = |rate: f64| -> Vec<Outcome> {
                (0..trials).map(|_| if chance.unit() < rate { Passed } else { Failed }).collect()
            };
            let whole: Vec<Case> = (0..cases).map(|_| (side(rates[0]), side(rates[1]))).collect();
            let mut lose = |outcomes: &[Outcome]| -> Vec<Outcome> {
                let lost = [Undecided, Broken];
                outcomes
                    .iter()
                    .map(|one| if chance.below(4) == 0 { lost[chance.below(2) as usize] } else { *one })
                    .collect()
            };
            let partial: Vec<Case> = whole.iter().map(|(before, after)| (lose(before), lose(after))).collect();
            let decide =
                |cases: &[Case]| with_cases(cases, |decision, paired| (decision.passed, decision.word(paired)));
            let ((known, full), (bounded, word)) = (decide(&whole), decide(&partial));
            let (known, bounded) = (known.unwrap().bounds, bounded.unwrap().bounds);
            let is_within = bounded.min <= known.min + NOISE && known.max <= bounded.max + NOISE;
            assert!(is_within, "{round}: {known:?} is not in {bounded:?}");
            let is_answer = matches!(word, "WORSE" | "BETTER");
            assert!(!is_answer || word == full, "{round}: {full} became {word}: {whole:?} {partial:?}");
        }
    }
}
