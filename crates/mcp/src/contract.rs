//! The contract of a server: its tools as clients and models see them, and what a change of them means.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use crate::client::ServerInfo;
use crate::rule::{Report, Tier};

/// Version of the file.
const VERSION: u64 = 1;
/// Keys of a tool that the contract contains.
const KEYS: [&str; 6] = ["name", "title", "description", "inputSchema", "outputSchema", "annotations"];

/// Returns the contract of a server with these tools, for a file.
pub fn contract(server: &ServerInfo, tools: &[Value]) -> Value {
    let mut sorted: Vec<Value> = tools.iter().map(of_tool).collect();
    sorted.sort_by(|one, other| one["name"].as_str().cmp(&other["name"].as_str()));
    let mut contract = json!({"version": VERSION, "server": {}});
    for (key, value) in [("name", &server.name), ("version", &server.version)] {
        if let Some(value) = value {
            contract["server"][key] = value.as_str().into();
        }
    }
    if let Some(instructions) = &server.instructions {
        contract["instructions"] = instructions.as_str().into();
    }
    contract["tools"] = sorted.into();
    contract
}

fn of_tool(tool: &Value) -> Value {
    let entries = KEYS.iter().filter_map(|key| Some(((*key).to_owned(), tool.get(key)?.clone())));
    Value::Object(entries.collect())
}

/// Compares a server's contract with an older one, and adds a rule for each class of change.
///
/// # Errors
/// Returns the reason if `old` is not a contract.
pub fn compare(old: &Value, new: &Value) -> Result<Report, String> {
    if old["version"] != VERSION {
        return Err(format!("it is not a contract of version {VERSION}"));
    }
    let Some(listed) = old["tools"].as_array() else { return Err("it has no list `tools`".to_owned()) };
    let (old_tools, new_tools) = (by_name(listed), by_name(new["tools"].as_array().map_or(&[][..], Vec::as_slice)));
    let mut changes = Changes::default();
    if old["instructions"] != new["instructions"] {
        changes.add(Class::Description, "the instructions of the server changed".to_owned());
    }
    if old["server"] != new["server"] {
        changes.add(Class::Server, format!("{} became {}", old["server"], new["server"]));
    }
    for name in old_tools.keys().filter(|name| !new_tools.contains_key(*name)) {
        changes.add(Class::ToolRemoved, format!("`{name}`"));
    }
    for (name, tool) in &new_tools {
        match old_tools.get(name) {
            None => changes.add(Class::ToolAdded, format!("`{name}`")),
            Some(before) => changes.of_tool(name, before, tool),
        }
    }
    let mut report = Report::default();
    for class in Class::ALL {
        let (tier, id, rule) = class.rule();
        report.none(tier, id, rule, changes.0.remove(&class).unwrap_or_default());
    }
    Ok(report)
}

fn by_name(tools: &[Value]) -> BTreeMap<&str, &Value> {
    tools.iter().map(|tool| (tool["name"].as_str().unwrap_or_default(), tool)).collect()
}

/// Class of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Class {
    ToolRemoved,
    ArgumentRequired,
    ArgumentRemoved,
    ArgumentNarrowed,
    ArgumentChanged,
    Output,
    Description,
    Annotations,
    ToolAdded,
    ArgumentAdded,
    ArgumentWidened,
    OutputExtended,
    Server,
}

impl Class {
    const ALL: [Self; 13] = [
        Self::ToolRemoved,
        Self::ArgumentRequired,
        Self::ArgumentRemoved,
        Self::ArgumentNarrowed,
        Self::ArgumentChanged,
        Self::Output,
        Self::Description,
        Self::Annotations,
        Self::ToolAdded,
        Self::ArgumentAdded,
        Self::ArgumentWidened,
        Self::OutputExtended,
        Self::Server,
    ];

