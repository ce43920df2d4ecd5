//! A thousand planted secrets, which an agent prints in every form that `docs/masking.md` covers, also split across
//! the chunks of a stream. None of them appears in the record, in a report, in a page or in a message.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write as _};
use std::net::TcpListener;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use flate2::read::DeflateDecoder;
use nix::sys::signal::Signal;
use serde_json::json;
use testkit::Project;

const PROGRAM: &str = env!("CARGO_BIN_EXE_trialrun");

/// Number of secrets with known names, which are variables of the cases.
const NAMED: usize = 500;
/// Number of keys that are recognised by their shape.
const SHAPED: usize = 500;
/// Number of cases over which the secrets are distributed.
const CASES: usize = 10;

/// Part of every secret. It is in the middle, so that any fragment of a secret that is long enough to be recognised
/// contains part of it.
const MARK: &str = "QzCanaryXk";

fn named(number: usize) -> String {
    format!("v{number:03}{MARK}{:08x}", number.wrapping_mul(2_654_435_761) & 0xffff_ffff)
}

fn shaped(number: usize) -> String {
    format!("ghp_{MARK}{:026x}", (number as u128 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c) & ((1 << 104) - 1))
}

fn hex(text: &str) -> String {
    text.bytes().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

/// Returns the text with each character escaped after `before`, such as `\u0041`.
fn escaped(text: &str, before: &str) -> String {
    text.bytes().map(|byte| format!("{before}{byte:02x}")).collect()
}

/// Returns the text as HTML entities.
fn entities(text: &str) -> String {
    text.bytes().map(|byte| format!("&#x{byte:02x};")).collect()
}

/// The secrets of a case, each in one of the forms in which it must be recognised.
fn leaks(case: usize) -> Vec<String> {
    let own = |count: usize| (0..count).filter(move |number| number % CASES == case);
    let named = own(NAMED).map(|number| {
        let secret = named(number);
        match number / CASES % 16 {
            0 => STANDARD.encode(&secret),
            1 => STANDARD.encode(format!("a{secret}")),
            2 => STANDARD.encode(format!("ab{secret}")),
            3 => hex(&secret),
            4 => escaped(&secret, "\\u00"),
            5 => escaped(&secret, "%"),
            6 => secret.chars().flat_map(|letter| [letter, '\u{200b}']).collect(),
            7 => format!("{}\u{1b}[1m{}", &secret[..8], &secret[8..]),
            8 => hex(&secret).to_uppercase(),
            9 => escaped(&secret, "%").to_uppercase(),
            10 => URL_SAFE.encode(format!("?>{secret}")),
            11 => escaped(&secret, "\\x"),
            12 => entities(&secret),
            13 => escaped(&secret, "\\\\u00"),
            _ => secret,
        }
    });
    let shaped = own(SHAPED).map(|number| {
        let secret = shaped(number);
        match number / CASES % 5 {
            0 => escaped(&secret, "\\u00"),
            1 => escaped(&secret, "%"),
            _ => secret,
        }
    });
    named.chain(shaped).collect()
}

/// Returns the mark in every form in which it could appear.
fn signs() -> Vec<String> {
    let mut signs = vec![MARK.to_owned(), hex(MARK), hex(MARK).to_uppercase()];
    signs.extend(["\\u00", "%", "\\x", "\\\\u00"].map(|before| escaped(MARK, before)));
    signs.extend([escaped(MARK, "%").to_uppercase(), entities(MARK)]);
    for offset in 0..3 {
        // The first and last letters depend on the bytes next to the mark.
        let encoded = STANDARD.encode(format!("{}{MARK}", "a".repeat(offset)));
        let encoded = encoded.trim_end_matches('=');
        signs.push(encoded[(offset * 8).div_ceil(6)..encoded.len() - 1].to_owned());
    }
    signs
}

/// Removes characters that readers do not see, because these must not hide a secret.
fn bare(text: &str) -> String {
    text.replace("\u{1b}[1m", "").replace("\\u200b", "").replace('\u{200b}', "")
}

#[track_caller]
fn assert_clean(what: &str, bytes: &[u8]) {
    let bare = bare(&String::from_utf8_lossy(bytes));
    for sign in signs() {
        if let Some(offset) = bare.find(&sign) {
            let near: String = bare[..offset].chars().rev().take(100).collect::<Vec<_>>().into_iter().rev().collect();
            panic!("{what} contains {sign} after {near}");
        }
    }
}

/// Returns the inflated transcripts of a page.
fn inflated(page: &str) -> Vec<u8> {
    let mut all = Vec::new();
    let chunks = page.split("<script type=\"text/plain\" id=\"t").skip(1);
    for chunk in chunks {
        let base64 = chunk.split_once('>').unwrap().1.split_once('<').unwrap().0;
        let bytes = STANDARD.decode(base64).unwrap();
        DeflateDecoder::new(&bytes[..]).read_to_end(&mut all).unwrap();
    }
    all
}

fn files_below(folder: &Path, each: &mut dyn FnMut(&Path)) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { files_below(&path, each) } else { each(&path) }
    }
}

