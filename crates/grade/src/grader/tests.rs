//! Graders as the other tools decide them.

use model::{Arguments, AssertionScope, Case, Excerpt, Source, Span, Spanned, Status};
use serde_json::{Value, json};

use super::*;
use crate::check::{compile, grade};
use crate::context::Context;
use crate::example::EvidenceBuilder;

/// Returns the status and the score of a grader with these checks.
#[track_caller]
#[allow(clippy::needless_pass_by_value)]
fn graded(checks: Value, evidence: &Evidence) -> (Status, f64) {
    let entry = json!({"id": "a", "type": KIND, "checks": checks, "share": true});
    let source = Source::new("eval.yaml", entry.to_string());
    let mut case = Case::new("a", Excerpt::of_file("eval.yaml"));
    case.assertions.push(AssertionSpec {
        node: Node { tag: Some(TAG.into()), ..Node::from_json(&entry, &source) },
        arguments: Arguments::Fields,
        about: AssertionScope::Trial,
        id: "a".into(),
        kind: Spanned::new(KIND.into(), Span::default()),
        weight: 1.0,
    });
    let (compiled, problems) = compile(&case, &Context::default());
    assert_eq!(problems.iter().map(|problem| problem.message.as_str()).collect::<Vec<_>>(), [] as [&str; 0], "{entry}");
    let finding = grade(&compiled, evidence).remove(0);
    (finding.status, finding.score.unwrap_or(-1.0))
}

/// Returns the problems with a grader that has this check.
fn problems_with(check: &Value) -> Vec<String> {
    let source = Source::new("eval.yaml", check.to_string());
    let mut problems = Problems::new();
    assert!(Check::read(&Node::from_json(check, &source), &mut problems).is_none(), "{check}");
    problems.into_iter().map(|problem| problem.message).collect()
}

#[test]
fn checks_that_hold_for_every_answer_are_refused() {
    for (check, message) in [
        (json!({"check": "answer", "matches": ".*"}), "/.*/ matches every answer, so it asserts nothing"),
        (
            json!({"check": "calls", "patterns": [{"name": "x"}], "min": 0}),
            "any number of calls is enough, so it asserts nothing",
        ),
    ] {
        assert_eq!(problems_with(&check), [message], "{check}");
    }
    // It asks for an answer.
    let check = json!({"check": "answer", "matches": "\\S"});
    let mut problems = Problems::new();
    assert!(Check::read(&Node::from_json(&check, &Source::new("a", "")), &mut problems).is_some());
    assert!(matches!(problems.as_slice(), [problem] if !problem.is_error()), "{problems:?}");
    let evidence = EvidenceBuilder::new().answer("Hi").file("a.txt", Some("x")).evidence();
    // The file must exist, and a forbidden match is one that every answer has.
    assert_eq!(graded(json!([{"check": "files", "path": "a.txt", "matches": ".*"}]), &evidence).0, Status::Met);
    assert_eq!(graded(json!([{"check": "answer", "matches": ".*", "not": true}]), &evidence).0, Status::Unmet);
}

#[track_caller]
fn scored(scorer: &str, arguments: &Value, targets: &[&str], answer: &str) -> f64 {
    let mut check = json!({"check": "scorer", "scorer": scorer, "targets": targets});
    check.as_object_mut().unwrap().extend(arguments.as_object().unwrap().clone());
    graded(json!([check]), &EvidenceBuilder::new().answer(answer).evidence()).1
}

