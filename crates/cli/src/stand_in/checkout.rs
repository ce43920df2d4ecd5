//! The repository in which the agent starts a stand-in, and the trial's remote. Git runs here with the agent's rights
//! and settings.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use sandbox::remote::{Draft, Item};

use super::Failure;

/// Method of merging a review request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MergeMethod {
    /// With a merge commit.
    Merge,
    /// As one commit.
    Squash,
    /// By moving the target branch, if it has no commits of its own.
    Rebase,
}

/// The repository in the current directory, and the remote.
pub struct Checkout {
    remote: PathBuf,
}

impl Checkout {
    pub fn new(remote: PathBuf) -> Self {
        Self { remote }
    }

    /// Returns the checked-out branch.
    pub fn branch(&self) -> Option<String> {
        here(&["symbolic-ref", "-q", "--short", "HEAD"])
    }

    /// Returns the commit of a branch of the remote.
    pub fn pushed(&self, branch: &str) -> Option<String> {
        self.remote(&["rev-parse", "-q", "--verify", &format!("refs/heads/{branch}^{{commit}}")])
    }

    /// Returns the number of commits on `head` that are not on `base`, both branches of the remote.
    pub fn commits(&self, base: &str, head: &str) -> Option<u64> {
        self.remote(&["rev-list", "--count", &format!("refs/heads/{base}..refs/heads/{head}")])?.parse().ok()
    }

    /// Returns a title and a description for the commits of a branch: those of a single commit, or the branch name and
    /// a list of the commits.
    pub fn filled(&self, base: &str, head: &str) -> Option<(String, String)> {
        let range = format!("refs/heads/{base}..refs/heads/{head}");
        let subjects = self.remote(&["log", "--reverse", "--format=%s", &range])?;
        let subjects: Vec<&str> = subjects.lines().collect();
        match subjects.as_slice() {
            [] => None,
            [only] => {
                let body = self.remote(&["log", "--format=%b", &range]).unwrap_or_default();
                Some(((*only).to_owned(), body))
            }
            several => {
                let list: Vec<String> = several.iter().map(|subject| format!("- {subject}")).collect();
                Some((head.replace(['-', '_'], " "), list.join("\n")))
            }
        }
    }

    /// Merges a review request on the remote.
    pub fn merge(&self, item: &Item, method: MergeMethod, subject: &str) -> Result<(), Failure> {
        let Draft { head, base, title, .. } = &item.draft;
        let (Some(head), Some(base)) = (head, base) else { return Err(Failure::new("its branches are unknown")) };
        let (Some(theirs), Some(ours)) = (self.pushed(head), self.pushed(base)) else {
            return Err(Failure::Refused(format!("`{head}` or `{base}` is not on the remote")));
        };
        let conflict = || {
            let reason = "is not mergeable: the merge commit cannot be cleanly created.";
            Failure::Refused(format!("Pull request #{} ({title}) {reason}", item.number))
        };
        let target = format!("refs/heads/{base}");
        let merged = if method == MergeMethod::Rebase {
            self.remote(&["merge-base", "--is-ancestor", &ours, &theirs]).ok_or_else(conflict)?;
            theirs
        } else {
            let tree = self.remote(&["merge-tree", "--write-tree", &ours, &theirs]).ok_or_else(conflict)?;
            let mut arguments = vec!["commit-tree", &tree, "-p", &ours];
            if method == MergeMethod::Merge {
                arguments.extend(["-p", &theirs]);
            }
            arguments.extend(["-m", subject]);
            self.remote(&arguments).ok_or_else(conflict)?
        };
        self.remote(&["update-ref", &target, &merged, &ours]).map(drop).ok_or_else(conflict)
    }

    /// Deletes a branch of the remote.
    pub fn delete(&self, branch: &str) {
        self.remote(&["update-ref", "-d", &format!("refs/heads/{branch}")]);
    }

    /// Returns the output of git in the remote; `None` if it fails.
    fn remote(&self, arguments: &[&str]) -> Option<String> {
        let mut command = Command::new("git");
        command.arg("--git-dir").arg(&self.remote);
        for name in ["AUTHOR", "COMMITTER"] {
            command.env(format!("GIT_{name}_NAME"), "agent").env(format!("GIT_{name}_EMAIL"), "agent@example.com");
        }
        output(command.args(arguments))
    }
}

/// Returns the output of git in the current directory; `None` if it fails.
fn here(arguments: &[&str]) -> Option<String> {
    output(Command::new("git").args(arguments))
}

fn output(command: &mut Command) -> Option<String> {
    let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).trim_end().to_owned();
    output.status.success().then_some(text)
}
