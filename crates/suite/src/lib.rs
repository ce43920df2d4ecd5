//! LOAD: reads suites, skills and project configuration.
//!
//! [`load()`] turns what the user named into suites, and reports every problem of syntax and shape with its place. It
//! knows no agent, no sandbox and no type of assertion: an assertion is a name, arguments and a place. Reading is
//! strict: a key nobody knows, a section set to nothing, a file that is not there are errors, not silence.
//!
//! The library reads files and nothing else: it is told the directories and never asks the environment.

mod allowed_tools;
mod discover;
mod document;
mod fixtures;
mod format;
mod library;
mod load;
mod model_name;
mod module_tree;
mod parallel;
mod path;
mod project;
mod reference;
mod shared_fixtures;
mod skill;

pub use discover::{skill_names, skills};
pub use document::read_document;
pub use format::{FixtureSettings, WARN_TURNS, design_warnings};
pub use load::{Loaded, Request, load};
pub use project::{
    Defaults, Environment, Judge, Project, ProjectAgent, ProviderLimits, Reports, SandboxChoice, Setting, config_names,
};
pub use reference::{
    config_reference, config_schema, conversation_reference, conversation_schema, evals_reference, evals_schema,
    fixture_schema, fixtures_reference, fixtures_schema, reference, scenario_schema,
};
