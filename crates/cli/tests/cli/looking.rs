//! Commands in assertions leave no trace in the agent's working directory.

#![allow(clippy::unwrap_used)]

use std::fs;

use serde_json::Value;
use testkit::Project;

const SCENARIO: &str = "\
scenario: s
system_prompt: x
agent: fake
fixtures:
  git_init: true
  files_committed: [{ path: kept.txt, content: as it was }]
user_prompt: '!write a.txt hello'
graded: { shared: true }
assertions:
  - { id: first, type: command, run: 'echo trace > trace.txt; echo x >> kept.txt; echo $PWD $HOME; cat a.txt; touch $HOME/h $TMPDIR/t', output: hello }
  - { id: second, type: command, run: 'test -e trace.txt && test -e $HOME/h && git status --porcelain', output: trace.txt }
  - { id: clean, type: file_unchanged, path: kept.txt }
  - { id: gone, type: file_not_exists, path: trace.txt }
";

fn run(project: &Project) -> Value {
    project.write("s.yaml", SCENARIO);
    project.report(&["s.yaml", "--keep-sandbox"], 0)["trials"][0].clone()
}

#[track_caller]
fn leaves_no_trace(project: &Project) {
    let trial = run(project);
    let work = std::path::PathBuf::from(trial["sandbox"].as_str().unwrap());
    let base = work.parent().unwrap();
    let names = |folder: &str| -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(base.join(folder))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    };
    assert_eq!(names("work"), [".git", "a.txt", "kept.txt"]);
    assert_eq!(fs::read_to_string(work.join("kept.txt")).unwrap(), "as it was");
    assert!(names("home").is_empty() && names("tmp").is_empty());
    assert_eq!(project.left_over().len(), 1, "the copy is gone: {:?}", project.left_over());
    project.no_process_is_left();
}

#[test]
fn commands_do_not_see_what_earlier_ones_left_unless_the_case_says_so() {
    let project = Project::new(env!("CARGO_BIN_EXE_trialrun"));
    project.write("s.yaml", &SCENARIO.replace("shared: true", "shared: false"));
    let trial = project.report(&["s.yaml"], 1)["trials"][0].clone();
    let findings = trial["findings"].as_array().unwrap().iter();
    let unmet: Vec<&str> =
        findings.filter(|finding| finding["status"] != "met").map(|finding| finding["id"].as_str().unwrap()).collect();
    assert_eq!(unmet, ["second"]);
    assert!(project.left_over().is_empty(), "{:?}", project.left_over());
}

#[test]
fn commands_that_share_a_tree_see_earlier_changes_but_leave_no_trace() {
    leaves_no_trace(&Project::new(env!("CARGO_BIN_EXE_trialrun")));
}

#[test]
fn commands_leave_no_trace_without_a_namespace() {
    leaves_no_trace(&Project::new(env!("CARGO_BIN_EXE_trialrun")).env("TRIALRUN_NO_NAMESPACE", "1"));
}

#[test]
#[cfg_attr(not(has = "isolation"), ignore = "needs a kernel that isolates processes; run scripts/test")]
fn the_copy_appears_at_the_original_path() {
    let project = Project::new(env!("CARGO_BIN_EXE_trialrun"));
    // The agent records its working directory, as a build directory would.
    project.write("agent.sh", "read -r line\npwd > where.txt\nls > \"$PWD/list.txt\"\necho '{\"text\":\"ok\"}'\n");
    project.write(
        "s.yaml",
        "scenario: s\nsystem_prompt: x\nuser_prompt: go\nagent: 'subprocess:sh agent.sh'\nassertions:\n  \
         - { id: same, type: command, run: 'test \"$(cat where.txt)\" = \"$PWD\" && echo more >> $(cat where.txt)/list.txt && grep more list.txt' }\n  \
         - { id: untouched, type: file_not_contains, path: list.txt, contains: more }\n",
    );
    let report = project.report(&["s.yaml"], 0);
    assert_eq!(report["trials"][0]["outcome"], "passed");
    assert_eq!(project.left_over(), [""; 0]);
}

#[test]
fn probes_between_messages_change_nothing() {
    let project = Project::new(env!("CARGO_BIN_EXE_trialrun"));
    project.write(
        "agent.sh",
        "while read -r line; do ls > .seen; echo \"{\\\"text\\\":\\\"files: $(tr '\\n' ' ' < .seen)\\\"}\"; done\n",
    );
    project.write(
        "conversations/c.yaml",
        "name: c\nagent: 'subprocess:sh agent.sh'\nturns:\n  - says: one\n    expect: [{ command: 'touch trace' }]\n  \
         - says: two\n    expect: [{ not_contains: trace }]\n",
    );
    let ran = project.run(&["run", "conversations/c.yaml", "--report", "json"]);
    assert_eq!(ran.code, 0, "{}", ran.output());
}

#[test]
fn a_copy_that_cannot_be_made_leaves_the_command_undecided() {
    let project = Project::new(env!("CARGO_BIN_EXE_trialrun"));
    // Deeper than the maximum length of a path allows.
    let agent = "read -r line\nname=$(printf 'x%.0s' $(seq 200))\n(i=0; while [ $i -lt 30 ]; do mkdir $name && cd -P $name \
                 2>/dev/null; i=$((i+1)); done) 2>/dev/null\necho '{\"text\":\"ok\"}'\n";
    project.write("agent.sh", agent);
    project.write(
        "s.yaml",
        "scenario: s\nsystem_prompt: x\nuser_prompt: go\nagent: 'subprocess:bash agent.sh'\nassertions:\n  \
         - { id: one, type: command, run: 'true' }\n  - { id: two, type: file_not_exists, path: other }\n",
    );
    let report = project.report(&["s.yaml", "--retries", "0"], 3);
    let findings = &report["trials"][0]["findings"];
    assert_eq!((&findings[0]["status"], &findings[1]["status"]), (&"undecided".into(), &"met".into()), "{report:#}");
    let reason = findings[0]["because"].as_str().unwrap();
    assert!(reason.contains("cannot copy the sandbox to run it in"), "{reason}");
    assert_eq!(project.left_over(), [""; 0]);
}

#[test]
fn the_copy_is_removed_if_the_run_is_stopped_during_a_command() {
    let project = Project::new(env!("CARGO_BIN_EXE_trialrun"));
    project.write(
        "s.yaml",
        "scenario: s\nsystem_prompt: x\nuser_prompt: go\nagent: fake\nfixtures: {git_init: true}\nassertions:\n  \
         - { id: one, type: command, run: 'echo here > /proc/self/fd/2; sleep 1000', timeout: 1h }\n",
    );
    let mut live = project.start(&["run", "s.yaml", "--report", "jsonl"]);
    live.line_with("\"collecting\"");
    assert!(testkit::until(|| project.left_over().iter().any(|name| name.contains("-copy-"))));
    // Two different signals, because the same signal sent twice in a row may arrive only once.
    live.signal(nix::sys::signal::Signal::SIGINT);
    live.signal(nix::sys::signal::Signal::SIGTERM);
    let ran = live.end();
    assert!([130, 143].contains(&ran.code), "{}", ran.output());
    project.no_process_is_left();
    assert_eq!(project.left_over(), [""; 0]);
}
