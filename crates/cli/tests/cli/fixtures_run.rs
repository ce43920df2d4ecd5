//! End-to-end tests of fixtures files: loaded, run, graded, recorded, reported, and reported again.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on fails")]

use serde_json::{Value, json};
use testkit::Project;

const SUITE: &str = r#"---
script: greet.ai.yaml
scoring: true
passScore: 70
---
- title: greets
  input: { name: Alice }
  message: "Greet {{ name }}."
  tools: [lookup.ai.yaml]
  output:
    greeting: { $expect: "/^Hello, {{name}}/", $score: { value: 80, critical: true }, $dimension: accuracy, $title: Greeting }
    tone: { $expect: /warm/, $score: 20, $dimension: style }
  expect:
    tools: [{ name: lookup, args: { name: "{{ name }}" } }]
- title: agrees
  scoring: false
  input: Say yes.
  output: "yes"
- title: left out
  skip: not yet
  output: x
- scoring: false
  input: Say no.
  not: true
  output: "yes"
"#;

const ANSWERS: &str = r#"{"case":"greets","output":{"greeting":"Hello, Bob","tone":"warm","reasoning":"He is Bob."},"messages":[{"role":"user","content":"Greet Alice."},{"role":"assistant","tools":[{"name":"lookup","args":{"name":"Alice"},"result":"found"}]},{"role":"assistant","content":"Hello, Bob"}]}
{"case":"agrees","output":"yes, yes"}
{"case":"4","output":"no"}
"#;

fn project(files: &[(&str, &str)]) -> Project {
    let project = Project::new(env!("CARGO_BIN_EXE_trialrun"));
    for (path, text) in files {
        project.write(path, text);
    }
    project
}

/// Returns a project with the suite above, with variables in its reports.
fn answered() -> Project {
    project(&[
        ("answers.fixture.yaml", SUITE),
        ("answers.jsonl", ANSWERS),
        ("trialrun.yaml", "fixtures: { logVars: true }\n"),
    ])
}

const RUN: &[&str] = &["answers.fixture.yaml", "--agent", "recorded:answers.jsonl"];

/// Returns the trial of the case `case`.
#[track_caller]
fn trial<'r>(report: &'r Value, case: &str) -> &'r Value {
    let mut trials = report["trials"].as_array().unwrap().iter();
    trials.find(|trial| trial["case"] == case).unwrap_or_else(|| panic!("no case named `{case}`: {report:#}"))
}

/// Returns the case and outcome of every trial.
fn outcomes(report: &Value) -> Vec<(&str, &str)> {
    let trials = report["trials"].as_array().unwrap().iter();
    trials.map(|trial| (trial["case"].as_str().unwrap(), trial["outcome"].as_str().unwrap())).collect()
}

#[track_caller]
fn finding<'r>(trial: &'r Value, id: &str) -> &'r Value {
    let mut findings = trial["findings"].as_array().unwrap().iter();
    findings.find(|finding| finding["id"] == id).unwrap_or_else(|| panic!("no finding `{id}`: {trial:#}"))
}

#[test]
fn the_report_contains_the_score_of_a_trial_and_its_reasons() {
    let report = answered().report(RUN, 1);
    let greets = trial(&report, "greets");
    for (key, expected) in [
        ("outcome", json!("failed")),
        ("score", json!(60.0)),
        ("max_score", json!(100.0)),
        ("pass_score", json!(70.0)),
        ("failed_critical", json!(["greeting"])),
        ("dimensions", json!({"accuracy": 0.0, "style": 1.0})),
        ("position", json!(0)),
        ("not", json!(false)),
    ] {
        assert_eq!(greets[key], expected, "{key}");
    }
    let output = finding(greets, "output");
    for (key, expected) in [
        ("type", json!("expect")),
        ("key", json!("output")),
        ("status", json!("unmet")),
        ("score", json!(0.2)),
        ("weight", json!(50.0)),
        ("critical", json!(true)),
        ("expected", json!("/^Hello, Alice/")),
        ("actual", json!("Hello, Bob")),
    ] {
        assert_eq!(output[key], expected, "{key}");
    }
    assert_eq!((&output["source"]["file"], &output["source"]["line"]), (&json!("answers.fixture.yaml"), &json!(11)));
    let [greeting, tone] = output["details"].as_array().unwrap().as_slice() else { panic!("{output:#}") };
    let fields = |detail: &Value| {
        ["key", "title", "dimension", "critical", "weight", "score", "status"].map(|name| detail[name].clone())
    };
    assert_eq!(json!(fields(greeting)), json!(["greeting", "Greeting", "accuracy", true, 0.8, 0.0, "unmet"]));
    assert_eq!(json!(fields(tone)), json!(["tone", null, "style", false, 0.2, 1.0, "met"]));
    let [failure] = output["failures"].as_array().unwrap().as_slice() else { panic!("{output:#}") };
    assert_eq!((&failure["key"], &failure["critical"]), (&json!("greeting"), &json!(true)));
    assert_eq!((&failure["source"]["line"], &failure["source"]["column"]), (&json!(11), &json!(26)));
    let expect = finding(greets, "expect");
    assert_eq!((&expect["status"], &expect["score"], &expect["weight"]), (&json!("met"), &json!(1.0), &json!(50.0)));
}

