//! Known faults of the matching engine of @isdk/ai-test-runner that do not occur here, one per test.

use expect::{Budget, Data, Expectation, Pass, Rules, Shares, Strict};
use model::Status;
use serde_json::{Value, json};

use crate::expect::{
    answered, assert_score, critical, fails, found, found_by, found_in_result, graded, graded_in, holds, host, keys,
    node, read, refused,
};

#[test]
fn every_key_of_a_map_in_a_contains_or_an_or_must_match() {
    let alice = json!({"$contains": {"role": "assistant", "content": "/Alice/"}});
    holds(&alice, &json!([{"role": "user"}, {"role": "assistant", "content": "Hi Alice"}]));
    fails(&alice, &json!([{"role": "user", "content": "Alice"}, {"role": "assistant", "content": "Hi"}]), &[""]);
    assert_score(&found(&alice, &json!([{"role": "user", "content": "Alice"}])), 0.5);
    fails(&json!({"$or": [{"a": 1, "b": 2}]}), &json!({"a": 1, "b": 3}), &[""]);
    assert_score(&found(&json!({"$or": [{"a": 1, "b": 2}]}), &json!({"a": 1, "b": 3})), 0.5);
    fails(&json!({"$or": [[1, 2]]}), &json!([1, 3]), &[""]);
    fails(&json!({"$contains": {"a": {"b": 1, "c": 2}}}), &json!([{"a": {"b": 1}}]), &[""]);
}

#[test]
fn the_name_and_the_arguments_of_a_call_must_both_match() {
    let wanted = json!({"tools": [{"name": "get", "args": {"id": 1, "all": true}}]});
    let call = |name: &str, args: Value| json!({"messages": [{"tools": [{"name": name, "args": args}]}]});
    assert_eq!(found_in_result(&wanted, &call("get", json!({"id": 1, "all": true}))).pass, Pass::Yes);
    for other in [call("put", json!({"id": 1, "all": true})), call("get", json!({"id": 1})), call("get", json!({}))] {
        assert_eq!(found_in_result(&wanted, &other).pass, Pass::No, "{other}");
    }
}

#[test]
fn an_operator_next_to_plain_keys_is_checked_together_with_them() {
    let both = json!({"$not": {"draft": true}, "author": {"$exists": true}});
    holds(&both, &json!({"author": "A"}));
    fails(&both, &json!({"author": "A", "draft": true}), &["$not"]);
    fails(&both, &json!({}), &["author"]);
    assert_score(&found(&both, &json!({})), 0.5);
    fails(&json!({"u": {"$exists": true, "x": 1}}), &json!({"u": {"x": 2}}), &["u.x"]);
}

#[test]
fn several_operators_in_one_map_must_all_hold() {
    let range = json!({"$gte": 1, "$lte": 5});
    holds(&range, &json!(3));
    fails(&range, &json!(0), &["$gte"]);
    fails(&range, &json!(6), &["$lte"]);
    fails(&json!({"n": range}), &json!({"n": 6}), &["n.$lte"]);
    assert_score(&found(&range, &json!(6)), 0.5);
    fails(&json!({"$or": [{"a": 2}], "$and": [{"a": 1}]}), &json!({"a": 1}), &["$or"]);
    holds(&json!({"$sort": {"$first": 1, "$last": 3}}), &json!([3, 1, 2]));
    fails(&json!({"$sort": {"$first": 1, "$last": 3}}), &json!([3, 1, 4]), &["$last[2]"]);
}

#[test]
fn an_empty_expectation_gets_the_full_score() {
    for expected in [json!([]), json!({"$and": []}), json!({"$all": []}), json!({"$sequence": []})] {
        holds(&expected, &json!([1, 2]));
    }
    holds(&json!({}), &json!({"a": 1}));
    holds(&json!({"u": {}}), &json!({"u": {"a": 1}}));
    holds(&json!({"$each": 1}), &json!([]));
    holds(&json!(""), &json!("any"));
    fails(&json!({}), &json!("text"), &[""]);
    fails(&json!({}), &Value::Null, &[""]);
    let (nothing, problems) = read(&Rules::default(), &json!({"$or": []}));
    assert_eq!(nothing.judge(Some(&json!(1)), &Data::default()).pass, Pass::No);
    assert_eq!(problems, ["case.yaml:1:1: the list of `$or` is empty, so no value matches"]);
}

#[test]
fn a_full_match_has_exactly_the_full_score_for_any_number_of_parts() {
    for count in 1..=60 {
        let keys = || (0..count).map(|number| format!("k{number}"));
        let map: Value = Value::Object(keys().map(|key| (key, 1.into())).collect());
        let steps = Value::Array((0..count).map(Value::from).collect());
        let weighted = Value::Array((0..count).map(|index| json!({"$expect": index, "$score": index + 1})).collect());
        let nested = json!({"a": map, "b": steps, "c": {"$each": {"$gte": 0}}});
        let actual = json!({"a": map, "b": steps, "c": steps});
        for (expected, actual) in [
            (&map, &map),
            (&steps, &steps),
            (&json!({"$sequence": steps}), &steps),
            (&json!({"$sequence": weighted}), &steps),
            (&json!({"$all": steps}), &steps),
            (&weighted, &steps),
            (&nested, &actual),
        ] {
            assert_eq!(found(expected, actual).score, 1.0, "{count}: {expected}");
        }
        let finding = graded(json!({"output": map, "scoring": true}), &answered(&map));
        assert_eq!((finding.status, finding.score), (Status::Met, Some(1.0)), "{count}");
    }
}

#[test]
fn a_missing_value_is_not_the_string_undefined() {
    fails(&json!({"a": "/.+/"}), &json!({}), &["a"]);
    fails(&json!({"a": "/undefined/"}), &json!({}), &["a"]);
    holds(&json!({"a": {"$not": "/undefined/"}}), &json!({}));
    holds(&json!("/^null$/"), &Value::Null);
    holds(&json!("/^\\{\"a\":5\\}$/"), &json!({"a": 5}));
    let mut problems = Vec::new();
    let expectation = Expectation::from_value(&node(&json!("/./")), Rules::default(), &host(), None, &mut problems);
    assert_eq!(expectation.judge(None, &Data::default()).pass, Pass::No);
}

fn messages() -> Value {
    json!([
        {"role": "user", "content": "weather?"},
        {"role": "assistant", "content": "", "tools": [{"name": "weather", "args": {"city": "Ulm"}}]},
        {"role": "assistant", "content": "", "tools": [{"name": "mail", "args": {}}, {"name": "log", "args": {}}]},
        {"role": "assistant", "content": "done"},
    ])
}

