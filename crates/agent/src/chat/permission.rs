//! Permissions of calls: the tool allow-list, the permission mode, and the pre-approved tools.

use model::{Effect, PermissionMode, ToolCall};

use super::access::FileAccess;
use crate::Setup;
use crate::command_line::CommandLine;
use crate::server::Server;
use crate::tool_rule::ToolRule;

/// Permissions of an agent.
#[derive(Debug, Clone)]
pub(super) struct Permissions {
    mode: PermissionMode,
    allow_list: Option<Vec<ToolRule>>,
    approved: Vec<ToolRule>,
    /// Names of the MCP servers whose tools are all allowed.
    servers: Vec<String>,
}

/// Returns `true` if `rule` allows `call`.
fn allows(rule: &ToolRule, call: &ToolCall, access: &FileAccess) -> bool {
    if rule.tool != call.name {
        return false;
    }
    if rule.scopes.is_empty() {
        return true;
    }
    match (call.effect, subject(call, access)) {
        (_, None) => false,
        // Each command in a line needs a scope: `git *` does not allow `git log; rm -rf .`. A line with commands in
        // positions that the parser does not analyse is never allowed.
        (Effect::Shell, Some(line)) => {
            let CommandLine { commands, is_plain } = CommandLine::parse(&line);
            is_plain && !commands.is_empty() && commands.iter().all(|command| rule.covers(command))
        }
        (_, Some(subject)) => rule.covers(&subject),
    }
}

/// Decision about a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PermissionDecision {
    /// The call is allowed.
    Allow,
    /// The call needs the user's approval.
    AskUser,
    /// The call is forbidden, for this reason.
    Deny(String),
}

impl Permissions {
    pub(super) fn from_setup(setup: &Setup) -> Self {
        let rules = |written: &[String]| written.iter().map(|rule| ToolRule::parse(rule)).collect::<Vec<_>>();
        let allow_list = setup.closed_tools.as_deref().map(rules);
        // An allow-list replaces the skill's own list: the tools on it need no further approval.
        let approved = allow_list.clone().unwrap_or_else(|| rules(&setup.approved_tools));
        Self { mode: setup.permission_mode, allow_list, approved, servers: Vec::new() }
    }

    /// Adds the servers that the case gives to the agent, unless the list names some of their tools.
    pub(super) fn with_servers(mut self, servers: &[Server]) -> Self {
        self.servers = servers.iter().map(|server| server.name.clone()).collect();
        if let Some(rules) = &mut self.allow_list {
            let named: Vec<String> = rules.iter().map(|rule| rule.tool.clone()).collect();
            let is_limited =
                |name: &String| servers.iter().any(|server| server.name == *name && server.listed(&named).is_some());
            self.servers.retain(|name| !is_limited(name));
        }
        self
    }

    /// Returns `true` if all tools of the server to which `tool` belongs are allowed.
    fn is_of_server(&self, tool: &str) -> bool {
        let rest = tool.strip_prefix("mcp__").unwrap_or_default();
        self.servers.iter().any(|name| rest.strip_prefix(name.as_str()).is_some_and(|rest| rest.starts_with("__")))
    }

    /// Returns `true` if the tool is offered to the model.
    pub(super) fn has(&self, tool: &str) -> bool {
        self.is_of_server(tool)
            || self.allow_list.as_ref().is_none_or(|rules| rules.iter().any(|rule| rule.tool == tool))
    }

    /// Decides whether `call` is allowed.
    pub(super) fn decide(&self, call: &ToolCall, access: &FileAccess) -> PermissionDecision {
        if self.is_of_server(&call.name) {
            return PermissionDecision::Allow;
        }
        if let Some(rules) = &self.allow_list
            && !rules.iter().any(|rule| allows(rule, call, access))
        {
            let scopes: Vec<_> =
                rules.iter().filter(|rule| rule.tool == call.name).flat_map(|rule| &rule.scopes).cloned().collect();
            return PermissionDecision::Deny(format!("{} is limited to: {}", call.name, scopes.join(", ")));
        }
        let changes = matches!(call.effect, Effect::Shell | Effect::Write);
        let approved = || self.approved.iter().any(|rule| allows(rule, call, access));
        match self.mode {
            _ if !changes => PermissionDecision::Allow,
            PermissionMode::BypassPermissions => PermissionDecision::Allow,
            PermissionMode::Plan => {
                PermissionDecision::Deny(format!("{} is not allowed in plan mode, which forbids changes", call.name))
            }
            PermissionMode::AcceptEdits if call.effect == Effect::Write || approved() => PermissionDecision::Allow,
            PermissionMode::Default if approved() => PermissionDecision::Allow,
            PermissionMode::AcceptEdits | PermissionMode::Default => PermissionDecision::AskUser,
        }
    }
}

