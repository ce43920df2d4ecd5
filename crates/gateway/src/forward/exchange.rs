//! One forwarded request, from its first byte to the head of the answer.

use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use cassette::Found;
use http_body_util::Full;
use hyper::body::Incoming as Arriving;
use hyper::header::{
    ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderMap, HeaderValue, PROXY_AUTHENTICATE,
    TRANSFER_ENCODING, UPGRADE,
};
use hyper::{Method, Request, Response, StatusCode};
use llm::wire::PATH;
use llm::{AnswerReader, ConversationRole, Incoming, WIRES, Wire, error_chain};
use reqwest::Url;
use serde_json::Value;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::body::{ForwardedBody, PassingBody};
use super::recorded::{self, KeptAnswer};
use super::traffic::{Asked, Kind};
use super::{ForwardedTrial, Upstream};
use crate::connection::{Body, read};
use crate::connection_headers::strip;
use crate::program::REFUSAL;

/// Header in which some clients count the attempts at a request.
const RETRY_COUNT: &str = "x-stainless-retry-count";

/// Forwards a request of `trial`. `rest` is the path below the token, with the query.
pub(crate) async fn forward(
    request: Request<Arriving>,
    trial: Arc<ForwardedTrial>,
    rest: String,
    largest_body: usize,
) -> Response<ForwardedBody> {
    let (parts, body) = request.into_parts();
    let wire = wire_of(&parts.method, &rest);
    if wants_websocket(&parts.headers) {
        // Clients then fall back to plain requests.
        let mut refused = own(StatusCode::UPGRADE_REQUIRED, Bytes::new());
        refused.headers_mut().insert(UPGRADE, HeaderValue::from_static("HTTP/1.1"));
        return refused;
    }
    if wire.is_some() && trial.traffic.program.get().is_some_and(|program| !program.sent(&parts.headers)) {
        return error(wire, 403, REFUSAL);
    }
    let body = match read(body, largest_body, u64::MAX).await {
        Body::Whole(body) => Bytes::from(body),
        Body::TooLarge => {
            trial.traffic.refused();
            return error(wire, 413, &format!("the body has more than {largest_body} bytes"));
        }
        Body::Broken => return error(wire, 400, "the body ended too early"),
    };
    let send = || Sending::new(&trial, parts.method.clone(), rest.clone(), passed_on(&parts.headers), body.clone());
    // Without a tape, a request is sent unread, so that reading it delays nothing.
    let sending = trial.tape.is_none().then(send);
    let is_read = wire.is_some() || trial.tape.is_some();
    let document = is_read.then(|| model::foreign_json::parse_slice(&body).ok()).flatten();
    let for_tape = trial.tape.as_ref().and_then(|_| document.clone());
    let (kind, model) = kind_and_model(wire, &rest, &parts.headers, document);
    let repeats = parts.headers.get(RETRY_COUNT).is_some_and(|count| count.as_bytes() != b"0");
    let asked = Asked { kind, address: Arc::clone(&trial.address), body: digest(&rest, &body), repeats };
    let number = trial.traffic.begin(asked);
    let mut unanswered = Unanswered { trial: Arc::clone(&trial), number: Some(number) };
    let found = trial.tape.as_ref().map(|tape| {
        // A body that is not JSON is compared as text.
        let body = for_tape.unwrap_or_else(|| Value::from(String::from_utf8_lossy(&body)));
        recorded::ask(tape, kind, &parts.method, &rest, body)
    });
    let mut kept = None;
    let answer = match found {
        Some(Found::Recorded(answer)) => {
            trial.traffic.replayed();
            Ok(recorded::response(answer, trial.tape.as_ref().is_some_and(|tape| tape.honours_delays())))
        }
        Some(Found::Stale(reason)) => {
            unanswered.number = None;
            trial.traffic.failed(number, reason.clone());
            return error(wire, 400, &reason);
        }
        found => {
            if let (Some(Found::Live(slot)), Some(tape)) = (found, &trial.tape) {
                kept = Some(KeptAnswer::new(Arc::clone(tape), slot));
            }
            sending.unwrap_or_else(send).answer().await
        }
    };
    unanswered.number = None;
    match answer {
        Ok(answer) => {
            let reader = wire.filter(|_| answer.status().is_success()).and_then(|wire| {
                let kind = answer.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
                // A compressed answer cannot be read, so it must not look like a stream without calls.
                let is_plain =
                    answer.headers().get(CONTENT_ENCODING).is_none_or(|encoding| encoding.as_bytes() == b"identity");
                AnswerReader::new(wire, &model, is_plain && kind.starts_with("text/event-stream"))
            });
            trial.traffic.answered(number, answer.status().as_u16(), reader);
            let idle = trial.upstream.timeouts.idle;
            let (head, arriving) = answer.into_parts();
            if let Some(kept) = &mut kept {
                kept.answered(&head);
            }
            let late = Box::pin(sleep(idle));
            let remaining = head.headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
            let passing =
                PassingBody { arriving, trial, number, idle, late, broken: None, has_ended: false, remaining, kept };
            let mut response = Response::new(ForwardedBody::Passing(Box::new(passing)));
            *response.status_mut() = head.status;
            *response.headers_mut() = without_connection(&head.headers);
            response
        }
        Err(reason) => {
            let host = trial.address.host_str().unwrap_or_default();
            let message = format!("the provider {host} could not be reached: {reason}");
            trial.traffic.failed(number, message.clone());
            error(wire, 502, &message)
        }
    }
}

