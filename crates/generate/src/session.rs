//! A scenario from a session that somebody had with an agent: its messages, the files at its beginning, and assertions
//! about what it left behind.

use std::collections::BTreeMap;
use std::path::Path;

use mask::MASKED;

use crate::format::quoted;

/// Maximum number of assertions of each kind.
const MAX_ASSERTIONS: usize = 8;
/// Maximum length of a command in an assertion, in characters. Longer ones are scripts for one situation.
const MAX_COMMAND: usize = 200;
/// Length of a line that identifies a change, in characters.
const LINE: std::ops::RangeInclusive<usize> = 4..=160;

/// Programs that check a project, and the arguments with which they do.
const CHECKS: &[&str] = &[
    "bundle exec rspec",
    "bun test",
    "cargo check",
    "cargo clippy",
    "cargo nextest",
    "cargo test",
    "deno test",
    "dotnet test",
    "go test",
    "go vet",
    "gradle test",
    "./gradlew test",
    "make check",
    "make test",
    "mix test",
    "mvn test",
    "npm run lint",
    "npm run test",
    "npm test",
    "npx jest",
    "npx tsc",
    "npx vitest",
    "phpunit",
    "pnpm test",
    "pytest",
    "python -m pytest",
    "python -m unittest",
    "python3 -m pytest",
    "python3 -m unittest",
    "rspec",
    "ruff check",
    "swift test",
    "tsc",
    "uv run pytest",
    "yarn test",
];

/// Words in commands that remove, move or restore the files that the command names.
const REMOVAL: &[&str] = &["-delete", "checkout", "mv", "restore", "rm", "rmdir", "shred", "trash", "unlink"];
/// Words in commands of git that discard changes in files that the command does not name.
const DISCARDING: &[&str] = &["--hard", "clean", "stash"];

/// What happened in a session. Paths are relative to the project.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecordedSession {
    /// Id of the scenario.
    pub name: String,
    /// Messages of the user.
    pub messages: Vec<String>,
    /// Files that the agent wrote, with their contents before and after the session as far as they are known.
    pub files: BTreeMap<String, WrittenFile>,
    /// Commands that the agent ran, in order.
    pub commands: Vec<RanCommand>,
    /// Folder with the files at the beginning of the session, relative to the scenario.
    pub workspace: Option<String>,
    /// Remarks about the session for the reader of the scenario.
    pub notes: Vec<String>,
}

/// A file that the agent wrote.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WrittenFile {
    /// Content before; `None` if it did not exist.
    pub before: Option<String>,
    /// Content after the session; `None` if it is not known.
    pub after: Option<String>,
}

/// A command that the agent ran.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RanCommand {
    /// The command, as it can be run in the project.
    pub command: String,
    /// True if it failed.
    pub failed: bool,
}

impl RanCommand {
    /// Returns `true` if the command may have removed, moved or restored the file at `path`.
    pub fn may_remove(&self, path: &str) -> bool {
        self.command.split(['\n', ';', '&', '|']).any(|part| {
            let words: Vec<&str> = part
                .split(|letter: char| letter.is_whitespace() || "\"'`()".contains(letter))
                .filter(|word| !word.is_empty())
                .collect();
            let has = |wanted: &[&str]| words.iter().any(|word| wanted.contains(word));
            has(&["git"]) && has(DISCARDING) || has(REMOVAL) && words.iter().any(|word| may_name(word, path))
        })
    }
}

/// Returns `true` if a word of a command may name the file at `path`, a folder above it, or files with a pattern.
fn may_name(word: &str, path: &str) -> bool {
    let (word, path) = (Path::new(word.trim_start_matches("./")), Path::new(path));
    // The command may run in another folder.
    let is_same = word.file_name().is_some_and(|name| path.iter().any(|part| part == name));
    is_same
        || word.as_os_str().is_empty()
        || word == Path::new(".")
        || word.to_string_lossy().contains(['*', '?', '$', '{'])
}

