//! `view`: the pages of a run in progress, in a real browser, and requests that are refused.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;

use nix::sys::signal::Signal;
use serde_json::{Value, json};
use testkit::browser::{self, Browser};
use testkit::{Live, Project};

use crate::html::{HOSTILE, HOSTILE_SHOWN, count, text, wait_for_view};

const PROGRAM: &str = env!("CARGO_BIN_EXE_trialrun");

/// Answers each message with the next line written to the project's pipe `answers`.
const AGENT: &str = "echo note > note.txt; while read -r message; do cat \"$1/answers\"; done";

/// Creates a project with one conversation of two messages and another of one message, whose agent waits for the test.
fn project() -> Project {
    let project = Project::new(PROGRAM);
    project.write("agent.sh", AGENT);
    project.write("trialrun.yaml", "agent: { type: subprocess, command: [sh, agent.sh, '{project}'] }\n");
    let conversation = |turns: &str| format!("turns: {turns}\nassertions:\n  - contains: fine\n");
    project.write("tests/first.yaml", &conversation("[how are you, and now]"));
    project.write("tests/second.yaml", &conversation("[hello]"));
    let made = Command::new("mkfifo").arg(project.dir().join("answers")).status().unwrap();
    assert!(made.success());
    project
}

/// Gives the waiting agent its answer. Blocks until an agent waits.
fn answer(project: &Project, text: &str) {
    fs::write(project.dir().join("answers"), format!("{}\n", json!({ "text": text }))).unwrap();
}

/// Starts a run, and waits until it is recorded.
fn start(project: &Project, arguments: &[&str]) -> Live {
    let run = project.start(&[&["run", "--jobs", "1", "--retries", "0"], arguments].concat());
    assert!(testkit::until(|| project.run(&["status"]).out.contains("waits for agent")));
    run
}

/// Serves the newest run. Returns the server and its address.
fn serve(project: &Project) -> (Live, String) {
    let mut server = project.start(&["view", "--no-open"]);
    let line = server.line_with("http://127.0.0.1:");
    let address = line.split_whitespace().find(|word| word.starts_with("http://")).unwrap().to_owned();
    (server, address)
}

#[test]
#[cfg_attr(not(has = "browser"), ignore = "needs a browser; run scripts/test")]
fn the_pages_follow_a_run_and_survive_the_end_of_the_server() {
    let program = browser::installed();
    let project = project();
    let run = start(&project, &["tests"]);
    let (server, address) = serve(&project);
    let mut browser = Browser::start(&program);
    let browser = &mut browser;
    browser.open(&address);
    wait_for_view(browser);
    assert_eq!(text(browser, ".verdict"), "No trial has finished yet");
    assert_eq!(text(browser, "#progress"), "0 of 2 trials finished, 1 running");
    assert!(text(browser, "[aria-label='Running now'] tbody").contains("waits for agent"));

    // A trial in progress.
    browser.evaluate("document.querySelector('[aria-label=\"Running now\"] tbody a').click()");
    browser.wait("document.querySelector('.timeline .message')");
    assert!(
        text(browser, "h1").contains("first") && text(browser, "h1").contains("running"),
        "{}",
        text(browser, "h1")
    );
    assert_eq!(count(browser, ".timeline .message"), 1);
    browser.evaluate("document.querySelector('.timeline .message h3').focus()");
    answer(&project, "I am fine.");
    browser.wait("document.querySelectorAll('.timeline .message').length === 2");
    assert!(text(browser, ".timeline").contains("I am fine."));
    answer(&project, "Still fine.");
    browser.wait("document.querySelector('[aria-label=Checks]')");
    assert!(text(browser, "h1").contains("passed"), "{}", text(browser, "h1"));
    assert!(text(browser, ".timeline").contains("Still fine."));
    assert!(text(browser, "[aria-label='Files changed']").contains("note.txt"));
    assert!(text(browser, "#no-diff").contains("No difference was recorded for 1 file"));

    // The overview is updated, and keeps what the reader typed.
    browser.evaluate("document.getElementById('back').click()");
    browser.wait("document.querySelector('#progress')?.textContent === '1 of 2 trials finished, 1 running'");
    assert_eq!(count(browser, ".trials tbody tr"), 1);
    browser.evaluate(
        "{ const input = document.getElementById('filter'); input.focus(); input.value = 'tests'; \
         input.dispatchEvent(new Event('input')); }",
    );
    answer(&project, "Not so well.");
    browser.wait("document.querySelector('.result').textContent === 'FAIL'");
    assert_eq!(count(browser, ".trials tbody tr"), 2);
    assert_eq!(browser.evaluate("document.activeElement.value"), "tests");
    assert_eq!(count(browser, "[aria-label='Running now'], [aria-label^=Interrupted]"), 0);
    run.end().exits(1);

    // The page keeps its content when the server ends.
    browser.evaluate("document.querySelectorAll('.trials a')[1].click()");
    browser.wait("document.querySelector('.timeline .item')");
    assert!(browser.problems.is_empty(), "{:?}", browser.problems);
    server.signal(Signal::SIGINT);
    server.end().exits(0);
    browser.wait("document.getElementById('lost')");
    assert!(text(browser, "#lost").contains("no longer updated"));
    assert!(text(browser, ".timeline").contains("fine"));
    browser.evaluate("document.getElementById('back').click()");
    browser.wait("document.querySelector('.trials')");
    assert_eq!(count(browser, ".trials tbody tr"), 2);
    browser.evaluate("document.querySelectorAll('.trials a')[0].click()");
    browser.wait("document.querySelector('h1').textContent === 'The trial cannot be shown'");
    assert!(text(browser, "#main").contains("Start `trialrun view` again"));
}

