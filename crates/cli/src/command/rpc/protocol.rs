//! The schema of the protocol, and what is generated from it: types for Python and TypeScript, and the tables of its page
//! in the documentation.

use serde_json::{Map, Value};

use super::options;

/// The schema, without the options.
const SCHEMA: &str = include_str!("protocol.json");

/// Returns the JSON Schema of the protocol.
pub fn schema() -> Value {
    let mut schema: Value = serde_json::from_str(SCHEMA).unwrap_or_default();
    schema["$defs"]["Options"] = options::schema();
    schema
}

/// Returns the names of the methods of the server.
pub fn methods() -> Vec<String> {
    let schema: Value = serde_json::from_str(SCHEMA).unwrap_or_default();
    let of_server = entries(&schema["methods"]).filter(|(_, method)| method["to"] == "server");
    of_server.map(|(name, _)| name.clone()).collect()
}

fn entries(map: &Value) -> impl Iterator<Item = (&String, &Value)> {
    map.as_object().into_iter().flatten()
}

fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value[key].as_str().unwrap_or_default()
}

/// Returns the definitions, ordered so that each follows those that it is built from.
fn definitions(schema: &Value) -> Vec<(String, Value)> {
    let all: Map<String, Value> = schema["$defs"].as_object().cloned().unwrap_or_default();
    let mut ordered: Vec<(String, Value)> = Vec::new();
    for (name, _) in &all {
        place(name, &all, &mut ordered);
    }
    ordered
}

fn place(name: &str, all: &Map<String, Value>, ordered: &mut Vec<(String, Value)>) {
    let Some(definition) = all.get(name).filter(|_| ordered.iter().all(|(placed, _)| placed != name)) else { return };
    for used in references(definition) {
        place(&used, all, ordered);
    }
    ordered.push((name.to_owned(), definition.clone()));
}

/// Returns the names of the definitions to which a schema refers.
fn references(schema: &Value) -> Vec<String> {
    match schema {
        Value::Object(map) => map
            .iter()
            .flat_map(|(key, value)| match value.as_str().and_then(|text| text.strip_prefix("#/$defs/")) {
                Some(name) if key == "$ref" => vec![name.to_owned()],
                _ => references(value),
            })
            .collect(),
        Value::Array(items) => items.iter().flat_map(references).collect(),
        _ => Vec::new(),
    }
}

/// A language for which types are generated.
struct Language {
    any: &'static str,
    text: &'static str,
    integer: &'static str,
    number: &'static str,
    boolean: &'static str,
    null: &'static str,
    list: fn(&str) -> String,
    map: fn(&str) -> String,
    one_of: fn(Vec<String>) -> String,
    literals: fn(&[Value]) -> String,
}

const PYTHON: Language = Language {
    any: "Any",
    text: "str",
    integer: "int",
    number: "float",
    boolean: "bool",
    null: "None",
    list: |item| format!("List[{item}]"),
    map: |value| format!("Dict[str, {value}]"),
    one_of: |types| format!("Union[{}]", types.join(", ")),
    literals: |values| format!("Literal[{}]", values.iter().map(Value::to_string).collect::<Vec<_>>().join(", ")),
};

const TYPESCRIPT: Language = Language {
    any: "unknown",
    text: "string",
    integer: "number",
    number: "number",
    boolean: "boolean",
    null: "null",
    list: |item| format!("Array<{item}>"),
    map: |value| format!("Record<string, {value}>"),
    one_of: |mut types| {
        types.dedup();
        types.join(" | ")
    },
    literals: |values| values.iter().map(Value::to_string).collect::<Vec<_>>().join(" | "),
};

