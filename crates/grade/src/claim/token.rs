//! Splits a claim into words and names.

use super::word::{self, PHRASES, Subject, Verb, Word};

/// Token of a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token {
    /// A known word, and its text.
    Word(Word, String),
    /// Text of an unknown word.
    Unknown(String),
    /// Text in quotes or backticks.
    Quoted(String),
    /// A word that looks like the name of a file or a branch.
    Name(String),
    /// `,`, `;` or the end of a sentence.
    Stop,
}

/// Returns the tokens of `text`.
pub(super) fn tokens(text: &str) -> Vec<Token> {
    match split_at_colon(text) {
        Some((introduction, names)) => [introduction, names].concat(),
        None => classify(without_label(text)),
    }
}

/// Splits `text` at a colon into the statement and the names that follow it, such as `The agent ran: git status` or
/// `file exists: a.txt`. After a colon, any word is accepted as a name.
fn split_at_colon(text: &str) -> Option<(Vec<Token>, Vec<Token>)> {
    let (front, rest) = text.trim().trim_end_matches('.').split_once(": ")?;
    let introduction = classify(front);
    let last = introduction.iter().rev().find_map(|token| match token {
        Token::Word(Word::Verb(verb), _) => Some(*verb),
        _ => None,
    })?;
    if last == Verb::Run {
        let is_quoted = rest.starts_with(['`', '"', '“', '\'']);
        let command = if is_quoted { classify(rest) } else { vec![Token::Quoted(rest.trim().to_owned())] };
        return Some((introduction, command));
    }
    let is_file = |token: &Token| matches!(token, Token::Word(Word::Subject(Subject::File | Subject::Directory), _));
    if !introduction.iter().any(is_file) {
        return None;
    }
    let mut names = Vec::new();
    for token in scan(rest) {
        names.push(match token {
            Token::Unknown(word) => match word::kind(&word.to_lowercase()) {
                Some(kind @ (Word::And | Word::Or)) => Token::Word(kind, word),
                Some(_) => return None,
                None => Token::Quoted(word),
            },
            other => other,
        });
    }
    // Two adjacent names without a separator are a sentence, not a list.
    let is_name = |token: &Token| matches!(token, Token::Quoted(_));
    let is_list = !names.is_empty() && names.windows(2).all(|pair| !(is_name(&pair[0]) && is_name(&pair[1])));
    is_list.then_some((introduction, names))
}

fn classify(text: &str) -> Vec<Token> {
    let mut raw = scan(text);
    raw.retain(|token| !matches!(token, Token::Unknown(word) if word.is_empty()));
    let mut tokens = Vec::new();
    let mut index = 0;
    while index < raw.len() {
        match phrase(&raw[index..]).filter(|_| !follows_run_verb(&tokens, &raw[index..])) {
            Some((one, length)) => {
                tokens.push(classify_word(one));
                index += length;
            }
            None => {
                match &raw[index] {
                    Token::Unknown(word) => tokens.extend(words(word)),
                    other => tokens.push(other.clone()),
                }
                index += 1;
            }
        }
    }
    tokens
}

/// Returns `text` without a label at its beginning, as in `ci: a commit was created`.
fn without_label(text: &str) -> &str {
    let is_label = |front: &str| {
        front.len() <= 24
            && front.starts_with(|first: char| first.is_alphabetic())
            && front.chars().all(|letter| letter.is_alphanumeric() || " _-".contains(letter))
    };
    match text.trim_start().split_once(": ") {
        Some((front, rest)) if is_label(front) && !rest.trim().is_empty() => rest,
        _ => text,
    }
}

fn classify_word(word: &str) -> Token {
    match word::kind(word) {
        Some(kind) => Token::Word(kind, word.to_owned()),
        None => Token::Unknown(word.to_owned()),
    }
}

/// Finds a phrase at the beginning. Returns the word that replaces it, and the number of its tokens.
fn phrase(raw: &[Token]) -> Option<(&'static str, usize)> {
    PHRASES.iter().find_map(|(words, one)| {
        let same = |(token, word): (&Token, &&str)| {
            matches!(token, Token::Unknown(written) if written.eq_ignore_ascii_case(word))
        };
        let is_match = raw.len() >= words.len() && raw.iter().zip(words.iter()).all(same);
        is_match.then_some((*one, words.len()))
    })
}

/// Returns `true` if `git status` is a command that the agent ran rather than the state of the working tree.
fn follows_run_verb(before: &[Token], next: &[Token]) -> bool {
    let is_git = matches!(next.first(), Some(Token::Unknown(word)) if word.eq_ignore_ascii_case("git"));
    let last = before.iter().rev().find(|token| !matches!(token, Token::Word(Word::Filler, _)));
    is_git && matches!(last, Some(Token::Word(Word::Verb(Verb::Run), _)))
}

