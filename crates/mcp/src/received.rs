//! What comes from a server.

use serde_json::Value;

use crate::exchange::Failure;

/// Maximum number of messages that are read ahead.
pub(crate) const QUEUED: usize = 64;

/// What comes from a server.
#[derive(Debug)]
pub(crate) enum Received {
    /// A message.
    Message {
        /// The message.
        message: Value,
        /// Its text.
        text: String,
        /// HTTP status of the response that contains it.
        status: Option<u16>,
    },
    /// Output that is not a message.
    Noise(String),
    /// The request failed, without a message about it.
    Failed {
        /// Id of the request; `None` for a notification.
        request: Option<u64>,
        /// Reason.
        failure: Failure,
    },
    /// The server will not send anything more.
    Ended,
}

impl Received {
    /// Reads a text that should be a message.
    pub(crate) fn read(text: String, status: Option<u16>) -> Self {
        match model::foreign_json::parse(&text) {
            Ok(message @ Value::Object(_)) => Self::Message { message, text, status },
            _ => Self::Noise(text),
        }
    }
}
