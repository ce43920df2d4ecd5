//! Tests of tests as code on the command line: what runs, how broken files are reported, and how trials end.

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

/// Returns the JSON report of a run with the fake agent, and the run.
fn report(project: &Project, arguments: &[&str]) -> (Value, Ran) {
    let mut all = vec!["run", "--agent", "fake", "--report", "terminal", "--report", "json=report.json"];
    all.extend(arguments);
    let ran = project.run(&all);
    let text =
        std::fs::read_to_string(project.dir().join("report.json")).unwrap_or_else(|_| panic!("{}", ran.output()));
    (serde_json::from_str(&text).unwrap(), ran)
}

fn outcomes(report: &Value) -> Vec<(&str, &str)> {
    let trials = report["trials"].as_array().unwrap();
    trials.iter().map(|trial| (trial["case"].as_str().unwrap(), trial["outcome"].as_str().unwrap())).collect()
}

#[test]
fn the_conversation_of_a_passing_test_is_recorded() {
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
    assert!(ran.out.contains("missing.test.ts:2:8") && ran.out.contains("syntax.test.ts:2:"), "{}", ran.output());
    let first = "errors break 2 of 3 trials, in 2 test files: tests/missing.test.ts, tests/syntax.test.ts\n";
    assert!(ran.err.starts_with(first), "{}", ran.err);
    let checked = project.run(&["check", "--agent", "fake", "tests"]).exits(2);
    assert!(checked.err.contains("cannot find `./gone`"), "{}", checked.output());
    let refused = project.run(&["run", "--strict", "--agent", "fake", "tests"]).exits(2);
    assert!(refused.err.contains("cannot find `./gone`") && refused.out.is_empty(), "{}", refused.output());
}

#[test]
fn a_mistake_in_one_test_breaks_that_test_and_the_rest_runs() {
    let project = project();
    project.write("tests/angry-customer.test.ts", GOOD);
    project.write("tests/typo.test.ts", &GOOD.replace("contains", "contians"));
    project.write("tests/key.yaml", "name: k\nturns: [{says: hi}]\nassertions: [{contians: hi}]\n");
    project.write("tests/syntax.yaml", "name: s\npersona: { role: customer\nturns:\n  - says: hi\n");
    let (report, ran) = report(&project, &["tests"]);
    let ran = ran.exits(3);
    assert_eq!(
        outcomes(&report),
        [("greets", "passed"), ("k", "broken"), ("syntax", "broken"), ("greets", "broken")],
        "{}",
        ran.output()
    );
    for place in ["typo.test.ts:4:3", "key.yaml:3:15", "syntax.yaml:2:10", "did you mean `contains`?"] {
        assert!(ran.out.contains(place), "{place}: {}", ran.output());
    }
    let checked = project.run(&["check", "--agent", "fake", "tests"]).exits(2);
    assert!(checked.err.contains("3 errors"), "{}", checked.output());
    // A file outside the selection cannot break it.
    project.run(&["run", "--agent", "fake", "tests", "--test", "angry-customer"]).exits(0);
}

#[test]
fn a_mistake_in_a_test_breaks_it_and_does_not_count_against_the_agent() {
    let project = project();
    project.write("tests/good.test.ts", GOOD);
    let scenario = |name: &str, body: &str| {
        let text = format!(
            "import {{ scenario, assert }} from 'trialrun';\n\
             export default scenario('{name}', async ({{ agent }}) => {{\n{body}\n}});\n"
        );
        project.write(&format!("tests/{name}.test.ts"), &text);
    };
    let send = "const r = await agent.send('hello');";
    scenario("misspelt", &format!("  {send}\n  await agent.sned('on');"));
    scenario("nowhere", "  const settings = undefined;\n  await agent.send(settings.greeting);");
    scenario("shape", &format!("  {send}\n  r.toolCalls[0].arguments;"));
    scenario("undefined", &format!("  {send}\n  expect(r.text).toBe('hello');"));
    let (report, ran) = report(&project, &["tests"]);
    let ran = ran.exits(1);
    let expected = [
        ("greets", "passed"),
        ("misspelt", "broken"),
        ("nowhere", "broken"),
        ("shape", "failed"),
        ("undefined", "broken"),
    ];
    assert_eq!(outcomes(&report), expected);
    assert_eq!(ran.out.matches("broken (test)").count(), 3, "{}", ran.output());
    for expected in [
        "misspelt.test.ts:4:",
        "an agent has no `sned`; did you mean `send`?",
        "nowhere.test.ts:4:",
        "undefined.test.ts:4:3: `expect` is not available here: it belongs to another test runner",
    ] {
        assert!(ran.out.contains(expected), "{expected}: {}", ran.output());
    }
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

/// A test file with a problem in it.
struct Odd {
    name: &'static str,
    text: &'static str,
    /// Its cases and their outcomes.
    comes_to: &'static [(&'static str, &'static str)],
    /// Parts of the messages about it.
    expected: &'static [&'static str],
}

