//! Prices of tokens. Unknown is not the same as free.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use jiff::civil::Date;
use model::decode::{Fields, Problems};
use model::{Diagnostic, Node, NodeKind, Tokens};
use serde::Deserialize;

const MILLION: f64 = 1_000_000.0;

/// US dollars per million tokens of each kind.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Price {
    /// Uncached input.
    pub input: f64,
    /// Input read from a cache.
    pub cache_read: f64,
    /// Input written to a cache.
    pub cache_write: f64,
    /// Output, including reasoning.
    pub output: f64,
    /// Date of the price, if it is built in.
    pub as_of: Option<Date>,
}

impl Price {
    /// Converts US dollars per token. Unless they have their own prices, cache reads cost as much as the prompt, and
    /// cache writes are free, as with most vendors.
    pub(crate) fn per_token(prompt: f64, completion: f64, cache_read: Option<f64>, cache_write: Option<f64>) -> Self {
        Self {
            input: prompt * MILLION,
            output: completion * MILLION,
            cache_read: cache_read.unwrap_or(prompt) * MILLION,
            cache_write: cache_write.unwrap_or(0.0) * MILLION,
            as_of: None,
        }
    }

    /// Returns the cost of `tokens` in US dollars.
    pub fn cost(&self, tokens: &Tokens) -> f64 {
        let parts = [
            (tokens.input, self.input),
            (tokens.cache_read, self.cache_read),
            (tokens.cache_write, self.cache_write),
            (tokens.output, self.output),
        ];
        parts.iter().map(|(count, price)| *count as f64 * price / MILLION).sum()
    }
}

/// Prices of models: the user's and the built-in ones. The built-in prices are vendors' list prices. They apply only
/// at the vendor's own address, because a proxy may charge any price.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Prices {
    own: BTreeMap<String, Price>,
}

impl Prices {
    /// Reads the user's prices: a map from `provider:model`, or just a model's name, to its price.
    ///
    /// A model has `input`, `output`, `cache_read` and `cache_write` in US dollars per million tokens; `cache_read`
    /// and `cache_write` are `input` by default. Or it has `prompt`, `completion`, `input_cache_read` and
    /// `input_cache_write` in US dollars per token, as numbers or text; `input_cache_read` is `prompt` by default,
    /// and `input_cache_write` is free by default.
    ///
    /// # Errors
    /// Returns all problems with their locations.
    pub fn from_node(node: &Node) -> Result<Self, Vec<Diagnostic>> {
        let NodeKind::Map(entries) = &node.kind else {
            return Err(vec![node.error(format!("prices must be a map of models, not {}", node.kind_name()))]);
        };
        let mut problems = Problems::new();
        let mut own = BTreeMap::new();
        for (name, node) in entries {
            if let Some(price) = price(node, &mut problems) {
                own.insert(name.value.clone(), price);
            }
        }
        if problems.is_empty() { Ok(Self { own }) } else { Err(problems) }
    }

    /// Returns `true` if the user has set no price.
    pub fn has_no_own(&self) -> bool {
        self.own.is_empty()
    }

    /// Returns the user's own price for exactly this name.
    pub fn own(&self, model: &str) -> Option<Price> {
        self.own.get(model).copied()
    }

    /// Returns the price of a model from `provider`, if it is known. `is_own_address` is true if requests go to the
    /// vendor's own address.
    pub fn of(&self, provider: &str, model: &str, is_own_address: bool) -> Option<Price> {
        let full = format!("{provider}:{model}");
        let own = [full.as_str(), model].into_iter().find_map(|name| self.own.get(name)).copied();
        own.or_else(|| built_in(provider, model).filter(|_| is_own_address))
    }
}

