//! The trait of models, and their responses.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use crate::wire::ReportedError;
use crate::{Failure, FailureKind, PendingRequest, Reply, Request};

/// Boxed future, so that the trait can be used as an object.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Model that answers requests.
pub trait Model: Send + Sync {
    /// Answers one request. If a network provider returns an error, it has already tried as often as its policy
    /// allows; a script returns its faults immediately. The caller must enforce its own timeout, because a response
    /// may never come. Dropping the future cancels the request.
    fn respond<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Result<Reply, ProviderError>>;

    /// Returns the steps to record since the last call, such as failed attempts that are retried.
    fn take_steps(&self) -> Vec<model::Step> {
        Vec::new()
    }

    /// Waits until [`Model::take_steps`] has steps of a request in progress. May wait forever.
    fn steps_ready(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::pending())
    }

    /// Returns the address to which requests are sent, or `None` if the model is not on the network.
    fn address(&self) -> Option<&str> {
        None
    }

    /// Returns how long the oldest request has waited without any response; `None` if none is waiting.
    fn silent_for(&self) -> Option<Duration> {
        None
    }

    /// Answers one request for a server that sends the response in a wire format. Where [`Model::respond`] performs a
    /// scripted fault, this method describes it, so that the server can perform it.
    fn serve<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Served> {
        Box::pin(async move {
            let answer = match self.respond(request).await {
                Ok(reply) => Answer::Reply(reply),
                Err(error) => Answer::Failed(error),
            };
            Served { answer, pending_request: None }
        })
    }
}

/// Response to be sent in a wire format.
#[derive(Debug)]
pub struct Served {
    /// Response to send.
    pub answer: Answer,
    /// Kept until the last byte is sent or the client has disconnected, so that the model knows the unanswered
    /// requests.
    pub pending_request: Option<PendingRequest>,
}

/// Kind of response to send.
#[derive(Debug)]
pub enum Answer {
    /// Complete reply.
    Reply(Reply),
    /// An error instead of a reply.
    Failed(ProviderError),
    /// A complete reply that arrives slowly.
    Slow {
        /// Reply.
        reply: Reply,
        /// Delay before each event.
        delay: Duration,
    },
    /// Reply that is interrupted.
    Broken {
        /// Kind of interruption.
        how: Break,
        /// The reply of which a part is sent.
        begun: Reply,
    },
}

impl Answer {
    /// Performs the answer for a caller in this process: interruptions become errors, delays are waited out, and for a
    /// reply that never arrives, this never returns.
    pub(crate) async fn perform(self) -> Result<Reply, ProviderError> {
        match self {
            Self::Reply(reply) => Ok(reply),
            Self::Slow { reply, delay } => {
                let parts = u32::try_from(reply.content.len().max(1)).unwrap_or(u32::MAX);
                tokio::time::sleep(delay.saturating_mul(parts)).await;
                Ok(reply)
            }
            Self::Failed(error) => Err(error),
            Self::Broken { how, .. } => match how {
                Break::Cut => Err(ProviderError::Cut),
                Break::Malformed => Err(ProviderError::Malformed),
                Break::ErrorEvent { kind, message } => Err(ProviderError::Reported { kind, message }),
                Break::Hang | Break::HangStream => std::future::pending().await,
            },
        }
    }
}

/// Kind of interruption of a reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Break {
    /// The connection closes in the middle of the content.
    Cut,
    /// The data does not follow the format.
    Malformed,
    /// Nothing is ever sent.
    Hang,
    /// The start is sent, and then nothing more.
    HangStream,
    /// An error is sent within the stream.
    ErrorEvent {
        /// Vendor's error code; `None` leaves the choice to the wire format.
        kind: Option<String>,
        /// Error message.
        message: String,
    },
}

/// Reason why there is no reply.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ProviderError {
    /// The provider answered with an error status.
    #[error("HTTP {status}: {message}")]
    Http {
        /// HTTP status.
        status: u16,
        /// Vendor's error code; `None` if it follows from the status.
        kind: Option<String>,
        /// Error message.
        message: String,
        /// Response headers, such as `retry-after`.
        headers: Vec<(String, String)>,
    },
    /// The provider reported an error in the middle of its response.
    #[error("the provider reported an error within its response: {message}")]
    Reported {
        /// Vendor's error code.
        kind: Option<String>,
        /// Error message.
        message: String,
    },
    /// The connection closed before the response was complete.
    #[error("the connection closed in the middle of the response")]
    Cut,
    /// The response cannot be read.
    #[error("the response is not in the vendor's format")]
    Malformed,
    /// A request over the network got no response.
    #[error("{0}")]
    Failed(Box<Failure>),
    /// A script has no more steps.
    #[error("{message}")]
    Exhausted {
        /// Name of the script, its number of steps, and the number of this request.
        message: String,
    },
    /// A script has no steps for this conversation.
    #[error("{message}")]
    Unscripted {
        /// Name of the conversation, and what to write for it.
        message: String,
    },
}

impl ProviderError {
    /// Returns how long the provider asks the client to wait before the next attempt.
    pub fn retry_after(&self) -> Option<Duration> {
        let headers = match self {
            Self::Failed(failure) => return failure.retry_after,
            Self::Http { headers, .. } => headers,
            _ => return None,
        };
        let (_, value) = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("retry-after"))?;
        value.trim().parse().ok().map(Duration::from_secs)
    }

    /// Returns `true` if the conversation caused it, so that its agent is at fault and not the provider.
    pub fn is_agents_doing(&self) -> bool {
        let classify = |status, code: &Option<String>, message: &String| {
            let error = ReportedError { codes: code.iter().cloned().collect(), message: message.clone() };
            FailureKind::classify(status, &error)
        };
        let kind = match self {
            Self::Failed(failure) => failure.kind,
            Self::Http { status, kind, message, .. } => classify(Some(*status), kind, message),
            Self::Reported { kind, message } => classify(None, kind, message),
            Self::Cut | Self::Malformed | Self::Exhausted { .. } | Self::Unscripted { .. } => return false,
        };
        kind.is_agents_doing()
    }

    /// Returns `true` if the same request may succeed if it is sent again.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Http { status, .. } => matches!(status, 408 | 409 | 429 | 500..=599),
            Self::Failed(failure) => failure.kind.is_transient(),
            Self::Reported { .. } | Self::Cut | Self::Malformed => true,
            Self::Exhausted { .. } | Self::Unscripted { .. } => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_retry_after_header_sets_the_delay() {
        let error = ProviderError::Http {
            status: 429,
            kind: None,
            message: "slow down".into(),
            headers: vec![("Retry-After".into(), "2".into())],
        };
        assert_eq!(error.retry_after(), Some(Duration::from_secs(2)));
        assert!(error.is_transient());
        assert!(!ProviderError::Exhausted { message: String::new() }.is_transient());
        assert_eq!(ProviderError::Cut.retry_after(), None);
    }
}
