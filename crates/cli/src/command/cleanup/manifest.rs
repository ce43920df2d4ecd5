//! Side effects on remotes, as recorded by a run or in a `cleanup.json` file.

use std::path::{Path, PathBuf};

use model::{Event, RepositoryChange, SideEffects};
use serde_json::Value;
use store::{Store, StoredEvent, TrialFilter};

use crate::error::CliError;

/// Name of the file.
const NAME: &str = "cleanup.json";

/// Maximum size of the file, in bytes.
const MAX_FILE_BYTES: u64 = 64 << 20;

/// Returns the file to which `run` refers, if any: the path itself, or a file in that directory.
pub(super) fn file(run: &str) -> Option<PathBuf> {
    let path = Path::new(run);
    let inside = path.join(NAME);
    [path, &inside].into_iter().find(|path| path.is_file()).map(Path::to_owned)
}

/// Returns the side effects of a run's trials; for interrupted trials, as far as they are known.
pub(super) fn of_run(store: &dyn Store, run: &str) -> Result<Vec<SideEffects>, CliError> {
    let mut left = Vec::new();
    for row in store.trials(&TrialFilter::of_run(run))? {
        left.extend(store.trial(run, &row.id)?.side_effects);
    }
    for trial in store.live(run)? {
        let events = store.trial_events(run, &trial.id)?.into_iter().filter_map(StoredEvent::known);
        let changes = events.filter_map(|envelope| match envelope.event {
            Event::Collected(collected) => collected.repository_change,
            _ => None,
        });
        left.extend(changes.flat_map(|change| RepositoryChange::side_effects(&change)));
    }
    let cleaned = store.cleaned(run)?;
    Ok(report::merged_side_effects(&left).iter().filter_map(|left| left.without(&cleaned)).collect())
}

/// Removes side effects from a file that are no longer on a remote.
pub(super) fn update(file: &Path, gone: &[SideEffects]) -> Result<(), CliError> {
    let wrong = |why: &str| CliError::environment(format!("{} could not be updated: {why}", file.display()));
    let text = files::read_named_text(file, MAX_FILE_BYTES).map_err(|error| wrong(&error.to_string()))?;
    let mut value: Value = serde_json::from_str(&text).map_err(|error| wrong(&error.to_string()))?;
    subtract(&mut value, gone).map_err(|why| wrong(&why))?;
    let text = serde_json::to_string_pretty(&value).map_err(|error| wrong(&error.to_string()))?;
    std::fs::write(file, text).map_err(|error| wrong(&error.to_string()))
}

