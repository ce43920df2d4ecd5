//! Tests of answers that are recorded, and replayed after the provider has stopped.

use std::sync::Arc;
use std::time::Duration;

use cassette::{CassetteMode, Normalizer, Tape};
use llm::{Providers, Proxies, Timeouts};
use testkit::ScriptedProvider;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use trialrun_gateway::{ForwardedAdmission, Gateway, Upstream};

use crate::client::{Received, received};

const NOBODY: &str = "http://127.0.0.1:9";
const EVENTS: &str = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"model\":\"x\",\"content\":[],\"usage\":{\"input_tokens\":7,\"output_tokens\":1}}}\n\n";
const END: &str = "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n";

fn body(work: &str) -> String {
    format!(
        r#"{{"model":"x","stream":true,"tools":[{{"name":"Bash","input_schema":{{}}}}],"messages":[{{"role":"user","content":"in {work} ü"}}]}}"#
    )
}

fn upstream() -> Arc<Upstream> {
    let timeouts = Timeouts { first_byte: Duration::from_secs(20), ..Timeouts::default() };
    Arc::new(Upstream::new(Proxies::default(), timeouts, Providers::default()))
}

fn tape(mode: CassetteMode, before: Option<&Tape>, work: &str) -> Arc<Tape> {
    let recording = before.map(|tape| Arc::new(tape.recorded().unwrap().unwrap()));
    Arc::new(Tape::new(mode, "c", recording, Normalizer::new(&[], &[(work.to_owned(), "work")], &[])))
}

async fn post(gateway: &Gateway, admission: &ForwardedAdmission, body: &str) -> Received {
    let base_url = admission.base_urls().next().unwrap().to_owned();
    let address = gateway.base_url();
    let path = base_url.strip_prefix(&address).unwrap();
    let mut client = TcpStream::connect(address.strip_prefix("http://").unwrap()).await.unwrap();
    let head = format!("POST {path}/v1/messages HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n");
    let request = format!("{head}content-length: {}\r\n\r\n{body}", body.len());
    client.write_all(request.as_bytes()).await.unwrap();
    let mut bytes = Vec::new();
    tokio::time::timeout(Duration::from_secs(20), client.read_to_end(&mut bytes)).await.unwrap().unwrap();
    received(&bytes)
}

/// Records an answer from a provider, and replays it in another directory.
async fn replayed(provider: ScriptedProvider) -> (Received, Received, ForwardedAdmission) {
    let gateway = Gateway::start().await.unwrap();
    let recording = tape(CassetteMode::Record, None, "/tmp/one");
    let admission = gateway.forward("t1", &upstream(), &[&provider.url()], Some(&recording)).unwrap();
    let first = post(&gateway, &admission, &body("/tmp/one")).await;
    drop(provider);
    let replaying = tape(CassetteMode::Replay, Some(&recording), "/tmp/another");
    let admission = gateway.forward("t2", &upstream(), &[NOBODY], Some(&replaying)).unwrap();
    let second = post(&gateway, &admission, &body("/tmp/another")).await;
    (first, second, admission)
}

#[tokio::test]
async fn an_answer_is_replayed_and_counted_after_its_provider_has_gone() {
    let provider = ScriptedProvider::start(|_, answer| {
        answer.head(200, "content-type: text/event-stream\r\nx-secret: key\r\ntransfer-encoding: chunked\r\n");
        for part in format!("{EVENTS}: /tmp/one ü\n\n{END}").chars().collect::<Vec<_>>().chunks(3) {
            answer.chunk(&part.iter().collect::<String>());
        }
        answer.write("0\r\n\r\n");
    });
    let (first, second, admission) = replayed(provider).await;
    assert_eq!((second.status, second.complete), (200, true));
    assert_eq!(second.body, first.body.replace("/tmp/one", "/tmp/another"));
    assert!(second.head.contains("text/event-stream") && !second.head.contains("x-secret"), "{}", second.head);
    let traffic = admission.traffic();
    assert_eq!((traffic.requests, traffic.replayed, traffic.tokens.unwrap().input), (1, 1, 7));
}

#[tokio::test]
async fn a_cut_answer_is_cut_at_the_same_place() {
    let provider = ScriptedProvider::start(|_, answer| {
        answer.head(200, "content-type: text/event-stream\r\ntransfer-encoding: chunked\r\n");
        answer.chunk(EVENTS);
    });
    let (first, second, _admission) = replayed(provider).await;
    assert_eq!((&second.body, second.complete), (&first.body, false));
}

#[tokio::test]
async fn an_error_of_the_provider_is_replayed() {
    let provider = ScriptedProvider::start(|_, answer| {
        answer.json(
            529,
            "retry-after: 9\r\n",
            r#"{"type":"error","error":{"type":"overloaded_error","message":"no"}}"#,
        );
    });
    let (first, second, admission) = replayed(provider).await;
    assert_eq!((second.status, &second.body), (529, &first.body));
    assert!(admission.failure().is_some());
}

#[tokio::test]
async fn a_request_without_a_recorded_answer_is_refused_in_the_format_of_the_agent() {
    let gateway = Gateway::start().await.unwrap();
    let replaying = tape(CassetteMode::Replay, None, "/tmp/one");
    let admission = gateway.forward("t", &upstream(), &[NOBODY], Some(&replaying)).unwrap();
    let refused = post(&gateway, &admission, &body("/tmp/one")).await;
    let (status, kind, message) = refused.error();
    assert_eq!((status, kind.as_str()), (400, "invalid_request_error"));
    assert!(message.contains("no recording of this trial"), "{message}");
    assert!(replaying.stale().is_some());
}
