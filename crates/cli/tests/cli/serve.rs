//! `serve`: who may read and change what, the pages in a real browser, and runs that clients start and change.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::io::{Read, Write};
use std::net::TcpStream;

use nix::sys::signal::Signal;
use serde_json::{Value, json};
use testkit::browser::{self, Browser};
use testkit::{Live, PostgresServer, Project, until};

use crate::html::{count, text, wait_for_view};

const READ: &str = "read-0123456789abcdef";
const RUN: &str = "run-0123456789abcdef";

/// Text that would be executed if it became part of a page.
const HOSTILE: &str = "</script><script>window.hacked = 1</script><img src=x onerror='window.hacked = 2'>";

fn project() -> Project {
    let project = Project::new(env!("CARGO_BIN_EXE_trialrun"));
    project.env("TRIALRUN_READ_TOKEN", READ).env("TRIALRUN_RUN_TOKEN", RUN)
}

/// Starts a server, and returns it with its port.
fn serve(project: &Project, more: &[&str]) -> (Live, String) {
    let mut server = project.start(&[&["serve", "--listen", "127.0.0.1:0"], more].concat());
    let line = server.line_with("http://127.0.0.1:");
    let port = line.trim_end().trim_end_matches('/').rsplit(':').next().unwrap().to_owned();
    (server, port)
}

/// A response.
struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Answer {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }
}

/// Sends a request. `headers` are lines.
fn send(port: &str, method: &str, path: &str, headers: &str, body: &str) -> Answer {
    let mut stream = TcpStream::connect(format!("127.0.0.1:{port}")).unwrap();
    let host = if headers.contains("Host:") { String::new() } else { format!("Host: 127.0.0.1:{port}\r\n") };
    let length = body.len();
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\n{host}{headers}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )
    .unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Answer { status, head: head.to_ascii_lowercase(), body: body.to_owned() }
}

fn get(port: &str, path: &str) -> Answer {
    send(port, "GET", path, &format!("Authorization: Bearer {READ}\r\n"), "")
}

fn post(port: &str, path: &str, token: &str, body: &Value) -> Answer {
    let headers = format!("Authorization: Bearer {token}\r\nContent-Type: application/json\r\n");
    send(port, "POST", path, &headers, &body.to_string())
}

