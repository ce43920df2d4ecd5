//! The part of the agent's settings that assertions' commands see. They work in a copy to which the agent has never
//! written, but its content comes from the agent: git settings in it must not decide what git shows or runs.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;

use super::git_state::GitSettings;
use super::inspection;

/// Git settings that are fixed, because an agent could hide changes or run programs with them.
const FIXED: [(&str, &str); 6] = [
    ("core.hooksPath", "/dev/null"),
    ("core.fsmonitor", "false"),
    ("core.untrackedCache", "false"),
    ("core.excludesFile", "/dev/null"),
    ("core.attributesFile", "/dev/null"),
    ("status.showUntrackedFiles", "normal"),
];

/// Variables that make shells run a file first.
const STARTUP: [&str; 2] = ["BASH_ENV", "ENV"];

/// Variable with the number of settings in further variables.
const COUNT: &str = "GIT_CONFIG_COUNT";

/// Sections of git's configuration that run programs or read other files, in lower case.
const DROPPED: [&str; 8] = ["include", "includeif", "filter", "alias", "diff", "merge", "credential", "url"];

/// Files in a repository with patterns that apply only to it.
const PATTERNS: [&str; 2] = ["info/exclude", "info/attributes"];

/// Maximum size of a configuration file that is read, in bytes.
const LARGEST: u64 = 1 << 20;

/// Returns the environment for commands: that of the sandbox at `base`, without startup files, and with fixed git
/// settings. `PATH` has only absolute entries outside the sandbox, unless `keeps_path` says that the suite sets it.
pub(super) fn environment(
    mut env: BTreeMap<String, String>,
    base: &Path,
    keeps_path: bool,
) -> BTreeMap<String, String> {
    if !keeps_path && let Some(path) = inspection::environment(&env, base).remove("PATH") {
        env.insert("PATH".to_owned(), path);
    }
    for name in STARTUP {
        env.remove(name);
    }
    let first: usize = env.get(COUNT).and_then(|count| count.parse().ok()).unwrap_or_default();
    for (at, (key, value)) in FIXED.iter().enumerate() {
        env.insert(format!("GIT_CONFIG_KEY_{}", first + at), (*key).to_owned());
        env.insert(format!("GIT_CONFIG_VALUE_{}", first + at), (*value).to_owned());
    }
    env.insert(COUNT.to_owned(), (first + FIXED.len()).to_string());
    env
}

/// Restores the repository settings `before` in the copied working directory `work`, as far as the agent's own
/// settings could hide changes or run programs. Remotes, branches and the author are kept.
///
/// # Errors
/// Returns an error if the files cannot be written.
pub(super) fn restore(work: &Path, before: Option<&GitSettings>) -> io::Result<()> {
    let (git, nothing) = (work.join(".git"), BTreeMap::new());
    // A link could lead out of the copy.
    let is_directory = |path: &Path| path.symlink_metadata().is_ok_and(|meta| meta.is_dir());
    if !is_directory(&git) {
        return Ok(());
    }
    let before = before.map_or(&nothing, |before| &before.0);
    for name in PATTERNS.iter().filter(|_| is_directory(&git.join("info"))) {
        replace(&git.join(name), before.get(name).map(Vec::as_slice))?;
    }
    let old = before.get("config").map(Vec::as_slice);
    let config = git.join("config");
    match files::read(&config, LARGEST) {
        Ok(new) if old == Some(new.as_slice()) => Ok(()),
        Ok(new) => replace(&config, without_programs(&new).as_deref().or(old)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        // It is too large, a link or a pipe.
        Err(_) => replace(&config, old),
    }
}

/// Replaces a file with one that has this content, or removes it.
pub(super) fn replace(path: &Path, content: Option<&[u8]>) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    content.map_or(Ok(()), |content| fs::write(path, content))
}

/// Returns a configuration without the sections that run programs or read other files; `None` if it is not written as
/// git itself would write it.
fn without_programs(config: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(config).ok()?;
    let mut kept = String::with_capacity(text.len());
    let mut is_kept = true;
    for line in text.lines() {
        let trimmed = line.trim();
        if let Some(header) = trimmed.strip_prefix('[') {
            let section = header.strip_suffix(']')?;
            let name = section.split([' ', '.', '"', '\t']).next().unwrap_or(section).to_ascii_lowercase();
            is_kept = !DROPPED.contains(&name.as_str());
        } else if trimmed.ends_with('\\') {
            return None;
        }
        if is_kept {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    Some(kept.into_bytes())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn the_environment_has_a_clean_path_and_fixed_settings() {
        let env = [("PATH", "/bin:.:/box/bin:rel"), ("BASH_ENV", "x"), ("GIT_CONFIG_COUNT", "1"), ("A", "b")];
        let env: BTreeMap<String, String> = env.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let clean = environment(env.clone(), Path::new("/box"), false);
        assert_eq!((clean["PATH"].as_str(), clean["A"].as_str(), clean.get("BASH_ENV")), ("/bin", "b", None));
        assert_eq!((clean[COUNT].as_str(), clean["GIT_CONFIG_KEY_1"].as_str()), ("7", "core.hooksPath"));
        assert_eq!(environment(env, Path::new("/box"), true)["PATH"], "/bin:.:/box/bin:rel");
    }

    #[test]
    fn only_sections_that_run_nothing_are_kept() {
        let config =
            "[core]\n\tbare = false\n[include]\n\tpath = x\n[remote \"o\"]\n\turl = y\n[Filter \"f\"]\n\tclean = z\n";
        let kept = String::from_utf8(without_programs(config.as_bytes()).unwrap()).unwrap();
        assert_eq!(kept, "[core]\n\tbare = false\n[remote \"o\"]\n\turl = y\n");
        for odd in ["[include] path = x\n", "[core]\n\ta = b\\\n[include]\n", "[core\n"] {
            assert_eq!(without_programs(odd.as_bytes()), None, "{odd}");
        }
    }

    #[test]
    fn settings_from_before_replace_those_that_hide_changes() {
        let work = tempfile::tempdir().unwrap();
        let git = work.path().join(".git");
        fs::create_dir_all(git.join("info")).unwrap();
        fs::write(git.join("info/exclude"), "*\n").unwrap();
        fs::write(git.join("info/attributes"), "* filter=f\n").unwrap();
        fs::write(git.join("config"), "[core] fsmonitor = x\n").unwrap();
        let before = GitSettings([("config", b"[core]\n".to_vec()), ("info/exclude", b"/skill\n".to_vec())].into());
        restore(work.path(), Some(&before)).unwrap();
        assert_eq!(fs::read_to_string(git.join("config")).unwrap(), "[core]\n");
        assert_eq!(fs::read_to_string(git.join("info/exclude")).unwrap(), "/skill\n");
        assert!(!git.join("info/attributes").exists());
    }

    #[test]
    fn links_are_not_followed() {
        let work = tempfile::tempdir().unwrap();
        let outside = work.path().join("outside");
        fs::create_dir_all(outside.join("info")).unwrap();
        fs::write(outside.join("info/exclude"), "mine\n").unwrap();
        fs::create_dir(work.path().join("copy")).unwrap();
        symlink(&outside, work.path().join("copy/.git")).unwrap();
        restore(&work.path().join("copy"), None).unwrap();
        assert_eq!(fs::read_to_string(outside.join("info/exclude")).unwrap(), "mine\n");
    }
}
