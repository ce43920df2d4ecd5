//! State of a sandbox's repository before and after the agent's work: its branches, its index, its remotes and their
//! review requests. Data that affects a verdict is never truncated, and facts that could not be determined are marked
//! as unknown.
//!
//! Remotes are those that were configured before the agent started, with their addresses at that time: an agent must
//! not choose the host to which the user's credentials are sent.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use futures_util::future::join_all;
use model::{Commit, RemoteState, RepositoryChange, RepositoryState, is_folder};
use sha2::{Digest, Sha256};

use super::inspection::{Inspection, Unreadable, View};
use super::remote::RemoteCopy;
use super::review_requests::Reviews;

/// Maximum number of new commits that are reported.
const MOST_NEW: &str = "1000";
/// Timeout for one request to a remote.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Separator between the parts of the output of [`LOOK`]. No line of git's output begins with it.
const PART: char = '\u{1e}';

/// Script that prints the local state of a repository. A single process is used, because starting one takes longer than
/// its work.
const LOOK: &str = r#"
part() { printf '\036%s\n' "$1"; }
g rev-parse --git-dir > /dev/null || exit 1
head=$(g rev-parse -q --verify 'HEAD^{commit}')
[ -n "$head" ] || ! g rev-parse -q --verify HEAD > /dev/null || exit 1
part head; echo "$head"
part branch; g symbolic-ref -q --short HEAD
part refs; g for-each-ref --format='%(refname) %(objectname)'
part status; status || exit 1
part index; g ls-files -s | g hash-object --stdin
part count; g rev-list --count --all ${head:+HEAD}
part log; g log --format='%H %s' --max-count=50 --all ${head:+HEAD} --
part mine; [ -z "$head" ] || g rev-list --max-count=1000 HEAD --
part remotes
g remote | while read -r name; do printf '%s\t%s\n' "$name" "$(g remote get-url "$name")"; done
:
"#;

/// Script that lists the commits that are reachable now but from none of the arguments. `--ignore-missing` is needed
/// because an agent may have deleted old commits, and git otherwise refuses to exclude missing ones.
const NEW: &str = r#"
head=$(g rev-parse -q --verify 'HEAD^{commit}')
g log --ignore-missing --format='%H %s' --max-count="$1" --all ${head:+HEAD} --not $2 --
"#;

/// Script that prints those arguments that are commits in this repository.
const HELD: &str = r#"
for commit; do g cat-file -e "$commit^{commit}" 2> /dev/null && echo "$commit"; done
:
"#;

/// State of a repository at one moment, with the commits of its references.
#[derive(Debug, Clone)]
pub(super) struct RepositorySnapshot {
    pub(super) state: RepositoryState,
    /// Commits of all references and of HEAD.
    tips: BTreeSet<String>,
    /// Latest commits reachable from HEAD.
    mine: BTreeSet<String>,
    /// Names and addresses of remotes, including credentials.
    remotes: Vec<(String, String)>,
}

impl RepositorySnapshot {
    /// Returns the state without the results from its remotes, and with another `git status`.
    fn with_status(&self, status: Vec<String>) -> Self {
        let mut snapshot = self.clone();
        snapshot.state.remotes.clear();
        snapshot.state.status = status;
        snapshot
    }

    /// Returns the state of a repository that can no longer be read; only the remotes it had are kept.
    fn lost(&self, reason: &str) -> Self {
        let state = RepositoryState { lost: Some(reason.to_owned()), ..RepositoryState::default() };
        Self { state, tips: BTreeSet::new(), mine: BTreeSet::new(), remotes: self.remotes.clone() }
    }
}

/// Part of a repository's state that is certainly unchanged.
pub(super) enum Unchanged {
    /// Nothing is known to be unchanged.
    Nothing,
    /// Everything except files is unchanged; with the current `git status`, if known.
    Repository(Option<Vec<String>>),
    /// The repository no longer exists.
    Gone,
}

/// Records a repository and its remotes.
pub(super) struct Watch<'a> {
    pub(super) git: Inspection<'a>,
    pub(super) reviews: Reviews<'a>,
    /// The trial's own copy of the source repository.
    pub(super) copy: Option<&'a RemoteCopy>,
}

/// Moment at which remotes are queried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Moment {
    /// Before any process can have used the trial's own remote.
    Before,
    /// After setup commands, or after the agent has acted.
    After,
}

