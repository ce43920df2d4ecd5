//! `json_path` and `json_path_not_exists`: part of a JSON document exists and has the expected value, or does not
//! exist.

use model::{Diagnostic, Node, NodeKind, Spanned, nearest, rounded_number};
use serde_json::Value;

use super::prelude::*;
use super::valid_json::OPTIONAL_PATH;
use crate::as_written;
use crate::json_path::{JsonPath, Missing};
use crate::json_source::{JsonLookup, JsonSource};

pub(crate) const ASSERTION: Assertion = Assertion::written("json_path", |reading| parse(reading, true))
    .summary("The JSON in the answer, or in a file, has a value at a path.")
    .fields(&[
        JSON_PATH,
        Field::optional("equals", "any value", "Expected value.").or("any value"),
        OPTIONAL_PATH,
        TITLE,
    ])
    .parameters(&[Parameter::Value("json_path"), Parameter::Map("equals")])
    .pass(
        || {
            json!({"id": "counts-three", "type": "json_path", "path": "report.json", "json_path": "items.0.count",
                   "equals": 3})
        },
        || EvidenceBuilder::new().file("report.json", Some("{\"items\": [{\"count\": 3}]}")),
    )
    .fail(
        || json!({"id": "is-done", "type": "json_path", "json_path": "status", "equals": "done"}),
        || EvidenceBuilder::new().answer("{\"status\": \"open\"}"),
    );

pub(crate) const NEGATION: Assertion = Assertion::written("json_path_not_exists", |reading| parse(reading, false))
    .aliases(&["no_json_path"])
    .summary("The JSON in the answer, or in a file, has no value at a path.")
    .fields(&[JSON_PATH, OPTIONAL_PATH, TITLE])
    .parameters(&[Parameter::Value("json_path")])
    .example(
        || json!({"id": "tells-no-secret", "type": "json_path_not_exists", "json_path": "user.password"}),
        || EvidenceBuilder::new().answer("{\"user\": {\"name\": \"Ada\"}}"),
        || EvidenceBuilder::new().answer("{\"user\": {\"password\": null}}"),
    );

const JSON_PATH: Field = Field::required(
    "json_path",
    "string",
    "Keys and list positions, separated by dots: `items.0.name`. `$.items[0][\"a.b\"]` is also accepted.",
);

/// Advice for a path with a mistake.
const PATHS: &str = "such as `items.0.name`, or `$.items[0][\"a.b\"]`";

#[derive(Debug)]
struct AtPath {
    source: JsonSource,
    path: JsonPath,
    place: SourceLocation,
    is_wanted: bool,
    equals: Option<(Value, SourceLocation)>,
}

fn parse(reading: &mut Reading<'_>, is_wanted: bool) -> Option<Arc<dyn Matcher>> {
    let source = JsonSource::read(reading);
    let path = read_path(reading);
    let equals = reading
        .fields
        .get("equals")
        .filter(|_| is_wanted)
        .map(|node| (node.to_json(), SourceLocation::from_node(node)));
    if is_wanted
        && let Some(NodeKind::Map(entries)) = reading.fields.get("equals").map(|node| &node.kind)
        && let Some((key, value)) = entries.first().filter(|_| entries.iter().all(is_operator))
    {
        let problem = Diagnostic::warning(format!("`{}` is a key of the value here, not an operator", key.value));
        let help = "`equals` is compared as it is; the assertion `expect` has operators";
        reading.problems.push(problem.at(value.source.excerpt(key.span)).help(help));
    }
    if let Some((Value::String(text), place)) = &equals {
        let help = "`equals` is compared as it is; the assertion `expect` has expressions";
        reading.problems.extend(as_written::expression(text, place.excerpt(), help));
    }
    let (path, place) = path?;
    Some(Arc::new(AtPath { source: source?, path, place, is_wanted, equals }))
}

/// Returns `true` if the key is the name of an operator of expectations.
fn is_operator((key, _): &(Spanned<String>, Node)) -> bool {
    expect::OPERATORS.iter().any(|operator| operator.name == key.value)
}

