//! Layers of settings.

use serde::{Deserialize, Serialize};

/// Source of a value, strongest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Layer {
    /// The command line.
    CommandLine,
    /// An environment variable, by name.
    Environment(String),
    /// The project's configuration, with file and line.
    Project(String),
    /// The built-in default.
    BuiltIn,
}

impl std::fmt::Display for Layer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::CommandLine => f.write_str("command line"),
            Self::Environment(variable) => f.write_str(variable),
            Self::Project(place) => f.write_str(place),
            Self::BuiltIn => f.write_str("built in"),
        }
    }
}
