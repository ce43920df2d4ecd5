//! Tests of streamed answers.

use super::super::settings::Parser;
use super::super::stream::{Framing, Reader, StreamError};
use super::bot::raw;
use super::*;

fn events(data: &[&str]) -> String {
    data.iter().map(|data| format!("data: {data}\n\n")).collect()
}

/// Returns recorded streams, each with its content type and text. All of them say `Hé y`, call `get` with `{"x":1}`,
/// and report 3 and 4 tokens.
fn streams() -> Vec<(&'static str, &'static str, String)> {
    let openai = events(&[
        r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}"#,
        r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"t","type":"function","function":{"name":"get","arguments":""}}]}}]}"#,
        r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"x\""}}]}}]}"#,
        r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":":1}"}}]}}]}"#,
        r#"{"choices":[{"delta":{"content":"Hé"}}]}"#,
        r#"{"choices":[{"delta":{"content":" y"}}]}"#,
        r#"{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":4}}"#,
        "[DONE]",
    ]);
    let anthropic = [
        ("message_start", r#"{"type":"message_start","message":{"usage":{"input_tokens":3,"output_tokens":1}}}"#),
        ("ping", r#"{"type":"ping"}"#),
        (
            "content_block_start",
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","name":"get","input":{}}}"#,
        ),
        (
            "content_block_delta",
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"x\":"}}"#,
        ),
        (
            "content_block_delta",
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"1}"}}"#,
        ),
        ("content_block_stop", r#"{"type":"content_block_stop","index":0}"#),
        (
            "content_block_start",
            r#"{"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}"#,
        ),
        (
            "content_block_delta",
            r#"{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"Hé"}}"#,
        ),
        (
            "content_block_delta",
            r#"{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":" y"}}"#,
        ),
        ("message_delta", r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":4}}"#),
        ("message_stop", r#"{"type":"message_stop"}"#),
    ];
    let anthropic = anthropic.map(|(name, data)| format!("event: {name}\ndata: {data}\n\n")).concat();
    let ui = events(&[
        r#"{"type":"start","messageId":"m"}"#,
        r#"{"type":"start-step"}"#,
        r#"{"type":"tool-input-start","toolCallId":"t","toolName":"get"}"#,
        r#"{"type":"tool-input-delta","toolCallId":"t","inputTextDelta":"{\"x\":1"}"#,
        r#"{"type":"tool-input-available","toolCallId":"t","toolName":"get","input":{"x":1}}"#,
        r#"{"type":"text-start","id":"0"}"#,
        r#"{"type":"text-delta","id":"0","delta":"Hé"}"#,
        r#"{"type":"text-delta","id":"0","delta":" y"}"#,
        r#"{"type":"text-end","id":"0"}"#,
        r#"{"type":"finish-step"}"#,
        r#"{"type":"finish","messageMetadata":{"usage":{"inputTokens":3,"outputTokens":4}}}"#,
        "[DONE]",
    ]);
    let data = [
        r#"f:{"messageId":"m"}"#,
        r#"b:{"toolCallId":"t","toolName":"get"}"#,
        r#"c:{"toolCallId":"t","argsTextDelta":"{\"x\""}"#,
        r#"9:{"toolCallId":"t","toolName":"get","args":{"x":1}}"#,
        r#"0:"Hé""#,
        r#"0:" y""#,
        r#"e:{"finishReason":"stop","usage":{"promptTokens":3,"completionTokens":4},"isContinued":false}"#,
        r#"d:{"finishReason":"stop","usage":{"promptTokens":3,"completionTokens":4}}"#,
    ];
    let data = data.map(|line| format!("{line}\n")).concat();
    let responses = events(&[
        r#"{"type":"response.created","response":{"id":"r"}}"#,
        r#"{"type":"response.output_item.done","item":{"type":"function_call","call_id":"t","name":"get","arguments":"{\"x\":1}"}}"#,
        r#"{"type":"response.output_text.delta","delta":"Hé"}"#,
        r#"{"type":"response.output_text.delta","delta":" y"}"#,
        r#"{"type":"response.output_item.done","item":{"type":"message","content":[{"type":"output_text","text":"Hé y"}]}}"#,
        r#"{"type":"response.completed","response":{"output":[],"usage":{"input_tokens":3,"output_tokens":4}}}"#,
    ]);
    let lines = [
        r#"{"message":{"content":"","tool_calls":[{"function":{"name":"get","arguments":{"x":1}}}]},"done":false}"#,
        r#"{"message":{"content":"Hé"},"done":false}"#,
        r#"{"message":{"content":" y"},"done":false}"#,
        r#"{"message":{"content":""},"done":true,"prompt_eval_count":3,"eval_count":4}"#,
    ];
    let lines = lines.map(|line| format!("{line}\n")).concat();
    vec![
        ("openai", "text/event-stream", openai),
        ("anthropic", "text/event-stream; charset=utf-8", anthropic),
        ("ui", "text/event-stream", ui),
        ("data", "text/plain; charset=utf-8", data),
        ("responses", "text/event-stream", responses),
        ("lines", "application/x-ndjson", lines),
    ]
}

fn is_whole(name: &str, played: &TestRun) {
    assert_eq!(played.endings, [Ending::Finished], "{name}");
    assert_eq!((played.answer(), played.tokens()), (Some("Hé y"), Some(7)), "{name}");
    let calls = &played.turn.trace().calls;
    assert_eq!((calls.len(), &calls[0].call.input), (1, &json!({"x": 1})), "{name}");
    assert_eq!((calls[0].call.name.as_str(), played.turn.trace().turn_count()), ("get", 1), "{name}");
    assert!(played.turn.first_token().is_some(), "{name}");
}

#[tokio::test]
async fn every_stream_format_is_read_with_any_chunking() {
    for (name, kind, text) in streams() {
        for size in [1, 7, text.len()] {
            let sent = text.clone();
            let bot = Bot::open(move |_| {
                let pieces: Vec<&[u8]> = sent.as_bytes().chunks(size).collect();
                reply(200, &[("content-type", kind)], &pieces)
            })
            .await;
            is_whole(name, &run(&json!({"url": bot.url("/")}), &["go"]).await);
        }
    }
}

#[test]
fn stream_truncation_is_detected_at_any_byte() {
    for (name, kind, text) in streams() {
        let framing = match kind {
            "text/plain; charset=utf-8" => Framing::Open,
            "application/x-ndjson" => Framing::Lines,
            _ => Framing::Events,
        };
        for index in 0..text.len() {
            let mut reader = Reader::new(framing, Parser::Usual);
            let bytes = &text.as_bytes()[..index];
            if let Err(trouble) = reader.take(bytes) {
                panic!("{name}, {index}: {trouble:?}");
            }
            match reader.finish() {
                // A single letter does not identify the form yet.
                Ok(read) if read.plain.is_some() => assert!(index < 3, "{name}, {index}"),
                // The end marker follows an answer that is already complete.
                Ok(read) if read.answer.has_text() => {
                    assert_eq!(read.answer.text().as_deref(), Some("Hé y"), "{name}, {index}");
                    assert!(!read.answer.count.is_empty() && index + 20 > text.len(), "{name}, {index}");
                }
                Ok(read) => assert!(!read.answer.has_calls(), "{name}, {index}"),
                Err((trouble, _)) => assert_eq!(trouble, StreamError::Cut, "{name}, {index}"),
            }
        }
    }
}

#[tokio::test]
async fn a_stream_truncated_at_any_byte_is_a_failure() {
    for (name, kind, text) in streams() {
        let head = format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\n");
        let cut = |index: usize| {
            let text = text.as_bytes();
            [format!("{head}content-length: {}\r\n\r\n", text.len()).as_bytes(), &text[..index]].concat()
        };
        let cuts: Vec<usize> = (0..text.len()).step_by(17).chain(text.len() - 8..text.len()).collect();
        let url = raw(cuts.iter().map(|at| cut(*at)).collect()).await;
        for at in cuts {
            let played = run(&json!({"url": url}), &["go"]).await;
            match played.endings.as_slice() {
                // The end marker has arrived, but not the end of its line.
                [Ending::Finished] => is_whole(name, &played),
                [Ending::GaveUp { reason }] => assert!(reason.starts_with("the answer was cut off: "), "{reason}"),
                other => panic!("{name} cut after {at}: {other:?}"),
            }
        }
    }
}

#[tokio::test]
async fn a_connection_that_closes_early_does_not_make_a_stream_complete() {
    for (name, kind, text) in streams().into_iter().filter(|(_, kind, _)| kind.starts_with("text/event-stream")) {
        let head = format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\nconnection: close\r\n\r\n");
        let ends: Vec<usize> = text.match_indices("\n\n").map(|(offset, _)| offset + 2).collect();
        let cuts: Vec<usize> =
            ends.iter().flat_map(|end| [end - 3, *end]).filter(|at| text.is_char_boundary(*at)).collect();
        let answers = cuts.iter().map(|at| format!("{head}{}", &text[..*at]).into_bytes()).collect();
        let url = raw(answers).await;
        for at in cuts {
            let played = run(&json!({"url": url}), &["go"]).await;
            match played.endings.as_slice() {
                [Ending::Finished] => is_whole(name, &played),
                [Ending::GaveUp { .. }] => assert!(at < text.len(), "{name}"),
                other => panic!("{name} cut after {at}: {other:?}"),
            }
        }
    }
}

#[tokio::test]
async fn text_before_a_stream_broke_is_kept() {
    for (kind, text, expected) in [
        (
            "text/event-stream",
            "data: {\"choices\":[{\"delta\":{\"content\":\"Hel\"}}]}\n\ndata: {\"error\":{\"message\":\"overloaded\",\"code\":503}}\n\n",
            "the stream reports an error: overloaded",
        ),
        (
            "text/event-stream",
            "data: {\"type\":\"text-delta\",\"delta\":\"Hel\"}\n\ndata: {\"type\":\"error\",\"errorText\":\"no tool\"}\n\n",
            "the stream reports an error: no tool",
        ),
        ("text/event-stream", "data: Hel\n\nevent: error\ndata: boom\n\n", "the stream reports an error: boom"),
        ("text/plain", "0:\"Hel\"\n3:\"out of money\"\n", "the stream reports an error: out of money"),
        (
            "text/event-stream",
            "data: {\"choices\":[{\"delta\":{\"content\":\"Hel\"}}]}\n\n",
            "the stream was cut off: it ended without its end marker",
        ),
        (
            "text/event-stream",
            "data: {\"choices\":[{\"delta\":{\"content\":\"Hel\"}}]}\n\ndata: {nonsense}\n\ndata: [DONE]\n\n",
            "the answer is unreadable: a piece of the stream is not valid JSON: {nonsense}",
        ),
    ] {
        let bot = Bot::open(move |_| reply(200, &[("content-type", kind)], &[text.as_bytes()])).await;
        let mut played = run(&json!({"url": bot.url("/")}), &["go"]).await;
        assert_eq!(reason(&played), expected);
        assert_eq!((played.turn.trace().turns[0].text.as_str(), played.answer()), ("Hel", None), "{expected}");
        let notice = notices(&mut played).remove(0);
        assert!(notice.starts_with("sent:\nPOST http://127.0.0.1") && notice.contains("Hel"), "{notice}");
    }
    let bot = Bot::open(|_| reply(200, &[("content-type", "text/event-stream")], &[b": hello\n\n"])).await;
    assert_eq!(reason(&run(&json!({"url": bot.url("/")}), &["go"]).await), "the stream ended without an answer");
}

#[tokio::test]
async fn streams_of_json_objects_without_a_known_place_for_the_text_break_the_trial() {
    let unusual = "the answer is JSON without a text in one of the usual places; set `response_parser` to the place of \
                   the text, or to `$` for the whole document: {\"reply\":\"hello\"}";
    let mistake = |played: &TestRun| match played.endings.last() {
        Some(Ending::InvalidTest { reason }) => reason.clone(),
        other => panic!("{other:?}"),
    };
    for (kind, text) in [
        ("application/x-ndjson", "{\"reply\":\"hello\"}\n{\"run\":1}\n"),
        ("text/event-stream", "data: {\"reply\":\"hello\"}\n\ndata: [DONE]\n\n"),
        ("text/plain", "data: {\"reply\":\"hello\"}\n\n"),
    ] {
        let bot = Bot::open(move |_| reply(200, &[("content-type", kind)], &[text.as_bytes()])).await;
        let played = run(&json!({"url": bot.url("/")}), &["go"]).await;
        assert_eq!(mistake(&played), unusual, "{kind}");
        let played = run(&json!({"url": bot.url("/"), "responseParser": "$.answer"}), &["go"]).await;
        let nothing = "the answer is unreadable: `response_parser`, `$.answer`, finds nothing in it";
        assert_eq!(mistake(&played), nothing, "{kind}");
    }
    let known = "data: {\"type\":\"start\"}\n\ndata: {\"type\":\"finish\"}\n\n";
    let bot = Bot::open(move |_| reply(200, &[("content-type", "text/event-stream")], &[known.as_bytes()])).await;
    assert_eq!(reason(&run(&json!({"url": bot.url("/")}), &["go"]).await), "the stream ended without an answer");
}

#[tokio::test]
async fn text_and_streams_in_unknown_formats_are_read() {
    for (kind, text, answer) in [
        ("text/plain", "Hello\nyou", "Hello\nyou"),
        ("text/event-stream", "data: Hello\n\ndata:  you\n\ndata: [DONE]\n\n", "Hello you"),
        ("text/event-stream", "data: {\"token\":\"Hel\"}\n\ndata: {\"token\":\"lo\"}\n\n", "Hello"),
        ("text/event-stream", "event: token\ndata: {\"text\":\"Hello\"}\n\nevent: end\ndata: {\"run\":1}\n\n", "Hello"),
        ("text/plain", "data: {\"text\":\"Hello\"}\n\ndata: [DONE]\n\n", "Hello"),
        ("text/plain", "0:\"Hel\"\n0:\"lo\"\n", "Hello"),
        ("text/plain", "{\"text\": \"Hello\"}", "Hello"),
        ("", "Hello", "Hello"),
    ] {
        let bot = Bot::open(move |_| reply(200, &[("content-type", kind)], &[text.as_bytes()])).await;
        assert_eq!(run(&json!({"url": bot.url("/")}), &["go"]).await.answer(), Some(answer), "{text}");
    }
}

#[tokio::test]
async fn a_parser_is_applied_to_every_piece_of_a_stream() {
    let text = "data: {\"d\":{\"t\":\"Hel\"}}\n\ndata: {\"x\":1}\n\ndata: {\"d\":{\"t\":\"lo\"},\"usage\":{\"input\":1,\"output\":2}}\n\n";
    let bot = Bot::open(move |_| reply(200, &[("content-type", "text/event-stream")], &[text.as_bytes()])).await;
    let path = run(&json!({"url": bot.url("/"), "responseParser": "$.d.t"}), &["go"]).await;
    assert_eq!((path.answer(), path.tokens()), (Some("Hello"), Some(3)));
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("project.config.ts");
    std::fs::write(&file, "export default { parser: (all) => `${all.length}: ${all.map(one => one.d?.t).join('-')}` }")
        .unwrap();
    let keys = json!({"url": bot.url("/"), "responseParser": format!("{}#parser", file.display())});
    let config = Some(configured_at(dir.path(), &keys).into());
    let function = AgentHarness { config, ..AgentHarness::for_case(case("a", &["go"])) }.play(&Http).await.unwrap();
    assert_eq!(function.answer(), Some("3: Hel--lo"));
}

#[test]
fn no_stream_makes_the_reader_panic() {
    let seeds: Vec<Vec<u8>> = streams().into_iter().map(|(_, _, text)| text.into_bytes()).collect();
    for framing in [Framing::Open, Framing::Lines, Framing::Events] {
        testkit::fuzz(&seeds, |bytes| {
            let mut reader = Reader::new(framing, Parser::Usual);
            let is_read = bytes.chunks(7).all(|chunk| reader.take(chunk).is_ok());
            if is_read {
                drop(reader.finish());
            } else {
                drop(reader.so_far());
            }
        });
    }
}
