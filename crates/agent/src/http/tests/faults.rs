//! Tests with agents that misbehave, and with addresses that no agent listens on.

use std::sync::Arc;

use tokio::sync::Notify;

use super::bot::raw;
use super::*;

#[tokio::test]
async fn an_error_status_fails_the_agent_and_records_request_and_response() {
    for (status, headers, body, answered) in [
        (
            500,
            vec![],
            "{\"error\": \"the database\n is down\"}",
            "answered 500 Internal Server Error: {\"error\": \"the database is down\"}",
        ),
        (429, vec![("retry-after", "1")], "slow down", "answered 429 Too Many Requests: slow down"),
        (409, vec![], "", "answered 409 Conflict"),
    ] {
        let bot = Bot::open(move |_| reply(status, &headers, &[body.as_bytes()])).await;
        let mut played = run(&json!({"url": bot.url("/chat?key=abc")}), &["go", "on"]).await;
        let expected = format!("POST {} {answered}", bot.url("/chat"));
        assert_eq!(reason(&played), expected);
        assert_eq!((played.endings.len(), bot.seen().len()), (1, 1), "it is not retried");
        let steps = played.steps();
        let text = steps.iter().find_map(|step| if let Step::Notice { text, .. } = step { Some(text) } else { None });
        let text = text.unwrap();
        assert!(text.contains("\"message\":\"go\"") && text.contains(&format!("received:\n{status}")), "{text}");
        assert!(matches!(steps.last(), Some(Step::Finished { is_error: true, .. })));
    }
}

#[tokio::test]
async fn an_error_of_the_server_can_break_the_trial() {
    for (status, breaks) in [(500, true), (503, true), (429, true), (409, false)] {
        let bot = Bot::open(move |_| reply(status, &[], &[b"no"])).await;
        let played = run(&json!({"url": bot.url("/chat"), "serverErrors": "broken"}), &["go"]).await;
        assert_eq!(matches!(played.endings[..], [Ending::Aborted { .. }]), breaks, "{status}: {:?}", played.endings);
    }
}

#[tokio::test]
async fn a_request_that_the_agent_rejects_as_malformed_is_a_mistake_in_the_test() {
    for status in [405, 415, 422] {
        let bot = Bot::open(move |_| reply(status, &[], &[b"{\"detail\": \"field required: query\"}"])).await;
        let played = run(&json!({"url": bot.url("/chat")}), &["go", "on"]).await;
        let [Ending::InvalidTest { reason }] = &played.endings[..] else { panic!("{:?}", played.endings) };
        assert!(reason.contains("field required: query") && reason.contains("`body_template`"), "{reason}");
    }
}

