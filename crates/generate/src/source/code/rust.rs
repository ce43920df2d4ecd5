//! Tools in Rust: functions and structs with an attribute such as `#[tool(description = "…")]`.

use super::token::TokenKind;
use super::value::{Code, Value, find};
use super::{Found, Literal};
use crate::profile::Parameter;

/// Last parts of the names of attributes that make a function or a struct a tool.
const ATTRIBUTES: [&str; 5] = ["tool", "rig_tool", "mcp_tool", "tool_fn", "llm_tool"];

/// Types that wrap the parameters.
const WRAPPERS: [&str; 3] = ["Parameters", "Json", "Args"];

/// Parameters that a framework supplies.
const CONTEXTS: [&str; 6] = ["RequestContext", "Context", "ToolCallContext", "Peer", "Extension", "CancellationToken"];

/// Adds the tools in a Rust file.
pub(super) fn find_all(code: &Code<'_>, found: &mut Vec<Found>) {
    for at in 0..code.tokens.len() {
        if code.mark(at) == Some('#') && code.mark(at + 1) == Some('[') {
            found.extend(attributed(code, at));
        }
    }
}

/// Returns `true` if a module that exists only in tests begins at `at`.
pub(super) fn is_test(code: &Code<'_>, at: usize) -> bool {
    let written = ["cfg", "test", "mod"].map(Some);
    code.mark(at) == Some('#') && [code.word(at + 2), code.word(at + 4), code.word(at + 7)] == written
}

fn attributed(code: &Code<'_>, at: usize) -> Option<Found> {
    let end = code.tokens[at + 1].partner;
    let mut last = at + 2;
    while code.mark(last + 1) == Some(':') && code.mark(last + 2) == Some(':') {
        last += 3;
    }
    if last >= end || !ATTRIBUTES.contains(&code.word(last)?) {
        return None;
    }
    let arguments = match code.value(last).0 {
        Value::Chain(links) => links.into_iter().next().and_then(|link| link.arguments).unwrap_or_default(),
        _ => Vec::new(),
    };
    let item = item(code, end + 1)?;
    let (name, parameters) = match code.word(item)? {
        "fn" => {
            let open = (item + 2..item + 60).find(|at| code.mark(*at) == Some('('))?;
            (code.word(item + 1)?, function_parameters(code, open))
        }
        "struct" => (code.word(item + 1)?, struct_fields(code, code.word(item + 1)?).unwrap_or_default()),
        _ => return None,
    };
    let text = |key: &str| find(&arguments, key).and_then(|value| code.resolved(value.clone()).as_text().cloned());
    let documented = docs(code, at).or_else(|| docs_between(code, end + 1, item));
    Some(Found {
        name: text("name").map_or_else(|| name.to_owned(), |name| name.text),
        at: item + 1,
        description: text("description").or(documented),
        parameters,
    })
}

/// Returns the index of `fn` or `struct` after attributes, documentation and modifiers.
fn item(code: &Code<'_>, at: usize) -> Option<usize> {
    let mut at = at;
    loop {
        match &code.tokens.get(at)?.kind {
            TokenKind::Word("fn" | "struct") => return Some(at),
            TokenKind::Word("pub" | "async" | "const" | "unsafe" | "extern")
            | TokenKind::Doc(_)
            | TokenKind::Text(_) => at += 1,
            TokenKind::Mark('#' | '(' | '[') => at = code.after(at),
            _ => return None,
        }
    }
}

/// Returns the documentation right before `at`.
fn docs(code: &Code<'_>, at: usize) -> Option<Literal> {
    let is_doc = |at: &usize| matches!(code.tokens[*at].kind, TokenKind::Doc(_));
    let start = (0..at).rev().take_while(is_doc).last()?;
    docs_between(code, start, at)
}

fn docs_between(code: &Code<'_>, start: usize, end: usize) -> Option<Literal> {
    let mut text = Literal::default();
    for token in &code.tokens[start..end] {
        if let TokenKind::Doc(doc) = token.kind {
            text.append(&Literal::raw(doc, token.line), "\n");
        }
    }
    (!text.text.is_empty()).then_some(text)
}