#[test]
fn tokens_decide_who_may_read_and_who_may_change_a_run() {
    let project = project();
    project.write("s.yaml", "name: s\nagent: fake\nturns: [hi there]\nassertions:\n  - contains: hi\n");
    project.run(&["run", "s.yaml", "--label", "feature/a b"]).exits(0);
    project.run(&["run", "s.yaml", "--label", "main"]).exits(0);
    let (server, port) = serve(&project, &[]);
    let with = |headers: &str| send(&port, "GET", "/", headers, "");

    // Reading.
    let refused = with("");
    assert_eq!(refused.status, 401);
    assert!(refused.head.contains("www-authenticate: basic realm=\"trialrun\"") && !refused.body.contains("feature"));
    assert_eq!(with("Authorization: Bearer wrong\r\n").status, 401);
    // `ann:` and the token that may read.
    assert_eq!(with("Authorization: Basic YW5uOnJlYWQtMDEyMzQ1Njc4OWFiY2RlZg==\r\n").status, 200);
    let page = get(&port, "/");
    assert!(page.status == 200 && page.body.contains("feature/a b"), "{}", page.body);
    assert!(page.head.contains("content-security-policy: default-src 'none'; style-src 'sha256-"), "{}", page.head);
    assert!(!page.head.contains("script-src") && !page.head.contains("set-cookie"), "{}", page.head);
    for path in ["/api/runs", "/api/openapi.json", "/no/such/page"] {
        assert_eq!(send(&port, "GET", path, "", "").status, 401, "{path}");
    }
    let token = format!("Authorization: Bearer {READ}\r\n");
    assert_eq!(with(&format!("{token}Host: evil.example\r\n")).status, 403);
    assert_eq!(with(&format!("{token}Origin: https://evil.example\r\n")).status, 403);

    // Changing.
    for (headers, status) in [
        (String::new(), 401),
        (format!("Authorization: Bearer {READ}\r\n"), 403),
        // A browser may send this on its own.
        ("Authorization: Basic YW5uOnJ1bi0wMTIzNDU2Nzg5YWJjZGVm\r\n".to_owned(), 401),
        (format!("Authorization: Bearer {RUN}\r\nContent-Type: text/plain\r\n"), 415),
        (format!("Authorization: Bearer {RUN}\r\nOrigin: https://evil.example\r\n"), 403),
    ] {
        let answer = send(&port, "POST", "/api/runs", &headers, "{}");
        assert_eq!(answer.status, status, "{headers}: {}", answer.body);
    }
    let no_queue = post(&port, "/api/runs", RUN, &json!({}));
    assert!(no_queue.status == 409 && no_queue.body.contains("workers need a database"), "{}", no_queue.body);
    assert_eq!(post(&port, "/api/runs/main/pause", RUN, &json!({})).status, 409);

    // The API.
    let runs = get(&port, "/api/runs?last=1").json();
    assert_eq!((&runs["runs"][0]["label"], runs["runs"].as_array().unwrap().len()), (&json!("main"), 1));
    let rest = get(&port, &format!("/api/runs?before={}", runs["next"].as_str().unwrap())).json();
    assert_eq!((&rest["runs"][0]["label"], &rest["next"]), (&json!("feature/a b"), &Value::Null));
    let run = get(&port, "/api/runs/feature%2Fa%20b").json();
    assert_eq!((&run["run"]["state"], &run["queue"]), (&json!("finished"), &Value::Null));
    let trials = get(&port, "/api/runs/main/trials").json();
    assert_eq!((&trials["trials"][0]["id"], &trials["next_offset"]), (&json!("s::s@fake#1"), &Value::Null));
    assert_eq!(get(&port, "/api/runs/main/trials/s::s@fake%231").json()["outcome"], "passed");
    let results = get(&port, "/api/runs/main/results").json();
    assert_eq!(results, project.run(&["report", "main", "--format", "json"]).exits(0).json());
    let compared = get(&port, "/api/compare/feature%2Fa%20b/main");
    assert_eq!(compared.json(), project.run(&["compare", "feature/a b", "main", "--json"]).exits(0).json());
    let linked = ["compare", "feature/a b", "main", "--format", "markdown", "--serve-url"];
    let comment = project.run(&[&linked[..], &[&format!("http://127.0.0.1:{port}/")]].concat()).exits(0).out;
    let (_, link) = comment.rsplit_once(&format!("](http://127.0.0.1:{port}")).unwrap();
    let page = get(&port, link.trim_end().strip_suffix(')').unwrap());
    assert!(page.status == 200 && page.body.contains("in both"), "{comment}");
    let refused = project.run(&[&linked[..], &["https://ann:hunter2@trials.example.com"]].concat()).exits(2);
    assert!(refused.err.contains("leave out the name and the password"), "{}", refused.err);
    assert_eq!(get(&port, "/api/cases").json()["cases"], json!([{ "suite": "s", "case": "s" }]));
    assert_eq!(get(&port, "/api/trend?case=s").json()["runs"].as_array().unwrap().len(), 2);
    assert_eq!(get(&port, "/api/queue").json()["workers"], json!([]));
    let described = get(&port, "/api/openapi.json").json();
    assert!(described["paths"]["/api/runs/{run}/cancel"]["post"].is_object());

    // Pages and what is wrong.
    let id = run["run"]["id"].as_str().unwrap();
    let to_id = get(&port, "/runs/feature%2Fa%20b/");
    assert!(to_id.status == 303 && to_id.head.contains(&format!("location: /runs/{id}/")), "{}", to_id.head);
    for (path, status, reason) in [
        ("/compare/main/nothing", 404, "unknown run `nothing`"),
        ("/cases/s/other", 404, "No trial of s::other is recorded"),
        ("/runs/main/trial/x", 404, "no such trial"),
        ("/api/runs/main/trials/other", 404, "other"),
        ("/api/runs?lst=1", 400, "did you mean `last`?"),
        ("/api/runs?last=x", 400, "`last` must be a whole number of at most 1000"),
        ("/api/runs?last=1&last=2", 400, "`last` is given twice"),
        ("/api/runs?before=yesterday", 400, "`before` must be a time"),
        ("/api/runs/main/results?format=html", 400, "`format` must be one of json"),
        ("/api/none", 404, "no such page"),
        ("/api/compare/main/main", 400, "both sides are the run"),
    ] {
        let answer = get(&port, path);
        assert!(answer.status == status && answer.body.contains(reason), "{path}: {} {}", answer.status, answer.body);
    }
    let unknown = post(&port, "/api/runs", RUN, &json!({ "lable": "x" }));
    assert!(unknown.status == 400 && unknown.body.contains("did you mean `label`?"), "{}", unknown.body);
    assert_eq!(send(&port, "DELETE", "/api/runs", &token, "").status, 405);
    assert_eq!(
        send(&port, "POST", "/api/runs/main/pause", &format!("Authorization: Bearer {RUN}\r\n"), "").status,
        409
    );

    let taken = project.run(&["serve", "--listen", &format!("127.0.0.1:{port}")]).exits(3);
    assert!(taken.err.contains(&format!("cannot listen on 127.0.0.1:{port}")), "{}", taken.output());
    server.signal(Signal::SIGINT);
    let ended = server.end().exits(0);
    assert!(!ended.output().contains("0123456789abcdef"), "{}", ended.output());
}

