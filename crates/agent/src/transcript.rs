//! Reported steps of an agent whose model is not run by this program. Parses a JSON conversation into turns and calls.
//! Irregularities are reported but are not errors: they are part of the agent's answer, which may be what is graded.

pub(crate) mod content_block;

use std::collections::{BTreeSet, HashMap};

use model::{Ending, foreign_json, nearest};
use serde_json::{Map, Value};

use self::content_block::{BlockResult, ContentBlock};
use super::step_recorder::StepRecorder;
use crate::turn::Turn;

/// One turn of the model.
#[derive(Debug, Default)]
pub(super) struct ReportedTurn {
    /// User message, from 0, to which it belongs.
    pub(super) message: usize,
    pub(super) text: String,
    pub(super) calls: Vec<ReportedCall>,
}

/// A tool call, which may arrive in pieces.
#[derive(Debug, Default)]
pub(super) struct ReportedCall {
    /// Id by which results refer to the call.
    pub(super) id: Option<String>,
    pub(super) name: String,
    /// The arguments' JSON text received so far.
    arguments: String,
    /// The arguments, if they do not arrive as text.
    pub(super) input: Option<Value>,
    pub(super) result: Option<String>,
    pub(super) is_error: bool,
    /// Turn to which it reportedly belongs, from 0.
    pub(super) turn: Option<usize>,
}

impl ReportedCall {
    /// Creates a call without arguments.
    pub(super) fn new(id: Option<String>, name: impl Into<String>) -> Self {
        Self { id, name: name.into(), ..Self::default() }
    }

    /// Reads a call in any of the common forms; returns `None` if it has no name.
    pub(super) fn read(call: &Map<String, Value>) -> Option<Self> {
        let function = call.get("function").and_then(Value::as_object).unwrap_or(call);
        let text = |from: &Map<String, Value>, keys: &[&str]| {
            keys.iter().find_map(|key| from.get(*key)?.as_str()).filter(|text| !text.is_empty()).map(str::to_owned)
        };
        let name = text(function, &["name", "toolName", "tool_name"])?;
        let input = match given(function, "input").or_else(|| given(function, "args")) {
            Some(input) => input.clone(),
            // The call may have had arguments that are not reported.
            None => given(function, "arguments").map_or(Value::Null, arguments),
        };
        let error = given(call, "error").filter(|error| **error != Value::Bool(false) && **error != "");
        let result = error.or_else(|| given(call, "result")).or_else(|| given(call, "output"));
        Some(Self {
            id: text(call, &["call_id", "id", "toolCallId", "toolUseId", "tool_call_id"]),
            name,
            input: Some(input),
            result: result.map(as_text),
            is_error: error.is_some() || call.get("is_error").and_then(Value::as_bool).unwrap_or(false),
            ..Self::default()
        })
    }

    /// Appends more of the JSON text of the arguments.
    pub(super) fn write(&mut self, more: &str) {
        foreign_json::append(&mut self.arguments, more);
    }

    /// Replaces halves of characters that the pieces of a stream left behind.
    pub(super) fn settle(&mut self) {
        [&mut self.name, &mut self.arguments].into_iter().chain(&mut self.result).for_each(foreign_json::settle);
        self.input.iter_mut().for_each(foreign_json::settle_value);
    }

    /// Returns the arguments.
    pub(super) fn input(&self) -> Value {
        let written = || match self.arguments.trim() {
            "" => Value::Object(Map::new()),
            text => foreign_json::parse(text).unwrap_or_else(|_| Value::from(text)),
        };
        self.input.clone().unwrap_or_else(written)
    }

    /// Records the call and its result as if they were happening now.
    pub(super) async fn perform(&self, step_recorder: &mut StepRecorder, turn: &mut Turn) -> Result<(), Ending> {
        // Yields from time to time, so that the trial's timeout is checked even during long transcripts.
        tokio::task::consume_budget().await;
        turn.check_stop()?;
        let id = step_recorder.call(turn, &self.name, self.input())?;
        match &self.result {
            Some(result) => step_recorder.result(turn, &id, result, self.is_error),
            None => Ok(()),
        }
    }
}

