//! Sandboxes that are directories on this machine.
//!
//! ```text
//! <temporary directory>/trialrun-sandbox-<pid>-<random>/
//!     work/    working directory of the agent, with the fixture
//!     home/    its HOME, empty
//!     tmp/     its TMPDIR, empty
//!     owner    identifies the owner; locked while the sandbox is in use
//! ```
//!
//! A directory does not confine an agent. Files that the agent writes elsewhere below the sandbox's directory are
//! detected; files that it writes elsewhere on the machine show only in its tool calls.

mod collection;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, Metadata};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use model::{Collected, FaultAction, FaultKind, FaultOccurrence, FaultReport, Fixtures, Graded, MockNames};
use tokio::process::Command;
use tokio::sync::OnceCell;

use super::blocking::blocking;
use super::canaries::{self, Planted};
use super::copy::{self, Content, Original, SandboxCopy};
use super::deadline::Deadline;
use super::enclosure::{Enclosed, Enclosure, OwnSystem};
use super::faults::{self, SandboxFaults};
use super::git_state::GitState;
use super::given::Given;
use super::inspection::{self, Doubts, Inspection, Unreadable};
use super::mock_programs::{self, MockPrograms};
use super::outside;
use super::owner::{Base, Purpose};
use super::patch;
use super::registry::Registry;
use super::remote::{RemoteCopy, RemoteSource, RemoteSources};
use super::removal::WORK;
use super::repository::{Moment, RepositorySnapshot, Watch};
use super::review_requests::Reviews;
use super::setup;
use super::snapshot::{Before, Snapshot};
use super::template::{Files, Template, Templates};
use super::{
    RepositoryDetail, Request, Sandbox, SandboxBackend, SandboxError, SandboxKind, SandboxOptions, environment,
};
use crate::BoxFuture;
use crate::Host;
use crate::supervise::{Listeners, Supervisor, run};

/// Name of a sandbox's directory, the same for every case and arm: the agent sees the path, which must not reveal the
/// test.
const SANDBOX: &str = "sandbox";

const HOME: &str = "home";
const TMP: &str = "tmp";
/// Folder of the socket that takes over the listening sockets of isolated processes.
const RELAY: &str = "relay";

/// Timeout for making a patch.
const PATCHING: Duration = Duration::from_secs(20);

/// Maximum size of a setup command's output that is kept, in bytes.
const MAX_OUTPUT: usize = 64 * 1024;

/// The kind `local`.
pub(super) struct Local;

impl SandboxKind for Local {
    fn name(&self) -> &'static str {
        "local"
    }

    fn summary(&self) -> &'static str {
        "a directory on this machine, with its own HOME, TMPDIR and environment"
    }

    fn isolates(&self) -> bool {
        false
    }

    fn open(
        &self,
        host: &Host,
        registry: &Arc<Registry>,
        _: &SandboxOptions,
    ) -> Result<Box<dyn SandboxBackend>, SandboxError> {
        Ok(Box::new(LocalBackend::open(host, registry, None)?))
    }
}

/// Creates sandboxes in directories on this machine.
pub(super) struct LocalBackend {
    templates: Templates,
    /// Enclosure in which processes run, if there is one.
    enclosure: Option<Arc<dyn Enclosure>>,
}

impl SandboxBackend for LocalBackend {
    fn make(&self, request: Request) -> BoxFuture<'_, Result<Arc<dyn Sandbox>, SandboxError>> {
        Box::pin(async move { Ok(Arc::new(self.make_local(request).await?) as Arc<dyn Sandbox>) })
    }

    fn isolation(&self) -> model::Isolation {
        let enclosure = self.enclosure.as_ref();
        enclosure.map_or_else(|| model::Isolation::none(Local.name()), |enclosure| enclosure.isolation())
    }
}

