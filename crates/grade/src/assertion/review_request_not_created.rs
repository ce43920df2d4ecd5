//! `review_request_not_created`: the agent did not open a pull request or a merge request.

use std::sync::Arc;

use model::{Evidence, Need};
use serde_json::json;

use super::{Assertion, Form, Parameter, TITLE};
use crate::example::{Example, Story, open_request};
use crate::matcher::Matcher;
use crate::reading::Reading;
use crate::repository;
use crate::verdict::Verdict;

pub(super) const ASSERTION: Assertion = Assertion {
    name: "review_request_not_created",
    aliases: &["pull_request_not_created", "merge_request_not_created", "no_review_request_created"],
    parameters: &[Parameter::Fields],
    summary: "The agent did not open a pull request or a merge request.",
    fields: &[TITLE],
    pass: Example {
        assertion: || json!({"id": "asks-nobody", "type": "review_request_not_created"}),
        evidence: || Story::new().repository(|_| {}).evidence(),
    },
    fail: Example {
        assertion: || json!({"id": "asks-nobody", "type": "review_request_not_created"}),
        evidence: || Story::new().repository(|change| open_request(change, 7, "feat/basket")).evidence(),
    },
    form: Form::Written { parse },
};

#[derive(Debug)]
pub(crate) struct ReviewRequestNotCreated;

fn parse(reading: &mut Reading<'_>) -> Option<Arc<dyn Matcher>> {
    reading.caption();
    Some(Arc::new(ReviewRequestNotCreated))
}

impl Matcher for ReviewRequestNotCreated {
    fn needs(&self) -> Vec<Need> {
        vec![Need::Repository]
    }

    fn judge(&self, evidence: &Evidence) -> Verdict {
        let change = match repository::change(evidence) {
            Ok(change) => change,
            Err(undecided) => return *undecided,
        };
        let seen = repository::new_requests(change);
        match seen.new.as_slice() {
            [] if !seen.unknown.is_empty() => repository::unknown("whether a review request was opened", seen.unknown),
            [] => Verdict::met("there is no new review request"),
            [first, others @ ..] => {
                let told = repository::request_told(first);
                Verdict::unmet("there is a new review request", "no new review request", told)
                    .evidence(others.iter().map(|request| repository::request_told(request)))
            }
        }
    }
}
