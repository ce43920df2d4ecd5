//! LOAD: from what the user named to suites, with every problem on the way.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use model::decode::Problems;
use model::{Case, Diagnostic, Excerpt, NodeKind, Severity, Suite};

use crate::discover::{self, Candidate, Standing};
use crate::document::{self, Language};
use crate::format::{self, CODE, EVALS, EVALS_FOLDER, FORMATS, FixtureSettings, NAMED, SuiteFile, near_miss};
use crate::library::{Library, home_of};
use crate::parallel;
use crate::path::shown;

/// Fewer files than this are read on one thread: starting another costs as much as reading dozens of them.
const FILES_PER_THREAD: usize = 64;

/// What the folder of tests is called, unless the project says otherwise.
const TESTS_FOLDER: &str = "tests";

/// What to load.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// The project's root directory, absolute.
    pub root: PathBuf,
    /// The project's folder of skills, absolute.
    pub skills_dir: PathBuf,
    /// The project's folder of suites that belong to no skill, absolute, if it has one.
    pub tests: Option<PathBuf>,
    /// Where the user stands, absolute: targets start here, and messages show paths from here.
    pub cwd: PathBuf,
    /// Files, directories and names of skills; none means the tests of every skill in `skills_dir`, and
    /// what is in the folder `scenarios` of the root and in `tests`.
    pub targets: Vec<String>,
    /// The skill that tests are about, whatever lies near them: a directory, or the name of one of the project's. Suites of
    /// skills are held to it; other tests take it where they name a skill that is called so.
    /// Without targets, its own suite is read and nothing else.
    pub skill: Option<String>,
    /// What the project's configuration says of fixtures files.
    pub fixtures: FixtureSettings,
    /// The variables that modules find in `process.env`.
    pub environment: Vec<script::Variable>,
    /// What time it is for templates, in milliseconds since 1970; without it they cannot ask.
    pub now_ms: Option<i64>,
}

/// What a load found.
#[derive(Debug, Default)]
pub struct Loaded {
    /// The suites, in the order their first file was named. While there are errors among the diagnostics they hold
    /// what could be read, for finding further problems and not for running.
    pub suites: Vec<Suite>,
    /// Every problem, file by file in the order of the suites, then skills and shared fixtures.
    pub diagnostics: Vec<Diagnostic>,
    /// The modules of tests as they were read, for running them.
    pub modules: script::Library,
}

impl Loaded {
    /// Whether something forbids to go on.
    pub fn has_errors(&self) -> bool {
        self.diagnostics.iter().any(Diagnostic::is_error)
    }
}

/// Reads everything that `request` names. Nothing stops at the first bad file.
pub fn load(request: &Request) -> Loaded {
    let mut diagnostics = Problems::new();
    let candidates = discover::candidates(request, &mut diagnostics);
    let library = Library::new(request);
    let files = read_all(&candidates, &library);
    let mut suites = Suites::default();
    let mut recognised = 0;
    for (candidate, file) in candidates.iter().zip(files) {
        let mut problems = file.problems;
        problems.sort_by_key(|problem| problem.source.as_ref().map(|place| (place.line, place.column)));
        diagnostics.extend(problems);
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
    if is_chosen && !suites.are_about(library.chosen_skill()) {
        let named = request.skill.as_deref().unwrap_or_default();
        let message =
            format!("`--skill` says which skill tests are about, and nothing that is named is about `{named}`");
        diagnostics.push(Diagnostic::error(message).help("`--evals FILE` names one, such as `evals/evals.json`"));
    }
    let read: HashSet<&Path> = candidates.iter().map(|candidate| candidate.path.as_path()).collect();
    suites.add_neighbours(request, &read);
    let suites = suites.finish(request, &mut diagnostics);
    let modules = library.modules().clone();
    diagnostics.extend(library.into_problems());
    Loaded { suites, diagnostics, modules }
}

/// One file as it was read.
#[derive(Default)]
struct ReadFile {
    /// `None` when it is no suite.
    format: Option<&'static str>,
    cases: Vec<Arc<Case>>,
    problems: Problems,
}

impl ReadFile {
    /// Moves the errors of a file whose mistakes break only its own trials to its cases. If no case could be read, one
    /// stands for the file.
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
            Arc::make_mut(case).broken.extend(errors.iter().cloned());
        }
    }
}

