//! Loads suites, skills and project configuration.
//!
//! [`load()`] turns the user's targets into suites, and reports every syntax and type error with its location. It does
//! not know agents, sandboxes or assertion types: an assertion is a name, arguments and a location. Reading is strict:
//! an unknown key, a section set to null, or a missing file is an error and is never ignored.
//!
//! The library only reads files: the caller passes the directories, and the environment is never read.
//!
//! ```
//! use trialrun_suite::{Request, load};
//!
//! let project = tempfile::tempdir()?;
//! let root = project.path().to_owned();
//! std::fs::create_dir(root.join("scenarios"))?;
//! let scenario = "scenario: greets\nsystem_prompt: Greet the user.\nuser_prompt: Hi!\n";
//! std::fs::write(root.join("scenarios/greets.yaml"), scenario)?;
//! let skills_dir = root.join("skills");
//! let loaded = load(&Request { cwd: root.clone(), root, skills_dir, ..Request::default() });
//! assert!(!loaded.has_errors());
//! assert_eq!(loaded.suites[0].cases[0].id, "greets");
//! # Ok::<(), std::io::Error>(())
//! ```

mod ai_tester;
mod allowed_tools;
mod canaries;
mod coverage;
mod discover;
mod document;
mod faults;
mod fixture_settings;
mod fixtures;
mod format;
mod graded;
mod guarantees;
mod library;
mod load;
mod misplaced;
mod mocks;
mod model_name;
mod module_tree;
mod path;
mod plugin;
mod project;
mod reference;
mod request;
mod shared_fixtures;
mod shell;
mod skill;
mod skills;
mod table;
mod trials;
mod unrecognised;
mod writer;

pub use coverage::{Coverage, CoveredKey, Treatment};
pub use document::read_document;
pub use fixture_settings::FixtureSettings;
pub use format::{WARN_TURNS, design_warnings, is_skipped_by_only, read_table};
pub use load::{Loaded, load};
pub use project::{
    Defaults, Environment, IsolationChoice, Judge, Project, ProjectAgent, ProviderLimits, Reports, SandboxChoice,
    Setting, Workers, config_names,
};
pub use reference::{
    config_schema, conversation_schema, evals_schema, fixture_schema, mcp_schema, reference, scenario_schema,
};
pub use request::Request;
pub use skill::{files_of as skill_files, read as read_skill};
pub use skills::{skill_names, skills};
pub use writer::{Written, WrittenFile, WrittenFormat, write};
