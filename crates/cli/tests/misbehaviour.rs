//! Agents, machines and records that misbehave: every trial ends as it should, every message is helpful, and nothing
//! is left behind.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use nix::sys::resource::{UsageWho, getrusage};
use serde_json::Value;
use testkit::{Live, Project, Ran};

/// Limit on the program's memory in KiB, whatever the agent does.
const MAX_MEMORY_KIB: i64 = 300 * 1024;

fn project() -> Project {
    Project::new(env!("CARGO_BIN_EXE_trialrun"))
}

fn scenario(agent: &str, more: &str) -> String {
    format!(
        "scenario: s\nsystem_prompt: Say hello.\nagent: {agent}\n{more}\
         assertions: [{{id: done, type: output_contains, pattern: done}}]\n"
    )
}

/// Returns the only trial of a run in which this program stands in for `claude`.
#[track_caller]
fn trial(project: &Project, arguments: &[&str], code: i32) -> Value {
    project.write("s.yaml", &scenario("claude-code", "user_prompt: go\n"));
    let all: Vec<&str> = ["s.yaml", "--retries", "0"].into_iter().chain(arguments.iter().copied()).collect();
    let report = project.report(&all, code);
    nothing_is_left(project);
    report["trials"][0].clone()
}

#[track_caller]
fn nothing_is_left(project: &Project) {
    project.no_process_is_left();
    assert_eq!(project.left_over(), [""; 0]);
}

#[track_caller]
fn reason(trial: &Value, parts: &[&str]) {
    let reason = trial["because"].as_str().unwrap_or_default();
    assert!(parts.iter().all(|part| reason.contains(part)), "{reason:?} does not contain {parts:?}");
}

/// Fails the test unless the trial timed out before the agent's model said anything, so that the agent is not at fault.
#[track_caller]
fn said_nothing(trial: &Value) {
    assert_eq!((&trial["outcome"], &trial["ending"]["kind"]), (&"broken".into(), &"silent".into()), "{trial:#}");
    assert_eq!(trial["fault"], Value::Null, "{trial:#}");
    reason(trial, &["reported no answer from its model within 1 s", "is not known"]);
}

/// Checks the peak memory of all programs in these tests and their children, in KiB.
#[track_caller]
fn memory_is_bounded() {
    let most = getrusage(UsageWho::RUSAGE_CHILDREN).unwrap().max_rss();
    assert!(most < MAX_MEMORY_KIB, "{most} KiB");
}

// Agents.

#[test]
fn a_flood_of_garbage_before_the_answer_does_not_change_the_result() {
    let noise = noise(500);
    let project = project().claude(&format!("yes '{noise}' | head -c 50000000; echo; result done"));
    let trial = trial(&project, &[], 0);
    assert_eq!((&trial["outcome"], &trial["answer"]), (&"passed".into(), &"done".into()));
    let warnings = trial["warnings"].to_string();
    assert!(warnings.contains("its first 16 MiB"), "a warning reports the omitted output: {warnings}");
    let record = fs::metadata(project.dir().join(".trialrun/runs.db")).unwrap().len();
    assert!(record < 64 << 20, "a record of {record} bytes");
    memory_is_bounded();
}

#[test]
fn endless_output_is_stopped_at_the_timeout() {
    let project = project().claude("yes '{\"type\":\"whatever\"}'");
    said_nothing(&trial(&project, &["--timeout", "1s", "--stop-grace", "500ms"], 3));
    memory_is_bounded();
}

#[test]
fn an_agent_with_endless_steps_is_stopped() {
    let words = noise(20_000);
    let acts = format!("text '{words}' > $HOME/one; while cat $HOME/one; do :; done");
    let project = project().claude(&acts);
    let trial = trial(&project, &[], 1);
    reason(&trial, &["agent_finished", "more than 64 MiB"]);
    assert_eq!(trial["ending"]["because"], "its steps take more than 64 MiB in the record");
    memory_is_bounded();
}

#[test]
fn an_endless_line_is_cut_and_breaks_the_trial() {
    let project = project().claude("head -c 100000000 /dev/zero | tr '\\0' x; echo; result done");
    let trial = trial(&project, &[], 3);
    reason(&trial, &["the steps of the agent are not completely known"]);
    assert!(trial["warnings"].to_string().contains("too long"), "{}", trial["warnings"]);
    memory_is_bounded();
}

