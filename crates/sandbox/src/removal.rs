//! Removes a tree, whatever permissions an agent set in it.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

/// Maximum number of attempts, because a process that is being stopped may still write for a moment. The pauses
/// between them grow from a millisecond to a quarter of a second.
const ROUNDS: u32 = 12;

/// Name of the working directory in a sandbox. A size-limited file system may be mounted there.
pub(super) const WORK: &str = "work";

/// Removes `path` and everything below it. Links are removed but not followed. Permissions of directories that prevent
/// it are changed first. A missing path is not an error.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    unmount(path);
    #[cfg(target_os = "linux")]
    files::remove(path);
    for round in 1_u32.. {
        match fs::remove_dir_all(path) {
            Ok(()) => break,
            Err(_) if path.symlink_metadata().is_err_and(|error| error.kind() == ErrorKind::NotFound) => break,
            Err(error) if round == ROUNDS => return Err(error),
            Err(_) => {
                open_up(path);
                std::thread::sleep(Duration::from_millis(1 << round.min(8)).min(Duration::from_millis(250)));
            }
        }
    }
    Ok(())
}

/// Unmounts the file system of the working directory of a sandbox at `base`, if one is mounted there.
#[cfg(target_os = "linux")]
fn unmount(base: &Path) {
    use nix::mount::{MntFlags, umount2};
    use std::os::unix::fs::MetadataExt;
    let work = base.join(WORK);
    let device = |path: &Path| path.symlink_metadata().ok().filter(fs::Metadata::is_dir).map(|meta| meta.dev());
    if device(&work).is_some_and(|own| device(base) != Some(own)) {
        let _ = umount2(&work, MntFlags::MNT_DETACH | MntFlags::UMOUNT_NOFOLLOW);
    }
}

#[cfg(not(target_os = "linux"))]
fn unmount(_base: &Path) {}

/// Gives the owner all permissions on every directory, and read permission on every file.
pub(super) fn open_up(path: &Path) {
    let Ok(meta) = path.symlink_metadata() else { return };
    let right = match meta.file_type() {
        kind if kind.is_dir() => 0o700,
        kind if kind.is_file() => 0o400,
        _ => return,
    };
    let mode = meta.permissions().mode();
    if mode & right != right {
        let _ = fs::set_permissions(path, fs::Permissions::from_mode(mode | right));
    }
    if !meta.is_dir() {
        return;
    }
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        open_up(&entry.path());
    }
}

/// Removes the files in a tree on several threads, which is nearly all of the work.
#[cfg(target_os = "linux")]
mod files {
    use std::ffi::CString;
    use std::io;
    use std::os::fd::OwnedFd;
    use std::os::unix::ffi::OsStrExt;
    use std::path::{Path, PathBuf};

    use nix::dir::{Dir, Type};
    use nix::fcntl::{AT_FDCWD, OFlag, OpenHow, ResolveFlag, openat2};
    use nix::unistd::{UnlinkatFlags, unlinkat};

    use crate::parallel;

    /// Number of directories that a thread takes at a time.
    const AT_A_TIME: usize = 16;

    /// Removes as much as it can below the directories in `root`. The caller removes the rest and handles the errors.
    /// Entries directly in `root` stay until the end, because they identify the owner of the tree.
    pub(super) fn remove(root: &Path) {
        let Ok(root) = open(AT_FDCWD, root, ResolveFlag::empty()) else { return };
        let mut level = vec![PathBuf::from(".")];
        while !level.is_empty() {
            let below = parallel::each(&level, AT_A_TIME, |paths| {
                Ok(paths.iter().flat_map(|path| empty(&root, path).unwrap_or_default()).collect::<Vec<_>>())
            });
            level = below.unwrap_or_default().concat();
        }
    }

    /// Removes the entries of a directory except subdirectories, and returns those.
    fn empty(root: &OwnedFd, path: &Path) -> io::Result<Vec<PathBuf>> {
        // A running process may still replace a directory with a link to another location.
        let inside = ResolveFlag::RESOLVE_BENEATH | ResolveFlag::RESOLVE_NO_SYMLINKS;
        let mut directory = Dir::from_fd(open(root, path, inside)?)?;
        let mut below = Vec::new();
        let mut files: Vec<CString> = Vec::new();
        for entry in directory.iter() {
            let entry = entry?;
            let name = entry.file_name();
            match entry.file_type() {
                Some(Type::Directory) if matches!(name.to_bytes(), b"." | b"..") => {}
                Some(Type::Directory) => below.push(path.join(std::ffi::OsStr::from_bytes(name.to_bytes()))),
                Some(_) => files.push(name.to_owned()),
                None => {}
            }
        }
        let is_root = path == Path::new(".");
        for name in files.iter().filter(|_| !is_root) {
            unlinkat(&directory, name.as_c_str(), UnlinkatFlags::NoRemoveDir)?;
        }
        Ok(below)
    }

    fn open(at: impl std::os::fd::AsFd, path: &Path, resolve: ResolveFlag) -> nix::Result<OwnedFd> {
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        openat2(at, path, OpenHow::new().flags(flags).resolve(resolve))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_only_tree_is_removed_but_its_link_targets_are_not() {
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("kept"), "x").unwrap();
        let inside = tempfile::tempdir().unwrap();
        let tree = inside.path().join("tree");
        fs::create_dir_all(tree.join("a/b")).unwrap();
        fs::write(tree.join("a/b/file"), "x").unwrap();
        std::os::unix::fs::symlink(outside.path(), tree.join("a/link")).unwrap();
        fs::set_permissions(tree.join("a/b"), fs::Permissions::from_mode(0o000)).unwrap();
        fs::set_permissions(tree.join("a"), fs::Permissions::from_mode(0o500)).unwrap();
        remove(&tree).unwrap();
        assert!(!tree.exists());
        assert!(outside.path().join("kept").exists());
        remove(&tree).unwrap();
    }

    #[test]
    fn a_tree_of_many_directories_is_removed_and_a_link_in_its_place_is_not_followed() {
        let base = tempfile::tempdir().unwrap();
        for number in 0..200 {
            let directory = base.path().join(format!("tree/{}/{number}", number % 3));
            fs::create_dir_all(&directory).unwrap();
            fs::write(directory.join("file"), "x").unwrap();
            std::os::unix::fs::symlink(base.path().join("tree"), directory.join("link")).unwrap();
        }
        std::os::unix::fs::symlink("tree", base.path().join("link")).unwrap();
        remove(&base.path().join("link")).unwrap();
        assert!(base.path().join("tree/0/0/file").exists());
        assert!(!base.path().join("link").exists());
        remove(&base.path().join("tree")).unwrap();
        assert!(!base.path().join("tree").exists());
    }
}
