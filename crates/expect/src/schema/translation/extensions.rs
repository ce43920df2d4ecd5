//! Keywords of ajv-formats and ajv-keywords.

use std::cmp::Ordering;

use model::{Node, NodeKind, nearest};
use serde_json::{Value, json};

use super::{Entry, Part, Translator};
use crate::schema::check::{Check, Transform};
use crate::schema::format::{FORMATS, Test, format};

/// Type names for `typeof`. No JSON value has a type that is not in [`POSSIBLE_TYPES`].
const TYPES_OF: &[&str] = &["undefined", "string", "number", "object", "function", "boolean", "symbol"];
const POSSIBLE_TYPES: &[&str] = &["string", "number", "object", "boolean"];

/// Class names for `instanceof`. No JSON value is an instance of a class that is not in [`POSSIBLE_CLASSES`].
const CLASSES: &[&str] = &["Object", "Array", "Function", "Number", "String", "Date", "RegExp", "Buffer", "Promise"];
const POSSIBLE_CLASSES: &[&str] = &["Object", "Array"];

const DEFAULTS: &[&str] = &["timestamp", "datetime", "date", "time", "random", "randomint", "seq"];

/// Maximum index of an item in a pointer.
const FARTHEST_ITEM: usize = 10_000;

impl<'a> Translator<'a, '_> {
    /// Translates one of these keywords.
    pub(super) fn extension(&mut self, part: &mut Part<'a>, entry: Entry<'a>) {
        let (key, node) = entry;
        match key.value.as_str() {
            "formatMinimum" => self.format_limit(part, entry, &[Ordering::Equal, Ordering::Greater], "at least"),
            "formatMaximum" => self.format_limit(part, entry, &[Ordering::Equal, Ordering::Less], "at most"),
            "formatExclusiveMinimum" => self.format_limit(part, entry, &[Ordering::Greater], "after"),
            "formatExclusiveMaximum" => self.format_limit(part, entry, &[Ordering::Less], "before"),
            "range" | "exclusiveRange" => self.range(part, entry),
            "regexp" => self.regexp(part, entry),
            "transform" => self.transform(part, entry),
            "allRequired" => self.all_required(part, entry),
            "anyRequired" => self.with_names(part, entry, Check::AnyRequired),
            "oneRequired" => self.with_names(part, entry, Check::OneRequired),
            "prohibited" => self.with_names(part, entry, Check::Prohibited),
            "uniqueItemProperties" => self.with_names(part, entry, Check::UniqueItemProperties),
            "deepRequired" => self.deep_required(part, entry),
            "deepProperties" => self.deep_properties(part, entry),
            "patternRequired" => self.pattern_required(part, entry),
            "dynamicDefaults" => self.dynamic_defaults(entry),
            "select" => self.select(part, entry),
            "selectCases" | "selectDefault" if part.get("select").is_none() => {
                self.error(node, format!("`{}` needs `select` beside it", key.value));
            }
            "typeof" => {
                if let Some(names) = self.choices(entry, TYPES_OF, POSSIBLE_TYPES) {
                    self.check(part, entry, Check::TypeOf(names));
                }
            }
            "instanceof" => {
                if let Some(names) = self.choices(entry, CLASSES, POSSIBLE_CLASSES) {
                    self.check(part, entry, Check::InstanceOf(names));
                }
            }
            _ => {}
        }
    }

    fn with_names(&mut self, part: &mut Part<'a>, entry: Entry<'a>, check: fn(Vec<String>) -> Check) {
        if let Some(names) = self.names(entry, entry.1) {
            self.check(part, entry, check(names));
        }
    }

    fn format_limit(
        &mut self,
        part: &mut Part<'a>,
        entry: Entry<'a>,
        allowed: &'static [Ordering],
        words: &'static str,
    ) {
        let (key, node) = entry;
        let Some(limit) = node.as_str() else { return self.wrong(entry, "a string") };
        let Some(name) = part.get("format").and_then(Node::as_str) else {
            return self.error(node, format!("`{}` needs `format` beside it", key.value));
        };
        // An unknown format is reported at its own keyword.
        let Some(format) = format(name) else { return };
        if format.order.is_none() {
            let ordered: Vec<&str> =
                FORMATS.iter().filter(|known| known.order.is_some()).map(|known| known.name).collect();
            let problem =
                node.error(format!("`{}` cannot be used with the format `{name}`, which has no order", key.value));
            return self.report(problem.help(format!("formats with an order: {}", ordered.join(", "))), node.span);
        }
        if let Test::Text(test) = format.test
            && !test(limit)
        {
            return self.error(node, format!("`{}` must itself have the format `{name}`", key.value));
        }
        self.check(part, entry, Check::FormatLimit { format, limit: limit.to_owned(), allowed, words });
    }

    fn range(&mut self, part: &mut Part<'a>, entry: Entry<'a>) {
        let (key, node) = entry;
        let numbers: Vec<f64> = match &node.kind {
            NodeKind::List(items) => items.iter().filter_map(as_number).collect(),
            _ => Vec::new(),
        };
        let written = if let NodeKind::List(items) = &node.kind { items.len() } else { 0 };
        let ([low, high], 2) = (&numbers[..], written) else { return self.wrong(entry, "a list of two numbers") };
        let exclusive = key.value == "exclusiveRange";
        if low > high || (exclusive && low == high) {
            return self.error(node, format!("there are no numbers in this `{}`", key.value));
        }
        self.check(part, entry, Check::Range { low: *low, high: *high, exclusive });
    }

    fn regexp(&mut self, part: &mut Part<'a>, entry: Entry<'a>) {
        let (_, node) = entry;
        let written = match &node.kind {
            NodeKind::String(text) => {
                let parts = text.strip_prefix('/').and_then(|rest| rest.rsplit_once('/'));
                parts.filter(|(_, flags)| flags.chars().all(|flag| "gimuy".contains(flag)))
            }
            NodeKind::Map(entries) => {
                for (key, value) in entries {
                    if !["pattern", "flags"].contains(&key.value.as_str()) {
                        self.error(value, format!("`regexp` has only `pattern` and `flags`, not `{}`", key.value));
                    }
                }
                let flags = node.get("flags").filter(|node| !matches!(node.kind, NodeKind::Null));
                match (node.get("pattern").and_then(Node::as_str), flags.map(Node::as_str)) {
                    (Some(source), None) => Some((source, "u")),
                    (Some(source), Some(Some(flags))) => Some((source, flags)),
                    _ => None,
                }
            }
            _ => None,
        };
        let Some((source, flags)) = written else {
            let problem = node.error("`regexp` must be an expression with its flags");
            let help = "write `/expression/i`, with flags out of `gimuy`, or a map with `pattern` and `flags`";
            return self.report(problem.help(help), node.span);
        };
        if flags.contains('y') {
            let problem = node.error("the flag `y` has no meaning in a schema");
            return self.report(problem.help("begin the expression with `^`"), node.span);
        }
        // `g` only affects where the next search starts, and there is no next search.
        let flags = flags.replace('g', "");
        if let Some(source) = self.valid_pattern(source, &flags, node) {
            self.check(part, entry, Check::Pattern { source, flags });
        }
    }

    /// Reads `transform`. The value is not changed: the other checks of the schema use the transformed text.
    fn transform(&mut self, part: &Part<'a>, entry: Entry<'a>) {
        let (_, node) = entry;
        let NodeKind::List(items) = &node.kind else { return self.wrong(entry, "a list of transformations") };
        for item in items {
            let known = || Transform::NAMES.iter().map(|(name, _)| *name);
            let written = item.as_str();
            if !written.is_some_and(|name| known().any(|known| known == name)) {
                let shown = written.map_or_else(|| item.kind_name().to_owned(), |name| format!("`{name}`"));
                let near = written.and_then(|name| nearest(name, known()));
                let problem = item.error(format!("there is no transformation {shown}")).suggest(near);
                let names: Vec<&str> = known().collect();
                self.report(problem.help(format!("known are {}", names.join(", "))), item.span);
            }
        }
        if let Some(beside) = ["allOf", "anyOf", "oneOf", "not", "if"].into_iter().find(|key| part.get(key).is_some()) {
            let message = format!("`transform` does not reach into `{beside}`: the text is looked at there as it is");
            self.report(node.warning(message), node.span);
        }
        if super::standard::transforms(node).contains(&Transform::ToEnumCase) {
            self.enum_case(part, node);
        }
    }

    fn enum_case(&mut self, part: &Part<'a>, node: &Node) {
        let Some(NodeKind::List(options)) = part.get("enum").map(|node| &node.kind) else {
            return self.error(node, "`toEnumCase` needs `enum` beside it".to_owned());
        };
        let mut seen: Vec<String> = Vec::new();
        for option in options {
            let Some(lower) = option.as_str().map(str::to_lowercase) else { continue };
            if seen.contains(&lower) {
                self.error(option, "`toEnumCase` needs options that differ by more than case".to_owned());
            }
            seen.push(lower);
        }
    }

    fn all_required(&mut self, part: &mut Part<'a>, entry: Entry<'a>) {
        let Some(wanted) = self.boolean(entry) else { return };
        match part.get("properties").map(|node| &node.kind) {
            Some(NodeKind::Map(properties)) if wanted => {
                let names = properties.iter().map(|(name, _)| name.value.clone()).collect();
                self.check(part, entry, Check::AllRequired(names));
            }
            None => self.error(entry.1, "`allRequired` needs `properties` beside it".to_owned()),
            _ => {}
        }
    }

    fn pattern_required(&mut self, part: &mut Part<'a>, entry: Entry<'a>) {
        let NodeKind::List(items) = &entry.1.kind else {
            return self.wrong(entry, "a list of regular expressions");
        };
        let sources = items.iter().filter_map(|item| self.pattern(entry, item)).collect();
        self.check(part, entry, Check::PatternRequired(sources));
    }

    fn deep_required(&mut self, part: &mut Part<'a>, entry: Entry<'a>) {
        let Some(pointers) = self.names(entry, entry.1) else { return };
        let NodeKind::List(items) = &entry.1.kind else { return };
        for item in items {
            if let Some(pointer) = item.as_str() {
                _ = self.pointer(pointer, item);
            }
        }
        self.check(part, entry, Check::DeepRequired(pointers));
    }

    /// Returns the steps of a pointer to something below the root.
    fn pointer(&mut self, pointer: &str, node: &Node) -> Option<Vec<String>> {
        if pointer.is_empty() || !crate::schema::internet::is_json_pointer(pointer) {
            let problem = node.error(format!("`{pointer}` is no JSON pointer to something below"));
            self.report(problem.help("write `/name/0/name`"), node.span);
            return None;
        }
        Some(pointer.split('/').skip(1).map(|step| step.replace("~1", "/").replace("~0", "~")).collect())
    }

    fn deep_properties(&mut self, part: &mut Part<'a>, entry: Entry<'a>) {
        let NodeKind::Map(entries) = &entry.1.kind else {
            return self.wrong(entry, "a map of JSON pointers to schemas");
        };
        for (pointer, node) in entries {
            let head = Node { kind: NodeKind::Null, span: pointer.span, tag: None, source: node.source.clone() };
            let schema = self.schema(node, false);
            let Some(steps) = self.pointer(&pointer.value, &head) else { continue };
            if steps.iter().any(|step| item_index(step).is_some_and(|index| index > FARTHEST_ITEM)) {
                self.error(&head, format!("`{}` points behind the {FARTHEST_ITEM}th item", pointer.value));
                continue;
            }
            let nested = steps.iter().rev().fold(schema, |inner, step| step_into(step, &inner));
            part.all_of.push(json!({"if": {"type": "object"}, "then": nested}));
        }
    }

    fn dynamic_defaults(&mut self, entry: Entry<'a>) {
        let NodeKind::Map(entries) = &entry.1.kind else {
            return self.wrong(entry, "a map of names to defaults");
        };
        for (_, node) in entries {
            let name = if let NodeKind::Map(_) = node.kind { node.get("func").unwrap_or(node) } else { node };
            let written = name.as_str();
            if !written.is_some_and(|name| DEFAULTS.contains(&name)) {
                let shown = written.map_or_else(|| name.kind_name().to_owned(), |name| format!("`{name}`"));
                let near = written.and_then(|name| nearest(name, DEFAULTS.iter().copied()));
                let problem = name.error(format!("there is no dynamic default {shown}")).suggest(near);
                self.report(problem.help(format!("known are {}", DEFAULTS.join(", "))), name.span);
            }
        }
    }

    /// Reads one or several names from `known`. Warns if no JSON value can be any of them.
    fn choices(&mut self, entry: Entry<'a>, known: &[&'static str], possible: &[&str]) -> Option<Vec<String>> {
        let (key, node) = entry;
        let items = if let NodeKind::List(items) = &node.kind { items.as_slice() } else { std::slice::from_ref(node) };
        let mut names = Vec::with_capacity(items.len());
        for item in items {
            match item.as_str() {
                Some(name) if known.contains(&name) => names.push(name.to_owned()),
                written => {
                    let shown = written.map_or_else(|| item.kind_name().to_owned(), |name| format!("`{name}`"));
                    let near = written.and_then(|name| nearest(name, known.iter().copied()));
                    let message = format!("`{}` must be one of {}, not {shown}", key.value, known.join(", "));
                    self.report(item.error(message).suggest(near), item.span);
                }
            }
        }
        if names.len() == items.len() && !names.iter().any(|name| possible.contains(&name.as_str())) {
            let problem = node.warning(format!("no JSON value can match this `{}`", key.value));
            self.report(problem, node.span);
        }
        Some(names)
    }

    fn select(&mut self, part: &mut Part<'a>, entry: Entry<'a>) {
        let (_, node) = entry;
        let Some(NodeKind::Map(cases)) = part.get("selectCases").map(|node| &node.kind) else {
            return self.error(node, "`select` needs a map of `selectCases` beside it".to_owned());
        };
        let translated: Vec<(&str, Value)> =
            cases.iter().map(|(name, node)| (name.value.as_str(), self.schema(node, part.in_place))).collect();
        let default = part.get("selectDefault").map(|node| self.schema(node, part.in_place));
        if !matches!(node.kind, NodeKind::Map(_)) {
            let Some(chosen) = case_name(&node.to_json()) else {
                return self.wrong(entry, "a string, a number, a boolean, null or a map with `$data`");
            };
            let case = translated.into_iter().find(|(name, _)| *name == chosen).map(|(_, schema)| schema);
            return part.all_of.extend(case.or(default));
        }
        let data = node.get("$data").and_then(Node::as_str);
        let Some(pointer) = data.and_then(|data| data.strip_prefix('0')).filter(|rest| rest.starts_with('/')) else {
            let problem = node.error("`select` can only look at what is in the same value");
            return self.report(problem.help("write `$data: 0/name` for the property `name`"), node.span);
        };
        let Some(steps) = self.pointer(pointer, node) else { return };
        let at = |leaf: Value| steps.iter().rev().fold(leaf, |inner, step| reach(step, &inner));
        let mut chosen_by_name = Vec::new();
        for (name, schema) in translated {
            let values = case_values(name);
            part.all_of.push(json!({"if": at(json!({"enum": values})), "then": schema}));
            chosen_by_name.extend(values);
        }
        part.all_of.push(json!({"if": at(json!({"type": ["object", "array"]})), "then": false}));
        if let Some(default) = default {
            let other = if chosen_by_name.is_empty() { json!({}) } else { json!({"not": {"enum": chosen_by_name}}) };
            part.all_of.push(json!({"if": at(other), "then": default}));
        }
    }
}

