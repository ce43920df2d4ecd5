//! Trees of files: writes below a directory without ever leaving it, and copies trees.

use std::collections::HashSet;
use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Component, Path, PathBuf};

use nix::fcntl::AT_FDCWD;
use nix::sys::stat::{UtimensatFlags, utimensat};
use nix::sys::time::TimeSpec;
use walkdir::WalkDir;

/// Modification time of every file in a fixture: 2000-01-01T00:00:00Z. With the same time everywhere, git and the
/// comparison of snapshots recognise a copied file as unchanged without reading it.
pub(super) const FIXTURE_TIME: u64 = 946_684_800;

/// Modification time of the files in a fixture's repository. It is later than the times in the index, so that git
/// trusts the index.
pub(super) const REPOSITORY_TIME: u64 = FIXTURE_TIME + 1;

/// An entry of a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Item {
    /// Relative to the tree's root.
    pub(super) path: PathBuf,
    pub(super) kind: Kind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    Directory {
        mode: u32,
    },
    File {
        mode: u32,
        size: u64,
        /// Content, if it is in memory.
        content: Option<Box<[u8]>>,
    },
    Link {
        target: PathBuf,
    },
}

/// Lists everything below `root`, parents before children, in an order that is the same on every machine. Entries for
/// which `skip` returns true are omitted together with everything below them. `root` itself may be a link; links below
/// it are not followed.
///
/// # Errors
/// Returns an error if an entry cannot be read, or is not a file, a directory or a link.
pub(super) fn list(root: &Path, skip: impl Fn(&Path) -> bool) -> io::Result<Vec<Item>> {
    let root = root.canonicalize()?;
    let mut items = Vec::new();
    let relative = |path: &Path| path.strip_prefix(&root).unwrap_or(path).to_owned();
    let walk = WalkDir::new(&root).min_depth(1).sort_by(|a, b| a.file_name().cmp(b.file_name()));
    for entry in walk.into_iter().filter_entry(|entry| entry.depth() == 0 || !skip(&relative(entry.path()))) {
        let entry = entry?;
        let mode = |meta: &Metadata| meta.permissions().mode() & 0o777;
        let kind = if entry.file_type().is_dir() {
            Kind::Directory { mode: mode(&entry.metadata()?) }
        } else if entry.file_type().is_file() {
            let meta = entry.metadata()?;
            Kind::File { mode: mode(&meta), size: meta.len(), content: None }
        } else if entry.file_type().is_symlink() {
            Kind::Link { target: fs::read_link(entry.path())? }
        } else {
            let reason = format!("{} is not a file, a directory or a link", entry.path().display());
            return Err(io::Error::new(ErrorKind::Unsupported, reason));
        };
        items.push(Item { path: relative(entry.path()), kind });
    }
    Ok(items)
}

/// Writes only below one directory. A path that leads outside, through `..`, by being absolute or through a link, is
/// refused before anything is written.
pub(super) struct Writer {
    root: PathBuf,
    /// Paths that are known to be real directories.
    known: HashSet<PathBuf>,
}

impl Writer {
    /// Creates a writer for `root`, an existing directory with its links resolved.
    pub(super) fn new(root: &Path) -> Self {
        Self { root: root.to_owned(), known: HashSet::from([root.to_owned()]) }
    }

    /// Creates a directory and its parents.
    pub(super) fn directory(&mut self, path: &Path) -> io::Result<PathBuf> {
        self.descend(path, path)
    }

    /// Creates `directory`, which contains `path`, and its parents.
    fn descend(&mut self, directory: &Path, path: &Path) -> io::Result<PathBuf> {
        let mut place = self.root.clone();
        for component in directory.components() {
            match component {
                Component::CurDir => continue,
                Component::Normal(name) => place.push(name),
                Component::ParentDir | Component::RootDir | Component::Prefix(_) => return Err(escapes(path, None)),
            }
            if self.known.contains(&place) {
                continue;
            }
            match place.symlink_metadata() {
                Err(error) if error.kind() == ErrorKind::NotFound => fs::create_dir(&place)?,
                Err(error) => return Err(error),
                Ok(meta) if meta.is_symlink() => place = self.inside(&place, path)?,
                Ok(_) => {}
            }
            if !place.is_dir() {
                let reason = format!("{}: {} is a file", path.display(), self.relative(&place).display());
                return Err(io::Error::new(ErrorKind::NotADirectory, reason));
            }
            self.known.insert(place.clone());
        }
        Ok(place)
    }

