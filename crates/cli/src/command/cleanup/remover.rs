//! Removes single items from remotes: through `gh` and `glab` if the remote is on GitHub or GitLab, otherwise through
//! `git`.
//!
//! URLs and names of branches come from agents, so they are never passed to a shell or parsed as options, and git may
//! not use any transport that runs programs. Before a branch is deleted, its remote is queried: the default branch is
//! kept, and so is a branch that has changed since.

use std::path::Path;
use std::time::Duration;

use model::{Forge, ForgeKind, SideEffects};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use sandbox::Host;
use sandbox::supervise::{self, Output};
use serde_json::Value;

use crate::error::CliError;
use crate::machine;

/// Time limit of one program.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Maximum size of an answer, in bytes.
const MAX_OUTPUT: usize = 8 << 20;

/// Transports that git may use to reach a remote.
const TRANSPORTS: &str = "file:git:http:https:ssh";

/// Returns the name that a forge uses for a review request.
pub(super) fn review_request(remote: &str, number: u64) -> String {
    match Forge::of(remote).map(|forge| forge.kind) {
        Some(ForgeKind::GitLab) => format!("merge request !{number}"),
        Some(ForgeKind::GitHub) => format!("pull request #{number}"),
        None => format!("review request {number}"),
    }
}

/// Result of removing one item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Removal {
    /// It was removed.
    Removed,
    /// It had already been removed. Contains its state.
    Gone(String),
    /// It was kept. Contains the reason.
    Left(String),
    /// It could not be removed. Contains the reason.
    Failed(String),
}

/// Callback that receives each item with its result.
type OnRemoval<'a> = &'a mut dyn FnMut(&str, &Removal);

/// Output of a program, or the reason why it failed.
type ProgramResult = Result<String, String>;

/// Returns `true` if a review request in the reported state can still be merged. A request without a state was in the
/// list of open ones.
pub(crate) fn is_open(state: Option<&str>) -> bool {
    state.is_none_or(|state| ["open", "opened"].contains(&state.to_ascii_lowercase().as_str()))
}

/// Removes items from remotes.
pub(super) struct Remover {
    host: Host,
    runtime: tokio::runtime::Runtime,
    /// Scratch repository to push from.
    scratch: tempfile::TempDir,
}

/// The branches of a remote.
struct Branches {
    /// The default branch, if the remote reports it.
    default: Option<String>,
    /// The commit of the default branch, if the remote reports it without the name.
    head: Option<String>,
}

impl Remover {
    /// Creates a remover.
    pub(super) fn new() -> Result<Self, CliError> {
        let failed = |error: std::io::Error| CliError::environment(format!("cannot start the cleanup: {error}"));
        let mut host = machine::host()?;
        // These programs belong to the user and run with the user's ids.
        host.supervisor.floor = true;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
        Ok(Self { host, runtime, scratch: tempfile::tempdir().map_err(failed)? })
    }

    /// Removes the side effects on one remote: review requests first, then branches.
    pub(super) fn remove(&self, left: &SideEffects, on_removal: OnRemoval<'_>) {
        match Forge::of(&left.remote) {
            _ if left.added => {
                let why = "the trial added this remote itself, so its previous state is unknown";
                leave_all(left, &Removal::Left(why.to_owned()), on_removal);
            }
            Some(forge) => self.at_service(&forge, left, on_removal),
            None => self.by_git(left, on_removal),
        }
    }

    fn at_service(&self, forge: &Forge, left: &SideEffects, on_removal: OnRemoval<'_>) {
        for number in &left.review_requests {
            on_removal(&review_request(&left.remote, *number), &self.close(forge, *number));
        }
        if left.branches.is_empty() {
            return;
        }
        let branches = self.branches(forge);
        for branch in &left.branches {
            let done = match &branches {
                Ok(known) => self.delete(forge, known, branch, left.commits.get(branch)),
                Err(reason) => Removal::Failed(format!("the default branch is unknown: {reason}")),
            };
            on_removal(&format!("branch {branch}"), &done);
        }
    }

