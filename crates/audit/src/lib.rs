//! Finds out whether a suite of tests can fail.
//!
//! Every case is run with [adversaries](agent::ADVERSARIES), which do not do the work. The recorded evidence of a
//! trial that passed is graded again after each of several [mutations](mutants). [`AuditBuilder`] collects the
//! verdicts and returns an [`Audit`]: the cases that an adversary passes, the assertions that never fail, the expected
//! texts that the agent can read, and a score for each suite. This crate does not run anything itself.

mod builder;
mod mutation;
mod outcome;
mod verdict;
mod weakness;

pub use builder::AuditBuilder;
pub use mutation::{Mutant, mutants};
pub use outcome::{AssertionAudit, Audit, CaseAudit, Hack, SuiteAudit, Weakness, WeaknessKind};
pub use verdict::{AuditedCase, Cause, Verdict};
