//! The part of the agent's settings that assertions' commands see. They work in a copy to which the agent has never
//! written, but its content comes from the agent: git settings in it must not decide what git shows or runs.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use walkdir::{DirEntry, WalkDir};

use super::git_config::without_programs;
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
/// settings could hide changes or run programs. Remotes, branches and the author are kept. Repositories below it lose
/// settings that could run programs.
///
/// # Errors
/// Returns an error if the files cannot be written.
pub(super) fn restore(work: &Path, before: Option<&GitSettings>) -> io::Result<()> {
    restore_own(work, before)?;
    disarm_others(work)
}

fn restore_own(work: &Path, before: Option<&GitSettings>) -> io::Result<()> {
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

/// Returns the git directories below `work`: its own, nested ones, those of submodules and worktrees, and bare ones.
fn git_directories(work: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let folders = WalkDir::new(work).into_iter().flatten().filter(|entry| entry.file_type().is_dir());
    folders.map(DirEntry::into_path).filter(|folder| {
        let has = |name: &str| folder.join(name).symlink_metadata().is_ok();
        has("config") && ["HEAD", "objects", "refs"].into_iter().any(has)
    })
}

/// Makes git run no hook in `work`, for programs that do not get the [fixed settings](FIXED). The files stay.
pub(super) fn disable_hooks(work: &Path) -> io::Result<()> {
    for hooks in git_directories(work).map(|folder| folder.join("hooks")) {
        if hooks.is_symlink() {
            replace(&hooks, None)?;
        }
        for hook in hooks.read_dir().into_iter().flatten().flatten() {
            let meta = hook.metadata()?;
            if meta.is_file() {
                fs::set_permissions(hook.path(), fs::Permissions::from_mode(meta.mode() & 0o666))?;
            } else if !meta.is_dir() {
                replace(&hook.path(), None)?;
            }
        }
    }
    Ok(())
}

/// Removes the settings that could run programs from every repository below `work` except its own.
fn disarm_others(work: &Path) -> io::Result<()> {
    for folder in git_directories(work) {
        let own = folder.join("config.worktree");
        if own.symlink_metadata().is_ok_and(|meta| !meta.is_dir()) {
            replace(&own, None)?;
        }
        if folder != work.join(".git") {
            let config = folder.join("config");
            let is_bare = folder.file_name() != Some(OsStr::new(".git"));
            let least = || format!("[core]\n\trepositoryformatversion = 0\n\tbare = {is_bare}\n").into_bytes();
            let safe = files::read(&config, LARGEST).ok().and_then(|old| without_programs(&old));
            replace(&config, Some(&safe.unwrap_or_else(least)))?;
        }
    }
    Ok(())
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
    fn nested_repositories_run_nothing() {
        let work = tempfile::tempdir().unwrap();
        let repository = |name: &str, config: &str| {
            let folder = work.path().join(name);
            fs::create_dir_all(folder.join("hooks")).unwrap();
            fs::write(folder.join("HEAD"), "ref: refs/heads/main\n").unwrap();
            let hook = folder.join("hooks/post-commit");
            fs::write(&hook, "#!/bin/sh\n").unwrap();
            fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
            fs::write(folder.join("config"), config).unwrap();
            folder
        };
        let own = repository(".git", "[core]\n\tfsmonitor = x\n\tbare = false\n");
        let nested = repository("sub/.git", "[core] fsmonitor = x\n");
        let module = repository(".git/modules/m", "[core]\n\tworktree = ../../..\n\tpager = x\n\tbare = false\n");
        fs::write(module.join("config.worktree"), "[core]\n\tfsmonitor = x\n").unwrap();
        restore(work.path(), None).unwrap();
        let config = |folder: &Path| fs::read_to_string(folder.join("config")).unwrap();
        assert_eq!(config(&own), "[core]\n\tbare = false\n");
        assert_eq!(config(&nested), "[core]\n\trepositoryformatversion = 0\n\tbare = false\n");
        assert_eq!(config(&module), "[core]\n\tbare = false\n");
        assert!(!module.join("config.worktree").exists());
        let hooks = [own, nested, module].map(|folder| folder.join("hooks/post-commit"));
        let is_executable = |hook: &Path| hook.metadata().unwrap().mode() & 0o111 > 0;
        assert!(hooks.iter().all(|hook| is_executable(hook)));
        disable_hooks(work.path()).unwrap();
        assert!(!hooks.iter().any(|hook| is_executable(hook)));
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
