//! The HTTP server of `view`: it accepts only GET, only on loopback, and only from clients that know the token.
//!
//! Any program on this machine and any page in a browser can send requests to a port on loopback. So each request must
//! contain the token in its path. A page of another site that reaches this server under its own host name (DNS
//! rebinding) sends a different `Host`, and a cross-site request has a different `Origin`; both are refused.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use percent_encoding::percent_decode_str;
use report::ServedRun;
use sha2::{Digest, Sha256};
use tokio::net::TcpListener;

use super::pages::{PageError, Pages};

/// Timeout for the header of a request, so that a client that has gone away does not keep a connection open.
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);
/// Pause after a failed attempt to accept a connection. The process has probably run out of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(20);

/// Headers of every response.
const HEADERS: [(HeaderName, &str); 6] = [
    (header::CACHE_CONTROL, "no-store"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

/// Policy of responses that are not pages.
const NOTHING: &str = "default-src 'none'; frame-ancestors 'none'";

type Answer = Response<Full<Bytes>>;

/// A server that is bound to its port.
pub struct Server {
    listener: TcpListener,
    service: Arc<Service>,
}

struct Service {
    address: SocketAddr,
    token: String,
    pages: Mutex<Pages>,
}

impl Server {
    /// Creates a server with a random token.
    pub fn new(listener: TcpListener, pages: Pages) -> io::Result<Self> {
        let address = listener.local_addr()?;
        let token = uuid::Uuid::new_v4().simple().to_string();
        Ok(Self { listener, service: Arc::new(Service { address, token, pages: Mutex::new(pages) }) })
    }

    /// Returns the address of the first page.
    pub fn address(&self) -> String {
        format!("http://{}/{}/", self.service.address, self.service.token)
    }

    /// Answers requests until the future is dropped.
    pub async fn listen(self) {
        loop {
            let Ok((stream, _)) = self.listener.accept().await else {
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            };
            let service = Arc::clone(&self.service);
            tokio::spawn(async move {
                let answer = service_fn(|request| Arc::clone(&service).answer(request));
                let mut builder = http1::Builder::new();
                builder.timer(TokioTimer::new()).header_read_timeout(HEADER_TIMEOUT);
                // If a client disconnects, the connection ends with an error that needs no handling.
                let _ = builder.serve_connection(TokioIo::new(stream), answer).await;
            });
        }
    }
}

impl Service {
    async fn answer(self: Arc<Self>, request: Request<Incoming>) -> Result<Answer, Infallible> {
        let (head, _) = request.into_parts();
        if !self.is_own_host(&head.headers, head.uri.authority().map(|authority| authority.as_str())) {
            return Ok(plain_response(StatusCode::FORBIDDEN, "This is not the address of this server.\n"));
        }
        let path = head.uri.path().trim_start_matches('/');
        let Some((_, path)) = path.split_once('/').filter(|(token, _)| is_same(token, &self.token)) else {
            return Ok(plain_response(StatusCode::FORBIDDEN, "Use the whole address that `trialrun view` printed.\n"));
        };
        if head.method != Method::GET {
            let mut refused = plain_response(StatusCode::METHOD_NOT_ALLOWED, "Only GET is allowed.\n");
            refused.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET"));
            return Ok(refused);
        }
        let known = head.headers.get(header::IF_NONE_MATCH).and_then(|tag| tag.to_str().ok()).map(str::to_owned);
        let path = path.to_owned();
        // Reading the record blocks.
        let answered = tokio::task::spawn_blocking(move || self.read(&path, known.as_deref())).await;
        Ok(match answered.map_err(PageError::from) {
            Ok(Ok(answer)) => answer,
            Ok(Err(error)) | Err(error) => plain_response(StatusCode::INTERNAL_SERVER_ERROR, &format!("{error}\n")),
        })
    }

    /// Returns `true` if the request is addressed to this server, and does not come from another site.
    fn is_own_host(&self, headers: &HeaderMap, authority: Option<&str>) -> bool {
        let port = self.address.port();
        let own = [format!("127.0.0.1:{port}"), format!("localhost:{port}")];
        let is_own = |host: &str| own.iter().any(|own| own.eq_ignore_ascii_case(host));
        let mut hosts = headers.get_all(header::HOST).iter();
        let host = hosts.next().and_then(|host| host.to_str().ok());
        let is_own_origin = |origin: &HeaderValue| {
            origin.to_str().ok().and_then(|origin| origin.strip_prefix("http://")).is_some_and(is_own)
        };
        host.is_some_and(is_own)
            && hosts.next().is_none()
            && authority.is_none_or(is_own)
            && headers.get_all(header::ORIGIN).iter().all(is_own_origin)
    }

    /// Answers a request with a valid token. `known` is the version that the client has.
    fn read(&self, path: &str, known: Option<&str>) -> Result<Answer, PageError> {
        let mut pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        match path {
            "" => {
                let (_, index) = pages.index()?;
                let (page, policy) = ServedRun::page(index)?;
                Ok(response(
                    StatusCode::OK,
                    "text/html; charset=utf-8",
                    &format!("{policy}; frame-ancestors 'none'"),
                    page,
                ))
            }
            "index" => {
                let (version, index) = pages.index()?;
                let tag = format!("\"{version}\"");
                let is_known = known == Some(&tag);
                let status = if is_known { StatusCode::NOT_MODIFIED } else { StatusCode::OK };
                let body = if is_known { String::new() } else { index.to_owned() };
                let mut answer = response(status, "application/json", NOTHING, body);
                answer.headers_mut().insert(header::ETAG, HeaderValue::try_from(tag)?);
                Ok(answer)
            }
            _ => {
                let id = path.strip_prefix("trial/").map(|id| percent_decode_str(id).decode_utf8_lossy());
                let transcript = id.map(|id| pages.transcript(&id)).transpose()?.flatten();
                Ok(match transcript {
                    Some(bytes) => response(StatusCode::OK, "application/octet-stream", NOTHING, bytes),
                    None => plain_response(StatusCode::NOT_FOUND, "There is no such page.\n"),
                })
            }
        }
    }
}

/// Compares two texts so that the time taken does not reveal where they differ: digests cannot be guessed byte by
/// byte.
fn is_same(given: &str, expected: &str) -> bool {
    Sha256::digest(given) == Sha256::digest(expected)
}

fn plain_response(status: StatusCode, text: &str) -> Answer {
    response(status, "text/plain; charset=utf-8", NOTHING, text.to_owned())
}

fn response(status: StatusCode, kind: &'static str, policy: &str, body: impl Into<Bytes>) -> Answer {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    let policy = HeaderValue::try_from(policy).unwrap_or(HeaderValue::from_static(NOTHING));
    headers.insert(header::CONTENT_SECURITY_POLICY, policy);
    response
}
