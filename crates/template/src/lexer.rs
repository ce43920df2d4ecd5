//! Splits the content of a `{{ … }}` or `{% … %}` into tokens.

use std::ops::Range;

use crate::error::TemplateError;
use crate::number::Number;

/// Token of an expression.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Word {
    Number(Number),
    Text(String),
    Name(String),
    Symbol(&'static str),
}

#[derive(Debug, Clone)]
pub(crate) struct Token {
    pub(crate) word: Word,
    pub(crate) range: Range<usize>,
}

/// Content of a tag.
pub(crate) struct Tag {
    pub(crate) tokens: Vec<Token>,
    /// Range inside the delimiters and their `-`.
    pub(crate) inner: Range<usize>,
    /// Offset after the closing delimiter.
    pub(crate) end: usize,
    /// True if it ends with `-`, so that the white space after it is removed.
    pub(crate) trims: bool,
}

/// Longer symbols come first.
const SYMBOLS: [&str; 22] =
    ["<=", ">=", "==", "!=", "(", ")", "[", "]", "{", "}", ",", ".", ":", "|", "<", ">", "+", "-", "~", "*", "/", "%"];

/// Reads the tokens from `start` to `close`. Returns `None` if the text ends first.
pub(crate) fn read_tag(text: &str, start: usize, close: &str) -> Result<Option<Tag>, TemplateError> {
    let mut lexer = Lexer { text, at: start, tokens: Vec::new(), open: 0 };
    loop {
        lexer.skip_space();
        if lexer.rest().is_empty() {
            return Ok(None);
        }
        if let Some(trims) = lexer.closes_with(close) {
            let end = lexer.at + usize::from(trims) + close.len();
            return Ok(Some(Tag { tokens: lexer.tokens, inner: start..lexer.at, end, trims }));
        }
        if !lexer.word()? {
            return Ok(None);
        }
    }
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
    tokens: Vec<Token>,
    /// Number of open `{` of maps.
    open: usize,
}

impl Lexer<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn skip_space(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start().len();
    }

    /// Returns `None` if there is no closing delimiter here. Otherwise returns true if it has a `-` before it.
    fn closes_with(&self, close: &str) -> Option<bool> {
        let rest = self.rest();
        if self.open > 0 {
            None
        } else if rest.starts_with(close) {
            Some(false)
        } else {
            rest.strip_prefix('-').filter(|rest| rest.starts_with(close)).map(|_| true)
        }
    }

    /// Reads one token. Returns `false` if the text ends inside it.
    fn word(&mut self) -> Result<bool, TemplateError> {
        let Some(first) = self.rest().chars().next() else { return Ok(false) };
        let start = self.at;
        let word = match first {
            '\'' | '"' => match self.quoted(first)? {
                Some(text) => Word::Text(text),
                None => return Ok(false),
            },
            '0'..='9' => self.number()?,
            _ if first.is_alphabetic() || first == '_' => self.name(),
            _ => self.symbol(first)?,
        };
        self.tokens.push(Token { word, range: start..self.at });
        Ok(true)
    }

    fn quoted(&mut self, quote: char) -> Result<Option<String>, TemplateError> {
        let start = self.at;
        let mut value = String::new();
        let mut chars = self.text[start + 1..].char_indices();
        while let Some((offset, found)) = chars.next() {
            if found == quote {
                self.at = start + 1 + offset + 1;
                return Ok(Some(value));
            }
            if found != '\\' {
                value.push(found);
                continue;
            }
            let Some((_, escaped)) = chars.next() else { return Ok(None) };
            let at = start + 1 + offset;
            value.push(unescape(escaped).ok_or_else(|| {
                TemplateError::new(format!("unknown escape `\\{escaped}`"))
                    .at(at..at + 1 + escaped.len_utf8())
                    .help("a backslash itself is written `\\\\`")
            })?);
        }
        Ok(None)
    }

    fn number(&mut self) -> Result<Word, TemplateError> {
        let start = self.at;
        self.digits();
        // After a dot, it is a misspelt index, as in `users.0.name`.
        let after_dot = self.tokens.last().is_some_and(|token| token.word == Word::Symbol("."));
        let fraction = self.rest().strip_prefix('.').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
        if fraction && !after_dot {
            self.at += 1;
            self.digits();
        }
        let written = &self.text[start..self.at];
        if let Some(letter) = self.rest().chars().next().filter(|c| c.is_alphanumeric() || *c == '_') {
            let range = start..self.at + letter.len_utf8();
            return Err(TemplateError::new("a name cannot begin with a digit").at(range));
        }
        let number = written.parse().map(Number::Whole).or_else(|_| written.parse().map(Number::from_f64));
        Ok(Word::Number(number.unwrap_or(Number::Double(f64::NAN))))
    }

    fn digits(&mut self) {
        self.at += self.rest().find(|c: char| !c.is_ascii_digit()).unwrap_or(self.rest().len());
    }

    fn name(&mut self) -> Word {
        let length = self.rest().find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(self.rest().len());
        let name = self.rest()[..length].to_owned();
        self.at += length;
        Word::Name(name)
    }

    fn symbol(&mut self, first: char) -> Result<Word, TemplateError> {
        let found = SYMBOLS.into_iter().find(|symbol| self.rest().starts_with(symbol));
        let found = found.or_else(|| (first == '=').then_some("="));
        let Some(symbol) = found else { return Err(self.unexpected(first)) };
        match symbol {
            "{" => self.open += 1,
            "}" => self.open = self.open.saturating_sub(1),
            _ => {}
        }
        self.at += symbol.len();
        Ok(Word::Symbol(symbol))
    }

    fn unexpected(&self, first: char) -> TemplateError {
        let error = TemplateError::new(format!("`{first}` is not allowed in a template expression"))
            .at(self.at..self.at + first.len_utf8());
        match first {
            '&' => error.help("write `and`"),
            '!' => error.help("write `not`"),
            '?' => error.help("write `this if condition else that`"),
            '`' | '“' | '”' | '‘' | '’' => error.help("write `'` or `\"` around text"),
            _ => error.help("to write `{{` itself, write `{{ '{{' }}`"),
        }
    }
}

fn unescape(escaped: char) -> Option<char> {
    Some(match escaped {
        'n' => '\n',
        't' => '\t',
        'r' => '\r',
        'b' => '\u{8}',
        'f' => '\u{c}',
        'v' => '\u{b}',
        '\'' | '"' | '\\' => escaped,
        _ => return None,
    })
}
