//! Spans that have arrived for a conversation.

use std::sync::{Mutex, MutexGuard, PoisonError};

use spans::{Span, SpanEvent, SpanId, TraceId};
use tokio::sync::Notify;

/// Maximum size of the spans of a reply, in bytes.
const MAX_BYTES: usize = 64 << 20;
/// Maximum number of spans of a reply.
const MAX_SPANS: usize = 20_000;
/// Maximum number of different errors that are kept.
const MAX_ERRORS: usize = 5;

/// Spans of a conversation that have arrived and that no reply has taken yet.
#[derive(Default)]
pub(super) struct Mailbox {
    content: Mutex<Received>,
    /// Notified when more has arrived.
    pub(super) changed: Notify,
}

/// Spans that have arrived.
#[derive(Default)]
pub(super) struct Received {
    pub(super) spans: Vec<Span>,
    pub(super) events: Vec<(TraceId, SpanId, SpanEvent)>,
    pub(super) bytes: usize,
    /// True if there were more than can be kept.
    pub(super) is_full: bool,
    /// Number of spans whose conversation is not known.
    pub(super) strays: usize,
    /// Number of spans that belong to an earlier message.
    pub(super) late: usize,
    /// Reasons why requests could not be read.
    pub(super) unread: Vec<String>,
    /// Trace of the current message, and the time at which it was sent, unless it is the first one.
    pub(super) current: Option<TraceId>,
    pub(super) since_ns: Option<u64>,
    /// Traces of earlier messages.
    pub(super) earlier: Vec<TraceId>,
}

impl Mailbox {
    pub(super) fn lock(&self) -> MutexGuard<'_, Received> {
        self.content.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns `true` if there were more spans for the reply than can be kept.
    pub(super) fn is_full(&self) -> bool {
        self.lock().is_full
    }

    /// Adds the content of a request.
    pub(super) fn add(&self, spans: Vec<Span>, events: Vec<(TraceId, SpanId, SpanEvent)>, bytes: usize) {
        let mut received = self.lock();
        received.bytes = received.bytes.saturating_add(bytes);
        if received.bytes > MAX_BYTES || received.spans.len() + spans.len() > MAX_SPANS {
            received.is_full = true;
        } else {
            for span in spans {
                if received.is_late(&span) {
                    received.late += 1;
                } else {
                    received.spans.push(span);
                }
            }
            received.events.extend(events);
        }
        drop(received);
        self.changed.notify_one();
    }

    /// Adds a number of spans that may belong to this conversation or to another one.
    pub(super) fn add_strays(&self, count: usize) {
        self.lock().strays += count;
    }

    /// Adds the reason why a request could not be read that may belong to this conversation.
    pub(super) fn add_unread(&self, reason: &str) {
        let mut received = self.lock();
        if received.unread.len() < MAX_ERRORS && !received.unread.iter().any(|other| other == reason) {
            received.unread.push(reason.to_owned());
        }
    }
}

impl Received {
    /// Adds events to their spans, as far as these have arrived.
    pub(super) fn attach_events(&mut self) {
        for (trace, id, event) in std::mem::take(&mut self.events) {
            match self.spans.iter_mut().find(|span| span.id == id && span.trace == trace) {
                Some(span) => span.events.push(event),
                None => self.events.push((trace, id, event)),
            }
        }
    }

    /// Returns `true` for a span of an earlier message: it is in its trace, or it ended before the current one was sent.
    fn is_late(&self, span: &Span) -> bool {
        self.earlier.contains(&span.trace)
            || self.current.as_ref() != Some(&span.trace) && self.since_ns.is_some_and(|since| span.end_ns < since)
    }
}
