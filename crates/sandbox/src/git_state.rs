//! Reads the state of a repository without git, so that nothing an agent put into it can run.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

use walkdir::WalkDir;

use super::deadline::Deadline;
use super::digest;

/// Maximum size of one of git's own files that is read, in bytes: the index for a million files.
pub(super) const LARGEST: u64 = 128 << 20;

/// Maximum size of one of git's own short text files, in bytes.
const TEXT: u64 = 1 << 20;

/// Maximum number of references and reference logs that are read.
const MOST_FILES: usize = 100_000;

/// Maximum number of git's object files that are compared; with more, git is asked.
const MOST_OBJECTS: usize = 2_000;

/// Maximum number of hooks that are listed.
const MOST_HOOKS: usize = 100;

/// Files that describe the state of a repository and do not grow with the worktree.
pub(super) const STATE: [&str; 6] = ["HEAD", "index", "packed-refs", "refs", "reftable", "shallow"];

/// Files that configure git.
const SETTINGS: [&str; 3] = ["config", "info/exclude", "info/attributes"];

/// Folder with git's logs of remote-tracking branches.
const LOGS: &str = "logs/refs/remotes";

/// End of the entry that git logs when a branch is pushed.
const PUSHED: &str = "\tupdate by push";

/// Content of the repository's configuration files, by path.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct GitSettings(pub(super) BTreeMap<&'static str, Vec<u8>>);

impl GitSettings {
    /// Reads the settings of the repository at `work`.
    fn read(work: &Path) -> Self {
        let git = work.join(".git");
        let content = |name: &&'static str| Some((*name, files::read(&git.join(name), TEXT).ok()?));
        Self(SETTINGS.iter().filter_map(content).collect())
    }
}

/// State of a repository that can be read without git.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct GitState {
    /// HEAD, index, references and settings, with a digest of each. Timestamps are not sufficient, because an agent can
    /// set them.
    digests: BTreeMap<PathBuf, Option<[u8; 32]>>,
    /// Sizes of git's object files, which a destroyed repository lacks; `None` if there are too many.
    pub(super) objects: Option<BTreeMap<PathBuf, u64>>,
    /// Sizes of the repository's hooks, by name.
    pub(super) hooks: BTreeMap<String, u64>,
    /// Checked-out commit.
    pub(super) head: Option<String>,
    /// Checked-out branch.
    pub(super) branch: Option<String>,
    /// Settings of the repository.
    pub(super) settings: GitSettings,
    /// Remote-tracking branches that git logged as pushed, such as `fork/main`, with the last pushed commit of each.
    pub(super) pushes: BTreeMap<String, String>,
}

impl GitState {
    /// Reads the state of the repository at `work`; returns `None` if there is none.
    ///
    /// # Errors
    /// Returns an error if `deadline` has run out.
    pub(super) fn at(work: &Path, deadline: Deadline) -> io::Result<Option<Self>> {
        let git = work.join(".git");
        if !git.symlink_metadata().is_ok_and(|meta| meta.is_dir()) {
            return Ok(None);
        }
        let digests = digests(&git, STATE.iter().chain(&SETTINGS), deadline)?;
        let settings = GitSettings::read(work);
        let objects = objects(&git, deadline)?;
        let (hooks, pushes) = (hooks(&git), logged_pushes(&git, deadline)?);
        let mut git_state = Self { digests, objects, hooks, settings, pushes, ..Self::default() };
        let head = text(&git.join("HEAD")).unwrap_or_default();
        match head.trim().strip_prefix("ref: ") {
            Some(reference) => {
                git_state.branch = Some(reference.strip_prefix("refs/heads/").unwrap_or(reference).to_owned());
                git_state.head = resolve(&git, reference);
            }
            None => git_state.head = hash(head.trim()),
        }
        Ok(Some(git_state))
    }

    /// Returns `true` if the repository is certainly unchanged since `other` was read.
    pub(super) fn is_as(&self, other: &Self) -> bool {
        self == other && self.objects.is_some() && self.digests.values().all(Option::is_some)
    }
}

