//! Mistakes that users make in files. `tests/mistakes/NAME` is a correct project, and `NAME.txt` lists changes of one of its
//! files: the file, the lines that change (`-`), what they become (`+`), and what is reported before anything runs. Each
//! mistake is one problem, at its place, and a suggestion "did you mean" works when it is followed. Set
//! `TRIALRUN_UPDATE_EXPECTED=1` to rewrite what is reported.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::fs;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use model::Diagnostic;
use sandbox::Host;
use sandbox::supervise::Supervisor;
use session::{Overrides, Place, Session};

/// A correct project, in a directory of its own.
struct Correct {
    directory: tempfile::TempDir,
    targets: Vec<String>,
}

/// A change of one file.
struct Mistake<'t> {
    file: &'t str,
    /// The lines before the change.
    right: String,
    /// The lines after it.
    wrong: String,
}

impl<'t> Mistake<'t> {
    fn read(block: &'t str) -> Self {
        let mut lines = block.lines();
        let file = lines.next().unwrap();
        let of = |sign: char| {
            let lines = block.lines().skip(1).filter_map(|line| line.strip_prefix(sign));
            lines.map(|line| format!("{line}\n")).collect::<String>()
        };
        Self { file, right: of('-'), wrong: of('+') }
    }

    /// Returns the text with the mistake, and the lines that it changed, which include the one after it: something may
    /// be missing there.
    fn made(&self, text: &str) -> (String, RangeInclusive<usize>) {
        let padded = format!("\n{text}");
        let (before, after) = padded.split_once(&format!("\n{}", self.right)).expect(&self.right);
        assert!(!after.contains(&format!("\n{}", self.right)), "{} is there twice", self.right);
        let first = before.lines().count().max(1);
        let made = format!("{before}\n{}{after}", self.wrong);
        (made.strip_prefix('\n').unwrap().to_owned(), first..=first + self.wrong.lines().count())
    }
}

impl Correct {
    fn copied(name: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let folder = mistakes().join(name);
        for entry in walkdir::WalkDir::new(&folder).into_iter().map(Result::unwrap) {
            let copy = directory.path().join(entry.path().strip_prefix(&folder).unwrap());
            match entry.file_type().is_dir() {
                true => fs::create_dir_all(copy).unwrap(),
                false => drop(fs::copy(entry.path(), copy).unwrap()),
            }
        }
        Self { directory, targets: Vec::new() }
    }

    fn path(&self, file: &str) -> PathBuf {
        self.directory.path().join(file)
    }

    /// Returns everything that is reported before a run.
    fn problems(&self) -> Vec<Diagnostic> {
        let program = Path::new(env!("CARGO_BIN_EXE_trialrun"));
        let env = [("PATH".to_owned(), "/usr/bin:/bin".to_owned())].into();
        let host = Host {
            env,
            home: None,
            temp: self.directory.path().to_owned(),
            supervisor: Supervisor::new(program).unwrap(),
        };
        let directory = self.directory.path().to_owned();
        let place = Place { directory, state: None, agents: Vec::new(), host: Arc::new(host) };
        let overrides = Overrides { targets: self.targets.clone(), ..Overrides::default() };
        let session = Session::open(place, &overrides.targets).unwrap();
        let planned = session.resolve(&overrides).and_then(|spec| session.plan(&spec)).unwrap();
        let mut problems = planned.diagnostics.clone();
        for problem in planned.plan.trials.iter().flat_map(|trial| &trial.case.broken) {
            if !problems.contains(problem) {
                problems.push(problem.clone());
            }
        }
        problems
    }

    /// Returns the problem as it is listed, without the path of the directory.
    fn listed(&self, problem: &Diagnostic) -> String {
        let help = problem.help.iter().map(|help| format!("\n  = {help}"));
        let text = format!("{}: {problem}{}", severity(problem), help.collect::<String>());
        text.replace(&format!("{}/", self.directory.path().display()), "")
    }
}

fn severity(problem: &Diagnostic) -> &'static str {
    if problem.is_error() { "error" } else { "warning" }
}

fn mistakes() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mistakes")
}

