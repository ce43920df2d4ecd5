//! One recorded answer.

use model::{Ending, Excerpt, Question};
use serde_json::{Map, Value};

use super::super::answer::usage::Count;
use super::super::transcript::{ReportedTurn, given};
use crate::conversation::Conversation;
use crate::turn::Turn;

/// One recorded answer.
#[derive(Debug, Default)]
pub(super) struct RecordedAnswer {
    /// Case that it answers.
    pub(super) case: Option<String>,
    /// Text under another key that may be meant as the case, the key, and its place.
    pub(super) named: Option<(String, &'static str, Excerpt)>,
    /// Position in its file of the case that it answers.
    pub(super) index: Option<usize>,
    pub(super) turns: Vec<ReportedTurn>,
    /// The conversation instead of turns, if another program recorded it.
    pub(super) conversation: Option<Conversation>,
    /// True if it is a trial from the report, which does not assign its steps to user messages.
    pub(super) is_record: bool,
    /// Reason why there may be calls that are not in the turns.
    pub(super) missing_calls: Option<String>,
    /// True if the line says which tools were called.
    pub(super) tells_calls: bool,
    /// User message, from 0, to which the last turn belongs.
    pub(super) last_message: usize,
    pub(super) output: Option<String>,
    /// The whole answer, if text is not sufficient.
    pub(super) result: Option<Value>,
    pub(super) questions: Vec<Question>,
    pub(super) ending: RecordedEnding,
    /// Usage of a line that is not a conversation.
    pub(super) count: Count,
    pub(super) error: Option<String>,
    pub(super) session_id: Option<String>,
    pub(super) model: Option<String>,
}

/// Recorded ending.
#[derive(Debug, Default)]
pub(super) enum RecordedEnding {
    #[default]
    Finished,
    OutOfTurns,
    Other(Ending),
}

/// Keys for the harness that are not part of the agent's answer.
const OF_THE_HARNESS: &[&str] = &[
    "case",
    "i",
    "tool_calls",
    "questions",
    "turns",
    "turn_count",
    "ending",
    "because",
    "cost_usd",
    "error",
    "session_id",
    "model",
];

/// Keys that together identify a line as a trial from the report.
const OF_A_RECORD: &[&str] = &["id", "suite", "case", "arm", "repetition", "outcome"];

impl RecordedAnswer {
    /// Creates an answer from a conversation that another program recorded.
    pub(super) fn of(conversation: Conversation) -> Self {
        Self {
            case: conversation.case.clone(),
            missing_calls: conversation.missing_calls.clone(),
            tells_calls: true,
            last_message: conversation.message(),
            output: conversation.answer.clone(),
            ending: match &conversation.ending {
                Ending::Finished => RecordedEnding::Finished,
                other => RecordedEnding::Other(other.clone()),
            },
            session_id: conversation.session_id.clone(),
            model: conversation.model.clone(),
            conversation: Some(conversation),
            ..Self::default()
        }
    }

    /// Returns the ending.
    pub(super) fn ending(&self, turn: &mut Turn) -> Ending {
        match &self.ending {
            RecordedEnding::Finished => Ending::Finished,
            RecordedEnding::OutOfTurns => turn.out_of_turns(),
            RecordedEnding::Other(ending) => ending.clone(),
        }
    }

    /// Returns the name of the ending, as used in the trace.
    pub(super) fn subtype(&self) -> &'static str {
        match &self.ending {
            RecordedEnding::Finished => "success",
            RecordedEnding::OutOfTurns => "error_max_turns",
            RecordedEnding::Other(_) => "error",
        }
    }
}

/// Takes the agent's answer from `map`, if text is not sufficient.
pub(super) fn result(map: &mut Map<String, Value>) -> Option<Value> {
    if is_record(map) {
        return map.remove("result").filter(Value::is_object);
    }
    let tells_calls = ["messages", "tools", "tool_calls"].iter().any(|key| given(map, key).is_some());
    let mut entries = std::mem::take(map);
    entries.retain(|key, _| !OF_THE_HARNESS.contains(&key.as_str()));
    let key = if entries.contains_key("output") { "output" } else { "answer" };
    let others = entries.keys().filter(|other| *other != key && *other != "usage").count();
    if others == 0 && entries.get(key).is_some_and(Value::is_string) && tells_calls {
        return None;
    }
    let named = |name: String| if name == key { "output".to_owned() } else { name };
    let mut result: Map<String, Value> = entries.into_iter().map(|(name, value)| (named(name), value)).collect();
    // The conversation is unknown, not empty.
    if !tells_calls && result.contains_key("output") {
        result.insert("messages".to_owned(), Value::Null);
    }
    Some(Value::Object(result))
}

/// Returns `true` if a line is a trial from the report.
pub(super) fn is_record(map: &Map<String, Value>) -> bool {
    OF_A_RECORD.iter().all(|key| map.contains_key(*key))
}