#[test]
fn answers_and_files_are_searched() {
    let evidence = || {
        EvidenceBuilder::new()
            .answer("Hello World")
            .files(&[("src/a.cs", "int Add(int a)"), ("src/b.cs", "int Sub()"), ("notes.md", "x")])
            .file("notes.md", Some("x"))
            .evidence()
    };
    for (check, status) in [
        (json!({"check": "answer", "contains": "hello"}), Status::Met),
        (json!({"check": "answer", "contains": "hello", "case": true}), Status::Unmet),
        (json!({"check": "answer", "contains": "bye", "not": true}), Status::Met),
        (json!({"check": "answer", "matches": "(?i)^hello"}), Status::Met),
        (json!({"check": "answer", "equals": " Hello World\n"}), Status::Met),
        (json!({"check": "files", "path": "**/*.cs"}), Status::Met),
        (json!({"check": "files", "path": "*.cs"}), Status::Unmet),
        (json!({"check": "files", "path": "src/*.{fs,cs}"}), Status::Met),
        (json!({"check": "files", "path": "**/*.py", "not": true}), Status::Met),
        (json!({"check": "files", "path": "notes.md"}), Status::Met),
        (json!({"check": "files", "path": "**/*.cs", "matches": "Add\\("}), Status::Met),
        (json!({"check": "files", "path": "**/*.cs", "matches": "Add\\(", "not": true}), Status::Unmet),
        (json!({"check": "files", "path": "**/*.cs", "contains": "Mul", "not": true}), Status::Met),
        // The path is probably misspelt.
        (json!({"check": "files", "path": "**/*.py", "contains": "Mul", "not": true}), Status::Unmet),
        (json!({"check": "answered", "ended": true}), Status::Met),
        (json!({"check": "undecided", "reason": "why"}), Status::Undecided),
    ] {
        assert_eq!(graded(json!([check]), &evidence()).0, status, "{check}");
    }
    let silent = EvidenceBuilder::new().evidence();
    assert_eq!(graded(json!([{"check": "answer", "contains": "x", "not": true}]), &silent).0, Status::Undecided);
    assert_eq!(graded(json!([{"check": "answer", "contains": "x"}]), &silent).0, Status::Unmet);
    let two = json!([{"check": "answer", "contains": "hello"}, {"check": "answer", "contains": "bye"}]);
    assert_eq!(graded(two, &evidence()), (Status::Unmet, 0.5));
}

#[test]
fn calls_without_reported_arguments_decide_nothing_about_them() {
    let evidence = EvidenceBuilder::new().call("Bash", Value::Null).answer("Done.").evidence();
    let none = |pattern: Value| json!([{"check": "calls", "patterns": [pattern], "min": 0, "max": 0}]);
    for (pattern, status) in [
        (json!({"name": "bash", "command": "rm"}), Status::Undecided),
        (json!({"name": "view", "path": "a"}), Status::Met),
        (json!({"name": "bash"}), Status::Unmet),
    ] {
        assert_eq!(graded(none(pattern.clone()), &evidence).0, status, "{pattern}");
    }
}

#[test]
fn calls_are_found_under_the_names_of_copilot() {
    let evidence = EvidenceBuilder::new()
        .call("Bash", json!({"command": "npm test"}))
        .call("Read", json!({"file_path": "src/a.rs", "limit": 5}))
        .call("mcp__azure__list", json!({"region": "eu"}))
        .answer("Done.")
        .evidence();
    let calls = |pattern: Value, rest: Value| {
        let mut check = json!({"check": "calls", "patterns": [pattern], "min": 1});
        check.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        json!([check])
    };
    let none = || json!({"min": 0, "max": 0});
    for (checks, status) in [
        (calls(json!({"name": "^(bash|powershell)$"}), json!({})), Status::Met),
        (calls(json!({"name": "bash", "command": "^npm"}), none()), Status::Unmet),
        (calls(json!({"name": "bash", "command": "rm"}), none()), Status::Met),
        (calls(json!({"tool": "VIEW", "path": "a\\.rs$"}), json!({})), Status::Met),
        (calls(json!({"name": "azure-list"}), json!({"final": true})), Status::Met),
        (calls(json!({"name": "view"}), json!({"final": true})), Status::Unmet),
        (calls(json!({"name": "list", "args": {"region": "^eu"}}), json!({})), Status::Met),
        (calls(json!({"tool": "Read", "args": {"limit": {"range": {"gte": 5, "lt": 6}}}}), json!({})), Status::Met),
        (calls(json!({"tool": "Read", "args": {"limit": {"equals": 6}}}), json!({})), Status::Unmet),
        (calls(json!({"name": "bash"}), json!({"min": 2})), Status::Unmet),
        (calls(json!({"name": "bash|view"}), json!({"only": true})), Status::Unmet),
        (calls(json!({"name": "."}), json!({"only": true})), Status::Met),
        (json!([{"check": "sequence", "steps": [{"name": "bash"}, {"name": "azure"}]}]), Status::Met),
        (json!([{"check": "sequence", "steps": [{"name": "azure"}, {"name": "bash"}]}]), Status::Unmet),
        (json!([{"check": "sequence", "order": "any", "steps": [{"name": "azure"}, {"name": "bash"}]}]), Status::Met),
        (
            json!([{"check": "sequence", "order": "exact", "steps": [{"name": "bash"}, {"name": "azure"}]}]),
            Status::Unmet,
        ),
        (json!([{"check": "at_most", "of": "calls", "max": 3}]), Status::Met),
        (json!([{"check": "at_most", "of": "calls", "max": 2}]), Status::Unmet),
        (json!([{"check": "at_most", "of": "errors", "max": 0}]), Status::Met),
    ] {
        assert_eq!(graded(checks.clone(), &evidence).0, status, "{checks}");
    }
    let silent = EvidenceBuilder::new().asks("Go").calls_unreported().answer("Done.").evidence();
    assert_eq!(graded(calls(json!({"name": "bash"}), none()), &silent).0, Status::Undecided);
}

