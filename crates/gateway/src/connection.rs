//! Handles one request, from its first byte to the last byte of the answer.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::Incoming as Arriving;
use hyper::header::{CONNECTION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, UPGRADE};
use hyper::http::request::Parts;
use hyper::http::uri::PathAndQuery;
use hyper::{Method, Request, Response, StatusCode};
use llm::wire::PATH;
use llm::{Answer, Break, Conversation, Incoming, ProviderError, Reply, Served, SseEvent, SseStream, WIRES, Wire};

use tokio::time::timeout;

use crate::admission::{AdmittedTrial, AdmittedTrials, Auth, SeenRequest};
use crate::body::{End, Pieces};
use crate::program::REFUSAL;

/// Maximum number of bytes read from the body of a request with an unknown token.
const MAX_REFUSED_BODY: u64 = 1024 * 1024;
/// Timeout for the body of a request with an unknown token. A small body arrives together with its head.
const REFUSED_BODY_TIMEOUT: Duration = Duration::from_millis(100);
/// Timeout for the next part of a body.
const BODY_TIMEOUT: Duration = Duration::from_secs(60);

/// Headers in which vendors' clients send a key.
const KEY_HEADERS: [&str; 2] = ["x-api-key", "x-goog-api-key"];

/// Answers one request.
pub(crate) async fn answer(
    request: Request<Arriving>,
    trials: &AdmittedTrials,
    largest_body: usize,
) -> Result<Response<Pieces>, Infallible> {
    let (parts, body) = request.into_parts();
    let signed_in = sign_in(&parts.headers, trials);
    // The body of an admitted request is read before the answer is sent, because a client does not read while it is
    // still writing. The body of a refused request is discarded, and only the part that arrives at once is read.
    let body = match &signed_in {
        Some(_) => read(body, largest_body, u64::MAX).await,
        None => timeout(REFUSED_BODY_TIMEOUT, read(body, 0, MAX_REFUSED_BODY)).await.unwrap_or(Body::TooLarge),
    };
    let method = parts.method.as_str();
    let path = parts.uri.path();
    if parts.method == Method::HEAD && path == "/" {
        return Ok(Response::new(Pieces::whole("")));
    }
    if is_upgrade(&parts.method, path, &parts.headers) {
        return Ok(without_upgrade());
    }
    let asked = WIRES.iter().find(|wire| method == "POST" && wire.serves(path)).copied();
    // Errors need some vendor's format; the first format is used if the path belongs to none.
    let Some(wire) = asked.or(WIRES.first().copied()) else {
        return Ok(empty(StatusCode::NOT_FOUND));
    };
    let Some((trial, auth)) = signed_in else {
        let mut refused = error(wire, 401, None, "the key is missing, unknown or no longer valid");
        refused.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        return Ok(refused);
    };
    if asked.is_some() && !trial.program.sent(&parts.headers) {
        return Ok(error(wire, 403, None, REFUSAL));
    }
    let number = trial.next_number();
    let mut response = match body {
        Body::TooLarge => {
            trial.answered(false);
            error(wire, 413, None, &format!("the body has more than {largest_body} bytes"))
        }
        Body::Broken => error(wire, 400, None, "the body ended too early"),
        Body::Whole(body) => {
            let call = Call { wire, trial: &trial, auth, parts: &parts, number };
            if asked.is_some() { call.message(&body).await } else { call.aside(&body) }
        }
    };
    if let Ok(id) = HeaderValue::try_from(format!("req_{number:04}")) {
        response.headers_mut().insert("request-id", id);
    }
    Ok(response)
}

/// Returns `true` if the request wants a WebSocket on a path that only accepts plain requests.
fn is_upgrade(method: &Method, path: &str, headers: &HeaderMap) -> bool {
    let wants = |value: &HeaderValue| value.as_bytes().eq_ignore_ascii_case(b"websocket");
    *method == Method::GET && headers.get(UPGRADE).is_some_and(wants) && WIRES.iter().any(|wire| wire.serves(path))
}

/// Returns the answer that makes clients fall back to plain requests immediately. After any other answer they retry
/// again and again.
fn without_upgrade() -> Response<Pieces> {
    let mut response = empty(StatusCode::UPGRADE_REQUIRED);
    response.headers_mut().insert(UPGRADE, HeaderValue::from_static("HTTP/1.1"));
    response
}

/// A request with a valid token.
struct Call<'a> {
    wire: &'a dyn Wire,
    trial: &'a Arc<AdmittedTrial>,
    auth: Auth,
    parts: &'a Parts,
    number: u64,
}

