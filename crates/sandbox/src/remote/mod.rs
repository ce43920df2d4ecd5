//! The remote of one trial: a bare copy of the source repository, and stand-ins for the service that hosts it.
//!
//! ```text
//! <sandbox>/remote.git     bare copy, which the agent can write to
//! <sandbox>/bin/           stand-ins for `gh`, `glab` and git's transports; `service` is the socket of the harness
//! ```
//!
//! The agent sees the address of the source repository. Whatever it pushes there arrives in the copy. Pull requests are
//! recorded in this process, where the agent can change them only in the ways that the real service allows.

mod address;
mod programs;
mod protocol;
mod service;
mod source;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use model::{IntegrityKind, IntegritySign, RemoteState};

use super::SandboxError;
use super::blocking::blocking;
use super::inspection::{Inspection, Unreadable};

pub use protocol::{Draft, Item, ItemChange, ItemKind, ItemState, Members, Program, Project, Request, Response, ask};
use service::Service;
pub(super) use source::{RemoteSource, RemoteSources};

/// Name of the bare copy within a sandbox.
pub(super) const COPY: &str = "remote.git";
/// Name of the folder of programs within a sandbox.
pub(super) const BIN: &str = "bin";
/// Name of the socket within the folder of programs.
const SERVICE: &str = "service";

/// Variable with git settings, each quoted.
const SETTINGS_VARIABLE: &str = "GIT_CONFIG_PARAMETERS";

/// Files and folders through which an agent could change what the copy does or contains.
const SETTINGS: [&str; 3] = ["hooks", "objects/info/alternates", "info/grafts"];

/// Script that prints the branches with their commits, and those of the commits that exist.
const BRANCHES: &str = r#"
g for-each-ref --format='%(objectname) %(refname:strip=2)' refs/heads
echo
g for-each-ref --format='%(objectname)' refs/heads | g cat-file --batch-check='%(objectname) %(objecttype)'
"#;

/// The remote of a trial.
#[derive(Debug)]
pub(super) struct RemoteCopy {
    source: Arc<RemoteSource>,
    /// The sandbox's directory.
    base: PathBuf,
    /// This program.
    trialrun: PathBuf,
    service: Service,
}

impl RemoteCopy {
    /// Copies `source` into the sandbox at `base`, and installs the programs.
    pub(super) async fn make(source: Arc<RemoteSource>, base: &Path, trialrun: &Path) -> Result<Self, SandboxError> {
        let (from, to) = (Arc::clone(&source), base.join(COPY));
        blocking(move || {
            std::fs::create_dir(&to).map_err(SandboxError::io("make the directory", &to))?;
            from.copy(&to)
        })
        .await?;
        let service = Service::new(&source, &base.join(COPY));
        let copy = Self { source, base: base.to_owned(), trialrun: trialrun.to_owned(), service };
        copy.install(&copy.base.join(BIN)).await?;
        Ok(copy)
    }

    /// Creates the folder of programs. They use the service of this trial.
    pub(super) async fn install(&self, bin: &Path) -> Result<(), SandboxError> {
        let (to, source, trialrun) = (bin.to_owned(), Arc::clone(&self.source), self.trialrun.clone());
        blocking(move || {
            let installed = programs::install(&to, &source.address, &trialrun, &source.programs);
            installed.map_err(SandboxError::io("write the programs in", &to))
        })
        .await?;
        let socket = bin.join(SERVICE);
        self.service.listen(&socket).map_err(SandboxError::io("listen at", &socket))
    }

    /// Returns the bare copy.
    pub(super) fn path(&self) -> PathBuf {
        self.base.join(COPY)
    }

    /// Returns the folder of programs.
    pub(super) fn bin(&self) -> PathBuf {
        self.base.join(BIN)
    }

    /// Returns the path of this program, which the stand-ins start.
    pub(super) fn trialrun(&self) -> &Path {
        &self.trialrun
    }

    /// Changes the environment of processes so that they use the copy and the stand-ins.
    pub(super) fn add_to(&self, env: &mut BTreeMap<String, String>) {
        self.add_from(&self.base, env);
    }

