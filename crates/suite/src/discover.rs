//! Finds the files to load: by default the tests of all skills and the project's scenarios, otherwise the targets that
//! the user named.

use std::collections::{BTreeMap, HashSet};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use model::decode::Problems;
use model::{Diagnostic, Excerpt, nearest};
use walkdir::{DirEntry, WalkDir};

use crate::document::{self, Language};
use crate::format::{self, EVALS_FILE};
use crate::path;
use crate::request::Request;
use crate::skill::{EVALS_FOLDER, SKILL_FILE, SUB_AGENTS_FOLDER, TESTS_FOLDER};
use crate::skills::{chosen_skill, folders, misnamed, names_in, skill_names, skills};

/// Folder in the project's root for suites that do not belong to a skill.
pub const SCENARIOS_FOLDER: &str = "scenarios";

/// Folder in the project's root for suites that are stored separately from their skills.
const EXAMPLES_FOLDER: &str = "examples";

/// File that may contain a suite.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// Absolute path.
    pub path: PathBuf,
    /// Reason why the file is considered.
    pub reason: DiscoveryReason,
}

/// Reason why a file is considered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiscoveryReason {
    /// The file must be a suite: the user named it, or it is in a folder that contains only suites.
    Suite,
    /// The file was found below a directory that the user named. A file that is nearly a suite, or cannot be read, is
    /// reported.
    Searched,
    /// The file is in a subfolder of the project's scenarios, which may also contain scripts and other files. A file
    /// that is nearly a suite is reported.
    Deeper,
}

/// Returns the files that `request` names, without duplicates and in the order in which they are named; files in a
/// directory are sorted by path.
pub fn candidates(request: &Request, problems: &mut Problems) -> Vec<Candidate> {
    let mut found = Vec::new();
    if let Some(written) = &request.skill {
        found.extend(of_chosen_skill(written, request, problems));
    } else if request.targets.is_empty() {
        let scenarios = request.root.join(SCENARIOS_FOLDER);
        let evals = evals_below(&request.root);
        let folders = [&request.skills_dir, &scenarios];
        if folders.iter().all(|folder| !folder.is_dir()) && request.tests.is_none() && evals.is_empty() {
            problems.push(nothing_there(request));
        }
        found.extend(tests_of_skills(&request.skills_dir, request, problems));
        found.extend(evals);
        found.extend(below(&scenarios, DiscoveryReason::Deeper).into_iter().map(|mut candidate| {
            if candidate.path.parent() == Some(&scenarios) {
                candidate.reason = DiscoveryReason::Suite;
            }
            candidate
        }));
        found.extend(request.tests.iter().flat_map(|tests| below(tests, DiscoveryReason::Searched)));
    }
    for target in &request.targets {
        found.extend(named(target, request, problems));
    }
    // A folder that cannot be read may contain tests. If it were not reported, the run would succeed without them.
    problems.extend(passed_over(request));
    let mut seen = HashSet::new();
    found.retain(|candidate| seen.insert(candidate.path.clone()));
    found
}

/// Reports that the project has none of the folders for tests.
fn nothing_there(request: &Request) -> Diagnostic {
    let shown = path::shown(&request.skills_dir, &request.cwd);
    let problem =
        Diagnostic::error(format!("there are no tests here: neither `tests` nor `{SCENARIOS_FOLDER}` nor `{shown}`"));
    let beside = std::fs::read_dir(&request.cwd).into_iter().flatten().flatten().map(|entry| entry.path());
    // Suggest only files whose names show their format: others are read only if they are named.
    let mut tests: Vec<String> =
        beside.filter(|path| format::named(path).is_some()).map(|path| path::shown(&path, &request.cwd)).collect();
    tests.sort();
    let problem = match tests.as_slice() {
        [] => problem,
        [first, ..] => problem.help(format!("`trialrun run {first}` runs that file")),
    };
    problem
        .help("name a file, a directory or a skill to run, or set `tests` or `skills_dir` in `trialrun.yaml`")
        .help("`trialrun init` creates a first test")
}

