//! Patches to several files, which some models write with the `apply_patch` tool, and the equivalent calls.

use model::ToolCall;
use serde_json::{Map, Value, json};

/// Name of the tool.
pub(crate) const APPLY_PATCH: &str = "apply_patch";

/// A change to one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Change {
    /// Path of the file.
    pub(crate) path: String,
    /// Kind of the change.
    pub(crate) kind: Kind,
    /// Content of a new file, or the diff of an existing one; `None` if unknown.
    pub(crate) text: Option<String>,
}

/// Kind of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Add,
    Update,
    Delete,
}

/// Prefixes of the lines that start a change in a patch.
const HEADS: [(&str, Kind); 3] =
    [("*** Add File: ", Kind::Add), ("*** Update File: ", Kind::Update), ("*** Delete File: ", Kind::Delete)];

/// Names of the kinds in Codex's events.
const KINDS: [(&str, Kind); 3] = [("add", Kind::Add), ("update", Kind::Update), ("delete", Kind::Delete)];

impl Kind {
    /// Parses Codex's name of the kind.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        KINDS.iter().find(|(known, _)| *known == name).map(|(_, kind)| *kind)
    }

    fn name(self) -> &'static str {
        KINDS.iter().find(|(_, kind)| *kind == self).map_or("", |(name, _)| name)
    }
}

impl Change {
    /// Returns the canonical call for the change. `id` is the id of the call with the patch.
    pub(crate) fn call(&self, id: &str, message: &str) -> ToolCall {
        let mut input = Map::new();
        let name = match self.kind {
            Kind::Delete => {
                input.insert("command".to_owned(), json!(format!("rm {}", model::text::shell_word(&self.path))));
                "Bash"
            }
            kind => {
                input.insert("file_path".to_owned(), json!(self.path));
                let (name, key) = if kind == Kind::Add { ("Write", "content") } else { ("Edit", "patch") };
                input.extend(self.text.as_ref().map(|text| (key.to_owned(), json!(text))));
                name
            }
        };
        let mut call = ToolCall::new(self.id(id), name, Value::Object(input), message);
        call.raw_name = APPLY_PATCH.to_owned();
        call
    }

    /// Returns the id of that call.
    pub(crate) fn id(&self, id: &str) -> String {
        format!("{id}:{}", self.path)
    }

    /// Returns a description of the completed change.
    pub(crate) fn done(&self) -> String {
        format!("{} {}", self.kind.name(), self.path)
    }
}

/// Returns the changes that `patch` requests, one per file. Relative paths are resolved against `work`.
pub(crate) fn parse(patch: &str, work: Option<&str>) -> Vec<Change> {
    let mut changes: Vec<Change> = Vec::new();
    for line in patch.lines() {
        let head = HEADS.iter().find_map(|(head, kind)| Some((line.strip_prefix(head)?.trim(), *kind)));
        match (head, changes.last_mut()) {
            (Some((path, kind)), _) => {
                let text = (kind != Kind::Delete).then(String::new);
                changes.push(Change { path: below(work, path), kind, text });
            }
            (None, Some(Change { kind, text: Some(text), .. })) if line != "*** End Patch" => {
                text.push_str(if *kind == Kind::Add { line.strip_prefix('+').unwrap_or(line) } else { line });
                text.push('\n');
            }
            (None, _) => {}
        }
    }
    changes
}

fn below(work: Option<&str>, path: &str) -> String {
    match work {
        Some(work) if !path.starts_with('/') => {
            format!("{}/{}", work.trim_end_matches('/'), path.trim_start_matches("./"))
        }
        _ => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_becomes_one_call_per_file() {
        let patch = "*** Begin Patch\n*** Add File: a.txt\n+one\n+\n*** Update File: /w/b.txt\n*** Move to: c.txt\n@@\n-x\n+y\n\
                     *** Delete File: ./d e.txt\n*** End Patch\n";
        let calls: Vec<_> = parse(patch, Some("/w")).iter().map(|change| change.call("c1", "m")).collect();
        let fields: Vec<_> =
            calls.iter().map(|call| (call.id.as_str(), call.name.as_str(), call.input.clone())).collect();
        assert_eq!(
            fields,
            [
                ("c1:/w/a.txt", "Write", json!({"file_path": "/w/a.txt", "content": "one\n\n"})),
                ("c1:/w/b.txt", "Edit", json!({"file_path": "/w/b.txt", "patch": "*** Move to: c.txt\n@@\n-x\n+y\n"})),
                ("c1:/w/d e.txt", "Bash", json!({"command": "rm '/w/d e.txt'"})),
            ]
        );
        assert!(calls.iter().all(|call| call.raw_name == "apply_patch"));
        assert_eq!(parse("nonsense", None), []);
        assert_eq!(parse("*** Add File: x", None)[0].path, "x");
    }
}
