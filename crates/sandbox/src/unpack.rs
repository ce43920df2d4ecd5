//! Copies a template's tree for each trial, with as few system calls per file as possible and on several threads.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use nix::fcntl::{OFlag, open, openat};
use nix::sys::stat::{Mode, mode_t};

use super::parallel;
use super::tree::{BlockSharing, Item, Kind, set_time, time_of};

/// Number of files that a thread takes at a time.
const AT_A_TIME: usize = 512;

/// Maximum size of a file that is read and written with one call each, in bytes.
const ONE_GO: usize = 64 * 1024;

/// Maximum size of a file whose content a template keeps in memory, and of all of them together, in bytes. For most
/// files, opening, reading and closing takes longer than copying the content.
const SMALL: u64 = 4 * 1024;
const KEPT: u64 = 32 * 1024 * 1024;

/// Flags for opening a directory that is only used to address its entries by name.
#[cfg(target_os = "linux")]
const AS_PLACE: OFlag = OFlag::O_PATH.union(OFlag::O_DIRECTORY).union(OFlag::O_CLOEXEC);
#[cfg(not(target_os = "linux"))]
const AS_PLACE: OFlag = OFlag::O_DIRECTORY.union(OFlag::O_CLOEXEC);

/// Loads the content of the small files below `from` into memory for [`unpack`], up to the limit.
pub(super) fn keep_small(from: &Path, items: &mut [Item]) -> io::Result<()> {
    let mut room = KEPT;
    for Item { path, kind } in items {
        let Kind::File { size, content, .. } = kind else { continue };
        let Some(left) = room.checked_sub(*size).filter(|_| *size <= SMALL) else { continue };
        let read = fs::read(from.join(path))?;
        if read.len() as u64 == *size {
            *content = Some(read.into());
            room = left;
        }
    }
    Ok(())
}

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
    parallel::each(items, AT_A_TIME, |items| {
        let (buffer, sharing) = (vec![0; ONE_GO], BlockSharing::default());
        let mut copier = Copier { from, to, place: None, buffer, sharing, exact: Vec::new() };
        items.iter().try_for_each(|item| copier.copy(item))
    })?;
    // Must come last: entries cannot be created in a read-only directory.
    for (place, mode) in closed.into_iter().rev() {
        fs::set_permissions(place, fs::Permissions::from_mode(mode))?;
    }
    Ok(())
}

struct Copier<'a> {
    from: &'a Path,
    to: &'a Path,
    place: Option<Directories>,
    buffer: Vec<u8>,
    sharing: BlockSharing,
    /// Modes that files get exactly as requested when they are created, because the umask does not change them.
    exact: Vec<u32>,
}

/// Directory of the last copied file, in the template and in the copy.
struct Directories {
    path: PathBuf,
    from: OwnedFd,
    to: OwnedFd,
}

impl Copier<'_> {
    fn copy(&mut self, Item { path, kind }: &Item) -> io::Result<()> {
        match kind {
            Kind::Directory { .. } => Ok(()),
            Kind::File { mode, size, content } => self.file(path, *mode, *size, content.as_deref()),
            Kind::Link { target } => {
                let place = self.to.join(path);
                symlink(target, &place)?;
                set_time(&place, time_of(path))
            }
        }
    }

    fn file(&mut self, path: &Path, mode: u32, size: u64, content: Option<&[u8]>) -> io::Result<()> {
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let content = content.filter(|_| !self.sharing.is_possible());
        let Directories { from, to, .. } = self.place(path.parent().unwrap_or(Path::new("")))?;
        let new = OFlag::O_RDWR | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_CLOEXEC;
        let mut copy = File::from(openat(to, name, new, Mode::from_bits_truncate(mode as mode_t))?);
        if let Some(content) = content {
            copy.write_all(content)?;
        } else {
            let mut source = File::from(openat(from, name, OFlag::O_RDONLY | OFlag::O_CLOEXEC, Mode::empty())?);
            if !self.sharing.share(&source, &copy) {
                self.content(&mut source, &mut copy, size)?;
            }
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

    fn place(&mut self, path: &Path) -> io::Result<&Directories> {
        let place = match self.place.take() {
            Some(place) if place.path == path => place,
            _ => {
                let [from, to] = [self.from, self.to].map(|root| open(&root.join(path), AS_PLACE, Mode::empty()));
                Directories { path: path.to_owned(), from: from?, to: to? }
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
        let mut items = list(&from, |_| false).unwrap();
        unpack(&from, &items, &to).unwrap();
        assert_eq!(list(&to, |_| false).unwrap(), items);
        for file in ["a", ".git/index", "closed/b", "large", "empty"] {
            assert_eq!(fs::read(from.join(file)).unwrap(), fs::read(to.join(file)).unwrap(), "{file}");
        }
        let changed = |path: &str| to.join(path).symlink_metadata().unwrap().mtime().unsigned_abs();
        assert_eq!(["a", "link", "closed/b"].map(changed), [FIXTURE_TIME; 3]);
        assert_eq!(changed(".git/index"), REPOSITORY_TIME);

        // Copies again, now with small files from memory.
        let listed = items.clone();
        keep_small(&from, &mut items).unwrap();
        let is_kept = |item: &&Item| matches!(&item.kind, Kind::File { content: Some(_), .. });
        assert_eq!(items.iter().filter(is_kept).count(), 4, "all but the large one");
        let again = base.path().join("again");
        fs::create_dir(&again).unwrap();
        unpack(&from, &items, &again).unwrap();
        assert_eq!(list(&again, |_| false).unwrap(), listed);
        for file in ["a", ".git/index", "closed/b", "large", "empty"] {
            assert_eq!(fs::read(from.join(file)).unwrap(), fs::read(again.join(file)).unwrap(), "{file}");
        }
    }

    #[test]
    fn a_tree_with_many_files_is_unpacked_completely() {
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