/// Reads arguments as written by chat APIs: a string that contains JSON.
fn arguments(written: &Value) -> Value {
    let parsed = written.as_str().and_then(|text| foreign_json::parse(text).ok());
    parsed.unwrap_or_else(|| written.clone())
}

/// Distributes the calls and the output of a recorded answer over turns: one turn for each call and one for the
/// output, unless the record says otherwise.
pub(super) fn spread(calls: Vec<ReportedCall>, output: Option<&str>, turns: Option<usize>) -> Vec<ReportedTurn> {
    let natural = calls.iter().enumerate().map(|(index, call)| call.turn.unwrap_or(index) + 1).max().unwrap_or(0);
    let count = turns.unwrap_or(natural + usize::from(output.is_some()));
    if count == 0 {
        return Vec::new();
    }
    // The output is in the last turn; if there are more calls than turns, they share the turns before it.
    let last_call = if output.is_some() { count.saturating_sub(2) } else { count - 1 };
    let mut turns: Vec<ReportedTurn> = Vec::new();
    turns.resize_with(count, ReportedTurn::default);
    for (index, call) in calls.into_iter().enumerate() {
        turns[call.turn.unwrap_or(index).min(last_call)].calls.push(call);
    }
    if let (Some(output), Some(last)) = (output, turns.last_mut()) {
        output.clone_into(&mut last.text);
    }
    turns
}

/// Returns the turn for an answer that lists its calls next to its text: both belong to one turn, because their order
/// is not reported. Empty if the answer is empty.
pub(super) fn of_answer(calls: Vec<ReportedCall>, text: Option<&str>) -> Vec<ReportedTurn> {
    if calls.is_empty() && text.is_none() {
        return Vec::new();
    }
    vec![ReportedTurn { message: 0, text: text.unwrap_or_default().to_owned(), calls }]
}

/// Records `turns` as if they were happening now. Returns the last text.
pub(super) async fn perform<'a>(
    turns: impl IntoIterator<Item = &'a ReportedTurn>,
    step_recorder: &mut StepRecorder,
    turn: &mut Turn,
) -> Result<Option<&'a str>, Ending> {
    let mut answer = None;
    for given in turns {
        step_recorder.next_turn();
        if !given.text.is_empty() || given.calls.is_empty() {
            step_recorder.say(turn, &given.text)?;
        }
        answer = Some(given.text.as_str()).filter(|text| !text.is_empty()).or(answer);
        for call in &given.calls {
            call.perform(step_recorder, turn).await?;
        }
    }
    Ok(answer)
}

/// Returns the model's turns in `messages`, and warnings about irregularities. What a warning is about may contain
/// calls, so the calls are completely known only without warnings.
pub(super) fn turns(messages: &Value) -> (Vec<ReportedTurn>, Vec<String>) {
    let mut reader = Reader::default();
    match messages {
        Value::Null => {}
        Value::Array(messages) => {
            messages.iter().enumerate().for_each(|(index, message)| reader.message(message, index));
        }
        other => reader.add_warning(format!("`messages` should be a list, not {}", kind(other))),
    }
    (reader.turns, reader.warnings)
}

#[derive(Default)]
struct Reader {
    turns: Vec<ReportedTurn>,
    /// True if an item without a role belongs to the last turn.
    is_open: bool,
    /// Turn and index of calls without a result, oldest first: by the name of the tool, and by the id to which results
    /// refer.
    by_name: HashMap<String, BTreeSet<(usize, usize)>>,
    by_id: HashMap<String, BTreeSet<(usize, usize)>>,
    users: usize,
    warnings: Vec<String>,
}

/// Content of one message.
#[derive(Default)]
struct Content<'m> {
    text: String,
    calls: Vec<ReportedCall>,
    results: Vec<BlockResult<'m>>,
    /// True if it has anything but results.
    has_more: bool,
}

