//! Comparison of two arms or runs by matched pairs of trials, evaluated after every round.

use std::iter::Sum;
use std::ops::Add;

use serde::{Deserialize, Serialize};

use super::e_process::{MOST, last_rejected};

/// Number of bets that the evidence averages over.
const BETS: usize = 128;

/// Pairs of trials, each of the same case in two arms, by which of the two trials passed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Pairs {
    /// Pairs in which only the first arm's trial passed.
    pub better: u64,
    /// Pairs in which only the second arm's trial passed.
    pub worse: u64,
    /// Pairs in which both passed or both failed.
    pub same: u64,
}

impl Pairs {
    /// Returns the number of pairs.
    pub fn count(self) -> u64 {
        self.better + self.worse + self.same
    }

    /// Returns the difference of the pass rates, first − second; `None` for no pairs.
    pub fn difference(self) -> Option<f64> {
        let count = self.count();
        (count > 0).then(|| (self.better as f64 - self.worse as f64) / count as f64)
    }

    /// Returns the pairs with the arms swapped.
    pub fn swapped(self) -> Self {
        Self { better: self.worse, worse: self.better, same: self.same }
    }
}

impl Add for Pairs {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { better: self.better + other.better, worse: self.worse + other.worse, same: self.same + other.same }
    }
}

impl Sum for Pairs {
    fn sum<I: Iterator<Item = Self>>(pairs: I) -> Self {
        pairs.fold(Self::default(), Add::add)
    }
}

/// Returns the evidence that the first arm's pass rate exceeds the second's by more than `limit`: an e-value against the
/// null hypothesis that the mean difference of the cases' pass rates is at most `limit`.
///
/// **Formula.** Let D be 1 for a better pair, −1 for a worse one and 0 otherwise, and m the limit. The e-value is the
/// average over 128 bets κ between 0 and 1 of the product over pairs of 1 − κ + κ(1 + D)/(1 + m): betting on the mean of
/// a bounded value (Waudby-Smith and Ramdas 2024). For a limit of 0, pairs without a difference have the factor 1, and
/// the e-value is that of McNemar's (1947) question with a beta mixture: is a differing pair likelier than one half to
/// be better?
///
/// **Why the false-alarm rate holds for several cases.** Decide only after full rounds: one pair of every case. The
/// trials of a round are independent, so for one κ the mean of the round's product is Π(1 − κ + κ(1 + dᵢ)/(1 + m)),
/// where dᵢ is the true difference of case i. By the inequality of arithmetic and geometric means this is at most
/// (1 − κ + κ(1 + d)/(1 + m))^cases, where d is the mean of the dᵢ, and so at most 1 if d ≤ m. The product is a
/// non-negative supermartingale over rounds, and so is the average over κ, and Ville's inequality (1939) applies. The
/// cases may differ in difficulty and in the effect: the statement is about their mean difference, with equal weights.
///
/// Every factor decreases if the limit increases, so the e-value does too.
pub fn e_difference_above(limit: f64, pairs: Pairs) -> f64 {
    Bets::against(limit).e_value(pairs)
}

/// Bets against the null hypothesis that a difference is at most a limit.
#[derive(Debug, Clone, PartialEq)]
struct Bets {
    /// 1 + the limit.
    scale: f64,
    /// For each bet, the logarithms of the factors for a better, a worse and an equal pair.
    logs: [[f64; 3]; BETS],
}

impl Bets {
    fn against(limit: f64) -> Self {
        let scale = 1.0 + limit.clamp(-1.0, 1.0);
        let mut logs = [[0.0; 3]; BETS];
        for (index, logs) in logs.iter_mut().enumerate().filter(|_| scale > 0.0) {
            let bet = (index as f64 + 0.5) / BETS as f64;
            let rest = 1.0 - bet;
            *logs = [rest + 2.0 * bet / scale, rest, rest + bet / scale].map(f64::ln);
        }
        Self { scale, logs }
    }

