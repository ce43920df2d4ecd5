//! Ctrl-C and similar signals: the first one stops the run gracefully, the second immediately, and both leave nothing
//! behind.

#![allow(clippy::unwrap_used)]

use std::io::{PipeReader, Read, pipe};
use std::process::{Child, Command, Stdio};

use nix::fcntl::OFlag;
use nix::pty::{grantpt, posix_openpt, ptsname_r, unlockpt};
use nix::sys::signal::Signal;
use serde_json::Value;
use testkit::{Live, ProcessPipe, Project, until};

const SIGNALS: [(Signal, i32, &str); 3] =
    [(Signal::SIGINT, 130, "SIGINT"), (Signal::SIGTERM, 143, "SIGTERM"), (Signal::SIGHUP, 129, "SIGHUP")];

fn project() -> Project {
    Project::new(env!("CARGO_BIN_EXE_trialrun"))
}

const ASSERTIONS: &str = "assertions: [{id: few, type: turn_count_at_most, max: 1000000}]\n";

fn write(project: &Project, agent: &str, more: &str) {
    project.write("s.yaml", &format!("scenario: s\nsystem_prompt: Say hello.\nagent: {agent}\n{more}{ASSERTIONS}"));
}

/// Returns the outcomes of a project's trials, by trial number.
fn outcomes(project: &Project) -> Vec<String> {
    let history = project.run(&["history", "--cases", "--last", "1000", "--json"]).exits(0).json();
    let mut rows: Vec<(u64, String)> = history
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (row["repetition"].as_u64().unwrap(), row["outcome"].as_str().unwrap().to_owned()))
        .collect();
    rows.sort();
    rows.into_iter().map(|(_, outcome)| outcome).collect()
}

#[track_caller]
fn nothing_is_left(project: &Project) {
    project.no_process_is_left();
    assert_eq!(project.left_over(), [""; 0]);
}

fn ready(live: &mut Live, sandboxes: usize) {
    (0..sandboxes).for_each(|_| drop(live.line_with("\"sandbox_ready\"")));
}

#[test]
fn each_signal_has_its_exit_code_and_cancels_unfinished_trials() {
    for (signal, code, name) in SIGNALS {
        let project = project();
        write(&project, "fake", "fixtures: {git_init: true}\nuser_prompt: '!sleep 1h'\n");
        let run = ["run", "s.yaml", "--trials", "5", "--jobs", "2", "--report", "jsonl", "--report", "terminal=screen"];
        let mut live = project.start(&run);
        ready(&mut live, 2);
        live.signal(signal);
        let ran = live.end().exits(code);
        assert_eq!(ran.err, "", "{}", ran.output());
        let screen = project.read("screen");
        assert_eq!(screen.matches("× cancelled").count(), 5, "{screen}");
        assert!(screen.contains(name), "{screen}");
        assert_eq!(outcomes(&project), ["cancelled"; 5]);
        let status = project.run(&["status"]).exits(0);
        assert!(status.out.contains(&format!("stopped by {name}")), "{}", status.output());
        nothing_is_left(&project);
    }
}

