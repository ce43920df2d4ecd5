//! How messages reach a server and come back.

use serde_json::Value;
use tokio::sync::mpsc;

use crate::era::Era;
use crate::exchange::Failure;
use crate::http::Http;
use crate::stdio::Stdio;

/// Maximum number of messages that are read ahead.
pub(crate) const QUEUED: usize = 64;

/// Connection to a server.
pub enum Transport {
    /// The streams of a program.
    Stdio(Stdio),
    /// Streamable HTTP.
    Http(Box<Http>),
}

impl From<Stdio> for Transport {
    fn from(stdio: Stdio) -> Self {
        Self::Stdio(stdio)
    }
}

impl From<Http> for Transport {
    fn from(http: Http) -> Self {
        Self::Http(Box::new(http))
    }
}

/// Direction of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// To the server.
    Sent,
    /// From the server.
    Received,
}

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

impl Transport {
    /// Sends a message. What the server answers is received later.
    pub(crate) fn send(&mut self, message: &Value, era: Era) {
        match self {
            Self::Stdio(stdio) => stdio.send(&message.to_string()),
            Self::Http(http) => http.send(message, era),
        }
    }

    /// Returns what the server sent next. The future may be dropped before it completes.
    pub(crate) async fn receive(&mut self) -> Received {
        let incoming: &mut mpsc::Receiver<Received> = match self {
            Self::Stdio(stdio) => &mut stdio.incoming,
            Self::Http(http) => &mut http.incoming,
        };
        incoming.recv().await.unwrap_or(Received::Ended)
    }

    /// Stops waiting for the answer to a request, in the way that tells the server to stop working on it. Returns `false`
    /// if a notification is needed for this.
    pub(crate) fn abandon(&mut self, request: u64, era: Era) -> bool {
        match self {
            Self::Http(http) if era == Era::Stateless => {
                http.abandon(request);
                true
            }
            _ => false,
        }
    }
}
