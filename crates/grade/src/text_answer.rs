//! Expectations of an answer that are probably not meant: texts that look like patterns where they must not occur, and
//! what no text is like, if the agent answers with text. Below `$not`, these hold for every answer.

use model::decode::Problems;
use model::{Diagnostic, Node, NodeKind, Spanned};

use crate::as_written;

/// Reads an expectation.
pub(crate) struct Reader<'p> {
    /// True if the answer is text.
    pub is_text: bool,
    /// True below `$not`.
    pub is_denied: bool,
    pub problems: &'p mut Problems,
}

/// Items of a list in a result, if the agent answers with text.
pub(crate) struct Item {
    what: &'static str,
    keys: &'static [&'static str],
    /// The key that a text probably belongs to, if a text does not stand for the map.
    main: Option<&'static str>,
    synonyms: &'static [(&'static str, &'static str)],
}

/// Lists of a result, with what they have.
pub(crate) const LISTS: [(&str, Item); 2] = [
    (
        "tools",
        Item {
            what: "a tool call of the agent",
            keys: &["name", "args", "result", "is_error"],
            main: None,
            synonyms: &[
                ("tool", "name"),
                ("tool_name", "name"),
                ("input", "args"),
                ("arguments", "args"),
                ("params", "args"),
                ("output", "result"),
            ],
        },
    ),
    (
        "messages",
        Item {
            what: "a message of the conversation",
            keys: &["role", "content", "tools"],
            main: Some("content"),
            synonyms: &[("text", "content"), ("message", "content"), ("tool_calls", "tools")],
        },
    ),
];

