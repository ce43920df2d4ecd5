//! Dependencies of a suite: the files that may affect it when they change.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use runner::{PlannedTrial, first_of_each_case};
use script::Library;
use suite::Project;

use crate::overrides::Overrides;
use crate::path::normalize;
use crate::session::Session;

/// File with shared blocks that the cases in its folder and below can extend.
pub const SHARED: &str = "_fixtures.yaml";

/// Maximum size of a file that is searched for file names, in bytes; larger files are considered data.
const MAX_SEARCHED_BYTES: u64 = 1 << 20;

/// Dependencies of a suite: files, and folders with everything below them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Dependencies {
    paths: BTreeSet<PathBuf>,
}

impl Dependencies {
    /// Returns the files and folders.
    pub fn paths(&self) -> impl Iterator<Item = &PathBuf> {
        self.paths.iter()
    }

    /// Returns `true` if the file at `path` is one of them.
    pub fn holds(&self, path: &Path) -> bool {
        path.ancestors().any(|part| self.paths.contains(part))
    }
}

/// Returns the folders and files in which suites may appear.
pub fn places(session: &Session, args: &Overrides) -> Vec<PathBuf> {
    let project = &session.project;
    let targets: Vec<String> = args.named().into_iter().chain(args.selection.skill.clone()).collect();
    if targets.is_empty() {
        let folders = [project.skills_dir.clone(), project.root.join("scenarios"), project.root.join("tests")];
        return folders.into_iter().chain(project.tests.clone()).collect();
    }
    let paths = |target: &String| [session.cwd.join(target), project.skills_dir.join(target)];
    targets.iter().flat_map(paths).filter(|path| path.exists()).map(|path| normalize(&path)).collect()
}

/// Returns the configuration with its imports, and the possible paths of a new one.
pub fn configuration(project: &Project) -> BTreeSet<PathBuf> {
    let mut paths: BTreeSet<PathBuf> = suite::config_names().map(|name| project.root.join(name)).collect();
    paths.extend(project.pricing.iter().map(|file| file.value.clone()));
    if let Some(file) = &project.file {
        paths.extend(Library::new().imports(file));
        paths.extend(named_in(file));
    }
    paths.retain(|path| !path.is_dir());
    paths
}

/// Returns the dependencies of each suite in `trials`, by the suite's file.
pub fn of_suites(session: &Session, trials: &[PlannedTrial]) -> BTreeMap<PathBuf, Dependencies> {
    let library = Library::new();
    let mut suites: BTreeMap<PathBuf, Dependencies> = BTreeMap::new();
    let mut files: BTreeSet<(PathBuf, PathBuf)> = BTreeSet::new();
    for trial in first_of_each_case(trials) {
        let paths = &mut suites.entry(trial.file.to_path_buf()).or_default().paths;
        paths.extend(trial.case.subject.skill().and_then(|skill| skill.directory.clone()));
        let written = trial.argument.iter().chain(trial.case.table.iter().map(|row| &row.file));
        paths.extend(written.map(|file| normalize(&session.cwd.join(&**file))).filter(|file| file.is_file()));
        for written in [trial.argument.as_deref(), trial.arm.model.as_deref()].into_iter().flatten() {
            paths.extend(existing(written, &session.cwd));
        }
        files.insert((trial.file.to_path_buf(), normalize(&session.cwd.join(&*trial.case.source.file))));
    }
    for (suite, file) in files {
        let Some(Dependencies { paths }) = suites.get_mut(&suite) else { continue };
        if !paths.insert(file.clone()) {
            continue;
        }
        let shared = file.ancestors().skip(1).take_while(|folder| folder.starts_with(&session.project.root));
        let shared: Vec<PathBuf> = shared.map(|folder| folder.join(SHARED)).filter(|path| path.is_file()).collect();
        paths.extend(named_in(&file));
        paths.extend(shared.iter().flat_map(|file| named_in(file)));
        paths.extend(shared);
        let modules: Vec<PathBuf> = paths.iter().filter(|path| path.is_file()).cloned().collect();
        paths.extend(modules.iter().flat_map(|module| library.imports(module)));
    }
    suites
}

/// Returns the files and folders named in the file at `path`. In any format, a word with a dot or a slash is a file
/// name if that file exists.
fn named_in(path: &Path) -> BTreeSet<PathBuf> {
    let text = files::read_named_text(path, MAX_SEARCHED_BYTES).unwrap_or_default();
    named_in_text(&text, path.parent().unwrap_or(Path::new("/")))
}

/// Folder of the project in the command of an agent, which works in another folder.
const PROJECT: &str = "{project}/";

/// Returns the files and folders named in `text`, relative to `directory`.
pub(crate) fn named_in_text(text: &str, directory: &Path) -> BTreeSet<PathBuf> {
    let text = text.replace(PROJECT, "");
    let is_part = |letter: char| letter.is_alphanumeric() || "_-./@+:#~".contains(letter);
    let words: BTreeSet<&str> = text.split(|letter: char| !is_part(letter)).filter(|word| is_like_path(word)).collect();
    words.into_iter().filter_map(|word| existing(word, directory)).collect()
}

fn is_like_path(word: &str) -> bool {
    word.contains(['.', '/'])
}

/// Returns the file or folder to which `word` refers, relative to `directory`: `scripted:models/a.yaml`,
/// `js://./check.ts#name`.
fn existing(word: &str, directory: &Path) -> Option<PathBuf> {
    let word = word.split('#').next().unwrap_or_default();
    let word = word.rsplit("://").next().unwrap_or_default();
    let word = word.rsplit(':').find(|part| !part.is_empty())?.trim_end_matches('.');
    if !is_like_path(word) || word.chars().all(|letter| matches!(letter, '.' | '/')) {
        return None;
    }
    let path = normalize(&directory.join(word));
    // A folder that contains the file itself is not a dependency.
    (path.exists() && !directory.starts_with(&path)).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_in_the_commands_of_agents_are_named_relative_to_the_project() {
        let directory = tempfile::tempdir().unwrap();
        for name in ["child.sh", "other.py"] {
            std::fs::write(directory.path().join(name), "").unwrap();
        }
        let text = "command: [sh, '{project}/child.sh']\ncommand: python3 ./other.py {project}/none.py";
        let named = named_in_text(text, directory.path());
        assert_eq!(named, ["child.sh", "other.py"].map(|name| directory.path().join(name)).into());
    }
}
