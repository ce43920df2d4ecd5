//! Source position of a part of an expectation, stored cheaply until it is displayed.

use std::fmt;
use std::sync::Arc;

use model::{Excerpt, Node, Source, Span};

/// Span and the file that contains it.
#[derive(Clone)]
pub struct SourceLocation {
    source: Arc<Source>,
    span: Span,
}

/// The position is not part of the meaning, so all locations have the same debug output, which is included in digests
/// of assertions.
impl fmt::Debug for SourceLocation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Place")
    }
}

impl SourceLocation {
    /// Returns the location of a value.
    pub fn from_node(node: &Node) -> Self {
        Self { source: Arc::clone(&node.source), span: node.span }
    }

    /// Returns a location in the file that `node` comes from.
    pub fn at(node: &Node, span: Span) -> Self {
        Self { source: Arc::clone(&node.source), span }
    }

    /// Returns `true` if the value comes from a file.
    pub fn is_in_file(&self) -> bool {
        !self.source.text.is_empty()
    }

    /// Returns a location that is not in a file.
    pub fn nowhere() -> Self {
        Self { source: Source::new("", ""), span: Span::default() }
    }

    /// Returns the source line, ready for display.
    pub fn excerpt(&self) -> Excerpt {
        self.source.excerpt(self.span)
    }
}
