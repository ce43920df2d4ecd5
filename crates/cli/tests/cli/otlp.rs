//! The report for OpenTelemetry, sent to collectors on loopback: good ones, and ones that fail in every way. None of
//! them makes a run fail.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on fails")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;

use nix::sys::signal::Signal;
use serde_json::{Value, json};
use testkit::{Live, Loopback, Project, packages};

const PROGRAM: &str = env!("CARGO_BIN_EXE_trialrun");
/// A secret of the project.
const SECRET: &str = "canary-in-production";

fn project() -> Project {
    let project = Project::new(PROGRAM).env("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json");
    project.write(
        "scenarios/hello.yaml",
        &format!(
            "name: hello\nagent: fake\nfixtures: {{ env: {{ STAGE_TOKEN: {SECRET} }} }}\nturns: [say {SECRET}]\n\
             assertions: [{{ contains: say }}]\n"
        ),
    );
    project
}

/// Returns the spans or log records in the request bodies, sorted.
fn records(bodies: &[String]) -> Vec<String> {
    let mut found = Vec::new();
    for body in bodies {
        let request: Value = serde_json::from_str(body).unwrap();
        for (resource, scope, records) in
            [("resourceSpans", "scopeSpans", "spans"), ("resourceLogs", "scopeLogs", "logRecords")]
        {
            let parts = request[resource].as_array().into_iter().flatten();
            let scopes = parts.flat_map(|part| part[scope].as_array().unwrap());
            found.extend(scopes.flat_map(|scope| scope[records].as_array().unwrap()).map(Value::to_string));
        }
    }
    found.sort_unstable();
    found
}

fn bodies(collector: &Loopback) -> Vec<String> {
    collector.asked().into_iter().map(|asked| asked.body).collect()
}

#[test]
fn a_replayed_run_sends_the_spans_of_the_live_one() {
    let (live, again) = (Loopback::answering(200, "{}"), Loopback::answering(200, "{}"));
    let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
    let content = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT";
    let project = project().env(content, "true").env("OTEL_EXPORTER_OTLP_HEADERS", "api-key=a%20b");
    let project = project.env("TRACEPARENT", &format!("00-{trace}-00f067aa0ba902b7-01"));
    let output = project.run(&["run", "--report", &format!("otlp={}", live.url())]).exits(0).output();
    assert!(!output.contains("warning"), "{output}");
    let project = project.env("TRACEPARENT", "");
    project.run(&["report", "--report", &format!("otlp={}", again.url())]).exits(0);
    project.run(&["report", "--report", "otlp=run.jsonl"]).exits(0);
    let sent = records(&bodies(&live));
    assert!(sent.len() >= 5, "{sent:?}");
    assert_eq!(records(&bodies(&again)), sent);
    let lines: Vec<String> = project.read("run.jsonl").lines().map(str::to_owned).collect();
    assert_eq!(records(&lines), sent);
    assert!(sent.iter().all(|record| record.contains(trace)));
    let all = bodies(&live).concat();
    assert!(all.contains("say [masked]") && !all.contains(SECRET), "{all}");
    let asked = live.asked();
    assert!(asked.iter().any(|asked| asked.line.starts_with("POST /v1/traces")));
    assert!(asked.iter().any(|asked| asked.line.starts_with("POST /v1/logs")));
    assert!(asked.iter().all(|asked| asked.headers.contains("api-key: a b")), "{:?}", asked[0].headers);
}

/// Returns a receiver in Python that parses requests with the official protobuf classes, and its address.
fn official_receiver() -> (Live, String) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/otlp/receiver.py");
    let mut command = Command::new("python3");
    command.arg("-B").arg(script).env("PYTHONPATH", packages().join("python"));
    let mut receiver = Live::start(command);
    let port = receiver.line().expect("the receiver starts");
    (receiver, format!("http://127.0.0.1:{}", port.trim()))
}

#[test]
#[cfg_attr(not(has = "python-packages"), ignore = "needs Python packages; run scripts/test")]
fn an_official_receiver_reads_spans_and_evaluation_results() {
    let (mut receiver, url) = official_receiver();
    let project = Project::new(PROGRAM).env("OTEL_EXPORTER_OTLP_ENDPOINT", &url);
    project.write(
        "scenarios/kind.yaml",
        "name: kind\nagent: fake\nturns: ['!call Bash {\"command\": \"ls\"} => a.txt', hello there]\n\
         assertions:\n  - { contains: hello }\n  - { sentiment: friendly }\n",
    );
    let answer = json!({"answers": [
        {"id": "c1", "quote": "hello there", "reasoning": "As it says.", "verdict": "met", "score": 4}
    ]});
    project.write("judge.yaml", &json!({ "steps": [{ "text": answer.to_string() }] }).to_string());
    let output = project.run(&["run", "--judge", "scripted:judge.yaml", "--label", "first"]).exits(0).output();
    assert!(!output.contains("warning"), "{output}");
    // The program has ended, so the receiver has answered all of its requests.
    receiver.signal(Signal::SIGTERM);
    let received: Vec<Value> =
        std::iter::from_fn(|| receiver.line()).map(|line| serde_json::from_str(&line).unwrap()).collect();

    let is_operation = |record: &Value, operation: &str| {
        record["signal"] == "span" && record["attributes"]["gen_ai.operation.name"] == operation
    };
    let only = |what: &str, wanted: &dyn Fn(&Value) -> bool| -> &Value {
        let found: Vec<&Value> = received.iter().filter(|record| wanted(record)).collect();
        assert_eq!(found.len(), 1, "{what}: {received:#?}");
        found[0]
    };
    let run = only("run", &|record| record["signal"] == "span" && record["parent"] == "");
    let trial = only("trial", &|record| record["signal"] == "span" && record["parent"] == run["id"]);
    let judge = only("judge", &|record| record["attributes"]["gen_ai.agent.name"] == "judge");
    let agent = only("agent", &|record| is_operation(record, "invoke_agent") && record["id"] != judge["id"]);
    let call = only("tool call", &|record| is_operation(record, "execute_tool"));
    let turns = received.iter().filter(|record| is_operation(record, "chat") && record["parent"] == agent["id"]);
    assert!(turns.count() > 0, "{received:#?}");
    assert_eq!((&run["service"], &run["attributes"]["trialrun.run.label"]), (&json!("trialrun"), &json!("first")));
    assert_eq!(trial["attributes"]["test.case.result.status"], "pass");
    assert_eq!((&judge["parent"], &agent["parent"]), (&trial["id"], &trial["id"]));
    assert_eq!(call["attributes"]["gen_ai.tool.name"], "Bash");
    assert!(received.iter().all(|record| record["trace"] == run["trace"]));
    assert!(received.iter().all(|record| record["nanoseconds"].as_i64().is_none_or(|length| length >= 0)));

    let results: Vec<&Value> = received.iter().filter(|record| record["signal"] == "log").collect();
    assert_eq!(results.len(), 3, "each assertion, and that no question is unanswered: {received:#?}");
    assert!(results.iter().all(|result| result["name"] == "gen_ai.evaluation.result"), "{results:#?}");
    let judged = results.iter().find(|result| result["attributes"]["gen_ai.evaluation.score.value"] == 0.75);
    let explanation = &judged.unwrap()["attributes"]["gen_ai.evaluation.explanation"];
    assert_eq!(explanation, "4 of 5: As it says.");
}

