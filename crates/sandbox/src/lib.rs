//! Sandboxes: the directories where agents work, and the processes in them. Each kind has its own file and a line in
//! [`SANDBOXES`].
//!
//! ```
//! use std::collections::BTreeMap;
//! use std::process::ExitCode;
//! use std::sync::Arc;
//! use std::time::Duration;
//!
//! use trialrun_sandbox::supervise::{self, Network, Supervisor};
//! use trialrun_sandbox::{Host, RepositoryDetail, Request, SandboxFactory};
//!
//! fn main() -> Result<ExitCode, Box<dyn std::error::Error>> {
//!     // For each process in a sandbox, this program starts itself again as the supervisor.
//!     if let Some(code) = supervise::answer(std::env::args_os().skip(1)) {
//!         return Ok(code);
//!     }
//!     collect()?;
//!     Ok(ExitCode::SUCCESS)
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn collect() -> Result<(), Box<dyn std::error::Error>> {
//! let supervisor = Supervisor::new(std::env::current_exe()?)?;
//! let host = Host { env: BTreeMap::new(), home: None, temp: std::env::temp_dir(), supervisor };
//! let request = Request {
//!     name: "suite::case#1".to_owned(),
//!     fixtures: Arc::default(),
//!     skill: None,
//!     graded: model::Graded::default(),
//!     repository: RepositoryDetail::After,
//!     source_repo: None,
//!     remote: model::RemoteMode::Isolated,
//!     extra_env: Vec::new(),
//!     setup_timeout: Duration::from_secs(60),
//!     network: Network::Open,
//!     faults: Vec::new(),
//!     canaries: Vec::new(),
//!     keep: false,
//!     only_graded: false,
//! };
//! let sandbox = SandboxFactory::open("local", &host)?.make(request).await?;
//! std::fs::write(sandbox.work().join("hello.txt"), "Hello.")?;
//! let collected = sandbox.collect().await?;
//! assert_eq!(collected.files_changed[0].path, "hello.txt");
//! sandbox.close().await?;
//! # Ok(())
//! # }
//! ```

mod blocking;
mod breakage;
mod canaries;
mod confinement;
mod container;
mod copy;
mod damage;
mod daytona;
mod deadline;
mod digest;
mod disk_space;
mod enclosure;
mod environment;
mod faults;
mod git;
mod git_state;
mod given;
mod host;
mod inspection;
mod installation;
mod integrity;
mod isolated;
mod key;
mod local;
mod mock_programs;
pub mod out_of_memory;
mod outside;
mod outward_links;
mod owner;
mod parallel;
mod parent_files;
mod patch;
mod program;
pub mod prune;
mod rebuild;
mod registry;
pub mod remote;
mod removal;
mod repository;
mod review_requests;
mod service;
mod setup;
mod snapshot;
pub mod steering;
pub mod supervise;
mod template;
mod tree;
mod tree_copy;
mod unpack;
mod unreadable;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::future::Future;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use model::{
    Canary, Collected, Diagnostic, Excerpt, FaultAction, FaultOccurrence, FaultReport, Fixtures, Graded, MockNames,
    NetworkPolicy, RemoteMode, Skill,
};

use crate::supervise::{Limits, Listeners, Network};

pub use breakage::Breakage;
pub use canaries::canaries_of;
pub use copy::{SandboxCopy, Stamps};
pub use damage::ruin;
pub use daytona::DaytonaOptions;
pub use disk_space::DiskWatch;
pub use environment::PASSED_ON as INHERITED_VARIABLES;
pub use faults::{fake_clock, fault_refusal};
pub use host::Host;
pub use mock_programs::MockPrograms;
pub use owner::{has_ended as process_has_ended, host_name, mark as process_mark};
pub use parent_files::{ParentFile, parent_files};
pub use program::find_program;
pub use registry::Registry;
pub use repository::without_sign_in;

/// A boxed future, so that traits with async functions can be used as trait objects.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// All kinds of sandbox, in display order.
pub static SANDBOXES: &[&dyn SandboxKind] =
    &[&local::Local, &isolated::Isolated, &container::DOCKER, &container::PODMAN, &daytona::Daytona];

/// Returns the sandbox kind with this name.
pub fn find(name: &str) -> Option<&'static dyn SandboxKind> {
    SANDBOXES.iter().find(|kind| kind.name() == name).copied()
}

