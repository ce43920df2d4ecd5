//! Copies of directories that an agent may have written.

use std::fs::{self, File, FileTimes, Metadata};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, OFlag};
use nix::sys::stat::{UtimensatFlags, utimensat};
use nix::sys::time::TimeSpec;
use walkdir::{DirEntry, WalkDir};

use super::deadline::Deadline;
use super::parallel;
use super::tree::BlockSharing;

/// Number of files that a thread takes at a time, and number of files that are listed before they are copied.
const AT_A_TIME: usize = 512;
const MOST_LISTED: usize = 64 * AT_A_TIME;

/// Number of bytes copied between two checks of the timeout.
const PIECE: usize = 1 << 20;

/// Maximum size of a file that is read and written with one call each, in bytes.
const ONE_GO: usize = 64 * 1024;

/// Copies the directory `from` to `to`, which must not exist yet: files, links and directories with their permissions
/// and times. Pipes, sockets and devices are omitted, as are entries that are deleted meanwhile, and entries for which
/// `skip` returns `true`, together with everything below them.
pub(super) fn copy_tree(
    from: &Path,
    to: &Path,
    deadline: Deadline,
    skip: impl FnMut(&DirEntry) -> bool,
) -> io::Result<()> {
    copy_dated_tree(from, to, deadline, skip, &|_, _| false)
}

/// Copies a directory as [`copy_tree`] does. A file for which `is_dated_back` returns `true`, given its path below `from`
/// and its metadata, gets the time of its last change, which its owner cannot set.
pub(super) fn copy_dated_tree(
    from: &Path,
    to: &Path,
    deadline: Deadline,
    mut skip: impl FnMut(&DirEntry) -> bool,
    is_dated_back: &(dyn Fn(&Path, &Metadata) -> bool + Sync),
) -> io::Result<()> {
    let mut directories: Vec<(PathBuf, Metadata)> = Vec::new();
    let mut listed: Vec<Listed> = Vec::new();
    let copy = |listed: &mut Vec<Listed>| {
        let copied = parallel::each(listed, AT_A_TIME, |files| {
            let mut copier = Copier::new(deadline);
            files.iter().try_for_each(|file| copier.listed(file, from, to, is_dated_back))
        });
        listed.clear();
        copied.map(drop)
    };
    let mut entries = WalkDir::new(from).follow_root_links(false).into_iter();
    while let Some(entry) = entries.next() {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) if error.depth() > 0 && is_gone(error.io_error()) => continue,
            Err(error) => return Err(error.into()),
        };
        deadline.check(entry.path())?;
        let (depth, kind) = (entry.depth(), entry.file_type());
        if depth == 0 && !kind.is_dir() {
            return Err(in_place(&ErrorKind::NotADirectory.into(), from));
        }
        if depth > 0 && skip(&entry) {
            if kind.is_dir() {
                entries.skip_current_dir();
            }
        } else if kind.is_dir() {
            let place = place(entry.path(), from, to);
            match make_directory(entry.path(), &place) {
                Err(error) if depth > 0 && is_gone(Some(&error)) => {}
                made => directories.push((place, made.map_err(|error| in_place(&error, entry.path()))?)),
            }
        } else if kind.is_file() || kind.is_symlink() {
            listed.push(Listed { path: entry.into_path(), is_link: kind.is_symlink() });
            if listed.len() == MOST_LISTED {
                copy(&mut listed)?;
            }
        }
    }
    copy(&mut listed)?;
    // Must come last: entries cannot be created in a read-only directory, and creating one changes its time.
    for (place, meta) in directories.into_iter().rev() {
        set_times(&place, &meta)?;
        fs::set_permissions(&place, fs::Permissions::from_mode(meta.mode() & 0o7777))?;
    }
    Ok(())
}

/// A file or link to copy.
struct Listed {
    path: PathBuf,
    is_link: bool,
}

/// Returns the place below `to` for what is at `path` below `from`.
fn place(path: &Path, from: &Path, to: &Path) -> PathBuf {
    match path.strip_prefix(from) {
        Ok(rest) if !rest.as_os_str().is_empty() => to.join(rest),
        _ => to.to_owned(),
    }
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
    Copier::new(deadline).file(from, &source, &meta, to, meta.modified()?)
}

/// Copies files one after the other.
struct Copier {
    deadline: Deadline,
    buffer: Vec<u8>,
    sharing: BlockSharing,
    /// Modes that files get exactly as requested when they are created, because the umask does not change them.
    exact: Vec<u32>,
}

impl Copier {
    fn new(deadline: Deadline) -> Self {
        Self { deadline, buffer: vec![0; ONE_GO], sharing: BlockSharing::default(), exact: Vec::new() }
    }

