//! Usage of answering one user message.

use llm::Reply;
use model::{Tokens, Usage};

/// Sum of the usage of several model answers. A sum with an unknown part is unknown.
pub(super) struct Spent {
    tokens: Option<Tokens>,
    cost_usd: Option<f64>,
    replies: u64,
}

impl Default for Spent {
    fn default() -> Self {
        Self { tokens: Some(Tokens::default()), cost_usd: Some(0.0), replies: 0 }
    }
}

impl Spent {
    pub(super) fn add(&mut self, reply: &Reply) {
        self.replies += 1;
        self.tokens = self.tokens.zip(reply.tokens).map(|(mut sum, tokens)| {
            sum += tokens;
            sum
        });
        self.cost_usd = self.cost_usd.zip(reply.cost_usd).map(|(sum, cost)| sum + cost);
    }

    pub(super) fn usage(&self) -> Usage {
        // Without an answer the cost of the requests is unknown.
        Usage { tokens: self.tokens, cost_usd: self.cost_usd.filter(|_| self.replies > 0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_with_an_unknown_part_is_unknown() {
        let tokens = Some(Tokens { input: 1, output: 2, ..Tokens::default() });
        let mut spent = Spent::default();
        assert_eq!(spent.usage(), Usage { tokens: Some(Tokens::default()), cost_usd: None });
        spent.add(&Reply { tokens, cost_usd: Some(0.5), ..Reply::default() });
        spent.add(&Reply { tokens, cost_usd: Some(0.25), ..Reply::default() });
        assert_eq!(spent.usage().cost_usd, Some(0.75));
        assert_eq!(spent.usage().tokens.map(|tokens| tokens.total()), Some(6));
        spent.add(&Reply::default());
        assert_eq!(spent.usage(), Usage { tokens: None, cost_usd: None });
    }
}
