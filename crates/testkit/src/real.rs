//! Real agent CLIs, where somebody has installed them. `TRIALRUN_TEST_AGENTS` names the directory that `scripts/agents`
//! has filled. Without it tests are skipped, and say so; `TRIALRUN_REQUIRE_AGENTS=1` makes that a failure.

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
    /// What `--agent` calls it.
    pub name: &'static str,
    /// Its program.
    pub program: &'static str,
}

/// Claude Code.
pub const CLAUDE_CODE: RealAgent = RealAgent { name: "claude-code", program: "claude" };
/// Codex.
pub const CODEX: RealAgent = RealAgent { name: "codex", program: "codex" };
/// OpenCode.
pub const OPENCODE: RealAgent = RealAgent { name: "opencode", program: "opencode" };

impl RealAgent {
    /// Its program, where it is installed.
    pub fn path(self) -> Option<PathBuf> {
        let dir = std::env::var_os("TRIALRUN_TEST_AGENTS").map(PathBuf::from)?;
        Some(dir.join(self.program)).filter(|program| program.exists())
    }

    /// The directory that it is in. `None` where there is none: then the test is over. `scripts/test` counts the lines.
    #[track_caller]
    pub fn installed(self, test: &str) -> Option<PathBuf> {
        let Self { name, program } = self;
        let found = self.path().and_then(|program| program.parent().map(Path::to_owned));
        if found.is_some() {
            tell(&format!("real agent ran: {name}, {test}"));
        } else {
            tell(&format!(
                "real agent SKIPPED: {name}, {test}: TRIALRUN_TEST_AGENTS names no directory with {program}"
            ));
            assert_ne!(std::env::var("TRIALRUN_REQUIRE_AGENTS").as_deref(), Ok("1"), "a skip is forbidden");
        }
        found
    }

    /// A project with the agent on its `PATH`, and `trialrun` started where there is no network but loopback, if the
    /// machine allows that. `None`: the test is over. `scratch` is a directory for what starts it.
    #[track_caller]
    pub fn project(self, trialrun: &str, scratch: &str, test: &str) -> Option<Project> {
        let agents = self.installed(test)?;
        Some(Project::new(offline(trialrun, scratch)).path_first(&agents))
    }
}

/// A program that starts `trialrun` without a network, or itself where that cannot be taken away.
fn offline(trialrun: &str, scratch: &str) -> PathBuf {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    let make = || {
        let unshare = if nix::unistd::geteuid().is_root() { "unshare -n" } else { "unshare -rn" };
        let inside = "ip link set lo up && exec \"$0\" \"$@\"";
        let allowed = Command::new("sh")
            .args(["-c", &format!("{unshare} sh -c '{inside}' true")])
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success());
        if !allowed {
            tell("no network namespace here: real agents run with the machine's network");
            return PathBuf::from(trialrun);
        }
        let program = Path::new(scratch).join(format!("offline-trialrun-{}", std::process::id()));
        fs::write(&program, format!("#!/bin/sh\nexec {unshare} sh -c '{inside}' '{trialrun}' \"$@\"\n"))
            .expect("a program");
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("a program");
        program
    };
    PROGRAM.get_or_init(make).clone()
}

/// Writes a line past the test harness, which keeps the output of tests that pass to itself.
#[allow(clippy::explicit_write, reason = "what the macros print is kept back where a test passes")]
fn tell(line: &str) {
    writeln!(std::io::stderr(), "\n{line}").expect("standard error");
}

/// The first trial of a report. What its script expected of the requests must have been so.
#[track_caller]
pub fn only_trial(report: &Value) -> Value {
    let trial = report["trials"][0].clone();
    requests_were_expected(&trial);
    trial
}

/// Fails the test unless the requests of `trial` were what its script expected.
#[track_caller]
pub fn requests_were_expected(trial: &Value) {
    for finding in trial["findings"].as_array().expect("findings") {
        if finding["type"] == json!("request_check") {
            assert_eq!(finding["status"], "met", "{finding:#}");
        }
    }
}
