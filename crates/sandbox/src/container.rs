//! Sandboxes whose processes run in Docker or Podman containers.
//!
//! The sandbox is a directory on this machine, created and inspected like a local one. Each command runs in its own
//! container, which sees a read-only image, and the sandbox's directories at their usual paths. Before a run, a probe
//! container shows which parts of the isolation the engine enforces.

mod engine;
mod network;
mod probe;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use model::{IsolationLayer, NetworkPolicy};
use tokio::process::Command;

use self::engine::Engine;
use self::network::Listener;
use super::enclosure::{Enclosure, OwnSystem, Surroundings, set_proxy};
use super::local::LocalBackend;
use super::registry::Registry;
use super::{EngineState, Leftover, SandboxBackend, SandboxError, SandboxKind, SandboxOptions, owner};
use crate::Host;
use crate::supervise::{ContainerProcess, Limits, Network, Supervisor};

/// The kind `docker`.
pub(super) static DOCKER: ContainerKind =
    ContainerKind { name: "docker", summary: "a local sandbox whose processes run in Docker containers of an image" };

/// The kind `podman`.
pub(super) static PODMAN: ContainerKind =
    ContainerKind { name: "podman", summary: "a local sandbox whose processes run in Podman containers of an image" };

/// Container label that contains the mark of the process that started the container.
const OWNER: &str = "trialrun.owner";

/// Options for the in-memory folders of a container, with their sizes.
const TMPFS: [&str; 3] = [
    "/tmp:rw,exec,nosuid,nodev,mode=1777,size=1g",
    "/var/tmp:rw,exec,nosuid,nodev,mode=1777,size=1g",
    "/run:rw,nosuid,nodev,mode=0755,size=64m",
];

/// Variables that Docker would otherwise set from the user's proxy configuration.
const PROXIES: [&str; 8] =
    ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy"];

/// A sandbox kind that runs processes in containers.
pub(super) struct ContainerKind {
    /// Name of the kind and of the engine's program.
    name: &'static str,
    summary: &'static str,
}

impl SandboxKind for ContainerKind {
    fn name(&self) -> &'static str {
        self.name
    }

    fn summary(&self) -> &'static str {
        self.summary
    }

    fn has_own_system(&self) -> bool {
        true
    }

    fn has_places(&self) -> bool {
        true
    }

    fn missing_image(&self, options: &SandboxOptions) -> Option<String> {
        options.image.is_none().then(|| no_image(self.name))
    }

    fn engine(&self, host: &Host, options: &SandboxOptions) -> Option<EngineState> {
        let missing = self.missing_image(options);
        Some(match Engine::find(self.name, host) {
            Ok(engine) => EngineState { found: Some(engine.describe()), problem: engine.is_rootless().err(), missing },
            Err(reason) => EngineState { found: None, problem: Some(reason), missing },
        })
    }

    fn open(
        &self,
        host: &Host,
        registry: &Arc<Registry>,
        options: &SandboxOptions,
    ) -> Result<Box<dyn SandboxBackend>, SandboxError> {
        let refused = |reason: String| SandboxError::Refused { kind: self.name, reason };
        let engine = Engine::find(self.name, host).map_err(refused)?;
        let containers = Containers::open(engine, host, registry, options).map_err(refused)?;
        Ok(Box::new(LocalBackend::open(host, registry, Some(Arc::new(containers)))?))
    }

    fn leftovers(&self, host: &Host, _: &SandboxOptions) -> Result<Vec<Leftover>, SandboxError> {
        // No containers exist without an engine.
        let Ok(engine) = Engine::find(self.name, host) else { return Ok(Vec::new()) };
        let labelled = engine.labelled(OWNER);
        let labelled = labelled.map_err(|reason| SandboxError::Service { kind: self.name, reason, is_final: false })?;
        let ended = labelled.into_iter().filter(|(_, owner)| owner::has_ended(owner));
        Ok(ended.map(|(name, owner)| Leftover { name, owner }).collect())
    }

    fn remove_leftover(&self, host: &Host, _: &SandboxOptions, leftover: &Leftover) -> Result<(), SandboxError> {
        let removed = Engine::find(self.name, host).and_then(|engine| engine.remove(&leftover.name));
        removed.map_err(|reason| SandboxError::Service { kind: self.name, reason, is_final: false })
    }
}