/// Returns the text in which the suggested word replaces the wrong one, which stands at the place of the problem and is
/// named in its message. `None` if no word is suggested.
fn followed(problem: &Diagnostic, text: &str) -> Option<String> {
    let right = problem.help.first()?.strip_prefix("did you mean `")?.strip_suffix("`?")?;
    let place = problem.source.as_ref()?;
    let line: usize = text.split_inclusive('\n').take(place.line - 1).map(str::len).sum();
    let before: usize = text[line..].chars().take(place.column - 1).map(char::len_utf8).sum();
    let at = line + before + usize::from(text[line + before..].starts_with(['"', '\'']));
    let wrong = problem.message.split('`').skip(1).step_by(2).find(|named| text[at..].starts_with(named))?;
    Some(format!("{}{right}{}", &text[..at], &text[at + wrong.len()..]))
}

/// Checks the mistakes in the project `name`, whose tests are `targets`, or what is found if there are none.
fn hold(name: &str, targets: &[&str]) {
    let mut project = Correct::copied(name);
    project.targets = targets.iter().map(|target| (*target).to_owned()).collect();
    assert_eq!(project.problems(), [], "{name} is correct");
    let list = mistakes().join(format!("{name}.txt"));
    let known = fs::read_to_string(&list).unwrap();
    let (mut reported, mut wrong) = (Vec::new(), Vec::new());
    for block in known.trim_end().split("\n\n") {
        let mistake = Mistake::read(block);
        let path = project.path(mistake.file);
        let text = fs::read_to_string(&path).unwrap();
        let (made, lines) = mistake.made(&text);
        fs::write(&path, &made).unwrap();
        let problems = project.problems();
        let change: Vec<&str> =
            block.lines().take_while(|line| *line == mistake.file || line.starts_with(['-', '+'])).collect();
        let listed: Vec<String> = problems.iter().map(|problem| project.listed(problem)).collect();
        let [problem] = problems.as_slice() else {
            wrong.push(format!("{}\nis not one problem: {listed:#?}", change.join("\n")));
            fs::write(&path, &text).unwrap();
            continue;
        };
        let is_there = |line: usize| listed[0].contains(&format!("{}:{line}:", mistake.file));
        if !lines.clone().any(is_there) {
            wrong.push(format!("{}\nis not at lines {lines:?}: {}", change.join("\n"), listed[0]));
        }
        if let Some(followed) = followed(problem, &made) {
            fs::write(&path, followed).unwrap();
            let left = project.problems();
            if !left.is_empty() {
                wrong.push(format!("{}\nis not mended by what it suggests: {left:#?}", change.join("\n")));
            }
        }
        fs::write(&path, &text).unwrap();
        reported.push(format!("{}\n{}", change.join("\n"), listed[0]));
    }
    let reported = reported.join("\n\n") + "\n";
    // Rewritten before, the list would lose the mistakes that are not reported as one problem.
    assert!(wrong.is_empty(), "{name}: {}", wrong.join("\n\n"));
    if std::env::var_os("TRIALRUN_UPDATE_EXPECTED").is_some() {
        fs::write(&list, &reported).unwrap();
    }
    assert!(fs::read_to_string(&list).unwrap() == reported, "{name} is reported otherwise:\n{reported}");
}

#[test]
fn mistakes_in_scenarios_and_scripted_models_are_reported_once_where_they_are() {
    hold("scenario", &[]);
}

#[test]
fn mistakes_in_conversations_and_tables_are_reported_once_where_they_are() {
    hold("conversation", &[]);
}

#[test]
fn mistakes_in_fixtures_are_reported_once_where_they_are() {
    hold("fixtures", &[]);
}

#[test]
fn mistakes_in_skill_evaluations_are_reported_once_where_they_are() {
    hold("evals", &[]);
}

#[test]
fn mistakes_in_tests_as_code_are_reported_once_where_they_are() {
    hold("code", &[]);
}

#[test]
fn mistakes_in_the_configuration_are_reported_once_where_they_are() {
    hold("configuration", &[]);
}

#[test]
fn mistakes_in_mocks_are_reported_once_where_they_are() {
    hold("mocks", &["closes.yaml"]);
}

#[test]
fn mistakes_in_tests_of_mcp_servers_are_reported_once_where_they_are() {
    hold("mcp", &[]);
}

#[test]
fn mistakes_in_recorded_answers_are_reported_once_where_they_are() {
    hold("recorded", &[]);
}

#[test]
fn mistakes_in_suites_of_other_tools_are_reported_once_where_they_are() {
    hold("promptfoo", &["promptfooconfig.yaml"]);
    hold("waza", &["eval.yaml"]);
    hold("vally", &["eval.yaml"]);
    hold("experiment", &["experiment.yaml"]);
    hold("deepeval", &["picnics.yaml"]);
    hold("inspect", &["capitals.yaml"]);
}