impl Watch<'_> {
    /// Reads the current state of the repository at `work`, without querying its remotes.
    pub(super) async fn snapshot_of(&self, work: &Path) -> Result<RepositorySnapshot, Unreadable> {
        snapshot_of(&self.git.view(work).await?).await
    }

    /// Queries all remotes of `repository_snapshot` concurrently.
    pub(super) async fn ask_remotes(&self, work: &Path, repository_snapshot: &mut RepositorySnapshot, moment: Moment) {
        let copied = |url: &str| self.copy.filter(|copy| copy.is_at(url));
        let view = match repository_snapshot.remotes.iter().any(|(_, url)| copied(url).is_none()) {
            true => self.git.empty_view(work).await,
            // The view is not used.
            false => Err(Unreadable::Machine(String::new())),
        };
        let view = &view;
        let asking = repository_snapshot.remotes.iter().map(async |(name, url)| match copied(url) {
            Some(copy) if moment == Moment::Before => copy.before(without_sign_in(url)),
            Some(copy) => copy.now(without_sign_in(url), &self.git, work).await,
            None => self.remote(view, name, url).await,
        });
        let states = join_all(asking).await;
        let names = repository_snapshot.remotes.iter().map(|(name, _)| name.clone());
        repository_snapshot.state.remotes = names.zip(states).collect();
    }

    /// Returns the changes since `before`. `left` is the part that is unchanged, for which git is run rarely or not at
    /// all, because starting a process takes longer than everything else here.
    ///
    /// # Errors
    /// Returns an error with a reason if this machine prevents reading the repository.
    pub(super) async fn change(
        &self,
        work: &Path,
        before: &RepositorySnapshot,
        left: &Unchanged,
    ) -> Result<RepositoryChange, Unreadable> {
        let after = match left {
            Unchanged::Repository(Some(status)) => Ok(before.with_status(status.clone())),
            Unchanged::Repository(None) => match self.git.view(work).await {
                Ok(view) => view.status().await.map(|status| before.with_status(status)),
                Err(unreadable) => Err(unreadable),
            },
            Unchanged::Nothing => self.snapshot_of(work).await,
            Unchanged::Gone => Err(Unreadable::Left("the agent removed it".to_owned())),
        };
        let mut after = match after {
            Ok(after) => after,
            Err(Unreadable::Left(reason)) => before.lost(&reason),
            Err(unreadable) => return Err(unreadable),
        };
        // The agent's changes to the list of remotes must not decide which hosts this program queries.
        after.remotes.clone_from(&before.remotes);
        self.ask_remotes(work, &mut after, Moment::After).await;
        let is_moved = !after.tips.is_subset(&before.tips);
        let view = match is_moved || after.state.remotes != before.state.remotes {
            true => self.git.view(work).await.ok(),
            false => None,
        };
        let Some(view) = view.filter(|_| after.state.lost.is_none()) else {
            return Ok(RepositoryChange { before: before.state.clone(), after: after.state, new_commits: Vec::new() });
        };
        leave_out_others(&view, &before.state, &mut after.state).await;
        let mut new_commits = Vec::new();
        if is_moved {
            let old: Vec<&str> = before.tips.iter().map(String::as_str).collect();
            let output = view.script(NEW, &[MOST_NEW, &old.join(" ")]).await.unwrap_or_default();
            new_commits.extend(output.iter().filter(|line| !line.is_empty()).map(|line| commit(line, &after.mine)));
        }
        Ok(RepositoryChange { before: before.state.clone(), after: after.state, new_commits })
    }

    async fn remote(&self, view: &Result<View<'_>, Unreadable>, name: &str, url: &str) -> RemoteState {
        let mut remote = RemoteState { url: without_sign_in(url), ..RemoteState::default() };
        let deadline = TIMEOUT.min(self.git.deadline.left());
        let heads = async {
            match view {
                Ok(view) => view.ask_within(&["ls-remote", "--heads", "--", url], deadline).await,
                Err(Unreadable::Left(reason) | Unreadable::Machine(reason) | Unreadable::Late(reason)) => {
                    Err(reason.clone())
                }
            }
        };
        let (heads, requests) = tokio::join!(heads, self.reviews.of(url, deadline));
        match heads {
            Ok(lines) => {
                let branch = |line: &String| {
                    let (commit, name) = line.split_once('\t')?;
                    Some((name.strip_prefix("refs/heads/")?.to_owned(), commit.to_owned()))
                };
                remote.branches = Some(lines.iter().filter_map(branch).collect());
            }
            Err(reason) => remote.unknown.push(format!("branches of `{name}`: {reason}")),
        }
        match requests {
            Some(Ok(requests)) => remote.review_requests = Some(requests),
            Some(Err(reason)) => remote.unknown.push(format!("review requests of `{name}`: {reason}")),
            // A folder cannot have review requests, so the list is known to be empty.
            None if is_folder(url) => remote.review_requests = Some(Vec::new()),
            None => {
                let reason = "only GitHub and GitLab are supported";
                remote.unknown.push(format!("review requests of `{name}`: {reason}"));
            }
        }
        remote
    }
}

