//! What `git status` says, told without git where that is surely right: a process costs more than all the rest.
//!
//! Where HEAD, the index and the settings are as they were, the status changes only with the files that changed. What is
//! not plain (patterns, attributes, names, kinds of files) is left to git.

mod ignored;
mod index;
mod settings;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, Metadata};
use std::io::ErrorKind;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use model::{Change, FileChange};
use nix::fcntl::OFlag;
use walkdir::WalkDir;

use self::ignored::{Ignored, Patterns};
use self::index::{Index, Tracked};
use super::snapshot::{Changes, MOST_READ};

/// The most changes that are looked at one by one.
const MOST: usize = 10_000;

/// What git reads besides the files themselves: it changes more than its own line.
const SPECIAL: [&str; 4] = [".git", ".gitignore", ".gitattributes", ".gitmodules"];

/// What `git status --porcelain` says in `work`, whose repository is as it was when that said `before`, while `changes`
/// befell its files; `env` is the environment that git would have. `None` where git has to be asked.
pub(super) fn after(
    before: &[String],
    work: &Path,
    changes: &Changes,
    env: &BTreeMap<String, String>,
) -> Option<Vec<String>> {
    if changes.is_whole && changes.files.is_empty() {
        return Some(before.to_vec());
    }
    let git = work.join(".git");
    let is_simple = changes.is_whole && changes.files.len() <= MOST && changes.files.iter().all(is_plain);
    if !is_simple || !settings::are_plain(&git, env) {
        return None;
    }
    let index = Index::read(&git.join("index"))?;
    let mut status = Status::parse(before, work, &index, Patterns::of(work)?)?;
    for change in &changes.files {
        status.note(change)?;
    }
    Some(status.lines())
}

/// A path that git writes as it is, of a file that it only compares or lists.
fn is_plain(change: &FileChange) -> bool {
    let is_written = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\');
    change.path.bytes().all(is_written) && !change.path.split('/').any(|name| SPECIAL.contains(&name))
}

struct Status<'a> {
    work: &'a Path,
    index: &'a Index,
    patterns: Patterns,
    /// Paths that differ between HEAD, the index and the files: the two letters.
    differing: BTreeMap<String, [char; 2]>,
    /// Files that nobody tracks, or the topmost directory that they alone are in.
    untracked: BTreeSet<String>,
}

impl<'a> Status<'a> {
    fn parse(lines: &[String], work: &'a Path, index: &'a Index, patterns: Patterns) -> Option<Self> {
        let mut status = Self { work, index, patterns, differing: BTreeMap::new(), untracked: BTreeSet::new() };
        for line in lines {
            let (letters, path) = line.split_at_checked(3)?;
            if path.starts_with('"') {
                return None;
            }
            if letters == "?? " {
                status.untracked.insert(path.to_owned());
                continue;
            }
            let [x, y, ' '] = letters.chars().collect::<Vec<_>>()[..] else { return None };
            if !" MADT".contains(x) || !" MDT".contains(y) {
                return None;
            }
            status.differing.insert(path.to_owned(), [x, y]);
        }
        Some(status)
    }

    fn lines(&self) -> Vec<String> {
        let differing = self.differing.iter().filter(|(_, letters)| **letters != [' ', ' ']);
        let differing = differing.map(|(path, [x, y])| format!("{x}{y} {path}"));
        differing.chain(self.untracked.iter().map(|path| format!("?? {path}"))).collect()
    }

    /// Takes in what became of one file; `None` if that is not plain.
    fn note(&mut self, FileChange { path, change }: &FileChange) -> Option<()> {
        let meta = match self.work.join(path).symlink_metadata() {
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            meta => Some(meta.ok()?),
        };
        if meta.is_none() != (*change == Change::Deleted) {
            return None;
        }
        match (self.index.get(path), meta) {
            (Some(_), None) => self.set(path, 'D'),
            (Some(tracked), Some(meta)) => self.compare(path, tracked, &meta, *change)?,
            (None, Some(meta)) => self.appear(path, &meta)?,
            (None, None) => self.disappear(path)?,
        }
        Some(())
    }

