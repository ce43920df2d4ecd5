//! Folders of the trials: `case/arm/run-1`, below a folder for the suite if there are several suites.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use model::TrialId;

/// Maximum length of a name. Longer names are cut and end with a digest: file systems allow 255 bytes, and the names
/// of other files are derived from these.
const MAX_NAME_LEN: usize = 120;

/// Folders of the trials, relative to the top.
#[derive(Debug, Default)]
pub(super) struct TrialFolders {
    trials: HashMap<String, PathBuf>,
    names: FolderNames,
    by_suite: bool,
}

/// Names of folders, level by level. Names that differ only on some file systems get a number.
#[derive(Debug, Default)]
struct FolderNames {
    given: HashMap<(PathBuf, String), String>,
    taken: HashSet<(PathBuf, String)>,
}

impl FolderNames {
    /// Returns the folder for `name` in `parent`. The result is always the same.
    fn below(&mut self, parent: &Path, name: &str) -> PathBuf {
        self.called(parent, name, name)
    }

    /// Returns the folder for `name` in `parent`. It is called `called` unless another name has taken that.
    fn called(&mut self, parent: &Path, name: &str, called: &str) -> PathBuf {
        let key = (parent.to_owned(), name.to_owned());
        if let Some(given) = self.given.get(&key) {
            return parent.join(given);
        }
        let plain = folder_name(called);
        let mut given = plain.clone();
        let mut number = 2;
        while !self.taken.insert((parent.to_owned(), given.to_lowercase())) {
            given = format!("{plain}~{number}");
            number += 1;
        }
        let path = parent.join(&given);
        self.given.insert(key, given);
        path
    }
}

impl TrialFolders {
    /// Assigns folders to the trials of a plan; `reserved` are names of files at the top level.
    pub(super) fn new(trials: &[TrialId], reserved: &[&str]) -> Self {
        let mut folders = Self::default();
        let suites: HashSet<&str> = trials.iter().map(|trial| &*trial.suite).collect();
        folders.by_suite = suites.len() > 1;
        for name in reserved {
            folders.names.taken.insert((PathBuf::new(), name.to_lowercase()));
        }
        // Which name gets a number must not depend on the order in which trials run.
        let mut sorted: Vec<&TrialId> = trials.iter().collect();
        sorted.sort_by_key(|id| (&id.suite, &id.case, &id.arm, id.repetition));
        for id in sorted {
            folders.add(id);
        }
        folders
    }

    fn add(&mut self, id: &TrialId) -> PathBuf {
        let mut path = PathBuf::new();
        if self.by_suite {
            // An evaluation of a skill, `NAME/evals`, uses the folder of its skill.
            let skill = id.suite.strip_suffix("/evals").unwrap_or(&id.suite);
            path = self.names.called(&path, &id.suite, skill);
        }
        path = self.names.below(&path, &id.case);
        path = self.names.below(&path, &id.arm);
        path = path.join(format!("run-{}", id.repetition));
        self.trials.insert(id.to_string(), path.clone());
        path
    }

    /// Returns the folder of the trial with that printed id.
    pub(super) fn get(&self, trial: &str) -> Option<&Path> {
        self.trials.get(trial).map(PathBuf::as_path)
    }
}

/// Returns `name` as a valid folder name on every file system: letters, digits and `._+-=@,`; everything else as `%`
/// and two digits.
pub(crate) fn folder_name(name: &str) -> String {
    let mut written = String::with_capacity(name.len());
    for (offset, c) in name.char_indices() {
        let is_plain = c.is_alphanumeric() || "_+-=@,".contains(c) || (c == '.' && offset > 0);
        if is_plain {
            written.push(c);
        } else {
            let mut bytes = [0; 4];
            c.encode_utf8(&mut bytes).bytes().for_each(|byte| written.push_str(&format!("%{byte:02X}")));
        }
    }
    if written.ends_with('.') {
        written.truncate(written.len() - 1);
        written.push_str("%2E");
    }
    if written.len() > MAX_NAME_LEN {
        let digest = name
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325_u64, |digest, byte| (digest ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
        written = format!("{}~{digest:016x}", &written[..written.floor_char_boundary(MAX_NAME_LEN - 20)]);
    }
    if written.is_empty() { "%".to_owned() } else { written }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(suite: &str, case: &str, arm: &str) -> TrialId {
        TrialId { suite: suite.into(), case: case.into(), arm: arm.into(), repetition: 1 }
    }

    fn path_of(folders: &TrialFolders, id: &TrialId) -> String {
        folders.get(&id.to_string()).unwrap().display().to_string()
    }

    #[test]
    fn each_suite_has_a_folder_if_there_are_several() {
        let (a, b) = (id("s", "1", "fake+with_skill"), id("t", "1", "codex:o/x y"));
        assert_eq!(path_of(&TrialFolders::new(std::slice::from_ref(&a), &[]), &a), "1/fake+with_skill/run-1");
        let both = TrialFolders::new(&[a.clone(), b.clone()], &[]);
        assert_eq!(path_of(&both, &a), "s/1/fake+with_skill/run-1");
        assert_eq!(path_of(&both, &b), "t/1/codex%3Ao%2Fx%20y/run-1");
        let (tests, evals) = (id("s", "1", "fake"), id("s/evals", "1", "fake"));
        assert_eq!(path_of(&TrialFolders::new(&[evals.clone(), b], &[]), &evals), "s/1/fake/run-1");
        let both = TrialFolders::new(&[tests.clone(), evals.clone()], &[]);
        assert_eq!(
            (path_of(&both, &tests), path_of(&both, &evals)),
            ("s/1/fake/run-1".into(), "s~2/1/fake/run-1".into())
        );
    }

    #[test]
    fn names_map_to_distinct_folders_that_cannot_escape() {
        let long = "x".repeat(400);
        let names =
            ["a", "A", "a/b", "a%2Fb", "..", ".", "", "summary.json", "SUMMARY.json", &long, "a.", "ä", "a\u{308}"];
        let ids: Vec<TrialId> = names.iter().map(|name| id("s", name, "x")).collect();
        let folders = TrialFolders::new(&ids, &["summary.json"]);
        let found: HashSet<String> = ids.iter().map(|id| path_of(&folders, id).to_lowercase()).collect();
        assert_eq!(found.len(), names.len(), "{found:?}");
        for path in &found {
            assert_eq!(path.split('/').count(), 3, "{path}");
            assert!(!path.starts_with('.') && !path.starts_with("summary.json/") && path.len() < 200, "{path}");
        }
        let turned: Vec<TrialId> = ids.iter().rev().cloned().collect();
        let again = TrialFolders::new(&turned, &["summary.json"]);
        assert!(ids.iter().all(|id| path_of(&again, id) == path_of(&folders, id)));
    }
}
