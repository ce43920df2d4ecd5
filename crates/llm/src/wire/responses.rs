//! OpenAI Responses: `POST /v1/responses`.

mod client;
mod items;
mod server;

pub(crate) use client::Client;
pub(super) use server::Responses;

use model::Tokens;
use serde_json::{Value, json};

use super::parts::whole;

/// Reads the usage. In this format, the input includes cached tokens, and the output includes reasoning.
fn tokens(usage: &Value) -> Option<Tokens> {
    let input = whole(usage, &["input_tokens"])?;
    let cached = whole(usage, &["input_tokens_details", "cached_tokens"]).unwrap_or(0);
    let cache_write = whole(usage, &["input_tokens_details", "cache_write_tokens"]).unwrap_or(0);
    Some(Tokens {
        input: input.saturating_sub(cached).saturating_sub(cache_write),
        cache_read: cached,
        cache_write,
        output: whole(usage, &["output_tokens"]).unwrap_or(0),
        reasoning: whole(usage, &["output_tokens_details", "reasoning_tokens"]),
    })
}

/// Formats the usage.
fn usage(tokens: &Tokens) -> Value {
    let input = tokens.input + tokens.cache_read + tokens.cache_write;
    let mut usage = json!({
        "input_tokens": input,
        "input_tokens_details": {"cached_tokens": tokens.cache_read},
        "output_tokens": tokens.output,
        "output_tokens_details": {"reasoning_tokens": tokens.reasoning.unwrap_or(0)},
        "total_tokens": input + tokens.output,
    });
    if tokens.cache_write > 0 {
        usage["input_tokens_details"]["cache_write_tokens"] = json!(tokens.cache_write);
    }
    usage
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cached_tokens_are_subtracted_from_the_input() {
        let written = json!({
            "input_tokens": 100, "input_tokens_details": {"cached_tokens": 60},
            "output_tokens": 30, "output_tokens_details": {"reasoning_tokens": 20}, "total_tokens": 130,
        });
        let expected = Tokens { input: 40, cache_read: 60, cache_write: 0, output: 30, reasoning: Some(20) };
        assert_eq!(tokens(&written), Some(expected));
        assert_eq!(usage(&expected), written);
        assert_eq!(tokens(&json!({"output_tokens": 1})), None);
    }
}
