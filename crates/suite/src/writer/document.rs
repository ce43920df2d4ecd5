//! A YAML document with comments.

use serde_json::Value;

/// Words that YAML does not read as text.
const WORDS: [&str; 8] = ["true", "false", "null", "yes", "no", "on", "off", "y"];

/// A document while it is written.
#[derive(Debug, Default)]
pub(super) struct Document(String);

impl Document {
    /// Adds a comment, which may have several lines.
    pub(super) fn comment(&mut self, text: &str) {
        for line in text.lines() {
            let line: String = line.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
            self.0.push_str(format!("# {line}").trim_end());
            self.0.push('\n');
        }
    }

    /// Adds a key with its value.
    pub(super) fn field(&mut self, key: &str, value: &Value) {
        entry(&mut self.0, 0, key, value);
    }

    /// Adds a key with its value, if there is one.
    pub(super) fn field_if(&mut self, key: &str, value: Option<impl Into<Value>>) {
        if let Some(value) = value {
            self.field(key, &value.into());
        }
    }

    /// Adds a key with its value, unless it is empty.
    pub(super) fn field_unless_empty(&mut self, key: &str, value: &Value) {
        let is_empty = match value {
            Value::Array(items) => items.is_empty(),
            Value::Object(entries) => entries.is_empty(),
            Value::String(text) => text.is_empty(),
            other => other.is_null(),
        };
        if !is_empty {
            self.field(key, value);
        }
    }

    /// Adds another document.
    pub(super) fn with(mut self, other: &Self) -> Self {
        self.0.push_str(&other.0);
        self
    }

    pub(super) fn finish(self) -> String {
        self.0
    }
}

fn indented(out: &mut String, depth: usize) {
    (0..depth).for_each(|_| out.push_str("  "));
}

fn entry(out: &mut String, depth: usize, key: &str, value: &Value) {
    indented(out, depth);
    out.push_str(&scalar(key));
    out.push(':');
    after(out, depth, value);
}

/// Writes what follows a key or a dash.
fn after(out: &mut String, depth: usize, value: &Value) {
    match value {
        Value::Object(entries) if !entries.is_empty() => {
            out.push('\n');
            entries.iter().for_each(|(key, value)| entry(out, depth + 1, key, value));
        }
        Value::Array(items) if !items.is_empty() => {
            out.push('\n');
            items.iter().for_each(|value| item(out, depth + 1, value));
        }
        Value::String(text) => match block(text, depth + 1) {
            Some(block) => out.push_str(&format!(" {block}")),
            None => out.push_str(&format!(" {}\n", scalar(text))),
        },
        other => out.push_str(&format!(" {other}\n")),
    }
}

fn item(out: &mut String, depth: usize, value: &Value) {
    indented(out, depth);
    out.push('-');
    let Value::Object(entries) = value else { return after(out, depth, value) };
    if entries.is_empty() {
        return out.push_str(" {}\n");
    }
    // The first key is on the line of the dash.
    let mut inner = String::new();
    entries.iter().for_each(|(key, value)| entry(&mut inner, depth + 1, key, value));
    out.push(' ');
    out.push_str(inner.trim_start_matches(' '));
}

/// Returns text of several lines as a block.
fn block(text: &str, depth: usize) -> Option<String> {
    let body = text.strip_suffix('\n').unwrap_or(text);
    let is_plain = |letter: char| {
        letter == '\n' || letter == '\t' || !(letter.is_control() || "\u{85}\u{2028}\u{2029}\u{feff}".contains(letter))
    };
    let is_block = body.contains('\n')
        && !body.starts_with([' ', '\n', '\t'])
        && !body.ends_with(['\n', ' '])
        && text.chars().all(is_plain);
    if !is_block {
        return None;
    }
    let mut out = if text.ends_with('\n') { "|\n".to_owned() } else { "|-\n".to_owned() };
    for line in body.split('\n') {
        if !line.is_empty() {
            indented(&mut out, depth);
            out.push_str(line);
        }
        out.push('\n');
    }
    Some(out)
}

/// Returns text on one line, in quotes if it could be read as something else.
fn scalar(text: &str) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || "_-./ ".contains(letter);
    let is_word = WORDS.iter().any(|word| text.eq_ignore_ascii_case(word));
    let is_safe = text.starts_with(|letter: char| letter.is_alphabetic() || letter == '_' || letter == '/')
        && !text.ends_with(' ')
        && text.chars().all(is_plain)
        && !is_word;
    if is_safe {
        return text.to_owned();
    }
    let quoted = Value::from(text).to_string();
    // JSON leaves these as they are, and YAML does not accept them or takes them for line ends.
    let mut out = String::with_capacity(quoted.len());
    for letter in quoted.chars() {
        match u32::from(letter) {
            code @ (0x7f..=0x9f | 0x2028 | 0x2029 | 0xfeff | 0xfffe | 0xffff) => {
                out.push_str(&format!("\\u{code:04x}"));
            }
            _ => out.push(letter),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use model::Source;
    use model::decode::Problems;
    use serde_json::json;

    use super::*;
    use crate::document::{self, Language};

    #[test]
    fn every_value_is_read_back() {
        let values = json!({
            "plain": "Say hi to me.", "empty": "", "list": [], "map": {}, "no": "no", "number": "12", "1": 1.5,
            "lines": "a\n  b\n\nc\n", "lines without end": "a\nb", "two ends": "a\n\n", "leading": " a\nb",
            "quotes": "it's \"x\": # y", "control": "\u{7f}\u{0}\u{85}\u{2028}\t", "dash": "- a", "é": "é: é",
            "deep": [[1, [2]], {"a": [{"b": null, "c": ["x\ny\n"]}, true]}, "x\ny"], "tab\nin key": "\ta\nb",
            "tail": "a \nb \nc", "colon": "a: b", "brace": "{{ x }}", "tilde": "~", "y": "Y",
        });
        let mut document = Document::default();
        document.comment("From `x`:\na\u{0}b");
        values.as_object().unwrap().iter().for_each(|(key, value)| document.field(key, value));
        let text = document.finish();
        let mut problems = Problems::new();
        let node = document::read(&Source::new("x.yaml", text.as_str()), Language::Yaml, &mut problems);
        assert_eq!(problems, [], "{text}");
        assert_eq!(node.unwrap().to_json(), values, "{text}");
    }

    #[test]
    fn documents_are_easy_to_read() {
        let mut document = Document::default();
        document.comment("Note.");
        document.field("turns", &json!([{"says": "Add a.\nAdd b.\n", "expect": ["x", {"contains": "b: 1"}]}]));
        document.field_unless_empty("tags", &json!([]));
        document.field_if("timeout", Some("60s"));
        assert_eq!(
            document.finish(),
            "# Note.\nturns:\n  - says: |\n      Add a.\n      Add b.\n    expect:\n      - x\n      - contains: \"b: 1\"\ntimeout: \"60s\"\n"
        );
    }
}
