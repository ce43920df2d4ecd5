//! Configurations: the project's agents, the environment, layers, and secrets.

use serde_json::{Value, json};
use testkit::Project;

use super::empty;

const SCENARIO: &str = "scenario: s\nsystem_prompt: Say hello.\nuser_prompt: go\nassertions: [{id: hello, type: output_contains, pattern: hello}]\n";

/// Returns an agent that answers `hello` from its second conversation on, counted across trials.
fn late(project: &Project) -> String {
    let count = project.dir().join("count");
    format!(
        "read -r line; n=$(cat '{0}' 2>/dev/null || echo 0); echo $((n+1)) > '{0}'\n[ \"$n\" -ge 1 ] && echo '{{\"text\":\"hello\"}}' || echo '{{\"text\":\"sorry\"}}'\n",
        count.display()
    )
}

fn row(rows: &Value, name: &str) -> (Value, String) {
    let row = rows.as_array().unwrap().iter().find(|row| row["name"] == name).unwrap_or_else(|| panic!("{name}"));
    (row["value"].clone(), row["layer"].as_str().unwrap().to_owned())
}

#[test]
fn a_failed_test_that_passes_in_a_rerun_is_flaky() {
    let project = empty();
    project.write("agent.sh", &late(&project)).write("tests/s.yaml", SCENARIO).write(
        "trialrun.config.ts",
        "import { defineConfig } from 'trialrun/config';\n\
         export default defineConfig({ agent: { type: 'subprocess', command: 'sh', args: ['agent.sh'] }, eval: { retries: 1 } });\n",
    );
    let report = project.report(&[], 0);
    let trial = &report["trials"][0];
    assert_eq!((&trial["outcome"], &trial["flaky"]), (&json!("passed"), &json!(true)), "{trial:#}");
    let attempts: Vec<_> =
        trial["attempts"].as_array().unwrap().iter().map(|one| (&one["outcome"], &one["answer"])).collect();
    assert_eq!(attempts, [(&json!("failed"), &json!("sorry")), (&json!("passed"), &json!("hello"))]);
    assert_eq!(report["summary"]["flaky"], 1);
    std::fs::remove_file(project.dir().join("count")).unwrap();
    let ran = project.run(&["run"]).exits(0);
    assert!(ran.out.contains("flaky"), "{}", ran.output());
    // `--retries` is for broken attempts, `--reruns` for failed trials.
    std::fs::remove_file(project.dir().join("count")).unwrap();
    project.run(&["run", "--retries", "0"]).exits(0);
    std::fs::remove_file(project.dir().join("count")).unwrap();
    project.run(&["run", "--reruns", "0"]).exits(1);
}

#[test]
fn an_unknown_report_format_does_not_stop_the_run() {
    let project = empty();
    project.write("tests/t.yaml", "scenario: t\nsystem_prompt: x\nuser_prompt: hello\nagent: fake\nassertions: [{id: hello, type: output_contains, pattern: hello}]\n");
    project
        .write("fabrik.config.cjs", "module.exports = { report: { formats: ['json', 'pdf'], outputDir: './out' } };\n");
    let ran = project.run(&["run"]).exits(0);
    assert!(ran.err.contains("unknown report `pdf`; it is not written"), "{}", ran.output());
    assert!(ran.err.contains("fabrik.config.cjs:1:48"), "{}", ran.output());
    assert!(project.read("out/report.json").contains("trialrun.report/1"));
    // An unknown report on the command line is an error.
    project.run(&["run", "--report", "pdf"]).exits(2);
}

#[test]
fn a_missing_variable_stops_a_run_only_if_it_is_used() {
    let project = empty();
    project.write("tests/s.yaml", SCENARIO).write("tests/t.yaml", "scenario: t\nsystem_prompt: x\nuser_prompt: hello\nagent: fake\nassertions: [{id: hello, type: output_contains, pattern: hello}]\n").write(
        "fabrik.config.js",
        "export default {\n  agent: { type: 'http', url: 'http://127.0.0.1:9/chat', headers: { 'X-Key': '${env.BOT_KEY}' } },\n  llm: { provider: 'openai', model: 'm', apiKey: '${env.OPENAI}' },\n};\n",
    );
    project.run(&["run", "tests/t.yaml"]).exits(0);
    let ran = project.run(&["check"]).exits(2);
    assert!(
        ran.err.contains("`agent.headers.X-Key` needs the `BOT_KEY` variable, which is not set"),
        "{}",
        ran.output()
    );
    assert!(ran.err.contains("fabrik.config.js:2:") && !ran.err.contains("OPENAI"), "{}", ran.output());
    project.env("BOT_KEY", "canary-of-the-bot").run(&["check"]).exits(0);
}

