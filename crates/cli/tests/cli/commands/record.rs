//! The record: `history`, `show`, `status`, `report`, `trend`, `compare`, `prune`.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::{demo, empty, scenario};

#[test]
fn without_runs_commands_report_an_empty_record() {
    let project = demo();
    assert_eq!(project.run(&["history", "--cases", "--json"]).exits(0).json(), json!([]));
    assert_eq!(project.run(&["history", "--json"]).exits(0).json(), json!([]));
    assert_eq!(project.run(&["history"]).exits(0).out, "no runs are recorded yet\n");
    assert_eq!(project.run(&["history", "--cases"]).exits(0).out, "no trials are recorded yet\n");
    for arguments in [&["show", "first"][..], &["status"], &["report"], &["trend"], &["compare", "a", "b"]] {
        let ran = project.run(arguments).exits(2);
        assert!(
            ran.err.contains("nothing is recorded in .trialrun") && ran.err.contains("trialrun run"),
            "{}",
            ran.output()
        );
    }
    assert!(!project.dir().join(".trialrun").exists(), "reading creates no files");
}

#[test]
fn a_comparison_with_one_run_says_how_to_get_a_second_one() {
    let project = empty();
    project.write("tests/a.yaml", "name: a\nturns: [hello]\nassertions: [{ contains: hello }]\n");
    project.run(&["run", "--agent", "fake"]).exits(0);
    for arguments in [&["compare"] as &[&str], &["compare", "latest"], &["compare", "previous", "latest"]] {
        let error = project.run(arguments).exits(2).err;
        assert!(error.contains("run the tests again with `trialrun run`"), "{error}");
        assert!(!error.contains("compare previous latest"), "{error}");
    }
}

#[test]
fn prune_keeps_sandboxes_that_the_user_kept() {
    let project = empty();
    let fixtures = "fixtures: { files_committed: [{ path: a, content: x }] }";
    project.write("a.yaml", &format!("scenario: a\nsystem_prompt: Work.\nuser_prompt: hi\n{fixtures}\n"));
    project.run(&["run", "a.yaml", "--agent", "fake", "--keep-sandbox"]);
    assert_eq!(project.left_over().len(), 1);
    let ran = project.run(&["prune", "--min-age", "0", "--yes"]).exits(0);
    assert!(ran.out.contains("1 sandbox kept by `--keep-sandbox`, not removed"), "{}", ran.output());
    assert_eq!(project.left_over().len(), 1);
    project.run(&["prune", "--min-age", "0s", "--kept", "--yes"]).exits(0);
    assert_eq!(project.left_over(), Vec::<String>::new());
}

#[test]
fn an_unreadable_record_is_not_an_empty_history() {
    let project = demo();
    project.write(".trialrun/runs.db", "this is no database");
    project.run(&["history", "--cases", "--json"]).exits(2);
    let ran = project.run(&["run"]).exits(2);
    assert!(ran.err.contains("runs.db"), "{}", ran.err);
    assert_eq!(project.read(".trialrun/runs.db"), "this is no database");
}

#[test]
fn a_trial_is_shown_by_case_by_id_and_by_run() {
    let project = demo();
    project.run(&["run", "--label", "old"]).exits(1);
    project.run(&["run", "--case", "first"]).exits(0);
    for named in ["second", "greet::second", "greet::second@fake#1", "old/greet::second@fake#1", "greet::sec"] {
        let ran = project.run(&["show", named]).exits(0);
        assert!(ran.out.starts_with("greet::second@fake#1  ✗ failed\n"), "{named}: {}", ran.out);
    }
    let ran = project.run(&["trace", "second"]).exits(0);
    for part in ["conversation", "goodbye", "findings", "✗ says-hello", "skill           greet 2.0.0", "sha256 "] {
        assert!(ran.out.contains(part), "{part}: {}", ran.out);
    }
    let shown = project.run(&["show", "second", "--json"]).exits(0).json();
    assert_eq!((&shown["case"], &shown["outcome"]), (&json!("second"), &json!("failed")));
    assert!(!shown["steps"].as_array().unwrap().is_empty());
    let ran = project.run(&["show", "secnd"]).exits(2);
    assert!(ran.err.contains("secnd"), "{}", ran.err);
}

