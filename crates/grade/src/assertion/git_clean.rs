//! `git_clean`: the agent did not leave uncommitted changes.

use model::RepositoryChange;

use super::prelude::*;
use super::repository_matcher::RepositoryMatcher;
use crate::evidence::repository;

/// Number of lines that a finding shows.
const SHOWN: usize = 20;

pub(crate) const ASSERTION: Assertion =
    Assertion::written("git_clean", |_| Some(Arc::new(GitClean { is_wanted: true })))
        .summary("The agent left no uncommitted changes.")
        .fields(&[TITLE])
        .example(
            || json!({"id": "leaves-nothing-behind", "type": "git_clean"}),
            || {
                let fixture = || vec!["?? commits.txt".to_owned()];
                EvidenceBuilder::new()
                    .repository(|change| (change.before.status, change.after.status) = (fixture(), fixture()))
            },
            || {
                EvidenceBuilder::new()
                    .repository(|change| change.after.status = vec!["?? debug.log".into()])
                    .added("debug.log")
            },
        );

/// Check that the working tree is clean, or is not.
#[derive(Debug)]
pub(crate) struct GitClean {
    pub is_wanted: bool,
}

impl RepositoryMatcher for GitClean {
    fn judge_change(&self, change: &RepositoryChange, evidence: &Evidence) -> Judgement {
        let left = repository::left_uncommitted(change, evidence);
        let lines = format::few(left.iter().map(|line| (*line).to_owned()).collect(), SHOWN);
        let paths = format::count(left.len(), "path");
        Ok(match (left.is_empty(), self.is_wanted) {
            (true, true) => {
                Verdict::met("`git status` shows nothing that the agent left uncommitted; ignored files do not count")
            }
            (false, false) => Verdict::met(format!("{paths} left uncommitted")).evidence(lines),
            (false, true) => {
                Verdict::unmet(format!("{paths} left uncommitted"), "nothing uncommitted", paths).evidence(lines)
            }
            (true, false) => Verdict::unmet("the agent left nothing uncommitted", "something uncommitted", "nothing"),
        })
    }
}

#[cfg(test)]
mod tests {
    use model::Status;
    use serde_json::json;

    use crate::check::tests::judged;
    use crate::example::EvidenceBuilder;

    #[test]
    fn an_untracked_fixture_counts_only_after_it_changes() {
        let fixture = || {
            EvidenceBuilder::new().repository(|change| {
                (change.before.status, change.after.status) = (vec!["?? data/".into()], vec!["?? data/".into()]);
            })
        };
        let finding_of = |story: EvidenceBuilder| judged(&json!({"id": "a", "type": "git_clean"}), &story.evidence());
        assert_eq!(finding_of(fixture()).status, Status::Met);
        assert_eq!(finding_of(fixture().changed("data/a.txt")).evidence, ["?? data/"]);
        assert_eq!(finding_of(fixture().added("data/b.txt")).status, Status::Unmet);
        assert_eq!(finding_of(fixture().changed("database/a.txt")).status, Status::Met);
        assert_eq!(finding_of(EvidenceBuilder::new()).status, Status::Undecided);
        let lost = EvidenceBuilder::new().repository(|change| change.after.lost = Some("it was removed".into()));
        assert_eq!(finding_of(lost).status, Status::Unmet);
    }
}
