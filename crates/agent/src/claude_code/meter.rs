//! Usage of a session, message by message.

use model::{Tokens, Usage};
use serde_json::Value;

/// Converts the totals that a process reports into the usage of each message.
///
/// `usage` in a result excludes sub-agents, and is zero if a budget ended the message. `modelUsage` includes
/// everything, but is a running total for the process, and in newer versions for the session. The newest versions
/// report the difference themselves.
#[derive(Debug, Default)]
pub(super) struct UsageMeter {
    tokens: Tokens,
    cost_usd: f64,
}

impl UsageMeter {
    /// Returns the usage since the last result.
    pub(super) fn read(&mut self, result: &Value) -> Usage {
        if let Some(models) = models(result, "model_usage_since_last_result") {
            self.tokens += models.tokens;
            self.cost_usd = result.get("total_cost_usd").and_then(Value::as_f64).unwrap_or(self.cost_usd);
            return Usage { tokens: Some(models.tokens), cost_usd: Some(models.cost_usd) };
        }
        let tokens = match models(result, "modelUsage") {
            Some(total) if total.is_nonempty => {
                let since = total.tokens.since(self.tokens);
                self.tokens = total.tokens;
                Some(since)
            }
            _ => result.get("usage").and_then(parse_usage),
        };
        let cost_usd = result.get("total_cost_usd").and_then(Value::as_f64).map(|total| {
            let since = total - self.cost_usd;
            self.cost_usd = total;
            // Subtraction causes rounding errors; costs below a hundred-millionth of a dollar are irrelevant.
            (since.max(0.0) * 1e8).round() / 1e8
        });
        Usage { tokens, cost_usd }
    }
}

struct Models {
    is_nonempty: bool,
    tokens: Tokens,
    cost_usd: f64,
}

/// Returns the sum over a map of models, if there is one.
fn models(result: &Value, key: &str) -> Option<Models> {
    let entries = result.get(key)?.as_object()?;
    let mut sum = Models { is_nonempty: !entries.is_empty(), tokens: Tokens::default(), cost_usd: 0.0 };
    for entry in entries.values() {
        sum.tokens += Tokens {
            input: count(entry, "inputTokens"),
            cache_read: count(entry, "cacheReadInputTokens"),
            cache_write: count(entry, "cacheCreationInputTokens"),
            output: count(entry, "outputTokens"),
            reasoning: entry.get("thinkingTokens").and_then(Value::as_u64),
        };
        sum.cost_usd += entry.get("costUSD").and_then(Value::as_f64).unwrap_or(0.0);
    }
    sum.cost_usd = (sum.cost_usd * 1e8).round() / 1e8;
    Some(sum)
}

/// Reads a message's `usage`; returns `None` if it contains no number.
pub(super) fn parse_usage(usage: &Value) -> Option<Tokens> {
    const KINDS: [&str; 4] =
        ["input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens"];
    let is_reported = KINDS.iter().any(|kind| usage.get(kind).is_some_and(Value::is_u64));
    let [input, cache_read, cache_write, output] = KINDS.map(|kind| count(usage, kind));
    let reasoning = usage.pointer("/output_tokens_details/thinking_tokens").and_then(Value::as_u64);
    is_reported.then_some(Tokens { input, cache_read, cache_write, output, reasoning })
}

fn count(from: &Value, key: &str) -> u64 {
    from.get(key).and_then(Value::as_u64).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn result(input: u64, total_input: u64, cost: f64) -> Value {
        json!({
            "usage": {"input_tokens": input},
            "modelUsage": {"m": {"inputTokens": total_input, "costUSD": cost}},
            "total_cost_usd": cost,
        })
    }

    #[test]
    fn running_totals_become_usage_per_message() {
        let mut meter = UsageMeter::default();
        let first = meter.read(&result(100, 300, 0.0006));
        assert_eq!((first.tokens.map(|tokens| tokens.input), first.cost_usd), (Some(300), Some(0.0006)));
        let second = meter.read(&result(100, 400, 0.0018));
        assert_eq!((second.tokens.map(|tokens| tokens.input), second.cost_usd), (Some(100), Some(0.0012)));
    }

    #[test]
    fn a_resumed_session_is_not_billed_for_earlier_messages() {
        let mut resumed = result(100, 400, 0.0024);
        resumed["model_usage_since_last_result"] = json!({"m": {"inputTokens": 100, "costUSD": 0.0006}});
        let usage = UsageMeter::default().read(&resumed);
        assert_eq!((usage.tokens.map(|tokens| tokens.input), usage.cost_usd), (Some(100), Some(0.0006)));
    }

    #[test]
    fn without_totals_the_usage_of_each_message_is_used() {
        let usage = UsageMeter::default().read(&json!({"usage": {"input_tokens": 7, "output_tokens": 2}}));
        assert_eq!(usage.tokens.map(|tokens| tokens.total()), Some(9));
        assert_eq!(usage.cost_usd, None);
        assert_eq!(UsageMeter::default().read(&json!({})), Usage::default());
    }
}
