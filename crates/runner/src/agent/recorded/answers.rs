//! A file of answers: JSON lines, one answer each.
//!
//! | key | what it is |
//! | --- | --- |
//! | `case` | the case it answers; a line without it answers the case at its own position in the plan |
//! | `output` | the answer; anything but text is its JSON, `null` is no answer (`answer` is the same) |
//! | `messages` | the conversation: `{role, content, tool_calls?}`; what follows a `user` message belongs to it |
//! | `tool_calls` | `{name, input?, result?, is_error?, turn?}`; `turn` counts from 0 |
//! | `questions` | questions to put to the user: texts, or `{question, options?, multi_select?}` |
//! | `turns` | how many turns the model took (`turn_count` is the same) |
//! | `ending` | `finished`, `gave_up`, `out_of_turns`, `timed_out`, `provider_failed`, `aborted`, `cancelled`, or as the report writes it |
//! | `because` | why it ended like that |
//! | `usage` | `{input, output, cache_read, cache_write, reasoning, cost_usd}`, each a number or absent |
//! | `cost_usd` | what it cost |
//! | `error` | there is no answer and this is why: the trial is broken |
//! | `session_id`, `model` | as the agent said |
//!
//! Other keys are left alone. Several lines for one case answer its repetitions in order, the last one every further
//! one. A trial of the JSON report, on a line of its own, is such a line.

use std::collections::HashMap;
use std::sync::Arc;

use model::{Diagnostic, Ending, Source, Span, Tokens, Usage, nearest};
use serde_json::{Map, Value};

use crate::witness::Turn;

/// What a file of answers holds.
#[derive(Debug)]
pub(super) struct Answers {
    /// The answers, a line each; blank lines do not count.
    pub(super) lines: Vec<Answer>,
    /// What is wrong with the file.
    pub(super) problems: Vec<Diagnostic>,
    /// Whether some line names no case.
    pub(super) any_by_position: bool,
    by_case: HashMap<String, Vec<usize>>,
}

/// One answer.
#[derive(Debug, Default)]
pub(super) struct Answer {
    case: Option<String>,
    pub(super) turns: Vec<TurnGiven>,
    /// The user message, from 0, that the last turn belongs to.
    pub(super) last_message: usize,
    pub(super) output: Option<String>,
    pub(super) questions: Vec<QuestionGiven>,
    ending: EndingGiven,
    pub(super) usage: Usage,
    pub(super) error: Option<String>,
    pub(super) session_id: Option<String>,
    pub(super) model: Option<String>,
}

/// One turn of the model.
#[derive(Debug, Default)]
pub(super) struct TurnGiven {
    /// The user message it belongs to, from 0.
    pub(super) message: usize,
    pub(super) text: String,
    pub(super) calls: Vec<CallGiven>,
}

/// A call.
#[derive(Debug)]
pub(super) struct CallGiven {
    pub(super) name: String,
    pub(super) input: Value,
    pub(super) result: Option<String>,
    pub(super) is_error: bool,
    turn: Option<usize>,
}

/// A question.
#[derive(Debug)]
pub(super) struct QuestionGiven {
    pub(super) question: String,
    pub(super) options: Vec<String>,
    pub(super) multi_select: bool,
}

#[derive(Debug, Default)]
enum EndingGiven {
    #[default]
    Finished,
    OutOfTurns,
    Other(Ending),
}

