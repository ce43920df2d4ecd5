//! Reads the persona and the simulated user.

use std::path::Path;

use model::decode::{Fields, Problems};
use model::{Node, NodeKind, SimulatedUser};
use serde_json::{Map, Value};

use crate::model_name;

/// Default maximum number of messages from a simulated user.
const MAX_TURNS: u64 = 10;

/// Reads a persona: its role, or a map of its properties.
pub(super) fn persona(node: &Node, problems: &mut Problems) -> Option<Map<String, Value>> {
    let mut persona = Map::new();
    if let NodeKind::String(role) = &node.kind {
        model::decode::text(node, "`persona`", problems)?;
        persona.insert("role".to_owned(), Value::from(role.as_str()));
        return Some(persona);
    }
    let mut fields = Fields::of(node, "`persona`", problems)?;
    let role = fields.required_text("role", problems);
    let mut insert = |key: &str, text: Option<String>| {
        if let Some(text) = text {
            persona.insert(key.to_owned(), Value::from(text));
        }
    };
    insert("role", role);
    insert("name", fields.text("name", problems));
    insert("tone", fields.text("tone", problems));
    insert("backstory", fields.text("backstory", problems));
    if let Some(context) = fields.get("context") {
        persona.insert("context".to_owned(), context.to_json());
    }
    fields.finish(problems);
    Some(persona)
}

/// Reads `user`, the simulated user. It has the conversation's persona unless it has its own.
pub(super) fn read(
    fields: &mut Fields<'_>,
    conversations: &Map<String, Value>,
    directory: &Path,
    problems: &mut Problems,
) -> Option<SimulatedUser> {
    let node = fields.get("user")?;
    let mut block = Fields::of(node, "`user`", problems)?;
    let own = block.get("persona").and_then(|node| persona(node, problems));
    let goal = block.required_text("goal", problems);
    let stop_when = block.text("stop_when", problems);
    let max_turns = block.whole("max_turns", 1, problems).unwrap_or(MAX_TURNS);
    let model = block.text("model", problems).zip(block.get("model"));
    let source = model.as_ref().map_or(node, |(_, place)| place).excerpt();
    let model = model.and_then(|(name, place)| model_name::model(&name, place, directory, problems));
    block.finish(problems);
    Some(SimulatedUser {
        persona: own.unwrap_or_else(|| conversations.clone()),
        goal: goal?,
        stop_when,
        max_turns,
        model,
        source,
    })
}
