//! Permissions of calls: the closed tool list, the permission mode, and the tools approved beforehand.

use model::{Effect, PermissionMode, ToolCall};

use super::reach::Reach;
use crate::Setup;

/// Permissions of an agent.
#[derive(Debug, Clone)]
pub(super) struct Permissions {
    mode: PermissionMode,
    closed: Option<Vec<Rule>>,
    approved: Vec<Rule>,
}

/// A tool and the scopes it is limited to, written as `Bash(git *, ls)`. Without scopes, all calls of the tool are
/// covered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Rule {
    pub(super) tool: String,
    scopes: Vec<String>,
}

impl Rule {
    /// Parses `Name` or `Name(scope, scope…)`.
    pub(super) fn parse(written: &str) -> Self {
        let (tool, scopes) = match written.split_once('(') {
            Some((tool, scopes)) => (tool, scopes.rsplit_once(')').map_or(scopes, |(scopes, _)| scopes)),
            None => (written, ""),
        };
        let scopes = scopes.split(',').map(str::trim).filter(|scope| !scope.is_empty());
        Self { tool: tool.trim().to_owned(), scopes: scopes.map(str::to_owned).collect() }
    }

    fn allows(&self, call: &ToolCall, reach: &Reach) -> bool {
        if self.tool != call.name {
            return false;
        }
        if self.scopes.is_empty() {
            return true;
        }
        let matches = |text: &str| self.scopes.iter().any(|scope| in_scope(scope, text));
        match (call.effect, subject(call, reach)) {
            (_, None) => false,
            // Every command of a line needs a matching scope: `git *` does not allow `git log; rm -rf .`.
            (Effect::Shell, Some(command)) => commands(&command)
                .is_some_and(|commands| !commands.is_empty() && commands.iter().all(|command| matches(command))),
            (_, Some(subject)) => matches(&subject),
        }
    }
}

/// Decision about a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The call is allowed.
    Allowed,
    /// The call needs the user's approval.
    Asks,
    /// The call is forbidden, for this reason.
    Forbidden(String),
}

impl Permissions {
    pub(super) fn of(setup: &Setup) -> Self {
        let rules = |written: &[String]| written.iter().map(|rule| Rule::parse(rule)).collect::<Vec<_>>();
        let closed = setup.closed_tools.as_deref().map(rules);
        // A closed list replaces the skill's own list: the tools it names need no further approval.
        let approved = closed.clone().unwrap_or_else(|| rules(&setup.approved_tools));
        Self { mode: setup.permission_mode, closed, approved }
    }

    /// Returns `true` if the tool is offered to the model.
    pub(super) fn has(&self, tool: &str) -> bool {
        self.closed.as_ref().is_none_or(|rules| rules.iter().any(|rule| rule.tool == tool))
    }

    /// Decides whether `call` is allowed.
    pub(super) fn verdict(&self, call: &ToolCall, reach: &Reach) -> Verdict {
        if let Some(rules) = &self.closed
            && !rules.iter().any(|rule| rule.allows(call, reach))
        {
            let scopes: Vec<_> =
                rules.iter().filter(|rule| rule.tool == call.name).flat_map(|rule| &rule.scopes).cloned().collect();
            return Verdict::Forbidden(format!("{} is limited to: {}", call.name, scopes.join(", ")));
        }
        let changes = matches!(call.effect, Effect::Shell | Effect::Write);
        let approved = || self.approved.iter().any(|rule| rule.allows(call, reach));
        match self.mode {
            _ if !changes => Verdict::Allowed,
            PermissionMode::BypassPermissions => Verdict::Allowed,
            PermissionMode::Plan => {
                Verdict::Forbidden(format!("{} is not allowed while planning: nothing may be changed", call.name))
            }
            PermissionMode::AcceptEdits if call.effect == Effect::Write || approved() => Verdict::Allowed,
            PermissionMode::Default if approved() => Verdict::Allowed,
            PermissionMode::AcceptEdits | PermissionMode::Default => Verdict::Asks,
        }
    }
}

/// Returns the text that scopes are matched against: the command, the path below the working directory, or the skill's
/// name.
fn subject(call: &ToolCall, reach: &Reach) -> Option<String> {
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
        return reach.locate(written).ok().map(|path| reach.shown(&path));
    }
    Some(written.to_owned())
}

/// Returns `true` if `text` matches `scope`. `*` is any text; `name:*` and `name *` also match `name` alone, and a
/// scope without `*` allows arguments after it.
fn in_scope(scope: &str, text: &str) -> bool {
    let text = text.trim();
    let bare = scope.strip_suffix(":*").or_else(|| scope.strip_suffix(" *"));
    let prefix = bare.or_else(|| (!scope.contains('*')).then_some(scope));
    match prefix {
        Some(prefix) if !prefix.contains('*') => {
            text.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with(char::is_whitespace))
        }
        Some(prefix) => like(prefix, text) || like(&format!("{prefix} *"), text),
        None => like(scope, text),
    }
}