/// Returns the reason why agents in this kind of sandbox cannot push to such a remote, and a hint.
pub fn remote_refusal(kind: &dyn SandboxKind, remote: RemoteMode) -> Option<(String, String)> {
    if remote == RemoteMode::Real || !kind.has_own_system() {
        return None;
    }
    let reason = format!(
        "`{}` sandboxes do not support `remote: isolated`: its git transport, `gh` and `glab` are programs of this \
         machine",
        kind.name()
    );
    Some((reason, "write `sandbox: {remote: real}`, or use `local` or `isolated` sandboxes".to_owned()))
}

/// Returns the reason why mocks cannot be used in this kind of sandbox, and a hint.
pub fn mock_refusal(kind: &dyn SandboxKind) -> Option<(String, String)> {
    if !kind.has_own_system() && !kind.is_remote() {
        return None;
    }
    let reason = format!("programs that stand for mocks cannot run in `{}` sandboxes", kind.name());
    Some((reason, "use `isolated` or `local` sandboxes".to_owned()))
}

/// Returns the reason why a case with these fixtures and commands cannot have its folders in this kind of sandbox, and a
/// hint.
pub fn place_refusal(kind: &dyn SandboxKind, fixtures: &Fixtures, graded: &Graded) -> Option<(String, String)> {
    let path = outside::paths(fixtures, graded).next().filter(|_| !kind.has_places())?;
    let reason =
        format!("`{}` sandboxes cannot have folders at absolute paths, such as `{}`", kind.name(), path.display());
    Some((
        reason,
        "use `isolated`, `docker` or `podman` sandboxes, such as with `sandbox: isolated` in the configuration"
            .to_owned(),
    ))
}

/// Returns the reason why a case that needs an image of its own does not run in this kind of sandbox.
pub fn image_refusal(kind: &dyn SandboxKind, needs_image: &[Diagnostic]) -> Option<String> {
    let needed = needs_image.first().filter(|_| !kind.has_own_system())?;
    let place = needed.source.as_ref().map(|place| format!(" ({}:{})", place.file, place.line)).unwrap_or_default();
    Some(format!(
        "{}{place}, and `{}` sandboxes have the programs of this machine: use `docker` or `podman` sandboxes, with an \
         image that has it",
        needed.message,
        kind.name()
    ))
}

/// A kind of sandbox.
pub trait SandboxKind: Send + Sync {
    /// Returns the name of the kind in files and on the command line.
    fn name(&self) -> &'static str;

    /// Returns a one-line description.
    fn summary(&self) -> &'static str;

    /// Returns `true` if processes see a different system than this machine's, with its own programs.
    fn has_own_system(&self) -> bool {
        false
    }

    /// Returns `true` if processes run on another machine. Agents that use files on this machine cannot work there.
    fn is_remote(&self) -> bool {
        false
    }

    /// Returns `true` if it isolates processes from the machine.
    fn isolates(&self) -> bool {
        true
    }

    /// Returns `true` if processes can see folders at absolute paths that a case chooses.
    fn has_places(&self) -> bool {
        false
    }

    /// Returns the missing setting without which such sandboxes cannot be created, if there is one.
    fn missing(&self, host: &Host, options: &SandboxOptions) -> Option<String> {
        let _ = (host, options);
        None
    }

    /// Returns a description of the image that the settings do not name, if such sandboxes are made from one.
    fn missing_image(&self, options: &SandboxOptions) -> Option<String> {
        let _ = options;
        None
    }

    /// Returns the state of the program on this machine that runs the processes, if there is one.
    fn engine(&self, host: &Host, options: &SandboxOptions) -> Option<EngineState> {
        let _ = (host, options);
        None
    }

    /// Prepares to create sandboxes for one run. Every directory is entered in `registry` before it is created.
    ///
    /// # Errors
    /// Returns an error if this machine cannot hold sandboxes of this kind.
    fn open(
        &self,
        host: &Host,
        registry: &Arc<Registry>,
        options: &SandboxOptions,
    ) -> Result<Box<dyn SandboxBackend>, SandboxError>;

    /// Finds what earlier runs on this machine left behind outside its file system, if no process uses it any more.
    ///
    /// # Errors
    /// Returns an error if this cannot be determined.
    fn leftovers(&self, host: &Host, options: &SandboxOptions) -> Result<Vec<Leftover>, SandboxError> {
        let _ = (host, options);
        Ok(Vec::new())
    }

