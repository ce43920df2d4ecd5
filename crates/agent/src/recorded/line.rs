//! Parses a line in a file of answers.

use std::collections::HashSet;
use std::sync::Arc;

use model::text::shortened;
use model::{Diagnostic, Ending, Question, Severity, Source, Span, foreign_json, nearest};
use serde_json::{Map, Value};

use super::super::transcript::{self, ReportedCall, ReportedTurn, as_text, given, kind, spread};
use super::answer::{RecordedAnswer, RecordedEnding, is_record, result};
use crate::answer::document;
use crate::answer::usage::{self, Count};
use crate::json_lines::syntax_problem;

/// Known keys, including those of a trial from the report that resemble one of them.
const KEYS: &[&str] = &[
    "case",
    "i",
    "output",
    "answer",
    "messages",
    "tool_calls",
    "questions",
    "turns",
    "turn_count",
    "ending",
    "because",
    "usage",
    "cost_usd",
    "error",
    "errors",
    "session_id",
    "model",
];

/// Keys of which a line needs one, unless the agent did nothing or only called tools.
const ANSWER_KEYS: &[&str] = &["output", "answer", "messages", "error", "ending"];

/// Keys under which other programs write answers.
const OTHER_ANSWER_KEYS: &[&str] = &[
    "actual",
    "actual_output",
    "candidates",
    "choices",
    "completion",
    "content",
    "final_answer",
    "final_output",
    "generated_text",
    "generation",
    "message",
    "model_output",
    "output_text",
    "prediction",
    "reply",
    "response",
    "result",
    "text",
];

/// Keys under which other programs write the case.
const CASE_KEYS: &[&str] = &["name", "id", "case_id", "case_name", "test", "test_name", "scenario", "title"];

/// Maximum number of turns; a larger number is certainly a typo.
const MAX_TURNS: usize = 10_000;
/// Number of characters of a wrong value that are shown.
const SHOWN: usize = 60;

/// Names of the endings that can be written as text.
const ENDINGS: &[&str] =
    &["finished", "gave_up", "out_of_turns", "timed_out", "provider_failed", "aborted", "cancelled"];

/// A line being parsed.
pub(super) struct LineReader<'a> {
    pub(super) source: &'a Arc<Source>,
    /// Position of its first byte in the file.
    pub(super) start: usize,
    pub(super) text: &'a str,
    pub(super) problems: &'a mut Vec<Diagnostic>,
    /// Unknown keys that have already been reported.
    pub(super) odd_keys: &'a mut HashSet<String>,
}