impl Language {
    /// Returns the type of a schema.
    fn type_of(&self, schema: &Value) -> String {
        if let Some(name) = text(schema, "$ref").strip_prefix("#/$defs/") {
            return name.to_owned();
        }
        if let Some(values) = schema["enum"].as_array() {
            return (self.literals)(values);
        }
        if let Some(value) = schema.get("const") {
            return (self.literals)(std::slice::from_ref(value));
        }
        if let Some(types) = schema["anyOf"].as_array() {
            return (self.one_of)(types.iter().map(|schema| self.type_of(schema)).collect());
        }
        match text(schema, "type") {
            "string" => self.text.to_owned(),
            "integer" => self.integer.to_owned(),
            "number" => self.number.to_owned(),
            "boolean" => self.boolean.to_owned(),
            "null" => self.null.to_owned(),
            "array" => (self.list)(&self.type_of(&schema["items"])),
            "object" => {
                (self.map)(&schema.get("additionalProperties").map_or(self.any.to_owned(), |of| self.type_of(of)))
            }
            _ => self.any.to_owned(),
        }
    }
}

/// Returns `true` if the property must be present.
fn is_required(definition: &Value, name: &str) -> bool {
    definition["required"].as_array().is_some_and(|names| names.iter().any(|required| required == name))
}

/// Returns the types as a Python module.
pub fn python() -> String {
    let schema = schema();
    let mut module = "\
\"\"\"Types of the messages of ``trialrun rpc``. Generated from its schema (``trialrun schema rpc``).\"\"\"

from typing import Any, Dict, List, Literal, TypedDict, Union

"
    .to_owned();
    for (name, definition) in definitions(&schema) {
        let Some(properties) = definition["properties"].as_object() else {
            module.push_str(&format!("\n{name} = {}\n\n", PYTHON.type_of(&definition)));
            continue;
        };
        let bases: Vec<String> = references(&definition["allOf"]);
        let base = bases.first().map_or("TypedDict", String::as_str);
        let (required, optional): (Vec<_>, Vec<_>) =
            properties.iter().partition(|(property, _)| is_required(&definition, property));
        // `NotRequired` needs Python 3.11.
        let parent = match (required.is_empty(), optional.is_empty()) {
            (false, false) => {
                module.push_str(&class(&format!("_{name}"), base, "", &required));
                format!("_{name}")
            }
            _ => base.to_owned(),
        };
        let (total, fields) = if optional.is_empty() { ("", &required) } else { (", total=False", &optional) };
        module.push_str(&class(&name, &format!("{parent}{total}"), text(&definition, "description"), fields));
    }
    let option_names: Vec<String> =
        entries(&schema["$defs"]["Options"]["properties"]).map(|(name, _)| format!("    \"{name}\",\n")).collect();
    module.push_str(&format!("\nOPTIONS = frozenset([\n{}])\n\n", option_names.concat()));
    module.push_str(&format!("PROTOCOL = {}\n", super::PROTOCOL));
    module
}

fn class(name: &str, bases: &str, description: &str, fields: &[(&String, &Value)]) -> String {
    let mut class = format!("\nclass {name}({bases}):\n");
    if !description.is_empty() {
        class.push_str(&format!("    \"\"\"{description}\"\"\"\n\n"));
    }
    for (field, schema) in fields {
        class.push_str(&format!("    {field}: {}\n", PYTHON.type_of(schema)));
        let description = text(schema, "description");
        if !description.is_empty() {
            class.push_str(&format!("    \"\"\"{description}\"\"\"\n"));
        }
    }
    class + "\n"
}

