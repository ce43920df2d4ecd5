//! Compares recorded sessions of real agents with the scripts that their models followed, and plays conversations with
//! an agent that behaves as real agents do.
//!
//! A capture consists of `acp.jsonl` (each message with its direction) and the `script.json` of the model server. The steps
//! read from the messages must match the script. Where they cannot, [`EXCEPTIONS`] has the reason.

use std::path::Path;

use model::{Ending, PermissionMode, Step, Tokens, Trace};
use serde_json::{Value, json};

use super::Acp;
use super::message::Incoming;
use super::tool::Reported;
use super::update::Interpreter;
use crate::json::{items, owned, text};
use crate::tests::contract::agent_setup::with_config;
use crate::tests::harness::{AgentHarness, Bare, TestRun, case, response};

/// Arguments that are compared. Agents report others in addition.
const COMPARED: [&str; 6] = ["command", "file_path", "content", "old_string", "new_string", "pattern"];

/// Content of a capture: calls with their arguments, and texts.
#[derive(Debug, Clone, Default, PartialEq)]
struct Content {
    calls: Vec<(String, Value)>,
    texts: Vec<String>,
}

/// Captures whose content differs from the script: full names, the reason, and the expected difference.
type Exception = (&'static [&'static str], &'static str, fn(&mut Content));

const EXCEPTIONS: &[Exception] = &[
    (&["claude-agent-acp-0.49.0/acp_cancel"], "the reply was cancelled during the call", |expected| {
        expected.texts.clear();
    }),
    (
        &["codex-acp-0.16.0/acp_session", "codex-acp-0.16.0/acp_reject"],
        "commands that only read are not reported",
        |expected| {
            expected.calls.remove(0);
        },
    ),
    (&["codex-acp-0.16.0/acp_session"], "a patch is reported as the change of a file", |expected| {
        expected.calls[1] = ("Write".to_owned(), json!({"file_path": "/SANDBOX/work/out.txt", "content": "42\n"}));
    }),
    (&["codex-acp-0.16.0/acp_reject"], "the denial ended the reply", |expected| {
        expected.calls.truncate(1);
        expected.texts.truncate(1);
    }),
    (
        &["gemini-acp-0.61.0/acp_session"],
        "arguments are not reported, and this call failed without a change",
        |expected| {
            expected.calls[2].1 = json!({"file_path": "/SANDBOX/work/out.txt"});
        },
    ),
    (
        &["gemini-acp-0.61.0/acp_session", "qwen-acp-0.15.10/acp_session", "qwen-acp-0.15.10/acp_reject"],
        "an edit is reported as the change of the whole file",
        |expected| {
            let text = |number: u8| format!("# demo\nThe magic number is {number}.\n");
            expected.calls[3].1 =
                json!({"file_path": "/SANDBOX/work/README.md", "old_string": text(42), "new_string": text(43)});
        },
    ),
    (&["qwen-acp-0.15.10/acp_cancel"], "a blocked call is reported without arguments", |expected| {
        expected.calls[0].1 = json!({});
    }),
];

fn compared(input: &Value) -> Value {
    let entries = input.as_object().into_iter().flatten().filter(|(key, _)| COMPARED.contains(&key.as_str()));
    Value::Object(entries.map(|(key, value)| (key.clone(), value.clone())).collect())
}

impl Content {
    fn of_script(script: &Value) -> Self {
        let mut content = Self::default();
        for step in items(script, "steps") {
            for tool in items(step, "tools") {
                let name = owned(tool, "name");
                let canonical = Reported { name, input: tool["input"].clone(), ..Reported::default() }.canonical();
                content.calls.push((canonical.name, compared(&canonical.input)));
            }
            content.texts.extend(owned(step, "text"));
        }
        content
    }

