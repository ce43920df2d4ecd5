//! `token_usage`: the agent used at most a number of tokens.

use super::prelude::*;

pub(crate) const ASSERTION: Assertion = Assertion::written("token_usage", parse)
    .summary("The agent used at most this number of tokens.")
    .fields(&[Field::required("max", "whole number, at least 1", "Maximum number of tokens.")])
    .pass(
        || json!({"id": "is-frugal", "type": "token_usage", "max": 2000}),
        || EvidenceBuilder::new().answer("Hello!").used(1100, 40, 0),
    )
    .fail(
        || json!({"id": "is-frugal", "type": "token_usage", "max": 1000}),
        || EvidenceBuilder::new().answer("Hello!").used(1100, 40, 0),
    );

#[derive(Debug)]
struct TokenUsage {
    max: u64,
    place: SourceLocation,
}

fn parse(reading: &mut Reading<'_>) -> Option<Arc<dyn Matcher>> {
    let node = reading.fields.require("max", reading.problems)?;
    let max = reading.fields.whole("max", 1, reading.problems)?;
    Some(Arc::new(TokenUsage { max, place: SourceLocation::from_node(node) }))
}

impl Matcher for TokenUsage {
    fn judge(&self, evidence: &Evidence) -> Judgement {
        let Some(tokens) = evidence.trace.usage.tokens else {
            return Ok(Verdict::undecided("the agent did not report its tokens").place(&self.place));
        };
        let (used, max) = (format::thousands(tokens.total() as f64), format::thousands(self.max as f64));
        let verdict = if tokens.total() <= self.max && evidence.trace.unreported.tokens {
            Verdict::undecided(format!("the agent reported {used} tokens, but not all that it used"))
        } else if tokens.total() <= self.max {
            Verdict::met(format!("{used} of {max} tokens"))
        } else {
            let reason = format!("{used} tokens exceed the maximum of {max}");
            Verdict::unmet(reason, format!("at most {max} tokens"), format!("{used} tokens"))
        };
        Ok(verdict.place(&self.place))
    }
}

#[cfg(test)]
mod tests {
    use model::Status;
    use serde_json::json;

    use crate::check::tests::judged;
    use crate::example::EvidenceBuilder;

    #[test]
    fn unreported_tokens_leave_the_assertion_undecided() {
        let assertion = json!({"id": "a", "type": "token_usage", "max": 10});
        assert_eq!(judged(&assertion, &EvidenceBuilder::new().answer("x").evidence()).status, Status::Undecided);
        assert_eq!(judged(&assertion, &EvidenceBuilder::new().used(4, 3, 3).evidence()).status, Status::Met);
        assert_eq!(judged(&assertion, &EvidenceBuilder::new().used(4, 3, 4).evidence()).status, Status::Unmet);
    }
}
