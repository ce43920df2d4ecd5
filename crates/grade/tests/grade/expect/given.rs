//! Tests of expectations about an agent's whole result in a scenario: its messages, calls, changes and usage.

use model::{
    Change, Evidence, FileChange, Finding, Repository, Status, Step, Tokens, ToolCall, ToolResult, Trace, Usage,
};
use serde_json::{Value, json};

use crate::expect::{evidence, graded};

fn text(message: &str, text: &str) -> Step {
    Step::Text { message: message.into(), text: text.into(), parent: None }
}

fn user(index: usize, text: &str) -> Step {
    Step::UserMessage { index, of: 2, text: text.into() }
}

fn call(id: &str, name: &str, input: Value, message: &str) -> Step {
    Step::ToolCall(ToolCall::new(id, name, input, message))
}

fn result(id: &str, content: &str, is_error: bool) -> Step {
    Step::ToolResult(ToolResult { id: id.into(), content: content.into(), is_error })
}

fn finished(text: &str, output: u64) -> Step {
    let tokens = Tokens { input: 100, output, cache_write: 5, cache_read: 0, reasoning: None };
    Step::Finished {
        subtype: "success".into(),
        is_error: false,
        usage: Usage { tokens: Some(tokens), cost_usd: None },
        text: Some(text.into()),
        result: None,
    }
}

/// Returns evidence with two questions from the user, four calls in three turns, and one call by a sub-agent.
fn story() -> Evidence {
    let steps = [
        user(1, "What is the weather in Ulm?"),
        text("m1", "Let me look."),
        call("c1", "Read", json!({"file_path": "city.txt"}), "m1"),
        result("c1", "Ulm", false),
        call("c2", "Bash", json!({"command": "weather Ulm"}), "m2"),
        call("c3", "Write", json!({"file_path": "log.txt", "content": "x"}), "m2"),
        result("c2", "no such command", true),
        Step::Text { message: "s1".into(), text: "inner".into(), parent: Some("c2".into()) },
        finished("I do not know.", 20),
        user(2, "Try again."),
        call("c4", "Bash", json!({"command": "curl wttr.in"}), "m3"),
        result("c4", "sunny", false),
        text("m4", "It is sunny."),
        finished("It is sunny.", 30),
    ];
    let mut evidence = evidence(Trace::of(&steps));
    evidence.collected.files_changed = vec![
        FileChange { path: "log.txt".into(), change: Change::Added },
        FileChange { path: "src/a.rs".into(), change: Change::Modified },
    ];
    evidence.collected.repository =
        Some(Repository { branch: Some("main".into()), new_commits: vec!["abc fix".into()], ..Repository::default() });
    evidence
}

fn finding(expected: &Value) -> Finding {
    graded(json!({"expect": expected}), &story())
}

fn holds(expected: Value) {
    let finding = finding(&expected);
    assert_eq!((finding.status, finding.score), (Status::Met, Some(1.0)), "{expected}: {:#?}", finding.failures);
    assert_eq!(finding.key.as_deref(), Some("expect"));
}

fn fails(expected: Value, at: &[&str]) {
    let finding = finding(&expected);
    assert_eq!(finding.status, Status::Unmet, "{expected}");
    let paths: Vec<_> = finding.failures.iter().map(|failure| failure.key.as_str()).collect();
    assert_eq!(paths, at, "{expected}: {:#?}", finding.failures);
}

#[test]
fn the_output_is_the_last_answer() {
    holds(json!({"output": "sunny"}));
    holds(json!({"output": {"$eq": "It is sunny."}}));
    fails(json!({"output": "I do not know"}), &["output"]);
    assert_eq!(graded(json!({"output": "/sunny\\.$/"}), &story()).status, Status::Met);
    let silent = evidence(Trace::default());
    assert_eq!(graded(json!({"expect": {"output": {"$exists": false}}}), &silent).status, Status::Met);
    assert_eq!(graded(json!({"output": "/./"}), &silent).status, Status::Unmet);
    assert_eq!(graded(json!({"output": null}), &silent).status, Status::Unmet);
}

