//! The endpoint that receives spans.

use std::collections::{HashMap, HashSet};
use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderName, HeaderValue, ORIGIN};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use sandbox::Breakage;
use spans::TraceId;
use tokio::sync::Semaphore;
use tokio::task::{JoinHandle, JoinSet};

use super::decoding::{self, Content, MAX_BYTES, Signal};
use super::mailbox::Mailbox;

/// Maximum number of requests that are read at the same time.
const MAX_REQUESTS: usize = 8;
/// Maximum number of connections. Further ones wait.
const MAX_CONNECTIONS: usize = 256;
/// Timeout for the head of a request, and for its body.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Pause after the system could not accept a connection because no file descriptors were left.
const PAUSE: Duration = Duration::from_millis(20);

/// The endpoints of a run, by their fixed port.
#[derive(Default)]
pub(crate) struct Receivers(Mutex<HashMap<Option<u16>, Arc<Receiver>>>);

impl Receivers {
    /// Returns the endpoint on `port`, or on a free port. It starts with the first call.
    ///
    /// # Errors
    /// Returns the reason why it cannot listen.
    pub(crate) fn receiver(&self, port: Option<u16>) -> Result<Arc<Receiver>, Breakage> {
        let mut receivers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(receiver) = receivers.get(&port) {
            return Ok(Arc::clone(receiver));
        }
        let receiver = Receiver::start(port.unwrap_or_default()).map_err(|error| {
            let place = port.map_or_else(|| "loopback".to_owned(), |port| format!("127.0.0.1:{port}"));
            let hint = match (error.kind(), port) {
                (io::ErrorKind::AddrInUse, Some(_)) => {
                    "; another run, or a collector, may listen there: set `port` of `traces`, and the endpoint of the bot"
                }
                _ => "",
            };
            Breakage::environment(format!("cannot listen on {place} for spans: {error}{hint}")).for_good()
        })?;
        let receiver = Arc::new(receiver);
        receivers.insert(port, Arc::clone(&receiver));
        Ok(receiver)
    }

    /// Listens on a free port in place of the usual one.
    #[cfg(test)]
    pub(crate) fn on_any_port(&self) -> Arc<Receiver> {
        let receiver = self.receiver(None).unwrap();
        self.0.lock().unwrap().insert(Some(super::SPAN_PORT), Arc::clone(&receiver));
        receiver
    }
}

/// An endpoint on loopback. Dropping it stops it and closes every connection.
pub(crate) struct Receiver {
    address: SocketAddr,
    routes: Arc<Mutex<Routes>>,
    listening: JoinHandle<()>,
    /// Permit for the only message at a time, for programs that do not pass on trace ids.
    pub(super) alone: Arc<Semaphore>,
}

/// Conversations that spans may belong to.
#[derive(Default)]
struct Routes {
    /// Conversations whose program has an address of its own, by the first part of its path.
    tokens: HashMap<String, Arc<Mailbox>>,
    /// Messages of conversations that share a program.
    traces: HashMap<TraceId, Arc<Mailbox>>,
    /// Conversations that share a program and wait for the reply to a message, or for its spans.
    waiting: Vec<Arc<Mailbox>>,
    /// Traces of conversations that have ended.
    ended: HashSet<TraceId>,
}

