//! Sandboxes that are directories on this machine.
//!
//! ```text
//! <temporary directory>/trialrun-sandbox-<pid>-<random>/
//!     work/    working directory of the agent, with the fixture
//!     home/    its HOME, empty
//!     tmp/     its TMPDIR, empty
//!     owner    names the owner; locked while the sandbox is in use
//! ```
//!
//! A directory does not confine an agent. Files that the agent writes elsewhere below the sandbox's directory are
//! detected; files that it writes elsewhere on the machine show only in its tool calls.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use model::{Collected, Fixtures, Repository, RepositoryChange};
use tokio::process::Command;
use tokio::sync::OnceCell;

use super::blocking::blocking;
use super::copy::{Original, SandboxCopy};
use super::deadline::Deadline;
use super::enclosure::{self, Enclosed, Enclosure};
use super::git_state::GitState;
use super::graded;
use super::inspection::{self, Inspection, Unreadable};
use super::integrity;
use super::owner::{Base, OWNER, Purpose};
use super::patch;
use super::registry::Registry;
use super::removal;
use super::repository::{RepositorySnapshot, Unchanged, Watch};
use super::review_requests::Reviews;
use super::setup;
use super::snapshot::{Before, Obstacle, Snapshot};
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

const WORK: &str = "work";
const HOME: &str = "home";
const TMP: &str = "tmp";
/// Socket that takes over the listening sockets of isolated processes.
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
        "a directory of this machine, with its own HOME, TMPDIR and environment"
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

/// Creates sandboxes in directories of this machine.
pub(super) struct LocalBackend {
    templates: Templates,
    /// Enclosure of the processes, if they have one.
    enclosure: Option<Arc<dyn Enclosure>>,
}

impl SandboxBackend for LocalBackend {
    fn make(&self, request: Request) -> BoxFuture<'_, Result<Arc<dyn Sandbox>, SandboxError>> {
        Box::pin(async move {
            let template = self.templates.get(&request).await?;
            let mut sandbox = self.lay_out(&request, template).await?;
            let ready = sandbox.set_up(&request.fixtures, request.setup_timeout).await;
            ready.map_err(|error| if request.keep { error.kept_in(&sandbox.work) } else { error })?;
            if request.repository == RepositoryDetail::Changes {
                sandbox.watch().await?;
            }
            Ok(Arc::new(sandbox) as Arc<dyn Sandbox>)
        })
    }

    fn isolation(&self) -> model::Isolation {
        let enclosure = self.enclosure.as_ref();
        enclosure.map_or_else(|| model::Isolation::none(Local.name()), |enclosure| enclosure.isolation())
    }
}

impl LocalBackend {
    /// Prepares to create sandboxes. Their processes run in the enclosure, if there is one.
    pub(super) fn open(
        host: &Host,
        registry: &Arc<Registry>,
        enclosure: Option<Arc<dyn Enclosure>>,
    ) -> Result<Self, SandboxError> {
        let root = host.temp.canonicalize().map_err(SandboxError::io("make sandboxes in", &host.temp))?;
        let templates = Templates {
            root,
            env: Arc::new(host.env.clone()),
            supervisor: host.supervisor.clone(),
            registry: Arc::clone(registry),
            base: OnceCell::new(),
            cache: Mutex::default(),
        };
        Ok(Self { templates, enclosure })
    }

    /// Creates the directories and copies the template into them.
    async fn lay_out(&self, request: &Request, template: Option<Arc<Template>>) -> Result<LocalSandbox, SandboxError> {
        let Templates { root, env, supervisor, registry, .. } = &self.templates;
        let (root, registry, keep) = (root.clone(), Arc::clone(registry), request.keep);
        let made_in = Arc::clone(&registry);
        let (base, baseline) = blocking(move || {
            let base = Base::make(&root, SANDBOX, Purpose::Sandbox, keep, &registry)?;
            for directory in [WORK, HOME, TMP].map(|name| base.path().join(name)) {
                fs::create_dir(&directory).map_err(SandboxError::io("make the directory", &directory))?;
            }
            if let Some(template) = &template {
                template.copy(&base.path().join(WORK))?;
            }
            let moment = base.moment().map_err(SandboxError::io("mark", base.path()))?;
            let files = template.map_or_else(Arc::default, |template| Arc::clone(&template.files));
            Ok((base, Baseline { files, moment }))
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
            fixture_env: request.fixtures.env.clone(),
            supervisor: supervisor.clone(),
            registry: made_in,
            host_env: Arc::clone(env),
            source_repo: request.source_repo.clone(),
            timeout: request.setup_timeout,
            baseline,
            repository: request.repository,
            watched: None,
            enclosed: self.enclosure.clone().map(|enclosure| Enclosed::new(enclosure, request.network)),
        })
    }
}

