//! Signs of tampering that only the sandbox shows: what an agent left in the repository and in its home to change what
//! git and interpreters do. None of it affects the inspection itself.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use model::{IntegrityKind, IntegritySign};

use super::git_state::GitState;
use super::inspection::View;
use super::rebuild::object_id;

/// Parts of git's configuration that run programs or change what git shows, in lower case.
const EFFECTIVE: [&str; 10] = [
    "hookspath",
    "fsmonitor",
    "excludesfile",
    "attributesfile",
    "showuntrackedfiles",
    "[include",
    "[filter",
    "[alias",
    "sshcommand",
    "worktree",
];

/// Git's configuration files in a home.
const OF_HOME: [&str; 2] = [".gitconfig", ".config/git/config"];

/// Files in a home that change what git ignores.
const IGNORES: [&str; 2] = [".config/git/ignore", ".config/git/attributes"];

/// Maximum size of a configuration file that is read, in bytes.
const LARGEST: u64 = 1 << 20;

/// Maximum number of new objects that are examined.
const MOST_OBJECTS: usize = 2000;

/// Script that prints the commits among the objects in its arguments that no reference contains.
const HIDDEN: &str = r#"
head=$(g rev-parse -q --verify 'HEAD^{commit}')
commits=$(printf '%s\n' "$@" | g cat-file --batch-check='%(objecttype) %(objectname)' | sed -n 's/^commit //p')
[ -z "$commits" ] || g log --format='%H %s' --max-count=50 $commits --not --all ${head:+HEAD} --
"#;

/// Returns the signs in the repository and in the agent's home.
pub(super) fn signs(before: Option<&GitState>, now: Option<&GitState>, home: &Path) -> Vec<IntegritySign> {
    let mut signs = Vec::new();
    let nothing = BTreeMap::new();
    let settings = |state: Option<&GitState>| state.map_or_else(BTreeMap::new, |state| state.settings.0.clone());
    let old = settings(before);
    for (name, content) in settings(now) {
        let place = format!(".git/{name}");
        match old.get(name) {
            Some(known) if *known == content => {}
            known if name == "config" => signs.extend(of_configuration(&place, known, &content)),
            known if known.is_some() || has_entries(&content) => {
                let detail = "it changes which files git shows, or how";
                signs.push(IntegritySign::new(IntegrityKind::GitSetting, place, detail));
            }
            _ => {}
        }
    }
    let hooks = before.map_or(&nothing, |state| &state.hooks);
    for (name, size) in now.map_or(&nothing, |state| &state.hooks) {
        if hooks.get(name) != Some(size) {
            let detail = "git runs it, for example for each commit";
            signs.push(IntegritySign::new(IntegrityKind::GitHook, format!(".git/hooks/{name}"), detail));
        }
    }
    if before.is_some() && now.is_none() {
        let detail = "the agent removed or replaced the repository";
        signs.push(IntegritySign::new(IntegrityKind::GitSetting, ".git", detail));
    }
    signs.extend(of_home(home));
    signs
}

/// Returns the signs in a git configuration file whose earlier content was `old`.
fn of_configuration(place: &str, old: Option<&Vec<u8>>, new: &[u8]) -> Vec<IntegritySign> {
    let text = |content: &[u8]| String::from_utf8_lossy(content).to_lowercase();
    let (old, new) = (old.map(|old| text(old)).unwrap_or_default(), text(new));
    let is_new = |part: &&&str| new.matches(**part).count() > old.matches(**part).count();
    let sign = |part: &&str| {
        let detail = format!("it sets `{}`", part.trim_start_matches('['));
        IntegritySign::new(IntegrityKind::GitSetting, place, detail)
    };
    EFFECTIVE.iter().filter(is_new).map(sign).collect()
}

/// Returns `true` if a file has a line that is not a comment.
fn has_entries(content: &[u8]) -> bool {
    String::from_utf8_lossy(content).lines().any(|line| !line.trim().is_empty() && !line.starts_with('#'))
}