#[test]
fn excessive_stderr_output_is_truncated_too() {
    let noise = noise(500);
    let project = project().claude(&format!("yes '{noise}' | head -c 20000000 >&2; result done"));
    assert_eq!(trial(&project, &[], 0)["outcome"], "passed");
    memory_is_bounded();
}

#[test]
fn an_agent_that_closes_its_stdout_and_hangs_times_out() {
    let project = project().claude("exec >&-; exec sleep 1000");
    said_nothing(&trial(&project, &["--timeout", "1s"], 3));
}

#[test]
fn an_agent_that_neither_reads_nor_writes_times_out() {
    let project = project().claude_program("#!/bin/sh\nexec <&- >&- 2>&-\nexec sleep 1000\n");
    said_nothing(&trial(&project, &["--timeout", "1s"], 3));
}

#[test]
fn an_agent_that_exits_without_an_answer_breaks_the_trial() {
    let trial = trial(&project().claude("text 'almost there'; exit 0"), &[], 3);
    assert_eq!((&trial["outcome"], &trial["fault"]), (&"broken".into(), &"environment".into()));
    reason(&trial, &["without finishing its answer", "exit code 0"]);
}

#[test]
fn the_output_of_an_agent_that_fails_immediately_is_quoted() {
    let program = "#!/bin/sh\necho 'cannot find module 13' >&2\nexit 3\n";
    let trial = trial(&project().claude_program(program), &[], 3);
    assert_eq!((&trial["outcome"], &trial["fault"]), (&"broken".into(), &"environment".into()));
    reason(&trial, &["exit code 3", "cannot find module 13"]);
}

#[test]
fn an_agent_that_is_killed_is_reported_with_the_signal() {
    reason(&trial(&project().claude("kill -9 $$"), &[], 3), &["signal 9"]);
}

#[test]
fn a_child_that_keeps_stdout_open_does_not_block() {
    for ending in ["result done", "result done; exec sleep 1000"] {
        let project = project();
        let pipe = project.process_pipe("tether");
        let path = pipe.path().display();
        let acts = format!(
            "setsid sh -c 'trap \"\" TERM HUP; exec 9>{path}; : > $HOME/here; while :; do sleep 1000; done' &\n\
             while [ ! -e $HOME/here ]; do :; done\n{ending}"
        );
        let project = project.claude(&acts);
        assert_eq!(trial(&project, &[], 0)["outcome"], "passed");
        pipe.wait_until_closed();
    }
    let project = project().claude("setsid sleep 1000 & exit 0");
    reason(&trial(&project, &[], 3), &["without finishing its answer"]);
}

#[test]
fn invalid_utf_8_is_replaced() {
    let acts = r#"printf '\377\376 junk\n'; printf '\303(' >&2; result "$(printf 'done \377')""#;
    let trial = trial(&project().claude(acts), &[], 0);
    assert_eq!(trial["answer"], "done \u{fffd}");
}

#[test]
fn a_partial_event_is_reported_as_invalid_json() {
    let acts = r#"printf '{"type":"assistant","message":{"id":"m\n'; printf '{"type":"result","is_err'; exit 0"#;
    reason(&trial(&project().claude(acts), &[], 3), &["a line that is not valid JSON"]);
}

#[test]
fn an_agent_that_ignores_sigterm_is_killed_after_timeout_and_grace() {
    for floor in ["0", "1"] {
        let project = project().env("TRIALRUN_NO_NAMESPACE", floor);
        let pipe = project.process_pipe("tether");
        let path = pipe.path().display();
        let acts = format!(
            "exec 9>{path}; trap '' TERM INT HUP; setsid sh -c 'trap \"\" TERM; while :; do sleep 1000; done' &\n\
             while :; do sleep 1000; done"
        );
        let project = project.claude(&acts);
        said_nothing(&trial(&project, &["--timeout", "1s", "--stop-grace", "200ms"], 3));
        pipe.wait_until_closed();
    }
}

