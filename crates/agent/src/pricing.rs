//! Cost of a trial, and where the figure comes from.

use std::sync::Arc;

use model::{Tokens, Usage};

use crate::Agent;

/// Sources of a trial's cost, as they are recorded. The names are those used by earlier skill evaluations.
mod source {
    /// The agent, which is its vendor's program.
    pub(super) const CLI: &str = "cli";
    /// Costs that the agent's program reported, although OpenRouter bills another amount and no better source exists.
    pub(super) const UNRECONCILED: &str = "cli-unreconciled";
    /// Prices configured by the user.
    pub(super) const PRICING: &str = "pricing-config";
    /// OpenRouter's price list.
    pub(super) const OPENROUTER: &str = "openrouter-pricing";
    /// Any other kind of agent.
    pub(super) const AGENT: &str = "agent";
}

/// Information about a trial's cost in addition to the amount.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Bill {
    /// Source of the cost; `None` if it is unknown.
    pub source: Option<&'static str>,
    /// Cost that the agent reports, if another source is used.
    pub reported_usd: Option<f64>,
}

/// Pricing of a trial's tokens: first the user's own prices, then OpenRouter's list if OpenRouter bills, then the
/// agent's report.
#[derive(Debug, Clone, Default)]
pub struct Pricing {
    providers: llm::Providers,
    /// Model as named by the user.
    model: Option<String>,
    /// True if the model is scripted and therefore costs nothing, regardless of what the agent reports.
    is_script: bool,
    /// OpenRouter's prices for this model, if OpenRouter bills; the inner `None` if they could not be fetched.
    list: Option<Option<Arc<llm::ListPrices>>>,
    /// Name of the source of costs that the agent reports.
    reported_source: Option<&'static str>,
    bill: Bill,
}

impl Pricing {
    /// Returns the pricing for `agent` with the requested `model`. `is_script` is true if the model is scripted.
    /// `list` has OpenRouter's prices if OpenRouter bills; the inner `None` if they could not be fetched.
    pub fn of(
        agent: &dyn Agent,
        model: Option<&str>,
        is_script: bool,
        providers: &llm::Providers,
        list: Option<Option<Arc<llm::ListPrices>>>,
    ) -> Self {
        // Requests from this process have already been priced with the same prices.
        let is_paid = agent.description().asks_providers && !is_script;
        Self {
            providers: if is_paid { llm::Providers::default() } else { providers.clone() },
            model: model.map(str::to_owned),
            is_script,
            list,
            reported_source: Some(if agent.description().wire.is_some() { source::CLI } else { source::AGENT }),
            bill: Bill::default(),
        }
    }

    /// Returns the pricing of an agent that is a program, with the requested `model`.
    #[cfg(test)]
    pub fn of_program(
        providers: llm::Providers,
        model: Option<&str>,
        list: Option<Option<Arc<llm::ListPrices>>>,
    ) -> Self {
        let model = model.map(str::to_owned);
        Self { providers, model, list, reported_source: Some(source::CLI), ..Self::default() }
    }

    /// Sets the cost of a message's usage. `model` is the model that the agent reports.
    pub fn settle(&mut self, usage: &mut Usage, model: Option<&str>) {
        let reported_usd = usage.cost_usd;
        self.bill.reported_usd = add(self.bill.reported_usd, reported_usd);
        match self.price(model).zip(usage.tokens) {
            Some(((price, source), tokens)) => {
                usage.cost_usd = Some(price.cost(&tokens));
                self.bill.source = Some(source);
            }
            // Agents may report a cost for scripted responses, which are free.
            None if self.is_script => usage.cost_usd = None,
            None if reported_usd.is_some() => {
                let unreconciled = self.list.is_some().then_some(source::UNRECONCILED);
                self.bill.source = unreconciled.or(self.reported_source);
            }
            None => {}
        }
    }

    /// Returns the cost of `tokens` that are not settled yet, if it can be computed from their number.
    pub fn estimate(&self, tokens: Tokens, model: Option<&str>) -> Option<f64> {
        self.price(model).map(|(price, _)| price.cost(&tokens))
    }

    /// Returns the information in addition to the amount.
    pub fn bill(&self) -> Bill {
        let is_believed = |source: &str| [source::CLI, source::UNRECONCILED, source::AGENT].contains(&source);
        let reported_usd =
            self.bill.reported_usd.filter(|_| self.bill.source.is_some_and(|source| !is_believed(source)));
        Bill { reported_usd, ..self.bill }
    }

