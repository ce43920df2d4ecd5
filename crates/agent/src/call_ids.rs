//! Compares the tool calls that an agent's program reports with those that its model asked for. A call that the model
//! did not ask for was written into the program's output.

use llm::Block;
use model::{Effect, ToolCall};
use serde_json::Value;

/// Raw name of the call for a skill that the user mentioned in a message to Codex.
pub(crate) const MENTIONED: &str = "$";

/// Raw names of calls for a skill that the user invoked. They are added by the agent's program, not made by its model.
const BY_USER: [&str; 2] = ["/", MENTIONED];

/// Origin of the ids of the calls that a program reports.
#[derive(Debug, Clone, Copy)]
pub struct CallIds {
    /// Returns the command in the arguments of a shell call as the model gave them.
    command: fn(&Value) -> Option<String>,
    /// Returns `true` for an id that the program makes up when it cannot report the model's id.
    is_made_up: fn(&str) -> bool,
    /// Tool whose calls start further calls, with ids that the program makes up.
    script_tool: Option<&'static str>,
}

impl CallIds {
    /// All ids come from the model.
    pub(crate) const OF_MODEL: Self = Self {
        command: |input| input["command"].as_str().map(str::to_owned),
        is_made_up: |_| false,
        script_tool: None,
    };

    /// The ids come from the model, except in the cases that the functions describe.
    pub(crate) const fn mostly_of_model(
        command: fn(&Value) -> Option<String>,
        is_made_up: fn(&str) -> bool,
        script_tool: &'static str,
    ) -> Self {
        Self { command, is_made_up, script_tool: Some(script_tool) }
    }

    /// Returns the ids of the reported calls that are not among those that the model `asked` for.
    pub fn forged<'a>(&self, reported: impl Iterator<Item = &'a ToolCall>, asked: &[Block]) -> Vec<String> {
        let reported: Vec<&ToolCall> = reported.filter(|call| !BY_USER.contains(&call.raw_name.as_str())).collect();
        // The program's own ids are trusted only if it reports no others, because an agent could write them too.
        let cannot_know = reported.iter().all(|call| (self.is_made_up)(&call.id))
            || asked.iter().any(|block| match block {
                Block::ToolUse { name, .. } => Some(name.as_str()) == self.script_tool,
                Block::Other(item) => self.script_tool.is_some() && item["name"].as_str() == self.script_tool,
                _ => false,
            });
        if cannot_know {
            return Vec::new();
        }
        reported.iter().filter(|call| !self.is_asked(call, asked)).map(|call| call.id.clone()).collect()
    }

    fn is_asked(&self, call: &ToolCall, asked: &[Block]) -> bool {
        let is_other = |block: &Block| match block {
            Block::Other(item) => names_tool(item, &call.raw_name) || has_id(item, &call.id),
            _ => false,
        };
        if asked.iter().any(is_other) {
            return true;
        }
        asked.iter().any(|block| match block {
            Block::ToolUse { id, input, .. } if is_of(&call.id, id) => {
                call.effect != Effect::Shell || call.input["command"].as_str() == (self.command)(input).as_deref()
            }
            _ => false,
        })
    }
}

/// Returns `true` if `item` is a call of the tool `name` that the provider itself made. Its id may differ from the one
/// that the program reports.
fn names_tool(item: &Value, name: &str) -> bool {
    let of_item = item["type"].as_str().and_then(|kind| kind.strip_suffix("_call"));
    of_item.or(item["name"].as_str()) == Some(name)
}

/// Returns `true` if `id` is the id of `item`, or of a part of it.
fn has_id(item: &Value, id: &str) -> bool {
    ["call_id", "id"].iter().filter_map(|key| item[*key].as_str()).any(|original| is_of(id, original))
}

/// Returns `true` if `id` is `original`, or the id of a part of that call: one call that changes several files becomes
/// several calls, whose ids are the original id, a colon and the path.
fn is_of(id: &str, original: &str) -> bool {
    let rest = id.strip_prefix(original).filter(|_| !original.is_empty());
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(':'))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const SOMETIMES: CallIds = CallIds::mostly_of_model(
        |input| input["cmd"].as_str().map(str::to_owned),
        |id| id.starts_with("item"),
        "script",
    );

    fn asked(id: &str, name: &str, input: Value) -> Block {
        Block::ToolUse { id: id.to_owned(), name: name.to_owned(), input }
    }

    fn shell(id: &str, command: &str) -> ToolCall {
        ToolCall::new(id, "Bash", json!({"command": command}), "m")
    }

    #[test]
    fn a_call_with_an_unknown_id_or_another_command_is_forged() {
        let model = [asked("call_1", "Bash", json!({"command": "ls"}))];
        let forged = |calls: &[ToolCall]| CallIds::OF_MODEL.forged(calls.iter(), &model);
        assert_eq!(forged(&[shell("call_1", "ls")]), [""; 0]);
        assert_eq!(forged(&[shell("call_1", "pytest")]), ["call_1"]);
        assert_eq!(forged(&[shell("call_1", "ls"), shell("call_2", "ls")]), ["call_2"]);
        let change = ToolCall::new("call_1:a.txt", "Write", json!({"file_path": "a.txt"}), "m");
        assert_eq!(forged(&[change]), [""; 0], "one call may change several files");
        let other = ToolCall::new("call_10", "Write", json!({"file_path": "a.txt"}), "m");
        assert_eq!(forged(&[other]), ["call_10"]);
    }

    #[test]
    fn ids_of_the_program_are_trusted_only_if_it_reports_no_others() {
        let model = [asked("call_1", "exec", json!({"cmd": "ls"}))];
        let forged = |calls: &[ToolCall]| SOMETIMES.forged(calls.iter(), &model);
        assert_eq!(forged(&[shell("item_1", "ls"), shell("item_2", "pytest")]), [""; 0]);
        assert_eq!(forged(&[shell("call_1", "ls"), shell("item_2", "pytest")]), ["item_2"]);
    }

    #[test]
    fn a_call_that_the_provider_made_itself_is_not_forged() {
        let search = ToolCall { raw_name: "web_search".into(), ..ToolCall::new("item_2", "WebSearch", json!({}), "m") };
        let called = ToolCall::new("call_1", "Edit", json!({}), "m");
        let model =
            [asked("call_1", "edit", json!({})), Block::Other(json!({"type": "web_search_call", "id": "ws_1"}))];
        assert_eq!(CallIds::OF_MODEL.forged([called.clone(), search.clone()].iter(), &model), [""; 0]);
        assert_eq!(CallIds::OF_MODEL.forged([called, search].iter(), &model[..1]), ["item_2"]);
        let patch = [Block::Other(json!({"type": "custom_tool_call", "call_id": "call_2", "name": "apply_patch"}))];
        let change = |id: &str| ToolCall::new(id, "Write", json!({}), "m");
        let changes = [change("call_2:a.txt"), change("call_20:a.txt")];
        assert_eq!(CallIds::OF_MODEL.forged(changes.iter(), &patch), ["call_20:a.txt"]);
    }

    #[test]
    fn calls_that_a_script_of_the_model_may_have_made_are_not_forged() {
        let model = [asked("call_1", "script", json!({"code": "run('pytest')"}))];
        assert_eq!(SOMETIMES.forged([shell("exec-7", "pytest")].iter(), &model), [""; 0]);
    }
}
