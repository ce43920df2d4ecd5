//! Documents stored by a vendor: the Assistants API.

use serde_json::json;
use trialrun_llm::{Credentials, FailureKind};

use crate::client::{CANARY, credentials, policy, providers};
use crate::server::{Answer, Server};

#[tokio::test]
async fn a_document_is_requested_with_the_key_and_its_query() {
    let server = Server::start([Answer::json(200, &json!({"data": []})), Answer::json(200, &json!({"id": "t"}))]).await;
    let documents = providers(policy(1)).assistants(Some(&server.url())).unwrap();
    assert_eq!(documents.get("/threads/t/messages?order=asc&run_id=r").await.unwrap(), json!({"data": []}));
    assert_eq!(documents.post("/threads", &json!({"a": 1})).await.unwrap(), json!({"id": "t"}));
    let asked = server.asked();
    assert_eq!(asked[0].uri, "/v1/threads/t/messages?order=asc&run_id=r");
    assert_eq!((asked[1].uri.as_str(), asked[1].body.clone()), ("/v1/threads", json!({"a": 1})));
    for request in &asked {
        assert_eq!(request.header("authorization"), Some(format!("Bearer {CANARY}").as_str()));
        assert_eq!(request.header("openai-beta"), Some("assistants=v2"));
    }
}

#[tokio::test]
async fn requests_that_may_have_been_processed_are_not_repeated() {
    let down = || Answer::json(500, &json!({"error": {"message": format!("down {CANARY}")}}));
    let busy = || Answer::json(429, &json!({"error": {"message": "slow down"}})).with("retry-after-ms", "0");
    let server =
        Server::start([down(), Answer::json(200, &json!({})), down(), busy(), Answer::json(200, &json!({}))]).await;
    let documents = providers(policy(3)).assistants(Some(&server.url())).unwrap();
    assert_eq!(documents.get("/threads/t").await.unwrap(), json!({}));
    assert_eq!(documents.take_steps().len(), 1);
    let failure = documents.post("/threads", &json!({})).await.unwrap_err();
    assert_eq!((failure.kind, failure.tries), (FailureKind::Server, 1));
    assert!(!failure.to_string().contains(CANARY) && failure.to_string().contains("POST http"), "{failure}");
    assert_eq!(documents.post("/threads", &json!({})).await.unwrap(), json!({}));
    assert_eq!(documents.take_steps().len(), 1);
}

#[tokio::test]
async fn an_agents_own_key_takes_precedence_and_is_not_shared() {
    let ok = || Answer::json(200, &json!({}));
    let server = Server::start([ok(), ok()]).await;
    let all = providers(policy(1));
    let own = all.with("OPENAI_API_KEY", "canary-of-ones-own");
    own.assistants(Some(&server.url())).unwrap().get("/a").await.unwrap();
    all.assistants(Some(&server.url())).unwrap().get("/a").await.unwrap();
    let asked = server.asked();
    assert_eq!(asked[0].header("authorization"), Some("Bearer canary-of-ones-own"));
    assert_eq!(asked[1].header("authorization"), Some(format!("Bearer {CANARY}").as_str()));
    assert_eq!(format!("{:?}", Credentials::default()), "{}");
    assert!(!format!("{own:?} {:?}", credentials()).contains("canary"));
}
