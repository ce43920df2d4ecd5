//! Sends one request and reads its response; retries if that is safe or configured.

use std::fmt::Write;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use model::{Ending, Step};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderValue, LOCATION, RETRY_AFTER};
use reqwest::{Client, Response, StatusCode};
use serde_json::Value;
use tokio::time::timeout;

use super::settings::Settings;
use super::stream::{Framing, Reader, StreamContent, StreamError};
use super::text::{clipped, one_line};
use crate::answer::Answer;
use crate::turn::Turn;
use model::millis;

/// Timeout for the rest of a response whose answer is complete. If the response is read to its end, the connection can
/// be reused.
const REST: Duration = Duration::from_millis(50);
/// Maximum size of a response that is recorded, in bytes.
const MAX_RECORDED_BYTES: usize = 16 * 1024;
/// Delay before the first retry of a connection. Each further delay is four times as long.
const PAUSE: Duration = Duration::from_millis(100);
/// Maximum delay before a retry.
const MAX_PAUSE: Duration = Duration::from_secs(30);

/// Content of a request.
#[derive(Debug)]
pub(super) struct RequestBody {
    pub(super) text: String,
    pub(super) is_json: bool,
}

impl RequestBody {
    /// Converts `body` to the text of a request: a string is kept unchanged, anything else becomes JSON.
    pub(super) fn of(body: Value) -> Self {
        match body {
            Value::String(text) => Self { is_json: serde_json::from_str::<Value>(&text).is_ok(), text },
            other => Self { text: other.to_string(), is_json: true },
        }
    }
}

/// Content of a response.
#[derive(Debug)]
pub(super) enum ResponseContent {
    /// A complete document, with its content type.
    Document(String, DocumentKind),
    /// A stream.
    Stream(Box<StreamContent>),
}

/// Content type of a document, as far as it matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DocumentKind {
    Json,
    Html,
    Other,
}

/// Failure of a request.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) kind: FaultKind,
    /// Description in one line.
    pub(super) reason: String,
    /// Part of the response that was received.
    pub(super) received: String,
    /// Part of the response that was parsed.
    pub(super) answer: Option<Box<Answer>>,
    /// Delay that the agent requests before a retry.
    retry_after: Option<Duration>,
}

/// Header with the trace that a message belongs to.
const TRACEPARENT: &str = "traceparent";

/// Kind of a failure, which determines who is at fault.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum FaultKind {
    /// There was no connection, so nothing was sent.
    Unreachable,
    /// The connection closed before a response began.
    Closed,
    /// The status is not a success status.
    Status(u16),
    /// The response is truncated, too large, or invalid.
    Spoilt,
    /// The user's configuration for this agent has an error.
    Test,
    /// The trial must stop.
    Stopped(Ending),
}

impl Fault {
    pub(super) fn new(kind: FaultKind, reason: impl Into<String>) -> Self {
        Self { kind, reason: reason.into(), received: String::new(), answer: None, retry_after: None }
    }

    /// Adds the received response.
    pub(super) fn of(self, received: String) -> Self {
        Self { received, ..self }
    }

    /// Adds the part that was parsed before.
    pub(super) fn after(self, answer: impl Into<Box<Answer>>) -> Self {
        Self { answer: Some(answer.into()), ..self }
    }
}

impl From<Ending> for Fault {
    fn from(ending: Ending) -> Self {
        Self::new(FaultKind::Stopped(ending), "")
    }
}

/// Received part of a response. It can be read even after the request was abandoned.
#[derive(Debug, Default)]
pub(super) struct Received(Mutex<ReceivedData>);

/// Received part of a response.
#[derive(Debug, Default)]
struct ReceivedData {
    /// Status and content type of the response.
    head: String,
    /// Number of received bytes.
    seen: usize,
    /// First bytes of the body.
    kept: Vec<u8>,
}

