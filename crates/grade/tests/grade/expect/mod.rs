//! Tests of expectations with the real engine.

#![allow(clippy::unwrap_used, clippy::panic, clippy::needless_pass_by_value)]

mod absent;
mod bounds;
mod custom;
mod fuzz;
mod given;
mod mended;
mod properties;
mod tools;
mod undecided;
mod words;

use std::path::Path;
use std::sync::Arc;

use expect::{Data, Expectation, Found, Host, Pass, Rules};
use model::{
    AssertionSpec, Case, Collected, Ending, Evidence, Excerpt, Finding, Node, Source, Spanned, Step, Trace, Usage,
    UserMessage,
};
use serde_json::Value;
use trialrun_grade::{Context, Scripts, compile, grade};

/// Returns the embedded engine.
fn host() -> Arc<dyn Host> {
    Arc::new(Scripts::default())
}

fn node(value: &Value) -> Node {
    Node::from_json(value, &Source::new("case.yaml", ""))
}

/// Reads an expectation of a value. Returns it with the problems.
fn read(rules: &Rules, expected: &Value) -> (Expectation, Vec<String>) {
    let mut problems = Vec::new();
    let expectation = Expectation::from_value(&node(expected), rules.clone(), &host(), None, &mut problems);
    (expectation, problems.iter().map(ToString::to_string).collect())
}

/// Judges `actual`. The expectation must not have problems.
fn found_by(rules: &Rules, expected: &Value, actual: &Value) -> Found {
    let (expectation, problems) = read(rules, expected);
    assert!(problems.is_empty(), "{expected}: {problems:#?}");
    expectation.judge(Some(actual), &Data::default())
}

fn found(expected: &Value, actual: &Value) -> Found {
    found_by(&Rules::default(), expected, actual)
}

/// Like `found`, for an agent's whole result.
fn found_in_result(expected: &Value, actual: &Value) -> Found {
    let mut problems = Vec::new();
    let expectation = Expectation::from_result(&node(expected), Rules::default(), &host(), None, &mut problems);
    assert!(problems.is_empty(), "{expected}: {problems:#?}");
    expectation.judge(Some(actual), &Data::default())
}

/// Asserts that it matches with the full score.
fn holds(expected: &Value, actual: &Value) {
    let found = found(expected, actual);
    assert_eq!((found.pass, found.score), (Pass::Yes, 1.0), "{expected} of {actual}: {:#?}", found.flaws);
    assert!(found.flaws.is_empty(), "{:#?}", found.flaws);
}

/// Asserts that it does not match, and the paths of the mismatches.
fn fails(expected: &Value, actual: &Value, at: &[&str]) {
    let found = found(expected, actual);
    assert_eq!(found.pass, Pass::No, "{expected} of {actual}");
    assert_eq!(keys(&found), at, "{expected} of {actual}: {:#?}", found.flaws);
}

/// Asserts that the expectation is invalid.
fn refused(expected: &Value, words: &str) {
    let (expectation, problems) = read(&Rules::default(), expected);
    assert!(problems.iter().any(|problem| problem.contains(words)), "{expected}: {problems:#?}");
    // If it is used anyway, it does not pass.
    assert_ne!(expectation.judge(Some(&Value::Null), &Data::default()).pass, Pass::Yes);
}

fn keys(found: &Found) -> Vec<&str> {
    found.flaws.iter().map(|flaw| flaw.key.as_deref().unwrap_or("?")).collect()
}

/// Returns the paths of critical failures.
fn critical(found: &Found) -> Vec<&str> {
    found.flaws.iter().filter(|flaw| flaw.critical).map(|flaw| flaw.key.as_deref().unwrap_or("?")).collect()
}

/// Asserts that two scores are equal, except for rounding errors.
fn assert_score(found: &Found, score: f64) {
    assert!((found.score - score).abs() < 1e-9, "{} is not {score}: {:#?}", found.score, found.details);
}

/// Returns a case with this one assertion.
fn case(assertion: &Value) -> Case {
    let node = node(assertion);
    let kind = node.get("type").unwrap();
    let spec = AssertionSpec {
        id: "it".into(),
        kind: Spanned::new("expect".into(), kind.span),
        weight: 1.0,
        node: node.clone(),
        arguments: model::Arguments::Fields,
        about: model::AssertionScope::Trial,
    };
    Case {
        messages: vec![UserMessage::text("Begin.")],
        assertions: vec![spec],
        ..Case::new("case", Excerpt::of_file("case.yaml"))
    }
}

/// Grades an assertion `expect` with these fields. References start at `directory`.
fn graded_in(directory: Option<&Path>, fields: Value, evidence: &Evidence) -> Result<Finding, Vec<String>> {
    graded_with(&directory.map_or_else(Scripts::default, Scripts::new), directory, fields, evidence)
}

/// Grades as [`graded_in`] with an engine.
fn graded_with(
    scripts: &Scripts,
    directory: Option<&Path>,
    fields: Value,
    evidence: &Evidence,
) -> Result<Finding, Vec<String>> {
    let mut assertion = fields;
    assertion["id"] = "it".into();
    assertion["type"] = "expect".into();
    let context = Context { directory, scripts: Some(scripts), ..Context::default() };
    let (checks, problems) = compile(&case(&assertion), &context);
    if problems.iter().any(model::Diagnostic::is_error) {
        return Err(problems.iter().map(|problem| format!("{problem} {}", problem.help.join(" "))).collect());
    }
    Ok(grade(&checks, evidence).remove(0))
}

fn graded(fields: Value, evidence: &Evidence) -> Finding {
    graded_in(None, fields, evidence).unwrap()
}

/// Returns the evidence of an agent that answered `output` and did nothing else.
fn answered(output: &Value) -> Evidence {
    let result = serde_json::json!({"output": output});
    let finished = Step::Finished {
        subtype: "success".into(),
        is_error: false,
        usage: Usage::default(),
        text: None,
        result: Some(result),
    };
    evidence(Trace::of(&[finished]))
}

fn evidence(trace: Trace) -> Evidence {
    Evidence {
        trace,
        collected: Collected::default(),
        ending: Ending::Finished,
        limits: Arc::default(),
        unused_responses: Vec::new(),
        agent_ms: None,
    }
}
