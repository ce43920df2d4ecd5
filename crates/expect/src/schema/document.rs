//! Reads a schema from the user's file and converts it to the document that the library compiles. The library knows
//! all drafts. The document differs from the file only where ajv interprets a draft differently, and for those
//! ajv-keywords that contain schemas. Every mistake is reported at its location.

use std::collections::HashSet;
use std::sync::Arc;

use jsonschema::Draft;
use model::{Diagnostic, Node, NodeKind, Span, Spanned};
use serde_json::{Map, Value, json};

use super::Patterns;
use super::check::{self, CLASSES, TYPES_OF};
use super::format::Format;
use super::mistake::Mistake;
use super::select;
use super::vocabulary::{
    EXTENSIONS, PATTERN, REFERENCES, Role, SubschemaKind, draft, draft_address, draft_name, is_remark, keyword,
    nearest_keyword,
};
use crate::value::same;

/// Maximum nesting depth of a schema.
const MAX_DEPTH: usize = 100;

/// Upper limits, the lower limits that belong to them, and the values that they are about.
const LIMITS: [(&str, &str, &str); 4] = [
    ("maxLength", "minLength", "text"),
    ("maxItems", "minItems", "list"),
    ("maxProperties", "minProperties", "map"),
    ("maximum", "minimum", "number"),
];

/// A document under construction.
pub(super) struct Document<'a> {
    draft: Draft,
    patterns: &'a Arc<dyn Patterns>,
    depth: usize,
    ids: HashSet<&'a str>,
    /// True if the schema is nested so deeply that the rest was not read.
    pub(super) is_too_deep: bool,
    /// The references in the schema.
    pub(super) references: Vec<&'a Node>,
    /// The problems found so far, with their locations.
    pub(super) problems: Vec<(Span, Diagnostic)>,
}

impl<'a> Document<'a> {
    pub(super) fn new(draft: Draft, patterns: &'a Arc<dyn Patterns>) -> Self {
        let (ids, references, problems) = (HashSet::new(), Vec::new(), Vec::new());
        Self { draft, patterns, depth: 0, ids, is_too_deep: false, references, problems }
    }

    /// Reads a schema and the schemas in it.
    pub(super) fn schema(&mut self, node: &'a Node) -> Value {
        let NodeKind::Map(entries) = &node.kind else { return node.to_json() };
        if self.depth == MAX_DEPTH {
            self.is_too_deep = true;
            self.error(node, format!("the schema is nested more than {MAX_DEPTH} deep"));
            return Value::Bool(true);
        }
        self.depth += 1;
        let mut out = Map::new();
        for (key, value) in entries {
            match keyword(&key.value) {
                Some(known) if known.role == Role::Informs => {}
                None if key.value.starts_with('_') => {}
                None if is_remark(&key.value) => _ = out.insert(key.value.clone(), value.to_json()),
                Some(known) if known.is_in(self.draft) => {
                    self.mistakes(node, &key.value, value);
                    self.doubts(node, key, value);
                    out.insert(key.value.clone(), self.under(known.under, value));
                }
                Some(known) if key.value != "id" => {
                    let draft = if known.since > self.draft { known.since } else { known.until };
                    let name = draft_name(self.draft);
                    let message = format!("`{}` is not a keyword of {name}, the draft of the schema", key.value);
                    let help = format!("to use {}, write `$schema: {}`", draft_name(draft), draft_address(draft));
                    self.report(Diagnostic::warning(message).help(help), key.span, node);
                }
                _ => {
                    self.unknown(key, value);
                    out.insert(key.value.clone(), value.to_json());
                }
            }
        }
        self.depth -= 1;
        self.as_the_library_reads_it(node, out)
    }

    fn under(&mut self, under: SubschemaKind, node: &'a Node) -> Value {
        match (under, &node.kind) {
            (SubschemaKind::Map, NodeKind::Map(entries)) => {
                Value::Object(entries.iter().map(|(name, node)| (name.value.clone(), self.schema(node))).collect())
            }
            (SubschemaKind::Schemas, NodeKind::List(items)) => items.iter().map(|item| self.schema(item)).collect(),
            (SubschemaKind::Schemas, _) => self.schema(node),
            _ => node.to_json(),
        }
    }

