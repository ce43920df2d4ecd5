//! Tree into which a document is parsed. Every value has its location in the file.

use std::sync::Arc;

use serde_json::Value;

use crate::{Diagnostic, Excerpt, Source, Span, Spanned};

/// Value in the user's file.
#[derive(Debug, Clone)]
pub struct Node {
    /// Value by kind.
    pub kind: NodeKind,
    /// Location in the file.
    pub span: Span,
    /// YAML tag as written (`!re`), if any.
    pub tag: Option<Box<str>>,
    /// File that contains it.
    pub source: Arc<Source>,
}

/// Kind and content of a [`Node`]. Numbers keep JSON's distinction between integers and fractions.
#[derive(Debug, Clone)]
pub enum NodeKind {
    /// `null`, `~` or an empty value.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// Number.
    Number(serde_json::Number),
    /// Text.
    String(String),
    /// Sequence.
    List(Vec<Node>),
    /// Mapping, in the order in which it is written; keys are unique.
    Map(Vec<(Spanned<String>, Node)>),
}

impl Node {
    /// Returns the location for a diagnostic.
    pub fn excerpt(&self) -> Excerpt {
        self.source.excerpt(self.span)
    }

    /// Creates an error that points at this value.
    pub fn error(&self, message: impl Into<String>) -> Diagnostic {
        Diagnostic::error(message).at(self.excerpt())
    }

    /// Creates a warning that points at this value.
    pub fn warning(&self, message: impl Into<String>) -> Diagnostic {
        Diagnostic::warning(message).at(self.excerpt())
    }

    /// Returns the kind of the value with its article, for messages: "a string", "a list".
    pub fn kind_name(&self) -> &'static str {
        match self.kind {
            NodeKind::Null => "an empty value (null)",
            NodeKind::Bool(_) => "a boolean",
            NodeKind::Number(_) => "a number",
            NodeKind::String(_) => "a string",
            NodeKind::List(_) => "a list",
            NodeKind::Map(_) => "a map",
        }
    }

    /// Returns the text if the value is text.
    pub fn as_str(&self) -> Option<&str> {
        match &self.kind {
            NodeKind::String(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the value under `key` if this is a map that has it.
    pub fn get(&self, key: &str) -> Option<&Node> {
        match &self.kind {
            NodeKind::Map(entries) => entries.iter().find(|(name, _)| name.value == key).map(|(_, node)| node),
            _ => None,
        }
    }

    /// Converts to JSON, without locations.
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

    /// Creates a tree without a file, for values that come from code. Every location is the start of `origin`.
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
