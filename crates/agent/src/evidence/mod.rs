//! Runs of agents that other programs recorded. Each format has its own file and a line in [`FORMATS`].

mod atif;
mod inspect;
mod otlp;
#[cfg(test)]
mod tests;

use std::io::{self, BufRead, BufReader, Read};
use std::sync::Arc;

use model::{Diagnostic, Source, Span, foreign_json};
use serde_json::{Map, Value};

use crate::conversation::Conversation;
use crate::json_lines::JsonLines;
use crate::{claude_code, codex, opencode};

/// Number of lines that are looked at to recognise a format. A file may begin with lines of other kinds.
const FIRST_LINES: usize = 20;

/// First bytes of a file that is compressed with Zstandard, as Codex does with rollouts that it no longer uses.
const COMPRESSED: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// A format.
pub struct EvidenceFormat {
    /// Name of a file in it, for messages.
    pub name: &'static str,
    shape: Shape,
}

/// How a format is recognised and read.
enum Shape {
    /// Lines of JSON.
    Lines { is: fn(&Map<String, Value>) -> bool, read: fn(&mut JsonLines<'_>) -> Vec<Conversation> },
    /// One JSON document.
    Document {
        is: fn(&Map<String, Value>) -> bool,
        read: fn(&Source, &Value, &mut Vec<Diagnostic>) -> Vec<Conversation>,
    },
    /// Not text.
    Archive { is: fn(&[u8]) -> bool, read: fn(&str, &[u8], &mut Vec<Diagnostic>) -> Vec<Conversation> },
}

/// The formats; the first that recognises a file reads it.
pub static FORMATS: &[EvidenceFormat] = &[
    EvidenceFormat {
        name: "Claude Code session",
        shape: Shape::Lines {
            is: claude_code::session_file::is_line,
            read: |lines| vec![claude_code::session_file::read(lines)],
        },
    },
    EvidenceFormat {
        name: "Codex rollout",
        shape: Shape::Lines { is: codex::session_file::is_line, read: |lines| vec![codex::session_file::read(lines)] },
    },
    EvidenceFormat {
        name: "OpenTelemetry spans",
        shape: Shape::Lines { is: otlp::is_request, read: otlp::read_lines },
    },
    EvidenceFormat {
        name: "OpenCode export",
        shape: Shape::Document {
            is: opencode::session_file::is_document,
            read: |source, document, _| vec![opencode::session_file::read(source, document)],
        },
    },
    EvidenceFormat { name: "ATIF trajectory", shape: Shape::Document { is: atif::is_document, read: atif::read } },
    EvidenceFormat {
        name: "inspect log",
        shape: Shape::Document { is: inspect::is_document, read: inspect::read_document },
    },
    EvidenceFormat {
        name: "OpenTelemetry spans",
        shape: Shape::Document { is: otlp::is_request, read: otlp::read_document },
    },
    EvidenceFormat {
        name: "inspect log",
        shape: Shape::Archive { is: inspect::is_archive, read: inspect::read_archive },
    },
];

/// Returns the names of the formats, for messages.
pub fn names() -> Vec<&'static str> {
    let mut names: Vec<&str> = FORMATS.iter().map(|format| format.name).collect();
    names.sort_by_key(|name| name.to_lowercase());
    names.dedup();
    names
}

/// Content of a file in one of the formats.
#[derive(Debug, Default)]
pub struct Evidence {
    /// The conversations, in order.
    pub conversations: Vec<Conversation>,
    /// Problems with the file.
    pub problems: Vec<Diagnostic>,
}

/// Returns a reader of a file that may be compressed.
///
/// # Errors
/// Returns an error if the beginning of the file cannot be read.
pub fn reader<'r>(mut file: impl BufRead + 'r) -> io::Result<Box<dyn BufRead + 'r>> {
    let is_compressed = file.fill_buf()?.starts_with(&COMPRESSED);
    Ok(if is_compressed { Box::new(BufReader::new(zstd::Decoder::with_buffer(file)?)) } else { Box::new(file) })
}

/// Returns the content of a file that may be compressed.
///
/// # Errors
/// Returns an error if it is damaged, or if its content has more than `limit` bytes.
pub fn decompressed(bytes: Vec<u8>, limit: u64) -> io::Result<Vec<u8>> {
    if !bytes.starts_with(&COMPRESSED) {
        return Ok(bytes);
    }
    let mut content = Vec::new();
    reader(&bytes[..])?.take(limit + 1).read_to_end(&mut content)?;
    if content.len() as u64 > limit {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("its content has more than {limit} bytes")));
    }
    Ok(content)
}

