//! Runs made elsewhere: judged, written for other tools, and turned into tests.

#![allow(clippy::unwrap_used)]

use serde_json::{Value, json};
use testkit::{Project, git};

const PROGRAM: &str = env!("CARGO_BIN_EXE_trialrun");

/// Returns the outcome and the calls of each trial.
fn results(report: &Value) -> Vec<(String, String, Value)> {
    let trials = report["trials"].as_array().unwrap().iter();
    trials
        .map(|trial| {
            let calls = trial["tool_calls"].as_array().unwrap().iter();
            let calls = calls.map(|call| json!([call["name"], call["input"], call["result"], call["is_error"]]));
            (trial["case"].to_string(), trial["outcome"].to_string(), calls.collect())
        })
        .collect()
}

#[test]
fn trajectories_that_a_run_writes_have_the_same_calls_and_verdicts_when_they_are_read() {
    let project = Project::new(PROGRAM);
    let scenario = |name: &str, prompt: &str, assertions: &str| {
        let text = format!(
            "scenario: {name}\nsystem_prompt: Work.\nuser_prompt: {}\nassertions:\n{assertions}",
            Value::from(prompt)
        );
        project.write(&format!("scenarios/{name}.yaml"), &text);
    };
    let looks = "!call Read {\"file_path\":\"a.txt\"} => text\n!fail Bash {\"command\":\"false\"} => no\n!say done";
    scenario(
        "looks",
        looks,
        "  - { id: reads, type: tool_called, tool: Read }\n  - { id: no-edit, type: no_tool_called, tool: Edit }\n",
    );
    scenario("idles", "!say nothing to do", "  - { id: reads, type: tool_called, tool: Read }\n");
    let run = ["scenarios", "--agent", "fake", "--report", "atif=trajectories"];
    let first = results(&project.report(&run, 1));
    assert_eq!(
        first[1].2,
        json!([["Read", {"file_path": "a.txt"}, "text", false], ["Bash", {"command": "false"}, "no", true]])
    );
    let again = results(&project.report(&["scenarios", "--agent", "recorded:trajectories"], 1));
    assert_eq!(first, again);
    let refused = project.run(&[&["run"], &run[..]].concat()).exits(2);
    assert!(refused.err.contains("trajectories is not empty"), "{}", refused.err);
    project.run(&["report", "latest", "--format", "atif=again"]).exits(0);
    let files = std::fs::read_dir(project.dir().join("again")).unwrap().map(|entry| entry.unwrap().path());
    let looked = files.into_iter().find(|path| path.to_string_lossy().contains("looks@recorded")).unwrap();
    let trajectory: Value = serde_json::from_str(&std::fs::read_to_string(looked).unwrap()).unwrap();
    assert_eq!(trajectory["steps"][1]["tool_calls"][0]["function_name"], "Read");
}

#[test]
fn files_that_no_recording_contains_are_undecided_although_the_case_has_fixtures() {
    let project = Project::new(PROGRAM);
    project.write("answers.jsonl", "{\"case\": \"keeps\", \"output\": \"done\", \"tool_calls\": []}\n");
    let scenario = "scenario: keeps\nsystem_prompt: Work.\nfixtures:\n  files_unstaged: [{ path: a.txt, content: a }]\n\
                    assertions:\n  - { id: kept, type: file_exists, path: a.txt }\n  - { id: checks, type: command, run: 'true' }\n";
    project.write("keeps.yaml", scenario);
    let ran = project.run(&["run", "keeps.yaml", "--agent", "recorded:answers.jsonl"]).exits(3);
    assert!(
        ran.output().contains("`file_exists` is undecided: `recorded` has no files of the agent"),
        "{}",
        ran.output()
    );
    assert_eq!(ran.out.matches("the trial has no sandbox with the files of the agent").count(), 2, "{}", ran.out);
}

/// Returns the session of an agent that fixes a program, in the form of Claude Code.
fn session(project: &Project, commit: &str) -> String {
    let dir = project.dir().display().to_string();
    let mut parent = Value::Null;
    let mut rows = Vec::new();
    let mut row = |kind: &str, content: Value| {
        let id = format!("row-{}", rows.len());
        rows.push(json!({
            "type": kind, "uuid": id, "parentUuid": parent, "sessionId": "s", "cwd": dir, "version": "2.1.332",
            "timestamp": "2026-11-28T12:00:00Z",
            "message": {"id": id, "role": kind, "model": "m", "content": content, "stop_reason": "end_turn"},
        }));
        parent = json!(id);
    };
    row("user", json!("Greet the reader. The key is sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGH."));
    let mut call = |id: &str, name: &str, input: Value, result: &str, failed: bool| {
        row("assistant", json!([{"type": "tool_use", "id": id, "name": name, "input": input}]));
        row("user", json!([{"type": "tool_result", "tool_use_id": id, "content": result, "is_error": failed}]));
    };
    call("t1", "Bash", json!({"command": format!("cd {dir} && sh check.sh")}), "Exit code 1", true);
    call("t2", "Write", json!({"file_path": format!("{dir}/greeting.txt"), "content": "Hello, reader\n"}), "ok", false);
    call("t3", "Bash", json!({"command": format!("cd {dir} && sh check.sh")}), "", false);
    row("assistant", json!([{"type": "text", "text": "Done."}]));
    let status = format!("Status:\n(clean)\n\nRecent commits:\n{} first", &commit[..8]);
    let context = json!({"type": "attachment", "sessionId": "s", "attachment": {"context": {"gitStatus": status}}});
    rows.insert(1, context);
    rows.iter().map(|row| format!("{row}\n")).collect()
}

