//! Sandboxes: where agents work, with the processes in them. One kind a file, one line in [`SANDBOXES`].

mod absent;
mod breakage;
mod environment;
mod git;
mod glance;
mod host;
mod inspection;
mod key;
mod local;
mod owner;
mod patch;
mod patience;
pub mod prune;
mod registry;
mod removal;
mod repository;
mod review_requests;
pub mod room;
mod shares;
mod snapshot;
pub mod supervise;
mod template;
mod tree;
mod twin;
mod unpack;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::future::Future;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use model::{Collected, Excerpt, Fixtures, Skill};

pub use breakage::Breakage;
pub use host::Host;
pub use registry::Registry;
pub use twin::Twin;

/// A future behind a pointer, so that traits with async functions can be used as objects.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Every kind of sandbox, in the order users see them.
pub static SANDBOXES: &[&dyn SandboxKind] = &[&local::Local];

/// Kinds that projects ask for and that this version cannot make: a trial that needs one is broken.
pub static ABSENT: &[&dyn SandboxKind] = &[&absent::Absent("daytona")];

/// A kind of sandbox.
pub trait SandboxKind: Send + Sync {
    /// Its name in files and on the command line.
    fn name(&self) -> &'static str;

    /// What it is, in one line.
    fn summary(&self) -> &'static str;

    /// Makes ready to make sandboxes for one run. Everything that is made is entered in `registry` beforehand.
    ///
    /// # Errors
    /// When this machine has no place for them.
    fn open(&self, host: &Host, registry: &Arc<Registry>) -> Result<Box<dyn Maker>, SandboxError>;
}

/// Makes the sandboxes of one run; what they have in common is done once and lives as long as this.
pub trait Maker: Send + Sync {
    /// Makes a sandbox. Nothing is left of it when that fails or the future is dropped, unless it is to be kept.
    fn make(&self, request: Request) -> BoxFuture<'_, Result<Arc<dyn Sandbox>, SandboxError>>;
}

/// A place for one trial. Dropping the last reference removes it, unless it is to be kept.
pub trait Sandbox: Send + Sync {
    /// Where the agent works: absolute, links resolved.
    fn work(&self) -> &Path;

    /// The agent's home.
    fn home(&self) -> &Path;

    /// The agent's directory for temporary files.
    fn tmp(&self) -> &Path;

    /// The environment of processes in it: what the machine lends, then `extra`, then the fixture's own variables,
    /// each going before what was there.
    fn env(&self, extra: &[(String, String)]) -> BTreeMap<String, String>;

    /// A supervised command that runs in [`work`](Self::work) with [`env`](Self::env); to be started with
    /// [`Contained::spawn`](crate::supervise::Contained::spawn) or [`supervise::run`](crate::supervise::run()). Its
    /// streams are the caller's to set.
    fn command(&self, program: &OsStr, args: &[&OsStr], extra: &[(String, String)]) -> tokio::process::Command;

    /// What is in it now, compared with what was in it when it was made.
    fn collect(&self) -> BoxFuture<'_, Result<Collected, SandboxError>>;

    /// What changed since it was made, of which `collected` tells, as a patch; `None` where git cannot tell.
    fn patch<'s>(&'s self, collected: &'s Collected) -> BoxFuture<'s, Option<String>>;

    /// A copy of it as it is now, for commands whose doing is to leave no trace in it.
    fn copy(&self) -> BoxFuture<'_, Result<Twin, SandboxError>>;

    /// Removes it, unless it is to be kept. Closing twice is no mistake.
    fn close(&self) -> BoxFuture<'_, Result<(), SandboxError>>;
}

/// What a sandbox is to hold.
#[derive(Debug, Clone)]
pub struct Request {
    /// The files and the repository. Shared by every trial of a case, so that what it describes is built once.
    pub fixtures: Arc<Fixtures>,
    /// A skill to install, and the agent's folder for skills, relative to where it works.
    pub skill: Option<(Arc<Skill>, String)>,
    /// Look at the repository and its remotes before the agent comes, to tell afterwards what became of them.
    pub watch_repository: bool,
    /// A repository that the sandbox is a clone of; the fixtures come on top of it.
    pub source_repo: Option<String>,
    /// Variables beside those that every sandbox has, such as what signs in at the source repository.
    pub lent: Vec<(String, String)>,
    /// How long each setup command may take.
    pub setup_timeout: Duration,
    /// Leave it where it is when it is closed.
    pub keep: bool,
}

/// Makes the sandboxes of a run, of whatever kind.
pub struct Workshop {
    maker: Box<dyn Maker>,
}

