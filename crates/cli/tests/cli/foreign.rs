//! The suites of other tools in the corpora of `suite`, run to their outcomes. One agent repeats its message, another says
//! "At the lake."; the judge approves of answers about a lake. The expected outcomes are in `outcomes/FORMAT.txt` beside the
//! corpora; set `TRIALRUN_UPDATE_EXPECTED=1` to rewrite them.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Map, Value, json};
use testkit::foreign::{compare, corpus, folder, formats, write};
use testkit::{Project, ScriptedProvider};

/// File with faults of the model, which neither agent has.
const UNABLE: (&str, &str) = ("evals", "own-keys.json");

/// Answers the questions of a request to the judge. The schema of the answer has the ids of the questions and the verdicts.
fn judgement(request: &Value) -> Value {
    let material = request["messages"][1]["content"].as_str().unwrap();
    let is_good = material.rsplit("part: ").next().unwrap().contains("lake");
    let schema = &request["response_format"]["json_schema"]["schema"]["properties"];
    let row = &schema["answers"]["items"]["properties"];
    let ids = row["id"]["enum"].as_array().unwrap();
    let value = |(name, shape): (&String, &Value)| {
        let choices = shape["enum"].as_array().map(Vec::as_slice).unwrap_or_default();
        let value = match (name.as_str(), shape["type"].as_str()) {
            ("quote", _) => json!(if is_good { "lake" } else { "" }),
            ("absent", _) => json!(!is_good),
            (_, Some("integer")) => (if is_good { choices.last() } else { choices.first() }).unwrap().clone(),
            _ => choices.get(usize::from(!is_good)).or(choices.first()).cloned().unwrap_or_else(|| json!("")),
        };
        (name.clone(), value)
    };
    let answer = |id: &Value| {
        let mut answer: Map<String, Value> = row.as_object().unwrap().iter().map(value).collect();
        answer.insert("id".to_owned(), id.clone());
        answer
    };
    let seal = material.rsplit('`').nth(1).unwrap();
    json!({"seal": seal, "answers": ids.iter().map(answer).collect::<Vec<_>>()})
}

/// Runs all files of a corpus that are not refused, and compares their outcomes with the expected ones.
fn check(format: &str, sandbox: &str) {
    let judge = ScriptedProvider::start(|request, answer| {
        if !request.line.contains("/chat/completions") {
            return answer.json(404, "", "{}");
        }
        let request: Value = serde_json::from_str(&request.body).unwrap();
        let is_judge = request["messages"][1]["content"].as_str().unwrap().contains("`seal`");
        let user = json!({"done": false, "message": "Where is the lake?", "reason": "It is not said."});
        let text = if is_judge { judgement(&request) } else { user }.to_string();
        let choice = json!({"message": {"role": "assistant", "content": text}, "finish_reason": "stop"});
        answer.json(
            200,
            "",
            &json!({"choices": [choice], "usage": {"prompt_tokens": 1, "completion_tokens": 1}}).to_string(),
        );
    });
    let url = format!("{}/v1", judge.url());
    let project =
        Project::new(env!("CARGO_BIN_EXE_trialrun")).env("OPENAI_API_KEY", "dummy").env("OPENAI_BASE_URL", &url);
    project.write(
        "trialrun.yaml",
        "agents: {lake: {type: subprocess, mode: oneshot, command: [sh, -c, echo At the lake.; echo 3 > sum.txt], input: stdin}}\n",
    );
    let read = std::fs::read_to_string(folder().join(format!("{format}.txt"))).unwrap();
    let is_refused = |name: &str| {
        UNABLE == (format, name)
            || read.split("\n\n").any(|part| part.starts_with(&format!("{name}\n")) && part.contains("\n  refused: "))
    };
    let mut outcomes: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut targets = Vec::new();
    for (name, content) in corpus(format) {
        if is_refused(&name) {
            outcomes.insert(name, vec!["refused".to_owned()]);
            continue;
        }
        let target = write(format, &project.dir().join(&name), &name, &content);
        targets.push(format!("{name}/{target}"));
        outcomes.insert(name, Vec::new());
    }
    let mut arguments = vec!["run", "--trials", "1", "--report", "json=report.json", "--sandbox", sandbox];
    arguments.extend(["--agent", "fake", "--agent", "lake", "--judge", "openai:j"]);
    arguments.extend(targets.iter().map(String::as_str));
    let ran = project.run(&arguments);
    assert!(matches!(ran.code, 1 | 3), "{}", ran.output());
    let report: Value = serde_json::from_str(&project.read("report.json")).unwrap();
    for trial in report["trials"].as_array().unwrap() {
        let suite = trial["suite"].as_str().unwrap();
        let known = outcomes.iter_mut().find(|(name, _)| suite.split('/').any(|part| part == **name));
        known.unwrap_or_else(|| panic!("{suite}")).1.push(outcome(trial));
    }
    let mut text = String::new();
    for (name, outcomes) in &mut outcomes {
        outcomes.sort();
        writeln!(text, "{name}\n  {}\n", outcomes.join("\n  ")).unwrap();
    }
    compare(&format!("outcomes/{format}.txt"), &text);
}

/// Describes the outcome of a trial in a line: which assertions are not met, and why a trial is broken.
fn outcome(trial: &Value) -> String {
    let text = |key: &str| trial[key].as_str().unwrap_or_default();
    let (_, arm) = text("id").split_once("::").unwrap();
    let mut line = format!("{arm}: {}", text("outcome"));
    for status in ["unmet", "undecided"] {
        let found = trial["findings"].as_array().unwrap().iter().filter(|found| found["status"] == status);
        let ids: Vec<&str> = found.map(|found| found["id"].as_str().unwrap()).collect();
        if !ids.is_empty() {
            write!(line, "; {status} {}", ids.join(", ")).unwrap();
        }
    }
    if text("outcome") == "broken" {
        write!(line, "; {}", text("because").lines().next().unwrap_or_default()).unwrap();
    }
    line
}

#[test]
#[cfg_attr(not(has = "graders"), ignore = "needs make, Python 3 and Node.js; run scripts/test")]
fn files_of_each_format_have_the_expected_outcomes() {
    formats().filter(|format| *format != "harbor").for_each(|format| check(format, "local"));
}

// Tasks have folders at absolute paths.
#[test]
#[cfg_attr(not(has = "isolation"), ignore = "needs a kernel that isolates processes; run scripts/test")]
fn tasks_of_harbor_have_the_expected_outcomes() {
    check("harbor", "isolated");
}
