//! Paths as users would write them, and paths in a sandbox.

use std::path::{Component, Path, PathBuf};

/// Returns `path` as the user would write it: relative to `cwd` if it is below it.
pub fn shown(path: &Path, cwd: &Path) -> String {
    match path.strip_prefix(cwd) {
        Ok(below) if below.as_os_str().is_empty() => ".".to_owned(),
        Ok(below) => below.display().to_string(),
        Err(_) => path.display().to_string(),
    }
}

/// Returns the path that `written`, which refers to the missing `path`, probably means: that of an entry of the same
/// folder with a similar name.
pub fn near(path: &Path, written: &str) -> Option<String> {
    let name = path.file_name()?.to_str()?;
    let entries = std::fs::read_dir(path.parent()?).ok()?.flatten();
    let names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    // The ending of a name does not make it similar.
    let stem = |name: &str| name.split('.').next().unwrap_or(name).to_owned();
    let is_similar = |other: &&str| *other != name && model::nearest(&stem(name), [&*stem(other)]).is_some();
    let near = model::nearest(name, names.iter().map(String::as_str).filter(is_similar))?;
    Some(format!("{}{near}", written.strip_suffix(name)?))
}

/// Returns `written` relative to `base`, with `.` removed and `..` resolved. Symbolic links are not followed.
pub fn resolve(base: &Path, written: impl AsRef<Path>) -> PathBuf {
    let mut resolved = PathBuf::new();
    for component in base.join(written).components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                if !resolved.pop() {
                    resolved.push("..");
                }
            }
            other => resolved.push(other),
        }
    }
    resolved
}

/// Returns the path inside the sandbox, with `/` as the separator and `.` for the root, or the reason why `written` is
/// not such a path.
pub fn inside_sandbox(written: &str) -> Result<String, &'static str> {
    if written.contains('\0') {
        return Err("contains a NUL byte");
    }
    if written.starts_with('/') {
        return Err("is absolute");
    }
    let mut parts = Vec::new();
    for part in written.split('/') {
        match part {
            "" | "." => {}
            ".." => return Err("leaves the sandbox with `..`"),
            part => parts.push(part),
        }
    }
    Ok(if parts.is_empty() { ".".to_owned() } else { parts.join("/") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_file_suggests_one_with_a_similar_name_in_its_folder() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("cities.csv"), "").unwrap();
        assert_eq!(near(&folder.path().join("cites.csv"), "../data/cites.csv").as_deref(), Some("../data/cities.csv"));
        assert_eq!(near(&folder.path().join("people.csv"), "people.csv"), None);
        std::fs::write(folder.path().join("a.yaml"), "").unwrap();
        assert_eq!(near(&folder.path().join("x.yaml"), "x.yaml"), None);
        assert_eq!(near(&folder.path().join("cities.csv"), "cities.csv"), None);
        assert_eq!(near(Path::new("/none/at/all.csv"), "all.csv"), None);
    }

    #[test]
    fn a_path_below_the_working_directory_is_shown_relative_to_it() {
        let cwd = Path::new("/home/me");
        assert_eq!(shown(Path::new("/home/me/a/b.yaml"), cwd), "a/b.yaml");
        assert_eq!(shown(Path::new("/home/me"), cwd), ".");
        assert_eq!(shown(Path::new("/home/other/b.yaml"), cwd), "/home/other/b.yaml");
    }

    #[test]
    fn parent_components_are_resolved_without_disk_access() {
        assert_eq!(resolve(Path::new("/a/b"), "./../c//d/."), Path::new("/a/c/d"));
        assert_eq!(resolve(Path::new("/a"), "/x/../y"), Path::new("/y"));
    }

    #[test]
    fn a_sandbox_path_cannot_escape() {
        assert_eq!(inside_sandbox("./a//b/"), Ok("a/b".to_owned()));
        assert_eq!(inside_sandbox(""), Ok(".".to_owned()));
        assert_eq!(inside_sandbox("."), Ok(".".to_owned()));
        for wrong in ["../x", "a/../../x", "a/..", "/etc/passwd", "a\0b"] {
            assert!(inside_sandbox(wrong).is_err(), "{wrong:?}");
        }
    }
}
