//! A request and what the server did with it.

use std::fmt;
use std::time::Duration;

use serde_json::Value;

/// A request and its answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Exchange {
    /// Id of the request.
    pub id: u64,
    /// Answer.
    pub answer: Answer,
    /// Notifications and requests of the server that arrived before the answer, unchanged.
    pub before: Vec<Value>,
    /// Time from the request to the answer.
    pub duration: Duration,
    /// Size of the answer as it was sent, in bytes.
    pub bytes: usize,
    /// HTTP status of the response that contained the answer.
    pub status: Option<u16>,
}

impl Exchange {
    /// Returns the result.
    ///
    /// # Errors
    /// Returns the error if the server answered with one.
    pub fn result(&self) -> Result<&Value, Failure> {
        match &self.answer {
            Answer::Result(result) => Ok(result),
            Answer::Error { code, message, .. } => Err(Failure::Refused { code: *code, message: message.clone() }),
        }
    }

    /// Returns the progress notifications that arrived before the answer.
    pub fn progress(&self) -> impl Iterator<Item = &Value> {
        self.before.iter().filter(|message| message["method"] == "notifications/progress")
    }
}

/// Answer to a request.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// Result. A tool that failed is a result too, with `isError`.
    Result(Value),
    /// Error of the protocol.
    Error {
        /// Code. Zero if the server sent none.
        code: i64,
        /// Message.
        message: String,
        /// The whole error.
        error: Value,
    },
}

impl Answer {
    /// Returns the result, if it is one.
    pub fn as_result(&self) -> Option<&Value> {
        if let Self::Result(result) = self { Some(result) } else { None }
    }

    /// Returns the code of the error, if it is one.
    pub fn code(&self) -> Option<i64> {
        if let Self::Error { code, .. } = self { Some(*code) } else { None }
    }

    /// Returns `true` for the result of a tool that reports an error.
    pub fn is_tool_error(&self) -> bool {
        self.as_result().is_some_and(|result| result["isError"] == true)
    }
}

/// Reason why there is no usable answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// The server did not answer in time.
    TimedOut(Duration),
    /// The server ended, or closed its output.
    Ended,
    /// The connection failed.
    Lost(String),
    /// An HTTP response without a message of the protocol.
    Http {
        /// Status.
        status: u16,
        /// Beginning of the body.
        body: String,
        /// How a client can sign in, from the header `WWW-Authenticate`.
        challenge: Option<String>,
    },
    /// The response ended before it contained the answer.
    Unanswered,
    /// The server answered with an error of the protocol.
    Refused {
        /// Code.
        code: i64,
        /// Message.
        message: String,
    },
    /// The answer does not have the form that the protocol requires.
    Malformed(String),
}

/// Reason why a check could not be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unchecked {
    /// The server could not be started; this says nothing about it.
    NotStarted(String),
    /// The options do not fit the server, as described.
    Options(String),
    /// The server does not work as far as is needed.
    Server(Failure),
}

impl Failure {
    /// Returns `true` if the server cannot be used after this failure.
    pub fn is_final(&self) -> bool {
        matches!(self, Self::Ended | Self::Lost(_))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TimedOut(limit) => write!(f, "the server did not answer within {} s", limit.as_secs_f64()),
            Self::Ended => f.write_str("the server ended before it answered"),
            Self::Lost(reason) => write!(f, "the connection to the server failed: {reason}"),
            Self::Http { status, body, challenge } => {
                write!(f, "the server answered with HTTP {status}")?;
                match challenge {
                    Some(challenge) => write!(f, " (WWW-Authenticate: {challenge})")?,
                    None if *status == 401 => f.write_str(", without `WWW-Authenticate`, which says how to sign in")?,
                    None => {}
                }
                match body.trim() {
                    "" => Ok(()),
                    body => write!(f, ": {body}"),
                }
            }
            Self::Unanswered => f.write_str("the response ended without an answer"),
            Self::Refused { code, message } => write!(f, "the server answered with error {code}: {message}"),
            Self::Malformed(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for Failure {}

/// Returns the text of a tool's result: its text blocks, and a mark for each other block. Without text, this is the
/// structured content as JSON.
pub fn text_of(result: &Value) -> String {
    let block = |block: &Value| match (block["type"].as_str(), block["text"].as_str()) {
        (_, Some(text)) => text.to_owned(),
        (Some("resource"), None) => match block["resource"]["text"].as_str() {
            Some(text) => text.to_owned(),
            None => format!("[resource {}]", block["resource"]["uri"].as_str().unwrap_or_default()),
        },
        (Some("resource_link"), None) => format!("[resource {}]", block["uri"].as_str().unwrap_or_default()),
        (kind, None) => format!("[{}]", kind.unwrap_or("unknown content")),
    };
    let blocks: Vec<String> = result["content"].as_array().into_iter().flatten().map(block).collect();
    match result.get("structuredContent") {
        Some(structured) if blocks.is_empty() => structured.to_string(),
        _ => blocks.join("\n"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::text_of;

    #[test]
    fn the_text_of_a_result_names_what_is_not_text() {
        let content = json!([
            {"type": "text", "text": "a"},
            {"type": "image", "data": "", "mimeType": "image/png"},
            {"type": "resource", "resource": {"uri": "file:///x", "text": "b"}},
            {"type": "resource_link", "uri": "file:///y", "name": "y"},
        ]);
        assert_eq!(
            text_of(&json!({"content": content, "structuredContent": {}})),
            "a\n[image]\nb\n[resource file:///y]"
        );
        assert_eq!(text_of(&json!({"content": [], "structuredContent": {"sum": 3}})), "{\"sum\":3}");
        assert_eq!(text_of(&json!({})), "");
    }
}
