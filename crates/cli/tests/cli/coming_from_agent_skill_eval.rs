//! All commands and files in agent-skill-eval's README, as printed there, run in a directory that contains only the
//! README's own files. Agents that are not installed are replaced by the one that needs no model.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use serde_json::{Value, json};
use testkit::{Project, Ran};

const TRIALRUN: &str = env!("CARGO_BIN_EXE_trialrun");

/// The suite that the page defines.
const SUITE: &str = r#"{
  "skill_name": "write-release-notes",
  "evals": [
    {
      "id": "explicit-invoke",
      "prompt": "Write release notes for the commit history in commits.txt.",
      "expected_output": "A RELEASE_NOTES.md grouping changes by type with breaking changes highlighted.",
      "files": ["files/commits.txt"],
      "force_skill_invocation": true,
      "assertions": [
        "The file `RELEASE_NOTES.md` exists",
        "The breaking change is mentioned prominently",
        "The release notes do not mention any change that is not in commits.txt"
      ]
    },
    {
      "id": "negative-control",
      "prompt": "How many commits are listed in commits.txt?",
      "expected_output": "The skill should NOT trigger.",
      "files": ["files/commits.txt"],
      "should_trigger": false,
      "assertions": [
        "A new git branch was created",
        "A git commit was created",
        "The agent only answered the question without creating files"
      ]
    }
  ]
}"#;

/// The prices that the page shows.
const PRICING: &str = r#"{"gpt-5.4-mini": {"prompt": 2.5e-07, "completion": 2e-06, "input_cache_read": 2.5e-08}}"#;

/// Returns a project with two skills, whose suites are among the examples.
fn repository() -> Project {
    let project = Project::new(TRIALRUN);
    project.write("pricing.json", PRICING);
    for skill in ["write-release-notes", "fix-failing-tests"] {
        let head = format!("---\nname: {skill}\ndescription: What it is for.\n---\nDo it.\n");
        let home = format!("examples/{skill}/evals");
        project
            .write(&format!("skills/{skill}/SKILL.md"), &head)
            .write(&format!("{home}/evals.json"), &SUITE.replace("write-release-notes", skill))
            .write(&format!("{home}/files/commits.txt"), "feat!: drop the old API\nfix: a typo\n");
    }
    project
}

/// Returns the arguments after the program name.
fn words(printed: &str) -> Vec<String> {
    let words = shlex::split(&printed.replace("\\\n", " ")).unwrap();
    let named = ["agent-skill-eval", "ase"].contains(&words[0].as_str());
    words.into_iter().skip(usize::from(named)).collect()
}

fn typed(project: &Project, words: &[String]) -> Ran {
    project.run(&words.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Runs the command as printed; it must succeed.
#[track_caller]
fn ok(project: &Project, printed: &str) -> Ran {
    typed(project, &words(printed)).exits(0)
}

/// Returns the same command for the available agent, without the options for the other agents.
fn for_fake(words: &[String]) -> Vec<String> {
    const ABOUT_AGENTS: [&str; 6] =
        ["--agent", "--agent-model", "-m", "--harness-base-url", "--source-repo", "--reasoning-effort"];
    let mut kept = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            option if ABOUT_AGENTS.contains(&option) => drop(words.next()),
            command if command.starts_with("python ") => kept.push("true".to_owned()),
            _ => kept.push(word.clone()),
        }
    }
    kept.extend(["--agent", "fake"].map(str::to_owned));
    kept
}

/// Checks that a printed `run` is valid, and runs it with the available agent. Assertions that need a judge are
/// undecided.
#[track_caller]
fn runs(project: &Project, printed: &str) -> Ran {
    let words = words(printed);
    let dry = [&words[..], &["--dry-run".to_owned()]].concat();
    typed(project, &dry).exits(0);
    let ran = typed(project, &for_fake(&words));
    assert!([1, 3].contains(&ran.code), "{printed}: {}", ran.output());
    ran
}

