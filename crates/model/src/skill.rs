//! An agent skill: a directory with a `SKILL.md`.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A skill as it was read, the definition of a sub-agent, or the stand-in for a bare prompt.
#[derive(Debug, Clone)]
pub struct Skill {
    /// The name; that of its directory. `inline:<case>` for a bare prompt.
    pub name: String,
    /// What the frontmatter says it is for.
    pub description: String,
    /// Its directory, or the file of a sub-agent; absent for a bare prompt.
    pub directory: Option<PathBuf>,
    /// The version as written, whatever scalar it is.
    pub version: Option<String>,
    /// The text after the frontmatter.
    pub body: String,
    /// SHA-256 of the body, lower-case hex.
    pub body_hash: String,
    /// SHA-256 over every file of the skill but its tests, lower-case hex.
    pub content_hash: String,
    /// `allowed-tools`, as written, token by token.
    pub allowed_tools_raw: Vec<String>,
    /// `allowed-tools`, merged by name.
    pub allowed_tools: Vec<AllowedTool>,
    /// `token-budget`: the most tokens a trial of this skill may use.
    pub token_budget: Option<f64>,
    /// The whole frontmatter, unknown keys included.
    pub frontmatter: Map<String, Value>,
}

impl Skill {
    /// What it is called where it is installed: the name of its directory or, of a sub-agent, of its file.
    pub fn file_name(&self) -> String {
        let own = self.directory.as_deref().and_then(|path| path.file_name());
        own.map_or_else(|| self.name.clone(), |name| name.to_string_lossy().into_owned())
    }
}

/// One tool of `allowed-tools` and the scopes it is allowed in; no scopes means all of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AllowedTool {
    /// The tool's name, such as `Bash`.
    pub name: String,
    /// Such as `git *`.
    pub scopes: Vec<String>,
}
