//! JSON in the answer or in a file.

use std::borrow::Cow;

use expect::SourceLocation;
use model::{Evidence, Need, foreign_json};
use serde_json::Value;

use crate::format;
use crate::given;
use crate::reading::Reading;
use crate::sandbox_file::{self, FileProbe, SandboxFile};
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
    /// The value that is the whole source.
    Value(Value),
    /// The values in fenced blocks of the answer: the first one, and the others. Blocks without valid JSON are left out.
    Blocks(Value, Vec<Value>),
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
        let Some(file) = &self.file else { return in_answer(evidence) };
        let path = &file.path;
        match file.probe(evidence)? {
            found_file @ (FileProbe::Nothing | FileProbe::Other(_)) => Ok(JsonLookup::None {
                reason: format!("there is no file named `{path}`"),
                actual: found_file.describe(),
            }),
            FileProbe::File(size, _, true) => {
                let reason = format!("`{path}` has {size} bytes and was not read completely");
                Err(Box::new(sandbox_file::too_large(path, reason, evidence).place(&file.place)))
            }
            FileProbe::File(_, text, false) => match foreign_json::parse(text) {
                Ok(value) => Ok(JsonLookup::Value(value)),
                Err(error) => {
                    let actual = if text.is_empty() { "an empty file".to_owned() } else { format::quoted(text) };
                    unreadable(&format!("`{path}`"), &error, actual)
                }
            },
        }
    }
}

/// Finds JSON in the answer: all of it, otherwise in fenced blocks. The error is the verdict if it is too large.
pub(crate) fn in_answer(evidence: &Evidence) -> Result<JsonLookup, Box<Verdict>> {
    let answer: Cow<'_, str> = match given::output(&evidence.trace) {
        Some(Value::String(text)) => text.into(),
        Some(value) if !value.is_null() => return Ok(JsonLookup::Value(value)),
        Some(_) | None => {
            return Ok(JsonLookup::None { reason: "the agent gave no answer".into(), actual: "no answer".into() });
        }
    };
    let mut error = match foreign_json::parse(&answer) {
        Ok(value) => return Ok(JsonLookup::Value(value)),
        Err(error) => error,
    };
    let mut blocks = Vec::new();
    for block in fenced(&answer) {
        match foreign_json::parse(block) {
            Ok(value) => blocks.push(value),
            Err(wrong) if foreign_json::is_too_large(&wrong) => error = wrong,
            Err(_) => {}
        }
    }
    let mut blocks = blocks.into_iter();
    match blocks.next().filter(|_| !foreign_json::is_too_large(&error)) {
        Some(first) => Ok(JsonLookup::Blocks(first, blocks.collect())),
        None => unreadable("the answer", &error, format::quoted(&answer)),
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

/// Returns what follows from the `error` of the parser about `subject`, whose content is `actual`.
fn unreadable(subject: &str, error: &serde_json::Error, actual: String) -> Result<JsonLookup, Box<Verdict>> {
    match foreign_json::is_too_large(error) {
        true => Err(Box::new(Verdict::undecided(too_large(subject, error)))),
        false => Ok(JsonLookup::None { reason: format!("{subject} is not valid JSON: {error}"), actual }),
    }
}

/// Returns the reason why it is not known whether `subject` is valid JSON.
pub(crate) fn too_large(subject: &str, error: &serde_json::Error) -> String {
    format!("{subject} has too many levels or values to be read as JSON: {error}")
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
