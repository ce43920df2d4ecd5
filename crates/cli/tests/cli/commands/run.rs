//! `run`: gates, reports and the terminal.

use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;

use testkit::Project;

use super::{demo, scenario};

#[test]
fn gates_decide_the_exit_code_for_failures() {
    let project = demo();
    project.run(&["run"]).exits(1);
    project.run(&["run", "--min-pass-rate", "0.6"]).exits(0);
    project.run(&["run", "--min-pass-rate", "0.7"]).exits(1);
    project.run(&["run", "--no-fail-on-assertions"]).exits(0);
    // A gate never hides a broken trial.
    project.write("skills/greet/tests/d.yaml", &scenario("fourth", "\"!abort gone\""));
    project.run(&["run", "--no-fail-on-assertions", "--retries", "0"]).exits(3);
    project.run(&["run", "--min-pass-rate", "0.5", "--retries", "0"]).exits(3);
    project.run(&["run", "--case", "fourth", "--retries", "0"]).exits(3);
}

#[test]
fn quiet_shows_only_failures_and_the_summary() {
    let project = demo();
    let ran = project.run(&["run", "--quiet"]).exits(1);
    assert!(!ran.out.contains("greet::first") && ran.out.contains("greet::second ."), "{}", ran.out);
    assert!(ran.out.contains("FAIL  1 of 3 trials failed"), "{}", ran.out);
}

#[test]
fn a_report_that_cannot_be_written_is_reported() {
    let project = demo();
    for arguments in [["run", "--report", "json=no/such/report.json"], ["report", "-o", "no/such/report.txt"]] {
        let ran = project.run(&arguments).exits(2);
        assert!(ran.err.contains("the directory no/such does not exist"), "{}", ran.output());
    }
    assert!(!project.dir().join(".trialrun").exists() && !project.dir().join("no").exists());
    let ran = project.run(&["run", "--case", "first", "--report", "json=/dev/full"]).exits(3);
    assert!(ran.err.contains("a report is incomplete: json to /dev/full: "), "{}", ran.output());
}

#[test]
fn options_that_cannot_be_meant_are_refused_before_anything_runs() {
    let project = demo();
    for (line, words) in [
        ("list --format json", "`list` runs nothing, so it has no `json` report"),
        ("plan --report markdown=-", "`plan` runs nothing, so it has no `markdown=-` report"),
        ("run --source-repo nowhere", "there is no repository `nowhere`"),
        ("run --sandbox docker", "no image is set"),
        ("run --agent chat --model scripted:", "`scripted:` needs the path of a script"),
        ("config nonsense", "`nonsense` is not a test or a skill"),
        ("run --state postgres:/runs", "write `postgres://…`"),
        ("audit --sandbox dockr", "unknown sandbox `dockr`"),
        ("report -o out.pdf", "no report has files called `*.pdf`"),
        ("run --output out.pdf", "no report has files called `*.pdf`"),
        ("run --report html,json", "give each report on its own: `--report html=FILE --report json=FILE`"),
        ("convert nosuch.yaml", "there is no file `nosuch.yaml`"),
        ("convert skills/greet/tests", "already has a form of trialrun"),
        ("convert skills/greet/tests --to conversation -o skills/greet/SKILL.md", "SKILL.md is not a folder"),
    ] {
        let ran = project.run(&line.split(' ').collect::<Vec<_>>()).exits(2);
        assert!(ran.err.contains(words), "{line}: {}", ran.output());
    }
    assert!(!project.dir().join("postgres:").exists() && !project.dir().join("scenarios").exists());
    let tags = project.run(&["run", "--tag", "smoke,slow"]).exits(4);
    assert!(tags.err.contains("give each tag on its own: `--tag smoke --tag slow`"), "{}", tags.output());
    // Reports in files are ignored, so that a command line of `run` also lists.
    project.run(&["list", "--report", "json=x.json"]).exits(0);
    assert!(!project.dir().join("x.json").exists());
}

#[test]
fn an_option_without_effect_causes_a_warning() {
    let project = demo();
    project.write("plain.yaml", "scenario: s\nsystem_prompt: p\nassertions: [{ contains: p }]\n");
    for (option, reason) in [
        ("--baseline", "no case tests a skill"),
        ("--arms skill,none", "no case tests a skill"),
        ("--source-repo .", "no trial has a sandbox"),
        ("--keep-sandbox", "no trial has a sandbox"),
        ("--base-url http://127.0.0.1:9", "the agents of the run ask no model"),
    ] {
        let options: Vec<&str> = option.split(' ').collect();
        let idle = project.run(&[&["plan", "plain.yaml", "--agent", "fake"], &*options].concat()).exits(0);
        let warning = format!("warning: `{}` has no effect: {reason}", options[0]);
        assert!(idle.err.contains(&warning), "{}", idle.output());
        let used = project.run(&[&["plan", "greet", "--agent", "chat"], &*options].concat());
        assert!(!used.err.contains("no effect"), "{}", used.output());
    }
    let project = project.env("TRIALRUN_BASE_URL", "http://127.0.0.1:9");
    let plain = project.run(&["plan", "plain.yaml", "--agent", "fake"]).exits(0);
    assert!(!plain.err.contains("no effect"), "{}", plain.output());
}

