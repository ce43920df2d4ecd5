//! Entries in lists of tools, such as `Bash(git *, ls)`.

/// A tool and the scopes to which it is limited; without scopes it is not limited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ToolRule {
    pub(crate) tool: String,
    pub(crate) scopes: Vec<String>,
}

impl ToolRule {
    /// Parses `Name` or `Name(scope, scope…)`.
    pub(crate) fn parse(written: &str) -> Self {
        let (tool, scopes) = written.split_once('(').unwrap_or((written, ""));
        let scopes = scopes.rsplit_once(')').map_or(scopes, |(scopes, _)| scopes);
        let scopes = scopes.split(',').map(str::trim).filter(|scope| !scope.is_empty());
        Self { tool: tool.trim().to_owned(), scopes: scopes.map(str::to_owned).collect() }
    }

    /// Returns `true` if a scope matches `text`: a command, a path or a name.
    pub(crate) fn covers(&self, text: &str) -> bool {
        self.scopes.iter().any(|scope| in_scope(scope, text))
    }
}

/// Returns `true` if `scope` matches `text`. `*` matches any text; `name:*` and `name *` also match `name` alone, and
/// a scope without `*` allows additional arguments.
fn in_scope(scope: &str, text: &str) -> bool {
    let text = text.trim();
    let bare = scope.strip_suffix(":*").or_else(|| scope.strip_suffix(" *"));
    let Some(bare) = bare.or_else(|| (!scope.contains('*')).then_some(scope)) else { return is_like(scope, text) };
    is_like(bare, text) || [" ", "\n", "\t"].iter().any(|gap| is_like(&format!("{bare}{gap}*"), text))
}

/// Returns `true` if `text` matches `pattern`, in which `*` matches any text. Unlike in path patterns, no other
/// character is special.
fn is_like(pattern: &str, text: &str) -> bool {
    let Some((first, stars)) = pattern.split_once('*') else { return pattern == text };
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = stars.split('*').collect();
    let last = parts.pop().unwrap_or_default();
    for part in parts {
        let Some((_, after)) = rest.split_once(part) else { return false };
        rest = after;
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_match_any_text() {
        assert!(is_like("a*c*e", "abcde") && is_like("*", "") && is_like("a*", "a") && is_like("*b*", "abc"));
        assert!(!is_like("a*c", "ab") && !is_like("a*a", "a") && !is_like("abc", "abcd"));
    }

    #[test]
    fn a_scope_without_a_star_allows_arguments() {
        for scope in ["npm run", "npm run *", "npm run:*"] {
            assert!(in_scope(scope, "npm run") && in_scope(scope, "npm run test") && !in_scope(scope, "npm runner"));
        }
        assert!(in_scope("git", "git\nlog") && in_scope("git", "git\tlog") && !in_scope("git*x", "git y"));
    }
}