fn as_number(node: &Node) -> Option<f64> {
    if let NodeKind::Number(number) = &node.kind { number.as_f64() } else { None }
}

fn item_index(step: &str) -> Option<usize> {
    step.bytes().all(|b| b.is_ascii_digit()).then(|| step.parse().unwrap_or(usize::MAX)).filter(|_| !step.is_empty())
}

/// Returns a schema for the value at `step`, if there is one.
fn step_into(step: &str, inner: &Value) -> Value {
    match item_index(step) {
        Some(index) => {
            let mut items = vec![json!({}); index];
            items.push(inner.clone());
            json!({"type": ["object", "array"], "properties": {step: inner}, "prefixItems": items})
        }
        None => json!({"type": "object", "properties": {step: inner}}),
    }
}

/// Returns a schema that requires a value at `step` that matches `inner`.
fn reach(step: &str, inner: &Value) -> Value {
    let object = json!({"type": "object", "required": [step], "properties": {step: inner}});
    match item_index(step) {
        Some(index) if index <= FARTHEST_ITEM => {
            let mut items = vec![json!({}); index];
            items.push(inner.clone());
            let array = json!({"type": "array", "minItems": items.len(), "prefixItems": items});
            json!({"anyOf": [object, array]})
        }
        _ => object,
    }
}

/// Returns the key of a value in `selectCases`.
fn case_name(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Null | Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
        Value::Array(_) | Value::Object(_) => None,
    }
}

/// Returns all values whose case is called `name`.
fn case_values(name: &str) -> Vec<Value> {
    let mut values = vec![Value::String(name.to_owned())];
    if let Ok(value) = serde_json::from_str::<Value>(name)
        && case_name(&value).as_deref() == Some(name)
        && !value.is_string()
    {
        values.push(value);
    }
    values
}
