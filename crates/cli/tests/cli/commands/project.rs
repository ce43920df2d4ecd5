//! The project: `init`, `list`, `doctor`, `config`, and defaults.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use testkit::Ran;

use super::{demo, empty, lines, scenario};

#[test]
fn list_shows_what_would_run_and_what_is_built_in() {
    let project = demo();
    let ran = project.run(&["list"]).exits(0);
    assert_eq!(lines(&ran), ["greet::first   fake  #fast", "greet::second  fake  #fast", "greet::third   fake  #slow"]);
    let ran = project.run(&["list", "greet", "--trials", "3", "--case", "first"]).exits(0);
    assert_eq!(lines(&ran), ["greet::first  fake  3 times  #fast"]);
    let nothing = project.run(&["list", "--eval-id", "nope"]).exits(4);
    assert!(nothing.err.contains("available ids: first, second, third"), "{}", nothing.output());
    let rows = project.run(&["list", "--json"]).exits(0).json();
    assert_eq!(rows[1]["id"], "greet::second@fake#1");
    assert_eq!(rows[1]["source"]["file"], "skills/greet/tests/b.yaml");
    assert_eq!((&rows[1]["title"], &rows[1]["tags"]), (&json!("The second case."), &json!(["fast"])));

    for (kind, named) in [
        ("--agents", &["claude-code", "chat", "recorded", "fake"][..]),
        ("--assertions", &["tool_called", "no_path_escape", "token_budget"]),
        ("--reports", &["terminal", "json", "jsonl", "artifacts"]),
        ("--sandboxes", &["local"]),
    ] {
        let ran = project.run(&["list", kind]).exits(0);
        let rows = project.run(&["list", kind, "--json"]).exits(0).json();
        for name in named {
            assert!(lines(&ran).iter().any(|line| line.split_whitespace().next() == Some(name)), "{kind}: {}", ran.out);
            assert!(rows.as_array().unwrap().iter().any(|row| row["name"] == *name), "{kind}: {rows:#}");
        }
    }
}

#[test]
fn doctor_reports_readiness_and_runs_the_self_test() {
    let project = empty();
    let rows = project.run(&["doctor", "--json"]).exits(0).json();
    let row = |kind: &str, name: &str| {
        let mut rows = rows.as_array().unwrap().iter();
        rows.find(|row| row["kind"] == kind && row["name"] == name).unwrap_or_else(|| panic!("{kind} {name}")).clone()
    };
    for (kind, name) in
        [("agent", "chat"), ("agent", "fake"), ("agent", "recorded"), ("tool", "git"), ("sandbox", "local")]
    {
        assert_eq!(row(kind, name)["ready"], true, "{name}");
    }
    let claude = row("agent", "claude-code");
    assert!(claude["ready"] == true || !claude["hints"].as_array().unwrap().is_empty(), "{claude:#}");
    let text = project.run(&["doctor", "--self-test"]).exits(0);
    assert!(text.out.contains("✓ self-test  assertions"), "{}", text.out);
    let rows = project.run(&["runtimes", "--self-test", "--json"]).exits(0).json();
    let tested: Vec<&Value> = rows.as_array().unwrap().iter().filter(|row| row["kind"] == "self-test").collect();
    let assertions = project.run(&["list", "--assertions", "--json"]).json().as_array().unwrap().len();
    assert_eq!(tested.len(), 2 * assertions);
    assert!(tested.iter().all(|row| row["ready"] == true), "{tested:#?}");
}

#[test]
fn doctor_ends_with_3_if_no_run_can_work() {
    let project = empty();
    let ready = |ran: &Ran, kind: &str| {
        let rows = ran.json();
        let row = rows.as_array().unwrap().iter().find(|row| row["kind"] == kind).cloned();
        row.map(|row| (row["ready"].as_bool().unwrap(), row["hints"].to_string()))
    };
    project.write("trialrun.yaml", "trails: 3\n").write("state", "a file");
    let ran = project.run(&["doctor", "--json"]).exits(3);
    let hint = "[\"trialrun.yaml:1:1: unknown key `trails` in the configuration\"]".to_owned();
    assert_eq!(ready(&ran, "config"), Some((false, hint)));
    assert_eq!(ready(&ran, "record"), Some((true, "[]".into())));
    project.write("trialrun.yaml", "defaults: { trials: 3 }\n");
    assert_eq!(ready(&project.run(&["doctor", "--json"]).exits(0), "config"), Some((true, "[]".into())));
    let ran = project.run(&["doctor", "--json", "--state", "state/runs"]).exits(3);
    assert_eq!(ready(&ran, "record").map(|(ready, _)| ready), Some(false));
}

