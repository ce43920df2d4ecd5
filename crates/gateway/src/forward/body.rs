//! Body of a forwarded answer.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::{Body, Frame, SizeHint};
use tokio::time::{Instant, Sleep};

use super::ForwardedTrial;
use super::recorded::KeptAnswer;
use super::traffic::End;

/// Body of an answer that was forwarded, or of an error of the gateway itself.
pub(crate) enum ForwardedBody {
    /// The provider's answer, passed on as it arrives.
    Passing(Box<PassingBody>),
    /// The gateway's own answer.
    Own(Full<Bytes>),
}

/// A provider's answer, which is counted while it is passed on.
pub(crate) struct PassingBody {
    pub(super) arriving: reqwest::Body,
    pub(super) trial: Arc<ForwardedTrial>,
    /// Number of the request.
    pub(super) number: u64,
    /// Timeout for the next part.
    pub(super) idle: Duration,
    pub(super) late: Pin<Box<Sleep>>,
    /// Error that ends the body once the client has received everything before it.
    pub(super) broken: Option<AnswerCut>,
    pub(super) has_ended: bool,
    /// Number of bytes that are still to come, if the provider said so. The server does not ask for more than that.
    pub(super) remaining: Option<u64>,
    /// Copy of the answer for the cassette.
    pub(super) kept: Option<KeptAnswer>,
}

/// The connection to the provider ended in the middle of the answer, so the one to the client is closed too.
#[derive(Debug, thiserror::Error)]
#[error("the answer of the provider was cut: {0}")]
pub(crate) struct AnswerCut(String);

impl Body for ForwardedBody {
    type Data = Bytes;
    type Error = AnswerCut;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, AnswerCut>>> {
        match &mut *self {
            Self::Passing(passing) => passing.poll(context),
            Self::Own(own) => Pin::new(own).poll_frame(context).map_err(|never| match never {}),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Passing(passing) => passing.broken.is_none() && passing.arriving.is_end_stream(),
            Self::Own(own) => own.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Passing(passing) => passing.arriving.size_hint(),
            Self::Own(own) => own.size_hint(),
        }
    }
}

impl PassingBody {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, AnswerCut>>> {
        if let Some(cut) = self.broken.take() {
            return Poll::Ready(Some(Err(cut)));
        }
        let reason = match Pin::new(&mut self.arriving).poll_frame(context) {
            Poll::Ready(Some(Ok(frame))) => {
                self.late.as_mut().reset(Instant::now() + self.idle);
                if let Some(data) = frame.data_ref() {
                    self.trial.traffic.arrived(self.number, data);
                    if let Some(kept) = &mut self.kept {
                        kept.arrived(data);
                    }
                    // The agent may exit after the last event, before the connection closes.
                    if self.kept.is_some() && self.trial.traffic.has_ended(self.number) {
                        self.kept.take().into_iter().for_each(|kept| kept.ended(false));
                    }
                    self.remaining = self.remaining.map(|remaining| remaining.saturating_sub(data.len() as u64));
                }
                if self.arriving.is_end_stream() || self.remaining == Some(0) {
                    self.end(End::Whole);
                }
                return Poll::Ready(Some(Ok(frame)));
            }
            Poll::Ready(None) => {
                self.end(End::Whole);
                return Poll::Ready(None);
            }
            Poll::Ready(Some(Err(error))) => llm::error_chain(&error.without_url()),
            Poll::Pending => {
                ready!(self.late.as_mut().poll(context));
                format!("it made no progress for {} s", self.idle.as_secs_f64())
            }
        };
        self.end(End::Cut(reason.clone()));
        // On an error, the server drops what it has not written yet. It writes while a body is pending.
        self.broken = Some(AnswerCut(reason));
        context.waker().wake_by_ref();
        Poll::Pending
    }

    /// Counts the end of the answer.
    fn end(&mut self, end: End) {
        if !std::mem::replace(&mut self.has_ended, true) {
            if let Some(kept) = self.kept.take() {
                kept.ended(end != End::Whole && !self.trial.traffic.has_ended(self.number));
            }
            self.trial.traffic.ended(self.number, end);
        }
    }
}

impl Drop for PassingBody {
    /// The client left before the end.
    fn drop(&mut self) {
        self.end(End::Left);
    }
}
