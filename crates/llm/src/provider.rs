//! Who can answer a request.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use model::{Diagnostic, Node, nearest};

use crate::{Failure, Flight, Providers, Reply, Request, Script};

/// A future behind a pointer, so that the trait can be used as an object.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Something that answers requests.
pub trait Model: Send + Sync {
    /// Answers one request. A provider on the network has tried as often as its policy allows when it gives an error; a
    /// script gives its faults at once. The wall clock is the caller's business: an answer may never come. Dropping the
    /// future ends the request.
    fn respond<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Result<Reply, ProviderError>>;

    /// What there is to record since the last call, such as tries that failed and are repeated.
    fn take_steps(&self) -> Vec<model::Step> {
        Vec::new()
    }

    /// Waits until [`Model::take_steps`] has something to say in the middle of a request. May wait for ever.
    fn stirs(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::pending())
    }

    /// How long the oldest request has been waiting without a word from the provider; `None` if none is.
    fn silent_for(&self) -> Option<Duration> {
        None
    }

    /// Answers one request for somebody who will put the answer on a wire. Where [`Model::respond`] acts a scripted
    /// fault out, this describes it, so that it can be acted out on the wire instead.
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

/// An answer on its way to the wire.
#[derive(Debug)]
pub struct Served {
    /// What to send.
    pub answer: Answer,
    /// Kept until the last byte is sent or the client has left, so that the model knows what is unanswered.
    pub flight: Option<Flight>,
}

/// What to put on the wire.
#[derive(Debug)]
pub enum Answer {
    /// The whole reply.
    Reply(Reply),
    /// An error instead of a reply.
    Failed(ProviderError),
    /// A reply that breaks on the way.
    Broken {
        /// How.
        how: Break,
        /// What was being sent.
        begun: Reply,
    },
}

/// How a reply breaks on the way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Break {
    /// The connection closes in the middle of the content.
    Cut,
    /// What is sent is not what the format allows.
    Malformed,
    /// Nothing is ever sent.
    Hang,
    /// The beginning is sent, and then nothing more.
    HangStream,
    /// An error is sent within the stream.
    ErrorEvent {
        /// The vendor's word for it; `None` leaves the choice to the wire format.
        kind: Option<String>,
        /// What it says.
        message: String,
    },
}

/// Why there is no reply. Never the agent's fault.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ProviderError {
    /// The provider answered with an error status.
    #[error("HTTP {status}: {message}")]
    Http {
        /// The status.
        status: u16,
        /// The vendor's word for it; `None` where it follows from the status.
        kind: Option<String>,
        /// What it says.
        message: String,
        /// Headers that came with it, such as `retry-after`.
        headers: Vec<(String, String)>,
    },
    /// The provider reported an error in the middle of its answer.
    #[error("the provider reported an error within its answer: {message}")]
    Reported {
        /// The vendor's word for it.
        kind: Option<String>,
        /// What it says.
        message: String,
    },
    /// The connection closed before the answer was complete.
    #[error("the connection closed in the middle of the answer")]
    Cut,
    /// The answer cannot be read.
    #[error("the answer is not in the vendor's format")]
    Malformed,
    /// A request over the network got no answer.
    #[error("{0}")]
    Failed(Box<Failure>),
    /// A script has no more steps.
    #[error("{message}")]
    Exhausted {
        /// Which script, how many steps it has and which request this is.
        message: String,
    },
    /// A script has nothing to say to this conversation.
    #[error("{message}")]
    Unscripted {
        /// Which conversation, and what to write for it.
        message: String,
    },
}

impl ProviderError {
    /// How long the provider asks to wait before the next try.
    pub fn retry_after(&self) -> Option<Duration> {
        let headers = match self {
            Self::Failed(failure) => return failure.retry_after,
            Self::Http { headers, .. } => headers,
            _ => return None,
        };
        let (_, value) = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("retry-after"))?;
        value.trim().parse().ok().map(Duration::from_secs)
    }

    /// Whether the same request may be answered when it is sent again.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Http { status, .. } => matches!(status, 408 | 409 | 429 | 500..=599),
            Self::Failed(failure) => failure.trouble.is_transient(),
            Self::Reported { .. } | Self::Cut | Self::Malformed => true,
            Self::Exhausted { .. } | Self::Unscripted { .. } => false,
        }
    }
}

