//! The single table of assertions: files, code, declarations and the reference page agree with it. Also the probes
//! that assertions make of the sandbox.

use grade::ASSERTIONS;
use serde_json::{Value, json};

use super::empty;

/// Returns the assertions that suites can contain, with their names in code.
fn written() -> Vec<(&'static str, String)> {
    let written = ASSERTIONS.iter().filter(|assertion| !assertion.is_implicit());
    written.map(|assertion| (assertion.name, assertion.code_name())).collect()
}

/// Returns a value for the assertion field called `name`, as JSON.
fn value(assertion: &str, field: &grade::Field) -> Value {
    let words = field.holds;
    match field.name {
        "sequence" => json!([{"tool": "Read"}]),
        "criteria" if assertion == "rubric" => json!(["it is polite"]),
        "scale" => json!(5),
        "schema" => json!({"type": "object"}),
        "args_match" => json!({"order": "17"}),
        _ if words.starts_with("whole number") || words.starts_with("number") => json!(2),
        _ if words.starts_with("duration") => json!("2s"),
        _ if words.starts_with("true or false") => json!(true),
        _ if words.starts_with("list of") => json!(["a"]),
        _ => json!("a"),
    }
}

/// Returns the required fields of an assertion.
fn needed(assertion: &grade::Assertion) -> serde_json::Map<String, Value> {
    let mut fields: serde_json::Map<String, Value> = assertion
        .fields
        .iter()
        .filter(|field| field.required)
        .map(|field| (field.name.to_owned(), value(assertion.name, field)))
        .collect();
    match assertion.name {
        "expect" => drop(fields.insert("output".into(), json!("a"))),
        "file_contains" => fields.extend([("path".into(), json!("a")), ("text".into(), json!("a"))]),
        "guardrail" => drop(fields.insert("must_not".into(), json!(["a"]))),
        _ => {}
    }
    fields
}

#[test]
fn files_code_declarations_and_the_reference_have_the_same_assertions() {
    let project = empty();
    let types = project.run(&["schema", "types"]).exits(0).out;
    let page = include_str!("../../../../../docs/reference/assertions.md");
    let listed = project.run(&["list", "--assertions", "--json"]).exits(0).json();
    for (name, code) in written() {
        assert!(types.contains(&format!("\n    {code}: Claim<")), "{code} is not declared");
        assert!(page.contains(&format!("\n## `{name}`\n")), "{name} has no section");
        assert!(page.contains(&format!("`assert.{code}(reply")), "{code} is not on the page");
        assert!(listed.as_array().unwrap().iter().any(|row| row["name"] == name), "{name} is not listed");
        let assertion = grade::find(&code).unwrap();
        assert_eq!(assertion.name, name);
        for field in assertion.fields {
            assert!(page.contains(&format!("| `{}` |", field.name)), "{name} {}", field.name);
        }
    }
    let declared = types.split("export interface Assertions {").nth(1).unwrap().split("\n  }\n").next().unwrap();
    for line in declared.lines().filter(|line| line.contains(": Claim<")) {
        let name = line.trim().split(':').next().unwrap();
        assert!(grade::find(name).is_some(), "{name} is declared but does not exist");
    }
}

#[test]
fn every_assertion_is_read_from_a_file_in_every_notation() {
    for assertion in ASSERTIONS.iter().filter(|assertion| !assertion.is_implicit()) {
        let (name, code) = (assertion.name, assertion.code_name());
        let fields = needed(assertion);
        let mut long = fields.clone();
        long.insert("type".into(), json!(name));
        let brief = match assertion.parameters {
            [grade::Parameter::Map(only)] => fields[*only].clone(),
            _ => Value::Object(fields),
        };
        let conversation = json!({
            "name": "all", "agent": "fake", "fixtures": {"git_init": true},
            "mock_commands": {"a": {"answers": [{"stdout": "x"}]}},
            "turns": [{"says": "hello", "expect": [{code.clone(): brief.clone()}]}],
            "assertions": [long, {name: brief}],
        });
        let project = empty();
        project.write("scenarios/all.json", &conversation.to_string());
        let ran = project.run(&["check", "scenarios/all.json"]).exits(0);
        assert!(!ran.err.contains("error"), "{name}: {}", ran.output());
    }
}

#[test]
fn every_configuration_key_has_a_type_declaration() {
    let types = grade::declarations();
    let config = types.split("export interface Config {").nth(1).unwrap().split("\n  }\n").next().unwrap();
    let schema = suite::config_schema();
    for key in schema["properties"].as_object().unwrap().keys().filter(|key| !key.contains('_')) {
        assert!(config.contains(&format!("\n    {key}?:")), "{key}");
    }
}

