//! End-to-end tests of `calibrate`: the table to label, the comparison, and the condition for a judge.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on fails")]

use serde_json::{Value, json};
use testkit::Project;

const SCENARIO: &str = "\
scenario: kind
skill: greet
user_prompt: hello there
assertions:
  - { id: warm, type: sentiment, expected: friendly }
  - { id: polite, type: guardrail, mustNot: insult the user }
";

/// Returns a judge that accepts the tone, and gives `verdict` about the rule.
fn judge(verdict: &str) -> String {
    let row = json!({"id": "c1", "quote": "hello", "reasoning": "Seen.", "verdict": "met", "score": 4});
    let rule = json!({"id": "c1", "quote": "hello", "reasoning": "Said so.", "verdict": verdict});
    let step = |row: Value| json!({"text": json!({ "answers": [row] }).to_string()});
    json!({ "steps": [step(row), step(rule)] }).to_string()
}

/// Returns a project with a run of 20 trials. In each, the judge finds `warm` met and `polite` violated.
fn project() -> Project {
    let project = Project::new(env!("CARGO_BIN_EXE_trialrun"));
    project
        .write("trialrun.yaml", "defaults: { agent: fake, jobs: 2 }\njudge: scripted:judge.yaml\n")
        .write("skills/greet/SKILL.md", "---\nname: greet\ndescription: Greets.\n---\nSay hello.\n")
        .write("skills/greet/tests/a.yaml", SCENARIO)
        .write("judge.yaml", &judge("violated"));
    project.run(&["run", "--trials", "20", "--label", "first"]).exits(1);
    project
}

/// Returns labels for both assertions of each trial: `warm` is met except in the first `wrong` trials, `polite` is
/// unmet.
fn labels(wrong: u64) -> String {
    let row = |number: u64| {
        let warm = if number <= wrong { "unmet,too curt" } else { "met," };
        format!("first,greet::kind@fake#{number},warm,{warm}\nfirst,greet::kind@fake#{number},polite,no,\n")
    };
    "run,trial,assertion,label,note\n".to_owned() + &(1..=20).map(row).collect::<String>()
}

#[test]
fn an_exported_table_has_one_row_per_judged_assertion_and_no_verdicts() {
    let project = project();
    let wrote = project.run(&["calibrate", "labels.csv", "--export", "first"]).exits(0).out;
    assert!(wrote.contains("Wrote 40 judged assertions to labels.csv"), "{wrote}");
    let table = project.read("labels.csv");
    assert!(table.starts_with("run,trial,assertion,type,question,conversation,label,note\n"), "{table}");
    assert!(
        table.contains("the tone of the last reply is: friendly")
            && table.contains("message 1 of the user ==\nhello there"),
        "{table}"
    );
    assert!(!table.contains("Said so."), "a label must not follow the judge: {table}");
    let unlabelled = project.run(&["calibrate", "labels.csv"]).exits(2).err;
    assert!(unlabelled.contains("labels.csv has no labels"), "{unlabelled}");
    assert!(
        project.run(&["calibrate", "labels.csv", "--export", "first"]).exits(2).err.contains("`--force` replaces it")
    );
    assert!(project.run(&["calibrate", "a.txt", "--export", "first"]).exits(2).err.contains("`.csv` or `.jsonl`"));

    let sampled = |seed: &str| {
        let arguments = ["calibrate", "some.jsonl", "--export", "first", "--sample", "5", "--force", "--seed", seed];
        project.run(&arguments).exits(0);
        let rows = project.read("some.jsonl");
        assert_eq!(rows.lines().count(), 5);
        rows
    };
    assert_eq!(sampled("1"), sampled("1"));
    assert_ne!(sampled("1"), sampled("2"));
    let labelled = sampled("1").replace("\"label\":\"\"", "\"label\":true");
    project.write("some.jsonl", &labelled);
    assert_eq!(project.run(&["calibrate", "some.jsonl", "--json"]).exits(0).json()["labels"], 5);
}

