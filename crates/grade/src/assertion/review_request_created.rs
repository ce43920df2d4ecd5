//! `review_request_created` and `review_request_not_created`: the agent opened a pull request or a merge request, or
//! did not.

use model::{RepositoryChange, ReviewRequest, is_folder};

use super::prelude::*;
use super::repository_matcher::RepositoryMatcher;
use crate::branch_name::BranchName;
use crate::evidence::repository;
use crate::example::{branch_out, open_request, push_to};

pub(crate) const ASSERTION: Assertion = Assertion::written("review_request_created", parse)
    .aliases(&["pull_request_created", "merge_request_created"])
    .summary("The agent opened a pull request or a merge request for its branch.")
    .fields(&[
        Field::optional("head", "string", "Branch to merge. `*` matches any characters, `?` matches one.")
            .or("a branch that is new or checked out"),
        Field::optional("base", "string", "Target branch, with the same wildcards.").or("any branch"),
        TITLE,
    ])
    .pass(
        || json!({"id": "opens-a-review", "type": "review_request_created", "base": "main"}),
        || {
            EvidenceBuilder::new().repository(|change| {
                branch_out(change, "feat/basket");
                push_to(change, "feat/basket", "a1");
                open_request(change, 7, "feat/basket");
            })
        },
    )
    .fail(
        || json!({"id": "opens-a-review", "type": "review_request_created"}),
        || EvidenceBuilder::new().repository(|change| open_request(change, 7, "somebody-elses")),
    );

pub(crate) const NEGATION: Assertion =
    Assertion::written("review_request_not_created", |_| Some(Arc::new(ReviewRequestNotCreated)))
        .aliases(&["pull_request_not_created", "merge_request_not_created", "no_review_request_created"])
        .summary("The agent did not open a pull request or a merge request.")
        .fields(&[TITLE])
        .example(
            || json!({"id": "opens-nothing", "type": "review_request_not_created"}),
            || EvidenceBuilder::new().repository(|_| {}),
            || EvidenceBuilder::new().repository(|change| open_request(change, 7, "feat/basket")),
        );

#[derive(Debug)]
pub(crate) struct ReviewRequestNotCreated;

#[derive(Debug)]
pub(crate) struct ReviewRequestCreated {
    pub head: Option<BranchName>,
    pub base: Option<BranchName>,
    /// True if it must be a draft.
    pub is_draft: bool,
}

fn parse(reading: &mut Reading<'_>) -> Option<Arc<dyn Matcher>> {
    let [head, base] = ["head", "base"].map(|key| match reading.fields.get(key) {
        Some(_) => BranchName::read_name(reading, key).map(Some),
        None => Some(None),
    });
    Some(Arc::new(ReviewRequestCreated { head: head?, base: base?, is_draft: false }))
}

impl RepositoryMatcher for ReviewRequestCreated {
    fn judge_change(&self, change: &RepositoryChange, _: &Evidence) -> Judgement {
        let seen = repository::new_requests(change);
        let branches = own_branches(change);
        let mut open = Vec::new();
        for request in &seen.new {
            match self.holds(request, &branches)? {
                Some(true) => {
                    return Ok(Verdict::met(format!("new review request: {}", repository::describe_request(request))));
                }
                None => {
                    let what = if self.is_draft { "its branches, or whether it is a draft" } else { "its branches" };
                    open.push(format!("{}: {what} are unknown", repository::describe_request(request)));
                }
                Some(false) => {}
            }
        }
        let unknown = [open, seen.unknown].concat();
        if !unknown.is_empty() {
            return Ok(repository::unknown("whether a review request was opened", unknown));
        }
        let wanted = self.wanted(&branches);
        let described: Vec<String> = seen.new.iter().map(|request| repository::describe_request(request)).collect();
        if !described.is_empty() {
            return Ok(Verdict::unmet("no new review request matches", wanted, format::list(&described)));
        }
        let remotes = &change.after.remotes;
        let actual = if remotes.is_empty() {
            "there is no remote"
        } else if remotes.values().all(|remote| !remote.is_isolated && is_folder(&remote.url)) {
            "every remote is a folder of this machine, which cannot have review requests"
        } else {
            "none"
        };
        let unsupported = remotes.values().flat_map(|remote| &remote.unsupported);
        let unsupported = unsupported.map(|command| format!("the stand-in does not support `{command}`"));
        Ok(Verdict::unmet("there is no new review request", wanted, actual).evidence(unsupported))
    }
}

impl RepositoryMatcher for ReviewRequestNotCreated {
    fn judge_change(&self, change: &RepositoryChange, _: &Evidence) -> Judgement {
        let seen = repository::new_requests(change);
        Ok(match seen.new.as_slice() {
            [] if !seen.unknown.is_empty() => repository::unknown("whether a review request was opened", seen.unknown),
            [] => Verdict::met("there is no new review request at the remotes"),
            [first, others @ ..] => {
                let described = repository::describe_request(first);
                Verdict::unmet("there is a new review request", "no new review request", described)
                    .evidence(others.iter().map(|request| repository::describe_request(request)))
            }
        })
    }
}

