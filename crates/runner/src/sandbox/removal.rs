//! Removing a tree, whatever somebody did to it.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

/// A process that is being ended may write for a moment longer; so often it is tried again, with pauses that grow from
/// a millisecond to a quarter of a second.
const ROUNDS: u32 = 12;

/// Removes `path` and everything below it. Links are removed, not followed; directories that forbid it are opened up
/// first. Something that is gone already is no error.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    for round in 1_u32.. {
        match fs::remove_dir_all(path) {
            Ok(()) => break,
            Err(_) if path.symlink_metadata().is_err_and(|error| error.kind() == ErrorKind::NotFound) => break,
            Err(error) if round == ROUNDS => return Err(error),
            Err(_) => {
                open_up(path);
                std::thread::sleep(Duration::from_millis(1 << round.min(8)).min(Duration::from_millis(250)));
            }
        }
    }
    Ok(())
}

/// Gives the owner every right to every directory.
fn open_up(path: &Path) {
    let Ok(meta) = path.symlink_metadata() else { return };
    if !meta.is_dir() {
        return;
    }
    let _ = fs::set_permissions(path, fs::Permissions::from_mode(0o700));
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        open_up(&entry.path());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_that_forbids_it_is_removed_and_what_it_links_to_is_not() {
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("kept"), "x").unwrap();
        let inside = tempfile::tempdir().unwrap();
        let tree = inside.path().join("tree");
        fs::create_dir_all(tree.join("a/b")).unwrap();
        fs::write(tree.join("a/b/file"), "x").unwrap();
        std::os::unix::fs::symlink(outside.path(), tree.join("a/link")).unwrap();
        fs::set_permissions(tree.join("a/b"), fs::Permissions::from_mode(0o000)).unwrap();
        fs::set_permissions(tree.join("a"), fs::Permissions::from_mode(0o500)).unwrap();
        remove(&tree).unwrap();
        assert!(!tree.exists());
        assert!(outside.path().join("kept").exists());
        remove(&tree).unwrap();
    }
}
