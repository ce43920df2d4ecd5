//! Reads the files of threads while Codex is writing them.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// Folder of the threads below Codex's home, with a subfolder for each day.
const SESSIONS: &str = "sessions";
/// Maximum number of bytes read per call; the rest is read next time.
const AT_ONCE: u64 = 4 * 1024 * 1024;
/// Maximum length of a line in bytes. A longer line is cut and reported as unreadable.
const MAX_LINE_BYTES: usize = 16 * 1024 * 1024;
/// Number of bytes kept of such a line.
const SHOWN: usize = 1024;

/// Follows the file of one thread.
#[derive(Debug)]
pub(super) struct Follower {
    sessions: PathBuf,
    ending: String,
    file: Option<File>,
    /// Position up to which the file has been read.
    at: u64,
    /// Beginning of a line that is not yet complete.
    begun: Vec<u8>,
}

impl Follower {
    /// Creates a follower for `thread`, for a Codex whose home is `home`.
    pub(super) fn new(home: &Path, thread: &str) -> Self {
        let ending = format!("-{thread}.jsonl");
        Self { sessions: home.join(SESSIONS), ending, file: None, at: 0, begun: Vec::new() }
    }

    /// Returns `true` if the file exists.
    pub(super) fn is_found(&mut self) -> bool {
        if self.file.is_none() {
            self.file = find(&self.sessions, &self.ending, 3).and_then(|path| files::open(&path).ok());
        }
        self.file.is_some()
    }

    /// Returns the complete lines that were written since the last call.
    pub(super) fn next(&mut self) -> Vec<String> {
        let mut lines = Vec::new();
        if !self.is_found() {
            return lines;
        }
        let Some(file) = &mut self.file else { return lines };
        loop {
            let mut piece = Vec::new();
            let read = file
                .seek(SeekFrom::Start(self.at))
                .and_then(|_| Read::by_ref(file).take(AT_ONCE).read_to_end(&mut piece));
            // A read error is ignored, because the next call tries again.
            let Ok(count @ 1..) = read else { return lines };
            self.at += count as u64;
            for part in piece.split_inclusive(|byte| *byte == b'\n') {
                self.begun.extend_from_slice(part);
                if part.ends_with(b"\n") {
                    let mut line = std::mem::take(&mut self.begun);
                    if line.len() > MAX_LINE_BYTES {
                        line.truncate(SHOWN);
                    }
                    lines.push(String::from_utf8_lossy(line.trim_ascii_end()).into_owned());
                }
            }
            self.begun.truncate(MAX_LINE_BYTES + 1);
        }
    }
}

/// Returns the file below `folder` whose name ends with `ending`, searching the newest days first.
fn find(folder: &Path, ending: &str, levels: usize) -> Option<PathBuf> {
    let mut names: Vec<PathBuf> = std::fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path()).collect();
    names.sort_unstable_by(|one, other| other.cmp(one));
    let is_it = |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().ends_with(ending));
    if levels == 0 {
        return names.into_iter().find(is_it);
    }
    names.iter().find_map(|path| find(path, ending, levels - 1))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_file_is_found_when_it_appears_and_read_line_by_line_as_it_grows() {
        let home = tempfile::tempdir().unwrap();
        let mut follower = Follower::new(home.path(), "t1");
        assert_eq!((follower.is_found(), follower.next()), (false, Vec::new()));
        let day = home.path().join("sessions/2026/11/22");
        std::fs::create_dir_all(&day).unwrap();
        std::fs::write(day.join("rollout-2026-11-22T00-00-00-t2.jsonl"), "other\n").unwrap();
        let mut file = File::create(day.join("rollout-2026-11-22T00-00-00-t1.jsonl")).unwrap();
        file.write_all(b"one\ntw").unwrap();
        assert_eq!(follower.next(), ["one"]);
        file.write_all(b"o\n\xff\nthree").unwrap();
        assert_eq!(follower.next(), ["two", "\u{fffd}"]);
        assert_eq!(follower.next(), Vec::<String>::new());
    }
}
