//! Reasons why a request is not answered as its client wanted.

use axum::body::Body;
use hyper::StatusCode;
use hyper::header::{self, HeaderValue};
use queue::QueueError;
use serde_json::json;
use session::ErrorKind;
use store::StoreError;

use crate::command::view::pages::PageError;
use crate::error::CliError;
use crate::http_server::{Answer, page, plain, response};

/// Reason why a request is not answered as its client wanted.
#[derive(Debug)]
pub struct Problem {
    pub status: StatusCode,
    message: String,
    /// Value of `WWW-Authenticate`.
    challenge: Option<&'static str>,
}

impl Problem {
    pub fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), challenge: None }
    }

    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, message)
    }

    pub fn conflict(message: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, message)
    }

    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, message)
    }

    /// Asks for a token.
    pub fn unauthorized(message: impl Into<String>, challenge: &'static str) -> Self {
        Self { challenge: Some(challenge), ..Self::new(StatusCode::UNAUTHORIZED, message) }
    }

    /// Returns it as JSON, as RFC 9457 describes.
    pub fn to_json(&self) -> Answer {
        let body = json!({
            "title": self.status.canonical_reason().unwrap_or_default(),
            "status": self.status.as_u16(),
            "detail": self.message,
        });
        self.challenged(response(self.status, "application/problem+json", format!("{body}\n")))
    }

    /// Returns it as plain text.
    pub fn to_text(&self) -> Answer {
        self.challenged(plain(self.status, &format!("{}\n", self.message)))
    }

    /// Returns it as a page.
    pub fn to_page(&self) -> Answer {
        let title = self.status.canonical_reason().unwrap_or("Error");
        self.challenged(page(self.status, report::message_page(title, &self.message), &report::record_policy()))
    }

    fn challenged(&self, mut answer: Answer) -> Answer {
        if let Some(challenge) = self.challenge {
            answer.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static(challenge));
        }
        answer
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        let message = error.to_string();
        match error {
            StoreError::Select(error) => {
                let candidates = error.candidates();
                let near = if candidates.is_empty() {
                    String::new()
                } else {
                    format!("; there are {}", candidates.join(", "))
                };
                Self::not_found(format!("{message}{near}"))
            }
            StoreError::UnknownRun(_) | StoreError::UnknownTrial { .. } => Self::not_found(message),
            _ => Self::unavailable(message),
        }
    }
}

impl From<CliError> for Problem {
    fn from(error: CliError) -> Self {
        let status = match error.kind() {
            ErrorKind::Usage => StatusCode::BAD_REQUEST,
            ErrorKind::Nothing => StatusCode::NOT_FOUND,
            ErrorKind::Environment | ErrorKind::Stopped => StatusCode::SERVICE_UNAVAILABLE,
        };
        Self::new(status, error.to_string())
    }
}

impl From<QueueError> for Problem {
    fn from(error: QueueError) -> Self {
        Self::unavailable(error.to_string())
    }
}

impl From<PageError> for Problem {
    fn from(error: PageError) -> Self {
        match error.downcast::<StoreError>() {
            Ok(error) => (*error).into(),
            Err(error) => Self::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
        }
    }
}

/// Returns a response with JSON.
pub fn json_answer(status: StatusCode, value: &serde_json::Value) -> Answer {
    response(status, "application/json", format!("{value:#}\n"))
}

/// Sends a browser to another page.
pub fn redirect(path: &str) -> Answer {
    let mut answer = Answer::new(Body::empty());
    *answer.status_mut() = StatusCode::SEE_OTHER;
    match HeaderValue::try_from(path) {
        Ok(path) => drop(answer.headers_mut().insert(header::LOCATION, path)),
        Err(_) => *answer.status_mut() = StatusCode::BAD_REQUEST,
    }
    answer
}
