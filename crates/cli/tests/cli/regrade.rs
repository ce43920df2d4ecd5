//! Grading recorded evidence again: the same verdicts with the same suite, different verdicts with a different one,
//! whatever has happened to the workspace in the meantime.

#![allow(clippy::unwrap_used)]

use serde_json::{Value, json};
use testkit::Project;

const PROGRAM: &str = env!("CARGO_BIN_EXE_trialrun");

const SKILL: &str = "---\nname: notes\ndescription: Writes release notes.\n---\n\nWrite RELEASE_NOTES.md.\n";

/// A program that uses its skill if it has one, commits, and answers.
const AGENT: &str = r#"read -r line
if [ -e .agents/skills/notes/SKILL.md ]; then
  printf '## Added\n- a thing\n' > RELEASE_NOTES.md
  git checkout -q -b notes && git add RELEASE_NOTES.md && git commit -q -m 'Add notes'
  mkdir -p drafts && head -c 20000 /dev/zero | tr '\0' 'x' > drafts/long.md
fi
echo '{"text":"done","usage":{"input":100,"output":20},"tool_calls":[{"name":"Bash","arguments":{"command":"git log"},"result":"ok"}]}'
"#;

fn suite(assertions: &Value, control: &Value) -> String {
    json!({"skill_name": "notes", "evals": [
        {"id": "writes", "prompt": "Write the notes.", "expected_output": "Notes.", "files": ["files/log.txt"],
         "assertions": assertions},
        {"id": "only-asks", "prompt": "How many?", "expected_output": "One.", "should_trigger": false,
         "assertions": control},
    ]})
    .to_string()
}

fn project() -> Project {
    let project = Project::new(PROGRAM);
    project.write("skills/notes/SKILL.md", SKILL);
    project.write("skills/notes/evals/files/log.txt", "a\n");
    project.write("agent.sh", AGENT);
    project.write(
        "skills/notes/evals/evals.json",
        &suite(
            &json!([
                "The file `RELEASE_NOTES.md` exists",
                "A new git branch and a commit were created",
                {"type": "file_contains", "path": "RELEASE_NOTES.md", "contains": "added"},
                {"type": "command_ran", "command": "git log"},
                {"type": "file_unchanged", "path": "log.txt"},
            ]),
            &json!(["A new git branch was created"]),
        ),
    );
    project
}

const RUN: [&str; 5] = ["skills/notes", "--agent", "subprocess:sh agent.sh", "--retries", "0"];

/// The arm with the skill.
const ARM: &str = "subprocess:sh agent.sh+with_skill";

/// Ids and statuses of findings.
type Findings = Vec<(String, String)>;

/// Returns each trial with its outcome and its findings.
fn verdicts(report: &Value) -> Vec<(String, String, Findings)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let trials = report["trials"].as_array().unwrap().iter();
    let findings = |trial: &Value| {
        let all = trial["findings"].as_array().unwrap().iter();
        all.map(|finding| {
            (text(&finding["id"]), format!("{}: {}", text(&finding["status"]), text(&finding["because"])))
        })
        .collect()
    };
    let mut all: Vec<_> = trials.map(|trial| (text(&trial["id"]), text(&trial["outcome"]), findings(trial))).collect();
    all.sort();
    all
}

#[track_caller]
fn regraded(project: &Project, arguments: &[&str], code: i32) -> Value {
    let mut all = vec!["regrade"];
    all.extend(arguments);
    all.extend(["--report", "json"]);
    project.run(&all).exits(code).json()
}

#[test]
fn the_same_suite_gives_the_same_result_without_the_workspace() {
    let project = project();
    let live = project.report(&RUN, 1);
    assert_eq!(project.left_over(), [""; 0]);
    let again = regraded(&project, &[], 1);
    assert_eq!(verdicts(&again), verdicts(&live));
    assert_eq!(again["run"]["regrade_of"], live["run"]["id"]);
    assert_ne!(again["run"]["id"], live["run"]["id"]);
    for same in ["summary", "arms", "deltas"] {
        let mut pair = [&live, &again].map(|report| report[same].clone());
        pair.iter_mut().for_each(without_times);
        assert_eq!(pair[0], pair[1], "{same}");
    }
    let third = regraded(&project, &["latest"], 1);
    assert_eq!((&third["run"]["regrade_of"], verdicts(&third)), (&again["run"]["id"], verdicts(&live)));
    // It is shown like any other run.
    assert!(project.run(&["history", "--cases", "--last", "30"]).exits(0).out.contains("writes"));
    assert!(project.run(&["show", &format!("notes/evals::writes@{ARM}#1")]).exits(0).out.contains("git log"));
    project.run(&["compare", "previous", "latest"]).exits(0);
}

