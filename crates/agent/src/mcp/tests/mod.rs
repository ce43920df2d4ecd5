//! Tests with a server that has one of many defects.

mod fixture;

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp::{
    BoxFuture, Connector, FuzzOptions, Http, Options, Report, SafetyOptions, Transport, Unchecked, check_fuzz,
    check_protocol, check_safety,
};
use model::Ending;
use sandbox::Breakage;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use self::fixture::{Fixture, InProcess};
use super::Mcp;
use crate::tests::harness::{AgentHarness, Bare, TestRun, case, configured};
use crate::tests::loopback::{CannedResponse, Loopback, ReceivedRequest};

/// Defects, and the rule that finds each.
const PROTOCOL: [(&str, &str); 29] = [
    ("answers unknown methods", "2025-11-25.unknown_method"),
    ("drops text ids", "2026-07-28.text_ids"),
    ("answers notifications", "2026-07-28.notifications"),
    ("writes a log to stdout", "2025-11-25.only_messages"),
    ("omits jsonrpc", "2025-11-25.jsonrpc"),
    ("answers twice", "2026-07-28.ids"),
    ("errors without a message", "2025-11-25.errors"),
    ("lists a tool twice", "2026-07-28.tools_are_unique"),
    ("has a schema of a list", "2025-11-25.input_schemas"),
    ("has an invalid schema", "2025-11-25.output_schemas"),
    ("hides its tools", "2026-07-28.declares_tools"),
    ("ends at a bad line", "2026-07-28.invalid_lines"),
    ("calls unknown tools", "2025-11-25.unknown_tool"),
    ("calls tools without a name", "2026-07-28.call_without_name"),
    ("invents a version", "2025-11-25.version"),
    ("initialises without capabilities", "2025-11-25.first_result"),
    ("has no ping", "2025-11-25.ping"),
    ("takes any cursor", "2025-11-25.unknown_cursor"),
    ("sends an unknown notification", "2025-11-25.server_notifications"),
    ("asks for sampling", "2026-07-28.client_capabilities"),
    ("stays when stdin is closed", "2025-11-25.ends"),
    ("takes any version", "2026-07-28.unknown_version"),
    ("wrong error about versions", "2026-07-28.unsupported_version_error"),
    ("omits the type of results", "2026-07-28.list_tools"),
    ("invents prompts", "2025-11-25.unknown_prompt"),
    ("invents resources", "2026-07-28.unknown_resource"),
    ("reads nothing", "2025-11-25.read_resource"),
    ("needs no metadata", "2026-07-28.request_without_metadata"),
    ("", ""),
];
const FUZZ: [(&str, &str); 11] = [
    ("ends at other scripts", "no_crash"),
    ("hangs at long texts", "no_hang"),
    ("takes any arguments", "invalid_arguments"),
    ("refuses valid arguments", "valid_arguments"),
    ("returns another type", "outputs"),
    ("returns no structured content", "outputs"),
    ("returns no content", "results"),
    ("has internal errors", "internal_errors"),
    ("shows its code", "stack_traces"),
    ("omits the type of results", "results"),
    ("", ""),
];
const SAFETY: [(&str, &str); 12] = [
    ("hides text", "hidden_text"),
    ("instructs the model", "instructions"),
    ("wants secrets", "secrets"),
    ("steers another tool", "other_tools"),
    ("loads an image", "encoded_data"),
    ("collects the conversation", "collecting_arguments"),
    ("has a lookalike", "lookalike_names"),
    ("only pretends to read", "annotations"),
    ("changes after three calls", "same_tools"),
    ("changes in another connection", "same_tools_again"),
    ("returns instructions", "results_with_instructions"),
    ("", ""),
];

fn assert_found(report: &Report, defect: &str, rule: &str) {
    let broken = report.broken();
    match defect {
        "" => assert_eq!(broken, [""; 0], "{}", report.describe()),
        _ => assert!(broken.contains(&rule), "{defect}: {}", report.describe()),
    }
}