impl Call<'_> {
    /// Answers a request for a message.
    async fn message(&self, body: &[u8]) -> Response<Pieces> {
        let target = self.parts.uri.path_and_query().map(PathAndQuery::as_str);
        let read = self.wire.read(&|name| if name == PATH { target } else { self.header(name) }, body);
        let Incoming { request, stream } = match read {
            Ok(incoming) => incoming,
            Err(rejection) => {
                self.saw(None, false);
                self.trial.answered(false);
                return error(self.wire, 400, None, &rejection.message);
            }
        };
        self.saw(Some(&request), stream);
        let pending_request = self.trial.pending.begin(format!("request {} on {}", self.number, self.parts.uri.path()));
        let Served { answer, pending_request: own } = self.trial.model.serve(&request).await;
        self.trial.answered(matches!(answer, Answer::Reply(_) | Answer::Slow { .. }));
        let response = match answer {
            Answer::Reply(reply) if stream => events(all(self.wire.stream(&reply)), End::Whole),
            Answer::Reply(reply) => document(200, self.wire.whole(&reply).to_string()),
            Answer::Slow { reply, delay } if stream => {
                events(all(self.wire.stream(&reply)), End::Whole).map(|body| body.delayed(delay))
            }
            Answer::Slow { reply, delay } => {
                document(200, self.wire.whole(&reply).to_string()).map(|body| body.delayed(delay))
            }
            Answer::Failed(failure) => self.failed(&failure),
            // The request counts as unanswered until the client gives up.
            Answer::Broken { how: Break::Hang, .. } => std::future::pending().await,
            Answer::Broken { how, begun } if stream => self.broken_stream(&how, &begun),
            Answer::Broken { how, begun } => self.broken_document(&how, &begun),
        };
        response.map(|body| body.carrying(own.into_iter().chain([pending_request])))
    }

    /// Answers any other request.
    fn aside(&self, body: &[u8]) -> Response<Pieces> {
        self.saw(None, false);
        let (method, path) = (self.parts.method.as_str(), self.parts.uri.path());
        match WIRES.iter().find_map(|wire| Some((wire, wire.aside(method, path, body)?))) {
            Some((_, Ok(answer))) => document(200, answer.to_string()),
            Some((wire, Err(rejection))) => error(*wire, 400, None, &rejection.message),
            None => error(self.wire, 404, None, &format!("no such endpoint: {method} {path}")),
        }
    }

    fn failed(&self, failure: &ProviderError) -> Response<Pieces> {
        let (status, kind, message, headers): (_, _, _, &[_]) = match failure {
            ProviderError::Http { status, kind, message, headers } => (*status, kind, message.clone(), headers),
            ProviderError::Reported { kind, message } => {
                (self.wire.status_of(kind.as_deref()), kind, message.clone(), &[])
            }
            ProviderError::Failed(failed) => (failed.status.unwrap_or(502), &None, failure.to_string(), &[]),
            ProviderError::Cut | ProviderError::Malformed => (502, &None, failure.to_string(), &[]),
            ProviderError::Exhausted { message } | ProviderError::Unscripted { message } => {
                (400, &None, message.clone(), &[])
            }
        };
        let mut response = error(self.wire, status, kind.as_deref(), &message);
        for (name, value) in headers {
            if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
                response.headers_mut().append(name, value);
            }
        }
        response
    }

    fn broken_stream(&self, how: &Break, begun: &Reply) -> Response<Pieces> {
        let SseStream { mut opening, mut content, .. } = self.wire.stream(begun);
        match how {
            Break::Cut => {
                // Sends the first half of the content, then the first half of the next event.
                let next = content.split_off(content.len() / 2);
                let torn = next.first().map(|event| event.to_string().into_bytes()).unwrap_or_default();
                opening.append(&mut content);
                let torn = Bytes::copy_from_slice(&torn[..torn.len() / 2]);
                stream(opening.iter().map(sent).chain([torn]), End::Cut)
            }
            Break::Malformed => {
                let torn = content
                    .first()
                    .or(opening.last())
                    .map(|event| SseEvent { event: event.event, data: torn_in_two(&event.data) });
                opening.extend(torn);
                events(opening, End::Whole)
            }
            Break::ErrorEvent { kind, message } => {
                opening.push(self.wire.error_event(kind.as_deref(), message));
                events(opening, End::Whole)
            }
            Break::Hang | Break::HangStream => events(opening, End::Hang),
        }
    }

    fn broken_document(&self, how: &Break, begun: &Reply) -> Response<Pieces> {
        let whole = self.wire.whole(begun).to_string();
        match how {
            Break::Cut => json(200, Pieces::half(whole, End::Cut)),
            Break::Malformed => document(200, torn_in_two(&whole)),
            Break::ErrorEvent { kind, message } => {
                error(self.wire, self.wire.status_of(kind.as_deref()), kind.as_deref(), message)
            }
            Break::Hang | Break::HangStream => json(200, Pieces::half(whole, End::Hang)),
        }
    }

    fn saw(&self, request: Option<&llm::Request>, stream: bool) {
        self.trial.saw(SeenRequest {
            method: self.parts.method.to_string(),
            path: self.parts.uri.path().to_owned(),
            auth: self.auth,
            user_agent: self.header("user-agent").map(str::to_owned),
            stream,
            conversation: request.map_or_else(Conversation::default, |request| request.conversation.clone()),
            model: request.map(|request| request.model.clone()),
            tools: request.map(|request| request.tool_names().map(str::to_owned).collect()).unwrap_or_default(),
        });
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.parts.headers.get(name)?.to_str().ok()
    }
}