#[test]
fn expected_tools_are_checked_in_every_form() {
    let given = json!({"output": "x", "messages": messages()});
    let silent = json!({"output": "x", "messages": [{"role": "user", "content": "weather?"}]});
    for (wanted, there, nothing) in [
        (json!({"name": "weather"}), true, false),
        (json!({"name": "nope"}), false, false),
        (json!({"name": "weather", "args": {"city": "Ulm"}}), true, false),
        (json!({"name": "weather", "args": {"city": "Bonn"}}), false, false),
        (json!("weather"), true, false),
        (json!("weath"), false, false),
        (json!("/^wea/"), true, false),
        (json!(true), true, false),
        (json!({"$contains": {"name": "log"}}), true, false),
        (json!({"$contains": {"name": "nope"}}), false, false),
        (json!({"$or": ["nope", "mail"]}), true, false),
        (json!({"$or": ["nope", "none"]}), false, false),
        (json!({"$and": ["mail", {"name": "weather"}]}), true, false),
        (json!({"$and": ["mail", "nope"]}), false, false),
        (json!({"$not": "mail"}), false, true),
        (json!({"$not": {"name": "nope"}}), true, true),
        (json!({"$not": ["mail", "nope"]}), true, true),
        (json!({"$not": {"$or": ["mail", "nope"]}}), false, true),
        (json!({"$each": {"name": "/./"}}), true, true),
        (json!(["weather", "mail"]), true, false),
        (json!(["weather", "nope"]), false, false),
        (json!([]), true, true),
        (json!({"$all": [{"name": "mail"}, {"name": "log"}]}), true, false),
        (json!({"$sequence": ["weather", "mail"]}), true, false),
        (json!({"$sequence": ["mail", "weather"]}), false, false),
        (json!({"$sequence": ["mail", "log"]}), false, false),
        (json!({"$expect": "weather"}), true, false),
    ] {
        let expected = json!({"tools": wanted});
        assert_eq!(found_in_result(&expected, &given).pass == Pass::Yes, there, "{expected}");
        assert_eq!(found_in_result(&expected, &silent).pass == Pass::Yes, nothing, "{expected} of no calls");
        // An agent without a known conversation has no known calls.
        let alone = found_in_result(&expected, &json!({"output": "x"}));
        assert!(alone.pass == Pass::No || wanted.get("$not").is_some(), "{expected} of no messages");
    }
}

#[test]
fn expected_tools_and_expected_messages_are_two_checks() {
    let given = json!({"messages": messages()});
    let expected = |messages: Value, tools: Value| json!({"messages": messages, "tools": tools});
    let user = json!({"$contains": {"role": "user"}});
    let nobody = json!({"$contains": {"role": "nobody"}});
    for tools in [json!([{"name": "weather"}]), json!({"$sequence": ["weather", "log"]}), json!("weather")] {
        assert_eq!(found_in_result(&expected(user.clone(), tools.clone()), &given).pass, Pass::Yes, "{tools}");
        assert_eq!(found_in_result(&expected(nobody.clone(), tools.clone()), &given).pass, Pass::No, "{tools}");
    }
    let all = json!({"$all": [{"role": "user"}, {"content": "done"}]});
    assert_eq!(found_in_result(&expected(all.clone(), json!(["weather"])), &given).pass, Pass::Yes);
    let half = found_in_result(&expected(all, json!(["nope"])), &given);
    assert_eq!(keys(&half), ["messages"]);
    assert_score(&half, 0.5);
}

#[test]
fn an_output_schema_is_always_a_schema() {
    let schema = |schema: Value, rules: Rules, actual: Value| {
        let mut problems = Vec::new();
        let expectation = Expectation::from_schema(&node(&schema), rules, &host(), &mut problems);
        assert!(problems.is_empty(), "{problems:#?}");
        expectation.judge(Some(&actual), &Data::default())
    };
    let wanted = schema(json!({"required": ["a"]}), Rules::default(), json!({"b": 1}));
    assert_eq!((wanted.pass, wanted.score, keys(&wanted)), (Pass::No, 0.0, vec!["schema"]));
    assert_eq!(schema(json!({"required": ["a"]}), Rules::default(), json!({"a": 1})).pass, Pass::Yes);
    assert_eq!(schema(json!({"type": ["string", "null"]}), Rules::default(), json!(5)).pass, Pass::No);
    let off = || Rules { heuristic_schema: false, ..Rules::default() };
    assert_eq!(schema(json!({"type": "object"}), off(), json!({"a": 1})).pass, Pass::Yes);
    assert_eq!(schema(json!({"type": "object"}), off(), json!([])).pass, Pass::No);
    let finding = graded(json!({"schema": {"type": "object"}, "disableHeuristicSchema": true}), &answered(&json!([])));
    assert_eq!((finding.status, finding.key.as_deref()), (Status::Unmet, Some("schema")));
}

#[test]
fn a_schema_that_cannot_be_compiled_is_refused() {
    for schema in [json!({"minimum": "x"}), json!({"type": "strng"}), json!({"pattern": "("}), json!({"$ref": "#/no"})]
    {
        let mut problems = Vec::new();
        Expectation::from_schema(&node(&schema), Rules::default(), &host(), &mut problems);
        assert!(problems.iter().any(model::Diagnostic::is_error), "{schema}");
        refused(&json!({"$schema": schema}), "");
    }
    for none in [json!("text"), json!(5), Value::Null, json!([])] {
        refused(&json!({"$schema": none}), "schema");
    }
    holds(&json!({"$schema": true}), &json!(5));
    fails(&json!({"$schema": false}), &json!(5), &[""]);
}

#[test]
fn reusing_a_schema_id_has_no_effect() {
    let schema = |least: u64| json!({"$schema": {"$id": "https://example.com/s", "type": "number", "minimum": least}});
    for least in [1, 10, 1] {
        holds(&schema(least), &json!(least));
        fails(&schema(least), &json!(least - 1), &[""]);
    }
    fails(&json!({"a": schema(1), "b": schema(10)}), &json!({"a": 5, "b": 5}), &["b"]);
}

#[test]
fn an_unknown_variable_in_an_assertion_is_refused_with_the_nearest_name() {
    let refused = graded_in(None, json!({"output": "Hi {{nmae}}", "vars": {"name": "A"}}), &answered(&json!("Hi A")));
    let messages = refused.unwrap_err();
    assert!(messages[0].contains("nmae") && messages[0].contains("did you mean `name`"), "{messages:#?}");
    let known = graded(json!({"output": "Hi {{name}}", "vars": {"name": "A"}}), &answered(&json!("Hi A")));
    assert_eq!(known.status, Status::Met);
}

#[test]
fn a_diff_without_an_expected_value_is_rejected() {
    refused(&json!({"$diff": {"items": [{"value": "x", "added": true}], "permissive": true}}), "no `value`");
    refused(&json!({"$diff": null}), "`$diff` takes");
    refused(&json!({"$diff": {"value": ["a"]}}), "`value`");
    holds(&json!({"$diff": {"expected": "Hello"}}), &json!("Hello"));
}

#[test]
fn diff_inside_or_next_to_the_expectation_controls_the_comparison() {
    let diff = json!({"permissive": true, "items": [{"value": " User", "added": true, "required": true}]});
    let inside = json!({"expect": {"output": "Hello", "diff": diff}});
    let beside = json!({"expect": {"output": "Hello"}, "diff": diff});
    let alone = json!({"output": "Hello", "diff": diff});
    for fields in [inside, beside, alone] {
        assert_eq!(graded(fields.clone(), &answered(&json!("Hello User"))).status, Status::Met, "{fields}");
        assert_eq!(graded(fields.clone(), &answered(&json!("Hello"))).status, Status::Unmet, "{fields}");
    }
    let twice = json!({"expect": {"output": "Hello", "diff": "words"}, "diff": "chars"});
    let messages = graded_in(None, twice, &answered(&json!("Hello"))).unwrap_err();
    assert!(messages[0].contains("`diff` is given twice"), "{messages:#?}");
}

