//! Description of a container in which a program runs.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// A container in which a program runs. The harness passes it as JSON in the supervisor's arguments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ContainerProcess {
    /// Program of the engine.
    pub(crate) engine: PathBuf,
    /// Environment of the engine. The program gets the supervisor's environment.
    pub(crate) env: BTreeMap<String, String>,
    /// Name of the container, which is unique.
    pub(crate) name: String,
    /// Options for the engine's `run` command.
    pub(crate) options: Vec<String>,
    /// Image.
    pub(crate) image: String,
}
