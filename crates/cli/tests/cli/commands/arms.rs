//! Reports on skill suites: the effect of the skill in every view of a run.

use serde_json::{Value, json};
use testkit::Project;

use super::empty;

/// Returns a skill with a case that it helps, one that it harms, one that it does not affect, and a negative control.
fn project() -> Project {
    let contains = |text: &str| json!({"type": "file_contains", "contains": text});
    let case = |id: &str, prompt: &str, assertions: Value| json!({"id": id, "prompt": prompt, "expected_output": "", "assertions": assertions});
    let mut control = case("control", "!say four\n!tokens 50 5", json!([contains("four")]));
    control["should_trigger"] = false.into();
    let evals = json!({"skill_name": "one", "evals": [
        case("helped", "!with-skill !skill one\n!with-skill !say formatted\n!say done\n!tokens 100 10", json!([contains("formatted"), contains("done")])),
        case("harmed", "!with-skill !skill one\n!with-skill !error confused\n!say right\n!tokens 200 20", json!([contains("right")])),
        case("same", "!with-skill !skill one\n!say same\n!tokens 300 30", json!([contains("same")])),
        control,
    ]});
    let project = empty();
    project
        .write("trialrun.yaml", "defaults: { agent: fake }\n")
        .write("skills/one/SKILL.md", "---\nname: one\ndescription: d\nversion: 1.0.0\n---\nFormat.\n")
        .write("skills/one/evals/evals.json", &evals.to_string());
    project
}

#[test]
fn the_effect_of_the_skill_is_shown_in_every_view_of_a_run() {
    let project = project();
    let ran = project.run(&["run", "skills/one", "--trials", "2", "--jobs", "4"]).exits(1);
    for line in [
        "  trials     8, and 8 without the skill to compare with",
        "  fewer passed  harmed          0/2      0%             2/2    100%",
        "  more passed   helped          2/2    100%             0/2     50%",
        "  fake        6/6 100%   6/6 100%  2/8  25%",
        "FAIL  2 of 8 trials failed",
    ] {
        assert!(ran.out.contains(line), "{line}\n{}", ran.out);
    }

    let report = project.run(&["report", "--format", "json"]).exits(0).json();
    let delta = &report["deltas"][0];
    assert_eq!((&delta["agent"], &delta["pairs"], &delta["least_p_value"]), (&json!("fake"), &json!(4), &json!(0.125)));
    assert_eq!((&delta["full_pass_rate"], &delta["tokens"]), (&json!(0.0), &json!(0.0)));
    let skills: Vec<(&str, &str)> = delta["by_case"]
        .as_array()
        .unwrap()
        .iter()
        .map(|case| (case["case"].as_str().unwrap(), case["skill"].as_str().unwrap()))
        .collect();
    assert_eq!(skills, [("control", "same"), ("harmed", "fewer_passed"), ("helped", "more_passed"), ("same", "same")]);
    let trigger = &report["arms"][0]["trigger"];
    assert_eq!(
        (&trigger["precision"], &trigger["recall"], &trigger["never"]),
        (&json!(1.0), &json!(1.0), &json!(0.25))
    );
    assert_eq!((&report["summary"]["trials"], &report["summary"]["baseline"]), (&json!(8), &json!(8)));

    let page = project.run(&["report", "--format", "markdown", "--show-evidence", "--failures-only"]).exits(0).out;
    for part in [
        "| Arm | Cases | Trials passed | Pass rate | 95% interval of the pass rate | pass@k | Checks met | Time per trial | \
         Tokens per trial | Cost per trial | Excluded |",
        "**Delta (with\\_skill − without\\_skill):**",
        "#### `one/evals::harmed@fake+with_skill#1`",
        "- The agent did not use the skill.",
    ] {
        let is_there = page.contains(part);
        // In every failed trial, the agent used the skill.
        assert_eq!(is_there, !part.starts_with("- The agent"), "{part}\n{page}");
    }
    assert!(!page.contains("<details>"), "{page}");
    let table = project.run(&["report", "--format", "table", "--failures-only"]).exits(0).out;
    assert!(table.contains("difference") && !table.contains("started"), "{table}");

    let status = project.run(&["status"]).exits(0).out;
    assert!(status.contains("16 of 16 trials finished") && status.contains("difference"), "{status}");
    assert!(status.contains("cost n/a"), "{status}");
    let status = project.run(&["status", "--json"]).exits(0).json();
    assert_eq!(status["arms"][0]["trigger"]["hits"], 6);
}

#[test]
fn two_runs_are_compared_by_arm_and_a_worse_baseline_is_not_a_regression() {
    let project = project();
    project.run(&["run", "skills/one", "--label", "before"]).exits(1);
    let evals = project.read("skills/one/evals/evals.json");
    // From now on, the agent gives a correct answer only with the skill.
    project.write("skills/one/evals/evals.json", &evals.replace("!say same", "!with-skill !say same"));
    project.write("skills/one/SKILL.md", "---\nname: one\ndescription: d\nversion: 1.1.0\n---\nFormat better.\n");
    project.run(&["run", "skills/one", "--label", "after"]).exits(1);
    let compared = project.run(&["compare", "before", "after"]).exits(0).out;
    assert!(compared.contains("skill one changed: 1.0.0 (") && compared.contains(" 1.1.0 ("), "{compared}");
    let without: Vec<&str> = compared.lines().filter(|line| line.starts_with("    without")).collect();
    assert!(without[0].contains("-25 pts"), "{compared}");
    let json = project.run(&["compare", "before", "after", "--json"]).exits(0).json();
    assert_eq!((&json["arms"][1]["baseline"], &json["skills"][0]["changed"]), (&json!(true), &json!(true)));
    project.run(&["compare", "after", "before"]).exits(0);
}
