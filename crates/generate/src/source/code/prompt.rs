//! Prompts in source code: strings with the name of a prompt, system messages, and texts that address an agent.

use std::sync::LazyLock;

use regex::Regex;

use super::literal::Literal;
use super::value::{Code, Value, find, joined};

/// Names of variables, keys, arguments and functions whose value is a prompt.
static NAMES: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let names = r"(?i)prompt|instruction|persona|guardrail|guideline|polic(y|ies)|preamble|backstory|system_?message|system_?text|(^|_)rules?$|^goal$|^system$|constraints";
    Regex::new(names).ok()
});

/// Beginnings of texts that address an agent.
static ADDRESSES: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"^\s*(#[^\n]*\n\s*)?(You are|You're|You help|Act as|As an? (AI|assistant))\b").ok());

/// Minimum number of words of a prompt.
const SHORTEST: usize = 4;

/// A prompt.
pub(super) struct Prompt {
    /// Text, without indentation.
    pub text: Literal,
    /// Index of its first token.
    pub at: usize,
}

/// Returns the prompts in a file.
pub(super) fn find_all(code: &Code<'_>) -> Vec<Prompt> {
    let mut found: Vec<Prompt> = Vec::new();
    let mut end = 0;
    for at in 0..code.tokens.len() {
        if at < end {
            continue;
        }
        let read = named(code, at).or_else(|| of_system(code, at)).or_else(|| addressed(code, at));
        if let Some((text, start, after)) = read {
            end = after;
            found.push(Prompt { text: text.dedented(), at: start });
        }
    }
    found.retain(|prompt| is_prose(&prompt.text.text));
    found
}

/// A text, the index of its first token, and the index after it.
type Read = Option<(Literal, usize, usize)>;

/// Reads `SYSTEM_PROMPT = "…"`, `instructions: "…"` and `.system_prompt("…")`.
fn named(code: &Code<'_>, at: usize) -> Read {
    let name = code.word(at).or_else(|| code.text(at).map(|text| text.text.as_str()).filter(|text| text.len() < 40))?;
    let is_declared = at > 0 && code.word(at - 1).is_some_and(|word| ["def", "fn", "function", "func"].contains(&word));
    if is_declared || !NAMES.as_ref()?.is_match(name) {
        return None;
    }
    let value = match (code.mark(at + 1), code.mark(at + 2)) {
        (Some('='), Some('>')) => at + 3,
        (Some('='), Some('=')) => return None,
        (Some(':'), Some('=')) => at + 3,
        (Some('='), _) => at + 2,
        (Some('('), _) if code.word(at).is_some() => at + 2,
        // `("system", "…")` and `:prompt, "…"`
        (Some(','), _) if code.text(at).is_some() => at + 2,
        (Some(':'), Some(':')) => return None,
        (Some(':'), _) => typed_value(code, at + 2),
        _ => return None,
    };
    read(code, value)
}

/// Returns the index of the value after a type annotation: `PROMPT: &str = "…"`.
fn typed_value(code: &Code<'_>, at: usize) -> usize {
    let is_type = |at: &usize| {
        code.word(*at).is_some() || matches!(code.mark(*at), Some('&' | '\'' | '<' | '>' | '[' | ']' | '.'))
    };
    let end = (at..at + 12).find(|at| !is_type(at));
    end.filter(|end| code.is_assignment(*end)).map_or(at, |end| end + 1)
}

/// Reads `{ role: "system", content: "…" }`.
fn of_system(code: &Code<'_>, at: usize) -> Read {
    if code.mark(at) != Some('{') {
        return None;
    }
    let is_role = |at: usize| {
        let key = code.word(at).or_else(|| code.text(at).map(|text| text.text.as_str()));
        key.is_some_and(|key| key.eq_ignore_ascii_case("role"))
    };
    let end = code.tokens[at].partner;
    if !(at + 1..end.min(at + 3)).any(is_role) {
        return None;
    }
    let (value, after) = code.value(at);
    let Value::Map(entries) = value else { return None };
    let role = find(&entries, "role").or_else(|| find(&entries, "Role"))?.as_text()?;
    let content = entries.iter().find(|entry| entry.key.eq_ignore_ascii_case("content"))?;
    if !["system", "developer"].contains(&role.text.as_str()) {
        return None;
    }
    Some((all_text(&code.resolved(content.value.clone()))?, content.at, after))
}

/// Reads a text that begins with "You are".
fn addressed(code: &Code<'_>, at: usize) -> Read {
    let text = code.text(at)?;
    let is_docstring = code.tokens[at].indent.is_some() && at > 0 && code.mark(at - 1) == Some(':');
    if is_docstring || !ADDRESSES.as_ref()?.is_match(&text.text) {
        return None;
    }
    read(code, at)
}

/// Reads the strings at `at`. They may be concatenated, or be the values of names.
fn read(code: &Code<'_>, at: usize) -> Read {
    let (mut text, mut next): (Option<Literal>, usize) = (None, at);
    loop {
        let (value, after) = code.value(next);
        if let Some(part) = all_text(&code.resolved(value)) {
            text.get_or_insert_default().append(&part.dedented(), "");
        }
        match code.mark(after) {
            Some('+') => next = after + 1,
            _ => return Some((text?, at, after)),
        }
    }
}

/// Returns the text of a value: a string, or a list of strings.
fn all_text(value: &Value) -> Option<Literal> {
    match value {
        Value::Text(text) => Some(text.clone()),
        Value::List(items) => joined(items, "\n\n"),
        // A call with a text, such as `PromptTemplate("…")` and `textwrap.dedent("…")`.
        Value::Chain(links) => {
            let arguments = links.iter().find_map(|link| link.arguments.as_deref())?;
            arguments.iter().find_map(|entry| entry.value.as_text()).cloned()
        }
        Value::Map(_) | Value::Other => None,
    }
}

/// Returns `true` if a text consists of prose, not of a path, a query or a template without words.
fn is_prose(text: &str) -> bool {
    let words = text.split_whitespace().filter(|word| word.chars().any(char::is_alphabetic)).count();
    words >= SHORTEST
        && !["SELECT ", "<!DOCTYPE", "<html", "http://", "https://"]
            .iter()
            .any(|start| text.trim_start().starts_with(start))
}
