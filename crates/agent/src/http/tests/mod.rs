//! Tests of the agent with real servers on loopback.

mod bot;
mod faults;
mod settings;
mod streams;

use model::{Case, Ending, Source, Step, UserMessage};
use serde_json::{Map, Value, json};

use self::bot::{Bot, json_reply, reply};
use super::*;
use crate::tests::harness::{AgentHarness, TestRun, case, new_run};

/// Returns a configuration with these keys in addition to `type`, for a project in `directory`.
fn configured_at(directory: &Path, keys: &Value) -> Configured {
    let mut map = Map::from_iter([("type".to_owned(), json!("http"))]);
    map.extend(keys.as_object().unwrap().clone());
    let mut node = Node::from_json(&Value::Object(map), &Source::new("trialrun.yaml", ""));
    tag_functions(&mut node);
    Configured { name: "bot".into(), node, directory: directory.to_owned(), is_filled: true, is_of_suite: false }
}

/// Tags strings that refer to a module as functions.
fn tag_functions(node: &mut Node) {
    if let model::NodeKind::Map(entries) = &mut node.kind {
        entries.iter_mut().for_each(|(_, value)| tag_functions(value));
    }
    if node.as_str().is_some_and(|text| text.contains(".ts#")) {
        node.tag = Some("!function".into());
    }
}

fn harness(case: Case, keys: &Value) -> AgentHarness {
    AgentHarness { config: Some(configured_at(Path::new("."), keys).into()), ..AgentHarness::for_case(case) }
}

/// Runs a conversation with the bot configured by `keys`.
async fn run(keys: &Value, messages: &[&str]) -> TestRun {
    harness(case("a", messages), keys).play(&Http).await.unwrap()
}

/// Returns the reason for the agent's failure.
fn reason(played: &TestRun) -> &str {
    match played.endings.last() {
        Some(Ending::GaveUp { reason }) => reason,
        other => panic!("{other:?}"),
    }
}

fn notices(played: &mut TestRun) -> Vec<String> {
    let notice = |step| if let Step::Notice { text, .. } = step { Some(text) } else { None };
    played.steps().into_iter().filter_map(notice).collect()
}

#[tokio::test]
async fn a_message_and_an_id_are_sent_and_the_first_text_is_the_answer() {
    let bot = Bot::open(|seen| json_reply(&json!({"message": format!("you said {}", seen.json()["message"])}))).await;
    let url = bot.url("/chat");
    let argument = AgentHarness { argument: Some(url.clone()), ..AgentHarness::for_case(case("a", &["one", "two"])) };
    let first = argument.play(&Http).await.unwrap();
    let text = "you said \"two\"";
    let whole = json!({"output": text, "raw": {"message": text}});
    assert_eq!((first.answer(), first.turn.trace().result.as_deref()), (Some(text), Some(&whole)));
    assert_eq!(first.turn.trace().turn_count(), 2);
    let seen = bot.seen();
    let id = |index: usize| seen[index].json()["conversation_id"].as_str().unwrap().to_owned();
    assert_eq!(seen[0].json(), json!({"message": "one", "conversation_id": id(0)}));
    assert_eq!((seen[0].method.as_str(), seen[0].path.as_str()), ("POST", "/chat"));
    assert_eq!(seen[0].headers["content-type"], "application/json");
    assert_eq!(first.turn.trace().session_id, Some(id(0)));
    assert_eq!(id(0), id(1), "a conversation keeps its id");
    let slashes = url.strip_prefix("http:").unwrap().to_owned();
    let again = AgentHarness { argument: Some(slashes), ..AgentHarness::for_case(case("a", &["one"])) };
    let again = again.play(&Http).await.unwrap();
    assert_ne!(again.turn.trace().session_id, first.turn.trace().session_id, "each trial has its own id");
}

#[tokio::test]
async fn the_history_is_sent_in_the_messages_format() {
    let bot =
        Bot::open(|seen| json_reply(&json!({"choices": [{"message": {"content": seen.number.to_string()}}]}))).await;
    let keys = json!({"url": bot.url("/"), "requestFormat": "messages", "stream": true});
    assert_eq!(run(&keys, &["a", "b"]).await.answer(), Some("1"));
    let message = |role: &str, content: &str| json!({"role": role, "content": content});
    let messages = [message("user", "a"), message("assistant", "0"), message("user", "b")];
    assert_eq!(bot.seen()[1].json(), json!({"messages": messages, "stream": true}));
    assert_eq!(bot.seen()[1].headers["accept"].to_str().unwrap().split(',').next(), Some("text/event-stream"));
}

