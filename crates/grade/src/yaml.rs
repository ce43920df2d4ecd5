//! Writes a value as YAML in common style and records the position of each part. The result is a tree with correct
//! locations, without a parser.

use model::{Node, NodeKind, Source, Span, Spanned};
use serde_json::{Map, Value};

/// Writes `value`, a map, as the item of a list, in a file called `path`.
pub(crate) fn list_item(value: &Value, path: &str) -> Node {
    let mut writer = Writer::default();
    writer.text.push_str("- ");
    writer.value(value, 2);
    writer.text.push('\n');
    let source = Source::new(path, writer.text);
    let mut spans = writer.spans.into_iter();
    tree(value, &source, &mut spans)
}

#[derive(Default)]
struct Writer {
    text: String,
    /// Span of a value, then those of its parts, with a key before its value. [`tree`] reads them in the same order.
    spans: Vec<Span>,
}

impl Writer {
    fn value(&mut self, value: &Value, indent: usize) {
        let slot = self.spans.len();
        let start = self.text.len();
        self.spans.push(Span::default());
        match value {
            Value::Object(entries) if !entries.is_empty() => self.map(entries, indent),
            Value::Array(items) if items.iter().any(Value::is_object) => {
                for (index, item) in items.iter().enumerate() {
                    if index > 0 {
                        self.line(indent);
                    }
                    self.text.push_str("- ");
                    self.value(item, indent + 2);
                }
            }
            Value::Array(items) => {
                self.text.push('[');
                for (index, item) in items.iter().enumerate() {
                    if index > 0 {
                        self.text.push_str(", ");
                    }
                    self.value(item, indent);
                }
                self.text.push(']');
            }
            Value::String(text) if is_plain(text) => self.text.push_str(text),
            other => self.text.push_str(&other.to_string()),
        }
        self.spans[slot] = Span::new(start, self.text.len());
    }

    fn map(&mut self, entries: &Map<String, Value>, indent: usize) {
        for (index, (key, value)) in entries.iter().enumerate() {
            if index > 0 {
                self.line(indent);
            }
            self.spans.push(Span::new(self.text.len(), self.text.len() + key.len()));
            self.text.push_str(key);
            self.text.push(':');
            let is_block = match value {
                Value::Object(entries) => !entries.is_empty(),
                Value::Array(items) => items.iter().any(Value::is_object),
                _ => false,
            };
            if is_block {
                self.line(indent + 2);
            } else {
                self.text.push(' ');
            }
            self.value(value, indent + 2);
        }
    }

    fn line(&mut self, indent: usize) {
        self.text.push('\n');
        self.text.push_str(&" ".repeat(indent));
    }
}

/// Returns `true` if `text` can be written without quotes and is still read as text.
fn is_plain(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "_-./".contains(c))
        && !["true", "false", "null", "yes", "no", "on", "off"].contains(&text.to_ascii_lowercase().as_str())
}

fn tree(value: &Value, source: &std::sync::Arc<Source>, spans: &mut impl Iterator<Item = Span>) -> Node {
    let span = spans.next().unwrap_or_default();
    let mut node = Node::from_json(&Value::Null, source);
    node.span = span;
    node.kind = match value {
        Value::Null => NodeKind::Null,
        Value::Bool(value) => NodeKind::Bool(*value),
        Value::Number(value) => NodeKind::Number(value.clone()),
        Value::String(value) => NodeKind::String(value.clone()),
        Value::Array(items) => NodeKind::List(items.iter().map(|item| tree(item, source, spans)).collect()),
        Value::Object(entries) => NodeKind::Map(
            entries
                .iter()
                .map(|(key, value)| {
                    let key = Spanned::new(key.clone(), spans.next().unwrap_or_default());
                    (key, tree(value, source, spans))
                })
                .collect(),
        ),
    };
    node
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_part_has_its_location() {
        let value = json!({"id": "a b", "sequence": [{"tool": "Bash", "args_match": {"command": "^git"}}, {"tool": "Read"}], "capture": ["x", "on"], "empty": {}, "max": 3});
        let node = list_item(&value, "a.yaml");
        let text = node.source.text.as_str();
        assert_eq!(
            text,
            "- id: \"a b\"\n  sequence:\n    - tool: Bash\n      args_match:\n        command: \"^git\"\n    - tool: Read\n  capture: [x, \"on\"]\n  empty: {}\n  max: 3\n"
        );
        let NodeKind::List(steps) = &node.get("sequence").unwrap().kind else { panic!("a list") };
        let pattern = steps[0].get("args_match").unwrap().get("command").unwrap();
        assert_eq!(&text[pattern.span.start()..pattern.span.end()], "\"^git\"");
        let last = steps[1].get("tool").unwrap().span;
        assert_eq!(&text[last.start()..last.end()], "Read");
        assert_eq!(node.to_json(), value);
    }
}
