use std::sync::Mutex;

use model::{Ending, Fault};
use serde_json::{Value, json};

use super::*;
use crate::tests::harness::{AgentHarness, TestRun, case, configured, new_run};
use crate::tests::loopback::{CannedResponse, Loopback, ReceivedRequest, unused_address};

const KEY: &str = "canary-key-of-the-assistant";

fn harness(config: &Value, messages: &[&str]) -> AgentHarness {
    let mut config = config.clone();
    config["type"] = json!("openai-assistant");
    let policy = llm::Policy { tries: 2, first_wait: std::time::Duration::ZERO, ..llm::Policy::default() };
    AgentHarness {
        config: Some(configured(&config, Path::new("/none"))),
        providers: llm::Providers::new(llm::Credentials::default(), llm::Prices::default(), policy),
        ..AgentHarness::for_case(case("a", messages))
    }
}

/// Creates a folder with a tool that adds numbers, and names the tool in the case.
fn adding(harness: &mut AgentHarness) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let tool = "export const add = { name: 'add', parameters: { a: 'number', b: 'number' }, execute({ a, b }) { \
                if (a === b) throw new Error('the same'); return a + b; } };";
    std::fs::write(folder.path().join("add.js"), tool).unwrap();
    harness.directory = folder.path().into();
    harness.case.messages[0].tools = vec![json!("./add.js#add")];
    folder
}

fn response(id: &str, output: &Value) -> CannedResponse {
    let usage = json!({"input_tokens": 3, "output_tokens": 2, "total_tokens": 5});
    CannedResponse::Json(200, json!({"id": id, "status": "completed", "model": "m", "output": output, "usage": usage}))
}

fn reply(text: &str) -> Value {
    json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]})
}

fn called(name: &str, arguments: &str) -> Value {
    json!({"type": "function_call", "call_id": "c1", "name": name, "arguments": arguments})
}

