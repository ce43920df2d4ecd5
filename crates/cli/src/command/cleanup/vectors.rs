//! Compares the parsing of command output, and of the states of review requests, with recorded results. Intended
//! differences are listed with their reasons.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use session::hooks::output;

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
    let listed: BTreeMap<String, String> = serde_json::from_str(DIFFERENCES).unwrap();
    let vectors = [
        rows(HOOK_PARSE, "hook_parse", hook_parse),
        rows(OPEN_STATE, "open_state", |state| json!(cleanup::is_open(state.as_str()))),
        // This program writes the numbers of tokens in full.
        rows(FORMAT_TOKENS, "format_tokens", |tokens| tokens.as_u64().map_or(Value::Null, |n| json!(n.to_string()))),
    ]
    .concat();
    let (mut agree, mut differ, mut wrong) = (0, 0, Vec::new());
    for (name, recorded, now) in &vectors {
        match (recorded == now, listed.get(name)) {
            (true, None) => agree += 1,
            (false, Some(_)) => differ += 1,
            (true, Some(_)) => wrong.push(format!("{name}: listed, but both say {now}")),
            (false, None) => wrong.push(format!("{name}: recorded {recorded}, now {now}")),
        }
    }
    let is_vector = |name: &String| vectors.iter().any(|(other, ..)| other == name);
    wrong.extend(listed.keys().filter(|name| !is_vector(name)).map(|name| format!("{name}: there is no such vector")));
    let cited = |reason: &str| ["defect: ", "decision: "].iter().any(|mark| reason.starts_with(mark));
    wrong.extend(listed.iter().filter(|(_, reason)| !cited(reason)).map(|(name, _)| format!("{name}: has no reason")));
    let counted = format!("hook vectors: {agree} agree + {differ} listed = {} of {}", agree + differ, vectors.len());
    std::io::Write::write_all(&mut std::io::stdout(), format!("\n{counted}\n").as_bytes()).unwrap();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(agree + differ, vectors.len());
}