impl LineReader<'_> {
    /// Parses the line. Its errors are added to the problems.
    pub(super) fn answer(&mut self) -> RecordedAnswer {
        let value: Value = match foreign_json::parse(self.text.trim_end()) {
            Ok(value) => value,
            Err(error) => {
                let (problem, column) = syntax_problem(&error);
                let span = Span::new(self.start + column, self.start + column + 1);
                self.problems.push(problem.at(self.source.excerpt(span)));
                return RecordedAnswer::default();
            }
        };
        let Value::Object(mut map) = value else {
            self.problem("", format!("a line must be a JSON object, not {}", kind(&value)));
            return RecordedAnswer::default();
        };
        if let Some(key) = foreign_json::repeated_key(self.text) {
            let wrong = Diagnostic::error(format!("duplicate key `{key}`"));
            let quoted = format!("\"{key}\"");
            let second = self.text.match_indices(&quoted).nth(1).map_or(0, |(at, _)| self.start + at);
            self.problems.push(wrong.at(self.source.excerpt(Span::new(second, second + quoted.len()))));
        }
        let is_record = is_record(&map);
        if !is_record {
            self.check_keys(&map);
        }
        let mut answer = self.read(&map);
        answer.is_record = is_record;
        if answer.case.is_none() && answer.index.is_none() {
            let is_reported = |key: &str| nearest(key, KEYS.iter().copied()) == Some("case");
            let mut keys = CASE_KEYS.iter().filter(|key| map.get(**key).is_some_and(Value::is_string));
            let key = keys.find(|key| !is_reported(key));
            answer.named = key.and_then(|key| Some((map.get(*key)?.as_str()?.to_owned(), *key, self.place(key))));
        }
        answer.tells_calls = match is_record {
            true => map.get("calls_unreported") != Some(&Value::Bool(true)),
            false => ["messages", "tool_calls"].iter().any(|key| given(&map, key).is_some()),
        };
        answer.result = result(&mut map);
        answer
    }

    /// Reports an answer under an unknown key, and warns about other unknown keys that resemble a known one, each once
    /// per file.
    fn check_keys(&mut self, map: &Map<String, Value>) {
        let has_answer = ANSWER_KEYS.iter().any(|key| map.contains_key(*key));
        // Calls alone may be all that is graded, but a text beside them is an answer.
        let has_calls = map.contains_key("tool_calls");
        let near = |key: &str| nearest(key, ["output", "answer"]);
        let is_misplaced = |key: &str, value: &Value| {
            let is_answer = OTHER_ANSWER_KEYS.contains(&key) || (!KEYS.contains(&key) && near(key).is_some());
            is_answer && (!has_calls || value.as_str().is_some_and(|text| !text.is_empty()))
        };
        let misplaced = map.iter().find(|(key, value)| !has_answer && is_misplaced(key, value));
        if let Some((key, _)) = misplaced {
            if !self.odd_keys.insert(key.clone()) {
                return;
            }
            let wrong = Diagnostic::error(format!("this line has no answer: `{key}` is not a key for one"));
            let wrong = wrong.at(self.place(key));
            return self.problems.push(wrong.suggest(Some(near(key).unwrap_or("output"))));
        }
        let misnamed = misnamed_calls(map);
        for key in map.keys().filter(|key| !KEYS.contains(&key.as_str())) {
            if !self.odd_keys.contains(key)
                && self.odd_keys.insert(key.clone())
                && let near = nearest(key, KEYS.iter().copied().filter(|known| !map.contains_key(*known)))
                && let calls = (misnamed == Some(key.as_str())).then_some("tool_calls")
                && let near = calls.or(near)
                && near.is_some()
            {
                let at = self.place(key);
                let odd = Diagnostic::warning(format!("`{key}` is not a known key of an answer")).at(at).suggest(near);
                // The line would answer another case.
                let is_case = near == Some("case") && key.starts_with("case");
                self.problems.push(if is_case { Diagnostic { severity: Severity::Error, ..odd } } else { odd });
            }
        }
    }

    /// Reads everything except the result.
    fn read(&mut self, map: &Map<String, Value>) -> RecordedAnswer {
        let mut answer = RecordedAnswer {
            case: match map.get("case") {
                Some(Value::Number(number)) => Some(number.to_string()),
                _ => self.text(map, "case"),
            },
            index: self.whole(map, "i"),
            output: given(map, "output").or_else(|| given(map, "answer")).map(as_text),
            error: document::error(map),
            session_id: self.text(map, "session_id"),
            model: self.text(map, "model"),
            questions: self.questions(map),
            ending: self.ending(map),
            count: self.usage(map),
            ..RecordedAnswer::default()
        };
        let calls = self.calls(map);
        let turns = self.turns(map, "turns").or_else(|| self.turns(map, "turn_count"));
        (answer.turns, answer.missing_calls) = self.messages(map);
        if let Some(key) = misnamed_calls(map).filter(|_| !is_record(map)) {
            answer.missing_calls.get_or_insert_with(|| format!("`{key}` is not a known key of an answer"));
        }
        let count = Some(answer.turns.len()).filter(|count| *count > 0).or(turns);
        if !is_record(map)
            && let (Some(last), Some(count)) = (calls.iter().filter_map(|call| call.turn).max(), count)
            && last >= count
        {
            self.problem(
                "turn",
                format!("`turn` counts from 0, so the last of {count} is {}", count.saturating_sub(1)),
            );
        }
        if answer.turns.is_empty() {
            answer.turns = spread(calls, answer.output.as_deref(), turns);
        } else {
            let last = answer.turns.len() - 1;
            for call in calls {
                answer.turns[call.turn.unwrap_or(0).min(last)].calls.push(call);
            }
        }
        answer.last_message = answer.turns.last().map_or(0, |turn| turn.message);
        answer
    }

    /// Reads the model's turns from the messages. Irregularities in them are the agent's own, so they are not errors.
    /// Also returns the first part that is not understood.
    fn messages(&mut self, map: &Map<String, Value>) -> (Vec<ReportedTurn>, Option<String>) {
        let Some(messages) = map.get("messages") else { return (Vec::new(), None) };
        let listed = || messages.as_array().into_iter().flatten().filter_map(Value::as_object);
        listed().flat_map(parts).for_each(|call| self.suspect_arguments(call));
        let misnamed = listed().find_map(transcript::misnamed_calls);
        let (turns, warnings) = transcript::turns(messages);
        for warning in &warnings {
            let key = misnamed.filter(|key| warning.starts_with(&format!("`{key}` ")));
            if key.is_some_and(|key| !self.odd_keys.insert(format!("messages.{key}"))) {
                continue;
            }
            let odd = Diagnostic::warning(warning.clone()).at(self.place(key.unwrap_or("messages")));
            let help = "assertions about calls that are not in the record are undecided";
            self.problems.push(odd.suggest(key.map(|_| "tool_calls")).help(help));
        }
        (turns, warnings.into_iter().next())
    }

    fn calls(&mut self, map: &Map<String, Value>) -> Vec<ReportedCall> {
        let mut calls = Vec::new();
        for (index, call) in self.list(map, "tool_calls").iter().enumerate() {
            let Some(object) = self.object(call, "tool_calls", index) else { continue };
            let Some(mut read) = ReportedCall::read(object) else {
                let wrong = Diagnostic::error(format!("`tool_calls[{index}]` must have a `name`, a string"));
                let near = object.keys().find(|key| *key == "tool" || nearest("name", [key.as_str()]).is_some());
                let help = near.map(|near| format!("did you mean `name` instead of `{near}`?"));
                let wrong = wrong.at(self.place("tool_calls"));
                self.problems.push(help.into_iter().fold(wrong, Diagnostic::help));
                continue;
            };
            self.suspect_arguments(object);
            read.turn = self.turns(object, "turn");
            calls.push(read);
        }
        calls
    }

    /// Warns about a call whose arguments are under a key with a typo, because they would be missing, and about
    /// arguments that are not valid JSON.
    fn suspect_arguments(&mut self, call: &Map<String, Value>) {
        const KEYS: [&str; 3] = ["input", "args", "arguments"];
        let call = call.get("function").and_then(Value::as_object).unwrap_or(call);
        if let Some(text) = call.get("arguments").and_then(Value::as_str)
            && text.trim_start().starts_with('{')
            && foreign_json::parse(text).is_err()
            && self.odd_keys.insert("tool_calls.arguments".to_owned())
        {
            let broken = Diagnostic::warning("`arguments` of a call are not valid JSON").at(self.place("arguments"));
            self.problems.push(broken.help("assertions about these arguments are undecided"));
        }
        if let Some(key) = ["input", "args"].into_iter().find(|key| {
            let text = call.get(*key).and_then(Value::as_str).unwrap_or_default();
            foreign_json::parse(text).is_ok_and(|value| value.is_object())
        }) && self.odd_keys.insert(format!("tool_calls.{key}"))
        {
            let odd = Diagnostic::warning(format!("`{key}` of a call is a text, not an object")).at(self.place(key));
            self.problems.push(odd.help("write the object without quotes around it, or JSON as a text in `arguments`"));
        }
        if KEYS.iter().any(|key| call.contains_key(*key)) {
            return;
        }
        let is_meant = |key: &&String| matches!(key.as_str(), "parameters" | "params") || nearest(key, KEYS).is_some();
        if let Some(key) = call.iter().filter(|(_, value)| value.is_object()).map(|(key, _)| key).find(is_meant)
            && self.odd_keys.insert(format!("tool_calls.{key}"))
        {
            let odd = Diagnostic::warning(format!("`{key}` is not a known key of a call")).at(self.place(key));
            self.problems.push(odd.suggest(Some("input")));
        }
    }

    fn questions(&mut self, map: &Map<String, Value>) -> Vec<Question> {
        let mut questions = Vec::new();
        for (index, question) in self.list(map, "questions").iter().enumerate() {
            if let Value::String(question) = question {
                questions.push(Question { question: question.clone(), ..Question::default() });
                continue;
            }
            let Some(object) = self.object(question, "questions", index) else { continue };
            let Some(question) = object.get("question").and_then(Value::as_str) else {
                self.problem("questions", format!("`questions[{index}]` must have a `question`, a string"));
                continue;
            };
            let options = object.get("options").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
            questions.push(Question {
                question: question.to_owned(),
                options: options.iter().map(label).collect(),
                multi_select: object.get("multi_select").and_then(Value::as_bool).unwrap_or(false),
                ..Question::default()
            });
        }
        questions
    }

    fn ending(&mut self, map: &Map<String, Value>) -> RecordedEnding {
        let reason = || map.get("because").and_then(Value::as_str).unwrap_or("as recorded").to_owned();
        let ending = match given(map, "ending") {
            None => return RecordedEnding::Finished,
            Some(Value::String(name)) => match name.as_str() {
                "finished" => return RecordedEnding::Finished,
                "out_of_turns" => return RecordedEnding::OutOfTurns,
                "gave_up" => Ending::GaveUp { reason: reason() },
                "timed_out" => {
                    self.check_amount(map, "duration_ms");
                    let after_ms = map.get("duration_ms").and_then(Value::as_f64).map_or(0, |ms| ms as u64);
                    Ending::TimedOut { setting: "as recorded".to_owned(), after_ms, hint: None }
                }
                "provider_failed" => Ending::ProviderFailed { reason: reason() },
                "aborted" => Ending::Aborted { reason: reason() },
                "cancelled" => Ending::Cancelled,
                _ => {
                    let known = ENDINGS.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
                    let wrong = Diagnostic::error(format!("`ending` must be one of {known}, not `{name}`"));
                    let wrong = wrong.at(self.place("ending"));
                    self.problems.push(wrong.suggest(nearest(name, ENDINGS.iter().copied())));
                    return RecordedEnding::Finished;
                }
            },
            Some(object) => match serde_json::from_value::<Ending>(object.clone()) {
                Ok(ending) => ending,
                Err(error) => {
                    self.problem("ending", format!("`ending` cannot be read: {error}"));
                    return RecordedEnding::Finished;
                }
            },
        };
        if ending == Ending::Finished { RecordedEnding::Finished } else { RecordedEnding::Other(ending) }
    }

    fn usage(&mut self, map: &Map<String, Value>) -> Count {
        let mut count = Count::default();
        match given(map, "usage") {
            None => {}
            Some(Value::Object(given)) => {
                usage::names().for_each(|name| self.check_count(given, name));
                self.suspect_counts(given);
                count = usage::usage(given);
            }
            Some(other) => self.problem("usage", format!("`usage` must be an object, not {}", kind(other))),
        }
        count.read_cost(map);
        let of_usage = map.get("usage").and_then(Value::as_object);
        self.check_amount(map, "cost_usd");
        usage::COST.iter().for_each(|key| of_usage.into_iter().for_each(|usage| self.check_amount(usage, key)));
        count
    }

    fn check_amount(&mut self, map: &Map<String, Value>, key: &str) {
        let Some(value) = given(map, key) else { return };
        match value.as_f64() {
            Some(cost) if cost >= 0.0 => {}
            Some(_) => self.problem(key, format!("`{key}` must not be negative")),
            None => {
                let shown = shortened(&value.to_string(), SHOWN);
                self.problem(key, format!("`{key}` must be a number, not {shown}"));
            }
        }
    }

    /// Warns about counts whose names have a typo. Vendors have other counts, too, with names that differ more.
    fn suspect_counts(&mut self, counts: &Map<String, Value>) {
        for (key, _) in counts.iter().filter(|(_, value)| value.is_number()) {
            let is_known = usage::names().any(|name| name == key);
            let near = nearest(key, usage::names()).filter(|near| near.len().abs_diff(key.len()) <= 1);
            if let (false, Some(near)) = (is_known, near)
                && self.odd_keys.insert(format!("usage.{key}"))
            {
                let at = self.place(key);
                let odd = Diagnostic::warning(format!("`usage` has no count `{key}`, so it is ignored")).at(at);
                self.problems.push(odd.suggest(Some(near)));
            }
        }
    }

    fn check_count(&mut self, map: &Map<String, Value>, key: &'static str) {
        let Some(value) = given(map, key) else { return };
        if value.as_number().and_then(model::decode::as_whole).is_none() {
            let shown = shortened(&value.to_string(), SHOWN);
            self.problem(key, format!("`usage.{key}` must be a whole number of at least 0, not {shown}"));
        }
    }

    fn whole(&mut self, map: &Map<String, Value>, key: &str) -> Option<usize> {
        let value = given(map, key)?;
        let count = match value {
            Value::Number(number) => model::decode::as_whole(number).and_then(|count| usize::try_from(count).ok()),
            _ => None,
        };
        if count.is_none() {
            let shown = shortened(&value.to_string(), SHOWN);
            self.problem(key, format!("`{key}` must be a whole number of at least 0, not {shown}"));
        }
        count
    }

    /// Reads a number of turns, or the index of one.
    fn turns(&mut self, map: &Map<String, Value>, key: &str) -> Option<usize> {
        let count = self.whole(map, key)?;
        if count > MAX_TURNS {
            self.problem(key, format!("`{key}` must not be more than {MAX_TURNS}"));
            return None;
        }
        Some(count)
    }

    fn text(&mut self, map: &Map<String, Value>, key: &str) -> Option<String> {
        match given(map, key)? {
            Value::String(text) => Some(text.clone()),
            other => {
                self.problem(key, format!("`{key}` must be a string, not {}", kind(other)));
                None
            }
        }
    }

    fn list<'m>(&mut self, map: &'m Map<String, Value>, key: &str) -> &'m [Value] {
        match given(map, key) {
            None => &[],
            Some(Value::Array(items)) => items,
            Some(other) => {
                self.problem(key, format!("`{key}` must be a list, not {}", kind(other)));
                &[]
            }
        }
    }

    fn object<'m>(&mut self, value: &'m Value, key: &str, index: usize) -> Option<&'m Map<String, Value>> {
        let object = value.as_object();
        if object.is_none() {
            self.problem(key, format!("`{key}[{index}]` must be an object, not {}", kind(value)));
        }
        object
    }

    fn problem(&mut self, key: &str, message: String) {
        let place = self.place(key);
        self.problems.push(Diagnostic::error(message).at(place));
    }

    /// Returns the location of `key`, or of the whole line.
    pub(super) fn place(&self, key: &str) -> model::Excerpt {
        let quoted = format!("\"{key}\"");
        let found = if key.is_empty() { None } else { self.text.find(&quoted) };
        let (from, to) = match found {
            Some(at) => (at, at + quoted.len()),
            None => (self.text.len() - self.text.trim_start().len(), self.text.trim_end().len()),
        };
        self.source.excerpt(Span::new(self.start + from, self.start + to))
    }
}

