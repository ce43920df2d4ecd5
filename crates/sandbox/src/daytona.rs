//! Sandboxes on Daytona machines.
//!
//! A sandbox has a directory on this machine, which is created and inspected like a local one. Its files are copied to
//! a remote sandbox before the agent acts, to the same paths, and copied back before they are inspected. Assertions run
//! their commands in a second remote sandbox, with a copy of the files that the agent left behind.

mod files;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use model::{Collected, IsolationLayer, NetworkPolicy};
use serde_json::json;
use tokio::process::Command;
use tokio::sync::OnceCell;

use super::copy::SandboxCopy;
use super::enclosure::{Enclosure, OwnSystem, Surroundings, without_machine};
use super::local::{LocalBackend, LocalSandbox};
use super::registry::Registry;
use super::service::{Access, Service, ServiceError};
use super::{
    BoxFuture, Leftover, Request, Sandbox, SandboxBackend, SandboxError, SandboxKind, SandboxOptions, digest, owner,
};
use crate::Host;
use crate::supervise::{Listeners, Network, RemoteProcess, Supervisor};

/// Default address of the service.
const API: &str = "https://app.daytona.io/api";

/// Label that contains the mark of the process that created the sandbox.
const OWNER: &str = "trialrun.owner";
/// Label that contains the name of the sandbox.
const NAME: &str = "trialrun.name";

/// Number of minutes without requests after which the service stops a sandbox, in case nobody removes it.
const IDLE_MINUTES: u32 = 60;

/// Shell of remote sandboxes.
const SHELL: &str = "/bin/sh";

/// Settings of remote sandboxes.
#[derive(Debug, Clone, Default)]
pub struct DaytonaOptions {
    /// API key. If it is not set, the variable `DAYTONA_API_KEY` or `DAYTONA_JWT_TOKEN` is used.
    pub api_key: Option<String>,
    /// Address of the API.
    pub api_url: Option<String>,
    /// Region.
    pub target: Option<String>,
    /// Snapshot from which sandboxes are created.
    pub snapshot: Option<String>,
    /// Variables of all processes.
    pub env: BTreeMap<String, String>,
}

/// The kind `daytona`.
pub(super) struct Daytona;

impl SandboxKind for Daytona {
    fn name(&self) -> &'static str {
        "daytona"
    }

    fn summary(&self) -> &'static str {
        "a sandbox on a machine of the Daytona service, for your own programs"
    }

    fn has_own_system(&self) -> bool {
        true
    }

    fn is_remote(&self) -> bool {
        true
    }

    fn missing(&self, host: &Host, options: &SandboxOptions) -> Option<String> {
        access(host, &options.daytona).err()
    }

    fn open(
        &self,
        host: &Host,
        registry: &Arc<Registry>,
        options: &SandboxOptions,
    ) -> Result<Box<dyn SandboxBackend>, SandboxError> {
        let service = match access(host, &options.daytona) {
            Ok(access) => Ok((Service::new(access.clone()).map_err(|error| failed("the service", &error))?, access)),
            // The error is kept for later: agents that need no sandbox also work without the service.
            Err(reason) => Err(reason),
        };
        Ok(Box::new(DaytonaBackend {
            local: LocalBackend::open(host, registry, None)?,
            service,
            supervisor: host.supervisor.clone(),
            registry: Arc::clone(registry),
            options: options.daytona.clone(),
            policy: options.network.clone(),
            run: uuid::Uuid::new_v4(),
        }))
    }

    fn leftovers(&self, host: &Host, options: &SandboxOptions) -> Result<Vec<Leftover>, SandboxError> {
        let Ok(access) = access(host, &options.daytona) else { return Ok(Vec::new()) };
        block_on(async move {
            let service = Service::new(access)?;
            let mut ended = Vec::new();
            for sandbox in service.all().await? {
                let owner = sandbox.labels.get(OWNER).filter(|owner| owner::has_ended(owner));
                ended.extend(owner.map(|owner| Leftover { name: sandbox.name.clone(), owner: owner.clone() }));
            }
            Ok(ended)
        })
        .map_err(|error| SandboxError::Service {
            kind: "daytona",
            reason: error.to_string(),
            is_final: false,
        })
    }

    fn remove_leftover(&self, host: &Host, options: &SandboxOptions, leftover: &Leftover) -> Result<(), SandboxError> {
        let failed = |reason: String| SandboxError::Service { kind: "daytona", reason, is_final: false };
        let (access, name) = (access(host, &options.daytona).map_err(failed)?, leftover.name.clone());
        let removed = block_on(async move { Service::new(access)?.delete(&name).await });
        removed.map_err(|error| failed(error.to_string()))
    }
}

