//! Recorded end-to-end cases of ai-tester: the same scenario files, an agent that gives the recorded answers, and the
//! same verdicts. A case either agrees, or is listed in `vectors/e2e/differences.json` with the intended result and
//! the reason.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, missing_docs)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};

fn vectors() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors/e2e")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn parse(path: &Path) -> Value {
    serde_json::from_str(&read(path)).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Writes a program in place of `claude` that prints the script line by line as it receives messages.
fn write_agent(bin: &Path, lines: &Path, script: &Value) {
    let mut program = String::from(
        r#"#!/bin/sh
if [ "$1" = --version ]; then echo "2.1.332 (Claude Code)"; exit 0; fi
say() { sed "s|\$CWD|$PWD|g" "$lines/$1"; }
hear() {
  while IFS= read -r line; do
    case $line in
      *'"subtype":"initialize"'*)
        id=$(printf '%s' "$line" | sed 's/.*"request_id":"\([^"]*\)".*/\1/')
        printf '{"type":"control_response","response":{"subtype":"success","request_id":"%s","response":{}}}\n' "$id" ;;
      *'"type":"user"'*|*control_response*) return ;;
    esac
  done
  exit 0
}
"#,
    );
    program.push_str(&format!("lines='{}'\n", lines.display()));
    let mut messages = 0;
    let mut number = 0;
    let mut say = |program: &mut String, line: &Value| {
        number += 1;
        fs::write(lines.join(number.to_string()), format!("{line}\n")).unwrap();
        program.push_str(&format!("say {number}\n"));
    };
    for message in script.as_array().unwrap().iter().flat_map(|query| query.as_array().unwrap()) {
        if message.get("read").is_some() {
            program.push_str("hear\n");
        } else if let Some(text) = message.get("stderr") {
            fs::write(lines.join("stderr"), text.as_str().unwrap()).unwrap();
            program.push_str("cat \"$lines/stderr\" >&2\n");
        } else if message.get("throw").is_some() {
            program.push_str("exit 1\n");
        } else {
            // The recorded messages come from a mock that omitted their ids; real ones always have one.
            let mut message = message.clone();
            if message["type"] == "assistant" {
                messages += 1;
                message["message"]["id"] = json!(format!("msg_{messages}"));
            }
            say(&mut program, &message);
            // ai-tester answered questions in a separate message; the protocol requests permission first.
            for block in message["message"]["content"].as_array().into_iter().flatten() {
                if block["type"] == "tool_use"
                    && matches!(block["name"].as_str(), Some("AskUserQuestion" | "Questions"))
                {
                    let request = json!({"type": "control_request", "request_id": block["id"], "request": {
                        "subtype": "can_use_tool", "tool_name": block["name"], "input": block["input"],
                        "tool_use_id": block["id"], "requires_user_interaction": true}});
                    say(&mut program, &request);
                }
            }
        }
    }
    program.push_str("hear\n");
    let path = bin.join("claude");
    fs::write(&path, program).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Writes a program in place of `codex`. Each message gets its own process, which prints the script's events for it.
fn write_codex(bin: &Path, lines: &Path, script: &Value) {
    let queries = script.as_array().unwrap();
    for (number, query) in queries.iter().enumerate() {
        let events: String = query.as_array().unwrap().iter().map(|event| format!("{event}\n")).collect();
        fs::write(lines.join(number.to_string()), events).unwrap();
    }
    let program = format!(
        r#"#!/bin/sh
if [ "$1" = --version ]; then echo "codex-cli 0.171.0"; exit 0; fi
cat > /dev/null
number=$(cat '{lines}/count' 2> /dev/null || echo 0)
echo $((number + 1)) > '{lines}/count'
sed "s|\$CWD|$PWD|g" "{lines}/$number"
! grep -q turn.failed "{lines}/$number"
"#,
        lines = lines.display()
    );
    let path = bin.join("codex");
    fs::write(&path, program).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}

struct TestRun {
    output: Output,
    report: Option<Value>,
}

fn play(case: &Path) -> TestRun {
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path();
    let (bin, lines) = (dir.join("bin"), dir.join("lines"));
    for made in [&bin, &lines] {
        fs::create_dir(made).unwrap();
    }
    let script = parse(&case.join("script.json"));
    if read(&case.join("scenario.yaml")).contains("runtime: codex") {
        write_codex(&bin, &lines, &script);
    } else {
        write_agent(&bin, &lines, &script);
    }
    fs::copy(case.join("scenario.yaml"), dir.join("scenario.yaml")).unwrap();
    fs::write(dir.join(".ai-tester.yaml"), format!("skills_dir: {}\n", vectors().join("skills").display())).unwrap();
    let extra: Vec<String> = serde_json::from_value(parse(&case.join("args.json"))).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_trialrun"))
        .args(["run", "--file", "scenario.yaml", "--report", "terminal", "--report", "json=report.json"])
        .args(["--retries", "0"])
        .args(extra)
        .current_dir(dir)
        .env_clear()
        .env("PATH", format!("{}:/usr/local/bin:/usr/bin:/bin", bin.display()))
        .env("HOME", dir)
        .env("TMPDIR", dir)
        .env("ANTHROPIC_API_KEY", "sk-test")
        .env("OPENAI_API_KEY", "sk-test")
        .output()
        .unwrap();
    let report = fs::read_to_string(dir.join("report.json")).ok().map(|text| serde_json::from_str(&text).unwrap());
    TestRun { output, report }
}

