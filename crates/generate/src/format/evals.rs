//! Skill evaluations: one `evals.json` contains all cases of a skill.

use serde_json::{Map, Value, json};

use super::{Context, Format};
use crate::candidate::{AssertionKind, Candidate, ProposedAssertion};

pub(super) const FORMAT: Format = Format {
    name: "evals",
    extension: "",
    folder: "evals",
    common_file: Some("evals.json"),
    is_of_skill: true,
    has_turns: false,
    has_files: true,
    // The suite format has no other assertions that code decides, and sentences are decided by judges.
    lacks: &[
        AssertionKind::Contains,
        AssertionKind::NotContains,
        AssertionKind::Matches,
        AssertionKind::ToolCalled,
        AssertionKind::NoToolCalled,
        AssertionKind::Sentiment,
        AssertionKind::Guardrail,
        AssertionKind::Factuality,
    ],
    render,
};

/// Reason why a case cannot be added to an `evals.json`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EvalsError {
    /// The file is not a suite.
    #[error("it is not a JSON map with a list `evals`")]
    NotASuite,
    /// It is about another skill.
    #[error("it evaluates the skill `{0}`")]
    OtherSkill(String),
    /// It contains a case with this id.
    #[error("it already has a case `{0}`")]
    Exists(String),
    /// Writing it again would change lines that a person wrote.
    #[error("it is not formatted as two-space JSON, so adding a case would rewrite it; use another folder")]
    OtherLayout,
}

fn render(candidate: &Candidate, context: &Context<'_>) -> String {
    let suite = json!({ "skill_name": context.skill.unwrap_or_default(), "evals": [case(candidate)] });
    pretty(&suite)
}

/// Returns the suite in `text` with another case at its end. Existing cases are kept unchanged.
///
/// # Errors
/// Returns an error if `text` is not a suite of the skill, already has a case with this id, or is formatted
/// differently.
pub fn add_to_evals(text: &str, candidate: &Candidate, context: &Context<'_>) -> Result<String, EvalsError> {
    let mut suite: Value = serde_json::from_str(text).map_err(|_| EvalsError::NotASuite)?;
    let skill = suite.get("skill_name").and_then(Value::as_str).ok_or(EvalsError::NotASuite)?;
    if Some(skill) != context.skill {
        return Err(EvalsError::OtherSkill(skill.to_owned()));
    }
    if pretty(&suite).trim_end() != text.trim_end() {
        return Err(EvalsError::OtherLayout);
    }
    let cases = suite.get_mut("evals").and_then(Value::as_array_mut).ok_or(EvalsError::NotASuite)?;
    if cases.iter().any(|case| case.get("id").and_then(Value::as_str) == Some(candidate.slug.as_str())) {
        return Err(EvalsError::Exists(candidate.slug.clone()));
    }
    cases.push(case(candidate));
    Ok(pretty(&suite))
}

/// Returns the files to which a case refers, relative to the folder of its suite, with their contents.
pub fn side_files(candidate: &Candidate) -> impl Iterator<Item = (String, &str)> {
    let path_of = |path: &str| format!("files/{}/{path}", candidate.slug);
    candidate.script.files.iter().map(move |file| (path_of(&file.path), file.content.as_str()))
}

fn case(candidate: &Candidate) -> Value {
    let says = candidate.script.turns.first().map(|turn| turn.says.as_str()).unwrap_or_default();
    let mut case = Map::new();
    case.insert("id".into(), candidate.slug.as_str().into());
    case.insert("prompt".into(), says.into());
    case.insert("expected_output".into(), candidate.planned.success.join(" ").into());
    if candidate.category.name == "near-miss" {
        case.insert("should_trigger".into(), false.into());
    }
    if !candidate.script.files.is_empty() {
        case.insert("files".into(), side_files(candidate).map(|(path, _)| path).collect());
    }
    case.insert("assertions".into(), candidate.assertions().map(assertion).collect());
    Value::Object(case)
}

fn assertion(assertion: &ProposedAssertion) -> Value {
    let kind = assertion.kind.name();
    match assertion.kind {
        AssertionKind::FileExists | AssertionKind::FileUnchanged => json!({ "type": kind, "path": assertion.path }),
        AssertionKind::FileContains => json!({ "type": kind, "path": assertion.path, "contains": assertion.value }),
        // A judge decides a sentence.
        _ => assertion.value.as_str().into(),
    }
}

fn pretty(suite: &Value) -> String {
    serde_json::to_string_pretty(suite).unwrap_or_default() + "\n"
}
