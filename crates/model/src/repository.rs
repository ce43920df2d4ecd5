//! State of a repository at one moment, and the change between two moments.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::SideEffects;

/// State of a repository at one moment: its refs, its index and its remotes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RepositoryState {
    /// Commit that is checked out; absent before the first one.
    pub head: Option<String>,
    /// Branch that is checked out; absent if HEAD is detached.
    pub branch: Option<String>,
    /// Local branches and their commits.
    pub branches: BTreeMap<String, String>,
    /// Remotes by name: those that existed before the agent acted, at the addresses they had then.
    pub remotes: BTreeMap<String, RemoteState>,
    /// Number of commits reachable from any ref.
    pub commit_count: u64,
    /// Latest of these commits, newest first; at most 50.
    pub recent_commits: Vec<Commit>,
    /// Digest of the names and targets of all refs, including tags.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refs: Option<String>,
    /// Digest of the entries of the index; absent if no index can be read.
    pub index: Option<String>,
    /// Lines of `git status --porcelain`.
    pub status: Vec<String>,
    /// Remote-tracking branches that git logged as pushed, such as `fork/main`, with the pushed commits.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub pushes: BTreeMap<String, String>,
    /// Reason why the state can no longer be read: the agent removed or broke the repository.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost: Option<String>,
}

/// State of a remote at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RemoteState {
    /// Address, without credentials.
    pub url: String,
    /// Branches and their commits, as reported by the remote itself; absent if it could not be queried.
    pub branches: Option<BTreeMap<String, String>>,
    /// Review requests, open and closed; absent if they could not be queried.
    pub review_requests: Option<Vec<ReviewRequest>>,
    /// Queries that failed, with the reason, one line each.
    pub unknown: Vec<String>,
    /// Branches that others changed during the trial. `branches` contains their earlier state.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub by_others: Vec<String>,
    /// True for the trial's own copy of the remote. `url` is then the address that the agent sees.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_isolated: bool,
    /// Commands for the hosting service's CLI that the stand-in does not support, as the agent wrote them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unsupported: Vec<String>,
}

/// Commit.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Commit {
    /// Hash.
    pub sha: String,
    /// First line of the message.
    pub subject: String,
    /// True if it is reachable from HEAD.
    pub on_head: bool,
}

/// Pull request or merge request.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReviewRequest {
    /// Number.
    pub number: u64,
    /// Branch to merge.
    pub head: Option<String>,
    /// Target branch.
    pub base: Option<String>,
    /// URL of its web page.
    pub url: Option<String>,
    /// True if it can still be merged.
    pub open: bool,
    /// True if it is a draft; `None` if this is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub draft: Option<bool>,
    /// Title.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
}

/// Change to a repository between two moments.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RepositoryChange {
    /// State before the agent starts, with fixtures and skill in place.
    pub before: RepositoryState,
    /// State after the agent and all its processes have ended.
    pub after: RepositoryState,
    /// Commits reachable from a ref or from HEAD that were not reachable before, newest first.
    pub new_commits: Vec<Commit>,
}

impl RepositoryChange {
    /// Returns what is new on each remote: branches and open review requests. Anything that could not be queried is
    /// not counted as new.
    pub fn side_effects(&self) -> Vec<SideEffects> {
        let of = |after: &RemoteState| {
            // Compare by URL: the name may now belong to another address, and the earlier state is known by address
            // only.
            let before = self.before.remotes.values().find(|before| before.url == after.url);
            let old = before.map(|before| before.branches.as_ref());
            let is_new = |name: &str| match old {
                Some(old) => old.is_some_and(|old| !old.contains_key(name)),
                // A remote that did not exist before was added by the agent.
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
        // The trial's own copy of a remote is removed with its sandbox.
        let all = self.after.remotes.values().filter(|remote| !remote.is_isolated).map(of);
        all.filter(|left| !left.branches.is_empty() || !left.review_requests.is_empty()).collect()
    }
}

fn pair((name, commit): (&String, &String)) -> (String, String) {
    (name.clone(), commit.clone())
}

/// Returns `true` if git accepts `name` as the name of a branch: the rules of `git check-ref-format --branch`.
pub fn is_branch_name(name: &str) -> bool {
    let is_refused = |letter: char| letter.is_ascii_control() || " ~^:?*[\\".contains(letter);
    let is_part = |part: &str| !part.is_empty() && !part.starts_with('.') && !part.ends_with(".lock");
    !name.contains(is_refused)
        && !name.contains("..")
        && !name.contains("@{")
        && !name.starts_with('-')
        && !name.ends_with('.')
        && !["@", "HEAD"].contains(&name)
        && name.split('/').all(is_part)
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
    fn new_branches_are_compared_by_address_and_not_by_remote_name() {
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

    #[test]
    fn a_name_that_git_refuses_is_not_the_name_of_a_branch() {
        for name in ["main", "feat/x-1", "a@b", "ü", "a.b", "release/1.0"] {
            assert!(is_branch_name(name), "{name}");
        }
        let refused = "a b|/a|a/|a//b|.a|a/.b|a.lock/b|a..b|a.|a@{1|@|HEAD|-a|a~1|a^|a:b|a?|a*|a[|a\\b|\u{7f}|";
        for name in refused.split('|') {
            assert!(!is_branch_name(name), "{name}");
        }
    }
}
