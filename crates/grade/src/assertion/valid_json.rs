//! `valid_json`: the answer, or a file, is valid JSON.

use super::prelude::*;
use crate::json_source::{self, JsonLookup, JsonSource};

pub(crate) const ASSERTION: Assertion = Assertion::written("valid_json", |reading| {
    Some(Arc::new(ValidJson { source: JsonSource::read(reading)?, is_wanted: true, is_contained: false }))
})
.summary("The answer, or a file in the sandbox, is valid JSON.")
.fields(&[OPTIONAL_PATH, TITLE])
.parameters(&[Parameter::Value("path")])
.pass(
    || json!({"id": "is-json", "type": "valid_json"}),
    || EvidenceBuilder::new().answer("Here you are:\n```json\n{\"total\": 3}\n```\n"),
)
.fail(
    || json!({"id": "is-json", "type": "valid_json", "path": "config.json"}),
    || EvidenceBuilder::new().file("config.json", Some("{\"total\": 3,}\n")),
);

/// Field `path`. If it is absent, the answer is checked.
pub(super) const OPTIONAL_PATH: Field =
    Field::optional("path", "string", "Path of the file in the agent's working directory.").or("the answer");

/// Reason of the finding about an answer with valid JSON in a fenced block.
const BLOCK: &str = "a fenced block of the answer is valid JSON";

/// Check that a source is valid JSON, or is not.
#[derive(Debug)]
pub(crate) struct ValidJson {
    pub source: JsonSource,
    pub is_wanted: bool,
    /// True if other text may be around it in the answer.
    pub is_contained: bool,
}

impl Matcher for ValidJson {
    fn needs(&self) -> Vec<Need> {
        self.source.needs()
    }

    fn judge(&self, evidence: &Evidence) -> Judgement {
        let source = self.source.describe();
        let found = self.source.find(evidence)?;
        let is_inside = self.is_contained && self.source.file.is_none() && json_source::is_inside_answer(evidence);
        let verdict = match (found, self.is_wanted) {
            (JsonLookup::None { .. }, true) if is_inside => Verdict::met(format!("{source} contains valid JSON")),
            (JsonLookup::Value(_), true) => Verdict::met(format!("{source} is valid JSON")),
            (JsonLookup::Blocks(..), true) => Verdict::met(BLOCK),
            (JsonLookup::None { reason, actual }, true) => Verdict::unmet(reason, "valid JSON", actual),
            (JsonLookup::Value(_), false) => {
                Verdict::unmet(format!("{source} is valid JSON"), "text that is not valid JSON", "valid JSON")
            }
            (JsonLookup::Blocks(..), false) => Verdict::unmet(BLOCK, "text that is not valid JSON", "valid JSON"),
            (JsonLookup::None { reason, .. }, false) => Verdict::met(reason),
        };
        Ok(verdict.place(self.source.place()))
    }
}

#[cfg(test)]
mod tests {
    use model::Status;
    use serde_json::json;

    use crate::check::tests::judged;
    use crate::example::EvidenceBuilder;

    #[test]
    fn only_strict_json_is_valid() {
        let status_of = |answer: &str| {
            judged(&json!({"id": "a", "type": "valid_json"}), &EvidenceBuilder::new().answer(answer).evidence()).status
        };
        for answer in ["{}", " 3 ", "null", "```\n[1]\n```"] {
            assert_eq!(status_of(answer), Status::Met, "{answer}");
        }
        for answer in ["NaN", "{a: 1}", "It is {}.", "```rust\n{}\n```", "```json\n{\n```"] {
            assert_eq!(status_of(answer), Status::Unmet, "{answer}");
        }
        let silent = judged(&json!({"id": "a", "type": "valid_json"}), &EvidenceBuilder::new().evidence());
        assert_eq!(silent.reason, "the agent gave no answer");
        let missing = json!({"id": "a", "type": "valid_json", "path": "a.json"});
        assert_eq!(
            judged(&missing, &EvidenceBuilder::new().file("a.json", None).evidence()).reason,
            "there is no file named `a.json`"
        );
    }
}
