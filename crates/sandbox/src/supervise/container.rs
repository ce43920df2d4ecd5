//! Description of a program in a container.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// A container in which a program runs. The harness writes it as JSON into the arguments of the supervisor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ContainerProcess {
    /// Program of the engine.
    pub(crate) engine: PathBuf,
    /// Environment of the engine. The program's environment is that of the supervisor.
    pub(crate) env: BTreeMap<String, String>,
    /// Name of the container, which no other one has.
    pub(crate) name: String,
    /// Options of the engine's command `run`.
    pub(crate) options: Vec<String>,
    /// Image.
    pub(crate) image: String,
}