const REPORTS: [(&str, &str); 11] = [
    ("json", "out.json"),
    ("jsonl", "out.jsonl"),
    ("markdown", "out.md"),
    ("html", "out.html"),
    ("junit", "out.xml"),
    ("junit:gitlab", "out-gitlab.xml"),
    ("junit:jenkins", "out-jenkins.xml"),
    ("tap", "out.tap"),
    ("ctrf", "out.ctrf"),
    ("github", "out-github.txt"),
    ("gitlab", "out-gitlab.json"),
];

/// Runs the cases and checks all output. Returns the number of masks in the event stream.
fn masks_of_run(project: &Project, agent: &str) -> usize {
    let reports: Vec<String> = REPORTS.iter().map(|(kind, file)| format!("{kind}=reports/{file}")).collect();
    let mut arguments = vec!["run", "cases", "--agent", agent, "--retries", "0", "--artifacts", "reports/artifacts"];
    arguments.extend(["--report", "terminal", "--show-evidence"]);
    arguments.extend(reports.iter().flat_map(|report| ["--report", report]));
    fs::create_dir_all(project.dir().join("reports")).unwrap();
    let ran = project.run(&arguments).exits(1);
    assert_clean("the terminal", ran.output().as_bytes());
    let mut files = 0;
    let mut check = |path: &Path| {
        files += 1;
        assert_clean(&path.display().to_string(), &fs::read(path).unwrap());
    };
    files_below(&project.dir().join("reports"), &mut check);
    files_below(&project.dir().join(".trialrun"), &mut check);
    assert!(files > 50, "{files}");
    let transcripts = inflated(&project.read("reports/out.html"));
    assert!(transcripts.len() > 10_000);
    assert_clean("a transcript of the page", &transcripts);
    // The record is compressed, but it holds the same events.
    let events = project.run(&["report", "--format", "jsonl"]).exits(0).out;
    assert_clean("the recorded events", events.as_bytes());
    events.matches("[masked]").count()
}

/// Checks what every other command shows of the run, and what it writes.
fn views(project: &Project) {
    for (kind, _) in REPORTS {
        assert_clean(kind, project.run(&["report", "--format", kind]).output().as_bytes());
    }
    served(project);
    let check = |arguments: &[&str]| assert_clean(&arguments.join(" "), project.run(arguments).output().as_bytes());
    let file = |name: &str| assert_clean(name, project.read(name).as_bytes());
    check(&["regrade", "latest"]);
    for format in ["terminal", "markdown", "json", "html"] {
        check(&["compare", "previous", "latest", "--format", format]);
    }
    for command in ["history", "trend", "status", "config"] {
        check(&[command]);
        check(&[command, "--json"]);
    }
    check(&["history", "--cases"]);
    for case in 0..CASES {
        for option in [&[][..], &["--json"], &["--diff"], &["--step", "1"], &["--step", "2"]] {
            check(&[&["show", &format!("previous/case-{case}")], option].concat());
        }
    }
    check(&["report", "previous", "--report", "otlp=out-otlp.jsonl"]);
    file("out-otlp.jsonl");
    let summary = project.dir().join("summary.md");
    let mut github = project.command(&["report", "previous", "--format", "github"]);
    let annotations = github.env("GITHUB_STEP_SUMMARY", &summary).output().unwrap();
    assert_clean("the annotations", &annotations.stdout);
    file("summary.md");
    // The exported file is compressed; it contains the record.
    check(&["export", "previous", "run.trialrun"]);
    assert_clean("an exported file", &fs::read(project.dir().join("run.trialrun")).unwrap());
    check(&["import", "run.trialrun", "--state", "other"]);
    assert_clean(
        "an imported run",
        project.run(&["report", "--format", "jsonl", "--state", "other"]).output().as_bytes(),
    );
}