    fn of_messages(lines: &str) -> (Self, Vec<Option<Tokens>>) {
        let mut interpreter = Interpreter::default();
        let (mut steps, mut tokens) = (Vec::new(), Vec::new());
        for line in lines.lines() {
            let line: Value = serde_json::from_str(line).unwrap();
            let message = &line["msg"];
            if line["dir"] == "client->agent" {
                if message["method"] == "session/prompt" {
                    interpreter.begin();
                }
                continue;
            }
            match Incoming::read(&message.to_string()) {
                Incoming::Notification { params, .. } => {
                    steps.extend(interpreter.read(&params["update"], None, |_| None));
                }
                Incoming::Request { method, params, .. } if method == "session/request_permission" => {
                    steps.extend(interpreter.asks(&params["toolCall"]).1);
                }
                Incoming::Response(_, Ok(result)) if result.get("stopReason").is_some() => {
                    steps.extend(interpreter.end());
                    tokens.push(interpreter.usage(&result).tokens);
                }
                Incoming::Request { .. } | Incoming::Response(..) => {}
                unreadable => panic!("{unreadable:?}"),
            }
        }
        assert_eq!(interpreter.unknown().count(), 0);
        let trace = Trace::of(&steps);
        let calls = trace.calls.iter().map(|made| (made.call.name.clone(), compared(&made.call.input))).collect();
        let texts = trace.turns.iter().map(|turn| turn.text.clone()).filter(|text| !text.is_empty()).collect();
        (Self { calls, texts }, tokens)
    }
}

