//! Skills and fixtures shared by several files of one load. Each is read only once, however many threads request it.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use model::decode::Problems;
use model::{Diagnostic, Node, Skill, nearest};

use crate::coverage::Coverage;
use crate::fixture_settings::FixtureSettings;
use crate::path::{self, shown};
use crate::plugin;
use crate::project::ProjectAgent;
use crate::request::Request;
use crate::shared_fixtures::{self, SharedFixtures};
use crate::skill::{self, SKILL_FILE, SUB_AGENTS_FOLDER, TESTS_FOLDER};
use crate::skills;

/// Name of a skills folder next to a folder of suites.
const SKILLS_FOLDER: &str = "skills";

/// Number of parent folders in which the skills of a suite outside the project are searched.
const FOLDERS_ABOVE: usize = 4;

/// Folders of a load, and the skills and fixtures found in them.
pub struct Library {
    root: PathBuf,
    skills_dir: PathBuf,
    /// Directory to which paths in messages are relative.
    pub cwd: PathBuf,
    /// Directory of the skill that the user chose.
    pub chosen_skill: Option<PathBuf>,
    skills: Cache<Option<Arc<Skill>>>,
    fixtures: Cache<Arc<SharedFixtures>>,
    /// Fixtures settings from the project's configuration.
    pub fixture_settings: FixtureSettings,
    /// Modules that were read so far.
    pub modules: script::Library,
    /// Current time in milliseconds since 1970, if it is known.
    pub now_ms: Option<i64>,
    /// Environment variables; secrets have no value.
    pub environment: Vec<script::Variable>,
    /// True if the user chose the agents of the run.
    pub agent_is_chosen: bool,
    /// Agents that suites configure.
    agents: Mutex<Vec<ProjectAgent>>,
    /// Files that suites use as tables of rows.
    tables: Mutex<HashSet<PathBuf>>,
    /// Keys of the suites that other tools also read.
    coverage: Mutex<Vec<Coverage>>,
}

impl Library {
    /// Creates an empty library for the project in `request`; messages show paths relative to its working directory.
    pub fn new(request: &Request) -> Self {
        Self {
            root: request.root.clone(),
            skills_dir: request.skills_dir.clone(),
            cwd: request.cwd.clone(),
            chosen_skill: skills::chosen_skill(request),
            skills: Cache::default(),
            fixtures: Cache::default(),
            fixture_settings: request.fixtures.clone(),
            modules: script::Library::for_project(request.environment.clone(), request.runtime.clone()),
            now_ms: request.now_ms,
            environment: request.environment.clone(),
            agent_is_chosen: request.agent_is_chosen,
            agents: Mutex::default(),
            tables: Mutex::default(),
            coverage: Mutex::default(),
        }
    }

