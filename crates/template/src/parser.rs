//! Parses tokens to an expression tree.

use std::ops::Range;

use model::nearest;

use crate::error::TemplateError;
use crate::lexer::{Token, Word};
use crate::limit;
use crate::syntax::{Arguments, Expression, Kind, Located, Operator};

/// Reserved words, which cannot be names.
const RESERVED: [&str; 12] = ["and", "or", "not", "in", "is", "if", "else", "elif", "for", "set", "macro", "endmacro"];

/// Parser of the tokens of one tag.
pub(crate) struct Parser<'a> {
    text: &'a str,
    tokens: &'a [Token],
    at: usize,
    /// Offset after the last token, for errors at the end.
    end: usize,
    nesting: u16,
}

impl<'a> Parser<'a> {
    pub(crate) fn new(text: &'a str, tokens: &'a [Token], inner: &Range<usize>) -> Self {
        let end = tokens.last().map_or(inner.end, |token| token.range.end);
        Self { text, tokens, at: 0, end, nesting: 0 }
    }

    /// Parses the rest as one expression.
    pub(crate) fn whole_expression(&mut self) -> Result<Expression, TemplateError> {
        let expression = self.expression()?;
        self.finish()?;
        Ok(expression)
    }

    /// Returns an error if anything is left.
    pub(crate) fn finish(&self) -> Result<(), TemplateError> {
        match self.tokens.get(self.at) {
            None => Ok(()),
            Some(_) => Err(self.unexpected("the end of the expression")),
        }
    }

    pub(crate) fn expression(&mut self) -> Result<Expression, TemplateError> {
        self.nested(|parser| {
            let then = parser.binary(0)?;
            if parser.eat_name("if") { parser.choice(then) } else { Ok(then) }
        })
    }

    /// Parses an expression that stops before `if`, such as the items of a loop.
    pub(crate) fn simple_expression(&mut self) -> Result<Expression, TemplateError> {
        self.binary(0)
    }

    fn choice(&mut self, then: Expression) -> Result<Expression, TemplateError> {
        let condition = Box::new(self.binary(0)?);
        let otherwise = if self.eat_name("else") { Some(Box::new(self.expression()?)) } else { None };
        let end = otherwise.as_ref().map_or(condition.range.end, |otherwise| otherwise.range.end);
        let range = then.range.start..end;
        self.node(Kind::Choice { condition, then: Box::new(then), otherwise }, range)
    }

    /// Parses operators whose rank is above `floor`, from left to right.
    fn binary(&mut self, floor: u8) -> Result<Expression, TemplateError> {
        let mut left = self.prefixed(floor)?;
        while let Some((operator, words)) = self.operator().filter(|(operator, _)| operator.rank() > floor) {
            self.at += words;
            let right = self.binary(operator.rank())?;
            let range = left.range.start..right.range.end;
            left = self.node(Kind::Binary(operator, Box::new(left), Box::new(right)), range)?;
        }
        Ok(left)
    }

    /// Parses `not`, whose precedence is below comparisons and above `and`.
    fn prefixed(&mut self, floor: u8) -> Result<Expression, TemplateError> {
        let start = self.here().start;
        if !self.eat_name("not") {
            return self.tested();
        }
        let operand = self.nested(|parser| parser.binary(floor.max(3)))?;
        let range = start..operand.range.end;
        self.node(Kind::Not(Box::new(operand)), range)
    }

    fn tested(&mut self) -> Result<Expression, TemplateError> {
        let mut operand = self.filtered()?;
        while self.eat_name("is") {
            let negated = self.eat_name("not");
            let name = self.any_name("the name of a test")?;
            let arguments = if self.next_is("(") { self.arguments()? } else { Arguments::default() };
            let range = operand.range.start..self.last_end();
            operand = self.node(Kind::Test { operand: Box::new(operand), name, arguments, negated }, range)?;
        }
        Ok(operand)
    }

