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
    /// Project folder for suites that do not belong to a skill, absolute, if there is one.
    pub tests: Option<PathBuf>,
    /// The user's working directory, absolute. Targets and paths in messages are relative to it.
    pub cwd: PathBuf,
    /// Files, directories and names of skills. If empty: the tests of all skills in `skills_dir`, and the files in
    /// `tests` and in the `scenarios` folder of the root.
    pub targets: Vec<String>,
    /// Skill under test, instead of any skill near the tests: a directory, or the name of a project skill. Suites of
    /// skills must be about it; other tests use it if they refer to a skill by its name. Without targets, only its own
    /// suite is read.
    pub skill: Option<String>,
    /// Fixtures settings from the project's configuration.
    pub fixtures: FixtureSettings,
    /// Environment variables that modules see in `process.env`.
    pub environment: Vec<script::Variable>,
    /// Where modules run; without it, in the embedded engine.
    pub runtime: Option<script::ProjectRuntime>,
    /// True if the user chose the agents of the run. Suites of other tools that name several then have each case once.
    pub agent_is_chosen: bool,
    /// Current time for templates, in milliseconds since 1970; if absent, the time functions are not available.
    pub now_ms: Option<i64>,
}
