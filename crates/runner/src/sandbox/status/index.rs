//! The index of a repository, as far as it tells which files are tracked.

use std::fs;
use std::path::Path;

use crate::sandbox::git::LARGEST;

/// Before the entries: `DIRC`, the version and how many there are.
const HEADER: usize = 12;
/// Before an entry's path: times, numbers, mode, size, the blob's id and flags.
const BEFORE_PATH: usize = 62;
/// Where in an entry its mode is.
const MODE: usize = 24;
/// Where in an entry its flags are.
const FLAGS: usize = 60;
/// The bits of the flags that tell how long the path is. All others set an entry apart.
const LENGTH: u16 = 0x0fff;
/// The checksum at the end.
const CHECKSUM: usize = 20;

/// What a tracked path is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tracked {
    File,
    Link,
}

/// Tracked paths, sorted.
#[derive(Debug, Default)]
pub(super) struct Index {
    entries: Vec<(String, Tracked)>,
}

impl Index {
    /// Reads an index in which nothing is out of the ordinary: `None` for one with conflicts, submodules, files that git
    /// is told not to look at or to take for added, parts elsewhere, or a form that is not known here.
    pub(super) fn read(path: &Path) -> Option<Self> {
        match path.symlink_metadata() {
            Ok(meta) if meta.is_file() && meta.len() <= LARGEST => Self::parse(&fs::read(path).ok()?),
            _ => None,
        }
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        if !bytes.starts_with(b"DIRC") || !matches!(number(bytes, 4)?, 2 | 3) {
            return None;
        }
        let count = usize::try_from(number(bytes, 8)?).ok()?;
        // Whatever count the file claims, no more is kept than there is room for in it.
        let mut entries = Vec::with_capacity(count.min(bytes.len() / BEFORE_PATH));
        let mut rest = bytes.get(HEADER..)?;
        for _ in 0..count {
            let (entry, size) = entry(rest)?;
            if entries.last().is_some_and(|(last, _)| *last >= entry.0) {
                return None;
            }
            entries.push(entry);
            rest = rest.get(size..)?;
        }
        are_harmless(rest).then_some(Self { entries })
    }

    /// What `path` is, if it is tracked.
    pub(super) fn get(&self, path: &str) -> Option<Tracked> {
        let at = self.entries.binary_search_by(|(known, _)| known.as_str().cmp(path)).ok()?;
        Some(self.entries[at].1)
    }

    /// Whether anything is tracked below a directory, whose path ends with a slash.
    pub(super) fn has_below(&self, directory: &str) -> bool {
        let at = self.entries.partition_point(|(known, _)| known.as_str() < directory);
        self.entries.get(at).is_some_and(|(known, _)| known.starts_with(directory))
    }
}

/// The entry that `bytes` begin with, and how many of them it takes.
fn entry(bytes: &[u8]) -> Option<((String, Tracked), usize)> {
    let tracked = match number(bytes, MODE)? {
        0o100_644 | 0o100_755 => Tracked::File,
        0o120_000 => Tracked::Link,
        _ => return None,
    };
    let flags = u16::from_be_bytes(bytes.get(FLAGS..FLAGS + 2)?.try_into().ok()?);
    let length = usize::from(flags & LENGTH);
    if flags & !LENGTH != 0 || length == usize::from(LENGTH) {
        return None;
    }
    let end = BEFORE_PATH + length;
    let path = std::str::from_utf8(bytes.get(BEFORE_PATH..end)?).ok()?;
    // One to eight zeros bring it to a multiple of eight.
    let size = (end + 8) & !7;
    let is_padded = bytes.get(end..size)?.iter().all(|byte| *byte == 0);
    is_padded.then(|| ((path.to_owned(), tracked), size))
}

/// Whether what follows the entries only makes git faster.
fn are_harmless(mut extensions: &[u8]) -> bool {
    while extensions.len() > CHECKSUM {
        let Some(size) = number(extensions, 4).and_then(|size| usize::try_from(size).ok()) else { return false };
        if !matches!(&extensions[..4], b"TREE" | b"REUC" | b"EOIE" | b"IEOT") {
            return false;
        }
        let Some(rest) = size.checked_add(8).and_then(|size| extensions.get(size..)) else { return false };
        extensions = rest;
    }
    extensions.len() == CHECKSUM
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(paths: &[(&str, u32, u16)]) -> Vec<u8> {
        let mut bytes = b"DIRC\0\0\0\x02".to_vec();
        bytes.extend((paths.len() as u32).to_be_bytes());
        for (path, mode, flags) in paths {
            let mut entry = vec![0; BEFORE_PATH];
            entry[MODE..MODE + 4].copy_from_slice(&mode.to_be_bytes());
            entry[FLAGS..].copy_from_slice(&(flags | path.len() as u16).to_be_bytes());
            entry.extend(path.as_bytes());
            entry.resize((entry.len() + 8) & !7, 0);
            bytes.extend(entry);
        }
        bytes.extend([7; CHECKSUM]);
        bytes
    }

    const FILE: u32 = 0o100_644;

    #[test]
    fn tracked_files_are_told_from_links_and_directories() {
        let index = Index::parse(&bytes(&[("a.b", FILE, 0), ("a/b", 0o120_000, 0), ("a0", 0o100_755, 0)])).unwrap();
        assert_eq!(["a.b", "a/b", "a0", "a"].map(|path| index.get(path)), {
            [Some(Tracked::File), Some(Tracked::Link), Some(Tracked::File), None]
        });
        assert_eq!(["a/", "a/b/", "b/"].map(|path| index.has_below(path)), [true, false, false]);
        assert!(!Index::parse(&bytes(&[])).unwrap().has_below("a/"));
    }

    #[test]
    fn what_is_out_of_the_ordinary_is_left_to_git() {
        for (path, mode, flags) in [
            ("submodule", 0o160_000, 0),
            ("sparse", 0o040_000, 0),
            ("assumed", FILE, 0x8000),
            ("extended", FILE, 0x4000),
            ("conflict", FILE, 0x2000),
        ] {
            assert!(Index::parse(&bytes(&[(path, mode, flags)])).is_none(), "{path}");
        }
        assert!(Index::parse(&bytes(&[("b", FILE, 0), ("a", FILE, 0)])).is_none());
        for (name, is_known) in [(b"TREE", true), (b"link", false), (b"sdir", false), (b"FSMN", false)] {
            let mut index = bytes(&[("a", FILE, 0)]);
            let end = index.len() - CHECKSUM;
            let extension: Vec<u8> = name.iter().chain(&[0, 0, 0, 2, 1, 1]).copied().collect();
            index.splice(end..end, extension);
            assert_eq!(Index::parse(&index).is_some(), is_known, "{name:?}");
        }
    }

    #[test]
    fn no_bytes_are_too_bad_to_be_refused() {
        let whole = bytes(&[("a", FILE, 0), ("dir/b", FILE, 0)]);
        for end in 0..whole.len() {
            assert!(Index::parse(&whole[..end]).is_none(), "{end}");
        }
        for at in 0..whole.len() {
            for byte in [0, 0x7f, 0xff] {
                let mut broken = whole.clone();
                broken[at] = byte;
                let _ = Index::parse(&broken);
            }
        }
    }
}
