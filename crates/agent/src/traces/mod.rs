//! Spans that the programs of agents send while they answer. They show what an agent did that only answers with text.
//!
//! A `Receiver` listens on loopback for the run. Each conversation has an [`Inbox`]: its spans are recognised by an
//! address of its own, or by the trace id of the message that was sent.

mod context;
mod decoding;
mod inbox;
mod mailbox;
mod receiver;
mod report;
mod settings;
#[cfg(test)]
mod tests;

pub(crate) use self::inbox::{Inbox, ProgramState, exporter_variables, record_end};
pub(crate) use self::receiver::Receivers;
pub(crate) use self::report::{AnswerCalls, SpanReport};
pub(crate) use self::settings::{SPAN_PORT, TraceKeys, TraceSettings};
