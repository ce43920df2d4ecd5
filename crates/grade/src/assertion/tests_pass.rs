//! `tests_pass`: the tests of the agent's project pass.

use model::{Change, Effect, FileChange, Trace};

use super::command::Command;
use super::command_ran::shell_calls;
use super::prelude::*;
use crate::test_run::TestRun;

pub(super) const ASSERTION: Assertion = Assertion::written("tests_pass", parse)
    .summary("The tests of the project pass.")
    .fields(&[
        Field::optional("command", "string", "Command that runs the tests.").or("the agent's own last test run"),
        Field::optional(
            "timeout",
            "duration",
            "Time limit of `command`, such as `30s` or `2m`. A number is milliseconds.",
        )
        .or("30s"),
        TITLE,
    ])
    .parameters(&[Parameter::Value("command")])
    .pass(
        || json!({"id": "tests-pass", "type": "tests_pass"}),
        || {
            EvidenceBuilder::new()
                .call("Edit", json!({"file_path": "basket.ts"}))
                .call("Bash", json!({"command": "npm test"}))
                .answer("12 passed, 0 failed.")
        },
    )
    .fail(
        || json!({"id": "tests-pass", "type": "tests_pass", "command": "npm test"}),
        || EvidenceBuilder::new().ran("npm test", 1, "11 passed, 1 failed\n", ""),
    );

#[derive(Debug)]
struct OwnRun;

fn parse(reading: &mut Reading<'_>) -> Option<Arc<dyn Matcher>> {
    if reading.fields.get("command").is_some() {
        return Some(Arc::new(Command::succeeds(reading)?));
    }
    if let Some(node) = reading.fields.get("timeout") {
        reading.problems.push(node.error("`timeout` needs a `command`; the agent's own runs have no time limit here"));
        return None;
    }
    Some(Arc::new(OwnRun))
}

impl Matcher for OwnRun {
    fn judge(&self, evidence: &Evidence) -> Judgement {
        let trace = &evidence.trace;
        let runs = shell_calls(trace).filter_map(|(at, line)| Some((at, TestRun::of(&line.commands())?)));
        let Some((call, run)) = runs.last() else {
            return Ok(Verdict::undecided(
                "the agent did not run a known test command; set `command` to the command that runs the tests",
            ));
        };
        let summary = format!("call {}: {}", call + 1, trace.calls[call].call.summary());
        let written = written_program(evidence, &run.program);
        let verdict = match (&trace.calls[call].result, run.untold) {
            (None, _) => Verdict::undecided("the last test run did not finish"),
            (_, Some(reason)) => Verdict::undecided(format!("{reason}, so their result is not known")),
            (Some(result), _) if result.is_error => {
                Verdict::unmet("the last test run failed", "a successful test run", summary.clone())
                    .evidence(last_lines(&result.content))
            }
            _ if wrote_after(trace, call) => Verdict::undecided("the agent changed files after its last test run"),
            _ if written.is_some() => Verdict::undecided(format!(
                "the agent wrote `{}`, so its result proves nothing; set `command` to the command that runs the tests",
                written.unwrap_or_default()
            )),
            _ => {
                return Ok(Verdict::met(format!("the last test run succeeded, {summary}")).at_call(trace, call));
            }
        };
        Ok(verdict.evidence([summary]).at_call(trace, call))
    }
}

/// Folders whose programs come from installed packages.
const INSTALLED: [&str; 8] = ["node_modules", ".venv", "venv", "vendor", ".tox", ".nox", "site-packages", ".bundle"];

