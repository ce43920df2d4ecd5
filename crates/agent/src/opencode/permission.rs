//! Permissions for OpenCode, as part of its configuration. If several rules match a call, the last one applies. The
//! model gets an error for a denied call. No rule asks for approval, because there is no user to give it.

use std::path::Path;

use model::PermissionMode;
use sandbox::Sandbox;
use serde_json::{Map, Value, json};

use super::tool;
use crate::Setup;
use crate::tool_rule::ToolRule;

/// A skill about the CLI that is bundled with the CLI.
const BUNDLED_SKILL: &str = "customize-opencode";

/// Function that converts a scope to patterns, given the working directory.
type Patterns = fn(&str, &Path) -> Vec<String>;

/// Permissions that OpenCode can limit by patterns.
const SCOPED: [(&str, Patterns); 6] = [
    ("bash", |scope, _| commands(scope)),
    ("read", paths),
    ("edit", paths),
    ("skill", |scope, _| vec![scope.to_owned()]),
    ("task", |scope, _| vec![scope.to_owned()]),
    ("webfetch", |scope, _| vec![scope.to_owned()]),
];

/// Returns the permissions for `setup`.
pub(super) fn of(setup: &Setup, sandbox: &dyn Sandbox) -> Value {
    let mut rules = Map::new();
    let bypass = setup.permission_mode == PermissionMode::BypassPermissions;
    let outside = if bypass { json!("allow") } else { outside(sandbox) };
    let mut rule = |permission: &str, what: Value| {
        rules.insert(permission.to_owned(), what);
    };
    let entries = match &setup.closed_tools {
        Some(closed) => {
            rule("*", json!("deny"));
            rule("doom_loop", json!("allow"));
            rule("external_directory", outside);
            entries(closed)
        }
        None => {
            rule("*", json!("allow"));
            if !bypass {
                rule("external_directory", outside);
                for network in ["webfetch", "websearch"] {
                    rule(network, json!("deny"));
                }
            }
            if setup.permission_mode == PermissionMode::Plan {
                for change in ["edit", "bash"] {
                    rule(change, json!("deny"));
                }
            }
            entries(&setup.approved_tools)
        }
    };
    for ToolRule { tool, scopes } in entries {
        let permission = tool::permission(&tool);
        let known = rules.get(permission);
        if let Some(what) = allowed(permission, &scopes, known, setup.closed_tools.is_some(), sandbox.work()) {
            rules.insert(permission.to_owned(), what);
        }
    }
    hide_bundled_skill(&mut rules);
    Value::Object(rules)
}

/// Returns the permissions for a client that answers requests: calls that change something are asked for, unless the mode
/// or a list decides.
pub(super) fn asking(setup: &Setup, sandbox: &dyn Sandbox) -> Value {
    let mut rules = of(setup, sandbox);
    let asked: &[&str] = match setup.permission_mode {
        _ if setup.closed_tools.is_some() => &[],
        PermissionMode::BypassPermissions | PermissionMode::Plan => &[],
        PermissionMode::AcceptEdits => &["bash"],
        PermissionMode::Default => &["bash", "edit"],
    };
    for permission in asked.iter().filter(|permission| rules.get(**permission).is_none()).collect::<Vec<_>>() {
        rules[*permission] = json!("ask");
    }
    rules
}

/// Returns the tools in a list whose scopes OpenCode cannot enforce. Such a tool is omitted.
pub(super) fn cannot_be_limited(written: &[String]) -> Vec<String> {
    let is_limited = |entry: &ToolRule| !entry.scopes.is_empty() && scoped(tool::permission(&entry.tool)).is_none();
    entries(written).into_iter().filter(is_limited).map(|entry| entry.tool).collect()
}

/// Returns the names in a list of tools.
pub(super) fn names(written: &[String]) -> Vec<String> {
    entries(written).into_iter().map(|entry| entry.tool).collect()
}

fn entries(written: &[String]) -> Vec<ToolRule> {
    written.iter().map(|item| ToolRule::parse(item)).filter(|rule| !rule.tool.is_empty()).collect()
}

/// Returns the rules of a permission after adding `scopes` to those already `known`; `None` if nothing changes.
fn allowed(permission: &str, scopes: &[String], known: Option<&Value>, closed: bool, work: &Path) -> Option<Value> {
    if scopes.is_empty() {
        return Some(json!("allow"));
    }
    let patterns = scoped(permission)?;
    let mut rules = match known {
        Some(Value::Object(rules)) => rules.clone(),
        Some(Value::String(what)) if what == "deny" => Map::from_iter([("*".to_owned(), json!("deny"))]),
        None if closed => Map::from_iter([("*".to_owned(), json!("deny"))]),
        // Everything is already allowed.
        _ => return None,
    };
    for scope in scopes {
        rules.extend(patterns(scope, work).into_iter().map(|pattern| (pattern, json!("allow"))));
    }
    Some(Value::Object(rules))
}

fn scoped(permission: &str) -> Option<Patterns> {
    SCOPED.iter().find(|(known, _)| *known == permission).map(|(_, patterns)| *patterns)
}

/// Returns the command patterns for a scope. A scope without `*` allows additional arguments, as it always has in
/// suites.
fn commands(scope: &str) -> Vec<String> {
    let scope = scope.strip_suffix(":*").map_or_else(|| scope.to_owned(), |bare| format!("{bare} *"));
    if scope.contains('*') { vec![scope] } else { vec![scope.clone(), format!("{scope} *")] }
}

