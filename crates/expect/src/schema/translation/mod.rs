//! Translates a schema in the user's file, in any dialect, into one document for the library: draft 2020-12 without
//! ids and anchors. Every schema that is the target of a reference becomes a definition, and every reference is
//! `#/definitions/N`. All errors of the user are reported at their places.

mod applicators;
mod extensions;
mod standard;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use jsonschema::paths::Location;
use jsonschema::{Draft, Validator};
use model::decode::Problems;
use model::{Diagnostic, Node, NodeKind, Source, Span, Spanned};
use serde_json::{Map, Value, json};

use super::check::{self, Check, Rule, Transform};
use super::pattern_properties::PatternProperties;
use super::reference::References;
use super::vocabulary::{Dialect, Role, Under, is_remark, keyword, nearest_keyword};
use super::{Patterns, Undecided};

/// Maximum nesting depth of a schema.
pub(super) const DEEPEST: usize = 100;

/// Key under which a translated schema stores the index of its origin.
const ORIGIN: &str = "origin";

/// Translated schema.
pub(super) struct Translation {
    original: Value,
    document: Value,
    rules: Arc<[Rule]>,
    origins: Vec<Origin>,
    by_name: Vec<PatternProperties>,
    whole: Said,
}

/// Origin of a translated schema: the user's keywords, by their translated names.
type Origin = HashMap<String, Said>;

/// Keyword as written by the user.
pub(super) struct Said {
    pub(super) keyword: String,
    pub(super) value: Value,
    pub(super) source: Arc<Source>,
    pub(super) span: Span,
}

impl Translation {
    /// Translates `root`. Returns `None` if it is not a schema at all.
    pub(super) fn of(root: &Node, patterns: &dyn Patterns, problems: &mut Problems) -> Option<Self> {
        let dialect = dialect_of(root, problems)?;
        let references = References::of(root, dialect, problems);
        let mut translator = Translator {
            dialect,
            patterns,
            references,
            definitions: vec![root],
            edges: Vec::new(),
            current: 0,
            depth: 0,
            rules: Vec::new(),
            origins: Vec::new(),
            by_name: Vec::new(),
            patterned: Map::new(),
            told: HashSet::new(),
            problems,
        };
        let definitions = translator.definitions();
        translator.report_circles();
        let Translator { rules, origins, by_name, .. } = translator;
        let original = root.to_json();
        let whole =
            Said { keyword: String::new(), value: original.clone(), source: Arc::clone(&root.source), span: root.span };
        let document = json!({"$ref": "#/definitions/0", "definitions": definitions});
        Some(Self { original, document, rules: rules.into(), origins, by_name, whole })
    }

    /// Returns the schema as written by the user.
    pub(super) fn original(&self) -> &Value {
        &self.original
    }

    /// True if the document depends on the property names of the value.
    pub(super) fn depends_on_names(&self) -> bool {
        !self.by_name.is_empty()
    }

    /// Returns the document for a value whose properties have these `names`.
    pub(super) fn document(&self, names: &BTreeSet<String>, patterns: &dyn Patterns) -> Result<Value, Undecided> {
        let mut document = self.document.clone();
        if let Some(definitions) = document.get_mut("definitions").and_then(Value::as_object_mut) {
            for part in &self.by_name {
                definitions.insert(part.definition.clone(), part.spelled_out(names, patterns)?);
            }
        }
        Ok(document)
    }

    /// Compiles `document`.
    pub(super) fn build(&self, document: &Value, patterns: &Arc<dyn Patterns>) -> Result<Validator, String> {
        let options = jsonschema::options().with_draft(Draft::Draft202012).should_validate_formats(false).offline();
        check::register(options, &self.rules, patterns).build(document).map_err(|error| error.to_string())
    }

    /// Returns the user's keyword that was translated to the part of `document` at `location`.
    pub(super) fn said(&self, document: &Value, location: &Location) -> &Said {
        let mut at = document;
        let mut found = &self.whole;
        for segment in location {
            let key = segment.to_string();
            let origin = at.get(ORIGIN).and_then(Value::as_u64).and_then(|index| usize::try_from(index).ok());
            if let Some(said) = origin.and_then(|index| self.origins.get(index)).and_then(|origin| origin.get(&key)) {
                found = said;
            }
            let next = match at {
                Value::Array(items) => key.parse::<usize>().ok().and_then(|index| items.get(index)),
                _ => at.get(&key),
            };
            let Some(next) = next else { break };
            at = next;
        }
        found
    }
}