    /// Removes one of the [`leftovers`](Self::leftovers).
    ///
    /// # Errors
    /// Returns an error if it cannot be removed.
    fn remove_leftover(&self, host: &Host, options: &SandboxOptions, leftover: &Leftover) -> Result<(), SandboxError> {
        let _ = (host, options, leftover);
        Ok(())
    }
}

/// A program on this machine that runs the processes of sandboxes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineState {
    /// Its version and path, if it was found.
    pub found: Option<String>,
    /// Reason why it does not work, if so.
    pub problem: Option<String>,
    /// Setting without which it cannot be used, if it is missing.
    pub missing: Option<String>,
}

/// Something that a run left behind outside the file system of this machine: a container or a remote sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leftover {
    /// Name that identifies it for removal.
    pub name: String,
    /// Mark of the process that created it, which has ended.
    pub owner: String,
}

/// Creates the sandboxes of one run. Shared work is done once, and its result lives as long as the backend.
pub trait SandboxBackend: Send + Sync {
    /// Creates a sandbox. If this fails or the future is dropped, everything is removed, unless the sandbox is to be
    /// kept.
    fn make(&self, request: Request) -> BoxFuture<'_, Result<Arc<dyn Sandbox>, SandboxError>>;

    /// Returns the isolation of its sandboxes from the machine.
    fn isolation(&self) -> model::Isolation;
}

/// The sandbox of one trial. Dropping the last reference removes it, unless it must be kept.
pub trait Sandbox: Send + Sync {
    /// Returns the agent's working directory: absolute, with links resolved.
    fn work(&self) -> &Path;

    /// Returns the agent's home directory.
    fn home(&self) -> &Path;

    /// Returns the agent's directory for temporary files.
    fn tmp(&self) -> &Path;

    /// Returns the bare copy of the source repository to which the agent pushes; `None` if it pushes to the real one.
    fn remote(&self) -> Option<PathBuf> {
        None
    }

    /// Returns the locations of these directories, without any content.
    fn places(&self) -> Collected {
        let [sandbox, home, tmp] =
            [self.work(), self.home(), self.tmp()].map(|path| Some(path.to_string_lossy().into_owned()));
        Collected { sandbox, home, tmp, ..Collected::default() }
    }

    /// Returns the environment of processes in the sandbox: the allowed variables of the host, then `extra`, then the
    /// fixture's own variables. Later ones override earlier ones.
    fn env(&self, extra: &[(String, String)]) -> BTreeMap<String, String>;

    /// Returns a supervised command that runs in [`work`](Self::work) with [`env`](Self::env). Start it with
    /// [`Contained::spawn`](crate::supervise::Contained::spawn) or [`supervise::run`](crate::supervise::run()). The
    /// caller sets its streams.
    fn command(&self, program: &OsStr, args: &[&OsStr], extra: &[(String, String)]) -> tokio::process::Command;

    /// Lets later processes in the sandbox read a file or folder on this machine. Without this call, the processes of
    /// an isolated sandbox see only the sandbox, the system and the program that is started.
    fn show(&self, path: &Path) {
        let _ = path;
    }

    /// Returns the paths of all calls to [`show`](Self::show).
    fn shown(&self) -> Vec<PathBuf> {
        Vec::new()
    }

    /// Returns the shell that its processes find in their system.
    fn shell(&self) -> &Path {
        machine_shell()
    }

    /// Returns `true` if its processes see a different system than this machine's, with its own programs.
    fn has_own_system(&self) -> bool {
        false
    }

    /// Returns the reason why it cannot allow some hosts and block the others, if so. [`serve`](Self::serve) has no
    /// effect then.
    fn refuses_hosts(&self) -> Option<String> {
        None
    }

    /// Opens a proxy and `ports` on the loopback interface of later processes, for connections that the caller serves.
    /// Returns `None` if the processes use the machine's network. Without this call, isolated processes with a closed
    /// network reach nothing.
    ///
    /// # Errors
    /// Returns an error if the machine does not allow it.
    fn serve(&self, ports: &[u16]) -> Result<Option<Listeners>, SandboxError> {
        let _ = ports;
        Ok(None)
    }

