//! Infrastructure failures. A trial with such a failure gives no information about its agent.

use model::Fault;

/// An infrastructure failure during a trial, with its cause. It is never the agent's fault.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct Breakage {
    /// Part of the system that is at fault.
    pub fault: Fault,
    /// Description of the failure, in one line.
    pub reason: String,
    /// True if another attempt would fail in the same way.
    pub is_final: bool,
}

impl Breakage {
    /// Creates a failure of the machine: a missing program, a full disk, a failing setup command.
    pub fn environment(reason: impl Into<String>) -> Self {
        Self { fault: Fault::Environment, reason: reason.into(), is_final: false }
    }

    /// Marks the failure as one that every attempt repeats.
    pub fn for_good(self) -> Self {
        Self { is_final: true, ..self }
    }

    /// Creates a failure caused by a mistake in the user's test or configuration. Every attempt repeats it.
    pub fn test(reason: impl Into<String>) -> Self {
        Self { fault: Fault::Test, reason: reason.into(), is_final: true }
    }

    /// Creates a failure of the model provider.
    pub fn provider(reason: impl Into<String>) -> Self {
        Self { fault: Fault::Provider, reason: reason.into(), is_final: false }
    }

    /// Creates a failure of this program.
    pub fn harness(reason: impl Into<String>) -> Self {
        Self { fault: Fault::Harness, reason: reason.into(), is_final: false }
    }
}