impl LocalBackend {
    /// Prepares to create sandboxes. If there is an enclosure, their processes run in it.
    pub(super) fn open(
        host: &Host,
        registry: &Arc<Registry>,
        enclosure: Option<Arc<dyn Enclosure>>,
    ) -> Result<Self, SandboxError> {
        let unusable = SandboxError::io("make sandboxes in", &host.temp);
        let root = host.temp.canonicalize().and_then(|root| match tempfile::tempdir_in(&root) {
            Ok(_) => Ok(root),
            // Its own text names a random directory.
            Err(error) => Err(error.kind().into()),
        });
        let root = root.map_err(unusable)?;
        let templates = Templates {
            root,
            env: Arc::new(host.env.clone()),
            supervisor: host.supervisor.clone(),
            registry: Arc::clone(registry),
            base: OnceCell::new(),
            cache: Mutex::default(),
            sources: RemoteSources::default(),
        };
        Ok(Self { templates, enclosure })
    }

    /// Creates a sandbox.
    ///
    /// # Errors
    /// See [`SandboxBackend::make`].
    pub(super) async fn make_local(&self, request: Request) -> Result<LocalSandbox, SandboxError> {
        self.check_places(&request)?;
        let template = self.templates.get(&request).await?;
        let mut sandbox = self.lay_out(&request, template).await?;
        if let Some(source) = self.templates.source(&request).await? {
            sandbox.add_remote(source).await?;
        }
        let ready = match sandbox.set_up(&request.fixtures, request.setup_timeout).await {
            Ok(()) => sandbox.install_faults(&request.faults),
            failed => failed,
        };
        ready.map_err(|error| if request.keep { error.kept_in(&sandbox.work) } else { error })?;
        if request.repository == RepositoryDetail::Changes {
            sandbox.watch(&request.fixtures).await?;
        }
        // Canaries must not be part of the recorded initial state, so they are planted last.
        let has_remote = request.source_repo.is_some();
        sandbox.planted = Arc::new(Planted::plant(&request.canaries, &sandbox.work, &sandbox.home, has_remote)?);
        Ok(sandbox)
    }

    /// Checks that processes can see the folders that the case has at absolute paths.
    fn check_places(&self, request: &Request) -> Result<(), SandboxError> {
        for path in outside::paths(&request.fixtures, &request.graded) {
            let Some(enclosure) = &self.enclosure else {
                let reason = format!("the case needs a folder at `{}`", path.display());
                return Err(SandboxError::Refused { kind: Local.name(), reason });
            };
            enclosure.check_place(path)?;
        }
        Ok(())
    }

    /// Creates the directories and copies the template into them.
    async fn lay_out(&self, request: &Request, template: Option<Arc<Template>>) -> Result<LocalSandbox, SandboxError> {
        let Templates { root, env, supervisor, registry, .. } = &self.templates;
        let (root, registry, keep) = (root.clone(), Arc::clone(registry), request.keep);
        let made_in = Arc::clone(&registry);
        let fixtures = Arc::clone(&request.fixtures);
        let is_limited = request.faults.iter().any(|fault| fault.kind() == FaultKind::DiskFull);
        let (base, baseline) = blocking(move || {
            let base = Base::make(&root, SANDBOX, Purpose::Sandbox, keep, &registry)?;
            for directory in [WORK, HOME, TMP].map(|name| base.path().join(name)) {
                fs::create_dir(&directory).map_err(SandboxError::io("make the directory", &directory))?;
            }
            if is_limited {
                faults::mount(&base.path().join(WORK))?;
            }
            if let Some(template) = &template {
                template.copy(&base.path().join(WORK))?;
            }
            outside::write(base.path(), &fixtures.outside)?;
            let moment = base.moment().map_err(SandboxError::io("mark", base.path()))?;
            let files = template.as_ref().map_or_else(Arc::default, |template| Arc::clone(&template.files));
            let given = template.map(|template| Arc::new(Given::Template(template)));
            let git = given.as_ref().and_then(|given| given.git());
            Ok((base, Baseline { files, moment, given, git }))
        })
        .await?;
        let [work, home, tmp] = [WORK, HOME, TMP].map(|name| base.path().join(name));
        let mut own_env = environment::of(env, base.path(), &home, &tmp);
        own_env.extend(request.extra_env.iter().cloned());
        Ok(LocalSandbox {
            path: base.path().to_owned(),
            base: Mutex::new(Some(base)),
            work,
            env: own_env,
            home,
            tmp,
            fixtures: Arc::clone(&request.fixtures),
            supervisor: supervisor.clone(),
            registry: made_in,
            host_env: Arc::clone(env),
            source_repo: request.source_repo.clone(),
            graded: request.graded.clone(),
            timeout: request.setup_timeout,
            baseline,
            repository: request.repository,
            watched: None,
            faults: SandboxFaults::default(),
            planted: Arc::default(),
            enclosed: self.enclosure.clone().map(|enclosure| Enclosed::new(enclosure, request.network)),
            remote: None,
            mocks: OnceLock::new(),
        })
    }
}

