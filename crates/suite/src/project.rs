//! The project's configuration: `trialrun.yaml`, `trialrun.config.json`, or the `.ai-tester.yaml` of a project that
//! comes from there.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use model::decode::{Fields, Problems};
use model::{Diagnostic, Excerpt, Node, NodeKind, PermissionMode};

use crate::document::{self, Language};
use crate::format::FixtureSettings;
use crate::model_name;
use crate::path::{self, shown};

/// Names of configuration files, the first found in a directory wins.
const FILES: [(&str, Dialect); 4] = [
    ("trialrun.yaml", Dialect::Own),
    ("trialrun.yml", Dialect::Own),
    ("trialrun.config.json", Dialect::Own),
    (".ai-tester.yaml", Dialect::AiTester),
];

/// Where skills are when nothing says otherwise.
const SKILLS_DIR: &str = "skills";

/// Where the state is when nothing says otherwise.
const STATE: &str = ".trialrun";

#[derive(Clone, Copy, PartialEq, Eq)]
enum Dialect {
    Own,
    /// Fewer keys, and the file may be empty.
    AiTester,
}

/// A project: its root, its folders and its defaults.
#[derive(Debug, Clone)]
pub struct Project {
    /// The directory of the configuration file; without one, where the search began.
    pub root: PathBuf,
    /// The configuration file, if there is one.
    pub file: Option<PathBuf>,
    /// The folder that holds the skills, absolute.
    pub skills_dir: PathBuf,
    /// The folder for recorded runs, absolute.
    pub state: PathBuf,
    /// What cases get that do not say it themselves.
    pub defaults: Defaults,
    /// What holds for all fixtures files.
    pub fixtures: FixtureSettings,
}

/// Settings for cases that do not have their own.
#[derive(Debug, Clone, Default)]
pub struct Defaults {
    /// Which agent; the original name `claude` is already `claude-code` here.
    pub agent: Option<Setting<String>>,
    /// Which model; a script's path is absolute.
    pub model: Option<Setting<String>>,
    /// How the agent treats permissions.
    pub permission_mode: Option<Setting<PermissionMode>>,
    /// Wall clock for one trial, in milliseconds.
    pub timeout_ms: Option<Setting<u64>>,
    /// The most model turns of a trial.
    pub max_turns: Option<Setting<u64>>,
    /// How often to repeat each case.
    pub trials: Option<Setting<u64>>,
    /// The most tokens of a trial.
    pub token_budget: Option<Setting<f64>>,
    /// How many trials run at a time.
    pub jobs: Option<Setting<u64>>,
}

/// A value of the configuration and where it is written.
#[derive(Debug, Clone, PartialEq)]
pub struct Setting<T> {
    /// The value.
    pub value: T,
    /// Its place.
    pub source: Excerpt,
}

impl Project {
    /// The project that `start` belongs to: that of the nearest directory upward with a configuration file, else
    /// `start` itself without any settings. Messages show paths as seen from `cwd`. A broken file gives its problems
    /// and what could be read of it.
    pub fn find(start: &Path, cwd: &Path) -> (Self, Vec<Diagnostic>) {
        let mut problems = Problems::new();
        for directory in start.ancestors() {
            let found: Vec<_> = FILES.iter().filter(|(name, _)| directory.join(name).is_file()).collect();
            let Some((name, dialect)) = found.first() else { continue };
            let file = directory.join(name);
            let own = found.iter().filter(|(_, dialect)| *dialect == Dialect::Own);
            if let Some((second, _)) = own.clone().nth(1) {
                problems.push(
                    Diagnostic::error(format!("two configurations in one directory: `{name}` and `{second}`"))
                        .at(Excerpt::of_file(shown(&directory.join(second), cwd))),
                );
            }
            let mut project = Self::bare(directory);
            project.read(&file, *dialect, cwd, &mut problems);
            project.file = Some(file);
            problems.sort_by_key(|problem| problem.source.as_ref().map(|place| (place.line, place.column)));
            return (project, problems);
        }
        (Self::bare(start), problems)
    }

