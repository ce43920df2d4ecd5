//! `latency`: the reply did not take longer than a limit.

use super::prelude::*;

pub(crate) const ASSERTION: Assertion = Assertion::written("latency", parse)
    .summary("The agent replied in time.")
    .fields(&[Field::required("max", "duration", "Maximum time, such as `800ms` or `2s`. A number is milliseconds.")])
    .pass(
        || json!({"id": "is-quick", "type": "latency", "max": "1500ms"}),
        || EvidenceBuilder::new().asks("Hello?").answer("Hello!").replied(740),
    )
    .fail(
        || json!({"id": "is-quick", "type": "latency", "max": "2s"}),
        || EvidenceBuilder::new().asks("Hello?").answer("Hello!").replied(2600),
    );

#[derive(Debug)]
struct Latency {
    max_ms: u64,
    place: SourceLocation,
}

fn parse(reading: &mut Reading<'_>) -> Option<Arc<dyn Matcher>> {
    let node = reading.fields.require("max", reading.problems)?;
    let max_ms = reading.fields.duration_ms("max", reading.problems)?;
    Some(Arc::new(Latency { max_ms, place: SourceLocation::from_node(node) }))
}

impl Matcher for Latency {
    fn judge(&self, evidence: &Evidence) -> Judgement {
        let replies = &evidence.trace.replies;
        let slowest = replies.iter().enumerate().filter_map(|(index, reply)| Some((reply.latency_ms?, index))).max();
        let Some((took, at)) = slowest else {
            return Ok(Verdict::undecided("the time of the reply was not measured").place(&self.place));
        };
        let missing = replies.iter().position(|reply| reply.answer.is_none() && reply.result.is_none());
        if let Some(at) = missing.filter(|_| took <= self.max_ms) {
            let reason = format!("the agent gave no answer to message {}", at + 1);
            let verdict = Verdict::unmet(reason, format!("an answer within {} ms", self.max_ms), "none");
            return Ok(verdict.place(&self.place));
        }
        if let Some(at) = replies.iter().position(|reply| reply.latency_ms.is_none()).filter(|_| took <= self.max_ms) {
            let reason = format!("the time of the reply to message {} was not measured", at + 1);
            return Ok(Verdict::undecided(reason).place(&self.place));
        }
        let which = if replies.len() > 1 { format!("the reply to message {}", at + 1) } else { "the reply".into() };
        let max = self.max_ms;
        let verdict = if took <= max {
            let slowest = match replies.len() {
                0 | 1 => which,
                many => format!("the slowest of {many} replies, to message {},", at + 1),
            };
            Verdict::met(format!("{slowest} took {took} ms"))
        } else {
            let reason = format!("{which} took {took} ms, {} ms too long", took - max);
            Verdict::unmet(reason, format!("at most {max} ms"), format!("{took} ms"))
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
    fn the_slowest_reply_counts_and_an_unmeasured_one_is_undecided() {
        let assertion = json!({"id": "a", "type": "latency", "max": "10ms"});
        let story = EvidenceBuilder::new().asks("a").answer("b").replied(3).asks("c").answer("d").replied(11);
        let finding = judged(&assertion, &story.asks("e").answer("f").replied(2).evidence());
        assert_eq!(finding.reason, "the reply to message 2 took 11 ms, 1 ms too long");
        let finding = judged(&assertion, &EvidenceBuilder::new().asks("a").answer("b").evidence());
        assert_eq!((finding.status, finding.score), (Status::Undecided, None));
    }
}
