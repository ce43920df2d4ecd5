//! `pushed`: the agent pushed a branch with all its commits.

use std::sync::Arc;

use model::{Evidence, Need, RepositoryChange};
use serde_json::json;

use super::branch_created::{NAME, PATTERN};
use super::{Assertion, Form, Parameter, TITLE};
use crate::branch_name::{BranchName, branch_told};
use crate::example::{Example, Story, branch_out, commit_on, push_to};
use crate::matcher::Matcher;
use crate::reading::Reading;
use crate::repository::{self, Push, Seen, short};
use crate::verdict::Verdict;
use crate::words;

pub(super) const ASSERTION: Assertion = Assertion {
    name: "pushed",
    aliases: &[],
    parameters: &[Parameter::Fields],
    summary: "The agent pushed a branch, and the remote has its last commit.",
    fields: &[NAME, PATTERN, TITLE],
    pass: Example {
        assertion: || json!({"id": "pushes", "type": "pushed"}),
        evidence: || {
            let worked = Story::new().repository(|change| {
                branch_out(change, "feat/basket");
                commit_on(change, "b2", "feat: add a basket");
                push_to(change, "feat/basket", "b2");
            });
            worked.evidence()
        },
    },
    fail: Example {
        assertion: || json!({"id": "pushes", "type": "pushed"}),
        evidence: || {
            let worked = Story::new().repository(|change| {
                branch_out(change, "feat/basket");
                commit_on(change, "b2", "feat: add a basket");
                push_to(change, "feat/basket", "b2");
                commit_on(change, "c3", "fix: count to ten");
            });
            worked.evidence()
        },
    },
    form: Form::Written { parse },
};

#[derive(Debug)]
pub(crate) struct Pushed {
    pub name: Option<BranchName>,
}

fn parse(reading: &mut Reading<'_>) -> Option<Arc<dyn Matcher>> {
    reading.caption();
    Some(Arc::new(Pushed { name: BranchName::read(reading).ok()? }))
}

impl Matcher for Pushed {
    fn needs(&self) -> Vec<Need> {
        vec![Need::Repository]
    }

    fn judge(&self, evidence: &Evidence) -> Verdict {
        let change = match repository::change(evidence) {
            Ok(change) => change,
            Err(undecided) => return *undecided,
        };
        let seen = repository::pushes(change);
        let pushes = match self.about(change, &seen) {
            Ok(pushes) => pushes,
            Err(error) => return Verdict::undecided(error),
        };
        if let Some(push) = pushes.iter().find(|push| push.head.is_some() && push.head == local(change, push)) {
            return Verdict::met(format!("{} is the local commit", push.told()));
        }
        if !seen.unknown.is_empty() {
            return repository::unknown("what was pushed", seen.unknown);
        }
        self.missing(change, &seen.new, &pushes)
    }
}

/// Returns the local commit that the remote branch should point to.
fn local<'c>(change: &'c RepositoryChange, push: &Push<'_>) -> Option<&'c str> {
    let after = &change.after;
    match after.branches.get(push.branch) {
        Some(head) => Some(head),
        // A branch that has a different name locally, or only exists on the remote, was pushed from what is checked
        // out.
        None => after.head.as_deref(),
    }
}

impl Pushed {
    /// Returns the pushes that the assertion is about.
    fn about<'c>(&self, change: &'c RepositoryChange, seen: &Seen<Push<'c>>) -> Result<Vec<Push<'c>>, String> {
        let is_there = seen.new.iter().copied().filter(|push| push.head.is_some() && push.is_asked);
        if let Some(name) = &self.name {
            let mut pushes = Vec::new();
            for push in is_there {
                if name.is(push.branch)? {
                    pushes.push(push);
                }
            }
            return Ok(pushes);
        }
        let pushes: Vec<Push<'c>> = is_there.collect();
        let Some(branch) = own_branch(change) else { return Ok(pushes) };
        let head = change.after.head.as_deref();
        let of_own = |push: &Push<'_>| push.branch == branch || (head.is_some() && push.head == head);
        Ok(pushes.into_iter().filter(of_own).collect())
    }