impl Reader<'_> {
    /// Warns about the parts of `expectation` that are probably not meant.
    pub fn report(&mut self, expectation: &Node) {
        if expectation.tag.is_some() || expect::schema::looks_like_schema(expectation) {
            return;
        }
        match &expectation.kind {
            NodeKind::String(text) if self.is_denied && expect::split_regex(text).is_none() => {
                let help = "write it in slashes, as in `/a|b/i`, if it is a regular expression";
                self.problems.extend(as_written::forbidden(text, expectation.excerpt(), help));
            }
            NodeKind::String(_) | NodeKind::Null => {}
            NodeKind::Map(entries) if entries.iter().any(|(key, _)| key.value.starts_with('$')) => {
                entries.iter().for_each(|(key, operand)| self.operator(key, operand));
            }
            // Names of operators without `$` are reported elsewhere.
            NodeKind::Map(entries) if entries.iter().any(|(key, _)| is_bare(&key.value)) => {}
            _ if self.is_text => self.not_text(expectation),
            NodeKind::List(items) => items.iter().for_each(|item| self.report(item)),
            NodeKind::Map(entries) => entries.iter().for_each(|(_, value)| self.report(value)),
            NodeKind::Bool(_) | NodeKind::Number(_) => {}
        }
    }

    /// Warns about texts in `expected`, an expectation of a list of such maps, and about keys that none of them has.
    pub fn report_items(&mut self, expected: &Node, of: &Item) {
        match &expected.kind {
            NodeKind::List(items) => items.iter().for_each(|item| self.report_items(item, of)),
            NodeKind::String(text) if expected.tag.is_none() && expect::split_regex(text).is_none() => {
                let Some(main) = of.main else { return };
                let problem = expected.warning(format!("{} is a map, which never matches a text", of.what));
                let text = expected.to_json();
                self.problems.push(problem.help(format!(
                    "write `{{ {main}: {text} }}`, or `{{ {main}: {{ $contains: {text} }} }}` for a part of it"
                )));
            }
            NodeKind::Map(entries) if expected.tag.is_none() && !expect::schema::looks_like_schema(expected) => {
                for (key, value) in entries {
                    let name = key.value.split(['.', '[']).next().unwrap_or_default();
                    if ["$not", "$and", "$or", "$contains", "$all", "$sequence", "$each", "$expect"].contains(&name) {
                        self.report_items(value, of);
                    } else if !is_of_list(name) && !of.keys.contains(&name) {
                        let problem = Diagnostic::warning(format!("{} has no `{name}`", of.what));
                        let meant = of.synonyms.iter().find(|(other, _)| *other == name).map(|(_, ours)| *ours);
                        let problem = problem.at(value.source.excerpt(key.span));
                        self.problems.push(match meant.or_else(|| model::nearest(name, of.keys.iter().copied())) {
                            Some(meant) => problem.suggest(Some(meant)),
                            None => problem.help(format!("it has {}", of.keys.join(", "))),
                        });
                    }
                }
            }
            _ => {}
        }
    }

    fn operator(&mut self, key: &Spanned<String>, operand: &Node) {
        let items = || if let NodeKind::List(items) = &operand.kind { items.as_slice() } else { &[] };
        match key.value.as_str() {
            "$not" => {
                let Self { is_text, is_denied, .. } = *self;
                Reader { is_text, is_denied: !is_denied, problems: self.problems }.report(operand);
            }
            "$contains" | "$expect" => self.report(operand),
            "$and" | "$or" => items().iter().for_each(|item| self.report(item)),
            "$ne" => self.compared(std::slice::from_ref(operand), ("$not: ", "")),
            "$nin" => self.compared(items(), ("$not: { $or: [", ", …] }")),
            "$in" => self.compared(items(), ("$or: [", ", …]")),
            name if self.is_text => {
                let is_number = matches!(operand.kind, NodeKind::Number(_));
                let what = match name {
                    "$gt" | "$gte" | "$lt" | "$lte" if is_number => "numbers",
                    "$all" | "$each" | "$sequence" | "$sort" | "$nth" | "$first" | "$last" => "lists",
                    _ => return,
                };
                let problem = Diagnostic::warning(format!("`{name}` is about {what}, and the agent answers with text"));
                let problem = problem.at(operand.source.excerpt(key.span));
                self.problems.push(problem.help(FOR_JSON));
            }
            _ => {}
        }
    }

    /// Warns about the first of `values` that a text never equals, or that is probably an expression. What takes one is
    /// written around it.
    fn compared(&mut self, values: &[Node], (before, after): (&str, &str)) {
        for value in values.iter().filter(|_| self.is_text) {
            let Some(text) = value.as_str() else {
                if value.tag.is_none() && !matches!(value.kind, NodeKind::Null) {
                    return self.not_text(value);
                }
                continue;
            };
            let (source, flags) = text.rsplit_once('/').unwrap_or((text, ""));
            let help = format!("write `{before}{source}/{}{after}`", flags.to_lowercase());
            let problem = as_written::expression(text, value.excerpt(), &help).or_else(|| {
                // One word in slashes may be a path, which is hardly forbidden.
                let is_word = before.starts_with("$not") && expect::split_regex(text).is_some();
                let message = format!("`{text}` looks like a regular expression but is compared as text");
                is_word.then(|| value.warning(message).help(help))
            });
            if let Some(problem) = problem {
                return self.problems.push(problem);
            }
        }
    }

    /// Warns about a value that is compared with a text.
    fn not_text(&mut self, value: &Node) {
        let kind = value.kind_name();
        let problem = value.warning(format!("the agent answers with text, which never matches {kind}"));
        self.problems.push(match &value.kind {
            NodeKind::Number(_) | NodeKind::Bool(_) => problem.help("put it in quotes to find it in the text"),
            NodeKind::List(items) if items.iter().all(|item| item.as_str().is_some()) && !items.is_empty() => {
                problem.help("write `$and: […]` for texts that must all occur, and `$or: […]` for one of them")
            }
            _ => problem.help(format!("write the text alone; {FOR_JSON}")),
        });
    }
}

/// Returns `true` for an operator, a pattern of keys, and what a list itself has: positions and its length.
fn is_of_list(name: &str) -> bool {
    name.starts_with(['$', '/']) || name == "length" || name.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-')
}

