//! `contains`: the answer contains a text.

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

pub(super) const ASSERTION: Assertion = Assertion {
    name: "contains",
    aliases: &[],
    parameters: &[Parameter::Value("text")],
    summary: "The answer contains a text.",
    fields: &[Field {
        name: "text",
        holds: "text",
        required: true,
        default: None,
        doc: "Text that the answer must contain.",
    }],
    pass: Example {
        assertion: || json!({"id": "names-the-period", "type": "contains", "text": "30 days"}),
        evidence: || Story::new().answer("You can return it within 30 Days.").evidence(),
    },
    fail: Example {
        assertion: || json!({"id": "names-the-period", "type": "contains", "text": "30 days"}),
        evidence: || Story::new().answer("You can return it within a month.").evidence(),
    },
    form: Form::Written { parse },
};

#[derive(Debug)]
struct Contains {
    text: String,
    place: Place,
}

fn parse(reading: &mut Reading<'_>) -> Option<Arc<dyn Matcher>> {
    let (text, place) = reading.required_text("text")?;
    Some(Arc::new(Contains { text, place }))
}

impl Matcher for Contains {
    fn judge(&self, evidence: &Evidence) -> Verdict {
        let trace = &evidence.trace;
        let answer = trace.answer.as_deref().unwrap_or_default();
        if let Some(found) = folded::find(answer, &self.text) {
            return Verdict::met(format!("it contains {}", words::quoted(found))).place(&self.place);
        }
        let actual = trace.answer.as_deref().map_or_else(|| "no answer".to_owned(), words::quoted);
        let wanted = words::quoted(&self.text);
        Verdict::unmet(format!("the answer does not contain {wanted}"), wanted, actual)
            .evidence(self.near(answer))
            .place(&self.place)
    }
}

impl Contains {
    /// Returns a hint if the answer contains the words of the text with different white space between them.
    fn near(&self, answer: &str) -> Option<String> {
        let plain = model::text::folded;
        let (answer, text) = (plain(answer), plain(&self.text));
        let is_near = !text.is_empty() && folded::find(&answer, &text).is_some();
        is_near.then(|| "the same words are there, with other white space between them".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use model::Status;
    use serde_json::json;

    use crate::check::tests::{judged, underlined};
    use crate::example::Story;

    #[test]
    fn case_does_not_matter_and_white_space_does() {
        let contains = |text: &str, answer: &str| {
            let assertion = json!({"id": "a", "type": "contains", "text": text});
            judged(&assertion, &Story::new().answer(answer).evidence())
        };
        assert_eq!(contains("ÜBER", "wir reden über").status, Status::Met);
        let finding = contains("two words", "Two\nwords");
        assert_eq!((finding.status, finding.score), (Status::Unmet, Some(0.0)));
        assert_eq!(finding.evidence, ["the same words are there, with other white space between them"]);
        assert_eq!(underlined(&finding), "\"two words\"");
    }

    #[test]
    fn an_agent_without_an_answer_contains_nothing() {
        let finding = judged(&json!({"id": "a", "type": "contains", "text": "x"}), &Story::new().evidence());
        assert_eq!((finding.status, finding.actual.as_deref()), (Status::Unmet, Some("no answer")));
    }
}
