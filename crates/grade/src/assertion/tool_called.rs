//! `tool_called`: a tool was called, optionally with certain arguments and at a certain position.

use super::prelude::*;
use super::{ARGS_MATCH, CAPTURE, CAPTURE_MAX_CHARS, TOOL};
use crate::call_pattern::{CallPattern, missed, unknown_calls};
use crate::pattern::RegexBudget;

pub(crate) const ASSERTION: Assertion = Assertion::written("tool_called", parse)
    .reported(Reported::ToolCalls)
    .summary("The agent called a tool, optionally with matching arguments.")
    .fields(&[
        TOOL,
        ARGS_MATCH,
        Field::optional("call_index", "whole number, from 0", "Check only this call of the tool: 0 is the first.")
            .or("any call"),
        Field::optional(
            "min",
            "whole number",
            "Minimum number of matching calls. Cannot be combined with `call_index`.",
        )
        .or("1"),
        Field::optional("max", "whole number", "Maximum number of matching calls.").or("any number"),
        CAPTURE,
        CAPTURE_MAX_CHARS,
    ])
    .parameters(&[Parameter::Value("tool"), Parameter::Map("args_match")])
    .pass(
        || {
            json!({"id": "looks-before-committing", "type": "tool_called", "tool": "Bash",
                   "args_match": {"command": "^git status"}, "call_index": 0})
        },
        || {
            EvidenceBuilder::new()
                .call("Bash", json!({"command": "git status --short"}))
                .call("Bash", json!({"command": "git commit -m x"}))
        },
    )
    .fail(
        || {
            json!({"id": "shows-the-diff", "type": "tool_called", "tool": "Bash",
                   "args_match": {"command": "^git diff --cached"}})
        },
        || {
            EvidenceBuilder::new()
                .call("Bash", json!({"command": "git status"}))
                .call("Bash", json!({"command": "git diff"}))
        },
    );

#[derive(Debug)]
struct ToolCalled {
    wanted: CallPattern,
    index: Option<(usize, SourceLocation)>,
    capture: Vec<String>,
    shown_chars: usize,
}

fn parse(reading: &mut Reading<'_>) -> Option<Arc<dyn Matcher>> {
    let wanted = reading.call_pattern();
    let index = reading.fields.whole("call_index", 0, reading.problems);
    let index = index.zip(reading.fields.get("call_index"));
    let index =
        index.map(|(index, node)| (usize::try_from(index).unwrap_or(usize::MAX), SourceLocation::from_node(node)));
    let capture = reading.capture();
    let shown_chars = reading.shown_chars();
    if reading.fields.get("min").is_some() || reading.fields.get("max").is_some() {
        return tool_calls(reading, wanted?);
    }
    Some(Arc::new(ToolCalled { wanted: wanted?, index, capture, shown_chars }))
}

/// Number of matching calls.
#[derive(Debug)]
struct ToolCalls {
    wanted: CallPattern,
    min: u64,
    max: Option<u64>,
}

fn tool_calls(reading: &mut Reading<'_>, wanted: CallPattern) -> Option<Arc<dyn Matcher>> {
    for key in ["call_index", "capture"] {
        if let Some(node) = reading.fields.get(key) {
            reading.problems.push(node.error(format!("`{key}` cannot be combined with `min` and `max`")));
            return None;
        }
    }
    let (min, max) = reading.range()?;
    Some(Arc::new(ToolCalls { wanted, min, max }))
}

impl Matcher for ToolCalls {
    fn judge(&self, evidence: &Evidence) -> Judgement {
        let (trace, regex_budget) = (&evidence.trace, RegexBudget::new());
        let (mut count, mut unknown) = (0, None);
        for traced in &trace.calls {
            match self.wanted.fits_traced(trace, traced, &regex_budget) {
                Ok(is_match) => count += u64::from(is_match),
                Err(error) => unknown = unknown.or(Some(error)),
            }
        }
        let expected = match self.max {
            Some(max) if max == self.min => max.to_string(),
            Some(max) => format!("{} to {max}", self.min),
            None => format!("at least {}", self.min),
        };
        let noun = if count == 1 { "call" } else { "calls" };
        let is_met = count >= self.min && self.max.is_none_or(|max| count <= max);
        let reason = format!("{count} matching {noun} of `{}`, and {expected} expected", self.wanted.tool);
        let unreported = unknown_calls(trace).filter(|_| self.max.is_some() || count < self.min);
        let verdict = match (unknown.or(unreported), is_met) {
            (Some(error), _) => Verdict::undecided(error),
            (None, true) => Verdict::met(reason),
            (None, false) => Verdict::unmet(reason, format!("{expected} calls"), format!("{count} {noun}")),
        };
        Ok(verdict.place(self.wanted.most_telling_place()))
    }
}