    /// Copies a file or link from the tree `from` to the tree `to`, unless it has been deleted or replaced meanwhile.
    fn listed(
        &mut self,
        Listed { path, is_link }: &Listed,
        from: &Path,
        to: &Path,
        is_dated_back: &(dyn Fn(&Path, &Metadata) -> bool + Sync),
    ) -> io::Result<()> {
        self.deadline.check(path)?;
        let place = place(path, from, to);
        let mut copy = || {
            if *is_link {
                return copy_link(path, &place);
            }
            let Some(source) = open_listed(path)? else { return Ok(()) };
            let meta = source.metadata()?;
            if !meta.is_file() {
                return Ok(());
            }
            let time = match is_dated_back(path.strip_prefix(from).unwrap_or(path), &meta) {
                true => time_of_change(&meta),
                false => meta.modified()?,
            };
            self.file(path, &source, &meta, &place, time)
        };
        match copy() {
            Err(error) if is_gone(Some(&error)) => Ok(()),
            copied => copied.map_err(|error| in_place(&error, path)),
        }
    }

    /// Copies the open file `source`, whose path is `from`, and gives the copy the modification time `time`.
    fn file(&mut self, from: &Path, source: &File, meta: &Metadata, to: &Path, time: SystemTime) -> io::Result<()> {
        let mode = meta.mode() & 0o7777;
        let mut copy = File::options().read(true).write(true).create_new(true).mode(mode | 0o200).open(to)?;
        if !self.sharing.share(source, &copy) {
            self.content(source, meta, &mut copy, from)?;
        }
        // Writing to a file can take away special permissions.
        if mode & 0o7000 != 0 || !self.exact.contains(&mode) {
            if copy.metadata()?.mode() & 0o7777 == mode {
                self.exact.push(mode);
            } else {
                copy.set_permissions(fs::Permissions::from_mode(mode))?;
            }
        }
        copy.set_times(FileTimes::new().set_modified(time))
    }

    fn content(&mut self, mut source: &File, meta: &Metadata, copy: &mut File, from: &Path) -> io::Result<()> {
        if meta.size() <= ONE_GO as u64 {
            let count = source.read(&mut self.buffer)?;
            copy.write_all(&self.buffer[..count])?;
            if count as u64 == meta.size() {
                return Ok(());
            }
        } else if meta.blocks().saturating_mul(512) < meta.size() && holes::copy(source, meta.size(), copy)? {
            return Ok(());
        }
        let mut piece = Vec::new();
        loop {
            piece.clear();
            if source.take(PIECE as u64).read_to_end(&mut piece)? == 0 {
                return Ok(());
            }
            copy.write_all(&piece)?;
            self.deadline.check(from)?;
        }
    }
}

/// Opens a file that was a regular one when its folder was read. Returns `None` if a link or a socket has replaced it;
/// a pipe does not block.
fn open_listed(path: &Path) -> io::Result<Option<File>> {
    let careful = (OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_NOCTTY).bits();
    match File::options().read(true).custom_flags(careful).open(path) {
        Err(error) if [Errno::ELOOP, Errno::ENXIO].iter().any(|no| error.raw_os_error() == Some(*no as i32)) => {
            Ok(None)
        }
        opened => opened.map(Some),
    }
}

/// Returns the time when a file was last changed, which its owner cannot set.
fn time_of_change(meta: &Metadata) -> SystemTime {
    let seconds = Duration::from_secs(meta.ctime().unsigned_abs());
    SystemTime::UNIX_EPOCH + seconds + Duration::from_nanos(meta.ctime_nsec().unsigned_abs())
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

#[cfg(test)]
mod tests {
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
    fn a_tree_with_many_files_is_copied_completely() {
        let base = tempfile::tempdir().unwrap();
        let [from, to] = ["from", "to"].map(|name| base.path().join(name));
        for number in 0..3 * AT_A_TIME {
            let folder = from.join(format!("{}/deep", number % 7));
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join(number.to_string()), "x".repeat(number)).unwrap();
        }
        fs::write(from.join("1/deep/8"), vec![7; ONE_GO + 1]).unwrap();
        fs::set_permissions(from.join("3/deep/3"), fs::Permissions::from_mode(0o4711)).unwrap();
        let skip = |entry: &DirEntry| entry.depth() == 1 && entry.file_name() == "6";
        copy_dated_tree(&from, &to, deadline(), skip, &|path, _| path.ends_with("8")).unwrap();
        let lists = [&from, &to].map(|tree| super::super::tree::list(tree, |path| path.starts_with("6")).unwrap());
        assert_eq!(lists[0], lists[1]);
        assert_eq!(to.join("3/deep/3").metadata().unwrap().mode() & 0o7777, 0o4711);
        let changed = to.join("1/deep/8").metadata().unwrap().modified().unwrap();
        assert_eq!(changed, time_of_change(&from.join("1/deep/8").metadata().unwrap()));
        let kind = copy_tree(&from, &to, deadline(), |_| false).unwrap_err().kind();
        assert_eq!(kind, ErrorKind::AlreadyExists);
    }

    #[test]
    fn a_link_in_place_of_a_tree_is_not_followed() {
        let base = tempfile::tempdir().unwrap();
        let [secret, link, to] = ["secret", "link", "to"].map(|name| base.path().join(name));
        fs::create_dir(&secret).unwrap();
        symlink(&secret, &link).unwrap();
        assert_eq!(copy_tree(&link, &to, deadline(), |_| false).unwrap_err().kind(), ErrorKind::NotADirectory);
        assert!(to.symlink_metadata().is_err());
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