/// Keys that have a meaning, or that a trial of the report has and that look like one of them.
const KEYS: &[&str] = &[
    "case",
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

/// The names of endings that are written as text.
const ENDINGS: &[&str] =
    &["finished", "gave_up", "out_of_turns", "timed_out", "provider_failed", "aborted", "cancelled"];

impl Answers {
    /// Reads `text`, the file called `path`.
    pub(super) fn parse(path: &str, text: String) -> Self {
        let source = Source::new(path, text);
        let mut answers =
            Self { lines: Vec::new(), problems: Vec::new(), any_by_position: false, by_case: HashMap::new() };
        // Some editors put a byte order mark in front.
        let marked = source.text.strip_prefix('\u{feff}');
        let mut start = source.text.len() - marked.unwrap_or(&source.text).len();
        for text in source.text[start..].split_inclusive('\n') {
            let mut line = Line { source: &source, start, text, problems: &mut answers.problems };
            start += text.len();
            if text.trim().is_empty() {
                continue;
            }
            let answer = line.answer();
            match &answer.case {
                Some(case) => answers.by_case.entry(case.clone()).or_default().push(answers.lines.len()),
                None => answers.any_by_position = true,
            }
            answers.lines.push(answer);
        }
        if answers.lines.is_empty() {
            let empty = Diagnostic::error("a file of answers must have at least one line");
            answers.problems.push(empty.at(source.excerpt(Span::default())));
        }
        answers
    }

    /// Whether some line names `case`.
    pub(super) fn has_case(&self, case: &str) -> bool {
        self.by_case.contains_key(case)
    }

    /// Every case that is named.
    pub(super) fn case_ids(&self) -> impl Iterator<Item = &str> {
        self.by_case.keys().map(String::as_str)
    }

    /// The line for that repetition of `case`, which is the `position`-th of the plan.
    pub(super) fn find(&self, case: &str, position: usize, repetition: u64) -> Option<usize> {
        if let Some(lines) = self.by_case.get(case) {
            let nth = usize::try_from(repetition.saturating_sub(1)).unwrap_or(usize::MAX);
            return lines.get(nth).or(lines.last()).copied();
        }
        (self.lines.get(position)?.case.is_none()).then_some(position)
    }
}

impl Answer {
    /// How acting ended.
    pub(super) fn ending(&self, turn: &mut Turn) -> Ending {
        match &self.ending {
            EndingGiven::Finished => Ending::Finished,
            EndingGiven::OutOfTurns => turn.out_of_turns(),
            EndingGiven::Other(ending) => ending.clone(),
        }
    }

    /// The agent's own word for the ending.
    pub(super) fn subtype(&self) -> String {
        let word = match &self.ending {
            EndingGiven::Finished => "success",
            EndingGiven::OutOfTurns => "error_max_turns",
            EndingGiven::Other(_) => "error",
        };
        word.to_owned()
    }
}

/// A line being read.
struct Line<'a> {
    source: &'a Arc<Source>,
    /// Its first byte in the file.
    start: usize,
    text: &'a str,
    problems: &'a mut Vec<Diagnostic>,
}

