//! Address of a vendor, and authentication of requests to it.

use std::borrow::Cow;
use std::sync::{Arc, Mutex};

use reqwest::Url;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use tokio::sync::Notify;

use super::exchange::Exchange;
use super::{Documents, Remote, State};
use crate::account::Account;
use crate::opening::{OpenError, Opened, ProviderOptions};
use crate::wire::Dialect;
use crate::wire::chat_completions::Client;
use crate::{PendingRequests, credentials};

/// Address at which no provider listens.
const NOWHERE: &str = "http://127.0.0.1:9";

/// Description of a vendor.
pub(crate) struct Vendor {
    pub(crate) name: &'static str,
    pub(crate) dialect: &'static dyn Dialect,
    /// Variables for the key, of which the first one that is set counts, followed by the variable for the address.
    pub(crate) variables: &'static [&'static str],
    /// Header for the key. Without it, the key is sent as `Authorization: Bearer`.
    pub(crate) key_header: Option<&'static str>,
    /// Variable whose key is sent as `Authorization: Bearer` in any case.
    pub(crate) bearer: Option<&'static str>,
    /// True if the vendor's own address rejects requests without a key.
    pub(crate) needs_key: bool,
    /// Vendor's own address.
    pub(crate) address: Option<&'static str>,
    /// Converts an address to a URL, for vendors whose addresses users may write in another form.
    pub(crate) to_url: fn(&str) -> Cow<'_, str>,
    /// First part of its API paths.
    pub(crate) version: &'static str,
    /// True if a base URL with a path already contains the version, as is common for this vendor.
    pub(crate) is_version_given: bool,
    pub(crate) path: &'static str,
    pub(crate) headers: &'static [(&'static str, &'static str)],
}

impl Vendor {
    /// A vendor with the Chat Completions API, at a configured address.
    pub(crate) const CHAT_COMPLETIONS: Self = Self {
        name: "compatible",
        dialect: &Client { limit: "max_tokens", requests_usage: true },
        variables: &[],
        key_header: None,
        bearer: None,
        needs_key: false,
        address: None,
        to_url: |address| address.into(),
        version: "/v1",
        is_version_given: true,
        path: "/chat/completions",
        headers: &[],
    };

    /// Opens the model that `options` names.
    pub(crate) fn open(&'static self, options: &ProviderOptions<'_>) -> Result<Opened, OpenError> {
        let providers = options.providers;
        let (exchange, account, is_own) = self.reach(options, self.path)?;
        let model = options.argument.to_owned();
        let remote = Remote {
            price: providers.prices().of(self.name, &model, is_own),
            dated_prices: providers.price_book(),
            exchange,
            model,
            account,
            policy: providers.policy_of(self.name).clone(),
            pending: PendingRequests::default(),
            state: Mutex::new(State::default()),
            stirred: Notify::new(),
        };
        Ok(Opened::Model(Arc::new(remote)))
    }

    /// Opens the documents below the vendor's address.
    pub(crate) fn documents(&'static self, options: &ProviderOptions<'_>) -> Result<Documents, OpenError> {
        let (exchange, account, _) = self.reach(options, "")?;
        Ok(Documents::new(exchange, account, options.providers.policy_of(self.name).clone()))
    }

    /// Returns the connection to `path` of the vendor, its account, and `true` if the address is the vendor's own.
    fn reach(
        &'static self,
        options: &ProviderOptions<'_>,
        path: &str,
    ) -> Result<(Exchange, Arc<Account>, bool), OpenError> {
        let providers = options.providers;
        let (url, is_own) = self.url(options, path)?;
        let (key, headers) = self.signed(options, is_own)?;
        let client = providers.network().client(url.scheme() == "https");
        let client = client.map_err(|reason| OpenError::NoClient { reason })?;
        let policy = providers.policy_of(self.name);
        let account = providers.account(url.origin().ascii_serialization(), key.clone(), policy);
        Ok((Exchange::new(client, url, headers, key, self.dialect), account, is_own))
    }

    /// Returns `true` if requests go to the vendor's own address; `None` if the address cannot be used.
    pub(crate) fn is_own(&self, options: &ProviderOptions<'_>) -> Option<bool> {
        self.url(options, self.path).ok().map(|(_, is_own)| is_own)
    }

