//! Reads the file in which Codex keeps a session, `sessions/YEAR/MONTH/DAY/rollout-*.jsonl` in its home directory, after
//! the session.

use model::{Ending, Span, Usage};
use serde_json::{Map, Value};

use super::rollout::{Rollout, ThreadEvent};
use crate::conversation::Conversation;
use crate::json::{items, owned, text, texts};
use crate::json_lines::JsonLines;

/// Types of items of the conversation that [`Rollout`] reads, or that belong to no call.
const ITEMS: [&str; 12] = [
    "message",
    "reasoning",
    "function_call",
    "function_call_output",
    "custom_tool_call",
    "custom_tool_call_output",
    "local_shell_call",
    "web_search_call",
    "compaction",
    "compaction_summary",
    "context_compaction",
    "ghost_snapshot",
];

/// Returns `true` if `line` is a line of such a file.
pub(crate) fn is_line(line: &Map<String, Value>) -> bool {
    line.get("type").is_some_and(Value::is_string)
        && line.get("payload").is_some_and(Value::is_object)
        && line.contains_key("timestamp")
}

/// Reads the session.
pub(crate) fn read(lines: &mut JsonLines<'_>) -> Conversation {
    let read = Conversation::of_agent("codex");
    let mut reader = SessionReader { rollout: Rollout::default(), read, ended: Ended::default() };
    let mut last = Span::default();
    while let Some(line) = lines.next() {
        last = line.span;
        reader.line(lines, line.span, &Value::Object(line.value));
    }
    let left = reader.rollout.settle();
    left.into_iter().for_each(|event| reader.event(lines, last, event));
    reader.end()
}

struct SessionReader {
    rollout: Rollout,
    read: Conversation,
    ended: Ended,
}

/// Last event of a session.
#[derive(Default)]
enum Ended {
    /// The user sent a message, or the agent is working.
    #[default]
    Working,
    Answered,
    Interrupted,
    Failed(String),
}

impl SessionReader {
    fn line(&mut self, lines: &JsonLines<'_>, span: Span, line: &Value) {
        let payload = line.get("payload").unwrap_or(&Value::Null);
        let kind = text(payload, "type").unwrap_or_default();
        match text(line, "type").unwrap_or_default() {
            "session_meta" => self.begin(payload),
            "event_msg" => self.message(kind, payload),
            "response_item" if !ITEMS.contains(&kind) => {
                let what = format!("an item of the type `{kind}` is not understood");
                self.read.is_incomplete(lines.source, span, what);
            }
            _ => {}
        }
        for event in self.rollout.entry(line) {
            self.event(lines, span, event);
        }
    }

    fn begin(&mut self, meta: &Value) {
        // A fork repeats the description of the session from which it was made.
        if self.read.session_id.is_some() {
            return;
        }
        self.read.session_id = owned(meta, "id");
        let git = meta.get("git").unwrap_or(&Value::Null);
        let origin = &mut self.read.origin;
        (origin.directory, origin.begun_at) = (owned(meta, "cwd"), owned(meta, "timestamp"));
        (origin.commit, origin.branch) = (owned(git, "commit_hash"), owned(git, "branch"));
    }

    fn message(&mut self, kind: &str, payload: &Value) {
        let item = payload.get("item").unwrap_or(&Value::Null);
        match kind {
            "user_message" => self.asked(text(payload, "message").unwrap_or_default()),
            "item_completed" if text(item, "type") == Some("UserMessage") => {
                self.asked(&texts(&Value::from(items(item, "content"))));
            }
            "task_complete" => {
                let failed = matches!(self.ended, Ended::Failed(_)) && payload["last_agent_message"].is_null();
                if !failed {
                    self.ended = Ended::Answered;
                }
            }
            "turn_aborted" => self.ended = Ended::Interrupted,
            "error" => self.ended = Ended::Failed(text(payload, "message").unwrap_or("no reason given").to_owned()),
            _ => {}
        }
    }

    fn asked(&mut self, message: &str) {
        // Older versions report the same message in two ways.
        let is_again =
            matches!(self.ended, Ended::Working) && self.read.messages.last().is_some_and(|it| it == message);
        if !is_again {
            self.read.user(message);
        }
        self.ended = Ended::Working;
    }

    fn event(&mut self, lines: &JsonLines<'_>, span: Span, event: ThreadEvent) {
        match event {
            ThreadEvent::Step(step) => self.read.push(step),
            ThreadEvent::Model(model) => self.read.model = Some(model),
            ThreadEvent::Version(version) => {
                self.read.agent_version.get_or_insert(version);
            }
            ThreadEvent::Used(tokens) => {
                self.read.spend(self.read.message(), Usage { tokens: Some(tokens), cost_usd: None });
            }
            ThreadEvent::Spawned { .. } => {
                let what = "the steps of a sub-agent are in a file of their own, which is not read";
                self.read.is_incomplete(lines.source, span, what.to_owned());
            }
            ThreadEvent::Damaged => {
                let what = "an item does not say what the agent did";
                self.read.is_incomplete(lines.source, span, what.to_owned());
            }
            ThreadEvent::TooDeep | ThreadEvent::Answered => {}
        }
    }

    fn end(mut self) -> Conversation {
        let aborted = |reason: &str| Ending::Aborted { reason: reason.to_owned() };
        self.read.ending = match self.ended {
            _ if self.read.messages.is_empty() => aborted("the file has no message of a user"),
            Ended::Answered => Ending::Finished,
            Ended::Interrupted => aborted("its user interrupted the agent"),
            Ended::Failed(reason) => Ending::ProviderFailed { reason },
            Ended::Working => aborted("the session ends before the agent has answered the last message"),
        };
        self.read.close();
        self.read
    }
}
