//! Maps OpenCode's own tools to the canonical ones.

use model::{ToolCall, ToolResult};
use serde_json::{Map, Value, json};

use crate::apply_patch::{self, APPLY_PATCH};
use crate::json::{arguments, owned, text};

/// Name with which OpenCode replaces a call that it could not make, because the tool is unknown or the arguments are
/// invalid.
const INVALID: &str = "invalid";
/// Prefixes of the error for a denied call: without approval, or because of a rule.
const REFUSALS: [&str; 2] =
    ["The user rejected permission to use this specific tool call", "The user has specified a rule which prevents you"];

/// A tool of OpenCode.
struct ToolMapping {
    name: &'static str,
    canonical: &'static str,
    /// Permission that allows the tool.
    permission: &'static str,
    /// Arguments that have other names in OpenCode.
    arguments: &'static [(&'static str, &'static str)],
}

const fn own(
    name: &'static str,
    canonical: &'static str,
    permission: &'static str,
    arguments: &'static [(&'static str, &'static str)],
) -> ToolMapping {
    ToolMapping { name, canonical, permission, arguments }
}

const OWN: &[ToolMapping] = &[
    own("bash", "Bash", "bash", &[]),
    own("read", "Read", "read", &[("filePath", "file_path")]),
    own("write", "Write", "edit", &[("filePath", "file_path")]),
    own(
        "edit",
        "Edit",
        "edit",
        &[
            ("filePath", "file_path"),
            ("oldString", "old_string"),
            ("newString", "new_string"),
            ("replaceAll", "replace_all"),
        ],
    ),
    own("multiedit", "MultiEdit", "edit", &[("filePath", "file_path")]),
    own("glob", "Glob", "glob", &[]),
    own("grep", "Grep", "grep", &[("include", "glob")]),
    own("list", "LS", "list", &[]),
    own("webfetch", "WebFetch", "webfetch", &[]),
    own("websearch", "WebSearch", "websearch", &[]),
    own("todowrite", "TodoWrite", "todowrite", &[]),
    own("task", "Task", "task", &[]),
    own("skill", "Skill", "skill", &[("name", "skill")]),
    own("question", "AskUserQuestion", "question", &[]),
];

/// Returns the canonical names of OpenCode's tools.
pub(super) fn canonical() -> impl Iterator<Item = &'static str> {
    OWN.iter().map(|own| own.canonical)
}

/// Returns the tools: OpenCode's name, the canonical name, and the arguments that have another name.
pub(crate) fn table() -> impl Iterator<Item = (&'static str, &'static str, &'static [(&'static str, &'static str)])> {
    OWN.iter().map(|own| (own.name, own.canonical, own.arguments))
}

/// Returns the permission that allows a canonical tool. A name that is not canonical is itself a permission.
pub(super) fn permission(canonical: &str) -> &str {
    OWN.iter().find(|own| own.canonical == canonical).map_or(canonical, |own| own.permission)
}

/// Reads a finished call with its result. A patch becomes one call for each file that it changes.
pub(super) fn read(part: &Value, message: &str) -> Vec<(ToolCall, ToolResult)> {
    let (id, tool) = (text(part, "callID").unwrap_or_default(), text(part, "tool").unwrap_or_default());
    let state = part.get("state").unwrap_or(&Value::Null);
    let input = arguments(state, "input");
    let (content, is_error) = answer(tool, state);
    let input_of = |call: ToolCall| {
        let result = ToolResult { id: call.id.clone(), content: content.clone(), is_error };
        (call, result)
    };
    if tool == INVALID {
        // The arguments are not reported.
        let meant = text(&input, "tool").unwrap_or(INVALID);
        return vec![input_of(call(id, meant, json!({}), message))];
    }
    let patch = text(&input, "patchText").filter(|_| tool == APPLY_PATCH);
    let changes = patch.map(|patch| apply_patch::parse(patch, None)).unwrap_or_default();
    if changes.is_empty() {
        return vec![input_of(call(id, tool, input, message))];
    }
    changes.iter().map(|change| input_of(change.call(id, message))).collect()
}

/// Returns the reason why a call was denied; `None` if it was allowed or failed for another reason.
pub(super) fn refusal(result: &ToolResult) -> Option<String> {
    let refused = result.is_error && REFUSALS.iter().any(|start| result.content.starts_with(start));
    // The rest is the complete list of rules.
    refused.then(|| result.content.split_inclusive('.').next().unwrap_or_default().to_owned())
}

pub(crate) fn call(id: &str, tool: &str, input: Value, message: &str) -> ToolCall {
    let Some(own) = OWN.iter().find(|own| own.name == tool) else {
        return ToolCall::new(id, tool, input, message);
    };
    let mut call = ToolCall::new(id, own.canonical, renamed(input, own.arguments), message);
    tool.clone_into(&mut call.raw_name);
    call
}

fn renamed(input: Value, arguments: &[(&str, &str)]) -> Value {
    let Value::Object(input) = input else { return input };
    let name = |own: String| match arguments.iter().find(|(known, _)| *known == own) {
        Some((_, canonical)) => (*canonical).to_owned(),
        None => own,
    };
    Value::Object(input.into_iter().map(|(own, value)| (name(own), value)).collect::<Map<_, _>>())
}

