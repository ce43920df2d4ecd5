//! Generates a value and an expectation that it matches in full.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// A value and an expectation that it matches.
pub type Pair = (Value, Value);

fn leaf() -> impl Strategy<Value = Pair> {
    let value = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-50_i64..50).prop_map(Value::from),
        prop::sample::select(vec![json!(0.5), json!(2.0), json!(-1e9), json!(u64::MAX)]),
        prop::sample::select(vec!["", "a", "some text", "two\nlines", "  spaced ", "{\"a\": 1}"]).prop_map(Value::from),
    ];
    (value, 0..12_usize).prop_map(|(value, form)| {
        let expected = match (form, &value) {
            (0, _) => json!({"$eq": value}),
            (1, _) => json!({"$in": ["other", value]}),
            (2, _) => json!({"$ne": "other"}),
            (3, _) => json!({"$not": "other"}),
            (4, _) => json!({"$exists": true}),
            (5, _) => json!({"$schema": {"const": value}}),
            (6, _) => json!({"$nin": ["other", 777]}),
            (7, Value::Number(_)) => json!({"$gte": value, "$lte": value}),
            (7, Value::String(_)) => json!("/^[^§]*$/u"),
            (8, Value::String(_)) => json!({"$diff": value.as_str().unwrap_or_default().trim()}),
            (9, _) => json!({"$or": ["other", {"$eq": value}, 777]}),
            (10, _) => json!({"$expr": "({score: 1})"}),
            _ => value.clone(),
        };
        (value, expected)
    })
}

fn weight() -> impl Strategy<Value = Option<Value>> {
    let weights = vec![
        json!(0),
        json!(0.2),
        json!(0.99),
        json!(1),
        json!(3),
        json!(33),
        json!(100),
        json!(250),
        json!({"critical": true}),
    ];
    prop::option::of(prop::sample::select(weights))
}

/// Returns the same expectation with a weight.
fn weighed(expected: Value, weight: Option<Value>) -> Value {
    match weight {
        Some(weight) => json!({"$expect": expected, "$score": weight}),
        None => expected,
    }
}

fn around((actual, expected): Pair, form: usize) -> Pair {
    let expected = match form {
        0 => json!({"$and": [expected]}),
        1 => {
            json!({"$and": [{"$expect": expected, "$score": 7}, {"$not": {"$eq": "other"}}, {"$expect": "other", "$score": -5}]})
        }
        2 => json!({"$not": {"$not": expected}}),
        3 => json!({"$or": [{"$expect": "other", "$score": 60}, expected]}),
        4 => json!({"$expect": expected, "$title": "T", "$critical": true, "$dimension": "d"}),
        5 => json!({"$expect": expected, "$threshold": 0.5}),
        6 => json!({"$expect": expected, "$ne": "other"}),
        7 => json!({"$expect": {"$and": [expected, {"$exists": true}]}, "$meta": {"strategy": "max"}}),
        _ => expected,
    };
    (actual, expected)
}

/// Returns a list and an expectation that it matches.
fn list(pairs: Vec<(Pair, Option<Value>)>, form: usize) -> Pair {
    let actual: Value = pairs.iter().map(|((actual, _), _)| actual.clone()).collect();
    let mut items: Vec<Value> = pairs.into_iter().map(|((_, expected), weight)| weighed(expected, weight)).collect();
    let expected = match (form, items.len()) {
        (0, _) => json!({"$sequence": items}),
        (1, _) => {
            items.reverse();
            json!({"$all": items})
        }
        (2, 1..) => json!({"$contains": items.pop()}),
        (3, 1..) => json!({"$first": items.remove(0)}),
        (4, 1..) => json!({"$last": items.pop()}),
        (5, count @ 2..) => json!({"$nth": {"$index": 1 - count as i64, "$expect": items.remove(1)}}),
        (6, _) => json!({"$each": {"$exists": true}}),
        // Fewer items than the list has.
        (7, 1..) => {
            items.pop();
            Value::Array(items)
        }
        _ => Value::Array(items),
    };
    (actual, expected)
}

/// Returns a map and an expectation that it matches.
fn map(pairs: Vec<(&'static str, Pair, Option<Value>)>, omitted: usize) -> Pair {
    let mut actual = Map::new();
    let mut expected = Map::new();
    for (index, (key, pair, weight)) in pairs.into_iter().enumerate() {
        actual.insert(key.to_owned(), pair.0);
        expected.remove(key);
        if index != omitted {
            expected.insert(key.to_owned(), weighed(pair.1, weight));
        }
    }
    (actual.into(), expected.into())
}

/// Generates a value and an expectation that it matches in full.
pub fn matching() -> impl Strategy<Value = Pair> {
    leaf().prop_recursive(4, 40, 5, |inner| {
        let keys = vec!["a", "b", "c d", "e.f", "g[0]", "length", "", "output"];
        let entry = (prop::sample::select(keys), inner.clone(), weight());
        prop_oneof![
            (prop::collection::vec((inner.clone(), weight()), 0..6), 0..12_usize)
                .prop_map(|(pairs, form)| list(pairs, form)),
            (prop::collection::vec(entry, 0..8), 0..12_usize).prop_map(|(pairs, omitted)| map(pairs, omitted)),
            (inner, 0..8_usize).prop_map(|(pair, form)| around(pair, form)),
        ]
    })
}