/// Returns the suite of the chosen skill, unless files were named with it.
fn of_chosen_skill(written: &str, request: &Request, problems: &mut Problems) -> Option<Candidate> {
    let Some(skill) = chosen_skill(request) else {
        let directory = path::resolve(&request.cwd, written);
        let problem = Diagnostic::error(format!("`{written}` is not a skill: it has no {SKILL_FILE}"));
        let known = skill_names(&request.skills_dir);
        let near = nearest(written, known.iter().map(String::as_str)).map(str::to_owned);
        let misnamed = misnamed(&directory).map(|name| format!("did you mean `{SKILL_FILE}` instead of `{name}`?"));
        problems.push(misnamed.into_iter().fold(problem.suggest(near.as_deref()), Diagnostic::help));
        return None;
    };
    if !request.targets.is_empty() {
        return None;
    }
    let evals = evals_of(&skill);
    if evals.is_none() {
        let shown = path::shown(&skill, &request.cwd);
        let problem = Diagnostic::error(format!("the `{written}` skill has no `{EVALS_FOLDER}/{EVALS_FILE}`"));
        let problem = problem.help("name its suite if it is elsewhere");
        problems.push(match tests_of(&skill).is_empty() {
            true => problem,
            false => problem.help(format!("the skill has tests: name `{shown}` as a target to run them")),
        });
    }
    evals
}

/// Returns the `evals.json` of a skill: its own, otherwise the one with its name in the examples folder next to the
/// skills.
fn evals_of(skill: &Path) -> Option<Candidate> {
    // The suite of the sub-agent `agents/NAME.md` is in `agents/NAME`.
    let folder = if skill.is_file() { skill.with_extension("") } else { skill.to_owned() };
    let skill = folder.as_path();
    let in_folder = |folder: &Path| folder.join(EVALS_FOLDER).join(EVALS_FILE);
    let beside = || {
        let folder = skill.parent()?.parent()?.join(EXAMPLES_FOLDER).join(skill.file_name()?);
        Some(in_folder(&folder)).filter(|path| path.is_file())
    };
    let path = Some(in_folder(skill)).filter(|path| path.is_file()).or_else(beside)?;
    Some(Candidate { path, reason: DiscoveryReason::Suite })
}

/// Returns the suites of the skills in `root`, in the folders below it, and in its folders of examples and sub-agents.
fn evals_below(root: &Path) -> Vec<Candidate> {
    let files = evals_places(root).into_iter().filter(|path| path.is_file());
    files.map(|path| Candidate { path, reason: DiscoveryReason::Searched }).collect()
}

/// Returns the paths at which [`evals_below`] looks for suites.
fn evals_places(root: &Path) -> Vec<PathBuf> {
    let is_hidden = |path: &Path| path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
    let own = folders(root);
    let examples = folders(&root.join(EXAMPLES_FOLDER));
    let sub_agents = folders(&root.join(SUB_AGENTS_FOLDER));
    let all = std::iter::once(root.to_owned())
        .chain(own)
        .chain(examples)
        .chain(sub_agents)
        .filter(|folder| !is_hidden(folder));
    all.map(|folder| folder.join(EVALS_FOLDER).join(EVALS_FILE)).collect()
}

/// Reports test folders that cannot be read, and files in them that are skipped because of their names.
fn passed_over(request: &Request) -> Problems {
    let mut roots: Vec<PathBuf> = request.targets.iter().map(|target| path::resolve(&request.cwd, target)).collect();
    if request.targets.is_empty() {
        roots = vec![request.skills_dir.clone(), request.root.join(SCENARIOS_FOLDER)];
        roots.extend(request.tests.clone());
    }
    roots.extend(request.targets.iter().map(|target| request.skills_dir.join(target)));
    let mut found: BTreeMap<String, Diagnostic> = BTreeMap::new();
    let evals = evals_places(&request.root);
    for path in evals.iter().filter(|path| is_special(path)) {
        let shown = path::shown(path, &request.cwd);
        found.entry(shown).or_insert_with_key(|shown| not_regular().at(Excerpt::of_file(shown.as_str())));
    }
    for entry in roots.iter().flat_map(|root| WalkDir::new(root).into_iter().filter_entry(is_entered)) {
        let (path, problem) = match &entry {
            Ok(entry) if entry.depth() > 0 && entry.file_type().is_file() => {
                let Some(problem) = misnamed_test(entry.path()) else { continue };
                (entry.path(), problem)
            }
            Ok(entry) if entry.depth() > 0 && is_meant(entry.path()) && is_special(entry.path()) => {
                (entry.path(), not_regular())
            }
            Err(error) if error.io_error().is_some_and(|error| error.kind() == ErrorKind::PermissionDenied) => {
                let problem = Diagnostic::error("cannot read the folder: permission denied");
                (error.path().unwrap_or(Path::new(".")), problem)
            }
            _ => continue,
        };
        let shown = path::shown(path, &request.cwd);
        found.entry(shown).or_insert_with_key(|shown| problem.at(Excerpt::of_file(shown.as_str())));
    }
    found.into_values().collect()
}

