//! Opens a model by its name.

use std::sync::Arc;

use model::{Diagnostic, Node};

use crate::{Model, Providers, Script};

/// Arguments for opening a provider.
pub(crate) struct ProviderOptions<'a> {
    /// Argument after the colon.
    pub(crate) argument: &'a str,
    /// Base URL to use instead of the vendor's own.
    pub(crate) base_url: Option<&'a str>,
    /// State shared by all opened models.
    pub(crate) providers: &'a Providers,
    /// Reads one of the user's files.
    pub(crate) read: ReadDocument<'a>,
}

/// Reads one of the user's files into a tree. This crate does not read files itself.
pub type ReadDocument<'a> = &'a dyn Fn(&str) -> Result<Node, Vec<Diagnostic>>;

/// Opened provider.
#[derive(Clone)]
pub enum Opened {
    /// A script, to be played from its start in every trial.
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
    #[error("unknown model provider `{written}`; known providers: {known}{}", did_you_mean(.near))]
    UnknownProvider {
        /// Name before the colon.
        written: String,
        /// Names of all providers.
        known: String,
        /// What was probably meant: the most similar name, or the model with its provider.
        near: Option<String>,
    },
    /// The argument is missing.
    #[error("`{provider}` needs an argument: write `{provider}:{argument}`")]
    NoArgument {
        /// Name of the provider.
        provider: &'static str,
        /// Required argument.
        argument: &'static str,
    },
    /// The argument names the provider again, or begins or ends with a space.
    #[error("`{argument}` is not a model of `{provider}`; did you mean `{right}`?")]
    NotAName {
        /// Name of the provider.
        provider: &'static str,
        /// Argument as written.
        argument: String,
        /// Name of the model with its provider.
        right: String,
    },
    /// The key is missing.
    #[error("`{provider}` needs a key: {} is not set", .variables.join(" or "))]
    NoKey {
        /// Name of the provider.
        provider: &'static str,
        /// Variables that can hold the key.
        variables: Vec<&'static str>,
    },
    /// The key contains characters that cannot be sent.
    #[error("the key in {variable} contains invalid characters, such as a line break")]
    BadKey {
        /// Variable that holds it.
        variable: &'static str,
    },
    /// The provider has no default address, and none is set.
    #[error("`{provider}` requires a base URL: set `base_url` or {variable}")]
    NoAddress {
        /// Name of the provider.
        provider: &'static str,
        /// Variable that can hold the address.
        variable: &'static str,
    },
    /// The address is not valid.
    #[error("the base URL of `{provider}` cannot be used: {reason}")]
    BadAddress {
        /// Name of the provider.
        provider: &'static str,
        /// Description of the problem.
        reason: String,
    },
    /// The provider answers only conversations.
    #[error("`{provider}` answers only conversations")]
    NoRequests {
        /// Name of the provider.
        provider: &'static str,
    },
    /// The HTTP client could not be created.
    #[error("cannot create an HTTP client: {reason}")]
    NoClient {
        /// Description of the problem.
        reason: String,
    },
    /// There are problems with the provider's file.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Invalid(Vec<Diagnostic>),
}

fn did_you_mean(near: &Option<String>) -> String {
    near.as_ref().map_or_else(String::new, |near| format!("; did you mean `{near}`?"))
}

impl OpenError {
    /// Returns `true` if something is missing in the environment, rather than wrong in the user's input.
    pub fn is_environments(&self) -> bool {
        matches!(self, Self::NoKey { .. } | Self::BadKey { .. } | Self::NoAddress { .. } | Self::NoClient { .. })
    }
}
