//! Repositories that cannot be read after an agent has worked in them.

/// Reason why a repository cannot be viewed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Unreadable {
    /// The agent's repository cannot be read; with the reason.
    Left(String),
    /// The machine prevents reading it; with the reason.
    Machine(String),
    /// Git did not answer in time; with the reason. This is the agent's fault if git had answered before the agent
    /// acted.
    Late(String),
}

impl Unreadable {
    #[expect(clippy::needless_pass_by_value, reason = "it is handed to `map_err`")]
    /// Returns the error of a machine that prevents reading.
    pub(super) fn machine(error: impl ToString) -> Self {
        Self::Machine(error.to_string())
    }

    /// Returns the reason.
    pub(super) fn reason(self) -> String {
        let (Self::Left(reason) | Self::Machine(reason) | Self::Late(reason)) = self;
        reason
    }
}
