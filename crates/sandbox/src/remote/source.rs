//! The source repository of a run, in the state in which the first trial needed it.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::OnceCell;

use super::address;
use crate::SandboxError;
use crate::blocking::blocking;
use crate::git::Git;
use crate::tree::{self, Item};
use crate::unpack;

/// A bare copy of a source repository, from which each trial gets its own.
#[derive(Debug)]
pub(crate) struct RemoteSource {
    /// Address as the user wrote it.
    pub(super) address: String,
    /// Spellings of the address, if it is a folder.
    pub(super) folders: Vec<String>,
    /// Bare copy. In `isolated`, agents do not have access to it.
    pub(crate) bare: PathBuf,
    items: Vec<Item>,
    /// Branches, with their commits.
    pub(super) branches: BTreeMap<String, String>,
    pub(super) default_branch: Option<String>,
    /// Folder of git's own programs.
    pub(super) programs: PathBuf,
}

impl RemoteSource {
    /// Copies it into the empty directory `to`. The files are real copies, because an agent could write to a shared
    /// file.
    pub(super) fn copy(&self, to: &Path) -> Result<(), SandboxError> {
        unpack::unpack(&self.bare, &self.items, to).map_err(SandboxError::io("copy the remote to", to))
    }
}

#[cfg(test)]
impl RemoteSource {
    /// Returns a source without files.
    pub(super) fn of_test(address: &str, branch: &str) -> Self {
        Self {
            address: address.to_owned(),
            folders: Vec::new(),
            bare: PathBuf::new(),
            items: Vec::new(),
            branches: BTreeMap::new(),
            default_branch: Some(branch.to_owned()),
            programs: PathBuf::new(),
        }
    }
}

/// Source repositories of a run, by address. Each is fetched once.
#[derive(Debug, Default)]
pub(crate) struct RemoteSources(Mutex<HashMap<String, Arc<OnceCell<Arc<RemoteSource>>>>>);

impl RemoteSources {
    /// Returns the source at `address`. It is fetched into a new directory in `base`, with the user's environment `env`.
    pub(crate) async fn get(
        &self,
        address: &str,
        git: &Git<'_>,
        base: &Path,
        env: &BTreeMap<String, String>,
    ) -> Result<Arc<RemoteSource>, SandboxError> {
        let (source, number) = {
            let mut sources = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let number = sources.len();
            (Arc::clone(sources.entry(address.to_owned()).or_default()), number)
        };
        let bare = base.join(format!("remote-{number}"));
        source.get_or_try_init(|| fetch(address, git, bare, env)).await.cloned()
    }
}

async fn fetch(
    address: &str,
    git: &Git<'_>,
    bare: PathBuf,
    env: &BTreeMap<String, String>,
) -> Result<Arc<RemoteSource>, SandboxError> {
    let cleared = bare.clone();
    blocking(move || {
        crate::removal::remove(&cleared).map_err(SandboxError::io("clear", &cleared))?;
        std::fs::create_dir(&cleared).map_err(SandboxError::io("make the directory", &cleared))
    })
    .await?;
    let output = git.clone_bare(address, &bare, env).await?;
    let mut lines = output.into_iter();
    let programs = PathBuf::from(lines.next().unwrap_or_default());
    let default_branch = lines.next().filter(|branch| !branch.is_empty());
    let branch = |line: String| line.split_once(' ').map(|(commit, name)| (name.to_owned(), commit.to_owned()));
    let branches = lines.filter_map(branch).collect();
    let listed = bare.clone();
    let items = blocking(move || {
        let mut items = tree::list(&listed, |_| false).map_err(SandboxError::io("read", &listed))?;
        tree::set_times(&listed, &items).map_err(SandboxError::io("set the times of", &listed))?;
        unpack::keep_small(&listed, &mut items).map_err(SandboxError::io("read", &listed))?;
        Ok(items)
    })
    .await?;
    let (address, folders) = (address.to_owned(), address::folders(address));
    Ok(Arc::new(RemoteSource { address, folders, bare, items, branches, default_branch, programs }))
}
