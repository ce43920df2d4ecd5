//! Usage of a thread, message by message.

use model::Tokens;
use serde_json::Value;

/// Converts the running total of a thread into the usage of each message: a process that resumes a thread reports the
/// sum of all messages. A lower number than before is not a running total but a separate sum, which is added.
#[derive(Debug, Default)]
pub(super) struct UsageMeter {
    total: Tokens,
}

impl UsageMeter {
    /// Returns the usage since the last total; `None` if this total contains no number.
    pub(super) fn read(&mut self, usage: &Value) -> Option<Tokens> {
        let total = tokens(usage)?;
        let mut before = std::mem::replace(&mut self.total, total);
        if !is_at_least(total, before) {
            before = Tokens::default();
        }
        Some(total.since(before))
    }
}

/// Returns `true` if no number in `total` is lower than in `before`.
fn is_at_least(total: Tokens, before: Tokens) -> bool {
    total.total() >= before.total() && total.output >= before.output && total.cache_read >= before.cache_read
}

/// Reads Codex's token counts. Its input includes cached tokens, and its output includes reasoning. Returns `None` if
/// there is no number.
pub(super) fn tokens(usage: &Value) -> Option<Tokens> {
    let count = |key: &str| usage.get(key).and_then(Value::as_u64);
    count("input_tokens").or(count("output_tokens"))?;
    let part = |key: &str| count(key).unwrap_or(0);
    let (cache_read, cache_write) = (part("cached_input_tokens"), part("cache_write_input_tokens"));
    Some(Tokens {
        input: part("input_tokens").saturating_sub(cache_read).saturating_sub(cache_write),
        cache_read,
        cache_write,
        output: part("output_tokens"),
        reasoning: count("reasoning_output_tokens"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn usage(input: u64, cached: u64, output: u64, reasoning: u64) -> Value {
        json!({"input_tokens": input, "cached_input_tokens": cached, "cache_write_input_tokens": 0,
            "output_tokens": output, "reasoning_output_tokens": reasoning})
    }

    #[test]
    fn a_running_total_becomes_usage_per_message_without_cached_input() {
        let mut meter = UsageMeter::default();
        let first = Tokens { input: 400, cache_read: 100, cache_write: 0, output: 30, reasoning: Some(5) };
        assert_eq!(meter.read(&usage(500, 100, 30, 5)), Some(first));
        let second = Tokens { input: 200, cache_read: 300, cache_write: 0, output: 30, reasoning: Some(0) };
        for nothing in [Value::Null, json!({}), json!({"input_tokens": null, "output_tokens": null})] {
            assert_eq!(meter.read(&nothing), None);
        }
        assert_eq!(meter.read(&usage(1000, 400, 60, 5)), Some(second), "a report without numbers is not a total");
    }

    #[test]
    fn a_total_lower_than_the_previous_one_starts_a_new_total() {
        let mut meter = UsageMeter::default();
        let mut read = |input, cached, output| meter.read(&usage(input, cached, output, 0)).map(|used| used.total());
        assert_eq!(read(100, 60, 5), Some(105));
        assert_eq!(read(10, 0, 1), Some(11), "of another process");
        assert_eq!(read(30, 0, 4), Some(23), "and this one runs on");
    }
}