#[test]
fn the_report_contains_input_and_output() {
    let report = answered().report(RUN, 1);
    let greets = trial(&report, "greets");
    assert_eq!(greets["input"], json!({"name": "Alice"}));
    assert_eq!(greets["output"], json!({"greeting": "Hello, Bob", "tone": "warm", "reasoning": "He is Bob."}));
    assert_eq!(greets["expected"]["greeting"]["$expect"], "/^Hello, Alice/");
    assert_eq!(greets["reason"], "He is Bob.");
    // If there are tools, the tool tester runs.
    assert_eq!(greets["script"], "toolTester");
    assert_eq!(greets["tools"], json!(["lookup.ai.yaml"]));
    assert_eq!(greets["vars"]["name"], "Alice");
    assert_eq!(greets["vars"]["message"], "Greet Alice.");
    assert_eq!(greets["vars"]["tools"], json!(["lookup.ai.yaml"]));
    assert_eq!(greets["messages"].as_array().unwrap().len(), 3);
    assert_eq!(greets["tool_calls"][0]["input"], json!({"name": "Alice"}));
    let agrees = trial(&report, "agrees");
    assert_eq!((&agrees["input"], &agrees["answer"]), (&json!("Say yes."), &json!("yes, yes")));
    assert_eq!((&agrees["script"], &agrees["pass_score"]), (&json!("greet.ai.yaml"), &Value::Null));
    let skipped = trial(&report, "left out");
    assert_eq!((&skipped["because"], &skipped["findings"]), (&json!("not yet"), &json!([])));
    let turned = trial(&report, "4");
    assert_eq!((&turned["not"], &turned["outcome"]), (&json!(true), &json!("passed")));
    assert_eq!(finding(turned, "output")["status"], "unmet");
}

#[test]
fn variables_are_recorded_only_if_the_project_requests_them() {
    for (section, of_failed, of_passed) in
        [("{}", false, false), ("{ logVars: false }", false, false), ("{ logVars: error }", true, false)]
    {
        let project = answered();
        project.write("trialrun.yaml", &format!("fixtures: {section}\n"));
        let report = project.report(RUN, 1);
        assert_eq!(trial(&report, "greets")["vars"].is_object(), of_failed, "{section}");
        assert_eq!(trial(&report, "agrees")["vars"].is_object(), of_passed, "{section}");
    }
}

/// Returns the `test:…` events of a stream, in order.
fn test_events(stream: &str) -> Vec<Value> {
    let events = stream.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["event"].clone());
    events.filter(|event| event["type"].as_str().unwrap().starts_with("test:")).collect()
}