#[test]
fn an_address_in_the_environment_turns_the_report_on() {
    let collector = Loopback::answering(200, "{}");
    let project = project().env("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.url());
    let output = project.run(&["run"]).exits(0).output();
    assert!(output.contains("PASS  1 trial passed"), "the terminal shows the run too: {output}");
    assert!(!collector.asked().is_empty());
    let count = collector.asked().len();
    let project = project.env("OTEL_SDK_DISABLED", "true");
    let output = project.run(&["run"]).exits(0).output();
    assert!(!output.contains("warning") && collector.asked().len() == count, "{output}");
}

#[test]
fn a_collector_that_fails_is_one_warning_and_no_other_exit_code() {
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let error = Loopback::answering(500, "out of\ndisk");
    let full = Loopback::answering(429, "");
    let partial = r#"{"partialSuccess": {"rejectedSpans": "1", "errorMessage": "too old"}}"#;
    let partial = Loopback::answering(200, partial);
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    for (address, expected) in [
        (format!("http://{closed}"), "did not reach http://127.0.0.1:"),
        (error.url(), "HTTP 500 Internal Server Error: out of disk"),
        (full.url(), "HTTP 429 Too Many Requests"),
        (partial.url(), "OpenTelemetry spans and log records: too old"),
        (format!("http://{}", silent.local_addr().unwrap()), "no answer within 0.4 s"),
        ("http://user:password@127.0.0.1:1/path".into(), "http://127.0.0.1:1: "),
    ] {
        let project = project().env("OTEL_EXPORTER_OTLP_ENDPOINT", &address).env("OTEL_EXPORTER_OTLP_TIMEOUT", "400");
        let output = project.run(&["run"]).exits(0).output();
        let warnings: Vec<&str> = output.lines().filter(|line| line.starts_with("warning: ")).collect();
        assert_eq!(warnings.len(), 1, "{output}");
        assert!(warnings[0].contains(expected) && !output.contains("password"), "{output}");
    }
    let project = project().env("OTEL_EXPORTER_OTLP_ENDPOINT", &format!("http://{closed}"));
    project.run(&["run"]).exits(0);
    let output = project.run(&["report", "--report", "otlp"]).exits(3).output();
    assert!(output.contains("did not reach"), "{output}");
}

#[test]
fn a_request_is_sent_again_when_the_collector_asks_for_it() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let collector = std::thread::spawn(move || {
        let mut bodies = Vec::new();
        for (number, stream) in listener.incoming().take(2).flatten().enumerate() {
            let mut reader = BufReader::new(stream);
            let mut length = 0;
            let mut line = String::new();
            while reader.read_line(&mut line).unwrap() > 2 {
                let header = line.to_ascii_lowercase();
                if let Some(value) = header.strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap();
                }
                line.clear();
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            bodies.push(String::from_utf8(body).unwrap());
            let answer = if number == 0 { "503 Busy\r\nretry-after: 0" } else { "200 OK" };
            write!(reader.into_inner(), "HTTP/1.1 {answer}\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{{}}")
                .unwrap();
        }
        bodies
    });
    let project = project().env("OTEL_LOGS_EXPORTER", "none");
    project.run(&["run"]).exits(0);
    // The collector stops after the second request.
    project.run(&["report", "--report", &format!("otlp={address}")]);
    let bodies = collector.join().unwrap();
    assert_eq!(bodies[0], bodies[1]);
}

#[test]
fn a_protocol_that_is_not_supported_is_refused_before_the_run() {
    let project = project().env("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc");
    let output = project.run(&["run", "--report", "otlp"]).exits(2).output();
    assert!(output.contains("protocol `grpc` is not supported") && output.contains("http/protobuf"), "{output}");
    let project = project.env("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1");
    let output = project.run(&["run"]).exits(0).output();
    assert!(output.contains("warning: OpenTelemetry's protocol `grpc`"), "not asked for, so it is a warning: {output}");
}
