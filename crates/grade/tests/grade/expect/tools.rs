//! Tests of expectations about an agent's calls, in all notations.

use expect::{Data, Expectation, Pass, Rules, Strict};
use serde_json::{Value, json};

use crate::expect::{assert_score, found_in_result, host, keys, node};

/// Returns an answer `x` with calls of these names, each in its own message.
fn called(names: &[&str]) -> Value {
    let call = |name: &&str| json!({"role": "assistant", "content": "", "tools": [{"name": name, "args": {"n": 1}}]});
    let mut messages = vec![json!({"role": "user", "content": "go"})];
    messages.extend(names.iter().map(call));
    messages.push(json!({"role": "assistant", "content": "x"}));
    json!({"output": "x", "messages": messages})
}

fn problems_of(expected: &Value) -> Vec<model::Diagnostic> {
    let mut problems = Vec::new();
    Expectation::from_result(&node(expected), Rules::default(), &host(), None, &mut problems);
    problems
}

fn refused(expected: &Value, words: &str) {
    let problems = problems_of(expected);
    let is_meant = |problem: &model::Diagnostic| problem.is_error() && problem.to_string().contains(words);
    assert!(problems.iter().any(is_meant), "{expected}: {problems:#?}");
}

/// Asserts that the calls `yes` match, and the calls `no` do not.
#[track_caller]
fn tells(expected: &Value, yes: &[&[&str]], no: &[&[&str]]) {
    for names in yes {
        let found = found_in_result(expected, &called(names));
        assert_eq!((found.pass, found.score), (Pass::Yes, 1.0), "{expected} of {names:?}: {:#?}", found.flaws);
    }
    for names in no {
        assert_eq!(found_in_result(expected, &called(names)).pass, Pass::No, "{expected} of {names:?}");
    }
}

const DELETES: &[&str] = &["delete_all", "a"];
const READS: &[&str] = &["a", "b"];

#[test]
fn tools_refers_to_tool_calls_in_every_map_that_describes_the_whole_result() {
    for expected in [
        json!({"tools": {"$not": "delete_all"}}),
        json!({"$and": [{"tools": {"$not": "delete_all"}}, {"output": "x"}]}),
        json!({"$and": [{"$and": [{"tools": {"$not": "delete_all"}}]}]}),
        json!({"$expect": {"tools": {"$not": "delete_all"}}, "$score": 5}),
        json!({"$not": {"tools": ["delete_all"]}}),
        json!({"$not": {"tools": "delete_all"}}),
        json!({"tools": {"$not": "delete_all"}, "$expr": "actual.output === 'x'"}),
        json!({"tools": {"$not": "delete_all"}, "$not": {"output": "y"}}),
        json!({"$or": [{"tools": {"$not": "delete_all"}}, {"output": "y"}]}),
        json!({"$or": [{"tools": {"$nin": ["delete_all"]}}, {"output": "y"}]}),
    ] {
        tells(&expected, &[READS, &[]], &[DELETES, &["delete_all"]]);
    }
    tells(&json!({"$or": [{"tools": ["a", "c"]}, {"tools": "b"}]}), &[READS, &["a", "c"]], &[DELETES, &[]]);
    tells(&json!({"$expect": {"$and": [{"tools": {"$sequence": ["a", "b"]}}]}}), &[READS], &[&["b", "a"]]);
}

