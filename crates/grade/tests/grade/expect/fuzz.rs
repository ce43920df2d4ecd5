//! Fuzz tests of regular expressions and expectations: they do not panic, and they terminate.

use expect::{Data, Expectation, Rules};
use serde_json::{Value, json};

use crate::expect::{host, node};

/// Regular expressions as written in an expectation.
const REGEXES: &[&str] = &[
    "/^Hello, (?<name>\\w+)!$/i",
    "/(?<=\\$)\\d+(?:\\.\\d{2})?/",
    "/(?<!a)b(?!c)(?=d)/sm",
    "/\\p{Lu}\\p{Script=Greek}+/u",
    "/[\\p{L}--[a-z]]/v",
    "/^(a+)+$/",
    "/(a|aa)+$/",
    "/(x+x+)+y/",
    "/\\1(a)\\k<n>(?<n>b)/",
    "/\\u{1F600}|\\x41|\\cJ|\\0/u",
    "/[^\\]\\-^]{2,5}?/g",
    "/a{0,99999}b*?c+?/y",
    "/(?i:a)(?-i:b)/",
    "/\\/path\\/[a-z]+/",
    "//",
    "/é[à-ü]+🎈/d",
];

/// Expectations.
const EXPECTATIONS: &[&str] = &[
    r#"{"$and":["/a/",{"$not":{"$or":["b",1,null]}}],"name":{"$exists":true}}"#,
    r#"{"tools":[{"name":"a","args":{"x":{"$gt":1}},"$score":80},"b"],"messages":{"$contains":{"role":"user"}}}"#,
    r#"{"tools":{"$sequence":["a",{"name":"/b/","$critical":true}]},"output":{"$diff":{"value":"a b","type":"words"}}}"#,
    r#"{"$sort":{"$by":[{"$expr":"item.a","order":"desc"},"-b"],"$nth":{"$index":-1,"a":1}}}"#,
    r#"{"output":{"$meta":{"score":{"value":5,"critical":true},"title":"T"},"$each":{"$gte":0,"$lte":5}},"diff":"json"}"#,
    r#"{"type":"object","properties":{"a":{"type":"string","pattern":"^(a+)+$"}},"required":["a"],"$title":"S"}"#,
    r##"{"$schema":{"$ref":"#/definitions/a","definitions":{"a":{"anyOf":[{"$ref":"#"},{"minimum":1}]}}}}"##,
    r#"{"$expect":{"/^a(b|c)$/i":[1,"two",{}]},"$score":-20,"$threshold":0.5,"$strategy":"max"}"#,
    r#"{"$all":[{"$first":1},{"$last":{"$in":[1,"a"]}}],"$ne":[],"$expr":"actual.length > 1 ? 0.5 : false"}"#,
    r#"{"$diff":{"value":"[1, {\"a\": []}]","items":[{"path":"/a/","val":[],"added":true,"required":true}],"permissive":true}}"#,
    r#"[{"a.b[0]['c d']":{"$exists":{"$value":false,"strict":true}}},"",[],{}]"#,
];

const VALUES: &[&str] = &[
    r#"{"output":"Hello, Alice! a b","messages":[{"role":"user"},{"role":"assistant","tools":[{"name":"a","args":{"x":2}}]}]}"#,
    r#"[{"a":1,"b":2},{"a":0,"b":"x"},5,"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!",null]"#,
    r#"{"a":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!","ab":[1,"two"],"name":"b","type":"object"}"#,
    r#""Hello, Alice! $5.00 \u0000 \ud83d\ude00 [1, {\"a\": []}]""#,
    "-0.0",
];

const PIECES: &[&str] = &[
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "*",
    "+",
    "?",
    "\\",
    "^",
    "$",
    "|",
    "/",
    "(?:",
    "(?<=",
    "(?<!",
    "(?=",
    "(?<n>",
    "{2,}",
    "\\b",
    "\\p{L}",
    ".*",
    "(a+)+",
    "\u{0}",
    "\u{10ffff}",
    "é",
    "\"",
    ":",
    ",",
    "null",
    "1e999",
    "-1",
    "true",
    "\"$and\":[",
    "\"$score\":",
    "{\"$not\":",
    "\"$expr\":\"",
    "{{ x }}",
    "\"tools\":",
    "[[[[",
    "\\\\",
    "\\u",
    "i",
    "u",
    "v",
];

/// Reproducible pseudo-random number generator.
struct Row(u64);

impl Row {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from((self.0 >> 16) % bound.max(1) as u64).unwrap()
    }

    fn place(&mut self, text: &str) -> usize {
        let mut at = self.below(text.len() + 1);
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        at
    }

    fn of<'a>(&mut self, list: &[&'a str]) -> &'a str {
        list[self.below(list.len())]
    }
}

