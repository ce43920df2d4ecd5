//! Scenarios: cases that are functions in the user's modules. Each trial has an engine and a thread of its own, so that
//! a scenario that loops for ever or uses much memory does not harm another. Requests of a scenario arrive as [`Ask`]s,
//! which the trial answers in order; its claims become findings.

mod ask;
mod claims;
mod files;
mod script;

pub(crate) use self::ask::{Ask, Declared, Observed};
pub(crate) use self::claims::Claims;
pub(crate) use self::files::Files;
pub(crate) use self::script::{Script, Trouble, Word};
