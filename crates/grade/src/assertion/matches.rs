//! `matches`: the answer matches an ECMAScript regular expression, as written in code.

use std::sync::Arc;

use serde_json::json;

use super::output_contains::OutputContains;
use super::{Assertion, Field, Form, Parameter};
use crate::example::{Example, Story};
use crate::matcher::Matcher;
use crate::reading::Reading;

pub(super) const ASSERTION: Assertion = Assertion {
    name: "matches",
    aliases: &[],
    parameters: &[Parameter::Value("pattern")],
    summary: "The answer matches a regular expression.",
    fields: &[Field {
        name: "pattern",
        holds: "regular expression, also `/…/flags`",
        required: true,
        default: None,
        doc: "Matches a part of the answer.",
    }],
    pass: Example {
        assertion: || json!({"id": "names-the-order", "type": "matches", "pattern": "/order \\d+/i"}),
        evidence: || Story::new().answer("I found Order 17.").evidence(),
    },
    fail: Example {
        assertion: || json!({"id": "names-the-order", "type": "matches", "pattern": "/order \\d+/i"}),
        evidence: || Story::new().answer("I found your order.").evidence(),
    },
    form: Form::Written { parse },
};

fn parse(reading: &mut Reading<'_>) -> Option<Arc<dyn Matcher>> {
    Some(Arc::new(OutputContains { pattern: reading.literal("pattern")? }))
}

#[cfg(test)]
mod tests {
    use model::Status;
    use serde_json::json;

    use crate::check::tests::judged;
    use crate::example::Story;

    #[test]
    fn slashes_and_flags_are_read_and_a_bare_source_is_one_too() {
        let matches = |pattern: &str, answer: &str| {
            let assertion = json!({"id": "a", "type": "matches", "pattern": pattern});
            judged(&assertion, &Story::new().answer(answer).evidence()).status
        };
        assert_eq!(matches("/^b/m", "a\nb"), Status::Met);
        assert_eq!(matches("/\\p{Lu}/u", "é É"), Status::Met);
        assert_eq!(matches("(?i)^A", "ab"), Status::Met);
        assert_eq!(matches("/b/y", "ab"), Status::Unmet, "sticky means from the beginning");
        assert_eq!(matches("/usr/lib", "in /usr/lib"), Status::Met, "no flags, so no literal");
    }

    #[test]
    fn a_pattern_is_told_as_it_is_written() {
        let assertion = json!({"id": "a", "type": "matches", "pattern": "/done/m"});
        let finding = judged(&assertion, &Story::new().answer("Done.").evidence());
        assert_eq!(finding.because, "/done/m does not match the answer");
        assert_eq!(finding.evidence, ["with the flag `i` it would match \"Done\""]);
    }
}