    fn filtered(&mut self) -> Result<Expression, TemplateError> {
        let mut operand = self.signed()?;
        while self.eat("|") {
            let name = self.name("the name of a filter")?;
            let arguments = if self.next_is("(") { self.arguments()? } else { Arguments::default() };
            let range = operand.range.start..self.last_end();
            operand = self.node(Kind::Filter(Box::new(operand), name, arguments), range)?;
        }
        Ok(operand)
    }

    /// Parses a sign, whose precedence is above filters: `-3|abs` is 3.
    fn signed(&mut self) -> Result<Expression, TemplateError> {
        let start = self.here().start;
        if self.eat("+") {
            return self.nested(Self::signed);
        }
        if !self.eat("-") {
            return self.postfixed();
        }
        let operand = self.nested(Self::signed)?;
        let range = start..operand.range.end;
        self.node(Kind::Negative(Box::new(operand)), range)
    }

    fn postfixed(&mut self) -> Result<Expression, TemplateError> {
        let mut operand = self.primary()?;
        loop {
            let start = operand.range.start;
            let kind = if self.eat(".") {
                let name = self.member()?;
                Kind::Member(Box::new(operand), name)
            } else if self.eat("[") {
                self.subscript(operand)?
            } else if self.next_is("(") {
                let arguments = self.arguments()?;
                Kind::Call(Box::new(operand), arguments)
            } else {
                return Ok(operand);
            };
            operand = self.node(kind, start..self.last_end())?;
        }
    }

    fn member(&mut self) -> Result<Located<String>, TemplateError> {
        if let Some(Token { word: Word::Number(_), range }) = self.tokens.get(self.at) {
            let error = TemplateError::new("an item of a list is written in brackets").at(range.clone());
            return Err(error.help(format!("write `{}`", bracketed(self.whole_text()))));
        }
        self.any_name("a name after `.`")
    }

    fn subscript(&mut self, operand: Expression) -> Result<Kind, TemplateError> {
        let mut bounds: [Option<Expression>; 3] = [None, None, None];
        let mut colons = 0;
        while !self.next_is("]") {
            if self.eat(":") {
                colons += 1;
            } else if let Some(bound) = bounds.get_mut(colons).filter(|bound| bound.is_none()) {
                *bound = Some(self.expression()?);
            } else {
                return Err(self.unexpected("`]`"));
            }
            if colons > 2 {
                return Err(self.unexpected("`]`"));
            }
        }
        if colons == 0 {
            let [key, ..] = bounds;
            let key = key.ok_or_else(|| self.unexpected("a key or a position"))?;
            self.expect("]")?;
            return Ok(Kind::Item(Box::new(operand), Box::new(key)));
        }
        self.expect("]")?;
        Ok(Kind::Slice(Box::new(operand), Box::new(bounds)))
    }

    fn arguments(&mut self) -> Result<Arguments, TemplateError> {
        self.expect("(")?;
        let mut arguments = Arguments::default();
        self.separated(")", |parser| {
            let named = matches!(parser.word_at(1), Some(Word::Symbol("=")));
            if named {
                let name = parser.name("the name of an argument")?;
                parser.expect("=")?;
                arguments.named.push((name, parser.expression()?));
            } else if arguments.named.is_empty() {
                arguments.positional.push(parser.expression()?);
            } else {
                let error = TemplateError::new("arguments without a name come before those with one");
                return Err(error.at(parser.here()));
            }
            Ok(())
        })?;
        Ok(arguments)
    }

    fn primary(&mut self) -> Result<Expression, TemplateError> {
        let Some(token) = self.tokens.get(self.at) else { return Err(self.unexpected("an expression")) };
        let range = token.range.clone();
        let kind = match &token.word {
            Word::Number(number) => Kind::Number(*number),
            Word::Text(text) => Kind::Text(text.clone()),
            Word::Name(name) => self.named(name)?,
            Word::Symbol("(") => return self.parenthesised(),
            Word::Symbol("[") => return self.list(),
            Word::Symbol("{") => return self.map(),
            Word::Symbol(_) => return Err(self.unexpected("an expression")),
        };
        self.at += 1;
        self.node(kind, range)
    }

