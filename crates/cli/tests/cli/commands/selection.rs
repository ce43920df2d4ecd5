//! Selection of cases.

use testkit::Project;

use super::{demo, listed, scenario};

#[test]
fn every_selection_option_selects_the_expected_cases() {
    let project = demo();
    for (arguments, cases) in [
        (&["--case", "first", "--case", "third"][..], &["first", "third"][..]),
        (&["--scenario", "second"], &["second"]),
        (&["--case", "greet::third"], &["third"]),
        (&["--filter", "^(f|s)"], &["first", "second"]),
        (&["--test", "third case"], &["third"]),
        (&["-k", "THIRD"], &["third"]),
        (&["-k", "greet"], &["first", "second", "third"]),
        (&["-k", "slow"], &["third"]),
        (&["--test", "C.yaml"], &["third"]),
        (&["--test", "greet/tests/b"], &["second"]),
        (&["--tag", "fast"], &["first", "second"]),
        (&["--tag", "slow", "--tag", "fast"], &["first", "second", "third"]),
        (&["greet", "--tag", "slow"], &["third"]),
        (&["skills/greet/tests/b.yaml"], &["second"]),
        (&["--file", "skills/greet/tests/c.yaml"], &["third"]),
        (&["--shard", "1/3"], &["first"]),
        (&["--filter", "no such"], &[]),
    ] {
        assert_eq!(listed(&project, arguments), cases, "{arguments:?}");
    }
    let mut parts: Vec<String> = ["1/2", "2/2"].iter().flat_map(|part| listed(&project, &["--shard", part])).collect();
    parts.sort();
    assert_eq!(parts, ["first", "second", "third"], "every case is in one part");

    project.run(&["run"]).exits(1);
    assert_eq!(listed(&project, &["--failed-in", "latest"]), ["second"]);
    let report = project.report(&["--failed-in", "latest"], 1);
    assert_eq!(report["trials"].as_array().unwrap().len(), 1);
}

#[test]
fn a_timeout_that_may_be_in_milliseconds_causes_a_warning() {
    let project = demo();
    let warned = |timeout: &str| {
        let ran = project.run(&["run", "--case", "first", "--timeout", timeout]).exits(0);
        ran.err.lines().find(|line| line.contains("--timeout")).unwrap_or_default().to_owned()
    };
    assert_eq!(
        warned("5000"),
        "warning: `--timeout 5000` is 5000 seconds (1 h 23 min) for each trial; write `5000ms` for milliseconds, or `5000s`"
    );
    assert_eq!((warned("5000s"), warned("90m"), warned("600")), (String::new(), String::new(), String::new()));
    // Fabrik's own command line counts in milliseconds.
    let fabrik = Project::new(env!("CARGO_BIN_EXE_trialrun"));
    fabrik.write("fabrik.config.mjs", "export default { agent: 'fake' };\n");
    fabrik.write("tests/slow.yaml", "name: slow\nturns: [{says: '!sleep 30s'}]\nassertions: [{contains: x}]\n");
    let ran = fabrik.run(&["run", "--timeout", "1500"]).exits(1);
    assert!(ran.out.contains("1.5 s (--timeout)") && ran.err.is_empty(), "{}", ran.output());
    let ran = fabrik.run(&["run", "--timeout", "30"]).exits(1);
    assert!(ran.err.contains("`--timeout 30` is 30 ms for each trial"), "{}", ran.err);
}

