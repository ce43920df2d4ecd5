//! Parses segments to a tree of parts, and matches statements with their ends.

use crate::error::TemplateError;
use crate::lexer::Word;
use crate::limit;
use crate::parser::Parser;
use crate::segment::{Inside, Segment};
use crate::syntax::{Expression, Kind, Loop, Macro, Part};

/// Statements that open a block, or stand alone.
const STATEMENTS: [&str; 4] = ["if", "for", "set", "macro"];

/// Statements that continue or close a block.
const CONTINUATIONS: [&str; 5] = ["elif", "else", "endif", "endfor", "endmacro"];

/// Parses `segments` of `text`.
pub(crate) fn parse(text: &str, segments: &[Segment]) -> Result<Vec<Part>, TemplateError> {
    let mut blocks = Blocks { text, segments, at: 0, nesting: 0 };
    let parts = blocks.until(&[])?;
    match blocks.next_statement() {
        Some((inside, word)) => {
            Err(TemplateError::new(format!("`{word}` does not belong to a statement before it"))
                .at(inside.range.clone()))
        }
        None => Ok(parts),
    }
}

struct Blocks<'a> {
    text: &'a str,
    segments: &'a [Segment],
    at: usize,
    nesting: u16,
}

impl<'a> Blocks<'a> {
    /// Parses up to one of `ends`, which is not consumed, or up to a continuation that belongs to another statement.
    fn until(&mut self, ends: &[&str]) -> Result<Vec<Part>, TemplateError> {
        let mut parts = Vec::new();
        while let Some(segment) = self.segments.get(self.at) {
            match segment {
                Segment::Text(text) => parts.push(Part::Text(text.clone())),
                Segment::Expression(inside) => parts.push(Part::Output(self.parser(inside).whole_expression()?)),
                Segment::Statement(inside) => {
                    let word = first_word(inside);
                    if ends.contains(&word) || CONTINUATIONS.contains(&word) {
                        return Ok(parts);
                    }
                    parts.push(self.statement(inside, word)?);
                    continue;
                }
            }
            self.at += 1;
        }
        Ok(parts)
    }

    fn statement(&mut self, inside: &'a Inside, word: &str) -> Result<Part, TemplateError> {
        self.nesting += 1;
        if self.nesting > limit::NESTING {
            return Err(TemplateError::new("statements are nested too deeply").at(inside.range.clone()));
        }
        self.at += 1;
        let part = match word {
            "if" => self.condition(inside),
            "for" => self.repetition(inside),
            "set" => self.assignment(inside),
            "macro" => self.definition(inside),
            _ => Err(unknown(inside, word, self.text)),
        };
        self.nesting -= 1;
        part
    }

    fn condition(&mut self, opening: &'a Inside) -> Result<Part, TemplateError> {
        let mut branches = Vec::new();
        let mut head = opening;
        loop {
            let condition = self.head(head).whole_expression()?;
            branches.push((condition, self.until(&["elif", "else", "endif"])?));
            match self.next_statement() {
                Some((inside, "elif")) => head = inside,
                _ => break,
            }
            self.at += 1;
        }
        let otherwise = self.otherwise("endif")?;
        self.close(opening, "endif")?;
        Ok(Part::If { branches, otherwise })
    }

    fn repetition(&mut self, opening: &'a Inside) -> Result<Part, TemplateError> {
        let mut head = self.head(opening);
        let mut names = vec![head.name("a name for each item")?];
        while head.eat(",") {
            names.push(head.name("a name for each item")?);
        }
        head.expect_name("in")?;
        let items = head.simple_expression()?;
        let condition = if head.eat_name("if") { Some(head.simple_expression()?) } else { None };
        head.finish()?;
        let body = self.until(&["else", "endfor"])?;
        let otherwise = self.otherwise("endfor")?;
        self.close(opening, "endfor")?;
        Ok(Part::For(Box::new(Loop { names, items, condition, body, otherwise })))
    }

    fn assignment(&mut self, inside: &'a Inside) -> Result<Part, TemplateError> {
        let mut head = self.head(inside);
        let target = head.simple_expression()?;
        if !head.next_is("=") {
            return Err(head.unexpected("`=`").help("write `{% set name = value %}`"));
        }
        head.expect("=")?;
        let value = head.whole_expression()?;
        match target {
            Expression { kind: Kind::Name(name), .. } => Ok(Part::Set { name, value }),
            Expression { kind: Kind::Member(space, member), .. } => {
                Ok(Part::SetMember { space: *space, member: member.value, value })
            }
            target => Err(TemplateError::new("only a name or a member of a namespace can be set").at(target.range)),
        }
    }

    fn definition(&mut self, opening: &'a Inside) -> Result<Part, TemplateError> {
        let mut head = self.head(opening);
        let name = head.name("the name of the macro")?.value;
        head.expect("(")?;
        let mut parameters = Vec::new();
        head.separated(")", |head| {
            let parameter = head.name("the name of a parameter")?.value;
            let default = if head.eat("=") { Some(head.expression()?) } else { None };
            parameters.push((parameter, default));
            Ok(())
        })?;
        head.finish()?;
        let body = self.until(&["endmacro"])?;
        self.close(opening, "endmacro")?;
        Ok(Part::Macro(Macro { name, parameters, body }))
    }

    /// Parses the parts between `else` and `end`, if there is an `else`.
    fn otherwise(&mut self, end: &str) -> Result<Vec<Part>, TemplateError> {
        match self.next_statement() {
            Some((inside, "else")) => {
                self.head(inside).finish()?;
                self.at += 1;
                self.until(&[end])
            }
            _ => Ok(Vec::new()),
        }
    }

    fn close(&mut self, opening: &Inside, end: &str) -> Result<(), TemplateError> {
        match self.next_statement() {
            Some((inside, word)) if word == end => {
                self.at += 1;
                self.head(inside).finish()
            }
            Some((inside, word)) => {
                Err(TemplateError::new(format!("expected `{end}` instead of `{word}`")).at(inside.range.clone()))
            }
            None => {
                let written = &self.text[opening.range.clone()];
                Err(TemplateError::new(format!("`{{% {end} %}}` is missing for `{written}`")).at(opening.range.clone()))
            }
        }
    }

    fn next_statement(&self) -> Option<(&'a Inside, &'a str)> {
        match self.segments.get(self.at)? {
            Segment::Statement(inside) => Some((inside, first_word(inside))),
            _ => None,
        }
    }

    fn parser(&self, inside: &'a Inside) -> Parser<'a> {
        Parser::new(self.text, &inside.tokens, &inside.inner)
    }

    /// Returns a parser for the words after the statement's name.
    fn head(&self, inside: &'a Inside) -> Parser<'a> {
        Parser::new(self.text, inside.tokens.get(1..).unwrap_or_default(), &inside.inner)
    }
}

/// Returns the name of the statement, or an empty string if it has none.
fn first_word(inside: &Inside) -> &str {
    match inside.tokens.first().map(|token| &token.word) {
        Some(Word::Name(name)) => name,
        _ => "",
    }
}

fn unknown(inside: &Inside, word: &str, text: &str) -> TemplateError {
    let Some(first) = inside.tokens.first() else {
        return TemplateError::new("a statement is missing").at(inside.range.clone());
    };
    let written = &text[first.range.clone()];
    let error = TemplateError::new(format!("unknown statement `{written}`")).at(first.range.clone());
    error.suggest("statements", word, STATEMENTS.into_iter().chain(CONTINUATIONS))
}
