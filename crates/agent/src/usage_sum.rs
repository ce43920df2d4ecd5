//! Usage of several answers of a model.

use model::{Tokens, Usage};

/// Sum of the usage of several answers. A sum with an unknown part is unknown.
#[derive(Debug, Default)]
pub(super) struct UsageSum(Option<Usage>);

impl UsageSum {
    /// Adds the usage of an answer.
    pub(super) fn add(&mut self, tokens: Option<Tokens>, cost_usd: Option<f64>) {
        let mut sum = self.0.unwrap_or(Usage { tokens: Some(Tokens::default()), cost_usd: Some(0.0) });
        sum.tokens = sum.tokens.zip(tokens).map(|(mut sum, tokens)| {
            sum += tokens;
            sum
        });
        sum.cost_usd = sum.cost_usd.zip(cost_usd).map(|(sum, cost)| sum + cost);
        self.0 = Some(sum);
    }

    /// Returns the sum; `None` without an answer.
    pub(super) fn total(&self) -> Option<Usage> {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_with_an_unknown_part_is_unknown() {
        let tokens = Some(Tokens { input: 1, output: 2, ..Tokens::default() });
        let mut sum = UsageSum::default();
        assert_eq!(sum.total(), None);
        sum.add(tokens, Some(0.5));
        sum.add(tokens, Some(0.25));
        let total = sum.total().unwrap();
        assert_eq!((total.tokens.map(|tokens| tokens.total()), total.cost_usd), (Some(6), Some(0.75)));
        sum.add(None, None);
        assert_eq!(sum.total(), Some(Usage { tokens: None, cost_usd: None }));
    }
}
