//! Graders of other tools as assertions of trialrun, if there are some with the same verdicts.

use model::{AssertionSpec, Node, NodeKind};
use serde_json::{Value, json};

/// Returns an assertion of promptfoo about text as one of trialrun.
pub(super) fn of_promptfoo(spec: &AssertionSpec) -> Option<Value> {
    let assertion = spec.node.get("assertion")?;
    if ["transform", "threshold"].iter().any(|key| assertion.get(key).is_some())
        || !items(spec.node.get("transforms")).is_empty()
    {
        return None;
    }
    let kind = text(assertion, "type")?;
    let (bare, is_wanted) = kind.strip_prefix("not-").map_or((kind, true), |bare| (bare, false));
    let value = assertion.get("value")?;
    let one = || value.as_str().filter(|text| !text.is_empty());
    let list = || items(Some(value)).iter().map(|item| item.as_str().map(escaped)).collect::<Option<Vec<String>>>();
    let any = || list().filter(|list| !list.is_empty()).map(|list| list.join("|"));
    let all = || {
        let each = |text: &String| format!("(?=[\\s\\S]*{text})");
        list().filter(|list| !list.is_empty()).map(|list| format!("^{}", list.iter().map(each).collect::<String>()))
    };
    let pattern = match bare {
        "contains" => escaped(one()?),
        "icontains" => format!("(?i){}", escaped(one()?)),
        "contains-any" => any()?,
        "icontains-any" => format!("(?i){}", any()?),
        "contains-all" => all()?,
        "icontains-all" => format!("(?i){}", all()?),
        "starts-with" => format!("^{}", escaped(one()?)),
        "regex" => one()?.to_owned(),
        _ => return None,
    };
    Some(pattern_in_answer(&spec.id, &pattern, is_wanted))
}

/// Returns the checks of a grader as assertions of trialrun, which must all be met.
pub(super) fn of_checks(spec: &AssertionSpec) -> Option<Vec<Value>> {
    let mut entries: Vec<Value> = Vec::new();
    for check in items(spec.node.get("checks")) {
        for mut entry in of_check(check)? {
            let number = entries.len() + 1;
            let id = if number == 1 { spec.id.clone() } else { format!("{}-part-{number}", spec.id) };
            entry["id"] = json!(id);
            entries.push(entry);
        }
    }
    (!entries.is_empty()).then_some(entries)
}

fn of_check(check: &Node) -> Option<Vec<Value>> {
    let is_wanted = !flag(check, "not");
    let has_case = flag(check, "case");
    let pattern = match (text(check, "contains"), text(check, "matches")) {
        (Some(text), None) if has_case => Some(escaped(text)),
        (Some(text), None) => Some(format!("(?i){}", escaped(text))),
        (None, Some(pattern)) => Some(pattern.to_owned()),
        _ => None,
    };
    Some(match text(check, "check")? {
        "answer" => vec![pattern_in_answer("", &pattern?, is_wanted)],
        "files" => {
            let path = text(check, "path")?;
            if path.contains(['*', '?', '[', '{']) || check.get("equals").is_some() {
                return None;
            }
            let exists = if is_wanted { "file_exists" } else { "file_not_exists" };
            vec![match pattern {
                None => json!({ "id": "", "type": exists, "path": path }),
                Some(pattern) => {
                    let mut entry = json!({ "id": "", "type": "matches", "pattern": plain(&pattern), "path": path });
                    if !is_wanted {
                        entry["count"] = json!(0);
                    }
                    entry
                }
            }]
        }
        "scorer" if text(check, "scorer") == Some("includes") => {
            let targets = items(check.get("targets")).iter().map(|item| item.as_str().map(escaped));
            let targets = targets.collect::<Option<Vec<String>>>().filter(|targets| !targets.is_empty())?;
            let flags = if has_case { "" } else { "(?i)" };
            vec![pattern_in_answer("", &format!("{flags}{}", targets.join("|")), true)]
        }
        "skills" => {
            let list = |key: &str| items(check.get(key)).iter().filter_map(Node::as_str);
            let has_order = list("required").count() > 1 && text(check, "order") != Some("any");
            if has_order || flag(check, "only") {
                return None;
            }
            let used = list("required").map(|skill| json!({ "id": "", "type": "skill_used", "skill": skill }));
            let unused = list("forbidden").map(|skill| json!({ "id": "", "type": "skill_not_used", "skill": skill }));
            used.chain(unused).collect()
        }
        _ => return None,
    })
}

fn pattern_in_answer(id: &str, pattern: &str, is_wanted: bool) -> Value {
    let kind = if is_wanted { "output_contains" } else { "no_output_contains" };
    json!({ "id": id, "type": kind, "pattern": pattern })
}

/// Returns a pattern that is not read as one between slashes.
fn plain(pattern: &str) -> String {
    if pattern.starts_with('/') { format!("(?:){pattern}") } else { pattern.to_owned() }
}

fn items(node: Option<&Node>) -> &[Node] {
    match node.map(|node| &node.kind) {
        Some(NodeKind::List(items)) => items,
        _ => &[],
    }
}

fn text<'n>(node: &'n Node, key: &str) -> Option<&'n str> {
    node.get(key)?.as_str()
}

fn flag(node: &Node, key: &str) -> bool {
    matches!(node.get(key).map(|node| &node.kind), Some(NodeKind::Bool(true)))
}

/// Returns a pattern that matches `text` itself.
fn escaped(text: &str) -> String {
    text.chars().fold(String::new(), |mut pattern, letter| {
        // Patterns contain no control characters, but may name them.
        if letter.is_control() {
            return pattern + &format!("\\u{:04x}", u32::from(letter));
        }
        if "\\^$.|?*+()[]{}/".contains(letter) {
            pattern.push('\\');
        }
        pattern.push(letter);
        pattern
    })
}
