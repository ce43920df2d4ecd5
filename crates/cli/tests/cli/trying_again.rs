//! Attempts that end with an error or a timeout are retried if they left no trace.

#![allow(clippy::unwrap_used)]

use serde_json::{Value, json};
use testkit::Project;

const PROGRAM: &str = env!("CARGO_BIN_EXE_trialrun");

/// Returns a project with this agent; `$COUNT` is a file that distinguishes the attempts.
fn project(agent: &str) -> Project {
    let project = Project::new(PROGRAM);
    project.write("skills/notes/SKILL.md", "---\nname: notes\ndescription: Writes notes.\n---\n\nWrite.\n");
    let suite = json!({"skill_name": "notes", "evals": [{"id": "a", "prompt": "Write.", "expected_output": "Notes.",
        "assertions": [{"type": "file_contains", "contains": "done"}]}]});
    project.write("skills/notes/evals/evals.json", &suite.to_string());
    let count = project.home().join("count");
    let head = format!("read -r line\nCOUNT='{}'\necho x >> \"$COUNT\"\n", count.display());
    project.write("agent.sh", &format!("{head}{agent}"));
    project
}

const DONE: &str = "echo '{\"text\":\"done\",\"usage\":{\"input\":10,\"output\":1,\"cost_usd\":0.5}}'\n";

/// Reports its usage and fails, except on the second attempt.
const ONCE: &str = "if [ $(wc -l < \"$COUNT\") = 1 ]; then\n\
    echo '{\"text\":\"no\",\"error\":\"no luck\",\"usage\":{\"input\":10,\"output\":1,\"cost_usd\":0.5}}'; exit 3; fi\n";

#[track_caller]
fn trial(project: &Project, arguments: &[&str], code: i32) -> Value {
    let run = ["skills/notes", "--agent", "subprocess:sh agent.sh", "--no-baseline"];
    let report = project.report(&[&run[..], arguments].concat(), code);
    assert_eq!(project.left_over(), [""; 0]);
    report["trials"][0].clone()
}

