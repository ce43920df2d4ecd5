//! How the conversation with an agent ends, and the component at fault if it ended badly.

use serde::{Deserialize, Serialize};

use crate::StaleRequest;

/// How an agent stopped. Its work until then is always graded, unless its provider failed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Ending {
    /// The agent answered the last message.
    Finished,
    /// The agent returned an error as its answer. Counts against the agent.
    GaveUp {
        /// Text of the error.
        #[serde(rename = "because")]
        reason: String,
    },
    /// The agent ran out of a budget; that budget's finding decides the result.
    OutOfBudget {
        /// Kind of budget.
        budget: Budget,
        /// Value of the limit.
        limit: f64,
    },
    /// The wall-clock timeout expired. Counts against the agent.
    TimedOut {
        /// Name of the option, variable or key that set the timeout.
        setting: String,
        /// Its value in milliseconds.
        after_ms: u64,
        /// Probable cause, if there is one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hint: Option<Box<str>>,
    },
    /// The agent's program reported no answer from its model before the timeout, and nobody observed its requests. Whether
    /// the program or the model is at fault is not known.
    Silent {
        /// Name of the option, variable or key that set the timeout.
        setting: String,
        /// Its value in milliseconds.
        after_ms: u64,
    },
    /// A model or a service behind it did not answer, or its answer was not valid.
    ProviderFailed {
        /// Description of the failure.
        #[serde(rename = "because")]
        reason: String,
    },
    /// The agent's work, or the evidence of it, is incomplete for a reason that says nothing about the agent: its process
    /// disappeared, its output cannot be read, or the disk was full.
    Aborted {
        /// Details, if known.
        #[serde(rename = "because")]
        reason: String,
    },
    /// The agent could not be reached: its address does not answer, or the request could not be built.
    Unreachable {
        /// Details, if known.
        #[serde(rename = "because")]
        reason: String,
    },
    /// The test or its configuration has a mistake, so the agent could not be tested. Never counts against the agent.
    InvalidTest {
        /// Description and location of the mistake.
        #[serde(rename = "because")]
        reason: String,
    },
    /// The agent sent a request that has no answer in the cassette.
    Stale(Box<StaleRequest>),
    /// The run was cancelled.
    Cancelled,
}

impl Ending {
    /// Returns a one-line description for users.
    pub fn describe(&self) -> String {
        match self {
            Self::Finished => "finished".into(),
            Self::GaveUp { reason } => format!("the agent gave up: {reason}"),
            Self::OutOfBudget { budget, limit } => format!("ran out of {} (limit {limit})", budget.describe()),
            Self::TimedOut { setting, after_ms, hint } => {
                let hint = hint.as_ref().map_or_else(String::new, |hint| format!("; {hint}"));
                format!("timed out after {} s ({setting}){hint}", *after_ms as f64 / 1000.0)
            }
            Self::Silent { setting, after_ms } => format!(
                "the agent's program reported no answer from its model within {} s ({setting}); whether the program or \
                 the model is at fault is not known",
                *after_ms as f64 / 1000.0
            ),
            Self::ProviderFailed { reason } => format!("no complete answer from the model: {reason}"),
            Self::Aborted { reason } => format!("the trial could not be completed: {reason}"),
            Self::Unreachable { reason } => format!("could not reach the agent: {reason}"),
            Self::InvalidTest { reason } => format!("the test has a mistake: {reason}"),
            Self::Stale(request) => request.describe(),
            Self::Cancelled => "cancelled".into(),
        }
    }

    /// Returns `true` if the next message may be sent.
    pub fn goes_on(&self) -> bool {
        matches!(self, Self::Finished)
    }
}

/// Resource that a trial can run out of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Budget {
    /// Model turns.
    Turns,
    /// Tokens of every kind together.
    Tokens,
    /// Input tokens, including cache reads and cache writes.
    Input,
    /// Input tokens, excluding cache reads.
    NonCachedInput,
    /// Output tokens.
    Output,
    /// Reasoning tokens, a part of the output.
    Reasoning,
    /// Cost in US dollars.
    Cost,
    /// Wall-clock time in milliseconds.
    Duration,
}

impl Budget {
    /// Returns a description in words.
    pub fn describe(self) -> &'static str {
        match self {
            Self::Turns => "turns",
            Self::Tokens => "tokens",
            Self::Input => "input tokens",
            Self::NonCachedInput => "non-cached input tokens",
            Self::Output => "output tokens",
            Self::Reasoning => "reasoning tokens",
            Self::Cost => "money",
            Self::Duration => "time",
        }
    }
}

/// Component at fault for a broken or undecided trial. Never the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// The machine: a missing program, a full disk, a failing setup command.
    Environment,
    /// The provider of the model.
    Provider,
    /// trialrun itself.
    Harness,
    /// A judge that gave no verdict.
    Judge,
    /// The user's test or configuration: code with a mistake, or a request that the agent does not understand.
    Test,
}