/// Returns the types as TypeScript declarations.
pub fn typescript() -> String {
    let schema = schema();
    let mut module =
        "// Types of the messages of `trialrun rpc`. Generated from its schema (`trialrun schema rpc`).\n".to_owned();
    let comment = |indent: &str, schema: &Value| match text(schema, "description") {
        "" => String::new(),
        description => format!("{indent}/** {description} */\n"),
    };
    for (name, definition) in definitions(&schema) {
        module.push('\n');
        module.push_str(&comment("", &definition));
        let Some(properties) = definition["properties"].as_object() else {
            module.push_str(&format!("export type {name} = {};\n", TYPESCRIPT.type_of(&definition)));
            continue;
        };
        let bases: Vec<String> = references(&definition["allOf"]);
        let base = bases.first().map_or_else(String::new, |base| format!(" extends {base}"));
        module.push_str(&format!("export interface {name}{base} {{\n"));
        for (property, schema) in properties {
            let mark = if is_required(&definition, property) { "" } else { "?" };
            module.push_str(&comment("  ", schema));
            module.push_str(&format!("  {property}{mark}: {};\n", TYPESCRIPT.type_of(schema)));
        }
        module.push_str("}\n");
    }
    module.push_str("\n/** Methods, with their parameters and results. */\nexport interface Methods {\n");
    for (name, method) in entries(&schema["methods"]) {
        module.push_str(&comment("  ", method));
        let result = method["result"].as_str().unwrap_or("void");
        module.push_str(&format!("  \"{name}\": {{ params: {}; result: {result} }};\n", text(method, "params")));
    }
    module.push_str("}\n");
    module
}

/// Returns the generated sections of the documentation.
pub fn reference() -> Vec<(String, String)> {
    let schema = schema();
    let methods = |to: &str| {
        let rows = entries(&schema["methods"]).filter(|(_, method)| method["to"] == to).map(|(name, method)| {
            let result = method["result"].as_str().map_or("none", |result| result);
            format!("| `{name}` | `{}` | `{result}` | {} |\n", text(method, "params"), text(method, "description"))
        });
        format!("| method | parameters | result | |\n| --- | --- | --- | --- |\n{}", rows.collect::<String>())
    };
    let mut types = String::new();
    for (name, definition) in definitions(&schema).into_iter().filter(|(name, _)| name != "Options") {
        let description = text(&definition, "description");
        types.push_str(&format!("### `{name}`\n\n"));
        if !description.is_empty() {
            types.push_str(&format!("{description}\n\n"));
        }
        for base in references(&definition["allOf"]) {
            types.push_str(&format!("It has the fields of `{base}`, and these:\n\n"));
        }
        let Some(properties) = definition["properties"].as_object() else { continue };
        types.push_str("| field | type | |\n| --- | --- | --- |\n");
        for (property, schema) in properties {
            let shown = TYPESCRIPT.type_of(schema).replace(" | ", "` or `");
            let required = if is_required(&definition, property) { " (required)" } else { "" };
            types.push_str(&format!("| `{property}` | `{shown}`{required} | {} |\n", text(schema, "description")));
        }
        types.push('\n');
    }
    let options: Vec<String> =
        entries(&schema["$defs"]["Options"]["properties"]).map(|(name, _)| format!("`{name}`")).collect();
    let options: Vec<String> = options.chunks(6).map(|names| names.join(", ")).collect();
    let sections = [
        ("rpc methods", methods("server")),
        ("rpc callbacks", methods("client")),
        ("rpc types", types.trim_end().to_owned()),
        ("rpc options", options.join(",\n")),
    ];
    sections.map(|(name, text)| (name.to_owned(), text)).into()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// Compares a generated file with the one in the repository. The variable for expected files rewrites it.
    fn is_current(file: &str, generated: &str) {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(file);
        if std::env::var_os("TRIALRUN_UPDATE_EXPECTED").is_some() {
            std::fs::write(&path, generated).unwrap();
        }
        assert_eq!(std::fs::read_to_string(&path).unwrap(), generated, "{file}");
    }

    #[test]
    fn the_types_for_other_languages_are_current() {
        is_current("packaging/python/src/trialrun/_protocol.py", &python());
        is_current("npm/trialrun/rpc.d.ts", &typescript());
    }

    #[test]
    fn every_reference_has_a_definition() {
        let schema = schema();
        for name in references(&schema) {
            assert!(schema["$defs"][&name].is_object(), "{name}");
        }
        for (name, method) in entries(&schema["methods"]) {
            for key in ["params", "result"].into_iter().filter(|key| method.get(key).is_some()) {
                assert!(schema["$defs"][text(method, key)].is_object(), "{name}");
            }
        }
    }
}
