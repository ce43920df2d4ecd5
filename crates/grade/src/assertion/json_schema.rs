//! `json_schema`: the answer is JSON that conforms to a schema.

use expect::schema::{Patterns, Schema, SchemaError};
use model::decode::Problems;
use model::{Node, NodeKind, Source, foreign_json};
use script::{DEFAULT_BUDGET, Regex};
use serde_json::Value;

use super::prelude::*;
use crate::given;
use crate::json_source::too_large;

/// Number of mismatches that a finding lists in addition to the first.
const SHOWN: usize = 8;

pub(crate) const ASSERTION: Assertion = Assertion::written("json_schema", parse)
    .summary("The answer is JSON that satisfies a schema.")
    .fields(&[Field::required(
        "schema",
        "JSON Schema, in code also a schema object such as zod's",
        "The schema. An invalid schema is an error before anything runs.",
    )])
    .parameters(&[Parameter::Map("schema")])
    .example(
        || {
            json!({"id": "is-an-order", "type": "json_schema", "schema": {
                "type": "object", "required": ["id"], "properties": {"id": {"type": "integer"}}}})
        },
        || EvidenceBuilder::new().answer("```json\n{\"id\": 17}\n```"),
        || EvidenceBuilder::new().answer("{\"id\": \"A-17\"}"),
    );

#[derive(Debug)]
struct JsonSchema {
    schema: Schema,
    place: SourceLocation,
}

fn parse(reading: &mut Reading<'_>) -> Option<Arc<dyn Matcher>> {
    let node = reading.fields.require("schema", reading.problems)?;
    if !matches!(node.kind, NodeKind::Map(_) | NodeKind::Bool(_)) {
        reading.problems.push(node.error(format!("`schema` must be a JSON Schema, a map, not {}", node.kind_name())));
        return None;
    }
    if let Some(inner) = node.get("schema").filter(|inner| matches!(inner.kind, NodeKind::Map(_))) {
        let problem =
            inner.error("`schema` is not a keyword of JSON Schema, and the schema is already expected above it");
        reading.problems.push(problem.help("write what is below `schema` one level higher"));
        return None;
    }
    let schema = Schema::compile(node, &patterns(), reading.problems)?;
    Some(Arc::new(JsonSchema { schema, place: SourceLocation::from_node(node) }))
}

/// Returns the regular expressions for schemas.
pub(crate) fn patterns() -> Arc<dyn Patterns> {
    Arc::new(Engine)
}

/// Returns the errors of `value`, with their paths. A schema without `$schema` is one of draft 2020-12.
///
/// # Errors
/// Returns the reason if the schema is not valid, or if it is not known whether the value is.
pub fn schema_errors(schema: &Value, value: &Value) -> Result<Vec<String>, String> {
    let mut schema = schema.clone();
    if let Value::Object(entries) = &mut schema {
        entries.entry("$schema").or_insert_with(|| "https://json-schema.org/draft/2020-12/schema".into());
    }
    let node = Node::from_json(&schema, &Source::new("schema", ""));
    let mut problems = Problems::new();
    let Some(schema) = Schema::compile(&node, &patterns(), &mut problems) else {
        let problem = problems.iter().find(|problem| problem.is_error());
        return Err(problem.map(|problem| problem.message.clone()).unwrap_or_default());
    };
    let errors = schema.validate(value).map_err(|undecided| undecided.to_string())?;
    Ok(errors.iter().map(ToString::to_string).collect())
}

/// Regular expressions of the script engine, for use in schemas.
struct Engine;

impl Patterns for Engine {
    fn check(&self, source: &str, flags: &str) -> Result<(), String> {
        Regex::literal(source, flags).map(drop).map_err(|error| error.to_string())
    }

    fn is_match(&self, source: &str, flags: &str, text: &str) -> Result<bool, String> {
        let regex = Regex::literal(source, flags).map_err(|error| error.to_string())?;
        regex.is_match_within(text, DEFAULT_BUDGET).map_err(|error| error.to_string())
    }
}

impl Matcher for JsonSchema {
    fn judge(&self, evidence: &Evidence) -> Judgement {
        let value = match given::output(&evidence.trace) {
            None => return Ok(self.not_json("the agent gave no answer", None)),
            Some(Value::String(answer)) => match value_of(&answer) {
                Ok(value) => value,
                Err(NotJson::TooLarge(reason)) => return Ok(Verdict::undecided(reason).place(&self.place)),
                Err(NotJson::Other(hint)) => return Ok(self.not_json(&format::quoted(&answer), hint)),
            },
            Some(value) => value,
        };
        Ok(match self.schema.validate(&value) {
            Ok(errors) => self.verdict_of(&errors, &value),
            Err(undecided) => Verdict::undecided(undecided.to_string()).place(&self.place),
        })
    }
}

impl JsonSchema {
    fn not_json(&self, actual: &str, hint: Option<String>) -> Verdict {
        Verdict::unmet("the answer is not valid JSON", "valid JSON, alone or in a single code fence", actual)
            .evidence(hint)
            .place(&self.place)
    }