#[test]
fn a_missing_agent_breaks_the_trial_with_a_hint() {
    let project = project().env("PATH", "/usr/bin:/bin").env("ANTHROPIC_API_KEY", "sk-test");
    reason(&trial(&project, &[], 3), &["`claude` is not on the PATH", "npm install"]);

    let project = project.env("TRIALRUN_CLAUDE", "no-such-claude");
    reason(&trial(&project, &[], 3), &["TRIALRUN_CLAUDE", "`no-such-claude`"]);

    let project = self::project().claude_program("#!/bin/sh\n");
    let bin = project.dir().join("bin");
    fs::set_permissions(bin.join("claude"), fs::Permissions::from_mode(0o644)).unwrap();
    let project = project.env("PATH", &format!("{}:/usr/bin:/bin", bin.display()));
    reason(&trial(&project, &[], 3), &["`claude` is not on the PATH"]);

    let project = self::project().claude_program("#!/no/such/interpreter\n");
    reason(&trial(&project, &[], 3), &["cannot run", "claude"]);
}

#[test]
fn broken_attempts_are_retried_and_failed_ones_are_not() {
    let project = project();
    let marker = project.dir().join("first").display().to_string();
    let project = project.claude(&format!("[ -e {marker} ] && result done; touch {marker}; exit 1"));
    project.write("s.yaml", &scenario("claude-code", "user_prompt: go\n"));
    let report = project.report(&["s.yaml"], 0);
    let trial = &report["trials"][0];
    assert_eq!((&trial["outcome"], &trial["attempts"][0]["outcome"]), (&"passed".into(), &"broken".into()));

    let project = self::project().claude("result 'nothing of the kind'");
    project.write("s.yaml", &scenario("claude-code", "user_prompt: go\n"));
    let report = project.report(&["s.yaml"], 1);
    assert_eq!(report["trials"][0]["attempts"].as_array().unwrap().len(), 1);
}

// Setup commands.

#[test]
fn a_setup_command_that_fails_or_hangs_is_named() {
    let project = project();
    let run = |command: &str, arguments: &[&str]| {
        let fixtures = format!("fixtures: {{setup_commands: [\"{command}\"]}}\nuser_prompt: done\n");
        project.write("s.yaml", &scenario("fake", &fixtures));
        let all: Vec<&str> = ["s.yaml", "--retries", "0"].into_iter().chain(arguments.iter().copied()).collect();
        let trial = project.report(&all, 3)["trials"][0].clone();
        assert_eq!((&trial["outcome"], &trial["fault"]), (&"broken".into(), &"environment".into()));
        nothing_is_left(&project);
        trial
    };
    reason(&run("echo no such table >&2; exit 7", &[]), &["exit 7", "exit code 7", "no such table"]);
    let hanging = run("trap '' TERM; while :; do sleep 1000; done", &["--setup-timeout", "1s"]);
    reason(&hanging, &["sleep 1000", "within 1 s", "setup_timeout"]);
}

// The record.

#[track_caller]
fn refused(ran: Ran, code: i32, parts: &[&str]) {
    let ran = ran.exits(code);
    assert!(parts.iter().all(|part| ran.err.contains(part)), "{parts:?}: {}", ran.output());
    assert_eq!(ran.out, "", "something ran: {}", ran.output());
}

fn quick(project: &Project) {
    project.write("s.yaml", &scenario("fake", "user_prompt: done\n"));
}

