//! Errors of commands, with hints. Problems in the user's files are diagnostics; these errors are about commands and
//! the machine.

use std::process::ExitCode;

use crate::{exit, signals};

/// Error that stops a command.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct CliError {
    message: String,
    hints: Vec<String>,
    code: u8,
}

impl CliError {
    /// Creates an error for a command that is invalid or cannot be carried out; nothing ran.
    pub fn usage(message: impl Into<String>) -> Self {
        Self { message: message.into(), hints: Vec::new(), code: exit::INVALID }
    }

    /// Creates an error for an empty selection; nothing ran.
    pub fn nothing(message: impl Into<String>) -> Self {
        Self { message: message.into(), hints: Vec::new(), code: exit::NOTHING }
    }

    /// Creates an error about the machine, which says nothing about any agent.
    pub fn environment(message: impl Into<String>) -> Self {
        Self { message: message.into(), hints: Vec::new(), code: exit::INCOMPLETE }
    }

    /// Creates an error for a command that a signal stopped.
    pub fn stopped(message: impl Into<String>) -> Self {
        let code = signals::exit_code().unwrap_or(exit::INCOMPLETE);
        Self { message: message.into(), hints: Vec::new(), code }
    }

    /// Adds a hint.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// Adds a hint, if there is one.
    pub fn maybe_hint(self, hint: Option<String>) -> Self {
        match hint {
            Some(hint) => self.hint(hint),
            None => self,
        }
    }

    /// Hints, one line each.
    pub fn hints(&self) -> &[String] {
        &self.hints
    }

    /// Exit code of the program.
    pub fn code(&self) -> ExitCode {
        ExitCode::from(self.code)
    }
}

impl From<store::StoreError> for CliError {
    fn from(error: store::StoreError) -> Self {
        let problem = Self::usage(error.to_string());
        let store::StoreError::Select(error) = error else { return problem };
        let problem = error.candidates().iter().map(|name| format!("recorded: {name}")).fold(problem, Self::hint);
        if let store::SelectError::NoPrevious { .. } = error {
            return problem.hint("`trialrun compare --by variant` compares with and without the skill in one run");
        }
        let store::SelectError::AmbiguousTrial { matches, .. } = error else { return problem };
        let listed = matches.iter().take(LISTED);
        let width = listed.clone().map(|(_, outcome)| outcome.name().len()).max().unwrap_or_default();
        let line = |(id, outcome): &(String, model::Outcome)| format!("{:width$}  {id}", outcome.name());
        let more = matches.len().saturating_sub(LISTED);
        let problem = listed.map(line).fold(problem, Self::hint);
        problem.maybe_hint((more > 0).then(|| format!("and {more} more: `trialrun history --cases` lists them")))
    }
}

/// Maximum number of trials listed for an ambiguous name.
const LISTED: usize = 10;