#[test]
fn skills_are_compared_by_their_bare_names() {
    let evidence = EvidenceBuilder::new()
        .call("Skill", json!({"skill": "shop:returns"}))
        .call("Skill", json!({"skill": "refunds"}))
        .evidence();
    for (check, status) in [
        (json!({"check": "skills", "required": ["returns"]}), Status::Met),
        (json!({"check": "skills", "required": ["other"]}), Status::Unmet),
        (json!({"check": "skills", "forbidden": ["refunds"]}), Status::Unmet),
        (json!({"check": "skills", "forbidden": ["other"]}), Status::Met),
        (json!({"check": "skills", "required": ["returns"], "only": true}), Status::Unmet),
        (json!({"check": "skills", "required": ["refunds", "returns"], "order": "in_order"}), Status::Unmet),
        (json!({"check": "skills", "required": ["returns", "refunds"], "order": "exact"}), Status::Met),
    ] {
        assert_eq!(graded(json!([check]), &evidence).0, status, "{check}");
    }
}

#[test]
fn a_command_whose_program_is_missing_is_undecided() {
    let of = |program: Value, exit_code, stdout| {
        let run = "python3 check.py";
        let node = json!({"check": "command", "run": run, "timeout_ms": 30_000, "program": program, "result": true});
        graded(json!([node]), &EvidenceBuilder::new().ran(run, exit_code, stdout, "").evidence())
    };
    let python = || json!("python3");
    assert_eq!(of(python(), 127, "").0, Status::Undecided);
    assert_eq!(of(Value::Null, 127, ""), (Status::Unmet, 0.0));
    assert_eq!(of(python(), 1, ""), (Status::Unmet, 0.0));
    assert_eq!(of(python(), 0, "{\"passed\": true, \"score\": 0.5}"), (Status::Met, 0.5));
    assert_eq!(of(python(), 0, "ok").0, Status::Undecided);
}