#[test]
fn every_case_emits_the_events_of_the_format() {
    let project = answered();
    project.write(
        "answers.jsonl",
        &ANSWERS.replace(r#""case":"agrees","output":"yes, yes""#, r#""case":"agrees","error":"it is down""#),
    );
    project.run(&[&["run", "--jobs", "1", "--report", "jsonl=events.jsonl"][..], RUN].concat()).exits(1);
    let events = test_events(&project.read("events.jsonl"));
    let kinds: Vec<(&str, u64)> =
        events.iter().map(|event| (event["type"].as_str().unwrap(), event["i"].as_u64().unwrap())).collect();
    assert_eq!(
        kinds,
        [
            ("test:start", 0),
            ("test:fail", 0),
            ("test:start", 1),
            ("test:error", 1),
            ("test:skip", 2),
            ("test:start", 3),
            ("test:pass", 3),
        ]
    );
    assert_eq!(events[0], json!({"type": "test:start", "i": 0, "script": "toolTester", "input": {"name": "Alice"}}));
    let fail = &events[1];
    for (key, expected) in [
        ("title", json!("greets")),
        ("passed", json!(false)),
        ("input", json!({"name": "Alice"})),
        ("score", json!(60.0)),
        ("maxScore", json!(100.0)),
        ("passScore", json!(70.0)),
        ("failedCritical", json!(["greeting"])),
        ("reason", json!("He is Bob.")),
        ("script", json!("toolTester")),
        ("tools", json!(["lookup.ai.yaml"])),
    ] {
        assert_eq!(fail[key], expected, "{key}");
    }
    assert_eq!(fail["actual"]["greeting"], "Hello, Bob");
    assert_eq!(fail["expected"]["tone"]["$score"], 20);
    assert_eq!(fail["actualTrace"].as_array().unwrap().len(), 3);
    assert_eq!(fail["vars"]["name"], "Alice");
    assert_eq!(fail["failures"][0]["key"], "greeting");
    let [output, expect] = fail["scoreDetails"].as_array().unwrap().as_slice() else { panic!("{fail:#}") };
    assert_eq!((&output["key"], &output["score"], &output["pass"]), (&json!("output"), &json!(0.2), &json!(false)));
    assert_eq!((&expect["key"], &expect["weight"]), (&json!("expect"), &json!(50.0)));
    assert_eq!(output["details"][0]["title"], "Greeting");
    assert!(events[3]["error"].as_str().unwrap().contains("it is down"), "{}", events[3]);
    assert_eq!(events[3].get("score"), None);
    assert_eq!((&events[4]["skipped"], &events[4]["duration"]), (&json!(true), &json!(0)));
    assert_eq!((&events[6]["not"], events[6].get("failures")), (&json!(true), None));
}

#[test]
fn a_recorded_run_is_reported_again_byte_for_byte() {
    let project = answered();
    let reports = ["--report", "terminal", "--report", "json=out.json", "--report", "jsonl=out.jsonl"];
    let live = project.run(&[&["run"], RUN, &reports].concat()).exits(1);
    let replayed = |format: &str| project.run(&["report", "latest", "--format", format]).exits(0).out;
    assert_eq!(replayed("json"), project.read("out.json"));
    assert_eq!(replayed("jsonl"), project.read("out.jsonl"));
    assert_eq!(replayed("terminal"), live.out);
    let shown = project.run(&["show", "greets"]).exits(0).out;
    assert!(shown.contains("score 60 of 100") && shown.contains("Greeting"), "{shown}");
}

#[test]
fn the_exit_code_reflects_the_result() {
    for (answer, code) in [
        (r#"{"output":"yes"}"#, 0),
        (r#"{"output":"no"}"#, 1),
        (r#"{"error":"it is down"}"#, 3),
        (r#"{"output":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab"}"#, 3),
    ] {
        let suite = if code == 3 { "output: /^(a+)+$/\n" } else { "output: \"yes\"\n" };
        let project = project(&[("x.fixture.yaml", suite), ("answers.jsonl", answer)]);
        project.run(&["run", "x.fixture.yaml", "--agent", "recorded:answers.jsonl"]).exits(code);
    }
    let project =
        project(&[("x.fixture.yaml", "expect: { output: \"/(/\", $contians: 1 }\n"), ("answers.jsonl", "{}\n")]);
    project.run(&["run", "x.fixture.yaml", "--agent", "recorded:answers.jsonl"]).exits(2);
}

#[test]
fn answers_are_matched_to_their_cases_under_every_selection() {
    let suite = "- { title: one, output: \"1\" }\n- { output: \"2\" }\n- { title: three, output: \"3\" }\n";
    let by_id =
        "{\"case\":\"three\",\"output\":\"3\"}\n{\"case\":\"one\",\"output\":\"1\"}\n{\"case\":2,\"output\":\"no\"}\n";
    let by_place = "{\"output\":\"1\"}\n{\"output\":\"no\"}\n{\"output\":\"3\"}\n";
    let by_number = "{\"i\":2,\"output\":\"3\"}\n{\"i\":0,\"output\":\"1\"}\n{\"i\":1,\"output\":\"no\"}\n";
    for (how, answers) in [("by id", by_id), ("by place", by_place), ("by number", by_number)] {
        let project = project(&[("x.fixture.yaml", suite), ("answers.jsonl", answers)]);
        let run = |more: &[&str], code| {
            project.report(&[&["x.fixture.yaml", "--agent", "recorded:answers.jsonl"], more].concat(), code)
        };
        assert_eq!(outcomes(&run(&[], 1)), [("one", "passed"), ("2", "failed"), ("three", "passed")], "{how}");
        assert_eq!(outcomes(&run(&["--failed-in", "latest"], 1)), [("2", "failed")], "{how}");
        assert_eq!(outcomes(&run(&["--case", "three"], 0)), [("three", "passed")], "{how}");
        assert_eq!(
            outcomes(&run(&["--case", "2", "--case", "three"], 1)),
            [("2", "failed"), ("three", "passed")],
            "{how}"
        );
    }
}

#[test]
fn only_skip_and_not_work_in_cases_and_in_the_front_matter() {
    let agent = ["--agent", "recorded:answers.jsonl"];
    let run = |suite: &str, code| {
        let project =
            project(&[("x.fixture.yaml", suite), ("answers.jsonl", "{\"output\":\"a\"}\n{\"output\":\"a\"}\n")]);
        let report = project.report(&[&["x.fixture.yaml"][..], &agent].concat(), code);
        outcomes(&report).into_iter().map(|(_, outcome)| outcome.to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(run("- { output: a }\n- { output: a, only: true }\n", 0), ["skipped", "passed"]);
    assert_eq!(run("- { output: a, only: true, skip: true }\n- { output: a, only: true }\n", 0), ["skipped", "passed"]);
    assert_eq!(run("- { output: a, skip: true }\n- { output: a, not: true }\n", 1), ["skipped", "failed"]);
    assert_eq!(run("---\nskip: true\n---\n- { output: b }\n- { output: a, skip: false }\n", 0), ["skipped", "passed"]);
    assert_eq!(run("---\nnot: true\n---\n- { output: b }\n- { output: a, not: false }\n", 0), ["passed", "passed"]);
}

#[test]
fn every_file_format_yields_the_same_suite() {
    let answers = "{\"output\":\"Hello Alice\"}\n{\"output\":[{\"n\":2},{\"n\":1}]}\n";
    let json = r#"[{"title":"a","input":{"who":"Alice"},"output":"/hello {{who}}/i"},{"title":"b","output":{"$sort":{"$by":"n","$first":{"n":1}}}}]"#;
    let lines = json.trim_start_matches('[').trim_end_matches(']').replace("},{\"title\"", "}\n{\"title\"");
    let yaml = "- { title: a, input: { who: Alice }, output: !re \"/hello {{who}}/i\" }\n- { title: b, output: { $sort: { $by: n, $first: { n: 1 } } } }\n";
    let stream = "---\ntitle: a\ninput: { who: Alice }\noutput: /hello {{who}}/i\n---\ntitle: b\noutput: { $sort: { $by: n, $first: { n: 1 } } }\n";
    // If there are several documents, the first is the front matter.
    let stream = format!("---\n{{}}\n{stream}");
    let module = "interface Item { n: number }\nexport const fixtures = [\n  { title: 'a', input: { who: 'Alice' }, output: /hello alice/i },\n  { title: 'b', output: { $sort: { $by: (item: Item) => item.n, $first: { n: (actual: number) => actual === 1 } } } },\n];\n";
    for (name, text) in [
        ("x.fixture.json", json),
        ("x.fixtures.jsonl", &lines),
        ("x.fixture.yml", yaml),
        ("x.fixture.yaml", &stream),
        ("x.fixture.ts", module),
    ] {
        let project = project(&[(name, text), ("answers.jsonl", answers)]);
        let report = project.report(&[name, "--agent", "recorded:answers.jsonl"], 0);
        assert_eq!(outcomes(&report), [("a", "passed"), ("b", "passed")], "{name}");
        assert_eq!(trial(&report, "a")["suite"], "x", "{name}");
    }
}

const ECHO: &str = "interface Context { script?: string; args: Record<string, unknown>; options: object }\n\
    export const execute = async ({ script, args, options }: Context) => ({ output: { script, args, options } });\n";

#[test]
fn a_file_with_scripts_runs_every_case_with_each_script() {
    let suite = "---\nscripts: [short.ai.yaml, long.ai.yaml]\n---\n\
        - { title: greets, input: Hi, output: { script: long.ai.yaml } }\n\
        - { title: own, input: Hi, script: own.ai.yaml, output: { script: own.ai.yaml } }\n";
    let project = project(&[("x.fixture.yaml", suite), ("echo.ts", ECHO)]);
    let report = project.report(&["x.fixture.yaml", "--agent", "custom:echo.ts"], 1);
    assert_eq!(
        outcomes(&report),
        [("greets [short.ai.yaml]", "failed"), ("greets [long.ai.yaml]", "passed"), ("own", "passed")]
    );
    let positions: Vec<&Value> = report["trials"].as_array().unwrap().iter().map(|trial| &trial["position"]).collect();
    assert_eq!(positions, [0, 0, 1]);
}

#[test]
fn the_fixtures_section_of_the_project_applies_to_all_files() {
    let section = "fixtures:\n  baseDir: checks\n  operators: { $even: \"./even.js\" }\n  userConfig: { model: small, data: { who: Alice } }\n  \
        defaults: { input: { lang: en }, script: greet.ai.yaml }\n  scoring: true\n  passScore: 40\n";
    let suite = "- title: a\n  input: { n: 2 }\n  output:\n    script: greet.ai.yaml\n    args: { who: \"{{ who }}\", lang: en, n: { $even: true } }\n    \
        options: { model: small }\n- { title: b, output: [1, 2], expect: { output: { args: { lang: en } } } }\n";
    let even = "export default (actual) => actual % 2 === 0;\n";
    let project = project(&[
        ("trialrun.yaml", section),
        ("tests/x.fixture.yaml", suite),
        ("checks/even.js", even),
        ("echo.ts", ECHO),
    ]);
    let report = project.report(&["tests/x.fixture.yaml", "--agent", "custom:echo.ts"], 0);
    assert_eq!(outcomes(&report), [("a", "passed"), ("b", "passed")]);
    let half = trial(&report, "b");
    assert_eq!((&half["score"], &half["pass_score"]), (&json!(50.0), &json!(40.0)));
}

#[test]
fn an_executor_that_throws_or_returns_nothing_fails_only_its_own_case() {
    let executor = "export default class Agent {\n  async execute({ args }) {\n    console.log(`asked ${args.input}`);\n    \
        if (args.input === 'throw') throw new Error('no such model');\n    if (args.input === 'nothing') return null;\n    \
        return { output: 'fine', usage: { input: 3, output: 4 } };\n  }\n}\n";
    let suite = "- { title: throws, input: throw, output: fine }\n- { title: gives nothing, input: nothing, output: fine }\n- { title: answers, input: x, output: fine }\n";
    let project = project(&[("x.fixture.yaml", suite), ("agent.mjs", executor)]);
    let report = project.report(&["x.fixture.yaml", "--agent", "custom:agent.mjs"], 1);
    assert_eq!(outcomes(&report), [("throws", "failed"), ("gives nothing", "failed"), ("answers", "passed")]);
    assert!(trial(&report, "throws")["because"].as_str().unwrap().contains("no such model"), "{report:#}");
    assert_eq!(trial(&report, "answers")["usage"]["total"], 7);
}

#[test]
fn a_tool_is_tested_by_its_file_name_and_an_executor_need_not_return_messages() {
    let project = project(&[
        (
            "agent.mjs",
            "export const execute = ({ script, args }) => args.input === 'plain text' ? 'text' : { output: `${script} ${args.tools ?? ''}` };\n",
        ),
        (
            "weather.fixture.yaml",
            "tools: true\nskips: { '2': true }\n---\n- { title: tester, input: hi, output: toolTester weather.ai.yaml }\n\
             - { title: none, input: hi, expect: { tools: [] } }\n- { title: skipped, input: hi, output: x }\n\
             - { title: untold, input: hi, expect: { messages: { $exists: false } } }\n\
             - { title: text, input: plain text, expect: { messages: { $exists: false } } }\n\
             - title: three\n  input: hi\n  output: toolTester\n  expect: { output: weather }\n  outputSchema: { type: string }\n",
        ),
    ]);
    let report = project.report(&["weather.fixture.yaml", "--agent", "custom:agent.mjs"], 1);
    assert_eq!(
        outcomes(&report),
        [
            ("tester", "passed"),
            ("none", "failed"),
            ("skipped", "skipped"),
            ("untold", "passed"),
            ("text", "passed"),
            ("three", "passed")
        ]
    );
    let run =
        ["run", "weather.fixture.yaml", "--agent", "custom:agent.mjs", "--case", "three", "--report", "jsonl=events"];
    project.run(&run).exits(0);
    let ends = test_events(&project.read("events"));
    let three = ends.last().unwrap();
    for (key, expected) in [
        ("expected", json!("toolTester")),
        ("expectedTrace", json!({"output": "weather"})),
        ("expectedSchema", json!({"type": "string"})),
    ] {
        assert_eq!(three[key], expected, "{three:#}");
    }
}