#[test]
fn critical_applies_to_strings_schemas_and_the_root() {
    for (expected, actual, paths) in [
        (json!({"a": {"$critical": true, "b": "zzz"}}), json!({"a": {"b": "x"}}), vec!["a.b"]),
        (json!({"a": {"$expect": "zzz", "$critical": true}}), json!({"a": "x"}), vec!["a"]),
        (json!({"a": {"$critical": true, "type": "string", "minLength": 5}}), json!({"a": "x"}), vec!["a"]),
        (json!({"a": {"$schema": {"type": "string"}, "$critical": true}}), json!({"a": 1}), vec!["a"]),
        (json!({"$critical": true, "b": 2, "c": 3}), json!({"b": 1, "c": 3}), vec!["b"]),
        (json!({"$meta": {"critical": true}, "b": 2}), json!("text"), vec![""]),
        (json!({"a": {"$score": {"value": 5, "critical": true}, "b": 1}}), json!({}), vec!["a"]),
    ] {
        let found = found(&expected, &actual);
        assert_eq!((found.pass, critical(&found)), (Pass::No, paths.clone()), "{expected}");
        let finding = graded(json!({"output": expected, "scoring": true, "passScore": 0}), &answered(&actual));
        assert_eq!(
            (finding.status, finding.failed_critical),
            (Status::Unmet, paths.iter().map(|path| (*path).to_owned()).collect())
        );
    }
    let met = graded(
        json!({"output": {"a": {"$expect": 1, "$critical": true}, "b": 2}, "scoring": true, "passScore": 50}),
        &answered(&json!({"a": 1})),
    );
    assert_eq!((met.status, met.failed_critical.len()), (Status::Met, 0));
}

#[test]
fn critical_applies_inside_every_operator() {
    let list = json!(["x"]);
    for (expected, actual) in [
        (json!({"$all": [{"$expect": "zz", "$critical": true}, "x"]}), &list),
        (json!({"$sequence": [{"$expect": "zz", "$critical": true}, "x"]}), &list),
        (json!({"$contains": {"$expect": "zz", "$critical": true}}), &list),
        (json!({"$or": [{"$expect": "zz", "$critical": true}, "y"]}), &json!("x")),
        (json!({"$and": [{"$expect": "zz", "$critical": true}, "x"]}), &json!("x")),
        (json!({"$each": {"$expect": "zz", "$critical": true}}), &list),
        (json!({"$first": {"$expect": "zz", "$critical": true}}), &list),
        (json!({"$sort": {"$first": {"$expect": "zz", "$critical": true}}}), &list),
        (json!({"$not": {"$expect": "x", "$critical": true}}), &json!("x")),
        (json!({"$not": "x", "$critical": true}), &json!("x")),
        (json!({"$expect": {"$and": ["zz"]}, "$critical": true}), &json!("x")),
        (json!({"$expect": {"$or": ["zz", "yy"]}, "$critical": true}), &json!("x")),
        (json!({"$expect": {"$contains": "zz"}, "$critical": true}), &list),
        (json!({"$expect": {"$sequence": ["zz"]}, "$critical": true}), &list),
    ] {
        let found = found(&expected, actual);
        assert_eq!(found.pass, Pass::No, "{expected}");
        assert!(!critical(&found).is_empty(), "{expected}: {:#?}", found.flaws);
    }
    // A branch that is not needed, and a mismatch inside `$not`, do not fail the whole.
    for (expected, actual) in [
        (json!({"$or": [{"$expect": "zz", "$critical": true}, "x"]}), json!("x")),
        (json!({"$not": {"$expect": "zz", "$critical": true}}), json!("x")),
        (json!({"$contains": {"$expect": "zz", "$critical": true}}), json!(["x", "zz"])),
    ] {
        holds(&expected, &actual);
    }
}

#[test]
fn a_node_passes_at_its_own_threshold() {
    let half = |threshold: f64| json!({"$and": ["a", "z"], "$threshold": threshold});
    holds_at(&half(0.5), &json!("abc"), 0.5);
    fails(&half(0.51), &json!("abc"), &["$and[1]"]);
    holds_at(&json!({"$threshold": 0.6, "a": 1, "b": 2, "c": 3}), &json!({"a": 1, "b": 2}), 2.0 / 3.0);
    holds_at(&json!({"$expect": {"a": 1, "b": 2}, "$threshold": 0}), &json!({"a": 2}), 0.0);
    holds_at(&json!({"$all": ["a", "b"], "$threshold": 0.5}), &json!(["a"]), 0.5);
    holds_at(&json!({"$each": 1, "$threshold": 0.6}), &json!([1, 1, 2]), 2.0 / 3.0);
    holds_at(&json!({"$sequence": ["a", "b"], "$threshold": 0.5}), &json!(["a"]), 0.5);
    let named = json!({"u": {"$meta": {"threshold": 0.5}, "a": 1, "b": 2}});
    holds_at(&named, &json!({"u": {"a": 1}}), 0.5);
    // It does not relax a critical part, and only applies to its own node.
    fails(&json!({"$threshold": 0.5, "a": 1, "b": {"$expect": 2, "$critical": true}}), &json!({"a": 1}), &["b"]);
    fails(&json!({"u": {"$and": ["a", "z"]}, "$meta": {"threshold": 0.9}}), &json!({"u": "a"}), &["u.$and[1]"]);
    // A branch whose weight is below the whole does not reach a threshold above that weight.
    let branch = json!({"$or": [{"$expect": "a", "$score": 50}], "$threshold": 0.6});
    let found = found(&branch, &json!("a"));
    assert_eq!(
        (found.pass, found.flaws[0].message.as_deref().unwrap()),
        (Pass::No, "a confidence of 0.50 is below the threshold 0.6")
    );
    refused(&json!({"$expect": 1, "$threshold": 2}), "from 0 to 1");
    refused(&json!({"$expect": 1, "$threshold": "high"}), "from 0 to 1");
}

fn holds_at(expected: &Value, actual: &Value, score: f64) {
    let found = found(expected, actual);
    assert_eq!((found.pass, found.flaws.len()), (Pass::Yes, 0), "{expected}: {:#?}", found.flaws);
    assert_score(&found, score);
}

#[test]
fn a_confidence_of_zero_does_not_pass() {
    fails(&json!({"$expr": "0"}), &json!(1), &[""]);
    fails(&json!({"$expr": "({score: 0})"}), &json!(1), &[""]);
    holds_at(&json!({"$expr": "0.2"}), &json!(1), 0.2);
    holds_at(&json!({"$expr": "0", "$threshold": 0}), &json!(1), 0.0);
    fails(&json!({"$expr": "0.2", "$threshold": 0.5}), &json!(1), &[""]);
    fails(&json!({"$expr": "NaN"}), &json!(1), &[""]);
    holds(&json!({"$expr": "7"}), &json!(1));
}

#[test]
fn the_first_and_the_last_item_match_plain_values() {
    let list = json!([5, "b", null, true]);
    holds(&json!({"$first": 5}), &list);
    holds(&json!({"$last": true}), &list);
    holds(&json!({"$first": "b"}), &json!(["abc"]));
    holds(&json!({"$first": "/^a/"}), &json!(["abc"]));
    holds(&json!({"$last": null}), &json!([1, null]));
    holds(&json!({"$first": [1, 2]}), &json!([[1, 2]]));
    fails(&json!({"$first": 6}), &list, &["[0]"]);
    fails(&json!({"$last": 6}), &list, &["[3]"]);
    fails(&json!({"$first": null}), &json!([]), &[""]);
}

#[test]
fn without_fields_items_are_sorted_by_value_and_numbers_numerically() {
    for by in [json!({}), json!({"$by": []})] {
        let sorted = |wanted: Value| {
            let mut operand = by.clone();
            operand["$expect"] = wanted;
            json!({"$sort": operand})
        };
        holds(&sorted(json!([1, 9, 10])), &json!([10, 9, 1]));
        holds(&sorted(json!([-1.5, 2, 30])), &json!([30, 2, -1.5]));
        holds(&sorted(json!(["a", "b"])), &json!(["b", "a"]));
        holds(&sorted(json!([false, 2, "a", null])), &json!([null, "a", 2, false]));
    }
    let maps = json!({"$sort": {"$first": {"a": 1}}});
    holds(&maps, &json!([{"a": 2, "b": 1}, {"b": 1, "a": 1}]));
    holds(&maps, &json!([{"b": 1, "a": 1}, {"a": 2, "b": 1}]));
    holds(&maps, &json!([{"b": 1, "a": 2}, {"a": 1, "b": 1}]));
    refused(&json!({"$sort": {"$by": 5, "$first": 1}}), "`$by` takes");
}