#[tokio::test]
async fn a_wrong_key_or_address_is_a_mistake_in_the_configuration() {
    for (status, setting) in [(401, "`headers`"), (403, "`headers`"), (404, "`url`")] {
        let bot = Bot::open(move |_| reply(status, &[], &[b"no"])).await;
        let played = run(&json!({"url": bot.url("/chat")}), &["go", "on"]).await;
        let [Ending::InvalidTest { reason }] = &played.endings[..] else { panic!("{:?}", played.endings) };
        assert!(reason.contains(&format!("answered {status}")) && reason.contains(setting), "{reason}");
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed_and_its_target_is_reported() {
    let bot = Bot::open(|_| reply(302, &[("location", "/other?token=secret")], &[])).await;
    let played = run(&json!({"url": bot.url("/chat")}), &["go"]).await;
    let to = format!("answered 302 Found, which redirects to {};", bot.url("/other"));
    assert!(reason(&played).contains(&to), "{}", reason(&played));
    assert!(!reason(&played).contains("secret") && bot.seen().len() == 1);
}

#[tokio::test]
async fn answers_that_cannot_be_read_are_the_agents_failure() {
    let ok = |head: &str, body: &[u8]| [format!("HTTP/1.1 200 OK\r\n{head}\r\n").as_bytes(), body].concat();
    let json = "content-type: application/json\r\n";
    for (answer, expected) in [
        (ok("content-length: 0\r\n", b""), "the answer is empty"),
        (ok(&format!("{json}content-length: 5\r\n"), b"{\"a\":"), "the answer is unreadable: it is not valid JSON"),
        (ok(&format!("{json}content-length: 2\r\n"), b"\xff\xfe"), "the answer is not UTF-8, at byte 0"),
        (ok("content-type: text/event-stream\r\n", b"data: \xff\xfe\n\n"), "the answer is unreadable: it is not UTF-8"),
        (ok("content-type: text/plain\r\n", b"a\xff"), "the answer is unreadable: it is not UTF-8"),
        (ok(&format!("{json}content-length: 99\r\n"), b"{\"message\": \"I am s"), "the answer was cut off: "),
        (ok(&format!("{json}content-encoding: gzip\r\ncontent-length: 4\r\n"), b"none"), "the answer cannot be read: "),
        (b"\x16\x03\x01 this is no HTTP\r\n\r\n".to_vec(), "POST http"),
        (Vec::new(), "POST http"),
        (ok(json, b"{\"error\": {\"message\": \"no luck\"}}"), "the answer is an error: no luck"),
    ] {
        let mut played = run(&json!({"url": raw(vec![answer.clone()]).await}), &["go"]).await;
        let notices = notices(&mut played).join("\n");
        assert!(notices.contains("\"message\":\"go\"") && notices.contains("received:"), "{expected}: {notices}");
        let has_answer = !expected.starts_with("POST");
        assert_eq!(notices.contains("received:\n200 OK"), has_answer, "{expected}: {notices}");
        let is_nothing = notices.ends_with("received: nothing") || notices.ends_with("received:\n(not HTTP)");
        assert!(has_answer || is_nothing, "{expected}: {notices}");
        assert!(reason(&played).starts_with(expected), "{} instead of {expected}", reason(&played));
        match expected {
            "POST http" if answer.is_empty() => assert!(reason(&played).contains("closed before there was an answer")),
            "POST http" => assert!(reason(&played).contains("the response is not HTTP"), "{}", reason(&played)),
            _ => {}
        }
    }
}

#[tokio::test]
async fn a_web_page_is_an_answer_only_if_it_is_requested() {
    let html = [("content-type", "text/html; charset=utf-8")];
    let page = Bot::open(move |_| reply(200, &html, &[b"<h1>Sign in</h1>"])).await;
    let ended = run(&json!({"url": page.url("/")}), &["go"]).await.endings;
    assert!(matches!(&ended[..], [Ending::InvalidTest { reason }] if reason.contains("web page")), "{ended:?}");
    let wanted = json!({"url": page.url("/"), "headers": {"Accept": "text/html"}});
    assert_eq!(run(&wanted, &["go"]).await.answer(), Some("<h1>Sign in</h1>"));
    let declared = Bot::open(move |_| reply(200, &html, &[b"{\"text\": \"a\"}"])).await;
    assert_eq!(
        run(&json!({"url": declared.url("/")}), &["go"]).await.answer(),
        Some("a"),
        "some servers say so of JSON"
    );
}

#[tokio::test]
async fn a_document_in_an_unknown_form_is_an_answer_only_if_it_is_requested() {
    let bot = Bot::open(|_| json_reply(&json!({"status": "ok"}))).await;
    let ended = run(&json!({"url": bot.url("/")}), &["go"]).await.endings;
    assert!(
        matches!(&ended[..], [Ending::InvalidTest { reason }] if reason.contains("`response_parser`")),
        "{ended:?}"
    );
    let whole = run(&json!({"url": bot.url("/"), "responseParser": "$"}), &["go"]).await;
    assert_eq!(whole.answer(), Some("{\"status\":\"ok\"}"));
    assert_eq!(whole.turn.trace().result.as_ref().unwrap()["output"], json!({"status": "ok"}));
}

#[tokio::test]
async fn the_size_of_an_answer_is_limited() {
    let text = format!("{{\"text\": \"{}\"}}", "x".repeat(1000));
    let length = text.len();
    let bot = Bot::open(move |_| reply(200, &[("content-type", "application/json")], &[text.as_bytes()])).await;
    let with = |most: usize| json!({"url": bot.url("/"), "maxResponseBytes": most});
    assert_eq!(run(&with(length), &["go"]).await.endings, [Ending::Finished]);
    let large = run(&with(length - 1), &["go"]).await;
    assert!(reason(&large).starts_with("the answer is larger than 1011 bytes"), "{}", reason(&large));
    let endless = Bot::open(|_| {
        let piece = vec![b'x'; 1 << 20];
        reply(200, &[("content-type", "text/plain")], &[piece.as_slice(); 12])
    });
    assert!(reason(&run(&json!({"url": endless.await.url("/")}), &["go"]).await).contains("10485760 bytes"));
}

#[tokio::test]
async fn compressed_responses_are_decompressed_and_limited_by_decompressed_size() {
    let text = br#"{"text": "packed"}"#;
    let bot = Bot::open(|seen| {
        assert!(seen.headers["accept-encoding"].to_str().unwrap().contains("gzip"));
        reply(200, &[("content-type", "application/json"), ("content-encoding", "gzip")], &[&gzip(text)])
    })
    .await;
    assert_eq!(run(&json!({"url": bot.url("/")}), &["go"]).await.answer(), Some("packed"));
}

/// Returns `text` as gzip with one stored block.
fn gzip(text: &[u8]) -> Vec<u8> {
    let length = u16::try_from(text.len()).unwrap();
    let check = text.iter().fold(u32::MAX, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| if sum & 1 == 1 { (sum >> 1) ^ 0xedb8_8320 } else { sum >> 1 })
    });
    let head = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255, 1];
    let lengths = [length.to_le_bytes(), (!length).to_le_bytes()].concat();
    [&head[..], &lengths, text, &(!check).to_le_bytes(), &u32::from(length).to_le_bytes()].concat()
}

