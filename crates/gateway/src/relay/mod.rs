//! A proxy for processes whose network is closed: it connects only to allowed hosts, and reports every host that the
//! processes request.
//!
//! The processes send `CONNECT host:port`, or plain HTTP requests with the whole address. The host name is first
//! converted to a single spelling, which is used both for comparing it with the rules and for connecting. In a tunnel,
//! the names in a TLS greeting and in the first plain HTTP request are compared too. The relay resolves names itself,
//! and does not connect to this machine because a name leads there.

mod lookup;
mod opening;
mod tunnel;
mod upstream;

use std::collections::HashSet;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{Either, Full};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HOST, HeaderValue};
use hyper::http::uri::{Authority, Scheme};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode, Uri};
use hyper_util::rt::{TokioIo, TokioTimer};
use llm::Proxies;
use model::{Destination, EgressAttempt, EgressVerdict, EgressWay, HostPattern};
use tokio::net::{TcpListener, TcpStream};

use self::tunnel::Tunnel;
use self::upstream::Upstream;
use crate::connection_headers::strip;
use crate::server::serve_connections;

/// Maximum number of simultaneous connections from one process tree. Further ones wait.
const MOST_CONNECTIONS: usize = 256;

/// Maximum number of different attempts that are reported.
const MOST_ATTEMPTS: usize = 1000;

/// Maximum length of an invalid host in a report, in characters.
const LONGEST_HOST: usize = 100;

/// Timeout for the head of a request.
const HEADER_TIMEOUT: Duration = Duration::from_secs(30);

type Body = Either<Full<Bytes>, Incoming>;

/// Receiver of attempts, with the host as it was written.
type Report = dyn Fn(EgressAttempt, &str) + Send + Sync;

/// Hosts that a relay connects to.
#[derive(Debug, Clone, Default)]
pub struct RelayRules {
    /// Addresses of the configured model.
    pub model: Vec<Destination>,
    /// Further hosts.
    pub allowed: Vec<HostPattern>,
    /// Addresses of the program that uses the relay. Connections to them are not reported.
    pub own: Vec<Destination>,
}

impl RelayRules {
    fn is_model(&self, destination: &Destination) -> bool {
        self.model.contains(destination)
    }

    fn allow(&self, destination: &Destination) -> bool {
        self.is_model(destination) || self.allowed.iter().any(|pattern| pattern.includes(destination))
    }
}

/// The way out for the processes of one trial.
pub struct Relay {
    rules: RelayRules,
    upstream: Upstream,
    report: Box<Report>,
    request: Box<dyn Fn(&str) + Send + Sync>,
    reported: Mutex<HashSet<EgressAttempt>>,
    /// Error of the last connection to the model, if it failed.
    model_failure: Mutex<Option<String>>,
}

