//! Builds a tree from the events of the YAML parser.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use granit_parser::{ErrorKind, Event, Parser, ScalarStyle, ScanError, StructureStyle, Tag, options};
use model::decode::Problems;
use model::{Diagnostic, Node, NodeKind, Source, Span, Spanned, unusual_separator};

use super::comment::cutting;
use super::error::{explain, located, next_line};
use super::scalar::{core_tagged, plain};

/// Maximum number of values that anchors and aliases may add to one document. A page of shared fixtures needs several
/// hundred.
const ALIAS_BUDGET: usize = 100_000;

/// Feeds `text` to `builder`; returns `None` if the content cannot be processed.
pub(super) fn build<'a>(mut builder: Builder<'a>, text: &str) -> Option<Builder<'a>> {
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

/// A collection whose end has not been reached yet.
struct OpenNode {
    /// Starts at its first byte. A block collection ends with its last value.
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

pub(super) struct Builder<'a> {
    source: &'a Arc<Source>,
    start: usize,
    open: Vec<OpenNode>,
    /// Finished anchored values, each with the number of values in it.
    anchors: HashMap<usize, (Node, usize)>,
    /// Number of values that anchors and aliases have added.
    added: usize,
    root: Option<Node>,
    documents: usize,
    /// Documents before the current one, if several are allowed.
    pub earlier: Option<Vec<Node>>,
    problems: &'a mut Problems,
}

