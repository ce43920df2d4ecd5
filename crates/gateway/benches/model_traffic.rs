//! Measures the time that the gateway adds to model requests: `cargo bench -p trialrun-gateway`.
//!
//! The request is as large as that of a coding agent halfway through its work. The provider is a server on loopback.
//! Each figure is the median over many requests, and is printed next to its promised maximum. The exit code is 1 if a
//! figure exceeds it.

#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs)]

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cassette::{CassetteMode, Normalizer, Recording, Tape};
use llm::{Prices, Providers, Proxies, Timeouts};
use model::RequestRule;
use serde_json::{Value, json};
use testkit::ScriptedProvider;
use trialrun_gateway::{Gateway, Upstream};

const REQUESTS: usize = 300;
const ANSWER: &str = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"model\":\"m\",\"content\":[],\"usage\":{\"input_tokens\":7,\"output_tokens\":1}}}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n";
const RULES: &[RequestRule] = &[RequestRule::RemoveField("cache_control"), RequestRule::Sort("/tools", "/name")];

/// Returns a request of about 200 KB: 20 tools, a long system prompt, and 60 messages.
fn request(work: &str) -> String {
    let words = "The quick brown fox reads the file, edits line 42 and runs the tests again. ";
    let tool =
        |number: usize| json!({"name": format!("Tool{number}"), "description": words.repeat(25), "input_schema": {}});
    let message = |number: usize| {
        let content = match number % 3 {
            0 => json!([{"type": "text", "text": words.repeat(10)}]),
            1 => {
                json!([{"type": "tool_use", "id": format!("t{number}"), "name": "Bash", "input": {"command": format!("ls {work}/src")}}])
            }
            _ => {
                json!([{"type": "tool_result", "tool_use_id": format!("t{}", number - 1), "content": format!("{work}/src/main.rs 3f2a1bc{number:02} 12:34:56 took 0.5s\n{}", words.repeat(50))}])
            }
        };
        json!({"role": if number % 3 == 1 { "assistant" } else { "user" }, "content": content})
    };
    let messages: Vec<Value> = (0..60).map(message).collect();
    json!({
        "model": "m", "max_tokens": 9, "stream": true, "system": [{"type": "text", "text": words.repeat(500)}],
        "tools": (0..20).map(tool).collect::<Vec<_>>(), "messages": messages,
    })
    .to_string()
}

/// Sends a request and returns the times to the first byte and to the end.
fn ask(address: &str, path: &str, body: &str) -> (Duration, Duration) {
    let address = address.strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_nodelay(true).unwrap();
    let began = Instant::now();
    let head = format!(
        "POST {path}/v1/messages HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(body.as_bytes()).unwrap();
    let mut byte = [0];
    stream.read_exact(&mut byte).unwrap();
    let first = began.elapsed();
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).unwrap();
    assert!(rest.ends_with(b"\r\n0\r\n\r\n"), "{}", String::from_utf8_lossy(&rest));
    (first, began.elapsed())
}

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort();
    times[times.len() / 2].as_secs_f64() * 1000.0
}

fn main() {
    if std::env::args().any(|argument| argument == "--test" || argument == "--list") {
        return;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let provider = ScriptedProvider::start(|_, answer| answer.events(ANSWER));
    let upstream = Arc::new(Upstream::new(
        Proxies::default(),
        Timeouts::default(),
        Providers::new(Default::default(), Prices::default(), Default::default()),
    ));
    let gateway = runtime.block_on(Gateway::start()).unwrap();
    let normalizer = |work: &str| Normalizer::new(RULES, &[(work.to_owned(), "work")], &[jiff::Zoned::now().date()]);
    let tape = Arc::new(Tape::new(CassetteMode::Record, "c", None, normalizer("/tmp/one/work")));
    let _guard = runtime.enter();
    let observed = gateway.forward("observed", &upstream, &[&provider.url()], None).unwrap();
    let recorded = gateway.forward("recorded", &upstream, &[&provider.url()], Some(&tape)).unwrap();
    let (first, second) = (request("/tmp/one/work"), request("/tmp/other/work"));
    ask(&gateway.base_url(), "/recorded", &first);
    let recording: Recording = tape.recorded().unwrap().unwrap();
    let tape = Tape::new(CassetteMode::Replay, "c", Some(recording.into()), normalizer("/tmp/other/work"));
    let replayed = gateway.forward("replayed", &upstream, &[&provider.url()], Some(&Arc::new(tape))).unwrap();

    let (mut direct, mut through, mut replay) = (Vec::new(), Vec::new(), Vec::new());
    // The variants alternate, so that a slow moment affects all of them.
    for _ in 0..REQUESTS {
        direct.push(ask(&provider.url(), "", &first).0);
        through.push(ask(&gateway.base_url(), "/observed", &first).0);
        replay.push(ask(&gateway.base_url(), "/replayed", &second).1);
    }
    let added = median(through) - median(direct.clone());
    let replay = median(replay);
    drop((observed, recorded, replayed));
    println!("request of {} KB, {REQUESTS} times", first.len() / 1000);
    println!("{:<60} {:>8.2} ms", "first byte of the provider itself", median(direct));
    println!("{:<60} {added:>8.2} ms  promise 1 ms", "added to the first byte by observing");
    println!("{:<60} {replay:>8.2} ms  promise 2 ms", "whole request, answered from a cassette");
    std::process::exit(i32::from(added > 1.0 || replay > 2.0));
}
