//! A skill evaluation with real agent CLIs and scripted models: the real programs carry out the skill's instructions,
//! with the skill installed and without it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use serde_json::{Value, json};
use testkit::real::{CLAUDE_CODE, CODEX, OPENCODE, RealAgent, requests_were_expected};
use testkit::{Loopback, Project, git};

const TRIALRUN: &str = env!("CARGO_BIN_EXE_trialrun");

/// Prices of the models, in US dollars per token.
const PROMPT: f64 = 3e-6;
const CACHE_READ: f64 = 3e-7;
const COMPLETION: f64 = 1.5e-5;

/// A project with the suite, prices, a remote to push to, and an agent on its `PATH`.
struct Bench {
    project: Project,
    /// Real location of the remote. It is not in `/tmp`, where Codex lets every process write.
    _elsewhere: tempfile::TempDir,
}

impl std::ops::Deref for Bench {
    type Target = Project;

    fn deref(&self) -> &Project {
        &self.project
    }
}

/// Returns the project for an evaluation with `agent`.
fn project(agent: RealAgent) -> Bench {
    let project = agent.project(TRIALRUN, env!("CARGO_TARGET_TMPDIR"));
    let suite = "skills/release-notes/evals";
    let price = json!({"prompt": PROMPT, "completion": COMPLETION.to_string(), "input_cache_read": CACHE_READ});
    project
        .write("trialrun.yaml", "skills_dir: ./skills\n")
        .write("skills/release-notes/SKILL.md", include_str!("skill_eval/SKILL.md"))
        .write("skills/release-notes/references/form.md", include_str!("skill_eval/form.md"))
        .write(&format!("{suite}/evals.json"), include_str!("skill_eval/evals.json"))
        .write(&format!("{suite}/files/changes.txt"), include_str!("skill_eval/changes.txt"))
        .write(&format!("{suite}/files/check.sh"), include_str!("skill_eval/check.sh"))
        .write("prices.json", &json!({"scripted:model.json": price}).to_string());
    let elsewhere = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    std::os::unix::fs::symlink(elsewhere.path(), project.dir().join("remote.git")).unwrap();
    git(&project.dir(), &["init", "-q", "--bare", "-b", "main", "remote.git"]);
    git(&project.dir(), &["init", "-q", "-b", "main", "seed"]);
    project.write("seed/README.md", "# Demo\n");
    git(&project.dir(), &["-C", "seed", "add", "."]);
    git(&project.dir(), &["-C", "seed", "commit", "-qm", "first"]);
    git(&project.dir(), &["-C", "seed", "push", "-q", "../remote.git", "main"]);
    Bench { project, _elsewhere: elsewhere }
}

/// Returns the tool call with which `agent` runs a command.
fn shell(agent: RealAgent, command: &str) -> Value {
    match agent.program {
        // By default, its wait for a command may be shorter than the time a busy machine needs to start one.
        "codex" => json!({"name": "exec_command", "input": {"cmd": command, "yield_time_ms": 30_000}}),
        "claude" => json!({"name": "Bash", "input": {"command": command}}),
        _ => json!({"name": "bash", "input": {"command": command, "description": "works"}}),
    }
}

/// Returns the tool call with which `agent` loads the skill.
fn load(agent: RealAgent) -> Value {
    match agent.program {
        "codex" => shell(agent, "cat .agents/skills/release-notes/SKILL.md"),
        "claude" => json!({"name": "Skill", "input": {"skill": "release-notes"}}),
        _ => json!({"name": "skill", "input": {"name": "release-notes"}}),
    }
}

/// Returns the text with which `agent` lists the skill for its model.
fn listed(agent: RealAgent) -> &'static str {
    match agent.program {
        "opencode" => "<name>release-notes</name>",
        _ => "- release-notes: Writes release notes",
    }
}

/// Returns the folder in which `agent` finds skills.
fn skills(agent: RealAgent) -> &'static str {
    match agent.program {
        "codex" => ".agents",
        "claude" => ".claude",
        _ => ".opencode",
    }
}

/// Branch, file, commit and push. Every trial pushes the same branch, each to its own remote.
const RELEASE: &str = "b=notes/1.2.0 && git checkout -q -b \"$b\" && echo '# 1.2.0' > NOTES.md \
                       && git add -A && git commit -qm 'docs: notes of 1.2.0' && git push -q origin \"$b\" && echo pushed";