/// Returns the trial to which the request's token belongs, and the header that carried the token.
fn sign_in(headers: &HeaderMap, trials: &AdmittedTrials) -> Option<(Arc<AdmittedTrial>, Auth)> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let key = KEY_HEADERS.iter().find_map(|name| trials.find(text(name)?)).map(|trial| (trial, Auth::ApiKey));
    key.or_else(|| {
        let (scheme, token) = text("authorization")?.split_once(' ')?;
        let token = scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())?;
        trials.find(token).map(|trial| (trial, Auth::Bearer))
    })
}

/// Returns the answer to a request that does not come from a program on this machine.
pub(crate) fn foreign() -> Response<Pieces> {
    let message = "this address is for programs on this machine, and not for web pages";
    WIRES.first().map_or_else(|| empty(StatusCode::FORBIDDEN), |wire| error(*wire, 403, None, message))
}

pub(crate) enum Body {
    Whole(Vec<u8>),
    TooLarge,
    Broken,
}

/// Reads the whole body. Bytes beyond `largest` are read but not kept; reading stops after `most` bytes.
pub(crate) async fn read(mut body: Arriving, largest: usize, most: u64) -> Body {
    let mut kept = Vec::new();
    let mut too_large = false;
    let mut seen = 0;
    loop {
        let frame = match timeout(BODY_TIMEOUT, body.frame()).await {
            Ok(Some(Ok(frame))) => frame,
            Ok(None) => break,
            Ok(Some(Err(_))) | Err(_) => return Body::Broken,
        };
        let Some(data) = frame.data_ref() else { continue };
        seen += data.len() as u64;
        if seen > most {
            return Body::TooLarge;
        }
        too_large |= kept.len() + data.len() > largest;
        if too_large {
            kept = Vec::new();
        } else {
            kept.extend_from_slice(data);
        }
    }
    if too_large { Body::TooLarge } else { Body::Whole(kept) }
}

fn all(SseStream { opening, content, closing }: SseStream) -> Vec<SseEvent> {
    [opening, content, closing].concat()
}

fn sent(event: &SseEvent) -> Bytes {
    Bytes::from(event.to_string())
}

fn torn_in_two(text: &str) -> String {
    text.chars().take(text.chars().count() / 2).collect()
}

fn events(events: impl IntoIterator<Item = SseEvent>, end: End) -> Response<Pieces> {
    stream(events.into_iter().map(|event| sent(&event)), end)
}

fn stream(pieces: impl IntoIterator<Item = Bytes>, end: End) -> Response<Pieces> {
    let mut response = Response::new(Pieces::stream(pieces, end));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream; charset=utf-8"));
    response.headers_mut().insert("cache-control", HeaderValue::from_static("no-cache"));
    response
}

fn document(status: u16, text: String) -> Response<Pieces> {
    json(status, Pieces::whole(text))
}

fn json(status: u16, body: Pieces) -> Response<Pieces> {
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

fn empty(status: StatusCode) -> Response<Pieces> {
    let mut response = Response::new(Pieces::whole(""));
    *response.status_mut() = status;
    response
}

fn error(wire: &dyn Wire, status: u16, kind: Option<&str>, message: &str) -> Response<Pieces> {
    document(status, wire.error(status, kind, message).to_string())
}