/// Enclosure of a run: its processes run in containers.
#[derive(Debug)]
struct Containers {
    engine: Engine,
    image: String,
    /// Options that all containers get.
    options: Vec<String>,
    /// Options for `visible`.
    visible_options: Vec<String>,
    visible: Vec<PathBuf>,
    system: OwnSystem,
    /// Opens the ports of networks without other hosts, or the reason why this does not work.
    listener: Result<Listener, String>,
    layers: Vec<IsolationLayer>,
    policy: NetworkPolicy,
}

impl Containers {
    /// Starts a probe container to find out which isolation the engine enforces.
    fn open(engine: Engine, host: &Host, registry: &Arc<Registry>, options: &SandboxOptions) -> Result<Self, String> {
        let Some(image) = options.image.clone() else {
            return Err(no_image(engine.name));
        };
        engine.check_image(&image)?;
        let mut common = common_options(&engine)?;
        let visible = options.visible.iter().filter(|path| path.exists());
        let visible_options: Vec<String> = visible.flat_map(|path| mount(path, path, true)).collect();
        let all = [common.as_slice(), &visible_options].concat();
        let mut found = probe::run(&engine, &image, &all, &options.limits, host, registry)?;
        common.append(&mut found.options);
        let listener = Listener::open(&engine, &image, &common, host, registry);
        found.layers.push(network_layer(&listener));
        Ok(Self {
            engine,
            image,
            options: common,
            visible_options,
            visible: options.visible.clone(),
            system: found.system,
            listener,
            layers: found.layers,
            policy: options.network.clone(),
        })
    }
}

impl Enclosure for Containers {
    fn isolation(&self) -> model::Isolation {
        let (sandbox, network) = (self.engine.name.to_owned(), self.policy.to_string());
        model::Isolation { sandbox, network, layers: self.layers.clone() }
    }

    fn command(
        &self,
        supervisor: &Supervisor,
        places: &[(PathBuf, PathBuf)],
        own: &Surroundings,
        env: &BTreeMap<String, String>,
        program: &OsStr,
        args: &[&OsStr],
    ) -> Command {
        let mut options = [self.options.as_slice(), &self.visible_options].concat();
        let served = own.served.as_ref().zip(self.listener.as_ref().ok());
        let network = served.map(|(ports, listener)| {
            options.extend(network::client_options(ports));
            listener.serve(&self.options, ports)
        });
        if network.is_none() {
            options.extend(["--network", network_of(own.network)].map(str::to_owned));
        }
        options.extend(places.iter().flat_map(|(from, to)| mount(from, to, false)));
        let shown = own.shown.iter().filter(|path| path.exists() && !self.visible.contains(path));
        let shown: BTreeSet<&PathBuf> = shown.collect();
        options.extend(shown.iter().flat_map(|path| mount(path, path, true)));
        options.extend(own.fault_programs.iter().chain(&own.read_only).flat_map(|path| mount(path, path, true)));
        options.extend(own.fault_runs.iter().flat_map(|path| mount(path, path, false)));
        let process = ContainerProcess {
            engine: self.engine.program.clone(),
            env: self.engine.env.clone(),
            name: next_name(),
            options,
            image: self.image.clone(),
            network,
        };
        let is_inside = |path: &Path| {
            let mut seen = places.iter().map(|(_, to)| to).chain(&self.visible).chain(shown.iter().copied());
            seen.any(|seen| path.starts_with(seen))
        };
        let mut command = supervisor.container_command(&process, program_inside(program, is_inside), args);
        if self.engine.name == DOCKER.name {
            command.envs(PROXIES.map(|name| (name, "")));
        }
        command.envs(env);
        if let Some((ports, _)) = served {
            set_proxy(&mut command, Some(ports));
        }
        command
    }

    fn system(&self) -> Option<&OwnSystem> {
        Some(&self.system)
    }

    fn check(&self) -> Result<(), SandboxError> {
        let failed = |reason| SandboxError::Service { kind: self.engine.name, reason, is_final: false };
        self.engine.check().map_err(failed)
    }

    fn refuses_hosts(&self) -> Option<String> {
        let reason = self.listener.as_ref().err()?;
        Some(format!(
            "`{}` sandboxes on this machine cannot allow only some hosts ({reason}): write `network: none` or `network: \
             open`, or use `isolated` sandboxes",
            self.engine.name
        ))
    }
}

/// Returns the layer that describes networks that are not open.
fn network_layer(listener: &Result<Listener, String>) -> IsolationLayer {
    let detail = match listener {
        Ok(_) => "a network namespace, for the policies `none`, `model-only` and `allow`".to_owned(),
        Err(reason) => format!("no network, for the policy `none`; `model-only` and `allow` do not work: {reason}"),
    };
    IsolationLayer { name: "network".to_owned(), holds: true, detail }
}

