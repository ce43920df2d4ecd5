//! Response bodies, complete or broken on purpose.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use llm::PendingRequest;
use tokio::time::{Instant, Sleep, sleep};

/// Event after the last byte of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// The response is complete.
    Whole,
    /// The connection closes.
    Cut,
    /// Nothing is sent and the connection stays open until the client gives up.
    Hang,
}

/// Body of a response: pieces that are sent one by one, and how the body ends.
pub(crate) struct Pieces {
    pieces: VecDeque<Bytes>,
    /// Length promised in the headers; `None` for a stream.
    promised: Option<u64>,
    end: End,
    flushed: bool,
    /// Delay before each piece, and the timer for the next one.
    delay: Option<(Duration, Pin<Box<Sleep>>)>,
    /// Guards that keep the request counted as unanswered until the body is dropped.
    _pending: Vec<PendingRequest>,
}

impl Pieces {
    /// Creates a body of one piece.
    pub(crate) fn whole(bytes: impl Into<Bytes>) -> Self {
        let bytes = bytes.into();
        Self { promised: Some(bytes.len() as u64), ..Self::stream([bytes], End::Whole) }
    }

    /// Creates a body without a promised length.
    pub(crate) fn stream(pieces: impl IntoIterator<Item = Bytes>, end: End) -> Self {
        Self {
            pieces: pieces.into_iter().filter(|piece| !piece.is_empty()).collect(),
            promised: None,
            end,
            flushed: false,
            delay: None,
            _pending: Vec::new(),
        }
    }

    /// Creates a body that sends the first half of `bytes`, although the headers promise all of it.
    pub(crate) fn half(bytes: impl Into<Bytes>, end: End) -> Self {
        let bytes = bytes.into();
        let half = bytes.slice(..bytes.len() / 2);
        Self { promised: Some(bytes.len() as u64), ..Self::stream([half], end) }
    }

    /// Delays each piece by `delay`.
    pub(crate) fn delayed(self, delay: Duration) -> Self {
        Self { delay: Some((delay, Box::pin(sleep(delay)))), ..self }
    }

    /// Attaches the `pending` that mark the request as unanswered until the body is dropped.
    pub(crate) fn carrying(mut self, pending: impl IntoIterator<Item = PendingRequest>) -> Self {
        self._pending.extend(pending);
        self
    }
}

/// Error that closes the connection in the middle of a body, on purpose.
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
        let is_over = self.pieces.is_empty();
        if let Some((delay, timer)) = self.delay.as_mut().filter(|_| !is_over) {
            ready!(timer.as_mut().poll(context));
            timer.as_mut().reset(Instant::now() + *delay);
        }
        if let Some(piece) = self.pieces.pop_front() {
            return Poll::Ready(Some(Ok(Frame::data(piece))));
        }
        match self.end {
            End::Whole => Poll::Ready(None),
            End::Hang => Poll::Pending,
            // An error makes the server drop what it has not written yet. The server writes when a body is pending.
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