    /// Creates programs that stand for mocked MCP servers and mocked programs. Later processes find the mocked programs
    /// first.
    ///
    /// # Errors
    /// Returns an error if its processes cannot run programs of this machine, or if they cannot be created.
    fn mock(&self, names: &MockNames) -> Result<MockPrograms, SandboxError> {
        let _ = names;
        let reason = "their processes cannot run programs of this machine".to_owned();
        Err(SandboxError::Refused { kind: "remote", reason })
    }

    /// Checks that it can still run processes.
    ///
    /// # Errors
    /// Returns an error if the program or service behind it has stopped.
    fn check(&self) -> BoxFuture<'_, Result<(), SandboxError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// Returns reports on the faults of its processes and files so far, and their individual occurrences.
    fn faults(&self) -> (Vec<FaultReport>, Vec<FaultOccurrence>) {
        (Vec::new(), Vec::new())
    }

    /// Returns the absolute paths of the files and folders that the agent cannot change because of a fault.
    fn read_only(&self) -> Vec<PathBuf> {
        Vec::new()
    }

    /// Returns the real paths of its folders outside of the working directory, which the agent can change.
    fn outside(&self) -> Vec<PathBuf> {
        Vec::new()
    }

    /// Returns the paths, relative to the working directory, of planted files that the agent did not change. They do
    /// not count as the agent's.
    fn planted(&self) -> Vec<String> {
        Vec::new()
    }

    /// Returns the texts that the agent left behind, with their names: its changed files and the new git objects, as
    /// described by `collected`.
    fn texts<'s>(&'s self, collected: &'s Collected) -> BoxFuture<'s, Vec<(String, String)>> {
        let _ = collected;
        Box::pin(std::future::ready(Vec::new()))
    }

    /// Collects the current content and compares it with the content at creation.
    fn collect(&self) -> BoxFuture<'_, Result<Collected, SandboxError>>;

    /// Returns the changes since creation, as described by `collected`, as a patch; `None` if git cannot make one.
    fn patch<'s>(&'s self, collected: &'s Collected) -> BoxFuture<'s, Option<String>>;

    /// Returns `true` if there was a file at `path`, relative to the working directory, and it may have been changed since,
    /// other than one that the case lets the agent change.
    fn may_have_changed(&self, path: &Path) -> bool {
        let _ = path;
        false
    }

    /// Copies the current sandbox, for commands whose effects must not remain in it.
    fn copy(&self) -> BoxFuture<'_, Result<SandboxCopy, SandboxError>>;

    /// Copies a grading tree of this sandbox in which no command has run, for a command whose effects others must not
    /// find.
    fn fork<'s>(&'s self, copy: &'s SandboxCopy) -> BoxFuture<'s, Result<SandboxCopy, SandboxError>> {
        Box::pin(copy.fork())
    }

    /// Removes the sandbox, unless it must be kept. Closing it twice is allowed.
    fn close(&self) -> BoxFuture<'_, Result<(), SandboxError>>;
}

/// Returns the shell of this machine.
fn machine_shell() -> &'static Path {
    let bash = Path::new("/bin/bash");
    if bash.exists() { bash } else { Path::new("/bin/sh") }
}

/// Description of a sandbox to create.
#[derive(Debug, Clone)]
pub struct Request {
    /// Name of the attempt, which is unique in the run. Remote sandboxes are named after it.
    pub name: String,
    /// Files and repository. All trials of a case share it, so that its template is built only once.
    pub fixtures: Arc<Fixtures>,
    /// Skill to install, and the agent's directory for skills relative to its working directory.
    pub skill: Option<(Arc<Skill>, String)>,
    /// Trees in which commands work.
    pub graded: Graded,
    /// Part of the repository's state to record.
    pub repository: RepositoryDetail,
    /// Repository to clone into the sandbox; the fixtures are added on top.
    pub source_repo: Option<String>,
    /// Remote that the agent pushes to, if there is a source repository.
    pub remote: RemoteMode,
    /// Additional variables, such as the credentials for the source repository.
    pub extra_env: Vec<(String, String)>,
    /// Timeout of each setup command.
    pub setup_timeout: Duration,
    /// Network of its processes, if they are isolated.
    pub network: Network,
    /// Faults of its processes and files.
    pub faults: Vec<FaultAction>,
    /// Fake keys to plant.
    pub canaries: Vec<Canary>,
    /// Keep the directory when the sandbox is closed.
    pub keep: bool,
    /// True if commands run only in its [grading trees](Sandbox::copy).
    pub only_graded: bool,
}

