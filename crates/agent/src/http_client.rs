//! HTTP clients. All conversations of a run share them and their connections.

use std::sync::{Mutex, PoisonError};
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
/// Maximum number of clients kept. There is more than one only if several runs follow each other, or several kinds of
/// addresses are used.
const MAX_CLIENTS: usize = 8;

/// Clients and their purposes. Connections cannot be used after the end of the runtime on which they were opened.
static CLIENTS: Mutex<Vec<(Purpose, Client)>> = Mutex::new(Vec::new());

/// Purpose of a client.
#[derive(Debug, Clone, PartialEq)]
struct Purpose {
    runtime: runtime::Id,
    is_secure: bool,
    proxies: Proxies,
}

/// Returns the client for a secure or a plain address on the current runtime.
pub(crate) fn client(is_secure: bool, host: &Host) -> Result<Client, String> {
    let proxies = Proxies::of(|name| host.env.get(name).map(String::as_str));
    let purpose = Purpose { runtime: Handle::current().id(), is_secure, proxies };
    let mut clients = CLIENTS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, client)) = clients.iter().find(|(of, _)| *of == purpose) {
        return Ok(client.clone());
    }
    let client = purpose.proxies.client(is_secure, CONNECTING, Some(IDLE))?;
    if clients.len() >= MAX_CLIENTS {
        clients.remove(0);
    }
    clients.push((purpose, client.clone()));
    Ok(client)
}
