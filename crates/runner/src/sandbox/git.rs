//! Repositories in sandboxes: made so that the same fixture is the same commit everywhere, and read without trusting
//! what an agent made of them.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use model::Excerpt;
use sha2::{Digest, Sha256};
use walkdir::{DirEntry, WalkDir};

use super::SandboxError;
use crate::supervise::{Captured, Output, Supervisor, run};

/// The most of git's output that is kept, in bytes.
const MAX_OUTPUT: usize = 1 << 20;

/// The most commits that are told of.
const MAX_COMMITS: usize = 1000;

/// The largest file of a repository's own that is looked into at a glance, in bytes: the index of a million files.
pub(super) const LARGEST: u64 = 128 << 20;

/// What every fixture's repository is configured with: somebody to commit as, nothing that starts by itself, and trust
/// in what a copy keeps: size and time, not inode numbers.
pub(super) const CONFIG: &str = "\
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

/// Runs git as told by its first argument, without the repository's own hooks. The name of what failed goes to stdout.
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

/// Arguments: configuration, line for `info/exclude`, what to add (`.` or a file), message, branch.
const COMMIT: &str = r#"
g init -q -b main --object-format=sha1 --template=
printf '%s' "$1" >> .git/config
if [ -n "$2" ]; then mkdir -p .git/info; printf '%s\n' "$2" >> .git/info/exclude; fi
g add -A -- "$3"
g commit -q --no-verify --allow-empty -m "$4"
if [ -n "$5" ]; then g checkout -q -B "$5"; fi
"#;

/// Arguments: configuration, line for `info/exclude`, branch.
const ADOPT: &str = r#"
printf '%s' "$1" >> .git/config
if [ -n "$2" ]; then mkdir -p .git/info; printf '%s\n' "$2" >> .git/info/exclude; fi
if [ -n "$3" ]; then g checkout -q -B "$3"; fi
"#;

/// Arguments: the paths to add, as they are.
const STAGE: &str = r#"
export GIT_LITERAL_PATHSPECS=1
g add -- "$@"
"#;

/// Argument: whether to pack, because few files copy faster than many.
const SETTLE: &str = r#"
if [ "$1" = pack ]; then
    g repack -adqn
    g pack-refs --all
    rmdir .git/objects/?? 2> /dev/null || :
fi
git -c core.fsmonitor=false update-index -q --refresh > /dev/null 2>&1 || :
g status --porcelain
"#;

/// What git is not to do of itself when it looks into a repository that an agent had its hands on.
const OURS: [&str; 10] = [
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "core.fsmonitor=false",
    "-c",
    "log.showSignature=false",
    "-c",
    "core.quotePath=false",
    "-c",
    "protocol.ext.allow=never",
];

/// Git for fixtures: fixed author, fixed dates, no settings but the repository's own.
pub(super) struct Git<'a> {
    pub(super) supervisor: &'a Supervisor,
    /// A sandbox's environment.
    pub(super) env: BTreeMap<String, String>,
    pub(super) timeout: Duration,
    /// Where the fixture stands.
    pub(super) source: Option<&'a Excerpt>,
}

impl Git<'_> {
    /// Makes `work` a repository with everything in it committed, or only `keep` where there is nothing to commit.
    pub(super) async fn commit(
        &self,
        work: &Path,
        keep: Option<&str>,
        exclude: Option<&str>,
        branch: Option<&str>,
    ) -> Result<(), SandboxError> {
        let message = if keep.is_some() { "trialrun: initial empty commit" } else { "trialrun: fixture baseline" };
        let args =
            [CONFIG, &exclude.map(pattern).unwrap_or_default(), keep.unwrap_or("."), message, branch.unwrap_or("")];
        self.script(work, COMMIT, &args).await.map(drop)
    }

    /// Clones `source` into the empty directory `work`, as the user whose environment `env` is.
    pub(super) async fn clone(
        &self,
        source: &str,
        work: &Path,
        env: &BTreeMap<String, String>,
    ) -> Result<(), SandboxError> {
        let failed = |because: String| SandboxError::Git { because, source_line: None };
        let mut command = self.supervisor.command("git", ["clone", "-q", "--no-hardlinks", "--", source, "."]);
        command.current_dir(work).env_clear().envs(env).env("GIT_TERMINAL_PROMPT", "0");
        let output = run(command, self.timeout, MAX_OUTPUT).await;
        let output = output.map_err(|error| failed(format!("cannot start a supervisor for git: {error}")))?;
        if output.timed_out {
            return Err(failed(format!("cloning was ended after {:?} (setup_timeout)", self.timeout)));
        }
        if output.status.success() {
            return Ok(());
        }
        Err(failed(match output.status.code() {
            Some(127) => "`--source-repo` needs git, and there is none on the PATH".to_owned(),
            _ => format!("cannot clone the source repository: {}", output.stderr.text().trim()),
        }))
    }

    /// Makes a repository that was cloned one of a fixture: somebody to commit as, and a directory that is not seen.
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

    /// Makes the repository quick to copy, if `pack`, refreshes the index and says what `git status` says.
    pub(super) async fn settle(&self, work: &Path, pack: bool) -> Result<Vec<String>, SandboxError> {
        let pack = if pack { "pack" } else { "" };
        Ok(lines(&self.script(work, SETTLE, &[pack]).await?))
    }

    async fn script(&self, work: &Path, script: &str, args: &[&str]) -> Result<Captured, SandboxError> {
        let failed = |because: String| SandboxError::Git { because, source_line: self.source.cloned().map(Box::new) };
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
            return Err(failed(format!("git was ended after {:?} (setup_timeout)", self.timeout)));
        }
        if output.status.success() {
            return Ok(output.stdout);
        }
        let what = output.stdout.text();
        let what = what.lines().last().unwrap_or("");
        Err(failed(match output.status.code() {
            Some(127) => "`git_init` needs git, and there is none on the PATH".to_owned(),
            _ => format!("git {what} failed: {}", output.stderr.text().trim()),
        }))
    }
}

