//! Failures of requests to a provider.

use std::fmt;
use std::time::Duration;

use crate::wire::ReportedError;

/// Maximum number of characters of a provider's message that are repeated.
const MAX_MESSAGE_CHARS: usize = 600;

/// A request that got no response after all the attempts that the policy allows. It never contains a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Kind of failure.
    pub kind: FailureKind,
    /// Request and address, such as `POST https://host/v1/responses for gpt-5`.
    pub sent: String,
    /// HTTP status, if there was a response.
    pub status: Option<u16>,
    /// Vendor's error code.
    pub code: Option<String>,
    /// Message from the vendor or about the connection.
    pub message: String,
    /// How long the vendor asks the client to wait.
    pub retry_after: Option<Duration>,
    /// Number of tries.
    pub tries: u32,
}

/// Kind of failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureKind {
    /// The key is missing, wrong, or not allowed to do this.
    Auth,
    /// The account has no money or no quota left.
    Billing,
    /// The model or the address does not exist.
    NotFound,
    /// Too many requests or tokens in a short time.
    RateLimit,
    /// The provider is overloaded.
    Overloaded,
    /// The conversation exceeds the model's context length.
    ContextTooLong,
    /// The provider rejects the content.
    ContentFilter,
    /// The provider rejects the request.
    BadRequest,
    /// The provider itself failed.
    Server,
    /// The address does not respond.
    Unreachable,
    /// The provider accepted the request, but no response started in time.
    Silent,
    /// The response did not continue in time, or the provider reports a timeout.
    TimedOut,
    /// The connection closed before the response was complete.
    Cut,
    /// The response is not in the vendor's format.
    Unreadable,
    /// The response exceeds the size limit.
    TooLarge,
    /// The response is a web page, so the address is not that of an API.
    WebPage,
}

impl FailureKind {
    /// Returns a description in words.
    pub fn describe(self) -> &'static str {
        match self {
            Self::Auth => "the key was not accepted",
            Self::Billing => "the account has no money or quota left",
            Self::NotFound => "the model or the address does not exist",
            Self::RateLimit => "the rate limit is reached",
            Self::Overloaded => "the provider is overloaded",
            Self::ContextTooLong => "the conversation is too long for the model",
            Self::ContentFilter => "the provider's content filter refused",
            Self::BadRequest => "the provider refused the request",
            Self::Server => "the provider failed",
            Self::Unreachable => "the provider cannot be reached",
            Self::Silent => "the provider did not start to respond in time",
            Self::TimedOut => "the provider did not respond in time",
            Self::Cut => "the connection closed in the middle of the response",
            Self::Unreadable => "the response is not in the vendor's format",
            Self::TooLarge => "the response is too large",
            Self::WebPage => "the address returned a web page, not an API response; check the base URL",
        }
    }

    /// Returns `true` if the same request may succeed if it is sent again.
    pub fn is_transient(self) -> bool {
        matches!(
            self,
            Self::RateLimit
                | Self::Overloaded
                | Self::Server
                | Self::Unreachable
                | Self::Silent
                | Self::TimedOut
                | Self::Cut
                | Self::Unreadable
        )
    }

    /// Returns `true` if other requests would fail as well, because the key, the address or the account is at fault.
    pub fn is_lasting(self) -> bool {
        matches!(self, Self::Auth | Self::Billing | Self::NotFound | Self::WebPage)
    }

    /// Returns `true` if the conversation caused the failure, so that its agent is at fault and not the provider: it is
    /// too long for the model, or its content is refused.
    pub fn is_agents_doing(self) -> bool {
        matches!(self, Self::ContextTooLong | Self::ContentFilter)
    }

    /// Returns `true` if all callers of the account should wait.
    pub(crate) fn is_everybodys(self) -> bool {
        matches!(self, Self::RateLimit | Self::Overloaded)
    }

    /// Determines the kind from the status and the vendor's error.
    pub(crate) fn classify(status: Option<u16>, error: &ReportedError) -> Self {
        let message = error.message.to_ascii_lowercase();
        let codes: Vec<String> = error.codes.iter().map(|code| code.to_ascii_lowercase()).collect();
        // Vendors use some of these phrases in errors with any status; they are reliable only if the request was
        // rejected.
        let is_refusal = status.is_none_or(|status| matches!(status, 400 | 403 | 413 | 422 | 429));
        let by_word = BY_WORD.iter().find(|(kind, words, phrases)| {
            // The most general codes count only for errors within a stream, which have no status.
            let is_vague = matches!(kind, Self::Server | Self::BadRequest);
            let is_word = words.iter().any(|word| codes.iter().any(|code| code == word));
            let is_phrase = is_refusal && phrases.iter().any(|phrase| message.contains(phrase));
            (is_word && (status.is_none() || !is_vague)) || is_phrase
        });
        if let Some((kind, ..)) = by_word {
            return *kind;
        }
        match status {
            Some(401 | 403 | 407) => Self::Auth,
            Some(402) => Self::Billing,
            Some(404 | 405 | 410) => Self::NotFound,
            Some(408 | 504) => Self::TimedOut,
            Some(413) => Self::ContextTooLong,
            Some(429) => Self::RateLimit,
            Some(503 | 529) => Self::Overloaded,
            Some(409 | 425 | 500..) | None => Self::Server,
            Some(_) => Self::BadRequest,
        }
    }
}