    fn price(&self, model: Option<&str>) -> Option<(llm::Price, &'static str)> {
        let names = || self.model.as_deref().into_iter().chain(model);
        let own = names().find_map(|name| self.providers.prices().own(name)).map(|price| (price, source::PRICING));
        let list = self.list.as_ref().and_then(Option::as_ref);
        own.or_else(|| {
            list.and_then(|list| names().find_map(|name| list.price(name))).map(|price| (price, source::OPENROUTER))
        })
    }
}

fn add(sum: Option<f64>, more: Option<f64>) -> Option<f64> {
    match (sum, more) {
        (Some(sum), Some(more)) => Some(sum + more),
        (sum, more) => sum.or(more),
    }
}

#[cfg(test)]
mod tests {
    use llm::{Credentials, Policy, Prices, Providers};
    use model::{Node, Source};
    use serde_json::json;

    use super::*;

    fn providers() -> Providers {
        let written = json!({"m": {"input": 1, "output": 10}, "reported": {"input": 2, "output": 20}});
        let node = Node::from_json(&written, &Source::new("prices.json", ""));
        Providers::new(Credentials::default(), Prices::from_node(&node).unwrap(), Policy::default())
    }

    fn used(tokens: Option<u64>, cost_usd: Option<f64>) -> Usage {
        let tokens = tokens.map(|input| Tokens { input, ..Tokens::default() });
        Usage { tokens, cost_usd }
    }

    fn settled(mut pricing: Pricing, usages: &[Usage], reported: Option<&str>) -> (Vec<Option<f64>>, Bill) {
        let settle = |usage: &Usage| {
            let mut usage = *usage;
            pricing.settle(&mut usage, reported);
            usage.cost_usd
        };
        let costs = usages.iter().map(settle).collect();
        (costs, pricing.bill())
    }

    #[test]
    fn the_users_price_takes_precedence_and_the_reported_cost_is_kept() {
        let usages = [used(Some(1_000_000), Some(5.0)), used(Some(2_000_000), Some(6.0)), used(None, None)];
        let (costs, bill) = settled(Pricing::of_program(providers(), Some("m"), None), &usages, Some("reported"));
        assert_eq!(costs, [Some(1.0), Some(2.0), None]);
        assert_eq!(bill, Bill { source: Some("pricing-config"), reported_usd: Some(11.0) });
        // If no model was configured, the agent's report determines it.
        assert_eq!(
            settled(Pricing::of_program(providers(), None, None), &usages[..1], Some("reported")).0,
            [Some(2.0)]
        );
    }

    #[test]
    fn without_a_price_the_reported_cost_is_used() {
        let pricing = || Pricing::of_program(providers(), Some("other"), None);
        let (costs, bill) = settled(pricing(), &[used(Some(5), Some(0.5))], None);
        assert_eq!((costs, bill), (vec![Some(0.5)], Bill { source: Some("cli"), reported_usd: None }));
        let (costs, bill) = settled(pricing(), &[used(Some(5), None)], None);
        assert_eq!((costs, bill), (vec![None], Bill::default()));
        let unreconciled = Pricing::of_program(providers(), Some("other"), Some(None));
        let (costs, bill) = settled(unreconciled, &[used(Some(5), Some(0.5))], None);
        assert_eq!((costs, bill), (vec![Some(0.5)], Bill { source: Some("cli-unreconciled"), reported_usd: None }));
    }

    #[test]
    fn a_script_is_free_unless_the_user_sets_a_price() {
        let script = |model: &str| Pricing { is_script: true, ..Pricing::of_program(providers(), Some(model), None) };
        let (costs, bill) = settled(script("other"), &[used(Some(5), Some(0.5))], None);
        assert_eq!((costs, bill), (vec![None], Bill::default()));
        assert_eq!(settled(script("m"), &[used(Some(1_000_000), Some(0.5))], None).0, [Some(1.0)]);
    }

    #[test]
    fn unsettled_usage_is_estimated_with_the_same_price() {
        let pricing = Pricing::of_program(providers(), Some("m"), None);
        let tokens = Tokens { output: 100_000, ..Tokens::default() };
        assert_eq!(pricing.estimate(tokens, None), Some(1.0));
        assert_eq!(Pricing::default().estimate(tokens, Some("m")), None);
    }
}