#[tokio::test]
async fn an_unreachable_address_is_not_a_failure_of_the_agent() {
    let gone = raw(Vec::new()).await;
    tokio::task::yield_now().await;
    let refused = "connection refused; is the bot running?";
    for (url, retries, cause) in [
        (gone.as_str(), 1, refused),
        ("http://nowhere.invalid/chat", 0, "no connection: "),
        ("https://127.0.0.1:1/chat", 0, refused),
    ] {
        let mut played = run(&json!({"url": url, "retry": retries}), &["go", "on"]).await;
        match played.endings.as_slice() {
            [Ending::Unreachable { reason }] => {
                assert!(reason.starts_with(&format!("POST {url}: {cause}")), "{reason}");
            }
            other => panic!("{url}: {other:?}"),
        }
        let steps = played.steps();
        let again = steps.iter().filter(|step| matches!(step, Step::Retry { status: None, .. })).count();
        assert_eq!(again, retries, "{url}");
        let notice = steps.iter().find_map(|step| if let Step::Notice { text, .. } = step { Some(text) } else { None });
        let notice = notice.unwrap();
        assert!(
            notice.starts_with("sent: nothing, because there was no connection; the request was\nPOST "),
            "{notice}"
        );
        assert!(notice.ends_with("received: nothing"), "{notice}");
    }
}

#[tokio::test]
async fn configured_failures_are_retried() {
    let bot = Bot::open(|seen| match seen.number {
        0 | 1 => reply(503, &[("retry-after", "0")], &[b"later"]),
        _ => json_reply(&json!({"text": "a"})),
    })
    .await;
    let mut played = run(&json!({"url": bot.url("/"), "retryOn": [503, "closed"]}), &["go"]).await;
    assert_eq!(played.answer(), Some("a"));
    let statuses: Vec<_> = played
        .steps()
        .into_iter()
        .filter_map(|step| if let Step::Retry { attempt, status, .. } = step { Some((attempt, status)) } else { None })
        .collect();
    assert_eq!(statuses, [(1, Some(503)), (2, Some(503))]);
    let fine = b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\na".to_vec();
    let url = raw(vec![Vec::new(), fine]).await;
    assert_eq!(super::run(&json!({"url": url, "retryOn": ["closed"]}), &["go"]).await.answer(), Some("a"));
}

#[tokio::test]
async fn a_slow_agent_is_abandoned_when_the_trial_must_stop() {
    let (asked, never) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (tell, wait) = (Arc::clone(&asked), Arc::clone(&never));
    let bot = Bot::open_later(move |_| {
        let wait = Arc::clone(&wait);
        tell.notify_one();
        async move {
            wait.notified().await;
            json_reply(&json!({"text": "a"}))
        }
    })
    .await;
    let harness = harness(case("a", &["go"]), &json!({"url": bot.url("/")}));
    let stop = harness.stop.clone();
    let (played, ()) = tokio::join!(harness.play(&Http), async move {
        asked.notified().await;
        stop.send_replace(true);
    });
    let mut played = played.unwrap();
    assert_eq!(played.endings, [Ending::Cancelled]);
    let notices = notices(&mut played).join("\n");
    assert!(notices.starts_with("sent:\nPOST ") && notices.ends_with("received: nothing"), "{notices}");
}

#[tokio::test]
async fn credential_headers_are_hidden_and_others_are_shown() {
    const SECRET: &str = "canary-0123456789";
    let bot = Bot::open(|seen| {
        assert_eq!(seen.headers["authorization"], format!("Bearer {SECRET}"));
        if seen.json()["message"] == "fail" {
            reply(500, &[], &[b"no"])
        } else {
            json_reply(&json!({"text": "in test"}))
        }
    })
    .await;
    let keys =
        json!({"url": bot.url("/"), "headers": {"authorization": format!("Bearer {SECRET}"), "X-Stage": "in test"}});
    for message in ["go", "fail"] {
        let mut played = run(&keys, &[message]).await;
        let events = played.describe();
        let recorded = format!("{:?}{:?}{events}", played.turn.trace(), played.endings);
        assert!(
            !recorded.contains("canary") && recorded.contains("[masked]") && recorded.contains("x-stage: in test"),
            "{recorded}"
        );
    }
}
