//! Valid responses.

use serde_json::{Value, json};
use trialrun_llm::{
    Credentials, FailureKind, Opened, Policy, Prices, Providers, ResponseSchema, StopReason, StructuredReplyError,
    structured_reply,
};

use crate::client::{ALL, CANARY, ask, asks, model, policy};
use crate::server::{Answer, Server, gzip};
use crate::streams::{check, document, stream};

#[tokio::test]
async fn every_provider_streams() {
    for (provider, path) in ALL {
        let (text, kind) = stream(provider);
        let server = Server::start([Answer::of(200, kind, text)]).await;
        let reply = ask(&model(provider, &server.url(), policy(1))).await.unwrap();
        check(provider, &reply);
        let asked = &server.asked()[0];
        assert_eq!(asked.uri, path, "{provider}");
        if provider != "google" {
            assert_eq!((&asked.body["stream"], &asked.body["model"]), (&json!(true), &json!("m1")), "{provider}");
        }
        let requests_usage = !["anthropic", "openai-responses", "google", "ollama", "mistral"].contains(&provider);
        assert_eq!(asked.body.get("stream_options").is_some(), requests_usage, "{provider}");
        let signed = match provider {
            "anthropic" => "x-api-key",
            "google" => "x-goog-api-key",
            _ => "authorization",
        };
        assert!(asked.header(signed).is_some_and(|value| value.ends_with(CANARY)), "{provider}");
        assert_eq!(asked.header("anthropic-version").is_some(), provider == "anthropic");
        assert!(asked.header("user-agent").is_some_and(|agent| agent.starts_with("trialrun/")));
    }
}

#[tokio::test]
async fn every_provider_answers_without_streaming() {
    for (provider, _) in ALL {
        let server = Server::start([Answer::json(200, &document(provider))]).await;
        let whole = Policy { stream: false, ..policy(1) };
        check(provider, &ask(&model(provider, &server.url(), whole)).await.unwrap());
        assert_ne!(server.asked()[0].body["stream"], json!(true), "{provider}");
    }
}

#[tokio::test]
async fn an_answer_is_read_according_to_its_content_type() {
    for (provider, _) in ALL {
        let (text, kind) = stream(provider);
        let server = Server::start([Answer::json(200, &document(provider)), Answer::of(200, kind, text)]).await;
        check(provider, &ask(&model(provider, &server.url(), policy(1))).await.unwrap());
        let whole = Policy { stream: false, ..policy(1) };
        check(provider, &ask(&model(provider, &server.url(), whole)).await.unwrap());
    }
}

#[tokio::test]
async fn responses_can_be_chunked_and_compressed() {
    for (provider, _) in ALL {
        let (text, kind) = stream(provider);
        let document = document(provider).to_string();
        let zipped =
            |kind: &str, text: &str| Answer::of(200, kind, gzip(text.as_bytes())).with("content-encoding", "gzip");
        for answer in [
            Answer::of(200, kind, text.clone()).in_pieces(1),
            Answer::of(200, kind, text.replace('\n', "\r\n")).in_pieces(3),
            zipped(kind, &text).in_pieces(7),
            zipped("application/json", &document),
        ] {
            let server = Server::start([answer]).await;
            check(provider, &ask(&model(provider, &server.url(), policy(1))).await.unwrap());
            assert!(server.asked()[0].header("accept-encoding").is_some_and(|accepted| accepted.contains("gzip")));
        }
    }
}

#[tokio::test]
async fn a_connection_is_reused_for_consecutive_requests() {
    for (provider, _) in ALL {
        let (text, kind) = stream(provider);
        let server = Server::start([Answer::of(200, kind, text)]).await;
        let model = model(provider, &server.url(), policy(1));
        for _ in 0..5 {
            ask(&model).await.unwrap();
        }
        assert_eq!((server.asked().len(), server.connections()), (5, 1), "{provider}");
    }
}

#[tokio::test]
async fn tool_call_ids_are_unique_in_a_trial_whatever_the_server_sends() {
    let mut document = document("compatible");
    let call = document["choices"][0]["message"]["tool_calls"][0].clone();
    let mut unnamed = call.clone();
    unnamed["id"] = Value::Null;
    document["choices"][0]["message"]["tool_calls"] = json!([call, unnamed]);
    document["id"] = Value::Null;
    let server = Server::start([Answer::json(200, &document)]).await;
    let model = model("compatible", &server.url(), policy(1));
    let mut ids = std::collections::BTreeSet::new();
    for _ in 0..2 {
        let reply = ask(&model).await.unwrap();
        assert!(ids.insert(reply.message_id));
        for block in reply.content {
            if let trialrun_llm::Block::ToolUse { id, .. } = block {
                assert!(ids.insert(id.clone()), "{id}");
            }
        }
    }
    assert_eq!(ids.len(), 6);
}