/// Returns the dialect of `root`, or reports that it is not a schema.
fn dialect_of(root: &Node, problems: &mut Problems) -> Option<Dialect> {
    match &root.kind {
        NodeKind::Bool(_) => return Some(Dialect::Draft7),
        NodeKind::Map(_) => {}
        _ => {
            problems.push(root.error(format!("a schema must be a map, not {}", root.kind_name())));
            return None;
        }
    }
    let Some(node) = root.get("$schema") else { return Some(Dialect::Draft7) };
    let dialect = node.as_str().and_then(Dialect::of);
    if dialect.is_none() {
        let known: Vec<String> = Dialect::addresses().collect();
        let written = node.as_str().map_or_else(|| node.kind_name().to_owned(), |text| format!("`{text}`"));
        let near = node.as_str().and_then(|text| model::nearest(text, known.iter().map(String::as_str)));
        let problem = node.error(format!("`$schema` must name a version of JSON Schema, not {written}")).suggest(near);
        problems.push(problem.help(format!("known are {}", known.join(", "))));
    }
    dialect
}

/// Translator of one schema.
struct Translator<'a, 'p> {
    dialect: Dialect,
    patterns: &'p dyn Patterns,
    references: References<'a>,
    /// Targets of references, the root first. More are added during the translation.
    definitions: Vec<&'a Node>,
    /// Pairs of definitions of which the first requires the same value to match the second, and the place of the
    /// requirement.
    edges: Vec<(usize, usize, &'a Node)>,
    /// Index of the definition that is being translated.
    current: usize,
    depth: usize,
    rules: Vec<Rule>,
    origins: Vec<Origin>,
    by_name: Vec<PatternProperties>,
    /// Translated schemas of patterns.
    patterned: Map<String, Value>,
    /// Problems that were reported. A schema with references to it is translated more than once.
    told: HashSet<(usize, usize, String)>,
    problems: &'p mut Problems,
}

/// Schema that is being translated.
struct Part<'a> {
    node: &'a Node,
    /// True if it applies to the same value as the enclosing definition.
    in_place: bool,
    out: Map<String, Value>,
    all_of: Vec<Value>,
    origin: Origin,
    /// Transformations of a text before it is checked.
    transforms: Vec<Transform>,
}

/// Key and value in the user's schema.
type Entry<'a> = (&'a Spanned<String>, &'a Node);

impl<'a> Part<'a> {
    fn of(node: &'a Node, in_place: bool) -> Self {
        let transforms = node.get("transform").map(standard::transforms).unwrap_or_default();
        Self { node, in_place, out: Map::new(), all_of: Vec::new(), origin: Origin::new(), transforms }
    }

    fn get(&self, key: &str) -> Option<&'a Node> {
        self.node.get(key)
    }

    /// Adds the translation of a keyword to the translated schema.
    fn put(&mut self, name: &str, value: Value, (key, node): Entry<'a>) {
        let said = Said {
            keyword: key.value.clone(),
            value: node.to_json(),
            source: Arc::clone(&node.source),
            span: key.span,
        };
        self.origin.insert(name.to_owned(), said);
        self.out.insert(name.to_owned(), value);
    }
}