#[tokio::test(start_paused = true)]
async fn defects_in_the_protocol_are_found_and_a_clean_server_has_none() {
    for (defect, rule) in PROTOCOL {
        let report = check_protocol(&mut InProcess::new(defect), grade::schema_errors).await.unwrap();
        assert_found(&report, defect, rule);
        assert!(report.rules.len() > 60, "{}", report.rules.len());
    }
}

#[tokio::test(start_paused = true)]
async fn generated_arguments_find_defects_and_a_clean_server_has_none() {
    for (defect, rule) in FUZZ {
        let (fuzz, options) = (FuzzOptions { inputs: 100, ..FuzzOptions::default() }, Options::default());
        let report = check_fuzz(&mut InProcess::new(defect), &fuzz, &options, grade::schema_errors).await.unwrap();
        assert_found(&report, defect, rule);
    }
}

#[tokio::test(start_paused = true)]
async fn names_that_are_not_those_of_tools_are_refused() {
    let names = |name: &str| vec![name.to_owned()];
    for (only, except, expected) in [
        (Some(names("echos")), vec![], "`only` has `echos`, which is not a tool of the server; did you mean `echo`?"),
        (Some(names("reboot")), vec![], "`only` has `reboot`, which is not a tool of the server"),
        (None, names("echos"), "`except` has `echos`, which is not a tool of the server; did you mean `echo`?"),
    ] {
        let (fuzz, options) = (FuzzOptions { only, except, ..FuzzOptions::default() }, Options::default());
        let checked = check_fuzz(&mut InProcess::new(""), &fuzz, &options, grade::schema_errors).await;
        assert_eq!(checked.err(), Some(Unchecked::Options(expected.to_owned())));
    }
    let fuzz = FuzzOptions { except: names("reboot"), ..FuzzOptions::default() };
    assert!(check_fuzz(&mut InProcess::new(""), &fuzz, &Options::default(), grade::schema_errors).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn poisoned_servers_are_found_and_a_clean_server_is_safe() {
    for (defect, rule) in SAFETY {
        let limit = Duration::from_secs(1);
        let asked = SafetyOptions { limit, ..SafetyOptions::default() };
        let checked = check_safety(&mut InProcess::new(defect), &asked, &Options::default()).await;
        let (report, _) = checked.unwrap();
        assert_found(&report, defect, rule);
    }
}

/// Connections to a server on loopback.
struct OverHttp {
    url: String,
}

impl Connector for OverHttp {
    fn connect(&mut self) -> BoxFuture<'_, Result<Transport, String>> {
        Box::pin(async {
            let client = llm::Proxies::of(|_| None).client(false, Duration::from_secs(5), None);
            let client = client.map_err(|error| error.to_string())?;
            let headers = [("Authorization".to_owned(), "Bearer key".to_owned())];
            Http::new(client, &self.url, &headers).map(Transport::from)
        })
    }

    fn ends(&mut self) -> BoxFuture<'_, Option<bool>> {
        Box::pin(std::future::ready(None))
    }
}

/// Answers an HTTP request in the way of the fixture, with a defect in the use of HTTP.
fn answered(request: &ReceivedRequest, fixture: &mut Fixture, defect: &str) -> CannedResponse {
    let refuse = |status: u16, code: i64| {
        let error = json!({"code": code, "message": "refused"});
        CannedResponse::Json(status, json!({"jsonrpc": "2.0", "id": request.body["id"], "error": error}))
    };
    let is = |known: &str| defect == known;
    if request.header("authorization") != Some("Bearer key") {
        return CannedResponse::Text(401, String::new());
    }
    if request.header("origin").is_some() && !is("takes any origin") {
        return CannedResponse::Text(403, String::new());
    }
    if request.method != "POST" {
        return CannedResponse::Text(if is("answers GET") { 200 } else { 405 }, "<html>".to_owned());
    }
    let kind = request.header("content-type").unwrap_or_default();
    if !kind.starts_with("application/json") && !is("takes any type") {
        return CannedResponse::Text(415, String::new());
    }
    if !request.header("accept").unwrap_or_default().contains("application/json") {
        return CannedResponse::Text(406, String::new());
    }
    if request.body.is_null() {
        return if is("takes no JSON") { CannedResponse::Text(200, String::new()) } else { refuse(400, -32700) };
    }
    let version = request.header("mcp-protocol-version").unwrap_or("2025-11-25");
    if !["2025-11-25", "2026-07-28"].contains(&version) && !is("takes any version in the header") {
        return refuse(400, -32022);
    }
    if version == "2026-07-28"
        && request.header("mcp-method") != request.body["method"].as_str()
        && request.body["method"] != "initialize"
        && !is("ignores the method in the header")
    {
        return refuse(400, -32020);
    }
    let lines = fixture.take(&request.body.to_string()).unwrap_or_default();
    match lines.first().and_then(|line| serde_json::from_str(line).ok()) {
        Some(message) => CannedResponse::Json(200, message),
        None => CannedResponse::Text(if is("answers notifications with 200") { 200 } else { 202 }, String::new()),
    }
}

