//! Inspects a repository after an agent has worked in it. Git runs without any of the agent's configuration or
//! programs.
//!
//! Git works on a *view*: a temporary git directory that belongs to this program and is removed after the inspection.
//! HEAD, the index and the references in it are copies of the agent's. Objects are read from the agent's repository,
//! and settings are those from before the agent acted. So configuration, filters, hooks, monitors and ignore files
//! that the agent put below `.git` or into its home have no effect, and git does not write into the agent's
//! repository.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::SandboxError;
use super::blocking::blocking;
use super::deadline::Deadline;
use super::git_state::{self, GitSettings, STATE, state_files};
use super::owner::{Base, Purpose};
use super::registry::Registry;
use crate::supervise::{Captured, Output, Supervisor, run};

/// Maximum size of git output that is kept, in bytes.
const MAX_OUTPUT: usize = 1 << 20;

/// Maximum number of commits that are reported.
const MAX_COMMITS: usize = 1000;

/// Name of the git directory, and of git's home, within a view.
const GIT: &str = "git";
const HOME: &str = "home";

/// Name of the copy of the agent's settings within a view. Only the format of the repository is read from it.
const THEIRS: &str = "theirs";

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

/// Script that prints the same status for an index that the agent may have written.
pub(super) const STATUS_SCRIPT: &str = "g status --porcelain --ignore-submodules=dirty";

/// Prefix of every script. Files that the index marks to be skipped are examined too. An index without sizes and times
/// makes git read every file.
const PRELUDE: &str = r#"
if [ -f "$GIT_DIR/index" ] && { [ -n "$reads_all" ] || g ls-files -v | grep -q '^[a-zS]'; }; then
    g ls-files -s -z | GIT_INDEX_FILE="$GIT_DIR/plain" g update-index -z --index-info && mv "$GIT_DIR/plain" "$GIT_DIR/index"
fi
"#;

/// Script that reads the format of a repository that the agent created.
const FORMAT: &str = r#"
for key in extensions.objectformat extensions.refstorage; do
    git config --file "$1" --get "$key" || echo
done
"#;

/// Reason why a repository cannot be viewed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Unreadable {
    /// The agent's repository cannot be read; with the reason.
    Left(String),
    /// The machine prevents reading it; with the reason.
    Machine(String),
    /// Git did not answer in time; with the reason. This is the agent's fault if git had answered before the agent
    /// acted.
    Late(String),
}

impl Unreadable {
    #[expect(clippy::needless_pass_by_value, reason = "it is handed to `map_err`")]
    fn machine(error: impl ToString) -> Self {
        Self::Machine(error.to_string())
    }
}

/// Inputs of an inspection.
pub(super) struct Inspection<'a> {
    pub(super) supervisor: &'a Supervisor,
    /// Environment of git, without the variables that a view sets.
    pub(super) env: BTreeMap<String, String>,
    /// Settings from before the agent acted; `None` if there was no repository then.
    pub(super) settings: Option<&'a GitSettings>,
    /// Directory in which views are created.
    pub(super) root: &'a Path,
    /// Makes git read every file instead of trusting sizes and times, which an agent can restore.
    pub(super) reads_all: bool,
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
            ("LC_ALL", "C.UTF-8"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned())),
    );
    env
}

impl<'a> Inspection<'a> {
    /// Creates a view of the repository at `work`.
    pub(super) async fn view(&'a self, work: &Path) -> Result<View<'a>, Unreadable> {
        self.view_of(work, &work.join(".git")).await
    }

    /// Creates a view of the git directory `from`. The working directory is `work`, even if `from` has none.
    pub(super) async fn view_of(&'a self, work: &Path, from: &Path) -> Result<View<'a>, Unreadable> {
        let view = self.empty_view(work).await?;
        let (git, from) = (view.git(), from.to_owned());
        let deadline = self.deadline;
        let copied = blocking(move || Ok(copy_state(&from, &git, deadline))).await.map_err(Unreadable::machine)?;
        copied?;
        if self.settings.is_none() {
            view.take_format(work).await?;
        }
        Ok(view)
    }

    /// Creates a view with settings but without commits, which is sufficient to query a remote.
    pub(super) async fn empty_view(&'a self, work: &Path) -> Result<View<'a>, Unreadable> {
        let (root, registry) = (self.root.to_owned(), Arc::clone(self.registry));
        let settings = self.settings.cloned();
        let base = blocking(move || {
            let base = Base::make(&root, "git", Purpose::Sandbox, false, &registry)?;
            lay_out(base.path(), settings.as_ref()).map_err(SandboxError::io("write", base.path()))?;
            Ok(base)
        })
        .await
        .map_err(Unreadable::machine)?;
        Ok(View { inspection: self, work: work.to_owned(), base })
    }
}

/// Creates a git directory without commits, with these settings.
fn lay_out(base: &Path, settings: Option<&GitSettings>) -> io::Result<()> {
    let git = base.join(GIT);
    for directory in [HOME, "git/refs", "git/info", "git/objects/info"] {
        fs::create_dir_all(base.join(directory))?;
    }
    fs::write(git.join("HEAD"), "ref: refs/heads/main\n")?;
    match settings {
        Some(GitSettings(settings)) => {
            settings.iter().try_for_each(|(name, content)| fs::write(git.join(name), content))
        }
        None => fs::write(git.join("config"), "[core]\n\trepositoryformatversion = 0\n"),
    }
}

/// Copies the state of the repository `from` into the view `git`, and lets git read objects from `from`.
fn copy_state(from: &Path, git: &Path, deadline: Deadline) -> Result<(), Unreadable> {
    let objects = from.join("objects");
    match objects.symlink_metadata() {
        Ok(meta) if meta.is_dir() => {}
        Ok(_) => return Err(Unreadable::Left("`.git/objects` is not a directory".to_owned())),
        Err(error) => return Err(Unreadable::Left(format!("`.git/objects` cannot be read: {error}"))),
    }
    let alternates = format!("{}\n", objects.display());
    fs::write(git.join("objects/info/alternates"), alternates).map_err(Unreadable::machine)?;
    fs::remove_file(git.join("HEAD")).map_err(Unreadable::machine)?;
    let shared = fs::read_dir(from).into_iter().flatten().flatten().map(|entry| entry.file_name());
    let shared = shared.filter(|name| name.to_string_lossy().starts_with("sharedindex."));
    let names: Vec<PathBuf> = STATE.iter().map(PathBuf::from).chain(shared.map(PathBuf::from)).collect();
    for path in names.iter().flat_map(|name| state_files(&from.join(name))) {
        deadline.check(&path).map_err(Unreadable::machine)?;
        let name = path.strip_prefix(from).unwrap_or(&path);
        let to = git.join(name);
        if let Some(parent) = to.parent() {
            fs::create_dir_all(parent).map_err(Unreadable::machine)?;
        }
        match git_state::copy(&path, &to) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) if is_machines(&error) => return Err(Unreadable::machine(error)),
            copied => {
                copied
                    .map_err(|error| Unreadable::Left(format!("`.git/{}` cannot be read: {error}", name.display())))?;
            }
        }
    }
    Ok(())
}

/// Returns `true` if the machine, rather than a file, caused the error.
fn is_machines(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::OutOfMemory)
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