fn subtract(value: &mut Value, gone: &[SideEffects]) -> Result<(), String> {
    let left: Vec<SideEffects> = parse(value)?.iter().filter_map(|left| left.without(gone)).collect();
    let Value::Object(fields) = value else { return Ok(()) };
    let branches: Vec<&String> = left.iter().flat_map(|left| &left.branches).collect();
    let numbers: Vec<u64> = left.iter().flat_map(|left| left.review_requests.iter().copied()).collect();
    if let Some(Value::Array(listed)) = fields.get_mut("remote_branches") {
        listed.retain(|name| branches.iter().any(|branch| name == branch.as_str()));
    }
    for key in ["pr_numbers", "merge_request_numbers"] {
        if let Some(Value::Array(listed)) = fields.get_mut(key) {
            listed.retain(|number| number.as_u64().is_some_and(|number| numbers.contains(&number)));
        }
    }
    if let Some(effects) = fields.get_mut("side_effects") {
        *effects = serde_json::to_value(&left).map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// Reads a file written by this program, or by agent-skill-eval, whose branches and numbers belong to its
/// `source_repo`.
pub(super) fn read(file: &Path) -> Result<Vec<SideEffects>, CliError> {
    let wrong = |why: &str| CliError::usage(format!("{}: {why}", file.display()));
    let text = files::read_named_text(file, MAX_FILE_BYTES).map_err(|error| wrong(&error.to_string()))?;
    let value: Value = serde_json::from_str(&text).map_err(|error| wrong(&error.to_string()))?;
    let left = parse(&value).map_err(|why| wrong(&why))?;
    Ok(report::merged_side_effects(&left))
}

fn parse(value: &Value) -> Result<Vec<SideEffects>, String> {
    let Value::Object(fields) = value else { return Err("it is not an object".to_owned()) };
    if let Some(left) = fields.get("side_effects") {
        return serde_json::from_value(left.clone()).map_err(|error| format!("`side_effects`: {error}"));
    }
    let known = ["remote_branches", "pr_numbers", "merge_request_numbers"];
    if known.iter().all(|key| !fields.contains_key(*key)) {
        return Err("it is not a record of side effects on remotes".to_owned());
    }
    fn list<T: serde::de::DeserializeOwned>(value: Option<&Value>, key: &str) -> Result<Vec<T>, String> {
        match value {
            None | Some(Value::Null) => Ok(Vec::new()),
            Some(list) => serde_json::from_value(list.clone()).map_err(|error| format!("`{key}`: {error}")),
        }
    }
    let branches: Vec<String> = list(fields.get(known[0]), known[0])?;
    let mut review_requests: Vec<u64> = list(fields.get(known[1]), known[1])?;
    review_requests.extend(list::<u64>(fields.get(known[2]), known[2])?);
    if branches.is_empty() && review_requests.is_empty() {
        return Ok(Vec::new());
    }
    let remote = fields.get("source_repo").and_then(Value::as_str).filter(|remote| !remote.is_empty());
    let remote = remote.ok_or("it lacks the `source_repo` of these branches")?.to_owned();
    Ok(vec![SideEffects { remote, branches, review_requests, ..SideEffects::default() }])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn both_manifest_formats_are_read_and_nothing_is_guessed() {
        let theirs = json!({
            "source_repo": "git@github.com:o/r.git", "source_repo_slug": "o/r", "remote_branches": ["a"],
            "pr_numbers": [7], "workspaces": ["/tmp/x"],
        });
        let left = parse(&theirs).unwrap();
        assert_eq!((left[0].remote.as_str(), &left[0].review_requests), ("git@github.com:o/r.git", &vec![7]));
        let ours = json!({ "side_effects": [{ "remote": "/r", "branches": ["b"] }], "remote_branches": ["c"] });
        assert_eq!(parse(&ours).unwrap()[0].branches, ["b"]);
        assert_eq!(parse(&json!({ "remote_branches": [], "pr_numbers": [] })).unwrap(), []);
        for wrong in [json!([]), json!({}), json!({ "remote_branches": ["a"] }), json!({ "pr_numbers": ["7"] })] {
            assert!(parse(&wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_is_gone_is_removed_from_both_manifest_formats() {
        let gone = |remote: &str| {
            [SideEffects {
                remote: remote.into(),
                branches: vec!["a".into()],
                review_requests: vec![7],
                ..Default::default()
            }]
        };
        let mut theirs =
            json!({ "source_repo": "/r", "remote_branches": ["a", "b"], "pr_numbers": [7], "workspaces": ["/w"] });
        subtract(&mut theirs, &gone("/r")).unwrap();
        let expected = json!({ "source_repo": "/r", "remote_branches": ["b"], "pr_numbers": [], "workspaces": ["/w"] });
        assert_eq!(theirs, expected);
        let effects = |branch: &str| json!([{ "remote": "/r", "branches": [branch], "review_requests": [] }]);
        let mut ours = json!({ "side_effects": effects("a"), "remote_branches": ["a"] });
        subtract(&mut ours, &gone("/other")).unwrap();
        assert_eq!(ours, json!({ "side_effects": effects("a"), "remote_branches": ["a"] }));
        subtract(&mut ours, &gone("/r")).unwrap();
        assert_eq!(ours, json!({ "side_effects": [], "remote_branches": [] }));
    }
}
