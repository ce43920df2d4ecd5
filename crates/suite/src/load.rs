//! LOAD: turns the user's targets into suites and collects every problem.

use std::cell::LazyCell;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use files::parallel;
use model::decode::Problems;
use model::{
    Arguments, AssertionSpec, Case, Diagnostic, DiagnosticKind, Excerpt, NodeKind, Severity, Source, Suite, nearest,
};

use crate::coverage::Coverage;
use crate::discover::{self, Candidate, DiscoveryReason, SCENARIOS_FOLDER};
use crate::document::{self, Language};
use crate::format::{
    self, EVALS_NAME, FORMATS, Format, SuiteFile, break_case, collection, has_only_keys_of_tests, misspelt_plugin_case,
    misspelt_turns, near_miss,
};
use crate::library::{Library, home_of};
use crate::path::{self, shown};
use crate::project::ProjectAgent;
use crate::request::Request;
use crate::skill::{EVALS_FOLDER, SKILL_FILE};
use crate::skills::skill_names;
use crate::unrecognised::{self, unrecognised};

/// Minimum number of files per thread. If there are fewer, one thread reads them, because starting another one costs
/// as much as reading dozens of files.
const FILES_PER_THREAD: usize = 64;

/// Default name of the tests folder.
const TESTS_FOLDER: &str = "tests";

/// Result of a load.
#[derive(Debug, Default)]
pub struct Loaded {
    /// Suites in the order in which their first file was named. If there are errors among the diagnostics, the suites
    /// contain only the parts that could be read, which is enough to find further problems but not to run.
    pub suites: Vec<Suite>,
    /// All problems, grouped by file in the order of the suites, followed by skills and shared fixtures.
    pub diagnostics: Vec<Diagnostic>,
    /// Modules of tests as they were read, for running them.
    pub modules: script::Library,
    /// Keys of suites that were written for other tools, sorted by file.
    pub coverage: Vec<Coverage>,
    /// Agents that the suites configure, sorted by name. References to the environment are not resolved.
    pub agents: Vec<ProjectAgent>,
}

impl Loaded {
    /// Returns `true` if any diagnostic is an error, so that nothing may run.
    pub fn has_errors(&self) -> bool {
        self.diagnostics.iter().any(Diagnostic::is_error)
    }
}

/// Reads everything that `request` names. A bad file does not prevent the others from being read.
pub fn load(request: &Request) -> Loaded {
    let mut diagnostics = Problems::new();
    let mut candidates = discover::candidates(request, &mut diagnostics);
    let library = Library::new(request);
    let mut files = read_all(&candidates, &library);
    // The folder `tests` may be that of another test runner.
    let has_tests = files.iter().any(ReadFile::is_test);
    if !has_tests && request.skill.is_none() {
        let installed = discover::tests_of_installed_skills(request, &mut diagnostics);
        files.extend(read_all(&installed, &library));
        candidates.extend(installed);
        let is_empty = request.targets.is_empty() && candidates.is_empty();
        diagnostics.extend(discover::nothing_there(request).filter(|_| is_empty));
    }
    library.modules.end_idle();
    // A table that a suite uses need not be a test.
    diagnostics.retain(|problem| {
        let table = problem.source.as_ref().filter(|_| !problem.is_error());
        table.is_none_or(|table| !library.is_table(&path::resolve(&request.cwd, &*table.file)))
    });
    let mut suites = Suites::default();
    let mut recognised = 0;
    let skills = skill_names(&request.skills_dir);
    let no_tests = !files.iter().any(ReadFile::is_test);
    let strange: Vec<Diagnostic> = files.iter_mut().filter_map(|file| file.unless_tests.take()).collect();
    diagnostics.extend(unrecognised::instead_of_tests(strange).filter(|_| no_tests));
    for (candidate, file) in candidates.iter().zip(files) {
        let mut problems = file.problems;
        problems.extend(file.unless_table.filter(|_| !library.is_table(&candidate.path)));
        problems.sort_by_key(|problem| problem.source.as_ref().map(|place| (place.line, place.column)));
        diagnostics.extend(problems);
        let misspelt = file.cases.iter().flat_map(|case| misspelt_skills(case, &skills));
        diagnostics.extend(misspelt);
        if let Some(format) = file.format {
            recognised += 1;
            let skill = file.cases.iter().find_map(|case| Some(case.subject.skill()?.name.clone()));
            suites.add(&candidate.path, format, skill, file.cases);
        }
    }
    if recognised == 0 && diagnostics.is_empty() && !request.targets.is_empty() {
        diagnostics.push(Diagnostic::warning(format!("no suite found in {}", request.targets.join(", "))));
    }
    let is_chosen = request.skill.is_some() && diagnostics.iter().all(|problem| !problem.is_error());
    if is_chosen && !suites.are_about(library.chosen_skill.as_deref()) {
        let named = request.skill.as_deref().unwrap_or_default();
        let message = format!("`{named}` is chosen as the skill to test, but none of the named suites is about it");
        diagnostics.push(Diagnostic::error(message).help("name one of its suites, such as `evals/evals.json`"));
    }
    let read: HashSet<&Path> = candidates.iter().map(|candidate| candidate.path.as_path()).collect();
    suites.add_neighbours(request, &read);
    let suites = suites.finish(request, &mut diagnostics);
    let modules = library.modules.clone();
    let (coverage, agents) = (library.take_coverage(), library.take_agents());
    diagnostics.extend(library.into_problems());
    tracing::debug!(files = recognised, suites = suites.len(), problems = diagnostics.len(), "suites loaded");
    Loaded { suites, diagnostics, modules, coverage, agents }
}