#[test]
fn config_shows_the_layer_of_each_setting() {
    let project = demo();
    project.write(
        "trialrun.yaml",
        "skills_dir: skills\ndefaults:\n  agent: fake\n  model: big\n  permission_mode: plan\n  timeout: 90s\n  max_turns: 7\n  trials: 2\n  token_budget: 5000\n  jobs: 1\n",
    );
    let rows = project.run(&["config", "--json", "--trials", "5", "--timeout", "2m", "--keep-sandbox"]).exits(0).json();
    let row = |name: &str| {
        let row = rows.as_array().unwrap().iter().find(|row| row["name"] == name).unwrap();
        (row["value"].clone(), row["layer"].as_str().unwrap().to_owned())
    };
    let of = |value: Value, layer: &str| (value, layer.to_owned());
    assert_eq!(row("trials"), of(json!(5), "command line"));
    assert_eq!(row("timeout_ms"), of(json!(120_000), "command line"));
    assert_eq!(row("keep_sandbox"), of(json!(true), "command line"));
    assert_eq!(row("agent"), of(json!("fake"), "trialrun.yaml:3"));
    assert_eq!(row("model"), of(json!("big"), "trialrun.yaml:4"));
    assert_eq!(row("permission_mode"), of(json!("plan"), "trialrun.yaml:5"));
    assert_eq!(row("max_turns"), of(json!(7), "trialrun.yaml:7"));
    assert_eq!(row("token_budget"), of(json!(5000.0), "trialrun.yaml:9"));
    assert_eq!(row("retries"), of(json!(1), "built in"));
    let text = project.run(&["config"]).exits(0);
    assert!(
        lines(&text).iter().any(|line| line.starts_with("timeout_ms ") && line.ends_with("trialrun.yaml:6")),
        "{}",
        text.out
    );
    project.write("trialrun.yaml", "agent: { type: http, url: 'http://127.0.0.1:9/' }\njudge: openai:m\n");
    let rows = project.run(&["config", "--json", "--judge", "openai:n"]).exits(0).json();
    let of = |name: &str| rows.as_array().unwrap().iter().filter(|row| row["name"] == name).count();
    assert_eq!((of("agent"), of("judge"), of("agent.url")), (1, 1, 1), "{rows:#}");
    project.write("trialrun.yaml", "defaults: { agnt: fake }\n");
    assert!(project.run(&["config"]).exits(2).err.contains("did you mean `agent`?"));
}

#[test]
fn project_defaults_rank_below_the_case_and_the_command_line() {
    let project = demo();
    project.write(
        "trialrun.yaml",
        "defaults: { agent: fake, trials: 2, max_turns: 9, timeout: 90s, token_budget: 700 }\n",
    );
    project.write("skills/greet/tests/a.yaml", &scenario("first", "\"!tokens 10 5\\nhello\""));
    let report = project.report(&["--case", "first"], 0);
    let trials = report["trials"].as_array().unwrap();
    assert_eq!(trials.len(), 2);
    let limits = &trials[0]["limits"];
    assert_eq!((&limits["max_turns"], &limits["timeout_ms"]), (&json!(9), &json!(90_000)), "{limits:#}");
    assert_eq!((&limits["token_budget"], &limits["token_budget_from"]), (&json!(700.0), &json!("project")));
    let report = project.report(&["--case", "first", "--trials", "1", "--max-turns", "3"], 0);
    assert_eq!(report["trials"].as_array().unwrap().len(), 1);
    assert_eq!(report["trials"][0]["limits"]["max_turns"], 3);
}

#[test]
fn a_project_of_ai_tester_runs_with_its_own_defaults() {
    let project = empty();
    project
        .write(
            ".ai-tester.yaml",
            "skills_dir: ./my-skills\ndefaults:\n  model: scripted:model.yaml\n  permission_mode: plan\n",
        )
        .write(
            "model.yaml",
            "steps: [{ tools: [{ name: Write, input: { file_path: a, content: b } }] }, { text: hello }]\n",
        )
        .write("my-skills/greet/SKILL.md", "---\nname: greet\ndescription: Greets.\n---\nSay hello.\n")
        .write(
            "my-skills/greet/tests/a.yaml",
            "scenario: a\nskill: greet\nassertions:\n  - { id: a, type: output_contains, pattern: hello }\n",
        );
    let report = project.report(&["--runtime", "chat"], 0);
    let trial = &report["trials"][0];
    assert_eq!((&trial["suite"], &trial["model"]), (&json!("greet"), &json!("scripted:model.yaml")));
    assert_eq!(trial["tool_calls"][0]["is_error"], true, "plan mode allows no writing: {trial:#}");
    assert!(project.run(&["config"]).out.contains(".ai-tester.yaml"));
}

