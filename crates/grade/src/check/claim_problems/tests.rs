use std::sync::Arc;

use model::{Case, Code, CodeClaim, Diagnostic, Node, NodeKind, Source, Span, Spanned, UNKNOWN_TAG};
use serde_json::{Value, json};

use crate::check::compile;
use crate::check::tests::case;
use crate::context::Context;

/// Returns the errors in the code assertion called `name`, with their positions. `?` is an argument known only at run
/// time.
fn errors_of_code(name: &str, arguments: &[Value]) -> Vec<String> {
    let written: Vec<String> = arguments.iter().map(Value::to_string).collect();
    let source = Source::new("a.test.ts", format!("assert.{name}({})", written.join(", ")));
    let mut start = "assert.(".len() + name.len();
    let mut node_of = |(value, text): (&Value, &String)| {
        let span = Span::new(start, start + text.len());
        start += text.len() + 2;
        let mut node = Node { span, ..Node::from_json(value, &source) };
        if let NodeKind::Map(entries) = &mut node.kind {
            for (key, value) in entries {
                (key.span, value.span) = (span, span);
                if value.as_str() == Some("?") {
                    (value.kind, value.tag) = (NodeKind::Null, Some(UNKNOWN_TAG.into()));
                }
            }
        }
        (value != "?").then_some(node)
    };
    let claim = CodeClaim {
        name: Spanned::new(name.to_owned(), Span::new(0, "assert.".len() + name.len())),
        arguments: arguments.iter().zip(&written).map(&mut node_of).collect(),
        may_have_reply: true,
        source: Arc::clone(&source),
    };
    let code = Code { module: "/a.test.ts".into(), scenario: 0, name: "a".to_owned(), claims: vec![claim] };
    let case = Case { code: Some(Box::new(code)), ..case(&[]) };
    let describe = |problem: &Diagnostic| {
        let place = problem.source.as_ref().unwrap();
        format!("{place}: {} ({})", problem.message, problem.help.join("; "))
    };
    compile(&case, &Context::default()).1.iter().map(describe).collect()
}

#[test]
fn literal_arguments_in_code_are_checked_against_the_fields() {
    let messages = errors_of_code("contains", &[json!("?"), json!(5)]);
    assert_eq!(
        messages,
        ["a.test.ts:1:22: an argument of `assert.contains` must be a string, not a number (put it in quotes)"]
    );
    let messages = errors_of_code("toolCalled", &[json!("?"), json!("Bash"), json!({"command": "["})]);
    assert!(messages.len() == 1 && messages[0].contains("invalid regular expression"), "{messages:?}");
    let messages = errors_of_code("llmJudge", &[json!("?"), json!({"criterai": "kind"})]);
    assert!(messages.iter().any(|problem| problem.contains("did you mean `criteria`")), "{messages:?}");
    let messages = errors_of_code("fileExists", &[json!(true)]);
    assert_eq!(
        messages,
        ["a.test.ts:1:19: an argument of `assert.fileExists` must be a string, not a boolean (put it in quotes)"]
    );
    let messages = errors_of_code("not.contains", &[json!("?"), json!("x")]);
    assert!(messages[0].contains("did you mean `assert.notContains`"), "{messages:?}");
    for (name, near) in
        [("never.toolCalled", "noToolCalled"), ("soft.contains", "contains"), ("contains.not", "notContains")]
    {
        let messages = errors_of_code(name, &[json!("?"), json!("x")]);
        assert!(messages.len() == 1 && messages[0].contains(&format!("did you mean `assert.{near}`")), "{messages:?}");
    }
    let messages = errors_of_code("contains", &[]);
    assert_eq!(messages.len(), 1, "{messages:?}");
}

#[test]
fn literals_beside_values_known_only_at_run_time_are_checked() {
    for (name, arguments, message) in [
        ("toolCalled", json!(["Bash", {"command": "?", "timeout": "["}]), "invalid regular expression"),
        ("toolCalled", json!(["Bash", "?", {"min": "2"}]), "`min` must be a whole number"),
        ("toolCalled", json!(["Bash", {"command": "?"}, {"mni": 2, "max": "?"}]), "did you mean `min`"),
        ("toolCalled", json!(["?", {"tool": "Bash", "argsMatch": {"command": "["}}]), "invalid regular expression"),
        ("llmJudge", json!([{"criteria": "?", "judges": 300}]), "`judges`"),
        ("fileContains", json!(["?", 5]), "must be a string, not a number"),
    ] {
        let messages = errors_of_code(name, arguments.as_array().unwrap());
        assert!(messages.len() == 1 && messages[0].contains(message), "{name}{arguments}: {messages:?}");
    }
}

#[test]
fn arguments_of_a_call_that_seem_to_be_options_are_doubted() {
    for (arguments, help) in [
        (json!(["refund", {"min": 2}]), "write `{}` before them"),
        (json!(["refund", {"callIndex": 0, "capture": ["id"]}]), "write `{}` before them"),
        (json!(["refund", {"args": {"id": "7"}}]), "write what is below `args` in its place"),
    ] {
        let messages = errors_of_code("toolCalled", arguments.as_array().unwrap());
        assert!(messages.len() == 1 && messages[0].contains(help), "{arguments}: {messages:?}");
    }
    for right in [
        json!(["refund", {"id": "7"}]),
        json!(["refund", {"min": 2, "id": "7"}]),
        json!(["refund", {"args": "7"}]),
        json!(["refund", {}, {"min": 2}]),
        json!([{"tool": "refund", "argsMatch": {"min": 2}}]),
    ] {
        assert_eq!(errors_of_code("toolCalled", right.as_array().unwrap()), Vec::<String>::new(), "{right}");
    }
}

#[test]
fn arguments_known_only_at_run_time_are_not_checked() {
    for (name, arguments) in [
        ("contains", json!(["?"])),
        ("contains", json!(["?", "?"])),
        ("contains", json!(["?", {"id": "a"}])),
        // The first argument is either a reply or the name of the tool.
        ("toolCalled", json!(["?", {"order": "17"}])),
        ("toolCalled", json!(["?", "Bash", {"command": "ls"}, {"weight": 2}])),
        ("toolCalled", json!(["Bash", {}, {"min": 0, "max": "?"}])),
        ("toolCalled", json!(["Bash", {}, {"min": 500, "max": "?"}])),
        ("toolCalled", json!(["Bash", {}, {"min": "?", "max": 3}])),
        ("llmJudge", json!([{"criteria": "?", "scale": "?", "threshold": 9}])),
        ("rubric", json!([{"criteria": "?", "at_least": 9}])),
        ("custom", json!([5])),
    ] {
        assert_eq!(errors_of_code(name, arguments.as_array().unwrap()), Vec::<String>::new(), "{name}{arguments}");
    }
}
