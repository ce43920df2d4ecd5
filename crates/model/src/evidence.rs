//! What a trial leaves behind. Grading is a function of it alone.

use serde::{Deserialize, Serialize};

use crate::{Ending, Trace};

/// Everything grading may look at.
#[derive(Debug, Clone)]
pub struct Evidence {
    /// What the agent did.
    pub trace: Trace,
    /// What was found in the sandbox afterwards.
    pub collected: Collected,
    /// How acting ended.
    pub ending: Ending,
    /// The limits it ran under.
    pub limits: Limits,
    /// Indices of the case's `user_responses` that nothing asked for.
    pub unused_responses: Vec<usize>,
}

/// The limits of a trial, as they were in force.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Limits {
    /// The cap on model turns.
    pub max_turns: u64,
    /// Whether somebody set that cap; one that nobody set only warns.
    pub max_turns_set: bool,
    /// The cap on tokens of every kind together.
    pub token_budget: Option<f64>,
    /// Who set the token cap: `scenario`, `skill` or `--max-total-tokens`.
    pub token_budget_from: Option<String>,
    /// Wall clock, in milliseconds.
    pub timeout_ms: u64,
    /// Who set the wall clock: `--timeout`, `timeout` in the scenario or the project, or the built-in default.
    pub timeout_from: Option<String>,
}

/// What was found in the sandbox after acting.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Collected {
    /// Where the agent worked: absolute, links resolved. Absent when there was no sandbox.
    pub sandbox: Option<String>,
    /// The agent's home.
    pub home: Option<String>,
    /// The agent's directory for temporary files.
    pub tmp: Option<String>,
    /// Files of the working directory that are not as they were, sorted by path.
    pub files_changed: Vec<FileChange>,
    /// Paths beside the working directory that were written, where only the sandbox's own should be.
    pub outside_changes: Vec<String>,
    /// The repository, if there is one.
    pub repository: Option<Repository>,
}

/// A file that is not as it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileChange {
    /// Relative to the working directory, with `/`.
    pub path: String,
    /// What happened to it.
    pub change: Change,
}

/// What happened to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// It is new.
    Added,
    /// Its content or kind is another.
    Modified,
    /// It is gone.
    Deleted,
}

/// A repository's state.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Repository {
    /// The commit that is checked out.
    pub head: Option<String>,
    /// The branch that is checked out.
    pub branch: Option<String>,
    /// `git status --porcelain`, a line each.
    pub status: Vec<String>,
    /// Commits made since the fixture: hash and subject, newest first.
    pub new_commits: Vec<String>,
}
