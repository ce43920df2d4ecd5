//! Removal of the branches and review requests that trials created on real remotes.

use model::SideEffects;

/// Removes what a trial created on real remotes.
pub trait RemoteCleaner: Send + Sync {
    /// Removes branches and review requests. Blocks until they are removed.
    fn remove(&self, left: &[SideEffects]) -> Cleaned;
}

/// Result of a removal.
#[derive(Debug, Default)]
pub struct Cleaned {
    /// Removed items, one line each.
    pub removed: Vec<String>,
    /// Items that are still there, with the reason, one line each.
    pub kept: Vec<String>,
    /// The items that are still there.
    pub left: Vec<SideEffects>,
}
