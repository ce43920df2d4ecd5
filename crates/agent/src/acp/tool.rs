//! Maps the tools of agents to the canonical ones. The protocol has a kind and a title for each call; a name only if the
//! agent adds it.

use serde_json::{Map, Value, json};

use crate::json::{items, owned, text};

/// A tool with the name under which agents report it.
struct Named {
    name: &'static str,
    canonical: &'static str,
    /// Arguments with other names.
    arguments: &'static [(&'static str, &'static str)],
}

const fn named(
    name: &'static str,
    canonical: &'static str,
    arguments: &'static [(&'static str, &'static str)],
) -> Named {
    Named { name, canonical, arguments }
}

/// Tools of Gemini, Qwen and Codex, which OpenCode does not have under the same name.
const NAMED: &[Named] = &[
    named("read_file", "Read", &[("absolute_path", "file_path"), ("path", "file_path")]),
    named("write_file", "Write", &[("path", "file_path")]),
    named("replace", "Edit", &[]),
    named("run_shell_command", "Bash", &[]),
    named("shell", "Bash", &[]),
    named("exec_command", "Bash", &[("cmd", "command")]),
    named("list_directory", "LS", &[("dir_path", "path")]),
    named("search_file_content", "Grep", &[("dir_path", "path"), ("include", "glob")]),
    named("grep_search", "Grep", &[("dir_path", "path")]),
    named("web_fetch", "WebFetch", &[]),
    named("google_web_search", "WebSearch", &[]),
    named("web_search", "WebSearch", &[]),
    named("activate_skill", "Skill", &[("name", "skill")]),
    named("todo_write", "TodoWrite", &[]),
    named("write_todos", "TodoWrite", &[]),
];

/// Returns the canonical name of a tool and the arguments with other names.
fn find(name: &str) -> Option<(&'static str, &'static [(&'static str, &'static str)])> {
    let own = NAMED.iter().find(|tool| tool.name == name).map(|tool| (tool.canonical, tool.arguments));
    let of_opencode = || {
        let (_, canonical, arguments) = crate::opencode::tool::table().find(|(known, ..)| *known == name)?;
        Some((canonical, arguments))
    };
    own.or_else(of_opencode).or_else(|| model::tool::find(name).map(|tool| (tool.name, &[][..])))
}

/// Data of a call, as far as its updates have reported it.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Reported {
    /// Name of the tool, if the agent tells it.
    pub(super) name: Option<String>,
    /// Title for users.
    pub(super) title: String,
    /// Kind: `read`, `edit`, `execute` …
    pub(super) kind: String,
    /// Arguments.
    pub(super) input: Value,
    /// Parts of the result, and changes of files.
    pub(super) content: Vec<Value>,
    /// Result as the tool returned it.
    pub(super) output: Value,
    /// Paths of files.
    pub(super) paths: Vec<String>,
}

/// A call in canonical form.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Canonical {
    pub(super) name: String,
    pub(super) raw_name: String,
    pub(super) input: Value,
    /// True if the name is that of a tool, and not only a kind of tools.
    pub(super) is_named: bool,
    /// True if its arguments were reported.
    pub(super) has_arguments: bool,
}

impl Reported {
    /// Takes the fields that an update has.
    pub(super) fn merge(&mut self, update: &Value, id: &str) {
        let told = ["/_meta/claudeCode/toolName", "/_meta/toolName", "/_meta/tool_name", "/name"]
            .iter()
            .find_map(|path| update.pointer(path).and_then(Value::as_str));
        let first_title = || text(update, "title").filter(|title| self.title.is_empty() && find(title).is_some());
        // Gemini's ids begin with the name of the tool.
        let in_id = || id.split_once("__").map(|(name, _)| name).filter(|name| find(name).is_some());
        if let Some(name) = told.or_else(first_title).or_else(in_id).filter(|name| !name.is_empty())
            && (self.name.is_none() || told.is_some())
        {
            self.name = Some(name.to_owned());
        }
        for (field, key) in [(&mut self.title, "title"), (&mut self.kind, "kind")] {
            if let Some(value) = text(update, key) {
                value.clone_into(field);
            }
        }
        match update.get("rawInput") {
            // A request for a permission may have fewer arguments than the call, and others.
            Some(Value::Object(more)) if self.input.is_object() => {
                let known = self.input.as_object_mut();
                known.into_iter().for_each(|known| known.extend(more.clone()));
            }
            Some(value) if !value.is_null() => self.input = value.clone(),
            _ => {}
        }
        if let Some(output) = update.get("rawOutput").filter(|output| !output.is_null()) {
            self.output = output.clone();
        }
        let content = items(update, "content");
        if !content.is_empty() {
            self.content = content.to_vec();
        }
        let paths: Vec<String> = items(update, "locations").iter().filter_map(|place| owned(place, "path")).collect();
        if !paths.is_empty() {
            self.paths = paths;
        }
    }