#[test]
fn a_judge_without_a_key_leaves_only_judged_assertions_undecided() {
    let project = empty();
    project.write(
        "trialrun.config.ts",
        "export default { defaults: { agent: 'fake' }, llm: { provider: 'openai', model: 'm', apiKey: '${env.OPENAI}' } };\n",
    );
    let turns = "turns: [hello]\n";
    project
        .write("tests/plain.yaml", &format!("{turns}assertions: [{{contains: hello}}]\n"))
        .write("tests/judged.yaml", &format!("{turns}assertions: [{{contains: hello}}, {{sentiment: kind}}]\n"))
        .write(
            "tests/judged.test.ts",
            "import { scenario, assert } from 'trialrun';\nexport default scenario('judged in code', async ({ agent }) => {\n  const r = await agent.send('hello');\n  assert.contains(r, 'hello');\n  assert.sentiment(r, 'kind');\n});\n",
        );
    let warning = "2 assertions stay undecided: `llm.apiKey` needs the `OPENAI` variable, which is not set";
    let ran = project.run(&["run", "--report", "json=report.json"]).exits(3);
    assert_eq!(ran.err.matches(warning).count(), 1, "{}", ran.output());
    let report: Value =
        serde_json::from_str(&std::fs::read_to_string(project.dir().join("report.json")).unwrap()).unwrap();
    let mut outcomes: Vec<(&str, &str)> = Vec::new();
    for trial in report["trials"].as_array().unwrap() {
        outcomes.push((trial["case"].as_str().unwrap(), trial["outcome"].as_str().unwrap()));
        let undecided = trial["findings"].as_array().unwrap().iter().find(|found| found["status"] == "undecided");
        let reason = undecided.map(|found| found["because"].as_str().unwrap());
        assert!(reason.is_none_or(|reason| reason.contains("needs the `OPENAI` variable")), "{reason:?}");
    }
    outcomes.sort_unstable();
    assert_eq!(outcomes, [("judged", "undecided"), ("judged in code", "undecided"), ("plain", "passed")]);
    project.run(&["run", "tests/plain.yaml"]).exits(0);
    project.run(&["check"]).exits(0);
}

#[test]
fn config_shows_the_origin_of_each_value_but_no_secrets() {
    let project =
        empty().env("BOT_TOKEN", "canary-in-a-variable").env("TRIALRUN_JOBS", "7").env("TRIALRUN_TIMEOUT", "3s");
    project.write(
        "trialrun.config.ts",
        "export default {\n  agents: { bot: {\n    type: 'http',\n    url: 'http://me:canary-password@127.0.0.1:9/chat',\n    headers: { Authorization: 'Bearer ${env.BOT_TOKEN}' },\n    bodyTemplate: (m: string) => m,\n  } },\n  defaults: { jobs: 2, timeout: '90s' },\n  llm: { provider: 'openai', model: 'm', apiKey: 'canary-written-down' },\n};\n",
    );
    let ran = project.run(&["config", "--json", "--timeout", "2s"]).exits(0);
    assert!(!ran.output().contains("canary"), "{}", ran.output());
    let rows = ran.json();
    let of = |value: Value, layer: &str| (value, layer.to_owned());
    assert_eq!(row(&rows, "jobs"), of(json!(7), "TRIALRUN_JOBS"));
    assert_eq!(row(&rows, "timeout_ms"), of(json!(2000), "command line"));
    assert_eq!(row(&rows, "agent"), of(json!("bot"), "trialrun.config.ts:2"));
    assert_eq!(row(&rows, "judge"), of(json!("openai:m"), "trialrun.config.ts:9"));
    assert_eq!(row(&rows, "agents.bot.url"), of(json!("http://***@127.0.0.1:9/chat"), "trialrun.config.ts:4"));
    assert_eq!(row(&rows, "agents.bot.headers.Authorization"), of(json!("***"), "trialrun.config.ts:5"));
    assert_eq!(row(&rows, "agents.bot.bodyTemplate"), of(json!("(code)"), "trialrun.config.ts:6"));
    assert_eq!(row(&rows, "llm.apiKey"), of(json!("***"), "trialrun.config.ts:9"));
    let text = project.run(&["config"]).exits(0);
    assert!(!text.output().contains("canary") && text.out.contains("trialrun.config.ts:4"), "{}", text.output());
}