impl Relay {
    /// Creates a relay with these rules, which uses the proxies of the machine. It passes each attempt to `report` once,
    /// with the host as it was written: a secret in it can be recognised only there. The address and the headers of
    /// each plain HTTP request are passed to `request`.
    pub fn new(
        rules: RelayRules,
        proxies: &Proxies,
        report: impl Fn(EgressAttempt, &str) + Send + Sync + 'static,
        request: impl Fn(&str) + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Self {
            rules,
            upstream: Upstream::of(proxies),
            report: Box::new(report),
            request: Box::new(request),
            reported: Mutex::default(),
            model_failure: Mutex::default(),
        })
    }

    /// Serves requests to the proxy until the future is dropped. `by_command` is true if the processes are not the
    /// agent's.
    pub async fn serve_proxy(self: &Arc<Self>, listener: &TcpListener, by_command: bool) {
        serve_connections(listener, MOST_CONNECTIONS, |stream| {
            let client = Client { relay: Arc::clone(self), by_command, tunnel: Mutex::default() };
            client.serve(stream)
        })
        .await;
    }

    /// Forwards each connection to `destination` until the future is dropped. `by_command` is true if the processes are
    /// not the agent's.
    pub async fn forward(self: &Arc<Self>, listener: &TcpListener, destination: Destination, by_command: bool) {
        serve_connections(listener, MOST_CONNECTIONS, |mut stream| {
            let (relay, destination) = (Arc::clone(self), destination.clone());
            async move {
                if !relay.rules.own.contains(&destination) {
                    relay.note(&destination, &destination.host, EgressWay::Forward, by_command, None);
                }
                if let Ok(mut server) = relay.dial(&destination).await {
                    let _ = tokio::io::copy_bidirectional(&mut stream, &mut server).await;
                }
            }
        })
        .await;
    }

    /// Returns the error of the last connection to the model, if it failed.
    pub fn model_failure(&self) -> Option<String> {
        self.model_failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Connects to a host and remembers whether the model can be reached.
    async fn dial(&self, destination: &Destination) -> Result<upstream::Stream, String> {
        let dialed = self.upstream.dial(destination).await;
        if self.rules.is_model(destination) {
            let failure = dialed.as_ref().err().map(|error| format!("cannot connect to {destination}: {error}"));
            *self.model_failure.lock().unwrap_or_else(PoisonError::into_inner) = failure;
        }
        dialed
    }

    /// Reports an attempt, which was refused if there is a reason.
    fn note(&self, destination: &Destination, written: &str, way: EgressWay, by_command: bool, refused: Option<&str>) {
        let attempt = EgressAttempt {
            host: destination.host.clone(),
            port: Some(destination.port),
            verdict: if refused.is_some() { EgressVerdict::Refused } else { EgressVerdict::Allowed },
            way,
            is_model: self.rules.is_model(destination),
            by_command,
            reason: refused.map(str::to_owned),
        };
        self.report(attempt, written);
    }

    fn report(&self, attempt: EgressAttempt, written: &str) {
        let mut reported = self.reported.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = reported.len() <= MOST_ATTEMPTS && reported.insert(attempt.clone());
        if !is_new {
            return;
        }
        let is_last = reported.len() > MOST_ATTEMPTS;
        drop(reported);
        let rest = || format!("more than {MOST_ATTEMPTS} hosts were tried, and further ones are not listed");
        (self.report)(if is_last { EgressAttempt { reason: Some(rest()), ..attempt } } else { attempt }, written);
    }
}

impl std::fmt::Debug for Relay {
    /// Omits the machine's proxies, which may contain a password.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Relay").field("rules", &self.rules).finish_non_exhaustive()
    }
}

/// One connection to the proxy.
struct Client {
    relay: Arc<Relay>,
    by_command: bool,
    /// Tunnel that begins once the answer to `CONNECT` is sent.
    tunnel: Mutex<Option<Tunnel>>,
}

impl Client {
    async fn serve(self, stream: TcpStream) {
        let mut builder = http1::Builder::new();
        builder.timer(TokioTimer::new()).header_read_timeout(HEADER_TIMEOUT);
        let service = service_fn(async |request| Ok::<_, Infallible>(self.answer(request).await));
        // A client that disconnects ends the connection with an error that needs no handling.
        let _ = builder.serve_connection(TokioIo::new(stream), service).with_upgrades().await;
        let tunnel = self.tunnel.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(tunnel) = tunnel {
            tunnel.run(&self.relay, self.by_command).await;
        }
    }

