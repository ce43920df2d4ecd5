//! A project in a temporary directory.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use model::{Case, Diagnostic};
use trialrun_suite::{FixtureSettings, Loaded, Request};

pub struct Scratch {
    directory: tempfile::TempDir,
}

impl Scratch {
    /// A project with an empty skills folder.
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

    /// Writes a file and the directories above it.
    pub fn write(&self, relative: &str, content: impl AsRef<[u8]>) -> &Self {
        let path = self.path(relative);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
        self
    }

    /// A skill that has nothing but what it must have.
    pub fn skill(&self, name: &str) -> &Self {
        self.write(&format!("skills/{name}/SKILL.md"), format!("---\nname: {name}\ndescription: d\n---\n# Body\n"))
    }

    pub fn load(&self, targets: &[&str]) -> Loaded {
        self.load_from(self.root(), targets)
    }

    pub fn load_from(&self, cwd: &Path, targets: &[&str]) -> Loaded {
        trialrun_suite::load(&self.request(cwd, targets))
    }

    /// As a project whose configuration says this of fixtures files.
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

    /// What is said about one scenario with this text.
    pub fn problems(&self, text: &str) -> Vec<Diagnostic> {
        all_problems(&self.write("s.yaml", text).load(&["s.yaml"]))
    }

    /// The case of a scenario that nothing is wrong with.
    pub fn case(&self, text: &str) -> Arc<Case> {
        let loaded = self.write("s.yaml", text).load(&["s.yaml"]);
        let problems = all_problems(&loaded);
        assert!(problems.is_empty(), "{problems:#?}");
        Arc::clone(&loaded.suites[0].cases[0])
    }
}

/// The problems of the load, and those that break single cases.
pub fn all_problems(loaded: &Loaded) -> Vec<Diagnostic> {
    let cases = loaded.suites.iter().flat_map(|suite| &suite.cases);
    loaded.diagnostics.iter().chain(cases.flat_map(|case| &case.broken)).cloned().collect()
}

/// `file:line:column: message` of each.
pub fn told(diagnostics: &[Diagnostic]) -> Vec<String> {
    diagnostics.iter().map(ToString::to_string).collect()
}

/// `suite: case, case` of each suite.
pub fn outline(loaded: &Loaded) -> Vec<String> {
    let cases = |suite: &model::Suite| suite.cases.iter().map(|case| case.id.clone()).collect::<Vec<_>>().join(", ");
    loaded.suites.iter().map(|suite| format!("{}: {}", suite.name, cases(suite))).collect()
}
