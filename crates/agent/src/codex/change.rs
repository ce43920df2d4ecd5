//! Changes of files: parses patches and converts changes to calls.

use model::ToolCall;
use serde_json::{Map, Value, json};

use crate::command_line::quoted;

/// Name of the tool that changes files.
pub(super) const APPLY_PATCH: &str = "apply_patch";

/// A change of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Change {
    /// Path of the file.
    pub(super) path: String,
    /// Kind of the change.
    pub(super) kind: Kind,
    /// Content of a new file or the diff of an existing one; `None` if unknown.
    pub(super) text: Option<String>,
}

/// Kind of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Add,
    Update,
    Delete,
}

impl Kind {
    /// Parses Codex's name of the kind.
    pub(super) fn read(word: &str) -> Option<Self> {
        Some(match word {
            "add" => Self::Add,
            "update" => Self::Update,
            "delete" => Self::Delete,
            _ => return None,
        })
    }

    fn word(self) -> &'static str {
        match self {
            Self::Add => "add",
            Self::Update => "update",
            Self::Delete => "delete",
        }
    }
}

impl Change {
    /// Returns the canonical call for the change. `id` is Codex's id.
    pub(super) fn call(&self, id: &str, message: &str) -> ToolCall {
        let mut input = Map::new();
        let name = match self.kind {
            Kind::Delete => {
                input.insert("command".to_owned(), json!(format!("rm {}", quoted(&self.path))));
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
    pub(super) fn id(&self, id: &str) -> String {
        format!("{id}:{}", self.path)
    }

    /// Returns a description of the completed change.
    pub(super) fn done(&self) -> String {
        format!("{} {}", self.kind.word(), self.path)
    }
}

/// Returns the changes that `patch` requests, one per file. Relative paths start at `work`.
pub(super) fn asked(patch: &str, work: Option<&str>) -> Vec<Change> {
    let mut changes: Vec<Change> = Vec::new();
    for line in patch.lines() {
        let head = |start: &str| line.strip_prefix(start).map(str::trim);
        let begun =
            [("*** Add File: ", Kind::Add), ("*** Update File: ", Kind::Update), ("*** Delete File: ", Kind::Delete)]
                .into_iter()
                .find_map(|(start, kind)| Some((head(start)?, kind)));
        if let Some((path, kind)) = begun {
            let text = (kind != Kind::Delete).then(String::new);
            changes.push(Change { path: below(work, path), kind, text });
            continue;
        }
        let Some(Change { kind, text: Some(text), .. }) = changes.last_mut() else { continue };
        let line = match (*kind, line) {
            (_, "*** End Patch") => continue,
            (Kind::Add, line) => line.strip_prefix('+').unwrap_or(line),
            (_, line) => line,
        };
        text.push_str(line);
        text.push('\n');
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
    fn a_patch_is_a_call_for_each_file() {
        let patch = "*** Begin Patch\n*** Add File: a.txt\n+one\n+\n*** Update File: /w/b.txt\n*** Move to: c.txt\n@@\n-x\n+y\n\
                     *** Delete File: ./d e.txt\n*** End Patch\n";
        let calls: Vec<_> = asked(patch, Some("/w")).iter().map(|change| change.call("c1", "m")).collect();
        let told: Vec<_> =
            calls.iter().map(|call| (call.id.as_str(), call.name.as_str(), call.input.clone())).collect();
        assert_eq!(
            told,
            [
                ("c1:/w/a.txt", "Write", json!({"file_path": "/w/a.txt", "content": "one\n\n"})),
                ("c1:/w/b.txt", "Edit", json!({"file_path": "/w/b.txt", "patch": "*** Move to: c.txt\n@@\n-x\n+y\n"})),
                ("c1:/w/d e.txt", "Bash", json!({"command": "rm '/w/d e.txt'"})),
            ]
        );
        assert!(calls.iter().all(|call| call.raw_name == "apply_patch"));
        assert_eq!(asked("nonsense", None), []);
        assert_eq!(asked("*** Add File: x", None)[0].path, "x");
    }
}
