//! Splits source text into strings, names, numbers and other characters, without any knowledge of the grammar.

use super::literal::Literal;
use super::syntax::{Family, SingleQuote, Syntax};

/// A token in a source text.
#[derive(Debug, Clone)]
pub(crate) struct Token<'t> {
    pub kind: TokenKind<'t>,
    /// Byte range in the source.
    pub start: usize,
    pub end: usize,
    /// Line, from 1.
    pub line: usize,
    /// Number of characters that precede it on its line, if it is the first token there.
    pub indent: Option<usize>,
    /// For a bracket: index of the matching bracket. For anything else, or if there is no match: its own index.
    pub partner: usize,
}

/// Kind of a token.
#[derive(Debug, Clone)]
pub(crate) enum TokenKind<'t> {
    /// Name, keyword or number.
    Word(&'t str),
    /// String.
    Text(Literal),
    /// Comment that documents the item after it.
    Doc(&'t str),
    /// Any other character.
    Mark(char),
}

/// Returns the tokens of `text`. Any input is accepted: an unclosed string extends to the end of its line or of the
/// text.
pub(crate) fn tokens(text: &str, syntax: Syntax) -> Vec<Token<'_>> {
    let mut scanner =
        Scanner { text, bytes: text.as_bytes(), syntax, at: 0, line: 1, line_start: 0, found: Vec::new() };
    scanner.run();
    let mut found = scanner.found;
    match_brackets(&mut found);
    found
}

fn match_brackets(tokens: &mut [Token<'_>]) {
    let mut open: Vec<(usize, char)> = Vec::new();
    for at in 0..tokens.len() {
        let TokenKind::Mark(mark) = tokens[at].kind else { continue };
        let expected = match mark {
            '(' => ')',
            '[' => ']',
            '{' => '}',
            ')' | ']' | '}' => {
                // A bracket closes all unmatched brackets inside its pair.
                if let Some(found) = open.iter().rposition(|(_, expected)| *expected == mark) {
                    let (start, _) = open[found];
                    open.truncate(found);
                    (tokens[start].partner, tokens[at].partner) = (at, start);
                }
                continue;
            }
            _ => continue,
        };
        open.push((at, expected));
    }
}

struct Scanner<'t> {
    text: &'t str,
    bytes: &'t [u8],
    syntax: Syntax,
    at: usize,
    line: usize,
    line_start: usize,
    found: Vec<Token<'t>>,
}

impl<'t> Scanner<'t> {
    fn run(&mut self) {
        while let Some(letter) = self.rest().chars().next() {
            let start = self.at;
            match letter {
                '\n' => {
                    self.at += 1;
                    self.line += 1;
                    self.line_start = self.at;
                }
                _ if letter.is_whitespace() => self.at += letter.len_utf8(),
                '#' if self.syntax.hash_comments => self.skip_line(),
                '/' if self.syntax.slash_comments && self.starts("//") => self.line_comment(),
                '/' if self.syntax.slash_comments && self.starts("/*") => self.block_comment(),
                '/' if self.syntax.family == Family::JavaScript && self.is_regex_next() => self.regex(),
                '"' | '\'' | '`' if self.is_quote(letter) => self.string(start, false),
                '\'' => self.character(),
                _ if is_word(letter) => self.word(),
                _ => {
                    self.at += letter.len_utf8();
                    self.push(TokenKind::Mark(letter), start, self.line);
                }
            }
        }
    }

    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn starts(&self, with: &str) -> bool {
        self.rest().starts_with(with)
    }

    fn push(&mut self, kind: TokenKind<'t>, start: usize, line: usize) {
        let before = self.text.get(self.line_start..start);
        let before = before.filter(|before| line == self.line && before.trim().is_empty());
        let indent = before.map(str::len);
        let partner = self.found.len();
        self.found.push(Token { kind, start, end: self.at, line, indent, partner });
    }

    fn skip_line(&mut self) {
        self.at += self.rest().find('\n').unwrap_or(self.rest().len());
    }

    fn line_comment(&mut self) {
        let (start, is_doc) = (self.at, self.starts("///"));
        self.skip_line();
        if is_doc {
            self.push(TokenKind::Doc(self.text[start + 3..self.at].trim()), start, self.line);
        }
    }

    fn block_comment(&mut self) {
        let rest = self.rest();
        let end = rest.get(2..).and_then(|inner| inner.find("*/")).map_or(rest.len(), |end| end + 4);
        self.line += rest[..end].matches('\n').count();
        self.line_start = rest[..end].rfind('\n').map_or(self.line_start, |last| self.at + last + 1);
        self.at += end;
    }

    /// Returns `true` if a slash here starts a regular expression, because no value precedes it.
    fn is_regex_next(&self) -> bool {
        match self.found.last().map(|token| &token.kind) {
            Some(TokenKind::Mark(mark)) => !matches!(mark, ')' | ']' | '}' | '<'),
            Some(TokenKind::Word(word)) => ["return", "typeof", "case", "of"].contains(word),
            Some(TokenKind::Text(_)) => false,
            Some(TokenKind::Doc(_)) | None => true,
        }
    }

    fn regex(&mut self) {
        let start = self.at;
        let (mut is_escaped, mut is_in_class) = (false, false);
        for (at, letter) in self.rest().char_indices().skip(1) {
            match letter {
                '\n' => break,
                _ if is_escaped => is_escaped = false,
                '\\' => is_escaped = true,
                '[' => is_in_class = true,
                ']' => is_in_class = false,
                '/' if !is_in_class => {
                    self.at = start + at + 1;
                    return;
                }
                _ => {}
            }
        }
        self.at = start + 1;
        self.push(TokenKind::Mark('/'), start, self.line);
    }