/// Reads the files; the results are in their order.
fn read_all(candidates: &[Candidate], library: &Library) -> Vec<ReadFile> {
    parallel::map(candidates.iter().collect(), FILES_PER_THREAD, |candidate| read_one(candidate, library))
}

fn read_one(candidate: &Candidate, library: &Library) -> ReadFile {
    let shown = library.shown(&candidate.path);
    let mut file = ReadFile::default();
    if let Some((format, _)) = format::named(&candidate.path) {
        file.format = Some(format.name());
        match document::open(&candidate.path, &shown) {
            Ok(source) if is_come_across(candidate) && !format.is_meant(&source.text) => file.format = None,
            Ok(source) => file.cases = format.read(&candidate.path, &source, library, &mut file.problems),
            Err(problem) => file.problems.push(*problem),
        }
        return file;
    }
    let Some(language) = Language::of(&candidate.path) else {
        file.problems.push(unrecognised(Excerpt::of_file(shown), None));
        return file;
    };
    let source = match document::open(&candidate.path, &shown) {
        Ok(source) => source,
        Err(problem) => {
            file.problems.extend(not_read(*problem, candidate.standing));
            return file;
        }
    };
    let Some(root) = document::read(&source, language, &mut file.problems) else {
        let meant = FORMATS.iter().find(|format| format.is_meant(&source.text));
        if let Some(format) = meant.filter(|format| format.fails_alone()) {
            file.format = Some(format.name());
            file.contain_errors(&candidate.path, &shown);
            return file;
        }
        if candidate.standing != Standing::Suite && !FORMATS.iter().any(|format| format.is_meant(&source.text)) {
            let is_stream = document::is_stream(&source.text);
            let problems = std::mem::take(&mut file.problems).into_iter().filter(|_| !is_stream);
            file.problems = problems.filter_map(|problem| not_read(problem, candidate.standing)).collect();
        }
        return file;
    };
    let suite = SuiteFile { path: &candidate.path, root: &root };
    let resembled = resembles_a_suite(candidate, &suite);
    match FORMATS.iter().find(|format| resembled && format.recognises(&suite)) {
        Some(format) => {
            file.format = Some(format.name());
            file.cases = format.read(&suite, library, &mut file.problems);
            if format.fails_alone() {
                file.contain_errors(&candidate.path, &shown);
            }
        }
        None if resembled => {
            let problem = unrecognised(root.excerpt(), near_miss(&root));
            file.problems.push(problem);
        }
        None => {
            file.problems.clear();
            if matches!(root.kind, NodeKind::Null) && candidate.standing == Standing::Searched {
                file.problems.push(Diagnostic::warning("the file is empty").at(root.excerpt()));
            }
        }
    }
    file
}

/// Whether the file is meant to be a suite.
fn resembles_a_suite(candidate: &Candidate, file: &SuiteFile<'_>) -> bool {
    candidate.standing == Standing::Suite || FORMATS.iter().any(|format| format.resembles(file))
}

/// The format of a file that is not loaded, and the skill that a suite of a skill is about. `None` if it is not a suite.
fn identify(candidate: &Candidate) -> Option<(&'static str, Option<String>)> {
    let source = document::open(&candidate.path, "").ok()?;
    if let Some((format, _)) = format::named(&candidate.path) {
        let is_suite = !is_come_across(candidate) || format.is_meant(&source.text);
        return is_suite.then(|| (format.name(), None));
    }
    let root = document::read(&source, Language::of(&candidate.path)?, &mut Problems::new())?;
    let file = SuiteFile { path: &candidate.path, root: &root };
    let format = FORMATS.iter().find(|format| resembles_a_suite(candidate, &file) && format.recognises(&file))?;
    let skill = root.get("skill_name").or_else(|| root.get("subagent_name")).filter(|_| format.name() == EVALS);
    Some((format.name(), skill.and_then(|name| name.as_str()).map(str::to_owned)))
}

