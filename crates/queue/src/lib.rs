//! Work that is pulled: a run's coordinator puts its trials into a queue, and workers on any machine claim, run and
//! finish them.
//!
//! The queue is a few tables in a PostgreSQL database, with leases. The coordinator is a run like any other, in which the
//! [`Coordinator`] is the [place](runner::Place) of its trials: it plans, decides, records and reports. A [worker](work)
//! plans the same run from a bundle of the project, and runs the trials that it claims with the agents, keys and sandboxes
//! of its own machine.

mod bundle;
mod chunk;
mod control;
mod coordinator;
mod database;
mod error;
mod needs;
mod schema;
mod statements;
mod waiting;
mod worker;

pub use control::{Queue, WorkerState};
pub use coordinator::{Coordinator, CoordinatorOptions};
pub use error::QueueError;
pub use statements::control::QueuedRun;
pub use statements::watch::HeldTrial;
pub use waiting::WaitingTrials;
pub use worker::{Until, WorkerOptions, work};

#[cfg(test)]
mod tests;