    /// Says how a tracked file differs from the index.
    fn set(&mut self, path: &str, letter: char) {
        self.differing.entry(path.to_owned()).or_insert([' ', ' '])[1] = letter;
    }

    /// A tracked file is not what it was. If it was what the index has, it now differs from that.
    fn compare(&mut self, path: &str, tracked: Tracked, meta: &Metadata, change: Change) -> Option<()> {
        let was_as_in_index = change == Change::Modified && self.differing.get(path).is_none_or(|[_, y]| *y == ' ');
        if !was_as_in_index || self.may_be_converted(path) {
            return None;
        }
        let letter = match (tracked, meta.is_file(), meta.is_symlink()) {
            (Tracked::File, true, _) if meta.len() <= MOST_READ && self.is_readable(path) => 'M',
            (Tracked::Link, _, true) => 'M',
            (Tracked::File, _, true) | (Tracked::Link, true, _) => 'T',
            _ => return None,
        };
        self.set(path, letter);
        Some(())
    }

    /// Whether attributes may make a file and its blob the same although their bytes are not.
    fn may_be_converted(&self, path: &str) -> bool {
        let directories = path.match_indices('/').map(|(at, _)| &path[..=at]);
        std::iter::once("").chain(directories).any(|directory| {
            let attributes = format!("{directory}.gitattributes");
            self.index.get(&attributes).is_some() || self.work.join(attributes).symlink_metadata().is_ok()
        })
    }

    fn is_readable(&self, path: &str) -> bool {
        let flags = (OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK).bits();
        File::options().read(true).custom_flags(flags).open(self.work.join(path)).is_ok()
    }

    /// There is a file or link that nobody tracks.
    fn appear(&mut self, path: &str, meta: &Metadata) -> Option<()> {
        let stands_alone = !self.index.has_below(&format!("{path}/")) && !self.is_in_tracked_file(path);
        if !stands_alone || !(meta.is_file() || meta.is_symlink()) {
            return None;
        }
        match self.patterns.on(path) {
            Ignored::Maybe => return None,
            Ignored::Yes => {}
            Ignored::No => drop(self.untracked.insert(self.shown(path).to_owned())),
        }
        Some(())
    }

    /// A file that nobody tracked is gone.
    fn disappear(&mut self, path: &str) -> Option<()> {
        if self.is_in_tracked_file(path) {
            return None;
        }
        match self.patterns.on(path) {
            Ignored::Maybe => return None,
            Ignored::Yes => return Some(()),
            Ignored::No => {}
        }
        let shown = self.shown(path);
        if shown == path || !self.has_untracked(shown)? {
            self.untracked.remove(shown);
        }
        Some(())
    }

    /// Whether a directory of the path is a file in the index.
    fn is_in_tracked_file(&self, path: &str) -> bool {
        path.match_indices('/').any(|(at, _)| self.index.get(&path[..at]).is_some())
    }

    /// How a file that nobody tracks is listed: by the topmost directory in which nothing is tracked, or by itself.
    fn shown<'p>(&self, path: &'p str) -> &'p str {
        let mut directories = path.match_indices('/').map(|(at, _)| &path[..=at]);
        directories.find(|directory| !self.index.has_below(directory)).unwrap_or(path)
    }

    /// Whether there is anything in a directory, in which nothing is tracked, that is not ignored.
    fn has_untracked(&mut self, directory: &str) -> Option<bool> {
        for entry in WalkDir::new(self.work.join(directory)) {
            let entry = match entry {
                Err(error) if error.io_error().is_some_and(|error| error.kind() == ErrorKind::NotFound) => continue,
                entry => entry.ok()?,
            };
            let path = entry.path().strip_prefix(self.work).ok()?.to_str()?;
            if !(entry.file_type().is_file() || entry.file_type().is_symlink()) {
                continue;
            }
            match self.patterns.on(path) {
                Ignored::No => return Some(true),
                Ignored::Yes => {}
                Ignored::Maybe => return None,
            }
        }
        Some(false)
    }
}

#[cfg(test)]
mod tests;
