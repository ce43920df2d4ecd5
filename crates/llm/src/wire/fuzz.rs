//! Requests, responses and streams with mutated content, in every format.

use serde_json::json;

use super::{Dialect, PATH, WIRES, anthropic, chat_completions, gemini, ollama, responses};
use crate::frames::Frames;
use crate::{Block, Message, Reply, Request, Role};

const DIALECTS: [&dyn Dialect; 5] = [
    &anthropic::Client,
    &chat_completions::Client { limit: "max_tokens", requests_usage: true },
    &responses::Client,
    &ollama::Client,
    &gemini::Client,
];

fn reply() -> Reply {
    let content = vec![
        Block::Thinking { text: "Hm.".into(), signature: Some("s".into()) },
        Block::Text { text: "Grüße 😀".into() },
        Block::ToolUse { id: "t1".into(), name: "Bash".into(), input: json!({ "command": "ls" }) },
    ];
    Reply { content, ..Reply::default() }
}

/// The same reply in every format: as one document, and as a stream.
fn seeds() -> [Vec<Vec<u8>>; 2] {
    let documents = WIRES.iter().map(|wire| wire.whole(&reply()).to_string().into_bytes()).collect();
    let streams = WIRES.iter().map(|wire| {
        let stream = wire.stream(&reply());
        let events = stream.opening.iter().chain(&stream.content).chain(&stream.closing);
        events.map(ToString::to_string).collect::<String>().into_bytes()
    });
    [documents, streams.collect()]
}

#[test]
fn no_response_makes_a_client_panic() {
    let [documents, streams] = seeds();
    let request = Request { model: "m".into(), ..Request::default() };
    testkit::fuzz(&documents, |bytes| {
        let Ok(document) = serde_json::from_slice(bytes) else { return };
        for dialect in DIALECTS {
            drop(dialect.reply(&request, serde_json::Value::clone(&document)));
        }
    });
    testkit::fuzz(&streams, |bytes| {
        for dialect in DIALECTS {
            let mut frames = Frames::new(dialect.framing());
            let mut pieces: Vec<Vec<u8>> = bytes.chunks(7).flat_map(|chunk| frames.take(chunk)).collect();
            pieces.extend(frames.finish());
            let mut response = dialect.assemble(&request);
            for piece in pieces {
                let Ok(piece) = serde_json::from_slice(&piece) else { continue };
                if response.take(piece).is_err() {
                    return;
                }
            }
            response.finish();
        }
    });
}

#[test]
fn no_request_makes_a_server_panic() {
    let request = Request {
        model: "m".into(),
        messages: vec![Message::text(Role::User, "Go."), Message { role: Role::Assistant, content: reply().content }],
        ..Request::default()
    };
    let written = DIALECTS.map(|dialect| serde_json::to_vec(&dialect.ask(&request, true)).unwrap());
    testkit::fuzz(&written, |bytes| {
        for wire in WIRES {
            drop(wire.read(&|name| (name == PATH).then_some("/v1beta/models/m:generateContent"), bytes));
        }
    });
}