#[test]
#[cfg_attr(not(has = "browser"), ignore = "needs a browser; run scripts/test")]
fn hostile_answers_remain_text_during_a_run() {
    let program = browser::installed();
    let project = project();
    let run = start(&project, &["tests"]);
    let (_server, address) = serve(&project);
    let mut browser = Browser::start(&program);
    let browser = &mut browser;
    browser.open(&address);
    wait_for_view(browser);
    browser.evaluate("document.querySelector('[aria-label=\"Running now\"] tbody a').click()");
    browser.wait("document.querySelector('.timeline .message')");
    answer(&project, &format!("{HOSTILE}{}", "0123456789".repeat(100_000)));
    browser.wait("document.querySelector('.timeline .text button')");
    let timeline = text(browser, ".timeline");
    for sign in HOSTILE_SHOWN {
        assert!(timeline.contains(sign), "{sign}: {timeline}");
    }
    browser.evaluate("document.querySelector('.timeline .text button').click()");
    let length = "document.querySelector('.timeline .turn .text').textContent.length > 1_000_000";
    assert_eq!(browser.evaluate(length), true);
    browser.evaluate("document.getElementById('back').click()");
    answer(&project, HOSTILE);
    // Two answers sent at once could be read as one.
    browser.wait("document.querySelector('#progress')?.textContent.startsWith('1 of 2')");
    answer(&project, HOSTILE);
    browser.wait("document.querySelector('.result')?.textContent === 'FAIL'");
    run.end().exits(1);
    browser.evaluate("document.querySelector('.trials a').click()");
    browser.wait("document.querySelector('.timeline .item')");
    let page = text(browser, "#main");
    for sign in HOSTILE_SHOWN {
        assert!(page.contains(sign), "{sign}: {page}");
    }
    assert!(!page.contains(['\u{202e}', '\u{1b}', '\u{0}']));
    assert_eq!(browser.evaluate("window.hacked ?? null"), Value::Null);
    assert_eq!(count(browser, "img, iframe, object, a[href^=javascript]"), 0);
    let injected = "{ const script = document.createElement('script'); script.textContent = 'window.hacked = 3'; \
                    document.body.append(script); window.hacked ?? null }";
    assert_eq!(browser.evaluate(injected), Value::Null);
}

/// Returns the body of a page that must exist.
pub fn get(host: &str, path: &str) -> Vec<u8> {
    let mut stream = TcpStream::connect(host).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    assert!(answer.starts_with(b"HTTP/1.1 200 "), "{}", String::from_utf8_lossy(&answer));
    let head = answer.windows(4).position(|window| window == b"\r\n\r\n").unwrap();
    answer.split_off(head + 4)
}