/// Returns the scenario as YAML; `None` if nothing happened that an assertion could check.
pub fn scenario_of(session: &RecordedSession) -> Option<String> {
    let assertions = assertions(session);
    if assertions.is_empty() || session.messages.is_empty() {
        return None;
    }
    let mut text = String::new();
    for note in &session.notes {
        text.push_str(&format!("# {}\n", note.replace('\n', " ")));
    }
    text.push_str(&format!("scenario: {}\n", quoted(&session.name)));
    // A scenario needs a subject. The agent's own prompt is the one that the session had.
    text.push_str("system_prompt: You work on the project in the current directory.\n");
    match &session.messages[..] {
        [only] => text.push_str(&format!("user_prompt: {}\n", quoted(only))),
        several => {
            text.push_str("user_prompts:\n");
            text.extend(several.iter().map(|message| format!("  - {}\n", quoted(message))));
        }
    }
    text.push_str("fixtures:\n  git_init: true\n");
    if let Some(workspace) = &session.workspace {
        text.push_str(&format!("  copy_trees:\n    - from: {}\n", quoted(workspace)));
    }
    text.push_str("assertions:\n");
    text.extend(assertions.iter().map(|assertion| format!("  - {{ {assertion} }}\n")));
    Some(text)
}

/// Proposes assertions, each as `key: value` pairs.
fn assertions(session: &RecordedSession) -> Vec<String> {
    let mut proposed = Vec::new();
    for (index, (path, file)) in session.files.iter().take(MAX_ASSERTIONS).enumerate() {
        let number = index + 1;
        let path = quoted(path);
        let verb = if file.before.is_none() { "creates" } else { "changes" };
        match new_line(file) {
            Some(line) => {
                let line = quoted(line);
                proposed.push(format!("id: {verb}-{number}, type: file_contains, path: {path}, contains: {line}"));
            }
            // An adversary that creates empty files passes this one.
            None if file.before.is_none() => {
                proposed.push(format!("id: {verb}-{number}, type: file_exists, path: {path}"));
            }
            None => {}
        }
    }
    for (index, command) in green_commands(&session.commands).into_iter().take(MAX_ASSERTIONS).enumerate() {
        let number = index + 1;
        proposed.push(format!("id: succeeds-{number}, type: command, run: {}, timeout: 5m", quoted(command)));
    }
    proposed
}

/// Returns the longest line that a file got and that has no secret.
fn new_line(file: &WrittenFile) -> Option<&str> {
    let (before, after) = (file.before.as_deref().unwrap_or_default(), file.after.as_deref()?);
    let is_new =
        |line: &&str| LINE.contains(&line.chars().count()) && !before.contains(*line) && !line.contains(MASKED);
    after.lines().map(str::trim).filter(is_new).max_by_key(|line| line.len())
}

/// Returns the commands that failed at first and succeeded in the end, and those that check the project and succeeded in
/// the end.
fn green_commands(commands: &[RanCommand]) -> Vec<&str> {
    let mut found: Vec<(&str, bool, bool)> = Vec::new();
    for RanCommand { command, failed } in commands {
        let command = command.trim();
        match found.iter_mut().find(|(known, ..)| *known == command) {
            Some((_, has_failed, is_red)) => {
                *has_failed |= *failed;
                *is_red = *failed;
            }
            None => found.push((command, *failed, *failed)),
        }
    }
    let is_short = |command: &str| !command.contains('\n') && command.chars().count() <= MAX_COMMAND;
    // With a secret left out, a command is another one.
    let is_whole = |command: &str| !command.contains(MASKED);
    let is_green = |(command, has_failed, is_red): &(&str, bool, bool)| {
        !is_red && is_short(command) && is_whole(command) && (*has_failed || is_check(command))
    };
    found.into_iter().filter(is_green).map(|(command, ..)| command).collect()
}

