//! Parses command lines in Codex's notation.

/// Returns the script of a shell command: `/bin/bash -lc 'git status'` becomes `git status`. Any other command is
/// unchanged.
pub(super) fn unwrapped(line: &str) -> String {
    words(line).and_then(|words| script(&words)).unwrap_or_else(|| line.to_owned())
}

/// Returns the script of a shell command that is a list of words. Any other command is quoted and joined.
pub(super) fn of_words(words: &[String]) -> String {
    script(words).unwrap_or_else(|| words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" "))
}

/// Quotes a word for a shell, if needed.
pub(super) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./=:@%+,".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Returns the script argument of a shell command.
fn script(words: &[String]) -> Option<String> {
    let [program, flag, script] = words else { return None };
    let name = program.rsplit('/').next().unwrap_or(program);
    (["sh", "bash", "zsh", "dash"].contains(&name) && ["-c", "-lc"].contains(&flag.as_str())).then(|| script.clone())
}

/// Splits a line into words and removes quotes; returns `None` if a quote is not closed.
fn words(line: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut rest = line.chars();
    while let Some(c) = rest.next() {
        match c {
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match rest.next()? {
                        '\'' => break,
                        c => word.push(c),
                    }
                }
            }
            '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match rest.next()? {
                        '"' => break,
                        '\\' => match rest.next()? {
                            c @ ('"' | '\\' | '$' | '`') => word.push(c),
                            '\n' => {}
                            c => word.extend(['\\', c]),
                        },
                        c => word.push(c),
                    }
                }
            }
            '\\' => word.get_or_insert_default().push(rest.next()?),
            c if c.is_whitespace() => words.extend(word.take()),
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    Some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_shell_runs_is_the_command() {
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
    fn words_become_a_line_that_a_shell_reads_as_them() {
        let of = |words: &[&str]| of_words(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
        assert_eq!(of(&["bash", "-lc", "ls | wc"]), "ls | wc");
        assert_eq!(of(&["rm", "-rf", "a b", "it's", ""]), r"rm -rf 'a b' 'it'\''s' ''");
    }
}