/// Sends a request and returns the whole response.
fn request(port: &str, head: &str) -> String {
    let mut stream = TcpStream::connect(format!("127.0.0.1:{port}")).unwrap();
    write!(stream, "{head}\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

#[test]
fn only_requests_from_its_own_page_with_the_token_are_answered() {
    let project = Project::new(PROGRAM);
    project.write("s.yaml", "name: s\nagent: fake\nturns: [hi there]\nassertions:\n  - contains: hi\n");
    project.run(&["run", "s.yaml", "--label", "nightly"]).exits(0);
    let (server, address) = serve(&project);
    let rest = address.strip_prefix("http://127.0.0.1:").unwrap();
    let (port, token) = rest.trim_end_matches('/').split_once('/').unwrap();
    assert_eq!(token.len(), 32);
    let get = |path: &str, more: &str| request(port, &format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}{more}"));
    let status = |answer: &str| answer.split(' ').nth(1).unwrap().to_owned();

    let page = get(&format!("/{token}/"), "");
    assert_eq!(status(&page), "200", "{page}");
    let (head, body) = page.split_once("\r\n\r\n").unwrap();
    for header in [
        "content-security-policy: default-src 'none'; script-src 'sha256-",
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        "cache-control: no-store",
        "x-content-type-options: nosniff",
        "referrer-policy: no-referrer",
        "cross-origin-resource-policy: same-origin",
    ] {
        assert!(head.contains(header), "{header}: {head}");
    }
    assert!(body.contains("\"label\":\"nightly\"") && !body.contains(token), "{body}");

    let index = get(&format!("/{token}/index"), "");
    let tag = index.lines().find_map(|line| line.strip_prefix("etag: ")).unwrap();
    let unchanged = get(&format!("/{token}/index"), &format!("\r\nIf-None-Match: {tag}"));
    assert_eq!(status(&unchanged), "304");
    assert_eq!(status(&get(&format!("/{token}/trial/s::s@fake%231"), "")), "200");
    assert_eq!(status(&get(&format!("/{token}/"), &format!("\r\nOrigin: http://127.0.0.1:{port}"))), "200");
    let by_name = format!("GET /{token}/ HTTP/1.1\r\nHost: localhost:{port}");
    assert_eq!(status(&request(port, &by_name)), "200");

    // Without the token, or with only part of it.
    let half = &token[..16];
    for path in [
        "/",
        "/index",
        &format!("/{}/", "0".repeat(32)),
        &format!("/{half}/"),
        &format!("/{token}0/"),
        &format!("/{token}"),
    ] {
        let refused = get(path, "");
        assert_eq!(status(&refused), "403", "{path}");
        assert!(!refused.contains("nightly") && refused.contains("content-security-policy: default-src 'none'"));
    }
    // From another site, even under its own name for this address.
    for origin in ["http://evil.example", "null", &format!("https://127.0.0.1:{port}"), "http://127.0.0.1"] {
        assert_eq!(status(&get(&format!("/{token}/index"), &format!("\r\nOrigin: {origin}"))), "403", "{origin}");
    }
    for host in ["evil.example", &format!("evil.example:{port}"), "127.0.0.1", "127.0.0.1:1", ""] {
        let rebound = request(port, &format!("GET /{token}/ HTTP/1.1\r\nHost: {host}"));
        assert_eq!(status(&rebound), "403", "{host}");
    }
    let two = format!("GET /{token}/ HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nHost: evil.example");
    assert_eq!(status(&request(port, &two)), "403");
    // Other paths and methods.
    assert_eq!(status(&get(&format!("/{token}/trial/no-such"), "")), "404");
    assert_eq!(status(&get(&format!("/{token}/../../etc/passwd"), "")), "404");
    for method in ["POST", "PUT", "DELETE", "OPTIONS", "HEAD"] {
        let refused = request(port, &format!("{method} /{token}/ HTTP/1.1\r\nHost: 127.0.0.1:{port}"));
        assert_eq!(status(&refused), "405", "{method}");
    }
    server.signal(Signal::SIGINT);
    server.end().exits(0);
}

#[test]
fn a_resumed_run_replaces_its_cancelled_trials() {
    let project = project();
    let run = start(&project, &["tests/second.yaml"]);
    let (_server, address) = serve(&project);
    let (host, path) = address.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let index = || -> Value { serde_json::from_slice(&get(host, &format!("/{path}index"))).unwrap() };
    let live = index()["live"].clone();
    assert_eq!((&live["is_active"], &live["is_over"]), (&json!(true), &json!(false)));
    assert_eq!(live["running"][0]["case"], "second");
    run.signal(Signal::SIGINT);
    run.end().exits(130);
    let stopped = index();
    assert_eq!((&stopped["live"]["is_over"], &stopped["run"]["result"]), (&json!(true), &json!("INCOMPLETE")));
    assert_eq!(stopped["trials"][0]["outcome"], "cancelled");
    let again = project.start(&["run", "--resume"]);
    answer(&project, "fine");
    again.end().exits(0);
    let resumed = index();
    assert_eq!((&resumed["run"]["id"], &resumed["run"]["result"]), (&stopped["run"]["id"], &json!("PASS")));
    let outcomes: Vec<&Value> = resumed["trials"].as_array().unwrap().iter().map(|trial| &trial["outcome"]).collect();
    assert_eq!(outcomes, ["passed"]);
    assert!(resumed["live"]["version"].as_u64() > stopped["live"]["version"].as_u64());
}

#[test]
fn a_display_opens_the_browser_and_a_port_in_use_is_an_error() {
    let project = Project::new(PROGRAM);
    project.write("s.yaml", "name: s\nagent: fake\nturns: [hi]\nassertions:\n  - contains: hi\n");
    project.run(&["run", "s.yaml"]).exits(0);
    project.write("bin/xdg-open", "#!/bin/sh\necho \"$1\" > \"$HOME/opened\"\n");
    Command::new("chmod").arg("+x").arg(project.dir().join("bin/xdg-open")).status().unwrap();
    let bin = project.dir().join("bin");
    let opened = project.home().join("opened");
    let project = project.env("DISPLAY", ":99").path_first(&bin);
    let mut server = project.start(&["view", "latest"]);
    let address = server.line_with("http://");
    let mut given = String::new();
    assert!(testkit::until(|| {
        given = fs::read_to_string(&opened).unwrap_or_default();
        !given.is_empty()
    }));
    assert!(address.contains(given.trim()), "{given}: {address}");
    let port = given.trim_start_matches("http://127.0.0.1:").split('/').next().unwrap();
    let taken = project.run(&["view", "--port", port]).exits(3);
    assert!(taken.err.contains(&format!("cannot listen on port {port}")), "{}", taken.output());
    server.signal(Signal::SIGTERM);
    server.end().exits(0);
}