    fn is_quote(&self, letter: char) -> bool {
        match letter {
            '"' => true,
            '`' => self.syntax.backticks,
            _ => self.syntax.single_quote == SingleQuote::Text,
        }
    }

    /// Reads a name or a number. A name right before a quote may be the prefix of a string.
    fn word(&mut self) {
        let start = self.at;
        self.at += self.rest().find(|letter| !is_word(letter)).unwrap_or(self.rest().len());
        let word = &self.text[start..self.at];
        let next = self.rest().chars().next();
        let is_quoted = next.is_some_and(|next| matches!(next, '"' | '\'') && self.is_quote(next));
        let lower = word.to_ascii_lowercase();
        let is_prefix = match self.syntax.family {
            Family::Python => ["r", "b", "f", "u", "t", "rb", "br", "fr", "rf"].contains(&lower.as_str()),
            Family::Rust => ["r", "b", "c", "br", "cr"].contains(&word),
            Family::JavaScript | Family::Java | Family::Kotlin | Family::CSharp | Family::Other => false,
        };
        match is_prefix {
            true if is_quoted => self.string(start, lower.contains('r')),
            true if self.syntax.family == Family::Rust && next == Some('#') && self.is_raw_string() => {
                self.rust_raw(start);
            }
            _ => self.push(TokenKind::Word(word), start, self.line),
        }
    }

    fn is_raw_string(&self) -> bool {
        self.rest().trim_start_matches('#').starts_with('"')
    }

    fn rust_raw(&mut self, start: usize) {
        let hashes = self.rest().len() - self.rest().trim_start_matches('#').len();
        self.at += hashes;
        let end = format!("\"{}", "#".repeat(hashes));
        let inner = self.at + 1;
        let length = self.text.get(inner..).and_then(|rest| rest.find(&end));
        let stop = length.map_or(self.text.len(), |length| inner + length);
        self.finish(start, Literal::raw(&self.text[inner..stop], self.line), (stop + end.len()).min(self.text.len()));
    }

    /// Reads the string whose quote is next; `start` is the beginning of its prefix.
    fn string(&mut self, start: usize, is_raw: bool) {
        let Some(quote) = self.rest().chars().next() else { return };
        let triple = String::from(quote).repeat(3);
        let is_triple = self.syntax.triple_quotes && quote != '`' && self.starts(&triple);
        let delimiter = if is_triple { triple } else { quote.to_string() };
        let spans_lines = is_triple
            || quote == '`'
            || (self.syntax.long_strings && quote == '"')
            || (self.syntax.long_strings && self.syntax.hash_comments);
        let is_template = quote == '`' && self.syntax.family == Family::JavaScript;
        let is_raw = is_raw || (quote == '`' && !is_template);
        let inner = self.at + delimiter.len();
        let (stop, is_closed) = self.end_of_string(inner, &delimiter, spans_lines, is_raw, is_template);
        let written = &self.text[inner..stop];
        let literal = match is_raw {
            true => Literal::raw(written, self.line),
            false => Literal::escaped(written, self.line),
        };
        self.finish(start, literal, if is_closed { stop + delimiter.len() } else { stop });
    }

    /// Returns the end of a string's content, and whether the closing delimiter follows.
    fn end_of_string(
        &self,
        inner: usize,
        delimiter: &str,
        spans_lines: bool,
        is_raw: bool,
        is_template: bool,
    ) -> (usize, bool) {
        let mut at = inner;
        let mut depth = 0_usize;
        while let Some(&byte) = self.bytes.get(at) {
            match byte {
                b'\\' if !is_raw => at += 1,
                b'\n' if !spans_lines => return (at, false),
                b'$' if is_template && self.bytes.get(at + 1) == Some(&b'{') => {
                    depth += 1;
                    at += 1;
                }
                b'{' if depth > 0 => depth += 1,
                b'}' if depth > 0 => depth -= 1,
                _ if depth == 0 && self.bytes[at..].starts_with(delimiter.as_bytes()) => return (at, true),
                _ => {}
            }
            at += 1;
        }
        (self.text.len(), false)
    }

    fn finish(&mut self, start: usize, literal: Literal, end: usize) {
        let line = self.line;
        let begun = self.line_start;
        self.at = end;
        let before = self.text.get(begun..start).filter(|before| before.trim().is_empty());
        let (indent, partner) = (before.map(str::len), self.found.len());
        self.found.push(Token { kind: TokenKind::Text(literal), start, end, line, indent, partner });
        let inside = &self.text[start..end];
        self.line += inside.matches('\n').count();
        self.line_start = inside.rfind('\n').map_or(begun, |last| start + last + 1);
    }

    /// Reads a character in single quotes, or only the quote.
    fn character(&mut self) {
        let start = self.at;
        let mut letters = self.rest().char_indices().skip(1);
        let first = letters.next().map(|(_, letter)| letter);
        let end = match first {
            Some('\\') => self.rest().get(2..).and_then(|rest| rest.get(1..)?.find('\'')).map(|end| end + 4),
            Some(_) => letters.next().filter(|(_, letter)| *letter == '\'').map(|(at, _)| at + 1),
            None => None,
        };
        match end.filter(|end| self.rest().get(..*end).is_some_and(|inside| !inside.contains('\n'))) {
            Some(end) => self.at += end,
            None => {
                self.at += 1;
                self.push(TokenKind::Mark('\''), start, self.line);
            }
        }
    }
}

fn is_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_' || letter == '$'
}