impl Matcher for ToolCalled {
    fn judge(&self, evidence: &Evidence) -> Judgement {
        let trace = &evidence.trace;
        let regex_budget = RegexBudget::new();
        let all: Vec<usize> = (0..trace.calls.len()).collect();
        let of_tool: Vec<usize> =
            all.iter().copied().filter(|&index| self.wanted.names(&trace.calls[index].call)).collect();
        let candidates: Vec<usize> = match &self.index {
            None => of_tool.clone(),
            Some((index, _)) => of_tool.get(*index).copied().into_iter().collect(),
        };

        let mut unknown = None;
        for &at in &candidates {
            let call = &trace.calls[at].call;
            match self.wanted.fits(call, &regex_budget) {
                Ok(true) => {
                    let mut verdict = Verdict::met(format!("call {}: {}", at + 1, call.summary()));
                    verdict.captures = CallPattern::captures(&self.capture, call, self.shown_chars, None);
                    return Ok(verdict.place(self.wanted.most_telling_place()).at_call(trace, at));
                }
                Ok(false) => {}
                Err(error) => unknown = unknown.or(Some((at, error))),
            }
        }
        if let Some((at, error)) = unknown {
            return Ok(Verdict::undecided(error).place(self.wanted.most_telling_place()).at_call(trace, at));
        }
        if let Some(reason) = trace.missing_calls() {
            return Ok(Verdict::undecided(reason).place(self.wanted.most_telling_place()));
        }

        let tool = &self.wanted.tool;
        let wanted = self.wanted.describe();
        Ok(match &self.index {
            Some((index, place)) if candidates.is_empty() && !of_tool.is_empty() => Verdict::unmet(
                format!("there is no `{tool}` call at index {index}"),
                format!("at least {}", format::count(index.saturating_add(1), &format!("`{tool}` call"))),
                format::count(of_tool.len(), &format!("`{tool}` call")),
            )
            .place(place),
            Some((index, _)) if !of_tool.is_empty() => {
                let miss = self.wanted.nearest_miss(trace, &candidates, &regex_budget);
                let verdict = Verdict::unmet(
                    format!("the `{tool}` call at index {index} does not match"),
                    format!("as `{tool}` call at index {index}, {}", format::one(&wanted)),
                    miss.actual.clone(),
                );
                let elsewhere =
                    of_tool.iter().find(|&&at| self.wanted.fits(&trace.calls[at].call, &regex_budget) == Ok(true));
                let elsewhere = elsewhere.and_then(|at| {
                    let index = of_tool.iter().position(|other| other == at)?;
                    Some(format!("call {} matches, at index {index}", at + 1))
                });
                missed(verdict, &miss, trace).evidence(elsewhere)
            }
            _ => {
                let miss = self.wanted.nearest_miss(trace, &all, &regex_budget);
                let reason = match of_tool.len() {
                    0 => format!("`{tool}` was never called"),
                    1 => format!("the only `{tool}` call does not match"),
                    many => format!("none of the {many} `{tool}` calls matches"),
                };
                missed(Verdict::unmet(reason, format::one(&wanted), miss.actual.clone()), &miss, trace)
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use model::Status;
    use serde_json::{Value, json};

    use crate::check::compile;
    use crate::check::tests::{case, judged, underlined};
    use crate::context::Context;
    use crate::example::EvidenceBuilder;

    fn assertion(rest: &Value) -> Value {
        let mut assertion = json!({"id": "a", "type": "tool_called"});
        let fields = rest.as_object().unwrap().clone();
        assertion.as_object_mut().unwrap().extend(fields);
        assertion
    }

    #[test]
    fn a_missing_call_names_the_nearest_tool() {
        let evidence =
            EvidenceBuilder::new().call("Bash", json!({})).call("Bash", json!({})).call("Read", json!({})).evidence();
        let finding = judged(&assertion(&json!({"tool": "bash"})), &evidence);
        assert_eq!(finding.reason, "`bash` was never called");
        assert_eq!(finding.actual.as_deref(), Some("the agent called `Bash` (2 times) and `Read`"));
        assert_eq!(finding.evidence, ["did you mean `Bash`? names must match exactly"]);
        assert_eq!(underlined(&finding), "bash");
        let finding = judged(&assertion(&json!({"tool": "Write"})), &EvidenceBuilder::new().evidence());
        assert_eq!(finding.actual.as_deref(), Some("the agent called no tool"));
    }

    #[test]
    fn an_argument_that_only_looks_the_same_gets_a_hint() {
        let evidence = EvidenceBuilder::new().call("Bash", json!({"command": "I don\u{2019}t"})).evidence();
        let hint = "the same text is there with `\u{2019}` (U+2019) instead of `'` (U+0027)";
        for arguments in [json!({"command": "don't"}), json!({"command": {"$eq": "I don't"}})] {
            let finding = judged(&assertion(&json!({"tool": "Bash", "args_match": arguments})), &evidence);
            assert_eq!((finding.status, finding.evidence), (Status::Unmet, vec![hint.to_owned()]));
        }
    }

    #[test]
    fn a_minimum_of_no_call_needs_a_maximum() {
        let problems = |range: &str| {
            let range: Value = serde_json::from_str(range).unwrap();
            let mut assertion = assertion(&json!({"tool": "Bash"}));
            assertion.as_object_mut().unwrap().extend(range.as_object().unwrap().clone());
            let (_, problems) = compile(&case(&[assertion]), &Context::default());
            problems.iter().map(|problem| problem.message.clone()).collect::<Vec<_>>()
        };
        let nothing = "`min: 0` without `max` accepts every number of calls, so it asserts nothing";
        assert_eq!(problems(r#"{"min": 0}"#), [nothing]);
        for fine in [r#"{"min": 0, "max": 2}"#, r#"{"min": 1}"#, r#"{"max": 3}"#] {
            assert_eq!(problems(fine), [""; 0], "{fine}");
        }
    }

    #[test]
    fn questions_to_the_user_can_be_matched() {
        let questions = json!({"questions": [{"question": "Commit?"}, {"question": "Push?"}]});
        let evidence = EvidenceBuilder::new().call("AskUserQuestion", questions).evidence();
        let asks = |pattern: &str| {
            let wanted = json!({"tool": "AskUserQuestion", "args_match": {"question": pattern}});
            judged(&assertion(&wanted), &evidence).status
        };
        assert_eq!(asks("(?m)^Push"), Status::Met);
        assert_eq!(asks("Merge"), Status::Unmet);
    }

    #[test]
    fn the_nearest_call_and_the_differing_argument_are_reported() {
        let evidence = EvidenceBuilder::new()
            .call("Bash", json!({"command": "ls"}))
            .call("Bash", json!({"command": "git diff", "timeout": 5}))
            .evidence();
        let wanted = json!({"tool": "Bash", "args_match": {"command": "^git", "timeout": "^9$"}});
        let finding = judged(&assertion(&wanted), &evidence);
        assert_eq!(finding.status, Status::Unmet);
        assert_eq!(finding.reason, "none of the 2 `Bash` calls matches");
        assert_eq!(
            finding.expected.as_deref(),
            Some("a `Bash` call whose `command` matches /^git/ and `timeout` matches /^9$/")
        );
        assert_eq!(finding.actual.as_deref(), Some("call 2 has `timeout` \"5\""));
        assert_eq!(finding.evidence, ["call 1 has `command` \"ls\" and no `timeout`"]);
        assert_eq!(underlined(&finding), "\"^9$\"");
        assert_eq!(finding.at.unwrap().call, Some(1));
    }

    #[test]
    fn arguments_may_be_values_or_one_pattern_over_all_of_them() {
        let input = json!({"order": "A-17", "items": [{"sku": "x", "count": 2}], "express": true});
        let evidence = EvidenceBuilder::new().call("ship", input).evidence();
        let finding_of = |wanted: Value| judged(&assertion(&json!({"tool": "ship", "args_match": wanted})), &evidence);
        for fits in [
            json!({"order": "^A-", "express": true}),
            json!({"items": [{"count": 2}]}),
            json!({"items": {"$each": {"count": {"$gte": 1}}}}),
            json!("\"sku\":\"x\""),
        ] {
            assert_eq!(finding_of(fits.clone()).status, Status::Met, "{fits}");
        }
        let finding = finding_of(json!({"express": false, "items": [{"count": 3}]}));
        assert_eq!(
            finding.expected.as_deref(),
            Some("a `ship` call whose `express` is false and `items` is [{\"count\":3}]")
        );
        assert_eq!(
            finding.actual.as_deref(),
            Some("call 1 has `express` true and `items` [{\"sku\":\"x\",\"count\":2}]")
        );
        assert_eq!(underlined(&finding), "false");
        assert_eq!(finding_of(json!({"weight": 5})).actual.as_deref(), Some("call 1 has no `weight`"));
        let finding = finding_of(json!("B-\\d"));
        assert_eq!(finding.expected.as_deref(), Some("a `ship` call whose arguments match /B-\\d/"));
    }

    #[test]
    fn call_index_counts_the_calls_of_its_tool() {
        let evidence = EvidenceBuilder::new()
            .call("Read", json!({"file_path": "a"}))
            .call("Bash", json!({"command": "ls"}))
            .call("Bash", json!({"command": "git status"}))
            .evidence();
        let at = |index: usize| {
            judged(
                &assertion(&json!({"tool": "Bash", "args_match": {"command": "^git"}, "call_index": index})),
                &evidence,
            )
        };
        assert_eq!(at(1).status, Status::Met);
        assert_eq!(at(0).reason, "the `Bash` call at index 0 does not match");
        assert_eq!(at(0).evidence, ["call 3 matches, at index 1"]);
        assert_eq!(at(2).reason, "there is no `Bash` call at index 2");
        assert_eq!(underlined(&at(2)), "2");
    }

    #[test]
    fn captures_are_complete_and_exist_only_if_the_assertion_is_met() {
        let text = "x".repeat(5000);
        let evidence =
            EvidenceBuilder::new().call("Write", json!({"content": text, "n": [1.0], "nil": null})).evidence();
        let finding =
            judged(&assertion(&json!({"tool": "Write", "capture": ["content", "n", "nil", "toString"]})), &evidence);
        let values: Vec<&str> = finding.captures.iter().map(|capture| capture.value.as_str()).collect();
        assert_eq!(values, [&text, "[\n  1\n]", "", ""]);
        assert_eq!(finding.captures[0].shown().0.len(), 2000);
        let unmet = judged(&assertion(&json!({"tool": "Write", "call_index": 3, "capture": ["content"]})), &evidence);
        assert!(unmet.captures.is_empty());
    }

    #[test]
    fn an_undecidable_pattern_is_undecided_unless_another_call_matches() {
        let endless = format!("{}b", "a".repeat(40));
        let wanted = assertion(&json!({"tool": "Bash", "args_match": {"command": "^(a+)+$"}}));
        let doubtful = || EvidenceBuilder::new().call("Bash", json!({"command": endless}));
        let finding = judged(&wanted, &doubtful().evidence());
        assert_eq!((finding.status, finding.score), (Status::Undecided, None));
        assert!(finding.error.unwrap().contains("stopped after"));
        let finding = judged(&wanted, &doubtful().call("Bash", json!({"command": "aa"})).evidence());
        assert_eq!(finding.status, Status::Met);
        let both = json!({"tool": "Bash", "args_match": {"command": "^(a+)+$", "timeout": "5"}});
        assert_eq!(judged(&assertion(&both), &doubtful().evidence()).status, Status::Unmet, "ruled out by the other");
    }
}
