//! Parses text into a tree in which every value has its location. Only this module uses a parser.
//!
//! YAML is read as YAML 1.2 with the core schema, with the following decisions where parsers differ:
//! - Only `true` and `false` (also `True`, `TRUE`) are booleans; `yes`, `no`, `on` and `off` are text. Digits are a
//!   decimal number even with a leading zero (`017` is 17), octal is written `0o17`, and `1_000` is text.
//! - `.inf` and `.nan` are errors: JSON, the format of all records, has no such numbers.
//! - `<<` merges a map or a list of maps, although YAML 1.2 dropped it; keys written in the map itself take
//!   precedence.
//!
//! Keys are text and unique. A custom tag (`!re`) is kept, and the value after it is text or a collection. The number
//! of values that anchors and aliases may add to a document is limited.

mod builder;
mod comment;
mod csv;
mod error;
mod scalar;
mod toml;

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use model::decode::Problems;
use model::{Diagnostic, DiagnosticKind, Excerpt, Frontmatter, Node, NodeKind, Source, Span};

pub use self::csv::read_csv;
pub use self::toml::read_toml;

use self::builder::{Builder, build};
use self::error::{json_error, json_problem};

/// Language of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    /// YAML 1.2, core schema.
    Yaml,
    /// JSON according to RFC 8259: no comments, no trailing commas.
    Json,
}

impl Language {
    /// Returns the language of a file according to its extension; `None` for any other extension.
    pub fn from_path(path: &Path) -> Option<Self> {
        let extension = path.extension()?.to_str()?.to_ascii_lowercase();
        match extension.as_str() {
            "yaml" | "yml" => Some(Self::Yaml),
            "json" => Some(Self::Json),
            _ => None,
        }
    }
}

/// Maximum size of a document in bytes.
const MAX_DOCUMENT_BYTES: u64 = 256 << 20;

/// Reads the file at `path`, which messages call `shown`, without its byte order mark. An unreadable file or invalid
/// UTF-8 is reported with its location.
pub fn open(path: &Path, shown: &str) -> Result<Arc<Source>, Box<Diagnostic>> {
    let bytes = files::read_named(path, MAX_DOCUMENT_BYTES).map_err(|error| {
        let problem = Diagnostic::error(format!("cannot read the file: {error}")).at(Excerpt::of_file(shown));
        problem.of(DiagnosticKind::UnreadFile(error.to_string()))
    })?;
    let text = files::decode(bytes).map_err(|error| {
        let (text, offset) = error.guess();
        let source = Source::new(shown, text);
        let problem = Diagnostic::error(error.to_string().replacen("it", "the file", 1));
        problem.at(source.excerpt(Span::new(offset, offset))).help("save the file as UTF-8")
    })?;
    Ok(Source::new(shown, text))
}

/// Returns the text of the file at `path` even if it is not UTF-8, as far as it can be guessed. `None` if the file
/// cannot be read at all.
pub fn guess(path: &Path) -> Option<String> {
    let bytes = files::read_named(path, MAX_DOCUMENT_BYTES).ok()?;
    Some(files::decode(bytes).unwrap_or_else(|error| error.guess().0))
}

/// Parses the YAML or JSON file at `path`, which messages call `shown`. For documents that are not suites, such as the
/// script of a model.
///
/// # Errors
/// Returns all problems with the file and its syntax.
pub fn read_document(path: &Path, shown: &str) -> Result<Node, Problems> {
    let source = open(path, shown).map_err(|problem| vec![*problem])?;
    let mut problems = Problems::new();
    let node = read(&source, Language::from_path(path).unwrap_or(Language::Yaml), &mut problems);
    match node {
        Some(node) if problems.is_empty() => Ok(node),
        _ => Err(problems),
    }
}

/// Returns a node for the start of the file.
pub fn start(source: &Arc<Source>) -> Node {
    Node { kind: NodeKind::Null, span: Span::default(), tag: None, source: Arc::clone(source) }
}

