//! Setups for agents behind HTTP: one loopback server that supports all their protocols.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::agent_setup::{Act, AgentSetup, Blame, HUGE, Set, harness, with_config};
use crate::tests::harness::{AgentHarness, Bare};
use crate::tests::loopback::{CannedResponse, Loopback, ReceivedRequest, unused_address};
use crate::{Agent, Endpoint, assistant, chat, http};

/// A tool provided by the case, for agents whose calls are answered by this program.
const FIND: &str = "export const find = { name: 'find', parameters: { q: 'number' }, execute: () => 'found' };";

/// Messages of each conversation, by conversation id.
type Known = Arc<Mutex<HashMap<String, Vec<String>>>>;

/// Protocol and configuration of one agent.
struct Service {
    name: &'static str,
    agent: &'static dyn Agent,
    blames: Blame,
    server: Arc<Loopback>,
    unused_address: String,
    /// Creates the harness for a list of acts and an address.
    harness: fn(&[Act], &str) -> AgentHarness,
    /// True if the case must provide the tool.
    calls_here: bool,
}

impl AgentSetup for Service {
    fn name(&self) -> &'static str {
        self.name
    }

    fn agent(&self) -> &'static dyn Agent {
        self.agent
    }

    fn blames(&self) -> Blame {
        self.blames
    }

    fn set(&self, acts: &[Act]) -> Set {
        let mut harness = (self.harness)(acts, &self.server.url);
        let folder = tempfile::tempdir().unwrap();
        if self.calls_here && acts.contains(&Act::Call) {
            std::fs::write(folder.path().join("find.js"), FIND).unwrap();
            harness.directory = folder.path().into();
            harness.case.messages.iter_mut().for_each(|message| message.tools = vec![json!("./find.js#find")]);
        }
        Set { harness, _kept: Some(Box::new(folder)) }
    }

    fn absent(&self) -> Option<Set> {
        Some(Set { harness: (self.harness)(&[Act::Count], &self.unused_address), _kept: None })
    }
}

/// Returns the setups of all agents behind HTTP.
pub(crate) async fn setups() -> Vec<Box<dyn AgentSetup>> {
    let server = Arc::new(Loopback::serve(serve(Known::default())).await);
    let unused_address = unused_address().await;
    let service = |name, agent, blames, calls_here, harness: fn(&[Act], &str) -> AgentHarness| -> Box<dyn AgentSetup> {
        let (server, unused_address) = (Arc::clone(&server), unused_address.clone());
        Box::new(Service { name, agent, blames, server, unused_address, harness, calls_here })
    };
    vec![
        service("http", &http::Http, Blame::Agent, false, |acts, url| {
            with_config(acts, &json!({"type": "http", "url": format!("{url}/bot"), "retry": 0}))
        }),
        service("http, with the history", &http::Http, Blame::Agent, false, |acts, url| {
            let url = format!("{url}/bot");
            with_config(acts, &json!({"type": "http", "url": url, "request_format": "messages", "retry": 0}))
        }),
        service("assistant, by responses", &assistant::Assistant, Blame::Provider, true, |acts, url| {
            let config = json!({"type": "assistant", "model": "m", "base_url": url});
            AgentHarness { providers: providers(), ..with_config(acts, &config) }
        }),
        service("assistant, by threads", &assistant::Assistant, Blame::Provider, true, |acts, url| {
            let config = json!({"type": "assistant", "assistant_id": "asst_1", "base_url": url});
            AgentHarness { providers: providers(), ..with_config(acts, &config) }
        }),
        service("chat", &chat::Chat, Blame::Provider, true, |acts, url| {
            let opened = providers().open("compatible:m", Some(url), &|_| Err(Vec::new()));
            let endpoint = Endpoint::Provider(opened.map(|opened| match opened {
                llm::Opened::Model(model) => model,
                llm::Opened::Script(_) => panic!("a script"),
            }));
            AgentHarness { endpoint, sandbox: Some(Bare::new()), ..harness(acts) }
        }),
    ]
}

