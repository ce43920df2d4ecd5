//! Compares with the recorded results of the npm package `diff` 8.0.2.

use serde::Deserialize;

use super::super::*;

const VECTORS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vectors/diff.jsonl");

#[derive(Deserialize)]
struct Vector {
    kind: String,
    #[serde(default)]
    options: Value,
    expected: String,
    actual: String,
    /// Parts as texts: `=` in both, `-` removed, `+` added.
    parts: Vec<String>,
}

fn options(written: &Value) -> Options {
    let flag = |name: &str| written.get(name).and_then(Value::as_bool);
    Options {
        ignore_case: flag("ignoreCase").unwrap_or_default(),
        ignore_whitespace: flag("ignoreWhitespace"),
        ignore_newline_at_eof: flag("ignoreNewlineAtEof").unwrap_or_default(),
        newline_is_token: flag("newlineIsToken").unwrap_or_default(),
        strip_trailing_cr: flag("stripTrailingCr").unwrap_or_default(),
        one_change_per_token: flag("oneChangePerToken").unwrap_or_default(),
        max_edit_length: written.get("maxEditLength").and_then(Value::as_u64),
    }
}

fn marked(part: &Part) -> String {
    let mark = match (part.added, part.removed) {
        (true, _) => '+',
        (_, true) => '-',
        _ => '=',
    };
    format!("{mark}{}", part.value)
}

#[test]
fn every_recorded_diff_has_the_same_parts() {
    let vectors = std::fs::read_to_string(VECTORS).unwrap();
    let (mut count, mut wrong) = (0, Vec::new());
    for line in vectors.lines() {
        let vector: Vector = serde_json::from_str(line).unwrap();
        let kind = KINDS.iter().find(|(name, _)| *name == vector.kind).unwrap().1;
        let found = diff(&vector.expected, &vector.actual, kind, &options(&vector.options));
        let parts: Vec<String> = found.parts.iter().map(marked).collect();
        count += 1;
        if parts != vector.parts {
            wrong.push(format!("{line}\n  {parts:?}"));
        }
    }
    assert!(count >= 800, "{count} vectors");
    assert!(wrong.is_empty(), "{} of {count} differ:\n{}", wrong.len(), wrong[..wrong.len().min(10)].join("\n"));
}
