//! Tools of Python: decorated functions, functions in a list of tools, and classes.

use std::collections::BTreeSet;

use super::token::TokenKind;
use super::value::{Code, Value, find};
use super::{Found, schema};
use crate::profile::Parameter;

/// Last parts of decorators that make a function a tool.
const DECORATORS: [&str; 10] = [
    "tool",
    "tools",
    "tool_plain",
    "function_tool",
    "kernel_function",
    "beta_tool",
    "ai_callable",
    "register_tool",
    "register_for_llm",
    "llm_tool",
];

/// Parameters that a framework fills in.
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

/// Arguments that hold a list of functions.
const LISTS: [&str; 2] = ["tools", "functions"];

/// Adds the tools of a Python file. `listed` are the functions that are in a list of tools somewhere.
pub(super) fn find_all(code: &Code<'_>, listed: &BTreeSet<String>, found: &mut Vec<Found>) {
    for at in 0..code.tokens.len() {
        if code.mark(at) == Some('@') && code.tokens[at].indent.is_some() {
            found.extend(decorated(code, at));
        } else if code.word(at) == Some("def") && code.word(at + 1).is_some_and(|name| listed.contains(name)) {
            // A decorated function is found already.
            let is_known = found.iter().any(|known| known.at == at + 1);
            found.extend(function(code, at).filter(|_| !is_known));
        } else if code.word(at) == Some("class") {
            found.extend(class(code, at));
        }
    }
}

/// Adds the names in `tools=[…]` and `functions=[…]`.
pub(super) fn listed_functions(code: &Code<'_>, names: &mut BTreeSet<String>) {
    for at in 0..code.tokens.len() {
        let is_list = code.word(at).is_some_and(|word| LISTS.contains(&word))
            || code.text(at).is_some_and(|text| LISTS.contains(&text.text.as_str()));
        if !is_list || !(code.is_assignment(at + 1) || code.mark(at + 1) == Some(':')) {
            continue;
        }
        let Value::List(items) = code.resolved(code.value(at + 2).0) else { continue };
        for item in items {
            if let Value::Chain(links) = item {
                // `FunctionTool(get_order)` wraps the function.
                let wrapped = links.last().and_then(|link| link.arguments.as_deref()?.first());
                let name = match wrapped.map(|entry| &entry.value) {
                    Some(Value::Chain(inner)) => inner.last().map(|link| link.name.clone()),
                    _ => links.last().map(|link| link.name.clone()),
                };
                names.extend(name);
            }
        }
    }
}

/// Reads a decorated function. Further decorators may follow.
fn decorated(code: &Code<'_>, at: usize) -> Option<Found> {
    let mut last = at + 1;
    while code.mark(last + 1) == Some('.') && code.word(last + 2).is_some() {
        last += 2;
    }
    let name = code.word(last)?;
    if !DECORATORS.contains(&name) {
        return None;
    }
    let (_, arguments) = match code.value(last) {
        (Value::Chain(links), end) => {
            (end, links.into_iter().next().and_then(|link| link.arguments).unwrap_or_default())
        }
        (_, end) => (end, Vec::new()),
    };
    let mut next = if code.mark(last + 1) == Some('(') { code.after(last + 1) } else { last + 1 };
    while next < code.tokens.len() && !matches!(code.word(next), Some("def" | "class")) {
        // Only decorators and `async` may stand between.
        let is_decorator = code.mark(next) == Some('@');
        if !is_decorator && code.word(next) != Some("async") {
            return None;
        }
        next += 1;
        while is_decorator && next < code.tokens.len() && code.tokens[next].indent.is_none() {
            next = code.after(next);
        }
    }
    let mut tool = function(code, next)?;
    let text = |key: &str| find(&arguments, key).and_then(|value| code.resolved(value.clone()).as_text().cloned());
    let positional = arguments.first().filter(|entry| entry.key.is_empty()).and_then(|entry| entry.value.as_text());
    let name = ["name", "name_override", "name_or_callable"].iter().find_map(|key| text(key));
    let name = name.or_else(|| positional.filter(|text| !text.text.contains(char::is_whitespace)).cloned());
    if let Some(name) = name {
        tool.name = name.text;
    }
    let described = ["description", "description_override"].iter().find_map(|key| text(key));
    tool.description = described.or(tool.description);
    if let Some(parameters) = find(&arguments, "args_schema").and_then(|schema| schema::parameters(code, schema)) {
        tool.parameters = parameters;
    }
    Some(tool)
}

