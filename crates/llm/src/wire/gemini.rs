//! Gemini: `POST /v1beta/models/MODEL:generateContent`, and `:streamGenerateContent` for a stream.

mod client;
mod server;

pub(crate) use client::Client;
pub(super) use server::GenerateContent;

use model::Tokens;
use serde_json::{Map, Value, json};

use super::parts::{put, text, whole};
use crate::{Block, StopReason};

/// Reads the usage. In this format, the prompt includes cached tokens, and reasoning is not part of the output.
fn tokens(usage: &Value) -> Option<Tokens> {
    let count = |key: &str| whole(usage, &[key]);
    let cached = count("cachedContentTokenCount").unwrap_or(0);
    let reasoning = count("thoughtsTokenCount");
    Some(Tokens {
        input: (count("promptTokenCount")? + count("toolUsePromptTokenCount").unwrap_or(0)).saturating_sub(cached),
        cache_read: cached,
        cache_write: 0,
        output: count("candidatesTokenCount").unwrap_or(0) + reasoning.unwrap_or(0),
        reasoning,
    })
}

/// Formats the usage.
fn usage(tokens: &Tokens) -> Value {
    let prompt = tokens.input + tokens.cache_read + tokens.cache_write;
    let mut usage = json!({
        "promptTokenCount": prompt,
        "candidatesTokenCount": tokens.output.saturating_sub(tokens.reasoning.unwrap_or(0)),
        "totalTokenCount": prompt + tokens.output,
    });
    if tokens.cache_read > 0 {
        usage["cachedContentTokenCount"] = json!(tokens.cache_read);
    }
    if let Some(reasoning) = tokens.reasoning {
        usage["thoughtsTokenCount"] = json!(reasoning);
    }
    usage
}

/// Reads a part of a message of the model. The signature of a part becomes a block of reasoning before it.
fn blocks(part: &Value) -> Vec<Block> {
    let signature = text(part, "thoughtSignature").map(str::to_owned);
    let call = part.get("functionCall");
    let is_thought = part.get("thought") == Some(&Value::Bool(true));
    let block = match (call, text(part, "text")) {
        (Some(call), _) => Some(Block::ToolUse {
            id: text(call, "id").unwrap_or_default().to_owned(),
            name: text(call, "name").unwrap_or_default().to_owned(),
            input: call.get("args").filter(|args| !args.is_null()).cloned().unwrap_or_else(|| json!({})),
        }),
        (None, Some(thought)) if is_thought => {
            return vec![Block::Thinking { text: thought.to_owned(), signature }];
        }
        (None, Some(said)) => Some(Block::Text { text: said.to_owned() }).filter(|_| !said.is_empty()),
        (None, None) if part.as_object().is_some_and(|part| part.keys().any(|key| key != "thoughtSignature")) => {
            Some(Block::Other(part.clone()))
        }
        (None, None) => None,
    };
    let signature = signature.map(|sealed| Block::Thinking { text: String::new(), signature: Some(sealed) });
    signature.into_iter().chain(block).collect()
}

/// Formats a call.
fn call(id: &str, name: &str, input: &Value) -> Value {
    let mut call = Map::new();
    put(&mut call, "id", Some(id).filter(|id| !id.is_empty()));
    put(&mut call, "name", Some(name));
    let args = if input.is_object() { input.clone() } else { json!({"unreadable": input}) };
    call.insert("args".into(), args);
    json!({"functionCall": call})
}

fn stop_reason(word: &str, calls_tools: bool) -> StopReason {
    match word {
        "STOP" if calls_tools => StopReason::ToolUse,
        "STOP" => StopReason::EndTurn,
        "MAX_TOKENS" => StopReason::MaxTokens,
        "SAFETY" | "RECITATION" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII" | "IMAGE_SAFETY" => StopReason::Refusal,
        word => StopReason::Other(word.to_owned()),
    }
}

fn stop_word(reason: &StopReason) -> &str {
    match reason {
        StopReason::EndTurn | StopReason::ToolUse | StopReason::StopSequence | StopReason::Paused => "STOP",
        StopReason::MaxTokens => "MAX_TOKENS",
        StopReason::Refusal => "SAFETY",
        StopReason::Other(word) => word,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasoning_is_added_to_the_output_and_cached_tokens_are_subtracted_from_the_prompt() {
        let written = json!({"promptTokenCount": 100, "candidatesTokenCount": 30, "totalTokenCount": 150,
            "cachedContentTokenCount": 60, "thoughtsTokenCount": 20});
        let expected = Tokens { input: 40, cache_read: 60, cache_write: 0, output: 50, reasoning: Some(20) };
        assert_eq!(tokens(&written), Some(expected));
        assert_eq!(usage(&expected), written);
        assert_eq!(tokens(&json!({"candidatesTokenCount": 1})), None);
    }
}