/// A sandbox in a directory on this machine.
pub(super) struct LocalSandbox {
    path: PathBuf,
    base: Mutex<Option<Base>>,
    work: PathBuf,
    home: PathBuf,
    tmp: PathBuf,
    env: BTreeMap<String, String>,
    fixtures: Arc<Fixtures>,
    /// Environment of the user.
    host_env: Arc<BTreeMap<String, String>>,
    /// Repository to clone.
    source_repo: Option<String>,
    /// Trees in which commands work.
    graded: Graded,
    supervisor: Supervisor,
    registry: Arc<Registry>,
    timeout: Duration,
    baseline: Baseline,
    /// Part of the repository's state to record.
    repository: RepositoryDetail,
    /// State of the repository before the agent started, if its changes are needed.
    watched: Option<RepositorySnapshot>,
    /// Enclosure in which its processes run, if there is one.
    enclosed: Option<Enclosed>,
    /// Faults of its processes and files.
    faults: SandboxFaults,
    /// The agent's canaries.
    planted: Arc<Planted>,
    /// The trial's own remote, unless the real one is used.
    remote: Option<Arc<RemoteCopy>>,
    /// Folder of the programs that stand for mocks, if there are any.
    mocks: OnceLock<PathBuf>,
}

/// Content of a sandbox before the agent started.
#[derive(Clone)]
struct Baseline {
    files: Arc<Files>,
    moment: (i64, i64),
    given: Option<Arc<Given>>,
    /// Git directory of the fixture.
    git: Option<PathBuf>,
}

impl LocalSandbox {
    /// Creates the trial's own remote.
    async fn add_remote(&mut self, source: Arc<RemoteSource>) -> Result<(), SandboxError> {
        let remote = RemoteCopy::make(source, &self.path, self.supervisor.program()).await?;
        if let Some(enclosed) = &self.enclosed {
            enclosed.show(&remote.bin());
            enclosed.show(remote.trialrun());
        }
        self.remote = Some(Arc::new(remote));
        Ok(())
    }

    /// Runs the setup commands and records the resulting files.
    async fn set_up(&mut self, fixtures: &Fixtures, timeout: Duration) -> Result<(), SandboxError> {
        if fixtures.setup_commands.is_empty() {
            return Ok(());
        }
        for command in &fixtures.setup_commands {
            let args = [OsStr::new("-c"), OsStr::new(&command.value)];
            // The suite's author wrote them, so they run without isolation.
            let output = run(self.plain_command(OsStr::new("/bin/sh"), &args, &[]), timeout, MAX_OUTPUT).await;
            let output = output.map_err(SandboxError::io("run setup commands in", &self.work))?;
            setup::check(&command.value, &output, timeout, fixtures.source.as_ref())?;
        }
        let (work, before) = (self.work.clone(), self.baseline.clone());
        let (home, tmp, registry) = (self.home.clone(), self.tmp.clone(), Arc::clone(&self.registry));
        let root = self.root().to_owned();
        let moment = self.moment()?;
        let deadline = self.deadline();
        self.baseline = blocking(move || {
            let before = Before { snapshot: &before.files.snapshot, moment: before.moment };
            let snapshot = Snapshot::since(&work, &before, deadline).map_err(SandboxError::io("read", &work))?;
            let repository = GitState::at(&work, deadline).map_err(SandboxError::io("read", &work))?;
            let files = Arc::new(Files::after_setup(snapshot, repository));
            let given = Given::save([&work, &home, &tmp], files.steering(), &root, &registry, deadline)?;
            let git = given.git();
            Ok(Baseline { files, moment, given: Some(Arc::new(given)), git })
        })
        .await?;
        Ok(())
    }