/// Returns the file that the agent wrote and that runs as `program`: the program itself, or one with the same name
/// that may be found on a search path. Installed packages do not count.
fn written_program<'e>(evidence: &'e Evidence, program: &str) -> Option<&'e str> {
    let sandbox = evidence.collected.sandbox.as_deref().unwrap_or_default();
    let path = program.strip_prefix(sandbox).unwrap_or(program).trim_start_matches('/').trim_start_matches("./");
    let mut written = evidence.collected.files_changed.iter().filter(|file| file.change != Change::Deleted);
    let is_it = |file: &&FileChange| {
        let is_installed = file.path.split('/').any(|folder| INSTALLED.contains(&folder));
        let name = file.path.rsplit('/').next().unwrap_or(&file.path);
        !is_installed && (file.path == path || file.path.ends_with(&format!("/{path}")) || name == path)
    };
    written.find(is_it).map(|file| file.path.as_str())
}

/// Returns `true` if a file was written after that call.
fn wrote_after(trace: &Trace, call: usize) -> bool {
    let later = trace.calls.iter().skip(call + 1);
    later.into_iter().any(|traced| {
        traced.call.effect == Effect::Write && !traced.result.as_ref().is_some_and(|result| result.is_error)
    })
}

fn last_lines(text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(8)..].iter().map(|line| format::shortened(line)).collect()
}

#[cfg(test)]
mod tests {
    use model::Status;
    use serde_json::json;

    use super::*;
    use crate::check::tests::judged;

    fn of(story: EvidenceBuilder) -> model::Finding {
        judged(&json!({"id": "a", "type": "tests_pass"}), &story.evidence())
    }

    fn run(command: &str) -> EvidenceBuilder {
        EvidenceBuilder::new().call("Bash", json!({"command": command}))
    }

    #[test]
    fn the_last_conclusive_run_counts() {
        for (command, expected) in [
            ("npm test", Status::Met),
            ("cd a && python -m pytest -q && echo done", Status::Met),
            ("bash -lc 'go test ./...'", Status::Met),
            ("npm run test:unit", Status::Met),
            ("npm test | tail", Status::Undecided),
            ("bash -lc 'npm test; true'", Status::Undecided),
            ("npm test || true", Status::Undecided),
            ("sh test.sh", Status::Met),
            ("cd a && ./run-tests --all", Status::Met),
            ("scripts/test", Status::Met),
            ("npm install", Status::Undecided),
            ("cat test", Status::Undecided),
            ("cat test.sh", Status::Undecided),
            ("test -e latest.sh", Status::Undecided),
            ("/usr/bin/test -e a.sh", Status::Undecided),
            ("sh attest.sh", Status::Undecided),
        ] {
            assert_eq!(of(run(command)).status, expected, "{command}");
        }
    }

    #[test]
    fn lines_and_programs_that_cannot_fail_do_not_meet_it() {
        for command in ["! npm test", "pytest --version", "make -n test", "cargo test --no-run", "PATH=.:$PATH pytest"]
        {
            assert_eq!(of(run(command)).status, Status::Undecided, "{command}");
        }
        for (command, file, expected) in [
            ("./pytest", "pytest", Status::Undecided),
            ("pytest -q", "bin/pytest", Status::Undecided),
            ("sh scripts/test.sh", "scripts/test.sh", Status::Undecided),
            ("/box/repo/run-tests", "run-tests", Status::Undecided),
            ("npx jest", "node_modules/.bin/jest", Status::Met),
            ("pytest -q", "tests/test_a.py", Status::Met),
        ] {
            assert_eq!(of(run(command).added(file)).status, expected, "{command} with {file}");
        }
    }

    #[test]
    fn a_failed_run_is_unmet_and_a_run_before_later_changes_is_undecided() {
        let mut evidence = run("npm test").evidence();
        let result = evidence.trace.calls[0].result.as_mut().unwrap();
        (result.is_error, result.content) = (true, "1 failed\n".into());
        let finding = judged(&json!({"id": "a", "type": "tests_pass"}), &evidence);
        assert_eq!((finding.status, finding.evidence[0].as_str()), (Status::Unmet, "1 failed"));
        let edited = of(run("npm test").call("Write", json!({"file_path": "a"})));
        assert_eq!(edited.reason, "the agent changed files after its last test run");
    }
}