#[test]
fn a_new_project_runs_offline_and_passes() {
    let of_skill = &["init", "made", "--template", "skill", "--skill", "release-notes"][..];
    for (arguments, verdict, fine) in [
        (
            &["init", "made", "--template", "scenario"][..],
            "PASS  1 trial passed",
            "checked 1 case and 1 trial: no problems",
        ),
        (of_skill, "PASS  3 trials passed", "checked 3 cases and 5 trials: no problems"),
    ] {
        let project = empty();
        let ran = project.run(arguments).exits(0);
        let tried = "cd made && trialrun run\n";
        assert!(ran.out.contains("wrote made/trialrun.yaml") && ran.out.contains(tried), "{}", ran.out);
        assert!(project.read("made/trialrun.yaml").starts_with("sandbox: auto "));
        let inside = |arguments: &[&str]| -> Ran {
            project.command(arguments).current_dir(project.dir().join("made")).output().unwrap().into()
        };
        let checked = inside(&["check", "--strict"]).exits(0).out;
        assert!(checked.contains(&format!("{fine}; nothing was run\n")), "{checked}");
        let ran = inside(&["run"]).exits(0);
        // On a machine that cannot isolate agents, a note says so.
        assert!(ran.out.contains(verdict) && !ran.err.contains("real model"), "{}", ran.output());
        // Editors find the schema through the first line of the scenario.
        let scenario = found(&project.dir().join("made"), "first.yaml")
            .into_iter()
            .find(|path| !path.parent().unwrap().ends_with("models"));
        let scenario = scenario.unwrap();
        let text = fs::read_to_string(&scenario).unwrap();
        let named = text.lines().next().unwrap().strip_prefix("# yaml-language-server: $schema=").unwrap();
        let schema: Value = serde_json::from_str(&fs::read_to_string(scenario.with_file_name(named)).unwrap()).unwrap();
        assert_eq!(schema["title"], "scenario");
    }
}

#[test]
fn a_new_code_project_runs_offline_and_passes() {
    let project = empty();
    let ran = project.run(&["init", "made", "--template", "code"]).exits(0);
    assert!(ran.out.contains("wrote made/types/trialrun.d.ts") && ran.out.contains("your own agent"), "{}", ran.out);
    let inside = |arguments: &[&str]| -> Ran {
        project.command(arguments).current_dir(project.dir().join("made")).output().unwrap().into()
    };
    assert_eq!(
        inside(&["check", "--strict"]).exits(0).out,
        "checked 3 cases and 3 trials: no problems; nothing was run\n"
    );
    let ran = inside(&["run"]).exits(0);
    assert!(ran.out.contains("PASS  3 trials passed"), "{}", ran.output());
    assert_eq!(project.read("made/types/trialrun.d.ts"), project.run(&["schema", "types"]).exits(0).out);
    let settings: Value = serde_json::from_str(&project.read("made/tests/tsconfig.json")).unwrap();
    assert_eq!(settings["include"], json!(["**/*.ts", "../types/*.d.ts"]));
    let conversation = project.read("made/tests/edge-case.yaml");
    let named = conversation.lines().next().unwrap().strip_prefix("# yaml-language-server: $schema=../").unwrap();
    let schema: Value = serde_json::from_str(&project.read(&format!("made/{named}"))).unwrap();
    assert_eq!(schema["title"], "conversation");
}

fn found(dir: &Path, name: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    entries
        .flat_map(|path| match path.is_dir() {
            true => found(&path, name),
            false if path.ends_with(name) => vec![path],
            false => Vec::new(),
        })
        .collect()
}

#[test]
fn init_does_not_overwrite_files_without_force() {
    let project = empty();
    project.write("scenarios/first.yaml", "mine\n");
    let ran = project.run(&["init"]).exits(2);
    assert!(ran.err.contains("scenarios/first.yaml") && ran.err.contains("--force"), "{}", ran.err);
    assert!(!project.dir().join("trialrun.yaml").exists(), "all or nothing");
    assert_eq!(project.read("scenarios/first.yaml"), "mine\n");
    project.run(&["init", "--force", "--model", "scripted:x", "--permission-mode", "plan"]).exits(0);
    assert!(project.read("scenarios/first.yaml").contains("scenario: writes-a-greeting"));
    assert!(project.read("trialrun.yaml").contains("permission_mode: plan"));
    let ran = project.run(&["init", "other", "--permission-mode", "pln"]).exits(2);
    assert!(ran.err.contains("did you mean `plan`?"), "{}", ran.err);
    project.run(&["init", "other", "--template", "skill", "--skill", "Not A Name"]).exits(2);
    assert!(!project.dir().join("other").exists());
}

