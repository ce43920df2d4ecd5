//! OpenRouter's price list, and how it names vendors' models.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::Price;

/// Vendor assumed for model names without one, because the agents whose costs are reconciled use its models.
const VENDOR: &str = "anthropic";

/// OpenRouter's prices by model.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ListPrices {
    prices: BTreeMap<String, Price>,
}

impl ListPrices {
    /// Reads the response of `/models`; `None` if it is not such a list. If a model's prices cannot be read, it has
    /// none.
    pub fn parse(document: &Value) -> Option<Self> {
        let models = document.get("data")?.as_array()?;
        let prices = models.iter().filter_map(|model| {
            let name = model.get("id")?.as_str()?;
            Some((name.to_owned(), price(model.get("pricing")?)?))
        });
        Some(Self { prices: prices.collect() })
    }

    /// Returns the price of `model`, under any of its possible names.
    pub fn price(&self, model: &str) -> Option<Price> {
        slug_candidates(model).iter().find_map(|name| self.prices.get(name)).copied()
    }
}

/// Returns the possible names of a model in the list, most likely first. The list has the vendor's own name for the
/// model after the vendor's name, possibly without its date, and with a dot between the parts of its version.
pub fn slug_candidates(model: &str) -> Vec<String> {
    if model.is_empty() || model.contains('/') {
        return Some(model.to_owned()).filter(|model| !model.is_empty()).into_iter().collect();
    }
    let undated = undated(model);
    let mut names: Vec<String> = Vec::new();
    for name in [model.to_owned(), undated.to_owned(), pointed(undated)] {
        let name = format!("{VENDOR}/{name}");
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// Returns `model` without a date at its end, such as `-20251001`.
fn undated(model: &str) -> &str {
    let date = model.rsplit_once('-').filter(|(_, date)| date.len() == 8 && date.bytes().all(|c| c.is_ascii_digit()));
    date.map_or(model, |(name, _)| name)
}

/// Returns `model` with a dot in place of each hyphen between two digits.
fn pointed(model: &str) -> String {
    let bytes = model.as_bytes();
    let is_digit = |index: Option<usize>| index.and_then(|index| bytes.get(index)).is_some_and(u8::is_ascii_digit);
    let letter = |(index, letter): (usize, char)| match letter {
        '-' if is_digit(index.checked_sub(1)) && is_digit(Some(index + 1)) => '.',
        other => other,
    };
    model.char_indices().map(letter).collect()
}

/// Reads US dollars per token, as numbers or strings. A model that is listed as free has no price here, because others
/// may have to pay for it.
fn price(pricing: &Value) -> Option<Price> {
    let amount = |key: &str| match pricing.get(key) {
        None | Some(Value::Null) => Some(None),
        Some(written) => {
            let amount = written.as_f64().or_else(|| written.as_str()?.trim().parse().ok());
            amount.filter(|amount| amount.is_finite() && *amount >= 0.0).map(Some)
        }
    };
    let (prompt, completion) = (amount("prompt")??, amount("completion")??);
    if prompt == 0.0 && completion == 0.0 {
        return None;
    }
    Some(Price::per_token(prompt, completion, amount("input_cache_read")?, amount("input_cache_write")?))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_price_is_found_by_any_name_of_its_model() {
        let list = ListPrices::parse(&json!({"data": [
            {"id": "anthropic/claude-haiku-4.5", "pricing": {"prompt": "0.000001", "completion": "0.000005",
                "input_cache_read": "0.0000001", "input_cache_write": 0.00000125, "image": "0"}},
            {"id": "anthropic/free", "pricing": {"prompt": "0", "completion": "0"}},
            {"id": "openrouter/auto", "pricing": {"prompt": "-1", "completion": "-1"}},
            {"id": "anthropic/odd", "pricing": {"prompt": "cheap", "completion": "1"}},
            {"pricing": {}}, 5,
        ]}))
        .unwrap();
        for name in ["claude-haiku-4-5-20251001", "claude-haiku-4-5", "anthropic/claude-haiku-4.5"] {
            let price = list.price(name).unwrap();
            let all = [price.input, price.cache_read, price.cache_write, price.output];
            let about = all.iter().zip([1.0, 0.1, 1.25, 5.0]).all(|(one, other)| (one - other).abs() < 1e-9);
            assert!(about, "{name}: {all:?}");
        }
        for name in ["free", "odd", "openrouter/auto", "claude-opus-4", ""] {
            assert_eq!(list.price(name), None, "{name}");
        }
        assert_eq!(ListPrices::parse(&json!({"error": "no"})), None);
    }
}
