//! Records the files of a tree, to be compared with a later state.

use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::fs::{self, DirEntry, FileType, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use model::{Change, FileChange};

use super::deadline::Deadline;
use super::git_state::state_files;
use super::{digest, parallel};

/// Maximum size of a file that is hashed, in bytes. Larger files are compared by size and modification time, because a
/// sparse file can be arbitrarily large.
pub(super) const MOST_READ: u64 = 64 * 1024 * 1024;

/// Files in any directory that git opens when it examines a worktree.
const GIT_READS: [&str; 3] = [IGNORE_FILE, ".gitattributes", ".gitmodules"];

/// Name of the files that list what git ignores.
const IGNORE_FILE: &str = ".gitignore";

/// Number of directories that a thread takes at a time.
const AT_A_TIME: usize = 16;

/// All files and links of a tree except those of repositories.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Snapshot {
    /// Entries of each directory, by its path below the root. Directories that contain only directories are omitted.
    directories: HashMap<PathBuf, HashMap<OsString, Entry>>,
    /// These directories and all above them, without the root.
    folders: HashSet<PathBuf>,
}

/// Differences from an earlier snapshot.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Changes {
    /// Changed files, sorted by path.
    pub(super) files: Vec<FileChange>,
    /// True if everything was read: no directory was unreadable, and there was no nested repository.
    pub(super) is_whole: bool,
    /// True if the owner lacks permission for an entry.
    pub(super) is_closed: bool,
    /// True if a file has new content but its old size. Judging only by timestamps, git may consider it unchanged.
    pub(super) keeps_a_size: bool,
    /// Reason why git cannot read the tree.
    pub(super) blocks_git: Option<Obstacle>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Entry {
    File {
        stamp: Stamp,
        content: Content,
    },
    Link {
        target: PathBuf,
    },
    /// A pipe, a socket or a device.
    Other,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Content {
    /// SHA-256 of the content.
    Hash([u8; 32]),
    /// The content was not read: the file is too large, its size already differs, or it is new.
    Unread,
    /// The system denies reading it.
    Unreadable,
}

/// Metadata that identifies an unchanged file. The change time (ctime) is not included, because it differs in a copy;
/// it is compared with the time when the copy was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    size: u64,
    changed: (i64, i64),
    mode: u32,
}

impl Stamp {
    fn of(meta: &Metadata) -> Self {
        Self { size: meta.size(), changed: (meta.mtime(), meta.mtime_nsec()), mode: meta.mode() & 0o777 }
    }
}

/// An earlier snapshot and its time.
pub(super) struct Before<'a> {
    pub(super) snapshot: &'a Snapshot,
    /// Time of the snapshot on the file system's clock. Files changed at or after this time are read again.
    pub(super) moment: (i64, i64),
}

impl Before<'_> {
    /// Returns `true` if the file at `path` below `root`, with this metadata, has the size and time of the snapshot, but
    /// was changed since. Judging by these, git would consider it unchanged.
    pub(super) fn is_dated_back(&self, root: &Path, path: &Path, meta: &Metadata) -> bool {
        let Some(Entry::File { stamp, content }) = self.snapshot.entry(path) else { return false };
        let is_same = stamp.size == meta.size() && stamp.changed.0 == meta.mtime();
        // The snapshot can be as old as the file, as far as the clock of the file system shows.
        let may_be_new = is_same && (meta.ctime(), meta.ctime_nsec()) >= self.moment;
        may_be_new && (*content == Content::Unread || self.is_changed(root, path, meta))
    }

    /// Returns `true` if the file at `path` below `root`, with this metadata, was changed.
    pub(super) fn is_changed(&self, root: &Path, path: &Path, meta: &Metadata) -> bool {
        let Some(Entry::File { content, .. }) = self.snapshot.entry(path) else { return false };
        !self.is_unchanged(path, meta) && read(&root.join(path), meta.size(), None).map_or(true, |now| now != *content)
    }

    /// Returns `true` if the file at `path`, with this metadata, is certainly as it was.
    pub(super) fn is_unchanged(&self, path: &Path, meta: &Metadata) -> bool {
        let Some(Entry::File { stamp, .. }) = self.snapshot.entry(path) else { return false };
        meta.is_file() && *stamp == Stamp::of(meta) && (meta.ctime(), meta.ctime_nsec()) < self.moment
    }
}

