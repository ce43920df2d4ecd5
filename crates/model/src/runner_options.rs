//! Settings that a case has for its agent.

use serde::{Deserialize, Serialize};

use crate::Excerpt;

/// Settings that a case may have.
#[derive(Debug, Clone, Default)]
pub struct RunnerOptions {
    /// Name of the agent; the alias `claude` is already replaced by `claude-code`.
    pub agent: Option<(String, Excerpt)>,
    /// Name of the model, or `scripted:FILE` with FILE resolved relative to the suite.
    pub model: Option<String>,
    /// Location of the model's name.
    pub model_source: Option<Excerpt>,
    /// Permission mode of the agent.
    pub permission_mode: Option<PermissionMode>,
    /// Exclusive list of the agent's tools. Replaces the skill's `allowed-tools`.
    pub allowed_tools_override: Option<Vec<String>>,
    /// Layers of the machine's own settings that the agent may read; none by default.
    pub setting_sources: Vec<SettingSource>,
    /// Reasoning effort passed to the agent, such as `low`, `medium` or `high`.
    pub reasoning_effort: Option<String>,
    /// Locations of the other values, by their keys.
    pub places: Vec<(&'static str, Excerpt)>,
}

impl RunnerOptions {
    /// Returns the location of the value of `key`, if it is written.
    pub fn place_of(&self, key: &str) -> Option<&Excerpt> {
        self.places.iter().find(|(own, _)| *own == key).map(|(_, place)| place)
    }
}

/// Permission mode of the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum PermissionMode {
    /// Ask for permission, which is never granted because no user is present.
    Default,
    /// Allow edits below the working directory.
    AcceptEdits,
    /// Read only, without changes.
    Plan,
    /// Allow everything.
    BypassPermissions,
}

impl PermissionMode {
    /// Every mode with its written name.
    pub const ALL: [(&'static str, Self); 4] = [
        ("default", Self::Default),
        ("acceptEdits", Self::AcceptEdits),
        ("plan", Self::Plan),
        ("bypassPermissions", Self::BypassPermissions),
    ];

    /// Returns the written name.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, mode)| *mode == self).map_or("default", |(name, _)| name)
    }
}

/// One layer of the agent's own settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SettingSource {
    /// Configuration folder of the user.
    User,
    /// Configuration of the repository.
    Project,
    /// Private configuration of the repository.
    Local,
}

impl SettingSource {
    /// Every source with its written name.
    pub const ALL: [(&'static str, Self); 3] =
        [("user", Self::User), ("project", Self::Project), ("local", Self::Local)];

    /// Returns the written name.
    pub fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Project => "project",
            Self::Local => "local",
        }
    }
}
