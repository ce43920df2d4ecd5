//! Inspects a repository after an agent has worked in it. Git runs without any of the agent's configuration or
//! programs.
//!
//! Git works on a *view*: a temporary git directory that belongs to this program and is removed after the inspection.
//! It is [rebuilt](super::rebuild) from the fixture's repository, as the git directories in which the commands of
//! assertions work. So nothing that the agent put below `.git` or into its home has an effect, except its objects,
//! references and index entries, and git does not write into the agent's repository.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::SandboxError;
use super::blocking::blocking;
use super::deadline::Deadline;
use super::owner::{Base, Purpose};
use super::rebuild::{IMPORT, Rebuild};
use super::registry::Registry;
pub(super) use super::unreadable::Unreadable;
use crate::supervise::{Captured, Output, Supervisor, run};

/// Maximum size of git output that is kept, in bytes.
const MAX_OUTPUT: usize = 1 << 20;

/// Maximum number of commits that are reported.
const MAX_COMMITS: usize = 1000;

/// Name of the git directory, and of git's home, within a view.
const GIT: &str = "git";
const HOME: &str = "home";

/// Name of the folder for what is imported into a view.
const IMPORTED: &str = "import";

/// Name of the file that lists ignore files. An agent can write more of them than fit into arguments and variables.
const IGNORE_FILES: &str = "ignore-files";

/// Settings that turn off git's automatic actions.
const OURS: [&str; 16] = [
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "core.fsmonitor=false",
    "-c",
    "core.untrackedCache=false",
    "-c",
    "core.bare=false",
    "-c",
    "log.showSignature=false",
    "-c",
    "core.quotePath=false",
    "-c",
    "protocol.ext.allow=never",
    "-c",
    "gc.auto=0",
];

/// Arguments of `git status` that do not start processes in submodules, whose settings may come from the agent.
const STATUS: [&str; 3] = ["status", "--porcelain", "--ignore-submodules=dirty"];

/// Script that prints the same status for an index and ignore files that the agent may have written. What only an ignore
/// file hides that is itself hidden counts as untracked.
pub(super) const STATUS_SCRIPT: &str = "status";

/// Defines `status` for scripts.
const STATUS_FUNCTION: &str = r#"
status() {
    g status --porcelain --ignore-submodules=dirty || return
    [ -s "$IGNORE_FILES" ] || return 0
    g check-ignore --stdin < "$IGNORE_FILES" > "$GIT_DIR/hidden" || return 0
    g status --porcelain --ignored --ignore-submodules=dirty | sed -n 's/^!! //p' > "$GIT_DIR/ignored"
    sed 's/$/:/' "$GIT_DIR/hidden" > "$GIT_DIR/sources"
    g check-ignore -v --stdin < "$GIT_DIR/ignored" | grep -F -f "$GIT_DIR/sources" | sed 's/^[^	]*	/?? /' | sort -u
}
"#;

/// Prefix of every script. Files that the index marks to be skipped are examined too. An index without sizes and times
/// makes git read every file.
const PRELUDE: &str = r#"
if [ -f "$GIT_DIR/index" ] && { [ -n "$reads_all" ] || g ls-files -v | grep -q '^[a-zS]'; }; then
    g ls-files -s -z | GIT_INDEX_FILE="$GIT_DIR/plain" g update-index -z --index-info && mv "$GIT_DIR/plain" "$GIT_DIR/index"
fi
"#;

/// Means by which the agent may have hidden changes from `git status`.
#[derive(Debug, Clone, Default)]
pub(super) struct Doubts {
    /// Makes git read every file instead of trusting sizes and times, which an agent can restore.
    pub(super) reads_all: bool,
    /// Ignore files that the agent wrote, below the working directory.
    pub(super) ignore_files: Vec<String>,
}

