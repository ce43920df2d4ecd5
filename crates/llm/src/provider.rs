//! Model providers and the trait that they implement.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use model::{Diagnostic, Node, nearest};

use crate::{Failure, Flight, Providers, Reply, Request, Script};

/// Boxed future, so that the trait can be used as an object.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Model that answers requests.
pub trait Model: Send + Sync {
    /// Answers one request. When a network provider returns an error, it has already tried as often as its policy
    /// allows; a script returns its faults at once. The caller must enforce its own timeout: an answer may never
    /// come. Dropping the future cancels the request.
    fn respond<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Result<Reply, ProviderError>>;

    /// Returns the steps to record since the last call, such as tries that failed and are repeated.
    fn take_steps(&self) -> Vec<model::Step> {
        Vec::new()
    }

    /// Waits until [`Model::take_steps`] has steps in the middle of a request. May wait forever.
    fn stirs(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::pending())
    }

    /// Returns the time for which the oldest request has waited without any response; `None` if none is waiting.
    fn silent_for(&self) -> Option<Duration> {
        None
    }

    /// Answers one request for a server that sends the answer in a wire format. While [`Model::respond`] performs a
    /// scripted fault, this method describes it, so that the server can perform it.
    fn serve<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Served> {
        Box::pin(async move {
            let answer = match self.respond(request).await {
                Ok(reply) => Answer::Reply(reply),
                Err(error) => Answer::Failed(error),
            };
            Served { answer, flight: None }
        })
    }
}

/// Answer to be sent in a wire format.
#[derive(Debug)]
pub struct Served {
    /// Answer to send.
    pub answer: Answer,
    /// Kept until the last byte is sent or the client has left, so that the model knows the unanswered requests.
    pub flight: Option<Flight>,
}

/// Kind of answer to send.
#[derive(Debug)]
pub enum Answer {
    /// Complete reply.
    Reply(Reply),
    /// Error instead of a reply.
    Failed(ProviderError),
    /// Reply that is interrupted.
    Broken {
        /// Kind of interruption.
        how: Break,
        /// Reply of which a part is sent.
        begun: Reply,
    },
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

/// Reason why there is no reply. Never the agent's fault.
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
    /// The provider reported an error in the middle of its answer.
    #[error("the provider reported an error within its answer: {message}")]
    Reported {
        /// Vendor's error code.
        kind: Option<String>,
        /// Error message.
        message: String,
    },
    /// The connection closed before the answer was complete.
    #[error("the connection closed in the middle of the answer")]
    Cut,
    /// The answer cannot be read.
    #[error("the answer is not in the vendor's format")]
    Malformed,
    /// A request over the network got no response.
    #[error("{0}")]
    Failed(Box<Failure>),
    /// A script has no more steps.
    #[error("{message}")]
    Exhausted {
        /// Name of the script, its number of steps and the number of this request.
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
    /// Returns the wait that the provider asks for before the next try.
    pub fn retry_after(&self) -> Option<Duration> {
        let headers = match self {
            Self::Failed(failure) => return failure.retry_after,
            Self::Http { headers, .. } => headers,
            _ => return None,
        };
        let (_, value) = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("retry-after"))?;
        value.trim().parse().ok().map(Duration::from_secs)
    }

    /// Returns `true` if the same request may succeed when it is sent again.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Http { status, .. } => matches!(status, 408 | 409 | 429 | 500..=599),
            Self::Failed(failure) => failure.trouble.is_transient(),
            Self::Reported { .. } | Self::Cut | Self::Malformed => true,
            Self::Exhausted { .. } | Self::Unscripted { .. } => false,
        }
    }
}

/// Provider, which users name as `NAME:ARGUMENT`.
pub struct Provider {
    /// Name before the colon.
    pub name: &'static str,
    /// Placeholder for the argument, for help texts.
    pub argument: &'static str,
    /// Description in one line.
    pub summary: &'static str,
    /// Names of the variables that it reads from the [`Credentials`](crate::Credentials): those of keys, followed by
    /// that of an address.
    pub variables: &'static [&'static str],
    /// Opens the provider with the argument.
    pub(crate) open: fn(&Opening<'_>) -> Result<Opened, OpenError>,
}

impl Provider {
    /// Returns the variables for a key; empty if the provider takes no key.
    pub fn keys(&self) -> &'static [&'static str] {
        self.variables.split_last().map_or(&[], |(_, keys)| keys)
    }
}

/// Arguments for opening a provider.
pub(crate) struct Opening<'a> {
    /// Argument after the colon.
    pub(crate) argument: &'a str,
    /// Base URL to use instead of the vendor's own.
    pub(crate) base_url: Option<&'a str>,
    /// State shared by all the models that are opened.
    pub(crate) providers: &'a Providers,
    /// Reads a file of the user.
    pub(crate) read: ReadDocument<'a>,
}

/// Reads a file of the user into a tree. This crate does not read files itself.
pub type ReadDocument<'a> = &'a dyn Fn(&str) -> Result<Node, Vec<Diagnostic>>;

/// All providers, in the order in which users see them.
pub static PROVIDERS: &[Provider] = &[
    crate::openai::PROVIDER,
    crate::openai::BY_RESPONSES,
    crate::openai::CHAT,
    crate::anthropic::PROVIDER,
    crate::openrouter::PROVIDER,
    crate::ollama::PROVIDER,
    crate::compatible::PROVIDER,
    crate::scripted::PROVIDER,
];

/// Opened provider.
#[derive(Clone)]
pub enum Opened {
    /// Script, to be played from its start in every trial.
    Script(Arc<Script>),
    /// Model on the network.
    Model(Arc<dyn Model>),
}

