//! What the processes of isolated sandboxes can see and use.

mod tools;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use model::{IsolationLayer, NetworkPolicy};
use tokio::process::Command;

use super::enclosure::{Enclosure, Surroundings, set_proxy};
use super::{SandboxError, SandboxOptions};
use crate::Host;
use crate::supervise::{Isolation, Network, Supervisor};

/// System folders, which processes see read-only.
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

/// File that lists the DNS servers. Without it, programs ask this machine.
const RESOLVER: &str = "/etc/resolv.conf";

/// Folders that every process has for itself, so that sandboxes cannot be in them.
const OWN: [&str; 2] = ["/dev", "/proc"];

/// Folders for temporary files.
const TEMPORARY: [&str; 2] = ["/tmp", "/var"];

/// System files that are often links to locations outside [`SYSTEM`].
const LINKED: [&str; 3] = [RESOLVER, "/etc/hosts", "/etc/localtime"];

/// Variables inherited from the host that contain paths of files.
const CERTIFICATES: [&str; 3] = ["NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE", "SSL_CERT_DIR"];

/// Folder whose private files are hidden. A run as user 0 could read them otherwise.
const SETTINGS: &str = "/etc";

/// Maximum number of private files that are searched for.
const MOST_PRIVATE: usize = 10_000;

/// What the sandboxes of a run have in common.
#[derive(Debug)]
pub(super) struct Confinement {
    common: Isolation,
    /// Folders that must not become visible because a program is in or below them.
    private: Vec<PathBuf>,
    layers: Vec<IsolationLayer>,
    policy: NetworkPolicy,
    /// File that lists the machine's DNS servers.
    resolver: Option<PathBuf>,
}

impl Confinement {
    /// Determines what is visible, and checks whether the machine can isolate processes accordingly.
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
            return Err(refused(format!("{} is a system folder, which every trial sees", path.display())));
        }
        let temp = files::follow(&host.temp).path;
        if let Some(folder) = OWN.into_iter().find(|folder| temp.starts_with(folder)) {
            let reason = format!("each trial has its own `{folder}`, which does not contain {}", temp.display());
            return Err(refused(format!("{reason}; set `TMPDIR` to another folder")));
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
            read_only: Vec::new(),
            network: Network::None,
            served: None,
            limits: options.limits.clone(),
        };
        let visible = options.visible.iter().map(PathBuf::as_path);
        let mut tools = tools::Tools::new(&common, &private);
        tools.add_folders(host.var("PATH").unwrap_or_default());
        for path in CERTIFICATES.iter().filter_map(|name| host.var(name)).map(Path::new).chain(visible) {
            tools.add(path);
        }
        common.tools = tools.into_paths();
        let layers = match host.supervisor.layers(&common) {
            // Trials that use the machine's network can still run.
            Err(reason) if options.network.is_open() => {
                common.network = Network::Open;
                let mut layers = host.supervisor.layers(&common).map_err(refused)?;
                layers.push(IsolationLayer { name: "network".into(), holds: false, detail: reason });
                layers
            }
            found => found.map_err(refused)?,
        };
        let resolver = Some(files::follow(Path::new(RESOLVER)).path).filter(|file| file.is_file());
        Ok(Self { common, private, layers, policy: options.network.clone(), resolver })
    }
}

impl Enclosure for Confinement {
    fn isolation(&self) -> model::Isolation {
        let (sandbox, network) = ("isolated".to_owned(), self.policy.to_string());
        model::Isolation { sandbox, network, layers: self.layers.clone() }
    }

    fn check_place(&self, path: &Path) -> Result<(), SandboxError> {
        let Isolation { readable, tools, .. } = &self.common;
        let taken = OWN.iter().chain(&TEMPORARY).map(Path::new);
        let taken = readable.iter().chain(tools).map(PathBuf::as_path).chain(taken);
        let clash = taken.into_iter().find(|taken| taken.starts_with(path) || path.starts_with(taken));
        let Some(clash) = clash else { return Ok(()) };
        let (path, clash) = (path.display(), clash.display());
        let reason = format!("the case needs a folder at `{path}`, and `{clash}` of this machine is there");
        Err(SandboxError::Refused { kind: "isolated", reason: format!("{reason}; use `docker` or `podman` sandboxes") })
    }

    /// The first directory in `places` is also mounted at `/tmp`.
    fn command(
        &self,
        supervisor: &Supervisor,
        places: &[(PathBuf, PathBuf)],
        own: &Surroundings,
        env: &BTreeMap<String, String>,
        program: &OsStr,
        args: &[&OsStr],
    ) -> Command {
        let mut isolation = self.common.clone();
        let mut tools = tools::Tools::new(&self.common, &self.private);
        tools.add_program(program, env.get("PATH").map_or("", String::as_str));
        own.shown.iter().for_each(|path| tools.add(path));
        isolation.tools.extend(tools.into_paths());
        isolation.writable.extend(places.first().map(|(tmp, _)| (tmp.clone(), PathBuf::from("/tmp"))));
        isolation.writable.extend(places.iter().cloned());
        isolation.tools.extend(own.fault_programs.clone());
        isolation.writable.extend(own.fault_runs.iter().map(|path| (path.clone(), path.clone())));
        isolation.read_only.clone_from(&own.read_only);
        if own.network == Network::None {
            isolation.hidden.extend(self.resolver.clone());
        }
        (isolation.network, isolation.served) = (own.network, own.served.clone());
        let mut command = supervisor.isolated_command(&isolation, program, args);
        command.envs(env);
        if own.network == Network::None {
            set_proxy(&mut command, own.served.as_ref());
        }
        command
    }
}

/// Returns `true` if `path` is one of `folders` or below one.
fn is_below(folders: &[PathBuf], path: &Path) -> bool {
    folders.iter().any(|folder| path.starts_with(folder))
}

/// Returns the files and folders among the system's settings that not every user may read.
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
