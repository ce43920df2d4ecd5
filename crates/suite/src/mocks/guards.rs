//! Reads requirements on the arguments of a call.

use model::decode::{Fields, Problems};
use model::{ArgumentGuard, Diagnostic, MockedAnswer, Node, NodeKind, REGEX_FLAGS, WantedArgument, wrong_flag};
use script::Regex;

/// Operators of expectations, which requirements on arguments do not have.
const OPERATORS: [&str; 14] =
    ["$and", "$contains", "$eq", "$expect", "$expr", "$gt", "$gte", "$in", "$lt", "$lte", "$ne", "$nin", "$not", "$or"];

/// Names of types.
pub(super) const TYPES: [&str; 6] = ["string", "number", "bool", "boolean", "object", "array"];

/// Reads a map of arguments. A value is the text of the argument, a list of possible texts, `/a regular expression/`,
/// the name of a type, or a map of inner arguments.
pub(super) fn read(node: &Node, what: &str, problems: &mut Problems) -> Vec<ArgumentGuard> {
    let mut guards = Vec::new();
    match &node.kind {
        NodeKind::Map(_) => below("", node, &mut guards, problems),
        _ => problems.push(node.error(format!("{what} must be a map of arguments, not {}", node.kind_name()))),
    }
    guards
}

/// Reports keys of the items of `answers` that are written in the tool or the program itself, whose `fields` these are.
pub(super) fn refuse_outside(fields: &mut Fields<'_>, has_answers: bool, problems: &mut Problems) {
    let outside: Vec<_> = ["when", "times"].into_iter().filter(|key| fields.key_span(key).is_some()).collect();
    for key in outside.iter().copied() {
        fields.get(key);
    }
    if let Some((key, span)) = outside.first().and_then(|key| Some((key, fields.key_span(key)?))) {
        let help = match has_answers {
            true => "write it into the items of `answers`".to_owned(),
            false => format!("write `answers`, a list with an item that has `{key}` and the answer"),
        };
        let problem = Diagnostic::error(format!("`{key}` belongs to an item of `answers`"));
        problems.push(problem.at(fields.node().source.excerpt(span)).help(help));
    }
}

fn below(path: &str, node: &Node, guards: &mut Vec<ArgumentGuard>, problems: &mut Problems) {
    let NodeKind::Map(entries) = &node.kind else { return };
    for (name, value) in entries {
        if OPERATORS.contains(&name.value.as_str()) {
            let message = format!("`{}` is the name of an argument here, not an operator", name.value);
            let problem = Diagnostic::warning(message).at(value.source.excerpt(name.span));
            problems.push(problem.help("write the text, a list of possible texts, `/a regular expression/` or a type"));
        }
        let path = if path.is_empty() { name.value.clone() } else { format!("{path}.{}", name.value) };
        match &value.kind {
            NodeKind::Map(_) => below(&path, value, guards, problems),
            NodeKind::List(items) => {
                let texts: Vec<String> = items.iter().filter_map(|item| literal(item, problems)).collect();
                problems.extend(items.iter().filter_map(expression_in_list));
                if texts.is_empty() {
                    problems.push(value.error("an empty list can never match"));
                }
                guards.push(ArgumentGuard { path, wanted: WantedArgument::OneOf(texts) });
            }
            _ => guards.extend(scalar(path, value, problems)),
        }
    }
}

/// Returns the warning about an item of a list of texts that is certainly written like a regular expression.
fn expression_in_list(item: &Node) -> Option<Diagnostic> {
    let text = item.as_str()?;
    let (source, flags) = pattern(text).filter(|(source, _)| !source.replace("\\/", "").contains('/'))?;
    let is_certain = flags.contains('i') || source.contains(['\\', '^', '$', '*', '+', '(', '|', '[']);
    let problem = item.warning(format!("`{text}` looks like a regular expression but is compared as text in a list"));
    is_certain.then(|| problem.help("write one regular expression in place of the list, such as `/open|closed/`"))
}

/// Reads the requirement on one argument.
pub(super) fn scalar(path: String, node: &Node, problems: &mut Problems) -> Option<ArgumentGuard> {
    let text = literal(node, problems)?;
    let is_text = matches!(node.kind, NodeKind::String(_));
    let wanted = match (is_text, pattern(&text)) {
        (true, Some((source, flags))) => {
            if let Err(error) = Regex::literal(source, flags) {
                problems.push(node.error(error.to_string()));
                return None;
            }
            WantedArgument::Matches { source: source.to_owned(), flags: flags.to_owned() }
        }
        (true, None) if TYPES.contains(&text.as_str()) => {
            WantedArgument::Type(if text == "boolean" { "bool".to_owned() } else { text })
        }
        _ => WantedArgument::OneOf(vec![text]),
    };
    Some(ArgumentGuard { path, wanted })
}

/// Returns `true` if a text is `/a regular expression/`.
pub(super) fn is_pattern(text: &str) -> bool {
    pattern(text).is_some()
}

fn pattern(text: &str) -> Option<(&str, &str)> {
    let (source, flags) = text.strip_prefix('/')?.rsplit_once('/')?;
    // A path such as `/usr/bin` has a similar form.
    let are_flags = flags.chars().all(|flag| REGEX_FLAGS.contains(flag)) || wrong_flag(text).is_some();
    (!source.is_empty() && are_flags).then_some((source, flags))
}

fn literal(node: &Node, problems: &mut Problems) -> Option<String> {
    match &node.kind {
        NodeKind::String(text) => Some(text.clone()),
        NodeKind::Number(number) => Some(number.to_string()),
        NodeKind::Bool(value) => Some(value.to_string()),
        _ => {
            problems.push(node.error(format!("the value of an argument must be a text, not {}", node.kind_name())));
            None
        }
    }
}

/// Warns about answers that no call gets, because an earlier one without `times` answers the same calls.
pub(super) fn report_unreachable(answers: &[(&Node, MockedAnswer)], problems: &mut Problems) {
    for (index, (item, answer)) in answers.iter().enumerate() {
        let is_wider = |(_, earlier): &&(&Node, MockedAnswer)| {
            earlier.times.is_none() && earlier.when.iter().all(|guard| answer.when.contains(guard))
        };
        let Some((first, wider)) = answers[..index].iter().find(is_wider) else { continue };
        let which = if wider.when.is_empty() { "all calls" } else { "these calls" };
        let message = format!("no call gets this answer, because the one at {} answers {which}", first.excerpt());
        problems
            .push(item.warning(message).help("the first answer that fits is given: move this one up, or set `times`"));
    }
}

#[cfg(test)]
mod tests {
    use super::is_pattern;

    #[test]
    fn a_path_is_not_a_regular_expression() {
        for text in ["/closed/i", "/a\\/b/", "/closed/I"] {
            assert!(is_pattern(text), "{text}");
        }
        for text in ["/usr/bin", "/etc/hosts", "/tmp", "//"] {
            assert!(!is_pattern(text), "{text}");
        }
    }
}