/// Part of a repository's state that a sandbox records. Each one requires processes running git.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RepositoryDetail {
    /// Nothing, because the state is not needed.
    Nothing,
    /// Its state after the agent has finished.
    #[default]
    After,
    /// Its state and that of its remotes, before the agent starts and after it has finished.
    Changes,
}

/// Isolation settings, for kinds of sandbox that isolate processes.
#[derive(Debug, Clone, Default)]
pub struct SandboxOptions {
    /// Folders that processes must not see: the project, its record, its suites and skills.
    pub private: Vec<PathBuf>,
    /// Files and folders that processes may read in addition to the system.
    pub visible: Vec<PathBuf>,
    /// Policy for trials whose case does not set one.
    pub network: NetworkPolicy,
    /// Limits on resources.
    pub limits: Limits,
    /// Image for containers.
    pub image: Option<String>,
    /// Settings for remote sandboxes.
    pub daytona: DaytonaOptions,
}

/// Creates the sandboxes of a run, of one kind.
pub struct SandboxFactory {
    kind: &'static dyn SandboxKind,
    backend: Box<dyn SandboxBackend>,
}

impl SandboxFactory {
    /// Prepares to create sandboxes of the kind `name`, with a new registry.
    ///
    /// # Errors
    /// Returns an error if the kind is unknown, or if this machine cannot hold sandboxes of this kind.
    pub fn open(name: &str, host: &Host) -> Result<Self, SandboxError> {
        Self::open_with(name, host, &Registry::new())
    }

    /// Like [`open`](Self::open), with a registry whose owner removes everything when the run is aborted.
    ///
    /// # Errors
    /// See [`open`](Self::open).
    pub fn open_with(name: &str, host: &Host, registry: &Arc<Registry>) -> Result<Self, SandboxError> {
        Self::open_isolated(name, host, registry, &SandboxOptions::default())
    }

    /// Like [`open_with`](Self::open_with), with isolation settings.
    ///
    /// # Errors
    /// See [`open`](Self::open).
    pub fn open_isolated(
        name: &str,
        host: &Host,
        registry: &Arc<Registry>,
        options: &SandboxOptions,
    ) -> Result<Self, SandboxError> {
        let kind = find(name).ok_or_else(|| SandboxError::Unknown { name: name.to_owned() })?;
        Ok(Self { kind, backend: kind.open(host, registry, options)? })
    }

    /// Returns the isolation of the sandboxes from the machine.
    pub fn isolation(&self) -> model::Isolation {
        self.backend.isolation()
    }

    /// Creates a sandbox.
    ///
    /// # Errors
    /// Returns an error if the sandbox cannot be created as requested. In that case everything is removed, unless it
    /// is to be kept.
    pub async fn make(&self, request: Request) -> Result<Arc<dyn Sandbox>, SandboxError> {
        // Plans reject such requests. Without this check, other callers would get less isolation than they requested.
        let remote = request.source_repo.is_some().then_some(request.remote);
        let refusal = remote.and_then(|remote| remote_refusal(self.kind, remote));
        let mut faults = request.faults.iter();
        let refusal = refusal.or_else(|| faults.find_map(|fault| fault_refusal(self.kind.name(), fault)));
        match refusal {
            Some((reason, _)) => Err(SandboxError::Refused { kind: self.kind.name(), reason }),
            None => self.backend.make(request).await,
        }
    }

    /// Creates an empty sandbox and removes it, to find out whether sandboxes can be created.
    ///
    /// # Errors
    /// Returns an error if they cannot.
    pub async fn try_out(&self, setup_timeout: Duration) -> Result<(), SandboxError> {
        let request = Request {
            name: "trial".to_owned(),
            fixtures: Arc::default(),
            skill: None,
            graded: Graded::default(),
            repository: RepositoryDetail::Nothing,
            source_repo: None,
            remote: RemoteMode::Real,
            extra_env: Vec::new(),
            setup_timeout,
            network: Network::None,
            faults: Vec::new(),
            canaries: Vec::new(),
            keep: false,
            only_graded: false,
        };
        let sandbox = self.make(request).await?;
        let checked = sandbox.check().await;
        sandbox.close().await.and(checked)
    }
}

