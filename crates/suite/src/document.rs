//! Parses text into a tree in which every value has its location. The only file that uses a parser.
//!
//! YAML is read as YAML 1.2 with the core schema, with three decisions where parsers differ:
//! - Only `true` and `false` (also `True`, `TRUE`) are booleans; `yes`, `no`, `on` and `off` are text. Digits are a
//!   decimal number even with a leading zero (`017` is 17), octal is written `0o17`, and `1_000` is text.
//! - `.inf` and `.nan` are errors: JSON, the format of all records, has no such numbers.
//! - `<<` merges a map or a list of maps, although YAML 1.2 dropped it; keys written in the map itself take
//!   precedence.
//!
//! Keys are text and unique. A custom tag (`!re`) is kept, and the value after it is text or a collection. The number
//! of values that anchors and aliases may add to a document is limited.

mod comment;
mod parts;

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use files::parallel;
use granit_parser::{ErrorKind, Event, Parser, ScalarStyle, ScanError, StructureStyle, Tag, options};
use model::decode::Problems;
use model::{Diagnostic, Excerpt, Node, NodeKind, Source, Span, Spanned};
use serde_json::Number;

/// Maximum number of values that anchors and aliases may add to one document. A page of shared fixtures needs some
/// hundreds.
const ALIAS_BUDGET: usize = 100_000;

/// Language of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    /// YAML 1.2, core schema.
    Yaml,
    /// JSON according to RFC 8259: no comments, no trailing commas.
    Json,
}

impl Language {
    /// Returns the language of a file by its extension; `None` for any other extension.
    pub fn of(path: &Path) -> Option<Self> {
        let extension = path.extension()?.to_str()?.to_ascii_lowercase();
        match extension.as_str() {
            "yaml" | "yml" => Some(Self::Yaml),
            "json" => Some(Self::Json),
            _ => None,
        }
    }
}

/// Maximum size of a document in bytes.
const LARGEST: u64 = 256 << 20;

/// Reads the file at `path`, which messages call `shown`. An unreadable file or invalid UTF-8 is reported with its
/// location.
pub fn open(path: &Path, shown: &str) -> Result<Arc<Source>, Box<Diagnostic>> {
    let bytes = files::read_named(path, LARGEST)
        .map_err(|error| Diagnostic::error(format!("cannot read the file: {error}")).at(Excerpt::of_file(shown)))?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let source = Source::new(shown, String::from_utf8_lossy(error.as_bytes()));
        Diagnostic::error("the file is not UTF-8 text").at(source.excerpt(Span::new(at, at)))
    })?;
    Ok(Source::new(shown, text))
}

/// Parses the YAML or JSON file at `path`, which messages call `shown`. For documents that are not suites, such as
/// the script of a model.
///
/// # Errors
/// Returns every problem of the file and its syntax.
pub fn read_document(path: &Path, shown: &str) -> Result<Node, Problems> {
    let source = open(path, shown).map_err(|problem| vec![*problem])?;
    let mut problems = Problems::new();
    let node = read(&source, Language::of(path).unwrap_or(Language::Yaml), &mut problems);
    match node {
        Some(node) if problems.is_empty() => Ok(node),
        _ => Err(problems),
    }
}

/// Returns `true` if `text` contains several YAML documents, which none of our own files does.
pub fn is_stream(text: &str) -> bool {
    let is_content = |line: &&str| !line.trim().is_empty() && !line.starts_with(['#', '%']);
    let is_start = |line: &str| line.strip_prefix("---").is_some_and(|rest| rest.is_empty() || rest.starts_with(' '));
    text.lines().filter(is_content).skip(1).any(is_start)
}

/// Parses the whole of `source`. Returns `None` if its syntax is broken; smaller problems are reported and the values
/// they affect are left out.
pub fn read(source: &Arc<Source>, language: Language, problems: &mut Problems) -> Option<Node> {
    read_part(source, 0..source.text.len(), language, problems)
}

/// Parses one document that is a part of `source`, such as the frontmatter of a Markdown file.
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

/// Parses every YAML document of `source`, in order. Anchors are visible until the end of their document.
pub fn read_stream(source: &Arc<Source>, problems: &mut Problems) -> Option<Vec<Node>> {
    if let Some(list) = read_in_parts(source) {
        return Some(vec![list]);
    }
    let mut builder = Builder::new(source, 0, problems);
    builder.earlier = Some(Vec::new());
    build(builder, &source.text).map(Builder::finish_stream)
}