/// Returns the model's script for each case, with and without the skill.
fn model(agent: RealAgent) -> Value {
    let look = format!("git status --short; cat {}/skills/release-notes/references/form.md", skills(agent));
    let absent = [listed(agent), "MANTRA"];
    let usage =
        |input: u64, cache_read: u64, output: u64| json!({"input": input, "cache_read": cache_read, "output": output});
    let count = [
        json!({"tools": [shell(agent, "pwd; wc -l < changes.txt")], "usage": usage(50, 0, 5)}),
        json!({"text": "Two.", "usage": usage(60, 0, 3), "expect_request": {"tool_result_contains": "2"}}),
    ];
    let summary = [
        json!({"tools": [shell(agent, "sh check.sh")], "usage": usage(70, 10, 7)}),
        json!({"text": "Two changes; the check fails with 3.", "usage": usage(80, 20, 8),
            "expect_request": {"tool_result_contains": "no heading", "contains": "Check the changes"}}),
    ];
    json!({"conversations": [
        {"name": "with", "match": {"user_contains": "Write the release notes", "system_contains": listed(agent)}, "steps": [
            {"tools": [load(agent)], "usage": usage(1000, 200, 30), "expect_request": {"not_contains": "MANTRA"}},
            {"tools": [shell(agent, &look)], "usage": usage(300, 1200, 20), "expect_request": {"contains": "MANTRA"}},
            {"tools": [shell(agent, RELEASE)], "usage": usage(400, 1500, 40), "expect_request": {"tool_result_contains": "FORM"}},
            {"text": "The notes are pushed.", "usage": usage(500, 1900, 10), "expect_request": {"tool_result_contains": "pushed"}},
        ]},
        {"name": "without", "match": {"user_contains": "Write the release notes"}, "steps": [
            {"tools": [shell(agent, "git status --short; find . -name SKILL.md; echo '# 1.2.0' > NOTES.md")], "usage": usage(900, 0, 12),
                "expect_request": {"not_contains": absent}},
            {"text": "Here they are.", "usage": usage(910, 0, 4), "expect_request": {"not_contains": absent}},
        ]},
        {"match": {"user_contains": "Check the changes"}, "steps": summary},
        {"match": {"user_contains": "--- How many changes"}, "steps": count},
    ]})
}

/// Returns the usage of a trial of `case`: input, cache reads, output.
fn used(case: &str, variant: &str) -> [u64; 3] {
    match (case, variant) {
        ("release", "with_skill") => [2200, 4800, 100],
        ("release", _) => [1810, 0, 16],
        ("summary", _) => [150, 30, 15],
        _ => [110, 0, 8],
    }
}

#[track_caller]
fn run(project: &Project, agent: RealAgent, arguments: &[&str], code: i32) -> Value {
    let all = ["--skill", "skills/release-notes", "--agent", agent.name, "--model", "scripted:model.json"];
    let more = ["--source-repo", "remote.git", "--pricing", "prices.json", "--report", "jsonl=events.jsonl"];
    project.write("model.json", &model(agent).to_string());
    project.report(&[&all[..], &more, arguments].concat(), code)
}

/// Fails the test unless `trial` has exactly this usage, and its cost.
#[track_caller]
fn used_and_cost(trial: &Value, agent: RealAgent, [input, cache_read, output]: [u64; 3]) {
    let usage = &trial["usage"];
    let counts = [&usage["input"], &usage["cache_read"], &usage["cache_write"], &usage["output"], &usage["total"]];
    assert_eq!(
        counts,
        [&json!(input), &json!(cache_read), &json!(0), &json!(output), &json!(input + cache_read + output)]
    );
    let cost = input as f64 * PROMPT + cache_read as f64 * CACHE_READ + output as f64 * COMPLETION;
    assert!((trial["cost_usd"].as_f64().unwrap() - cost).abs() < 1e-12, "{} is not {cost}", trial["cost_usd"]);
    assert_eq!(trial["cost_source"], "pricing-config");
    // Only Claude Code itself reports a price for an unknown model.
    assert_eq!(trial["cost_usd_cli"].as_f64().is_some_and(|cost| cost > 0.0), agent.program == "claude", "{trial:#}");
}