/// A line for `info/exclude` that matches this directory and no other.
fn pattern(directory: &str) -> String {
    let mut pattern = String::from("/");
    for c in directory.trim_matches('/').chars() {
        if matches!(c, '*' | '?' | '[' | '\\' | ' ') {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern.push('/');
    pattern
}

fn lines(output: &Captured) -> Vec<String> {
    output.text().lines().map(str::to_owned).collect()
}

/// A repository at a glance, read without git.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Glance {
    /// HEAD, index, references and settings, with a digest of what is in them. Times would tell less: they can be set.
    files: BTreeMap<PathBuf, Option<[u8; 32]>>,
    /// The commit that is checked out.
    pub(super) head: Option<String>,
    /// The branch that is checked out.
    pub(super) branch: Option<String>,
}

impl Glance {
    /// At the repository whose top is `work`; `None` if there is none.
    pub(super) fn at(work: &Path) -> Option<Self> {
        let git = work.join(".git");
        if !git.symlink_metadata().is_ok_and(|meta| meta.is_dir()) {
            return None;
        }
        let mut files = BTreeMap::new();
        for name in ["HEAD", "index", "packed-refs", "refs", "config", "info/exclude", "shallow"] {
            for entry in WalkDir::new(git.join(name)).into_iter().flatten() {
                if !entry.file_type().is_dir() {
                    let digest = digest(&entry);
                    let path = entry.into_path();
                    files.insert(path.strip_prefix(work).unwrap_or(&path).into(), digest);
                }
            }
        }
        let mut glance = Self { files, ..Self::default() };
        let head = fs::read_to_string(git.join("HEAD")).unwrap_or_default();
        match head.trim().strip_prefix("ref: ") {
            Some(reference) => {
                glance.branch = Some(reference.strip_prefix("refs/heads/").unwrap_or(reference).to_owned());
                glance.head = resolve(&git, reference);
            }
            None => glance.head = hash(head.trim()),
        }
        Some(glance)
    }

    /// Whether the repository is surely what it was at another glance.
    pub(super) fn is_as(&self, other: &Self) -> bool {
        self == other && self.files.values().all(Option::is_some)
    }
}

/// A digest of a file's content; `None` for what is no file, and for what is too large to be one of git's.
fn digest(entry: &DirEntry) -> Option<[u8; 32]> {
    let is_read = entry.file_type().is_file() && entry.metadata().is_ok_and(|meta| meta.len() <= LARGEST);
    let content = is_read.then(|| fs::read(entry.path()).ok()).flatten()?;
    Some(Sha256::digest(content).into())
}

/// What a reference stands for; a loose one goes before a packed one.
fn resolve(git: &Path, reference: &str) -> Option<String> {
    if reference.split('/').any(|part| part == "..") {
        return None;
    }
    if let Ok(loose) = fs::read_to_string(git.join(reference)) {
        return hash(loose.trim());
    }
    let packed = fs::read_to_string(git.join("packed-refs")).ok()?;
    packed
        .lines()
        .find_map(|line| line.split_once(' ').filter(|(_, name)| *name == reference))
        .and_then(|(id, _)| hash(id))
}

fn hash(text: &str) -> Option<String> {
    let whole = matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    whole.then(|| text.to_owned())
}

/// Looks into a repository that an agent had its hands on: contained, with a time limit, without its hooks and without
/// leaving a trace in it.
pub(super) struct Inspection<'a> {
    pub(super) supervisor: &'a Supervisor,
    /// The sandbox's environment.
    pub(super) env: BTreeMap<String, String>,
    pub(super) timeout: Duration,
}