fn attempts(trial: &Value) -> Vec<String> {
    let all = trial["attempts"].as_array().unwrap().iter();
    all.map(|attempt| attempt["outcome"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_pass_after_a_failed_attempt_is_flaky_and_every_attempt_is_recorded() {
    let trial = trial(&project(&format!("{ONCE}{DONE}")), &[], 0);
    assert_eq!((attempts(&trial), &trial["flaky"]), (vec!["failed".to_owned(), "passed".to_owned()], &true.into()));
    let first = &trial["attempts"][0];
    assert_eq!((&first["usage"]["input"], &first["cost_usd"]), (&10.into(), &0.5.into()), "{trial:#}");
    assert!(first["because"].as_str().unwrap().contains("no luck"), "{first}");
}

#[test]
fn a_required_pass_rate_fails_a_run_in_which_every_trial_passed_only_later() {
    let project = project(&format!("{ONCE}{DONE}"));
    let run = ["skills/notes", "--agent", "subprocess:sh agent.sh", "--no-baseline", "--min-pass-rate", "0.9"];
    let report = project.report(&run, 1);
    assert_eq!(
        (&report["summary"]["passed"], &report["summary"]["required_pass_rate_result"]),
        (&1.into(), &"not_met".into())
    );
    let shown = project.run(&["report", "latest"]).exits(0).out;
    let verdict =
        "FAIL  1 of 1 trial passed, 1 passed only after a failed attempt, pass rate 0% at the first attempt is below";
    assert!(shown.split_whitespace().collect::<Vec<_>>().join(" ").contains(&verdict.replace("  ", " ")), "{shown}");
}

#[test]
fn an_agent_that_does_not_report_its_calls_may_have_used_the_skill() {
    let silent = project("echo '{\"message\":\"done\"}'\n");
    let trial = trial(&silent, &[], 0);
    assert_eq!((&trial["triggered"], &trial["calls_unreported"]), (&Value::Null, &true.into()));
    let figures = project("echo '{\"message\":\"done\"}'\n");
    let report = figures.report(&["skills/notes", "--agent", "subprocess:sh agent.sh"], 0);
    let trigger = report["arms"].as_array().unwrap().iter().find_map(|arm| arm["trigger"].as_object()).unwrap();
    assert_eq!((&trigger["unknown"], &trigger["misses"]), (&1.into(), &0.into()));
    assert_eq!((&trigger["recall_min"], &trigger["recall_max"]), (&0.0.into(), &1.0.into()));
    let shown = figures.run(&["report", "latest"]).exits(0).out;
    assert!(!shown.contains("never used"), "{shown}");
}

#[test]
fn nothing_is_retried_unless_requested() {
    let failing = "echo '{\"text\":\"no\",\"error\":\"no luck\"}'; exit 3\n";
    assert_eq!(attempts(&trial(&project(failing), &[], 1)), ["failed", "failed"]);
    for arguments in [["--retry-on", "none"], ["--retry-on", "timeout"], ["--retries", "0"]] {
        assert_eq!(attempts(&trial(&project(failing), &arguments, 1)), ["failed"], "{arguments:?}");
    }
    assert_eq!(attempts(&trial(&project(failing), &["--retries", "2"], 1)), ["failed", "failed", "failed"]);
    let scenario = "scenario: s\nsystem_prompt: x\nuser_prompt: '!error no'\nagent: fake\nassertions: [{id: a, type: turn_count_at_most, max: 9}]\n";
    for (arguments, count) in [(&[][..], 1), (&["--retry-on", "exit"][..], 2)] {
        let project = Project::new(PROGRAM);
        project.write("s.yaml", scenario);
        let report = project.report(&[&["s.yaml"][..], arguments].concat(), 1);
        assert_eq!(attempts(&report["trials"][0]).len(), count, "{arguments:?}");
    }
}

#[test]
fn an_agent_that_times_out_is_retried() {
    let late = format!("[ $(wc -l < \"$COUNT\") = 1 ] && exec sleep 1000\n{DONE}");
    let trial = trial(&project(&late), &["--timeout", "2s"], 0);
    assert_eq!((attempts(&trial), &trial["flaky"]), (vec!["failed".to_owned(), "passed".to_owned()], &true.into()));
    assert!(trial["attempts"][0]["because"].as_str().unwrap().contains("timed out after 2 s"));
}

#[test]
fn an_attempt_that_changed_something_is_final_and_is_reported() {
    for doing in ["echo x > new.txt", "git commit -q --allow-empty -m x", "git branch other", "git tag v1"] {
        let trial = trial(&project(&format!("{doing}\n{ONCE}{DONE}")), &[], 1);
        assert_eq!(attempts(&trial), ["failed"], "{doing}");
        let warnings = trial["warnings"].as_array().or(trial["errors"].as_array()).unwrap();
        let expected = "not retried: the attempt changed the workspace";
        assert!(warnings.iter().any(|warning| warning == expected), "{doing}: {trial:#}");
    }
}

#[test]
fn all_attempts_count_against_the_budgets_of_the_trial_and_of_the_run() {
    let agent = format!("{ONCE}{DONE}");
    let over = trial(&project(&agent), &["--max-cost", "0.9"], 1);
    assert_eq!(attempts(&over), ["failed", "failed"]);
    assert!(over["because"].as_str().unwrap().contains("1.0000 USD used, of a budget of 0.9000 USD"), "{over:#}");
    assert_eq!(attempts(&trial(&project(&agent), &["--max-cost", "1"], 0)), ["failed", "passed"]);
    let tokens = trial(&project(&agent), &["--max-total-tokens", "21"], 1);
    assert!(tokens["because"].as_str().unwrap().contains("22 tokens"), "{tokens:#}");
    let project = project(&agent);
    let run =
        ["skills/notes", "--agent", "subprocess:sh agent.sh", "--trials", "2", "--jobs", "1", "--max-run-cost", "0.9"];
    let report = project.report(&run, 3);
    let outcomes: Vec<&str> =
        report["trials"].as_array().unwrap().iter().map(|trial| trial["outcome"].as_str().unwrap()).collect();
    assert_eq!(outcomes.iter().filter(|outcome| **outcome == "cancelled").count(), 3, "{outcomes:?}");
}

#[test]
fn a_time_budget_can_be_set_to_only_warn() {
    let slow = format!("sleep 0.4\n{DONE}");
    let warned = trial(&project(&slow), &["--max-duration", "100ms", "--on-budget", "warn"], 0);
    let warnings = warned["warnings"].as_array().unwrap();
    assert!(warnings.iter().any(|warning| warning.as_str().unwrap().ends_with("of a budget of 0.1 s")), "{warned:#}");
    let fine = trial(&project(&slow), &["--max-duration", "1m", "--on-budget", "warn"], 0);
    assert!(fine["warnings"].as_array().is_none_or(Vec::is_empty), "{fine:#}");
    let failed = trial(&project(&format!("sleep 100\n{DONE}")), &["--max-duration", "300ms"], 1);
    assert_eq!(attempts(&failed), ["failed"], "time that is used up is not returned");
    assert!(failed["because"].as_str().unwrap().contains("--max-duration"), "{failed:#}");
}