    /// Writes a file. An existing file is replaced, and a link to a file inside is followed.
    pub(super) fn file(&mut self, path: &Path, content: &[u8], executable: bool) -> io::Result<()> {
        let place = self.vacate(path, true)?;
        let mode = if executable { 0o777 } else { 0o666 };
        File::options().write(true).create_new(true).mode(mode).open(place)?.write_all(content)
    }

    /// Copies the file `from` with its permissions. An existing file is replaced.
    pub(super) fn copy(&mut self, path: &Path, from: &Path, mode: u32) -> io::Result<()> {
        let place = self.vacate(path, false)?;
        copy_file(from, &place, mode | 0o400)
    }

    /// Creates a link. An existing file or link is replaced. The target may be outside, because nothing is ever
    /// written through the link to the outside.
    pub(super) fn link(&mut self, path: &Path, target: &Path) -> io::Result<()> {
        symlink(target, self.vacate(path, false)?)
    }

    /// Copies everything below `from`, except entries for which `skip` returns true, to a location below `to`.
    pub(super) fn tree(&mut self, from: &Path, to: &Path, skip: impl Fn(&Path) -> bool) -> io::Result<()> {
        let from = from.canonicalize()?;
        let items = list(&from, skip)?;
        self.directory(to)?;
        for Item { path, kind } in &items {
            let place = to.join(path);
            match kind {
                Kind::Directory { .. } => self.directory(&place).map(drop)?,
                Kind::Link { target } => self.link(&place, target)?,
                Kind::File { mode, .. } => {
                    let source = from.join(path);
                    if path.file_name().is_some_and(|name| name == ".git") {
                        must_stay_below(&from, &source)?;
                    }
                    self.copy(&place, &source, *mode)?;
                }
            }
        }
        Ok(())
    }

    /// Returns the real path for writing `path`, after removing an existing entry there.
    fn vacate(&mut self, path: &Path, follow: bool) -> io::Result<PathBuf> {
        let Some(Component::Normal(name)) = path.components().next_back() else { return Err(escapes(path, None)) };
        let mut place = self.descend(path.parent().unwrap_or(Path::new("")), path)?.join(name);
        let meta = match place.symlink_metadata() {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(place),
            meta => meta?,
        };
        if meta.is_symlink() && follow {
            place = self.inside(&place, path)?;
        }
        if place.symlink_metadata()?.is_dir() {
            let reason = format!("{} is a directory", path.display());
            return Err(io::Error::new(ErrorKind::IsADirectory, reason));
        }
        fs::remove_file(&place)?;
        Ok(place)
    }

    /// Returns the target of the link `place`, if it is inside.
    fn inside(&self, place: &Path, path: &Path) -> io::Result<PathBuf> {
        let target = place.canonicalize().ok().filter(|target| target.starts_with(&self.root));
        target.ok_or_else(|| escapes(path, Some(self.relative(place))))
    }

    fn relative<'a>(&self, place: &'a Path) -> &'a Path {
        place.strip_prefix(&self.root).unwrap_or(place)
    }
}

fn escapes(path: &Path, link: Option<&Path>) -> io::Error {
    let path = path.display();
    io::Error::new(
        ErrorKind::PermissionDenied,
        match link {
            Some(link) => format!("{path} escapes the sandbox through the link {}", link.display()),
            None => format!("{path} escapes the sandbox"),
        },
    )
}

