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
    /// Remotes by name.
    pub remotes: BTreeMap<String, RemoteState>,
    /// How many commits are reached from any ref.
    pub commit_count: u64,
    /// The latest of them, newest first; at most 50.
    pub recent_commits: Vec<Commit>,
    /// What is in the index: a digest of its entries. Absent where there is no index that can be read.
    pub index: Option<String>,
    /// `git status --porcelain`, a line each.
    pub status: Vec<String>,
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
        let of = |(name, after): (&String, &RemoteState)| {
            let before = self.before.remotes.get(name);
            let old = before.map(|before| before.branches.as_ref());
            let branches = match (old, &after.branches) {
                // A remote that was not there before is the agent's own.
                (Some(Some(old)), Some(new)) => new.keys().filter(|name| !old.contains_key(*name)).cloned().collect(),
                (None, Some(new)) => new.keys().cloned().collect(),
                _ => Vec::new(),
            };
            let old = before.and_then(|before| before.review_requests.as_deref());
            let known = |number: u64| old.unwrap_or_default().iter().any(|request| request.number == number);
            let new = after.review_requests.iter().flatten().filter(|_| old.is_some());
            let review_requests =
                new.filter(|request| request.open && !known(request.number)).map(|request| request.number).collect();
            SideEffects { remote: after.url.clone(), branches, review_requests }
        };
        let all = self.after.remotes.iter().map(of);
        all.filter(|left| !left.branches.is_empty() || !left.review_requests.is_empty()).collect()
    }
}
