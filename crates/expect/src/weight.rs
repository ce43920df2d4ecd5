//! Distributes the score of a level among its items.

/// Tolerance within which two floats are the same score.
pub const NOISE: f64 = 1e-9;

/// Converts a sum of shares to the score of a part, which is below 0 if penalties outweigh. Sums close to 1 or 0 are
/// rounded, so that rounding errors do not prevent a full match.
pub fn settled(score: f64) -> f64 {
    if (score - 1.0).abs() < NOISE {
        1.0
    } else if score.abs() < NOISE {
        0.0
    } else {
        score.min(1.0)
    }
}

/// Returns the score of a whole expectation, which is at least 0.
pub fn final_score(score: f64) -> f64 {
    settled(score).max(0.0)
}

/// Scale of weights.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Budget {
    /// Score of a full match.
    pub max_score: f64,
    /// Total for all items without a weight if the given weights would leave nothing for them. A share if it is below
    /// 1, otherwise points.
    pub unassigned: f64,
    /// Interpretation of small weights.
    pub shares: Shares,
}

/// How a weight is interpreted: as a share of 1, or as points of the maximum score.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Shares {
    /// Weights below 1 are shares, others are points. A weight of 1 is the whole score if no other weight next to it
    /// is greater, because the step from 0.99 to 1 must not be one from almost everything to almost nothing.
    #[default]
    Guessed,
    /// Every weight is points.
    Never,
    /// Every weight is a share.
    Always,
}

impl Default for Budget {
    fn default() -> Self {
        Self { max_score: 100.0, unassigned: 0.1, shares: Shares::Guessed }
    }
}

impl Budget {
    /// Returns the shares of items that are combined: the positive ones add up to 1. Negative weights are penalties
    /// and are only converted.
    pub fn together(&self, weights: &[Option<f64>]) -> Vec<f64> {
        let (converted, unassigned) = self.converted(weights);
        let free = converted.iter().filter(|weight| weight.is_none()).count();
        let positive: f64 = converted.iter().flatten().filter(|weight| **weight > 0.0).sum();
        let zeros = converted.iter().flatten().filter(|weight| **weight == 0.0).count();
        if free == 0 && positive == 0.0 && zeros > 0 {
            // If no item has a weight above 0, all items have the same share.
            let share = |weight: &Option<f64>| weight.filter(|weight| *weight < 0.0).unwrap_or(1.0 / zeros as f64);
            return converted.iter().map(share).collect();
        }
        let (rest, scale) = if free == 0 {
            (0.0, if positive > 0.0 { 1.0 / positive } else { 0.0 })
        } else if positive + unassigned <= 1.0 {
            (1.0 - positive, 1.0)
        } else {
            (unassigned, if positive > 0.0 { (1.0 - unassigned) / positive } else { 0.0 })
        };
        let share = |weight: &Option<f64>| match *weight {
            None => rest / free as f64,
            Some(weight) if weight > 0.0 => weight * scale,
            Some(weight) => weight,
        };
        converted.iter().map(share).collect()
    }

    /// Returns the shares of items any one of which is enough: each on its own, and 1 for an item without a weight.
    pub fn each(&self, weights: &[Option<f64>]) -> Vec<f64> {
        self.converted(weights).0.into_iter().map(|weight| weight.unwrap_or(1.0)).collect()
    }

    /// Converts every weight to a share. Returns the shares with the total for items without a weight.
    fn converted(&self, weights: &[Option<f64>]) -> (Vec<Option<f64>>, f64) {
        let greatest = weights.iter().flatten().fold(0.0_f64, |most, weight| most.max(*weight));
        let points = self.max_score.max(greatest);
        let one_is_all = weights.iter().flatten().all(|weight| weight.abs() <= 1.0);
        let is_share = |weight: f64| match self.shares {
            Shares::Guessed => weight.abs() < 1.0 || (one_is_all && weight.abs() == 1.0),
            Shares::Never => false,
            Shares::Always => true,
        };
        let share = |weight: f64| if is_share(weight) { weight } else { weight / points };
        let unassigned = if self.shares == Shares::Always || (self.shares == Shares::Guessed && self.unassigned < 1.0) {
            self.unassigned
        } else {
            self.unassigned / points
        };
        (weights.iter().map(|weight| weight.map(share)).collect(), unassigned.clamp(0.0, 1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn together(weights: &[Option<f64>]) -> Vec<f64> {
        let shares = Budget::default().together(weights);
        shares.into_iter().map(|share| (share * 1e9).round() / 1e9).collect()
    }

    #[test]
    fn weights_of_one_level_add_up_to_one() {
        let some = |weights: &[f64]| weights.iter().copied().map(Some).collect::<Vec<_>>();
        assert_eq!(together(&some(&[80.0, 20.0])), [0.8, 0.2]);
        assert_eq!(together(&some(&[8.0, 2.0])), [0.8, 0.2]);
        assert_eq!(together(&some(&[200.0, 50.0])), [0.8, 0.2]);
        assert_eq!(together(&some(&[0.5, 30.0])), [0.625, 0.375]);
        assert_eq!(together(&some(&[100.0, -20.0])), [1.0, -0.2]);
        assert_eq!(together(&[None, None]), [0.5, 0.5]);
    }

    #[test]
    fn items_without_a_weight_share_the_remainder_and_at_least_their_budget() {
        assert_eq!(together(&[Some(50.0), None]), [0.5, 0.5]);
        assert_eq!(together(&[Some(95.0), None]), [0.9, 0.1]);
        assert_eq!(together(&[Some(100.0), None]), [0.9, 0.1]);
        assert_eq!(together(&[Some(60.0), Some(60.0), None]), [0.45, 0.45, 0.1]);
        assert_eq!(together(&[Some(80.0), None, None]), [0.8, 0.1, 0.1]);
        assert_eq!(together(&[Some(-20.0), None]), [-0.2, 1.0]);
    }

    #[test]
    fn a_score_is_rounded_and_only_scores_of_parts_can_be_negative() {
        assert_eq!(settled((0..10).map(|_| 0.1).sum()), 1.0);
        assert_eq!([settled(0.3 - 0.1 - 0.2), settled(-0.5), settled(1.5), settled(0.25)], [0.0, -0.5, 1.0, 0.25]);
        assert_eq!([final_score(-0.5), final_score(0.25), final_score(1.0 + 1e-12)], [0.0, 0.25, 1.0]);
    }

    #[test]
    fn a_weight_of_one_is_the_whole_score_unless_other_weights_are_points() {
        assert_eq!(together(&[Some(1.0), None]), [0.9, 0.1]);
        assert_eq!(together(&[Some(1.0), Some(9.0)]), [0.1, 0.9]);
        assert_eq!(together(&[Some(1.0), Some(9.0), None]), [0.01, 0.09, 0.9]);
    }

    #[test]
    fn a_branch_without_a_weight_counts_in_full() {
        assert_eq!(Budget::default().each(&[None, None]), [1.0, 1.0]);
        assert_eq!(Budget::default().each(&[Some(90.0), Some(40.0)]), [0.9, 0.4]);
        assert_eq!(Budget::default().each(&[Some(0.6), None]), [0.6, 1.0]);
    }
}