fn of_home(home: &Path) -> Vec<IntegritySign> {
    let mut signs = Vec::new();
    for name in OF_HOME {
        if let Ok(content) = files::read(&home.join(name), LARGEST) {
            signs.extend(of_configuration(&format!("~/{name}"), None, &content));
        }
    }
    for name in IGNORES {
        if files::read(&home.join(name), LARGEST).is_ok_and(|content| has_entries(&content)) {
            let detail = "it changes which files git shows, or how";
            signs.push(IntegritySign::new(IntegrityKind::GitSetting, format!("~/{name}"), detail));
        }
    }
    for path in packages(home) {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.ends_with(".pth") || matches!(&*name, "sitecustomize.py" | "usercustomize.py") {
            let place = format!("~/{}", path.strip_prefix(home).unwrap_or(&path).display());
            let detail = "Python loads it automatically";
            signs.push(IntegritySign::new(IntegrityKind::PlantedCode, place, detail));
        }
    }
    signs
}

/// Returns the files of Python packages in a home.
fn packages(home: &Path) -> Vec<PathBuf> {
    let entries = |folder: PathBuf| fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let versions = entries(home.join(".local/lib"));
    versions.flat_map(|version| entries(version.join("site-packages"))).collect()
}

/// Returns the ids of new objects. Objects are compared as files, so none are found if they are in packs or if there
/// are too many.
pub(super) fn new_objects(before: Option<&GitState>, now: Option<&GitState>) -> Vec<String> {
    let objects = |state: Option<&'_ GitState>| state.and_then(|state| state.objects.clone());
    let (Some(old), Some(new)) = (objects(before), objects(now)) else { return Vec::new() };
    let added = new.keys().filter(|path| !old.contains_key(*path));
    added.filter_map(|path| object_id(path)).take(MOST_OBJECTS).collect()
}

/// Returns the contents of the objects `ids`.
pub(super) async fn contents(view: &View<'_>, ids: &[String]) -> String {
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    let script = r#"printf '%s\n' "$@" | g cat-file --batch | tr -d '\000'"#;
    view.script(script, &ids).await.unwrap_or_default().join("\n")
}

/// Returns the commits among the objects `ids` that no reference contains.
pub(super) async fn hidden_commits(view: &View<'_>, ids: &[String]) -> Vec<IntegritySign> {
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    let lines = view.script(HIDDEN, &ids).await.unwrap_or_default();
    let commits = lines.iter().filter_map(|line| line.split_once(' '));
    commits
        .map(|(commit, subject)| {
            let detail = format!("no branch contains the commit \"{subject}\"");
            IntegritySign::new(IntegrityKind::HiddenCommit, commit.chars().take(12).collect::<String>(), detail)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_settings_that_change_what_git_does_are_signs() {
        let of = |old: &str, new: &str| of_configuration("c", Some(&old.into()), new.as_bytes()).len();
        assert_eq!(of("", "[remote \"origin\"]\n\turl = x\n[branch \"main\"]\n\tremote = origin\n"), 0);
        assert_eq!(of("[core]\n\thooksPath = a\n", "[core]\n\thooksPath = a\n"), 0);
        assert_eq!(of("", "[core]\n\tHooksPath = a\n\texcludesFile = b\n[Include]\n\tpath = c\n"), 3);
    }

    #[test]
    fn what_changes_git_and_python_in_a_home_is_a_sign() {
        let home = tempfile::tempdir().unwrap();
        let write = |name: &str, content: &str| {
            let path = home.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        };
        write(".gitconfig", "[user]\n\tname = Ada\n");
        write(".config/git/ignore", "# nothing\n");
        assert!(signs(None, None, home.path()).is_empty());
        write(".gitconfig", "[status]\n\tshowUntrackedFiles = no\n");
        write(".config/git/ignore", "*\n");
        write(".local/lib/python3.12/site-packages/a.pth", "import os\n");
        let places: Vec<String> = signs(None, None, home.path()).into_iter().map(|sign| sign.place).collect();
        assert_eq!(places, ["~/.gitconfig", "~/.config/git/ignore", "~/.local/lib/python3.12/site-packages/a.pth"]);
    }

    #[test]
    fn only_paths_of_single_objects_have_an_id() {
        assert_eq!(object_id(Path::new(&format!("ab/{}", "1".repeat(38)))).map(|id| id.len()), Some(40));
        assert_eq!(object_id(Path::new("pack/pack-1.idx")), None);
    }
}
