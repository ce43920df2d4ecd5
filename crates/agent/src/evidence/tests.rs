use std::io::{Cursor, Write};
use std::path::Path;
use std::sync::Arc;

use model::{Ending, Source, Step};
use serde_json::{Value, json};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use super::*;
use crate::conversation::Origin;

/// Reads a file of the corpus.
fn specimen(name: &str) -> Arc<Source> {
    let path = Path::new("tests/evidence").join(name);
    Source::new(name, std::fs::read_to_string(path).unwrap())
}

fn one(source: &Arc<Source>) -> (Conversation, Vec<String>) {
    let mut evidence = read(source).unwrap();
    assert_eq!(evidence.conversations.len(), 1);
    (evidence.conversations.remove(0), evidence.problems.iter().map(ToString::to_string).collect())
}

fn lines(lines: &[Value]) -> Arc<Source> {
    let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
    Source::new("session.jsonl", lines.join("\n") + "\n")
}

/// Returns the steps as lines, each with the number of its message.
fn told(conversation: &Conversation) -> Vec<String> {
    let step = |step: &Step| match step {
        Step::Text { text, parent, .. } => format!("{}{text}", parent.as_ref().map_or("", |_| "  ")),
        Step::ToolCall(call) => {
            format!(
                "{}{}({})",
                call.parent.as_ref().map_or("", |_| "  "),
                call.name,
                call.key_argument().unwrap_or_default()
            )
        }
        Step::ToolResult(result) => format!("= {}{}", result.content.trim(), if result.is_error { "!" } else { "" }),
        Step::PermissionDenied { tool, .. } => format!("denied {tool}"),
        Step::Question(question) => format!("? {} {:?}", question.question, question.answer),
        other => format!("{other:?}"),
    };
    conversation.steps.iter().map(|(of, it)| format!("{of} {}", step(it))).collect()
}

fn aborted(reason: &str) -> Ending {
    Ending::Aborted { reason: reason.to_owned() }
}

#[test]
fn a_session_of_claude_code_is_read() {
    let (read, problems) = one(&specimen("claude-session.jsonl"));
    assert_eq!(problems, [""; 0]);
    assert_eq!(read.messages, ["Write greeting.txt with a greeting.", "Check it."]);
    assert_eq!(
        told(&read),
        [
            "0 Let me look.",
            "0 Bash(cat notes.txt)",
            "0 = Greet the reader.",
            "0 Write(/home/ada/greeter/greeting.txt)",
            "0 Bash(false)",
            "0 = File created successfully at: /home/ada/greeter/greeting.txt (file state is current in your context — no need to Read it back)",
            "0 = Exit code 1!",
            "0 greeting.txt says Hello.",
            "1 Bash(grep -q Hello greeting.txt)",
            "1 = (Bash completed with no output)",
            "1 The check passes.",
        ]
    );
    assert_eq!((read.ending.clone(), read.missing_calls.is_some()), (Ending::Finished, false));
    let tokens = read.usage.tokens.unwrap();
    assert_eq!((tokens.input, tokens.cache_read, tokens.output), (510, 50, 100), "each message is counted once");
    assert!(read.usage.cost_usd.is_some());
    let begun = Origin {
        directory: Some("/home/ada/greeter".into()),
        commit: Some("40b52b6".into()),
        branch: Some("main".into()),
        is_clean: Some(true),
        begun_at: Some("2026-11-28T23:37:56.878Z".into()),
    };
    assert_eq!((read.origin, read.agent_version.as_deref()), (begun, Some("2.1.332")));
    assert_eq!(read.model.as_deref(), Some("claude-opus-5-5"));
}