#[test]
fn a_run_is_shown_as_a_list_of_its_trials() {
    let project = demo();
    project.run(&["run", "--label", "old"]).exits(1);
    project.run(&["run", "--case", "first"]).exits(0);
    let old = project.run(&["show", "old"]).exits(0).out;
    assert!(old.starts_with("FAIL "), "{old}");
    let lines: Vec<&str> = old.lines().skip_while(|line| !line.starts_with("run ")).collect();
    assert!(lines[0].contains(" (old): "), "{old}");
    assert!(lines[1].starts_with("  failed     trialrun show '"), "{old}");
    assert!(lines[2].starts_with("  passed     trialrun show '"), "{old}");
    let named = lines[1].split('\'').nth(1).unwrap();
    assert!(project.run(&["show", named]).exits(0).out.starts_with("greet::second@fake#1  ✗ failed\n"));
    let latest = project.run(&["show", "latest"]).exits(0).out;
    assert!(latest.contains(": 1 finished trial\n  passed"), "{latest}");
    let (verdict, run) = latest.split_once("\nrun ").unwrap();
    assert_eq!(verdict, "PASS  1 trial passed");
    assert_eq!(project.run(&["show", run.split(':').next().unwrap()]).exits(0).out, latest);
    let ran = project.run(&["show", "latest", "--step", "1"]).exits(2);
    assert!(ran.err.contains("`latest` is a run, and not a trial"), "{}", ran.err);
}

