//! Generates values and expectations of every kind, sensible or not.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// Code in a generated expectation: regular expressions and expressions, which may depend on the order of keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Code {
    Allowed,
    None,
}

fn number() -> impl Strategy<Value = Value> {
    prop_oneof![
        (-3_i64..4).prop_map(Value::from),
        prop::sample::select(vec![json!(0.5), json!(-0.0), json!(1.0), json!(1e300), json!(-1e300), json!(u64::MAX)]),
        prop::sample::select(vec![json!(i64::MIN), json!(9_007_199_254_740_993_i64), json!(1e-300), json!(0.1)]),
        any::<f64>().prop_map(Value::from),
    ]
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => prop::sample::select(vec!["", "a", "b", "ab", "a b\nc", " a ", "1", "true", "null", "a, b and then c, d", "{\"a\":[]}"])
            .prop_map(str::to_owned),
        1 => "\\PC{0,12}",
    ]
}

fn leaf() -> impl Strategy<Value = Value> {
    prop_oneof![Just(Value::Null), any::<bool>().prop_map(Value::from), number(), text().prop_map(Value::from)]
}

fn key() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => prop::sample::select(vec!["a", "b", "c", "name", "output", "messages", "tools", "role", "type", "diff"]),
        1 => prop::sample::select(vec!["", ".", "a.b", "a[0]", "[0].a", "length", "a.length", "0", "__proto__", "[", "a['"]),
    ]
    .prop_map(str::to_owned)
}

fn map(value: impl Strategy<Value = Value>) -> impl Strategy<Value = Value> {
    prop::collection::vec((key(), value), 0..4).prop_map(|entries| Value::Object(entries.into_iter().collect()))
}

/// Generates any value.
pub fn value() -> impl Strategy<Value = Value> {
    leaf().prop_recursive(4, 24, 4, |inner| {
        prop_oneof![prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array), map(inner)]
    })
}

/// Generates options of text comparison, valid and invalid.
pub fn diff() -> impl Strategy<Value = Value> {
    let item = prop_oneof![
        Just(json!({"value": "a", "added": true})),
        Just(json!({"value": "/b/", "removed": true, "required": true, "$score": 5})),
        Just(json!({"path": "a", "val": [], "$score": {"value": -3, "critical": true}})),
        value(),
    ];
    let kind =
        prop::sample::select(vec!["auto", "chars", "words", "wordsWithSpace", "lines", "sentences", "json", "no"]);
    let items = prop::collection::vec(item, 0..3);
    prop_oneof![
        kind.clone().prop_map(Value::from),
        items.clone().prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        (text(), kind, prop::option::of(items), any::<[bool; 2]>()).prop_map(
            |(value, kind, items, [permissive, case])| {
                let mut diff = json!({"value": value, "type": kind, "permissive": permissive, "ignoreCase": case});
                if let Some(items) = items {
                    diff["items"] = items.into();
                }
                diff
            }
        ),
    ]
}

fn schema() -> impl Strategy<Value = Value> {
    prop_oneof![
        prop::sample::select(vec![
            json!({"type": "object", "required": ["a"]}),
            json!({"type": "string", "minLength": 2}),
            json!({"properties": {"a": {"type": "number"}}, "additionalProperties": false}),
            json!({"items": {"type": ["string", "null"]}, "uniqueItems": true}),
            json!({"enum": [1, {"a": 1, "b": 2}, "a"]}),
            json!({"const": {"b": 1, "a": [1]}}),
            json!({"$ref": "#"}),
            json!({"type": "nothing"}),
        ]),
        value(),
    ]
}

