//! Choice of the decision that gets the next trial.

/// Decision that still needs trials.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OpenDecision {
    /// Largest of its e-values: the evidence for the statement that is nearest to being shown.
    pub e_value: f64,
    /// E-value that is enough for a decision, 1/α.
    pub enough: f64,
    /// Number of trials, or rounds, so far.
    pub trials: u64,
    /// Cost of the next trial or round, in US dollars; `None` if unknown.
    pub cost_usd: Option<f64>,
}

/// Share of the needed evidence that a decision without trials is assumed to gain with each.
const PRIOR_GROWTH: f64 = 0.1;

/// Returns the position of the decision that gets the next trial: the one whose remaining evidence is expected to cost
/// least. `None` if no decision is open.
///
/// The logarithm of an e-value grows by about the same amount with each trial (Kelly 1956; Breiman 1961), so a decision
/// is expected to need (ln enough − ln e) / growth further trials. The growth is the mean so far, ln e / trials, with one
/// assumed trial that gained a tenth of the needed evidence. A decision that gains nothing becomes ever more expensive,
/// so others get their turn, and the order depends only on the arguments. This choice affects only the cost: an
/// e-process stays valid for any rule that uses past results to choose the next trial.
///
/// An unknown cost counts as the largest known one. If two decisions cost the same, the one with fewer trials comes
/// first, then the one that is listed first.
pub fn next_trial(open: &[OpenDecision]) -> Option<usize> {
    let known = |decision: &OpenDecision| decision.cost_usd.filter(|cost| cost.is_finite() && *cost >= 0.0);
    let most = open.iter().filter_map(known).fold(None, |most: Option<f64>, cost| Some(most.unwrap_or(cost).max(cost)));
    let cost = |decision: &OpenDecision| known(decision).or(most).unwrap_or(1.0) * decision.trials_to_go();
    let order = |(_, one): &(usize, &OpenDecision), (_, other): &(usize, &OpenDecision)| {
        cost(one).total_cmp(&cost(other)).then(one.trials.cmp(&other.trials))
    };
    // `min_by` returns the first of several equal elements.
    open.iter().enumerate().min_by(order).map(|(index, _)| index)
}

impl OpenDecision {
    /// Returns the number of further trials that the decision is expected to need.
    fn trials_to_go(&self) -> f64 {
        let log = |value: f64| if value.is_nan() { 0.0 } else { value.clamp(1.0, f64::MAX).ln() };
        let (gained, needed) = (log(self.e_value), log(self.enough));
        let growth = (gained + PRIOR_GROWTH * needed) / (self.trials as f64 + 1.0);
        if growth > 0.0 { (needed - gained).max(0.0) / growth } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEW: OpenDecision = OpenDecision { e_value: 1.0, enough: 20.0, trials: 0, cost_usd: Some(1.0) };

    #[test]
    fn the_nearest_decision_per_dollar_comes_first() {
        let near = OpenDecision { e_value: 12.0, trials: 6, ..NEW };
        let far = OpenDecision { e_value: 2.0, trials: 6, ..NEW };
        assert_eq!(next_trial(&[far, near, NEW]), Some(1));
        let dear = OpenDecision { cost_usd: Some(50.0), ..near };
        assert_eq!(next_trial(&[far, dear]), Some(0));
        assert_eq!(next_trial(&[]), None);
    }

    #[test]
    fn equal_decisions_take_turns_in_the_listed_order() {
        assert_eq!(next_trial(&[NEW, NEW, NEW]), Some(0));
        let tried = OpenDecision { trials: 1, ..NEW };
        assert_eq!(next_trial(&[tried, NEW, NEW]), Some(1));
        let free = OpenDecision { cost_usd: Some(0.0), trials: 3, ..NEW };
        assert_eq!(next_trial(&[free, OpenDecision { trials: 2, ..free }]), Some(1));
    }

    #[test]
    fn a_decision_that_gains_nothing_lets_others_go_first() {
        let stuck = OpenDecision { e_value: 0.2, trials: 40, ..NEW };
        assert_eq!(next_trial(&[stuck, OpenDecision { e_value: 3.0, trials: 30, ..NEW }]), Some(1));
    }

    #[test]
    fn unknown_costs_count_as_the_largest_known_one() {
        let unknown = OpenDecision { cost_usd: None, ..NEW };
        let cheap = OpenDecision { cost_usd: Some(0.1), ..NEW };
        assert_eq!(next_trial(&[unknown, NEW, cheap]), Some(2));
        assert_eq!(next_trial(&[unknown, NEW]), Some(0));
        let odd = OpenDecision { e_value: f64::NAN, cost_usd: Some(f64::NAN), ..NEW };
        assert_eq!(next_trial(&[odd, unknown]), Some(0));
    }
}
