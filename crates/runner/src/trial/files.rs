//! What files there are in a working directory, and what is in the small ones.

use std::cmp::Reverse;
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use model::{FoundFile, Probed};
use nix::fcntl::OFlag;
use walkdir::WalkDir;

/// The most files that are named.
const MOST_FILES: usize = 20_000;

/// The longest file that is read, in bytes.
const SMALL: u64 = 4 * 1024;

/// How much is read of all files together, in bytes.
const MOST_TEXT: usize = 64 * 1024;

/// Everything below `work` but repositories.
pub(super) async fn below(work: &Path) -> Probed {
    let work = work.to_owned();
    match tokio::task::spawn_blocking(move || list(&work)).await {
        Ok(Ok((files, clipped))) => Probed::Files { files, clipped },
        Ok(Err(error)) => Probed::Failed { because: error.to_string() },
        Err(_) => Probed::Failed { because: "looking for files did not come to an end".into() },
    }
}

/// A file that may be read.
struct Small {
    at: usize,
    path: PathBuf,
    changed: SystemTime,
}

fn list(work: &Path) -> io::Result<(Vec<FoundFile>, bool)> {
    let mut files = Vec::new();
    let mut small = Vec::new();
    let mut clipped = false;
    let walk = WalkDir::new(work).min_depth(1).sort_by_file_name().into_iter();
    for entry in walk.filter_entry(|entry| entry.file_name() != ".git") {
        // What cannot be read any more counts as gone.
        let Ok(entry) = entry else { continue };
        let is_directory = entry.file_type().is_dir();
        if is_directory && entry.path().read_dir().is_ok_and(|mut inside| inside.next().is_some()) {
            continue;
        }
        if files.len() == MOST_FILES {
            clipped = true;
            break;
        }
        let name = entry.path().strip_prefix(work).unwrap_or(entry.path()).to_string_lossy();
        let path = if is_directory { format!("{name}/") } else { name.into_owned() };
        let known = entry.metadata().ok().filter(Metadata::is_file);
        if let Some(known) = known.as_ref().filter(|known| known.len() <= SMALL) {
            let changed = known.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            small.push(Small { at: files.len(), path: entry.path().to_owned(), changed });
        }
        files.push(FoundFile { path, size: known.map_or(0, |known| known.len()), text: None });
    }
    Ok((read_newest(files, small), clipped))
}

/// Reads small files, those first that were changed last, until it is enough.
fn read_newest(mut files: Vec<FoundFile>, mut small: Vec<Small>) -> Vec<FoundFile> {
    small.sort_by_key(|file| Reverse(file.changed));
    let mut left = MOST_TEXT;
    for Small { at, path, .. } in small {
        let Some(text) = text(&path) else { continue };
        let Some(rest) = left.checked_sub(text.len()) else { break };
        left = rest;
        files[at].text = Some(text);
    }
    files.sort_by(|one, other| one.path.cmp(&other.path));
    files
}

/// What is in a small file, if it is text. Whatever took its place meanwhile is neither followed nor waited for.
fn text(path: &Path) -> Option<String> {
    let flags = (OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK).bits();
    let file: File = OpenOptions::new().read(true).custom_flags(flags).open(path).ok()?;
    file.metadata().ok().filter(Metadata::is_file)?;
    let mut bytes = Vec::new();
    file.take(SMALL + 1).read_to_end(&mut bytes).ok()?;
    (bytes.len() as u64 <= SMALL).then(|| String::from_utf8(bytes).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn every_file_is_named_and_small_ones_are_read() {
        let base = tempfile::tempdir().unwrap();
        let work = base.path();
        for folder in [".git", "src", "empty"] {
            fs::create_dir(work.join(folder)).unwrap();
        }
        fs::write(work.join(".git/config"), "secret").unwrap();
        fs::write(work.join("src/app.py"), "print(1)").unwrap();
        fs::write(work.join("long"), "x".repeat(5000)).unwrap();
        fs::write(work.join("binary"), [0xff, 0xfe]).unwrap();
        symlink("/etc/passwd", work.join("link")).unwrap();
        let (files, clipped) = list(work).unwrap();
        let told: Vec<(&str, Option<&str>)> =
            files.iter().map(|file| (file.path.as_str(), file.text.as_deref())).collect();
        let expected =
            [("binary", None), ("empty/", None), ("link", None), ("long", None), ("src/app.py", Some("print(1)"))];
        assert_eq!((told.as_slice(), clipped), (&expected[..], false));
        assert_eq!(files[3].size, 5000);
    }

    #[test]
    fn no_more_is_read_than_anybody_wants_and_the_newest_first() {
        let base = tempfile::tempdir().unwrap();
        for number in 0..40 {
            let path = base.path().join(format!("{number:02}"));
            fs::write(&path, "x".repeat(4000)).unwrap();
            let file = File::options().write(true).open(&path).unwrap();
            file.set_modified(SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(number)).unwrap();
        }
        let (files, _) = list(base.path()).unwrap();
        let read: Vec<&str> = files.iter().filter(|file| file.text.is_some()).map(|file| file.path.as_str()).collect();
        assert_eq!(read.len(), MOST_TEXT / 4000);
        assert_eq!((read.first().copied(), read.last().copied()), (Some("24"), Some("39")));
    }
}