/// Returns `true` if the name marks the file as one to be read: a suite or a skill.
fn is_meant(path: &Path) -> bool {
    is_test(path) || format::is_evals_file(path) || path.file_name().is_some_and(|name| name == SKILL_FILE)
}

/// Returns `true` for a pipe, a socket, a device, and a link to one of them.
fn is_special(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|meta| !meta.is_file() && !meta.is_dir())
}

fn not_regular() -> Diagnostic {
    Diagnostic::error("cannot read the file: it is not a regular file")
}

/// Reports a file that looks like a test but has the wrong name.
fn misnamed_test(path: &Path) -> Option<Diagnostic> {
    let right = format::misspelt(path.file_name()?.to_str()?)?;
    let named = format::named(Path::new(&right)).map(|(format, _)| format)?;
    let source = document::open(path, "").ok()?;
    let problem = Diagnostic::warning("this file is not read as a test because of its name");
    (named.is_meant)(&source.text).then(|| problem.help(format!("call it `{right}`, or begin its name with `_`")))
}

/// Resolves `target`: a skill of the project, otherwise a file or a directory.
fn named(target: &str, request: &Request, problems: &mut Problems) -> Vec<Candidate> {
    let skill = request.skills_dir.join(target);
    let is_name = !target.is_empty() && !target.contains(['/', '\\']) && target != "." && target != "..";
    if is_name && skill.join(SKILL_FILE).is_file() {
        return tests_or_warning(&skill, target, problems);
    }
    let path = path::resolve(&request.cwd, target);
    match std::fs::metadata(&path) {
        Ok(found) if found.is_dir() => in_directory(&path, target, request, problems),
        Ok(_) => vec![Candidate { path, reason: DiscoveryReason::Suite }],
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            problems.push(unknown(target, &path, request));
            Vec::new()
        }
        Err(error) => {
            problems.push(Diagnostic::error(format!("cannot read `{target}`: {error}")));
            Vec::new()
        }
    }
}

/// Folders in which agents look for a project's skills.
const AGENT_FOLDERS: [&str; 3] = [".claude/skills", ".agents/skills", ".opencode/skills"];

fn unknown(target: &str, path: &Path, request: &Request) -> Diagnostic {
    let skills = skill_names(&request.skills_dir);
    let siblings = path.parent().map(names_in).unwrap_or_default();
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or(target);
    let near = nearest(target, skills.iter().map(String::as_str)).map(str::to_owned).or_else(|| {
        let sibling = nearest(name, siblings.iter().map(String::as_str))?;
        Some(path::shown(&path.with_file_name(sibling), &request.cwd))
    });
    let shown = path::shown(&request.skills_dir, &request.cwd);
    let unknown = Diagnostic::error(format!("`{target}` is neither a file, nor a directory, nor a skill in `{shown}`"));
    let is_there = |folder: &&str| request.cwd.join(folder).join(target).join(SKILL_FILE).is_file();
    match AGENT_FOLDERS.into_iter().find(is_there) {
        Some(folder) => unknown
            .help(format!("give its path, `{folder}/{target}`, or set `skills_dir: {folder}` in the configuration")),
        None => unknown.suggest(near.as_deref()).help("to run one case, select it by its id"),
    }
}

/// Returns the suites of a directory: a skill's tests, or the tests of the skills in it, or any suites below it.
fn in_directory(directory: &Path, target: &str, request: &Request, problems: &mut Problems) -> Vec<Candidate> {
    if directory.join(SKILL_FILE).is_file() {
        return tests_or_warning(directory, target, problems);
    }
    let known = problems.len();
    let tests = tests_of_skills(directory, request, problems);
    if problems.len() == known && skills(directory).is_empty() {
        below(directory, DiscoveryReason::Searched)
    } else {
        tests
    }
}

