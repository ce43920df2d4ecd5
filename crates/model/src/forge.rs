//! Location of a remote's review requests: the service and the name of the project there.

/// Service that hosts repositories and review requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForgeKind {
    /// GitHub: pull requests, queried with `gh`.
    GitHub,
    /// GitLab, including self-hosted instances: merge requests, queried with `glab`.
    GitLab,
}

impl ForgeKind {
    /// Returns the program that queries the service.
    pub fn program(self) -> &'static str {
        match self {
            Self::GitHub => "gh",
            Self::GitLab => "glab",
        }
    }

    /// Returns the display name.
    pub fn name(self) -> &'static str {
        match self {
            Self::GitHub => "GitHub",
            Self::GitLab => "GitLab",
        }
    }
}

/// Project on such a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forge {
    /// Service.
    pub kind: ForgeKind,
    /// Host name in lower case.
    pub host: String,
    /// Name of the project, such as `owner/name`; GitLab's groups may be nested.
    pub project: String,
}

impl Forge {
    /// Returns the project of the remote at `address`: a URL, `user@host:path`, or `host/path` without a scheme if
    /// the host is github.com. Returns `None` for local paths, other services and addresses without a project.
    pub fn of(address: &str) -> Option<Self> {
        let address = address.trim();
        let (host, path) = match address.split_once("://") {
            Some(("https" | "http" | "ssh" | "git" | "git+ssh", rest)) => {
                let (authority, path) = rest.split_once('/')?;
                let host = authority.rsplit('@').next()?;
                (host.split(':').next()?, path)
            }
            Some(_) => return None,
            None => match address.split_once(':') {
                // A colon after a slash belongs to a path, and a single letter before a colon is a drive.
                Some((front, path)) if !front.contains('/') && front.len() > 1 => (front.rsplit('@').next()?, path),
                Some(_) => return None,
                None => address.split_once('/').filter(|(host, _)| host.eq_ignore_ascii_case("github.com"))?,
            },
        };
        let host = host.to_ascii_lowercase();
        let kind = if host == "github.com" || host == "ssh.github.com" {
            ForgeKind::GitHub
        } else if host.split('.').any(|part| part == "gitlab") {
            ForgeKind::GitLab
        } else {
            return None;
        };
        let path = path.split(['?', '#']).next()?.trim_matches('/');
        let path = path.strip_suffix(".git").unwrap_or(path);
        let parts: Vec<&str> = path.split('/').collect();
        let is_name = |part: &&str| !part.is_empty() && *part != "." && *part != "..";
        let fits = match kind {
            ForgeKind::GitHub => parts.len() == 2,
            ForgeKind::GitLab => parts.len() >= 2 && !parts.contains(&"-"),
        };
        let fits = fits && parts.iter().all(is_name) && !path.contains([' ', '\\', '@', ':']);
        fits.then(|| Self { kind, host, project: path.to_owned() })
    }
}

/// Returns `true` if a remote's address is a local folder. Such a remote cannot have review requests.
pub fn is_folder(address: &str) -> bool {
    let address = address.trim();
    match address.split_once("://") {
        Some((scheme, _)) => scheme.eq_ignore_ascii_case("file"),
        // A colon after a slash belongs to a path, and a single letter before a colon is a drive.
        None => address.split_once(':').is_none_or(|(front, _)| front.contains('/') || front.len() == 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_folders_are_distinguished_from_hosts() {
        for folder in ["/srv/a.git", "../a", "a/b", "file:///srv/a.git", "/odd:name/a.git", "C:\\a"] {
            assert!(is_folder(folder), "{folder}");
        }
        for host in ["https://example.org/a/b", "git@example.org:a/b.git", "ssh://host/a", "host:a"] {
            assert!(!is_folder(host), "{host}");
        }
    }

    fn describe(address: &str) -> Option<String> {
        Forge::of(address).map(|forge| format!("{} {} {}", forge.kind.name(), forge.host, forge.project))
    }

    #[test]
    fn projects_are_recognised_in_every_address_form() {
        for address in [
            "https://github.com/foo/bar.git",
            "https://github.com/foo/bar/",
            "https://user:token@GitHub.com:443/foo/bar",
            "git@github.com:foo/bar.git",
            "ssh://git@github.com/foo/bar.git",
            "github.com/foo/bar",
            "https://github.com/foo/bar.git?x=1#y",
        ] {
            assert_eq!(describe(address).as_deref(), Some("GitHub github.com foo/bar"), "{address}");
        }
        assert_eq!(describe("git@gitlab.com:group/sub/bar.git").as_deref(), Some("GitLab gitlab.com group/sub/bar"));
        assert_eq!(describe("https://gitlab.example.org/a/b").as_deref(), Some("GitLab gitlab.example.org a/b"));
    }

    #[test]
    fn paths_other_services_and_pages_are_not_projects() {
        for address in [
            "",
            "foo/bar",
            "/foo/bar",
            "../bar",
            "./foo/bar",
            "C:/repos",
            "/tmp/a/b.git",
            "file:///tmp/a/b",
            "https://example.org/foo/bar",
            "https://notgithub.com/foo/bar",
            "https://github.com/foo/bar/tree/main",
            "https://github.com/foo",
            "git@github.com:../bar",
        ] {
            assert_eq!(describe(address), None, "{address}");
        }
    }
}
