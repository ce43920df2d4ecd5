//! Messages written to Claude Code's stdin: user messages, and both directions of the control protocol, one JSON
//! object per line.

use serde_json::{Value, json};

/// Answer for the model if no answer was prepared for its question.
const NO_ANSWER: &str = "No answer was prepared for this question.";

/// A request from the CLI to its host.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Request {
    /// Id that the response must repeat.
    pub(super) id: String,
    /// Content of the request.
    pub(super) kind: RequestKind,
}

/// Content of a request from the CLI to its host.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum RequestKind {
    /// Asks whether a tool may run. For AskUserQuestion: asks for the user's answers.
    Tool {
        /// Name of the tool.
        name: String,
        /// Arguments of the tool.
        input: Value,
        /// Id of the call.
        call_id: Option<String>,
    },
    /// A hook that was registered in [`initialize`] was triggered.
    Hook {
        /// Id of the hook.
        callback: String,
        /// Data passed to the hook.
        input: Value,
    },
    /// A request that this host does not know.
    Unknown {
        /// Name of the request.
        subtype: String,
    },
}

impl Request {
    /// Reads a `control_request`.
    pub(super) fn read(line: &Value) -> Option<Self> {
        let id = line.get("request_id")?.as_str()?.to_owned();
        let request = line.get("request")?;
        let text = |key: &str| request.get(key).and_then(Value::as_str).map(str::to_owned);
        let input = || request.get("input").cloned().unwrap_or(Value::Null);
        let subtype = text("subtype").unwrap_or_default();
        let kind = match subtype.as_str() {
            "can_use_tool" => RequestKind::Tool {
                name: text("tool_name").unwrap_or_default(),
                input: input(),
                call_id: text("tool_use_id"),
            },
            "hook_callback" => RequestKind::Hook { callback: text("callback_id").unwrap_or_default(), input: input() },
            _ => RequestKind::Unknown { subtype },
        };
        Some(Self { id, kind })
    }

    /// Returns the response that allows the call with these arguments.
    pub(super) fn allow(&self, input: &Value) -> Value {
        self.answer(&json!({"behavior": "allow", "updatedInput": input}))
    }

    /// Returns the response that denies the call, with a reason. The agent continues.
    pub(super) fn deny(&self, message: &str) -> Value {
        self.answer(&json!({"behavior": "deny", "message": message, "interrupt": false}))
    }

    /// Returns the response that does not object.
    pub(super) fn pass(&self) -> Value {
        self.answer(&json!({}))
    }

    /// Returns the response of a hook that forbids the call before any permission is checked.
    pub(super) fn forbid(&self, reason: &str) -> Value {
        self.answer(&json!({"hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": "deny",
            "permissionDecisionReason": reason,
        }}))
    }

    /// Returns the response of a hook that ends the turn, so that no further request goes to the model.
    pub(super) fn end_turn(&self, reason: &str) -> Value {
        self.answer(&json!({"continue": false, "stopReason": reason}))
    }

    /// Returns the response that reports an error in the host.
    pub(super) fn fail(&self, reason: &str) -> Value {
        json!({"type": "control_response", "response": {"subtype": "error", "request_id": self.id, "error": reason}})
    }

    fn answer(&self, response: &Value) -> Value {
        json!({"type": "control_response", "response": {
            "subtype": "success",
            "request_id": self.id,
            "response": response,
        }})
    }
}

/// Returns a user message.
pub(super) fn user(text: &str) -> Value {
    json!({
        "type": "user",
        "message": {"role": "user", "content": [{"type": "text", "text": text}]},
        "parent_tool_use_id": null,
        "session_id": "",
    })
}

/// Returns the request that opens the protocol: it registers hooks and extends the system prompt. The prompt is sent
/// this way because command-line arguments have a size limit, and the agent could find a file.
pub(super) fn initialize(hooks: &Value, system_prompt: Option<&str>) -> Value {
    let mut request = json!({"subtype": "initialize", "hooks": hooks});
    if let Some(text) = system_prompt {
        request["appendSystemPrompt"] = json!(text);
    }
    json!({"type": "control_request", "request_id": "initialize", "request": request})
}

