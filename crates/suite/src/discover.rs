//! Finds the files to load: by default the tests of all skills and the project's scenarios, otherwise the targets that
//! the user named.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use model::decode::Problems;
use model::{Diagnostic, DiagnosticKind, Excerpt, nearest};
use walkdir::{DirEntry, WalkDir};

use crate::document::{self, Language};
use crate::format::{self, EVALS_FILE, collection};
use crate::path;
use crate::plugin;
use crate::request::Request;
use crate::skill::{EVALS_FOLDER, SKILL_FILE, SUB_AGENTS_FOLDER, TESTS_FOLDER};
use crate::skills::{AGENT_FOLDERS, chosen_skill, folders, misnamed, names_in, skill_called, skill_names, skills};

/// Folder in the project's root for suites that do not belong to a skill.
pub const SCENARIOS_FOLDER: &str = "scenarios";

/// Folder in the project's root for suites that are stored separately from their skills.
const EXAMPLES_FOLDER: &str = "examples";

/// Folder in the project's root with the plug-ins of a marketplace.
const PLUGINS_FOLDER: &str = "plugins";

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
    /// The file is in a folder of tests that may also contain scripts, data and other files, or it is JSON. A file that
    /// is nearly a suite is reported.
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
        found.extend(tests_of_skills(&request.skills_dir, request, problems));
        found.extend(evals_below(&request.root));
        found.extend(other_tools_below(request));
        found.extend(tests_of_plugins(request, problems));
        found.extend(of_folder(&scenarios, request));
        let tests = request.tests.iter();
        found.extend(tests.flat_map(|tests| below(tests, DiscoveryReason::Searched, request)));
    }
    for target in &request.targets {
        found.extend(named(target, request, problems));
    }
    let found = without_duplicates(found);
    // A folder that cannot be read may contain tests. If it were not reported, the run would succeed without them.
    problems.extend(passed_over(request, &found));
    found
}

/// Returns the candidates without those that were found before, also under the name of a link. A link to a test comes
/// after the test itself, because the name of a suite must not change when a link to it is added.
fn without_duplicates(found: Vec<Candidate>) -> Vec<Candidate> {
    let mut folders: HashMap<PathBuf, PathBuf> = HashMap::new();
    let mut real = |path: &Path| {
        let (folder, name) = (path.parent()?, path.file_name()?);
        if path.is_symlink() {
            return path.canonicalize().ok();
        }
        let real = folders.entry(folder.to_owned());
        Some(real.or_insert_with(|| folder.canonicalize().unwrap_or_else(|_| folder.to_owned())).join(name))
    };
    let places: Vec<PathBuf> = found.iter().map(|one| real(&one.path).unwrap_or_else(|| one.path.clone())).collect();
    let mut kept: HashMap<&Path, usize> = HashMap::with_capacity(found.len());
    for (index, (one, place)) in found.iter().zip(&places).enumerate() {
        let first = kept.entry(place).or_insert(index);
        if one.path == *place && found[*first].path != *place {
            *first = index;
        }
    }
    let kept: HashSet<usize> = kept.into_values().collect();
    found.into_iter().enumerate().filter(|(index, _)| kept.contains(index)).map(|(_, one)| one).collect()
}