    /// Returns `true` if arguments were reported.
    pub(super) fn has_input(&self) -> bool {
        self.input.as_object().is_some_and(|input| !input.is_empty()) || self.input.is_string()
    }

    /// Returns the call in canonical form. A tool is canonical if its name is known, or if the kind decides: a command
    /// is executed, or a file is changed and the change is reported. Otherwise the agent's own name stands, or the kind.
    pub(super) fn canonical(&self) -> Canonical {
        let known = self.name.as_deref().and_then(find);
        // Some agents report a tool of an MCP server only by its name as the title.
        let is_name = |title: &&String| {
            let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
            matches!(self.kind.as_str(), "other" | "") && title.contains('_') && title.chars().all(is_plain)
        };
        let raw_name = self.name.clone().or_else(|| Some(&self.title).filter(is_name).cloned());
        let raw_name = raw_name.or_else(|| Some(self.kind.clone()).filter(|kind| !kind.is_empty()));
        let raw_name = raw_name.unwrap_or_else(|| "other".to_owned());
        let of = |name: &str, input: Value| Canonical {
            name: name.to_owned(),
            raw_name: raw_name.clone(),
            input,
            is_named: true,
            has_arguments: true,
        };
        if let Some((canonical, arguments)) = known {
            let mut call = of(canonical, self.completed(canonical, renamed(self.input.clone(), arguments)));
            let key = model::tool::find(canonical).and_then(|tool| tool.key_argument);
            call.has_arguments = self.has_input() || key.is_none_or(|key| call.input.get(key).is_some());
            return call;
        }
        if self.name.is_none() {
            let command = command(&self.input).filter(|_| self.kind == "execute");
            if let Some(command) = command {
                return of("Bash", with(self.input.clone(), "command", json!(command)));
            }
            if let Some((name, input)) = self.change().filter(|_| self.kind == "edit") {
                return of(name, input);
            }
        }
        let input = if self.input.is_null() { json!({}) } else { self.input.clone() };
        let is_named = self.name.is_some();
        Canonical { name: raw_name.clone(), raw_name, input, is_named, has_arguments: true }
    }

    /// Returns the arguments of a known tool, with those that the agent reports in another place.
    fn completed(&self, canonical: &str, input: Value) -> Value {
        let lacks = |key: &str| input.get(key).is_none_or(Value::is_null);
        match canonical {
            "Bash" => match command(&input) {
                Some(command) => with(input, "command", json!(command)),
                // Gemini reports no arguments, and the command as the title.
                None if !self.has_input() && !self.title.is_empty() => json!({"command": self.title}),
                None => input,
            },
            "Read" | "Write" | "Edit" if lacks("file_path") => match (self.change(), &self.paths[..]) {
                (Some((_, change)), _) => change,
                (None, [path]) => with(input, "file_path", json!(path)),
                (None, _) if input.is_null() => json!({}),
                (None, _) => input,
            },
            _ if input.is_null() => json!({}),
            _ => input,
        }
    }

    /// Returns the first change of a file in the content: the canonical tool that makes it, and its arguments.
    fn change(&self) -> Option<(&'static str, Value)> {
        let diff = self.content.iter().find(|part| text(part, "type") == Some("diff"))?;
        let (path, new) = (text(diff, "path")?, text(diff, "newText")?);
        Some(match text(diff, "oldText").filter(|old| !old.is_empty()) {
            None => ("Write", json!({"file_path": path, "content": new})),
            Some(old) => ("Edit", json!({"file_path": path, "old_string": old, "new_string": new})),
        })
    }

    /// Returns the result as text, and `true` if it is an error. `terminal` returns the output of a terminal.
    pub(super) fn result(&self, has_failed: bool, terminal: impl Fn(&str) -> Option<String>) -> (String, bool) {
        let exit = ["/metadata/exit", "/exit_code", "/exitCode", "/exitStatus/exitCode"]
            .iter()
            .find_map(|path| self.output.pointer(path).and_then(Value::as_i64));
        let is_error = has_failed || exit.is_some_and(|code| code != 0);
        let whole = ["output", "formatted_output", "aggregated_output", "stdout"]
            .iter()
            .find_map(|key| text(&self.output, key))
            .or_else(|| self.output.as_str())
            .filter(|output| !output.is_empty());
        if let Some(whole) = whole {
            return (whole.to_owned(), is_error);
        }
        let shown = |part: &Value| match text(part, "type") {
            Some("content") => part.get("content").map(|block| crate::json::texts(&json!([block]))),
            Some("terminal") => text(part, "terminalId").and_then(&terminal),
            _ => None,
        };
        let parts: Vec<String> = self.content.iter().filter_map(shown).filter(|part| !part.is_empty()).collect();
        match (parts.is_empty(), &self.output) {
            (true, Value::Null | Value::String(_)) => (String::new(), is_error),
            (true, output) => (output.to_string(), is_error),
            (false, _) => (parts.join("\n"), is_error),
        }
    }
}

