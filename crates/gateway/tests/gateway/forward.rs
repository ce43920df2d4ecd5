//! Requests that are forwarded to a provider, which is a server on loopback that knows nothing about the gateway.

use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use llm::{Block, Prices, Providers, Proxies, Timeouts};
use model::{Node, Source};
use serde_json::json;
use testkit::ScriptedProvider;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use trialrun_gateway::{ForwardedAdmission, Gateway, Upstream};

use crate::client::{Received, received};

/// Stream of Anthropic Messages with one tool call, in two parts.
const OPENING: &str = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"model\":\"claude-x\",\"content\":[],\"usage\":{\"input_tokens\":7,\"cache_read_input_tokens\":3,\"output_tokens\":1}}}\n\n";
const REST: &str = "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"tool_use\",\"id\":\"toolu_1\",\"name\":\"Bash\",\"input\":{}}}\n\nevent: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"{\\\"command\\\": \\\"ls\\\"}\"}}\n\n";
const CLOSING: &str = "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"tool_use\"},\"usage\":{\"output_tokens\":5}}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n";

const KEY: &str = "x-api-key: sk-dummy";
const MAIN: &str = r#"{"model":"claude-x","max_tokens":9,"stream":true,"tools":[{"name":"Bash","input_schema":{}}],"messages":[{"role":"user","content":"hi"}]}"#;

struct Bench {
    gateway: Gateway,
    admission: ForwardedAdmission,
}

impl Bench {
    async fn new(address: &str) -> Self {
        let node = Node::from_json(&json!({"claude-x": {"input": 1, "output": 10}}), &Source::new("p.json", ""));
        let providers = Providers::new(Default::default(), Prices::from_node(&node).unwrap(), Default::default());
        let timeouts = Timeouts { first_byte: Duration::from_secs(20), ..Timeouts::default() };
        let upstream = Arc::new(Upstream::new(Proxies::default(), timeouts, providers));
        let gateway = Gateway::start().await.unwrap();
        let admission = gateway.forward("trial-1", &upstream, &[address], None).unwrap();
        Self { gateway, admission }
    }

    async fn connect(&self, line: &str, headers: &str, body: &str) -> TcpStream {
        let base_url = self.gateway.base_url();
        let address = base_url.strip_prefix("http://").unwrap();
        let mut client = TcpStream::connect(address).await.unwrap();
        let length = body.len();
        let head = format!("{line} HTTP/1.1\r\nhost: {address}\r\n{headers}\r\nconnection: close\r\n");
        let request = format!("{head}content-length: {length}\r\n\r\n{body}");
        client.write_all(request.as_bytes()).await.unwrap();
        client
    }

    async fn send(&self, line: &str, headers: &str, body: &str) -> Received {
        let mut client = self.connect(line, headers, body).await;
        let mut bytes = Vec::new();
        tokio::time::timeout(Duration::from_secs(20), client.read_to_end(&mut bytes)).await.unwrap().unwrap();
        received(&bytes)
    }

    async fn post(&self) -> Received {
        self.send("POST /trial-1/v1/messages?beta=true", KEY, MAIN).await
    }

    fn statuses(&self) -> Vec<(String, u64)> {
        self.admission.traffic().statuses.into_iter().collect()
    }
}

/// Reads until `text` has arrived.
async fn read_until(client: &mut TcpStream, text: &str) -> String {
    let mut read = Vec::new();
    let reading = async {
        while !String::from_utf8_lossy(&read).contains(text) {
            assert!(client.read_buf(&mut read).await.unwrap() > 0, "closed: {}", String::from_utf8_lossy(&read));
        }
    };
    tokio::time::timeout(Duration::from_secs(20), reading).await.expect("the text never came");
    String::from_utf8(read).unwrap()
}

#[tokio::test]
async fn the_first_part_of_a_stream_is_passed_on_before_the_rest_exists() {
    let (go, goes) = mpsc::channel::<()>();
    let goes = Mutex::new(goes);
    let provider = ScriptedProvider::start(move |_, answer| {
        answer.head(200, "content-type: text/event-stream\r\nrequest-id: req_9\r\ntransfer-encoding: chunked\r\n");
        answer.chunk(OPENING);
        goes.lock().unwrap().recv().unwrap();
        answer.chunk(REST);
        goes.lock().unwrap().recv().unwrap();
        answer.chunk(CLOSING);
        answer.write("0\r\n\r\n");
    });
    let bench = Bench::new(&provider.url()).await;
    let mut client = bench.connect("POST /trial-1/v1/messages?beta=true", KEY, MAIN).await;
    let first = read_until(&mut client, "message_start\",\"message").await;
    assert!(first.contains("request-id: req_9"), "{first}");
    go.send(()).unwrap();
    read_until(&mut client, "partial_json").await;
    let asked = bench.admission.replied().unwrap();
    assert!(matches!(&asked[..], [Block::ToolUse { id, .. }] if id == "toolu_1"), "known before the end: {asked:?}");
    go.send(()).unwrap();
    read_until(&mut client, "message_stop").await;
    let traffic = bench.admission.traffic();
    assert_eq!((traffic.requests, traffic.main, traffic.retries), (1, 1, 0));
    assert_eq!(traffic.tokens.map(|tokens| (tokens.input, tokens.cache_read, tokens.output)), Some((7, 3, 5)));
    assert!((traffic.cost_usd.unwrap() - 60e-6).abs() < 1e-12, "{traffic:?}");
    assert_eq!(traffic.models.into_iter().collect::<Vec<_>>(), [("claude-x".to_owned(), 1)]);
    assert!(traffic.first_byte_ms.is_some() && traffic.total_ms.is_some());
}

#[tokio::test]
async fn only_the_program_that_asked_first_reaches_the_provider() {
    let provider = ScriptedProvider::start(move |_, answer| answer.json(200, "", "{}"));
    let Bench { gateway, admission } = Bench::new(&provider.url()).await;
    let bench = Bench { gateway, admission: admission.of_one_program() };
    assert_eq!(bench.post().await.status, 200);
    let foreign = format!("{KEY}\r\nuser-agent: curl/8.5.0");
    assert_eq!(bench.send("POST /trial-1/v1/messages", &foreign, MAIN).await.status, 403);
    assert_eq!(bench.send("GET /trial-1/v1/models", &foreign, "").await.status, 200, "not a message");
    assert_eq!(provider.asked().len(), 2);
    assert_eq!(bench.admission.foreign().map(|foreign| foreign.count), Some(1));
    assert!(!bench.admission.has_failed());
}

#[tokio::test]
async fn requests_and_answers_pass_unchanged_with_the_key_of_the_agent() {
    let provider = ScriptedProvider::start(|_, answer| answer.events(&[OPENING, REST, CLOSING].concat()));
    let bench = Bench::new(&format!("{}/base", provider.url())).await;
    let got = bench.post().await;
    assert_eq!((got.status, got.complete), (200, true));
    assert_eq!(got.body, [OPENING, REST, CLOSING].concat());
    let asked = &provider.asked()[0];
    assert_eq!((asked.line.as_str(), asked.body.as_str()), ("POST /base/v1/messages?beta=true", MAIN));
    assert!(asked.headers.contains(KEY) && !asked.headers.contains("trial-1"), "{}", asked.headers);
    let shown = format!("{:?} {:?}", bench.admission, bench.gateway);
    assert!(!shown.contains("sk-dummy") && !shown.contains("trial-1"), "{shown}");
}

#[tokio::test]
async fn a_path_can_name_the_model_and_the_method() {
    let provider = ScriptedProvider::start(|_, answer| {
        let call = json!({"functionCall": {"name": "Bash", "args": {"command": "ls"}}});
        let content = json!({"role": "model", "parts": [call]});
        let usage = json!({"promptTokenCount": 7, "candidatesTokenCount": 2});
        let piece = json!({"candidates": [{"content": content, "finishReason": "STOP"}], "usageMetadata": usage});
        answer.head(200, "content-type: text/event-stream\r\nconnection: close\r\n");
        answer.write(&format!("data: {piece}\r\n\r\n"));
    });
    let bench = Bench::new(&provider.url()).await;
    let body =
        json!({"contents": [{"parts": [{"text": "hi"}]}], "tools": [{"functionDeclarations": [{"name": "Bash"}]}]});
    let line = "POST /trial-1/v1beta/models/gemini-x:streamGenerateContent?alt=sse";
    assert_eq!(bench.send(line, "x-goog-api-key: sk-dummy", &body.to_string()).await.status, 200);
    let traffic = bench.admission.traffic();
    assert_eq!((traffic.requests, traffic.main, traffic.other), (1, 1, 0));
    assert_eq!(traffic.tokens.map(|tokens| tokens.total()), Some(9));
    assert_eq!(traffic.models.into_iter().collect::<Vec<_>>(), [("gemini-x".to_owned(), 1)]);
    assert!(matches!(&bench.admission.replied().unwrap()[..], [Block::ToolUse { name, .. }] if name == "Bash"));
}

#[tokio::test]
async fn side_endpoints_and_documents_pass_unchanged() {
    let provider = ScriptedProvider::start(|request, answer| {
        match request.line.as_str() {
        "POST /v1/messages/count_tokens" => answer.json(200, "", r#"{"input_tokens": 4}"#),
        "GET /v1/models?limit=1" => answer.json(200, "x-own: 1\r\n", r#"{"data": []}"#),
        _ => answer.json(
            200,
            "",
            r#"{"id":"m","type":"message","model":"claude-x","content":[{"type":"text","text":"t"}],"usage":{"input_tokens":2,"output_tokens":1}}"#,
        ),
    }
    });
    let bench = Bench::new(&provider.url()).await;
    let counted = bench.send("POST /trial-1/v1/messages/count_tokens", KEY, "{}").await;
    assert_eq!((counted.status, counted.body.as_str()), (200, r#"{"input_tokens": 4}"#));
    let models = bench.send("GET /trial-1/v1/models?limit=1", KEY, "").await;
    assert_eq!((models.header("x-own"), models.body.as_str()), (Some("1"), r#"{"data": []}"#));
    assert_eq!(bench.admission.replied(), None, "no message yet");
    let title = r#"{"model":"claude-x","max_tokens":9,"messages":[{"role":"user","content":"title"}]}"#;
    assert!(bench.send("POST /trial-1/v1/messages", KEY, title).await.complete);
    let traffic = bench.admission.traffic();
    assert_eq!((traffic.requests, traffic.main, traffic.side, traffic.other), (3, 0, 1, 2));
    assert_eq!(traffic.tokens.map(|tokens| tokens.total()), Some(3));
}

#[tokio::test]
async fn errors_pass_unchanged_and_repeated_requests_count_as_retries() {
    let answers = Mutex::new(vec![200, 500, 429]);
    let provider = ScriptedProvider::start(move |_, answer| match answers.lock().unwrap().pop().unwrap() {
        200 => answer.events(&[OPENING, CLOSING].concat()),
        status => answer.json(status, "retry-after: 7\r\n", r#"{"type":"error","error":{"type":"x","message":"no"}}"#),
    });
    let bench = Bench::new(&provider.url()).await;
    let refused = bench.post().await;
    assert_eq!((refused.status, refused.header("retry-after")), (429, Some("7")));
    assert_eq!(refused.body, r#"{"type":"error","error":{"type":"x","message":"no"}}"#);
    assert!(bench.admission.failure().unwrap().contains("HTTP 429") && bench.admission.has_failed());
    assert_eq!((bench.post().await.status, bench.post().await.status), (500, 200));
    assert_eq!((bench.admission.failure(), bench.admission.traffic().retries), (None, 2));
    let expected = [("200", 1), ("429", 1), ("500", 1)].map(|(status, count)| (status.to_owned(), count));
    assert_eq!(bench.statuses(), expected);
}

#[tokio::test]
async fn a_cut_stream_is_cut_for_the_client_after_all_that_came() {
    let provider = ScriptedProvider::start(|_, answer| {
        answer.head(200, "content-type: text/event-stream\r\ntransfer-encoding: chunked\r\n");
        answer.chunk(&[OPENING, REST].concat());
    });
    let bench = Bench::new(&provider.url()).await;
    let cut = bench.post().await;
    assert_eq!((cut.complete, cut.body), (false, [OPENING, REST].concat()));
    assert!(bench.admission.failure().unwrap().contains("was cut"));
    assert_eq!(bench.admission.replied().unwrap().len(), 1);
}

#[tokio::test]
async fn a_provider_that_cannot_be_reached_is_an_error_in_the_format_of_the_agent() {
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let bench = Bench::new(&format!("http://{nobody}")).await;
    let (status, kind, message) = bench.post().await.error();
    assert_eq!((status, kind.as_str()), (502, "api_error"));
    assert!(message.contains("127.0.0.1 could not be reached"), "{message}");
    for path in ["responses", "v1/chat/completions"] {
        let failed = bench.send(&format!("POST /trial-1/{path}"), "authorization: Bearer sk-dummy", "{}").await;
        assert_eq!(failed.status, 502);
        assert!(failed.json()["error"]["message"].as_str().unwrap().contains("could not be reached"));
    }
    assert_eq!(bench.statuses(), [("none".to_owned(), 3)]);
    assert!(bench.admission.failure().is_some() && bench.admission.silent_for().is_none());
}

#[tokio::test]
async fn an_unknown_or_revoked_token_reaches_no_provider() {
    let provider = ScriptedProvider::start(|_, answer| answer.json(200, "", "{}"));
    let bench = Bench::new(&provider.url()).await;
    assert_eq!(bench.send("POST /trial-2/v1/messages", KEY, MAIN).await.status, 401);
    let Bench { gateway, admission } = bench;
    drop(admission);
    let upstream = Arc::new(Upstream::new(Proxies::default(), Timeouts::default(), Providers::default()));
    let bench = Bench { admission: gateway.forward("trial-3", &upstream, &[&provider.url()], None).unwrap(), gateway };
    assert_eq!(bench.post().await.status, 401);
    assert_eq!(provider.asked().len(), 0);
    for wrong in ["ftp://example.com", "nothing", "http://"] {
        assert!(bench.gateway.forward("t", &upstream, &[wrong], None).is_err(), "{wrong}");
    }
}

#[tokio::test]
async fn a_request_cannot_leave_its_provider() {
    let provider = ScriptedProvider::start(|_, answer| answer.json(404, "", "{}"));
    let bench = Bench::new(&provider.url()).await;
    for path in ["//example.com/v1/messages", "/../x", "@example.com/v1/messages", "/http://example.com/"] {
        bench.send(&format!("POST /trial-1{path}"), KEY, "{}").await;
    }
    assert!(bench.admission.traffic().hosts.keys().all(|host| host == "127.0.0.1"));
    assert!(provider.asked().iter().all(|request| !request.headers.contains("host: example.com")));
}

#[tokio::test]
async fn an_answer_that_cannot_be_read_makes_the_calls_unknown() {
    let provider = ScriptedProvider::start(|_, answer| {
        answer.head(200, "content-type: text/event-stream\r\ncontent-encoding: gzip\r\ncontent-length: 4\r\n");
        answer.write("\u{1}ab\n");
    });
    let bench = Bench::new(&provider.url()).await;
    let got = bench.post().await;
    assert_eq!((got.body.as_str(), got.header("content-encoding")), ("\u{1}ab\n", Some("gzip")));
    assert_eq!(bench.admission.replied(), None);
}