#[tokio::test]
async fn answers_are_read_in_every_form() {
    let blocks = json!([{"type": "text", "text": "a"}, {"type": "tool_use", "id": "t", "name": "get", "input": {"x": 1}},
        {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": "r"}]}, {"type": "text", "text": "b"}]);
    let openai = json!({"id": "t", "type": "function", "function": {"name": "get", "arguments": "{\"x\":1}"}});
    let none: &[(&str, &str, bool)] = &[];
    for (body, answer, calls) in [
        (json!({"text": "a", "content": "b"}), Some("a"), none),
        (json!({"message": {"role": "assistant", "content": "a"}, "response": "b"}), Some("b"), none),
        (json!({"message": {"role": "assistant", "content": "a"}}), Some("a"), none),
        (json!("a"), Some("a"), none),
        (json!({"output": "a"}), Some("a"), none),
        (json!(7), Some("7"), none),
        (
            json!({"text": "a", "tool_calls": [{"name": "get", "arguments": {"x": 1}, "result": "r"}]}),
            Some("a"),
            &[("get", "r", false)],
        ),
        (
            json!({"choices": [{"message": {"content": null, "tool_calls": [openai]}}]}),
            None,
            &[("get", "(none)", false)],
        ),
        (json!({"content": blocks}), Some("ab"), &[("get", "r", false)]),
        (json!({"output_text": "a"}), Some("a"), none),
        (
            json!({"output": [{"type": "reasoning"}, {"type": "function_call", "call_id": "t", "name": "get", "arguments": "{\"x\":1}"},
                {"type": "function_call_output", "call_id": "t", "output": "r"},
                {"type": "message", "content": [{"type": "output_text", "text": "a"}]}]}),
            Some("a"),
            &[("get", "r", false)],
        ),
    ] {
        let sent = body.clone();
        let bot = Bot::open(move |_| json_reply(&sent)).await;
        let played = run(&json!({"url": bot.url("/")}), &["go"]).await;
        assert_eq!((played.answer(), played.calls().as_slice()), (answer, calls), "{body}");
        assert_eq!(played.turn.trace().turn_count(), 1, "{body}");
        for call in &played.turn.trace().calls {
            assert_eq!(call.call.input, json!({"x": 1}), "{body}");
        }
        assert_eq!(played.endings, [Ending::Finished]);
    }
}

#[tokio::test]
async fn an_answer_reports_its_calls_in_a_list_or_in_a_form_with_a_place_for_them() {
    for (body, reports) in [
        (json!({"message": "a"}), false),
        (json!("a"), false),
        (json!({"message": "a", "tool_calls": []}), true),
        (json!({"message": {"role": "assistant", "content": "a"}}), true),
        (json!({"choices": [{"message": {"content": "a"}}]}), true),
        (json!({"content": [{"type": "text", "text": "a"}]}), true),
        (json!({"output": [{"type": "message", "content": [{"type": "output_text", "text": "a"}]}]}), true),
    ] {
        let sent = body.clone();
        let bot = Bot::open(move |_| json_reply(&sent)).await;
        let played = run(&json!({"url": bot.url("/")}), &["go"]).await;
        assert_eq!(played.turn.trace().has_unreported_calls(), !reports, "{body}");
    }
}

#[tokio::test]
async fn halves_of_a_character_in_neighbouring_pieces_are_joined() {
    let piece = |text: &str| format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n");
    let stream = [piece("a\\ud83d"), piece("\\ude00b\\ud83d"), "data: [DONE]\n\n".to_owned()].concat();
    let bot = Bot::open(move |_| reply(200, &[("content-type", "text/event-stream")], &[stream.as_bytes()])).await;
    assert_eq!(run(&json!({"url": bot.url("/")}), &["go"]).await.answer(), Some("a😀b\u{fffd}"));
}

#[tokio::test]
async fn text_that_is_not_json_is_the_answer_and_usage_is_counted() {
    let bot = Bot::open(|_| reply(200, &[("content-type", "text/plain")], &[b"Hello, ", b"you {there}"])).await;
    assert_eq!(run(&json!({"url": bot.url("/")}), &["go"]).await.answer(), Some("Hello, you {there}"));
    let bot =
        Bot::open(|_| json_reply(&json!({"text": "a", "usage": {"input": 3, "output": 4}, "mood": "good"}))).await;
    let played = run(&json!({"url": bot.url("/")}), &["go", "on"]).await;
    assert_eq!(played.tokens(), Some(14));
    let result = played.turn.trace().result.clone().unwrap();
    assert_eq!((&result["output"], &result["raw"]["mood"]), (&json!("a"), &json!("good")));
}

#[tokio::test]
async fn a_parser_selects_the_text_and_tool_calls_are_still_read() {
    let body = json!({"data": {"parts": [{"t": "a"}, {"t": "b"}], "n": {"m": 1}}, "tool_calls": [{"name": "get"}]});
    let bot = Bot::open(move |_| json_reply(&body)).await;
    let with = |parser: &str| json!({"url": bot.url("/"), "responseParser": parser});
    let texts = run(&with("$.data.parts[*].t"), &["go"]).await;
    assert_eq!((texts.answer(), texts.calls().len()), (Some("ab"), 1));
    let map = run(&with("data.n"), &["go"]).await;
    assert_eq!(
        (map.answer(), &map.turn.trace().result.as_ref().unwrap()["output"]),
        (Some("{\"m\":1}"), &json!({"m": 1}))
    );
    let empty = Bot::open(|_| json_reply(&json!({"text": " ", "data": {"reply": ""}}))).await;
    for config in [json!({"url": empty.url("/")}), json!({"url": empty.url("/"), "responseParser": "data.reply"})] {
        let ending = run(&config, &["go"]).await.endings.remove(0);
        assert!(
            matches!(&ending, Ending::GaveUp { reason } if reason.starts_with("the answer is empty: ")),
            "{ending:?}"
        );
    }
    let nothing = run(&with("$.data.reply"), &["go"]).await;
    let reason = "the answer is unreadable: `response_parser`, `$.data.reply`, finds nothing in it";
    assert_eq!(nothing.endings, [Ending::InvalidTest { reason: reason.to_owned() }]);
}

#[tokio::test]
async fn templates_can_build_the_body_from_all_data_of_the_message() {
    let bot = Bot::open(|_| json_reply(&json!({"text": "a"}))).await;
    let keys = json!({
        "url": bot.url("/"),
        "headers": {"Content-Type": "application/vnd.bot+json"},
        "body_template": {"q": "{{ message }}", "all": "{{ messages }}", "who": "{{ persona.role }}", "t": "{{ tools }}",
            "s": "{{ script }}", "v": "{{ vars.n }}", "id": "{{ conversation_id }}", "i": "{{ input }}", "fixed": [1, true]},
    });
    let mut case = case("a", &[]);
    case.messages = vec![UserMessage {
        input: Some(json!({"k": 1})),
        script: Some("p".into()),
        tools: vec![json!("get")],
        persona: Map::from_iter([("role".to_owned(), json!("angry"))]),
        vars: Map::from_iter([("n".to_owned(), json!(3))]),
        ..UserMessage::text("say \"{{ hi }}\"")
    }];
    let harness = harness(case, &keys);
    assert_eq!(harness.check(&Http), [""; 0]);
    let played = harness.play(&Http).await.unwrap();
    let text = "say \"{{ hi }}\"";
    let id = played.turn.trace().session_id.clone().unwrap();
    let expected = json!({"q": text, "all": [{"role": "user", "content": text}], "who": "angry", "t": ["get"], "s": "p",
        "v": 3, "id": id, "i": {"k": 1}, "fixed": [1, true]});
    assert_eq!(bot.seen()[0].json(), expected);
    assert_eq!(bot.seen()[0].headers["content-type"], "application/vnd.bot+json");
}

#[tokio::test]
async fn functions_can_build_the_body_and_parse_the_answer() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("project.config.ts");
    let text = "import { defineConfig } from 'trialrun/config';
    import { defineConfig as another } from '@fabrik/cli';
    export default defineConfig({ agent: {
        prefix: 'Q: ',
        bodyTemplate(message: string, context: any) { return { q: this.prefix + message, n: context.messages.length, id: context.conversationId }; },
        responseParser: (data: any) => ({ text: data.deep.reply, tool_calls: data.did.map((name: string) => ({ name })) }),
        plain: (data: any) => data.deep.reply.toUpperCase(),
        broken: (data: any) => data.nothing.reply,
        nothing: () => undefined,
        number: () => 42,
        silent: () => '',
        same: another === defineConfig,
    } });";
    std::fs::write(&file, text).unwrap();
    let bot = Bot::open(|_| json_reply(&json!({"deep": {"reply": "a"}, "did": ["get"], "usage": {"input": 1}}))).await;
    let function = |name: &str| format!("{}#agent.{name}", file.display());
    let with = |body: &str, parser: &str| {
        let keys = json!({"url": bot.url("/"), "bodyTemplate": function(body), "responseParser": function(parser)});
        AgentHarness {
            config: Some(configured_at(dir.path(), &keys).into()),
            ..AgentHarness::for_case(case("a", &["hi", "ho"]))
        }
    };
    let played = with("bodyTemplate", "responseParser").play(&Http).await.unwrap();
    assert_eq!((played.answer(), played.calls().len(), played.tokens()), (Some("a"), 2, Some(2)));
    let id = played.turn.trace().session_id.clone();
    assert_eq!(bot.seen()[1].json(), json!({"q": "Q: ho", "n": 3, "id": id}));
    assert_eq!(with("bodyTemplate", "plain").play(&Http).await.unwrap().answer(), Some("A"));
    let broken = with("bodyTemplate", "broken").play(&Http).await.unwrap();
    let mistake = |played: &TestRun| match played.endings.last() {
        Some(Ending::InvalidTest { reason }) => reason.clone(),
        other => panic!("{other:?}"),
    };
    let thrown = mistake(&broken);
    assert!(thrown.contains("agent.broken`: ") && thrown.contains("project.config.ts:8:"), "{thrown}");
    assert!(thrown.contains("TypeError"), "{thrown}");
    let unmade = with("nothing", "plain").play(&Http).await.unwrap();
    assert!(mistake(&unmade).ends_with("returned nothing"));
    let silent = with("bodyTemplate", "silent").play(&Http).await.unwrap();
    assert!(matches!(&silent.endings[..], [Ending::GaveUp { reason }] if reason.starts_with("the answer is empty: ")));
    for (parser, returned) in [("number", "`42`"), ("nothing", "nothing")] {
        let reason = mistake(&with("bodyTemplate", parser).play(&Http).await.unwrap());
        assert!(reason.ends_with(&format!("returned {returned}; return the text or an object")), "{reason}");
    }

    let config = |body: &str, parser: &str| with(body, parser).config.unwrap();
    let problems = |config: &Configured| -> Vec<String> {
        Http.check_config(&config.node, &config.directory, &new_run())
            .iter()
            .map(|problem| problem.message.clone())
            .collect()
    };
    assert_eq!(problems(&config("bodyTemplate", "plain")), [""; 0]);
    assert_eq!(
        problems(&config("prefix", "none")),
        [format!("`{}` is not a function", function("prefix")), format!("`{}` is not a function", function("none")),]
    );
}

#[tokio::test]
async fn a_conversation_is_continued_by_its_id_and_tools_are_recorded() {
    let conversations = std::sync::Mutex::new(std::collections::HashMap::<String, Vec<String>>::new());
    let bot = Bot::open(move |seen| {
        let body = seen.json();
        let mut conversations = conversations.lock().unwrap();
        let all = conversations.entry(body["conversation_id"].as_str().unwrap().to_owned()).or_default();
        all.push(body["message"].as_str().unwrap().to_owned());
        json_reply(&json!({"message": all.join(", "), "tool_calls": [{"name": "recall", "arguments": {"n": all.len()}, "result": all}]}))
    })
    .await;
    let keys = json!({"url": bot.url("/")});
    let first = run(&keys, &["a", "b"]).await;
    assert_eq!((first.answer(), first.calls()[1]), (Some("a, b"), ("recall", "[\"a\",\"b\"]", false)));
    assert_eq!(run(&keys, &["c"]).await.answer(), Some("c"));
}

#[tokio::test]
async fn conversations_share_connections_and_run_concurrently() {
    let bot = Bot::open(|_| json_reply(&json!({"text": "a"}))).await;
    let keys = json!({"url": bot.url("/")});
    for _ in 0..10 {
        run(&keys, &["one", "two"]).await;
    }
    // A connection is free again a moment after its answer, so a request may open another one.
    let (requests, connections) = (bot.seen().len(), bot.connections());
    assert!(requests == 20 && connections < 10, "{requests} requests over {connections} connections");

    // It answers only after all requests have arrived.
    const MANY: usize = 200;
    let all_here = std::sync::Arc::new(tokio::sync::Barrier::new(MANY));
    let bot = Bot::open_later(move |_| {
        let all_here = std::sync::Arc::clone(&all_here);
        async move {
            all_here.wait().await;
            json_reply(&json!({"text": "a"}))
        }
    })
    .await;
    let keys = json!({"url": bot.url("/")});
    let local = tokio::task::LocalSet::new();
    let all = (0..MANY).map(|_| {
        let keys = keys.clone();
        local.spawn_local(async move { run(&keys, &["go"]).await.endings })
    });
    let all: Vec<_> = all.collect();
    local
        .run_until(async {
            for one in all {
                assert_eq!(one.await.unwrap(), [Ending::Finished]);
            }
        })
        .await;
}

#[tokio::test]
async fn the_spans_of_a_bot_show_what_it_did() {
    let state = new_run();
    let address = format!("{}/v1/traces", state.receivers.on_any_port().endpoint(None));
    let bot = Bot::open_later(move |seen| {
        let (address, traceparent) = (address.clone(), seen.headers["traceparent"].to_str().unwrap().to_owned());
        async move {
            let attribute = |(key, value): (&str, &str)| json!({"key": key, "value": {"stringValue": value}});
            let span = |id: u8, attributes: &[(&str, &str)]| {
                let attributes: Vec<Value> = attributes.iter().copied().map(attribute).collect();
                // Others are parts of the first one, which ends in the year 2100.
                let (start, end) = (1_000 + u64::from(id), 4_102_444_800_000_000_000 - u64::from(id));
                json!({"traceId": traceparent.split('-').nth(1), "spanId": format!("{id:016x}"), "name": "work",
                    "startTimeUnixNano": start, "endTimeUnixNano": end, "attributes": attributes})
            };
            let tool = [
                ("gen_ai.tool.name", "find"),
                ("gen_ai.tool.call.arguments", "{}"),
                ("gen_ai.tool.call.result", "sent"),
            ];
            let model = [
                ("gen_ai.request.model", "m"),
                ("gen_ai.response.finish_reasons", "tool_calls"),
                ("gen_ai.usage.input_tokens", "4"),
                ("gen_ai.usage.output_tokens", "2"),
            ];
            let spans = [span(1, &[]), span(2, &model), span(3, &tool)];
            let body = json!({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]});
            let client = crate::http_client::HttpClients::default();
            let client = client.client(false, &AgentHarness::for_case(case("a", &["go"])).host).unwrap();
            let request = client.post(address).header("content-type", "application/json").body(body.to_string());
            assert_eq!(request.send().await.unwrap().status(), 200);
            json_reply(&json!({"message": "It was sent."}))
        }
    })
    .await;
    let harness =
        AgentHarness { state, ..harness(case("a", &["one", "two"]), &json!({"url": bot.url("/"), "traces": "otlp"})) };
    let played = harness.play(&Http).await.unwrap();
    let trace = played.turn.trace();
    assert_eq!((played.calls().as_slice(), played.answer()), (&[("find", "sent", false); 2][..], Some("It was sent.")));
    assert_eq!((trace.turn_count(), played.tokens(), trace.missing_calls()), (2, Some(12), None));
    assert_eq!((trace.turns[0].text.as_str(), trace.model.as_deref()), ("It was sent.", Some("m")));
    let parents: Vec<_> = bot.seen().iter().map(|seen| seen.headers["traceparent"].clone()).collect();
    assert_ne!(parents[0], parents[1]);
}