fn price(node: &Node, problems: &mut Problems) -> Option<Price> {
    let mut fields = Fields::of(node, "a price", problems)?;
    let is_per_token = ["prompt", "completion"].iter().any(|key| node.get(key).is_some());
    let names = match is_per_token {
        true => ["prompt", "completion", "input_cache_read", "input_cache_write"],
        false => ["input", "output", "cache_read", "cache_write"],
    };
    let input = fields.require(names[0], problems);
    let output = fields.require(names[1], problems);
    let others = [fields.get(names[2]), fields.get(names[3])];
    fields.finish(problems);
    let mut read = |node: &Node| amount(node, problems);
    let (input, output) = (input.and_then(&mut read), output.and_then(&mut read));
    // A value that cannot be read makes the whole price invalid.
    let [cache_read, cache_write] = others.map(|node| node.map_or(Some(None), |node| read(node).map(Some)));
    let (input, output, cache_read, cache_write) = (input?, output?, cache_read?, cache_write?);
    if is_per_token {
        return Some(Price::per_token(input, output, cache_read, cache_write));
    }
    let (cache_read, cache_write) = (cache_read.unwrap_or(input), cache_write.unwrap_or(input));
    Some(Price { input, output, cache_read, cache_write, as_of: None })
}

fn amount(node: &Node, problems: &mut Problems) -> Option<f64> {
    let value = match &node.kind {
        NodeKind::Number(number) => number.as_f64(),
        NodeKind::String(text) => text.trim().parse().ok(),
        _ => None,
    };
    let value = value.filter(|value: &f64| value.is_finite() && *value >= 0.0);
    if value.is_none() {
        problems.push(node.error("a price must be a number of US dollars, 0 or more"));
    }
    value
}

/// Prices of one vendor on a certain day. A model that is not listed has no price, rather than a guessed one, and
/// models whose price depends on the length of ordinary prompts are not listed.
#[derive(Debug, Deserialize)]
pub struct PriceList {
    /// The vendor, by the name of its provider.
    pub vendor: String,
    /// The page from which the prices were taken.
    pub source: String,
    /// Date of these prices.
    pub as_of: Date,
    /// Prices by model: input, input read from a cache, input written to a cache, and output.
    models: BTreeMap<String, [f64; 4]>,
}

impl PriceList {
    /// Number of models.
    pub fn len(&self) -> usize {
        self.models.len()
    }

    /// Returns `true` if it contains no model.
    pub fn is_empty(&self) -> bool {
        self.models.is_empty()
    }
}

/// Returns the built-in price lists, which are data: `prices.json`.
pub fn price_lists() -> &'static [PriceList] {
    #[derive(Default, Deserialize)]
    struct Document {
        lists: Vec<PriceList>,
    }
    static DOCUMENT: LazyLock<Document> =
        LazyLock::new(|| serde_json::from_str(include_str!("prices.json")).unwrap_or_default());
    &DOCUMENT.lists
}

fn built_in(provider: &str, model: &str) -> Option<Price> {
    let vendor = if provider.starts_with("openai-") { "openai" } else { provider };
    price_lists().iter().filter(|list| list.vendor == vendor).find_map(|list| {
        let (_, row) = list.models.iter().find(|(name, _)| is_edition(model, name))?;
        let [input, cache_read, cache_write, output] = *row;
        Some(Price { input, cache_read, cache_write, output, as_of: Some(list.as_of) })
    })
}

/// Returns `true` if `model` is `name` or one of its versions: `name-20250929`, `name-2025-08-07`, `name-latest`.
fn is_edition(model: &str, name: &str) -> bool {
    let Some(rest) = model.strip_prefix(name) else { return false };
    let Some(edition) = rest.strip_prefix('-') else { return rest.is_empty() };
    let is_date = edition.len() >= 8 && edition.chars().all(|letter| letter.is_ascii_digit() || letter == '-');
    edition == "latest" || is_date
}

#[cfg(test)]
mod tests {
    use model::Source;
    use serde_json::json;

    use super::*;