/// Checks that a `.git` file, as found in a worktree or submodule, points to a repository below `root`. Otherwise the
/// copied file would let the agent's commits reach the user's own repository.
fn must_stay_below(root: &Path, git_file: &Path) -> io::Result<()> {
    let text = fs::read_to_string(git_file).unwrap_or_default();
    let Some(named) = text.trim_end().strip_prefix("gitdir:").map(str::trim) else { return Ok(()) };
    let repository = git_file.parent().unwrap_or(root).join(named);
    if Path::new(named).is_relative() && repository.canonicalize().is_ok_and(|found| found.starts_with(root)) {
        return Ok(());
    }
    let reason = format!(
        "{} belongs to the repository {named}, which an agent would then work on; copy a clone of it instead",
        git_file.display()
    );
    Err(io::Error::new(ErrorKind::PermissionDenied, reason))
}

/// Sharing of blocks between files, which not all file systems support. After a refusal it is not tried again, because a
/// copy of a tree consists of many files on the same file systems.
#[derive(Default)]
pub(super) struct BlockSharing {
    is_refused: bool,
}

impl BlockSharing {
    /// Returns `true` if sharing has not been refused so far.
    pub(super) fn is_possible(&self) -> bool {
        !self.is_refused
    }

    /// Makes the empty file `to` share the blocks of `from` instead of copying them. Returns `false` if that is not
    /// possible.
    pub(super) fn share(&mut self, from: &File, to: &File) -> bool {
        self.is_refused = self.is_refused || reflink_copy::reflink_file(from, to).is_err();
        !self.is_refused
    }
}

/// Copies a file to a path that does not exist yet.
fn copy_file(from: &Path, to: &Path, mode: u32) -> io::Result<()> {
    let mut source = File::open(from)?;
    let mut copy = File::options().read(true).write(true).create_new(true).mode(mode).open(to)?;
    if reflink_copy::reflink_file(&source, &copy).is_err() {
        io::copy(&mut source, &mut copy)?;
    }
    if copy.metadata()?.permissions().mode() & 0o777 != mode {
        copy.set_permissions(fs::Permissions::from_mode(mode))?;
    }
    Ok(())
}

/// Sets the fixed times of all entries of a tree, in the template and in every copy.
pub(super) fn set_times(root: &Path, items: &[Item]) -> io::Result<()> {
    for Item { path, kind } in items {
        let place = root.join(path);
        match kind {
            Kind::Directory { .. } => {}
            Kind::File { .. } | Kind::Link { .. } => set_time(&place, time_of(path))?,
        }
    }
    Ok(())
}

pub(super) fn set_time(place: &Path, seconds: u64) -> io::Result<()> {
    let time = TimeSpec::new(seconds.cast_signed(), 0);
    utimensat(AT_FDCWD, place, &time, &time, UtimensatFlags::NoFollowSymlink)?;
    Ok(())
}

