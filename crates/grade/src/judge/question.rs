//! Question for a judge about one assertion. It does not depend on the judge, and does not contain the random parts of
//! a call.

use super::material::Material;

/// Question for a judge.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Question {
    /// Instructions from a prompt, with the user's text.
    pub task: String,
    /// Criteria, each of which needs an answer. Empty if the judge has to find the claims itself.
    pub criteria: Vec<Criterion>,
    /// Form of an answer.
    pub form: Form,
    /// Material to judge.
    pub material: Material,
    /// True if the material includes the state of the sandbox.
    pub has_sandbox: bool,
}

impl Question {
    /// Returns the text that the user wrote: the criteria, and the task without its first paragraph, which is our
    /// prompt.
    pub fn asks(&self) -> String {
        let own = self.task.split_once("\n\n").map(|(_, own)| own);
        let criteria = self.criteria.iter().map(|criterion| criterion.text.as_str());
        own.into_iter().chain(criteria).collect::<Vec<_>>().join("\n")
    }
}

/// Form of the answer to each criterion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// A mark: met or violated.
    Marks,
    /// A whole number from 1 to this maximum.
    Scores(u64),
    /// A mark, and a score from 1 to this maximum.
    MarksAndScores(u64),
    /// The claims in the reply, and how each relates to the reference text.
    Claims,
    /// A choice between two trials.
    Choice,
}

impl Form {
    /// Returns `true` if an answer has a mark.
    pub fn has_marks(self) -> bool {
        matches!(self, Self::Marks | Self::MarksAndScores(_))
    }

    /// Returns the highest score.
    pub fn scale(self) -> Option<u64> {
        match self {
            Self::Scores(scale) | Self::MarksAndScores(scale) => Some(scale),
            Self::Marks | Self::Claims | Self::Choice => None,
        }
    }
}

/// Criterion that a judge answers with a mark or a score.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Criterion {
    /// Id in the answer. It is generated here, so that messages to a judge can safely contain it.
    pub id: String,
    /// Criterion in the user's words.
    pub text: String,
    /// Condition under which the judge must quote.
    pub quoted: Quoted,
}

/// Condition under which a judge must quote. A quote can show that something is present, but not that it is absent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Quoted {
    /// For any answer.
    Always,
    /// If the criterion is met.
    WhenMet,
    /// If the criterion is violated.
    WhenViolated,
}

impl Criterion {
    /// Creates the criterion number `at`, counted from 0.
    pub fn new(index: usize, text: impl Into<String>, quoted: Quoted) -> Self {
        Self { id: format!("c{}", index + 1), text: text.into(), quoted }
    }
}