#[test]
fn a_string_inside_any_operator_is_a_tool_name() {
    for (tools, yes, no) in [
        (json!({"$contains": "a"}), &[READS][..], &[&["ab"][..], &[]][..]),
        (json!({"$all": ["a", "/^b$/"]}), &[READS], &[&["a"], &["a", "bb"]]),
        (json!({"$sequence": ["a", "b"]}), &[READS], &[&["b", "a"]]),
        (json!({"$each": "a"}), &[&["a", "a"]], &[READS]),
        (json!({"$each": {"$or": ["a", "b"]}}), &[READS], &[DELETES]),
        (json!({"$each": {"$in": ["a", "b"]}}), &[READS], &[DELETES]),
        (json!({"$each": {"$nin": ["delete_all"]}}), &[READS], &[DELETES]),
        (json!({"$each": {"$not": "delete_all"}}), &[READS], &[DELETES]),
        (json!({"$each": {"$ne": "delete_all"}}), &[READS], &[DELETES]),
        (json!({"$first": "a"}), &[READS], &[DELETES]),
        (json!({"$last": "a"}), &[DELETES], &[READS]),
        (json!({"$last": {"$expect": "a"}}), &[DELETES], &[READS]),
        (json!({"$nth": {"$index": 1, "$expect": "b"}}), &[READS], &[DELETES]),
        (json!({"$nth": {"$index": 1, "name": "b"}}), &[READS], &[DELETES]),
        (json!({"$in": ["c", "b"]}), &[READS], &[DELETES, &[]]),
        (json!({"$in": [{"name": "b", "args": {"n": 1}}]}), &[READS], &[DELETES]),
        (json!({"$in": [{"name": "b", "args": {"n": 2}}]}), &[], &[READS]),
        (json!({"$nin": ["delete_all", "c"]}), &[READS, &[]], &[DELETES]),
        (json!({"$eq": "b"}), &[READS], &[DELETES]),
        (json!({"$ne": "delete_all"}), &[READS, &[]], &[DELETES]),
        (json!({"$eq": []}), &[&[]], &[READS]),
        (json!({"$not": {"$contains": "delete_all"}}), &[READS, &[]], &[DELETES]),
        (json!({"$not": {"$in": ["delete_all"]}}), &[READS, &[]], &[DELETES]),
        (json!({"$not": {"$and": ["delete_all", {"name": "a"}]}}), &[READS, &[]], &[DELETES]),
        (json!({"$not": {"$or": [{"$contains": "delete_all"}, "c"]}}), &[READS, &[]], &[DELETES]),
        (json!({"$and": [{"$not": "delete_all"}, "a"]}), &[READS], &[DELETES, &[]]),
        (json!({"$or": [{"$all": ["a", "b"]}, {"$not": "a"}]}), &[READS, &[]], &[DELETES]),
        (json!({"$expect": {"$contains": {"$expect": "b"}}}), &[READS], &[DELETES]),
        (json!({"$contains": {"name": "/^a/", "$not": {"args": {"n": 2}}}}), &[READS], &[&["b"]]),
        (json!({"$sort": {"$by": "name", "$first": "a"}}), &[READS, &["b", "a"]], &[&["b"]]),
        (json!({"$contains": true}), &[READS], &[&[]]),
        (json!({"type": "array", "maxItems": 1}), &[&["a"], &[]], &[READS]),
        (json!({"$schema": {"maxItems": 1}}), &[&["a"], &[]], &[READS]),
        (json!({"$expr": "actual.length < 2"}), &[&["a"], &[]], &[READS]),
    ] {
        tells(&json!({"tools": tools}), yes, no);
        tells(&json!({"$and": [{"tools": tools}]}), yes, no);
    }
}

#[test]
fn a_purely_negative_item_applies_to_all_calls() {
    for denial in [
        json!({"$not": {"name": "delete_all"}}),
        json!({"$not": "delete_all"}),
        json!({"$not": "/^delete/"}),
        json!({"$not": {"$or": ["delete_all", "c"]}}),
        json!({"$nin": ["delete_all"]}),
        json!({"$ne": "delete_all"}),
        json!({"$expect": {"$not": "delete_all"}, "$score": 20}),
        json!({"$not": "delete_all", "$title": "nothing is deleted"}),
        json!({"$and": [{"$not": "delete_all"}, {"$not": "c"}]}),
    ] {
        tells(&json!({"tools": [{"name": "a"}, denial]}), &[READS], &[DELETES, &["b"], &[]]);
        tells(&json!({"tools": {"$all": [denial, "a"]}}), &[READS], &[DELETES, &["b"], &[]]);
        tells(&json!({"tools": [denial]}), &[READS, &[]], &[DELETES]);
        tells(&json!({"$not": {"tools": [denial]}}), &[DELETES], &[READS, &[]]);
        refused(&json!({"tools": {"$sequence": ["a", denial]}}), "only what it is not");
    }
    let weighted = json!({"tools": [{"name": "a", "$score": 80}, {"$not": "delete_all", "$score": 20}]});
    assert_score(&found_in_result(&weighted, &called(DELETES)), 0.8);
    assert_eq!(keys(&found_in_result(&weighted, &called(DELETES))), ["tools.$and[1]"]);
}

