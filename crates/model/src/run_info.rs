//! The record of a run: the object `run` in the JSON report.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{Isolation, TrialId};

/// A run, as in `run` of the report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunInfo {
    /// Id, which sorts by time.
    pub id: String,
    /// Label given by the user.
    pub label: Option<String>,
    /// Run whose evidence this run regraded.
    #[serde(default)]
    pub regrade_of: Option<String>,
    /// Start time.
    pub started_at: Timestamp,
    /// Version of trialrun.
    pub trialrun_version: String,
    /// Resolved settings by name.
    pub settings: Map<String, Value>,
    /// Agents used by the run.
    pub agents: Vec<AgentInfo>,
    /// Skills under test, by name.
    pub skills: Vec<SkillInfo>,
    /// Planned trials, in order.
    pub trials: Vec<TrialId>,
    /// Number of questions that decide how many planned trials run; 0 if all of them run.
    #[serde(default, skip_serializing_if = "is_none")]
    pub decisions: usize,
    /// Number of trials that run in parallel; 0 if workers run them.
    pub jobs: usize,
    /// Command that started the run; absent if the run cannot be resumed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub invocation: Option<Invocation>,
    /// Machine and source from which the run was started; absent in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    /// Part of the plan that the run covers; absent for a whole plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shard: Option<Shard>,
    /// Shards that a merged run lacks; absent if it lacks none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing_shards: Option<MissingShards>,
    /// Isolation of the trials; absent if no trial was run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub isolation: Option<Isolation>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
fn is_none(decisions: &usize) -> bool {
    *decisions == 0
}

/// Names of settings that affect only how a run is recorded and shown, not its results.
pub const SETTINGS_WITHOUT_EFFECT: [&str; 9] = [
    "artifacts",
    "github",
    "jobs",
    "keep_sandbox",
    "min_pass_rate",
    "no_fail_on_assertions",
    "report",
    "state",
    "traceparent",
];

/// Machine and source from which a run was started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// Name of the machine.
    pub host: String,
    /// Branch of the directory; absent if none is checked out and no CI service names one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// Commit of the directory; absent outside of a repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
}

/// Shards that a merged run lacks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MissingShards {
    /// Numbers of the missing shards, from 1.
    pub missing: Vec<u64>,
    /// Number of shards in the plan.
    pub of: u64,
}

/// Command that started a run. A merged run has only the hashes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Invocation {
    /// Arguments after the name of the program.
    pub arguments: Vec<String>,
    /// Working directory.
    pub directory: String,
    /// SHA-256 of each file with cases, and of each file on which they depend, by its path.
    pub suites: BTreeMap<String, String>,
    /// Paths of the files on which the cases depend, by the path of the file with the cases.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub dependencies: BTreeMap<String, BTreeSet<String>>,
}

/// Part of a plan that one run covers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shard {
    /// Number of the part, from 1.
    pub index: u64,
    /// Number of parts.
    pub of: u64,
    /// Position of each trial's case in the whole plan, from 0.
    pub positions: Vec<usize>,
    /// Hash of the cases of the whole plan and their files; absent in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cases_hash: Option<String>,
}

/// Agent of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentInfo {
    /// Name, such as `claude-code`.
    pub name: String,
    /// Version of the agent, if known.
    pub version: Option<String>,
    /// Name of the model.
    pub model: Option<String>,
    /// Reasoning effort passed to the agent.
    pub reasoning_effort: Option<String>,
    /// URL of the model's endpoint.
    pub base_url: Option<String>,
}

/// Skill of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkillInfo {
    /// Name of the skill.
    pub name: String,
    /// Version as written.
    pub version: Option<String>,
    /// SHA-256 of its files.
    pub content_hash: String,
}