    fn e_value(&self, pairs: Pairs) -> f64 {
        if self.scale == 0.0 {
            return if pairs.better + pairs.same > 0 { MOST } else { 1.0 / (pairs.worse as f64 + 1.0) };
        }
        let counts = [pairs.better, pairs.worse, pairs.same].map(|count| count as f64);
        let log = |[better, worse, same]: &[f64; 3]| better * counts[0] + worse * counts[1] + same * counts[2];
        let mean = self.logs.iter().map(|logs| log(logs).exp()).sum::<f64>() / BETS as f64;
        mean.min(MOST)
    }
}

/// Statements about a difference that the evidence proves, each with bets against its opposite.
#[derive(Debug, Clone)]
pub(super) struct Statements {
    /// Evidence that is enough for the two-sided statements.
    enough: f64,
    above_zero: Bets,
    above_minus_margin: Bets,
}

impl Statements {
    /// Returns what is shown about whether the arms differ.
    pub(super) fn difference(&self, bounds: PairBounds) -> Option<ComparisonDecision> {
        let PairBounds { worst, best } = bounds;
        let is_shown = |bets: &Bets, pairs: Pairs| bets.e_value(pairs) >= self.enough;
        if is_shown(&self.above_zero, worst) {
            Some(ComparisonDecision::Better)
        } else if is_shown(&self.above_zero, best.swapped()) {
            Some(ComparisonDecision::Worse)
        } else {
            let is_equivalent =
                is_shown(&self.above_minus_margin, worst) && is_shown(&self.above_minus_margin, best.swapped());
            is_equivalent.then_some(ComparisonDecision::Equivalent)
        }
    }
}

/// Returns the confidence sequence of the difference of pass rates, first − second: an interval that contains the true
/// mean difference after every round at once, with a probability of at least 1 − `alpha`.
///
/// Contains every difference for which neither the evidence of a larger nor that of a smaller one reaches 2/α; see
/// [`e_difference_above`]. `[-1, 1]` for no pairs.
pub fn difference_sequence(pairs: Pairs, alpha: f64) -> [f64; 2] {
    let limit = 2.0 / alpha.clamp(0.0, 1.0);
    let low = |pairs: Pairs| {
        let Some(difference) = pairs.difference() else { return -1.0 };
        last_rejected([-1.0, difference], |limit_of_null| e_difference_above(limit_of_null, pairs) >= limit)
    };
    [low(pairs), -low(pairs.swapped())]
}

/// Pairs in which some trials may be undecided, counted in the two extreme ways.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PairBounds {
    /// Pairs if undecided trials failed in the first arm and passed in the second.
    pub worst: Pairs,
    /// Pairs if undecided trials passed in the first arm and failed in the second.
    pub best: Pairs,
}

impl PairBounds {
    /// Adds a pair: a trial of the first arm and one of the second. `Some(true)` means passed, and `None` undecided.
    pub fn push(&mut self, first: Option<bool>, second: Option<bool>) {
        let add = |pairs: &mut Pairs, first: bool, second: bool| match (first, second) {
            (true, false) => pairs.better += 1,
            (false, true) => pairs.worse += 1,
            _ => pairs.same += 1,
        };
        add(&mut self.worst, first.unwrap_or(false), second.unwrap_or(true));
        add(&mut self.best, first.unwrap_or(true), second.unwrap_or(false));
    }

    /// Returns the [`difference_sequence`], widened to cover all possible results of the undecided trials.
    pub fn interval(self, alpha: f64) -> [f64; 2] {
        [difference_sequence(self.worst, alpha)[0], difference_sequence(self.best, alpha)[1]]
    }
}

impl Add for PairBounds {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { worst: self.worst + other.worst, best: self.best + other.best }
    }
}

impl Sum for PairBounds {
    fn sum<I: Iterator<Item = Self>>(pairs: I) -> Self {
        pairs.fold(Self::default(), Add::add)
    }
}

