//! The lines of a text that are JSON objects, with their positions.

use std::sync::Arc;

use model::{Diagnostic, DiagnosticKind, Source, Span, foreign_json};
use serde_json::{Map, Value};

use crate::transcript::kind;

/// Reads a text line by line. Lines that are not JSON objects become problems.
pub(crate) struct JsonLines<'a> {
    pub(crate) source: &'a Arc<Source>,
    /// Position of the next line.
    at: usize,
    pub(crate) problems: &'a mut Vec<Diagnostic>,
}

/// A line.
pub(crate) struct JsonLine {
    pub(crate) span: Span,
    pub(crate) value: Map<String, Value>,
}

impl<'a> JsonLines<'a> {
    /// Creates a reader of `source` that adds its problems to `problems`.
    pub(crate) fn new(source: &'a Arc<Source>, problems: &'a mut Vec<Diagnostic>) -> Self {
        Self { source, at: 0, problems }
    }

    fn problem(&mut self, problem: Diagnostic, span: Span) {
        self.problems.push(problem.at(self.source.excerpt(span)));
    }
}

impl Iterator for JsonLines<'_> {
    type Item = JsonLine;

    fn next(&mut self) -> Option<JsonLine> {
        loop {
            let rest = self.source.text.get(self.at..).filter(|rest| !rest.is_empty())?;
            let length = rest.find('\n').map_or(rest.len(), |end| end + 1);
            let (start, line) = (self.at, &rest[..length]);
            self.at += length;
            let text = line.trim();
            if text.is_empty() {
                continue;
            }
            let from = start + line.len() - line.trim_start().len();
            let span = Span::new(from, from + text.len());
            match foreign_json::parse(text) {
                Ok(Value::Object(value)) => return Some(JsonLine { span, value }),
                Ok(other) => {
                    let message = format!("a line must be a JSON object, not {}", kind(&other));
                    self.problem(Diagnostic::error(message), span);
                }
                // The program that writes the file may still be running.
                Err(error) if error.is_eof() && !line.ends_with('\n') => {
                    self.problem(Diagnostic::warning("the last line is incomplete, and is not read"), span);
                }
                Err(error) => {
                    let (problem, column) = syntax_problem(&error);
                    self.problem(problem, Span::new(from + column, from + column + 1));
                }
            }
        }
    }
}

/// Returns the problem with the line of `length` bytes at the beginning of `text` if it begins a JSON value that goes on in
/// the following lines, without its location.
pub(crate) fn split_value(text: &str, length: usize) -> Option<Diagnostic> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    values.next()?.ok()?;
    let problem = Diagnostic::error("this line is not valid JSON: the value goes on in the next line");
    (values.byte_offset() > length).then(|| problem.help("each line is one JSON object"))
}

/// Returns the problem with a line that is not valid JSON, without its location, and the column in bytes.
pub(crate) fn syntax_problem(error: &serde_json::Error) -> (Diagnostic, usize) {
    let text = error.to_string();
    let what = text.split(" at line ").next().unwrap_or(&text);
    let problem = if what.starts_with("recursion limit") {
        Diagnostic::error("this line is nested too deeply to be read").help("the limit is 127 levels")
    } else if foreign_json::is_too_large(error) {
        Diagnostic::error(format!("this line is too large to be read: {what}"))
    } else {
        let problem = Diagnostic::error(format!("this line is not valid JSON: {what}"));
        problem.help("each line is one JSON object").of(DiagnosticKind::InvalidJson)
    };
    (problem, error.column().saturating_sub(1))
}