/// Returns the messages of a capture.
fn capture(name: &str, file: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/captures").join(name).join(file);
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn the_usage_of_a_reply_is_read() {
    let first = |name: &str| Content::of_messages(&capture(name, "acp.jsonl")).1[0];
    let counted = |input, output, cache_read| Tokens { input, output, cache_read, ..Tokens::default() };
    assert_eq!(first("claude-agent-acp-0.49.0/acp_session"), Some(counted(900, 60, 300)));
    assert_eq!(first("gemini-acp-0.61.0/acp_session"), Some(counted(1200, 60, 0)));
    let qwen = first("qwen-acp-0.15.10/acp_session").unwrap();
    assert_eq!((qwen.input + qwen.cache_read, qwen.output), (1200, 60));
    assert_eq!(first("codex-acp-0.16.0/acp_session"), None);
}

#[test]
fn every_capture_matches_its_script() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/captures");
    let mut wrong = Vec::new();
    let mut count = 0;
    for agent in
        ["claude-agent-acp-0.49.0", "codex-acp-0.16.0", "gemini-acp-0.61.0", "opencode-acp-1.18.33", "qwen-acp-0.15.10"]
    {
        let mut folders: Vec<_> =
            std::fs::read_dir(root.join(agent)).unwrap().map(|entry| entry.unwrap().path()).collect();
        folders.sort();
        for folder in folders {
            let name = format!("{agent}/{}", folder.file_name().unwrap().to_string_lossy());
            let mut expected = Content::of_script(&serde_json::from_str(&capture(&name, "script.json")).unwrap());
            let (read, _) = Content::of_messages(&capture(&name, "acp.jsonl"));
            for (captures, _, change) in EXCEPTIONS {
                if captures.contains(&name.as_str()) {
                    change(&mut expected);
                }
            }
            count += 1;
            if read != expected {
                wrong.push(format!("{name}\n  expected {expected:?}\n  read     {read:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {count}:\n{}", wrong.len(), wrong.join("\n"));
    assert_eq!(count, 14);
}

/// Beginning of a shell script that speaks the protocol. `ON_NEW` and `ON_PROMPT` are commands.
const SCRIPT: &str = r#"
answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
fail() { printf '{"jsonrpc":"2.0","id":%s,"error":%s}\n' "$id" "$1"; }
ask() { printf '{"jsonrpc":"2.0","id":"own","method":"%s","params":%s}\n' "$1" "$2"; read -r reply; }
update() { printf '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":%s}}\n' "$1"; }
say() { update '{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"'"$1"'"}}'; }
while read -r line; do
    id=${line#*'"id":'}
    id=${id%%,*}
    case $line in
        *'"method":"initialize"'*) answer '{"protocolVersion":1}' ;;
        *'"method":"session/new"'*) ON_NEW ;;
        *'"method":"session/prompt"'*) ON_PROMPT ;;
    esac
done"#;

/// Returns an agent that runs `on_new` when a session is opened, and `on_prompt` for each message.
pub(crate) fn agent(on_new: &str, on_prompt: &str) -> AgentHarness {
    let on_new = if on_new.is_empty() { "answer '{\"sessionId\":\"s\"}'" } else { on_new };
    let script = SCRIPT.replace("ON_NEW", on_new).replace("ON_PROMPT", on_prompt);
    let mut harness = with_config(&[], &json!({"type": "acp", "command": ["sh", "-c", script]}));
    (harness.case, harness.sandbox) = (case("a", &["go"]), Some(Bare::new()));
    harness
}

const DONE: &str = "answer '{\"stopReason\":\"end_turn\"}'";

async fn reply(on_new: &str, on_prompt: &str) -> TestRun {
    agent(on_new, on_prompt).play(&Acp).await.unwrap()
}

#[tokio::test]
async fn each_stop_reason_has_its_ending() {
    let of = async |on_new: &str, on_prompt: &str| reply(on_new, on_prompt).await.endings.remove(0);
    let stop = |reason: &str| format!("say x; answer '{{\"stopReason\":\"{reason}\"}}'");
    assert_eq!(of("", &stop("end_turn")).await, Ending::Finished);
    for reason in ["refusal", "max_tokens", "max_turn_requests", "strange"] {
        assert!(matches!(of("", &stop(reason)).await, Ending::GaveUp { .. }), "{reason}");
    }
    assert!(matches!(of("", &stop("cancelled")).await, Ending::Aborted { .. }));
    let fail = |code: i64, message: &str| format!("fail '{{\"code\":{code},\"message\":\"{message}\"}}'");
    assert!(matches!(of("", &fail(-32603, "Internal error")).await, Ending::Aborted { .. }));
    assert!(matches!(of("", &fail(529, "overloaded")).await, Ending::ProviderFailed { .. }));
    let Ending::Unreachable { reason } = of(&fail(-32000, "Authentication required"), DONE).await else { panic!() };
    assert!(reason.starts_with("it is not signed in (Authentication required"), "{reason}");
    assert!(matches!(of("exit 1", DONE).await, Ending::Unreachable { .. }));
}

/// Asks for permission to run `touch x`, and runs it if it is allowed.
const ASKS: &str = r#"
ask session/request_permission '{"sessionId":"s","toolCall":{"toolCallId":"c","title":"Run touch","kind":"execute","rawInput":{"command":"touch x"}},"options":[{"optionId":"y","name":"Yes","kind":"allow_once"},{"optionId":"n","name":"No","kind":"reject_once"}]}'
case $reply in *'"optionId":"y"'*) status=completed ;; *) status=failed ;; esac
update '{"sessionUpdate":"tool_call_update","toolCallId":"c","status":"'$status'"}'
say over
answer '{"stopReason":"end_turn"}'"#;

