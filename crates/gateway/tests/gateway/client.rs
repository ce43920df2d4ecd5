//! A client that shows exactly what arrived over the wire.

use std::sync::Arc;
use std::time::Duration;

use llm::{Playback, Script, ScriptContext};
use model::{Node, Source};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use trialrun_gateway::{Admission, Gateway};

/// Bytes received until the connection closed, parsed.
pub struct Received {
    pub status: u16,
    pub head: String,
    pub body: String,
    /// True if the body has the promised length, or if its stream was properly ended.
    pub complete: bool,
}

impl Received {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }

    pub fn error(&self) -> (u16, String, String) {
        let body = self.json();
        assert_eq!(body["type"], "error");
        let text = |key: &str| body["error"][key].as_str().unwrap().to_owned();
        (self.status, text("type"), text("message"))
    }

    /// Returns the data of the events that can be parsed.
    pub fn events(&self) -> Vec<Value> {
        self.body.lines().filter_map(|line| serde_json::from_str(line.strip_prefix("data: ")?).ok()).collect()
    }

    /// Returns the types of those events.
    pub fn event_types(&self) -> Vec<String> {
        self.events().iter().map(|event| event["type"].as_str().unwrap().to_owned()).collect()
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(": ")?;
            key.eq_ignore_ascii_case(name).then_some(value)
        })
    }
}

/// A gateway with one admitted trial.
pub struct Bench {
    pub gateway: Gateway,
    pub playback: Arc<Playback>,
    pub admission: Admission,
}

impl Bench {
    pub async fn new(script: Value) -> Self {
        let gateway = Gateway::start().await.unwrap();
        let playback = play(&script);
        let admission = gateway.admit("sk-test", Arc::clone(&playback));
        Self { gateway, playback, admission }
    }

    /// Sends `body` with the trial's key and reads until the server closes the connection.
    pub async fn post(&self, body: &Value) -> Received {
        self.send("POST /v1/messages?beta=true", "x-api-key: sk-test", &body.to_string()).await
    }

    pub async fn send(&self, line: &str, headers: &str, body: &str) -> Received {
        let mut client = self.connect(line, headers, body).await;
        let mut bytes = Vec::new();
        tokio::time::timeout(Duration::from_secs(20), client.read_to_end(&mut bytes)).await.unwrap().unwrap();
        received(&bytes)
    }

    /// Sends a request and lets the caller read the answer.
    pub async fn connect(&self, line: &str, headers: &str, body: &str) -> TcpStream {
        let base_url = self.gateway.base_url();
        let address = base_url.strip_prefix("http://").unwrap();
        assert!(address.starts_with("127.0.0.1:"), "{address}");
        let mut client = TcpStream::connect(address).await.unwrap();
        let length = body.len();
        let head = format!("{line} HTTP/1.1\r\nhost: {address}\r\n{headers}\r\nconnection: close\r\n");
        let request = format!("{head}user-agent: test/1\r\ncontent-length: {length}\r\n\r\n{body}");
        client.write_all(request.as_bytes()).await.unwrap();
        client
    }

    /// Yields to other tasks until `done` returns true.
    pub async fn until(&self, done: impl Fn(&Self) -> bool) {
        let wait = async {
            while !done(self) {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), wait).await.expect("the condition was never met");
    }
}

pub fn play(script: &Value) -> Arc<Playback> {
    let node = Node::from_json(script, &Source::new("s.json", ""));
    let script = Arc::new(Script::from_node(&node).unwrap());
    let stage = ScriptContext { sandbox: "/box".into(), home: "/home/a".into(), without_tools: false };
    Arc::new(script.play(stage))
}

/// Returns a request from an agent with one tool.
pub fn asks(text: &str) -> Value {
    json!({
        "model": "m1", "max_tokens": 1000, "system": [{"type": "text", "text": "Be brief."}],
        "messages": [{"role": "user", "content": text}],
        "tools": [{"name": "Bash", "description": "Runs.", "input_schema": {"type": "object"}}],
    })
}

pub fn streaming(text: &str) -> Value {
    let mut body = asks(text);
    body["stream"] = json!(true);
    body
}

/// Parses a response and joins its chunks.
pub fn received(bytes: &[u8]) -> Received {
    let text = String::from_utf8_lossy(bytes).into_owned();
    let (head, rest) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no response: {text:?}"));
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let mut received = Received { status, head: head.to_owned(), body: String::new(), complete: false };
    if received.header("transfer-encoding") == Some("chunked") {
        let mut rest = rest;
        while let Some((length, more)) = rest.split_once("\r\n") {
            let length = usize::from_str_radix(length, 16).unwrap();
            if length == 0 {
                received.complete = true;
                break;
            }
            let end = length.min(more.len());
            received.body.push_str(&more[..end]);
            rest = more.get(end + 2..).unwrap_or_default();
        }
    } else {
        let promised: usize = received.header("content-length").map_or(0, |length| length.parse().unwrap());
        received.complete = rest.len() == promised;
        received.body = rest.to_owned();
    }
    received
}
