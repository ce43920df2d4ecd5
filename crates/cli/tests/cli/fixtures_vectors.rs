//! The recorded behaviour of @isdk/ai-test-runner, situation by situation, from a fixtures file to an outcome.
//! Intended differences are listed in `vectors/isdk/differences.json` with their reasons; it is an error if a listed
//! vector agrees after all.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test that cannot go on fails, and tells its counts"
)]

mod compared;
mod judged;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;
use testkit::packages;

const VECTORS: &str = include_str!("../vectors/isdk/vectors.jsonl");
const DIFFERENCES: &str = include_str!("../vectors/isdk/differences.json");

/// Maximum number of vectors that are not marked as a quirk, a known defect, and differ by a rule.
const MAX_BY_RULE: usize = 40;

/// Returns `true` if `vector` imports a package.
fn imports_a_package(vector: &Value) -> bool {
    vector.to_string().contains("lodash-es#")
}

#[test]
fn every_vector_agrees_or_is_listed_with_its_reason() {
    agree_or_are_listed(None);
}

#[test]
#[cfg_attr(not(has = "packages"), ignore = "needs npm packages; run scripts/test")]
fn every_vector_that_imports_a_package_agrees_or_is_listed_with_its_reason() {
    agree_or_are_listed(Some(&packages()));
}

/// Compares the vectors that import a package, if `packages` has them, or the other ones.
#[track_caller]
fn agree_or_are_listed(packages: Option<&Path>) {
    let mut listed: BTreeMap<String, String> = serde_json::from_str(DIFFERENCES).unwrap();
    let only = std::env::var("TRIALRUN_VECTOR").ok();
    let (mut agree, mut refused, mut differ, mut untagged, mut by_rule) = (0, 0, 0, 0, 0);
    let mut wrong = Vec::new();
    let vectors = VECTORS.lines().map(|line| serde_json::from_str(line).unwrap());
    let (vectors, others): (Vec<Value>, Vec<Value>) =
        vectors.partition(|vector| imports_a_package(vector) == packages.is_some());
    others.iter().for_each(|vector| drop(listed.remove(vector["id"].as_str().unwrap())));
    let bench = judged::Bench::new(&PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/vectors/isdk"), packages);
    for vector in &vectors {
        let id = vector["id"].as_str().unwrap();
        if only.as_deref().is_some_and(|only| !id.starts_with(only)) {
            continue;
        }
        let outcome = bench.run(vector);
        if only.is_some() {
            println!("{id}: {outcome:#?}");
        }
        let differences = compared::differences(vector, &outcome);
        match (differences.is_empty(), listed.get(id)) {
            (true, None) => {
                agree += 1;
                refused += usize::from(outcome.iter().any(|judged| !judged.refused.is_empty()));
            }
            (false, Some(reason)) => {
                let is_untagged = vector.get("quirks").is_none();
                differ += 1;
                untagged += usize::from(is_untagged);
                by_rule += usize::from(is_untagged && reason.starts_with("rule: "));
            }
            (true, Some(_)) => wrong.push(format!("{id}: it is listed and agrees after all")),
            (false, None) => {
                let quirks = vector.get("quirks").map(Value::to_string).unwrap_or_default();
                wrong.push(format!("{id} {quirks}: {}", differences.join("; ")));
            }
        }
    }
    println!(
        "{agree} agree ({refused} of them are refused before they run), {differ} differ as listed ({untagged} of them without a quirk, {by_rule} of those by a rule), {} in all",
        vectors.len()
    );
    assert!(wrong.is_empty(), "{} vectors:\n{}", wrong.len(), wrong.join("\n"));
    if only.is_none() {
        assert!(!vectors.is_empty());
        assert_eq!(agree + listed.len(), vectors.len());
        assert!(by_rule <= MAX_BY_RULE, "{by_rule} vectors without a quirk differ by a rule");
    }
}

#[test]
fn every_difference_is_a_quirk_or_follows_from_a_rule() {
    let listed: BTreeMap<String, String> = serde_json::from_str(DIFFERENCES).unwrap();
    for (id, reason) in &listed {
        assert!(reason.starts_with("quirk: ") || reason.starts_with("rule: "), "{id}: {reason}");
    }
}