#[tokio::test]
async fn the_case_decides_on_requests_for_permission() {
    let decision = async |change: fn(&mut AgentHarness)| {
        let mut harness = agent("", ASKS);
        change(&mut harness);
        let played = harness.play(&Acp).await.unwrap();
        let trace = played.turn.trace();
        assert_eq!((trace.calls.len(), trace.calls[0].call.input.clone()), (1, json!({"command": "touch x"})));
        let asked = trace.permissions.clone().unwrap().remove(0).request;
        assert_eq!((asked.tool.as_str(), asked.title.as_str()), ("Bash", "Run touch"));
        assert_eq!(asked.granted, trace.calls[0].result.as_ref().is_some_and(|result| !result.is_error));
        (asked.granted, asked.decided_by)
    };
    assert!(decision(|_| {}).await.0);
    let asks = decision(|harness| harness.setup.permission_mode = PermissionMode::Default).await;
    assert_eq!(asks, (false, "no user can approve it, and `user_responses` has no answer".to_owned()));
    let answered = decision(|harness| {
        harness.setup.permission_mode = PermissionMode::Default;
        harness.case.user_responses = vec![response("touch", "Yes")];
    });
    assert_eq!(answered.await, (true, "`user_responses` chose \"Yes\"".to_owned()));
    assert!(!decision(|harness| harness.setup.closed_tools = Some(vec!["Read".into()])).await.0);
}

#[tokio::test]
async fn files_and_terminals_are_those_of_the_sandbox() {
    let on_prompt = r#"
ask fs/write_text_file '{"sessionId":"s","path":"'$PWD'/new/a.txt","content":"one\ntwo\n"}'
ask fs/read_text_file '{"sessionId":"s","path":"'$PWD'/new/a.txt","line":2,"limit":1}'
case $reply in *'"content":"two\n"'*) say read; esac
ask fs/read_text_file '{"sessionId":"s","path":"'$PWD'/none"}'
case $reply in *'-32002'*) say ,missing; esac
ask terminal/create '{"sessionId":"s","command":"sh","args":["-c","echo $X; exit 3"],"env":[{"name":"X","value":"hello"}]}'
ask terminal/wait_for_exit '{"sessionId":"s","terminalId":"terminal-1"}'
case $reply in *'"exitCode":3'*) say ,ended; esac
ask terminal/output '{"sessionId":"s","terminalId":"terminal-1"}'
case $reply in *'"output":"hello\n"'*) say ,output; esac
ask terminal/release '{"sessionId":"s","terminalId":"terminal-1"}'
ask strange/method '{}'
case $reply in *'-32601'*) say ,unknown; esac
answer '{"stopReason":"end_turn"}'"#;
    let harness = agent("", on_prompt);
    let played = harness.play(&Acp).await.unwrap();
    assert_eq!(played.answer(), Some("read,missing,ended,output,unknown"), "{:?}", played.endings);
    assert_eq!(harness.bare().content("new/a.txt"), "one\ntwo\n");
}

#[tokio::test]
async fn a_limit_or_the_end_of_the_trial_cancels_the_reply() {
    let on_prompt = r#"
say one
update '{"sessionUpdate":"tool_call","toolCallId":"c","title":"t","kind":"other","status":"completed"}'
say two
read -r cancel
case $cancel in *'"session/cancel"'*) answer '{"stopReason":"cancelled","usage":{"inputTokens":5,"outputTokens":2}}' ;; esac"#;
    let mut harness = agent("", &format!("{on_prompt}\nsay three"));
    harness.stop_after(1);
    let on_limit = on_prompt.replace(
        "say two",
        "say two; update '{\"sessionUpdate\":\"agent_thought_chunk\",\"content\":{\"type\":\"text\",\"text\":\"t\"}}'",
    );
    let mut limited = agent("", &on_limit);
    limited.stop_after(1);
    let played = limited.play(&Acp).await.unwrap();
    assert!(matches!(played.endings[..], [Ending::OutOfBudget { .. }]), "{:?}", played.endings);
    assert_eq!(played.tokens(), Some(7), "the usage of a cancelled reply is known");
}

#[tokio::test]
async fn a_model_that_the_agent_does_not_offer_is_a_mistake_in_the_test() {
    let session = r#"answer '{"sessionId":"s","models":{"currentModelId":"a","availableModels":[{"modelId":"a"},{"modelId":"large"}]}}'"#;
    let mut harness = agent(session, DONE);
    harness.setup.model = Some("larg".into());
    let ending = harness.play(&Acp).await.unwrap().endings.remove(0);
    assert_eq!(
        ending,
        Ending::InvalidTest { reason: "it has no model `larg` (did you mean `large`?); it offers a, large".into() }
    );
}