/// Runs `script` as root of its own mount namespace, with the program as `$1`, in the project's directory.
#[track_caller]
fn with_mounts(project: &Project, script: &str) -> Ran {
    let run = project.command(&[]);
    let mut unshare = Command::new("unshare");
    unshare.args(["--mount", "--map-root-user", "sh", "-c", script, "sh"]).arg(run.get_program());
    unshare.current_dir(project.dir()).env_clear();
    unshare.envs(run.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let ran = Live::start(unshare).end();
    assert!(ran.code != 111 && !ran.err.contains("unshare failed"), "cannot mount: {}", ran.output());
    ran
}

#[test]
fn a_record_that_cannot_be_created_prevents_the_run() {
    let project = project();
    quick(&project);
    project.write(".trialrun", "a file\n");
    refused(project.run(&["run", "s.yaml"]), 2, &["cannot record into", ".trialrun", "--state DIR"]);
    assert_eq!(project.read(".trialrun"), "a file\n");
    project.run(&["run", "s.yaml", "--state", "elsewhere"]).exits(0);
    assert_eq!(project.left_over(), [""; 0]);
}

#[test]
#[cfg_attr(not(has = "isolation"), ignore = "needs a kernel that isolates processes; run scripts/test")]
fn a_record_on_a_read_only_disk_prevents_the_run() {
    let mount = "mkdir -p .trialrun && mount -t tmpfs tmpfs .trialrun && ";
    let read_only = "mount -o remount,ro .trialrun || exit 111; ";
    for before in ["", "\"$1\" run s.yaml > /dev/null; "] {
        let project = project();
        quick(&project);
        let script = format!("{{ {mount} true; }} || exit 111; {before}{read_only} exec \"$1\" run s.yaml");
        let ran = with_mounts(&project, &script);
        refused(ran, 3, &["record", ".trialrun", "--state DIR"]);
    }
}

#[test]
#[cfg_attr(not(has = "isolation"), ignore = "needs a kernel that isolates processes; run scripts/test")]
fn a_full_disk_under_the_record_stops_the_run_with_a_message() {
    let project = project();
    let flood = "!call Bash {\"command\": \"ls\"} => ".to_owned() + &noise(2000);
    let prompt = format!("user_prompt: |\n  {flood}\n  done\n");
    project.write("s.yaml", &scenario("fake", &prompt));
    let script = "mkdir .trialrun && mount -t tmpfs -o size=600k tmpfs .trialrun || exit 111; \
                  \"$1\" run s.yaml --trials 2000 --jobs 2; code=$?; cp -r .trialrun kept; exit $code";
    let ran = with_mounts(&project, script);
    let ran = ran.exits(3);
    assert!(ran.err.contains("recording failed") && ran.err.contains("full"), "{}", ran.output());
    assert!(!ran.err.contains("panicked"), "{}", ran.output());
    // Everything reported before is recorded.
    let history = project.run(&["history", "--cases", "--last", "5000", "--json", "--state", "kept"]).exits(0).json();
    let recorded = history.as_array().unwrap().len();
    let passed = ran.out.lines().filter(|line| line.contains(" passed ") && line.contains("s::s#")).count();
    assert!(passed > 0 && recorded == passed, "{passed} reported, {recorded} recorded");
}

/// Returns text that cannot be compressed.
fn noise(length: usize) -> String {
    let mut state = 0x9e37_79b9_u64;
    (0..length)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            char::from(b'a' + (state >> 60) as u8)
        })
        .collect()
}

#[test]
#[cfg_attr(not(has = "isolation"), ignore = "needs a kernel that isolates processes; run scripts/test")]
fn a_full_disk_under_the_sandboxes_breaks_the_trial() {
    let project = project();
    let fixtures =
        format!("fixtures: {{files_committed: [{{path: a.txt, content: {}}}]}}\nuser_prompt: done\n", noise(200_000));
    project.write("s.yaml", &scenario("fake", &fixtures));
    let script = "mount -t tmpfs -o size=100k tmpfs \"$TMPDIR\" || exit 111; exec \"$1\" run s.yaml --retries 0";
    let ran = with_mounts(&project, script);
    let ran = ran.exits(3);
    assert!(ran.out.contains("No space left on device"), "{}", ran.output());
    assert!(!ran.err.contains("panicked"), "{}", ran.output());
}

#[test]
#[cfg_attr(not(has = "isolation"), ignore = "needs a kernel that isolates processes; run scripts/test")]
fn a_full_disk_excuses_only_an_agent_that_did_not_fill_it() {
    let fill = "head -c 9000000 /dev/zero > \"$TMPDIR/full\"";
    let let_others = "echo > BASE/begin; read -r line < BASE/end";
    for (act, code) in [(fill, 1), (let_others, 3)] {
        let project = project();
        let act = act.replace("BASE", &project.dir().to_string_lossy());
        project.write("agent.sh", &format!("{act}; echo 'No space left on device'\n"));
        let configured = "agents: {filler: {type: subprocess, command: [sh, agent.sh], mode: oneshot}}\n";
        project.write("trialrun.yaml", configured);
        project.write("s.yaml", &scenario("filler", "user_prompt: go\n"));
        let script = "mount -t tmpfs -o size=2m tmpfs \"$TMPDIR\" && mkfifo begin end || exit 111; \
             (read -r line < begin; FILL; echo > end) & \"$1\" run s.yaml --retries 0; code=$?; kill $! 2> /dev/null; exit $code";
        let ran = with_mounts(&project, &script.replace("FILL", fill)).exits(code);
        assert_eq!(ran.out.contains("the disk was full while the agent worked"), code == 3, "{}", ran.output());
    }
}