    fn named(&self, name: &str) -> Result<Kind, TemplateError> {
        Ok(match name {
            "true" | "True" => Kind::Bool(true),
            "false" | "False" => Kind::Bool(false),
            "none" | "None" => Kind::Null,
            _ if RESERVED.contains(&name) => return Err(self.unexpected("an expression")),
            _ => Kind::Name(name.to_owned()),
        })
    }

    /// Parses `(a)`, or with a comma a tuple, which becomes a list.
    fn parenthesised(&mut self) -> Result<Expression, TemplateError> {
        let start = self.here().start;
        self.expect("(")?;
        let first = self.expression()?;
        if self.eat(")") {
            return Ok(Expression { range: start..self.last_end(), ..first });
        }
        let mut items = vec![first];
        while self.eat(",") && !self.next_is(")") {
            items.push(self.expression()?);
        }
        self.expect(")")?;
        self.node(Kind::List(items), start..self.last_end())
    }

    fn list(&mut self) -> Result<Expression, TemplateError> {
        let start = self.here().start;
        self.expect("[")?;
        let mut items = Vec::new();
        self.separated("]", |parser| {
            items.push(parser.expression()?);
            Ok(())
        })?;
        self.node(Kind::List(items), start..self.last_end())
    }

    fn map(&mut self) -> Result<Expression, TemplateError> {
        let start = self.here().start;
        self.expect("{")?;
        let mut entries = Vec::new();
        self.separated("}", |parser| {
            let key = parser.expression()?;
            parser.expect(":")?;
            entries.push((key, parser.expression()?));
            Ok(())
        })?;
        self.node(Kind::Map(entries), start..self.last_end())
    }

    /// Parses items separated by commas, and `close` after the last one.
    pub(crate) fn separated(
        &mut self,
        close: &'static str,
        mut item: impl FnMut(&mut Self) -> Result<(), TemplateError>,
    ) -> Result<(), TemplateError> {
        while !self.eat(close) {
            item(self)?;
            if !self.eat(",") && !self.next_is(close) {
                return Err(self.unexpected(&format!("`,` or `{close}`")));
            }
        }
        Ok(())
    }

    /// Returns the operator at this position, and its number of tokens.
    fn operator(&self) -> Option<(Operator, usize)> {
        let operator = match self.word_at(0)? {
            Word::Name(name) => match name.as_str() {
                "or" => Operator::Or,
                "and" => Operator::And,
                "in" => Operator::In,
                "not" if matches!(self.word_at(1), Some(Word::Name(next)) if next == "in") => {
                    return Some((Operator::NotIn, 2));
                }
                _ => return None,
            },
            Word::Symbol(symbol) => match *symbol {
                "==" => Operator::Equal,
                "!=" => Operator::NotEqual,
                "<" => Operator::Less,
                "<=" => Operator::LessOrEqual,
                ">" => Operator::Greater,
                ">=" => Operator::GreaterOrEqual,
                "+" => Operator::Add,
                "-" => Operator::Subtract,
                "~" => Operator::Concatenate,
                "*" => Operator::Multiply,
                "/" => Operator::Divide,
                "%" => Operator::Remainder,
                _ => return None,
            },
            _ => return None,
        };
        Some((operator, 1))
    }

    fn node(&self, kind: Kind, range: Range<usize>) -> Result<Expression, TemplateError> {
        let mut node = Expression { kind, range, depth: 1 };
        node.depth += node.children().iter().map(|child| child.depth).max().unwrap_or(0);
        if node.depth > limit::EXPRESSION {
            return Err(TemplateError::new("the expression is too long")
                .at(node.range)
                .help("set a variable for a part of it with `{% set … %}`"));
        }
        Ok(node)
    }

