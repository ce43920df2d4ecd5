//! Budgets and limits of runs whose figures are not known: they are never reported as kept.

#![allow(clippy::unwrap_used)]

use serde_json::Value;
use testkit::Project;

/// Returns a project with a scenario whose agent answers each message with `answer`.
fn project(answer: &str) -> Project {
    let project = Project::new(env!("CARGO_BIN_EXE_trialrun"));
    project
        .write("agent.sh", &format!("while read -r line; do echo '{answer}'; done\n"))
        .write("model.yaml", "steps: [{ text: hello }]\n")
        .write(
            "a.yaml",
            "scenario: a\nsystem_prompt: x\nuser_prompt: go\nassertions: [{ id: says, type: output_contains, pattern: hello }]\n",
        );
    project
}

/// Returns the outcome and the reason of each trial in a run with `options`.
fn trials(answer: &str, options: &str, exit: i32) -> Vec<(String, String)> {
    let options = format!("a.yaml --agent subprocess:sh\u{a0}agent.sh --jobs 1 {options}");
    let options: Vec<String> = options.split(' ').map(|word| word.replace('\u{a0}', " ")).collect();
    let report = project(answer).report(&options.iter().map(String::as_str).collect::<Vec<_>>(), exit);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let trials = report["trials"].as_array().unwrap().iter();
    trials.map(|trial| (text(&trial["outcome"]), text(&trial["because"]))).collect()
}

const SILENT: &str = r#"{"text": "hello"}"#;
const TELLING: &str = r#"{"text": "hello", "usage": {"input_tokens": 20, "output_tokens": 2, "cost_usd": 0.25}}"#;

#[test]
fn a_budget_whose_figure_is_not_reported_is_undecided() {
    for (option, figure) in [
        ("--max-cost 1", "a budget of 1.0000 USD could not be checked: the cost of the trial is not known"),
        ("--max-output-tokens 9", "9 output tokens"),
        ("--max-reasoning-tokens 9", "9 reasoning tokens"),
        ("--max-total-tokens 9", "the agent did not report its tokens"),
    ] {
        let trials = trials(SILENT, option, 3);
        assert_eq!(trials[0].0, "undecided", "{option}");
        assert!(trials[0].1.contains(figure), "{option}: {trials:?}");
    }
    for option in ["--max-cost 1", "--max-output-tokens 9", "--max-duration 1m"] {
        assert_eq!(trials(TELLING, option, 0)[0].0, "passed", "{option}");
    }
    assert_eq!(trials(TELLING, "--max-reasoning-tokens 9", 3)[0].0, "undecided");
}

#[test]
fn a_limit_of_the_run_stops_it_if_it_is_reached_or_cannot_be_known() {
    for (answer, option, ran, reason) in [
        (
            SILENT,
            "--max-run-cost 1",
            1,
            "the cost of `a::a@subprocess:sh agent.sh#1` is not known, so `--max-run-cost`",
        ),
        (SILENT, "--max-run-tokens 99", 1, "the number of tokens of `a::a@subprocess:sh agent.sh#1` is not known"),
        (TELLING, "--max-run-tokens 30", 2, "the run used 44 tokens, which is over its limit of 30"),
        (TELLING, "--max-run-cost 0.3", 2, "the run cost 0.5000 USD"),
    ] {
        let trials = trials(answer, &format!("--trials 3 {option}"), 3);
        let passed = trials.iter().filter(|(outcome, _)| outcome == "passed").count();
        assert_eq!(passed, ran, "{option}: {trials:?}");
        assert!(trials[2].1.contains(reason), "{option}: {trials:?}");
    }
}

#[test]
fn a_limit_on_costs_is_an_error_if_the_model_has_no_price() {
    let project = project(SILENT);
    for arguments in [
        &["--agent", "codex", "--max-cost", "1"][..],
        &["--agent", "codex", "--model", "gpt-5", "--max-run-cost", "1"],
        &["--agent", "opencode", "--model", "gpt-5", "--base-url", "http://127.0.0.1:9", "--max-cost", "1"],
        &["--agent", "chat", "--model", "openai:gpt-5", "--base-url", "http://127.0.0.1:9", "--max-run-cost", "1"],
    ] {
        let refused = project.run(&[&["run", "a.yaml"], arguments].concat()).exits(2).err;
        let limit = arguments.iter().rev().nth(1).unwrap();
        assert!(refused.contains(&format!("`{limit}` cannot be kept: `{}`", arguments[1])), "{refused}");
        assert!(refused.contains("`--pricing`") && refused.contains("`--max-run-tokens`"), "{refused}");
        project.write("prices.json", r#"{"gpt-5": {"input": 1, "output": 2}}"#);
        let checked = project.run(&[&["plan", "a.yaml", "--pricing", "prices.json"], arguments].concat());
        assert!(!checked.err.contains("cannot be kept"), "{}", checked.output());
    }
    let free = ["run", "a.yaml", "--agent", "chat", "--model", "scripted:model.yaml", "--max-cost", "1"];
    project.run(&[&free[..], &["--max-run-cost", "1"]].concat()).exits(0);
}
