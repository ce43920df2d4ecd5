//! Tools and prompts in a project's JSON and YAML files.

use std::path::Path;

use model::{Node, NodeKind};

use super::{text, tool_list};
use crate::profile::{Evidence, Fact, Profile};

/// Maximum depth of nested values.
const DEEPEST: usize = 40;

/// Keys whose value is a prompt.
const PROMPTS: [&str; 8] =
    ["prompt", "instruction", "persona", "guardrail", "guideline", "policy", "backstory", "rules"];

/// Returns the facts in the document at `path` with `content`. A document that cannot be read has none.
pub(super) fn read(path: &Path, content: &str, shown: &str) -> Profile {
    let mut profile = Profile::default();
    if let Ok(document) = suite::read_document(path, shown) {
        let is_interface = document.get("openapi").or_else(|| document.get("swagger")).is_some();
        if !is_interface {
            let lines: Vec<&str> = content.lines().collect();
            visit(&document, "", 0, &File { shown, lines }, &mut profile);
        }
    }
    profile
}

struct File<'t> {
    shown: &'t str,
    lines: Vec<&'t str>,
}

impl File<'_> {
    /// Returns the location of a sentence at or after `line`: a text with several lines begins after its key.
    fn evidence(&self, sentence: &str, line: usize) -> Evidence {
        let start: String = sentence.chars().take(24).collect();
        let holds = |number: &usize| self.lines.get(number - 1).is_some_and(|line| line.contains(start.trim_end()));
        let number = (line.max(1)..=self.lines.len()).find(holds).unwrap_or(line);
        Evidence::in_file(self.shown, number, self.lines.get(number.saturating_sub(1)).unwrap_or(&""))
    }
}

fn visit(node: &Node, key: &str, depth: usize, file: &File<'_>, profile: &mut Profile) {
    if depth > DEEPEST {
        return;
    }
    match &node.kind {
        NodeKind::Map(entries) => {
            if tool_list::has_schema(node)
                && let Some(tool) = tool_list::tool(node)
            {
                profile.merge(Profile { tools: vec![tool], ..Profile::default() });
            }
            for (key, value) in entries {
                visit(value, &key.value, depth + 1, file, profile);
            }
        }
        NodeKind::List(items) => items.iter().for_each(|item| visit(item, key, depth + 1, file, profile)),
        NodeKind::String(prompt) => {
            let lower = key.to_ascii_lowercase();
            let is_prompt = lower == "system" || lower == "goal" || PROMPTS.iter().any(|name| lower.contains(name));
            if is_prompt && text::is_sentence(prompt) {
                let line = node.excerpt().line;
                let mut found =
                    text::read_at(prompt, |at| file.evidence(prompt[at..].lines().next().unwrap_or_default(), line));
                found.prompts.push(Fact::new(prompt.trim(), Evidence::at(&node.excerpt())));
                profile.merge(found);
            }
        }
        NodeKind::Null | NodeKind::Bool(_) | NodeKind::Number(_) => {}
    }
}
