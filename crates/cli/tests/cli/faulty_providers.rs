//! End-to-end tests of failing providers: whether they serve the judge or the agent, the agent is not blamed, nothing
//! hangs, and no output contains a key.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use serde_json::Value;
use testkit::{Project, Ran};

/// Key of every provider; it must not be visible anywhere.
const KEY: &str = "sk-test-canary-71c09be24d5f8a63";

/// Ways in which a provider fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// Always 429.
    Storm,
    /// Always 500.
    Error,
    /// Rejects the key, and echoes it.
    Refused,
    /// A stream that is cut off.
    Cut,
    /// A stream of invalid JSON.
    Garbage,
    /// A document that is not JSON.
    Text,
    /// JSON in an unknown format.
    Other,
    /// No answer, on an open connection.
    Silence,
}

const FAULTS: [Fault; 8] =
    [Fault::Storm, Fault::Error, Fault::Refused, Fault::Cut, Fault::Garbage, Fault::Text, Fault::Other, Fault::Silence];

/// A provider on loopback that always behaves the same; it runs until it is dropped.
struct Provider {
    address: SocketAddr,
    closed: Arc<AtomicBool>,
    asked: Arc<AtomicUsize>,
}

impl Provider {
    fn open(fault: Fault) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (closed, asked) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let (is_closed, counter) = (Arc::clone(&closed), Arc::clone(&asked));
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if is_closed.load(Ordering::SeqCst) {
                    return;
                }
                let counter = Arc::clone(&counter);
                std::thread::spawn(move || drop(serve(&stream, fault, &counter)));
            }
        });
        Self { address, closed, asked }
    }

    fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        self.closed.store(true, Ordering::SeqCst);
        // Wakes the thread that is waiting for a connection.
        let _ = TcpStream::connect(self.address);
    }
}

/// Answers one request, and closes the connection.
fn serve(mut stream: &TcpStream, fault: Fault, asked: &AtomicUsize) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(());
        }
        if line == "\r\n" {
            break;
        }
        if let Some((name, value)) =
            line.split_once(':').filter(|(name, _)| name.eq_ignore_ascii_case("content-length"))
        {
            length = value.trim().parse().unwrap_or_else(|_| panic!("{name}"));
        }
        head.push_str(&line);
    }
    reader.read_exact(&mut vec![0; length])?;
    asked.fetch_add(1, Ordering::SeqCst);
    let whole = |status: &str, kind: &str, text: &str| {
        let length = text.len();
        format!(
            "HTTP/1.1 {status}\r\nconnection: close\r\nretry-after: 0\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\n\r\n{text}"
        )
    };
    // Echoes the request, including the key.
    let echo = serde_json::json!({ "error": { "message": format!("not like this: {head}"), "type": "x" } }).to_string();
    let answer = match fault {
        Fault::Storm => whole("429 Too Many Requests", "application/json", &echo),
        Fault::Error => whole("500 Internal Server Error", "application/json", &echo),
        Fault::Refused => whole("401 Unauthorized", "application/json", &echo),
        Fault::Cut => "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n\
                       400\r\ndata: {\"id\":\"x\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"hello"
            .to_owned(),
        Fault::Garbage => whole("200 OK", "text/event-stream", &format!("data: {{{head}\n\n")),
        Fault::Text => whole("200 OK", "application/json", &format!("hello, {head}")),
        Fault::Other => whole("200 OK", "application/json", &echo.replace("error", "hello")),
        Fault::Silence => {
            // Blocks until the other side closes the connection.
            let _ = reader.read_exact(&mut [0]);
            return Ok(());
        }
    };
    stream.write_all(answer.as_bytes())
}

/// Returns a project with an agent whose greeting is to be judged.
fn project(agent: &str) -> Project {
    let project = Project::new(env!("CARGO_BIN_EXE_trialrun"));
    let project = ["OPENAI_API_KEY", "ANTHROPIC_API_KEY", "COMPATIBLE_API_KEY"]
        .into_iter()
        .fold(project, |project, name| project.env(name, KEY));
    project.write(
        "s.yaml",
        &format!(
            "scenario: s\nagent: {agent}\nsystem_prompt: Greet.\nuser_prompt: hello\nassertions:\n  \
             - {{ id: warm, type: sentiment, expected: friendly }}\n"
        ),
    );
    project
}

