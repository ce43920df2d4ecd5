//! The user's own commands around trials, the artefacts directory, and the cleanup of remotes.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use nix::sys::signal::Signal;
use serde_json::{Value, json};
use testkit::{Project, Ran, git, until};

const RUN: [&str; 6] = ["run", "--skill", "skills/greet", "--agent", "fake", "--artifacts"];

/// Returns a project with a skill and its suite: one case that needs the skill, and one that does not.
fn project() -> Project {
    let project = Project::new(env!("CARGO_BIN_EXE_trialrun"));
    project.write("skills/greet/SKILL.md", "---\nname: greet\ndescription: Greets.\n---\nSay hello.\n");
    let suite = json!({ "skill_name": "greet", "evals": [
        { "id": 1, "prompt": "!with-skill !write hello.txt hello\n!tokens 100 20 40 10\n!cost 0.25\nhi",
          "expected_output": "", "assertions": [{ "type": "file_exists", "path": "hello.txt" }] },
        { "id": "a b", "prompt": "hi", "expected_output": "", "assertions": ["The output contains \"hi\""] },
    ] });
    project.write("skills/greet/evals/evals.json", &suite.to_string());
    project
}

/// Runs the suite with artefacts in `out` and the additional arguments.
fn run(project: &Project, more: &[&str]) -> Ran {
    project.run(&[&RUN[..], &["out"], more].concat())
}