/// Returns warnings about assertions that a skill is used whose name is only similar to that of a skill of the project.
/// What agents have from elsewhere is not known.
fn misspelt_skills(case: &Case, skills: &[String]) -> Vec<Diagnostic> {
    let own = case.subject.installed().map(|skill| skill.name.as_str());
    let known = || skills.iter().map(String::as_str).chain(own);
    let of_skill =
        |spec: &&AssertionSpec| matches!(&*spec.kind.value, "skill_used" | "skill_not_used" | "no_skill_used");
    let misspelt = |spec: &AssertionSpec| {
        let node = match &spec.arguments {
            Arguments::Brief(value) if value.as_str().is_some() => value,
            Arguments::Brief(value) => value.get("skill")?,
            Arguments::Fields => spec.node.get("skill")?,
            Arguments::Listed(_) => return None,
        };
        // A name that the suite gives its assertions is reported where the suite has it.
        let is_plain = |name: &str| name.chars().all(|letter| letter.is_alphanumeric() || "-_:".contains(letter));
        // A name that cannot be right is reported with the assertion.
        let name = node.as_str().filter(|name| is_plain(name) && node.excerpt().text.contains(*name))?;
        let near = nearest(name, known().filter(|_| known().all(|skill| skill != name)))?;
        Some(node.warning(format!("the project has no skill `{name}`")).suggest(Some(near)))
    };
    case.assertions.iter().filter(of_skill).filter_map(misspelt).collect()
}

/// Result of reading one file.
#[derive(Default)]
struct ReadFile {
    /// `None` if it is not a suite.
    format: Option<&'static str>,
    cases: Vec<Arc<Case>>,
    problems: Problems,
    /// Problem that is reported only if no suite uses the file as a table.
    unless_table: Option<Diagnostic>,
    /// Problem that is reported only if the project has no test.
    unless_tests: Option<Diagnostic>,
}

impl ReadFile {
    /// Returns `true` if it is a suite, or is meant to be one.
    fn is_test(&self) -> bool {
        self.format.is_some() || self.problems.iter().any(Diagnostic::is_error)
    }

    /// Reports `problem` with a file in `format`.
    fn refuse(&mut self, problem: Diagnostic, format: &Format, path: &Path, shown: &str) {
        self.problems.push(problem);
        if format.fails_alone {
            self.format = Some(format.name);
            self.contain_errors(path, shown);
        }
    }

