//! Scenarios: cases that are functions in the user's modules. Each trial has its own engine and thread, so a scenario
//! that never ends or uses too much memory does not affect other trials. A scenario's requests arrive as
//! [`ScenarioRequest`]s, which the trial answers in order; its claims become findings.

mod claims;
mod files;
mod request;
mod script;

pub(crate) use self::claims::Claims;
pub(crate) use self::files::{Files, WITHOUT_SANDBOX};
pub(crate) use self::request::{AssertionCall, ObservedClaim, ScenarioRequest};
pub(crate) use self::script::{Script, ScriptEvent, ScriptFailure};