/// Returns the command with which another program starts `run`.
fn started_by(starter: &[&str], run: &Command) -> Command {
    let mut command = Command::new(starter[0]);
    command.args(&starter[1..]).arg(run.get_program()).args(run.get_args()).stdin(Stdio::null());
    command.current_dir(run.get_current_dir().unwrap());
    command.env_clear().envs(run.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command
}

#[test]
fn a_file_beyond_the_limit_is_an_error_that_names_the_limit() {
    let project = project();
    write(&project, "fake", "user_prompt: hello\n");
    let limited = ["sh", "-c", r#"ulimit -f 8; exec "$@""#, "sh"];
    let ran = started_by(&limited, &project.command(&["run", "s.yaml"])).output().unwrap();
    let error = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.code().is_some() && error.contains("`ulimit -f`"), "{ran:?}");
}

#[test]
fn a_closed_terminal_ends_the_run_like_sighup() {
    let project = project().env("TERM", "xterm");
    write(&project, "fake", "fixtures: {git_init: true}\nuser_prompt: '!sleep 1h'\n");
    let mut terminal = posix_openpt(OFlag::O_RDWR | OFlag::O_NOCTTY | OFlag::O_CLOEXEC).unwrap();
    grantpt(&terminal).unwrap();
    unlockpt(&terminal).unwrap();
    // At its end, the run prints where the page is.
    let reports = ["--report", "terminal", "--report", "html=page.html"];
    let run = project.command(&[&["run", "s.yaml", "--trials", "5", "--jobs", "2"][..], &reports].concat());
    // The first terminal that the leader of a session opens becomes its controlling terminal.
    let leader = ["setsid", "sh", "-c", r#"exec "$@" <"$0" >"$0" 2>&1"#, &ptsname_r(&terminal).unwrap()];
    let mut child = started_by(&leader, &run).spawn().unwrap();
    let (mut screen, mut part) = (String::new(), [0; 4096]);
    while !screen.contains("2 running") {
        let length = terminal.read(&mut part).unwrap();
        screen.push_str(&String::from_utf8_lossy(&part[..length]));
    }
    drop(terminal);
    assert_eq!(child.wait().unwrap().code(), Some(129));
    assert_eq!(outcomes(&project), ["cancelled"; 5]);
    nothing_is_left(&project);
}

#[test]
fn an_outcome_reached_before_the_signal_is_kept() {
    let project = project();
    write(&project, "fake", "user_prompt: hello\n");
    project.write("z.yaml", "scenario: z\nsystem_prompt: Say hello.\nagent: fake\nuser_prompt: '!sleep 1h'\n");
    let mut live = project.start(&["run", "s.yaml", "z.yaml", "--jobs", "1", "--report", "jsonl"]);
    live.line_with("\"trial_finished\"");
    live.line_with("\"waiting\"");
    live.signal(Signal::SIGINT);
    live.end().exits(130);
    let mut both = outcomes(&project);
    both.sort();
    assert_eq!(both, ["cancelled", "passed"]);
}

#[test]
fn a_gracefully_stopped_agent_reports_its_usage() {
    let project = project();
    let pipe = project.process_pipe("tether");
    let acts = format!("exec 9>{}; text working; echo here >&9; hear; result 'was interrupted'", pipe.path().display());
    let project = project.claude(&acts);
    write(&project, "claude-code", "user_prompt: go\n");
    let live = project.start(&["run", "s.yaml"]);
    pipe.wait_for_line("here");
    live.signal(Signal::SIGINT);
    live.end().exits(130);
    pipe.wait_until_closed();
    let shown = project.run(&["show", "s", "--json"]).exits(0).json();
    assert_eq!((&shown["outcome"], &shown["usage"]["input"]), (&"cancelled".into(), &10.into()), "{shown}");
    assert_eq!(shown["tool_calls"], Value::Array(Vec::new()));
    nothing_is_left(&project);
}

/// Returns an agent that notices the request to stop, reports it to the pipe, and keeps running, as does its child,
/// which writes wherever it can.
fn stubborn(pipe: &ProcessPipe) -> String {
    let path = pipe.path().display();
    format!(
        r#"exec 9>{path}
trap '' INT TERM HUP
setsid sh -c 'trap "" TERM INT HUP; while :; do mkdir -p $HOME/a/b && echo x > $HOME/a/b/c; done' &
echo here >&9
hear
echo asked >&9
while :; do sleep 1000; done"#
    )
}

#[test]
fn the_second_signal_kills_processes_that_ignore_the_first() {
    for floor in ["0", "1"] {
        let project = project().env("TRIALRUN_NO_NAMESPACE", floor);
        let pipe = project.process_pipe("tether");
        let project = project.claude(&stubborn(&pipe));
        write(&project, "claude-code", "user_prompt: go\n");
        let live = project.start(&["run", "s.yaml", "--stop-grace", "1h"]);
        pipe.wait_for_line("here");
        live.signal(Signal::SIGINT);
        pipe.wait_for_line("asked");
        live.signal(Signal::SIGINT);
        live.end().exits(130);
        pipe.wait_until_closed();
        assert_eq!(outcomes(&project), ["cancelled"]);
        nothing_is_left(&project);
    }
}

#[test]
fn processes_that_ignore_the_first_signal_are_killed_after_the_grace_period() {
    let project = project();
    let pipe = project.process_pipe("tether");
    let project = project.claude(&stubborn(&pipe));
    write(&project, "claude-code", "user_prompt: go\n");
    let live = project.start(&["run", "s.yaml", "--stop-grace", "100ms"]);
    pipe.wait_for_line("here");
    live.signal(Signal::SIGTERM);
    live.end().exits(143);
    pipe.wait_until_closed();
    assert_eq!(outcomes(&project), ["cancelled"]);
    nothing_is_left(&project);
}

#[test]
fn the_run_does_not_wait_for_a_suspended_process() {
    let project = project();
    let pipe = project.process_pipe("tether");
    let place = pipe.path().display().to_string();
    // Even a suspended agent receives the stop request; the command of an assertion gets the grace period.
    let agent = format!("exec 9>{place}; trap 'exit 3' TERM; echo here >&9; kill -STOP $$; result done");
    let project = project.claude(&agent);
    write(&project, "claude-code", "user_prompt: go\n");
    let live = project.start(&["run", "s.yaml", "--stop-grace", "1h"]);
    pipe.wait_for_line("here");
    live.signal(Signal::SIGTERM);
    live.end().exits(143);
    let second = project.process_pipe("second");
    let command = format!("exec 9>{}; echo there >&9; kill -STOP $$", second.path().display());
    project.write(
        "c.yaml",
        &format!(
            "scenario: c\nsystem_prompt: Say hello.\nagent: fake\nuser_prompt: hello\nfixtures: {{git_init: true}}\n\
             assertions: [{{id: c, type: command, run: '{}', timeout: 1h}}]\n",
            command.replace('\'', "''")
        ),
    );
    let live = project.start(&["run", "c.yaml", "--stop-grace", "100ms"]);
    second.wait_for_line("there");
    live.signal(Signal::SIGTERM);
    live.end().exits(143);
    nothing_is_left(&project);
}

#[test]
fn a_stop_does_not_wait_for_a_setup_command() {
    let project = project();
    let pipe = project.process_pipe("tether");
    let command =
        format!("exec 9>{}; trap '' TERM INT; echo here >&9; while :; do sleep 1000; done", pipe.path().display());
    write(&project, "fake", &format!("fixtures:\n  setup_commands:\n  - |\n    {command}\n"));
    let live = project.start(&["run", "s.yaml"]);
    pipe.wait_for_line("here");
    live.signal(Signal::SIGINT);
    live.end().exits(130);
    pipe.wait_until_closed();
    assert_eq!(outcomes(&project), ["cancelled"]);
    nothing_is_left(&project);
}

#[test]
fn constant_output_of_an_agent_does_not_delay_a_signal() {
    let project = project();
    let pipe = project.process_pipe("tether");
    let acts = format!("exec 9>{}; echo here >&9; trap '' TERM; while :; do text noise; done", pipe.path().display());
    let project = project.claude(&acts);
    write(&project, "claude-code", "user_prompt: go\nmax_turns: 1000000\n");
    let mut live = project.start(&["run", "s.yaml", "--timeout", "1h"]);
    pipe.wait_for_line("here");
    live.line_with("noise");
    live.signal(Signal::SIGINT);
    live.end().exits(130);
    pipe.wait_until_closed();
    nothing_is_left(&project);
}

#[test]
fn a_signal_that_was_ignored_from_the_start_stays_ignored() {
    let project = project();
    write(&project, "fake", "user_prompt: \"!sleep 300ms\\nDone.\"\n");
    let run = project.command(&["run", "s.yaml", "--trials", "2", "--jobs", "1"]);
    let mut nohup = Command::new("nohup");
    nohup.arg(run.get_program()).args(run.get_args()).current_dir(project.dir()).stdin(Stdio::null());
    nohup.env_clear().envs(run.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let mut live = Live::start(nohup);
    live.line_with("run ");
    live.signal(Signal::SIGHUP);
    live.end().exits(0);
    assert_eq!(outcomes(&project), ["passed", "passed"]);
}

/// A program whose stdout and stderr are not read, as if a pager were waiting for a key.
struct Unread(Child, PipeReader);

impl Unread {
    fn start(project: &Project, arguments: &[&str]) -> Self {
        let (reader, writer) = pipe().unwrap();
        let mut command = project.command(arguments);
        Self(command.stdout(writer.try_clone().unwrap()).stderr(writer).spawn().unwrap(), reader)
    }

    fn signal(&self, signal: Signal) {
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(self.0.id().cast_signed()), signal).unwrap();
    }

    #[track_caller]
    fn ends(&mut self, code: i32) {
        let mut status = None;
        assert!(until(|| {
            status = self.0.try_wait().unwrap();
            status.is_some()
        }));
        assert_eq!(status.unwrap().code(), Some(code));
    }
}

impl Drop for Unread {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Waits until the record shows that the run is over.
#[track_caller]
fn is_over(project: &Project) {
    let over = || {
        let status = project.run(&["status", "--json"]);
        status.code == 0 && status.json()["run"]["finished_at"].is_string()
    };
    assert!(until(over), "the run does not end");
}

/// Returns an agent that prints far more than fits into a pipe, and then runs `acts`.
fn talkative(project: Project, acts: &str) -> Project {
    let words = "word ".repeat(200);
    project.claude(&format!("for i in $(seq 400); do text '{words}'; done; {acts}"))
}

#[test]
fn a_blocked_terminal_does_not_fail_a_trial() {
    let project = talkative(project(), "result done");
    write(&project, "claude-code", "user_prompt: go\nmax_turns: 1000\n");
    let run =
        ["run", "s.yaml", "--trials", "3", "--timeout", "30s", "--report", "jsonl", "--report", "terminal=screen"];
    let mut unread = Unread::start(&project, &run);
    is_over(&project);
    assert_eq!(outcomes(&project), ["passed"; 3]);
    // Everything is shown in the end.
    let mut out = String::new();
    unread.1.read_to_string(&mut out).unwrap();
    unread.ends(0);
    let events: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(events.iter().zip(1..).all(|(event, seq)| event["seq"] == seq), "in order and without gaps");
    assert_eq!(events.last().unwrap()["event"]["type"], "run_finished");
    assert!(project.read("screen").contains("3 trials passed"), "{}", project.read("screen"));
}

#[test]
fn two_signals_end_a_run_with_a_blocked_terminal() {
    let project = project();
    let pipe = project.process_pipe("tether");
    let project = talkative(
        project,
        &format!("exec 9>{}; echo here >&9; hear; echo asked >&9; sleep 1000", pipe.path().display()),
    );
    write(&project, "claude-code", "user_prompt: go\nmax_turns: 1000\n");
    let run = ["run", "s.yaml", "--stop-grace", "1h", "--report", "jsonl", "--report", "terminal=screen"];
    let mut unread = Unread::start(&project, &run);
    pipe.wait_for_line("here");
    unread.signal(Signal::SIGINT);
    pipe.wait_for_line("asked");
    unread.signal(Signal::SIGINT);
    unread.ends(130);
    pipe.wait_until_closed();
    assert_eq!(outcomes(&project), ["cancelled"]);
    assert!(project.read("screen").contains("cancelled"), "the report that was not blocked is complete");
    nothing_is_left(&project);
}

#[test]
fn a_signal_after_the_run_ends_the_wait_for_a_blocked_terminal() {
    let project = talkative(project(), "result done");
    write(&project, "claude-code", "user_prompt: go\nmax_turns: 1000\n");
    let mut unread = Unread::start(&project, &["run", "s.yaml", "--report", "jsonl"]);
    is_over(&project);
    assert!(unread.0.try_wait().unwrap().is_none(), "it waits for its reader");
    unread.signal(Signal::SIGINT);
    unread.ends(0);
}

#[test]
fn the_third_signal_ends_the_program_immediately() {
    let project = project();
    let pipe = project.process_pipe("tether");
    let project = talkative(
        project,
        &format!("exec 9>{}; echo here >&9; hear; echo asked >&9; sleep 1000", pipe.path().display()),
    );
    write(&project, "claude-code", "user_prompt: go\nmax_turns: 1000\n");
    let mut unread = Unread::start(&project, &["run", "s.yaml", "--stop-grace", "1h", "--report", "jsonl"]);
    pipe.wait_for_line("here");
    unread.signal(Signal::SIGINT);
    pipe.wait_for_line("asked");
    unread.signal(Signal::SIGINT);
    // The run is over, and the program would wait briefly for its output to be read.
    is_over(&project);
    unread.signal(Signal::SIGTERM);
    unread.ends(143);
}