    fn prices(value: &serde_json::Value) -> Result<Prices, Vec<String>> {
        let node = Node::from_json(value, &Source::new("prices.json", ""));
        Prices::from_node(&node).map_err(|problems| problems.iter().map(ToString::to_string).collect())
    }

    fn about(value: f64, expected: f64) -> bool {
        (value - expected).abs() < 1e-9
    }

    #[test]
    fn each_kind_of_token_has_its_price() {
        let price = Price { input: 1.0, cache_read: 0.1, cache_write: 1.25, output: 5.0, as_of: None };
        let tokens = Tokens { input: 1000, cache_read: 10_000, cache_write: 100, output: 200, reasoning: Some(50) };
        assert!(about(price.cost(&tokens), 0.001 + 0.001 + 0.000_125 + 0.001));
    }

    #[test]
    fn a_dated_version_has_the_price_of_its_model_and_a_sibling_does_not() {
        let of = |provider: &str, model: &str| Prices::default().of(provider, model, true).map(|price| price.input);
        assert_eq!(of("openai", "gpt-5-2025-08-07"), Some(1.25));
        assert_eq!(of("openai-chat", "gpt-5-mini"), Some(0.25));
        assert_eq!(of("openai-responses", "gpt-5-mini"), Some(0.25));
        assert_eq!(of("anthropic", "claude-sonnet-4-5-20250929"), Some(3.0));
        assert_eq!(of("anthropic", "claude-opus-4-5"), Some(5.0));
        assert_eq!(of("anthropic", "claude-opus-4-20250514"), Some(15.0));
        for (provider, model) in
            [("openai", "gpt-5-pro"), ("openai", "gpt-5.9"), ("ollama", "gpt-5"), ("anthropic", "claude")]
        {
            assert_eq!(of(provider, model), None, "{provider}:{model}");
        }
        assert_eq!(Prices::default().of("openai", "gpt-5", false), None, "a proxy may ask for anything");
    }

    #[test]
    fn each_built_in_price_is_listed_once_and_dated() {
        let names: Vec<_> = price_lists().iter().flat_map(|list| list.models.keys()).collect();
        assert!(names.len() > 30, "{names:?}");
        for list in price_lists() {
            assert!(list.source.starts_with("https://"), "{list:?}");
            for (name, row) in &list.models {
                assert_eq!(names.iter().filter(|other| *other == &name).count(), 1, "{name}");
                let price = Prices::default().of(&list.vendor, name, true).unwrap();
                assert_eq!(price.as_of, Some(list.as_of), "{name}");
                let [input, cache_read, _, output] = *row;
                assert!(0.0 < cache_read && cache_read < input && input < output, "{name}");
            }
        }
    }

    #[test]
    fn user_prices_apply_to_every_base_url_and_take_precedence() {
        let prices = prices(&json!({
            "openai:gpt-5": {"input": 9, "output": 90, "cache_read": 0},
            "mine": {"prompt": "0.000001", "completion": 0.000002},
        }))
        .unwrap();
        let gpt = prices.of("openai", "gpt-5", true).unwrap();
        assert_eq!((gpt.input, gpt.cache_read, gpt.cache_write), (9.0, 0.0, 9.0));
        let mine = prices.of("compatible", "mine", false).unwrap();
        assert!(about(mine.input, 1.0) && about(mine.output, 2.0) && about(mine.cache_read, 1.0));
    }

    #[test]
    fn every_problem_of_a_price_list_is_reported() {
        let problems = prices(&json!({
            "a": {"input": -1, "output": 1}, "b": {"input": 1, "ouput": 2}, "c": 5,
        }))
        .unwrap_err();
        assert!(problems.iter().any(|one| one.contains("0 or more")), "{problems:?}");
        assert!(problems.iter().any(|one| one.contains("unknown key `ouput`")), "{problems:?}");
        assert!(problems.iter().any(|one| one.contains("a price must be a map")), "{problems:?}");
        assert!(prices(&json!([])).unwrap_err()[0].contains("a map of models"));
    }
}