/// Returns a digest of each of the files at or below `names` in the git directory `git`; `None` for what is not a
/// readable file.
pub(super) fn digests<'n>(
    git: &Path,
    names: impl Iterator<Item = &'n &'static str>,
    deadline: Deadline,
) -> io::Result<BTreeMap<PathBuf, Option<[u8; 32]>>> {
    let mut digests = BTreeMap::new();
    for entry in names.flat_map(|name| state_files(&git.join(name))) {
        deadline.check(&entry)?;
        let digest = match digest_of(&entry, deadline) {
            Err(error) if error.kind() == ErrorKind::TimedOut => return Err(error),
            digest => digest.ok(),
        };
        digests.insert(entry.strip_prefix(git).unwrap_or(&entry).to_owned(), digest);
    }
    Ok(digests)
}

/// Returns everything at or below `path` except directories. Links are not followed.
pub(super) fn state_files(path: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let walk = WalkDir::new(path).follow_root_links(false).into_iter().flatten();
    walk.filter(|entry| !entry.file_type().is_dir()).take(MOST_FILES).map(walkdir::DirEntry::into_path)
}

/// Returns the sizes of git's object files; `None` if there are more than [`MOST_OBJECTS`].
fn objects(git: &Path, deadline: Deadline) -> io::Result<Option<BTreeMap<PathBuf, u64>>> {
    let folder = git.join("objects");
    let mut objects = BTreeMap::new();
    for file in state_files(&folder).take(MOST_OBJECTS + 1) {
        deadline.check(&file)?;
        // A pipe or a link has no size, and differs from every file.
        let size = file.symlink_metadata().ok().filter(std::fs::Metadata::is_file).map_or(u64::MAX, |meta| meta.len());
        objects.insert(file.strip_prefix(&folder).unwrap_or(&file).to_owned(), size);
    }
    Ok((objects.len() <= MOST_OBJECTS).then_some(objects))
}

/// Returns the sizes of the hooks, without the samples that git creates.
fn hooks(git: &Path) -> BTreeMap<String, u64> {
    let entries = fs::read_dir(git.join("hooks")).into_iter().flatten().flatten().take(MOST_HOOKS);
    let hook = |entry: fs::DirEntry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        let size = entry.metadata().ok()?.len();
        (!name.ends_with(".sample")).then_some((name, size))
    };
    entries.filter_map(hook).collect()
}

fn digest_of(path: &Path, deadline: Deadline) -> io::Result<[u8; 32]> {
    let file = files::open(path)?;
    if file.metadata()?.len() > LARGEST {
        return Err(ErrorKind::FileTooLarge.into());
    }
    digest::of_open_file(file, path, Some(deadline))
}

fn text(path: &Path) -> Option<String> {
    String::from_utf8(files::read(path, TEXT).ok()?).ok()
}

/// Returns the commit of a reference. A loose reference takes precedence over a packed one.
pub(super) fn resolve(git: &Path, reference: &str) -> Option<String> {
    if let Ok(files::Found::File(loose)) = files::find(&git.canonicalize().ok()?, Path::new(reference)) {
        return hash(text(&loose)?.trim());
    }
    let mut packed = String::new();
    files::open(&git.join("packed-refs")).ok()?.take(LARGEST).read_to_string(&mut packed).ok()?;
    packed
        .lines()
        .find_map(|line| line.split_once(' ').filter(|(_, name)| *name == reference))
        .and_then(|(id, _)| hash(id))
}

fn hash(text: &str) -> Option<String> {
    let whole = matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    whole.then(|| text.to_owned())
}

