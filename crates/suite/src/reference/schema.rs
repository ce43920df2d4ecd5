//! JSON Schemas for tables of fields, for editors.

use serde_json::{Map, Value, json};

use crate::fixture_settings::field::{AUTO_TRIALS, STRICT, STRICT_VALUE, flag_or};
use crate::table::{Field, Table};

/// Draft that editors support best.
pub(super) const DRAFT: &str = "http://json-schema.org/draft-07/schema#";

/// Format whose multi-word keys can be written in snake case and in camel case.
const EITHER_CASE: &str = "configuration";

/// Map that may have keys in addition to those in its table.
const OPEN: &str = "configuration agent";

/// Returns the schema of files of the format called `page`.
pub(super) fn document(page: &'static str) -> Map<String, Value> {
    let mut builder = Builder { page, definitions: Map::new() };
    let mut schema = Map::new();
    schema.insert("$schema".to_owned(), json!(DRAFT));
    schema.insert("title".to_owned(), json!(page));
    if let Some(table) = Table::all().find(|table| table.section == page) {
        schema.extend(builder.table(&table));
    }
    schema.insert("definitions".to_owned(), Value::Object(builder.definitions));
    schema
}

/// Returns the schema of a map in a fixtures file with the keys of these `sections`.
pub(super) fn map_of(sections: &[&str], is_open: bool) -> Value {
    let mut builder = Builder { page: "fixtures", definitions: Map::new() };
    let fields: Vec<Field> = sections.iter().flat_map(|section| Table::fields_of(section)).collect();
    json!({ "type": "object", "properties": builder.properties(&fields), "additionalProperties": is_open })
}

struct Builder {
    page: &'static str,
    definitions: Map<String, Value>,
}

impl Builder {
    fn table(&mut self, table: &Table) -> Map<String, Value> {
        let properties = self.properties(&table.fields);
        let required: Vec<_> = table.fields.iter().filter(|field| field.is_required).map(|field| field.key).collect();
        let mut schema = Map::new();
        schema.insert("description".to_owned(), json!(table.about()));
        schema.insert("type".to_owned(), json!("object"));
        schema.insert("properties".to_owned(), Value::Object(properties));
        if !required.is_empty() {
            schema.insert("required".to_owned(), json!(required));
        }
        schema.insert("additionalProperties".to_owned(), json!(table.section == OPEN));
        schema
    }

    fn properties(&mut self, fields: &[Field]) -> Map<String, Value> {
        let mut properties = Map::new();
        for field in fields {
            let mut schema = self.value(field.value).unwrap_or_default();
            schema["description"] = json!(field.about);
            if let Some(other) = other_spelling(field.key).filter(|_| self.page == EITHER_CASE) {
                properties.insert(other, schema.clone());
            }
            properties.insert(field.key.to_owned(), schema);
        }
        properties
    }

    /// Returns a reference to the map called `name`, and adds its definition.
    fn refer(&mut self, name: &str) -> Value {
        let table = Table::named(self.page, name);
        if let Some(table) = table.filter(|_| !self.definitions.contains_key(name)) {
            self.definitions.insert(name.to_owned(), Value::Null);
            let schema = self.table(&table);
            self.definitions.insert(name.to_owned(), Value::Object(schema));
        }
        json!({ "$ref": format!("#/definitions/{name}") })
    }