#[test]
fn a_rollout_of_codex_is_read() {
    let (read, problems) = one(&specimen("codex-rollout.jsonl"));
    assert_eq!(problems, [""; 0]);
    assert_eq!(read.messages, ["Write greeting.txt with a greeting.", "Check it."]);
    assert_eq!(
        told(&read),
        [
            "0 Let me look.",
            "0 Bash(cat notes.txt)",
            "0 = Greet the reader.",
            "0 Bash(false)",
            "0 Write(/home/ada/greeter/greeting.txt)",
            "0 = add /home/ada/greeter/greeting.txt",
            "0 = !",
            "0 greeting.txt says Hello.",
            "1 Bash(grep -q Hello greeting.txt)",
            "1 = ",
            "1 The check passes.",
        ]
    );
    assert_eq!((read.ending.clone(), read.missing_calls.is_some()), (Ending::Finished, false));
    assert_eq!(read.usage.tokens.map(|tokens| (tokens.input, tokens.output)), Some((450, 100)));
    assert_eq!(read.origin.commit.as_deref(), Some("585ec5e885d5c6925b770c292ee6748e04e6b671"));
}

#[test]
fn an_export_of_opencode_is_read() {
    let (read, problems) = one(&specimen("opencode-export.json"));
    assert_eq!(problems, [""; 0]);
    assert_eq!(read.messages, ["Write greeting.txt with a greeting."]);
    assert_eq!(
        told(&read),
        [
            "0 Let me look.",
            "0 Bash(cat notes.txt)",
            "0 = Greet the reader.",
            "0 Write(/home/ada/greeter/greeting.txt)",
            "0 = Wrote file successfully.",
            "0 Bash(false)",
            "0 = (no output)!",
            "0 greeting.txt says Hello.",
        ]
    );
    assert_eq!((read.ending.clone(), read.missing_calls.is_some()), (Ending::Finished, false));
    assert_eq!(read.usage.tokens.map(|tokens| (tokens.input, tokens.output)), Some((300, 60)));
    assert_eq!(read.origin.directory.as_deref(), Some("/home/ada/greeter"));
    let text = specimen("opencode-export.json").text.replace("\"step-start\"", "\"robot\"");
    let (strange, problems) = one(&Source::new("export.json", text));
    assert!(strange.missing_calls.is_some());
    assert_eq!(problems.len(), 1);
    assert!(problems[0].ends_with(": a part of the type `robot` is not understood"), "{problems:?}");
}

/// Returns a row of a session of Claude Code.
fn row(id: &str, parent: Option<&str>, kind: &str, content: &Value) -> Value {
    json!({"type": kind, "uuid": id, "parentUuid": parent, "sessionId": "s", "timestamp": "2026-11-28T12:00:00Z",
        "message": {"id": id, "role": kind, "model": "m", "content": content, "stop_reason": "end_turn"}})
}

fn with(mut row: Value, key: &str, value: Value) -> Value {
    row[key] = value;
    row
}

fn called(id: &str, name: &str, input: &Value) -> Value {
    json!([{"type": "tool_use", "id": id, "name": name, "input": input}])
}

fn answered(id: &str, content: &str) -> Value {
    json!([{"type": "tool_result", "tool_use_id": id, "content": content}])
}

#[test]
fn only_the_branch_of_claude_code_that_was_used_last_is_read() {
    let (read, problems) = one(&lines(&[
        json!({"type": "summary", "summary": "A greeting", "leafUuid": "a2"}),
        json!({"type": "api-request-blob", "sessionId": "s", "message": {"role": "user", "content": "Greet"}}),
        row("u1", None, "user", &json!("Greet")),
        row("a1", Some("u1"), "assistant", &called("t1", "Bash", &json!({"command": "rm -r build"}))),
        row("u2", Some("u1"), "user", &json!("Never")),
        row("b1", None, "user", &json!("<command-name>/greet</command-name><command-args>Ada</command-args>")),
        with(row("m", Some("b1"), "user", &json!("The skill says …")), "isMeta", json!(true)),
        row("b2", Some("m"), "assistant", &json!([{"type": "text", "text": "Hello"}])),
    ]));
    assert_eq!((read.messages.as_slice(), told(&read)), (&["/greet Ada".to_owned()][..], vec!["0 Hello".to_owned()]));
    assert_eq!(
        problems,
        ["session.jsonl:3:1: the user went back to an earlier message; the conversation that was given up is not read"]
    );
    assert!(read.missing_calls.is_none());
}