    fn missing(&self, change: &RepositoryChange, all: &[Push<'_>], about: &[Push<'_>]) -> Verdict {
        let branch = branch_told(self.name.as_ref());
        let wanted = format!("a {branch} whose last commit is on a remote");
        if let Some(push) = about.first() {
            let because = format!("{} is not the local commit", push.told());
            let actual = match local(change, push) {
                Some(head) => format!("{} is the local commit", short(head)),
                None => "there is no local commit".to_owned(),
            };
            return Verdict::unmet(because, wanted, actual);
        }
        let (asked, elsewhere): (Vec<&Push<'_>>, Vec<&Push<'_>>) = all.iter().partition(|push| push.is_asked);
        let pushed: Vec<String> = asked.into_iter().map(Push::told).collect();
        let (because, actual) = match (pushed.as_slice(), own_branch(change)) {
            ([], _) if !elsewhere.is_empty() => {
                let told: Vec<String> = elsewhere.into_iter().map(Push::told).collect();
                ("nothing was pushed to a remote that stood before the agent acted".into(), words::list(&told))
            }
            ([], _) if change.after.remotes.is_empty() => {
                ("nothing was pushed".into(), "there is no remote".to_owned())
            }
            ([], _) => ("nothing was pushed".into(), "the remotes are as they were".to_owned()),
            (pushed, Some(branch)) if self.name.is_none() => {
                (format!("`{branch}` was not pushed"), words::list(pushed))
            }
            (pushed, _) => (format!("no {branch} was pushed"), words::list(pushed)),
        };
        Verdict::unmet(because, wanted, actual)
    }
}

/// Returns the branch that is checked out, if the agent created or moved it.
fn own_branch(change: &RepositoryChange) -> Option<&str> {
    let branch = change.after.branch.as_deref()?;
    let head = change.after.branches.get(branch);
    let is_new = repository::new_branches(change).contains(&branch);
    (is_new || head != change.before.branches.get(branch)).then_some(branch)
}

#[cfg(test)]
mod tests {
    use model::{RepositoryChange, Status};
    use serde_json::{Value, json};

    use crate::check::tests::judged;
    use crate::example::{Story, branch_out, commit_on, push_to};

    fn of(rest: &Value, tell: impl FnOnce(&mut RepositoryChange)) -> model::Finding {
        let mut assertion = json!({"id": "a", "type": "pushed"});
        assertion.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        judged(&assertion, &Story::new().repository(tell).evidence())
    }

    #[test]
    fn an_existing_branch_that_was_pushed_is_pushed() {
        let finding = of(&json!({}), |change| {
            commit_on(change, "b2", "x");
            push_to(change, "main", "b2");
        });
        assert_eq!(
            (finding.status, finding.because.as_str()),
            (Status::Met, "`origin/main` at b2 is the local commit")
        );
        let idle = of(&json!({}), |_| {});
        assert_eq!((idle.status, idle.because.as_str()), (Status::Unmet, "nothing was pushed"));
    }

    #[test]
    fn the_branch_that_is_worked_on_is_the_one_that_counts() {
        let work = |change: &mut RepositoryChange| {
            push_to(change, "other", "a1");
            branch_out(change, "feat/x");
            commit_on(change, "b2", "x");
        };
        assert_eq!(of(&json!({}), work).because, "`feat/x` was not pushed");
        let back = |change: &mut RepositoryChange| {
            work(change);
            push_to(change, "feat/x", "b2");
            (change.after.branch, change.after.head) = (Some("main".into()), Some("a1".into()));
        };
        assert_eq!(of(&json!({}), back).status, Status::Met);
        assert_eq!(of(&json!({"name": "feat/*"}), back).status, Status::Met);
        assert_eq!(of(&json!({"name": "fix/*"}), back).because, "no branch `fix/*` was pushed");
    }

    #[test]
    fn a_remote_that_could_not_be_asked_leaves_it_undecided() {
        let finding = of(&json!({}), |change| {
            let origin = change.after.remotes.get_mut("origin").unwrap();
            (origin.branches, origin.unknown) = (None, vec!["no network".into()]);
        });
        assert_eq!(finding.status, Status::Undecided);
        assert_eq!(finding.because, "what was pushed cannot be told: `origin`: no network");
        let elsewhere = |change: &mut RepositoryChange| {
            change.after.pushes.insert("fork/main".into(), "a1".into());
        };
        let fork = of(&json!({}), elsewhere);
        assert_eq!((fork.status, fork.actual.as_deref()), (Status::Unmet, Some("`fork/main` at a1, as git logged it")));
        let none = of(&json!({}), |change| {
            change.before.remotes.clear();
            change.after.remotes.clear();
        });
        assert_eq!((none.status, none.actual.as_deref()), (Status::Unmet, Some("there is no remote")));
    }
}
