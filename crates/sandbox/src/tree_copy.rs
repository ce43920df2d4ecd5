//! Copies of directories that an agent may have written.

use std::fs::{self, File, FileTimes, Metadata};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use nix::fcntl::AT_FDCWD;
use nix::sys::stat::{UtimensatFlags, utimensat};
use nix::sys::time::TimeSpec;
use walkdir::{DirEntry, WalkDir};

use super::deadline::Deadline;
use super::tree::share_blocks;

/// Number of bytes copied between two checks of the timeout.
const PIECE: usize = 1 << 20;

/// Copies the directory `from` to `to`, which must not exist yet: files, links and directories with their permissions
/// and times. Pipes, sockets and devices are omitted, as are entries that are deleted meanwhile, and entries for which
/// `skip` returns `true`, together with everything below them.
pub(super) fn copy_tree(
    from: &Path,
    to: &Path,
    deadline: Deadline,
    mut skip: impl FnMut(&DirEntry) -> bool,
) -> io::Result<()> {
    let mut directories: Vec<(PathBuf, Metadata)> = Vec::new();
    let mut entries = WalkDir::new(from).into_iter();
    while let Some(entry) = entries.next() {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) if error.depth() > 0 && is_gone(error.io_error()) => continue,
            Err(error) => return Err(error.into()),
        };
        deadline.check(entry.path())?;
        if entry.depth() > 0 && skip(&entry) {
            if entry.file_type().is_dir() {
                entries.skip_current_dir();
            }
            continue;
        }
        let place = match entry.path().strip_prefix(from) {
            Ok(rest) if !rest.as_os_str().is_empty() => to.join(rest),
            _ => to.to_owned(),
        };
        let copied = if entry.file_type().is_dir() {
            make_directory(entry.path(), &place).map(|meta| directories.push((place, meta)))
        } else if entry.file_type().is_symlink() {
            copy_link(entry.path(), &place)
        } else if entry.file_type().is_file() {
            copy_file(entry.path(), &place, deadline)
        } else {
            Ok(())
        };
        match copied {
            Err(error) if entry.depth() > 0 && is_gone(Some(&error)) => {}
            copied => copied.map_err(|error| in_place(&error, entry.path()))?,
        }
    }
    // Must come last: entries cannot be created in a read-only directory, and creating one changes its time.
    for (place, meta) in directories.into_iter().rev() {
        set_times(&place, &meta)?;
        fs::set_permissions(&place, fs::Permissions::from_mode(meta.mode() & 0o7777))?;
    }
    Ok(())
}

/// Creates a directory and returns the metadata of `from`, whose permissions and times it must get.
fn make_directory(from: &Path, to: &Path) -> io::Result<Metadata> {
    let meta = fs::symlink_metadata(from)?;
    fs::create_dir(to)?;
    Ok(meta)
}

fn is_gone(error: Option<&io::Error>) -> bool {
    error.is_some_and(|error| error.kind() == ErrorKind::NotFound)
}

fn in_place(error: &io::Error, path: &Path) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// Copies a link with its time to a path that does not exist yet.
pub(super) fn copy_link(from: &Path, to: &Path) -> io::Result<()> {
    symlink(fs::read_link(from)?, to)?;
    set_times(to, &fs::symlink_metadata(from)?)
}

/// Copies a regular file with its permissions and time to a path that does not exist yet. Anything else is omitted.
pub(super) fn copy_file(from: &Path, to: &Path, deadline: Deadline) -> io::Result<()> {
    let source = match files::open(from) {
        // It was meanwhile replaced by another kind of file.
        Err(error) if error.kind() == ErrorKind::InvalidInput => return Ok(()),
        source => source?,
    };
    let meta = source.metadata()?;
    let mode = meta.mode() & 0o7777;
    let mut copy = File::options().read(true).write(true).create_new(true).mode(mode | 0o200).open(to)?;
    if !share_blocks(&source, &copy) {
        copy_content(&source, &meta, &mut copy, from, deadline)?;
    }
    if copy.metadata()?.mode() & 0o7777 != mode {
        copy.set_permissions(fs::Permissions::from_mode(mode))?;
    }
    copy.set_times(FileTimes::new().set_modified(meta.modified()?))
}

fn copy_content(source: &File, meta: &Metadata, copy: &mut File, from: &Path, deadline: Deadline) -> io::Result<()> {
    if meta.blocks().saturating_mul(512) < meta.size() && holes::copy(source, meta.size(), copy)? {
        return Ok(());
    }
    let mut piece = Vec::new();
    loop {
        piece.clear();
        if source.take(PIECE as u64).read_to_end(&mut piece)? == 0 {
            return Ok(());
        }
        copy.write_all(&piece)?;
        deadline.check(from)?;
    }
}

/// Copies sparse files: a file of terabytes may consist of holes only.
mod holes {
    use std::fs::File;
    use std::io;
    #[cfg(target_os = "linux")]
    use std::os::unix::fs::FileExt;

