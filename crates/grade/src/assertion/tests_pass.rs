//! `tests_pass`: the tests of the agent's project pass.

use model::Probed;

use super::command::Command;
use super::command_ran::shell_calls;
use super::prelude::*;
use crate::evidence::test_run;

/// Timeout of the project's own test command, in milliseconds. It may have to compile the project.
const OWN_TIMEOUT_MS: u64 = 300_000;

pub(crate) const ASSERTION: Assertion = Assertion::written("tests_pass", parse)
    .summary("The tests of the project pass.")
    .fields(&[
        Field::optional("command", "string", "Command that runs the tests.").or("the project's own"),
        Field::optional("timeout", "duration", "Time limit, such as `30s` or `2m`. A number is milliseconds.")
            .or("30s, or 5m without `command`"),
        TITLE,
    ])
    .parameters(&[Parameter::Value("command")])
    .pass(
        || json!({"id": "tests-pass", "type": "tests_pass", "command": "npm test"}),
        || EvidenceBuilder::new().ran("npm test", 0, "12 passed, 0 failed\n", ""),
    )
    .fail(
        || json!({"id": "tests-pass", "type": "tests_pass", "command": "npm test"}),
        || EvidenceBuilder::new().ran("npm test", 1, "11 passed, 1 failed\n", ""),
    );

#[derive(Debug)]
struct TestsPass(Command);

fn parse(reading: &mut Reading<'_>) -> Option<Arc<dyn Matcher>> {
    let command = match reading.fields.get("command") {
        Some(_) => Command::succeeds(reading)?,
        None => Command::of_script(test_run::OWN_COMMAND, OWN_TIMEOUT_MS, reading),
    };
    Some(Arc::new(TestsPass(command)))
}

impl Matcher for TestsPass {
    fn needs(&self) -> Vec<Need> {
        self.0.needs()
    }

    fn judge(&self, evidence: &Evidence) -> Judgement {
        let trace = &evidence.trace;
        let verdict = self.0.verdict(evidence);
        let runs = shell_calls(trace).filter(|(_, line)| test_run::is_in(&line.commands()));
        Ok(match runs.last() {
            Some((call, _)) => {
                let summary = trace.calls[call].call.summary();
                verdict.evidence([format!("the agent's own last test run: call {}: {summary}", call + 1)])
            }
            None => verdict,
        })
    }

