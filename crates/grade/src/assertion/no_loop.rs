//! `no_loop`: the agent did not repeat the same tool call over and over.

use model::{Position, TracedCall};

use super::prelude::*;
use crate::call_pattern::{IsSame, is_same, may_be_same, unknown_arguments, unreported_calls};

/// Default of `max`.
const MAX: u64 = 3;

pub(crate) const ASSERTION: Assertion = Assertion::written("no_loop", parse)
    .reported(Reported::ToolCalls)
    .summary("The agent did not repeat the same tool call over and over.")
    .fields(&[Field::optional(
        "max",
        "whole number, at least 1",
        "Maximum number of identical calls in a row, and of identical calls with the same result in the whole trial.",
    )
    .or("3")])
    .parameters(&[Parameter::Value("max")])
    .example(
        || json!({"id": "no-loop", "type": "no_loop", "max": 2}),
        || {
            EvidenceBuilder::new()
                .call("Bash", json!({"command": "make"}))
                .call("Bash", json!({"command": "make test"}))
        },
        || {
            let make = || json!({"command": "make"});
            EvidenceBuilder::new().call("Bash", make()).call("Bash", make()).call("Bash", make())
        },
    );

#[derive(Debug)]
struct NoLoop {
    max: usize,
}

fn parse(reading: &mut Reading<'_>) -> Option<Arc<dyn Matcher>> {
    let written = reading.fields.get("max").is_some();
    let max = reading.fields.whole("max", 1, reading.problems);
    let max = if written { max? } else { MAX };
    Some(Arc::new(NoLoop { max: usize::try_from(max).unwrap_or(usize::MAX) }))
}

impl Matcher for NoLoop {
    fn judge(&self, evidence: &Evidence) -> Judgement {
        let calls = &evidence.trace.calls;
        let found = self.find(calls, is_same);
        let Some((at, count, how)) = found else {
            if let Some(reason) = unreported_calls(&evidence.trace) {
                return Ok(Verdict::undecided(reason));
            }
            if let Some((at, ..)) = self.find(calls, may_be_same) {
                return Ok(Verdict::undecided(unknown_among(calls, at)));
            }
            let most = format::count(self.max, "time");
            return Ok(Verdict::met(match calls.len() {
                0 => "the agent called no tool".to_owned(),
                count => format!(
                    "of {}, none was made more than {most} in a row or with the same result",
                    format::count(count, "call")
                ),
            }));
        };
        let call = &calls[at].call;
        let repeated = format::count(count, "time");
        let reason = format!("{} was called {repeated} {how}", format::shortened(&call.summary()));
        let mut verdict = Verdict::unmet(reason, format!("at most {}", format::count(self.max, "time")), repeated);
        verdict.at = Some(Position { turn: Some(calls[at].turn), call: Some(at) });
        Ok(verdict)
    }
}

impl NoLoop {
    /// Returns the last of too many identical calls, how many there are, and where.
    fn find(&self, calls: &[TracedCall], is_same: IsSame) -> Option<(usize, usize, &'static str)> {
        self.in_a_row(calls, is_same).or_else(|| self.in_total(calls, is_same))
    }

    /// Returns the last of too many identical calls in a row, and how many there are.
    fn in_a_row(&self, calls: &[TracedCall], is_same: IsSame) -> Option<(usize, usize, &'static str)> {
        let mut longest: Option<(usize, usize, &'static str)> = None;
        for at in 0..calls.len() {
            let parent = &calls[at].call.parent;
            // Calls from another conversation may come in between.
            let before = calls[..at].iter().rev().filter(|other| other.call.parent == *parent);
            let count = 1 + before.take_while(|other| is_same(&other.call, &calls[at].call)).count();
            if count > self.max && longest.is_none_or(|(_, most, _)| count > most) {
                longest = Some((at, count, "in a row"));
            }
        }
        longest
    }

    /// Returns the last of too many identical calls with the same result, and how many there are.
    fn in_total(&self, calls: &[TracedCall], is_same: IsSame) -> Option<(usize, usize, &'static str)> {
        let result = |traced: &TracedCall| traced.result.as_ref().map(|result| result.content.clone());
        calls.iter().enumerate().filter(|(_, traced)| traced.result.is_some()).find_map(|(at, traced)| {
            let is_again = |other: &&TracedCall| is_same(&other.call, &traced.call) && result(other) == result(traced);
            let count = calls.iter().filter(is_again).count();
            (count > self.max).then_some((at, count, "with the same result"))
        })
    }
}

/// Returns the reason why it is not known whether the call `at` repeats others.
fn unknown_among(calls: &[TracedCall], at: usize) -> String {
    let mut alike = calls.iter().map(|traced| &traced.call).filter(|other| may_be_same(other, &calls[at].call));
    alike.find_map(unknown_arguments).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use model::Status;

    use super::*;
    use crate::check::tests::judged;

    fn finding(lines: &[&str], max: Option<u64>) -> model::Finding {
        let story =
            lines.iter().fold(EvidenceBuilder::new(), |story, line| story.call("Bash", json!({"command": line})));
        let mut assertion = json!({"id": "a", "type": "no_loop"});
        if let Some(max) = max {
            assertion["max"] = json!(max);
        }
        judged(&assertion, &story.evidence())
    }

    #[test]
    fn calls_in_a_row_and_calls_with_the_same_result_count() {
        assert_eq!(finding(&["a", "a", "a"], None).status, Status::Met);
        let row = finding(&["a", "a", "a", "a"], None);
        assert_eq!(
            (row.status, row.reason.as_str()),
            (Status::Unmet, "Bash(command=\"a\") was called 4 times in a row")
        );
        let total = finding(&["a", "b", "a", "b", "a", "c", "a"], None);
        assert_eq!(total.reason, "Bash(command=\"a\") was called 4 times with the same result");
        assert_eq!(finding(&["a", "b", "a", "b", "a", "c", "a"], Some(4)).status, Status::Met);
        assert_eq!(finding(&["a", "a"], Some(1)).status, Status::Unmet);
    }

    #[test]
    fn calls_without_reported_arguments_may_differ() {
        let status = |inputs: &[serde_json::Value]| {
            let story = inputs.iter().fold(EvidenceBuilder::new(), |story, input| story.call("Bash", input.clone()));
            let mut evidence = story.evidence();
            evidence.trace.calls.iter_mut().for_each(|traced| traced.result.as_mut().unwrap().is_error = true);
            [json!({"id": "a", "type": "no_loop"}), json!({"id": "a", "type": "retries_at_most", "max": 0})]
                .map(|entry| judged(&entry, &evidence).status)
        };
        let (null, a) = (serde_json::Value::Null, json!({"command": "a"}));
        assert_eq!(status(&[null.clone(), null.clone(), a.clone(), a.clone()]), [Status::Undecided, Status::Unmet]);
        assert_eq!(status(&[null.clone(), a.clone()]), [Status::Met, Status::Undecided]);
        assert_eq!(status(&[null, a.clone(), a.clone(), a.clone(), a]), [Status::Unmet; 2]);
    }

    #[test]
    fn different_results_are_no_loop() {
        let mut evidence = ["a", "b", "a", "b", "a", "b", "a"]
            .iter()
            .fold(EvidenceBuilder::new(), |story, line| story.call("Bash", json!({"command": line})))
            .evidence();
        for (number, traced) in evidence.trace.calls.iter_mut().enumerate() {
            traced.result.as_mut().unwrap().content = number.to_string();
        }
        assert_eq!(judged(&json!({"id": "a", "type": "no_loop"}), &evidence).status, Status::Met);
    }
}