    /// Closes a review request.
    fn close(&self, forge: &Forge, number: u64) -> Removal {
        let (number, project) = (number.to_string(), forge.project.as_str());
        let (what, result) = match forge.kind {
            ForgeKind::GitHub => {
                ("pr", self.ask(forge, &["pr", "view", &number, "--repo", project, "--json", "state"]))
            }
            ForgeKind::GitLab => {
                ("mr", self.ask(forge, &["mr", "view", &number, "--repo", project, "--output", "json"]))
            }
        };
        match result {
            Ok(text) => {
                // A request is closed only if it is known to be open.
                let value: Value = serde_json::from_str(&text).unwrap_or_default();
                let Some(state) = value.get("state").and_then(Value::as_str) else {
                    return Removal::Failed(missing_answer(forge, "the state of the review request"));
                };
                if !is_open(Some(state)) {
                    return Removal::Gone(state.to_lowercase());
                }
            }
            Err(reason) if is_missing(&reason) => {
                return Removal::Gone("no review request has this number".to_owned());
            }
            Err(reason) => return Removal::Failed(reason),
        }
        match self.ask(forge, &[what, "close", &number, "--repo", project]) {
            Ok(_) => Removal::Removed,
            Err(reason) if reason.contains("already closed") => Removal::Gone("closed".to_owned()),
            Err(reason) => Removal::Failed(reason),
        }
    }

    fn branches(&self, forge: &Forge) -> Result<Branches, String> {
        let text = self.ask(forge, &["api", &api_project(forge)])?;
        let value: Value = serde_json::from_str(&text).unwrap_or_default();
        let default = value.get("default_branch").and_then(Value::as_str);
        let default = default.ok_or_else(|| missing_answer(forge, "the default branch"))?;
        Ok(Branches { default: Some(default.to_owned()), head: None })
    }

    /// Deletes a branch, unless it is the default branch or has changed since.
    fn delete(&self, forge: &Forge, known: &Branches, branch: &str, commit: Option<&String>) -> Removal {
        if let Some(why) = known.protects(branch) {
            return Removal::Left(why);
        }
        let project = api_project(forge);
        let name = match forge.kind {
            ForgeKind::GitHub => utf8_percent_encode(branch, IN_PATH),
            ForgeKind::GitLab => utf8_percent_encode(branch, IN_PART),
        };
        let (lookup, head, delete) = match forge.kind {
            ForgeKind::GitHub => {
                (format!("{project}/git/ref/heads/{name}"), "/object/sha", format!("{project}/git/refs/heads/{name}"))
            }
            ForgeKind::GitLab => {
                let path = format!("{project}/repository/branches/{name}");
                (path.clone(), "/commit/id", path)
            }
        };
        match self.ask(forge, &["api", &lookup]) {
            Ok(text) => {
                let value: Value = serde_json::from_str(&text).unwrap_or_default();
                let Some(head) = value.pointer(head).and_then(Value::as_str).filter(|head| is_commit(head)) else {
                    return Removal::Failed(missing_answer(forge, "the branch"));
                };
                if let Some(done) = moved(commit, Some(head)) {
                    return done;
                }
            }
            Err(reason) if is_missing(&reason) => return Removal::Gone(String::new()),
            Err(reason) => return Removal::Failed(reason),
        }
        match self.ask(forge, &["api", "-X", "DELETE", &delete]) {
            Ok(_) => Removal::Removed,
            Err(reason) if is_missing(&reason) => Removal::Gone(String::new()),
            Err(reason) => Removal::Failed(reason),
        }
    }

    fn ask(&self, forge: &Forge, args: &[&str]) -> ProgramResult {
        let program = forge.kind.program();
        let env = [("GH_PROMPT_DISABLED", "1"), ("NO_PROMPT", "1"), ("GITLAB_HOST", forge.host.as_str())];
        self.run(program, args, &env, Path::new("/"))
    }

    fn by_git(&self, left: &SideEffects, on_removal: OnRemoval<'_>) {
        if let Some(done) = unreachable(&left.remote) {
            return leave_all(left, &done, on_removal);
        }
        for number in &left.review_requests {
            let why = "this address is not on a service with review requests";
            on_removal(&review_request(&left.remote, *number), &Removal::Left(why.to_owned()));
        }
        let (known, heads) = match self.list_branches(&left.remote) {
            Ok(result) => result,
            Err(reason) => {
                let only_branches = SideEffects { review_requests: Vec::new(), ..left.clone() };
                return leave_all(&only_branches, &Removal::Failed(reason), on_removal);
            }
        };
        for branch in &left.branches {
            let head = heads.iter().find(|(name, _)| name == branch).map(|(_, commit)| commit.as_str());
            let done = match (known.protects(branch), head) {
                (_, None) => Removal::Gone(String::new()),
                (Some(why), _) => Removal::Left(why),
                (None, Some(head)) if known.head.as_deref() == Some(head) => {
                    Removal::Left("it may be the default branch, which the remote does not report".to_owned())
                }
                (None, Some(head)) => match moved(left.commits.get(branch), Some(head)) {
                    Some(done) => done,
                    None => self.push(&left.remote, branch, head),
                },
            };
            on_removal(&format!("branch {branch}"), &done);
        }
    }

