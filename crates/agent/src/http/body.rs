//! Bodies of requests to the agent.

use std::sync::Arc;

use jiff::Timestamp;
use model::decode::Problems;
use model::{Node, NodeKind, Source, Spanned, UserMessage, nearest};
use serde_json::{Map, Value, json};
use template::{Ambient, Template, Variables};

/// Variables that templates can use.
pub(super) const NAMES: [&str; 8] =
    ["message", "messages", "conversation_id", "input", "script", "tools", "vars", "persona"];

/// How the body of a request is built.
#[derive(Debug, Clone)]
pub(super) enum Body {
    /// `{message, conversation_id}`.
    Legacy,
    /// `{messages}`.
    Messages,
    /// Text with templates, or a tree that contains templates.
    Template(Node),
    /// Reference to a function.
    Function(String),
}

/// Data for sending a message.
#[derive(Debug, Clone, Copy)]
pub(super) struct MessageContext<'a> {
    pub(super) conversation_id: &'a str,
    /// Earlier messages from both sides.
    pub(super) history: &'a [Value],
    pub(super) message: &'a UserMessage,
}

impl MessageContext<'_> {
    /// Returns all variables for templates.
    pub(super) fn variables(&self) -> Map<String, Value> {
        let UserMessage { text, input, script, tools, vars, persona, .. } = self.message;
        let value = json!({
            "message": text,
            "messages": self.messages(),
            "conversation_id": self.conversation_id,
            "input": input.clone().unwrap_or_else(|| json!(text)),
            "script": script,
            "tools": tools,
            "vars": vars,
            "persona": persona,
        });
        if let Value::Object(map) = value { map } else { Map::new() }
    }

    /// Returns the time, and a random seed that differs for every message.
    fn ambient(&self) -> Ambient {
        let seed = self
            .conversation_id
            .bytes()
            .fold(self.history.len() as u64, |seed, byte| seed.wrapping_mul(31).wrapping_add(u64::from(byte)));
        Ambient { now_ms: Some(Timestamp::now().as_millisecond()), utc_offset_minutes: 0, seed }
    }

    /// Returns the conversation including the message to be sent.
    fn messages(&self) -> Vec<Value> {
        self.history.iter().cloned().chain([json!({"role": "user", "content": self.message.text})]).collect()
    }
}

impl Body {
    /// Reads a template. All errors that can be found without a message are added to `problems`.
    pub(super) fn template(node: &Node, problems: &mut Problems) -> Self {
        // Text that is JSON apart from its placeholders is treated as JSON, so inserted text is escaped.
        let tree = node.as_str().and_then(|text| serde_json::from_str(text).ok()).map(|value| to_node(&value, node));
        let tree = tree.unwrap_or_else(|| {
            problems.extend(
                node.as_str()
                    .and_then(nearly_json)
                    .map(|help| node.warning("`body_template` looks like JSON but is sent as text").help(help)),
            );
            node.clone()
        });
        each_text(&tree, &mut |text, at| check(text, at, problems));
        if !matches!(tree.kind, NodeKind::String(_) | NodeKind::Map(_) | NodeKind::List(_)) {
            let kind = tree.kind_name();
            problems.push(node.error(format!("`body_template` must be text, a map, a list or a function, not {kind}")));
        }
        Self::Template(tree)
    }

    /// Returns `true` if the body can refer to the field called `name` of a case.
    pub(super) fn reaches(&self, name: &str) -> bool {
        match self {
            Self::Legacy | Self::Messages => false,
            Self::Function(_) => true,
            Self::Template(node) => {
                let mut found = false;
                each_text(node, &mut |text, _| {
                    let template = Template::parse(text).ok().flatten();
                    found |= template.is_some_and(|template| template.names().iter().any(|used| used.value == name));
                });
                found
            }
        }
    }

    /// Builds the body, unless a function builds it. Errors are added to `problems`.
    pub(super) fn make(&self, context: &MessageContext<'_>, stream: bool, problems: &mut Problems) -> Value {
        let mut body = match self {
            Self::Legacy => json!({"message": context.message.text, "conversation_id": context.conversation_id}),
            Self::Messages => json!({"messages": context.messages()}),
            Self::Function(_) => return Value::Null,
            Self::Template(node) => {
                let origin = Source::new("the message", "");
                let variables = context.variables().iter().fold(Variables::new(), |variables, (name, value)| {
                    variables.with(name, Node::from_json(&literal(value), &origin))
                });
                return template::resolve(node, &variables.ambient(context.ambient()), problems).to_json();
            }
        };
        if let Some(map) = body.as_object_mut().filter(|_| stream) {
            map.insert("stream".to_owned(), Value::Bool(true));
        }
        body
    }
}

