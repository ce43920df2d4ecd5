//! Known faults of @isdk/ai-test-runner in reading fixtures files that do not occur here, one per test.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use model::{Case, Scoring};
use serde_json::{Value, json};
use trialrun_suite::{Loaded, Request, load};

fn loaded(text: &str) -> Loaded {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    std::fs::create_dir(root.join("skills")).unwrap();
    std::fs::write(root.join("f.fixture.yaml"), text).unwrap();
    load(&Request {
        root: root.to_owned(),
        skills_dir: root.join("skills"),
        cwd: root.to_owned(),
        targets: vec!["f.fixture.yaml".into()],
        ..Request::default()
    })
}

/// Returns the cases in a file without problems.
fn cases(text: &str) -> Vec<Arc<Case>> {
    let loaded = loaded(text);
    assert!(loaded.diagnostics.is_empty(), "{text}: {:#?}", loaded.diagnostics);
    loaded.suites[0].cases.clone()
}

fn case(text: &str) -> Arc<Case> {
    let cases = cases(text);
    assert_eq!(cases.len(), 1, "{text}");
    Arc::clone(&cases[0])
}

/// Returns the problems with a file, including their help.
fn problems_of(text: &str) -> Vec<String> {
    loaded(text).diagnostics.iter().map(|problem| format!("{problem} {}", problem.help.join(" "))).collect()
}

/// Returns the value under `key` in the first assertion of a case.
fn asserted(case: &Case, key: &str) -> Value {
    case.assertions[0].node.get(key).map(model::Node::to_json).unwrap_or_default()
}

#[test]
fn an_unknown_variable_is_an_error_with_the_nearest_name() {
    for text in [
        "- {name: A, output: '{{nmae}}'}",
        "- {name: A, output: 'Hi {{ nmae }}!'}",
        "- {name: A, output: {'{{nmae}}': 1}}",
        "- {name: A, output: '/^{{nmae}}$/'}",
        "- {name: A, expect: {output: ['{{nmae}}']}}",
        "- {name: A, input: '{{nmae}}', output: x}",
    ] {
        let messages = problems_of(text);
        assert!(
            messages.iter().any(|message| message.starts_with("f.fixture.yaml:1:") && message.contains("nmae")),
            "{text}: {messages:#?}"
        );
        assert!(messages.iter().any(|message| message.contains("did you mean `name`?")), "{text}: {messages:#?}");
    }
    let asked = case("- {output: '{% if x is defined %}x{% else %}none{% endif %}'}");
    assert_eq!(asserted(&asked, "output"), json!("none"));
}

#[test]
fn diff_inside_the_expectation_controls_the_comparison() {
    let case = case("- {expect: {output: Hello, diff: {type: words, permissive: true}}}");
    assert_eq!(asserted(&case, "expect"), json!({"output": "Hello"}));
    assert_eq!(asserted(&case, "diff"), json!({"type": "words", "permissive": true}));
}

#[test]
fn case_variables_override_the_front_matter_in_messages_and_expectations() {
    for text in [
        "name: C\n---\n- {name: F, output: '{{name}}'}",
        "name: C\n---\n- {input: {name: F}, output: '{{name}}'}",
        "name: C\n---\n- {name: F, input: 'hi {{name}}', output: '{{name}}'}",
    ] {
        let case = case(text);
        assert_eq!((&case.messages[0].vars["name"], asserted(&case, "output")), (&json!("F"), json!("F")), "{text}");
    }
    let default = case("name: C\n---\n- {output: '{{name}}'}");
    assert_eq!((&default.messages[0].vars["name"], asserted(&default, "output")), (&json!("C"), json!("C")));
}

#[test]
fn the_reported_expectation_is_the_one_that_was_checked() {
    for (text, expected) in [
        ("output: {b: 2}\n---\n- {output: {a: 1}}", json!({"a": 1})),
        ("output: {b: 2}\n---\n- {name: x}", json!({"b": 2})),
        ("- {output: 'Hi {{n}}', n: A}", json!("Hi A")),
        ("output: x\n---\n- {output: null}", Value::Null),
    ] {
        let case = case(text);
        assert_eq!((case.expected.as_ref(), asserted(&case, "output")), (Some(&expected), expected.clone()), "{text}");
    }
}