pub(super) fn time_of(path: &Path) -> u64 {
    if path.starts_with(".git") { REPOSITORY_TIME } else { FIXTURE_TIME }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scratch() -> (tempfile::TempDir, PathBuf, PathBuf) {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path().canonicalize().unwrap();
        for name in ["in", "out"] {
            fs::create_dir(root.join(name)).unwrap();
        }
        (scratch, root.join("in"), root.join("out"))
    }

    #[test]
    fn no_path_can_escape() {
        let (_scratch, inside, outside) = scratch();
        symlink(&outside, inside.join("door")).unwrap();
        symlink(outside.join("new"), inside.join("dangling")).unwrap();
        let mut writer = Writer::new(&inside);
        for path in
            ["../out/x", "/etc/zzz", "a/../../out/x", "door/x", "door/deep/x", "dangling", "dangling/x", "", "."]
        {
            let error = writer.file(Path::new(path), b"x", false).unwrap_err();
            assert!(error.to_string().contains("escapes the sandbox"), "{path}: {error}");
        }
        assert_eq!(
            writer.file(Path::new("door/x"), b"x", false).unwrap_err().to_string(),
            "door/x escapes the sandbox through the link door"
        );
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
    }

    #[test]
    fn links_that_stay_inside_are_followed_and_existing_files_are_overwritten() {
        let (_scratch, inside, _) = scratch();
        let mut writer = Writer::new(&inside);
        writer.file(Path::new("real/file"), b"old", false).unwrap();
        writer.link(Path::new("alias"), Path::new("real")).unwrap();
        writer.link(Path::new("file"), Path::new("real/file")).unwrap();
        writer.file(Path::new("./alias/other"), b"x", true).unwrap();
        writer.file(Path::new("file"), b"new", false).unwrap();
        assert_eq!(fs::read(inside.join("real/file")).unwrap(), b"new");
        assert!(inside.join("file").is_symlink());
        let mode = inside.join("real/other").metadata().unwrap().permissions().mode();
        assert_ne!(mode & 0o100, 0);
        assert!(writer.file(Path::new("real"), b"x", false).unwrap_err().to_string().ends_with("is a directory"));
        assert!(writer.file(Path::new("real/file/x"), b"x", false).unwrap_err().to_string().ends_with("is a file"));
    }

    #[test]
    fn a_tree_is_copied_unchanged_and_its_links_are_not_followed() {
        let (_scratch, inside, outside) = scratch();
        fs::create_dir_all(outside.join("tree/empty")).unwrap();
        fs::write(outside.join("secret"), "s").unwrap();
        fs::write(outside.join("tree/binary"), [0, 159, 146, 150, 255]).unwrap();
        fs::write(outside.join("tree/tool"), "#!/bin/sh\n").unwrap();
        fs::set_permissions(outside.join("tree/tool"), fs::Permissions::from_mode(0o755)).unwrap();
        fs::set_permissions(outside.join("tree/binary"), fs::Permissions::from_mode(0o444)).unwrap();
        symlink("../secret", outside.join("tree/link")).unwrap();
        let mut writer = Writer::new(&inside);
        // Twice, because a second tree may contain the same files again.
        for _ in 0..2 {
            writer.tree(&outside.join("tree"), Path::new("to/here"), |path| path == Path::new("skipped")).unwrap();
        }
        let here = inside.join("to/here");
        assert_eq!(fs::read(here.join("binary")).unwrap(), [0, 159, 146, 150, 255]);
        assert_eq!(here.join("tool").metadata().unwrap().permissions().mode() & 0o777, 0o755);
        assert_eq!(here.join("binary").metadata().unwrap().permissions().mode() & 0o777, 0o444);
        assert_eq!(fs::read_link(here.join("link")).unwrap(), Path::new("../secret"));
        assert!(here.join("empty").is_dir());
    }

    #[test]
    fn a_worktree_link_to_an_outside_repository_is_rejected() {
        let (_scratch, inside, outside) = scratch();
        fs::create_dir_all(outside.join("tree/sub")).unwrap();
        fs::create_dir_all(outside.join("tree/modules/sub")).unwrap();
        fs::write(outside.join("tree/sub/.git"), "gitdir: ../modules/sub\n").unwrap();
        let mut writer = Writer::new(&inside);
        writer.tree(&outside.join("tree"), Path::new(""), |_| false).unwrap();
        for elsewhere in ["/srv/repo/.git/worktrees/x", "../../modules"] {
            fs::write(outside.join("tree/.git"), format!("gitdir: {elsewhere}\n")).unwrap();
            let error = writer.tree(&outside.join("tree"), Path::new(""), |_| false).unwrap_err();
            assert!(error.to_string().contains(&format!("belongs to the repository {elsewhere}")), "{error}");
        }
    }

    #[test]
    fn a_pipe_in_a_tree_is_reported_and_not_read() {
        let (_scratch, inside, outside) = scratch();
        nix::unistd::mkfifo(&outside.join("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        let error = Writer::new(&inside).tree(&outside, Path::new(""), |_| false).unwrap_err();
        assert!(error.to_string().ends_with("pipe is not a file, a directory or a link"), "{error}");
    }
}
