//! Where a part of an assertion is written, kept cheaply until it is to be drawn.

use std::fmt;
use std::sync::Arc;

use model::{Excerpt, Node, Source, Span};

/// A span and the file it is in.
#[derive(Clone)]
pub(crate) struct Place {
    source: Arc<Source>,
    span: Span,
}

/// Where something is written is no part of what it says.
impl fmt::Debug for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Place")
    }
}

impl Place {
    /// The place of a whole value.
    pub fn of(node: &Node) -> Self {
        Self::at(node, node.span)
    }

    /// A place in the file that `node` comes from.
    pub fn at(node: &Node, span: Span) -> Self {
        Self { source: Arc::clone(&node.source), span }
    }

    /// The place of a part of an expectation, if it is written in a file.
    pub fn of_expectation(place: &expect::Place) -> Option<Self> {
        let (source, span) = place.parts()?;
        Some(Self { source: Arc::clone(source), span })
    }

    /// The line, ready to be drawn.
    pub fn excerpt(&self) -> Excerpt {
        self.source.excerpt(self.span)
    }
}