/// Returns the file patterns for a scope. Outside a repository, OpenCode uses paths from the file system's root.
fn paths(scope: &str, work: &Path) -> Vec<String> {
    if let Some(absolute) = scope.strip_prefix("//") {
        return vec![format!("/{absolute}"), absolute.to_owned()];
    }
    let scope = scope.trim_start_matches("./").trim_start_matches('/');
    let work = work.to_string_lossy();
    let mut patterns =
        vec![scope.to_owned(), format!("{work}/{scope}"), format!("{}/{scope}", work.trim_start_matches('/'))];
    if !scope.contains('*') {
        patterns.extend(patterns.clone().iter().map(|pattern| format!("{pattern}/*")));
    }
    patterns
}

/// Returns the rules for paths outside the working directory: denied, except for the sandbox's temporary files and the
/// tool output that OpenCode itself stores.
fn outside(sandbox: &dyn Sandbox) -> Value {
    let below = |path: &Path| format!("{}/*", path.to_string_lossy());
    let mut rules = Map::from_iter([("*".to_owned(), json!("deny"))]);
    for path in [below(sandbox.tmp()), below(&sandbox.home().join(".local/share/opencode/tool-output"))] {
        rules.insert(path, json!("allow"));
    }
    Value::Object(rules)
}

fn hide_bundled_skill(rules: &mut Map<String, Value>) {
    let skills = match rules.get("skill").or_else(|| rules.get("*")) {
        Some(Value::Object(skills)) => Some(skills.clone()),
        Some(Value::String(what)) if what == "allow" => Some(Map::from_iter([("*".to_owned(), json!("allow"))])),
        _ => None,
    };
    if let Some(mut skills) = skills {
        skills.insert(BUNDLED_SKILL.to_owned(), json!("deny"));
        rules.insert("skill".to_owned(), Value::Object(skills));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::harness::Bare;

    fn permissions(mode: PermissionMode, closed: Option<&[&str]>, approved: &[&str]) -> Value {
        let owned = |list: &[&str]| list.iter().map(|item| (*item).to_owned()).collect::<Vec<_>>();
        let setup = Setup {
            model: None,
            system_prompt: None,
            permission_mode: mode,
            closed_tools: closed.map(owned),
            approved_tools: owned(approved),
            setting_sources: Vec::new(),
            reasoning_effort: None,
            max_turns: Some(1),
            timeout_ms: 1,
        };
        let sandbox = Bare::new();
        let rules = of(&setup, sandbox.as_ref()).to_string();
        let folder = sandbox.outside("");
        let folder = folder.to_string_lossy();
        serde_json::from_str(&rules.replace(folder.trim_matches('/'), "b")).unwrap()
    }

    fn outside() -> Value {
        json!({"*": "deny", "/b/tmp/*": "allow", "/b/home/.local/share/opencode/tool-output/*": "allow"})
    }

    #[test]
    fn modes_deny_different_tools_and_never_ask() {
        let skill = json!({"*": "allow", "customize-opencode": "deny"});
        assert_eq!(permissions(PermissionMode::BypassPermissions, None, &[]), json!({"*": "allow", "skill": skill}));
        for mode in [PermissionMode::AcceptEdits, PermissionMode::Default] {
            let expected = json!({"*": "allow", "external_directory": outside(), "webfetch": "deny", "websearch": "deny",
                "skill": skill});
            assert_eq!(permissions(mode, None, &[]), expected);
        }
        let plan = permissions(PermissionMode::Plan, None, &["WebFetch", "Bash(git *)", "Read"]);
        assert_eq!(
            (&plan["edit"], &plan["webfetch"], &plan["read"]),
            (&json!("deny"), &json!("allow"), &json!("allow"))
        );
        assert_eq!(plan["bash"], json!({"*": "deny", "git *": "allow"}));
    }

    #[test]
    fn a_closed_list_denies_all_other_tools_in_every_mode() {
        let closed = permissions(
            PermissionMode::BypassPermissions,
            Some(&[
                "Read(docs/**)",
                "Bash(git *, npm test)",
                "Bash(ls:*)",
                "Write",
                "Skill(greet)",
                "Grep(docs/**)",
                "db_query",
            ]),
            &["WebFetch"],
        );
        assert_eq!(
            closed,
            json!({
                "*": "deny",
                "doom_loop": "allow",
                "external_directory": "allow",
                "read": {"*": "deny", "docs/**": "allow", "/b/work/docs/**": "allow", "b/work/docs/**": "allow"},
                "bash": {"*": "deny", "git *": "allow", "npm test": "allow", "npm test *": "allow", "ls *": "allow"},
                "edit": "allow",
                "skill": {"*": "deny", "greet": "allow", "customize-opencode": "deny"},
                "db_query": "allow",
            })
        );
        let rules: Vec<&String> = closed["read"].as_object().unwrap().keys().collect();
        assert_eq!(rules[0], "*", "the last matching rule applies");
        assert_eq!(cannot_be_limited(&["Grep(docs/**)".into(), "Read(a)".into(), "Glob".into()]), ["Grep"]);
        assert_eq!(permissions(PermissionMode::Default, Some(&[]), &[])["external_directory"], outside());
    }

    #[test]
    fn a_file_scope_becomes_a_pattern_relative_to_the_repository() {
        let work = Path::new("/b/work");
        assert_eq!(paths("//etc/*", work), ["/etc/*", "etc/*"]);
        assert_eq!(
            paths("./docs", work),
            ["docs", "/b/work/docs", "b/work/docs", "docs/*", "/b/work/docs/*", "b/work/docs/*"]
        );
    }
}