#[test]
fn equality_is_deep() {
    holds(&json!({"$eq": {"a": [1, {"b": null}]}}), &json!({"a": [1.0, {"b": null}]}));
    holds(&json!({"$eq": {"a": 1, "b": 2}}), &json!({"b": 2, "a": 1}));
    fails(&json!({"$eq": {"a": 1}}), &json!({"a": 1, "b": 2}), &[""]);
    fails(&json!({"$eq": [1]}), &json!([1, 2]), &[""]);
    fails(&json!({"$ne": {"a": [1]}}), &json!({"a": [1]}), &[""]);
    holds(&json!({"$ne": {"a": [1]}}), &json!({"a": [2]}));
    holds(&json!({"$in": [[1], {"a": 1}]}), &json!({"a": 1}));
    fails(&json!({"$in": [[1], {"a": 1}]}), &json!([2]), &[""]);
    fails(&json!({"$nin": [[1], {"a": 1}]}), &json!([1]), &[""]);
    holds(&json!({"$nin": [[1]]}), &json!([1, 2]));
}

#[test]
fn values_of_different_types_are_not_ordered() {
    for operator in ["$gt", "$gte", "$lt", "$lte"] {
        for (bound, actual) in [
            (json!(9), json!("10")),
            (json!("9"), json!(10)),
            (json!(0), Value::Null),
            (json!(1), json!(true)),
            (json!(2), json!([2])),
            (json!(2), json!({})),
        ] {
            fails(&json!({operator: bound}), &actual, &[""]);
        }
        fails(&json!({"a": {operator: 1}}), &json!({}), &["a"]);
        refused(&json!({operator: null}), "takes a number or a string");
    }
    holds(&json!({"$gt": 9}), &json!(10));
    holds(&json!({"$lt": "9"}), &json!("10"));
    holds(&json!({"$gt": "Z"}), &json!("a"));
    fails(&json!({"$gt": 9_007_199_254_740_993_i64}), &json!(9_007_199_254_740_993_i64), &[""]);
}

#[test]
fn the_unassigned_weight_and_the_meaning_of_small_weights_are_configurable() {
    let output = json!({"a": {"$expect": 1, "$score": 80}, "b": 9, "c": 3});
    let score = |more: Value| {
        let mut fields = json!({"output": output, "scoring": true});
        fields.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let finding = graded(fields, &answered(&json!({"a": 1, "b": 2, "c": 3})));
        (finding.score.unwrap() * 1e9).round() / 1e9
    };
    assert_eq!(score(json!({})), 0.9);
    assert_eq!(score(json!({"totalUnassignedWeight": 0.5})), 0.75);
    assert_eq!(score(json!({"unassignedWeight": 0.5})), 0.75);
    assert_eq!(score(json!({"unassignedWeight": 0.2, "totalUnassignedWeight": 0.5})), 0.75);
    let shares = |shares: Shares, weight: f64| {
        let rules = Rules { budget: Budget { shares, ..Budget::default() }, ..Rules::default() };
        let expected = json!([{"$expect": 1, "$score": weight}, 2]);
        (found_by(&rules, &expected, &json!([1, 3])).score * 1e9).round() / 1e9
    };
    assert_eq!(
        [shares(Shares::Guessed, 0.5), shares(Shares::Never, 0.5), shares(Shares::Always, 0.5)],
        [0.5, 0.005, 0.5]
    );
    assert_eq!(
        [shares(Shares::Guessed, 8.0), shares(Shares::Never, 8.0), shares(Shares::Always, 8.0)],
        [0.08, 0.08, 0.9]
    );
    for (written, wanted) in [(json!(true), 0.5), (json!(false), 0.005), (json!("force"), 0.5)] {
        let fields = json!({"output": [{"$expect": 1, "$score": 0.5}, 2], "scoring": true, "autoConfidence": written});
        assert_score_of(graded(fields, &answered(&json!([1, 3]))).score, wanted);
    }
}

fn assert_score_of(score: Option<f64>, wanted: f64) {
    assert!((score.unwrap() - wanted).abs() < 1e-9, "{score:?} is not {wanted}");
}

#[test]
fn a_json_diff_sees_plain_values_and_empty_containers() {
    let json_of = |text: &str| json!({"$diff": {"value": text, "type": "json"}});
    fails(&json_of("[]"), &json!("{}"), &[""]);
    fails(&json_of("{\"a\":1}"), &json!("{\"a\":1,\"e\":{}}"), &[""]);
    fails(&json_of("1"), &json!("2"), &[""]);
    fails(&json_of("\"a\""), &json!("\"b\""), &[""]);
    fails(&json_of("plain"), &json!("other"), &[""]);
    fails(&json_of("{\"a\":[]}"), &json!("{\"a\":{}}"), &[""]);
    holds(&json_of("{\"a\": [], \"b\": 1}"), &json!("{\"b\":1.0,\"a\":[]}"));
    holds(&json_of("plain"), &json!(" plain "));
    fails(&json!("{ \"a\": 1 }"), &json!("{\"a\":1,\"e\":{}}"), &[""]);
}

#[test]
fn penalties_do_not_reduce_a_score_below_zero() {
    let penalty = |weight: i64| json!({"$expect": "bad", "$score": weight});
    let of = |parts: Value, text: &str| found(&json!({"$and": parts}), &json!(text));
    assert_score(&of(json!([{"$expect": "good", "$score": 100}, penalty(-20)]), "good bad"), 0.8);
    assert_score(&of(json!([{"$expect": "good", "$score": 100}, penalty(-20)]), "good"), 1.0);
    assert_score(&of(json!([penalty(-20)]), "bad"), 0.8);
    assert_score(&of(json!([penalty(-20)]), "fine"), 1.0);
    assert_score(&of(json!([penalty(-100), penalty(-90)]), "bad"), 0.0);
}

#[test]
fn exact_values_are_compared_untrimmed() {
    fails(&json!({"$eq": "a"}), &json!(" a "), &[""]);
    holds(&json!({"$eq": " a "}), &json!(" a "));
    holds(&json!({"$ne": "a"}), &json!("a "));
    holds(&json!({"$in": ["a "]}), &json!("a "));
    fails(&json!({"$in": ["a"]}), &json!("a "), &[""]);
    fails(&json!({"$schema": {"type": "string", "maxLength": 1}}), &json!(" a "), &[""]);
    holds(&json!({"$expr": "actual === ' a '"}), &json!(" a "));
    // A string that only has to be contained, or to match a pattern, is trimmed as before.
    holds(&json!("/^a$/"), &json!(" a "));
    holds(&json!(" a "), &json!("a"));
}

#[test]
fn a_sequence_without_any_weight_has_a_score() {
    let steps = json!({"$sequence": [{"$expect": "a", "$score": 0}, {"$expect": "b", "$score": 0}]});
    holds(&steps, &json!(["a", "b"]));
    assert_score(&found(&steps, &json!(["a"])), 0.5);
    let inside = json!({"s": {"$sequence": ["a", "b"], "$score": 0}, "t": {"$expect": 1, "$score": 10}});
    holds(&inside, &json!({"s": ["a", "b"], "t": 1}));
    assert_score(&found(&inside, &json!({"s": [], "t": 1})), 1.0);
}