    /// Returns the schema of a value whose type is described as `written`, or `None` if there is no such type.
    fn value(&mut self, written: &str) -> Option<Value> {
        let text = || json!({ "type": "string", "minLength": 1 });
        let list = |items: Value| json!({ "type": "array", "items": items });
        let one_of = || written.split('`').skip(1).step_by(2).collect::<Vec<_>>();
        if let Some((kind, table)) = written.split_once(", see ") {
            let name = table.trim_matches('`');
            if (self.page, name) == ("configuration", "fixtures") {
                return Some(map_of(&["configuration fixtures"], false));
            }
            let map = self.refer(name);
            return Some(match kind {
                // This draft ignores keywords next to a reference, so the reference is wrapped.
                "map" => json!({ "allOf": [map] }),
                "number from 0 to 1, or map" | "a number or a map" => {
                    json!({ "anyOf": [{ "type": "number", "exclusiveMinimum": 0, "maximum": 1 }, map] })
                }
                "map of names to maps" => json!({ "type": "object", "additionalProperties": map }),
                "string, or map" => json!({ "anyOf": [text(), map] }),
                "`true`, `false` or map" | "true, false or a map" => json!({ "anyOf": [{ "type": "boolean" }, map] }),
                "list of maps" | "list of assertions" => list(map),
                "list of strings and maps" => list(json!({ "anyOf": [text(), map] })),
                _ => return None,
            });
        }
        Some(match written {
            "any value" | "anything" => json!({}),
            "string" | "a non-empty string" => text(),
            "string, can be empty" | "a string" => json!({ "type": "string" }),
            "string or number" => json!({ "anyOf": [text(), { "type": "number" }] }),
            "string or integer" => json!({ "anyOf": [text(), { "type": "integer" }] }),
            "list of strings" | "a list of strings" => list(text()),
            "string or list of strings" => json!({ "anyOf": [text(), list(text())] }),
            "string or list of maps" => json!({ "anyOf": [text(), list(json!({ "type": "object" }))] }),
            "map of strings" => json!({ "type": "object", "additionalProperties": { "type": "string" } }),
            "map of names to integers" => {
                json!({ "type": "object", "additionalProperties": { "type": "integer", "minimum": 1 } })
            }
            "a map" => json!({ "type": "object" }),
            "`true` or `false`" | "true or false" => json!({ "type": "boolean" }),
            "`true`, `false` or list of strings" | "true, false or a list of strings" => {
                json!({ "anyOf": [{ "type": "boolean" }, list(text())] })
            }
            "`true`, `false` or string" => json!({ "anyOf": [{ "type": "boolean" }, text()] }),
            "true, false or a reason" => json!({ "anyOf": [{ "type": "boolean" }, { "type": "string" }] }),
            "a map of positions to true or false, or a list of these" => json!({ "anyOf": [
                {
                    "type": "object",
                    "patternProperties": { "^[0-9]+$": { "type": "boolean" } },
                    "additionalProperties": false,
                },
                { "type": "array", "items": { "type": ["boolean", "null"] } },
            ] }),
            STRICT_VALUE => {
                json!({ "anyOf": [{ "type": "boolean" }, { "enum": STRICT }, list(json!({ "enum": STRICT }))] })
            }
            "true, false, a name, a description, or a list of names and descriptions" => {
                json!({ "type": ["boolean", "string", "object", "array"] })
            }
            "a map of names to references or a list of references" => json!({ "anyOf": [
                { "type": "object", "additionalProperties": { "type": "string" } }, list(text())
            ] }),
            "a JSON Schema" => json!({ "type": ["boolean", "object", "string"] }),
            "`text` or `json`" => json!({ "enum": one_of() }),
            "number above 0" | "a number above 0" => json!({ "type": "number", "exclusiveMinimum": 0 }),
            "a number of at least 0" => json!({ "type": "number", "minimum": 0 }),
            AUTO_TRIALS | "integer, `auto` or `auto:MAX`" => json!({ "anyOf": [
                { "type": "integer", "minimum": 1, "maximum": model::MOST_TRIALS },
                { "type": "string", "pattern": "^auto(:[1-9][0-9]*)?$" }
            ] }),
            "a whole number of at least 1" => json!({ "type": "integer", "minimum": 1 }),
            _ if written.starts_with("duration ") || written.starts_with("a duration") => json!({ "anyOf": [
                { "type": "integer", "minimum": 1 },
                { "type": "string", "pattern": "^\\s*[0-9.]+\\s*(ms|s|m|h)\\s*$" }
            ] }),
            _ if flag_or(written).is_some() => json!({ "enum": [true, false, flag_or(written)] }),
            _ if written.starts_with("one of ") => json!({ "enum": one_of() }),
            _ if written.starts_with("list of `") => list(json!({ "enum": one_of() })),
            _ => match (written.strip_prefix("integer, at least "), written.strip_prefix("number from ")) {
                (Some(least), _) => json!({ "type": "integer", "minimum": least.parse::<u64>().ok()? }),
                (_, Some(range)) => {
                    let (least, most) = range.split_once(" to ")?;
                    let (least, most): (f64, f64) = (least.parse().ok()?, most.parse().ok()?);
                    json!({ "type": "number", "minimum": least, "maximum": most })
                }
                _ => return None,
            },
        })
    }
}

/// Converts a key from snake case to camel case or back; `None` for a single word.
fn other_spelling(key: &str) -> Option<String> {
    let mut other = String::with_capacity(key.len() + 4);
    let mut letters = key.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '_' => other.extend(letters.next().map(|next| next.to_ascii_uppercase())),
            _ if letter.is_ascii_uppercase() => other.extend(['_', letter.to_ascii_lowercase()]),
            _ => other.push(letter),
        }
    }
    (other != key).then_some(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_type_in_the_tables_has_a_schema() {
        for table in Table::all().filter(|table| table.section != "evals assertion types") {
            let page = table.section.split(' ').next().unwrap_or_default();
            let mut builder = Builder { page, definitions: Map::new() };
            for field in &table.fields {
                assert!(builder.value(field.value).is_some(), "{}: {}", field.key, field.value);
            }
        }
    }
}