    /// Rewrites keywords that ajv and the library interpret differently.
    fn as_the_library_reads_it(&mut self, node: &'a Node, mut out: Map<String, Value>) -> Value {
        let mut all_of = Vec::new();
        let items = if self.draft == Draft::Draft202012 { "prefixItems" } else { "items" };
        if let Some(pattern) = out.shift_remove("pattern") {
            out.insert(PATTERN.to_owned(), pattern);
        }
        if out.shift_remove("nullable") == Some(Value::Bool(true))
            && let Some(types) = out.get_mut("type")
        {
            let mut list = types.as_array().cloned().unwrap_or_else(|| vec![types.clone()]);
            if !list.contains(&json!("null")) {
                list.push(json!("null"));
            }
            *types = Value::Array(list);
        }
        if let Some(pointers) = out.shift_remove("deepProperties") {
            let read = select::deep_properties(&pointers, items);
            all_of.extend(self.or_report(node.get("deepProperties").unwrap_or(node), read));
        }
        let (cases, default) = (out.shift_remove("selectCases"), out.shift_remove("selectDefault"));
        if let Some(by) = out.shift_remove("select") {
            let read = select::select(&by, cases.as_ref(), default, items);
            all_of.extend(self.or_report(node.get("select").unwrap_or(node), read));
        }
        if let Some(steps) = out.shift_remove("transform") {
            let texts = ["enum", "minLength", "maxLength", "format", "regexp", PATTERN];
            let changed: Map<_, _> =
                texts.iter().filter_map(|key| Some(((*key).to_owned(), out.shift_remove(*key)?))).collect();
            out.insert("transform".to_owned(), json!({"steps": steps, "schema": changed}));
        }
        // Up to draft-07, the library ignores keywords next to a reference.
        if self.draft <= Draft::Draft7
            && out.len() > 1
            && let Some(reference) = out.shift_remove("$ref")
        {
            all_of.push(json!({"$ref": reference}));
        }
        if !all_of.is_empty() {
            match out.entry("allOf").or_insert_with(|| json!([])) {
                Value::Array(list) => list.append(&mut all_of),
                _ => return Value::Object(out),
            }
        }
        Value::Object(out)
    }

    fn or_report(&mut self, node: &Node, read: Result<Vec<Value>, Mistake>) -> Vec<Value> {
        read.unwrap_or_else(|mistake| {
            self.report(*mistake.problem, node.span, node);
            Vec::new()
        })
    }

    /// Reports mistakes that the metaschema does not detect.
    fn mistakes(&mut self, holder: &'a Node, key: &str, node: &'a Node) {
        match (key, &node.kind) {
            (reference, _) if REFERENCES.contains(&reference) => self.references.push(node),
            ("$id" | "id", NodeKind::String(id)) if id.contains("://") && !self.ids.insert(id) => {
                self.error(node, format!("the schema has two parts called `{id}`"));
            }
            ("$schema", NodeKind::String(address)) if self.depth > 1 && draft(address) != Some(self.draft) => {
                let name = draft_name(self.draft);
                self.error(node, format!("the schema uses {name}; its parts cannot use another draft"));
            }
            ("pattern", NodeKind::String(source)) => self.valid_pattern(source, node.span, node),
            ("patternProperties", NodeKind::Map(entries)) => {
                for (source, _) in entries {
                    self.valid_pattern(&source.value, source.span, node);
                }
            }
            ("format", NodeKind::String(name)) if Format::named(name).is_none() => {
                let problem = match Format::nearest(name) {
                    Some(near) => Diagnostic::error(format!("unknown format `{name}`")).suggest(Some(near)),
                    None => Diagnostic::warning(format!("the `{name}` format is unknown, so it is not checked")),
                };
                self.report(problem, node.span, node);
            }
            ("enum", NodeKind::List(items)) if items.is_empty() => {
                self.error(node, "`enum` must have an item: no value could match".to_owned());
            }
            ("nullable", kind) => self.nullable(holder, node, matches!(kind, NodeKind::Bool(true))),
            ("selectCases" | "selectDefault", _) if holder.get("select").is_none() => {
                self.error(node, format!("`{key}` needs `select` in the same schema"));
            }
            ("dynamicDefaults", kind) if !matches!(kind, NodeKind::Map(_)) => {
                self.error(node, format!("`dynamicDefaults` must be a map, not {}", node.kind_name()));
            }
            _ if key == "transform" || EXTENSIONS.split(' ').any(|known| known == key) => {
                let Value::Object(beside) = holder.to_json() else { return };
                let Err(mistake) = check::check(key, &node.to_json(), &beside, self.patterns) else { return };
                let place = match (&node.kind, mistake.item) {
                    (NodeKind::List(items), Some(at)) => items.get(at).unwrap_or(node),
                    _ => node,
                };
                self.report(*mistake.problem, place.span, place);
            }
            _ => {}
        }
    }

    fn valid_pattern(&mut self, source: &str, span: Span, node: &Node) {
        if let Err(mistake) = check::valid_pattern(source, "u", &**self.patterns) {
            self.report(*mistake.problem, span, node);
        }
    }