#[test]
fn messages_are_the_conversation_with_the_calls_of_each_turn() {
    holds(json!({"messages": {"$eq": [
        {"role": "user", "content": "What is the weather in Ulm?"},
        {"role": "assistant", "content": "Let me look.", "tools": [
            {"name": "Read", "args": {"file_path": "city.txt"}, "result": "Ulm", "is_error": false},
        ]},
        {"role": "assistant", "content": "", "tools": [
            {"name": "Bash", "args": {"command": "weather Ulm"}, "result": "no such command", "is_error": true},
            {"name": "Write", "args": {"file_path": "log.txt", "content": "x"}},
        ]},
        {"role": "user", "content": "Try again."},
        {"role": "assistant", "content": "", "tools": [
            {"name": "Bash", "args": {"command": "curl wttr.in"}, "result": "sunny", "is_error": false},
        ]},
        {"role": "assistant", "content": "It is sunny."},
    ]}}));
    holds(
        json!({"messages": {"$sequence": [{"role": "user"}, {"tools": {"$contains": {"is_error": true}}}, {"role": "user"}]}}),
    );
    holds(json!({"messages.length": 6, "messages[1].tools[0].name": "Read"}));
    holds(json!({"messages": {"$last": {"role": "assistant", "content": "/sunny/"}}}));
    fails(json!({"messages": {"$contains": {"role": "user", "content": "sunny"}}}), &["messages"]);
    fails(
        json!({"messages": {"$each": {"role": "user"}}}),
        &["messages.$each[1].role", "messages.$each[2].role", "messages.$each[4].role", "messages.$each[5].role"],
    );
}

#[test]
fn tools_can_be_expected_in_every_form() {
    for wanted in [
        json!(["Read", "Bash"]),
        json!([{"name": "Bash", "args": {"command": "/wttr/"}}, {"name": "Read"}]),
        json!([]),
        json!({"$all": ["Write", {"name": "Bash"}]}),
        json!({"$sequence": ["Read", "Bash", {"name": "Bash", "result": "sunny"}]}),
        json!({"name": "Bash", "args": {"command": "weather Ulm"}, "is_error": true}),
        json!({"args": {"file_path": "log.txt"}}),
        json!("Write"),
        json!("/^Ba/"),
        json!(true),
        json!({"$not": "WebFetch"}),
        json!({"$not": {"name": "Bash", "args": {"command": "/rm -rf/"}}}),
        json!({"$not": ["Read", "WebFetch"]}),
        json!({"$or": ["WebFetch", "Bash"]}),
        json!({"$or": [{"name": "WebFetch"}, {"$sequence": [{"name": "Write"}, {"name": "Bash"}]}]}),
        json!({"$contains": {"name": "Read"}}),
        json!({"$each": {"name": "/^[A-Z]/"}}),
        json!({"$nth": {"$index": 2, "name": "Write"}}),
        json!({"$first": {"name": "Read"}, "$last": {"name": "Bash"}}),
        json!({"$sort": {"$by": "name", "$last": {"name": "Write"}}}),
    ] {
        holds(json!({"tools": wanted}));
    }
    for (wanted, at) in [
        (json!(["Read", "WebFetch"]), "messages.$all[1]"),
        (json!([{"name": "Bash", "args": {"file_path": "city.txt"}}]), "messages"),
        (json!({"$all": ["WebFetch", "Read"]}), "messages.$all[0]"),
        (json!({"name": "Read", "args": {"file_path": "log.txt"}}), "tools"),
        (json!("read"), "tools"),
        (json!({"$not": "Write"}), "tools"),
        (json!({"$not": true}), "tools"),
        (json!({"$not": {"$or": ["WebFetch", "Read"]}}), "tools"),
        (json!({"$or": ["WebFetch", "Grep"]}), "tools"),
        (json!({"$first": {"name": "Bash"}}), "tools[0].name"),
    ] {
        fails(json!({"tools": wanted}), &[at]);
    }
    let order = finding(&json!({"tools": {"$sequence": ["Write", "Read"]}}));
    assert_eq!(order.status, Status::Unmet);
    assert!(order.failures.iter().any(|failure| failure.key == "messages"), "{:#?}", order.failures);
    // Calls of the same turn have no order.
    assert_eq!(finding(&json!({"tools": {"$sequence": ["Bash", "Write"]}})).status, Status::Unmet);
}

