//! `no_tool_called`: a tool was not called, or not with such arguments.

use super::prelude::*;
use super::{ARGS_MATCH, TOOL};
use crate::call_pattern::{CallPattern, unreported_calls};
use crate::pattern::RegexBudget;

pub(crate) const ASSERTION: Assertion =
    Assertion::written("no_tool_called", |reading| Some(Arc::new(NoToolCalled { unwanted: reading.call_pattern()? })))
        .aliases(&["tool_not_called"])
        .reported(Reported::ToolCalls)
        .summary("The agent did not call a tool, or not with these arguments.")
        .fields(&[TOOL, ARGS_MATCH])
        .parameters(&[Parameter::Value("tool"), Parameter::Map("args_match")])
        .pass(
            || {
                json!({"id": "only-git", "type": "no_tool_called", "tool": "Bash",
                   "args_match": {"command": "^(?!git )"}})
            },
            || EvidenceBuilder::new().call("Bash", json!({"command": "git status"})),
        )
        .fail(
            || {
                json!({"id": "stays-off-the-network", "type": "no_tool_called", "tool": "Bash",
                   "args_match": {"command": "\\b(curl|wget)\\b"}})
            },
            || {
                EvidenceBuilder::new()
                    .call("Bash", json!({"command": "ls"}))
                    .call("Bash", json!({"command": "cd src && curl https://example.org"}))
            },
        );

#[derive(Debug)]
struct NoToolCalled {
    unwanted: CallPattern,
}

impl Matcher for NoToolCalled {
    fn judge(&self, evidence: &Evidence) -> Judgement {
        let trace = &evidence.trace;
        let regex_budget = RegexBudget::new();
        let mut matching = Vec::new();
        let mut unknown = None;
        for (index, traced) in trace.calls.iter().enumerate() {
            match self.unwanted.fits(&traced.call, &regex_budget) {
                Ok(true) => matching.push(index),
                Ok(false) => {}
                Err(error) => unknown = unknown.or(Some((index, error))),
            }
        }
        let place = self.unwanted.most_telling_place();
        let Some((&first, others)) = matching.split_first() else {
            return Ok(match (unknown, unreported_calls(trace)) {
                (Some((at, error)), _) => Verdict::undecided(error).place(place).at_call(trace, at),
                (None, Some(reason)) => Verdict::undecided(reason).place(place),
                (None, None) => {
                    let among = match trace.calls.len() {
                        0 => "the agent called no tool".to_owned(),
                        count => format!("no {} among {}", self.unwanted.describe(), format::count(count, "tool call")),
                    };
                    Verdict::met(among).place(place)
                }
            });
        };
        let call = &trace.calls[first].call;
        let found = self.unwanted.arguments.iter().filter_map(|argument| {
            let found = argument.found(call)?;
            Some(format!("in {}, {} matches {}", argument.whose(), argument.pattern()?, format::quoted(&found)))
        });
        let others = others
            .iter()
            .map(|index| format!("call {} matches too: {}", index + 1, trace.calls[*index].call.summary()));
        let reason = format!("`{}` was called, call {}", self.unwanted.tool, first + 1);
        let verdict = Verdict::unmet(reason, format!("no {}", self.unwanted.describe()), call.summary());
        let verdict = verdict.evidence(found.collect::<Vec<_>>()).evidence(format::few(others.collect(), 4));
        Ok(verdict.place(place).at_call(trace, first))
    }
}

#[cfg(test)]
mod tests {
    use model::Status;
    use serde_json::json;

    use crate::check::tests::{judged, underlined};
    use crate::example::EvidenceBuilder;

    #[test]
    fn the_matching_call_and_all_other_matches_are_shown() {
        let wanted =
            json!({"id": "a", "type": "no_tool_called", "tool": "Bash", "args_match": {"command": "curl|wget"}});
        let evidence = EvidenceBuilder::new()
            .call("Bash", json!({"command": "ls"}))
            .call("Bash", json!({"command": "x | wget y"}))
            .call("Bash", json!({"command": "curl z"}))
            .evidence();
        let finding = judged(&wanted, &evidence);
        assert_eq!((finding.status, finding.reason.as_str()), (Status::Unmet, "`Bash` was called, call 2"));
        assert_eq!(
            finding.evidence,
            ["in `command`, /curl|wget/ matches \"wget\"", "call 3 matches too: Bash(command=\"curl z\")"]
        );
        assert_eq!(underlined(&finding), "\"curl|wget\"");
        assert_eq!(finding.at.unwrap().call, Some(1));
    }

    #[test]
    fn arguments_that_cannot_be_read_decide_nothing_and_are_shown() {
        let finding_of = |arguments: Option<&str>| {
            let mut wanted = json!({"id": "a", "type": "no_tool_called", "tool": "get_weather"});
            wanted
                .as_object_mut()
                .unwrap()
                .extend(arguments.map(|key| ("args_match".to_owned(), json!({key: "Paris"}))));
            judged(&wanted, &EvidenceBuilder::new().call("get_weather", json!("{\"city\": \"Par")).evidence())
        };
        assert_eq!(finding_of(None).status, Status::Unmet);
        let unread = finding_of(Some("city"));
        assert_eq!(unread.status, Status::Undecided);
        assert_eq!(unread.reason, "the arguments of get_weather(\"{\\\"city\\\": \\\"Par\") could not be read");
        let unreported = judged(
            &json!({"id": "a", "type": "no_tool_called", "tool": "get_weather", "args_match": {"city": "x"}}),
            &EvidenceBuilder::new().call("get_weather", json!(null)).evidence(),
        );
        assert_eq!(unreported.status, Status::Undecided);
        assert_eq!(unreported.reason, "the agent does not report with which arguments it called get_weather");
        let other = json!({"id": "a", "type": "no_tool_called", "tool": "Bash", "args_match": {"city": "x"}});
        let story = EvidenceBuilder::new().call("get_weather", json!("{")).evidence();
        assert_eq!(judged(&other, &story).status, Status::Met, "it is a call of another tool");
    }

    #[test]
    fn an_undecidable_pattern_never_passes() {
        let wanted = json!({"id": "a", "type": "no_tool_called", "tool": "Bash", "args_match": {"command": "^(a+)+$"}});
        let evidence =
            EvidenceBuilder::new().call("Bash", json!({"command": format!("{}b", "a".repeat(40))})).evidence();
        assert_eq!(judged(&wanted, &evidence).status, Status::Undecided);
    }

    #[test]
    fn a_hundred_endless_pattern_tests_are_undecided() {
        let wanted = json!({"id": "a", "type": "no_tool_called", "tool": "Bash", "args_match": {"command": "^(a+)+$"}});
        let endless = format!("{}b", "a".repeat(40));
        let story = (0..100).fold(EvidenceBuilder::new(), |story, _| story.call("Bash", json!({"command": endless})));
        assert_eq!(judged(&wanted, &story.evidence()).status, Status::Undecided);
    }
}