#[test]
fn an_environment_variable_ranks_between_the_suite_and_the_command_line() {
    let project = empty().env("TRIALRUN_TRIALS", "3");
    let scenario = "scenario: s\nsystem_prompt: x\nuser_prompt: hello\nagent: fake\ntrials: 2\nassertions: [{id: hello, type: output_contains, pattern: hello}]\n";
    project.write("tests/s.yaml", scenario);
    let trials = |arguments: &[&str]| project.report(arguments, 0)["trials"].as_array().unwrap().len();
    assert_eq!((trials(&[]), trials(&["--trials", "1"])), (3, 1));
    let project = project.env("TRIALRUN_JOBS", "many");
    let ran = project.run(&["run"]).exits(2);
    assert!(ran.err.contains("invalid value `many` for the `TRIALRUN_JOBS` variable"), "{}", ran.output());
}

#[test]
fn an_unavailable_sandbox_breaks_the_trial_or_falls_back() {
    let project = empty();
    let scenario = "scenario: s\nsystem_prompt: x\nuser_prompt: hello\nagent: fake\nfixtures: {git_init: true}\nassertions: [{id: hello, type: output_contains, pattern: hello}]\n";
    project.write("tests/s.yaml", scenario).write("trialrun.yaml", "sandbox: {provider: daytona}\n");
    let checked = project.run(&["run"]).exits(2);
    assert!(checked.err.contains("`fake` cannot work in `daytona` sandboxes"), "{}", checked.output());
    project.write("trialrun.yaml", "sandbox:\n  provider: daytona\n  fallback: local\n");
    let ran = project.run(&["run"]).exits(0);
    assert!(
        ran.err.contains("trials run in `local` sandboxes instead of `daytona`")
            && ran.err.contains("trialrun.yaml:2:13"),
        "{}",
        ran.output()
    );
    project.write("trialrun.yaml", "sandbox: dayton\n");
    let refused = project.run(&["run"]).exits(2).err;
    assert!(refused.contains("unknown sandbox `dayton`") && refused.contains("did you mean `daytona`?"), "{refused}");
}

