//! Recognises test runs in command lines, and command lines whose exit code is not that of the tests.

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

/// Options with which no test runs, whatever the program.
const NO_RUN: &str = "\
    --version --help -h --collect-only --collectonly --co --no-run --dry-run --just-print --recon --question --touch \
    --list --list-tests --list-test --listTests --list-files --show-only --showConfig --notest --setup-plan \
    --setup-only --fixtures --markers --ignore-errors";

/// Options of one program with which no test runs, or failures do not count.
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

/// Variables that replace programs or change what they run.
const VARIABLES: [&str; 7] =
    ["PYTEST_ADDOPTS=", "PYTEST_PLUGINS=", "MAKEFLAGS=", "GNUMAKEFLAGS=", "LD_PRELOAD=", "BASH_ENV=", "SHELLOPTS="];

/// Commands that change the meaning of later words in the line.
const REDEFINING: [&str; 7] = ["function", "eval", "alias", "hash", "trap", "enable", "set"];

/// Commands after which the rest of the line does not run.
const ENDING: [&str; 3] = ["exit", "exec", "return"];

/// Maximum nesting of command lines.
const DEEPEST: usize = 4;

/// A command line that runs tests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TestRun {
    /// Program that runs the tests, as written.
    pub program: String,
    /// Reason why the line's exit code may not be that of the tests.
    pub untold: Option<&'static str>,
}

impl TestRun {
    /// Returns the first test run in the commands of a line; `None` if there is none.
    pub(crate) fn of(commands: &[Simple]) -> Option<Self> {
        Self::within(commands, 0)
    }

    fn within(commands: &[Simple], depth: usize) -> Option<Self> {
        let (at, program) = commands.iter().enumerate().find_map(|(at, simple)| {
            // `command -v` only looks for a program.
            let is_search = |pair: &[String]| pair[0] == "command" && matches!(pair[1].as_str(), "-v" | "-V");
            if simple.words.windows(2).any(is_search) {
                return None;
            }
            let run = shell::invocations(&simple.words).into_iter().find(|words| is_run(words))?;
            Some((at, run.into_iter().next()?))
        })?;
        let simple = &commands[at];
        let mut untold = untold(&commands[..at], simple, &commands[at..]);
        // A shell that runs a line exits with that line's exit code.
        let code = simple.words.last().filter(|_| depth < DEEPEST && !is_run(&simple.words));
        if let Some(inner) = code.and_then(|code| Self::within(&shell::commands(code), depth + 1)) {
            untold = untold.or(inner.untold);
        }
        Some(Self { program, untold })
    }
}

/// Returns the reason why a line's exit code may not be that of the tests in `simple`.
fn untold(before: &[Simple], simple: &Simple, from: &[Simple]) -> Option<&'static str> {
    if from.iter().any(|simple| matches!(simple.then, Then::Other | Then::Or)) {
        return Some("the command line of the last test run does not end with the tests");
    }
    if simple.words.iter().take_while(|word| !is_plain(word)).any(|word| word == "!") {
        return Some("the command line of the last test run inverts the exit code of the tests");
    }
    let names = |simple: &Simple| simple.words.iter().find(|word| is_plain(word)).cloned().unwrap_or_default();
    let is_fallback = |at: usize| at > 0 && before[at - 1].then == Then::Or;
    let ends = |(at, simple): (usize, &Simple)| ENDING.contains(&names(simple).as_str()) && !is_fallback(at);
    let skips = |(at, simple): (usize, &Simple)| {
        simple.then == Then::Or && before.get(at + 1).is_none_or(|next| !ENDING.contains(&names(next).as_str()))
    };
    if before.iter().enumerate().any(ends) || before.iter().enumerate().any(skips) {
        return Some("the command line of the last test run may not have reached the tests");
    }
    let sets = before.iter().chain([simple]).flat_map(|simple| &simple.words).any(|word| is_replacement(word));
    if sets || before.iter().any(|simple| redefines(&names(simple), simple)) || is_dry_shell(&simple.words) {
        return Some("the command line of the last test run replaces programs");
    }
    None
}

/// Returns `true` for a word that is neither an assignment nor reserved by the shell.
fn is_plain(word: &str) -> bool {
    !shell::is_before_command(word)
}