/// Problems that test files can have.
const ODD: [Odd; 9] = [
    Odd {
        name: "loop",
        text: "import { scenario, assert } from 'trialrun';
export default scenario('loops', { timeout: 500 }, async ({ agent }) => {
  assert.contains(await agent.send('hello'), 'hello');
  for (;;) {}
});
",
        comes_to: &[("loops", "broken")],
        expected: &["loop.test.ts:4:3: the scenario was stopped after 0.5 s", "it was still running"],
    },
    Odd {
        name: "bomb",
        text: "import { scenario, assert } from 'trialrun';
export default scenario('eats', async ({ agent }) => {
  assert.contains(await agent.send('hello'), 'hello');
  const eaten = [];
  for (;;) eaten.push(new Array(1000).fill(0));
});
export const after = scenario('eats nothing', async ({ agent }) => {
  assert.contains(await agent.send('hello'), 'hello');
});
",
        comes_to: &[("eats", "broken"), ("eats nothing", "passed")],
        expected: &["needed more than 128 MiB of memory"],
    },
    Odd {
        name: "rejection",
        text: "import { scenario, assert } from 'trialrun';
export default scenario('rejects', async ({ agent }) => {
  assert.contains(await agent.send('hello'), 'hello');
  Promise.reject(new Error('nobody waits'));
});
",
        comes_to: &[("rejects", "failed")],
        expected: &["nobody waits", "rejection.test.ts:4:"],
    },
    Odd {
        name: "fs",
        text: "import { scenario, assert } from 'trialrun';
import { readFileSync } from 'node:fs';
export default scenario('reads', () => assert.custom('a', () => readFileSync('/etc/passwd') !== ''));
",
        comes_to: &[("fs.test.ts", "broken")],
        expected: &["node:fs", "fs.test.ts:2:"],
    },
    Odd {
        name: "circle",
        text: "import { scenario, assert } from 'trialrun';
import { other } from './circle-b.ts';
export const own = () => 'hello';
export default scenario('goes round', async ({ agent }) => {
  assert.contains(await agent.send(other()), 'hello');
});
",
        comes_to: &[("goes round", "passed")],
        expected: &[],
    },
    Odd {
        name: "uninitialised",
        text: "import { scenario, assert } from 'trialrun';
import { early } from './uninitialised-b.ts';
export const late = 'hello';
export default scenario('too early', () => assert.custom('a', () => early === late));
",
        comes_to: &[("uninitialised.test.ts", "broken")],
        expected: &["late", "uninitialised-b.ts:2:"],
    },
    Odd {
        name: "twice",
        text: "import { scenario, assert } from 'trialrun';
const greets = async ({ agent }) => assert.contains(await agent.send('hello'), 'hello');
export const one = scenario('same', greets);
export const two = scenario('same', greets);
",
        comes_to: &[("same", "passed"), ("same (2)", "passed")],
        expected: &["a second scenario is called `same`", "twice.test.ts:4:"],
    },
    Odd {
        name: "nothing",
        text: "import { scenario } from 'trialrun';
export default scenario('checks nothing', async ({ agent }) => { await agent.send('hello'); });
",
        comes_to: &[("checks nothing", "undecided")],
        expected: &["nothing was checked"],
    },
    Odd {
        name: "empty",
        text: "export const answer = 42; import 'trialrun';
",
        comes_to: &[("empty.test.ts", "broken")],
        expected: &["does not export a scenario"],
    },
];

/// Writes all `files`, their imports, and a valid file.
fn write(project: &Project, files: &[Odd]) {
    project
        // Node.js has more than the engine, and this machine may have it.
        .write("trialrun.yaml", "code: { runtime: embedded }\n")
        .write("tests/good.test.ts", GOOD)
        .write("tests/circle-b.ts", "import { own } from './circle.test.ts';\nexport const other = () => own();\n")
        .write(
            "tests/uninitialised-b.ts",
            "import { late } from './uninitialised.test.ts';\nexport const early = late + '!';\n",
        );
    for odd in files {
        project.write(&format!("tests/{}.test.ts", odd.name), odd.text);
    }
}