/// Vendors' codes and phrases that determine the kind regardless of the status. Phrases are for errors without a code.
const BY_WORD: &[(FailureKind, &[&str], &[&str])] = &[
    // A request that is larger than what the account may send in a minute is not too long for the model.
    (FailureKind::RateLimit, &[], &["tokens per min", "requests per min"]),
    (
        FailureKind::ContextTooLong,
        &["context_length_exceeded", "request_too_large", "exceed_context_size_error"],
        &[
            "prompt is too long",
            "input is too long",
            "input tokens exceed",
            "maximum prompt length",
            "maximum context length",
            "context window",
            "exceed context limit",
            "context size",
            "exceeds the maximum number of tokens",
        ],
    ),
    (
        FailureKind::ContentFilter,
        &["content_filter", "content_policy_violation", "responsibleaipolicyviolation", "invalid_prompt"],
        &["content filtering policy", "content management policy", "violating our usage policy"],
    ),
    // Google reports every limit with the phrase that others use for an account without money.
    (FailureKind::RateLimit, &["resource_exhausted"], &[]),
    (
        FailureKind::Billing,
        &["insufficient_quota", "billing_error", "billing_hard_limit_reached", "billing_not_active"],
        &["credit balance is too low", "exceeded your current quota"],
    ),
    (
        FailureKind::Auth,
        &[
            "invalid_api_key",
            "authentication_error",
            "permission_error",
            "permission_denied",
            "unauthenticated",
            "unauthorized",
        ],
        &["api key not valid"],
    ),
    (FailureKind::NotFound, &["model_not_found", "not_found_error", "deploymentnotfound"], &[]),
    (FailureKind::RateLimit, &["rate_limit_exceeded", "rate_limit_error"], &[]),
    (
        FailureKind::Overloaded,
        &["overloaded_error", "server_is_overloaded", "server_overloaded", "slow_down", "unavailable"],
        &[],
    ),
    (FailureKind::TimedOut, &["timeout_error", "deadline_exceeded"], &[]),
    (FailureKind::Server, &["api_error", "server_error", "internal_server_error"], &[]),
    (FailureKind::BadRequest, &["invalid_request_error"], &[]),
];

/// Returns `true` if the conversation caused an error that an agent's program reports in its own words: see
/// [`FailureKind::is_agents_doing`]. `status` is the HTTP status, if the program reports it.
pub fn is_agents_doing(status: Option<u16>, message: &str) -> bool {
    let words = message.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    let error = ReportedError { codes: words.map(str::to_owned).collect(), message: message.to_owned() };
    FailureKind::classify(status, &error).is_agents_doing()
}

impl Failure {
    /// Creates a failure without further details.
    pub fn new(kind: FailureKind, sent: impl Into<String>) -> Self {
        Self { kind, sent: sent.into(), status: None, code: None, message: String::new(), retry_after: None, tries: 1 }
    }

    pub(crate) fn saying(mut self, message: &str) -> Self {
        self.message = clipped(message);
        self
    }