    fn rule(self) -> (Tier, &'static str, &'static str) {
        use Tier::{Advisory, Mandatory};
        match self {
            Self::ToolRemoved => (Mandatory, "tool_removed", "each tool of the contract exists"),
            Self::ArgumentRequired => (Mandatory, "argument_required", "no further argument is required"),
            Self::ArgumentRemoved => (Mandatory, "argument_removed", "each argument of the contract exists"),
            Self::ArgumentNarrowed => (Mandatory, "argument_narrowed", "arguments take all values that they took"),
            Self::ArgumentChanged => (Mandatory, "argument_changed", "the schemas of arguments are the same"),
            Self::Output => (Mandatory, "output_changed", "results have the form of the contract"),
            Self::Description => (
                Mandatory,
                "description_changed",
                "descriptions are those that were approved; write the contract again to approve them",
            ),
            Self::Annotations => (Mandatory, "annotations_changed", "annotations are those that were approved"),
            Self::ToolAdded => (Advisory, "tool_added", "there are no new tools"),
            Self::ArgumentAdded => (Advisory, "argument_added", "there are no new arguments"),
            Self::ArgumentWidened => (Advisory, "argument_widened", "arguments take no further values"),
            Self::OutputExtended => (Advisory, "output_extended", "results have no further content"),
            Self::Server => (Advisory, "server_changed", "the server has the same name and version"),
        }
    }
}

#[derive(Default)]
struct Changes(BTreeMap<Class, Vec<String>>);

impl Changes {
    fn add(&mut self, class: Class, what: String) {
        self.0.entry(class).or_default().push(what);
    }

    fn of_tool(&mut self, name: &str, old: &Value, new: &Value) {
        for key in ["title", "description"] {
            if old[key] != new[key] {
                self.add(
                    Class::Description,
                    format!("`{name}`: {key} {} became {}", shown(&old[key]), shown(&new[key])),
                );
            }
        }
        if old["annotations"] != new["annotations"] {
            let what = format!("`{name}`: {} became {}", shown(&old["annotations"]), shown(&new["annotations"]));
            self.add(Class::Annotations, what);
        }
        self.input(&format!("`{name}`"), &old["inputSchema"], &new["inputSchema"]);
        match (old.get("outputSchema"), new.get("outputSchema")) {
            (Some(_), None) => self.add(Class::Output, format!("`{name}` has no output schema any more")),
            (None, Some(_)) => self.add(Class::OutputExtended, format!("`{name}` has an output schema now")),
            (Some(old), Some(new)) => self.output(&format!("`{name}`"), old, new),
            (None, None) => {}
        }
    }

    /// Compares schemas of arguments: clients that keep to the old one must also keep to the new one.
    fn input(&mut self, at: &str, old: &Value, new: &Value) {
        self.descriptions(at, old, new);
        let (had, has) = (required(old), required(new));
        for key in has.difference(&had) {
            self.add(Class::ArgumentRequired, format!("{at}.{key}"));
        }
        for key in had.difference(&has) {
            self.add(Class::ArgumentWidened, format!("{at}.{key} is optional now"));
        }
        let (old_properties, new_properties) = (properties(old), properties(new));
        for (key, before) in &old_properties {
            match new_properties.get(key) {
                None => self.add(Class::ArgumentRemoved, format!("{at}.{key}")),
                Some(after) => self.input(&format!("{at}.{key}"), before, after),
            }
        }
        for key in new_properties.keys().filter(|key| !old_properties.contains_key(*key) && !has.contains(key.as_str()))
        {
            self.add(Class::ArgumentAdded, format!("{at}.{key}"));
        }
        self.values(at, old, new, [Class::ArgumentNarrowed, Class::ArgumentWidened, Class::ArgumentChanged]);
        if let (Some(old), Some(new)) = (old.get("items"), new.get("items")) {
            self.input(&format!("{at}[]"), old, new);
        }
    }

    /// Compares schemas of results: what the new one allows must have been allowed by the old one.
    fn output(&mut self, at: &str, old: &Value, new: &Value) {
        let (had, has) = (required(old), required(new));
        for key in had.difference(&has) {
            self.add(Class::Output, format!("{at}.{key} may be missing now"));
        }
        let (old_properties, new_properties) = (properties(old), properties(new));
        for (key, before) in &old_properties {
            match new_properties.get(key) {
                None => self.add(Class::Output, format!("{at}.{key} is not in the schema any more")),
                Some(after) => self.output(&format!("{at}.{key}"), before, after),
            }
        }
        for key in new_properties.keys().filter(|key| !old_properties.contains_key(*key)) {
            self.add(Class::OutputExtended, format!("{at}.{key}"));
        }
        self.values(at, old, new, [Class::OutputExtended, Class::Output, Class::Output]);
        if let (Some(old), Some(new)) = (old.get("items"), new.get("items")) {
            self.output(&format!("{at}[]"), old, new);
        }
    }

