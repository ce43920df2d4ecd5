//! Splits a command line into words.

/// Characters that have a meaning for a shell outside quotes. The command is not run by a shell.
const OF_A_SHELL: [char; 8] = ['|', '&', ';', '<', '>', '$', '`', '('];

/// Splits `text` at spaces, except within quotes or after a backslash.
pub(crate) fn words(text: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match letter {
            ' ' | '\t' | '\n' | '\r' => words.extend(word.take()),
            '\'' => quoted(&mut letters, '\'', word.get_or_insert_default())?,
            '"' => quoted(&mut letters, '"', word.get_or_insert_default())?,
            '\\' => word.get_or_insert_default().extend(letters.next()),
            other if OF_A_SHELL.contains(&other) => {
                return Err(format!("`{other}` needs a shell, but the command is not run by a shell"));
            }
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    let is_name = |name: &str| {
        let is_letter = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_') && name.chars().all(is_letter)
    };
    match words.first().filter(|word| word.split_once('=').is_some_and(|(name, _)| is_name(name))) {
        Some(variable) => Err(format!("`{variable}` needs a shell, but the command is not run by a shell")),
        None => Ok(words),
    }
}

/// Reads up to the closing quote. In double quotes, a backslash escapes only a quote or another backslash.
fn quoted(letters: &mut std::str::Chars<'_>, quote: char, word: &mut String) -> Result<(), String> {
    while let Some(letter) = letters.next() {
        match letter {
            _ if letter == quote => return Ok(()),
            '\\' if quote == '"' => match letters.next() {
                Some(next @ ('"' | '\\')) => word.push(next),
                next => {
                    word.push('\\');
                    word.extend(next);
                }
            },
            _ => word.push(letter),
        }
    }
    Err(format!("a `{quote}` is not closed"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_end_at_spaces_outside_quotes() {
        for (text, expected) in [
            ("python3  agent.py\t--fast", vec!["python3", "agent.py", "--fast"]),
            (r#"a 'b c' "d \"e\" \n" f\ g"#, vec!["a", "b c", "d \"e\" \\n", "f g"]),
            ("a '' b''c", vec!["a", "", "bc"]),
            ("'a|b' \"$x\" \\$y", vec!["a|b", "$x", "$y"]),
            ("  ", vec![]),
        ] {
            assert_eq!(words(text).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn shell_only_syntax_is_rejected() {
        assert_eq!(words("cat x | sh").unwrap_err(), "`|` needs a shell, but the command is not run by a shell");
        assert_eq!(words("run $HOME").unwrap_err(), "`$` needs a shell, but the command is not run by a shell");
        assert_eq!(words("A_1=b run").unwrap_err(), "`A_1=b` needs a shell, but the command is not run by a shell");
        assert_eq!(words("run a=b --c=d").unwrap(), ["run", "a=b", "--c=d"]);
        assert_eq!(words("say 'hi").unwrap_err(), "a `'` is not closed");
        assert_eq!(words("say \"hi\\").unwrap_err(), "a `\"` is not closed");
    }
}
