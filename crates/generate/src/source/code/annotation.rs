//! Tools in Java, Kotlin and C#: methods with an annotation such as `@Tool("…")`, or an attribute such as
//! `[KernelFunction]`.

use std::ops::Range;

use super::syntax::Family;
use super::value::{Code, Link, Value, find, joined};
use super::{Found, Literal};
use crate::profile::Parameter;

/// Annotation that makes a method a tool.
struct ToolAnnotation {
    name: &'static str,
    /// True if a string without a key is the name of the tool rather than its description.
    has_name_first: bool,
    /// True if a method `FindOrder` becomes the tool `find_order`.
    is_snake_case: bool,
}

const fn described(name: &'static str) -> ToolAnnotation {
    ToolAnnotation { name, has_name_first: false, is_snake_case: false }
}

/// Annotations of LangChain4j, Spring AI, Quarkus, Koog, Embabel, Semantic Kernel and the MCP library for C#.
static TOOLS: [ToolAnnotation; 6] = [
    described("Tool"),
    described("McpTool"),
    described("LlmTool"),
    described("DefineKernelFunction"),
    ToolAnnotation { has_name_first: true, ..described("KernelFunction") },
    ToolAnnotation { has_name_first: true, is_snake_case: true, ..described("McpServerTool") },
];

/// Annotations that describe the following method or parameter.
const DESCRIPTIONS: [&str; 2] = ["Description", "LLMDescription"];

/// Annotations and types of parameters that the framework supplies.
const CONTEXTS: [&str; 23] = [
    "Cancellation",
    "CancellationToken",
    "FromKernelServices",
    "FromKeyedServices",
    "FromServices",
    "ILogger",
    "IMcpServer",
    "IProgress",
    "IServiceProvider",
    "InvocationParameters",
    "Kernel",
    "KernelArguments",
    "McpAsyncRequestContext",
    "McpAsyncServerExchange",
    "McpLog",
    "McpServer",
    "McpSyncRequestContext",
    "McpSyncServerExchange",
    "Progress",
    "RequestContext",
    "ToolContext",
    "ToolManager",
    "ToolMemoryId",
];

/// Maximum number of tokens between an annotation and the parameters of its method.
const LONGEST_HEAD: usize = 80;

/// Adds the tools in a file.
pub(super) fn find_all(code: &Code<'_>, found: &mut Vec<Found>) {
    let mut at = 0;
    while at < code.tokens.len() {
        let (annotations, after) = annotations(code, at);
        found.extend(tool(code, &annotations, after));
        at = after.max(at + 1);
    }
}

/// Reads the annotations that begin at `at`. Returns them, and the index after them.
fn annotations(code: &Code<'_>, at: usize) -> (Vec<Link>, usize) {
    let (mut found, mut at) = (Vec::new(), at);
    loop {
        let (values, after) = match (code.mark(at), code.family) {
            (Some('@'), Family::Java | Family::Kotlin) if code.word(at + 1).is_some() => {
                let (value, after) = code.value(at + 1);
                (vec![value], after)
            }
            (Some('['), Family::CSharp) => match code.value(at) {
                (Value::List(items), after) => (items, after),
                (_, after) => (Vec::new(), after),
            },
            _ => return (found, at),
        };
        let link = |value| match value {
            Value::Chain(mut links) => links.pop(),
            _ => None,
        };
        found.extend(values.into_iter().filter_map(link));
        at = after;
    }
}

/// Reads the method after `annotations`, if one of them makes it a tool.
fn tool(code: &Code<'_>, annotations: &[Link], at: usize) -> Option<Found> {
    let known = |link: &Link| TOOLS.iter().find(|tool| tool.name == link.name);
    let (link, kind) = annotations.iter().find_map(|link| Some((link, known(link)?)))?;
    let method = method(code, at)?;
    let unnamed = |wanted: bool| text(code, link, &[""]).filter(|_| kind.has_name_first == wanted);
    let described = || {
        let mut notes = annotations.iter().filter(|note| DESCRIPTIONS.contains(&note.name.as_str()));
        notes.find_map(|note| text(code, note, &["", "value", "description"]))
    };
    let name = text(code, link, &["name"]).or_else(|| unnamed(true)).map(|name| name.text);
    let written = code.word(method)?;
    let open = method + 1;
    Some(Found {
        name: name.unwrap_or_else(|| default_name(written, code.family, kind)),
        at: method,
        description: text(code, link, &["description", "value"]).or_else(|| unnamed(false)).or_else(described),
        parameters: code.parts(open).into_iter().filter_map(|(start, end)| parameter(code, start, end)).collect(),
    })
}

/// Returns the index of the name of the method whose modifiers begin at `at`.
fn method(code: &Code<'_>, at: usize) -> Option<usize> {
    let end = at + LONGEST_HEAD;
    let mut at = at;
    while at < end {
        match code.mark(at) {
            Some('(') => {
                let is_type = |at: usize| matches!(code.word(at), Some("class" | "record" | "struct" | "interface"));
                if code.word(at - 1).is_some() {
                    return (at >= 2 && !is_type(at - 2)).then_some(at - 1);
                }
                at = code.after(at);
            }
            Some('{' | '}' | ';' | '=') => return None,
            Some('@') => at = annotations(code, at).1.max(at + 1),
            Some('[') => at = code.after(at),
            _ => at += 1,
        }
    }
    None
}