    /// Compares the values that two schemas allow. `classes` are those of fewer, more and other values.
    fn values(&mut self, at: &str, old: &Value, new: &Value, classes: [Class; 3]) {
        let [fewer, more, other] = classes;
        for (key, set) in [("type", types as fn(&Value) -> Option<BTreeSet<String>>), ("enum", listed)] {
            let (Some(before), Some(after)) = (set(old), set(new)) else {
                match (set(old), set(new)) {
                    (None, Some(_)) => self.add(fewer, format!("{at}: `{key}` {} was added", shown(&new[key]))),
                    (Some(_), None) => self.add(more, format!("{at}: `{key}` was removed")),
                    _ => {}
                }
                continue;
            };
            let (lost, gained) = (before.difference(&after).count(), after.difference(&before).count());
            let what = || format!("{at}: `{key}` {} became {}", shown(&old[key]), shown(&new[key]));
            match (lost > 0, gained > 0) {
                (true, false) => self.add(fewer, what()),
                (false, true) => self.add(more, what()),
                (true, true) => self.add(if fewer == Class::ArgumentNarrowed { fewer } else { other }, what()),
                (false, false) => {}
            }
        }
        let lower = ["minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"];
        let upper = ["maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"];
        for key in lower.iter().chain(&upper) {
            let (before, after) = (old[*key].as_f64(), new[*key].as_f64());
            let is_fewer = match (before, after) {
                (Some(before), Some(after)) if before == after => continue,
                (Some(before), Some(after)) => (after > before) == lower.contains(key),
                (None, Some(_)) => true,
                (Some(_), None) => false,
                (None, None) => continue,
            };
            let what = format!("{at}: `{key}` {} became {}", shown(&old[*key]), shown(&new[*key]));
            self.add(if is_fewer { fewer } else { more }, what);
        }
        let closed = |schema: &Value| schema["additionalProperties"] == false;
        match (closed(old), closed(new)) {
            (false, true) => self.add(fewer, format!("{at}: further properties are not allowed any more")),
            (true, false) => self.add(more, format!("{at}: further properties are allowed now")),
            _ => {}
        }
        let (before, after) = (rest(old), rest(new));
        if before != after {
            self.add(other, format!("{at}: {} became {}", Value::Object(before), Value::Object(after)));
        }
    }

    fn descriptions(&mut self, at: &str, old: &Value, new: &Value) {
        for key in ["title", "description"] {
            if old[key] != new[key] {
                self.add(Class::Description, format!("{at}: {key} {} became {}", shown(&old[key]), shown(&new[key])));
            }
        }
    }
}

