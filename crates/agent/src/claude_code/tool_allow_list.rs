//! A tool allow-list: the tools that exist, and the scopes that their calls must match.
//!
//! The CLI has its own rules for scopes, and asks its host about calls that they do not allow. But it allows calls
//! that it considers harmless, such as `ls` or reading below the working directory, without asking. So a hook checks
//! every call to a tool with scopes first, and a call runs only if both agree.

use std::path::Path;

use ignore::gitignore::GitignoreBuilder;
use model::{Effect, tool};
use serde_json::Value;

use crate::command_line::CommandLine;
use crate::resolve::Resolver;
use crate::server::Server;
use crate::tool_rule::ToolRule;

/// A tool allow-list. It is also used to parse other lists of tools.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ToolAllowList {
    entries: Vec<ToolRule>,
}

impl ToolAllowList {
    /// Parses entries `Name` and `Name(scope, scope…)`. A tool that is listed twice has the scopes of both entries; if
    /// one of them has no scope, the tool is not limited.
    pub(super) fn read(written: &[String]) -> Self {
        let mut entries: Vec<ToolRule> = Vec::new();
        for rule in written.iter().map(|item| ToolRule::parse(item)).filter(|rule| !rule.tool.is_empty()) {
            match entries.iter_mut().find(|entry| entry.tool == rule.tool) {
                Some(entry) if entry.scopes.is_empty() || rule.scopes.is_empty() => entry.scopes.clear(),
                Some(entry) => entry.scopes.extend(rule.scopes),
                None => entries.push(rule),
            }
        }
        Self { entries }
    }

    /// Adds the servers that the case gives to the agent, unless the list names some of their tools.
    pub(super) fn with_servers(mut self, servers: &[Server]) -> Self {
        for server in servers {
            let named: Vec<String> = self.entries.iter().map(|entry| entry.tool.clone()).collect();
            if server.listed(&named).is_none() {
                self.entries.push(ToolRule { tool: format!("mcp__{}", server.name), scopes: Vec::new() });
            }
        }
        self
    }

    /// Returns the names of the built-in tools in the list.
    pub(super) fn built_in(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().map(|entry| entry.tool.as_str()).filter(|tool| !tool.starts_with("mcp__"))
    }

    /// Returns `true` if the list names tools of MCP servers.
    pub(super) fn names_servers(&self) -> bool {
        self.entries.iter().any(|entry| entry.tool.starts_with("mcp__"))
    }

    /// Returns `true` if at least one tool is limited to scopes.
    pub(super) fn is_scoped(&self) -> bool {
        self.entries.iter().any(|entry| !entry.scopes.is_empty())
    }

    /// Returns the list as the CLI's own permission rules. A scope for commands without `*` allows additional
    /// arguments, as it always has in suites; the CLI would match only that exact command line.
    pub(super) fn rules(&self) -> Vec<String> {
        let mut rules = Vec::new();
        for ToolRule { tool, scopes } in &self.entries {
            if scopes.is_empty() {
                rules.push(tool.clone());
            }
            for scope in scopes {
                rules.push(format!("{tool}({scope})"));
                if tool::effect(tool) == Effect::Shell && !scope.contains('*') {
                    rules.push(format!("{tool}({scope}:*)"));
                }
            }
        }
        rules
    }

    /// Returns the reason why a call must not run even if the CLI would allow it; `None` if there is none.
    pub(super) fn objection(&self, name: &str, input: &Value, resolver: &Resolver) -> Option<String> {
        let Some(entry) = self.entries.iter().find(|entry| entry.tool == name) else {
            // For the CLI, built-in tools that are not listed do not exist, whereas tools of servers do.
            let server = name.strip_prefix("mcp__")?.split("__").next()?;
            let whole_server = format!("mcp__{server}");
            let listed = self.entries.iter().any(|entry| entry.tool == whole_server);
            return (!listed).then(|| format!("{name} is not among the tools of this session"));
        };
        if entry.scopes.is_empty() {
            return None;
        }
        let within = match tool::effect(name) {
            Effect::Shell => commands_within(entry, input.get("command").and_then(Value::as_str).unwrap_or_default()),
            Effect::Read | Effect::Write | Effect::Search => path_within(entry, input, resolver),
            Effect::Skill => {
                let skill = input.get("skill").and_then(Value::as_str).unwrap_or_default();
                entry.covers(skill)
            }
            // The CLI asks its host about these, and the host denies them.
            Effect::Ask | Effect::Mcp | Effect::Other => true,
        };
        (!within).then(|| format!("{name} is limited to: {}", entry.scopes.join(", ")))
    }
}

/// Returns `true` if each command in a shell line is within a scope. Quoted text, substitutions and here-documents are
/// not analysed: the CLI does that, and asks if it does not understand them.
fn commands_within(entry: &ToolRule, line: &str) -> bool {
    let CommandLine { commands, .. } = CommandLine::parse(line);
    !commands.is_empty() && commands.iter().all(|command| entry.covers(without_assignments(command)))
}