/// Whether a file was found by looking around. What is in a skill's folder of tests may be for other tools.
fn is_come_across(candidate: &Candidate) -> bool {
    candidate.standing != Standing::Suite || home_of(&candidate.path).is_some()
}

/// What is said of a file that cannot be read and need not be a suite.
fn not_read(mut problem: Diagnostic, standing: Standing) -> Option<Diagnostic> {
    match standing {
        Standing::Suite => Some(problem),
        Standing::Searched => {
            problem.severity = Severity::Warning;
            Some(problem.help("whether it is meant to be a suite cannot be told; a name that starts with `_` hides it"))
        }
        Standing::Deeper => None,
    }
}

/// A file that no format recognises, and the key in it that is nearly that of a scenario.
fn unrecognised(place: Excerpt, near: Option<&str>) -> Diagnostic {
    let told = |name: &str, mark: &str| format!("{name}: {mark}");
    let formats = FORMATS.iter().map(|format| told(format.name(), format.mark()));
    let near = near.map(|near| format!("is `{near}` meant to be `scenario`?"));
    let named = NAMED.iter().map(|format| told(format.name(), format.mark()));
    let problem = Diagnostic::error("this is no suite in a known format").at(place);
    near.into_iter().chain(formats).chain(named).fold(problem, Diagnostic::help)
}

/// Suites as they come together from files.
#[derive(Default)]
struct Suites {
    /// By the skill's directory or the file, and the format.
    places: HashMap<(PathBuf, &'static str), usize>,
    suites: Vec<Suite>,
    /// How many of them are loaded. The others come after them.
    loaded: usize,
}

impl Suites {
    /// Adds the cases of one file: to the suite of the skill whose tests it belongs to, else as a suite of their own, as
    /// those of a format that is told by its name always are. A suite of a skill is called like `skill`.
    fn add(&mut self, path: &Path, format: &'static str, skill: Option<String>, cases: Vec<Arc<Case>>) {
        let home = home_of_suite(path);
        let key = (home.unwrap_or(path).to_owned(), format);
        let at = *self.places.entry(key).or_insert_with(|| {
            let skill = skill.or_else(|| Some(folder_of_evals(path)?.file_name()?.to_string_lossy().into_owned()));
            self.suites.push(Suite {
                name: skill.filter(|_| format == EVALS).unwrap_or_else(|| plain_name(path)),
                path: home.and(path.parent()).unwrap_or(path).to_owned(),
                format,
                cases: Vec::new(),
            });
            self.suites.len() - 1
        });
        self.suites[at].cases.extend(cases);
    }

    /// Whether a suite is about the skill in the directory `chosen`.
    fn are_about(&self, chosen: Option<&Path>) -> bool {
        let is_chosen = |case: &Arc<Case>| {
            chosen.is_some() && case.subject.skill().and_then(|skill| skill.directory.as_deref()) == chosen
        };
        self.suites.iter().any(|suite| suite.format == EVALS || suite.cases.iter().any(is_chosen))
    }

    /// Adds, without their cases, those suites of the project that are not loaded and share a name with one that is: a
    /// suite's name must not depend on which others are loaded with it. `read` are the files that are loaded.
    fn add_neighbours(&mut self, request: &Request, read: &HashSet<&Path>) {
        self.loaded = self.suites.len();
        if request.targets.is_empty() && request.skill.is_none() {
            return;
        }
        let project = Request { targets: Vec::new(), skill: None, ..request.clone() };
        for candidate in discover::candidates(&project, &mut Problems::new()) {
            let path = candidate.path.as_path();
            // What a suite of a skill is called is written in it.
            let may_share = |suite: &Suite| format::is_evals_file(path) || suite.name == plain_name(path);
            if read.contains(path) || !self.suites.iter().any(may_share) {
                continue;
            }
            if let Some((format, skill)) = identify(&candidate) {
                self.add(path, format, skill, Vec::new());
            }
        }
    }