fn json_of(project: &Project, file: &str) -> Value {
    serde_json::from_str(&project.read(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

/// Returns every file below a directory, sorted.
fn tree(root: &Path) -> Vec<String> {
    fn walk(root: &Path, at: &Path, found: &mut Vec<String>) {
        for entry in fs::read_dir(at).unwrap().map(Result::unwrap) {
            if entry.file_type().unwrap().is_dir() {
                walk(root, &entry.path(), found);
            } else {
                found.push(entry.path().strip_prefix(root).unwrap().display().to_string());
            }
        }
    }
    let mut found = Vec::new();
    walk(root, root, &mut found);
    found.sort();
    found
}

fn progress(project: &Project) -> Vec<Value> {
    project.read("out/progress.jsonl").lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Returns the statuses of a trial's hook findings, by title.
fn found(trial: &Value) -> BTreeMap<String, String> {
    let findings = trial["findings"].as_array().unwrap().iter().filter(|finding| finding["type"] == "hook");
    let title_and_status = |finding: &Value| {
        (finding["title"].as_str().unwrap().to_owned(), finding["status"].as_str().unwrap().to_owned())
    };
    findings.map(title_and_status).collect()
}

/// Runs one case in one arm with these hooks, and returns its trial.
fn hooked(project: &Project, hooks: &[&str], code: i32) -> Value {
    let more = ["--case", "a b", "--no-baseline", "--report", "terminal", "--report", "json=report.json"];
    let hooks: Vec<&str> = hooks.iter().flat_map(|hook| ["--post-grade-command", hook]).collect();
    run(project, &[&more[..], &hooks].concat()).exits(code);
    json_of(project, "report.json")["trials"][0].clone()
}

#[test]
fn a_suite_with_two_arms_writes_its_artefact_tree() {
    let project = project();
    run(&project, &["--trials", "2", "--label", "7"]).exits(0);
    let of_trial = [
        "grading.json",
        "outputs/output.txt",
        "outputs/post_state.json",
        "outputs/pre_state.json",
        "outputs/stderr.log",
        "outputs/stdout.log",
        "run_meta.json",
        "timing.json",
        "trial.json",
    ];
    let mut expected: Vec<String> = [".trialrun-artifacts", "benchmark.json", "cleanup.json", "progress.jsonl"]
        .into_iter()
        .chain(["suite.json", "summary.json"])
        .map(str::to_owned)
        .collect();
    expected.extend((1..=2).map(|number| format!("1/fake+with_skill/run-{number}/outputs/diff.patch")));
    for case in ["1", "a%20b"] {
        for arm in ["fake+with_skill", "fake+without_skill"] {
            for number in 1..=2 {
                expected.extend(of_trial.map(|file| format!("{case}/{arm}/run-{number}/{file}")));
            }
        }
    }
    expected.sort();
    assert_eq!(tree(&project.dir().join("out")), expected);

    let timing = json_of(&project, "out/1/fake+with_skill/run-1/timing.json");
    let tokens = |key: &str| timing[key].as_u64();
    let names = ["input_tokens", "cached_tokens", "cache_creation_tokens", "non_cached_input_tokens", "total_tokens"];
    assert_eq!(names.map(tokens), [150, 40, 10, 110, 170].map(Some));
    assert_eq!(
        (&timing["cost_usd"], &timing["exit_code"], &timing["retries"]),
        (&json!(0.25), &Value::Null, &json!(0))
    );
    let unknown = json_of(&project, "out/a%20b/fake+with_skill/run-1/timing.json");
    assert_eq!((&unknown["total_tokens"], &unknown["cost_usd"]), (&Value::Null, &Value::Null), "never 0");

    let patch = project.read("out/1/fake+with_skill/run-1/outputs/diff.patch");
    assert!(patch.contains("+++ b/hello.txt") && patch.contains("+hello"), "{patch}");

    let meta = json_of(&project, "out/1/fake+without_skill/run-2/run_meta.json");
    let row = json!([meta["eval_id"], meta["agent"], meta["with_skill"], meta["run_index"], meta["iteration"]]);
    assert_eq!(row, json!(["1", "fake", false, 2, "7"]));
    let grading = json_of(&project, "out/1/fake+without_skill/run-1/grading.json");
    assert_eq!(
        grading["summary"],
        json!({ "passed": 0, "failed": 1, "skipped": 0, "total": 1, "pass_rate": 0.0 }),
        "{grading}"
    );
    let first = &grading["assertion_results"][0];
    assert_eq!((&first["method"], &first["passed"]), (&json!("structured:file_exists"), &json!(false)));

    let benchmark = json_of(&project, "out/benchmark.json");
    let with = &benchmark["run_summary"]["fake_with_skill"];
    assert_eq!(
        (&with["pass_rate"]["mean"], &with["pass_rate"]["stddev"], &with["k"]),
        (&json!(1.0), &json!(0.0), &json!(2))
    );
    assert_eq!(
        (&with["cost_runs"], &with["full_pass_rate"], &with["pass_at_k"]),
        (&json!(2), &json!(1.0), &json!(1.0))
    );
    assert_eq!(benchmark["deltas"]["fake"]["pass_rate"], json!(0.5));
    assert_eq!(benchmark["delta"], benchmark["deltas"]["fake"]);

    let summary = json_of(&project, "out/summary.json");
    assert_eq!(summary["pass_rates"], json!({ "fake_with_skill": 1.0, "fake_without_skill": 0.5 }));
    let counts = ["runs_completed", "runs_failed_grading", "runs_per_case", "with_baseline", "hooks", "skill_name"];
    assert_eq!(json!(counts.map(|key| &summary[key])), json!([8, 2, 2, true, {}, "greet"]));
    assert_eq!(summary["cost"], json!({ "total_usd": 1.0, "runs_with_cost": 4, "runs_total": 8 }));
    assert_eq!(summary["failed_runs"][0]["failed_assertions"].as_array().unwrap().len(), 1);
}

#[test]
fn progress_uses_the_field_names_that_readers_expect() {
    let project = project();
    run(&project, &["--case", "1", "--no-baseline", "--jobs", "1"]).exits(0);
    let lines = progress(&project);
    let events: Vec<&str> = lines.iter().map(|line| line["event"].as_str().unwrap()).collect();
    assert_eq!(
        events,
        [
            "suite_started",
            "run_started",
            "snapshot_started",
            "agent_started",
            "agent_finished",
            "snapshot_started",
            "run_finished",
            "suite_finished",
        ]
    );
    assert_eq!((&lines[2]["phase"], &lines[5]["phase"]), (&json!("pre"), &json!("post")));
    assert_eq!((&lines[4]["total_tokens"], &lines[4]["cost_usd"]), (&json!(170), &json!(0.25)));
    assert!(lines[4].get("reasoning_output_tokens").is_none(), "unknown values are omitted");
    assert_eq!((&lines[6]["passed"], &lines[6]["total"], &lines[6]["pass_rate"]), (&json!(1), &json!(1), &json!(1.0)));
    assert_eq!((&lines[7]["completed"], &lines[7]["errors"]), (&json!(1), &json!(0)));
    for line in &lines {
        let ts = line["ts"].as_str().unwrap();
        assert!(ts.ends_with("+00:00") && ts.len() == 25 && line["elapsed_s"].is_number(), "{line}");
    }
}

#[test]
fn an_arm_whose_trials_all_broke_has_no_pass_rate() {
    let project = project();
    let suite = json!({ "skill_name": "greet", "evals": [
        { "id": 1, "prompt": "!abort gone", "expected_output": "", "assertions": [{ "type": "git_clean" }] } ] });
    project.write("skills/greet/evals/evals.json", &suite.to_string());
    run(&project, &["--no-baseline", "--retries", "0"]).exits(3);
    let summary = json_of(&project, "out/summary.json");
    assert_eq!((&summary["pass_rates"]["fake_with_skill"], &summary["runs_completed"]), (&Value::Null, &json!(0)));
    assert_eq!(summary["errors"].as_array().unwrap().len(), 1);
    assert!(!project.dir().join("out/1/fake+with_skill/run-1/grading.json").exists());
    assert!(progress(&project).iter().any(|line| line["event"] == "run_error"));
}

#[test]
fn files_about_a_run_do_not_count_quarantined_trials() {
    let project = project();
    let case = |id: &str, contains: &str, quarantine: Value| {
        json!({ "id": id, "prompt": "!say hello", "expected_output": "", "quarantine": quarantine,
                "assertions": [{ "type": "file_contains", "contains": contains }] })
    };
    let reason = json!({ "reason": "slow", "since": "2026-11-01" });
    let suite = json!({ "skill_name": "greet", "evals": [case("a", "hello", json!(false)), case("b", "bye", reason)] });
    project.write("skills/greet/evals/evals.json", &suite.to_string());
    let ran = run(&project, &["--baseline"]).exits(0);
    let shown = ran.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(shown.contains("trials 1, and 1 without the skill to compare with"), "{shown}");
    let benchmark = json_of(&project, "out/benchmark.json");
    assert_eq!(
        (&benchmark["run_summary"]["fake_with_skill"]["runs"], &benchmark["delta"]["cases_paired"]),
        (&json!(1), &json!(1))
    );
    let summary = json_of(&project, "out/summary.json");
    assert_eq!(summary["pass_rates"], json!({ "fake_with_skill": 1.0, "fake_without_skill": 1.0 }));
    assert_eq!((&summary["runs_completed"], &summary["runs_failed_grading"]), (&json!(2), &json!(0)));
    let outcomes: Vec<&Value> =
        summary["quarantined_runs"].as_array().unwrap().iter().map(|run| &run["outcome"]).collect();
    assert_eq!(outcomes, ["failed", "failed"]);
}

#[test]
fn a_directory_is_replaced_completely_or_left_untouched() {
    let project = project();
    run(&project, &["--post-grade-command", "echo x > \"$ASE_OUTPUT_DIR/mine\""]).exits(0);
    assert!(project.dir().join("out/1/fake+with_skill/run-1/outputs/mine").exists());
    run(&project, &["--case", "1", "--no-baseline"]).exits(0);
    let files = tree(&project.dir().join("out"));
    assert!(files.iter().all(|file| !file.contains("without") && !file.ends_with("mine")), "{files:#?}");
    project.write("out/notes.txt", "mine");
    let ran = run(&project, &[]).exits(2);
    assert!(ran.err.contains("contains files that were not written by a run: notes.txt"), "{}", ran.output());
    assert_eq!(tree(&project.dir().join("out")).len(), files.len() + 1);
    project.write("other/notes.txt", "mine");
    project.run(&[&RUN[..], &["other"]].concat()).exits(2);
    assert_eq!(tree(&project.dir().join("other")), ["notes.txt"]);
}

/// Writes every variable with one of these prefixes to the file, and fails if a path does not exist.
const LOOKS: &str = r#"env | grep -E '^(ASE|TRIALRUN)_' | sort >> seen
for path in "$ASE_WORKSPACE_PATH" "$ASE_OUTPUT_DIR" "$ASE_PRE_STATE_PATH" "$ASE_POST_STATE_PATH" "$ASE_TIMING_PATH" \
  "$ASE_RUN_META_PATH" "$ASE_GRADING_PATH" "$ASE_OUTPUT_DIR/output.txt" "$ASE_OUTPUT_DIR/stdout.log" \
  "$ASE_SKILL_DIR" "$ASE_EVALS_PATH" "$ASE_ITERATION_DIR/progress.jsonl" "$ASE_WORKSPACE_BASE"; do
  case $path in /*) ;; *) echo "not absolute: $path" >&2; exit 1;; esac
  test -e "$path" || { echo "not there: $path" >&2; exit 1; }
done
grep -q '"passed": true' "$ASE_GRADING_PATH" && grep -q '"eval_id"' "$ASE_RUN_META_PATH""#;

#[test]
fn every_path_passed_to_a_command_exists() {
    let project = project();
    let hooks = ["--pre-run-command", "echo \"pre $ASE_EVAL_IDS\" >> seen", "--post-grade-command", LOOKS];
    let more = ["--case", "1", "--no-baseline", "--post-run-command", "test -e $ASE_ITERATION_DIR/benchmark.json"];
    let more = [&more[..], &["--post-run-command", "grep -q run_finished $ASE_ITERATION_DIR/progress.jsonl"]].concat();
    let arguments = [&["run", "--skill", "skills/greet", "--agent", "fake"][..], &hooks, &more].concat();
    let ran = project.run(&arguments).exits(0);
    assert!(!ran.out.contains("hook"), "{}", ran.output());
    let seen = project.read("seen");
    let variables: BTreeMap<&str, &str> = seen.lines().filter_map(|line| line.split_once('=')).collect();
    assert!(seen.starts_with("pre 1\n"), "{seen}");
    let dir = project.dir();
    for (name, value) in [
        ("SKILL_NAME", "greet".to_owned()),
        ("SKILL_DIR", dir.join("skills/greet").display().to_string()),
        ("EVALS_PATH", dir.join("skills/greet/evals/evals.json").display().to_string()),
        ("ITERATION", "1".to_owned()),
        ("SOURCE_REPO", String::new()),
        ("EVAL_IDS", "1".to_owned()),
        ("EVAL_ID", "1".to_owned()),
        ("AGENT", "fake".to_owned()),
        ("WITH_SKILL", "1".to_owned()),
        ("RUN_INDEX", "1".to_owned()),
        ("SIDE_EFFECT_LEVELS", "local-only".to_owned()),
    ] {
        for prefix in ["ASE", "TRIALRUN"] {
            assert_eq!(variables.get(format!("{prefix}_{name}").as_str()), Some(&value.as_str()), "{prefix}_{name}");
        }
    }
    // Without `--artifacts` the tree is in the state folder, under the run's id.
    let root = dir.join(".trialrun/artifacts").join(variables["ASE_RUN_ID"]);
    assert_eq!(variables["ASE_ITERATION_DIR"], root.display().to_string());
    assert!(root.join("summary.json").exists());
}

#[test]
fn hooks_also_run_for_trials_without_the_skill() {
    let project = project();
    run(&project, &["--post-grade-command", "echo $ASE_EVAL_ID $ASE_WITH_SKILL $ASE_SKILL_NAME >> seen"]).exits(0);
    let mut seen: Vec<String> = project.read("seen").lines().map(str::to_owned).collect();
    seen.sort();
    assert_eq!(seen, ["1 0 greet", "1 1 greet", "a b 0 greet", "a b 1 greet"]);
}

#[test]
fn findings_of_a_command_count_and_malformed_ones_are_undecided() {
    let project = project();
    let good = r#"echo '[{"text": "The branch is there", "passed": true, "evidence": "seen"}]'"#;
    let trial = hooked(&project, &[good], 0);
    assert_eq!(found(&trial), BTreeMap::from([("The branch is there".to_owned(), "met".to_owned())]));
    let grading = json_of(&project, "out/a%20b/fake+with_skill/run-1/grading.json");
    let last = grading["assertion_results"].as_array().unwrap().last().unwrap().clone();
    assert_eq!((&last["method"], &last["evidence"]), (&json!("hook"), &json!("seen")));
    assert_eq!(grading["summary"]["passed"], json!(2));

    let mistyped = r#"echo '[{"text": "a", "passed": "false"}, {"text": "b", "passed": true}]'"#;
    let trial = hooked(&project, &[mistyped], 3);
    assert_eq!(found(&trial).values().collect::<Vec<_>>(), ["met", "undecided"]);
    assert_eq!(trial["outcome"], "undecided");
    let unmet = hooked(&project, &[r#"echo '[{"text": "a", "passed": false}]'"#], 1);
    assert_eq!((&unmet["outcome"], found(&unmet)["a"].as_str()), (&json!("failed"), "unmet"));
    let suite = project.read("skills/greet/evals/evals.json").replace(r#""hi""#, r#""!write conftest.py x\nhi""#);
    project.write("skills/greet/evals/evals.json", &suite);
    let trial = hooked(&project, &[good], 0);
    assert!(trial["findings"].to_string().contains("can steer tools or tests: `conftest.py`"), "{}", trial["findings"]);
}

#[test]
fn a_command_does_not_find_what_an_earlier_one_left_in_its_copy() {
    let first = r#"test -d "$ASE_WORKSPACE_PATH" && echo x > "$ASE_WORKSPACE_PATH/left""#;
    let second = r#"test -d "$ASE_WORKSPACE_PATH" && ! test -e "$ASE_WORKSPACE_PATH/left""#;
    hooked(&project(), &[first, second], 0);
}

#[test]
fn plain_hook_output_is_kept_and_a_failing_exit_code_is_unmet() {
    let project = project();
    assert_eq!(found(&hooked(&project, &["echo all is well; echo oh >&2"], 0)), BTreeMap::new());
    let kept = json_of(&project, "out/a%20b/fake+with_skill/run-1/outputs/post_grade_hooks.json");
    let record = json!({ "command": "echo all is well; echo oh >&2", "exit_code": 0, "stdout": "all is well\n",
                         "stderr": "oh\n", "timed_out": false });
    assert_eq!(kept, json!([record]));
    let trial = hooked(&project, &["echo no >&2; exit 3", "true"], 1);
    assert_eq!(
        found(&trial),
        BTreeMap::from([("post-grade hook succeeded: echo no >&2; exit 3".to_owned(), "unmet".to_owned())])
    );
    assert!(trial["because"].as_str().unwrap().contains("exit code 3: no"), "{}", trial["because"]);
    let trial = hooked(&project, &["no-such-command-here"], 3);
    assert_eq!(found(&trial).into_values().collect::<Vec<_>>(), ["undecided"], "a missing command is not a result");
}

#[test]
fn secrets_reach_neither_the_tree_nor_the_record() {
    let project = project().env("DEPLOY_TOKEN", "canary-5519-secret");
    let hook = r#"echo "[{\"text\": \"has $DEPLOY_TOKEN\", \"passed\": true, \"evidence\": \"$DEPLOY_TOKEN\"}]""#;
    let trial = hooked(&project, &[hook], 0);
    assert_eq!(found(&trial).into_keys().collect::<Vec<_>>(), ["has [masked]"]);
    for file in tree(&project.dir().join("out")) {
        assert!(!project.read(&format!("out/{file}")).contains("canary"), "{file}");
    }
    assert!(!project.read("report.json").contains("canary"));
}

#[test]
fn a_hanging_command_is_killed_with_its_descendants_and_is_undecided() {
    let project = project().env("ASE_HOOK_TIMEOUT", "1");
    let pipe = project.process_pipe("tether");
    let hook = format!("exec 9>{}; setsid sleep 1000 & trap '' TERM; sleep 1000", pipe.path().display());
    let trial = hooked(&project, &[&hook], 3);
    pipe.wait_until_closed();
    assert_eq!(
        (&trial["outcome"], found(&trial).into_values().next().as_deref()),
        (&json!("undecided"), Some("undecided"))
    );
    let kept = json_of(&project, "out/a%20b/fake+with_skill/run-1/outputs/post_grade_hooks.json");
    assert_eq!((&kept[0]["timed_out"], &kept[0]["exit_code"]), (&json!(true), &Value::Null));
    project.no_process_is_left();
    for wrong in ["soon", "0", "-1"] {
        let project = project_with_timeout(wrong);
        let ran = run(&project, &["--post-run-command", "true"]).exits(2);
        assert!(ran.err.contains("for the `ASE_HOOK_TIMEOUT` variable"), "{}", ran.output());
    }
}

fn project_with_timeout(timeout: &str) -> Project {
    project().env("ASE_HOOK_TIMEOUT", timeout)
}

#[test]
fn a_failing_pre_run_command_prevents_the_run() {
    let project = project();
    let hooks =
        ["--pre-run-command", "echo one >> seen; echo the reason >&2; exit 7", "--pre-run-command", "echo two >> seen"];
    let after = ["--post-run-command", "echo after >> seen", "--post-grade-command", "echo graded >> seen"];
    let more = ["--report", "terminal", "--report", "json=report.json"];
    let ran = run(&project, &[&hooks[..], &after, &more].concat()).exits(3);
    assert!(ran.err.contains("nothing was run") && ran.err.contains("exit code 7"), "{}", ran.output());
    assert!(ran.err.contains("the reason"), "{}", ran.output());
    assert_eq!(project.read("seen"), "one\nafter\n", "post-run commands still run");
    let report = json_of(&project, "report.json");
    let outcomes: Vec<&Value> = report["trials"].as_array().unwrap().iter().map(|trial| &trial["outcome"]).collect();
    assert_eq!(outcomes, ["cancelled"; 4]);
    let summary = json_of(&project, "out/summary.json");
    assert_eq!(summary["hooks"]["pre_run"][0]["exit_code"], 7);
    assert_eq!(summary["skipped_runs"].as_array().unwrap().len(), 4);
}

#[test]
fn a_failing_post_run_command_is_reported_and_changes_no_outcome() {
    let project = project();
    let more = ["--post-run-command", "exit 9", "--post-run-command", "echo second >> seen"];
    let ran = run(&project, &more).exits(0);
    assert!(ran.out.contains("exit 9") && ran.out.contains("exit code 9"), "{}", ran.output());
    assert_eq!(project.read("seen"), "second\n");
    let hooks = &json_of(&project, "out/summary.json")["hooks"]["post_run"];
    let codes: Vec<&Value> = hooks.as_array().unwrap().iter().map(|hook| &hook["exit_code"]).collect();
    assert_eq!(codes, [9, 0]);
    // Both are in the record too.
    let report = project.run(&["report", "--format", "jsonl"]).exits(0);
    assert_eq!(report.out.lines().filter(|line| line.contains("\"hook_finished\"")).count(), 2);
}

#[test]
fn ctrl_c_stops_the_command_and_post_run_commands_still_run() {
    for option in ["--pre-run-command", "--post-grade-command"] {
        let project = project();
        let pipe = project.process_pipe("tether");
        let hook = format!("exec 9>{}; echo here >&9; sleep 1000", pipe.path().display());
        let more = ["out", "--case", "1", "--no-baseline", option, &hook, "--post-run-command", "echo after >> seen"];
        let live = project.start(&[&RUN[..], &more].concat());
        pipe.wait_for_line("here");
        live.signal(Signal::SIGINT);
        live.end().exits(130);
        pipe.wait_until_closed();
        assert_eq!(project.read("seen"), "after\n", "{option}");
        project.no_process_is_left();
        assert_eq!(project.left_over(), [""; 0]);
    }
}

#[test]
fn a_killed_run_leaves_complete_files_and_a_reusable_directory() {
    let project = project();
    let pipe = project.process_pipe("tether");
    let hook = format!("exec 9>{}; echo here >&9; sleep 1000", pipe.path().display());
    let live = project.start(&[&RUN[..], &["out", "--jobs", "1", "--post-grade-command", &hook]].concat());
    pipe.wait_for_line("here");
    live.signal(Signal::SIGKILL);
    drop(live);
    pipe.wait_until_closed();
    project.no_process_is_left();
    assert!(progress(&project).len() > 2);
    let files = tree(&project.dir().join("out"));
    let documents = files.iter().filter(|file| file.ends_with(".json"));
    assert!(documents.map(|file| json_of(&project, &format!("out/{file}"))).count() > 4, "{files:#?}");
    run(&project, &["--case", "1", "--no-baseline"]).exits(0);
    assert!(tree(&project.dir().join("out")).iter().all(|file| !file.contains("a%20b")));
}

#[test]
fn an_unwritable_destination_makes_only_the_report_incomplete() {
    let project = project();
    // Creates a file where a folder is needed.
    let block = ["--case", "1", "--no-baseline", "--pre-run-command", "touch \"$ASE_ITERATION_DIR/1\""];
    let ran = run(&project, &block).exits(3);
    assert!(ran.out.contains("PASS") && ran.err.contains("a report is incomplete"), "{}", ran.output());
    fs::remove_file(project.dir().join("out/1")).unwrap();
    let look = ["--post-grade-command", "test -e \"$ASE_GRADING_PATH\"", "--report", "json=report.json"];
    run(&project, &[&block[..], &look].concat()).exits(3);
    let trial = json_of(&project, "report.json")["trials"][0].clone();
    assert_eq!(found(&trial).into_values().collect::<Vec<_>>(), ["undecided"], "it was not run");
}

#[test]
fn post_grade_commands_skip_retried_attempts() {
    let project = project();
    let suite = json!({ "skill_name": "greet", "evals": [
        { "id": 1, "prompt": "!error no", "expected_output": "", "assertions": [{ "type": "git_clean" }] } ] });
    project.write("skills/greet/evals/evals.json", &suite.to_string());
    run(&project, &["--no-baseline", "--retries", "2", "--post-grade-command", "echo looked >> seen"]).exits(1);
    let timing = json_of(&project, "out/1/fake+with_skill/run-1/timing.json");
    assert_eq!((&timing["retries"], project.read("seen").as_str()), (&json!(2), "looked\n"));
}

#[test]
fn each_of_two_suites_has_its_own_folder() {
    let project = project();
    project.write("skills/wave/SKILL.md", "---\nname: wave\ndescription: Waves.\n---\nWave.\n");
    let suite =
        project.read("skills/greet/evals/evals.json").replace("\"skill_name\":\"greet\"", "\"skill_name\":\"wave\"");
    project.write("skills/wave/evals/evals.json", &suite);
    project.run(&["run", "skills/", "--agent", "fake", "--artifacts", "out", "--case", "1"]).exits(0);
    for suite in ["greet", "wave"] {
        assert!(project.dir().join(format!("out/{suite}/1/fake+without_skill/run-1/timing.json")).exists());
    }
    assert_eq!(json_of(&project, "out/suite.json")["suites"], json!(["greet/evals", "wave/evals"]));
}

#[test]
fn a_patch_contains_the_changes_that_git_can_show() {
    let acts = "echo two >> README.md; git rm -q src/price.txt; echo new > \"a b.txt\"; git add .; git commit -q -m x; \
                text done; result done";
    let project = project().claude(acts);
    let seed = project.home().join("seed");
    fs::create_dir_all(seed.join("src")).unwrap();
    fs::write(seed.join("README.md"), "one\n").unwrap();
    fs::write(seed.join("src/price.txt"), "7\n").unwrap();
    git(&seed, &["init", "-q"]);
    git(&seed, &["add", "."]);
    git(&seed, &["commit", "-q", "-m", "Begin"]);
    let suite = json!({ "skill_name": "greet", "evals": [
        { "id": 1, "prompt": "go", "expected_output": "", "assertions": ["A new git commit was created"] } ] });
    project.write("skills/greet/evals/evals.json", &suite.to_string());
    let source = seed.to_string_lossy().into_owned();
    let more = ["--agent", "claude-code", "--source-repo", &source, "--no-baseline", "--artifacts", "out"];
    project.run(&[&["run", "--skill", "skills/greet"][..], &more].concat()).exits(0);
    let files = tree(&project.dir().join("out"));
    let patch = files.iter().find(|file| file.ends_with("outputs/diff.patch")).unwrap_or_else(|| panic!("{files:#?}"));
    let patch = project.read(&format!("out/{patch}"));
    for line in ["+++ b/README.md", "+two", "deleted file mode", "-7", "b/a b.txt", "+new"] {
        assert!(patch.contains(line), "{line}\n{patch}");
    }
    assert!(!patch.contains("SKILL.md"), "{patch}");
    // A change to an untracked fixture is not in any commit.
    let project = Project::new(env!("CARGO_BIN_EXE_trialrun")).claude("echo two > note.txt; text done; result done");
    project.write("skills/greet/SKILL.md", "---\nname: greet\ndescription: Greets.\n---\nSay hello.\n");
    project.write("skills/greet/evals/files/note.txt", "one\n");
    let suite = json!({ "skill_name": "greet", "evals": [{ "id": 1, "prompt": "go", "expected_output": "",
        "files": ["files/note.txt"], "assertions": ["The output contains \"done\""] }] });
    project.write("skills/greet/evals/evals.json", &suite.to_string());
    let more = ["--agent", "claude-code", "--no-baseline", "--artifacts", "out"];
    project.run(&[&["run", "--skill", "skills/greet"][..], &more].concat()).exits(0);
    let files = tree(&project.dir().join("out"));
    assert!(files.iter().any(|file| file.ends_with("output.txt")), "{files:#?}");
    assert!(files.iter().all(|file| !file.ends_with("diff.patch")), "{files:#?}");
}

/// Creates a bare repository with branches.
fn origin(project: &Project, branches: &[&str]) -> PathBuf {
    let seed = project.home().join("seed");
    fs::create_dir_all(&seed).unwrap();
    git(&seed, &["init", "-q"]);
    git(&seed, &["commit", "-q", "--allow-empty", "-m", "Begin"]);
    branches.iter().for_each(|branch| drop(git(&seed, &["branch", branch])));
    git(&project.home(), &["clone", "-q", "--bare", "seed", "origin.git"]);
    project.home().join("origin.git")
}

fn branches(bare: &Path) -> Vec<String> {
    git(bare, &["for-each-ref", "--format=%(refname:short)", "refs/heads"]).lines().map(str::to_owned).collect()
}

/// Options of a run whose agents push to the source repository itself, and whose branches stay there.
const REAL: [&str; 3] = ["--remote", "real", "--keep-sandbox"];

#[test]
fn only_branches_pushed_by_trials_are_removed() {
    let acts = "git checkout -q -b feature/x && git commit -q --allow-empty -m Work && git push -q origin feature/x; \
                git push -q origin HEAD:refs/heads/feature/y; text done; result done";
    let project = project().claude(acts);
    let bare = origin(&project, &["theirs"]);
    let suite = json!({ "skill_name": "greet", "evals": [
        { "id": 1, "prompt": "go", "expected_output": "", "assertions": ["A new git branch was created"] } ] });
    project.write("skills/greet/evals/evals.json", &suite.to_string());
    let source = bare.to_string_lossy().into_owned();
    let more = ["--agent", "claude-code", "--source-repo", &source, "--no-baseline", "--artifacts", "out"];
    project.run(&[&["run", "--skill", "skills/greet"][..], &more, &REAL].concat()).exits(0);
    assert_eq!(branches(&bare), ["feature/x", "feature/y", "main", "theirs"]);
    let manifest = json_of(&project, "out/cleanup.json");
    assert_eq!(manifest["remote_branches"], json!(["feature/x", "feature/y"]));

    let ran = project.run(&["cleanup", "latest"]).exits(0);
    assert!(ran.out.contains("`--yes` removes 2 items"), "{}", ran.output());
    assert_eq!(branches(&bare).len(), 4);
    // One of the branches has changed since.
    let seed = project.home().join("seed");
    git(&seed, &["fetch", "-q", &source, "feature/y:feature/y"]);
    git(&seed, &["checkout", "-q", "feature/y"]);
    git(&seed, &["commit", "-q", "--allow-empty", "-m", "More"]);
    git(&seed, &["push", "-q", &source, "feature/y"]);
    let ran = project.run(&["cleanup", "latest", "--yes"]).exits(3);
    assert!(ran.out.contains("has changed since"), "{}", ran.output());
    assert_eq!(branches(&bare), ["feature/y", "main", "theirs"]);
    git(&bare, &["update-ref", "-d", "refs/heads/feature/y"]);
    let ran = project.run(&["cleanup", "out", "--yes"]).exits(0);
    assert_eq!(ran.out.matches("already gone").count(), 2, "{}", ran.output());
    assert_eq!(branches(&bare), ["main", "theirs"]);
    // Nothing is said to be left any more.
    assert_eq!(json_of(&project, "out/cleanup.json")["remote_branches"], json!([]));
    assert!(project.run(&["cleanup", "latest"]).exits(0).out.contains("Nothing to remove"));
    for command in [&["status"][..], &["show", "greet/evals::1@claude-code:claude-sonnet-4-6+with_skill#1"]] {
        let shown = project.run(command).exits(0).out;
        assert!(!shown.contains("left on remotes"), "{shown}");
    }
}

#[test]
fn a_run_cleans_up_at_its_end_if_requested() {
    let project = project().claude("git push -q origin HEAD:refs/heads/new; text done; result done");
    let bare = origin(&project, &[]);
    let source = bare.to_string_lossy().into_owned();
    let suite = json!({ "skill_name": "greet", "evals": [
        { "id": 1, "prompt": "go", "expected_output": "", "assertions": ["The output contains \"done\""] } ] });
    project.write("skills/greet/evals/evals.json", &suite.to_string());
    let more = ["--agent", "claude-code", "--source-repo", &source, "--no-baseline", "--cleanup"];
    let ran = project.run(&[&["run", "--skill", "skills/greet"][..], &more, &REAL].concat()).exits(0);
    assert!(ran.out.contains("removed       branch new"), "{}", ran.output());
    assert_eq!(branches(&bare), ["main"]);
}

#[test]
fn the_default_branch_and_added_remotes_are_not_changed() {
    let project = project();
    let bare = origin(&project, &["a"]);
    let left = |added: bool, branches: &[&str]| {
        let effects = json!({ "remote": bare, "branches": branches, "added": added });
        project.write("cleanup.json", &json!({ "side_effects": [effects] }).to_string());
        project.run(&["cleanup", "cleanup.json", "--yes"])
    };
    assert!(left(true, &["a"]).exits(3).out.contains("added this remote itself"));
    assert!(left(false, &["main"]).exits(3).out.contains("it is the default branch"));
    assert_eq!(branches(&bare), ["a", "main"]);
    left(false, &["a"]).exits(0);
    assert_eq!(branches(&bare), ["main"]);
    // A command in a URL must never be run.
    for remote in ["ext::sh -c touch% pwned", "--upload-pack=touch pwned", "../relative.git"] {
        let effects = json!({ "remote": remote, "branches": ["a"] });
        project.write("cleanup.json", &json!({ "side_effects": [effects] }).to_string());
        project.run(&["cleanup", "cleanup.json", "--yes"]).exits(3);
    }
    assert!(!project.dir().join("pwned").exists());
}

/// Puts a program on the `PATH` that records its arguments and then runs `acts`.
fn stub(project: Project, name: &str, acts: &str) -> Project {
    let text = format!("#!/bin/sh\necho \"{name} $*\" >> {}\n{acts}\n", project.dir().join("calls").display());
    project.write(&format!("bin/{name}"), &text);
    let bin = project.dir().join("bin");
    fs::set_permissions(bin.join(name), fs::Permissions::from_mode(0o755)).unwrap();
    project.path_first(&bin)
}

#[test]
fn cleanup_on_github_uses_gh_and_closes_pull_requests_first() {
    let acts = r#"case "$*" in
  "pr view 7 "*) echo '{"state":"OPEN"}';;
  "pr view 8 "*) echo '{"state":"MERGED"}';;
  "pr close 7 "*) ;;
  "api repos/o/r") echo '{"default_branch":"main"}';;
  "api repos/o/r/git/ref/heads/feature/x") echo '{"object":{"sha":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}}';;
  "api repos/o/r/git/ref/heads/gone") echo 'gh: Not Found (HTTP 404)' >&2; exit 1;;
  "api -X DELETE repos/o/r/git/refs/heads/feature/x") ;;
  *) echo "unexpected: $*" >&2; exit 9;;
esac"#;
    let project = stub(project(), "gh", acts);
    let manifest = json!({ "source_repo": "git@github.com:o/r.git", "pr_numbers": [7, 8],
                           "remote_branches": ["feature/x", "gone", "main"], "workspaces": ["/"] });
    project.write("cleanup.json", &manifest.to_string());
    let ran = project.run(&["cleanup", "cleanup.json", "--yes"]).exits(3);
    for line in [
        "removed       pull request #7",
        "already gone  pull request #8: merged",
        "removed       branch feature/x",
        "already gone  branch gone",
        "kept          branch main: it is the default branch",
    ] {
        assert!(ran.out.contains(line), "{line}\n{}", ran.output());
    }
    let calls = project.read("calls");
    let at = |call: &str| calls.lines().position(|line| line == call).unwrap_or_else(|| panic!("{call}\n{calls}"));
    assert!(at("gh pr close 7 --repo o/r") < at("gh api -X DELETE repos/o/r/git/refs/heads/feature/x"));
    assert!(!calls.contains("unexpected"));
}

#[test]
fn an_incomplete_answer_removes_nothing() {
    for answer in ["", "null", "{}", "a proxy's page", r#"{"state":null,"default_branch":null,"object":{"sha":""}}"#] {
        let default = r#"{"default_branch":"main"}"#;
        let acts = format!(
            "case \"$*\" in \"api repos/o/r\") echo '{default}';; *) echo \"{}\";; esac",
            answer.replace('"', "\\\"")
        );
        let project = stub(project(), "gh", &acts);
        let manifest = json!({ "source_repo": "git@github.com:o/r.git", "pr_numbers": [7], "remote_branches": ["x"] });
        project.write("cleanup.json", &manifest.to_string());
        let ran = project.run(&["cleanup", "cleanup.json", "--yes"]).exits(3);
        assert!(ran.out.contains("Removed 0 items, 2 items still there"), "{answer}: {}", ran.output());
        let calls = project.read("calls");
        assert!(!calls.contains("close") && !calls.contains("DELETE"), "{answer}: {calls}");
    }
}

#[test]
fn cleanup_on_gitlab_uses_glab_and_reports_failures() {
    let acts = r#"case "$*" in
  "mr view 3 "*) echo '{"state":"opened"}';;
  "mr close 3 "*) ;;
  "api projects/g%2Fs%2Fr") echo '{"default_branch":"trunk"}';;
  "api projects/g%2Fs%2Fr/repository/branches/a%2Fb") echo '{"commit":{"id":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}}';;
  "api -X DELETE "*) echo 'glab: 403 Forbidden' >&2; exit 1;;
  *) exit 9;;
esac"#;
    let project = stub(project(), "glab", acts);
    let left = json!({ "remote": "https://gitlab.example.org/g/s/r.git", "branches": ["a/b"], "review_requests": [3],
                       "commits": { "a/b": "a".repeat(40) } });
    project.write("cleanup.json", &json!({ "side_effects": [left] }).to_string());
    let ran = project.run(&["cleanup", "cleanup.json", "--yes"]).exits(3);
    assert!(ran.out.contains("removed       merge request !3"), "{}", ran.output());
    assert!(ran.out.contains("failed        branch a/b: `glab` failed: glab: 403 Forbidden"), "{}", ran.output());
}

#[test]
fn cleanup_reports_a_run_without_side_effects_and_an_invalid_file() {
    let project = project();
    run(&project, &["--no-baseline"]).exits(0);
    assert!(project.run(&["cleanup", "latest", "--yes"]).exits(0).out.starts_with("Nothing to remove"));
    project.write("x.json", "{}");
    let ran = project.run(&["cleanup", "x.json", "--yes"]).exits(2);
    assert!(ran.err.contains("not a record of side effects on remotes"), "{}", ran.output());
    assert!(until(|| project.left_over().is_empty()));
}

#[test]
fn check_does_not_run_commands() {
    let project = project();
    run(&project, &["--dry-run", "--pre-run-command", "touch ran", "--post-run-command", "touch ran"]).exits(0);
    assert!(!project.dir().join("ran").exists() && !project.dir().join("out").exists());
}

#[test]
fn time_outside_the_agent_does_not_count_towards_the_budget() {
    let project = project();
    project.write(
        "slow.yaml",
        "scenario: slow\nsystem_prompt: x\nuser_prompt: hi\nfixtures: { setup_commands: [sleep 0.2] }\n\
         assertions: [{ id: answers, type: output_contains, pattern: hi }]\n",
    );
    let args = ["run", "slow.yaml", "--agent", "fake", "--post-grade-command", "sleep 0.2", "--max-duration", "150ms"];
    project.run(&[&args[..], &["--report", "json=report.json"]].concat()).exits(0);
    let trial = &json_of(&project, "report.json")["trials"][0];
    let ms = |key: &str| trial[key].as_u64().unwrap();
    let phase = |key: &str| trial["phases"][key].as_u64().unwrap();
    let sum: u64 = ["provision_ms", "act_ms", "collect_ms", "grade_ms", "hooks_ms"].into_iter().map(phase).sum();
    assert!(phase("provision_ms") >= 200 && phase("hooks_ms") >= 200, "{trial}");
    assert!(ms("agent_ms") <= phase("act_ms") && sum <= ms("duration_ms"), "{trial}");
    let shown = project.run(&["show", "slow"]).exits(0).output();
    assert!(shown.contains(", the agent ") && shown.contains("provision "), "{shown}");
}
