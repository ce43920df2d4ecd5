//! Source position of a part of an assertion, stored cheaply until it is displayed.

use std::fmt;
use std::sync::Arc;

use model::{Excerpt, Node, Source, Span};

/// Span and the file that contains it.
#[derive(Clone)]
pub(crate) struct Place {
    source: Arc<Source>,
    span: Span,
}

/// The position is not part of the meaning, so all places have the same debug output.
impl fmt::Debug for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Place")
    }
}

impl Place {
    /// Returns the place of a whole value.
    pub fn of(node: &Node) -> Self {
        Self::at(node, node.span)
    }

    /// Returns a place in the file that `node` comes from.
    pub fn at(node: &Node, span: Span) -> Self {
        Self { source: Arc::clone(&node.source), span }
    }

    /// Returns the place of a part of an expectation, if it is written in a file.
    pub fn of_expectation(place: &expect::Place) -> Option<Self> {
        let (source, span) = place.parts()?;
        Some(Self { source: Arc::clone(source), span })
    }

    /// Returns the source line, ready to be displayed.
    pub fn excerpt(&self) -> Excerpt {
        self.source.excerpt(self.span)
    }
}
