//! Tools that are defined by data or by a call: `{ name, description, parameters }` in any language, `Tool(name=…,
//! inputSchema=…)`, `server.tool("name", …)` and `name: tool({ … })`.

use super::value::{Code, Entry, Link, Value, find};
use super::{Found, schema};
use crate::profile::Parameter;

/// Keys for the schema of a tool's parameters, in lower case without underscores.
const SCHEMAS: [&str; 10] = [
    "parameters",
    "inputschema",
    "paramsjsonschema",
    "argsschema",
    "parametersjsonschema",
    "schema",
    "inputs",
    "input",
    "args",
    "functionparameters",
];

/// Adds the tools whose definitions begin at any of the tokens.
pub(super) fn find_all(code: &Code<'_>, found: &mut Vec<Found>) {
    for at in 0..code.tokens.len() {
        match code.mark(at) {
            Some('{') => found.extend(of_map(code, at)),
            // Arrays with keys, as in PHP.
            Some('[') if code.text(at + 1).is_some() && code.mark(at + 2) == Some('=') => {
                found.extend(of_map(code, at));
            }
            _ => found.extend(of_call(code, at)),
        }
    }
}

/// Fields of a definition.
struct Fields<'e> {
    name: Option<&'e Entry>,
    description: Option<&'e Value>,
    parameters: Option<Vec<Parameter>>,
    has_schema: bool,
}

impl<'e> Fields<'e> {
    fn of(code: &Code<'_>, entries: &'e [Entry]) -> Self {
        let simple = |key: &str| key.to_ascii_lowercase().replace('_', "");
        let entry = |wanted: &str| entries.iter().find(|entry| simple(&entry.key) == wanted);
        let schema = SCHEMAS.iter().find_map(|key| entry(key));
        let name = ["name", "toolname", "functionname"].iter().find_map(|key| entry(key));
        Self {
            name: name.or_else(|| entry("id").filter(|_| entry("execute").is_some())),
            description: entry("description").map(|entry| &entry.value),
            parameters: schema.and_then(|entry| schema::parameters(code, &entry.value)),
            has_schema: schema.is_some(),
        }
    }

    fn finish(self, code: &Code<'_>, name: String, at: usize) -> Found {
        let description = self.description.and_then(|value| code.resolved(value.clone()).as_text().cloned());
        Found { name, at, description, parameters: self.parameters.unwrap_or_default() }
    }
}

/// Reads a map with a name and a schema.
fn of_map(code: &Code<'_>, at: usize) -> Option<Found> {
    // A map that defines a tool is small; a function's body must not be read as one.
    let first = at + 1;
    let is_map = code.word(first).is_some() || code.text(first).is_some() || code.mark(first) == Some('.');
    if !is_map {
        return None;
    }
    let (Value::Map(entries), _) = code.value(at) else { return None };
    of_entries(code, &entries)
}

fn of_entries(code: &Code<'_>, entries: &[Entry]) -> Option<Found> {
    let fields = Fields::of(code, entries);
    let written = fields.name?;
    let name = code.resolved(written.value.clone()).as_text()?.text.clone();
    fields.parameters.as_ref().filter(|_| is_name(&name))?;
    Some(fields.finish(code, name, written.at))
}

/// Reads a call that defines a tool.
fn of_call(code: &Code<'_>, at: usize) -> Option<Found> {
    code.word(at)?;
    // Only the first link of a chain counts.
    if at > 0 && matches!(code.mark(at - 1), Some('.')) {
        return None;
    }
    let (Value::Chain(links), _) = code.value(at) else { return None };
    let position = links.iter().position(|link| link.arguments.is_some())?;
    let link = &links[position];
    let arguments = link.arguments.as_deref()?;
    let is_python_class = arguments.iter().any(|entry| !entry.key.is_empty());
    if is_python_class && let Some(found) = of_entries(code, arguments) {
        return Some(found);
    }
    let is_about_tools = links[..=position].iter().any(|link| link.name.to_ascii_lowercase().contains("tool"));
    if !is_about_tools {
        return None;
    }
    named(code, link, position > 0, arguments).or_else(|| unnamed(code, link, arguments, at))
}

