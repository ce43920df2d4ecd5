//! Lists the files in a working directory, with the content of the small ones and of those that the agent changed.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::fs::Metadata;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use model::{FileChange, FoundFile, Probed};
use walkdir::WalkDir;

/// Maximum number of files that are listed.
const MOST_FILES: usize = 20_000;

/// Maximum size of a file that counts as small and is read, in bytes.
const SMALL: u64 = 4 * 1024;

/// Maximum total size of all small files that are read, in bytes.
const MOST_TEXT: usize = 64 * 1024;

/// Maximum number of small files that are read.
const MOST_SMALL: usize = 512;

/// Maximum size of a file that is read because the agent changed it, in bytes.
const CHANGED: u64 = 256 * 1024;

/// Maximum total size of all changed files that are read, in bytes.
const MOST_CHANGED: usize = 4 * 1024 * 1024;

/// Maximum number of changed files that are read, and that are listed beyond [`MOST_FILES`].
const MOST_AGENTS: usize = 4096;

/// Lists everything below `work` except repositories, with the content of small files and of those in `changed`.
pub(super) async fn below(work: &Path, changed: &[FileChange]) -> Probed {
    let work = work.to_owned();
    let changed: HashSet<String> = changed.iter().map(|file| file.path.clone()).collect();
    match tokio::task::spawn_blocking(move || list(&work, &changed)).await {
        Ok(Ok((files, clipped))) => Probed::Files { files, clipped },
        Ok(Err(error)) => Probed::Failed { reason: error.to_string() },
        Err(_) => Probed::Failed { reason: "listing the files did not finish".into() },
    }
}

/// A file that may be read.
struct Readable {
    at: usize,
    path: PathBuf,
    changed: SystemTime,
    /// `true` if the agent changed it.
    is_agents: bool,
}

fn list(work: &Path, changed: &HashSet<String>) -> io::Result<(Vec<FoundFile>, bool)> {
    let mut files = Vec::new();
    let mut readable = Vec::new();
    let mut clipped = false;
    let walk = WalkDir::new(work).min_depth(1).sort_by_file_name().into_iter();
    for entry in walk.filter_entry(|entry| entry.file_name() != ".git") {
        // Entries that can no longer be read count as deleted.
        let Ok(entry) = entry else { continue };
        let is_directory = entry.file_type().is_dir();
        if is_directory && entry.path().read_dir().is_ok_and(|mut inside| inside.next().is_some()) {
            continue;
        }
        let name = entry.path().strip_prefix(work).unwrap_or(entry.path()).to_string_lossy();
        let path = if is_directory { format!("{name}/") } else { name.into_owned() };
        let is_agents = changed.contains(&path);
        // Files that the agent changed are listed, however many others there are.
        if files.len() >= MOST_FILES && !is_agents {
            clipped = true;
            if changed.is_empty() {
                break;
            }
            continue;
        }
        if files.len() >= MOST_FILES + MOST_AGENTS {
            clipped = true;
            break;
        }
        let known = entry.metadata().ok().filter(Metadata::is_file);
        let most = if is_agents { CHANGED } else { SMALL };
        if let Some(known) = known.as_ref().filter(|known| known.len() <= most) {
            let changed = known.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            readable.push(Readable { at: files.len(), path: entry.path().to_owned(), changed, is_agents });
        }
        files.push(FoundFile { path, size: known.map_or(0, |known| known.len()), text: None });
    }
    Ok((read(files, readable), clipped))
}

/// Reads files, the most recently changed ones first, up to the limits.
fn read(mut files: Vec<FoundFile>, mut readable: Vec<Readable>) -> Vec<FoundFile> {
    readable.sort_by_key(|file| Reverse(file.changed));
    let (mut small, mut agents) = (Some((MOST_TEXT, MOST_SMALL)), Some((MOST_CHANGED, MOST_AGENTS)));
    for Readable { at, path, is_agents, .. } in readable {
        let (left, most) = if is_agents { (&mut agents, CHANGED) } else { (&mut small, SMALL) };
        let Some((room, count)) = *left else { continue };
        let Some(text) = text(&path, most) else { continue };
        *left = room.checked_sub(text.len()).zip(count.checked_sub(1));
        if left.is_some() {
            files[at].text = Some(text);
        }
    }
    files.sort_by(|one, other| one.path.cmp(&other.path));
    files
}

/// Returns the content of a file with at most `most` bytes, if it is text.
fn text(path: &Path, most: u64) -> Option<String> {
    String::from_utf8(::files::read(path, most).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn every_file_is_listed_and_small_ones_are_read() {
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
        let (files, clipped) = list(work, &HashSet::new()).unwrap();
        let contents: Vec<(&str, Option<&str>)> =
            files.iter().map(|file| (file.path.as_str(), file.text.as_deref())).collect();
        let expected =
            [("binary", None), ("empty/", None), ("link", None), ("long", None), ("src/app.py", Some("print(1)"))];
        assert_eq!((contents.as_slice(), clipped), (&expected[..], false));
        assert_eq!(files[3].size, 5000);
    }

    #[test]
    fn reading_is_limited_and_starts_with_the_newest_files() {
        let base = tempfile::tempdir().unwrap();
        for number in 0..40 {
            let path = base.path().join(format!("{number:02}"));
            fs::write(&path, "x".repeat(4000)).unwrap();
            let file = File::options().write(true).open(&path).unwrap();
            file.set_modified(SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(number)).unwrap();
        }
        let (files, _) = list(base.path(), &HashSet::new()).unwrap();
        let read: Vec<&str> = files.iter().filter(|file| file.text.is_some()).map(|file| file.path.as_str()).collect();
        assert_eq!(read.len(), MOST_TEXT / 4000);
        assert_eq!((read.first().copied(), read.last().copied()), (Some("24"), Some("39")));
    }

    #[test]
    fn changed_files_are_read_and_listed_beyond_the_usual_limits() {
        let base = tempfile::tempdir().unwrap();
        let work = base.path();
        fs::write(work.join("report.md"), "x".repeat(50_000)).unwrap();
        fs::write(work.join("log"), "x".repeat(300_000)).unwrap();
        fs::write(work.join("other"), "x".repeat(50_000)).unwrap();
        let changed = HashSet::from(["report.md".to_owned(), "log".to_owned()]);
        let (files, _) = list(work, &changed).unwrap();
        let read: Vec<(&str, bool)> = files.iter().map(|file| (file.path.as_str(), file.text.is_some())).collect();
        assert_eq!(read, [("log", false), ("other", false), ("report.md", true)]);
    }
}
