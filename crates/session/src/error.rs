//! Errors of a session, with hints. Problems in the user's files are diagnostics; these errors are about the request
//! and the machine.

use std::error::Error as Source;

use model::Diagnostic;
use sandbox::Breakage;

/// Reason why a session cannot do what it is asked to do.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    kind: ErrorKind,
    message: String,
    hints: Vec<String>,
    source: Option<Box<dyn Source + Send + Sync>>,
}

/// Cause of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// The request is invalid or cannot be carried out; nothing ran.
    Usage,
    /// The selection is empty; nothing ran.
    Nothing,
    /// The machine; says nothing about any agent.
    Environment,
    /// A signal stopped the work.
    Stopped,
}

impl Error {
    /// Creates an error for a request that is invalid or cannot be carried out; nothing ran.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Usage, message)
    }

    /// Creates an error for an empty selection; nothing ran.
    pub fn nothing(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Nothing, message)
    }

    /// Creates an error about the machine, which says nothing about any agent.
    pub fn environment(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Environment, message)
    }

    /// Creates an error for work that a signal stopped.
    pub fn stopped(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Stopped, message)
    }

    fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), hints: Vec::new(), source: None }
    }

    /// Creates an error from a problem in the configuration, whose location and help become hints.
    pub fn of(problem: &Diagnostic) -> Self {
        let place = problem.source.as_ref().map(|source| format!("it is used in {source}"));
        problem.help.iter().fold(Self::usage(&problem.message).maybe_hint(place), Self::hint)
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

    /// Returns the cause of the error.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }
}

impl From<Breakage> for Error {
    fn from(breakage: Breakage) -> Self {
        Self { source: Some(Box::new(breakage.clone())), ..Self::environment(breakage.reason) }
    }
}

impl From<store::StoreError> for Error {
    fn from(error: store::StoreError) -> Self {
        let problem = match &error {
            store::StoreError::Unreachable { .. } => Self::environment(error.to_string()),
            store::StoreError::Open { location: store::Location::File(_), .. } => {
                Self::environment(error.to_string()).hint(ELSEWHERE)
            }
            _ => Self::usage(error.to_string()),
        };
        let hints = match &error {
            store::StoreError::Select(error) => hints(error),
            _ => Vec::new(),
        };
        Self { source: Some(Box::new(error)), ..hints.into_iter().fold(problem, Self::hint) }
    }
}

/// Advice about a folder in which nothing can be recorded.
pub(crate) const ELSEWHERE: &str = "`--state DIR` selects another folder";

/// Returns the names that a wrong name of a run or a trial may mean.
fn hints(error: &store::SelectError) -> Vec<String> {
    let mut hints: Vec<String> = error.candidates().iter().map(|name| format!("recorded: {name}")).collect();
    if let store::SelectError::NoPrevious { .. } = error {
        hints.push("run the tests again with `trialrun run` to have a second one".to_owned());
        hints.push("`trialrun compare --by variant` compares with and without the skill in one run".to_owned());
    }
    let store::SelectError::AmbiguousTrial { matches, .. } = error else { return hints };
    let listed = matches.iter().take(LISTED);
    let width = listed.clone().map(|(_, outcome)| outcome.name().len()).max().unwrap_or_default();
    hints.extend(listed.map(|(id, outcome)| format!("{:width$}  {id}", outcome.name())));
    let more = matches.len().saturating_sub(LISTED);
    hints.extend((more > 0).then(|| format!("and {more} more: `trialrun history --cases` lists them")));
    hints
}

/// Maximum number of trials listed for an ambiguous name.
const LISTED: usize = 10;
