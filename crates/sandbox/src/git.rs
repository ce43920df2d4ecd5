//! Git repositories of fixtures. The same fixture produces the same commit on every machine.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use model::Excerpt;
use tokio::process::Command;

use super::SandboxError;
use crate::supervise::{Captured, Supervisor, run};

/// Maximum size of git output that is kept, in bytes.
const MAX_OUTPUT: usize = 1 << 20;

/// Configuration of every fixture's repository: a commit author, no automatic maintenance, and change detection by size
/// and time only, because inode numbers differ in a copy.
const CONFIG: &str = "\
[user]
\tname = trialrun
\temail = trialrun@example.com
[commit]
\tgpgsign = false
[gc]
\tauto = 0
[maintenance]
\tauto = false
[core]
\ttrustctime = false
\tcheckStat = minimal
";

/// Defines `g`, which runs git without the repository's own hooks. If git fails, the name of the failed command is
/// printed to stdout.
const PRELUDE: &str = r#"
set -e
g() {
    git -c core.hooksPath=/dev/null -c core.fsmonitor=false -c advice.addIgnoredFile=false -c core.quotePath=false "$@" || {
        code=$?
        echo "$1"
        exit $code
    }
}
"#;

/// Arguments: configuration, line for `info/exclude`, message, branch.
const COMMIT: &str = r#"
g init -q -b main --object-format=sha1 --template=
printf '%s' "$1" >> .git/config
if [ -n "$2" ]; then mkdir -p .git/info; printf '%s\n' "$2" >> .git/info/exclude; fi
g add -A -- .
g commit -q --no-verify --allow-empty -m "$3"
if [ -n "$4" ]; then g checkout -q -B "$4"; fi
"#;

/// Arguments: configuration, line for `info/exclude`, branch.
const ADOPT: &str = r#"
printf '%s' "$1" >> .git/config
if [ -n "$2" ]; then mkdir -p .git/info; printf '%s\n' "$2" >> .git/info/exclude; fi
if [ -n "$3" ]; then g checkout -q -B "$3"; fi
"#;

/// Arguments: the paths to add, taken literally.
const STAGE: &str = r#"
export GIT_LITERAL_PATHSPECS=1
g add -- "$@"
"#;

/// Arguments: address, configuration to add. Prints the folder of git's programs, the default branch (which may be
/// empty), and the branches with their commits.
const BARE: &str = r#"
set -e
git clone -q --bare --no-hardlinks --template= -- "$1" .
git config --remove-section remote.origin
printf '%s' "$2" >> config
git pack-refs --all
git --exec-path
git symbolic-ref -q --short HEAD || echo
git for-each-ref --format='%(objectname) %(refname:strip=2)' refs/heads
"#;

/// Configuration of a bare copy of the source repository, so that nothing runs in the background.
const CONFIG_OF_BARE: &str = "\
[gc]
\tauto = 0
[maintenance]
\tauto = false
[receive]
\tautogc = false
";

/// Arguments: address, bare copy of it. The clone looks as if it came from the address, even in its logs. The user's
/// settings apply only to the checkout, which may need filters.
const FROM_COPY: &str = r#"
set -e
GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1 \
    git -c "url.$2.insteadOf=$1" clone -q --no-hardlinks --no-checkout -- "$1" .
if git rev-parse -q --verify HEAD > /dev/null; then git read-tree --reset -u HEAD; fi
"#;

/// Argument: `pack` to pack the repository, because few files copy faster than many, or `keep`.
const SETTLE: &str = r#"
if [ "$1" = pack ]; then
    g repack -adqn
    g pack-refs --all
    rmdir .git/objects/?? 2> /dev/null || :
fi
git -c core.fsmonitor=false update-index -q --refresh > /dev/null 2>&1 || :
g status --porcelain --ignore-submodules=dirty
"#;

