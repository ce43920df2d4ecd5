//! HTTP clients. They are created on first use: a run without a model needs none.

use std::sync::OnceLock;

use reqwest::{Client, NoProxy, Proxy, redirect};

use crate::{Credentials, Policy};

/// HTTP clients of a run. The one for plain HTTP needs no certificates, which take a while to load.
#[derive(Default)]
pub(crate) struct Network {
    proxies: Proxies,
    policy: Policy,
    plain: OnceLock<Result<Client, String>>,
    secure: OnceLock<Result<Client, String>>,
}

/// Configured proxies.
#[derive(Default)]
struct Proxies {
    http: Option<String>,
    https: Option<String>,
    never: String,
}

impl Network {
    pub(crate) fn new(credentials: &Credentials, policy: &Policy) -> Self {
        let first = |names: &[&str]| credentials.first(names).map(str::to_owned);
        // Addresses on this machine are never reached through a proxy.
        let never = first(&["NO_PROXY", "no_proxy"]).unwrap_or_default();
        let proxies = Proxies {
            http: first(&["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"]),
            https: first(&["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"]),
            never: format!("localhost,127.0.0.0/8,::1,{never}"),
        };
        Self { proxies, policy: policy.clone(), ..Self::default() }
    }

    /// Returns the client for HTTPS or plain HTTP.
    ///
    /// # Errors
    /// Returns a description of the problem.
    pub(crate) fn client(&self, is_secure: bool) -> Result<Client, String> {
        let place = if is_secure { &self.secure } else { &self.plain };
        place.get_or_init(|| self.make(is_secure)).clone()
    }

    fn make(&self, is_secure: bool) -> Result<Client, String> {
        // If another part of the process has already chosen a provider, that one works as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut client = Client::builder()
            .user_agent(concat!("trialrun/", env!("CARGO_PKG_VERSION")))
            // A redirect would send the key to another address.
            .redirect(redirect::Policy::none())
            .connect_timeout(self.policy.timeouts.connect)
            .tcp_nodelay(true)
            .no_proxy();
        if !is_secure {
            client = client.tls_certs_only([]);
        }
        let proxies = [self.proxies.http.as_ref().map(Proxy::http), self.proxies.https.as_ref().map(Proxy::https)];
        for proxy in proxies.into_iter().flatten() {
            // The address may contain a password, so it is not repeated.
            let proxy = proxy.map_err(|_| "the proxy's address cannot be used".to_owned())?;
            client = client.proxy(proxy.no_proxy(NoProxy::from_string(&self.proxies.never)));
        }
        client.build().map_err(|error| error.without_url().to_string())
    }
}
