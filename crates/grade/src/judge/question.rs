//! What a judge is asked about one assertion: everything but whom, and without any mark of a call.

use super::material::Material;

/// What a judge is asked.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Question {
    /// What is to be found out, in the words of a prompt, and what the user wrote about it.
    pub task: String,
    /// What is to be answered, one by one; none where the judge has to find the claims itself.
    pub criteria: Vec<Criterion>,
    /// What an answer looks like.
    pub form: Form,
    /// What it is about.
    pub material: Material,
    /// How many judges the assertion wants; else the run says.
    pub judges: Option<usize>,
}

/// What an answer to each criterion is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Whether it holds.
    Marks,
    /// A whole number from 1 to this.
    Scores(u64),
    /// Both.
    MarksAndScores(u64),
    /// The claims that are made, and how each stands to the truth.
    Claims,
}

impl Form {
    /// Whether it says of something whether it holds.
    pub fn has_marks(self) -> bool {
        matches!(self, Self::Marks | Self::MarksAndScores(_))
    }

    /// The highest score.
    pub fn scale(self) -> Option<u64> {
        match self {
            Self::Scores(scale) | Self::MarksAndScores(scale) => Some(scale),
            Self::Marks | Self::Claims => None,
        }
    }
}

/// Something that a judge says a mark or a score to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Criterion {
    /// What the answer calls it; made here, so that it is safe to be said back to a judge.
    pub id: String,
    /// What is to be judged, in the user's words.
    pub text: String,
    /// When the judge must have a quote.
    pub quoted: Quoted,
}

/// When a judge must quote: that something is there can be shown, that it is not cannot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Quoted {
    /// Whatever the answer is.
    Always,
    /// If it holds.
    WhenMet,
    /// If it does not hold.
    WhenViolated,
}

impl Criterion {
    /// The criterion number `at`, from 0.
    pub fn new(at: usize, text: impl Into<String>, quoted: Quoted) -> Self {
        Self { id: format!("c{}", at + 1), text: text.into(), quoted }
    }
}