/// Reads `bytes`, the content of the file at `path`, if it is in a format that is not text.
pub fn read_archive(path: &str, bytes: &[u8]) -> Option<Evidence> {
    let mut problems = Vec::new();
    let read = FORMATS.iter().find_map(|format| match &format.shape {
        Shape::Archive { is, read } => is(bytes).then_some(read),
        Shape::Lines { .. } | Shape::Document { .. } => None,
    })?;
    let conversations = read(path, bytes, &mut problems);
    Some(finished(&Source::new(path, ""), conversations, problems))
}

/// Reads `source`; returns `None` if it is in none of the formats that are text.
pub fn read(source: &Arc<Source>) -> Option<Evidence> {
    if is_document(&source.text) { read_document(source) } else { read_lines(source) }
}

/// Returns `true` if the text is one document rather than lines.
fn is_document(text: &str) -> bool {
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    let first = lines.next().unwrap_or_default();
    let is_only = lines.next().is_none();
    let is_object = matches!(foreign_json::parse(first), Ok(Value::Object(_)));
    is_object && is_only || !is_object && first.starts_with('{') && first.trim_end().ends_with(['{', ',', '['])
}

fn read_lines(source: &Arc<Source>) -> Option<Evidence> {
    let firsts = first_lines(&source.text);
    let read = FORMATS.iter().find_map(|format| match &format.shape {
        Shape::Lines { is, read } => firsts.iter().any(is).then_some(read),
        Shape::Document { .. } | Shape::Archive { .. } => None,
    })?;
    let mut problems = Vec::new();
    let conversations = read(&mut JsonLines::new(source, &mut problems));
    Some(finished(source, conversations, problems))
}

fn read_document(source: &Arc<Source>) -> Option<Evidence> {
    let document = match foreign_json::parse(&source.text) {
        Ok(document) => document,
        Err(error) => return Some(Evidence { problems: vec![unreadable(source, &error)], ..Evidence::default() }),
    };
    let found = FORMATS.iter().find_map(|format| match &format.shape {
        Shape::Document { is, read } => document.as_object().is_some_and(is).then_some(read),
        Shape::Lines { .. } | Shape::Archive { .. } => None,
    });
    if let Some(read) = found {
        let mut problems = Vec::new();
        let conversations = read(source, &document, &mut problems);
        return Some(finished(source, conversations, problems));
    }
    // A file with one line may be in a format with one object on each, or have an answer in the format of this program.
    if source.text.trim().lines().count() == 1 {
        return read_lines(source);
    }
    let problem = Diagnostic::error("this JSON document is not in a known format");
    let problem = problem.at(source.excerpt(Span::default()));
    let help = format!("known formats: {}, and recorded answers, one on each line", names().join(", "));
    Some(Evidence { problems: vec![problem.help(help)], ..Evidence::default() })
}

/// Moves the warnings of the conversations to the problems, unless parts of the file cannot be read: what these parts say
/// would explain some of them. A file without any conversation is an error.
fn finished(source: &Source, mut conversations: Vec<Conversation>, mut problems: Vec<Diagnostic>) -> Evidence {
    if conversations.is_empty() && !problems.iter().any(Diagnostic::is_error) {
        let problem = Diagnostic::error("the file has no conversation with an agent");
        problems.push(problem.at(source.excerpt(Span::default())));
    }
    if problems.iter().any(Diagnostic::is_error) {
        return Evidence { conversations, problems };
    }
    for conversation in &mut conversations {
        let help = "assertions about calls that are not in the record are undecided";
        for warning in std::mem::take(&mut conversation.warnings) {
            problems.push(if conversation.missing_calls.is_some() { warning.help(help) } else { warning });
        }
    }
    Evidence { conversations, problems }
}

/// Returns the first lines that are JSON objects.
fn first_lines(text: &str) -> Vec<Map<String, Value>> {
    let lines = text.lines().filter(|line| !line.trim().is_empty()).take(FIRST_LINES);
    lines
        .filter_map(|line| match foreign_json::parse(line) {
            Ok(Value::Object(line)) => Some(line),
            _ => None,
        })
        .collect()
}

/// Returns the problem with a document that is not valid JSON.
fn unreadable(source: &Source, error: &serde_json::Error) -> Diagnostic {
    let problem = Diagnostic::error(format!("this document cannot be read as JSON: {}", reason(error)));
    let problem = problem.at(source.excerpt(place(&source.text, error)));
    if reason(error).starts_with("recursion limit") || !foreign_json::is_too_large(error) {
        return problem;
    }
    problem.help(
        "for a log of inspect, `inspect log convert --to eval` writes an archive, whose samples are read one by one",
    )
}

/// Returns the reason of a parser without its position.
fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.split(" at line ").next().unwrap_or(&text).to_owned()
}

/// Returns the position of an error.
fn place(text: &str, error: &serde_json::Error) -> Span {
    let lines = text.split_inclusive('\n').take(error.line().saturating_sub(1));
    let start = lines.map(str::len).sum::<usize>() + error.column().saturating_sub(1);
    Span::new(start.min(text.len()), (start + 1).min(text.len()))
}