#[test]
fn sub_agents_denials_and_questions_of_claude_code_are_read() {
    let order = json!({"prompt": "Count the files", "description": "Count"});
    let of_sub_agent = |row: Value| with(row, "isSidechain", json!(true));
    let asked = json!({"questions": [{"question": "Which?", "options": [{"label": "A"}]}]});
    let session = [
        row("u1", None, "user", &json!("Go")),
        row("a1", Some("u1"), "assistant", &called("t1", "Task", &order)),
        of_sub_agent(row("s1", None, "user", &json!("Count the files"))),
        of_sub_agent(row("s2", Some("s1"), "assistant", &called("t2", "Bash", &json!({"command": "ls"})))),
        of_sub_agent(row("s3", Some("s2"), "user", &answered("t2", "3"))),
        row("a2", Some("a1"), "user", &answered("t1", "Three")),
        row("a3", Some("a2"), "assistant", &called("t3", "Bash", &json!({"command": "rm x"}))),
        with(row("a4", Some("a3"), "user", &answered("t3", "no")), "permissionDecision", json!({"decision": "reject"})),
        row("a5", Some("a4"), "assistant", &called("t4", "AskUserQuestion", &asked)),
        row("a6", Some("a5"), "user", &answered("t4", "A")),
        row("a7", Some("a6"), "assistant", &json!([{"type": "text", "text": "Done"}])),
    ];
    let (read, problems) = one(&lines(&session));
    assert_eq!(
        told(&read),
        [
            "0 Task(Count)",
            "0   Bash(ls)",
            "0 = 3",
            "0 = Three",
            "0 Bash(rm x)",
            "0 denied Bash",
            "0 = no",
            "0 AskUserQuestion(Which?)",
            "0 = A",
            "0 ? Which? Some(\"A\")",
            "0 Done",
        ]
    );
    assert_eq!((problems.as_slice(), read.missing_calls.is_some()), (&[][..], false));
    let without: Vec<Value> = session.iter().filter(|row| row.get("isSidechain").is_none()).cloned().collect();
    let (read, problems) = one(&lines(&without));
    assert!(read.missing_calls.is_some());
    assert_eq!(problems, ["session.jsonl:2:1: the steps of a sub-agent are in a file of their own, which is not read"]);
}

#[test]
fn what_a_session_does_not_say_is_named() {
    let (read, problems) =
        one(&lines(&[row("u", None, "user", &json!("Go")), row("a", Some("u"), "robot", &json!("Go"))]));
    assert!(read.missing_calls.is_some());
    assert_eq!(problems, ["session.jsonl:2:1: rows of the type `robot` are not known"]);
    let strange = json!([{"type": "text", "text": "a"}, {"type": "robot_use", "arm": 1}]);
    let (read, problems) =
        one(&lines(&[row("u", None, "user", &json!("Go")), row("a", Some("u"), "assistant", &strange)]));
    assert!(read.missing_calls.is_some());
    assert_eq!(problems, ["session.jsonl:2:1: a block of the type `robot_use` is not understood"]);
    let item = |payload: Value| json!({"timestamp": "t", "type": "response_item", "payload": payload});
    let (read, problems) = one(&lines(&[
        json!({"timestamp": "t", "type": "event_msg", "payload": {"type": "user_message", "message": "Go"}}),
        item(json!({"type": "robot_call", "arm": 1})),
    ]));
    assert!(read.missing_calls.is_some());
    assert_eq!(problems, ["session.jsonl:2:1: an item of the type `robot_call` is not understood"]);
    assert_eq!(read.ending, aborted("the session ends before the agent has answered the last message"));
}

#[test]
fn a_session_that_is_not_over_has_no_verdict() {
    let asked = row("u1", None, "user", &json!("Go"));
    let called = row("a1", Some("u1"), "assistant", &called("t1", "Bash", &json!({"command": "ls"})));
    let ending = |rows: &[Value]| one(&lines(rows)).0.ending;
    let unanswered = aborted("the session ends before the agent has answered the last message");
    assert_eq!(ending(std::slice::from_ref(&asked)), unanswered);
    assert_eq!(ending(&[asked.clone(), called.clone()]), aborted("the session ends before a tool call has a result"));
    let stopped = row("u2", Some("a1"), "user", &json!("[Request interrupted by user for tool use]"));
    assert_eq!(ending(&[asked.clone(), called, stopped]), aborted("its user interrupted the agent"));
    let failed = with(
        row("a1", Some("u1"), "assistant", &json!([{"type": "text", "text": "API Error: 500"}])),
        "isApiErrorMessage",
        json!(true),
    );
    assert_eq!(ending(&[asked, failed]), Ending::ProviderFailed { reason: "API Error: 500".into() });
}

