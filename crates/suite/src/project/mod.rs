//! Configuration of the project: `trialrun.config.ts`, `trialrun.yaml` and similar files, or the configuration file of
//! another tool.

mod agents;
mod defaults;
mod environment;
mod file;
mod judge;
mod sections;
mod workers;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use model::decode::{Fields, Problems};
use model::{Canaries, Diagnostic, DiagnosticKind, Excerpt, Mocks, Node, NodeKind, Requirement, nearest};
use script::RuntimeChoice;

use self::environment::Missing;
use self::file::Dialect;
use crate::ai_tester;
use crate::canaries::canaries;
use crate::fixture_settings::FixtureSettings;
use crate::misplaced;
use crate::mocks::mocks;
use crate::module_tree::FUNCTION;
use crate::path::{self, shown};
use crate::skill::SKILL_FILE;
use crate::skills::{folders, names_in};

pub use self::agents::ProjectAgent;
pub use self::defaults::Defaults;
pub use self::environment::Environment;
pub use self::file::names as config_names;
pub use self::judge::Judge;
pub use self::sections::{IsolationChoice, ProviderLimits, Reports, SandboxChoice};
pub use self::workers::Workers;

/// Default skills folder.
const SKILLS_DIR: &str = "skills";

/// Default folder for suites that do not belong to a skill.
const TESTS: &str = "tests";

/// Default folder for the state.
const STATE: &str = ".trialrun";

/// Sections whose texts are names, paths, addresses and keys.
const PLAIN_SECTIONS: [&str; 6] = ["judge", "llm", "state", "store", "sandbox", "workers"];

/// Sections that may contain functions.
const WITH_CODE: [&str; 3] = ["agent", "agents", "fixtures"];

/// Project: its root, its folders and its defaults.
#[derive(Debug, Clone, Default)]
pub struct Project {
    /// Directory of the configuration file; if there is none, the directory in which the search started.
    pub root: PathBuf,
    /// Configuration file, if there is one.
    pub file: Option<PathBuf>,
    /// True if there is a configuration that could not be read at all. Whatever it sets is missing, so problems with the
    /// tests may only follow from that.
    pub is_unread: bool,
    /// Contents of this file, with references to the environment resolved as far as possible. It contains secrets.
    pub tree: Option<Node>,
    /// Folder that contains the skills, absolute.
    pub skills_dir: PathBuf,
    /// Folder with suites that do not belong to a skill, absolute; absent if there is none.
    pub tests: Option<PathBuf>,
    /// Folder for recorded runs, absolute.
    pub state: PathBuf,
    /// Record, if it is not in the state folder: the absolute path of its file, or its URL.
    pub store: Option<Setting<PathBuf>>,
    /// Problems of the variables in `state` and `store`. They matter only if the record is used.
    pub missing_of_record: Vec<Diagnostic>,
    /// Defaults for settings that cases do not have.
    pub defaults: Defaults,
    /// Configured agents, in the order in which they are written.
    pub agents: Vec<ProjectAgent>,
    /// Model that judges.
    pub judge: Judge,
    /// File with model prices, absolute.
    pub pricing: Option<Setting<PathBuf>>,
    /// Limits on requests to model providers.
    pub providers: Vec<ProviderLimits>,
    /// Kind of sandbox that may replace the chosen one.
    pub sandbox_fallback: Option<String>,
    /// Canaries for cases that do not set them.
    pub canaries: Option<Canaries>,
    /// MCP servers and mocked programs of all cases.
    pub mocks: Arc<Mocks>,
    /// Conditions that each trial must meet in addition to its assertions.
    pub require: Option<Setting<Vec<Requirement>>>,
    /// Isolation of the processes of sandboxes.
    pub isolation: IsolationChoice,
    /// Reports to write.
    pub reports: Reports,
    /// Amount by which a score may drop before it counts as a regression, from 0 to 1.
    pub regression_threshold: Option<Setting<f64>>,
    /// Runtime for tests and other code.
    pub code_runtime: Option<Setting<RuntimeChoice>>,
    /// Workers that run the trials, if they are not run by the process of the run.
    pub workers: Option<Workers>,
    /// Settings for all fixtures files.
    pub fixtures: FixtureSettings,
}

