//! What files there are, to be compared with what there were.

use std::collections::BTreeMap;
use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use model::{Change, FileChange};
use sha2::{Digest, Sha256};
use walkdir::WalkDir;

/// The largest file that is read, in bytes: with the larger ones, size and time of the last change must do. A file that
/// is all hole has no end.
const MOST_READ: u64 = 64 * 1024 * 1024;

/// Every file and link of a tree but those of repositories.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Snapshot {
    entries: BTreeMap<PathBuf, Entry>,
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
    /// A pipe, a socket, a device.
    Other,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Content {
    /// Its SHA-256.
    Hash([u8; 32]),
    /// There is nothing to be told from it: the file is too large, or its size says enough, or it is new.
    Unread,
    /// The system does not let it be read.
    Unreadable,
}

/// What tells at a glance that a file is as it was. The time of its last change of any kind is not here, because a copy
/// has another; it is held against the moment when the copy was made.
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

/// What is known from before.
pub(super) struct Before<'a> {
    pub(super) snapshot: &'a Snapshot,
    /// When it held true, on the file system's clock: what was touched later, or in the same moment, is read.
    pub(super) moment: (i64, i64),
}

/// How long looking may take.
#[derive(Debug, Clone, Copy)]
pub(super) struct Patience {
    since: Instant,
    limit: Duration,
    setting: &'static str,
}

impl Patience {
    /// From now on, so long; the setting that says so.
    pub(super) fn new(limit: Duration, setting: &'static str) -> Self {
        Self { since: Instant::now(), limit, setting }
    }

    pub(super) fn check(&self, path: &Path) -> io::Result<()> {
        if self.since.elapsed() < self.limit {
            return Ok(());
        }
        let (limit, setting) = (self.limit.as_secs_f64(), self.setting);
        let because = format!("it was not done after {limit} s ({setting}), and had come to {}", path.display());
        Err(io::Error::new(io::ErrorKind::TimedOut, because))
    }
}

impl Snapshot {
    /// Reads everything below `root`.
    pub(super) fn of(root: &Path) -> io::Result<Self> {
        Self::scan(root, None, true, None)
    }

    /// Reads what may have changed since `before`, and what is new.
    pub(super) fn since(root: &Path, before: &Before<'_>, patience: Patience) -> io::Result<Self> {
        Self::scan(root, Some(before), true, Some(patience))
    }

    /// What is not as it was `before`, sorted by path. What is new, or has another size, is not read.
    pub(super) fn changes(root: &Path, before: &Before<'_>, patience: Patience) -> io::Result<Vec<FileChange>> {
        let after = Self::scan(root, Some(before), false, Some(patience))?;
        let old = &before.snapshot.entries;
        let mut changes = Vec::new();
        let mut note = |path: &Path, change| {
            changes.push(FileChange { path: path.to_string_lossy().into_owned(), change });
        };
        for (path, entry) in &after.entries {
            match old.get(path) {
                None => note(path, Change::Added),
                Some(known) if !known.same_as(entry) => note(path, Change::Modified),
                Some(_) => {}
            }
        }
        for path in old.keys().filter(|path| !after.entries.contains_key(*path)) {
            note(path, Change::Deleted);
        }
        changes.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(changes)
    }

    fn scan(root: &Path, before: Option<&Before<'_>>, read_all: bool, patience: Option<Patience>) -> io::Result<Self> {
        let mut entries = BTreeMap::new();
        let walk = WalkDir::new(root).min_depth(1).into_iter();
        for entry in walk.filter_entry(|entry| entry.file_name() != ".git" || !entry.file_type().is_dir()) {
            // What cannot be read any more counts as gone.
            let Ok(entry) = entry else { continue };
            if let Some(patience) = patience {
                patience.check(entry.path())?;
            }
            if entry.file_type().is_dir() {
                continue;
            }
            let path = entry.path().strip_prefix(root).unwrap_or(entry.path()).to_owned();
            let known = before.and_then(|before| before.snapshot.entries.get(&path));
            let found = if entry.file_type().is_symlink() {
                Entry::Link { target: fs::read_link(entry.path()).unwrap_or_default() }
            } else if entry.file_type().is_file() {
                let Ok(meta) = entry.metadata() else { continue };
                let stamp = Stamp::of(&meta);
                let content = match (known, before) {
                    (Some(Entry::File { stamp: old, content }), Some(before))
                        if *old == stamp && (meta.ctime(), meta.ctime_nsec()) < before.moment =>
                    {
                        *content
                    }
                    (Some(Entry::File { stamp: old, .. }), _) if old.size == stamp.size => {
                        read(entry.path(), stamp.size, patience)?
                    }
                    _ if read_all => read(entry.path(), stamp.size, patience)?,
                    _ => Content::Unread,
                };
                Entry::File { stamp, content }
            } else {
                Entry::Other
            };
            entries.insert(path, found);
        }
        Ok(Self { entries })
    }
}