/// Checks the responses of `view`.
fn served(project: &Project) {
    let mut server = project.start(&["view", "--no-open"]);
    let line = server.line_with("http://");
    let address = line.split_whitespace().find_map(|word| word.strip_prefix("http://")).unwrap();
    let (host, path) = address.split_once('/').unwrap();
    let get = |page: &str| crate::view::get(host, &format!("/{path}{page}"));
    let index = get("index");
    assert_clean("the index of `view`", &index);
    assert_clean("the page of `view`", &get(""));
    let index: serde_json::Value = serde_json::from_slice(&index).unwrap();
    let trials = index["trials"].as_array().unwrap();
    assert_eq!(trials.len(), CASES);
    for trial in trials {
        let id = trial["id"].as_str().unwrap().replace('#', "%23");
        let mut transcript = Vec::new();
        DeflateDecoder::new(&get(&format!("trial/{id}"))[..]).read_to_end(&mut transcript).unwrap();
        assert!(!transcript.is_empty());
        assert_clean("a transcript of `view`", &transcript);
    }
    server.signal(Signal::SIGINT);
    assert_clean("the messages of `view`", server.end().exits(0).err.as_bytes());
}

/// Creates a project whose cases have the secrets as variables and ask the agent to print them.
fn project() -> Project {
    let project = Project::new(PROGRAM);
    for case in 0..CASES {
        let variables: String = (0..NAMED)
            .filter(|number| number % CASES == case)
            .map(|number| format!("    CANARY_{number}_TOKEN: {}\n", named(number)))
            .collect();
        let scenario = format!(
            "name: case-{case}\nturns: [leak {case}]\nfixtures:\n  git_init: true\n  env:\n{variables}\
             assertions:\n  - contains: no such answer\n"
        );
        project.write(&format!("cases/case-{case}.yaml"), &scenario);
    }
    project
}

#[test]
fn a_secret_that_is_not_masked_would_be_found_in_every_form() {
    for leak in (0..CASES).flat_map(leaks) {
        let bare = bare(&leak);
        assert!(signs().iter().any(|sign| bare.contains(sign)), "{leak}");
    }
}

#[test]
fn a_thousand_secrets_in_answers_calls_files_and_messages_appear_nowhere() {
    let project = project();
    for case in 0..CASES {
        let leaks = leaks(case);
        let calls: Vec<_> = leaks
            .iter()
            .map(|leak| json!({ "name": "print", "arguments": { "text": leak }, "result": format!("it is {leak}") }))
            .collect();
        let answer = json!({ "text": leaks.join("\n"), "tool_calls": calls });
        project.write(&format!("leaks/{case}.json"), &format!("{answer}\n"));
        project.write(&format!("leaks/{case}.txt"), &(leaks.join("\n") + "\n"));
        let plain: Vec<String> = (0..NAMED).filter(|number| number % CASES == case).map(named).collect();
        project.write(&format!("leaks/{case}.plain"), &(plain.join("\n") + "\n"));
    }
    project.write(
        "agent.sh",
        "read -r message\ncase=$(printf %s \"$message\" | sed 's/.*leak \\([0-9]*\\).*/\\1/')\n\
         base64 < \"$1/leaks/$case.plain\" >&2\nbase64 < \"$1/leaks/$case.plain\" | fold -w 20\n\
         cat \"$1/leaks/$case.txt\" >&2\ncat \"$1/leaks/$case.txt\"\ncp \"$1/leaks/$case.txt\" leaked.txt\n\
         cat \"$1/leaks/$case.json\"\n",
    );
    project.write("trialrun.yaml", "agents:\n  leaky: { type: subprocess, command: [sh, agent.sh, '{project}'] }\n");
    let masks = masks_of_run(&project, "leaky");
    assert!(masks > 3 * (NAMED + SHAPED), "{masks}");
    views(&project);
}

/// Answers each request with the secrets of its case as server-sent events with three letters each.
fn streaming_bot() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let (mut line, mut length) = (String::new(), 0);
            while reader.read_line(&mut line).is_ok_and(|count| count > 2) {
                let header = line.to_ascii_lowercase();
                length = header.strip_prefix("content-length:").map_or(length, |value| value.trim().parse().unwrap());
                line.clear();
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            let body = String::from_utf8(body).unwrap();
            let Some((_, rest)) = body.split_once("leak ") else { continue };
            let case = rest[..1].parse().unwrap();
            let text: Vec<char> = leaks(case).join("\n").chars().collect();
            let mut answer =
                "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n".to_owned();
            for piece in text.chunks(3) {
                let delta = json!({ "choices": [{ "delta": { "content": piece.iter().collect::<String>() } }] });
                let _ = write!(answer, "data: {delta}\n\n");
            }
            answer.push_str("data: [DONE]\n\n");
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    format!("http://{address}/chat")
}

#[test]
fn a_thousand_secrets_split_across_the_chunks_of_a_stream_appear_nowhere() {
    let project = project();
    let bot = streaming_bot();
    project.write("trialrun.yaml", &format!("agents:\n  bot: {{ type: http, url: '{bot}', stream: true }}\n"));
    let masks = masks_of_run(&project, "bot");
    assert!(masks > NAMED + SHAPED, "{masks}");
}