#[test]
fn the_record_and_the_reports_are_written_to_the_configured_places() {
    let project = empty();
    let scenario = "scenario: s\nsystem_prompt: x\nuser_prompt: hello\nagent: fake\nassertions: [{id: hello, type: output_contains, pattern: hello}]\n";
    project.write("tests/s.yaml", scenario).write("keep/mine.txt", "x").write(
        "fabrik.config.json",
        r#"{"report": {"formats": ["terminal", "json"], "outputDir": "./out"}, "store": {"path": "./keep/traces.db"}}"#,
    );
    let ran = project.run(&["run"]).exits(0);
    assert!(ran.out.contains("PASS"), "{}", ran.output());
    let report: Value = serde_json::from_str(&project.read("out/report.json")).unwrap();
    assert_eq!(report["summary"]["passed"], 1);
    assert!(project.dir().join("keep/traces.db").is_file());
    assert!(!project.dir().join("keep/.gitignore").exists(), "the folder is somebody else's");
    project.run(&["show", "s::s@fake#1"]).exits(0);
    project.write("fabrik.config.json", r#"{"report": {"formats": ["terminl"]}}"#);
    let ran = project.run(&["run"]).exits(2);
    assert!(
        ran.err.contains("unknown report `terminl`") && ran.err.contains("fabrik.config.json:1:25"),
        "{}",
        ran.output()
    );
}

#[test]
fn every_variable_has_an_effect_and_is_named_as_the_origin() {
    let project = empty();
    project.write("trialrun.yaml", "eval: { retries: 2 }\n");
    let variables: [(&str, &str, &str, Value); 31] = [
        ("TRIALRUN_AGENT", "fake", "agent", json!(["fake"])),
        ("TRIALRUN_MODEL", "m", "model", json!(["m"])),
        ("TRIALRUN_REASONING_EFFORT", "high", "reasoning_effort", json!("high")),
        ("TRIALRUN_BASE_URL", "http://127.0.0.1:9", "base_url", json!("http://127.0.0.1:9")),
        ("TRIALRUN_GATEWAY", "observe", "gateway", json!("observe")),
        ("TRIALRUN_CASSETTE", "replay", "cassette", json!("replay")),
        ("TRIALRUN_TRIALS", "3", "trials", json!(3)),
        ("TRIALRUN_MAX_TURNS", "4", "max_turns", json!(4)),
        ("TRIALRUN_MAX_TOTAL_TOKENS", "500", "token_budget", json!(500.0)),
        ("TRIALRUN_TIMEOUT", "90", "timeout_ms", json!(90_000)),
        ("TRIALRUN_JOBS", "7", "jobs", json!(7)),
        ("TRIALRUN_RETRIES", "5", "retries", json!(5)),
        ("TRIALRUN_RERUNS", "6", "reruns", json!(6)),
        ("TRIALRUN_IDLE_WARN", "9s", "idle_warn_ms", json!(9000)),
        ("TRIALRUN_STOP_GRACE", "8s", "stop_grace_ms", json!(8000)),
        ("TRIALRUN_SETUP_TIMEOUT", "6s", "setup_timeout_ms", json!(6000)),
        ("TRIALRUN_HOOK_TIMEOUT", "5", "hook_timeout_ms", json!(5000)),
        ("TRIALRUN_SANDBOX", "local", "sandbox", json!("local")),
        ("TRIALRUN_NETWORK", "open", "network", json!("open")),
        ("TRIALRUN_REMOTE", "real", "remote", json!("real")),
        ("TRIALRUN_GITHUB", "true", "github", json!(true)),
        ("TRIALRUN_JUDGE", "ollama:j", "judge", json!("ollama:j")),
        ("TRIALRUN_JUDGE_BASE_URL", "http://127.0.0.1:8", "judge_base_url", json!("http://127.0.0.1:8")),
        ("TRIALRUN_JUDGES", "3", "judges", json!(3)),
        ("TRIALRUN_JUDGE_SAMPLE", "20%", "judge_sample", json!("20%")),
        ("TRIALRUN_JUDGE_BATCH", "true", "judge_batch", json!(true)),
        ("TRIALRUN_JUDGE_CACHE", "refresh", "judge_cache", json!("refresh")),
        ("TRIALRUN_JUDGE_CALIBRATION", "c.json", "judge_calibration", json!("c.json")),
        ("TRIALRUN_JUDGE_MIN_KAPPA", "0.3", "judge_min_kappa", json!(0.3)),
        ("TRIALRUN_STATE", "elsewhere", "state", json!("elsewhere")),
        ("TRIALRUN_PRECISION", "0.05", "precision", json!(0.05)),
    ];
    let project = variables.iter().fold(project, |project, (name, text, ..)| project.env(name, text));
    let rows = project.run(&["config", "--json"]).exits(0).json();
    for (variable, _, name, value) in &variables {
        assert_eq!(row(&rows, name), (value.clone(), (*variable).to_owned()), "{variable}");
    }
    // The list above contains every variable that is a setting.
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/configuration.md"));
    let page = page.unwrap();
    let table = page.split_once("<!-- generated: variables").unwrap().1.split("<!-- end").next().unwrap();
    let named = table.lines().filter_map(|line| line.strip_prefix("| `TRIALRUN_")?.split('`').next());
    for name in named {
        let name = format!("TRIALRUN_{name}");
        assert!(variables.iter().any(|(variable, ..)| *variable == name), "{name}");
    }
    assert!(
        project
            .env("TRIALRUN_JUDGES", "many")
            .run(&["config"])
            .exits(2)
            .err
            .contains("`many` for the `TRIALRUN_JUDGES` variable")
    );
}

#[test]
fn config_shows_the_default_model_only_for_its_own_agent() {
    let project = empty();
    project.write("trialrun.yaml", "defaults: {agent: claude-code, model: haiku}\n");
    let model = |arguments: &[&str]| {
        let rows = project.run(&[&["config", "--json"], arguments].concat()).exits(0).json();
        let row = rows.as_array().unwrap().iter().find(|row| row["name"] == "model").unwrap();
        (row["value"].clone(), row["layer"].clone())
    };
    let own = (json!("haiku"), json!("trialrun.yaml:1"));
    assert_eq!(model(&[]), own);
    assert_eq!(model(&["--agent", "claude"]), own, "another name of the same agent");
    assert_eq!(model(&["--agent", "codex"]), (Value::Null, json!("built in")));
    // Without an agent next to it, a model applies to all agents that can use it.
    project.write("trialrun.yaml", "defaults: {model: claude-opus-4-5}\n");
    let own = (json!("claude-opus-4-5"), json!("trialrun.yaml:1"));
    assert_eq!((model(&[]), model(&["--agent", "codex", "--agent", "claude-code"])), (own.clone(), own));
    assert_eq!(model(&["--agent", "codex"]), (Value::Null, json!("built in")));
}

#[test]
fn reports_of_the_project_have_the_extension_of_their_format() {
    let project = empty();
    project
        .write("tests/s.yaml", "scenario: s\nsystem_prompt: x\nuser_prompt: hello\nagent: fake\nassertions: [{id: hello, type: output_contains, pattern: hello}]\n")
        .write("trialrun.yaml", "report: {formats: [markdown, json], outputDir: new/out}\n");
    project.run(&["run"]).exits(0);
    assert!(project.read("new/out/report.md").starts_with("## PASS"));
    assert!(project.read("new/out/report.json").contains("trialrun.report/1"));
}

#[test]
fn artefacts_can_be_requested_like_any_other_report() {
    let project = empty();
    project.write("tests/s.yaml", "scenario: s\nsystem_prompt: x\nuser_prompt: hello\nagent: fake\nassertions: [{id: hello, type: output_contains, pattern: hello}]\n");
    let ran = project.run(&["run", "--report", "terminal", "--report", "artifacts=out"]).exits(0);
    assert!(ran.out.contains("PASS"), "{}", ran.output());
    assert!(project.read("out/suite.json").contains("run_id"));
    let bare = project.run(&["run", "--report", "artifacts"]).exits(2);
    assert!(bare.err.contains("write `--report artifacts=DIR`"), "{}", bare.output());
    let both = project.run(&["run", "--report", "artifacts=a", "--artifacts", "b"]).exits(2);
    assert!(both.err.contains("several directories for the artefacts"), "{}", both.output());
    let late = project.run(&["report", "--format", "artifacts"]).exits(2);
    assert!(late.err.contains("is written during a run"), "{}", late.output());
}

#[test]
fn config_shows_the_timeout_that_a_run_uses_for_each_format() {
    let project = empty().env("TRIALRUN_AGENT", "fake");
    project
        .write("tests/s.yaml", "scenario: s\nsystem_prompt: x\nuser_prompt: hello\nassertions: [{id: hello, type: output_contains, pattern: hello}]\n")
        .write(
            "tests/c.test.ts",
            "import { scenario, assert } from 'trialrun';\nexport default scenario('c', async ({ agent }) => {\n  assert.contains(await agent.send('hello'), 'hello');\n});\n",
        );
    for (arguments, layer, scenario, code) in
        [(&[][..], "built in", 600_000, 30_000), (&["--timeout", "20s"][..], "command line", 20_000, 20_000)]
    {
        let rows = project.run(&[&["config", "--json"], arguments].concat()).exits(0).json();
        assert_eq!(row(&rows, "timeout_ms"), (json!(scenario), layer.to_owned()));
        assert_eq!(row(&rows, "timeout_ms_of_code"), (json!(code), layer.to_owned()));
        let report = project.report(arguments, 0);
        for trial in report["trials"].as_array().unwrap() {
            let used = if trial["case"] == "c" { code } else { scenario };
            assert_eq!(trial["limits"]["timeout_ms"], json!(used), "{trial:#}");
        }
        assert_eq!(report["run"]["settings"]["timeout_ms_of_code"], json!(code));
    }
}

#[test]
fn the_origin_of_a_limit_is_reported_when_it_stops_a_trial() {
    let project = empty().env("TRIALRUN_TIMEOUT", "1s").env("TRIALRUN_MAX_TOTAL_TOKENS", "5");
    let scenario = "scenario: s\nsystem_prompt: x\nuser_prompt: '!sleep 60s'\nagent: fake\n";
    let assertions = "assertions: [{id: hello, type: output_contains, pattern: hello}]\n";
    project.write("tests/s.yaml", &format!("{scenario}{assertions}"));
    let trial = project.report(&[], 1)["trials"][0].clone();
    assert_eq!(trial["limits"]["timeout_from"], "TRIALRUN_TIMEOUT", "{trial:#}");
    assert_eq!(trial["limits"]["token_budget_from"], "TRIALRUN_MAX_TOTAL_TOKENS");
    assert!(trial["because"].as_str().unwrap().contains("(TRIALRUN_TIMEOUT)"), "{trial:#}");
    let trial = project.report(&["--timeout", "1s"], 1)["trials"][0].clone();
    assert_eq!(trial["limits"]["timeout_from"], "--timeout");
}

#[test]
fn a_judge_set_by_a_variable_is_used() {
    let project = empty().env("TRIALRUN_JUDGE", "scripted:judge.yaml");
    let answer =
        json!({"answers": [{"id": "c1", "quote": "hello", "reasoning": "Yes.", "verdict": "met", "score": 4}]});
    project.write("judge.yaml", &json!({"steps": [{"text": answer.to_string()}]}).to_string());
    let scenario = "scenario: s\nsystem_prompt: x\nuser_prompt: hello\nagent: fake\nassertions: [{id: warm, type: sentiment, expected: friendly}]\n";
    project.write("tests/s.yaml", scenario).write("trialrun.yaml", "judge: { model: 'ollama:other', judges: 3 }\n");
    let report = project.report(&["--judges", "1"], 0);
    assert_eq!(report["run"]["settings"]["judge"], "scripted:judge.yaml");
    assert_eq!(report["trials"][0]["findings"][0]["status"], "met");
}

#[test]
fn former_names_in_skill_suites_are_accepted_and_reported() {
    let project = Project::new(env!("CARGO_BIN_EXE_trialrun"))
        .env("ASE_AGENT_TIMEOUT", "90")
        .env("ASE_AGENT_RETRIES", "4")
        .env("ASE_KEEP_WORKSPACE", "yes")
        .env("OPENAI_API_KEY", "sk-test-of-nobody")
        .env("OPENAI_BASE_URL", "http://127.0.0.1:7/v1");
    let rows = project.run(&["config", "--json"]).exits(0).json();
    for (name, value, layer) in [
        ("timeout_ms", json!(90_000), "ASE_AGENT_TIMEOUT"),
        ("retries", json!(4), "ASE_AGENT_RETRIES"),
        ("keep_sandbox", json!(true), "ASE_KEEP_WORKSPACE"),
        ("judge_base_url", json!("http://127.0.0.1:7/v1"), "OPENAI_BASE_URL"),
    ] {
        assert_eq!(row(&rows, name), (value, layer.to_owned()), "{name}");
    }
    let typed = [
        "config",
        "--json",
        "--timeout",
        "5s",
        "--retries",
        "1",
        "--judge-base-url",
        "http://127.0.0.1:6",
        "--retry-on",
        "exit",
    ];
    let rows = project.run(&typed).exits(0).json();
    for (name, value) in [
        ("timeout_ms", json!(5000)),
        ("retries", json!(1)),
        ("judge_base_url", json!("http://127.0.0.1:6")),
        ("retry_on", json!("exit")),
    ] {
        assert_eq!(row(&rows, name), (value, "command line".to_owned()), "{name}");
    }
    let refused = project.run(&["config", "--retry-on", "often"]).exits(2);
    assert!(refused.err.contains("`exit`, `timeout`, `exit,timeout` or `none`"), "{}", refused.output());
    let other = project.env("TRIALRUN_TIMEOUT", "30").run(&["config", "--json"]).exits(0).json();
    assert_eq!(row(&other, "timeout_ms"), (json!(30_000), "TRIALRUN_TIMEOUT".to_owned()));
}
