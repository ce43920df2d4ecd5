//! The HTTP server of `view` and `serve`: it accepts connections, refuses requests that come from other sites, and adds
//! the headers that every response has.
//!
//! Any page in a browser can send requests to a port on loopback. A page of another site that reaches this server under
//! its own host name (DNS rebinding) sends a different `Host`, and a cross-site request has a different `Origin`; both
//! are refused.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use hyper::body::{Bytes, Incoming};
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

/// Timeout for the header of a request, so that a client that has gone away does not keep a connection open.
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);
/// Pause after a failed attempt to accept a connection. The process has probably run out of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(20);
/// Maximum number of connections; others wait.
const CONNECTIONS: usize = 256;

/// Headers of every response.
const HEADERS: [(HeaderName, &str); 6] = [
    (header::CACHE_CONTROL, "no-store"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

/// Content security policy of responses that are not pages.
const NOTHING: &str = "default-src 'none'; frame-ancestors 'none'";

/// A response.
pub type Answer = Response<Body>;

/// A server that is bound to its port.
pub struct HttpServer {
    listener: TcpListener,
    address: SocketAddr,
    names: OwnNames,
}

/// Names under which requests reach the server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OwnNames {
    /// Values of `Host`.
    hosts: Vec<String>,
    /// Values of `Origin`.
    origins: Vec<String>,
}

impl OwnNames {
    /// Returns the names of a server on this machine.
    fn of_loopback(port: u16) -> Self {
        let hosts = vec![format!("127.0.0.1:{port}"), format!("localhost:{port}"), format!("[::1]:{port}")];
        let origins = hosts.iter().map(|host| format!("http://{host}")).collect();
        Self { hosts, origins }
    }

    /// Adds a name that a proxy or another machine uses, such as `trials.example.com` or `build-7:7347`.
    fn add(&mut self, host: &str) {
        self.hosts.push(host.to_owned());
        self.origins.extend(["http", "https"].map(|scheme| format!("{scheme}://{host}")));
    }

    /// Returns `true` if a request is addressed to this server and does not come from another site.
    fn allows(&self, headers: &HeaderMap, authority: Option<&str>) -> bool {
        let is_in = |names: &[String], name: &str| names.iter().any(|own| own.eq_ignore_ascii_case(name));
        let mut hosts = headers.get_all(header::HOST).iter();
        let host = hosts.next().and_then(|host| host.to_str().ok());
        let is_own_origin = |origin: &HeaderValue| origin.to_str().is_ok_and(|origin| is_in(&self.origins, origin));
        host.is_some_and(|host| is_in(&self.hosts, host))
            && hosts.next().is_none()
            && authority.is_none_or(|authority| is_in(&self.hosts, authority))
            && headers.get_all(header::ORIGIN).iter().all(is_own_origin)
            && !is_embedded_elsewhere(headers)
    }
}

/// Returns `true` if a page of another site loads this as a part of itself, such as an image. A link on it is followed.
fn is_embedded_elsewhere(headers: &HeaderMap) -> bool {
    let value = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let is_link = value("sec-fetch-mode") == Some("navigate") && value("sec-fetch-dest") == Some("document");
    matches!(value("sec-fetch-site"), Some("cross-site" | "same-site")) && !is_link
}

impl HttpServer {
    /// Binds a port. `hosts` are further names under which requests reach it.
    ///
    /// # Errors
    /// Returns an error if the port cannot be used.
    pub async fn bind(address: SocketAddr, hosts: &[String]) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let mut names = OwnNames::of_loopback(address.port());
        hosts.iter().for_each(|host| names.add(host));
        Ok(Self { listener, address, names })
    }

    /// Returns the address to which it is bound.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers requests until the future is dropped.
    pub async fn listen<F: Future<Output = Answer> + Send + 'static>(
        self,
        answer: impl Fn(Request<Incoming>) -> F + Clone + Send + Sync + 'static,
    ) {
        let connections = Arc::new(Semaphore::new(CONNECTIONS));
        let names = Arc::new(self.names);
        loop {
            // The semaphore is never closed.
            let Ok(connection) = Arc::clone(&connections).acquire_owned().await else { return };
            let Ok((stream, _)) = self.listener.accept().await else {
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            };
            let (names, answer) = (Arc::clone(&names), answer.clone());
            tokio::spawn(async move {
                let answer = service_fn(|request: Request<Incoming>| {
                    let is_allowed =
                        names.allows(request.headers(), request.uri().authority().map(|authority| authority.as_str()));
                    let answered = is_allowed.then(|| answer(request));
                    async move {
                        let answer = match answered {
                            Some(answered) => answered.await,
                            None => plain(StatusCode::FORBIDDEN, "This is not the address of this server.\n"),
                        };
                        Ok::<_, Infallible>(with_headers(answer))
                    }
                });
                let mut builder = http1::Builder::new();
                builder.timer(TokioTimer::new()).header_read_timeout(HEADER_TIMEOUT);
                // If a client disconnects, the connection ends with an error that needs no handling.
                let _ = builder.serve_connection(TokioIo::new(stream), answer).await;
                drop(connection);
            });
        }
    }
}

