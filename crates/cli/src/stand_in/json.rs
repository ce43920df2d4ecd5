//! JSON as `gh` prints it: selected fields, and the simple paths of `--jq`.

use std::collections::BTreeSet;

use sandbox::remote::{Item, ItemKind, ItemState, Project};
use serde_json::{Map, Value, json};

use super::checkout::Checkout;
use super::{Failure, time};

/// Returns the selected `fields` of an object that has all of them, in alphabetical order.
pub fn select(all: &Value, fields: &[String]) -> Result<Value, Failure> {
    let mut selected = Map::new();
    let fields: BTreeSet<&String> = fields.iter().collect();
    for field in fields {
        let Some(value) = all.get(field) else {
            let known: Vec<&str> = all.as_object().into_iter().flatten().map(|(name, _)| name.as_str()).collect();
            let known = known.join("\n  ");
            return Err(Failure::Refused(format!("Unknown JSON field: \"{field}\"\nAvailable fields:\n  {known}")));
        };
        selected.insert(field.clone(), value.clone());
    }
    Ok(Value::Object(selected))
}

/// Returns JSON, or the values that the path `jq` selects from it, one per line.
pub fn print(value: &Value, jq: Option<&str>) -> Result<String, Failure> {
    let Some(jq) = jq else { return Ok(format!("{value}\n")) };
    let values = path(value, jq).ok_or_else(|| Failure::Unsupported(format!("`--jq '{jq}'`")))?;
    let line = |value: &Value| match value {
        Value::String(text) => format!("{text}\n"),
        Value::Null => "\n".to_owned(),
        value => format!("{value}\n"),
    };
    Ok(values.iter().map(line).collect())
}

/// Returns the values that a path of names, `[]` and `[N]` selects; `None` for any other expression.
fn path(value: &Value, jq: &str) -> Option<Vec<Value>> {
    let mut values = vec![value.clone()];
    let mut rest = jq.trim();
    let mut is_empty = true;
    while !rest.is_empty() && rest != "." {
        is_empty = false;
        if let Some(inner) = rest.strip_prefix('[').or_else(|| rest.strip_prefix(".[")) {
            let (index, after) = inner.split_once(']')?;
            rest = after;
            let index = index.trim();
            let of = |value: Value| match (index.is_empty(), value) {
                (true, Value::Array(items)) => Some(items),
                (false, Value::Array(items)) => {
                    let index: usize = index.parse().ok()?;
                    Some(vec![items.get(index).cloned().unwrap_or_default()])
                }
                (false, Value::Null) => Some(vec![Value::Null]),
                _ => None,
            };
            values = values.into_iter().map(of).collect::<Option<Vec<_>>>()?.concat();
        } else {
            let after = rest.strip_prefix('.')?;
            let end = after.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(after.len());
            let (name, after) = after.split_at(end);
            if name.is_empty() {
                return None;
            }
            rest = after;
            values = values.into_iter().map(|value| value.get(name).cloned().unwrap_or_default()).collect();
        }
    }
    (!is_empty || jq.trim() == ".").then_some(values)
}

/// Returns a pull request or an issue with all fields.
pub fn of_item(item: &Item, checkout: &Checkout) -> Value {
    let draft = &item.draft;
    let people = |names: &[String]| names.iter().map(|name| json!({ "login": name })).collect::<Vec<_>>();
    let comments: Vec<Value> =
        item.comments.iter().map(|body| json!({ "author": { "login": AGENT }, "body": body })).collect();
    let closed_at = (item.state != ItemState::Open).then(|| time(item.updated));
    let mut all = json!({
        "assignees": people(&draft.assignees),
        "author": { "login": AGENT },
        "body": draft.body,
        "closed": item.state != ItemState::Open,
        "closedAt": closed_at,
        "comments": comments,
        "createdAt": time(item.created),
        "id": format!("{}_{}", if draft.kind == ItemKind::Issue { "I" } else { "PR" }, item.number),
        "labels": draft.labels.iter().map(|name| json!({ "name": name })).collect::<Vec<_>>(),
        "number": item.number,
        "state": state(item.state),
        "title": draft.title,
        "updatedAt": time(item.updated),
        "url": item.url,
    });
    if draft.kind == ItemKind::ReviewRequest {
        let head = draft.head.as_deref().unwrap_or_default();
        all["baseRefName"] = json!(draft.base);
        all["headRefName"] = json!(head);
        all["headRefOid"] = json!(checkout.pushed(head));
        all["isCrossRepository"] = json!(false);
        all["isDraft"] = json!(draft.is_draft);
        all["mergeStateStatus"] = json!("CLEAN");
        all["mergeable"] = json!("MERGEABLE");
        all["mergedAt"] = json!((item.state == ItemState::Merged).then(|| time(item.updated)));
        all["reviewDecision"] = json!("");
        all["reviewRequests"] = json!(people(&draft.reviewers));
        all["reviews"] = json!([]);
        all["statusCheckRollup"] = json!([]);
    }
    all
}

/// Returns a repository with all fields.
pub fn of_project(project: &Project) -> Value {
    let (owner, name) = project.name.rsplit_once('/').unwrap_or(("", &project.name));
    json!({
        "defaultBranchRef": { "name": project.default_branch },
        "description": "",
        "isArchived": false,
        "isFork": false,
        "isPrivate": true,
        "name": name,
        "nameWithOwner": project.name,
        "owner": { "login": owner },
        "sshUrl": format!("git@{}:{}.git", project.host, project.name),
        "url": project.url(),
        "viewerPermission": "WRITE",
        "visibility": "PRIVATE",
    })
}

/// User name at the service.
pub const AGENT: &str = "agent";

/// Returns a state in the form that `gh` prints.
pub fn state(state: ItemState) -> &'static str {
    match state {
        ItemState::Open => "OPEN",
        ItemState::Closed => "CLOSED",
        ItemState::Merged => "MERGED",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn simple_paths_select_values() {
        let value = json!([{ "a": { "b": "x" }, "n": 1 }, { "a": { "b": "y" }, "n": 2 }]);
        for (jq, printed) in [
            (".[].a.b", "x\ny\n"),
            (".[0].n", "1\n"),
            (".[5].n", "\n"),
            (".", "[{\"a\":{\"b\":\"x\"},\"n\":1},{\"a\":{\"b\":\"y\"},\"n\":2}]\n"),
        ] {
            assert_eq!(print(&value, Some(jq)).unwrap(), printed, "{jq}");
        }
        for jq in ["map(.n)", ".[] | .n", "", ".a | length"] {
            assert!(matches!(print(&value, Some(jq)), Err(Failure::Unsupported(_))), "{jq}");
        }
    }
}
