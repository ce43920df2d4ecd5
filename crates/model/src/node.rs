//! The tree a document is read into: every value knows where it was written.

use std::sync::Arc;

use serde_json::Value;

use crate::{Diagnostic, Excerpt, Source, Span, Spanned};

/// A value in the user's file.
#[derive(Debug, Clone)]
pub struct Node {
    /// What it is.
    pub kind: NodeKind,
    /// Where it is written.
    pub span: Span,
    /// The YAML tag as written (`!re`), if any.
    pub tag: Option<Box<str>>,
    /// The file.
    pub source: Arc<Source>,
}

/// What a [`Node`] is. Numbers keep JSON's distinction of whole and fractional.
#[derive(Debug, Clone)]
pub enum NodeKind {
    /// `null`, `~` or nothing at all.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number.
    Number(serde_json::Number),
    /// Text.
    String(String),
    /// A sequence.
    List(Vec<Node>),
    /// A mapping, in the order it is written; keys are unique.
    Map(Vec<(Spanned<String>, Node)>),
}

impl Node {
    /// A place in the user's file to point at.
    pub fn excerpt(&self) -> Excerpt {
        self.source.excerpt(self.span)
    }

    /// An error that points at this value.
    pub fn error(&self, message: impl Into<String>) -> Diagnostic {
        Diagnostic::error(message).at(self.excerpt())
    }

    /// A warning that points at this value.
    pub fn warning(&self, message: impl Into<String>) -> Diagnostic {
        Diagnostic::warning(message).at(self.excerpt())
    }

    /// What kind of value it is, with its article, for messages: "a string", "a list".
    pub fn kind_name(&self) -> &'static str {
        match self.kind {
            NodeKind::Null => "nothing (null)",
            NodeKind::Bool(_) => "a boolean",
            NodeKind::Number(_) => "a number",
            NodeKind::String(_) => "a string",
            NodeKind::List(_) => "a list",
            NodeKind::Map(_) => "a map",
        }
    }

    /// The text, if it is text.
    pub fn as_str(&self) -> Option<&str> {
        match &self.kind {
            NodeKind::String(text) => Some(text),
            _ => None,
        }
    }

    /// The value under `key`, if this is a map that has it.
    pub fn get(&self, key: &str) -> Option<&Node> {
        match &self.kind {
            NodeKind::Map(entries) => entries.iter().find(|(name, _)| name.value == key).map(|(_, node)| node),
            _ => None,
        }
    }

    /// The same value without its places.
    pub fn to_json(&self) -> Value {
        match &self.kind {
            NodeKind::Null => Value::Null,
            NodeKind::Bool(value) => Value::Bool(*value),
            NodeKind::Number(value) => Value::Number(value.clone()),
            NodeKind::String(value) => Value::String(value.clone()),
            NodeKind::List(items) => Value::Array(items.iter().map(Node::to_json).collect()),
            NodeKind::Map(entries) => {
                Value::Object(entries.iter().map(|(key, node)| (key.value.clone(), node.to_json())).collect())
            }
        }
    }

    /// A tree with no file behind it, for values that come from code; every place is the start of `origin`.
    pub fn from_json(value: &Value, origin: &Arc<Source>) -> Self {
        let kind = match value {
            Value::Null => NodeKind::Null,
            Value::Bool(value) => NodeKind::Bool(*value),
            Value::Number(value) => NodeKind::Number(value.clone()),
            Value::String(value) => NodeKind::String(value.clone()),
            Value::Array(items) => NodeKind::List(items.iter().map(|item| Self::from_json(item, origin)).collect()),
            Value::Object(entries) => NodeKind::Map(
                entries
                    .iter()
                    .map(|(key, value)| (Spanned::new(key.clone(), Span::default()), Self::from_json(value, origin)))
                    .collect(),
            ),
        };
        Self { kind, span: Span::default(), tag: None, source: Arc::clone(origin) }
    }
}