    /// Prepares the faults, once all files are in place.
    fn install_faults(&mut self, faults: &[FaultAction]) -> Result<(), SandboxError> {
        self.faults = SandboxFaults::install(faults, &self.path, &self.work, &self.home)?;
        if let Some(enclosed) = &self.enclosed {
            enclosed.add_faults(&self.faults);
        }
        Ok(())
    }

    /// Returns the environment of the agent's processes.
    pub(super) fn agent_env(&self, extra: &[(String, String)]) -> BTreeMap<String, String> {
        let mut env = if self.has_own_system() { self.env_inside(extra) } else { self.env(extra) };
        self.mocks.get().into_iter().for_each(|folder| mock_programs::add_to(folder, &mut env));
        self.faults.apply(&mut env);
        self.planted.apply(&mut env);
        env
    }

    /// Records the state of the repository and its remotes before the agent starts. Trials of the same fixture share
    /// the parts that are equal for all of them.
    async fn watch(&mut self, fixtures: &Fixtures) -> Result<(), SandboxError> {
        if self.baseline.files.repository.is_none() {
            return Ok(());
        }
        let watch = self.watcher(self.deadline(), Doubts::default());
        let snapshot_of = async || match watch.snapshot_of(&self.work).await {
            Ok(repository_snapshot) => Ok(Some(repository_snapshot)),
            Err(Unreadable::Left(_)) => Ok(None),
            Err(Unreadable::Machine(reason) | Unreadable::Late(reason)) => {
                Err(SandboxError::Git { reason, source_line: None })
            }
        };
        let repository_snapshot = self.baseline.files.repository_snapshot.get_or_try_init(snapshot_of).await?.clone();
        let Some(mut repository_snapshot) = repository_snapshot else { return Ok(()) };
        if let Some(git_state) = &self.baseline.files.repository {
            repository_snapshot.state.pushes.clone_from(&git_state.pushes);
        }
        let moment = if fixtures.setup_commands.is_empty() { Moment::Before } else { Moment::After };
        watch.ask_remotes(&self.work, &mut repository_snapshot, moment).await;
        self.watched = Some(repository_snapshot);
        Ok(())
    }

    fn watcher(&self, deadline: Deadline, doubts: Doubts) -> Watch<'_> {
        let (supervisor, source_repo) = (&self.supervisor, self.source_repo.as_deref());
        let reviews = Reviews { supervisor, env: &self.host_env, source_repo };
        Watch { git: self.inspection(deadline, doubts), reviews, copy: self.remote.as_deref() }
    }

    fn inspection(&self, deadline: Deadline, doubts: Doubts) -> Inspection<'_> {
        Inspection {
            supervisor: &self.supervisor,
            env: inspection::environment(&self.plain_env(&[]), &self.path),
            given: self.baseline.git.as_deref(),
            root: self.root(),
            doubts,
            registry: &self.registry,
            deadline,
        }
    }

    /// Returns a supervised command that is not isolated.
    fn plain_command(&self, program: &OsStr, args: &[&OsStr], extra: &[(String, String)]) -> Command {
        let mut command = self.supervisor.command(program, args);
        command.current_dir(&self.work).envs(self.env(extra));
        command
    }

    /// Returns the environment of processes on this machine, without the trial's own remote.
    fn plain_env(&self, extra: &[(String, String)]) -> BTreeMap<String, String> {
        self.with_fixture_env(self.env.clone(), extra)
    }

    /// Returns the system that its processes see, if it is not the system of this machine.
    fn system(&self) -> Option<&OwnSystem> {
        self.enclosed.as_ref()?.enclosure.system()
    }

    /// Returns the environment of processes in the enclosure, without the trial's own remote.
    fn env_inside(&self, extra: &[(String, String)]) -> BTreeMap<String, String> {
        let mut env = self.env.clone();
        if let Some(system) = self.system() {
            system.apply(&mut env);
        }
        self.with_fixture_env(env, extra)
    }

    fn with_fixture_env(
        &self,
        mut env: BTreeMap<String, String>,
        extra: &[(String, String)],
    ) -> BTreeMap<String, String> {
        env.extend(extra.iter().chain(&self.fixtures.env).cloned());
        env
    }

    /// Returns the directories to which the agent can write, beginning with the one for temporary files.
    fn directories(&self) -> Vec<PathBuf> {
        let own = [&self.tmp, &self.work, &self.home].map(PathBuf::clone);
        own.into_iter().chain(self.remote.as_ref().map(|remote| remote.path())).collect()
    }

    /// Returns the timeout for reading the sandbox, which is that of a setup command.
    fn deadline(&self) -> Deadline {
        Deadline::new(self.timeout, "setup_timeout")
    }

    /// Returns the directory in which sandboxes are created.
    fn root(&self) -> &Path {
        self.path.parent().unwrap_or(&self.path)
    }

    fn moment(&self) -> Result<(i64, i64), SandboxError> {
        match &*self.base.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(base) => base.moment().map_err(SandboxError::io("mark", &self.path)),
            None => Err(SandboxError::Ending),
        }
    }
}

