//! Tests of `--trials auto`: a run stops once the questions about its cases are answered.

#![allow(clippy::unwrap_used)]

use nix::sys::signal::Signal;
use serde_json::{Value, json};
use testkit::Project;

fn empty() -> Project {
    Project::new(env!("CARGO_BIN_EXE_trialrun"))
}

fn scenario(id: &str, more: &str) -> String {
    format!(
        "scenario: {id}\nsystem_prompt: x\nuser_prompt: go\n{more}assertions:\n- {{ id: yes, type: output_contains, pattern: \
         'yes' }}\n"
    )
}

/// Returns a project with a case that always passes, one that always fails, and one that fails every fifth time.
fn project() -> Project {
    let project = empty();
    let answer = |case: &str, output: &str| format!("{}\n", json!({ "case": case, "output": output }));
    let mut answers = String::new();
    for number in 1..=40 {
        answers.push_str(&(answer("good", "yes") + &answer("bad", "no")));
        answers.push_str(&answer("flaky", if number % 5 == 0 { "no" } else { "yes" }));
    }
    project.write("answers.jsonl", &answers).write("trialrun.yaml", "defaults: { agent: 'recorded:answers.jsonl' }\n");
    for id in ["good", "bad", "flaky"] {
        project.write(&format!("scenarios/{id}.yaml"), &scenario(id, ""));
    }
    project
}

#[test]
fn a_pass_rate_beside_a_fixed_number_of_trials_is_tested_by_a_run_with_auto() {
    let project = project();
    project.write("scenarios/good.yaml", &scenario("good", "trials: 3\npass_rate: 0.9\n"));
    let warning = "`pass_rate` is not tested with a fixed number of `trials`";
    assert!(project.run(&["run", "--dry-run", "--strict"]).exits(2).err.contains(warning));
    let auto = project.run(&["run", "--dry-run", "--strict", "--trials", "auto:40"]).exits(0);
    assert!(!auto.output().contains(warning), "{}", auto.output());
}

/// Returns the answer about each case, the stop reason, and the number of trials.
fn decisions(report: &Value) -> Vec<(String, String, u64)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let decided = report["decisions"].as_array().unwrap().iter();
    let mut decisions: Vec<_> = decided
        .map(|decision| {
            let about = decision.get("case").map_or_else(String::new, text);
            (
                about,
                text(&decision["answer"]) + " " + &text(&decision["stopped_by"]),
                decision["trials"].as_u64().unwrap(),
            )
        })
        .collect();
    decisions.sort();
    decisions
}

/// Collects the intervals and p-values in a report that are valid only for a fixed number of trials.
fn fixed_figures(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                let is_fixed = name.ends_with("ci95") || name.ends_with("p_value");
                found.extend((is_fixed && !field.is_null()).then(|| format!("{name}: {field}")));
                fixed_figures(field, found);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| fixed_figures(item, found)),
        _ => {}
    }
}

#[test]
fn cases_stop_when_they_are_decided_and_parallel_trials_do_not_change_that() {
    let project = project();
    let mut all = Vec::new();
    for jobs in ["1", "8"] {
        let ran = project.run(&["run", "--trials", "auto:40", "--jobs", jobs]).exits(1);
        for line in ["not met    2 of 40", "met        20 of 40", "no (28 of 40)", "FAIL  1 of 3 pass rates too low"] {
            assert!(ran.out.contains(line), "{line}\n{}", ran.out);
        }
        let report = project.run(&["report", "--format", "json"]).exits(0).json();
        let mut found = Vec::new();
        fixed_figures(&report, &mut found);
        assert_eq!(found, Vec::<String>::new());
        let ran = report["summary"]["trials"].as_u64().unwrap();
        assert_eq!(ran + report["summary"]["trials_not_needed"].as_u64().unwrap(), 120);
        assert!(jobs != "1" || ran == 50, "{ran}");
        all.push(decisions(&report));
    }
    let expected = [("bad", "not_met decided", 2), ("flaky", "undecided futility", 28), ("good", "met decided", 20)];
    assert_eq!(all[0], expected.map(|(case, answer, trials)| (case.to_owned(), answer.to_owned(), trials)));
    assert_eq!(all[0], all[1]);
    project.run(&["verify"]).exits(0);
}