impl Snapshot {
    /// Returns the paths of all files and links.
    pub(super) fn paths(&self) -> impl Iterator<Item = PathBuf> {
        self.directories.iter().flat_map(|(folder, entries)| entries.keys().map(|name| folder.join(name)))
    }

    /// Returns `true` if there is a file or link at `path`.
    pub(super) fn has(&self, path: &Path) -> bool {
        self.entry(path).is_some()
    }

    /// Returns `true` if there is a folder with files at `path`.
    pub(super) fn has_folder(&self, path: &Path) -> bool {
        self.folders.contains(path)
    }

    fn entry(&self, path: &Path) -> Option<&Entry> {
        let (folder, name) = (path.parent().unwrap_or(Path::new("")), path.file_name().unwrap_or_default());
        self.directories.get(folder)?.get(name)
    }

    /// Returns `true` if `path` is an ignore file in a folder that has other files, so that it can hide what is not its
    /// own. A folder of the agent that ignores itself is a cache: tools make them so.
    pub(super) fn can_hide(&self, path: &Path) -> bool {
        let folder = path.parent().unwrap_or(Path::new(""));
        path.file_name() == Some(OsStr::new(IGNORE_FILE))
            && (folder.as_os_str().is_empty() || self.folders.contains(folder))
    }

    /// Reads everything below `root`.
    pub(super) fn of(root: &Path) -> io::Result<Self> {
        Self::taken(&Traversal { root, before: None, read_all: true, deadline: None })
    }

    /// Reads files that may have changed since `before`, and new files.
    pub(super) fn since(root: &Path, before: &Before<'_>, deadline: Deadline) -> io::Result<Self> {
        Self::taken(&Traversal { root, before: Some(before), read_all: true, deadline: Some(deadline) })
    }

    fn taken(traversal: &Traversal<'_>) -> io::Result<Self> {
        let mut directories = HashMap::new();
        traversal.everywhere(
            |_, found| found,
            |path, found| {
                if !found.is_empty() {
                    directories.insert(path, found.into_iter().collect());
                }
            },
        )?;
        let mut folders = HashSet::new();
        for directory in directories.keys() {
            for folder in directory.ancestors().take_while(|folder| !folder.as_os_str().is_empty()) {
                // If one is known, so are those above it.
                if !folders.insert(folder.to_owned()) {
                    break;
                }
            }
        }
        Ok(Self { directories, folders })
    }

    /// Returns the changes since `before`. New files and files with another size are not read.
    pub(super) fn changes(root: &Path, before: &Before<'_>, deadline: Deadline) -> io::Result<Changes> {
        let traversal = Traversal { root, before: Some(before), read_all: false, deadline: Some(deadline) };
        let old = &before.snapshot.directories;
        let mut files = Vec::new();
        let mut seen = HashSet::new();
        let mut keeps_any = false;
        let Observations { is_whole, is_closed, blocks_git } = traversal.everywhere(
            |path, found| (differences(path, old.get(path), &found), keeps_a_size(old.get(path), &found)),
            |path, (changes, keeps)| {
                files.extend(changes);
                keeps_any |= keeps;
                seen.insert(path);
            },
        )?;
        for (path, known) in old.iter().filter(|(path, _)| !seen.contains(*path)) {
            files.extend(differences(path, Some(known), &[]));
        }
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(Changes { files, is_whole, is_closed, keeps_a_size: keeps_any, blocks_git })
    }
}

/// Returns `true` for a pipe, a socket or a device.
fn is_special(kind: FileType) -> bool {
    !kind.is_file() && !kind.is_dir() && !kind.is_symlink()
}

