//! `not_pushed`: the agent did not push.

use std::sync::Arc;

use model::{Evidence, Need};
use serde_json::json;

use super::branch_created::{NAME, PATTERN};
use super::{Assertion, Form, Parameter, TITLE};
use crate::branch_name::{BranchName, branch_told};
use crate::example::{Example, Story, push_to};
use crate::matcher::Matcher;
use crate::reading::Reading;
use crate::repository::{self, Push};
use crate::verdict::Verdict;

pub(super) const ASSERTION: Assertion = Assertion {
    name: "not_pushed",
    aliases: &[],
    parameters: &[Parameter::Fields],
    summary: "The agent did not push to a new or an existing branch.",
    fields: &[NAME, PATTERN, TITLE],
    pass: Example {
        assertion: || json!({"id": "keeps-it-local", "type": "not_pushed"}),
        evidence: || Story::new().repository(|_| {}).evidence(),
    },
    fail: Example {
        assertion: || json!({"id": "keeps-it-local", "type": "not_pushed"}),
        evidence: || Story::new().repository(|change| push_to(change, "main", "b2")).evidence(),
    },
    form: Form::Written { parse },
};

#[derive(Debug)]
pub(crate) struct NotPushed {
    pub name: Option<BranchName>,
}

fn parse(reading: &mut Reading<'_>) -> Option<Arc<dyn Matcher>> {
    reading.caption();
    Some(Arc::new(NotPushed { name: BranchName::read(reading).ok()? }))
}

impl Matcher for NotPushed {
    fn needs(&self) -> Vec<Need> {
        vec![Need::Repository]
    }

    fn judge(&self, evidence: &Evidence) -> Verdict {
        let change = match repository::change(evidence) {
            Ok(change) => change,
            Err(undecided) => return *undecided,
        };
        let seen = repository::pushes(change);
        let mut pushes: Vec<&Push<'_>> = Vec::new();
        for push in &seen.new {
            match self.name.as_ref().map_or(Ok(true), |name| name.is(push.branch)) {
                Ok(true) => pushes.push(push),
                Ok(false) => {}
                Err(error) => return Verdict::undecided(error),
            }
        }
        let branch = branch_told(self.name.as_ref());
        match pushes.as_slice() {
            [] if !seen.unknown.is_empty() => repository::unknown("what was pushed", seen.unknown),
            [] => Verdict::met(format!("no {branch} was pushed")),
            [first, others @ ..] => {
                let because = format!("`{}` was pushed", first.branch);
                Verdict::unmet(because, format!("no {branch} that is pushed"), first.told())
                    .evidence(others.iter().map(|push| push.told()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use model::Status;
    use serde_json::json;

    use crate::check::tests::judged;
    use crate::example::{Story, push_to};

    #[test]
    fn a_branch_that_was_removed_there_is_a_push_too() {
        let assertion = json!({"id": "a", "type": "not_pushed"});
        let removed = Story::new().repository(|change| {
            change.after.remotes.get_mut("origin").unwrap().branches.as_mut().unwrap().clear();
        });
        let finding = judged(&assertion, &removed.evidence());
        assert_eq!((finding.status, finding.actual.as_deref()), (Status::Unmet, Some("`origin/main`, which is gone")));
    }

    #[test]
    fn a_push_to_a_remote_of_the_agents_own_counts() {
        let assertion = json!({"id": "a", "type": "not_pushed"});
        let pushed = Story::new().repository(|change| {
            change.after.pushes.insert("fork/main".into(), "b2".into());
        });
        assert_eq!(judged(&assertion, &pushed.evidence()).status, Status::Unmet);
    }

    #[test]
    fn what_is_seen_counts_even_if_another_remote_could_not_be_asked() {
        let assertion = json!({"id": "a", "type": "not_pushed"});
        let silent = |change: &mut model::RepositoryChange| {
            change.after.remotes.insert("fork".into(), model::RemoteState::default());
        };
        assert_eq!(judged(&assertion, &Story::new().repository(silent).evidence()).status, Status::Undecided);
        let seen = Story::new().repository(|change| {
            silent(change);
            push_to(change, "feat/x", "a1");
        });
        assert_eq!(judged(&assertion, &seen.evidence()).status, Status::Unmet);
    }
}
