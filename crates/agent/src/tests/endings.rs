//! Compares the table of endings in `docs/explanation/verdicts.md` with agents that write their answers in a protocol of their
//! own. `cli/tests/cli/endings.rs` does the same for agents with a model.

use model::Ending;
use serde_json::{Value, json};

use crate::tests::contract::agent_setup::with_config;
use crate::tests::harness::{AgentHarness, Bare, TestRun, case};
use crate::tests::loopback::{CannedResponse, Loopback, unused_address};
use crate::{Agent, acp, custom, fake, http, recorded, subprocess};
use sandbox::Breakage;

/// Endings without an answer that was read, so that the agent's calls are not known.
const UNREAD: &[&str] = &["output cannot be read", "HTTP 500", "answer is cut off"];

/// Returns the cell of the table for `happens` and `agent`.
fn cell(happens: &str, agent: &str) -> String {
    let page = include_str!("../../../../docs/explanation/verdicts.md");
    let table = page.split("<!-- endings -->").nth(1).unwrap().split("<!-- end -->").next().unwrap();
    let mut rows =
        table.trim().lines().map(|line| line.trim_matches('|').split('|').map(str::trim).collect::<Vec<_>>());
    let at = rows.next().unwrap().iter().position(|name| *name == agent).unwrap();
    let row = rows.find(|row| row[0] == happens).unwrap_or_else(|| panic!("no row for {happens}"));
    row[at].to_owned()
}

/// Returns what becomes of a trial with this conversation.
fn outcome(played: Result<TestRun, Breakage>) -> &'static str {
    match played.map(|played| played.endings.last().unwrap().clone()) {
        Ok(Ending::Finished) => "graded",
        Ok(Ending::GaveUp { .. } | Ending::OutOfBudget { .. } | Ending::TimedOut { .. }) => "failed",
        Ok(_) | Err(_) => "broken",
    }
}

/// Compares each conversation with the table.
async fn compare(agent: &dyn Agent, conversations: Vec<(&str, AgentHarness)>) {
    for (happens, harness) in conversations {
        let played = harness.play(agent).await;
        let endings = played.as_ref().map(|played| played.endings.clone());
        let shown = format!("{}: {happens}: {endings:?}", agent.name());
        let counts = cell(happens, agent.name()) == "failed";
        if let (Ok(played), true) = (&played, counts && UNREAD.contains(&happens)) {
            assert!(played.turn.trace().has_unreported_calls(), "{shown}");
        }
        assert_eq!(outcome(played), cell(happens, agent.name()), "{shown}");
    }
}

/// Answers in JSON that several agents understand, and one that none does.
fn answers() -> Vec<(&'static str, Value)> {
    let call = |arguments: &str| json!([{"function": {"name": "find", "arguments": arguments}}]);
    vec![
        ("answers with text", json!({"message": "Done."})),
        ("calls a tool and answers", json!({"message": "Done.", "tool_calls": call("{\"q\":1}")})),
        ("answers with nothing", json!({"message": ""})),
        ("answers with white space only", json!({"message": " \n "})),
        ("declines to answer", json!({"message": "I cannot help with that."})),
        ("arguments of a call cannot be read", json!({"message": "Done.", "tool_calls": call("{\"q\":")})),
        ("reports an error of its own", json!({"error": "no luck"})),
        ("JSON without an answer", json!({"status": "ok"})),
    ]
}

fn at(url: &str, messages: usize) -> AgentHarness {
    let mut harness = with_config(&[], &json!({"type": "http", "url": url, "retry": 0}));
    harness.case = case("a", &vec!["go"; messages]);
    harness
}

#[tokio::test]
async fn a_bot_ends_as_the_table_says() {
    let mut conversations: Vec<_> =
        answers().into_iter().map(|(happens, answer)| (happens, CannedResponse::Json(200, answer))).collect();
    let page = "<!DOCTYPE html>\n<html><body>Sign in</body></html>".to_owned();
    conversations.extend([
        ("output cannot be read", CannedResponse::Broken),
        ("web page instead of an answer", CannedResponse::Text(200, page)),
        ("key, address or format rejected", CannedResponse::Json(401, json!({"error": "no"}))),
        ("HTTP 500", CannedResponse::Json(500, json!({"error": "no"}))),
        ("HTTP 429 or 529", CannedResponse::Json(429, json!({"error": "no"}))),
        ("HTTP 400 for another reason", CannedResponse::Json(400, json!({"error": "no"}))),
        ("answer is cut off", CannedResponse::Close),
    ]);
    for (happens, answer) in conversations {
        let server = Loopback::serve(move |_| answer.clone()).await;
        compare(&http::Http, vec![(happens, at(&server.url, 1))]).await;
    }
    let server = Loopback::serve(|_| CannedResponse::Json(200, json!({"message": "Done."}))).await;
    let mut limited = at(&server.url, 2);
    limited.stop_after(1);
    let absent = at(&unused_address().await, 1);
    compare(&http::Http, vec![("reaches its limit of turns", limited), ("no connection, or no such program", absent)])
        .await;
}

