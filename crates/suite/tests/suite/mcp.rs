//! Tests of MCP servers: accepted and rejected content.

use model::{AssertionScope, Node};
use serde_json::{Value, json};

use crate::scratch::{Scratch, all_problems, describe};

const SUITE: &str = "suite: mcp
tags: [server]
contract: lock.json
protocol: { ignore: [unknown_cursor] }
safety: false
fuzz: { seed: 7, except: [wipe], call_timeout: 2s, advisory: true }
calls:
  - { name: sums, call: add, arguments: { a: 1 }, returns: { sum: 1 }, within: 2s, max_bytes: 900, progress: 1 }
  - { call: add, fails: /no/, expect: [{ contains: a }] }
  - { call: slow, cancel_after: 100ms, timeout: 4s }
  - name: both
    steps: [{ call: add, error: -32602 }, { call: add, arguments: null }]
";

fn messages(case: &model::Case) -> Vec<Value> {
    case.messages.iter().map(|message| serde_json::from_str(&message.text).unwrap()).collect()
}

#[test]
fn checks_and_calls_become_cases() {
    let loaded = Scratch::new().write("tests/s.yaml", SUITE).load(&["tests/s.yaml"]);
    assert!(loaded.diagnostics.is_empty(), "{:?}", loaded.diagnostics);
    let cases = &loaded.suites[0].cases;
    let ids: Vec<&str> = cases.iter().map(|case| case.id.as_str()).collect();
    assert_eq!(ids, ["contract", "protocol", "fuzz", "sums", "add-2", "slow-3", "both"]);
    assert!(cases.iter().all(|case| case.tags == ["server"]));
    assert!(cases.iter().all(|case| case.runner.agent.as_ref().is_some_and(|(name, _)| name == "mcp")));
    assert_eq!(messages(&cases[0]), [json!({"check": "contract", "file": "lock.json"})]);
    let fuzz = json!({"check": "fuzz", "seed": 7, "except": ["wipe"], "timeout_ms": 2000});
    assert_eq!(messages(&cases[2]), [fuzz]);
    let assertion = |case: usize| cases[case].assertions[0].node.to_json();
    assert_eq!(assertion(1), json!({"ignore": ["unknown_cursor"], "type": "mcp_rules"}));
    assert_eq!(assertion(2), json!({"advisory": true, "type": "mcp_rules"}));
    assert_eq!(messages(&cases[3]), [json!({"call": "add", "arguments": {"a": 1}, "progress": true})]);
    let expected = |case: usize| -> Vec<(String, Value)> {
        let expectation = |node: &Node| node.get("expect").map(Node::to_json).unwrap_or_default();
        cases[case].assertions.iter().map(|spec| (spec.id.clone(), expectation(&spec.node))).collect()
    };
    let fine = json!({"isError": false, "error": {"$exists": false}, "schemaErrors": {"$exists": false}});
    let sums = [
        ("succeeds", fine.clone()),
        ("returns", json!({"output": {"sum": 1}})),
        ("within", json!({"durationMs": {"$lte": 2000}})),
        ("max-bytes", json!({"bytes": {"$lte": 900}})),
        ("progress", json!({"progress": {"$gte": 1}})),
    ];
    assert_eq!(expected(3), sums.map(|(id, value)| (id.to_owned(), value)));
    assert_eq!(expected(4)[0], ("fails".to_owned(), json!({"isError": true, "text": "/no/"})));
    assert_eq!(cases[4].assertions[1].kind.value, "contains");
    assert_eq!(expected(5), [("cancelled".to_owned(), json!({"cancelled": true, "alive": true}))]);
    assert_eq!(
        expected(6),
        [("error".to_owned(), json!({"error": {"code": -32602}})), ("succeeds-2".to_owned(), fine)]
    );
    let scopes: Vec<AssertionScope> = cases[6].assertions.iter().map(|spec| spec.about).collect();
    assert_eq!(scopes, [AssertionScope::Reply(1), AssertionScope::Reply(2)]);
    assert_eq!(messages(&cases[6])[1], json!({"call": "add", "arguments": null}));
}

#[test]
fn mistakes_are_reported() {
    for (content, problem) in [
        ("suite: mcp\n", "the suite has no cases"),
        ("suite: mpc\nsafety: true\n", "`suite` must be `mcp`"),
        ("suite: mcp\ncontract: true\n", "`contract` must be a map"),
        ("suite: mcp\ncalls: [{ name: x }]\n", "a call has no `call`"),
        (
            "suite: mcp\ncalls: [{ call: a, fails: true, error: 1 }]\n",
            "only one of `cancel_after`, `fails` and `error`",
        ),
        ("suite: mcp\ncalls: [{ call: a, retuns: 1 }]\n", "unknown key `retuns`"),
        ("suite: mcp\ncalls: [{ steps: [] }]\n", "`steps` has no calls"),
    ] {
        let loaded = Scratch::new().write("tests/s.yaml", content).load(&["tests/s.yaml"]);
        let problems = describe(&all_problems(&loaded));
        assert!(problems.iter().any(|found| found.contains(problem)), "{content}: {problems:?}");
    }
}

#[test]
fn no_suite_of_a_server_makes_its_reader_panic() {
    let scratch = Scratch::new();
    testkit::fuzz(&[SUITE.as_bytes().to_vec()], |bytes| {
        for problem in scratch.write("tests/s.yaml", bytes).load(&["tests/s.yaml"]).diagnostics {
            drop(problem.to_string());
        }
    });
}
