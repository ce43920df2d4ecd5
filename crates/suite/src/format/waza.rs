//! `waza`: suites of waza, schema 1.x and 2.0, read in place. Each task is a case. docs/coming-from-waza.md describes what
//! is honoured and what differs.

mod grader;
mod suite;
mod task;

use std::sync::Arc;

use model::decode::Problems;
use model::{Case, Node, NodeKind};

use super::foreign::{Reading, contained, misspelt_list};
use super::{Format, SuiteFile, is_of_other_tool};
use crate::library::Library;

/// The `waza` format.
pub const WAZA: Format = Format {
    name: NAME,
    tool: Some("waza"),
    mark: "a suite of waza: a map with `tasks` or `tasks_from`, and `config` and `metrics`",
    fails_alone: true,
    is_meant: |text| {
        let has = |key: &str| text.lines().any(|line| line.strip_prefix(key).is_some_and(|rest| rest.starts_with(':')));
        (has("tasks") || has("tasks_from")) && OWN.iter().any(|key| has(key))
    },
    resembles: |file| recognises(file) && (has_tasks(file) || is_of_other_tool(file.path)),
    recognises,
    read,
};

/// Name of the format.
const NAME: &str = "waza";

/// Keys that such a suite has next to its tasks.
const OWN: [&str; 3] = ["metrics", "config", "schemaVersion"];

fn has_tasks(file: &SuiteFile<'_>) -> bool {
    ["tasks", "tasks_from"].iter().any(|key| file.root.get(key).is_some())
}

fn recognises(file: &SuiteFile<'_>) -> bool {
    let has = |key: &str| file.root.get(key).is_some();
    // Tasks that are written in the suite instead of in files.
    let is_task = |item: &Node| item.get("validators").or_else(|| item.get("graders")).is_some();
    let tasks = file.root.get("tasks").filter(|_| has("skill")).map(|tasks| &tasks.kind);
    if matches!(tasks, Some(NodeKind::List(all)) if all.iter().any(is_task)) {
        return true;
    }
    // The tasks may be misspelt, or missing.
    let lacks_tasks =
        || misspelt_list(file.root, "tasks") || (has("graders") && (has("metrics") || has("schemaVersion")));
    OWN.iter().any(|key| has(key)) && (has_tasks(file) || lacks_tasks())
}

fn read(file: &SuiteFile<'_>, library: &Library, problems: &mut Problems) -> Vec<Arc<Case>> {
    let mut reading = Reading::new(file.path, library);
    let cases = reading.waza(file);
    let found = std::mem::take(&mut reading.found);
    library.cover(reading.coverage(&file.root.source.path, NAME));
    contained(cases, found, problems)
}
