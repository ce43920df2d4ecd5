//! Recognises test runs in command lines, as far as their text shows them.

use crate::format;
use crate::shell::{self, Simple};

/// Script that finds the project's own test command and runs it.
pub(crate) const OWN_COMMAND: &str = include_str!("../assertion/test_command.sh");

/// Returns the name of a command line for readers.
pub(crate) fn command_name(run: &str) -> String {
    if is_own_command(run) { "the project's test command".to_owned() } else { format::quoted(run) }
}

/// Returns `true` if a command is that of an assertion about the project's own tests.
pub fn is_own_command(run: &str) -> bool {
    run == OWN_COMMAND
}

/// Programs that always run tests.
const RUNNERS: &str = "pytest py.test unittest tox nox jest vitest mocha ava rspec phpunit ctest bats playwright";

/// Programs that run tests if followed by one of `WORDS`.
const WITH_WORD: [&str; 22] = [
    "npm", "pnpm", "yarn", "bun", "deno", "node", "cargo", "go", "make", "just", "mvn", "mvnw", "gradle", "gradlew",
    "dotnet", "mix", "swift", "sbt", "rake", "rails", "zig", "composer",
];

/// Words that make a program of `WITH_WORD` run tests.
const WORDS: [&str; 7] = ["test", "tests", "t", "nextest", "check", "verify", "--test"];

/// Options with which no test runs, whatever the program.
const NO_RUN: &str = "\
    --version --help -h --collect-only --collectonly --co --no-run --dry-run --just-print --recon --question --touch \
    --list --list-tests --list-test --listTests --list-files --show-only --showConfig --notest --setup-plan \
    --setup-only --fixtures --markers --ignore-errors";

/// Options of one program with which no test runs.
const NO_RUN_OF: [(&str, &str); 12] = [
    ("pytest", "-V"),
    ("py.test", "-V"),
    ("cargo", "-V"),
    ("go", "-c -n -list -vet"),
    ("ctest", "-N"),
    ("gradle", "-m"),
    ("gradlew", "-m"),
    ("dotnet", "-t"),
    ("tox", "-l -n"),
    ("nox", "-l"),
    ("bats", "-c --count"),
    ("vitest", "list"),
];

/// Beginnings of options with which no test runs.
const NO_RUN_PREFIXES: [&str; 5] = ["-DskipTests", "-Dmaven.test.skip", "--show-only=", "-list=", "--list="];

/// Returns `true` if one of the commands of a line looks like a test run.
pub(crate) fn is_in(commands: &[Simple]) -> bool {
    commands.iter().any(|simple| {
        // `command -v` only looks for a program.
        let is_search = |pair: &[String]| pair[0] == "command" && matches!(pair[1].as_str(), "-v" | "-V");
        !simple.words.windows(2).any(is_search) && shell::invocations(&simple.words).iter().any(|words| is_run(words))
    })
}

fn is_run(words: &[String]) -> bool {
    let Some((program, rest)) = words.split_first() else { return false };
    let name = program.rsplit('/').next().unwrap_or(program);
    let is_word = |word: &String| WORDS.contains(&word.as_str()) || word.starts_with("test:");
    let is_named = RUNNERS.split(' ').any(|known| known == name)
        || (WITH_WORD.contains(&name) && rest.iter().take(3).any(is_word))
        || is_script(program);
    is_named && !rest.iter().any(|option| is_no_run(name, option))
}

/// Returns `true` if the program runs no test with `option`.
fn is_no_run(name: &str, option: &str) -> bool {
    let has = |options: &str| options.split(' ').any(|known| known == option);
    if has(NO_RUN) || NO_RUN_PREFIXES.iter().any(|prefix| option.starts_with(prefix)) {
        return true;
    }
    if name == "make" {
        let letters =
            option.strip_prefix('-').filter(|letters| letters.chars().all(|letter| letter.is_ascii_alphabetic()));
        // In `-fn`, the letter `n` is the name of a file.
        let flags =
            letters.map(|letters| letters.split(['f', 'C', 'I', 'o', 'W', 'j', 'l']).next().unwrap_or_default());
        return flags.is_some_and(|flags| flags.contains(['n', 'q', 't', 'i']));
    }
    NO_RUN_OF.iter().any(|(program, options)| *program == name && has(options))
}

/// Returns `true` if the program is one of the project's scripts for running tests: `test.sh`, `./run-tests`,
/// `scripts/test_all.py`. The shell's own `test` does not count.
fn is_script(program: &str) -> bool {
    let (folder, file) = program.rsplit_once('/').unwrap_or(("", program));
    let is_file = file.contains('.') || !(folder.is_empty() || folder.ends_with("/bin"));
    is_file && file.split(['.', '-', '_']).any(|word| matches!(word, "test" | "tests"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_runs_are_recognised_by_their_text() {
        for line in [
            "pytest --version",
            "python -m pytest --collect-only -q",
            "make -n test",
            "make -sn test",
            "cargo test --no-run",
            "go test -c ./...",
            "npm test --help",
            "ctest -N",
            "mvn -DskipTests verify",
            "gradle test --dry-run",
            "command -v pytest",
            "which pytest",
            "npm install",
            "cat test.sh",
            "test -e latest.sh",
            "/usr/bin/test -e a.sh",
            "sh attest.sh",
        ] {
            assert!(!is_in(&shell::commands(line)), "{line}");
        }
        for line in [
            "cd a && python -m pytest -q && echo done",
            "bash -lc 'go test ./...'",
            "npm run test:unit",
            "make -C name test",
            "ctest -V",
            "cargo test -- --nocapture",
            "sh test.sh",
            "cd a && ./run-tests --all",
            "scripts/test",
        ] {
            assert!(is_in(&shell::commands(line)), "{line}");
        }
    }
}
