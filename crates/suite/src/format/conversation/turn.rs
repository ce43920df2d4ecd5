//! Reads the turns: messages from the user and assertions about each reply.

use model::decode::{self, Fields, Problems};
use model::{AssertionScope, Diagnostic, DiagnosticKind, Node, NodeKind, UserMessage};
use serde_json::{Map, Value};

use super::super::assertions::Assertions;
use super::super::literal;
use super::user;

/// Reads the messages in `turns`; the expectations for each reply are added to `assertions`.
pub(super) fn read(
    fields: &mut Fields<'_>,
    persona: &Map<String, Value>,
    assertions: &mut Assertions,
    problems: &mut Problems,
) -> Vec<UserMessage> {
    // A `goal` at the top level is reported as misplaced.
    let is_played = ["user", "goal"].iter().any(|key| fields.node().get(key).is_some());
    // A simulated user needs no written messages.
    let turns = if is_played { fields.get("turns") } else { fields.require("turns", problems) };
    let Some(node) = turns else { return Vec::new() };
    let Some(turns) = decode::list(node, "`turns`", problems) else { return Vec::new() };
    if turns.is_empty() && !is_played {
        problems.push(node.error("`turns` must not be empty"));
    }
    let mut messages = Vec::with_capacity(turns.len());
    for turn in turns {
        let number = messages.len() + 1;
        messages.push(message(turn, number, persona, assertions, problems).unwrap_or_default());
    }
    messages
}

/// Keys of turns in other programs.
const SYNONYMS: [(&str, &str); 9] = [
    ("user", "says"),
    ("content", "says"),
    ("message", "says"),
    ("text", "says"),
    ("prompt", "says"),
    ("input", "says"),
    ("assertions", "expect"),
    ("assert", "expect"),
    ("checks", "expect"),
];

/// Returns the problem with a turn that is written as in a transcript, with the `role` of who speaks, or as the agent's.
fn as_in_transcript(turn: &Node) -> Option<Diagnostic> {
    const AGENTS: [&str; 4] = ["assistant", "agent", "ai", "bot"];
    if turn.get("says").is_some() {
        return None;
    }
    let of_agent = || AGENTS.iter().find_map(|key| Some((*key, turn.get(key)?)));
    let (key, role) = turn.get("role").map(|role| ("role", role)).or_else(of_agent)?;
    let problem = role.error(format!("a turn has no `{key}`")).of_missing(&["role"]);
    Some(match role.as_str().filter(|_| key == "role") {
        Some("user" | "human") => problem.help("every turn is a message from the user: write `- says: TEXT`"),
        Some("system" | "developer") => {
            problem.help("remove this turn, and write its text as `append_system_prompt` of the conversation")
        }
        _ => problem.help("remove this turn: the agent answers each message; write what you require of it as `expect`"),
    })
}

/// Reads one turn, the user's message `number`.
fn message(
    turn: &Node,
    number: usize,
    persona: &Map<String, Value>,
    assertions: &mut Assertions,
    problems: &mut Problems,
) -> Option<UserMessage> {
    if let NodeKind::String(text) = &turn.kind {
        decode::text(turn, "a turn", problems)?;
        problems.extend(literal::file_as_message(turn));
        return Some(UserMessage { persona: persona.clone(), ..UserMessage::text(text) });
    }
    if let Some(problem) = as_in_transcript(turn) {
        problems.push(problem);
        return None;
    }
    let mut fields = Fields::of(turn, "a turn", problems)?.with_synonyms(&SYNONYMS);
    let says = fields.required_text("says", problems);
    problems.extend(fields.get("says").and_then(literal::file_as_message));
    let own = fields.get("persona").and_then(|node| user::persona(node, problems));
    if let Some(items) = fields.list("expect", problems) {
        assertions.read(items, AssertionScope::Reply(number), problems);
    }
    let known = problems.len();
    fields.finish(problems);
    for problem in problems.get_mut(known..).unwrap_or_default() {
        if matches!(problem.kind, DiagnosticKind::UnknownKey { meant: None, .. }) {
            problem.help.insert(0, "assertions about the reply are items of `expect`".to_owned());
        }
    }
    Some(UserMessage { persona: own.unwrap_or_else(|| persona.clone()), ..UserMessage::text(says?) })
}