/// Compares one directory with its earlier state.
fn differences(
    directory: &Path,
    known: Option<&HashMap<OsString, Entry>>,
    found: &[(OsString, Entry)],
) -> Vec<FileChange> {
    let change =
        |name: &OsStr, change| FileChange { path: directory.join(name).to_string_lossy().into_owned(), change };
    let mut changes = Vec::new();
    let mut left = known.map_or(0, HashMap::len);
    for (name, entry) in found {
        match known.and_then(|known| known.get(name)) {
            None => changes.push(change(name, Change::Added)),
            Some(old) => {
                left = left.saturating_sub(1);
                if !old.same_as(entry) {
                    changes.push(change(name, Change::Modified));
                }
            }
        }
    }
    if left > 0 {
        let found: HashSet<&OsStr> = found.iter().map(|(name, _)| name.as_os_str()).collect();
        let gone = known.into_iter().flatten().filter(|(name, _)| !found.contains(name.as_os_str()));
        changes.extend(gone.map(|(name, _)| change(name, Change::Deleted)));
    }
    changes
}

/// Returns `true` if a file changed but kept its size.
fn keeps_a_size(known: Option<&HashMap<OsString, Entry>>, found: &[(OsString, Entry)]) -> bool {
    found.iter().any(|(name, entry)| match (known.and_then(|known| known.get(name)), entry) {
        (Some(old @ Entry::File { stamp, .. }), Entry::File { stamp: new, .. }) => {
            stamp.size == new.size && !old.same_as(entry)
        }
        _ => false,
    })
}

/// Reason why git cannot read a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Obstacle {
    /// A pipe, socket or device, by its path below the root. Git would wait for it.
    Special(PathBuf),
    /// A directory whose path is longer than the system accepts. Git only prints a warning.
    TooLong,
}

/// One traversal of a tree.
struct Traversal<'a> {
    root: &'a Path,
    before: Option<&'a Before<'a>>,
    /// Also read new files and files with another size.
    read_all: bool,
    deadline: Option<Deadline>,
}

/// Content of one directory.
#[derive(Default)]
struct Directory {
    entries: Vec<(OsString, Entry)>,
    /// Subdirectories, by their paths below the root.
    below: Vec<PathBuf>,
    seen: Observations,
}

/// Properties of the entries seen, as in [`Changes`].
struct Observations {
    is_whole: bool,
    is_closed: bool,
    blocks_git: Option<Obstacle>,
}

impl Default for Observations {
    fn default() -> Self {
        Self { is_whole: true, is_closed: false, blocks_git: None }
    }
}

impl Observations {
    fn add(&mut self, other: Self) {
        self.is_whole &= other.is_whole;
        self.is_closed |= other.is_closed;
        self.blocks_git = self.blocks_git.take().or(other.blocks_git);
    }
}