    async fn answer(&self, request: Request<Incoming>) -> Response<Body> {
        let is_tunnel = request.method() == Method::CONNECT;
        if !is_tunnel {
            let values = request.headers().values().map(|value| String::from_utf8_lossy(value.as_bytes()));
            let head: Vec<_> = std::iter::once(request.uri().to_string().into()).chain(values).collect();
            (self.relay.request)(&head.join("\n"));
        }
        let target = request.uri();
        let Some(authority) = target.authority().filter(|_| is_tunnel || target.scheme() == Some(&Scheme::HTTP)) else {
            return answer(StatusCode::BAD_REQUEST, "this is a proxy; send `CONNECT host:port` or `GET http://host/`");
        };
        let destination = match self.destination(authority, if is_tunnel { None } else { Some(80) }) {
            Ok(destination) => destination,
            Err(refusal) => return *refusal,
        };
        if !self.relay.rules.allow(&destination) {
            let reason = "not allowed by the network policy";
            self.relay.note(&destination, authority.host(), EgressWay::Proxy, self.by_command, Some(reason));
            // The host as it was written, so that the masks find a secret in it.
            let message = format!("{}:{} is {reason} of this trial", authority.host(), destination.port);
            return answer(StatusCode::FORBIDDEN, &message);
        }
        self.relay.note(&destination, authority.host(), EgressWay::Proxy, self.by_command, None);
        if is_tunnel { self.connect(request, destination).await } else { self.pass_on(request, &destination).await }
    }

    /// Returns the destination of a request, or the answer that refuses it.
    fn destination(&self, authority: &Authority, port: Option<u16>) -> Result<Destination, Box<Response<Body>>> {
        let port = match (authority.port_u16(), port) {
            (Some(port), _) | (None, Some(port)) if authority.port().is_none_or(|given| given == port) => port,
            _ => return Err(Box::new(answer(StatusCode::BAD_REQUEST, "the port is missing or invalid"))),
        };
        let destination = Destination::new(authority.host(), port);
        let problem = match &destination {
            None => "not a valid host",
            Some(_) if authority.as_str().contains('@') => "written with a user name",
            Some(destination) => return Ok(destination.clone()),
        };
        let host = destination
            .map_or_else(|| authority.host().chars().take(LONGEST_HOST).collect(), |destination| destination.host);
        let message = format!("{} is {problem}", authority.host());
        let destination = Destination { host, port };
        self.relay.note(&destination, authority.host(), EgressWay::Proxy, self.by_command, Some(problem));
        Err(Box::new(answer(StatusCode::FORBIDDEN, &message)))
    }

    /// Opens a tunnel.
    async fn connect(&self, mut request: Request<Incoming>, destination: Destination) -> Response<Body> {
        match self.relay.dial(&destination).await {
            Ok(server) => {
                let client = hyper::upgrade::on(&mut request);
                *self.tunnel.lock().unwrap_or_else(PoisonError::into_inner) =
                    Some(Tunnel { client, server, destination });
                Response::new(Either::Left(Full::default()))
            }
            Err(error) => unreachable(&destination, &error),
        }
    }

    /// Sends a plain HTTP request to its host.
    async fn pass_on(&self, request: Request<Incoming>, destination: &Destination) -> Response<Body> {
        let (mut parts, body) = request.into_parts();
        strip(&mut parts.headers);
        // The host that was allowed decides, whatever the header says.
        let host = if destination.port == 80 { destination.host.clone() } else { destination.to_string() };
        let path = parts.uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
        let (Ok(uri), Ok(host)) = (Uri::try_from(path), HeaderValue::try_from(host)) else {
            return answer(StatusCode::BAD_REQUEST, "the address is not valid");
        };
        parts.uri = uri;
        parts.headers.insert(HOST, host);
        let sent = self.relay.upstream.send(destination, Request::from_parts(parts, body)).await;
        match sent {
            Ok(mut response) => {
                strip(response.headers_mut());
                response.map(Either::Right)
            }
            Err(error) => unreachable(destination, &error),
        }
    }
}

fn unreachable(destination: &Destination, error: &str) -> Response<Body> {
    answer(StatusCode::BAD_GATEWAY, &format!("cannot connect to {destination}: {error}"))
}

/// Returns an answer from the relay itself.
fn answer(status: StatusCode, message: &str) -> Response<Body> {
    let mut response = Response::new(Either::Left(Full::from(format!("trialrun: {message}\n"))));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}