    /// Returns the URL for requests to `path`, and `true` if it is at the vendor's own address.
    fn url(&self, options: &ProviderOptions<'_>, path: &str) -> Result<(Url, bool), OpenError> {
        let variable = self.variables.last().copied().unwrap_or_default();
        let set = || options.providers.credentials().get(variable);
        let given = options.base_url.map(str::trim).filter(|url| !url.is_empty()).or_else(set);
        // Nothing is sent there if all answers are recorded.
        let nowhere = options.providers.needs_no_key().then_some(NOWHERE);
        let Some(written) = given.or(self.address).or(nowhere) else {
            return Err(OpenError::NoAddress { provider: self.name, variable });
        };
        let wrong = |reason: &str| OpenError::BadAddress { provider: self.name, reason: reason.to_owned() };
        let written = (self.to_url)(written);
        let mut url = Url::parse(&written).map_err(|error| wrong(&error.to_string()))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(wrong("it must start with `http://` or `https://`"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(wrong("it contains a user name or a password; set the key in its variable instead"));
        }
        let base = url.path().trim_end_matches('/').to_owned();
        let has_version = base.ends_with(self.version) || (self.is_version_given && !base.is_empty());
        let version = if has_version { "" } else { self.version };
        url.set_path(&format!("{base}{version}{path}"));
        url.set_fragment(None);
        let own = self.address.and_then(|own| Url::parse(own).ok());
        Ok((url.clone(), own.is_some_and(|own| own.origin() == url.origin())))
    }

    /// Returns the key, and the headers for every request.
    fn signed(
        &self,
        options: &ProviderOptions<'_>,
        is_own: bool,
    ) -> Result<(Option<credentials::Key>, HeaderMap), OpenError> {
        let mut headers = HeaderMap::new();
        for (name, value) in self.headers {
            headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        let keys = self.variables.split_last().map_or(&[][..], |(_, keys)| keys);
        let found = keys.iter().find_map(|key| Some((*key, options.providers.credentials().get(key)?)));
        let Some((variable, text)) = found else {
            // A self-hosted server may authenticate its clients in other ways.
            if self.needs_key && is_own && !options.providers.needs_no_key() {
                return Err(OpenError::NoKey { provider: self.name, variables: keys.to_vec() });
            }
            return Ok((None, headers));
        };
        let (name, value) = match self.key_header {
            Some(name) if self.bearer != Some(variable) => (name, text.to_owned()),
            _ => ("authorization", format!("Bearer {text}")),
        };
        let value = HeaderValue::try_from(value).ok().filter(|value| value.to_str().is_ok());
        let mut value = value.ok_or(OpenError::BadKey { variable })?;
        value.set_sensitive(true);
        headers.insert(HeaderName::from_static(name), value);
        Ok((Some(credentials::Key::new(text)), headers))
    }
}

#[cfg(test)]
mod tests {
    use crate::{Credentials, OpenError, Policy, Prices, Providers};

    fn opened(written: &str, base_url: Option<&str>, env: &[(&str, &str)]) -> Result<(), OpenError> {
        let credentials = env.iter().fold(Credentials::default(), |all, (name, value)| all.with(*name, *value));
        let providers = Providers::new(credentials, Prices::default(), Policy::default());
        providers.open(written, base_url, &|_| Err(Vec::new())).map(|_| ())
    }

    #[test]
    fn a_missing_key_is_an_environment_error_that_names_the_variable() {
        let refusal = |written: &str| {
            let error = opened(written, None, &[]).unwrap_err();
            assert!(error.is_environments());
            error.to_string()
        };
        assert_eq!(refusal("openai:gpt-5"), "`openai` needs a key: OPENAI_API_KEY is not set");
        assert_eq!(
            refusal("anthropic:claude"),
            "`anthropic` needs a key: ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN is not set"
        );
        assert_eq!(refusal("compatible:m"), "`compatible` requires a base URL: set `base_url` or COMPATIBLE_BASE_URL");
        assert_eq!(opened("openai:gpt-5", Some("http://127.0.0.1:1"), &[]), Ok(()));
        assert_eq!(opened("compatible:m", None, &[("COMPATIBLE_BASE_URL", "http://127.0.0.1:1")]), Ok(()));
    }

    #[test]
    fn a_hosted_model_is_asked_at_its_vendors_address() {
        for (name, key, url) in [
            ("groq", "GROQ_API_KEY", "https://api.groq.com/openai/v1/chat/completions"),
            ("mistral", "MISTRAL_API_KEY", "https://api.mistral.ai/v1/chat/completions"),
            ("deepseek", "DEEPSEEK_API_KEY", "https://api.deepseek.com/v1/chat/completions"),
            ("togetherai", "TOGETHER_API_KEY", "https://api.together.ai/v1/chat/completions"),
            ("xai", "XAI_API_KEY", "https://api.x.ai/v1/chat/completions"),
            ("fireworks", "FIREWORKS_API_KEY", "https://api.fireworks.ai/inference/v1/chat/completions"),
            ("cerebras", "CEREBRAS_API_KEY", "https://api.cerebras.ai/v1/chat/completions"),
        ] {
            let written = format!("{name}:m");
            assert_eq!(
                opened(&written, None, &[]).unwrap_err().to_string(),
                format!("`{name}` needs a key: {key} is not set")
            );
            let credentials = Credentials::default().with(key, "k");
            let model =
                Providers::new(credentials, Prices::default(), Policy::default()).model(&written, None).unwrap();
            assert_eq!(model.address(), Some(url), "{name}");
        }
    }

    #[test]
    fn an_invalid_base_url_is_rejected_without_echoing_it() {
        for url in ["nonsense", "ftp://x", "http://user:canary-pw@x/v1"] {
            let error = opened("openai:m", Some(url), &[("OPENAI_API_KEY", "k")]).unwrap_err();
            assert!(matches!(error, OpenError::BadAddress { .. }), "{url}: {error}");
            assert!(!error.to_string().contains("canary"), "{error}");
        }
    }

    #[test]
    fn a_key_that_is_invalid_in_a_header_is_rejected_without_showing_it() {
        for key in ["canary\nx", "canary-ü"] {
            let error = opened("openai:m", Some("http://127.0.0.1:1"), &[("OPENAI_API_KEY", key)]).unwrap_err();
            assert_eq!(error, OpenError::BadKey { variable: "OPENAI_API_KEY" });
            assert!(!format!("{error} {error:?}").contains("canary"));
        }
    }
}