impl Reader {
    fn message(&mut self, message: &Value, index: usize) {
        let Some(message) = message.as_object() else {
            return self.add_warning(format!("`messages[{index}]` should be an object, not {}", kind(message)));
        };
        match message.get("role").and_then(Value::as_str) {
            Some("user") => self.user(message, index),
            Some("assistant" | "model") => self.turn(message, index),
            Some("tool" | "function") => self.results(message, index),
            Some("system" | "developer") => {}
            Some(role) => self.add_warning(format!("`messages[{index}]` has the unknown role `{role}`")),
            None if message.contains_key("type") => self.item(message, index),
            None => self.add_warning(format!("`messages[{index}]` has no `role`")),
        }
    }

    /// Reads a message of the user. Some APIs send results of calls in it; a message with nothing else is not the
    /// user's.
    fn user(&mut self, message: &Map<String, Value>, index: usize) {
        let content = self.content(message, index);
        if content.results.is_empty() || content.has_more {
            self.users += 1;
        }
        self.is_open = false;
        content.results.iter().for_each(|result| self.answer(result, index));
    }

    fn turn(&mut self, message: &Map<String, Value>, index: usize) {
        let Content { text, mut calls, results, .. } = self.content(message, index);
        let mut listed = self.calls(message, "tool_calls", index);
        listed.extend(self.calls(message, "tools", index));
        match given(message, "function_call") {
            None => {}
            Some(called) => match called.as_object().and_then(ReportedCall::read) {
                Some(call) => listed.push(call),
                None => self.add_warning(format!("`messages[{index}].function_call` has no `name`")),
            },
        }
        if let Some(key) = misnamed_calls(message).filter(|_| calls.is_empty() && listed.is_empty()) {
            self.add_warning(format!("`{key}` is not a known key of `messages[{index}]`"));
        }
        // Some libraries write a call both as a block and in a list.
        listed.retain(|call| call.id.is_none() || calls.iter().all(|known| known.id != call.id));
        calls.extend(listed);
        self.turns.push(ReportedTurn { message: self.users.saturating_sub(1), text, calls: Vec::new() });
        self.is_open = true;
        calls.into_iter().for_each(|call| self.add(call));
        results.iter().for_each(|result| self.answer(result, index));
    }

    /// Reads an item without a role, as in the Responses API.
    fn item(&mut self, item: &Map<String, Value>, index: usize) {
        match ContentBlock::read(item) {
            ContentBlock::Result(result) => {
                self.is_open = false;
                self.answer(&result, index);
            }
            ContentBlock::Call(call) => {
                self.open();
                self.add(call);
            }
            ContentBlock::Text(text) => {
                self.open();
                if let Some(turn) = self.turns.last_mut() {
                    turn.text.push_str(text);
                }
            }
            ContentBlock::Other => {}
            ContentBlock::NamelessCall => self.add_warning(format!("`messages[{index}]` is a call without a name")),
            ContentBlock::Unknown(kind) => {
                self.add_warning(format!("`messages[{index}]` has the unknown type `{kind}`"));
            }
        }
    }

    /// Begins a turn, unless the last one goes on.
    fn open(&mut self) {
        if !std::mem::replace(&mut self.is_open, true) {
            self.turns.push(ReportedTurn { message: self.users.saturating_sub(1), ..ReportedTurn::default() });
        }
    }