/// Returns the request that interrupts the CLI.
pub(super) fn interrupt() -> Value {
    json!({"type": "control_request", "request_id": "interrupt", "request": {"subtype": "interrupt"}})
}

/// Adds the answers to the arguments. A question without an answer gets a notice, so that the agent continues.
pub(super) fn answered(mut input: Value, answers: Vec<(String, Option<String>)>) -> Value {
    if let Some(fields) = input.as_object_mut()
        && !answers.is_empty()
    {
        let answers = answers
            .into_iter()
            .map(|(question, answer)| (question, Value::String(answer.unwrap_or_else(|| NO_ANSWER.to_owned()))));
        fields.insert("answers".to_owned(), Value::Object(answers.collect()));
    }
    input
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::question::questions;

    fn request(value: &Value) -> Request {
        Request::read(&json!({"type": "control_request", "request_id": "r1", "request": value})).unwrap()
    }

    #[test]
    fn a_batch_of_questions_is_read_and_answered_one_by_one() {
        let input = json!({"questions": [
            {"question": "Which color?", "header": "Color", "multiSelect": false,
             "options": [{"label": "Red", "description": "warm"}, {"label": "Blue"}]},
            {"question": "Which sizes?", "multiSelect": true, "options": [{"label": "S"}, {"label": "L"}]},
            {"question": "", "options": []},
        ]});
        let asked = questions(&input);
        assert_eq!(asked.len(), 2);
        assert_eq!(asked[0].options, ["Red", "Blue"]);
        assert!(!asked[0].multi_select && asked[1].multi_select);

        let request = request(&json!({
            "subtype": "can_use_tool", "tool_name": "AskUserQuestion", "input": input, "tool_use_id": "t1",
        }));
        let RequestKind::Tool { name, input, call_id } = request.kind.clone() else { panic!("not a tool") };
        assert_eq!((name.as_str(), call_id.as_deref()), ("AskUserQuestion", Some("t1")));
        let answers = vec![("Which color?".to_owned(), Some("Blue".to_owned())), ("Which sizes?".to_owned(), None)];
        let reply = request.allow(&answered(input.clone(), answers));
        assert_eq!(reply["response"]["request_id"], "r1");
        let reply = &reply["response"]["response"];
        assert_eq!(reply["behavior"], "allow");
        assert_eq!(reply["updatedInput"]["questions"], input["questions"]);
        assert_eq!(reply["updatedInput"]["answers"], json!({"Which color?": "Blue", "Which sizes?": NO_ANSWER}));
    }

    #[test]
    fn a_single_question_needs_no_batch_and_an_empty_batch_has_no_answers() {
        assert_eq!(questions(&json!({"question": "Go on?"}))[0].question, "Go on?");
        assert!(questions(&json!({"questions": []})).is_empty());
        assert_eq!(answered(json!({"questions": []}), Vec::new()), json!({"questions": []}));
    }

    #[test]
    fn the_agent_continues_after_a_denial() {
        let request = request(&json!({"subtype": "can_use_tool", "tool_name": "Bash", "input": {}}));
        let reply = request.deny("not here");
        assert_eq!(
            reply["response"]["response"],
            json!({"behavior": "deny", "message": "not here", "interrupt": false})
        );
    }

    #[test]
    fn an_unknown_request_is_answered_with_an_error() {
        let request = request(&json!({"subtype": "mcp_message"}));
        assert_eq!(request.kind, RequestKind::Unknown { subtype: "mcp_message".into() });
        let reply = request.fail("not supported");
        assert_eq!(reply["response"], json!({"subtype": "error", "request_id": "r1", "error": "not supported"}));
    }
}
