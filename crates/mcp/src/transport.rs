//! How messages reach a server and come back.

use serde_json::Value;
use tokio::sync::mpsc;

use crate::era::Era;
use crate::http::Http;
use crate::received::Received;
use crate::stdio::Stdio;

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
