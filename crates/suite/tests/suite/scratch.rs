//! A project in a temporary directory.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use model::{Case, Diagnostic};
use trialrun_suite::{FixtureSettings, Loaded, Request};

pub struct Scratch {
    directory: tempfile::TempDir,
}

impl Scratch {
    /// Creates a project with an empty skills folder.
    pub fn new() -> Self {
        let scratch = Self { directory: tempfile::tempdir().unwrap() };
        std::fs::create_dir(scratch.path("skills")).unwrap();
        scratch
    }

    pub fn root(&self) -> &Path {
        self.directory.path()
    }

    pub fn path(&self, relative: &str) -> PathBuf {
        self.root().join(relative)
    }

    /// Writes a file and its parent directories.
    pub fn write(&self, relative: &str, content: impl AsRef<[u8]>) -> &Self {
        let path = self.path(relative);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
        self
    }

    /// Creates a skill with only the required content.
    pub fn skill(&self, name: &str) -> &Self {
        self.write(&format!("skills/{name}/SKILL.md"), format!("---\nname: {name}\ndescription: d\n---\n# Body\n"))
    }

    pub fn load(&self, targets: &[&str]) -> Loaded {
        self.load_from(self.root(), targets)
    }

    pub fn load_from(&self, cwd: &Path, targets: &[&str]) -> Loaded {
        trialrun_suite::load(&self.request(cwd, targets))
    }

    /// Loads everything, including the project's folder `tests`.
    pub fn load_with_tests(&self) -> Loaded {
        trialrun_suite::load(&Request { tests: Some(self.path("tests")), ..self.request(self.root(), &[]) })
    }

    /// Loads with these fixtures settings from the project's configuration.
    pub fn load_with(&self, fixtures: FixtureSettings, targets: &[&str]) -> Loaded {
        trialrun_suite::load(&Request { fixtures, ..self.request(self.root(), targets) })
    }

    fn request(&self, cwd: &Path, targets: &[&str]) -> Request {
        Request {
            root: self.root().to_owned(),
            skills_dir: self.path("skills"),
            cwd: cwd.to_owned(),
            targets: targets.iter().map(|target| (*target).to_owned()).collect(),
            ..Request::default()
        }
    }

    /// Returns the problems with a scenario that has this text.
    pub fn problems(&self, text: &str) -> Vec<Diagnostic> {
        all_problems(&self.write("s.yaml", text).load(&["s.yaml"]))
    }

    /// Returns the case in a scenario without problems.
    pub fn case(&self, text: &str) -> Arc<Case> {
        let loaded = self.write("s.yaml", text).load(&["s.yaml"]);
        let problems = all_problems(&loaded);
        assert!(problems.is_empty(), "{problems:#?}");
        Arc::clone(&loaded.suites[0].cases[0])
    }
}

/// Returns the problems of the load, and those that break only single cases.
pub fn all_problems(loaded: &Loaded) -> Vec<Diagnostic> {
    let cases = loaded.suites.iter().flat_map(|suite| &suite.cases);
    loaded.diagnostics.iter().chain(cases.flat_map(|case| &case.broken)).cloned().collect()
}

/// Formats each diagnostic as `file:line:column: message`.
pub fn describe(diagnostics: &[Diagnostic]) -> Vec<String> {
    diagnostics.iter().map(ToString::to_string).collect()
}

/// Formats each suite as `suite: case, case`.
pub fn outline(loaded: &Loaded) -> Vec<String> {
    let cases = |suite: &model::Suite| suite.cases.iter().map(|case| case.id.clone()).collect::<Vec<_>>().join(", ");
    loaded.suites.iter().map(|suite| format!("{}: {}", suite.name, cases(suite))).collect()
}