#[test]
fn an_empty_selection_is_not_a_success() {
    let project = demo();
    for arguments in [
        &["run", "--case", "fourth"][..],
        &["run", "--tag", "none"],
        &["run", "--filter", "zzz"],
        &["list", "--tag", "none"],
    ] {
        project.run(arguments).exits(4);
    }
    let ran = project.run(&["run", "--case", "fourth"]).exits(4);
    assert!(ran.err.contains("none of 3 cases was selected") && ran.err.contains("trialrun list"), "{}", ran.err);
    assert!(project.run(&["run", "--case", "frist"]).exits(4).err.contains("did you mean `first`?"));
    assert!(project.run(&["run", "--tag", "fsat"]).exits(4).err.contains("did you mean `fast`?"));
    // Part of the request would not run.
    let ran = project.run(&["run", "--tag", "slow", "--tag", "fsat"]).exits(2);
    assert!(ran.err.contains("no case has the tag `fsat`") && ran.err.contains("did you mean `fast`?"), "{}", ran.err);
    assert!(!project.dir().join(".trialrun").exists());
}

#[test]
fn failed_cases_of_a_run_can_be_run_again() {
    let project = demo();
    project.write("skills/greet/tests/d.yaml", &scenario("fourth", "goodbye"));
    project.run(&["run", "--label", "bad"]).exits(1);
    assert_eq!(listed(&project, &["--last-failed"]), ["second", "fourth"]);
    assert_eq!(listed(&project, &["--last-failed", "--case", "second", "--case", "first"]), ["second"]);
    let report = project.report(&["--last-failed", "--case", "second"], 1);
    assert_eq!(report["trials"].as_array().unwrap().len(), 1);
    assert_eq!(listed(&project, &["--last-failed"]), ["second"], "the last run had no other case");
    assert_eq!(listed(&project, &["--failed-in", "bad"]), ["second", "fourth"]);

    project.run(&["run", "--case", "first", "--label", "good"]).exits(0);
    for arguments in [&["--failed-in", "good"][..], &["--last-failed"], &["--failed-in", "bad", "--case", "first"]] {
        let ran = project.run(&[&["run"], arguments].concat()).exits(0);
        assert!(
            ran.err.starts_with(
                "nothing to run: no trial of a selected case failed, broke or stayed undecided in the run `"
            ),
            "{}",
            ran.err
        );
    }
    assert_eq!(project.run(&["history", "--json"]).exits(0).json().as_array().unwrap().len(), 3, "nothing was run");
    project.run(&["run", "--last-failed", "--case", "frist"]).exits(4);
    project.run(&["run", "--failed-in", "nightly"]).exits(2);
    project.run(&["run", "--failed-in", "good", "--last-failed"]).exits(2);
}

#[test]
fn a_trial_that_did_not_finish_counts_as_failed() {
    let project = demo();
    project.write("slow.yaml", "scenario: slow\nagent: fake\nsystem_prompt: x\nuser_prompt: '!sleep 1h'\n");
    let mut live = project.start(&["run", "slow.yaml", "--report", "jsonl"]);
    live.line_with("\"trial_started\"");
    live.signal(nix::sys::signal::Signal::SIGKILL);
    live.end();
    assert_eq!(listed(&project, &["slow.yaml", "--last-failed"]), ["slow"]);
}

#[test]
fn misspelt_names_are_errors_with_a_suggestion() {
    let project = demo();
    for (arguments, spoken) in [
        (&["run", "gret"][..], "did you mean `greet`?"),
        (&["run", "--agent", "fke"], "did you mean `fake`?"),
        (&["run", "--report", "jsn"], "did you mean `json`?"),
        (&["run", "--filter", "("], "regular expression"),
        (&["run", "--sandbox", "cloud"], "sandboxes: local"),
        (&["run", "--bogus"], "--bogus"),
        (&["run", "--trials", "0"], "--trials"),
        (&["run", "--shard", "4/3"], "K/N"),
        (&["run", "--timeout", "soon"], "30s"),
        (&["rum"], "run"),
        (&["report", "--format", "jsn"], "did you mean `json`?"),
        (&["schema", "scenaro"], "scenario"),
    ] {
        let ran = project.run(arguments).exits(2);
        assert!(ran.err.contains(spoken), "{arguments:?}: {}", ran.output());
        assert_eq!(ran.out, "", "{arguments:?}");
    }
    assert!(!project.dir().join(".trialrun").exists());
}
