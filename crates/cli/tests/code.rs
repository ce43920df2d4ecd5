//! Tests as code, from the command line: what is run, what is told of files that are broken, and how it ends.

#![allow(clippy::unwrap_used, clippy::panic)]

use serde_json::Value;
use testkit::{Project, Ran};

const PROGRAM: &str = env!("CARGO_BIN_EXE_trialrun");

const GOOD: &str = "import { scenario, assert } from '@fabrik/core';
export default scenario('greets', { tags: ['smoke'] }, async ({ agent, score }) => {
  const r = await agent.send('hello');
  assert.contains(r, 'HELLO');
  score('warmth', 0.5);
});
";

fn project() -> Project {
    Project::new(PROGRAM)
}

/// The report of a run with the fake agent, as JSON, and the run.
fn report(project: &Project, arguments: &[&str]) -> (Value, Ran) {
    let mut all = vec!["run", "--agent", "fake", "--report", "terminal", "--report", "json=report.json"];
    all.extend(arguments);
    let ran = project.run(&all);
    let text = std::fs::read_to_string(project.dir().join("report.json")).unwrap_or_else(|_| panic!("{}", ran.said()));
    (serde_json::from_str(&text).unwrap(), ran)
}

fn outcomes(report: &Value) -> Vec<(&str, &str)> {
    let trials = report["trials"].as_array().unwrap();
    trials.iter().map(|trial| (trial["case"].as_str().unwrap(), trial["outcome"].as_str().unwrap())).collect()
}

#[test]
fn a_test_passes_and_its_record_says_what_was_said() {
    let project = project();
    project.write("tests/deep/greets.test.ts", GOOD);
    let (report, ran) = report(&project, &["tests"]);
    ran.exits(0);
    let trial = &report["trials"][0];
    assert_eq!((trial["suite"].as_str(), trial["input"][0].as_str()), (Some("deep/greets"), Some("hello")));
    assert_eq!((&trial["scores"]["warmth"], trial["score"].as_f64()), (&Value::from(0.5), Some(1.0)));
    assert_eq!(trial["findings"][0]["id"], "contains-1");
    assert_eq!(trial["findings"][0]["source"]["line"], 4);
}

#[test]
fn a_file_that_does_not_load_is_broken_and_the_rest_runs() {
    let project = project();
    project.write("tests/good.test.ts", GOOD);
    project.write(
        "tests/syntax.test.ts",
        "import { scenario } from 'trialrun';\nexport default scenario('x', async ( => {});\n",
    );
    project.write("tests/missing.test.ts", "import { scenario } from 'trialrun';\nimport './gone';\n");
    let (report, ran) = report(&project, &["tests"]);
    let ran = ran.exits(3);
    assert_eq!(outcomes(&report), [("greets", "passed"), ("missing.test.ts", "broken"), ("syntax.test.ts", "broken")]);
    assert!(ran.out.contains("missing.test.ts:2:8") && ran.out.contains("syntax.test.ts:2:"), "{}", ran.said());
    let checked = project.run(&["check", "--agent", "fake", "tests"]).exits(2);
    assert!(checked.err.contains("cannot find `./gone`"), "{}", checked.said());
}

#[test]
fn a_scenario_that_throws_fails_at_its_line() {
    let project = project();
    project.write("tests/good.test.ts", GOOD);
    let text = "import { scenario, assert } from 'trialrun';
export default scenario('throws', async ({ agent }) => {
  const r = await agent.send('hello');
  assert.contains(r, 'hello');
  console.log('so far');
  throw new Error('half-way');
});
";
    project.write("tests/throws.test.ts", text);
    let (report, ran) = report(&project, &["tests"]);
    let ran = ran.exits(1);
    assert_eq!(outcomes(&report), [("greets", "passed"), ("throws", "failed")]);
    assert!(ran.out.contains("throw new Error('half-way');") && ran.out.contains("Error: half-way"), "{}", ran.said());
    assert_eq!(report["trials"][1]["findings"][0]["status"], "met");
}

#[test]
fn a_scenario_runs_commands_in_the_sandbox_of_its_agent() {
    let project = project();
    let text = "import { scenario, assert } from 'trialrun';
export default scenario('works', async ({ agent }) => {
  const r = await agent.send('make a file');
  const ran = await agent.run('cat made.txt; echo oops >&2; exit 3');
  assert.custom('ran', () => ran.stdout === 'done' && ran.stderr === 'oops\\n' && ran.exitCode === 3);
  assert.custom('read', async () => (await agent.files.read('made.txt')) === 'done', r);
  assert.toolCalled(r, 'Write', { file_path: 'made' });
  assert.fileExists('made.txt');
});
";
    project.write("tests/works.test.ts", text);
    let script = "steps:\n  - tool_calls:\n      - name: Write\n        input: { file_path: made.txt, content: done }\n  - text: It is made.\n";
    project.write("model.yaml", script);
    let all = ["run", "--agent", "chat", "--model", "scripted:model.yaml", "tests"];
    project.run(&all).exits(0);
}