/// Reads the path and its location.
fn read_path(reading: &mut Reading<'_>) -> Option<(JsonPath, SourceLocation)> {
    let is_path = |node: &model::Node| node.as_str().is_some_and(|text| text.starts_with("$."));
    if let Some(node) = reading.fields.get("path").filter(|node| is_path(node))
        && reading.fields.get("json_path").is_none()
    {
        let problem = node.error("`path` is the path of a file here, not one in its JSON");
        reading.problems.push(problem.help("write `json_path` instead of `path`"));
        return None;
    }
    let (written, place) = reading.required_text("json_path")?;
    match JsonPath::parse(&written) {
        Ok(path) => {
            if let Some(step) = path.foreign_step() {
                let message = format!("`{path}` has `{}`, which is read as the name of a key", step.trim_matches('\n'));
                let problem = model::Diagnostic::warning(message).at(place.excerpt());
                reading.problems.push(problem.suggest(path.translated().as_deref()).help(PATHS));
            }
            Some((path, place))
        }
        Err(wrong) => {
            let problem = model::Diagnostic::error(format!("`json_path` {wrong}")).at(place.excerpt());
            reading.problems.push(problem.help(PATHS));
            None
        }
    }
}

impl Matcher for AtPath {
    fn needs(&self) -> Vec<Need> {
        self.source.needs()
    }

    fn judge(&self, evidence: &Evidence) -> Judgement {
        let path = &self.path;
        let wanted = match &self.equals {
            _ if !self.is_wanted => format!("JSON without `{path}`"),
            Some((value, _)) => format!("{} at `{path}`", display(value)),
            None => format!("something at `{path}`"),
        };
        let (first, others) = match self.source.find(evidence)? {
            JsonLookup::None { reason, actual } => {
                let place = self.source.place().unwrap_or(&self.place);
                return Ok(Verdict::unmet(reason, wanted, actual).place(place));
            }
            JsonLookup::Value(value) => (value, Vec::new()),
            JsonLookup::Blocks(first, others) => (first, others),
        };
        let fits = |value: &&Value| match (path.find(value), &self.equals) {
            (Ok(found), Some((equals, _))) => expect::same(found, equals),
            (found, _) => found.is_ok(),
        };
        let value = std::iter::once(&first).chain(&others).find(fits).unwrap_or(&first);
        let place = &self.place;
        Ok(match (path.find(value), &self.equals) {
            (Err(missing), _) => {
                let reason = format!("there is no `{path}` in {}", self.source.describe());
                if !self.is_wanted {
                    return Ok(Verdict::met(reason).place(place));
                }
                Verdict::unmet(reason, wanted, there(&missing)).evidence(near(&missing)).place(place)
            }
            (Ok(found), _) if !self.is_wanted => {
                Verdict::unmet(format!("`{path}` exists"), wanted, display(found)).place(place)
            }
            (Ok(found), Some((equals, place))) if !expect::same(found, equals) => {
                Verdict::unmet(format!("`{path}` is {}", display(found)), wanted, display(found)).place(place)
            }
            (Ok(found), Some((_, place))) if let Some(number) = rounded_number(found) => {
                let reason = format!(
                    "`{path}` has a number of more than 64 bits (about {number}), whose digits are not known; ids of \
                     that length must be strings"
                );
                Verdict::undecided(reason).place(place)
            }
            (Ok(found), _) => Verdict::met(format!("`{path}` is {}", display(found))).place(place),
        })
    }
}

/// Formats a value as one short line.
fn display(value: &Value) -> String {
    match value {
        Value::String(text) => format::quoted(text),
        other => format::shortened(&other.to_string()),
    }
}

fn there(missing: &Missing<'_>) -> String {
    let place = match missing.reached.as_str() {
        "" => "the whole".to_owned(),
        reached => format!("`{reached}`"),
    };
    format!("{place} is {}", display(missing.there))
}

/// Returns a hint if the document has a key similar to the missing one.
fn near(missing: &Missing<'_>) -> Option<String> {
    let keys = missing.there.as_object()?;
    let near = nearest(&missing.step, keys.keys().map(String::as_str))?;
    Some(format!("there is `{near}`"))
}

