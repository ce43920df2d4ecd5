//! Alternative placeholder formats, which a fixture selects with `templateFormat`.

use std::ops::Range;

use model::{Diagnostic, Node, nearest};

use crate::error::TemplateError;
use crate::path::{self, Key};
use crate::syntax::{Expression, Kind, Located, Part, Whole};

/// Format of placeholders.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// `{{ name }}`, with expressions and statements: the default.
    #[default]
    Jinja,
    /// `{name}`. A literal brace is doubled.
    FString,
    /// `{{.name}}`, and nothing else from that language.
    Golang,
    /// `$name`, `${name}`, `${name:-otherwise}`. A literal dollar sign is written `\$`.
    Env,
}

const FORMATS: [(&str, Format); 9] = [
    ("hf", Format::Jinja),
    ("huggingface", Format::Jinja),
    ("internal", Format::Jinja),
    ("default", Format::Jinja),
    ("jinja", Format::Jinja),
    ("jinja2", Format::Jinja),
    ("fstring", Format::FString),
    ("golang", Format::Golang),
    ("env", Format::Env),
];

type Parsed = (Vec<Part>, Option<Whole>);

impl Format {
    /// Returns the format named by a fixture's `templateFormat`.
    ///
    /// # Errors
    /// Returns an error if there is no format with that name.
    pub fn from_node(node: &Node) -> Result<Self, Box<Diagnostic>> {
        let names = || FORMATS.iter().map(|(name, _)| *name);
        let written = node.as_str().unwrap_or_default();
        if let Some((_, format)) = FORMATS.iter().find(|(name, _)| *name == written) {
            return Ok(*format);
        }
        let problem = node.error("`templateFormat` must be one of `hf`, `fstring`, `golang`, `env`");
        Err(Box::new(problem.suggest(nearest(written, names()))))
    }

    pub(crate) fn parse(self, text: &str) -> Result<Option<Parsed>, TemplateError> {
        let mut pieces = Pieces { text, parts: Vec::new(), used: Vec::new(), escaped: false };
        match self {
            Self::Jinja => return Ok(None),
            Self::FString => pieces.f_string()?,
            Self::Golang => pieces.golang()?,
            Self::Env => pieces.env()?,
        }
        Ok(pieces.finish())
    }
}

struct Pieces<'a> {
    text: &'a str,
    parts: Vec<Part>,
    /// Ranges of the placeholders.
    used: Vec<Range<usize>>,
    /// True if the text contains an escaped character.
    escaped: bool,
}

impl Pieces<'_> {
    fn finish(self) -> Option<Parsed> {
        let whole = match (self.used.as_slice(), self.parts.as_slice()) {
            ([range], [Part::Output(path)]) if path.is_path() && self.text[range.clone()] == *self.text => {
                let inner = self.text[path.range.clone()].to_owned();
                Some(Whole { keys: path::parse(&inner), inner })
            }
            _ => None,
        };
        (self.escaped || !self.used.is_empty()).then_some((self.parts, whole))
    }

    fn push(&mut self, text: &str) {
        if !text.is_empty() {
            self.parts.push(Part::Text(text.to_owned()));
        }
    }

    fn placeholder(&mut self, outer: Range<usize>, inner: Range<usize>) -> Result<(), TemplateError> {
        let output = name(self.text, inner)?;
        self.parts.push(Part::Output(output));
        self.used.push(outer);
        Ok(())
    }

    fn f_string(&mut self) -> Result<(), TemplateError> {
        let text = self.text;
        let mut at = 0;
        while let Some(found) = text[at..].find(['{', '}']).map(|offset| at + offset) {
            self.push(&text[at..found]);
            let rest = &text[found..];
            if rest.starts_with("{{") || rest.starts_with("}}") {
                self.push(&rest[..1]);
                self.escaped = true;
                at = found + 2;
                continue;
            }
            let close = rest.strip_prefix('{').and_then(|rest| rest.find('}'));
            let Some(close) = close.map(|offset| found + 1 + offset) else {
                let error = TemplateError::new(format!("unmatched `{}`", &rest[..1])).at(found..found + 1);
                return Err(error.help(format!("write `{0}{0}` for the brace itself", &rest[..1])));
            };
            self.placeholder(found..close + 1, found + 1..close)?;
            at = close + 1;
        }
        self.push(&text[at..]);
        Ok(())
    }

    fn golang(&mut self) -> Result<(), TemplateError> {
        let text = self.text;
        let mut at = 0;
        while let Some(open) = text[at..].find("{{").map(|offset| at + offset) {
            let Some(close) = text[open..].find("}}").map(|offset| open + offset) else { break };
            self.push(&text[at..open]);
            let inner = &text[open + 2..close];
            let start = open + 2 + inner.len() - inner.trim_start().len();
            let trimmed = inner.trim();
            if !trimmed.starts_with('.') || trimmed.contains(char::is_whitespace) {
                let error = TemplateError::new("this is not only a name").at(open..close + 2);
                return Err(error.help("of this format only `{{.name}}` is supported; the default one can do more"));
            }
            self.placeholder(open..close + 2, start + 1..start + trimmed.len())?;
            at = close + 2;
        }
        self.push(&text[at..]);
        Ok(())
    }

    fn env(&mut self) -> Result<(), TemplateError> {
        let text = self.text;
        let mut at = 0;
        let mut from = 0;
        let last_brace = text.rfind('}').unwrap_or(0);
        while let Some(dollar) = text[from..].find('$').map(|offset| from + offset) {
            from = dollar + 1;
            if text[at..dollar].ends_with('\\') {
                self.push(&text[at..dollar - 1]);
                self.push("$");
                self.escaped = true;
                at = from;
                continue;
            }
            let Some(variable) = env_variable(text, dollar, last_brace) else { continue };
            self.push(&text[at..dollar]);
            self.env_placeholder(dollar..variable.end, variable.name, variable.otherwise)?;
            at = variable.end;
            from = at;
        }
        self.push(&text[at..]);
        Ok(())
    }

    fn env_placeholder(
        &mut self,
        outer: Range<usize>,
        inner: Range<usize>,
        otherwise: Option<Range<usize>>,
    ) -> Result<(), TemplateError> {
        let Some(otherwise) = otherwise else { return self.placeholder(outer, inner) };
        let value = name(self.text, inner)?;
        let range = value.range.clone();
        let expression = |kind, depth| Expression { kind, range: range.clone(), depth };
        let test = Kind::Test {
            operand: Box::new(value.clone()),
            name: Located { value: "defined".to_owned(), range: range.clone() },
            arguments: crate::syntax::Arguments::default(),
            negated: false,
        };
        let choice = Kind::Choice {
            condition: Box::new(expression(test, value.depth + 1)),
            then: Box::new(value.clone()),
            otherwise: Some(Box::new(expression(Kind::Text(self.text[otherwise].to_owned()), 1))),
        };
        self.parts.push(Part::Output(expression(choice, value.depth + 2)));
        self.used.push(outer);
        Ok(())
    }
}

