//! PLAN and RUN: plans trials, runs agents in sandboxes, enforces the time limits, and starts the grading.
//!
//! A run is planned from suites and settings ([`plan`]), then run ([`run`]). Each trial goes through the same five
//! steps: provision, act, collect, grade, close. The only output is the stream of [`model::Event`]s through the event
//! bus; this crate does not depend on file formats, the store or reports.
//!
//! ```
//! use std::path::Path;
//! use std::sync::Arc;
//!
//! use model::{Case, Excerpt, Suite, UserMessage};
//! use trialrun_runner::{PlanRequest, Selection, Settings, plan};
//!
//! let mut case = Case::new("greeting", Excerpt::of_file("chat.yaml"));
//! case.messages = vec![UserMessage::text("Hello.")];
//! let cases = vec![Arc::new(case)];
//! let suite = Suite { name: "chat".into(), path: "chat.yaml".into(), format: "scenario", cases };
//! let mut settings = Settings::default();
//! settings.arms.agents = vec!["fake".to_owned()];
//! let (plan, problems) = plan(&PlanRequest {
//!     suites: &[suite],
//!     settings: &settings,
//!     selection: &Selection::default(),
//!     cwd: Path::new("/"),
//!     read_script: Arc::new(|_| Err(Vec::new())),
//!     modules: script::Library::new(),
//! });
//! assert!(problems.iter().all(|problem| !problem.is_error()), "{problems:?}");
//! assert_eq!(plan.trials[0].id().to_string(), "chat::greeting@fake#1");
//! ```

pub mod cleanup;
mod code;
mod control;
mod dispatcher;
mod event_bus;
mod grader;
pub mod hook;
mod job;
mod place;
mod plan;
mod pool;
mod pricing;
mod recorded_model;
mod regrade;
mod select;
mod sequential;
mod spending;
mod trial;
mod user;

pub use control::{Control, StopLevel};
pub use dispatcher::{RunEnd, regrade, run};
pub use event_bus::Listener;
pub use place::{ChangedBudget, Place, PlaceState, Progress};
pub use plan::{
    ArmSettings, CassetteSettings, Defaults, Earlier, Fork, JudgeSettings, Judging, LimitNames, LimitSettings,
    ModelChoice, PairwiseJudging, Plan, PlanRequest, PlannedCase, PlannedDecision, PlannedTrial, ReadScript, RetryOn,
    RetrySettings, SandboxSettings, Settings, TrialResult, WITH_ISOLATION, first_of_each_case, judged, plan,
};
pub use pool::Pool;
pub use recorded_model::recorded_reply;
pub use regrade::{Archive, RecordedEvidence, Regrade, RegradeRequest, plan_regrade};
pub use select::{Selection, cases_of_all_shards, is_named};
pub use trial::{cassette_file, inputs, is_recorded};