/// Says in which process the reply is, by a file in which each process leaves a line.
const RESUMES: &str = r#"
echo >> starts
while read -r line; do
    id=${line#*'"id":'}
    id=${id%%,*}
    answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
    case $line in
        *'"method":"initialize"'*) answer '{"protocolVersion":1,"agentCapabilities":{"sessionCapabilities":{"resume":{}}}}' ;;
        *'"method":"session/new"'*) answer '{"sessionId":"s"}' ;;
        *'"method":"session/resume"'*'"sessionId":"s"'*) answer '{"configOptions":[{"id":"fast","name":"Fast","type":"boolean","currentValue":false}]}' ;;
        *'"method":"session/prompt"'*)
            printf '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"process %s"}}}}\n' "$(wc -l < starts)"
            answer '{"stopReason":"end_turn"}' ;;
    esac
done"#;

#[tokio::test]
async fn a_session_is_resumed_in_a_new_process() {
    let play = async |script: &str, more: Value| {
        let mut config = json!({"type": "acp", "command": ["sh", "-c", script], "resume": true});
        config.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
        let mut harness = with_config(&[], &config);
        (harness.case, harness.sandbox) = (case("a", &["go", "on"]), Some(Bare::new()));
        harness.play(&Acp).await.unwrap()
    };
    let played = play(RESUMES, json!({})).await;
    let said: Vec<_> = played.turn.trace().turns.iter().map(|turn| turn.text.clone()).collect();
    assert_eq!(
        (said, played.endings),
        (vec!["process 1".to_owned(), "process 2".to_owned()], vec![Ending::Finished; 2])
    );
    let cannot = RESUMES.replace("\"resume\":{}", "");
    assert!(matches!(play(&cannot, json!({})).await.endings[..], [Ending::Finished, Ending::InvalidTest { .. }]));
    let unknown = play(RESUMES, json!({"options": {"slow": true}})).await;
    assert!(matches!(unknown.endings[..], [Ending::InvalidTest { .. }]), "{:?}", unknown.endings);
}

#[tokio::test]
async fn a_form_is_answered_by_the_case() {
    let asks = r#"
ask elicitation/create '{"sessionId":"s","mode":"form","message":"Which port?","requestedSchema":{"type":"object","properties":{"port":{"type":"integer"}},"required":["port"]}}'
case $reply in *'"action":"accept"'*'"port":80'*) say accepted ;; *) say declined ;; esac
answer '{"stopReason":"end_turn"}'"#;
    let mut harness = agent("", asks);
    harness.case.user_responses = vec![response("port", "80")];
    let played = harness.play(&Acp).await.unwrap();
    assert_eq!(played.answer(), Some("accepted"));
    assert_eq!(played.turn.trace().questions[0].answer.as_deref(), Some("80"));
    assert_eq!(reply("", asks).await.answer(), Some("declined"));
}

#[tokio::test]
async fn a_kind_without_a_name_leaves_the_calls_open() {
    let call = |more: &str| {
        format!(
            "update '{{\"sessionUpdate\":\"tool_call\",\"toolCallId\":\"c\",\"status\":\"completed\",{more}}}'; say x; {DONE}"
        )
    };
    let mut unnamed = reply("", &call("\"kind\":\"search\",\"title\":\"Look\"")).await;
    assert!(unnamed.turn.trace().has_unreported_calls());
    assert!(unnamed.steps().iter().any(|step| matches!(step, Step::ToolCall(call) if call.name == "search")));
    let named = reply("", &call("\"kind\":\"search\",\"name\":\"find\"")).await;
    assert!(!named.turn.trace().has_unreported_calls());
}