#[test]
fn an_agent_without_calls_has_an_empty_list_of_calls() {
    let spoken = evidence(Trace::of(&[user(1, "Hi"), text("m1", "Hello"), finished("Hello", 1)]));
    let status = |wanted: Value| graded(json!({"expect": {"tools": wanted}}), &spoken).status;
    assert_eq!(status(json!({"$not": true})), Status::Met);
    assert_eq!(status(json!({"$not": "Bash"})), Status::Met);
    assert_eq!(status(json!({"$eq": []})), Status::Met);
    assert_eq!(status(json!([])), Status::Met);
    assert_eq!(status(json!(true)), Status::Unmet);
    assert_eq!(status(json!("Bash")), Status::Unmet);
    assert_eq!(status(json!(["Bash"])), Status::Unmet);
}

#[test]
fn tools_and_messages_and_output_are_checked_together() {
    let expected = |output: &str, role: &str, tool: &str| json!({"output": output, "messages": {"$contains": {"role": role}}, "tools": [tool]});
    holds(expected("sunny", "user", "Read"));
    fails(expected("rain", "user", "Read"), &["output"]);
    fails(expected("sunny", "tool", "Read"), &["messages"]);
    fails(expected("sunny", "user", "Grep"), &["messages"]);
    let scored = graded(
        json!({"expect": {
            "output": {"$expect": "rain", "$score": 20},
            "tools": {"$all": [{"name": "Read", "$score": 75}, {"name": "Grep", "$score": 25}], "$score": 80},
        }, "scoring": true, "passScore": 60}),
        &story(),
    );
    assert_eq!(scored.status, Status::Met);
    assert!((scored.score.unwrap() - 0.6).abs() < 1e-9, "{:#?}", scored.details);
}

#[test]
fn the_state_contains_the_changed_files_and_the_repository() {
    holds(json!({"state": {"files_changed": [{"path": "log.txt", "change": "added"}]}}));
    holds(json!({"state.files_changed": {"$contains": {"path": "/\\.rs$/", "change": "modified"}}}));
    holds(json!({"state.files_changed": {"$each": {"change": {"$ne": "deleted"}}}}));
    holds(json!({"state.files_changed.length": {"$lte": 2}}));
    holds(json!({"state": {"repository": {"branch": "main", "new_commits": ["/fix/"]}}}));
    fails(json!({"state.files_changed": {"$contains": {"path": "other"}}}), &["state.files_changed"]);
    fails(json!({"state": {"files_changed": {"$eq": []}}}), &["state.files_changed"]);
    let untouched = evidence(Trace::of(&[user(1, "Hi"), finished("Hello", 1)]));
    let status = |expected: Value| graded(json!({"expect": expected}), &untouched).status;
    assert_eq!(status(json!({"state.files_changed": {"$eq": []}})), Status::Met);
    assert_eq!(status(json!({"state.repository": null})), Status::Met);
}

#[test]
fn usage_is_the_sum_over_all_messages() {
    holds(json!({"usage": {"input": 200, "output": {"$lte": 50, "$gt": 20}, "cache_write": 10}}));
    fails(json!({"usage": {"output": {"$lt": 50}}}), &["usage.output"]);
}

