//! Interrupted responses.

use std::time::Duration;

use serde_json::{Value, json};
use trialrun_llm::{FailureKind, Policy, Timeouts};

use crate::client::{ALL, FORMATS, ask, model, open, policy, providers};
use crate::server::{Answer, End, Server, gzip};
use crate::streams::{check, document, stream};

/// Cuts a stream at every position that is a multiple of `step`. Each result must be a provider failure or a complete reply, never a partial reply
/// or a hang.
async fn cut_everywhere(end: End, step: usize) {
    for provider in FORMATS {
        let (text, kind) = stream(provider);
        let server = Server::start([Answer::of(200, kind, "")]).await;
        let providers = providers(policy(1));
        let mut completed = 0;
        for index in (0..text.len()).step_by(step) {
            let model = open(&providers, provider, &server.url());
            server.then(Answer::of(200, kind, text.as_bytes()[..index].to_vec()).ending(end));
            match ask(&model).await {
                Ok(reply) => {
                    completed += 1;
                    // In this format, the usage follows the end of the reply.
                    if reply.tokens.is_some() {
                        check(provider, &reply);
                    }
                    assert_eq!(reply.text(), crate::streams::SAID, "{provider} {index}");
                    assert!(reply.calls_tools(), "{provider} {index}");
                }
                Err(failure) => {
                    assert_eq!(failure.kind, FailureKind::Cut, "{provider} {index}: {failure}");
                    assert!(failure.kind.is_transient());
                }
            }
        }
        let chat = ["openai", "openai-chat", "openrouter", "groq", "mistral", "compatible"].contains(&provider);
        let most = if chat && end == End::Whole { text.len() / 2 } else { 16 };
        assert!(completed <= most, "{provider}: {completed} of {}", text.len());
    }
}

#[tokio::test]
async fn a_stream_cut_at_any_byte_is_a_failure_or_a_complete_reply() {
    cut_everywhere(End::Cut, 3).await;
}

#[tokio::test]
async fn a_stream_that_ends_cleanly_at_any_byte_is_handled() {
    cut_everywhere(End::Whole, 5).await;
}

#[tokio::test]
async fn a_document_cut_at_any_byte_is_detected() {
    for provider in FORMATS {
        let text = document(provider).to_string().into_bytes();
        let zipped = gzip(&text);
        let server = Server::start([Answer::json(200, &json!({}))]).await;
        let providers = providers(Policy { stream: false, ..policy(1) });
        for (bytes, is_zipped) in [(&text, false), (&zipped, true)] {
            for index in (0..bytes.len()).step_by(11) {
                for end in [End::Cut, End::Whole] {
                    let model = open(&providers, provider, &server.url());
                    let mut answer = Answer::of(200, "application/json", bytes[..index].to_vec()).ending(end);
                    if is_zipped {
                        answer = answer.with("content-encoding", "gzip");
                    }
                    server.then(answer);
                    match ask(&model).await {
                        // The content may be complete even if its checksum is missing.
                        Ok(reply) => check(provider, &reply),
                        Err(failure) => {
                            assert!(
                                matches!(failure.kind, FailureKind::Cut | FailureKind::Unreadable),
                                "{provider} {index}: {failure}"
                            );
                        }
                    }
                }
            }
        }
    }
}

#[tokio::test]
async fn transient_failures_are_recorded_and_retried() {
    for (provider, _) in ALL {
        let (text, kind) = stream(provider);
        let good = Answer::of(200, kind, text.clone());
        let half = Answer::of(200, kind, text.as_bytes()[..text.len() / 2].to_vec()).ending(End::Cut);
        let busy = Answer::json(529, &json!({"error": {"type": "overloaded_error", "message": "busy"}}));
        let page = Answer::of(502, "text/html", "<html>Bad Gateway</html>");
        let server = Server::start([page, half, busy, good]).await;
        let model = model(provider, &server.url(), policy(5));
        check(provider, &ask(&model).await.unwrap());
        let retries: Vec<(u64, Option<u16>, bool)> = model
            .take_steps()
            .into_iter()
            .map(|step| match step {
                model::Step::Retry { attempt, status, error, .. } => (attempt, status, error.contains("POST http")),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(retries, [(1, Some(502), true), (2, None, true), (3, Some(529), true)], "{provider}");
        assert!(model.take_steps().is_empty());
    }
}

#[tokio::test]
async fn an_error_in_the_middle_of_a_stream_is_an_error() {
    for (provider, error) in [
        ("anthropic", json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}})),
        ("openai-responses", json!({"type": "error", "code": "rate_limit_exceeded", "message": "slow", "param": null})),
        (
            "openai-responses",
            json!({"type": "response.failed", "response": {"status": "failed",
            "error": {"code": "server_error", "message": "oops"}}}),
        ),
        ("openai", json!({"error": {"message": "upstream", "code": 502}})),
        ("ollama", json!({"error": "out of memory"})),
    ] {
        let (text, kind) = stream(provider);
        let first = text.find(if provider == "ollama" { "\n" } else { "\n\n" }).unwrap();
        let event = if provider == "ollama" { format!("\n{error}\n") } else { format!("\n\ndata: {error}\n\n") };
        let server = Server::start([Answer::of(200, kind, format!("{}{event}", &text[..first]))]).await;
        let failure = ask(&model(provider, &server.url(), policy(2))).await.unwrap_err();
        assert!(
            matches!(failure.kind, FailureKind::Overloaded | FailureKind::RateLimit | FailureKind::Server),
            "{failure}"
        );
        assert_eq!((failure.status, failure.tries), (None, 2), "{provider}");
    }
}

