//! Nothing runs without the guarantees that a case or a project requires of its sandboxes.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use testkit::Project;
use testkit::real::only_trial;

const PROGRAM: &str = env!("CARGO_BIN_EXE_trialrun");

/// Returns a project with a scenario for `agent` that requires the guarantee.
fn project(agent: &str, guarantee: &str) -> Project {
    let project = Project::new(PROGRAM);
    let scenario = format!(
        "scenario: s\nsystem_prompt: p\nuser_prompt: Clean up.\nagent: \"{agent}\"\n\
         sandbox: {{ require: [{guarantee}] }}\nassertions:\n  - {{ id: a, type: output_contains, pattern: Clean }}\n"
    );
    project.write("scenarios/s.yaml", &scenario);
    project
}

#[test]
fn a_case_is_broken_without_what_it_requires_whatever_its_agent_is() {
    // The first agent has no sandbox, the second one is a process in a sandbox.
    for agent in ["fake", "subprocess:cat"] {
        let report = project(agent, "filesystem").report(&["--sandbox", "local"], 3);
        let trial = only_trial(&report);
        assert_eq!(trial["outcome"], "broken", "{agent}");
        let because = trial["because"].as_str().unwrap();
        assert!(because.contains("requires `filesystem` isolation"), "{agent}: {because}");
    }
}

#[test]
fn nothing_runs_in_a_project_without_what_it_requires() {
    let project = Project::new(PROGRAM);
    project.write("trialrun.yaml", "sandbox: { require: [filesystem] }\n");
    project.write("scenarios/s.yaml", "scenario: s\nsystem_prompt: p\nuser_prompt: Hi\nagent: fake\nassertions:\n  - { id: a, type: output_contains, pattern: Hi }\n");
    for arguments in [["run", "--sandbox", "local"].as_slice(), &["run", "--dry-run", "--sandbox", "local"]] {
        let ran = project.run(arguments).exits(2);
        assert!(ran.err.contains("trialrun.yaml:1:21"), "{}", ran.output());
        assert!(ran.err.contains("requires `filesystem` isolation"), "{}", ran.output());
        assert!(!ran.out.contains("passed"), "{}", ran.output());
    }
}

#[test]
fn a_misspelt_guarantee_is_an_error() {
    let ran = project("fake", "filesytem").run(&["check"]).exits(2);
    assert!(ran.err.contains("did you mean `filesystem`?"), "{}", ran.output());
}

#[test]
#[cfg_attr(not(has = "isolation"), ignore = "needs a kernel that isolates processes; run scripts/test")]
fn an_agent_that_can_read_the_suite_does_not_run_where_isolated_files_are_required() {
    for (config, is_run) in [("", true), ("cwd: '{project}', ", false)] {
        let project = project("reader", "filesystem");
        let agents = format!("agents:\n  reader: {{ type: subprocess, {config}command: [cat], mode: oneshot }}\n");
        project.write("trialrun.yaml", &agents);
        let report = project.report(&["--sandbox", "isolated"], if is_run { 0 } else { 3 });
        let trial = only_trial(&report);
        assert_eq!(trial["outcome"], if is_run { "passed" } else { "broken" }, "{trial:#}");
        let because = trial["because"].as_str().unwrap_or_default();
        assert_eq!(because.contains("requires `filesystem` isolation, but the agent can read"), !is_run, "{because}");
    }
}
