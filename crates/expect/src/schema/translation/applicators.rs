//! Keywords of the standard that contain schemas.

use model::{Node, NodeKind};
use serde_json::{Map, Value, json};

use super::{Entry, Part, Translator};
use crate::schema::pattern_properties::PatternProperties;
use crate::schema::vocabulary::Dialect;

impl<'a> Translator<'a, '_> {
    /// Translates the keyword and returns true, if it is one of these.
    pub(super) fn applicator(&mut self, part: &mut Part<'a>, entry: Entry<'a>) -> bool {
        let (key, node) = entry;
        match key.value.as_str() {
            "definitions" | "$defs" => _ = self.map(entry, false),
            "properties" | "patternProperties" | "additionalProperties" => self.properties(part, entry),
            "propertyNames" | "contains" | "unevaluatedProperties" | "unevaluatedItems" => {
                let schema = self.schema(node, false);
                part.put(&key.value, schema, entry);
            }
            "not" | "if" => {
                let schema = self.schema(node, part.in_place);
                part.put(&key.value, schema, entry);
            }
            "then" | "else" => {
                let schema = self.schema(node, part.in_place);
                part.put(&key.value, schema, entry);
                if part.get("if").is_none() {
                    self.idle(entry, "if");
                }
            }
            "anyOf" | "oneOf" => {
                if let Some(schemas) = self.list(entry, part.in_place) {
                    part.put(&key.value, Value::Array(schemas), entry);
                }
            }
            "allOf" => {
                if let Some(mut schemas) = self.list(entry, part.in_place) {
                    part.all_of.append(&mut schemas);
                }
            }
            "dependentSchemas" => {
                if let Some(schemas) = self.map(entry, part.in_place) {
                    part.put("dependentSchemas", Value::Object(schemas), entry);
                }
            }
            "dependencies" => self.dependencies(part, entry),
            "prefixItems" => {
                if let Some(schemas) = self.list(entry, false) {
                    part.put("prefixItems", Value::Array(schemas), entry);
                }
            }
            "items" => self.items(part, entry),
            "additionalItems" => self.additional_items(part, entry),
            _ => return false,
        }
        true
    }

    /// Translates a map of names to schemas.
    pub(super) fn map(&mut self, entry: Entry<'a>, in_place: bool) -> Option<Map<String, Value>> {
        let NodeKind::Map(entries) = &entry.1.kind else {
            self.wrong(entry, "a map of names to schemas");
            return None;
        };
        Some(entries.iter().map(|(name, node)| (name.value.clone(), self.schema(node, in_place))).collect())
    }

    /// Translates a non-empty list of schemas.
    fn list(&mut self, entry: Entry<'a>, in_place: bool) -> Option<Vec<Value>> {
        match &entry.1.kind {
            NodeKind::List(items) if !items.is_empty() => {
                Some(items.iter().map(|item| self.schema(item, in_place)).collect())
            }
            NodeKind::List(_) => {
                self.error(entry.1, format!("`{}` must have an item", entry.0.value));
                None
            }
            _ => {
                self.wrong(entry, "a list of schemas");
                None
            }
        }
    }

    /// Translates the three keywords for properties. They are translated together if there are patterns.
    fn properties(&mut self, part: &mut Part<'a>, entry: Entry<'a>) {
        let (key, node) = entry;
        let patterns = part.get("patternProperties").filter(|node| has_entries(node));
        match (key.value.as_str(), patterns) {
            ("patternProperties", Some(_)) => self.pattern_properties(part, entry),
            ("patternProperties", None) => _ = self.map(entry, false),
            (_, Some(_)) => {}
            ("properties", None) => {
                if let Some(schemas) = self.map(entry, false) {
                    part.put("properties", Value::Object(schemas), entry);
                }
            }
            (_, None) => {
                let schema = self.schema(node, false);
                part.put("additionalProperties", schema, entry);
            }
        }
    }

    fn pattern_properties(&mut self, part: &mut Part<'a>, entry: Entry<'a>) {
        let NodeKind::Map(patterns) = &entry.1.kind else { return };
        let NodeKind::Map(beside) = &part.node.kind else { return };
        let mut inner = Part::of(part.node, false);
        for (key, node) in beside {
            match key.value.as_str() {
                "properties" => {
                    if let Some(schemas) = self.map((key, node), false) {
                        inner.put("properties", Value::Object(schemas), (key, node));
                    }
                }
                "additionalProperties" => {
                    let schema = self.schema(node, false);
                    inner.put("additionalProperties", schema, (key, node));
                }
                _ => {}
            }
        }
        let mut sources = Vec::with_capacity(patterns.len());
        for (source, node) in patterns {
            let head = Node { kind: NodeKind::Null, span: source.span, tag: None, source: node.source.clone() };
            let schema = self.schema(node, false);
            let valid = self.valid_pattern(&source.value, "u", &head);
            let definition = format!("pattern{}", self.patterned.len());
            self.patterned.insert(definition.clone(), schema);
            sources.extend(valid.map(|source| (source, definition)));
        }
        let properties = match inner.out.shift_remove("properties") {
            Some(Value::Object(properties)) => properties,
            _ => Map::new(),
        };
        inner.out.insert(super::ORIGIN.to_owned(), json!(self.origins.len()));
        self.origins.push(inner.origin);
        let definition = format!("properties{}", self.by_name.len());
        part.all_of.push(json!({"$ref": format!("#/definitions/{definition}")}));
        self.by_name.push(PatternProperties { definition, properties, patterns: sources, rest: inner.out });
    }

    fn dependencies(&mut self, part: &mut Part<'a>, entry: Entry<'a>) {
        let NodeKind::Map(entries) = &entry.1.kind else {
            return self.wrong(entry, "a map of names to schemas or lists of names");
        };
        let (mut names, mut schemas) = (Map::new(), Map::new());
        for (name, node) in entries {
            if matches!(node.kind, NodeKind::List(_)) {
                let needs = self.names((name, node), node).unwrap_or_default();
                names.insert(name.value.clone(), json!(needs));
            } else {
                let schema = self.schema(node, part.in_place);
                schemas.insert(name.value.clone(), schema);
            }
        }
        // A schema may have the newer keywords in addition to the older one.
        merge(part, "dependentRequired", names, entry);
        merge(part, "dependentSchemas", schemas, entry);
    }

    fn items(&mut self, part: &mut Part<'a>, entry: Entry<'a>) {
        let (_, node) = entry;
        if !matches!(node.kind, NodeKind::List(_)) {
            let schema = self.schema(node, false);
            return part.put("items", schema, entry);
        }
        if self.dialect == Dialect::Draft2020 {
            let problem = node.error("`items` must be a schema, not a list");
            return self.report(problem.help("in draft 2020-12 a list stands under `prefixItems`"), node.span);
        }
        if let Some(schemas) = self.list(entry, false) {
            part.put("prefixItems", Value::Array(schemas), entry);
        }
    }

    fn additional_items(&mut self, part: &mut Part<'a>, entry: Entry<'a>) {
        let schema = self.schema(entry.1, false);
        if part.get("items").is_some_and(|node| matches!(node.kind, NodeKind::List(_))) {
            part.put("items", schema, entry);
        } else {
            self.idle(entry, "items: […]");
        }
    }
}

fn has_entries(node: &Node) -> bool {
    matches!(&node.kind, NodeKind::Map(entries) if !entries.is_empty())
}

fn merge<'a>(part: &mut Part<'a>, name: &str, mut more: Map<String, Value>, entry: Entry<'a>) {
    if more.is_empty() {
        return;
    }
    match part.out.get_mut(name) {
        Some(Value::Object(there)) => there.append(&mut more),
        _ => part.put(name, Value::Object(more), entry),
    }
}
