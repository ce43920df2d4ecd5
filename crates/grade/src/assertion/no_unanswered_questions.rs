//! `no_unanswered_questions`: every question that the agent asked had a prepared answer.

use model::{Position, Question};

use super::prelude::*;

pub(crate) const ASSERTION: Assertion = Assertion::implicit("no_unanswered_questions", judge)
    .summary("`user_responses` had an answer to every question from the agent.")
    .example(
        nothing_written,
        || EvidenceBuilder::new().question("Push now?", Some("Skip push")),
        || {
            EvidenceBuilder::new()
                .call("AskUserQuestion", json!({"question": "Squash the commits?"}))
                .question("Squash the commits?", None)
        },
    );

fn judge(evidence: &Evidence) -> Option<Verdict> {
    let questions = &evidence.trace.questions;
    let open = || questions.iter().filter(|question| question.answer.is_none());
    let unanswered: Vec<&Question> = open().filter(|question| question.undecided.is_none()).collect();
    let mut unclear = open().filter_map(|question| Some((question, question.undecided.as_deref()?)));
    if unanswered.is_empty()
        && let Some((question, reason)) = unclear.next()
    {
        let verdict = Verdict::undecided(format!("it is unknown whether an answer was prepared: {reason}"));
        let others = unclear.map(|(question, reason)| format!("{}: {reason}", asked(question))).collect();
        let asked = [asked(question)];
        return Some(at_call(verdict.evidence(asked).evidence(format::few(others, 5)), question, evidence));
    }
    let Some(first) = unanswered.first() else {
        return Some(Verdict::met(match questions.len() {
            0 => "no tool call with a question was reported".into(),
            1 => "the agent's question was answered".into(),
            many => format!("all {many} questions were answered"),
        }));
    };
    let mut asked = unanswered.iter().map(|question| asked(question));
    let verdict = Verdict::unmet(
        format!("{} without a prepared answer", format::count(unanswered.len(), "question")),
        "a `user_responses` entry whose `match_question` matches each question",
        asked.next().unwrap_or_default(),
    );
    Some(at_call(verdict.evidence(format::few(asked.collect(), 5)), first, evidence))
}

/// Formats the question with its choices.
fn asked(question: &Question) -> String {
    let labels: Vec<String> = question.options.iter().map(|option| format::quoted(option)).collect();
    let choice = if labels.is_empty() { String::new() } else { format!(" (choices: {})", labels.join(", ")) };
    format!("{}{choice}", format::quoted(&question.question))
}

/// Sets the position of the verdict to the call that asked the question.
fn at_call(mut verdict: Verdict, question: &Question, evidence: &Evidence) -> Verdict {
    verdict.at = question.call_id.as_ref().and_then(|id| {
        let call = evidence.trace.calls.iter().position(|traced| traced.call.id == *id)?;
        Some(Position { turn: Some(evidence.trace.calls[call].turn), call: Some(call) })
    });
    verdict
}

#[cfg(test)]
mod tests {
    use model::Status;

    use super::*;

    #[test]
    fn a_question_that_could_not_be_matched_is_undecided_unless_another_one_is_unanswered() {
        let mut evidence = EvidenceBuilder::new().question("Push?", Some("No")).question("Squash?", None).evidence();
        evidence.trace.questions[1].undecided = Some("user_responses[0], /x/: stopped".into());
        let verdict = judge(&evidence).unwrap();
        assert_eq!(verdict.status, Status::Undecided);
        assert!(verdict.error.unwrap().ends_with("user_responses[0], /x/: stopped"));
        assert_eq!(verdict.evidence, ["\"Squash?\""]);

        evidence.trace.questions[0].answer = None;
        let verdict = judge(&evidence).unwrap();
        assert_eq!((verdict.status, verdict.actual.as_deref()), (Status::Unmet, Some("\"Push?\"")));
        assert_eq!(verdict.reason, "1 question without a prepared answer");
    }
}