/// Returns the name of a tool whose annotation does not specify one.
fn default_name(method: &str, family: Family, kind: &ToolAnnotation) -> String {
    let short = match family {
        Family::CSharp => method.strip_suffix("Async").filter(|name| !name.is_empty()),
        _ => None,
    };
    let name = short.unwrap_or(method);
    if kind.is_snake_case { snake_case(name) } else { name.to_owned() }
}

/// Returns `find_url_of` for `FindURLOf`.
fn snake_case(name: &str) -> String {
    let letters: Vec<char> = name.chars().collect();
    let mut text = String::new();
    for (at, letter) in letters.iter().enumerate() {
        let is_after_lower = at > 0 && !letters[at - 1].is_uppercase() && letters[at - 1] != '_';
        let is_before_lower =
            at > 0 && letters[at - 1] != '_' && letters.get(at + 1).is_some_and(|next| next.is_lowercase());
        if letter.is_uppercase() && (is_after_lower || is_before_lower) {
            text.push('_');
        }
        text.extend(letter.to_lowercase());
    }
    text
}

/// Returns the string argument of an annotation with one of the given keys. The key of an argument without one is
/// empty.
fn text(code: &Code<'_>, link: &Link, keys: &[&str]) -> Option<Literal> {
    let is_wanted = |key: &str| keys.iter().any(|wanted| wanted.eq_ignore_ascii_case(key));
    let entry = link.arguments.as_deref()?.iter().find(|entry| is_wanted(&entry.key))?;
    match code.resolved(entry.value.clone()) {
        Value::Text(text) => Some(text),
        Value::List(items) => joined(&items, "\n"),
        Value::Map(entries) => joined(&entries.into_iter().map(|entry| entry.value).collect::<Vec<_>>(), "\n"),
        Value::Chain(_) | Value::Other => None,
    }
}

/// Reads the parameter between two commas: `@P("…") String id`, `id: String = ""` or `[Description("…")] string? id`.
fn parameter(code: &Code<'_>, start: usize, end: usize) -> Option<Parameter> {
    let (notes, start) = annotations(code, start);
    let default = (start..end).find(|at| code.is_assignment(*at));
    let stop = default.unwrap_or(end);
    let (name, mut kind): (usize, Range<usize>) = match code.family {
        Family::Kotlin => {
            let colon = (start + 1..stop).find(|at| code.mark(*at) == Some(':'))?;
            (colon - 1, colon + 1..stop)
        }
        _ => {
            let name = (start..stop).rev().find(|at| code.word(*at).is_some())?;
            (name, start..name)
        }
    };
    let words: Vec<&str> = kind.clone().filter_map(|at| code.word(at)).collect();
    let mut names = words.iter().copied().chain(notes.iter().map(|note| note.name.as_str()));
    if names.any(|name| CONTEXTS.contains(&name)) {
        return None;
    }
    let is_false = |note: &Link| {
        let required = note.arguments.as_deref().and_then(|arguments| find(arguments, "required"));
        required.is_some_and(|value| value.is_name("false"))
    };
    let is_optional = default.is_some()
        || kind.clone().any(|at| code.mark(at) == Some('?'))
        || words.contains(&"Optional")
        || notes.iter().any(|note| note.name == "Nullable" || is_false(note));
    // `int[]` and `String...`
    let is_dots = |at: usize| [at, at + 1].map(|at| code.mark(at)) == [Some('.'); 2];
    let is_list = kind.any(|at| code.mark(at) == Some('[') || is_dots(at));
    let kind = if is_list { Some("array") } else { words.iter().find_map(|word| schema_type(word)) };
    let named = notes.iter().find_map(|note| text(code, note, &["name"]));
    let description = notes.iter().find_map(|note| text(code, note, &["description", "value", ""]));
    Some(Parameter {
        name: named.map_or_else(|| code.word(name).map(str::to_owned), |name| Some(name.text))?,
        kind: kind.map(str::to_owned),
        required: !is_optional,
        description: description.map(|text| text.text),
    })
}

/// Returns the JSON Schema type for a type; `None` for a modifier, a part of a package name, or a wrapper.
fn schema_type(word: &str) -> Option<&'static str> {
    Some(match word {
        "string" | "String" | "CharSequence" | "char" | "Char" | "Guid" | "UUID" | "Uri" | "URI" | "LocalDate"
        | "LocalDateTime" | "Instant" | "DateOnly" | "DateTime" | "DateTimeOffset" => "string",
        "bool" | "boolean" | "Boolean" => "boolean",
        "byte" | "Byte" | "short" | "Short" | "int" | "Int" | "Integer" | "long" | "Long" | "uint" | "ulong"
        | "BigInteger" => "integer",
        "float" | "Float" | "double" | "Double" | "decimal" | "BigDecimal" | "Number" => "number",
        "List" | "Set" | "Collection" | "Array" | "Iterable" | "IEnumerable" | "IList" | "IReadOnlyList"
        | "ICollection" | "HashSet" => "array",
        "object" | "Object" | "Any" | "JsonElement" | "JsonNode" => "any",
        _ if word.starts_with(char::is_lowercase) => return None,
        "Optional" | "Nullable" | "System" | "Collections" | "Generic" => return None,
        _ => "object",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn method_names_become_snake_case() {
        for (name, expected) in
            [("FindOrder", "find_order"), ("GetURLOf", "get_url_of"), ("find", "find"), ("A_B", "a_b")]
        {
            assert_eq!(snake_case(name), expected);
        }
    }
}