/// Error when creating or inspecting a sandbox. Not the agent's fault, unless the agent damaged the sandbox.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// There is no kind with this name.
    #[error("unknown sandbox `{name}`")]
    Unknown {
        /// Name as written by the user.
        name: String,
    },
    /// The service behind a sandbox kind failed.
    #[error("`{kind}` sandboxes: {reason}")]
    Service {
        /// Name of the kind.
        kind: &'static str,
        /// Action that failed.
        reason: String,
        /// True if a retry would fail in the same way.
        is_final: bool,
    },
    /// Sandboxes of this kind cannot be made with these settings on this machine.
    #[error("`{kind}` sandboxes cannot be made here: {reason}")]
    Refused {
        /// Name of the kind.
        kind: &'static str,
        /// The missing setting, or what the machine refuses.
        reason: String,
    },
    /// An operation on the file system failed.
    #[error("cannot {doing}: {source}")]
    Io {
        /// Attempted operation, with its path.
        doing: String,
        /// Error from the system.
        source: io::Error,
    },
    /// The fixture requires something that sandboxes do not support.
    #[error("{reason}")]
    Fixture {
        /// Description and reason.
        reason: String,
        /// Location in the user's file.
        source_line: Option<Box<Excerpt>>,
    },
    /// A git command that the fixture needs failed.
    #[error("{reason}")]
    Git {
        /// Attempted operation and git's message.
        reason: String,
        /// Location of the fixtures block.
        source_line: Option<Box<Excerpt>>,
    },
    /// A setup command failed.
    #[error("setup command `{command}` {how}{}", if stderr.is_empty() { String::new() } else { format!(": {stderr}") })]
    Setup {
        /// Command as written.
        command: String,
        /// Reason: `failed with exit code 3`, `was ended after 60 s (setup_timeout)`.
        how: String,
        /// True if it exited on its own.
        exited: bool,
        /// End of its stderr.
        stderr: String,
        /// Location of the fixtures block.
        source_line: Option<Box<Excerpt>>,
    },
    /// Creation failed, and the incomplete sandbox was kept.
    #[error("{error}; the sandbox is kept in {}", work.display())]
    Kept {
        /// Error that stopped the creation.
        #[source]
        error: Box<SandboxError>,
        /// The agent's working directory.
        work: PathBuf,
    },
    /// The agent left nothing to inspect.
    #[error("{reason}")]
    Ruined {
        /// Description of the agent's action.
        reason: String,
    },
    /// The run is ending and nothing new is created.
    #[error("the run is ending")]
    Ending,
}

impl SandboxError {
    /// Returns the location in the user's file that caused the error, if any.
    pub fn excerpt(&self) -> Option<&Excerpt> {
        match self {
            Self::Fixture { source_line, .. } | Self::Git { source_line, .. } | Self::Setup { source_line, .. } => {
                source_line.as_deref()
            }
            Self::Kept { error, .. } => error.excerpt(),
            Self::Unknown { .. }
            | Self::Service { .. }
            | Self::Refused { .. }
            | Self::Io { .. }
            | Self::Ruined { .. }
            | Self::Ending => None,
        }
    }

    /// Returns `true` if another attempt would fail in the same way, because the cause is in the suite rather than the
    /// machine, a remote or a timeout.
    fn is_final(&self) -> bool {
        match self {
            Self::Unknown { .. } | Self::Refused { .. } | Self::Fixture { .. } => true,
            Self::Service { is_final, .. } => *is_final,
            Self::Setup { exited, .. } => *exited,
            Self::Kept { error, .. } => error.is_final(),
            Self::Io { .. } | Self::Git { .. } | Self::Ruined { .. } | Self::Ending => false,
        }
    }

    fn kept_in(self, work: &Path) -> Self {
        Self::Kept { error: Box::new(self), work: work.to_owned() }
    }

    fn io(doing: impl Into<String>, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let doing = format!("{} {}", doing.into(), path.display());
        move |source| Self::Io { doing, source }
    }

    fn fixture(reason: impl Into<String>, source: Option<&Excerpt>) -> Self {
        Self::Fixture { reason: reason.into(), source_line: source.cloned().map(Box::new) }
    }
}

impl From<SandboxError> for Breakage {
    fn from(error: SandboxError) -> Self {
        let breakage = Self::environment(error.to_string());
        let breakage = if error.is_final() { breakage.for_good() } else { breakage };
        breakage.caused_by(error)
    }
}