struct LocalSandbox {
    path: PathBuf,
    base: Mutex<Option<Base>>,
    work: PathBuf,
    home: PathBuf,
    tmp: PathBuf,
    env: BTreeMap<String, String>,
    fixture_env: Vec<(String, String)>,
    /// Environment of the user.
    host_env: Arc<BTreeMap<String, String>>,
    /// Repository to clone.
    source_repo: Option<String>,
    supervisor: Supervisor,
    registry: Arc<Registry>,
    timeout: Duration,
    baseline: Baseline,
    /// Part of the repository's state to record.
    repository: RepositoryDetail,
    /// State of the repository before the agent started, if its changes are needed.
    watched: Option<RepositorySnapshot>,
    /// Enclosure of its processes, if they have one.
    enclosed: Option<Enclosed>,
}

/// Content of a sandbox before the agent started.
#[derive(Clone)]
struct Baseline {
    files: Arc<Files>,
    moment: (i64, i64),
}

impl LocalSandbox {
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
        let moment = self.moment()?;
        let deadline = self.deadline();
        self.baseline = blocking(move || {
            let before = Before { snapshot: &before.files.snapshot, moment: before.moment };
            let snapshot = Snapshot::since(&work, &before, deadline).map_err(SandboxError::io("read", &work))?;
            let repository = GitState::at(&work, deadline).map_err(SandboxError::io("read", &work))?;
            Ok(Baseline { files: Arc::new(Files { snapshot, repository, ..Files::default() }), moment })
        })
        .await?;
        Ok(())
    }

    /// Records the state of the repository and its remotes before the agent starts. Trials of the same fixture share
    /// the parts that are equal for all of them.
    async fn watch(&mut self) -> Result<(), SandboxError> {
        if self.baseline.files.repository.is_none() {
            return Ok(());
        }
        let watch = self.watcher(self.deadline(), false);
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
        watch.ask_remotes(&self.work, &mut repository_snapshot).await;
        self.watched = Some(repository_snapshot);
        Ok(())
    }

    fn watcher(&self, deadline: Deadline, reads_all: bool) -> Watch<'_> {
        let (supervisor, source_repo) = (&self.supervisor, self.source_repo.as_deref());
        let reviews = Reviews { supervisor, env: &self.host_env, source_repo };
        Watch { git: self.inspection(deadline, reads_all), reviews }
    }

    fn inspection(&self, deadline: Deadline, reads_all: bool) -> Inspection<'_> {
        Inspection {
            supervisor: &self.supervisor,
            env: inspection::environment(&self.env(&[]), &self.path),
            settings: self.baseline.files.repository.as_ref().map(|repository| &repository.settings),
            root: self.path.parent().unwrap_or(&self.path),
            reads_all,
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

    /// Returns the environment of processes in the enclosure.
    fn env_inside(&self, extra: &[(String, String)]) -> BTreeMap<String, String> {
        let mut env = self.env.clone();
        if self.has_own_system() {
            enclosure::without_machine(&mut env);
        }
        env.extend(extra.iter().chain(&self.fixture_env).cloned());
        env
    }

    /// Returns the agent's directories, the one for temporary files first.
    fn directories(&self) -> [&PathBuf; 3] {
        [&self.tmp, &self.work, &self.home]
    }

    /// Returns the timeout for reading the sandbox, which is that of a setup command.
    fn deadline(&self) -> Deadline {
        Deadline::new(self.timeout, "setup_timeout")
    }

    fn moment(&self) -> Result<(i64, i64), SandboxError> {
        match &*self.base.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(base) => base.moment().map_err(SandboxError::io("mark", &self.path)),
            None => Err(SandboxError::Ending),
        }
    }

    async fn inspect(&self) -> Result<Collected, SandboxError> {
        let (work, path, baseline) = (self.work.clone(), self.path.clone(), self.baseline.clone());
        let status = self.watched.as_ref().map(|watched| watched.state.status.clone());
        let deadline = self.deadline();
        let home = self.home.clone();
        let (files_changed, outside_changes, now, left, reads_all, mut signs) = blocking(move || {
            if let Some(reason) = ruin(&work)? {
                return Err(SandboxError::Ruined { reason });
            }
            let before = Before { snapshot: &baseline.files.snapshot, moment: baseline.moment };
            let snapshot_of = || Snapshot::changes(&work, &before, deadline).map_err(|error| unread(&work, error));
            let mut changes = snapshot_of()?;
            if changes.is_closed {
                // A user with full access (root) sees the same with and without this step.
                removal::open_up(&work);
                changes = snapshot_of()?;
            }
            let now = GitState::at(&work, deadline).map_err(|error| unread(&work, error))?;
            if let (Some(_), Some(obstacle)) = (&now, &changes.blocks_git) {
                let reason = match obstacle {
                    Obstacle::Special(path) => format!(
                        "the agent made `{}` a pipe, a socket or a device, which git would wait for",
                        path.display()
                    ),
                    Obstacle::TooLong => {
                        "the agent left directories nested so deeply that git cannot read them".to_owned()
                    }
                };
                return Err(SandboxError::Ruined { reason });
            }
            let left = if now.is_none() {
                Unchanged::Gone
            } else if baseline.files.is_repository(now.as_ref()) {
                // If no file changed either, `git status` gives the same output as before.
                let status = status.as_ref().or(baseline.files.status.as_ref());
                Unchanged::Repository(status.filter(|_| changes.is_whole && changes.files.is_empty()).cloned())
            } else {
                Unchanged::Nothing
            };
            // The agent may also have written the index, which could then match any file.
            let reads_all = changes.keeps_a_size || matches!(left, Unchanged::Nothing);
            let signs = integrity::signs(baseline.files.repository.as_ref(), now.as_ref(), &home);
            Ok((changes.files, beside(&path)?, now, left, reads_all, signs))
        })
        .await?;
        let repository_change = match &self.watched {
            Some(before) => Some(self.change(before, &left, now.as_ref(), deadline, reads_all).await?),
            None => None,
        };
        let new = integrity::new_objects(self.baseline.files.repository.as_ref(), now.as_ref());
        if self.watched.is_some()
            && !new.is_empty()
            && let Ok(view) = self.inspection(deadline, reads_all).view(&self.work).await
        {
            signs.extend(integrity::hidden_commits(&view, &new).await);
        }
        let repository = match (&repository_change, now) {
            (Some(change), Some(_)) => Some(at_a_glance(change)).filter(|_| change.after.lost.is_none()),
            (None, Some(now)) if self.repository != RepositoryDetail::Nothing => {
                self.state_after(&now, left, deadline, reads_all).await?
            }
            (None, Some(_)) | (_, None) => None,
        };
        let repository_change = repository_change.map(Box::new);
        Ok(Collected {
            files_changed,
            outside_changes,
            repository,
            repository_change,
            integrity: signs,
            ..self.places()
        })
    }

    /// Compares the repository and its remotes with their state before the agent started.
    async fn change(
        &self,
        before: &RepositorySnapshot,
        left: &Unchanged,
        now: Option<&GitState>,
        deadline: Deadline,
        reads_all: bool,
    ) -> Result<RepositoryChange, SandboxError> {
        let change = self.watcher(deadline, reads_all).change(&self.work, before, left).await;
        let mut change = change.map_err(after_acting)?;
        change.after.pushes = now.map(|now| now.pushes.clone()).unwrap_or_default();
        Ok(change)
    }

    /// Runs git only for unknown parts, because starting a process takes longer than everything else here.
    async fn state_after(
        &self,
        now: &GitState,
        left: Unchanged,
        deadline: Deadline,
        reads_all: bool,
    ) -> Result<Option<Repository>, SandboxError> {
        let old = self.baseline.files.repository.as_ref().and_then(|before| before.head.as_deref());
        let moved = now.head.is_some() && now.head.as_deref() != old;
        let state_with = |status, new_commits| {
            Some(Repository { head: now.head.clone(), branch: now.branch.clone(), status, new_commits })
        };
        if let (Unchanged::Repository(Some(status)), false) = (&left, moved) {
            return Ok(state_with(status.clone(), Vec::new()));
        }
        let git = self.inspection(deadline, reads_all);
        let repository_snapshot = async {
            let view = git.view(&self.work).await?;
            let status = view.script(inspection::STATUS_SCRIPT, &[]).await?;
            let new_commits = if moved { view.commits(old).await? } else { Vec::new() };
            Ok((status, new_commits))
        };
        match repository_snapshot.await {
            Ok((status, new_commits)) => Ok(state_with(status, new_commits)),
            Err(Unreadable::Left(_)) => Ok(None),
            Err(unreadable) => Err(after_acting(unreadable)),
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
        env.extend(extra.iter().chain(&self.fixture_env).cloned());
        env
    }

    fn command(&self, program: &OsStr, args: &[&OsStr], extra: &[(String, String)]) -> Command {
        let Some(enclosed) = &self.enclosed else { return self.plain_command(program, args, extra) };
        let places = self.directories().map(|path| (path.clone(), path.clone()));
        let env = self.env_inside(extra);
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

    fn shell(&self) -> &Path {
        let own = self.enclosed.as_ref().and_then(|enclosed| enclosed.enclosure.shell());
        own.unwrap_or_else(|| super::machine_shell())
    }

    fn has_own_system(&self) -> bool {
        self.enclosed.as_ref().is_some_and(|enclosed| enclosed.enclosure.shell().is_some())
    }

    fn refuses_hosts(&self) -> Option<String> {
        self.enclosed.as_ref()?.enclosure.refuses_hosts()
    }

    fn serve(&self, ports: &[u16]) -> Result<Option<Listeners>, SandboxError> {
        let Some(enclosed) = &self.enclosed else { return Ok(None) };
        let socket = self.path.join(RELAY);
        enclosed.serve(socket.clone(), ports).map_err(SandboxError::io("listen at", &socket))
    }

    fn collect(&self) -> BoxFuture<'_, Result<Collected, SandboxError>> {
        Box::pin(self.inspect())
    }

    fn copy(&self) -> BoxFuture<'_, Result<SandboxCopy, SandboxError>> {
        let original = Original {
            root: self.path.parent().unwrap_or(&self.path).to_owned(),
            registry: Arc::clone(&self.registry),
            supervisor: self.supervisor.clone(),
            env: graded::environment(
                self.env_inside(&[]),
                &self.path,
                self.has_own_system() || self.fixture_env.iter().any(|(name, _)| name == "PATH"),
            ),
            work: self.work.clone(),
            directories: self.directories().map(PathBuf::clone).into(),
            enclosed: self
                .enclosed
                .as_ref()
                .map(|enclosed| (Arc::clone(&enclosed.enclosure), enclosed.surroundings().of_commands())),
            settings: self.baseline.files.repository.as_ref().map(|repository| repository.settings.clone()),
            deadline: self.deadline(),
        };
        Box::pin(original.copy())
    }

    fn patch<'s>(&'s self, collected: &'s Collected) -> BoxFuture<'s, Option<String>> {
        Box::pin(async move {
            if !patch::is_possible(collected) {
                return None;
            }
            let git = self.inspection(Deadline::new(PATCHING, "setup_timeout"), false);
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

/// Converts the change of a watched repository to the form that is reported for every repository.
fn at_a_glance(change: &RepositoryChange) -> Repository {
    let mine = change.new_commits.iter().filter(|commit| commit.on_head);
    Repository {
        head: change.after.head.clone(),
        branch: change.after.branch.clone(),
        status: change.after.status.clone(),
        new_commits: mine.map(|commit| format!("{} {}", commit.sha, commit.subject)).collect(),
    }
}

/// Returns a description of the agent's action if it removed, replaced or closed its working directory `work`, or the
/// directory around it.
///
/// # Errors
/// Returns an error if the system prevents looking.
pub fn ruin(work: &Path) -> Result<Option<String>, SandboxError> {
    for directory in work.parent().into_iter().chain([work]) {
        let what = match directory.symlink_metadata() {
            Ok(meta) if meta.is_dir() && meta.permissions().mode() & 0o500 == 0o500 => continue,
            Ok(meta) if meta.is_dir() => "closed",
            Ok(_) => "removed",
            Err(error) => match error.kind() {
                io::ErrorKind::PermissionDenied => "closed",
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => "removed",
                _ => return Err(SandboxError::io("read", directory)(error)),
            },
        };
        return Ok(Some(format!("the agent {what} its working directory")));
    }
    Ok(None)
}

/// Converts an error of reading a tree after the agent acted. A tree that takes too long is the agent's fault, because
/// reading it took less time before.
fn unread(work: &Path, error: io::Error) -> SandboxError {
    if error.kind() == io::ErrorKind::TimedOut {
        return SandboxError::Ruined {
            reason: format!("the agent left files that could not be read in time: {error}"),
        };
    }
    SandboxError::io("read", work)(error)
}

/// Converts an error of git after the agent acted. As in [`unread`], a timeout is the agent's fault.
fn after_acting(unreadable: Unreadable) -> SandboxError {
    match unreadable {
        Unreadable::Left(reason) | Unreadable::Machine(reason) => SandboxError::Git { reason, source_line: None },
        Unreadable::Late(reason) => {
            SandboxError::Ruined { reason: format!("the agent left files that git could not read in time: {reason}") }
        }
    }
}

/// Returns the entries next to the sandbox's own directories.
fn beside(base: &Path) -> Result<Vec<String>, SandboxError> {
    let own = [WORK, HOME, TMP, OWNER, RELAY];
    let entries = fs::read_dir(base).map_err(SandboxError::io("read", base))?;
    let strange = entries.flatten().filter(|entry| !own.iter().any(|own| entry.file_name() == *own));
    let mut paths: Vec<String> = strange.map(|entry| entry.path().to_string_lossy().into_owned()).collect();
    paths.sort();
    Ok(paths)
}