    /// Moves the errors of a file whose mistakes break only its own trials to its cases. If no case could be read, one
    /// case stands for the file.
    fn contain_errors(&mut self, path: &Path, shown: &str) {
        let (mut errors, others): (Problems, Problems) =
            std::mem::take(&mut self.problems).into_iter().partition(Diagnostic::is_error);
        self.problems = others;
        if errors.is_empty() {
            return;
        }
        errors.sort_by_key(|problem| problem.source.as_ref().map(|place| (place.line, place.column)));
        if self.cases.is_empty() {
            let id = path.file_stem().unwrap_or_default().to_string_lossy();
            self.cases.push(Arc::new(Case { fails_alone: true, ..Case::new(id, Excerpt::of_file(shown)) }));
        }
        for case in &mut self.cases {
            break_case(Arc::make_mut(case), &errors);
        }
    }
}

/// Reads the files; the results are in the same order.
fn read_all(candidates: &[Candidate], library: &Library) -> Vec<ReadFile> {
    parallel::map(candidates.iter().collect(), FILES_PER_THREAD, |candidate| read_one(candidate, library))
}

fn read_one(candidate: &Candidate, library: &Library) -> ReadFile {
    let shown = library.shown(&candidate.path);
    let mut file = ReadFile::default();
    if let Some((format, _)) = format::named(&candidate.path) {
        let is_meant = |text: &str| !is_come_across(candidate) || (format.is_meant)(&candidate.path, text);
        match document::open(&candidate.path, &shown) {
            Ok(source) if source.text.trim().is_empty() && is_come_across(candidate) => {
                file.problems.push(Diagnostic::warning("the file is empty").at(Excerpt::of_file(shown)));
            }
            Ok(source) if is_meant(&source.text) => {
                file.format = Some(format.name);
                file.cases = (format.read)(&candidate.path, &source, library, &mut file.problems);
            }
            Ok(_) => {}
            Err(problem) if document::guess(&candidate.path).is_none_or(|text| is_meant(&text)) => {
                file.format = Some(format.name);
                file.problems.push(*problem);
                if format.fails_alone {
                    file.contain_errors(&candidate.path, &shown);
                }
            }
            Err(problem) if !document::guess(&candidate.path).as_deref().is_some_and(is_legible) => {
                file.problems.extend(not_read(*problem, candidate.reason, true));
            }
            Err(_) => {}
        }
        return file;
    }
    let Some(language) = Language::from_path(&candidate.path) else {
        let name = candidate.path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let right = format::misspelt(name, true, || document::guess(&candidate.path));
        let problem = right
            .map(|right| discover::misnamed_file(&right))
            .or_else(|| discover::not_a_test(name, || document::guess(&candidate.path)));
        let problem = problem.map(|problem| Diagnostic { severity: Severity::Error, ..problem });
        let place = Excerpt::of_file(shown);
        file.problems
            .push(problem.map_or_else(|| unrecognised(place.clone(), None), |problem| problem.at(place.clone())));
        return file;
    };
    let source = match document::open(&candidate.path, &shown) {
        Ok(source) => source,
        Err(problem) => {
            let guess = document::guess(&candidate.path);
            match guess.as_deref().and_then(|text| FORMATS.iter().find(|format| (format.is_meant)(text))) {
                Some(format) => file.refuse(*problem, format, &candidate.path, &shown),
                None => {
                    let is_unreadable = !guess.as_deref().is_some_and(is_legible);
                    file.problems.extend(not_read(*problem, candidate.reason, is_unreadable));
                }
            }
            return file;
        }
    };
    // Data that is not ours may be empty too, but not as JSON beside tests.
    if language == Language::Json && source.text.trim().is_empty() && is_beside_tests(candidate) {
        file.problems.push(Diagnostic::warning("the file is empty").at(Excerpt::of_file(shown)));
        return file;
    }
    let is_certain = candidate.reason != DiscoveryReason::Deeper || language != Language::Json;
    if !is_certain && !format::may_be_json(&source.text) {
        return file;
    }
    let Some(root) = document::read(&source, language, &mut file.problems) else {
        if let Some(problem) = stream_of_fixtures(candidate, &source) {
            file.problems = vec![problem];
            return file;
        }
        let meant = FORMATS.iter().find(|format| (format.is_meant)(&source.text));
        if let Some(format) = meant.filter(|format| format.fails_alone) {
            file.format = Some(format.name);
            file.contain_errors(&candidate.path, &shown);
            return file;
        }
        if candidate.reason != DiscoveryReason::Suite && !FORMATS.iter().any(|format| (format.is_meant)(&source.text)) {
            let is_stream = document::is_stream(&source.text);
            let problems = std::mem::take(&mut file.problems).into_iter().filter(|_| !is_stream);
            let is_unreadable = language == Language::Json && collection::may_be_fixtures(&source.text);
            file.problems = problems.filter_map(|problem| not_read(problem, candidate.reason, is_unreadable)).collect();
        }
        return file;
    };
    let suite = SuiteFile { path: &candidate.path, root: &root };
    let resembled = resembles_a_suite(candidate, &suite);
    match FORMATS.iter().find(|format| resembled && (format.recognises)(&suite)) {
        Some(format) => {
            file.format = Some(format.name);
            file.cases = (format.read)(&suite, library, &mut file.problems);
            if format.fails_alone {
                file.contain_errors(&candidate.path, &shown);
            }
        }
        None if let Some((problem, format)) = collection::problem(&suite) => {
            file.problems.clear();
            match format {
                Some(format) => file.refuse(problem, format, &candidate.path, &shown),
                None if candidate.reason == DiscoveryReason::Suite => file.problems.push(problem),
                None => file.unless_table = Some(Diagnostic { severity: Severity::Warning, ..problem }),
            }
        }
        None if resembled => {
            let near = misspelt_turns(&root).map(|near| (near, "turns"));
            let problem = if near.is_none() && collection::is_script(&root) {
                let problem = root.error("this is the script of a model, and not a test");
                problem.help("put it into a subfolder, such as `models`")
            } else {
                unrecognised(root.excerpt(), near.or_else(|| Some((near_miss(&root)?, "scenario"))))
            };
            file.problems.push(problem);
        }
        None => {
            file.problems.clear();
            if let Some(right) = misspelt_plugin_case(&candidate.path, &source.text) {
                file.problems.push(discover::misnamed_file(right).at(Excerpt::of_file(shown.clone())));
            }
            if has_only_keys_of_tests(&root) {
                let problem = unrecognised(root.excerpt(), root.get("turn").map(|_| ("turn", "turns")));
                file.problems.push(Diagnostic { severity: Severity::Warning, ..problem });
            }
            if matches!(root.kind, NodeKind::Null) && candidate.reason == DiscoveryReason::Searched {
                file.problems.push(Diagnostic::warning("the file is empty").at(root.excerpt()));
            }
            if file.problems.is_empty() && is_beside_tests(candidate) {
                file.unless_tests =
                    Some(Diagnostic { severity: Severity::Warning, ..unrecognised(root.excerpt(), None) });
            }
        }
    }
    file
}