impl Receiver {
    fn start(port: u16) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        listener.set_nonblocking(true)?;
        let listener = tokio::net::TcpListener::from_std(listener)?;
        let address = listener.local_addr()?;
        let routes = Arc::new(Mutex::new(Routes::default()));
        let listening = tokio::spawn(listen(listener, Arc::clone(&routes)));
        Ok(Self { address, routes, listening, alone: Arc::new(Semaphore::new(1)) })
    }

    /// Returns its port.
    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }

    /// Returns the base address for exporters, which append `/v1/traces`. With a `token`, everything that is sent there
    /// belongs to one conversation.
    pub(crate) fn endpoint(&self, token: Option<&str>) -> String {
        match token {
            Some(token) => format!("http://{}/{token}", self.address),
            None => format!("http://{}", self.address),
        }
    }

    fn routes(&self) -> MutexGuard<'_, Routes> {
        lock(&self.routes)
    }

    /// Registers a conversation whose program has the address with `token`.
    pub(super) fn open(&self, token: &str, mailbox: &Arc<Mailbox>) {
        self.routes().tokens.insert(token.to_owned(), Arc::clone(mailbox));
    }

    /// Registers a message to a shared program, with its trace.
    pub(super) fn begin(&self, trace: &TraceId, mailbox: &Arc<Mailbox>) {
        let mut routes = self.routes();
        routes.traces.insert(trace.clone(), Arc::clone(mailbox));
        if !routes.waiting.iter().any(|other| Arc::ptr_eq(other, mailbox)) {
            routes.waiting.push(Arc::clone(mailbox));
        }
    }

    /// Notes that a conversation waits for no spans.
    pub(super) fn pause(&self, mailbox: &Arc<Mailbox>) {
        self.routes().waiting.retain(|other| !Arc::ptr_eq(other, mailbox));
    }

    /// Forgets a conversation. Later spans of its traces are recognised and ignored.
    pub(super) fn close(&self, token: Option<&str>, mailbox: &Arc<Mailbox>) {
        let mut routes = self.routes();
        let Routes { tokens, traces, waiting, ended } = &mut *routes;
        if let Some(token) = token {
            tokens.remove(token);
        }
        waiting.retain(|other| !Arc::ptr_eq(other, mailbox));
        traces.retain(|trace, other| {
            let is_its = Arc::ptr_eq(other, mailbox);
            if is_its {
                ended.insert(trace.clone());
            }
            !is_its
        });
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

impl std::fmt::Debug for Receiver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Receiver").field("address", &self.address).finish_non_exhaustive()
    }
}

fn lock(routes: &Mutex<Routes>) -> MutexGuard<'_, Routes> {
    routes.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Accepts connections until the task is aborted, which also closes all connections.
