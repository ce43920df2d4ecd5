//! End-to-end tests of judged assertions: the choice of the judge, its verdicts, its cost, and runs without one.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on fails")]

use crate::shop::Shop;
use serde_json::{Value, json};
use testkit::Project;

const SCENARIO: &str = "\
scenario: kind
skill: greet
user_prompt: hello there
assertions:
  - { id: warm, type: sentiment, expected: friendly }
  - { id: rules, type: guardrail, mustNot: [insult the user], must: [greet] }
";

/// Returns a judge that gives these answers in order.
fn script(answers: &[Value]) -> String {
    let steps: Vec<Value> = answers.iter().map(|answer| json!({"text": answer.to_string()})).collect();
    json!({ "steps": steps }).to_string()
}

fn tone(verdict: &str, score: u64) -> Value {
    let row =
        json!({"id": "c1", "quote": "hello there", "reasoning": "As it says.", "verdict": verdict, "score": score});
    json!({ "answers": [row] })
}

fn rules(first: &str) -> Value {
    let row = |id: &str, verdict: &str| json!({"id": id, "quote": "hello", "reasoning": "Seen.", "verdict": verdict});
    json!({ "answers": [row("c1", first), row("c2", "met")] })
}

fn project(judge: &[Value]) -> Project {
    let project = Project::new(env!("CARGO_BIN_EXE_trialrun"));
    project
        .write("trialrun.yaml", "defaults: { agent: fake, jobs: 1 }\n")
        .write("skills/greet/SKILL.md", "---\nname: greet\ndescription: Greets.\n---\nSay hello.\n")
        .write("skills/greet/tests/a.yaml", SCENARIO)
        .write("judge.yaml", &script(judge));
    project
}

const JUDGED: [&str; 3] = ["run", "--judge", "scripted:judge.yaml"];

#[test]
fn a_judge_decides_and_its_usage_is_reported_separately() {
    let project = project(&[tone("met", 4), rules("met")]);
    let report = project.run(&[&JUDGED[..], &["--report", "json"]].concat()).exits(0).json();
    let trial = &report["trials"][0];
    assert_eq!((&trial["judge_usage"]["total"], &trial["judge_cost_usd"]), (&json!(220), &Value::Null));
    assert_eq!(report["summary"]["judge_usage"]["total"], 220);
    let warm = &trial["findings"][0];
    assert_eq!((&warm["method"], &warm["score"]), (&json!("judge"), &json!(0.75)));
    assert_eq!(warm["because"], "4 of 5: As it says.");
    let text = project.run(&JUDGED).exits(0).out;
    assert!(text.contains("judge      2 requests, 220 tokens, cost n/a"), "{text}");
}

const CODE: &str = r#"
import { scenario, assert } from "@fabrik/core";

export default scenario("kind", async ({ agent }) => {
  const r = await agent.send("hello there");
  await assert.sentiment(r, "friendly");
  assert.guardrail(r, { mustNot: ["insult the user"], must: ["greet"] });
});
"#;

#[test]
fn assertions_in_code_ask_the_judge_sequentially() {
    let project = project(&[tone("met", 4), rules("violated")]);
    project.write("tests/kind.test.ts", CODE);
    let arguments = ["run", "tests/kind.test.ts", "--judge", "scripted:judge.yaml", "--report", "json"];
    let report = project.run(&arguments).exits(1).json();
    let trial = &report["trials"][0];
    let statuses: Vec<&Value> = trial["findings"].as_array().unwrap().iter().map(|found| &found["status"]).collect();
    assert_eq!(statuses[..2], [&json!("met"), &json!("unmet")], "{trial:#}");
    assert_eq!(trial["judge_usage"]["total"], 220, "{trial:#}");
}

#[test]
fn a_broken_rule_fails_the_trial_and_is_named() {
    let project = project(&[tone("met", 4), rules("violated")]);
    let ran = project.run(&JUDGED).exits(1);
    assert!(ran.out.contains("1 of 2 rules violated: the agent must not: insult the user"), "{}", ran.out);
}

#[test]
fn a_judge_without_a_verdict_is_at_fault() {
    let project = project(&[tone("met", 4)]);
    let report = project.run(&[&JUDGED[..], &["--report", "json"]].concat()).exits(3).json();
    let trial = &report["trials"][0];
    assert_eq!((&trial["outcome"], &trial["fault"]), (&json!("undecided"), &json!("judge")));
    assert!(trial["because"].as_str().unwrap().contains("did not return a verdict"), "{trial:#}");
}

