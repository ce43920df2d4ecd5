//! Reads files that this program did not write: files written by an agent, and files whose path was given by a user.
//!
//! Only regular files are opened, so a pipe or a device never blocks the caller, and no more is read than the caller
//! asked for. A file below a folder is read only if no link leads out of that folder. [`parallel::map`] distributes
//! work on many files over threads.
//!
//! ```
//! use std::path::Path;
//!
//! use trialrun_files::{Found, find, read};
//!
//! # fn main() -> std::io::Result<()> {
//! let folder = tempfile::tempdir()?;
//! let folder = folder.path().canonicalize()?;
//! std::fs::write(folder.join("notes.txt"), "hello")?;
//! let Found::File(notes) = find(&folder, Path::new("notes.txt"))? else { panic!("the file is there") };
//! assert_eq!(read(&notes, 1024)?, b"hello");
//! assert_eq!(find(&folder, Path::new("../notes.txt"))?, Found::Outside);
//! # Ok(())
//! # }
//! ```

mod link;
pub mod parallel;
mod text;

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use nix::fcntl::OFlag;
use nix::libc;

pub use link::{Followed, follow};
pub use text::{NotUtf8, decode};

/// Entry at a path below a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// There is no entry.
    Nothing,
    /// A directory, with its real path.
    Directory(PathBuf),
    /// A regular file, with its real path.
    File(PathBuf),
    /// A pipe, a socket, a device, or a broken link.
    Special,
    /// The path points outside the folder, so the entry was not examined.
    Outside,
}

/// Examines `path` below `folder`, which must be a canonical path. Links inside `folder` are followed.
///
/// # Errors
/// Returns an error if the system denies access.
pub fn find(folder: &Path, path: &Path) -> io::Result<Found> {
    let written = folder.join(path);
    let parent = match written.parent().unwrap_or(folder).canonicalize() {
        Err(error) if is_missing(&error) => return Ok(Found::Nothing),
        parent => parent?,
    };
    // The last component is not resolved together with its parent, because a broken link still counts as an entry.
    let (Some(name), true) = (written.file_name(), parent.starts_with(folder)) else { return Ok(Found::Outside) };
    let there = parent.join(name);
    match there.symlink_metadata() {
        Err(error) if is_missing(&error) => return Ok(Found::Nothing),
        seen => seen?,
    };
    let real = match there.canonicalize() {
        Err(error) if is_missing(&error) || error.raw_os_error() == Some(libc::ELOOP) => return Ok(Found::Special),
        real => real?,
    };
    if !real.starts_with(folder) {
        return Ok(Found::Outside);
    }
    let kind = real.symlink_metadata()?.file_type();
    Ok(if kind.is_dir() {
        Found::Directory(real)
    } else if kind.is_file() {
        Found::File(real)
    } else {
        Found::Special
    })
}

fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::InvalidFilename)
}

/// Opens a regular file for reading. A link in the last component of `path` is not followed, and opening a pipe does
/// not block.
///
/// # Errors
/// Returns an error if the file does not exist, is not a regular file, or cannot be opened.
pub fn open(path: &Path) -> io::Result<File> {
    if !path.symlink_metadata()?.is_file() {
        return Err(not_regular());
    }
    // Another kind of file may have replaced it since the check.
    let careful = (OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK).bits();
    let file = OpenOptions::new().read(true).custom_flags(careful).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(not_regular()) }
}

fn not_regular() -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, "it is not a regular file")
}

/// Reads a regular file of at most `most` bytes that an agent may have written. A link in the last component is not
/// followed.
///
/// # Errors
/// See [`open`]; also returns an error if the file is larger than `most`.
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    open(path)?.take(most.saturating_add(1)).read_to_end(&mut content)?;
    if content.len() as u64 > most {
        return Err(io::Error::new(ErrorKind::FileTooLarge, format!("it is larger than {}", size(most))));
    }
    Ok(content)
}

/// Reads a file of at most `most` bytes whose path a user typed. Links are followed.
///
/// # Errors
/// See [`read`]; also returns an error if the path is a directory.
pub fn read_named(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    if fs::metadata(path)?.is_dir() {
        return Err(io::Error::new(ErrorKind::IsADirectory, "it is a directory"));
    }
    read(&path.canonicalize()?, most)
}

