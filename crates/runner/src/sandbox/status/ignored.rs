//! Which files git takes no notice of. A pattern that is not plain is not understood, but only held against a path as
//! something that matches more than it does: what it may match is left to git.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The largest file of patterns that is read, in bytes.
const LARGEST: u64 = 64 * 1024;

/// Whether git ignores a file; the later go before the earlier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Ignored {
    No,
    Yes,
    /// Git has to be asked.
    Maybe,
}

/// The patterns of a working directory, read as they are needed.
pub(super) struct Patterns {
    work: PathBuf,
    /// Of `.git/info/exclude`.
    own: Vec<Pattern>,
    /// Of each directory's `.gitignore`; `None` for one that is not to be understood.
    of_directories: HashMap<String, Option<Vec<Pattern>>>,
}

impl Patterns {
    /// `None` where what the repository itself ignores is not to be understood.
    pub(super) fn of(work: &Path) -> Option<Self> {
        let own = read(&work.join(".git/info/exclude"))?;
        Some(Self { work: work.to_owned(), own, of_directories: HashMap::new() })
    }

    /// Whether the file `path`, which nobody tracks, is ignored.
    pub(super) fn on(&mut self, path: &str) -> Ignored {
        let mut found = told(&self.own, path);
        let directories = path.match_indices('/').map(|(at, _)| &path[..=at]);
        for directory in std::iter::once("").chain(directories) {
            let patterns = self
                .of_directories
                .entry(directory.to_owned())
                .or_insert_with(|| read(&self.work.join(directory).join(".gitignore")));
            let Some(patterns) = patterns else { return Ignored::Maybe };
            found = found.max(told(patterns, &path[directory.len()..]));
        }
        found
    }
}

/// The patterns of a file; none if there is no file, `None` if it is not to be understood.
fn read(path: &Path) -> Option<Vec<Pattern>> {
    let meta = match path.symlink_metadata() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Some(Vec::new()),
        meta => meta.ok()?,
    };
    if !meta.is_file() || meta.len() > LARGEST {
        return None;
    }
    let text = fs::read_to_string(path).ok().filter(|text| text.is_ascii())?;
    let lines = text.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line));
    Some(lines.filter(|line| !line.is_empty() && !line.starts_with('#')).map(Pattern::of).collect())
}

/// What some patterns of one place say about a path below it.
fn told(patterns: &[Pattern], path: &str) -> Ignored {
    let matching = patterns.iter().filter(|pattern| pattern.matches(path));
    matching.map(|pattern| if pattern.is_exact { Ignored::Yes } else { Ignored::Maybe }).max().unwrap_or(Ignored::No)
}

/// One line.
#[derive(Debug)]
struct Pattern {
    /// What has to be matched: a whole path, or one name in it.
    glob: String,
    /// It is matched against paths from where the pattern stands.
    is_anchored: bool,
    /// What it matches is a directory.
    is_directory: bool,
    /// It matches what git says it does, no more, and says to ignore it.
    is_exact: bool,
}

impl Pattern {
    fn of(line: &str) -> Self {
        let (line, is_negated) = line.strip_prefix('!').map_or((line, false), |rest| (rest, true));
        let (line, is_directory) = line.strip_suffix('/').map_or((line, false), |rest| (rest, true));
        let simple = |byte: u8| byte.is_ascii_alphanumeric() || b"._-+@=,~%/".contains(&byte);
        let is_exact = !is_negated;
        if line.contains('/') && line.bytes().all(simple) {
            let glob = line.strip_prefix('/').unwrap_or(line).to_owned();
            return Self { glob, is_anchored: true, is_directory, is_exact };
        }
        let is_name = !line.contains('/') && !line.contains("**");
        if is_name && line.bytes().all(|byte| simple(byte) || byte == b'*') {
            return Self { glob: line.to_owned(), is_anchored: false, is_directory, is_exact };
        }
        // Whatever it matches has a name in its path, the last or one before, that its last part matches.
        let line = line.strip_suffix("/**").unwrap_or(line);
        let last = line.rsplit('/').next().unwrap_or(line);
        Self { glob: wider(last), is_anchored: false, is_directory: false, is_exact: false }
    }

    /// Whether it matches a file or a directory that the file is in.
    fn matches(&self, path: &str) -> bool {
        if self.is_anchored {
            let rest = path.strip_prefix(self.glob.as_str());
            return rest.is_some_and(|rest| rest.starts_with('/') || (rest.is_empty() && !self.is_directory));
        }
        let (directories, name) = path.rsplit_once('/').map_or((None, path), |(above, name)| (Some(above), name));
        let mut names = directories.into_iter().flat_map(|above| above.split('/'));
        names.any(|name| fits(&self.glob, name)) || (!self.is_directory && fits(&self.glob, name))
    }
}