#[test]
fn labels_are_compared_with_the_judge_and_its_errors_are_corrected() {
    let project = project();
    project.write("labels.csv", &labels(4));
    let text = project.run(&["calibrate", "labels.csv"]).exits(0).out;
    for part in [
        "scripted:judge.yaml: 40 labels",
        "90%",
        "16 of 16 labelled met",
        "20 of 24 labelled unmet",
        "20 of 40 judged assertions",
        "4 disagreements",
        "label unmet: too curt",
        "judge met: 4 of 5: Seen.",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let json = project.run(&["calibrate", "labels.csv", "--json", "--output", "c.json"]).exits(0).json();
    assert_eq!(json, serde_json::from_str::<Value>(&project.read("c.json")).unwrap());
    let corrected = json["corrected_pass_rate"]["mean"].as_f64().unwrap();
    assert!((corrected - 0.4).abs() < 1e-9, "16 of 40 are met according to the labels: {corrected}");
    assert_eq!(json["disagreements"].as_array().unwrap().len(), 4);

    project.run(&["calibrate", "labels.csv", "--min-kappa", "0.5"]).exits(0);
    let failed = project.run(&["calibrate", "labels.csv", "--min-kappa", "0.9"]).exits(1).err;
    assert!(failed.contains("the judge fails the calibration: κ is 0.80 and may be as low as"), "{failed}");
}

#[test]
fn a_table_that_does_not_fit_the_record_is_refused_at_its_lines() {
    let project = project();
    for (table, wrong) in [
        ("", "the table has no rows"),
        ("trial,assertion\na,b\n", "no column `label`"),
        ("trial,assertion,label\ngreet::kind@fake#1,warm,maybe\n", "`maybe` is not a label"),
        ("assertion,label\nwarm,met\n", "`trial`"),
        ("trial,assertion,label\ngreet::kind@fake#99,warm,met\n", "no finished trial `greet::kind@fake#99`"),
        ("trial,assertion,label\ngreet::kind@fake#1,warn,met\n", "did you mean `warm`"),
        ("run,trial,assertion,label\nnope,greet::kind@fake#1,warm,met\n", "unknown run `nope`"),
        (
            "trial,assertion,label\ngreet::kind@fake#1,warm,met\ngreet::kind@fake#1,warm,unmet\n",
            "`warm` of greet::kind@fake#1 is labelled twice",
        ),
    ] {
        project.write("bad.csv", table);
        let refused = project.run(&["calibrate", "bad.csv"]).exits(2).err;
        assert!(refused.contains(wrong) && refused.contains("bad.csv:"), "{table}: {refused}");
    }
    assert!(project.run(&["calibrate", "gone.csv"]).exits(2).err.contains("gone.csv"));
}

#[test]
fn labels_also_apply_to_a_run_that_graded_the_same_evidence_again() {
    let project = project();
    project.write("labels.csv", &labels(0)).write("other.yaml", &judge("met"));
    project.run(&["regrade", "first", "--judge", "scripted:other.yaml", "--label", "again"]).exits(0);
    let json = project.run(&["calibrate", "labels.csv", "--run", "again", "--json"]).exits(0).json();
    assert_eq!((&json["judge"], &json["counts"]["judge_passes"]), (&json!("scripted:other.yaml"), &json!(20)));
    project.run(&["run", "--label", "unrelated"]).exits(1);
    let refused = project.run(&["calibrate", "labels.csv", "--run", "unrelated"]).exits(2).err;
    assert!(refused.contains("did not grade the trials of"), "{refused}");
    let two = labels(0) + "again,greet::kind@fake#1,warm,met,\n";
    project.write("labels.csv", &two);
    let refused = project.run(&["calibrate", "labels.csv"]).exits(2).err;
    assert!(refused.contains("the labels are about two judges"), "{refused}");
}

#[test]
fn a_judge_that_fails_its_calibration_leaves_its_assertions_undecided() {
    let project = project();
    let configure = |min_kappa: f64| {
        let judge = format!("{{ model: 'scripted:judge.yaml', calibration: c.json, min_kappa: {min_kappa} }}");
        project.write("trialrun.yaml", &format!("defaults: {{ agent: fake }}\njudge: {judge}\n"));
    };
    configure(0.5);
    let run = |arguments: &[&str]| {
        let report = project.run(&[&["run", "--report", "json"][..], arguments].concat()).json();
        let findings = report["trials"][0]["findings"].as_array().unwrap().clone();
        findings.into_iter().map(|finding| finding["because"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert!(run(&[])[0].contains("the judge scripted:judge.yaml is not calibrated: cannot read c.json"));
    assert_eq!(run(&["--judge-calibration", ""])[0], "4 of 5: Seen.");
    project.write("labels.csv", &labels(4));
    project.run(&["calibrate", "labels.csv", "--output", "c.json"]).exits(0);
    assert_eq!(run(&[])[0], "4 of 5: Seen.");
    project.write("other.yaml", &judge("met"));
    assert!(run(&["--judge", "scripted:other.yaml"])[0].contains("c.json is about scripted:judge.yaml"));
    let reworded = SCENARIO.replace("friendly", "cheerful");
    project.write("skills/greet/tests/a.yaml", &reworded);
    let reasons = run(&[]);
    assert_eq!(reasons[0], "the calibration c.json has no label for this assertion in its current wording");
    assert_eq!(reasons[1], "1 rule followed", "the other assertion is calibrated");
    configure(0.9);
    let refused = project.run(&["run"]).exits(3).err;
    assert!(
        refused.contains("2 assertions stay undecided") && refused.contains("fails its calibration c.json"),
        "{refused}"
    );
}