    fn is_met_by(&self, need: &Need, found: &Probed) -> bool {
        self.0.is_met_by(need, found)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::process::Stdio;

    use model::{ControlRun, Status};
    use serde_json::json;

    use super::*;
    use crate::check::tests::judged;

    fn finding_of(story: EvidenceBuilder) -> model::Finding {
        judged(&json!({"id": "a", "type": "tests_pass"}), &story.evidence())
    }

    fn own(exit_code: i32, stderr: &str) -> EvidenceBuilder {
        let found = Probed::Ran {
            exit_code: Some(exit_code),
            stdout: String::new(),
            stderr: stderr.to_owned(),
            clipped: false,
            restored: Vec::new(),
            edited: Vec::new(),
            control: None,
            scripts: None,
            new_tests: None,
            failing_test: None,
            rewards: Vec::new(),
            solution: None,
            missing_program: None,
        };
        let need = Need::Command { run: test_run::OWN_COMMAND.to_owned(), timeout_ms: OWN_TIMEOUT_MS };
        EvidenceBuilder::new().probed(need, found)
    }

    #[test]
    fn what_the_agent_ran_is_a_note_and_decides_nothing() {
        let claimed = |command: &str| own(1, "1 failed\n").call("Bash", json!({"command": command}));
        for command in ["echo \"$(pytest)\"", "pytest -k nothing", "npm test --script-shell=/bin/true", "pytest"] {
            assert_eq!(finding_of(claimed(command)).status, Status::Unmet, "{command}");
        }
        let finding = finding_of(own(0, "").call("Bash", json!({"command": "npm test"})));
        assert_eq!(finding.status, Status::Met);
        assert_eq!(finding.evidence, ["the agent's own last test run: call 1: Bash(command=\"npm test\")"]);
    }

    #[test]
    fn a_project_without_a_test_command_is_undecided() {
        let finding = finding_of(own(127, "trialrun: the project does not say how its tests are run; set `command`\n"));
        assert_eq!(finding.status, Status::Undecided);
        assert_eq!(finding.reason, "the project does not say how its tests are run; set `command`");
        assert_eq!(
            finding_of(own(127, "trialrun: test command: npm test\nsh: jest: not found\n")).status,
            Status::Unmet
        );
    }

    #[test]
    fn a_project_whose_test_command_the_agent_removed_does_not_pass() {
        let unsaid = "trialrun: the project does not say how its tests are run; set `command`\n";
        let ran = |exit_code, stderr: &str, control| Probed::Ran {
            exit_code: Some(exit_code),
            stdout: String::new(),
            stderr: stderr.to_owned(),
            clipped: false,
            restored: Vec::new(),
            edited: Vec::new(),
            control,
            scripts: None,
            new_tests: None,
            failing_test: None,
            rewards: Vec::new(),
            solution: None,
            missing_program: None,
        };
        for (fixture, expected) in [(ran(1, "", None), Status::Unmet), (ran(127, unsaid, None), Status::Undecided)] {
            let control = ControlRun { files: Vec::new(), with_files: fixture.clone(), fixture: Some(fixture) };
            let need = Need::Command { run: test_run::OWN_COMMAND.to_owned(), timeout_ms: OWN_TIMEOUT_MS };
            let found = ran(127, unsaid, Some(Box::new(control)));
            assert_eq!(finding_of(EvidenceBuilder::new().probed(need, found)).status, expected);
        }
    }

    #[test]
    fn the_projects_files_say_how_its_tests_are_run() {
        let path = tempfile::tempdir().unwrap();
        for program in ["npm", "pnpm", "cargo", "go", "make", "pytest", "rspec", "sh"] {
            let file = path.path().join(program);
            std::fs::write(&file, "#!/bin/sh\n").unwrap();
            std::fs::set_permissions(&file, PermissionsExt::from_mode(0o755)).unwrap();
        }
        let search = format!("{}:{}", path.path().display(), std::env::var("PATH").unwrap());
        let command_of = |files: &[(&str, &str)]| {
            let project = tempfile::tempdir().unwrap();
            for (name, content) in files {
                let file = project.path().join(name);
                std::fs::create_dir_all(file.parent().unwrap()).unwrap();
                std::fs::write(file, content).unwrap();
            }
            let mut shell = std::process::Command::new("/bin/sh");
            shell.args(["-c", test_run::OWN_COMMAND]).env("PATH", &search).current_dir(project.path());
            let output = shell.stdout(Stdio::null()).output().unwrap();
            String::from_utf8(output.stderr).unwrap().lines().next().unwrap_or_default().to_owned()
        };
        let test = "{\"scripts\": {\"test\": \"jest\"}}";
        for (files, expected) in [
            (&[("package.json", test), ("Makefile", "test:\n")][..], "npm test"),
            (&[("package.json", test), ("pnpm-lock.yaml", "")], "pnpm test"),
            (&[("package.json", "{}"), ("Makefile", "test: all\n")], "make test"),
            (&[("Cargo.toml", "")], "cargo test"),
            (&[("go.mod", "")], "go test ./..."),
            (&[(".rspec", "")], "rspec"),
            (&[("test.sh", "exit 1")], "sh ./test.sh"),
        ] {
            assert_eq!(command_of(files), format!("trialrun: test command: {expected}"), "{files:?}");
        }
        assert_eq!(
            command_of(&[("a.txt", "")]),
            "trialrun: the project does not say how its tests are run; set `command`"
        );
    }
}
