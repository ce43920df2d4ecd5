//! Answers to the agent's requests for permission. The case's rules decide; where they leave it open, a prepared answer
//! of the case does, and without one the request is denied, because there is no user to ask.

use model::PermissionMode;
use serde_json::Value;

use super::tool::Canonical;
use crate::Setup;
use crate::json::{items, owned, text};
use crate::tool_rule::ToolRule;

/// Decision of the case's rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Rule {
    /// The call is allowed.
    Allow,
    /// The call is denied, for this reason.
    Deny(&'static str),
    /// A prepared answer decides.
    Ask,
}

/// An option that the agent offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Choice {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) kind: String,
}

impl Choice {
    /// Reads the options of a request.
    pub(super) fn all(request: &Value) -> Vec<Self> {
        let read = |option: &Value| {
            let id = owned(option, "optionId")?;
            let name = owned(option, "name").unwrap_or_else(|| id.clone());
            Some(Self { id, name, kind: owned(option, "kind").unwrap_or_default() })
        };
        items(request, "options").iter().filter_map(read).collect()
    }

    /// Returns `true` if the option allows the call.
    pub(super) fn allows(&self) -> bool {
        self.kind.starts_with("allow")
    }

    /// Returns the option with the least effect that allows the call, or that denies it.
    pub(super) fn find(choices: &[Self], allows: bool) -> Option<&Self> {
        let kinds = if allows { ["allow_once", "allow_always"] } else { ["reject_once", "reject_always"] };
        kinds.iter().find_map(|kind| choices.iter().find(|choice| choice.kind == *kind))
    }
}

/// Returns the decision of the case's rules on a call. `kind` is the kind of the tool as the agent reports it.
pub(super) fn decide(setup: &Setup, call: &Canonical, kind: &str) -> Rule {
    let is_in = |list: &[String]| list.iter().any(|rule| matches(rule, call));
    if setup.closed_tools.as_deref().is_some_and(|closed| !is_in(closed)) {
        return Rule::Deny("it is not in `allowed_tools_override`");
    }
    if setup.closed_tools.is_some() || is_in(&setup.approved_tools) {
        return Rule::Allow;
    }
    let only_reads = matches!(kind, "read" | "search" | "think");
    let effect = model::tool::effect(&call.name);
    match setup.permission_mode {
        PermissionMode::BypassPermissions => Rule::Allow,
        _ if only_reads => Rule::Allow,
        PermissionMode::Plan => Rule::Deny("the permission mode is `plan`"),
        PermissionMode::AcceptEdits if kind == "edit" || effect == model::Effect::Write => Rule::Allow,
        _ => Rule::Ask,
    }
}

fn matches(rule: &str, call: &Canonical) -> bool {
    let rule = ToolRule::parse(rule);
    if rule.tool != call.name && rule.tool != call.raw_name {
        return false;
    }
    let key = model::tool::find(&call.name).and_then(|tool| tool.key_argument);
    rule.scopes.is_empty() || key.and_then(|key| text(&call.input, key)).is_some_and(|value| rule.covers(value))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::tests::harness::AgentHarness;

    fn call(name: &str, input: Value) -> Canonical {
        Canonical { name: name.to_owned(), raw_name: name.to_owned(), input, is_named: true, has_arguments: true }
    }

    #[test]
    fn the_mode_and_the_lists_of_the_case_decide() {
        let mut setup = AgentHarness::scripted("go", &json!([])).setup;
        let bash = call("Bash", json!({"command": "git push"}));
        let write = call("Write", json!({"file_path": "a"}));
        let modes = [
            (PermissionMode::BypassPermissions, Rule::Allow, Rule::Allow),
            (PermissionMode::AcceptEdits, Rule::Ask, Rule::Allow),
            (PermissionMode::Default, Rule::Ask, Rule::Ask),
        ];
        for (mode, of_bash, of_write) in modes {
            setup.permission_mode = mode;
            assert_eq!((decide(&setup, &bash, "execute"), decide(&setup, &write, "edit")), (of_bash, of_write));
            assert_eq!(decide(&setup, &call("read", json!({})), "read"), Rule::Allow);
        }
        setup.approved_tools = vec!["Bash(git *)".into()];
        assert_eq!(decide(&setup, &bash, "execute"), Rule::Allow);
        setup.permission_mode = PermissionMode::Plan;
        assert_eq!(decide(&setup, &bash, "execute"), Rule::Allow, "an approved tool");
        assert!(matches!(decide(&setup, &write, "edit"), Rule::Deny(_)));
        (setup.permission_mode, setup.closed_tools) = (PermissionMode::BypassPermissions, Some(vec!["Write".into()]));
        assert!(matches!(decide(&setup, &bash, "execute"), Rule::Deny(_)));
        assert_eq!(decide(&setup, &write, "edit"), Rule::Allow);
    }

    #[test]
    fn an_option_is_found_by_its_kind() {
        let request = json!({"options": [
            {"optionId": "a", "name": "Always", "kind": "allow_always"}, {"optionId": "b", "name": "Once", "kind": "allow_once"},
            {"optionId": "c", "name": "No", "kind": "reject_once"}, {"name": "without an id"},
        ]});
        let choices = Choice::all(&request);
        let find = |allows| Choice::find(&choices, allows).map(|choice| choice.id.as_str());
        assert_eq!((choices.len(), find(true), find(false)), (3, Some("b"), Some("c")));
        assert_eq!(Choice::find(&choices[..2], false), None);
    }
}