impl Received {
    fn lock(&self) -> MutexGuard<'_, ReceivedData> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Formats the response for users; empty if nothing was received.
    pub(super) fn describe(&self) -> String {
        let data = self.lock();
        if data.head.is_empty() {
            return String::new();
        }
        let body = String::from_utf8_lossy(&data.kept);
        let more = data.seen.saturating_sub(data.kept.len());
        let more = if more > 0 { format!("\n[… {more} bytes more]") } else { String::new() };
        let body = if data.seen == 0 { "(no body)".into() } else { body };
        format!("{}\n\n{body}{more}", data.head)
    }
}

/// Sends requests.
#[derive(Debug, Clone, Copy)]
pub(super) struct Exchange<'a> {
    pub(super) client: &'a Client,
    pub(super) settings: &'a Settings,
    /// Trace that the message belongs to, if spans are received.
    pub(super) traceparent: Option<&'a str>,
    /// Received part of the last response.
    pub(super) received_data: &'a Received,
}

impl Exchange<'_> {
    /// Sends `request_body` until there is a response, or until retrying does not help.
    pub(super) async fn run(&self, request_body: &RequestBody, turn: &mut Turn) -> Result<ResponseContent, Fault> {
        turn.raw("http", &clipped(&self.sent(request_body), MAX_RECORDED_BYTES));
        let mut tried = 0;
        loop {
            tried += 1;
            let fault = match self.once(request_body, turn).await {
                Ok(content) => return Ok(content),
                Err(fault) => fault,
            };
            let Some(wait) = self.pause(&fault, tried) else { return Err(fault) };
            let status = if let FaultKind::Status(status) = fault.kind { Some(status) } else { None };
            let delay_ms = Some(millis(wait));
            turn.record(Step::Retry { attempt: tried, status, error: fault.reason, delay_ms })?;
            tokio::time::sleep(wait).await;
        }
    }

    /// Formats the request for users.
    pub(super) fn sent(&self, request_body: &RequestBody) -> String {
        let mut sent = format!("{} {}\n", self.settings.method, self.settings.shown_url());
        for (name, value) in &self.settings.headers {
            let value = if value.is_sensitive() { "[masked]" } else { value.to_str().unwrap_or("[not text]") };
            let _ = writeln!(sent, "{name}: {value}");
        }
        let _ = write!(sent, "\n{}", request_body.text);
        sent
    }

    /// Returns the delay before `request_body` is sent again; `None` if it is not sent again.
    fn pause(&self, fault: &Fault, tried: u64) -> Option<Duration> {
        let Settings { retries, retry_on, .. } = self.settings;
        let again = match fault.kind {
            FaultKind::Unreachable => true,
            FaultKind::Closed => retry_on.closed,
            FaultKind::Status(status) => retry_on.statuses.contains(&status),
            FaultKind::Spoilt | FaultKind::Test | FaultKind::Stopped(_) => false,
        };
        let exponent = u32::try_from(tried.saturating_sub(1)).unwrap_or(u32::MAX);
        let usual = PAUSE.saturating_mul(4_u32.saturating_pow(exponent));
        (again && tried <= *retries).then(|| fault.retry_after.unwrap_or(usual).min(MAX_PAUSE))
    }

    async fn once(&self, request_body: &RequestBody, turn: &mut Turn) -> Result<ResponseContent, Fault> {
        let Settings { url, method, headers, stream, .. } = self.settings;
        *self.received_data.lock() = ReceivedData::default();
        let kind = if request_body.is_json { "application/json" } else { "text/plain; charset=utf-8" };
        let accept = if *stream {
            "text/event-stream, application/json;q=0.9, */*;q=0.8"
        } else {
            "application/json, */*;q=0.8"
        };
        let mut request = self.client.request(method.clone(), url.clone());
        for (name, value) in [(CONTENT_TYPE, kind), (ACCEPT, accept)] {
            if !headers.contains_key(&name) {
                request = request.header(name, HeaderValue::from_static(value));
            }
        }
        if let Some(traceparent) = self.traceparent.filter(|_| !headers.contains_key(TRACEPARENT)) {
            request = request.header(TRACEPARENT, traceparent);
        }
        let response = request.headers(headers.clone()).body(request_body.text.clone()).send().await;
        let response = response.map_err(|error| self.lost(error))?;
        if !response.status().is_success() {
            return Err(self.refused(response, turn).await);
        }
        Arriving::of(response, self).read(turn).await
    }

    /// Returns the failure for a request that got no response.
    fn lost(&self, error: reqwest::Error) -> Fault {
        let is_connect = error.is_connect();
        let error = error.without_url();
        let error_text = llm::error_chain(&error);
        let to = format!("{} {}", self.settings.method, self.settings.shown_url());
        if llm::is_refused(&error) {
            return Fault::new(FaultKind::Unreachable, format!("{to}: connection refused; is the bot running?"));
        }
        if is_connect {
            return Fault::new(FaultKind::Unreachable, format!("{to}: no connection: {error_text}"));
        }
        // These words occur in errors about responses that could not be parsed.
        match error_text.contains("invalid") || error_text.contains("parse") {
            true => {
                let fault = Fault::new(FaultKind::Spoilt, format!("{to}: the response is not HTTP: {error_text}"));
                Fault { received: "(not HTTP)".to_owned(), ..fault }
            }
            false => Fault::new(
                FaultKind::Closed,
                format!("{to}: the connection closed before there was an answer: {error_text}"),
            ),
        }
    }

    /// Returns the failure for a response that has no success status.
    async fn refused(&self, response: Response, turn: &mut Turn) -> Fault {
        let status = response.status();
        let header = |name| response.headers().get(name).and_then(|value| value.to_str().ok());
        let seconds = header(RETRY_AFTER).and_then(|value| value.trim().parse().ok());
        let location = header(LOCATION).filter(|_| status.is_redirection()).map(|location| self.location(location));
        let mut arriving = Arriving::of(response, self);
        // Even an incomplete error response is an error response.
        while let Ok(Some(bytes)) = arriving.next().await {
            arriving.keep(&bytes);
        }
        let received = self.received_data.describe();
        turn.raw("http", &received);
        let to = format!("{} {} answered {}", self.settings.method, self.settings.shown_url(), shown_status(status));
        let body = String::from_utf8_lossy(&self.received_data.lock().kept).into_owned();
        let body = one_line(&body);
        let reason = match location {
            Some(location) => {
                format!(
                    "{to}, which redirects to {location}; redirects are not followed, so set `url` to the new address"
                )
            }
            None if body.is_empty() => to,
            None => format!("{to}: {body}"),
        };
        let retry_after = seconds.map(Duration::from_secs);
        Fault { received, retry_after, ..Fault::new(FaultKind::Status(status.as_u16()), reason) }
    }

    /// Returns the target of a redirect without its query and fragment, which may contain secrets.
    fn location(&self, location: &str) -> String {
        let joined = self.settings.url.join(location).map_or_else(|_| location.to_owned(), String::from);
        joined.split(['?', '#']).next().unwrap_or_default().to_owned()
    }
}

