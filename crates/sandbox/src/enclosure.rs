//! Enclosures in which sandbox processes run: namespaces, containers or other machines.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt::Debug;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::process::Command;

use super::faults::SandboxFaults;
use super::{BoxFuture, SandboxError};
use crate::supervise::{Listeners, Network, ServedPorts, Supervisor};

/// Port of the proxy in the sandbox's network, unless the port is used for something else.
const PROXY_PORT: u16 = 3128;

/// Name of the file, beside the harness's socket, that makes programs send DNS lookups to the harness.
pub(super) const RESOLVER: &str = "resolv.conf";

/// Content of that file.
const RESOLVER_TEXT: &str = "nameserver 127.0.0.1\n";

/// Variables for the proxy.
const PROXIES: [&str; 6] = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"];

/// Variables for the hosts that are reached without the proxy.
const NO_PROXIES: [&str; 2] = ["NO_PROXY", "no_proxy"];

/// Hosts that are reached without the proxy: those in the sandbox's own network.
const OWN_HOSTS: &str = "localhost,.localhost,127.0.0.1,127.0.0.0/8,::1,[::1],0.0.0.0";

/// Variable that makes Node.js use the proxy.
const NODE_PROXY: &str = "NODE_USE_ENV_PROXY";

/// Confines the processes of all sandboxes in a run.
pub(super) trait Enclosure: Debug + Send + Sync {
    /// Returns the isolation of the run.
    fn isolation(&self) -> model::Isolation;

    /// Makes the directories in `base` available to later commands, if they run elsewhere. Only the first call counts.
    ///
    /// # Errors
    /// Returns an error if they cannot be moved there.
    fn prepare<'s>(&'s self, base: &'s Path) -> BoxFuture<'s, Result<(), SandboxError>> {
        let _ = base;
        Box::pin(std::future::ready(Ok(())))
    }

    /// Returns those of the files `paths` whose content differs from that in the working directory `work`, because commands
    /// changed them elsewhere.
    fn changed_elsewhere<'s>(&'s self, work: &'s Path, paths: Vec<String>) -> BoxFuture<'s, Vec<String>> {
        let _ = (work, paths);
        Box::pin(std::future::ready(Vec::new()))
    }

    /// Returns a command that runs inside the enclosure. `places` are the writable directories: their real paths, and
    /// the paths at which processes see them. The first one is for temporary files.
    fn command(
        &self,
        supervisor: &Supervisor,
        places: &[(PathBuf, PathBuf)],
        own: &Surroundings,
        env: &BTreeMap<String, String>,
        program: &OsStr,
        args: &[&OsStr],
    ) -> Command;

    /// Returns the system that processes see, if it is not the system of this machine. In that case, programs of this
    /// machine do not run inside, and variables that name them are not passed on.
    fn system(&self) -> Option<&OwnSystem> {
        None
    }

    /// Returns the reason why it cannot allow some hosts and block the others, if so.
    fn refuses_hosts(&self) -> Option<String> {
        None
    }

    /// Checks that processes can see a folder at `path`, which a case chooses.
    ///
    /// # Errors
    /// Returns an error if the path is used for something else.
    fn check_place(&self, path: &Path) -> Result<(), SandboxError> {
        let _ = path;
        Ok(())
    }

    /// Checks that it can still run processes. May take long.
    ///
    /// # Errors
    /// Returns an error if it cannot.
    fn check(&self) -> Result<(), SandboxError> {
        Ok(())
    }
}

/// A system that has its own programs.
#[derive(Debug, Clone)]
pub(super) struct OwnSystem {
    /// Its shell.
    pub(super) shell: PathBuf,
    /// Value of `PATH` for its programs, if known.
    pub(super) path: Option<String>,
}

/// Variables that contain paths on this machine.
const OF_MACHINE: [&str; 5] = ["PATH", "SHELL", "NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE", "SSL_CERT_DIR"];

impl OwnSystem {
    /// Replaces inherited variables that apply only to this machine.
    pub(super) fn apply(&self, env: &mut BTreeMap<String, String>) {
        without_machine(env);
        env.extend(self.path.iter().map(|path| ("PATH".to_owned(), path.clone())));
    }
}

