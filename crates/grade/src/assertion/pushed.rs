//! `pushed` and `not_pushed`: the agent pushed a branch with all its commits, or pushed nothing.

use model::{RepositoryChange, Trace};

use super::branch_created::{NAME, PATTERN};
use super::command_ran::{ran_by, shell_calls};
use super::prelude::*;
use super::repository_matcher::RepositoryMatcher;
use crate::branch_name::{BranchName, branch_told};
use crate::evidence::repository::{self, Changes, Push, short};
use crate::example::{branch_out, commit_on, push_to};
use crate::shell;

pub(crate) const ASSERTION: Assertion = Assertion::written("pushed", |reading| parse(reading, true))
    .summary("The agent pushed a branch, and the remote has its last commit.")
    .fields(&[NAME, PATTERN, TITLE])
    .example(
        || json!({"id": "pushes", "type": "pushed"}),
        || {
            EvidenceBuilder::new().repository(|change| {
                branch_out(change, "feat/basket");
                commit_on(change, "b2", "feat: add a basket");
                push_to(change, "feat/basket", "b2");
            })
        },
        || {
            EvidenceBuilder::new().repository(|change| {
                branch_out(change, "feat/basket");
                commit_on(change, "b2", "feat: add a basket");
                push_to(change, "feat/basket", "b2");
                commit_on(change, "c3", "fix: count to ten");
            })
        },
    );

pub(crate) const NEGATION: Assertion = Assertion::written("not_pushed", |reading| parse(reading, false))
    .summary("The agent did not push to a new or an existing branch.")
    .fields(&[NAME, PATTERN, TITLE])
    .example(
        || json!({"id": "keeps-it-local", "type": "not_pushed"}),
        || EvidenceBuilder::new().repository(|_| {}),
        || EvidenceBuilder::new().repository(|change| push_to(change, "main", "b2")),
    );

/// The command that pushes.
const PUSH: [&str; 2] = ["git", "push"];

#[derive(Debug)]
pub(crate) struct Pushed {
    pub name: Option<BranchName>,
    pub is_wanted: bool,
}

fn parse(reading: &mut Reading<'_>, is_wanted: bool) -> Option<Arc<dyn Matcher>> {
    Some(Arc::new(Pushed { name: BranchName::read(reading).ok()?, is_wanted }))
}

impl RepositoryMatcher for Pushed {
    fn judge_change(&self, change: &RepositoryChange, evidence: &Evidence) -> Judgement {
        let mut seen = repository::pushes(change);
        if !self.is_wanted {
            seen.unknown.extend(unseen_push(change, &evidence.trace));
            return self.absence(seen);
        }
        let pushes = self.about(change, &seen)?;
        if let Some(push) = pushes.iter().find(|push| push.head.is_some() && push.head == local(change, push)) {
            return Ok(Verdict::met(format!("{} matches the local commit", push.describe())));
        }
        if !seen.unknown.is_empty() {
            return Ok(repository::unknown("what was pushed", seen.unknown));
        }
        Ok(self.missing(change, &seen.new, &pushes))
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
    /// Checks that nothing was pushed, not even to a remote that the agent added.
    fn absence(&self, seen: Changes<Push<'_>>) -> Judgement {
        let branch = branch_told(self.name.as_ref());
        Ok(match self.named(seen.new.into_iter())?.as_slice() {
            [] if !seen.unknown.is_empty() => repository::unknown("what was pushed", seen.unknown),
            [] => Verdict::met(format!("no {branch} is new or changed at the remotes")),
            [first, others @ ..] => {
                let reason = format!("`{}` was pushed", first.branch);
                Verdict::unmet(reason, format!("no pushed {branch}"), first.describe())
                    .evidence(others.iter().map(Push::describe))
            }
        })
    }

    /// Returns those of `pushes` whose branch has the name, if one is given.
    fn named<'c>(&self, pushes: impl Iterator<Item = Push<'c>>) -> Result<Vec<Push<'c>>, String> {
        let Some(name) = &self.name else { return Ok(pushes.collect()) };
        let is_named = |push: Push<'c>| name.is(push.branch).map(|is_named| is_named.then_some(push)).transpose();
        pushes.filter_map(is_named).collect()
    }

    /// Returns the pushes that the assertion is about.
    fn about<'c>(&self, change: &'c RepositoryChange, seen: &Changes<Push<'c>>) -> Result<Vec<Push<'c>>, String> {
        let is_there = seen.new.iter().copied().filter(|push| push.head.is_some() && push.is_asked);
        let pushes = self.named(is_there)?;
        if self.name.is_some() {
            return Ok(pushes);
        }
        let Some(branch) = own_branch(change) else { return Ok(pushes) };
        let head = change.after.head.as_deref();
        let of_own = |push: &Push<'_>| push.branch == branch || (head.is_some() && push.head == head);
        Ok(pushes.into_iter().filter(of_own).collect())
    }

    fn missing(&self, change: &RepositoryChange, all: &[Push<'_>], about: &[Push<'_>]) -> Verdict {
        let branch = branch_told(self.name.as_ref());
        let wanted = format!("a {branch} whose last commit is on a remote");
        if let Some(push) = about.first() {
            let reason = format!("{} does not match the local commit", push.describe());
            let actual = match local(change, push) {
                Some(head) => format!("the local commit is {}", short(head)),
                None => "there is no local commit".to_owned(),
            };
            return Verdict::unmet(reason, wanted, actual);
        }
        let (asked, elsewhere): (Vec<&Push<'_>>, Vec<&Push<'_>>) = all.iter().partition(|push| push.is_asked);
        let pushed: Vec<String> = asked.into_iter().map(Push::describe).collect();
        let (reason, actual) = match (pushed.as_slice(), own_branch(change)) {
            ([], _) if !elsewhere.is_empty() => {
                let pushed: Vec<String> = elsewhere.into_iter().map(Push::describe).collect();
                ("nothing was pushed to a remote that existed before the agent ran".into(), format::list(&pushed))
            }
            ([], _) if change.after.remotes.is_empty() => {
                ("nothing was pushed".into(), "there is no remote".to_owned())
            }
            ([], _) => ("nothing was pushed".into(), "the remotes are unchanged".to_owned()),
            (pushed, Some(branch)) if self.name.is_none() => {
                (format!("`{branch}` was not pushed"), format::list(pushed))
            }
            (pushed, _) => (format!("no {branch} was pushed"), format::list(pushed)),
        };
        Verdict::unmet(reason, wanted, actual).evidence(sign_in_hint(change))
    }
}