    /// Creates the failure for an error that a provider reports with `status`, or in the middle of its response.
    pub(crate) fn reported(status: Option<u16>, error: &ReportedError, sent: &str) -> Self {
        let code = error.codes.first().cloned();
        Self { status, code, ..Self::new(FailureKind::classify(status, error), sent) }.saying(&error.message)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.describe())?;
        match (self.status, &self.code) {
            (Some(status), Some(code)) => write!(f, " (HTTP {status}, {code})")?,
            (Some(status), None) => write!(f, " (HTTP {status})")?,
            (None, Some(code)) => write!(f, " ({code})")?,
            (None, None) => {}
        }
        if !self.message.is_empty() {
            write!(f, ": {}", self.message)?;
        }
        write!(f, " [{}", self.sent)?;
        if self.tries > 1 {
            write!(f, ", {} tries", self.tries)?;
        }
        f.write_str("]")
    }
}

/// Returns the beginning of a string on one line.
pub(crate) fn clipped(text: &str) -> String {
    model::text::one_line(text, MAX_MESSAGE_CHARS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(status: Option<u16>, code: &str, message: &str) -> FailureKind {
        let codes = Some(code.to_owned()).filter(|code| !code.is_empty()).into_iter().collect();
        FailureKind::classify(status, &ReportedError { codes, message: message.into() })
    }

    #[test]
    fn vendor_errors_are_classified() {
        use FailureKind::*;
        for (status, code, message, expected) in [
            (401, "invalid_api_key", "Incorrect API key provided", Auth),
            (401, "", "", Auth),
            (403, "permission_error", "", Auth),
            (404, "model_not_found", "", NotFound),
            (404, "", "model 'x' not found", NotFound),
            (400, "model_not_found", "", NotFound),
            (429, "rate_limit_exceeded", "", RateLimit),
            (429, "insufficient_quota", "You exceeded your current quota", Billing),
            (400, "invalid_request_error", "Your credit balance is too low to access the API", Billing),
            (529, "overloaded_error", "Overloaded", Overloaded),
            (503, "", "", Overloaded),
            (400, "context_length_exceeded", "", ContextTooLong),
            (400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum", ContextTooLong),
            (400, "", "This model's maximum prompt length is 131072 but the request contains 537812.", ContextTooLong),
            (400, "", "Input is too long for requested model.", ContextTooLong),
            (413, "", "", ContextTooLong),
            (413, "tokens", "Request too large on tokens per minute (TPM): Limit 6000, Requested 9000", RateLimit),
            (400, "content_filter", "", ContentFilter),
            (400, "invalid_request_error", "Output blocked by content filtering policy", ContentFilter),
            (400, "invalid_request_error", "temperature: too high", BadRequest),
            (422, "", "", BadRequest),
            (302, "", "", BadRequest),
            (500, "server_error", "the context window of the world", Server),
            (504, "", "", TimedOut),
            (529, "server_error", "", Overloaded),
            (404, "invalid_request_error", "", NotFound),
        ] {
            assert_eq!(kind(Some(status), code, message), expected, "{status} {code} {message}");
        }
        assert_eq!(kind(None, "rate_limit_exceeded", ""), RateLimit);
        assert_eq!(kind(None, "", "llama runner process has terminated"), Server);
    }

    #[test]
    fn a_conversation_that_is_too_long_or_refused_is_the_agents_doing_in_any_words() {
        for (status, message) in [
            (
                Some(400),
                "API Error: 400 {\"error\":{\"message\":\"prompt is too long: 210000 tokens > 200000 maximum\"}}",
            ),
            (None, "Codex ran out of room in the model's context window. Start a new thread."),
            (Some(400), "{\"error\":{\"code\":\"context_length_exceeded\"}}"),
            (Some(400), "Output blocked by content filtering policy"),
            (Some(413), "too large"),
        ] {
            assert!(is_agents_doing(status, message), "{message}");
        }
        for (status, message) in [
            (Some(500), "the context window of the world"),
            (Some(400), "temperature: too high"),
            (Some(429), "rate_limit_exceeded"),
            (None, "stream disconnected before completion"),
        ] {
            assert!(!is_agents_doing(status, message), "{message}");
        }
    }

    #[test]
    fn a_failure_includes_the_request_and_the_number_of_attempts() {
        let reported = ReportedError { codes: vec!["overloaded_error".into()], message: "Over\nloaded".into() };
        let mut failure = Failure::reported(Some(529), &reported, "POST http://x/v1/messages for m");
        failure.tries = 5;
        assert_eq!(
            failure.to_string(),
            "the provider is overloaded (HTTP 529, overloaded_error): Over loaded [POST http://x/v1/messages for m, 5 tries]"
        );
        assert!(clipped(&"ü".repeat(5000)).chars().count() == MAX_MESSAGE_CHARS + 1);
    }
}
