//! A tunnel from a client to its host.

use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use model::{Destination, EgressWay};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, copy, split};

use super::Relay;
use super::opening::{Opening, examine};
use super::upstream::Stream;

/// Maximum number of bytes that are examined.
const LONGEST_OPENING: usize = 64 * 1024;

/// A tunnel that begins once its client has the answer.
pub(super) struct Tunnel {
    pub(super) client: OnUpgrade,
    pub(super) server: Stream,
    pub(super) destination: Destination,
}

impl Tunnel {
    /// Copies in both directions until both are closed, or the client requests a host that is not allowed.
    pub(super) async fn run(self, relay: &Relay, by_command: bool) {
        let Ok(client) = self.client.await else { return };
        let (mut from_client, mut to_client) = split(TokioIo::new(client));
        let (mut from_server, mut to_server) = split(self.server);
        let up = async {
            let opening = opening(&mut from_client).await?;
            if let Some(refusal) = refusal(relay, &self.destination, &opening) {
                let Refusal { destination, written, reason } = refusal;
                relay.note(&destination, &written, EgressWay::Inside, by_command, Some(&reason));
                return Err(());
            }
            to_server.write_all(&opening).await.map_err(|_| ())?;
            forward(&mut from_client, &mut to_server).await
        };
        let down = async { forward(&mut from_server, &mut to_client).await };
        let _ = tokio::try_join!(up, down);
    }
}

/// Reads what a client sends first, as far as needed to know which host it requests.
async fn opening(client: &mut (impl AsyncRead + Unpin)) -> Result<Vec<u8>, ()> {
    let mut opening = Vec::new();
    while examine(&opening) == Opening::Incomplete && opening.len() < LONGEST_OPENING {
        match client.read_buf(&mut opening).await {
            Ok(1..) => {}
            Ok(0) => break,
            Err(_) => return Err(()),
        }
    }
    Ok(opening)
}

/// Reason to forbid a tunnel: a host that is not allowed.
struct Refusal {
    destination: Destination,
    /// The host as it was written.
    written: String,
    reason: String,
}

/// Returns the host because of which a tunnel to `destination` is forbidden. The name in a connection to an address is
/// not compared, because the address decides where it leads.
fn refusal(relay: &Relay, destination: &Destination, opening: &[u8]) -> Option<Refusal> {
    let own = |reason: &str| {
        Some(Refusal { destination: destination.clone(), written: destination.host.clone(), reason: reason.to_owned() })
    };
    let names = match examine(opening) {
        _ if destination.ip().is_some() => return None,
        Opening::Names(names) => names,
        Opening::Unreadable => return own("its TLS greeting cannot be read"),
        Opening::Incomplete if opening.len() < LONGEST_OPENING => return None,
        Opening::Incomplete => return own("its greeting is too long"),
    };
    names.into_iter().find_map(|written| {
        let named = Destination::new(&written, destination.port);
        if named.as_ref().is_some_and(|named| named == destination || relay.rules.allow(named)) {
            return None;
        }
        let host = || written.chars().take(super::LONGEST_HOST).collect();
        let named = named.unwrap_or_else(|| Destination { host: host(), port: destination.port });
        Some(Refusal {
            destination: named,
            written,
            reason: format!("requested in a connection to {}", destination.host),
        })
    })
}

/// Copies until the end of `from`, and passes the end on.
async fn forward(from: &mut (impl AsyncRead + Unpin), to: &mut (impl AsyncWrite + Unpin)) -> Result<(), ()> {
    copy(from, to).await.map_err(|_| ())?;
    to.shutdown().await.map_err(|_| ())
}
