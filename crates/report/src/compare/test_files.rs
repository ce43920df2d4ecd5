//! Test files that changed between two runs, in which case different results may come from the tests.

use std::collections::BTreeMap;
use std::path::{Component, Path};

use model::RunInfo;
use serde_json::{Value, json};

/// Maximum number of files that are named.
const NAMED: usize = 5;

/// A test file whose content differs between the runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TestFileChange {
    /// Path of the file, as the second run names it.
    file: String,
    /// SHA-256 in the first run.
    before: String,
    /// SHA-256 in the second run.
    after: String,
}

/// Returns the test files that both runs used and that have changed. Runs that were started in different folders use
/// different paths for the same file; such paths are paired if one ends with the other.
pub(super) fn changes(before: &RunInfo, after: &RunInfo) -> Vec<TestFileChange> {
    let files = |info: &RunInfo| -> BTreeMap<String, String> {
        info.invocation.as_ref().map(|invocation| invocation.suites.clone()).unwrap_or_default()
    };
    let (before, after) = (files(before), files(after));
    let only_before: Vec<&String> = before.keys().filter(|file| !after.contains_key(*file)).collect();
    let earlier = |file: &String| {
        before.get(file).or_else(|| {
            let mut alike = only_before.iter().filter(|other| is_same_file(file, other));
            // If several match, the pair is ambiguous.
            alike.next().filter(|_| alike.next().is_none()).and_then(|other| before.get(*other))
        })
    };
    let change = |(file, is): (&String, &String)| {
        let was = earlier(file).filter(|was| *was != is)?;
        Some(TestFileChange { file: file.clone(), before: was.clone(), after: is.clone() })
    };
    after.iter().filter_map(change).collect()
}

/// Returns `true` if one of the paths ends with the other, ignoring leading `..`.
fn is_same_file(one: &str, other: &str) -> bool {
    let named = |path: &str| -> Vec<String> {
        let parts = Path::new(path).components().filter_map(|part| match part {
            Component::Normal(name) => Some(name.to_string_lossy().into_owned()),
            _ => None,
        });
        parts.collect()
    };
    let (one, other) = (named(one), named(other));
    !one.is_empty() && !other.is_empty() && (one.ends_with(&other) || other.ends_with(&one))
}

/// Says that the tests changed, and names the files; `None` if they did not change.
pub(super) fn describe(changes: &[TestFileChange]) -> Option<String> {
    let mut names: Vec<String> = changes.iter().take(NAMED).map(|change| change.file.clone()).collect();
    if changes.len() > NAMED {
        names.push(format!("and {} more", changes.len() - NAMED));
    }
    let files = if changes.len() == 1 { "test file" } else { "test files" };
    (!changes.is_empty())
        .then(|| format!("{files} changed, so the difference may come from the tests: {}", names.join(", ")))
}

pub(super) fn to_json(changes: &[TestFileChange]) -> Value {
    let one = |change: &TestFileChange| json!({ "file": change.file, "before": change.before, "after": change.after });
    changes.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_recognised_from_another_folder() {
        assert!(is_same_file("notes/evals.yaml", "../notes/evals.yaml"));
        assert!(is_same_file("skills/notes/evals.yaml", "notes/evals.yaml"));
        assert!(!is_same_file("skills/notes/evals.yaml", "skills/other/evals.yaml"));
        assert!(!is_same_file("notes/evals.yaml", ""));
    }

    #[test]
    fn at_most_five_files_are_named() {
        let change = |n: usize| TestFileChange { file: format!("{n}.yaml"), before: "a".into(), after: "b".into() };
        let described = |count| describe(&(0..count).map(change).collect::<Vec<_>>());
        assert_eq!(described(0), None);
        assert_eq!(
            described(1).as_deref(),
            Some("test file changed, so the difference may come from the tests: 0.yaml")
        );
        assert!(
            described(7).is_some_and(|text| text.ends_with(": 0.yaml, 1.yaml, 2.yaml, 3.yaml, 4.yaml, and 2 more"))
        );
    }
}