    /// Copies the data between the holes. Returns `false` if the system cannot locate the holes.
    #[cfg(target_os = "linux")]
    pub(super) fn copy(source: &File, size: u64, to: &File) -> io::Result<bool> {
        use nix::errno::Errno;
        use nix::unistd::{Whence, lseek};
        to.set_len(size)?;
        let mut piece = vec![0; super::PIECE];
        let mut at = 0;
        loop {
            let from = match lseek(source, at, Whence::SeekData) {
                Ok(from) => from,
                Err(Errno::ENXIO) => return Ok(true),
                Err(_) if at == 0 => return Ok(false),
                Err(error) => return Err(error.into()),
            };
            let end = lseek(source, from, Whence::SeekHole)?;
            at = end;
            let (mut next, end) = (from.unsigned_abs(), end.unsigned_abs());
            while next < end {
                let most = usize::try_from(end - next).unwrap_or(usize::MAX).min(piece.len());
                let count = source.read_at(&mut piece[..most], next)?;
                if count == 0 {
                    return Ok(true);
                }
                to.write_all_at(&piece[..count], next)?;
                next += count as u64;
            }
        }
    }

    #[cfg(not(target_os = "linux"))]
    pub(super) fn copy(_: &File, _: u64, _: &File) -> io::Result<bool> {
        Ok(false)
    }
}

/// Sets the times of `place` to those in `meta`. If it is a link, the link's own times are set.
fn set_times(place: &Path, meta: &Metadata) -> io::Result<()> {
    let read = TimeSpec::new(meta.atime(), meta.atime_nsec());
    let changed = TimeSpec::new(meta.mtime(), meta.mtime_nsec());
    utimensat(AT_FDCWD, place, &read, &changed, UtimensatFlags::NoFollowSymlink)?;
    Ok(())
}

/// Sets the modification time of `copy` to the time when `original` was last changed, which its owner cannot set.
pub(super) fn set_time_of_change(copy: &Path, original: &Path) -> io::Result<()> {
    let meta = original.symlink_metadata()?;
    let changed = TimeSpec::new(meta.ctime(), meta.ctime_nsec());
    utimensat(AT_FDCWD, copy, &changed, &changed, UtimensatFlags::NoFollowSymlink)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::*;

    fn deadline() -> Deadline {
        Deadline::new(Duration::from_secs(60), "setup_timeout")
    }

    #[test]
    fn a_copy_has_the_same_files_modes_times_and_links() {
        let base = tempfile::tempdir().unwrap();
        let from = base.path().join("from");
        fs::create_dir_all(from.join("closed/deep")).unwrap();
        fs::write(from.join("closed/deep/tool"), "#!/bin/sh").unwrap();
        fs::write(from.join("plain"), [0, 159, 146]).unwrap();
        symlink("nowhere", from.join("link")).unwrap();
        nix::unistd::mkfifo(&from.join("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        fs::set_permissions(from.join("closed/deep/tool"), fs::Permissions::from_mode(0o555)).unwrap();
        let old = SystemTime::UNIX_EPOCH + Duration::new(1_000_000_000, 5);
        File::options().write(true).open(from.join("plain")).unwrap().set_modified(old).unwrap();
        fs::set_permissions(from.join("closed"), fs::Permissions::from_mode(0o555)).unwrap();
        let to = base.path().join("to");
        copy_tree(&from, &to, deadline(), |_| false).unwrap();
        assert_eq!(fs::read(to.join("plain")).unwrap(), [0, 159, 146]);
        assert_eq!(fs::read_link(to.join("link")).unwrap(), Path::new("nowhere"));
        assert!(to.join("pipe").symlink_metadata().is_err());
        for path in ["plain", "closed", "closed/deep", "closed/deep/tool"] {
            let [one, two] = [&from, &to].map(|tree| tree.join(path).symlink_metadata().unwrap());
            assert_eq!(one.mode(), two.mode(), "{path}");
            assert_eq!(one.modified().unwrap(), two.modified().unwrap(), "{path}");
        }
        for tree in [&from, &to] {
            fs::set_permissions(tree.join("closed"), fs::Permissions::from_mode(0o755)).unwrap();
        }
    }

    #[test]
    fn a_sparse_file_stays_sparse_when_copied() {
        let base = tempfile::tempdir().unwrap();
        let from = base.path().join("from");
        fs::create_dir(&from).unwrap();
        let file = File::create(from.join("hole")).unwrap();
        std::os::unix::fs::FileExt::write_all_at(&file, b"end", 1 << 36).unwrap();
        let to = base.path().join("to");
        copy_tree(&from, &to, deadline(), |_| false).unwrap();
        let copy = to.join("hole").metadata().unwrap();
        assert_eq!(copy.size(), (1 << 36) + 3);
        assert!(copy.blocks() < 1 << 16);
        let mut end = [0; 3];
        std::os::unix::fs::FileExt::read_exact_at(&File::open(to.join("hole")).unwrap(), &mut end, 1 << 36).unwrap();
        assert_eq!(&end, b"end");
    }

    #[test]
    fn an_error_about_an_expired_deadline_includes_the_last_path() {
        let base = tempfile::tempdir().unwrap();
        let over = Deadline::new(Duration::ZERO, "setup_timeout");
        let error = copy_tree(base.path(), &base.path().join("to"), over, |_| false).unwrap_err();
        assert!(error.to_string().contains("setup_timeout"), "{error}");
    }
}
