//! Patches of several files, which some models write instead of separate edits.

use model::ToolCall;
use serde_json::{Map, Value, json};

use crate::command_line::quoted;

/// Name of the tool for patches.
pub(super) const TOOL: &str = "apply_patch";

/// Change of one file by a patch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Change {
    kind: Kind,
    path: String,
    /// Content of a new file or the diff of an existing one.
    text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Add,
    Update,
    Delete,
}

const HEADS: [(&str, Kind); 3] =
    [("*** Add File: ", Kind::Add), ("*** Update File: ", Kind::Update), ("*** Delete File: ", Kind::Delete)];

/// Returns the changes of `patch`, one per file.
pub(super) fn changes(patch: &str) -> Vec<Change> {
    let mut changes: Vec<Change> = Vec::new();
    for line in patch.lines() {
        let head = HEADS.iter().find_map(|(head, kind)| Some((line.strip_prefix(head)?.trim(), *kind)));
        match (head, changes.last_mut()) {
            (Some((path, kind)), _) => changes.push(Change { kind, path: path.to_owned(), text: String::new() }),
            (None, Some(change)) if line != "*** End Patch" => {
                let line = if change.kind == Kind::Add { line.strip_prefix('+').unwrap_or(line) } else { line };
                change.text.push_str(line);
                change.text.push('\n');
            }
            (None, _) => {}
        }
    }
    changes
}

impl Change {
    /// Returns the equivalent call without a patch.
    pub(super) fn call(&self, id: &str, message: &str) -> ToolCall {
        let path = json!(self.path);
        let (name, input) = match self.kind {
            Kind::Add => ("Write", vec![("file_path", path), ("content", json!(self.text))]),
            Kind::Update => ("Edit", vec![("file_path", path), ("patch", json!(self.text))]),
            Kind::Delete => ("Bash", vec![("command", json!(format!("rm {}", quoted(&self.path))))]),
        };
        let input: Map<String, Value> = input.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
        let mut call = ToolCall::new(format!("{id}:{}", self.path), name, Value::Object(input), message);
        TOOL.clone_into(&mut call.raw_name);
        call
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_added_changed_and_removed() {
        let patch = "*** Begin Patch\n*** Add File: a.txt\n+one\n+\n*** Update File: b.txt\n*** Move to: c.txt\n@@\n-x\n+y\n\
                     *** Delete File: d e.txt\n*** End Patch\n";
        let calls: Vec<ToolCall> = changes(patch).iter().map(|change| change.call("c1", "m")).collect();
        let told: Vec<_> = calls.iter().map(|call| (call.name.as_str(), call.input.clone())).collect();
        assert_eq!(
            told,
            [
                ("Write", json!({"file_path": "a.txt", "content": "one\n\n"})),
                ("Edit", json!({"file_path": "b.txt", "patch": "*** Move to: c.txt\n@@\n-x\n+y\n"})),
                ("Bash", json!({"command": "rm 'd e.txt'"})),
            ]
        );
        assert!(calls.iter().all(|call| call.raw_name == TOOL && call.id.starts_with("c1:")));
        assert_eq!(changes("no patch"), []);
    }
}
