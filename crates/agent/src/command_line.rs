//! Splits shell command lines into their commands.

/// Commands in a line. The line is split where the shell would start another command, outside quotes, brackets and
/// here-documents.
///
/// The text of each command is compared with scopes. `grade::shell` splits lines into words.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct CommandLine {
    pub(crate) commands: Vec<String>,
    /// False if other commands may run in places that are not analysed (substitutions, groups, here-documents), if a
    /// redirection writes into a file, or if a quote is not closed.
    pub(crate) is_plain: bool,
}

impl CommandLine {
    /// Splits `line`.
    pub(crate) fn parse(line: &str) -> Self {
        let (commands, is_plain) = split(line);
        let commands = commands.iter().map(|command| command.trim()).filter(|command| !command.is_empty());
        Self { commands: commands.map(str::to_owned).collect(), is_plain }
    }
}

fn split(line: &str) -> (Vec<String>, bool) {
    let mut commands = vec![String::new()];
    let mut is_plain = true;
    let mut quote: Option<char> = None;
    let mut depth = 0_usize;
    let mut heredocs: Vec<String> = Vec::new();
    let mut letters = line.chars().peekable();
    let mut before = ' ';
    while let Some(letter) = letters.next() {
        let next = letters.peek().copied();
        is_plain &= !hides_commands(quote, letter, next);
        is_plain &= !(quote.is_none() && letter == '>' && writes_file(letters.clone()));
        let starts_another = match letter {
            ';' | '|' => true,
            // `2>&1` and `&>` do not start a command.
            '&' => !matches!(before, '<' | '>') && next != Some('>'),
            '\n' => true,
            _ => false,
        };
        match (quote, letter) {
            (Some('\''), _) => quote = (letter != '\'').then_some('\''),
            (_, '\\') => {
                push(&mut commands, letter);
                if let Some(escaped) = letters.next() {
                    push(&mut commands, escaped);
                }
                before = ' ';
                continue;
            }
            (None, '\'') if depth == 0 => quote = Some('\''),
            (None, '"') if depth == 0 => quote = Some('"'),
            (Some('"'), '"') if depth == 0 => quote = None,
            (_, '(') if quote.is_none() || before == '$' || depth > 0 => depth += 1,
            (_, ')') => depth = depth.saturating_sub(1),
            (None, '<') if depth == 0 && next == Some('<') => {
                letters.next();
                if letters.peek() == Some(&'<') {
                    letters.next();
                    commands.last_mut().into_iter().for_each(|command| command.push_str("<<<"));
                } else {
                    heredocs.push(delimiter(&mut letters));
                    commands.last_mut().into_iter().for_each(|command| command.push_str("<<"));
                }
                before = ' ';
                continue;
            }
            (None, _) if depth == 0 && starts_another => {
                if letter == '\n' {
                    for delimiter in heredocs.drain(..) {
                        skip_heredoc(&mut letters, &delimiter);
                    }
                }
                commands.push(String::new());
                before = ' ';
                continue;
            }
            _ => {}
        }
        push(&mut commands, letter);
        before = letter;
    }
    (commands, is_plain && quote.is_none())
}

/// Returns `true` if commands that are not analysed may run at `letter`.
fn hides_commands(quote: Option<char>, letter: char, next: Option<char>) -> bool {
    match (quote, letter) {
        (Some('\''), _) => false,
        (_, '`') => true,
        (_, '$') if next == Some('(') => true,
        (None, '(' | ')') => true,
        (None, '<') => next == Some('<'),
        // In `$'…'` a quote can be escaped, unlike in `'…'`.
        (None, '$') => next == Some('\''),
        // Not every shell treats `&>` as one operator.
        (None, '&') => next == Some('>'),
        _ => false,
    }
}

/// Returns `true` if the redirection that ends in `>` writes into a file. `rest` is the text after it.
fn writes_file(rest: impl Iterator<Item = char>) -> bool {
    let rest: String = rest.skip_while(|letter| matches!(letter, '>' | ' ' | '\t')).take(16).collect();
    let (target, is_stream) = rest.strip_prefix('&').map_or((&*rest, false), |stream| (stream, true));
    let target = target.split(|letter: char| letter.is_whitespace() || ";|&".contains(letter)).next();
    match target {
        Some(stream) if is_stream => stream != "-" && stream.parse::<u8>().is_err(),
        target => target != Some("/dev/null"),
    }
}

fn push(commands: &mut [String], letter: char) {
    if let Some(command) = commands.last_mut() {
        command.push(letter);
    }
}

/// Returns the word that ends a here-document, read from the text after `<<`.
fn delimiter(letters: &mut std::iter::Peekable<std::str::Chars<'_>>) -> String {
    let mut word = String::new();
    while let Some(&letter) = letters.peek() {
        match letter {
            '-' | ' ' | '\t' if word.is_empty() => {}
            '\'' | '"' | '\\' => {}
            _ if letter.is_whitespace() || ";&|<>()".contains(letter) => break,
            _ => word.push(letter),
        }
        letters.next();
    }
    word
}

fn skip_heredoc(letters: &mut std::iter::Peekable<std::str::Chars<'_>>, delimiter: &str) {
    while letters.peek().is_some() {
        let line: String = letters.by_ref().take_while(|letter| *letter != '\n').collect();
        if line.trim_start_matches('\t') == delimiter {
            return;
        }
    }
}
