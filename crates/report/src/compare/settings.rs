//! Settings and agents that differ between two runs.

use model::{AgentInfo, RunInfo, SETTINGS_WITHOUT_EFFECT};
use serde_json::{Value, json};

use crate::terminal::Paint;

/// A setting that differs.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct SettingChange {
    pub(super) name: String,
    pub(super) before: Option<String>,
    pub(super) after: Option<String>,
}

/// Returns the differences: agents with their versions and models, the version of trialrun, and settings by name.
pub(super) fn changes(before: &RunInfo, after: &RunInfo) -> Vec<SettingChange> {
    let mut changes = Vec::new();
    let mut differs = |name: &str, before: Option<String>, after: Option<String>| {
        let change = SettingChange { name: name.to_owned(), before, after };
        // The agent of a run may also be one of its settings.
        if change.before != change.after && !changes.contains(&change) {
            changes.push(change);
        }
    };
    agents(&before.agents, &after.agents, &mut differs);
    differs("trialrun", Some(before.trialrun_version.clone()), Some(after.trialrun_version.clone()));
    let names: std::collections::BTreeSet<&String> = before.settings.keys().chain(after.settings.keys()).collect();
    // The seed only changes the order of trials.
    let is_relevant = |name: &str| name != "seed" && !SETTINGS_WITHOUT_EFFECT.contains(&name);
    for name in names.into_iter().filter(|name| is_relevant(name)) {
        differs(name, before.settings.get(name).and_then(text), after.settings.get(name).and_then(text));
    }
    changes
}

/// Compares agents with the same name and model, or the only agent of each run.
fn agents(before: &[AgentInfo], after: &[AgentInfo], differs: &mut impl FnMut(&str, Option<String>, Option<String>)) {
    if let ([was], [is]) = (before, after) {
        differs("agent", Some(was.name.clone()), Some(is.name.clone()));
        return details(&is.name, was, is, differs);
    }
    let same = |a: &AgentInfo, b: &AgentInfo| a.name == b.name && a.model == b.model;
    for is in after {
        match before.iter().find(|was| same(was, is)) {
            Some(was) => details(&named(is), was, is, differs),
            None => differs("agent", None, Some(named(is))),
        }
    }
    for was in before.iter().filter(|was| !after.iter().any(|is| same(was, is))) {
        differs("agent", Some(named(was)), None);
    }
}

fn details(
    name: &str,
    was: &AgentInfo,
    is: &AgentInfo,
    differs: &mut impl FnMut(&str, Option<String>, Option<String>),
) {
    differs("model", was.model.clone(), is.model.clone());
    if was.name == is.name {
        differs(&format!("version of {name}"), was.version.clone(), is.version.clone());
    }
    differs("reasoning effort", was.reasoning_effort.clone(), is.reasoning_effort.clone());
    differs("base URL", was.base_url.clone(), is.base_url.clone());
}

fn named(agent: &AgentInfo) -> String {
    agent.model.as_ref().map_or_else(|| agent.name.clone(), |model| format!("{}:{model}", agent.name))
}

/// Returns a setting as text, a list as its items; `None` if it is not set.
fn text(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().filter_map(text).collect();
            (!items.is_empty()).then(|| items.join(", "))
        }
        // A limit is read as a floating-point number: `900.0`.
        Value::Number(number) if number.is_f64() => number.as_f64().map(|number| number.to_string()),
        other => Some(other.to_string()),
    }
}

impl SettingChange {
    /// Formats the change as `model: haiku → opus`.
    pub(super) fn describe(&self, paint: &Paint) -> String {
        let text_of =
            |value: &Option<String>| value.as_ref().map_or_else(|| "not set".into(), |value| paint.folded(value, 80));
        let arrow = paint.symbols().arrow;
        format!("{}: {} {arrow} {}", paint.folded(&self.name, 60), text_of(&self.before), text_of(&self.after))
    }
}

pub(super) fn to_json(changes: &[SettingChange]) -> Value {
    let one = |change: &SettingChange| json!({ "name": change.name, "before": change.before, "after": change.after });
    changes.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::Map;

    use super::*;

    fn agent(name: &str, model: &str, version: &str) -> AgentInfo {
        AgentInfo {
            name: name.into(),
            version: Some(version.into()),
            model: Some(model.into()),
            reasoning_effort: None,
            base_url: None,
        }
    }

    fn info(agents: &[AgentInfo], settings: &Value) -> RunInfo {
        let settings = settings.as_object().cloned().unwrap_or_else(Map::new);
        RunInfo {
            id: "r".into(),
            label: None,
            regrade_of: None,
            started_at: "2026-11-21T21:48:00Z".parse().unwrap(),
            trialrun_version: "0.1.0".into(),
            settings,
            agents: agents.to_vec(),
            skills: Vec::new(),
            trials: Vec::new(),
            decisions: 0,
            jobs: 1,
            invocation: None,
            origin: None,
            shard: None,
            missing_shards: None,
            isolation: None,
        }
    }

    fn described(before: &RunInfo, after: &RunInfo) -> Vec<String> {
        let paint = Paint::new(crate::Style::plain());
        changes(before, after).iter().map(|change| change.describe(&paint)).collect()
    }

    #[test]
    fn differences_are_listed_by_name() {
        let one =
            info(&[agent("codex", "a", "1")], &json!({ "timeout": "10m", "jobs": 1, "judge": null, "targets": [] }));
        let other = info(
            &[agent("codex", "b", "2")],
            &json!({ "timeout": "5m", "jobs": 8, "judge": "x", "state": "other", "targets": ["a", "b"] }),
        );
        assert_eq!(
            described(&one, &other),
            [
                "model: a → b",
                "version of codex: 1 → 2",
                "judge: not set → x",
                "targets: not set → a, b",
                "timeout: 10m → 5m"
            ]
        );
        assert!(described(&one, &one).is_empty());
    }

    #[test]
    fn a_change_of_the_agent_that_is_also_a_setting_is_listed_once() {
        let one = info(&[agent("good", "a", "1")], &json!({ "agent": "good" }));
        let other = info(&[agent("bad", "a", "1")], &json!({ "agent": "bad" }));
        assert_eq!(described(&one, &other), ["agent: good → bad"]);
    }

    #[test]
    fn agents_with_the_same_model_are_compared_if_there_are_several() {
        let one = info(&[agent("codex", "a", "1"), agent("opencode", "b", "1")], &json!({}));
        let other = info(&[agent("codex", "a", "2"), agent("chat", "b", "1")], &json!({}));
        assert_eq!(
            described(&one, &other),
            ["version of codex:a: 1 → 2", "agent: not set → chat:b", "agent: opencode:b → not set"]
        );
    }
}
