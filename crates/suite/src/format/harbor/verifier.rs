//! The verifier of a task and its solution: the programs in its `tests` and `solution`, and where they are seen.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use model::{CopyTree, Excerpt, GradedFolder, OuterFolder, Solution};

use super::reading::Reading;
use super::{SOLUTION_FOLDER, STEPS_FOLDER, TESTS_FOLDER};

/// Where a verifier sees its files, and where it writes rewards.
const TESTS: &str = "/tests";
pub(super) const REWARDS: &str = "/logs/verifier";

/// Where a solution sees its files.
const SOLUTION: &str = "/solution";

/// Where the files of steps are, before they are merged with those of the task.
const STEPS: &str = "/steps";

/// Scripts of a verifier and of a solution.
const TEST_SCRIPT: &str = "test.sh";
const SOLVE_SCRIPT: &str = "solve.sh";

/// Folders below `/logs`, which every task has.
const LOGS: (&str, [&str; 3]) = ("/logs", ["agent", "artifacts", "verifier"]);

/// Returns the folder in which a task's processes find folders for logs.
pub(super) fn logs() -> OuterFolder {
    let directories = LOGS.1.iter().map(|name| (*name).to_owned()).collect();
    OuterFolder { path: LOGS.0.to_owned(), directories, ..OuterFolder::default() }
}

/// Returns the folders that only verifiers see.
pub(super) fn folders(reading: &Reading<'_>, steps: &[String]) -> Vec<GradedFolder> {
    let own = reading.part(&[TESTS_FOLDER]).filter(|path| path.is_dir());
    let mut folders = vec![GradedFolder { path: TESTS.to_owned(), from: own }];
    for step in steps {
        if let Some(tests) = reading.part(&[STEPS_FOLDER, step, TESTS_FOLDER]).filter(|path| path.is_dir()) {
            folders.push(GradedFolder { path: format!("{STEPS}/{step}"), from: Some(tests) });
        }
    }
    folders
}

/// Returns the command line of the verifier of the task, or of one of its steps.
pub(super) fn line(
    reading: &mut Reading<'_>,
    step: Option<&str>,
    env: &[(String, String)],
    place: &Excerpt,
) -> Option<String> {
    let script = |names: &[&str]| reading.part(names).is_some_and(|path| path.is_file());
    let has_own = step.is_some_and(|step| script(&[STEPS_FOLDER, step, TESTS_FOLDER, TEST_SCRIPT]));
    if !has_own && !script(&[TESTS_FOLDER, TEST_SCRIPT]) {
        let whose = step.map_or_else(|| "the task".to_owned(), |step| format!("the step `{step}`"));
        let message = format!("{whose} has no verifier: `{TESTS_FOLDER}/{TEST_SCRIPT}` does not exist");
        reading.found.push(model::Diagnostic::error(message).at(place.clone()));
        return None;
    }
    let merged =
        step.filter(|step| reading.part(&[STEPS_FOLDER, step, TESTS_FOLDER]).is_some_and(|path| path.is_dir()));
    let mut line = exported(env);
    if let Some(step) = merged {
        line.push_str(&format!("cp -R {}/. {TESTS}/ && ", quoted(&format!("{STEPS}/{step}"))));
    }
    line.push_str(&format!("chmod +x {TESTS}/{TEST_SCRIPT} && {TESTS}/{TEST_SCRIPT}"));
    Some(line)
}

/// Returns the task's own solution, if it has one for all its messages.
pub(super) fn solution(
    reading: &Reading<'_>,
    steps: &[String],
    env: &[(String, String)],
    place: &Excerpt,
) -> Option<Arc<Solution>> {
    let folder = |names: &[&str]| reading.part(names).filter(|path| path.join(SOLVE_SCRIPT).is_file());
    let tree = |from: PathBuf| CopyTree { from, to: ".".to_owned(), source: place.clone() };
    let outer = |path: String, from: PathBuf| OuterFolder { path, trees: vec![tree(from)], ..OuterFolder::default() };
    let run = |path: &str| format!("{}chmod +x {path} && {path}", exported(env));
    let own = folder(&[SOLUTION_FOLDER]);
    if steps.is_empty() {
        let outside = vec![outer(SOLUTION.to_owned(), own?)];
        return Some(Arc::new(Solution { outside, commands: vec![run(&format!("{SOLUTION}/{SOLVE_SCRIPT}"))] }));
    }
    let (mut outside, mut commands) = (Vec::new(), Vec::new());
    for step in steps {
        // A step's folder replaces that of the task.
        let from = folder(&[STEPS_FOLDER, step, SOLUTION_FOLDER]).or_else(|| own.clone())?;
        outside.push(outer(format!("{SOLUTION}-{step}"), from));
        let link = format!("rm -rf {SOLUTION}/* && cp -R {}/. {SOLUTION}/ && ", quoted(&format!("{SOLUTION}-{step}")));
        commands.push(format!("{link}{}", run(&format!("{SOLUTION}/{SOLVE_SCRIPT}"))));
    }
    outside.push(OuterFolder { path: SOLUTION.to_owned(), ..OuterFolder::default() });
    Some(Arc::new(Solution { outside, commands }))
}

/// Returns the beginning of a command line that sets variables.
fn exported(env: &[(String, String)]) -> String {
    let assignments: Vec<String> = env.iter().map(|(name, value)| format!("{name}={}", quoted(value))).collect();
    if assignments.is_empty() { String::new() } else { format!("export {} && ", assignments.join(" ")) }
}

/// Returns `text` in quotes for a shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// Returns `true` if the folder of a verifier has an image of its own.
pub(super) fn has_own_image(tests: &Path) -> Option<&'static str> {
    ["Dockerfile", "docker-compose.yaml"].into_iter().find(|name| tests.join(name).is_file())
}