impl Inspection<'_> {
    /// What `git status --porcelain` says; `None` if it says that this is no repository.
    pub(super) async fn status(&self, work: &Path) -> Option<Vec<String>> {
        self.git(work, &["status", "--porcelain"]).await
    }

    /// Commits that are checked out and were not in `since`: hash and subject, newest first.
    pub(super) async fn commits(&self, work: &Path, since: Option<&str>) -> Vec<String> {
        let range = since.map_or_else(|| "HEAD".to_owned(), |since| format!("{since}..HEAD"));
        let max = format!("--max-count={MAX_COMMITS}");
        self.git(work, &["log", "--format=%H %s", &max, &range, "--"]).await.unwrap_or_default()
    }

    /// What git says to `args`, whatever it is that takes long: a remote that is asked, for example.
    ///
    /// # Errors
    /// In one line, what git says or that its time was over.
    pub(super) async fn ask_within(
        &self,
        work: &Path,
        args: &[&str],
        patience: Duration,
    ) -> Result<Vec<String>, String> {
        let output = self.start("git", OURS.iter().chain(args), work, patience).await;
        let output = output.map_err(|error| format!("cannot start a supervisor for git: {error}"))?;
        if output.timed_out {
            return Err(format!("no answer after {} s", patience.as_secs()));
        }
        if output.status.success() {
            return Ok(lines(&output.stdout));
        }
        let said = output.stderr.text();
        Err(said.lines().next_back().unwrap_or("git failed").trim().to_owned())
    }

    /// What `script` tells, in which `g` is git; `None` if it fails.
    pub(super) async fn script(&self, work: &Path, script: &str, args: &[&str]) -> Option<Vec<String>> {
        let script = format!("g() {{ git {} \"$@\"; }}\n{script}", OURS.join(" "));
        let words = ["-c", script.as_str(), "git"].into_iter().chain(args.iter().copied());
        let output = self.start("/bin/sh", words, work, self.timeout).await.ok()?;
        output.status.success().then(|| lines(&output.stdout))
    }

    async fn git(&self, work: &Path, args: &[&str]) -> Option<Vec<String>> {
        self.ask_within(work, args, self.timeout).await.ok()
    }

    async fn start<A: AsRef<OsStr>>(
        &self,
        program: &str,
        args: impl IntoIterator<Item = A>,
        work: &Path,
        patience: Duration,
    ) -> io::Result<Output> {
        let mut command = self.supervisor.command(program, args);
        command.current_dir(work).envs(&self.env).envs([
            ("GIT_CONFIG_GLOBAL", "/dev/null"),
            ("GIT_ATTR_NOSYSTEM", "1"),
            ("GIT_OPTIONAL_LOCKS", "0"),
            ("GIT_TERMINAL_PROMPT", "0"),
            ("LC_ALL", "C.UTF-8"),
        ]);
        run(command, patience, MAX_OUTPUT).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_matches_its_directory_alone() {
        assert_eq!(pattern(".claude/skills/a"), "/.claude/skills/a/");
        assert_eq!(pattern("skills/a b[*]"), "/skills/a\\ b\\[\\*]/");
    }

    #[test]
    fn a_reference_is_found_loose_packed_or_not_at_all() {
        let root = tempfile::tempdir().unwrap();
        let git = root.path().join(".git");
        fs::create_dir_all(git.join("refs/heads")).unwrap();
        assert_eq!(Glance::at(&git), None);
        let [one, two] = ["1".repeat(40), "2".repeat(40)];
        fs::write(git.join("HEAD"), "ref: refs/heads/a/b\n").unwrap();
        let glance = Glance::at(root.path()).unwrap();
        assert_eq!((glance.head, glance.branch.as_deref()), (None, Some("a/b")));
        fs::write(git.join("packed-refs"), format!("# pack-refs with: peeled\n{one} refs/heads/a/b\n")).unwrap();
        assert_eq!(Glance::at(root.path()).unwrap().head, Some(one));
        fs::create_dir_all(git.join("refs/heads/a")).unwrap();
        fs::write(git.join("refs/heads/a/b"), format!("{two}\n")).unwrap();
        assert_eq!(Glance::at(root.path()).unwrap().head, Some(two.clone()));
        fs::write(git.join("HEAD"), format!("{two}\n")).unwrap();
        let glance = Glance::at(root.path()).unwrap();
        assert_eq!((glance.head, glance.branch), (Some(two), None));
        fs::write(git.join("HEAD"), "ref: refs/../../x").unwrap();
        assert_eq!(Glance::at(root.path()).unwrap().head, None);
    }
}
