//! One request and its response.

mod document;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use model::foreign_json;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap};
use reqwest::{Client, Response, Url};
use serde_json::Value;
use tokio::time::timeout;

use super::unreadable;
use crate::credentials::Key;
use crate::failure::clipped;
use crate::frames::Frames;
use crate::wire::{Assemble, BadResponse, Dialect, Framing, Progress, ReportedError};
use crate::{Failure, FailureKind, PendingRequests, Policy, Reply, Request, error_chain, retry_after};

/// Marker that some vendors send at the end of an event stream.
const END: &[u8] = b"[DONE]";
/// Timeout for reading the rest of a complete response, so that the connection can serve the next request.
const REST: Duration = Duration::from_millis(50);
/// Maximum number of bytes that are read of an error.
const MAX_ERROR_BYTES: usize = 64 * 1024;

/// Endpoint to which requests are sent.
pub(super) struct Exchange {
    client: Client,
    url: Url,
    headers: HeaderMap,
    key: Option<Key>,
    dialect: &'static dyn Dialect,
}

impl Exchange {
    /// Returns the address to which requests are sent.
    pub(super) fn address(&self) -> &str {
        self.url.as_str()
    }

    pub(super) fn new(
        client: Client,
        url: Url,
        headers: HeaderMap,
        key: Option<Key>,
        dialect: &'static dyn Dialect,
    ) -> Self {
        Self { client, url, headers, key, dialect }
    }

    /// Sends `request` once. It is registered in `pending` until a response starts.
    pub(super) async fn run(
        &self,
        request: &Request,
        policy: &Policy,
        pending: &PendingRequests,
    ) -> Result<Reply, Failure> {
        let attempt = Attempt {
            exchange: self,
            request,
            policy,
            sent: self.sent(request, policy.stream),
            has_begun: AtomicBool::new(false),
        };
        let total = policy.timeouts.total;
        let done = match timeout(total, attempt.run(pending)).await {
            Ok(done) => done,
            Err(_) => Err(attempt.unfinished(total)),
        };
        done.map_err(|failure| self.scrubbed(failure))
    }

    /// Describes the request and its address, without the query, which may contain secrets.
    fn sent(&self, request: &Request, stream: bool) -> String {
        let mut url = self.below(&self.dialect.target(request, stream));
        url.set_query(None);
        format!("POST {url} for {}", request.model)
    }

    fn scrubbed(&self, mut failure: Failure) -> Failure {
        let Some(key) = &self.key else { return failure };
        failure.message = key.scrub(&failure.message);
        failure.sent = key.scrub(&failure.sent);
        failure.code = failure.code.map(|kind| key.scrub(&kind));
        failure
    }
}

/// One try.
struct Attempt<'a> {
    exchange: &'a Exchange,
    request: &'a Request,
    policy: &'a Policy,
    sent: String,
    /// True once part of the response has arrived.
    has_begun: AtomicBool,
}