/// Sequential comparison of two arms.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// Largest acceptable probability of a wrong statement.
    pub alpha: f64,
    /// Difference of pass rates that does not matter, for example 0.05.
    pub margin: f64,
    /// Maximum number of pairs of each case.
    pub max_pairs: u64,
}

/// State of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ComparisonDecision {
    /// The first arm is shown to pass more often.
    Better,
    /// The first arm is shown to pass less often.
    Worse,
    /// The arms are shown to differ by less than the margin.
    Equivalent,
    /// Nothing is shown, and the remaining pairs cannot change that, or none remain.
    Futility,
    /// Undecided: run another round.
    Continue,
}

impl Comparison {
    /// Decides whether the arms differ, after any number of rounds. Each case is given with its pairs. The cases are
    /// pooled, so the result holds for these cases. For a statement about other cases like these, count each case once:
    /// use [`e_above`](super::e_above) with a limit of one half and, for each case, the direction of its first
    /// differing pair.
    ///
    /// All statements are read off one confidence sequence, so the probability that any of them is ever wrong is at
    /// most `alpha`. Undecided trials count, for each possible answer, as the results that are worst for it. Between
    /// complete rounds, when cases differ in their number of pairs, the result is `Continue`.
    pub fn decide(&self, cases: &[PairBounds]) -> ComparisonDecision {
        let Some(rounds) = cases.iter().map(|case| case.worst.count()).max() else {
            return ComparisonDecision::Futility;
        };
        if cases.iter().any(|case| case.worst.count() != rounds) {
            return ComparisonDecision::Continue;
        }
        self.decide_pooled(&self.statements(), cases.iter().copied().sum(), rounds, cases.len() as u64)
    }

    /// Returns the statements that a comparison can make.
    pub(super) fn statements(&self) -> Statements {
        let [above_zero, above_minus_margin] = [0.0, -self.margin].map(Bets::against);
        Statements { enough: 2.0 / self.alpha.clamp(0.0, 1.0), above_zero, above_minus_margin }
    }

    /// Decides after complete rounds, by the pairs of all cases.
    pub(super) fn decide_pooled(
        &self,
        statements: &Statements,
        all: PairBounds,
        rounds: u64,
        cases: u64,
    ) -> ComparisonDecision {
        if let Some(decision) = statements.difference(all) {
            return decision;
        }
        let decision = |more: Pairs| statements.difference(all + PairBounds { worst: more, best: more });
        let remaining = self.max_pairs.saturating_sub(rounds) * cases;
        // The most extreme results that remain possible, and the narrowest interval.
        let further = [
            Pairs { better: remaining, ..Pairs::default() },
            Pairs { worse: remaining, ..Pairs::default() },
            Pairs { same: remaining, ..Pairs::default() },
        ];
        let is_open = remaining > 0 && further.into_iter().any(|further| decision(further).is_some());
        if is_open { ComparisonDecision::Continue } else { ComparisonDecision::Futility }
    }
}

#[cfg(test)]
mod tests {
    use super::super::e_above;
    use super::*;

    fn pairs(better: u64, worse: u64, same: u64) -> Pairs {
        Pairs { better, worse, same }
    }

    fn decided(comparison: Comparison, cases: &[Pairs]) -> ComparisonDecision {
        comparison.decide(&cases.iter().map(|pairs| PairBounds { worst: *pairs, best: *pairs }).collect::<Vec<_>>())
    }

    #[test]
    fn without_a_margin_only_differing_pairs_count_as_in_mcnemars_test() {
        for (better, worse) in [(0, 0), (1, 0), (8, 1), (5, 5), (0, 7), (40, 12)] {
            let e = e_difference_above(0.0, pairs(better, worse, 0));
            assert_eq!(e, e_difference_above(0.0, pairs(better, worse, 90)));
            assert!((e / e_above(0.5, better, worse) - 1.0).abs() < 0.01, "{better}:{worse}: {e}");
        }
    }

