//! Expectations about the skill under test, and side effects of trials on remotes.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::Excerpt;

/// Kind of definition under test.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Definition {
    /// Skill: a directory with a `SKILL.md`.
    #[default]
    Skill,
    /// Sub-agent: a Markdown file. The agent may delegate a task to it.
    SubAgent,
    /// Plug-in: a directory with skills, sub-agents, commands, hooks and MCP servers.
    Plugin,
    /// The skills of a plug-in, without its other parts.
    SkillsOfPlugin,
}

impl Definition {
    /// Returns the name in words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Skill | Self::SkillsOfPlugin => "skill",
            Self::SubAgent => "sub-agent",
            Self::Plugin => "plug-in",
        }
    }
}

/// Expectations about the skill under test, for a case that checks whether the skill helps.
#[derive(Debug, Clone, PartialEq)]
pub struct SkillEval {
    /// True if the agent should use the skill. If false, the case's expectations about branches, commits, pushes and
    /// review requests are inverted, and using the skill is a failure.
    pub should_trigger: bool,
    /// Text put before the message if the skill is installed, such as `Use the $review skill. `.
    pub invocation: Option<String>,
    /// How far the case's side effects reach.
    pub side_effect_level: SideEffectLevel,
    /// Allowed side effects and the location of that setting.
    pub contract: Option<(SideEffectContract, Excerpt)>,
    /// Scripts that the skill bundles, relative to its folder.
    pub scripts: Vec<String>,
}

/// How far a case's side effects reach.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SideEffectLevel {
    /// Only reads.
    Static,
    /// Changes only the sandbox.
    #[default]
    LocalOnly,
    /// Contacts services without changing them.
    LiveSafe,
    /// Changes what others can see.
    LiveExternal,
}

impl SideEffectLevel {
    /// Every level with its written name.
    pub const ALL: [(&'static str, Self); 4] = [
        ("static", Self::Static),
        ("local-only", Self::LocalOnly),
        ("live-safe", Self::LiveSafe),
        ("live-external", Self::LiveExternal),
    ];

    /// Returns the written name.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, level)| *level == self).map_or("local-only", |(name, _)| name)
    }
}

/// Side effects that a trial is allowed to leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SideEffectContract {
    /// Allows new local branches.
    pub allow_new_local_branches: bool,
    /// Allows new branches on a remote.
    pub allow_new_remote_branches: bool,
    /// Allows new commits.
    pub allow_new_commits: bool,
    /// Allows new pull requests and merge requests.
    pub allow_new_review_requests: bool,
    /// Allows changes of files, compared with their state after fixtures and skill were installed.
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

/// Side effects of a trial on one remote.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SideEffects {
    /// Address of the remote, without credentials.
    pub remote: String,
    /// New branches.
    pub branches: Vec<String>,
    /// Numbers of new and open review requests.
    pub review_requests: Vec<u64>,
    /// Commits of these branches at the end of the trial.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub commits: BTreeMap<String, String>,
    /// True if the trial itself added the remote, which means that its earlier state is unknown.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub added: bool,
}

impl SideEffects {
    /// Returns what is left after `removed` was removed; `None` if nothing is.
    pub fn without(&self, removed: &[Self]) -> Option<Self> {
        let mut left = self.clone();
        for removed in removed.iter().filter(|removed| removed.remote == self.remote) {
            left.branches.retain(|branch| !removed.branches.contains(branch));
            left.review_requests.retain(|number| !removed.review_requests.contains(number));
        }
        left.commits.retain(|branch, _| left.branches.contains(branch));
        (!left.branches.is_empty() || !left.review_requests.is_empty()).then_some(left)
    }
}