fn program(script: &str, messages: usize) -> AgentHarness {
    let config = json!({"type": "subprocess", "command": ["sh", "-c", script], "mode": "jsonl"});
    let mut harness = AgentHarness { sandbox: Some(Bare::new()), ..with_config(&[], &config) };
    harness.case = case("a", &vec!["go"; messages]);
    harness
}

#[tokio::test]
async fn a_program_ends_as_the_table_says() {
    let says = |text: &str| format!("while read -r line; do cat <<'END'\n{text}\nEND\ndone");
    let mut conversations: Vec<_> =
        answers().into_iter().map(|(happens, answer)| (happens, program(&says(&answer.to_string()), 1))).collect();
    let mut limited = program(&says("{\"message\":\"Done.\"}"), 2);
    limited.stop_after(1);
    let absent = json!({"type": "subprocess", "command": "no-such-program", "mode": "jsonl"});
    let mut absent = AgentHarness { sandbox: Some(Bare::new()), ..with_config(&[], &absent) };
    absent.case = case("a", &["go"]);
    conversations.extend([
        ("output cannot be read", program("read -r line; printf '{\"message\": \"Do'", 1)),
        ("answer is cut off", program("read -r line; printf '{\"message\": \"Do'", 1)),
        ("program ends without an answer", program("exit 3", 1)),
        ("reaches its limit of turns", limited),
        ("no connection, or no such program", absent),
    ]);
    compare(&subprocess::Subprocess, conversations).await;
}

#[tokio::test]
async fn an_agent_of_the_client_protocol_ends_as_the_table_says() {
    let agent = |on_prompt: &str| acp::tests::agent("", on_prompt);
    let stops = |reason: &str| agent(&format!("say x; answer '{{\"stopReason\":\"{reason}\"}}'"));
    let says = |text: &str| agent(&format!("{text}; answer '{{\"stopReason\":\"end_turn\"}}'"));
    let fails = |code: i64, message: &str| agent(&format!("fail '{{\"code\":{code},\"message\":\"{message}\"}}'"));
    let call = |input: &str| {
        let update = format!(
            "{{\"sessionUpdate\":\"tool_call\",\"toolCallId\":\"c\",\"title\":\"t\",\"name\":\"find\",\"status\":\"completed\",\"rawInput\":{input}}}"
        );
        says(&format!("update '{update}'; say Done."))
    };
    let absent = with_config(&[], &json!({"type": "acp", "command": "no-such-program"}));
    let mut absent = AgentHarness { sandbox: Some(Bare::new()), ..absent };
    absent.case = case("a", &["go"]);
    let mut turns = says("say Done.");
    turns.case = case("a", &["go", "on"]);
    turns.stop_after(1);
    let mut tokens =
        agent("say x; answer '{\"stopReason\":\"end_turn\",\"usage\":{\"inputTokens\":9,\"outputTokens\":9}}'");
    tokens.limits.token_budget = Some(5.0);
    let conversations = vec![
        ("answers with text", says("say Done.")),
        ("calls a tool and answers", call("{\"q\":1}")),
        ("answers with nothing", says(":")),
        ("answers with white space only", says("say ' '")),
        ("declines to answer", stops("refusal")),
        ("answer reaches its token limit", stops("max_tokens")),
        ("conversation too long for the model", fails(-32603, "400 prompt is too long")),
        ("content filter refuses the conversation", fails(-32603, "400 content_filter: no")),
        ("arguments of a call cannot be read", call("\"{\"")),
        ("reports an error of its own", fails(-32603, "no luck")),
        ("output cannot be read", agent("echo '{\"jsonrpc\":\"2.0\",\"id\":'")),
        ("key, address or format rejected", fails(-32000, "Authentication required")),
        ("HTTP 500", fails(-32603, "500 oops")),
        ("HTTP 429 or 529", fails(429, "slow down")),
        ("HTTP 400 for another reason", fails(-32603, "400 bad")),
        ("answer is cut off", agent("say x; exit 1")),
        ("program ends without an answer", agent("exit 3")),
        ("no connection, or no such program", absent),
        ("reaches its limit of turns", turns),
        ("reaches its limit of tokens", tokens),
    ];
    compare(&acp::Acp, conversations).await;
}

