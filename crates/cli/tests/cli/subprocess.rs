//! Agents that are programs, with a real sandbox and a real supervisor.

#![allow(clippy::unwrap_used)]

use serde_json::Value;
use testkit::Project;

/// Returns the only trial of a run with this `agent.sh`, and checks that none of its processes is left.
#[track_caller]
fn trial(script: &str, agent: &str, arguments: &[&str], code: i32) -> Value {
    let project = Project::new(env!("CARGO_BIN_EXE_trialrun"));
    project.write("agent.sh", script);
    let scenario = format!(
        "scenario: s\nsystem_prompt: Say done.\nuser_prompt: go\nagent: \"{agent}\"\n\
         assertions: [{{id: done, type: output_contains, pattern: done}}]\n"
    );
    project.write("s.yaml", &scenario);
    let all: Vec<&str> = ["s.yaml", "--retries", "0"].into_iter().chain(arguments.iter().copied()).collect();
    let report = project.report(&all, code);
    project.no_process_is_left();
    assert_eq!(project.left_over(), [""; 0]);
    report["trials"][0].clone()
}

/// Children that ignore signals, one of them in its own session.
const STUBBORN: &str =
    "trap '' TERM HUP INT\n(trap '' TERM; sleep 1000) &\nsetsid sh -c \"trap '' TERM; sleep 1000\" &\n";

#[test]
fn a_program_of_the_project_answers_from_the_sandbox() {
    let trial = trial("read -r line; echo '{\"text\":\"done\"}'", "subprocess:sh agent.sh", &[], 0);
    assert_eq!((&trial["outcome"], &trial["answer"]), (&"passed".into(), &"done".into()));
}

#[test]
fn a_program_that_does_not_exit_is_killed_with_its_descendants() {
    let answers = format!("{STUBBORN}read -r line; echo '{{\"text\":\"done\"}}'; while :; do sleep 1000; done");
    assert_eq!(trial(&answers, "subprocess:sh agent.sh", &["--stop-grace", "100ms"], 0)["outcome"], "passed");
    let silent = format!("{STUBBORN}while :; do sleep 1000; done");
    assert_eq!(
        trial(&silent, "subprocess:sh agent.sh", &["--timeout", "1s", "--stop-grace", "100ms"], 1)["outcome"],
        "failed"
    );
}

#[test]
fn a_program_that_waits_for_the_end_of_its_input_or_writes_plain_text_gets_a_hint() {
    let because = |script: &str| {
        let trial = trial(script, "subprocess:sh agent.sh", &["--timeout", "1s"], 1);
        trial["because"].as_str().unwrap().to_owned()
    };
    let waiting = because("cat > all.txt; echo '{\"text\":\"done\"}'");
    assert!(waiting.contains("it may be waiting for the end of its stdin; `mode: oneshot` closes stdin"), "{waiting}");
    let busy = because("read -r line; echo working; sleep 1000");
    assert!(busy.contains("timed out after 1 s") && !busy.contains("stdin"), "{busy}");
    assert!(busy.contains("wrote `working`, which is not a JSON object; `mode: oneshot`"), "{busy}");
}

#[test]
fn a_program_that_exits_early_fails_and_a_missing_one_breaks_the_trial() {
    let gone = trial("echo >&2 oh no; exit 3", "subprocess:sh agent.sh", &[], 1);
    assert_eq!(gone["outcome"], "failed");
    assert!(gone["because"].as_str().unwrap().contains("its process ended before it answered (exit code 3: oh no)"));
    let missing = trial("", "subprocess:no-such-program", &[], 3);
    assert_eq!((&missing["outcome"], &missing["fault"]), (&"broken".into(), &"environment".into()));
    // The file exists and is executable, but no interpreter can run it.
    let odd = trial("", "subprocess:/proc/version", &[], 3);
    assert_eq!(odd["outcome"], "broken");
}

/// Checks that destroying the working directory with `ruin` counts against the agent.
#[track_caller]
fn ruins(ruin: &str, reason: &str) {
    let project = Project::new(env!("CARGO_BIN_EXE_trialrun"));
    project.write("agent.sh", &format!("read -r line; {ruin}; echo '{{\"text\":\"done\"}}'"));
    project.write(
        "s.yaml",
        "scenario: s\nsystem_prompt: Say done.\nuser_prompt: go\nagent: 'subprocess:sh agent.sh'\nassertions:\n  \
         - {id: says, type: output_contains, pattern: done}\n  - {id: file, type: file_exists, path: out.txt}\n  \
         - {id: no-file, type: file_not_exists, path: out.txt}\n  - {id: runs, type: command, run: 'true'}\n  \
         - {id: stays, type: no_path_escape}\n",
    );
    project.write(
        "evals/talk.yaml",
        "name: talk\nagent: 'subprocess:sh agent.sh'\nturns:\n  - says: go\n    expect:\n      - contains: done\n      \
         - file_exists: out.txt\n",
    );
    let live = project.report(&["s.yaml", "evals/talk.yaml", "--retries", "0", "--min-pass-rate", "0.5"], 1);
    let again = project.run(&["regrade", "--report", "json"]).exits(1).json();
    for report in [&live, &again] {
        let summary = &report["summary"];
        assert_eq!((&summary["failed"], &summary["undecided"]), (&2.into(), &0.into()), "{ruin}: {summary}");
        assert_eq!(summary["pass_rate"], 0.0, "{ruin}: {summary}");
        for trial in report["trials"].as_array().unwrap() {
            assert_eq!((&trial["outcome"], &trial["undecided"]), (&"failed".into(), &0.into()), "{ruin}: {trial}");
            let findings = trial["findings"].as_array().unwrap();
            for finding in findings.iter().filter(|finding| finding["implicit"] != true) {
                let is_about_the_answer = ["output_contains", "contains"].iter().any(|kind| finding["type"] == *kind);
                let expected = if is_about_the_answer { "met" } else { "unmet" };
                assert_eq!(finding["status"], expected, "{ruin}: {finding}");
                let because = finding["because"].as_str().unwrap();
                assert!(is_about_the_answer || because.contains(reason), "{ruin}: {finding}");
            }
        }
    }
    assert_eq!(project.left_over(), [""; 0]);
}

#[test]
fn assertions_about_a_working_directory_that_the_agent_destroyed_are_unmet() {
    ruins("rm -r \"$PWD\"", "the agent removed its working directory");
    ruins("chmod 000 .", "the agent closed its working directory");
    ruins("here=$PWD; mv \"$here\" ../w2; ln -s /etc \"$here\"", "the agent removed its working directory");
}