/// Returns `true` if `text` contains several YAML documents, which none of our own file formats allows.
pub fn is_stream(text: &str) -> bool {
    let is_content = |line: &&str| !line.trim().is_empty() && !line.starts_with(['#', '%']);
    let is_start = |line: &str| line.strip_prefix("---").is_some_and(|rest| rest.is_empty() || rest.starts_with(' '));
    text.lines().filter(is_content).skip(1).any(is_start)
}

/// Parses all of `source`. Returns `None` if its syntax is broken; smaller problems are reported and the values that
/// they affect are omitted.
pub fn read(source: &Arc<Source>, language: Language, problems: &mut Problems) -> Option<Node> {
    read_part(source, 0..source.text.len(), language, problems)
}

/// Parses one document that is part of `source`, such as the frontmatter of a Markdown file.
pub fn read_part(
    source: &Arc<Source>,
    part: Range<usize>,
    language: Language,
    problems: &mut Problems,
) -> Option<Node> {
    let text = source.text.get(part.clone())?;
    if language == Language::Json
        && let Err(error) = serde_json::from_str::<serde_json::Value>(text)
    {
        problems.push(json_error(source, part.start, text, &error));
        return None;
    }
    build(Builder::new(source, part.start, problems), text).map(Builder::finish)
}

/// Returns the front matter and the text of a Markdown file. Either may be missing.
pub fn markdown(source: &Arc<Source>, problems: &mut Problems) -> Option<(Option<Node>, String)> {
    match Frontmatter::of(&source.text) {
        Ok(Frontmatter { data, is_json, body }) => {
            let language = if is_json { Language::Json } else { Language::Yaml };
            let body = source.text.get(body).unwrap_or_default().to_owned();
            let root = read_part(source, data, language, problems)?;
            let is_empty = matches!(root.kind, NodeKind::Null);
            Some((Some(root).filter(|_| !is_empty), body))
        }
        Err(_) if !source.text.starts_with("---") => Some((None, source.text.clone())),
        Err(fault) => {
            let problem = Diagnostic::error(format!("the file {fault}"));
            problems.push(problem.at(source.excerpt(Span::new(0, 0))));
            None
        }
    }
}

/// Parses all YAML documents in `source`, in order. Anchors are visible until the end of their document.
pub fn read_stream(source: &Arc<Source>, problems: &mut Problems) -> Option<Vec<Node>> {
    let mut builder = Builder::new(source, 0, problems);
    builder.earlier = Some(Vec::new());
    build(builder, &source.text).map(Builder::finish_stream)
}

/// Parses one JSON text per line of `source`. Empty lines are skipped, and broken ones are reported.
pub fn read_json_lines(source: &Arc<Source>, problems: &mut Problems) -> Vec<Node> {
    let mut nodes = Vec::new();
    let mut start = 0;
    for line in source.text.split_inclusive('\n') {
        let range = start..start + line.trim_end().len();
        start += line.len();
        let text = source.text.get(range.clone()).unwrap_or_default();
        if text.trim_start().is_empty() {
            continue;
        }
        match serde_json::from_str::<serde::de::IgnoredAny>(text) {
            Ok(_) => nodes.extend(read_part(source, range, Language::Yaml, problems)),
            Err(_) if let Some(problem) = split_value(source, range.start) => {
                problems.push(problem);
                break;
            }
            Err(error) => {
                let at = range.start + error.column().saturating_sub(1);
                problems.push(json_problem(source, &error, at));
            }
        }
    }
    nodes
}

/// Returns the problem with a JSON value at `start` that goes on in the following lines.
fn split_value(source: &Arc<Source>, start: usize) -> Option<Diagnostic> {
    let rest = source.text.get(start..)?;
    let mut values = serde_json::Deserializer::from_str(rest).into_iter::<serde::de::IgnoredAny>();
    values.next()?.ok()?;
    let line = rest.lines().next()?;
    let problem = Diagnostic::error("this JSON value goes on in the next line");
    let problem = problem.at(source.excerpt(Span::new(start, start + line.len())));
    (values.byte_offset() > line.len()).then(|| problem.help("write each value in one line"))
}

#[cfg(test)]
mod tests;