#[test]
fn every_problem_of_a_file_is_reported_and_other_files_run() {
    let project = project();
    write(&project, &ODD);
    let (all, ran) = report(&project, &["tests"]);
    let ran = ran.exits(1);
    let mut expected: Vec<(&str, &str)> = ODD.iter().flat_map(|odd| odd.comes_to).copied().collect();
    expected.push(("greets", "passed"));
    expected.sort_unstable();
    let mut found = outcomes(&all);
    found.sort_unstable();
    assert_eq!(found, expected, "{}", ran.output());
    let spoken = ran.output();
    for part in ODD.iter().flat_map(|odd| odd.expected) {
        assert!(spoken.contains(part), "{part}: {spoken}");
    }
    // Claims made before the stop count.
    let of = |case: &str| all["trials"].as_array().unwrap().iter().find(|trial| trial["case"] == case).unwrap();
    for case in ["loops", "eats", "rejects"] {
        assert_eq!(of(case)["findings"][0]["status"], "met", "{case}");
    }
}

#[test]
fn a_file_that_is_broken_or_checks_nothing_leaves_a_run_incomplete() {
    for odd in ODD {
        let outcomes = || odd.comes_to.iter().map(|(_, outcome)| *outcome);
        let code = match () {
            () if outcomes().any(|outcome| outcome == "failed") => 1,
            () if outcomes().all(|outcome| outcome == "passed") => 0,
            () => 3,
        };
        let project = project();
        write(&project, &[odd]);
        project.run(&["run", "--agent", "fake", "tests"]).exits(code);
    }
}

const JUDGED: &str = "import { scenario, assert } from 'trialrun';
export const a = scenario('a', async (context) => {
  const r = await context.agent.send('hello');
  assert.sentiment(r, 'friendly');
  if (r.mentions('hello')) context.assert.llmJudge(r, { criteria: 'It greets.' });
  assert.contains(r, 'hello');
});
export const b = scenario('b', { skip: true }, async ({ agent }) => {
  assert.sentiment(await agent.send('hello'), 'friendly');
});
";

#[test]
fn without_a_judge_undecided_assertions_in_code_are_counted_before_the_run() {
    let project = project();
    project.write("tests/judged.test.ts", JUDGED).write("tests/good.test.ts", GOOD);
    let checked = project.run(&["check", "--agent", "fake", "tests"]).exits(0);
    assert!(checked.err.contains("2 assertions stay undecided: no judge"), "{}", checked.output());
    assert!(
        checked.err.contains("judged.test.ts:2:") && checked.err.contains("counted in the source"),
        "{}",
        checked.output()
    );
    let ran = project.run(&["run", "--agent", "fake", "tests", "--trials", "3"]).exits(3);
    assert!(ran.err.contains("6 assertions stay undecided: no judge"), "{}", ran.output());
    let quiet = project.run(&["check", "--agent", "fake", "tests/good.test.ts"]).exits(0);
    assert!(!quiet.err.contains("undecided"), "{}", quiet.output());
}

#[test]
fn a_misspelt_assertion_in_code_is_reported_at_its_line_before_the_run() {
    let project = project();
    let test = |claim: &str| {
        format!(
            "import {{ scenario }} from 'trialrun';\nexport default scenario('s', async ({{ agent, assert }}) => {{\n  \
             const r = await agent.send('hello');\n  {claim};\n}});\n"
        )
    };
    project.write("tests/slip.test.ts", &test("assert.contians(r, 'hello')"));
    project.run(&["run", "--agent", "fake", "tests"]).exits(3);
    let refused = project.run(&["check", "--agent", "fake", "tests"]).exits(2);
    for expected in
        ["there is no assertion named `assert.contians`", "slip.test.ts:4:3", "did you mean `assert.contains`?"]
    {
        assert!(refused.err.contains(expected), "{expected}: {}", refused.output());
    }
    project.write("tests/slip.test.ts", &test("assert.outputContains(r, 'hello'); assert.custom('c', () => true)"));
    project.run(&["check", "--strict", "--agent", "fake", "tests"]).exits(0);
    // An argument that follows from the text.
    project.write("tests/slip.test.ts", &test("const n = 5;\n  assert.contains(r, 5); assert.contains(r, n)"));
    let refused = project.run(&["check", "--agent", "fake", "tests"]).exits(2);
    for expected in ["an argument of `assert.contains` must be a string, not a number", "slip.test.ts:5:22"] {
        assert!(refused.err.contains(expected), "{expected}: {}", refused.output());
    }
    // An unknown name, which may be the user's own.
    project.write("tests/slip.test.ts", &test("assert.zzz(r)"));
    let doubted = project.run(&["check", "--agent", "fake", "tests"]).exits(0);
    assert!(doubted.err.contains("there is no assertion named `assert.zzz`"), "{}", doubted.output());
}