    /// Remembers that a suite uses the file at `path` as a table.
    pub fn use_table(&self, path: &Path) {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner).insert(path.to_owned());
    }

    /// Returns `true` if a suite that was read uses the file at `path` as a table.
    pub fn is_table(&self, path: &Path) -> bool {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner).contains(path)
    }

    /// Adds an agent that a suite configures. Returns its name, which differs from that of `agent` if another agent has
    /// that name already.
    pub fn add_agent(&self, mut agent: ProjectAgent) -> String {
        let mut agents = self.agents.lock().unwrap_or_else(PoisonError::into_inner);
        let name = agent.name.clone();
        for number in 2.. {
            match agents.iter().find(|other| other.name == agent.name) {
                None => break,
                Some(other) if other.is_same(&agent) => return agent.name,
                Some(_) => agent.name = format!("{name}-{number}"),
            }
        }
        agents.push(agent);
        agents.last().map(|agent| agent.name.clone()).unwrap_or(name)
    }

    /// Returns the agents that suites configure, sorted by name.
    pub fn take_agents(&self) -> Vec<ProjectAgent> {
        let mut agents = std::mem::take(&mut *self.agents.lock().unwrap_or_else(PoisonError::into_inner));
        agents.sort_by(|one, other| one.name.cmp(&other.name));
        agents
    }

    /// Remembers what happens to the keys of a suite that was written for another tool.
    pub fn cover(&self, coverage: Coverage) {
        // A file that cannot be parsed has no keys.
        if !coverage.keys.is_empty() {
            self.coverage.lock().unwrap_or_else(PoisonError::into_inner).push(coverage);
        }
    }

    /// Returns what was remembered, sorted by file.
    pub fn take_coverage(&self) -> Vec<Coverage> {
        let mut coverage = std::mem::take(&mut *self.coverage.lock().unwrap_or_else(PoisonError::into_inner));
        coverage.sort_by(|one, other| one.file.cmp(&other.file));
        coverage
    }

    /// Returns `path` as the user would write it.
    pub fn shown(&self, path: &Path) -> String {
        shown(path, &self.cwd)
    }

    /// Returns the skill called `name` to which a case in `file` refers. In order: the one that the user chose, if it
    /// has that name; the sibling of the skill whose tests include `file`; the one in a `skills` folder above `file`;
    /// the project's. Returns `None` if it is missing or broken, which is reported.
    pub fn skill(&self, name: &str, file: &Path, node: &Node, problems: &mut Problems) -> Option<Arc<Skill>> {
        if let Some(chosen) =
            self.chosen_skill.as_deref().filter(|chosen| chosen.file_name().is_some_and(|own| own == name))
        {
            return self.skill_at(chosen);
        }
        let home = home_of(file).and_then(Path::parent).map(Path::to_owned);
        let mut shelves = self.shelves(file);
        shelves.retain(|shelf| Some(shelf) != home.as_ref());
        let shelves: Vec<PathBuf> = home.into_iter().chain(shelves).collect();
        self.skill_on(name, &shelves, node, problems)
    }

    /// Returns the skills folders near the file at `path`, nearest first, followed by the project's.
    pub fn shelves(&self, path: &Path) -> Vec<PathBuf> {
        let mut shelves = self.folders_above(path, SKILLS_FOLDER);
        shelves.retain(|shelf| *shelf != self.skills_dir);
        shelves.push(self.skills_dir.clone());
        shelves
    }

    /// Returns the folders called `name` above the file at `path`, nearest first.
    fn folders_above(&self, path: &Path, name: &str) -> Vec<PathBuf> {
        let bound = [&self.cwd, &self.root].into_iter().find(|bound| path.starts_with(bound));
        let count = match bound {
            // Without a configuration, the root of a suite elsewhere is the folder in which it is.
            Some(bound) if *bound != self.cwd && path.parent() == Some(bound) => FOLDERS_ABOVE,
            Some(bound) => path.components().count() - bound.components().count(),
            None => FOLDERS_ABOVE,
        };
        let above = path.ancestors().skip(1).take(count);
        above.map(|folder| folder.join(name)).filter(|folder| folder.is_dir()).collect()
    }

    /// Returns the skill called `name` in the first of `shelves` that has it. Returns `None` if it is missing or
    /// broken, which is reported.
    pub fn skill_on(
        &self,
        name: &str,
        shelves: &[PathBuf],
        node: &Node,
        problems: &mut Problems,
    ) -> Option<Arc<Skill>> {
        check_name(name, "skill", shelves, node, problems)?;
        let directories = shelves.iter().map(|shelf| shelf.join(name));
        let Some(directory) = directories.clone().find(|directory| directory.join(SKILL_FILE).is_file()) else {
            problems.push(self.missing_skill(name, shelves, node));
            return None;
        };
        self.skill_at(&directory)
    }

    /// Returns the skill in the directory at `path`, or the sub-agent in the file there. Returns `None` if it is
    /// broken, which is reported.
    pub fn skill_at(&self, path: &Path) -> Option<Arc<Skill>> {
        let read = match path.is_file() {
            true if plugin::is_manifest(path) => plugin::read,
            true => skill::read_sub_agent,
            false => skill::read,
        };
        self.skills.get(path, |problems| read(path, &self.shown(path), problems).map(Arc::new))
    }

    /// Returns the sub-agent called `name` to which a suite in `file` refers: the one in an `agents` folder above
    /// `file`. Returns `None` if it is missing or broken, which is reported.
    pub fn sub_agent(&self, name: &str, file: &Path, node: &Node, problems: &mut Problems) -> Option<Arc<Skill>> {
        let shelves = self.folders_above(file, SUB_AGENTS_FOLDER);
        check_name(name, "sub-agent", &shelves, node, problems)?;
        let mut files = shelves.iter().map(|shelf| shelf.join(format!("{name}.md")));
        if let Some(found) = files.find(|file| file.is_file()) {
            return self.skill_at(&found);
        }
        let names: Vec<String> = shelves.iter().flat_map(|shelf| skills::names_in(shelf)).collect();
        let searched: Vec<String> = shelves.iter().map(|shelf| self.shown(shelf)).collect();
        let searched = if searched.is_empty() { SUB_AGENTS_FOLDER.to_owned() } else { searched.join(" and ") };
        let problem = node.error(format!("there is no sub-agent called `{name}`"));
        let problem = problem.suggest(nearest(name, names.iter().filter_map(|name| name.strip_suffix(".md"))));
        problems.push(problem.help(format!("looked in {searched}")).help("choose its file as the skill to test"));
        None
    }

    fn missing_skill(&self, name: &str, shelves: &[PathBuf], node: &Node) -> Diagnostic {
        if let Some(bare) = shelves.iter().map(|shelf| shelf.join(name)).find(|directory| directory.is_dir()) {
            let problem = node.error(format!("the `{name}` skill has no {SKILL_FILE}"));
            return match skills::misnamed(&bare) {
                Some(misnamed) => problem.help(format!("did you mean `{SKILL_FILE}` instead of `{misnamed}`?")),
                None => problem.help(format!("looked for {}", self.shown(&bare.join(SKILL_FILE)))),
            };
        }
        let known: Vec<String> = shelves.iter().flat_map(|shelf| skills::skill_names(shelf)).collect();
        let near = nearest(name, known.iter().map(String::as_str));
        let searched = shelves.iter().map(|shelf| self.shown(shelf)).collect::<Vec<_>>().join(" and ");
        node.error(format!("there is no skill called `{name}`")).suggest(near).help(format!("looked in {searched}"))
    }

    /// Returns the nearest `_fixtures.yaml` for `file`, searching upwards to the skills folder that contains it,
    /// otherwise to the project's root. For a file outside the project, only its own directory is searched.
    pub fn fixtures(&self, file: &Path) -> Option<Arc<SharedFixtures>> {
        let shared =
            self.fixture_folders(file).map(|folder| folder.join(shared_fixtures::FILE)).find(|path| path.is_file())?;
        Some(
            self.fixtures
                .get(&shared, |problems| Arc::new(SharedFixtures::read(&shared, &self.shown(&shared), problems))),
        )
    }

    /// Returns the directories that [`Library::fixtures`] searches, nearest first.
    pub fn fixture_folders<'f>(&self, file: &'f Path) -> impl Iterator<Item = &'f Path> {
        let own = file.parent().unwrap_or(Path::new("/"));
        let shelf = home_of(file).and_then(Path::parent);
        let last = [Some(self.skills_dir.as_path()), shelf, Some(&self.root)]
            .into_iter()
            .flatten()
            .find(|bound| own.starts_with(bound))
            .unwrap_or(own);
        let count = own.components().count() - last.components().count() + 1;
        own.ancestors().take(count)
    }

    /// Returns the problems with everything that was read, grouped by file.
    pub fn into_problems(self) -> Problems {
        let mut problems = self.skills.into_problems();
        problems.extend(self.fixtures.into_problems());
        problems
    }
}