/// Parses a long list on several threads. Returns `None` if there is any problem, or if its parts depend on each
/// other.
fn read_in_parts(source: &Arc<Source>) -> Option<Node> {
    let read = |part: Range<usize>| {
        let mut problems = Problems::new();
        let builder = build(Builder::new(source, part.start, &mut problems), source.text.get(part)?)?;
        // Anchors are visible until the end of the document, and the values they add are counted, so parts with
        // anchors cannot be parsed separately.
        let is_alone = builder.anchors.is_empty();
        let list = builder.finish();
        match list.kind {
            NodeKind::List(items) if is_alone && list.tag.is_none() && problems.is_empty() => Some((items, list.span)),
            _ => None,
        }
    };
    let parts = parallel::map(parts::split(&source.text)?, 1, read);
    let mut parts = parts.into_iter();
    let (mut all, mut span) = parts.next()??;
    for part in parts {
        let (items, more) = part?;
        all.extend(items);
        span = Span::new(span.start(), more.end());
    }
    Some(Node { kind: NodeKind::List(all), span, tag: None, source: Arc::clone(source) })
}

/// Parses one JSON text per line of `source`. Empty lines are skipped and broken ones are reported.
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
            Err(error) => {
                let at = range.start + error.column().saturating_sub(1);
                problems.push(json_problem(source, &error, at));
            }
        }
    }
    nodes
}

/// Feeds `text` to `builder`; returns `None` if the content cannot be processed.
fn build<'a>(mut builder: Builder<'a>, text: &str) -> Option<Builder<'a>> {
    let start = builder.start;
    let parser = Parser::new_from_str_with_options(text, options! { emit_comments: false });
    for event in parser {
        match event {
            Ok((event, span)) => {
                let range = span.byte_range().unwrap_or_default();
                if !builder.take(event, Span::new(start + range.start, start + range.end)) {
                    return None;
                }
            }
            Err(error) => {
                builder.syntax_error(&error);
                return None;
            }
        }
    }
    Some(builder)
}

/// Collection whose end has not been reached yet.
struct Open {
    /// Starts at its first byte. The end of a block collection is that of its last value.
    span: Span,
    style: StructureStyle,
    tag: Option<Box<str>>,
    anchor: usize,
    /// Number of values in it so far, including itself.
    size: usize,
    body: Body,
}

enum Body {
    List(Vec<Node>),
    Map { entries: Vec<(Spanned<String>, Node)>, merged: Vec<Node>, key: Option<Key> },
}

enum Key {
    Name(Spanned<String>),
    /// The merge key `<<`.
    Merge,
}

struct Builder<'a> {
    source: &'a Arc<Source>,
    start: usize,
    open: Vec<Open>,
    /// Finished anchored values, each with the number of values in it.
    anchors: HashMap<usize, (Node, usize)>,
    /// Number of values that anchors and aliases have added.
    added: usize,
    root: Option<Node>,
    documents: usize,
    /// Documents before the current one, if several are allowed.
    earlier: Option<Vec<Node>>,
    problems: &'a mut Problems,
}

impl<'a> Builder<'a> {
    fn new(source: &'a Arc<Source>, start: usize, problems: &'a mut Problems) -> Self {
        let (open, anchors) = (Vec::new(), HashMap::new());
        Self { source, start, open, anchors, added: 0, root: None, documents: 0, earlier: None, problems }
    }

    /// Processes the parser's next event; returns `false` if parsing should stop.
    fn take(&mut self, event: Event<'_>, span: Span) -> bool {
        match event {
            Event::DocumentStart(..) => {
                self.documents += 1;
                if let Some(earlier) = &mut self.earlier {
                    earlier.extend(self.root.take());
                    self.anchors.clear();
                } else if self.documents > 1 {
                    self.error(span, "a second document in one file", |problem| {
                        problem.help("`---` starts a new document; put it into a file of its own")
                    });
                    return false;
                }
                true
            }
            Event::Scalar(value, style, anchor, tag) => {
                if style == ScalarStyle::Plain
                    && let Some(at) = comment::cutting(&self.source.text, span.start(), span.end())
                {
                    let length = self.source.text[at..].lines().next().map_or(1, str::len);
                    let lost = self.source.text[at..at + length].to_owned();
                    self.error(
                        Span::new(at, at + length),
                        format!("`{lost}` is a comment, so the text ends before it"),
                        |problem| {
                            problem.help("put the text into quotes; if the comment is meant, write a space after `#`")
                        },
                    );
                }
                let node = self.scalar(&value, style, tag.as_deref(), span);
                self.finished(node, 1, anchor)
            }
            Event::SequenceStart(style, anchor, tag) => {
                self.begin(span, style, anchor, tag.as_deref(), Body::List(Vec::new()))
            }
            Event::MappingStart(style, anchor, tag) => {
                let body = Body::Map { entries: Vec::new(), merged: Vec::new(), key: None };
                self.begin(span, style, anchor, tag.as_deref(), body)
            }
            Event::SequenceEnd | Event::MappingEnd => match self.open.pop() {
                Some(open) => self.end(open, span),
                None => false,
            },
            Event::Alias(id) => self.alias(id, span),
            _ => true,
        }
    }