    /// Reads the content of a message: text, or a list of blocks.
    fn content<'m>(&mut self, message: &'m Map<String, Value>, index: usize) -> Content<'m> {
        let mut read = Content::default();
        let (key, written) = match (given(message, "content"), given(message, "parts")) {
            (Some(content), _) => ("content", content),
            (None, Some(parts)) => ("parts", parts),
            (None, None) => return Content { has_more: true, ..read },
        };
        let Some(blocks) = written.as_array() else {
            return Content { text: as_text(written), has_more: true, ..read };
        };
        for (nth, block) in blocks.iter().enumerate() {
            let place = format!("`messages[{index}].{key}[{nth}]`");
            let found = match block {
                Value::String(text) => ContentBlock::Text(text),
                Value::Object(block) => ContentBlock::read(block),
                other => {
                    self.add_warning(format!("{place} should be an object, not {}", kind(other)));
                    continue;
                }
            };
            read.has_more |= !matches!(found, ContentBlock::Result(_));
            match found {
                ContentBlock::Text(text) => read.text.push_str(text),
                ContentBlock::Call(call) => read.calls.push(call),
                ContentBlock::Result(result) => read.results.push(result),
                ContentBlock::Other => {}
                ContentBlock::NamelessCall => self.add_warning(format!("{place} is a call without a name")),
                ContentBlock::Unknown(kind) => self.add_warning(format!("{place} has the unknown type `{kind}`")),
            }
        }
        read
    }

    fn calls(&mut self, message: &Map<String, Value>, key: &str, index: usize) -> Vec<ReportedCall> {
        let written = match given(message, key) {
            None => return Vec::new(),
            Some(Value::Array(calls)) => calls,
            Some(other) => {
                self.add_warning(format!("`messages[{index}].{key}` should be a list, not {}", kind(other)));
                return Vec::new();
            }
        };
        let mut calls = Vec::with_capacity(written.len());
        for (nth, call) in written.iter().enumerate() {
            match call.as_object().and_then(ReportedCall::read) {
                Some(call) => calls.push(call),
                None => self.add_warning(format!("`messages[{index}].{key}[{nth}]` has no `name`")),
            }
        }
        calls
    }

    /// Reads a message from tools: results of earlier calls, and calls that were not mentioned before.
    fn results(&mut self, message: &Map<String, Value>, index: usize) {
        self.is_open = false;
        for call in self.calls(message, "tools", index) {
            let names_none = match call.input() {
                Value::Object(arguments) => arguments.is_empty(),
                arguments => arguments.is_null(),
            };
            let is_it = |open: &ReportedCall| names_none || open.input == call.input;
            let named = self.by_name.get(&call.name).into_iter().flatten();
            let index = named.copied().find(|(turn, index)| is_it(&self.turns[*turn].calls[*index]));
            match index.and_then(|index| self.take_unanswered(index)) {
                Some(open) => (open.result, open.is_error) = (call.result, call.is_error),
                None => self.add(call),
            }
        }
        let text = |key: &str| message.get(key).and_then(Value::as_str);
        let Content { text: answer, results, .. } = self.content(message, index);
        if !results.is_empty() {
            return results.iter().for_each(|result| self.answer(result, index));
        }
        let (id, name) = (text("tool_call_id"), text("name"));
        if id.is_some() || (name.is_some() && message.contains_key("content")) {
            let is_error = message.get("is_error").and_then(Value::as_bool).unwrap_or(false);
            self.answer(&BlockResult { id, name, content: answer, is_error }, index);
        }
    }

    /// Adds the result of an earlier call, which is found by its id, or by the name of its tool.
    fn answer(&mut self, result: &BlockResult<'_>, index: usize) {
        let first = |calls: Option<&BTreeSet<(usize, usize)>>| calls.and_then(|calls| calls.first().copied());
        let by_id = result.id.and_then(|id| first(self.by_id.get(id)));
        let at = by_id.or_else(|| first(self.by_name.get(result.name?)));
        match at.and_then(|at| self.take_unanswered(at)) {
            Some(open) => (open.result, open.is_error) = (Some(result.content.clone()), result.is_error),
            None => self.add_warning(format!("`messages[{index}]` has a result of a call that is not in the messages")),
        }
    }

    /// Marks the call at this turn and index as answered, and returns it.
    fn take_unanswered(&mut self, at: (usize, usize)) -> Option<&mut ReportedCall> {
        let open = self.turns.get_mut(at.0)?.calls.get_mut(at.1)?;
        if let Some(named) = self.by_name.get_mut(&open.name) {
            named.remove(&at);
        }
        if let Some(named) = open.id.as_ref().and_then(|id| self.by_id.get_mut(id)) {
            named.remove(&at);
        }
        Some(open)
    }

    /// Adds a call to the last turn.
    fn add(&mut self, call: ReportedCall) {
        if self.turns.is_empty() {
            self.turns.push(ReportedTurn { message: self.users.saturating_sub(1), ..ReportedTurn::default() });
        }
        let turn = self.turns.len() - 1;
        let at = (turn, self.turns[turn].calls.len());
        if call.result.is_none() {
            self.by_name.entry(call.name.clone()).or_default().insert(at);
            if let Some(id) = &call.id {
                self.by_id.entry(id.clone()).or_default().insert(at);
            }
        }
        self.turns[turn].calls.push(call);
    }

    fn add_warning(&mut self, message: String) {
        self.warnings.push(message);
    }
}

