//! Judges: models that answer questions that a pattern cannot decide.
//!
//! A judged assertion has two pure halves around one model call. `Judged::question` turns evidence into a question,
//! and `Judged::decide` turns the answers into a verdict. The model only reports observations: for each criterion a
//! mark or a score, with a quote that shows it. If the quote is not in the material, the answer is rejected. The code
//! here uses the report to compute whether the assertion passes.
//!
//! The material is not trusted. It is inside a fence whose delimiters are random for each call and do not occur in the
//! material, and the text around it does not depend on the material (`prompt.rs`). An answer must repeat the call's
//! random word, so an answer prepared in the material is rejected.
//!
//! A judge that fails is asked once more. After that the finding is undecided, which never counts against an agent. An
//! unavailable judge is detected once for the whole run (`breaker.rs`). The usage of judges is accounted for
//! separately.

mod answer;
mod ask;
mod batch;
mod breaker;
mod cache;
mod choice;
mod fence;
mod flight;
mod material;
mod preference;
pub(crate) mod prompt;
mod question;
pub(crate) mod reading;
mod request;
mod votes;

use std::fmt::Debug;

use model::{Evidence, Need, Trace};

pub use self::ask::{Judge, Withhold};
pub use self::breaker::Breaker;
pub use self::cache::{Cache, JudgementStore};
pub use self::choice::{DEFAULT_JUDGES, DefaultJudge, default_judge, named_judge};
pub use self::preference::prefer;

/// Version of the judge prompts.
pub use self::prompt::VERSION as PROMPTS_VERSION;

pub(crate) use self::answer::{Answer, ClaimStatus, CriterionMark};
pub(crate) use self::ask::JudgeAnswers;
pub(crate) use self::material::Material;
pub(crate) use self::question::{Criterion, Form, Question, Quoted};
pub(crate) use self::votes::{Scores, Votes, is_factual};

use crate::call_pattern::unknown_calls;
use crate::verdict::Verdict;

/// The two halves of an assertion that a judge decides.
pub(crate) trait Judged: Debug + Send + Sync {
    /// Returns the question about `evidence`.
    ///
    /// # Errors
    /// Returns the verdict if no judge is needed.
    fn question(&self, evidence: &Evidence) -> Result<Question, Box<Verdict>>;

    /// Returns the verdict from the answers.
    fn decide(&self, question: &Question, votes: &Votes<'_>) -> Verdict;

    /// Returns the sandbox probes that it needs.
    fn needs(&self) -> Vec<Need> {
        Vec::new()
    }
}

/// Returns the verdict about a question that needs the calls of the agent, if they are not completely known.
pub(crate) fn without_calls(trace: &Trace) -> Option<Box<Verdict>> {
    unknown_calls(trace).map(|reason| Box::new(Verdict::undecided(reason)))
}

/// Returns the verdict for an agent that did not leave anything to judge.
pub(crate) fn nothing_to_judge(wanted: &str) -> Box<Verdict> {
    Box::new(Verdict::unmet("there is nothing to judge", wanted, "the agent gave no answer"))
}

#[cfg(test)]
mod tests;