#[test]
fn an_unresponsive_judge_is_abandoned_at_the_timeout_of_the_trial() {
    let project = project(&[]);
    project.write("judge.yaml", "steps: [{ fault: { kind: hang } }]\n");
    let report = project.run(&[&JUDGED[..], &["--timeout", "3", "--report", "json"]].concat()).exits(3).json();
    let trial = &report["trials"][0];
    assert_eq!(trial["fault"], "judge", "{trial:#}");
    assert!(trial["because"].as_str().unwrap().contains("the judge did not answer within 3 s"), "{trial:#}");
}

#[test]
fn an_unresponsive_judge_does_not_block_a_code_trial_forever() {
    let project = project(&[]);
    project.write("judge.yaml", "steps: [{ fault: { kind: hang, times: forever } }]\n");
    project.write("tests/kind.test.ts", CODE);
    let arguments =
        ["run", "tests/kind.test.ts", "--judge", "scripted:judge.yaml", "--timeout", "2", "--report", "json"];
    let trial = &project.run(&arguments).json()["trials"][0];
    let undecided = trial["findings"].as_array().unwrap().iter().filter(|found| found["status"] == "undecided");
    assert!(undecided.count() >= 1 && trial["outcome"] != "passed", "{trial:#}");
}

#[test]
fn without_a_judge_the_number_of_undecided_assertions_is_reported_before_the_run() {
    let project = project(&[]);
    let ran = project.run(&["run", "--trials", "2"]).exits(3);
    assert!(ran.err.contains("4 assertions stay undecided: no judge: set OPENROUTER_API_KEY"), "{}", ran.err);
    assert!(ran.out.contains("no judge: set"), "{}", ran.out);
    let checked = project.run(&["check"]);
    assert!((checked.out + &checked.err).contains("2 assertions stay undecided"));
    let keyed = project.run(&["run", "--judge", "openai:gpt-4.1-mini"]).exits(3);
    assert!(keyed.err.contains("`openai` needs a key: OPENAI_API_KEY is not set"), "{}", keyed.err);
}

#[test]
fn an_unavailable_judge_prevents_the_run() {
    let project = project(&[]);
    for (arguments, wrong) in [
        (&["--judge", "opnai:gpt-5"][..], "did you mean `openai`"),
        (&["--judge", "openai"], "needs an argument"),
        (&["--judge", "scripted:gone.yaml"], "gone.yaml"),
        (&["--judge-base-url", "http://127.0.0.1:1"], "the judge has an address but no model"),
        (&["--judge", "ollama:m", "--judge-base-url", "ftp://x"], "http://"),
        (&["--pricing", "judge.yaml"], "a price"),
        (&["--judges", "99"], "--judges"),
    ] {
        let ran = project.run(&[&["run"][..], arguments].concat()).exits(2);
        assert!(ran.err.contains(wrong), "{arguments:?}: {}", ran.err);
    }
}

#[test]
fn a_refused_connection_to_the_judge_is_reported_even_with_a_short_timeout() {
    let project = project(&[]);
    let judge = ["--judge", "ollama:m", "--judge-base-url", "http://127.0.0.1:1"];
    let ran = project.run(&[&["run", "--timeout", "1s"][..], &judge].concat()).exits(3);
    assert!(ran.out.to_lowercase().contains("connection refused"), "{}", ran.out);
    assert!(!ran.out.contains("did not answer within"), "{}", ran.out);
}

#[test]
fn doctor_names_the_providers_and_shows_no_key() {
    let project = project(&[]).env("OPENAI_API_KEY", "sk-canary-0123456789abcdef");
    let ran = project.run(&["doctor"]).exits(0);
    assert!(
        ran.out.contains("OPENAI_API_KEY is set") && ran.out.contains("ANTHROPIC_AUTH_TOKEN is not set"),
        "{}",
        ran.out
    );
    assert!(ran.out.contains("openai:gpt-4.1-mini") && !ran.out.contains("canary"), "{}", ran.out);
    assert!(ran.out.contains("as of 2026-10-24, from https://platform.claude.com/"), "{}", ran.out);
    let prices =
        |vendor: &str| ran.out.lines().filter(|line| line.contains("prices ") && line.contains(vendor)).count();
    assert_eq!((prices("anthropic"), prices("openai")), (1, 1), "{}", ran.out);
    let rows = project.run(&["config", "--json"]).json();
    assert!(rows.to_string().contains("openai:gpt-4.1-mini"), "{rows:#}");
}