/// A value in the configuration with its location.
#[derive(Debug, Clone, PartialEq)]
pub struct Setting<T> {
    /// Value.
    pub value: T,
    /// Location.
    pub source: Excerpt,
}

impl Project {
    /// Returns `true` if the configuration is one of Fabrik's, whose command line uses milliseconds.
    pub fn is_of_fabrik(&self) -> bool {
        self.file.as_deref().and_then(file::dialect_of) == Some(Dialect::Fabrik)
    }

    /// Returns the project for `start` like [`find_with`](Self::find_with), without environment variables.
    pub fn find(start: &Path, cwd: &Path) -> (Self, Vec<Diagnostic>) {
        Self::find_with(start, cwd, &Environment::new())
    }

    /// Returns the project for `start`: that of the nearest parent directory with a configuration file, otherwise
    /// `start` itself without any settings. Messages show paths relative to `cwd`; `${env.NAME}` is looked up in
    /// `environment`. If the file is broken, the project has its problems and the settings that could be read.
    pub fn find_with(start: &Path, cwd: &Path, environment: &Environment) -> (Self, Vec<Diagnostic>) {
        Self::find_on(start, cwd, environment, &|_| script::Library::new())
    }

    /// Returns the project for `start` like [`find_with`](Self::find_with). A configuration that is a module runs where
    /// the library chooses that `library_of` returns for the folder of the project.
    pub fn find_on(
        start: &Path,
        cwd: &Path,
        environment: &Environment,
        library_of: &dyn Fn(&Path) -> script::Library,
    ) -> (Self, Vec<Diagnostic>) {
        let (mut problems, mut is_unread) = (Problems::new(), false);
        let start = path::resolve(cwd, start);
        for directory in start.ancestors() {
            let Some(found) = file::in_directory(directory, cwd, &mut problems) else {
                if directory.starts_with(cwd) {
                    let misnamed = file::misnamed(directory, cwd);
                    is_unread |= !misnamed.is_empty();
                    problems.extend(misnamed);
                }
                continue;
            };
            let mut project = Self { is_unread, ..Self::bare(directory) };
            match file::read(&found.path, cwd, &library_of(directory), &mut problems) {
                Some(written) => project.read(&written, found.dialect, cwd, environment, &mut problems),
                None => project.is_unread = true,
            }
            project.file = Some(found.path);
            problems.sort_by_key(|problem| problem.source.as_ref().map(|place| (place.line, place.column)));
            return (project, problems);
        }
        (Self { is_unread, ..Self::bare(&start) }, problems)
    }

    /// Creates a project at `root` without a configuration file.
    pub fn bare(root: &Path) -> Self {
        let tests = root.join(TESTS);
        Self {
            root: root.to_owned(),
            skills_dir: root.join(SKILLS_DIR),
            tests: tests.is_dir().then_some(tests),
            state: root.join(STATE),
            ..Self::default()
        }
    }

    fn read(
        &mut self,
        written: &Node,
        dialect: Dialect,
        cwd: &Path,
        environment: &Environment,
        problems: &mut Problems,
    ) {
        if matches!(written.kind, NodeKind::Null) {
            // There are only comments, and so no settings.
            if dialect == Dialect::Fabrik {
                self.defaults.fill_as_fabrik(&written.excerpt());
            }
            return;
        }
        let mut missing = Vec::new();
        let root = fill(written, environment, &mut missing);
        refuse_functions(&root, problems);
        let plain = PLAIN_SECTIONS.iter().filter_map(|section| written.get(section));
        plain.for_each(|section| environment::report_shell_variables(section, problems));
        self.tree = Some(root.clone());
        let Some(fields) = Fields::of(&root, "the configuration", problems) else { return };
        let mut fields = fields.in_either_case();
        self.read_folders(&mut fields, dialect, cwd, problems);
        if let Some(node) = fields.get("defaults") {
            self.defaults = Defaults::read(node, &self.root, dialect, problems);
        }
        if dialect != Dialect::AiTester {
            self.read_own(&mut fields, dialect, &mut missing, problems);
        }
        if dialect == Dialect::Fabrik {
            self.defaults.fill_as_fabrik(&Excerpt::of_file(&*root.source.path));
        }
        match dialect {
            // Another tool reads this file too, and may know more keys.
            Dialect::AiTester => fields.finish_with_warnings(&ai_tester::KEYS, problems),
            _ => {
                let first = problems.len();
                fields.finish(problems);
                misplaced::say_where(problems, first, misplaced::OF_CONFIGURATION);
            }
        }
        self.missing_of_record = environment::take_below(&mut missing, &["state"]);
        self.missing_of_record.extend(environment::take_below(&mut missing, &["store"]));
        problems.extend(missing.into_iter().map(|one| one.problem));
    }

