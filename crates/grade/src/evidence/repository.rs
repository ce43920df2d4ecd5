//! Changes to a repository, as assertions query them. Changes that could not be checked are distinguished from changes
//! that did not happen.

use model::{Commit, Evidence, Need, RemoteState, RepositoryChange, ReviewRequest};

use crate::verdict::{Verdict, without_sandbox};

/// Number of characters of a commit hash that are shown.
const SHOWN_SHA: usize = 12;

/// Returns the changes to the repository. The error is the verdict if there are none to look at. An agent cannot meet
/// an assertion about a repository by removing or breaking it.
pub(crate) fn change(evidence: &Evidence) -> Result<&RepositoryChange, Box<Verdict>> {
    match &evidence.collected.repository_change {
        Some(change) => match &change.after.lost {
            Some(reason) => {
                let reason = format!("the repository can no longer be read: {reason}");
                Err(Box::new(Verdict::unmet(reason, "a repository that git can read", "none")))
            }
            None => Ok(change),
        },
        None => {
            let none = || Verdict::undecided("there was no repository in the working directory when the agent began");
            Err(Box::new(without_sandbox(evidence, &Need::Repository).unwrap_or_else(none)))
        }
    }
}

/// Returns new local branches, by name. A branch that was on a remote before does not count as new. Neither does a
/// branch that was checked out before its first commit.
pub(crate) fn new_branches(change: &RepositoryChange) -> Vec<&str> {
    let (before, after) = (&change.before, &change.after);
    let on_remote = |name: &str| before.remotes.values().any(|remote| has_branch(remote, name));
    let is_new = |name: &&str| {
        !before.branches.contains_key(*name) && before.branch.as_deref() != Some(name) && !on_remote(name)
    };
    let mut new: Vec<&str> = after.branches.keys().map(String::as_str).filter(is_new).collect();
    // A branch that is checked out and has no commit yet is not in the list.
    new.extend(after.branch.as_deref().filter(|name| !after.branches.contains_key(*name)).filter(is_new));
    new
}

fn has_branch(remote: &RemoteState, name: &str) -> bool {
    remote.branches.as_ref().is_some_and(|branches| branches.contains_key(name))
}

/// Returns new commits, newest first, except those that were on a remote before.
pub(crate) fn new_commits(change: &RepositoryChange) -> Vec<&Commit> {
    let heads = |sha: &str| {
        let remotes = change.before.remotes.values();
        remotes.filter_map(|remote| remote.branches.as_ref()).any(|branches| branches.values().any(|head| head == sha))
    };
    change.new_commits.iter().filter(|commit| !heads(&commit.sha)).collect()
}

/// Branch on a remote that changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Push<'c> {
    /// Name of the remote.
    pub remote: &'c str,
    /// Name of the branch.
    pub branch: &'c str,
    /// Its current commit. `None` if the branch was deleted.
    pub head: Option<&'c str>,
    /// True if it did not exist before.
    pub is_new: bool,
    /// True if the remote itself reports it. If false, it comes from git's log in the repository: the agent added the
    /// remote or changed its URL, so the remote is not queried.
    pub is_asked: bool,
}

impl Push<'_> {
    /// Returns `origin/main` and its commit, for messages.
    pub fn describe(&self) -> String {
        match self.head {
            Some(head) if self.is_asked => format!("`{}/{}` at {}", self.remote, self.branch, short(head)),
            Some(head) => format!("`{}/{}` at {}, as git logged it", self.remote, self.branch, short(head)),
            None => format!("`{}/{}`, which is gone", self.remote, self.branch),
        }
    }
}

/// Changes on remotes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Changes<T> {
    /// Changed items.
    pub new: Vec<T>,
    /// Reasons why something could not be fetched, one per line.
    pub unknown: Vec<String>,
}

/// Returns the branches that were pushed.
pub(crate) fn pushes(change: &RepositoryChange) -> Changes<Push<'_>> {
    let mut seen = Changes { new: Vec::new(), unknown: Vec::new() };
    for (name, after) in &change.after.remotes {
        let before = change.before.remotes.get(name);
        let Some(heads) = &after.branches else {
            seen.unknown.extend(reasons(name, after, "branches"));
            continue;
        };
        let old = before.and_then(|before| before.branches.as_ref());
        let is_known = before.is_none() || old.is_some();
        if let (Some(before), false) = (before, is_known) {
            seen.unknown.extend(reasons(name, before, "branches"));
        }
        for (branch, head) in heads {
            let was = old.and_then(|old| old.get(branch));
            // If the earlier state is unknown, only a commit that the agent created shows that the branch was pushed.
            let is_own = || change.new_commits.iter().any(|commit| commit.sha == *head);
            if was != Some(head) && (is_known || is_own()) {
                let is_new = is_known && was.is_none();
                seen.new.push(Push { remote: name, branch, head: Some(head), is_new, is_asked: true });
            }
        }
        let gone = old.into_iter().flatten().filter(|(branch, _)| !heads.contains_key(*branch));
        let removed = |branch| Push { remote: name, branch, head: None, is_new: false, is_asked: true };
        seen.new.extend(gone.map(|(branch, _)| removed(branch)));
    }
    let asked: Vec<(&str, &str)> = seen.new.iter().map(|push| (push.remote, push.branch)).collect();
    seen.new.extend(logged_pushes(change).filter(|push| !asked.contains(&(push.remote, push.branch))));
    seen.unknown.extend(removed(change));
    seen
}

