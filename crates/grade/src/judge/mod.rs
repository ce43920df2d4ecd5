//! Judges: models that are asked what no pattern can tell.
//!
//! An assertion that needs one is two pure halves around one call. `Judged::question` makes of evidence what is to be
//! asked, `Judged::decide` makes of the answers a verdict. The model only reports: for each criterion a mark or a
//! score, with a passage that shows it. A passage that is not there makes the answer no answer. What passes is computed
//! here.
//!
//! What is judged is not trusted. It stands inside a fence whose marks are drawn for the call and are in no part of it,
//! and the text around it is the same whatever it says (`prompt.rs`). An answer must say back a word that was drawn for
//! the call, so that one that was prepared in the material is none.
//!
//! A judge that fails is asked once more, and then nobody can say: the finding is undecided, which never counts
//! against an agent. One that is not there is found out once for the whole run (`breaker.rs`). What judging takes is
//! accounted apart.

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

/// What a finding says until a judge was asked, and where none ever is.
const NOT_ASKED: &str = "no judge was asked";

/// The two halves of an assertion that a judge is asked about.
pub(crate) trait Judged: Debug + Send + Sync {
    /// What is to be asked about `evidence`.
    ///
    /// # Errors
    /// The verdict, where it needs no judge.
    fn question(&self, evidence: &Evidence) -> Result<Question, Box<Verdict>>;

    /// What the answers come to.
    fn decide(&self, question: &Question, votes: &Votes<'_>) -> Verdict;

    /// What must be looked at in the sandbox before it can be asked.
    fn needs(&self) -> Vec<Need> {
        Vec::new()
    }
}

/// A judged assertion among the others: it says what can be said without a judge.
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

/// A matcher of a judged assertion.
pub(crate) fn matcher<J: Judged + 'static>(judged: J) -> Arc<dyn Matcher> {
    Arc::new(Asking(judged))
}

/// The verdict where the agent left nothing to be judged.
pub(crate) fn nothing_to_judge(wanted: &str) -> Box<Verdict> {
    Box::new(Verdict::unmet("there is nothing to judge", wanted, "the agent gave no answer"))
}

/// A judged assertion of a trial that has to be asked about.
struct Open<'c> {
    /// Which finding it fills in.
    at: usize,
    check: &'c Check,
    judged: &'c dyn Judged,
    question: Question,
}

/// Fills in the findings of those of `checks` that need a judge, and tells what judging took; `None` where nobody had
/// to be asked. `findings` are what [`crate::grade`] said about the same `evidence`. Without a judge, which is why, they
/// stay undecided. The checks are asked about at the same time, unless the judge wants one after the other.
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

/// The checks that a judge has to be asked about.
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

/// What was heard, as a verdict. Where judges that did not answer leave it open, it says why they did not.
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

/// What an assertion says where a single judge answers `answer`, for documented examples.
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