/// Inputs of an inspection.
pub(super) struct Inspection<'a> {
    pub(super) supervisor: &'a Supervisor,
    /// Environment of git, without the variables that a view sets.
    pub(super) env: BTreeMap<String, String>,
    /// Git directory as the fixture had it; `None` if there was no repository before the agent acted.
    pub(super) given: Option<&'a Path>,
    /// Directory in which views are created.
    pub(super) root: &'a Path,
    pub(super) doubts: Doubts,
    pub(super) registry: &'a Arc<Registry>,
    pub(super) deadline: Deadline,
}

/// Returns git's environment for a view: the sandbox's, but `PATH` has only absolute entries outside the sandbox.
pub(super) fn environment(sandbox: &BTreeMap<String, String>, base: &Path) -> BTreeMap<String, String> {
    let mut env = sandbox.clone();
    let is_safe = |place: &&str| Path::new(place).is_absolute() && !Path::new(place).starts_with(base);
    let path = env.get("PATH").map(|path| path.split(':').filter(is_safe).collect::<Vec<_>>().join(":"));
    env.insert("PATH".to_owned(), path.filter(|path| !path.is_empty()).unwrap_or("/usr/bin:/bin".to_owned()));
    for name in ["XDG_CONFIG_HOME", "GIT_EXEC_PATH", "GIT_TEMPLATE_DIR"] {
        env.remove(name);
    }
    env.extend(
        [
            ("GIT_CONFIG_GLOBAL", "/dev/null"),
            ("GIT_CONFIG_NOSYSTEM", "1"),
            ("GIT_ATTR_NOSYSTEM", "1"),
            ("GIT_OPTIONAL_LOCKS", "0"),
            ("GIT_TERMINAL_PROMPT", "0"),
            ("GIT_NO_LAZY_FETCH", "1"),
            ("GIT_NO_REPLACE_OBJECTS", "1"),
            ("LC_ALL", "C.UTF-8"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned())),
    );
    env
}