/// A response that is being received.
struct Arriving<'a> {
    response: Response,
    exchange: Exchange<'a>,
}

impl<'a> Arriving<'a> {
    fn of(response: Response, exchange: &Exchange<'a>) -> Self {
        let mut head = shown_status(response.status());
        if let Some(kind) = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()) {
            let _ = write!(head, "\ncontent-type: {kind}");
        }
        exchange.received_data.lock().head = head;
        Self { response, exchange: *exchange }
    }

    async fn read(mut self, turn: &mut Turn) -> Result<ResponseContent, Fault> {
        let read = match self.framing() {
            None => self.document().await,
            Some(framing) => self.stream(framing, turn).await,
        };
        let received = self.exchange.received_data.describe();
        turn.raw("http", &received);
        read.map_err(|fault| Fault { received, ..fault })
    }

    /// Returns the framing of a streamed response according to its content type; `None` for a document.
    fn framing(&self) -> Option<Framing> {
        match self.kind().as_str() {
            "text/event-stream" => Some(Framing::Events),
            "application/x-ndjson" | "application/ndjson" | "application/jsonl" | "application/x-jsonlines" => {
                Some(Framing::Lines)
            }
            kind if is_json(kind) => None,
            _ => Some(Framing::Open),
        }
    }

    fn kind(&self) -> String {
        let kind = self.response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
    }

    async fn document(&mut self) -> Result<ResponseContent, Fault> {
        let mut body = Vec::new();
        while let Some(bytes) = self.next().await? {
            self.keep(&bytes);
            body.extend_from_slice(&bytes);
        }
        let text = String::from_utf8(body).map_err(|error| {
            let offset = error.utf8_error().valid_up_to();
            Fault::new(FaultKind::Spoilt, format!("the answer is not UTF-8, at byte {offset}"))
        })?;
        Ok(ResponseContent::Document(text, DocumentKind::Json))
    }

    async fn stream(&mut self, framing: Framing, turn: &mut Turn) -> Result<ResponseContent, Fault> {
        let comes_in_pieces = framing != Framing::Open || self.response.content_length().is_none();
        let mut reader = Reader::new(framing, self.exchange.settings.parser.clone());
        loop {
            let bytes = match self.next().await {
                Ok(Some(bytes)) => bytes,
                Ok(None) => break,
                Err(fault) => return Err(fault.after(reader.so_far())),
            };
            self.keep(&bytes);
            if let Err(error) = reader.take(&bytes) {
                return Err(spoilt(&error).after(reader.so_far()));
            }
            if comes_in_pieces && reader.speaks() {
                turn.speaks();
            }
            if reader.is_over() {
                let rest = async { while let Ok(Some(_)) = self.next().await {} };
                let _ = timeout(REST, rest).await;
                break;
            }
        }
        match reader.finish() {
            Ok(StreamContent { plain: Some(text), .. }) => {
                let is_html = matches!(self.kind().as_str(), "text/html" | "application/xhtml+xml");
                let kind = if is_html { DocumentKind::Html } else { DocumentKind::Other };
                Ok(ResponseContent::Document(text, kind))
            }
            Ok(read) => Ok(ResponseContent::Stream(Box::new(read))),
            Err((error, answer)) => Err(spoilt(&error).after(answer)),
        }
    }

    /// Returns the next bytes of the response; `None` at its end.
    async fn next(&mut self) -> Result<Option<bytes::Bytes>, Fault> {
        let bytes = self.response.chunk().await.map_err(|error| {
            let error_text = llm::error_chain(&error.without_url());
            let is_cut = ["error reading a body", "unexpected end", "unexpected EOF", "closed"]
                .iter()
                .any(|sign| error_text.contains(sign));
            let what = if is_cut { "the answer was cut off" } else { "the answer cannot be read" };
            Fault::new(FaultKind::Spoilt, format!("{what}: {error_text}"))
        })?;
        let most = self.exchange.settings.largest;
        let seen = {
            let mut data = self.exchange.received_data.lock();
            data.seen += bytes.as_ref().map_or(0, bytes::Bytes::len);
            data.seen
        };
        if seen > most {
            let reason = format!("the answer is larger than {most} bytes, the limit (`max_response_bytes`)");
            return Err(Fault::new(FaultKind::Spoilt, reason));
        }
        Ok(bytes)
    }

    fn keep(&self, bytes: &[u8]) {
        let mut data = self.exchange.received_data.lock();
        let room = MAX_RECORDED_BYTES.saturating_sub(data.kept.len()).min(bytes.len());
        data.kept.extend_from_slice(&bytes[..room]);
    }
}

fn is_json(kind: &str) -> bool {
    kind == "application/json" || kind == "text/json" || kind.ends_with("+json")
}

fn spoilt(error: &StreamError) -> Fault {
    let reason = match error {
        StreamError::Reported(what) => format!("the stream reports an error: {}", one_line(what)),
        StreamError::Unreadable(what) => format!("the answer is unreadable: {}", one_line(what)),
        StreamError::Cut => "the stream was cut off: it ended without its end marker".to_owned(),
    };
    Fault::new(FaultKind::Spoilt, reason)
}

fn shown_status(status: StatusCode) -> String {
    match status.canonical_reason() {
        Some(reason) => format!("{} {reason}", status.as_u16()),
        None => status.as_u16().to_string(),
    }
}