/// Returns the address and the credentials.
///
/// # Errors
/// Returns the reason if there are none.
fn access(host: &Host, options: &DaytonaOptions) -> Result<Access, String> {
    let set = |option: &Option<String>, name: &str| option.clone().or_else(|| host.var(name).map(str::to_owned));
    let url = set(&options.api_url, "DAYTONA_API_URL").unwrap_or_else(|| API.to_owned());
    let url = url.trim_end_matches('/').to_owned();
    let proxies = ["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"];
    let proxy = proxies.iter().find_map(|name| host.var(name)).map(str::to_owned);
    if let Some(token) = set(&options.api_key, "DAYTONA_API_KEY") {
        return Ok(Access { url, token, organization: None, proxy });
    }
    match (host.var("DAYTONA_JWT_TOKEN"), host.var("DAYTONA_ORGANIZATION_ID")) {
        (Some(token), Some(organization)) => {
            Ok(Access { url, token: token.to_owned(), organization: Some(organization.to_owned()), proxy })
        }
        (Some(_), None) => Err("`DAYTONA_JWT_TOKEN` needs `DAYTONA_ORGANIZATION_ID`, which is not set".to_owned()),
        (None, _) => Err("`DAYTONA_API_KEY` is not set".to_owned()),
    }
}

/// Runs requests on a separate runtime, because the caller may already be inside one.
fn block_on<T: Send + 'static>(
    work: impl Future<Output = Result<T, ServiceError>> + Send + 'static,
) -> Result<T, ServiceError> {
    let run = move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let failed = |error: std::io::Error| ServiceError::Unclear(format!("cannot wait for the service: {error}"));
        runtime.map_err(failed)?.block_on(work)
    };
    let ended = std::thread::spawn(run).join();
    ended.unwrap_or_else(|_| Err(ServiceError::Unclear("the request did not finish".to_owned())))
}

fn failed(what: &str, error: &ServiceError) -> SandboxError {
    let (reason, is_final) = (format!("{what}: {error}"), error.is_final());
    SandboxError::Service { kind: "daytona", reason, is_final }
}

struct DaytonaBackend {
    /// Creates the directories on this machine.
    local: LocalBackend,
    service: Result<(Service, Access), String>,
    supervisor: Supervisor,
    registry: Arc<Registry>,
    options: DaytonaOptions,
    policy: NetworkPolicy,
    /// Random id of the run. Trials of several runs may have the same names, so names of sandboxes depend on it.
    run: uuid::Uuid,
}