    #[test]
    fn the_confidence_sequence_encloses_the_difference() {
        assert_eq!(difference_sequence(Pairs::default(), 0.05), [-1.0, 1.0]);
        for given in [pairs(1, 0, 0), pairs(3, 1, 6), pairs(0, 0, 50), pairs(10, 80, 10)] {
            let [low, high] = difference_sequence(given, 0.05);
            let difference = given.difference().unwrap();
            assert!(low <= difference && difference <= high, "{given:?}: {low} {high}");
            let swapped = difference_sequence(given.swapped(), 0.05);
            assert_eq!([-swapped[1], -swapped[0]], [low, high]);
        }
        let [low, high] = difference_sequence(pairs(0, 0, 200), 0.05);
        assert!(low > -0.05 && high < 0.05, "{low} {high}");
    }

    #[test]
    fn evidence_decreases_with_the_limit() {
        for given in [pairs(4, 1, 5), pairs(0, 3, 9), pairs(0, 0, 40)] {
            let values: Vec<f64> = (-99..100).map(|at| e_difference_above(f64::from(at) / 100.0, given)).collect();
            assert!(values.windows(2).all(|pair| pair[0] >= pair[1]), "{given:?}");
        }
        assert_eq!(e_difference_above(-1.0, pairs(0, 0, 1)), f64::MAX);
        assert_eq!(
            (e_difference_above(-1.0, pairs(0, 3, 0)), e_difference_above(f64::NAN, pairs(3, 0, 0))),
            (0.25, 1.0)
        );
        assert_eq!(e_difference_above(0.0, pairs(100_000, 0, 0)), f64::MAX);
    }

    #[test]
    fn comparisons_are_decided_in_complete_rounds() {
        let comparison = Comparison { alpha: 0.05, margin: 0.1, max_pairs: 60 };
        assert_eq!(decided(comparison, &[pairs(9, 0, 0), pairs(0, 0, 9)]), ComparisonDecision::Better);
        assert_eq!(decided(comparison, &[pairs(0, 9, 0), pairs(0, 0, 9)]), ComparisonDecision::Worse);
        assert_eq!(decided(comparison, &[pairs(9, 0, 0), pairs(0, 0, 8)]), ComparisonDecision::Continue);
        assert_eq!(decided(comparison, &[pairs(0, 0, 45), pairs(0, 0, 45)]), ComparisonDecision::Equivalent);
        assert_eq!(decided(comparison, &[pairs(30, 30, 0)]), ComparisonDecision::Futility);
        assert_eq!(decided(comparison, &[pairs(20, 20, 18)]), ComparisonDecision::Futility, "two more cannot decide");
        assert_eq!(decided(comparison, &[]), ComparisonDecision::Futility);
        // One case gets better and six get worse.
        let mixed = [[pairs(9, 0, 0); 1].as_slice(), &[pairs(0, 9, 0); 6]].concat();
        assert_eq!(decided(comparison, &mixed), ComparisonDecision::Worse);
    }

    #[test]
    fn undecided_trials_count_as_the_result_that_is_worst_for_the_statement() {
        let comparison = Comparison { alpha: 0.05, margin: 0.1, max_pairs: 60 };
        let of = |pairs: &[(Option<bool>, Option<bool>)]| {
            let mut bounds = PairBounds::default();
            pairs.iter().for_each(|(first, second)| bounds.push(*first, *second));
            bounds
        };
        let better = [(Some(true), Some(false)); 9];
        assert_eq!(comparison.decide(&[of(&better)]), ComparisonDecision::Better);
        let open = [better.as_slice(), &[(None, Some(false)); 4], &[(None, None); 3]].concat();
        let [low, high] = of(&open).interval(0.05);
        assert!(low < 0.0 && high > 0.5, "{low} {high}");
        assert_eq!(comparison.decide(&[of(&open)]), ComparisonDecision::Continue);
        assert_eq!(of(&[(None, Some(true))]).best, Pairs { same: 1, ..Pairs::default() });
    }
}
