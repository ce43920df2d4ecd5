//! Converts a module's exports to a tree like that of any other file. Every value has its location, as far as it can
//! be found in the text, and a function is represented by its path in the module.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use model::decode::Problems;
use model::{Node, NodeKind, Source, Span, Spanned};
use script::{Language, Reference, Value, ValueLocation};

use crate::document;

/// Tag for the text of a regular expression, `/source/flags`.
pub const REGEX: &str = "!re";

/// Tag for the location of a function in a module: its path, `#`, and the property path to it. No file can contain
/// this tag.
pub const FUNCTION: &str = "!function";

/// Returns `true` if `node` is a function of a module, or was created by one: its value is known only when it is
/// called.
pub fn is_function(node: &Node) -> bool {
    node.tag.as_deref() == Some(FUNCTION)
}

/// Maximum depth. Nobody writes deeper values by hand.
const DEPTH: usize = 128;

/// Time limit for evaluating a module, including everything it imports.
const BUDGET: Duration = Duration::from_secs(10);

/// Evaluates the module at `path`, which messages show relative to `cwd`, and returns the first export that exists for
/// each list of `names`. With `has_prelude`, it can import the modules for configurations. A module that cannot be
/// evaluated is reported.
pub fn exports(
    path: &Path,
    source: &Arc<Source>,
    cwd: &Path,
    has_prelude: bool,
    names: &[&[&'static str]],
    problems: &mut Problems,
) -> Option<Vec<Option<(&'static str, Value)>>> {
    exports_in(&script::Library::new(), path, source, cwd, has_prelude, names, problems)
}

/// Like [`exports`], in the runtime that `library` chooses.
pub fn exports_in(
    library: &script::Library,
    path: &Path,
    source: &Arc<Source>,
    cwd: &Path,
    has_prelude: bool,
    names: &[&[&'static str]],
    problems: &mut Problems,
) -> Option<Vec<Option<(&'static str, Value)>>> {
    let options = || {
        let mut options = script::Options::new(path.parent().unwrap_or(Path::new("/")));
        options.shown_from = cwd.to_owned();
        options.library = library.clone();
        options
    };
    let evaluate = || -> Result<_, script::ScriptError> {
        let wanted: Vec<&str> = names.iter().flat_map(|names| names.iter().copied()).collect();
        let (_, exports) = script::open(path, &options, &mut |runtime| {
            runtime.module_exports(path, &source.text, has_prelude, &wanted, BUDGET)
        })?;
        let first = |names: &&[&'static str]| {
            let value =
                |name: &&'static str| Some((*name, exports.get(name).filter(|value| !value.is_undefined())?.clone()));
            names.iter().find_map(value)
        };
        Ok(names.iter().map(first).collect())
    };
    let report = |error: script::ScriptError| {
        let mut problem = error.diagnostic();
        problem.source = problem.source.or_else(|| Some(document::start(source).excerpt()));
        problems.push(problem);
    };
    evaluate().map_err(report).ok()
}

/// Converts values of a module to nodes.
pub struct Tree<'a> {
    /// Absolute path of the module.
    pub module: &'a Path,
    /// Text of the module.
    pub source: &'a Arc<Source>,
    /// Receives problems about values that a tree cannot represent.
    pub problems: &'a mut Problems,
}

/// Location of a value.
#[derive(Clone, Copy)]
struct Spot<'p> {
    /// Location of the value, or of the innermost enclosing value whose location is known.
    span: Span,
    /// Known locations of its parts.
    place: Option<&'p ValueLocation>,
    depth: usize,
}

impl<'p> Spot<'p> {
    fn item(self, index: usize) -> Self {
        self.inside(self.place.and_then(|place| place.item(index)))
    }

    /// Returns the part called `key`, and the location of its name.
    fn entry(self, key: &str) -> (Span, Self) {
        let entry = self.place.and_then(|place| place.entry(key));
        (entry.map_or(self.span, |(name, _)| name), self.inside(entry.map(|(_, place)| place)))
    }

    fn inside(self, place: Option<&'p ValueLocation>) -> Self {
        Self { span: place.map_or(self.span, |place| place.span), place, depth: self.depth + 1 }
    }
}

impl Tree<'_> {
    /// Converts `value`, which the module exports under `name`.
    pub fn export(&mut self, name: &str, value: &Value) -> Node {
        let language = Language::from_path(self.module).unwrap_or(Language::JavaScript);
        // Without it, every location is the start of the file.
        let place = script::positions(&self.source.text, language, name).ok().flatten();
        let span = place.as_ref().map(|place| place.span).unwrap_or_default();
        // Items of the default export are found just by their index.
        let way = if name == "default" && matches!(value, Value::List(_)) { "" } else { name };
        self.node(value, &mut way.to_owned(), Spot { span, place: place.as_ref(), depth: 0 })
    }

    /// Converts `value`, which is found at the property path `way`.
    fn node(&mut self, value: &Value, way: &mut String, spot: Spot<'_>) -> Node {
        let tag = match value {
            Value::Regex { .. } => Some(REGEX),
            Value::Function(_) | Value::Native(_) | Value::HostFunction(_) => Some(FUNCTION),
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
            Value::Function(_) | Value::Native(_) | Value::HostFunction(_) => {
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

    /// Converts a map. A key with the value `undefined` is omitted.
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

    /// Converts a list that contains functions to a map, because their names would otherwise be lost.
    fn operators(&mut self, items: &[Value], way: &mut String, spot: Spot<'_>) -> Vec<(Spanned<String>, Node)> {
        let mut entries = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            let name = match item {
                Value::Function(function) => function.name().to_owned(),
                Value::String(text) => Reference::parse(text).map(|it| it.inferred_name()).unwrap_or_default(),
                _ => String::new(),
            };
            let name = if name.is_empty() { format!("op{index}") } else { name };
            let node = self.below(item, way, &format!("[{index}]"), spot.item(index));
            entries.push((Spanned::new(name, node.span), node));
        }
        entries
    }
}

/// Returns one step of a property path: `.name`, or `["any text"]`.
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