/// Returns the key of `message` that is not known, and under which there are probably calls.
pub(super) fn misnamed_calls(message: &Map<String, Value>) -> Option<&str> {
    const KNOWN: [&str; 3] = ["tool_calls", "tools", "function_call"];
    const OTHERS: [&str; 6] = ["calls", "functioncall", "functioncalls", "tooluse", "tooluses", "toolinvocations"];
    let has_parts = |value: &Value| match value {
        Value::Array(items) => items.iter().any(Value::is_object),
        Value::Object(entries) => !entries.is_empty(),
        _ => false,
    };
    let means_calls = |key: &str| {
        let folded = key.to_lowercase().replace(['-', '_'], "");
        OTHERS.contains(&folded.as_str()) || nearest(key, ["tool_calls"]).is_some()
    };
    let mut others = message.iter().filter(|(key, value)| !KNOWN.contains(&key.as_str()) && has_parts(value));
    others.find(|(key, _)| means_calls(key)).map(|(key, _)| key.as_str())
}

/// Returns the text of a message's content, which is a string or a list of blocks.
pub(super) fn content(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::Array(blocks) => blocks.iter().filter_map(|block| block.get("text").and_then(Value::as_str)).collect(),
        other => as_text(other),
    }
}

/// Returns the value under `key`; `null` counts as absent.
pub(super) fn given<'m>(map: &'m Map<String, Value>, key: &str) -> Option<&'m Value> {
    map.get(key).filter(|value| !value.is_null())
}

