//! HTTP clients for models and for agents behind HTTP. They are created on first use, because a run without a model
//! needs none.

use std::error::Error;
use std::fmt::Write as _;
use std::io::ErrorKind;
use std::sync::OnceLock;
use std::time::Duration;

use reqwest::{Client, ClientBuilder, NoProxy, Proxy, redirect};

use crate::{Credentials, Policy};

/// HTTP clients of a run. The client for plain HTTP needs no certificates, which take a while to load.
#[derive(Default)]
pub(crate) struct Network {
    proxies: Proxies,
    policy: Policy,
    plain: OnceLock<Result<Client, String>>,
    secure: OnceLock<Result<Client, String>>,
}

impl Network {
    pub(crate) fn new(credentials: &Credentials, policy: &Policy) -> Self {
        let proxies = Proxies::of(|name| credentials.get(name));
        Self { proxies, policy: policy.clone(), ..Self::default() }
    }

    /// Returns the client for HTTPS or plain HTTP.
    pub(crate) fn client(&self, is_secure: bool) -> Result<Client, String> {
        let client = if is_secure { &self.secure } else { &self.plain };
        let connect = self.policy.timeouts.connect;
        let create = || self.proxies.client(is_secure, connect, None).map_err(|error| error.to_string());
        client.get_or_init(create).clone()
    }
}

/// Reason why an HTTP client cannot be created.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The address of a proxy is not valid. It may contain a password, so it is not repeated.
    #[error("the proxy's address cannot be used")]
    Proxy,
    /// The settings of the client or the machine's certificates cannot be used.
    #[error(transparent)]
    Client(reqwest::Error),
}

/// Proxies from the environment.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Proxies {
    http: Option<String>,
    https: Option<String>,
    never: String,
}

impl Proxies {
    /// Reads the usual variables in both spellings; `get` looks one up.
    pub fn of<'e>(get: impl Fn(&str) -> Option<&'e str>) -> Self {
        let first = |names: &[&str]| names.iter().find_map(|name| get(name).filter(|value| !value.is_empty()));
        let never = first(&["NO_PROXY", "no_proxy"]).unwrap_or_default();
        Self {
            http: first(&["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"]).map(str::to_owned),
            https: first(&["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"]).map(str::to_owned),
            // Services on this machine are never reached through a proxy.
            never: format!("localhost,127.0.0.0/8,::1,{never}"),
        }
    }

    /// Returns the proxy for plain HTTP, which may contain a password.
    pub fn http(&self) -> Option<&str> {
        self.http.as_deref()
    }

    /// Returns the proxy for HTTPS, which may contain a password.
    pub fn https(&self) -> Option<&str> {
        self.https.as_deref()
    }

    /// Returns the list of hosts that are reached without a proxy, as in `NO_PROXY`.
    pub fn never(&self) -> &str {
        &self.never
    }

    /// Creates a client for secure or plain addresses. `connect` is the timeout for opening a connection, and `idle`
    /// is how long an unused one is kept.
    ///
    /// # Errors
    /// Returns an error if the client cannot be created.
    pub fn client(&self, is_secure: bool, connect: Duration, idle: Option<Duration>) -> Result<Client, ClientError> {
        let mut client = self.builder(is_secure, connect)?.user_agent(concat!("trialrun/", env!("CARGO_PKG_VERSION")));
        if let Some(idle) = idle {
            client = client.pool_idle_timeout(idle);
        }
        client.build().map_err(|error| ClientError::Client(error.without_url()))
    }

    /// Creates a client that passes requests and answers on unchanged: it does not add headers and does not decompress.
    ///
    /// # Errors
    /// Returns an error if the client cannot be created.
    pub fn forwarding_client(&self, is_secure: bool, connect: Duration) -> Result<Client, ClientError> {
        let client = self.builder(is_secure, connect)?.no_gzip();
        client.build().map_err(|error| ClientError::Client(error.without_url()))
    }

    fn builder(&self, is_secure: bool, connect: Duration) -> Result<ClientBuilder, ClientError> {
        // If another part of the process has already chosen a provider, that one works as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut client = Client::builder()
            // A redirect would send keys to the host that it names.
            .redirect(redirect::Policy::none())
            .connect_timeout(connect)
            .tcp_nodelay(true)
            .no_proxy();
        if !is_secure {
            client = client.tls_certs_only([]);
        }
        for proxy in [self.http.as_ref().map(Proxy::http), self.https.as_ref().map(Proxy::https)].into_iter().flatten()
        {
            let proxy = proxy.map_err(|_| ClientError::Proxy)?;
            client = client.proxy(proxy.no_proxy(NoProxy::from_string(&self.never)));
        }
        Ok(client)
    }
}

/// Messages of layers that say nothing beyond their cause.
const WITHOUT_CONTENT: [&str; 4] =
    ["error sending request", "client error (Connect)", "tcp connect error", "dns error"];

/// Returns the message of `error` with those of its causes, without layers that add nothing to their cause.
pub fn error_chain(error: &dyn Error) -> String {
    let mut chain = String::new();
    let mut next = Some(error);
    while let Some(error) = next {
        let text = error.to_string();
        next = error.source();
        let is_empty = next.is_some() && WITHOUT_CONTENT.contains(&text.as_str());
        if !is_empty && !chain.contains(&text) {
            let separator = if chain.is_empty() { "" } else { ": " };
            let _ = write!(chain, "{separator}{text}");
        }
    }
    chain
}

/// Returns `true` if the connection was refused: usually, no program listens at the address.
pub fn is_refused(error: &(dyn Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        if error.downcast_ref::<std::io::Error>().is_some_and(|error| error.kind() == ErrorKind::ConnectionRefused) {
            return true;
        }
        next = error.source();
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_refused_connection_is_described_by_its_cause_alone() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        drop(listener);
        let _ = rustls::crypto::ring::default_provider().install_default();
        let error = Client::new().get(format!("http://{address}")).send().await.unwrap_err().without_url();
        assert!(is_refused(&error));
        assert!(error_chain(&error).starts_with("Connection refused"), "{}", error_chain(&error));
    }
}