/// Runs git for fixtures, with a fixed author, fixed dates, and only the repository's own settings.
pub(super) struct Git<'a> {
    pub(super) supervisor: &'a Supervisor,
    /// Environment of the sandbox.
    pub(super) env: BTreeMap<String, String>,
    pub(super) timeout: Duration,
    /// Location of the fixture in the user's file.
    pub(super) source: Option<&'a Excerpt>,
}

impl Git<'_> {
    /// Turns `work` into a repository and commits everything in it. With `nothing`, the commit is empty.
    pub(super) async fn commit(
        &self,
        work: &Path,
        nothing: bool,
        exclude: Option<&str>,
        branch: Option<&str>,
    ) -> Result<(), SandboxError> {
        let exclude = exclude.map(pattern).unwrap_or_default();
        self.script(work, COMMIT, &commit_arguments(nothing, &exclude, branch)).await.map(drop)
    }

    /// Like [`Git::commit`] and [`Git::settle`], in one process, because starting one takes longer than its work. The
    /// files must already have their final times.
    pub(super) async fn commit_and_settle(
        &self,
        work: &Path,
        nothing: bool,
        exclude: Option<&str>,
        branch: Option<&str>,
        pack: bool,
    ) -> Result<Vec<String>, SandboxError> {
        let exclude = exclude.map(pattern).unwrap_or_default();
        let script = format!("{COMMIT}set -- {}\n{SETTLE}", pack_argument(pack));
        Ok(self.script(work, &script, &commit_arguments(nothing, &exclude, branch)).await?.lines())
    }

    /// Clones `source` into the empty directory `work`, with the user's environment `env`.
    pub(super) async fn clone(
        &self,
        source: &str,
        work: &Path,
        env: &BTreeMap<String, String>,
    ) -> Result<(), SandboxError> {
        let command = self.supervisor.command("git", ["clone", "-q", "--no-hardlinks", "--", source, "."]);
        self.as_user(command, work, env).await.map(drop)
    }

    /// Clones `source` into the empty directory `bare`, as a bare repository that does not contain its address, with
    /// the user's environment `env`. Returns the output of [`BARE`].
    pub(super) async fn clone_bare(
        &self,
        source: &str,
        bare: &Path,
        env: &BTreeMap<String, String>,
    ) -> Result<Vec<String>, SandboxError> {
        let command = self.supervisor.command("/bin/sh", ["-c", BARE, "git", source, CONFIG_OF_BARE]);
        self.as_user(command, bare, env).await.map(|output| output.lines())
    }

    /// Clones `bare`, a copy of `source`, into the empty directory `work`, with the same result as [`Git::clone`] of
    /// `source`.
    pub(super) async fn clone_copy(
        &self,
        source: &str,
        bare: &Path,
        work: &Path,
        env: &BTreeMap<String, String>,
    ) -> Result<(), SandboxError> {
        let mut command = self.supervisor.command("/bin/sh", ["-c", FROM_COPY, "git", source]);
        command.arg(bare);
        self.as_user(command, work, env).await.map(drop)
    }

    /// Runs a command that clones into `directory`, with the user's environment `env`.
    async fn as_user(
        &self,
        mut command: Command,
        directory: &Path,
        env: &BTreeMap<String, String>,
    ) -> Result<Captured, SandboxError> {
        let failed = |reason: String| SandboxError::Git { reason, source_line: None };
        command.current_dir(directory).env_clear().envs(env).env("GIT_TERMINAL_PROMPT", "0");
        let output = run(command, self.timeout, MAX_OUTPUT).await;
        let output = output.map_err(|error| failed(format!("cannot start a supervisor for git: {error}")))?;
        if output.timed_out {
            return Err(failed(format!("cloning did not finish within {:?} (setup_timeout)", self.timeout)));
        }
        if output.status.success() {
            return Ok(output.stdout);
        }
        Err(failed(match output.status.code() {
            Some(127) => "cloning the source repository needs git, which is not on the PATH".to_owned(),
            _ => format!("cannot clone the source repository: {}", output.stderr.text().trim()),
        }))
    }

    /// Applies a fixture's settings to a cloned repository: the commit author, an ignored path and a branch.
    pub(super) async fn adopt(
        &self,
        work: &Path,
        exclude: Option<&str>,
        branch: Option<&str>,
    ) -> Result<(), SandboxError> {
        let args = [CONFIG, &exclude.map(pattern).unwrap_or_default(), branch.unwrap_or("")];
        self.script(work, ADOPT, &args).await.map(drop)
    }

    /// Adds files to the index.
    pub(super) async fn stage(&self, work: &Path, paths: &[&str]) -> Result<(), SandboxError> {
        self.script(work, STAGE, paths).await.map(drop)
    }

    /// Packs the repository if `pack` is true, so that it copies quickly, refreshes the index and returns the output of
    /// `git status`.
    pub(super) async fn settle(&self, work: &Path, pack: bool) -> Result<Vec<String>, SandboxError> {
        Ok(self.script(work, SETTLE, &[pack_argument(pack)]).await?.lines())
    }

    async fn script(&self, work: &Path, script: &str, args: &[&str]) -> Result<Captured, SandboxError> {
        let failed = |reason: String| SandboxError::Git { reason, source_line: self.source.cloned().map(Box::new) };
        let script = format!("{PRELUDE}{script}");
        let words = ["-c", &script, "git"].into_iter().chain(args.iter().copied());
        let mut command = self.supervisor.command("/bin/sh", words);
        command.current_dir(work).envs(&self.env).envs([
            ("GIT_CONFIG_GLOBAL", "/dev/null"),
            ("GIT_ATTR_NOSYSTEM", "1"),
            ("GIT_DEFAULT_REF_FORMAT", "files"),
            ("GIT_AUTHOR_NAME", "trialrun"),
            ("GIT_AUTHOR_EMAIL", "trialrun@example.com"),
            ("GIT_AUTHOR_DATE", "2000-01-01T00:00:00Z"),
            ("GIT_COMMITTER_NAME", "trialrun"),
            ("GIT_COMMITTER_EMAIL", "trialrun@example.com"),
            ("GIT_COMMITTER_DATE", "2000-01-01T00:00:00Z"),
            ("LC_ALL", "C"),
        ]);
        let output = run(command, self.timeout, MAX_OUTPUT).await;
        let output = output.map_err(|error| failed(format!("cannot start a supervisor for git: {error}")))?;
        if output.timed_out {
            return Err(failed(format!("git did not finish within {:?} (setup_timeout)", self.timeout)));
        }
        if output.status.success() {
            return Ok(output.stdout);
        }
        let what = output.stdout.text();
        let what = what.lines().last().unwrap_or("");
        Err(failed(match output.status.code() {
            Some(127) => "a repository for the agent needs git, which is not on the PATH".to_owned(),
            _ => format!("git {what} failed: {}", output.stderr.text().trim()),
        }))
    }
}

/// Returns the arguments for [`COMMIT`].
fn commit_arguments<'a>(nothing: bool, exclude: &'a str, branch: Option<&'a str>) -> [&'a str; 4] {
    let message = if nothing { "trialrun: initial empty commit" } else { "trialrun: fixture baseline" };
    [CONFIG, exclude, message, branch.unwrap_or("")]
}

/// Returns the argument for [`SETTLE`].
fn pack_argument(pack: bool) -> &'static str {
    if pack { "pack" } else { "keep" }
}

/// Returns a line for `info/exclude` that matches only this file, or only this directory if the path ends with `/`.
fn pattern(path: &str) -> String {
    let mut pattern = String::from("/");
    for c in path.trim_start_matches('/').chars() {
        if matches!(c, '*' | '?' | '[' | '\\' | ' ') {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_matches_only_its_directory() {
        assert_eq!(pattern(".claude/skills/a/"), "/.claude/skills/a/");
        assert_eq!(pattern(".claude/agents/r.md"), "/.claude/agents/r.md");
        assert_eq!(pattern("skills/a b[*]/"), "/skills/a\\ b\\[\\*]/");
    }
}
