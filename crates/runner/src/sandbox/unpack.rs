//! Copying a template's tree, once for each trial: as few calls of the system for a file as can be, on every processor.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use nix::fcntl::{OFlag, open, openat};
use nix::sys::stat::{Mode, mode_t};

use super::shares;
use super::tree::{Item, Kind, set_time, share_blocks, time_of};

/// How many files are copied at a time.
const AT_A_TIME: usize = 512;

/// The largest file that is read and written in one go, in bytes.
const ONE_GO: usize = 64 * 1024;

/// How a directory is opened of which nothing is wanted but what is in it, by name.
#[cfg(target_os = "linux")]
const AS_PLACE: OFlag = OFlag::O_PATH.union(OFlag::O_DIRECTORY).union(OFlag::O_CLOEXEC);
#[cfg(not(target_os = "linux"))]
const AS_PLACE: OFlag = OFlag::O_DIRECTORY.union(OFlag::O_CLOEXEC);

/// Copies a template's tree, listed as `items`, into the empty directory `to`.
pub(super) fn unpack(from: &Path, items: &[Item], to: &Path) -> io::Result<()> {
    let mut closed = Vec::new();
    for Item { path, kind } in items {
        let Kind::Directory { mode } = kind else { continue };
        let place = to.join(path);
        fs::create_dir(&place)?;
        if mode & 0o700 != 0o700 {
            closed.push((place, *mode));
        }
    }
    shares::each(items, AT_A_TIME, |items| {
        let mut copier = Copier { from, to, place: None, buffer: vec![0; ONE_GO], exact: Vec::new() };
        items.iter().try_for_each(|item| copier.copy(item))
    })?;
    // Only now: nothing can be made in a directory that forbids it.
    for (place, mode) in closed.into_iter().rev() {
        fs::set_permissions(place, fs::Permissions::from_mode(mode))?;
    }
    Ok(())
}

struct Copier<'a> {
    from: &'a Path,
    to: &'a Path,
    place: Option<Place>,
    buffer: Vec<u8>,
    /// Modes that a file has at once if it is made with them: nothing is masked.
    exact: Vec<u32>,
}

/// The directory that the last file was in, in the template and in the copy.
struct Place {
    path: PathBuf,
    from: OwnedFd,
    to: OwnedFd,
}

impl Copier<'_> {
    fn copy(&mut self, Item { path, kind }: &Item) -> io::Result<()> {
        match kind {
            Kind::Directory { .. } => Ok(()),
            Kind::File { mode, size } => self.file(path, *mode, *size),
            Kind::Link { target } => {
                let place = self.to.join(path);
                symlink(target, &place)?;
                set_time(&place, time_of(path))
            }
        }
    }

    fn file(&mut self, path: &Path, mode: u32, size: u64) -> io::Result<()> {
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let Place { from, to, .. } = self.place(path.parent().unwrap_or(Path::new("")))?;
        let mut source = File::from(openat(from, name, OFlag::O_RDONLY | OFlag::O_CLOEXEC, Mode::empty())?);
        let new = OFlag::O_RDWR | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_CLOEXEC;
        let mut copy = File::from(openat(to, name, new, Mode::from_bits_truncate(mode as mode_t))?);
        if !share_blocks(&source, &copy) {
            self.content(&mut source, &mut copy, size)?;
        }
        if !self.exact.contains(&mode) {
            if copy.metadata()?.permissions().mode() & 0o777 == mode {
                self.exact.push(mode);
            } else {
                copy.set_permissions(fs::Permissions::from_mode(mode))?;
            }
        }
        copy.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(time_of(path)))
    }

    fn content(&mut self, source: &mut File, copy: &mut File, size: u64) -> io::Result<()> {
        if size <= ONE_GO as u64 {
            let count = source.read(&mut self.buffer)?;
            copy.write_all(&self.buffer[..count])?;
            if count as u64 == size {
                return Ok(());
            }
        }
        io::copy(source, copy).map(drop)
    }

    fn place(&mut self, path: &Path) -> io::Result<&Place> {
        let place = match self.place.take() {
            Some(place) if place.path == path => place,
            _ => {
                let [from, to] = [self.from, self.to].map(|root| open(&root.join(path), AS_PLACE, Mode::empty()));
                Place { path: path.to_owned(), from: from?, to: to? }
            }
        };
        Ok(self.place.insert(place))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::super::tree::{FIXTURE_TIME, REPOSITORY_TIME, list};
    use super::*;

    #[test]
    fn an_unpacked_tree_has_the_same_files_modes_and_times() {
        let base = tempfile::tempdir().unwrap();
        let [from, to] = ["from", "to"].map(|name| base.path().join(name));
        fs::create_dir_all(from.join(".git")).unwrap();
        fs::create_dir(from.join("closed")).unwrap();
        fs::create_dir(&to).unwrap();
        for file in ["a", ".git/index", "closed/b"] {
            fs::write(from.join(file), file).unwrap();
        }
        fs::write(from.join("large"), vec![7; 3 * ONE_GO + 1]).unwrap();
        fs::write(from.join("empty"), "").unwrap();
        symlink("a", from.join("link")).unwrap();
        for (path, mode) in [("a", 0o755), ("empty", 0o666), ("large", 0o400), ("closed", 0o500)] {
            fs::set_permissions(from.join(path), fs::Permissions::from_mode(mode)).unwrap();
        }
        let items = list(&from, |_| false).unwrap();
        unpack(&from, &items, &to).unwrap();
        assert_eq!(list(&to, |_| false).unwrap(), items);
        for file in ["a", ".git/index", "closed/b", "large", "empty"] {
            assert_eq!(fs::read(from.join(file)).unwrap(), fs::read(to.join(file)).unwrap(), "{file}");
        }
        let changed = |path: &str| to.join(path).symlink_metadata().unwrap().mtime().unsigned_abs();
        assert_eq!(["a", "link", "closed/b"].map(changed), [FIXTURE_TIME; 3]);
        assert_eq!(changed(".git/index"), REPOSITORY_TIME);
    }

    #[test]
    fn a_tree_of_many_files_is_unpacked_whole() {
        let base = tempfile::tempdir().unwrap();
        let [from, to] = ["from", "to"].map(|name| base.path().join(name));
        fs::create_dir(&to).unwrap();
        for number in 0..3 * AT_A_TIME {
            let directory = from.join(format!("{}/deep", number % 7));
            fs::create_dir_all(&directory).unwrap();
            fs::write(directory.join(number.to_string()), number.to_string()).unwrap();
        }
        let items = list(&from, |_| false).unwrap();
        unpack(&from, &items, &to).unwrap();
        assert_eq!(list(&to, |_| false).unwrap(), items);
        assert_eq!(fs::read_to_string(to.join("3/deep/101")).unwrap(), "101");
        assert_eq!(unpack(&from, &items, &to).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
    }
}