impl<'a> Inspection<'a> {
    /// Creates a view of the repository at `work`.
    pub(super) async fn view(&'a self, work: &Path) -> Result<View<'a>, Unreadable> {
        self.view_of(work, Some(work.join(".git")), self.given).await
    }

    /// Creates a view with settings but without the agent's state, which is sufficient to query a remote.
    pub(super) async fn empty_view(&'a self, work: &Path) -> Result<View<'a>, Unreadable> {
        self.view_of(work, None, self.given).await
    }

    /// Creates a view of the git directory `from`, which was `given` to the agent. The working directory is `work`, even
    /// if `from` has none.
    pub(super) async fn view_of(
        &'a self,
        work: &Path,
        from: Option<PathBuf>,
        given: Option<&Path>,
    ) -> Result<View<'a>, Unreadable> {
        let (root, registry) = (self.root.to_owned(), Arc::clone(self.registry));
        let ignore_files: String = self.doubts.ignore_files.iter().map(|path| format!("{path}\n")).collect();
        let base = blocking(move || {
            let base = Base::make(&root, "git", Purpose::Sandbox, false, &registry)?;
            let home = base.path().join(HOME);
            fs::create_dir(&home).map_err(SandboxError::io("make the directory", &home))?;
            let list = base.path().join(IGNORE_FILES);
            fs::write(&list, ignore_files).map_err(SandboxError::io("write", &list))?;
            Ok(base)
        });
        let view = View { inspection: self, work: work.to_owned(), base: base.await.map_err(Unreadable::machine)? };
        let given = given.map(Path::to_owned);
        let (to, scratch) = (view.git(), view.base.path().join(IMPORTED));
        self.rebuild(Rebuild { given, from, to, scratch, is_whole: false, is_bare: false, is_moved: false }).await?;
        Ok(view)
    }

    /// Makes a git directory.
    pub(super) async fn rebuild(&self, rebuild: Rebuild) -> Result<(), Unreadable> {
        let (plan, deadline) = (rebuild.clone(), self.deadline);
        let prepared = blocking(move || Ok(plan.prepare(deadline))).await.map_err(Unreadable::machine)?;
        if !prepared? {
            return Ok(());
        }
        let Rebuild { given, to, scratch, is_whole, .. } = &rebuild;
        let given = given.as_deref().unwrap_or(Path::new(""));
        let settings = OsStr::new(if *is_whole { "settings" } else { "" });
        let args = [scratch.as_os_str(), to.as_os_str(), given.as_os_str(), settings];
        self.script(scratch, IMPORT, &args).await.map(drop)
    }

    /// Refreshes the index of the git directory `git` from the files in `work`.
    pub(super) async fn refresh(&self, git: &Path, work: &Path) -> Result<(), Unreadable> {
        let refresh = r#"GIT_DIR=$1 GIT_WORK_TREE=$2 g update-index -q --refresh > /dev/null || :"#;
        self.script(git, refresh, &[git.as_os_str(), work.as_os_str()]).await.map(drop)
    }

    /// Returns those of the ignore files `paths` in `work` that git does not show, with the git directory `git`.
    pub(super) async fn hidden(&self, git: &Path, work: &Path, paths: &[PathBuf]) -> Result<Vec<PathBuf>, Unreadable> {
        let check = r#"GIT_DIR=$1 GIT_WORK_TREE=$2 g check-ignore -z --stdin < "$3" || [ $? = 1 ]"#;
        let (list, ends) =
            (work.with_file_name(IGNORE_FILES), paths.iter().map(|path| [path.as_os_str().as_bytes(), b"\0"]));
        fs::write(&list, ends.flatten().collect::<Vec<_>>().concat()).map_err(Unreadable::machine)?;
        let output = self.script(work, check, &[git.as_os_str(), work.as_os_str(), list.as_os_str()]).await?.text();
        fs::remove_file(&list).map_err(Unreadable::machine)?;
        Ok(output.split('\0').filter(|path| !path.is_empty()).map(PathBuf::from).collect())
    }

    /// Runs `script`, in which `g` runs git, in the directory `place`.
    async fn script(&self, place: &Path, script: &str, args: &[&OsStr]) -> Result<Captured, Unreadable> {
        let script = format!("g() {{ git {} \"$@\"; }}\n{script}", OURS.join(" "));
        let words = ["-c".as_ref(), OsStr::new(&script), "git".as_ref()].into_iter().chain(args.iter().copied());
        let mut command = self.supervisor.command("/bin/sh", words);
        command.current_dir(place).envs(&self.env).env("HOME", place);
        let output = run(command, self.deadline.left(), MAX_OUTPUT).await;
        let output = output.map_err(|error| format!("cannot start a supervisor for git: {error}"));
        checked(output, place)
    }
}

/// Returns the output of a process, or the cause of its failure. In messages, the git directory `git` stands for the
/// sandbox's repository.
fn checked(output: Result<Output, String>, git: &Path) -> Result<Captured, Unreadable> {
    let output = output.map_err(Unreadable::Machine)?;
    if output.status.success() && !output.timed_out {
        return Ok(output.stdout);
    }
    if output.timed_out {
        return Err(Unreadable::Late("git did not answer within the limit (setup_timeout)".to_owned()));
    }
    let message = output.stderr.text();
    let message = message.lines().find(|line| !line.trim().is_empty()).unwrap_or("git failed").trim();
    let message = message.replace(&*git.to_string_lossy(), ".git");
    let is_machines = !matches!(output.status.code(), Some(1..=124 | 128))
        || ["No space left", "Disk quota", "Cannot allocate", "out of memory"]
            .iter()
            .any(|line| message.contains(line));
    Err(if is_machines { Unreadable::Machine(message) } else { Unreadable::Left(message) })
}

/// A temporary git directory that shows a repository. Dropping it removes it.
pub(super) struct View<'a> {
    inspection: &'a Inspection<'a>,
    work: PathBuf,
    base: Base,
}

