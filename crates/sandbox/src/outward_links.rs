//! Links that lead out of a copied directory. A program that is not isolated would read and write through them.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Component, Path, PathBuf};

use walkdir::WalkDir;

/// Removes the symbolic links below `directory` that lead out of it.
///
/// # Errors
/// Returns an error if a link cannot be removed.
pub(super) fn remove(directory: &Path) -> io::Result<()> {
    let root = directory.canonicalize()?;
    for entry in WalkDir::new(&root).min_depth(1).into_iter().flatten() {
        let path = entry.path();
        let is_link = entry.file_type().is_symlink();
        if is_link && fs::read_link(path).is_ok_and(|target| leads_out(&root, path, &target)) {
            match fs::remove_file(path) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
    }
    Ok(())
}

/// Returns `true` if `target`, as named by `link`, is not certainly below `root`. If it does not exist, something that
/// writes to it would create it.
fn leads_out(root: &Path, link: &Path, target: &Path) -> bool {
    let place: PathBuf = link.parent().unwrap_or(root).join(target);
    match place.canonicalize() {
        Ok(real) => !real.starts_with(root),
        Err(_) => target.components().any(|part| !matches!(part, Component::Normal(_) | Component::CurDir)),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_that_lead_out_are_removed_and_the_others_stay() {
        let scratch = tempfile::tempdir().unwrap();
        let (copy, outside) = (scratch.path().join("copy"), scratch.path().join("outside"));
        fs::create_dir_all(copy.join("sub")).unwrap();
        fs::create_dir(&outside).unwrap();
        fs::write(copy.join("a.txt"), "a").unwrap();
        let links = [
            ("in", "a.txt"),
            ("sub/up", "../a.txt"),
            ("new", "later.txt"),
            ("out", "../outside"),
            ("absolute", "/etc/passwd"),
            ("missing", "../missing"),
            ("chain", "out"),
        ];
        for (name, target) in links {
            symlink(target, copy.join(name)).unwrap();
        }
        remove(&copy).unwrap();
        let exists = |name: &str| copy.join(name).symlink_metadata().is_ok();
        for kept in ["in", "sub/up", "new", "a.txt"] {
            assert!(exists(kept), "{kept}");
        }
        // The chain leads to a link that is removed, or that was removed before it.
        for removed in ["out", "absolute", "missing"] {
            assert!(!exists(removed), "{removed}");
        }
        assert!(!copy.join("chain").exists());
    }
}