#[test]
fn init_does_not_write_a_configuration_that_hides_another() {
    for (other, is_own) in [(".ai-tester.yaml", false), ("fabrik.config.ts", false), ("trialrun.config.ts", true)] {
        let project = empty();
        std::fs::remove_file(project.dir().join("trialrun.yaml")).ok();
        project.write(other, "");
        let ran = project.run(&["init", "--template", "code"]).exits(2);
        assert!(ran.err.contains(&format!("this project already has a configuration: `{other}`")), "{}", ran.err);
        assert!(!project.dir().join("trialrun.yaml").exists() && !project.dir().join("tests").exists(), "{other}");
        project.run(&["init", "--force"]).exits(if is_own { 2 } else { 0 });
        assert_eq!(project.dir().join("trialrun.yaml").exists(), !is_own, "{other}");
    }
}

#[test]
fn init_reports_which_configuration_in_a_parent_folder_it_hides() {
    let project = empty();
    project.write(".ai-tester.yaml", "");
    std::fs::remove_file(project.dir().join("trialrun.yaml")).ok();
    let ran = project.run(&["init", "sub", "--template", "code"]).exits(0);
    assert!(ran.err.contains("sub/trialrun.yaml is now read there instead of"), "{}", ran.output());
    assert!(ran.err.contains(".ai-tester.yaml"), "{}", ran.err);
}

#[test]
fn an_unreadable_folder_does_not_count_as_empty() {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::process::CommandExt;

    let project = demo();
    project.write("scenarios/one.yaml", "scenario: one\nagent: fake\nsystem_prompt: x\n");
    project.write("scenarios/closed/two.yaml", "scenario: two\nagent: fake\nsystem_prompt: x\n");
    let mode = |path: &std::path::Path, mode: u32| fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    mode(project.dir().parent().unwrap(), 0o755);
    let program = crate::supervise::copy_for_every_user();
    let closed = project.dir().join("scenarios/closed");
    mode(&closed, 0o000);
    let mut command = std::process::Command::new(program.path().join("trialrun"));
    command.args(["check", "scenarios"]).current_dir(project.dir()).env_clear();
    // Permissions have no effect for root.
    if nix::unistd::geteuid().is_root() {
        command.uid(65534).gid(65534);
    }
    let ran = testkit::Ran::from(command.output().unwrap());
    mode(&closed, 0o755);
    let ran = ran.exits(2);
    assert!(ran.err.contains("cannot read the folder") && ran.err.contains("scenarios/closed"), "{}", ran.output());
}

#[test]
fn doctor_checks_the_agents_and_the_judge_of_the_project() {
    let project = empty();
    project.write(
        "trialrun.yaml",
        "agents:\n  shop: { type: http, url: \"http://127.0.0.1:9/\" }\n  two: { type: htp }\n  \
         three: { type: http, url: \"http://127.0.0.1:9/${env.NOWHERE}\" }\njudge: \"anthropic:claude-haiku-4-5\"\n",
    );
    let rows = project.run(&["doctor", "--json"]).exits(0).json();
    let found = |kind: &str, name: &str| {
        let row = rows.as_array().unwrap().iter().find(|row| row["kind"] == kind && row["name"] == name);
        row.unwrap_or_else(|| panic!("no {kind} {name}: {rows:#}")).clone()
    };
    assert_eq!(found("agent", "shop")["ready"], true);
    assert!(found("agent", "two")["hints"].to_string().contains("did you mean `http`?"));
    assert!(found("agent", "three")["hints"].to_string().contains("is not set"));
    let judge = found("judge", "chosen");
    assert_eq!(
        (judge["ready"].as_bool(), judge["about"][0].as_str()),
        (Some(false), Some("anthropic:claude-haiku-4-5"))
    );
}

