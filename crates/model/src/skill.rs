//! An agent skill: a directory with a `SKILL.md`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::McpServer;

/// Skill as read from disk, the definition of a sub-agent, or the stand-in for a bare prompt.
#[derive(Debug, Clone, Default)]
pub struct Skill {
    /// Name, the same as that of its directory; `inline:<case>` for a bare prompt.
    pub name: String,
    /// Description from the frontmatter.
    pub description: String,
    /// Directory of the skill, or file of a sub-agent; absent for a bare prompt.
    pub directory: Option<PathBuf>,
    /// Version as written, regardless of its scalar type.
    pub version: Option<String>,
    /// Text after the frontmatter.
    pub body: String,
    /// SHA-256 over every file of the skill except its tests, in lower-case hex.
    pub content_hash: String,
    /// Scripts that it bundles, relative to its directory.
    pub scripts: Vec<String>,
    /// Tokens of `allowed-tools` as written.
    pub allowed_tools_raw: Vec<String>,
    /// Entries of `allowed-tools`, merged by name.
    pub allowed_tools: Vec<AllowedTool>,
    /// Value of `token-budget`: the maximum number of tokens for a trial of this skill.
    pub token_budget: Option<f64>,
    /// Whole frontmatter, including unknown keys.
    pub frontmatter: Map<String, Value>,
    /// Contents of the plug-in, if this stands for one.
    pub plugin: Option<Arc<PluginParts>>,
}

/// Contents of a plug-in.
#[derive(Debug, Clone, Default)]
pub struct PluginParts {
    /// Names of the folders of its skills in `skills`.
    pub skills: Vec<String>,
    /// Its sub-agents, in files in `agents`.
    pub sub_agents: Vec<Arc<Skill>>,
    /// Its MCP servers, with the names that they have in Claude Code.
    pub servers: Vec<McpServer>,
    /// Its other parts in words, such as `1 command` or `hooks`. Only agents that load plug-ins have them.
    pub others: Vec<String>,
}

impl Skill {
    /// Returns the name under which it is installed: its own or, for a sub-agent or a plug-in, that of its file or its
    /// directory.
    pub fn file_name(&self) -> String {
        let is_file =
            |path: &&Path| self.plugin.is_some() || path.extension().is_some_and(|extension| extension == "md");
        let own = self.directory.as_deref().filter(is_file).and_then(Path::file_name);
        own.map_or_else(|| self.name.clone(), |name| name.to_string_lossy().into_owned())
    }
}

/// Tool in `allowed-tools` with the scopes in which it is allowed. Without scopes it is allowed without restriction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AllowedTool {
    /// Name of the tool, such as `Bash`.
    pub name: String,
    /// Scopes, such as `git *`.
    pub scopes: Vec<String>,
}