/// Returns the pushes to any remote that git logged in the repository since the agent started.
fn logged_pushes(change: &RepositoryChange) -> impl Iterator<Item = Push<'_>> {
    let (before, after) = (&change.before.pushes, &change.after.pushes);
    after.iter().filter(|(name, head)| before.get(*name) != Some(*head)).filter_map(|(name, head)| {
        let known = change
            .after
            .remotes
            .keys()
            .find_map(|remote| Some((remote.as_str(), name.strip_prefix(remote.as_str())?.strip_prefix('/')?)));
        let (remote, branch) = known.or_else(|| name.split_once('/'))?;
        Some(Push { remote, branch, head: Some(head), is_new: true, is_asked: false })
    })
}

/// Returns new review requests, in any state.
pub(crate) fn new_requests(change: &RepositoryChange) -> Changes<&ReviewRequest> {
    let mut seen = Changes { new: Vec::new(), unknown: Vec::new() };
    for (name, after) in &change.after.remotes {
        let before = change.before.remotes.get(name);
        let old = before.map_or(Some(&[][..]), |before| before.review_requests.as_deref());
        match (old, &after.review_requests) {
            (Some(old), Some(now)) => {
                let is_new = |request: &&ReviewRequest| !old.iter().any(|known| known.number == request.number);
                seen.new.extend(now.iter().filter(is_new));
            }
            (None, Some(_)) => {
                seen.unknown.extend(before.map(|before| reasons(name, before, "review requests")).unwrap_or_default());
            }
            (_, None) => seen.unknown.extend(reasons(name, after, "review requests")),
        }
    }
    seen.unknown.extend(removed(change));
    seen
}

/// Reports removed remotes, which cannot be queried.
fn removed(change: &RepositoryChange) -> impl Iterator<Item = String> {
    let gone = change.before.remotes.keys().filter(|name| !change.after.remotes.contains_key(*name));
    gone.map(|name| format!("the remote `{name}` was removed, so it could not be checked"))
}

/// Returns the reasons why `what` of that remote is unknown.
fn reasons(name: &str, remote: &RemoteState, what: &str) -> Vec<String> {
    match remote.unknown.as_slice() {
        [] => vec![format!("the {what} of `{name}` could not be fetched")],
        reasons => reasons.iter().map(|reason| format!("`{name}`: {reason}")).collect(),
    }
}

/// Returns the verdict for something that could not be fetched.
pub(crate) fn unknown(what: &str, reasons: Vec<String>) -> Verdict {
    let first = reasons.first().cloned().unwrap_or_default();
    Verdict::undecided(format!("{what} is unknown: {first}")).evidence(reasons.into_iter().skip(1))
}

/// Returns the agent's uncommitted changes: new lines in `git status`, and those about files that changed.
pub(crate) fn left_uncommitted<'e>(change: &'e RepositoryChange, evidence: &Evidence) -> Vec<&'e str> {
    let is_changed = |line: &str| {
        let path = path_of(line);
        let below = |file: &str| file == path || (path.ends_with('/') && file.starts_with(&path));
        evidence.collected.files_changed.iter().any(|file| below(&file.path))
    };
    let lines = change.after.status.iter().map(String::as_str);
    lines.filter(|line| !change.before.status.iter().any(|known| known == line) || is_changed(line)).collect()
}

/// Returns the path in a line of `git status --porcelain`.
fn path_of(line: &str) -> String {
    let path = line.get(3..).unwrap_or_default();
    let path = path.rsplit(" -> ").next().unwrap_or(path);
    path.strip_prefix('"').and_then(|path| path.strip_suffix('"')).unwrap_or(path).to_owned()
}

/// Returns the beginning of a commit hash.
pub(crate) fn short(sha: &str) -> &str {
    sha.get(..SHOWN_SHA).unwrap_or(sha)
}

/// Formats a commit in one line.
pub(crate) fn describe(commit: &Commit) -> String {
    format!("{} {}", short(&commit.sha), commit.subject).trim_end().to_owned()
}

