//! `json_path_not_exists`: a JSON document does not have a part.

use std::sync::Arc;

use model::{Evidence, Need};
use serde_json::json;

use super::json_path::{JSON_PATH, read_path, shown};
use super::valid_json::OPTIONAL_PATH;
use super::{Assertion, Form, Parameter, TITLE};
use crate::example::{Example, Story};
use crate::json_path::JsonPath;
use crate::json_source::{Found, JsonSource};
use crate::matcher::Matcher;
use crate::place::Place;
use crate::reading::Reading;
use crate::verdict::Verdict;

pub(super) const ASSERTION: Assertion = Assertion {
    name: "json_path_not_exists",
    aliases: &["no_json_path"],
    parameters: &[Parameter::Value("json_path")],
    summary: "The JSON in the answer, or in a file, has no value at a path.",
    fields: &[JSON_PATH, OPTIONAL_PATH, TITLE],
    pass: Example {
        assertion: || json!({"id": "tells-no-secret", "type": "json_path_not_exists", "json_path": "user.password"}),
        evidence: || Story::new().answer("{\"user\": {\"name\": \"Ada\"}}").evidence(),
    },
    fail: Example {
        assertion: || json!({"id": "tells-no-secret", "type": "json_path_not_exists", "json_path": "user.password"}),
        evidence: || Story::new().answer("{\"user\": {\"password\": null}}").evidence(),
    },
    form: Form::Written { parse },
};

#[derive(Debug)]
struct NotAtPath {
    source: JsonSource,
    path: JsonPath,
    place: Place,
}

fn parse(reading: &mut Reading<'_>) -> Option<Arc<dyn Matcher>> {
    reading.caption();
    let source = JsonSource::read(reading);
    let (path, place) = read_path(reading)?;
    Some(Arc::new(NotAtPath { source: source?, path, place }))
}

impl Matcher for NotAtPath {
    fn needs(&self) -> Vec<Need> {
        self.source.needs()
    }

    fn judge(&self, evidence: &Evidence) -> Verdict {
        let path = &self.path;
        let wanted = format!("JSON without `{path}`");
        match self.source.find(evidence) {
            Err(undecided) => *undecided,
            Ok(Found::None { because, actual }) => {
                Verdict::unmet(because, wanted, actual).place(self.source.place().unwrap_or(&self.place))
            }
            Ok(Found::Value(value, _)) => match path.find(&value) {
                Ok(found) => Verdict::unmet(format!("`{path}` is there"), wanted, shown(found)),
                Err(_) => Verdict::met(format!("there is no `{path}` in {}", self.source.told())),
            }
            .place(&self.place),
        }
    }
}