/// Answers like a Responses API service. The behaviour depends on the user's text.
fn responding(asked: &ReceivedRequest) -> CannedResponse {
    let input = &asked.body["input"][0];
    let text = input.pointer("/content/0/text").and_then(Value::as_str).unwrap_or_default();
    let previous = asked.body["previous_response_id"].as_str().unwrap_or("none").to_owned();
    match text {
        "add" => response("resp_add", &json!([called("add", "{\"a\":1,\"b\":2}")])),
        "same" => response("resp_add", &json!([called("add", "{\"a\":1,\"b\":1}")])),
        "unknown" => response("resp_x", &json!([called("fly", "{}")])),
        "refuse" => response("r", &json!([{"type": "message", "content": [{"type": "refusal", "refusal": "No."}]}])),
        "cut" => CannedResponse::Json(
            200,
            json!({"id": "r", "status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}, "output": [reply("So")]}),
        ),
        "failed" => {
            CannedResponse::Json(200, json!({"id": "r", "status": "failed", "error": {"code": "x", "message": "oops"}}))
        }
        "wrong" => CannedResponse::Json(400, json!({"error": {"message": format!("bad request, {KEY}")}})),
        "denied" => CannedResponse::Json(401, json!({"error": {"message": "no such key", "code": "invalid_api_key"}})),
        "down" => CannedResponse::Json(500, json!({"error": {"message": "down"}})),
        "page" => CannedResponse::Text(200, "<html>".to_owned()),
        "cut off" => CannedResponse::Close,
        "wait" => CannedResponse::Silence,
        "" => response("resp_done", &json!([reply(&format!("{} after {previous}", input["output"]))])),
        text => response(&format!("resp_{text}"), &json!([reply(&format!("{text} after {previous}"))])),
    }
}

async fn responded(messages: &[&str]) -> (TestRun, Loopback) {
    let server = Loopback::serve(responding).await;
    let config = json!({"model": "m", "base_url": server.url, "api_key": KEY, "instructions": "Be kind."});
    (harness(&config, messages).play(&Assistant).await.unwrap(), server)
}

#[tokio::test]
async fn each_request_names_the_previous_response_and_sends_only_new_content() {
    let (played, server) = responded(&["one", "two"]).await;
    assert_eq!(played.endings, [Ending::Finished, Ending::Finished]);
    assert_eq!((played.answer(), played.tokens()), (Some("two after resp_one"), Some(10)));
    let asked = server.asked();
    assert_eq!((asked[0].method.as_str(), asked[0].path.as_str()), ("POST", "/v1/responses"));
    assert_eq!(asked[0].header("authorization"), Some(format!("Bearer {KEY}").as_str()));
    let body = &asked[1].body;
    assert_eq!(
        (&body["store"], &body["instructions"], &body["model"]),
        (&json!(true), &json!("Be kind."), &json!("m"))
    );
    assert_eq!(body["input"].as_array().map(Vec::len), Some(1));
}

#[tokio::test]
async fn the_tools_of_a_case_are_offered_and_return_results() {
    for (message, answer, is_error) in [("add", "3", false), ("same", "Error: the same", true)] {
        let server = Loopback::serve(responding).await;
        let mut harness = harness(&json!({"model": "m", "baseUrl": server.url}), &[message]);
        let _folder = adding(&mut harness);
        let played = harness.play(&Assistant).await.unwrap();
        assert_eq!(played.calls(), [("add", answer, is_error)]);
        assert_eq!(played.answer(), Some(format!("\"{answer}\" after resp_add").as_str()));
        assert_eq!(server.asked()[0].body["tools"][0]["name"], "add");
    }
}

#[tokio::test]
async fn decisions_of_the_agent_count_against_it_and_service_failures_do_not() {
    let ending = async |message: &str| responded(&[message]).await.0.endings.remove(0);
    let gave_up = |reason: &str| Ending::GaveUp { reason: reason.into() };
    assert_eq!(ending("refuse").await, gave_up("it declined to answer"));
    assert_eq!(ending("cut").await, gave_up("its answer is incomplete: it reached its token limit"));
    let unknown = "it called the `fly` tool, which the case does not provide (tools of the case: none)";
    assert_eq!(ending("unknown").await, gave_up(unknown));
    for message in ["failed", "wrong", "denied", "down", "page", "cut off"] {
        let Ending::ProviderFailed { reason } = ending(message).await else { panic!("{message}") };
        assert!(!reason.contains(KEY), "{reason}");
    }
    let config = json!({"model": "m", "base_url": unused_address().await});
    let played = harness(&config, &["go"]).play(&Assistant).await.unwrap();
    assert!(matches!(&played.endings[..], [Ending::ProviderFailed { .. }]), "{:?}", played.endings);
}

/// Answers like an Assistants API service. The text of the last message determines the result of a run.
fn threads() -> impl Fn(&ReceivedRequest) -> CannedResponse + Send + Sync + 'static {
    let reply: Arc<Mutex<Vec<String>>> = Arc::default();
    move |asked: &ReceivedRequest| {
        let mut reply = reply.lock().unwrap();
        let path = asked.path.split('?').next().unwrap_or_default();
        let last = reply.last().cloned().unwrap_or_default();
        let run = |status: &str, more: Value| {
            let mut run = json!({"id": format!("run_{}", reply.len()), "status": status});
            run.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap_or_default());
            CannedResponse::Json(200, run)
        };
        let used = json!({"usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}});
        let parts: Vec<&str> = path.trim_start_matches("/v1").split('/').skip(1).collect();
        match (asked.method.as_str(), &parts[..]) {
            ("POST", ["threads"]) => CannedResponse::Json(200, json!({"id": "thread_1", "object": "thread"})),
            ("POST", ["threads", "thread_1", "messages"]) => {
                reply.push(asked.body["content"].as_str().unwrap_or_default().to_owned());
                CannedResponse::Json(200, json!({"id": "msg_1"}))
            }
            ("POST", ["threads", "thread_1", "runs"]) => run("queued", json!({})),
            ("POST", ["threads", "thread_1", "runs", _, "cancel"]) => run("cancelling", json!({})),
            ("POST", ["threads", "thread_1", "runs", _, "submit_tool_outputs"]) => {
                reply.push(format!("got {}", asked.body["tool_outputs"][0]["output"]));
                CannedResponse::Json(200, json!({"id": "run_1", "status": "in_progress"}))
            }
            ("GET", ["threads", "thread_1", "runs", _]) => match last.as_str() {
                "add" | "fly" => {
                    let function = json!({"name": last, "arguments": "{\"a\":1,\"b\":2}"});
                    let calls = json!([{"id": "call_1", "type": "function", "function": function}]);
                    run(
                        "requires_action",
                        json!({"required_action": {"type": "submit_tool_outputs", "submit_tool_outputs": {"tool_calls": calls}}}),
                    )
                }
                "failed" => {
                    run("failed", json!({"last_error": {"code": "server_error", "message": format!("oops {KEY}")}}))
                }
                "expired" | "cancelled" => run(&last, json!({})),
                "incomplete" => run("incomplete", json!({"incomplete_details": {"reason": "max_completion_tokens"}})),
                "odd" => run("resting", json!({})),
                "denied" => CannedResponse::Json(401, json!({"error": {"message": KEY}})),
                "wait" => run("in_progress", json!({})),
                _ => run("completed", used),
            },
            ("GET", ["threads", "thread_1", "messages"]) => {
                let content = json!([{"type": "text", "text": {"value": format!("{} of {}", reply.join(), reply.len()), "annotations": []}}]);
                let own = json!({"id": "msg_2", "role": "assistant", "run_id": asked.path.split(['=', '&']).nth(1), "content": content});
                let other = json!({"id": "msg_0", "role": "assistant", "run_id": "run_0", "content": content});
                CannedResponse::Json(200, json!({"data": [other, {"role": "user", "content": []}, own]}))
            }
            _ => CannedResponse::Json(404, json!({"error": {"message": format!("nothing at {path}")}})),
        }
    }
}

trait Join {
    fn join(&self) -> String;
}

impl Join for Vec<String> {
    fn join(&self) -> String {
        self.as_slice().join(",")
    }
}

async fn ran(messages: &[&str]) -> (TestRun, Loopback) {
    let server = Loopback::serve(threads()).await;
    let config = json!({"assistantId": "asst_1", "base_url": server.url, "apiKey": KEY, "model": "m"});
    (harness(&config, messages).play(&Assistant).await.unwrap(), server)
}

#[tokio::test]
async fn a_thread_keeps_the_conversation_and_each_message_starts_a_run() {
    let (played, server) = ran(&["one", "two"]).await;
    assert_eq!(played.endings, [Ending::Finished, Ending::Finished]);
    assert_eq!((played.answer(), played.tokens()), (Some("one,two of 2"), Some(10)));
    assert_eq!(played.turn.trace().session_id.as_deref(), Some("thread_1"));
    let asked = server.asked();
    let run = asked.iter().find(|asked| asked.path == "/v1/threads/thread_1/runs").unwrap();
    assert_eq!(run.body, json!({"assistant_id": "asst_1", "model": "m"}));
    assert!(asked.iter().all(|asked| asked.header("openai-beta") == Some("assistants=v2")));
    assert!(asked.iter().all(|asked| asked.header("authorization") == Some(&format!("Bearer {KEY}"))));
    assert_eq!(asked.iter().filter(|asked| asked.path == "/v1/threads").count(), 1);
}

#[tokio::test]
async fn a_run_that_calls_a_tool_of_the_case_gets_its_result() {
    let server = Loopback::serve(threads()).await;
    let mut harness = harness(&json!({"assistant_id": "asst_1", "base_url": server.url}), &["add"]);
    let _folder = adding(&mut harness);
    let played = harness.play(&Assistant).await.unwrap();
    assert_eq!(played.calls(), [("add", "3", false)]);
    assert_eq!(played.answer(), Some("add,got \"3\" of 2"));
    // A case with tools and without written messages.
    harness.case.tools = std::mem::take(&mut harness.case.messages[0].tools);
    let played = harness.play(&Assistant).await.unwrap();
    assert_eq!(played.calls(), [("add", "3", false)]);
}

#[tokio::test]
async fn the_fault_for_a_run_without_an_answer_depends_on_its_status() {
    let ending = async |message: &str| ran(&[message]).await.0.endings.remove(0);
    let unknown = "it called the `fly` tool, which the case does not provide (tools of the case: none)";
    assert_eq!(ending("fly").await, Ending::GaveUp { reason: unknown.into() });
    let incomplete = "its answer is incomplete (max_completion_tokens)";
    assert_eq!(ending("incomplete").await, Ending::GaveUp { reason: incomplete.into() });
    assert_eq!(ending("cancelled").await, Ending::Aborted { reason: "the run was cancelled by the service".into() });
    for (message, expected) in [
        ("failed", "the run failed (server_error): oops [key]"),
        ("expired", "the run expired before it had an answer"),
        ("odd", "the run has an unknown status"),
        ("denied", "the key was not accepted"),
    ] {
        let Ending::ProviderFailed { reason } = ending(message).await else { panic!("{message}") };
        assert!(reason.starts_with(expected) && !reason.contains(KEY), "{reason}");
    }
}

#[tokio::test]
async fn an_abandoned_run_is_cancelled() {
    let (_, server) = ran(&["fly"]).await;
    assert!(server.asked().iter().any(|asked| asked.path == "/v1/threads/thread_1/runs/run_1/cancel"));
    let server = Loopback::serve(threads()).await;
    let config = json!({"assistant_id": "asst_1", "base_url": server.url});
    let harness = harness(&config, &["wait"]);
    let stop = harness.stop.clone();
    let (played, ()) = tokio::join!(harness.play(&Assistant), async {
        while !server.asked().iter().any(|asked| asked.method == "GET") {
            tokio::task::yield_now().await;
        }
        stop.send_replace(true);
    });
    assert_eq!(played.unwrap().endings, [Ending::Cancelled]);
    assert!(server.asked().iter().any(|asked| asked.path.ends_with("/cancel")));
}

#[tokio::test]
async fn an_unreachable_service_breaks_the_trial() {
    let config = json!({"assistant_id": "asst_1", "base_url": unused_address().await});
    let breakage = harness(&config, &["go"]).play(&Assistant).await.err().unwrap();
    assert_eq!(breakage.fault, Fault::Provider);
    let keyless = harness(&json!({"assistant_id": "asst_1"}), &["go"]).play(&Assistant).await.err().unwrap();
    assert_eq!(keyless.fault, Fault::Environment);
    assert_eq!(keyless.reason, "`openai` needs a key: OPENAI_API_KEY is not set");
}

fn problems(config: &Value) -> Vec<String> {
    let config = configured(config, Path::new("/none"));
    Assistant.check_config(&config.node, &config.directory, &new_run()).iter().map(ToString::to_string).collect()
}

#[test]
fn a_configuration_is_read_strictly_and_all_problems_are_reported_together() {
    for fine in [
        json!({"type": "assistant", "model": "gpt-5", "instructions": "x", "base_url": "http://x", "api_key": "k"}),
        json!({"type": "openai-assistant", "assistantId": "asst_1", "apiKey": "k", "baseUrl": "http://x"}),
        json!({"type": "assistant", "api": "assistants", "assistant_id": "asst_1"}),
        json!({"type": "assistant", "api": "responses"}),
    ] {
        assert_eq!(problems(&fine), [""; 0], "{fine}");
    }
    let wrong = json!({"type": "assistant", "api": "threads", "modle": "x", "api_key": "canary-1", "apiKey": "canary-2", "model": 1});
    assert_eq!(
        problems(&wrong),
        [
            "agent.yaml:1:1: `api` must be one of `responses`, `assistants`, not `threads`",
            "agent.yaml:1:1: `model` must be a string, not a number",
            "agent.yaml:1:1: `apiKey` is given twice, first as `api_key`",
            "agent.yaml:1:1: unknown key `modle` in an `assistant` agent",
        ]
    );
    assert_eq!(
        problems(&json!({"type": "assistant", "api": "responses", "assistant_id": "asst_1"})),
        ["agent.yaml:1:1: the Responses API does not have assistants"]
    );
    assert_eq!(
        problems(&json!({"type": "assistant", "api": "assistants"})),
        ["agent.yaml:1:1: `api: assistants` needs an `assistant_id`"]
    );
    assert_eq!(Assistant.check_argument(None, &new_run())[0].to_string(), "`assistant` needs a configuration");
}

#[test]
fn missing_settings_are_reported_before_the_run() {
    let problems = |config: Value| harness(&config, &["go"]).check(&Assistant);
    assert_eq!(problems(json!({})), ["agent.yaml:1:1: `assistant` needs a `model`"]);
    assert_eq!(
        problems(json!({"model": "m"})),
        ["agent.yaml:1:1: the assistant cannot be used: `openai-responses` needs a key: OPENAI_API_KEY is not set"]
    );
    assert_eq!(problems(json!({"model": "m", "api_key": KEY})), [""; 0]);
    assert_eq!(problems(json!({"assistant_id": "a", "base_url": "http://127.0.0.1:1"})), [""; 0]);
    let bad = problems(json!({"model": "m", "base_url": "nonsense"}));
    assert!(bad[0].contains("cannot be used"), "{bad:?}");
    let mut tools = harness(&json!({"model": "m", "api_key": KEY}), &["go"]);
    tools.case.messages[0].tools = vec![json!("Bash")];
    assert_eq!(tools.check(&Assistant), ["case.yaml:1:1: `assistant` has no tool named `Bash`"]);
}