/// Fails the test unless `trial` has the result that its script dictates.
#[track_caller]
fn as_dictated(trial: &Value, agent: RealAgent) {
    requests_were_expected(trial);
    let text = |key: &str| trial[key].as_str().unwrap();
    let (case, variant) = (text("case"), text("variant"));
    let installed = variant == "with_skill";
    let fails = case == "release" && !installed;
    assert_eq!(text("outcome"), if fails { "failed" } else { "passed" }, "{trial:#}");
    used_and_cost(trial, agent, used(case, variant));
    let triggered = if installed { json!(case == "release") } else { Value::Null };
    assert_eq!(trial["triggered"], triggered, "{trial:#}");
    let unmet: Vec<&str> = trial["findings"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|finding| finding["status"] != "met")
        .map(|finding| finding["id"].as_str().unwrap())
        .collect();
    let expected: &[&str] = if fails { &["assertion-1", "assertion-2", "assertion-3"] } else { &[] };
    assert_eq!(unmet, expected, "{trial:#}");
    let calls = trial["tool_calls"].as_array().unwrap();
    let result = |call: usize| calls[call]["result"].as_str().unwrap();
    match (case, installed) {
        // Git does not show the installed skill, and the commit contains no part of it.
        ("release", true) => assert_eq!(result(1).trim_end(), "?? changes.txt\nFORM: a line for each change."),
        ("release", false) => assert_eq!(result(0).trim_end(), "?? changes.txt"),
        ("summary", _) => assert_eq!(calls[0]["is_error"], json!(true), "{trial:#}"),
        _ => {
            let place = result(0).lines().next().unwrap();
            assert!(!["with", "skill", "baseline"].iter().any(|word| place.contains(word)), "{place}");
        }
    }
}

/// Fails the test if the real remote has changed.
#[track_caller]
fn is_untouched(project: &Project) {
    let all = git(&project.dir(), &["-C", "remote.git", "branch", "--format=%(refname:short)"]);
    assert_eq!(all.trim(), "main");
}

fn arm<'a>(report: &'a Value, variant: &str) -> &'a Value {
    report["arms"].as_array().unwrap().iter().find(|arm| arm["variant"] == variant).unwrap()
}

/// Runs three cases in two arms, with this number of trials each.
#[track_caller]
fn evaluation(agent: RealAgent, count: usize) {
    let project = project(agent);
    let report = run(&project, agent, &["--trials", &count.to_string(), "--jobs", "2"], 0);
    let trials = report["trials"].as_array().unwrap();
    assert_eq!(trials.len(), 6 * count);
    trials.iter().for_each(|trial| as_dictated(trial, agent));
    is_untouched(&project);
    let (with, without) = (arm(&report, "with_skill"), arm(&report, "without_skill"));
    assert_eq!((&with["trials"], &with["full_pass_rate"]), (&json!(3 * count), &json!(1.0)));
    assert!((without["full_pass_rate"].as_f64().unwrap() - 2.0 / 3.0).abs() < 1e-9, "{without:#}");
    let trigger = &with["trigger"];
    let rates = [&trigger["precision"], &trigger["recall"], &trigger["never"]];
    let rate = |rate: &Value| rate.as_f64().or_else(|| rate["mean"].as_f64()).unwrap();
    let rates = rates.map(rate);
    assert!(
        rates.iter().zip([1.0, 0.5, 2.0 / 3.0]).all(|(rate, expected)| (rate - expected).abs() < 1e-9),
        "{rates:?}"
    );
    assert_eq!(project.left_over(), Vec::<String>::new());
    project.no_process_is_left();
}

#[test]
#[cfg_attr(not(has = "agents"), ignore = "needs the agent CLIs; run scripts/test")]
fn claude_code_follows_the_script_with_and_without_the_skill() {
    evaluation(CLAUDE_CODE, 2);
}

#[test]
#[cfg_attr(not(has = "agents"), ignore = "needs the agent CLIs; run scripts/test")]
fn codex_follows_the_script_with_and_without_the_skill() {
    evaluation(CODEX, 1);
}

#[test]
#[cfg_attr(not(has = "agents"), ignore = "needs the agent CLIs; run scripts/test")]
fn opencode_follows_the_script_with_and_without_the_skill() {
    let project = project(OPENCODE);
    let report = run(&project, OPENCODE, &["--case", "release", "--jobs", "2"], 0);
    let trials = report["trials"].as_array().unwrap();
    assert_eq!(trials.len(), 2);
    trials.iter().for_each(|trial| as_dictated(trial, OPENCODE));
    is_untouched(&project);
    assert_eq!(project.left_over(), Vec::<String>::new());
}