/// Returns the problem with a file that is not called a fixtures file, and has the front matter and the cases of one.
fn stream_of_fixtures(candidate: &Candidate, source: &Arc<Source>) -> Option<Diagnostic> {
    let documents =
        document::read_stream(source, &mut Problems::new()).filter(|_| document::is_stream(&source.text))?;
    let problem = collection::stream_of_fixtures(&candidate.path, &documents)?;
    let severity = if is_come_across(candidate) { Severity::Warning } else { problem.severity };
    Some(Diagnostic { severity, ..problem })
}

/// Returns `true` if the file was found by a search, and is itself in a folder of tests.
fn is_beside_tests(candidate: &Candidate) -> bool {
    let folder = candidate.path.parent().and_then(Path::file_name);
    is_come_across(candidate) && folder.is_some_and(|name| name == TESTS_FOLDER)
}

/// Returns `true` if the file is intended as a suite.
fn resembles_a_suite(candidate: &Candidate, file: &SuiteFile<'_>) -> bool {
    candidate.reason == DiscoveryReason::Suite || FORMATS.iter().any(|format| (format.resembles)(file))
}

/// Returns the format of a file that is not loaded, and the skill that it is about if it is a suite of a skill. `None`
/// if it is not a suite.
fn identify(candidate: &Candidate) -> Option<(&'static str, Option<String>)> {
    let source = document::open(&candidate.path, "").ok()?;
    if let Some((format, _)) = format::named(&candidate.path) {
        let is_suite = !is_come_across(candidate) || (format.is_meant)(&candidate.path, &source.text);
        return is_suite.then_some((format.name, None));
    }
    let root = document::read(&source, Language::from_path(&candidate.path)?, &mut Problems::new())?;
    let file = SuiteFile { path: &candidate.path, root: &root };
    let format = FORMATS.iter().find(|format| resembles_a_suite(candidate, &file) && (format.recognises)(&file))?;
    let skill = root.get("skill_name").or_else(|| root.get("subagent_name")).filter(|_| format.name == EVALS_NAME);
    Some((format.name, skill.and_then(|name| name.as_str()).map(str::to_owned)))
}

