//! OpenRouter's price list: fetched once, without a key, and with a timeout.

use serde_json::json;
use trialrun_llm::{Credentials, Policy, Prices, Providers};

use crate::client::CANARY;
use crate::server::{Answer, Server};

fn providers(address: &str) -> Providers {
    let keys = Credentials::default().with("OPENROUTER_API_KEY", CANARY).with("OPENROUTER_BASE_URL", address);
    Providers::new(keys, Prices::default(), Policy::default())
}

#[tokio::test]
async fn the_price_list_is_fetched_once_by_all_callers_without_a_key() {
    let model =
        json!({"id": "anthropic/claude-haiku-4.5", "pricing": {"prompt": "0.000001", "completion": "0.000005"}});
    let server = Server::start([Answer::json(200, &json!({"data": [model]}))]).await;
    let providers = providers(&format!("{}/api/v1/", server.url()));
    let other = providers.with("OPENAI_API_KEY", "k").with_policies(std::collections::BTreeMap::new());
    for providers in [&providers, &other, &providers] {
        let price = providers.openrouter_list().await.unwrap().price("claude-haiku-4-5-20251001").unwrap();
        assert!((price.output - 5.0).abs() < 1e-9);
    }
    let asked = server.asked();
    assert_eq!((asked.len(), asked[0].uri.as_str()), (1, "/api/v1/models"));
    assert!(asked[0].headers.iter().all(|(_, value)| !value.contains(CANARY)), "{:?}", asked[0].headers);
}

#[tokio::test]
async fn a_list_that_cannot_be_fetched_is_reported_and_not_requested_again() {
    for (answer, reason) in [
        (Answer::of(503, "text/plain", "busy"), "HTTP 503"),
        (Answer::of(200, "text/html", "<p>no list</p>"), "it cannot be read"),
        (Answer::json(200, &json!({"models": []})), "it cannot be read"),
        (Answer::of(302, "text/plain", "").with("location", "http://127.0.0.1:1/"), "HTTP 302"),
    ] {
        let server = Server::start([answer]).await;
        let providers = providers(&server.url());
        for _ in 0..2 {
            assert_eq!(providers.openrouter_list().await.unwrap_err(), reason);
        }
        assert_eq!(server.asked().len(), 1);
    }
    assert!(providers("http://127.0.0.1:1").openrouter_list().await.is_err());
    assert!(providers("nonsense").openrouter_list().await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_price_list_that_never_arrives_times_out() {
    let server = Server::start([Answer::silence()]).await;
    let error = providers(&server.url()).openrouter_list().await.unwrap_err().to_owned();
    assert_eq!(error, "no response within 10 s");
}
