//! `no_unanswered_questions`: every question of the agent's had a prepared answer.

use model::{Evidence, Position, Question};
use serde_json::json;

use super::{Assertion, Form};
use crate::example::{Example, Story, nothing_written};
use crate::verdict::Verdict;
use crate::words;

pub(super) const ASSERTION: Assertion = Assertion {
    name: "no_unanswered_questions",
    summary: "Every question that the agent asked had an answer in `user_responses`.",
    details: "It goes with every trial. A call may ask several questions; each needs an answer of its own.",
    fields: &[],
    pass: Example {
        assertion: nothing_written,
        evidence: || Story::new().question("Push now?", Some("Skip push")).evidence(),
    },
    fail: Example {
        assertion: nothing_written,
        evidence: || {
            Story::new()
                .call("AskUserQuestion", json!({"question": "Squash the commits?"}))
                .question("Squash the commits?", None)
                .evidence()
        },
    },
    form: Form::Implicit { judge },
};

fn judge(evidence: &Evidence) -> Option<Verdict> {
    let questions = &evidence.trace.questions;
    let unanswered: Vec<&Question> = questions.iter().filter(|question| question.answer.is_none()).collect();
    let Some(first) = unanswered.first() else {
        return Some(Verdict::met(match questions.len() {
            0 => "the agent asked nothing".into(),
            1 => "the agent's question was answered".into(),
            many => format!("all {many} questions were answered"),
        }));
    };
    let asked = unanswered.iter().map(|question| {
        let labels: Vec<String> = question.options.iter().map(|option| words::quoted(option)).collect();
        let choice = if labels.is_empty() { String::new() } else { format!(" (choices: {})", labels.join(", ")) };
        format!("{}{choice}", words::quoted(&question.question))
    });
    let mut asked = asked.collect::<Vec<_>>().into_iter();
    let actual = asked.next().unwrap_or_default();
    let mut verdict = Verdict::unmet(
        format!("{} without a prepared answer", words::count(unanswered.len(), "question")),
        "a `user_responses` entry whose `match_question` matches each question",
        actual,
    );
    verdict.at = first.call_id.as_ref().and_then(|id| {
        let call = evidence.trace.calls.iter().position(|traced| traced.call.id == *id)?;
        Some(Position { turn: Some(evidence.trace.calls[call].turn), call: Some(call) })
    });
    Some(verdict.evidence(words::few(asked.collect(), 5)))
}
