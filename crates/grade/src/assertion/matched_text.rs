//! Texts other than the last answer that `matches` searches, and numbers of matches.

use model::{MockCall, MockVerdict};

use super::file_exists::created_files;
use super::prelude::*;
use crate::call_pattern::{unknown_arguments, unreported_calls};
use crate::pattern::Pattern;
use crate::sandbox_file::{FileProbe, SandboxFile};
use crate::verdict::NO_SANDBOX;

/// Field `in` of `matches`.
pub(super) const IN: Field = Field::optional(
    "in",
    "`answer`, `trace`, `created_files` or `mock_calls`",
    "Text to search: the last answer, the agent's texts and calls with their results as lines of JSON, the paths of \
     the files that the agent created, one per line, or the calls of mocks as lines of JSON.",
)
.or("`answer`");

/// Field `path` of `matches`.
pub(super) const FILE: Field = Field::optional("path", "string", "File to search instead.").or("none");

/// Field `count` of `matches`.
pub(super) const COUNT: Field =
    Field::optional("count", "whole number, from 0", "Number of matches. With 0, the text must not match.")
        .or("at least one");

#[derive(Debug)]
struct MatchedText {
    pattern: Pattern,
    text: Searched,
    count: Option<u64>,
}

/// Text to search.
#[derive(Debug, Clone)]
enum Searched {
    Answer,
    Trace,
    CreatedFiles,
    MockCalls,
    File(SandboxFile),
}

/// Reads `matches` if it has one of the fields of this module.
pub(super) fn parse(reading: &mut Reading<'_>) -> Option<Arc<dyn Matcher>> {
    let count = match reading.fields.get("count") {
        Some(_) => Some(reading.fields.whole("count", 0, reading.problems)?),
        None => None,
    };
    let text = match (reading.fields.get("in"), reading.fields.get("path")) {
        (Some(node), Some(_)) => {
            reading.problems.push(node.error("`in` and `path` cannot be combined; use one of them"));
            return None;
        }
        (None, None) => Searched::Answer,
        (None, Some(_)) => Searched::File(SandboxFile::read(reading)?),
        (Some(_), None) => match reading.required_text("in")? {
            (text, _) if text == "answer" => Searched::Answer,
            (text, _) if text == "trace" => Searched::Trace,
            (text, _) if text == "created_files" => Searched::CreatedFiles,
            (text, place) if text == "mock_calls" => {
                if reading.context.mocks.is_some_and(model::Mocks::is_empty) {
                    let problem = model::Diagnostic::error("the case has no mocks, so there are no calls to search");
                    let problem = problem.help("add `mcp_servers` or `mock_commands`");
                    reading.problems.push(problem.at(place.excerpt()));
                }
                Searched::MockCalls
            }
            (text, place) => {
                let message =
                    format!("`in` must be one of `answer`, `trace`, `created_files` and `mock_calls`, not `{text}`");
                let near = model::nearest(&text, ["answer", "trace", "created_files", "mock_calls"]);
                reading.problems.push(model::Diagnostic::error(message).at(place.excerpt()).suggest(near));
                return None;
            }
        },
    };
    let pattern = reading.literal("pattern")?;
    if matches!(text, Searched::Answer | Searched::Trace) && count.is_none() {
        pattern.warn_if_every_answer_matches(reading.problems);
    }
    Some(Arc::new(MatchedText { pattern, text, count }))
}

impl Matcher for MatchedText {
    fn needs(&self) -> Vec<Need> {
        match &self.text {
            Searched::File(file) => vec![file.need()],
            _ => Vec::new(),
        }
    }

    fn judge(&self, evidence: &Evidence) -> Judgement {
        let pattern = &self.pattern;
        let unknown = |reason: &str| Ok(Verdict::undecided(reason).place(&pattern.place));
        let (what, text) = match &self.text {
            Searched::Answer => {
                let answer = evidence.trace.answer.as_deref().filter(|answer| !model::text::is_blank(answer));
                // Silence keeps every promise.
                if answer.is_none() && self.count == Some(0) {
                    return unknown("the agent gave no answer");
                }
                ("the answer".to_owned(), answer.unwrap_or_default().to_owned())
            }
            Searched::Trace => ("the trace".to_owned(), lines_of(&evidence.trace)),
            Searched::CreatedFiles if evidence.collected.sandbox.is_none() => return unknown(NO_SANDBOX),
            Searched::CreatedFiles => {
                let paths: Vec<&str> = created_files(evidence).collect();
                ("the list of created files".to_owned(), paths.join("\n"))
            }
            Searched::MockCalls if evidence.trace.mocks.is_none() => return unknown("the trial has no mocks"),
            Searched::MockCalls => {
                let lines: Vec<String> = evidence.trace.mock_calls.iter().map(mock_line).collect();
                ("the list of mock calls".to_owned(), lines.join("\n"))
            }
            Searched::File(file) => match file.probe(evidence)? {
                FileProbe::File(size, text, true) => {
                    let reason = format!("only {} of the {size} bytes of `{}` were read", text.len(), file.path);
                    return unknown(&reason);
                }
                FileProbe::File(_, text, false) => (format!("`{}`", file.path), text.to_owned()),
                found => {
                    let reason = format!("there is no file named `{}`", file.path);
                    let wanted = format!("a file named `{}`", file.path);
                    return Ok(Verdict::unmet(reason, wanted, found.describe()).place(&file.place));
                }
            },
        };
        let count = match pattern.count(&text) {
            Ok(count) => count as u64,
            Err(error) => return unknown(&error),
        };
        if matches!(self.text, Searched::Trace)
            && self.count.is_some_and(|wanted| count <= wanted)
            && let Some(reason) = unsearched(&evidence.trace)
        {
            return unknown(&reason);
        }
        let found = pattern.found(&text).filter(|found| !found.is_empty()).map(format::quoted);
        let is_met = self.count.map_or(count > 0, |wanted| wanted == count);
        let times = match count {
            0 => "does not match".to_owned(),
            1 => "matches once".to_owned(),
            count => format!("matches {count} times"),
        };
        let shown = found.map_or_else(String::new, |found| format!(", first {found}"));
        let reason = format!("{pattern} {times} in {what}{shown}");
        let wanted = match self.count {
            None => format!("a match for {pattern} in {what}"),
            Some(0) => format!("no match for {pattern} in {what}"),
            Some(wanted) => format!("{} for {pattern} in {what}", format::count(wanted as usize, "match")),
        };
        let verdict = match is_met {
            true => Verdict::met(reason),
            false => Verdict::unmet(reason.clone(), wanted, reason),
        };
        Ok(verdict.place(&pattern.place))
    }
}