#[tokio::test]
async fn the_cost_of_an_answer_is_computed_from_user_prices_or_unknown() {
    let server = Server::start([Answer::json(200, &document("anthropic"))]).await;
    let unknown = ask(&model("anthropic", &server.url(), policy(1))).await.unwrap();
    assert_eq!(unknown.cost_usd, None);
    let list = json!({"anthropic:m1": {"input": 1, "output": 4, "cache_read": 0.5, "cache_write": 2}});
    let node = model::Node::from_json(&list, &model::Source::new("prices.json", ""));
    let prices = Prices::from_node(&node).unwrap();
    let providers = Providers::new(Credentials::default(), prices, policy(1));
    let opened = providers.open("anthropic:m1", Some(&server.url()), &|_| Err(Vec::new())).unwrap();
    let Opened::Model(model) = opened else { panic!("a script") };
    let cost = ask(&model).await.unwrap().cost_usd.unwrap();
    assert!((cost - (12.0 + 20.0 + 6.0 + 100.0) / 1e6).abs() < 1e-12, "{cost}");
}

#[tokio::test]
async fn unreported_usage_is_unknown() {
    for (provider, _) in ALL {
        let mut document = document(provider);
        let fields = document.as_object_mut().unwrap();
        for key in ["usage", "eval_count", "usageMetadata"] {
            fields.remove(key);
        }
        let server = Server::start([Answer::json(200, &document)]).await;
        let reply = ask(&model(provider, &server.url(), policy(1))).await.unwrap();
        assert_eq!((reply.tokens, reply.cost_usd), (None, None), "{provider}");
    }
}

#[tokio::test]
async fn a_schema_is_requested_with_the_feature_of_each_provider() {
    let schema = json!({
        "type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"], "additionalProperties": false,
    });
    let mut request = asks("Judge.");
    request.tools.clear();
    request.response_schema = Some(ResponseSchema { name: "verdict".into(), schema: schema.clone() });
    let valid = |value: &Value| if value["ok"].is_boolean() { Ok(()) } else { Err("no `ok`".to_owned()) };
    let verdict = r#"{"ok": true}"#;
    for (provider, place, expected, document) in [
        (
            "openai-responses",
            "/text/format/strict",
            json!(true),
            json!({"output": [{"type": "message", "content": [{"type": "output_text", "text": verdict}]}]}),
        ),
        (
            "compatible",
            "/response_format/json_schema/schema",
            schema.clone(),
            json!({"choices": [{"message": {"content": verdict}, "finish_reason": "stop"}]}),
        ),
        (
            "anthropic",
            "/tool_choice/name",
            json!("verdict"),
            json!({"content": [{"type": "tool_use", "id": "t", "name": "verdict", "input": {"ok": true}}],
                "stop_reason": "tool_use"}),
        ),
        ("ollama", "/format", schema.clone(), json!({"message": {"content": verdict}, "done": true})),
        (
            "google",
            "/generationConfig/responseJsonSchema",
            schema.clone(),
            json!({"candidates": [{"content": {"parts": [{"text": verdict}]}, "finishReason": "STOP"}]}),
        ),
    ] {
        let server = Server::start([Answer::json(200, &document)]).await;
        let done = structured_reply(model(provider, &server.url(), policy(1)).as_ref(), &request, &valid).await;
        assert_eq!(done.value, Ok(json!({"ok": true})), "{provider}");
        assert_eq!(server.asked()[0].body.pointer(place), Some(&expected), "{provider}");
    }
}

#[tokio::test]
async fn a_server_without_schema_support_gets_the_schema_in_the_prompt() {
    let refusal =
        json!({"error": {"message": "response_format json_schema is not supported", "type": "invalid_request_error"}});
    let answer =
        json!({"choices": [{"message": {"content": "```json\n{\"ok\": false}\n```"}, "finish_reason": "stop"}]});
    let server = Server::start([Answer::json(400, &refusal), Answer::json(200, &answer)]).await;
    let mut request = asks("Judge.");
    request.response_schema = Some(ResponseSchema { name: "verdict".into(), schema: json!({"type": "object"}) });
    let model = model("compatible", &server.url(), policy(3));
    let done = structured_reply(model.as_ref(), &request, &|_| Ok(())).await;
    assert_eq!(done.value, Ok(json!({"ok": false})));
    let asked = server.asked();
    assert_eq!(asked.len(), 2);
    assert!(asked[1].body.get("response_format").is_none());
    server.then(Answer::json(401, &json!({"error": {"message": "no"}})));
    let done = structured_reply(model.as_ref(), &request, &|_| Ok(())).await;
    assert!(matches!(done.value, Err(StructuredReplyError::Provider(_))));
}

