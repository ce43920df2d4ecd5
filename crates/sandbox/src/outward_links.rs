//! Links that lead out of a copied directory. A program that is not isolated would read and write through them.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Component, Path, PathBuf};

use walkdir::WalkDir;

/// Files of git that contain a path.
const GIT_PATHS: [&str; 3] = ["commondir", "gitdir", "alternates"];

/// Maximum size of such a file, in bytes.
const LARGEST: u64 = 1 << 20;

/// Removes the links below `directory` that lead out of it: symbolic links, and git's files that name other directories.
///
/// # Errors
/// Returns an error if a link cannot be removed.
pub(super) fn remove(directory: &Path) -> io::Result<()> {
    let root = directory.canonicalize()?;
    for entry in WalkDir::new(&root).min_depth(1).into_iter().flatten() {
        let path = entry.path();
        let leads_out = if entry.file_type().is_symlink() {
            fs::read_link(path).is_ok_and(|target| leads_out(&root, path, &target))
        } else {
            entry.file_type().is_file() && git_leads_out(&root, path)
        };
        if leads_out {
            match fs::remove_file(path) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
    }
    Ok(())
}

/// Returns `true` if the file is one of git's that names a directory outside `root`.
fn git_leads_out(root: &Path, file: &Path) -> bool {
    let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let is_link = name == ".git";
    if !is_link && !GIT_PATHS.contains(&name) {
        return false;
    }
    let Ok(content) = files::read(file, LARGEST) else { return is_link };
    let text = String::from_utf8_lossy(&content);
    match text.strip_prefix("gitdir: ").filter(|_| is_link) {
        Some(target) => leads_out(root, file, Path::new(target.trim_end_matches('\n'))),
        None if is_link => false,
        None => text.lines().any(|line| leads_out(root, file, Path::new(line))),
    }
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
        fs::create_dir_all(copy.join("sub/.git")).unwrap();
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
        for (name, content) in [
            ("sub/.git/commondir", "../../../outside\n"),
            ("sub/.git/alternates", "objects\n"),
            ("tree", "gitdir: /elsewhere\n"),
        ] {
            fs::write(copy.join(name), content).unwrap();
        }
        fs::create_dir(copy.join("worktree")).unwrap();
        fs::write(copy.join("worktree/.git"), format!("gitdir: {}\n", outside.display())).unwrap();
        remove(&copy).unwrap();
        let exists = |name: &str| copy.join(name).symlink_metadata().is_ok();
        for kept in ["in", "sub/up", "new", "a.txt", "sub/.git/alternates", "tree"] {
            assert!(exists(kept), "{kept}");
        }
        // The chain leads to a link that is removed, or that was removed before it.
        for removed in ["out", "absolute", "missing", "sub/.git/commondir", "worktree/.git"] {
            assert!(!exists(removed), "{removed}");
        }
        assert!(!copy.join("chain").exists());
    }
}
