//! Steps of a conversation, ready for display.

use model::{EgressAttempt, EgressVerdict, Envelope, Event, Question, Step, TrialRecord};
use serde_json::Value;

use crate::format::between;
use crate::terminal::{Paint, call, shows_whole_input};

/// A step, ready for display.
pub(super) struct ShownStep {
    /// Time since the start of the attempt, in milliseconds; absent if only the record is known.
    pub(super) at: Option<u64>,
    /// Description in one line.
    pub(super) head: String,
    /// Its text, which may be cut.
    pub(super) body: String,
    /// Input of a tool, which is never cut.
    pub(super) input: String,
    /// Text that is equal for steps that do the same. Absent for steps that merely follow from others, such as results
    /// of tools.
    pub(super) same: Option<String>,
}

/// Returns the steps of the last attempt, or those in the record if there are no events.
pub(super) fn steps(record: &TrialRecord, events: &[Envelope], paint: &Paint) -> Vec<ShownStep> {
    let attempt = events.iter().filter_map(|envelope| envelope.attempt).max();
    let last = || events.iter().filter(|envelope| envelope.attempt == attempt);
    let since = last().next().map(|envelope| envelope.at);
    let steps: Vec<(u64, &Step)> = last()
        .filter_map(|envelope| match &envelope.event {
            Event::Step(step) => Some((since.map_or(0, |since| between(since, envelope.at)), step)),
            _ => None,
        })
        .collect();
    if steps.is_empty() { from_record(record, paint) } else { from_steps(&steps, paint) }
}

fn from_steps(steps: &[(u64, &Step)], paint: &Paint) -> Vec<ShownStep> {
    let symbols = paint.symbols();
    let mut shown = Vec::new();
    let word = |text: &str| paint.folded(text, 60);
    let mut names: Vec<(&str, String)> = Vec::new();
    for (at, step) in steps {
        let mut say = |same: Option<&str>, head: String, body: &str| {
            let same = same.map(|kind| format!("{kind} {body}"));
            shown.push(ShownStep { at: Some(*at), head, body: body.to_owned(), input: String::new(), same });
        };
        match step {
            Step::UserMessage { text, .. } => say(Some("user"), paint.magenta("user"), text),
            Step::Text { text, parent, .. } if !text.trim().is_empty() => {
                say(Some("text"), paint.cyan(if parent.is_some() { "sub-agent" } else { "agent" }), text);
            }
            Step::Thinking { text, .. } if !text.trim().is_empty() => say(None, paint.dim("thinking"), text),
            Step::ToolCall(made) => {
                names.push((&made.id, word(&made.name)));
                let own =
                    if made.raw_name == made.name { String::new() } else { format!(" [{}]", word(&made.raw_name)) };
                let whole = input(&made.input);
                shown.push(ShownStep {
                    at: Some(*at),
                    head: format!("{} {}{own}  {}", symbols.does, call(made, paint), number(names.len(), paint)),
                    body: String::new(),
                    same: Some(format!("call {} {}", made.name, made.input)),
                    input: if shows_whole_input(made, paint) { String::new() } else { whole },
                });
            }
            Step::ToolResult(result) => {
                let name = names.iter().rev().find(|(id, _)| *id == result.id).map_or("", |(_, name)| name.as_str());
                say(None, answered(name, result.is_error, paint), &result.content);
            }
            Step::Question(question) => say(Some(&question.question), asked(question, paint), ""),
            Step::PermissionAsked(request) => {
                let decision = if request.granted { "allowed" } else { "denied" };
                let head = format!("? asked to use {}: {decision}, {}", word(&request.tool), word(&request.decided_by));
                say(Some("permission"), paint.yellow(&head), &request.title);
            }
            Step::PermissionDenied { tool, message, .. } => {
                say(Some("refused"), paint.yellow(&format!("! {} refused", word(tool))), message);
            }
            Step::Egress(attempt) => say(Some("host"), host(attempt, paint), &attempt.describe()),
            Step::Fault(occurrence) => {
                say(None, paint.yellow(&format!("! fault {}", occurrence.fault.name())), &occurrence.describe());
            }
            Step::MockCall(call) => {
                let head = paint.folded(&call.describe(), 160);
                say(None, if call.verdict.is_notable() { paint.yellow(&head) } else { paint.dim(&head) }, &call.output);
            }
            Step::Retry { attempt, error, .. } => {
                say(None, paint.yellow(&format!("{} request retry {attempt}", symbols.again)), error);
            }
            // A request that is as expected is not shown.
            Step::RequestCheck { met: true, .. } => {}
            Step::RequestCheck { step, met: false, reason } => {
                say(None, paint.red(&format!("! request of script step {step}")), reason);
            }
            Step::CallsMissing { reason } => say(None, paint.yellow("! tool calls are not known"), reason),
            Step::Notice { from, text } => say(None, paint.dim(&format!("[{}]", word(from))), text),
            Step::Finished { subtype, .. } => say(None, format!("{} finished ({})", symbols.done, word(subtype)), ""),
            Step::Session { .. }
            | Step::Text { .. }
            | Step::Thinking { .. }
            | Step::Mocks(_)
            | Step::PermissionsReported
            | Step::CallsUnreported
            | Step::TokensUnreported
            | Step::Replied { .. } => {}
        }
    }
    shown
}