    fn verdict_of(&self, errors: &[SchemaError], value: &Value) -> Verdict {
        let Some((first, rest)) = errors.split_first() else {
            return Verdict::met("the answer satisfies the schema").place(&self.place);
        };
        let more = if rest.is_empty() { String::new() } else { format!(" (and {} more)", rest.len()) };
        let errors = rest.iter().map(ToString::to_string).collect();
        Verdict::unmet(
            format!("the answer does not satisfy the schema: {first}{more}"),
            format!("{} {}", first.keyword, format::quoted(&first.expected.to_string())),
            format::quoted(&value.to_string()),
        )
        .evidence(format::few(errors, SHOWN))
        .place(&self.place)
    }
}

/// Why an answer is not a value.
enum NotJson {
    /// It has too many levels or values to be read.
    TooLarge(String),
    /// It is not valid JSON, with a hint if it is almost valid.
    Other(Option<String>),
}

/// Parses the answer as JSON.
fn value_of(answer: &str) -> Result<Value, NotJson> {
    let text = answer.trim();
    let because = |error: serde_json::Error, hint: Option<String>| match foreign_json::is_too_large(&error) {
        true => NotJson::TooLarge(too_large("the answer", &error)),
        false => NotJson::Other(hint),
    };
    let error = match foreign_json::parse(text) {
        Ok(value) => return Ok(value),
        Err(error) => error,
    };
    match fenced(text) {
        Some((inner, "")) => foreign_json::parse(inner).map_err(|error| {
            let hint = format!("in the code fence: {error}");
            because(error, Some(hint))
        }),
        Some((inner, _)) if foreign_json::parse(inner).is_ok() => {
            Err(NotJson::Other(Some("the answer has JSON in a code fence, but also text around it".into())))
        }
        _ => {
            let hint = text.starts_with(['{', '[']).then(|| error.to_string());
            Err(because(error, hint))
        }
    }
}

/// Returns the content of the first code fence in `text`, and the text around it.
fn fenced(text: &str) -> Option<(&str, &str)> {
    let (before, rest) = text.split_once("```")?;
    let (_language, rest) = rest.split_once('\n')?;
    let (inner, after) = rest.split_once("\n```")?;
    let around = if before.trim().is_empty() { after.trim() } else { before };
    Some((inner, around))
}

#[cfg(test)]
mod tests {
    use model::Status;
    use serde_json::json;

    use super::*;
    use crate::check::compile;
    use crate::check::tests::{case, judged};
    use crate::context::Context;

    fn finding_of(answer: &str) -> model::Finding {
        let schema = json!({"type": "object", "properties": {"n": {"type": "integer", "minimum": 2}}});
        judged(
            &json!({"id": "a", "type": "json_schema", "schema": schema}),
            &EvidenceBuilder::new().answer(answer).evidence(),
        )
    }

    #[test]
    fn json_can_be_in_a_single_code_fence_without_other_text() {
        for fine in [r#" {"n": 2} "#, "```\n{\"n\": 2}\n```", "```json\n{}\n```\n"] {
            assert_eq!(finding_of(fine).status, Status::Met, "{fine}");
        }
        let finding = finding_of("Here:\n```json\n{}\n```");
        assert_eq!(finding.reason, "the answer is not valid JSON");
        assert_eq!(finding.evidence, ["the answer has JSON in a code fence, but also text around it"]);
        assert_eq!(finding_of("{n: 2}").evidence, ["key must be a string at line 1 column 2"]);
        assert!(finding_of("Sure!").evidence.is_empty());
    }

    #[test]
    fn every_mismatch_is_reported() {
        let finding = finding_of(r#"{"n": 1}"#);
        assert_eq!(finding.status, Status::Unmet);
        assert!(finding.reason.starts_with("the answer does not satisfy the schema: `n` must be"), "{finding:?}");
    }

    #[test]
    fn a_value_that_is_not_a_string_is_validated_as_is() {
        let mut evidence = EvidenceBuilder::new().evidence();
        evidence.trace.result = Some(Arc::new(json!({"output": {"n": 3}})));
        let assertion = json!({"id": "a", "type": "json_schema", "schema": {"required": ["n"]}});
        assert_eq!(judged(&assertion, &evidence).status, Status::Met);
    }

    #[test]
    fn every_mistake_in_a_schema_is_reported_before_the_run() {
        let schema = json!({"properties": {"a": {"type": "strin"}, "b": {"pattern": "("}}});
        let (_, problems) =
            compile(&case(&[json!({"id": "a", "type": "json_schema", "schema": schema})]), &Context::default());
        assert!(problems.len() >= 2, "{problems:#?}");
        let (_, problems) =
            compile(&case(&[json!({"id": "a", "type": "json_schema", "schema": "x"})]), &Context::default());
        assert_eq!(problems[0].message, "`schema` must be a JSON Schema, a map, not a string");
    }
}
