//! `plugin-eval`: the cases of `claude plugin eval`, read in place. A case is a folder below `evals` with a `case.yaml`,
//! or with a `prompt.md` and Markdown files in `graders`. The plug-in whose folder contains `evals` is the subject; it is
//! compared with the agent alone. docs/coming-from-claude-plugin-eval.md describes the differences.

mod case;
mod grader;
mod reading;

use std::path::Path;
use std::sync::Arc;

use model::decode::Problems;
use model::{Case, Diagnostic, Source, nearest};

use self::reading::Reading;
use super::NamedFormat;
use crate::library::Library;
use crate::plugin;
use crate::skill::EVALS_FOLDER;

/// The `plugin-eval` format.
pub const PLUGIN_EVAL: NamedFormat = NamedFormat {
    name: NAME,
    tool: Some("claude plugin eval"),
    mark: "a case of `claude plugin eval` below a folder called `evals`: `case.yaml`, or `prompt.md` and `graders/NAME.md`",
    fails_alone: true,
    is_meant,
    suite: |path| folder(path)?.parent()?.file_name()?.to_str(),
    folder,
    read,
};

/// Name of the format.
pub(super) const NAME: &str = "plugin-eval";

/// File of a case.
const CASE_FILE: &str = "case.yaml";

/// Keys of a case that other formats do not have.
const OWN_KEYS: [&str; 4] = ["schema_version", "execution", "graders", "context"];

/// File with the prompt of a case.
const PROMPT_FILE: &str = "prompt.md";

/// Folder with the graders of a case.
const GRADERS_FOLDER: &str = "graders";

/// Folder with stand-ins for MCP servers, of a case or of all cases.
const MOCKS_FOLDER: &str = "mocks";

/// Folders below `evals` that do not contain cases.
const OTHER_FOLDERS: [&str; 2] = [MOCKS_FOLDER, "results"];

/// Returns the folder of the suite to which the file at `path` belongs, if it is the file of a case: the outermost
/// `evals` above the case's own folder.
fn folder(path: &Path) -> Option<&Path> {
    let name = path.file_name()?;
    let own = path.parent()?;
    let is_case = name == CASE_FILE
        || (name == PROMPT_FILE && own.join(GRADERS_FOLDER).is_dir() && !own.join(CASE_FILE).is_file());
    let above = || own.ancestors().skip(1);
    let found = above().find(|above| above.file_name().is_some_and(|name| name == EVALS_FOLDER)).filter(|_| is_case)?;
    let below = own.strip_prefix(found).ok()?;
    let is_other = below.iter().any(|part| OTHER_FOLDERS.iter().any(|other| part == *other));
    (!is_other).then_some(found)
}

/// Returns `true` if a file that was found by a search is a case. Other tools also have a `case.yaml`, but not in the
/// `evals` of a plug-in.
fn is_meant(path: &Path, text: &str) -> bool {
    let is_in_plugin = || {
        let suite = folder(path).filter(|suite| path.parent().and_then(Path::parent) == Some(suite));
        suite.and_then(Path::parent).is_some_and(|directory| plugin::manifest_in(directory).is_some())
    };
    path.file_name().is_some_and(|name| name == PROMPT_FILE) || has_own_key(text) || is_in_plugin()
}

/// Returns the name that the file at `path` was probably meant to have, if its text is that of a case.
pub fn misspelt(path: &Path, text: &str) -> Option<&'static str> {
    let right = nearest(path.file_name()?.to_str()?, [CASE_FILE])?;
    let is_below_evals = folder(&path.with_file_name(right)).is_some();
    (is_below_evals && has_own_key(text)).then_some(right)
}

fn has_own_key(text: &str) -> bool {
    let is_key = |line: &str, key: &str| line.strip_prefix(key).is_some_and(|rest| rest.starts_with(':'));
    text.lines().any(|line| OWN_KEYS.iter().any(|key| is_key(line, key)))
}

fn read(path: &Path, source: &Arc<Source>, library: &Library, problems: &mut Problems) -> Vec<Arc<Case>> {
    let (Some(own), Some(suite)) = (path.parent(), folder(path)) else { return Vec::new() };
    let mut reading = Reading::new(own, suite, library);
    let case = reading.case(path, source);
    let Reading { keys, found, .. } = reading;
    library.cover(keys.finish(&source.path, NAME));
    let (errors, others): (Problems, Problems) = found.into_iter().partition(Diagnostic::is_error);
    problems.extend(others);
    let mut case = case;
    case.broken.extend(errors);
    vec![Arc::new(case)]
}
