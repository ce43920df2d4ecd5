//! Comparison with the recorded behaviour of agent-skill-eval 0.6.1.

use std::path::Path;

use serde_json::Value;

use super::{SUITE, one};
use crate::scratch::{Scratch, all_problems, describe};

fn read(name: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors/agent-skill-eval").join(name))
        .unwrap()
}

fn lines(name: &str) -> Vec<Value> {
    read(name).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Classifies a message from either program about a `SKILL.md`.
fn complaint(text: &str) -> &'static str {
    let holds = |words: &[&str]| words.iter().any(|word| text.contains(word));
    if holds(&["no YAML frontmatter", "has no frontmatter"]) {
        "none"
    } else if holds(&["not closed"]) {
        "open"
    } else if holds(&["not valid YAML", "is never closed"]) {
        "yaml"
    } else if holds(&["not a YAML mapping", "must be a map"]) {
        "map"
    } else if holds(&["'description'", "`description`"]) {
        "description"
    } else if holds(&["name '", "`name`", "is named"]) {
        "name"
    } else {
        "other"
    }
}

/// Returns `true` if both programs report the same problem. There, it is a warning; here, it stops a run that tests
/// the skill.
fn frontmatter_agrees(vector: &Value) -> bool {
    let scratch = Scratch::new();
    scratch.write("skills/sk/SKILL.md", vector["text"].as_str().unwrap());
    scratch.write(
        "skills/sk/evals/evals.json",
        "{\"skill_name\": \"sk\", \"evals\": [{\"id\": 1, \"prompt\": \"p\", \"expected_output\": \"\"}]}",
    );
    let here = describe(&scratch.load(&["sk"]).diagnostics);
    let there: Vec<&str> =
        vector["problems"].as_array().unwrap().iter().map(|line| complaint(line.as_str().unwrap())).collect();
    here.iter().map(|line| complaint(line)).collect::<Vec<_>>() == there
}

/// Returns `true` if two texts that agent-skill-eval considered equal when matching the judge's answers are the same
/// assertion here.
fn normal_agrees(vector: &Value) -> bool {
    let scratch = Scratch::new();
    scratch.skill("s").write(SUITE, one(&format!("\"assertions\": [{}, {}]", vector["in"], vector["out"])));
    describe(&scratch.load(&["s"]).diagnostics).iter().any(|line| line.ends_with("asserts the same thing"))
}

#[test]
fn every_vector_matches_or_is_a_listed_difference() {
    let differences: Value = serde_json::from_str(&read("differences.json")).unwrap();
    let differences = differences.as_array().unwrap();
    let (mut all, mut agree, mut listed) = (0, 0, 0);
    let mut hold = |file: &str, key: &str, agrees: fn(&Value) -> bool| {
        for vector in lines(file) {
            all += 1;
            match (agrees(&vector), differences.iter().any(|it| it["file"] == file && it[key] == vector[key])) {
                (true, false) => agree += 1,
                (false, true) => listed += 1,
                (true, true) => panic!("{file}: listed as a difference but agrees: {vector}"),
                (false, false) => panic!("{file}: differs and is not listed: {vector}"),
            }
        }
    };
    hold("frontmatter_problems.jsonl", "text", frontmatter_agrees);
    hold("normalize.jsonl", "in", normal_agrees);
    // Written past the output capture of passing tests, so that the count is visible in the test output.
    let counted = format!("evals vectors: {agree} agree + {listed} listed = {all} vectors");
    std::io::Write::write_all(&mut std::io::stdout(), format!("\n{counted}\n").as_bytes()).unwrap();
    assert_eq!(agree + listed, all);
    let of_vectors = differences.iter().filter(|it| it["file"].is_string()).count();
    assert_eq!(listed, of_vectors);
}

/// Checks suites that were accepted there and are rejected here, or vice versa, each with the reason.
#[test]
fn every_listed_difference_of_the_format_exists() {
    let differences: Value = serde_json::from_str(&read("differences.json")).unwrap();
    let mut count = 0;
    for difference in differences.as_array().unwrap() {
        let reason = difference["reason"].as_str().unwrap();
        let is_cited = ["defect: ", "decision: "].iter().any(|mark| reason.starts_with(mark));
        assert!(is_cited, "a difference needs its reason: {reason}");
        let Some(case) = difference.get("case") else { continue };
        count += 1;
        let scratch = Scratch::new();
        let suite = serde_json::json!({"skill_name": "s", "evals": [case]});
        scratch.skill("s").write(SUITE, suite.to_string()).write("skills/s/evals/files/a.txt", "");
        let loaded = scratch.load(&["s"]);
        // Some mistakes break only their case.
        let problems = all_problems(&loaded);
        let is_refused = problems.iter().any(model::Diagnostic::is_error);
        assert_eq!(is_refused, difference["here"] == "refused", "{case}: {:#?}", describe(&problems));
        assert_ne!(difference["there"], difference["here"], "{case}");
    }
    assert!(count > 10, "{count}");
}