fn providers() -> llm::Providers {
    let policy = llm::Policy { tries: 1, stream: false, ..llm::Policy::default() };
    llm::Providers::new(llm::Credentials::default(), llm::Prices::default(), policy)
}

fn serve(known: Known) -> impl Fn(&ReceivedRequest) -> CannedResponse + Send + Sync + 'static {
    move |asked: &ReceivedRequest| {
        let path = asked.path.split('?').next().unwrap_or_default().to_owned();
        let parts: Vec<&str> = path.trim_start_matches("/v1").split('/').skip(1).collect();
        let mut known = known.lock().unwrap();
        match &parts[..] {
            ["bot"] => bot(asked, &mut known),
            ["responses"] => responses(asked, &mut known),
            ["chat", "completions"] => completions(asked),
            ["threads", rest @ ..] => threads(asked, rest, &mut known),
            _ => CannedResponse::Json(404, json!({"error": {"message": format!("nothing at {path}")}})),
        }
    }
}

/// Returns the text that results from `act`, if there is any.
fn text_of(act: &Act, count: usize) -> String {
    match act {
        Act::Say(text) => text.clone(),
        Act::Count => count.to_string(),
        Act::Huge => "x".repeat(HUGE),
        _ => "done".to_owned(),
    }
}

/// Adds a message to a conversation and returns the number of its messages.
fn count(known: &mut HashMap<String, Vec<String>>, conversation: &str, text: &str) -> usize {
    let messages = known.entry(conversation.to_owned()).or_default();
    messages.push(text.to_owned());
    messages.len()
}

fn bot(asked: &ReceivedRequest, known: &mut HashMap<String, Vec<String>>) -> CannedResponse {
    let body = &asked.body;
    let users =
        body["messages"].as_array().map(|all| all.iter().filter(|one| one["role"] == "user").collect::<Vec<_>>());
    let (text, count) = match &users {
        Some(users) => (users.last().and_then(|last| last["content"].as_str()).unwrap_or_default(), users.len()),
        None => {
            let text = body["message"].as_str().unwrap_or_default();
            (text, count(known, body["conversation_id"].as_str().unwrap_or_default(), text))
        }
    };
    let used = json!({"input": 3, "output": 4});
    match Act::of(text) {
        Act::Hang => CannedResponse::Silence,
        Act::Fail => CannedResponse::Json(500, json!({"error": "as told"})),
        Act::Garbage => CannedResponse::Broken,
        Act::Call => {
            let calls = json!([{"name": "find", "arguments": {"q": 1}, "result": "found"}]);
            CannedResponse::Json(200, json!({"message": "done", "tool_calls": calls, "usage": used}))
        }
        act => CannedResponse::Json(200, json!({"message": text_of(&act, count), "usage": used})),
    }
}

fn responses(asked: &ReceivedRequest, known: &mut HashMap<String, Vec<String>>) -> CannedResponse {
    let input = &asked.body["input"][0];
    let text = input.pointer("/content/0/text").and_then(Value::as_str).unwrap_or_default();
    let mut before =
        known.get(asked.body["previous_response_id"].as_str().unwrap_or_default()).cloned().unwrap_or_default();
    let act = if input["type"] == "function_call_output" { Act::Say("done".to_owned()) } else { Act::of(text) };
    before.push(text.to_owned());
    let (id, count) = (format!("resp_{}", known.len()), before.len());
    known.insert(id.clone(), before);
    let item = match &act {
        Act::Hang => return CannedResponse::Silence,
        Act::Garbage => return CannedResponse::Broken,
        Act::Call => json!({"type": "function_call", "call_id": "c1", "name": "find", "arguments": "{\"q\":1}"}),
        Act::Fail => json!({"type": "message", "content": [{"type": "refusal", "refusal": "No."}]}),
        act => json!({"type": "message", "content": [{"type": "output_text", "text": text_of(act, count)}]}),
    };
    let used = json!({"input_tokens": 3, "output_tokens": 4});
    CannedResponse::Json(200, json!({"id": id, "status": "completed", "output": [item], "usage": used}))
}