impl SandboxBackend for DaytonaBackend {
    fn make(&self, request: Request) -> BoxFuture<'_, Result<Arc<dyn Sandbox>, SandboxError>> {
        Box::pin(async move {
            let refused = |reason: &String| SandboxError::Refused { kind: "daytona", reason: reason.clone() };
            let (service, access) = self.service.as_ref().map_err(refused)?;
            let own_variables = request.fixtures.env.iter().map(|(name, _)| name.clone()).collect();
            let (name, network, limit) = (self.name_of(&request), request.network, request.setup_timeout);
            let only_graded = request.only_graded;
            let inner = self.local.make_local(request).await?;
            let maker = Maker {
                service: service.clone(),
                access: access.clone(),
                supervisor: self.supervisor.clone(),
                registry: Arc::clone(&self.registry),
                options: self.options.clone(),
                own_variables,
                network,
                limit,
            };
            let base = inner.work().parent().unwrap_or(inner.work()).to_owned();
            let remote = match only_graded {
                true => None,
                false => Some(maker.make(&name, &base, &base).await?),
            };
            let (copies, shown) = (AtomicU64::new(0), Mutex::default());
            Ok(Arc::new(DaytonaSandbox { inner, maker, remote, name, copies, shown }) as Arc<dyn Sandbox>)
        })
    }

    fn isolation(&self) -> model::Isolation {
        let layer = |name: &str, detail: &str| IsolationLayer {
            name: name.to_owned(),
            holds: self.service.is_ok(),
            detail: self.service.as_ref().err().cloned().unwrap_or_else(|| detail.to_owned()),
        };
        let layers = vec![
            layer("filesystem", "a machine of the service"),
            layer("processes", "a machine of the service"),
            layer("limits", "the resources of the snapshot"),
            layer("network", "the service blocks it, unless the policy is `open`"),
        ];
        // A trial whose model would need a host is broken, so all others have no network.
        let network = match &self.policy {
            NetworkPolicy::ModelOnly => &NetworkPolicy::None,
            policy => policy,
        };
        model::Isolation { sandbox: "daytona".to_owned(), network: network.to_string(), layers }
    }
}

impl DaytonaBackend {
    /// Returns the name of a trial's remote sandbox. It is the same for every attempt to create the sandbox, and does
    /// not reveal anything about the test.
    fn name_of(&self, request: &Request) -> String {
        let text = format!("{}/{}", self.run, request.name);
        format!("trialrun-{}", digest::short(text.as_bytes()))
    }
}

/// Creates remote sandboxes for one trial.
#[derive(Debug, Clone)]
struct Maker {
    service: Service,
    access: Access,
    supervisor: Supervisor,
    registry: Arc<Registry>,
    options: DaytonaOptions,
    /// Names of the variables that the fixture sets.
    own_variables: Vec<String>,
    network: Network,
    /// Time limit for starting the sandbox, and for copying the files.
    limit: Duration,
}

impl Maker {
    /// Creates a remote sandbox with the directories in `from`, which appear below `base`.
    async fn make(&self, name: &str, from: &Path, base: &Path) -> Result<Remote, SandboxError> {
        let labels = BTreeMap::from([(OWNER.to_owned(), owner::mark()), (NAME.to_owned(), name.to_owned())]);
        let mut specification = json!({
            "name": name,
            "labels": labels,
            "env": self.options.env,
            "networkBlockAll": self.network == Network::None,
            "autoStopInterval": IDLE_MINUTES,
            "autoDeleteInterval": 0,
        });
        for (key, value) in [("snapshot", &self.options.snapshot), ("target", &self.options.target)] {
            if let Some(value) = value {
                specification[key] = json!(value);
            }
        }
        // Even a request that fails may create the sandbox, so it must be removed in any case.
        let doomed = Doomed { service: self.service.clone(), name: Mutex::new(Some(name.to_owned())) };
        let cannot = |error: ServiceError| failed("the remote sandbox cannot be made", &error);
        let made = self.service.create(name, &specification, &labels).await.map_err(cannot)?;
        let started = self.service.started(made, self.limit).await.map_err(cannot)?;
        let remote = Remote { toolbox: started.toolbox().map_err(cannot)?, doomed, commands: AtomicU64::new(0) };
        files::upload(self, &remote.toolbox, from, base).await?;
        Ok(remote)
    }

    /// Returns a command that runs in the remote sandbox. It fails if there is none.
    fn command(
        &self,
        remote: Option<&Remote>,
        name: &str,
        shown: Vec<PathBuf>,
        env: BTreeMap<String, String>,
        program: &OsStr,
        args: &[&OsStr],
    ) -> Command {
        let number = remote.map_or(0, |remote| remote.commands.fetch_add(1, Ordering::Relaxed));
        let process = RemoteProcess {
            access: self.access.clone(),
            toolbox: remote.map(|remote| remote.toolbox.clone()).unwrap_or_default(),
            name: format!("{name}-{number}"),
            env,
            shown,
        };
        let path = Path::new(program);
        let is_here = path.is_absolute() && !process.shown.iter().any(|shown| path.starts_with(shown));
        // Programs are assumed to have the same name there.
        let program = path.file_name().filter(|_| is_here).unwrap_or(program);
        self.supervisor.remote_command(&process, program, args)
    }

