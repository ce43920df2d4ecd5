//! Tests of a support bot over HTTP, written as the first users of the code-first system wrote theirs: with their
//! original files, against a bot and a judge on loopback.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use crate::shop::Shop;
use serde_json::Value;
use testkit::{Loopback, Project, packages};

const PROGRAM: &str = env!("CARGO_BIN_EXE_trialrun");

/// Key of the judge; it must not be visible anywhere.
const KEY: &str = "sk-test-canary-9f8e7d6c5b4a39281706";

fn project() -> Project {
    Project::new(PROGRAM).env("OPENAI_API_KEY", KEY)
}

/// Returns the report of a run with the bot at `path` and its judge.
#[track_caller]
fn run(project: &Project, shop: &Shop, path: &str, arguments: &[&str], code: i32) -> Value {
    let agent = format!("http:{}", shop.url(path));
    let judge = shop.url("/judge");
    let mut all = vec!["--agent", &agent, "--judge", "openai-chat:judge", "--judge-base-url", &judge];
    all.extend(arguments);
    project.report(&all, code)
}

fn specimen(name: &str) -> String {
    std::fs::read_to_string(format!("{}/../../specimens/code/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

/// Returns a project with the specimens.
fn seeded() -> Project {
    let project = project();
    for name in ["tests/angry-customer.test.ts", "tests/contradictory-info.test.ts", "tests/inquiry.yaml"] {
        project.write(name, &specimen(name));
    }
    project
}

fn findings(report: &Value) -> Vec<String> {
    let trials = report["trials"].as_array().unwrap().iter();
    let all =
        trials.flat_map(|trial| trial["findings"].as_array().unwrap().iter().map(move |finding| (trial, finding)));
    all.filter(|(_, finding)| finding["implicit"] != true)
        .map(|(trial, finding)| {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            format!("{}: {} {}", text(&trial["case"]), text(&finding["type"]), text(&finding["status"]))
        })
        .collect()
}

#[test]
fn the_first_fabrik_tests_run_unchanged() {
    let (project, shop) = (seeded(), Shop::open());
    let report = run(&project, &shop, "/api/chat", &[], 0);
    let mut found = findings(&report);
    found.sort();
    assert_eq!(
        found,
        [
            "angry customer refund request: llm_judge met",
            "angry customer refund request: not_contains met",
            "angry customer refund request: sentiment met",
            "angry customer refund request: tool_called met",
            "contradictory information handling: guardrail met",
            "contradictory information handling: llm_judge met",
            "contradictory information handling: sentiment met",
            "simple product inquiry: contains met",
            "simple product inquiry: sentiment met",
        ]
    );
    let judged = &report["summary"]["judge_usage"];
    assert!(judged["input"].as_u64().is_some_and(|tokens| tokens >= 500), "{judged}");
    let conversations: Vec<String> = shop
        .seen()
        .iter()
        .filter(|seen| seen.path == "/api/chat")
        .map(|seen| seen.body["conversation_id"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(conversations.len(), 4, "{conversations:?}");
    assert_eq!(conversations.iter().collect::<std::collections::BTreeSet<_>>().len(), 3, "{conversations:?}");
}

#[test]
fn responses_of_the_bot_are_read_in_every_format() {
    let (project, shop) = (seeded(), Shop::open());
    for dialect in ["openai", "anthropic", "stream/openai", "stream/anthropic", "stream/ui", "stream/data"] {
        let report = run(&project, &shop, &format!("/{dialect}"), &[], 0);
        let angry =
            report["trials"].as_array().unwrap().iter().find(|trial| trial["suite"] == "angry-customer").unwrap();
        let calls: Vec<&str> =
            angry["tool_calls"].as_array().unwrap().iter().map(|call| call["name"].as_str().unwrap()).collect();
        assert_eq!(calls, ["lookup_order", "initiate_refund"], "{dialect}");
    }
    let plain = run(&project, &shop, "/stream/text", &["tests/inquiry.yaml"], 0);
    assert_eq!(plain["summary"]["passed"], 1);
}

#[test]
fn a_misbehaving_bot_fails_but_an_unreachable_bot_does_not() {
    let (project, shop) = (seeded(), Shop::open());
    for fault in ["error", "busy", "empty", "garbage", "redirect", "cut", "close"] {
        let report = run(&project, &shop, &format!("/api/chat?fault={fault}"), &["tests/inquiry.yaml"], 1);
        assert_eq!(report["trials"][0]["outcome"], "failed", "{fault}");
        assert!(!report["trials"][0]["because"].as_str().unwrap().is_empty(), "{fault}");
    }
    let address = shop.url("/api/chat");
    drop(shop);
    let agent = format!("http:{address}");
    let report = project.report(&["tests/inquiry.yaml", "--agent", &agent, "--retries", "0"], 3);
    assert_eq!(
        (&report["trials"][0]["outcome"], &report["trials"][0]["fault"]),
        (&"broken".into(), &"environment".into())
    );
}

#[test]
fn a_rejected_request_format_and_a_throwing_parser_are_mistakes_in_the_test() {
    let (project, shop) = (seeded(), Shop::open());
    let mistake = |report: &Value| {
        let trial = &report["trials"][0];
        assert_eq!((&trial["outcome"], &trial["fault"]), (&"broken".into(), &"test".into()), "{trial:#}");
        assert_eq!(trial["attempts"].as_array().unwrap().len(), 1, "a retry would give the same result");
        trial["because"].as_str().unwrap().to_owned()
    };
    let refused = mistake(&run(&project, &shop, "/api/chat?fault=unreadable", &["tests/inquiry.yaml"], 3));
    assert!(refused.contains("field required: query") && refused.contains("`body_template`"), "{refused}");

    let config = format!(
        "export default {{\n  agent: {{\n    type: 'http',\n    url: '{}',\n    \
         responseParser: (answer) => answer.no.such,\n  }},\n}};\n",
        shop.url("/api/chat")
    );
    project.write("trialrun.config.ts", &config);
    let thrown = mistake(&project.report(&["tests/inquiry.yaml"], 3));
    assert!(thrown.contains("trialrun.config.ts:5:") && thrown.contains("TypeError"), "{thrown}");
}

#[test]
fn without_a_judge_judged_assertions_are_undecided_and_reported_before_the_run() {
    let shop = Shop::open();
    let project = Project::new(PROGRAM);
    project.write("tests/inquiry.yaml", &specimen("tests/inquiry.yaml"));
    let agent = format!("http:{}", shop.url("/api/chat"));
    let ran = project.run(&["run", "--agent", &agent]).exits(3);
    assert!(ran.err.contains("1 assertion stays undecided: no judge"), "{}", ran.output());
    assert!(ran.out.contains("undecided"), "{}", ran.output());
}

#[test]
fn a_fabrik_configuration_is_read_unchanged() {
    let project =
        project().env("AGENT_API_KEY", "agent-canary-5511aa22bb33").env("DAYTONA_API_KEY", "daytona-canary-9");
    project.write("fabrik.config.ts", &specimen("fabrik.config.ts"));
    project.write("tests/inquiry.yaml", &specimen("tests/inquiry.yaml"));
    let ran = project.run(&["config"]).exits(0);
    for word in ["http", "fabrik.config.ts", "openai"] {
        assert!(ran.out.contains(word), "{word}: {}", ran.output());
    }
    assert!(!ran.output().contains("canary"), "{}", ran.output());
    project.run(&["check"]).exits(0);
}

#[test]
fn configured_headers_are_sent_and_kept_secret() {
    let shop = Shop::open();
    let project = project().env("AGENT_API_KEY", "agent-canary-5511aa22bb33");
    let config = specimen("fabrik.config.ts").replace("http://localhost:3000", &shop.url(""));
    let config = config.replace("${env.DAYTONA_API_KEY}", "unused");
    project.write("fabrik.config.ts", &config);
    project.write("tests/inquiry.yaml", &specimen("tests/inquiry.yaml"));
    let judge = shop.url("/judge");
    let ran = project.run(&["run", "--judge", "openai-chat:judge", "--judge-base-url", &judge]).exits(0);
    let seen = shop.seen();
    let asked = seen.iter().find(|seen| seen.path == "/api/chat").unwrap();
    assert_eq!(asked.headers["authorization"], "Bearer agent-canary-5511aa22bb33");
    assert_eq!(asked.body["message"], "What's the return policy?");
    let judged = seen.iter().find(|seen| seen.path.starts_with("/judge")).unwrap();
    assert_eq!(judged.headers["authorization"], format!("Bearer {KEY}"));
    assert!(!ran.output().contains("canary"), "{}", ran.output());
    for entry in walk(&project.dir()) {
        let name = entry.to_string_lossy().into_owned();
        if name.ends_with("fabrik.config.ts") {
            continue;
        }
        let bytes = std::fs::read(&entry).unwrap();
        assert!(!String::from_utf8_lossy(&bytes).contains("canary"), "{name}");
    }
}

/// Returns every file below `directory`.
fn walk(directory: &std::path::Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { walk(&path) } else { vec![path] }).collect()
}

/// A user who asks for the return policy and leaves once it has been named.
const PLAYED: &str = "name: asks in their own words
persona: { role: customer, tone: in a hurry }
user:
  goal: find out how long something can be returned
  stop_when: a number of days was named
  model: scripted:user.yaml
assertions:
  - contains: 30 days
";

#[test]
fn a_simulated_user_sends_messages_until_it_is_done() {
    let (project, shop) = (project(), Shop::open());
    project.write("played.yaml", PLAYED);
    let turn = |message: &str, done: bool| {
        serde_json::json!({ "message": message, "done": done, "reason": "that is all" }).to_string()
    };
    let steps: Vec<Value> = [turn("Hello!", false), turn("What is your return policy?", false), turn("", true)]
        .map(|text| serde_json::json!({ "text": text, "usage": { "input": 10, "output": 5 } }))
        .into();
    project.write("user.yaml", &serde_json::json!({ "steps": steps }).to_string());
    let report = run(&project, &shop, "/api/chat", &["played.yaml"], 0);
    let trial = &report["trials"][0];
    assert_eq!(trial["input"], serde_json::json!(["Hello!", "What is your return policy?"]));
    assert_eq!(trial["answer"].as_str().map(|answer| answer.contains("30 days")), Some(true));
    // The usage of the simulated user is reported separately from the agent's.
    assert_eq!((&trial["user_usage"]["total"], &trial["judge_usage"]), (&45.into(), &Value::Null));
    assert_eq!((&trial["usage"]["total"], &report["summary"]["user_usage"]["total"]), (&38.into(), &45.into()));
    // A script that is too short for the user is a mistake in the test.
    project.write("user.yaml", "steps: [{ text: Hello! }]\n");
    let report = run(&project, &shop, "/api/chat", &["played.yaml", "--retries", "0"], 3);
    let trial = &report["trials"][0];
    assert_eq!((&trial["outcome"], &trial["fault"]), (&"broken".into(), &"test".into()));
    assert!(trial["because"].as_str().unwrap().contains("the model that plays the user failed"), "{trial}");
}

/// An adapter that asks a model with the package that the vendor publishes.
const ADAPTER: &str = r#"
import OpenAI from "openai";
import Anthropic from "@anthropic-ai/sdk";

let options;
export const connect = async (given) => void (options = given);
const messages = [{ role: "user", content: "hi" }];
const text = async (reply, of) => {
  let text = "";
  if (options.stream) for await (const event of reply) text += of(event) ?? "";
  return options.stream ? text : of(reply);
};
const vendors = {
  async openai({ address: baseURL, stream }) {
    const client = new OpenAI({ apiKey: "unused", baseURL });
    const reply = await client.chat.completions.create({ model: "m", messages, stream });
    return text(reply, ({ choices: [{ message, delta }] }) => (message ?? delta).content);
  },
  async anthropic({ address: baseURL, stream }) {
    const client = new Anthropic({ apiKey: "unused", baseURL });
    const reply = await client.messages.create({ model: "m", max_tokens: 9, messages, stream });
    return text(reply, (event) => event.content?.[0].text ?? event.delta?.text);
  },
};
export const send = async () => ({ text: await vendors[options.vendor](options) });
"#;

#[test]
#[cfg_attr(not(has = "packages"), ignore = "needs npm packages; run scripts/test")]
fn adapters_can_use_the_packages_of_the_vendors() {
    let answers = [
        ("openai", false, r#"{"choices": [{"message": {"role": "assistant", "content": "Hello, Ada."}}]}"#),
        (
            "openai",
            true,
            "data: {\"choices\": [{\"delta\": {\"content\": \"Hello\"}}]}\n\n\
             data: {\"choices\": [{\"delta\": {\"content\": \", Ada.\"}}]}\n\ndata: [DONE]\n\n",
        ),
        ("anthropic", false, r#"{"type": "message", "content": [{"type": "text", "text": "Hello, Ada."}]}"#),
        (
            "anthropic",
            true,
            "event: content_block_delta\n\
             data: {\"type\": \"content_block_delta\", \"delta\": {\"type\": \"text_delta\", \"text\": \"Hello, Ada.\"}}\n\n",
        ),
    ];
    let project = Project::new(PROGRAM);
    std::os::unix::fs::symlink(packages().join("node_modules"), project.dir().join("node_modules")).unwrap();
    project.write("adapter.js", ADAPTER);
    project.write("tests/a.yaml", "name: a\nturns:\n- says: hi\n  expect: [{contains: 'Hello, Ada.'}]\n");
    let (mut servers, mut agents) = (Vec::new(), serde_json::Map::new());
    for (vendor, stream, answer) in answers {
        let server = Loopback::answering(200, answer);
        let options = serde_json::json!({"vendor": vendor, "stream": stream, "address": server.url()});
        let agent =
            serde_json::json!({"type": "custom", "module": "adapter.js", "options": options, "network": ["127.0.0.1"]});
        agents.insert(format!("{vendor}-{stream}"), agent);
        servers.push(server);
    }
    let arguments: Vec<String> = agents.keys().flat_map(|name| ["--agent".to_owned(), name.clone()]).collect();
    project.write("trialrun.yaml", &serde_json::json!({"agents": agents}).to_string());
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let report = project.report(&arguments, 0);
    assert_eq!(report["trials"].as_array().unwrap().len(), 4, "{report:#}");
}
