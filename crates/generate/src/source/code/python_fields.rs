//! Parameters of functions and fields of classes in Python, with their types and defaults.

use super::token::TokenKind;
use super::value::{Code, Value, find};
use crate::profile::Parameter;

/// Parameters that a framework supplies.
const CONTEXTS: [&str; 8] = [
    "RunContext",
    "RunContextWrapper",
    "ToolContext",
    "Context",
    "InjectedState",
    "InjectedToolArg",
    "InjectedStore",
    "ToolRuntime",
];

/// Returns the fields of the class that is called `name`, as parameters.
pub(super) fn class_fields(code: &Code<'_>, name: &str) -> Option<Vec<Parameter>> {
    let is_class = |at: &usize| code.word(*at) == Some("class") && code.word(*at + 1) == Some(name);
    let at = (0..code.tokens.len()).find(is_class)?;
    let fields = fields(code, at)?;
    let typed = fields.into_iter().filter(|(name, at, _)| code.mark(at + 1) == Some(':') && *name != "model_config");
    Some(typed.filter_map(|(name, at, _)| parameter(code, name, at, end_of_line(code, at))).collect())
}

/// Name of a field, the index of the name, and the index of the sign before its value.
pub(super) type Field<'t> = (&'t str, usize, Option<usize>);

/// Returns the fields of the class at `at`.
pub(super) fn fields<'t>(code: &Code<'t>, at: usize) -> Option<Vec<Field<'t>>> {
    let indent = code.tokens[at].indent?;
    let mut body: Option<usize> = None;
    let mut found = Vec::new();
    let mut next = at + 1;
    while next < code.tokens.len() {
        let token = &code.tokens[next];
        if let Some(of_line) = token.indent {
            if of_line <= indent {
                break;
            }
            if *body.get_or_insert(of_line) == of_line
                && let TokenKind::Word(name) = token.kind
                && (code.mark(next + 1) == Some(':') || code.is_assignment(next + 1))
            {
                let stop = end_of_line(code, next);
                found.push((name, next, (next + 1..stop).find(|at| code.is_assignment(*at))));
            }
        }
        next = code.after(next);
    }
    Some(found)
}

/// Returns the index of the first token on the next line, treating lines inside brackets as one.
fn end_of_line(code: &Code<'_>, at: usize) -> usize {
    let mut at = code.after(at);
    while at < code.tokens.len() && code.tokens[at].indent.is_none() {
        at = code.after(at);
    }
    at
}

/// Returns the parameter or field that begins at `at` and ends before `stop`; `None` if the framework supplies it.
pub(super) fn parameter(code: &Code<'_>, name: &str, at: usize, stop: usize) -> Option<Parameter> {
    let default = (at + 1..stop).find(|at| code.is_assignment(*at));
    let is_typed = code.mark(at + 1) == Some(':');
    let annotation: Vec<usize> = if is_typed { (at + 2..default.unwrap_or(stop)).collect() } else { Vec::new() };
    let words: Vec<&str> = annotation.iter().filter_map(|at| code.word(*at)).collect();
    if words.iter().any(|word| CONTEXTS.contains(word)) {
        return None;
    }
    let description = match words.first() {
        Some(&"Annotated") => annotation.iter().rev().find_map(|at| Some(code.text(*at)?.text.clone())),
        _ => None,
    };
    let field = default.map(|at| code.value(at + 1).0);
    let (required, of_field) = match &field {
        None => (true, None),
        Some(value) => default_of(value),
    };
    let kind = kind(&words);
    Some(Parameter { name: name.to_owned(), kind, required, description: description.or(of_field) })
}

/// Returns `true` if the value after `=` is not a default, such as `...` and `Field(description="…")`, and the
/// description in it.
fn default_of(value: &Value) -> (bool, Option<String>) {
    let Value::Chain(links) = value else { return (false, None) };
    let Some(link) = links.last().filter(|link| ["Field", "Body", "Param", "field"].contains(&link.name.as_str()))
    else {
        return (false, None);
    };
    let arguments = link.arguments.as_deref().unwrap_or_default();
    let has_default = arguments.iter().any(|entry| match entry.key.as_str() {
        "default" | "default_factory" => true,
        // `Field(...)` has no default.
        "" => !matches!(entry.value, Value::Other),
        _ => false,
    });
    let description = find(arguments, "description").and_then(|text| Some(text.as_text()?.text.clone()));
    (!has_default, description)
}

/// Returns the JSON Schema type for the words in a type annotation.
fn kind(words: &[&str]) -> Option<String> {
    let mut kinds: Vec<&str> = Vec::new();
    for word in words {
        let kind = match *word {
            "Annotated" | "Optional" | "Union" | "None" | "typing" | "t" => continue,
            "str" | "Literal" | "EmailStr" | "date" | "datetime" | "UUID" | "LiteralString" => "string",
            "int" => "integer",
            "float" | "Decimal" => "number",
            "bool" => "boolean",
            "list" | "List" | "Sequence" | "tuple" | "Tuple" | "set" | "Set" | "Iterable" => "array",
            "dict" | "Dict" | "Mapping" => "object",
            "Any" => return None,
            word if word.starts_with(char::is_uppercase) => "object",
            _ => continue,
        };
        if kinds.is_empty() || words.first().is_none_or(|first| *first == "Union") || words.contains(&"None") {
            kinds.push(kind);
        }
        // The rest is inside the brackets of this type.
        if matches!(kind, "array" | "object") || *word == "Literal" {
            break;
        }
    }
    kinds.dedup();
    (!kinds.is_empty()).then(|| kinds.join(" or "))
}
