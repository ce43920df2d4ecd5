//! Reads token usage from an answer, in any of the common forms.

use model::{Ending, Step, Tokens, Usage};
use serde_json::{Map, Value};

use crate::traces::SpanReport;
use crate::turn::Turn;

/// Fields that may hold the usage.
pub(super) const USAGE_FIELDS: [&str; 4] = ["usage", "tokenUsage", "token_usage", "totalUsage"];
const INPUT: [&str; 6] = ["input_tokens", "prompt_tokens", "input", "inputTokens", "promptTokens", "prompt_eval_count"];
const OUTPUT: [&str; 6] =
    ["output_tokens", "completion_tokens", "output", "outputTokens", "completionTokens", "eval_count"];
/// Names for tokens read from a cache that are not included in the input.
const CACHE_READ: [&str; 3] = ["cache_read_input_tokens", "cache_read", "cacheRead"];
const CACHE_WRITE: [&str; 3] = ["cache_creation_input_tokens", "cache_write", "cacheWrite"];
/// Names for tokens read from a cache that are included in the input.
const CACHED: [&str; 1] = ["cachedInputTokens"];
/// Names for the sum of input and output.
const TOTAL: [&str; 3] = ["total_tokens", "total", "totalTokens"];
const REASONING: [&str; 3] = ["reasoning_tokens", "reasoning", "reasoningTokens"];
/// Names for the cost in US dollars.
pub(crate) const COST: [&str; 2] = ["cost_usd", "costUsd"];

/// Returns all names of token counts.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    let read = INPUT.into_iter().chain(OUTPUT).chain(REASONING);
    read.chain(CACHE_READ).chain(CACHE_WRITE).chain(CACHED)
}

/// Reads a map of usage.
pub(crate) fn usage(object: &Map<String, Value>) -> Count {
    let mut count = Count::default();
    count.read(object);
    count
}

/// Reads a number of tokens: an integer, possibly written with a decimal point.
fn whole_number(value: &Value) -> Option<u64> {
    value.as_number().and_then(model::decode::as_whole)
}

/// Counts known so far. A stream reports them one after another, and later values replace earlier ones.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Count {
    input: Option<u64>,
    output: Option<u64>,
    total: Option<u64>,
    cache_read: Option<u64>,
    cache_write: Option<u64>,
    /// Part of the input that was read from a cache.
    cached: Option<u64>,
    reasoning: Option<u64>,
    cost_usd: Option<f64>,
}

impl Count {
    /// Reads the usage of `holder` from any of the usual fields.
    pub(crate) fn read_from(&mut self, holder: &Map<String, Value>) {
        let object = USAGE_FIELDS.iter().find_map(|key| holder.get(*key)?.as_object());
        if let Some(object) = object {
            self.read(object);
        } else if holder.contains_key("prompt_eval_count") || holder.contains_key("eval_count") {
            self.read(holder);
        }
    }

    /// Reads the numbers in `object`.
    pub(crate) fn read(&mut self, object: &Map<String, Value>) {
        let first = |names: &[&str]| names.iter().find_map(|name| whole_number(object.get(*name)?));
        let within = |holders: [&str; 2], name: &str| {
            holders.iter().find_map(|holder| whole_number(object.get(*holder)?.get(name)?))
        };
        let keep = |old: &mut Option<u64>, new: Option<u64>| *old = new.or(*old);
        keep(&mut self.input, first(&INPUT));
        keep(&mut self.output, first(&OUTPUT));
        keep(&mut self.total, first(&TOTAL));
        keep(&mut self.cache_read, first(&CACHE_READ));
        keep(&mut self.cache_write, first(&CACHE_WRITE));
        let cached = within(["prompt_tokens_details", "input_tokens_details"], "cached_tokens");
        keep(&mut self.cached, cached.or_else(|| first(&CACHED)));
        let reasoning = within(["completion_tokens_details", "output_tokens_details"], "reasoning_tokens");
        keep(&mut self.reasoning, reasoning.or_else(|| first(&REASONING)));
        self.read_cost(object);
    }

    /// Adds the usage of another step.
    pub(crate) fn add(&mut self, step: &Self) {
        let sum = |old: &mut Option<u64>, new: Option<u64>| {
            *old = match (*old, new) {
                (None, None) => None,
                (old, new) => Some(old.unwrap_or(0).saturating_add(new.unwrap_or(0))),
            };
        };
        sum(&mut self.input, step.input);
        sum(&mut self.output, step.output);
        sum(&mut self.total, step.total);
        sum(&mut self.cached, step.cached);
        sum(&mut self.reasoning, step.reasoning);
    }

    /// Returns `true` if no number is known.
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Takes the cost from a key of `object`, if there is one.
    pub(crate) fn read_cost(&mut self, object: &Map<String, Value>) {
        let cost = COST.iter().find_map(|name| object.get(*name)?.as_f64());
        self.cost_usd = cost.filter(|cost| cost.is_finite() && *cost >= 0.0).or(self.cost_usd);
    }

