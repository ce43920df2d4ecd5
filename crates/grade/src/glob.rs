//! Wildcard patterns for names and paths: `*` matches any characters, `?` matches one, `[a-z]` matches one in a class.
//!
//! Patterns are compiled to regular expressions instead of using `globset`, which matches bytes (`?` does not match
//! `é`) and treats braces as alternatives. The agents' file tools do use `globset`, because models expect braces to
//! work.

use regex::{Regex, escape};

/// A compiled pattern.
#[derive(Debug, Clone)]
pub(crate) struct Glob(Option<Regex>);

impl Glob {
    /// Compiles a pattern for names, in which `/` is an ordinary character.
    pub(crate) fn name(pattern: &str) -> Self {
        Self::compile(&translate(pattern, "", "."))
    }

    /// Compiles a pattern for paths: `*` does not match `/`, and `**` matches any number of directories, or none.
    pub(crate) fn path(pattern: &str) -> Self {
        let names = pattern.split('/').filter(|name| !name.is_empty() && *name != ".");
        let name = |name| match name {
            "**" => "(?:[^/]*/)*".to_owned(),
            name => translate(name, "/", "[^/]") + "/",
        };
        Self::compile(&names.map(name).collect::<String>())
    }

    /// Compiles a regular expression. If it is too large, the pattern matches nothing.
    fn compile(regex: &str) -> Self {
        Self(Regex::new(&format!("(?s)^{regex}$")).ok())
    }

    /// Returns `true` if all of `name` matches.
    pub(crate) fn is_match(&self, name: &str) -> bool {
        self.0.as_ref().is_some_and(|regex| regex.is_match(name))
    }

    /// Returns `true` if all of `path` matches.
    pub(crate) fn is_match_path(&self, path: &str) -> bool {
        let names = path.split('/').filter(|name| !name.is_empty());
        self.is_match(&names.flat_map(|name| [name, "/"]).collect::<String>())
    }
}

/// Returns `true` if all of `name` matches `pattern`.
pub(crate) fn matches(pattern: &str, name: &str) -> bool {
    Glob::name(pattern).is_match(name)
}

/// Returns `true` if `pattern` has alternatives, which are ordinary characters here: `*.{log,tmp}`, `{1..3}`, `*.log, *.tmp`.
pub(crate) fn has_alternatives(pattern: &str) -> bool {
    let inner = pattern.split_once('{').map(|(_, rest)| rest.split_once('}').map_or(rest, |(inner, _)| inner));
    inner.is_some_and(|inner| inner.contains(',') || inner.contains("..")) || pattern.replace(' ', "").contains(",*")
}

/// Returns the regular expression for `pattern`. `any` matches any character; negated classes also exclude `never`.
fn translate(pattern: &str, never: &str, any: &str) -> String {
    let mut regex = String::new();
    let mut rest = pattern;
    while let Some(letter) = rest.chars().next() {
        let after = &rest[letter.len_utf8()..];
        rest = after;
        match (letter, class(after)) {
            ('*', _) => regex.extend([any, "*"]),
            ('?', _) => regex.push_str(any),
            ('[', Some((is_not, members, behind))) => {
                let not = if is_not { format!("^{never}") } else { String::new() };
                regex.push_str(&format!("[{not}{members}]"));
                rest = behind;
            }
            _ => regex.push_str(&escape(letter.encode_utf8(&mut [0; 4]))),
        }
    }
    regex
}

/// Parses a class after its `[`. Returns true if it is negated, its characters, and the text after its `]`.
fn class(text: &str) -> Option<(bool, String, &str)> {
    let members = text.strip_prefix(['!', '^']).unwrap_or(text);
    // A bracket in first position is literal.
    let end = members.char_indices().skip(1).find(|(_, letter)| *letter == ']')?.0;
    let escaped = escape(&members[..end]).replace(r"\-", "-");
    Some((members.len() < text.len(), escaped, &members[end + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards_match_characters() {
        for (pattern, text, expected) in [
            ("feat/*", "feat/a/b", true),
            ("feat/*", "feature/a", false),
            ("*a*b", "xxaxxab", true),
            ("*a*b", "xxaxxabc", false),
            ("v?.[0-9]", "v1.2", true),
            ("v?.[!0-9]", "v1.2", false),
            ("[]a]", "]", true),
            ("[a", "[a", true),
            ("", "", true),
            ("", "a", false),
            ("é?", "éü", true),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        }
        assert!(!matches(&"*a".repeat(200), &"a".repeat(190)), "stars do not cause exponential time");
    }

    #[test]
    fn alternatives_are_found() {
        for pattern in ["*.{log,tmp}", "{1..3}.md", "*.{log,tmp", "*.log, *.tmp"] {
            assert!(has_alternatives(pattern), "{pattern}");
        }
        for pattern in ["{{name}}/a,b", "a}b,c", "${id}.md", "*.log"] {
            assert!(!has_alternatives(pattern), "{pattern}");
        }
    }

    #[test]
    fn a_star_does_not_match_a_slash_but_two_do() {
        for (pattern, path, expected) in [
            ("src/*.py", "src/app.py", true),
            ("src/*.py", "src/a/app.py", false),
            ("src/**/*.py", "src/a/b/app.py", true),
            ("src/**/*.py", "src/app.py", true),
            ("**", "a/b", true),
            ("**/app.py", "src/app.py", true),
            ("./a", "a", true),
            ("a", "b/a", false),
            ("data/", "data", true),
        ] {
            assert_eq!(Glob::path(pattern).is_match_path(path), expected, "{pattern} {path}");
        }
    }
}
