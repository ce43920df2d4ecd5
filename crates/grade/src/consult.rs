//! Asks a judge about the checks that need one.

use model::{AssertionScope, AuxiliaryUsage, Evidence, Finding, Judgement, Status};

use crate::check::{Check, Parts};
use crate::judge::{Answer, Judge, JudgeAnswers, Judged, Material, Question, Votes};
use crate::verdict::Verdict;

/// A judged assertion that needs a judge.
struct OpenQuestion<'c> {
    /// Index of its finding.
    at: usize,
    check: &'c Check,
    judged: &'c dyn Judged,
    question: Question,
    /// Number of the judged reply, from 1; 0 for all.
    reply: usize,
}

/// Asks `judge` about those `checks` that need it, and fills in their findings. Returns the usage of judging, or
/// `None` if no question had to be asked. `findings` are those that [`crate::grade`] returned for the same `evidence`.
/// Without a judge, they stay undecided for the reason in the error. The questions are asked concurrently, unless the
/// judge needs one after another.
pub async fn consult(
    checks: &[Check],
    evidence: &Evidence,
    judge: Result<&Judge, &str>,
    findings: &mut [Finding],
) -> Option<AuxiliaryUsage> {
    let open = open(checks, evidence, findings);
    if open.is_empty() {
        return None;
    }
    let judge = match judge {
        Ok(judge) => judge,
        Err(reason) => {
            for OpenQuestion { at, check, .. } in &open {
                findings[*at] = check.finding(Verdict::undecided(reason));
            }
            return None;
        }
    };
    let digest = |check: &Check| judge.digest(&check.digest(), check.judges());
    let mut refuse = |open: &OpenQuestion<'_>| match judge.refuses(&digest(open.check)) {
        Some(reason) => {
            findings[open.at] = open.check.finding(Verdict::undecided(reason));
            false
        }
        None => true,
    };
    let open: Vec<OpenQuestion<'_>> = open.into_iter().filter(|open| refuse(open)).collect();
    if open.is_empty() {
        return None;
    }
    let mut took = AuxiliaryUsage::default();
    let answers = judge.ask_all(open.iter().map(|open| (&open.question, open.check.judges()))).await;
    for (open, answers) in open.iter().zip(answers) {
        took += answers.took;
        let position = [open.reply, evidence.trace.user_messages.len()];
        let judgement = (!answers.answers.is_empty())
            .then(|| Box::new(judge.judgement(digest(open.check), &open.question, &answers, position)));
        let finding = open.check.finding(verdict(open.judged, &open.question, &answers));
        // The question about a reply has the position of the reply.
        let at = findings[open.at].at.filter(|_| finding.status != Status::Met);
        findings[open.at] = Finding { judgement, at, ..finding };
    }
    Some(took)
}

/// Returns the checks that need a judge.
fn open<'c>(checks: &'c [Check], evidence: &Evidence, findings: &[Finding]) -> Vec<OpenQuestion<'c>> {
    let mut parts = Parts::new(evidence);
    let mut open = Vec::new();
    for (index, (check, finding)) in checks.iter().zip(findings).enumerate() {
        let Some(judged) = check.judged().filter(|_| finding.id == check.id() && finding.status == Status::Undecided)
        else {
            continue;
        };
        let Some(mut question) = parts.of(check.about()).and_then(|part| judged.question(part).ok()) else { continue };
        let reply = match check.about() {
            AssertionScope::Trial => 0,
            AssertionScope::Reply(number) => number,
            AssertionScope::LastReply => evidence.trace.replies.len(),
        };
        question.material = question.material.after(&evidence.trace, reply);
        open.push(OpenQuestion { at: index, check, judged, question, reply });
    }
    open
}

/// Returns what the judge saw for a recorded judgement on a trial with this evidence, as text for people who label it.
pub fn shown_to_judge(evidence: &Evidence, judgement: &Judgement) -> String {
    let reply = usize::try_from(judgement.reply).unwrap_or(usize::MAX);
    let about = if reply == 0 { AssertionScope::Trial } else { AssertionScope::Reply(reply) };
    let mut parts = Parts::new(evidence);
    let Some(part) = parts.of(about) else { return String::new() };
    let material = Material::from_evidence(part);
    let material = if judgement.sandbox { material.with_sandbox(part) } else { material };
    material.after(&evidence.trace, reply).text()
}

/// Returns the verdict from the answers. If it is undecided because judges did not answer, it says why.
fn verdict(judged: &dyn Judged, question: &Question, answers: &JudgeAnswers) -> Verdict {
    let votes = Votes { answers: &answers.answers, asked: answers.asked };
    let trouble = answers.trouble.as_deref();
    let verdict = match trouble {
        Some(trouble) if answers.answers.is_empty() => return Verdict::undecided(trouble),
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
    let judged = check.judged().ok_or("it does not ask a judge")?;
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
mod tests {
    use serde_json::json;

    use super::*;
    use crate::example::EvidenceBuilder;

    #[test]
    fn people_see_each_call_in_its_turn_as_the_judge_of_a_reply_does() {
        let evidence = EvidenceBuilder::new()
            .asks("Refund it.")
            .call("refund", json!({"order": 7}))
            .answer("Done.")
            .asks("Sure?")
            .answer("Yes, I have refunded it.")
            .evidence();
        let shown = |reply: u64| shown_to_judge(&evidence, &Judgement { reply, ..Judgement::default() });
        let titles = |text: &str| -> Vec<String> {
            let lines = text.lines().filter_map(|line| line.strip_prefix("== ")?.strip_suffix(" =="));
            lines.map(str::to_owned).collect()
        };
        assert_eq!(
            titles(&shown(2)),
            [
                "context: earlier message 1 of the user",
                "context: earlier tool call 1",
                "context: earlier reply 1 of the agent",
                "context: message 1 of the user",
                "last reply of the agent",
            ]
        );
        let whole = titles(&shown(0));
        assert_eq!(whole[1..3], ["tool call 1", "reply of the agent to message 1"], "{whole:?}");
        assert_eq!(shown(3), "");
    }
}