impl Sandbox for LocalSandbox {
    fn work(&self) -> &Path {
        &self.work
    }

    fn home(&self) -> &Path {
        &self.home
    }

    fn tmp(&self) -> &Path {
        &self.tmp
    }

    fn env(&self, extra: &[(String, String)]) -> BTreeMap<String, String> {
        let mut env = self.env.clone();
        if let Some(remote) = &self.remote {
            remote.add_to(&mut env);
        }
        self.with_fixture_env(env, extra)
    }

    fn remote(&self) -> Option<PathBuf> {
        self.remote.as_ref().map(|remote| remote.path())
    }

    fn command(&self, program: &OsStr, args: &[&OsStr], extra: &[(String, String)]) -> Command {
        let env = self.agent_env(extra);
        let Some(enclosed) = &self.enclosed else {
            let mut command = self.supervisor.command(program, args);
            command.current_dir(&self.work).envs(env);
            return command;
        };
        let own = self.directories().into_iter().map(|path| (path.clone(), path));
        let places: Vec<(PathBuf, PathBuf)> =
            own.chain(outside::places(&self.path, &self.work, &self.fixtures)).collect();
        let mut command =
            enclosed.enclosure.command(&self.supervisor, &places, &enclosed.surroundings(), &env, program, args);
        command.current_dir(&self.work);
        command
    }

    fn show(&self, path: &Path) {
        if let Some(enclosed) = &self.enclosed {
            enclosed.show(path);
        }
    }

    fn shown(&self) -> Vec<PathBuf> {
        self.enclosed.as_ref().map_or_else(Vec::new, |enclosed| enclosed.surroundings().shown)
    }

    fn shell(&self) -> &Path {
        self.system().map_or(super::machine_shell(), |system| &system.shell)
    }

    fn has_own_system(&self) -> bool {
        self.system().is_some()
    }

    fn refuses_hosts(&self) -> Option<String> {
        self.enclosed.as_ref()?.enclosure.refuses_hosts()
    }

    fn serve(&self, ports: &[u16]) -> Result<Option<Listeners>, SandboxError> {
        let Some(enclosed) = &self.enclosed else { return Ok(None) };
        let folder = self.path.join(RELAY);
        enclosed.serve(&folder, ports).map_err(SandboxError::io("listen in", &folder))
    }

    fn mock(&self, names: &MockNames) -> Result<MockPrograms, SandboxError> {
        if self.has_own_system() {
            let reason = "their processes cannot run programs of this machine".to_owned();
            return Err(SandboxError::Refused { kind: "container", reason });
        }
        let trialrun = self.supervisor.program();
        let programs = MockPrograms::install(&self.path, &self.home, names, trialrun)
            .map_err(SandboxError::io("write the programs of mocks in", &self.path))?;
        let _ = self.mocks.set(programs.folder().to_owned());
        self.show(programs.folder());
        self.show(trialrun);
        Ok(programs)
    }

