//! Tests of bots behind HTTP whose program trialrun starts.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::net::TcpListener;

use serde_json::{Value, json};
use testkit::Project;

const PROGRAM: &str = env!("CARGO_BIN_EXE_trialrun");

/// Secret in the bot's environment; it must not be in its log.
const KEY: &str = "sk-test-canary-2b7c1a5d9e3f4068";

/// A bot that answers `hello` to everything. `$ENV{REQUESTS}` limits the number of answers before it ends; it no longer
/// listens when it gives the last one. `$ENV{DIES}` is the number of the message at which it ends without an answer. It
/// starts a child that never ends.
const BOT: &str = r#"
use strict; use IO::Socket::INET; $| = 1;
open(my $starts, '>>', 'starts.txt'); print $starts "$$\n"; close $starts;
my $socket = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => $ENV{PORT}, Listen => 9, ReuseAddr => 1) or die "no port";
my $child = fork(); if (!$child) { open(STDOUT, '>', '/dev/null'); exec 'tail', '-f', $ENV{MARK} }
print "my key is $ENV{BOT_KEY}\nlistening on $ENV{PORT}\n";
my $left = $ENV{REQUESTS} || 1000; my $served = 0;
while ($left > 0 && (my $client = $socket->accept)) {
  my ($head, $length) = ('', 0);
  while (my $line = <$client>) { $head .= $line; $length = $1 if $line =~ /content-length: *(\d+)/i; last if $line eq "\r\n" }
  read($client, my $body, $length) if $length;
  close $socket if $head =~ /^POST/ && $left == 1;
  exit 7 if $head =~ /^POST/ && ++$served == ($ENV{DIES} || 0);
  my $text = '{"message": "hello", "tool_calls": []}';
  print $client "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: " . length($text) . "\r\n\r\n$text";
  close $client; $left-- if $head =~ /^POST/;
}
"#;

/// Returns a port on which nothing listens.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Creates a project whose agent is started as `start` says, in addition to its command and variables.
fn project(port: u16, start: &Value, env: &Value) -> Project {
    let project = Project::new(PROGRAM);
    let mut variables = json!({"PORT": port.to_string(), "BOT_KEY": KEY, "MARK": mark(&project)});
    variables.as_object_mut().unwrap().extend(env.as_object().unwrap().clone());
    let mut keys = json!({"command": ["perl", "bot.pl"], "env": variables});
    keys.as_object_mut().unwrap().extend(start.as_object().unwrap().clone());
    let agent = json!({"type": "http", "url": format!("http://127.0.0.1:{port}/chat"), "start": keys});
    project.write("trialrun.config.json", &json!({"agent": agent}).to_string());
    project.write("bot.pl", BOT);
    project.write("tests/hello.yaml", "turns:\n  - says: Hi\nassertions:\n  - contains: hello\n");
    project
}

/// Returns a file that only the child of the project's bot names in its arguments.
fn mark(project: &Project) -> String {
    project.dir().join("trialrun.config.json").to_string_lossy().into_owned()
}

/// Returns `true` if a process of this machine has `argument` as its last argument.
fn runs(argument: &str) -> bool {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    processes.into_iter().any(|process| {
        let line = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).trim_end_matches('\0').ends_with(argument)
    })
}

fn lines(project: &Project, file: &str) -> Vec<String> {
    std::fs::read_to_string(project.dir().join(file)).unwrap_or_default().lines().map(str::to_owned).collect()
}

#[test]
fn a_bot_is_started_once_and_stopped_with_its_children_and_its_output_is_kept() {
    let port = free_port();
    for ready in [json!({}), json!({"ready": port}), json!({"ready": "/listening on \\d+/"})] {
        let project = project(port, &ready, &json!({}));
        let report = project.report(&["--trials", "3", "--jobs", "3"], 0);
        assert_eq!(report["summary"]["passed"], 3);
        assert_eq!(lines(&project, "starts.txt").len(), 1, "{ready}");
        assert!(!runs(&mark(&project)), "its child still runs");
        let log = lines(&project, ".trialrun/logs/http.log").join("\n");
        assert!(log.contains(&format!("listening on {port}")) && !log.contains(KEY), "{log}");
    }
}

#[test]
fn a_bot_that_has_ended_is_started_again_up_to_a_limit() {
    let port = free_port();
    let ending = project(port, &json!({"ready": "/listening/"}), &json!({"REQUESTS": "1"}));
    let report = ending.report(&["--trials", "5", "--jobs", "1", "--retries", "9"], 3);
    assert_eq!((&report["summary"]["passed"], &report["summary"]["broken"]), (&json!(4), &json!(1)));
    assert_eq!(lines(&ending, "starts.txt").len(), 4);
    let reason = report["trials"][4]["because"].as_str().unwrap();
    assert!(reason.contains("`perl bot.pl` was started 4 times and has ended again: exit code 0"), "{reason}");
}

#[test]
fn a_bot_that_dies_has_failed_unless_it_served_another_trial_before() {
    let port = free_port();
    for (dies, outcomes) in [("1", ["failed", "failed"]), ("2", ["passed", "broken"])] {
        let dying = project(port, &json!({"ready": "/listening/"}), &json!({"DIES": dies}));
        let code = if dies == "1" { 1 } else { 3 };
        let report = dying.report(&["--trials", "2", "--jobs", "1", "--retries", "0"], code);
        let trials = report["trials"].as_array().unwrap();
        assert_eq!([&trials[0]["outcome"], &trials[1]["outcome"]], outcomes.map(|outcome| json!(outcome)).each_ref());
        let reason = trials[1]["because"].as_str().unwrap_or_default();
        assert_eq!(reason.contains("has ended (exit code 7"), dies == "2", "{reason}");
    }
}

#[test]
fn a_bot_that_cannot_be_started_breaks_its_trials_with_the_reason() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let (port, taken_port) = (free_port(), taken.local_addr().unwrap().port());
    for (port, start, expected) in [
        (
            port,
            json!({"command": ["sh", "-c", "echo no database >&2; exit 4"]}),
            "ended before it was ready: exit code 4: no database",
        ),
        (
            port,
            json!({"command": "tail -f /dev/null", "timeout": "100ms"}),
            "was not ready within 0.1 s: nothing listens at http://127.0.0.1:",
        ),
        (port, json!({"ready": "/never/", "timeout": "1s"}), "was not ready within 1 s: no line matches /never/"),
        (port, json!({"command": ["no-such-program"]}), "`no-such-program` ended before it was ready"),
        (port, json!({"cwd": "nowhere"}), "there is no folder"),
        (taken_port, json!({}), "so `perl bot.pl` was not started; stop it, or remove `start`"),
    ] {
        let project = project(port, &start, &json!({}));
        let report = project.report(&["--trials", "2"], 3);
        assert_eq!(report["summary"]["broken"], 2, "{start}");
        for trial in report["trials"].as_array().unwrap() {
            let reason = trial["because"].as_str().unwrap();
            assert!(reason.contains(expected), "{start}: {reason}");
        }
    }
}