async fn listen(listener: tokio::net::TcpListener, routes: Arc<Mutex<Routes>>) {
    let (mut connections, reading) = (JoinSet::new(), Arc::new(Semaphore::new(MAX_REQUESTS)));
    loop {
        let stream = tokio::select! {
            accepted = listener.accept(), if connections.len() < MAX_CONNECTIONS => match accepted {
                Ok((stream, _)) => stream,
                Err(_) => {
                    tokio::time::sleep(PAUSE).await;
                    continue;
                }
            },
            Some(_) = connections.join_next() => continue,
        };
        let (routes, reading) = (Arc::clone(&routes), Arc::clone(&reading));
        connections.spawn(async move {
            let service = service_fn(|request| {
                let (routes, reading) = (Arc::clone(&routes), Arc::clone(&reading));
                async move { Ok::<_, Infallible>(answer(request, &routes, &reading).await) }
            });
            let mut builder = http1::Builder::new();
            builder.timer(TokioTimer::new()).header_read_timeout(TIMEOUT);
            // A client that disconnects ends the connection with an error that needs no handling.
            let _ = builder.serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

/// Answers a request as a collector does.
async fn answer(request: Request<Incoming>, routes: &Mutex<Routes>, reading: &Semaphore) -> Response<Full<Bytes>> {
    // Only browsers send `Origin`, and a page in a browser must not be able to add spans.
    if request.headers().contains_key(ORIGIN) {
        return plain(StatusCode::FORBIDDEN, "requests of web pages are refused");
    }
    let path = request.uri().path().to_owned();
    let signals = [("/v1/traces", Signal::Traces), ("/v1/logs", Signal::Logs), ("/v1/metrics", Signal::Metrics)];
    let found = signals.iter().find_map(|(suffix, signal)| Some((path.strip_suffix(suffix)?, *signal)));
    let Some((before, signal)) = found.filter(|_| request.method() == Method::POST) else {
        return plain(StatusCode::NOT_FOUND, "spans are sent to /v1/traces with POST");
    };
    let token = before.trim_matches('/');
    let own = lock(routes).tokens.get(token).cloned();
    if own.is_none() && !token.is_empty() {
        return plain(StatusCode::NOT_FOUND, "the conversation with this address has ended");
    }
    if own.as_ref().is_some_and(|mailbox| mailbox.is_full()) {
        return plain(StatusCode::PAYLOAD_TOO_LARGE, "no more spans are kept for this reply");
    }
    let header = |name: HeaderName| {
        let value = request.headers().get(name).and_then(|value| value.to_str().ok());
        value.unwrap_or_default().to_owned()
    };
    let (kind, encoding) = (header(CONTENT_TYPE), header(CONTENT_ENCODING));
    let content = match read(request, signal, &kind, &encoding, reading).await {
        Ok(content) => content,
        Err((status, reason)) => {
            let routes = lock(routes);
            let concerned = own.iter().chain(routes.waiting.iter().filter(|_| own.is_none()));
            concerned.for_each(|mailbox| mailbox.add_unread(&reason));
            return plain(status, &format!("the request cannot be read: {reason}"));
        }
    };
    deliver(content, own, &lock(routes));
    let is_json = kind.starts_with("application/json");
    let mut response = Response::new(Full::from(if is_json { "{}" } else { "" }));
    let kind = if is_json { "application/json" } else { "application/x-protobuf" };
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

/// Reads the body of a request. The error contains the status of the answer.
async fn read(
    request: Request<Incoming>,
    signal: Signal,
    kind: &str,
    encoding: &str,
    reading: &Semaphore,
) -> Result<Content, (StatusCode, String)> {
    let _permit = reading.acquire().await;
    let body = tokio::time::timeout(TIMEOUT, Limited::new(request.into_body(), MAX_BYTES).collect()).await;
    let body = match body {
        Err(_) => return Err((StatusCode::REQUEST_TIMEOUT, "it did not arrive completely".to_owned())),
        Ok(Err(error)) if error.is::<http_body_util::LengthLimitError>() => {
            return Err((StatusCode::PAYLOAD_TOO_LARGE, decoding::too_large()));
        }
        Ok(Err(_)) => return Err((StatusCode::BAD_REQUEST, "it did not arrive completely".to_owned())),
        Ok(Ok(body)) => body.to_bytes(),
    };
    let (kind, encoding) = (kind.to_owned(), encoding.to_owned());
    let decoded = tokio::task::spawn_blocking(move || decoding::read(signal, &kind, &encoding, &body)).await;
    let failed = |reason: String| (StatusCode::BAD_REQUEST, reason);
    decoded.map_err(|error| failed(error.to_string()))?.map_err(failed)
}

/// Passes the content of a request to the conversations that it belongs to.
fn deliver(content: Content, own: Option<Arc<Mailbox>>, routes: &Routes) {
    if let Some(own) = own {
        own.add(content.spans, content.events, content.bytes);
        return;
    }
    let Content { spans, events, bytes } = content;
    let mut parts: Vec<(Arc<Mailbox>, Content)> = Vec::new();
    // Without its trace id, a span belongs to the only conversation that waits for one.
    let only = match routes.waiting.as_slice() {
        [only] => Some(only),
        _ => None,
    };
    let mut strays = 0;
    let mut part_of = |trace: &TraceId| {
        let mailbox = routes.traces.get(trace).or(only.filter(|_| !routes.ended.contains(trace)))?;
        let at = parts.iter().position(|(other, _)| Arc::ptr_eq(other, mailbox)).unwrap_or_else(|| {
            parts.push((Arc::clone(mailbox), Content { bytes, ..Content::default() }));
            parts.len() - 1
        });
        Some(at)
    };
    let placed: Vec<_> = spans.into_iter().map(|span| (part_of(&span.trace), span)).collect();
    let placed_events: Vec<_> = events.into_iter().map(|event| (part_of(&event.0), event)).collect();
    for (at, span) in placed {
        match at.and_then(|at| parts.get_mut(at)) {
            Some((_, part)) => part.spans.push(span),
            None if routes.ended.contains(&span.trace) => {}
            None => strays += 1,
        }
    }
    for (at, event) in placed_events {
        if let Some((_, part)) = at.and_then(|at| parts.get_mut(at)) {
            part.events.push(event);
        }
    }
    parts.into_iter().for_each(|(mailbox, part)| mailbox.add(part.spans, part.events, part.bytes));
    if strays > 0 {
        routes.waiting.iter().for_each(|mailbox| mailbox.add_strays(strays));
    }
}

/// Returns an answer in words.
fn plain(status: StatusCode, message: &str) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(format!("trialrun: {message}\n")));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}