/// Reads a text file of at most `most` bytes whose path a user typed, without its byte order mark. Links are followed.
///
/// # Errors
/// See [`read_named`]; also returns an error if the file is not UTF-8.
pub fn read_named_text(path: &Path, most: u64) -> io::Result<String> {
    decode(read_named(path, most)?).map_err(|error| io::Error::new(ErrorKind::InvalidData, error.to_string()))
}

fn size(bytes: u64) -> String {
    match bytes >> 20 {
        0 => format!("{} KiB", bytes >> 10),
        mebibytes => format!("{mebibytes} MiB"),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use nix::sys::stat::Mode;

    use super::*;

    #[test]
    fn only_entries_inside_the_folder_are_found_and_inner_links_are_followed() {
        let base = tempfile::tempdir().unwrap();
        let base = base.path().canonicalize().unwrap();
        let folder = base.join("in");
        fs::create_dir_all(folder.join("sub")).unwrap();
        fs::write(base.join("secret"), "s").unwrap();
        fs::write(folder.join("sub/file"), "x").unwrap();
        for (target, link) in [("../secret", "out"), ("sub/file", "alias"), ("nowhere", "dangling"), ("loop", "loop")] {
            symlink(target, folder.join(link)).unwrap();
        }
        symlink(&base, folder.join("up")).unwrap();
        nix::unistd::mkfifo(&folder.join("pipe"), Mode::S_IRWXU).unwrap();
        let at = |path: &str| find(&folder, Path::new(path)).unwrap();
        for path in ["sub/file", "alias", "sub/../alias"] {
            assert_eq!(at(path), Found::File(folder.join("sub/file")), "{path}");
        }
        assert_eq!(at("sub"), Found::Directory(folder.join("sub")));
        for path in ["gone", "gone/file", "sub/file/x"] {
            assert_eq!(at(path), Found::Nothing, "{path}");
        }
        for path in ["pipe", "dangling", "loop"] {
            assert_eq!(at(path), Found::Special, "{path}");
        }
        for path in ["out", "up/secret", "up/gone", "../secret", "/etc/passwd", "sub/../../secret"] {
            assert_eq!(at(path), Found::Outside, "{path}");
        }
    }

    #[test]
    fn pipes_devices_directories_and_links_are_rejected_immediately() {
        let base = tempfile::tempdir().unwrap();
        nix::unistd::mkfifo(&base.path().join("pipe"), Mode::S_IRWXU).unwrap();
        fs::write(base.path().join("file"), "x").unwrap();
        symlink("file", base.path().join("link")).unwrap();
        symlink("/dev/zero", base.path().join("zero")).unwrap();
        for name in ["pipe", "link", "zero", "."] {
            let error = read(&base.path().join(name), 9).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{name}: {error}");
        }
        assert_eq!(read_named(&base.path().join("link"), 9).unwrap(), b"x");
        for name in ["pipe", "zero"] {
            let error = read_named(&base.path().join(name), 9).unwrap_err();
            assert_eq!(error.to_string(), "it is not a regular file", "{name}");
        }
        assert_eq!(read_named(base.path(), 9).unwrap_err().to_string(), "it is a directory");
    }

    #[test]
    fn a_file_that_is_too_large_is_not_read_to_its_end() {
        let base = tempfile::tempdir().unwrap();
        let path = base.path().join("file");
        let file = File::create(&path).unwrap();
        file.set_len(1 << 40).unwrap();
        let error = read(&path, 1 << 20).unwrap_err();
        assert_eq!((error.kind(), error.to_string().as_str()), (ErrorKind::FileTooLarge, "it is larger than 1 MiB"));
        file.set_len(3).unwrap();
        assert_eq!(read(&path, 3).unwrap(), [0; 3]);
        fs::write(&path, [0xff]).unwrap();
        assert_eq!(read_named_text(&path, 3).unwrap_err().to_string(), "it is not UTF-8 text");
    }
}