#[test]
fn a_server_without_readers_or_a_name_does_not_start() {
    let project = Project::new(env!("CARGO_BIN_EXE_trialrun"));
    let refused = project.run(&["serve"]).exits(2);
    assert!(
        refused.err.contains("there is no token") && refused.err.contains("TRIALRUN_READ_TOKEN"),
        "{}",
        refused.err
    );
    let refused = project.run(&["serve", "--public", "--listen", "0.0.0.0:0"]).exits(2);
    assert!(refused.err.contains("needs the name under which browsers reach it"), "{}", refused.err);
    let refused = project.run(&["serve", "--public", "--state", "typo"]).exits(2);
    assert!(refused.err.contains("there is no record") && refused.err.contains("typo/runs.db"), "{}", refused.err);
    let short = project.env("TRIALRUN_RUN_TOKEN", "hunter2");
    let refused = short.run(&["serve"]).exits(2);
    assert!(refused.err.contains("at least 16 characters") && !refused.err.contains("hunter2"), "{}", refused.err);
    // Nothing is recorded yet, and a token that may run may also read.
    let project = Project::new(env!("CARGO_BIN_EXE_trialrun")).env("TRIALRUN_RUN_TOKEN", RUN);
    let (_server, port) = serve(&project, &[]);
    let get = |path: &str| send(&port, "GET", path, &format!("Authorization: Bearer {RUN}\r\n"), "");
    for path in ["/", "/cases", "/trend", "/progress", "/api/runs", "/api/queue"] {
        assert_eq!(get(path).status, 200, "{path}");
    }
    let nothing = get("/compare/previous/latest");
    assert!(nothing.status == 404 && nothing.body.contains("Nothing is recorded yet."), "{}", nothing.body);
}