/// Returns `true` if the file was found by a search. It may belong to another tool.
fn is_come_across(candidate: &Candidate) -> bool {
    candidate.reason != DiscoveryReason::Suite
}

/// Returns `true` if the guessed `text` of a file that is not UTF-8 shows whether it is a test: it has letters, which
/// most encodings share, and no control characters.
fn is_legible(text: &str) -> bool {
    let is_control = |one: char| one.is_control() && !one.is_whitespace();
    text.contains(|one: char| one.is_ascii_alphabetic()) && !text.contains(is_control)
}

/// Returns the report about a file that cannot be parsed and need not be a suite. If it `is_unreadable`, nothing is
/// known about it.
fn not_read(mut problem: Diagnostic, reason: DiscoveryReason, is_unreadable: bool) -> Option<Diagnostic> {
    match reason {
        DiscoveryReason::Suite => Some(problem),
        DiscoveryReason::Deeper if !is_unreadable => None,
        DiscoveryReason::Searched | DiscoveryReason::Deeper => {
            problem.severity = Severity::Warning;
            Some(problem.help("it cannot be determined whether this is a suite; start its name with `_` to skip it"))
        }
    }
}

/// Suites that are built from files.
#[derive(Default)]
struct Suites {
    /// Index of each suite, by the skill's directory or the file, and the format.
    places: HashMap<(PathBuf, &'static str), usize>,
    suites: Vec<Suite>,
    /// Number of suites that are loaded. The others follow them.
    loaded: usize,
}

impl Suites {
    /// Adds the cases in one file to the suite of the skill whose tests include it, otherwise to a separate suite. A
    /// format that is recognised by name always creates a separate suite. An evaluation of `skill` is named after the
    /// skill, but never like the skill's other tests: its name is part of the record and must not change when those
    /// are added.
    fn add(&mut self, path: &Path, format: &'static str, skill: Option<String>, cases: Vec<Arc<Case>>) {
        let home = home_of_suite(path);
        let found = format::named(path);
        let folder = found.and_then(|(format, _)| (format.folder)(path));
        let named = folder.and(found).map(|(_, name)| name.to_owned());
        let path = folder.unwrap_or(path);
        let key = (home.unwrap_or(path).to_owned(), format);
        let at = *self.places.entry(key).or_insert_with(|| {
            let skill = skill.or_else(|| Some(folder_of_evals(path)?.file_name()?.to_string_lossy().into_owned()));
            self.suites.push(Suite {
                name: match skill {
                    Some(skill) if format == EVALS_NAME => format!("{skill}/{EVALS_FOLDER}"),
                    _ => named.unwrap_or_else(|| plain_name(path)),
                },
                path: home.and(path.parent()).unwrap_or(path).to_owned(),
                format,
                cases: Vec::new(),
            });
            self.suites.len() - 1
        });
        self.suites[at].cases.extend(cases);
    }

    /// Returns `true` if a suite is about the skill in the directory `chosen`.
    fn are_about(&self, chosen: Option<&Path>) -> bool {
        let is_chosen = |case: &Arc<Case>| {
            chosen.is_some() && case.subject.skill().and_then(|skill| skill.directory.as_deref()) == chosen
        };
        self.suites.iter().any(|suite| suite.format == EVALS_NAME || suite.cases.iter().any(is_chosen))
    }