/// Returns `true` if `text` matches `pattern`, in which `*` is any text.
fn like(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
    for part in middle {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

/// Splits a shell line into its commands. Returns `None` if it runs commands in constructs that are not analysed:
/// substitutions, groups and here-documents.
fn commands(line: &str) -> Option<Vec<String>> {
    let mut commands = vec![String::new()];
    let mut quote = None;
    let mut redirecting = false;
    let mut letters = line.chars().peekable();
    while let Some(letter) = letters.next() {
        let next = letters.peek().copied();
        if quote != Some('\'') {
            let substitutes = letter == '`' || (letter == '$' && next == Some('('));
            let unquoted = match letter {
                '(' | ')' => true,
                '<' => next == Some('<'),
                // In `$'…'` a quote can be escaped, unlike in `'…'`.
                '$' => next == Some('\''),
                _ => false,
            };
            if substitutes || (quote.is_none() && unquoted) {
                return None;
            }
        }
        match (quote, letter) {
            // In `2>&1`, the `&` does not start a command.
            (None, '&') if redirecting => {}
            (None, ';' | '&' | '|' | '\n') => {
                commands.push(String::new());
                redirecting = false;
                continue;
            }
            (None, '\'' | '"') => quote = Some(letter),
            (Some(open), _) if letter == open => quote = None,
            _ => {}
        }
        redirecting = quote.is_none() && matches!(letter, '<' | '>');
        if let Some(command) = commands.last_mut() {
            command.push(letter);
            if letter == '\\' && quote != Some('\'') {
                command.extend(letters.next());
            }
        }
    }
    if quote.is_some() {
        return None;
    }
    Some(commands.into_iter().map(|command| command.trim().to_owned()).filter(|command| !command.is_empty()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn permissions(mode: PermissionMode, closed: Option<&[&str]>, approved: &[&str]) -> Permissions {
        let rules = |written: &[&str]| written.iter().map(|rule| Rule::parse(rule)).collect::<Vec<_>>();
        let closed = closed.map(rules);
        Permissions { mode, approved: closed.clone().unwrap_or_else(|| rules(approved)), closed }
    }

    fn verdict(permissions: &Permissions, tool: &str, input: Value) -> Verdict {
        let dir = tempfile::tempdir().unwrap();
        let reach = Reach::new(dir.path(), dir.path(), dir.path());
        permissions.verdict(&ToolCall::new("c", tool, input, "m"), &reach)
    }

    fn bash(permissions: &Permissions, command: &str) -> bool {
        verdict(permissions, "Bash", json!({ "command": command })) == Verdict::Allowed
    }

    #[test]
    fn modes_allow_what_they_say() {
        use PermissionMode::{AcceptEdits, BypassPermissions, Default, Plan};
        for (mode, shell, write) in
            [(Plan, false, false), (Default, false, false), (AcceptEdits, false, true), (BypassPermissions, true, true)]
        {
            let permissions = permissions(mode, None, &[]);
            assert_eq!(bash(&permissions, "ls"), shell, "{mode:?}");
            for tool in ["Write", "Edit"] {
                let allowed = verdict(&permissions, tool, json!({"file_path": "a"})) == Verdict::Allowed;
                assert_eq!(allowed, write, "{mode:?} {tool}");
            }
            assert_eq!(verdict(&permissions, "Read", json!({"file_path": "a"})), Verdict::Allowed);
        }
    }

    #[test]
    fn approval_helps_except_while_planning() {
        let approved = ["Bash(git *)", "Write"];
        let default = permissions(PermissionMode::Default, None, &approved);
        assert!(bash(&default, "git status"));
        assert_eq!(verdict(&default, "Bash", json!({"command": "ls"})), Verdict::Asks);
        assert_eq!(verdict(&default, "Write", json!({"file_path": "a"})), Verdict::Allowed);
        assert_eq!(verdict(&default, "Edit", json!({"file_path": "a"})), Verdict::Asks);
        assert!(!bash(&permissions(PermissionMode::Plan, None, &approved), "git status"));
    }

    #[test]
    fn a_closed_list_is_closed_whatever_the_mode() {
        let closed = permissions(PermissionMode::BypassPermissions, Some(&["Bash(git *)", "Read(docs/*)"]), &[]);
        assert!(closed.has("Bash") && !closed.has("Write"));
        assert!(bash(&closed, "git log"));
        let Verdict::Forbidden(because) = verdict(&closed, "Bash", json!({"command": "ls"})) else { panic!("allowed") };
        assert_eq!(because, "Bash is limited to: git *");
        assert_eq!(verdict(&closed, "Read", json!({"file_path": "./docs/a/b.md"})), Verdict::Allowed);
        assert_ne!(verdict(&closed, "Read", json!({"file_path": "docs/../a"})), Verdict::Allowed);
        assert_ne!(verdict(&closed, "Read", json!({})), Verdict::Allowed);
    }

    #[test]
    fn every_command_of_a_line_needs_its_scope() {
        let closed = permissions(PermissionMode::BypassPermissions, Some(&["Bash(git *, ls, npm run:*)"]), &[]);
        for allowed in [
            "git",
            "git commit -m 'a; b && (c)'",
            "git add . && git commit -m \"x | y\"",
            "ls -la",
            "ls; ls",
            "npm run",
            "npm run test",
            "git log 2>&1 | ls",
            "git log > out",
            "git commit -m 'costs $(5)'",
        ] {
            assert!(bash(&closed, allowed), "{allowed}");
        }
        for refused in [
            "rm -rf .",
            "git log; rm x",
            "git log && rm x",
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
            assert!(!bash(&closed, refused), "{refused}");
        }
    }

    #[test]
    fn stars_are_any_text() {
        assert!(like("a*c*e", "abcde") && like("*", "") && like("a*", "a") && like("*b*", "abc"));
        assert!(!like("a*c", "ab") && !like("a*a", "a") && !like("abc", "abcd"));
    }
}