/// Reads the state of a repository without querying a remote.
async fn snapshot_of(view: &View<'_>) -> Result<RepositorySnapshot, Unreadable> {
    let output = view.script(LOOK, &[]).await?;
    let mut parts: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut part = "";
    for line in &output {
        match line.strip_prefix(PART) {
            Some(name) => part = name,
            None if line.is_empty() => {}
            None => parts.entry(part).or_default().push(line),
        }
    }
    let lines = |part: &str| parts.get(part).map(Vec::as_slice).unwrap_or_default();
    let one = |part: &str| lines(part).first().map(|line| (*line).to_owned());
    let refs: Vec<(&str, &str)> = lines("refs").iter().filter_map(|line| line.split_once(' ')).collect();
    let branch =
        |(name, commit): &(&str, &str)| Some((name.strip_prefix("refs/heads/")?.to_owned(), (*commit).to_owned()));
    let mine: BTreeSet<String> = lines("mine").iter().map(|commit| (*commit).to_owned()).collect();
    let head = one("head");
    let state = RepositoryState {
        branch: one("branch"),
        branches: refs.iter().filter_map(branch).collect(),
        remotes: BTreeMap::new(),
        commit_count: one("count").and_then(|count| count.parse().ok()).unwrap_or_default(),
        recent_commits: lines("log").iter().map(|line| commit(line, &mine)).collect(),
        refs: Some(digest(lines("refs"))),
        index: one("index"),
        status: lines("status").iter().map(|line| (*line).to_owned()).collect(),
        head: head.clone(),
        ..RepositoryState::default()
    };
    let tips = refs.iter().map(|(_, commit)| (*commit).to_owned()).chain(head).collect();
    let remotes = lines("remotes").iter().filter_map(|line| line.split_once('\t'));
    let remotes = remotes.map(|(name, url)| (name.to_owned(), url.to_owned())).collect();
    Ok(RepositorySnapshot { state, tips, mine, remotes })
}

/// Restores the earlier state of remote branches that others changed meanwhile, for example another trial with the
/// same repository. A new commit counts as the agent's only if this repository contains it.
async fn leave_out_others(view: &View<'_>, before: &RepositoryState, after: &mut RepositoryState) {
    let was = |remote: &RemoteState| {
        let known = before.remotes.values().find(|known| known.url == remote.url);
        known.and_then(|known| known.branches.clone())
    };
    let mut moved = BTreeSet::new();
    // No other trial uses the trial's own copy.
    for remote in after.remotes.values().filter(|remote| !remote.is_isolated) {
        let Some(was) = was(remote) else { continue };
        let branches = remote.branches.iter().flatten();
        moved.extend(
            branches.filter(|(name, commit)| was.get(*name) != Some(*commit)).map(|(_, commit)| commit.clone()),
        );
    }
    if moved.is_empty() {
        return;
    }
    let asked: Vec<&str> = moved.iter().map(String::as_str).collect();
    let Ok(held) = view.script(HELD, &asked).await else { return };
    for remote in after.remotes.values_mut().filter(|remote| !remote.is_isolated) {
        let Some(was) = was(remote) else { continue };
        let is_other = |(name, commit): (&String, &String)| {
            let is_held = held.iter().any(|held| held == commit);
            (was.get(name) != Some(commit) && !is_held).then(|| name.clone())
        };
        remote.by_others = remote.branches.iter().flatten().filter_map(is_other).collect();
        let Some(branches) = &mut remote.branches else { continue };
        for name in &remote.by_others {
            match was.get(name) {
                Some(commit) => drop(branches.insert(name.clone(), commit.clone())),
                None => drop(branches.remove(name)),
            }
        }
    }
}

/// Returns the SHA-256 of some lines.
fn digest(lines: &[&str]) -> String {
    model::text::hex(&Sha256::digest(lines.join("\n")))
}

/// Parses a line of `git log --format='%H %s'`.
fn commit(line: &str, mine: &BTreeSet<String>) -> Commit {
    let (sha, subject) = line.split_once(' ').unwrap_or((line, ""));
    Commit { on_head: mine.contains(sha), sha: sha.to_owned(), subject: subject.to_owned() }
}

/// Returns an address without its credentials.
pub fn without_sign_in(url: &str) -> String {
    match url.split_once("://") {
        Some((scheme, rest)) => {
            let end = rest.find('/').unwrap_or(rest.len());
            let (user, host) = rest[..end].rsplit_once('@').unwrap_or(("", &rest[..end]));
            // For ssh, the user name is a part of the address; a password is not.
            let user = user.split(':').next().filter(|user| scheme.ends_with("ssh") && !user.is_empty());
            let user = user.map_or_else(String::new, |user| format!("{user}@"));
            format!("{scheme}://{user}{host}{}", &rest[end..])
        }
        None => url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_removed_from_addresses() {
        for (url, expected) in [
            ("https://user:token@host/a/b@c", "https://host/a/b@c"),
            ("https://host/a", "https://host/a"),
            ("ssh://git:secret@host:22/a", "ssh://git@host:22/a"),
            ("git@host:a/b.git", "git@host:a/b.git"),
            ("/srv/a.git", "/srv/a.git"),
        ] {
            assert_eq!(without_sign_in(url), expected);
        }
    }
}