impl View<'_> {
    fn git(&self) -> PathBuf {
        self.base.path().join(GIT)
    }

    /// Returns the output of `git status --porcelain`. Without `reads_all`, the index must be unchanged.
    pub(super) async fn status(&self) -> Result<Vec<String>, Unreadable> {
        if self.inspection.doubts.reads_all || !self.inspection.doubts.ignore_files.is_empty() {
            return self.script(STATUS_SCRIPT, &[]).await;
        }
        self.ask(&STATUS).await
    }

    /// Returns the commits reachable from HEAD but not from `since`: hash and subject, newest first.
    pub(super) async fn commits(&self, since: Option<&str>) -> Result<Vec<String>, Unreadable> {
        let range = since.map_or_else(|| "HEAD".to_owned(), |since| format!("{since}..HEAD"));
        let max = format!("--max-count={MAX_COMMITS}");
        self.ask(&["log", "--format=%H %s", &max, &range, "--"]).await
    }

    async fn ask(&self, args: &[&str]) -> Result<Vec<String>, Unreadable> {
        let output = self.start("git", OURS.iter().chain(args), self.inspection.deadline.left(), MAX_OUTPUT).await;
        checked(output, &self.git()).map(|output| output.lines())
    }

    /// Runs git with `args` and its own timeout, for commands that depend on others, such as a remote.
    ///
    /// # Errors
    /// Returns git's error message or the timeout, in one line.
    pub(super) async fn ask_within(&self, args: &[&str], deadline: Duration) -> Result<Vec<String>, String> {
        let output = self.start("git", OURS.iter().chain(args), deadline, MAX_OUTPUT).await?;
        if output.timed_out {
            return Err(format!("no answer after {} s", deadline.as_secs_f64().ceil()));
        }
        if output.status.success() {
            return Ok(output.stdout.lines());
        }
        let message = output.stderr.text();
        Err(message.lines().next_back().unwrap_or("git failed").trim().to_owned())
    }

    /// Returns the output of `script`, in which `g` runs git.
    pub(super) async fn script(&self, script: &str, args: &[&str]) -> Result<Vec<String>, Unreadable> {
        self.run(script, args, MAX_OUTPUT).await.map(|output| output.lines())
    }

    /// Runs `script`, in which `g` runs git, and keeps at most `most` bytes of output.
    pub(super) async fn run(&self, script: &str, args: &[&str], most: usize) -> Result<Captured, Unreadable> {
        let reads_all = if self.inspection.doubts.reads_all { "yes" } else { "" };
        let script = format!(
            "reads_all={reads_all}\ng() {{ git {} \"$@\"; }}\n{STATUS_FUNCTION}{PRELUDE}{script}",
            OURS.join(" ")
        );
        let words = ["-c", script.as_str(), "git"].into_iter().chain(args.iter().copied());
        let output = self.start("/bin/sh", words, self.inspection.deadline.left(), most).await;
        checked(output, &self.git())
    }

    /// Runs `program` for the view, and keeps at most `most` bytes of each output.
    async fn start<A: AsRef<OsStr>>(
        &self,
        program: &str,
        args: impl IntoIterator<Item = A>,
        deadline: Duration,
        most: usize,
    ) -> Result<Output, String> {
        let mut command = self.inspection.supervisor.command(program, args);
        command.current_dir(&self.work).envs(&self.inspection.env);
        command.env("HOME", self.base.path().join(HOME));
        command.env("GIT_DIR", self.git()).env("GIT_WORK_TREE", &self.work);
        command.env("IGNORE_FILES", self.base.path().join(IGNORE_FILES));
        let output = run(command, deadline, most).await;
        output.map_err(|error| format!("cannot start a supervisor for git: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_at_absolute_paths_outside_the_sandbox() {
        let path = |path: &str| {
            let env = BTreeMap::from([("PATH".to_owned(), path.to_owned())]);
            environment(&env, Path::new("/tmp/s")).remove("PATH").unwrap()
        };
        assert_eq!(path(".:/usr/bin::bin:/tmp/s/work/bin:/bin"), "/usr/bin:/bin");
        assert_eq!(path("."), "/usr/bin:/bin");
    }
}