    /// Does the same with the bare copy and the stand-ins in `base`, a copy of the sandbox.
    pub(super) fn add_from(&self, base: &Path, env: &mut BTreeMap<String, String>) {
        let text = |path: PathBuf| path.to_string_lossy().into_owned();
        let folder = base.join(BIN);
        let bin = text(folder.clone());
        let path = env.get("PATH").filter(|path| !path.is_empty()).map_or("/usr/bin:/bin", String::as_str);
        env.insert("PATH".to_owned(), format!("{bin}:{path}"));
        if self.source.folders.is_empty() {
            env.insert("GIT_EXEC_PATH".to_owned(), text(folder.join(programs::GIT)));
            let ssh = text(folder.join(programs::SSH).join("ssh"));
            env.insert("GIT_SSH_COMMAND".to_owned(), model::text::shell_quoted(&ssh));
            env.insert("GIT_SSH_VARIANT".to_owned(), "ssh".to_owned());
            return;
        }
        // A folder has no transport that could be replaced.
        let key = format!("url.{}.insteadOf", text(base.join(COPY)));
        let settings = self.source.folders.iter().map(|own| model::text::shell_quoted(&format!("{key}={own}")));
        let settings: Vec<String> = env.remove(SETTINGS_VARIABLE).into_iter().chain(settings).collect();
        env.insert(SETTINGS_VARIABLE.to_owned(), settings.join(" "));
    }

    /// Returns `true` if the address of the source repository is a folder.
    pub(super) fn is_folder(&self) -> bool {
        !self.source.folders.is_empty()
    }

    /// Returns `true` if `url` is the address of the source repository.
    pub(super) fn is_at(&self, url: &str) -> bool {
        address::is_same(&self.source.address, url)
    }

    /// Returns the state before the agent started.
    pub(super) fn before(&self, url: String) -> RemoteState {
        RemoteState {
            url,
            branches: Some(self.source.branches.clone()),
            review_requests: Some(Vec::new()),
            is_isolated: true,
            ..RemoteState::default()
        }
    }

    /// Returns the current state. A copy that the agent has damaged has no branches, as if it had deleted them.
    pub(super) async fn now(&self, url: String, git: &Inspection<'_>, work: &Path) -> RemoteState {
        let mut state = self.before(url);
        match self.branches(git, work).await {
            Ok(branches) => state.branches = Some(branches),
            Err(Unreadable::Left(_) | Unreadable::Late(_)) => state.branches = Some(BTreeMap::new()),
            Err(Unreadable::Machine(reason)) => {
                state.branches = None;
                state.unknown.push(format!("branches of the trial's remote: {reason}"));
            }
        }
        state.review_requests = Some(self.service.review_requests());
        state.unsupported = self.service.unsupported();
        state
    }

    async fn branches(&self, git: &Inspection<'_>, work: &Path) -> Result<BTreeMap<String, String>, Unreadable> {
        let copy = self.path();
        let output = git.view_of(work, Some(copy), Some(&self.source.bare)).await?.script(BRANCHES, &[]).await?;
        let mut parts = output.split(|line| line.is_empty());
        let (branches, found) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        let pairs = branches.iter().filter_map(|line| line.split_once(' ')).zip(found);
        let exists = |(_, found): &((&str, &str), &String)| found.ends_with(" commit");
        let branches = pairs.filter(exists).map(|((commit, name), _)| (name.to_owned(), commit.to_owned()));
        Ok(branches.collect())
    }

    /// Returns the signs that the agent tampered with the copy instead of pushing to it.
    pub(super) fn signs(&self) -> Vec<IntegritySign> {
        let copy = self.path();
        let mut signs = Vec::new();
        for name in SETTINGS {
            if copy.join(name).symlink_metadata().is_ok() {
                let kind = if name == "hooks" { IntegrityKind::GitHook } else { IntegrityKind::GitSetting };
                signs.push(IntegritySign::new(kind, format!("{COPY}/{name}"), "it is in the remote of the trial"));
            }
        }
        let config = |folder: &Path| files::read(&folder.join("config"), 1 << 20).ok();
        if config(&copy) != config(&self.source.bare) {
            let detail = "it changes the remote of the trial";
            signs.push(IntegritySign::new(IntegrityKind::GitSetting, format!("{COPY}/config"), detail));
        }
        signs
    }

    /// Returns the bare copy from before the agent acted.
    pub(super) fn given(&self) -> &Path {
        &self.source.bare
    }
}
