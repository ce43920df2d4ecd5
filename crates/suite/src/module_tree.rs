//! What a module exports, as a tree like that of any other file: every value knows where it is written, as far as the
//! text shows it, and a function is the place it is found at.

use std::path::Path;
use std::sync::Arc;

use model::decode::Problems;
use model::{Node, NodeKind, Source, Span, Spanned};
use script::{Inside, Language, Place, Reference, Value};

/// On the text of a regular expression, `/source/flags`.
pub const REGEX: &str = "!re";

/// On the place of a function in a module: its path, `#`, and the way to it. No file can have it.
pub const FUNCTION: &str = "!function";

/// Deeper values are none that a person wrote.
const DEPTH: usize = 128;

/// Values of a module being made into nodes.
pub struct Tree<'a> {
    /// Where the module is, absolute.
    pub module: &'a Path,
    /// Its text.
    pub source: &'a Arc<Source>,
    /// What cannot be said in a tree is told here.
    pub problems: &'a mut Problems,
}

/// Where a value is found.
#[derive(Clone, Copy)]
struct Spot<'p> {
    /// Where it is written, or the last thing around it of which that is known.
    span: Span,
    /// What is known of its parts.
    place: Option<&'p Place>,
    depth: usize,
}

impl<'p> Spot<'p> {
    fn item(self, at: usize) -> Self {
        let place = match self.place.map(|place| &place.inside) {
            Some(Inside::List(items)) => items.get(at),
            _ => None,
        };
        self.inside(place)
    }

    /// The part called `key`, and where its name is written.
    fn entry(self, key: &str) -> (Span, Self) {
        let entry = match self.place.map(|place| &place.inside) {
            Some(Inside::Map(entries)) => entries.iter().rev().find(|(name, _)| name.value == key),
            _ => None,
        };
        (entry.map_or(self.span, |(name, _)| name.span), self.inside(entry.map(|(_, place)| place)))
    }

    fn inside(self, place: Option<&'p Place>) -> Self {
        Self { span: place.map_or(self.span, |place| place.span), place, depth: self.depth + 1 }
    }
}

impl Tree<'_> {
    /// `value`, which the module exports under `name`.
    pub fn export(&mut self, name: &str, value: &Value) -> Node {
        let language = Language::of(self.module).unwrap_or(Language::JavaScript);
        // Without it, everything is at the start of the file.
        let place = script::positions(&self.source.text, language, name).ok().flatten();
        let span = place.as_ref().map(|place| place.span).unwrap_or_default();
        // Items of the default export are found by their number alone.
        let way = if name == "default" && matches!(value, Value::List(_)) { "" } else { name };
        self.node(value, &mut way.to_owned(), Spot { span, place: place.as_ref(), depth: 0 })
    }

    /// `value`, which is found along `way`.
    fn node(&mut self, value: &Value, way: &mut String, spot: Spot<'_>) -> Node {
        let tag = match value {
            Value::Regex { .. } => Some(REGEX),
            Value::Function(_) | Value::Native(_) | Value::Asks(_) => Some(FUNCTION),
            _ => None,
        };
        let place = Node { kind: NodeKind::Null, span: spot.span, tag: None, source: Arc::clone(self.source) };
        let kind = match value {
            _ if spot.depth > DEPTH => {
                self.problems.push(place.error("this value is nested too deeply"));
                NodeKind::Null
            }
            Value::Undefined | Value::Null => NodeKind::Null,
            Value::Bool(value) => NodeKind::Bool(*value),
            Value::Number(number) => match value.to_json() {
                serde_json::Value::Number(number) => NodeKind::Number(number),
                _ => {
                    let message = format!("`{way}` is {number}, a number that JSON does not have");
                    self.problems.push(place.error(message));
                    NodeKind::Null
                }
            },
            Value::String(text) => NodeKind::String(text.clone()),
            Value::Regex { source, flags } => NodeKind::String(format!("/{source}/{flags}")),
            Value::Function(_) | Value::Native(_) | Value::Asks(_) => {
                NodeKind::String(format!("{}#{way}", self.module.display()))
            }
            Value::List(items) if way.ends_with(".operators") && items.iter().any(Value::is_callable) => {
                NodeKind::Map(self.operators(items, way, spot))
            }
            Value::List(items) => {
                let items = items.iter().enumerate();
                NodeKind::List(
                    items.map(|(at, item)| self.below(item, way, &format!("[{at}]"), spot.item(at))).collect(),
                )
            }
            Value::Map(entries) => NodeKind::Map(self.map(entries, way, spot)),
        };
        Node { kind, tag: tag.map(Box::from), ..place }
    }

    /// A key without a value is as if it were not there.
    fn map(&mut self, entries: &[(String, Value)], way: &mut String, spot: Spot<'_>) -> Vec<(Spanned<String>, Node)> {
        let given = entries.iter().filter(|(_, value)| !value.is_undefined());
        let entry = |(key, value): &(String, Value)| {
            let (name, inside) = spot.entry(key);
            let node = self.below(value, way, &step(key, way.is_empty()), inside);
            (Spanned::new(key.clone(), name), node)
        };
        given.map(entry).collect()
    }

    fn below(&mut self, value: &Value, way: &mut String, step: &str, spot: Spot<'_>) -> Node {
        let length = way.len();
        way.push_str(step);
        let node = self.node(value, way, spot);
        way.truncate(length);
        node
    }

    /// A list with functions in it, as a map: their names are lost otherwise.
    fn operators(&mut self, items: &[Value], way: &mut String, spot: Spot<'_>) -> Vec<(Spanned<String>, Node)> {
        let mut entries = Vec::with_capacity(items.len());
        for (at, item) in items.iter().enumerate() {
            let name = match item {
                Value::Function(function) => function.name().to_owned(),
                Value::String(text) => Reference::parse(text).map(|it| it.inferred_name()).unwrap_or_default(),
                _ => String::new(),
            };
            let name = if name.is_empty() { format!("op{at}") } else { name };
            let node = self.below(item, way, &format!("[{at}]"), spot.item(at));
            entries.push((Spanned::new(name, node.span), node));
        }
        entries
    }
}

/// One step of a way: `.name`, or `["any text"]`.
fn step(key: &str, is_first: bool) -> String {
    let is_name = |key: &str| {
        let letter =
            |first: bool| move |c: char| c.is_alphabetic() || c == '_' || c == '$' || (!first && c.is_numeric());
        key.starts_with(letter(true)) && key.chars().all(letter(false))
    };
    match is_name(key) {
        true if is_first => key.to_owned(),
        true => format!(".{key}"),
        false => format!("[{}]", serde_json::Value::String(key.to_owned())),
    }
}