#[test]
#[cfg_attr(not(has = "agents"), ignore = "needs the agent CLIs; run scripts/test")]
fn claude_code_is_stopped_when_its_cost_budget_is_exceeded() {
    let project = project(CLAUDE_CODE);
    // The second message costs 0.00507 USD at the user's prices; the CLI's own prices differ.
    let arguments = ["--case", "release", "--no-baseline", "--max-cost", "0.004"];
    let trial = run(&project, CLAUDE_CODE, &arguments, 1)["trials"][0].clone();
    assert_eq!(trial["ending"], json!({"kind": "out_of_budget", "budget": "cost", "limit": 0.004}), "{trial:#}");
    used_and_cost(&trial, CLAUDE_CODE, [1300, 1400, 50]);
    assert_eq!((&trial["turn_count"], &trial["tool_calls"][1]["is_error"]), (&json!(2), &json!(false)));
    is_untouched(&project);
}

/// Returns whether `prompt` triggers the skill in each of two cases: as written, and with `force_skill_invocation`.
#[track_caller]
fn triggered(agent: RealAgent, prompt: &str) -> [Value; 2] {
    let project = project(agent);
    let case = |id: &str, prompt: &str, forced: bool| {
        json!({"id": id, "prompt": prompt, "expected_output": "", "force_skill_invocation": forced,
            "assertions": [{"type": "git_clean"}]})
    };
    let evals = [case("asked", prompt, false), case("forced", "Begin.", true)];
    project
        .write("evals.json", &json!({"skill_name": "release-notes", "evals": evals}).to_string())
        .write("model.json", &json!({"steps": [{"text": "Done."}]}).to_string());
    let arguments =
        ["--skill", "skills/release-notes", "--evals", "evals.json", "--no-baseline", "--agent", agent.name];
    let report = project.report(&[&arguments[..], &["--model", "scripted:model.json"]].concat(), 0);
    let of = |case: &str| {
        let trials = report["trials"].as_array().unwrap();
        let trial = trials.iter().find(|trial| trial["case"] == case).unwrap();
        assert_eq!(trial["turn_count"], 1, "actions of the CLI itself are not turns of the model: {trial:#}");
        trial["triggered"].clone()
    };
    [of("asked"), of("forced")]
}

#[test]
#[cfg_attr(not(has = "agents"), ignore = "needs the agent CLIs; run scripts/test")]
fn a_skill_requested_by_the_user_is_triggered_only_if_the_cli_loads_it() {
    let expected = |agent: RealAgent, prompt: &str, expected: [bool; 2]| {
        let is_triggered = triggered(agent, prompt);
        assert_eq!(is_triggered, expected.map(Value::Bool), "{}, {prompt}", agent.name);
    };
    expected(CLAUDE_CODE, "/release-notes of 1.2.0", [true, false]);
    expected(CODEX, "Go on with $release-notes.", [true, true]);
}

/// Returns a suite that partly needs a judge, with an agent that needs no model.
fn judged() -> Project {
    let project = Project::new(TRIALRUN);
    let case = json!({"id": "a", "prompt": "hello", "expected_output": "kind", "assertions": ["The answer is kind"]});
    project.write("skills/release-notes/SKILL.md", include_str!("skill_eval/SKILL.md")).write(
        "skills/release-notes/evals/evals.json",
        &json!({"skill_name": "release-notes", "evals": [case]}).to_string(),
    );
    project
}

const JUDGED: [&str; 6] = ["run", "--skill", "skills/release-notes", "--agent", "fake", "--no-baseline"];

#[test]
fn each_key_is_sent_only_to_its_own_host() {
    let refusal = json!({"error": {"message": "no"}}).to_string();
    for (keys, asked, sent) in [
        (&["OPENROUTER_API_KEY", "OPENAI_API_KEY"][..], 0, "canary-OPENROUTER_API_KEY"),
        (&["OPENAI_API_KEY"], 1, "canary-OPENAI_API_KEY"),
    ] {
        let servers = [Loopback::answering(401, refusal.clone()), Loopback::answering(401, refusal.clone())];
        let mut project = judged()
            .env("OPENROUTER_BASE_URL", &servers[0].url())
            .env("OPENAI_BASE_URL", &format!("{}/v1", servers[1].url()));
        for key in keys {
            project = project.env(key, &format!("canary-{key}"));
        }
        let ran = project.run(&JUDGED).exits(3);
        assert!(!ran.output().contains("canary"), "{}", ran.output());
        let spoken = servers.each_ref().map(Loopback::asked);
        assert!(spoken[1 - asked].is_empty() && !spoken[asked].is_empty(), "{keys:?}: {spoken:?}");
        let all: String = spoken[asked].iter().map(|asked| format!("{}{}", asked.headers, asked.body)).collect();
        assert_eq!(all.matches("canary").count(), all.matches(sent).count(), "{all}");
        assert!(all.contains(&format!("Bearer {sent}")), "{all}");
        if asked == 0 {
            assert!(spoken[0][0].body.contains("deepseek/deepseek-v4-flash"), "{}", spoken[0][0].body);
        }
    }
}