impl Traversal<'_> {
    /// Calls `make` for the content of every directory and passes the result to `keep`.
    fn everywhere<R: Send>(
        &self,
        make: impl Fn(&Path, Vec<(OsString, Entry)>) -> R + Sync,
        mut keep: impl FnMut(PathBuf, R),
    ) -> io::Result<Observations> {
        let mut seen = Observations::default();
        let mut level = vec![PathBuf::new()];
        while !level.is_empty() {
            let traversal = |path: &PathBuf| {
                let found = self.directory(path)?;
                Ok((make(path, found.entries), found.below, found.seen))
            };
            let found =
                parallel::each(&level, AT_A_TIME, |paths| paths.iter().map(traversal).collect::<io::Result<Vec<_>>>())?;
            let mut next = Vec::new();
            for (path, (made, below, here)) in level.into_iter().zip(found.into_iter().flatten()) {
                keep(path, made);
                next.extend(below);
                seen.add(here);
            }
            level = next;
        }
        Ok(seen)
    }

    /// Reads one directory. An entry that can no longer be read counts as deleted.
    fn directory(&self, path: &Path) -> io::Result<Directory> {
        let mut found = Directory::default();
        let known = self.before.and_then(|before| before.snapshot.directories.get(path));
        let entries = match fs::read_dir(self.root.join(path)) {
            Ok(entries) => entries,
            Err(error) => {
                let is_closed = error.kind() == io::ErrorKind::PermissionDenied;
                let is_too_long = error.kind() == io::ErrorKind::InvalidFilename;
                let seen =
                    Observations { is_whole: false, is_closed, blocks_git: is_too_long.then_some(Obstacle::TooLong) };
                return Ok(Directory { seen, ..Directory::default() });
            }
        };
        for entry in entries {
            let kind = entry.as_ref().ok().and_then(|entry| entry.file_type().ok());
            let (Ok(entry), Some(kind)) = (entry, kind) else {
                found.seen.is_whole = false;
                continue;
            };
            if let Some(deadline) = self.deadline.filter(Deadline::is_over) {
                deadline.check(&entry.path())?;
            }
            let name = entry.file_name();
            let is_repository = name == ".git";
            let is_nested = is_repository && !path.as_os_str().is_empty();
            found.seen.is_whole &= !is_nested;
            if found.seen.blocks_git.is_none() {
                let strange = if is_nested {
                    self.strange_state(&entry.path())?
                } else {
                    (is_special(kind) && GIT_READS.iter().any(|read| name == *read)).then(|| entry.path())
                };
                let below = |at: PathBuf| at.strip_prefix(self.root).unwrap_or(&at).to_owned();
                found.seen.blocks_git = strange.map(|at| Obstacle::Special(below(at)));
            }
            if !kind.is_dir() {
                let seen = self.entry(&entry, kind, known.and_then(|known| known.get(&name)))?;
                found.seen.is_closed |= matches!(seen, Some(Entry::File { stamp, .. }) if stamp.mode & 0o400 == 0);
                found.entries.extend(seen.map(|seen| (name, seen)));
            } else if !is_repository {
                found.below.push(path.join(name));
            }
        }
        Ok(found)
    }

    /// Returns a pipe, socket or device below `git`, the repository of a directory, because `git status` reads it there
    /// too.
    fn strange_state(&self, git: &Path) -> io::Result<Option<PathBuf>> {
        for file in state_files(git) {
            if let Some(deadline) = self.deadline {
                deadline.check(&file)?;
            }
            // Git follows links, so the target is examined, without opening it.
            if file.metadata().is_ok_and(|meta| is_special(meta.file_type())) {
                return Ok(Some(file));
            }
        }
        Ok(None)
    }

    /// Reads one entry that is not a directory, reusing what is `known`. Returns `None` if it has just been deleted.
    fn entry(&self, entry: &DirEntry, kind: FileType, known: Option<&Entry>) -> io::Result<Option<Entry>> {
        if kind.is_symlink() {
            return Ok(Some(Entry::Link { target: fs::read_link(entry.path()).unwrap_or_default() }));
        }
        if !kind.is_file() {
            return Ok(Some(Entry::Other));
        }
        let Ok(meta) = entry.metadata() else { return Ok(None) };
        let stamp = Stamp::of(&meta);
        let content = match (known, self.before) {
            (Some(Entry::File { stamp: old, content }), Some(before))
                if *old == stamp && (meta.ctime(), meta.ctime_nsec()) < before.moment =>
            {
                *content
            }
            (Some(Entry::File { stamp: old, .. }), _) if old.size == stamp.size => {
                read(&entry.path(), stamp.size, self.deadline)?
            }
            _ if self.read_all => read(&entry.path(), stamp.size, self.deadline)?,
            _ => Content::Unread,
        };
        Ok(Some(Entry::File { stamp, content }))
    }
}

impl Entry {
    /// Returns `true` if kind, content and the executable bits are equal.
    fn same_as(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::File { stamp: a, content: one }, Self::File { stamp: b, content: two }) => {
                let same = match (one, two) {
                    (Content::Unread, Content::Unread) => a.changed == b.changed,
                    (one, two) => one == two,
                };
                same && a.size == b.size && (a.mode & 0o100) == (b.mode & 0o100)
            }
            (one, two) => one == two,
        }
    }
}

