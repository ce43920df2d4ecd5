//! Recorded trials of `chat` with a judge: replayed, continued from a step, and bisected. The provider is a server on
//! loopback that knows nothing about trialrun.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use serde_json::{Value, json};
use testkit::{Answer, Project, ReceivedRequest, ScriptedProvider};

const CASE: &str = "scenario: writes\nsystem_prompt: Work.\nuser_prompt: write both files\nagent: chat\n\
    assertions:\n  - {id: second, type: file_contains, path: b.txt, pattern: two}\n  \
    - {id: kind, type: sentiment, expected: friendly}\n";

/// Sends an answer in the Chat Completions format.
fn completion(answer: &mut Answer, content: &Value) {
    let chunk = |delta: &Value, stop: Value, usage: Value| {
        let chunk = json!({"id": "c_1", "object": "chat.completion.chunk", "created": 1, "model": "m",
            "choices": [{"index": 0, "delta": delta, "finish_reason": stop}], "usage": usage});
        format!("data: {chunk}\n\n")
    };
    let usage = json!({"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110});
    let stop = if content["tool_calls"].is_array() { "tool_calls" } else { "stop" };
    let events = [chunk(content, Value::Null, Value::Null), chunk(&json!({}), json!(stop), usage)].concat();
    answer.events(&format!("{events}data: [DONE]\n\n"));
}

fn call(number: usize, command: &str) -> Value {
    let function = json!({"name": "Bash", "arguments": json!({"command": command}).to_string()});
    json!({"role": "assistant", "tool_calls": [{"index": 0, "id": format!("call_{number}"), "type": "function",
        "function": function}]})
}

/// Plays the models: `good` writes two files, and `bad` writes the second one wrong. Neither checks it. Other models
/// judge.
fn model(request: &ReceivedRequest, answer: &mut Answer) {
    let asked: Value = serde_json::from_str(&request.body).unwrap();
    let results = request.body.matches("\"role\":\"tool\"").count();
    let content = match (asked["model"].as_str().unwrap(), results) {
        ("good" | "bad", 0) => call(0, "echo one > a.txt"),
        ("good", 1) => call(1, "echo two > b.txt"),
        ("bad", 1) => call(1, "echo three > b.txt"),
        ("good" | "bad", _) => json!({"role": "assistant", "content": "Done, my friend."}),
        _ => {
            let is_seal = |word: &&str| word.len() == 12 && word.starts_with("a0");
            let seal = request.body.split(|char: char| !char.is_ascii_alphanumeric()).find(is_seal).unwrap();
            let row = json!({"id": "c1", "quote": "my friend", "reasoning": "Kind.", "verdict": "met", "score": 5});
            json!({"role": "assistant", "content": json!({"seal": seal, "answers": [row]}).to_string()})
        }
    };
    completion(answer, &content);
}

fn project() -> Project {
    let project = Project::new(env!("CARGO_BIN_EXE_trialrun"));
    project.write("case.yaml", CASE);
    project
}

fn arguments<'a>(url: &'a str, model: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let own = ["run", "case.yaml", "--model", model, "--base-url", url, "--judge", "compatible:judge"];
    [&own[..], &["--judge-base-url", url, "--report", "json"], more].concat()
}

fn findings(trial: &Value) -> Vec<(&str, &str)> {
    let findings = trial["findings"].as_array().unwrap().iter();
    findings.map(|found| (found["id"].as_str().unwrap(), found["status"].as_str().unwrap())).take(2).collect()
}

const NOBODY: &str = "http://127.0.0.1:9";

#[test]
fn chat_and_its_judge_are_replayed_without_a_provider() {
    let project = project();
    {
        let provider = ScriptedProvider::start(model);
        let more = ["--cassette", "record", "--trials", "3"];
        let report = project.run(&arguments(&provider.url(), "compatible:good", &more)).exits(0).json();
        assert_eq!(provider.asked().len(), 12, "three answers and one judgement for each trial");
        let file = "cassettes/case/writes@chat-compatible-good-11344b.jsonl.zst";
        let used = json!({"file": file, "recorded": true, "replayed": 0, "live": 4});
        assert_eq!(report["trials"][0]["cassette"], used);
        let summary = project.run(&["report"]).exits(0).out;
        assert!(summary.contains("cassettes  recorded 1 cassette in cassettes: commit it\n"), "{summary}");
        let page = project.run(&["report", "--format", "markdown"]).exits(0).out;
        assert!(page.contains("- Cassettes: recorded 1 cassette in cassettes: commit it\n"), "{page}");
        // A fourth trial is new.
        let more = ["--cassette", "auto", "--trials", "4"];
        project.run(&arguments(&provider.url(), "compatible:good", &more)).exits(0);
        let summary = project.run(&["report"]).exits(0).out;
        let line = "cassettes  12 requests replayed, 4 new; recorded 1 cassette in cassettes: commit it\n";
        assert!(summary.contains(line), "{summary}");
    }
    let mut reports = Vec::new();
    for jobs in ["8", "8", "1"] {
        let more = ["--cassette", "replay", "--trials", "3", "--jobs", jobs];
        let report = project.run(&arguments(NOBODY, "compatible:good", &more)).exits(0).json();
        let trials = report["trials"].as_array().unwrap();
        assert_eq!(findings(&trials[0]), [("second", "met"), ("kind", "met")], "{report:#}");
        let essence = |trial: &Value| json!([trial["id"], trial["outcome"], trial["usage"], trial["judge_usage"]]);
        reports.push(trials.iter().map(essence).collect::<Vec<_>>());
    }
    assert!(reports.windows(2).all(|two| two[0] == two[1]), "{reports:#?}");
    // The cassette has only four recordings.
    let more = ["--cassette", "replay", "--trials", "5"];
    let report = project.run(&arguments(NOBODY, "compatible:good", &more)).exits(3).json();
    assert_eq!((&report["summary"]["passed"], &report["summary"]["stale"]), (&json!(4), &json!(1)), "{report:#}");
}

#[test]
fn another_criterion_makes_the_judgement_stale() {
    let project = project();
    let provider = ScriptedProvider::start(model);
    project.run(&arguments(&provider.url(), "compatible:good", &["--cassette", "record"])).exits(0);
    drop(provider);
    project.write("case.yaml", &CASE.replace("expected: friendly", "expected: rude"));
    let report = project.run(&arguments(NOBODY, "compatible:good", &["--cassette", "replay"])).exits(3).json();
    let because = report["trials"][0]["because"].as_str().unwrap();
    assert!(because.contains("(judge)") && because.contains("rude"), "{because}");
}

#[test]
fn automatic_recording_asks_only_for_what_is_new() {
    let project = project();
    let provider = ScriptedProvider::start(model);
    let (url, more) = (provider.url(), ["--cassette", "auto"]);
    let asked = || {
        let before = provider.asked().len();
        project.run(&arguments(&url, "compatible:good", &more)).exits(0);
        provider.asked().len() - before
    };
    assert_eq!(asked(), 4);
    assert_eq!(asked(), 0);
    project.write("case.yaml", &CASE.replace("expected: friendly", "expected: kind"));
    assert_eq!(asked(), 1, "only the judge");
    assert_eq!(asked(), 0);
    let ci = project.env("CI", "true");
    ci.write("case.yaml", &CASE.replace("write both", "write the two"));
    let report = ci.run(&arguments(&url, "compatible:good", &more)).exits(3).json();
    assert_eq!(report["summary"]["stale"], 1);
    let refused = ci.run(&arguments(&url, "compatible:good", &["--cassette", "record"])).exits(2);
    assert!(refused.err.contains("cassettes are not recorded in CI"), "{}", refused.output());
}

#[test]
fn a_damaged_cassette_breaks_its_trials_and_is_replaced_by_recording() {
    let project = project();
    let provider = ScriptedProvider::start(model);
    let url = provider.url();
    project.run(&arguments(&url, "compatible:good", &["--cassette", "record"])).exits(0);
    let listed = project.run(&["cassettes", "case.yaml", "--model", "compatible:good", "--json"]).exits(0).json();
    assert_eq!(listed["cassettes"][0]["state"], "current", "{listed:#}");
    let file = listed["cassettes"][0]["file"].as_str().unwrap().to_owned();
    let list = |target: &str| project.run(&["cassettes", target, "--model", "compatible:good", "--json"]);
    assert!(list("nonexist").exits(2).err.contains("nonexist"));
    let of_deleted = project.dir().join("cassettes/deleted/writes@chat.jsonl.zst");
    project.write("cassettes/deleted/writes@chat.jsonl.zst", "");
    assert_eq!(list("case.yaml").exits(0).json()["unused"], json!([]), "other files may use it");
    assert_eq!(list(".").exits(0).json()["unused"], json!([of_deleted]));
    std::fs::write(&file, "not a cassette").unwrap();
    let report = project.run(&arguments(&url, "compatible:good", &["--cassette", "replay"])).exits(3).json();
    assert_eq!(report["trials"][0]["outcome"], "broken");
    assert!(report["trials"][0]["because"].as_str().unwrap().contains("`record`"), "{report:#}");
    project.run(&arguments(&url, "compatible:good", &["--cassette", "record"])).exits(0);
    project.run(&arguments(NOBODY, "compatible:good", &["--cassette", "replay"])).exits(0);
    // Without an address too.
    let own = ["run", "case.yaml", "--model", "compatible:good", "--judge", "compatible:judge", "--cassette", "replay"];
    project.run(&own).exits(0);
}

#[test]
fn a_secret_in_an_answer_keeps_a_cassette_from_being_written() {
    let project = project().env("SERVICE_API_KEY", "correct-horse-battery");
    let provider = ScriptedProvider::start(|_, answer| {
        completion(answer, &json!({"role": "assistant", "content": "The key is correct-horse-battery."}));
    });
    let ran = project.run(&arguments(&provider.url(), "compatible:good", &["--cassette", "record"]));
    let trial = ran.json()["trials"][0].clone();
    assert!(trial["warnings"][0].as_str().unwrap().contains("contains a secret"), "{trial:#}");
    assert!(!project.dir().join("cassettes/case").exists());
    assert!(!ran.output().contains("correct-horse"));
}

#[test]
fn a_trial_goes_on_from_a_step_with_another_model() {
    let project = project();
    let provider = ScriptedProvider::start(model);
    let url = provider.url();
    project.run(&arguments(&url, "compatible:bad", &["--cassette", "record", "--label", "bad"])).exits(1);
    let before = provider.asked().len();
    let ran = project.run(&["rerun", "bad/case::writes", "--from", "2", "--model", "compatible:good", "--times", "2"]);
    assert!(ran.output().contains("repeating 1 answer of"), "{}", ran.output());
    let ran = ran.exits(0);
    assert!(ran.out.contains("2 trials passed"), "{}", ran.output());
    assert_eq!(provider.asked().len() - before, 6, "two answers and a judgement for each");
    project.run(&["rerun", "bad/case::writes", "--from", "3", "--model", "compatible:good"]).exits(1);
    let refused = project.run(&["rerun", "latest/case::writes", "--from", "3"]).exits(2);
    assert!(refused.err.contains("it repeated a recorded trial itself"), "{}", refused.output());
    let refused = project.run(&["rerun", "bad/case::writes", "--from", "4"]).exits(2);
    assert!(refused.err.contains("its agent sent 3 requests"), "{}", refused.output());
    // Without a run, the newest one that can be repeated.
    project.run(&["rerun", "case::writes", "--from", "3"]).exits(1);
    let same = ["cassettes", "case.yaml", "--model", "compatible:bad", "--base-url", &url, "--refresh", "all"];
    let judged = [&same[..], &["--judge", "compatible:judge", "--judge-base-url", &url]].concat();
    project.run(&judged).exits(1);
    project.run(&["rerun", "latest/case::writes", "--from", "2", "--model", "compatible:good"]).exits(0);
    let refused = project.run(&["rerun", "bad/case::writes", "--from", "2"]).exits(2);
    assert!(refused.err.contains("a recording of another run"), "{}", refused.output());
    project.run(&arguments(&url, "compatible:good", &["--label", "unrecorded"])).exits(0);
    let refused = project.run(&["rerun", "unrecorded/case::writes", "--from", "1"]).exits(2);
    assert!(refused.err.contains("--cassette record"), "{}", refused.output());
}

#[test]
fn bisect_finds_the_step_that_decides() {
    let project = project();
    let provider = ScriptedProvider::start(model);
    let url = provider.url();
    project.run(&arguments(&url, "compatible:bad", &["--cassette", "record", "--label", "bad"])).exits(1);
    project.run(&arguments(&url, "compatible:good", &["--cassette", "record", "--label", "good"])).exits(0);
    let found = project.run(&["bisect", "good", "bad", "case::writes", "--json"]).exits(0).json();
    assert_eq!((&found["step"], &found["steps"]), (&json!(2), &json!(3)), "{found:#}");
    assert!(found["failed"]["did"].as_str().unwrap().contains("echo three"), "{found:#}");
    assert!(found["passed"]["did"].as_str().unwrap().contains("echo two"), "{found:#}");
    let text = project.run(&["bisect", "bad", "good", "writes"]).exits(0);
    assert!(text.out.contains("step 2 of 3 is decisive"), "{}", text.output());
    let refused = project.run(&["bisect", "good", "good", "writes"]).exits(2);
    assert!(refused.err.contains("one trial must have passed"), "{}", refused.output());
}

/// A program that asks its model with the address and the key from its environment.
const PROGRAM: &str = r#"
const chunks = [];
process.stdin.on("data", (chunk) => chunks.push(chunk)).on("end", async () => {
  const response = await fetch(process.env.OPENAI_BASE_URL + "/chat/completions", {
    method: "POST",
    headers: { authorization: "Bearer " + process.env.OPENAI_API_KEY, "content-type": "application/json" },
    body: JSON.stringify({ model: "answers", messages: [{ role: "user", content: Buffer.concat(chunks).toString() }] }),
  });
  const answer = await response.json();
  console.log(answer.choices ? answer.choices[0].message.content : JSON.stringify(answer));
});
"#;

#[test]
#[cfg_attr(not(has = "node"), ignore = "needs Node.js and npm; run scripts/test")]
fn a_program_that_reads_the_address_of_its_model_is_observed_and_replayed() {
    let project = Project::new(env!("CARGO_BIN_EXE_trialrun"));
    let provider = ScriptedProvider::start(|_, answer| {
        let message = json!({"role": "assistant", "content": "Hello."});
        let usage = json!({"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110});
        let choice = json!({"index": 0, "message": message, "finish_reason": "stop"});
        let reply =
            json!({"id": "c", "object": "chat.completion", "model": "answers", "choices": [choice], "usage": usage});
        answer.json(200, "", &reply.to_string());
    });
    let configuration = format!(
        "agents:\n  bot: {{type: subprocess, command: node agent.mjs, mode: oneshot, \
         env: {{OPENAI_BASE_URL: \"{}/v1\", OPENAI_API_KEY: dummy}}}}\n",
        provider.url()
    );
    project.write("agent.mjs", PROGRAM).write("trialrun.yaml", &configuration).write(
        "case.yaml",
        "scenario: greets\nsystem_prompt: x\nuser_prompt: hi\nagent: bot\n\
         assertions: [{id: hello, type: output_contains, pattern: Hello}]\n",
    );
    let run = |more: &[&str]| {
        let ran = project.run(&[&["run", "case.yaml", "--report", "json"], more].concat()).exits(0);
        ran.json()["trials"][0]["model_traffic"].clone()
    };
    let observed = run(&["--gateway", "observe"]);
    assert_eq!((&observed["requests"], &observed["tokens"]["input"]), (&json!(1), &json!(100)), "{observed:#}");
    run(&["--cassette", "record"]);
    let asked = provider.asked().len();
    let replayed = run(&["--cassette", "replay"]);
    assert_eq!((&replayed["replayed"], provider.asked().len()), (&json!(1), asked), "{replayed:#}");
}