/// Returns a tool's output, and `true` if it is an error. The status of a command is `completed` for any exit code.
fn answer(tool: &str, state: &Value) -> (String, bool) {
    if text(state, "status") == Some("error") {
        return (owned(state, "error").unwrap_or_default(), true);
    }
    let output = owned(state, "output").unwrap_or_default();
    // `null` is the exit code of a command that was killed, for example after a timeout.
    let failed = state.pointer("/metadata/exit").is_some_and(|code| code.as_i64() != Some(0));
    (output, tool == INVALID || failed)
}

#[cfg(test)]
mod tests {
    use model::Effect;

    use super::*;

    fn part(tool: &str, state: &Value) -> Value {
        json!({"type": "tool", "tool": tool, "callID": "c1", "state": state})
    }

    fn one(tool: &str, state: &Value) -> (ToolCall, ToolResult) {
        let mut read = read(&part(tool, state), "m1");
        assert_eq!(read.len(), 1);
        read.remove(0)
    }

    #[test]
    fn names_and_arguments_are_canonical_and_the_raw_name_is_kept() {
        let input = json!({"filePath": "/w/a", "oldString": "x", "newString": "y", "replaceAll": true, "new": 1});
        let (call, result) = one("edit", &json!({"status": "completed", "input": input, "output": "Edit applied"}));
        assert_eq!((call.name.as_str(), call.raw_name.as_str(), call.effect), ("Edit", "edit", Effect::Write));
        let expected =
            json!({"file_path": "/w/a", "old_string": "x", "new_string": "y", "replace_all": true, "new": 1});
        assert_eq!((call.input, call.message.as_str()), (expected, "m1"));
        assert_eq!((result.content.as_str(), result.is_error), ("Edit applied", false));

        let (call, _) = one("skill", &json!({"status": "completed", "input": {"name": "greet"}, "output": ""}));
        assert_eq!((call.effect, call.input), (Effect::Skill, json!({"skill": "greet"})));
        let (call, _) = one("db_query", &json!({"status": "completed", "input": {"sql": "x"}}));
        assert_eq!((call.name.as_str(), call.raw_name.as_str(), call.effect), ("db_query", "db_query", Effect::Other));
    }

    #[test]
    fn a_command_has_failed_unless_it_exits_with_zero() {
        let run = |exit: &str| {
            let metadata: Value = serde_json::from_str(exit).unwrap();
            one("bash", &json!({"status": "completed", "input": {}, "output": "out\n", "metadata": metadata}))
                .1
                .is_error
        };
        assert!(!run(r#"{"exit": 0}"#) && !run("{}"));
        assert!(run(r#"{"exit": 3}"#) && run(r#"{"exit": null}"#));
    }

    #[test]
    fn a_call_that_could_not_be_made_is_a_failed_call_of_the_intended_tool() {
        let state =
            json!({"status": "completed", "input": {"tool": "bash", "error": "no"}, "output": "The arguments …"});
        let (call, result) = one("invalid", &state);
        assert_eq!((call.name.as_str(), call.raw_name.as_str(), call.input), ("Bash", "bash", json!({})));
        assert!(result.is_error);
    }

    #[test]
    fn a_denial_is_reported_without_the_list_of_rules() {
        let result = |content: &str| ToolResult { id: "c".into(), content: content.into(), is_error: true };
        let ruled = "The user has specified a rule which prevents you from using this specific tool call. Here are some \
                     of the relevant rules [{}]";
        assert_eq!(
            refusal(&result(ruled)).as_deref(),
            Some("The user has specified a rule which prevents you from using this specific tool call.")
        );
        assert!(refusal(&result("The user rejected permission to use this specific tool call.")).is_some());
        assert_eq!(refusal(&result("File not found: /x")), None);
    }

    #[test]
    fn a_patch_becomes_one_call_per_file() {
        let text = "*** Begin Patch\n*** Add File: a.txt\n+one\n*** Delete File: b.txt\n*** End Patch\n";
        let state = json!({"status": "completed", "input": {"patchText": text}, "output": "Success"});
        let calls = read(&part("apply_patch", &state), "m1");
        let fields: Vec<_> =
            calls.iter().map(|(call, result)| (call.id.as_str(), call.name.as_str(), result.is_error)).collect();
        assert_eq!(fields, [("c1:a.txt", "Write", false), ("c1:b.txt", "Bash", false)]);
        let state = json!({"status": "error", "input": {"patchText": "nonsense"}, "error": "no patch"});
        assert_eq!(read(&part("apply_patch", &state), "m1")[0].0.name, "apply_patch");
    }

    #[test]
    fn every_canonical_name_is_defined_in_the_model_crate() {
        for own in OWN {
            assert!(model::tool::find(own.canonical).is_some(), "{}", own.name);
        }
        assert_eq!(permission("Write"), "edit");
        assert_eq!(permission("db_query"), "db_query");
    }
}
