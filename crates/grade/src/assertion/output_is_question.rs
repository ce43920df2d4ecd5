//! `output_is_question`: the last reply asks the user a question.

use super::JUDGES;
use super::prelude::*;
use crate::judge::reading::{quote, reasoning, split};
use crate::judge::{self, Criterion, Judged, Material, Question, Quoted, Votes, prompt};
use crate::matcher;

pub(crate) const ASSERTION: Assertion = Assertion::judged("output_is_question", parse)
    .summary("The last reply asks, or does not ask, the user for something that the agent needs to continue.")
    .fields(&[
        Field::optional("expected", "true or false", "`true` if the reply must be a question.").or("true"),
        JUDGES,
    ])
    .parameters(&[Parameter::Value("expected")])
    .example(
        || json!({"id": "asks-first", "type": "output_is_question"}),
        || EvidenceBuilder::new().answer("I found two orders. Tell me which one you want to return."),
        || EvidenceBuilder::new().answer("I cancelled both orders. Anything else?"),
    )
    .answers(
        || {
            json!({"answers": [{"id": "c1", "quote": "Tell me which one you want to return",
                   "reasoning": "It cannot go on without the choice.", "verdict": "met"}]})
        },
        || {
            json!({"answers": [{"id": "c1", "quote": "", "reasoning": "The work is done; the rest is polite.",
                   "verdict": "violated"}]})
        },
    );

#[derive(Debug)]
struct OutputIsQuestion {
    expected: bool,
}

fn parse(reading: &mut Reading<'_>) -> Option<Arc<dyn Matcher>> {
    let expected = reading.fields.boolean("expected", reading.problems).unwrap_or(true);
    Some(matcher::judged(OutputIsQuestion { expected }))
}

impl Judged for OutputIsQuestion {
    fn question(&self, evidence: &Evidence) -> Result<Question, Box<Verdict>> {
        let material = Material::from_evidence(evidence);
        let last = material.parts.last().filter(|_| material.is_answered);
        let Some(last) = last else { return Err(judge::nothing_to_judge(self.wanted())) };
        if is_plainly_one(&last.text) {
            return Err(Box::new(self.verdict(true, "it is a single question", &format::quoted(&last.text))));
        }
        let criterion = Criterion::new(0, "the agent's last reply asks the user for something", Quoted::WhenMet);
        Ok(Question {
            task: prompt::QUESTION.to_owned(),
            criteria: vec![criterion],
            form: judge::Form::Marks,
            material,
            has_sandbox: false,
        })
    }

    fn decide(&self, _: &Question, votes: &Votes<'_>) -> Verdict {
        let tally = votes.tally(0);
        let Some(is_one) = tally.majority() else { return Verdict::undecided(split(votes)) };
        let what = if is_one { "the reply is a question" } else { "the reply is not a question" };
        let reason = format!("{what}{}{}", tally.agreement(), reasoning(votes, 0));
        self.verdict(is_one, &reason, &quote(votes, 0).unwrap_or_else(|| what.to_owned()))
    }
}

impl OutputIsQuestion {
    fn wanted(&self) -> &'static str {
        if self.expected { "a question to the user" } else { "a reply that does not ask the user anything" }
    }

    fn verdict(&self, is_one: bool, reason: &str, actual: &str) -> Verdict {
        if is_one == self.expected { Verdict::met(reason) } else { Verdict::unmet(reason, self.wanted(), actual) }
    }
}

/// Returns `true` if a reply is a single sentence and that sentence is a question: it has only one sentence-ending
/// character, a question mark at the end.
fn is_plainly_one(reply: &str) -> bool {
    const QUESTION: [char; 5] = ['?', '？', '؟', '\u{37e}', '՞'];
    const END: [char; 9] = ['.', '!', '。', '！', '।', '…', ':', ';', '\n'];
    let reply = reply.trim();
    let Some(rest) = reply.strip_suffix(QUESTION) else { return false };
    !rest.trim().is_empty() && !rest.contains(QUESTION) && !rest.contains(END)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_single_question_is_recognised_without_a_judge() {
        for one in ["Which order do you mean?", " 您要退哪个订单？\n", "أي طلب تقصد؟"] {
            assert!(is_plainly_one(one), "{one}");
        }
        for other in
            ["Done. Anything else?", "What is it? It is a bird.", "Tell me more", "?", "", "Why? Why not?", "a\nb?"]
        {
            assert!(!is_plainly_one(other), "{other}");
        }
    }
}