#[test]
fn an_empty_judge_name_disables_judging() {
    let server = Loopback::answering(200, "{}");
    let project = judged().env("OPENAI_API_KEY", "k").env("OPENAI_BASE_URL", &server.url());
    let ran = project.run(&[&JUDGED[..], &["--grader-model", ""]].concat()).exits(3);
    assert!(ran.output().contains("switched off"), "{}", ran.output());
    assert!(server.asked().is_empty());
}

/// Last output of the Claude Code stub: its tokens, and a cost of half a dollar.
const BILL: &str = r#"text hi
printf '{"type":"result","subtype":"success","is_error":false,"session_id":"s-1","result":"hi","usage":{"input_tokens":10,"output_tokens":20,"cache_read_input_tokens":300,"cache_creation_input_tokens":40},"total_cost_usd":0.5}\n'"#;

#[test]
fn costs_billed_by_openrouter_use_its_price_list() {
    let haiku = json!({"prompt": "0.000001", "completion": "0.000005", "input_cache_read": "0.0000001",
        "input_cache_write": "0.00000125"});
    let list = json!({"data": [{"id": "anthropic/claude-haiku-4.5", "pricing": haiku}]}).to_string();
    let openrouter = "https://openrouter.ai/api";
    for (base_url, status, pricing, expected) in [
        (openrouter, 200, false, (0.00019, "openrouter-pricing", Some(0.5))),
        ("https://eu.openrouter.ai/api", 200, false, (0.00019, "openrouter-pricing", Some(0.5))),
        (openrouter, 500, false, (0.5, "cli-unreconciled", None)),
        ("https://openrouter.ai.example.com/api", 200, false, (0.5, "cli", None)),
        ("https://example.com/openrouter.ai", 200, false, (0.5, "cli", None)),
        (openrouter, 200, true, (0.00005, "pricing-config", Some(0.5))),
    ] {
        let server = Loopback::answering(status, list.clone());
        let project = Project::new(TRIALRUN).claude(BILL).env("OPENROUTER_BASE_URL", &server.url());
        project
            .write(
                "case.yaml",
                "scenario: a\nsystem_prompt: Work.\nuser_prompt: Go.\ntrials: 2\nassertions: [{ contains: hi }]\n",
            )
            .write(
                "prices.json",
                r#"{"claude-haiku-4-5-20251001": {"prompt": 1e-6, "completion": "2e-6", "input_cache_read": 0}}"#,
            );
        let mut arguments = vec!["case.yaml", "--model", "claude-haiku-4-5-20251001", "--base-url", base_url];
        arguments.extend(pricing.then_some(["--pricing", "prices.json"]).into_iter().flatten());
        let report = project.report(&arguments, 0);
        for trial in report["trials"].as_array().unwrap() {
            let (cost, source, cli_cost) = expected;
            let reported = trial["cost_usd"].as_f64().unwrap();
            assert!((reported - cost).abs() < 1e-12, "{base_url}, {status}: {reported}");
            assert_eq!(
                (&trial["cost_source"], &trial["cost_usd_cli"]),
                (&json!(source), &json!(cli_cost)),
                "{base_url}"
            );
            let warned = trial["warnings"].to_string().contains("could not fetch OpenRouter prices");
            assert_eq!(warned, status == 500, "{}", trial["warnings"]);
        }
        assert!(server.asked().len() <= 1, "the list is requested once");
    }
}

#[test]
fn an_invalid_price_is_an_error_at_its_line() {
    let project = judged();
    project.write("prices.json", "{\n  \"m\": { \"prompt\": \"abc\", \"completion\": 1e-6 }\n}\n");
    let ran = project.run(&[&JUDGED[..], &["--pricing", "prices.json"]].concat()).exits(2);
    assert!(ran.output().contains("prices.json:2:") && ran.output().contains("US dollars"), "{}", ran.output());
}

