//! Collects what an agent left in a sandbox, and compares it with the initial state.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use model::{Change, Collected, Repository, RepositoryChange};

use super::{HOME, LocalSandbox, RELAY, TMP};
use crate::blocking::blocking;
use crate::canaries;
use crate::copy;
use crate::damage::{after_acting, ruin, unread};
use crate::deadline::Deadline;
use crate::faults;
use crate::git_state::GitState;
use crate::inspection::{self, Doubts, Unreadable};
use crate::integrity;
use crate::mock_programs;
use crate::outside;
use crate::owner::OWNER;
use crate::remote;
use crate::removal::{self, WORK};
use crate::repository::{RepositorySnapshot, Unchanged};
use crate::snapshot::{Before, Obstacle, Snapshot};
use crate::{RepositoryDetail, Sandbox, SandboxError};

impl LocalSandbox {
    pub(super) async fn inspect(&self) -> Result<Collected, SandboxError> {
        let (work, path, baseline) = (self.work.clone(), self.path.clone(), self.baseline.clone());
        let status = self.watched.as_ref().map(|watched| watched.state.status.clone());
        let deadline = self.deadline();
        let (home, remote) = (self.home.clone(), self.remote.clone());
        let (planted, taken) = (Arc::clone(&self.planted), copy::taken(&self.graded.taken_files));
        let (files_changed, outside_changes, now, left, doubts, mut signs) = blocking(move || {
            if let Some(reason) = ruin(&work, &home)? {
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
            let unchanged = planted.unchanged(&work);
            changes.files.retain(|file| !unchanged.contains(&file.path));
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
                // If no file changed either, the output of `git status` is the same as before.
                let status = status.as_ref().or(baseline.files.status.as_ref());
                Unchanged::Repository(status.filter(|_| changes.is_whole && changes.files.is_empty()).cloned())
            } else {
                Unchanged::Nothing
            };
            // The agent may also have written the index, which could then match any file.
            let reads_all = changes.keeps_a_size || matches!(left, Unchanged::Nothing);
            let (snapshot, is_taken) = (&baseline.files.snapshot, taken.unwrap_or_default());
            let written = changes.files.iter().filter(|file| file.change != Change::Deleted).map(|file| &file.path);
            let hides = |path: &&String| snapshot.can_hide(Path::new(path)) && !is_taken.is_match(path);
            let ignore_files = written.filter(hides).cloned().collect();
            let doubts = Doubts { reads_all, ignore_files };
            let mut signs = integrity::signs(baseline.files.repository.as_ref(), now.as_ref(), &home);
            signs.extend(remote.iter().flat_map(|remote| remote.signs()));
            if planted.has_own_patterns(&home) {
                signs.retain(|sign| sign.place != format!("~/{}", canaries::IGNORED));
            }
            Ok((changes.files, beside(&path)?, now, left, doubts, signs))
        })
        .await?;
        let unchanged = self.planted();
        let is_agents = |line: &String| !canaries::is_about(line, &unchanged, &self.work);
        let mut repository_change = match &self.watched {
            Some(before) => Some(self.change(before, &left, now.as_ref(), deadline, &doubts).await?),
            None => None,
        };
        repository_change.iter_mut().for_each(|change| change.after.status.retain(is_agents));
        let new = integrity::new_objects(self.baseline.files.repository.as_ref(), now.as_ref());
        if !new.is_empty()
            && let Ok(view) = self.inspection(deadline, doubts.clone()).view(&self.work).await
        {
            signs.extend(integrity::hidden_commits(&view, &new).await);
        }
        let mut repository = match (&repository_change, now) {
            (Some(change), Some(_)) => Some(at_a_glance(change)).filter(|_| change.after.lost.is_none()),
            (None, Some(now)) if self.repository != RepositoryDetail::Nothing => {
                self.state_after(&now, left, deadline, doubts).await?
            }
            (None, Some(_)) | (_, None) => None,
        };
        repository.iter_mut().for_each(|repository: &mut Repository| repository.status.retain(is_agents));
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

    /// Returns the contents of the new git objects.
    pub(super) async fn new_objects(&self) -> Option<(String, String)> {
        let before = self.baseline.files.repository.as_ref()?;
        let (work, deadline) = (self.work.clone(), self.deadline());
        let now = blocking(move || GitState::at(&work, deadline).map_err(|error| unread(&work, error))).await.ok()?;
        let ids = integrity::new_objects(Some(before), now.as_ref());
        if ids.is_empty() {
            return None;
        }
        let inspection = self.inspection(deadline, Doubts::default());
        let text = integrity::contents(&inspection.view(&self.work).await.ok()?, &ids).await;
        Some(("a git object".to_owned(), text))
    }

    /// Compares the repository and its remotes with their state before the agent started.
    async fn change(
        &self,
        before: &RepositorySnapshot,
        left: &Unchanged,
        now: Option<&GitState>,
        deadline: Deadline,
        doubts: &Doubts,
    ) -> Result<RepositoryChange, SandboxError> {
        let change = self.watcher(deadline, doubts.clone()).change(&self.work, before, left).await;
        let mut change = change.map_err(after_acting)?;
        change.after.pushes = now.map(|now| now.pushes.clone()).unwrap_or_default();
        Ok(change)
    }

    /// Runs git only for the parts that are unknown, because starting a process takes longer than everything else here.
    async fn state_after(
        &self,
        now: &GitState,
        left: Unchanged,
        deadline: Deadline,
        doubts: Doubts,
    ) -> Result<Option<Repository>, SandboxError> {
        let old = self.baseline.files.repository.as_ref().and_then(|before| before.head.as_deref());
        let moved = now.head.is_some() && now.head.as_deref() != old;
        let state_with = |status, new_commits| {
            Some(Repository { head: now.head.clone(), branch: now.branch.clone(), status, new_commits })
        };
        if let (Unchanged::Repository(Some(status)), false) = (&left, moved) {
            return Ok(state_with(status.clone(), Vec::new()));
        }
        let git = self.inspection(deadline, doubts);
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

/// Returns the entries next to the sandbox's own directories.
fn beside(base: &Path) -> Result<Vec<String>, SandboxError> {
    let own = [
        WORK,
        HOME,
        TMP,
        OWNER,
        RELAY,
        faults::FOLDER,
        mock_programs::FOLDER,
        outside::FOLDER,
        remote::COPY,
        remote::BIN,
    ];
    let entries = fs::read_dir(base).map_err(SandboxError::io("read", base))?;
    let strange = entries.flatten().filter(|entry| !own.iter().any(|own| entry.file_name() == *own));
    let mut paths: Vec<String> = strange.map(|entry| entry.path().to_string_lossy().into_owned()).collect();
    paths.sort();
    Ok(paths)
}
