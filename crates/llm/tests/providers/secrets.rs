//! A key is sent only to its own vendor and appears nowhere else.

use serde_json::json;
use trialrun_llm::{Credentials, FailureKind, Opened, Policy, Prices, Providers};

use crate::client::{ALL, CANARY, ask, credentials, model, open, policy, providers};
use crate::server::{Answer, End, Server};
use crate::streams::{document, stream};

#[tokio::test]
async fn no_error_shows_the_key_even_if_the_provider_repeats_it() {
    let escaped: String = CANARY.chars().map(|letter| format!("\\u{:04x}", u32::from(letter))).collect();
    let padding = "x ".repeat(290);
    for (provider, _) in ALL {
        let (text, kind) = stream(provider);
        let first = text.find('\n').unwrap();
        for answer in [
            Answer::json(401, &json!({"error": {"message": format!("Incorrect key: {CANARY}."), "type": CANARY}})),
            Answer::of(401, "application/json", format!(r#"{{"error": {{"message": "Key {escaped}"}}}}"#)),
            Answer::of(500, "text/plain", format!("{padding}Authorization: Bearer {CANARY} {padding}")),
            Answer::of(403, "text/html", format!("<p>{CANARY}</p>")),
            Answer::of(200, "application/json", format!("{{oops {CANARY}")),
            Answer::of(200, "text/event-stream", format!("data: {{oops {CANARY}\n\n")),
            Answer::json(200, &json!({"error": {"message": CANARY, "code": CANARY}})),
            Answer::of(200, kind, format!("{}\n{CANARY}", &text[..first])).ending(End::Cut),
            Answer::of(302, "text/plain", "").with("location", format!("http://127.0.0.1:1/?key={CANARY}")),
            Answer::of(302, "text/plain", "").with("location", format!("http://127.0.0.1:1/{CANARY}")),
            Answer::json(429, &json!({"error": CANARY})).with("retry-after", CANARY),
        ] {
            let server = Server::start([answer]).await;
            let providers = providers(policy(2));
            let model = open(&providers, provider, &format!("{}/?api-key={CANARY}", server.url()));
            let failure = ask(&model).await.unwrap_err();
            let all = format!("{failure} {failure:?} {:?} {providers:?} {:?}", model.take_steps(), credentials());
            assert!(!all.contains(CANARY) && !all.contains("canary"), "{provider}: {all}");
        }
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed_with_the_key() {
    let elsewhere = Server::start([Answer::json(200, &document("anthropic"))]).await;
    let to = format!("{}/v1/messages", elsewhere.url());
    for status in [301, 302, 307, 308] {
        let server = Server::start([Answer::of(status, "text/plain", "").with("location", to.clone())]).await;
        let failure = ask(&model("anthropic", &server.url(), policy(3))).await.unwrap_err();
        assert_eq!((failure.kind, failure.tries), (FailureKind::BadRequest, 1));
        assert!(failure.message.contains(&to), "{failure}");
    }
    assert!(elsewhere.asked().is_empty());
}

#[tokio::test]
async fn a_vendor_key_is_not_sent_to_a_compatible_server() {
    let server = Server::start([Answer::json(200, &document("compatible"))]).await;
    let keys = Credentials::default().with("OPENAI_API_KEY", CANARY).with("ANTHROPIC_API_KEY", CANARY);
    let providers = Providers::new(keys, Prices::default(), policy(1));
    ask(&open(&providers, "compatible", &server.url())).await.unwrap();
    let asked = server.asked();
    assert!(asked[0].headers.iter().all(|(_, value)| !value.contains(CANARY)), "{:?}", asked[0].headers);
}

#[tokio::test]
async fn a_base_url_from_the_command_line_overrides_the_environment() {
    let [first, second] = [
        Server::start([Answer::json(200, &document("openai"))]).await,
        Server::start([Answer::json(200, &document("openai"))]).await,
    ];
    let known = credentials().with("OPENAI_BASE_URL", format!("{}/proxy/v1/", first.url()));
    let providers = Providers::new(known, Prices::default(), policy(1));
    for url in [None, Some(second.url())] {
        let opened = providers.open("openai:m1", url.as_deref(), &|_| Err(Vec::new())).unwrap();
        let Opened::Model(model) = opened else { panic!("a script") };
        ask(&model).await.unwrap();
    }
    assert_eq!(first.asked()[0].uri, "/proxy/v1/chat/completions");
    assert_eq!(second.asked()[0].uri, "/v1/chat/completions");
}

#[tokio::test]
async fn a_proxy_is_used_for_other_hosts_but_never_for_loopback() {
    let proxy = Server::start([Answer::json(200, &document("openai"))]).await;
    let here = Server::start([Answer::json(200, &document("openai"))]).await;
    let known = credentials().with("HTTP_PROXY", proxy.url());
    let providers = Providers::new(known, Prices::default(), Policy { stream: false, ..policy(1) });
    ask(&open(&providers, "openai", "http://provider.invalid/v1")).await.unwrap();
    ask(&open(&providers, "openai", &here.url())).await.unwrap();
    assert_eq!(
        proxy.asked().iter().map(|asked| asked.uri.clone()).collect::<Vec<_>>(),
        ["http://provider.invalid/v1/chat/completions"]
    );
    assert_eq!(here.asked().len(), 1);
}
