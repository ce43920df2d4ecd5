//! `not_contains`: the answer does not contain a text.

use std::sync::Arc;

use model::Evidence;
use serde_json::json;

use super::{Assertion, Field, Form, Parameter};
use crate::example::{Example, Story};
use crate::folded;
use crate::matcher::Matcher;
use crate::place::Place;
use crate::reading::Reading;
use crate::verdict::Verdict;
use crate::words;

/// Number of characters shown on either side of the text that was found.
const AROUND: usize = 40;

pub(super) const ASSERTION: Assertion = Assertion {
    name: "not_contains",
    aliases: &[],
    parameters: &[Parameter::Value("text")],
    summary: "The answer does not contain a text.",
    fields: &[Field {
        name: "text",
        holds: "text",
        required: true,
        default: None,
        doc: "Text that the answer must not contain.",
    }],
    pass: Example {
        assertion: || json!({"id": "does-not-blame", "type": "not_contains", "text": "your fault"}),
        evidence: || Story::new().answer("I am sorry that it broke.").evidence(),
    },
    fail: Example {
        assertion: || json!({"id": "does-not-blame", "type": "not_contains", "text": "your fault"}),
        evidence: || Story::new().answer("It broke, and that is Your Fault.").evidence(),
    },
    form: Form::Written { parse },
};

#[derive(Debug)]
struct NotContains {
    text: String,
    place: Place,
}

fn parse(reading: &mut Reading<'_>) -> Option<Arc<dyn Matcher>> {
    let (text, place) = reading.required_text("text")?;
    Some(Arc::new(NotContains { text, place }))
}

impl Matcher for NotContains {
    fn judge(&self, evidence: &Evidence) -> Verdict {
        let answer = evidence.trace.answer.as_deref().unwrap_or_default();
        let wanted = words::quoted(&self.text);
        let verdict = match folded::find(answer, &self.text) {
            None => Verdict::met(format!("it does not contain {wanted}")),
            Some(found) => Verdict::unmet(
                format!("the answer contains {}", words::quoted(found)),
                format!("nothing like {wanted}"),
                words::quoted(&around(answer, found)),
            ),
        };
        verdict.place(&self.place)
    }
}

/// Returns `found`, which is a slice of `answer`, with the text around it.
fn around(answer: &str, found: &str) -> String {
    let start = found.as_ptr() as usize - answer.as_ptr() as usize;
    let (before, after) = (&answer[..start], &answer[start + found.len()..]);
    let from = before.char_indices().rev().nth(AROUND - 1).map_or(0, |(at, _)| at);
    let to = after.char_indices().nth(AROUND).map_or(after.len(), |(at, _)| at);
    let more = |is_more: bool| if is_more { "…" } else { "" };
    format!("{}{}{found}{}{}", more(from > 0), &before[from..], &after[..to], more(to < after.len()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::check::tests::judged;
    use crate::example::Story;

    #[test]
    fn what_must_not_be_there_is_shown_where_it_stands() {
        let answer = format!("{}It is YOUR fault, é.{}", "x".repeat(60), "y".repeat(60));
        let assertion = json!({"id": "a", "type": "not_contains", "text": "your fault"});
        let finding = judged(&assertion, &Story::new().answer(&answer).evidence());
        assert_eq!(finding.because, "the answer contains \"YOUR fault\"");
        let (before, after) = ("x".repeat(34), "y".repeat(36));
        assert_eq!(finding.actual.unwrap(), format!("\"…{before}It is YOUR fault, é.{after}…\""));
    }
}