#[test]
fn the_work_of_a_sub_agent_belongs_to_the_call_that_started_it() {
    let mut interpreter = Interpreter::default();
    interpreter.begin();
    let mut steps = Vec::new();
    let mut read = |update: Value, child: Option<&str>| steps.extend(interpreter.read(&update, child, |_| None));
    let says = |said: &str| json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": said}});
    read(
        json!({"sessionUpdate": "subagent_update", "sessionId": "k", "title": "Reader", "description": "Reads."}),
        None,
    );
    read(
        json!({"sessionUpdate": "tool_call", "toolCallId": "c", "name": "task", "status": "in_progress", "title": "t",
            "rawInput": {"prompt": "read"}, "content": [{"type": "session", "sessionId": "k"}]}),
        None,
    );
    read(says("inside"), Some("k"));
    read(
        json!({"sessionUpdate": "tool_call", "toolCallId": "d", "name": "read_file", "rawInput": {"file_path": "/a"},
            "status": "completed", "title": "r"}),
        Some("k"),
    );
    read(json!({"sessionUpdate": "tool_call_update", "toolCallId": "c", "status": "completed"}), None);
    read(json!({"sessionUpdate": "compaction_update", "compactionId": "x", "status": "failed", "error": "full"}), None);
    read(says("outside"), None);
    steps.extend(interpreter.end());
    let parents: Vec<_> = steps
        .iter()
        .filter_map(|step| match step {
            Step::ToolCall(call) => Some((call.name.as_str(), call.parent.as_deref())),
            Step::Text { text, parent, .. } => Some((text.as_str(), parent.as_deref())),
            _ => None,
        })
        .collect();
    assert_eq!(parents[1..], [("inside", Some("c")), ("Read", Some("c")), ("outside", None)]);
    assert_eq!((parents[0].1, interpreter.answer().as_deref()), (None, Some("outside")));
    let notices: Vec<_> = steps
        .iter()
        .filter_map(|step| if let Step::Notice { text, .. } = step { Some(text.as_str()) } else { None })
        .collect();
    assert_eq!(notices, ["sub-agent: Reader: Reads.", "the compaction of the conversation ended as failed: full"]);
}

/// Returns the name and the input of each call in `updates`, and `true` if there may be others.
fn calls_of(updates: &[Value]) -> (Vec<(String, Value)>, bool) {
    let mut interpreter = Interpreter::default();
    interpreter.begin();
    let mut steps: Vec<Step> = updates.iter().flat_map(|update| interpreter.read(update, None, |_| None)).collect();
    steps.extend(interpreter.end());
    let trace = Trace::of(&steps);
    let calls = trace.calls.iter().map(|made| (made.call.name.clone(), made.call.input.clone())).collect();
    (calls, steps.contains(&Step::CallsUnreported))
}

#[test]
fn calls_with_the_same_id_or_without_one_are_told_apart() {
    let call = |kind: &str, id: Value, status: &str, query: i64| json!({"sessionUpdate": kind, "toolCallId": id, "status": status, "name": "find", "rawInput": {"q": query}});
    let of = |query: i64| ("find".to_owned(), json!({"q": query}));
    let again = [
        call("tool_call", json!(7), "completed", 1),
        call("tool_call", json!(7), "completed", 1),
        call("tool_call", json!(7), "in_progress", 1),
        call("tool_call_update", json!(7), "completed", 1),
        call("tool_call", json!(7), "completed", 2),
    ];
    assert_eq!(calls_of(&again), (vec![of(1), of(1), of(2)], false));
    let unknown = |update: Value| calls_of(&[update]).1;
    assert!(unknown(json!({"sessionUpdate": "tool_use", "name": "find"})) && unknown(json!("x")), "it may be a call");
    assert!(!unknown(json!({"sessionUpdate": "weather"})));
    let without = [call("tool_call", Value::Null, "pending", 1), call("tool_call", Value::Null, "pending", 2)];
    assert_eq!(calls_of(&without), (vec![of(1), of(2)], true));
}