impl Line<'_> {
    fn answer(&mut self) -> Answer {
        let value: Value = match serde_json::from_str(self.text.trim_end()) {
            Ok(value) => value,
            Err(error) => {
                let column = error.column().saturating_sub(1);
                let text = error.to_string();
                let what = text.split(" at line ").next().unwrap_or(&text);
                let span = Span::new(self.start + column, self.start + column + 1);
                self.problems.push(
                    Diagnostic::error(format!("this line is not JSON: {what}"))
                        .at(self.source.excerpt(span))
                        .help("each line is one JSON object"),
                );
                return Answer::default();
            }
        };
        let Value::Object(map) = &value else {
            self.problem("", format!("a line must be a JSON object, not {}", kind(&value)));
            return Answer::default();
        };
        for key in map.keys().filter(|key| !KEYS.contains(&key.as_str())) {
            if let Some(near) = nearest(key, KEYS.iter().copied().filter(|known| !map.contains_key(*known))) {
                let at = self.place(key);
                let odd = Diagnostic::warning(format!("`{key}` has no meaning in an answer")).at(at);
                self.problems.push(odd.suggest(Some(near)));
            }
        }
        let mut answer = Answer {
            case: match map.get("case") {
                Some(Value::Number(number)) => Some(number.to_string()),
                _ => self.text(map, "case"),
            },
            output: given(map, "output").or_else(|| given(map, "answer")).map(as_text),
            error: given(map, "error").map(as_text),
            session_id: self.text(map, "session_id"),
            model: self.text(map, "model"),
            questions: self.questions(map),
            ending: self.ending(map),
            usage: self.usage(map),
            ..Answer::default()
        };
        let calls = self.calls(map, "tool_calls");
        let turns = self.whole(map, "turns").or_else(|| self.whole(map, "turn_count"));
        answer.turns = self.messages(map);
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

    /// The model's turns among `messages`.
    fn messages(&mut self, map: &Map<String, Value>) -> Vec<TurnGiven> {
        let mut turns = Vec::new();
        let mut users = 0_usize;
        for (at, message) in self.list(map, "messages").iter().enumerate() {
            let Some(message) = self.object(message, "messages", at) else { continue };
            match message.get("role").and_then(Value::as_str) {
                Some("user") => users += 1,
                Some("assistant") => {
                    let calls = self.calls(message, "tool_calls");
                    let text = message.get("content").map(content).unwrap_or_default();
                    turns.push(TurnGiven { message: users.saturating_sub(1), text, calls });
                }
                Some(_) => {}
                None => self.problem("messages", format!("`messages[{at}]` has no `role`")),
            }
        }
        turns
    }

    fn calls(&mut self, map: &Map<String, Value>, key: &str) -> Vec<CallGiven> {
        let mut calls = Vec::new();
        for (at, call) in self.list(map, key).iter().enumerate() {
            let Some(call) = self.object(call, key, at) else { continue };
            let Some(name) = call.get("name").and_then(Value::as_str).filter(|name| !name.is_empty()) else {
                self.problem(key, format!("`{key}[{at}]` must have a `name`, a text"));
                continue;
            };
            calls.push(CallGiven {
                name: name.to_owned(),
                input: given(call, "input").cloned().unwrap_or_else(|| Value::Object(Map::new())),
                result: given(call, "result").map(as_text),
                is_error: call.get("is_error").and_then(Value::as_bool).unwrap_or(false),
                turn: self.whole(call, "turn"),
            });
        }
        calls
    }

    fn questions(&mut self, map: &Map<String, Value>) -> Vec<QuestionGiven> {
        let mut questions = Vec::new();
        for (at, question) in self.list(map, "questions").iter().enumerate() {
            if let Value::String(question) = question {
                let question = question.clone();
                questions.push(QuestionGiven { question, options: Vec::new(), multi_select: false });
                continue;
            }
            let Some(object) = self.object(question, "questions", at) else { continue };
            let Some(question) = object.get("question").and_then(Value::as_str) else {
                self.problem("questions", format!("`questions[{at}]` must have a `question`, a text"));
                continue;
            };
            let options = object.get("options").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
            questions.push(QuestionGiven {
                question: question.to_owned(),
                options: options.iter().map(label).collect(),
                multi_select: object.get("multi_select").and_then(Value::as_bool).unwrap_or(false),
            });
        }
        questions
    }

    fn ending(&mut self, map: &Map<String, Value>) -> EndingGiven {
        let because = || map.get("because").and_then(Value::as_str).unwrap_or("as recorded").to_owned();
        let ending = match given(map, "ending") {
            None => return EndingGiven::Finished,
            Some(Value::String(name)) => match name.as_str() {
                "finished" => return EndingGiven::Finished,
                "out_of_turns" => return EndingGiven::OutOfTurns,
                "gave_up" => Ending::GaveUp { because: because() },
                "timed_out" => Ending::TimedOut {
                    setting: "as recorded".to_owned(),
                    after_ms: map.get("duration_ms").and_then(Value::as_u64).unwrap_or(0),
                },
                "provider_failed" => Ending::ProviderFailed { because: because() },
                "aborted" => Ending::Aborted { because: because() },
                "cancelled" => Ending::Cancelled,
                _ => {
                    let known = ENDINGS.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
                    let wrong = Diagnostic::error(format!("`ending` must be one of {known}, not `{name}`"));
                    let wrong = wrong.at(self.place("ending"));
                    self.problems.push(wrong.suggest(nearest(name, ENDINGS.iter().copied())));
                    return EndingGiven::Finished;
                }
            },
            Some(object) => match serde_json::from_value::<Ending>(object.clone()) {
                Ok(ending) => ending,
                Err(error) => {
                    self.problem("ending", format!("`ending` cannot be read: {error}"));
                    return EndingGiven::Finished;
                }
            },
        };
        if ending == Ending::Finished { EndingGiven::Finished } else { EndingGiven::Other(ending) }
    }

    fn usage(&mut self, map: &Map<String, Value>) -> Usage {
        let mut usage = Usage { tokens: None, cost_usd: map.get("cost_usd").and_then(Value::as_f64) };
        match given(map, "usage") {
            None => {}
            Some(Value::Object(given)) => {
                let known = given.keys().any(|key| key != "cost_usd" && key != "total");
                usage.cost_usd = usage.cost_usd.or_else(|| given.get("cost_usd").and_then(Value::as_f64));
                usage.tokens = known.then(|| Tokens {
                    input: self.count(given, &["input", "input_tokens"]).unwrap_or(0),
                    output: self.count(given, &["output", "output_tokens"]).unwrap_or(0),
                    cache_read: self.count(given, &["cache_read", "cache_read_input_tokens"]).unwrap_or(0),
                    cache_write: self.count(given, &["cache_write", "cache_creation_input_tokens"]).unwrap_or(0),
                    reasoning: self.count(given, &["reasoning", "reasoning_tokens"]),
                });
            }
            Some(other) => self.problem("usage", format!("`usage` must be an object, not {}", kind(other))),
        }
        usage
    }

    fn count(&mut self, map: &Map<String, Value>, keys: &[&str]) -> Option<u64> {
        let (key, value) = keys.iter().find_map(|key| Some((*key, given(map, key)?)))?;
        let count = match value {
            Value::Number(number) => model::decode::as_whole(number),
            _ => None,
        };
        if count.is_none() {
            self.problem(key, format!("`usage.{key}` must be a whole number, not {value}"));
        }
        count
    }

    fn whole(&mut self, map: &Map<String, Value>, key: &str) -> Option<usize> {
        let value = given(map, key)?;
        let count = match value {
            Value::Number(number) => model::decode::as_whole(number).and_then(|count| usize::try_from(count).ok()),
            _ => None,
        };
        if count.is_none() {
            self.problem(key, format!("`{key}` must be a whole number, not {}", kind(value)));
        }
        count
    }

    fn text(&mut self, map: &Map<String, Value>, key: &str) -> Option<String> {
        match given(map, key)? {
            Value::String(text) => Some(text.clone()),
            other => {
                self.problem(key, format!("`{key}` must be a text, not {}", kind(other)));
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

    fn object<'m>(&mut self, value: &'m Value, key: &str, at: usize) -> Option<&'m Map<String, Value>> {
        let object = value.as_object();
        if object.is_none() {
            self.problem(key, format!("`{key}[{at}]` must be an object, not {}", kind(value)));
        }
        object
    }

    fn problem(&mut self, key: &str, message: String) {
        let place = self.place(key);
        self.problems.push(Diagnostic::error(message).at(place));
    }

    /// Where `key` is written, else the whole line.
    fn place(&self, key: &str) -> model::Excerpt {
        let quoted = format!("\"{key}\"");
        let found = if key.is_empty() { None } else { self.text.find(&quoted) };
        let (from, to) = match found {
            Some(at) => (at, at + quoted.len()),
            None => (self.text.len() - self.text.trim_start().len(), self.text.trim_end().len()),
        };
        self.source.excerpt(Span::new(self.start + from, self.start + to))
    }
}

/// Calls and an output as turns: a turn for each call and one for the output, unless the record says otherwise.
fn spread(calls: Vec<CallGiven>, output: Option<&str>, turns: Option<usize>) -> Vec<TurnGiven> {
    let natural = calls.iter().enumerate().map(|(at, call)| call.turn.unwrap_or(at) + 1).max().unwrap_or(0);
    let count = turns.unwrap_or(natural + usize::from(output.is_some()));
    if count == 0 {
        return Vec::new();
    }
    // The output is the last turn; calls that would come after it share the turns before.
    let last_call = if output.is_some() { count.saturating_sub(2) } else { count - 1 };
    let mut turns: Vec<TurnGiven> = Vec::new();
    turns.resize_with(count, TurnGiven::default);
    for (at, call) in calls.into_iter().enumerate() {
        turns[call.turn.unwrap_or(at).min(last_call)].calls.push(call);
    }
    if let (Some(output), Some(last)) = (output, turns.last_mut()) {
        output.clone_into(&mut last.text);
    }
    turns
}

/// The value under `key`; `null` counts as nothing.
fn given<'m>(map: &'m Map<String, Value>, key: &str) -> Option<&'m Value> {
    map.get(key).filter(|value| !value.is_null())
}