/// Formats a review request in one line.
pub(crate) fn describe_request(request: &ReviewRequest) -> String {
    let from = request.head.as_ref().map_or_else(String::new, |head| format!(" from `{head}`"));
    let to = request.base.as_ref().map_or_else(String::new, |base| format!(" to `{base}`"));
    let draft = if request.draft == Some(true) { ", a draft" } else { "" };
    format!("#{}{from}{to}, {}{draft}", request.number, if request.open { "open" } else { "not open" })
}

/// Describes the changes, one per line.
pub(crate) fn summary(change: &RepositoryChange) -> Vec<String> {
    let head = match (&change.after.branch, &change.after.head) {
        (Some(branch), _) => format!("checked out: branch `{branch}`"),
        (None, Some(head)) => format!("checked out: commit {}", short(head)),
        (None, None) => "checked out: nothing".to_owned(),
    };
    let mut lines = vec![head];
    lines.extend(new_branches(change).iter().map(|branch| format!("new branch: `{branch}`")));
    lines.extend(new_commits(change).into_iter().map(|commit| {
        let place = if commit.on_head { "" } else { ", not on HEAD" };
        format!("new commit: {}{place}", describe(commit))
    }));
    let (pushes, requests) = (pushes(change), new_requests(change));
    lines.extend(pushes.new.iter().map(|push| format!("pushed: {}", push.describe())));
    lines.extend(requests.new.iter().map(|request| format!("new review request: {}", describe_request(request))));
    let mut unknown = [pushes.unknown, requests.unknown].concat();
    unknown.sort();
    unknown.dedup();
    lines.extend(unknown.into_iter().map(|reason| format!("unknown: {reason}")));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::{EvidenceBuilder, commit};

    fn change_of(tell: impl FnOnce(&mut RepositoryChange)) -> RepositoryChange {
        *EvidenceBuilder::new().repository(tell).evidence().collected.repository_change.unwrap()
    }

    #[test]
    fn a_branch_is_new_only_if_it_did_not_exist_anywhere_before() {
        let change = change_of(|change| {
            change
                .before
                .remotes
                .get_mut("origin")
                .unwrap()
                .branches
                .as_mut()
                .unwrap()
                .insert("dev".into(), "d".into());
            change.after.branches.extend([("dev".into(), "d".into()), ("feat/x".into(), "a1".into())]);
            change.after.branch = Some("orphan".into());
        });
        assert_eq!(new_branches(&change), ["feat/x", "orphan"]);
        let unborn = change_of(|change| {
            change.before = model::RepositoryState { branch: Some("main".into()), ..Default::default() };
        });
        assert_eq!(new_branches(&unborn), Vec::<&str>::new());
    }

    #[test]
    fn commits_from_a_remote_are_not_new() {
        let change =
            change_of(|change| change.new_commits = vec![commit("b2", "mine", true), commit("a1", "theirs", true)]);
        assert_eq!(new_commits(&change).iter().map(|commit| commit.sha.as_str()).collect::<Vec<_>>(), ["b2"]);
    }

    #[test]
    fn an_unreachable_remote_is_unknown_and_a_push_to_an_added_one_is_in_the_reflog() {
        let change = change_of(|change| {
            let mut other = change.after.remotes["origin"].clone();
            change.before.pushes.insert("old/main".into(), "a1".into());
            let pushed = [("fork/main", "a1"), ("old/main", "a1")];
            change.after.pushes = pushed.map(|(name, head)| (name.to_owned(), head.to_owned())).into();
            other.branches = None;
            other.unknown = vec!["connection refused".into()];
            change.before.remotes.insert("old".into(), other.clone());
            change.after.remotes.insert("origin".into(), other);
        });
        let seen = pushes(&change);
        assert_eq!(seen.new.iter().map(Push::describe).collect::<Vec<_>>(), ["`fork/main` at a1, as git logged it"]);
        assert_eq!(
            seen.unknown,
            ["`origin`: connection refused", "the remote `old` was removed, so it could not be checked"]
        );
    }

    #[test]
    fn a_commit_by_the_agent_on_a_remote_counts_as_pushed() {
        let change = change_of(|change| {
            change.before.remotes.get_mut("origin").unwrap().branches = None;
            change.new_commits = vec![commit("b2", "x", true)];
            let after = change.after.remotes.get_mut("origin").unwrap().branches.as_mut().unwrap();
            after.insert("feat/x".into(), "b2".into());
        });
        let seen = pushes(&change);
        assert_eq!(seen.new.iter().map(Push::describe).collect::<Vec<_>>(), ["`origin/feat/x` at b2"]);
        assert_eq!(seen.unknown, ["the branches of `origin` could not be fetched"]);
    }
}
