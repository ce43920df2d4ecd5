//! Reported steps of an agent whose model is not run by this program. Parses a JSON conversation into turns and calls.
//! Irregularities are reported but are not errors: they are part of the agent's answer, which may be what is graded.

use std::collections::{BTreeSet, HashMap};

use model::{Ending, foreign_json};
use serde_json::{Map, Value};

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
        let name = function.get("name").and_then(Value::as_str).filter(|name| !name.is_empty())?;
        let input = match given(function, "input").or_else(|| given(function, "args")) {
            Some(input) => input.clone(),
            None => given(function, "arguments").map_or_else(|| Value::Object(Map::new()), arguments),
        };
        Some(Self {
            id: call.get("id").and_then(Value::as_str).map(str::to_owned),
            name: name.to_owned(),
            input: Some(input),
            result: given(call, "result").map(as_text),
            is_error: call.get("is_error").and_then(Value::as_bool).unwrap_or(false),
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

/// Returns the model's turns in `messages`, and warnings about irregularities.
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
    /// Turn and index of calls without a result, oldest first: by the name of the tool, and by the id to which results
    /// refer.
    by_name: HashMap<String, BTreeSet<(usize, usize)>>,
    by_id: HashMap<String, BTreeSet<(usize, usize)>>,
    users: usize,
    warnings: Vec<String>,
}

impl Reader {
    fn message(&mut self, message: &Value, index: usize) {
        let Some(message) = message.as_object() else {
            return self.add_warning(format!("`messages[{index}]` should be an object, not {}", kind(message)));
        };
        match message.get("role").and_then(Value::as_str) {
            Some("user") => self.users += 1,
            Some("assistant") => self.turn(message, index),
            Some("tool") => self.results(message, index),
            Some(_) => {}
            None => self.add_warning(format!("`messages[{index}]` has no `role`")),
        }
    }

    fn turn(&mut self, message: &Map<String, Value>, index: usize) {
        let text = message.get("content").map(content).unwrap_or_default();
        let mut calls = self.calls(message, "tool_calls", index);
        calls.extend(self.calls(message, "tools", index));
        let turn = self.turns.len();
        for (index, call) in calls.iter().enumerate().filter(|(_, call)| call.result.is_none()) {
            self.by_name.entry(call.name.clone()).or_default().insert((turn, index));
            if let Some(id) = &call.id {
                self.by_id.entry(id.clone()).or_default().insert((turn, index));
            }
        }
        self.turns.push(ReportedTurn { message: self.users.saturating_sub(1), text, calls });
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
        for call in self.calls(message, "tools", index) {
            let is_it =
                |open: &ReportedCall| call.input().as_object().is_some_and(Map::is_empty) || open.input == call.input;
            let named = self.by_name.get(&call.name).into_iter().flatten();
            let index = named.copied().find(|(turn, index)| is_it(&self.turns[*turn].calls[*index]));
            match index.and_then(|index| self.take_unanswered(index)) {
                Some(open) => (open.result, open.is_error) = (call.result, call.is_error),
                None => self.add(call),
            }
        }
        let Some(id) = message.get("tool_call_id").and_then(Value::as_str) else { return };
        let index = self.by_id.get(id).and_then(|calls| calls.first().copied());
        if let Some(open) = index.and_then(|index| self.take_unanswered(index)) {
            open.result = Some(message.get("content").map(content).unwrap_or_default());
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

    fn add(&mut self, call: ReportedCall) {
        if self.turns.is_empty() {
            self.turns.push(ReportedTurn { message: self.users.saturating_sub(1), ..ReportedTurn::default() });
        }
        if let Some(turn) = self.turns.last_mut() {
            turn.calls.push(call);
        }
    }

    fn add_warning(&mut self, message: String) {
        self.warnings.push(message);
    }
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
        assert_eq!(turns, [vec![r#"add({"a":1}) = 2"#, r#"add({"a":2}) = 3"#, "sub({}) = -", "mul({}) = 0"]]);
        assert!(problems.is_empty(), "{problems:?}");
        assert_eq!(read(r#"[{"role":"tool","tools":[{"name":"mul"}]}]"#).0, [vec!["mul({}) = -"]]);
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