/// Formats the number of a tool call, which findings use to refer to it.
fn number(call: usize, paint: &Paint) -> String {
    paint.dim(&format!("(call {call})"))
}

/// Returns the heading of an attempt to reach a host.
fn host(attempt: &EgressAttempt, paint: &Paint) -> String {
    match attempt.verdict {
        EgressVerdict::Allowed => paint.dim("network"),
        EgressVerdict::Refused => paint.yellow("! network"),
    }
}

/// Returns the conversation from the record, for trials without steps.
fn from_record(record: &TrialRecord, paint: &Paint) -> Vec<ShownStep> {
    let symbols = paint.symbols();
    let mut shown = Vec::new();
    let mut say = |head: String, body: &str, input: String, same: Option<String>| {
        shown.push(ShownStep { at: None, head, body: body.to_owned(), input, same });
    };
    for message in &record.input {
        say(paint.magenta("user"), message, String::new(), Some(format!("user {message}")));
    }
    for (index, made) in record.tool_calls.iter().enumerate() {
        let name = paint.folded(&made.name, 60);
        let same = format!("call {} {}", made.name, made.input);
        say(format!("{} {name}  {}", symbols.does, number(index + 1, paint)), "", input(&made.input), Some(same));
        if let Some(result) = &made.result {
            say(answered(&name, made.is_error, paint), result, String::new(), None);
        }
    }
    for question in &record.questions {
        let question = Question {
            call_id: None,
            question: question.question.clone(),
            options: Vec::new(),
            multi_select: false,
            answer: question.answer.clone(),
            response: None,
            undecided: None,
        };
        say(asked(&question, paint), "", String::new(), Some(question.question.clone()));
    }
    if let Some(answer) = &record.answer {
        say(paint.cyan("agent"), answer, String::new(), Some(format!("text {answer}")));
    }
    shown
}

fn answered(name: &str, is_error: bool, paint: &Paint) -> String {
    let answers = paint.symbols().answers;
    if is_error { paint.red(&format!("{answers} !err {name}")) } else { format!("{answers} ok {name}") }
}

fn asked(question: &Question, paint: &Paint) -> String {
    let symbols = paint.symbols();
    let answer = question
        .answer
        .as_deref()
        .map_or_else(|| paint.yellow("no matching user_responses"), |answer| paint.folded(answer, 400));
    let options = if question.options.is_empty() {
        String::new()
    } else {
        format!(" ({})", paint.folded(&question.options.join(" / "), 200))
    };
    let asked = paint.folded(&question.question, 400);
    format!("{} \"{asked}\"{options} {} {answer}", paint.cyan("?"), symbols.arrow)
}

/// Formats the input of a tool: a single text verbatim, an empty input as nothing, anything else as JSON.
fn input(input: &Value) -> String {
    if input.is_null() || input.as_object().is_some_and(serde_json::Map::is_empty) {
        return String::new();
    }
    let mut values = input.as_object().into_iter().flat_map(|input| input.values());
    match (values.next(), values.next()) {
        (Some(Value::String(only)), None) => only.clone(),
        _ => serde_json::to_string_pretty(input).unwrap_or_default(),
    }
}
