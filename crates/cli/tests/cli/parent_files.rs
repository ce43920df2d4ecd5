//! Files above the sandboxes that steer tools in all of them.

#![allow(clippy::unwrap_used)]

use testkit::Project;

#[test]
fn a_file_above_the_sandboxes_is_a_sign_in_the_run_and_a_warning_afterwards() {
    let project = Project::new(env!("CARGO_BIN_EXE_trialrun"));
    project.write(
        "trialrun.yaml",
        "agents: {bot: {type: subprocess, mode: oneshot, command: [sh, -c, 'touch ../../go.mod; echo done']}}\n",
    );
    project.write(
        "s.yaml",
        "scenario: s\nsystem_prompt: Work.\nagent: bot\nuser_prompt: go\nassertions: [{id: it, type: integrity_clean}]\n",
    );
    let file = project.tmp().canonicalize().unwrap().join("go.mod");
    let report = project.report(&["s.yaml"], 1);
    let sign = &report["trials"][0]["integrity"][0];
    assert_eq!(
        (&sign["kind"], &sign["place"]),
        (&"planted_code".into(), &file.display().to_string().into()),
        "{report}"
    );
    let warning = format!("Go may use {} in every local sandbox", file.display());
    for (arguments, code) in [(&["doctor"][..], 0), (&["run", "s.yaml", "--strict"], 2)] {
        let ran = project.run(arguments).exits(code);
        assert!(ran.output().contains(&warning), "{}", ran.output());
    }
}
