//! Where a part of an expectation is written, kept cheaply until it is to be drawn.

use std::sync::Arc;

use model::{Excerpt, Node, Source, Span};

/// A span and the file it is in.
#[derive(Debug, Clone)]
pub struct Place {
    source: Arc<Source>,
    span: Span,
}

impl Place {
    /// The place of a value.
    pub fn of(node: &Node) -> Self {
        Self { source: Arc::clone(&node.source), span: node.span }
    }

    /// A place in the file that `node` comes from.
    pub fn at(node: &Node, span: Span) -> Self {
        Self { source: Arc::clone(&node.source), span }
    }

    /// The file and the span; none for values that come from no file.
    pub fn parts(&self) -> Option<(&Arc<Source>, Span)> {
        (!self.source.text.is_empty()).then_some((&self.source, self.span))
    }

    /// No place in any file.
    pub fn nowhere() -> Self {
        Self { source: Source::new("", ""), span: Span::default() }
    }

    /// The line, ready to be drawn; none for values that come from no file.
    pub fn excerpt(&self) -> Option<Excerpt> {
        (!self.source.text.is_empty()).then(|| self.source.excerpt(self.span))
    }
}
