//! Tools in Python: decorated functions, functions in a list of tools, and classes.

use std::collections::BTreeSet;

use super::python_fields::{fields, parameter};
use super::value::{Code, Value, find};
use super::{Found, schema};
use crate::profile::Parameter;

/// Last parts of the names of decorators that make a function a tool.
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

/// Arguments that contain a list of functions.
const LISTS: [&str; 2] = ["tools", "functions"];

/// Adds the tools in a Python file. `listed` are the functions that appear in a list of tools in any file.
pub(super) fn find_all(code: &Code<'_>, listed: &BTreeSet<String>, found: &mut Vec<Found>) {
    for at in 0..code.tokens.len() {
        if code.mark(at) == Some('@') && code.tokens[at].indent.is_some() {
            found.extend(decorated(code, at));
        } else if code.word(at) == Some("def") && code.word(at + 1).is_some_and(|name| listed.contains(name)) {
            // A decorated function has already been found.
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

/// Reads a decorated function. More decorators may follow.
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
        // Only decorators and `async` may come in between.
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

/// Returns the part of a docstring before its sections about arguments and results.
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

/// Returns the parameters in the brackets that open at `open`, except those that the framework supplies.
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

/// Reads a class with a name and a schema, such as a LangChain `BaseTool`.
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