/// A provider as users name it: `NAME:ARGUMENT`.
pub struct Provider {
    /// What stands before the colon.
    pub name: &'static str,
    /// What stands after it, for help texts.
    pub argument: &'static str,
    /// What it is, in one line.
    pub summary: &'static str,
    /// The variables it reads from the [`Credentials`](crate::Credentials) it is given: those of keys, then that of an
    /// address.
    pub variables: &'static [&'static str],
    /// Opens it with what stands after the colon.
    pub(crate) open: fn(&Opening<'_>) -> Result<Opened, OpenError>,
}

impl Provider {
    /// The variables that a key may be in; none if it takes no key.
    pub fn keys(&self) -> &'static [&'static str] {
        self.variables.split_last().map_or(&[], |(_, keys)| keys)
    }
}

/// What a provider is opened with.
pub(crate) struct Opening<'a> {
    /// What stands after the colon.
    pub(crate) argument: &'a str,
    /// Another address than the vendor's own.
    pub(crate) base_url: Option<&'a str>,
    /// What all that is opened has in common.
    pub(crate) providers: &'a Providers,
    /// Reads a file of the user's.
    pub(crate) read: ReadDocument<'a>,
}

/// Reads a file of the user's into a tree. This crate reads no files itself.
pub type ReadDocument<'a> = &'a dyn Fn(&str) -> Result<Node, Vec<Diagnostic>>;

/// Every provider, in the order users see them.
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

/// A provider that is ready for trials.
#[derive(Clone)]
pub enum Opened {
    /// A script, to be played from its beginning for every trial.
    Script(Arc<Script>),
    /// A model on the network.
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

/// Why a provider cannot be opened.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum OpenError {
    /// Nobody has that name.
    #[error("unknown model provider `{written}`; there are: {known}{}", did_you_mean(.near))]
    UnknownProvider {
        /// What was written before the colon.
        written: String,
        /// Every provider's name.
        known: String,
        /// The name that was most likely meant.
        near: Option<&'static str>,
    },
    /// The name stands alone.
    #[error("`{provider}` needs to know more: write `{provider}:{argument}`")]
    NoArgument {
        /// The provider.
        provider: &'static str,
        /// What has to follow.
        argument: &'static str,
    },
    /// The key is not there.
    #[error("`{provider}` needs a key: {} is not set", .variables.join(" or "))]
    NoKey {
        /// The provider.
        provider: &'static str,
        /// The variables it could be in.
        variables: &'static [&'static str],
    },
    /// The key cannot be sent.
    #[error("the key in {variable} has characters that no key has, such as a line break")]
    BadKey {
        /// The variable it is in.
        variable: &'static str,
    },
    /// Nobody says where the provider is.
    #[error("`{provider}` needs an address: give `--base-url`, or set {variable}")]
    NoAddress {
        /// The provider.
        provider: &'static str,
        /// The variable it could be in.
        variable: &'static str,
    },
    /// The address is none.
    #[error("the base URL of `{provider}` cannot be used: {because}")]
    BadAddress {
        /// The provider.
        provider: &'static str,
        /// What is wrong with it.
        because: String,
    },
    /// The network cannot be used from here.
    #[error("no client for HTTP can be made: {because}")]
    NoClient {
        /// What is wrong.
        because: String,
    },
    /// The provider's file is not as it should be.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Invalid(Vec<Diagnostic>),
}

fn did_you_mean(near: &Option<&'static str>) -> String {
    near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"))
}

/// The provider that `written` names, and what stands after the colon. `None` for a plain model name, which is the
/// agent's own business, even if it has a colon in it.
pub fn provider_of(written: &str) -> Option<(&'static Provider, &str)> {
    let (name, argument) = written.split_once(':')?;
    let provider = PROVIDERS.iter().find(|provider| provider.name == name)?;
    Some((provider, argument))
}

impl OpenError {
    /// Whether it is the machine that lacks something, rather than that something wrong was written.
    pub fn is_environments(&self) -> bool {
        matches!(self, Self::NoKey { .. } | Self::BadKey { .. } | Self::NoAddress { .. } | Self::NoClient { .. })
    }
}

/// The provider of `NAME:ARGUMENT`, such as `openai:gpt-5`, and the argument.
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