fn no_image(engine: &str) -> String {
    format!("no image is set: write `sandbox: {{provider: {engine}, image: IMAGE}}`")
}

/// Returns a unique name for a container.
fn next_name() -> String {
    // Several runs may share a process, so the counter is global.
    static STARTED: AtomicU64 = AtomicU64::new(0);
    let number = STARTED.fetch_add(1, Ordering::Relaxed);
    format!("trialrun-{}-{number}", owner::mark().replace(':', "-"))
}

/// Returns the name of the program inside the container. A program that is on this machine but not visible there is
/// called by its file name, because the image may have one of the same name.
fn program_inside(program: &OsStr, is_inside: impl Fn(&Path) -> bool) -> OsString {
    let path = Path::new(program);
    match path.file_name() {
        Some(name) if path.is_absolute() && !is_inside(path) => name.to_owned(),
        _ => program.to_owned(),
    }
}

/// Returns the engine's name for a network.
fn network_of(network: Network) -> &'static str {
    match network {
        Network::None => "none",
        Network::Open => "host",
    }
}

/// Returns the options that make a file or folder of this machine visible in a container.
fn mount(from: &Path, to: &Path, is_read_only: bool) -> [String; 2] {
    let field = |name: &str, path: &Path| {
        let text = format!("{name}={}", path.display());
        // The engine parses the fields as one line of CSV.
        if text.contains([',', '"']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
    };
    let mut text = format!("type=bind,{},{}", field("source", from), field("target", to));
    if is_read_only {
        text.push_str(",readonly");
    }
    ["--mount".to_owned(), text]
}

/// Returns the options that all containers get, except for limits.
fn common_options(engine: &Engine) -> Result<Vec<String>, String> {
    let mut options = vec!["--pull".to_owned(), "never".to_owned(), "--read-only".to_owned()];
    for (option, values) in [
        ("--cap-drop", &["ALL"][..]),
        ("--security-opt", &["no-new-privileges", "label=disable"]),
        ("--log-driver", &["none"]),
        ("--tmpfs", &TMPFS),
    ] {
        options.extend(values.iter().flat_map(|value| [option.to_owned(), (*value).to_owned()]));
    }
    options.extend(["--label".to_owned(), format!("{OWNER}={}", owner::mark())]);
    options.extend(engine.user_options()?);
    Ok(options)
}

/// Returns the limits that the kernel applies to each process.
fn process_limits(limits: &Limits) -> Vec<String> {
    use nix::sys::resource::{Resource, getrlimit};
    // A limit cannot be above that of the process that sets it. Engines without a daemon are started by this process.
    let at_most = |resource, wanted: u64| getrlimit(resource).map_or(wanted, |(_, hard)| hard.min(wanted));
    let each = [
        ("core", 0),
        ("cpu", at_most(Resource::RLIMIT_CPU, limits.cpu_seconds)),
        ("data", at_most(Resource::RLIMIT_DATA, limits.memory)),
        ("fsize", at_most(Resource::RLIMIT_FSIZE, limits.file_size)),
        ("nofile", at_most(Resource::RLIMIT_NOFILE, limits.open_files)),
    ];
    each.iter().flat_map(|(name, value)| ["--ulimit".to_owned(), format!("{name}={value}:{value}")]).collect()
}

/// Returns the limits that apply to all processes of a container together.
fn group_limits(limits: &Limits) -> Vec<String> {
    let (memory, processes) = (limits.memory.to_string(), limits.processes.to_string());
    let options = ["--memory", &memory, "--memory-swap", &memory, "--pids-limit", &processes];
    options.map(str::to_owned).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_of_this_machine_has_the_same_name_in_the_image() {
        let is_inside = |path: &Path| path.starts_with("/box");
        let inside = |program: &str| program_inside(program.as_ref(), is_inside).into_string().unwrap();
        assert_eq!(
            ["/usr/bin/agent", "agent", "./agent", "/box/agent"].map(inside),
            ["agent", "agent", "./agent", "/box/agent"]
        );
    }

    #[test]
    fn a_mount_quotes_paths_that_would_end_its_fields() {
        let [option, text] = mount(Path::new("/a,b"), Path::new("/c"), true);
        assert_eq!((&*option, &*text), ("--mount", r#"type=bind,"source=/a,b",target=/c,readonly"#));
    }
}
