//! What keeps a trial from saying anything about its agent.

use model::Fault;

/// Infrastructure trouble during a trial, and whose it is. Never the agent's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{because}")]
pub struct Breakage {
    /// Whose trouble.
    pub fault: Fault,
    /// What happened, in one line.
    pub because: String,
    /// Whether it would be the same if the trial were tried again.
    pub is_final: bool,
}

impl Breakage {
    /// The machine's trouble: a missing program, a full disk, a failing setup command.
    pub fn environment(because: impl Into<String>) -> Self {
        Self { fault: Fault::Environment, because: because.into(), is_final: false }
    }

    /// The same trouble, which comes again with every try.
    pub fn for_good(self) -> Self {
        Self { is_final: true, ..self }
    }

    /// A mistake in the user's test or configuration, which is the same at every try.
    pub fn test(because: impl Into<String>) -> Self {
        Self { fault: Fault::Test, because: because.into(), is_final: true }
    }

    /// The model provider's trouble.
    pub fn provider(because: impl Into<String>) -> Self {
        Self { fault: Fault::Provider, because: because.into(), is_final: false }
    }

    /// Our own trouble.
    pub fn harness(because: impl Into<String>) -> Self {
        Self { fault: Fault::Harness, because: because.into(), is_final: false }
    }
}
