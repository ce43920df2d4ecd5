//! Following the links of a path.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

/// Maximum number of links in a path; a larger number is considered a loop.
const MAX_LINKS: usize = 40;

/// A path with its links resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Followed {
    /// The resolved path.
    pub path: PathBuf,
    /// The links along the way, in order. The parents of each link are resolved.
    pub links: Vec<PathBuf>,
}

/// Returns the absolute path for `path`, which must be absolute. Links are resolved as far as the path exists; `.` and
/// `..` are handled in the same way as by the kernel.
pub fn follow(path: &Path) -> Followed {
    let mut rest: VecDeque<OsString> = parts(path);
    let mut followed = Followed { path: PathBuf::from("/"), links: Vec::new() };
    while let Some(part) = rest.pop_front() {
        if part == ".." {
            followed.path.pop();
            continue;
        }
        let next = followed.path.join(&part);
        match std::fs::read_link(&next) {
            Ok(target) if followed.links.len() < MAX_LINKS => {
                followed.links.push(next);
                if target.is_absolute() {
                    followed.path = PathBuf::from("/");
                }
                for part in parts(&target).into_iter().rev() {
                    rest.push_front(part);
                }
            }
            _ => followed.path = next,
        }
    }
    followed
}

fn parts(path: &Path) -> VecDeque<OsString> {
    path.components()
        .filter_map(|component| match component {
            Component::Normal(name) => Some(name.to_owned()),
            Component::ParentDir => Some(OsString::from("..")),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_are_listed_with_their_parents_resolved() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().canonicalize().unwrap();
        std::fs::create_dir_all(folder.join("versions/1/bin")).unwrap();
        symlink("versions/1", folder.join("current")).unwrap();
        symlink("missing", folder.join("versions/1/bin/tool")).unwrap();
        let links = ["current", "versions/1/bin/tool"].map(|link| folder.join(link));
        let followed = Followed { path: folder.join("versions/1/bin/missing"), links: links.into() };
        assert_eq!(follow(&folder.join("current/bin/tool")), followed);
    }

    #[test]
    fn a_loop_ends() {
        let folder = tempfile::tempdir().unwrap();
        symlink("loop", folder.path().join("loop")).unwrap();
        assert_eq!(follow(&folder.path().join("loop")).links.len(), MAX_LINKS);
    }
}