#[test]
fn an_agent_that_removes_its_sandbox_or_nests_too_deeply_fails() {
    let project = project();
    project.write("agent.sh", "rm -rf \"$PWD\"; echo done\n");
    project.write("homeless.sh", "rm -rf \"$HOME\"; ln -s / \"$HOME\"; echo done\n");
    let deep = format!("{}{}", "[".repeat(110), "]".repeat(110));
    project.write("deep.sh", &format!("echo '{{\"text\": \"done\", \"more\": {deep}}}'\n"));
    project.write(
        "trialrun.yaml",
        "agents:\n  remover: {type: subprocess, command: [sh, agent.sh], mode: oneshot}\n  \
         homeless: {type: subprocess, command: [sh, homeless.sh], mode: oneshot}\n  \
         deep: {type: subprocess, command: [sh, deep.sh], mode: oneshot, output: json}\n",
    );
    for (agent, reason) in [
        ("remover", "removed its working directory"),
        ("homeless", "removed its home"),
        ("deep", "more than 100 levels"),
    ] {
        project.write("s.yaml", &scenario(agent, "user_prompt: go\n"));
        let report = project.report(&["s.yaml", "--retries", "0"], 1);
        let trial = &report["trials"][0];
        assert_eq!(trial["outcome"], "failed", "{trial}");
        assert!(trial.to_string().contains(reason), "{trial}");
    }
}

/// Overwrites a file with `bytes`, starting at the offset `index`.
fn overwrite(file: &Path, index: usize, bytes: &[u8]) {
    let mut all = fs::read(file).unwrap();
    all[index..index + bytes.len()].copy_from_slice(bytes);
    fs::write(file, all).unwrap();
}

#[test]
fn a_file_that_is_not_a_record_is_rejected_and_unchanged() {
    let project = project();
    quick(&project);
    for text in ["not a database at all, but a text", "SQLite format 3\0 and nothing more"] {
        project.write(".trialrun/runs.db", text);
        refused(project.run(&["run", "s.yaml"]), 2, &["runs.db", "not changed"]);
        assert_eq!(project.read(".trialrun/runs.db"), text);
        project.run(&["history"]).exits(2);
    }
}

#[test]
fn a_newer_record_is_rejected_and_unchanged() {
    let project = project();
    quick(&project);
    project.run(&["run", "s.yaml"]).exits(0);
    let file = project.dir().join(".trialrun/runs.db");
    overwrite(&file, 60, &4711_u32.to_be_bytes());
    let before = fs::read(&file).unwrap();
    for command in [["run", "s.yaml"].as_slice(), &["history"], &["status"]] {
        refused(project.run(command), 2, &["newer version of trialrun", "4711", "not changed"]);
    }
    assert!(before == fs::read(&file).unwrap(), "it was touched");
}

#[test]
fn a_damaged_record_is_refused_without_a_panic() {
    let project = project();
    quick(&project);
    project.run(&["run", "s.yaml", "--trials", "20"]).exits(0);
    let file = project.dir().join(".trialrun/runs.db");
    let length = fs::metadata(&file).unwrap().len() as usize;
    overwrite(&file, 4096, &vec![0xa5; length - 4096]);
    for command in [["run", "s.yaml"].as_slice(), &["history"], &["status"], &["show", "s"]] {
        let ran = project.run(command);
        assert!([2, 3].contains(&ran.code), "{command:?}: {}", ran.output());
        assert!(ran.err.contains("record") && !ran.err.contains("panicked"), "{command:?}: {}", ran.output());
    }
}