fn completions(asked: &ReceivedRequest) -> CannedResponse {
    let messages = asked.body["messages"].as_array().cloned().unwrap_or_default();
    let users: Vec<&Value> = messages.iter().filter(|message| message["role"] == "user").collect();
    let last = messages.last().unwrap_or(&Value::Null);
    let text = |message: &Value| {
        let blocks = message.pointer("/content/0/text").or_else(|| message.get("content"));
        blocks.and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let act = if last["role"] == "tool" { Act::Say("done".to_owned()) } else { Act::of(&text(last)) };
    let (message, reason) = match &act {
        Act::Hang => return CannedResponse::Silence,
        Act::Garbage => return CannedResponse::Broken,
        Act::Call => {
            let function = json!({"name": "find", "arguments": "{\"q\":1}"});
            (
                json!({"content": null, "tool_calls": [{"id": "c1", "type": "function", "function": function}]}),
                "tool_calls",
            )
        }
        Act::Fail => (json!({"content": null, "refusal": "No."}), "stop"),
        act => (json!({"content": text_of(act, users.len())}), "stop"),
    };
    let used = json!({"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7});
    let choice = json!({"index": 0, "message": message, "finish_reason": reason});
    CannedResponse::Json(
        200,
        json!({"id": format!("chat-{}", messages.len()), "model": "m", "choices": [choice], "usage": used}),
    )
}

fn threads(asked: &ReceivedRequest, rest: &[&str], known: &mut HashMap<String, Vec<String>>) -> CannedResponse {
    let run = |status: &str, more: Value| {
        let mut run = json!({"id": "run_1", "status": status, "usage": {"prompt_tokens": 3, "completion_tokens": 4}});
        run.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap_or_default());
        CannedResponse::Json(200, run)
    };
    let messages = |thread: &str| known.get(thread).cloned().unwrap_or_default();
    match (asked.method.as_str(), rest) {
        ("POST", []) => {
            let id = format!("thread_{}", known.len());
            known.insert(id.clone(), Vec::new());
            CannedResponse::Json(200, json!({ "id": id }))
        }
        ("POST", [thread, "messages"]) => {
            count(known, thread, asked.body["content"].as_str().unwrap_or_default());
            CannedResponse::Json(200, json!({"id": "msg_1"}))
        }
        ("POST", [_, "runs", _, "submit_tool_outputs"]) => run("completed", json!({})),
        ("POST", [_, "runs", _, "cancel"]) => run("cancelling", json!({})),
        ("POST", [thread, "runs"]) => match messages(thread).last().map(|text| Act::of(text)) {
            Some(Act::Hang) => run("queued", json!({})),
            Some(Act::Garbage) => CannedResponse::Broken,
            Some(Act::Fail) => run("incomplete", json!({"incomplete_details": {"reason": "content_filter"}})),
            Some(Act::Call) => {
                let function = json!({"name": "find", "arguments": "{\"q\":1}"});
                let calls = json!([{"id": "c1", "type": "function", "function": function}]);
                let action = json!({"type": "submit_tool_outputs", "submit_tool_outputs": {"tool_calls": calls}});
                run("requires_action", json!({ "required_action": action }))
            }
            _ => run("completed", json!({})),
        },
        ("GET", [thread, "messages"]) => {
            let messages = messages(thread);
            let act = Act::of(messages.last().map_or("", String::as_str));
            let content = json!([{"type": "text", "text": {"value": text_of(&act, messages.len())}}]);
            let id = format!("msg_{}", messages.len());
            CannedResponse::Json(
                200,
                json!({"data": [{"id": id, "role": "assistant", "run_id": "run_1", "content": content}]}),
            )
        }
        _ => run("queued", json!({})),
    }
}