    fn begin(&mut self, span: Span, style: StructureStyle, anchor: usize, tag: Option<&Tag>, body: Body) -> bool {
        self.open.push(Open { span, style, tag: tag.and_then(custom), anchor, size: 1, body });
        true
    }

    fn end(&mut self, open: Open, end: Span) -> bool {
        let Open { mut span, style, tag, anchor, size, body } = open;
        let kind = match body {
            Body::List(items) => {
                span = Span::new(span.start(), last_byte(style, span, end, items.last().map(|item| item.span)));
                NodeKind::List(items)
            }
            Body::Map { mut entries, merged, key: _ } => {
                span =
                    Span::new(span.start(), last_byte(style, span, end, entries.last().map(|(_, value)| value.span)));
                self.refuse_duplicates(&mut entries);
                for (name, value) in merged.iter().flat_map(|map| self.entries_of(map)).flatten() {
                    if !entries.iter().any(|(own, _)| own.value == name.value) {
                        entries.push((name.clone(), value.clone()));
                    }
                }
                NodeKind::Map(entries)
            }
        };
        let node = Node { kind, span, tag, source: Arc::clone(self.source) };
        self.finished(node, size, anchor)
    }

    /// Returns the maps that a value of `<<` stands for.
    fn entries_of<'n>(&self, merged: &'n Node) -> Vec<&'n [(Spanned<String>, Node)]> {
        match &merged.kind {
            NodeKind::Map(entries) => vec![entries],
            NodeKind::List(items) => items.iter().flat_map(|item| self.entries_of(item)).collect(),
            _ => Vec::new(),
        }
    }

    /// Keeps the first entry of each key and reports the others.
    fn refuse_duplicates(&mut self, entries: &mut Vec<(Spanned<String>, Node)>) {
        if !has_duplicates(entries) {
            return;
        }
        let mut first: HashMap<String, Span> = HashMap::with_capacity(entries.len());
        let mut repeated = Vec::new();
        entries.retain(|(name, _)| match first.get(&name.value) {
            Some(span) => {
                repeated.push((name.clone(), *span));
                false
            }
            None => {
                first.insert(name.value.clone(), name.span);
                true
            }
        });
        for (name, span) in repeated {
            let line = self.source.excerpt(span).line;
            self.error(name.span, format!("duplicate key `{}`", name.value), |problem| {
                problem.help(format!("it is first written on line {line}"))
            });
        }
    }

    /// Adds a finished value to its parent.
    fn finished(&mut self, node: Node, size: usize, anchor: usize) -> bool {
        if anchor != 0 {
            if !self.afford(size, node.span) {
                return false;
            }
            self.anchors.insert(anchor, (node.clone(), size));
        }
        let Some(open) = self.open.last_mut() else {
            self.root = Some(node);
            return true;
        };
        open.size += size;
        match &mut open.body {
            Body::List(items) => items.push(node),
            Body::Map { key: slot @ None, .. } => {
                let (key, problem) = as_key(&node);
                *slot = Some(key);
                if let Some(problem) = problem {
                    self.problems.push(problem);
                }
            }
            Body::Map { entries, merged, key } => match key.take() {
                Some(Key::Name(name)) => {
                    let mut node = node;
                    // An omitted value has no location of its own, so it gets that of its key.
                    if node.span.start() == node.span.end() && matches!(node.kind, NodeKind::Null) {
                        node.span = name.span;
                    }
                    entries.push((name, node));
                }
                Some(Key::Merge) => {
                    let mergeable = match &node.kind {
                        NodeKind::Map(_) => true,
                        NodeKind::List(items) => items.iter().all(|item| matches!(item.kind, NodeKind::Map(_))),
                        _ => false,
                    };
                    if mergeable {
                        merged.push(node);
                    } else {
                        self.problems
                            .push(node.error(format!("`<<` merges a map or a list of maps, not {}", node.kind_name())));
                    }
                }
                None => {}
            },
        }
        true
    }

    fn alias(&mut self, id: usize, span: Span) -> bool {
        let Some((node, size)) = self.anchors.get(&id).cloned() else {
            self.error(span, "an anchor cannot contain itself", |problem| problem);
            return false;
        };
        if !self.afford(size, span) {
            return false;
        }
        // Nested values keep the location where they are written; the value itself gets the location of the alias.
        self.finished(Node { span, ..node }, size, 0)
    }

    fn afford(&mut self, size: usize, span: Span) -> bool {
        self.added += size;
        if self.added > ALIAS_BUDGET {
            self.error(span, format!("aliases make this document longer than {ALIAS_BUDGET} values"), |problem| {
                problem
            });
            return false;
        }
        true
    }

    fn scalar(&mut self, value: &str, style: ScalarStyle, tag: Option<&Tag>, span: Span) -> Node {
        let span = self.trimmed(span);
        let written = if style == ScalarStyle::Plain && span.start() == span.end() { "" } else { value };
        let mut kind = match tag {
            None if style == ScalarStyle::Plain => plain(written),
            None => Ok(NodeKind::String(written.to_owned())),
            Some(tag) => match tag.core_suffix() {
                Some("str" | REGEX_SUFFIX) | None => Ok(NodeKind::String(written.to_owned())),
                Some(core) => core_tagged(core, written),
            },
        };
        if let Err(message) = &mut kind {
            let message = std::mem::take(message);
            self.error(span, message, |problem| problem.help("put it in quotes if text is meant"));
        }
        Node { kind: kind.unwrap_or(NodeKind::Null), span, tag: tag.and_then(custom), source: Arc::clone(self.source) }
    }

    /// Removes trailing line ends from `span`: the span of a block scalar extends to the next token.
    fn trimmed(&self, span: Span) -> Span {
        let text = self.source.text.get(span.start()..span.end()).unwrap_or_default();
        Span::new(span.start(), span.start() + text.trim_end_matches(['\n', '\r']).len())
    }

    fn error(&mut self, span: Span, message: impl Into<String>, more: impl FnOnce(Diagnostic) -> Diagnostic) {
        self.problems.push(more(Diagnostic::error(message).at(self.source.excerpt(span))));
    }

    fn syntax_error(&mut self, error: &ScanError) {
        let mut at = self.start + error.marker().byte_offset().unwrap_or_default();
        let (mut message, mut help) = explain(error.kind());
        if message.is_none() && error.info().contains("found a tab") {
            // The parser points at the end of the text before the tab, which is on the line above.
            at += self.source.text.get(at..).and_then(|rest| rest.find('\t')).unwrap_or_default();
            (message, help) = explain(&ErrorKind::TabInIndentation);
        }
        let message = match (message, error.kind()) {
            (Some(message), _) => message.to_owned(),
            (None, ErrorKind::UnexpectedCharacter { character: '`' }) => "unexpected character: a backtick".to_owned(),
            (None, ErrorKind::UnexpectedCharacter { character }) if !character.is_control() => {
                format!("unexpected character: `{character}`")
            }
            (None, _) => error.info(),
        };
        self.error(Span::new(at, at), message, |problem| match help {
            Some(help) => problem.help(help),
            None => problem,
        });
    }

    /// Returns every document.
    fn finish_stream(mut self) -> Vec<Node> {
        let mut documents = self.earlier.take().unwrap_or_default();
        documents.extend(self.root.take());
        documents
    }

    /// Returns the document; an empty one is null at its start.
    fn finish(self) -> Node {
        self.root.unwrap_or_else(|| Node {
            kind: NodeKind::Null,
            span: Span::new(self.start, self.start),
            tag: None,
            source: Arc::clone(self.source),
        })
    }
}

