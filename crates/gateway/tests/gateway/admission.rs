use std::sync::Arc;

use llm::Conversation;
use serde_json::json;
use tokio::net::TcpStream;
use trialrun_gateway::{Auth, ForeignRequests, SeenRequest};

use crate::client::{Bench, asks, play, streaming};

#[tokio::test]
async fn an_unknown_token_is_rejected_in_the_vendors_error_format() {
    let bench = Bench::new(json!({"steps": [{"text": "m1"}]})).await;
    let body = asks("x").to_string();
    for headers in ["x: y", "x-api-key: sk-other", "authorization: Bearer sk-other", "authorization: Basic sk-test"] {
        let error = bench.send("POST /v1/messages", headers, &body).await.error();
        let message = "the key is missing, unknown or no longer valid";
        assert_eq!(error, (401, "authentication_error".into(), message.into()), "{headers}");
    }
    assert!(bench.admission.seen().is_empty());
    assert_eq!(bench.playback.requests_seen(), 0);
}

#[tokio::test]
async fn received_requests_are_reported_without_the_token() {
    let bench = Bench::new(json!({"steps": [{"text": "m1", "repeat": 2}]})).await;
    bench.post(&streaming("x")).await;
    bench.send("POST /v1/messages", "authorization: bearer sk-test", &asks("x").to_string()).await;
    let seen = bench.admission.seen();
    let first = SeenRequest {
        method: "POST".into(),
        path: "/v1/messages".into(),
        auth: Auth::ApiKey,
        user_agent: Some("test/1".into()),
        stream: true,
        conversation: Conversation::default(),
        model: Some("m1".into()),
        tools: vec!["Bash".into()],
    };
    let second = SeenRequest { auth: Auth::Bearer, stream: false, ..first.clone() };
    assert_eq!(seen, [first, second]);
    assert!(!format!("{:?} {:?}", bench.admission, bench.gateway).contains("sk-test"));
}

#[tokio::test]
async fn only_the_program_that_asked_first_is_answered() {
    let bench = Bench::new(json!({"steps": [{"text": "m1"}, {"text": "m2"}]})).await;
    assert_eq!(bench.post(&asks("x")).await.status, 200);
    let foreign = "x-api-key: sk-test\r\nuser-agent: curl/8.5.0";
    for body in [asks("x").to_string(), "nonsense".to_owned()] {
        assert_eq!(bench.send("POST /v1/messages", foreign, &body).await.status, 403);
    }
    assert_eq!(bench.post(&asks("x")).await.json()["content"][0]["text"], "m2");
    assert!(bench.admission.has_answered() && !bench.admission.has_failed());
    assert_eq!(bench.admission.foreign(), Some(ForeignRequests { program: "curl/8.5.0".into(), count: 2 }));
    assert_eq!(bench.post(&asks("x")).await.status, 400, "the script has no third step");
    assert!(bench.admission.has_failed());
}

#[tokio::test]
async fn each_token_has_its_own_script_and_is_revoked_afterwards() {
    let bench = Bench::new(json!({"steps": [{"text": "first"}]})).await;
    let other = bench.gateway.admit("sk-two", play(&json!({"steps": [{"text": "second", "repeat": 2}]})));
    let ask = async || bench.send("POST /v1/messages", "x-api-key: sk-two", &asks("x").to_string()).await;
    assert_eq!(ask().await.json()["content"][0]["text"], "second");
    assert_eq!(bench.post(&asks("x")).await.json()["content"][0]["text"], "first");
    drop(other);
    assert_eq!(ask().await.status, 401);
}

#[tokio::test]
async fn a_token_admitted_twice_belongs_to_the_later_admission() {
    let bench = Bench::new(json!({"steps": [{"text": "first"}]})).await;
    let later = play(&json!({"steps": [{"text": "later"}]}));
    let admission = bench.gateway.admit("sk-test", Arc::clone(&later));
    let Bench { gateway, playback, admission: earlier } = bench;
    drop(earlier);
    let bench = Bench { gateway, playback, admission };
    assert_eq!(bench.post(&asks("x")).await.json()["content"][0]["text"], "later");
}

#[tokio::test]
async fn a_gateway_that_is_dropped_closes_its_port_and_its_connections() {
    let bench = Bench::new(json!({"steps": [{"fault": {"kind": "hang"}}]})).await;
    let address = bench.gateway.base_url().strip_prefix("http://").unwrap().to_owned();
    let client = bench.connect("POST /v1/messages", "x-api-key: sk-test", &asks("x").to_string()).await;
    bench.until(|bench| bench.playback.in_flight().is_some()).await;
    let Bench { gateway, playback, admission } = bench;
    drop(gateway);
    client.readable().await.unwrap();
    assert_eq!(client.try_read(&mut [0; 16]).unwrap_or(0), 0);
    assert_eq!((playback.in_flight(), admission.in_flight()), (None, None));
    TcpStream::connect(address).await.unwrap_err();
}