#[test]
fn values_with_a_common_name_prefix_are_not_a_cycle() {
    let text = "- {user: {name: A}, user2: '{{user}}', users: ['{{user}}', '{{user2}}'], output: '{{user2.name}} {{users[1].name}}'}";
    assert_eq!(asserted(&case(text), "output"), json!("A A"));
    let messages = problems_of("- {a: '{{b}}', b: '{{a}}', output: '{{a}}'}");
    assert!(!messages.is_empty() && messages[0].contains('a') && messages[0].contains('b'), "{messages:#?}");
}

#[test]
fn keys_stay_in_the_order_they_are_written_in() {
    let case = case("- {v: zz, output: {b: '{{v}}', a: 2, '{{v}}': 3, c: {e: '{{v}}', d: 1}}}");
    assert_eq!(asserted(&case, "output").to_string(), r#"{"b":"zz","a":2,"zz":3,"c":{"e":"zz","d":1}}"#);
}

#[test]
fn auto_enables_scoring_if_any_weight_is_given() {
    let scoring = |text: &str| case(text).ruling.scoring;
    assert_eq!(scoring("- {output: {a: 1}, scoring: auto}"), None);
    let on = Some(Scoring { max_score: 100.0, pass_score: 100.0 });
    assert_eq!(scoring("- {output: {a: {$expect: 1, $score: 5}}, scoring: auto}"), on);
    assert_eq!(scoring("- {output: {a: {$meta: {score: 5}, b: 1}}, scoring: auto}"), on);
    assert_eq!(scoring("- {output: {a: 1}, scoring: true}"), on);
    let wrong = problems_of("- {output: a, scoring: automatic}");
    assert!(wrong[0].contains("scoring"), "{wrong:#?}");
}

#[test]
fn lists_in_an_input_are_not_merged() {
    let case = case("input: {l: [1, 2, 3], m: {x: 1}}\n---\n- {input: {l: [9], m: {y: 2}}, output: x}");
    assert_eq!(case.messages[0].input, Some(json!({"l": [9], "m": {"y": 2, "x": 1}})));
}

#[test]
fn no_variable_name_breaks_templates() {
    for name in ["range", "true", "false", "none", "namespace", "raise_exception", "loop", "join", "strftime_now"] {
        let text = format!("- {{'{name}': 3, n: A, output: 'x {{{{n}}}} y'}}");
        assert_eq!(asserted(&case(&text), "output"), json!("x A y"), "{name}");
    }
    assert_eq!(asserted(&case("- {input: {range: 3}, output: 'x {{range}} y'}"), "output"), json!("x 3 y"));
}

#[test]
fn values_inserted_into_a_regular_expression_are_literal() {
    assert_eq!(asserted(&case("- {price: $5.00, output: '/^{{price}}$/'}"), "output"), json!("/^\\$5\\.00$/"));
}

#[test]
fn the_front_matter_sets_title_skip_only_and_not_for_every_case() {
    let front = |line: &str| cases(&format!("{line}\n---\n- {{n: 1, output: a}}\n- {{n: 2, output: b}}"));
    assert!(front("not: true").iter().all(|case| case.ruling.not));
    assert!(front("skip: later").iter().all(|case| case.skip.as_deref() == Some("later")));
    assert!(front("only: true").iter().all(|case| case.skip.is_none()));
    let ids: Vec<_> = front("title: 'number {{n}}'").iter().map(|case| case.id.clone()).collect();
    assert_eq!(ids, ["number 1", "number 2"]);
    let own = cases("not: true\nskip: true\n---\n- {output: a, not: false, skip: false}\n- {output: b}");
    assert_eq!(
        (own[0].ruling.not, own[0].skip.is_some(), own[1].ruling.not, own[1].skip.is_some()),
        (false, false, true, true)
    );
}
