//! Real agent CLIs. `TRIALRUN_TEST_AGENTS` is the directory that `scripts/agents` fills. Tests that need them are ignored
//! where `scripts/needs` does not find them.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use serde_json::{Value, json};

use crate::Project;

/// An agent CLI.
#[derive(Debug, Clone, Copy)]
pub struct RealAgent {
    /// Name for `--agent`.
    pub name: &'static str,
    /// Name of its program.
    pub program: &'static str,
}

/// Claude Code.
pub const CLAUDE_CODE: RealAgent = RealAgent { name: "claude-code", program: "claude" };
/// Codex.
pub const CODEX: RealAgent = RealAgent { name: "codex", program: "codex" };
/// OpenCode.
pub const OPENCODE: RealAgent = RealAgent { name: "opencode", program: "opencode" };

impl RealAgent {
    /// Returns the directory that contains the agent's program.
    #[track_caller]
    pub fn installed(self) -> PathBuf {
        let agents = crate::path_in("TRIALRUN_TEST_AGENTS");
        assert!(agents.join(self.program).exists(), "{} has no `{}`", agents.display(), self.program);
        agents
    }

    /// Returns a project with the agent on its `PATH`, in which `trialrun` starts without any network except loopback,
    /// if the machine allows that. `scratch` is a directory for the program that starts `trialrun`.
    #[track_caller]
    pub fn project(self, trialrun: &str, scratch: &str) -> Project {
        Project::new(offline(trialrun, scratch)).path_first(&self.installed())
    }
}

/// Returns `true` if the calling test should continue: it runs without any network except loopback, or the machine does
/// not allow that. Otherwise, the test ran in a process without a network and passed. `name` is the test's full name.
pub fn is_offline(name: &str) -> bool {
    const INSIDE: &str = "TRIALRUN_TEST_IS_OFFLINE";
    let Some(unshare) = unshare().filter(|_| std::env::var_os(INSIDE).is_none()) else { return true };
    let test = std::env::current_exe().expect("the program of the tests");
    let inside = format!("exec {unshare} sh -c 'ip link set lo up && exec \"$0\" \"$@\"' \"$0\" \"$@\"");
    let mut command = Command::new("sh");
    command
        .args(["-c", &inside])
        .arg(test)
        .args([name, "--exact", "--include-ignored", "--nocapture"])
        .env(INSIDE, "1");
    let output = command.output().expect("a process");
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
    false
}

/// Returns the command that starts a program without a network, if the machine allows that.
fn unshare() -> Option<&'static str> {
    let unshare = if nix::unistd::geteuid().is_root() { "unshare -n" } else { "unshare -rn" };
    let allowed = Command::new("sh")
        .args(["-c", &format!("{unshare} ip link set lo up")])
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    allowed.then_some(unshare)
}

/// Returns a program that starts `trialrun` without a network, or directly where that is not possible.
fn offline(trialrun: &str, scratch: &str) -> PathBuf {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    let make = || {
        let inside = "ip link set lo up && exec \"$0\" \"$@\"";
        let Some(unshare) = unshare() else {
            tell("no network namespace here: real agents run with the machine's network");
            return PathBuf::from(trialrun);
        };
        let program = Path::new(scratch).join(format!("offline-trialrun-{}", std::process::id()));
        fs::write(&program, format!("#!/bin/sh\nexec {unshare} sh -c '{inside}' '{trialrun}' \"$@\"\n"))
            .expect("a program");
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("a program");
        program
    };
    PROGRAM.get_or_init(make).clone()
}

/// Writes a line that bypasses the test harness, which captures the output of passing tests.
#[allow(clippy::explicit_write, reason = "the output of macros is captured when a test passes")]
fn tell(line: &str) {
    writeln!(std::io::stderr(), "\n{line}").expect("standard error");
}

/// Returns the first trial of a report. Its requests must match the expectations of its script.
#[track_caller]
pub fn only_trial(report: &Value) -> Value {
    let trial = report["trials"][0].clone();
    requests_were_expected(&trial);
    trial
}

/// Fails the test unless the requests of `trial` match the expectations of its script.
#[track_caller]
pub fn requests_were_expected(trial: &Value) {
    for finding in trial["findings"].as_array().expect("findings") {
        if finding["type"] == json!("request_check") {
            assert_eq!(finding["status"], "met", "{finding:#}");
        }
    }
}
