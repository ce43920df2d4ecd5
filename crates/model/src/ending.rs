//! How acting ended, and whose trouble it was when it ended badly.

use serde::{Deserialize, Serialize};

/// How an agent stopped acting. What it did until then is graded all the same, unless its provider failed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Ending {
    /// It answered the last message.
    Finished,
    /// It gave an error for an answer. Counts against the agent.
    GaveUp {
        /// What it said.
        because: String,
    },
    /// A budget ran out; that budget's own finding judges it.
    OutOfBudget {
        /// Which.
        budget: Budget,
        /// The limit.
        limit: f64,
    },
    /// The wall clock ran out. Counts against the agent.
    TimedOut {
        /// The setting that fired, such as `--timeout`.
        setting: String,
        /// Its value in milliseconds.
        after_ms: u64,
    },
    /// A model or a service behind it did not answer, or answered nonsense.
    ProviderFailed {
        /// What happened.
        because: String,
    },
    /// The agent's process went away without saying how it ended.
    Aborted {
        /// What is known.
        because: String,
    },
    /// The agent could not be asked: nobody answers at its address, or what to send it could not be made.
    Unreachable {
        /// What is known.
        because: String,
    },
    /// The test or its configuration has a mistake, so the agent could not show what it does. Never counts against it.
    InvalidTest {
        /// What is wrong, and where.
        because: String,
    },
    /// Somebody stopped the run.
    Cancelled,
}

impl Ending {
    /// One line for people.
    pub fn describe(&self) -> String {
        match self {
            Self::Finished => "finished".into(),
            Self::GaveUp { because } => format!("the agent gave up: {because}"),
            Self::OutOfBudget { budget, limit } => format!("ran out of {} (limit {limit})", budget.describe()),
            Self::TimedOut { setting, after_ms } => {
                format!("timed out after {} s ({setting})", *after_ms as f64 / 1000.0)
            }
            Self::ProviderFailed { because } => format!("the model provider failed: {because}"),
            Self::Aborted { because } => format!("the agent's process went away: {because}"),
            Self::Unreachable { because } => format!("the agent could not be asked: {because}"),
            Self::InvalidTest { because } => format!("the test has a mistake: {because}"),
            Self::Cancelled => "cancelled".into(),
        }
    }

    /// Whether the next message of the chain may be sent.
    pub fn goes_on(&self) -> bool {
        matches!(self, Self::Finished)
    }
}

/// What can run out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Budget {
    /// Model turns.
    Turns,
    /// Tokens of every kind together.
    Tokens,
    /// Input tokens, those from and for a cache included.
    Input,
    /// Input tokens but for those read from a cache.
    NonCachedInput,
    /// Output tokens.
    Output,
    /// Output tokens that are reasoning.
    Reasoning,
    /// US dollars.
    Cost,
    /// Wall clock, in milliseconds.
    Duration,
}

impl Budget {
    /// In words.
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

/// Whose trouble a broken or undecided trial is. Never the agent's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// The machine: a missing program, a full disk, a failing setup command.
    Environment,
    /// The model's provider.
    Provider,
    /// trialrun.
    Harness,
    /// A judge that gave no verdict.
    Judge,
    /// The user's test or configuration: code with a mistake, a request that the agent does not understand.
    Test,
}