impl<'a> Translator<'a, '_> {
    /// Translates the root and all targets of references.
    fn definitions(&mut self) -> Map<String, Value> {
        let mut translated = Map::new();
        while let Some(node) = self.definitions.get(self.current).copied() {
            let schema = self.schema(node, true);
            translated.insert(self.current.to_string(), schema);
            self.current += 1;
        }
        translated.append(&mut self.patterned);
        translated
    }

    /// Translates one schema and its inner schemas.
    fn schema(&mut self, node: &'a Node, in_place: bool) -> Value {
        let entries = match &node.kind {
            NodeKind::Bool(value) => return Value::Bool(*value),
            NodeKind::Map(entries) => entries,
            _ => {
                self.error(node, format!("a schema must be a map, not {}", node.kind_name()));
                return Value::Bool(true);
            }
        };
        if self.depth == DEEPEST {
            self.error(node, format!("the schema is nested more than {DEEPEST} deep"));
            return Value::Bool(true);
        }
        self.depth += 1;
        let mut part = Part::of(node, in_place);
        for (key, value) in entries {
            self.entry(&mut part, (key, value));
        }
        self.depth -= 1;
        if !part.all_of.is_empty() {
            part.out.insert("allOf".to_owned(), Value::Array(part.all_of));
        }
        part.out.insert(ORIGIN.to_owned(), json!(self.origins.len()));
        self.origins.push(part.origin);
        Value::Object(part.out)
    }

    fn entry(&mut self, part: &mut Part<'a>, entry: Entry<'a>) {
        let (key, node) = entry;
        if is_remark(&key.value) {
            return;
        }
        match keyword(&key.value) {
            Some(known) if known.role == Role::Tells => self.remark(entry),
            Some(known) if known.in_dialect(self.dialect) => self.keyword(part, entry),
            Some(known) if known.name == "id" => self.unknown(key, node),
            Some(known) => {
                let dialect = if known.since > self.dialect { known.since } else { known.until };
                let message =
                    format!("`{}` means nothing in {}, which the schema is read as", key.value, self.dialect.name());
                let help = format!("for {} write `$schema: {}`", dialect.name(), dialect.address());
                let problem = Diagnostic::warning(message).at(node.source.excerpt(key.span)).help(help);
                self.report(problem, key.span);
            }
            None => self.unknown(key, node),
        }
    }

    /// Reads a keyword that is an annotation. Its type is checked so that data is not mistaken for a schema.
    fn remark(&mut self, entry: Entry<'_>) {
        let (key, node) = entry;
        match (key.value.as_str(), &node.kind) {
            ("readOnly" | "writeOnly", _) => _ = self.boolean(entry),
            ("title" | "description" | "$comment", NodeKind::String(_)) | ("examples", NodeKind::List(_)) => {}
            ("title" | "description" | "$comment", _) => self.wrong(entry, "a string"),
            ("examples", _) => self.wrong(entry, "a list"),
            _ => {}
        }
    }

    fn keyword(&mut self, part: &mut Part<'a>, entry: Entry<'a>) {
        if !self.standard(part, entry) && !self.applicator(part, entry) {
            self.extension(part, entry);
        }
    }

    /// Reports a key that is not a keyword: as an error if it is similar to a keyword that could have such a value,
    /// else as a warning.
    fn unknown(&mut self, key: &Spanned<String>, node: &Node) {
        let near = nearest_keyword(&key.value, self.dialect);
        let holds_schemas = near.and_then(keyword).is_some_and(|near| near.under != Under::Nothing);
        let scalar = !matches!(node.kind, NodeKind::Map(_) | NodeKind::List(_) | NodeKind::Bool(_));
        let message = format!("`{}` is no keyword of JSON Schema", key.value);
        let problem = match near {
            Some(near) if !(holds_schemas && scalar) => Diagnostic::error(message).suggest(Some(near)),
            _ => Diagnostic::warning(format!("{message}, so it says nothing")),
        };
        self.report(problem.at(node.source.excerpt(key.span)), key.span);
    }

    /// Returns the index of the definition for `node`.
    fn definition(&mut self, node: &'a Node) -> usize {
        let known = self.definitions.iter().position(|known| std::ptr::eq(*known, node));
        known.unwrap_or_else(|| {
            self.definitions.push(node);
            self.definitions.len() - 1
        })
    }

    /// Registers `check` for the keyword.
    fn check(&mut self, part: &mut Part<'a>, entry: Entry<'a>, check: Check) {
        part.put(&check::library_name(&entry.0.value), json!(self.rules.len()), entry);
        let transforms = part.transforms.clone();
        let cases = if transforms.contains(&Transform::ToEnumCase) { texts(part.get("enum")) } else { Vec::new() };
        self.rules.push(Rule { check, transforms, cases });
    }

    fn error(&mut self, node: &Node, message: String) {
        self.report(node.error(message), node.span);
    }

    /// Reports that the value of a keyword has the wrong type.
    fn wrong(&mut self, (key, node): Entry<'_>, needs: &str) {
        let shown = match &node.kind {
            NodeKind::Number(number) => number.to_string(),
            NodeKind::String(text) if text.chars().count() < 40 => format!("`{text}`"),
            _ => node.kind_name().to_owned(),
        };
        self.error(node, format!("`{}` must be {needs}, not {shown}", key.value));
    }

    fn report(&mut self, problem: Diagnostic, span: Span) {
        if self.told.insert((span.start(), span.end(), problem.message.clone())) {
            self.problems.push(problem);
        }
    }

    /// Reports every schema that only requires a value to match that same schema.
    fn report_circles(&mut self) {
        let edges = std::mem::take(&mut self.edges);
        for (from, to, node) in &edges {
            let mut reached = vec![*to];
            let mut next = 0;
            while let Some(at) = reached.get(next).copied() {
                next += 1;
                for (_, further, _) in edges.iter().filter(|(start, _, _)| *start == at) {
                    if !reached.contains(further) {
                        reached.push(*further);
                    }
                }
            }
            if reached.contains(from) {
                let problem = node
                    .error("this reference leads back to itself for the same value, without an end")
                    .help("refer to it from below `properties` or `items`");
                self.report(problem, node.span);
            }
        }
    }
}

/// Returns the texts in a list.
fn texts(node: Option<&Node>) -> Vec<String> {
    match node.map(|node| &node.kind) {
        Some(NodeKind::List(items)) => items.iter().filter_map(Node::as_str).map(str::to_owned).collect(),
        _ => Vec::new(),
    }
}