#[test]
fn a_penalty_that_is_not_incurred_is_not_a_failure() {
    let expected = json!({"$and": ["good", {"$expect": "bad", "$score": -20}, {"$expect": "worse", "$score": -20}]});
    fails(&expected, &json!("fine"), &["$and[0]"]);
    let map = json!({"a": 1, "b": {"$expect": {"c": 1}, "$score": -20}});
    fails(&map, &json!({"b": {}}), &["a"]);
    // A critical penalty fails when it is incurred.
    let critical = json!({"a": 1, "b": {"$expect": 1, "$score": {"value": -20, "critical": true}}});
    holds(&critical, &json!({"a": 1, "b": 2}));
    fails(&critical, &json!({"a": 1, "b": 1}), &["b"]);
}

#[test]
fn keys_next_to_expect_are_checked() {
    let expected = json!({"$expect": {"a": 1}, "b": 2});
    holds(&expected, &json!({"a": 1, "b": 2}));
    fails(&expected, &json!({"a": 1, "b": 3}), &["b"]);
    fails(&expected, &json!({"b": 2}), &["$expect.a"]);
    fails(&json!({"$expect": "a", "$not": "b"}), &json!("ab"), &["$not"]);
}

#[test]
fn an_unknown_strategy_is_refused_with_the_nearest_name() {
    refused(&json!({"$and": ["a"], "$strategy": "sum"}), "sum");
    refused(&json!({"u": {"$meta": {"strategy": "maks"}, "a": 1}}), "maks");
    for known in ["weighted", "max", "and", "or"] {
        holds(&json!({"$expect": {"a": 1}, "$strategy": known}), &json!({"a": 1}));
    }
}

#[test]
fn a_map_with_keys_that_are_not_schema_keywords_is_data() {
    let order = json!({"type": "object", "name": "desk", "price": 5});
    holds(&order, &json!({"type": "object", "name": "desk", "price": 5}));
    fails(&order, &json!({"type": "object", "name": "desk", "price": 6}), &["price"]);
    fails(&json!({"type": "string", "value": 1}), &json!("text"), &[""]);
    holds(&json!({"type": "string", "minLength": 2}), &json!("text"));
    fails(&json!({"type": "string", "minLength": 20}), &json!("text"), &[""]);
    holds(&json!({"type": "string", "$title": "T"}), &json!("text"));
    let off = Rules { heuristic_schema: false, ..Rules::default() };
    assert_eq!(found_by(&off, &json!({"type": "string"}), &json!({"type": "string"})).pass, Pass::Yes);
}

#[test]
fn a_regular_expression_used_as_a_key_may_have_flags() {
    holds(&json!({"/^user$/i": 1}), &json!({"x": 0, "USER": 1}));
    fails(&json!({"/^user$/i": 2}), &json!({"USER": 1}), &["USER"]);
    fails(&json!({"/^user$/": 1}), &json!({"USER": 1}), &["/^user$/"]);
    refused(&json!({"/(/i": 1}), "invalid regular expression");
}

#[test]
fn values_inserted_into_a_regular_expression_are_literal() {
    let fields = |text: &str| json!({"output": "/^costs {{price}}$/", "vars": {"price": text}});
    assert_eq!(graded(fields("$5.00"), &answered(&json!("costs $5.00"))).status, Status::Met);
    assert_eq!(graded(fields("$5.00"), &answered(&json!("costs $5x00"))).status, Status::Unmet);
    assert_eq!(graded(fields("(a/b"), &answered(&json!("costs (a/b"))).status, Status::Met);
}

#[test]
fn short_forms_apply_to_an_operator_even_alongside_meta() {
    let expected = json!({"$contains": "z", "$meta": {"title": "M"}, "$title": "C", "$score": 30});
    let both = found(&json!([expected, {"$expect": "x", "$score": 70}]), &json!(["abc", "x"]));
    assert_eq!((both.pass, keys(&both)), (Pass::No, vec!["[0]"]));
    assert_score(&both, 0.7);
    assert_eq!(both.details[0].title.as_deref(), Some("M"));
    // In a plain map, these names are data if `$meta` has the metadata.
    fails(&json!({"$meta": {"title": "M"}, "$title": "C"}), &json!({"a": 1}), &["$title"]);
    holds(&json!({"$meta": {"title": "M"}, "$title": "C"}), &json!({"$title": "C"}));
}

#[test]
fn the_weight_of_an_expected_tool_counts() {
    let given = json!({"messages": messages()});
    let wanted =
        |first: i64, second: i64| json!([{"name": "weather", "$score": first}, {"name": "nope", "$score": second}]);
    assert_score(&found_in_result(&json!({"tools": wanted(80, 20)}), &given), 0.8);
    assert_score(&found_in_result(&json!({"tools": {"$all": wanted(20, 80)}}), &given), 0.2);
    assert_score(&found_in_result(&json!({"tools": {"$sequence": wanted(80, 20)}}), &given), 0.8);
    let penalty = json!({"tools": [{"name": "weather", "$score": 100}, {"name": "mail", "$score": -30}]});
    let found = found_in_result(&penalty, &given);
    assert_eq!(found.pass, Pass::Yes);
    assert_score(&found, 0.7);
    let must = json!({"tools": [{"name": "nope", "$critical": true}, "weather"]});
    assert!(!critical(&found_in_result(&must, &given)).is_empty());
}

#[test]
fn a_strategy_of_a_plain_map_or_list_is_applied() {
    let best = json!({"$strategy": "max", "a": 1, "b": 9});
    holds(&best, &json!({"a": 1, "b": 2}));
    fails(&best, &json!({"a": 2, "b": 2}), &[""]);
    holds(&json!({"x": {"$meta": {"strategy": "or"}, "a": 1, "b": 9}}), &json!({"x": {"b": 9}}));
    holds(&json!({"$expect": [1, 2], "$strategy": "max"}), &json!([1, 3]));
    // It only applies to its own keys.
    fails(&json!({"$strategy": "max", "a": {"b": 1, "c": 2}}), &json!({"a": {"b": 1}}), &[""]);
}

#[test]
fn a_branch_without_a_weight_counts_in_full() {
    holds(&json!({"$or": ["Nope", "Hello"]}), &json!("Hello World"));
    holds(&json!({"$or": [{"a": 1}, {"b": 1}, {"c": 1}]}), &json!({"c": 1}));
    holds(&json!({"$contains": {"a": 1, "b": 2}}), &json!([{"a": 1, "b": 2}]));
    assert_score(&found(&json!({"$or": [{"$expect": "a", "$score": 40}, "z"]}), &json!("a")), 0.4);
    assert_score(&found(&json!({"$or": [{"$expect": "a", "$score": 40}, "z"]}), &json!("z")), 1.0);
    let finding = graded(json!({"output": {"$or": ["x", "y"]}, "scoring": true}), &answered(&json!("y")));
    assert_eq!((finding.status, finding.score), (Status::Met, Some(1.0)));
}

#[test]
fn a_weight_of_one_means_100_percent_unless_another_weight_is_greater() {
    let score = |weights: &[Value], actual: Value| {
        let items: Vec<Value> = weights
            .iter()
            .map(|weight| if weight.is_null() { json!(1) } else { json!({"$expect": 1, "$score": weight}) })
            .collect();
        (found(&items.into(), &actual).score * 1e9).round() / 1e9
    };
    assert_eq!(score(&[json!(1), Value::Null], json!([1, 2])), 0.9);
    assert_eq!(score(&[json!(0.99), Value::Null], json!([1, 2])), 0.9);
    assert_eq!(score(&[json!(1), json!(1)], json!([1, 2])), 0.5);
    assert_eq!(score(&[json!(1), json!(9)], json!([1, 2])), 0.1);
    assert_eq!(score(&[json!(1), json!(50), Value::Null], json!([1, 1, 2])), 0.51);
    assert_eq!(score(&[json!({"critical": false}), Value::Null], json!([1, 2])), 0.9);
}