#[test]
fn history_is_newest_first_and_filtered() {
    let project = demo();
    project.run(&["run", "--label", "nightly"]).exits(1);
    project.run(&["run", "--case", "first"]).exits(0);
    let cases = |arguments: &[&str]| -> Vec<String> {
        let rows = project.run(&[&["history", "--cases", "--json"], arguments].concat()).exits(0).json();
        rows.as_array().unwrap().iter().map(|row| row["case"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(cases(&[])[0], "first");
    assert_eq!(cases(&[]).len(), 4);
    assert_eq!(cases(&["--scenario", "first"]), ["first", "first"]);
    assert_eq!(cases(&["--case", "second"]), ["second"]);
    assert_eq!(cases(&["--last", "2"]).len(), 2);
    assert_eq!(cases(&["greet"]).len(), 4);
    for name in [["--case", "greet::second"].as_slice(), &["greet::second"]] {
        assert_eq!(cases(name), ["second"], "a case is named as lists show it");
    }
    let ran = project.run(&["history", "greet::fourth"]).exits(2);
    assert!(ran.err.contains("no trial of a case `fourth` of the suite `greet`"), "{}", ran.err);
    let ran = project.run(&["history", "second"]).exits(2);
    assert!(ran.err.contains("no trial of a suite `second`") && ran.err.contains("`--case second`"), "{}", ran.err);
    let ran = project.run(&["history", "--cases"]).exits(0);
    assert!(ran.out.contains("(nightly)") && ran.out.contains("✗") && ran.out.contains("greet::second"), "{}", ran.out);
    // Fields that programs written for agent-skill-eval read.
    let row = &project.run(&["history", "--cases", "--json", "--last", "1"]).json()[0];
    assert_eq!(
        (&row["skill"], &row["scenario"], &row["overallPass"]),
        (&json!("greet"), &json!("first"), &json!(true))
    );
}

#[test]
fn history_lists_runs() {
    let project = demo();
    project.run(&["run", "--label", "nightly"]).exits(1);
    project.run(&["run", "--case", "first", "--label", "nightly", "--agent", "fake"]).exits(0);
    let rows = project.run(&["history", "--json"]).exits(0).json();
    let summary = |row: &Value| (row["label"].clone(), row["state"].clone(), row["summary"]["passed"].clone());
    assert_eq!(summary(&rows[0]), (json!("nightly"), json!("finished"), json!(1)));
    assert_eq!((&rows[1]["summary"]["failed"], &rows[1]["agents"][0]["name"]), (&json!(1), &json!("fake")));
    assert_eq!(project.run(&["history", "--last", "1", "--json"]).exits(0).json(), json!([rows[0]]));
    let listed = project.run(&["history"]).exits(0).out;
    let lines: Vec<&str> = listed.lines().collect();
    assert!(lines[1].contains("nightly") && lines[1].contains("1 passed") && lines[1].contains("fake"), "{listed}");
    assert!(lines[2].contains("2 passed, 1 failed"), "{listed}");

    let ran = project.run(&["status", "nightly"]).exits(0);
    let newest =
        format!("note: 2 runs have the label `nightly`; {} is the newest\n", rows[0]["short"].as_str().unwrap());
    assert_eq!(ran.err, newest);
    assert!(ran.out.contains(rows[0]["id"].as_str().unwrap()), "{}", ran.out);
}

#[test]
fn runs_are_selected_by_label_by_age_and_by_id_prefix() {
    let project = demo();
    project.run(&["run", "--label", "one"]).exits(1);
    project.run(&["run", "--iteration", "two", "--case", "first"]).exits(0);
    let id = |run: &str| {
        project.run(&["report", run, "--format", "json"]).exits(0).json()["run"]["id"].as_str().unwrap().to_owned()
    };
    assert_eq!((id("one"), id("two")), (id("previous"), id("latest")));
    let one = id("one");
    assert_eq!(id(&one[..one.len() - 2]), one);
    let status = project.run(&["status", "one"]).exits(0);
    assert!(status.out.contains("(one)") && status.out.contains("3 of 3 trials finished"), "{}", status.out);
    assert!(status.out.contains("greet::second@fake#1"), "{}", status.out);
    let ran = project.run(&["status", "three"]).exits(2);
    assert!(ran.err.contains("three"), "{}", ran.err);
    for label in ["latest", "previous", "latest~1"] {
        let ran = project.run(&["run", "--label", label]).exits(2);
        assert!(ran.err.contains(&format!("`{label}` is reserved for selecting runs by age")), "{}", ran.err);
    }
    project.run(&["run", "--label", "latest~ish", "--case", "first"]).exits(0);
}

#[test]
fn a_run_can_be_exported_and_imported() {
    let (project, other) = (demo(), demo());
    project.run(&["run", "--label", "nightly"]);
    let history = project.run(&["history", "--cases", "--json"]).json();
    project.run(&["run"]);
    let wrote = project.run(&["export", "latest~1", "nightly.run"]).exits(0);
    assert!(wrote.out.starts_with("Wrote run nightly to nightly.run (finished trials: "), "{}", wrote.output());
    let file = project.dir().join("nightly.run");
    let path = file.to_str().unwrap();
    let recorded = other.run(&["import", path]).exits(0);
    assert!(recorded.out.starts_with("Recorded run nightly from "), "{}", recorded.output());
    let report = |project: &testkit::Project| project.run(&["report", "nightly", "--format", "json"]).exits(0).json();
    assert_eq!(report(&other), report(&project));
    let again = other.run(&["import", path]).exits(0);
    assert!(again.out.ends_with("is already recorded.\n"), "{}", again.output());
    assert_eq!(other.run(&["history", "--cases", "--json"]).json(), history);
}

/// Removes everything that differs between a run and the same run on another machine.
fn without_times(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            let of_machines = ["id", "hash", "label", "phases", "session_id", "jobs", "report", "state"];
            fields.retain(|name, _| {
                !(name.ends_with("_at")
                    || name.ends_with("_ms")
                    || name.starts_with("duration_s")
                    || of_machines.contains(&name.as_str()))
            });
            fields.values_mut().for_each(without_times);
        }
        Value::Array(values) => values.iter_mut().for_each(without_times),
        _ => {}
    }
}

#[test]
fn merged_shards_form_the_whole_run() {
    let (project, other) = (demo(), demo());
    for suite in ["a", "b", "c", "d"] {
        let text = scenario(suite, "hello").replace("skill: greet", "system_prompt: Be kind.");
        project.write(&format!("scenarios/{suite}.yaml"), &text);
    }
    let run = ["run", "--baseline", "--trials", "2", "--seed", "7"];
    project.run(&[&run[..], &["--label", "whole"]].concat()).exits(1);
    for shard in 1..=3 {
        let [part, report, state] = [format!("{shard}/3"), format!("json={shard}.json"), format!("state-{shard}")];
        let options = ["--label", "split", "--shard", &part, "--report", &report, "--state", &state];
        project.run(&[&run[..], &options].concat());
        project.run(&["export", "latest", &format!("{shard}.run"), "--state", &state]).exits(0);
    }
    let files: Vec<String> =
        [3, 1, 2].iter().map(|shard| project.dir().join(format!("{shard}.run")).display().to_string()).collect();
    let merge = |files: &[&str]| other.run(&[&["merge"], files].concat());
    let all: Vec<&str> = files.iter().map(String::as_str).collect();
    let merged = merge(&[&all[..], &all[..1]].concat()).exits(0);
    let verdict = "Recorded run split from 3 shards (20 of 20 trials finished).\nFAIL  ";
    assert!(merged.out.starts_with(verdict), "{}", merged.out);
    assert!(merged.err.contains("which another file has too"), "{}", merged.err);
    let report = |project: &testkit::Project, run: &str| {
        let mut report = project.run(&["report", run, "--format", "json"]).exits(0).json();
        without_times(&mut report);
        report
    };
    assert_eq!(report(&other, "split"), report(&project, "whole"));
    other.run(&["verify", "split"]).exits(0);
    assert!(merge(&all).exits(0).out.starts_with("These shards are already recorded as run "));

    let ran = merge(&all[1..]).exits(3);
    assert!(ran.err.contains("missing shards: 3/3"), "{}", ran.err);
    let ran = merge(&all[1..]).exits(3);
    assert!(ran.out.contains("already recorded") && ran.err.contains("missing shards: 3/3"), "{}", ran.output());
    let listed = other.run(&["history"]).exits(0);
    assert!(listed.out.contains("without shard 3/3"), "{}", listed.out);
    project.run(&[&run[..], &["--shard", "1/3"]].concat());
    project.run(&["export", "latest", "again.run"]).exits(0);
    let again = project.dir().join("again.run").display().to_string();
    let ran = merge(&[&all[..], &[&again]].concat()).exits(2);
    assert!(ran.err.contains("both are shard 1 of 3"), "{}", ran.err);
    project.run(&["export", "whole", "again.run", "--force"]).exits(0);
    assert!(merge(&[&again]).exits(2).err.contains("it has a whole plan"));
}

#[test]
fn old_runs_are_removed() {
    let project = demo();
    for label in ["a", "b", "c"] {
        project.run(&["run", "--case", "first", "--label", label]).exits(0);
    }
    let labels = || -> Vec<String> {
        let rows = project.run(&["history", "--json"]).exits(0).json();
        rows.as_array().unwrap().iter().map(|row| row["label"].as_str().unwrap().to_owned()).collect()
    };
    let ran = project.run(&["prune", "--runs", "--keep", "2"]).exits(0);
    assert!(ran.out.contains("Nothing was removed; `--yes` removes 1 run."), "{}", ran.out);
    project.run(&["prune", "--runs", "--older-than", "30d", "--yes"]).exits(0);
    project.run(&["prune", "--runs", "--older-than", "30d", "--keep", "1", "--yes"]).exits(0);
    assert_eq!(labels(), ["c", "b", "a"]);
    project.run(&["prune", "--runs", "--keep", "2", "--yes"]).exits(0);
    assert_eq!(labels(), ["c", "b"]);
    project.run(&["prune", "--runs", "1", "--yes"]).exits(0);
    assert_eq!(labels(), ["c"]);
    for bare in ["7", "0.5"] {
        let refused = project.run(&["prune", "--runs", "--older-than", bare, "--yes"]).exits(2);
        assert!(refused.err.contains(&format!("it has no unit; write `{bare}d` for days")), "{}", refused.err);
    }
    project.run(&["prune", "--runs", "--older-than", "1ms", "--yes"]).exits(0);
    assert_eq!(labels(), [""; 0]);
    assert!(project.run(&["prune", "--runs"]).exits(2).err.contains("--older-than 30d"));
    project.run(&["prune", "--keep", "2"]).exits(2);
}

#[test]
fn importing_a_file_that_is_not_an_exported_run_changes_nothing() {
    let project = demo();
    project.write("a.run", "text");
    let ran = project.run(&["import", "a.run"]).exits(2);
    assert!(ran.err.contains("cannot import a.run: it is not a run that `trialrun export` wrote"), "{}", ran.err);
    let ran = project.run(&["import", "a.run", "b.run"]).exits(2);
    assert!(ran.err.contains("cannot read b.run"), "{}", ran.err);
    assert_eq!(project.run(&["history", "--cases", "--json"]).json(), json!([]));
    project.run(&["run"]);
    let ran = project.run(&["export", "latest", "missing/a.run"]).exits(3);
    assert!(ran.err.contains("cannot write missing/a.run"), "{}", ran.err);
    project.write("kept.run", "mine");
    let ran = project.run(&["export", "latest", "kept.run"]).exits(2);
    assert!(ran.err.contains("kept.run exists") && project.read("kept.run") == "mine", "{}", ran.err);
    project.run(&["export", "latest", "kept.run", "--force"]).exits(0);
    // A device, a pipe or a folder must not be replaced.
    let ran = project.run(&["export", "latest", "."]).exits(2);
    assert!(ran.err.contains("exists and is not a regular file"), "{}", ran.err);
}

#[test]
fn a_recorded_run_is_rendered_again() {
    let project = demo();
    let live = project.run(&["run"]).exits(1);
    assert_eq!(project.run(&["report"]).exits(0).out, live.out);
    let id = project.run(&["report", "--format", "json"]).json()["run"]["id"].as_str().unwrap().to_owned();
    assert_eq!(project.run(&["report", "--run-id", &id]).exits(0).out, live.out);
    let failures = project.run(&["report", "--format", "json", "--failures-only"]).exits(0).json();
    assert_eq!(failures["trials"].as_array().unwrap().len(), 1);
    assert_eq!(failures["summary"]["trials"], 3, "omitted trials are counted as well");
    let ran = project.run(&["report", "--failures-only"]).exits(0);
    assert!(!ran.out.contains("greet::first") && ran.out.contains("greet::second"), "{}", ran.out);
    let ran = project.run(&["report", "--format", "json", "-o", "report.json"]).exits(0);
    assert_eq!(ran.out, "wrote report.json\n");
    project.run(&["report", "-o", "by-name.json"]).exits(0);
    assert_eq!(project.read("by-name.json"), project.read("report.json"), "the name of the file selects the report");
    assert_eq!(serde_json::from_str::<Value>(&project.read("report.json")).unwrap()["run"]["id"], id.as_str());
}

#[test]
fn a_shard_without_cases_is_recorded_so_it_is_not_missing() {
    let (project, other) = (empty().env("JOB_COMPLETION_INDEX", "1"), empty());
    let write = |project: &testkit::Project, suite: &str| {
        let text = scenario(suite, "hello").replace("skill: greet", "system_prompt: Be kind.");
        project.write(&format!("scenarios/{suite}.yaml"), &text);
    };
    write(&project, "a");
    write(&project, "b");
    let mut files = Vec::new();
    for shard in 1..=3 {
        let [part, state, file] = [format!("{shard}/3"), format!("state-{shard}"), format!("{shard}.run")];
        let part = if shard == 2 { "auto/3" } else { &part };
        let code = if shard == 3 { 4 } else { 0 };
        let ran = project.run(&["run", "--agent", "fake", "--shard", part, "--state", &state]).exits(code);
        let note = "note: this job runs shard 2/3, because of `JOB_COMPLETION_INDEX`\n";
        assert_eq!(ran.err.contains(note), shard == 2, "{}", ran.err);
        assert_eq!(ran.err.contains("note: shard 3/3 has no cases"), shard == 3, "{}", ran.err);
        assert_eq!(ran.out.contains("NOTHING TESTED  no trials"), shard == 3, "{}", ran.out);
        project.run(&["export", "latest", &file, "--state", &state]).exits(0);
        files.push(project.dir().join(&file).display().to_string());
    }
    let arguments: Vec<&str> = std::iter::once("merge").chain(files.iter().map(String::as_str)).collect();
    let merged = other.run(&arguments).exits(0);
    assert!(merged.out.contains("from 3 shards (2 of 2 trials finished)"), "{}", merged.output());
    project.run(&["run", "--agent", "fake", "--shard", "3/3", "--case", "none"]).exits(4);
    let ran = project.run(&["config", "--shard", "auto"]).exits(2);
    assert!(ran.err.contains("write `--shard auto/N`"), "{}", ran.err);

    let foreign = empty();
    write(&foreign, "c");
    write(&foreign, "d");
    foreign.run(&["run", "--agent", "fake", "--shard", "2/3"]).exits(0);
    foreign.run(&["export", "latest", "2.run"]).exits(0);
    let file = foreign.dir().join("2.run").display().to_string();
    let ran = other.run(&["merge", &files[0], &file, &files[2]]).exits(2);
    let reason = format!("{} and {file} cannot be merged: the cases of their whole plans differ", files[0]);
    assert!(ran.err.contains(&reason), "{}", ran.err);
}

#[test]
fn two_runs_are_compared_and_a_regression_is_a_failure() {
    let project = demo();
    project.run(&["run"]).exits(1);
    project.run(&["run", "--label", "before"]).exits(1);
    project.write("skills/greet/tests/a.yaml", &scenario("first", "good morning"));
    project.write("skills/greet/tests/b.yaml", &scenario("second", "hello after all"));
    project.run(&["run", "--label", "after"]).exits(1);
    let ran = project.run(&["compare", "before", "after"]).exits(0);
    assert!(ran.out.contains("Cannot tell yet whether after is better or worse than before: "), "{}", ran.out);
    assert!(ran.out.contains("`--any` fails on any regression"), "{}", ran.out);
    let at = |text: &str| ran.out.find(text).unwrap_or_else(|| panic!("{text}: {}", ran.out));
    assert!(
        at("regressed, may be chance (1)") < at("fixed, may be chance (1)")
            && at("fixed, may be chance (1)") < at("1 case unchanged"),
        "{}",
        ran.out
    );
    assert!(ran.out.contains("✗ greet::first"), "{}", ran.out);
    assert!(ran.out.contains("test files changed, so the difference may come from the tests"), "{}", ran.out);
    assert!(at("test files changed") < at("in both"), "{}", ran.out);
    assert_eq!(project.run(&["diff", "--before", "before", "--after", "after"]).exits(0).out, ran.out);
    let comparison = project.run(&["compare", "previous", "latest", "--any", "--json"]).exits(1).json();
    let changes: Vec<&Value> = comparison["cases"].as_array().unwrap().iter().map(|case| &case["change"]).collect();
    assert_eq!(changes, ["regressed", "fixed", "same"]);
    let evidence = &comparison["cases"][0]["evidence"];
    assert_eq!((&evidence["before"]["outcome"], &evidence["after"]["outcome"]), (&json!("passed"), &json!("failed")));
    assert_eq!(evidence["flips"][0]["after"]["status"], "unmet", "{comparison:#}");
    let files: Vec<&Value> =
        comparison["test_files"].as_array().unwrap().iter().map(|change| &change["file"]).collect();
    assert_eq!(files, ["skills/greet/tests/a.yaml", "skills/greet/tests/b.yaml"]);
    let file = project.run(&["regrade", "skills/greet/tests/a.yaml"]).exits(2).err;
    assert!(file.contains("write `trialrun regrade latest skills/greet/tests/a.yaml`"), "{file}");
    let same = project.run(&["compare", "before", "before", "--any"]).exits(2).err;
    assert!(same.contains("both sides are the run "), "{same}");
    project.run(&["compare", "latest~2", "before", "--any"]).exits(0);
    let within = |share: &str| project.run(&["compare", "latest~2", "before", "--no-worse-than", share]);
    let open = within("0.05").exits(3).out;
    assert!(open.contains("Cannot tell yet whether it is worse by more than 5 points"), "{open}");
    let shown = within("0.9").exits(0).out;
    assert!(shown.contains("No worse by more than 90 points"), "{shown}");
    assert!(within("5").exits(2).err.contains("from 0 to 1"));
    project.run(&["compare", "before", "--any"]).exits(1);
    project.run(&["compare", "--any"]).exits(1);
    let silent = project.run(&["compare", "--report", "html=page.html"]).exits(0).out;
    assert_eq!(silent, "");
    let page = project.read("page.html");
    assert!(page.starts_with("<!doctype html>") && page.contains("greet::first"), "{page}");
    assert!(project.run(&["compare", "--format", "pdf"]).exits(2).err.contains("unknown format `pdf`; formats: "));
    assert!(page.contains("test files changed"), "{page}");
    let comment = project.run(&["compare", "--format", "markdown"]).exits(0).out;
    assert!(comment.starts_with("**Cannot tell yet") && comment.contains("<details>"), "{comment}");
    assert!(comment.contains("- test files changed"), "{comment}");
    let by_label = project.run(&["compare", "--by", "label", "--json"]).exits(0).json();
    assert_eq!((&by_label["by"], by_label["comparisons"].as_array().map(Vec::len)), (&json!("label"), Some(1)));
    assert_eq!(by_label["comparisons"][0]["before"]["label"], "before");
    assert!(project.run(&["compare", "--by", "model"]).exits(2).err.contains("fewer than two models"));

    let same = project.run(&["show", "after/greet::first", "after/greet::first#1"]).exits(2).err;
    assert!(same.contains("both name the trial greet::first@fake#1"), "{same}");
    let two = project.run(&["show", "before/greet::first", "after/greet::first"]).exits(0).out;
    assert!(two.contains("steps: first difference in row 1") && two.contains("met → unmet"), "{two}");
    let step = project.run(&["show", "after/greet::first", "--step", "1"]).exits(0).out;
    assert!(step.contains("step 1") && step.contains("good morning"), "{step}");
    assert!(project.run(&["show", "after/greet::first", "--step", "99"]).exits(2).err.contains("there is no step 99"));
    assert!(project.run(&["show", "after/greet::first", "--diff"]).exits(0).out.contains("left no changed files"));

    let trend = project.run(&["trend", "--case", "first"]).exits(0);
    let lines = ["100%", "0%"].map(|rate| trend.out.lines().position(|line| line.contains(&format!(" {rate} "))));
    assert!(lines[0] < lines[1] && !trend.out.contains("second"), "oldest first: {}", trend.out);
    assert!(!trend.out.contains("flaky"), "the test file changed: {}", trend.out);
    let trend = project.run(&["trend", "--json"]).exits(0).json();
    let labels: Vec<&Value> = trend["runs"].as_array().unwrap().iter().map(|run| &run["label"]).collect();
    assert_eq!(labels[1..], ["before", "after"]);
    let near = project.run(&["trend", "--case", "frist"]).exits(2);
    assert!(near.err.contains("did you mean `first`?"), "{}", near.err);
}

#[test]
fn the_allowed_score_drop_is_set_on_the_command_line_or_in_the_project() {
    let project = demo();
    let scored = |says: &str| {
        format!(
            "scenario: scored\nagent: fake\nsystem_prompt: x\nuser_prompt: {says}\nassertions:\n  - {{ id: a, type: \
             output_contains, pattern: alpha }}\n  - {{ id: b, type: output_contains, pattern: beta }}\n  - {{ id: c, type: \
             output_contains, pattern: gamma }}\n"
        )
    };
    project.write("s.yaml", &scored("alpha beta"));
    project.run(&["run", "s.yaml"]).exits(1);
    project.write("s.yaml", &scored("alpha"));
    project.run(&["run", "s.yaml"]).exits(1);
    let comparison = project.run(&["compare", "--any", "--json"]).exits(1).json();
    assert_eq!(
        (&comparison["threshold"], &comparison["cases"][0]["change"]),
        (&json!(0.05), &json!("regressed")),
        "{comparison:#}"
    );
    let ran = project.run(&["compare"]).exits(0);
    assert!(ran.out.contains("score 67% → 33%"), "{}", ran.out);
    project.run(&["compare", "--any", "--threshold", "0.5"]).exits(0);
    project.write("trialrun.yaml", "defaults: { agent: fake, jobs: 1 }\ndiff: { regressionThreshold: 0.4 }\n");
    let comparison = project.run(&["compare", "--any", "--json"]).exits(0).json();
    assert_eq!(
        (&comparison["threshold"], &comparison["cases"][0]["change"]),
        (&json!(0.4), &json!("same")),
        "{comparison:#}"
    );
    project.run(&["compare", "--any", "--threshold", "0.2"]).exits(1);
    assert!(project.run(&["compare", "--threshold", "5"]).exits(2).err.contains("from 0 to 1"));
}

#[test]
fn prune_removes_orphans_only_on_request() {
    let project = demo();
    project
        .run(&["run", "--keep-sandbox", "--case", "first", "--agent", "chat", "--model", "scripted:m.yaml"])
        .exits(2);
    assert_eq!(project.run(&["prune"]).exits(0).out, format!("No orphan sandbox under {}.\n", project.tmp().display()));
    project.write("m.yaml", "steps: [{ text: hello }]\n");
    let report =
        project.report(&["--keep-sandbox", "--case", "first", "--agent", "chat", "--model", "scripted:m.yaml"], 0);
    let kept = PathBuf::from(report["trials"][0]["sandbox"].as_str().unwrap());
    assert!(kept.is_dir(), "{}", kept.display());
    let ran = project.run(&["sandbox-prune", "--min-age", "0"]).exits(0);
    let is_orphan = ran.out.contains("Nothing was removed");
    assert!(kept.is_dir());
    project.run(&["prune", "--min-age", "0", "--yes"]).exits(0);
    assert_eq!(kept.exists(), !is_orphan, "{}", ran.out);
}

#[test]
fn an_incomplete_sandbox_is_kept_and_reported_on_request() {
    let project = demo();
    project.write(
        "bad.yaml",
        "scenario: bad\nagent: fake\nsystem_prompt: x\nfixtures: {setup_commands: ['touch seen', 'exit 7']}\n",
    );
    let report = project.report(&["bad.yaml", "--keep-sandbox", "--retries", "0"], 3);
    let reason = report["trials"][0]["because"].as_str().unwrap();
    let (error, place) = reason.split_once("; the sandbox is kept in ").unwrap();
    assert!(error.contains("`exit 7` failed with exit code 7"), "{error}");
    assert!(std::path::Path::new(place).join("seen").exists(), "{place}");
}

#[test]
fn a_case_is_shown_by_its_failed_trial_and_several_cases_are_listed() {
    let project = demo();
    project.write("skills/greet/tests/d.yaml", &scenario("third time", "goodbye"));
    project.run(&["run", "--agent", "fake", "--trials", "2"]).exits(1);
    let shown = project.run(&["show", "sec"]).exits(0).out;
    assert!(shown.contains("greet::second@fake#1"), "{shown}");
    assert!(shown.contains("other trials of this case\n  failed     greet::second@fake#2"), "{shown}");
    assert!(!project.run(&["show", "greet::second@fake#2"]).exits(0).out.contains("other trials"));
    let error = project.run(&["show", "thi"]).exits(2).err;
    assert!(error.starts_with("error: `thi` matches 4 trials of several cases\n"), "{error}");
    let first = error.lines().nth(1).unwrap();
    assert!(first.contains("failed  greet::third time@fake#1"), "{error}");
    assert!(error.contains("passed  greet::third@fake#2"), "{error}");
}
