//! What a trial costs, and who says so.

use std::sync::Arc;

use model::{Tokens, Usage};

use crate::Agent;

/// Who says what a trial cost, as records tell it. The names are those of the evaluations of skills that came before.
mod source {
    /// The agent, which is a program of its vendor's.
    pub(super) const CLI: &str = "cli";
    /// The same, where what it says is not what is billed and nothing better was to be had.
    pub(super) const UNRECONCILED: &str = "cli-unreconciled";
    /// The user's prices.
    pub(super) const PRICING: &str = "pricing-config";
    /// OpenRouter's list.
    pub(super) const OPENROUTER: &str = "openrouter-pricing";
    /// An agent of any other kind.
    pub(super) const AGENT: &str = "agent";
}

/// What is known of a trial's cost beside the amount.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Bill {
    /// Who says what it cost; absent if nobody does.
    pub source: Option<&'static str>,
    /// What the agent itself says, where somebody else is believed.
    pub said: Option<f64>,
}

/// By what a trial's tokens are paid: the user's own prices, then OpenRouter's list where it is OpenRouter that bills,
/// then what the agent says.
#[derive(Debug, Clone, Default)]
pub struct Pricing {
    providers: llm::Providers,
    /// The model as the user named it.
    model: Option<String>,
    /// A script answers, which costs nothing, whatever the agent says.
    is_script: bool,
    /// OpenRouter's prices of this model, where it is OpenRouter that bills; `None` if they are not to be had.
    list: Option<Option<Arc<llm::ListPrices>>>,
    /// What the agent is called that says what it cost.
    speaker: Option<&'static str>,
    bill: Bill,
}

impl Pricing {
    /// The prices for `agent`, which was asked for `model`, and which a script answers if `is_script`. `list` is OpenRouter's
    /// prices where it is OpenRouter that bills, `None` in it if they are not to be had.
    pub fn of(
        agent: &dyn Agent,
        model: Option<&str>,
        is_script: bool,
        providers: &llm::Providers,
        list: Option<Option<Arc<llm::ListPrices>>>,
    ) -> Self {
        // What is asked in this process is paid by the same prices already.
        let is_paid = agent.description().asks_providers && !is_script;
        Self {
            providers: if is_paid { llm::Providers::default() } else { providers.clone() },
            model: model.map(str::to_owned),
            is_script,
            list,
            speaker: Some(if agent.description().wire.is_some() { source::CLI } else { source::AGENT }),
            bill: Bill::default(),
        }
    }

    /// Of an agent that is a program and was asked for `model`.
    #[cfg(test)]
    pub fn of_program(
        providers: llm::Providers,
        model: Option<&str>,
        list: Option<Option<Arc<llm::ListPrices>>>,
    ) -> Self {
        let model = model.map(str::to_owned);
        Self { providers, model, list, speaker: Some(source::CLI), ..Self::default() }
    }

    /// Puts the price on what was used for a message; `model` is what the agent says that it has used.
    pub fn settle(&mut self, usage: &mut Usage, model: Option<&str>) {
        let said = usage.cost_usd;
        self.bill.said = add(self.bill.said, said);
        match self.price(model).zip(usage.tokens) {
            Some(((price, source), tokens)) => {
                usage.cost_usd = Some(price.cost(&tokens));
                self.bill.source = Some(source);
            }
            // An agent that does not know better puts a price on what a script has answered for nothing.
            None if self.is_script => usage.cost_usd = None,
            None if said.is_some() => {
                let unreconciled = self.list.is_some().then_some(source::UNRECONCILED);
                self.bill.source = unreconciled.or(self.speaker);
            }
            None => {}
        }
    }

    /// What `tokens` cost that are not settled yet, where that is known by their number.
    pub fn estimate(&self, tokens: Tokens, model: Option<&str>) -> Option<f64> {
        self.price(model).map(|(price, _)| price.cost(&tokens))
    }

    /// What is known beside the amount.
    pub fn bill(&self) -> Bill {
        let is_believed = |source: &str| [source::CLI, source::UNRECONCILED, source::AGENT].contains(&source);
        let said = self.bill.said.filter(|_| self.bill.source.is_some_and(|source| !is_believed(source)));
        Bill { said, ..self.bill }
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
        let written = json!({"m": {"input": 1, "output": 10}, "told": {"input": 2, "output": 20}});
        let node = Node::from_json(&written, &Source::new("prices.json", ""));
        Providers::new(Credentials::default(), Prices::from_node(&node).unwrap(), Policy::default())
    }

    fn used(tokens: Option<u64>, cost_usd: Option<f64>) -> Usage {
        let tokens = tokens.map(|input| Tokens { input, ..Tokens::default() });
        Usage { tokens, cost_usd }
    }

    fn settled(mut pricing: Pricing, usages: &[Usage], told: Option<&str>) -> (Vec<Option<f64>>, Bill) {
        let settle = |usage: &Usage| {
            let mut usage = *usage;
            pricing.settle(&mut usage, told);
            usage.cost_usd
        };
        let costs = usages.iter().map(settle).collect();
        (costs, pricing.bill())
    }

    #[test]
    fn the_users_price_goes_before_what_the_agent_says_which_is_kept() {
        let usages = [used(Some(1_000_000), Some(5.0)), used(Some(2_000_000), Some(6.0)), used(None, None)];
        let (costs, bill) = settled(Pricing::of_program(providers(), Some("m"), None), &usages, Some("told"));
        assert_eq!(costs, [Some(1.0), Some(2.0), None]);
        assert_eq!(bill, Bill { source: Some("pricing-config"), said: Some(11.0) });
        // Where nobody named a model, the agent says which one it was.
        assert_eq!(settled(Pricing::of_program(providers(), None, None), &usages[..1], Some("told")).0, [Some(2.0)]);
    }

    #[test]
    fn without_a_price_the_agent_is_believed_and_nobody_guesses() {
        let pricing = || Pricing::of_program(providers(), Some("other"), None);
        let (costs, bill) = settled(pricing(), &[used(Some(5), Some(0.5))], None);
        assert_eq!((costs, bill), (vec![Some(0.5)], Bill { source: Some("cli"), said: None }));
        let (costs, bill) = settled(pricing(), &[used(Some(5), None)], None);
        assert_eq!((costs, bill), (vec![None], Bill::default()));
        let unreconciled = Pricing::of_program(providers(), Some("other"), Some(None));
        let (costs, bill) = settled(unreconciled, &[used(Some(5), Some(0.5))], None);
        assert_eq!((costs, bill), (vec![Some(0.5)], Bill { source: Some("cli-unreconciled"), said: None }));
    }

    #[test]
    fn a_script_costs_nothing_unless_the_user_says_so() {
        let script = |model: &str| Pricing { is_script: true, ..Pricing::of_program(providers(), Some(model), None) };
        let (costs, bill) = settled(script("other"), &[used(Some(5), Some(0.5))], None);
        assert_eq!((costs, bill), (vec![None], Bill::default()));
        assert_eq!(settled(script("m"), &[used(Some(1_000_000), Some(0.5))], None).0, [Some(1.0)]);
    }

    #[test]
    fn what_is_not_settled_yet_is_estimated_by_the_same_price() {
        let pricing = Pricing::of_program(providers(), Some("m"), None);
        let tokens = Tokens { output: 100_000, ..Tokens::default() };
        assert_eq!(pricing.estimate(tokens, None), Some(1.0));
        assert_eq!(Pricing::default().estimate(tokens, Some("m")), None);
    }
}