fn function_parameters(code: &Code<'_>, open: usize) -> Vec<Parameter> {
    let mut found = Vec::new();
    for (start, end) in code.parts(open) {
        // The type begins after the last single colon: `Parameters(Search { id }): Parameters<Search>`.
        let colon = (start..end)
            .rev()
            .find(|at| is_single_colon(code, *at) && code.tokens[*at].partner == *at && is_outside(code, start, *at));
        let Some(colon) = colon else { continue };
        let words: Vec<&str> = (colon + 1..end).filter_map(|at| code.word(at)).collect();
        if words.iter().any(|word| CONTEXTS.contains(word)) {
            continue;
        }
        if let Some(at) = words.iter().position(|word| WRAPPERS.contains(word)) {
            found.extend(words[at + 1..].iter().find_map(|name| struct_fields(code, name)).unwrap_or_default());
            continue;
        }
        let name = (start..colon).rev().find_map(|at| code.word(at));
        if let (Some(name), Some(last)) = (name, words.last()) {
            match struct_fields(code, last).filter(|_| words.len() == 1) {
                Some(fields) => found.extend(fields),
                None => found.push(parameter(name, &words)),
            }
        }
    }
    found
}

/// Returns `true` if no bracket opened between `start` and `at` is still open.
fn is_outside(code: &Code<'_>, start: usize, at: usize) -> bool {
    (start..at).all(|inside| code.tokens[inside].partner <= inside || code.tokens[inside].partner < at)
}

fn is_single_colon(code: &Code<'_>, at: usize) -> bool {
    let is_colon = |at: usize| code.mark(at) == Some(':');
    is_colon(at) && !is_colon(at + 1) && !is_colon(at.wrapping_sub(1))
}

/// Returns the fields of the struct called `name`, as parameters.
pub(super) fn struct_fields(code: &Code<'_>, name: &str) -> Option<Vec<Parameter>> {
    let is_struct = |at: &usize| code.word(*at) == Some("struct") && code.word(*at + 1) == Some(name);
    let at = (0..code.tokens.len()).find(is_struct)?;
    let open = (at + 2..code.tokens.len().min(at + 40)).find(|at| code.mark(*at) == Some('{'))?;
    let mut found = Vec::new();
    for (start, end) in code.parts(open) {
        let Some(colon) = (start..end).find(|at| is_single_colon(code, *at) && is_outside(code, start, *at)) else {
            continue;
        };
        let Some(name) = code.word(colon - 1) else { continue };
        let words: Vec<&str> = (colon + 1..end).filter_map(|at| code.word(at)).collect();
        let mut field = parameter(name, &words);
        field.description = docs_between(code, start, colon).map(|text| text.text);
        let mut attribute = start;
        while attribute < colon {
            if code.mark(attribute) == Some('[') {
                with_attribute(code, attribute, &mut field);
            }
            attribute = code.after(attribute);
        }
        found.push(field);
    }
    Some(found)
}

/// Applies `#[serde(default, rename = "…")]` and `#[schemars(description = "…")]`.
fn with_attribute(code: &Code<'_>, open: usize, field: &mut Parameter) {
    for at in open + 1..code.tokens[open].partner {
        match code.word(at) {
            Some("default") => field.required = false,
            Some("rename") => {
                if let Some(text) = code.text(at + 2) {
                    field.name.clone_from(&text.text);
                }
            }
            Some("description") => {
                if let Some(text) = code.text(at + 2) {
                    field.description = Some(text.text.clone());
                }
            }
            _ => {}
        }
    }
}

fn parameter(name: &str, words: &[&str]) -> Parameter {
    let inner = words.iter().position(|word| *word == "Option").map_or(words, |at| &words[at + 1..]);
    let kind = inner.iter().find_map(|word| kind(word));
    Parameter {
        name: name.trim_start_matches("r#").to_owned(),
        kind: kind.map(str::to_owned),
        required: inner.len() == words.len(),
        description: None,
    }
}

/// Returns the JSON Schema type for a Rust type.
fn kind(word: &str) -> Option<&'static str> {
    Some(match word {
        "String" | "str" | "PathBuf" | "Url" | "Uuid" | "char" => "string",
        "bool" => "boolean",
        "f32" | "f64" => "number",
        "Vec" | "HashSet" | "BTreeSet" => "array",
        "HashMap" | "BTreeMap" | "Map" => "object",
        "Value" => "any",
        "usize" | "isize" | "u8" | "u16" | "u32" | "u64" | "u128" | "i8" | "i16" | "i32" | "i64" | "i128" => "integer",
        "Box" | "Arc" | "Cow" | "std" | "static" | "a" | "serde_json" | "collections" => return None,
        _ => "object",
    })
}