/// A glob of `*` and `?` that matches at least what this one does.
fn wider(glob: &str) -> String {
    let mut wide = String::new();
    let mut rest = glob.chars();
    while let Some(c) = rest.next() {
        match c {
            '[' => {
                let tail = rest.as_str();
                let class = tail.split_once(']').filter(|(class, _)| {
                    !class.is_empty() && class.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
                });
                let Some((_, after)) = class else { return "*".to_owned() };
                wide.push('?');
                rest = after.chars();
            }
            '\\' => return "*".to_owned(),
            c if c.is_ascii_graphic() => wide.push(c),
            _ => return "*".to_owned(),
        }
    }
    wide
}

/// Whether a glob of `*`, `?` and plain characters matches a whole name.
fn fits(glob: &str, name: &str) -> bool {
    let (glob, name) = (glob.as_bytes(), name.as_bytes());
    let (mut at, mut seen) = (0, 0);
    // Where the last star is, and how far it reaches.
    let mut star = None;
    while seen < name.len() {
        match glob.get(at) {
            Some(b'*') => {
                star = Some((at, seen));
                at += 1;
            }
            Some(byte) if *byte == b'?' || *byte == name[seen] => (at, seen) = (at + 1, seen + 1),
            _ => {
                let Some((place, reach)) = star else { return false };
                star = Some((place, reach + 1));
                (at, seen) = (place + 1, reach + 1);
            }
        }
    }
    glob[at..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told_by(lines: &[&str], path: &str) -> Ignored {
        let patterns: Vec<Pattern> = lines.iter().map(|line| Pattern::of(line)).collect();
        told(&patterns, path)
    }

    #[test]
    fn plain_patterns_are_understood() {
        for (line, path, ignored) in [
            ("*.log", "a/b.log", Ignored::Yes),
            ("*.log", "a/b.logs", Ignored::No),
            ("*.log", "a.log/b", Ignored::Yes),
            ("target/", "target", Ignored::No),
            ("target/", "x/target/y", Ignored::Yes),
            ("target", "target", Ignored::Yes),
            ("/target", "x/target/y", Ignored::No),
            ("/.claude/skills/a/", ".claude/skills/a/x/y", Ignored::Yes),
            ("/.claude/skills/a/", ".claude/skills/ab", Ignored::No),
            ("docs/_build/", "docs/_build/x", Ignored::Yes),
            ("docs/_build/", "_build/x", Ignored::No),
            ("*", "a", Ignored::Yes),
        ] {
            assert_eq!(told_by(&[line], path), ignored, "{line} {path}");
        }
    }

    #[test]
    fn other_patterns_are_left_to_git_where_they_may_match() {
        for (line, path, ignored) in [
            ("!a", "a", Ignored::Maybe),
            ("!a", "b", Ignored::No),
            ("*.py[cod]", "a.py", Ignored::No),
            ("*.py[cod]", "a.pyx", Ignored::Maybe),
            ("a[!b]", "b", Ignored::Maybe),
            ("docs/*_build/", "_build/x", Ignored::Maybe),
            ("a/**", "b/a/c", Ignored::Maybe),
            ("a/**", "b/c", Ignored::No),
            ("a/**/b", "b", Ignored::Maybe),
            ("**/b", "c", Ignored::No),
            ("**", "c", Ignored::Maybe),
            ("a ", "a", Ignored::Maybe),
            ("\\!a", "x", Ignored::Maybe),
        ] {
            assert_eq!(told_by(&[line], path), ignored, "{line} {path}");
        }
        assert_eq!(told_by(&["a", "!a"], "a"), Ignored::Maybe);
    }

    #[test]
    fn a_file_of_patterns_that_is_no_plain_file_is_left_to_git() {
        let work = tempfile::tempdir().unwrap();
        fs::create_dir_all(work.path().join(".git/info")).unwrap();
        fs::create_dir(work.path().join("sub")).unwrap();
        fs::write(work.path().join(".git/info/exclude"), "# none\n/own/\n").unwrap();
        fs::write(work.path().join(".gitignore"), "*.log\r\n").unwrap();
        std::os::unix::fs::symlink("../.gitignore", work.path().join("sub/.gitignore")).unwrap();
        let mut patterns = Patterns::of(work.path()).unwrap();
        assert_eq!(
            ["own/x", "a.log", "a", "sub/a"].map(|path| patterns.on(path)),
            [Ignored::Yes, Ignored::Yes, Ignored::No, Ignored::Maybe]
        );
        fs::write(work.path().join(".git/info/exclude"), "\u{e4}").unwrap();
        assert!(Patterns::of(work.path()).is_none());
    }
}