#[tokio::test]
async fn a_module_ends_as_the_table_says() {
    let folder = tempfile::tempdir().unwrap();
    let module = |name: &str, text: &str, messages: usize| {
        let file = folder.path().join(format!("{name}.js"));
        std::fs::write(&file, text).unwrap();
        let argument = Some(file.to_string_lossy().into_owned());
        AgentHarness { argument, ..AgentHarness::for_case(case("a", &vec!["go"; messages])) }
    };
    let sends = |answer: &str| format!("export default class {{ async send() {{ return {answer}; }} }}");
    let mut conversations = Vec::new();
    for (number, (happens, answer)) in answers().into_iter().enumerate() {
        conversations.push((happens, module(&number.to_string(), &sends(&answer.to_string()), 1)));
    }
    let mut limited = module("limited", &sends("'Done.'"), 2);
    limited.stop_after(1);
    let argument = Some("/none/agent.js".to_owned());
    conversations.extend([
        ("answers with nothing", module("empty", &sends("''"), 1)),
        ("output cannot be read", module("none", &sends("null"), 1)),
        ("reports an error of its own", module("throws", &sends("(() => { throw new Error('no') })()"), 1)),
        ("reaches its limit of turns", limited),
        ("no connection, or no such program", AgentHarness { argument, ..AgentHarness::for_case(case("a", &["go"])) }),
    ]);
    for (happens, output) in [("answers with nothing", "''"), ("answers with white space only", "' '")] {
        let text = format!("export default {{ execute: async () => ({{ output: {output} }}) }}");
        conversations.push((happens, module(&format!("execute {}", output.len()), &text, 1)));
    }
    compare(&custom::Custom, conversations).await;
}

#[tokio::test]
async fn a_recorded_answer_ends_as_the_table_says() {
    let folder = tempfile::tempdir().unwrap();
    let line = |name: &str, line: &str| {
        let file = folder.path().join(format!("{name}.jsonl"));
        std::fs::write(&file, line).unwrap();
        let argument = Some(file.to_string_lossy().into_owned());
        AgentHarness { argument, ..AgentHarness::for_case(case("a", &["go"])) }
    };
    let call = "[{\"function\": {\"name\": \"find\", \"arguments\": \"{\\\"q\\\":\"}}]";
    let absent = Some("/none/answers.jsonl".to_owned());
    let mut tokens = line("tokens", r#"{"output":"x","usage":{"input":9}}"#);
    tokens.limits.token_budget = Some(5.0);
    let conversations = vec![
        ("answers with text", line("text", r#"{"output":"Done."}"#)),
        ("calls a tool and answers", line("call", r#"{"output":"Done.","tool_calls":[{"name":"find"}]}"#)),
        ("answers with nothing", line("nothing", r#"{"case":"a"}"#)),
        ("answers with nothing", line("empty", r#"{"output":"","latency_ms":3}"#)),
        ("answers with white space only", line("blank", r#"{"output":" \n"}"#)),
        ("arguments of a call cannot be read", line("cut", &format!("{{\"output\":\"x\",\"tool_calls\":{call}}}"))),
        ("reports an error of its own", line("error", r#"{"ending":"gave_up"}"#)),
        ("reaches its limit of turns", line("turns", r#"{"output":"x","ending":"out_of_turns"}"#)),
        ("reaches its limit of tokens", tokens),
        ("no connection, or no such program", AgentHarness { argument: absent, ..line("none", "{}") }),
    ];
    compare(&recorded::Recorded, conversations).await;
}

#[tokio::test]
async fn the_fake_agent_ends_as_the_table_says() {
    let does = |text: &str| AgentHarness::for_case(case("a", &[text]));
    let (mut turns, mut tokens) = (does("!call A\n!call B"), does("!tokens 5 5\n!say x"));
    turns.stop_after(1);
    tokens.limits.token_budget = Some(5.0);
    let conversations = vec![
        ("answers with text", does("Done.")),
        ("calls a tool and answers", does("!call A\n!say Done.")),
        ("answers with nothing", does("!tokens 3 4")),
        ("answers with white space only", does("!think hm\n!say  ")),
        ("reports an error of its own", does("!error no")),
        ("program ends without an answer", does("!abort")),
        ("reaches its limit of turns", turns),
        ("reaches its limit of tokens", tokens),
    ];
    compare(&fake::Fake, conversations).await;
}