/// Generates an operator in place of a value: applied to an expectation, to a list of them, or to a map with its own
/// key.
fn operation(inner: BoxedStrategy<Value>, code: Code) -> BoxedStrategy<(String, Value)> {
    let list = || prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array);
    let named = |name: &'static str| move |operand: Value| (name.to_owned(), operand);
    let beside = |key: &'static str, given: BoxedStrategy<Value>| {
        (inner.clone(), given).prop_map(move |(rest, given)| {
            let mut map = match rest {
                Value::Object(map) => map,
                other => Map::from_iter([("$expect".to_owned(), other)]),
            };
            map.insert(key.to_owned(), given);
            Value::Object(map)
        })
    };
    let by =
        prop_oneof![Just(json!("a")), Just(json!("-b")), Just(json!(["a", "-b"])), Just(json!([])), value().boxed(),];
    let index = prop_oneof![(-3_i64..3).prop_map(Value::from), number()];
    let compared = prop::sample::select(vec!["$eq", "$ne", "$gt", "$gte", "$lt", "$lte"]);
    let mut all = vec![
        list().prop_map(named("$and")).boxed(),
        list().prop_map(named("$or")).boxed(),
        list().prop_map(named("$all")).boxed(),
        list().prop_map(named("$sequence")).boxed(),
        inner.clone().prop_map(named("$not")).boxed(),
        inner.clone().prop_map(named("$contains")).boxed(),
        inner.clone().prop_map(named("$each")).boxed(),
        inner.clone().prop_map(named("$expect")).boxed(),
        inner.clone().prop_map(named("$first")).boxed(),
        inner.clone().prop_map(named("$last")).boxed(),
        beside("$index", index.boxed()).prop_map(named("$nth")).boxed(),
        beside("$by", by.boxed()).prop_map(named("$sort")).boxed(),
        inner.clone().prop_map(named("$sort")).boxed(),
        (compared, value()).prop_map(|(name, operand)| (name.to_owned(), operand)).boxed(),
        prop::collection::vec(value(), 0..3).prop_map(|values| ("$in".to_owned(), values.into())).boxed(),
        prop::collection::vec(value(), 0..3).prop_map(|values| ("$nin".to_owned(), values.into())).boxed(),
        prop_oneof![any::<bool>().prop_map(Value::from), value()].prop_map(named("$exists")).boxed(),
        (any::<bool>(), any::<bool>())
            .prop_map(|(value, strict)| ("$exists".to_owned(), json!({"$value": value, "strict": strict})))
            .boxed(),
        schema().prop_map(named("$schema")).boxed(),
        diff().prop_map(named("$diff")).boxed(),
        (prop::sample::select(vec!["$all", "$diff", "$nth", "$sort", "$in", "$gt", "$no", "$"]), value())
            .prop_map(|(name, operand)| (name.to_owned(), operand))
            .boxed(),
    ];
    if code == Code::Allowed {
        let texts =
            vec!["true", "actual", "actual.a.b", "0.5", "({score: 0.3})", "ctx.key", "'", "nope", "actual.length / 3"];
        all.push(prop::sample::select(texts).prop_map(|text| ("$expr".to_owned(), text.into())).boxed());
        all.push(
            Just(("$expr".to_owned(), json!("({pass: false, failures: [{key: 'x'}], details: [{score: 7}]})"))).boxed(),
        );
    }
    prop::strategy::Union::new(all).boxed()
}

fn metadata() -> impl Strategy<Value = Option<(String, Value)>> {
    let weight = prop::sample::select(vec![
        json!(0),
        json!(1),
        json!(0.3),
        json!(40),
        json!(100),
        json!(250),
        json!(-20),
        json!(-0.5),
        json!(1e308),
        json!(-1e308),
    ]);
    let entry = prop_oneof![
        weight.clone().prop_map(|weight| ("$score".to_owned(), weight)),
        (weight, any::<bool>())
            .prop_map(|(value, critical)| ("$score".to_owned(), json!({"value": value, "critical": critical}))),
        any::<bool>().prop_map(|critical| ("$critical".to_owned(), critical.into())),
        prop::sample::select(vec!["max", "weighted", "sum"]).prop_map(|name| ("$strategy".to_owned(), name.into())),
        prop::sample::select(vec![0.0, 0.5, 1.0, 2.0]).prop_map(|value| ("$threshold".to_owned(), value.into())),
        Just(("$title".to_owned(), json!("T"))),
        Just(("$meta".to_owned(), json!({"score": 5, "title": "M"}))),
        value().prop_map(|value| ("$meta".to_owned(), value)),
    ];
    prop::option::weighted(0.4, entry)
}

/// Generates any expectation.
pub fn expectation(code: Code) -> BoxedStrategy<Value> {
    let patterns = match code {
        Code::Allowed => vec!["/a/", "/^\\[?\\{/s", "/(/", "/(a+)+$/i", "//", "/x"],
        Code::None => vec!["a", "b"],
    };
    let start = prop_oneof![leaf(), prop::sample::select(patterns).prop_map(Value::from), schema()];
    start
        .prop_recursive(4, 32, 4, move |inner| {
            let field = match code {
                Code::Allowed => {
                    prop_oneof![8 => key(), 1 => Just("/a|b/".to_owned()), 1 => Just("/(/i".to_owned())].boxed()
                }
                Code::None => key().boxed(),
            };
            let map = (prop::collection::vec((field, inner.clone()), 0..4), metadata())
                .prop_map(|(entries, metadata)| Value::Object(entries.into_iter().chain(metadata).collect()));
            let operation = operation(inner.clone(), code);
            let operations = (prop::collection::vec(operation.clone(), 1..3), metadata(), metadata()).prop_map(
                |(operations, metadata, more)| {
                    Value::Object(operations.into_iter().chain(metadata).chain(more).collect())
                },
            );
            let mixed = (operation, key(), inner.clone(), metadata()).prop_map(|(operation, key, value, metadata)| {
                Value::Object([operation, (key, value)].into_iter().chain(metadata).collect())
            });
            prop_oneof![
                2 => prop::collection::vec(inner, 0..4).prop_map(Value::Array),
                3 => map,
                5 => operations,
                1 => mixed,
            ]
        })
        .boxed()
}
