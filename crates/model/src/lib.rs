//! Common data types of trialrun: plain data, no I/O, no runtime, no clock.
//!
//! A *suite* holds *cases*, as the user wrote them. An *arm* is one configuration under which a case runs. A *trial*
//! is one execution: case × arm × repetition. A trial leaves *evidence*: a trace of steps, and the state collected
//! from the sandbox. *Findings* are the results of checks on evidence; an *outcome* is computed from the findings. All
//! of this is reported as *events*, which are recorded and passed to the reporters.
//!
//! Serialised names are stable: the JSON report, the event stream and the store consist of these types. Fields are
//! added, never renamed. An unknown number is `null`, never 0.
//!
//! ```
//! use trialrun_model::statistics::wilson;
//! use trialrun_model::{Outcome, TrialId};
//!
//! let id = TrialId { suite: "shop".into(), case: "refund".into(), arm: "codex".into(), repetition: 2 };
//! assert_eq!(id.to_string(), "shop::refund@codex#2");
//! assert_eq!(Outcome::Failed.name(), "failed");
//! let [low, high] = wilson(8, 10);
//! assert!(low > 0.49 && high < 0.95);
//! ```

mod arm;
mod arm_summary;
mod bounds;
mod budget;
mod calibration;
mod canary;
mod case;
mod cassette_mode;
mod cassette_use;
mod decision;
pub mod decode;
mod diagnostic;
mod ending;
mod estimate;
mod event;
mod evidence;
mod fault;
mod finding;
mod fixtures;
pub mod foreign_json;
mod forge;
mod frontmatter;
mod gate;
mod integrity;
mod invalid_text;
mod isolation;
mod judge_cache;
mod judge_sample;
mod lease;
mod listing;
mod lookalike;
mod mock;
mod model_traffic;
mod named_mode;
mod nearest;
mod network;
mod node;
mod number;
mod outcome;
mod outcome_counts;
mod phases;
mod preference;
mod present;
mod record;
mod regex_flag;
mod remote;
mod repository;
mod request_rule;
mod requirement;
mod run_info;
mod runner_options;
mod skill;
mod skill_eval;
mod span;
mod stale_request;
pub mod statistics;
mod step;
mod summary;
pub mod text;
pub mod tool;
mod trace;
mod trials;
mod usage;

pub use arm::{Arm, Having, SKILLS_ONLY, TrialId, WITH_SKILL, WITHOUT_SKILL};
pub use arm_summary::{ArmDelta, ArmSummary, CaseDelta, CaseEffect, CaseFigures, SuiteDelta, TrialFigures};
pub use bounds::Bounds;
pub use budget::{Budgets, Consumption, OnBudget, Overrun};
pub use calibration::{CALIBRATION_SCHEMA, CalibratedQuestion, Calibration, CalibrationGate, Disagreement};
pub use canary::{Canaries, Canary, CanaryPlace};
pub use case::{
    Arguments, AssertionScope, AssertionSpec, Case, Code, CodeClaim, Graded, GradedFolder, LogVars, OutcomeRule,
    Quarantine, Scoring, SimulatedUser, Solution, Subject, Suite, UNKNOWN_TAG, UserMessage, UserResponse,
};
pub use cassette_mode::CassetteMode;
pub use cassette_use::CassetteUse;
pub use decision::{Answer, DecisionCounts, DecisionQuestion, DecisionRecord, StopReason};
pub use diagnostic::{Diagnostic, DiagnosticKind, Severity};
pub use ending::{Budget, Ending, Fault};
pub use estimate::Estimate;
pub use event::{EVENT_VERSION, Envelope, Event};
pub use evidence::{
    Change, Collected, ControlRun, Earlier, Evidence, FileChange, FoundFile, Limits, Need, Probe, Probed, ReplyProbes,
    Repository, Rerun, RewardFile, digest,
};
pub use fault::{CaseFault, FaultAction, FaultKind, FaultOccurrence, FaultReport, Occurrences};
pub use finding::{
    BUDGETS, Capture, Claim, Detail, Failure, Finding, Judgement, Part, Position, SKILL_USE, ScoreRange, Segment,
    Status,
};
pub use fixtures::{CopyTree, FixtureFile, Fixtures, OuterFolder};
pub use forge::{Forge, ForgeKind, is_folder};
pub use frontmatter::Frontmatter;
pub use gate::{Gate, GateResult};
pub use integrity::{IntegrityKind, IntegritySign};
pub use invalid_text::InvalidText;
pub use isolation::{GUARANTEES, Isolation, IsolationLayer, MissingGuarantee};
pub use judge_cache::JudgeCache;
pub use judge_sample::JudgeSample;
pub use lease::{Lease, Owner};
pub use listing::{CaseResults, LiveTrial, RunResults, RunRow, TrialRow};
pub use lookalike::{lookalike, stray_character, unseen_character, unusual_separator};
pub use mock::{
    ArgumentGuard, McpServer, MockCall, MockFault, MockNames, MockVerdict, MockedAnswer, MockedReply, MockedServer,
    MockedTool, Mocks, PlayedMock, ServerSource, WantedArgument, listed_arguments, variable_in,
};
pub use model_traffic::{GatewayMode, ModelTraffic, Spread};
pub use nearest::{is_one_mistake, nearest};
pub use network::{Destination, EgressAttempt, EgressVerdict, EgressWay, HostPattern, NetworkPolicy};
pub use node::{Node, NodeKind};
pub use number::rounded_number;
pub use outcome::{Outcome, Tally};
pub use outcome_counts::OutcomeCounts;
pub use phases::{Phases, millis};
pub use preference::{PairJudgement, Preference};
pub use record::{
    AnsweredQuestion, AttemptRecord, AuxiliaryUsage, CallRecord, HookKind, HookRecord, ReplyRecord, TrialRecord,
};
pub use regex_flag::{REGEX_FLAGS, flags_problem, is_in_slashes, wrong_flag};
pub use remote::RemoteMode;
pub use repository::{Commit, RemoteState, RepositoryChange, RepositoryState, ReviewRequest, is_branch_name};
pub use request_rule::RequestRule;
pub use requirement::Requirement;
pub use run_info::{AgentInfo, Invocation, MissingShards, Origin, RunInfo, SETTINGS_WITHOUT_EFFECT, Shard, SkillInfo};
pub use runner_options::{PermissionMode, RunnerOptions, SettingSource};
pub use skill::{AllowedTool, PluginParts, Skill};
pub use skill_eval::{Definition, SideEffectContract, SideEffectLevel, SideEffects, SkillEval};
pub use span::{Excerpt, Source, Span, Spanned};
pub use stale_request::StaleRequest;
pub use step::{PermissionRequest, Question, Step, ToolCall, ToolResult};
pub use summary::{SampledTrials, Summary};
pub use tool::{Access, Certainty, Effect, Touch};
pub use trace::{Trace, TracedCall, TracedPermission, TracedReply, TracedTurn};
pub use trials::{AutoTrials, MOST_TRIALS, PassRate, Trials};
pub use usage::{Tokens, Unreported, Usage};