#[test]
fn unused_agents_are_checked_and_an_implicit_default_is_reported() {
    let project = empty();
    project
        .write("tests/a.yaml", "name: a\nturns: [{ says: hello }]\nassertions: [{ contains: hello }]\n")
        .write(
            "trialrun.yaml",
            "tests: tests\nagents:\n  shop: { type: http, url: \"http://127.0.0.1:9/\", hedaers: {} }\n  two: { type: fake }\n  three: { type: codex, model: m }\n",
        );
    let messages = project.run(&["check", "--agent", "fake"]).exits(2).err;
    for part in [
        "error: unknown key `hedaers`",
        "no selected case uses the agent `shop`",
        "did you mean `headers`?",
        "`fake` cannot be configured under a name of its own",
        "write `model` under `defaults` or in the test",
    ] {
        assert!(messages.contains(part), "{part}: {messages}");
    }
    assert!(!messages.contains("no agent is set"), "{messages}");
    project.write(
        "trialrun.yaml",
        "tests: tests\nagents:\n  shop:\n    type: http\n    url: ${env.NO_SHOP}\n    hedaers: { a: \"${env.NO_KEY}\" }\n",
    );
    let messages = project.run(&["check", "--agent", "fake"]).exits(2).err;
    assert!(messages.contains("error: unknown key `hedaers`") && !messages.contains("url"), "{messages}");
    project.write("trialrun.yaml", "tests: tests\nagents:\n  shop: { type: http, url: \"http://127.0.0.1:9/\" }\n  two: { type: http, url: \"http://127.0.0.1:9/\" }\n");
    let messages = project.run(&["check"]).exits(0).err;
    assert!(
        messages.contains("no agent is set, so `claude-code` is used") && messages.contains("`shop`, `two`"),
        "{messages}"
    );
}

#[test]
fn a_vendors_agent_that_is_not_installed_is_named_before_the_run() {
    let project = empty().env("TRIALRUN_CODEX", "/none/codex");
    project
        .write("trialrun.yaml", "tests: tests\n")
        .write("tests/a.yaml", "name: a\nagent: codex\nturns: [{ says: hello }]\nassertions: [{ contains: hello }]\n");
    project.run(&["check", "--strict"]).exits(0);
    let messages = project.run(&["run"]).exits(3).err;
    let missing = "`codex` cannot run here: TRIALRUN_CODEX names `/none/codex`, which is not a program";
    assert!(messages.contains(missing) && messages.contains("tests/a.yaml:2:8"), "{messages}");
}

#[test]
fn a_report_can_be_sent_to_standard_output_by_name() {
    let project = demo();
    let ran = project.run(&["run", "--case", "first", "--report", "json=-"]).exits(0);
    assert_eq!(ran.json()["summary"]["passed"], 1);
    assert!(!project.dir().join("-").exists());
}

/// Returns the examples in the skill for coding agents, as paths and texts.
fn examples(skill: &str) -> Vec<(String, String)> {
    let blocks = skill.split("```yaml\n# ").skip(1).filter_map(|rest| rest.split_once("```"));
    let split =
        |(block, _): (&str, &str)| block.split_once('\n').map(|(path, text)| (path.to_owned(), text.to_owned()));
    blocks.filter_map(split).collect()
}

#[test]
fn the_skill_for_coding_agents_teaches_tests_that_check_and_audit_accept() {
    let project = empty();
    project.write("AGENTS.md", "# Rules\n");
    project.run(&["init", "--agent-skill"]).exits(0);
    let skill = project.read(".claude/skills/trialrun/SKILL.md");
    assert_eq!(project.read(".agents/skills/trialrun/SKILL.md"), skill);
    assert!(project.read("AGENTS.md").starts_with("# Rules\n\n<!-- trialrun: begin -->\n"));
    let examples = examples(&skill);
    assert_eq!(examples.len(), 2);
    for (path, text) in &examples {
        project.write(path, text);
    }
    project.run(&["check", "--agent", "fake"]).exits(0);
    project.run(&["audit", "--min-score", "1"]).exits(0);
    for line in skill.split('`').filter(|code| code.starts_with("trialrun ") && !code.contains("...")) {
        let command = line.split(' ').nth(1).unwrap();
        project.run(&[command, "--help"]).exits(0);
    }
}

#[test]
fn a_changed_skill_for_coding_agents_is_not_overwritten() {
    let project = empty();
    project.run(&["init", "--agent-skill"]).exits(0);
    let again = project.run(&["init", "--agent-skill"]).exits(0);
    assert!(again.out.contains("up to date"), "{}", again.out);
    project.write(".agents/skills/trialrun/SKILL.md", "mine\n");
    project.run(&["init", "--agent-skill"]).exits(2);
    assert_eq!(project.read(".agents/skills/trialrun/SKILL.md"), "mine\n");
    project.run(&["init", "--agent-skill", "--force"]).exits(0);
    assert_ne!(project.read(".agents/skills/trialrun/SKILL.md"), "mine\n");
}