/// Reads `server.tool("name", "description", { … }, run)`.
fn named(code: &Code<'_>, link: &Link, is_method: bool, arguments: &[Entry]) -> Option<Found> {
    let first = arguments.first().filter(|entry| entry.key.is_empty())?;
    let name = first.value.as_text()?.text.clone();
    if !is_name(&name) {
        return None;
    }
    let mut description = None;
    let mut parameters: Option<Vec<Parameter>> = None;
    for argument in &arguments[1..] {
        match code.resolved(argument.value.clone()) {
            Value::Text(text) if description.is_none() => description = Some(text),
            Value::Map(entries) => {
                let fields = Fields::of(code, &entries);
                let is_options = fields.has_schema || fields.description.is_some();
                let text = fields.description.filter(|_| is_options).and_then(|text| text.as_text().cloned());
                description = description.or(text);
                let found = fields.parameters.or_else(|| schema::parameters(code, &argument.value));
                parameters = parameters.or(found);
            }
            Value::Chain(links) => with_option(code, &links, &mut description, &mut parameters, &argument.value),
            _ => {}
        }
    }
    let registers = ["tool", "registerTool", "addTool", "register_tool", "add_tool", "NewTool"];
    let is_tool = parameters.is_some() || (is_method && registers.contains(&link.name.as_str()) && arguments.len() > 1);
    is_tool.then(|| Found { name, at: first.at, description, parameters: parameters.unwrap_or_default() })
}

/// Reads one argument: a schema, or an option such as `mcp.WithString("city", mcp.Required())`.
fn with_option(
    code: &Code<'_>,
    links: &[Link],
    description: &mut Option<super::Literal>,
    parameters: &mut Option<Vec<Parameter>>,
    value: &Value,
) {
    let Some(option) = links.last().filter(|link| link.name.starts_with("With")) else {
        *parameters = parameters.take().or_else(|| schema::parameters(code, value));
        return;
    };
    let arguments = option.arguments.as_deref().unwrap_or_default();
    let text = arguments.first().and_then(|entry| entry.value.as_text());
    let kind = option.name.trim_start_matches("With").to_ascii_lowercase();
    match kind.as_str() {
        "description" => *description = description.take().or(text.cloned()),
        "string" | "number" | "boolean" | "integer" | "array" | "object" => {
            let calls = |name: &str| {
                let is_call = |entry: &&Entry| matches!(&entry.value, Value::Chain(links) if links.last().is_some_and(|link| link.name == name));
                arguments.iter().find(is_call)
            };
            let inner = calls("Description").and_then(|entry| match &entry.value {
                Value::Chain(links) => Some(links.last()?.arguments.as_deref()?.first()?.value.as_text()?.text.clone()),
                _ => None,
            });
            let name = text.map(|text| text.text.clone()).unwrap_or_default();
            let required = calls("Required").is_some();
            let parameter = Parameter { name, kind: Some(kind), required, description: inner };
            parameters.get_or_insert_default().push(parameter);
        }
        _ => {}
    }
}

/// Reads `name: tool({ description, parameters })` and `const name = tool({ … })`.
fn unnamed(code: &Code<'_>, link: &Link, arguments: &[Entry], at: usize) -> Option<Found> {
    let is_tool =
        ["tool", "createtool", "definetool", "dynamictool"].contains(&link.name.to_ascii_lowercase().as_str());
    let [Entry { value: Value::Map(entries), .. }] = arguments else { return None };
    if !is_tool || find(entries, "name").is_some() || find(entries, "id").is_some() {
        return None;
    }
    let fields = Fields::of(code, entries);
    if !fields.has_schema && fields.description.is_none() {
        return None;
    }
    let sign = at.checked_sub(1)?;
    if code.mark(sign) != Some(':') && !code.is_assignment(sign) {
        return None;
    }
    let before = sign.checked_sub(1)?;
    let name = code.word(before).map(str::to_owned).or_else(|| code.text(before).map(|text| text.text.clone()))?;
    Some(fields.finish(code, name, before))
}

/// Returns `true` if a string can be the name of a tool.
fn is_name(text: &str) -> bool {
    let is_part = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '-' | '.' | '/' | ':');
    !text.is_empty() && text.len() <= 128 && text.chars().all(is_part)
}