    /// Adds the project's other suites that share a name with a loaded one, without their cases, because a suite's
    /// name must not depend on which others are loaded with it. `read` are the files that are loaded.
    fn add_neighbours(&mut self, request: &Request, read: &HashSet<&Path>) {
        self.loaded = self.suites.len();
        if request.targets.is_empty() && request.skill.is_none() {
            return;
        }
        let project = Request { targets: Vec::new(), skill: None, ..request.clone() };
        // A link may lead to a file that is read under another name.
        let real: LazyCell<HashSet<PathBuf>, _> =
            LazyCell::new(|| read.iter().filter_map(|path| path.canonicalize().ok()).collect());
        let is_read = |path: &Path| read.contains(path) || path.canonicalize().is_ok_and(|path| real.contains(&path));
        let mut candidates = discover::candidates(&project, &mut Problems::new());
        if candidates.is_empty() {
            candidates = discover::tests_of_installed_skills(&project, &mut Problems::new());
        }
        for candidate in candidates {
            let path = candidate.path.as_path();
            // The name of a skill's suite is written in the file.
            let may_share = |suite: &Suite| format::is_evals_file(path) || suite.name == plain_name(path);
            if !self.suites.iter().any(may_share) || is_read(path) {
                continue;
            }
            if let Some((format, skill)) = identify(&candidate) {
                self.add(path, format, skill, Vec::new());
            }
        }
    }

    /// Returns the loaded suites with their names. Suites in one folder may share a name, but not the id of a case.
    fn finish(mut self, request: &Request, problems: &mut Problems) -> Vec<Suite> {
        let root = &request.root;
        self.name_by_folder(request);
        // Files with the same name in different folders are named by their path.
        self.rename_twins(root, |path| match folder_of_evals(path) {
            Some(folder) if folder.starts_with(root) => shown(folder, root),
            Some(folder) => shown(folder, &request.cwd),
            None => shown(&place(path), root),
        });
        self.rename_twins(root, |path| shown(path, root));
        self.suites.truncate(self.loaded);
        self.tell_broken_files_apart();
        for suite in &self.suites {
            refuse_duplicates(suite, problems);
        }
        self.suites
    }

    /// Gives a case that stands for a broken file the file's whole name as its id if another case has the same suite and
    /// id: `a.yaml` and `a.json` are both called `a`, but their names may not stop the other files.
    fn tell_broken_files_apart(&mut self) {
        let mut ids: HashMap<(&str, &str), usize> = HashMap::new();
        for suite in &self.suites {
            for case in &suite.cases {
                *ids.entry((&suite.name, &case.id)).or_default() += 1;
            }
        }
        let is_repeated =
            |suite: &Suite, case: &Case| ids.get(&(&*suite.name, &*case.id)).is_some_and(|count| *count > 1);
        let mut repeated = Vec::new();
        for (index, suite) in self.suites.iter().enumerate() {
            let cases = suite.cases.iter().enumerate();
            let cases = cases.filter(|(_, case)| stands_for_file(case) && is_repeated(suite, case));
            repeated.extend(cases.map(|(case, _)| (index, case)));
        }
        for (suite, case) in repeated {
            let case = Arc::make_mut(&mut self.suites[suite].cases[case]);
            let name = Path::new(&*case.source.file).file_name().unwrap_or_default();
            case.id = name.to_string_lossy().into_owned();
        }
    }

    /// Names suites in subfolders by their path below the folder of tests: `billing/refund`. Otherwise another file with
    /// the same name would change their names.
    fn name_by_folder(&mut self, request: &Request) {
        let is_inside = |folder: &Path| folder.starts_with(&request.root) || folder.starts_with(&request.cwd);
        let scenarios = request.root.join(SCENARIOS_FOLDER);
        for suite in self.suites.iter_mut().filter(|suite| suite.format != EVALS_NAME) {
            let Some(folder) = suite.path.parent().filter(|_| home_of_suite(&suite.path.join("_")).is_none()) else {
                continue;
            };
            let mut above = folder.ancestors().take_while(|above| is_inside(above));
            let called = || above.find(|above| above.file_name().is_some_and(|name| name == TESTS_FOLDER));
            let configured = [request.tests.as_deref(), Some(&*scenarios)].into_iter().flatten();
            let configured = configured.into_iter().find(|tests| folder.starts_with(tests));
            let Some(tests) = configured.or_else(called) else { continue };
            let below = folder.strip_prefix(tests).ok().filter(|below| !below.as_os_str().is_empty());
            if let Some(below) = below {
                let skill = tests.parent().filter(|skill| skill.join(SKILL_FILE).is_file()).and_then(Path::file_name);
                let skill = skill.map(|name| format!("{}/", name.to_string_lossy())).unwrap_or_default();
                suite.name = format!("{skill}{}/{}", below.display(), suite.name);
            }
        }
    }