#[tokio::test]
async fn defects_in_the_use_of_http_are_found_and_a_clean_server_has_none() {
    for (defect, rule) in [
        ("takes any origin", "2025-11-25.http_origin"),
        ("answers GET", "2026-07-28.http_get"),
        ("takes any type", "2025-11-25.http_content_type"),
        ("takes no JSON", "2025-11-25.http_invalid_json"),
        ("takes any version in the header", "2025-11-25.http_version"),
        ("ignores the method in the header", "2026-07-28.http_method_mismatch"),
        ("answers notifications with 200", "2025-11-25.http_notification"),
        ("", ""),
    ] {
        let fixture = Arc::new(Mutex::new(Fixture::new("", 0)));
        let server = Loopback::serve(move |request| answered(request, &mut fixture.lock().unwrap(), defect)).await;
        let mut connector = OverHttp { url: server.url.clone() };
        let report = check_protocol(&mut connector, grade::schema_errors).await.unwrap();
        assert_found(&report, defect, rule);
    }
}

/// Plays a call of `add` to the server that `command` starts.
async fn play(command: &[&str]) -> Result<TestRun, Breakage> {
    play_message(command, "{\"call\": \"add\", \"arguments\": {\"a\": 1}}").await
}

async fn play_message(command: &[&str], message: &str) -> Result<TestRun, Breakage> {
    let config = json!({"type": "mcp", "command": command});
    let case = case("a", &[message]);
    let config = Some(configured(&config, Path::new("/none")));
    AgentHarness { config, sandbox: Some(Bare::new()), ..AgentHarness::for_case(case) }.play(&Mcp).await
}

#[tokio::test]
async fn a_program_that_ends_has_failed_and_one_that_is_missing_is_the_environment() {
    let ended = play(&["sh", "-c", "echo oops >&2; exit 3"]).await.unwrap();
    let reason = "the server ended before it answered (exit code 3: oops)".to_owned();
    assert_eq!(ended.endings, [Ending::GaveUp { reason }]);
    assert!(play(&["trialrun-no-such-program"]).await.is_err());
    let missing = play(&["sh", "nope.sh"]).await.unwrap();
    assert!(matches!(&missing.endings[..], [Ending::Unreachable { .. }]), "{:?}", missing.endings);
    let unchecked = play_message(&["sh", "nope.sh"], "{\"check\": \"protocol\"}").await.unwrap();
    assert!(matches!(&unchecked.endings[..], [Ending::Unreachable { .. }]), "{:?}", unchecked.endings);
}

#[tokio::test]
async fn a_server_that_wants_a_sign_in_says_how() {
    let reason = async |headers: &'static str| {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let serve = tokio::spawn(async move {
            while let Ok((mut socket, _)) = listener.accept().await {
                let _ = socket.read(&mut [0; 4096]).await;
                let body = "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32001,\"message\":\"no\"}}";
                let length = body.len();
                let head =
                    format!("HTTP/1.1 401 Unauthorized\r\n{headers}connection: close\r\ncontent-length: {length}\r\n");
                let _ = socket.write_all(format!("{head}\r\n{body}").as_bytes()).await;
            }
        });
        let config = Some(configured(&json!({"type": "mcp", "url": url}), Path::new("/none")));
        let case = case("a", &["{\"call\": \"add\"}"]);
        let harness = AgentHarness { config, sandbox: Some(Bare::new()), ..AgentHarness::for_case(case) };
        let ending = harness.play(&Mcp).await.unwrap().endings.remove(0);
        serve.abort();
        let Ending::Unreachable { reason } = ending else { panic!("{ending:?}") };
        reason
    };
    let plain = reason("").await;
    assert!(plain.starts_with("the server answered with HTTP 401, without `WWW-Authenticate`"), "{plain}");
    let oauth = reason("www-authenticate: Bearer resource_metadata=\"https://a.test/.well-known/x\"\r\n").await;
    assert!(oauth.contains("https://a.test/.well-known/x") && oauth.contains("it wants an OAuth token"), "{oauth}");
}