#[test]
fn an_unsupported_reasoning_effort_is_reported_once_and_not_recorded() {
    let project = Project::new(TRIALRUN);
    let case =
        |id: &str| json!({"id": id, "prompt": "hello", "expected_output": "", "assertions": [{"type": "git_clean"}]});
    project.write("skills/release-notes/SKILL.md", include_str!("skill_eval/SKILL.md")).write(
        "skills/release-notes/evals/evals.json",
        &json!({"skill_name": "release-notes", "evals": [case("a"), case("b")]}).to_string(),
    );
    let arguments = ["--skill", "skills/release-notes", "--agent", "fake", "--reasoning-effort", "high"];
    let ran = project
        .run(&[&["run"][..], &arguments, &["--report", "json=report.json", "--report", "terminal"]].concat())
        .exits(0);
    assert_eq!(ran.output().matches("no setting for the reasoning effort").count(), 1, "{}", ran.output());
    let report: Value = serde_json::from_str(&project.read("report.json")).unwrap();
    assert_eq!(report["run"]["agents"][0]["reasoning_effort"], Value::Null);
    assert_eq!(report["trials"][0]["settings"]["reasoning_effort"], Value::Null);
}

/// Tests with `cases` that a sub-agent is installed and gets a task in one arm, and is unknown to the CLI in the other.
fn sub_agent(agent: RealAgent, cases: &[&str]) {
    let project = agent.project(TRIALRUN, env!("CARGO_TARGET_TMPDIR"));
    let input = json!({"description": "review", "prompt": "Review the SUBTASK.", "subagent_type": "reviewer"});
    let tool = if agent.program == "claude" { "Agent" } else { "task" };
    let model = json!({"conversations": [
        {"match": {"user_contains": "Review the SUBTASK."}, "steps": [
            {"text": "FOUND-NOTHING", "expect_request": {"contains": "BE-STRICT"}}]},
        {"match": {"user_contains": "Have the change reviewed"}, "steps": [
            {"tools": [{"name": tool, "input": input}]},
            {"text": "Done."}]},
    ]});
    let case = json!({"id": "hands-over", "prompt": "Have the change reviewed.", "expected_output": "",
        "assertions": [{"type": "git_clean"}]});
    let control = json!({"id": "control", "prompt": "Have the change reviewed.", "expected_output": "",
        "should_trigger": false, "assertions": [{"type": "git_clean"}]});
    project
        .write("trialrun.yaml", "skills_dir: ./skills\n")
        .write("model.json", &model.to_string())
        .write(
            "agents/reviewer.md",
            "---\nname: reviewer\ndescription: Reviews changes.\ntools: Read\n---\nBE-STRICT\n",
        )
        .write("evals.json", &json!({"subagent_name": "reviewer", "evals": [case, control]}).to_string());
    let mut arguments =
        vec!["evals.json", "--agent", agent.name, "--model", "scripted:model.json", "--artifacts", "out"];
    arguments.extend(cases.iter().flat_map(|case| ["--case", *case]));
    let report = project.report(&arguments, i32::from(cases.contains(&"control")));
    assert_eq!(report["trials"].as_array().unwrap().len(), 2 * cases.len());
    for variant in ["with_skill", "without_skill"] {
        let folder = std::fs::read_dir(project.dir().join("out/hands-over")).unwrap().flatten();
        let arms: Vec<_> = folder.map(|entry| entry.file_name().into_string().unwrap()).collect();
        let arm = arms.iter().find(|name| name.ends_with(&format!("+{variant}"))).unwrap();
        let timing = project.read(&format!("out/hands-over/{arm}/run-1/timing.json"));
        assert_eq!(serde_json::from_str::<Value>(&timing).unwrap()["exit_code"], 0, "{timing}");
    }
    for trial in report["trials"].as_array().unwrap() {
        let (is_with, is_control) = (trial["variant"] == "with_skill", trial["case"] == "control");
        assert_eq!(trial["triggered"], if is_with { json!(true) } else { Value::Null }, "{trial:#}");
        assert_eq!(trial["tool_calls"][0]["is_error"], json!(!is_with), "{trial:#}");
        assert_eq!(trial["outcome"], if is_with && is_control { "failed" } else { "passed" }, "{trial:#}");
        assert_eq!(trial.to_string().contains("FOUND-NOTHING"), is_with, "{trial:#}");
    }
}

#[test]
#[cfg_attr(not(has = "agents"), ignore = "needs the agent CLIs; run scripts/test")]
fn claude_code_is_measured_with_and_without_a_sub_agent() {
    sub_agent(CLAUDE_CODE, &["hands-over", "control"]);
}

#[test]
#[cfg_attr(not(has = "agents"), ignore = "needs the agent CLIs; run scripts/test")]
fn opencode_is_measured_with_and_without_a_sub_agent() {
    sub_agent(OPENCODE, &["hands-over"]);
}
