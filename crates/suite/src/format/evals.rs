//! `evals`: the cases of one skill in an `evals.json`, which ask whether the skill makes the agent better.

mod assertion;
mod case;
mod design;
mod fixture;
mod skill;

use std::path::Path;
use std::sync::Arc;

use model::decode::{self, Fields, Problems};
use model::{Case, Diagnostic, Node, RunnerOptions, nearest};

use self::fixture::Contents;
use super::scenario::{self, refuse_tags};
use super::{Format, SuiteFile};
use crate::library::Library;
use crate::skill::SKILL_FILE;

pub use self::assertion::{KEYS as ASSERTION_KEYS, TYPES as ASSERTION_TYPES, Type as AssertionType};
pub use self::design::design_warnings;

/// The format.
pub struct Evals;

/// Its name.
pub const EVALS: &str = "evals";

/// The folder of a skill in which its suite is; no part of what is installed or hashed.
pub const EVALS_FOLDER: &str = "evals";

/// What a suite in this format is called where it is looked for.
pub const EVALS_FILE: &str = "evals.json";

/// Keys that hardly anything but such a suite has at its top.
const TELLING: [&str; 2] = ["skill_name", "evals"];

/// Where an editor finds the schema of the file, which is nothing to us.
const SCHEMA: &str = "$schema";

impl Format for Evals {
    fn name(&self) -> &'static str {
        EVALS
    }

    fn mark(&self) -> &'static str {
        "a JSON map with `skill_name` and `evals`, the list of its cases"
    }

    fn is_meant(&self, text: &str) -> bool {
        TELLING.iter().all(|key| text.contains(&format!("\"{key}\"")))
    }

    fn resembles(&self, file: &SuiteFile<'_>) -> bool {
        let model::NodeKind::Map(entries) = &file.root.kind else { return false };
        let keys = || entries.iter().map(|(key, _)| key.value.as_str());
        let is_there = |key: &&&str| keys().any(|other| other == **key);
        match TELLING.iter().filter(is_there).count() {
            0 => false,
            1 if is_called_so(file.path) => true,
            1 => TELLING.iter().filter(|key| !is_there(key)).any(|key| nearest(key, keys()).is_some()),
            _ => true,
        }
    }

    fn recognises(&self, file: &SuiteFile<'_>) -> bool {
        is_called_so(file.path) || self.resembles(file)
    }

    fn read(&self, file: &SuiteFile<'_>, library: &Library, problems: &mut Problems) -> Vec<Arc<Case>> {
        cases(file, library, problems).unwrap_or_default()
    }
}

/// Whether the file at `path` has the name that the format gives.
pub fn is_called_so(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == EVALS_FILE)
}

/// The directory of the skill that has the file at `path` as its own suite: `SKILL/evals/evals.json`.
pub fn home_of(path: &Path) -> Option<&Path> {
    let home = path.parent()?.parent()?;
    home.join(SKILL_FILE).is_file().then_some(home)
}

fn cases(file: &SuiteFile<'_>, library: &Library, problems: &mut Problems) -> Option<Vec<Arc<Case>>> {
    refuse_tags(file.root, problems);
    let mut fields = Fields::of(file.root, "the suite", problems)?;
    fields.get(SCHEMA);
    let name = fields.required_text("skill_name", problems);
    let skill = match (&name, fields.get("skill_name")) {
        (Some(name), Some(place)) => skill::find(name, place, file, library, problems),
        _ => None,
    };
    let agent = scenario::agent(&mut fields, "agent", file.directory(), problems);
    let mut contents = Contents::default();
    let mut suite = case::Suite {
        name: name.as_deref().unwrap_or_default(),
        skill: skill.as_ref(),
        directory: file.directory(),
        runner: Arc::new(RunnerOptions { agent, ..RunnerOptions::default() }),
        contents: &mut contents,
    };
    let items = fields.require("evals", problems).and_then(|node| list(node, problems));
    let cases = items.unwrap_or_default().iter().enumerate();
    let cases = cases.filter_map(|(at, item)| suite.case(at, item, problems).map(Arc::new)).collect();
    fields.finish(problems);
    Some(cases)
}

fn list<'a>(node: &'a Node, problems: &mut Problems) -> Option<&'a [Node]> {
    let items = decode::list(node, "`evals`", problems)?;
    if items.is_empty() {
        problems.push(node.warning("the suite has no cases"));
    }
    Some(items)
}

/// What is said of a path that starts somewhere else than at the suite's folder.
fn starts_here(problem: Diagnostic) -> Diagnostic {
    problem
        .help(format!("a path starts at the folder of this file, and stays in it: `files/NAME` beside `{EVALS_FILE}`"))
}
