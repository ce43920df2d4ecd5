//! What a case asks of the skill under test, and what trials leave on remotes.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::Excerpt;

/// What the definition under test is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Definition {
    /// A skill: a directory with a `SKILL.md`.
    #[default]
    Skill,
    /// A sub-agent: a Markdown file, which the agent may hand a task to.
    SubAgent,
}

impl Definition {
    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Skill => "skill",
            Self::SubAgent => "sub-agent",
        }
    }
}

/// What a case asks of the skill under test, where it asks whether the skill is of use.
#[derive(Debug, Clone, PartialEq)]
pub struct SkillEval {
    /// Whether the agent is to make use of the skill. If not, what the case says about branches, commits, pushes and review
    /// requests is turned round, and use of the skill is a failure.
    pub should_trigger: bool,
    /// What is put before the message where the skill is installed, such as `Use the $review skill. `.
    pub invocation: Option<String>,
    /// How far the case reaches out.
    pub side_effect_level: SideEffectLevel,
    /// What it may leave behind, and where that is written.
    pub contract: Option<(SideEffectContract, Excerpt)>,
}

/// How far a case reaches out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SideEffectLevel {
    /// It only reads.
    Static,
    /// It changes the sandbox and nothing else.
    #[default]
    LocalOnly,
    /// It reaches services, and does them no harm.
    LiveSafe,
    /// It changes what others see.
    LiveExternal,
}

impl SideEffectLevel {
    /// Every level by its written name.
    pub const ALL: [(&'static str, Self); 4] = [
        ("static", Self::Static),
        ("local-only", Self::LocalOnly),
        ("live-safe", Self::LiveSafe),
        ("live-external", Self::LiveExternal),
    ];

    /// As written.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, level)| *level == self).map_or("local-only", |(name, _)| name)
    }
}

/// What a trial may leave behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SideEffectContract {
    /// Local branches.
    pub allow_new_local_branches: bool,
    /// Branches on a remote.
    pub allow_new_remote_branches: bool,
    /// Commits.
    pub allow_new_commits: bool,
    /// Pull requests and merge requests.
    pub allow_new_review_requests: bool,
    /// Files that are not as they were once fixtures and skill were in their places.
    pub allow_worktree_changes: bool,
}

impl Default for SideEffectContract {
    fn default() -> Self {
        Self {
            allow_new_local_branches: true,
            allow_new_remote_branches: true,
            allow_new_commits: true,
            allow_new_review_requests: true,
            allow_worktree_changes: true,
        }
    }
}

/// What a trial left on one remote.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SideEffects {
    /// The remote's address, without what signs in.
    pub remote: String,
    /// Branches that are new there.
    pub branches: Vec<String>,
    /// Numbers of review requests that are new and open.
    pub review_requests: Vec<u64>,
    /// The commits of these branches, as they were left.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub commits: BTreeMap<String, String>,
    /// Whether the trial added the remote itself: what was there before is not known then.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub added: bool,
}
