use std::sync::Arc;

use llm::{FaultyModel, Providers};
use model::{FaultAction, Occurrences};
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;

use crate::client::{Bench, asks, received, streaming};

async fn broken(fault: Value) -> Bench {
    Bench::new(json!({"steps": [{"text": "The answer is four, and that is all.", "fault": fault}, {"text": "fine"}]}))
        .await
}

/// Asserts that the next request is answered normally.
async fn recovers(bench: &Bench) {
    assert!(!bench.playback.faulted().unwrap().recovered);
    assert_eq!(bench.post(&asks("x")).await.json()["content"][0]["text"], "fine");
    assert!(bench.playback.faulted().unwrap().recovered);
    assert_eq!(bench.playback.in_flight(), None);
    assert_eq!(bench.admission.in_flight(), None);
}

#[tokio::test]
async fn an_error_status_comes_with_its_headers() {
    let fault =
        json!({"kind": "http", "status": 429, "headers": {"retry-after": "7"}, "message": "slow down", "times": 2});
    let bench = broken(fault).await;
    for body in [asks("x"), streaming("x")] {
        let received = bench.post(&body).await;
        assert_eq!(received.error(), (429, "rate_limit_error".into(), "slow down".into()));
        assert_eq!(received.header("retry-after"), Some("7"));
    }
    recovers(&bench).await;
}

#[tokio::test]
async fn an_overloaded_vendor_has_its_own_status() {
    let bench = broken(json!({"kind": "http", "status": 529})).await;
    assert_eq!(bench.post(&asks("x")).await.error(), (529, "overloaded_error".into(), "a scripted HTTP 529".into()));
    let bench = broken(json!({"kind": "http", "type": "own_error"})).await;
    assert_eq!(bench.post(&asks("x")).await.error(), (500, "own_error".into(), "a scripted HTTP 500".into()));
}

#[tokio::test]
async fn a_cut_stream_ends_in_the_middle_of_its_content() {
    let bench = broken(json!({"kind": "cut"})).await;
    let received = bench.post(&streaming("x")).await;
    assert_eq!((received.status, received.complete), (200, false));
    assert_eq!(received.event_types(), ["message_start", "content_block_start", "content_block_delta"]);
    let whole = received.body.rfind("\n\n").unwrap();
    assert!(received.body[whole..].starts_with("\n\nevent: content"), "{}", received.body);
    recovers(&bench).await;
}

#[tokio::test]
async fn a_cut_document_is_shorter_than_its_content_length() {
    let bench = broken(json!({"kind": "cut"})).await;
    let received = bench.post(&asks("x")).await;
    assert_eq!((received.status, received.complete), (200, false));
    assert!(received.body.starts_with("{\"id\":"), "{}", received.body);
    recovers(&bench).await;
}

#[tokio::test]
async fn a_malformed_answer_ends_properly_but_cannot_be_parsed() {
    let bench = broken(json!({"kind": "malformed", "times": 2})).await;
    let stream = bench.post(&streaming("x")).await;
    assert_eq!((stream.status, stream.complete), (200, true));
    assert_eq!(stream.event_types(), ["message_start"]);
    assert_eq!(stream.body.matches("\ndata: ").count(), 2);
    let document = bench.post(&asks("x")).await;
    assert_eq!((document.status, document.complete), (200, true));
    assert!(serde_json::from_str::<Value>(&document.body).is_err());
    recovers(&bench).await;
}

#[tokio::test]
async fn an_error_is_an_event_within_a_stream_and_a_status_elsewhere() {
    let bench = broken(json!({"kind": "sse_error", "message": "busy", "times": 2})).await;
    let stream = bench.post(&streaming("x")).await;
    assert_eq!((stream.status, stream.complete), (200, true));
    assert_eq!(stream.event_types(), ["message_start", "error"]);
    assert_eq!(stream.events()[1]["error"], json!({"type": "overloaded_error", "message": "busy"}));
    assert_eq!(bench.post(&asks("x")).await.error(), (529, "overloaded_error".into(), "busy".into()));
    recovers(&bench).await;
}