#[test]
fn damaged_files_are_reported_with_their_lines() {
    let problems = |text: &str| -> Vec<String> {
        read(&Source::new("x", text)).unwrap().problems.iter().map(ToString::to_string).collect()
    };
    let session = row("u1", None, "user", &json!("Go")).to_string();
    assert_eq!(
        problems(&format!("{session}\n{{oops}}\n")),
        ["x:2:2: this line is not valid JSON: key must be a string"]
    );
    assert_eq!(problems(&format!("{session}\n[1]\n")), ["x:2:1: a line must be a JSON object, not a list"]);
    let said = row("a2", Some("a1"), "assistant", &json!([{"type": "text", "text": "Done"}]));
    assert_eq!(problems(&format!("{session}\n[1]\n{said}\n")).len(), 1, "the user did not go back");
    let cut = problems(&format!("{session}\n{{\"type\": \"assist"));
    assert_eq!(cut, ["x:2:1: the last line is incomplete, and is not read"]);
    assert_eq!(problems("{\n  \"info\": {,\n"), ["x:2:12: this document cannot be read as JSON: key must be a string"]);
    assert_eq!(problems("{\n  \"a\": 1\n}\n"), ["x:1:1: this JSON document is not in a known format"]);
    assert!(read(&Source::new("x", "{\"case\": \"a\", \"output\": \"b\"}\n")).is_none(), "an answer of this program");
    assert!(read(&Source::new("x", "")).is_none());
}

#[test]
fn compressed_files_are_decompressed_up_to_a_limit() {
    let text = b"{\"type\":\"session_meta\"}\n".repeat(100);
    let packed = zstd::encode_all(&text[..], 1).unwrap();
    assert_eq!(decompressed(packed.clone(), 10_000).unwrap(), text);
    assert_eq!(decompressed(text.clone(), 1).unwrap(), text);
    assert_eq!(decompressed(packed.clone(), 100).unwrap_err().to_string(), "its content has more than 100 bytes");
    assert!(decompressed(packed[..packed.len() / 2].to_vec(), 10_000).is_err());
}

#[test]
fn mutated_files_break_nothing() {
    let seeds = testkit::seeds(Path::new("tests/evidence"), "");
    testkit::fuzz(&seeds, |bytes| {
        let _ = read(&Source::new("x", String::from_utf8_lossy(bytes)));
    });
}

#[test]
fn a_trajectory_is_read_with_its_sub_agents() {
    let (read, problems) = one(&specimen("atif-trajectory.json"));
    assert_eq!(problems, [""; 0]);
    assert_eq!(read.messages, ["Greet the reader.\n[image]"]);
    let steps = told(&read);
    assert_eq!(
        steps[1..],
        [
            "0 Let me look.",
            "0 Bash(cat notes.txt)",
            "0 Task(Count)",
            "0 = no such file!",
            "0   Glob(*)",
            "0 = a b c",
            "0 = Three",
            "0 Hello, reader",
        ]
    );
    let tokens = read.usage.tokens.unwrap();
    assert_eq!((tokens.input, tokens.cache_read, tokens.output, read.usage.cost_usd), (210, 10, 25, Some(0.02)));
    assert_eq!((read.ending.clone(), read.missing_calls.is_some()), (Ending::Finished, false));
    let text = specimen("atif-trajectory.json").text.clone();
    let problems = |from: &str, to: &str| one(&Source::new("t.json", text.replace(from, to))).1;
    assert_eq!(
        problems("\"trajectory_id\": \"counter\", \"agent\"", "\"trajectory_id\": \"other\", \"agent\""),
        ["t.json:18:100: the trajectory of the sub-agent `counter` is not in the file"]
    );
    assert_eq!(
        problems("\"function_name\": \"bash\", ", ""),
        ["t.json:12:7: `steps[2].tool_calls[0]` has no `function_name`"]
    );
    let newer = read_text(&text.replace("ATIF-v1.8", "ATIF-v2.0"));
    assert_eq!(newer, ["t.json:2:21: the version `ATIF-v2.0` of the format is not known"]);
}

