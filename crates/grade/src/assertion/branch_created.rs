//! `branch_created` and `branch_not_created`: the agent created a branch, or did not.

use model::RepositoryChange;

use super::prelude::*;
use super::repository_matcher::RepositoryMatcher;
use crate::branch_name::{BranchName, branch_told, wanted};
use crate::evidence::repository;
use crate::example::branch_out;

pub(crate) const ASSERTION: Assertion = Assertion::written("branch_created", |reading| parse(reading, true))
    .summary("The agent created a branch, and it is checked out.")
    .fields(&[
        NAME,
        PATTERN,
        Field::optional("checked_out", "`true` or `false`", "`true` if the branch must be checked out at the end.")
            .or("true"),
        TITLE,
    ])
    .pass(
        || json!({"id": "works-on-a-branch", "type": "branch_created", "name": "feat/*"}),
        || EvidenceBuilder::new().repository(|change| branch_out(change, "feat/basket")),
    )
    .fail(
        || json!({"id": "works-on-a-branch", "type": "branch_created"}),
        || EvidenceBuilder::new().repository(|_| {}),
    );

pub(crate) const NEGATION: Assertion = Assertion::written("branch_not_created", |reading| parse(reading, false))
    .aliases(&["no_branch_created"])
    .summary("The agent did not create a branch.")
    .fields(&[NAME, PATTERN, TITLE])
    .example(
        || json!({"id": "stays-on-main", "type": "branch_not_created"}),
        || EvidenceBuilder::new().repository(|_| {}),
        || EvidenceBuilder::new().repository(|change| branch_out(change, "feat/basket")),
    );

/// Field `name` of assertions about branches.
pub(super) const NAME: Field =
    Field::optional("name", "string", "Name of the branch. `*` matches any characters, `?` matches one.")
        .or("any branch");

/// Field `pattern` of assertions about branches.
pub(super) const PATTERN: Field = Field::optional(
    "pattern",
    "regular expression, also `/…/flags`",
    "Instead of `name`: must match a part of the branch's name.",
)
.or("any branch");

#[derive(Debug)]
pub(crate) struct BranchCreated {
    pub name: Option<BranchName>,
    pub is_wanted: bool,
    /// True if the branch must be checked out.
    pub checked_out: bool,
}

fn parse(reading: &mut Reading<'_>, is_wanted: bool) -> Option<Arc<dyn Matcher>> {
    let name = BranchName::read(reading);
    let checked_out = is_wanted && reading.fields.boolean("checked_out", reading.problems).unwrap_or(true);
    Some(Arc::new(BranchCreated { name: name.ok()?, is_wanted, checked_out }))
}

impl RepositoryMatcher for BranchCreated {
    fn judge_change(&self, change: &RepositoryChange, _: &Evidence) -> Judgement {
        let new = repository::new_branches(change);
        let found = wanted(self.name.as_ref(), new.clone())?;
        if !self.is_wanted {
            return Ok(self.absence(&found));
        }
        let current = change.after.branch.as_deref();
        let place = match current {
            Some(branch) => format!("`{branch}` is checked out"),
            None => "no branch is checked out".to_owned(),
        };
        let wanted = format!("a new {}", branch_told(self.name.as_ref()));
        let verdict = match (found.as_slice(), current.filter(|branch| found.contains(branch))) {
            ([], _) if new.is_empty() => Verdict::unmet("there is no new branch", wanted, place),
            ([], _) => {
                let name = self.name.as_ref().map_or_else(|| "there".to_owned(), BranchName::to_string);
                Verdict::unmet(format!("no new branch is {name}"), wanted, format::names(&new))
            }
            (_, Some(branch)) => Verdict::met(format!("`{branch}` is new, and checked out")),
            (found, None) if self.checked_out => {
                let reason = format!("{} is new, but not checked out", format::names(found));
                Verdict::unmet(reason, format!("{wanted} that is checked out"), place)
            }
            (found, None) => Verdict::met(format!("{} is new", format::names(found))),
        };
        Ok(verdict.place(self.name.as_ref().and_then(BranchName::place)))
    }
}

impl BranchCreated {
    /// Returns the verdict if no branch must be created. `found` are the new branches that match.
    fn absence(&self, found: &[&str]) -> Verdict {
        let branch = branch_told(self.name.as_ref());
        if found.is_empty() {
            return Verdict::met(format!("there is no new {branch}"));
        }
        let shown = format::names(found);
        Verdict::unmet(format!("{shown} is new"), format!("no new {branch}"), shown)
    }
}

#[cfg(test)]
mod tests {
    use model::Status;
    use serde_json::{Value, json};

    use crate::check::tests::{judged, underlined};
    use crate::example::{EvidenceBuilder, branch_out};

    fn finding_of(rest: &Value, story: EvidenceBuilder) -> model::Finding {
        let mut assertion = json!({"id": "a", "type": "branch_created"});
        assertion.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        judged(&assertion, &story.evidence())
    }

    #[test]
    fn a_branch_must_be_checked_out_unless_the_assertion_says_otherwise() {
        let made = || {
            EvidenceBuilder::new().repository(|change| {
                change.after.branches.insert("feat/x".into(), "a1".into());
            })
        };
        let finding = finding_of(&json!({}), made());
        assert_eq!(finding.reason, "`feat/x` is new, but not checked out");
        assert_eq!(finding.actual.as_deref(), Some("`main` is checked out"));
        assert_eq!(finding_of(&json!({"checked_out": false}), made()).status, Status::Met);
    }

    #[test]
    fn the_name_must_match() {
        let made = || EvidenceBuilder::new().repository(|change| branch_out(change, "fix/y"));
        let finding = finding_of(&json!({"name": "feat/*"}), made());
        assert_eq!((finding.status, underlined(&finding).as_str()), (Status::Unmet, "\"feat/*\""));
        assert_eq!(finding.reason, "no new branch is `feat/*`");
        assert_eq!(finding_of(&json!({"pattern": "^(fix|feat)/"}), made()).status, Status::Met);
    }

    #[test]
    fn without_a_repository_the_assertion_is_undecided() {
        let finding = finding_of(&json!({}), EvidenceBuilder::new());
        assert_eq!(finding.status, Status::Undecided);
        assert_eq!(finding.reason, "there was no repository in the working directory when the agent began");
    }

    #[test]
    fn the_text_field_becomes_the_title() {
        let finding = finding_of(&json!({"text": "It works on a branch"}), EvidenceBuilder::new());
        assert_eq!(finding.title.as_deref(), Some("It works on a branch"));
    }

    #[test]
    fn a_detached_head_is_not_a_branch_but_an_unborn_branch_is() {
        let assertion = json!({"id": "a", "type": "branch_not_created"});
        let detached = EvidenceBuilder::new().repository(|change| change.after.branch = None);
        assert_eq!(judged(&assertion, &detached.evidence()).status, Status::Met);
        let orphan = EvidenceBuilder::new().repository(|change| change.after.branch = Some("gh-pages".into()));
        assert_eq!(judged(&assertion, &orphan.evidence()).reason, "`gh-pages` is new");
    }
}
