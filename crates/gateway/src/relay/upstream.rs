//! Connections from this machine to allowed hosts, through the machine's own proxy if it has one.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Empty;
use hyper::body::{Body, Incoming};
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{HOST, HeaderValue, PROXY_AUTHORIZATION};
use hyper::{Method, Request, Response, Uri};
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use hyper_util::rt::TokioIo;
use llm::{Proxies, error_chain};
use model::Destination;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;

/// Timeout for opening a connection.
const CONNECTING: Duration = Duration::from_secs(10);

/// A connection.
pub(super) type Stream = Box<dyn Connection>;

/// Bytes in both directions.
pub(super) trait Connection: AsyncRead + AsyncWrite + Send + Unpin {}

impl<C: AsyncRead + AsyncWrite + Send + Unpin> Connection for C {}

/// The network of this machine.
pub(super) struct Upstream {
    proxies: Matcher,
}

impl Upstream {
    pub(super) fn of(proxies: &Proxies) -> Self {
        let [http, https] = [proxies.http(), proxies.https()].map(|proxy| proxy.unwrap_or_default().to_owned());
        Self { proxies: Matcher::builder().http(http).https(https).no(proxies.never().to_owned()).build() }
    }

    /// Opens a connection for any protocol.
    pub(super) async fn dial(&self, destination: &Destination) -> Result<Stream, String> {
        match self.proxy("https", destination) {
            Some(proxy) => in_time(tunnel(&proxy, destination)).await,
            None => Ok(Box::new(in_time(connect(destination)).await?)),
        }
    }

    /// Sends a plain HTTP request, whose address is only a path, and returns the response.
    pub(super) async fn send<B>(
        &self,
        destination: &Destination,
        mut request: Request<B>,
    ) -> Result<Response<Incoming>, String>
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: std::error::Error + Send + Sync,
    {
        let stream = match self.proxy("http", destination) {
            Some(proxy) => {
                let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
                let whole = format!("http://{destination}{path}");
                *request.uri_mut() = Uri::try_from(whole).map_err(|_| "the address is not valid".to_owned())?;
                sign_in(&mut request, &proxy);
                in_time(connect_to_proxy(&proxy)).await?
            }
            None => in_time(connect(destination)).await?,
        };
        let mut sender = handshake(stream).await?;
        sender.send_request(request).await.map_err(|error| error_chain(&error))
    }

    fn proxy(&self, scheme: &str, destination: &Destination) -> Option<Intercept> {
        self.proxies.intercept(&Uri::try_from(format!("{scheme}://{destination}/")).ok()?)
    }
}

async fn in_time<T>(connecting: impl Future<Output = Result<T, String>>) -> Result<T, String> {
    let late = |_| format!("no connection within {} s", CONNECTING.as_secs());
    timeout(CONNECTING, connecting).await.map_err(late)?
}

/// Connects to a host. A name must not lead to this machine; otherwise its owner would decide what can be reached
/// here. `localhost` always does, whatever a resolver knows about it.
async fn connect(destination: &Destination) -> Result<TcpStream, String> {
    let is_named = destination.ip().is_none() && !destination.is_loopback();
    let host = destination.host.trim_start_matches('[').trim_end_matches(']');
    let addresses: Vec<SocketAddr> = if destination.is_loopback() && destination.ip().is_none() {
        let both = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];
        both.map(|ip| SocketAddr::new(ip, destination.port)).to_vec()
    } else {
        lookup_host((host, destination.port)).await.map_err(|error| error.to_string())?.collect()
    };
    let mut failure = "the name has no address".to_owned();
    for address in addresses {
        if is_named && is_of_this_machine(address.ip()) {
            failure = format!("the name leads to {}, which the network policy does not list", address.ip());
            continue;
        }
        match TcpStream::connect(address).await {
            Ok(stream) => return opened(stream),
            Err(error) => failure = error.to_string(),
        }
    }
    Err(failure)
}

fn opened(stream: TcpStream) -> Result<TcpStream, String> {
    stream.set_nodelay(true).map_err(|error: io::Error| error.to_string())?;
    Ok(stream)
}

/// Returns `true` if the address is this machine, or one that only this machine can reach.
fn is_of_this_machine(ip: IpAddr) -> bool {
    match ip.to_canonical() {
        IpAddr::V4(ip) => ip.is_loopback() || ip.is_unspecified() || ip.is_link_local() || ip.is_broadcast(),
        IpAddr::V6(ip) => ip.is_loopback() || ip.is_unspecified() || ip.is_unicast_link_local(),
    }
}

/// Connects to the machine's proxy.
async fn connect_to_proxy(proxy: &Intercept) -> Result<TcpStream, String> {
    let uri = proxy.uri();
    if uri.scheme_str().is_some_and(|scheme| scheme != "http") {
        return Err("this machine's proxy is not an HTTP proxy, so it cannot be used".to_owned());
    }
    let host = uri.host().unwrap_or_default();
    let address: (&str, u16) = (host.trim_start_matches('[').trim_end_matches(']'), uri.port_u16().unwrap_or(80));
    let failed = |error: io::Error| format!("this machine's proxy cannot be reached: {error}");
    opened(TcpStream::connect(address).await.map_err(failed)?)
}

/// Opens a connection to a host through the machine's proxy.
async fn tunnel(proxy: &Intercept, destination: &Destination) -> Result<Stream, String> {
    let mut sender = handshake(connect_to_proxy(proxy).await?).await?;
    let mut request = Request::new(Empty::<Bytes>::new());
    *request.method_mut() = Method::CONNECT;
    *request.uri_mut() = Uri::try_from(destination.to_string()).map_err(|_| "the host is not valid".to_owned())?;
    request
        .headers_mut()
        .insert(HOST, HeaderValue::try_from(destination.to_string()).map_err(|error| error.to_string())?);
    sign_in(&mut request, proxy);
    let failed = |error: hyper::Error| format!("this machine's proxy: {}", error_chain(&error));
    let response = sender.send_request(request).await.map_err(failed)?;
    if !response.status().is_success() {
        return Err(format!("this machine's proxy answered {}", response.status()));
    }
    Ok(Box::new(TokioIo::new(hyper::upgrade::on(response).await.map_err(failed)?)))
}

fn sign_in<B>(request: &mut Request<B>, proxy: &Intercept) {
    if let Some(key) = proxy.basic_auth() {
        request.headers_mut().insert(PROXY_AUTHORIZATION, key.clone());
    }
}

/// Starts an HTTP connection. It lasts as long as the sender, its response or its tunnel.
async fn handshake<B>(stream: TcpStream) -> Result<SendRequest<B>, String>
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: std::error::Error + Send + Sync,
{
    let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(|error| error_chain(&error))?;
    tokio::spawn(async {
        // Errors are reported to the sender.
        let _ = connection.with_upgrades().await;
    });
    Ok(sender)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_this_machine_are_recognised_in_every_form() {
        for (ip, expected) in [
            ("127.0.0.1", true),
            ("127.9.9.9", true),
            ("0.0.0.0", true),
            ("169.254.169.254", true),
            ("::1", true),
            ("::ffff:127.0.0.1", true),
            ("fe80::1", true),
            ("10.0.0.1", false),
            ("192.0.2.1", false),
        ] {
            assert_eq!(is_of_this_machine(ip.parse().unwrap()), expected, "{ip}");
        }
    }
}