    /// A project at `root` without a configuration file.
    pub fn bare(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
            file: None,
            skills_dir: root.join(SKILLS_DIR),
            state: root.join(STATE),
            defaults: Defaults::default(),
            fixtures: FixtureSettings::default(),
        }
    }

    fn read(&mut self, file: &Path, dialect: Dialect, cwd: &Path, problems: &mut Problems) {
        let source = match document::open(file, &shown(file, cwd)) {
            Ok(source) => source,
            Err(problem) => return problems.push(*problem),
        };
        let language = Language::of(file).unwrap_or(Language::Yaml);
        let Some(root) = document::read(&source, language, problems) else { return };
        if matches!(root.kind, NodeKind::Null) {
            // Nothing but comments: no settings.
            return;
        }
        let Some(mut fields) = Fields::of(&root, "the configuration", problems) else { return };
        if let Some(folder) = self.folder(&mut fields, "skills_dir", problems) {
            if let (false, Some(node)) = (folder.is_dir(), fields.get("skills_dir")) {
                problems.push(node.warning(format!("there is no directory `{}`", shown(&folder, cwd))));
            }
            self.skills_dir = folder;
        }
        if dialect == Dialect::Own
            && let Some(folder) = self.folder(&mut fields, "state", problems)
        {
            self.state = folder;
        }
        if let Some(node) = fields.get("defaults") {
            self.defaults = defaults(node, &self.root, dialect, problems);
        }
        if dialect == Dialect::Own
            && let Some(node) = fields.get("fixtures")
        {
            self.fixtures = FixtureSettings::read(node, &self.root, problems);
        }
        fields.finish(problems);
    }

    fn folder(&self, fields: &mut Fields<'_>, key: &'static str, problems: &mut Problems) -> Option<PathBuf> {
        Some(path::resolve(&self.root, fields.text(key, problems)?))
    }
}

fn defaults(node: &Node, root: &Path, dialect: Dialect, problems: &mut Problems) -> Defaults {
    let mut defaults = Defaults::default();
    let Some(mut fields) = Fields::of(node, "`defaults`", problems) else { return defaults };
    let model = fields.text("model", problems).zip(fields.get("model"));
    defaults.model = model.and_then(|(name, place)| {
        Some(Setting { value: model_name::model(&name, place, root, problems)?, source: place.excerpt() })
    });
    let mode = fields.choice("permission_mode", &PermissionMode::ALL, problems);
    defaults.permission_mode = setting(mode, "permission_mode", &mut fields);
    if dialect == Dialect::Own {
        let agent = fields.text("agent", problems).map(|name| model_name::agent(name, root));
        let runtime = fields.text("runtime", problems).map(|name| model_name::agent(name, root));
        if let (Some(_), Some(second)) = (fields.get("agent"), fields.key_span("runtime")) {
            let place = Node { kind: NodeKind::Null, span: second, tag: None, source: Arc::clone(&node.source) };
            problems.push(place.error("`agent` and `runtime` are the same; give one of them"));
        }
        defaults.agent = setting(agent, "agent", &mut fields).or(setting(runtime, "runtime", &mut fields));
        let timeout = fields.duration_ms("timeout", problems);
        defaults.timeout_ms = setting(timeout, "timeout", &mut fields);
        let max_turns = fields.whole("max_turns", 1, problems);
        defaults.max_turns = setting(max_turns, "max_turns", &mut fields);
        let trials = fields.whole("trials", 1, problems);
        defaults.trials = setting(trials, "trials", &mut fields);
        let token_budget = fields.positive("token_budget", problems);
        defaults.token_budget = setting(token_budget, "token_budget", &mut fields);
        let jobs = fields.whole("jobs", 1, problems);
        defaults.jobs = setting(jobs, "jobs", &mut fields);
    }
    fields.finish(problems);
    defaults
}