#[test]
fn options_for_cassettes_without_cassettes_cause_a_warning() {
    let project = demo();
    for (options, is_idle) in
        [("--cassette-dir tapes", true), ("--cassette-delays", true), ("--cassette-dir tapes --cassette replay", false)]
    {
        let ran = project.run(&format!("plan greet {options}").split(' ').collect::<Vec<_>>()).exits(0);
        assert_eq!(ran.err.contains("has no effect: the run has no cassettes"), is_idle, "{}", ran.output());
    }
}

#[test]
fn limits_without_what_they_limit_cause_a_warning() {
    let project = demo();
    project.write("c.json", "{}");
    for (options, is_idle) in [
        ("--on-budget warn", true),
        ("--on-budget warn --max-run-tokens 9", false),
        ("--on-budget warn --max-total-tokens 9", false),
        ("--judge-min-kappa 0.6", true),
        ("--judge-min-kappa 0.6 --judge-calibration c.json", false),
    ] {
        let ran = project.run(&format!("plan greet {options}").split(' ').collect::<Vec<_>>());
        assert_eq!(ran.err.contains("has no effect"), is_idle, "{}", ran.output());
    }
}

#[test]
fn a_program_that_is_not_installed_causes_a_warning() {
    let project = demo();
    project.write("trialrun.yaml", "agents:\n  bot: { type: subprocess, command: no-such-bot --fast }\n").write(
        "plain.yaml",
        "scenario: s\nsystem_prompt: p\nmcp_servers: { x: { command: no-such-server } }\nassertions: [{ contains: p }]\n",
    );
    let checked = project.run(&["check", "plain.yaml", "--agent", "bot"]);
    assert!(checked.err.contains("no program named `no-such-bot` on the PATH"), "{}", checked.output());
    let checked = project.run(&["check", "plain.yaml", "--agent", "claude-code"]);
    assert!(checked.err.contains("no program named `no-such-server` on the PATH"), "{}", checked.output());
    assert!(!checked.err.contains("no-such-bot"), "{}", checked.output());
}

#[test]
fn a_run_without_a_tested_case_is_not_a_success() {
    let project = demo();
    project.write("skipped.fixture.yaml", "- input: hello\n  output: hello\n  skip: true\n");
    let ran = project.run(&["run", "skipped.fixture.yaml", "--agent", "fake"]).exits(4);
    assert!(ran.out.contains("NOTHING TESTED  1 trial skipped"), "{}", ran.output());
}

#[test]
fn a_label_is_not_a_selector() {
    let project = demo();
    for label in ["latest", "previous", "", " "] {
        let ran = project.run(&["run", "--label", label]).exits(2);
        assert!(ran.err.contains("--label"), "{}", ran.output());
    }
}

#[test]
fn a_report_goes_to_standard_output_or_into_a_file() {
    let project = demo();
    let report = project.run(&["run", "--report", "json"]).exits(1).json();
    assert_eq!(report["schema"], "trialrun.report/1");
    project.write("deep/er/notes", "");
    let ran =
        project.run(&["run", "--report", "jsonl=deep/er/events.jsonl", "--report", "json=deep/report.json"]).exits(1);
    let (verdict, files) = ran.out.split_once('\n').unwrap();
    assert!(verdict.starts_with("FAIL  1 of 3 trials failed, "), "{verdict}");
    assert_eq!(files, "wrote deep/er/events.jsonl\nwrote deep/report.json\n", "all that is printed beside the verdict");
    assert!(project.read("deep/er/events.jsonl").lines().count() > 10);
    project.run(&["run", "--report", "json=/proc/nowhere/x.json"]).exits(2);
}

#[test]
fn colour_follows_options_and_environment() {
    let project = demo();
    let plain = project.run(&["run"]).exits(1);
    assert!(!plain.out.contains('\u{1b}'));
    let colour = project.run(&["run", "--color", "always"]).exits(1);
    assert!(colour.out.contains("\u{1b}[32m") && colour.out.contains("\u{1b}[31m"), "{}", colour.out);
    let forced = |project: Project| project.env("CLICOLOR_FORCE", "1");
    let project = forced(demo());
    assert!(project.run(&["run"]).out.contains('\u{1b}'));
    let project = forced(demo()).env("NO_COLOR", "1");
    assert!(!project.run(&["run"]).out.contains('\u{1b}'), "NO_COLOR has the last word");
    let wrong = project.run(&["run", "nope"]).exits(2);
    assert!(!wrong.err.contains('\u{1b}'));
}