    fn check(&self) -> BoxFuture<'_, Result<(), SandboxError>> {
        Box::pin(async move {
            let Some(enclosed) = &self.enclosed else { return Ok(()) };
            let enclosure = Arc::clone(&enclosed.enclosure);
            blocking(move || enclosure.check()).await
        })
    }

    fn read_only(&self) -> Vec<PathBuf> {
        self.faults.read_only().to_vec()
    }

    fn outside(&self) -> Vec<PathBuf> {
        let folder = self.path.join(outside::FOLDER);
        if self.fixtures.outside.is_empty() { Vec::new() } else { vec![folder] }
    }

    fn planted(&self) -> Vec<String> {
        self.planted.unchanged(&self.work)
    }

    fn texts<'s>(&'s self, collected: &'s Collected) -> BoxFuture<'s, Vec<(String, String)>> {
        Box::pin(async move {
            let (work, changed) = (self.work.clone(), collected.files_changed.clone());
            let read = blocking(move || Ok(canaries::changed_texts(&work, &changed))).await;
            let mut texts = read.unwrap_or_default();
            texts.extend(self.new_objects().await);
            texts
        })
    }

    fn faults(&self) -> (Vec<FaultReport>, Vec<FaultOccurrence>) {
        self.faults.reports()
    }

    fn collect(&self) -> BoxFuture<'_, Result<Collected, SandboxError>> {
        Box::pin(self.inspect())
    }

    fn may_have_changed(&self, path: &Path) -> bool {
        let Baseline { files, moment, .. } = &self.baseline;
        let before = Before { snapshot: &files.snapshot, moment: *moment };
        let is_unchanged = |meta: Metadata| before.is_unchanged(path, &meta);
        files.snapshot.has(path)
            && !self.work.join(path).symlink_metadata().is_ok_and(is_unchanged)
            && !copy::taken(&self.graded.taken_files).is_ok_and(|taken| taken.is_match(path))
    }

    fn copy(&self) -> BoxFuture<'_, Result<SandboxCopy, SandboxError>> {
        let keeps_path = self.has_own_system() || self.fixtures.env.iter().any(|(name, _)| name == "PATH");
        let enclosed = self.enclosed.as_ref();
        let Baseline { files, moment, given, .. } = self.baseline.clone();
        let content = Content {
            root: self.root().to_owned(),
            registry: Arc::clone(&self.registry),
            path: self.path.clone(),
            work: self.work.clone(),
            home: self.home.clone(),
            tmp: self.tmp.clone(),
            given,
            files,
            moment,
            graded: self.graded.clone(),
            fixtures: Arc::clone(&self.fixtures),
            planted: Arc::clone(&self.planted),
            remote: self.remote.clone(),
            deadline: self.deadline(),
        };
        let original = Original {
            content,
            env: copy::environment(self.env_inside(&[]), &self.path, keeps_path),
            enclosed: enclosed.map(|own| (Arc::clone(&own.enclosure), own.surroundings().of_commands())),
            inspection: self.inspection(self.deadline(), Doubts::default()),
        };
        Box::pin(original.copy())
    }

    fn patch<'s>(&'s self, collected: &'s Collected) -> BoxFuture<'s, Option<String>> {
        Box::pin(async move {
            if !patch::is_possible(collected) {
                return None;
            }
            let git = self.inspection(Deadline::new(PATCHING, "setup_timeout"), Doubts::default());
            patch::of(&git.view(&self.work).await.ok()?, collected).await
        })
    }

    fn close(&self) -> BoxFuture<'_, Result<(), SandboxError>> {
        let base = self.base.lock().unwrap_or_else(PoisonError::into_inner).take();
        Box::pin(async move {
            let Some(base) = base else { return Ok(()) };
            blocking(move || {
                let path = base.path().to_owned();
                base.remove().map_err(SandboxError::io("remove the sandbox", &path))
            })
            .await
        })
    }
}