    /// Returns the input and the output; a missing one follows from the total.
    fn sides(&self) -> [Option<u64>; 2] {
        let rest = |known: Option<u64>| Some(self.total?.saturating_sub(known?));
        [self.input.or_else(|| rest(self.output)), self.output.or_else(|| rest(self.input))]
    }

    /// Returns `true` if some tokens are reported, and others are not.
    pub(crate) fn is_partial(&self) -> bool {
        self.usage().tokens.is_some() && self.sides().contains(&None)
    }

    /// Returns the usage. Tokens that are not reported count as 0.
    pub(crate) fn usage(&self) -> Usage {
        let known = [self.input, self.output, self.cache_read, self.cache_write, self.cached, self.reasoning];
        let [input, output] = self.sides();
        let cached = self.cached.unwrap_or(0);
        let tokens = known.iter().any(Option::is_some).then(|| Tokens {
            input: input.unwrap_or(0).saturating_sub(cached),
            output: output.or(self.reasoning).unwrap_or(0),
            cache_read: self.cache_read.unwrap_or(0).saturating_add(cached),
            cache_write: self.cache_write.unwrap_or(0),
            reasoning: self.reasoning,
        });
        Usage { tokens, cost_usd: self.cost_usd }
    }

    /// Returns the usage of a reply: that of its spans, or that of the answer if they do not contain it. Records that
    /// tokens are missing.
    ///
    /// # Errors
    /// Returns the ending if the trial is to stop.
    pub(crate) fn of_reply(&self, report: Option<&SpanReport>, turn: &mut Turn) -> Result<Usage, Ending> {
        let (own, answer) = (report.map(SpanReport::usage).unwrap_or_default(), self.usage());
        if own.tokens.is_none() && self.is_partial() {
            turn.record(Step::TokensUnreported)?;
        }
        Ok(Usage { tokens: own.tokens.or(answer.tokens), cost_usd: own.cost_usd.or(answer.cost_usd) })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tokens(object: &Value) -> Option<Tokens> {
        let mut count = Count::default();
        count.read_from(object.as_object().unwrap());
        count.usage().tokens
    }

    #[test]
    fn every_form_gives_the_same_result() {
        let plain = Some(Tokens { input: 3, output: 4, ..Tokens::default() });
        for form in [
            json!({"usage": {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}}),
            json!({"usage": {"input_tokens": 3, "output_tokens": 4}}),
            json!({"usage": {"input": 3, "output": 4, "total": 7}}),
            json!({"tokenUsage": {"inputTokens": 3, "outputTokens": 4}}),
            json!({"usage": {"promptTokens": 3, "completionTokens": 4}}),
            json!({"prompt_eval_count": 3, "eval_count": 4}),
            json!({"usage": {"input": 3.0, "output": 4, "cost_usd": 0.5}}),
            json!({"usage": {"input": 3, "total": 7}}),
            json!({"usage": {"total_tokens": 7, "completion_tokens": 4}}),
        ] {
            assert_eq!(tokens(&form), plain, "{form}");
        }
        for none in [
            json!({}),
            json!({"usage": null}),
            json!({"usage": {"promptTokens": null}}),
            json!({"usage": 3}),
            json!({"usage": {"total": 7, "input": -1}}),
        ] {
            assert_eq!(tokens(&none), None, "{none}");
        }
    }

    #[test]
    fn half_of_the_tokens_is_not_the_whole() {
        let is_partial = |object: Value| usage(object.as_object().unwrap()).is_partial();
        for partial in [json!({"input": 3}), json!({"reasoning": 2}), json!({"output": 4, "cache_read": 1})] {
            assert!(is_partial(partial.clone()), "{partial}");
        }
        for whole in [json!({}), json!({"cost_usd": 1}), json!({"total": 7}), json!({"input": 3, "total": 7})] {
            assert!(!is_partial(whole.clone()), "{whole}");
        }
    }

    #[test]
    fn cached_tokens_are_counted_once() {
        let openai = json!({"usage": {"prompt_tokens": 10, "completion_tokens": 5, "prompt_tokens_details":
            {"cached_tokens": 8}, "completion_tokens_details": {"reasoning_tokens": 2}}});
        let expected = Tokens { input: 2, output: 5, cache_read: 8, cache_write: 0, reasoning: Some(2) };
        assert_eq!(tokens(&openai), Some(expected));
        let anthropic = json!({"usage": {"input_tokens": 2, "output_tokens": 5, "cache_read_input_tokens": 8,
            "cache_creation_input_tokens": 1}});
        let expected = Tokens { input: 2, output: 5, cache_read: 8, cache_write: 1, reasoning: None };
        assert_eq!(tokens(&anthropic), Some(expected));
    }
}