#[test]
fn judgements_of_earlier_runs_are_used_and_named() {
    let (project, shop) = (project(&[]).env("OPENAI_API_KEY", "sk-test-0123456789abcdef"), Shop::open());
    let judge = shop.url("/judge");
    let run = |arguments: &[&str]| {
        let all = ["run", "--judge", "openai-chat:judge", "--judge-base-url", &judge, "--report", "json"];
        let report = project.run(&[&all[..], arguments].concat()).exits(0).json();
        let trial = report["trials"][0].clone();
        (trial["findings"][0]["judgement"]["cached"].clone(), trial["judge_usage"]["total"].clone(), trial)
    };
    let (cached, tokens, first) = run(&[]);
    assert_eq!((cached, tokens), (json!(0), json!(240)), "{first:#}");
    let judgement = &first["findings"][0]["judgement"];
    assert_eq!((&judgement["judge"], &judgement["asked"]), (&json!("openai-chat:judge"), &json!(1)));
    let (cached, tokens, second) = run(&[]);
    assert_eq!((cached, tokens), (json!(1), Value::Null), "{second:#}");
    assert_eq!((&second["judge_cost_usd"], &second["outcome"]), (&json!(0.0), &first["outcome"]));
    let shown = project.run(&["show", second["id"].as_str().unwrap()]).exits(0).out;
    assert!(shown.contains("0 requests, $0.0000, 2 cached"), "{shown}");
    assert!(shown.contains("the judgement is from the cache"), "{shown}");
    assert_eq!(run(&["--judge-cache", "refresh"]).0, json!(0));
    assert_eq!(run(&["--judge-cache", "off"]).0, json!(0));
    assert_eq!(run(&["--trials", "2"]).0, json!(1));
    let regraded = project.run(&["regrade", "latest", "--report", "json"]).exits(0).json();
    assert_eq!(regraded["trials"][1]["findings"][0]["judgement"]["cached"], 1, "{regraded:#}");
    let wrong = project.run(&["run", "--judge-cache", "fresh"]).exits(2);
    assert!(wrong.err.contains("did you mean `refresh`"), "{}", wrong.err);
}

#[test]
fn a_cache_that_cannot_be_used_is_reported_and_the_run_continues() {
    let (project, shop) = (project(&[]).env("OPENAI_API_KEY", "sk-test-0123456789abcdef"), Shop::open());
    project.write(".trialrun/judgements.db", "notes");
    let judge = shop.url("/judge");
    let ran = project.run(&["run", "--judge", "openai-chat:judge", "--judge-base-url", &judge]).exits(0);
    let regraded = project.run(&["regrade", "latest"]).exits(0);
    for ran in [ran, regraded] {
        assert!(ran.err.contains("warning: judgements are not cached:"), "{}", ran.err);
    }
}

#[test]
fn only_a_sample_of_the_trials_is_judged_and_the_others_are_not_passed() {
    let project = project(&[tone("met", 4), rules("met")]);
    let sampled = |arguments: &[&str], code: i32| {
        let all = [&JUDGED[..], &["--trials", "10", "--report", "json"], arguments].concat();
        let report = project.run(&all).exits(code).json();
        let trials = report["trials"].as_array().unwrap();
        let judged = trials.iter().filter(|trial| trial["judge_sampled"] == true);
        let ids: Vec<String> = judged.map(|trial| trial["id"].as_str().unwrap().to_owned()).collect();
        for trial in trials {
            let expected = if trial["judge_sampled"] == true { "passed" } else { "undecided" };
            assert_eq!((&trial["outcome"], &trial["fault"]), (&json!(expected), &Value::Null), "{trial:#}");
        }
        (ids, report)
    };
    let (first, report) = sampled(&["--judge-sample", "3"], 0);
    assert_eq!(first.len(), 3);
    let sample = &report["summary"]["judge_sample"];
    assert_eq!((&sample["trials"], &sample["judged"], &sample["passed"]), (&json!(10), &json!(3), &json!(3)));
    assert_eq!((&report["summary"]["undecided"], &report["summary"]["not_judged"]), (&json!(7), &json!(7)));
    assert_eq!(sampled(&["--judge-sample", "30%"], 0).0, first, "the same seed chooses the same trials");
    assert_ne!(sampled(&["--judge-sample", "0.3", "--seed", "5"], 0).0, first);
    let output = project.run(&[&JUDGED[..], &["--trials", "10", "--judge-sample", "3"]].concat()).exits(0).out;
    assert!(output.contains("sample     3 of 10 trials judged; 100% of them passed (44-100%)"), "{output}");
    assert!(output.contains("PASS  3 of 10 trials passed, 7 not judged"), "{output}");
    assert!(output.contains("not judged: the trial is not in the sample"), "{output}");

    project.write("judge.yaml", &script(&[tone("met", 4), rules("violated")]));
    project.run(&[&JUDGED[..], &["--trials", "10", "--judge-sample", "3"]].concat()).exits(1);
    let wrong = project.run(&["run", "--judge-sample", "150%"]).exits(2);
    assert!(wrong.err.contains("a share such as `20%`"), "{}", wrong.err);
}