impl std::fmt::Debug for Opened {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Script(script) => f.debug_tuple("Script").field(&script.name()).finish(),
            Self::Model(_) => f.debug_tuple("Model").finish_non_exhaustive(),
        }
    }
}

/// Reason why a provider cannot be opened.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum OpenError {
    /// The provider's name is unknown.
    #[error("unknown model provider `{written}`; there are: {known}{}", did_you_mean(.near))]
    UnknownProvider {
        /// Name before the colon.
        written: String,
        /// Names of all providers.
        known: String,
        /// Most similar name.
        near: Option<&'static str>,
    },
    /// The argument is missing.
    #[error("`{provider}` needs to know more: write `{provider}:{argument}`")]
    NoArgument {
        /// Name of the provider.
        provider: &'static str,
        /// Required argument.
        argument: &'static str,
    },
    /// The key is missing.
    #[error("`{provider}` needs a key: {} is not set", .variables.join(" or "))]
    NoKey {
        /// Name of the provider.
        provider: &'static str,
        /// Variables that can hold the key.
        variables: &'static [&'static str],
    },
    /// The key contains characters that cannot be sent.
    #[error("the key in {variable} has characters that no key has, such as a line break")]
    BadKey {
        /// Variable that holds it.
        variable: &'static str,
    },
    /// The provider has no default address, and none is set.
    #[error("`{provider}` needs an address: set `base_url` or {variable}")]
    NoAddress {
        /// Name of the provider.
        provider: &'static str,
        /// Variable that can hold the address.
        variable: &'static str,
    },
    /// The address is not valid.
    #[error("the base URL of `{provider}` cannot be used: {because}")]
    BadAddress {
        /// Name of the provider.
        provider: &'static str,
        /// Description of the problem.
        because: String,
    },
    /// The HTTP client could not be created.
    #[error("no client for HTTP can be made: {because}")]
    NoClient {
        /// Description of the problem.
        because: String,
    },
    /// The provider's file has problems.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Invalid(Vec<Diagnostic>),
}

fn did_you_mean(near: &Option<&'static str>) -> String {
    near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"))
}

/// Returns the provider that `written` names, and the argument. `None` for a plain model name, even with a colon in
/// it: only the agent interprets that.
pub fn provider_of(written: &str) -> Option<(&'static Provider, &str)> {
    let (name, argument) = written.split_once(':')?;
    let provider = PROVIDERS.iter().find(|provider| provider.name == name)?;
    Some((provider, argument))
}

impl OpenError {
    /// Returns `true` if something is missing in the environment, rather than wrong in what the user wrote.
    pub fn is_environments(&self) -> bool {
        matches!(self, Self::NoKey { .. } | Self::BadKey { .. } | Self::NoAddress { .. } | Self::NoClient { .. })
    }
}

/// Returns the provider of `NAME:ARGUMENT`, such as `openai:gpt-5`, and the argument.
pub(crate) fn named(written: &str) -> Result<(&'static Provider, &str), OpenError> {
    let (name, argument) = written.split_once(':').unwrap_or((written, ""));
    let Some(provider) = PROVIDERS.iter().find(|provider| provider.name == name) else {
        let names = || PROVIDERS.iter().map(|provider| provider.name);
        return Err(OpenError::UnknownProvider {
            written: name.to_owned(),
            known: names().collect::<Vec<_>>().join(", "),
            near: nearest(name, names()),
        });
    };
    if argument.trim().is_empty() {
        return Err(OpenError::NoArgument { provider: provider.name, argument: provider.argument });
    }
    Ok((provider, argument))
}

#[cfg(test)]
mod tests {
    use model::Source;
    use serde_json::json;

    use super::*;

    fn read(path: &str) -> Result<Node, Vec<Diagnostic>> {
        match path {
            "hello.yaml" => Ok(Node::from_json(&json!({"steps": [{"text": "Hello."}]}), &Source::new(path, ""))),
            _ => Err(vec![Diagnostic::error(format!("cannot read {path}"))]),
        }
    }

    #[test]
    fn a_provider_is_opened_by_its_name() {
        let open = |written: &str| Providers::default().open(written, None, &read);
        let Opened::Script(script) = open("scripted:hello.yaml").unwrap() else { panic!("no script") };
        assert_eq!(script.name(), "hello.yaml");
        let missing = open("scripted:gone.yaml").unwrap_err();
        assert_eq!(missing.to_string(), "cannot read gone.yaml");
    }

    #[test]
    fn an_unknown_provider_names_the_nearest_one_and_all_others() {
        let error = named("script:hello.yaml").map(|_| ()).unwrap_err().to_string();
        assert_eq!(
            error,
            "unknown model provider `script`; there are: openai, openai-responses, openai-chat, anthropic, \
             openrouter, ollama, compatible, scripted; did you mean `scripted`?"
        );
        let alone = named("scripted").map(|_| ()).unwrap_err().to_string();
        assert_eq!(alone, "`scripted` needs to know more: write `scripted:FILE`");
    }

    #[test]
    fn a_plain_model_name_with_a_colon_is_no_provider() {
        assert!(provider_of("vendor.model-v2:0").is_none());
        assert!(provider_of("model-5").is_none());
        assert_eq!(
            provider_of("scripted:a:b.yaml").map(|(provider, rest)| (provider.name, rest)),
            Some(("scripted", "a:b.yaml"))
        );
    }

    #[test]
    fn an_overloaded_provider_says_when_to_come_back() {
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
