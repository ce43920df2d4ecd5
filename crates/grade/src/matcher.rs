//! Matchers: assertions with their arguments, ready to judge evidence.

use std::fmt::Debug;
use std::sync::Arc;

use model::{Evidence, Need, Probed};

use crate::hosted::Hosted;
use crate::judge::Judged;
use crate::verdict::Verdict;

/// Result of judging evidence. The error is the verdict if judging ends early, for example because something is
/// missing from the evidence.
pub(crate) type Judgement = Result<Verdict, Box<Verdict>>;

/// Assertion with its arguments, ready to judge evidence.
pub(crate) trait Matcher: Debug + Send + Sync {
    /// Judges `evidence`.
    fn judge(&self, evidence: &Evidence) -> Judgement;

    /// Returns the verdict on `evidence`, whether or not judging ended early.
    fn verdict(&self, evidence: &Evidence) -> Verdict {
        self.judge(evidence).unwrap_or_else(|verdict| *verdict)
    }

    /// Returns the question for a model and the evaluation of its answers. Returns `None` if no model is needed.
    fn judged(&self) -> Option<&dyn Judged> {
        None
    }

    /// Returns the request to a hosted model and the evaluation of its response. Returns `None` if none is needed.
    fn hosted(&self) -> Option<&dyn Hosted> {
        None
    }

    /// Returns the sandbox probes that must be made before it can judge.
    fn needs(&self) -> Vec<Need> {
        Vec::new()
    }

    /// Returns `true` if it is met by the result of one of its commands.
    fn is_met_by(&self, need: &Need, found: &Probed) -> bool {
        let _ = (need, found);
        false
    }

    /// Returns `true` for a function of the program that uses trialrun. An error of it is a mistake of the test.
    fn is_function(&self) -> bool {
        false
    }

    /// Returns the assertions to which a natural-language text was compiled. Returns `None` for all other assertions.
    fn stands_for(&self) -> Option<Vec<String>> {
        None
    }
}

/// Creates the matcher for a judged assertion. Without a judge, it returns the verdicts that do not need one.
pub(crate) fn judged<J: Judged + 'static>(judged: J) -> Arc<dyn Matcher> {
    Arc::new(ByJudge(judged))
}

#[derive(Debug)]
struct ByJudge<J>(J);

impl<J: Judged> Matcher for ByJudge<J> {
    fn judge(&self, evidence: &Evidence) -> Judgement {
        self.0.question(evidence).map(|_| Verdict::undecided("no judge was asked"))
    }

    fn judged(&self) -> Option<&dyn Judged> {
        Some(&self.0)
    }

    fn needs(&self) -> Vec<Need> {
        self.0.needs()
    }
}