/// Returns what to write in place of a text that is meant as JSON and is not, whatever its placeholders are filled with.
fn nearly_json(text: &str) -> Option<String> {
    let (inside, is_template) = (text.trim(), text.trim().starts_with("{{") || text.contains("{%"));
    if is_template || !inside.starts_with('{') || !inside.ends_with('}') {
        return None;
    }
    let (mut filled, mut rest, mut bare) = (String::new(), text, None);
    while let Some((before, (name, after))) =
        rest.split_once("{{").and_then(|(before, rest)| Some((before, rest.split_once("}}")?)))
    {
        filled += before;
        let is_text = ["message", "conversation_id"].contains(&name.trim());
        bare = bare.or(Some(name.trim()).filter(|_| is_text && before.trim_end().ends_with(':')));
        filled += "null";
        rest = after;
    }
    match (serde_json::from_str::<Value>(&(filled + rest)), bare) {
        (Ok(_), Some(name)) => Some(format!("put the placeholder in quotes: `\"{{{{ {name} }}}}\"`")),
        (Ok(_), None) => None,
        (Err(error), _) => Some(format!("it is not valid JSON: {error}; write a map instead of text")),
    }
}

/// Converts `value` to a tree with the location of `at`.
fn to_node(value: &Value, at: &Node) -> Node {
    let kind = match value {
        Value::Array(items) => NodeKind::List(items.iter().map(|item| to_node(item, at)).collect()),
        Value::Object(entries) => NodeKind::Map(
            entries.iter().map(|(key, value)| (Spanned::new(key.clone(), at.span), to_node(value, at))).collect(),
        ),
        plain => Node::from_json(plain, &at.source).kind,
    };
    Node { kind, span: at.span, tag: None, source: Arc::clone(&at.source) }
}

/// Calls `each` with every string in `node`, including keys, and the node it belongs to.
fn each_text(node: &Node, each: &mut impl FnMut(&str, &Node)) {
    match &node.kind {
        NodeKind::String(text) => each(text, node),
        NodeKind::List(items) => items.iter().for_each(|item| each_text(item, each)),
        NodeKind::Map(entries) => {
            for (key, value) in entries {
                each(&key.value, value);
                each_text(value, each);
            }
        }
        NodeKind::Null | NodeKind::Bool(_) | NodeKind::Number(_) => {}
    }
}

fn check(text: &str, at: &Node, problems: &mut Problems) {
    let template = match Template::parse(text) {
        Ok(template) => template,
        Err(error) => {
            let problem = at.error(error.message);
            return problems.push(error.help.into_iter().fold(problem, model::Diagnostic::help));
        }
    };
    let used = template.iter().flat_map(Template::names);
    for name in used.filter(|name| !NAMES.contains(&name.value.as_str())) {
        let problem =
            at.error(format!("`{}` is not a request body variable", name.value)).suggest(nearest(&name.value, NAMES));
        problems
            .push(problem.help(format!("the variables are {}; a case's own values are in `vars`", NAMES.join(", "))));
    }
    if template.is_none()
        && let Some(name) = NAMES.iter().find(|name| text.contains(&format!("{{{name}}}")))
    {
        let problem = at.warning(format!("`{{{name}}}` is not filled in, so it is sent as it is"));
        problems.push(problem.help(format!("write `{{{{ {name} }}}}`")));
    }
}

/// Escapes `value` so that it is not parsed as a template, because messages may contain template syntax.
fn literal(value: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(literal_text(text)),
        Value::Array(items) => items.iter().map(literal).collect(),
        Value::Object(entries) => {
            entries.iter().map(|(key, value)| (literal_text(key), literal(value))).collect::<Map<_, _>>().into()
        }
        plain => plain.clone(),
    }
}