/// Reports it if the project has none of the folders for tests.
pub fn nothing_there(request: &Request) -> Option<Diagnostic> {
    let folders = [request.skills_dir.clone(), request.root.join(SCENARIOS_FOLDER)];
    if request.tests.is_some() || folders.iter().any(|folder| folder.is_dir()) {
        return None;
    }
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
    let problem = problem
        .help("name a file, a directory or a skill to run, or set `tests` or `skills_dir` in `trialrun.yaml`")
        .help("`trialrun init` creates a first test");
    Some(problem.of(DiagnosticKind::NoTests))
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
        problems.push(match tests_of(&skill, request).is_empty() {
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

/// Returns the cases of other tools in the folders of evaluations in which [`evals_below`] looks for suites, and in
/// those of the plug-ins in `plugins`.
fn other_tools_below(request: &Request) -> Vec<Candidate> {
    let root = &request.root;
    let plugins = folders(&root.join(PLUGINS_FOLDER)).into_iter().map(|plugin| plugin.join(EVALS_FOLDER));
    let evals = evals_places(root).into_iter().filter_map(|path| Some(path.parent()?.to_owned()));
    evals.chain(plugins).filter(|folder| folder.is_dir()).flat_map(|folder| of_other_tools(&folder, request)).collect()
}

/// Returns the paths at which [`evals_below`] looks for suites.
fn evals_places(root: &Path) -> Vec<PathBuf> {
    let is_hidden = |path: &Path| path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
    let own = folders(root);
    let examples = folders(&root.join(EXAMPLES_FOLDER));
    let sub_agents = folders(&root.join(SUB_AGENTS_FOLDER));
    let below = own.into_iter().chain(examples).chain(sub_agents).filter(|folder| !is_hidden(folder));
    std::iter::once(root.to_owned()).chain(below).map(|folder| folder.join(EVALS_FOLDER).join(EVALS_FILE)).collect()
}

/// Reports test folders and files that cannot be read, and files that look like tests but are not among those found,
/// because of their names or their places.
fn passed_over(request: &Request, found: &[Candidate]) -> Problems {
    let mut roots: Vec<PathBuf> = request.targets.iter().map(|target| path::resolve(&request.cwd, target)).collect();
    if request.targets.is_empty() {
        roots = vec![request.skills_dir.clone(), request.root.join(SCENARIOS_FOLDER)];
        roots.extend(request.tests.clone());
        roots.extend(misnamed_folders(request));
    }
    roots.extend(request.targets.iter().map(|target| request.skills_dir.join(target)));
    // Tests of a folder that is not a skill are reported with the folder.
    let bare = folders(&request.skills_dir).into_iter().filter(|folder| !folder.join(SKILL_FILE).is_file());
    let bare: Vec<Candidate> = bare.flat_map(|folder| tests_of(&folder, request)).collect();
    let is_found: HashSet<&Path> = found.iter().chain(&bare).map(|one| one.path.as_path()).collect();
    // Several links may lead to a file, which is read under one of its names.
    let is_elsewhere = |path: &Path| {
        path.canonicalize()
            .is_ok_and(|real| found.iter().any(|one| one.path.canonicalize().is_ok_and(|known| known == real)))
    };
    let mut reported: BTreeMap<String, Diagnostic> = BTreeMap::new();
    let mut report = |path: &Path, problem: Diagnostic| {
        let shown = path::shown(path, &request.cwd);
        reported.entry(shown).or_insert_with_key(|shown| problem.at(Excerpt::of_file(shown.as_str())));
    };
    for path in evals_places(&request.root).iter().filter(|path| is_special(path)) {
        report(path, not_regular());
    }
    let entries = roots.iter().flat_map(|root| search(root, request, is_entered).map(move |entry| (root, entry)));
    for (root, entry) in entries {
        match &entry {
            Ok(entry) if entry.depth() == 0 => {}
            Ok(entry) if entry.file_type().is_file() => {
                let problem = match is_found.contains(entry.path()) {
                    true => misnamed_fixtures(entry.path()),
                    // With a chosen skill, the tests of others are not read.
                    false if request.skill.is_some() => None,
                    false => unread(entry.path(), root).filter(|_| !is_elsewhere(entry.path())),
                };
                if let Some(problem) = problem {
                    report(entry.path(), problem);
                }
            }
            Ok(entry) if is_meant(entry.path()) && is_special(entry.path()) => report(entry.path(), not_regular()),
            Ok(_) => {}
            Err(error) => {
                let path = error.path().unwrap_or(Path::new("."));
                let kind = error.io_error().map(std::io::Error::kind);
                if kind == Some(ErrorKind::PermissionDenied) {
                    report(path, Diagnostic::error("cannot read the folder: permission denied"));
                } else if path.is_symlink() && is_meant(path) {
                    report(path, Diagnostic::error("cannot read the file: it is a link to a file that does not exist"));
                }
            }
        }
    }
    reported.into_values().collect()
}

/// Returns the folders in the project's root whose names are similar to those of folders for tests.
fn misnamed_folders(request: &Request) -> Vec<PathBuf> {
    let is_near = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        !FOLDERS.contains(&name) && request.tests.as_ref() != Some(path) && is_like(name, &FOLDERS)
    };
    folders(&request.root).into_iter().filter(is_near).collect()
}

/// Returns `true` if `name` is similar to one of `known`, or is one in another case or in underscores.
fn is_like(name: &str, known: &[&str]) -> bool {
    let plain = name.trim_matches('_').to_ascii_lowercase();
    nearest(&plain, known.iter().copied()).is_some() || known.contains(&plain.as_str())
}

/// Returns `true` if the name marks the file as one to be read: a suite or a skill.
fn is_meant(path: &Path) -> bool {
    let is_json = Language::from_path(path) == Some(Language::Json) && format::named(path).is_none();
    (is_test(path) && !is_json)
        || format::is_evals_file(path)
        || path.file_name().is_some_and(|name| name == SKILL_FILE)
}

/// Returns `true` for a pipe, a socket, a device, and a link to one of them.
fn is_special(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|meta| !meta.is_file() && !meta.is_dir())
}

fn not_regular() -> Diagnostic {
    Diagnostic::error("cannot read the file: it is not a regular file")
}

/// Reports a file below `root` that looks like a test but is not read as one.
fn unread(path: &Path, root: &Path) -> Option<Diagnostic> {
    let is_schema = |name: &str| name.ends_with(".schema.json");
    let name = path.file_name()?.to_str().filter(|name| !name.starts_with('_') && !is_schema(name))?;
    // A skill or a directory may contain anything, so only folders with such names are searched.
    let below = path.strip_prefix(root.parent().unwrap_or(root)).ok()?;
    let named =
        |folder: &&Path| folder.file_name().and_then(|name| name.to_str()).is_some_and(|name| is_like(name, &FOLDERS));
    let folder = below.ancestors().skip(1).find(named).and_then(Path::file_name).and_then(|name| name.to_str());
    if let Some(right) = format::misspelt(name, folder.is_some(), || document::guess(path)) {
        return Some(misnamed_file(&right));
    }
    let is_table_of_fixtures = name.contains(FIXTURES_MARK);
    if folder.is_some()
        && let Some(problem) = not_a_test(name, || document::guess(path))
        && (is_table_of_fixtures || format::is_lines_of_tests(name, || document::guess(path)))
    {
        return Some(problem);
    }
    if folder.is_some()
        && TABLES[2..].iter().any(|lines| name.to_ascii_lowercase().ends_with(lines))
        && let Ok(source) = document::open(path, name)
        && let Some(problem) = collection::lines_of_fixtures(path, &source)
    {
        return Some(problem);
    }
    let is_beside_skill = || path.parent().is_some_and(|folder| folder.join(SKILL_FILE).is_file());
    if folder.is_none() && name == EVALS_FILE && is_beside_skill() {
        let problem = Diagnostic::warning("this file is not read as a test because of its folder");
        let problem =
            problem.help(format!("move it to `{EVALS_FOLDER}/{EVALS_FILE}` of the skill, or name it as a target"));
        return document::guess(path).is_some_and(|text| format::are_evals(&text)).then_some(problem);
    }
    let folder = folder.filter(|_| is_test(path))?;
    let text = document::guess(path)?;
    if is_like(folder, &[EVALS_FOLDER]) && format::are_evals(&text) && name != EVALS_FILE {
        let problem = misnamed_file(EVALS_FILE).help("or name it as a target");
        return Some(match Language::from_path(path) {
            Some(Language::Yaml) => problem.help("the file of that name must be JSON"),
            _ => problem,
        });
    }
    let is_meant = match format::named(path) {
        Some((format, _)) => (format.is_meant)(path, &text),
        None => format::FORMATS.iter().any(|format| (format.is_meant)(&text)),
    };
    let problem = Diagnostic::warning("this file is not read as a test because of its folder");
    let problem = problem.of(DiagnosticKind::UnreadTests);
    is_meant.then(|| match FOLDERS.contains(&folder) {
        true => problem.help(
            "name it as a target, or move it to a folder that is searched: `tests` of a skill, or that of the project",
        ),
        false => {
            let right = nearest(folder, FOLDERS).unwrap_or(TESTS_FOLDER);
            problem.help(format!("call the folder `{right}`, or name the file as a target"))
        }
    })
}

/// Part of the name of a fixtures file.
const FIXTURES_MARK: &str = ".fixture.";

/// Endings of the names of tables, which tests name as their `cases`.
const TABLES: [&str; 4] = ["csv", "tsv", "jsonl", "ndjson"];

/// Reports a table, which is not a test itself.
pub fn not_a_test(name: &str, text: impl FnOnce() -> Option<String>) -> Option<Diagnostic> {
    let (_, extension) = name.rsplit_once('.')?;
    if !TABLES.iter().any(|table| extension.eq_ignore_ascii_case(table)) {
        return None;
    }
    if format::is_lines_of_tests(name, text) {
        let problem = Diagnostic::warning("this file is not read, because a file has one test");
        return Some(problem.help("put each line into a file of its own, such as `NAME.json`"));
    }
    let problem = Diagnostic::warning("this file is not read as a test, because it is a table");
    Some(problem.help(format!("name it in a test, which runs once for each row: `cases: {name}`")))
}

/// Reports a file that is read, but not as a fixtures file because of its name.
fn misnamed_fixtures(path: &Path) -> Option<Diagnostic> {
    format::misspelt_fixtures(path.file_name()?.to_str()?).map(|right| misnamed_file(&right))
}

/// Reports a file that should be called `right`.
pub fn misnamed_file(right: &str) -> Diagnostic {
    let problem = Diagnostic::warning("this file is not read as a test because of its name");
    problem.help(format!("call it `{right}`, or begin its name with `_`"))
}

/// Folders of tests.
const FOLDERS: [&str; 3] = [TESTS_FOLDER, EVALS_FOLDER, SCENARIOS_FOLDER];

/// Resolves `target`: a skill of the project, otherwise a file or a directory.
fn named(target: &str, request: &Request, problems: &mut Problems) -> Vec<Candidate> {
    let is_name = !target.is_empty() && !target.contains(['/', '\\']) && target != "." && target != "..";
    if is_name && let Some(skill) = skill_called(target, request) {
        return tests_or_warning(&skill, target, request, problems);
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

/// Returns the tests of the skills that projects have for their agents: the project of `request`, or the directories
/// that it names. Projects with a folder of skills are left out.
pub fn tests_of_installed_skills(request: &Request, problems: &mut Problems) -> Vec<Candidate> {
    let is_bare = |root: &PathBuf| match *root == request.root {
        true => !request.skills_dir.is_dir(),
        false => root.is_dir() && !root.join(plugin::SKILLS_FOLDER).is_dir(),
    };
    let mut roots: Vec<PathBuf> = request.targets.iter().map(|target| path::resolve(&request.cwd, target)).collect();
    if request.targets.is_empty() {
        roots.push(request.root.clone());
    }
    roots.retain(is_bare);
    let folders = roots.iter().flat_map(|root| AGENT_FOLDERS.iter().map(|folder| root.join(folder)));
    without_duplicates(folders.flat_map(|folder| tests_of_skills(&folder, request, problems)).collect())
}

/// Endings of files with tests.
const ENDINGS: [&str; 10] = ["yaml", "yml", "json", "jsonl", "csv", "tsv", "ts", "js", "mts", "mjs"];

/// Maximum number of files that are listed in place of one that does not exist.
const SHOWN_FILES: usize = 5;

fn unknown(target: &str, path: &Path, request: &Request) -> Diagnostic {
    let skills = skill_names(&request.skills_dir);
    let siblings = path.parent().map(names_in).unwrap_or_default();
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or(target);
    let near = nearest(target, skills.iter().map(String::as_str)).map(str::to_owned).or_else(|| {
        let sibling = nearest(name, siblings.iter().map(String::as_str))?;
        Some(path::shown(&path.with_file_name(sibling), &request.cwd))
    });
    let of_case = || {
        let (suite, case) = target.split_once([':', '/'])?;
        of_suite(suite, request).map(|_| format!("{suite}::{case}"))
    };
    let near = of_suite(target, request).or(near).or_else(of_case).or_else(|| of_path(target, request));
    let shown = path::shown(&request.skills_dir, &request.cwd);
    let ending = Path::new(name).extension().and_then(|ending| ending.to_str());
    let is_file = ending.is_some_and(|ending| ENDINGS.contains(&ending));
    let unknown = Diagnostic::error(match is_file {
        true => format!("there is no file `{target}`"),
        false => format!("`{target}` is neither a file, nor a directory, nor a skill in `{shown}`"),
    });
    let is_there = |folder: &&str| request.cwd.join(folder).join(target).join(SKILL_FILE).is_file();
    match AGENT_FOLDERS.into_iter().find(is_there) {
        Some(folder) => unknown
            .help(format!("give its path, `{folder}/{target}`, or set `skills_dir: {folder}` in the configuration")),
        None if is_file => {
            let others = siblings.iter().filter(|other| Path::new(other).extension() == Path::new(name).extension());
            let others: Vec<String> = others.take(SHOWN_FILES).map(|other| format!("`{other}`")).collect();
            match near {
                None if !others.is_empty() => unknown.help(format!("files in its folder: {}", others.join(", "))),
                near => unknown.suggest(near.as_deref()),
            }
        }
        None => {
            unknown.suggest(near.as_deref()).help("to run one case, write `SUITE::CASE` as `trialrun list` shows it")
        }
    }
}

/// Returns the file of the project's suite that is called `name`.
fn of_suite(name: &str, request: &Request) -> Option<String> {
    files_of_project(request).find(|file| {
        let (folder, _) = file.rsplit_once('/').unwrap_or(("", file));
        format!("/{folder}/{}", stem(file)).ends_with(&format!("/{name}"))
    })
}

/// Returns the file of a suite whose path is similar to `written`, or which has the same name up to its ending.
fn of_path(written: &str, request: &Request) -> Option<String> {
    let files: Vec<String> = files_of_project(request).collect();
    let near = nearest(written, files.iter().map(String::as_str)).map(str::to_owned);
    near.or_else(|| files.iter().find(|file| written.contains('.') && stem(file) == stem(written)).cloned())
}

/// Returns the paths of all suites of the project, as messages show them.
fn files_of_project(request: &Request) -> impl Iterator<Item = String> {
    let all = Request { targets: Vec::new(), skill: None, ..request.clone() };
    candidates(&all, &mut Problems::new()).into_iter().map(move |one| path::shown(&one.path, &request.cwd))
}

/// Returns the name of a file up to its first dot.
fn stem(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.split('.').next().unwrap_or(name)
}

/// Returns the suites of a directory: a skill's tests, or the tests of the skills in it, or any suites below it.
fn in_directory(directory: &Path, target: &str, request: &Request, problems: &mut Problems) -> Vec<Candidate> {
    if directory.join(SKILL_FILE).is_file() {
        return tests_or_warning(directory, target, request, problems);
    }
    let known = problems.len();
    let tests = tests_of_skills(directory, request, problems);
    if problems.len() == known && skills(directory).is_empty() {
        below(directory, DiscoveryReason::Searched, request)
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
            if !is_hidden && !tests_of(bare, request).is_empty() {
                problems.push(tests_without_skill(bare, &request.cwd));
            }
        }
    }
    skills(shelf).iter().flat_map(|skill| tests_of(skill, request)).collect()
}

/// Returns the tests of the skills in the plug-ins of a marketplace.
fn tests_of_plugins(request: &Request, problems: &mut Problems) -> Vec<Candidate> {
    let root = &request.root;
    let all = folders(root).into_iter().chain(folders(&root.join(PLUGINS_FOLDER)));
    let plugins = all.filter(|folder| plugin::manifest_in(folder).is_some());
    plugins.flat_map(|plugin| tests_of_skills(&plugin.join(plugin::SKILLS_FOLDER), request, problems)).collect()
}

fn tests_without_skill(directory: &Path, cwd: &Path) -> Diagnostic {
    let problem = Diagnostic::error(format!("`{}` has tests but no {SKILL_FILE}", path::shown(directory, cwd)));
    match misnamed(directory) {
        Some(name) => problem.help(format!("did you mean `{SKILL_FILE}` instead of `{name}`?")),
        None => problem
            .help(format!("tests that do not belong to a skill go into the project's folder `{SCENARIOS_FOLDER}`")),
    }
}

fn tests_or_warning(skill: &Path, target: &str, request: &Request, problems: &mut Problems) -> Vec<Candidate> {
    let tests = tests_of(skill, request);
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

/// Returns the test files of a skill: those in its tests folder, and its `evals.json`.
fn tests_of(skill: &Path, request: &Request) -> Vec<Candidate> {
    let tests = of_folder(&skill.join(TESTS_FOLDER), request);
    tests.into_iter().chain(evals_of(skill)).chain(of_other_tools(&skill.join(EVALS_FOLDER), request)).collect()
}

/// Returns the files in a folder of evaluations that other tools recognise by their names and places.
fn of_other_tools(folder: &Path, request: &Request) -> Vec<Candidate> {
    let files = search(folder, request, is_entered).filter_map(Result::ok).filter(|entry| entry.file_type().is_file());
    let files = files.map(DirEntry::into_path).filter(|path| format::is_of_other_tool(path));
    files.map(|path| Candidate { path, reason: DiscoveryReason::Searched }).collect()
}

/// Returns the files in a folder for suites. A YAML file directly in it must be a suite, unless the folder also has tests
/// of another runner, whose data it may be.
fn of_folder(folder: &Path, request: &Request) -> Vec<Candidate> {
    let mut found = below(folder, DiscoveryReason::Deeper, request);
    let is_direct = |path: &Path| path.parent() == Some(folder) && Language::from_path(path) == Some(Language::Yaml);
    let mut direct = found.iter_mut().filter(|one| is_direct(&one.path)).peekable();
    let has_others =
        direct.peek().is_some() && names_in(folder).iter().any(|name| is_of_other_runner(&folder.join(name)));
    let reason = if has_others { DiscoveryReason::Searched } else { DiscoveryReason::Suite };
    direct.for_each(|one| one.reason = reason);
    found
}

/// Returns `true` for tests of programs, such as those of pytest and jest.
fn is_of_other_runner(path: &Path) -> bool {
    let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    match path.extension().and_then(|end| end.to_str()) {
        Some("py") => stem.starts_with("test_") || stem.ends_with("_test") || stem == "conftest",
        Some("go") => stem.ends_with("_test"),
        Some("bats") => true,
        Some("js" | "cjs" | "mjs" | "ts" | "cts" | "mts" | "jsx" | "tsx") if stem.ends_with(".test") => {
            let is_ours = |text: &str| format::named(path).is_some_and(|(format, _)| (format.is_meant)(path, text));
            document::guess(path).is_some_and(|text| !is_ours(&text))
        }
        _ => false,
    }
}

/// Returns `true` if a file with this name may contain a suite.
fn is_test(path: &Path) -> bool {
    let hidden = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"_"));
    !hidden && (Language::from_path(path).is_some() || format::named(path).is_some())
}

/// Returns a search below `directory` in the folders that `is_entered` accepts. It follows links to files. Links to
/// folders are followed in folders of tests, and elsewhere if they stay inside the project: a project may contain links
/// to caches and whole systems.
fn search<'a>(
    directory: &'a Path,
    request: &'a Request,
    is_entered: fn(&DirEntry) -> bool,
) -> impl Iterator<Item = walkdir::Result<DirEntry>> + 'a {
    let is_inside = |link: &Path| {
        let inside = |folder: &Path, real: &Path| folder.canonicalize().is_ok_and(|folder| real.starts_with(folder));
        link.canonicalize().is_ok_and(|real| inside(&request.root, &real) || inside(directory, &real))
    };
    let is_named = directory.file_name().and_then(|name| name.to_str()).is_some_and(|name| FOLDERS.contains(&name));
    let is_tests = is_named || request.tests.as_deref() == Some(directory);
    let entered = move |entry: &DirEntry| {
        let is_link = entry.depth() > 0 && entry.path_is_symlink() && entry.file_type().is_dir();
        is_entered(entry) && (!is_link || is_tests || is_inside(entry.path()))
    };
    WalkDir::new(directory).follow_links(true).sort_by_file_name().into_iter().filter_entry(entered)
}