/// Reports `name` if it cannot be the name of a folder. A part of it may be a skill on one of the `shelves`.
fn check_name(name: &str, kind: &str, shelves: &[PathBuf], node: &Node, problems: &mut Problems) -> Option<()> {
    let is_valid = path::inside_sandbox(name).as_deref() == Ok(name) && !name.contains('/') && name != ".";
    if !is_valid {
        let mut skills = shelves.iter().flat_map(|shelf| skills::skill_names(shelf));
        let meant = skills.find(|skill| name.split('/').any(|part| part == skill));
        problems.push(node.error(format!("`{name}` is not a valid name of a {kind}")).suggest(meant.as_deref()));
    }
    is_valid.then_some(())
}

/// Returns the directory of the skill whose tests include `file`.
pub fn home_of(file: &Path) -> Option<&Path> {
    let mut tests =
        file.ancestors().skip(1).filter(|folder| folder.file_name().is_some_and(|name| name == TESTS_FOLDER));
    tests.find_map(|tests| tests.parent().filter(|home| home.join(SKILL_FILE).is_file()))
}

/// Values read from files, each with the problems found while reading it.
struct Cache<T> {
    places: Mutex<BTreeMap<PathBuf, Arc<CacheSlot<T>>>>,
}

/// Empty until it has been read.
type CacheSlot<T> = OnceLock<(T, Problems)>;

impl<T> Default for Cache<T> {
    fn default() -> Self {
        Self { places: Mutex::default() }
    }
}

impl<T: Clone> Cache<T> {
    /// Returns the value at `path`. The first caller reads it, and the others wait.
    fn get(&self, path: &Path, read: impl FnOnce(&mut Problems) -> T) -> T {
        let place = {
            let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(places.entry(path.to_owned()).or_default())
        };
        let (value, _) = place.get_or_init(|| {
            let mut problems = Problems::new();
            let value = read(&mut problems);
            (value, problems)
        });
        value.clone()
    }

    fn into_problems(self) -> Problems {
        let places = self.places.into_inner().unwrap_or_else(PoisonError::into_inner);
        places.into_values().filter_map(|place| Some(place.get()?.1.clone())).flatten().collect()
    }
}