    fn nullable(&mut self, holder: &Node, node: &Node, nullable: bool) {
        let types = holder.get("type").map(Node::to_json);
        let has_null = types.as_ref().is_some_and(|types| match types {
            Value::Array(types) => types.contains(&json!("null")),
            one => one == "null",
        });
        if !matches!(node.kind, NodeKind::Bool(_)) {
            self.error(node, format!("`nullable` must be true or false, not {}", node.kind_name()));
        } else if nullable && types.is_none() {
            let problem = Diagnostic::error("`nullable` needs a `type` in the same schema");
            self.report(problem.help("without `type`, null is allowed anyway"), node.span, node);
        } else if !nullable && has_null {
            self.error(node, "`nullable: false` contradicts a `type` that allows null".to_owned());
        }
    }

    /// Warns about keywords that are valid but check less than it seems.
    fn doubts(&mut self, holder: &Node, key: &Spanned<String>, node: &Node) {
        let alone = |other: &str| holder.get(other).is_none();
        let needs = match key.value.as_str() {
            "then" | "else" if alone("if") => "if",
            "minContains" | "maxContains" if alone("contains") => "contains",
            "additionalItems" if !holder.get("items").is_some_and(|items| matches!(items.kind, NodeKind::List(_))) => {
                "items: […]"
            }
            "enum" => return self.repeated_options(node),
            most if let Some((_, least, what)) = LIMITS.iter().find(|(known, ..)| *known == most) => {
                let number = |node: &Node| node.to_json().as_f64();
                let is_above = holder.get(least).and_then(number) > number(node);
                if is_above && number(node).is_some() {
                    let message = format!("no {what} is valid, because `{least}` is above `{most}`");
                    self.report(Diagnostic::warning(message), node.span, node);
                }
                return;
            }
            "transform" => {
                let reaches = ["allOf", "anyOf", "oneOf", "not", "if"];
                if let Some(other) = reaches.into_iter().find(|other| !alone(other)) {
                    let message =
                        format!("`transform` does not reach into `{other}`: the text is checked there without it");
                    self.report(Diagnostic::warning(message), node.span, node);
                }
                return;
            }
            "typeof" => return self.impossible(key, node, TYPES_OF, &["string", "number", "object", "boolean"]),
            "instanceof" => return self.impossible(key, node, CLASSES, &["Object", "Array"]),
            _ => return,
        };
        let message = format!("`{}` has no effect without `{needs}` in the same schema", key.value);
        self.report(Diagnostic::warning(message), key.span, node);
    }

    fn repeated_options(&mut self, node: &Node) {
        let NodeKind::List(items) = &node.kind else { return };
        let options: Vec<Value> = items.iter().map(Node::to_json).collect();
        for (index, option) in options.iter().enumerate() {
            if options[..index].iter().any(|before| same(before, option)) {
                self.report(Diagnostic::warning("`enum` has this item twice"), items[index].span, node);
            }
        }
    }

    /// Warns if all names in a list are valid but none of them can ever match.
    fn impossible(&mut self, key: &Spanned<String>, node: &Node, known: &[&str], possible: &[&str]) {
        let items = if let NodeKind::List(items) = &node.kind { items.as_slice() } else { std::slice::from_ref(node) };
        let all = |names: &[&str]| items.iter().all(|item| item.as_str().is_some_and(|name| names.contains(&name)));
        if all(known) && !items.iter().any(|item| item.as_str().is_some_and(|name| possible.contains(&name))) {
            let message = format!("no JSON value can match this `{}`", key.value);
            self.report(Diagnostic::warning(message), node.span, node);
        }
    }

    /// Reports an unknown key: as an error if a keyword with a similar name would accept such a value, otherwise as a
    /// warning.
    fn unknown(&mut self, key: &Spanned<String>, node: &Node) {
        let near = nearest_keyword(&key.value, self.draft);
        let holds_schemas = near.and_then(keyword).is_some_and(|near| near.under != SubschemaKind::Nothing);
        let scalar = !matches!(node.kind, NodeKind::Map(_) | NodeKind::List(_) | NodeKind::Bool(_));
        let message = format!("`{}` is not a keyword of JSON Schema", key.value);
        let problem = match near {
            Some(near) if !(holds_schemas && scalar) => Diagnostic::error(message).suggest(Some(near)),
            _ => Diagnostic::warning(format!("{message}, so it is ignored")),
        };
        self.report(problem, key.span, node);
    }

    fn error(&mut self, node: &Node, message: String) {
        self.report(Diagnostic::error(message), node.span, node);
    }

    fn report(&mut self, problem: Diagnostic, span: Span, node: &Node) {
        self.problems.push((span, problem.at(node.source.excerpt(span))));
    }
}
