//! The bytes of a response, and how they stop.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use llm::Flight;

/// What comes after the last byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// The response is complete.
    Whole,
    /// The connection closes.
    Cut,
    /// Nothing, for as long as the client waits.
    Hang,
}

/// A response's body: pieces that are sent one by one, and an end.
pub(crate) struct Pieces {
    pieces: VecDeque<Bytes>,
    /// The length that the headers promise; `None` for a stream.
    promised: Option<u64>,
    end: End,
    flushed: bool,
    /// The request counts as unanswered until the body is dropped.
    _flights: Vec<Flight>,
}

impl Pieces {
    /// A body of one piece.
    pub(crate) fn whole(bytes: impl Into<Bytes>) -> Self {
        let bytes = bytes.into();
        Self { promised: Some(bytes.len() as u64), ..Self::stream([bytes], End::Whole) }
    }

    /// A body whose length nobody promises.
    pub(crate) fn stream(pieces: impl IntoIterator<Item = Bytes>, end: End) -> Self {
        Self {
            pieces: pieces.into_iter().filter(|piece| !piece.is_empty()).collect(),
            promised: None,
            end,
            flushed: false,
            _flights: Vec::new(),
        }
    }

    /// The first half of `bytes`, though the headers promise all of it.
    pub(crate) fn half(bytes: impl Into<Bytes>, end: End) -> Self {
        let bytes = bytes.into();
        let half = bytes.slice(..bytes.len() / 2);
        Self { promised: Some(bytes.len() as u64), ..Self::stream([half], end) }
    }

    /// The same body, kept together with what tells that it is on its way.
    pub(crate) fn carrying(mut self, flights: impl IntoIterator<Item = Flight>) -> Self {
        self._flights.extend(flights);
        self
    }
}

/// The connection is to be closed in the middle of a body, on purpose.
#[derive(Debug, thiserror::Error)]
#[error("cut on purpose")]
pub(crate) struct CutOnPurpose;

impl Body for Pieces {
    type Data = Bytes;
    type Error = CutOnPurpose;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, CutOnPurpose>>> {
        if let Some(piece) = self.pieces.pop_front() {
            return Poll::Ready(Some(Ok(Frame::data(piece))));
        }
        match self.end {
            End::Whole => Poll::Ready(None),
            End::Hang => Poll::Pending,
            // An error makes the server drop what it has not written yet. It writes when a body has nothing to give.
            End::Cut if !self.flushed => {
                self.flushed = true;
                context.waker().wake_by_ref();
                Poll::Pending
            }
            End::Cut => Poll::Ready(Some(Err(CutOnPurpose))),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.pieces.is_empty() && self.end == End::Whole
    }

    fn size_hint(&self) -> SizeHint {
        self.promised.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}