/// Checks for duplicate keys. Most maps have few keys, and comparing them pairwise is much cheaper than a hash table.
fn has_duplicates(entries: &[(Spanned<String>, Node)]) -> bool {
    if entries.len() <= 12 {
        let later = |at: usize| entries[at + 1..].iter();
        return entries.iter().enumerate().any(|(at, (name, _))| later(at).any(|(other, _)| other.value == name.value));
    }
    let mut seen = HashSet::with_capacity(entries.len());
    !entries.iter().all(|(name, _)| seen.insert(name.value.as_str()))
}

fn last_byte(style: StructureStyle, span: Span, end: Span, last: Option<Span>) -> usize {
    match (style, last) {
        (StructureStyle::Flow, _) => end.end(),
        (StructureStyle::Block, Some(last)) => last.end().max(span.start()),
        (StructureStyle::Block, None) => span.end(),
    }
}

/// Converts a node to a key, and returns the problem with it as a key, if any.
fn as_key(node: &Node) -> (Key, Option<Diagnostic>) {
    let written = node.source.text.get(node.span.start()..node.span.end()).unwrap_or_default();
    if written == "<<" && node.tag.is_none() {
        return (Key::Merge, None);
    }
    let name = |value: &str| Key::Name(Spanned::new(value.to_owned(), node.span));
    match &node.kind {
        NodeKind::String(value) if node.tag.is_none() => (name(value), None),
        NodeKind::String(value) => (name(value), Some(node.error("a key has no tag"))),
        NodeKind::List(_) | NodeKind::Map(_) => {
            (name(written), Some(node.error(format!("a key must be a string, not {}", node.kind_name()))))
        }
        NodeKind::Null if written.is_empty() => (name(""), Some(node.error("a key is missing before `:`"))),
        _ => {
            let problem = node.error(format!("a key must be a string, not {}", node.kind_name()));
            (name(written), Some(problem.help(format!("put it in quotes: `\"{written}\"`"))))
        }
    }
}

/// Text after `!!` in the tag that JavaScript's YAML parsers use for regular expressions. YAML itself has no such
/// tag.
const REGEX_SUFFIX: &str = "js/regexp";