/// Returns the reason why the trace may contain more than [`lines_of`] returns.
fn unsearched(trace: &model::Trace) -> Option<String> {
    let silent = || trace.calls.iter().map(|traced| &traced.call).find(|call| call.input.is_null());
    unreported_calls(trace).map(str::to_owned).or_else(|| silent().and_then(unknown_arguments))
}

/// Returns the agent's texts, calls and results in order, each as a line of JSON.
fn lines_of(trace: &model::Trace) -> String {
    let mut lines = Vec::new();
    let mut line = |value: serde_json::Value| lines.push(value.to_string());
    for turn in &trace.turns {
        if !turn.text.is_empty() {
            line(json!({"type": "text", "text": turn.text}));
        }
        for traced in turn.calls.iter().filter_map(|index| trace.calls.get(*index)) {
            let call = &traced.call;
            line(json!({"type": "tool_use", "name": call.raw_name, "input": call.input}));
            if let Some(result) = &traced.result {
                line(json!({"type": "tool_result", "content": result.content, "is_error": result.is_error}));
            }
        }
    }
    if trace.turns.is_empty() {
        line(json!({"type": "text", "text": trace.answer}));
    }
    lines.join("\n")
}

/// Formats a call of a mock in the form of `claude plugin eval`.
fn mock_line(call: &MockCall) -> String {
    let verdict = match call.verdict {
        MockVerdict::Answered => "ok",
        MockVerdict::Rejected => "abort",
        MockVerdict::Error | MockVerdict::Fault | MockVerdict::NotMocked | MockVerdict::Broken => "tool_error",
    };
    let mut line = json!({"tool": call.name(), "input": call.input, "output": call.output});
    if verdict == "tool_error" {
        line["isError"] = json!(true);
    }
    line["verdict"] = json!(verdict);
    line.to_string()
}

#[cfg(test)]
mod tests {
    use model::Status;

    use super::*;
    use crate::check::tests::judged;

    #[test]
    fn every_text_can_be_searched_and_matches_are_counted() {
        let story = || {
            EvidenceBuilder::new()
                .call("Write", json!({"file_path": "out/a.txt", "content": "one two one"}))
                .file("out/a.txt", Some("one two one"))
                .added("out/a.txt")
                .answer("one\nOne")
        };
        let status = |fields: serde_json::Value| {
            let mut assertion = json!({"id": "a", "type": "matches"});
            assertion.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
            judged(&assertion, &story().evidence()).status
        };
        for fields in [
            json!({"pattern": "one", "count": 1}),
            json!({"pattern": "/one/i", "count": 2}),
            json!({"pattern": "/^o/im", "count": 2}),
            json!({"pattern": "/^O/", "count": 0}),
            json!({"pattern": "x*", "count": 8}),
            json!({"pattern": "\"name\":\"Write\"", "in": "trace"}),
            json!({"pattern": "^out/a\\.txt$", "in": "created_files"}),
            json!({"pattern": "one", "path": "out/a.txt", "count": 2}),
        ] {
            assert_eq!(status(fields.clone()), Status::Met, "{fields}");
        }
        for fields in [
            json!({"pattern": "one", "count": 2}),
            json!({"pattern": "one", "count": 0}),
            json!({"pattern": "two", "in": "created_files"}),
        ] {
            assert_eq!(status(fields.clone()), Status::Unmet, "{fields}");
        }
        let missing = json!({"id": "a", "type": "matches", "pattern": "x", "count": 0, "path": "b"});
        assert_eq!(judged(&missing, &EvidenceBuilder::new().file("b", None).evidence()).status, Status::Unmet);
        let unreported = EvidenceBuilder::new().asks("Go").calls_unreported().answer("Done.").evidence();
        let absent = json!({"id": "a", "type": "matches", "pattern": "rm", "in": "trace", "count": 0});
        assert_eq!(judged(&absent, &unreported).status, Status::Undecided);
        let silent = json!({"id": "a", "type": "matches", "pattern": "x", "count": 0});
        assert_eq!(judged(&silent, &EvidenceBuilder::new().evidence()).status, Status::Undecided);
    }
}