fn as_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The text of a message's content, which is text or a list of blocks.
fn content(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::Array(blocks) => blocks.iter().filter_map(|block| block.get("text").and_then(Value::as_str)).collect(),
        other => as_text(other),
    }
}

fn label(option: &Value) -> String {
    option.get("label").map_or_else(|| as_text(option), as_text)
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Answers {
        Answers::parse("answers.jsonl", text.to_owned())
    }

    fn shape(answer: &Answer) -> Vec<(usize, &str)> {
        answer.turns.iter().map(|turn| (turn.calls.len(), turn.text.as_str())).collect()
    }

    #[test]
    fn a_call_is_a_turn_and_the_output_the_last() {
        let text = r#"{"output":"done","tool_calls":[{"name":"Read"},{"name":"Edit"}]}"#;
        assert_eq!(shape(&parse(text).lines[0]), [(1, ""), (1, ""), (0, "done")]);
    }

    #[test]
    fn the_number_of_turns_is_as_recorded() {
        let more = r#"{"output":"done","tool_calls":[{"name":"Read"}],"turns":4}"#;
        assert_eq!(shape(&parse(more).lines[0]), [(1, ""), (0, ""), (0, ""), (0, "done")]);
        let fewer = r#"{"output":"done","tool_calls":[{"name":"Read"},{"name":"Edit"}],"turns":2}"#;
        assert_eq!(shape(&parse(fewer).lines[0]), [(2, ""), (0, "done")]);
        let one = r#"{"output":"done","tool_calls":[{"name":"Read","turn":7}],"turns":1}"#;
        assert_eq!(shape(&parse(one).lines[0]), [(1, "done")]);
        assert!(parse(r#"{"case":"a"}"#).lines[0].turns.is_empty());
    }

    #[test]
    fn messages_are_split_at_the_users() {
        let text = r#"{"messages":[{"role":"user","content":"1"},{"role":"assistant","content":"a","tool_calls":[{"name":"Read"}]},
            "#
        .replace('\n', "")
            + r#"{"role":"user","content":"2"},{"role":"assistant","content":[{"type":"text","text":"b"}]}]}"#;
        let answers = parse(&text);
        assert!(answers.problems.is_empty(), "{:?}", answers.problems);
        let answer = &answers.lines[0];
        assert_eq!(shape(answer), [(1, "a"), (0, "b")]);
        assert_eq!((answer.turns[1].message, answer.last_message), (1, 1));
    }

    #[test]
    fn lines_of_one_case_serve_its_repetitions_and_others_their_position() {
        let answers = parse("{\"case\":\"a\"}\n\n{\"output\":\"p\"}\n{\"case\":\"a\"}\n");
        assert_eq!(answers.find("a", 9, 1), Some(0));
        assert_eq!(answers.find("a", 9, 2), Some(2));
        assert_eq!(answers.find("a", 9, 3), Some(2));
        assert_eq!(answers.find("b", 1, 1), Some(1));
        assert_eq!(answers.find("b", 0, 1), None);
    }

    #[test]
    fn a_missing_output_is_missing_and_other_values_are_their_json() {
        let answers = parse("{\"case\":\"a\"}\n{\"output\":null}\n{\"output\":{\"b\":1}}\n{\"answer\":\"c\"}");
        let outputs: Vec<_> = answers.lines.iter().map(|answer| answer.output.as_deref()).collect();
        assert_eq!(outputs, [None, None, Some("{\"b\":1}"), Some("c")]);
    }

    #[test]
    fn every_problem_is_told_at_its_line_and_column() {
        let answers = parse(
            "{\"case\": \"a\", \"usage\": 5}\n{oops}\n[]\n{\"tool_calls\": [{\"input\": {}}]}\n{\"ending\": \"gaveup\"}\n{\"ouput\": \"x\"}\n",
        );
        let told: Vec<String> = answers.problems.iter().map(ToString::to_string).collect();
        assert_eq!(
            told,
            [
                "answers.jsonl:1:15: `usage` must be an object, not a number",
                "answers.jsonl:2:2: this line is not JSON: key must be a string",
                "answers.jsonl:3:1: a line must be a JSON object, not a list",
                "answers.jsonl:4:2: `tool_calls[0]` must have a `name`, a text",
                "answers.jsonl:5:2: `ending` must be one of `finished`, `gave_up`, `out_of_turns`, `timed_out`, `provider_failed`, `aborted`, `cancelled`, not `gaveup`",
                "answers.jsonl:6:2: `ouput` has no meaning in an answer",
            ]
        );
        assert_eq!(answers.problems[4].help, ["did you mean `gave_up`?"]);
        assert_eq!(answers.problems[5].help, ["did you mean `output`?"]);
        assert!(!answers.problems[5].is_error());
    }

    #[test]
    fn usage_may_be_written_in_a_vendors_names() {
        let text = "{\"usage\":{\"input_tokens\":5,\"output_tokens\":2.0,\"cost_usd\":0.5}}\n{\"usage\":{\"cost_usd\":1}}\n{\"usage\":{\"input\":-1}}";
        let answers = parse(text);
        let tokens = answers.lines[0].usage.tokens.unwrap();
        assert_eq!((tokens.input, tokens.output, tokens.reasoning), (5, 2, None));
        assert_eq!(answers.lines[0].usage.cost_usd, Some(0.5));
        assert_eq!(answers.lines[1].usage.tokens, None);
        assert!(answers.problems[0].message.contains("`usage.input` must be a whole number"));
    }

    #[test]
    fn an_ending_may_be_as_the_report_writes_it() {
        let text = "{\"ending\":{\"kind\":\"gave_up\",\"because\":\"no\"}}\n{\"ending\":\"provider_failed\",\"because\":\"503\"}\n{\"ending\":{\"kind\":\"finished\"}}";
        let answers = parse(text);
        assert!(answers.problems.is_empty(), "{:?}", answers.problems);
        let EndingGiven::Other(ending) = &answers.lines[0].ending else { panic!("finished") };
        assert_eq!(*ending, Ending::GaveUp { because: "no".into() });
        let EndingGiven::Other(ending) = &answers.lines[1].ending else { panic!("finished") };
        assert_eq!(*ending, Ending::ProviderFailed { because: "503".into() });
        assert!(matches!(answers.lines[2].ending, EndingGiven::Finished));
    }
}