/// Adds the headers that every response has. A response without a content security policy gets one that allows nothing.
fn with_headers(mut answer: Answer) -> Answer {
    let headers = answer.headers_mut();
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.entry(header::CONTENT_SECURITY_POLICY).or_insert(HeaderValue::from_static(NOTHING));
    answer
}

/// Returns a response that is plain text.
pub fn plain(status: StatusCode, text: &str) -> Answer {
    response(status, "text/plain; charset=utf-8", text.to_owned())
}

/// Returns a page with its content security policy.
pub fn page(status: StatusCode, html: impl Into<Bytes>, policy: &str) -> Answer {
    let mut answer = response(status, "text/html; charset=utf-8", html);
    let policy = HeaderValue::try_from(policy).unwrap_or(HeaderValue::from_static(NOTHING));
    answer.headers_mut().insert(header::CONTENT_SECURITY_POLICY, policy);
    answer
}

/// Returns a response of this media type.
pub fn response(status: StatusCode, kind: &'static str, body: impl Into<Bytes>) -> Answer {
    let mut response = Response::new(Body::from(body.into()));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allows(names: &OwnNames, headers: &[(&'static str, &str)]) -> bool {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, HeaderValue::try_from(*value).unwrap());
        }
        names.allows(&map, None)
    }

    #[test]
    fn only_own_hosts_and_origins_are_allowed() {
        let mut names = OwnNames::of_loopback(7347);
        names.add("trials.example.com");
        for host in ["127.0.0.1:7347", "LOCALHOST:7347", "[::1]:7347", "trials.example.com"] {
            assert!(allows(&names, &[("host", host)]), "{host}");
        }
        for host in ["127.0.0.1", "127.0.0.1:80", "trials.example.com:7347", "evil.example", "example.com", ""] {
            assert!(!allows(&names, &[("host", host)]), "{host}");
        }
        assert!(!allows(&names, &[]));
        let own = ("host", "trials.example.com");
        assert!(!allows(&names, &[own, ("host", "evil.example")]));
        assert!(allows(&names, &[own, ("origin", "https://trials.example.com")]));
        for origin in ["null", "https://evil.example", "https://trials.example.com.evil.example", "trials.example.com"]
        {
            assert!(!allows(&names, &[own, ("origin", origin)]), "{origin}");
        }
    }

    #[test]
    fn another_site_can_link_here_but_not_embed_anything() {
        let names = OwnNames::of_loopback(7347);
        let from = |site: &str, mode: &str, dest: &str| {
            allows(
                &names,
                &[
                    ("host", "127.0.0.1:7347"),
                    ("sec-fetch-site", site),
                    ("sec-fetch-mode", mode),
                    ("sec-fetch-dest", dest),
                ],
            )
        };
        assert!(from("cross-site", "navigate", "document") && from("same-origin", "cors", "empty"));
        assert!(from("none", "navigate", "document"));
        assert!(!from("cross-site", "no-cors", "image") && !from("cross-site", "navigate", "iframe"));
        assert!(!from("same-site", "cors", "empty"));
    }
}