/// Reads the function whose `def` is at `at`.
fn function(code: &Code<'_>, at: usize) -> Option<Found> {
    let name = code.word(at).filter(|word| *word == "def").and_then(|_| code.word(at + 1))?;
    let open = (at + 2..at + 40).find(|at| code.mark(*at) == Some('('))?;
    let parameters = parameters(code, open);
    let close = code.tokens[open].partner;
    let body = (close..code.tokens.len()).find(|at| code.mark(*at) == Some(':') || code.tokens[*at].indent.is_some());
    let docstring = body.and_then(|at| code.text(at + 1));
    let description = docstring.map(|text| summary(&text.dedented()));
    Some(Found { name: name.to_owned(), at: at + 1, description, parameters })
}

/// Returns the part of a docstring before the sections about arguments and results.
fn summary(docstring: &super::Literal) -> super::Literal {
    let is_section = |line: &str| {
        let line = line.trim();
        line.starts_with(':')
            || ["Args:", "Arguments:", "Parameters", "Returns:", "Returns", "Raises:", "Example:", "Examples:"]
                .contains(&line)
    };
    let mut summary = docstring.clone();
    let mut end = 0;
    for line in docstring.text.split_inclusive('\n') {
        if is_section(line) {
            break;
        }
        end += line.len();
    }
    summary.text.truncate(end);
    summary.text.truncate(summary.text.trim_end().len());
    summary
}

/// Returns the parameters between the brackets that open at `open`, without those of the framework.
fn parameters(code: &Code<'_>, open: usize) -> Vec<Parameter> {
    let end = code.tokens[open].partner;
    let mut found = Vec::new();
    let mut at = open + 1;
    while at < end {
        let stop = code.end_of_value(at).min(end);
        let is_first = found.is_empty() && at == open + 1;
        if let Some(name) = code.word(at)
            && !(is_first && ["self", "cls"].contains(&name))
        {
            found.extend(parameter(code, name, at, stop));
        }
        at = stop + 1;
    }
    found
}

fn parameter(code: &Code<'_>, name: &str, at: usize, stop: usize) -> Option<Parameter> {
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

/// Returns `true` if a value after `=` is no default, such as `...` and `Field(description="…")`, and the description
/// in it.
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

/// Returns the type of JSON Schema for the words of an annotation.
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
        // What follows is inside the brackets of this type.
        if matches!(kind, "array" | "object") || *word == "Literal" {
            break;
        }
    }
    kinds.dedup();
    (!kinds.is_empty()).then(|| kinds.join(" or "))
}

/// Reads a class with a name and a schema, such as a `BaseTool` of LangChain.
fn class(code: &Code<'_>, at: usize) -> Option<Found> {
    let fields = fields(code, at)?;
    let value = |name: &str| {
        let (_, _, default) = fields.iter().find(|(field, ..)| *field == name)?;
        Some(code.resolved(code.value((*default)? + 1).0))
    };
    let text = |name: &str| value(name).and_then(|value| value.as_text().cloned());
    let schemas = ["args_schema", "inputs", "input_schema", "parameters"];
    let parameters = schemas.iter().find_map(|name| schema::parameters(code, &value(name)?))?;
    let (written, ..) = fields.iter().find(|(field, ..)| *field == "name")?;
    let at = (at..code.tokens.len()).find(|at| code.word(*at) == Some(written))?;
    Some(Found { name: text("name")?.text, at, description: text("description"), parameters })
}

/// Returns the fields of the class that is called `name`, as parameters.
pub(super) fn class_fields(code: &Code<'_>, name: &str) -> Option<Vec<Parameter>> {
    let is_class = |at: &usize| code.word(*at) == Some("class") && code.word(*at + 1) == Some(name);
    let at = (0..code.tokens.len()).find(is_class)?;
    let fields = fields(code, at)?;
    let typed = fields.into_iter().filter(|(name, at, _)| code.mark(at + 1) == Some(':') && *name != "model_config");
    Some(typed.filter_map(|(name, at, _)| parameter(code, name, at, end_of_line(code, at))).collect())
}

/// Name of a field, the index of its name, and that of the sign before its value.
type Field<'t> = (&'t str, usize, Option<usize>);

/// Returns the fields of the class at `at`.
fn fields<'t>(code: &Code<'t>, at: usize) -> Option<Vec<Field<'t>>> {
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

/// Returns the index of the first token on the next line, without the lines inside brackets.
fn end_of_line(code: &Code<'_>, at: usize) -> usize {
    let mut at = code.after(at);
    while at < code.tokens.len() && code.tokens[at].indent.is_none() {
        at = code.after(at);
    }
    at
}
