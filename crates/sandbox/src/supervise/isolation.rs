//! What an isolated program can see and use.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Description of an isolated program's surroundings. The program sees nothing on the machine except the paths listed
/// here, a `/dev` without the machine's devices, and a `/proc` with its own processes.
///
/// The harness writes it as JSON into the arguments of the hidden roles.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Isolation {
    /// Files and folders that can be read, at their own paths. Links among them are created as links.
    pub(crate) readable: Vec<PathBuf>,
    /// Files and folders below `readable` that appear empty.
    pub(crate) hidden: Vec<PathBuf>,
    /// Files and folders that can be read, even below `hidden`.
    pub(crate) tools: Vec<PathBuf>,
    /// Folders that can be written: the real path, and the path at which the program sees it.
    pub(crate) writable: Vec<(PathBuf, PathBuf)>,
    /// Files and folders below `writable` that cannot be changed.
    #[serde(default)]
    pub(crate) read_only: Vec<PathBuf>,
    /// Access to the network.
    pub(crate) network: Network,
    /// Ports of its own loopback interface that the harness serves.
    #[serde(default)]
    pub(crate) served: Option<ServedPorts>,
    /// Limits on resources.
    pub(crate) limits: Limits,
}

impl Isolation {
    /// Returns the argument that passes it to a role.
    pub(super) fn to_argument(&self) -> Result<String, String> {
        serde_json::to_string(self).map_err(|error| format!("a path is not valid text: {error}"))
    }
}

/// Ports on an isolated program's loopback interface that the harness serves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ServedPorts {
    /// The harness's socket, which takes over the listening sockets.
    pub(crate) socket: PathBuf,
    /// Ports, with the proxy's port first.
    pub(crate) ports: Vec<u16>,
    /// True for commands that are not the agent's.
    pub(crate) is_of_command: bool,
}

/// Access to the network.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Network {
    /// The machine's network.
    #[default]
    Open,
    /// Its own loopback interface, and nothing else.
    None,
}

/// Limits on the resources of one command's processes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Maximum amount of data in one process, in bytes.
    pub memory: u64,
    /// Maximum number of processes and threads.
    pub processes: u64,
    /// Maximum size of one file, in bytes.
    pub file_size: u64,
    /// Maximum number of files that one process can have open.
    pub open_files: u64,
    /// Maximum CPU time for one process, in seconds.
    pub cpu_seconds: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { memory: 8 << 30, processes: 2048, file_size: 4 << 30, open_files: 65_536, cpu_seconds: 3600 }
    }
}