/// Returns the remote-tracking branches that git logged as pushed, with the last pushed commit of each.
fn logged_pushes(git: &Path, deadline: Deadline) -> io::Result<BTreeMap<String, String>> {
    let logs = git.join(LOGS);
    let mut pushes = BTreeMap::new();
    for path in state_files(&logs) {
        deadline.check(&path)?;
        let Some(log) = text(&path) else { continue };
        let Some(line) = log.lines().rev().find(|line| line.ends_with(PUSHED)) else { continue };
        let branch = path.strip_prefix(&logs).unwrap_or(&path).to_string_lossy().into_owned();
        // Fields in the line: old commit, new commit, committer, time.
        pushes.extend(line.split(' ').nth(1).and_then(hash).map(|commit| (branch, commit)));
    }
    Ok(pushes)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::time::Duration;

    use nix::sys::stat::Mode;

    use super::*;

    fn at(work: &Path) -> Option<GitState> {
        GitState::at(work, Deadline::new(Duration::from_secs(60), "setup_timeout")).unwrap()
    }

    #[test]
    fn references_are_resolved_whether_loose_or_packed() {
        let root = tempfile::tempdir().unwrap();
        let git = root.path().join(".git");
        fs::create_dir_all(git.join("refs/heads")).unwrap();
        assert_eq!(at(&git), None);
        fs::write(git.join("HEAD"), "ref: refs/heads/main\n").unwrap();
        let (one, two) = ("1".repeat(40), "2".repeat(64));
        let git_state = at(root.path()).unwrap();
        assert_eq!((git_state.branch.as_deref(), git_state.head), (Some("main"), None));
        fs::write(git.join("packed-refs"), format!("# pack-refs\n{one} refs/heads/main\n")).unwrap();
        assert_eq!(at(root.path()).unwrap().head, Some(one));
        fs::write(git.join("refs/heads/main"), format!("{two}\n")).unwrap();
        let git_state = at(root.path()).unwrap();
        assert_eq!(git_state.head, Some(two.clone()));
        fs::write(git.join("HEAD"), &two).unwrap();
        let detached = at(root.path()).unwrap();
        assert_eq!((detached.branch, detached.head), (None, Some(two)));
        fs::write(git.join("HEAD"), "ref: ../../etc/passwd\n").unwrap();
        assert_eq!(at(root.path()).unwrap().head, None);
    }

    #[test]
    fn pipes_devices_and_links_in_a_repository_are_neither_read_nor_followed() {
        let root = tempfile::tempdir().unwrap();
        let git = root.path().join(".git");
        fs::create_dir(&git).unwrap();
        nix::unistd::mkfifo(&git.join("HEAD"), Mode::S_IRWXU).unwrap();
        symlink("/", git.join("refs")).unwrap();
        symlink("/dev/zero", git.join("index")).unwrap();
        let git_state = at(root.path()).unwrap();
        assert_eq!(git_state.digests.len(), 3);
        assert!(git_state.digests.values().all(Option::is_none), "{:?}", git_state.digests);
        assert!(!git_state.is_as(&git_state.clone()), "unreadable state never counts as unchanged");
        fs::remove_file(git.join("HEAD")).unwrap();
        for named in ["ref: packed-refs\n", "ref: /dev/zero\n", "ref: refs/dev/zero\n"] {
            let _ = fs::remove_file(git.join("packed-refs"));
            fs::write(git.join("HEAD"), named).unwrap();
            nix::unistd::mkfifo(&git.join("packed-refs"), Mode::S_IRWXU).unwrap();
            assert_eq!(at(root.path()).unwrap().head, None, "{named}");
        }
    }

    #[test]
    fn a_push_is_detected_from_the_reflog() {
        let root = tempfile::tempdir().unwrap();
        let log = root.path().join(".git/logs/refs/remotes/fork/feat");
        fs::create_dir_all(&log).unwrap();
        let (one, two) = ("1".repeat(40), "2".repeat(40));
        let fetched = format!("{one} {two} A <a@b> 1 +0000\tfetch: fast-forward\n");
        fs::write(log.join("x"), format!("{two} {one} A <a@b> 1 +0000\tupdate by push\n{fetched}")).unwrap();
        fs::write(log.join("y"), fetched).unwrap();
        assert_eq!(at(root.path()).unwrap().pushes, BTreeMap::from([("fork/feat/x".to_owned(), one)]));
    }
}