/// Returns `true` if the path in a call is within a scope. Scopes are patterns as in `.gitignore`, relative to the
/// working directory; `~/` is the agent's home and `//` the file system's root.
fn path_within(entry: &ToolRule, input: &Value, resolver: &Resolver) -> bool {
    let Some(tool) = tool::find(&entry.tool) else { return false };
    let Some((argument, _)) = tool.paths.first() else { return false };
    let written = input.get(argument).and_then(Value::as_str).unwrap_or(".");
    let (Some(path), Some(work)) = (resolver.resolve(written), &resolver.work) else { return false };
    entry.scopes.iter().any(|scope| {
        let (root, pattern) = match (scope.strip_prefix("//"), scope.strip_prefix("~/"), &resolver.home) {
            (Some(rest), _, _) => (Path::new("/"), format!("/{rest}")),
            (_, Some(rest), Some(home)) => (home.as_path(), format!("/{rest}")),
            _ => (work.as_path(), scope.clone()),
        };
        let mut builder = GitignoreBuilder::new(root);
        let Ok(below) = path.strip_prefix(root) else { return false };
        if builder.add_line(None, &pattern).is_err() {
            return false;
        }
        builder.build().is_ok_and(|patterns| patterns.matched_path_or_any_parents(below, path.is_dir()).is_ignore())
    })
}

/// Returns a command without preceding variable assignments.
fn without_assignments(command: &str) -> &str {
    let mut rest = command.trim_start();
    while let Some((word, after)) = rest.split_once(char::is_whitespace) {
        let is_assignment = word.split_once('=').is_some_and(|(name, value)| {
            !name.is_empty()
                && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
                && !value.contains(['"', '\'', '`', '$', '('])
        });
        if !is_assignment {
            break;
        }
        rest = after.trim_start();
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn closed(written: &[&str]) -> ToolAllowList {
        ToolAllowList::read(&written.iter().map(|item| (*item).to_owned()).collect::<Vec<_>>())
    }

    fn resolver(work: &Path) -> Resolver {
        Resolver { work: Some(work.to_owned()), home: Some(work.join("home")) }
    }

    fn runs(tools: &ToolAllowList, command: &str) -> bool {
        tools.objection("Bash", &json!({ "command": command }), &resolver(Path::new("/w"))).is_none()
    }

    #[test]
    fn a_list_defines_the_available_tools_and_grants_permission_for_them() {
        let tools = closed(&["Read", "Bash(git *)", "Bash(npm test)", "mcp__db__query", "Read"]);
        assert_eq!(tools.built_in().collect::<Vec<_>>(), ["Read", "Bash"]);
        assert_eq!(tools.rules(), ["Read", "Bash(git *)", "Bash(npm test)", "Bash(npm test:*)", "mcp__db__query"]);
        assert!(tools.is_scoped() && tools.names_servers());
        assert!(!closed(&["Bash(git *)", "Bash"]).is_scoped());
        assert_eq!(closed(&["Bash(ls, cat *)"]).rules(), ["Bash(ls)", "Bash(ls:*)", "Bash(cat *)"]);
    }

    #[test]
    fn every_command_of_a_line_must_be_within_a_scope() {
        let tools = closed(&["Bash(git *, npm test)"]);
        for within in [
            "git status",
            "git",
            "git add . && git commit -m \"a; b | c\"",
            "git log --oneline 2>&1",
            "git diff &> out",
            "npm test --silent",
            "GIT_PAGER=cat git log",
            "git commit -m \"$(cat <<'EOF'\nfeat: x; y && z\n\nEOF\n)\"",
            "git commit -F - <<EOF\nrm -rf .\nEOF\ngit status",
            "git commit -m 'it'\\''s'",
        ] {
            assert!(runs(&tools, within), "{within}: {:?}", CommandLine::parse(within));
        }
        for outside in [
            "ls",
            "",
            "gitk",
            "git log; ls",
            "git log && rm -rf .",
            "git log | head",
            "git log\nls",
            "git log & ls",
            "npm testing",
            "git commit -F - <<EOF\nx\nEOF\nls",
            "(ls)",
            "A=1 ls",
        ] {
            assert!(!runs(&tools, outside), "{outside}: {:?}", CommandLine::parse(outside));
        }
    }

    #[test]
    fn a_path_must_be_within_a_scope_after_links_are_resolved() {
        let dir = tempfile::tempdir().unwrap();
        let work = dir.path().canonicalize().unwrap();
        std::fs::create_dir_all(work.join("docs/deep")).unwrap();
        std::os::unix::fs::symlink("/etc", work.join("docs/etc")).unwrap();
        let tools = closed(&["Read(docs/**)", "Grep(docs/**)", "Write(*.md)", "Edit(//tmp/x/**)"]);
        let refused = |tool: &str, path: &str| {
            let argument = if tool == "Grep" { "path" } else { "file_path" };
            tools.objection(tool, &json!({ argument: path }), &resolver(&work)).is_some()
        };
        assert!(!refused("Read", "docs/deep/a.md") && !refused("Grep", "docs/deep") && !refused("Write", "a/b.md"));
        assert!(!refused("Edit", "/tmp/x/y"));
        assert!(
            refused("Read", "src/a.rs") && refused("Read", "docs/../src/a.rs") && refused("Read", "docs/etc/passwd")
        );
        assert!(refused("Write", "a.txt") && refused("Edit", "y"));
        assert!(tools.objection("Grep", &json!({}), &resolver(&work)).is_some());
    }

    #[test]
    fn tools_of_mcp_servers_must_be_listed() {
        let tools = closed(&["Read", "mcp__db__query", "mcp__files"]);
        let refused = |name: &str| tools.objection(name, &json!({}), &resolver(Path::new("/w"))).is_some();
        assert!(!refused("mcp__db__query") && !refused("mcp__files__list") && !refused("Read"));
        assert!(refused("mcp__db__drop"));
    }
}
