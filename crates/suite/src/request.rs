//! Arguments of a load.

use std::path::PathBuf;

use crate::fixture_settings::FixtureSettings;

/// Arguments of a load.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// Root directory of the project, absolute.
    pub root: PathBuf,
    /// Skills folder of the project, absolute.
    pub skills_dir: PathBuf,
    /// Project folder with suites that do not belong to a skill, absolute, if there is one.
    pub tests: Option<PathBuf>,
    /// User's working directory, absolute: targets are relative to it, and so are paths in messages.
    pub cwd: PathBuf,
    /// Files, directories and names of skills. If empty: the tests of every skill in `skills_dir`, and the files in the
    /// `scenarios` folder of the root and in `tests`.
    pub targets: Vec<String>,
    /// Skill that tests are about, instead of any that is near them: a directory, or the name of a project skill.
    /// Suites of skills must be about it; other tests use it if they name a skill with its name. Without targets,
    /// only its own suite is read.
    pub skill: Option<String>,
    /// Fixtures settings from the project's configuration.
    pub fixtures: FixtureSettings,
    /// Environment variables that modules see in `process.env`.
    pub environment: Vec<script::Variable>,
    /// Current time for templates, in milliseconds since 1970; without it the time functions are not available.
    pub now_ms: Option<i64>,
}