    fn read_folders(&mut self, fields: &mut Fields<'_>, dialect: Dialect, cwd: &Path, problems: &mut Problems) {
        if let Some(folder) = sections::folder(fields, "skills_dir", &self.root, problems) {
            let is_skill = |folder: &Path| folder.join(SKILL_FILE).is_file();
            if is_skill(&folder.value) && !folders(&folder.value).iter().any(|inner| is_skill(inner)) {
                let message =
                    format!("`{}` is a skill, and `skills_dir` is the folder of skills", shown(&folder.value, cwd));
                let parent = folder.value.parent().unwrap_or(&folder.value);
                problems.push(Diagnostic::error(message).at(folder.source).suggest(Some(&shown(parent, cwd))));
                self.skills_dir = parent.to_owned();
            } else {
                self.skills_dir = there(folder, cwd, problems);
            }
        }
        if dialect == Dialect::AiTester {
            return;
        }
        if let Some(folder) = sections::folder(fields, "tests", &self.root, problems) {
            self.tests = Some(there(folder, cwd, problems));
        }
        match sections::place_of_record(fields, "state", &self.root, problems) {
            Some(place) if sections::is_url(&place.value) => self.store = Some(place),
            Some(folder) => {
                sections::refuse_file(&folder, "state", problems);
                self.state = folder.value;
            }
            None => {}
        }
        if let Some(node) = fields.get("store") {
            self.store = sections::store(node, &self.root, problems).or(self.store.take());
        }
    }

    fn read_own(
        &mut self,
        fields: &mut Fields<'_>,
        dialect: Dialect,
        missing: &mut Vec<Missing>,
        problems: &mut Problems,
    ) {
        let (agents, default) = agents::read(fields, &self.root, missing, problems);
        let chosen = fields.get("agent").map(Node::excerpt);
        let is_chosen = chosen.is_some() && default.as_ref().map(|default| &default.source) == chosen.as_ref();
        match &self.defaults.agent {
            Some(_) if is_chosen => {
                let what = "`agent` and `agent` in `defaults`";
                defaults::keep_one(&mut self.defaults.agent, default, what, problems);
            }
            Some(_) => {}
            None => self.defaults.agent = default,
        }
        self.agents = agents;
        self.judge = Judge::read(fields, missing, problems);
        self.pricing = sections::file(fields, "pricing", &self.root, problems);
        self.providers = fields.get("providers").map(|node| sections::providers(node, problems)).unwrap_or_default();
        if let Some(node) = fields.get("sandbox") {
            let chosen = sections::sandbox(node, dialect, &self.root, problems);
            let what = "`sandbox` and `sandbox` in `defaults`";
            defaults::keep_one(&mut self.defaults.sandbox, chosen.provider, what, problems);
            self.sandbox_fallback = chosen.fallback;
            self.isolation = chosen.isolation;
        }
        self.canaries = fields.get("canaries").and_then(|node| canaries(node, problems));
        self.mocks = Arc::new(mocks(fields, &self.root, problems));
        let required = sections::requirements(fields, problems);
        self.require = setting(required, "require", fields);
        // A missing key matters only to trials that need such a sandbox: they are broken, or run in another kind of
        // sandbox.
        environment::take_below(missing, &["sandbox", "daytona"]);
        if let Some(node) = fields.get("eval") {
            self.defaults.read_eval(node, dialect, problems);
        }
        self.regression_threshold = fields.get("diff").and_then(|node| sections::diff(node, problems));
        self.reports =
            fields.get("report").map(|node| sections::reports(node, &self.root, problems)).unwrap_or_default();
        self.code_runtime = fields.get("code").and_then(|node| sections::code(node, problems));
        self.workers = fields.get("workers").and_then(|node| Workers::read(node, missing, problems));
        if let Some(node) = fields.get("fixtures") {
            self.fixtures = FixtureSettings::read(node, &self.root, problems);
        }
    }
}