fn read(project: &Project, path: &str) -> Value {
    serde_json::from_str(&project.read(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Fails the test unless `value` has these fields.
#[track_caller]
fn has(value: &Value, fields: &[&str]) {
    let missing: Vec<&&str> = fields.iter().filter(|field| value.get(**field).is_none()).collect();
    assert!(missing.is_empty(), "{missing:?} in {value:#}");
}

const HOME: &str = "./eval-workspace/write-release-notes-workspace";

#[test]
fn the_quick_start_does_what_it_says() {
    let project = repository();
    let listed = ok(&project, "agent-skill-eval list").out;
    assert!(
        listed.contains("write-release-notes/evals::explicit-invoke") && listed.contains("fix-failing-tests/evals::"),
        "{listed}"
    );
    ok(&project, "agent-skill-eval list --root .");
    ok(&project, "agent-skill-eval validate examples/write-release-notes/evals/evals.json");
    runs(
        &project,
        "agent-skill-eval run \
         --skill ./skills/write-release-notes \
         --evals ./examples/write-release-notes/evals/evals.json \
         --agent claude-code --agent-model claude-code=haiku \
         --agent codex --agent-model codex=gpt-5-mini \
         --runs 3",
    );
    // No workspace was written; the run is found in the record.
    let text = ok(&project, &format!("agent-skill-eval report --workspace {HOME} --show-evidence")).out;
    assert!(text.contains("explicit-invoke"), "{text}");
    let error = project.run(&["report", "--workspace", "./eval-workspace/other-workspace"]).exits(2).err;
    assert!(error.contains("no run of the `other` skill is recorded"), "{error}");
    let error = project.run(&["report", "--workspace", "./nothing"]).exits(2).err;
    assert!(error.contains("./nothing does not exist"), "{error}");
}

#[test]
fn a_new_skill_has_the_documented_files() {
    let project = Project::new(TRIALRUN);
    ok(&project, "agent-skill-eval init my-skill");
    ok(&project, "agent-skill-eval init my-skill --output ./examples");
    for home in ["my-skill", "examples/my-skill"] {
        assert!(project.read(&format!("{home}/SKILL.md")).starts_with("---\nname: my-skill\n"));
        let suite = read(&project, &format!("{home}/evals/evals.json"));
        let triggers: Vec<bool> =
            suite["evals"].as_array().unwrap().iter().map(|case| case["should_trigger"] != false).collect();
        assert_eq!((&suite["skill_name"], triggers), (&json!("my-skill"), vec![true, false]));
        assert!(project.dir().join(home).join("evals/files").is_dir());
        ok(&project, &format!("ase validate {home}/evals/evals.json"));
    }
    let ran = project.run(&["run", "--skill", "my-skill", "--agent", "fake"]);
    assert_eq!(ran.code, 1, "{}", ran.output());
    // A file that the user wrote is kept, and the suite is not overwritten.
    project.write("mine/SKILL.md", "---\nname: mine\ndescription: d\n---\nMine.\n");
    ok(&project, "ase init mine");
    assert!(project.read("mine/SKILL.md").ends_with("Mine.\n"));
    assert!(project.run(&["init", "mine"]).exits(2).err.contains("mine/evals/evals.json"));
    assert!(project.run(&["init", "--output", "x"]).exits(2).err.contains("init NAME --output DIR"));
}

#[test]
fn every_option_of_run_is_accepted() {
    let project = repository();
    let base = "agent-skill-eval run --skill ./skills/write-release-notes \
                --evals ./examples/write-release-notes/evals/evals.json";
    let all = format!(
        "{base} --agent opencode --agent claude-code --agent codex \
         --agent-model claude-code=haiku --agent-model codex=gpt-5-mini \
         --reasoning-effort medium --harness-base-url https://openrouter.ai/api/v1 \
         --runs 3 --concurrency 2 --iteration 1 --baseline --cleanup --timeout 600 --retries 1 \
         --eval-id explicit-invoke --max-total-tokens-per-case 200000 --budget-action fail \
         --pre-run-command 'python scripts/setup.py' --post-grade-command 'python scripts/grade_external.py' \
         --post-run-command 'python scripts/teardown.py' --pricing-config pricing.json \
         --grader-model deepseek/deepseek-v4-flash --grader-base-url http://127.0.0.1:9/v1 \
         --source-repo https://github.com/foo/bar.git --workspace ./eval-workspace"
    );
    runs(&project, &all);
    for more in [
        "-a codex -m codex=gpt-5-mini -n 2 -c 2 -i 7 -w ./short",
        "--agent codex -m gpt-5-mini --no-baseline --max-input-tokens-per-case 9 --max-non-cached-input-tokens-per-case 9 \
         --max-output-tokens-per-case 9 --max-reasoning-tokens-per-case 9 --max-cost-per-case 0.5 \
         --pricing-config pricing.json --max-duration-per-case 60 --budget-action warn",
        "--agent codex --budget-action stop-suite --eval-id explicit-invoke --eval-id negative-control",
    ] {
        typed(&project, &words(&format!("{base} {more} --dry-run"))).exits(0);
    }
    let refused = |more: &str| typed(&project, &words(&format!("{base} {more}"))).err;
    let error = refused("--agent fake --eval-id explicit-invok");
    assert!(error.contains("available ids: explicit-invoke, negative-control"), "{error}");
    let error = refused("--agent fake --eval-id negative-control --eval-id nothing");
    assert!(error.contains("available ids: explicit-invoke, negative-control"), "{error}");
    let error = refused("--agent codex --agent-model codx=gpt-5-mini --dry-run");
    assert!(error.contains("unknown agent `codx`") && error.contains("did you mean `codex`?"), "{error}");
}

#[test]
fn the_workspace_has_the_documented_files_and_can_be_read_from_any_directory() {
    let project = repository();
    let run = "agent-skill-eval run --skill ./skills/write-release-notes \
               --evals ./examples/write-release-notes/evals/evals.json --agent fake --runs 2 --workspace ./eval-workspace \
               --post-grade-command 'echo [{\\\"text\\\": \\\"outside\\\", \\\"passed\\\": true, \\\"evidence\\\": \\\"seen\\\"}]'";
    for iteration in ["1", "2"] {
        let ran = typed(&project, &words(&format!("{run} --iteration {iteration}")));
        assert!([1, 3].contains(&ran.code), "{}", ran.output());
    }
    ok(&project, "check .");
    let home = "eval-workspace/write-release-notes-workspace/iteration-1";
    let file = |name: &str| read(&project, &format!("{home}/{name}"));
    has(&file("suite.json"), &["skill_name", "selected_eval_ids", "run_id", "record"]);
    has(&file("benchmark.json"), &["run_summary", "deltas", "delta"]);
    has(&file("benchmark.json")["run_summary"], &["fake_with_skill", "fake_without_skill"]);
    has(
        &file("benchmark.json")["run_summary"]["fake_with_skill"],
        &["pass_rate", "time_seconds", "tokens", "cost_usd", "cost_runs", "full_pass_rate", "pass_at_k", "k"],
    );
    let summary = [
        "skill_name",
        "iteration",
        "agents",
        "eval_ids",
        "pass_rates",
        "failed_runs",
        "errors",
        "tokens",
        "cost",
        "cleanup",
    ];
    has(&file("summary.json"), &summary);
    has(&file("cleanup.json"), &["remote_branches", "pr_numbers"]);
    let progress = project.read(&format!("{home}/progress.jsonl"));
    for event in ["suite_started", "run_started", "agent_started", "agent_finished", "run_finished", "suite_finished"] {
        assert!(progress.contains(&format!("\"event\":\"{event}\"")), "{event}: {progress}");
    }
    for config in ["with_skill", "without_skill"] {
        let trial = |name: &str| format!("explicit-invoke/fake+{config}/run-2/{name}");
        let timing = file(&trial("timing.json"));
        has(
            &timing,
            &["non_cached_input_tokens", "reasoning_output_tokens", "duration_ms", "exit_code", "timed_out", "retries"],
        );
        has(&timing, &["cost_usd", "cost_usd_source", "cost_usd_cli", "budget_exceeded", "budget_reason"]);
        let meta = [
            "agent",
            "with_skill",
            "run_index",
            "model",
            "reasoning_effort",
            "base_url",
            "agent_cli_version",
            "harness_version",
        ];
        has(&file(&trial("run_meta.json")), &meta);
        let grading = file(&trial("grading.json"));
        has(&grading["summary"], &["passed", "failed", "skipped", "total", "pass_rate"]);
        has(&grading["assertion_results"][0], &["text", "passed", "method", "skipped", "evidence"]);
        assert!(
            grading["assertion_results"].as_array().unwrap().iter().any(|row| row["method"] == "hook"),
            "{grading:#}"
        );
        for name in ["output.txt", "pre_state.json", "post_state.json", "post_grade_hooks.json"] {
            assert!(project.dir().join(home).join(trial(&format!("outputs/{name}"))).is_file(), "{name}");
        }
    }

    let elsewhere = tempfile::tempdir().unwrap();
    let workspace = project.dir().join("eval-workspace/write-release-notes-workspace");
    let workspace = workspace.to_str().unwrap();
    for command in [
        "report --workspace W --show-evidence --failures-only",
        "report --workspace W --iteration 1 --format table",
        "report --workspace W --format markdown",
        "status --workspace W",
        "status --workspace W --iteration 1",
        "compare --workspace W 1 2",
    ] {
        let words = words(&command.replace('W', workspace));
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        for place in [project.dir(), elsewhere.path().to_owned()] {
            let ran: Ran = project.command(&words).current_dir(&place).output().unwrap().into();
            assert!(ran.code == 0 && !ran.out.is_empty(), "{command} in {}: {}", place.display(), ran.output());
        }
    }
    assert!(!elsewhere.path().join(".trialrun").exists());
    let rate = || file("benchmark.json")["run_summary"]["fake_with_skill"]["pass_rate"]["mean"].as_f64().unwrap();
    let (run, old) = (file("suite.json")["run_id"].clone(), rate());
    let suite = SUITE.replace("The file `RELEASE_NOTES.md` exists", "The file `commits.txt` exists");
    project.write("examples/write-release-notes/evals/evals.json", &suite);
    let graded = typed(&project, &words(&format!("grade --workspace {home} --recompute-benchmark")));
    assert!([1, 3].contains(&graded.code), "{}", graded.output());
    let regraded = file("suite.json")["run_id"].clone();
    assert!(regraded != run && rate() > old, "{old} to {}", rate());
    let grading = file("explicit-invoke/fake+with_skill/run-2/grading.json");
    let results = grading["assertion_results"].as_array().unwrap();
    assert!(results[0]["passed"] == true && results.iter().any(|row| row["method"] == "hook"), "{grading:#}");
    for command in ["report", "status"] {
        let shown = ok(&project, &format!("{command} --workspace {workspace} --iteration 1")).out;
        assert!(shown.contains(regraded.as_str().unwrap()), "{shown}");
    }
    // Without a judge, no case of the first iteration has a result.
    let compared = typed(&project, &words(&format!("compare --workspace {workspace} 1 2 --any")));
    assert!(compared.code == 3 && compared.out.contains("Nothing was compared: "), "{}", compared.output());
    ok(&project, "cleanup --workspace ./eval-workspace --yes");
    ok(&project, &format!("cleanup --iteration {home} -y"));
    let error = project.run(&["status", "--workspace", workspace, "--iteration", "7"]).exits(2).err;
    assert!(error.contains("iterations: 1, 2"), "{error}");
}

#[test]
fn short_options_and_foreign_workspaces_are_understood() {
    let project = repository();
    assert!(ok(&project, "ase -v").out.starts_with("trialrun "));
    assert!(ok(&project, "ase list -r .").out.contains("write-release-notes/evals::explicit-invoke"));
    ok(&project, "ase init -o ./examples short");
    runs(&project, "ase run -s skills/write-release-notes -e examples/write-release-notes/evals/evals.json");
    ok(&project, "ase report -f markdown");
    // Results of agent-skill-eval itself.
    let home = "theirs/greet-workspace/iteration-1";
    project.write(&format!("{home}/evals_meta.json"), "{}").write(
        &format!("{home}/cleanup.json"),
        r#"{"source_repo": "/nowhere/r.git", "remote_branches": ["a"], "pr_numbers": [], "workspaces": []}"#,
    );
    for command in ["report", "status", "grade"] {
        let error = project.run(&[command, "--workspace", "theirs/greet-workspace"]).exits(2).err;
        assert!(error.contains("were written by agent-skill-eval"), "{error}");
    }
    ok(&project, "ase cleanup --workspace theirs --yes");
    assert!(project.read(&format!("{home}/cleanup.json")).contains("\"remote_branches\": []"));
    // A suite outside the current directory.
    let elsewhere = tempfile::tempdir().unwrap();
    let suite = project.dir().join("examples/write-release-notes/evals/evals.json");
    let validated = project.command(&["validate", suite.to_str().unwrap()]).current_dir(elsewhere.path()).output();
    let validated: Ran = validated.unwrap().into();
    assert_eq!(validated.code, 0, "{}", validated.output());
}

#[test]
fn a_skill_can_be_iterated_on_without_a_workspace() {
    let project = repository();
    let run = "agent-skill-eval run --skill ./skills/fix-failing-tests \
               --evals ./examples/fix-failing-tests/evals/evals.json \
               --agent claude-code --agent-model claude-code=claude-haiku-4-5-20251001 \
               --agent opencode --agent-model opencode=deepseek/deepseek-v4-flash:free --runs 3";
    runs(&project, run);
    runs(&project, &format!("{run} --iteration 2"));
    let home = "./eval-workspace/fix-failing-tests-workspace";
    ok(&project, &format!("agent-skill-eval report --workspace {home} --format markdown"));
    ok(&project, &format!("agent-skill-eval compare --workspace {home} 1 2"));
    ok(&project, &format!("agent-skill-eval status --workspace {home}"));
    ok(&project, "agent-skill-eval cleanup --workspace ./eval-workspace --yes");
}

#[test]
fn a_suite_with_a_mistake_is_reported_with_its_line() {
    let project = repository();
    let file = "examples/write-release-notes/evals/evals.json";
    ok(&project, &format!("agent-skill-eval validate {file} --eval-id negative-control"));
    project.write(file, &SUITE.replace("should_trigger", "should_triger"));
    let error = project.run(&["validate", file]).exits(2).err;
    assert!(error.contains(&format!("{file}:")) && error.contains("did you mean `should_trigger`?"), "{error}");
}