/// Returns the branches that the agent's review requests can have as their head.
fn own_branches(change: &RepositoryChange) -> Vec<&str> {
    let mut branches = repository::new_branches(change);
    let pushes = repository::pushes(change).new;
    branches.extend(pushes.iter().filter(|push| push.is_new && push.is_asked).map(|push| push.branch));
    branches.extend(change.after.branch.as_deref());
    branches.sort_unstable();
    branches.dedup();
    branches
}

impl ReviewRequestCreated {
    /// Returns `true` if `request` matches. Returns `None` if its branches are unknown.
    fn holds(&self, request: &ReviewRequest, branches: &[&str]) -> Result<Option<bool>, String> {
        let head = match (request.head.as_deref(), &self.head) {
            (None, _) => None,
            (Some(head), Some(name)) => Some(name.is(head)?),
            (Some(head), None) => Some(branches.contains(&head)),
        };
        let base = match (&self.base, request.base.as_deref()) {
            (None, _) => Some(true),
            (Some(_), None) => None,
            (Some(wanted), Some(base)) => Some(wanted.is(base)?),
        };
        let draft = if self.is_draft { request.draft } else { Some(true) };
        let parts = [Some(request.open), head, base, draft];
        Ok(match parts {
            parts if parts.contains(&Some(false)) => Some(false),
            parts if parts.contains(&None) => None,
            _ => Some(true),
        })
    }

    fn wanted(&self, branches: &[&str]) -> String {
        let head = match &self.head {
            Some(head) => head.to_string(),
            None if branches.is_empty() => "one of the agent's branches".to_owned(),
            None => {
                let names: Vec<String> = branches.iter().map(|branch| format!("`{branch}`")).collect();
                names.join(" or ")
            }
        };
        let base = self.base.as_ref().map_or_else(String::new, |base| format!(" to {base}"));
        let draft = if self.is_draft { "draft " } else { "" };
        format!("a new open {draft}review request from {head}{base}")
    }
}

#[cfg(test)]
mod tests {
    use model::{RepositoryChange, Status};
    use serde_json::{Value, json};

    use crate::check::tests::judged;
    use crate::example::{EvidenceBuilder, branch_out, open_request};

    fn finding_of(rest: &Value, tell: impl FnOnce(&mut RepositoryChange)) -> model::Finding {
        let mut assertion = json!({"id": "a", "type": "review_request_created"});
        assertion.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        judged(&assertion, &EvidenceBuilder::new().repository(tell).evidence())
    }

    fn request(change: &mut RepositoryChange, number: u64) {
        branch_out(change, "feat/x");
        open_request(change, number, "feat/x");
    }

    #[test]
    fn a_review_request_must_be_new_and_open_and_have_the_expected_branches() {
        assert_eq!(
            finding_of(&json!({}), |change| request(change, 7)).reason,
            "new review request: #7 from `feat/x` to `main`, open"
        );
        let closed = finding_of(&json!({}), |change| {
            request(change, 7);
            change.after.remotes.get_mut("origin").unwrap().review_requests.as_mut().unwrap()[0].open = false;
        });
        assert_eq!(closed.actual.as_deref(), Some("#7 from `feat/x` to `main`, not open"));
        assert_eq!(closed.expected.as_deref(), Some("a new open review request from `feat/x`"));
        let old = finding_of(&json!({}), |change| {
            request(change, 7);
            change.before.remotes = change.after.remotes.clone();
        });
        assert_eq!(old.reason, "there is no new review request");
        assert_eq!(finding_of(&json!({"base": "dev"}), |change| request(change, 7)).status, Status::Unmet);
    }

    #[test]
    fn a_local_remote_has_no_review_requests() {
        let folder = finding_of(&json!({}), |change| {
            for state in [&mut change.before, &mut change.after] {
                let origin = state.remotes.get_mut("origin").unwrap();
                (origin.url, origin.review_requests) = ("/srv/origin.git".into(), Some(Vec::new()));
            }
        });
        assert_eq!((folder.status, folder.error), (Status::Unmet, None));
        assert!(folder.actual.unwrap().contains("folder of this machine"));
    }

    #[test]
    fn unknown_review_requests_are_undecided() {
        let unasked = finding_of(&json!({}), |change| {
            let origin = change.after.remotes.get_mut("origin").unwrap();
            (origin.review_requests, origin.unknown) = (None, vec!["`gh` is not installed".into()]);
        });
        assert_eq!(unasked.status, Status::Undecided);
        assert!(unasked.reason.contains("`gh` is not installed"), "{}", unasked.reason);
        let headless = finding_of(&json!({}), |change| {
            request(change, 7);
            change.after.remotes.get_mut("origin").unwrap().review_requests.as_mut().unwrap()[0].head = None;
        });
        assert_eq!(headless.status, Status::Undecided);
    }
}