const LOOKS: &str = "\
name: looks into the sandbox
agent: fake
fixtures:
  files_committed:
    - { path: kept.txt, content: \"kept\\n\" }
turns:
  - says: |
      !write notes/made.txt Hello, Ada!
      !write changed.sh echo to stdout; echo to stderr >&2; exit 3
assertions:
  - file_exists: notes/made.txt
  - file_not_exists: notes/other.txt
  - file_contains: { path: notes/made.txt, text: Ada }
  - file_contains: { path: notes/made.txt, pattern: /ADA/i }
  - file_unchanged: kept.txt
  - command: { run: sh changed.sh, exit_code: 3, output: to stdout }
  - command: { run: sh changed.sh, exitCode: 3, output: /^to stderr$/m }
  - command: test \"$(cat notes/made.txt)\" = \"Hello, Ada!\" && echo later > notes/later.txt
  - file_not_exists: notes/later.txt
";

#[test]
fn the_sandbox_is_probed_after_the_agent_has_ended() {
    let project = empty();
    project.write("scenarios/looks.yaml", LOOKS);
    let report = project.report(&[], 0);
    let findings = report["trials"][0]["findings"].as_array().unwrap();
    assert_eq!(findings.iter().filter(|finding| finding["status"] == "met").count(), findings.len(), "{findings:#?}");
    assert!(findings.iter().any(|finding| finding["id"] == "command-2"));
    assert_eq!(report["trials"][0]["files_changed"].as_array().unwrap().len(), 2, "changes by commands do not count");
}

#[test]
fn a_command_that_fails_or_hangs_fails_the_trial_and_shows_what_it_wrote() {
    let project = empty();
    project.write(
        "scenarios/c.yaml",
        "name: c\nagent: fake\nfixtures: { env: { DB_PASSWORD: hunter2-hunter2 } }\nturns: [hi]\nassertions:\n  - command: \
         echo \"$DB_PASSWORD\"; exit 4\n  - command: { run: echo hunter2-hunter2, output: hunter3 }\n  - command: { run: \
         'sleep 60', timeout: 50ms }\n  - file_exists: ../secret\n",
    );
    let ran = project.run(&["check"]).exits(2);
    assert!(ran.err.contains("`path` cannot leave the working directory"), "{}", ran.output());
    project.write("scenarios/c.yaml", &project.read("scenarios/c.yaml").replace("  - file_exists: ../secret\n", ""));
    let report = project.report(&[], 1);
    let findings = &report["trials"][0]["findings"];
    assert_eq!(findings[0]["because"], "the command exited with code 4");
    assert_eq!(findings[0]["evidence"], json!(["[masked]"]));
    assert_eq!(findings[1]["status"], "unmet");
    assert_eq!(findings[2]["because"], "the command did not finish within 0.05 s");
    assert!(!report.to_string().contains("hunter2"));
}

#[test]
fn file_assertions_require_an_agent_with_a_sandbox() {
    let project = empty();
    project.write("scenarios/c.yaml", "name: c\nagent: fake\nturns: [hi]\nassertions:\n  - file_exists: a\n");
    let ran = project.run(&["check"]).exits(2);
    assert!(ran.err.contains("`file_exists` needs a sandbox, and `fake` runs without one"), "{}", ran.output());
}

#[test]
fn a_conversation_is_judged_turn_by_turn_and_one_that_asserts_nothing_does_not_pass() {
    let project = empty();
    project.write(
        "tests/deep/talk.yaml",
        "name: talk\nagent: fake\nturns:\n  - says: one\n    expect: [{ contains: ONE }, { not_contains: two }]\n  - says: \
         two\n    expect: [{ contains: two }]\nassertions:\n  - contains: two\n  - not_contains: one\n",
    );
    let report = project.report(&[], 0);
    assert_eq!(
        report["trials"][0]["findings"].as_array().unwrap().iter().filter(|it| it["implicit"] != true).count(),
        5
    );
    project.write("tests/silent.yaml", "name: silent\nagent: fake\nturns: [one]\n");
    let report = project.report(&["--case", "silent"], 3);
    assert_eq!(report["trials"][0]["outcome"], "undecided");
    assert_eq!(report["trials"][0]["because"], "nothing_asserted: it has no assertions, so nothing was checked");
    let ran = project.run(&["check"]).exits(0);
    assert!(ran.err.contains("`silent` has no assertions"), "{}", ran.output());
}