#[tokio::test]
async fn a_call_of_a_program_is_recorded_with_its_result() {
    let script = r#"
answer() { read -r line; echo '{"jsonrpc":"2.0","id":'"$1"','"$2"'}'; }
answer 1 '"error":{"code":-32601,"message":"no"}'
answer 2 '"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"7"}}'
read -r initialized
answer 3 '"result":{"tools":[{"name":"add","inputSchema":{"type":"object"},"outputSchema":{"required":["sum"]}}]}'
answer 4 '"result":{"content":[{"type":"text","text":"one"}],"structuredContent":{}}'
"#;
    let played = play(&["sh", "-c", script]).await.unwrap();
    assert_eq!(played.endings, [Ending::Finished]);
    assert_eq!(played.calls(), [("add", "one", false)]);
    let result = played.turn.trace().result.clone().unwrap();
    assert_eq!((&result["output"], &result["text"]), (&json!({}), &json!("one")));
    assert_eq!(result["schemaErrors"].as_array().map(Vec::len), Some(1), "{result}");
}

/// Plays a call to a server that answers the list of its tools and the call in this way.
async fn reply_to(list: &str, call: &str) -> Ending {
    let script = r#"
answer() { read -r line; echo '{"id":'"$1"','"$2"'}'; }
answer 1 '"jsonrpc":"2.0","error":{"code":-32601,"message":"no"}'
answer 2 '"jsonrpc":"2.0","result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"7"}}'
read -r initialized
answer 3 '"jsonrpc":"2.0",LIST'
answer 4 'CALL'
"#;
    let played = play(&["sh", "-c", &script.replace("LIST", list).replace("CALL", call)]).await;
    played.unwrap().endings.remove(0)
}

#[tokio::test]
async fn an_answer_that_breaks_the_protocol_fails() {
    let tools = r#""result":{"tools":[{"name":"add","inputSchema":{"type":"object"}}]}"#;
    let marked = |call: &str| format!("\"jsonrpc\":\"2.0\",{call}");
    assert_eq!(reply_to(tools, &marked(r#""result":{"content":[]}"#)).await, Ending::Finished);
    assert_eq!(reply_to(tools, &marked(r#""error":{"code":-32602,"message":"no"}"#)).await, Ending::Finished);
    let unmarked = reply_to(tools, r#""result":{"content":[]}"#).await;
    assert!(matches!(&unmarked, Ending::GaveUp { reason } if reason.contains("no `jsonrpc`")), "{unmarked:?}");
    for call in [
        r#""result":{}"#,
        r#""result":null"#,
        r#""result":{"content":[],"isError":"true"}"#,
        r#""result":{"content":[],"structuredContent":[1]}"#,
        r#""result":{"content":[{"text":"a"}]}"#,
        r#""error":{"message":"no"}"#,
        r#""error":"no""#,
    ] {
        let Ending::GaveUp { reason } = reply_to(tools, &marked(call)).await else { panic!("{call}") };
        assert!(reason.starts_with("`add`: its answer breaks the protocol: "), "{reason}");
    }
    for (list, expected) in [
        (r#""result":{"tools":5}"#, "the result of `tools/list` has no list `tools`"),
        (r#""result":{"tools":["add"]}"#, "an item of its list of tools has no name: \"add\""),
    ] {
        let Ending::GaveUp { reason } = reply_to(list, "").await else { panic!("{list}") };
        assert!(reason.starts_with(expected), "{reason}");
    }
}