#[test]
fn every_report_shows_decisions_instead_of_intervals_for_a_fixed_number() {
    let project = project();
    project.run(&["run", "--trials", "auto:40", "--jobs", "1"]).exits(1);
    project.run(&["run", "--trials", "auto:40", "--jobs", "2"]).exits(1);
    let report = |format: &str| project.run(&["report", "--format", format]).exits(0).out;
    assert!(
        report("markdown").contains("| `bad::bad` | not met | decided after 2 of 40 trials | 0 of 2 | 0% to 90% |")
    );
    let junit = report("junit");
    assert!(junit.contains("failures=\"1\"") && junit.contains("bad (pass rate)@recorded:answers.jsonl"), "{junit}");
    assert!(report("tap").contains("not ok") && report("html").contains("decided after 2 of 40 trials"));
    assert!(project.run(&["status"]).exits(0).out.contains("28 of 40"));
    assert!(!project.run(&["trend"]).exits(0).out.contains("95 %"));
    let trend = project.run(&["trend", "--json"]).exits(0).json();
    let compared = project.run(&["compare", "--json", "--no-worse-than", "0.05"]).exits(3).json();
    assert_eq!((&trend["runs"][0]["ci95"], &compared["sequential"]), (&Value::Null, &json!(true)));
    assert!(compared["totals"].as_array().unwrap().iter().all(|total| total["ci95"].is_null()), "{compared}");
    let sequence = compared["totals"][0]["confidence_sequence"].as_array().unwrap();
    assert!(sequence[0].as_f64().unwrap() < 0.0 && sequence[1].as_f64().unwrap() > 0.0, "{compared}");
    let decided = compared["decisions"].as_array().unwrap();
    assert_eq!((decided.len(), &decided[0]["run"]), (6, &compared["before"]["id"]));
    let drawn = project.run(&["compare"]).exits(0).out;
    assert!(
        drawn.contains("  bad::bad  ") && drawn.contains("not met, 0/2") && drawn.contains("at any time"),
        "{drawn}"
    );
    let drawn = project.run(&["compare", "--format", "markdown"]).exits(0).out;
    assert!(drawn.contains("| bad::bad | at least 90% | not met, 0/2 | 0-90% | not met, 0/2 | 0-90% |"), "{drawn}");
    assert!(project.run(&["compare", "--format", "html"]).exits(0).out.contains("not met, 0/2"));
    project.run(&["history"]).exits(0);
    let again = project.run(&["regrade", "latest"]).exits(1);
    assert!(again.out.contains("FAIL  1 of 3 pass rates too low"), "{}", again.out);
}

#[test]
fn a_required_pass_rate_decides_instead_of_single_trials() {
    let project = project();
    project.write("scenarios/flaky.yaml", &scenario("flaky", "trials: auto:40\npass_rate: 0.7\n"));
    let ran = project.run(&["run", "scenarios/flaky.yaml"]).exits(0);
    assert!(ran.out.contains("PASS  1 pass rate high enough"), "{}", ran.out);
    // With a fixed number of trials, every failed trial counts.
    let ran = project.run(&["run", "scenarios/flaky.yaml", "--trials", "5"]).exits(1);
    assert!(ran.err.contains("the `pass_rate` of 1 case is not tested"), "{}", ran.err);
    project.write("scenarios/good.yaml", &scenario("good", "pass_rate: { at_least: 0.9, tolerance: 0 }\n"));
    let ran = project.run(&["run", "scenarios/good.yaml", "--trials", "auto:30"]).exits(3);
    assert!(
        ran.err.contains("at most 30 trials cannot show a pass rate of 90 % with a tolerance of 0 %"),
        "{}",
        ran.err
    );
    assert!(ran.out.contains("INCOMPLETE  1 pass rate undecided"), "{}", ran.out);
    let ran = project.run(&["plan", "scenarios/good.yaml", "--trials", "auto:3"]).exits(0);
    assert!(ran.err.contains("this takes at least 43 trials, if all of them pass"), "{}", ran.err);
}

