//! Keywords of the standard that do not contain schemas.

use model::decode::as_whole;
use model::{Node, NodeKind, nearest};
use serde_json::{Value, json};

use super::{Entry, Part, Translator};
use crate::schema::check::{Check, Transform, same};
use crate::schema::format::{FORMATS, format};
use crate::schema::reference::Target;
use crate::schema::vocabulary::{Dialect, TYPES};

impl<'a> Translator<'a, '_> {
    /// Translates the keyword and returns true, if it is one of these.
    pub(super) fn standard(&mut self, part: &mut Part<'a>, entry: Entry<'a>) -> bool {
        let (key, node) = entry;
        match key.value.as_str() {
            "$schema" => self.inner_dialect(part, entry),
            "$id" | "id" | "$anchor" | "$dynamicAnchor" => {
                if node.as_str().is_none() {
                    self.wrong(entry, "a string");
                }
            }
            "$recursiveAnchor" => _ = self.boolean(entry),
            "$ref" => self.reference(part, entry),
            "$recursiveRef" | "$dynamicRef" => self.dynamic_reference(part, entry),
            "type" => self.types(part, entry),
            "nullable" => self.nullable(part, entry),
            "enum" => self.options(part, entry),
            "const" => part.put("const", node.to_json(), entry),
            "multipleOf" => {
                if let Some(value) = self.number(entry) {
                    if value > 0.0 {
                        part.put("multipleOf", node.to_json(), entry);
                    } else {
                        self.wrong(entry, "more than 0");
                    }
                }
            }
            "maximum" | "minimum" => self.bound(part, entry),
            "exclusiveMaximum" | "exclusiveMinimum" => self.exclusive_bound(part, entry),
            "maxLength" | "minLength" | "maxItems" | "minItems" | "maxProperties" | "minProperties" => {
                self.count(part, entry);
            }
            "maxContains" | "minContains" => {
                if part.get("contains").is_some() {
                    self.count(part, entry);
                } else {
                    self.idle(entry, "contains");
                }
            }
            "uniqueItems" => {
                if let Some(value) = self.boolean(entry) {
                    part.put("uniqueItems", json!(value), entry);
                }
            }
            "required" => self.required(part, entry),
            "dependentRequired" => self.dependent_required(part, entry),
            "pattern" => {
                if let Some(source) = self.pattern(entry, node) {
                    self.check(part, entry, Check::Pattern { source, flags: "u".to_owned() });
                }
            }
            "format" => self.format(part, entry),
            _ => return false,
        }
        true
    }

    fn inner_dialect(&mut self, part: &Part<'a>, (_, node): Entry<'a>) {
        let is_root = self.definitions.first().is_some_and(|root| std::ptr::eq(*root, part.node));
        if !is_root && node.as_str().and_then(Dialect::of) != Some(self.dialect) {
            self.error(node, format!("the whole schema is {}, a part of it cannot be another", self.dialect.name()));
        }
    }

    fn reference(&mut self, part: &mut Part<'a>, entry: Entry<'a>) {
        let (_, node) = entry;
        let Some(reference) = node.as_str() else { return self.wrong(entry, "a string") };
        match self.references.resolve(reference, part.node) {
            Ok(Target::Schema(target)) => self.refer(part, target, entry),
            Ok(Target::Dialect(dialect)) => self.check(part, entry, Check::Dialect(dialect)),
            Err((why, help)) => {
                let problem = node.error(why);
                let problem = help.into_iter().fold(problem, model::Diagnostic::help);
                self.report(problem, node.span);
            }
        }
    }

    fn refer(&mut self, part: &mut Part<'a>, target: &'a Node, entry: Entry<'a>) {
        let definition = self.definition(target);
        if part.in_place {
            self.edges.push((self.current, definition, entry.1));
        }
        let reference = json!(format!("#/definitions/{definition}"));
        if part.out.contains_key("$ref") {
            part.all_of.push(json!({"$ref": reference}));
        } else {
            part.put("$ref", reference, entry);
        }
    }

    /// Translates a reference whose target depends on the path of evaluation. In a schema of one document there is
    /// only one path.
    fn dynamic_reference(&mut self, part: &mut Part<'a>, entry: Entry<'a>) {
        let (key, node) = entry;
        let Some(reference) = node.as_str() else { return self.wrong(entry, "a string") };
        let anchor = reference.strip_prefix('#').unwrap_or_default();
        let several = match key.value.as_str() {
            "$recursiveRef" => self.references.is_compound(),
            _ => self.references.dynamic_anchors(anchor).len() > 1,
        };
        if several {
            let message = format!("`{}` can only be used where a single schema can be meant", key.value);
            let problem = node.error(message).help("use `$ref`");
            return self.report(problem, node.span);
        }
        self.reference(part, entry);
    }

    fn types(&mut self, part: &mut Part<'a>, entry: Entry<'a>) {
        let (_, node) = entry;
        let items = match &node.kind {
            NodeKind::List(items) if !items.is_empty() => items.as_slice(),
            _ => std::slice::from_ref(node),
        };
        let mut types: Vec<&str> = Vec::new();
        for item in items {
            match item.as_str() {
                Some(name) if TYPES.contains(&name) => {
                    if types.contains(&name) {
                        self.error(item, format!("`type` names `{name}` twice"));
                    }
                    types.push(name);
                }
                written => {
                    let shown = written.map_or_else(|| item.kind_name().to_owned(), |name| format!("`{name}`"));
                    let near = written.and_then(|name| nearest(name, TYPES.iter().copied()));
                    let problem = item.error(format!("`type` must be one of {}, not {shown}", TYPES.join(", ")));
                    self.report(problem.suggest(near), item.span);
                }
            }
        }
        let nullable = part.get("nullable").is_some_and(|node| matches!(node.kind, NodeKind::Bool(true)));
        if nullable && !types.contains(&"null") {
            types.push("null");
        }
        let value = if let [one] = types[..] { json!(one) } else { json!(types) };
        part.put("type", value, entry);
    }

    fn nullable(&mut self, part: &Part<'a>, entry: Entry<'a>) {
        let Some(nullable) = self.boolean(entry) else { return };
        let (_, node) = entry;
        match part.get("type") {
            None if nullable => {
                let problem = node.error("`nullable` needs a `type` beside it");
                self.report(problem.help("without `type`, null is allowed anyway"), node.span);
            }
            Some(types) if !nullable && names_null(types) => {
                self.error(node, "`nullable: false` contradicts a `type` that allows null".to_owned());
            }
            _ => {}
        }
    }

    fn options(&mut self, part: &mut Part<'a>, entry: Entry<'a>) {
        let (_, node) = entry;
        let NodeKind::List(items) = &node.kind else { return self.wrong(entry, "a list") };
        if items.is_empty() {
            return self.error(node, "`enum` must have an item: no value could match".to_owned());
        }
        let options: Vec<Value> = items.iter().map(Node::to_json).collect();
        for (at, option) in options.iter().enumerate() {
            if options[..at].iter().any(|before| same(before, option)) {
                let problem = items[at].warning("`enum` has this item twice");
                self.report(problem, items[at].span);
            }
        }
        if part.transforms.is_empty() {
            part.put("enum", Value::Array(options), entry);
        } else {
            self.check(part, entry, Check::Enum(options));
        }
    }

    /// Translates `maximum` or `minimum`. In draft-04 another keyword says whether the limit itself is allowed.
    fn bound(&mut self, part: &mut Part<'a>, entry: Entry<'a>) {
        if self.number(entry).is_none() {
            return;
        }
        let (key, node) = entry;
        let exclusive = if key.value == "maximum" { "exclusiveMaximum" } else { "exclusiveMinimum" };
        let beside = part.get(exclusive).is_some_and(|node| matches!(node.kind, NodeKind::Bool(true)));
        let name = if self.dialect == Dialect::Draft4 && beside { exclusive } else { &key.value };
        part.put(name, node.to_json(), entry);
    }

    fn exclusive_bound(&mut self, part: &mut Part<'a>, entry: Entry<'a>) {
        let (key, node) = entry;
        let bound = if key.value == "exclusiveMaximum" { "maximum" } else { "minimum" };
        if self.dialect == Dialect::Draft4 {
            if self.boolean(entry).is_some() && part.get(bound).is_none() {
                self.idle(entry, bound);
            }
            return;
        }
        if matches!(node.kind, NodeKind::Bool(_)) {
            let problem = node.error(format!("`{}` must be a number, not a boolean", key.value));
            let help = format!(
                "write the bound under `{}` instead of `{bound}`; only draft-04 has it as a boolean",
                key.value
            );
            return self.report(problem.help(help), node.span);
        }
        if self.number(entry).is_some() {
            part.put(&key.value, node.to_json(), entry);
        }
    }

    fn count(&mut self, part: &mut Part<'a>, entry: Entry<'a>) {
        let (key, node) = entry;
        let count = match &node.kind {
            NodeKind::Number(number) => as_whole(number),
            _ => None,
        };
        let Some(count) = count else { return self.wrong(entry, "a whole number of at least 0") };
        let length = usize::try_from(count).unwrap_or(usize::MAX);
        match key.value.as_str() {
            "minLength" if !part.transforms.is_empty() => self.check(part, entry, Check::MinLength(length)),
            "maxLength" if !part.transforms.is_empty() => self.check(part, entry, Check::MaxLength(length)),
            _ => part.put(&key.value, json!(count), entry),
        }
    }

    fn required(&mut self, part: &mut Part<'a>, entry: Entry<'a>) {
        let (_, node) = entry;
        if matches!(node.kind, NodeKind::Bool(_)) {
            let problem = node.error("`required` must be a list of names, not a boolean");
            let help = "list the names of required properties in `required` of the object that has them";
            return self.report(problem.help(help), node.span);
        }
        if let Some(names) = self.names(entry, node) {
            part.put("required", json!(names), entry);
        }
    }

    fn dependent_required(&mut self, part: &mut Part<'a>, entry: Entry<'a>) {
        let NodeKind::Map(entries) = &entry.1.kind else {
            return self.wrong(entry, "a map of names to lists of names");
        };
        let mut needs = serde_json::Map::new();
        for (name, node) in entries {
            if let Some(names) = self.names((name, node), node) {
                needs.insert(name.value.clone(), json!(names));
            }
        }
        part.put("dependentRequired", Value::Object(needs), entry);
    }

    /// Reads `node` as a valid regular expression.
    pub(super) fn pattern(&mut self, entry: Entry<'_>, node: &Node) -> Option<String> {
        let Some(source) = node.as_str() else {
            self.wrong((entry.0, node), "a regular expression");
            return None;
        };
        self.valid_pattern(source, "u", node)
    }

    pub(super) fn valid_pattern(&mut self, source: &str, flags: &str, node: &Node) -> Option<String> {
        let Err(why) = self.patterns.check(source, flags) else { return Some(source.to_owned()) };
        let mut problem = node.error(format!("/{source}/ is no regular expression: {why}"));
        if flags.contains('u') && self.patterns.check(source, &flags.replace('u', "")).is_ok() {
            problem = problem.help(
                "patterns of schemas are read with the flag `u`, which allows `\\` only before \
                                    letters that mean something and before `^$\\.*+?()[]{}|/`",
            );
        }
        self.report(problem, node.span);
        None
    }

    fn format(&mut self, part: &mut Part<'a>, entry: Entry<'a>) {
        let (_, node) = entry;
        let Some(name) = node.as_str() else { return self.wrong(entry, "a string") };
        if let Some(format) = format(name) {
            return self.check(part, entry, Check::Format(format));
        }
        let problem = match nearest(name, FORMATS.iter().map(|format| format.name)) {
            Some(near) if !STRANGE_FORMATS.contains(&name) => {
                node.error(format!("there is no format `{name}`")).suggest(Some(near))
            }
            _ => node.warning(format!("the format `{name}` is not known, so it is not checked")),
        };
        self.report(problem, node.span);
    }

    pub(super) fn boolean(&mut self, entry: Entry<'_>) -> Option<bool> {
        if let NodeKind::Bool(value) = entry.1.kind {
            return Some(value);
        }
        self.wrong(entry, "true or false");
        None
    }

    pub(super) fn number(&mut self, entry: Entry<'_>) -> Option<f64> {
        if let NodeKind::Number(number) = &entry.1.kind {
            return number.as_f64();
        }
        self.wrong(entry, "a number");
        None
    }

    /// Reads `node` as a list of distinct names.
    pub(super) fn names(&mut self, entry: Entry<'_>, node: &Node) -> Option<Vec<String>> {
        let NodeKind::List(items) = &node.kind else {
            self.wrong((entry.0, node), "a list of names");
            return None;
        };
        let mut names: Vec<String> = Vec::with_capacity(items.len());
        for item in items {
            match item.as_str() {
                Some(name) if names.iter().any(|known| known == name) => {
                    self.error(item, format!("`{}` names `{name}` twice", entry.0.value));
                }
                Some(name) => names.push(name.to_owned()),
                None => self
                    .error(item, format!("an item of `{}` must be a string, not {}", entry.0.value, item.kind_name())),
            }
        }
        Some(names)
    }

    /// Reports that a keyword has no effect without another.
    pub(super) fn idle(&mut self, (key, node): Entry<'_>, other: &str) {
        let message = format!("`{}` says nothing without `{other}` beside it", key.value);
        let problem = model::Diagnostic::warning(message).at(node.source.excerpt(key.span));
        self.report(problem, key.span);
    }
}

/// Formats of the standard and of OpenAPI that have names similar to others, but are not misspellings of them.
const STRANGE_FORMATS: &[&str] = &[
    "cuid",
    "ulid",
    "urn",
    "idn-email",
    "idn-hostname",
    "iri",
    "iri-reference",
    "int8",
    "int16",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "base64url",
    "decimal",
    "float32",
    "float64",
];

fn names_null(types: &Node) -> bool {
    match &types.kind {
        NodeKind::List(items) => items.iter().any(|item| item.as_str() == Some("null")),
        _ => types.as_str() == Some("null"),
    }
}

/// Returns the known transformations in `transform`.
pub(super) fn transforms(node: &Node) -> Vec<Transform> {
    let NodeKind::List(items) = &node.kind else { return Vec::new() };
    let known = |name: &str| Transform::NAMES.iter().find(|(known, _)| *known == name).map(|(_, transform)| *transform);
    items.iter().filter_map(|item| item.as_str().and_then(known)).collect()
}