/// Returns a string unchanged and anything else as JSON.
pub(super) fn as_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Describes the type of `value`.
pub(super) fn kind(value: &Value) -> &'static str {
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

    /// Returns the calls of every turn as `name(input) = result`, and the warnings.
    fn read(messages: &str) -> (Vec<Vec<String>>, Vec<String>) {
        let (turns, warnings) = turns(&serde_json::from_str(messages).unwrap());
        let call = |call: &ReportedCall| {
            let result = call.result.as_deref().unwrap_or("-");
            format!("{}({}) = {}{}", call.name, call.input(), result, if call.is_error { "!" } else { "" })
        };
        (turns.iter().map(|turn| turn.calls.iter().map(call).collect()).collect(), warnings)
    }

    #[test]
    fn calls_are_read_in_every_form() {
        let (turns, problems) = read(
            r#"[{"role":"user","content":"go"},
            {"role":"assistant","tools":[{"name":"add","args":{"a":1},"result":{"sum":1}}]},
            {"role":"assistant","tool_calls":[{"name":"Read","input":{"b":2},"result":"x","is_error":true}]},
            {"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"get","arguments":"{\"c\":3}"}},{"id":"c2","function":{"name":"get","arguments":"not json"}}]},
            {"role":"tool","tool_call_id":"c2","content":"second"},
            {"role":"tool","tool_call_id":"c1","content":[{"type":"text","text":"first"}]}]"#,
        );
        assert_eq!(
            turns,
            [
                vec![r#"add({"a":1}) = {"sum":1}"#],
                vec![r#"Read({"b":2}) = x!"#],
                vec![r#"get({"c":3}) = first"#, r#"get("not json") = second"#],
            ]
        );
        assert!(problems.is_empty(), "{problems:?}");
    }

    #[test]
    fn a_tool_message_answers_the_previous_call_or_adds_one() {
        let (turns, problems) = read(
            r#"[{"role":"assistant","tools":[{"name":"add","args":{"a":1}},{"name":"add","args":{"a":2}},{"name":"sub"}]},{"role":"tool","tools":[{"name":"add","args":{"a":2},"result":3},{"name":"add","result":2},{"name":"mul","args":{},"result":0}]}]"#,
        );
        assert_eq!(turns, [vec![r#"add({"a":1}) = 2"#, r#"add({"a":2}) = 3"#, "sub(null) = -", "mul({}) = 0"]]);
        assert!(problems.is_empty(), "{problems:?}");
        assert_eq!(read(r#"[{"role":"tool","tools":[{"name":"mul"}]}]"#).0, [vec!["mul(null) = -"]]);
    }

    #[test]
    fn calls_in_content_blocks_and_items_are_read_in_the_form_of_every_api() {
        let anthropic = read(
            r#"[{"role":"user","content":[{"type":"text","text":"go"}]},
            {"role":"assistant","content":[{"type":"thinking","thinking":"hm"},{"type":"text","text":"a"},{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"ls"}},{"type":"server_tool_use","id":"t2","name":"web_search","input":{}},{"type":"web_search_tool_result","tool_use_id":"t2","content":[]}]},
            {"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","is_error":true,"content":[{"type":"text","text":"no"}]}]},
            {"role":"assistant","content":[{"type":"text","text":"b"}]}]"#,
        );
        assert_eq!(
            anthropic,
            (vec![vec![r#"Bash({"command":"ls"}) = no!"#.into(), "web_search({}) = []".into()], vec![]], vec![])
        );
        let openai = read(
            r#"[{"role":"assistant","content":null,"function_call":{"name":"get","arguments":"{\"a\":1}"}},
            {"role":"function","name":"get","content":"1"},
            {"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"get","input":{}}],"tool_calls":[{"id":"t1","name":"get","args":{}}]},
            {"role":"tool","tool_call_id":"t1","content":"2"}]"#,
        );
        assert_eq!(openai, (vec![vec![r#"get({"a":1}) = 1"#.into()], vec!["get({}) = 2".into()]], vec![]));
        let responses = read(
            r#"[{"role":"user","content":"go"},{"type":"reasoning","summary":[]},
            {"type":"message","role":"assistant","content":[{"type":"output_text","text":"a"}]},
            {"type":"function_call","id":"fc_1","call_id":"c1","name":"get","arguments":"{\"a\":1}"},
            {"type":"web_search_call","id":"ws_1","action":{"query":"x"}},
            {"type":"function_call_output","call_id":"c1","output":"1"},
            {"type":"custom_tool_call","call_id":"c2","name":"patch","input":"text"}]"#,
        );
        let expected = vec![
            vec![r#"get({"a":1}) = 1"#.into(), r#"web_search({"query":"x"}) = -"#.into()],
            vec![r#"patch("text") = -"#.into()],
        ];
        assert_eq!(responses, (expected, vec![]));
        let gemini = read(
            r#"[{"role":"user","parts":[{"text":"go"}]},
            {"role":"model","parts":[{"text":"hm","thought":true},{"functionCall":{"name":"get","args":{"a":1}}},{"functionCall":{"id":"f2","name":"get","args":{"a":2}}}]},
            {"role":"user","parts":[{"functionResponse":{"id":"f2","name":"get","response":{"n":2}}},{"functionResponse":{"name":"get","response":{"n":1}}}]}]"#,
        );
        assert_eq!(
            gemini,
            (vec![vec![r#"get({"a":1}) = {"n":1}"#.into(), r#"get({"a":2}) = {"n":2}"#.into()]], vec![])
        );
        let bedrock_and_ai_sdk = read(
            r#"[{"role":"assistant","content":[{"toolUse":{"toolUseId":"b1","name":"get","input":{}}}]},
            {"role":"user","content":[{"toolResult":{"toolUseId":"b1","status":"error","content":[{"text":"no"}]}}]},
            {"role":"assistant","content":[{"type":"tool-call","toolCallId":"v1","toolName":"get","input":{}}]},
            {"role":"tool","content":[{"type":"tool-result","toolCallId":"v1","toolName":"get","output":"yes"}]},
            {"role":"assistant","parts":[{"type":"step-start"},{"type":"tool-get","toolCallId":"v2","input":{},"output":"ui"}]}]"#,
        );
        let expected =
            vec![vec!["get({}) = no!".to_owned()], vec!["get({}) = yes".into()], vec!["get({}) = ui".into()]];
        assert_eq!(bedrock_and_ai_sdk, (expected, vec![]));
    }

    #[test]
    fn a_message_that_has_only_results_is_not_a_message_of_the_user() {
        let messages = r#"[{"role":"user","content":"1"},{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"A"}]},
            {"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"x"}]},{"role":"assistant","content":"a"},
            {"role":"user","content":"2"},{"role":"assistant","content":"b"}]"#;
        let (turns, _) = turns(&serde_json::from_str(messages).unwrap());
        assert_eq!(turns.iter().map(|turn| turn.message).collect::<Vec<_>>(), [0, 0, 1]);
    }

    #[test]
    fn parts_that_are_not_understood_are_named() {
        let warnings = |messages: &str| read(messages).1;
        assert_eq!(
            warnings(
                r#"[{"role":"critic"},{"type":"agent_handoff"},{"type":"function_call","arguments":"{}"},
                {"role":"assistant","function_call":"get","content":[{"type":"new_thing"},{"surprise":1},5,{"type":"tool_use","id":"t"}]},
                {"role":"tool","tool_call_id":"t9","content":"x"}]"#
            ),
            [
                "`messages[0]` has the unknown role `critic`",
                "`messages[1]` has the unknown type `agent_handoff`",
                "`messages[2]` is a call without a name",
                "`messages[3].content[0]` has the unknown type `new_thing`",
                "`messages[3].content[1]` has the unknown type `surprise`",
                "`messages[3].content[2]` should be an object, not a number",
                "`messages[3].content[3]` is a call without a name",
                "`messages[3].function_call` has no `name`",
                "`messages[4]` has a result of a call that is not in the messages",
            ]
        );
    }

    #[test]
    fn calls_under_another_key_are_named_unless_they_are_also_under_a_known_one() {
        for key in ["toolCalls", "tool_call", "tool_uses", "toolInvocations", "calls"] {
            let message = |more: &str| format!(r#"[{{"role":"assistant",{more}"{key}":[{{"name":"get"}}]}}]"#);
            assert_eq!(read(&message("")).1, [format!("`{key}` is not a known key of `messages[0]`")]);
            let both = read(&message(r#""tool_calls":[{"name":"get","args":{}}],"#));
            assert_eq!(both, (vec![vec!["get({}) = -".to_owned()]], vec![]));
        }
        let others =
            r#"[{"role":"assistant","toolCalls":[],"calls":3,"annotations":[{"type":"url"}],"audio":{"id":1}}]"#;
        assert_eq!(read(others).1, [""; 0]);
    }

    #[test]
    fn irregularities_are_reported_and_reading_continues() {
        let warnings = |messages: &str| read(messages).1;
        assert_eq!(warnings("\"hi\""), ["`messages` should be a list, not a string"]);
        assert_eq!(
            warnings(
                r#"[5,{"content":"x"},{"role":"assistant","tools":{}},{"role":"assistant","tools":[{"args":{}},1]}]"#
            ),
            [
                "`messages[0]` should be an object, not a number",
                "`messages[1]` has no `role`",
                "`messages[2].tools` should be a list, not an object",
                "`messages[3].tools[0]` has no `name`",
                "`messages[3].tools[1]` has no `name`",
            ]
        );
        assert!(warnings("null").is_empty());
    }
}