fn read_text(text: &str) -> Vec<String> {
    read(&Source::new("t.json", text)).unwrap().problems.iter().map(ToString::to_string).collect()
}

/// Returns an archive of a log of inspect with these entries.
fn archive(entries: &[(&str, CompressionMethod, Vec<u8>)]) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, method, content) in entries {
        writer.start_file(*name, SimpleFileOptions::default().compression_method(*method)).unwrap();
        writer.write_all(content).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

fn log() -> Value {
    serde_json::from_str(&specimen("inspect-log.json").text).unwrap()
}

/// Returns the samples of the log as entries of an archive.
fn samples(log: &Value) -> Vec<(String, Vec<u8>)> {
    let samples = log["samples"].as_array().unwrap().iter();
    let named = samples.map(|it| {
        let id = it["id"].as_str().map_or_else(|| it["id"].to_string(), str::to_owned);
        (format!("samples/{id}_epoch_{}.json", it["epoch"]), it.to_string().into_bytes())
    });
    named.collect()
}

#[test]
fn logs_of_inspect_are_read_in_both_forms() {
    let log = log();
    let samples = samples(&log);
    let methods = [CompressionMethod::Zstd, CompressionMethod::Deflated, CompressionMethod::Stored];
    let mut entries = vec![("header.json", CompressionMethod::Zstd, b"{\"status\": \"success\"}".to_vec())];
    let mixed = samples.iter().zip(methods.into_iter().cycle());
    entries.extend(mixed.map(|((name, content), method)| (name.as_str(), method, content.clone())));
    let archived = read_archive("orders.eval", &archive(&entries)).unwrap();
    let document = read(&specimen("inspect-log.json")).unwrap();
    for evidence in [archived, document] {
        assert_eq!(evidence.problems, []);
        let cases: Vec<_> = evidence.conversations.iter().map(|read| read.case.as_deref().unwrap()).collect();
        assert_eq!(cases, ["2", "late-parcel", "2", "late-parcel"], "all samples of an epoch come first");
        let first = &evidence.conversations[0];
        assert_eq!(first.messages, ["And order 7?"]);
        assert_eq!(
            told(first),
            ["0 Let me look.", "0 find_order()", "0 = order 42 is on its way", "0 Your order 42 is on its way."]
        );
        assert_eq!((first.answer.as_deref(), &first.ending), (Some("Your order 42 is on its way."), &Ending::Finished));
        assert_eq!(first.usage.tokens.map(|tokens| (tokens.input, tokens.output)), Some((75, 57)));
        assert!(first.missing_calls.is_none());
    }
}

#[test]
fn errors_limits_attachments_and_hidden_calls_of_inspect_are_read() {
    let of_sample = |change: &dyn Fn(&mut Value)| {
        let mut log = log();
        let sample = &mut log["samples"][0];
        change(sample);
        let evidence = read(&Source::new("log.json", log.to_string())).unwrap();
        let problems: Vec<String> = evidence.problems.iter().map(|problem| problem.message.clone()).collect();
        (evidence.conversations.into_iter().next().unwrap(), problems)
    };
    let (failed, _) = of_sample(&|sample| sample["error"] = json!({"message": "no network"}));
    assert_eq!(failed.ending, aborted("inspect reports an error: no network"));
    let (limited, _) = of_sample(&|sample| sample["limit"] = json!({"type": "message", "limit": 4}));
    assert_eq!(limited.ending, Ending::GaveUp { reason: "inspect stopped it at the message limit (4)".into() });
    let (long, _) = of_sample(&|sample| {
        sample["attachments"] = json!({"abc": "a long text"});
        sample["messages"][2]["content"] = json!("attachment://abc");
        sample["messages"][1]["tool_calls"][0]["arguments"] = json!({"query": "attachment://abc"});
    });
    assert_eq!(told(&long)[1..3], ["0 find_order(a long text)", "0 = a long text"]);
    let (hidden, problems) = of_sample(&|sample| sample["events"][0]["id"] = json!("another"));
    assert!(hidden.missing_calls.is_some());
    assert_eq!(problems, ["the events have 1 tool call that the messages of the sample do not contain"]);
    let (strange, problems) = of_sample(&|sample| sample["messages"][3]["content"] = json!([{"type": "hologram"}]));
    assert!(strange.missing_calls.is_some());
    assert_eq!(problems, ["`messages[3].content[0]` has the unknown type `hologram`"]);
}

#[test]
fn each_trace_of_instrumented_agents_is_a_conversation() {
    let read = read(&specimen("spans.otlp.jsonl")).unwrap();
    assert_eq!(read.problems, []);
    let told: Vec<_> = read.conversations.iter().map(|read| (read.messages.clone(), told(read))).collect();
    let first =
        vec!["0 ".to_owned(), "0 find_order(42)".into(), "0 = on its way".into(), "0 Your order is on its way.".into()];
    assert_eq!(
        told,
        [(vec!["Where is my order 42?".to_owned()], first), (vec!["Hello".to_owned()], vec!["0 Hi".to_owned()])]
    );
    let none = json!({"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": "5b8efff798038103d269b633813fc60c",
        "spanId": "eee19b7ec3c1b174", "name": "GET /", "startTimeUnixNano": "1", "endTimeUnixNano": "2"}]}]}]});
    assert_eq!(read_text(&none.to_string()), ["t.json:1:1: the file has no conversation with an agent"]);
}

