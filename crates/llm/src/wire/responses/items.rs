//! Items of a conversation, which both sides write in the same way.

use serde_json::{Value, json};

use crate::message::texts;
use crate::wire::parts::{arguments, text, written};
use crate::{Block, Message, Role};

/// Formats a conversation as a list of items.
pub(super) fn of_messages(messages: &[Message]) -> Vec<Value> {
    let mut items = Vec::new();
    for message in messages {
        match message.role {
            Role::User => of_blocks(&message.content, "user", "input_text", &mut items),
            Role::Assistant => of_blocks(&message.content, "assistant", "output_text", &mut items),
            Role::System => items.push(json!({"type": "message", "role": "developer", "content": message.spoken()})),
        }
    }
    items
}

/// Formats the blocks of one message; consecutive text blocks become one item.
fn of_blocks(blocks: &[Block], role: &str, kind: &str, items: &mut Vec<Value>) {
    let mut parts: Vec<Value> = Vec::new();
    let flush = |parts: &mut Vec<Value>, items: &mut Vec<Value>| {
        if !parts.is_empty() {
            items.push(json!({"type": "message", "role": role, "content": std::mem::take(parts)}));
        }
    };
    for block in blocks {
        let item = match block {
            Block::Text { text } => {
                parts.push(json!({"type": kind, "text": text}));
                continue;
            }
            Block::Other(part) if role == "user" => {
                parts.push(part.clone());
                continue;
            }
            Block::Other(item) => item.clone(),
            // Reasoning without a signature did not come from the vendor, which could not read it back.
            Block::Thinking { signature, .. } => match signature.as_deref().and_then(sealed) {
                Some(item) => item,
                None => continue,
            },
            Block::ToolUse { id, name, input } => {
                json!({"type": "function_call", "call_id": id, "name": name, "arguments": written(input)})
            }
            Block::ToolResult { id, content, .. } => {
                json!({"type": "function_call_output", "call_id": id, "output": texts(content)})
            }
        };
        flush(&mut parts, items);
        items.push(item);
    }
    flush(&mut parts, items);
}

/// Returns the item in a signature: the vendor's complete item, which must be sent back unchanged.
fn sealed(signature: &str) -> Option<Value> {
    serde_json::from_str(signature).ok().filter(|item| text(item, "type") == Some("reasoning"))
}

/// Reads the contents of an item, with its role. An item of an unknown kind is kept unchanged.
pub(super) fn to_blocks(item: Value) -> (Role, Vec<Block>) {
    let name = |key: &str| text(&item, key).unwrap_or_default().to_owned();
    match text(&item, "type") {
        Some("message") | None => {
            let role = match text(&item, "role") {
                Some("assistant") => Role::Assistant,
                Some("system" | "developer") => Role::System,
                _ => Role::User,
            };
            (role, parts(item.get("content")))
        }
        Some("function_call") => {
            let input = arguments(text(&item, "arguments").unwrap_or_default());
            (Role::Assistant, vec![Block::ToolUse { id: name("call_id"), name: name("name"), input }])
        }
        Some("function_call_output") => {
            let content = match item.get("output") {
                Some(Value::String(text)) => vec![Block::Text { text: text.clone() }],
                other => parts(other),
            };
            (Role::User, vec![Block::ToolResult { id: name("call_id"), content, is_error: false }])
        }
        Some("reasoning") => {
            let lines = ["summary", "content"].iter().find_map(|key| {
                let parts = item.get(key)?.as_array()?;
                let texts: Vec<&str> = parts.iter().filter_map(|part| text(part, "text")).collect();
                (!texts.is_empty()).then(|| texts.join("\n"))
            });
            let signature = Some(item.to_string());
            (Role::Assistant, vec![Block::Thinking { text: lines.unwrap_or_default(), signature }])
        }
        Some(_) => (Role::Assistant, vec![Block::Other(item)]),
    }
}

/// Reads the parts of a message: text parts, the text of a refusal, and any others.
fn parts(content: Option<&Value>) -> Vec<Block> {
    match content {
        Some(Value::String(text)) => vec![Block::Text { text: text.clone() }],
        Some(Value::Array(parts)) => parts.iter().map(part).collect(),
        _ => Vec::new(),
    }
}

fn part(part: &Value) -> Block {
    let content = match text(part, "type") {
        Some("input_text" | "output_text" | "text") => text(part, "text"),
        Some("refusal") => text(part, "refusal"),
        _ => None,
    };
    content.map_or_else(|| Block::Other(part.clone()), |content| Block::Text { text: content.to_owned() })
}

/// Returns `true` if a message contains a refusal.
pub(super) fn is_refusal(item: &Value) -> bool {
    let parts = item.get("content").and_then(Value::as_array).into_iter().flatten();
    text(item, "type") == Some("message") && parts.into_iter().any(|part| text(part, "type") == Some("refusal"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encrypted_reasoning_is_returned_unchanged_and_foreign_reasoning_is_not() {
        let item = json!({"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Hm."}],
            "encrypted_content": "abc"});
        let (role, blocks) = to_blocks(item.clone());
        assert!(matches!(&blocks[..], [Block::Thinking { text, .. }] if text == "Hm."));
        let foreign = Block::Thinking { text: "x".into(), signature: Some("not json".into()) };
        let message = Message { role, content: [blocks, vec![foreign]].concat() };
        assert_eq!(of_messages(&[message]), [item]);
    }

    #[test]
    fn unknown_items_are_kept() {
        let item = json!({"type": "web_search_call", "id": "ws_1", "status": "completed"});
        let (role, blocks) = to_blocks(item.clone());
        assert_eq!(of_messages(&[Message { role, content: blocks }]), [item]);
        let image = json!({"type": "input_image", "image_url": "data:"});
        let (role, blocks) = to_blocks(json!({"role": "user", "content": [image]}));
        assert_eq!((role, blocks), (Role::User, vec![Block::Other(image)]));
    }
}
