//! `harbor`: tasks of harbor, read in place. A task is a folder with a `task.toml`, the agent's instruction, the folder of
//! an image and a verifier, a program that writes a reward. docs/coming-from-harbor.md describes the differences.

mod dockerfile;
mod environment;
mod reading;
mod run_line;
mod task;
mod verifier;

use std::path::Path;
use std::sync::Arc;

use model::decode::Problems;
use model::{Case, Diagnostic, Source};

use self::reading::Reading;
use super::NamedFormat;
use crate::library::Library;

/// The `harbor` format.
pub const HARBOR: NamedFormat = NamedFormat {
    name: NAME,
    tool: Some("harbor"),
    mark: "a task of `harbor`: a folder with `task.toml`, `instruction.md`, `environment` and `tests`",
    fails_alone: true,
    is_meant: |path, _| path.parent().is_some_and(has_parts),
    suite: |path| folder(path)?.file_name()?.to_str(),
    folder,
    read,
};

/// Name of the format.
const NAME: &str = "harbor";

/// File of a task.
const TASK_FILE: &str = "task.toml";

/// File with the message to the agent.
const INSTRUCTION_FILE: &str = "instruction.md";

/// Folder with the image.
const ENVIRONMENT_FOLDER: &str = "environment";

/// File from which the image is built.
const DOCKERFILE: &str = "Dockerfile";

/// Folder with the verifier.
const TESTS_FOLDER: &str = "tests";

/// Folder with the task's own solution.
const SOLUTION_FOLDER: &str = "solution";

/// Folder with the steps of a task that has several.
const STEPS_FOLDER: &str = "steps";

/// Returns the folder of the data set to which the task with the file at `path` belongs.
fn folder(path: &Path) -> Option<&Path> {
    let is_task = path.file_name().is_some_and(|name| name == TASK_FILE);
    path.parent().filter(|_| is_task)?.parent()
}

/// Returns `true` if a folder with a `task.toml` also has a part that only a task has.
fn has_parts(task: &Path) -> bool {
    [INSTRUCTION_FILE, STEPS_FOLDER, ENVIRONMENT_FOLDER, TESTS_FOLDER].iter().any(|part| task.join(part).exists())
}

/// Returns `true` if `folder` is the folder of a task. Its files are not suites of their own.
pub fn is_task(folder: &Path) -> bool {
    folder.join(TASK_FILE).is_file() && has_parts(folder)
}

fn read(path: &Path, source: &Arc<Source>, library: &Library, problems: &mut Problems) -> Vec<Arc<Case>> {
    let Some(own) = path.parent() else { return Vec::new() };
    let mut reading = Reading::new(own, library);
    let mut case = reading.task(source);
    let Reading { keys, found, .. } = reading;
    library.cover(keys.finish(&source.path, NAME));
    let (errors, others): (Problems, Problems) = found.into_iter().partition(Diagnostic::is_error);
    problems.extend(others);
    case.broken.extend(errors);
    vec![Arc::new(case)]
}
