//! HTTP clients. All conversations of a run share them and their connections.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use llm::Proxies;
use reqwest::Client;
use sandbox::Host;
use tokio::runtime::{self, Handle};

/// Timeout for opening a connection.
const CONNECTING: Duration = Duration::from_secs(10);
/// How long an unused connection is kept open. Bots close theirs after a few seconds, and a message sent at that very
/// moment would be lost.
const IDLE: Duration = Duration::from_millis(1500);
/// Maximum number of clients kept. There is more than one only if several kinds of addresses are used.
const MAX_CLIENTS: usize = 8;

/// Clients and their purposes. Connections cannot be used after the end of the runtime on which they were opened.
/// Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct HttpClients(Arc<Mutex<Vec<(Purpose, Client)>>>);

/// Purpose of a client.
#[derive(Debug, Clone, PartialEq)]
struct Purpose {
    runtime: runtime::Id,
    is_secure: bool,
    proxies: Proxies,
}

impl HttpClients {
    /// Returns the client for a secure or a plain address on the current runtime.
    pub(crate) fn client(&self, is_secure: bool, host: &Host) -> Result<Client, String> {
        let proxies = Proxies::of(|name| host.env.get(name).map(String::as_str));
        let purpose = Purpose { runtime: Handle::current().id(), is_secure, proxies };
        let mut clients = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, client)) = clients.iter().find(|(known, _)| *known == purpose) {
            return Ok(client.clone());
        }
        let client = purpose.proxies.client(is_secure, CONNECTING, Some(IDLE));
        let client = client.map_err(|error| error.to_string())?;
        if clients.len() >= MAX_CLIENTS {
            clients.remove(0);
        }
        clients.push((purpose, client.clone()));
        Ok(client)
    }
}