/// File in each directory to which a run wrote artefacts.
const ARTIFACTS_INDEX: &str = ".trialrun-artifacts";

/// Returns `true` if a search descends into `entry`.
fn is_entered(entry: &DirEntry) -> bool {
    if entry.depth() == 0 || !entry.file_type().is_dir() {
        return true;
    }
    let name = entry.file_name().as_encoded_bytes();
    !name.starts_with(b".")
        && name != b"fixtures"
        && name != b"node_modules"
        && ["CACHEDIR.TAG", ARTIFACTS_INDEX].iter().all(|mark| !entry.path().join(mark).exists())
}

/// Returns `true` for a folder of a skill.
fn is_in_skill(entry: &DirEntry) -> bool {
    let folder = entry.path().parent().filter(|_| entry.depth() > 0 && entry.file_type().is_dir());
    folder.is_some_and(|folder| folder.join(SKILL_FILE).is_file())
}

/// Returns `true` for a folder of a task of harbor, whose files belong to the task.
fn is_in_task(entry: &DirEntry) -> bool {
    let folder = entry.path().parent().filter(|_| entry.depth() > 0 && entry.file_type().is_dir());
    folder.is_some_and(format::is_harbor_task)
}

/// Returns every file below `directory` that may be a suite. The following are skipped: hidden folders, files that
/// start with `_`, folders of fixtures and packages, build caches, what runs wrote, and everything in a skill except its
/// tests.
fn below(directory: &Path, reason: DiscoveryReason, request: &Request) -> Vec<Candidate> {
    let mut found = Vec::new();
    for entry in search(directory, request, |entry| is_entered(entry) && !is_in_skill(entry) && !is_in_task(entry))
        .filter_map(Result::ok)
    {
        if entry.file_type().is_dir() && entry.path().join(SKILL_FILE).is_file() {
            found.extend(tests_of(entry.path(), request));
        } else if entry.file_type().is_file() && is_test(entry.path()) {
            let is_json = Language::from_path(entry.path()) == Some(Language::Json);
            let is_certain = format::named(entry.path()).is_some() || format::is_evals_file(entry.path());
            let reason = if is_json && !is_certain { DiscoveryReason::Deeper } else { reason };
            found.push(Candidate { path: entry.into_path(), reason });
        }
    }
    found
}
