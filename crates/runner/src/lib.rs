//! PLAN and RUN: puts agents into sandboxes, watches what they do, and has the evidence graded.
//!
//! A run is planned from suites and settings ([`plan`]), then run ([`run`]). Each trial goes through the same five
//! steps: provision, act, collect, grade, close. The one way out is the stream of [`model::Event`]s that the dispatcher
//! tells; this crate knows no file format, no store and no report.

pub mod agent;
mod activity;
mod breakage;
mod dispatcher;
mod grader;
mod host;
mod line;
mod mask;
mod plan;
mod resolve;
mod select;
pub mod sandbox;
mod session;
pub mod supervise;
mod trial;
mod witness;

pub use breakage::Breakage;
pub use dispatcher::{run, Control, RunEnd};
pub use host::Host;
pub use mask::Mask;
pub use plan::{plan, Defaults, ModelChoice, Plan, PlanRequest, PlannedTrial, Settings};
pub use select::Selection;
pub use session::{BoxFuture, Reply, Session};
pub use witness::{Decision, Flow, Turn};