/// Returns the tag as written if it is not one of YAML's own.
fn custom(tag: &Tag) -> Option<Box<str>> {
    let written = tag.original();
    (tag.core_suffix().is_none_or(|core| core == REGEX_SUFFIX) && written != "!").then(|| written.into_boxed_str())
}

/// Parses a plain scalar by the core schema, or returns the reason why it cannot be read.
fn plain(written: &str) -> Result<NodeKind, String> {
    Ok(match written {
        "" | "~" | "null" | "Null" | "NULL" => NodeKind::Null,
        "true" | "True" | "TRUE" => NodeKind::Bool(true),
        "false" | "False" | "FALSE" => NodeKind::Bool(false),
        _ => match number(written) {
            Some(Ok(number)) => NodeKind::Number(number),
            Some(Err(())) => return Err(format!("`{written}` is a number that JSON does not have")),
            None => NodeKind::String(written.to_owned()),
        },
    })
}

/// Parses a scalar with one of YAML's own tags.
fn core_tagged(core: &str, written: &str) -> Result<NodeKind, String> {
    let kind = plain(written)?;
    let fits = match (core, &kind) {
        ("null", NodeKind::Null) | ("bool", NodeKind::Bool(_)) | ("float", NodeKind::Number(_)) => true,
        ("int", NodeKind::Number(number)) => !number.is_f64(),
        _ => false,
    };
    if fits { Ok(kind) } else { Err(format!("`{written}` is no !!{core}")) }
}

/// Parses a number by the core schema: `None` if `written` is not a number, an error if JSON cannot represent it.
fn number(written: &str) -> Option<Result<Number, ()>> {
    let unsigned = written.strip_prefix(['-', '+']).unwrap_or(written);
    if matches!(unsigned, ".inf" | ".Inf" | ".INF") || matches!(written, ".nan" | ".NaN" | ".NAN") {
        return Some(Err(()));
    }
    // Most texts start with a letter, and this check alone rules them out.
    if !unsigned.starts_with(|first: char| first.is_ascii_digit() || first == '.') {
        return None;
    }
    for (prefix, radix) in [("0o", 8), ("0x", 16)] {
        if let Some(digits) = written.strip_prefix(prefix) {
            let all = !digits.is_empty() && digits.chars().all(|digit| digit.is_digit(radix));
            return all.then(|| u64::from_str_radix(digits, radix).map(Number::from).map_err(|_| ()));
        }
    }
    if unsigned.bytes().all(|byte| byte.is_ascii_digit()) {
        let whole = written.parse::<u64>().map(Number::from).or_else(|_| written.parse::<i64>().map(Number::from));
        return Some(whole.or_else(|_| float(written)));
    }
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent.strip_prefix(['-', '+']).unwrap_or(exponent))),
        None => (unsigned, None),
    };
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let is_float = digits(whole)
        && digits(fraction)
        && !(whole.is_empty() && fraction.is_empty())
        && exponent.is_none_or(|exponent| !exponent.is_empty() && digits(exponent));
    is_float.then(|| float(written))
}

fn float(written: &str) -> Result<Number, ()> {
    written.parse().ok().and_then(Number::from_f64).ok_or(())
}

/// Returns a clearer message for a parser error where its own is not helpful, and a way to fix it.
fn explain(kind: &ErrorKind) -> (Option<&'static str>, Option<&'static str>) {
    match kind {
        ErrorKind::TabInBlockIndentation | ErrorKind::TabInIndentation | ErrorKind::TabNotAllowed => {
            (Some("a tab in the indentation"), Some("YAML is indented with spaces"))
        }
        ErrorKind::UnknownAnchor => {
            (Some("an alias to an anchor that is not defined above it"), Some("quote the text if no alias is meant"))
        }
        ErrorKind::UnclosedFlowCollection { open: '{' } => (Some("this `{` is never closed"), None),
        ErrorKind::UnclosedFlowCollection { .. } => (Some("this `[` is never closed"), None),
        ErrorKind::UnclosedQuotedScalar => (Some("a quote is never closed"), None),
        ErrorKind::InvalidQuotedScalarIndent => (
            Some("a quoted text goes on in a line that is not indented"),
            Some("is the closing quote missing on the line above?"),
        ),
        ErrorKind::MappingValueNotAllowed => (
            Some("a `:` that starts no value here"),
            Some("put a text that holds `: ` in quotes, and check the indentation of this line and the one above"),
        ),
        ErrorKind::InvalidColonPlacement => {
            (Some("a `:` in the wrong place"), Some("is a `[` or `{` above not closed?"))
        }
        ErrorKind::ExpectedBlockMappingKey => {
            (Some("expected a key here"), Some("its indentation fits none of the maps above"))
        }
        ErrorKind::ExpectedBlockSequenceEntry => {
            (Some("expected `- ` here"), Some("the list above has no place for anything else"))
        }
        ErrorKind::ExpectedFlowMappingSeparator => (Some("expected `,` or `}`"), None),
        ErrorKind::ExpectedFlowSequenceSeparator => (Some("expected `,` or `]`"), None),
        ErrorKind::MisplacedFlowCollectionEnd => (Some("a bracket that closes nothing"), None),
        ErrorKind::UnknownQuotedScalarEscape => (
            Some("an escape that YAML does not have, in double quotes"),
            Some("double the backslash, or use single quotes, where it has no meaning"),
        ),
        ErrorKind::InvalidTrailingDoubleQuotedScalar | ErrorKind::InvalidTrailingSingleQuotedScalar => {
            (Some("text after the closing quote"), None)
        }
        ErrorKind::UnexpectedCharacter { .. } => (None, Some("put the text in quotes")),
        ErrorKind::SimpleKeyExpected | ErrorKind::InvalidSimpleKey => (Some("expected `key: value`"), None),
        ErrorKind::RecursionLimitExceeded => (Some("nested too deeply"), None),
        ErrorKind::CommentNotSeparated => (Some("a comment needs a space before `#`"), None),
        _ => (None, None),
    }
}