#[test]
fn a_diff_with_changes_that_only_json_can_have_compares_json() {
    let actual = json!("{\"data\": {\"status\": \"success\"}}");
    let change = json!([{"path": "data.status", "val": "success", "added": true}]);
    holds(&json!({"$diff": {"value": "{\"data\": {}}", "items": change}}), &actual);
    let in_case = json!({"expect": {"output": "{\"data\": {}}", "diff": change}});
    assert_eq!(graded(in_case, &answered(&actual)).status, Status::Met);
    // With a value, a change of a text can have a path too.
    let text = json!([{"path": "a", "value": " you", "added": true}]);
    holds(&json!({"$diff": {"value": "Hello", "items": text}}), &json!("Hello you"));
    fails(
        &json!({"$diff": {"value": "Hello", "items": [{"value": " you"}, {"path": "a"}]}}),
        &json!("Hello me"),
        &[""],
    );
}

#[test]
fn a_critical_item_of_a_diff_is_critical() {
    let expected = |key: Value| {
        let items =
            json!([{"value": " Key", "added": true, "$score": key}, {"value": " extra", "added": true, "$score": 10}]);
        json!({"$diff": {"value": "Intro", "items": items, "permissive": true, "type": "chars"}})
    };
    let must = expected(json!({"value": 90, "critical": true}));
    holds_at(&must, &json!("Intro Key"), 0.9);
    let missed = found(&must, &json!("Intro extra"));
    assert_eq!((missed.pass, critical(&missed)), (Pass::No, vec![""]));
    assert_eq!(found(&expected(json!(90)), &json!("Intro extra")).pass, Pass::Yes);
    let never = expected(json!({"value": -90, "critical": true}));
    assert_eq!(found(&never, &json!("Intro extra")).pass, Pass::Yes);
    assert_eq!(critical(&found(&never, &json!("Intro Key"))), [""]);
    let scored = graded(json!({"output": must, "scoring": true, "passScore": 0}), &answered(&json!("Intro extra")));
    assert_eq!((scored.status, scored.failed_critical.len()), (Status::Unmet, 1));
}

#[test]
fn operand_types_declared_by_an_operator_are_enforced() {
    let directory = tempfile::tempdir().unwrap();
    let text = "export function needsArray(actual, expected) { return actual.length >= expected }\n\
                needsArray.expects = 'array'\n";
    std::fs::write(directory.path().join("expects.js"), text).unwrap();
    let fields = || json!({"output": {"$needsArray": 1}, "operators": {"needsArray": "./expects.js#needsArray"}});
    let judged = |actual: Value| graded_in(Some(directory.path()), fields(), &answered(&actual)).unwrap();
    assert_eq!(judged(json!(["a"])).status, Status::Met);
    for (actual, kind) in [(json!("abc"), "string"), (json!({"length": 3}), "object"), (Value::Null, "object")] {
        let finding = judged(actual);
        let expected = format!("Operator $needsArray requires an array, but got {kind}");
        assert_eq!((finding.status, finding.failures[0].message.as_str()), (Status::Unmet, expected.as_str()));
    }
}

#[test]
fn auto_enables_scoring_if_any_weight_is_given() {
    let status = |output: Value| {
        let fields = json!({"output": output, "scoring": "auto", "passScore": 50});
        graded(fields, &answered(&json!({"a": 1, "b": 3}))).status
    };
    assert_eq!(status(json!({"a": 1, "b": 2})), Status::Unmet);
    assert_eq!(status(json!({"a": {"$expect": 1, "$score": 60}, "b": 2})), Status::Met);
    assert_eq!(status(json!({"a": {"$meta": {"score": 60}, "$eq": 1}, "b": 2})), Status::Met);
}

#[test]
fn an_expression_sees_the_input_of_the_case() {
    let fields = |text: &str| json!({"output": {"$expr": text}, "input": {"q": "hi"}, "fixture": {"input": {"q": "raw"}}, "vars": {"v": 1}});
    for (text, wanted) in [
        ("input.q === 'hi'", Status::Met),
        ("input.input === undefined", Status::Met),
        ("data.v === 1", Status::Met),
        ("input.q === 'raw'", Status::Unmet),
    ] {
        assert_eq!(graded(fields(text), &answered(&json!("x"))).status, wanted, "{text}");
    }
    let none = graded(json!({"output": {"$expr": "input === undefined"}}), &answered(&json!("x")));
    assert_eq!(none.status, Status::Met);
}

#[test]
fn an_expression_has_no_access_to_the_host_system() {
    for text in [
        "process.exit(3)",
        "process.kill(1)",
        "process.binding('fs')",
        "require('fs').readFileSync('/etc/passwd')",
        "(await import('node:fs')).readFileSync('/etc/passwd')",
        "(await import('/etc/passwd'))",
        "fetch('http://127.0.0.1:1')",
    ] {
        let (expectation, _) = crate::expect::read(&Rules::default(), &json!({"$expr": text}));
        assert_eq!(expectation.judge(Some(&json!(1)), &Data::default()).pass, Pass::No, "{text}");
    }
    let directory = tempfile::tempdir().unwrap();
    for (name, with) in [("a.js", ""), ("a.json", ", {with: {type: 'json'}}")] {
        let path = directory.path().join(name);
        std::fs::write(&path, if with.is_empty() { "export const secret = 1" } else { "{\"secret\": 1}" }).unwrap();
        let import = format!("import('{}'{with})", path.display());
        for text in [import.clone(), format!("eval(`{import}`)"), format!("new Function(`return {import}`)()")] {
            let text = format!("JSON.stringify(await {text}).includes('secret')");
            let (expectation, _) = crate::expect::read(&Rules::default(), &json!({"$expr": text}));
            assert_eq!(expectation.judge(Some(&json!(1)), &Data::default()).pass, Pass::No, "{text}");
        }
    }
    for name in ["require", "fetch", "Deno", "Bun", "Worker", "global", "std", "os"] {
        refused(&json!({"$expr": format!("{name}.x")}), name);
        // A name that is refused in the source can still be looked up at run time.
        holds(&json!({"$expr": format!("globalThis['{name}'] === undefined")}), &json!(1));
    }
}

/// A misspelt operator is reported, too.
#[test]
fn a_misspelt_operator_is_refused_and_an_unknown_one_is_a_key() {
    refused(&json!({"$contians": "x"}), "unknown operator `$contians`");
    let (_, messages) = crate::expect::read(&Rules::default(), &json!({"$myThing": 1}));
    assert_eq!(messages, ["case.yaml:1:1: unknown operator `$myThing`"]);
    let strict = Rules { strict: Strict { object: true, ..Strict::default() }, ..Rules::default() };
    let extra = found_by(&strict, &json!({"a": 1}), &json!({"a": 1, "b": 2}));
    assert_eq!((extra.pass, keys(&extra)), (Pass::No, vec!["b"]));
}

#[test]
fn a_strategy_next_to_several_operators_applies_to_the_items_of_each() {
    let range = json!({"$gte": 1, "$lte": 5, "$strategy": "max"});
    holds(&range, &json!(3));
    fails(&range, &json!(6), &["$lte"]);
    let pair = json!({"$expect": [1, 2], "$exists": true, "$strategy": "max"});
    holds(&pair, &json!([1, 3]));
    fails(&pair, &json!([3, 3]), &["$expect"]);
    let keys_beside = json!({"a": 1, "b": 9, "$not": {"c": 1}, "$strategy": "max"});
    holds(&keys_beside, &json!({"a": 1, "b": 2}));
    fails(&keys_beside, &json!({"a": 1, "b": 2, "c": 1}), &["$not"]);
}

