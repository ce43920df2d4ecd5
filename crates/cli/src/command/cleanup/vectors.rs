//! Compares the parsing of command output, and of the states of review requests, with recorded results. Intended
//! differences are listed with their reasons.

use serde_json::{Value, json};

use session::hooks::output;
use testkit::vectors::compare;

use crate::command::cleanup;

const HOOK_PARSE: &str = include_str!("../../../tests/vectors/agent-skill-eval/hook_parse.jsonl");
const OPEN_STATE: &str = include_str!("../../../tests/vectors/agent-skill-eval/open_state.jsonl");
const FORMAT_TOKENS: &str = include_str!("../../../tests/vectors/agent-skill-eval/format_tokens.jsonl");
const DIFFERENCES: &str = include_str!("../../../tests/vectors/agent-skill-eval/differences.json");

fn rows(text: &str, name: &str, now: impl Fn(&Value) -> Value) -> Vec<(String, Value, Value)> {
    let rows = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    rows.map(|row| (format!("{name}: {}", row["in"]), row["out"].clone(), now(&row["in"]))).collect()
}

/// Returns the parsed output in the recorded form; an invalid element becomes the description of its mistake.
fn hook_parse(stdout: &Value) -> Value {
    let Some(elements) = output::read(stdout.as_str().unwrap()) else { return Value::Null };
    let elements = elements.into_iter().map(|element| match element {
        Ok(finding) => json!({
            "text": finding.text, "passed": finding.passed, "evidence": finding.evidence, "method": "hook", "skipped": false,
        }),
        Err(wrong) => json!({ "undecided": wrong }),
    });
    elements.collect()
}

#[test]
fn every_vector_agrees_or_is_listed_with_its_reason() {
    let vectors = [
        rows(HOOK_PARSE, "hook_parse", hook_parse),
        rows(OPEN_STATE, "open_state", |state| json!(cleanup::is_open(state.as_str()))),
        // This program writes the numbers of tokens in full.
        rows(FORMAT_TOKENS, "format_tokens", |tokens| tokens.as_u64().map_or(Value::Null, |n| json!(n.to_string()))),
    ]
    .concat();
    compare("hook vectors", DIFFERENCES, &vectors);
}