#[test]
fn values_returned_by_the_agent_take_precedence_over_computed_ones() {
    let own = json!({"output": {"city": "Ulm"}, "usage": {"output": 7}, "mood": "fine", "tools": [{"name": "own"}]});
    let steps = [
        user(1, "Hi"),
        call("c1", "Read", json!({}), "m1"),
        Step::Finished {
            subtype: "success".into(),
            is_error: false,
            usage: Usage::default(),
            text: Some("Ulm".into()),
            result: Some(own),
        },
    ];
    let evidence = evidence(Trace::of(&steps));
    let status = |expected: Value| graded(json!({"expect": expected}), &evidence).status;
    for met in [
        json!({"output": {"city": "Ulm"}, "usage.output": 7, "mood": "fine"}),
        json!({"tools": ["Read"]}),
        json!({"messages": {"$first": {"role": "user"}}}),
        json!({"$expr": "actual.mood === 'fine' && actual.messages.length === 2"}),
    ] {
        assert_eq!(status(met.clone()), Status::Met, "{met}");
    }
    assert_eq!(status(json!({"output": "Ulm"})), Status::Unmet);
    assert_eq!(status(json!({"/^moo/": "fine"})), Status::Met);
}

#[test]
fn an_expectation_has_exactly_one_subject() {
    let refused = |fields: Value| crate::expect::graded_in(None, fields, &story()).unwrap_err();
    assert!(refused(json!({}))[0].contains("needs one of `expect`, `output` and `schema`"));
    assert!(refused(json!({"output": 1, "schema": true}))[0].contains("cannot be combined with another"));
    assert!(refused(json!({"outputs": 1})).iter().any(|message| message.contains("did you mean `output`")));
    assert!(
        refused(json!({"expect": {"tools": {"$sequnce": ["Read"]}}}))
            .iter()
            .any(|message| message.contains("did you mean `$sequence`"))
    );
    assert!(
        refused(json!({"expect": {"tools": {"$all": "Read"}}}))
            .iter()
            .any(|message| message.contains("a list of expectations"))
    );
}

#[test]
fn an_answer_with_json_is_parsed_if_requested() {
    let answered = |answer: &str| evidence(Trace::of(&[text("m1", answer), finished(answer, 1)]));
    let parsed = |fields: Value, answer: &str| {
        let mut fields = fields;
        fields["responseParser"] = json!("json");
        graded(fields, &answered(answer)).status
    };
    let plain = r#"{"a": 1, "b": [2]}"#;
    let fenced = format!("Here it is:\n```json\n{plain}\n```\n");
    for answer in [plain, &fenced] {
        assert_eq!(parsed(json!({"output": {"a": 1, "b": [2]}}), answer), Status::Met, "{answer}");
        assert_eq!(parsed(json!({"output": {"a": 2}}), answer), Status::Unmet, "{answer}");
        assert_eq!(parsed(json!({"expect": {"output": {"a": 1}}}), answer), Status::Met, "{answer}");
        assert_eq!(parsed(json!({"schema": {"type": "object", "required": ["a"]}}), answer), Status::Met, "{answer}");
        assert_eq!(graded(json!({"output": {"a": 1}}), &answered(answer)).status, Status::Unmet, "{answer}");
    }
    assert_eq!(parsed(json!({"output": {"a": 1}}), "no JSON at all"), Status::Unmet);
}

#[test]
fn a_conversation_that_the_agent_did_not_report_is_unknown() {
    let steps = [
        user(1, "hi"),
        text("m1", "x"),
        Step::Finished {
            subtype: "success".into(),
            is_error: false,
            usage: Usage::default(),
            text: Some("x".into()),
            result: Some(json!({"output": "x", "messages": null})),
        },
    ];
    let untold = evidence(Trace::of(&steps));
    let status = |expected: Value| graded(json!({"expect": expected}), &untold).status;
    assert_eq!(status(json!({"messages": {"$exists": false}})), Status::Met);
    assert_eq!(status(json!({"output": "x"})), Status::Met);
    for nothing in
        [json!({"tools": []}), json!({"output": "x", "messages": []}), json!({"messages": {"$exists": true}})]
    {
        assert_eq!(status(nothing.clone()), Status::Unmet, "{nothing}");
    }
}