#[test]
fn a_strict_map_allows_every_mentioned_key() {
    let rules = || Rules { strict: Strict { object: true, ..Strict::default() }, ..Rules::default() };
    for (expected, actual) in [
        (json!({"a.b": {"$exists": false}}), json!({"a": {}})),
        (json!({"['x y']": 1}), json!({"x y": 1})),
        (json!({"[\"x y\"].z": {"$not": 1}}), json!({"x y": {"q": 1}})),
        (json!({"[0]": 1}), json!([1])),
        (json!({"[0].a": {"$exists": false}, "1": 2}), json!([{}, 2])),
        (json!({"a.b": 1, "a.c": 2}), json!({"a": {"b": 1, "c": 2}})),
    ] {
        assert_eq!(found_by(&rules(), &expected, &actual).pass, Pass::Yes, "{expected} of {actual}");
    }
    for (expected, actual, extra) in [
        (json!({"a.b": {"$exists": false}}), json!({"a": {}, "b": 1}), "b"),
        (json!({"[0]": 1}), json!([1, 2]), "1"),
        (json!({"a.b": 1}), json!({"a.b": 1, "a": 1}), "a"),
    ] {
        assert_eq!(keys(&found_by(&rules(), &expected, &actual)), [extra], "{expected} of {actual}");
    }
    let many: Value = Value::Object((0..3_000).map(|number| (format!("k{number}"), number.into())).collect());
    assert_eq!(found_by(&rules(), &many, &many).pass, Pass::Yes);
}

#[test]
fn a_map_that_names_its_dialect_is_a_schema() {
    let dialect = "http://json-schema.org/draft-07/schema#";
    let adult = json!({"$schema": dialect, "type": "object", "required": ["age"]});
    holds(&adult, &json!({"age": 1}));
    fails(&adult, &json!({}), &[""]);
    holds(&json!({"u": adult}), &json!({"u": {"age": 1}}));
    fails(&json!({"$schema": dialect, "minimum": 3}), &json!(2), &[""]);
    fails(&json!({"$schema": dialect, "type": ["string", "null"], "$score": 5}), &json!(2), &[""]);
    fails(&json!({"$schema": "https://json-schema.org/draft/2020-12/schema", "const": 1}), &json!(2), &[""]);
    // Without a schema beside it, the map is data, and the operator does not accept a string.
    for none in [json!({"$schema": dialect}), json!({"$schema": dialect, "$score": 5})] {
        refused(&none, "schema");
    }
    refused(&json!({"$schema": "https://example.com/x", "title": "A", "author": "B"}), "schema");
    refused(&json!({"$schema": "string"}), "schema");
}

#[test]
fn line_breaks_around_a_compared_text_do_not_matter() {
    holds(&json!({"$diff": "one\ntwo\n"}), &json!("one\ntwo"));
    holds(&json!({"$diff": {"value": "one\n\n", "type": "lines"}}), &json!("one\n"));
    holds(&json!({"$diff": "\n  one \r\n"}), &json!("one"));
    fails(&json!({"$diff": "one\n\ntwo\n"}), &json!("one\ntwo"), &[""]);
    fails(&json!({"$diff": " one "}), &json!("one"), &[""]);
    let mut problems = Vec::new();
    for diff in [json!(true), json!("lines"), json!({"type": "words"})] {
        let expected = node(&json!("one\ntwo\n"));
        let read = Expectation::from_value(&expected, Rules::default(), &host(), Some(&node(&diff)), &mut problems);
        assert_eq!(read.judge(Some(&json!("one\ntwo\n")), &Data::default()).pass, Pass::Yes, "{diff}");
    }
    assert!(problems.is_empty(), "{problems:#?}");
}

#[test]
fn items_are_sorted_by_paths() {
    let people = json!([{"u": {"age": 3}}, {"u": {"age": 1}}, {"u.age": 2}]);
    holds(&json!({"$sort": {"$by": "u.age", "$first": {"u.age": 1}, "$nth": {"$index": 1, "u.age": 2}}}), &people);
    holds(&json!({"$sort": {"$by": "-u.age", "$first": {"u.age": 3}}}), &people);
    for nameless in ["-", ""] {
        refused(&json!({"$sort": {"$by": nameless}}), "does not name a field");
        refused(&json!({"$sort": {"$by": ["u", nameless]}}), "does not name a field");
    }
}

/// Returns the warnings about an expectation that can still be used.
fn warned(expected: &Value) -> Vec<String> {
    let mut problems = Vec::new();
    Expectation::from_value(&node(expected), Rules::default(), &host(), None, &mut problems);
    assert!(!problems.iter().any(model::Diagnostic::is_error), "{expected}: {problems:#?}");
    problems.iter().map(ToString::to_string).collect()
}

#[test]
fn expectations_without_effect_are_reported() {
    for operator in ["$first", "$last"] {
        assert!(warned(&json!({operator: {"$index": 2, "a": 1}}))[0].contains("`$index` has no effect"));
    }
    for meta in [Value::Null, json!(5), json!([]), json!(true)] {
        assert!(warned(&json!({"$meta": meta, "a": 1}))[0].contains("`$meta` must be a map"), "{meta}");
    }
    refused(&json!({"$meta": "important", "a": 1}), "`$meta` must be a map");
}

/// Returns a function in a module of `directory`.
fn function(reference: &str) -> model::Node {
    model::Node { tag: Some("!function".into()), ..node(&json!(reference)) }
}

/// Judges `actual` by `expected`, with each string `CODE` replaced by `code`.
fn found_with_code(code: &str, mut expected: model::Node, actual: &Value) -> expect::Found {
    fn put(node: &mut model::Node, reference: &str) {
        match &mut node.kind {
            model::NodeKind::String(text) if text == "CODE" => *node = function(reference),
            model::NodeKind::List(items) => items.iter_mut().for_each(|item| put(item, reference)),
            model::NodeKind::Map(entries) => entries.iter_mut().for_each(|(_, value)| put(value, reference)),
            _ => {}
        }
    }
    let directory = tempfile::tempdir().unwrap();
    let module = directory.path().join("code.js");
    std::fs::write(&module, format!("export const code = {code}")).unwrap();
    put(&mut expected, &format!("{}#code", module.display()));
    let scripts: std::sync::Arc<dyn expect::Host> = std::sync::Arc::new(trialrun_grade::Scripts::new(directory.path()));
    let mut problems = Vec::new();
    let read = Expectation::from_value(&expected, Rules::default(), &scripts, None, &mut problems);
    assert!(problems.is_empty(), "{problems:#?}");
    read.judge(Some(actual), &Data::default())
}

#[test]
fn a_sort_function_gets_the_whole_list_if_it_declares_the_parameter() {
    let descending = node(&json!({"$sort": {"$by": "CODE", "$expect": [3, 2, 1]}}));
    for code in
        ["(item, index, array) => array.length - item", "function () { return arguments.length === 2 ? -this : 0 }"]
    {
        let code = code.replace("-this", "-arguments[0]");
        let found = found_with_code(&code, descending.clone(), &json!([1, 3, 2]));
        assert_eq!(found.pass, Pass::Yes, "{code}: {:#?}", found.flaws);
    }
    holds(&json!({"$sort": {"$by": {"$expr": "array.length - item"}, "$first": 3}}), &json!([1, 3, 2]));
}