/// Returns the facts recorded by ai-tester and those recorded now, in the same form.
fn facts(original: &Value, trial: &Value) -> (Value, Value) {
    let calls: Vec<Value> = original["turns"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|turn| turn["toolCalls"].as_array().unwrap())
        .map(|call| json!([call["name"], call["resultIsError"]]))
        .collect();
    let cost = &original["cost"];
    let findings = |list: &Value, met: fn(&Value) -> bool| -> Vec<Value> {
        list.as_array().unwrap().iter().map(|one| json!([one["id"], one["type"], met(one)])).collect()
    };
    let then = json!({
        "turns": original["runner"]["turnsUsed"],
        "answer": original["finalOutput"],
        "calls": calls,
        "tokens": [cost["inputTokens"], cost["outputTokens"], cost["cacheCreationTokens"], cost["cacheReadTokens"]],
        "session": original["runner"]["sessionId"],
        "findings": findings(&original["assertions"], |one| one["pass"] == true),
    });
    let usage = &trial["usage"];
    let calls: Vec<Value> =
        trial["tool_calls"].as_array().unwrap().iter().map(|call| json!([call["name"], call["is_error"]])).collect();
    let now = json!({
        "turns": trial["turn_count"],
        "answer": trial["answer"],
        "calls": calls,
        "tokens": [usage["input"], usage["output"], usage["cache_write"], usage["cache_read"]],
        "session": trial["session_id"],
        "findings": findings(&trial["findings"], |one| one["status"] == "met"),
    });
    (then, now)
}

#[test]
fn recorded_cases_reach_the_recorded_or_the_intended_verdict() {
    let differences = parse(&vectors().join("differences.json"));
    let mut cases: Vec<PathBuf> = fs::read_dir(vectors())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.join("scenario.yaml").is_file())
        .collect();
    cases.sort();
    let (mut agree, mut listed, mut wrong) = (0, 0, Vec::new());
    for case in &cases {
        let name = case.file_name().unwrap().to_str().unwrap();
        let played = play(case);
        let exit = i64::from(played.output.status.code().unwrap_or(-1));
        let recorded: i64 = read(&case.join("exit_code")).trim().parse().unwrap();
        let output = || {
            format!(
                "{}{}",
                String::from_utf8_lossy(&played.output.stdout),
                String::from_utf8_lossy(&played.output.stderr)
            )
        };
        match differences.get(name) {
            Some(difference) if exit == recorded => {
                wrong.push(format!("{name} agrees, but is listed: {difference}"));
            }
            Some(difference) if difference["exit"] == exit => {
                listed += 1;
                // The agent's actions are nevertheless the same.
                if difference["same"] == true {
                    let report = played.report.expect("a report");
                    let (mut then, mut now) = facts(&parse(&case.join("trace.json")), &report["trials"][0]);
                    then["findings"].take();
                    now["findings"].take();
                    if then != now {
                        wrong.push(format!("{name}\n  recorded {then}\n  now      {now}"));
                    }
                }
            }
            Some(difference) => {
                wrong.push(format!("{name}: exit {exit}, intended {}\n{}", difference["exit"], output()));
            }
            None if exit == recorded => {
                let report = played.report.expect("a report");
                let (then, now) = facts(&parse(&case.join("trace.json")), &report["trials"][0]);
                if then == now {
                    agree += 1;
                } else {
                    wrong.push(format!("{name}\n  recorded {then}\n  now      {now}"));
                }
            }
            None => wrong.push(format!("{name}: exit {exit}, recorded {recorded}\n{}", output())),
        }
    }
    // Written past the capture of passing tests, because the count is for whoever reads the test output.
    let counted =
        format!("ai-tester end to end: {agree} agree + {listed} listed = {} of {}", agree + listed, cases.len());
    std::io::Write::write_all(&mut std::io::stdout(), format!("\n{counted}\n").as_bytes()).unwrap();
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    assert_eq!(differences.as_object().unwrap().len(), listed, "every listed difference belongs to a case");
}