#[tokio::test]
async fn refusals_and_token_limits_are_not_errors() {
    for (provider, document, expected) in [
        ("anthropic", json!({"content": [], "stop_reason": "refusal"}), StopReason::Refusal),
        ("anthropic", json!({"content": [], "stop_reason": "max_tokens"}), StopReason::MaxTokens),
        (
            "openai",
            json!({"choices": [{"message": {"content": null}, "finish_reason": "content_filter"}]}),
            StopReason::Refusal,
        ),
        ("ollama", json!({"message": {"content": "x"}, "done": true, "done_reason": "length"}), StopReason::MaxTokens),
        (
            "openai-responses",
            json!({"output": [], "status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}),
            StopReason::MaxTokens,
        ),
    ] {
        let server = Server::start([Answer::json(200, &document)]).await;
        let reply = ask(&model(provider, &server.url(), policy(1))).await.unwrap();
        assert_eq!(reply.stop_reason, expected, "{provider}");
    }
}

#[tokio::test]
async fn vendor_errors_are_classified_and_only_some_are_retried() {
    let openai =
        |code: &str, message: &str| json!({"error": {"message": message, "type": "x", "param": null, "code": code}});
    let anthropic = |kind: &str, message: &str| json!({"type": "error", "error": {"type": kind, "message": message}});
    let google =
        |code: u16, status: &str, message: &str| json!({"error": {"code": code, "message": message, "status": status}});
    for (provider, status, body, expected, tries) in [
        ("openai-responses", 401, openai("invalid_api_key", "Incorrect"), FailureKind::Auth, 1),
        ("openai-responses", 404, openai("model_not_found", "no m1"), FailureKind::NotFound, 1),
        ("openai-responses", 429, openai("rate_limit_exceeded", "slow"), FailureKind::RateLimit, 3),
        ("openai-responses", 429, openai("insufficient_quota", "pay"), FailureKind::Billing, 1),
        ("openai", 400, openai("context_length_exceeded", "long"), FailureKind::ContextTooLong, 1),
        ("openai", 400, openai("content_filter", "bad"), FailureKind::ContentFilter, 1),
        ("openai", 500, openai("server_error", "oops"), FailureKind::Server, 3),
        ("anthropic", 401, anthropic("authentication_error", "invalid x-api-key"), FailureKind::Auth, 1),
        ("anthropic", 404, anthropic("not_found_error", "model: m1"), FailureKind::NotFound, 1),
        (
            "anthropic",
            400,
            anthropic("invalid_request_error", "prompt is too long: 9 > 8"),
            FailureKind::ContextTooLong,
            1,
        ),
        ("anthropic", 400, anthropic("invalid_request_error", "messages: empty"), FailureKind::BadRequest, 1),
        ("anthropic", 529, anthropic("overloaded_error", "Overloaded"), FailureKind::Overloaded, 3),
        (
            "google",
            429,
            google(429, "RESOURCE_EXHAUSTED", "You exceeded your current quota"),
            FailureKind::RateLimit,
            3,
        ),
        ("google", 400, google(400, "INVALID_ARGUMENT", "API key not valid."), FailureKind::Auth, 1),
        ("google", 503, google(503, "UNAVAILABLE", "The model is overloaded."), FailureKind::Overloaded, 3),
        ("ollama", 404, json!({"error": "model 'm1' not found"}), FailureKind::NotFound, 1),
        ("ollama", 500, json!({"error": "llama runner terminated"}), FailureKind::Server, 3),
        ("compatible", 503, json!({"detail": "loading"}), FailureKind::Overloaded, 3),
        ("compatible", 422, json!({"detail": [{"msg": "field required"}]}), FailureKind::BadRequest, 1),
    ] {
        let server = Server::start([Answer::json(status, &body)]).await;
        let failure = ask(&model(provider, &server.url(), policy(3))).await.unwrap_err();
        assert_eq!((failure.kind, failure.tries), (expected, tries), "{provider} {status} {body}");
        assert_eq!((failure.status, server.asked().len()), (Some(status), tries as usize));
        assert!(failure.to_string().contains(&server.url()) && failure.to_string().contains("for m1"), "{failure}");
    }
}
