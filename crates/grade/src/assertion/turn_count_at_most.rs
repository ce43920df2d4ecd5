//! `turn_count_at_most`: the agent took at most a number of turns.

use model::Position;

use super::prelude::*;

pub(crate) const ASSERTION: Assertion = Assertion::written("turn_count_at_most", parse)
    .summary("The agent took at most this number of model turns.")
    .fields(&[Field::required("max", "whole number, at least 1", "Maximum number of turns.")])
    .parameters(&[Parameter::Value("max")])
    .example(
        || json!({"id": "efficient", "type": "turn_count_at_most", "max": 2}),
        || EvidenceBuilder::new().call("Bash", json!({"command": "git status"})).answer("Clean."),
        || {
            EvidenceBuilder::new()
                .call("Bash", json!({"command": "ls"}))
                .call("Bash", json!({"command": "git status"}))
                .answer("Clean.")
        },
    );

#[derive(Debug)]
struct TurnCountAtMost {
    max: usize,
    place: SourceLocation,
}

fn parse(reading: &mut Reading<'_>) -> Option<Arc<dyn Matcher>> {
    let node = reading.fields.require("max", reading.problems)?;
    let max = reading.fields.whole("max", 1, reading.problems)?;
    Some(Arc::new(TurnCountAtMost {
        max: usize::try_from(max).unwrap_or(usize::MAX),
        place: SourceLocation::from_node(node),
    }))
}

impl Matcher for TurnCountAtMost {
    fn judge(&self, evidence: &Evidence) -> Judgement {
        let turns = evidence.trace.turn_count();
        let taken = format::count(turns, "turn");
        if turns <= self.max {
            return Ok(Verdict::met(taken).place(&self.place));
        }
        let over = evidence.trace.turns.iter().enumerate().filter(|(_, turn)| turn.parent.is_none()).nth(self.max);
        let reason = format!("{taken}, {} more than allowed", turns - self.max);
        let mut verdict = Verdict::unmet(reason, format!("at most {}", format::count(self.max, "turn")), taken);
        verdict.at = over.map(|(turn, traced)| Position { turn: Some(turn), call: traced.calls.first().copied() });
        Ok(verdict.place(&self.place))
    }
}