    /// Renames suites that share their name with one in another place to `name` of their path, except if there is only
    /// one in the best location. That one keeps its name, and therefore its history, when others are added. The suites
    /// of one skill's tests share one place, and so do files that differ only in their extensions.
    fn rename_twins(&mut self, root: &Path, name: impl Fn(&Path) -> String) {
        let mut places: HashMap<String, HashMap<PathBuf, Location>> = HashMap::new();
        for suite in &self.suites {
            let places = places.entry(suite.name.clone()).or_default();
            places.insert(place(&suite.path), location(&suite.path, root));
        }
        for suite in &mut self.suites {
            let Some(places) = places.get(&suite.name).filter(|places| places.len() > 1) else { continue };
            let best = places.values().copied().max().unwrap_or_default();
            let is_only_best = places.values().filter(|location| **location == best).count() == 1;
            if best == Location::Other || !is_only_best || location(&suite.path, root) != best {
                suite.name = name(&suite.path);
            }
        }
    }
}

/// Returns `true` if no case of a broken file could be read, and `case` stands for all of them.
fn stands_for_file(case: &Case) -> bool {
    case.fails_alone && !case.broken.is_empty() && case.source.text.is_empty()
}

/// Returns the path of a suite without what tells its format: `tests/order` for `tests/order.test.ts`.
fn place(path: &Path) -> PathBuf {
    match format::named(path) {
        Some((_, name)) => path.with_file_name(name),
        None if Language::from_path(path).is_some() && !format::is_evals_file(path) => path.with_extension(""),
        None => path.to_owned(),
    }
}

/// Location of a suite, in the order in which people look for it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Location {
    #[default]
    Other,
    /// The folder `tests` of a skill.
    TestsOfSkill,
    /// The evaluation of a skill in the skill's directory, or the folder of scenarios.
    First,
}

fn location(path: &Path, root: &Path) -> Location {
    let is_skill = |folder: &Path| folder.join(SKILL_FILE).is_file();
    let parent = path.parent();
    match folder_of_evals(path) {
        Some(folder) if is_skill(folder) => Location::First,
        None if parent == Some(&root.join(SCENARIOS_FOLDER)) => Location::First,
        None if path.file_name().is_some_and(|name| name == TESTS_FOLDER) && parent.is_some_and(is_skill) => {
            Location::TestsOfSkill
        }
        _ => Location::Other,
    }
}

/// Returns the directory of the skill whose suite contains the file at `path`. Files in a format that is recognised by
/// name are separate suites.
fn home_of_suite(path: &Path) -> Option<&Path> {
    home_of(path).filter(|home| path.parent() == Some(&home.join(TESTS_FOLDER)) && format::named(path).is_none())
}

/// Returns the suite name for the file at `path`, before conflicts are resolved.
fn plain_name(path: &Path) -> String {
    if let Some((_, suite)) = format::named(path) {
        return suite.to_owned();
    }
    let name = home_of_suite(path).and_then(Path::file_name).or_else(|| path.file_stem());
    name.unwrap_or_default().to_string_lossy().into_owned()
}

/// Returns the parent of the `evals` folder that contains the file at `path`.
fn folder_of_evals(path: &Path) -> Option<&Path> {
    let folder = path.parent().filter(|_| format::is_evals_file(path))?;
    folder.parent().filter(|_| folder.file_name().is_some_and(|name| name == EVALS_FOLDER))
}

fn refuse_duplicates(suite: &Suite, problems: &mut Problems) {
    let what = if [EVALS_NAME, "mcp"].contains(&suite.format) { "case" } else { "scenario" };
    let mut first: HashMap<&str, &Case> = HashMap::with_capacity(suite.cases.len());
    for case in &suite.cases {
        match first.get(case.id.as_str()) {
            Some(other) => problems.push(
                Diagnostic::error(format!("a second {what} with the id `{}` in `{}`", case.id, suite.name))
                    .at(case.source.clone())
                    .of(DiagnosticKind::TakenId)
                    .help(format!("the first is at {}", other.source)),
            ),
            None => {
                first.insert(&case.id, case);
            }
        }
    }
}