/// Hashes a file of this size. Returns an error only if `deadline` has run out.
fn read(path: &Path, size: u64, deadline: Option<Deadline>) -> io::Result<Content> {
    if size > MOST_READ {
        return Ok(Content::Unread);
    }
    match digest::of_file(path, deadline) {
        Ok(hash) => Ok(Content::Hash(hash)),
        Err(error) if error.kind() == io::ErrorKind::TimedOut => Err(error),
        Err(_) => Ok(Content::Unreadable),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::time::{Duration, SystemTime};

    use super::*;

    fn deadline() -> Deadline {
        Deadline::new(Duration::from_secs(60), "setup_timeout")
    }

    fn moment(root: &Path) -> (i64, i64) {
        let clock = tempfile::NamedTempFile::new_in(root.parent().unwrap()).unwrap();
        let meta = clock.as_file().metadata().unwrap();
        (meta.ctime(), meta.ctime_nsec())
    }

    fn listed(changes: &Changes) -> Vec<(&str, Change)> {
        changes.files.iter().map(|change| (change.path.as_str(), change.change)).collect()
    }

    #[test]
    fn every_kind_of_change_is_detected_and_nothing_else() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        fs::create_dir_all(root.join("dir/.git")).unwrap();
        for file in ["same", "content", "gone", "tool", "dir/file", "kind"] {
            fs::write(root.join(file), "one").unwrap();
        }
        symlink("same", root.join("link")).unwrap();
        symlink("same", root.join("same-link")).unwrap();
        let snapshot = Snapshot::of(root).unwrap();
        let before = Before { snapshot: &snapshot, moment: moment(root) };
        assert_eq!(Snapshot::changes(root, &before, deadline()).unwrap().files, []);

        // Same size and restored time: only the content differs.
        let time = root.join("content").metadata().unwrap().modified().unwrap();
        fs::write(root.join("content"), "two").unwrap();
        File::options().write(true).open(root.join("content")).unwrap().set_modified(time).unwrap();
        fs::remove_file(root.join("gone")).unwrap();
        fs::set_permissions(root.join("tool"), fs::Permissions::from_mode(0o755)).unwrap();
        fs::write(root.join("dir/new"), "x").unwrap();
        fs::write(root.join("dir/.git/config"), "x").unwrap();
        fs::remove_file(root.join("kind")).unwrap();
        symlink("same", root.join("kind")).unwrap();
        fs::remove_file(root.join("link")).unwrap();
        symlink("content", root.join("link")).unwrap();
        File::options()
            .write(true)
            .open(root.join("same"))
            .unwrap()
            .set_modified(SystemTime::now() + Duration::from_secs(9))
            .unwrap();
        let changes = Snapshot::changes(root, &before, deadline()).unwrap();
        assert_eq!(
            listed(&changes),
            [
                ("content", Change::Modified),
                ("dir/new", Change::Added),
                ("gone", Change::Deleted),
                ("kind", Change::Modified),
                ("link", Change::Modified),
                ("tool", Change::Modified),
            ]
        );
    }

    #[test]
    fn a_later_snapshot_reads_only_what_may_have_changed() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        fs::write(root.join("a"), "one").unwrap();
        fs::write(root.join("b"), "one").unwrap();
        let first = Snapshot::of(root).unwrap();
        let before = Before { snapshot: &first, moment: (i64::MAX, 0) };
        fs::write(root.join("b"), "longer").unwrap();
        fs::write(root.join("c"), "new").unwrap();
        assert_eq!(Snapshot::since(root, &before, deadline()).unwrap(), Snapshot::of(root).unwrap());
    }

    #[test]
    fn a_nested_repository_is_not_read_and_is_reported() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        fs::create_dir_all(root.join(".git")).unwrap();
        fs::create_dir_all(root.join("a/b")).unwrap();
        fs::write(root.join("a/b/c"), "c").unwrap();
        let snapshot = Snapshot::of(root).unwrap();
        let before = Before { snapshot: &snapshot, moment: moment(root) };
        let changes = || Snapshot::changes(root, &before, deadline()).unwrap();
        assert_eq!(changes(), Changes { is_whole: true, ..Changes::default() });
        fs::create_dir_all(root.join("a/b/.git/objects")).unwrap();
        fs::write(root.join("a/b/.git/HEAD"), "x").unwrap();
        assert_eq!(changes(), Changes::default());
        fs::remove_dir_all(root.join("a/b")).unwrap();
        assert_eq!(listed(&changes()), [("a/b/c", Change::Deleted)]);
    }

    #[test]
    fn a_tree_with_many_directories_is_read_completely() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        for number in 0..200 {
            fs::create_dir_all(root.join(format!("{number}/deep"))).unwrap();
            fs::write(root.join(format!("{number}/deep/file")), "x").unwrap();
        }
        let snapshot = Snapshot::of(root).unwrap();
        let before = Before { snapshot: &snapshot, moment: moment(root) };
        assert_eq!(snapshot.directories.len(), 200);
        fs::write(root.join("7/deep/file"), "longer").unwrap();
        fs::write(root.join("70/new"), "x").unwrap();
        fs::remove_dir_all(root.join("150")).unwrap();
        assert_eq!(
            listed(&Snapshot::changes(root, &before, deadline()).unwrap()),
            [("150/deep/file", Change::Deleted), ("7/deep/file", Change::Modified), ("70/new", Change::Added)]
        );
    }

    #[test]
    fn a_pipe_that_would_block_git_is_reported() {
        for (path, blocks) in [
            (".gitignore", true),
            ("sub/.gitattributes", true),
            ("a/b/.git/HEAD", true),
            ("a/.git/objects/pack/x", true),
            ("pipe", false),
            (".git/HEAD", false),
        ] {
            let root = tempfile::tempdir().unwrap();
            let root = root.path();
            let pipe = root.join(path);
            fs::create_dir_all(pipe.parent().unwrap()).unwrap();
            let blocking = || {
                let before = Before { snapshot: &Snapshot::default(), moment: moment(root) };
                Snapshot::changes(root, &before, deadline()).unwrap().blocks_git
            };
            fs::write(&pipe, "").unwrap();
            assert_eq!(blocking(), None, "{path}");
            fs::remove_file(&pipe).unwrap();
            nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
            assert_eq!(blocking(), blocks.then(|| Obstacle::Special(PathBuf::from(path))), "{path}");
        }
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("a/.git")).unwrap();
        symlink("/dev/zero", root.path().join("a/.git/commondir")).unwrap();
        let before = Before { snapshot: &Snapshot::default(), moment: moment(root.path()) };
        let blocks = Snapshot::changes(root.path(), &before, deadline()).unwrap().blocks_git;
        assert_eq!(blocks, Some(Obstacle::Special(PathBuf::from("a/.git/commondir"))));
    }

    fn sparse(path: &Path, size: u64) {
        File::create(path).unwrap().set_len(size).unwrap();
    }

    #[test]
    fn an_endless_file_is_not_read() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        let huge = 1 << 42;
        fs::write(root.join("grown"), "one").unwrap();
        for file in ["same", "shrunk", "touched"] {
            sparse(&root.join(file), huge);
        }
        let first = Snapshot::of(root).unwrap();
        let before = Before { snapshot: &first, moment: moment(root) };
        for file in ["grown", "new"] {
            sparse(&root.join(file), huge);
        }
        sparse(&root.join("shrunk"), huge - 1);
        let touched = File::options().write(true).open(root.join("touched")).unwrap();
        touched.set_modified(SystemTime::now() + Duration::from_secs(9)).unwrap();
        let changes = Snapshot::changes(root, &before, deadline()).unwrap();
        assert_eq!(
            listed(&changes),
            [
                ("grown", Change::Modified),
                ("new", Change::Added),
                ("shrunk", Change::Modified),
                ("touched", Change::Modified),
            ]
        );
        let second = Snapshot::since(root, &before, deadline()).unwrap();
        assert_eq!(second.directories[Path::new("")].len(), 5);
    }

    #[test]
    fn small_files_with_a_different_size_are_not_read() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("a"), "one").unwrap();
        let first = Snapshot::of(root.path()).unwrap();
        let before = Before { snapshot: &first, moment: (i64::MAX, 0) };
        fs::write(root.path().join("a"), "longer").unwrap();
        let traversal = Traversal { root: root.path(), before: Some(&before), read_all: false, deadline: None };
        let found = traversal.directory(Path::new("")).unwrap();
        assert!(matches!(found.entries[..], [(_, Entry::File { content: Content::Unread, .. })]));
    }

    #[test]
    fn an_expired_deadline_stops_reading_immediately() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("a"), "one").unwrap();
        let first = Snapshot::default();
        let before = Before { snapshot: &first, moment: (0, 0) };
        let none = Deadline::new(Duration::ZERO, "setup_timeout");
        let error = Snapshot::changes(root.path(), &before, none).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        let path = root.path().join("a").display().to_string();
        assert_eq!(error.to_string(), format!("it did not finish within 0 s (setup_timeout); it stopped at {path}"));
        assert_eq!(read(&root.path().join("a"), 3, Some(none)).unwrap_err().kind(), io::ErrorKind::TimedOut);
    }
}