#[test]
fn invalid_settings_are_explained() {
    let project = project();
    let form = "a number from 1 to 100000, `auto` or `auto:MAX`, such as `auto:40`";
    for trials in ["auto:0", "auto:x", "auto:", "0", "many"] {
        let ran = project.run(&["run", "--trials", trials]).exits(2);
        assert!(ran.err.contains(form), "{}", ran.err);
    }
    let ran = project.run(&["run", "--precision", "0.05"]).exits(2);
    assert!(ran.err.contains("`precision` needs a number of trials that is not fixed"), "{}", ran.err);
    for (written, message) in [
        ("pass_rate: { at_least: 90 }", "write 90 % as 0.9"),
        ("pass_rate: { at_leest: 0.9 }", "did you mean `at_least`?"),
        ("pass_rate: { at_least: 0.9, tolerance: 1 }", "`tolerance` must be a number from 0 to less than `at_least`"),
        ("trials: auto:0", form),
    ] {
        project.write("scenarios/good.yaml", &scenario("good", &format!("{written}\n")));
        let ran = project.run(&["check"]).exits(2);
        assert!(ran.output().contains(message), "{message}\n{}", ran.output());
    }
}

#[test]
fn a_budget_leaves_cases_undecided_without_running_the_rest() {
    let project = empty();
    project
        .write("trialrun.yaml", "defaults: { agent: fake, jobs: 1 }\n")
        .write("scenarios/dear.yaml", &scenario("dear", "").replace("go", "'!say yes\n\n  !cost 1'"));
    let ran = project.run(&["run", "--trials", "auto:40", "--max-run-cost", "4.5"]).exits(3);
    assert!(ran.out.contains("the run cost 5.0000 USD, which is over its limit of 4.5 USD"), "{}", ran.out);
    let report = project.run(&["report", "--format", "json"]).exits(0).json();
    assert_eq!(decisions(&report), [("dear".to_owned(), "undecided budget".to_owned(), 5)]);
    assert_eq!((&report["summary"]["trials"], &report["summary"]["trials_not_needed"]), (&json!(5), &json!(35)));
}

#[test]
fn a_resumed_run_decides_like_one_that_was_not_interrupted() {
    let project = empty();
    project
        .write("trialrun.yaml", "defaults: { agent: fake, jobs: 1 }\n")
        .write("scenarios/slow.yaml", &scenario("slow", "").replace("go", "'!sleep 20ms\n\n  !say yes'"));
    let mut live = project.start(&["run", "--trials", "auto:40", "--report", "jsonl"]);
    for _ in 0..4 {
        live.line_with("trial_finished");
    }
    live.signal(Signal::SIGKILL);
    live.end();
    // The killed run has no summary, and no interval for a fixed number of trials either.
    let trend = project.run(&["trend", "--json"]).exits(0).json();
    assert!(trend["runs"][0]["ci95"].is_null() && trend["runs"][0]["passed"].as_u64() >= Some(4), "{trend}");
    for command in ["trend", "status", "history"] {
        let shown = project.run(&[command]).exits(0).out;
        assert!(!shown.contains("95%") && !shown.contains("95 %"), "{shown}");
    }
    project.run(&["run", "--trials", "1"]).exits(0);
    let compared = project.run(&["compare", "--json"]).exits(0).json();
    assert_eq!((&compared["sequential"], &compared["totals"][0]["ci95"]), (&json!(true), &Value::Null));
    let ran = project.run(&["run", "--resume"]).exits(0);
    assert!(ran.err.contains(" of 40 trials finished, at most "), "{}", ran.err);
    let report = project.run(&["report", "previous", "--format", "json"]).exits(0).json();
    assert_eq!(decisions(&report), [("slow".to_owned(), "met decided".to_owned(), 20)]);
    assert_eq!(report["summary"]["trials"], 20);
    project.run(&["run", "--last-failed", "--trials", "auto:40"]).exits(0);
}