/// Reports a JSON error in `text`, which starts at the byte `start` of `source`.
fn json_error(source: &Source, start: usize, text: &str, error: &serde_json::Error) -> Diagnostic {
    let line_start = text.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum::<usize>();
    json_problem(source, error, start + line_start + error.column().saturating_sub(1))
}

fn json_problem(source: &Source, error: &serde_json::Error, at: usize) -> Diagnostic {
    let full = error.to_string();
    let message = full.rfind(" at line ").map_or(full.as_str(), |cut| &full[..cut]);
    let mut problem = Diagnostic::error(format!("not valid JSON: {message}")).at(source.excerpt(Span::new(at, at)));
    if source.text.get(at..).is_some_and(|rest| rest.starts_with('/') || rest.starts_with('#')) {
        problem = problem.help("JSON has no comments");
    } else if message.contains("trailing comma") {
        problem = problem.help("JSON allows no comma after the last item");
    }
    problem
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> (Option<Node>, Vec<Diagnostic>) {
        let mut problems = Vec::new();
        let node = read(&Source::new("t.yaml", text), Language::Yaml, &mut problems);
        (node, problems)
    }

    /// Returns a list of some hundred kilobytes; each item is `item` called with its number.
    fn long(item: impl Fn(usize) -> String) -> Arc<Source> {
        Source::new("t.yaml", (0..6_000).map(item).collect::<String>())
    }

    /// Returns the locations of a value and of all nested values.
    fn places(node: &Node) -> Vec<Span> {
        let inside: Vec<Span> = match &node.kind {
            NodeKind::List(items) => items.iter().flat_map(places).collect(),
            NodeKind::Map(entries) => {
                entries.iter().flat_map(|(key, value)| [vec![key.span], places(value)].concat()).collect()
            }
            _ => Vec::new(),
        };
        [vec![node.span], inside].concat()
    }

    #[test]
    fn a_long_list_comes_to_the_same_in_parts_as_whole() {
        let source = long(|number| format!("- a: {number}\n  # told\n  b: |\n    - x\n  c: \"é\"\n"));
        let (parts, mut problems) = (read_in_parts(&source).unwrap(), Problems::new());
        let whole = build(Builder::new(&source, 0, &mut problems), &source.text).unwrap().finish();
        assert!(places(&parts) == places(&whole));
        assert!(parts.to_json() == whole.to_json());
    }

    #[test]
    fn a_long_list_whose_parts_need_each_other_is_read_whole() {
        let anchored =
            long(
                |number| {
                    if number == 0 { "- &a 1\n".into() } else { "- *a # and so on, and so on, and so on\n".into() }
                },
            );
        let quoted = long(|number| {
            if number % 2 == 0 { "- \"one of two lines of text\n".into() } else { "- and the other one\"\n".into() }
        });
        let broken =
            long(|number| if number == 4_000 { "- [\n".into() } else { "- an item that is as it should be\n".into() });
        for (source, is_valid) in [(anchored, true), (quoted, false), (broken, false)] {
            let mut problems = Problems::new();
            assert!(read_in_parts(&source).is_none());
            assert_eq!(read_stream(&source, &mut problems).is_some(), is_valid, "{problems:?}");
            assert_eq!(problems.is_empty(), is_valid);
        }
    }

    fn value(text: &str) -> serde_json::Value {
        let (node, problems) = parse(text);
        assert!(problems.is_empty(), "{problems:?}");
        node.unwrap().to_json()
    }

    /// Returns `line:column` and message of the only problem.
    fn problem(text: &str) -> String {
        let (_, problems) = parse(text);
        assert_eq!(problems.len(), 1, "{problems:?}");
        let source = problems[0].source.as_ref().unwrap();
        format!("{}:{} {}", source.line, source.column, problems[0].message)
    }

    #[test]
    fn plain_scalars_follow_the_core_schema() {
        let read = value(
            "[true, False, yes, on, null, ~, 17, 017, 1_000, -3, +4, 0o17, 0x1F, 1.0, .5, 1e3, 1., 12:30, 1.2.3, '5', .]",
        );
        assert_eq!(
            read,
            serde_json::json!([
                true, false, "yes", "on", null, null, 17, 17, "1_000", -3, 4, 15, 31, 1.0, 0.5, 1000.0, 1.0, "12:30",
                "1.2.3", "5", "."
            ])
        );
        assert_eq!(problem("a: .nan"), "1:4 `.nan` is a number that JSON does not have");
        assert_eq!(value("a: 99999999999999999999"), serde_json::json!({"a": 1e20}));
        assert_eq!(value("a: -9223372036854775808"), serde_json::json!({"a": i64::MIN}));
    }

    #[test]
    fn every_value_knows_where_it_is_written() {
        let (node, _) = parse("a:\n  - x\n  - {k: [1, 2]}\nb: |\n  one\n  two\n\nc: end\n");
        let node = node.unwrap();
        let text = |node: &Node| node.source.text[node.span.start()..node.span.end()].to_owned();
        assert_eq!(text(node.get("a").unwrap()), "- x\n  - {k: [1, 2]}");
        let NodeKind::List(items) = &node.get("a").unwrap().kind else { panic!() };
        assert_eq!(text(items[1].get("k").unwrap()), "[1, 2]");
        assert_eq!(text(node.get("b").unwrap()), "one\n  two");
        assert_eq!(text(&node), node.source.text.trim_end());
    }

    #[test]
    fn a_value_that_is_not_written_points_at_its_key() {
        let (node, _) = parse("runner:\nfixtures: x\n");
        let excerpt = node.unwrap().get("runner").unwrap().excerpt();
        assert_eq!((excerpt.line, excerpt.column, excerpt.length), (1, 1, 6));
    }

    #[test]
    fn a_duplicate_key_is_reported_at_the_second_and_reading_goes_on() {
        let (node, problems) = parse("a: 1\nb: 2\na: 3\nb: 4\n");
        assert_eq!(node.unwrap().to_json(), serde_json::json!({"a": 1, "b": 2}));
        let places: Vec<_> = problems.iter().map(ToString::to_string).collect();
        assert_eq!(places, ["t.yaml:3:1: duplicate key `a`", "t.yaml:4:1: duplicate key `b`"]);
        assert_eq!(problems[0].help, ["it is first written on line 1"]);
        let many: String = (0..40).map(|at| format!("k{at}: 1\n")).collect();
        assert_eq!(problem(&format!("{many}k20: 2\n")), "41:1 duplicate key `k20`");
    }

    #[test]
    fn keys_must_be_text() {
        assert_eq!(problem("env: {1: x}"), "1:7 a key must be a string, not a number");
        assert_eq!(problem("true: x"), "1:1 a key must be a string, not a boolean");
        assert_eq!(problem("? [a]\n: x"), "1:3 a key must be a string, not a list");
        assert_eq!(value("{'1': x, yes: y}"), serde_json::json!({"1": "x", "yes": "y"}));
    }

    #[test]
    fn aliases_and_merge_keys_are_resolved() {
        assert_eq!(
            value("base: &b {x: 1, y: 2}\nuse: *b\nmore:\n  y: 3\n  <<: *b\nboth: {<<: [*b, {x: 9, z: 4}]}\n"),
            serde_json::json!({
                "base": {"x": 1, "y": 2}, "use": {"x": 1, "y": 2}, "more": {"y": 3, "x": 1},
                "both": {"x": 1, "y": 2, "z": 4}
            })
        );
        assert_eq!(problem("a: {<<: 5}"), "1:9 `<<` merges a map or a list of maps, not a number");
        assert_eq!(problem("a: *nope"), "1:4 an alias to an anchor that is not defined above it");
        assert_eq!(problem("a: &x [*x]"), "1:8 an anchor cannot contain itself");
        assert_eq!(value("{'<<': 5}"), serde_json::json!({"<<": 5}));
    }

    #[test]
    fn an_alias_bomb_is_stopped() {
        let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..12 {
            let below = format!("*a{}, ", level - 1).repeat(10);
            text.push_str(&format!("a{level}: &a{level} [{below}]\n"));
        }
        assert!(problem(&text).ends_with("aliases make this document longer than 100000 values"));
    }

    #[test]
    fn tags_are_kept_and_core_tags_are_obeyed() {
        let (node, _) = parse("a: !re 5\nb: !!str 5\nc: !!int 5\nd: !set {k: v}\ne: ! 5");
        let node = node.unwrap();
        assert_eq!(node.to_json(), serde_json::json!({"a": "5", "b": "5", "c": 5, "d": {"k": "v"}, "e": "5"}));
        assert_eq!(node.get("a").unwrap().tag.as_deref(), Some("!re"));
        assert_eq!(node.get("d").unwrap().tag.as_deref(), Some("!set"));
        assert_eq!(node.get("b").unwrap().tag, None);
        assert_eq!(problem("a: !!int x"), "1:10 `x` is no !!int");
    }

    #[test]
    fn syntax_errors_have_a_place_and_plain_words() {
        for (text, expected) in [
            ("a:\n\tb: 1\n", "2:2 a tab in the indentation"),
            ("a:\n  b: true\n\tc: 1\n", "3:1 a tab in the indentation"),
            ("a: [1,\n", "1:4 this `[` is never closed"),
            ("a: b: c\n", "1:5 a `:` that starts no value here"),
            ("a: 'x\nb: 1\n", "2:1 a quoted text goes on in a line that is not indented"),
            ("a: \"\\q\"\n", "1:4 an escape that YAML does not have, in double quotes"),
            ("a: @x\n", "1:4 unexpected character: `@`"),
            ("a: `x`\n", "1:4 unexpected character: a backtick"),
            ("a: 1\n---\nb: 2\n", "2:1 a second document in one file"),
        ] {
            assert_eq!(problem(text), expected, "{text:?}");
        }
    }

    #[test]
    fn an_empty_document_is_null_and_line_ends_and_marks_do_no_harm() {
        assert_eq!(value(""), serde_json::Value::Null);
        assert_eq!(value("# nothing\n"), serde_json::Value::Null);
        assert_eq!(value("\u{feff}a: 1\r\nb: x\r\n"), serde_json::json!({"a": 1, "b": "x"}));
    }

    #[test]
    fn json_is_held_to_its_own_rules() {
        let json = |text: &str| {
            let mut problems = Vec::new();
            let node = read(&Source::new("t.json", text), Language::Json, &mut problems);
            node.map(|node| node.to_json()).ok_or_else(|| problems[0].to_string())
        };
        assert_eq!(json("{\n\t\"a\": [1, \"\\ud83d\\ude00\\/\"]\n}"), Ok(serde_json::json!({"a": [1, "😀/"]})));
        assert_eq!(json("{\"a\": [1,]}"), Err("t.json:1:10: not valid JSON: trailing comma".to_owned()));
        assert!(json("{\n  // no\n  \"a\": 1}").unwrap_err().starts_with("t.json:2:3: not valid JSON"));
        assert!(json("a: 1").is_err());
        let mut problems = Vec::new();
        read(&Source::new("t.json", "{\"a\": 1, \"a\": 2}"), Language::Json, &mut problems);
        assert_eq!(problems[0].to_string(), "t.json:1:10: duplicate key `a`");
    }

    #[test]
    fn a_file_that_is_not_text_is_told_at_its_first_wrong_byte() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), b"a: 1\nb: \xff\n").unwrap();
        assert_eq!(open(file.path(), "t.yaml").unwrap_err().to_string(), "t.yaml:2:4: the file is not UTF-8 text");
    }

    /// Asserts that every location is inside the text, whatever the text is.
    fn hold_spans(node: &Node) {
        assert!(node.source.text.get(node.span.start()..node.span.end()).is_some(), "{:?}", node.span);
        match &node.kind {
            NodeKind::List(items) => items.iter().for_each(hold_spans),
            NodeKind::Map(entries) => entries.iter().for_each(|(name, value)| {
                assert!(node.source.text.get(name.span.start()..name.span.end()).is_some());
                hold_spans(value);
            }),
            _ => {}
        }
    }

    #[test]
    fn no_mutilated_text_breaks_the_reader() {
        let seed = "a: &x {k: [1, 'é', \"\\u00e9\"], <<: {z: !t ~}}\nb: *x\nc: |\n  block\n\n  text\nd: >-\n - x\n? e\n: f\n- g\n";
        let letters: Vec<char> = "\n\t :-[]{}&*!|>'\"%@#?,~0.<é\u{feff}\r".chars().collect();
        let mut state = 0x2545_f491_4f6c_dd1d_u64;
        let mut random = |below: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state % below as u64) as usize
        };
        for _ in 0..3_000 {
            let mut text: Vec<char> = seed.chars().collect();
            for _ in 0..=random(6) {
                let at = random(text.len());
                match random(3) {
                    0 => text[at] = letters[random(letters.len())],
                    1 => text.insert(at, letters[random(letters.len())]),
                    _ => drop(text.remove(at)),
                }
            }
            let (node, problems) = parse(&text.into_iter().collect::<String>());
            assert!(node.is_some() || !problems.is_empty());
            if let Some(node) = node {
                hold_spans(&node);
            }
        }
    }
}