/// Returns `text` with some parts removed, duplicated or replaced.
fn changed(text: &str, corpus: &[&str], row: &mut Row) -> String {
    let (one, other) = (row.place(text), row.place(text));
    let (start, end) = (one.min(other), one.max(other));
    match row.below(6) {
        0 => format!("{}{}", &text[..start], &text[end..]),
        1 | 2 => format!("{}{}{}", &text[..start], row.of(PIECES), &text[start..]),
        3 if text.len() < 2_000 => format!("{}{}{}", &text[..end], &text[start..end], &text[end..]),
        4 => {
            let other = row.of(corpus);
            let from = row.place(other);
            format!("{}{}", &text[..start], &other[from..])
        }
        _ => format!("{}{}{}", &text[..start], row.of(PIECES), &text[end..]),
    }
}

/// Reads and judges an expectation, whatever the result.
fn feed(expected: &Value, actual: &Value) {
    let mut problems = Vec::new();
    let (host, expected) = (host(), node(expected));
    for expectation in [
        Expectation::from_value(&expected, Rules::default(), &host, None, &mut problems),
        Expectation::from_result(&expected, Rules::default(), &host, Some(&expected), &mut problems),
    ] {
        let found = expectation.judge(Some(actual), &Data::default());
        assert!((0.0..=1.0).contains(&found.score), "{expected:?}");
    }
}

/// Entry point that a fuzzer would call with any text.
fn feed_text(text: &str, actual: &Value) {
    match serde_json::from_str::<Value>(text) {
        Ok(expected) => feed(&expected, actual),
        Err(_) => feed(&json!(text), actual),
    }
}

#[test]
fn no_regular_expression_panics_or_hangs() {
    let texts: Vec<Value> = VALUES.iter().map(|text| serde_json::from_str(text).unwrap()).collect();
    let mut row = Row(0x5eed);
    for round in 0..320 {
        let mut text = REGEXES[round % REGEXES.len()].to_owned();
        for _ in 0..row.below(4) {
            text = changed(&text, REGEXES, &mut row);
        }
        let actual = &texts[row.below(texts.len())];
        feed(&json!(text), actual);
        feed(&json!({(text.as_str()): text}), actual);
    }
}

#[test]
fn no_expectation_panics_or_hangs() {
    let values: Vec<Value> = VALUES.iter().map(|text| serde_json::from_str(text).unwrap()).collect();
    let mut row = Row(0xfeed);
    let mut read = 0;
    for round in 0..500 {
        let mut text = EXPECTATIONS[round % EXPECTATIONS.len()].to_owned();
        for _ in 0..row.below(3) {
            text = changed(&text, EXPECTATIONS, &mut row);
        }
        read += usize::from(serde_json::from_str::<Value>(&text).is_ok());
        feed_text(&text, &values[row.below(values.len())]);
    }
    // Without enough valid JSON, little would be tested.
    assert!(read > 60, "{read}");
}

/// Replaces some words, keys and values of an expectation, so that it stays JSON.
fn grafted(value: &Value, parts: &[Value], keys: &[String], row: &mut Row) -> Value {
    if row.below(8) == 0 {
        return parts[row.below(parts.len())].clone();
    }
    match value {
        Value::Array(items) => {
            let mut kept = Vec::with_capacity(items.len());
            for item in items {
                if row.below(7) > 0 {
                    kept.push(grafted(item, parts, keys, row));
                }
            }
            kept.into()
        }
        Value::Object(map) => {
            let graft = |(key, value): (&String, &Value)| {
                let key = if row.below(6) == 0 { keys[row.below(keys.len())].clone() } else { key.clone() };
                (key, grafted(value, parts, keys, row))
            };
            Value::Object(map.iter().map(graft).collect())
        }
        other => other.clone(),
    }
}

/// Collects every value in `value`, and every key.
fn take_apart(value: &Value, parts: &mut Vec<Value>, keys: &mut Vec<String>) {
    parts.push(value.clone());
    match value {
        Value::Array(items) => items.iter().for_each(|item| take_apart(item, parts, keys)),
        Value::Object(map) => {
            for (key, value) in map {
                keys.push(key.clone());
                take_apart(value, parts, keys);
            }
        }
        _ => {}
    }
}

#[test]
fn no_mutated_expectation_panics_or_hangs() {
    let (mut parts, mut keys) = (Vec::new(), Vec::new());
    let corpus: Vec<Value> = EXPECTATIONS.iter().map(|text| serde_json::from_str(text).unwrap()).collect();
    let values: Vec<Value> = VALUES.iter().map(|text| serde_json::from_str(text).unwrap()).collect();
    corpus.iter().for_each(|value| take_apart(value, &mut parts, &mut keys));
    keys.extend(expect::OPERATORS.iter().map(|operator| operator.name.to_owned()));
    let mut row = Row(0xabcd);
    for round in 0..700 {
        let expected = grafted(&corpus[round % corpus.len()], &parts, &keys, &mut row);
        feed(&expected, &values[row.below(values.len())]);
    }
}