/// Returns the command in the arguments of a call.
fn command(input: &Value) -> Option<String> {
    let found = ["command", "cmd"].iter().find_map(|key| input.get(key))?;
    match found {
        Value::String(command) => Some(command.clone()).filter(|command| !command.is_empty()),
        Value::Array(words) => {
            let words: Option<Vec<String>> = words.iter().map(|word| word.as_str().map(str::to_owned)).collect();
            words.filter(|words| !words.is_empty()).map(|words| crate::codex::command::of_words(&words))
        }
        _ => None,
    }
}

fn with(input: Value, key: &str, value: Value) -> Value {
    let mut input = if let Value::Object(input) = input { input } else { Map::new() };
    input.insert(key.to_owned(), value);
    Value::Object(input)
}

fn renamed(input: Value, arguments: &[(&str, &str)]) -> Value {
    let Value::Object(mut input) = input else { return input };
    for (own, canonical) in arguments {
        if let Some(value) = input.remove(*own) {
            // Qwen sends an argument under its old and its new name.
            input.entry((*canonical).to_owned()).or_insert(value);
        }
    }
    Value::Object(input)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(update: &Value) -> (Reported, Canonical) {
        let mut reported = Reported::default();
        reported.merge(update, update["toolCallId"].as_str().unwrap_or_default());
        let canonical = reported.canonical();
        (reported, canonical)
    }

    #[test]
    fn the_name_or_the_kind_decides_which_tool_was_called() {
        let cases = [
            (
                json!({"kind": "execute", "rawInput": {"command": ["bash", "-lc", "ls"]}}),
                "Bash",
                json!({"command": "ls"}),
            ),
            (json!({"kind": "execute", "title": "Run it"}), "execute", json!({})),
            (
                json!({"kind": "edit", "content": [{"type": "diff", "path": "/w/a", "oldText": null, "newText": "x"}]}),
                "Write",
                json!({"file_path": "/w/a", "content": "x"}),
            ),
            (
                json!({"kind": "edit", "content": [{"type": "diff", "path": "/w/a", "oldText": "y", "newText": "x"}]}),
                "Edit",
                json!({"file_path": "/w/a", "old_string": "y", "new_string": "x"}),
            ),
            (json!({"kind": "edit", "title": "Change"}), "edit", json!({})),
            (json!({"kind": "read", "title": "README.md"}), "read", json!({})),
            (
                json!({"name": "read_file", "rawInput": {"absolute_path": "/a", "file_path": "/a"}}),
                "Read",
                json!({"file_path": "/a"}),
            ),
            (json!({"_meta": {"toolName": "query_db"}, "rawInput": {"q": 1}}), "query_db", json!({"q": 1})),
            (json!({"title": "bash", "rawInput": {"command": "ls"}}), "Bash", json!({"command": "ls"})),
            (json!({"toolCallId": "run_shell_command__1", "title": "wc -l a"}), "Bash", json!({"command": "wc -l a"})),
        ];
        for (update, name, input) in cases {
            let (_, canonical) = of(&update);
            assert_eq!((canonical.name.as_str(), canonical.input), (name, input), "{update}");
        }
        assert!(!of(&json!({"kind": "read"})).1.is_named);
    }

    #[test]
    fn a_command_that_exits_with_an_error_has_failed() {
        let (reported, _) = of(&json!({"rawOutput": {"output": "2", "metadata": {"exit": 3}}}));
        assert_eq!(reported.result(false, |_| None), ("2".to_owned(), true));
        let parts = json!([{"type": "content", "content": {"type": "text", "text": "a"}}, {"type": "terminal", "terminalId": "t"}]);
        let (reported, _) = of(&json!({"content": parts}));
        assert_eq!(reported.result(false, |id| Some(id.to_owned())), ("a\nt".to_owned(), false));
    }

    #[test]
    fn every_canonical_name_is_defined_in_the_model_crate() {
        for tool in NAMED {
            assert!(model::tool::find(tool.canonical).is_some(), "{}", tool.name);
        }
    }
}
