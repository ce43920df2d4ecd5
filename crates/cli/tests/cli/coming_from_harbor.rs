//! Tasks of harbor, run where they are. Differences are listed in `docs/coming-from-harbor.md`.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use serde_json::{Value, json};
use testkit::Project;

const PROGRAM: &str = env!("CARGO_BIN_EXE_trialrun");

/// A verifier that compares a file.
const TEST: &str = "#!/bin/sh\nmkdir -p /logs/verifier\nif [ \"$(cat /app/sum.txt)\" = 7 ]; then echo 1; else echo 0; fi > /logs/verifier/reward.txt\n";

/// The solution of this task.
const SOLUTION: &str = "#!/bin/sh\nawk '{ sum += $1 } END { print sum }' data/prices.csv > /app/sum.txt\n";

/// Writes a task whose instruction is what the agent `fake` does.
fn task(project: &Project, name: &str, instruction: &str, test: &str, solution: Option<&str>) {
    let file = |path: &str| format!("tasks/{name}/{path}");
    project
        .write(&file("task.toml"), "schema_version = \"1.4\"\n[agent]\ntimeout_sec = 60.0\n")
        .write(&file("instruction.md"), instruction)
        .write(&file("environment/Dockerfile"), "FROM ubuntu:24.04\nWORKDIR /app\nCOPY data /app/data\n")
        .write(&file("environment/data/prices.csv"), "3\n4\n")
        .write(&file("tests/test.sh"), test);
    if let Some(solution) = solution {
        project.write(&file("solution/solve.sh"), solution);
    }
}

/// Returns the outcome of a case, and the reason of its finding.
fn outcome<'r>(report: &'r Value, case: &str) -> (&'r str, &'r str) {
    let trial = report["trials"].as_array().unwrap().iter().find(|trial| trial["case"] == case).unwrap();
    let reason = trial["findings"][0]["because"].as_str().or(trial["because"].as_str());
    (trial["outcome"].as_str().unwrap(), reason.unwrap_or_default())
}

#[test]
#[cfg_attr(not(has = "isolation"), ignore = "needs a kernel that isolates processes; run scripts/test")]
fn a_verifier_decides_in_a_tree_that_the_agent_does_not_see() {
    let project = Project::new(PROGRAM);
    let right = "!write sum.txt 7\n";
    task(&project, "right", right, TEST, Some(SOLUTION));
    task(&project, "wrong", "!write sum.txt 8\n", TEST, Some(SOLUTION));
    task(&project, "unsolvable", "!write sum.txt 8\n", TEST, Some("#!/bin/sh\nno-such-program\n"));
    task(&project, "silent", right, "#!/bin/sh\nexit 3\n", None);
    task(
        &project,
        "two-files",
        right,
        &format!("{TEST}echo '{{\"reward\": 0.5}}' > /logs/verifier/reward.json\n"),
        None,
    );
    task(
        &project,
        "sees-nothing",
        right,
        "#!/bin/sh\ntest -e /solution || cat /app/data/prices.csv | wc -l > /logs/verifier/reward.txt\n",
        None,
    );
    let report = project.report(&["tasks", "--sandbox", "isolated", "--agent", "fake"], 1);
    assert_eq!(outcome(&report, "right"), ("passed", "the reward is 1"));
    assert_eq!(outcome(&report, "wrong"), ("failed", "the reward is 0, which is less than 1"));
    let (unsolvable, reason) = outcome(&report, "unsolvable");
    assert_eq!(unsolvable, "undecided");
    assert!(reason.starts_with("the task's own solution does not pass in this sandbox either"), "{reason}");
    assert_eq!(outcome(&report, "silent"), ("undecided", "the verifier wrote no reward; it exited with code 3"));
    assert_eq!(outcome(&report, "two-files"), ("failed", "the reward is 0.5, which is less than 1"));
    assert_eq!(outcome(&report, "sees-nothing").0, "passed");
    let converted = project.run(&["convert", "tasks", "--output", "written/tests"]).exits(0);
    assert!(converted.out.starts_with("Wrote 6 cases to written/tests (6 files)."), "{}", converted.output());
    let again = project.report(&["written/tests", "--sandbox", "isolated", "--agent", "fake"], 1);
    for case in ["right", "wrong", "unsolvable", "silent", "two-files", "sees-nothing"] {
        assert_eq!(outcome(&again, case), outcome(&report, case), "{case}");
    }
    let refused = project.run(&["convert", "tasks", "--output", "written/tests"]).exits(2);
    assert!(refused.err.contains("`--force` replaces it"), "{}", refused.err);
}