/// A request on its way to the provider. Dropping it gives the request up.
struct Sending(JoinSet<Result<Response<reqwest::Body>, String>>);

impl Sending {
    fn new(trial: &Arc<ForwardedTrial>, method: Method, rest: String, headers: HeaderMap, body: Bytes) -> Self {
        let (mut task, trial) = (JoinSet::new(), Arc::clone(trial));
        task.spawn(async move { trial.send(method, trial.address_of(&rest)?, headers, body).await });
        Self(task)
    }

    /// Waits for the head of the answer.
    async fn answer(mut self) -> Result<Response<reqwest::Body>, String> {
        match self.0.join_next().await {
            Some(Ok(answer)) => answer,
            Some(Err(error)) => Err(error.to_string()),
            None => Err("it was not sent".to_owned()),
        }
    }
}

/// A request whose answer has not begun. If it is dropped while it has a number, it counts as given up by the client.
struct Unanswered {
    trial: Arc<ForwardedTrial>,
    number: Option<u64>,
}

impl Drop for Unanswered {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            let host = self.trial.address.host_str().unwrap_or_default();
            self.trial.traffic.failed(number, format!("the agent gave up before {host} answered"));
        }
    }
}

impl ForwardedTrial {
    /// Returns the address of a request at the provider.
    fn address_of(&self, rest: &str) -> Result<Url, String> {
        let mut url = Url::clone(&self.address);
        let (path, query) = rest.split_once('?').map_or((rest, None), |(path, query)| (path, Some(query)));
        let base = url.path().trim_end_matches('/').to_owned();
        url.set_path(&format!("{base}{path}"));
        if query.is_some() {
            url.set_query(query);
        }
        // The key must never reach another host.
        match url.origin() == self.address.origin() {
            true => Ok(url),
            false => Err("the path is invalid".to_owned()),
        }
    }

    async fn send(
        &self,
        method: Method,
        url: Url,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Response<reqwest::Body>, String> {
        let Upstream { timeouts, .. } = &*self.upstream;
        tracing::debug!(%method, host = url.host_str(), path = url.path(), "request forwarded");
        let sending = self.client.request(method, url).headers(headers).body(body).send();
        // The connection has its own timeout, which is reported separately.
        match timeout(timeouts.first_byte + timeouts.connect, sending).await {
            Ok(answer) => answer.map(Into::into).map_err(|error| error_chain(&error.without_url())),
            Err(_) => Err(format!("the answer did not start within {} s", timeouts.first_byte.as_secs_f64())),
        }
    }
}

/// Returns the wire format of a request for a message.
fn wire_of(method: &Method, rest: &str) -> Option<&'static dyn Wire> {
    if method == Method::POST { llm::wire_of_path(rest) } else { None }
}

/// Returns the kind of a request, and its model if it names one. `document` is its body.
fn kind_and_model(wire: Option<&dyn Wire>, path: &str, headers: &HeaderMap, document: Option<Value>) -> (Kind, String) {
    let Some(wire) = wire else { return (Kind::Other, String::new()) };
    let header = |name: &str| if name == PATH { Some(path) } else { headers.get(name)?.to_str().ok() };
    let read = match document {
        Some(Value::Object(fields)) => wire.read_fields(&header, fields).ok(),
        _ => None,
    };
    let Some(Incoming { request, .. }) = read else { return (Kind::Main, String::new()) };
    let kind = match request.conversation.role {
        ConversationRole::Main => Kind::Main,
        ConversationRole::Subagent => Kind::SubAgent,
        ConversationRole::Unmarked if !request.tools.is_empty() => Kind::Main,
        ConversationRole::Unmarked => Kind::Side,
    };
    (kind, request.model)
}

fn wants_websocket(headers: &HeaderMap) -> bool {
    headers.get(UPGRADE).is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"websocket"))
}

/// Returns a value that identifies equal requests.
fn digest(path: &str, body: &[u8]) -> u64 {
    static STATE: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    STATE.hash_one((path, body))
}

/// Returns the headers to send to the provider.
fn passed_on(headers: &HeaderMap) -> HeaderMap {
    let mut passed = without_connection(headers);
    passed.remove(HOST);
    passed.remove(CONTENT_LENGTH);
    // A compressed answer could not be counted.
    passed.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    passed
}

/// Returns the headers without those that concern only one connection. The body gets a framing of its own.
fn without_connection(headers: &HeaderMap) -> HeaderMap {
    let mut passed = headers.clone();
    strip(&mut passed);
    passed.remove(TRANSFER_ENCODING);
    passed.remove(PROXY_AUTHENTICATE);
    passed
}

/// Returns an error of the gateway in the format of `wire`, or in the first format if the request does not belong to
/// one.
fn error(wire: Option<&'static dyn Wire>, status: u16, message: &str) -> Response<ForwardedBody> {
    let body = wire.or(WIRES.first().copied()).map(|wire| wire.error(status, None, message).to_string());
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_GATEWAY);
    let mut response = own(status, body.unwrap_or_default().into());
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

fn own(status: StatusCode, body: Bytes) -> Response<ForwardedBody> {
    let mut response = Response::new(ForwardedBody::Own(Full::new(body)));
    *response.status_mut() = status;
    response
}