#[test]
fn answers_are_scored_as_by_inspect() {
    for (scorer, arguments, targets, answer, score) in [
        ("match", json!({}), &["Paris"][..], "It is paris.", 1.0),
        ("match", json!({"location": "begin"}), &["Paris"], "It is Paris", 0.0),
        ("match", json!({"location": "any"}), &["Oslo", "Paris"], "It is Paris, I think", 1.0),
        ("match", json!({"location": "exact"}), &["Paris"], " *Paris*. ", 1.0),
        ("match", json!({"case": true}), &["Paris"], "paris", 0.0),
        ("match", json!({}), &["5"], "25", 1.0),
        ("match", json!({"numeric": true}), &["5"], "25", 0.0),
        ("match", json!({"numeric": true}), &["1200"], "The total is $1,200.", 1.0),
        ("match", json!({"numeric": true, "location": "any"}), &["3.14"], "between 3.140 and 4", 1.0),
        ("match", json!({"numeric": true}), &["60"], "60%", 0.0),
        ("match", json!({"numeric": true}), &["Oslo"], "It is **Oslo**.", 1.0),
        ("includes", json!({}), &["LAKE"], "by the lake", 1.0),
        ("includes", json!({"case": true}), &["LAKE"], "by the lake", 0.0),
        ("pattern", json!({"pattern": "capital: (\\w+)"}), &["paris"], "Capital: Paris!", 1.0),
        ("pattern", json!({"pattern": "(\\d+) of (\\d+)", "match_all": true}), &["3"], "3 of 4", 0.0),
        ("answer", json!({"pattern": "letter"}), &["B"], "ANSWER: A\nno, answer : b.", 1.0),
        ("answer", json!({"pattern": "letter"}), &["B"], "ANSWER: Bad", 0.0),
        ("answer", json!({"pattern": "word"}), &["yes"], "So: ANSWER: Yes!", 1.0),
        ("answer", json!({"pattern": "word"}), &["yes"], "ANSWER: yes it is", 0.0),
        ("answer", json!({"pattern": "line"}), &["new york"], "I think\nANSWER: New York", 1.0),
        ("answer", json!({"pattern": "line"}), &["new york"], "ANSWER: New York\nBye", 0.0),
        ("exact", json!({}), &["the lake"], "A Lake.", 1.0),
        ("exact", json!({}), &["lake"], "a big lake", 0.0),
        ("exact", json!({}), &["3"], "(3.0)", 1.0),
        ("f1", json!({"threshold": 0.5}), &["the blue lake"], "blue sea", 0.5),
        ("f1", json!({}), &["1200"], "The total is $1,200.", 0.5),
        ("choice", json!({"choices": 3}), &["B"], "ANSWER: b", 1.0),
        ("choice", json!({"choices": 3}), &["B"], "ANSWER: D", 0.0),
        ("choice", json!({"choices": 3}), &["B"], "Well.\nANSWER: (B)\n", 1.0),
        ("choice", json!({"choices": 3, "multiple_correct": true}), &["A", "C"], "ANSWER: A and C", 1.0),
        ("choice", json!({"choices": 3, "multiple_correct": true}), &["A,C"], "ANSWER: CA", 1.0),
        ("choice", json!({"choices": 3}), &["A", "C"], "ANSWER: A", 0.0),
    ] {
        let is = scored(scorer, &arguments, targets, answer);
        assert!((is - score).abs() < 1e-9, "{scorer} {arguments} {targets:?} {answer:?}: {is}");
    }
}

#[test]
fn expected_calls_are_scored_as_by_deepeval() {
    let evidence = EvidenceBuilder::new()
        .call("search", json!({"q": "lake", "n": 3}))
        .call("book", json!({"day": 1}))
        .answer("Booked.")
        .evidence();
    let tool = |name: &str, input: Value| json!({"name": name, "input": input});
    for (expected, rest, score) in [
        (json!([tool("search", Value::Null)]), json!({}), 1.0),
        (json!([tool("search", Value::Null), tool("pay", Value::Null)]), json!({}), 0.5),
        (json!([tool("search", json!({"q": "lake", "n": 4}))]), json!({"input": true}), 0.5),
        (
            json!([tool("search", json!({"q": "lake", "n": 3})), tool("book", json!({"day": 2}))]),
            json!({"input": true}),
            0.5,
        ),
        (json!([tool("book", Value::Null), tool("search", Value::Null)]), json!({}), 1.0),
        (json!([tool("book", Value::Null), tool("search", Value::Null)]), json!({"ordered": true}), 0.5),
        (json!([tool("search", Value::Null)]), json!({"exact": true}), 0.0),
        (json!([tool("search", Value::Null), tool("book", Value::Null)]), json!({"exact": true}), 1.0),
        (json!([tool("search", Value::Null), tool("pay", Value::Null)]), json!({"strict": true}), 0.0),
        (json!([]), json!({}), 0.0),
    ] {
        let mut check = json!({"check": "tools", "expected": expected});
        check.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        let (_, is) = graded(json!([check]), &evidence);
        assert!((is - score).abs() < 1e-9, "{check}: {is}");
    }
}
