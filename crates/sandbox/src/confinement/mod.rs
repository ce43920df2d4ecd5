//! What the processes of isolated sandboxes can see and use.

mod tools;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use model::IsolationLayer;
use tokio::process::Command;

use super::{SandboxError, SandboxOptions};
use crate::Host;
use crate::supervise::{Isolation, Network, Supervisor};

/// Folders of the system, which processes see read-only.
const SYSTEM: [&str; 13] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/etc",
    "/opt",
    "/nix/store",
    "/gnu/store",
    "/run/current-system",
    "/var/lib/ca-certificates",
];

/// Files of the system that are often links to places outside of [`SYSTEM`].
const LINKED: [&str; 3] = ["/etc/resolv.conf", "/etc/hosts", "/etc/localtime"];

/// Variables of the host that processes inherit and that name files.
const CERTIFICATES: [&str; 3] = ["NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE", "SSL_CERT_DIR"];

/// Folder whose private files are hidden. A run as user 0 could read them otherwise.
const SETTINGS: &str = "/etc";

/// Maximum number of private files that are looked for.
const MOST_PRIVATE: usize = 10_000;

/// What the sandboxes of a run have in common.
#[derive(Debug)]
pub(super) struct Confinement {
    common: Isolation,
    /// Folders that must not become visible because a program is in or below them.
    private: Vec<PathBuf>,
    layers: Vec<IsolationLayer>,
}

impl Confinement {
    /// Determines what is visible, and asks the machine whether it can isolate processes so.
    ///
    /// # Errors
    /// Returns an error if it cannot.
    pub(super) fn of(host: &Host, options: &SandboxOptions) -> Result<Self, SandboxError> {
        let refused = |reason: String| SandboxError::Refused { kind: "isolated", reason };
        let mut readable: Vec<PathBuf> = SYSTEM.iter().map(PathBuf::from).filter(|path| path.exists()).collect();
        for file in LINKED {
            let target = files::follow(Path::new(file)).path;
            if target.is_file() && !is_below(&readable, &target) {
                readable.push(target);
            }
        }
        let own = host.home.iter().chain([&host.temp]).chain(&options.private);
        let private: Vec<PathBuf> = own.map(|path| files::follow(path).path).collect();
        if let Some(path) = private.iter().find(|path| readable.contains(path)) {
            return Err(refused(format!("{} is a folder of the system, which every trial sees", path.display())));
        }
        let mut hidden: Vec<PathBuf> = private.iter().filter(|path| is_below(&readable, path)).cloned().collect();
        if nix::unistd::geteuid().is_root() {
            hidden.extend(private_settings());
        }
        let mut common = Isolation {
            readable,
            hidden,
            tools: Vec::new(),
            writable: Vec::new(),
            network: options.network,
            limits: options.limits.clone(),
        };
        let visible = options.visible.iter().map(PathBuf::as_path);
        let mut tools = tools::Tools::new(&common, &private);
        tools.add_folders(host.var("PATH").unwrap_or_default());
        for path in CERTIFICATES.iter().filter_map(|name| host.var(name)).map(Path::new).chain(visible) {
            tools.add(path);
        }
        common.tools = tools.into_paths();
        let layers = host.supervisor.layers(&common).map_err(refused)?;
        Ok(Self { common, private, layers })
    }

    /// Returns the isolation of the run.
    pub(super) fn isolation(&self) -> model::Isolation {
        let network = match self.common.network {
            Network::Open => "open",
            Network::None => "none",
        };
        let (sandbox, network) = ("isolated".to_owned(), network.to_owned());
        model::Isolation { sandbox, network, layers: self.layers.clone() }
    }

    /// Returns a command that runs isolated. `places` are the directories that it can write: their real paths, and the
    /// paths at which it sees them. The first one is also its `/tmp`. `shown` are further paths that it can read.
    pub(super) fn command(
        &self,
        supervisor: &Supervisor,
        places: &[(PathBuf, PathBuf)],
        shown: &[PathBuf],
        env: &BTreeMap<String, String>,
        program: &OsStr,
        args: &[&OsStr],
    ) -> Command {
        let mut isolation = self.common.clone();
        let mut tools = tools::Tools::new(&self.common, &self.private);
        tools.add_program(program, env.get("PATH").map_or("", String::as_str));
        shown.iter().for_each(|path| tools.add(path));
        isolation.tools.extend(tools.into_paths());
        isolation.writable.extend(places.first().map(|(tmp, _)| (tmp.clone(), PathBuf::from("/tmp"))));
        isolation.writable.extend(places.iter().cloned());
        let mut command = supervisor.isolated_command(&isolation, program, args);
        command.envs(env);
        command
    }
}

/// The confinement of one sandbox.
#[derive(Debug)]
pub(super) struct Confined {
    pub(super) confinement: Arc<Confinement>,
    shown: Mutex<Vec<PathBuf>>,
}

impl Confined {
    pub(super) fn new(confinement: Arc<Confinement>) -> Self {
        Self { confinement, shown: Mutex::default() }
    }

    /// Makes a path readable for later processes.
    pub(super) fn show(&self, path: &Path) {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner).push(path.to_owned());
    }

    /// Returns the paths that were made readable.
    pub(super) fn shown(&self) -> Vec<PathBuf> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Returns `true` if `path` is one of `folders` or below one.
fn is_below(folders: &[PathBuf], path: &Path) -> bool {
    folders.iter().any(|folder| path.starts_with(folder))
}

/// Returns the files and folders of the system's settings that not every user may read.
fn private_settings() -> Vec<PathBuf> {
    use std::os::unix::fs::PermissionsExt;
    let mut found = Vec::new();
    let mut entries = walkdir::WalkDir::new(SETTINGS).min_depth(1).into_iter();
    for _ in 0..MOST_PRIVATE {
        let Some(entry) = entries.next() else { break };
        let Ok(entry) = entry else { continue };
        let Ok(meta) = entry.metadata() else { continue };
        let needed = if meta.is_dir() { 0o005 } else { 0o004 };
        if meta.is_symlink() || meta.permissions().mode() & needed == needed {
            continue;
        }
        if meta.is_dir() {
            entries.skip_current_dir();
        }
        found.push(entry.into_path());
    }
    found
}