#[test]
fn damaged_archives_are_reported() {
    let problems = |bytes: &[u8]| -> Vec<String> {
        read_archive("x.eval", bytes).unwrap().problems.iter().map(ToString::to_string).collect()
    };
    assert!(problems(b"PK\x03\x04 and no more")[0].starts_with("x.eval:1:1: the archive cannot be read: "));
    let stored = CompressionMethod::Stored;
    assert_eq!(problems(&archive(&[("a.txt", stored, vec![])])), ["x.eval:1:1: the archive has no samples of inspect"]);
    let bad = archive(&[("samples/a_epoch_1.json", stored, b"{\n\"id\": }".to_vec())]);
    assert_eq!(
        problems(&bad),
        ["x.eval/samples/a_epoch_1.json:2:7: this document cannot be read as JSON: expected value"]
    );
    let bytes = archive(&[("samples/a_epoch_1.json", stored, vec![0xff])]);
    assert_eq!(problems(&bytes), ["x.eval/samples/a_epoch_1.json:1:1: the entry is not UTF-8"]);
    // Expands to more than the limit, whatever its header says.
    let bomb = archive(&[("samples/a_epoch_1.json", CompressionMethod::Zstd, vec![b' '; 100_000])]);
    assert!(bomb.len() < 1_000);
    let mut found = Vec::new();
    assert!(inspect::read_entries("x.eval", &bomb, 10_000, &mut found).is_empty());
    let too_large = "x.eval/samples/a_epoch_1.json:1:1: the entry is too large: at most 10000 bytes can be read";
    assert_eq!(found[0].to_string(), too_large);
    let (name, content) = samples(&log()).remove(0);
    let running = archive(&[(name.as_str(), stored, content)]);
    assert_eq!(problems(&running), ["x.eval:1:1: the log has no header: its run is in progress or was killed"]);
}

#[test]
fn mutated_archives_break_nothing() {
    let (name, content) = samples(&log()).remove(0);
    let methods = [CompressionMethod::Zstd, CompressionMethod::Deflated, CompressionMethod::Stored];
    let seeds = methods.map(|method| archive(&[(name.as_str(), method, content.clone())]));
    testkit::fuzz(&seeds, |bytes| {
        let _ = read_archive("x.eval", bytes);
    });
}