#[test]
fn the_suite_is_found_from_every_folder_of_the_project() {
    let project = project();
    project.write("trialrun.yaml", "defaults: { retries: 0 }\n");
    let inside = |folder: &str, arguments: &[&str]| {
        let mut command = project.command(arguments);
        command.current_dir(project.dir().join(folder));
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{folder}: {}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    let live = project.report(&RUN, 1);
    let agent = format!("subprocess:sh {}", project.dir().join("agent.sh").display());
    inside("skills", &["run", "notes/evals/evals.json", "--agent", &agent, "--report", "json"]);
    for folder in ["skills/notes/evals", "."] {
        let of_first = inside(folder, &["regrade", live["run"]["id"].as_str().unwrap(), "--report", "json"]);
        assert_eq!(verdicts(&of_first), verdicts(&live), "{folder}");
        let of_last = inside(folder, &["regrade", "latest", "--report", "json"]);
        assert_eq!(verdicts(&of_last).len(), verdicts(&live).len(), "{folder}");
    }
}

fn without_times(value: &mut Value) {
    match value {
        Value::Object(entries) => {
            entries.retain(|key, _| !key.contains("duration"));
            entries.values_mut().for_each(without_times);
        }
        Value::Array(items) => items.iter_mut().for_each(without_times),
        _ => {}
    }
}

#[test]
fn a_different_suite_is_graded_on_the_recorded_files() {
    let project = project();
    let live = project.report(&RUN, 1);
    let with = |report: &Value, case: &str| {
        let all = report["trials"].as_array().unwrap();
        let id = format!("notes/evals::{case}@{ARM}#1");
        all.iter().find(|trial| trial["id"] == id.as_str()).unwrap().clone()
    };
    assert_eq!(with(&live, "only-asks")["outcome"], "failed");
    project.write(
        "skills/notes/evals/evals.json",
        &suite(
            &json!([
                {"type": "file_exists", "path": "drafts/long.md"},
                {"type": "file_not_exists", "path": "drafts/other.md"},
                {"type": "file_contains", "path": "drafts/long.md", "contains": "XXXX"},
                {"type": "file_contains", "path": "log.txt", "contains": "b"},
                "The file `RELEASE_NOTES.md` contains \"a thing\"",
            ]),
            &json!([]),
        )
        .replace("\"should_trigger\":false", "\"should_trigger\":true"),
    );
    let again = regraded(&project, &[], 1);
    let statuses = |trial: &Value| -> Vec<String> {
        let all = trial["findings"].as_array().unwrap().iter().filter(|finding| !finding["source"].is_null());
        all.map(|finding| finding["status"].as_str().unwrap().to_owned()).collect()
    };
    let writes = with(&again, "writes");
    assert_eq!(statuses(&writes), ["met", "met", "met", "unmet", "met"], "{writes:#}");
    let asks = with(&again, "only-asks");
    assert_eq!((&asks["outcome"], &asks["should_trigger"]), (&"undecided".into(), &true.into()), "{asks:#}");
}

#[test]
fn unprobed_assertions_are_undecided_with_a_reason() {
    let project = Project::new(PROGRAM);
    let scenario = |assertions: &str| {
        format!(
            "scenario: s\nsystem_prompt: x\nuser_prompt: '!write a.txt hello'\nagent: fake\nfixtures:\n  git_init: true\n\
             assertions:\n{assertions}"
        )
    };
    project.write("s.yaml", &scenario("  - {id: one, type: file_contains, path: a.txt, text: hello}\n"));
    project.report(&["s.yaml"], 0);
    project.write(
        "s.yaml",
        &scenario(
            "  - {id: one, type: file_contains, path: a.txt, text: hello}\n  - {id: two, type: file_exists, path: b.txt}\n  \
             - {id: three, type: command, run: 'true'}\n",
        ),
    );
    let again = regraded(&project, &[], 3);
    let trial = &again["trials"][0];
    let output: Vec<(&str, &str)> = trial["findings"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|finding| !finding["source"].is_null())
        .map(|finding| (finding["status"].as_str().unwrap(), finding["because"].as_str().unwrap()))
        .collect();
    assert_eq!(output[0].0, "met");
    assert_eq!(
        output[1..],
        [
            (
                "undecided",
                "could not inspect `b.txt`: it was not inspected during the trial, and the list of files is not recorded"
            ),
            (
                "undecided",
                "\"true\" could not be run: it was not run during the trial, and the sandbox no longer exists"
            ),
        ]
    );
}

#[test]
fn every_omitted_trial_is_reported() {
    let project = Project::new(PROGRAM);
    let answers = "{\"case\":\"kept\",\"output\":\"yes\"}\n{\"case\":\"gone\",\"output\":\"yes\"}\n{\"case\":\"bad\",\"error\":\"no answer\"}\n";
    project.write("answers.jsonl", answers);
    let scenario = |id: &str| {
        format!(
            "scenario: {id}\nsystem_prompt: x\nuser_prompt: go\nassertions: [{{id: a, type: output_contains, pattern: yes}}]\n"
        )
    };
    for id in ["kept", "gone", "bad"] {
        project.write(&format!("scenarios/{id}.yaml"), &scenario(id));
    }
    project.report(&["scenarios", "--agent", "recorded:answers.jsonl", "--retries", "0"], 3);
    std::fs::remove_file(project.dir().join("scenarios/gone.yaml")).unwrap();
    project.write("scenarios/new.yaml", &scenario("new"));
    let ran = project.run(&["regrade", "--report", "json"]).exits(3);
    let outcome = |case: &str| {
        let report = ran.json();
        let trials = report["trials"].as_array().unwrap().clone();
        let trial = trials.iter().find(|trial| trial["case"] == case).unwrap();
        (trial["outcome"].as_str().unwrap().to_owned(), trial["because"].as_str().unwrap_or_default().to_owned())
    };
    assert_eq!(outcome("kept").0, "passed");
    assert_eq!(outcome("gone"), ("skipped".into(), "its suite was not loaded".into()));
    assert_eq!(outcome("bad").0, "broken");
    for note in [
        "1 trial is skipped: its suite was not loaded",
        "1 trial is kept unchanged: it was broken",
        "1 case is not in the run: ",
    ] {
        assert!(ran.err.contains(note), "{}", ran.output());
    }
}

#[test]
fn regrading_uses_the_judge_of_the_run_or_a_specified_one() {
    let project = project();
    let judged = json!({"skill_name": "notes", "evals": [{"id": "writes", "prompt": "Write the notes.",
        "expected_output": "Notes.", "assertions": ["What breaks is easy to find"]}]});
    project.write("skills/notes/evals/evals.json", &judged.to_string());
    for (judge, verdict) in [("kind", "met"), ("strict", "violated")] {
        let row = json!({"id": "c1", "quote": "done", "reasoning": "As it says.", "verdict": verdict});
        let answer = json!({"answers": [row]}).to_string();
        project.write(&format!("{judge}.yaml"), &json!({"steps": [{"text": answer}]}).to_string());
    }
    let run = [&RUN[..], &["--no-baseline", "--judge", "scripted:kind.yaml"]].concat();
    let live = project.report(&run, 0);
    let again = regraded(&project, &[], 0);
    assert_eq!(verdicts(&again), verdicts(&live));
    assert_eq!(again["run"]["settings"]["judge"], "scripted:kind.yaml");
    let other = regraded(&project, &["--judge", "scripted:strict.yaml"], 1);
    assert_eq!(other["trials"][0]["findings"][0]["status"], "unmet");
    project.run(&["compare", "previous", "latest"]).exits(1);
}

#[test]
fn an_unknown_run_or_an_invalid_suite_prevents_regrading() {
    let project = project();
    project.run(&["regrade"]).exits(2);
    project.report(&RUN, 1);
    let error = project.run(&["regrade", "zzz"]).exits(2);
    assert!(error.err.contains("unknown run `zzz`"), "{}", error.output());
    project.write("skills/notes/evals/evals.json", "{}");
    let wrong = project.run(&["regrade"]).exits(2);
    assert!(wrong.err.contains("skills/notes/evals/evals.json:1:1"), "{}", wrong.output());
    assert_eq!(project.run(&["history", "--cases", "--json"]).exits(0).json().as_array().map(Vec::len), Some(4));
}

#[test]
fn findings_of_post_grade_commands_are_kept() {
    let project = project();
    project.write(
        "hook.sh",
        "test -e RELEASE_NOTES.md; echo \"[{\\\"text\\\": \\\"looked\\\", \\\"passed\\\": false}]\"\n",
    );
    let run = [&RUN[..], &["--post-grade-command", "sh hook.sh"]].concat();
    let live = project.report(&run, 1);
    let again = regraded(&project, &[], 1);
    assert_eq!(verdicts(&again), verdicts(&live));
    let text = again.to_string();
    assert!(text.contains("hook: looked"), "{again:#}");
}

#[test]
fn a_comment_in_the_file_keeps_verdicts_on_masked_evidence() {
    let project = Project::new(PROGRAM);
    let test = "name: a\nagent: fake\nturns: [{says: 'token ghp_A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8 here'}]\n\
                assertions:\n  - {type: expect, output: /here/}\n  - {type: contains, text: here}\n";
    project.write("tests/a.yaml", test);
    project.run(&["run"]).exits(0);
    project.write("tests/a.yaml", &format!("# a comment\n{test}"));
    project.run(&["regrade", "latest"]).exits(0);
    project.write("tests/a.yaml", &test.replace("/here/", "/token/"));
    let ran = project.run(&["regrade", "latest"]).exits(3);
    assert!(ran.output().contains("[masked]"), "{}", ran.output());
}