#[test]
fn a_session_becomes_a_scenario_that_adversaries_fail() {
    let project = Project::new(PROGRAM);
    project.write("check.sh", "grep -q Hello greeting.txt\n");
    git(&project.dir(), &["init", "-q"]);
    git(&project.dir(), &["add", "."]);
    git(&project.dir(), &["commit", "-q", "-m", "first"]);
    let commit = git(&project.dir(), &["rev-parse", "HEAD"]);
    project.write("check.sh", "exit 1 # changed since\n");
    let folder = project.dir().display().to_string().replace(|letter: char| !letter.is_ascii_alphanumeric(), "-");
    let sessions = project.home().join(".claude/projects").join(folder);
    std::fs::create_dir_all(&sessions).unwrap();
    std::fs::write(sessions.join("s.jsonl"), session(&project, &commit)).unwrap();

    let written = project.run(&["gen", "--from-session", "latest"]).exits(0);
    let name = "scenarios/generated/greet-the-reader-the-key-is-sk";
    assert!(written.out.starts_with(&format!("written  {name}.yaml  (from ")), "{}", written.output());
    let scenario = project.read(&format!("{name}.yaml"));
    assert!(!scenario.contains("abcdefghijklmnopqrstuvwxyz"), "{scenario}");
    assert!(
        scenario.contains(
            "  - { id: creates-1, type: file_contains, path: \"greeting.txt\", contains: \"Hello, reader\" }\n"
        ),
        "{scenario}"
    );
    assert!(
        scenario.contains("  - { id: succeeds-1, type: command, run: \"sh check.sh\", timeout: 5m }\n"),
        "{scenario}"
    );
    let file = "scenarios/generated/fixtures/greet-the-reader-the-key-is-sk/check.sh";
    assert_eq!(project.read(file), "grep -q Hello greeting.txt\n", "as it was committed");
    let again = project.run(&["gen", "--from-session", "latest"]).exits(2);
    assert!(again.err.contains("already exists"), "{}", again.err);

    let begun: Vec<String> = session(&project, &commit).lines().take(3).map(str::to_owned).collect();
    project.write("begun.jsonl", &(begun.join("\n") + "\n"));
    let refused = project.run(&["gen", "--from-session", "begun.jsonl"]).exits(2);
    assert!(refused.err.contains("the session is not complete: the session ends before a tool call has a result"));
    let failed = json!({
        "type": "assistant", "uuid": "row-8", "parentUuid": "row-7", "sessionId": "s", "isApiErrorMessage": true,
        "message": {"id": "row-8", "role": "assistant", "content": [{"type": "text", "text": "API Error: 529"}]},
    });
    project.write("failed.jsonl", &format!("{}{failed}\n", session(&project, &commit)));
    let refused = project.run(&["gen", "--from-session", "failed.jsonl"]).exits(2);
    let reason = "the session is not complete: no complete answer from the model: API Error: 529";
    assert!(refused.err.contains(reason), "{}", refused.err);
}

#[test]
fn a_session_of_another_repository_is_refused_unless_its_commit_is_known() {
    let project = Project::new(PROGRAM);
    project.write("other/README.md", "Another one\n");
    for folder in [project.dir(), project.dir().join("other")] {
        git(&folder, &["init", "-q"]);
        git(&folder, &["add", "."]);
        git(&folder, &["commit", "-q", "-m", "first"]);
    }
    let commit = git(&project.dir(), &["rev-parse", "HEAD"]);
    let here = project.dir().display().to_string();
    let without_commit: String =
        session(&project, &commit).split_inclusive('\n').filter(|line| !line.contains("attachment")).collect();
    for folder in [format!("{here}/other"), "/none/project".to_owned()] {
        project.write("elsewhere.jsonl", &without_commit.replace(&here, &folder));
        let refused = project.run(&["gen", "--from-session", "elsewhere.jsonl"]).exits(2);
        let reason = format!("the session took place in {folder}, which is not in the repository ");
        assert!(refused.err.contains(&reason), "{}", refused.err);
    }
    let plain = Project::new(PROGRAM);
    plain.write("session.jsonl", &without_commit);
    let refused = plain.run(&["gen", "--from-session", "session.jsonl"]).exits(2);
    assert!(refused.err.contains("no git repository at "), "{}", refused.err);
    plain.write("notes.txt", "Notes\n");
    let refused = plain.run(&["gen", "--from-session", "notes.txt"]).exits(2);
    assert!(refused.err.contains("notes.txt is not in a known format"), "{}", refused.err);
}