#[test]
fn a_mistake_in_code_is_never_turned_into_a_pass() {
    let thrown = json!({"$expr": "actual.a.b.c"});
    fails(&thrown, &json!({}), &[""]);
    for expected in [
        json!({"$not": thrown}),
        json!({"$not": {"$or": [thrown, 5]}}),
        json!({"$not": {"$not": {"$and": [thrown]}}}),
        json!({"x": 1, "$not": {"$contains": thrown}}),
        json!({"$and": [{"x": 1}, {"$expect": thrown, "$score": {"value": -20, "critical": true}}]}),
        json!({"x": 1, "y": {"$score": -20, "$expr": "actual.a.b.c"}}),
    ] {
        assert_eq!(found(&expected, &json!({"x": 1})).pass, Pass::Unknown, "{expected}");
    }
    let sorted = json!({"$sort": {"$by": {"$expr": "item.a.b"}, "$first": 1}});
    assert_eq!(found(&sorted, &json!([1, 2])).pass, Pass::Unknown);
    assert_eq!(found(&json!({"$not": sorted}), &json!([1, 2])).pass, Pass::Unknown);
    for code in ["() => undefined", "() => null", "() => [1]", "() => { throw new Error('x') }"] {
        for expected in [json!("CODE"), json!({"$not": "CODE"})] {
            let found = found_with_code(code, node(&expected), &json!(1));
            assert_eq!(found.pass, Pass::Unknown, "{code}: {expected}");
        }
    }
    assert_eq!(found_with_code("actual => actual > 1", node(&json!({"$not": "CODE"})), &json!(1)).pass, Pass::Yes);
}

#[test]
fn a_string_with_json_stays_a_string_and_gets_a_hint() {
    let map = json!("{\"a\": 1}");
    let schema = json!({"$schema": {"type": "object"}});
    let fenced = json!("Here it is:\n```json\n{\"a\": 1}\n```\n");
    let json_texts =
        [(json!({"a": 1}), &map), (schema.clone(), &map), (json!([1]), &json!(" [1] ")), (json!({"a": 1}), &fenced)];
    for (expected, actual) in json_texts {
        let message = found(&expected, actual).flaws[0].message.clone().unwrap();
        assert!(message.contains("the text is JSON") && message.contains("`responseParser: json`"), "{message}");
        assert!(message.contains("in the test, for any agent"), "{message}");
    }
    let code = json!("```sh\nls\n``` {\"a\": 1}");
    for (expected, actual) in
        [(json!({"a": 1}), code), (json!({"a": 1}), json!("{a: 1}")), (schema, json!("5")), (json!([1]), json!("text"))]
    {
        let message = found(&expected, &actual).flaws[0].message.clone().unwrap();
        assert!(!message.contains("responseParser"), "{message}");
    }
}

#[test]
fn penalties_that_outweigh_a_part_reduce_the_whole_at_any_level() {
    let part = json!([{"$expect": 1, "$score": -20}, 2]);
    let actual = json!({"x": [1, 3], "y": 1});
    for inner in [
        part.clone(),
        json!({"$expect": part}),
        json!({"$and": [part]}),
        json!({"$or": [part]}),
        json!({"$or": [part, [3, 4, {"$expect": 5, "$score": -90}]], "$strategy": "max"}),
    ] {
        let expected = json!({"x": inner, "y": 1});
        let score = if expected["x"].get("$strategy").is_some() { 0.5 } else { 0.4 };
        assert_score(&found(&expected, &actual), score);
    }
    for inner in [json!({"$contains": part}), json!({"$all": [part]}), json!({"$sequence": [part]})] {
        let expected = json!({"x": inner, "y": 1});
        assert_score(&found(&expected, &json!({"x": [[1, 3]], "y": 1})), 0.4);
    }
    // The score of the whole is at least 0, and a penalty within a penalty is not a reward.
    assert_score(&found(&json!([{"$expect": 1, "$score": -20}, 2]), &json!([1, 3])), 0.0);
    let double = json!([{"$expect": [{"$expect": 1, "$score": -50}, 9], "$score": -50}, 2]);
    assert_score(&found(&double, &json!([[1, 3], 2])), 1.0);
}

#[test]
fn a_list_fails_critically_if_every_item_fails_a_critical_part() {
    let wanted = json!({"role": {"$expect": "assistant", "$critical": true}, "content": "Alice"});
    let of = |actual: &Value, operator: &str| {
        let operand = if operator == "$contains" { wanted.clone() } else { json!([wanted]) };
        let found = found(&json!({ operator: operand }), actual);
        assert_eq!(found.pass, Pass::No, "{operator} of {actual}");
        (found.score, !critical(&found).is_empty())
    };
    for operator in ["$contains", "$all", "$sequence"] {
        let user = json!({"role": "user", "content": "Alice"});
        let other = json!({"role": "assistant", "content": "Bob"});
        assert_eq!(of(&json!([user, other]), operator), (0.5, false), "{operator}");
        assert_eq!(of(&json!([user]), operator), (0.5, true), "{operator}");
        assert_eq!(of(&json!([]), operator), (0.0, true), "{operator}");
        // The score is that of an item that meets the critical parts, not of a better one that does not.
        let wanted = json!({"a": {"$expect": 1, "$critical": true}, "b": 1, "c": 1});
        let operand = if operator == "$contains" { wanted } else { json!([wanted]) };
        let found = found(&json!({ operator: operand }), &json!([{"a": 1}, {"a": 2, "b": 1, "c": 1}]));
        assert!((found.score - 1.0 / 3.0).abs() < 1e-9 && critical(&found).is_empty(), "{operator}: {found:#?}");
    }
}

#[test]
fn little_is_stored_for_hundreds_of_missing_items() {
    let wanted: Value = (0..300).map(|id| json!({"id": id, "name": "x".repeat(20)})).collect();
    let actual: Value = (0..300).map(|id| json!({"id": -1 - id, "name": "y".repeat(20)})).collect();
    for operator in ["$all", "$sequence"] {
        let found = found(&json!({ operator: wanted }), &actual);
        assert_eq!(found.flaws.len(), 300, "{operator}");
        let kept: usize = found.flaws.iter().filter_map(|flaw| Some(flaw.actual.as_ref()?.to_string().len())).sum();
        assert!(kept < 64 * 64 * 1024 + 300 * 3_000, "{operator}: {kept} bytes");
    }
}

#[test]
fn expected_diff_items_match_changed_lines_ignoring_surrounding_white_space() {
    let diff = |value: &str, items: Value| json!({"$diff": {"value": value, "type": "lines", "items": items}});
    let added = json!([{"value": "b", "added": true}]);
    for value in ["a\n", "a", "\na\n"] {
        holds(&diff(value, added.clone()), &json!("a\nb\n"));
    }
    holds(&diff("a\nb\nc\n", json!([{"value": "c", "removed": true}])), &json!("a\nb\n"));
    holds(&diff("a", json!([{"value": "a", "removed": true}, {"value": "a\nb", "added": true}])), &json!("a\nb"));
    fails(&diff("a\n", added), &json!("a\nc"), &[""]);
    let chars = |value: &str| json!({"$diff": {"value": "Hello", "items": [{"value": value, "added": true}]}});
    for value in [" there", " there ", "\n there \n", "there"] {
        holds(&chars(value), &json!("Hello there"));
    }
    fails(&chars("ther"), &json!("Hello there"), &[""]);
    let doubled = |option: &str| json!({"$diff": {"value": "aa bb cc dd ee ff gg  hh", option: true}});
    for option in ["stripTrailingCr", "ignoreNewlineAtEof", "ignoreCase"] {
        fails(&doubled(option), &json!("aa bb cc dd ee ff gg hh"), &[""]);
    }
}