#[test]
fn a_comparison_runs_until_it_is_known_whether_the_skill_helps() {
    let project = empty();
    let case = |id: &str| {
        json!({
            "id": id, "prompt": "!with-skill !skill one\n!with-skill !say formatted\n!say done", "expected_output": "",
            "assertions": [{ "type": "file_contains", "contains": "formatted" }],
        })
    };
    let evals = json!({ "skill_name": "one", "evals": [case("a"), case("b")] });
    project
        .write("trialrun.yaml", "defaults: { agent: fake }\n")
        .write("skills/one/SKILL.md", "---\nname: one\ndescription: d\n---\nFormat.\n")
        .write("skills/one/evals/evals.json", &evals.to_string());
    let ran = project.run(&["run", "skills/one", "--trials", "auto:30", "--jobs", "3"]).exits(0);
    assert!(ran.out.contains("The skill helps: in 2 cases, decided after"), "{}", ran.out);
    let report = project.run(&["report", "--format", "json"]).exits(0).json();
    let decision = &report["decisions"][0];
    assert_eq!((&decision["answer"], &decision["cases"]), (&json!("better"), &json!(2)));
    let planned = project.run(&["plan", "skills/one", "--trials", "auto:30"]).exits(0).out;
    for part in [
        "smallest difference from 90% that is found with a probability of 80%: ",
        "    none       half of the runs stop after ",
        "    25 points  half of the runs stop after ",
        ", at most ",
    ] {
        assert!(planned.contains(part), "{part}\n{planned}");
    }
    let plan = project.run(&["plan", "skills/one", "--trials", "auto:30", "--json"]).exits(0).json();
    let differences = plan["plan"]["decisions"][0]["differences"].as_array().unwrap();
    let found: Vec<f64> = differences.iter().map(|row| row["found"].as_f64().unwrap()).collect();
    assert!(found[0] < 0.05 && found[0] < found[1] && found[1] < found[2], "{plan}");
    assert!(plan["plan"]["most_ms"].as_f64() >= plan["plan"]["expected_ms"].as_f64(), "{plan}");
    let mut found = Vec::new();
    fixed_figures(&report, &mut found);
    assert_eq!(found, Vec::<String>::new());
    let text = project.run(&["report"]).exits(0).out;
    assert!(text.contains("The skill helps") && !text.contains(" p "), "{text}");
    project.run(&["run", "skills/one", "--trials", "auto:30", "--jobs", "1"]).exits(0);
    let compared = project.run(&["compare", "--json"]).exits(0).json();
    let arms = compared["arms"].as_array().unwrap();
    assert_eq!(arms.len(), 2, "{compared}");
    for (arm, end) in arms.iter().zip([1, 0]) {
        let rate = |side: &str| arm["confidence_sequences"][side][end].as_f64().unwrap();
        assert_eq!((rate("before"), rate("after")), ([0.0, 1.0][end], [0.0, 1.0][end]), "{arm}");
        let mut found = Vec::new();
        fixed_figures(arm, &mut found);
        assert_eq!(found, Vec::<String>::new());
    }
    let drawn = project.run(&["compare"]).exits(0).out;
    assert!(
        drawn.contains("before: The skill helps: in 2 cases, decided after") && drawn.contains("with skill"),
        "{drawn}"
    );
    let drawn = project.run(&["compare", "--format", "markdown"]).exits(0).out;
    assert!(drawn.contains("| passed | before | 95% | after | 95% | change | 95% |"), "{drawn}");
    assert!(project.run(&["compare", "--format", "html"]).exits(0).out.contains("fake+without_skill"));
    let drawn = project.run(&["compare", "--by", "variant"]).exits(0).out;
    assert!(drawn.contains("The skill helps: in 2 cases, decided after"), "{drawn}");
}

#[test]
fn a_plan_says_what_trials_can_show_and_what_they_take() {
    let project = project();
    let ran = project.run(&["plan", "--trials", "auto:40"]).exits(0);
    for line in ["3 cases · at most 120 trials", "no earlier results", "time      unknown"] {
        assert!(ran.out.contains(line), "{line}\n{}", ran.out);
    }
    project.run(&["run", "--trials", "auto:40"]).exits(1);
    let plan = project.run(&["plan", "--trials", "auto:40", "--json"]).exits(0).json();
    let figures = &plan["plan"];
    assert_eq!((&figures["trials"], &figures["known_groups"]), (&json!(120), &json!(3)));
    let expected = figures["expected_trials"].as_f64().unwrap();
    assert!((20.0..80.0).contains(&expected) && figures["expected_ms"].is_f64(), "{plan}");
    let fixed = project.run(&["plan", "--trials", "10"]).exits(0);
    assert!(fixed.out.contains("67.4 points or more"), "{}", fixed.out);
    assert_eq!(project.run(&["history", "--json"]).json().as_array().unwrap().len(), 1, "a plan runs nothing");
}