/// Removes inherited variables that contain paths on this machine.
pub(super) fn without_machine(env: &mut BTreeMap<String, String>) {
    for name in OF_MACHINE {
        env.remove(name);
    }
}

/// Part of an enclosure that differs between sandboxes.
#[derive(Debug, Clone)]
pub(super) struct Surroundings {
    /// Paths that were made readable.
    pub(super) shown: Vec<PathBuf>,
    pub(super) network: Network,
    pub(super) served: Option<ServedPorts>,
    /// Folder with programs that fail on purpose, and the folder in which they count their runs.
    pub(super) fault_programs: Option<PathBuf>,
    pub(super) fault_runs: Option<PathBuf>,
    /// Files and folders that processes cannot change.
    pub(super) read_only: Vec<PathBuf>,
}

impl Surroundings {
    pub(super) fn new(network: Network) -> Self {
        Self { shown: Vec::new(), network, served: None, fault_programs: None, fault_runs: None, read_only: Vec::new() }
    }

    /// Returns these surroundings without faults, for commands that the agent does not run.
    pub(super) fn of_commands(mut self) -> Self {
        (self.fault_programs, self.fault_runs) = (None, None);
        self.read_only.clear();
        self.served.iter_mut().for_each(|served| served.is_of_command = true);
        self
    }
}

/// The enclosure of one sandbox.
#[derive(Debug)]
pub(super) struct Enclosed {
    pub(super) enclosure: Arc<dyn Enclosure>,
    own: Mutex<Surroundings>,
}

impl Enclosed {
    pub(super) fn new(enclosure: Arc<dyn Enclosure>, network: Network) -> Self {
        Self { enclosure, own: Mutex::new(Surroundings::new(network)) }
    }

    /// Adds the faults for processes that start from now on.
    pub(super) fn add_faults(&self, faults: &SandboxFaults) {
        let mut own = self.lock();
        own.fault_programs = faults.readable().map(Path::to_owned);
        own.fault_runs = faults.writable();
        own.read_only = faults.read_only().to_vec();
    }

    /// Makes a path readable for processes that start from now on.
    pub(super) fn show(&self, path: &Path) {
        self.lock().shown.push(path.to_owned());
    }

    /// Opens `ports` and a proxy on the loopback interface of processes that start from now on. Their sockets are
    /// passed to the returned listeners through a socket in `folder`, which must not exist yet. Returns `None` if the
    /// processes use the machine's network.
    pub(super) fn serve(&self, folder: &Path, ports: &[u16]) -> io::Result<Option<Listeners>> {
        let mut own = self.lock();
        if own.network == Network::Open {
            return Ok(None);
        }
        let proxy = (PROXY_PORT..).find(|port| !ports.contains(port)).unwrap_or(PROXY_PORT);
        std::fs::create_dir(folder)?;
        std::fs::write(folder.join(RESOLVER), RESOLVER_TEXT)?;
        let socket = folder.join("socket");
        let listeners = Listeners::bind(&socket, proxy)?;
        let ports = std::iter::once(proxy).chain(ports.iter().copied()).collect();
        own.served = Some(ServedPorts { socket, ports, is_of_command: false });
        Ok(Some(listeners))
    }

    /// Returns the current surroundings.
    pub(super) fn surroundings(&self) -> Surroundings {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Surroundings> {
        self.own.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sets the variables for the sandbox's proxy. The machine's proxy cannot be reached from the sandbox.
pub(super) fn set_proxy(command: &mut Command, served: Option<&ServedPorts>) {
    let proxy = served.and_then(|served| served.ports.first()).map(|port| format!("http://127.0.0.1:{port}"));
    for name in PROXIES {
        match &proxy {
            Some(proxy) => command.env(name, proxy),
            None => command.env_remove(name),
        };
    }
    if proxy.is_some() {
        command.envs(NO_PROXIES.map(|name| (name, OWN_HOSTS))).env(NODE_PROXY, "1");
    }
}