#[tokio::test]
async fn a_hanging_request_gets_no_data_and_lasts_until_the_client_disconnects() {
    for body in [asks("x"), streaming("x")] {
        let bench = broken(json!({"kind": "hang"})).await;
        let client = bench.connect("POST /v1/messages", "x-api-key: sk-test", &body.to_string()).await;
        bench.until(|bench| bench.playback.in_flight().is_some()).await;
        assert_eq!(bench.admission.waiting()[0].what, "request 1 on /v1/messages");
        let nothing = client.try_read(&mut [0; 16]).unwrap_err();
        assert_eq!(nothing.kind(), std::io::ErrorKind::WouldBlock);
        drop(client);
        bench.until(|bench| bench.playback.in_flight().is_none() && bench.admission.in_flight().is_none()).await;
        recovers(&bench).await;
    }
}

#[tokio::test]
async fn a_hanging_stream_sends_its_beginning() {
    let bench = broken(json!({"kind": "hang_stream"})).await;
    let mut client = bench.connect("POST /v1/messages", "x-api-key: sk-test", &streaming("x").to_string()).await;
    let mut bytes = Vec::new();
    while !String::from_utf8_lossy(&bytes).contains("\n\n\r\n") {
        assert_ne!(client.read_buf(&mut bytes).await.unwrap(), 0);
    }
    let begun = received(&bytes);
    assert_eq!((begun.status, begun.complete), (200, false));
    assert_eq!(begun.event_types(), ["message_start"]);
    assert!(bench.playback.in_flight().is_some());
    assert_eq!(client.try_read(&mut [0; 16]).unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
    drop(client);
    bench.until(|bench| bench.playback.in_flight().is_none()).await;
    recovers(&bench).await;
}

#[tokio::test]
async fn a_hanging_document_sends_its_beginning() {
    let bench = broken(json!({"kind": "hang_stream"})).await;
    let mut client = bench.connect("POST /v1/messages", "x-api-key: sk-test", &asks("x").to_string()).await;
    let mut bytes = Vec::new();
    while !String::from_utf8_lossy(&bytes).contains("\r\n\r\n{\"id\":") {
        assert_ne!(client.read_buf(&mut bytes).await.unwrap(), 0);
    }
    assert!(bench.playback.in_flight().is_some());
    drop(client);
    bench.until(|bench| bench.playback.in_flight().is_none()).await;
}

#[tokio::test]
async fn a_cut_without_content_still_breaks_the_stream() {
    let bench = Bench::new(json!({"steps": [{"fault": {"kind": "cut"}}]})).await;
    let received = bench.post(&streaming("x")).await;
    assert_eq!((received.complete, received.event_types()), (false, vec!["message_start".to_owned()]));
}

#[tokio::test]
async fn faults_of_a_case_are_sent_in_the_wire_format() {
    let bench = Bench::new(json!({"steps": [{"text": "The answer is four."}, {"text": "fine"}]})).await;
    let requests = |at| Occurrences { at, every: 1, times: Some(1) };
    let faults = vec![
        FaultAction::HttpStatus { status: 529, retry_after: Some(2), requests: requests(1) },
        FaultAction::CutStream { requests: requests(2) },
        FaultAction::MalformedArguments { requests: requests(3) },
        FaultAction::SlowStream { delay_ms: 1, requests: requests(4) },
    ];
    let of_script = (&Providers::default(), "scripted:s.yaml");
    let model = FaultyModel::new(bench.playback.clone(), faults, false, of_script, |_| {});
    let _admission = bench.gateway.admit("sk-test", Arc::new(model));
    let body = streaming("x");
    let status = bench.post(&body).await;
    assert_eq!((status.status, status.header("retry-after")), (529, Some("2")));
    assert!(!bench.post(&body).await.complete);
    let call = bench.post(&body).await;
    let arguments: String = call.events().iter().filter_map(|event| event["delta"]["partial_json"].as_str()).collect();
    assert!(call.complete && serde_json::from_str::<Value>(&arguments).is_err(), "{arguments}");
    let slow = bench.post(&body).await;
    let text: String = slow.events().iter().filter_map(|event| event["delta"]["text"].as_str()).collect();
    assert_eq!((slow.complete, text.as_str()), (true, "The answer is four."));
    assert_eq!(bench.playback.requests_seen(), 1);
}
