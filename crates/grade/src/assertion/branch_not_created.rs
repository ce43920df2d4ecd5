//! `branch_not_created`: the agent did not create a branch.

use std::sync::Arc;

use model::{Evidence, Need};
use serde_json::json;

use super::branch_created::{NAME, PATTERN};
use super::{Assertion, Form, Parameter, TITLE};
use crate::branch_name::{BranchName, branch_told, wanted};
use crate::example::{Example, Story, branch_out};
use crate::matcher::Matcher;
use crate::reading::Reading;
use crate::repository;
use crate::verdict::Verdict;
use crate::words;

pub(super) const ASSERTION: Assertion = Assertion {
    name: "branch_not_created",
    aliases: &["no_branch_created"],
    parameters: &[Parameter::Fields],
    summary: "The agent did not create a branch.",
    fields: &[NAME, PATTERN, TITLE],
    pass: Example {
        assertion: || json!({"id": "stays-on-main", "type": "branch_not_created"}),
        evidence: || Story::new().repository(|_| {}).evidence(),
    },
    fail: Example {
        assertion: || json!({"id": "stays-on-main", "type": "branch_not_created"}),
        evidence: || Story::new().repository(|change| branch_out(change, "feat/basket")).evidence(),
    },
    form: Form::Written { parse },
};

#[derive(Debug)]
pub(crate) struct BranchNotCreated {
    pub name: Option<BranchName>,
}

fn parse(reading: &mut Reading<'_>) -> Option<Arc<dyn Matcher>> {
    reading.caption();
    Some(Arc::new(BranchNotCreated { name: BranchName::read(reading).ok()? }))
}

impl Matcher for BranchNotCreated {
    fn needs(&self) -> Vec<Need> {
        vec![Need::Repository]
    }

    fn judge(&self, evidence: &Evidence) -> Verdict {
        let change = match repository::change(evidence) {
            Ok(change) => change,
            Err(undecided) => return *undecided,
        };
        let found = match wanted(self.name.as_ref(), repository::new_branches(change)) {
            Ok(found) => found,
            Err(error) => return Verdict::undecided(error),
        };
        if found.is_empty() {
            return Verdict::met(format!("there is no new {}", branch_told(self.name.as_ref())));
        }
        let shown = words::list(&found.iter().map(|branch| format!("`{branch}`")).collect::<Vec<_>>());
        let wanted = format!("no new {}", branch_told(self.name.as_ref()));
        Verdict::unmet(format!("{shown} is new"), wanted, shown)
    }
}

#[cfg(test)]
mod tests {
    use model::Status;
    use serde_json::json;

    use crate::check::tests::judged;
    use crate::example::Story;

    #[test]
    fn a_detached_head_is_no_branch_and_an_unborn_branch_is_one() {
        let assertion = json!({"id": "a", "type": "branch_not_created"});
        let detached = Story::new().repository(|change| change.after.branch = None);
        assert_eq!(judged(&assertion, &detached.evidence()).status, Status::Met);
        let orphan = Story::new().repository(|change| change.after.branch = Some("gh-pages".into()));
        assert_eq!(judged(&assertion, &orphan.evidence()).because, "`gh-pages` is new");
    }
}