#[test]
#[cfg_attr(not(has = "browser"), ignore = "needs a browser; run scripts/test")]
fn a_link_to_a_comparison_leads_through_the_pages_of_the_record() {
    let program = browser::installed();
    let project = project();
    let suite = |wanted: &str| {
        let suite = json!({ "name": format!("s {HOSTILE}"), "agent": "fake", "turns": [format!("hi {HOSTILE}")],
            "assertions": [{ "contains": wanted }] });
        project.write("s.json", &suite.to_string());
    };
    suite("hi");
    project.run(&["run", "s.json", "--label", "main"]).exits(0);
    suite("bye");
    project.run(&["run", "s.json", "--label", "pr-12"]).exits(1);
    let (_server, port) = serve(&project, &["--public"]);
    let mut browser = Browser::start(&program);
    let browser = &mut browser;
    browser.open(&format!("http://127.0.0.1:{port}/compare/main/pr-12"));
    browser.wait("document.querySelector('#top button')");
    assert!(text(browser, "h1").contains("pr-12"), "{}", text(browser, "h1"));
    // A trial of the comparison, and back to the list of runs.
    browser.evaluate("document.querySelector('#main a[href^=\"#/trial/\"]').click()");
    browser.wait("document.querySelector('.timeline')");
    browser
        .evaluate("[...document.querySelectorAll('#top a')].find((link) => link.textContent === 'All runs').click()");
    browser.wait("document.querySelector('h1')?.textContent === 'Runs'");
    assert_eq!(count(browser, "tbody tr"), 2);
    assert!(text(browser, "tbody tr").contains("pr-12"), "the newest first");
    // A run, and a trial of it.
    browser.evaluate("document.querySelector('tbody a').click()");
    wait_for_view(browser);
    browser.evaluate("document.querySelector('.trials a').click()");
    browser.wait("document.querySelector('.timeline .item')");
    assert!(text(browser, ".timeline").contains(HOSTILE));
    // The case, from the list of cases.
    browser.open(&format!("http://127.0.0.1:{port}/cases"));
    browser.wait("document.querySelectorAll('.marks a').length === 2");
    browser.evaluate("document.querySelector('tbody th a').click()");
    browser.wait("document.querySelector('.course')");
    assert_eq!((count(browser, ".course circle"), count(browser, "section tbody tr")), (2, 2));
    assert!(text(browser, "h1").contains("</script><script>"), "{}", text(browser, "h1"));
    for path in ["trend", "progress", "compare/main/nothing"] {
        browser.open(&format!("http://127.0.0.1:{port}/{path}"));
        browser.wait(&format!("location.pathname === '/{path}' && document.readyState === 'complete'"));
        assert_eq!(count(browser, "img, iframe, script"), 0, "{path}");
    }
    assert_eq!(browser.evaluate("window.hacked ?? null"), Value::Null);
    // The last page is an error, which the browser logs.
    browser.problems.retain(|problem| !problem.contains("404"));
    assert!(browser.problems.is_empty(), "{:?}", browser.problems);
}

