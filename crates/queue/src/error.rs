//! Errors of the queue.

use std::io;

use store::postgres::{ConnectError, describe, is_lost};
use tokio_postgres::error::SqlState;

/// Reason why the queue cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum QueueError {
    /// There is no connection.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The database rejected a statement, or the connection was lost.
    #[error("the queue: {}", describe(.0))]
    Database(#[from] tokio_postgres::Error),
    /// The queue was created by a newer version of trialrun.
    #[error("the queue was created by a newer version of trialrun (its schema is {0}, and this version knows {1})")]
    Newer(i32, i32),
    /// Stored data cannot be read.
    #[error("the queue contains {0} that cannot be read: {1}")]
    Damaged(&'static str, String),
    /// A file cannot be read or written.
    #[error("{0}: {1}")]
    File(String, io::Error),
    /// The request cannot be fulfilled.
    #[error("{0}")]
    Refused(String),
}

impl QueueError {
    /// Returns `true` if the same request may succeed later.
    pub(crate) fn is_transient(&self) -> bool {
        match self {
            Self::Connect(error) => error.is_transient(),
            Self::Database(error) => {
                is_lost(error) || error.code() == Some(&SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT)
            }
            _ => false,
        }
    }
}