/// Returns the tests of every skill in `shelf`. In the project's own skills folder, tests without a skill are an
/// error.
fn tests_of_skills(shelf: &Path, request: &Request, problems: &mut Problems) -> Vec<Candidate> {
    if shelf == request.skills_dir {
        for bare in folders(shelf).iter().filter(|folder| !folder.join(SKILL_FILE).is_file()) {
            let is_hidden = bare.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
            if !is_hidden && !tests_of(bare).is_empty() {
                problems.push(tests_without_skill(bare, &request.cwd));
            }
        }
    }
    skills(shelf).iter().flat_map(|skill| tests_of(skill)).collect()
}

fn tests_without_skill(directory: &Path, cwd: &Path) -> Diagnostic {
    let problem = Diagnostic::error(format!("`{}` has tests but no {SKILL_FILE}", path::shown(directory, cwd)));
    match misnamed(directory) {
        Some(name) => problem.help(format!("did you mean `{SKILL_FILE}` instead of `{name}`?")),
        None => problem
            .help(format!("tests that do not belong to a skill go into the project's folder `{SCENARIOS_FOLDER}`")),
    }
}

fn tests_or_warning(skill: &Path, target: &str, problems: &mut Problems) -> Vec<Candidate> {
    let tests = tests_of(skill);
    if tests.is_empty() {
        problems.push(
            Diagnostic::warning(format!("the `{target}` skill has no tests")).at(Excerpt::of_file(target)).help(
                format!(
                    "put them into its `{TESTS_FOLDER}` folder, as `.yaml` files, or into `{EVALS_FOLDER}/{EVALS_FILE}`"
                ),
            ),
        );
    }
    tests
}

/// Returns the test files of a skill: YAML and fixtures files directly in its tests folder whose names do not start
/// with `_`, sorted by name, and its `evals.json`.
fn tests_of(skill: &Path) -> Vec<Candidate> {
    let tests = std::fs::read_dir(skill.join(TESTS_FOLDER)).into_iter().flat_map(tests_among);
    tests.chain(evals_of(skill)).collect()
}

fn tests_among(entries: std::fs::ReadDir) -> Vec<Candidate> {
    let mut files: Vec<PathBuf> = entries
        .filter_map(Result::ok)
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()))
        .map(|entry| entry.path())
        .filter(|path| is_test(path))
        .collect();
    files.sort();
    files.into_iter().map(|path| Candidate { path, reason: DiscoveryReason::Suite }).collect()
}

fn is_test(path: &Path) -> bool {
    let hidden = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"_"));
    !hidden && (Language::from_path(path) == Some(Language::Yaml) || format::named(path).is_some())
}

/// Returns `true` if a search descends into `entry`.
fn is_entered(entry: &DirEntry) -> bool {
    if entry.depth() == 0 || !entry.file_type().is_dir() {
        return true;
    }
    let name = entry.file_name().as_encoded_bytes();
    !name.starts_with(b".")
        && name != b"fixtures"
        && name != b"node_modules"
        && !entry.path().join("CACHEDIR.TAG").exists()
}

/// Returns every YAML file, fixtures file and `evals.json` below `directory` that may be a suite. The following are
/// skipped: hidden folders, files that start with `_`, folders of fixtures and packages, build caches, and everything
/// in a skill except its tests.
fn below(directory: &Path, reason: DiscoveryReason) -> Vec<Candidate> {
    let entered = |entry: &DirEntry| {
        is_entered(entry)
            && !entry
                .path()
                .parent()
                .filter(|_| entry.depth() > 0 && entry.file_type().is_dir())
                .is_some_and(|parent| parent.join(SKILL_FILE).is_file())
    };
    let mut found = Vec::new();
    for entry in WalkDir::new(directory).sort_by_file_name().into_iter().filter_entry(entered).filter_map(Result::ok) {
        if entry.file_type().is_dir() && entry.path().join(SKILL_FILE).is_file() {
            found.extend(tests_of(entry.path()));
        } else if entry.file_type().is_file() && (is_test(entry.path()) || format::is_evals_file(entry.path())) {
            found.push(Candidate { path: entry.into_path(), reason });
        }
    }
    found
}