impl Entry {
    /// The same kind and content, and as executable.
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

/// What a file of that size has in it. Only patience that has run out is an error.
fn read(path: &Path, size: u64, patience: Option<Patience>) -> io::Result<Content> {
    if size > MOST_READ {
        return Ok(Content::Unread);
    }
    match hash_within(path, patience) {
        Ok(hash) => Ok(Content::Hash(hash)),
        Err(error) if error.kind() == io::ErrorKind::TimedOut => Err(error),
        Err(_) => Ok(Content::Unreadable),
    }
}

/// SHA-256 of a file's content.
pub(super) fn hash(path: &Path) -> io::Result<[u8; 32]> {
    hash_within(path, None)
}

fn hash_within(path: &Path, patience: Option<Patience>) -> io::Result<[u8; 32]> {
    let mut file = File::open(path)?;
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        if let Some(patience) = patience {
            patience.check(path)?;
        }
        match file.read(&mut buffer)? {
            0 => return Ok(hasher.finalize().into()),
            count => hasher.update(&buffer[..count]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::time::SystemTime;

    fn patience() -> Patience {
        Patience::new(Duration::from_secs(60), "setup_timeout")
    }

    fn moment(root: &Path) -> (i64, i64) {
        let clock = tempfile::NamedTempFile::new_in(root.parent().unwrap()).unwrap();
        let meta = clock.as_file().metadata().unwrap();
        (meta.ctime(), meta.ctime_nsec())
    }

    fn told(changes: &[FileChange]) -> Vec<(&str, Change)> {
        changes.iter().map(|change| (change.path.as_str(), change.change)).collect()
    }

    #[test]
    fn every_kind_of_change_is_seen_and_nothing_else() {
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
        assert_eq!(Snapshot::changes(root, &before, patience()).unwrap(), []);

        // The same size, and the time put back: only the content tells.
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
        let changes = Snapshot::changes(root, &before, patience()).unwrap();
        assert_eq!(
            told(&changes),
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
        assert_eq!(Snapshot::since(root, &before, patience()).unwrap(), Snapshot::of(root).unwrap());
    }

    fn sparse(path: &Path, size: u64) {
        File::create(path).unwrap().set_len(size).unwrap();
    }

    #[test]
    fn a_file_that_nobody_could_read_to_its_end_is_not_read() {
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
        let changes = Snapshot::changes(root, &before, patience()).unwrap();
        assert_eq!(
            told(&changes),
            [
                ("grown", Change::Modified),
                ("new", Change::Added),
                ("shrunk", Change::Modified),
                ("touched", Change::Modified),
            ]
        );
        let second = Snapshot::since(root, &before, patience()).unwrap();
        assert_eq!(second.entries.len(), 5);
    }

    #[test]
    fn what_is_small_and_has_another_size_is_not_read() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("a"), "one").unwrap();
        let first = Snapshot::of(root.path()).unwrap();
        let before = Before { snapshot: &first, moment: (i64::MAX, 0) };
        fs::write(root.path().join("a"), "longer").unwrap();
        let after = Snapshot::scan(root.path(), Some(&before), false, None).unwrap();
        assert!(matches!(after.entries[Path::new("a")], Entry::File { content: Content::Unread, .. }));
    }

    #[test]
    fn patience_that_is_over_says_whose_it_was_and_where() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("a"), "one").unwrap();
        let first = Snapshot::default();
        let before = Before { snapshot: &first, moment: (0, 0) };
        let none = Patience::new(Duration::ZERO, "setup_timeout");
        let error = Snapshot::changes(root.path(), &before, none).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        let place = root.path().join("a").display().to_string();
        assert_eq!(error.to_string(), format!("it was not done after 0 s (setup_timeout), and had come to {place}"));
        assert_eq!(read(&root.path().join("a"), 3, Some(none)).unwrap_err().kind(), io::ErrorKind::TimedOut);
    }
}
