//! `patternProperties`. The patterns that apply depend on the property names in the value, so this part of the
//! document is generated for every value.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::{Patterns, Undecided};

/// `patternProperties`, with the other keywords of the schema that concern the same properties.
pub(super) struct PatternProperties {
    /// Name of the definition that it becomes.
    pub(super) definition: String,
    /// Schemas under `properties`.
    pub(super) properties: Map<String, Value>,
    /// Patterns, with the names of the definitions for the properties that they match.
    pub(super) patterns: Vec<(String, String)>,
    /// Other keywords.
    pub(super) rest: Map<String, Value>,
}

impl PatternProperties {
    /// Returns an equivalent schema without patterns for values whose properties have these `names`.
    pub(super) fn spelled_out(&self, names: &BTreeSet<String>, patterns: &dyn Patterns) -> Result<Value, Undecided> {
        let mut properties = self.properties.clone();
        let mut all_of = Vec::with_capacity(self.patterns.len());
        for (source, definition) in &self.patterns {
            let mut matched = Map::new();
            for name in names {
                if patterns.is_match(source, "u", name).map_err(Undecided)? {
                    matched.insert(name.clone(), json!({"$ref": format!("#/definitions/{definition}")}));
                    properties.entry(name.as_str()).or_insert_with(|| json!({}));
                }
            }
            if !matched.is_empty() {
                all_of.push(json!({"properties": matched}));
            }
        }
        let mut schema = self.rest.clone();
        schema.insert("properties".to_owned(), Value::Object(properties));
        if !all_of.is_empty() {
            schema.insert("allOf".to_owned(), Value::Array(all_of));
        }
        Ok(Value::Object(schema))
    }
}

/// Returns all property names in `value`, at any depth.
pub(super) fn names(value: &Value) -> BTreeSet<&str> {
    let mut found = BTreeSet::new();
    let mut waiting = vec![value];
    while let Some(value) = waiting.pop() {
        match value {
            Value::Array(items) => waiting.extend(items),
            Value::Object(map) => {
                found.extend(map.keys().map(String::as_str));
                waiting.extend(map.values());
            }
            _ => {}
        }
    }
    found
}
