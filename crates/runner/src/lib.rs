//! PLAN and RUN: puts agents into sandboxes, watches what they do, and has the evidence graded.
//!
//! A run is planned from suites and settings ([`plan`]), then run ([`run`]). Each trial goes through the same five
//! steps: provision, act, collect, grade, close. The one way out is the stream of [`model::Event`]s that the dispatcher
//! tells; this crate knows no file format, no store and no report.

mod activity;
pub mod agent;
mod breakage;
mod code;
mod dispatcher;
mod grader;
pub mod hook;
mod host;
mod lane;
mod line;
mod mask;
mod plan;
mod regrade;
mod resolve;
pub mod sandbox;
mod secret;
mod select;
mod session;
mod spending;
pub mod supervise;
mod tariff;
mod teller;
mod trial;
mod user;
mod witness;

pub use breakage::Breakage;
pub use dispatcher::{Control, RunEnd, run};
pub use host::Host;
pub use mask::Mask;
pub use plan::{Defaults, ModelChoice, Plan, PlanRequest, PlannedTrial, ReadScript, RetryOn, Settings, plan};
pub use regrade::{Archive, Regrade, RegradeRequest, Testimony, plan_regrade, regrade};
pub use secret::Secrets;
pub use select::Selection;
pub use session::{BoxFuture, Reply, Session};
pub use teller::Listener;
pub use trial::judging::{Judging, judged};
pub use witness::{Decision, Flow, Turn};