#[tokio::test]
async fn garbage_is_reported_as_such() {
    let odd = [
        "",
        "{",
        "null",
        "[]",
        "42",
        "\"text\"",
        "{}",
        "<html><body>Welcome</body></html>",
        "\u{feff}{}",
        "data: {\n\n",
        "data: null\n\n",
        "data: []\n\ndata: 1\n\n",
        "data: {\"type\": 5}\n\n",
        "event: error\n\n",
        r#"{"choices": [null]}"#,
        r#"{"choices": [{"message": {"content": 5}}]}"#,
        r#"{"content": 7}"#,
        r#"{"output": {}}"#,
        r#"{"message": [], "done": true}"#,
        r#"{"error": null}"#,
    ];
    for provider in FORMATS {
        let server = Server::start([Answer::json(200, &Value::Null)]).await;
        for stream in [true, false] {
            let model = model(provider, &server.url(), Policy { stream, ..policy(1) });
            for text in odd {
                for kind in ["application/json", "text/event-stream", "application/x-ndjson", "text/html"] {
                    server.then(Answer::of(200, kind, text));
                    let failure = ask(&model).await.unwrap_err();
                    let expected = match text.starts_with('<') {
                        true => failure.kind == FailureKind::WebPage,
                        false => {
                            matches!(failure.kind, FailureKind::Unreadable | FailureKind::Cut | FailureKind::Server)
                        }
                    };
                    assert!(expected, "{provider} {kind} {text}: {failure}");
                }
            }
            let bytes: Vec<u8> = (0..=255).collect();
            server.then(Answer::of(200, "application/json", bytes));
            assert_eq!(ask(&model).await.unwrap_err().kind, FailureKind::Unreadable);
        }
    }
}

#[tokio::test]
async fn a_damaged_stream_never_panics() {
    for provider in FORMATS {
        let (text, kind) = stream(provider);
        let server = Server::start([Answer::of(200, kind, "")]).await;
        let model = model(provider, &server.url(), policy(1));
        for index in (0..text.len()).step_by(37) {
            for damage in [b'"', b'}', b'9', b'\n', 0xff] {
                let mut bytes = text.clone().into_bytes();
                bytes[index] = damage;
                server.then(Answer::of(200, kind, bytes));
                let _ = ask(&model).await;
            }
        }
    }
}

#[tokio::test]
async fn a_missing_answer_times_out() {
    let soon = Duration::from_millis(40);
    let long = Duration::from_secs(60);
    for (provider, _) in ALL {
        let (text, kind) = stream(provider);
        let begun = Answer::of(200, kind, text.as_bytes()[..40].to_vec()).ending(End::Hang);
        let head = Answer::of(200, kind, "").ending(End::Hang);
        let first_byte = Timeouts { connect: soon, first_byte: soon, idle: long, total: long };
        let idle = Timeouts { connect: long, first_byte: long, idle: soon, total: long };
        let total = Timeouts { connect: long, first_byte: long, idle: long, total: soon };
        for (answer, timeouts, words) in [
            (Answer::silence(), first_byte, "did not start"),
            (Answer::silence(), total, "did not start"),
            (head, first_byte, "did not start"),
            (begun.clone(), idle, "made no progress"),
            (begun, total, "whole response"),
        ] {
            let server = Server::start([answer]).await;
            let failure = ask(&model(provider, &server.url(), Policy { timeouts, ..policy(2) })).await.unwrap_err();
            let trouble = if words == "did not start" { FailureKind::Silent } else { FailureKind::TimedOut };
            assert_eq!((failure.kind, failure.tries), (trouble, 2), "{provider} {failure}");
            assert!(failure.message.contains(words), "{provider} {failure}");
        }
    }
}

#[tokio::test]
async fn an_unreachable_server_is_distinguished_from_a_failing_one() {
    let address = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap()
    };
    for (provider, _) in ALL {
        let failure = ask(&model(provider, &format!("http://{address}"), policy(2))).await.unwrap_err();
        assert_eq!((failure.kind, failure.tries, failure.status), (FailureKind::Unreachable, 2, None), "{failure}");
        assert!(failure.message.to_lowercase().contains("refused"), "{failure}");
    }
}

#[tokio::test]
async fn an_excessively_large_answer_is_rejected() {
    let small = Policy { largest_answer: 100_000, ..policy(3) };
    let huge = format!("data: {}\n\n", json!({"choices": [{"delta": {"content": "x".repeat(300_000)}}]}));
    let bomb = gzip(&vec![b' '; 300_000]);
    for answer in [
        Answer::events(huge.clone()),
        Answer::events("data: x".to_owned() + &"y".repeat(300_000)).in_pieces(1000),
        Answer::of(200, "application/json", huge),
        Answer::of(200, "application/json", bomb).with("content-encoding", "gzip"),
    ] {
        let server = Server::start([answer]).await;
        let failure = ask(&model("compatible", &server.url(), small.clone())).await.unwrap_err();
        assert_eq!((failure.kind, failure.tries), (FailureKind::TooLarge, 1), "{failure}");
    }
    let long = "ü".repeat(1_000_000);
    let whole = json!({"choices": [{"message": {"content": long}, "finish_reason": "stop"}]});
    let server = Server::start([Answer::json(200, &whole), Answer::of(500, "text/plain", "z".repeat(3_000_000))]).await;
    let model = model("compatible", &server.url(), policy(1));
    assert_eq!(ask(&model).await.unwrap().text().len(), 2_000_000);
    assert!(ask(&model).await.unwrap_err().to_string().len() < 2000);
}
