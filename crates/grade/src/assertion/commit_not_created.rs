//! `commit_not_created`: the agent did not create a commit.

use std::sync::Arc;

use model::{Evidence, Need};
use serde_json::json;

use super::{Assertion, Form, Parameter, TITLE};
use crate::example::{Example, Story, commit_on};
use crate::matcher::Matcher;
use crate::reading::Reading;
use crate::repository;
use crate::verdict::Verdict;
use crate::words;

pub(super) const ASSERTION: Assertion = Assertion {
    name: "commit_not_created",
    aliases: &["no_commit_created"],
    parameters: &[Parameter::Fields],
    summary: "The agent did not create a commit on any branch.",
    fields: &[TITLE],
    pass: Example {
        assertion: || json!({"id": "only-looks", "type": "commit_not_created"}),
        evidence: || Story::new().repository(|_| {}).evidence(),
    },
    fail: Example {
        assertion: || json!({"id": "only-looks", "type": "commit_not_created"}),
        evidence: || Story::new().repository(|change| commit_on(change, "b2", "feat: add a basket")).evidence(),
    },
    form: Form::Written { parse },
};

#[derive(Debug)]
pub(crate) struct CommitNotCreated;

fn parse(reading: &mut Reading<'_>) -> Option<Arc<dyn Matcher>> {
    reading.caption();
    Some(Arc::new(CommitNotCreated))
}

impl Matcher for CommitNotCreated {
    fn needs(&self) -> Vec<Need> {
        vec![Need::Repository]
    }

    fn judge(&self, evidence: &Evidence) -> Verdict {
        let change = match repository::change(evidence) {
            Ok(change) => change,
            Err(undecided) => return *undecided,
        };
        let new = repository::new_commits(change);
        let Some(latest) = new.first() else { return Verdict::met("there is no new commit") };
        let because = format!("{} there", if new.len() == 1 { "a new commit is" } else { "new commits are" });
        let others = words::few(new.iter().skip(1).map(|commit| repository::told(commit)).collect(), 5);
        Verdict::unmet(because, "no new commit", repository::told(latest)).evidence(others)
    }
}
