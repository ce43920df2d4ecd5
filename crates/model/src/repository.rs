//! A repository at one moment, and what became of it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::SideEffects;

/// A repository at one moment: its refs, its index and its remotes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RepositoryState {
    /// The commit that is checked out; absent before the first one.
    pub head: Option<String>,
    /// The branch that is checked out; absent where a commit is.
    pub branch: Option<String>,
    /// Local branches and their commits.
    pub branches: BTreeMap<String, String>,
    /// Remotes by name: those that stood before the agent acted, at the addresses they had then.
    pub remotes: BTreeMap<String, RemoteState>,
    /// How many commits are reached from any ref.
    pub commit_count: u64,
    /// The latest of them, newest first; at most 50.
    pub recent_commits: Vec<Commit>,
    /// All refs, tags included: a digest of their names and what they stand for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refs: Option<String>,
    /// What is in the index: a digest of its entries. Absent where there is no index that can be read.
    pub index: Option<String>,
    /// `git status --porcelain`, a line each.
    pub status: Vec<String>,
    /// Remote-tracking branches that git logged as pushed, such as `fork/main`, and the commits they were pushed at.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub pushes: BTreeMap<String, String>,
    /// Why none of this can be read although it could before: the agent removed the repository or broke it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost: Option<String>,
}

/// A remote at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RemoteState {
    /// Its address, without what signs in.
    pub url: String,
    /// Its branches and their commits, as the remote itself tells them; absent if it could not be asked.
    pub branches: Option<BTreeMap<String, String>>,
    /// Its review requests, open and closed; absent if they could not be asked for.
    pub review_requests: Option<Vec<ReviewRequest>>,
    /// What could not be asked, and why, a line each.
    pub unknown: Vec<String>,
    /// Branches that somebody else changed while the trial ran; in `branches` they are as they were before.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub by_others: Vec<String>,
}

/// A commit.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Commit {
    /// Its hash.
    pub sha: String,
    /// The first line of its message.
    pub subject: String,
    /// Whether it is reached from what is checked out.
    pub on_head: bool,
}

/// A pull request or a merge request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReviewRequest {
    /// Its number.
    pub number: u64,
    /// The branch that is to be merged.
    pub head: Option<String>,
    /// The branch it is to be merged into.
    pub base: Option<String>,
    /// Where people look at it.
    pub url: Option<String>,
    /// Whether it can still be merged.
    pub open: bool,
}

/// What became of a repository between two moments.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RepositoryChange {
    /// Before the agent began: fixtures and skill are in their places.
    pub before: RepositoryState,
    /// After the agent and all its processes have ended.
    pub after: RepositoryState,
    /// Commits reached from a ref or from what is checked out that were not before, newest first.
    pub new_commits: Vec<Commit>,
}

impl RepositoryChange {
    /// What is new on remotes, remote by remote: branches, and review requests that are open. What could not be asked for
    /// is not new.
    pub fn side_effects(&self) -> Vec<SideEffects> {
        let of = |after: &RemoteState| {
            // A name may have come to stand for another place; what was there before is known of a place only.
            let before = self.before.remotes.values().find(|before| before.url == after.url);
            let old = before.map(|before| before.branches.as_ref());
            let is_new = |name: &str| match old {
                Some(old) => old.is_some_and(|old| !old.contains_key(name)),
                // A remote that was not there before is the agent's own.
                None => true,
            };
            let commits: BTreeMap<String, String> =
                after.branches.iter().flatten().filter(|(name, _)| is_new(name)).map(pair).collect();
            let old = before.and_then(|before| before.review_requests.as_deref());
            let known = |number: u64| old.unwrap_or_default().iter().any(|request| request.number == number);
            let new = after.review_requests.iter().flatten().filter(|_| old.is_some());
            let review_requests =
                new.filter(|request| request.open && !known(request.number)).map(|request| request.number).collect();
            SideEffects {
                remote: after.url.clone(),
                branches: commits.keys().cloned().collect(),
                review_requests,
                commits,
                added: before.is_none(),
            }
        };
        let all = self.after.remotes.values().map(of);
        all.filter(|left| !left.branches.is_empty() || !left.review_requests.is_empty()).collect()
    }
}

fn pair((name, commit): (&String, &String)) -> (String, String) {
    (name.clone(), commit.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(url: &str, branches: &[(&str, &str)]) -> RemoteState {
        let branches = branches.iter().map(|(name, commit)| ((*name).to_owned(), (*commit).to_owned())).collect();
        RemoteState { url: url.to_owned(), branches: Some(branches), ..RemoteState::default() }
    }

    fn state(remotes: &[(&str, RemoteState)]) -> RepositoryState {
        let remotes = remotes.iter().map(|(name, remote)| ((*name).to_owned(), remote.clone())).collect();
        RepositoryState { remotes, ..RepositoryState::default() }
    }

    #[test]
    fn what_is_new_is_told_of_places_and_not_of_names() {
        let before = state(&[("origin", at("/a", &[("main", "1")]))]);
        let after = state(&[
            ("origin", at("/b", &[("main", "9"), ("theirs", "8")])),
            ("other", at("/a", &[("main", "1"), ("new", "2")])),
        ]);
        let change = RepositoryChange { before, after, new_commits: Vec::new() };
        let left: Vec<(String, Vec<String>, bool)> =
            change.side_effects().into_iter().map(|left| (left.remote, left.branches, left.added)).collect();
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        assert_eq!(
            left,
            [("/b".to_owned(), names(&["main", "theirs"]), true), ("/a".to_owned(), names(&["new"]), false)]
        );
    }
}
