//! Comparison of remote addresses, and the names under which a service knows the repositories.

use std::path::Path;

use model::{Forge, ForgeKind, is_folder};

/// Owner of projects whose address does not name one.
const NOBODY: &str = "local";

/// Returns the host and the path of an address, without scheme, user, port and `.git`; `None` for a folder.
pub(super) fn place(address: &str) -> Option<String> {
    let address = address.trim();
    if is_folder(address) {
        return None;
    }
    let (authority, path) = match address.split_once("://") {
        Some((_, rest)) => rest.split_once('/')?,
        None => address.split_once(':')?,
    };
    let host = authority.rsplit('@').next()?.split(':').next()?;
    let path = path.trim_matches('/');
    Some(format!("{}/{}", host.to_ascii_lowercase(), path.strip_suffix(".git").unwrap_or(path)))
}

/// Returns the path in the address of a folder.
pub(super) fn folder(address: &str) -> Option<&str> {
    let address = address.trim();
    is_folder(address).then(|| address.strip_prefix("file://").unwrap_or(address).trim_end_matches('/'))
}

/// Returns the spellings that a program may use for the address of a folder: as written, and without links and `..`.
pub(super) fn folders(address: &str) -> Vec<String> {
    let Some(folder) = folder(address) else { return Vec::new() };
    let real = Path::new(folder).canonicalize().ok().map(|real| real.to_string_lossy().into_owned());
    let mut folders = vec![folder.to_owned()];
    folders.extend(real.filter(|real| real != folder));
    folders.iter().flat_map(|folder| [folder.clone(), format!("file://{folder}")]).collect()
}

/// Returns `true` if two addresses name the same repository.
pub(super) fn is_same(one: &str, other: &str) -> bool {
    match (place(one), place(other)) {
        (Some(one), Some(other)) => one == other,
        (None, None) => folder(one) == folder(other),
        _ => false,
    }
}

/// Returns the service of an address, if it is a known one, with its host and the project's name there. For other
/// addresses, the stand-ins of all services use the same name.
pub(super) fn project(address: &str) -> (Option<ForgeKind>, Option<String>, String) {
    if let Some(Forge { kind, host, project }) = Forge::of(address) {
        return (Some(kind), Some(host), project);
    }
    let path = place(address).or_else(|| folder(address).map(str::to_owned)).unwrap_or_default();
    let name = Path::new(&path).file_name().unwrap_or_default().to_string_lossy();
    let name = name.strip_suffix(".git").unwrap_or(&name);
    (None, None, format!("{NOBODY}/{}", if name.is_empty() { "source" } else { name }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_an_address_are_the_same_place() {
        let https = "https://github.com/o/r.git";
        for other in ["git@github.com:o/r.git", "ssh://git@GitHub.com:22/o/r", "https://u:p@github.com/o/r/"] {
            assert!(is_same(https, other), "{other}");
        }
        for other in ["https://github.com/o/s.git", "https://example.org/o/r", "/srv/o/r.git"] {
            assert!(!is_same(https, other), "{other}");
        }
        assert!(is_same("/srv/r.git", "file:///srv/r.git/"));
    }

    #[test]
    fn a_project_without_a_service_has_a_name() {
        assert_eq!(
            project("git@github.com:o/r.git"),
            (Some(ForgeKind::GitHub), Some("github.com".into()), "o/r".into())
        );
        assert_eq!(project("/srv/shop.git").2, "local/shop");
        assert_eq!(project("https://git.example.org/team/shop.git").2, "local/shop");
    }
}
