//! Removes what a trial with the real remote created there, when the trial ends.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::{Event, RemoteMode, RemoteState, RepositoryChange};

use super::Attempt;
use super::grade::End;
use crate::cleanup::Cleaned;

impl Attempt<'_> {
    /// Returns `true` if the agent of the trial can push to the real source repository.
    pub(super) fn uses_real_remote(&self) -> bool {
        let settings = &self.shared.settings.sandbox;
        settings.source_repo.is_some() && settings.remote_of(&self.planned.case) == RemoteMode::Real
    }

    /// Removes what the trial created on real remotes, unless the user keeps sandboxes. The record says what was
    /// removed and what is left.
    pub(super) async fn clean_remotes(&self, end: &mut End) {
        let Some(cleaner) = self.shared.cleaner.clone().filter(|_| self.uses_real_remote()) else { return };
        let Some(change) = end.evidence.collected.repository_change.as_deref() else {
            if self.planned.needs_sandbox() {
                let text = "what the trial created on the remote is unknown, and was not removed";
                end.warnings.push(text.to_owned());
            }
            return;
        };
        end.warnings.extend(moved_branches(change));
        let left = Arc::new(change.side_effects());
        if left.is_empty() {
            return;
        }
        self.events.emit(Event::Waiting { on: "cleaning up".into() });
        let removing = Arc::clone(&left);
        let cleaned = tokio::task::spawn_blocking(move || cleaner.remove(&removing)).await;
        let cleaned = cleaned.unwrap_or_else(|error| Cleaned {
            kept: vec![format!("the cleanup failed: {error}")],
            left: left.to_vec(),
            ..Cleaned::default()
        });
        end.warnings.extend(cleaned.removed.iter().map(|item| format!("removed from the remote: {item}")));
        end.warnings.extend(cleaned.kept.iter().map(|item| format!("still on the remote: {item}")));
        end.side_effects = Some(cleaned.left);
    }
}

/// Returns a line for each branch that existed before and that the trial moved or deleted. These changes are not
/// undone.
fn moved_branches(change: &RepositoryChange) -> Vec<String> {
    let nothing = BTreeMap::new();
    let branches = |remote: Option<&RemoteState>| {
        remote.and_then(|remote| remote.branches.clone()).unwrap_or_else(|| nothing.clone())
    };
    let mut lines = Vec::new();
    for (name, after) in change.after.remotes.iter().filter(|(_, remote)| !remote.is_isolated) {
        if after.branches.is_none() {
            continue;
        }
        let now = branches(Some(after));
        for (branch, was) in branches(change.before.remotes.get(name)) {
            match now.get(&branch) {
                Some(commit) if *commit == was => {}
                Some(_) => lines.push(format!("branch `{branch}` of `{name}` was moved; it was at {was}")),
                None => lines.push(format!("branch `{branch}` of `{name}` was deleted; it was at {was}")),
            }
        }
    }
    lines
}
