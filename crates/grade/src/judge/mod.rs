//! Judges: models that are asked questions that a pattern cannot decide.
//!
//! A judged assertion has two pure halves around one model call. `Judged::question` turns evidence into a question,
//! and `Judged::decide` turns the answers into a verdict. The model only reports observations: for each criterion a
//! mark or a score, with a quote that shows it. If the quote is not in the material, the answer is rejected. The code
//! here computes from the report whether the assertion passes.
//!
//! The material is not trusted. It is inside a fence whose delimiters are random for each call and do not occur in the
//! material, and the text around it does not depend on the material (`prompt.rs`). An answer must repeat a random word
//! of the call, so an answer that was prepared in the material is rejected.
//!
//! A judge that fails is asked once more. After that the finding is undecided, which never counts against an agent.
//! That a judge is not available is detected once for the whole run (`breaker.rs`). The usage of judges is accounted
//! separately.

mod answer;
mod ask;
mod breaker;
mod cache;
mod choice;
mod fence;
#[cfg(test)]
mod injections;
mod material;
pub(crate) mod prompt;
mod question;
pub(crate) mod reading;
mod request;
mod together;
mod votes;

use std::fmt::Debug;
use std::sync::Arc;

use model::{About, Aside, Evidence, Finding, Need, Status};

pub use self::ask::{Judge, Withhold};
pub use self::breaker::Breaker;
pub use self::cache::Cache;
pub use self::choice::{DEFAULT_JUDGES, DefaultJudge, default_judge, named_judge};

pub(crate) use self::answer::{Answer, Mark, Standing};
pub(crate) use self::material::Material;
pub(crate) use self::question::{Criterion, Form, Question, Quoted};
pub(crate) use self::votes::{Votes, is_true};

use self::ask::Heard;
use crate::assertion::Matcher;
use crate::check::{Check, Parts};
use crate::verdict::Verdict;

/// Text of a finding that no judge has decided yet, and of one for which none is ever asked.
const NOT_ASKED: &str = "no judge was asked";

/// The two halves of an assertion that a judge decides.
pub(crate) trait Judged: Debug + Send + Sync {
    /// Returns the question about `evidence`.
    ///
    /// # Errors
    /// Returns the verdict if no judge is needed.
    fn question(&self, evidence: &Evidence) -> Result<Question, Box<Verdict>>;

    /// Returns the verdict from the answers.
    fn decide(&self, question: &Question, votes: &Votes<'_>) -> Verdict;

    /// Returns the probes of the sandbox that it needs.
    fn needs(&self) -> Vec<Need> {
        Vec::new()
    }
}

/// Adapts a judged assertion to a matcher. Without a judge, it returns the verdicts that do not need one.
#[derive(Debug)]
pub(crate) struct Asking<J>(pub J);

impl<J: Judged> Matcher for Asking<J> {
    fn judge(&self, evidence: &Evidence) -> Verdict {
        match self.0.question(evidence) {
            Ok(_) => Verdict::undecided(NOT_ASKED),
            Err(verdict) => *verdict,
        }
    }

    fn judged(&self) -> Option<&dyn Judged> {
        Some(&self.0)
    }

    fn needs(&self) -> Vec<Need> {
        self.0.needs()
    }
}

/// Creates the matcher of a judged assertion.
pub(crate) fn matcher<J: Judged + 'static>(judged: J) -> Arc<dyn Matcher> {
    Arc::new(Asking(judged))
}

/// Returns the verdict for an agent that did not leave anything to judge.
pub(crate) fn nothing_to_judge(wanted: &str) -> Box<Verdict> {
    Box::new(Verdict::unmet("there is nothing to judge", wanted, "the agent gave no answer"))
}

/// A judged assertion that needs a judge.
struct Open<'c> {
    /// Index of its finding.
    at: usize,
    check: &'c Check,
    judged: &'c dyn Judged,
    question: Question,
}

/// Asks `judge` about those of `checks` that need it, and fills in their findings. Returns the usage of judging, or
/// `None` if no question had to be asked. `findings` are those that [`crate::grade`] returned for the same `evidence`.
/// Without a judge, for the reason in the error, they stay undecided. The questions are asked concurrently, unless the
/// judge needs one after the other.
pub async fn consult(
    checks: &[Check],
    evidence: &Evidence,
    judge: Result<&Judge, &str>,
    findings: &mut [Finding],
) -> Option<Aside> {
    let open = open(checks, evidence, findings);
    if open.is_empty() {
        return None;
    }
    let judge = match judge {
        Ok(judge) => judge,
        Err(because) => {
            for Open { at, check, .. } in &open {
                findings[*at] = check.finding(Verdict::undecided(because));
            }
            return None;
        }
    };
    let mut took = Aside::default();
    let heard = judge.hear(open.iter().map(|open| &open.question)).await;
    for (open, heard) in open.iter().zip(heard) {
        took += heard.took;
        findings[open.at] = open.check.finding(verdict(open.judged, &open.question, &heard));
    }
    Some(took)
}

/// Returns the checks that need a judge.
fn open<'c>(checks: &'c [Check], evidence: &Evidence, findings: &[Finding]) -> Vec<Open<'c>> {
    let mut parts = Parts::of_evidence(evidence);
    let mut open = Vec::new();
    for (at, (check, finding)) in checks.iter().zip(findings).enumerate() {
        let Some(judged) = check.judged().filter(|_| finding.id == check.id() && finding.status == Status::Undecided)
        else {
            continue;
        };
        let Some(mut question) = parts.of(check.about()).and_then(|part| judged.question(part).ok()) else { continue };
        let reply = match check.about() {
            About::Trial => 0,
            About::Reply(number) => number,
            About::LastReply => evidence.trace.replies.len(),
        };
        question.material = question.material.after(&evidence.trace, reply);
        open.push(Open { at, check, judged, question });
    }
    open
}

/// Returns the verdict from the answers. If it is undecided because judges did not answer, it says why they did not.
fn verdict(judged: &dyn Judged, question: &Question, heard: &Heard) -> Verdict {
    let votes = Votes { answers: &heard.answers, asked: heard.asked };
    let trouble = heard.trouble.as_deref();
    let verdict = match trouble {
        Some(trouble) if heard.answers.is_empty() => return Verdict::undecided(trouble),
        _ => judged.decide(question, &votes),
    };
    match trouble {
        Some(trouble) if verdict.status == Status::Undecided => {
            Verdict { error: Some(trouble.to_owned()), ..verdict }.evidence([trouble.to_owned()])
        }
        Some(trouble) => verdict.evidence([trouble.to_owned()]),
        None => verdict,
    }
}

/// Returns the finding if a single judge answers `answer`, for documented examples.
pub(crate) fn rehearse(check: &Check, evidence: &Evidence, answer: &serde_json::Value) -> Result<Finding, String> {
    let judged = check.judged().ok_or("it asks no judge")?;
    let finding = match judged.question(evidence) {
        Ok(question) => {
            let answers = [Answer::read(&question, None, answer)?];
            check.finding(judged.decide(&question, &Votes { answers: &answers, asked: 1 }))
        }
        Err(verdict) => check.finding(*verdict),
    };
    Ok(finding)
}

#[cfg(test)]
mod tests;