impl<'a> Builder<'a> {
    pub fn new(source: &'a Arc<Source>, start: usize, problems: &'a mut Problems) -> Self {
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
                    let help = "`---` starts a new document; put that document into a separate file";
                    self.error(span, "a second document in one file", Some(help));
                    return false;
                }
                true
            }
            Event::Scalar(value, style, anchor, tag) => {
                if style == ScalarStyle::Plain
                    && let Some(at) = cutting(&self.source.text, span.start(), span.end())
                {
                    let lost = self.source.text[at..].lines().next().unwrap_or_default();
                    let message = format!("`{lost}` is a comment, so the text ends before it");
                    // After a word, and in a text that nothing depends on, it may be meant as one.
                    let is_harmless = !value.contains(' ') || self.is_description();
                    let problem = if is_harmless { Diagnostic::warning(message) } else { Diagnostic::error(message) };
                    let problem = problem.at(self.source.excerpt(Span::new(at, at + lost.len())));
                    let help = "put the text into quotes; if it is a comment, write a space after `#`";
                    self.problems.push(problem.help(help));
                }
                if style == ScalarStyle::Plain {
                    self.doubt_items(span);
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

    /// Returns `true` if the next value is that of a key `description`.
    fn is_description(&self) -> bool {
        let body = self.open.last().map(|open| &open.body);
        matches!(body, Some(Body::Map { key: Some(Key::Name(name)), .. }) if name.value == "description")
    }

    fn begin(&mut self, span: Span, style: StructureStyle, anchor: usize, tag: Option<&Tag>, body: Body) -> bool {
        self.open.push(OpenNode { span, style, tag: tag.and_then(custom), anchor, size: 1, body });
        true
    }

    fn end(&mut self, open: OpenNode, end: Span) -> bool {
        let OpenNode { mut span, style, tag, anchor, size, body } = open;
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
                match self.source.text.get(span.start()..span.end()) {
                    // It is reported. As text, it causes no further problems.
                    Some(written) if is_placeholder(written) => NodeKind::String(written.to_owned()),
                    _ => NodeKind::Map(entries),
                }
            }
        };
        let is_read = |tag: &str| !matches!(kind, NodeKind::String(_)) || VALUE_TAGS.contains(&tag);
        let tag = tag.filter(|tag| is_read(tag));
        let node = Node { kind, span, tag, source: Arc::clone(self.source) };
        self.finished(node, size, anchor)
    }

    /// Returns the maps to which a value of `<<` refers.
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
            let help = format!("it is first written on line {line}");
            self.error(name.span, format!("duplicate key `{}`", name.value), Some(&help));
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
        let is_in_block =
            !matches!(self.open.iter().rev().nth(1), Some(outer) if matches!(outer.style, StructureStyle::Flow));
        let Some(open) = self.open.last_mut() else {
            self.root = Some(node);
            return true;
        };
        open.size += size;
        match &mut open.body {
            Body::List(items) => items.push(node),
            Body::Map { key: slot @ None, .. } => {
                let (key, problem) = as_key(&node, open.tag.as_deref(), is_in_block);
                *slot = Some(key);
                if let Some(problem) = problem {
                    self.problems.push(problem);
                }
            }
            Body::Map { entries, merged, key } => match key.take() {
                Some(Key::Name(name)) => {
                    let mut node = node;
                    // An omitted value has no location, so it gets the location of its key.
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
            self.error(span, "an anchor cannot contain itself", None);
            return false;
        };
        if !self.afford(size, span) {
            return false;
        }
        // Nested values keep the location at which they are written; the value itself gets the location of the alias.
        self.finished(Node { span, ..node }, size, 0)
    }

    fn afford(&mut self, size: usize, span: Span) -> bool {
        self.added += size;
        if self.added > ALIAS_BUDGET {
            self.error(span, format!("aliases make this document longer than {ALIAS_BUDGET} values"), None);
            return false;
        }
        true
    }

    fn scalar(&mut self, value: &str, style: ScalarStyle, tag: Option<&Tag>, span: Span) -> Node {
        let mut span = self.trimmed(span);
        if let Some(text) = tag.and_then(custom).filter(|_| span.start() == span.end())
            && !VALUE_TAGS.contains(&&*text)
            && let Some(before) = self.source.text.get(..span.start()).map(str::trim_end)
            && before.ends_with(&*text)
        {
            // Text that begins with `!`, such as `!important`: there is nothing for the tag to describe.
            span = Span::new(before.len() - text.len(), before.len());
            let kind = NodeKind::String(text.clone().into());
            return Node { kind, span, tag: Some(text), source: Arc::clone(self.source) };
        }
        let written = if style == ScalarStyle::Plain && span.start() == span.end() { "" } else { value };
        let kind = match tag {
            None if style == ScalarStyle::Plain => plain(written),
            None => Ok(NodeKind::String(written.to_owned())),
            Some(tag) => match tag.core_suffix() {
                Some("str" | REGEX_SUFFIX) | None => Ok(NodeKind::String(written.to_owned())),
                Some(core) => core_tagged(core, written),
            },
        };
        let kind = kind.unwrap_or_else(|message| {
            self.error(span, message, Some("put it in quotes to make it a string"));
            NodeKind::Null
        });
        Node { kind, span, tag: tag.and_then(custom), source: Arc::clone(self.source) }
    }

    /// Warns about a line in an unquoted text that looks like the next item of a list: with more indentation than the
    /// item above, it continues that item.
    fn doubt_items(&mut self, span: Span) {
        let text = self.source.text.get(span.start()..span.end()).unwrap_or_default();
        let lines = text.match_indices('\n').map(|(at, _)| at + 1);
        let item = lines.map(|at| at + text[at..].len() - text[at..].trim_start_matches(' ').len());
        if let Some(at) = item.into_iter().find(|at| text[*at..].starts_with("- ")) {
            let place = Span::new(span.start() + at, span.start() + at + 1);
            let problem = Diagnostic::warning("this line is part of the text above, and not an item of a list");
            let problem = problem.at(self.source.excerpt(place));
            self.problems.push(problem.help("give it the indentation of the item above, or put the text into quotes"));
        }
    }

    /// Removes trailing line ends from `span`: the span of a block scalar extends to the next token.
    fn trimmed(&self, span: Span) -> Span {
        let text = self.source.text.get(span.start()..span.end()).unwrap_or_default();
        Span::new(span.start(), span.start() + text.trim_end_matches(['\n', '\r']).len())
    }

    fn error(&mut self, span: Span, message: impl Into<String>, help: Option<&str>) {
        let problem = Diagnostic::error(message).at(self.source.excerpt(span));
        self.problems.push(help.into_iter().fold(problem, Diagnostic::help));
    }

    fn syntax_error(&mut self, error: &ScanError) {
        let mut at = self.start + error.marker().byte_offset().unwrap_or_default();
        let line = self.source.excerpt(Span::new(at, at)).line;
        let is_unquoted =
            |last: &Diagnostic| last.message == UNQUOTED && last.source.as_ref().map(|at| at.line) == Some(line);
        if self.problems.last().is_some_and(is_unquoted) {
            return;
        }
        let (mut message, mut help) = explain(error.kind());
        if message.is_none() && error.info().contains("found a tab") {
            // The parser points to the end of the text before the tab, which is on the line above.
            at += self.source.text.get(at..).and_then(|rest| rest.find('\t')).unwrap_or_default();
            (message, help) = explain(&ErrorKind::TabInIndentation);
        }
        if matches!(error.kind(), ErrorKind::CommentInterceptedScalar) {
            // The parser points to the comment; the mistake is on the line after it.
            at += next_line(self.source.text.get(at..).unwrap_or_default());
        }
        if let Some((problem, place)) = located(error.kind(), &self.source.text, at) {
            self.problems.push(problem.at(self.source.excerpt(place)));
            return;
        }
        if let Some(first) = self.first_without_key(at) {
            return self.error(first, "this line has no `key: value`", Some("write a key, `: ` and its value"));
        }
        if matches!(error.kind(), ErrorKind::SimpleKeyExpected | ErrorKind::InvalidSimpleKey) {
            let line = self.source.text.get(at..).and_then(|rest| rest.lines().next()).unwrap_or_default();
            let unusual = line.char_indices().find_map(|(index, c)| Some((index, unusual_separator(c)?)));
            if let Some((index, found)) = unusual {
                let wanted = if line[..index].ends_with(':') { "a space" } else { "`: `" };
                let span = Span::new(at + index, at + index);
                return self.error(span, format!("expected {wanted} here, not {found}"), None);
            }
        }
        // Only in a stream, a list can follow a map, as another document.
        let line = self.source.text.get(..at).and_then(|before| before.rsplit('\n').next()).unwrap_or_default();
        if matches!(error.kind(), ErrorKind::ExpectedBlockMappingKey) && self.earlier.is_some() && line == "- " {
            at -= line.len();
            message = Some("a list cannot follow a map");
            help = Some("write a line `---` between the front matter and the cases");
        }
        if let Some(start) = self.without_dash(error.kind(), at) {
            let is_broken = self.source.text[start..].starts_with("-\u{a0}");
            at = start;
            message = Some("this line is not an item of the list, like those below it");
            help = Some(if is_broken { "write an ordinary space after `-`" } else { "write `- ` before it" });
        }
        if let Some((start, bracket)) = self.unclosed(error.kind(), at) {
            (at, help) = (start, None);
            message = Some(if bracket == '{' { "this `{` is never closed" } else { "this `[` is never closed" });
        }
        let message = match (message, error.kind()) {
            (Some(message), _) => message.to_owned(),
            (None, ErrorKind::UnexpectedCharacter { character: '`' }) => "unexpected character: a backtick".to_owned(),
            (None, ErrorKind::UnexpectedCharacter { character }) if !character.is_control() => {
                format!("unexpected character: `{character}`")
            }
            (None, _) => error.info(),
        };
        self.error(Span::new(at, at), message, help);
    }

    /// Returns the first line of the document if it has text but no key, and the parser failed at the next line: it took
    /// the first line for the whole document, and everything below it is wrong.
    fn first_without_key(&self, at: usize) -> Option<Span> {
        let before = self.source.text.get(self.start..at)?;
        let above = before.get(..before.rfind('\n')?)?;
        let is_text = |line: &&str| !line.trim().is_empty() && !line.trim_start().starts_with('#');
        let mut lines = above.lines().filter(is_text);
        let (line, None) = (lines.next()?, lines.next()) else { return None };
        let text = line.trim();
        let is_whole =
            ['"', '\''].iter().any(|quote| text.len() > 1 && text.starts_with(*quote) && text.ends_with(*quote));
        let is_other = text.starts_with(['-', '{', '[', '|', '>', '&', '!', '%', '?']);
        let start = self.start + above.find(line)?;
        let has_key = text.contains(": ") || text.ends_with(':');
        (is_whole || !is_other && !has_key).then(|| Span::new(start, start + line.len()))
    }

    /// Returns the start of the line above that of `at`, if the parser expected a key in place of an item of a list at
    /// `at`, and both lines have the same indentation.
    fn without_dash(&self, kind: &ErrorKind, at: usize) -> Option<usize> {
        let start = self.source.text.get(..at)?.rfind('\n')? + 1;
        let is_item = |line: &str| line.trim_start_matches(' ').starts_with("- ");
        let indent = |line: &str| line.len() - line.trim_start_matches(' ').len();
        let (line, above) = (self.source.text.get(start..)?, self.source.text.get(..start - 1)?);
        let first = above.rfind('\n').map_or(0, |end| end + 1);
        let above = above.get(first..)?;
        let is_meant = matches!(kind, ErrorKind::ExpectedBlockMappingKey) && is_item(line) && !is_item(above);
        (is_meant && indent(line) > 0 && indent(above) == indent(line)).then_some(first + indent(above))
    }

    /// Returns the location of the open bracket, and the bracket, if the parser expected the rest of a collection at
    /// `at`, on a line that is not indented more than that of the bracket.
    fn unclosed(&self, kind: &ErrorKind, at: usize) -> Option<(usize, char)> {
        let is_meant = matches!(
            kind,
            ErrorKind::ExpectedFlowMappingSeparator
                | ErrorKind::ExpectedFlowSequenceSeparator
                | ErrorKind::InvalidColonPlacement
                | ErrorKind::BlockEntryInFlowCollection
        );
        // A pair in a list, such as `[a: b]`, is a map without a bracket.
        let is_bracket = |open: &&OpenNode| {
            let text = self.source.text.get(open.span.start()..);
            open.style == StructureStyle::Flow && text.is_some_and(|text| text.starts_with(['{', '[']))
        };
        let open = self.open.iter().rev().find(is_bracket).filter(|_| is_meant)?;
        let line = |at: usize| {
            let start = self.source.text.get(..at)?.rfind('\n').map_or(0, |end| end + 1);
            let line = self.source.text.get(start..)?;
            Some((start, line.len() - line.trim_start_matches(' ').len()))
        };
        let ((first, above), (second, below)) = (line(open.span.start())?, line(at)?);
        let bracket = self.source.text.get(open.span.start()..)?.chars().next()?;
        (first != second && below <= above).then_some((open.span.start(), bracket))
    }

    /// Returns every document.
    pub fn finish_stream(mut self) -> Vec<Node> {
        let mut documents = self.earlier.take().unwrap_or_default();
        documents.extend(self.root.take());
        documents
    }

    /// Returns the document; an empty one is null at its start.
    pub fn finish(self) -> Node {
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
        let later = |index: usize| entries[index + 1..].iter();
        return entries
            .iter()
            .enumerate()
            .any(|(index, (name, _))| later(index).any(|(other, _)| other.value == name.value));
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

/// Converts a node to a key of a map with the tag `tag`. Also returns the problem if the node cannot be a key.
fn as_key(node: &Node, tag: Option<&str>, is_in_block: bool) -> (Key, Option<Diagnostic>) {
    let written = node.source.text.get(node.span.start()..node.span.end()).unwrap_or_default();
    if written == "<<" && node.tag.is_none() {
        return (Key::Merge, None);
    }
    let name = |value: &str| Key::Name(Spanned::new(value.to_owned(), node.span));
    match &node.kind {
        NodeKind::String(value) if node.tag.is_none() => (name(value), None),
        NodeKind::String(value) => (name(value), Some(node.error("a key cannot have a tag"))),
        NodeKind::Map(_) if let Some(place) = placeholder_around(node) => {
            let end = if is_in_block { node.source.text.len() } else { place.end() };
            let text =
                node.source.text.get(place.start()..end).and_then(|rest| rest.lines().next()).unwrap_or_default();
            let text = text.split(" #").next().unwrap_or(text).trim_end();
            let tag = tag.filter(|tag| !VALUE_TAGS.contains(tag)).map(|tag| format!("{tag} ")).unwrap_or_default();
            let quote = if text.contains('"') { '\'' } else { '"' };
            let problem = Diagnostic::error(UNQUOTED).at(node.source.excerpt(place));
            (name(written), Some(problem.help(format!("put it in quotes: `{quote}{tag}{text}{quote}`"))))
        }
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

/// Message about a placeholder that is read as a map. What follows it on its line causes no other problem.
const UNQUOTED: &str = "YAML reads a placeholder without quotes as a map";

/// Returns `true` if `written`, which is a map, is a placeholder: `{{ name }}`.
fn is_placeholder(written: &str) -> bool {
    let inside = written.strip_prefix("{{").and_then(|rest| rest.strip_suffix("}}"));
    inside.is_some_and(|inside| !inside.contains(['{', '}']))
}

/// Returns the location of the placeholder whose inner braces are the map `node`.
fn placeholder_around(node: &Node) -> Option<Span> {
    let (start, end) = (node.span.start().checked_sub(1)?, node.span.end() + 1);
    node.source.text.get(start..end).filter(|written| is_placeholder(written))?;
    Some(Span::new(start, end))
}

/// Text after `!!` in the tag that JavaScript's YAML parsers use for regular expressions. YAML itself has no such tag.
const REGEX_SUFFIX: &str = "js/regexp";

/// Tags that need a value, so that it is missing if there is none.
const VALUE_TAGS: [&str; 4] = ["!re", "!regexp", "!function", "!json-schema"];

/// Returns the tag as written if it is not one of YAML's own.
fn custom(tag: &Tag) -> Option<Box<str>> {
    let written = tag.original();
    (tag.core_suffix().is_none_or(|core| core == REGEX_SUFFIX) && written != "!").then(|| written.into_boxed_str())
}