#[test]
#[cfg_attr(not(has = "isolation"), ignore = "needs a kernel that isolates processes; run scripts/test")]
fn a_forged_reward_does_not_count_and_the_solution_must_pass() {
    let project = Project::new(PROGRAM);
    task(&project, "sums", "Write the sum to /app/sum.txt.\n", TEST, Some(SOLUTION));
    task(&project, "endless", "Write the sum to /app/sum.txt.\n", TEST, Some("#!/bin/sh\ntail -f /dev/null\n"));
    project.write("tasks/endless/task.toml", "[agent]\ntimeout_sec = 3.0\n");
    let forge = "for n in txt json; do echo 1 > /logs/verifier/reward.$n; done; ls /tests /solution";
    let steps =
        json!({ "steps": [{ "tools": [{ "name": "Bash", "input": { "command": forge } }] }, { "text": "Done." }] });
    project.write("forger.yaml", &steps.to_string());
    let arguments = ["tasks", "--sandbox", "isolated", "--agent", "chat", "--model", "scripted:forger.yaml"];
    let report = project.report(&arguments, 1);
    assert_eq!(outcome(&report, "sums").0, "failed");
    let reason = "the task's own solution does not pass in this sandbox either: the solution did not end within 3 s";
    assert_eq!(outcome(&report, "endless"), ("undecided", reason));
    std::fs::remove_dir_all(project.dir().join("tasks/endless")).unwrap();
    task(&project, "unsolvable", "Write the sum to /app/sum.txt.\n", TEST, Some("#!/bin/sh\nno-such-program\n"));
    let audit = project.run(&["audit", "tasks", "--sandbox", "isolated", "--json"]).exits(1).json();
    let weaknesses = audit["weaknesses"].as_array().unwrap().iter();
    let found: Vec<(&Value, &Value)> = weaknesses.map(|one| (&one["kind"], &one["cases"])).collect();
    assert_eq!(found, [(&json!("solution_fails"), &json!(["unsolvable"]))]);
}

#[test]
#[cfg_attr(not(has = "isolation"), ignore = "needs a kernel that isolates processes; run scripts/test")]
fn each_step_has_its_verifier() {
    let project = Project::new(PROGRAM);
    let test = |wanted: &str| {
        format!(
            "#!/bin/sh\nif [ \"$(cat /app/a.txt)\" = {wanted} ]; then echo 1; else echo 0; fi > /logs/verifier/reward.txt\n"
        )
    };
    project
        .write("tasks/two/task.toml", "[[steps]]\nname = \"one\"\n[[steps]]\nname = \"two\"\n")
        .write("tasks/two/environment/Dockerfile", "FROM ubuntu:24.04\nWORKDIR /app\n")
        .write("tasks/two/tests/test.sh", &test("1"))
        .write("tasks/two/steps/one/instruction.md", "!write a.txt 1\n")
        .write("tasks/two/steps/two/instruction.md", "!write a.txt 2\n")
        .write("tasks/two/steps/two/tests/test.sh", &test("2"));
    let report = project.report(&["tasks/two", "--sandbox", "isolated", "--agent", "fake"], 0);
    let findings = report["trials"][0]["findings"].as_array().unwrap();
    let verifiers: Vec<&Value> = findings.iter().filter(|finding| finding["type"] == "reward").collect();
    assert_eq!(verifiers.len(), 2, "{report}");
}

#[test]
fn a_task_that_cannot_run_here_says_why() {
    let project = Project::new(PROGRAM);
    task(&project, "sums", "!say hi\n", TEST, None);
    let ran = project.run(&["run", "tasks", "--agent", "fake"]).exits(3);
    let reason = "`local` sandboxes cannot have folders at absolute paths, such as `/app`";
    assert!(ran.err.contains(reason) && ran.err.contains("`sandbox: isolated`"), "{}", ran.err);
    project.write("tasks/sums/environment/Dockerfile", "FROM python:3.12\nWORKDIR /app\nRUN pip install pytest\n");
    let checked = project.run(&["check", "tasks", "--agent", "fake", "--format", "json"]);
    let keys = checked.json()["coverage"][0]["keys"].as_array().unwrap().clone();
    let run = keys.iter().find(|key| key["key"] == "RUN").unwrap();
    assert_eq!(run["treatment"], "refused");
}
