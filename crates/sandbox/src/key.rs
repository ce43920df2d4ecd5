//! Identity of fixtures: two fixtures with the same key share a template.

use std::io;
use std::path::Path;

use model::{FixtureFile, Fixtures};
use sha2::{Digest, Sha256};

use super::digest;
use super::installation::{Installation, not_installed};
use super::tree::{self, Kind};

/// Returns the SHA-256 of everything from which a template is built: the fixtures block, the content of every tree
/// that it copies, the skill, and the address of the cloned repository. Setup commands and variables are not included,
/// because they belong to each trial.
pub(super) fn of(fixtures: &Fixtures, skill: Option<&Installation>, source: Option<&str>) -> io::Result<[u8; 32]> {
    let mut key = Key(Sha256::new());
    key.add(source.unwrap_or_default().as_bytes());
    key.add(&[u8::from(fixtures.git_init)]);
    key.add(fixtures.git_branch.as_deref().unwrap_or_default().as_bytes());
    key.count(fixtures.directories.len());
    fixtures.directories.iter().for_each(|directory| key.add(directory.as_bytes()));
    key.count(fixtures.copy_trees.len());
    for copied in &fixtures.copy_trees {
        key.add(copied.to.as_bytes());
        key.tree(&copied.from, |_| false)?;
    }
    for files in [&fixtures.files_committed, &fixtures.files_staged, &fixtures.files_unstaged] {
        key.count(files.len());
        for FixtureFile { path, content, executable, .. } in files {
            key.add(path.as_bytes());
            key.add(content);
            key.add(&[u8::from(*executable)]);
        }
    }
    if let Some(Installation { from, to }) = skill {
        key.add(to.as_bytes());
        match from.is_file() {
            true => key.add(&std::fs::read(from)?),
            false => key.tree(from, not_installed)?,
        }
    }
    Ok(key.0.finalize().into())
}

struct Key(Sha256);

impl Key {
    /// Adds a part prefixed with its length, so that different lists of parts never give the same bytes.
    fn add(&mut self, part: &[u8]) {
        self.count(part.len());
        self.0.update(part);
    }

    fn count(&mut self, count: usize) {
        self.0.update((count as u64).to_le_bytes());
    }

    fn tree(&mut self, root: &Path, skip: impl Fn(&Path) -> bool) -> io::Result<()> {
        use std::os::unix::ffi::OsStrExt;
        let items = tree::list(root, skip)?;
        self.count(items.len());
        for item in &items {
            self.add(item.path.as_os_str().as_bytes());
            match &item.kind {
                Kind::Directory { .. } => self.add(b"d"),
                Kind::Link { target } => self.add(target.as_os_str().as_bytes()),
                Kind::File { mode, .. } => {
                    self.add(&mode.to_le_bytes());
                    self.add(&digest::of_file(&root.join(&item.path), None)?);
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{CopyTree, Excerpt};

    #[test]
    fn the_key_changes_with_the_content_of_trees() {
        let tree = tempfile::tempdir().unwrap();
        std::fs::write(tree.path().join("a"), "one").unwrap();
        let copied = CopyTree { from: tree.path().into(), to: ".".into(), source: Excerpt::of_file("x") };
        let fixtures = Fixtures { copy_trees: vec![copied], ..Fixtures::default() };
        let first = of(&fixtures, None, None).unwrap();
        assert_eq!(of(&fixtures, None, None).unwrap(), first);
        let skill = Installation { from: tree.path().to_owned(), to: "skills/x".into() };
        assert_ne!(of(&fixtures, Some(&skill), None).unwrap(), first);
        std::fs::write(tree.path().join("a"), "two").unwrap();
        assert_ne!(of(&fixtures, None, None).unwrap(), first);
    }

    #[test]
    fn committed_and_staged_files_have_different_keys() {
        let file = |path: &str| FixtureFile {
            path: path.into(),
            content: b"x".as_slice().into(),
            executable: false,
            source: Excerpt::of_file("x"),
        };
        let committed = Fixtures { files_committed: vec![file("a")], ..Fixtures::default() };
        let staged = Fixtures { files_staged: vec![file("a")], ..Fixtures::default() };
        assert_ne!(of(&committed, None, None).unwrap(), of(&staged, None, None).unwrap());
    }
}
