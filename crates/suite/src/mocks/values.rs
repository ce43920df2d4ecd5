//! Checks the values that requirements on arguments name: the schema of the tool may allow no such value, and the name of
//! a type that is not one of ours is compared as text.

use model::decode::Problems;
use model::{Node, NodeKind, nearest};

use super::guards::{TYPES, is_pattern};

/// Names of types in other languages, each with ours.
const TYPE_SYNONYMS: [(&str, &str); 12] = [
    ("int", "number"),
    ("integer", "number"),
    ("float", "number"),
    ("double", "number"),
    ("Number", "number"),
    ("str", "string"),
    ("String", "string"),
    ("Bool", "bool"),
    ("Boolean", "bool"),
    ("dict", "object"),
    ("Object", "object"),
    ("Array", "array"),
];

/// Words in the names of arguments whose values may be such names.
const OF_TYPES: [&str; 5] = ["type", "kind", "format", "class", "schema"];

/// Words in the names of arguments whose values may be conditions.
const OF_CONDITIONS: [&str; 12] =
    ["query", "filter", "where", "cond", "expr", "search", "version", "range", "pattern", "regex", "template", "text"];

/// Reports values in `required` that no call can have. `properties` are those of the schema, if there is one. If
/// `is_optional`, calls with other values are right too.
pub(super) fn check(required: &Node, properties: Option<&Node>, is_optional: bool, problems: &mut Problems) {
    let NodeKind::Map(arguments) = &required.kind else { return };
    for (name, value) in arguments {
        let schema = properties.and_then(|properties| properties.get(&name.value));
        match &value.kind {
            NodeKind::Map(inner)
                if let [(key, kind)] = inner.as_slice()
                    && key.value == "type"
                    && let Some(kind) = kind.as_str().filter(|kind| TYPES.contains(kind))
                    && schema.is_none_or(|schema| schema.get("properties").is_none()) =>
            {
                let name = &name.value;
                let problem =
                    value.warning(format!("a map stands for arguments within `{name}`, and not for a schema"));
                problems.push(problem.help(format!("write `{name}: {kind}`")));
            }
            NodeKind::Map(_) => check(value, schema.and_then(|schema| schema.get("properties")), is_optional, problems),
            NodeKind::List(items) => {
                items.iter().for_each(|item| check_value(&name.value, item, schema, is_optional, problems));
            }
            _ => check_value(&name.value, value, schema, is_optional, problems),
        }
    }
}

fn check_value(name: &str, value: &Node, schema: Option<&Node>, is_optional: bool, problems: &mut Problems) {
    let Some(text) = text_of(value) else { return };
    if value.as_str().is_some_and(|text| is_pattern(text) || TYPES.contains(&text)) {
        return;
    }
    let of_schema = |key: &str| schema.and_then(|schema| schema.get(key));
    if let Some(NodeKind::List(allowed)) = of_schema("enum").map(|allowed| &allowed.kind) {
        let allowed: Vec<String> = allowed.iter().filter_map(text_of).collect();
        let near = nearest(&text, allowed.iter().map(String::as_str));
        // An answer may be for calls that break the schema.
        if !allowed.contains(&text) && (near.is_some() || !is_optional) {
            let problem = value.warning(format!("`enum` of `{name}` in `input_schema` does not have `{text}`"));
            problems.push(match near {
                Some(near) => problem.suggest(Some(near)),
                None => problem.help(format!("it has {}", allowed.join(", "))),
            });
        }
        return;
    }
    let kind = of_schema("type").and_then(Node::as_str);
    let is_possible = match kind {
        Some("integer" | "number") => text.parse::<f64>().is_ok(),
        Some("boolean") => matches!(text.as_str(), "true" | "false"),
        _ => true,
    };
    let meant = TYPE_SYNONYMS.iter().find(|(other, _)| *other == text).map(|(_, ours)| *ours);
    let is_of_types = || OF_TYPES.iter().any(|word| name.to_lowercase().contains(word));
    if let Some(kind) = kind.filter(|_| !is_possible && (meant.is_some() || !is_optional)) {
        let problem = value.warning(format!("`{name}` is of the type `{kind}` in `input_schema`, and not `{text}`"));
        problems.push(problem.suggest(meant));
    } else if let Some(meant) = meant.filter(|_| is_possible && !is_of_types()) {
        let problem = value.warning(format!("`{text}` is not the name of a type here, so it is compared as text"));
        problems.push(problem.suggest(Some(meant)));
    } else if value.as_str().is_some_and(is_condition) && !OF_CONDITIONS.iter().any(|word| name.contains(word)) {
        let problem = value.warning(format!("`{text}` is compared as text here, as it is written"));
        problems.push(problem.help("write the text, a list of possible texts, `/a regular expression/` or a type"));
    }
}

/// Returns `true` for a comparison with a number, for `==` and `!=` before anything, and for what is written like a
/// placeholder, like a regular expression without slashes, or like several words of which one is meant.
fn is_condition(text: &str) -> bool {
    let rest = ["==", "!="].iter().find_map(|operator| text.strip_prefix(operator));
    let bound = ["<=", ">=", "<", ">"].iter().find_map(|operator| text.strip_prefix(operator));
    let is_pattern = text.len() > 1 && (text.starts_with('^') || text.contains(".*") || text.contains("{{"));
    let is_word = |word: &str| word.len() > 1 && word.chars().all(char::is_alphabetic);
    let is_choice = text.contains('|') && text.split('|').all(|word| is_word(word.trim()));
    is_pattern
        || is_choice
        || rest.is_some_and(|rest| !rest.trim().is_empty())
        || bound.is_some_and(|bound| bound.trim().parse::<f64>().is_ok())
}

/// Returns the text with which arguments are compared.
fn text_of(node: &Node) -> Option<String> {
    match &node.kind {
        NodeKind::String(text) => Some(text.clone()),
        NodeKind::Number(number) => Some(number.to_string()),
        NodeKind::Bool(value) => Some(value.to_string()),
        _ => None,
    }
}
