//! JSON in the answer or in a file.

use std::borrow::Cow;

use expect::SourceLocation;
use model::{Evidence, Need, foreign_json};
use serde_json::Value;

use crate::format;
use crate::given;
use crate::reading::Reading;
use crate::sandbox_file::{FileProbe, SandboxFile, too_large};
use crate::verdict::Verdict;

/// Maximum number of places in an answer at which JSON may begin.
const MAX_STARTS: usize = 1000;

/// Location of JSON: in a file, or in the answer.
#[derive(Debug, Clone)]
pub(crate) struct JsonSource {
    /// The file. If `None`, the answer is read.
    pub file: Option<SandboxFile>,
}

/// Result of looking for JSON.
pub(crate) enum JsonLookup {
    /// A value, and `true` if it was in a fenced block of the answer.
    Value(Value, bool),
    /// No valid JSON, with the reason and the content that was found.
    None { reason: String, actual: String },
}

impl JsonSource {
    /// Reads `path`, if it is given. Errors are already reported.
    pub fn read(reading: &mut Reading<'_>) -> Option<Self> {
        let file = match reading.fields.get("path") {
            Some(_) => Some(SandboxFile::read(reading)?),
            None => None,
        };
        Some(Self { file })
    }

    /// Returns the sandbox probes that it needs.
    pub fn needs(&self) -> Vec<Need> {
        self.file.iter().map(SandboxFile::need).collect()
    }

    /// Returns the name of the source for messages: `the answer`, or the file.
    pub fn describe(&self) -> String {
        self.file.as_ref().map_or_else(|| "the answer".to_owned(), |file| format!("`{}`", file.path))
    }

    /// Returns where the path is written.
    pub fn place(&self) -> Option<&SourceLocation> {
        self.file.as_ref().map(|file| &file.place)
    }

    /// Finds the value. The error is the verdict if the source cannot be read.
    pub fn find(&self, evidence: &Evidence) -> Result<JsonLookup, Box<Verdict>> {
        let Some(file) = &self.file else { return Ok(in_answer(evidence)) };
        let path = &file.path;
        match file.probe(evidence)? {
            found_file @ (FileProbe::Nothing | FileProbe::Other(_)) => Ok(JsonLookup::None {
                reason: format!("there is no file named `{path}`"),
                actual: found_file.describe(),
            }),
            FileProbe::File(size, _, true) => {
                let reason = format!("`{path}` has {size} bytes and was not read completely");
                Err(Box::new(too_large(path, reason, evidence).place(&file.place)))
            }
            FileProbe::File(_, text, false) => Ok(match parsed(text.trim_start_matches('\u{feff}')) {
                Ok(value) => JsonLookup::Value(value, false),
                Err(error) => JsonLookup::None {
                    reason: unreadable(&format!("`{path}`"), &error),
                    actual: if text.is_empty() { "an empty file".to_owned() } else { format::quoted(text) },
                },
            }),
        }
    }
}

/// Finds JSON in the answer: all of it, otherwise a fenced block.
pub(crate) fn in_answer(evidence: &Evidence) -> JsonLookup {
    let answer: Cow<'_, str> = match given::output(&evidence.trace) {
        Some(Value::String(text)) => text.into(),
        Some(value) if !value.is_null() => return JsonLookup::Value(value, false),
        Some(_) | None => {
            return JsonLookup::None { reason: "the agent gave no answer".into(), actual: "no answer".into() };
        }
    };
    let error = match parsed(&answer) {
        Ok(value) => return JsonLookup::Value(value, false),
        Err(error) => error,
    };
    match fenced(&answer).find_map(|block| parsed(block).ok()) {
        Some(value) => JsonLookup::Value(value, true),
        None => JsonLookup::None { reason: unreadable("the answer", &error), actual: format::quoted(&answer) },
    }
}

/// Returns `true` if the answer contains a JSON object or list, with other text around it. A list of one number does
/// not count: `[1]` is a reference to a source.
pub(crate) fn is_inside_answer(evidence: &Evidence) -> bool {
    let Some(Value::String(text)) = given::output(&evidence.trace) else { return false };
    let is_meant = |value: &Value| match value {
        Value::Object(_) => true,
        Value::Array(items) => !items.is_empty() && !matches!(items.as_slice(), [Value::Number(_)]),
        _ => false,
    };
    // Each start is tried, so their number is limited.
    let starts = text.match_indices(['{', '[']).take(MAX_STARTS);
    starts.map(|(at, _)| &text[at..]).any(|rest| {
        let first = serde_json::Deserializer::from_str(rest).into_iter::<Value>().next();
        first.is_some_and(|value| value.is_ok_and(|value| is_meant(&value)))
    })
}

/// Returns the reason why `subject` cannot be read as JSON.
fn unreadable(subject: &str, error: &serde_json::Error) -> String {
    match foreign_json::is_too_large(error) {
        true => format!("{subject} is too large to be read as JSON: {error}"),
        false => format!("{subject} is not valid JSON: {error}"),
    }
}

fn parsed(text: &str) -> Result<Value, serde_json::Error> {
    foreign_json::parse(text)
}

/// Returns the contents of fenced blocks that are labelled as JSON or have no label.
fn fenced(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        loop {
            let (mark, is_json, inside) = opening(rest)?;
            let end = end_of_block(inside, &mark);
            rest = &inside[end.1..];
            if is_json {
                return Some(&inside[..end.0]);
            }
        }
    })
}

/// Finds the next fence. Returns its marks, `true` if the block may be JSON, and the text after its line.
fn opening(text: &str) -> Option<(String, bool, &str)> {
    let mut offset = 0;
    for line in text.split_inclusive('\n') {
        offset += line.len();
        let bare = line.trim();
        let letter = bare.chars().next().filter(|first| matches!(first, '`' | '~'));
        let length = letter.map_or(0, |letter| bare.chars().take_while(|other| *other == letter).count());
        if length >= 3 {
            let (mark, info) = bare.split_at(length);
            let language = info.split_whitespace().next().unwrap_or_default().to_ascii_lowercase();
            return Some((mark.to_owned(), language.is_empty() || language.starts_with("json"), &text[offset..]));
        }
    }
    None
}

/// Returns the end of the block, and the start of the text after it.
fn end_of_block(text: &str, mark: &str) -> (usize, usize) {
    let mut index = 0;
    for line in text.split_inclusive('\n') {
        let bare = line.trim();
        let is_end = bare.starts_with(mark) && bare.chars().all(|letter| mark.starts_with(letter));
        if is_end {
            return (index, index + line.len());
        }
        index += line.len();
    }
    (index, index)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_that_may_be_json_are_found() {
        let text = "Here:\n```rust\nfn a() {}\n```\n```json\n{\"a\": 1}\n```\nand\n~~~\n[]\n~~~\n````json\n```\n````\n```JSON5\n2";
        assert_eq!(fenced(text).collect::<Vec<_>>(), ["{\"a\": 1}\n", "[]\n", "```\n", "2"]);
        assert_eq!(fenced("no fence").count(), 0);
    }
}
