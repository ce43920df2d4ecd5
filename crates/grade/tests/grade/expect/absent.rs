//! Tests with missing values, and with expectations about their parts.

use expect::Pass;
use serde_json::json;

use crate::expect::{critical, fails, found, holds};

#[test]
fn a_missing_value_never_contains_anything() {
    for wanted in [json!({"$not": "x"}), json!({"$ne": 1}), json!({"$exists": false}), json!("x")] {
        fails(&json!({"list": {"$contains": wanted}}), &json!({}), &["list"]);
        fails(&json!({"list": {"$contains": wanted}}), &json!({"list": []}), &["list"]);
    }
    holds(&json!({"list": {"$not": {"$contains": "x"}}}), &json!({}));
    holds(&json!({"list": {"$contains": {"$not": "x"}}}), &json!({"list": null}));
}

#[test]
fn critical_parts_fail_if_their_parent_is_missing() {
    let part = json!({"$expect": 1, "$critical": true});
    for (wanted, actual) in [
        (json!({"a": {"b": part}}), json!({})),
        (json!({"a": {"b": {"c": [part]}}}), json!({"a": "text"})),
        (json!({"a": [part]}), json!({})),
        (json!({"a": {"$first": {"b": part}}}), json!({"a": []})),
        (json!({"a": {"$nth": {"$index": 3, "b": part}}}), json!({"a": {}})),
        (json!({"a": {"$sort": {"$by": "n", "$first": {"b": part}}}}), json!({})),
        (json!({"a": {"$each": {"b": {"c": part}}}}), json!({})),
        (json!({"a": {"$all": [{"b": {"c": part}}]}}), json!({})),
        (json!({"a": {"$sequence": [{"b": {"c": part}}]}}), json!({})),
        (json!({"a": {"$contains": {"b": part}}}), json!({})),
        (json!({"a": {"$contains": {"b": part}}}), json!({"a": []})),
    ] {
        let found = found(&wanted, &actual);
        assert_eq!((found.pass, critical(&found)), (Pass::No, vec!["a"]), "{wanted}: {:#?}", found.flaws);
    }
}

#[test]
fn optional_parts_are_not_critical_if_their_parent_is_missing() {
    let part = json!({"$expect": 1, "$critical": true});
    for wanted in [
        json!({"a": {"b": 1}, "c": part}),
        json!({"a": {"b": {"$expect": 1, "$critical": true, "$score": -5}, "d": 2}}),
        json!({"a": {"b": {"$not": {"c": part}}}}),
    ] {
        let found = found(&wanted, &json!({"c": 1}));
        assert_eq!((found.pass, critical(&found)), (Pass::No, vec![]), "{wanted}: {:#?}", found.flaws);
    }
}

#[test]
fn a_key_that_times_out_is_critical_if_its_value_is() {
    let found = found(&json!({"/^(a+)+$/": {"$expect": 1, "$critical": true}}), &json!({ ("a".repeat(60) + "!"): 1 }));
    assert_eq!((found.pass, critical(&found)), (Pass::Unknown, vec![""]), "{:#?}", found.flaws);
}

#[test]
fn a_threshold_does_not_make_up_for_missing_critical_parts() {
    let expected = json!({"$threshold": 0.5, "n": 1, "a": {"b": {"$expect": 1, "$critical": true}}});
    assert_eq!(found(&expected, &json!({"n": 1})).pass, Pass::No);
    assert_eq!(found(&expected, &json!({"n": 1, "a": {"b": 1}})).pass, Pass::Yes);
}

#[test]
fn branches_report_expectations_without_diffs() {
    let found = found(&json!({"$or": ["Hello world", {"a": 1}]}), &json!("{\"a\": 1}"));
    let [flaw] = found.flaws.as_slice() else { panic!("{:#?}", found.flaws) };
    let message = flaw.message.as_deref().unwrap();
    assert!(message.contains("expected \"Hello world\"; expected a map") && message.contains("is JSON"), "{message}");
    assert_eq!(flaw.expected, Some(json!(["Hello world", null])));
    assert_eq!(flaw.actual, Some(json!("{\"a\": 1}")));
    assert!(flaw.diff.is_empty());
    let nearest = crate::expect::found(&json!({"$contains": "Hello world"}), &json!(["Hello work"]));
    assert!(nearest.flaws[0].message.as_deref().unwrap().ends_with("expected \"Hello world\""), "{:#?}", nearest.flaws);
}
