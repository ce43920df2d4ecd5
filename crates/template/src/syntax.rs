//! Syntax tree of a template.

use std::ops::Range;

use crate::number::Number;
use crate::path::Key;

/// Value with its range in the template's text.
#[derive(Debug, Clone)]
pub(crate) struct Located<T> {
    pub(crate) value: T,
    pub(crate) range: Range<usize>,
}

/// A part of a template, in the order of the text.
#[derive(Debug, Clone)]
pub(crate) enum Part {
    /// Text that is kept unchanged.
    Text(String),
    /// `{{ … }}`
    Output(Expression),
    /// `{% if … %}`, with its `elif`s.
    If { branches: Vec<(Expression, Vec<Part>)>, otherwise: Vec<Part> },
    /// `{% for … %}`
    For(Box<Loop>),
    /// `{% set name = … %}`
    Set { name: String, value: Expression },
    /// `{% set space.member = … %}`
    SetMember { space: Expression, member: String, value: Expression },
    /// `{% macro … %}`
    Macro(Macro),
}

#[derive(Debug, Clone)]
pub(crate) struct Loop {
    /// One name, or several to which the parts of each item are assigned.
    pub(crate) names: Vec<Located<String>>,
    pub(crate) items: Expression,
    pub(crate) condition: Option<Expression>,
    pub(crate) body: Vec<Part>,
    pub(crate) otherwise: Vec<Part>,
}

#[derive(Debug, Clone)]
pub(crate) struct Macro {
    pub(crate) name: String,
    pub(crate) parameters: Vec<(String, Option<Expression>)>,
    pub(crate) body: Vec<Part>,
}

/// Content of the placeholder in a template that consists of a single placeholder.
#[derive(Debug, Clone)]
pub(crate) struct Whole {
    /// Text of the placeholder, which may be the name of a variable even if it is not a valid identifier: `user-name`.
    pub(crate) inner: String,
    pub(crate) keys: Option<Vec<Key>>,
}

#[derive(Debug, Clone)]
pub(crate) struct Expression {
    pub(crate) kind: Kind,
    pub(crate) range: Range<usize>,
    /// Depth of the tree, including this node.
    pub(crate) depth: u16,
}

#[derive(Debug, Clone)]
pub(crate) enum Kind {
    Null,
    Bool(bool),
    Number(Number),
    Text(String),
    Name(String),
    List(Vec<Expression>),
    Map(Vec<(Expression, Expression)>),
    /// `a.b`
    Member(Box<Expression>, Located<String>),
    /// `a[b]`
    Item(Box<Expression>, Box<Expression>),
    /// `a[b:c:d]`
    Slice(Box<Expression>, Box<[Option<Expression>; 3]>),
    Call(Box<Expression>, Arguments),
    Filter(Box<Expression>, Located<String>, Arguments),
    Test {
        operand: Box<Expression>,
        name: Located<String>,
        arguments: Arguments,
        negated: bool,
    },
    Not(Box<Expression>),
    Negative(Box<Expression>),
    Binary(Operator, Box<Expression>, Box<Expression>),
    /// `a if c else b`
    Choice {
        condition: Box<Expression>,
        then: Box<Expression>,
        otherwise: Option<Box<Expression>>,
    },
}

/// Arguments of a call.
#[derive(Debug, Clone, Default)]
pub(crate) struct Arguments {
    pub(crate) positional: Vec<Expression>,
    pub(crate) named: Vec<(Located<String>, Expression)>,
}

impl Arguments {
    pub(crate) fn expressions(&self) -> impl Iterator<Item = &Expression> {
        self.positional.iter().chain(self.named.iter().map(|(_, value)| value))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operator {
    Or,
    And,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    In,
    NotIn,
    Add,
    Subtract,
    Concatenate,
    Multiply,
    Divide,
    Remainder,
}

impl Operator {
    pub(crate) fn symbol(self) -> &'static str {
        match self {
            Self::Or => "or",
            Self::And => "and",
            Self::Equal => "==",
            Self::NotEqual => "!=",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
            Self::In => "in",
            Self::NotIn => "not in",
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Concatenate => "~",
            Self::Multiply => "*",
            Self::Divide => "/",
            Self::Remainder => "%",
        }
    }

    /// Returns the precedence. A higher rank binds more tightly.
    pub(crate) fn rank(self) -> u8 {
        match self {
            Self::Or => 1,
            Self::And => 2,
            // `not` is between them.
            Self::Add | Self::Subtract | Self::Concatenate => 5,
            Self::Multiply | Self::Divide | Self::Remainder => 6,
            _ => 4,
        }
    }
}

impl Expression {
    /// Returns all direct subexpressions.
    pub(crate) fn children(&self) -> Vec<&Expression> {
        match &self.kind {
            Kind::Null | Kind::Bool(_) | Kind::Number(_) | Kind::Text(_) | Kind::Name(_) => Vec::new(),
            Kind::List(items) => items.iter().collect(),
            Kind::Map(entries) => entries.iter().flat_map(|(key, value)| [key, value]).collect(),
            Kind::Member(operand, _) | Kind::Not(operand) | Kind::Negative(operand) => vec![operand],
            Kind::Item(left, right) | Kind::Binary(_, left, right) => vec![left, right],
            Kind::Slice(operand, bounds) => std::iter::once(&**operand).chain(bounds.iter().flatten()).collect(),
            Kind::Call(operand, arguments)
            | Kind::Filter(operand, _, arguments)
            | Kind::Test { operand, arguments, .. } => {
                std::iter::once(&**operand).chain(arguments.expressions()).collect()
            }
            Kind::Choice { condition, then, otherwise } => {
                [&**condition, &**then].into_iter().chain(otherwise.as_deref()).collect()
            }
        }
    }

    /// Returns `true` if it only names a value: `user`, `user.name`, `users[0]["name"]`.
    pub(crate) fn is_path(&self) -> bool {
        match &self.kind {
            Kind::Name(_) => true,
            Kind::Member(operand, _) => operand.is_path(),
            Kind::Item(operand, key) => operand.is_path() && is_position_or_name(key),
            _ => false,
        }
    }
}

/// Returns `true` if it is a literal: `'name'`, `0`, `-1`.
fn is_position_or_name(key: &Expression) -> bool {
    match &key.kind {
        Kind::Text(_) | Kind::Number(_) => true,
        Kind::Negative(operand) => matches!(operand.kind, Kind::Number(_)),
        _ => false,
    }
}