/// Returns the text that scopes are matched against: the command, the path below the working directory, or the name of
/// the skill.
fn subject(call: &ToolCall, access: &FileAccess) -> Option<String> {
    let tool = model::tool::find(&call.name)?;
    let (argument, is_path) = match tool.paths.first() {
        Some((path, _)) => (*path, true),
        None => (tool.key_argument?, false),
    };
    let written = match call.input.get(argument) {
        Some(value) => value.as_str()?,
        // A search without a path covers the whole working directory.
        None if is_path => ".",
        None => return None,
    };
    if is_path {
        return access.locate(written).ok().map(|path| access.shown(&path));
    }
    Some(written.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn permissions(mode: PermissionMode, allow_list: Option<&[&str]>, approved: &[&str]) -> Permissions {
        let rules = |written: &[&str]| written.iter().map(|rule| ToolRule::parse(rule)).collect::<Vec<_>>();
        let allow_list = allow_list.map(rules);
        Permissions {
            mode,
            approved: allow_list.clone().unwrap_or_else(|| rules(approved)),
            allow_list,
            servers: Vec::new(),
        }
    }

    fn decide(permissions: &Permissions, tool: &str, input: Value) -> PermissionDecision {
        let dir = tempfile::tempdir().unwrap();
        let access = FileAccess::new(dir.path(), dir.path(), dir.path());
        permissions.decide(&ToolCall::new("c", tool, input, "m"), &access)
    }

    fn bash(permissions: &Permissions, command: &str) -> bool {
        decide(permissions, "Bash", json!({ "command": command })) == PermissionDecision::Allow
    }

    #[test]
    fn modes_allow_the_documented_tools() {
        use PermissionMode::{AcceptEdits, BypassPermissions, Default, Plan};
        for (mode, shell, write) in
            [(Plan, false, false), (Default, false, false), (AcceptEdits, false, true), (BypassPermissions, true, true)]
        {
            let permissions = permissions(mode, None, &[]);
            assert_eq!(bash(&permissions, "ls"), shell, "{mode:?}");
            for tool in ["Write", "Edit"] {
                let allowed = decide(&permissions, tool, json!({"file_path": "a"})) == PermissionDecision::Allow;
                assert_eq!(allowed, write, "{mode:?} {tool}");
            }
            assert_eq!(decide(&permissions, "Read", json!({"file_path": "a"})), PermissionDecision::Allow);
        }
    }

    #[test]
    fn preapproval_applies_except_in_plan_mode() {
        let approved = ["Bash(git *)", "Write"];
        let default = permissions(PermissionMode::Default, None, &approved);
        assert!(bash(&default, "git status"));
        assert_eq!(decide(&default, "Bash", json!({"command": "ls"})), PermissionDecision::AskUser);
        assert_eq!(decide(&default, "Write", json!({"file_path": "a"})), PermissionDecision::Allow);
        assert_eq!(decide(&default, "Edit", json!({"file_path": "a"})), PermissionDecision::AskUser);
        assert!(!bash(&permissions(PermissionMode::Plan, None, &approved), "git status"));
    }

    #[test]
    fn a_closed_list_applies_in_every_mode() {
        let allow_list = permissions(PermissionMode::BypassPermissions, Some(&["Bash(git *)", "Read(docs/*)"]), &[]);
        assert!(allow_list.has("Bash") && !allow_list.has("Write"));
        assert!(bash(&allow_list, "git log"));
        let PermissionDecision::Deny(reason) = decide(&allow_list, "Bash", json!({"command": "ls"})) else {
            panic!("allowed")
        };
        assert_eq!(reason, "Bash is limited to: git *");
        assert_eq!(decide(&allow_list, "Read", json!({"file_path": "./docs/a/b.md"})), PermissionDecision::Allow);
        assert_ne!(decide(&allow_list, "Read", json!({"file_path": "docs/../a"})), PermissionDecision::Allow);
        assert_ne!(decide(&allow_list, "Read", json!({})), PermissionDecision::Allow);
    }

    #[test]
    fn every_command_of_a_line_needs_its_scope() {
        let allow_list = permissions(PermissionMode::BypassPermissions, Some(&["Bash(git *, ls, npm run:*)"]), &[]);
        for allowed in [
            "git",
            "git commit -m 'a; b && (c)'",
            "git add . && git commit -m \"x | y\"",
            "ls -la",
            "ls; ls",
            "npm run",
            "npm run test",
            "git log 2>&1 | ls",
            "git log > /dev/null 2>/dev/null",
            "git log 2>&1",
            "git log >&2; ls >&-",
            "git commit -m '> out'",
            "git commit -m 'costs $(5)'",
        ] {
            assert!(bash(&allow_list, allowed), "{allowed}");
        }
        for refused in [
            "rm -rf .",
            "git log; rm x",
            "git log && rm x",
            "git log > out",
            "git log >>out",
            "git log 2>../out",
            "git log >| out",
            "git log >&out",
            "git log >&2x",
            "git log 2>&1 > /dev/nullx",
            "git log <> out",
            "git log | sh",
            "git log & rm x",
            "gitk",
            "lsof",
            "",
            "git log $(rm x)",
            "git log `rm x`",
            "git commit -m \"$(rm x)\"",
            "git log\nrm x",
            "git <(rm x)",
            "npm runner",
            "git log \\\n; rm x",
            "git x 'a'\\'' ; rm x",
            "git $'\\'' ; rm x #'",
            "git log \\>& rm x",
            "git log &> out",
        ] {
            assert!(!bash(&allow_list, refused), "{refused}");
        }
    }
}
