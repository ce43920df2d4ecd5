//! Scenarios: cases that are functions in modules of the user's. Each trial has an engine and a thread of its own, so that
//! one that loops for ever or eats memory harms no other. What a scenario asks for comes as [`Ask`]s, which the trial
//! answers in their order; what it claims becomes findings.

mod ask;
mod claims;
mod files;
mod script;

pub(crate) use self::ask::{Ask, Declared, Observed};
pub(crate) use self::claims::Claims;
pub(crate) use self::files::Files;
pub(crate) use self::script::{Script, Trouble, Word};