#[test]
fn plain_output_has_no_colours_and_no_trailing_spaces() {
    for columns in ["80", "100"] {
        let project = demo().env("COLUMNS", columns);
        for arguments in [
            &["run"][..],
            &["run", "--jobs", "2"],
            &["run", "--trials", "2"],
            &["status"],
            &["history"],
            &["show", "second"],
            &["trend"],
            &["compare", "previous", "latest"],
            &["list"],
            &["config"],
            &["doctor"],
        ] {
            let ran = project.run(arguments);
            for line in ran.out.lines() {
                assert_eq!(line.trim_end(), line, "{arguments:?}");
            }
        }
        let ran = project.run(&["run"]);
        let rule = ran.out.lines().find(|line| line.starts_with('─')).unwrap();
        assert_eq!(rule.chars().count().to_string(), columns);
    }
}

#[test]
fn a_quarantined_case_is_reported_and_does_not_fail_the_run() {
    let project = demo();
    let quarantine = "quarantine: { reason: says goodbye, since: 2026-11-01 }\n";
    project.write("skills/greet/tests/b.yaml", &(scenario("second", "goodbye") + quarantine));
    let ran = project.run(&["run"]).exits(0);
    for text in ["failed (quarantined)", "quarantined since 2026-11-01: says goodbye", "1 quarantined (1 failed)"] {
        assert!(ran.out.contains(text), "{text}: {}", ran.out);
    }
    assert!(project.run(&["run", "--quiet"]).exits(0).out.contains("1 quarantined (1 failed)"));
    assert!(project.run(&["history"]).exits(0).out.contains("2 passed, 1 quarantined "));
    assert!(project.run(&["status"]).exits(0).out.contains("1 quarantined"));
    let report = project.run(&["report", "--format", "json"]).exits(0).json();
    assert_eq!(report["summary"]["quarantined"], serde_json::json!({ "failed": 1 }));
    assert_eq!(report["trials"][1]["quarantine"]["reason"], "says goodbye");
    assert_eq!(report["trials"][1]["tags"], serde_json::json!(["fast"]));
    // It does not count in comparisons, either: the case is named.
    let compared = project.run(&["compare", "--any"]).exits(0).out;
    assert!(compared.contains("Not compared: 1 case in quarantine (greet::second)."), "{compared}");
    // Other failures count as before, and the quarantine ends when it is removed.
    project.write("skills/greet/tests/b.yaml", &(scenario("second", "goodbye") + "quarantine: false\n"));
    project.run(&["run"]).exits(1);
    project.write("skills/greet/tests/b.yaml", &(scenario("second", "goodbye") + "quarantine: true\n"));
    let bare = project.run(&["run"]).exits(0);
    assert!(bare.err.contains("should have a reason and a date"), "{}", bare.err);
}

#[test]
fn a_closed_pipe_is_not_an_error() {
    let project = demo();
    project.run(&["run"]).exits(1);
    for arguments in [
        &["run", "--trials", "40", "--jobs", "2"][..],
        &["report", "--format", "jsonl"],
        &["history", "--cases", "--json"],
        &["show", "greet::second@fake#7", "--json"],
        &["schema"],
        &["completions", "bash"],
    ] {
        let mut child = project.command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut first = String::new();
        let mut reader = BufReader::new(child.stdout.take().unwrap());
        reader.read_line(&mut first).unwrap();
        drop(reader);
        let mut output = String::new();
        child.stderr.take().unwrap().read_to_string(&mut output).unwrap();
        let code = child.wait().unwrap().code();
        assert_eq!(output, "", "{arguments:?}");
        assert!(matches!(code, Some(0 | 1)), "{arguments:?}: {code:?}");
        assert!(!first.is_empty(), "{arguments:?}");
    }
}

#[test]
fn the_record_is_ignored_by_git_and_is_in_the_configured_folder() {
    let project = demo();
    project.run(&["run"]).exits(1);
    assert_eq!(project.read(".trialrun/.gitignore"), "*\n");
    project.run(&["run", "--state", "elsewhere", "--case", "first"]).exits(0);
    let trials = project.run(&["history", "--cases", "--json", "--state", "elsewhere"]).exits(0).json();
    assert_eq!(trials.as_array().unwrap().len(), 1);
    assert_eq!(project.run(&["history", "--cases", "--json"]).json().as_array().unwrap().len(), 3);
}