    /// Runs `read` one nesting level deeper, for consecutive prefixes.
    fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T, TemplateError>) -> Result<T, TemplateError> {
        self.nesting += 1;
        if self.nesting > limit::NESTING {
            return Err(TemplateError::new("the expression is nested too deeply").at(self.here()));
        }
        let read = read(self)?;
        self.nesting -= 1;
        Ok(read)
    }

    /// Parses a name that is not a reserved word.
    pub(crate) fn name(&mut self, wanted: &str) -> Result<Located<String>, TemplateError> {
        match self.word_at(0) {
            Some(Word::Name(name)) if RESERVED.contains(&name.as_str()) => Err(self.unexpected(wanted)),
            _ => self.any_name(wanted),
        }
    }

    fn any_name(&mut self, wanted: &str) -> Result<Located<String>, TemplateError> {
        match self.tokens.get(self.at) {
            Some(Token { word: Word::Name(name), range }) => {
                self.at += 1;
                Ok(Located { value: name.clone(), range: range.clone() })
            }
            _ => Err(self.unexpected(wanted)),
        }
    }

    pub(crate) fn expect(&mut self, symbol: &'static str) -> Result<(), TemplateError> {
        if self.eat(symbol) { Ok(()) } else { Err(self.unexpected(&format!("`{symbol}`"))) }
    }

    pub(crate) fn expect_name(&mut self, name: &str) -> Result<(), TemplateError> {
        if self.eat_name(name) { Ok(()) } else { Err(self.unexpected(&format!("`{name}`"))) }
    }

    pub(crate) fn eat(&mut self, symbol: &'static str) -> bool {
        let found = self.next_is(symbol);
        self.at += usize::from(found);
        found
    }

    pub(crate) fn eat_name(&mut self, name: &str) -> bool {
        let found = matches!(self.word_at(0), Some(Word::Name(found)) if found == name);
        self.at += usize::from(found);
        found
    }

    pub(crate) fn next_is(&self, symbol: &'static str) -> bool {
        matches!(self.word_at(0), Some(Word::Symbol(found)) if *found == symbol)
    }

    fn word_at(&self, ahead: usize) -> Option<&'a Word> {
        self.tokens.get(self.at + ahead).map(|token| &token.word)
    }

    /// Returns the range of the next token, or of the end.
    pub(crate) fn here(&self) -> Range<usize> {
        self.tokens.get(self.at).map_or(self.end..self.end, |token| token.range.clone())
    }

    fn last_end(&self) -> usize {
        self.at.checked_sub(1).and_then(|last| self.tokens.get(last)).map_or(self.end, |token| token.range.end)
    }

    fn whole_text(&self) -> &'a str {
        let start = self.tokens.first().map_or(self.end, |token| token.range.start);
        &self.text[start..self.end]
    }

    /// Returns the error for a next token that is not the expected one.
    pub(crate) fn unexpected(&self, wanted: &str) -> TemplateError {
        let Some(token) = self.tokens.get(self.at) else {
            return TemplateError::new(format!("{wanted} is missing")).at(self.here());
        };
        let found = &self.text[token.range.clone()];
        let error = TemplateError::new(format!("expected {wanted} instead of `{found}`")).at(token.range.clone());
        match (found, &token.word) {
            ("{", _) => error.help("to write `{{` itself, write `{{ '{{' }}`"),
            (_, Word::Symbol("|")) => error.help("write `or` for alternatives"),
            (_, Word::Symbol("=")) => error.help("values are compared with `==`"),
            (_, Word::Name(name)) if RESERVED.contains(&name.as_str()) => {
                error.help(format!("`{name}` is a word of the template language"))
            }
            (_, Word::Name(name)) => match nearest(name, RESERVED) {
                Some(near) => error.help(format!("did you mean `{near}`?")),
                None => error.help("to keep `{{` as text, write `{{ '{{' }}`"),
            },
            _ => error,
        }
    }
}

/// Converts `users.0.name` to `users[0].name`.
fn bracketed(path: &str) -> String {
    let mut parts = path.split('.');
    let mut written = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let digits = part.len() - part.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        if digits > 0 {
            written.push_str(&format!("[{}]{}", &part[..digits], &part[digits..]));
        } else {
            written.push('.');
            written.push_str(part);
        }
    }
    written
}
