//! `allowed-tools`: the tools that a skill declares.
//!
//! Skills write it in several forms: `Read, Write`, `Read Write`, a YAML list, and scopes in parentheses that may
//! themselves contain spaces and commas, as in `Bash(git *, npm test)`. White space and commas separate tools outside
//! parentheses, and a closing parenthesis ends its tool.

use model::AllowedTool;

/// Splits `written` into tools, each as written.
pub fn tokens(written: &str) -> Vec<String> {
    let mut tokens = Vec::new();
    let mut token = String::new();
    let mut depth = 0_usize;
    let mut end = |token: &mut String| {
        if !token.is_empty() {
            tokens.push(std::mem::take(token));
        }
    };
    for c in written.chars() {
        if depth == 0 && (c.is_whitespace() || c == ',') {
            end(&mut token);
            continue;
        }
        token.push(c);
        match c {
            '(' => depth += 1,
            ')' if depth == 1 => {
                depth = 0;
                end(&mut token);
            }
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    end(&mut token);
    tokens
}

/// Merges tools by name in order of first appearance, and combines the scopes of each name. A name that occurs once
/// without scopes is allowed without restriction, whatever its other entries say.
pub fn merged(tokens: &[String]) -> Vec<AllowedTool> {
    let mut tools: Vec<AllowedTool> = Vec::new();
    let mut whole: Vec<String> = Vec::new();
    for token in tokens {
        let (name, scopes) = parts(token);
        if scopes.is_empty() {
            whole.push(name.clone());
        }
        let index = tools.iter().position(|tool| tool.name == name).unwrap_or_else(|| {
            tools.push(AllowedTool { name, scopes: Vec::new() });
            tools.len() - 1
        });
        for scope in scopes {
            if !tools[index].scopes.contains(&scope) {
                tools[index].scopes.push(scope);
            }
        }
    }
    for tool in &mut tools {
        if whole.contains(&tool.name) {
            tool.scopes.clear();
        }
    }
    tools
}

/// Returns the reason why `token` is not a tool; `None` if it is one.
pub fn fault(token: &str) -> Option<&'static str> {
    if token.starts_with('(') {
        Some("has scopes without a tool before them")
    } else if token.contains('(') && !token.ends_with(')') {
        Some("opens a parenthesis that is never closed")
    } else if !token.contains('(') && token.contains(')') {
        Some("closes a parenthesis that was never opened")
    } else {
        None
    }
}

/// Returns the known tool that is meant if the one in `token` is misspelt.
pub fn misspelt(token: &str) -> Option<&'static str> {
    model::tool::misspelt(&parts(token).0)
}

/// Returns the name and the scopes of one tool.
fn parts(token: &str) -> (String, Vec<String>) {
    let Some((name, rest)) = token.split_once('(') else {
        return (token.to_owned(), Vec::new());
    };
    let scopes = rest.rfind(')').map_or(rest, |close| &rest[..close]);
    let scopes = scopes.split(',').map(str::trim).filter(|scope| !scope.is_empty()).map(str::to_owned).collect();
    (name.to_owned(), scopes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(written: &str) -> Vec<String> {
        merged(&tokens(written))
            .iter()
            .map(
                |tool| {
                    if tool.scopes.is_empty() { tool.name.clone() } else { format!("{}{:?}", tool.name, tool.scopes) }
                },
            )
            .collect()
    }

    #[test]
    fn commas_and_white_space_separate_tools_except_inside_scopes() {
        assert_eq!(
            tokens("Read, Write,Bash(git *, npm test)\n\tGrep"),
            ["Read", "Write", "Bash(git *, npm test)", "Grep"]
        );
        assert_eq!(tokens("Bash(git *)Read"), ["Bash(git *)", "Read"]);
        assert_eq!(tokens("Bash(echo $(date), ls)"), ["Bash(echo $(date), ls)"]);
        assert!(tokens(" , ,").is_empty());
    }

    #[test]
    fn scopes_of_one_tool_are_merged() {
        assert_eq!(read("Bash(mkdir, npx) Read Bash(git *, npx)"), [r#"Bash["mkdir", "npx", "git *"]"#, "Read"]);
        assert_eq!(read("Bash() Read()"), ["Bash", "Read"]);
    }

    #[test]
    fn a_tool_without_scopes_is_allowed_without_restriction() {
        assert_eq!(read("Bash(git *) Bash"), ["Bash"]);
        assert_eq!(read("Bash Bash(git *)"), ["Bash"]);
    }

    #[test]
    fn a_name_with_one_mistake_means_the_known_tool() {
        for (token, meant) in [
            ("Edti", Some("Edit")),
            ("Bsah(git *)", Some("Bash")),
            ("WebFeth", Some("WebFetch")),
            ("Writte", Some("Write")),
            ("Bsh", Some("Bash")),
            ("Ask", None),
            ("Edit", None),
            ("Tasks", None),
            ("read", None),
            ("Gold", None),
            ("mcp__a__b", None),
        ] {
            assert_eq!(misspelt(token), meant, "{token}");
        }
    }

    #[test]
    fn invalid_tool_names_are_reported() {
        assert!(fault("(x)").is_some());
        assert!(fault("Bash(git *").is_some());
        assert!(fault("Bash)").is_some());
        assert_eq!(fault("Bash(git *)"), None);
        assert_eq!(fault("mcp__a__b"), None);
    }
}