/// Returns the reason why not every push is known: a call pushes to a path or URL that is not one of the remotes, and
/// only these are inspected.
pub(super) fn unseen_push(change: &RepositoryChange, trace: &Trace) -> Option<String> {
    let known = || [&change.before, &change.after].into_iter().flat_map(|state| &state.remotes);
    let is_known = |target: &str| known().any(|(name, remote)| name == target || remote.url == target);
    shell_calls(trace).find_map(|(at, line)| {
        let has_failed = trace.calls[at].result.as_ref().is_some_and(|result| result.is_error);
        let ran = ran_by(&line);
        if has_failed && ran.len() == 1 {
            return None;
        }
        let targets =
            ran.iter().filter(|words| shell::is_run_of(&PUSH.map(str::to_owned), words)).filter_map(|words| {
                let arguments = words.iter().skip_while(|word| *word != PUSH[1]).skip(1);
                arguments.into_iter().find(|word| !word.starts_with('-'))
            });
        let mut unseen = targets.filter(|target| target.contains(['/', ':']) && !is_known(target));
        unseen.next().map(|target| format!("`{target}`, to which call {} pushes, is none of the remotes", at + 1))
    })
}

/// Returns a hint if a remote may have refused the push because the agent is not signed in there.
fn sign_in_hint(change: &RepositoryChange) -> Option<String> {
    let needs_sign_in = |url: &str| url.starts_with("https://") || url.starts_with("http://");
    let mut remotes = change.after.remotes.iter();
    let (name, _) = remotes.find(|(_, remote)| !remote.is_isolated && needs_sign_in(&remote.url))?;
    Some(format!(
        "the agent is signed in at `{name}` only with `lend_git_sign_in`; look for a refused `git push` in its output"
    ))
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
    use crate::example::{EvidenceBuilder, branch_out, commit_on, push_to};

    fn finding_of(rest: &Value, tell: impl FnOnce(&mut RepositoryChange)) -> model::Finding {
        let mut assertion = json!({"id": "a", "type": "pushed"});
        assertion.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        judged(&assertion, &EvidenceBuilder::new().repository(tell).evidence())
    }

    #[test]
    fn a_missing_push_to_a_remote_with_sign_in_names_the_option() {
        let at = |url: &str| {
            let finding = finding_of(&json!({}), |change| {
                let remote = model::RemoteState { url: url.to_owned(), ..Default::default() };
                let remote = model::RemoteState { branches: Some(Default::default()), ..remote };
                change.before.remotes = [("origin".to_owned(), remote.clone())].into();
                change.after.remotes = [("origin".to_owned(), remote)].into();
            });
            assert_eq!((finding.status, finding.reason.as_str()), (Status::Unmet, "nothing was pushed"));
            finding.evidence.iter().any(|line| line.contains("`origin` only with `lend_git_sign_in`"))
        };
        assert!(at("https://example.com/a.git") && !at("/srv/a.git"));
    }

    #[test]
    fn pushing_an_existing_branch_counts_as_a_push() {
        let finding = finding_of(&json!({}), |change| {
            commit_on(change, "b2", "x");
            push_to(change, "main", "b2");
        });
        assert_eq!(
            (finding.status, finding.reason.as_str()),
            (Status::Met, "`origin/main` at b2 matches the local commit")
        );
        let idle = finding_of(&json!({}), |_| {});
        assert_eq!((idle.status, idle.reason.as_str()), (Status::Unmet, "nothing was pushed"));
    }

    #[test]
    fn the_branch_that_contains_the_work_of_the_agent_counts() {
        let work = |change: &mut RepositoryChange| {
            push_to(change, "other", "a1");
            branch_out(change, "feat/x");
            commit_on(change, "b2", "x");
        };
        assert_eq!(finding_of(&json!({}), work).reason, "`feat/x` was not pushed");
        let back = |change: &mut RepositoryChange| {
            work(change);
            push_to(change, "feat/x", "b2");
            (change.after.branch, change.after.head) = (Some("main".into()), Some("a1".into()));
        };
        assert_eq!(finding_of(&json!({}), back).status, Status::Met);
        assert_eq!(finding_of(&json!({"name": "feat/*"}), back).status, Status::Met);
        assert_eq!(finding_of(&json!({"name": "fix/*"}), back).reason, "no branch `fix/*` was pushed");
    }

    #[test]
    fn a_push_to_a_place_that_is_no_remote_is_not_seen() {
        let finding = |line: &str| {
            let story = EvidenceBuilder::new().repository(|_| {}).call("Bash", json!({"command": line}));
            judged(&json!({"id": "a", "type": "not_pushed"}), &story.evidence())
        };
        let unseen = finding("cd app && git push -f ../r.git main:new");
        assert_eq!(
            unseen.reason,
            "what was pushed is unknown: `../r.git`, to which call 1 pushes, is none of the remotes"
        );
        for line in ["git push origin feat/x", "git push", "echo git push ../r.git"] {
            assert_eq!(finding(line).status, Status::Met, "{line}");
        }
    }

    #[test]
    fn an_unreachable_remote_leaves_the_assertion_undecided() {
        let finding = finding_of(&json!({}), |change| {
            let origin = change.after.remotes.get_mut("origin").unwrap();
            (origin.branches, origin.unknown) = (None, vec!["no network".into()]);
        });
        assert_eq!(finding.status, Status::Undecided);
        assert_eq!(finding.reason, "what was pushed is unknown: `origin`: no network");
        let elsewhere = |change: &mut RepositoryChange| {
            change.after.pushes.insert("fork/main".into(), "a1".into());
        };
        let fork = finding_of(&json!({}), elsewhere);
        assert_eq!((fork.status, fork.actual.as_deref()), (Status::Unmet, Some("`fork/main` at a1, as git logged it")));
        let none = finding_of(&json!({}), |change| {
            change.before.remotes.clear();
            change.after.remotes.clear();
        });
        assert_eq!((none.status, none.actual.as_deref()), (Status::Unmet, Some("there is no remote")));
    }

    #[test]
    fn deleting_a_remote_branch_counts_as_a_push() {
        let assertion = json!({"id": "a", "type": "not_pushed"});
        let removed = EvidenceBuilder::new().repository(|change| {
            change.after.remotes.get_mut("origin").unwrap().branches.as_mut().unwrap().clear();
        });
        let finding = judged(&assertion, &removed.evidence());
        assert_eq!((finding.status, finding.actual.as_deref()), (Status::Unmet, Some("`origin/main`, which is gone")));
    }

    #[test]
    fn a_push_to_a_remote_added_by_the_agent_counts() {
        let assertion = json!({"id": "a", "type": "not_pushed"});
        let pushed = EvidenceBuilder::new().repository(|change| {
            change.after.pushes.insert("fork/main".into(), "b2".into());
        });
        assert_eq!(judged(&assertion, &pushed.evidence()).status, Status::Unmet);
    }

    #[test]
    fn a_detected_push_counts_even_if_another_remote_is_unreachable() {
        let assertion = json!({"id": "a", "type": "not_pushed"});
        let silent = |change: &mut model::RepositoryChange| {
            change.after.remotes.insert("fork".into(), model::RemoteState::default());
        };
        assert_eq!(judged(&assertion, &EvidenceBuilder::new().repository(silent).evidence()).status, Status::Undecided);
        let seen = EvidenceBuilder::new().repository(|change| {
            silent(change);
            push_to(change, "feat/x", "a1");
        });
        assert_eq!(judged(&assertion, &seen.evidence()).status, Status::Unmet);
    }
}