struct EnvVariable {
    name: Range<usize>,
    otherwise: Option<Range<usize>>,
    end: usize,
}

/// Parses `$name`, `${name}` or `${name:-otherwise}` at `dollar`.
fn env_variable(text: &str, dollar: usize, last_brace: usize) -> Option<EnvVariable> {
    let rest = &text[dollar + 1..];
    let braced = rest.starts_with('{');
    let start = dollar + 1 + usize::from(braced);
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
    let length = text[start..].find(|c| !is_name(c)).unwrap_or(text.len() - start);
    // After a name without braces, a dot ends a sentence.
    let written = &text[start..start + length];
    let length = if braced { length } else { written.trim_end_matches('.').len() };
    let name = start..start + length;
    if length == 0 || written.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return None;
    }
    if !braced {
        return Some(EnvVariable { end: name.end, name, otherwise: None });
    }
    let after = &text[name.end..];
    if after.starts_with('}') {
        return Some(EnvVariable { end: name.end + 1, name, otherwise: None });
    }
    let dash = after.strip_prefix(":-").map(|_| 2).or_else(|| after.strip_prefix('-').map(|_| 1))?;
    let close = if last_brace < name.end { None } else { after.find('}') }?;
    let otherwise = name.end + dash..name.end + close;
    Some(EnvVariable { end: otherwise.end + 1, name, otherwise: Some(otherwise) })
}

/// Parses the path in a placeholder.
fn name(text: &str, range: Range<usize>) -> Result<Expression, TemplateError> {
    let written = &text[range.clone()];
    let start = range.start + written.len() - written.trim_start().len();
    let range = start..start + written.trim().len();
    let keys = path::parse(&text[range.clone()]);
    let keys = keys.ok_or_else(|| TemplateError::new("expected the name of a variable").at(range.clone()))?;
    let mut expression = Expression { kind: Kind::Null, range: range.clone(), depth: 0 };
    for (index, key) in keys.into_iter().enumerate() {
        let kind = match key {
            Key::Name(name) if index == 0 => Kind::Name(name),
            Key::Name(name) => Kind::Member(Box::new(expression), Located { value: name, range: range.clone() }),
            Key::Position(position) => {
                let position = Kind::Number(crate::number::Number::Whole(position));
                let position = Expression { kind: position, range: range.clone(), depth: 1 };
                Kind::Item(Box::new(expression), Box::new(position))
            }
        };
        let depth = u16::try_from(index + 1).unwrap_or(u16::MAX);
        if depth > crate::limit::EXPRESSION {
            return Err(TemplateError::new("the path is too long").at(range));
        }
        expression = Expression { kind, range: range.clone(), depth };
    }
    Ok(expression)
}
