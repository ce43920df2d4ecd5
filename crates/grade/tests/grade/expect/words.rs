//! Tests for descriptions of expected values that differ from the value as written.

use serde_json::{Value, json};

use crate::expect::found;

#[test]
fn expected_and_actual_values_are_described_separately() {
    let expected = |expectation: Value, actual: Value| found(&expectation, &actual).flaws[0].expected.clone().unwrap();
    for (expectation, actual, words) in [
        (json!({"$lt": 10}), json!(10), "less than 10"),
        (json!({"$lte": 2.5}), json!(3), "at most 2.5"),
        (json!({"$gt": 0}), json!(0), "more than 0"),
        (json!({"$gte": "b"}), json!("a"), "at least b"),
        (json!({"$lt": 10}), json!("x"), "less than 10"),
        (json!({"$ne": 5}), json!(5), "not 5"),
        (json!({"$nin": [1, 2]}), json!(2), "none of [1,2]"),
        (json!({"$not": "/a/"}), json!("a"), "not /a/"),
    ] {
        assert_eq!(expected(expectation.clone(), actual), words, "{expectation}");
    }
    assert_eq!(expected(json!({"$eq": 5}), json!(6)), 5);
}
