//! Infrastructure failures. A trial with such a failure gives no information about its agent.

use std::error::Error;
use std::sync::Arc;

use model::Fault;

/// An infrastructure failure during a trial, with its cause. It is never the agent's fault.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{reason}")]
pub struct Breakage {
    /// Part of the system that is at fault.
    pub fault: Fault,
    /// Description of the failure, in one line.
    pub reason: String,
    /// True if another attempt would fail in the same way.
    pub is_final: bool,
    source: Option<Arc<dyn Error + Send + Sync>>,
}

impl PartialEq for Breakage {
    /// Compares what is recorded; the underlying errors may differ.
    fn eq(&self, other: &Self) -> bool {
        (self.fault, &self.reason, self.is_final) == (other.fault, &other.reason, other.is_final)
    }
}

impl Eq for Breakage {}

impl Breakage {
    fn new(fault: Fault, reason: impl Into<String>) -> Self {
        Self { fault, reason: reason.into(), is_final: false, source: None }
    }

    /// Adds the error that caused the failure.
    pub fn caused_by(self, source: impl Error + Send + Sync + 'static) -> Self {
        Self { source: Some(Arc::new(source)), ..self }
    }

    /// Creates a failure of the machine: a missing program, a full disk, a failing setup command.
    pub fn environment(reason: impl Into<String>) -> Self {
        Self::new(Fault::Environment, reason)
    }

    /// Marks the failure as one that every attempt repeats.
    pub fn for_good(self) -> Self {
        Self { is_final: true, ..self }
    }

    /// Creates a failure caused by a mistake in the user's test or configuration. Every attempt repeats it.
    pub fn test(reason: impl Into<String>) -> Self {
        Self::new(Fault::Test, reason).for_good()
    }

    /// Creates a failure of the model provider.
    pub fn provider(reason: impl Into<String>) -> Self {
        Self::new(Fault::Provider, reason)
    }

    /// Creates a failure of this program.
    pub fn harness(reason: impl Into<String>) -> Self {
        Self::new(Fault::Harness, reason)
    }
}