fn report(project: &Project, arguments: &[&str]) -> (Value, Ran) {
    let all = ["run", "s.yaml", "--retries", "0", "--report", "terminal", "--report", "json=report.json"];
    let all = [&all[..], &["--report", "jsonl=events.jsonl"], arguments].concat();
    let ran = project.run(&all);
    (serde_json::from_str(&project.read("report.json")).unwrap(), ran)
}

/// Checks that the key appears nowhere: neither in the output, nor in any remaining file.
#[track_caller]
fn assert_key_is_hidden(project: &Project, ran: &Ran, what: &str) {
    let part = &KEY[8..];
    assert!(!ran.output().contains(part), "{what}: {}", ran.output());
    let places = [project.dir(), project.home(), project.tmp()];
    for file in places.iter().flat_map(|place| walk(place)) {
        let bytes = std::fs::read(&file).unwrap();
        let is_there = bytes.windows(part.len()).any(|window| window == part.as_bytes());
        assert!(!is_there, "{what}: {}", file.display());
    }
}

/// Returns every file below `directory`.
fn walk(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { walk(&path) } else { vec![path] }).collect()
}

/// Returns the options that keep the wait for a silent provider short.
fn short_timeouts(fault: Fault) -> &'static [&'static str] {
    if fault == Fault::Silence { &["--timeout", "2"] } else { &[] }
}

fn judged_by(vendor: &str, fault: Fault) {
    let (project, provider) = (project("fake"), Provider::open(fault));
    let (url, judge) = (provider.url(), format!("{vendor}:m"));
    let arguments = [&["--judge", &judge, "--judge-base-url", &url], short_timeouts(fault)].concat();
    let (report, ran) = report(&project, &arguments);
    let what = format!("{vendor} {fault:?}");
    assert!(provider.asked.load(Ordering::SeqCst) > 0, "{what}: nobody asked");
    let ran = ran.exits(3);
    let trial = &report["trials"][0];
    assert_eq!((&trial["outcome"], &trial["fault"]), (&"undecided".into(), &"judge".into()), "{what}: {trial:#}");
    let warm = trial["findings"].as_array().unwrap().iter().find(|finding| finding["id"] == "warm").unwrap();
    assert_eq!((&warm["status"], &warm["score"]), (&"undecided".into(), &Value::Null), "{what}: {warm:#}");
    assert!(!warm["because"].as_str().unwrap().is_empty(), "{what}");
    assert_eq!(trial["judge_cost_usd"], Value::Null, "{what}: unknown values are not invented");
    assert_key_is_hidden(&project, &ran, &what);
}

fn played_by(vendor: &str, fault: Fault) {
    let (project, provider) = (project("chat"), Provider::open(fault));
    let (url, model) = (provider.url(), format!("{vendor}:m"));
    let arguments = [&["--model", &model, "--base-url", &url], short_timeouts(fault)].concat();
    let (report, ran) = report(&project, &arguments);
    let what = format!("{vendor} {fault:?}");
    assert!(provider.asked.load(Ordering::SeqCst) > 0, "{what}: nobody asked");
    let ran = ran.exits(3);
    let trial = &report["trials"][0];
    assert_eq!((&trial["outcome"], &trial["fault"]), (&"broken".into(), &"provider".into()), "{what}: {trial:#}");
    assert!(!trial["because"].as_str().unwrap().is_empty(), "{what}");
    assert_key_is_hidden(&project, &ran, &what);
}

/// Runs `work` with every vendor and fault in parallel, because most of the time is spent waiting for retries.
fn each(vendors: [&'static str; 2], work: impl Fn(&str, Fault) + Sync) {
    std::thread::scope(|scope| {
        let work = &work;
        let all = vendors.into_iter().flat_map(|vendor| FAULTS.map(|fault| (vendor, fault)));
        let running: Vec<_> =
            all.map(|(vendor, fault)| ((vendor, fault), scope.spawn(move || work(vendor, fault)))).collect();
        let failed: Vec<(&str, Fault)> =
            running.into_iter().filter_map(|(what, thread)| thread.join().is_err().then_some(what)).collect();
        assert!(failed.is_empty(), "{failed:?}");
    });
}

#[test]
fn a_judge_with_a_failing_provider_leaves_findings_undecided() {
    each(["openai", "anthropic"], judged_by);
}

#[test]
fn an_agent_with_a_failing_provider_is_not_at_fault() {
    each(["openai", "openai-responses"], played_by);
}