/// Returns the folder, and warns if it does not exist. A pattern for files is an error.
fn there(folder: Setting<PathBuf>, cwd: &Path, problems: &mut Problems) -> PathBuf {
    let is_plain = |part: &std::path::Component<'_>| !part.as_os_str().to_string_lossy().contains('*');
    let base: PathBuf = folder.value.components().take_while(is_plain).collect();
    if base != folder.value && !folder.value.exists() {
        let message = format!("`{}` is a pattern, and a directory is needed", shown(&folder.value, cwd));
        let base_shown = shown(&base, cwd);
        problems.push(Diagnostic::error(message).at(folder.source).help(format!("write `{base_shown}`")));
        return base;
    }
    if !folder.value.exists() {
        let message = format!("there is no directory `{}`", shown(&folder.value, cwd));
        let beside = folder.value.parent().map(names_in).unwrap_or_default();
        let near = folder.value.file_name().and_then(|name| nearest(name.to_str()?, beside.iter().map(String::as_str)));
        let problem = Diagnostic::warning(message).at(folder.source).suggest(near);
        problems.push(problem.of(DiagnosticKind::UnreadTests));
    }
    folder.value
}

/// Returns the configuration with its references to the environment resolved. Settings for fixtures files are passed
/// to scripts as written.
fn fill(written: &Node, environment: &Environment, missing: &mut Vec<Missing>) -> Node {
    let mut filled = environment::fill(written, environment, missing);
    environment::take_below(missing, &["fixtures"]);
    if let (NodeKind::Map(entries), Some(own)) = (&mut filled.kind, written.get("fixtures"))
        && let Some((_, fixtures)) = entries.iter_mut().find(|(name, _)| name.value == "fixtures")
    {
        *fixtures = own.clone();
    }
    filled
}

/// Reports functions in sections that do not support them.
fn refuse_functions(root: &Node, problems: &mut Problems) {
    let NodeKind::Map(entries) = &root.kind else { return };
    for (name, node) in entries.iter().filter(|(name, _)| !WITH_CODE.contains(&name.value.as_str())) {
        refuse_below(&name.value, node, problems);
    }
}

fn refuse_below(section: &str, node: &Node, problems: &mut Problems) {
    if node.tag.as_deref() == Some(FUNCTION) {
        problems.push(node.error(format!("`{section}` contains a function, which is never called")));
    }
    match &node.kind {
        NodeKind::List(items) => items.iter().for_each(|item| refuse_below(section, item, problems)),
        NodeKind::Map(entries) => entries.iter().for_each(|(_, value)| refuse_below(section, value, problems)),
        _ => {}
    }
}

fn setting<T>(value: Option<T>, key: &'static str, fields: &mut Fields<'_>) -> Option<Setting<T>> {
    Some(Setting { value: value?, source: fields.get(key)?.excerpt() })
}

/// Reads a string with its location.
fn text(fields: &mut Fields<'_>, key: &'static str, problems: &mut Problems) -> Option<Setting<String>> {
    let value = fields.text(key, problems);
    setting(value, key, fields)
}

/// Reads a whole number of at least `least` with its location.
fn whole(fields: &mut Fields<'_>, key: &'static str, least: u64, problems: &mut Problems) -> Option<Setting<u64>> {
    let value = fields.whole(key, least, problems);
    setting(value, key, fields)
}

/// Reads a number from 0 to `most` with its location.
fn fraction(fields: &mut Fields<'_>, key: &'static str, most: u32, problems: &mut Problems) -> Option<Setting<f64>> {
    let node = fields.get(key)?;
    match &node.kind {
        NodeKind::Number(number) if number.as_f64().is_some_and(|value| (0.0..=f64::from(most)).contains(&value)) => {
            Some(Setting { value: number.as_f64()?, source: node.excerpt() })
        }
        _ => {
            problems.push(node.error(format!("`{key}` must be a number from 0 to {most}")));
            None
        }
    }
}

#[cfg(test)]
mod tests;