fn literal_text(text: &str) -> String {
    if !text.contains("{{") && !text.contains("{%") {
        return text.to_owned();
    }
    let mut quoted = String::with_capacity(text.len() * 2);
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match (letter, letters.peek()) {
            ('{', Some('{' | '%' | '#')) => quoted.push_str("{{ '{' }}"),
            _ => quoted.push(letter),
        }
    }
    // A line feed at the very end of a template would be dropped.
    quoted.push_str("{{ '' }}");
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(template: &Value, text: &str) -> (Value, Vec<String>) {
        let node = Node::from_json(template, &Source::new("project.yaml", ""));
        let mut problems = Problems::new();
        let body = Body::template(&node, &mut problems);
        let mut message = UserMessage::text(text);
        message.vars = Map::from_iter([("n".to_owned(), json!(3))]);
        let history = [json!({"role": "user", "content": "a"}), json!({"role": "assistant", "content": "b"})];
        let context = MessageContext { conversation_id: "id", history: &history, message: &message };
        let made = body.make(&context, false, &mut problems);
        (made, problems.iter().map(|problem| problem.message.clone()).collect())
    }

    #[test]
    fn the_reference_page_lists_every_variable() {
        let page = include_str!("../../../../docs/reference/http-agent.md");
        assert!(NAMES.iter().all(|name| page.contains(&format!("\n| `{name}` |"))));
    }

    #[test]
    fn messages_are_never_parsed_as_templates() {
        for text in ["{{ vars.n }}", "{% if %}", "a {{{ x }}} b\n", "{# c #} {{ 1 }}", "{{{{{%", "\"quoted\" \\ {{\n"] {
            assert_eq!(made(&json!({"q": "{{ message }}"}), text), (json!({"q": text}), vec![]), "{text}");
            assert_eq!(made(&json!("<{{ message }}>"), text), (json!(format!("<{text}>")), vec![]), "{text}");
            let body = made(&json!("{{ messages }}"), text).0;
            assert_eq!(body[2], json!({"role": "user", "content": text}));
        }
    }

    #[test]
    fn a_lone_placeholder_keeps_its_type_and_text_is_escaped_within_json() {
        let body =
            json!({"n": "{{ vars.n }}", "t": "n={{ vars.n }}", "s": "{{ script }}", "m": "{{ messages | length }}"});
        assert_eq!(made(&body, "x").0, json!({"n": 3, "t": "n=3", "s": null, "m": "3"}));
        assert_eq!(made(&json!("{\"q\": \"{{ message }}\"}"), "\"x\"").0, json!({"q": "\"x\""}));
        let loops = json!("{% for one in messages %}{{ one.role }} {% endfor %}{{ strftime_now('%Y') | length }}");
        assert_eq!(
            made(&json!("{{ persona.name if persona.name is defined else 'somebody' }}"), "x"),
            (json!("somebody"), vec![])
        );
        assert_eq!(made(&loops, "x"), (json!("user assistant user 4"), vec![]));
        assert_eq!(made(&json!("{\"q\": {{ message | tojson }} }"), "x").0, json!("{\"q\": \"x\" }"));
    }

    #[test]
    fn a_text_that_is_nearly_json_is_reported() {
        let help = |text: &str| nearly_json(text);
        assert_eq!(help(r#"{"q": {{ message }}}"#).unwrap(), "put the placeholder in quotes: `\"{{ message }}\"`");
        assert!(help(r#"{ q: "{{ message }}" }"#).unwrap().starts_with("it is not valid JSON: key must be a string"));
        assert!(help(r#"{"m": {{ messages }},}"#).unwrap().contains("trailing comma"));
        for text in [
            "{{ message }}",
            "Say {{ message }}",
            "[INST] {{ message }} [/INST]",
            r#"{"m": {{ messages }}}"#,
            r#"{"q": "{{ message }}"}"#,
            "{% if vars.a %}{}{% endif %}",
        ] {
            assert_eq!(help(text), None, "{text}");
        }
    }

    #[test]
    fn unknown_body_variables_are_reported_with_a_suggestion() {
        let node = Node::from_json(&json!({"q": ["{{ mesage }}", "{{ x "]}), &Source::new("project.yaml", ""));
        let mut problems = Problems::new();
        Body::template(&node, &mut problems);
        assert_eq!(problems[0].message, "`mesage` is not a request body variable");
        assert_eq!(problems[0].help[0], "did you mean `message`?");
        Body::template(&Node::from_json(&json!(3), &Source::new("f", "")), &mut problems);
        assert!(problems.last().unwrap().message.starts_with("`body_template` must be text"));
    }
}
