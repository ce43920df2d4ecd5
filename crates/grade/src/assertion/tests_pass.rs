//! `tests_pass`: the tests of the agent's project pass.

use model::{Effect, Trace};

use super::command::Command;
use super::command_ran::{Line, shell_calls};
use super::prelude::*;
use crate::shell::{self, Simple, Then};

/// Programs that always run tests.
const RUNNERS: &str = "pytest py.test unittest tox nox jest vitest mocha ava rspec phpunit ctest bats playwright";

/// Programs that run tests if followed by one of `WORDS`.
const WITH_WORD: [&str; 22] = [
    "npm", "pnpm", "yarn", "bun", "deno", "node", "cargo", "go", "make", "just", "mvn", "mvnw", "gradle", "gradlew",
    "dotnet", "mix", "swift", "sbt", "rake", "rails", "zig", "composer",
];

/// Words that make a program of `WITH_WORD` run tests.
const WORDS: [&str; 7] = ["test", "tests", "t", "nextest", "check", "verify", "--test"];

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
        let runs = shell_calls(trace).filter_map(|(at, line)| Some((at, run_of(&line, 0)?)));
        let Some((call, is_conclusive)) = runs.last() else {
            return Ok(Verdict::undecided(
                "the agent did not run a known test command; set `command` to the command that runs the tests",
            ));
        };
        let summary = format!("call {}: {}", call + 1, trace.calls[call].call.summary());
        let verdict = match &trace.calls[call].result {
            None => Verdict::undecided("the last test run did not finish"),
            Some(_) if !is_conclusive => Verdict::undecided(
                "the command line of the last test run does not end with the tests, so their result is unknown",
            ),
            Some(result) if result.is_error => {
                Verdict::unmet("the last test run failed", "a successful test run", summary.clone())
                    .evidence(last_lines(&result.content))
            }
            Some(_) if wrote_after(trace, call) => {
                Verdict::undecided("the agent changed files after its last test run")
            }
            Some(_) => {
                return Ok(Verdict::met(format!("the last test run succeeded, {summary}")).at_call(trace, call));
            }
        };
        Ok(verdict.evidence([summary]).at_call(trace, call))
    }
}

/// Returns `None` if `line` does not run tests. Otherwise returns true if the exit code of the line is that of the
/// tests.
fn run_of(line: &Line, depth: usize) -> Option<bool> {
    let commands = line.commands();
    let index =
        commands.iter().position(|simple| shell::invocations(&simple.words).iter().any(|words| is_run(words)))?;
    let is_last = |simple: &Simple| simple.then != Then::Other;
    let is_conclusive = commands[index..].iter().all(is_last);
    // A shell that runs a line exits with that line's exit code.
    let inner = commands[index].words.last().filter(|_| depth < 4 && !is_run(&commands[index].words));
    let inner = inner.and_then(|inner| run_of(&Line::Text(inner.clone()), depth + 1));
    Some(is_conclusive && inner.unwrap_or(true))
}

fn is_run(words: &[String]) -> bool {
    let Some((program, rest)) = words.split_first() else { return false };
    let name = program.rsplit('/').next().unwrap_or(program);
    let is_word = |word: &String| WORDS.contains(&word.as_str()) || word.starts_with("test:");
    RUNNERS.split(' ').any(|known| known == name)
        || (WITH_WORD.contains(&name) && rest.iter().take(3).any(is_word))
        || is_script(program)
}

/// True if the program is a script of the project that runs tests: `test.sh`, `./run-tests`, `scripts/test_all.py`.
/// The shell's own `test` does not count.
fn is_script(program: &str) -> bool {
    let (folder, file) = program.rsplit_once('/').unwrap_or(("", program));
    let is_file = file.contains('.') || !(folder.is_empty() || folder.ends_with("/bin"));
    is_file && file.split(['.', '-', '_']).any(|word| matches!(word, "test" | "tests"))
}

/// True if a file was written after that call.
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
