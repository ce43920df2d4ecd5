//! Goldens of conversations, in which a model plays the user.

use model::decode::Fields;
use model::{Case, Node, NodeKind, SimulatedUser, UserMessage};
use serde_json::{Map, Value};

use super::deepeval::is_empty;
use super::{parsed, plain};
use crate::format::foreign::{Keys, Reading};

/// Number of messages that the user sends at most.
const MAX_TURNS: u64 = 10;

/// Settings of voices, which text does not have.
const VOICE: [(&str, &str); 7] = [
    ("interruption_behavior", "messages are text"),
    ("speaks_first", "the user always speaks first"),
    ("muted", "messages are text"),
    ("voice", "messages are text"),
    ("background_noise", "messages are text"),
    ("multilingual_stt", "messages are text"),
    ("hold_timeout", "messages are text"),
];

impl Reading<'_> {
    /// Reads a conversation: its user, and messages with which it begins.
    pub(super) fn conversation(
        &mut self,
        row: &Node,
        scenario: &str,
        outcome: Option<&str>,
        persona: Option<String>,
        turns: Option<&Node>,
        case: &mut Case,
    ) {
        let mut own = Map::new();
        if let Some(persona) = persona {
            own.insert("context".to_owned(), Value::from(persona));
        }
        case.user = Some(Box::new(SimulatedUser {
            persona: own,
            goal: scenario.to_owned(),
            stop_when: outcome.map(|outcome| format!("this is reached: {outcome}")),
            max_turns: MAX_TURNS,
            model: None,
            source: row.excerpt(),
        }));
        let Some(node) = turns else { return };
        let Some(Node { kind: NodeKind::List(items), .. }) = parsed(node) else {
            self.found.push(node.error("`turns` must be a list"));
            return;
        };
        for item in &items {
            let Some(fields) = Fields::of(item, "a turn", &mut self.found) else { continue };
            let mut fields = fields.in_either_case();
            let role = fields.text("role", &mut self.found);
            let content = fields.get("content").and_then(plain);
            match role.as_deref() {
                Some("user") => case.messages.extend(content.map(UserMessage::text)),
                Some("assistant") => self.ignore("turns[].role: assistant", "the agent answers", item),
                Some(other) => self.found.push(item.error(format!("a turn of the role `{other}` is not known"))),
                None => self.found.push(item.error("a turn has no `role`").of_missing(&["role"])),
            }
            let of_answers = "it describes an answer, and the agent answers";
            let ignored = [
                ("user_id", "it describes the turn"),
                ("userId", "it describes the turn"),
                ("additional_metadata", "it describes the turn"),
                ("additionalMetadata", "it describes the turn"),
                ("comments", "it describes the turn"),
                ("retrieval_context", of_answers),
                ("retrievalContext", of_answers),
                ("tools_called", of_answers),
                ("toolsCalled", of_answers),
                ("audio", "messages are text"),
                ("latency_ms", of_answers),
                ("interrupted", "messages are text"),
                ("provider_transcript", "messages are text"),
                ("mcp_tools_called", of_answers),
                ("mcp_resources_called", of_answers),
                ("mcp_prompts_called", of_answers),
            ];
            self.close(&fields, "turns[]", &ignored, &[] as &Keys<'_>);
        }
    }

    /// Returns who the user is.
    pub(super) fn persona(&mut self, node: &Node) -> String {
        let parsed = parsed(node);
        let node = parsed.as_ref().unwrap_or(node);
        if let Some(text) = plain(node) {
            return text;
        }
        let Some(fields) = Fields::of(node, "`persona`", &mut self.found) else { return String::new() };
        let mut fields = fields.in_either_case();
        let mut value = |key: &'static str| fields.get(key).filter(|node| !is_empty(node)).and_then(plain);
        let name = value("name").map(|name| format!("Name: {name}"));
        let parts: Vec<String> = name.into_iter().chain(value("characteristics")).collect();
        let details = fields.get("metadata").map(|node| format!("Details: {}", node.to_json()));
        self.close(&fields, "persona", &VOICE, &[] as &Keys<'_>);
        parts.into_iter().chain(details).collect::<Vec<_>>().join("\n")
    }
}