#[test]
#[cfg_attr(not(has = "postgres"), ignore = "needs PostgreSQL; run scripts/test")]
fn a_client_starts_pauses_and_stops_runs_that_workers_run() {
    let url = PostgresServer::shared().url();
    let project = project().env("TRIALRUN_STATE", &url);
    let scenario = |id: &str, trials: usize, expected: &str| {
        format!(
            "scenario: {id}\ntrials: {trials}\nsystem_prompt: Say hello.\nagent: fake\nuser_prompt: |\n  hello\n  \
             !sleep 50ms\nassertions:\n- {{id: said, type: output_contains, pattern: {expected}}}\n"
        )
    };
    project.write("good.yaml", &scenario("good", 3, "hello")).write("bad.yaml", &scenario("bad", 1, "goodbye"));
    let (server, port) = serve(&project, &[]);
    let missing = post(&port, "/api/runs", RUN, &json!({ "paths": ["nothing.yaml"] }));
    assert!(missing.status == 422 && missing.body.contains("nothing.yaml"), "{} {}", missing.status, missing.body);

    project.write("talk.yaml", "name: talk\nturns:\n- says: hello\n  expct: []\n");
    let broken = post(&port, "/api/runs", RUN, &json!({ "paths": ["good.yaml", "talk.yaml"] }));
    assert!(broken.status == 422 && broken.body.contains("talk.yaml:4"), "{}", broken.body);
    project.write("tests/good.yaml", &scenario("good", 1, "hello")).write("tests/seven.yaml", "turns: 7\n");
    let broken = post(&port, "/api/runs", RUN, &json!({ "paths": ["tests"] }));
    assert!(broken.status == 422 && broken.body.contains("seven.yaml:1"), "{}", broken.body);

    let body = json!({ "paths": ["good.yaml", "bad.yaml"], "label": "pr-12", "agents": ["fake"] });
    let started = post(&port, "/api/runs", RUN, &body);
    assert_eq!(started.status, 201, "{}", started.body);
    let run = started.json()["run"].as_str().unwrap().to_owned();
    let queue = || get(&port, "/api/runs/pr-12").json()["queue"].clone();
    assert!(until(|| queue()["waits"][0]["for"] == "a worker"), "{}", queue());
    assert_eq!(queue()["waiting"], 4);
    assert!(get(&port, "/progress").body.contains("3 more wait for a worker"));
    let status = project.run(&["status", &run]).exits(0).out;
    assert!(status.contains("and 3 more wait for a worker\n  0 workers with 0 slots"), "{status}");

    assert_eq!(post(&port, "/api/runs/pr-12/pause", RUN, &json!({})).json()["state"], "paused");
    assert_eq!(post(&port, "/api/runs/pr-12/pause", RUN, &json!({})).status, 409);
    assert_eq!(post(&port, &format!("/api/runs/{run}/retry"), RUN, &json!({})).status, 409, "it is in progress");
    let worker = project.start(&["work", "--jobs", "2", "--label", "gpu"]);
    assert!(until(|| get(&port, "/api/queue").json()["workers"][0]["slots"] == 2));
    assert_eq!(queue()["waits"][0]["for"], "the run, which is paused, to continue");
    let page = get(&port, "/progress").body;
    assert!(page.contains("0 of 2") && page.contains("gpu"), "{page}");
    assert_eq!(post(&port, "/api/runs/pr-12/continue", RUN, &json!({})).json()["state"], "running");
    let state = |run: &str| get(&port, &format!("/api/runs/{run}")).json()["run"]["state"].clone();
    assert!(until(|| state(&run) == "finished"), "{}", get(&port, &format!("/api/runs/{run}")).body);
    assert_eq!(get(&port, "/api/runs/pr-12/results").json()["summary"]["passed"], 3);

    // Only what did not pass runs again.
    let again = post(&port, "/api/runs/pr-12/retry", RUN, &json!({ "label": "again" }));
    assert_eq!(again.status, 201, "{}", again.body);
    let again = again.json()["run"].as_str().unwrap().to_owned();
    assert!(until(|| state(&again) == "finished"));
    assert_eq!(get(&port, "/api/runs/again/trials").json()["trials"].as_array().unwrap().len(), 1);
    worker.signal(Signal::SIGTERM);
    worker.end();

    // A run that nobody works on is stopped, and goes on after the server has ended.
    let stopped = post(&port, "/api/runs", RUN, &json!({ "paths": ["good.yaml"] })).json();
    let stopped = stopped["run"].as_str().unwrap().to_owned();
    let trial = json!({ "trial": "no such trial" });
    assert!(until(|| post(&port, &format!("/api/runs/{stopped}/cancel"), RUN, &trial).status == 409));
    assert_eq!(post(&port, &format!("/api/runs/{stopped}/cancel"), RUN, &json!({})).json()["state"], "stopping");
    assert!(until(|| state(&stopped) == "interrupted"), "{}", state(&stopped));
    let resumed = post(&port, &format!("/api/runs/{stopped}/resume"), RUN, &json!({}));
    assert_eq!((resumed.status, &resumed.json()["run"]), (201, &json!(stopped)), "{}", resumed.body);
    server.signal(Signal::SIGTERM);
    server.end().exits(0);
    let status = || project.run(&["status", &stopped]).exits(0).out;
    assert!(status().contains("wait for a worker"), "{}", status());
    project.run(&["cancel", "--run", &stopped]).exits(0);
    assert!(until(|| !status().contains("running for")));
    project.no_process_is_left();
}