/// Returns `true` for the name of an operator without its `$`.
fn is_bare(key: &str) -> bool {
    key == "includes" || expect::OPERATORS.iter().any(|operator| operator.name.strip_prefix('$') == Some(key))
}

/// Advice for an answer that contains JSON.
const FOR_JSON: &str = "`responseParser: json` reads an answer that is JSON";

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::yaml;

    fn messages(expectation: &Value, is_text: bool) -> Vec<String> {
        let mut problems = Problems::new();
        let node = yaml::list_item(expectation, "a.yaml");
        Reader { is_text, is_denied: false, problems: &mut problems }.report(&node);
        problems.into_iter().map(|problem| problem.message).collect()
    }

    #[test]
    fn what_no_message_and_no_call_has_is_reported() {
        let of = |list: usize, expected: Value| {
            let mut problems = Problems::new();
            let node = yaml::list_item(&expected, "a.yaml");
            Reader { is_text: true, is_denied: false, problems: &mut problems }.report_items(&node, &LISTS[list].1);
            problems
                .into_iter()
                .map(|problem| format!("{} {}", problem.message, problem.help.join(" ")))
                .collect::<Vec<_>>()
        };
        let text = "a message of the conversation is a map, which never matches a text write `{ content: \"a\" }`, or \
                    `{ content: { $contains: \"a\" } }` for a part of it";
        assert_eq!(of(1, json!({"$not": {"$contains": "a"}})), [text]);
        let key = "a message of the conversation has no `text` did you mean `content`?";
        assert_eq!(of(1, json!([{"role": "user", "text": "a"}])), [key]);
        for right in [
            json!({"$contains": "/a/"}),
            json!([{"role": "user", "content": "a"}, {"tools": [{"name": "b"}]}]),
            json!({"length": 2, "[0].content": "a", "1": {"content": "b"}, "-1.role": "user"}),
        ] {
            assert_eq!(of(1, right.clone()), Vec::<String>::new(), "{right}");
        }
        assert_eq!(of(0, json!({"$not": {"$contains": "Read"}})), Vec::<String>::new());
        assert_eq!(of(0, json!({"tool": "Read"})).len(), 1);
    }

    #[test]
    fn what_no_text_is_like_is_reported_if_the_answer_is_text() {
        for (expectation, what) in [
            (json!({"$not": ["a"]}), "a list"),
            (json!({"$not": []}), "a list"),
            (json!({"$not": {"text": "a"}}), "a map"),
            (json!({"$nin": [1, 2]}), "a number"),
            (json!({"$and": ["a", {"$contains": true}]}), "a boolean"),
        ] {
            let message = format!("the agent answers with text, which never matches {what}");
            assert_eq!(messages(&expectation, true), [message], "{expectation}");
            assert_eq!(messages(&expectation, false), Vec::<String>::new(), "{expectation}");
        }
        assert_eq!(messages(&json!({"$all": ["a"]}), true), ["`$all` is about lists, and the agent answers with text"]);
        for expectation in [
            json!("a"),
            json!({"$not": "a"}),
            json!({"$in": ["a", "/api/"]}),
            json!({"type": "string"}),
            json!({"$exists": true}),
            json!({"$gt": "a"}),
            json!(null),
        ] {
            assert_eq!(messages(&expectation, true), Vec::<String>::new(), "{expectation}");
        }
    }

    #[test]
    fn an_expression_that_is_compared_as_text_is_reported() {
        for (expectation, text) in [
            (json!({"$ne": "/a/"}), "/a/"),
            (json!({"$nin": ["b", "/a/i"]}), "/a/i"),
            (json!({"$in": ["/a/I"]}), "/a/I"),
            (json!({"$not": "a|b"}), "a|b"),
        ] {
            let message = format!("`{text}` looks like a regular expression but is compared as text");
            assert_eq!(messages(&expectation, true), [message], "{expectation}");
        }
        assert_eq!(messages(&json!({"note": {"$not": "a|b"}}), false).len(), 1);
        assert_eq!(messages(&json!({"path": {"$ne": "/a/"}}), false), Vec::<String>::new());
    }
}