fn required(schema: &Value) -> BTreeSet<&str> {
    schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

fn properties(schema: &Value) -> BTreeMap<&String, &Value> {
    schema["properties"].as_object().into_iter().flatten().collect()
}

fn types(schema: &Value) -> Option<BTreeSet<String>> {
    let mut types: BTreeSet<String> = match schema.get("type")? {
        Value::String(kind) => BTreeSet::from([kind.clone()]),
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        _ => return None,
    };
    if types.contains("number") {
        types.insert("integer".to_owned());
    }
    Some(types)
}

fn listed(schema: &Value) -> Option<BTreeSet<String>> {
    Some(schema.get("enum")?.as_array()?.iter().map(ToString::to_string).collect())
}

/// Returns the keywords that are not compared one by one.
fn rest(schema: &Value) -> Map<String, Value> {
    const COMPARED: [&str; 22] = [
        "type",
        "enum",
        "required",
        "properties",
        "items",
        "minimum",
        "exclusiveMinimum",
        "minLength",
        "minItems",
        "minProperties",
        "maximum",
        "exclusiveMaximum",
        "maxLength",
        "maxItems",
        "maxProperties",
        "additionalProperties",
        "title",
        "description",
        "examples",
        "$schema",
        "$comment",
        "$id",
    ];
    let entries = schema.as_object().into_iter().flatten();
    let mut rest: Map<String, Value> = entries
        .filter(|(key, _)| !COMPARED.contains(&key.as_str()))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    if let Some(more) = schema.get("additionalProperties").filter(|more| more.is_object()) {
        rest.insert("additionalProperties".to_owned(), more.clone());
    }
    rest
}

fn shown(value: &Value) -> String {
    if value.is_null() { "nothing".to_owned() } else { model::text::shortened(&value.to_string(), 120) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tool() -> Value {
        json!({
            "name": "add",
            "description": "Adds.",
            "inputSchema": {
                "type": "object",
                "properties": {
                    "a": {"type": "number", "minimum": 0},
                    "unit": {"type": "string", "enum": ["m", "km"], "description": "Unit."},
                    "tags": {"type": "array", "items": {"type": "string", "maxLength": 9}},
                },
                "required": ["a"],
            },
            "outputSchema": {"type": "object", "properties": {"sum": {"type": "number"}}, "required": ["sum"]},
            "annotations": {"readOnlyHint": true},
        })
    }

    fn lock(tools: &[Value]) -> Value {
        contract(
            &ServerInfo { name: Some("s".to_owned()), version: Some("1".to_owned()), ..ServerInfo::default() },
            tools,
        )
    }

    fn change(pointer: &str, value: Value) -> Value {
        let mut tool = tool();
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        let parent = tool.pointer_mut(parent).unwrap();
        match value {
            Value::Null => drop(parent.as_object_mut().unwrap().remove(key)),
            value => parent[key] = value,
        }
        tool
    }

    #[test]
    fn each_change_has_its_class() {
        let a = "/inputSchema/properties/a";
        for (pointer, value, class) in [
            ("/description".to_owned(), json!("Adds!"), "description_changed"),
            ("/inputSchema/properties/unit/description".to_owned(), json!("U."), "description_changed"),
            ("/annotations/readOnlyHint".to_owned(), json!(false), "annotations_changed"),
            ("/inputSchema/required".to_owned(), json!(["a", "unit"]), "argument_required"),
            ("/inputSchema/required".to_owned(), json!([]), "argument_widened"),
            ("/inputSchema/properties/unit".to_owned(), Value::Null, "argument_removed"),
            ("/inputSchema/properties/more".to_owned(), json!({}), "argument_added"),
            ("/inputSchema/properties/unit/enum".to_owned(), json!(["m"]), "argument_narrowed"),
            ("/inputSchema/properties/unit/enum".to_owned(), json!(["m", "km", "mi"]), "argument_widened"),
            (format!("{a}/type"), json!("integer"), "argument_narrowed"),
            (format!("{a}/type"), json!(["number", "null"]), "argument_widened"),
            (format!("{a}/type"), json!("string"), "argument_narrowed"),
            (format!("{a}/minimum"), json!(1), "argument_narrowed"),
            (format!("{a}/minimum"), Value::Null, "argument_widened"),
            (format!("{a}/pattern"), json!("x"), "argument_changed"),
            ("/inputSchema/properties/tags/items/maxLength".to_owned(), json!(5), "argument_narrowed"),
            ("/inputSchema/additionalProperties".to_owned(), json!(false), "argument_narrowed"),
            ("/outputSchema/properties/sum/type".to_owned(), json!("string"), "output_changed"),
            ("/outputSchema/properties/sum/type".to_owned(), json!("integer"), "output_extended"),
            ("/outputSchema/required".to_owned(), json!([]), "output_changed"),
            ("/outputSchema/properties/sum".to_owned(), Value::Null, "output_changed"),
            ("/outputSchema".to_owned(), Value::Null, "output_changed"),
        ] {
            let changed = compare(&lock(&[tool()]), &lock(&[change(&pointer, value.clone())])).unwrap();
            assert_eq!(changed.broken(), [class], "{pointer} {value}: {}", changed.describe());
        }
    }

    #[test]
    fn tools_come_and_go_and_an_equal_contract_has_no_change() {
        assert_eq!(compare(&lock(&[tool()]), &lock(&[tool()])).unwrap().broken(), [""; 0]);
        assert_eq!(compare(&lock(&[tool()]), &lock(&[])).unwrap().broken(), ["tool_removed"]);
        assert_eq!(compare(&lock(&[]), &lock(&[tool()])).unwrap().broken(), ["tool_added"]);
        let mut other = lock(&[]);
        other["instructions"] = json!("Do.");
        other["server"]["version"] = json!("2");
        assert_eq!(compare(&lock(&[]), &other).unwrap().broken(), ["description_changed", "server_changed"]);
        assert!(compare(&json!({}), &other).is_err());
    }
}