    /// Applies the format of a repository that the agent created. None of its other settings are used.
    async fn take_format(&self, work: &Path) -> Result<(), Unreadable> {
        let theirs = self.base.path().join(THEIRS);
        git_state::copy(&work.join(".git/config"), &theirs)
            .map_err(|error| Unreadable::Left(format!("`.git/config` cannot be read: {error}")))?;
        let words = [OsStr::new("-c"), OsStr::new(FORMAT), OsStr::new("git"), theirs.as_os_str()];
        let format = self
            .start("/bin/sh", words, self.inspection.deadline.left(), MAX_OUTPUT)
            .await
            .map_err(Unreadable::Machine)?;
        let format = format.stdout.text();
        let mut extensions = String::new();
        for (value, (key, known)) in
            format.lines().zip([("objectFormat", ["sha1", "sha256"]), ("refStorage", ["files", "reftable"])])
        {
            if let Some(known) = known.iter().find(|known| value.eq_ignore_ascii_case(known)) {
                extensions += &format!("\t{key} = {known}\n");
            }
        }
        if !extensions.is_empty() {
            let config = format!("[core]\n\trepositoryformatversion = 1\n[extensions]\n{extensions}");
            fs::write(self.git().join("config"), config).map_err(Unreadable::machine)?;
        }
        Ok(())
    }

    /// Returns the output of `git status --porcelain`. Without `reads_all`, the index must be unchanged.
    pub(super) async fn status(&self) -> Result<Vec<String>, Unreadable> {
        if self.inspection.reads_all {
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
        self.checked(output).await.map(|output| output.lines())
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
        let reads_all = if self.inspection.reads_all { "yes" } else { "" };
        let script = format!("reads_all={reads_all}\ng() {{ git {} \"$@\"; }}\n{PRELUDE}{script}", OURS.join(" "));
        let words = ["-c", script.as_str(), "git"].into_iter().chain(args.iter().copied());
        let output = self.start("/bin/sh", words, self.inspection.deadline.left(), most).await;
        self.checked(output).await
    }

    /// Returns the output of a process, or the cause of its failure.
    async fn checked(&self, output: Result<Output, String>) -> Result<Captured, Unreadable> {
        let output = output.map_err(Unreadable::Machine)?;
        if output.status.success() && !output.timed_out {
            return Ok(output.stdout);
        }
        let message = output.stderr.text();
        let message = message.lines().find(|line| !line.trim().is_empty()).unwrap_or("git failed").trim();
        // The view stands for the sandbox's repository.
        let message = message.replace(&*self.git().to_string_lossy(), ".git");
        if output.timed_out {
            let objects = self.work.join(".git/objects");
            let deadline = Deadline::new(Duration::from_secs(5), "setup_timeout");
            let strange = blocking(move || Ok(strange_object(&objects, deadline))).await.ok().flatten();
            return Err(match strange {
                Some(strange) => Unreadable::Left(format!("`{}` is not a regular file", strange.display())),
                None => Unreadable::Late("git did not answer within the limit (setup_timeout)".to_owned()),
            });
        }
        let is_machines = !matches!(output.status.code(), Some(1..=124 | 128))
            || ["No space left", "Disk quota", "Cannot allocate", "out of memory"]
                .iter()
                .any(|line| message.contains(line));
        Err(if is_machines { Unreadable::Machine(message) } else { Unreadable::Left(message) })
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
        let output = run(command, deadline, most).await;
        output.map_err(|error| format!("cannot start a supervisor for git: {error}"))
    }
}

/// Returns an entry among a repository's objects that is neither a file nor a directory. Git would wait for a pipe
/// forever.
fn strange_object(objects: &Path, deadline: Deadline) -> Option<PathBuf> {
    let mut files = state_files(objects).take_while(|_| !deadline.is_over());
    files.find(|path| !path.symlink_metadata().is_ok_and(|meta| meta.is_file()))
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
