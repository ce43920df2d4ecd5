//! The log of what the program does (`TRIALRUN_LOG`).

#![allow(clippy::unwrap_used)]

use std::fs;
use std::os::unix::fs::PermissionsExt;

use testkit::Project;

const PROGRAM: &str = env!("CARGO_BIN_EXE_trialrun");

/// Secrets of the machine and of the configuration. Both are also names of programs, which the log contains.
const SECRETS: [&str; 2] = ["correct-horse-battery", "canary-of-the-project"];

#[test]
fn the_log_names_trials_and_phases_without_their_messages_or_secrets() {
    let project = Project::new(PROGRAM).env("API_KEY", SECRETS[0]);
    let mut config = String::from("agents:\n");
    for (secret, agent) in SECRETS.iter().zip(["first", "second"]) {
        project.write(&format!("bin/{secret}"), "#!/bin/sh\necho a message\n");
        fs::set_permissions(project.dir().join("bin").join(secret), PermissionsExt::from_mode(0o755)).unwrap();
        let keys = "type: subprocess, mode: oneshot, env: { SERVICE_TOKEN: canary-of-the-project }";
        config.push_str(&format!("  {agent}: {{ {keys}, command: bin/{secret} }}\n"));
    }
    project.write("trialrun.yaml", &config);
    project.write("scenarios/s.yaml", "name: s\nturns: [hi]\nassertions:\n  - contains: message\n");
    let run = ["run", "--agent", "first", "--agent", "second"];
    assert!(!project.run(&run).exits(0).err.contains("trial{"), "without the variable, there is no log");

    let mut command = project.command(&run);
    assert!(command.env("TRIALRUN_LOG", "debug").env("TRIALRUN_LOG_FILE", "a.log").status().unwrap().success());
    let log = project.read("a.log");
    for part in [
        "trial{id=s::s@first#1 attempt=1}:phase{name=\"act\"}: trialrun_sandbox",
        "/bin/[masked]",
        "outcome=\"passed\"",
    ] {
        assert!(log.contains(part), "{part}: {log}");
    }
    assert!(!SECRETS.iter().any(|secret| log.contains(secret)) && !log.contains("a message"), "{log}");

    let ran = project.command(&run).env("TRIALRUN_LOG", "trialrun_runner=info").output().unwrap();
    let log = String::from_utf8(ran.stderr).unwrap();
    assert!(
        log.contains("INFO trialrun_runner") && !log.contains("DEBUG") && !log.contains("trialrun_sandbox"),
        "{log}"
    );
}

#[test]
fn a_level_that_does_not_exist_is_an_error() {
    let ran = Project::new(PROGRAM).env("TRIALRUN_LOG", "loud").run(&["list"]).exits(2);
    assert!(ran.err.contains("invalid value `loud` for the `TRIALRUN_LOG` variable"), "{}", ran.err);
}
