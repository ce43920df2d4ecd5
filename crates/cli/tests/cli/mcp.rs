//! `trialrun mcp`, used by the official Node.js client for the Model Context Protocol.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::process::Command;

use serde_json::Value;
use testkit::{Project, packages};

const PROGRAM: &str = env!("CARGO_BIN_EXE_trialrun");

/// A client that calls each tool named in its arguments, and prints the results as JSON.
const CLIENT: &str = r#"
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";

const [program, cwd, calls] = process.argv.slice(2);
const client = new Client({ name: "test", version: "1.0.0" });
await client.connect(new StdioClientTransport({ command: program, args: ["mcp"], cwd, env: process.env }));
const results = { server: client.getServerVersion(), tools: (await client.listTools()).tools, calls: [] };
for (const [name, args] of JSON.parse(calls)) {
  try {
    results.calls.push(await client.callTool({ name, arguments: args }));
  } catch (error) {
    results.calls.push({ protocolError: error.message });
  }
}
await client.close();
console.log(JSON.stringify(results));
"#;

const CASE: &str =
    "name: greets\nagent: fake\nturns:\n  - says: '!say Hello, Ada.'\nassertions:\n  - matches: ^Hello, \\w+\\.$\n";

fn client(project: &Project, calls: &str) -> Value {
    project.write("client/client.mjs", CLIENT);
    std::os::unix::fs::symlink(packages().join("node_modules"), project.dir().join("client/node_modules")).unwrap();
    let mut command = Command::new("node");
    let template = project.command(&[]);
    for (name, value) in template.get_envs() {
        if let Some(value) = value {
            command.env(name, value);
        }
    }
    let output = command
        .arg(project.dir().join("client/client.mjs"))
        .args([PROGRAM, project.dir().to_str().unwrap(), calls])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap()
}

#[test]
#[cfg_attr(not(has = "packages"), ignore = "needs npm packages; run scripts/test")]
fn a_coding_agent_lists_checks_audits_runs_shows_and_compares() {
    let project = Project::new(PROGRAM);
    project.write("tests/greets.yaml", CASE);
    let calls = r#"[
        ["list", {}], ["check", {"paths": ["tests/greets.yaml"]}], ["audit", {}], ["run", {"label": "one"}],
        ["show", {"trial": "greets"}], ["run", {"trials": 2}], ["compare", {"before": "one"}],
        ["run", {"trials": "auto:3"}], ["run", {"trials": "auto:x"}],
        ["check", {"paths": ["none.yaml"]}], ["run", {"path": "x"}], ["nothing", {}]
    ]"#;
    let results = client(&project, calls);
    assert_eq!(results["server"]["name"], "trialrun");
    let tools: Vec<&str> =
        results["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(tools, ["list", "check", "run", "show", "compare", "audit"]);
    let calls = results["calls"].as_array().unwrap();
    let expected = [
        "greets::greets",
        "no problems",
        "adversaries rejected",
        "1 trial passed",
        "Hello, Ada.",
        "2 trials passed",
        "one",
    ];
    for (call, expected) in calls.iter().zip(expected) {
        assert!(text(call).contains(expected) && call["isError"] != true, "{expected}: {call}");
    }
    assert!(text(&calls[3]).ends_with("exit code 0"), "{}", calls[3]);
    assert!(text(&calls[7]).contains("at most 3 trials cannot show"), "{}", calls[7]);
    assert!(calls[8]["protocolError"].as_str().unwrap().contains("`auto` or `auto:MAX`"), "{}", calls[8]);
    assert!(calls[9]["isError"] == true && text(&calls[9]).ends_with("exit code 2"), "{}", calls[9]);
    assert!(calls[10]["protocolError"].as_str().unwrap().contains("did you mean `paths`?"), "{}", calls[10]);
    assert!(calls[11]["protocolError"].as_str().unwrap().contains("unknown tool"), "{}", calls[11]);
}