#[cfg(test)]
mod tests {
    use model::Status;
    use serde_json::{Value, json};

    use crate::check::compile;
    use crate::check::tests::{case, judged, underlined};
    use crate::context::Context;
    use crate::example::EvidenceBuilder;

    fn finding_of(rest: &Value, answer: &str) -> model::Finding {
        let mut assertion = json!({"id": "a", "type": "json_path"});
        assertion.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        judged(&assertion, &EvidenceBuilder::new().answer(answer).evidence())
    }

    #[test]
    fn null_can_be_expected_and_true_is_not_1() {
        assert_eq!(finding_of(&json!({"json_path": "a", "equals": null}), "{\"a\": null}").status, Status::Met);
        let finding = finding_of(&json!({"json_path": "a", "equals": null}), "{\"a\": 1}");
        assert_eq!((finding.reason.as_str(), underlined(&finding).as_str()), ("`a` is 1", "null"));
        assert_eq!(finding_of(&json!({"json_path": "a", "equals": 1}), "{\"a\": true}").status, Status::Unmet);
        assert_eq!(finding_of(&json!({"json_path": "a", "equals": 1}), "{\"a\": 1.0}").status, Status::Met);
    }

    #[test]
    fn each_block_of_an_answer_is_looked_at() {
        let answer = "```json\n{\"a\": 1}\n```\nand\n```json\n{\"a\": 2, \"password\": \"x\"}\n```";
        for rest in [json!({"json_path": "a", "equals": 1}), json!({"json_path": "a", "equals": 2})] {
            assert_eq!(finding_of(&rest, answer).status, Status::Met, "{rest}");
        }
        assert_eq!(finding_of(&json!({"json_path": "a", "equals": 3}), answer).reason, "`a` is 1");
        let absent = json!({"json_path": "password", "type": "json_path_not_exists"});
        assert_eq!(finding_of(&absent, answer).reason, "`password` exists");
    }

    #[test]
    fn json_that_is_too_deep_to_be_read_is_not_called_invalid() {
        let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
        assert_eq!(finding_of(&json!({"json_path": "a"}), &deep).status, Status::Undecided);
        for fields in [json!({"type": "valid_json"}), json!({"type": "json_schema", "schema": {"type": "object"}})] {
            let mut assertion = fields;
            assertion["id"] = json!("a");
            let finding = judged(&assertion, &EvidenceBuilder::new().answer(&deep).evidence());
            assert_eq!(finding.status, Status::Undecided, "{}", finding.reason);
        }
    }

    #[test]
    fn a_rounded_number_does_not_equal_another() {
        let digits = "{\"n\": 120000000000000000000000000001}";
        let finding = finding_of(&json!({"json_path": "n", "equals": 1.2e29}), digits);
        assert_eq!(finding.status, Status::Undecided);
        assert!(finding.reason.contains("(about 1.2e"), "{}", finding.reason);
        assert_eq!(finding_of(&json!({"json_path": "n", "equals": 1.3e29}), digits).status, Status::Unmet);
        assert_eq!(finding_of(&json!({"json_path": "n"}), digits).status, Status::Met);
    }

    #[test]
    fn a_missing_value_is_reported_with_the_part_of_the_path_that_exists() {
        let finding = finding_of(&json!({"json_path": "items.0.nmae"}), "{\"items\": [{\"name\": \"x\"}]}");
        assert_eq!(finding.reason, "there is no `items.0.nmae` in the answer");
        assert_eq!(finding.actual.as_deref(), Some("`items.0` is {\"name\":\"x\"}"));
        assert_eq!(finding.evidence, ["there is `name`"]);
        assert_eq!(finding_of(&json!({"json_path": "a"}), "no JSON").status, Status::Unmet);
    }

    #[test]
    fn invalid_paths_are_rejected() {
        let entry = json!({"id": "a", "type": "json_path", "json_path": "a..b"});
        let (_, problems) = compile(&case(&[entry]), &Context::default());
        assert_eq!(problems[0].message, "`json_path` has a step without a name");
    }
}
