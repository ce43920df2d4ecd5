//! Many concurrent callers, and providers that limit them.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::task::JoinSet;
use trialrun_llm::{FailureKind, Policy};

use crate::client::{ALL, ask, asks, model, open, policy, providers};
use crate::server::{Answer, Server};
use crate::streams::{check, document, stream};

fn too_many() -> Answer {
    Answer::json(429, &json!({"error": {"message": "slow down", "type": "rate_limit_error"}}))
}

#[tokio::test(flavor = "multi_thread")]
async fn all_callers_get_an_answer_after_many_rate_limit_errors() {
    for (provider, _) in ALL {
        let (text, kind) = stream(provider);
        let storm = (0..40).map(|index| match index % 4 {
            0 => too_many().with("retry-after", "0"),
            1 => too_many().with("retry-after", "Sun, 06 Nov 1994 08:49:37 GMT"),
            2 => too_many().with("retry-after-ms", "1"),
            _ => too_many(),
        });
        let server = Server::start(storm.chain([Answer::of(200, kind, text)])).await;
        let providers = providers(Policy { concurrency: 8, ..policy(60) });
        let mut callers = JoinSet::new();
        for _ in 0..20 {
            // Each trial opens its own model; the account is shared.
            let model = open(&providers, provider, &server.url());
            callers.spawn(async move { ask(&model).await });
        }
        while let Some(done) = callers.join_next().await {
            check(provider, &done.unwrap().unwrap());
        }
        assert_eq!(server.asked().len(), 60, "{provider}");
        assert!(server.most_at_once() <= 8, "{provider}: {}", server.most_at_once());
    }
}

#[tokio::test]
async fn persistent_rejections_are_reported_as_a_rate_limit() {
    let server = Server::start([too_many().with("retry-after", "0")]).await;
    let failure = ask(&model("openai", &server.url(), policy(4))).await.unwrap_err();
    assert_eq!((failure.kind, failure.tries), (FailureKind::RateLimit, 4));
    assert_eq!(failure.retry_after, Some(Duration::ZERO));
}

#[tokio::test]
async fn an_excessive_retry_after_fails_at_once() {
    let server = Server::start([too_many().with("retry-after", "86400"), Answer::json(200, &document("openai"))]).await;
    let model = model("openai", &server.url(), policy(4));
    let failure = ask(&model).await.unwrap_err();
    assert_eq!((failure.tries, failure.retry_after), (1, Some(Duration::from_secs(86400))));
    ask(&model).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrency_does_not_exceed_the_policy() {
    let server = Server::start([Answer::json(200, &document("openai"))]).await;
    let providers = providers(Policy { concurrency: 3, stream: false, ..policy(1) });
    let mut callers = JoinSet::new();
    for _ in 0..40 {
        let model = open(&providers, "openai", &server.url());
        callers.spawn(async move { ask(&model).await.map(|_| ()) });
    }
    while let Some(done) = callers.join_next().await {
        done.unwrap().unwrap();
    }
    assert!(server.most_at_once() <= 3, "{}", server.most_at_once());
    assert_eq!(server.asked().len(), 40);
}

#[tokio::test]
async fn dropping_a_request_cancels_it_and_admits_the_next() {
    let server = Server::start([Answer::silence(), Answer::json(200, &document("openai"))]).await;
    let model = model("openai", &server.url(), Policy { concurrency: 1, ..policy(1) });
    let asking = Arc::clone(&model);
    let request = tokio::spawn(async move { asking.respond(&asks("Go.")).await });
    while server.asked().is_empty() {
        tokio::task::yield_now().await;
    }
    assert!(model.silent_for().is_some());
    request.abort();
    assert!(request.await.unwrap_err().is_cancelled());
    check("openai", &ask(&model).await.unwrap());
    while server.under_way() > 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(model.silent_for(), None);
}

#[tokio::test]
async fn a_failed_attempt_is_reported_before_the_answer() {
    let server = Server::start([too_many().with("retry-after", "0"), Answer::silence()]).await;
    let model = model("openai", &server.url(), policy(3));
    let request = asks("Go.");
    tokio::select! {
        _ = model.respond(&request) => panic!("there is no answer"),
        () = model.steps_ready() => {}
    }
    let steps = model.take_steps();
    assert!(matches!(&steps[..], [model::Step::Retry { attempt: 1, status: Some(429), .. }]), "{steps:?}");
}