impl Workshop {
    /// Makes ready for sandboxes of the kind `name`, entered in a registry of its own.
    ///
    /// # Errors
    /// When there is no such kind, or this machine has no place for it.
    pub fn open(name: &str, host: &Host) -> Result<Self, SandboxError> {
        Self::open_with(name, host, &Registry::new())
    }

    /// As [`open`](Self::open), with a registry whose owner removes everything when the run ends badly.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_with(name: &str, host: &Host, registry: &Arc<Registry>) -> Result<Self, SandboxError> {
        let kind = find(name).ok_or_else(|| SandboxError::Unknown { name: name.to_owned() })?;
        Ok(Self { maker: kind.open(host, registry)? })
    }

    /// Makes a sandbox.
    ///
    /// # Errors
    /// When it cannot be made as the request says. Nothing is left of it then, unless it is to be kept.
    pub async fn make(&self, request: Request) -> Result<Arc<dyn Sandbox>, SandboxError> {
        self.maker.make(request).await
    }
}

/// The kind of sandbox with this name, be it one that cannot be made.
pub fn find(name: &str) -> Option<&'static dyn SandboxKind> {
    SANDBOXES.iter().chain(ABSENT).copied().find(|kind| kind.name() == name)
}

/// Why there is no sandbox, or nothing to be learned from it. Not the agent's fault, unless it ruined the sandbox.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// No kind has this name.
    #[error("there is no sandbox `{name}`")]
    Unknown {
        /// As written.
        name: String,
    },
    /// The kind is known, and this version cannot make it.
    #[error("the trial needs a sandbox, and this version cannot make one of the kind `{name}`")]
    Absent {
        /// The kind.
        name: &'static str,
    },
    /// The file system refused something.
    #[error("cannot {doing}: {source}")]
    Io {
        /// What was tried, with the path.
        doing: String,
        /// What the system says.
        source: io::Error,
    },
    /// The fixture asks for something that a sandbox does not do.
    #[error("{because}")]
    Fixture {
        /// What and why.
        because: String,
        /// The user's line.
        source_line: Option<Box<Excerpt>>,
    },
    /// Git did not do what the fixture needs.
    #[error("{because}")]
    Git {
        /// What was tried and what git says.
        because: String,
        /// The user's block.
        source_line: Option<Box<Excerpt>>,
    },
    /// A setup command failed.
    #[error("setup command `{command}` {how}{}", if stderr.is_empty() { String::new() } else { format!(": {stderr}") })]
    Setup {
        /// As written.
        command: String,
        /// `failed with exit code 3`, `was ended after 60 s (setup_timeout)`.
        how: String,
        /// True if it exited by itself.
        exited: bool,
        /// The end of what it wrote to stderr.
        stderr: String,
        /// The user's block.
        source_line: Option<Box<Excerpt>>,
    },
    /// It was not made to its end, and what there is of it was to be kept.
    #[error("{error}; the sandbox is kept in {}", work.display())]
    Kept {
        /// Why it was not made to its end.
        error: Box<SandboxError>,
        /// Where the agent would have worked.
        work: PathBuf,
    },
    /// The agent left nothing that could be looked at.
    #[error("{because}")]
    Ruined {
        /// The agent's action.
        because: String,
    },
    /// The run is being ended, and nothing new is made.
    #[error("the run is ending")]
    Ending,
}

impl SandboxError {
    /// The user's line that is to blame, if one is.
    pub fn excerpt(&self) -> Option<&Excerpt> {
        match self {
            Self::Fixture { source_line, .. } | Self::Git { source_line, .. } | Self::Setup { source_line, .. } => {
                source_line.as_deref()
            }
            Self::Kept { error, .. } => error.excerpt(),
            Self::Unknown { .. } | Self::Absent { .. } | Self::Io { .. } | Self::Ruined { .. } | Self::Ending => None,
        }
    }

    /// True if the sandbox of another attempt would fail in the same way: what is written in the suite is to blame, and
    /// not the machine, a remote or the clock.
    fn is_final(&self) -> bool {
        match self {
            Self::Unknown { .. } | Self::Absent { .. } | Self::Fixture { .. } => true,
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

    fn fixture(because: impl Into<String>, source: Option<&Excerpt>) -> Self {
        Self::Fixture { because: because.into(), source_line: source.cloned().map(Box::new) }
    }
}

impl From<SandboxError> for Breakage {
    fn from(error: SandboxError) -> Self {
        let breakage = Self::environment(error.to_string());
        if error.is_final() { breakage.for_good() } else { breakage }
    }
}