    /// Removes variables that contain paths on this machine, unless the fixture sets them.
    fn without_machine(&self, env: &mut BTreeMap<String, String>, kept: &[(String, String)]) {
        let mut of_machine = std::mem::take(env);
        let is_kept = |name: &String| self.own_variables.contains(name) || kept.iter().any(|(kept, _)| kept == name);
        let chosen: Vec<_> =
            of_machine.iter().filter(|(name, _)| is_kept(name)).map(|(n, v)| (n.clone(), v.clone())).collect();
        without_machine(&mut of_machine);
        of_machine.extend(chosen);
        *env = of_machine;
    }
}

/// A remote sandbox that is removed on drop.
#[derive(Debug)]
struct Doomed {
    service: Service,
    name: Mutex<Option<String>>,
}

impl Doomed {
    async fn remove(&self) -> Result<(), SandboxError> {
        let name = self.name.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(name) = name else { return Ok(()) };
        let removed = self.service.delete(&name).await;
        removed.map_err(|error| failed(&format!("the remote sandbox {name} cannot be removed"), &error))
    }
}

impl Drop for Doomed {
    fn drop(&mut self) {
        let name = self.name.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(name) = name else { return };
        let service = self.service.clone();
        // If this fails, `prune` or the service removes the sandbox later.
        let _ = block_on(async move { service.delete(&name).await });
    }
}

/// A remote sandbox that has started.
#[derive(Debug)]
struct Remote {
    /// Its address for commands and files.
    toolbox: String,
    doomed: Doomed,
    /// Number of commands so far.
    commands: AtomicU64,
}

struct DaytonaSandbox {
    /// Directories on this machine.
    inner: LocalSandbox,
    maker: Maker,
    /// `None` if no process runs in it.
    remote: Option<Remote>,
    name: String,
    /// Number of copies so far.
    copies: AtomicU64,
    /// Files on this machine that processes need.
    shown: Mutex<Vec<PathBuf>>,
}

impl DaytonaSandbox {
    fn base(&self) -> &Path {
        self.inner.work().parent().unwrap_or(self.inner.work())
    }

    /// Replaces the directories on this machine by those in the remote sandbox, if a command may have changed these.
    async fn fetch(&self) -> Result<(), SandboxError> {
        let is_used = |remote: &&Remote| remote.commands.load(Ordering::Relaxed) > 0;
        match self.remote.as_ref().filter(is_used) {
            Some(remote) => files::download(&self.maker, &remote.toolbox, self.base()).await,
            None => Ok(()),
        }
    }

    /// Returns a grading tree whose commands run in a remote sandbox of their own, where no process that the agent left
    /// running can interfere.
    fn moved(&self, mut copy: SandboxCopy) -> SandboxCopy {
        let enclosure = RemoteCopy {
            maker: self.maker.clone(),
            base: self.base().to_owned(),
            remote: OnceCell::new(),
            name: format!("{}-{}", self.name, self.copies.fetch_add(1, Ordering::Relaxed)),
            system: OwnSystem { shell: SHELL.into(), path: None },
        };
        let surroundings = Surroundings::new(self.maker.network);
        copy.enclose(Arc::new(enclosure), surroundings);
        copy
    }
}

impl Sandbox for DaytonaSandbox {
    fn work(&self) -> &Path {
        self.inner.work()
    }

    fn home(&self) -> &Path {
        self.inner.home()
    }

    fn tmp(&self) -> &Path {
        self.inner.tmp()
    }

    fn env(&self, extra: &[(String, String)]) -> BTreeMap<String, String> {
        self.inner.env(extra)
    }