/// Returns the key under which a line without `tool_calls` seems to list its calls.
fn misnamed_calls(map: &Map<String, Value>) -> Option<&str> {
    let misnamed = transcript::misnamed_calls(map).or_else(|| calls_in_tools(map));
    misnamed.filter(|_| !map.contains_key("tool_calls"))
}

/// Returns the key `tools` of a line if there are calls in it, and the line says nowhere else which tools were called.
/// A list of the tools that the agent had is kept for `expect`.
fn calls_in_tools(map: &Map<String, Value>) -> Option<&'static str> {
    const OF_CALLS: [&str; 5] = ["input", "args", "arguments", "result", "is_error"];
    let is_call = |item: &Value| item["name"].is_string() && OF_CALLS.iter().any(|key| item.get(key).is_some());
    let has_calls = map.get("tools").and_then(Value::as_array).is_some_and(|tools| tools.iter().any(is_call));
    (has_calls && !map.contains_key("messages")).then_some("tools")
}

/// Returns the parts of a message that may be calls.
fn parts(message: &Map<String, Value>) -> impl Iterator<Item = &Map<String, Value>> {
    let lists = ["tool_calls", "tools", "content", "parts"].into_iter();
    let items = lists.filter_map(|key| message.get(key)?.as_array()).flatten();
    items.chain(message.get("function_call")).filter_map(Value::as_object)
}

fn label(option: &Value) -> String {
    option.get("label").map_or_else(|| as_text(option), as_text)
}