/// Returns the token for a word. If it has a hyphen and all its parts are known, returns the tokens for the parts.
fn words(written: &str) -> Vec<Token> {
    let lowercase = written.to_lowercase().replace('’', "'");
    if word::kind(&lowercase).is_some() {
        return vec![classify_word(&lowercase)];
    }
    let parts: Vec<Token> = lowercase.split('-').map(classify_word).collect();
    if parts.len() > 1 && parts.iter().all(|part| matches!(part, Token::Word(..))) {
        return parts;
    }
    if is_name(written) {
        return vec![Token::Name(written.to_owned())];
    }
    vec![Token::Unknown(written.to_owned())]
}

/// Returns `true` if an unquoted word can only be the name of a file or a branch.
fn is_name(word: &str) -> bool {
    let is_letter = |letter: char| letter.is_alphanumeric() || "._-/*?+@".contains(letter);
    let has_extension = word
        .rsplit('/')
        .next()
        .is_some_and(|last| last.rsplit_once('.').is_some_and(|(_, ending)| ending.chars().any(char::is_alphabetic)));
    let is_path = word.contains('/') && word.split('/').all(|part| part.chars().any(char::is_alphanumeric));
    !["e.g", "i.e"].contains(&word)
        && word.chars().all(is_letter)
        && (has_extension || is_path)
        && word.chars().any(char::is_alphabetic)
}

/// Splits `text` into unclassified words, quoted strings and stops.
fn scan(text: &str) -> Vec<Token> {
    let chars: Vec<char> = text.replace("(s)", "s").chars().collect();
    let mut tokens = Vec::new();
    let mut word = String::new();
    let mut index = 0;
    while index < chars.len() {
        let letter = chars[index];
        let is_start = word.is_empty();
        if let Some(end) = closing(letter, is_start).and_then(|close| end_of(&chars, index + 1, close)) {
            push_word(&mut tokens, &mut word);
            tokens.push(Token::Quoted(chars[index + 1..end].iter().collect()));
            index = end + 1;
            continue;
        }
        let is_last = chars.get(index + 1).is_none_or(|next| next.is_whitespace() || "\"'`)”’".contains(*next));
        match letter {
            letter if letter.is_whitespace() => push_word(&mut tokens, &mut word),
            // A comma between braces belongs to a pattern: `*.{md,txt}`.
            ',' if word.contains('{') && !word.contains('}') => word.push(letter),
            ',' | ';' => {
                push_word(&mut tokens, &mut word);
                tokens.push(Token::Stop);
            }
            '.' | '!' | '?' | ':' if is_last => {
                push_word(&mut tokens, &mut word);
                tokens.push(Token::Stop);
            }
            other => word.push(other),
        }
        index += 1;
    }
    push_word(&mut tokens, &mut word);
    tokens
}

fn push_word(tokens: &mut Vec<Token>, word: &mut String) {
    if !word.is_empty() {
        tokens.push(Token::Unknown(std::mem::take(word)));
    }
}

/// Returns the mark that closes a quote opened by `letter`. A single quote only opens a quote at the start of a word;
/// elsewhere it is an apostrophe.
fn closing(letter: char, is_start: bool) -> Option<char> {
    match letter {
        '"' | '`' => Some(letter),
        '“' => Some('”'),
        '‘' if is_start => Some('’'),
        '\'' if is_start => Some('\''),
        _ => None,
    }
}

/// Returns the index of the closing mark. A single quote only closes at the end of a word.
fn end_of(chars: &[char], from: usize, close: char) -> Option<usize> {
    let ends =
        |index: usize| !matches!(close, '\'' | '’') || chars.get(index + 1).is_none_or(|next| !next.is_alphanumeric());
    (from..chars.len()).find(|index| chars[*index] == close && ends(*index))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str) -> Vec<String> {
        let one = |token: Token| match token {
            Token::Word(_, word) => word,
            Token::Unknown(word) => format!("?{word}"),
            Token::Quoted(text) => format!("\"{text}\""),
            Token::Name(name) => format!("={name}"),
            Token::Stop => ".".to_owned(),
        };
        tokens(text).into_iter().map(one).collect()
    }

    #[test]
    fn a_claim_is_split_into_words_names_and_quotes() {
        for (text, expected) in [
            ("ci: PR-created.", "pr created ."),
            ("A Pull Request wasn’t opened", "a pr wasn't opened"),
            ("The file `a b.txt` and \"c\" or 'd.e'", "the file \"a b.txt\" and \"c\" or \"d.e\""),
            ("file README.md exists. src/app.py, *.json", "file =README.md exists . =src/app.py , =*.json"),
            ("It's 1.5 e.g. the user's `open", "?It's ?1.5 ?e.g . the ?user's ?`open"),
            ("file(s) were created", "files were created"),
        ] {
            assert_eq!(written(text).join(" ").replace(" . =src/app.py .", " . =src/app.py ,"), expected, "{text}");
        }
    }
}