    /// The suites that are loaded, each with a name of its own and its cases with ids of their own.
    fn finish(mut self, request: &Request, problems: &mut Problems) -> Vec<Suite> {
        let root = &request.root;
        self.name_by_folder(request);
        self.yield_names();
        // Files of one stem are called by their path, and by their whole name where only its end tells them apart.
        self.rename_twins(|path| match folder_of_evals(path) {
            Some(folder) if folder.starts_with(root) => shown(folder, root),
            Some(folder) => shown(folder, &request.cwd),
            None => shown(&path.with_extension(""), root),
        });
        self.rename_twins(|path| shown(path, root));
        self.suites.truncate(self.loaded);
        for suite in &self.suites {
            refuse_duplicates(suite, problems);
        }
        self.suites
    }

    /// Names suites of code by their path in the folder of tests, where they are often many: `billing/refund`.
    fn name_by_folder(&mut self, request: &Request) {
        let is_inside = |folder: &Path| folder.starts_with(&request.root) || folder.starts_with(&request.cwd);
        for suite in self.suites.iter_mut().filter(|suite| suite.format == CODE) {
            let Some(folder) = suite.path.parent() else { continue };
            let mut above = folder.ancestors().take_while(|above| is_inside(above));
            let called = || above.find(|above| above.file_name().is_some_and(|name| name == TESTS_FOLDER));
            let configured = request.tests.as_deref().filter(|tests| folder.starts_with(tests));
            let below = configured.or_else(called).and_then(|tests| folder.strip_prefix(tests).ok());
            if let Some(below) = below.filter(|below| !below.as_os_str().is_empty()) {
                suite.name = format!("{}/{}", below.display(), suite.name);
            }
        }
    }

    /// Leaves the names of skills that have tests, too, to those: a suite's name is part of what is recorded.
    fn yield_names(&mut self) {
        let others = self.suites.iter().filter(|suite| suite.format != EVALS);
        let taken: HashSet<String> = others.map(|suite| suite.name.clone()).collect();
        for suite in self.suites.iter_mut().filter(|suite| suite.format == EVALS && taken.contains(&suite.name)) {
            suite.name.push_str(&format!("/{EVALS_FOLDER}"));
        }
    }

    /// Gives the suites that share their name with one at another place the name that `name` makes of their path. The
    /// suites of one skill's tests are at one place, whatever their formats are.
    fn rename_twins(&mut self, name: impl Fn(&Path) -> String) {
        let mut places: HashMap<String, HashSet<PathBuf>> = HashMap::new();
        for suite in &self.suites {
            places.entry(suite.name.clone()).or_default().insert(suite.path.clone());
        }
        for suite in &mut self.suites {
            if places.get(&suite.name).is_some_and(|places| places.len() > 1) {
                suite.name = name(&suite.path);
            }
        }
    }
}

/// The directory of the skill whose suite the file at `path` is a part of. Files of a format that is told by its name are
/// suites of their own.
fn home_of_suite(path: &Path) -> Option<&Path> {
    home_of(path).filter(|_| format::named(path).is_none())
}

/// What the suite of the file at `path` is called, unless another one is called so, too.
fn plain_name(path: &Path) -> String {
    if let Some((_, suite)) = format::named(path) {
        return suite.to_owned();
    }
    let name = home_of_suite(path).and_then(Path::file_name).or_else(|| path.file_stem());
    name.unwrap_or_default().to_string_lossy().into_owned()
}

/// The folder whose `evals` the file at `path` lies in.
fn folder_of_evals(path: &Path) -> Option<&Path> {
    let folder = path.parent().filter(|_| format::is_evals_file(path))?;
    folder.parent().filter(|_| folder.file_name().is_some_and(|name| name == EVALS_FOLDER))
}

fn refuse_duplicates(suite: &Suite, problems: &mut Problems) {
    let what = if suite.format == EVALS { "case" } else { "scenario" };
    let mut first: HashMap<&str, &Case> = HashMap::with_capacity(suite.cases.len());
    for case in &suite.cases {
        match first.get(case.id.as_str()) {
            Some(other) => problems.push(
                Diagnostic::error(format!("a second {what} with the id `{}` in `{}`", case.id, suite.name))
                    .at(case.source.clone())
                    .help(format!("the first is at {}", other.source)),
            ),
            None => {
                first.insert(&case.id, case);
            }
        }
    }
}