/// Returns `true` for an assignment that replaces programs or changes what they run. `PATH` may be extended at its end.
fn is_replacement(word: &str) -> bool {
    let is_path = word.strip_prefix("PATH=").is_some_and(|value| !value.starts_with("$PATH:"));
    is_path || VARIABLES.iter().any(|variable| word.starts_with(variable))
}

fn redefines(name: &str, simple: &Simple) -> bool {
    let arguments = || simple.words.iter().skip_while(|word| *word != name).skip(1);
    match name {
        // Activating an installation is common.
        "source" | "." => {
            !arguments().next().is_some_and(|file| file.ends_with("/activate") || file.ends_with("/nvm.sh"))
        }
        "set" => arguments().any(|word| word == "noexec" || (word.starts_with('-') && word.contains('n'))),
        name => REDEFINING.contains(&name),
    }
}

/// Returns `true` if a shell only reads its script.
fn is_dry_shell(words: &[String]) -> bool {
    let mut words = words.iter().filter(|word| is_plain(word));
    let is_shell = words.next().is_some_and(|program| {
        matches!(program.rsplit('/').next().unwrap_or(program), "bash" | "sh" | "zsh" | "dash" | "ksh")
    });
    is_shell && words.take_while(|word| word.starts_with('-')).any(|word| !word.starts_with("--") && word.contains('n'))
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

/// Returns `true` if the program runs no test with `option`, or its exit code does not show whether one failed.
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

    fn of(line: &str) -> Option<TestRun> {
        TestRun::of(&shell::commands(line))
    }

    #[test]
    fn with_an_option_that_runs_no_test_there_is_no_test_run() {
        for line in [
            "pytest --version",
            "python -m pytest --collect-only -q",
            "pytest --co",
            "make -n test",
            "make -sn test",
            "make --dry-run check",
            "make -i test",
            "cargo test --no-run",
            "cargo test -- --list",
            "go test -c ./...",
            "go test -list=. ./...",
            "npm test --help",
            "jest --listTests",
            "ctest -N",
            "mvn -DskipTests verify",
            "gradle test --dry-run",
            "command -v pytest",
            "which pytest",
        ] {
            let found = of(line);
            assert!(found.as_ref().is_none_or(|run| run.untold.is_some()), "{line}: {found:?}");
        }
        for line in ["make -C name test", "make -j4 test", "ctest -V", "pytest -n 4", "cargo test -- --nocapture"] {
            assert!(of(line).is_some_and(|run| run.untold.is_none()), "{line}");
        }
    }

    #[test]
    fn a_line_that_hides_the_exit_code_of_the_tests_is_inconclusive() {
        for line in [
            "! pytest",
            "cd a && ! pytest -q",
            "true || pytest",
            "true || (cd a && pytest)",
            "exit 0; pytest",
            "exec true; pytest",
            "trap 'exit 0' EXIT; pytest",
            "eval 'pytest() { :; }' && pytest",
            "function pytest { :; }\npytest",
            "pytest() { :; }; pytest",
            "hash -p /bin/true pytest; pytest",
            "source ./env.sh && pytest",
            "set -n; pytest",
            "sh -n test.sh",
            "PATH=.:$PATH pytest",
            "export PATH=\"$PWD/bin:$PATH\" && pytest",
            "PYTEST_ADDOPTS=--co pytest",
            "MAKEFLAGS=-n make test",
            "env LD_PRELOAD=x.so pytest",
            "bash -c '! pytest'",
        ] {
            assert!(of(line).is_some_and(|run| run.untold.is_some()), "{line}: {:?}", of(line));
        }
        for line in [
            "cd a || exit 1; pytest",
            "source .venv/bin/activate && pytest",
            "set -euo pipefail; pytest",
            "PATH=$PATH:./bin npm test",
            "PYTHONPATH=src pytest",
            "CI=1 npm test",
        ] {
            assert!(of(line).is_some_and(|run| run.untold.is_none()), "{line}: {:?}", of(line));
        }
    }

    #[test]
    fn the_program_is_returned_as_written() {
        let program = |line: &str| of(line).map(|run| run.program);
        assert_eq!(program("cd a && ./pytest -q").as_deref(), Some("./pytest"));
        assert_eq!(program("bash -lc 'sh scripts/test.sh'").as_deref(), Some("scripts/test.sh"));
    }
}
