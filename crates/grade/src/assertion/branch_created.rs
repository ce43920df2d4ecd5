//! `branch_created`: the agent created a branch.

use std::sync::Arc;

use model::{Evidence, Need};
use serde_json::json;

use super::{Assertion, Field, Form, Parameter, TITLE};
use crate::branch_name::{BranchName, branch_told, wanted};
use crate::example::{Example, Story, branch_out};
use crate::matcher::Matcher;
use crate::reading::Reading;
use crate::repository;
use crate::verdict::Verdict;
use crate::words;

pub(super) const ASSERTION: Assertion = Assertion {
    name: "branch_created",
    aliases: &[],
    parameters: &[Parameter::Fields],
    summary: "The agent created a branch, and it is checked out.",
    fields: &[
        NAME,
        PATTERN,
        Field {
            name: "checked_out",
            holds: "`true` or `false`",
            required: false,
            default: Some("true"),
            doc: "`true` if the branch must be checked out at the end.",
        },
        TITLE,
    ],
    pass: Example {
        assertion: || json!({"id": "works-on-a-branch", "type": "branch_created", "name": "feat/*"}),
        evidence: || Story::new().repository(|change| branch_out(change, "feat/basket")).evidence(),
    },
    fail: Example {
        assertion: || json!({"id": "works-on-a-branch", "type": "branch_created"}),
        evidence: || Story::new().repository(|_| {}).evidence(),
    },
    form: Form::Written { parse },
};

/// Field `name` of assertions about branches.
pub(super) const NAME: Field = Field {
    name: "name",
    holds: "text",
    required: false,
    default: Some("any branch"),
    doc: "Name of the branch. `*` matches any characters, `?` matches one.",
};

/// Field `pattern` of assertions about branches.
pub(super) const PATTERN: Field = Field {
    name: "pattern",
    holds: "regular expression, also `/…/flags`",
    required: false,
    default: Some("any branch"),
    doc: "Instead of `name`: matches a part of the branch's name.",
};

#[derive(Debug)]
pub(crate) struct BranchCreated {
    pub name: Option<BranchName>,
    pub checked_out: bool,
}

fn parse(reading: &mut Reading<'_>) -> Option<Arc<dyn Matcher>> {
    reading.caption();
    let name = BranchName::read(reading);
    let checked_out = reading.fields.boolean("checked_out", reading.problems).unwrap_or(true);
    Some(Arc::new(BranchCreated { name: name.ok()?, checked_out }))
}

impl Matcher for BranchCreated {
    fn needs(&self) -> Vec<Need> {
        vec![Need::Repository]
    }

    fn judge(&self, evidence: &Evidence) -> Verdict {
        let change = match repository::change(evidence) {
            Ok(change) => change,
            Err(undecided) => return *undecided,
        };
        let new = repository::new_branches(change);
        let found = match wanted(self.name.as_ref(), new.clone()) {
            Ok(found) => found,
            Err(error) => return Verdict::undecided(error),
        };
        let current = change.after.branch.as_deref();
        let place = match current {
            Some(branch) => format!("`{branch}` is checked out"),
            None => "no branch is checked out".to_owned(),
        };
        let shown =
            |branches: &[&str]| words::list(&branches.iter().map(|branch| format!("`{branch}`")).collect::<Vec<_>>());
        let wanted = format!("a new {}", branch_told(self.name.as_ref()));
        let verdict = match (found.as_slice(), current.filter(|branch| found.contains(branch))) {
            ([], _) if new.is_empty() => Verdict::unmet("there is no new branch", wanted, place),
            ([], _) => Verdict::unmet(format!("no new branch is {}", self.told()), wanted, shown(&new)),
            (_, Some(branch)) => Verdict::met(format!("`{branch}` is new, and checked out")),
            (found, None) if self.checked_out => {
                let because = format!("{} is new, but not checked out", shown(found));
                Verdict::unmet(because, format!("{wanted} that is checked out"), place)
            }
            (found, None) => Verdict::met(format!("{} is new", shown(found))),
        };
        match self.name.as_ref().and_then(BranchName::place) {
            Some(place) => verdict.place(place),
            None => verdict,
        }
    }
}

impl BranchCreated {
    fn told(&self) -> String {
        self.name.as_ref().map_or_else(|| "there".to_owned(), BranchName::to_string)
    }
}

#[cfg(test)]
mod tests {
    use model::Status;
    use serde_json::{Value, json};

    use crate::check::tests::{judged, underlined};
    use crate::example::{Story, branch_out};

    fn of(rest: &Value, story: Story) -> model::Finding {
        let mut assertion = json!({"id": "a", "type": "branch_created"});
        assertion.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        judged(&assertion, &story.evidence())
    }

    #[test]
    fn a_branch_that_is_not_checked_out_is_not_enough_unless_it_is_said_so() {
        let made = || {
            Story::new().repository(|change| {
                change.after.branches.insert("feat/x".into(), "a1".into());
            })
        };
        let finding = of(&json!({}), made());
        assert_eq!(finding.because, "`feat/x` is new, but not checked out");
        assert_eq!(finding.actual.as_deref(), Some("`main` is checked out"));
        assert_eq!(of(&json!({"checked_out": false}), made()).status, Status::Met);
    }

    #[test]
    fn the_name_must_be_the_wanted_one() {
        let made = || Story::new().repository(|change| branch_out(change, "fix/y"));
        let finding = of(&json!({"name": "feat/*"}), made());
        assert_eq!((finding.status, underlined(&finding).as_str()), (Status::Unmet, "\"feat/*\""));
        assert_eq!(finding.because, "no new branch is `feat/*`");
        assert_eq!(of(&json!({"pattern": "^(fix|feat)/"}), made()).status, Status::Met);
    }

    #[test]
    fn where_there_is_no_repository_nobody_can_say() {
        let finding = of(&json!({}), Story::new());
        assert_eq!(finding.status, Status::Undecided);
        assert_eq!(finding.because, "there is no repository in the working directory to be looked at");
    }

    #[test]
    fn text_is_what_people_call_it() {
        let finding = of(&json!({"text": "It works on a branch"}), Story::new());
        assert_eq!(finding.title.as_deref(), Some("It works on a branch"));
    }
}