    fn command(&self, program: &OsStr, args: &[&OsStr], extra: &[(String, String)]) -> Command {
        let mut env = self.inner.agent_env(extra);
        self.maker.without_machine(&mut env, extra);
        let shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut command = self.maker.command(self.remote.as_ref(), &self.name, shown, env, program, args);
        command.current_dir(self.work());
        command
    }

    fn show(&self, path: &Path) {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner).push(path.to_owned());
    }

    fn shell(&self) -> &Path {
        Path::new(SHELL)
    }

    fn has_own_system(&self) -> bool {
        true
    }

    fn refuses_hosts(&self) -> Option<String> {
        let reason = "`daytona` sandboxes cannot allow only some hosts: write `network: none` or `network: open`, or use \
                      `isolated` sandboxes, which support `model-only` and `allow`";
        Some(reason.to_owned())
    }

    fn serve(&self, _: &[u16]) -> Result<Option<Listeners>, SandboxError> {
        Ok(None)
    }

    fn planted(&self) -> Vec<String> {
        self.inner.planted()
    }

    fn texts<'s>(&'s self, collected: &'s Collected) -> BoxFuture<'s, Vec<(String, String)>> {
        self.inner.texts(collected)
    }

    fn collect(&self) -> BoxFuture<'_, Result<Collected, SandboxError>> {
        Box::pin(async move {
            self.fetch().await?;
            self.inner.collect().await
        })
    }

    fn may_have_changed(&self, path: &Path) -> bool {
        self.inner.may_have_changed(path)
    }

    fn copy(&self) -> BoxFuture<'_, Result<SandboxCopy, SandboxError>> {
        Box::pin(async move {
            self.fetch().await?;
            Ok(self.moved(self.inner.copy().await?))
        })
    }

    fn fork<'s>(&'s self, copy: &'s SandboxCopy) -> BoxFuture<'s, Result<SandboxCopy, SandboxError>> {
        // Commands change the remote files, so those on this machine are as they were made.
        Box::pin(async move { Ok(self.moved(copy.fork().await?)) })
    }

    fn patch<'s>(&'s self, collected: &'s Collected) -> BoxFuture<'s, Option<String>> {
        self.inner.patch(collected)
    }

    fn close(&self) -> BoxFuture<'_, Result<(), SandboxError>> {
        Box::pin(async move {
            let removed = match &self.remote {
                Some(remote) => remote.doomed.remove().await,
                None => Ok(()),
            };
            self.inner.close().await?;
            removed
        })
    }
}

/// Enclosure of a copy: its remote sandbox, which is created for its first command.
#[derive(Debug)]
struct RemoteCopy {
    maker: Maker,
    /// Folder of the copy's directories in the remote sandbox.
    base: PathBuf,
    remote: OnceCell<Remote>,
    name: String,
    system: OwnSystem,
}

impl Enclosure for RemoteCopy {
    fn isolation(&self) -> model::Isolation {
        model::Isolation::none("daytona")
    }

    fn prepare<'s>(&'s self, base: &'s Path) -> BoxFuture<'s, Result<(), SandboxError>> {
        let make = || self.maker.make(&self.name, base, &self.base);
        Box::pin(async move { self.remote.get_or_try_init(make).await.map(drop) })
    }

    fn changed_elsewhere<'s>(&'s self, work: &'s Path, paths: Vec<String>) -> BoxFuture<'s, Vec<String>> {
        Box::pin(async move {
            let Some(remote) = self.remote.get() else { return Vec::new() };
            let changed = files::changed(&self.maker, &remote.toolbox, &self.base, work, paths).await;
            // If the service cannot compare the files, no change is known.
            changed.unwrap_or_default()
        })
    }

    fn command(
        &self,
        _: &Supervisor,
        _: &[(PathBuf, PathBuf)],
        _: &Surroundings,
        env: &BTreeMap<String, String>,
        program: &OsStr,
        args: &[&OsStr],
    ) -> Command {
        let mut env = env.clone();
        self.maker.without_machine(&mut env, &[]);
        self.maker.command(self.remote.get(), &self.name, Vec::new(), env, program, args)
    }

    fn system(&self) -> Option<&OwnSystem> {
        Some(&self.system)
    }
}