    /// Returns the default branch of a remote, and its branches with their commits.
    fn list_branches(&self, remote: &str) -> Result<(Branches, Vec<(String, String)>), String> {
        let output = self.git(&["ls-remote", "--symref", "--", remote, "HEAD", "refs/heads/*"])?;
        let mut known = Branches { default: None, head: None };
        let mut heads = Vec::new();
        for (first, name) in output.lines().filter_map(|line| line.split_once('\t')) {
            match (first.strip_prefix("ref: refs/heads/"), name.strip_prefix("refs/heads/")) {
                (Some(branch), _) if name == "HEAD" => known.default = Some(branch.to_owned()),
                (None, Some(branch)) if is_commit(first) => heads.push((branch.to_owned(), first.to_owned())),
                (None, None) if name == "HEAD" => known.head = Some(first.to_owned()),
                _ => {}
            }
        }
        if known.default.is_some() {
            known.head = None;
        }
        Ok((known, heads))
    }

    /// Deletes a branch if it still points to that commit when the remote processes the request.
    fn push(&self, remote: &str, branch: &str, head: &str) -> Removal {
        let name = format!("refs/heads/{branch}");
        let lease = format!("--force-with-lease={name}:{head}");
        match self.git(&["push", "--quiet", "--no-verify", &lease, "--delete", "--", remote, &name]) {
            Ok(_) => Removal::Removed,
            Err(reason) if reason.contains("remote ref does not exist") => Removal::Gone(String::new()),
            Err(reason) => Removal::Failed(reason),
        }
    }

    fn git(&self, args: &[&str]) -> ProgramResult {
        let env = [("GIT_ALLOW_PROTOCOL", TRANSPORTS), ("GIT_TERMINAL_PROMPT", "0"), ("LC_ALL", "C")];
        let scratch = self.scratch.path();
        let repository = scratch.join("r.git");
        if !repository.exists() {
            self.run("git", &["init", "--quiet", "--bare", "r.git"], &env, scratch)?;
        }
        self.run("git", args, &env, &repository)
    }

    fn run(&self, program: &str, args: &[&str], env: &[(&str, &str)], directory: &Path) -> ProgramResult {
        let mut command = self.host.supervisor.command(program, args);
        // Variables that point git to another repository must not apply to this one.
        let inherited = self.host.env.iter().filter(|(name, _)| !["GIT_DIR", "GIT_WORK_TREE"].contains(&name.as_str()));
        command.envs(inherited).envs(env.iter().copied()).current_dir(directory);
        // The process's I/O must be set up inside the runtime.
        let output = self.runtime.block_on(async { supervise::run(command, TIMEOUT, MAX_OUTPUT).await });
        answer(program, output)
    }
}

fn answer(program: &str, output: std::io::Result<Output>) -> ProgramResult {
    let output = output.map_err(|error| format!("`{program}`: {error}"))?;
    if output.timed_out {
        return Err(format!("`{program}` had not answered after {} s", TIMEOUT.as_secs()));
    }
    if output.status.success() {
        return Ok(output.stdout.text());
    }
    if output.status.code() == Some(127) {
        return Err(format!("`{program}` is not installed"));
    }
    let message = output.stderr.text();
    // The first lines are kept, because the reason comes before `error: failed to push some refs`.
    let lines: Vec<&str> = message.lines().map(str::trim).filter(|line| !line.is_empty()).take(3).collect();
    Err(format!("`{program}` failed: {}", lines.join("; ")))
}

impl Branches {
    /// Returns the reason why a branch must not be deleted, if there is one.
    fn protects(&self, branch: &str) -> Option<String> {
        let is_default = match &self.default {
            Some(default) => default == branch,
            // If the default branch is unknown, these names are the most likely ones.
            None => ["main", "master", "trunk"].contains(&branch),
        };
        is_default.then(|| "it is the default branch".to_owned())
    }
}