/// Returns `true` if a command is one of [`CHECKS`], with any further arguments.
fn is_check(command: &str) -> bool {
    CHECKS.iter().any(|check| command.strip_prefix(check).is_some_and(|rest| rest.is_empty() || rest.starts_with(' ')))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session() -> RecordedSession {
        let ran = |command: &str, failed| RanCommand { command: command.into(), failed };
        let written = |before: Option<&str>, after: Option<&str>| WrittenFile {
            before: before.map(str::to_owned),
            after: after.map(str::to_owned),
        };
        RecordedSession {
            name: "greets".into(),
            messages: vec!["Add a greeting".into(), "Check \"it\"".into()],
            files: BTreeMap::from([
                ("empty.txt".to_owned(), written(None, Some("\n"))),
                ("greeting.txt".to_owned(), written(None, Some("Hello\n"))),
                ("main.py".to_owned(), written(Some("import os\n"), Some("import os\nprint('Hello, reader')\n"))),
                ("unknown.py".to_owned(), written(Some("x"), None)),
            ]),
            commands: vec![
                ran("ls", false),
                ran("sh check.sh", true),
                ran("cargo test -q", false),
                ran("sh check.sh", false),
                ran("pytest", true),
                ran("pytesting", false),
            ],
            workspace: Some("workspace".into()),
            notes: vec!["From a session of codex".into()],
        }
    }

    #[test]
    fn a_session_becomes_a_scenario_with_assertions_about_its_results() {
        let expected = r#"# From a session of codex
scenario: "greets"
system_prompt: You work on the project in the current directory.
user_prompts:
  - "Add a greeting"
  - "Check \"it\""
fixtures:
  git_init: true
  copy_trees:
    - from: "workspace"
assertions:
  - { id: creates-1, type: file_exists, path: "empty.txt" }
  - { id: creates-2, type: file_contains, path: "greeting.txt", contains: "Hello" }
  - { id: changes-3, type: file_contains, path: "main.py", contains: "print('Hello, reader')" }
  - { id: succeeds-1, type: command, run: "sh check.sh", timeout: 5m }
  - { id: succeeds-2, type: command, run: "cargo test -q", timeout: 5m }
"#;
        assert_eq!(scenario_of(&session()).unwrap(), expected);
    }

    #[test]
    fn nothing_is_asserted_about_secrets() {
        let written = |after: &str| WrittenFile { before: None, after: Some(after.to_owned()) };
        let ran = |failed| RanCommand { command: "KEY=[masked] sh check.sh".into(), failed };
        let files = [("a.txt", "name: shop\nkey: [masked]\n"), ("b.txt", "key: [masked]\n")];
        let files = files.map(|(path, after)| (path.to_owned(), written(after)));
        let session =
            RecordedSession { files: BTreeMap::from(files), commands: vec![ran(true), ran(false)], ..session() };
        let expected = [
            "id: creates-1, type: file_contains, path: \"a.txt\", contains: \"name: shop\"",
            "id: creates-2, type: file_exists, path: \"b.txt\"",
        ];
        assert_eq!(assertions(&session), expected);
    }

    #[test]
    fn commands_that_remove_or_move_files_are_recognised() {
        let may_remove = |command: &str| RanCommand { command: command.into(), failed: false }.may_remove("src/a.txt");
        for command in [
            "rm src/a.txt",
            "cd src && rm -f 'a.txt'",
            "rm -r src/",
            "rm src/*.txt",
            "git rm -q ./src/a.txt",
            "mv src/a.txt src/b.txt",
            "git checkout -- src/a.txt",
            "git checkout .",
            "git clean -fd",
            "git stash",
            "git reset --hard HEAD",
            "find . -name '*.txt' -delete",
        ] {
            assert!(may_remove(command), "{command}");
        }
        for command in
            ["cat src/a.txt", "rm b.txt && cat src/a.txt", "git checkout -b src-a", "make clean", "rm -r build"]
        {
            assert!(!may_remove(command), "{command}");
        }
    }

    #[test]
    fn a_session_without_results_becomes_no_scenario() {
        let idle = RecordedSession { files: BTreeMap::new(), commands: Vec::new(), ..session() };
        assert_eq!(scenario_of(&idle), None);
        assert_eq!(scenario_of(&RecordedSession { messages: Vec::new(), ..session() }), None);
    }
}
