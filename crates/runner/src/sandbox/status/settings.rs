//! Whether what a repository and its surroundings are set to has no say in which files changed.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

/// The largest configuration that is read, in bytes.
const LARGEST: u64 = 64 * 1024;

/// Sections that say who commits, where to and how that looks.
const HARMLESS: &[&str] = &[
    "user",
    "author",
    "committer",
    "commit",
    "gc",
    "maintenance",
    "remote",
    "branch",
    "init",
    "advice",
    "push",
    "pull",
];

/// What the section `core` may say: any value, or the one that is written here.
const CORE: &[(&str, Option<&str>)] = &[
    ("repositoryformatversion", Some("0")),
    ("filemode", Some("true")),
    ("bare", Some("false")),
    ("logallrefupdates", None),
    ("trustctime", None),
    ("checkstat", None),
    ("editor", None),
    ("hookspath", None),
];

/// Variables of git's that name people and nothing else, and those that every sandbox has.
const VARIABLES: &[&str] = &[
    "GIT_AUTHOR_NAME",
    "GIT_AUTHOR_EMAIL",
    "GIT_AUTHOR_DATE",
    "GIT_COMMITTER_NAME",
    "GIT_COMMITTER_EMAIL",
    "GIT_COMMITTER_DATE",
    "GIT_EDITOR",
    "GIT_CONFIG_NOSYSTEM",
    "GIT_CEILING_DIRECTORIES",
    "GIT_TERMINAL_PROMPT",
];

/// Whether a repository's own files and the environment that git would have leave `git status` at its defaults.
pub(super) fn are_plain(git: &Path, env: &BTreeMap<String, String>) -> bool {
    let config = git.join("config");
    let is_small = config.symlink_metadata().is_ok_and(|meta| meta.is_file() && meta.len() <= LARGEST);
    is_small
        && fs::read_to_string(config).is_ok_and(|text| is_plain(&text))
        && ["commondir", "info/attributes"].iter().all(|name| is_absent(&git.join(name)))
        && [("HOME", ".config/git"), ("XDG_CONFIG_HOME", "git")].iter().all(|(name, directory)| {
            let Some(home) = env.get(*name).map(Path::new) else { return true };
            home.is_absolute()
                && ["ignore", "attributes"].iter().all(|file| is_absent(&home.join(directory).join(file)))
        })
        && !env.keys().any(|name| name.starts_with("GIT_") && !VARIABLES.contains(&name.as_str()))
}

fn is_absent(path: &Path) -> bool {
    path.symlink_metadata().is_err_and(|error| matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory))
}

/// Whether a configuration says nothing that matters here.
fn is_plain(config: &str) -> bool {
    let mut section = String::new();
    for line in config.lines().map(str::trim) {
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        if let Some(rest) = line.strip_prefix('[') {
            let Some(name) = rest.strip_suffix(']').and_then(section_of) else { return false };
            section = name;
            continue;
        }
        let Some((key, value)) = line.split_once('=') else { return false };
        let (key, value) = (key.trim().to_ascii_lowercase(), value.trim());
        let known = CORE.iter().find(|(name, _)| *name == key);
        let is_harmless = match section.as_str() {
            "core" => known.is_some_and(|(_, fixed)| fixed.is_none_or(|fixed| fixed == value)),
            section => HARMLESS.contains(&section),
        };
        if !is_harmless || line.ends_with('\\') {
            return false;
        }
    }
    true
}

/// The name of a section whose head has that between its brackets; what it is a section of is of no interest.
fn section_of(head: &str) -> Option<String> {
    let (name, of) = head.split_once(' ').unwrap_or((head, "\"\""));
    let is_quoted = of.strip_prefix('"').and_then(|of| of.strip_suffix('"')).is_some_and(|of| !of.contains('"'));
    let is_name = name.bytes().all(|byte| byte.is_ascii_alphanumeric());
    (is_quoted && is_name).then(|| name.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clones_configuration_is_plain() {
        let config = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n\
                      [remote \"origin\"]\n\turl = /a/b [c]\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n\
                      [branch \"a b\"]\n\tremote = origin\n# [status]\n";
        assert!(is_plain(config));
        assert!(is_plain(crate::sandbox::git::CONFIG));
    }

    #[test]
    fn what_has_a_say_or_is_not_understood_is_not() {
        for config in [
            "[core]\n\tfilemode = false",
            "[core]\n\texcludesFile = x",
            "[core]\n\tautocrlf = true",
            "[core]\n\tfilemode",
            "[status]\n\tshowUntrackedFiles = no",
            "[include]\n\tpath = x",
            "[extensions]\n\tobjectFormat = sha256",
            "[submodule \"a\"]\n\tactive = true",
            "[user] name = a",
            "[user] [status] ; ]",
            "[diff] renames = copies",
            "[user]\n\tname = a\\\n[status]",
            "[user\n",
            "x = y",
        ] {
            assert!(!is_plain(config), "{config}");
        }
    }

    #[test]
    fn variables_and_files_of_the_user_have_a_say() {
        let base = tempfile::tempdir().unwrap();
        let (git, home) = (base.path().join(".git"), base.path().join("home"));
        fs::create_dir_all(git.join("info")).unwrap();
        fs::create_dir_all(home.join(".config/git")).unwrap();
        fs::write(git.join("config"), "[core]\n\tbare = false\n").unwrap();
        let plain = BTreeMap::from([("HOME".to_owned(), home.to_string_lossy().into_owned())]);
        assert!(are_plain(&git, &plain));
        let named = [("GIT_AUTHOR_NAME".to_owned(), "A".to_owned())];
        assert!(are_plain(&git, &plain.clone().into_iter().chain(named).collect()));
        for (name, value) in [("GIT_INDEX_FILE", "/x"), ("XDG_CONFIG_HOME", "here"), ("XDG_CONFIG_HOME", "")] {
            let other = [(name.to_owned(), value.to_owned())];
            assert!(!are_plain(&git, &plain.clone().into_iter().chain(other).collect()), "{name}={value}");
        }
        for file in [git.join("commondir"), git.join("info/attributes"), home.join(".config/git/ignore")] {
            fs::write(&file, "").unwrap();
            assert!(!are_plain(&git, &plain), "{}", file.display());
            fs::remove_file(&file).unwrap();
        }
        assert!(are_plain(&git, &plain));
    }
}