impl Attempt<'_> {
    async fn run(&self, pending: &PendingRequests) -> Result<Reply, Failure> {
        let Exchange { client, headers, dialect, .. } = self.exchange;
        let url = self.exchange.below(&dialect.target(self.request, self.policy.stream));
        let body = Value::Object(dialect.ask(self.request, self.policy.stream)).to_string();
        let accept = if self.policy.stream { "text/event-stream, application/json" } else { "application/json" };
        let sending = client
            .post(url.clone())
            .headers(headers.clone())
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, accept)
            .body(body)
            .send();
        let pending_request = pending.begin(self.sent.clone());
        // Opening the connection has its own timeout, which is reported separately.
        let limit = self.policy.timeouts.first_byte;
        let response = timeout(limit + self.policy.timeouts.connect, sending).await;
        let response = response.map_err(|_| self.silent(limit))?;
        let response = response.map_err(|error| self.broken(error))?;
        tracing::debug!(
            host = url.host_str(),
            path = url.path(),
            status = response.status().as_u16(),
            "model responded"
        );
        if !response.status().is_success() {
            drop(pending_request);
            return Err(self.refused(response).await);
        }
        let mut arriving = Arriving { response, seen: 0, limit: Some(limit), _pending_request: Some(pending_request) };
        match self.is_stream(&arriving.response) {
            true => self.stream(&mut arriving).await,
            false => self.document(&mut arriving).await,
        }
    }

    /// Returns `true` if the response is a stream. Its content type takes precedence over the kind of response that
    /// was requested.
    fn is_stream(&self, response: &Response) -> bool {
        let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        match kind.split(';').next().unwrap_or_default().trim() {
            "text/event-stream" | "application/x-ndjson" => true,
            // A stream of JSON lines may have the same content type as a single document.
            "application/json" => self.policy.stream && self.exchange.dialect.framing() == Framing::Lines,
            _ => self.policy.stream,
        }
    }

    async fn document(&self, arriving: &mut Arriving) -> Result<Reply, Failure> {
        let document = self.whole(arriving).await?;
        self.exchange.dialect.reply(self.request, document).map_err(|bad_response| self.bad_response(bad_response))
    }

    /// Reads a response that is a single document.
    async fn whole(&self, arriving: &mut Arriving) -> Result<Value, Failure> {
        let mut body = Vec::new();
        while let Some(bytes) = self.next(arriving).await? {
            body.extend_from_slice(&bytes);
        }
        self.json(&body)
    }

    async fn stream(&self, arriving: &mut Arriving) -> Result<Reply, Failure> {
        let dialect = self.exchange.dialect;
        let mut frames = Frames::new(dialect.framing());
        let mut gathered = dialect.assemble(self.request);
        let mut is_complete = false;
        while !is_complete {
            let Some(bytes) = self.next(arriving).await? else { break };
            for piece in frames.take(&bytes) {
                is_complete |= self.piece(gathered.as_mut(), &piece)?;
            }
        }
        if is_complete {
            let rest = async { while let Ok(Some(_)) = arriving.response.chunk().await {} };
            let _ = timeout(REST, rest).await;
        } else {
            for piece in frames.finish() {
                // If the last piece of a stream cannot be parsed, it was cut off.
                if foreign_json::parse_piece_slice(&piece).is_err() && piece != END {
                    break;
                }
                self.piece(gathered.as_mut(), &piece)?;
            }
        }
        gathered.finish().map(Reply::settled).ok_or_else(|| Failure::new(FailureKind::Cut, &self.sent))
    }

    /// Processes one piece; returns `true` if it was the last.
    fn piece(&self, gathered: &mut dyn Assemble, piece: &[u8]) -> Result<bool, Failure> {
        if piece == END {
            return Ok(true);
        }
        let piece = foreign_json::parse_piece_slice(piece).map_err(|error| self.not_json(piece, &error))?;
        let progress = gathered.take(piece).map_err(|bad_response| self.bad_response(bad_response))?;
        Ok(progress == Progress::Complete)
    }

    /// Returns the next bytes of the response; `None` at its end.
    async fn next(&self, arriving: &mut Arriving) -> Result<Option<bytes::Bytes>, Failure> {
        let first = arriving.limit;
        let limit = first.unwrap_or(self.policy.timeouts.idle);
        let late = || match first {
            Some(first) => self.silent(first),
            None => self.late(FailureKind::TimedOut, "the response made no progress for", limit),
        };
        let bytes = timeout(limit, arriving.response.chunk()).await.map_err(|_| late())?;
        let bytes = bytes.map_err(|error| self.broken(error))?;
        arriving.begun();
        self.has_begun.store(true, Ordering::Relaxed);
        // No vendor's format starts like this.
        if arriving.seen == 0 && bytes.as_ref().is_some_and(|bytes| bytes.trim_ascii_start().starts_with(b"<")) {
            return Err(Failure::new(FailureKind::WebPage, &self.sent));
        }
        arriving.seen += bytes.as_ref().map_or(0, bytes::Bytes::len);
        if arriving.seen > self.policy.largest_answer {
            let message = format!("it has more than {} bytes", self.policy.largest_answer);
            return Err(Failure::new(FailureKind::TooLarge, &self.sent).saying(&message));
        }
        Ok(bytes)
    }

    /// Creates the failure for a response that has no success status.
    async fn refused(&self, mut response: Response) -> Failure {
        let status = response.status().as_u16();
        let header = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok());
        let wait = header("retry-after-ms").and_then(retry_after::parse_ms);
        let wait = wait.or_else(|| retry_after::parse(header("retry-after")?, Timestamp::now()));
        let location = header("location").filter(|_| (300..400).contains(&status)).map(str::to_owned);
        let mut body = Vec::new();
        // An incomplete error is still an error.
        while let Ok(Ok(Some(bytes))) = timeout(self.policy.timeouts.idle, response.chunk()).await {
            body.extend_from_slice(&bytes);
            if body.len() > MAX_ERROR_BYTES {
                body.truncate(MAX_ERROR_BYTES);
                break;
            }
        }
        let read =
            serde_json::from_slice(&body).ok().and_then(|document: Value| ReportedError::from_document(&document));
        let mut reported = read.unwrap_or_else(|| ReportedError {
            codes: Vec::new(),
            message: if body.starts_with(b"<") { "a web page".to_owned() } else { self.shown(&body) },
        });
        if let Some(location) = location {
            // The other address may also contain a key.
            let location = location.split(['?', '#']).next().unwrap_or_default().to_owned();
            reported.message = format!("it redirects to {location}, and the key is not sent there");
        }
        if let Some(key) = &self.exchange.key {
            // The key is removed before the message is shortened; otherwise half a key could be left at its end.
            reported.message = key.scrub(&reported.message);
        }
        Failure { retry_after: wait, ..Failure::reported(Some(status), &reported, &self.sent) }
    }

    fn json(&self, bytes: &[u8]) -> Result<Value, Failure> {
        foreign_json::parse_slice(bytes).map_err(|error| self.not_json(bytes, &error))
    }

    fn not_json(&self, bytes: &[u8], error: &serde_json::Error) -> Failure {
        unreadable(&self.sent, &format!("it is not valid JSON ({error}): {}", self.shown(bytes)))
    }

    fn bad_response(&self, bad_response: BadResponse) -> Failure {
        match bad_response {
            BadResponse::Unreadable(what) => unreadable(&self.sent, &what),
            BadResponse::Reported(mut reported) => {
                if let Some(key) = &self.exchange.key {
                    reported.message = key.scrub(&reported.message);
                }
                Failure::reported(None, &reported, &self.sent)
            }
        }
    }

    /// Returns the start of the received bytes for display.
    fn shown(&self, bytes: &[u8]) -> String {
        let text = String::from_utf8_lossy(bytes);
        match &self.exchange.key {
            Some(key) => clipped(&key.scrub(&text)),
            None => clipped(&text),
        }
    }

    /// Creates the failure for a response that is not complete after `total`.
    fn unfinished(&self, total: Duration) -> Failure {
        match self.has_begun.load(Ordering::Relaxed) {
            true => self.late(FailureKind::TimedOut, "the whole response took longer than", total),
            false => self.silent(total),
        }
    }

    fn silent(&self, limit: Duration) -> Failure {
        self.late(FailureKind::Silent, "the response did not start within", limit)
    }

    fn late(&self, trouble: FailureKind, what: &str, limit: Duration) -> Failure {
        Failure::new(trouble, &self.sent).saying(&format!("{what} {} s", limit.as_secs_f64()))
    }

    fn broken(&self, error: reqwest::Error) -> Failure {
        let error = error.without_url();
        let reported = error_chain(&error);
        // The decompressor reports any broken body as undecodable, even if the connection closed.
        let is_cut =
            ["error reading a body", "unexpected end", "unexpected EOF"].iter().any(|sign| reported.contains(sign));
        let trouble = match () {
            () if error.is_connect() => FailureKind::Unreachable,
            () if error.is_timeout() => FailureKind::TimedOut,
            () if error.is_decode() && !is_cut => FailureKind::Unreadable,
            () => FailureKind::Cut,
        };
        Failure::new(trouble, &self.sent).saying(&reported)
    }
}

/// A response that is being received.
struct Arriving {
    response: Response,
    seen: usize,
    /// Timeout for the first bytes; `None` once they have arrived.
    limit: Option<Duration>,
    _pending_request: Option<crate::PendingRequest>,
}

impl Arriving {
    fn begun(&mut self) {
        self.limit = None;
        self._pending_request = None;
    }
}