#[test]
fn unknown_calls_count_as_missing() {
    for answer in [json!({"output": "x"}), json!({"output": "x", "messages": null})] {
        for tools in [
            json!({"$contains": {"$not": "delete_all"}}),
            json!({"$contains": {"$expr": "actual?.name !== 'delete_all'"}}),
            json!({"$or": [{"$contains": {"$not": "delete_all"}}, "a"]}),
            json!({"$each": {"$not": "delete_all"}}),
            json!({"$expr": "true"}),
        ] {
            let found = found_in_result(&json!({"tools": tools}), &answer);
            assert_eq!((found.pass, keys(&found)), (Pass::No, vec!["tools"]), "{tools} of {answer}");
        }
        // If no calls are known, this tool was not called.
        assert_eq!(found_in_result(&json!({"tools": {"$not": "delete_all"}}), &answer).pass, Pass::Yes);
    }
    // A message without calls has no call that could differ from this.
    let mixed = json!({"tools": [{"$or": [{"name": "c"}, {"$not": {"name": "/./"}}]}]});
    tells(&mixed, &[&["c"]], &[READS, &[]]);
}

#[test]
fn the_weight_of_a_single_expected_call_counts() {
    let expected = json!({"output": {"$expect": "x", "$score": 20}, "tools": {"name": "c", "$score": 80}});
    assert_score(&found_in_result(&expected, &called(READS)), 0.2);
}

#[test]
fn invalid_tool_call_expectations_are_rejected() {
    refused(&json!({"tools": {"$contains": ["a", "b"]}}), "a list cannot describe one call");
    refused(&json!({"tools": {"$not": {"$contains": ["delete_all"]}}}), "a list cannot describe one call");
    refused(&json!({"tools": {"name": "a", "$not": "delete_all"}}), "`name` is a key of a single call");
    refused(&json!({"$not": {"tools": {"name": "a", "$expr": "true"}}}), "`name` is a key of a single call");
}

#[test]
fn a_strict_match_with_tools_does_not_also_require_messages_and_calls() {
    let rules = Rules { strict: Strict { object: true, ..Strict::default() }, ..Rules::default() };
    let mut answer = called(READS);
    answer["tools"] = json!([{"name": "a", "args": {"n": 1}}, {"name": "b", "args": {"n": 1}}]);
    let call = |name: &str, n: i64| json!({"name": name, "args": {"n": n}});
    for tools in [json!([call("a", 1), call("b", 1)]), call("a", 1), json!({"$not": "c"}), json!([{"$not": "c"}])] {
        let expected = json!({"output": "x", "tools": tools});
        let mut problems = Vec::new();
        let expectation = Expectation::from_result(&node(&expected), rules.clone(), &host(), None, &mut problems);
        let found = expectation.judge(Some(&answer), &Data::default());
        assert_eq!(found.pass, Pass::Yes, "{tools}: {:#?}", found.flaws);
    }
}

#[test]
fn a_key_similar_to_a_standard_result_key_is_reported() {
    for (key, near) in
        [("otput", "output"), ("tool", "tools"), ("message", "messages"), ("Tools", "tools"), ("otput.a", "output")]
    {
        for expected in [json!({key: "x"}), json!({"$and": [{key: "x"}]})] {
            let problems = problems_of(&expected);
            // The singular form may be a key of the agent's own.
            let is_error = !["tool", "message"].contains(&key);
            assert_eq!(problems.iter().any(model::Diagnostic::is_error), is_error, "{expected}: {problems:#?}");
            assert!(problems.iter().any(|problem| format!("{problem:?}").contains(near)), "{expected}: {problems:#?}");
        }
    }
    let usual = json!({"output": 1, "messages[0].tools": 1, "tools.length": 1, "answer": 1, "/otput/": 1});
    assert!(problems_of(&usual).is_empty(), "{:#?}", problems_of(&usual));
}