fn setting<T>(value: Option<T>, key: &'static str, fields: &mut Fields<'_>) -> Option<Setting<T>> {
    Some(Setting { value: value?, source: fields.get(key)?.excerpt() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(files: &[(&str, &str)], from: &str) -> (Project, Vec<String>, tempfile::TempDir) {
        let directory = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = directory.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let (project, problems) = Project::find(&directory.path().join(from), directory.path());
        (project, problems.iter().map(ToString::to_string).collect(), directory)
    }

    #[test]
    fn the_nearest_directory_upward_wins_and_folders_start_there() {
        let (project, problems, directory) = find(
            &[
                ("trialrun.yaml", "state: elsewhere\n"),
                ("a/.ai-tester.yaml", "skills_dir: ./my/skills\ndefaults: {model: m, permission_mode: plan}\n"),
                ("a/my/skills/x", ""),
                ("a/b/c/x", ""),
            ],
            "a/b/c",
        );
        assert!(problems.is_empty(), "{problems:?}");
        assert_eq!(project.root, directory.path().join("a"));
        assert_eq!(project.skills_dir, directory.path().join("a/my/skills"));
        assert_eq!(project.state, directory.path().join("a/.trialrun"));
        let model = project.defaults.model.unwrap();
        assert_eq!((model.value.as_str(), model.source.to_string().as_str()), ("m", "a/.ai-tester.yaml:2:19"));
        assert_eq!(project.defaults.permission_mode.unwrap().value, PermissionMode::Plan);
    }

    #[test]
    fn the_own_file_goes_before_that_of_ai_tester() {
        let text = "defaults:\n  runtime: claude\n  timeout: 5m\n  max_turns: 9\n  trials: 3\n  token_budget: 1.5\n  jobs: 2\n";
        let (project, problems, _directory) =
            find(&[("trialrun.yaml", text), (".ai-tester.yaml", "defaults: {model: m}")], ".");
        assert!(problems.is_empty(), "{problems:?}");
        let defaults = project.defaults;
        assert!(defaults.model.is_none());
        assert_eq!(defaults.agent.unwrap().value, "claude-code");
        assert_eq!(defaults.timeout_ms.unwrap().value, 300_000);
        assert_eq!((defaults.max_turns.unwrap().value, defaults.trials.unwrap().value), (9, 3));
        assert_eq!((defaults.token_budget.unwrap().value, defaults.jobs.unwrap().value), (1.5, 2));
    }

    #[test]
    fn without_a_file_the_start_is_the_root() {
        let (project, problems, directory) = find(&[("sub/x", "")], "sub");
        assert!(problems.is_empty());
        // A directory above the temporary one may have a configuration; then this says nothing.
        if project.file.is_none() {
            assert_eq!(project.root, directory.path().join("sub"));
            assert_eq!(project.skills_dir, directory.path().join("sub/skills"));
        }
    }

    #[test]
    fn an_empty_file_has_no_settings() {
        for name in [".ai-tester.yaml", "trialrun.yaml"] {
            let (project, problems, directory) = find(&[(name, "# nothing yet\n")], ".");
            assert!(problems.is_empty(), "{problems:?}");
            assert_eq!(project.file.unwrap(), directory.path().join(name));
        }
    }

    #[test]
    fn unknown_keys_are_errors_in_both_dialects() {
        let (_, problems, _directory) =
            find(&[("trialrun.yaml", "skill_dir: x\ndefaults: {modle: m, runtime: a, agent: b}\n")], ".");
        assert_eq!(
            problems,
            [
                "trialrun.yaml:1:1: unknown key `skill_dir` in the configuration",
                "trialrun.yaml:2:12: unknown key `modle` in `defaults`",
                "trialrun.yaml:2:22: `agent` and `runtime` are the same; give one of them",
            ]
        );
        let (_, problems, _directory) = find(&[(".ai-tester.yaml", "state: x\ndefaults: {trials: 3}\n")], ".");
        assert_eq!(problems.len(), 2, "{problems:?}");
    }

    #[test]
    fn two_own_files_in_one_directory_are_an_error() {
        let (_, problems, _directory) = find(&[("trialrun.yaml", ""), ("trialrun.config.json", "{}")], ".");
        assert_eq!(
            problems,
            [
                "trialrun.config.json:1:1: two configurations in one directory: `trialrun.yaml` and `trialrun.config.json`"
            ]
        );
    }

    #[test]
    fn json_configuration_is_strict_json() {
        let (project, problems, _directory) = find(&[("trialrun.config.json", "{\"defaults\": {\"trials\": 2}}")], ".");
        assert!(problems.is_empty(), "{problems:?}");
        assert_eq!(project.defaults.trials.unwrap().value, 2);
        let (_, problems, _directory) = find(&[("trialrun.config.json", "{\"defaults\": {},}")], ".");
        assert!(problems[0].contains("trailing comma"), "{problems:?}");
    }
}
