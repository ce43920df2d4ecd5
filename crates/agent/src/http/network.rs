//! HTTP clients. All conversations of a run share them and their connections.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use reqwest::{Client, NoProxy, Proxy, redirect};
use sandbox::Host;
use tokio::runtime::{self, Handle};

/// Timeout for opening a connection.
const CONNECTING: Duration = Duration::from_secs(10);
/// Time for which an unused connection is kept open. Bots close theirs after a few seconds, and a message that is sent
/// at that very moment would be lost.
const IDLE: Duration = Duration::from_millis(1500);
/// Maximum number of clients kept. There is more than one only if several runs or kinds of addresses follow each other.
const KEPT: usize = 8;

/// Clients and their purposes. Connections cannot be used after the runtime on which they were opened has ended.
static CLIENTS: Mutex<Vec<(Purpose, Client)>> = Mutex::new(Vec::new());

/// Purpose of a client.
#[derive(Debug, Clone, PartialEq)]
struct Purpose {
    runtime: runtime::Id,
    is_secure: bool,
    proxies: Proxies,
}

/// Proxies for requests.
#[derive(Debug, Clone, PartialEq, Default)]
struct Proxies {
    http: Option<String>,
    https: Option<String>,
    never: String,
}

impl Proxies {
    fn of(env: &BTreeMap<String, String>) -> Self {
        let first =
            |names: [&str; 4]| names.iter().find_map(|name| env.get(*name).filter(|value| !value.is_empty())).cloned();
        let never = env.get("NO_PROXY").or_else(|| env.get("no_proxy")).map_or("", String::as_str);
        Self {
            http: first(["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"]),
            https: first(["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"]),
            // Addresses of this machine are never reached through a proxy.
            never: format!("localhost,127.0.0.0/8,::1,{never}"),
        }
    }
}

/// Returns the client for a secure or plain address on the current runtime.
///
/// # Errors
/// Returns an error message if the client cannot be created.
pub(crate) fn client(is_secure: bool, host: &Host) -> Result<Client, String> {
    let purpose = Purpose { runtime: Handle::current().id(), is_secure, proxies: Proxies::of(&host.env) };
    let mut clients = CLIENTS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, client)) = clients.iter().find(|(of, _)| *of == purpose) {
        return Ok(client.clone());
    }
    let client = make(&purpose)?;
    if clients.len() >= KEPT {
        clients.remove(0);
    }
    clients.push((purpose, client.clone()));
    Ok(client)
}

fn make(purpose: &Purpose) -> Result<Client, String> {
    // Other code in the process may have installed a provider already, which is fine.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut client = Client::builder()
        .user_agent(concat!("trialrun/", env!("CARGO_PKG_VERSION")))
        // A redirect would send the headers to an arbitrary host.
        .redirect(redirect::Policy::none())
        .connect_timeout(CONNECTING)
        .pool_idle_timeout(IDLE)
        .tcp_nodelay(true)
        .no_proxy();
    if !purpose.is_secure {
        // Reading the system's certificates takes time.
        client = client.tls_certs_only([]);
    }
    let Proxies { http, https, never } = &purpose.proxies;
    for proxy in [http.as_ref().map(Proxy::http), https.as_ref().map(Proxy::https)].into_iter().flatten() {
        // The address may contain a password, so it is not shown.
        let proxy = proxy.map_err(|_| "the proxy's address cannot be used".to_owned())?;
        client = client.proxy(proxy.no_proxy(NoProxy::from_string(never)));
    }
    client.build().map_err(|error| error.without_url().to_string())
}
