//! OpenAI Chat Completions: `POST /v1/chat/completions`, which many other servers support too.

mod client;
mod server;

pub(crate) use client::Client;
pub(super) use server::ChatCompletions;

use model::Tokens;
use serde_json::{Value, json};

use super::parts::{whole, written};
use crate::{Block, StopReason};

/// Name of the format, and of the field that contains a schema.
const SCHEMA: &str = "json_schema";

/// Reads the usage. In this format, the prompt includes cached tokens, and the completion includes reasoning. Some
/// vendors count reasoning separately, which the total reveals.
fn tokens(usage: &Value) -> Option<Tokens> {
    let prompt = whole(usage, &["prompt_tokens"])?;
    let completion = whole(usage, &["completion_tokens"]).unwrap_or(0);
    let cached = whole(usage, &["prompt_tokens_details", "cached_tokens"])
        .or(whole(usage, &["prompt_cache_hit_tokens"]))
        .unwrap_or(0);
    let cache_write = whole(usage, &["prompt_tokens_details", "cache_write_tokens"]).unwrap_or(0);
    let reasoning = whole(usage, &["completion_tokens_details", "reasoning_tokens"]);
    let apart = reasoning.unwrap_or(0);
    let is_apart = apart > 0 && whole(usage, &["total_tokens"]) == Some(prompt + completion + apart);
    Some(Tokens {
        input: prompt.saturating_sub(cached).saturating_sub(cache_write),
        cache_read: cached,
        cache_write,
        output: if is_apart { completion + apart } else { completion },
        reasoning,
    })
}

/// Formats the usage.
fn usage(tokens: &Tokens) -> Value {
    let prompt = tokens.input + tokens.cache_read + tokens.cache_write;
    let mut usage = json!({
        "prompt_tokens": prompt,
        "completion_tokens": tokens.output,
        "total_tokens": prompt + tokens.output,
        "prompt_tokens_details": {"cached_tokens": tokens.cache_read},
    });
    if tokens.cache_write > 0 {
        usage["prompt_tokens_details"]["cache_write_tokens"] = json!(tokens.cache_write);
    }
    if let Some(reasoning) = tokens.reasoning {
        usage["completion_tokens_details"] = json!({"reasoning_tokens": reasoning});
    }
    usage
}

/// Formats the tool calls among `content`.
fn calls(content: &[Block]) -> Vec<Value> {
    let call = |block: &Block| match block {
        Block::ToolUse { id, name, input } => {
            Some(json!({"id": id, "type": "function", "function": {"name": name, "arguments": written(input)}}))
        }
        _ => None,
    };
    content.iter().filter_map(call).collect()
}

fn stop_reason(word: &str, calls_tools: bool) -> StopReason {
    match word {
        // Some servers send `stop` even if tools are called.
        "stop" if calls_tools => StopReason::ToolUse,
        "stop" => StopReason::EndTurn,
        "tool_calls" | "function_call" => StopReason::ToolUse,
        "length" => StopReason::MaxTokens,
        "content_filter" => StopReason::Refusal,
        word => StopReason::Other(word.to_owned()),
    }
}

fn stop_word(reason: &StopReason) -> &str {
    match reason {
        StopReason::EndTurn | StopReason::StopSequence | StopReason::Paused => "stop",
        StopReason::ToolUse => "tool_calls",
        StopReason::MaxTokens => "length",
        StopReason::Refusal => "content_filter",
        StopReason::Other(word) => word,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_counts_are_normalised_across_vendors() {
        let cached = json!({
            "prompt_tokens": 100, "completion_tokens": 30, "total_tokens": 130,
            "prompt_tokens_details": {"cached_tokens": 60}, "completion_tokens_details": {"reasoning_tokens": 20},
        });
        let expected = Tokens { input: 40, cache_read: 60, cache_write: 0, output: 30, reasoning: Some(20) };
        assert_eq!(tokens(&cached), Some(expected));
        assert_eq!(tokens(&usage(&expected)), Some(expected));
        let apart = json!({
            "prompt_tokens": 100, "completion_tokens": 30, "total_tokens": 150,
            "completion_tokens_details": {"reasoning_tokens": 20},
        });
        assert_eq!(tokens(&apart).map(|tokens| tokens.output), Some(50));
        let hit = json!({"prompt_tokens": 10, "prompt_cache_hit_tokens": 4, "completion_tokens": 1});
        assert_eq!(tokens(&hit), Some(Tokens { input: 6, cache_read: 4, output: 1, ..Tokens::default() }));
        assert_eq!(tokens(&json!({})), None);
        assert_eq!(tokens(&Value::Null), None);
    }
}