/// Returns the message if the response of a forge lacks `what`: nothing is removed on a guess.
fn missing_answer(forge: &Forge, what: &str) -> String {
    format!("`{}` did not report {what}, so nothing was removed", forge.kind.program())
}

/// Returns `true` if the text is a commit id.
fn is_commit(text: &str) -> bool {
    text.len() >= 40 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Returns the result for a branch that has changed since it was recorded.
fn moved(recorded: Option<&String>, head: Option<&str>) -> Option<Removal> {
    let (recorded, head) = (recorded?, head?);
    let short = |commit: &str| commit.get(..9).unwrap_or(commit).to_owned();
    let why = || format!("it has changed since, from {} to {}", short(recorded), short(head));
    (recorded != head).then(|| Removal::Left(why()))
}

/// Returns the result for items at a URL that must not be accessed.
fn unreachable(remote: &str) -> Option<Removal> {
    let is_address = remote.contains("://") || is_scp(remote);
    if remote.starts_with('-') || remote.contains("::") {
        return Some(Removal::Left("git is not allowed to use this address".to_owned()));
    }
    let path = remote.strip_prefix("file://").or((!is_address).then_some(remote))?;
    if !Path::new(path).is_absolute() {
        return Some(Removal::Left("its address is relative to a sandbox that no longer exists".to_owned()));
    }
    (!Path::new(path).exists()).then(|| Removal::Gone("the repository does not exist".to_owned()))
}

/// Returns `true` for `user@host:path`.
fn is_scp(remote: &str) -> bool {
    remote.split_once(':').is_some_and(|(host, _)| !host.is_empty() && !host.contains('/'))
}

fn leave_all(left: &SideEffects, done: &Removal, on_removal: OnRemoval<'_>) {
    left.review_requests.iter().for_each(|number| on_removal(&review_request(&left.remote, *number), done));
    left.branches.iter().for_each(|branch| on_removal(&format!("branch {branch}"), done));
}

/// Returns `true` if a forge reports that the item does not exist.
fn is_missing(reason: &str) -> bool {
    let reason = reason.to_ascii_lowercase();
    ["404", "not found", "does not exist", "could not resolve to a"].iter().any(|sign| reason.contains(sign))
}

fn api_project(forge: &Forge) -> String {
    match forge.kind {
        ForgeKind::GitHub => format!("repos/{}", forge.project),
        ForgeKind::GitLab => format!("projects/{}", utf8_percent_encode(&forge.project, IN_PART)),
    }
}

/// The characters that are escaped in a path segment.
const IN_PART: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// The characters that are escaped in a path with several segments.
const IN_PATH: &AsciiSet = &IN_PART.remove(b'/');

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_run_programs_or_do_not_resolve_are_not_used() {
        for remote in ["ext::sh -c x", "-oProxyCommand=x", "../r.git", "r.git", "file://r.git"] {
            assert!(matches!(unreachable(remote), Some(Removal::Left(_))), "{remote}");
        }
        assert!(matches!(unreachable("/nowhere/r.git"), Some(Removal::Gone(_))));
        for remote in ["git@host:a/b.git", "ssh://git@host/a", "https://host/a", "/"] {
            assert_eq!(unreachable(remote), None, "{remote}");
        }
    }

    #[test]
    fn the_default_branch_and_one_that_moved_are_never_deleted() {
        let known = Branches { default: Some("trunk".into()), head: None };
        assert!(known.protects("trunk").is_some() && known.protects("main").is_none());
        assert!(Branches { default: None, head: None }.protects("main").is_some());
        let recorded = "a".repeat(40);
        assert_eq!(moved(Some(&recorded), Some(&recorded)), None);
        assert!(matches!(moved(Some(&recorded), Some("b")), Some(Removal::Left(_))));
        assert_eq!(moved(None, Some("b")), None);
    }

    #[test]
    fn names_are_escaped_to_a_single_path_segment() {
        assert_eq!(utf8_percent_encode("a/b#?", IN_PATH).to_string(), "a/b%23%3F");
        assert_eq!(utf8_percent_encode("a/b", IN_PART).to_string(), "a%2Fb");
    }
}
