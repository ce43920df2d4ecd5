//! Parses command lines in Codex's notation.

use model::text::shell_word;

/// Returns the script in a shell command: `/bin/bash -lc 'git status'` becomes `git status`. Any other command is
/// returned unchanged.
pub(super) fn unwrapped(line: &str) -> String {
    shlex::split(line).and_then(|words| script(&words)).unwrap_or_else(|| line.to_owned())
}

/// Returns the script in a shell command that is a list of words. Any other command is quoted and joined.
pub(crate) fn of_words(words: &[String]) -> String {
    script(words).unwrap_or_else(|| words.iter().map(|word| shell_word(word)).collect::<Vec<_>>().join(" "))
}

/// Returns the script argument of a shell command.
fn script(words: &[String]) -> Option<String> {
    let [program, flag, script] = words else { return None };
    let name = program.rsplit('/').next().unwrap_or(program);
    (["sh", "bash", "zsh", "dash"].contains(&name) && ["-c", "-lc"].contains(&flag.as_str())).then(|| script.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_passed_to_a_shell_is_the_command() {
        for (line, command) in [
            ("/bin/bash -lc 'git status'", "git status"),
            ("bash -c ls", "ls"),
            (r#"/bin/bash -lc "echo \"a b\" '\$x' \n""#, r#"echo "a b" '$x' \n"#),
            (r"/bin/zsh -lc 'it'\''s'", "it's"),
            ("/bin/bash -lc 'a\nb'", "a\nb"),
            ("git status", "git status"),
            ("/bin/bash -lc 'open", "/bin/bash -lc 'open"),
            ("/bin/bash script.sh x", "/bin/bash script.sh x"),
            ("", ""),
        ] {
            assert_eq!(unwrapped(line), command, "{line}");
        }
    }

    #[test]
    fn words_are_quoted_into_an_equivalent_shell_command() {
        let of = |words: &[&str]| of_words(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
        assert_eq!(of(&["bash", "-lc", "ls | wc"]), "ls | wc");
        assert_eq!(of(&["rm", "-rf", "a b", "it's", ""]), r"rm -rf 'a b' 'it'\''s' ''");
    }
}