#[test]
fn a_count_that_cannot_be_read_is_not_0() {
    let mut interpreter = Interpreter::default();
    let mut tokens = |usage: Value| interpreter.usage(&json!({ "usage": usage })).tokens;
    assert_eq!(tokens(json!({"inputTokens": "1", "outputTokens": 2})), None);
    assert_eq!(tokens(json!({"inputTokens": 1, "outputTokens": 2, "cachedReadTokens": -1})), None);
    let largest = tokens(json!({"inputTokens": u64::MAX, "outputTokens": u64::MAX, "totalTokens": 3})).unwrap();
    assert_eq!(largest.total(), u64::MAX);
    let piece = json!({"sessionUpdate": "agent_message_chunk", "_meta": {"usage": {"input_tokens": "many"}}});
    interpreter.read(&piece, None, |_| None);
    let whole =
        json!({"sessionUpdate": "agent_message_chunk", "_meta": {"usage": {"input_tokens": 1, "output_tokens": 1}}});
    interpreter.read(&whole, None, |_| None);
    assert_eq!(interpreter.usage(&json!({})).tokens, None, "a part of them is unknown");
}

#[tokio::test]
async fn what_an_agent_does_is_not_overlooked() {
    let call = r#"update '{"sessionUpdate":"tool_call","toolCallId":"c","name":"find","status":"completed","rawInput":{"q":1}}'"#;
    let late = reply("", &format!("say x; {DONE}; {call}")).await;
    assert_eq!(late.turn.trace().calls.len(), 1, "an update after the response");
    let silent = r#"ask terminal/create '{"sessionId":"s","command":"true"}'; say x"#;
    let silent = reply("", &format!("{silent}; {DONE}")).await;
    assert!(silent.turn.trace().has_unreported_calls(), "a command that no call reports");
    let text =
        |content: &str| format!("update '{{\"sessionUpdate\":\"agent_message_chunk\",\"content\":{content}}}'; {DONE}");
    let listed = reply("", &text(r#"[{"type":"text","text":"a"},"b"]"#)).await;
    assert_eq!(listed.answer(), Some("ab"));
    let unreadable = reply("", &text(r#"{"type":"text","text":5}"#)).await;
    assert!(matches!(unreadable.endings[..], [Ending::Aborted { .. }]), "{:?}", unreadable.endings);
}

#[tokio::test]
async fn the_reason_of_a_decision_is_true() {
    let options = r#""options":[{"optionId":"n","name":"No","kind":"reject_once"}]"#;
    let asks = ASKS.replace(&ASKS[ASKS.find("\"options\"").unwrap()..ASKS.find("}'\n").unwrap()], options);
    let played = reply("", &asks).await;
    let reason = |played: &TestRun| played.turn.trace().permissions.clone().unwrap().remove(0).request.decided_by;
    assert_eq!(reason(&played), "the case's rules allow it, but the agent offered no option that does");
    let mut harness = agent("", ASKS);
    harness.setup.permission_mode = PermissionMode::Default;
    harness.case.user_responses = vec![response("touch", "Perhaps")];
    let played = harness.play(&Acp).await.unwrap();
    assert_eq!(reason(&played), "`user_responses` chose \"Perhaps\", which is not one of the options");
}

#[test]
fn updates_with_arbitrary_content_are_read() {
    let seeds = testkit::seeds(Path::new("tests/captures/opencode-acp-1.18.33"), "acp.jsonl");
    testkit::fuzz(&seeds, |bytes| {
        let mut interpreter = Interpreter::default();
        for line in String::from_utf8_lossy(bytes).lines() {
            if let Ok(line) = model::foreign_json::parse(line) {
                let update = line.pointer("/msg/params/update").unwrap_or(&line);
                let _ = (interpreter.read(update, None, |_| None), interpreter.asks(update), text(update, "x"));
            }
        }
        interpreter.end();
    });
}
