//! PLAN and RUN: plans trials, puts agents into sandboxes, keeps the clock, and has the evidence graded.
//!
//! A run is planned from suites and settings ([`plan`]), then run ([`run`]). Each trial goes through the same five
//! steps: provision, act, collect, grade, close. The only output is the stream of [`model::Event`]s that the dispatcher
//! sends; this crate knows no file format, no store and no report.

mod code;
mod dispatcher;
mod grader;
pub mod hook;
mod job;
mod lane;
mod line;
mod plan;
mod pricing;
mod regrade;
mod select;
mod spending;
mod teller;
mod trial;
mod user;

pub use dispatcher::{Control, RunEnd, regrade, run};
pub use plan::{Defaults, ModelChoice, Plan, PlanRequest, PlannedTrial, ReadScript, RetryOn, Settings, plan};
pub use regrade::{Archive, RecordedEvidence, Regrade, RegradeRequest, plan_regrade};
pub use select::Selection;
pub use teller::Listener;
pub use trial::judging::{Judging, judged};
