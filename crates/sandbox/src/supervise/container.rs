//! Description of a container in which a program runs.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::isolation::ServedPorts;

/// Role that opens the ports of a [`ServedNetwork`].
pub(super) const LISTEN: &str = "__supervise-listen";

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
    /// Network whose ports the harness serves, if any. Otherwise, `options` select the network.
    #[serde(default)]
    pub(crate) network: Option<ServedNetwork>,
}

/// A network with nothing but a loopback interface, on which the harness serves ports.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ServedNetwork {
    /// Options of the container that creates the network.
    pub(crate) options: Vec<String>,
    /// Command that starts this binary there.
    pub(crate) program: Vec<String>,
    /// Ports, and the harness's socket at its path in that container.
    pub(crate) served: ServedPorts,
}

impl ServedNetwork {
    /// Returns the arguments that follow `run` in the command that creates the network in a container of `image`.
    ///
    /// # Errors
    /// Returns an error if there is no program, or a path is not valid text.
    pub(crate) fn arguments(&self, image: &str) -> Result<Vec<String>, String> {
        let served =
            serde_json::to_string(&self.served).map_err(|error| format!("a path is not valid text: {error}"))?;
        let (program, more) = self.program.split_first().ok_or("no program to run")?;
        let mut arguments = self.options.clone();
        arguments.extend(["--entrypoint", program, image].map(str::to_owned));
        arguments.extend(more.iter().cloned());
        arguments.extend([LISTEN, "--served", &served].map(str::to_owned));
        Ok(arguments)
    }
}
